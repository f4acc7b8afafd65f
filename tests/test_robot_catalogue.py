"""The arms that come with armid: bodies that exist, frames of the five works, numbers they print."""

import numpy as np
import pytest

from armid.identifiability.structure import structural_base
from armid.kernels.dynamics import gravity, inverse_dynamics, mass_matrix, regressor
from armid.kernels.kinematics import forward_kinematics
from armid.parameters.effects import Effects
from armid.parameters.inertial import pseudo_inertia
from armid.robot import Capsule, JointKind, Robot, catalogue_names, load_robot
from armid.robot.dh import Convention, row_of
from armid.rows.torque import TorqueRows

EXPECTED = (
    "cmu-dd-arm2",
    "cmu-dd-arm2-6",
    "cylindrical",
    "iiwa14",
    "lwr4-dh",
    "lwr4plus",
    "mabi-max100",
    "panda",
    "rv2sq",
    "tx40",
    "tx40-birdy",
    "ur10e",
)

HOME = {
    "cmu-dd-arm2": [0.3, 0.5, 0],
    "cmu-dd-arm2-6": [0.3, 0.5, 0.2, 0, 0.5, 0],
    "cylindrical": [0, 0.3, 0.3],
    "iiwa14": [0, 0.5, 0, -1.2, 0, 0.8, 0],
    "lwr4-dh": [0, 0.5, 0, -1.2, 0, 0.8, 0],
    "lwr4plus": [0, 0.5, 0, -1.2, 0, 0.8, 0],
    "mabi-max100": [0, 0.2, 0.3, 0, 0.4, 0],
    "panda": [0, -0.785, 0, -2.356, 0, 1.571, 0.785],
    "rv2sq": [0, 0.2, 1.2, 0, 0.5, 0],
    "tx40": [0, -1.2, 1.2, 0, 0.5, 0],
    "tx40-birdy": [0, 0.3, 0.6, 0, 0.5, 0],
    "ur10e": [0, -1.2, 1.4, -0.5, 1.0, 0],
}


def test_the_catalogue_is_complete():
    assert catalogue_names() == EXPECTED


@pytest.mark.parametrize("name", EXPECTED)
def test_every_body_can_exist_with_margin(name):
    robot = load_robot(name)
    assert robot.notes == ()
    for link in robot.links:
        assert link.is_sound
        # The pseudo-inertia mixes kg and kg m^2: judge its parts, the mass and the second moments about the centre.
        P = pseudo_inertia(link.inertial)
        central = P[:3, :3] - np.outer(P[:3, 3], P[:3, 3]) / P[3, 3]
        assert P[3, 3] > 0
        values = np.linalg.eigvalsh(central)
        assert values[0] > 0.001 * values[-1], link.name


@pytest.mark.parametrize("name", EXPECTED)
def test_everything_a_simulation_needs_is_there(name):
    robot = load_robot(name)
    for joint in robot.joints:
        for field in ("lower", "upper", "velocity", "acceleration", "jerk", "torque"):
            assert np.isfinite(getattr(joint.limits, field)), (joint.name, field)
        assert min(joint.drive.rotor_inertia, joint.drive.viscous, joint.drive.coulomb) > 0
    q = np.random.default_rng(0).uniform(robot.limit("lower"), robot.limit("upper"), (200, robot.n_joints))
    # A drive that cannot hold its arm, or not start it, would be of no use.
    assert (np.abs(gravity(robot, q)) < 0.6 * robot.limit("torque")).all()
    assert (np.linalg.eigvalsh(mass_matrix(robot, q)) > 0).all()
    assert robot.frames


def ends(robot: Robot, q: np.ndarray) -> list[list[tuple[np.ndarray, np.ndarray, float]]]:
    """End points and radii of the capsules of the base and every link, in the base frame."""
    out = []
    for name, shapes in ((robot.base, robot.geometry), *((link.name, link.geometry) for link in robot.links)):
        T = forward_kinematics(robot, q, name)[0]
        here = []
        for g in shapes:
            assert isinstance(g.shape, Capsule)
            half = np.array([0, 0, 0.5 * g.shape.length, 0])
            origin = np.array([0, 0, 0, 1.0])
            here.append(
                ((T @ g.T_link_shape @ (origin - half))[:3], (T @ g.T_link_shape @ (origin + half))[:3], g.shape.radius)
            )
        out.append(here)
    return out


def distance(a, b) -> float:
    """Between two capsules, by fine sampling of their axes: an upper bound good to a few millimetres."""
    s = np.linspace(0, 1, 60)[:, None]
    pa, pb = a[0] + s * (a[1] - a[0]), b[0] + s * (b[1] - b[0])
    return float(np.linalg.norm(pa[:, None] - pb[None], axis=2).min()) - a[2] - b[2]


@pytest.mark.parametrize("name", EXPECTED)
def test_links_that_do_not_touch_do_not_collide_at_home(name):
    robot = load_robot(name)
    bodies = ends(robot, np.array(HOME[name], dtype=float))
    assert all(bodies)
    for i, first in enumerate(bodies):
        for j in range(i + 2, len(bodies)):
            gap = min(distance(a, b) for a in first for b in bodies[j])
            assert gap > 0.0, (name, i, j, gap)


def test_iiwa_has_the_frames_of_table_3_1():
    robot = load_robot("iiwa14")
    np.testing.assert_allclose(robot.gravity, [0, 0, 9.81])
    assert all([e.motion.value for e in j.transforms] == ["Ty", "Tz", "Rz", "Rx", "Rz"] for j in robot.joints)
    T = forward_kinematics(robot, np.zeros(7), "link7")[0]
    np.testing.assert_allclose(T[:3, 3], [0, 0, 0.36 + 0.42 + 0.4 + 0.081], atol=1e-12)
    np.testing.assert_allclose(T[:3, 2], [0, 0, 1], atol=1e-12)


def test_iiwa_regroupings_of_eq_3_39_are_positive():
    robot = load_robot("iiwa14")
    m, h = robot.inertial.reshape(7, 10)[:, 0], robot.inertial.reshape(7, 10)[:, 1:4]
    assert h[1, 1] + h[2, 2] + 0.2045 * m[2] + 0.42 * m[3:].sum() == pytest.approx(5.75, abs=0.01)
    assert h[3, 1] + h[4, 2] + 0.1845 * m[4] + 0.4 * m[5:].sum() == pytest.approx(2.32, abs=0.04)
    assert h[5, 1] + h[6, 2] + 0.081 * m[6] == pytest.approx(0.12, abs=0.005)


def test_lwr4_has_the_gravity_coefficients_of_eq_29():
    values = load_robot("lwr4-dh").inertial.reshape(7, 10)
    m, (x, y, z) = values[:, 0], values[:, 1:4].T
    pi_g = [
        y[6],
        x[6],
        x[5],
        z[5] + z[6],
        z[4] - y[5],
        x[4],
        y[4] + z[3] + 0.39 * m[4:].sum(),
        x[3],
        y[3] + z[2],
        x[1],
        x[2],
        z[1] - y[2] + 0.4 * m[2:].sum(),
    ]
    published = [
        9.5457e-4,
        -2.9826e-4,
        8.3524e-4,
        0.0286,
        -0.0407,
        -6.5637e-4,
        1.334,
        -0.0035,
        -4.7258e-4,
        0.0014,
        9.4532e-4,
        3.4568,
    ]
    np.testing.assert_allclose(pi_g, published, rtol=1e-4, atol=1e-8)


def test_lwr4plus_is_the_same_arm_in_other_frames():
    a, b = load_robot("lwr4-dh"), load_robot("lwr4plus")
    assert [row_of(j.transforms)[0] for j in a.joints] == [Convention.STANDARD] * 7
    assert [row_of(j.transforms)[0] for j in b.joints] == [Convention.MODIFIED] * 7
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 10, 7))
    np.testing.assert_allclose(inverse_dynamics(a, q, qd, qdd), inverse_dynamics(b, q, qd, qdd), rtol=0, atol=1e-6)
    offset = forward_kinematics(b, q)[:, :3, 3] - forward_kinematics(a, q)[:, :3, 3]
    np.testing.assert_allclose(offset, np.tile([0, 0, 0.31], (10, 1)), atol=1e-12)


def test_cylindrical_has_the_values_of_table_2():
    robot = load_robot("cylindrical")
    assert [j.kind for j in robot.joints] == [JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.PRISMATIC]
    one, two, three = robot.inertial.reshape(3, 10)
    assert three[0] == 2.5
    assert three[3] == 1.25
    assert two[0] == 5.0
    assert one[9] + two[7] + three[7] == pytest.approx(2.5)


def test_cylindrical_obeys_the_corrected_equations_18_to_20():
    robot = load_robot("cylindrical")
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 20, 3))
    tau = inverse_dynamics(robot, q, qd, qdd)
    m2, m3, s, J = 5.0, 2.5, 0.5, 2.5
    d3, w = q[:, 2], qd[:, 0]
    np.testing.assert_allclose(tau[:, 2], m3 * qdd[:, 2] - m3 * (s + d3) * w**2, atol=1e-12)
    np.testing.assert_allclose(tau[:, 1], (m2 + m3) * (qdd[:, 1] + 9.81), atol=1e-12)
    turning = (J + m3 * (2 * s * d3 + d3**2)) * qdd[:, 0] + 2 * m3 * (s + d3) * qd[:, 2] * w
    np.testing.assert_allclose(tau[:, 0], turning, atol=1e-12)


def test_dd_arm_gravity_has_the_signs_of_eq_24():
    robot = load_robot("cmu-dd-arm2")
    q = np.random.default_rng(2).uniform(-2, 2, (20, 3))
    h = robot.inertial[21:24]
    expected = 9.81 * (h[0] * np.cos(q[:, 2]) - h[2] * np.sin(q[:, 2]))
    np.testing.assert_allclose(gravity(robot, q)[:, 2], expected, atol=1e-12)
    np.testing.assert_allclose(gravity(robot, q)[:, :2], 0, atol=1e-12)
    assert robot.inertial[[0, 1, 10, 11, 13, 20]] == pytest.approx([13.5, 2.7, 5.5, 1.1, 0.55, 3.5])


def test_mabi_axes_and_the_published_wrist():
    robot = load_robot("mabi-max100")
    axes = [j.transforms[j.variable_index].motion.value for j in robot.joints]
    assert axes == ["Rz", "Ry", "Ry", "Rx", "Ry", "Rx"]
    wrist = robot.joints[5].transform()[:3, 3]
    assert np.linalg.norm(wrist) == pytest.approx(0.1)


def test_the_arms_of_birdy_have_its_counts_of_base_parameters():
    # [Leboutet2021]: 52 with rotor inertia, viscous and Coulomb friction for both arms.
    effects = Effects(viscous=True, coulomb=True, rotor_inertia=True)
    for name in ("tx40-birdy", "rv2sq"):
        assert len(structural_base(TorqueRows(load_robot(name), effects))) == 52, name


def test_tx40_wrist_drives_are_coupled():
    robot = load_robot("tx40")
    R = np.diag([32.0, 32, 45, 48, 45, 32])
    R[5, 4] = 32
    # q = R^-1 q_motor with q_motor = ratio * q_drive.
    np.testing.assert_allclose(robot.coupling, np.linalg.inv(R) @ np.diag(np.diag(R)), atol=1e-15)


def test_panda_table():
    rows = [row_of(joint.transforms)[1] for joint in load_robot("panda").joints]
    table = [
        (0, 0, 0.333),
        (-90, 0, 0),
        (90, 0, 0.316),
        (90, 0.0825, 0),
        (-90, -0.0825, 0.384),
        (90, 0, 0),
        (90, 0.088, 0),
    ]
    for row, (alpha, a, d) in zip(rows, table, strict=True):
        assert (np.degrees(row.alpha), row.a, row.d) == (pytest.approx(alpha), a, d)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("iiwa14", 43),
        ("lwr4plus", 43),
        ("lwr4-dh", 43),
        ("panda", 43),
        ("cmu-dd-arm2", 11),
        ("cylindrical", 5),
        ("ur10e", 36),
    ],
)
def test_as_many_base_parameters_as_known(name, count):
    robot = load_robot(name)
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, 60, robot.n_joints))
    Y = regressor(robot, q, qd, qdd).reshape(-1, 10 * robot.n_joints)
    # The gap between the last counted and the first zero singular value is over eight decades.
    assert np.linalg.matrix_rank(Y, tol=1e-9 * np.linalg.norm(Y, 2)) == count
