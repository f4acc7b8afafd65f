"""Closed forms against the recursions they come from, and [RWTH2021]'s minimal model."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from armid.errors import UnknownNameError
from armid.identifiability.closed_form import closed_form, coriolis_form
from armid.identifiability.criteria import quality
from armid.identifiability.errors import UnsupportedClosedFormError
from armid.identifiability.minimal_model import minimal_model
from armid.identifiability.structure import structural_base
from armid.inspection.closed_form import form_files
from armid.inspection.inspect import inspect
from armid.kernels import dynamics
from armid.robot.load import load_robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows
from armid.rows.torque import TorqueRows
from support.arms import zyyxyx
from support.chains import random_robot


@pytest.mark.parametrize("seed", range(8))
def test_random_chains_against_the_batch_functions(seed: int) -> None:
    """Revolute and prismatic joints with any constant angle."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 1 + seed % 4)
    n = robot.n_joints
    q, qd = rng.normal(size=(2, 6, n))
    base = structural_base(TorqueRows(robot))
    b = base.values(robot.inertial)
    source = InertiaMatrixRows(robot)
    inertia = closed_form(source, base.names)
    M = dynamics.mass_matrix(robot, q)
    scale = max(1.0, np.abs(M).max())
    expected = np.stack([M[:, j, k] for j, k in source.entries], axis=1)
    np.testing.assert_allclose(inertia.evaluate(q, b), expected, atol=1e-9 * scale)
    gravity = closed_form(GravityRows(robot), base.names)
    np.testing.assert_allclose(gravity.evaluate(q, b), dynamics.gravity(robot, q), atol=1e-8 * scale)
    coriolis = coriolis_form(inertia, {entry: k for k, entry in enumerate(source.entries)})
    C = coriolis.evaluate(np.hstack([q, qd]), b).reshape(-1, n, n)
    np.testing.assert_allclose(C, dynamics.coriolis(robot, q, qd), atol=1e-9 * scale)


def test_gravity_with_any_parameters() -> None:
    robot = zyyxyx()
    rng = np.random.default_rng(2)
    pi = rng.normal(size=60)
    base = structural_base(TorqueRows(robot))
    form = closed_form(GravityRows(robot), base.names)
    q = rng.normal(size=(5, 6))
    np.testing.assert_allclose(form.evaluate(q, base.values(pi)), dynamics.gravity(robot, q, inertial=pi), atol=1e-10)


def test_rwth_axis_5_exactly() -> None:
    found = inspect("mabi-max100", quantity="axis-inertia")
    arm = found.form("axis-inertia")
    models = arm.axis_models
    assert [len(model) for model in models] == [27, 19, 17, 7, 3, 1]
    q6 = sympy.Symbol("q6", real=True)
    axis5 = models[4]
    assert set(axis5.expressions) == {sympy.cos(q6) * sympy.sin(q6), sympy.cos(q6) ** 2, sympy.Integer(1)}
    phi = dict(
        zip(axis5.expressions, axis5.standard_terms(dict(zip(arm.base.names, arm.terms, strict=True))), strict=True)
    )
    l6 = sympy.Symbol("l6")
    # Axis 5 turns about y and axis 6 about x; the offset between them is l6 along x.
    assert phi[sympy.cos(q6) ** 2] == {"link6.Iyy": 1, "link6.Izz": -1}
    assert phi[sympy.cos(q6) * sympy.sin(q6)] == {"link6.Iyz": -2}
    assert phi[sympy.Integer(1)] == {
        "link5.Iyy": 1,
        "joint5.rotor_inertia": 1,
        "link6.Izz": 1,
        "link6.mass": l6**2,
        "link6.mx": 2 * l6,
    }


def test_minimal_models_reproduce_the_measured_inertia() -> None:
    robot = load_robot("mabi-max100")
    source = AxisInertiaRows(robot)
    base = structural_base(source)
    form = closed_form(source, base.names)
    q = np.random.default_rng(3).uniform(-3, 3, size=(40, 6))
    pi = np.concatenate(
        [[*robot.inertial[10 * i : 10 * i + 10], robot.joints[i].drive.rotor_inertia] for i in range(6)]
    )
    J = np.einsum("skk->sk", dynamics.mass_matrix(robot, q)) + robot.drive("rotor_inertia")
    values = dict(zip(base.names, base.values(pi), strict=True))
    lengths = {e.symbol: e.value for joint in robot.joints for e in joint.transforms if e.symbol}
    for axis in range(6):
        model = minimal_model(form, axis)
        phi = [sum(float(c.subs(lengths)) * values[n] for n, c in terms.items()) for terms in model.parameters]
        D = model.evaluate(q)
        np.testing.assert_allclose(D @ phi, J[:, axis], rtol=1e-10)
        assert np.linalg.matrix_rank(D) == min(len(model), len(q))
    assert [len(minimal_model(form, k)) for k in range(6)] == [27, 19, 17, 7, 3, 1]


def test_ideal_target_matrix_of_axis_5() -> None:
    """[RWTH2021] section 5: the ideal rows of axis 5 have condition numbers 3.7321 and 1.5811."""
    three = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1.0]])
    five = np.array([[1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1], [0, 0, 1.0]])
    assert quality(three).condition_number == pytest.approx(3.7321, abs=1e-4)
    assert quality(five).condition_number == pytest.approx(1.5811, abs=1e-4)


def test_exported_numpy_module_runs(tmp_path: object) -> None:
    robot = load_robot("mabi-max100")
    found = inspect(robot, friction="none")
    arm = found.form("inertia-matrix")
    scope: dict = {}
    exec(compile(arm.form.numpy_source(), "inertia_matrix.py", "exec"), scope)
    q = np.random.default_rng(4).normal(size=(7, 6))
    b = found.base.values(robot.inertial)
    np.testing.assert_allclose(scope["evaluate"](q, b), arm.form.evaluate(q, b), rtol=1e-9, atol=1e-9)


def test_sympy_expression_equals_the_numbers() -> None:
    robot = load_robot("cylindrical")
    base = structural_base(TorqueRows(robot))
    form = closed_form(InertiaMatrixRows(robot), base.names)
    q = np.array([[0.3, 0.7, -0.4]])
    b = base.values(robot.inertial)
    at = {f"q{i + 1}": v for i, v in enumerate(q[0])} | {str(s): v for s, v in zip(form.symbols, b, strict=True)}
    for k, expression in enumerate(form.expressions()):
        value = float(expression.subs({s: at[str(s)] for s in expression.free_symbols}))
        assert value == pytest.approx(form.evaluate(q, b)[0, k], abs=1e-12)


def test_files_for_people_and_programs() -> None:
    found = inspect(load_robot("cylindrical"), friction="none")
    texts = form_files(found.form("coriolis"))
    assert set(texts) == {"coriolis.tex", "coriolis.py", "coriolis.sympy"}
    assert r"\begin{align*}" in texts["coriolis.tex"]
    assert "link3.mass" in texts["coriolis.tex"]
    with pytest.raises(UnknownNameError, match=r"jerk.*inertia-matrix"):
        found.form("jerk")


def test_a_quantity_that_does_not_determine_the_form_brings_its_own_parameters() -> None:
    found = inspect(load_robot("cylindrical"), quantity="gravity")
    assert len(found.form("inertia-matrix").base) == 5


def test_coupled_drives_get_the_form_of_the_joints() -> None:
    robot = load_robot("tx40")
    arm = inspect(robot, friction="none").form("inertia-matrix")
    drives = np.random.default_rng(5).normal(size=(4, 6))
    C = robot.coupling
    M = np.zeros((4, 6, 6))
    rows, columns = np.triu_indices(6)
    M[:, rows, columns] = M[:, columns, rows] = arm.form.evaluate(drives @ C.T, arm.base.values(robot.inertial))
    np.testing.assert_allclose(C.T @ M @ C, dynamics.mass_matrix(robot, drives), atol=1e-10)


def test_coupled_drives_are_refused() -> None:
    robot = load_robot("tx40")
    with pytest.raises(UnsupportedClosedFormError, match="several joints"):
        closed_form(GravityRows(robot), structural_base(GravityRows(robot)).names)


def test_full_inertia_matrix_of_seven_joints_is_fast() -> None:
    import time

    start = time.process_time()
    robot = load_robot("iiwa14")
    form = closed_form(InertiaMatrixRows(robot), structural_base(TorqueRows(robot)).names)
    assert len(form.expressions()) == 28
    assert time.process_time() - start < 60.0  # asked: two minutes; takes about two seconds


def test_gravity_keeps_its_magnitude_as_a_symbol() -> None:
    robot = load_robot("cmu-dd-arm2")
    base = structural_base(GravityRows(robot))
    form = closed_form(GravityRows(robot), base.names)
    q3, g = sympy.Symbol("q3", real=True), sympy.Symbol("g")
    x, z = (sympy.Symbol(f"link3_{name}", real=True) for name in ("mx", "mz"))
    expected = {sympy.expand(g * (x * a + z * b)) for a, b in signed_pairs(sympy.cos(q3), sympy.sin(q3))}
    assert sympy.expand(form.expression(2)) in expected
    assert form.expression(0) == form.expression(1) == 0


def signed_pairs(c: sympy.Expr, s: sympy.Expr) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """The four quarter turns: which one depends on where the zero of the joint was chosen."""
    return [(c, s), (-s, c), (-c, -s), (s, -c), (c, -s), (s, c), (-c, s), (-s, -c)]
