"""Where the sensors stand and where the targets sit, before anything is known about them.

For a target at X on the flange seen from a sensor at Z: `T_measured_i = Z T_flange_i X`. Rotations come from alternating
means over many starts, which also works when all relative rotations share one axis (hand-eye formulas divide by zero
there); positions from absolute orientation and a linear system whose undetermined directions stay at their nominal value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.measurement import KnownPlace, Measurements, Observations, Observed
from armid.kinematics.model import FrameModel, known_cluster
from armid.kinematics.rotations import nearest_rotation, rigid
from armid.robot.elementary import Move
from armid.robot.robot import Frame, Robot

_ENOUGH = 200
"""Configurations used for a start value; more change it by less than the first iteration does."""
_ROUNDS = 40
"""Alternations between sensor and target; each contracts the error by the spread of orientations."""
_WEAK = 0.02
"""Directions of the tool offset that move the target by less than this fraction are left at nominal."""

ALL = (Move.TX, Move.TY, Move.TZ, Move.RX, Move.RY, Move.RZ)
TRANSLATIONS = ALL[:3]
_SETUP_MOTIONS = {
    Observed.POINT: TRANSLATIONS,
    Observed.DISTANCE: TRANSLATIONS,
    Observed.PLANE: (Move.TZ, Move.RX, Move.RY),
}


@dataclass(frozen=True, eq=False)
class StartFrames:
    """Start values: T_sensor_base of every setup and T_link_target of every target."""

    setups: dict[str, FloatArray]
    targets: dict[str, FloatArray]

    def models(self, measurements: Measurements) -> tuple[dict[str, FrameModel], dict[str, FrameModel]]:
        """Frames around these values with the freedom that the observations can see."""
        seen: dict[str, set[Observed]] = {}
        looked: dict[str, set[tuple[Move, ...]]] = {}
        riding = {o.target for o in measurements.observations if o.riding}
        for o in measurements.observations:
            seen.setdefault(o.target, set()).add(o.quantity)
            # A fixed point seen by a riding sensor is a point, wherever the sensor is.
            point = o.riding and o.quantity is Observed.POSITION
            looked.setdefault(o.setup, set()).add(_SETUP_MOTIONS.get(Observed.POINT if point else o.quantity, ALL))
        setups = {
            name: FrameModel.around(T, next(iter(looked[name])) if len(looked[name]) == 1 else ALL, outside=True)
            for name, T in self.setups.items()
        }
        targets = {
            name: FrameModel.around(
                T, ALL if any(k.has_orientation for k in seen[name]) or name in riding else TRANSLATIONS, outside=False
            )
            for name, T in self.targets.items()
        }
        return setups, {**targets, **self.clusters(measurements.places)}

    def clusters(self, places: Mapping[str, KnownPlace]) -> dict[str, FrameModel]:
        """Targets at known places, around the body's frame that puts them nearest to their own start values."""
        bodies: dict[str, dict[str, FloatArray]] = {}
        for name, place in places.items():
            if name in self.targets:
                bodies.setdefault(place.body, {})[name] = np.array(place.position)
        out: dict[str, FrameModel] = {}
        for body, offsets in bodies.items():
            T = _body_frame([self.targets[name] for name in offsets], list(offsets.values()))
            out |= known_cluster(T, offsets, body=body)
        return out


_SPREAD = 1e-3
"""[m] Targets closer together than this say nothing about how their body is turned."""


def _body_frame(targets: Sequence[FloatArray], offsets: Sequence[FloatArray]) -> FloatArray:
    """T_link_body from T_link_target of targets at known places on the body."""
    seen, known = np.array([T[:3, 3] for T in targets]), np.array(offsets)
    first = targets[0][:3, :3]
    if np.linalg.norm(known - known.mean(axis=0), axis=1).max() < _SPREAD:
        rotation = first
    else:
        # Where the points leave a rotation open (two of them, or all on a line) the first target's own settles it.
        a, b = known - known.mean(axis=0), seen - seen.mean(axis=0)
        rotation = nearest_rotation(b.T @ a / (a**2).sum() + _WEAK * first)
    return rigid(rotation, (seen - known @ rotation.T).mean(axis=0))


def start_frames(robot: Robot, measurements: Measurements, *, known: StartFrames | None = None) -> StartFrames:
    """Closed-form start values for all sensors and targets; the robot's tip is the first guess of every target.

    Args:
        robot: the arm.
        measurements: what was observed.
        known: frames that are not in question.
    """
    setups: dict[str, FloatArray] = {} if known is None else dict(known.setups)
    targets: dict[str, FloatArray] = {} if known is None else dict(known.targets)
    nominal = robot.tip.T_link_frame if robot.tip.link == robot.n_joints else np.eye(4)
    order = (Observed.POSE, Observed.POSITION, Observed.ORIENTATION, Observed.POINT, Observed.DISTANCE, Observed.PLANE)
    waiting = sorted(
        (o for o in measurements.observations if o.quantity is not Observed.LENGTH),
        key=lambda o: order.index(o.quantity),
    )
    while waiting:
        # Those that share a known frame come first: each fixes the other side.
        k = next((k for k, o in enumerate(waiting) if o.setup in setups or o.target in targets), 0)
        o = waiting.pop(k)
        flange = _flange_poses(robot, measurements.q, o)
        Z, X = _solve_frames(o, flange, setups.get(o.setup), targets.get(o.target), nominal)
        setups.setdefault(o.setup, Z)
        targets.setdefault(o.target, X)
    for o in measurements.observations:
        targets.setdefault(o.target, nominal)
    return StartFrames(
        {name: setups[name] for name in measurements.setups}, {name: targets[name] for name in measurements.targets}
    )


def chosen(o: Observations) -> slice:
    """An even selection of at most `_ENOUGH` rows."""
    return slice(None, None, max(1, len(o) // _ENOUGH))


def _flange_poses(robot: Robot, q: FloatArray, o: Observations) -> FloatArray:
    """T_base_link of the last link at the chosen rows."""
    return forward_kinematics(robot, q[o.rows[chosen(o)]], Frame("last", robot.n_joints))


def _solve_frames(
    o: Observations, flange: FloatArray, Z: FloatArray | None, X: FloatArray | None, nominal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """T_sensor_base and T_link_target from one set of observations; a known one is kept."""
    R, p = flange[:, :3, :3], flange[:, :3, 3]
    match o.quantity:
        case Observed.POINT:
            return _touch(R, p, Z, X, nominal)
        case Observed.PLANE:
            X = nominal if X is None else X
            return (plane(p + R @ X[:3, 3]) if Z is None else Z), X
        case Observed.DISTANCE:
            X = nominal if X is None else X
            assert o.distance is not None
            return (_sphere(p + R @ X[:3, 3], o.distance[chosen(o)]) if Z is None else Z), X
    if o.riding and o.rotation is None:
        assert o.position is not None
        return _fixed_point(R, p, o.position[chosen(o)], Z, X)
    m, M = (None if x is None else x[chosen(o)] for x in o.in_fixed_frame())
    if m is not None and (M is None or len(m) < 3):
        return _from_positions(R, p, m, Z, X, nominal)
    assert M is not None
    Zr, Xr = _from_rotations(R, M, Z, X)
    if m is None:
        return rigid(Zr, np.zeros(3)), rigid(Xr, nominal[:3, 3])
    t, c = tool_offset(Zr, R, p, m, nominal[:3, 3] if X is None else X[:3, 3], fixed=X is not None)
    by_rotation = (rigid(Zr, c) if Z is None else Z), (rigid(Xr, t) if X is None else X)
    if Z is not None or X is not None:
        return by_rotation
    # When all rotations share an axis they leave one angle open, which only the positions show.
    by_position = _from_positions(R, p, m, None, None, nominal)
    turned = _mean_rotation(np.swapaxes(by_position[0][:3, :3] @ R, 1, 2) @ M)
    by_position = by_position[0], rigid(turned, by_position[1][:3, 3])
    return min(by_rotation, by_position, key=lambda frames: _pose_misfit(frames[0], frames[1], flange, M, m))


_LEVER = 0.5
"""[m] Distance at which an angle and a displacement count the same when two start values are compared."""


def _pose_misfit(Z: FloatArray, X: FloatArray, flange: FloatArray, M: FloatArray, m: FloatArray) -> float:
    """Mean square distance between measured and predicted poses, rotations by their effect at a lever [m^2]."""
    T = Z @ flange @ X
    away = ((T[:, :3, 3] - m) ** 2).sum(axis=1)
    turned = ((T[:, :3, :3] - M) ** 2).sum(axis=(1, 2)) / 2.0
    return float(np.mean(away + _LEVER**2 * turned))


def _cube_rotations() -> FloatArray:
    """The 24 rotations of a cube: no rotation is further than 63 degrees from one of them."""
    out = []
    for perm in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)):
        for signs in np.ndindex(2, 2, 2):
            M = np.zeros((3, 3))
            M[range(3), perm] = 1.0 - 2.0 * np.array(signs)
            if np.linalg.det(M) > 0:
                out.append(M)
    return np.array(out)


def _from_rotations(
    R: FloatArray, M: FloatArray, Z: FloatArray | None, X: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Rotations with `M_i = Zr R_i Xr`, by alternating means from 24 starts at once."""
    Zr = _cube_rotations() if Z is None else Z[np.newaxis, :3, :3]
    Xr = np.eye(3)[np.newaxis] if X is None else X[np.newaxis, :3, :3]
    if Z is None and X is not None:
        Zr = _mean_rotation(np.einsum("nij,kj,nlk->nil", M, np.eye(3), R @ X[:3, :3]))[np.newaxis]
    # All that the alternation needs of the data: the 81 sums of products of entries.
    sums = np.einsum("nab,ncd->abcd", R, M) / len(M)
    for _ in range(_ROUNDS):
        if X is None:
            Xr = nearest_rotation(np.einsum("jikl,skj->sil", sums, Zr))
        if Z is None:
            Zr = nearest_rotation(np.einsum("lkij,skj->sil", sums, Xr))
    Zr, Xr = np.broadcast_arrays(Zr, Xr)
    fitted = np.einsum("sij,jkil,skl->s", Zr, sums, Xr, optimize=True)
    best = int(np.argmax(fitted))
    return Zr[best].copy(), Xr[best].copy()


def _mean_rotation(M: FloatArray) -> FloatArray:
    """The rotation nearest to all of them."""
    return nearest_rotation(M.mean(axis=0))


def _absolute_orientation(a: FloatArray, b: FloatArray) -> FloatArray:
    """Rotation Q with `b_i = Q a_i + c` in the least-squares sense ([Arun1987])."""
    return nearest_rotation((b - b.mean(axis=0)).T @ (a - a.mean(axis=0)))


def tool_offset(
    Zr: FloatArray, R: FloatArray, p: FloatArray, m: FloatArray, nominal: FloatArray, *, fixed: bool = False
) -> tuple[FloatArray, FloatArray]:
    """T and c with `m_i = Zr (p_i + R_i t) + c`; directions of t that the orientations do not show stay nominal."""
    seen = np.einsum("ji,nj->ni", Zr, m)
    t = nominal
    if not fixed:
        A = (R - R.mean(axis=0)).reshape(-1, 3)
        left = seen - p - R @ nominal
        t = nominal + np.linalg.lstsq(A, (left - left.mean(axis=0)).ravel(), rcond=_WEAK)[0]
    c = Zr @ (seen - p - R @ t).mean(axis=0)
    return t, c


def _from_positions(
    R: FloatArray, p: FloatArray, m: FloatArray, Z: FloatArray | None, X: FloatArray | None, nominal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sensor frame and tool offset from positions alone: absolute orientation and a linear system, in turn."""
    if Z is not None:
        t, _ = tool_offset(Z[:3, :3], R, p, m, nominal[:3, 3])
        return Z, rigid(nominal[:3, :3], t)
    t0 = nominal[:3, 3] if X is None else X[:3, 3]
    Zr = _absolute_orientation(p + R @ t0, m)[np.newaxis]
    t = t0[np.newaxis]
    if X is None:
        Zr = np.concatenate([Zr, _cube_rotations()])
        Zr, t = _alternated(Zr, R, p, m, t0)
    placed = p + np.einsum("nij,sj->sni", R, t)
    turned = np.einsum("sij,snj->sni", Zr, placed)
    c = (m - turned).mean(axis=1)
    misfit = ((turned + c[:, np.newaxis] - m) ** 2).sum(axis=(1, 2))
    best = int(np.argmin(misfit))
    return rigid(Zr[best], c[best]), rigid(nominal[:3, :3], t[best]) if X is None else X


def _alternated(
    Zr: FloatArray, R: FloatArray, p: FloatArray, m: FloatArray, nominal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sensor rotations [s, 3, 3] and tool offsets [s, 3] in turn, from many starts at once."""
    offset = np.linalg.pinv((R - R.mean(axis=0)).reshape(-1, 3), rcond=_WEAK)
    centred = m - m.mean(axis=0)
    left = p + R @ nominal
    left = left - left.mean(axis=0)
    t = np.broadcast_to(nominal, (len(Zr), 3))
    for _ in range(_ROUNDS):
        seen = np.einsum("sji,nj->sni", Zr, centred) - left
        t = nominal + seen.reshape(len(Zr), -1) @ offset.T
        placed = p + np.einsum("nij,sj->sni", R, t)
        Zr = nearest_rotation(np.einsum("ni,snj->sij", centred, placed - placed.mean(axis=1, keepdims=True)))
    return Zr, t


def _touch(
    R: FloatArray, p: FloatArray, Z: FloatArray | None, X: FloatArray | None, nominal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The touched point c and the tool offset t with `p_i + R_i t = c`."""
    if X is None:
        t, _ = tool_offset(np.eye(3), R, p, np.zeros_like(p), nominal[:3, 3])
        X = rigid(nominal[:3, :3], t)
    if Z is None:
        Z = rigid(np.eye(3), -(p + R @ X[:3, 3]).mean(axis=0))
    return Z, X


def _fixed_point(
    R: FloatArray, p: FloatArray, m: FloatArray, Z: FloatArray | None, X: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """The riding sensor's frame X and the fixed point c it sees, with `p_i + R_i (Xr m_i + t) = c`: linear in all of them."""
    if X is None:
        n = len(R)
        A = np.zeros((n, 3, 15))
        A[:, :, :9] = np.einsum("nij,nk->nijk", R, m).reshape(n, 3, 9)
        A[:, :, 9:12], A[:, :, 12:] = R, -np.eye(3)
        x = np.linalg.lstsq(A.reshape(-1, 15), -p.ravel(), rcond=_WEAK**2)[0]
        Xr = nearest_rotation(np.asarray(x[:9], dtype=np.float64).reshape(3, 3))
        left = p + np.einsum("nij,nj->ni", R, m @ Xr.T)
        t, _ = tool_offset(np.eye(3), R, left, np.zeros_like(p), np.zeros(3))
        X = rigid(Xr, t)
    if Z is None:
        Z = rigid(np.eye(3), -(p + np.einsum("nij,nj->ni", R, m @ X[:3, :3].T + X[:3, 3])).mean(axis=0))
    return Z, X


def plane(points: FloatArray) -> FloatArray:
    """A frame whose z = 0 plane fits the points."""
    centre = points.mean(axis=0)
    _, _, Vt = np.linalg.svd(points - centre)
    rotation = Vt if np.linalg.det(Vt) > 0 else np.diag([1.0, -1.0, 1.0]) @ Vt
    return rigid(rotation, -rotation @ centre)


def _sphere(points: FloatArray, radius: FloatArray) -> FloatArray:
    """A frame whose origin is at the given distances from the points: linear in the centre and its square."""
    A = np.column_stack([2.0 * points, -np.ones(len(points))])
    solution = np.linalg.lstsq(A, (points**2).sum(axis=1) - radius**2, rcond=1e-6)[0]
    return rigid(np.eye(3), -solution[:3])
