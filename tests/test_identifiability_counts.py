"""Every count of parameters the five works publish, recomputed."""

from __future__ import annotations

import numpy as np
import pytest

from armid.identifiability.base import Category, base_parameters
from armid.identifiability.errors import NothingIdentifiableError
from armid.identifiability.structure import structural_base, structural_rows, structure
from armid.inspection.inspect import inspect
from armid.kernels import dynamics, kinematics
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.robot.load import load_robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows
from armid.rows.pose import ChainErrors, PoseMeasure, PoseRows, natural_model
from armid.rows.quantity import Quantity, sources_for
from armid.rows.torque import TorqueRows
from support.arms import camera_lwr, generic_6r, seed_iiwa, seed_lwr, zyyxyx

POINTS = ((0.1, 0.05, 0.02), (-0.05, 0.1, 0.03), (0.02, -0.08, 0.1))


def test_halper() -> None:
    assert len(structural_base(TorqueRows(seed_iiwa()))) == 43
    assert len(structural_base(TorqueRows(load_robot("iiwa14"), Effects(viscous=True, coulomb=True)))) == 57


def test_khosla() -> None:
    cylindrical = structural_base(TorqueRows(load_robot("cylindrical")))
    arm2 = structural_base(TorqueRows(load_robot("cmu-dd-arm2")))
    assert len(cylindrical) == 5
    assert len(arm2) == 11
    # The paper's table 3 lists 17 parameters as identifiable; these six rows only count in combination.
    assert arm2.category("link3.mx") is Category.ALONE
    for name in ("link2.mass", "link3.mass", "link2.Iyy", "link3.Ixx", "link3.Izz", "link3.my"):
        assert arm2.category(name) is Category.COMBINED


@pytest.mark.parametrize("robot", [zyyxyx(), load_robot("mabi-max100")], ids=["zyyxyx", "mabi-max100"])
def test_rwth(robot: object) -> None:
    found = structure(AxisInertiaRows(robot))  # type: ignore[arg-type]
    assert len(found.base) == 32
    assert list(found.per_channel.values()) == [27, 19, 17, 7, 3, 1]


@pytest.mark.parametrize("robot", [seed_lwr(), load_robot("lwr4-dh")], ids=["table", "lwr4-dh"])
def test_gaz(robot: object) -> None:
    gravity, inertia = GravityRows(robot), InertiaMatrixRows(robot)  # type: ignore[arg-type]
    assert len(structural_base(gravity)) == 12
    assert len(structural_base(inertia)) == 39
    assert len(structural_base(gravity, inertia)) == 43


def test_gaz_with_a_vanishing_entry() -> None:
    """M_67 = 0 at every pose removes link7.Ixz and link7.Iyz, as the authors' eq. 27 does."""
    robot = seed_lwr()
    inertia, gravity = InertiaMatrixRows(robot), GravityRows(robot)
    columns = inertia.columns
    kept = [i for i, name in enumerate(columns) if name not in ("link7.Ixz", "link7.Iyz")]
    M, g = (structural_rows(s).reshape(-1, len(columns))[:, kept] for s in (inertia, gravity))
    assert len(base_parameters(M)) == 37
    assert len(base_parameters(np.vstack([M, g]))) == 41
    # Only these two columns enter that entry of the matrix.
    entry = structural_rows(inertia)[:, inertia.channels.index("M_6_7")]
    assert {columns[i] for i in np.flatnonzero(np.abs(entry).max(axis=0) > 1e-12)} == {"link7.Ixz", "link7.Iyz"}


@pytest.mark.parametrize(("runs", "standard", "count"), [("both", 136, 102), ("loaded", 136, 92)])
def test_kolyubin_dynamics(runs: str, standard: int, count: int) -> None:
    effects = Effects(
        viscous=True, coulomb=True, offset=True, rotor_inertia=True, torques=TorqueSide.BOTH, payload=PayloadRuns(runs)
    )
    sources = sources_for(load_robot("lwr4plus"), [Quantity.TORQUE], effects)
    base = structural_base(*sources)
    assert len(base.parameters) == standard
    assert len(base) == count


def test_kolyubin_eighteen_cannot_be_found_and_sixteen_are_regrouped() -> None:
    effects = Effects(
        viscous=True, coulomb=True, offset=True, rotor_inertia=True, torques=TorqueSide.BOTH, payload=PayloadRuns.BOTH
    )
    base = structural_base(*sources_for(load_robot("lwr4plus"), [Quantity.TORQUE], effects))
    assert len(base.unidentifiable) == 18
    assert len(base.dependent) - len(base.unidentifiable) == 16
    kinds = [name.partition(".")[0].rstrip("0123456789") for name in base.names]
    assert kinds.count("link") == 43
    assert kinds.count("payload") == 10
    assert sum(name.endswith(("viscous", "coulomb", "offset")) for name in base.names) == 42
    assert sum(name.endswith("rotor_inertia") for name in base.names) == 7


def test_kolyubin_difference_of_torques_sees_the_drives_alone() -> None:
    effects = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True, torques=TorqueSide.DIFFERENCE)
    base = structural_base(TorqueRows(load_robot("lwr4plus"), effects))
    assert len(base) == len(base.parameters) == 28


def test_kolyubin_kinematics() -> None:
    on_axis = PoseRows(robot=camera_lwr(0.0))
    base = structural_base(on_axis)
    assert natural_model(on_axis.robot, on_axis.robot.frame()) is ChainErrors.DESCRIBED
    assert len(base.parameters) == 36
    assert len(base) == 32
    assert base.weak == ()
    # The authors' choice of what falls out (alpha0, d0, theta7, r7) is as good as ours: the rest has full rank.
    rows = structural_rows(on_axis).reshape(-1, 36)
    theirs = [base.parameters.index(name) for name in ("link1.rx", "link1.tx", "link7.theta", "link7.d")]
    assert len(base_parameters(np.delete(rows, theirs, axis=1))) == 32


def test_kolyubin_kinematics_with_the_tool_beside_the_axis() -> None:
    base = structural_base(PoseRows(robot=camera_lwr(0.0015)))
    assert len(base) == 33
    assert len(base.weak) == 1
    assert {name for name, _ in base.weak[0].combination} == {"link7.theta", "tool.theta"}


@pytest.mark.parametrize(
    ("measure", "points", "count"),
    [("pose", 1, 30), ("points", 1, 27), ("points", 2, 29), ("points", 3, 30), ("distance", 1, 24)],
)
def test_kinematics_of_six_revolute_joints(measure: str, points: int, count: int) -> None:
    source = PoseRows(robot=generic_6r(), measure=PoseMeasure(measure), points=POINTS[:points])
    assert len(structural_base(source)) == count


@pytest.mark.parametrize("name", ["panda", "lwr4-dh", "iiwa14"])
def test_kinematics_of_seven_revolute_joints(name: str) -> None:
    assert len(structural_base(PoseRows(robot=load_robot(name), model=ChainErrors.COMPLETE))) == 34


def test_pose_rows_are_the_derivative_of_the_pose() -> None:
    """Finite differences of the forward kinematics with one constant changed."""
    from dataclasses import replace

    robot = camera_lwr(0.0015)
    q = np.random.default_rng(0).normal(size=(4, 7))
    source = PoseRows(robot=robot)
    A = evaluate_rows(source, q)
    step = 1e-6
    for joint, element in ((0, 4), (2, 0), (2, 1), (3, 3), (6, 2)):
        changed = []
        for sign in (1, -1):
            chain = list(robot.joints[joint].transforms)
            chain[element] = replace(chain[element], value=chain[element].value + sign * step)
            joints = [replace(j, transforms=tuple(chain)) if i == joint else j for i, j in enumerate(robot.joints)]
            changed.append(kinematics.forward_kinematics(replace(robot, joints=tuple(joints)), q))
        column = sum(len(j.transforms) for j in robot.joints[:joint]) + element
        expected = (changed[0] - changed[1])[:, :3, 3] / (2 * step)
        np.testing.assert_allclose(A[:, :3, column], expected, atol=1e-8)
        turn = (changed[0] - changed[1])[:, :3, :3] @ np.transpose(changed[0][:, :3, :3], (0, 2, 1)) / (2 * step)
        np.testing.assert_allclose(A[:, 3, column], turn[:, 2, 1], atol=1e-5)  # one-sided in R: error of order step


def test_rows_of_gravity_and_inertia_reproduce_the_batch_functions() -> None:
    robot = load_robot("tx40")  # its drives are coupled
    q = np.random.default_rng(1).normal(size=(5, 6))
    rotor = Effects(rotor_inertia=True)
    pi = np.concatenate([[*robot.inertial[10 * i : 10 * i + 10], 0.1 * i] for i in range(6)])
    np.testing.assert_allclose(
        evaluate_rows(GravityRows(robot), q) @ robot.inertial, dynamics.gravity(robot, q), atol=1e-10
    )
    M = dynamics.mass_matrix(robot, q) + np.diag(0.1 * np.arange(6))
    source = InertiaMatrixRows(robot, rotor)
    expected = np.stack([M[:, j, k] for j, k in source.entries], axis=1)
    np.testing.assert_allclose(evaluate_rows(source, q) @ pi, expected, atol=1e-10)
    np.testing.assert_allclose(evaluate_rows(AxisInertiaRows(robot), q) @ pi, np.einsum("skk->sk", M), atol=1e-10)


def test_gravity_says_nothing_about_a_planar_arm_lying_flat() -> None:
    robot = load_robot("cmu-dd-arm2")
    flat = robot.with_gravity([0.0, 0.0, 0.0])
    with pytest.raises(NothingIdentifiableError, match="gravity identifies nothing"):
        inspect(flat, quantity=Quantity.GRAVITY)
