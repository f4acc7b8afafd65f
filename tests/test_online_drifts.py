"""What changes on an arm while it runs is named with its joint and sized; an arm that is as it was stays silent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.identification.sensors import Imperfections, Sized
from armid.kernels.gradients import prediction_jacobian
from armid.kernels.single import SingleJacobian
from armid.online.causes import Alone, Cause
from armid.online.estimator import OnlineEstimator
from armid.online.watch import DriftWatch
from armid.online.watch_kernels import follow
from armid.online.watched import known_sizes, layout_of
from armid.outcome import Verdict
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.load import load_robot
from armid.rows.imperfections import ColumnReference, Columns, Family, Imperfection, Motion, imperfections
from armid.rows.torque import TorqueRows
from support.drifting import Change, gain, identified, late, load, offset, rubbing, watched, zero
from support.identified import trusted
from support.outcomes import failing

ARM = "iiwa14"
RATE, SECONDS = 100.0, 60.0
NAMES = load_robot(ARM).joint_names


def told(online: OnlineEstimator, code: str) -> list[str]:
    return [note.message for note in online.drifts if note.code == code]


def size_of(online: OnlineEstimator, family: Family, subject: str) -> tuple[float, float]:
    found = [d for d in online.state().drifts if d.family is family and d.subject == subject]
    return sum(d.value for d in found), sum(d.deviation**2 for d in found) ** 0.5


@pytest.mark.parametrize("arm", ["iiwa14", "panda", "ur10e", "lwr4plus"])
@pytest.mark.parametrize("specimen", [0, 10])
@pytest.mark.parametrize(
    "stream",
    [
        {"seed": 50, "derivatives": True},
        {"seed": 51, "rate": 250.0},
        {"seed": 52, "size": 0.5, "period": 7.0},
        {"seed": 53, "size": 0.15, "period": 15.0},
    ],
    ids=["derivatives", "fast", "brisk", "slow"],
)
def test_an_arm_that_is_as_it_was_stays_silent(arm: str, specimen: int, stream: dict[str, float]) -> None:
    noise = 0.2 if specimen else 0.05
    online = watched(arm, arm=specimen, noise=noise, seconds=30.0, **stream)  # type: ignore[arg-type]
    assert not online.drifts
    assert not {code for code in failing(online.state()) if code.endswith("-steady")}


@pytest.mark.parametrize(
    ("change", "family", "joint", "size"),
    [
        (zero(1, 3.5), Family.ZERO, 1, np.radians(3.5)),
        (zero(3, -6.0), Family.ZERO, 3, np.radians(-6.0)),
        (gain(1, -0.2), Family.GAIN, 1, -0.2),
        (gain(3, -0.2), Family.GAIN, 3, -0.2),
        (offset(1, 12.0), Family.DRIFT, 1, 12.0),
    ],
)
def test_a_sensor_that_changes_at_once_is_named_and_sized(
    change: Change, family: Family, joint: int, size: float
) -> None:
    online = watched(ARM, change)
    assert {note.subject for note in online.drifts} == {NAMES[joint]}
    assert {note.code for note in online.drifts} == {"sensor-drift"}
    value, deviation = size_of(online, family, NAMES[joint])
    assert value == pytest.approx(size, abs=4.0 * deviation)
    assert deviation < 0.2 * abs(size)


@pytest.mark.parametrize(("change", "untrusted"), [(zero(1, 6.0), True), (offset(1, 12.0), False), (load(1.0), False)])
def test_only_what_no_load_can_make_is_decisive(change: Change, untrusted: bool) -> None:
    state = watched(ARM, change).state()
    assert (state.verdict is Verdict.UNTRUSTED) == untrusted
    assert ("zeros-and-delays-steady" in failing(state)) == untrusted
    assert any("nothing that an arm carries" in reason for reason in state.reasons) == untrusted


def test_torques_that_come_late_together_are_one_cause() -> None:
    online = watched(ARM, late(None, 0.015), rate=250.0)
    assert {note.subject for note in online.drifts} == {""}
    assert "delay of all torques" in online.drifts[-1].message
    assert online.state().verdict is Verdict.UNTRUSTED
    value, deviation = size_of(online, Family.DELAY, NAMES[0])
    assert value == pytest.approx(0.015, abs=4.0 * deviation)


def test_torque_of_one_joint_that_comes_late_is_that_joint_s() -> None:
    online = watched("panda", late(3, 0.015), seconds=90.0)
    assert {note.subject for note in online.drifts} == {load_robot("panda").joint_names[3]}
    assert "delay of the torque" in online.drifts[-1].message


@pytest.mark.parametrize("joint", [3, 5])
def test_friction_that_grows_is_not_a_sensor(joint: int) -> None:
    online = watched(ARM, rubbing(joint, 0.5))
    assert {note.subject for note in online.drifts} == {NAMES[joint]}
    assert {note.code for note in online.drifts} == {"friction-drift"}
    assert "friction-steady" in failing(online.state())


def test_what_the_arm_picks_up_is_a_load_and_no_sensor() -> None:
    online = watched(ARM, load(1.0))
    assert {note.code for note in online.drifts} == {"load-changed"}
    assert "load-steady" in failing(online.state())


def test_a_zero_of_the_last_joint_is_not_told_from_a_load() -> None:
    online = watched(ARM, zero(6, 6.0))
    assert online.state().verdict is Verdict.TRUSTED
    for message in told(online, "sensor-drift"):
        assert "as much is explained by" in message


def test_in_an_arm_that_hardly_moves_nothing_is_sure() -> None:
    online = watched(ARM, offset(1, 12.0), size=0.002)
    assert not [message for message in told(online, "sensor-drift") if "has changed by" in message]
    assert online.state().verdict is Verdict.TRUSTED


def test_derivatives_at_one_sample_are_those_of_many() -> None:
    rng = np.random.default_rng(0)
    for robot, side in ((load_robot("iiwa14"), TorqueSide.LINK), (load_robot("ur10e"), TorqueSide.BOTH)):
        source = TorqueRows(robot, Effects(viscous=True, coulomb=True, torques=side))
        parameters, x = rng.normal(size=len(source.columns)), rng.normal(size=(5, len(source.inputs)))
        one = SingleJacobian(source, parameters, robot.n_joints)
        expected = prediction_jacobian(source, x, parameters)[:, :, : robot.n_joints]
        for row, J in zip(x, expected, strict=True):
            np.testing.assert_allclose(one(row)[:, : len(source.channels)].T, J, rtol=1e-12, atol=1e-12)


def test_a_compiled_measurement_is_a_kalman_filter() -> None:
    rng = np.random.default_rng(0)
    m, w, N = 3, 4, 7
    places = np.array([rng.permutation(N)[:w] for _ in range(m)])
    state, covariance, room = np.zeros(N), np.eye(N), np.zeros(N)
    left, score = np.zeros((2, m))
    z, P, walk, variance = state.copy(), covariance.copy(), rng.uniform(0.0, 0.01, N), np.array([0.1, 0.5, 2.0])
    for _ in range(100):
        H, y, counted = rng.normal(size=(m, w)), rng.normal(size=m), rng.uniform(size=m) < 0.8
        dense = np.zeros((m, N))
        np.put_along_axis(dense, places, H, axis=1)
        follow(y - dense @ state, H, places, counted, variance, walk, state, covariance, left, score, room)
        P += np.diag(walk)
        A, R = dense[counted], np.diag(variance[counted])
        K = P @ A.T @ np.linalg.inv(A @ P @ A.T + R)
        z, P = z + K @ (y[counted] - A @ z), P - K @ A @ P
    np.testing.assert_allclose(state, z, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(covariance, P, rtol=1e-8, atol=1e-10)


def test_columns_are_those_of_the_imperfections_of_a_recording() -> None:
    result = trusted()
    source = TorqueRows(result.robot, result.effects)
    n, rate = result.robot.n_joints, 100.0
    x = np.tile(np.array([0.3, -0.4, 0.7, 0.5, 0.8, -0.6, 1.0, 0.2, -0.7]), (60, 1))
    # The arm as it was: what the filter has measured is then not read, only its columns are.
    watch = DriftWatch(result, source, np.ones(n), rate=rate)
    for row in x:
        watch.update(row, np.zeros(n), None)
    ones = np.ones(n)
    reference = ColumnReference(standard=result.standard, speed=ones, load=ones, size=ones, acceleration=ones)
    motion = Motion(
        source=source,
        robot=result.robot,
        effects=result.effects,
        loaded=True,
        inputs=x[:3],
        rate=rate,
        segments=((0, 3),),
        elapsed=np.zeros(3),
        elapsed_alone=np.zeros(3),
    )
    H, layout = np.zeros((n, len(layout_of(result, source).states))), watch.layout
    np.put_along_axis(H, watch._places, watch._H, axis=1)
    H /= layout.tolerances
    for family, places in ((Family.GAIN, layout.gains), (Family.ZERO, layout.zeros), (Family.TILT, layout.tilt)):
        wanted = imperfections(result.robot, result.effects, reference, (family,))
        expected = Columns(motion, reference).of(wanted)[1]
        np.testing.assert_allclose(H[:, places], expected, rtol=1e-2, atol=2e-2 * np.abs(expected).max())


def test_states_start_where_the_result_had_found_them() -> None:
    result = trusted()
    source = TorqueRows(result.robot, result.effects)
    layout = layout_of(result, source)

    def found(family: Family, joint: int | None, value: float, part: str = "") -> Sized:
        return Sized(Imperfection(family=family, joint=joint, part=part, unit="", tolerance=1.0), value, 0.0)

    reference = ColumnReference.without_model(3, recorded_velocity=False)
    sizes = (found(Family.GAIN, 1, 0.1), found(Family.ZERO, 2, 0.02), found(Family.COMMON_DELAY, None, 0.004))
    before = Imperfections(joints=result.robot.joint_names, sizes=(found(Family.GAIN, 1, 0.2),), reference=reference)
    own = Imperfections(joints=result.robot.joint_names, sizes=sizes, reference=reference, before=before)
    start = known_sizes(replace(result, imperfections=own), layout) * layout.tolerances
    assert start[layout.gains] == pytest.approx([0.0, 1.1 * 1.2 - 1.0, 0.0])
    assert start[layout.zeros] == pytest.approx([0.0, 0.0, 0.02])
    assert start[layout.delays] == pytest.approx([0.004] * 3)
    assert not known_sizes(replace(result, imperfections=None), layout).any()


def test_evidence_is_a_ratio_of_likelihoods() -> None:
    rng = np.random.default_rng(1)
    N = 5
    root = rng.normal(size=(N, N))
    P, x, jumps = root @ root.T, 3.0 * rng.normal(size=N), rng.uniform(1.0, 20.0, N)
    alone = Alone(x, P, jumps, ())

    def likelihood(covariance: np.ndarray) -> float:
        return -0.5 * float(x @ np.linalg.solve(covariance, x) + np.linalg.slogdet(covariance)[1])

    ordinary = P + 0.25 * np.eye(N)
    for places in ((2,), (1, 3)):
        U = np.eye(N)[:, places] * jumps[list(places)]
        expected = likelihood(ordinary + U @ U.T) - likelihood(ordinary)
        assert alone.explained(Cause(Family.GAIN, "", places))[1] == pytest.approx(expected)


def test_what_is_written_holds_every_imperfection_and_is_read_again(tmp_path: Path) -> None:
    state = watched(ARM, gain(1, -0.2), seconds=20.0).state()
    state.save(tmp_path / "online")
    again = armid.load_answer(tmp_path / "online")
    assert again.as_dict() == state.as_dict()
    written = state.as_dict()
    families = {drift["family"] for drift in written["drifts"]}
    assert families == {"gain", "drift", "delay", "friction-drift", "zero", "tilt"}
    assert set(written["drifts"][0]) == {"family", "joint", "part", "value", "deviation", "unit", "tolerance"}
    assert [sensor["channel"] for sensor in written["sensors"]] == list(NAMES)
    assert state.sensors[1].gain == state.drifts[1].value


def test_after_a_gap_blocks_begin_anew() -> None:
    _, result = identified(ARM, 0, 0.05)
    online = OnlineEstimator(result, rate=RATE)
    for k in range(400):
        t = k / RATE + (5.0 if k >= 205 else 0.0)
        online.update_positions(np.full(7, 0.1 * t), np.zeros(7), time=t)
    assert online.gaps == 1
    assert np.isfinite([drift.value for drift in online.state().drifts]).all()


def test_memory_of_the_watch_is_fixed() -> None:
    _, result = identified(ARM, 0, 0.05)
    watch = DriftWatch(result, TorqueRows(result.robot, result.effects), np.ones(7), rate=RATE)
    rng = np.random.default_rng(0)

    def held() -> int:
        owners = (watch, watch._residuals, watch._teller, watch._prediction, *watch._three)
        return sum(v.nbytes for one in owners for v in vars(one).values() if isinstance(v, np.ndarray))

    before = held()
    for row, tau in zip(rng.normal(size=(500, 21)), rng.normal(size=(500, 7)), strict=True):
        watch.update(row, tau, None)
    assert held() == before
