"""Planted faults on a small arm, a reduced `python -m bench faults`: never trusted silently, nor again when larger."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from armid.identification.faults import Answer
from armid.identification.pipeline import run_identification
from armid.identification.settings import Identification
from armid.kernels.dynamics import gravity, inverse_dynamics
from armid.logs.check import check_log
from armid.logs.health.refuse import LogRefusedError
from armid.logs.log import Channel, Log
from armid.outcome import Verdict
from armid.robot.load import load_robot
from armid.rows.presliding import followed
from support.identified import EFFECTS, log, trusted, urdf_file
from support.realdata import real_data

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.bench_faults import Outcome, identified, outcome_of, recorded, sought_in
from bench.planted_faults import KINDS, Kind

DECIDED = (
    "torque sign",
    "torque sign, all joints",
    "position sign",
    "torques swapped",
    "joints swapped",
    "dead channel",
    "half-dead channel",
    "frozen torque",
    "gear ratio missing, one joint",
    "millinewton metres",
    "degrees for radians",
    "milliseconds for seconds",
)
"""Kinds that every size of is decided on this arm."""


@cache
def clean(seed: int) -> Log:
    return log(load_robot(str(urdf_file())), trusted().robot, seed=seed)


def planted(kind: Kind, size: float) -> Outcome:
    """What becomes of both recordings with the same fault."""
    robot = load_robot(str(urdf_file()))
    logs = [check_log(kind.plant(clean(seed), size), robot) for seed in (3, 5)]
    try:
        result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
    except LogRefusedError as error:
        return Outcome(answer="named", said=str(error))
    return outcome_of(result, sought_in(kind, size, clean(3)))


@pytest.mark.parametrize("kind", [k for k in KINDS if k.name in DECIDED], ids=lambda k: k.name)
def test_no_decidable_fault_is_trusted_silently(kind: Kind) -> None:
    answers = [planted(kind, size).answer for size in dict.fromkeys(kind.sizes)]
    assert "silent" not in answers


@pytest.mark.parametrize(
    "name", ["torque gain, heavy joint", "torque gain too small, heavy joint", "offset drifts, N m"]
)
def test_a_larger_fault_is_not_trusted_again(name: str) -> None:
    kind = next(k for k in KINDS if k.name == name)
    largest = kind.sizes[2]
    outcomes = [planted(kind, size) for size in (*kind.sizes, largest**2 if largest < 10 else 10 * largest)]
    untrusted = [not outcome.trusted for outcome in outcomes]
    assert untrusted == sorted(untrusted)
    assert untrusted[-1]
    assert "unheeded" not in [outcome.answer for outcome in outcomes]


@pytest.mark.parametrize(("joint", "gain"), [(1, 0.6), (1, 1.3), (2, 1.22), (5, 0.5)])
def test_a_wrong_gain_is_decisive_in_a_recording_that_has_small_errors_of_its_own(joint: int, gain: float) -> None:
    """Beside the noise that a large gain makes, tilts and gains of other joints explain as much as it does."""
    real_data()
    cell = recorded("panda")
    assert cell is not None
    torque = np.array(cell.train[0][Channel.LINK_TORQUE])
    torque[:, joint] *= gain
    wrong = replace(cell.train[0], channels={**cell.train[0].channels, Channel.LINK_TORQUE: torque}, notes=())
    result = identified(cell, [wrong], (), cell.robot)
    fault = result.faults[f"gain of joint{joint + 1}"]
    assert fault.answer is Answer.FOUND
    assert fault.low - 0.05 < gain - 1.0 < fault.high + 0.05  # the recording's own gain is within its tolerance
    assert result.verdict is Verdict.UNTRUSTED
    assert not fault.rivals


@pytest.mark.parametrize("what", ["gain of shoulder", "weight"])
def test_a_gain_or_a_weight_that_is_another_in_the_held_out_motion_is_no_load(what: str) -> None:
    robot = load_robot(str(urdf_file()))
    train, other = clean(3), clean(5)
    torque = np.array(other[Channel.LINK_TORQUE])
    if what == "weight":
        torque -= gravity(trusted().robot, other[Channel.POSITION])
    else:
        torque[:, 1] *= 0.8
    tested = replace(other, channels={**other.channels, Channel.LINK_TORQUE: torque})
    result = run_identification(robot, [train], [tested], Identification(effects=EFFECTS, sensitivity=False))
    load = result.evidence.other_load if result.evidence is not None else None
    assert load is not None
    assert load.instead == what
    assert load.instead_size == pytest.approx(-1.0 if what == "weight" else -0.2, abs=0.02)
    grown = [check.message for check in result.checks if check.code == "joint-overfitted"]
    assert grown
    assert all(f"{what} is another there" in text and "load" not in text for text in grown)


@cache
def hardly_moving(seed: int) -> Log:
    """The elbow moves by a hundredth of a radian, over which its friction does no more than turn around."""
    robot, recorded = trusted().robot, clean(seed)
    elbow = robot.joints[2]
    joints = (*robot.joints[:2], replace(elbow, drive=replace(elbow.drive, coulomb=0.0)))
    t = recorded.time
    q = np.array(recorded[Channel.POSITION])
    q[:, 2] = 0.4 + 0.005 * np.sin(2.0 * np.pi * 0.3 * t) * np.cos(2.0 * np.pi * 0.1 * t)
    qd, qdd = (np.gradient(x, t, axis=0) for x in (q, np.gradient(q, t, axis=0)))
    torque = inverse_dynamics(replace(robot, joints=joints), q, qd, qdd, drives=True)
    torque[:, 2] += 3.0 * followed(q[:, 2], 0.008)
    rng = np.random.default_rng(seed)
    channels = {Channel.POSITION: q, Channel.LINK_TORQUE: torque + rng.normal(0.0, 0.05, torque.shape)}
    return replace(recorded, channels=channels, notes=())


def test_of_a_joint_that_hardly_moves_no_spring_is_found() -> None:
    """Over a hundredth of a radian friction that turns around pulls back as a spring does."""
    robot = load_robot(str(urdf_file()))
    logs = [hardly_moving(seed) for seed in (3, 5)]
    result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
    for kind in ("spring", "zero", "scale", "eccentricity sine", "play"):
        fault = result.faults[f"{kind} of elbow"]
        assert fault.answer is Answer.UNDECIDABLE
        assert "larger range" in fault.experiment
        assert "larger range" not in result.faults[f"{kind} of shoulder"].experiment


def test_a_clean_recording_is_trusted_with_other_noise() -> None:
    robot = load_robot(str(urdf_file()))
    rng = np.random.default_rng(0)
    for _ in range(3):
        logs = []
        for seed in (3, 5):
            channels = {c: v + rng.normal(0, 1e-6, np.shape(v)) for c, v in clean(seed).channels.items()}
            logs.append(replace(clean(seed), channels=channels))
        result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
        assert result.verdict is Verdict.TRUSTED
