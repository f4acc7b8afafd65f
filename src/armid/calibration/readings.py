"""Other ways to read the same file: every common mistake, undone, with the words for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.words import EULER, MOVING_EULER
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.rotations import matrix_from_euler, matrix_from_quaternion, rotation_exp
from armid.robot.quaternion import quaternion_from_matrix
from armid.robot.robot import JointKind, Robot

Change = Callable[[Observations], Observations]


@dataclass(frozen=True, eq=False)
class Reading:
    """The same numbers, understood otherwise.

    Args:
        cause: in words, with what to do.
        robot, measurements: as they would then be.
        common: whether the mistake is made often.
    """

    cause: str
    robot: Robot
    measurements: Measurements
    common: bool = True


def readings(robot: Robot, measurements: Measurements) -> Iterator[Reading]:
    """Every other reading there is for these measurements."""
    for cause, change, common in (*_orientation_readings(measurements), *_position_readings(measurements)):
        changed = tuple(change(o) for o in measurements.observations)
        yield Reading(cause, robot, replace(measurements, observations=changed), common)
    for cause, q, common in _joint_readings(robot, measurements.q):
        yield Reading(cause, robot, replace(measurements, q=q), common)
    yield from _coupling_readings(robot, measurements)


def only(applies: Callable[[Observations], bool], change: Change) -> Change:
    """The change where it applies, nothing elsewhere."""
    return lambda o: change(o) if applies(o) else o


def _turned(o: Observations) -> bool:
    return o.rotation is not None


def placed(o: Observations) -> bool:
    return o.position is not None


def _angular(o: Observations) -> bool:
    return o.rotation is not None and o.numbers is not None


def _orientation_readings(measurements: Measurements) -> Iterator[tuple[str, Change, bool]]:
    """Other conventions for the same three, four or nine orientation numbers."""
    observations = measurements.observations
    if any(_turned(o) and o.numbers is None for o in observations):
        for order, name in (((3, 0, 1, 2), "xyzw"), ((1, 2, 3, 0), "wxyz")):
            words = f"quaternions are in the order {' '.join(name)} (use --orientation quaternion-{name})"
            yield words, only(_turned, _requaternion(order)), True
    if any(_turned(o) for o in observations):
        yield "orientations are those of the sensor in the target frame", only(_turned, _transposed), True
    if any(_angular(o) for o in observations):
        yield from _angle_readings()


def _angle_readings() -> Iterator[tuple[str, Change, bool]]:
    """Rotation vector, degrees, and all orders of Euler angles about fixed and moving axes."""
    yield "the three angles are a rotation vector (use --orientation rotation-vector)", only(_angular, _as_vector), True
    for reading in (*EULER, *MOVING_EULER):
        order = reading.removeprefix("euler-")
        kind = "moving" if order.isupper() else "fixed"
        words = f"Euler angles are about {kind} axes {order.lower()} (use --orientation {reading})"
        yield words, only(_angular, _as_euler(order)), order.lower() in ("xyz", "zyx", "zyz")
        if order in ("xyz", "ZYX"):
            words = (
                "Euler angles are in degrees (write `orientation_angles: deg` in the mapping, or name the columns with _deg), "
                f"about {kind} axes"
            )
            yield f"{words} {order.lower()}", only(_angular, _as_euler(order, factor=np.pi / 180.0)), True


def _position_readings(measurements: Measurements) -> Iterator[tuple[str, Change, bool]]:
    """A sensor on the arm, millimetres, left-handed axes."""
    observations = measurements.observations
    seen = (Observed.POSE, Observed.POSITION, Observed.ORIENTATION)
    if any(placed(o) for o in observations):
        yield (
            "the camera rides on the arm and sees a fixed target, or poses are of the sensor in the target frame "
            "(use --sensor hand)"
            if not any(o.riding for o in observations)
            else "the sensor stands still and sees a target on the arm (use --sensor fixed)",
            only(lambda o: o.quantity in seen, lambda o: replace(o, riding=not o.riding)),
            True,
        )
        if any(placed(o) and _spread(o) > _A_METRE for o in observations):
            yield "positions are in millimetres (use --lengths mm)", only(placed, _scaled(1e-3)), True
        yield "positions are in metres, not millimetres (use --lengths m)", only(placed, _scaled(1e3)), True
        mirror = only(lambda o: o.quantity is Observed.POSITION, _mirrored)
        yield "the sensor's axes are left-handed (one coordinate has the wrong sign)", mirror, False


_A_METRE = 10.0
"""[m] Spread of positions below which they are no millimetres: the arm would have moved by less than a centimetre, and a target
that hardly moves can always be put on an axis that turns."""


def _spread(o: Observations) -> float:
    """Largest distance of a position from the middle one [m]."""
    p = np.asarray(o.position)
    return float(np.linalg.norm(p - np.median(p, axis=0), axis=1).max())


def _requaternion(order: tuple[int, ...]) -> Change:
    """Components of the quaternion in another order."""

    def change(o: Observations) -> Observations:
        quaternion = quaternion_from_matrix(np.asarray(o.rotation))
        return replace(o, rotation=matrix_from_quaternion(quaternion[:, order]))

    return change


def _transposed(o: Observations) -> Observations:
    return replace(o, rotation=np.swapaxes(np.asarray(o.rotation), 1, 2))


def _as_vector(o: Observations) -> Observations:
    return replace(o, rotation=rotation_exp(np.asarray(o.numbers)))


def _as_euler(order: str, factor: float = 1.0) -> Change:
    """The file's own three angles in another convention."""
    return lambda o: replace(o, rotation=matrix_from_euler(factor * np.asarray(o.numbers), order))


def _scaled(factor: float) -> Change:
    return lambda o: replace(o, position=factor * np.asarray(o.position))


def _mirrored(o: Observations) -> Observations:
    return replace(o, position=np.asarray(o.position) * [1.0, -1.0, 1.0])


def _joint_readings(robot: Robot, q: FloatArray) -> Iterator[tuple[str, FloatArray, bool]]:
    """Joints in another order, turning the other way, counted from elsewhere, in degrees or millimetres."""
    names, n = robot.joint_names, robot.n_joints
    revolute = np.array([joint.kind is JointKind.REVOLUTE for joint in robot.joints])
    for i, j in combinations(range(n), 2):
        order = list(range(n))
        order[i], order[j] = j, i
        yield f"joints {names[i]} and {names[j]} are swapped", q[:, order], True
    yield from _permuted(names, q)
    for i in range(n):
        yield f"joint {names[i]} has the opposite sign", _changed(q, i, -1.0, 0.0), True
        if revolute[i]:
            for degrees in (90, -90, 180):
                words = f"joint {names[i]} counts from another zero: add {degrees} deg to its readings"
                yield words, _changed(q, i, 1.0, np.radians(degrees)), False
                if degrees != 180:
                    words = f"joint {names[i]} has the opposite sign and another zero: take {degrees} deg minus its readings"
                    yield words, _changed(q, i, -1.0, np.radians(degrees)), False
    if revolute.any():
        yield "joint angles are in degrees (use --angles deg)", np.where(revolute, np.radians(q), q), True
    if not revolute.all():
        yield "prismatic joints are in millimetres (use --lengths mm)", np.where(revolute, q, 1e-3 * q), True


def _changed(q: FloatArray, joint: int, sign: float, zero: float) -> FloatArray:
    """One joint's readings with another sign and zero."""
    out = np.array(q)
    out[:, joint] = sign * out[:, joint] + zero
    return out


def _permuted(names: Sequence[str], q: FloatArray) -> Iterator[tuple[str, FloatArray, bool]]:
    """Whole orders of columns: from the tip, by the alphabet, shifted."""
    n = len(names)
    yield "joints are listed from the tip to the base", q[:, ::-1], True
    alphabetical = sorted(range(n), key=lambda i: names[i])
    if alphabetical != list(range(n)):
        # Column k of the file holds joint alphabetical[k].
        yield "joints are listed in alphabetical order", q[:, np.argsort(alphabetical)], True
    for shift in range(1, n):
        yield f"joints are shifted by {shift} columns", np.roll(q, -shift, axis=1), False


def _coupling_readings(robot: Robot, measurements: Measurements) -> Iterator[Reading]:
    """Joint 3 measured against the floor (or not), as Fanuc and parallelogram arms do."""
    if robot.coupling is not None:
        yield Reading("the joints are not coupled", replace(robot, coupling=None), measurements)
    if robot.coupling is not None or robot.n_joints < 3:
        return
    for sign in (1.0, -1.0):
        C = np.eye(robot.n_joints)
        C[2, 1] = sign
        word = "+" if sign > 0 else "-"
        cause = f"joint 3 is coupled: geometric J3 = J3 {word} J2 (add `coupling` to the robot file)"
        yield Reading(cause, replace(robot, coupling=C), measurements)
