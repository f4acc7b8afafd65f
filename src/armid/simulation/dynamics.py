"""What a controller knows of its arm: a second MuJoCo model, possibly wrong, evaluated tick by tick."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import MissingDependencyError
from armid.robot.robot import Robot
from armid.simulation.plant import build_plant

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None


class RigidModel:
    """Rigid-body torques of an arm at one state at a time, in drive coordinates; a few microseconds per call."""

    def __init__(self, robot: Robot, payload: npt.ArrayLike | None = None) -> None:
        self.robot = robot
        plant = build_plant(robot, payload=payload, collisions=False)
        self._model = plant.model
        self._data = mujoco.MjData(plant.model)
        self._C = np.eye(robot.n_joints) if robot.coupling is None else np.asarray(robot.coupling)
        self._coupled = robot.coupling is not None
        self._torque = np.empty(robot.n_joints)
        self._rotor = robot.drive("rotor_inertia")

    def gravity(self, q: FloatArray) -> FloatArray:
        """g(q), shape [n_joints]."""
        m, d = self._model, self._data
        d.qpos[:] = self._C @ q if self._coupled else q
        d.qvel[:] = 0.0
        self._positions()
        mujoco.mj_rne(m, d, 0, self._torque)
        return self._drive_side()

    def inverse(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """M(q) qdd + c(q, qd) + g(q) of the links alone, shape [n_joints]."""
        m, d = self._model, self._data
        if self._coupled:
            q, qd, qdd = self._C @ q, self._C @ qd, self._C @ qdd
        d.qpos[:], d.qvel[:], d.qacc[:] = q, qd, qdd
        self._positions()
        mujoco.mj_rne(m, d, 1, self._torque)
        return self._drive_side()

    def mass_matrix(self, q: FloatArray, *, rotors: bool = False) -> FloatArray:
        """M(q) of the links, with the rotors' inertia if asked, shape [n_joints, n_joints]."""
        m, d = self._model, self._data
        d.qpos[:] = self._C @ q
        mujoco.mj_fwdPosition(m, d)
        M = np.empty((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        M = self._C.T @ M @ self._C
        return M if rotors else M - np.diag(self._rotor)

    def tip_pose(self, q: FloatArray) -> FloatArray:
        """T_base_tip, shape [4, 4]."""
        d = self._data
        d.qpos[:] = self._C @ q
        mujoco.mj_kinematics(self._model, d)
        site = d.site("tip")
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = site.xmat.reshape(3, 3), site.xpos
        return T

    def gravities(self, q: npt.ArrayLike) -> FloatArray:
        """g(q) at many positions, shape [n_samples, n_joints]."""
        rows = samples("q", q, self.robot.n_joints)
        return np.array([self.gravity(row) for row in rows]).reshape(rows.shape)

    def _positions(self) -> None:
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_comVel(self._model, self._data)

    def _drive_side(self) -> FloatArray:
        return self._C.T @ self._torque if self._coupled else self._torque.copy()
