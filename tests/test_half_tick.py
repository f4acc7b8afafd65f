"""A torque that its controller held since the last tick: the arm felt it half a tick later than it was written down."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import armid
from armid.estimation.imperfections import BlockFactors
from armid.identification.metrics import nominal_standard
from armid.identification.result import Result
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot

ARM = load_robot("cmu-dd-arm2")
RATE, SECONDS, VISCOUS = 500.0, 12.0, 0.8
ROTOR, MOTOR_VISCOUS, MOTOR_COULOMB = 0.1, 0.3, 0.2
HALF = 0.5 / RATE
QUIET, LOUD = 0.01, 40.0
"""[N m] of noise: the tick shows, and it does not."""


def motion(t: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    n = ARM.n_joints
    w, phase = 2.0 * np.pi * rng.uniform(0.2, 1.2, size=(n, 3)), rng.uniform(0.0, 2.0 * np.pi, size=(n, 3))
    angle = w * t[:, None, None] + phase
    return tuple((0.4 * part).sum(axis=2) for part in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)))


def recorded(seed: int, *, late: float, noise: float) -> Log:
    """Torque stamped `late` seconds after the motion it belongs to; half a tick early when a command is held."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    q, qd, qdd = motion(t - late, seed)
    tau = inverse_dynamics(ARM, q, qd, qdd) + VISCOUS * qd
    tau += np.random.default_rng(seed + 100).normal(0.0, noise, size=tau.shape)
    channels = {Channel.POSITION: motion(t, seed)[0], Channel.LINK_TORQUE: tau}
    return Log(name=f"run {seed}", joints=tuple(ARM.joint_names), time=t, channels=channels, named=True)


@cache
def identified(late: float, noise: float, imperfections: str = "delay") -> Result:
    one, other = (recorded(seed, late=late, noise=noise) for seed in (0, 1))
    words = {"friction": "viscous", "imperfections": imperfections, "sensitivity": False}
    return armid.identify(ARM, one, validate=other, **words)  # type: ignore[arg-type]


def scores(result: Result) -> np.ndarray:
    """Errors in standard deviations."""
    estimate = result.estimate
    known = nominal_standard(ARM, estimate.base.parameters)
    truth = np.where([name.endswith("viscous") for name in estimate.base.parameters], VISCOUS, known)
    return (estimate.values - estimate.base.values(truth)) / estimate.standard_deviations


def test_held_torque_is_paired_with_the_motion_it_moved() -> None:
    assert np.abs(scores(identified(-HALF, QUIET, "none"))).max() > 4.0
    result = identified(-HALF, QUIET)
    assert result.conditioning.torque_delay_s == pytest.approx(-HALF, rel=0.05)
    assert np.abs(scores(result)).max() < 3.0
    assert "torque-held" in {note.code for note in result.notes}


def test_torque_of_a_sensor_stays_where_it_is() -> None:
    result = identified(0.0, QUIET)
    assert result.conditioning.torque_delay_s == 0.0
    assert np.sqrt(np.mean(scores(result) ** 2)) < 1.5


def test_what_the_motion_does_not_show_widens_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockFactors, "hidden", lambda self, *_: np.zeros((self.base, self.base)))
    one, other = identified(-HALF, LOUD), identified(-HALF, LOUD, "none")
    assert one.conditioning.torque_delay_s == 0.0
    np.testing.assert_array_equal(one.estimate.values, other.estimate.values)
    added = one.estimate.covariance - other.estimate.covariance
    values = np.linalg.eigvalsh(added / np.outer(*(2 * (one.estimate.standard_deviations,))))
    assert values[-1] > 0.0
    assert np.abs(values[:-1]).max() < 1e-6 * values[-1]  # one direction alone


def test_a_delay_that_no_tick_explains_is_left_to_the_faults() -> None:
    assert identified(0.008, QUIET).conditioning.torque_delay_s == 0.0
    assert identified(-0.008, QUIET).conditioning.torque_delay_s == 0.0


def pair(seed: int) -> Log:
    """Torque before and behind the gears, both held for a tick."""
    log = recorded(seed, late=-HALF, noise=QUIET)
    _, qd, qdd = motion(np.asarray(log.time) + HALF, seed)
    drive = ROTOR * qdd + MOTOR_VISCOUS * qd + MOTOR_COULOMB * np.sign(qd)
    noise = np.random.default_rng(seed + 200).normal(0.0, QUIET, size=qd.shape)
    motor = log.channels[Channel.LINK_TORQUE] + drive + noise
    return replace(log, channels={**log.channels, Channel.MOTOR_TORQUE: motor})


def test_both_sides_of_the_drives_are_paired_with_the_motion_too() -> None:
    """Without it the friction behind the gears, of which there is none here but the viscous one, comes out wrong."""

    def found(imperfections: str) -> Result:
        words = {"torques": "both", "friction": "viscous,coulomb", "rotor_inertia": True, "sensitivity": False}
        return armid.identify(ARM, pair(0), validate=pair(1), imperfections=imperfections, **words)  # type: ignore[arg-type]

    true = {"rotor_inertia": ROTOR, "motor_viscous": MOTOR_VISCOUS, "motor_coulomb": MOTOR_COULOMB, "viscous": VISCOUS}

    def worst(result: Result) -> float:
        rows = [(p, true[q]) for p in result.parameters if (q := p.name.split(".")[1]) in true]
        return max(abs(p.value - value) / p.standard_deviation for p, value in rows)

    paired = found("delay")
    assert paired.conditioning.torque_delay_s == pytest.approx(-HALF, rel=0.1)
    assert worst(paired) < 4.0 < worst(found("none"))
