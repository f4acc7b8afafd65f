"""Parameters with intervals, what determines each, and how they hang together."""

from __future__ import annotations

import numpy as np

from armid.identification.metrics import nominal_standard
from armid.identification.result import Result, combination
from armid.page import Block, Figure, Paragraph, Section, Table
from armid.report import plots

_STRONG_CORRELATION = 0.95
_MOST_PAIRS = 12
_LARGE = 45
"""Parameters beyond which names on the map are written smaller."""

_ORIGINS = {
    "data": "data",
    "both": "data and regularisation",
    "prior": "regularisation: this log does not show it",
}


def parameter_section(result: Result) -> Section:
    return Section("parameters", "Parameters", (_base_table(result), _standard_table(result), *_unseen(result)))


def _base_table(result: Result) -> Table:
    e = result.estimate
    low, high = e.interval()
    flagged = set(e.poorly_identified["interval-holds-zero"])
    known = dict(zip(e.base.parameters, nominal_standard(result.described, e.base.parameters), strict=True))
    nominal = [sum(w * known[name] for name, w in e.base.terms(k).items()) for k in range(len(e))]
    return Table(
        ("parameter", "value", "95 % from", "to", "description", "unit", "std. dev.", "in full"),
        tuple(
            (
                name,
                float(v),
                float(a),
                float(b),
                float(n),
                plots.unit(u),
                plots.percent(float(r), 1),
                combination(e.base.terms(k)).replace("-", "−"),
            )
            for k, (name, v, a, b, n, u, r) in enumerate(
                zip(e.names, e.values, low, high, nominal, e.units, e.relative_standard_deviations, strict=True)
            )
        ),
        tuple("faint" if name in flagged else "" for name in e.names),
        caption=f"Base parameters by {e.method}; intervals from {e.covariance_kind} covariance. "
        "Faint: zero lies in the interval.",
    )


def _standard_table(result: Result) -> Table:
    c = result.consistent
    return Table(
        ("parameter", "value", "std. dev.", "regularised to", "unit", "determined by", "share of data"),
        tuple(
            (n, float(v), float(s), float(p), plots.unit(u), _ORIGINS[by], plots.percent(float(share), 0))
            for n, v, s, p, u, by, share in zip(
                c.names,
                c.values,
                c.standard_deviations,
                c.prior.values,
                c.units,
                c.determined_by,
                c.data_share,
                strict=True,
            )
        ),
        tuple("" if by == "data" else "faint" for by in c.determined_by),
        caption="Standard parameters, physically consistent. Faint rows come from the regularisation, wholly or in part, and no "
        "interval makes them a measurement.",
        folded=True,
    )


def _unseen(result: Result) -> tuple[Paragraph, ...]:
    """Standard parameters no torque depends on."""
    K = result.estimate.base
    used = {name for k in range(len(result.estimate)) for name in K.terms(k)}
    names = [name for name in K.parameters if name not in used]
    if not names:
        return ()
    text = "Not identifiable, because no torque of this arm depends on them: " + ", ".join(names) + "."
    return (Paragraph(text, "faint"),)


def correlation_section(result: Result) -> Section:
    e = result.estimate
    s = e.standard_deviations
    with np.errstate(divide="ignore", invalid="ignore"):
        matrix = np.nan_to_num(e.covariance / np.outer(s, s))
    size = 10 if len(e) <= _LARGE else 8
    figure = Figure(
        "correlation",
        (
            {
                "type": "heatmap",
                "z": [plots.short(row, 2) for row in matrix],
                "x": list(e.names),
                "y": list(e.names),
                "zmin": -1,
                "zmax": 1,
                "colorscale": [[0, plots.ORANGE], [0.5, "#f7f7f7"], [1, plots.BLUE]],
                "colorbar": {"thickness": 12},
            },
        ),
        {
            "xaxis": {"tickangle": 90, "tickfont": {"size": size}},
            "yaxis": {"tickfont": {"size": size}, "autorange": "reversed"},
        },
        "Correlation of the base estimates, in the order of the table: off-diagonal entries near ±1 are pairs the motion "
        "can hardly tell apart. Names and values under the pointer.",
        height=max(420, min(900, 13 * len(e) + 120)),
    )
    strong = np.argwhere(np.triu(np.abs(matrix) > _STRONG_CORRELATION, 1))
    pairs = "; ".join(f"{e.names[i]} and {e.names[j]} ({matrix[i, j]:+.2f})" for i, j in strong[:_MOST_PAIRS])
    more = f"; and {len(strong) - _MOST_PAIRS} more" if len(strong) > _MOST_PAIRS else ""
    text = f"Correlated above 0.95: {pairs}{more}." if pairs else "No pair is correlated above 0.95."
    blocks: tuple[Block, ...] = (figure, Paragraph(text, "faint"))
    return Section("correlation", "Correlation", blocks)
