"""Behind `armid identify`: how possible bodies are asked for on the command line, and what is said about them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from armid.consistency.bounds import Bounds
    from armid.consistency.regularisers import Regulariser
    from armid.identification.result import Result
    from armid.robot.robot import Robot

GEOMETRY = "geometry"
"""Word for bounds by the links' shapes alone, where otherwise a file is named."""

ConsistencyOption = Annotated[
    str,
    typer.Option(
        "--consistency",
        metavar="lmi|log-cholesky|eq3.53",
        help="Convex program; smoothly refined; or [Halper2024]'s inequalities (docs/estimation.md).",
    ),
]
RegulariserOption = Annotated[
    str, typer.Option("--regulariser", metavar="pull-back|entropic|euclidean", help="Kind of pull towards the prior.")
]
PriorWeightOption = Annotated[
    float, typer.Option("--prior-weight", help="Pull towards the prior bodies: 1 / (relative doubt)^2.")
]
BoundsOption = Annotated[
    Path | None,
    typer.Option(
        "--bounds",
        metavar="FILE|geometry",
        help="Known masses and centres of mass (docs/estimation.md), or just: mass within the links' shapes.",
    ),
]


def regulariser_of(word: str, weight: float) -> Regulariser:
    """Kind and strength of the pull towards the prior."""
    from armid.consistency.possible import REGULARISERS
    from armid.errors import InputError, UnknownNameError

    if word not in REGULARISERS:
        raise UnknownNameError("regulariser", word, REGULARISERS)
    if not weight > 0.0:
        raise InputError("--prior-weight", f"{weight}", "expected a positive number")
    return REGULARISERS[word](weight)


def bounds_of(path: Path | None, arm: Robot) -> Bounds:
    """Bounds of a file, of the shapes alone, or none but the signs of drives."""
    from armid.consistency.bounds import Bounds
    from armid.consistency.bounds_file import read_bounds
    from armid.consistency.geometry_bounds import GeometryBounds

    if path is None:
        return Bounds()
    if str(path) == GEOMETRY and not path.exists():
        return GeometryBounds().apply(arm)
    return read_bounds(path, arm)


def consistency_summary(result: Result) -> dict[str, Any]:
    """For machines: how the bodies were found, what proves them, what they rest on."""
    from armid.identification.result import finite

    c, k = result.consistent, result.certificates
    values: dict[str, Any] = finite(
        {
            "method": c.method,
            "regulariser": c.regulariser,
            "status": c.status.value,
            "pseudo_inertia": dict(k.pseudo_inertia),
            "mass_matrix": k.mass_matrix,
            "mass_matrix_bound": k.mass_matrix_bound,
            "distance": k.distance,
            "distance_limit": k.distance_limit,
            "p_value": k.p_value,
            "torque_cost": dict(k.torque_cost),
            "determined_by": dict(zip(c.names, c.determined_by, strict=True)),
        }
    )
    return values


def show_consistency(result: Result, screen: Console) -> None:
    """For people: one line each on method, certificates and what the parameters rest on."""
    c, k = result.consistent, result.certificates
    count = Counter(c.determined_by)
    proof = f", at least {k.mass_matrix_bound:.3g} anywhere (proven)" if k.proven else ", not proven elsewhere"
    screen.print(
        f"possible bodies by {c.method}, {c.regulariser}: {count['data']} parameters rest on the data, "
        f"{count['both']} on data and prior, {count['prior']} on the prior",
        markup=False,
    )
    screen.print(f"smallest eigenvalue of M(q) {k.mass_matrix:.3g} sampled{proof}", markup=False)
    for note in c.notes:
        if note.code in ("bounds-active", "bound-broken", "geometry-missing", "not-converged"):
            screen.print(note.message, markup=False)
