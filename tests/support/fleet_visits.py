"""Identified visits of a fleet as they would be, without identifying anything."""

from __future__ import annotations

import numpy as np

from armid.fleets.table import Visit
from armid.fleets.visit import VisitResult

NAMES = ("joint1.viscous", "joint1.coulomb")


def drawn_visits(
    correlation: float, claimed: float, arms: int = 30, dates: int = 6, name: str = "r"
) -> list[VisitResult]:
    """Estimates whose errors have one correlation and claim another."""
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(np.array([[1.0, correlation], [correlation, 1.0]]))
    return [
        VisitResult(
            visit=Visit(arm=f"{name}{arm:02d}", date=f"2026-{1 + k:02d}-01", robot="r", logs=()),
            verdict="trusted",
            relative_error=0.01,
            names=NAMES,
            units=("N m s/rad", "N m"),
            values=np.array([5.0, 3.0]) + root @ rng.normal(size=2),
            covariance=np.array([[1.0, claimed], [claimed, 1.0]]),
            complete=True,
        )
        for arm in range(arms)
        for k in range(dates)
    ]
