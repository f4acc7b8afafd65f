"""What some controllers tell of their own model: gravity vectors and inertia matrices at postures; [Gaz2014] sec. V."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only, samples
from armid.documents import new_file
from armid.robot.robot import Robot
from armid.simulation.dynamics import RigidModel


@dataclass(frozen=True, eq=False)
class ControllerData:
    """Values read from a controller at postures.

    Args:
        joint_names: columns.
        q: positions [rad or m], shape [n_poses, n_joints].
        gravity: g(q) [N m or N], shape [n_poses, n_joints].
        inertia: M(q) of the links, symmetric, shape [n_poses, n_joints, n_joints].
    """

    joint_names: tuple[str, ...]
    q: FloatArray
    gravity: FloatArray
    inertia: FloatArray


def read_controller(
    robot: Robot,
    q: npt.ArrayLike,
    *,
    payload: npt.ArrayLike | None = None,
    gravity_noise: float = 0.0,
    inertia_noise: float = 0.0,
    digits: int | None = None,
    seed: int = 0,
) -> ControllerData:
    """Gravity vectors and inertia matrices at postures, evaluated by MuJoCo.

    Args:
        robot: the model inside the controller.
        q: postures, shape [n_poses, n_joints].
        payload: ten standard parameters the controller was told about, in the last link's frame.
        gravity_noise: standard deviation [N m or N].
        inertia_noise: standard deviation [kg m^2, ...], of symmetric noise.
        digits: decimals the interface transmits; all when None.
        seed: of the noise.
    """
    postures = samples("q", q, robot.n_joints)
    model = RigidModel(robot, payload)
    rng = np.random.default_rng(seed)
    gravity = model.gravities(postures)
    inertia = np.array([model.mass_matrix(row) for row in postures])
    gravity = gravity + gravity_noise * rng.standard_normal(gravity.shape)
    upper = np.triu(rng.standard_normal(inertia.shape))
    inertia = inertia + inertia_noise * (upper + np.swapaxes(np.triu(upper, 1), 1, 2))
    if digits is not None:
        gravity, inertia = np.round(gravity, digits), np.round(inertia, digits)
    return ControllerData(robot.joint_names, read_only(postures), read_only(gravity), read_only(inertia))


def write_controller_data(data: ControllerData, path: Path) -> Path:
    """An npz with `q`, `g`, `M` and `joint_names`."""
    with new_file(path) as file:
        np.savez(file, q=data.q, g=data.gravity, M=data.inertia, joint_names=np.array(data.joint_names))
    return path
