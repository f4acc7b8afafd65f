"""Error models: Jacobians by finite differences, conventions by poses, counts of identifiable parameters by the literature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.calibration.start import ALL, TRANSLATIONS
from armid.identifiability.base import base_parameters
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot, predicted_poses
from armid.kinematics.conventions import dh_form, mdh_form
from armid.kinematics.measurement import (
    MeasurementError,
    Measurements,
    Observations,
    Observed,
    with_covariance,
)
from armid.kinematics.model import ErrorModel, FrameModel, pose_and_derivative
from armid.kinematics.rotations import inverse, rigid, rotation_exp, rotation_log
from armid.kinematics.tables import denavit_tables
from armid.kinematics.words import Term, UnknownGeometry
from armid.parameters.space import OwnerKind
from armid.robot import Elementary, Move
from armid.robot.load import load_robot
from armid.rows.pose_residual import along_axes, in_sensor_axes, residuals
from support.chains import random_robot

EVERY_TERM = frozenset(Term)


def frame(rng, motions=ALL, *, outside):
    return FrameModel.around(rigid(rotation_exp(rng.normal(size=3)), rng.normal(size=3)), motions, outside=outside)


def model_of(robot, errors, rng):
    return kinematic_model(
        robot, errors, setups={"sensor": frame(rng, outside=True)}, targets={"tool": frame(rng, outside=False)}
    )


def measurements_of_every_kind(model, values, q, rng):
    """Observations near the model's own predictions, so that residuals are small but not zero."""
    n = len(q)
    T = predicted_poses(model, values, q, setup="sensor", target="tool")
    R = T[:, :3, :3] @ rotation_exp(0.05 * rng.normal(size=(n, 3)))
    p = T[:, :3, 3] + 0.01 * rng.normal(size=(n, 3))
    rows = np.arange(n)
    S = inverse(rigid(R, p))
    spread = rng.normal(size=(n, 6, 6))
    spread[:, :3, 3:] = spread[:, 3:, :3] = 0.0
    return Measurements(
        q=q,
        observations=(
            Observations(quantity=Observed.POSE, rows=rows, position=p, rotation=R),
            with_covariance(
                Observations(quantity=Observed.POSE, rows=rows, position=p, rotation=R),
                spread @ np.swapaxes(spread, 1, 2),
            ),
            Observations(quantity=Observed.POSE, rows=rows, position=S[:, :3, 3], rotation=S[:, :3, :3], riding=True),
            Observations(quantity=Observed.POSITION, rows=rows, position=S[:, :3, 3], riding=True),
            Observations(quantity=Observed.POSITION, rows=rows, position=p),
            Observations(quantity=Observed.ORIENTATION, rows=rows, rotation=R),
            Observations(quantity=Observed.POINT, rows=rows),
            Observations(quantity=Observed.PLANE, rows=rows),
            Observations(quantity=Observed.DISTANCE, rows=rows, distance=np.linalg.norm(p, axis=1)),
            Observations(quantity=Observed.LENGTH, rows=rows[:-1], distance=np.ones(n - 1), other_rows=rows[1:]),
        ),
    )


@pytest.mark.parametrize("geometry", list(UnknownGeometry))
@pytest.mark.parametrize("seed", range(3))
def test_residual_derivative_is_its_finite_difference(geometry, seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4, coupled=seed == 1)
    model = model_of(robot, ErrorModel(geometry, EVERY_TERM), rng)
    values = 0.02 * rng.normal(size=len(model.parameters))
    measurements = measurements_of_every_kind(model, values, rng.normal(size=(4, 4)), rng)
    exact = list(residuals(model, values, measurements))
    h = 1e-6
    for k in range(len(values)):
        up, down = (list(residuals(model, values + s * h * np.eye(len(values))[k], measurements)) for s in (1, -1))
        for e, a, b in zip(exact, up, down, strict=True):
            scale = 1.0 + np.abs(e.D[k]).max()
            np.testing.assert_allclose(-(a.r - b.r) / (2 * h), e.D[k], atol=2e-8 * scale, err_msg=model.names[k])


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_frames_alone_are_those_of_the_whole_arm(seed):
    """While only sensor and tool frames change the arm is gone through once; rows and residuals stay what they are."""
    rng = np.random.default_rng(seed)
    model = model_of(random_robot(rng, 4, coupled=seed == 1), ErrorModel(terms=EVERY_TERM), rng)
    values = 0.02 * rng.normal(size=len(model.parameters))
    measurements = measurements_of_every_kind(model, values, rng.normal(size=(4, 4)), rng)
    frames = model.owned(OwnerKind.SETUP, OwnerKind.TARGET)
    for moved in (values, values + 0.01 * frames, values + 0.01 * ~frames):
        whole, alone = (list(residuals(model, moved, measurements, wanted=w)) for w in (None, frames))
        for a, b in zip(whole, alone, strict=True):
            np.testing.assert_allclose(b.r, a.r, atol=1e-13)
            np.testing.assert_allclose(b.D, a.D[frames], atol=1e-13)


@pytest.mark.parametrize("coupled", [False, True])
def test_denavit_forms_leave_every_frame_where_it_is(coupled):
    rng = np.random.default_rng(7)
    for _ in range(20):
        robot = random_robot(rng, int(rng.integers(1, 8)), coupled=coupled)
        q = rng.normal(size=(3, robot.n_joints))
        for name in (*robot.link_names, "tool"):
            T = forward_kinematics(robot, q, name)
            for form in (mdh_form, dh_form):
                np.testing.assert_allclose(forward_kinematics(form(robot), q, name), T, atol=1e-12)


def test_denavit_table_of_a_described_arm_is_its_description():
    panda = load_robot("panda")
    rows, _ = denavit_tables(panda, panda, modified=True)
    np.testing.assert_allclose([row.d for row in rows], [0, 0.333, 0, 0.316, 0, 0.384, 0, 0, 0.107], atol=1e-12)
    np.testing.assert_allclose([row.a for row in rows], [0, 0, 0, 0, 0.0825, -0.0825, 0, 0.088, 0], atol=1e-12)


def test_rounded_right_angles_stay_as_they_are_but_do_not_send_normals_to_infinity():
    robot = load_robot("ur10e")
    tilted = replace(
        robot,
        joints=tuple(
            replace(
                j,
                transforms=tuple(replace(e, value=e.value + 4e-6) if e.motion is Move.RX else e for e in j.transforms),
            )
            for j in robot.joints
        ),
    )
    chain = replace(
        tilted,
        joints=tuple(
            replace(j, transforms=(Elementary(motion=Move.TX, value=0.0), *j.transforms)) for j in tilted.joints
        ),
    )
    for row in denavit_tables(chain, chain, modified=True)[0]:
        assert abs(row.d) + abs(row.a) < 2.0
    q = np.random.default_rng(0).normal(size=(5, 6))
    np.testing.assert_allclose(forward_kinematics(mdh_form(chain), q), forward_kinematics(chain, q), atol=1e-12)


def structural_rank(robot, quantities, *, terms=frozenset({Term.OFFSET}), geometry=UnknownGeometry.COMPLETE):
    """Rank over random configurations, by the shared identifiability code."""
    rng = np.random.default_rng(3)
    q = rng.uniform(-3, 3, size=(120, robot.n_joints))
    setups = {"sensor": frame(rng, outside=True)}
    motions = ALL if quantities == (Observed.POSE,) else TRANSLATIONS
    names = [f"t{k}" for k in range(len(quantities))]
    model = kinematic_model(
        robot,
        ErrorModel(geometry, terms),
        setups=setups,
        targets={name: frame(rng, motions, outside=False) for name in names},
    )
    rows = []
    for name, quantity in zip(names, quantities, strict=True):
        _, _, J = pose_and_derivative(model, np.zeros(len(model.parameters)), q, "sensor", name)
        part = J if quantity is Observed.POSE else J[:, :3]
        rows.append(part.reshape(len(part), -1).T)
    return len(base_parameters(np.vstack(rows), parameters=model.names)), model


GENERIC = np.random.default_rng(11)


@pytest.mark.parametrize(
    ("robot", "quantities", "count"),
    [
        ("ur10e", (Observed.POSE,), 30),
        ("panda", (Observed.POSE,), 34),
        ("ur10e", (Observed.POSITION,), 27),
        ("ur10e", (Observed.POSITION,) * 2, 30),
        ("ur10e", (Observed.POSITION,) * 3, 33),
    ],
)
@pytest.mark.parametrize("geometry", [UnknownGeometry.COMPLETE, UnknownGeometry.HAYATI])
def test_number_of_identifiable_parameters(robot, quantities, count, geometry):
    """4 per revolute joint + 6 for a pose; points leave the tool's rotation out and add three each for the next."""
    assert structural_rank(load_robot(robot), quantities, geometry=geometry)[0] == count


def test_rotation_log_and_exp_agree_with_scipy():
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(0)
    v = rng.normal(size=(500, 3))
    v *= (
        np.concatenate([np.linspace(0, np.pi - 1e-9, 250), 10.0 ** rng.uniform(-9, 0, 250)]) / np.linalg.norm(v, axis=1)
    )[:, None]
    R = Rotation.from_rotvec(v).as_matrix()
    np.testing.assert_allclose(rotation_exp(v), R, atol=1e-14)
    np.testing.assert_allclose(rotation_log(R), v, atol=1e-11)


def test_calibrated_robot_and_model_put_the_tip_in_the_same_place():
    rng = np.random.default_rng(4)
    robot = random_robot(rng, 6, coupled=True)
    terms = frozenset({Term.OFFSET, Term.GAIN, Term.COUPLING})
    for geometry in UnknownGeometry:
        model = model_of(robot, ErrorModel(geometry, terms), rng)
        values = 0.01 * rng.normal(size=len(model.parameters))
        q = rng.normal(size=(5, 6))
        T = forward_kinematics(calibrated_robot(model, values), q)
        np.testing.assert_allclose(predicted_poses(model, values, q), T, atol=1e-12)
        R, p, _ = pose_and_derivative(model, values, q, "sensor", "tool")
        seen = predicted_poses(model, values, q, setup="sensor", target="tool")
        np.testing.assert_allclose(np.transpose(p), seen[:, :3, 3], atol=1e-12)
        np.testing.assert_allclose(np.transpose(R, (2, 0, 1)), seen[:, :3, :3], atol=1e-12)


def test_whitening_by_a_covariance_is_its_mahalanobis_length():
    rng = np.random.default_rng(5)
    spread = rng.normal(size=(7, 3, 3))
    C = spread @ np.swapaxes(spread, 1, 2)
    r = rng.normal(size=(3, 7))
    o = with_covariance(Observations(quantity=Observed.POSITION, rows=np.arange(7), position=np.zeros((7, 3))), C)
    along, _ = along_axes(o, r, np.zeros((0, 3, 7)))
    z = (along / o.noise.T) ** 2
    np.testing.assert_allclose(z.sum(axis=0), [r[:, i] @ np.linalg.solve(C[i], r[:, i]) for i in range(7)], rtol=1e-9)
    np.testing.assert_allclose(in_sensor_axes(o, along), r, atol=1e-14)
    with pytest.raises(MeasurementError, match="negative eigenvalue"):
        with_covariance(o, -C)
    pose = Observations(
        quantity=Observed.POSE, rows=np.arange(7), position=np.zeros((7, 3)), rotation=np.tile(np.eye(3), (7, 1, 1))
    )
    with pytest.raises(MeasurementError, match="between position and orientation"):
        with_covariance(pose, np.ones((6, 6)))
