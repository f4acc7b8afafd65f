"""Table 6.2 of [RWTH2021] on the catalogue's MABI Max 100: algorithms 5.1 to 5.3 on the work's own base functions.

The work rates poses by products of sines and cosines (its eq. 24), whose parameters take up lengths, not by columns of standard
parameters. The functions of axis 5 and 6 hold no length, and the range of joint 6 is printed (its fig. 5.1), so these axes must
come out as printed. The others depend on joint limits that are not printed, and the condition number of all axes together on the
factor by which the common parameters are scaled as well (algorithm 4.7), which is a product of lengths. Both are bracketed: by
the catalogue's limits and by half a turn of every joint, with columns as they are and with columns of length one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.design.target_matrix import rated_selection, safe_condition, target_matrix
from armid.documents import plain, write_json
from armid.identifiability.closed_form import ClosedForm, closed_form, lengths_of
from armid.identifiability.minimal_model import MinimalModel, minimal_model
from armid.identifiability.structure import structural_base
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.rows.axis_inertia import AxisInertiaRows

ARM = "mabi-max100"
COUNTS, COMMON = (27, 19, 17, 7, 3, 1), 32
"""Parameters of the axes (table 5.1) and of all together (table 6.1)."""
PUBLISHED = (71.0358, 19.8997, 21.7112, 6.7113, 3.2863, 1.0)
PUBLISHED_TOTAL, PUBLISHED_START = 10.0068, 52.1201
"""Condition numbers of table 6.2: `minCond`, `totalCond`, `totalCond_init`."""
_POSES = (50000, 40000, 30000, 20000, 10000, 2)
"""`nPoses` of algorithm 6.2."""
_DECIMALS = 1
"""To which the work rounds the extrema of its target matrix (eq. 29)."""
_RANGE_6 = np.radians(181.0)
"""[rad] Of joint 6, fig. 5.1."""
_AGREEMENT = 0.01
"""Of the printed condition number, for axes that depend on nothing unknown: poses are drawn at random."""
_PROPORTIONAL = 1e-9
"""Relative difference below which parameters of two axes are the same but for a factor."""


@dataclass(frozen=True, kw_only=True)
class PoseChoice:
    """Algorithm 6.3 within one set of joint limits.

    Args:
        limits: which.
        axes: condition number of every axis.
        start, total: of all axes stacked, with random poses and with the chosen ones.
        scaled_start, scaled_total: the same with columns of length one.
        poses: chosen.
    """

    limits: str
    axes: tuple[float, ...]
    start: float
    total: float
    scaled_start: float
    scaled_total: float
    poses: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PoseTable(Outcome):
    """Table 6.2 beside the printed one.

    Args:
        counts: parameters of every axis.
        common: of all axes together.
        choices: within each set of limits.
        provenance: what it came from.
    """

    counts: tuple[int, ...]
    common: int
    choices: tuple[PoseChoice, ...]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Counts are the work's, and so are the axes that depend on nothing it leaves out."""
        counted = (*self.counts, self.common) == (*COUNTS, COMMON)
        off = max(abs(c.axes[k] / PUBLISHED[k] - 1.0) for c in self.choices for k in (4, 5))
        said = " ".join(str(count) for count in self.counts)
        return (
            Check(
                code="counts",
                passed=counted,
                value=float(self.common),
                limit=float(COMMON),
                message=f"{said} parameters of the axes, multiples of {self.common} common ones",
            ),
            Check(
                code="axes-as-printed",
                passed=off <= _AGREEMENT,
                value=off,
                limit=_AGREEMENT,
                message=f"axes 5 and 6, which depend on no length, are within {100 * off:.2g} % of table 6.2",
            ),
        )

    def _heading(self) -> str:
        return f"{ARM}: condition numbers of [RWTH2021] table 6.2, poses chosen by algorithms 5.1 to 5.3"

    def _tables(self) -> tuple[Table, ...]:
        header = ("joint limits", *(f"axis {k + 1}" for k in range(6)), "random", "all axes", "random*", "all axes*")
        printed = ("as printed", *(f"{x:.4g}" for x in PUBLISHED))
        rows: list[tuple[str, ...]] = [(*printed, f"{PUBLISHED_START:.2f}", f"{PUBLISHED_TOTAL:.4f}", "", "")]
        for c in self.choices:
            totals = (c.start, c.total, c.scaled_start, c.scaled_total)
            rows.append((c.limits, *(f"{x:.4g}" for x in c.axes), *(f"{x:.4g}" for x in totals)))
        return (Table(header, tuple(rows), caption="* with columns scaled to length one; no obstacles"),)

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = plain(
            {
                "work": "rwth2021",
                "robot": ARM,
                "base_parameters_of_axes": list(self.counts),
                "base_parameters": self.common,
                "published": {"axes": list(PUBLISHED), "random": PUBLISHED_START, "all_axes": PUBLISHED_TOTAL},
                "choices": [{name: getattr(c, name) for name in PoseChoice.__dataclass_fields__} for c in self.choices],
                "verdict": str(self.verdict),
                "reasons": list(self.reasons),
            }
        )
        return out

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `study.json`."""
        return (write_json(Path(folder) / "study.json", self.as_dict()),)


def table_of_poses(*, poses: tuple[int, ...] = _POSES, seed: int = 0) -> PoseTable:
    """Algorithms 5.1 to 5.3 for every axis, within the catalogue's limits and with half a turn of every joint.

    Args:
        poses: drawn for every axis.
        seed: of drawing.
    """
    robot = load_robot(ARM)
    source = AxisInertiaRows(robot, Effects(rotor_inertia=True))
    form = closed_form(source, structural_base(source).names, name="axis-inertia")
    models = [minimal_model(form, axis) for axis in range(robot.n_joints)]
    shares, common = _common_parameters(form, models)
    low, high = np.array(robot.limit("lower")), np.array(robot.limit("upper"))
    low[5], high[5] = -_RANGE_6, _RANGE_6
    half = np.full(robot.n_joints, np.pi)
    half[5] = _RANGE_6
    choices = tuple(
        _chosen(words, models, shares, (a, b), poses, np.random.default_rng(seed))
        for words, a, b in (("catalogue", low, high), ("half a turn each", -half, half))
    )
    return PoseTable(
        counts=tuple(len(m) for m in models), common=common, choices=choices, provenance=Provenance(seed=seed)
    )


def _chosen(
    words: str,
    models: list[MinimalModel],
    shares: list[FloatArray],
    limits: tuple[FloatArray, FloatArray],
    poses: tuple[int, ...],
    rng: np.random.Generator,
) -> PoseChoice:
    """Algorithm 6.3: every axis by itself, then all of them stacked."""
    axes, rated, start = [], [], []
    for model, share, count in zip(models, shares, poses, strict=True):
        values = model.evaluate(rng.uniform(*limits, size=(count, len(limits[0]))))
        target = target_matrix(values, decimals=_DECIMALS)
        found = rated_selection(values, target)
        axes.append(found.condition_number)
        rated.append(values[found.chosen] @ share)
        start.append(values[rng.choice(count, size=len(target))] @ share)
    stacked = [np.vstack(start), np.vstack(rated)]
    plain_values, scaled = (
        [safe_condition(A / n) for A, n in zip(stacked, by, strict=True)] for by in _scales(stacked)
    )
    return PoseChoice(
        limits=words,
        axes=tuple(axes),
        start=plain_values[0],
        total=plain_values[1],
        scaled_start=scaled[0],
        scaled_total=scaled[1],
        poses=len(stacked[1]),
    )


def _scales(stacked: list[FloatArray]) -> tuple[list[FloatArray], list[FloatArray]]:
    """By what columns are divided: not at all, and by their lengths."""
    return [np.ones(A.shape[1]) for A in stacked], [np.linalg.norm(A, axis=0) for A in stacked]


def _common_parameters(form: ClosedForm, models: list[MinimalModel]) -> tuple[list[FloatArray], int]:
    """Algorithms 4.5 to 4.8: parameters of the axes as multiples of common ones; a matrix [own, common] per axis.

    Raises:
        AssertionError: a parameter is a sum of others, which the work's algorithm 4.6 would not find.
    """
    import sympy

    lengths = {sympy.Symbol(name): value for name, value in lengths_of(form.scalars.robot).items()}
    kept: list[FloatArray] = []
    places: list[list[tuple[int, float]]] = []
    for model in models:
        own = []
        for terms in model.parameters:
            row = np.zeros(len(form.parameters))
            for name, factor in terms.items():
                row[form.parameters.index(name)] = float(sympy.sympify(factor).subs(lengths))
            own.append(_place(row, kept))
        places.append(own)
    assert np.linalg.matrix_rank(np.array(kept) / np.linalg.norm(kept, axis=1)[:, np.newaxis]) == len(kept)
    out = [np.zeros((len(own), len(kept))) for own in places]
    for share, own in zip(out, places, strict=True):
        for k, (column, factor) in enumerate(own):
            share[k, column] = factor
    return out, len(kept)


def _place(row: FloatArray, kept: list[FloatArray]) -> tuple[int, float]:
    """Which of the kept parameters a parameter is a multiple of, and by what factor; a new one is kept."""
    for k, other in enumerate(kept):
        factor = float(row @ other) / float(other @ other)
        if np.linalg.norm(row - factor * other) <= _PROPORTIONAL * np.linalg.norm(row):
            return k, factor
    kept.append(row)
    return len(kept) - 1, 1.0
