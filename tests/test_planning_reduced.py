"""Proposition 1 of [Kolyubin2017]: the regressor and base parameters alone give the dynamics along a path."""

from __future__ import annotations

import numpy as np
import pytest

from armid.errors import ShapeError, UnknownNameError
from armid.identifiability.structure import structural_base, structural_rows
from armid.kernels.dynamics import coriolis, gravity, inverse_dynamics, mass_matrix
from armid.parameters.effects import Effects, TorqueSide
from armid.planning.model import TorqueModel, model_of_base, model_of_robot
from armid.planning.path import SplinePath
from armid.planning.reduced import reduced_dynamics
from armid.robot import Robot, catalogue_names, load_robot
from armid.robot.described import described_values
from armid.rows.torque import TorqueRows

EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)
ROUND_OFF = 1e-11
"""Of the largest torque: some hundred operations in double precision."""


def base_model(robot: Robot, effects: Effects = EFFECTS) -> TorqueModel:
    """Base values by least squares on random samples: regrouping coefficients are rounded to nine decimals."""
    rows = TorqueRows(robot, effects)
    base = structural_base(rows)
    standard = described_values(robot, rows.space)
    A = structural_rows(rows).reshape(-1, len(standard))
    return model_of_base(rows, base, np.linalg.lstsq(A[:, base.independent], A @ standard, rcond=None)[0])


def some_path(robot: Robot, seed: int = 0, count: int = 5) -> SplinePath:
    rng = np.random.default_rng(seed)
    return SplinePath(robot.joint_names, rng.uniform(-1.0, 1.0, (count, robot.n_joints)))


@pytest.mark.parametrize("name", catalogue_names())
def test_terms_equal_those_of_mass_coriolis_and_gravity(name: str) -> None:
    robot = load_robot(name)
    path = some_path(robot)
    theta = np.linspace(0.0, path.length, 40)
    reduced = reduced_dynamics(path, base_model(robot), theta)
    q, first, second, _ = path.derivatives(theta)
    M = mass_matrix(robot, q) + np.diag(robot.drive("rotor_inertia"))
    A = np.einsum("nij,nj->ni", M, first)
    B = np.einsum("nij,nj->ni", M, second) + np.einsum("nij,nj->ni", coriolis(robot, q, first), first)
    Gamma = gravity(robot, q)
    # An offset that gravity could explain (a vertical slide) is part of gravity's base parameter.
    offset = robot.drive("offset")
    scale = max(np.abs(A).max(), np.abs(B).max(), np.abs(Gamma).max())
    assert np.abs(reduced.A - A).max() < ROUND_OFF * scale
    assert np.abs(reduced.B - B).max() < ROUND_OFF * scale
    assert np.abs(reduced.Gamma + reduced.offset - Gamma - offset).max() < ROUND_OFF * scale


@pytest.mark.parametrize("name", ["iiwa14", "tx40", "cylindrical"])
def test_friction_is_added_back_with_its_sign(name: str) -> None:
    robot = load_robot(name)
    path, rng = some_path(robot, 1), np.random.default_rng(2)
    theta = np.linspace(0.0, path.length, 600)  # enough points for the compiled kernels
    reduced = reduced_dynamics(path, base_model(robot), theta)
    q, first, second, _ = path.derivatives(theta)
    for direction in (1.0, -1.0):
        v = direction * rng.uniform(0.1, 2.0, len(theta))
        a = rng.normal(size=len(theta))
        qd = first * v[:, None]
        expected = inverse_dynamics(robot, q, qd, second * v[:, None] ** 2 + first * a[:, None], drives=True)
        assert np.abs(reduced.torque(v, a) - expected).max() < ROUND_OFF * np.abs(expected).max()
    rigid = reduced.torque(v, a, friction=False)
    assert np.allclose(rigid, reduced.A * a[:, None] + reduced.B * v[:, None] ** 2 + reduced.Gamma)


def test_any_combination_of_rows_is_a_scalar_equation() -> None:
    robot = load_robot("panda")
    path = some_path(robot, 3)
    theta = np.linspace(0.0, path.length, 30)
    reduced = reduced_dynamics(path, model_of_robot(robot), theta)
    rng = np.random.default_rng(4)
    v, a, weights = rng.uniform(0.1, 1.0, 30), rng.normal(size=30), rng.normal(size=7)
    one = reduced.combined(weights)
    u = one.alpha * a + one.beta * v**2 + one.gamma + one.viscous * v + one.coulomb + one.offset
    assert np.allclose(u, reduced.torque(v, a) @ weights, rtol=1e-12, atol=1e-10)
    passive = reduced.passive(robot.joint_names[3])
    assert np.array_equal(passive.gamma, reduced.Gamma[:, 3])
    # Along the path itself alpha is the mass in the kinetic energy, so it is positive.
    assert (reduced.projected().alpha > 0.0).all()
    with pytest.raises(ShapeError, match="weights"):
        reduced.combined(np.ones(3))
    with pytest.raises(UnknownNameError, match="nothing"):
        reduced.passive("nothing")


def test_with_both_sides_measured_the_motors_carry_all_friction() -> None:
    robot = load_robot("lwr4plus")
    effects = Effects(viscous=True, coulomb=True, torques=TorqueSide.BOTH)
    rows = TorqueRows(robot, effects)
    motor_side = np.array([parameter.is_motor_side for parameter in rows.space])
    values = np.where(motor_side, 0.7, described_values(robot, rows.space))
    base = structural_base(rows)
    model = model_of_base(rows, base, base.values(values))
    q, qd, qdd = np.random.default_rng(5).uniform(-1.0, 1.0, (3, 10, 7))
    expected = inverse_dynamics(robot, q, qd, qdd, drives=True) - robot.drive("offset") + 0.7 * (qd + np.sign(qd))
    assert np.allclose(model.torque(q, qd, qdd), expected, rtol=0.0, atol=1e-9)
