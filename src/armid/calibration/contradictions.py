"""What residuals follow, and whether joint positions alone tell some rows from others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.thresholds import PATTERN, PATTERN_BY_CHANCE
from armid.estimation.quantiles import fisher_above
from armid.kinematics.measurement import Measurements
from armid.notes import Note, Severity

_BINS = 8
"""Bins of a joint's range and of the recording."""
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


def residual_patterns(fit: KinematicFit, measurements: Measurements) -> dict[str, float]:
    """Share of the residuals' variance that bins of the recording, of time and of every joint explain, beyond chance."""
    ways: dict[str, FloatArray] = {"recording": np.arange(len(measurements.q), dtype=np.float64)}
    ways |= {name: x for name, x in measurements.conditions.items() if np.ptp(x) > 0.0}
    names = fit.model.robot.joint_names
    ways |= {name: q for name, q in zip(names, measurements.q.T, strict=True) if np.ptp(q) > 0.0}
    chance = PATTERN_BY_CHANCE.value / len(ways)
    return {name: _explained_share(fit, values, chance) for name, values in ways.items()}


def _explained_share(fit: KinematicFit, values: FloatArray, chance: float) -> float:
    """Share that eight bins explain; zero where as many bins of noise reach it with more than this probability."""
    edges = np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    total, inside, bins, equations = 0.0, 0.0, 0, 0
    for r in fit.after.residuals:
        z = (r.r / fit.after.noise.sigma(r.observations)).T
        which = np.searchsorted(edges, values[r.observations.rows], side="right")
        total += float(np.sum(z**2))
        equations += z.size
        for b in np.unique(which):
            own = z[which == b]
            inside += float(len(own) * np.sum(own.mean(axis=0) ** 2))
            bins += z.shape[1]
    if not total > inside or equations <= bins:
        return 0.0
    if (inside / bins) / ((total - inside) / (equations - bins)) <= fisher_above(chance, bins, equations - bins):
        return 0.0
    by_chance = bins / equations
    return (inside / total - by_chance) / (1.0 - by_chance)


def pattern_notes(patterns: dict[str, float]) -> list[Note]:
    """What the residuals follow."""
    strong = sorted(((share, name) for name, share in patterns.items() if share > PATTERN.value), reverse=True)
    if not strong:
        return []
    words = {"recording": "the recording"}
    told = ", ".join(f"{words.get(name, name)} ({100 * share:.0f} % of their variance)" for share, name in strong)
    text = f"residuals follow {told}: gear errors, sag or drift that the model does not have"
    return [Note("residual-patterns", Severity.INFO, text)]
