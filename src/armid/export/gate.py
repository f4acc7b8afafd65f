"""What an exported file must show before anyone may use it: that other programs compute the same torques from it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ArmidError, MissingDependencyError
from armid.kernels.dynamics import inverse_dynamics
from armid.robot.robot import Robot
from armid.robot.urdf.arm import orientation_in_root, parse_urdf
from armid.robot.urdf.read import read_urdf

RELOAD_TOLERANCE = 1e-9
"""Largest difference of torques, relative to the largest torque: decimal text with 17 digits loses nothing that shows here."""

_RELOAD_STATES = 20


class ExportRefusedError(ArmidError):
    """A result that is not to be trusted is not exported."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        self.reasons = reasons
        super().__init__(
            "the result is untrusted and is not exported: "
            + "; ".join(reasons)
            + " (--force writes it, marked UNVALIDATED)"
        )


class SealBrokenError(ArmidError):
    """A stored result whose numbers are not those that were written."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the stored result is not exported, not by --force either: {reason}")


class ReloadError(ArmidError):
    """An exported file that another program reads differently."""


class _UnreadableError(ReloadError):
    """A text that another program does not read at all, and why in its own words."""

    def __init__(self, program: str, why: str) -> None:
        self.why = " ".join(why.split())
        super().__init__(f"{program} refuses the exported file: {self.why}")


@dataclass(frozen=True, slots=True)
class Reload:
    """One program that read the file back.

    Args:
        program: which one.
        difference: largest relative difference of torques; 0 when nothing moves, nan when it refuses the description itself.
        refusal: why it does, in its own words.
    """

    program: str
    difference: float
    refusal: str = ""

    def words(self) -> str:
        """For people."""
        if self.refusal:
            return f"{self.program} refuses what the description itself says: {self.refusal}"
        return f"{self.program} reads it back with the same torques (difference {self.difference:.1e})"


Torque = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""Torque of one state in geometric coordinates, rigid links only."""


def reload_checks(robot: Robot, text: str, *, mjcf: bool, original: str = "") -> tuple[Reload, ...]:
    """Reads an exported description back with every program that is here and compares rigid-body torques.

    Args:
        robot: what the file should say.
        text: of the file.
        mjcf: MJCF rather than URDF.
        original: the description that was changed; what a program finds wrong with that already is no fault of the file.

    Raises:
        ReloadError: a program refuses the file, or computes other torques from it.
    """
    # A URDF's arm may hang from a base that stands turned in the file's root, where other programs keep gravity.
    turned = np.eye(3) if mjcf else orientation_in_root(read_urdf(text, "exported file"), robot.base)
    down = turned @ robot.gravity
    readers: dict[str, Callable[[str], Torque | None]] = {"MuJoCo": lambda told: _mujoco_torque(robot, told, down)}
    if not mjcf:
        readers |= {
            "armid": lambda told: _own_torque(robot, told),
            "Pinocchio": lambda told: _pinocchio_torque(robot, told, down),
        }
    checks = []
    for program, reader in readers.items():
        try:
            torque = reader(text)
        except _UnreadableError as refusal:
            if not _refused(reader, original, refusal.why) and not _as_it_was(text, original, refusal.why):
                raise
            checks.append(Reload(program, float("nan"), refusal.why))
            continue
        if torque is not None:
            checks.append(Reload(program, largest_difference(robot, torque)))
    for check in checks:
        if not check.refusal and not check.difference <= RELOAD_TOLERANCE:
            raise ReloadError(
                f"{check.program} computes torques from the exported file that differ by {check.difference:.2g} of the largest"
            )
    return tuple(checks)


def _refused(reader: Callable[[str], Torque | None], original: str, why: str) -> bool:
    """Whether a program refuses the description for the same reason."""
    if not original:
        return False
    try:
        reader(original)
    except _UnreadableError as before:
        return before.why == why
    return False


def _as_it_was(text: str, original: str, why: str) -> bool:
    """Whether a refusal names a link whose body the export left as the description has it.

    A program stops at the first body it cannot use: of the description that may have been another one, since mended.
    """
    if not original:
        return False
    after, before = read_urdf(text, "exported file").links, read_urdf(original, "description").links
    named = [name for name in re.findall(r"'([^']+)'", why) if name in after and name in before]
    return any(_same_body(after[name].inertial, before[name].inertial) for name in named)


def _same_body(one: FloatArray | None, other: FloatArray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def largest_difference(robot: Robot, torque: Torque) -> float:
    """Over random states, relative to the largest torque."""
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1.0, 1.0, size=(3, _RELOAD_STATES, robot.n_joints))
    expected = inverse_dynamics(replace(robot, coupling=None), q, qd, qdd)
    found = np.array([torque(q[s], qd[s], qdd[s]) for s in range(_RELOAD_STATES)])
    return float(np.abs(found - expected).max() / max(float(np.abs(expected).max()), 1e-12))


def _own_torque(robot: Robot, text: str) -> Torque:
    again = parse_urdf(text, "exported file", base=robot.base, tip=robot.tip.name).with_gravity(robot.gravity)
    return lambda q, qd, qdd: inverse_dynamics(again, q, qd, qdd)[0]


def _without_shapes(text: str) -> str:
    """The description without meshes and shapes, whose files a reader might not find and dynamics does not need."""
    root = ElementTree.fromstring(text)  # noqa: S314 - text of our own writing
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    return ElementTree.tostring(root, encoding="unicode")


def _mujoco_torque(robot: Robot, text: str, gravity: FloatArray) -> Torque:
    """MuJoCo's inverse dynamics with everything but the links switched off; gravity in the file's root [m/s^2]."""
    try:
        import mujoco
    except ImportError:
        raise MissingDependencyError("mujoco", "reading an exported file back", "sim") from None
    try:
        model = mujoco.MjModel.from_xml_string(_without_shapes(text))
    except ValueError as error:
        raise _UnreadableError("MuJoCo", str(error)) from None
    model.opt.gravity[:] = gravity
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    model.dof_damping[:] = 0.0
    model.dof_armature[:] = 0.0
    model.jnt_stiffness[:] = 0.0
    if model.ntendon:
        model.tendon_damping[:] = 0.0
        model.tendon_armature[:] = 0.0
    data = mujoco.MjData(model)
    places = [int(model.joint(name).qposadr[0]) for name in robot.joint_names]
    speeds = [int(model.joint(name).dofadr[0]) for name in robot.joint_names]
    rest = np.zeros(model.nq)
    for start in model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]:
        rest[start : start + 7] = model.qpos0[start : start + 7]  # where a base that is free to move stands

    def torque(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        data.qpos[:], data.qvel[:], data.qacc[:] = rest, 0.0, 0.0
        data.qpos[places], data.qvel[speeds], data.qacc[speeds] = q, qd, qdd
        mujoco.mj_inverse(model, data)
        return np.array(data.qfrc_inverse[speeds])

    return torque


def _pinocchio_torque(robot: Robot, text: str, gravity: FloatArray) -> Torque | None:
    """Pinocchio's recursive Newton-Euler, gravity in the file's root; None when Pinocchio is not installed."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    try:
        model = pin.buildModelFromXML(_without_shapes(text))
    except ValueError as error:
        raise _UnreadableError("Pinocchio", str(error)) from None
    model.gravity.linear = np.array(gravity)
    data = model.createData()
    neutral = pin.neutral(model)
    ids = [model.getJointId(name) for name in robot.joint_names]

    def torque(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        x, v, a = neutral.copy(), np.zeros(model.nv), np.zeros(model.nv)
        for k, index in enumerate(ids):
            place, speed = model.idx_qs[index], model.idx_vs[index]
            # A continuous joint is stored as cosine and sine.
            x[place : place + model.nqs[index]] = [q[k]] if model.nqs[index] == 1 else [np.cos(q[k]), np.sin(q[k])]
            v[speed], a[speed] = qd[k], qdd[k]
        tau = pin.rnea(model, data, x, v, a)
        return np.array([tau[model.idx_vs[index]] for index in ids])

    return torque


def mujoco_model(robot: Robot, text: str) -> Torque:
    """Rigid torque of an MJCF file as MuJoCo computes it, in the file's own gravity.

    Args:
        robot: what the file is about.
        text: of the file.
    """
    return _mujoco_torque(robot, text, robot.gravity)


def pinocchio_model(robot: Robot, text: str) -> Torque | None:
    """Rigid torque of a URDF as Pinocchio computes it; None when it is not installed.

    Args:
        robot: what the file is about.
        text: of the file.
    """
    turned = orientation_in_root(read_urdf(text, "exported file"), robot.base)
    return _pinocchio_torque(robot, text, turned @ robot.gravity)
