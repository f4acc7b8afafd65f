"""Which parts of a correction change the arm and which change the recorded motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.errors import InputError, UnknownNameError
from armid.kernels.dynamics import gravity
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.correction import Correction
from armid.kinematics.encoders import encoder_shift
from armid.kinematics.model import ErrorModel, FrameModel
from armid.kinematics.words import Term, UnknownGeometry
from armid.logs import Channel, Log
from armid.logs.encoders import corrected_log
from armid.robot.elementary import Move
from armid.robot.load import load_robot
from support import identified

EVERYTHING = ErrorModel(UnknownGeometry.COMPLETE, frozenset(Term))


def correction_of(robot, values_of, errors=EVERYTHING, **frames) -> Correction:
    """A correction with given values by parameter name."""
    model = kinematic_model(robot, errors, setups=frames.get("setups", {}), targets={})
    values = np.array([values_of(p) for p in model.parameters])
    return Correction(path=identified.urdf_file(), nominal=robot, model=model, values=values)


@pytest.fixture(params=["trio", "cylindrical", "fanuc"])
def full(request) -> Correction:
    """Every term at half its tolerance: a revolute arm, one with slides, one with a coupling of its own."""
    sources = {"trio": str(identified.urdf_file()), "cylindrical": "cylindrical", "fanuc": str(identified.urdf_file())}
    robot = load_robot(sources[request.param])
    if request.param == "fanuc":
        robot = replace(robot, coupling=np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 1]]))
    rng = np.random.default_rng(4)
    return correction_of(robot, lambda p: 0.5 * p.tolerance * rng.normal())


def motion(robot, t):
    """A smooth motion with its derivatives."""
    w = 0.7 + 0.3 * np.arange(robot.n_joints)
    a = 0.3 + 0.1 * np.arange(robot.n_joints)
    x = np.outer(t, w)
    return a * np.sin(x), a * w * np.cos(x), -a * w**2 * np.sin(x)


def log_of(robot, t, channels):
    return Log(name="run", joints=robot.joint_names, time=t, channels=channels, named=True)


def test_arm_and_corrected_motion_together_are_the_whole_correction(full):
    """The corrected arm at corrected positions stands where the model with all its terms says, at the positions shown."""
    q = motion(full.nominal, np.linspace(0.0, 9.0, 40))[0]
    seen = corrected_log(
        log_of(full.nominal, np.linspace(0.0, 9.0, 40), {Channel.POSITION: q}), full.model, full.values
    )
    T = forward_kinematics(full.robot, seen[Channel.POSITION])
    assert np.abs(T - predicted_poses(full.model, full.values, q)).max() < 1e-12
    assert np.abs(forward_kinematics(full.robot, q) - T).max() > 1e-4  # and the encoders' part matters


def test_zeros_and_couplings_stay_in_the_arm_gains_do_not(full):
    kinds = {name.partition(".")[2] for name in full.encoder_terms}
    revolute = full.nominal.joints[0].kind.value == "revolute"
    assert kinds >= ({"gain", "compliance", "eccentricity_sin", "eccentricity_cos"} if revolute else {"gain"})
    assert not any(kind.startswith(("offset", "coupling")) for kind in kinds)
    C = np.eye(full.nominal.n_joints) if full.nominal.coupling is None else full.nominal.coupling
    assert full.robot.coupling is not None
    assert np.allclose(np.diag(full.robot.coupling), np.diag(C))
    assert full.robot.coupling[1, 0] != C[1, 0]


def test_velocity_and_acceleration_follow_by_the_chain_rule(full):
    """Against differences in time of the corrected positions of a finely sampled motion."""
    h = 1e-4
    t = np.arange(-1, 30_001) * h
    q, qd, qdd = motion(full.nominal, t)
    seen = corrected_log(
        log_of(full.nominal, t, {Channel.POSITION: q, Channel.VELOCITY: qd, Channel.ACCELERATION: qdd}),
        full.model,
        full.values,
    )
    p = seen[Channel.POSITION]
    assert np.abs((p[2:] - p[:-2]) / (2 * h) - seen[Channel.VELOCITY][1:-1]).max() < 2e-7
    assert np.abs((p[2:] - 2 * p[1:-1] + p[:-2]) / h**2 - seen[Channel.ACCELERATION][1:-1]).max() < 2e-5
    assert any("recorded motion corrected for" in note.message for note in seen.notes)


def test_a_sagging_joint_hangs_lower_than_its_encoder_says():
    """q = shown + c tau_gravity with a negative c: the gravity torque is what holds the arm up."""
    robot = load_robot(str(identified.urdf_file()))
    found = correction_of(robot, lambda p: -1e-4 if p.name.endswith("compliance") else 0.0)
    q = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    assert np.abs(encoder_shift(found.model, found.values, q) + 1e-4 * gravity(robot, q)).max() < 1e-15


def test_columns_are_matched_by_name_and_corrupt_rows_pass():
    robot = load_robot(str(identified.urdf_file()))
    found = correction_of(robot, lambda p: 0.01 if p.name == "joint2.gain" else 0.0)
    q = np.ones((4, 3))
    q[1, 0], q[2, 1] = np.nan, 1e150
    log = Log(
        name="run",
        joints=robot.joint_names[::-1],
        time=np.arange(4.0),
        channels={Channel.POSITION: q[:, ::-1]},
        named=True,
    )
    out = corrected_log(log, found.model, found.values)
    assert out.joints == robot.joint_names
    assert out[Channel.POSITION][0].tolist() == [1.0, 1.01, 1.0]
    assert np.isnan(out[Channel.POSITION][1, 0])
    assert out[Channel.POSITION][2, 1] == 1e150


def test_a_correction_without_encoder_terms_leaves_the_log_alone():
    robot = load_robot(str(identified.urdf_file()))
    found = correction_of(robot, lambda p: p.tolerance, ErrorModel())
    log = log_of(robot, np.arange(3.0), {Channel.POSITION: np.zeros((3, 3))})
    assert corrected_log(log, found.model, found.values) is log
    assert found.encoder_terms == ()


def test_gravity_of_a_levelled_instrument_in_the_base_frame():
    robot = load_robot(str(identified.urdf_file()))
    T = np.eye(4)
    c, s = np.cos(0.02), np.sin(0.02)
    T[:3, :3] = [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]
    T[:3, :3] = T[:3, :3] @ [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]
    frame = FrameModel.around(T, (Move.TX,), outside=True)
    found = correction_of(robot, lambda p: 0.0, setups={"tracker": frame})
    down = found.gravity([0.0, 0.0, -9.81])
    assert np.abs(down - 9.81 * np.array([s, 0.0, -c])).max() < 1e-12  # what the base sees when its y axis leans
    assert np.array_equal(down, found.gravity([0.0, 0.0, -9.81], "tracker"))
    with pytest.raises(UnknownNameError, match="tracker"):
        found.gravity([0.0, 0.0, -9.81], "laser")
    two = correction_of(robot, lambda p: 0.0, setups={"a": frame, "b": frame})
    with pytest.raises(InputError, match="2 sensor frames: a, b"):
        two.gravity([0.0, 0.0, -9.81])
