"""Torque that wanders with time, and lengths of the description that are wrong: found by name and size, and not where none is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.estimation.eliminated import Eliminated
from armid.identification.candidates import Seen, position_faults
from armid.identification.described_bodies import _other_unit
from armid.identification.fault_answers import FaultAnswers
from armid.identification.faults import Answer, Fault
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.sensors import Imperfections, Sized
from armid.identification.settings import Identification
from armid.identification.tolerances import ImperfectionTolerances
from armid.identification.wandering import WAVES, _half_waves
from armid.information.information import triangular
from armid.logs import Channel
from armid.outcome import Verdict
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.imperfections import ColumnReference, Family, Imperfection, drift_curve
from armid.rows.lengths import with_way
from armid.simulation.variation import varied
from support.identified import EFFECTS, log, urdf_file

Shape = Callable[[FloatArray], FloatArray]


def specimen(name: str = "") -> tuple[Robot, Robot]:
    """The described arm, and one that differs from it by a fifth."""
    robot = load_robot(name or str(urdf_file()))
    return robot, varied(robot, 0.2, np.random.default_rng(1))


def identified(robot: Robot, truth: Robot, drift: Shape = np.zeros_like, joint: int = 1) -> Result:
    """From recordings of the true arm whose torque at a joint drifts along the training recording."""
    clean, other = (log(robot, truth, seed=seed) for seed in (3, 5))
    torque = np.array(clean[Channel.LINK_TORQUE])
    torque[:, joint] += drift((clean.time - clean.time[0]) / (clean.time[-1] - clean.time[0]))
    spoiled = replace(clean, channels={**clean.channels, Channel.LINK_TORQUE: torque})
    settings = Identification(effects=EFFECTS, sensitivity=False, imperfections=ImperfectionTolerances(families=()))
    return run_identification(robot, [spoiled], [other], settings)


@pytest.mark.parametrize("size", [2.0, 8.0])
@pytest.mark.parametrize("shape", [lambda t: np.sin(9.0 * t), lambda t: np.cos(2.0 * np.pi * t)])
def test_a_torque_that_wanders_is_found_with_its_swing(shape: Shape, size: float) -> None:
    found = [f for f in identified(*specimen(), drift=lambda t: size * shape(t)).faults if f.answer is Answer.FOUND]
    assert [fault.name for fault in found] == ["slow-drift of shoulder"]
    assert 0.9 * 2.0 * size < found[0].estimate < 1.1 * 2.0 * size
    assert found[0].large


def test_a_straight_drift_is_no_wandering() -> None:
    faults = identified(*specimen(), drift=lambda t: 8.0 * t).faults
    assert faults["drift of shoulder"].answer is Answer.FOUND
    assert "slow-drift of shoulder" not in {f.name for f in faults if f.answer is Answer.FOUND}


def test_where_nothing_wanders_that_is_said() -> None:
    faults = identified(*specimen()).faults
    assert faults["slow-drift of shoulder"].answer is Answer.EXCLUDED


def test_a_drift_is_the_sum_of_its_half_waves() -> None:
    t = np.linspace(0.0, 1.0, 50)
    item = Imperfection(family=Family.SLOW_DRIFT, joint=0, unit="N m", tolerance=1.0, waves=(0.5, -1.0, 2.0))
    expected = 0.5 * np.cos(np.pi * t) - np.cos(2.0 * np.pi * t) + 2.0 * np.cos(3.0 * np.pi * t)
    np.testing.assert_allclose(drift_curve(item, t), expected, atol=1e-14)


@pytest.mark.parametrize(
    ("turned", "goes_on", "half_waves"),
    [
        ([7], [False], 4),
        ([1, 1, 3], [False, False, False], 4),
        ([0, 0, 0, 0], [False] * 4, 1),  # four logs in none of which it comes back
        ([3, 4], [False, True], 4),  # one long log, cut for memory
        ([40], [False], WAVES),
    ],
)
def test_a_half_wave_is_no_shorter_than_the_joint_takes_to_and_fro(
    turned: list[int], goes_on: list[bool], half_waves: int
) -> None:
    runs = [
        SimpleNamespace(continues=more, reversals=(np.arange(9.0 * count)[::9], np.empty(0)))
        for count, more in zip(turned, goes_on, strict=True)
    ]
    assert _half_waves(runs, 2) == [half_waves, 1]


def test_several_imperfections_together_are_least_squares() -> None:
    rng = np.random.default_rng(0)
    A, Z, y = rng.normal(size=(60, 4)), rng.normal(size=(60, 5)), rng.normal(size=60)
    sizes, taken = Eliminated.of(4, [triangular(np.column_stack([A, Z, y]))]).together(np.array([1, 3]))
    chosen = Z[:, [1, 3]]
    best, left = np.linalg.lstsq(np.column_stack([A, chosen]), y, rcond=None)[:2]
    without = np.linalg.lstsq(A, y, rcond=None)[1]
    np.testing.assert_allclose(sizes, best[4:], rtol=1e-6)
    np.testing.assert_allclose(taken, without - left, rtol=1e-6)


def test_a_length_described_too_long_is_named_and_not_the_clock() -> None:
    real, truth = specimen("ur10e")
    result = identified(with_way(real, 1, 1.1), truth)
    found = [f for f in result.faults if f.answer is Answer.FOUND]
    assert found[0].kind == "length"
    assert found[0].joint == real.joint_names[1]
    assert found[0].low < 0.1 < found[0].high
    assert result.verdict is Verdict.UNTRUSTED
    assert "clock" not in {f.kind for f in found}


@pytest.mark.parametrize(
    ("gain", "half", "wrong"),
    [(-0.98, 0.3, True), (-0.98, 0.5, False), (9.0, 3.0, True), (9.0, 8.0, False), (1.0, 0.1, False)],
)
def test_torque_in_another_unit_is_too_large_to_be_used(gain: float, half: float, wrong: bool) -> None:
    fault = Fault(kind="common gain", estimate=gain, low=gain - half, high=gain + half, answer=Answer.FOUND)
    assert _other_unit(fault) is wrong


def test_torque_that_goes_with_position_is_said_where_the_model_holds_much_of_it() -> None:
    def used(value: float, deviation: float) -> Imperfections:
        waves = (Family.POSITION_SINE, Family.POSITION_COSINE)
        items = [Imperfection(family=family, joint=1, unit="N m", tolerance=0.5) for family in waves]
        reference = ColumnReference.without_model(2, recorded_velocity=False)
        sizes = tuple(Sized(item, value, deviation) for item in items)
        return Imperfections(joints=("shoulder", "elbow"), sizes=sizes, reference=reference)

    (fault,) = position_faults(used(3.0, 0.1))
    assert fault.name == "position torque of elbow"
    assert fault.estimate == pytest.approx(3.0 * 2.0**0.5)
    assert fault.answer is Answer.FOUND
    assert not fault.large
    assert not position_faults(used(0.3, 0.01))  # within its tolerance
    assert not position_faults(used(3.0, 2.0))  # within doubt
    assert not position_faults(None)


@pytest.mark.parametrize(
    ("family", "size", "decisive"),
    [
        (Family.GAIN_DRIFT, 0.13, True),
        (Family.GAIN_DRIFT, -0.13, True),
        (Family.GAIN_DRIFT, 0.055, False),
        (Family.GAIN, 0.13, False),
        (Family.GAIN, 0.17, True),
    ],
)
def test_a_gain_that_changes_is_not_excused_like_one_that_the_model_undoes(
    family: Family, size: float, decisive: bool
) -> None:
    item = Imperfection(family=family, joint=0, unit="1", tolerance=0.05)
    seen = Seen(item=item, size=size, deviation=0.01, taken=1.0)
    answers = FaultAnswers(robot=load_robot("panda"), channels=("elbow",), delay=0.0, looked_at=100)
    assert answers.large(seen) is decisive
