"""One link at a time: which bodies fixed to it might as well be fixed to the link before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.identifiability.base import base_parameters
from armid.identifiability.errors import NothingIdentifiableError, UnsupportedClosedFormError
from armid.identifiability.rank import ZERO_COLUMN
from armid.kernels.source import Row, RowSource
from armid.parameters.inertial import N_INERTIAL, transformed
from armid.parameters.space import OwnerKind, ParameterSpace
from armid.recursion.placement import Placement
from armid.recursion.scalars import transpose_times
from armid.recursion.symbols import FieldScalars, with_exact_angles
from armid.robot.elementary import Elementary, product
from armid.robot.robot import JointKind, Robot


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One link (or the payload) with its joint.

    Args:
        link_start: column of the link's mass, None when the vector has no inertial parameters.
        parent_start: column of the previous link's mass, None at the base.
        before: from the previous link's frame to the joint's own frame, the variable at q = 0.
        after: from the joint's own frame to the link's frame.
        drives: columns of the joint's rotor inertia, friction and offset.
    """

    link_start: int | None
    parent_start: int | None
    before: tuple[Elementary, ...]
    after: tuple[Elementary, ...]
    drives: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NullVectors:
    """A basis of D_i in reduced form.

    Args:
        pivots: the places where the basis is the identity.
        basis: shape [dimension, 10 + drives].
    """

    pivots: tuple[int, ...]
    basis: FloatArray


def blocks_of(robot: Robot, space: ParameterSpace) -> list[Block]:
    """Blocks from base to tip, the payload last, behind a rigid joint."""
    n = robot.n_joints
    out = []
    for i, joint in enumerate(robot.joints):
        k = joint.variable_index
        variable = replace(joint.transforms[k], variable=False, sign=1)
        out.append(
            Block(
                link_start=space.first_of(OwnerKind.LINK, i),
                parent_start=space.first_of(OwnerKind.LINK, i - 1),
                before=(*joint.transforms[:k], variable),
                after=joint.transforms[k + 1 :],
                drives=_drive_columns(space, OwnerKind.JOINT, i),
            )
        )
    start = space.first_of(OwnerKind.PAYLOAD, n)
    if start is not None:
        out.append(
            Block(
                link_start=start,
                parent_start=space.first_of(OwnerKind.LINK, n - 1),
                before=(),
                after=(),
                drives=_drive_columns(space, OwnerKind.PAYLOAD, n),
            )
        )
    return out


def _drive_columns(space: ParameterSpace, kind: OwnerKind, body: int) -> tuple[int, ...]:
    """Columns of everything that belongs to a joint or the payload without being one of a body's ten."""
    return tuple(i for i, p in enumerate(space) if p.kind is kind and p.body == body and p.component is None)


def _change_of_frame(T: FloatArray) -> FloatArray:
    """The 10 x 10 matrix that expresses a body's parameters in another frame."""
    return np.column_stack([transformed(e, T) for e in np.eye(N_INERTIAL)])


def block_null_vectors(block: Block, A: FloatArray) -> NullVectors:
    """D_i from rows at random samples.

    Args:
        block: the link.
        A: rows over all standard parameters, shape [m, p].
    """
    size = N_INERTIAL + len(block.drives)
    B = np.zeros((len(A), size))
    reference = 0.0
    if block.link_start is not None:
        T_link_axis: FloatArray = np.asarray(np.linalg.inv(product(block.after)), dtype=np.float64)
        own = A[:, block.link_start : block.link_start + N_INERTIAL] @ _change_of_frame(T_link_axis)
        reference = float(np.linalg.norm(own, axis=0).max())
        B[:, :N_INERTIAL] = own
        if block.parent_start is not None:
            parent = A[:, block.parent_start : block.parent_start + N_INERTIAL]
            B[:, :N_INERTIAL] -= parent @ _change_of_frame(product(block.before))
    B[:, N_INERTIAL:] = A[:, list(block.drives)]
    B[:, np.linalg.norm(B, axis=0) < ZERO_COLUMN * 10 * reference] = 0.0
    try:
        local = base_parameters(B)
    except NothingIdentifiableError:
        return NullVectors(tuple(range(size)), np.eye(size))
    return NullVectors(tuple(int(i) for i in local.dependent), local.null_space.T)


def inertial_transform(T: Placement, ten: Sequence[Any], *, inverse: bool) -> list[Any]:
    """A body's parameters seen from the outer frame of T, or with `inverse` from the inner one, on any exact scalar.

    m' = m, h' = R h + m p, I' = R I R^T + 2 (p . R h) 1 - p (R h)^T - (R h) p^T + m (p . p 1 - p p^T).
    """
    R, p = T.R, T.p
    if inverse:
        R = tuple(tuple(T.R[j][i] for j in range(3)) for i in range(3))  # type: ignore[assignment]
        x, y, z = transpose_times(T.R, T.p)
        p = (-x, -y, -z)
    m, h = ten[0], ten[1:4]
    xx, xy, xz, yy, yz, zz = ten[4:10]
    I = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    k = [sum((R[i][j] * h[j] for j in range(3)), start=0 * m) for i in range(3)]
    trace = 2 * sum((p[i] * k[i] for i in range(3)), start=0 * m) + m * sum((x * x for x in p), start=0 * m)
    out = [m, *(k[i] + m * p[i] for i in range(3))]
    for a in range(3):
        for b in range(a, 3):
            turned = sum((R[a][i] * I[i][j] * R[b][j] for i in range(3) for j in range(3)), start=0 * m)
            shifted = p[a] * k[b] + k[a] * p[b] + m * p[a] * p[b]
            out.append(turned - shifted + (trace if a == b else 0 * m))
    return out


def exact_null_vectors(block: Block, sources: Sequence[Any], scalars: FieldScalars) -> list[list[Any]]:
    """D_i by exact elimination with the lengths as symbols, at rational samples."""
    size = N_INERTIAL + len(block.drives)
    exact = [replace(source, robot=with_exact_angles(source.robot)) for source in sources]
    rng = np.random.default_rng(11)
    frames = _body_frames(block, scalars)
    echelon: dict[int, dict[int, Any]] = {}
    stale = 0
    # Three samples in a row without a new direction: the chance that a direction hides from all of them is nil.
    while stale < 3:
        before = len(echelon)
        for source in exact:
            for row in source.rows(_rational_inputs(source, rng, scalars), scalars):
                _insert(echelon, _difference_row(block, row, frames))
        stale = stale + 1 if len(echelon) == before else 0
    return _kernel(echelon, size, scalars)


def _rational_inputs(source: RowSource, rng: np.random.Generator, scalars: FieldScalars) -> list[Any]:
    """A sample with small rational numbers; positions of revolute joints as exact angles."""
    robot: Robot = source.robot  # type: ignore[attr-defined]
    if robot.coupling is not None:
        raise UnsupportedClosedFormError(f"{robot.name}: drives that move several joints have no closed form here")
    out = []
    # Positions are the first inputs of every source that belongs to an arm.
    turns = [joint.kind is JointKind.REVOLUTE for joint in robot.joints]
    for k in range(len(source.inputs)):
        draw = Fraction(int(rng.integers(1, 9)) * int(rng.choice([-1, 1])), int(rng.integers(1, 9)))
        out.append(scalars.angle(draw) if k < len(turns) and turns[k] else scalars.number(draw))
    return out


def _body_frames(block: Block, scalars: FieldScalars) -> list[list[tuple[int, Any]]]:
    """Per parameter of a body in the joint's frame: columns and weights of it on this link and off the one before."""
    out: list[list[tuple[int, Any]]] = []
    for c in range(N_INERTIAL):
        unit = [scalars.constant(float(c == j)) for j in range(N_INERTIAL)]
        weights: list[tuple[int, Any]] = []
        for start, elements, own in ((block.link_start, block.after, True), (block.parent_start, block.before, False)):
            if start is not None:
                body = inertial_transform(scalars.placement(elements), unit, inverse=own)
                weights += [(start + k, x if own else -x) for k, x in enumerate(body) if x]
        out.append(weights)
    return out


def _difference_row(block: Block, row: Row, frames: Sequence[Sequence[tuple[int, Any]]]) -> dict[int, Any]:
    """The row of `body on this link minus the same body on the link before`, over the joint's frame and the drives."""
    out: dict[int, Any] = {}
    for c, weights in enumerate(frames):
        parts = [row[j] * x for j, x in weights if j in row]
        total = sum(parts[1:], start=parts[0]) if parts else None
        if total:
            out[c] = total
    return out | {N_INERTIAL + k: row[j] for k, j in enumerate(block.drives) if row.get(j)}


def _insert(echelon: dict[int, dict[int, Any]], row: dict[int, Any]) -> None:
    """One more row of a reduced echelon form (pivot on the lowest index)."""
    for pivot, other in echelon.items():
        row = minus(row, row.get(pivot), other)
    if not row:
        return
    pivot = min(row)
    scale = row[pivot]
    row = {i: x / scale for i, x in row.items()}
    for p in echelon:
        echelon[p] = minus(echelon[p], echelon[p].get(pivot), row)
    echelon[pivot] = row


def minus(v: dict[int, Any], factor: Any, w: dict[int, Any]) -> dict[int, Any]:
    """The sparse vector v - factor w without zeros."""
    if not factor:
        return v
    out = dict(v)
    for i, x in w.items():
        value = out[i] - factor * x if i in out else -factor * x
        if value:
            out[i] = value
        else:
            out.pop(i, None)
    return out


def _kernel(echelon: dict[int, dict[int, Any]], size: int, scalars: FieldScalars) -> list[list[Any]]:
    """The null space of a reduced echelon form, one vector per free column."""
    out = []
    for free in range(size):
        if free in echelon:
            continue
        vector = [scalars.constant(0.0)] * size
        vector[free] = scalars.constant(1.0)
        for pivot, row in echelon.items():
            if free in row:
                vector[pivot] = -row[free]
        out.append(vector)
    return out
