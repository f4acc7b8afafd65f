"""Does a frame change along the recording? A target that slipped, a tracker that moved, an arm that warmed up.

Each of these moves one frame, at once or little by little, from some configuration on. Its columns, times a step or a ramp along
the recording, are held against the residuals: with `G_b`, `s_b` the products `A^T A` and `A^T r` of consecutive blocks of rows,
the gain of a frame that changes is closed form in sums of them, for every place where it could.

A change that nobody modelled is part of the residuals, and so of the noise that weighs them: a target that slips by six times the
noise of its instrument would hide behind what it added. Noise is therefore estimated again with the change taken out, sensor by
sensor and kind by kind, which is closed form in the same sums; the gain counts in that noise, as in every F test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.contradictions import told_by_joints
from armid.calibration.fit import KinematicFit
from armid.calibration.judge import find_outliers, outlier_runs
from armid.calibration.leave_out import fit_weights
from armid.calibration.noise import Component, lengths
from armid.calibration.thresholds import CHANGE_BY_CHANCE, CHANGE_MATTERS
from armid.estimation.quantiles import fisher_above
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
_ROUNDS = 3
"""Of noise without the change, and of the change in that noise; a fourth moves neither by a per cent."""
_LEAST_FREEDOM = 0.1
"""Smallest share of a component's equations that counts as left over: below it residuals do not show the noise."""


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


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Sums:
    """Products of the weighted rows of consecutive blocks, apart for every sensor and kind of channel.

    Args:
        G: `A^T A`, shape [components, blocks, p, p].
        s: `A^T r`, shape [components, blocks, p].
        squares: `r^T r`, shape [components].
        equations: behind them, shape [components].
        least: share of the variance they were weighed by that is the instrument's own, shape [components].
        prior: weights of the prior, shape [p].
        pull: what the prior adds to `A^T r` at the solution, shape [p].
    """

    G: FloatArray
    s: FloatArray
    squares: FloatArray
    equations: FloatArray
    least: FloatArray
    prior: FloatArray
    pull: FloatArray

    def weighed(self, variance: FloatArray) -> _Blocks:
        """All components together, when their variance is this much of what they were weighed by, shape [components]."""
        G, s = (np.einsum("c,cb...->b...", 1.0 / variance, x) for x in (self.G, self.s))
        return _Blocks(G, s, np.linalg.inv(G.sum(axis=0) + np.diag(self.prior)), self.pull)


@dataclass(frozen=True, eq=False, slots=True)
class _Blocks:
    """Sums over consecutive configurations: `A^T A` [b, p, p] and `A^T r` [b, p], and the inverse of everything known [p, p]."""

    G: FloatArray
    s: FloatArray
    C: FloatArray
    pull: FloatArray

    def shift(self, change: _Change) -> FloatArray:
        """How the other parameters give way to a change, shape [p]."""
        return np.asarray(-self.C @ np.einsum("b,bij->ij", change.along, self.G[:, change.columns]).T @ change.by)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Change:
    """Some columns that change along the recording.

    Args:
        columns: places of a frame's numbers among the fitted parameters, shape [k].
        along: how much of the change every block has, shape [blocks].
        by: the change, shape [k].
        gain: what it takes off the cost.
        place: the first block after it; -1 for a change little by little.
    """

    columns: IntArray
    along: FloatArray
    by: FloatArray
    gain: float
    place: int


def frame_changes(fit: KinematicFit, measurements: Measurements) -> tuple[FrameChange, ...]:
    """The frame that changes along the recording beyond doubt, if one does."""
    measurements = _without_lone_outliers(fit, measurements)
    order = _in_order(measurements)
    count = min(_BLOCKS, len(order) // _PER_BLOCK)
    if count < _FEWEST:
        return ()
    label: IntArray = np.empty(len(measurements.q), dtype=np.intp)
    for number, groups in enumerate(np.array_split(order, count)):
        label[np.isin(measurements.group, groups)] = number
    sums = _sums(fit, measurements, label, count)
    found = (_changed(fit, measurements, label, sums, name, columns) for name, columns in _frames(fit))
    return clearest([x for x in found if x is not None])


def _without_lone_outliers(fit: KinematicFit, measurements: Measurements) -> Measurements:
    """The same without single bad rows, which hide what the others show; several in a row may be what the model leaves out."""
    runs = [{x.row for x in run} for run in outlier_runs(find_outliers(fit, measurements))]
    lone = [row for run in runs if len(run) == 1 for row in run]
    return measurements.subset(~np.isin(np.arange(len(measurements.q)), lone)) if lone else measurements


def _changed(
    fit: KinematicFit, measurements: Measurements, label: IntArray, sums: _Sums, name: str, columns: IntArray
) -> FrameChange | None:
    """How one frame changes, where that is beyond chance."""
    seen = np.flatnonzero(np.einsum("cbii->b", sums.G[:, :, columns][..., columns]) > 0.0)
    if len(seen) < _FEWEST:
        return None
    variance = np.ones(len(sums.squares))
    for _ in range(_ROUNDS):
        blocks = sums.weighed(variance)
        change = _best_change(blocks, columns, seen)
        variance = _left_variance(sums, blocks, change)
    blocks = sums.weighed(variance)
    change = _best_change(blocks, columns, seen)
    ordinary = _ordinary(blocks, change, seen)
    statistic = change.gain / len(columns) / ordinary
    limit = fisher_above(CHANGE_BY_CHANCE.value / len(seen), len(columns), len(seen))
    if statistic <= limit:
        return None
    sudden = change.place >= 0
    row = _first_row(fit, measurements, label, change, variance) if sudden else int(np.argmin(label))
    return FrameChange(
        frame=name,
        sudden=sudden,
        label=measurements.labels[row],
        moved=_moved(fit, measurements, columns, change.by),
        confounded=sudden and told_by_joints(measurements.q, label >= change.place),
        statistic=statistic,
        limit=limit,
        evidence=change.gain / ordinary - len(columns) * log(len(seen)),
    )


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


def _sums(fit: KinematicFit, measurements: Measurements, label: IntArray, count: int) -> _Sums:
    """Of all rows at the solution, with the weights of the fit; blocks as labelled."""
    kept = fit.after.selection.kept
    components: dict[Component, int] = {}
    for o in measurements.observations:
        for part, _ in parts(o.quantity):
            components.setdefault((o.setup, part), len(components))
    p, size = int(kept.sum()), len(components)
    G, s = np.zeros((size, count, p, p)), np.zeros((size, count, p))
    squares, equations, own, total = np.zeros((4, size))
    for r in residuals(fit.model, fit.after.values, measurements, wanted=kept):
        w, o = fit_weights(fit, r), r.observations
        at = label[o.rows]
        for part, channels in parts(o.quantity):
            c = components[o.setup, part]
            A, z = r.D[:, channels] * w[channels], r.r[channels] * w[channels]
            for b in np.unique(at):
                rows = A[:, :, at == b].reshape(p, -1)
                G[c, b] += rows @ rows.T
                s[c, b] += rows @ z[:, at == b].ravel()
            squares[c] += float(np.sum(z**2))
            equations[c] += z.size
            own[c] += float(np.sum(o.noise.T[channels] ** 2))
            total[c] += float(np.sum(fit.after.noise.sigma(o)[channels] ** 2))
    prior = 1.0 / fit.after.prior[kept] ** 2
    pull = -prior * fit.after.values[kept]
    least = np.maximum(own / total, _SAME)
    return _Sums(G=G, s=s, squares=squares, equations=equations, least=least, prior=prior, pull=pull)


_SAME = 1e-6
"""Share of a variance below which it is round-off."""


def _best_change(blocks: _Blocks, columns: IntArray, seen: IntArray) -> _Change:
    """The step, or the ramp along the recording, that takes most off the cost."""
    count, edge = len(blocks.s), max(2, round(_EDGE * len(seen)))
    steps = [
        _gain(blocks, columns, (np.arange(count) >= k).astype(float), int(k)) for k in seen[edge : len(seen) - edge + 1]
    ]
    along = np.interp(np.arange(count), seen, (np.arange(len(seen)) + 0.5) / len(seen))
    return max([*steps, _gain(blocks, columns, along, -1)], key=lambda x: x.gain)


def _gain(blocks: _Blocks, columns: IntArray, along: FloatArray, place: int) -> _Change:
    """What columns times weights along the recording would take off the cost, and their coefficients."""
    cross = np.einsum("b,bij->ij", along, blocks.G[:, columns])
    own = np.einsum("b,bij->ij", along**2, blocks.G[:, columns][:, :, columns])
    left = own - cross @ blocks.C @ cross.T
    u = along @ blocks.s[:, columns] - cross @ (blocks.C @ (blocks.s.sum(axis=0) + blocks.pull))
    # Directions of the change that the other parameters take up entirely say nothing.
    values, vectors = np.linalg.eigh((left + left.T) / 2.0)
    scale = np.maximum(np.einsum("ij,jk,ki->i", vectors.T, own, vectors), 1e-300)
    good = values > _SAME * scale
    by = vectors[:, good] @ ((vectors[:, good].T @ u) / values[good])
    return _Change(columns=columns, along=along, by=by, gain=float(u @ by), place=place)


def _left_variance(sums: _Sums, blocks: _Blocks, change: _Change) -> FloatArray:
    """Variance of every component with the change taken out, in that it was weighed by; never above it, shape [components]."""
    x = np.tile(blocks.shift(change), (len(blocks.s), 1))
    x[:, change.columns] += np.outer(change.along, change.by)
    left = sums.squares - 2.0 * np.einsum("bp,cbp->c", x, sums.s) + np.einsum("bp,cbpq,bq->c", x, sums.G, x)
    own = np.einsum("b,cbij->cij", change.along**2, sums.G[:, :, change.columns][..., change.columns])
    used = np.einsum("pq,cbqp->c", blocks.C, sums.G) + np.einsum("ij,cji->c", np.linalg.pinv(own.sum(axis=0)), own)
    freedom = np.maximum(sums.equations - used, _LEAST_FREEDOM * sums.equations)
    return np.asarray(np.clip(left / freedom, sums.least, 1.0))


def _ordinary(blocks: _Blocks, change: _Change, seen: IntArray) -> float:
    """How much more a frame's scores scatter over the blocks that see it than independent residuals would; at least one."""
    columns, shift, out = change.columns, blocks.shift(change), []
    for G, s, w in zip(blocks.G[seen], blocks.s[seen], change.along[seen], strict=True):
        own = G[np.ix_(columns, columns)]
        left = s[columns] - w * (own @ change.by) - G[columns] @ shift
        values, vectors = np.linalg.eigh(own)
        good = values > _SAME * values[-1]
        out.append(float(np.mean((vectors[:, good].T @ left) ** 2 / values[good])))
    return max(1.0, float(np.mean(out)))


def _first_row(
    fit: KinematicFit, measurements: Measurements, label: IntArray, change: _Change, variance: FloatArray
) -> int:
    """The first configuration after a sudden change, among the two blocks around it."""
    place = change.place
    near = np.flatnonzero((label == place - 1) | (label == place))
    fine = np.where(label < place - 1, 0, np.where(label > place, len(near) + 1, 0)).astype(np.intp)
    fine[near] = np.arange(1, len(near) + 1)
    blocks = _sums(fit, measurements, fine, len(near) + 2).weighed(variance)
    numbers = np.arange(len(near) + 2)
    steps = [_gain(blocks, change.columns, (numbers >= k).astype(float), k).gain for k in range(1, len(near) + 1)]
    return int(near[int(np.argmax(steps))])


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
        unexplained: root mean square of the residual vectors without outliers [m or rad].
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
