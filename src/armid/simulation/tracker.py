"""A tracker that watches the tool: poses with noise in a frame of its own, of an arm that is not quite as described."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only, samples
from armid.documents import new_file
from armid.errors import ShapeError
from armid.robot.quaternion import quaternion_from_matrix
from armid.robot.robot import Robot
from armid.simulation.dynamics import RigidModel
from armid.simulation.sensors import PerJoint, per_joint


@dataclass(frozen=True, eq=False)
class EncoderErrors:
    """What lies between the angle an encoder shows and the angle the link stands at.

    q_true = q_shown + compliance * (-g(q)) + eccentricity * sin(q_shown + eccentricity_phase)

    Gravity pulls the link away from the rotor by its torque over the stiffness; an encoder disc off centre errs once
    per turn.

    Args:
        compliance: 1 / stiffness [rad/(N m) or m/N].
        eccentricity: amplitude [rad or m].
        eccentricity_phase: [rad].
        noise: of the encoders, standard deviation [rad or m].
    """

    compliance: PerJoint = 0.0
    eccentricity: PerJoint = 0.0
    eccentricity_phase: PerJoint = 0.0
    noise: PerJoint = 0.0


@dataclass(frozen=True, eq=False)
class Tracker:
    """A camera or laser tracker fixed beside the arm.

    Args:
        T_tracker_base: where the arm's base stands in the tracker's frame, shape [4, 4].
        T_tip_target: where the target sits on the robot's tip frame, shape [4, 4].
        position_noise: standard deviation per axis [m].
        orientation_noise: standard deviation per axis [rad].
    """

    T_tracker_base: FloatArray = field(default_factory=lambda: np.eye(4))
    T_tip_target: FloatArray = field(default_factory=lambda: np.eye(4))
    position_noise: float = 0.0
    orientation_noise: float = 0.0

    def __post_init__(self) -> None:
        for name in ("T_tracker_base", "T_tip_target"):
            T = read_only(getattr(self, name))
            if T.shape != (4, 4):
                raise ShapeError(name, T.shape, "[4, 4]")
            object.__setattr__(self, name, T)


@dataclass(frozen=True, eq=False, kw_only=True)
class TrackedPoses:
    """What the tracker said.

    Args:
        joint_names: columns of q.
        q: what the encoders showed [rad or m], shape [n_poses, n_joints].
        T_tracker_target: measured, shape [n_poses, 4, 4].
        position_noise, orientation_noise: of the tracker [m, rad].
    """

    joint_names: tuple[str, ...]
    q: FloatArray
    T_tracker_target: FloatArray
    position_noise: float
    orientation_noise: float


def track_poses(
    robot: Robot,
    q: npt.ArrayLike,
    tracker: Tracker | None = None,
    *,
    errors: EncoderErrors | None = None,
    payload: npt.ArrayLike | None = None,
    seed: int = 0,
) -> TrackedPoses:
    """Moves the arm to every posture and reads the tracker; kinematics and gravity are MuJoCo's.

    Args:
        robot: the physical arm, deviations of its geometry included.
        q: what the encoders show at each posture, shape [n_poses, n_joints].
        tracker: perfect and in the base frame by default.
        errors: of joints and encoders; none by default.
        payload: ten standard parameters in the last link's frame; only matters with compliance.
        seed: of the noise.
    """
    eye, wrong = tracker or Tracker(), errors or EncoderErrors()
    shown = samples("q", q, robot.n_joints)
    rng = np.random.default_rng(seed)
    true = true_positions(robot, shown, wrong, payload)
    # Kinematics need no masses: links without any count as weightless with rotors that can be moved.
    model = RigidModel(_with_some_inertia(robot))
    T = np.array([eye.T_tracker_base @ model.tip_pose(row) @ eye.T_tip_target for row in true])
    T[:, :3, 3] += eye.position_noise * rng.standard_normal((len(T), 3))
    turns = eye.orientation_noise * rng.standard_normal((len(T), 3))
    T[:, :3, :3] = T[:, :3, :3] @ np.array([rotation(turn) for turn in turns]).reshape(-1, 3, 3)
    noise = per_joint("noise", wrong.noise, robot.n_joints) * rng.standard_normal(shown.shape)
    return TrackedPoses(
        joint_names=robot.joint_names,
        q=read_only(shown + noise),
        T_tracker_target=read_only(T),
        position_noise=eye.position_noise,
        orientation_noise=eye.orientation_noise,
    )


def true_positions(robot: Robot, shown: FloatArray, errors: EncoderErrors, payload: npt.ArrayLike | None) -> FloatArray:
    """Where the links really stand when the encoders show `shown`, before encoder noise."""
    n = robot.n_joints
    compliance = per_joint("compliance", errors.compliance, n)
    amplitude = per_joint("eccentricity", errors.eccentricity, n)
    phase = per_joint("eccentricity_phase", errors.eccentricity_phase, n)
    turned = shown + amplitude * np.sin(shown + phase)
    if not compliance.any():
        return turned
    return turned - compliance * RigidModel(robot, payload).gravities(turned)


def _with_some_inertia(robot: Robot) -> Robot:
    """The same arm with a unit body for every link whose inertial parameters are unknown."""
    body = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    return replace(robot, links=tuple(replace(link, inertial=body) for link in robot.links), geometry=())


def rotation(turn: FloatArray) -> FloatArray:
    """The rotation by |turn| about turn, shape [3, 3] (Rodrigues' formula)."""
    angle = float(np.linalg.norm(turn))
    if angle == 0.0:
        return np.eye(3)
    x, y, z = turn / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


def write_poses(poses: TrackedPoses, path: Path) -> Path:
    """CSV: joint positions by joint name, `x,y,z,qw,qx,qy,qz`, and standard deviations `std_x..std_rz`; SI units."""
    sigma = [poses.position_noise] * 3 + [poses.orientation_noise] * 3
    header = [*poses.joint_names, "x", "y", "z", "qw", "qx", "qy", "qz"]
    known = any(sigma)
    with new_file(path, text=True) as file:
        writer = csv.writer(file)
        writer.writerow(header + (["std_x", "std_y", "std_z", "std_rx", "std_ry", "std_rz"] if known else []))
        for q, T in zip(poses.q, poses.T_tracker_target, strict=True):
            row = [*q, *T[:3, 3], *quaternion_from_matrix(T[:3, :3]), *(sigma if known else [])]
            writer.writerow([f"{value:.12g}" for value in row])
    return path
