"""The model inside a controller: counts, exactness, noise, silent channels, tools, and data that are something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armid.errors import InputError
from armid.kernels.dynamics import coriolis, gravity, inverse_dynamics, mass_matrix
from armid.parameters.inertial import from_centre_of_mass
from armid.payload.tool_change import tool_change
from armid.recovery.recover import fit, random_poses, recover
from armid.recovery.samples import ControllerSamples, read_samples
from armid.recovery.silent_channels import Silence, echelon, equation
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.scene.scene import build_scene
from armid.simulation.controller_data import read_controller, write_controller_data

TIP = from_centre_of_mass(0.25, [0.0, 0.0, 0.09], np.zeros((3, 3)))


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("lwr4plus")


def read(robot: Robot, count: int, seed: int, **options: object) -> ControllerSamples:
    q = random_poses(robot, count, np.random.default_rng(seed))
    data = read_controller(robot, q, seed=seed, **options)  # type: ignore[arg-type]
    return ControllerSamples(name="simulated", q=data.q, gravity=data.gravity, inertia=data.inertia)


@pytest.fixture(scope="module")
def training(robot: Robot) -> ControllerSamples:
    return read(robot, 1000, 1)


def test_double_precision_data_are_reproduced_to_round_off(robot: Robot, training: ControllerSamples) -> None:
    found = recover(robot, training, read(robot, 200, 2))
    assert found.gravity is not None
    assert found.inertia is not None
    assert (len(found.gravity), len(found.inertia), len(found.joint), found.free) == (12, 39, 43, 43)
    for e in (*found.training, *found.validation):
        if e.size > 1e-9:
            assert np.sqrt(e.mean_square) < 1e-10 * e.size, e.channel
    assert len(found.validation) == 35
    assert [s.kind for s in found.silent] == [Silence.STRUCTURAL]
    assert found.consistent is not None
    assert found.consistent.is_physical


def test_gravity_coefficients_are_those_of_the_paper(robot: Robot, training: ControllerSamples) -> None:
    """[Gaz2014] eq. 29: the catalogue's arm has these coefficients, the data come from MuJoCo, the values from us."""
    gravity_only = fit(robot, training, ("gravity",))[0]
    published = [
        9.5457e-4,
        -2.9826e-4,
        8.3524e-4,
        0.0286,
        0.0407,
        6.5637e-4,
        1.334,
        0.0035,
        4.7258e-4,
        0.0014,
        9.4532e-4,
        3.4568,
    ]
    found = np.sort(np.abs(gravity_only.values))
    assert np.allclose(found, np.sort(np.abs(published)), rtol=1e-3)


def test_noise_passes_to_the_validation_error_without_growing(robot: Robot) -> None:
    noise = {"gravity_noise": 0.05, "inertia_noise": 0.01}
    found = recover(robot, read(robot, 1000, 3, **noise), read(robot, 200, 4, **noise), bodies=False)
    squares = {"gravity": [], "inertia": []}
    for e in found.validation:
        if e.channel != "joint1:gravity":
            squares["gravity" if e.channel.endswith(":gravity") else "inertia"].append(e.mean_square)
    assert np.mean(squares["gravity"]) < 1.1 * 0.05**2
    assert np.mean(squares["inertia"]) < 1.1 * 0.01**2


def test_an_element_that_is_always_zero_becomes_a_constraint(robot: Robot) -> None:
    """M_67 = 0 leaves 41 of 43 ([Gaz2014]: they used it), and says which parameters vanish."""
    values = np.array(robot.inertial)
    values[66] = values[68] = 0.0
    other = robot.with_inertial(values)
    q = random_poses(robot, 400, np.random.default_rng(5))
    data = ControllerSamples(name="x", q=q, gravity=gravity(other, q), inertia=mass_matrix(other, q))
    found = recover(robot, *data.held_out(0.25), bodies=False)
    assert (found.free, len(found.joint)) == (41, 43)
    silent = {s.channel: s for s in found.silent}
    assert silent["M_6_7"].kind is Silence.CONSTRAINT
    assert [equation(c) for c in silent["M_6_7"].constraints] == ["link7.Ixz = 0", "link7.Iyz = 0"]
    assert found.inertia is not None
    assert "2 constraints" in found.inertia.method
    assert max(np.sqrt(e.mean_square) for e in found.validation) < 1e-11


def test_a_base_that_is_not_level_is_named_and_its_element_left_out(robot: Robot, training: ControllerSamples) -> None:
    assert training.gravity is not None
    tilted = np.array(training.gravity)
    tilted[:, 0] += 0.02 * np.sin(training.q[:, 0])
    found = recover(
        robot,
        *ControllerSamples(name="x", q=training.q, gravity=tilted, inertia=training.inertia).held_out(0.2),
        bodies=False,
    )
    assert [s.kind for s in found.silent] == [Silence.DISCARDED]
    assert "not quite level" in found.notes[0].message
    assert found.largest("inertia") < 1e-10


def test_gravity_and_inertia_of_different_arms_are_told(robot: Robot, training: ControllerSamples) -> None:
    assert training.gravity is not None
    loaded = read_controller(robot, training.q, payload=TIP)
    wrong = ControllerSamples(name="x", q=training.q, gravity=loaded.gravity, inertia=training.inertia)
    found = recover(robot, *wrong.held_out(0.2), bodies=False)
    assert {n.code for n in found.notes if n.severity.value == "error"} == {"gravity-inertia-disagree"}
    assert found.verdict == "untrusted"


def along_a_motion(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    t = 0.02 * np.arange(count)
    return t, np.stack([0.8 * np.sin((1 + 0.3 * j) * t + j) for j in range(7)], axis=1)


@pytest.mark.parametrize(
    ("down", "code"),
    [
        ((9.81, 0.0, 0.0), "mounting"),
        ((0.0, 2.9, -9.3716), "mounting"),
        ((0.0, 0.0981, -9.8095), "tilted-base"),
        ((0.0, 0.0, 9.81), "gravity-reversed"),
    ],
)
def test_gravity_of_another_mounting_is_named_with_its_direction(
    robot: Robot, down: tuple[float, float, float], code: str
) -> None:
    q = random_poses(robot, 240, np.random.default_rng(2))
    data = read_controller(robot.with_gravity(np.array(down)), q)
    found = recover(
        robot, *ControllerSamples(name="x", q=q, gravity=data.gravity, inertia=None).held_out(0.25), bodies=False
    )
    notes = {n.code: n for n in found.notes}
    assert code in notes
    assert (found.verdict == "trusted") == (code == "tilted-base")
    if code != "gravity-reversed":
        assert f"{down[1]:.4g}"[:4] in notes[code].message
        mended = recover(
            robot.with_gravity(np.array(down)),
            *ControllerSamples(name="x", q=q, gravity=data.gravity, inertia=None).held_out(0.25),
        )
        assert mended.verdict == "trusted"
        assert mended.largest("gravity") < 1e-10


@pytest.mark.parametrize("timed", [True, False])
def test_torque_of_a_moving_arm_is_no_gravity_vector(robot: Robot, timed: bool) -> None:
    t, q = along_a_motion()
    qd = np.gradient(q, t, axis=0)
    tau = inverse_dynamics(robot, q, qd, np.gradient(qd, t, axis=0)) + 3.0 * np.sign(qd)
    found = recover(
        robot,
        *ControllerSamples(name="x", q=q, gravity=tau, inertia=None, time=t if timed else None).held_out(0.25),
        bodies=False,
    )
    assert [n.code for n in found.notes if n.severity.value == "error"] == ["not-static" if timed else "not-gravity"]


def test_values_read_along_a_motion_are_as_good(robot: Robot) -> None:
    """[Gaz2014]: "we have repeated also our tests with the robot motion without finding sensible differences"."""
    t, q = along_a_motion()
    data = read_controller(robot, q)
    found = recover(
        robot,
        *ControllerSamples(name="x", q=q, gravity=data.gravity, inertia=data.inertia, time=t).held_out(0.25),
        bodies=False,
    )
    assert found.verdict == "trusted"
    assert found.largest("gravity") < 1e-9


def test_rotors_on_the_diagonal_are_noticed_and_found(robot: Robot, training: ControllerSamples) -> None:
    """43 base parameters become 48: the rotors of the first two axes cannot be told from their links."""
    assert training.inertia is not None
    rotors = np.array([0.6, 0.5, 0.3, 0.3, 0.1, 0.1, 0.05])
    M = training.inertia + np.diag(rotors)
    data = ControllerSamples(name="x", q=training.q, gravity=training.gravity, inertia=M)
    missed = recover(robot, *data.held_out(0.2), bodies=False)
    assert [n.code for n in missed.notes if n.severity.value == "error"] == ["rotors-included"]
    found = recover(robot, *data.held_out(0.2), rotors=True)
    assert len(found.joint) == 48
    assert found.verdict == "trusted"
    assert found.largest("inertia") < 1e-10
    value = dict(zip(found.joint.names, found.joint.values, strict=True))
    assert [value[f"joint{i}.rotor_inertia"] for i in (3, 4, 5, 6, 7)] == pytest.approx(rotors[2:], abs=1e-9)
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 4, 7))
    expected = inverse_dynamics(robot, q, qd, qdd) + rotors * qdd
    assert np.allclose(found.torque(q, qd, qdd), expected, atol=1e-8)
    assert found.bodies is not None


def test_joints_in_another_order_and_other_arms_are_told(robot: Robot, training: ControllerSamples) -> None:
    mixed = ControllerSamples(
        name="x", q=training.q[:, [0, 1, 2, 4, 3, 5, 6]], gravity=training.gravity, inertia=training.inertia
    )
    found = recover(robot, *mixed.held_out(0.2), bodies=False)
    assert {n.code for n in found.notes if n.severity.value == "error"} == {"not-gravity", "not-inertia"}


@pytest.mark.parametrize(
    ("name", "gravity_count", "count"),
    [
        ("iiwa14", 12, 43),
        ("panda", 12, 43),
        ("ur10e", 10, 36),
        ("tx40", 10, 36),
        ("cylindrical", 1, 5),
        ("cmu-dd-arm2-6", 8, 32),
    ],
)
def test_other_arms(name: str, gravity_count: int, count: int) -> None:
    """Seven and six joints, coupled drives, prismatic joints; counts as `inspect` has them, errors of round-off."""
    arm = load_robot(name)
    found = recover(arm, read(arm, 300, 1), read(arm, 60, 2))
    assert found.gravity is not None
    assert (len(found.gravity), len(found.joint)) == (gravity_count, count)
    assert found.verdict == "trusted"
    for e in found.validation:
        if e.size > 1e-9:
            assert np.sqrt(e.mean_square) < 1e-10 * max(e.size, 1.0), e.channel
    assert found.consistent is not None
    assert found.consistent.is_physical


def test_poses_to_read_at_keep_limits_and_clear_of_the_arm_itself(robot: Robot) -> None:
    poses = random_poses(robot, 200, np.random.default_rng(0), free=True)
    assert poses.shape == (200, 7)
    assert (poses >= robot.limit("lower")).all()
    assert (poses <= robot.limit("upper")).all()
    assert build_scene(robot, None, self_collision=True).is_free(poses).all()


def test_coriolis_terms_are_the_christoffel_symbols_of_the_recovered_inertia(
    robot: Robot, training: ControllerSamples
) -> None:
    """[Gaz2014] eqs. 15-16, by finite differences of the recovered M."""
    found = recover(robot, training, training, bodies=False)
    rng = np.random.default_rng(7)
    q, qd = rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 7)
    h = 1e-5

    def M(x: np.ndarray) -> np.ndarray:
        return mass_matrix(robot, x[np.newaxis], inertial=found.standard)[0]

    dM = np.array([(M(q + h * e) - M(q - h * e)) / (2 * h) for e in np.eye(7)])
    S = 0.5 * (np.einsum("kij,k->ij", dM, qd) + np.einsum("jik,k->ij", dM, qd) - np.einsum("ijk,k->ij", dM, qd))
    C = coriolis(robot, q[np.newaxis], qd[np.newaxis], inertial=found.standard)[0]
    assert np.allclose(C @ qd, S @ qd, atol=1e-7)


def test_torque_of_a_motion_is_predicted(robot: Robot, training: ControllerSamples) -> None:
    """[Gaz2014] eq. 33: all joints pi/2 cos(pi/7 t), low-pass of order 4 at 1 Hz; their errors were 1 N m, friction included."""
    from armid.logs.conditioning import Conditioning, condition
    from armid.motions.trajectory import SampledTrajectory
    from armid.simulation.physics import Physics
    from armid.simulation.scenario import Scenario, run_scenario

    t, w = np.arange(0.0, 14.0, 0.005), np.pi / 7
    waves = (np.cos(w * t), -w * np.sin(w * t), -(w**2) * np.cos(w * t))
    motion = SampledTrajectory(robot.joint_names, t, *(np.tile(np.pi / 2 * x[:, np.newaxis], 7) for x in waves))
    experiment = run_scenario(robot, motion, Scenario(physics=Physics(sensed_friction=0.0, collisions=False)))
    data = condition(experiment.log, robot, Conditioning(cutoff=1.0, order=4))
    found = recover(robot, training, training, bodies=False)
    error = data.torque() - found.torque(data.q, data.qd, data.qdd)
    assert np.abs(error).max() < 0.05, np.abs(error).max(axis=0)


def test_change_of_tool_from_two_identifications(robot: Robot, training: ControllerSamples) -> None:
    before = fit(robot, training, ("gravity", "inertia"))[0]
    other = read(robot, 600, 9, payload=TIP)
    after = fit(robot, other, ("gravity", "inertia"))[0]
    change = tool_change(before, after, 7)
    assert change.mass == pytest.approx(0.25, abs=1e-9)
    values = dict(zip(change.names, change.values, strict=True))
    assert values["mz"] == pytest.approx(0.25 * 0.09, abs=1e-9)
    assert values["mx"] == pytest.approx(0.0, abs=1e-9)


def test_change_of_tool_from_the_published_coefficients(training: ControllerSamples, robot: Robot) -> None:
    """[Gaz2014] eqs. 29-32: about 0.25 kg from either of the two coefficients, and their centre from the third."""
    from dataclasses import replace

    estimate = fit(robot, training, ("gravity",))[0]
    base = estimate.base
    with_mass = {name: base.terms(name) for name in base.names if any(t == "link7.mass" for t in base.terms(name))}
    assert len(with_mass) == 2
    rise = {0.4: 3.5580 - 3.4568, 0.39: 1.4320 - 1.334}
    values = np.array(estimate.values)
    for name, terms in with_mass.items():
        length = terms["link7.mass"]
        values[base.index(name)] += np.sign(length) * rise[round(abs(length), 2)]
    values[base.index("link6.my")] += 0.0507 - 0.0286
    flat = replace(estimate, covariance=np.diag(np.full(len(base), 1e-10)))
    change = tool_change(flat, replace(flat, values=values), 7)
    assert change.mass == pytest.approx(0.25, abs=0.005)
    assert sorted(change.apart.values()) == pytest.approx([0.0980 / 0.39, 0.1012 / 0.4], rel=1e-6)
    assert dict(zip(change.names, change.values, strict=True))["mz"] == pytest.approx(0.0221, abs=1e-9)


def test_echelon_form_spans_the_same_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 5))
    E = echelon(rows)
    assert E.shape == (2, 5)
    assert np.allclose(E[:, :2], np.eye(2))
    assert np.linalg.matrix_rank(np.vstack([E, rows]), tol=1e-9) == 2


def test_files_come_back(robot: Robot, training: ControllerSamples, tmp_path: Path) -> None:
    data = read_controller(robot, training.q[:5])
    back = read_samples(write_controller_data(data, tmp_path / "c.npz"), robot)
    assert back.gravity is not None
    assert np.array_equal(back.gravity, data.gravity)
    header = [f"q{i + 1}" for i in range(7)] + [f"M_{j + 1}_{k + 1}" for j in range(7) for k in range(j, 7)]
    upper = np.array([M[np.triu_indices(7)] for M in data.inertia])
    np.savetxt(tmp_path / "c.csv", np.hstack([data.q, upper]), delimiter=",", header=",".join(header), comments="")
    again = read_samples(tmp_path / "c.csv", robot)
    assert again.gravity is None
    assert again.inertia is not None
    assert np.allclose(again.inertia, data.inertia, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"q": np.full((4, 7), 90.0)}, "degrees"),
        ({"q": np.zeros((4, 6))}, "shape"),
        ({"M": np.tile(np.arange(49.0).reshape(7, 7), (4, 1, 1))}, "differ by"),
        ({"M": np.tile(-np.eye(7), (4, 1, 1))}, "diagonal"),
        ({"g": np.full((4, 7), np.nan)}, "not finite"),
        ({"joint_names": np.array([f"x{i}" for i in range(7)])}, "joints x0"),
    ],
)
def test_other_data_are_refused(robot: Robot, tmp_path: Path, change: dict[str, np.ndarray], match: str) -> None:
    good = {"q": np.zeros((4, 7)), "g": np.zeros((4, 7)), "M": np.tile(np.eye(7), (4, 1, 1))}
    np.savez(tmp_path / "bad.npz", **(good | change))
    with pytest.raises(InputError, match=match):
        read_samples(tmp_path / "bad.npz", robot)


def test_files_that_are_no_controller_data_are_refused(robot: Robot, tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "empty.npz", x=np.zeros(3))
    for name, match in (("text.npz", "not controller data"), ("empty.npz", "expected q")):
        with pytest.raises(InputError, match=match):
            read_samples(tmp_path / name, robot)
