"""Where each link stands in the one before it, on any scalar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import cos, pi, sin

from armid.recursion.scalars import Matrix, Scalar, Scalars, Vector, add, cross, matmul, scale, times, transpose_times
from armid.robot.elementary import Elementary
from armid.robot.robot import Joint


@dataclass(frozen=True, slots=True)
class Placement:
    """A rigid transform: `x_parent = R x_child + p`."""

    R: Matrix
    p: Vector

    def then(self, inner: Placement) -> Placement:
        """T_a_c = T_a_b T_b_c."""
        return Placement(matmul(self.R, inner.R), add(self.p, times(self.R, inner.p)))


def identity(scalars: Scalars) -> Placement:
    zero, one = scalars.constant(0.0), scalars.constant(1.0)
    return Placement(((one, zero, zero), (zero, one, zero), (zero, zero, one)), (zero, zero, zero))


def _unit(axis: int, scalars: Scalars) -> Vector:
    zero, one = scalars.constant(0.0), scalars.constant(1.0)
    return tuple(one if i == axis else zero for i in range(3))


def rotation(axis: int, c: Scalar, s: Scalar, scalars: Scalars) -> Matrix:
    """Rotation about a coordinate axis by the angle with cosine c and sine s."""
    rows = [list(row) for row in identity(scalars).R]
    j, k = (axis + 1) % 3, (axis + 2) % 3
    rows[j][j], rows[j][k], rows[k][j], rows[k][k] = c, -s, s, c
    return tuple(tuple(row) for row in rows)  # type: ignore[return-value]


def elementary(element: Elementary, q: Scalar | None, scalars: Scalars) -> Placement:
    """One elementary transform; q is the joint variable, used only when the element is variable."""
    motion, eye = element.motion, identity(scalars)
    if not motion.is_rotation:
        amount = scalars.constant(element.value, element.symbol)
        if element.variable:
            amount = amount + q if element.sign > 0 else amount - q
        p = tuple(amount if i == motion.axis else eye.p[i] for i in range(3))
        return Placement(eye.R, p)
    if element.symbol is not None and not element.variable:
        angle = scalars.constant(element.value, element.symbol)
        return Placement(rotation(motion.axis, scalars.cos(angle), scalars.sin(angle), scalars), eye.p)
    c0, s0 = scalars.constant(cos(element.value)), scalars.constant(sin(element.value))
    if not element.variable:
        return Placement(rotation(motion.axis, c0, s0, scalars), eye.p)
    c, s = scalars.cos(q), scalars.sin(q)
    if element.sign < 0:
        s = -s
    if element.value != 0.0:
        # Angle sum written out: a right-angle offset costs nothing, and sin and cos are always taken of q itself.
        c, s = c0 * c - s0 * s, s0 * c + c0 * s
    return Placement(rotation(motion.axis, c, s, scalars), eye.p)


def _chain(elements: Iterable[Elementary], q: Scalar | None, scalars: Scalars) -> Placement:
    """Product of elementary transforms."""
    total = identity(scalars)
    for element in elements:
        total = total.then(elementary(element, q, scalars))
    return total


@dataclass(frozen=True, slots=True)
class JointPlacement:
    """One joint at one position.

    Args:
        placement: T_parent_link.
        angular, linear: the joint's unit twist (angular and linear part at the link origin), in the *link* frame; constant.
    """

    placement: Placement
    angular: Vector
    linear: Vector


def joint_placement(joint: Joint, q: Scalar, scalars: Scalars) -> JointPlacement:
    """T_parent_link(q) and the twist S with d/dq T = T [S]."""
    k = joint.variable_index
    element = joint.transforms[k]
    before = _chain(joint.transforms[:k], None, scalars)
    after = _chain(joint.transforms[k + 1 :], None, scalars)
    moved = before.then(elementary(element, q, scalars))
    sign = scalars.constant(float(element.sign))
    # The axis seen from the link frame, which lies behind the transforms after the variable.
    axis = scale(sign, transpose_times(after.R, _unit(element.motion.axis, scalars)))
    zero = scalars.constant(0.0)
    if element.motion.is_rotation:
        # Velocity of the link origin, at `after.p` from the axis: w x p, in link axes.
        linear = transpose_times(after.R, cross(scale(sign, _unit(element.motion.axis, scalars)), after.p))
        return JointPlacement(moved.then(after), axis, linear)
    return JointPlacement(moved.then(after), (zero, zero, zero), axis)


def is_right_angle(value: float) -> bool:
    """Whether an angle is a multiple of 90 degrees up to round-off."""
    turns = value / (pi / 2)
    return abs(turns - round(turns)) < 1e-9
