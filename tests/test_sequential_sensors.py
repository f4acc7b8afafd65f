"""Intervals of a sequential answer hold what ordinary sensors do to it: derivatives, coverage, and what must not change."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from armid.estimation.estimate import Estimate
from armid.identifiability.structure import structural_base
from armid.identification.metrics import nominal_standard
from armid.kernels.dynamics import inverse_dynamics
from armid.logs import Channel, Clock, Log
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.rows.imperfections import KINDS, Family
from armid.rows.torque import TorqueRows
from armid.sequential.estimate import SequentialEstimate, TipToBase
from armid.sequential.identify import identify_sequential
from armid.sequential.pairing import Pairing
from armid.sequential.sensors import SensorsBeside, beside_sensors
from armid.sequential.stages import Stage, Staging, moving_stages, stages_of_log
from support.chains import pinocchio_model
from support.identified import EFFECTS, log, urdf_file
from support.khosla import TABLE_3, sinusoid, vector
from test_imperfections import specimen, spoiled

LINEAR = Effects(viscous=True, coulomb=True)
STAGING = Staging(effects=EFFECTS, cutoff=8.0, torque_delay=0.0)


@cache
def source() -> TorqueRows:
    return TorqueRows(specimen()[0], EFFECTS)


def solved(recording: Log, *, hold: bool = False) -> tuple[SequentialEstimate, tuple[Stage, ...]]:
    stages = stages_of_log(recording, specimen()[0], STAGING)
    return TipToBase(hold=hold).fit(source(), stages), stages


@pytest.mark.parametrize(
    ("family", "size"), [("gain", 1e-3), ("zero", 1e-3), ("scale", 1e-4), ("delay", 1e-4), ("clock", 1e-2)]
)
@pytest.mark.parametrize("hold", [False, True])
def test_an_imperfection_moves_the_answer_by_what_its_column_says(family: str, size: float, hold: bool) -> None:
    """Finite difference: the same recording by a sensor that is a little wrong, solved anew."""
    clean = log(*specimen(), seed=3)
    found, stages = solved(clean, hold=hold)
    beside = SensorsBeside.of(found, source(), stages, hold=hold)
    (k,) = (k for k, i in enumerate(beside.items) if i.family == family and i.joint in (1, None))
    base = structural_base(source())
    said = base.projection * found.scale @ found.directions.T @ beside.shift[:, k]
    ends = [base.values(solved(spoiled(clean, **{family: way * size}), hold=hold)[0].values) for way in (1.0, -1.0)]
    moved = (ends[0] - ends[1]) / (2.0 * size)
    scale = solved(clean)[0].over(base).standard_deviations
    # Recordings are interpolated linearly where delayed, other samples are kept by another clock, and weights follow the noise.
    assert np.linalg.norm((said - moved) / scale) < 0.05 * np.linalg.norm(moved / scale)


def recorded(robot: Robot, seed: int, first: int, wrong: dict[str, np.ndarray]) -> Log:
    """Ten seconds at 100 Hz, torque by Pinocchio; the joints before the first stand on their brakes."""
    rng = np.random.default_rng([seed, first])
    n, t, w = robot.n_joints, np.arange(1000) / 100.0, 2.0 * np.pi / 10.0 * np.arange(1, 6)
    a, b = (np.arange(n) >= first)[:, np.newaxis] * rng.normal(size=(2, n, 5)) * 0.35 / np.sqrt(np.arange(1, 6))
    pose = rng.normal(size=n) * 0.4

    def motion(time: np.ndarray) -> tuple[np.ndarray, ...]:
        s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
        return pose + s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T, -(s * w**2) @ a.T - (c * w**2) @ b.T

    model = pinocchio_model(robot)
    data = model.createData()
    tau = np.empty((len(t), n))
    for j, delay in enumerate(wrong["delay"]):
        q, qd, qdd = motion(t - delay)
        own = np.array([pin.rnea(model, data, *sample)[j] for sample in zip(q, qd, qdd, strict=True)])
        tau[:, j] = own + robot.drive("viscous")[j] * qd[:, j] + robot.drive("coulomb")[j] * np.sign(qd[:, j])
    noise = 0.01 * tau.std(axis=0)
    channels = {
        Channel.POSITION: motion(t)[0] + wrong["zero"] + rng.normal(0.0, 2e-5, tau.shape),
        Channel.LINK_TORQUE: (1.0 + wrong["gain"]) * tau + noise * rng.standard_normal(tau.shape),
    }
    return Log(
        name=f"stage{first}", joints=robot.joint_names, time=t, channels=channels, named=True, clock=Clock.COLUMN
    )


def held(robot: Robot, seed: int, share: float, locked: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors over deviations from noise alone and beside sensors, and how much wider intervals are."""
    n, rng = robot.n_joints, np.random.default_rng(seed)
    sizes = {"gain": 0.03, "zero": np.radians(0.5), "delay": 2e-3}
    wrong = {name: share * size * rng.standard_normal(n) for name, size in sizes.items()}
    rows = TorqueRows(robot, LINEAR)
    staging = Staging(effects=LINEAR, accept=("torque-lag", "joint-order"))
    firsts = reversed(range(n)) if locked else (0,)
    logs = [recorded(robot, seed, first, wrong) for first in firsts]
    stages = sorted(
        (s for x in logs for s in stages_of_log(x, robot, staging)), key=lambda s: -robot.joint_index(s.joint)
    )
    found, base = TipToBase().fit(rows, stages), structural_base(rows)
    truth = base.values(nominal_standard(robot, base.parameters))

    def scores(estimate: Estimate) -> np.ndarray:
        return (estimate.values - truth) / estimate.standard_deviations

    alone = found.over(base)
    beside = beside_sensors(found, rows, stages, recorded_velocity=False, hold=False).over(base)
    return scores(alone), scores(beside), beside.standard_deviations / alone.standard_deviations


@pytest.mark.parametrize("locked", [False, True])
def test_intervals_hold_the_truth_with_sensors_that_are_a_little_wrong(locked: bool) -> None:
    robot = load_robot(str(urdf_file()))
    parts = [held(robot, seed, 1.0, locked) for seed in range(6)]
    alone, beside = (np.mean([np.abs(part[k]) < 1.96 for part in parts]) for k in range(2))
    assert alone < 0.5
    assert beside > 0.88


@pytest.mark.parametrize("locked", [False, True])
def test_right_sensors_widen_little(locked: bool) -> None:
    robot = load_robot(str(urdf_file()))
    parts = [held(robot, seed, 0.0, locked) for seed in range(3)]
    assert np.mean([np.abs(part[1]) < 1.96 for part in parts]) > 0.9
    assert np.median([part[2] for part in parts]) < 1.2
    assert min(part[2].min() for part in parts) >= 1.0


def test_a_delay_of_a_single_joint_whose_pairing_was_measured_is_counted_once() -> None:
    """What the pairing does not know of it is in the intervals already; without a pairing the delay may be there."""
    found, stages = solved(log(*specimen(), seed=3))
    only = [stages[0]]
    found = TipToBase().fit(source(), only)
    pairing = Pairing(log="run3", seconds=0.0, deviation=1e-3, step=0.01)
    moved = []
    for known in (None, pairing):
        beside = SensorsBeside.of(found, source(), [replace(only[0], pairing=known)])
        moved.append(beside.shift[:, [item.family is Family.DELAY for item in beside.items]])
    assert np.abs(moved[0]).max() > 0.0
    assert moved[1] == pytest.approx(0.0 * moved[1], abs=1e-12 * np.abs(moved[0]).max())


def test_a_delay_common_to_all_joints_is_left_to_the_pairing() -> None:
    found, stages = solved(log(*specimen(), seed=3))
    pairing = Pairing(log="run3", seconds=0.0, deviation=1e-3, step=0.01)
    beside = SensorsBeside.of(found, source(), [replace(stage, pairing=pairing) for stage in stages])
    delays = np.array([item.family is Family.DELAY for item in beside.items])
    alike = KINDS[Family.DELAY].tolerance * beside.shift @ delays
    alone = KINDS[Family.DELAY].tolerance * np.abs(beside.shift[:, delays]).max()
    assert np.abs(alike).max() < 1e-9 * alone


@pytest.mark.parametrize("hold", [False, True])
def test_exact_data_exclude_what_shows_in_residuals(hold: bool) -> None:
    """25 samples of [Khosla1985] table 3 to seventeen digits: intervals stay far below the digits that are printed there."""
    robot = load_robot("cmu-dd-arm2")
    rows = TorqueRows(robot)
    x = sinusoid(3)
    tau = inverse_dynamics(robot, *np.split(x, 3, axis=1), inertial=vector(rows, TABLE_3))
    stages = [replace(stage, rate=50.0) for stage in moving_stages(robot, x, tau)]
    found = TipToBase(hold=hold).fit(rows, stages)
    beside = beside_sensors(found, rows, stages, recorded_velocity=True, hold=hold)
    estimate = beside.over(structural_base(rows))
    assert estimate.standard_deviations.max() < 5e-4
    assert (estimate.standard_deviations > 0.0).all()


def test_the_commanded_motion_has_no_sensors() -> None:
    """The output-error structure: intervals are those of the stages alone."""
    robot, truth = specimen()
    clean = log(robot, truth, seed=3)
    both = replace(clean, channels={**clean.channels, Channel.COMMANDED_POSITION: clean[Channel.POSITION]})
    measured, commanded = (
        identify_sequential(robot, both, effects=EFFECTS, commanded=commanded).estimate.standard_deviations
        for commanded in (False, True)
    )
    assert (commanded < measured).all()
