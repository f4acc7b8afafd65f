"""Planted errors come back from every kind of measurement; what cannot be known is held and named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.calibration.calibrate import calibrate
from armid.calibration.choose import default_candidates
from armid.calibration.compensate import compensated_targets
from armid.calibration.correction import save_correction
from armid.calibration.enough import pose_count_study
from armid.calibration.fit import fit
from armid.calibration.hold_out import Advice
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.noise import VectorLoss, clipped_mean
from armid.calibration.start import ALL, start_frames
from armid.calibration.tool_error import error_table
from armid.estimation.paired import paired_t
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot, predicted_poses
from armid.kinematics.correction import load_correction
from armid.kinematics.measurement import Measurements, Observations, Observed, joined
from armid.kinematics.model import ErrorModel, FrameModel
from armid.kinematics.rotations import inverse, rigid, rotation_exp, rotation_log
from armid.kinematics.words import Term, UnknownGeometry
from armid.parameters.space import OwnerKind
from armid.robot.load import load_robot

PLAIN = ErrorModel()


class Truth:
    """A real arm with planted errors, a sensor and targets."""

    def __init__(self, robot, rng, *, terms=frozenset({Term.OFFSET}), targets=1, size=0.3, tool=0.1):
        self.robot, self.rng = robot, rng
        self.Z = rigid(rotation_exp(rng.normal(size=3)), rng.normal(size=3) * 2)
        self.X = {
            f"tool{k}": rigid(rotation_exp(rng.normal(size=3)), tool * rng.normal(size=3)) for k in range(targets)
        }
        self.model = kinematic_model(
            robot,
            ErrorModel(terms=terms),
            setups={"sensor": FrameModel.around(self.Z, ALL, outside=True)},
            targets={name: FrameModel.around(X, ALL, outside=False) for name, X in self.X.items()},
        )
        arm = self.model.owned(OwnerKind.LINK, OwnerKind.JOINT)
        self.values = np.where(arm, size * self.model.tolerances * rng.normal(size=len(arm)), 0.0)

    def poses(self, q, target="tool0", setup="sensor"):
        return predicted_poses(self.model, self.values, q, setup=setup, target=target)

    def configurations(self, count, reach=1.5):
        return self.rng.uniform(-reach, reach, (count, self.robot.n_joints))

    def see(self, q, quantity, *, noise=0.0, target="tool0", setup="sensor"):
        T = self.poses(q, target)
        n = len(q)
        p = T[:, :3, 3] + noise * self.rng.normal(size=(n, 3))
        R = rotation_exp(noise * self.rng.normal(size=(n, 3))) @ T[:, :3, :3]
        return Observations(
            quantity=quantity,
            rows=np.arange(n),
            position=p if quantity.has_position else None,
            rotation=R if quantity.has_orientation else None,
            setup=setup,
            target=target,
        )


@pytest.fixture
def rng():
    return np.random.default_rng(12)


def worst_miss(result, truth, q, target="tool0"):
    predicted = predicted_poses(result.model, result.after.values, q, setup="sensor", target=target)
    return np.abs(predicted - truth.poses(q, target))[:, :3, 3].max()


@pytest.mark.parametrize("name", ["ur10e", "panda", "cylindrical"])
@pytest.mark.parametrize("quantity", [Observed.POSE, Observed.POSITION])
def test_noise_free_measurements_give_the_arm_back(rng, name, quantity):
    truth = Truth(load_robot(name), rng)
    q = truth.configurations(60)
    result = fit(truth.robot, Measurements(q=q, observations=(truth.see(q, quantity),)), PLAIN)
    fresh = truth.configurations(50)
    before = predicted_poses(result.model, result.before.values, fresh, setup="sensor", target="tool0")
    assert np.abs(before - truth.poses(fresh))[:, :3, 3].max() > 1e-4
    assert worst_miss(result, truth, fresh) < 1e-7


def test_orientation_alone_finds_the_directions_of_the_axes(rng):
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(60)
    result = fit(truth.robot, Measurements(q=q, observations=(truth.see(q, Observed.ORIENTATION),)), PLAIN)
    kept = {n for n, k in zip(result.model.names, result.after.selection.kept, strict=True) if k}
    assert not any(".t" in name for name in kept)
    assert error_table(result.after.residuals).orientation.max() < 1e-8


def test_all_error_terms_are_recovered_together(rng):
    truth = Truth(load_robot("panda"), rng, terms=frozenset(Term), targets=1)
    q = truth.configurations(300)
    result = fit(
        truth.robot, Measurements(q=q, observations=(truth.see(q, Observed.POSE),)), ErrorModel(terms=frozenset(Term))
    )
    # Beyond the measured range an eccentricity is held at its edge.
    fresh = np.clip(truth.configurations(50), q.min(axis=0), q.max(axis=0))
    assert worst_miss(result, truth, fresh) < 2e-6


def test_several_targets_share_one_arm(rng):
    truth = Truth(load_robot("ur10e"), rng, targets=3)
    q = truth.configurations(30)
    seen = tuple(truth.see(q, Observed.POSITION, target=f"tool{k}") for k in range(3))
    result = fit(truth.robot, Measurements(q=q, observations=seen), PLAIN)
    assert max(worst_miss(result, truth, truth.configurations(20), f"tool{k}") for k in range(3)) < 1e-7


def touching(truth, result_of):
    """Configurations whose target satisfies a constraint, by moving the first joints until it holds."""
    q = truth.configurations(80, reach=1.2)
    h = 1e-6
    for _ in range(40):
        r = result_of(truth, q)
        columns = []
        for i in range(q.shape[1]):
            step = np.zeros(q.shape[1])
            step[i] = h
            columns.append((result_of(truth, q + step) - r) / h)
        J = np.stack(columns, axis=-1)
        q = q - (np.linalg.pinv(J, rcond=1e-3) @ r[..., None])[..., 0]
    good = np.abs(result_of(truth, q)).max(axis=1) < 1e-10
    return q[good & (np.abs(q).max(axis=1) < 6.0)]


def position(truth, q):
    T = predicted_poses(truth.model, truth.values, q, target="tool0")
    return T[:, :3, 3]


@pytest.mark.parametrize("quantity", [Observed.POINT, Observed.PLANE])
def test_contact_constraints_are_enough_to_reduce_the_error(rng, quantity):
    """A ball in a socket, and a plane touched: no measured number at all, only the joints."""
    truth = Truth(load_robot("panda"), rng)
    place = np.array([0.4, 0.1, 0.3])
    normal = np.array([[0.1, -0.2, 0.97]]) / np.linalg.norm([0.1, -0.2, 0.97])

    def constraint(truth, q):
        away = position(truth, q) - place
        return away if quantity is Observed.POINT else away @ normal.T

    q = touching(truth, constraint)
    assert len(q) > 30
    measurements = Measurements(
        q=q, observations=(Observations(quantity=quantity, rows=np.arange(len(q)), setup="place", target="tool0"),)
    )
    model = fit(truth.robot, measurements, PLAIN)
    before, after = (error_table(s.residuals).position for s in (model.before, model.after))
    assert after.max() < 1e-7
    assert before.mean() > 1e-4


def test_distances_from_an_unknown_anchor(rng):
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(120)
    p = position(truth, q)
    d = np.linalg.norm(p - np.array([1.0, 0.5, 0.2]), axis=1)
    measurements = Measurements(
        q=q,
        observations=(
            Observations(quantity=Observed.DISTANCE, rows=np.arange(120), distance=d, setup="anchor", target="tool0"),
        ),
    )
    result = fit(truth.robot, measurements, PLAIN)
    assert error_table(result.after.residuals).position.max() < 1e-7
    assert error_table(result.before.residuals).position.mean() > 1e-4


def test_lengths_between_configurations_need_no_sensor_frame(rng):
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(120)
    p = position(truth, q)
    rows, others = np.arange(0, 120, 2), np.arange(1, 120, 2)
    d = np.linalg.norm(p[rows] - p[others], axis=1)
    result = fit(
        truth.robot,
        Measurements(
            q=q,
            observations=(
                Observations(quantity=Observed.LENGTH, rows=rows, distance=d, other_rows=others, target="tool0"),
            ),
        ),
        PLAIN,
    )
    assert result.model.setups == {}
    assert error_table(result.after.residuals).position.max() < 1e-7


def test_two_setups_and_mixed_quantities_in_one_fit(rng):
    truth = Truth(load_robot("panda"), rng, targets=2)
    other = Truth(load_robot("panda"), rng, targets=2)
    other.values, other.X = truth.values, truth.X
    other.model = replace(other.model, targets=truth.model.targets)
    qa, qb = truth.configurations(30), truth.configurations(40)
    a = Measurements(q=qa, observations=(truth.see(qa, Observed.POSE),))
    b = Measurements(q=qb, observations=(other.see(qb, Observed.POSITION, target="tool1", setup="second"),))
    result = fit(truth.robot, joined([a, b]), PLAIN)
    assert set(result.model.setups) == {"sensor", "second"}
    assert error_table(result.after.residuals).position.max() < 1e-8
    assert worst_miss(result, truth, truth.configurations(20)) < 1e-6


@pytest.mark.parametrize("quantity", [Observed.POSE, Observed.POSITION])
def test_start_values_work_when_the_tool_axis_never_tilts(rng, quantity):
    """Hand-eye formulas divide by zero here: every relative rotation is about the vertical."""
    robot = load_robot("ur10e")
    truth = Truth(robot, rng, size=0.0)
    q = truth.configurations(40)
    q[:, 3] = -q[:, 1] - q[:, 2] - np.pi / 2
    q[:, 4] = -np.pi / 2
    directions = forward_kinematics(robot, q)[:, :3, 2]
    assert np.ptp(directions, axis=0).max() < 1e-9
    seen = Measurements(q=q, observations=(truth.see(q, quantity),))
    start = start_frames(robot, seen)
    predicted = start.setups["sensor"] @ forward_kinematics(robot, q, robot.links[-1].name) @ start.targets["tool0"]
    assert np.linalg.norm((predicted - truth.poses(q))[:, :3, 3], axis=1).max() < 5e-3
    result = fit(robot, seen, PLAIN)
    assert error_table(result.before.residuals).position.max() < 1e-6


def test_a_nearly_frozen_joint_stays_at_nominal_and_is_named(rng):
    truth = Truth(load_robot("panda"), rng)
    q = truth.configurations(60)
    q[:, 2] = 0.3 + 1e-4 * rng.normal(size=60)
    q[:, 4] = 0.1
    result = fit(truth.robot, Measurements(q=q, observations=(truth.see(q, Observed.POSE, noise=1e-4),)), PLAIN)
    held = [
        n
        for n, s in zip(result.model.names, result.after.selection.status, strict=True)
        if s is not ParameterStatus.IDENTIFIED
    ]
    assert len(held) > len(result.model.parameters) - 34  # fewer than the 34 that moving every joint would give
    arm = result.model.owned(OwnerKind.LINK, OwnerKind.JOINT)
    assert np.abs(result.after.values[arm] / result.model.tolerances[arm]).max() < 5.0


def test_standard_deviations_cover_the_truth(rng):
    """Coverage of one-sigma intervals of the predicted position over repetitions."""
    robot = load_robot("ur10e")
    z = []
    for _ in range(12):
        truth = Truth(robot, rng)
        q = truth.configurations(50)
        result = fit(robot, Measurements(q=q, observations=(truth.see(q, Observed.POSE, noise=2e-4),)), PLAIN)
        sigma = result.after.noise.model
        assert sigma["sensor", "position"] == pytest.approx(2e-4, rel=0.25)
        fresh = truth.configurations(40)
        from armid.calibration.enough import position_uncertainty

        there = Measurements(
            q=fresh, observations=(Observations(quantity=Observed.POINT, rows=np.arange(40), target="tool0"),)
        )
        predicted = position_uncertainty(result, result.after.covariance, there)
        T = predicted_poses(result.model, result.after.values, fresh, setup="sensor", target="tool0")
        z.append(np.mean(((T - truth.poses(fresh))[:, :3, 3] ** 2).sum(axis=1) / predicted**2))
    assert 0.6 < np.mean(z) < 1.5


def test_robust_loss_names_outliers_and_ignores_them(rng):
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(80)
    clean = truth.see(q, Observed.POSE, noise=1e-4)
    p = np.array(clean.position)
    p[[7, 33]] += [[0.02, 0, 0], [0, 0.01, -0.01]]
    labels = tuple(f"poses.csv:{i + 2}" for i in range(80))
    measurements = Measurements(q=q, observations=(replace(clean, position=p),), labels=labels)
    result = calibrate(truth.robot, measurements, candidates=(PLAIN,), folds=3)
    assert {x.label for x in result.outliers[:2]} == {"poses.csv:9", "poses.csv:35"}
    assert any("poses.csv:9" in note.message for note in result.notes if note.code == "outliers")
    assert worst_miss(result.fit, truth, truth.configurations(40)) < 3e-4


def test_huber_with_no_threshold_is_least_squares():
    assert VectorLoss(0.0).cost(np.array([3.0, 4.0]), 3) == pytest.approx(25.0)
    assert clipped_mean(float("inf"), 3) == 3.0
    z = np.linalg.norm(np.random.default_rng(0).normal(size=(3, 400_000)), axis=0)
    k = VectorLoss().threshold(3)
    assert np.mean(np.minimum(z, k) ** 2) == pytest.approx(clipped_mean(k, 3), rel=0.01)


def test_nominal_arm_gets_the_verdict_no_held_out_gain(rng):
    truth = Truth(load_robot("ur10e"), rng, size=0.0)
    q = truth.configurations(40)
    result = calibrate(truth.robot, Measurements(q=q, observations=(truth.see(q, Observed.POSE, noise=3e-3),)))
    assert result.advice is Advice.NO_GAIN
    assert "no held-out gain" in result.reasons[0]


def test_richer_model_is_taken_only_when_held_out_errors_ask_for_it(rng):
    robot = load_robot("ur10e")
    for size, terms in ((0.3, frozenset({Term.OFFSET})), (0.5, frozenset({Term.OFFSET, Term.ECCENTRICITY}))):
        truth = Truth(robot, rng, size=size, terms=terms)
        q = truth.configurations(70)
        result = calibrate(robot, Measurements(q=q, observations=(truth.see(q, Observed.POSE, noise=5e-5),)))
        assert (Term.ECCENTRICITY in result.fit.errors.terms) == (Term.ECCENTRICITY in terms)
        assert result.advice is Advice.TRUSTED


def test_validation_in_another_setup_fits_only_its_frames(rng):
    truth, other = (Truth(load_robot("ur10e"), rng) for _ in range(2))
    other.values = np.array(truth.values)
    qa, qb = truth.configurations(50), truth.configurations(40)
    a = Measurements(q=qa, observations=(truth.see(qa, Observed.POSE, noise=1e-5),))
    b = Measurements(q=qb, observations=(other.see(qb, Observed.POSE, noise=1e-5, setup="elsewhere"),))
    b = replace(b, observations=(replace(b.observations[0], target="another"),))
    result = calibrate(truth.robot, a, validate=b, candidates=(PLAIN,))
    assert [words.split()[0] for words in result.held_out.refitted] == ["elsewhere", "another"]
    assert result.held_out.after.position.mean() < 5e-5
    assert result.held_out.before.position.mean() > 3e-4


def test_moving_the_sensor_changes_nothing(rng):
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(50)
    o = truth.see(q, Observed.POSE, noise=1e-4)
    G = rigid(rotation_exp([0.4, -1.0, 2.0]), np.array([3.0, -2.0, 1.0]))
    T = G @ rigid(o.rotation, o.position)
    moved = replace(o, position=T[:, :3, 3], rotation=T[:, :3, :3])
    a, b = (fit(truth.robot, Measurements(q=q, observations=(x,)), PLAIN) for x in (o, moved))
    arm = a.model.owned(OwnerKind.LINK, OwnerKind.JOINT)
    np.testing.assert_allclose(a.after.values[arm], b.after.values[arm], atol=2e-6)


def test_correction_file_brings_the_same_poses_back(rng, tmp_path):
    terms = frozenset({Term.OFFSET, Term.ECCENTRICITY, Term.COMPLIANCE})
    truth = Truth(load_robot("panda"), rng, terms=terms)
    q = truth.configurations(80)
    result = fit(
        truth.robot, Measurements(q=q, observations=(truth.see(q, Observed.POSE, noise=1e-5),)), ErrorModel(terms=terms)
    )
    model, values = load_correction(save_correction(truth.robot, result, tmp_path / "correction.json"), truth.robot)
    fresh = truth.configurations(20)
    for setup, target in ((None, None), ("sensor", "tool0")):
        np.testing.assert_allclose(
            predicted_poses(model, values, fresh, setup=setup, target=target),
            predicted_poses(result.model, result.after.values, fresh, setup=setup, target=target),
            atol=1e-12,
        )


def test_compensated_targets_bring_the_real_arm_where_the_nominal_one_would_be(rng):
    terms = frozenset({Term.OFFSET, Term.ECCENTRICITY, Term.COMPLIANCE})
    for name in ("ur10e", "panda"):
        truth = Truth(load_robot(name), rng, terms=terms)
        q = truth.configurations(20)
        targets = compensated_targets(truth.model, truth.values, q)
        reached = targets.position_error < 1e-9
        assert reached.sum() >= 18  # a stretched arm that turned out shorter cannot go where it was meant to
        real, wanted = predicted_poses(truth.model, truth.values, targets.q), forward_kinematics(truth.robot, q)
        np.testing.assert_allclose(real[reached], wanted[reached], atol=1e-9)
        assert np.abs(targets.q - q).max() > 1e-4


FIVE_JOINTS = """
format: armid-robot/1
name: five
joints:
  - {name: a, dh: {d: 0.147, a: 0.033, alpha: pi/2}}
  - {name: b, dh: {theta: pi/2, a: 0.155}}
  - {name: c, dh: {a: 0.135}}
  - {name: d, dh: {theta: pi/2, alpha: pi/2}}
  - {name: e, dh: {d: 0.2175}}
"""


def test_an_arm_of_five_joints_gives_up_angles_before_positions(rng, tmp_path):
    """What cannot be turned is left; millimetres that can be mended are."""
    (tmp_path / "five.yaml").write_text(FIVE_JOINTS)
    truth = Truth(load_robot(tmp_path / "five.yaml"), rng)
    q = truth.configurations(20)
    targets = compensated_targets(truth.model, truth.values, q)
    before = predicted_poses(truth.model, truth.values, q)[:, :3, 3] - forward_kinematics(truth.robot, q)[:, :3, 3]
    assert np.median(np.linalg.norm(before, axis=1)) > 1e-3
    assert np.median(targets.position_error) < 1e-6
    assert np.median(targets.orientation_error) > 1e-4


def test_more_configurations_help_as_predicted(rng):
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(150)
    measurements = Measurements(q=q, observations=(truth.see(q, Observed.POSE, noise=2e-4),))
    rows = pose_count_study(fit(truth.robot, measurements, PLAIN), measurements, (12, 30, 100), rng=rng, repeats=3)
    assert [r.configurations for r in rows] == [12, 30, 100]
    assert rows[0].predicted > rows[1].predicted > rows[2].predicted
    for row in rows[1:]:
        assert row.observed == pytest.approx(row.predicted_total, rel=0.25)


def test_calibrated_robot_is_what_identification_takes(rng):
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(60)
    result = calibrate(
        truth.robot,
        Measurements(q=q, observations=(truth.see(q, Observed.POSE),)),
        candidates=(PLAIN,),
        folds=3,
    )
    arm, real = result.robot, calibrated_robot(truth.model, truth.values)
    fresh = truth.configurations(30)
    a, b = (forward_kinematics(r, fresh, r.links[-1].name) for r in (arm, real))
    # Base and tool absorb what no measurement can tell from them: compare motion between configurations.
    X = inverse(a[:1]) @ a
    Y = inverse(b[:1]) @ b
    assert (
        np.abs(
            np.linalg.norm(rotation_log(X[:, :3, :3]), axis=1) - np.linalg.norm(rotation_log(Y[:, :3, :3]), axis=1)
        ).max()
        < 1e-6
    )
    assert arm.joint_names == truth.robot.joint_names
    np.testing.assert_array_equal(arm.inertial, truth.robot.inertial)


def test_default_candidates_have_compliance_only_with_masses():
    rich = default_candidates(load_robot("panda"))[1]
    assert Term.COMPLIANCE in rich.terms
    bare = replace(load_robot("panda"), links=tuple(replace(link, inertial=None) for link in load_robot("panda").links))
    assert Term.COMPLIANCE not in default_candidates(bare)[1].terms


def test_paired_t():
    assert paired_t(np.ones(5), np.ones(5)) == 0.0
    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0])
    assert paired_t(a, b) == pytest.approx((2.5 / 3) / (np.std([0.5, 1.0, 1.0], ddof=1) / np.sqrt(3)))


@pytest.mark.parametrize("geometry", [UnknownGeometry.MDH, UnknownGeometry.DH, UnknownGeometry.HAYATI])
def test_denavit_models_fit_arms_without_parallel_axes_as_well_as_the_complete_one(rng, geometry):
    truth = Truth(load_robot("panda"), rng)
    q = truth.configurations(80)
    measurements = Measurements(q=q, observations=(truth.see(q, Observed.POSE),))
    result = fit(truth.robot, measurements, ErrorModel(geometry))
    assert worst_miss(result, truth, truth.configurations(30)) < 1e-6


def test_parallel_axes_need_hayatis_parameter(rng):
    """Without it the common normal of the UR's shoulder and elbow cannot tilt about y."""
    truth = Truth(load_robot("ur10e"), rng)
    q = truth.configurations(80)
    measurements = Measurements(q=q, observations=(truth.see(q, Observed.POSE),))
    plain, hayati = (
        fit(truth.robot, measurements, ErrorModel(g)) for g in (UnknownGeometry.MDH, UnknownGeometry.HAYATI)
    )
    fresh = truth.configurations(30)
    assert worst_miss(hayati, truth, fresh) < 1e-6
    assert worst_miss(plain, truth, fresh) > 1e-5
