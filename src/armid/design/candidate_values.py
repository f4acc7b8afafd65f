"""Candidates of a search as plain values, for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from armid.design.candidate import Candidate


def candidate_values(candidate: Candidate) -> dict[str, Any]:
    """Everything but the certificate, which follows from the motion."""
    return {
        "start": candidate.start,
        "family": candidate.family,
        "objective": candidate.objective,
        "condition_number": candidate.condition_number,
        "coefficients": candidate.coefficients.tolist(),
    }


def candidate_of(values: Mapping[str, Any]) -> Candidate:
    """What `candidate_values` described; numbers that are not finite are stored as null."""
    return Candidate(
        start=int(values["start"]),
        family=int(values["family"]),
        coefficients=np.array(values["coefficients"], dtype=np.float64),
        objective=_number(values["objective"]),
        condition_number=_number(values["condition_number"]),
    )


def _number(value: float | None) -> float:
    return float("inf") if value is None else float(value)
