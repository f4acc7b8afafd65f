"""Models 1, 2 and 3 of [Kolyubin2017]: counts, agreement where they overlap, pairs that are out of step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.errors import InputError
from armid.estimation.covariance import AutocorrelatedNoise
from armid.estimation.essential import BackwardElimination
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import runs_of
from armid.estimation.run import information_of
from armid.identifiability.structure import structural_base
from armid.logs.conditioning import Conditioning, condition
from armid.logs.log import Channel, Conditions, Log
from armid.logs.recording import open_recording
from armid.logs.samples import Samples, concatenated
from armid.logs.torque_pair import MODELS, _lags_with_deviations, check_pair, effects_of, pair_lags, shared_parameters
from armid.motions.fourier import FourierTrajectory
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import Sensors, TorqueSensor

FRICTION = Effects(viscous=True, coulomb=True, offset=True)
LOAD = from_centre_of_mass(1.5, [0.0, 0.02, 0.12], 4e-3 * np.eye(3))


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("lwr4plus")


class Waves:
    """A lively motion of all joints, at rest at no time."""

    duration = 8.0

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.w, self.phase = rng.uniform(0.6, 2.5, (3, 7)), rng.uniform(0, 6, (3, 7))

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle = np.asarray(t)[:, np.newaxis, np.newaxis] * self.w + self.phase
        waves = (np.sin(angle), self.w * np.cos(angle), -(self.w**2) * np.sin(angle))
        return tuple(0.3 * x.sum(axis=1) for x in waves)  # type: ignore[return-value]


def recorded(robot: Robot, seed: int, *, load: np.ndarray | None) -> Samples:
    noise = Sensors(torque=TorqueSensor(noise=0.02), motor=TorqueSensor(noise=0.05))
    scenario = Scenario(physics=Physics(sensed_friction=0.4, payload=load, collisions=False), sensors=noise, seed=seed)
    log = run_scenario(robot, Waves(seed), scenario).log
    log = replace(log, name=f"run {seed}", conditions=Conditions(payload=0.0 if load is None else 1.5))
    return condition(log, robot, Conditioning(cutoff=8.0))


@pytest.fixture(scope="module")
def pair(robot: Robot) -> Samples:
    return concatenated([recorded(robot, 1, load=None), recorded(robot, 2, load=LOAD)])


@pytest.fixture(scope="module")
def fits(robot: Robot, pair: Samples) -> dict[TorqueSide, Estimate]:
    out = {}
    for side in MODELS:
        effects = effects_of(side, Effects(viscous=True, coulomb=True, offset=True, payload=PayloadRuns.BOTH))
        runs = runs_of(pair, robot, effects)
        sources = [TorqueRows(robot, effects, loaded=loaded) for loaded in (True, False)]
        base = structural_base(*sources) if side is not TorqueSide.DIFFERENCE else structural_base(sources[0])
        information = information_of(runs)
        estimate = WeightedLeastSquares().fit(information, base)
        out[side] = AutocorrelatedNoise(max_order=8).apply(estimate, runs, information)
    return out


def test_counts_of_the_seed(robot: Robot) -> None:
    """136 -> 102 with loaded and unloaded runs: 43 + 10 + 21 + 28; payload as link 8 with seventeen parameters."""
    effects = effects_of(TorqueSide.BOTH, Effects(viscous=True, coulomb=True, offset=True, payload=PayloadRuns.BOTH))
    sources = [TorqueRows(robot, effects, loaded=loaded) for loaded in (True, False)]
    assert len(sources[0].columns) == 136
    assert len(structural_base(*sources)) == 102
    assert len(structural_base(sources[0])) == 92
    drives = TorqueRows(robot, effects_of(TorqueSide.DIFFERENCE, FRICTION))
    assert len(drives.columns) == len(structural_base(drives)) == 28


def test_models_agree_where_they_overlap(fits: dict[TorqueSide, Estimate]) -> None:
    """Within four standard deviations of either; the drives from models 2 and 3, the links from models 1 and 2."""
    for first, second in ((TorqueSide.BOTH, TorqueSide.DIFFERENCE), (TorqueSide.BOTH, TorqueSide.LINK)):
        a, b = fits[first], fits[second]
        shared = [n for n in a.names if n in b.names and n.split(".")[1] in shared_parameters(first, second)]
        assert len(shared) >= (28 if second is TorqueSide.DIFFERENCE else 60)
        i, j = [a.names.index(n) for n in shared], [b.names.index(n) for n in shared]
        spread = np.hypot(a.standard_deviations[i], b.standard_deviations[j])
        ratio = np.abs(a.values[i] - b.values[j]) / spread
        assert np.mean(ratio < 4.0) > 0.97, [shared[k] for k in np.flatnonzero(ratio >= 4.0)]


def test_both_sides_give_links_drives_and_the_load(robot: Robot, fits: dict[TorqueSide, Estimate]) -> None:
    estimate = fits[TorqueSide.BOTH]
    assert len(estimate) == 102
    value = dict(zip(estimate.names, estimate.values, strict=True))
    assert value["payload.mass"] == pytest.approx(1.5, rel=0.02)
    rotor = [value[f"joint{i + 1}.rotor_inertia"] for i in range(7)]
    assert np.allclose(rotor, robot.drive("rotor_inertia"), rtol=0.05, atol=0.01)
    viscous = [value[f"joint{i + 1}.motor_viscous"] for i in range(7)]
    assert np.allclose(viscous, 0.6 * robot.drive("viscous"), rtol=0.1, atol=0.1)


def test_essential_parameters_of_both_sides(robot: Robot, pair: Samples, fits: dict[TorqueSide, Estimate]) -> None:
    effects = effects_of(TorqueSide.BOTH, Effects(viscous=True, coulomb=True, offset=True, payload=PayloadRuns.BOTH))
    essential = BackwardElimination().fit(information_of(runs_of(pair, robot, effects)), fits[TorqueSide.BOTH])
    assert 40 < len(essential.names) < 102
    assert "payload.mass" in essential.names


def test_sensor_groups_count_by_their_own_noise(fits: dict[TorqueSide, Estimate]) -> None:
    sigma = fits[TorqueSide.BOTH].sigma
    names = [name for name in sigma if not name.endswith(":motor")]
    ratio = np.array([sigma[f"{name}:motor"] / sigma[name] for name in names])
    assert (ratio > 1.2).all()


def test_a_pair_recorded_together_passes(pair: Samples) -> None:
    assert abs(np.median(check_pair(pair))) < 0.5e-3


def test_a_pair_out_of_step_is_refused(robot: Robot) -> None:
    scenario = Scenario(physics=Physics(sensed_friction=0.4, collisions=False))
    log = run_scenario(robot, Waves(3), scenario).log
    late = {c: (np.roll(v, 12, axis=0) if c is Channel.MOTOR_TORQUE else v)[12:] for c, v in log.channels.items()}
    shifted = Log(name="late", joints=log.joints, time=log.time[12:], channels=late, named=True)
    samples = condition(shifted, robot, Conditioning(cutoff=20.0))
    assert np.median(pair_lags(samples)) == pytest.approx(0.012, rel=0.3)
    with pytest.raises(InputError, match="not synchronised"):
        check_pair(samples)


def test_one_torque_alone_is_no_pair(robot: Robot, pair: Samples) -> None:
    alone = replace(pair, torques={Channel.LINK_TORQUE: pair.torques[Channel.LINK_TORQUE]}, raw_torques={})
    with pytest.raises(InputError, match="needs link and motor torque"):
        check_pair(alone)
    with pytest.raises(InputError, match="torque side 'motor'"):
        shared_parameters(TorqueSide.MOTOR, TorqueSide.LINK)


def test_a_slow_recording_is_not_condemned_by_lags_it_cannot_tell() -> None:
    """Sensors behind the gears, slow motion: the joints' lags scatter by milliseconds, within their deviations."""
    robot = load_robot("lwr4plus")
    rng = np.random.default_rng(20)
    size = 0.12 * 3.0 / np.arange(1, 6) * np.ones((7, 1))
    a, b = (rng.uniform(-1.0, 1.0, size.shape) * size for _ in range(2))
    motion = FourierTrajectory(robot.joint_names, 14.0, np.zeros(7), a, b)
    noise = Sensors(torque=TorqueSensor(noise=0.02), motor=TorqueSensor(noise=0.05))
    log = run_scenario(robot, motion, Scenario(physics=Physics(collisions=False), sensors=noise, seed=20)).log
    slow = log.selected(slice(0, int(0.6 * len(log.time)), 2))
    samples = open_recording(slow, robot).condition(Conditioning())
    lags, deviations = _lags_with_deviations(samples)
    assert (np.abs(lags) < 4.0 * deviations).all()
    check_pair(samples)
