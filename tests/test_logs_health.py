"""Every fault is injected and found; a clean log triggers nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.kernels.dynamics import gravity, inverse_dynamics
from armid.logs import Channel, Clock, Conditioning, Log, LogRefusedError, check_log, condition
from armid.logs.health.channels import _flat_top
from armid.logs.health.nominal import rods
from armid.notes import Severity
from armid.parameters.inertial import from_centre_of_mass
from support.recordings import NAMES, arm, motion, recording

CLEAN = recording()
Q, QD, TAU = Channel.POSITION, Channel.VELOCITY, Channel.LINK_TORQUE


def changed(log: Log = CLEAN, *, time=None, **channels) -> Log:
    arrays = dict(log.channels)
    for name, values in channels.items():
        arrays[{"q": Q, "qd": QD, "tau": TAU, "motor": Channel.MOTOR_TORQUE}[name]] = values
    return replace(log, time=log.time if time is None else time, channels=arrays)


def problems(log: Log, robot=None) -> dict[tuple[str, str], Severity]:
    checked = check_log(log, robot or arm())
    return {(n.code, n.subject): n.severity for n in checked.notes if n.severity is not Severity.INFO}


def codes(log: Log, robot=None) -> set[str]:
    return {code for code, _ in problems(log, robot)}


def edited(values: np.ndarray, edit) -> np.ndarray:
    out = np.array(values)
    edit(out)
    return out


@pytest.mark.parametrize("inertials", [True, False])
@pytest.mark.parametrize("seed", [3, 11, 12])
def test_a_clean_log_triggers_nothing(inertials, seed):
    assert problems(recording(seed=seed), arm(inertials=inertials)) == {}


@pytest.mark.parametrize("rate", [50.0, 1000.0])
def test_clean_at_other_rates(rate):
    assert problems(recording(rate=rate, seconds=12.0)) == {}


def test_clean_without_friction_or_velocity():
    log = recording(friction=False)
    assert problems(replace(log, channels={c: v for c, v in log.channels.items() if c is not QD})) == {}


def test_missing_numbers_few_and_many():
    few = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(100, 110), 1), np.nan))
    assert problems(changed(tau=few))[("not-finite", "shoulder")] is Severity.WARNING
    many = edited(CLEAN[Q], lambda x: x.__setitem__((slice(100, 900), 2), np.nan))
    assert problems(changed(q=many))[("not-finite", "elbow")] is Severity.ERROR


def test_missing_velocity_is_no_error():
    found = problems(changed(qd=np.full_like(CLEAN[QD], np.nan)))
    assert {severity for severity in found.values()} == {Severity.WARNING}
    assert {code for code, _ in found} == {"not-finite"}


def test_corrupt_packets_and_spikes_are_found_and_left_out():
    def corrupt(x):
        x[500] = 1e150
        x[700, 1] = -3e9

    found = problems(changed(tau=edited(CLEAN[TAU], corrupt)))
    assert found[("corrupt-values", "shoulder")] is Severity.WARNING

    def spike(x):
        x[1000, 2] += 0.5
        x[2000, 2] -= 0.7

    log = changed(q=edited(CLEAN[Q], spike))
    assert problems(log)[("spikes", "elbow")] is Severity.WARNING
    clean, mended = (
        condition(CLEAN, arm()),
        condition(log, arm(), Conditioning(cutoff=condition(CLEAN, arm()).settings.cutoff)),
    )
    np.testing.assert_allclose(mended.qdd, clean.qdd, atol=2e-3)


@pytest.mark.parametrize(("factor", "unit"), [(180.0 / np.pi, "degrees"), (30.0 / np.pi, "revolutions per minute")])
def test_velocities_in_another_unit_are_named_and_not_taken_for_a_clock(factor, unit):
    log = changed(qd=factor * CLEAN[QD])
    assert codes(log) == {"velocity-inconsistent"}
    notes = check_log(log, arm()).notes
    assert all(unit in note.message for note in notes if note.code == "velocity-inconsistent")


def test_more_spikes_are_no_fewer():
    """They must not set the scale by which they are found."""
    rng = np.random.default_rng(0)
    for share in (0.002, 0.015, 0.04, 0.1):
        rows = rng.choice(np.arange(10, len(CLEAN.time) - 10), int(share * len(CLEAN.time)), replace=False)

        def spike(x, rows=rows):
            x[rows, 1] += 3.0 * np.ptp(x[:, 1])

        found = problems(changed(tau=edited(CLEAN[TAU], spike)))
        assert ("spikes", "shoulder") in found


def test_time_faults():
    t = CLEAN.time
    assert (
        problems(changed(time=edited(t, lambda x: x.__setitem__(slice(2000, None), x[2000:] - 5.0))))[
            ("time-backwards", "synthetic")
        ]
        is Severity.ERROR
    )
    assert (
        problems(changed(time=edited(t, lambda x: x.__setitem__([100, 101], x[[101, 100]]))))[
            ("time-backwards", "synthetic")
        ]
        is Severity.WARNING
    )
    assert (
        problems(changed(time=edited(t, lambda x: x.__setitem__(slice(1, None, 50), x[0:-1:50]))))[
            ("time-duplicated", "synthetic")
        ]
        is Severity.WARNING
    )
    assert problems(changed(time=np.floor(t * 20) / 20))[("time-duplicated", "synthetic")] is Severity.ERROR
    assert ("time-gaps", "synthetic") in problems(
        changed(time=edited(t, lambda x: x.__setitem__(slice(2000, None), x[2000:] + 3.0)))
    )
    assert ("time-frozen", "synthetic") in problems(changed(time=np.zeros_like(t)))
    assert ("time-not-finite", "synthetic") in problems(changed(time=edited(t, lambda x: x.__setitem__(7, np.nan))))


def test_irregular_clock():
    rng = np.random.default_rng(0)
    keep = np.sort(rng.choice(len(CLEAN), len(CLEAN) * 3 // 4, replace=False))
    assert codes(CLEAN.selected(keep)) == {"clock-irregular"}


def test_too_short():
    assert codes(CLEAN.rows(0, 30)) == {"too-short"}


def test_wrong_unit_of_time():
    assert problems(changed(time=CLEAN.time * 1e3)) == {("clock-unit", "synthetic"): Severity.ERROR}


def test_repeated_rows():
    rng = np.random.default_rng(1)
    stale = np.sort(rng.choice(np.arange(10, len(CLEAN)), 200, replace=False))

    def repeat(x):
        for k in stale:
            x[k] = x[k - 1]

    log = changed(**{name: edited(CLEAN[c], repeat) for name, c in (("q", Q), ("qd", QD), ("tau", TAU))})
    assert codes(log) == {"repeated-rows"}


def test_frozen_channels():
    dead = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 1), 0.0))
    assert problems(changed(tau=dead))[("frozen", "shoulder")] is Severity.ERROR
    held = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(1000, 1300), 2), x[1000, 2]))
    assert problems(changed(tau=held))[("frozen", "elbow")] is Severity.ERROR
    assert problems(changed(tau=np.zeros_like(CLEAN[TAU])))[("torque-dead", "synthetic")] is Severity.ERROR
    stuck = edited(CLEAN[Q], lambda x: x.__setitem__((slice(1000, 1300), 3), x[1000, 3]))
    assert problems(changed(q=stuck))[("frozen", "wrist")] is Severity.ERROR


def test_a_noisy_torque_that_is_cut_off_beside_a_long_rest():
    """It leaves its limit with every bit of noise, and rests at another value for longer than it stays there."""
    t = np.arange(4000) * 0.01
    noisy = np.sin(t) + 0.05 * np.random.default_rng(0).normal(size=len(t))
    moving = np.zeros(len(t), dtype=bool)
    cut = np.clip(noisy, -0.95, 0.95)
    cut[:300] = 0.1
    assert _flat_top(cut, moving).mean() > 0.05
    noisy[:300] = 0.1
    assert not _flat_top(noisy, moving).any()
    coarse = 0.05 * np.round(np.sin(t) / 0.05)
    coarse[:300] = 0.1
    assert not _flat_top(coarse, moving).any()


def test_a_torque_without_noise_that_comes_back_with_its_pose_is_not_cut_off():
    """Moves between the same poses, with a rest at each, as a simulator without noise writes them."""
    up = np.linspace(0.0, 1.0, 100)
    round_trip = np.concatenate([up, np.ones(60), up[::-1], np.zeros(60)])
    pose = np.tile(round_trip, 8)
    still = np.concatenate([[False], np.diff(pose) == 0.0])
    torque = 5.0 + np.sin(2.0 * pose)
    assert not _flat_top(torque, still).any()
    assert _flat_top(np.minimum(torque, 5.6), still).any()


def test_saturation():
    top = 0.6 * np.abs(CLEAN[TAU][:, 1]).max()
    clipped = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 1), np.clip(x[:, 1], -top, top)))
    assert ("saturated", "shoulder") in problems(changed(tau=clipped))


def test_quantisation():
    coarse = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 2), np.round(x[:, 2])))
    assert ("quantised", "elbow") in problems(changed(tau=coarse))


def test_useless_quantisation_is_an_error():
    step = np.ptp(CLEAN[TAU][:, 2]) / 12
    coarse = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 2), step * np.round(x[:, 2] / step)))
    assert problems(changed(tau=coarse))[("quantised", "elbow")] is Severity.ERROR


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_channel_that_drops_to_zero_is_half_dead(share):
    rng = np.random.default_rng(0)
    dropped = np.where(rng.random(len(CLEAN[TAU])) < share, 0.0, CLEAN[TAU][:, 3])
    found = problems(changed(tau=edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 3), dropped))))
    assert found[("half-dead", "wrist")] is Severity.ERROR
    # A coarse channel is at zero often, but as often near it.
    step = np.ptp(CLEAN[TAU][:, 3]) / 60
    coarse = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 3), step * np.round(x[:, 3] / step)))
    assert "half-dead" not in codes(changed(tau=coarse))


@pytest.mark.parametrize("value", [0.07, -4.0])
def test_a_channel_that_drops_to_any_one_value_is_half_dead(value):
    rng = np.random.default_rng(0)
    torque = CLEAN[TAU][:, 1]
    dropped = np.where(rng.random(len(torque)) < 0.3, value, torque)
    found = problems(changed(tau=edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 1), dropped))))
    assert found[("half-dead", "shoulder")] is Severity.ERROR
    # Two steps of a coarse channel, a torque held for ten rows, and one cut off are none that drops out.
    step = 0.7 * np.ptp(torque)
    held = torque[np.arange(len(torque)) // 10 * 10]
    for x in (step * np.round(torque / step), held, np.minimum(torque, np.quantile(torque, 0.7))):
        log = changed(tau=edited(CLEAN[TAU], lambda values, x=x: values.__setitem__((slice(None), 1), x)))
        assert "half-dead" not in codes(log)


def test_a_log_that_mostly_rests_says_so():
    # The same motion, stopped half-way.
    stop = len(CLEAN[Q]) // 2
    q = np.concatenate([CLEAN[Q][:stop], np.repeat(CLEAN[Q][stop : stop + 1], len(CLEAN[Q]) - stop, axis=0)])
    qd = np.concatenate([CLEAN[QD][:stop], np.zeros_like(CLEAN[QD][stop:])])
    assert problems(changed(q=q, qd=qd))[("at-rest", "synthetic")] is Severity.WARNING
    assert "at-rest" not in codes(changed())


def test_degrees():
    assert problems(changed(q=np.degrees(CLEAN[Q]), qd=np.degrees(CLEAN[QD]))) == {
        (code, subject): severity
        for (code, subject), severity in problems(changed(q=np.degrees(CLEAN[Q]), qd=np.degrees(CLEAN[QD]))).items()
        if code == "degrees" and severity is Severity.ERROR
    }
    assert "degrees" in codes(changed(q=np.degrees(CLEAN[Q]), qd=np.degrees(CLEAN[QD])))


def test_velocity_in_degrees_or_reversed():
    assert codes(changed(qd=np.degrees(CLEAN[QD]))) == {"velocity-inconsistent"}
    reversed_ = edited(CLEAN[QD], lambda x: x.__setitem__((slice(None), 2), -x[:, 2]))
    assert problems(changed(qd=reversed_)) == {("velocity-inconsistent", "elbow"): Severity.WARNING}


def test_position_limits():
    shifted = edited(CLEAN[Q], lambda x: x.__setitem__((slice(None), 3), x[:, 3] + 2.6))
    assert ("position-limits", "wrist") in problems(changed(q=shifted))


def test_too_little_motion():
    still = edited(CLEAN[Q], lambda x: x.__setitem__((slice(None), 3), 0.3))
    silent = edited(CLEAN[QD], lambda x: x.__setitem__((slice(None), 3), 0.0))
    assert problems(changed(q=still, qd=silent))[("too-little-motion", "wrist")] is Severity.WARNING
    at_rest = changed(q=np.zeros_like(CLEAN[Q]) + 0.1, qd=np.zeros_like(CLEAN[QD]))
    assert problems(at_rest)[("too-little-motion", "synthetic")] is Severity.ERROR


@pytest.mark.parametrize("inertials", [True, False])
def test_torque_with_the_opposite_sign(inertials):
    found = problems(changed(tau=-CLEAN[TAU]), arm(inertials=inertials))
    assert found[("torque-sign", "shoulder")] is Severity.ERROR
    assert found[("torque-sign", "elbow")] is Severity.ERROR
    assert {code for code, _ in found} == {"torque-sign"}


def test_torque_of_one_joint_reversed():
    one = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 2), -x[:, 2]))
    found = problems(changed(tau=one))
    assert found[("torque-sign", "elbow")] is Severity.ERROR
    assert ("torque-sign", "shoulder") not in found


@pytest.mark.parametrize("inertials", [True, False])
def test_gravity_reversed_is_told_from_torque_reversed(inertials):
    hanging = arm(inertials=inertials).with_gravity([0, 0, 9.81])
    assert problems(CLEAN, hanging) == {("gravity-reversed", "synthetic"): Severity.ERROR}


def test_robot_on_a_wall():
    assert codes(CLEAN, arm().with_gravity([9.81, 0, 0])) == {"mounting"}


def test_mounting_in_the_conditions_is_used():
    log = replace(CLEAN, conditions=replace(CLEAN.conditions, mounting=(0.0, 0.0, -9.81)))
    assert codes(log, arm().with_gravity([0, 0, 9.81])) == set()


def test_ampere_millinewton_metres_and_doubtful_scale():
    assert problems(changed(tau=CLEAN[TAU] / 10)) == {("torque-unit", "synthetic"): Severity.ERROR}
    assert problems(changed(tau=CLEAN[TAU] * 1e3))[("torque-unit", "synthetic")] is Severity.ERROR
    assert problems(changed(tau=CLEAN[TAU] / 3)) == {("torque-unit", "synthetic"): Severity.WARNING}


def test_current_is_said_to_be_current():
    channels = {Q: CLEAN[Q], QD: CLEAN[QD], Channel.CURRENT: CLEAN[TAU] / 10}
    assert problems(replace(CLEAN, channels=channels)) == {("torque-in-ampere", "synthetic"): Severity.WARNING}


def test_gravity_compensated_torque():
    compensated = CLEAN[TAU] - gravity(arm(), CLEAN[Q])
    assert "gravity-compensated" in codes(changed(tau=compensated))


def test_friction_compensated_motor_torque():
    log = recording(friction=False, torque_noise=0.01)
    channels = {Q: log[Q], QD: log[QD], Channel.MOTOR_TORQUE: log[TAU]}
    assert codes(replace(log, channels=channels)) == {"friction-compensated", "torque-computed"}


@pytest.mark.parametrize("kilograms", [1.0, 3.0])
def test_a_payload_nobody_mentioned(kilograms):
    robot = arm()
    t, q, qd, qdd = motion()
    inertial = np.array(robot.inertial)
    inertial[-10:] += from_centre_of_mass(kilograms, [0.02, 0.0, 0.25], np.eye(3) * 1e-3)
    tau = inverse_dynamics(robot, q, qd, qdd, inertial=inertial, drives=True)
    tau = tau + np.random.default_rng(0).normal(0, 0.15, tau.shape)
    log = changed(tau=tau)
    assert problems(log) == {("payload-suspected", "synthetic"): Severity.WARNING}
    note = next(n for n in check_log(log, robot).notes if n.code == "payload-suspected")
    assert float(note.message.split("about ")[1].split(" kg")[0]) == pytest.approx(kilograms, rel=0.3)
    said = replace(log, conditions=replace(log.conditions, payload=kilograms))
    assert problems(said) == {}
    assert t[0] == 0.0


@pytest.mark.parametrize("seed", [0, 36, 111])
def test_a_description_that_is_off_by_a_third_is_no_payload(seed):
    """A body on the last link explains two thirds and more of what these descriptions leave, and weighs 0.8 to 1.2 kg."""
    robot, rng = arm(), np.random.default_rng(seed)
    _, q, qd, qdd = motion()
    inertial = np.array(robot.inertial).reshape(-1, 10)
    for body in inertial:
        body *= 1.0 + 0.3 * rng.choice([-1, 0, 1])
        body[1:4] += 0.03 * body[0] * rng.uniform(-1, 1, 3)
    tau = inverse_dynamics(robot, q, qd, qdd, inertial=inertial.ravel(), drives=True)
    tau = tau + np.random.default_rng(0).normal(0, 0.15, tau.shape)
    assert "payload-suspected" not in codes(changed(tau=tau))


def test_friction_that_drives():
    one = edited(CLEAN[TAU], lambda x: x.__setitem__((slice(None), 0), -x[:, 0]))
    assert problems(changed(tau=one)) == {("friction-sign", "waist"): Severity.WARNING}


@pytest.mark.parametrize("late", [10, -10])
def test_lag_of_ten_milliseconds_is_measured(late):
    fast = recording(rate=1000.0, seconds=20.0)
    tau = np.roll(fast[TAU], late, axis=0)
    log = changed(fast, tau=tau).rows(20, len(fast) - 20)
    found = [n for n in check_log(log, arm()).notes if n.code == "torque-lag"]
    assert len(found) == 1
    assert ("late" if late > 0 else "early") in found[0].message
    milliseconds = float(found[0].message.split("comes ")[1].split(" ")[0])
    assert milliseconds == pytest.approx(10.0, abs=1.5)


def test_conditioning_with_the_delay_removes_the_lag():
    fast = recording(rate=1000.0, seconds=12.0)
    log = changed(fast, tau=np.roll(fast[TAU], 10, axis=0)).rows(20, len(fast) - 20)
    cutoff = Conditioning(cutoff=5.0)
    straight = condition(fast.rows(20, len(fast) - 20), arm(), cutoff)
    late = condition(log, arm(), replace(cutoff, torque_delay=0.010))
    at = np.interp(late.time, straight.time, straight.torques[TAU][:, 1])
    inside = (late.time > straight.time[0]) & (late.time < straight.time[-1])
    np.testing.assert_allclose(late.torques[TAU][inside, 1], at[inside], atol=0.05)


@pytest.mark.parametrize("order", [[0, 2, 1, 3], [3, 2, 1, 0]])
def test_wrong_joint_order_of_everything(order):
    log = changed(q=CLEAN[Q][:, order], qd=CLEAN[QD][:, order], tau=CLEAN[TAU][:, order])
    assert "joint-order" in codes(log)


def test_wrong_order_of_torque_or_velocity_alone():
    order = [0, 2, 1, 3]
    assert "joint-order" in codes(changed(tau=CLEAN[TAU][:, order]))
    assert problems(changed(qd=CLEAN[QD][:, order])) == {
        ("joint-order", "shoulder"): Severity.ERROR,
        ("joint-order", "elbow"): Severity.ERROR,
    }


def test_no_torque():
    log = replace(CLEAN, channels={Q: CLEAN[Q]})
    assert problems(log) == {("no-torque", "synthetic"): Severity.ERROR}


def test_sign_is_found_without_a_clock():
    log = replace(changed(tau=-CLEAN[TAU]), clock=Clock.UNKNOWN, time=np.arange(float(len(CLEAN))))
    assert ("torque-sign", "shoulder") in problems(log)


def test_every_finding_says_what_to_do():
    for log in (changed(tau=-CLEAN[TAU]), changed(time=CLEAN.time * 1e3), CLEAN.rows(0, 30)):
        for note in check_log(log, arm()).notes:
            assert ": " in note.message
            assert note.code == note.code.lower()


def test_samples_are_refused_until_errors_are_accepted():
    checked = check_log(changed(tau=-CLEAN[TAU]), arm())
    with pytest.raises(LogRefusedError, match=r"torque-sign.*accept it with --accept torque-sign"):
        condition(checked, arm())
    assert len(condition(checked, arm(), Conditioning(accept=("torque-sign",)))) > 100


def test_rods_pull_where_the_arm_does():
    robot = arm()
    q = CLEAN[Q][::50]
    real, rod = gravity(robot, q), gravity(robot, q, inertial=rods(robot))
    for j in (1, 2):
        assert np.corrcoef(real[:, j], rod[:, j])[0, 1] > 0.95
    assert NAMES[1] == "shoulder"
