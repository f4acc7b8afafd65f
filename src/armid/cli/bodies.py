"""How possible bodies are asked for on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ConsistencyWord = Literal["lmi", "log-cholesky", "eq3.53"]
RegulariserWord = Literal["pull-back", "entropic", "euclidean"]

ConsistencyOption = Annotated[
    ConsistencyWord,
    typer.Option(
        "--consistency", help="Convex program; smoothly refined; or [Halper2024]'s inequalities (docs/estimation.md)."
    ),
]
RegulariserOption = Annotated[RegulariserWord, typer.Option("--regulariser", help="Kind of pull towards the prior.")]
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
