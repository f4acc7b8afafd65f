"""Does a recording contradict itself? A target that slipped, a tracker that moved, an arm that warmed up.

Each of these moves one frame, at once or little by little, from some configuration on. Its columns, times a step or a ramp along
the recording, are held against the residuals: with `G_b`, `s_b` the products `A^T A` and `A^T r` of consecutive blocks of rows,
the gain of a frame that changes is closed form in sums of them, for every place where it could.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.leave_out import fit_weights
from armid.calibration.noise import lengths
from armid.calibration.thresholds import CHANGE_BY_CHANCE, CHANGE_MATTERS, PATTERN
from armid.kinematics.measurement import IntArray, Measurements
from armid.notes import Note, Severity
from armid.parameters.space import OwnerKind
from armid.rows.pose_residual import parts, residuals

_BLOCKS = 40
"""Places along the recording where a change is looked for first."""
_PER_BLOCK = 2
"""Configurations that a block holds at least."""
_FEWEST = 8
"""Blocks below which nothing can be said about a change."""
_EDGE = 0.1
"""Share of the recording at either end where a change is not looked for: what lasts no longer is a run of outliers."""
_BINS = 8
"""Bins of a joint's range and of the recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameChange:
    """A sensor or tool frame that does not stay where it is.

    Args:
        frame: its name.
        sudden: at one configuration, or little by little over the whole recording.
        label: file and line of the first configuration after a sudden change.
        moved: how far it moves the target, root mean square [m; rad where no position was measured].
        confounded: rows before and after lie in different joint ranges, where a model that errs there looks the same.
        statistic, limit: gain per number of the frame, in units of what consecutive blocks show, and what chance reaches.
        evidence: gain over all numbers of the frame in the same units, less what as many numbers gain by chance ([Schwarz1978]).
        also: other frames whose change explains the rows nearly as well.
    """

    frame: str
    sudden: bool
    label: str
    moved: float
    confounded: bool
    statistic: float
    limit: float
    evidence: float
    also: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class _Blocks:
    """Sums over consecutive configurations: `A^T A` [b, p, p] and `A^T r` [b, p], and the inverse of everything known [p, p]."""

    G: FloatArray
    s: FloatArray
    C: FloatArray


def frame_changes(fit: KinematicFit, measurements: Measurements) -> tuple[FrameChange, ...]:
    """The frame that changes along the recording beyond doubt, if one does."""
    from scipy.special import fdtri

    order = _in_order(measurements)
    count = min(_BLOCKS, len(order) // _PER_BLOCK)
    if count < _FEWEST:
        return ()
    label: IntArray = np.empty(len(measurements.q), dtype=np.intp)
    for number, groups in enumerate(np.array_split(order, count)):
        label[np.isin(measurements.group, groups)] = number
    scores = _blocks(fit, measurements, label, count)
    found: list[FrameChange] = []
    for name, columns in _frames(fit):
        seen = np.flatnonzero(np.einsum("bii->b", scores.G[:, columns][:, :, columns]) > 0.0)
        if len(seen) < _FEWEST:
            continue
        edge = max(2, round(_EDGE * len(seen)))
        steps = [(_gain(scores, columns, np.arange(count) >= k), int(k)) for k in seen[edge : len(seen) - edge + 1]]
        along = np.interp(np.arange(count), seen, (np.arange(len(seen)) + 0.5) / len(seen))
        ramp = _gain(scores, columns, along)
        (best, place) = max(steps, key=lambda pair: pair[0][0])
        sudden = best[0] >= ramp[0]
        gain, change = best if sudden else ramp
        weights = (np.arange(count) >= place).astype(float) if sudden else along
        ordinary = _ordinary(scores, columns, seen, weights, change)
        statistic = gain / len(columns) / ordinary
        limit = float(fdtri(len(columns), len(seen), 1.0 - CHANGE_BY_CHANCE.value / len(seen)))
        if statistic > limit:
            row = _first_row(fit, measurements, label, columns, place) if sudden else int(np.argmin(label))
            found.append(
                FrameChange(
                    frame=name,
                    sudden=sudden,
                    label=measurements.labels[row],
                    moved=_moved(fit, measurements, columns, change),
                    confounded=sudden and told_by_joints(measurements.q, label >= place),
                    statistic=statistic,
                    limit=limit,
                    evidence=gain / ordinary - len(columns) * log(len(seen)),
                )
            )
    return clearest(found)


_UNDECIDED = 2.0 * log(100.0)
"""Difference of evidence (twice a log-likelihood) below which neither is a hundred times as likely as the other."""


def clearest(found: list[FrameChange]) -> tuple[FrameChange, ...]:
    """The clearest change; sensor and tool share most of what a change of either does, so others may explain it as well."""
    if not found:
        return ()
    best = max(found, key=lambda x: x.evidence)
    also = tuple(x.frame for x in found if x is not best and x.evidence > best.evidence - _UNDECIDED)
    return (replace(best, also=also),)


def _in_order(measurements: Measurements) -> IntArray:
    groups, first = np.unique(measurements.group, return_index=True)
    return np.asarray(groups[np.argsort(first)], dtype=np.intp)


def _frames(fit: KinematicFit) -> Iterator[tuple[str, IntArray]]:
    """Frames with the places of their fitted numbers among the fitted parameters."""
    kept = np.flatnonzero(fit.after.selection.kept)
    frames: dict[str, list[int]] = {}
    for place, k in enumerate(kept):
        parameter = fit.model.parameters[k]
        if parameter.kind in (OwnerKind.SETUP, OwnerKind.TARGET):
            frames.setdefault(parameter.frame, []).append(place)
    for name, places in frames.items():
        yield name, np.array(places, dtype=np.intp)


def _blocks(fit: KinematicFit, measurements: Measurements, label: IntArray, count: int) -> _Blocks:
    kept = fit.after.selection.kept
    p = int(kept.sum())
    G, s = np.zeros((count, p, p)), np.zeros((count, p))
    for r in residuals(fit.model, fit.after.values, measurements, wanted=kept):
        w = fit_weights(fit, r)
        A, z, own = r.D * w, r.r * w, label[r.observations.rows]
        for b in np.unique(own):
            rows = A[:, :, own == b].reshape(p, -1)
            G[b] += rows @ rows.T
            s[b] += rows @ z[:, own == b].ravel()
    prior = np.diag(1.0 / fit.after.prior[kept] ** 2)
    return _Blocks(G, s, np.linalg.inv(G.sum(axis=0) + prior))


def _gain(scores: _Blocks, columns: IntArray, weights: npt.NDArray[np.generic]) -> tuple[float, FloatArray]:
    """What columns times weights along the recording would take off the cost, and their coefficients."""
    w = np.asarray(weights, dtype=np.float64)
    cross = np.einsum("b,bij->ij", w, scores.G[:, columns])
    own = np.einsum("b,bij->ij", w**2, scores.G[:, columns][:, :, columns])
    left = own - cross @ scores.C @ cross.T
    u = w @ scores.s[:, columns] - cross @ (scores.C @ scores.s.sum(axis=0))
    # Directions of the change that the other parameters take up entirely say nothing.
    values, vectors = np.linalg.eigh((left + left.T) / 2.0)
    scale = np.maximum(np.einsum("ij,jk,ki->i", vectors.T, own, vectors), 1e-300)
    good = values > 1e-6 * scale
    change = vectors[:, good] @ ((vectors[:, good].T @ u) / values[good])
    return float(u @ change), change


def _ordinary(scores: _Blocks, columns: IntArray, seen: IntArray, weights: FloatArray, change: FloatArray) -> float:
    """How much more a frame's scores scatter over the blocks that see it than independent residuals would; at least one."""
    shift = scores.C @ np.einsum("b,bij->ij", weights, scores.G[:, columns]).T @ change
    out = []
    for G, s, w in zip(scores.G[seen], scores.s[seen], weights[seen], strict=True):
        own = G[np.ix_(columns, columns)]
        left = s[columns] - w * (own @ change) + G[columns] @ shift
        values, vectors = np.linalg.eigh(own)
        good = values > 1e-6 * values[-1]
        out.append(float(np.mean((vectors[:, good].T @ left) ** 2 / values[good])))
    return max(1.0, float(np.mean(out)))


def _first_row(fit: KinematicFit, measurements: Measurements, label: IntArray, columns: IntArray, place: int) -> int:
    """The first configuration after a sudden change, among the two blocks around it."""
    near = np.flatnonzero((label == place - 1) | (label == place))
    fine = np.where(label < place - 1, 0, np.where(label > place, len(near) + 1, 0)).astype(np.intp)
    fine[near] = np.arange(1, len(near) + 1)
    scores = _blocks(fit, measurements, fine, len(near) + 2)
    steps = [_gain(scores, columns, np.arange(len(near) + 2) >= k)[0] for k in range(1, len(near) + 1)]
    return int(near[int(np.argmax(steps))])


_NEAREST = 3
"""Neighbours in joint space that are asked on which side of a change a configuration is."""
_TOLD_BY_JOINTS = 0.9
"""Share of the configurations on either side, in the mean, that are told rightly: a model error tells them as well."""


def told_by_joints(q: FloatArray, side: npt.NDArray[np.bool_]) -> bool:
    """Whether joint positions alone tell one side from the other: a model error then looks like a moved frame.

    Either the value of one joint tells them, or the nearest configurations in joint space lie on the same side.

    Args:
        q: joint positions [rad or m], shape [n, n_joints].
        side: of a change, or of two files, shape [n].
    """
    # One row for what was seen of several targets at one configuration: it would be its own neighbour.
    known = np.unique(np.column_stack([q, side]), axis=0, return_index=True)[1]
    some = np.sort(known)[:: max(1, len(known) // 500)]
    q, side = q[some], side[some]
    if side.all() or not side.any():
        return False
    scaled = (q - q.mean(axis=0)) / np.maximum(q.std(axis=0), 1e-9)
    away = ((scaled[:, np.newaxis] - scaled[np.newaxis]) ** 2).sum(axis=2)
    away[np.arange(len(q)), np.arange(len(q))] = np.inf
    near = np.argsort(away, axis=1)[:, :_NEAREST]
    right = (side[near].mean(axis=1) > 0.5) == side
    neighbours = (right[side].mean() + right[~side].mean()) / 2.0
    return bool(max(neighbours, *(_told_by_one(x, side) for x in q.T)) > _TOLD_BY_JOINTS)


def _told_by_one(values: FloatArray, side: npt.NDArray[np.bool_]) -> float:
    """Share of either side that the best threshold on one joint tells, shape [n] -> its mean over both sides."""
    at = np.sort(values)
    below = [np.searchsorted(np.sort(values[x]), at, side="right") / x.sum() for x in (side, ~side)]
    return float(0.5 + 0.5 * np.abs(below[0] - below[1]).max())


def _moved(fit: KinematicFit, measurements: Measurements, columns: IntArray, change: FloatArray) -> float:
    """How far a change of a frame moves its targets, root mean square [m; rad where no position was measured]."""
    squares: dict[str, list[FloatArray]] = {}
    for r in residuals(fit.model, fit.after.values, measurements, wanted=fit.after.selection.kept):
        for part, rows in parts(r.observations.quantity):
            by = np.einsum("pcm,p->cm", r.D[columns][:, rows], change)
            if by.any():
                squares.setdefault("orientation" if part == "orientation" else "position", []).append(lengths(by) ** 2)
    found = squares.get("position") or squares.get("orientation") or [np.zeros(1)]
    return float(np.sqrt(np.mean(np.concatenate(found))))


def change_notes(changes: tuple[FrameChange, ...], unexplained: float, unit: str) -> list[Note]:
    """What the changes are in words; an error where they are as large as what stays unexplained.

    Args:
        changes: found.
        unexplained: root mean square of the residual vectors [m or rad].
        unit: of a thousandth of it.
    """
    notes = []
    for x in changes:
        size = f"{1e3 * x.moved:.2g} {unit} (F = {x.statistic:.3g}, chance reaches {x.limit:.3g})"
        when = f"moves at {x.label}" if x.sudden else "drifts from the first row to the last"
        cause = (
            "it slipped, or was touched"
            if x.sudden
            else "something warmed up, or gave way; held-out errors are of this recording, and a later one would show more"
        )
        if x.confounded:
            cause += "; or the model errs where the arm stood then, since joints alone tell these rows from the others"
        severe = x.moved > CHANGE_MATTERS.value * unexplained and not x.confounded
        name = f"{x.frame} (or {', '.join(x.also)}: these rows do not tell which)" if x.also else x.frame
        text = f"the recording contradicts itself: {name} {when}, by {size}: {cause}"
        notes.append(Note("frame-change", Severity.ERROR if severe else Severity.WARNING, text, x.frame))
    return notes


def residual_patterns(fit: KinematicFit, measurements: Measurements) -> dict[str, float]:
    """Share of the residuals' variance that bins of the recording, of time and of every joint explain, beyond chance."""
    ways: dict[str, FloatArray] = {"recording": np.arange(len(measurements.q), dtype=np.float64)}
    ways |= {name: x for name, x in measurements.conditions.items() if np.ptp(x) > 0.0}
    names = fit.model.robot.joint_names
    ways |= {name: q for name, q in zip(names, measurements.q.T, strict=True) if np.ptp(q) > 0.0}
    return {name: _explained_share(fit, values) for name, values in ways.items()}


def _explained_share(fit: KinematicFit, values: FloatArray) -> float:
    edges = np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    total, inside, bins, rows = 0.0, 0.0, 0, 0
    for r in fit.after.residuals:
        z = (r.r / fit.after.noise.sigma(r.observations)).T
        which = np.searchsorted(edges, values[r.observations.rows], side="right")
        total += float(np.sum(z**2))
        rows += len(z)
        for b in np.unique(which):
            own = z[which == b]
            inside += float(len(own) * np.sum(own.mean(axis=0) ** 2))
            bins += 1
    by_chance = bins / max(rows, 1)
    return max(0.0, (inside / total - by_chance) / max(1.0 - by_chance, 1e-9)) if total > 0.0 else 0.0


def pattern_notes(patterns: dict[str, float]) -> list[Note]:
    """What the residuals follow."""
    strong = sorted(((share, name) for name, share in patterns.items() if share > PATTERN.value), reverse=True)
    if not strong:
        return []
    words = {"recording": "the recording"}
    told = ", ".join(f"{words.get(name, name)} ({100 * share:.0f} % of their variance)" for share, name in strong)
    text = f"residuals follow {told}: gear errors, sag or drift that the model does not have"
    return [Note("residual-patterns", Severity.INFO, text)]
