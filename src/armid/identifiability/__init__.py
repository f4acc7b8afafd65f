"""What measurements can tell: rank decisions, base parameters, regroupings, criteria, excitation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from armid.identifiability.base import BaseParameters, Category, base_parameters
    from armid.identifiability.criteria import Criterion, Quality, quality
    from armid.identifiability.detection import detected_base
    from armid.identifiability.excitation import Excitation
    from armid.identifiability.rank import RankDecision
    from armid.identifiability.regrouping import Regrouping, regroup
    from armid.identifiability.smooth import Merit, SmoothCriterion
    from armid.identifiability.structure import structural_base

__all__ = [
    "BaseParameters",
    "Category",
    "Criterion",
    "Excitation",
    "Merit",
    "Quality",
    "RankDecision",
    "Regrouping",
    "SmoothCriterion",
    "base_parameters",
    "detected_base",
    "quality",
    "regroup",
    "structural_base",
]

_PLACES = {
    "BaseParameters": "base",
    "Category": "base",
    "Criterion": "criteria",
    "Excitation": "excitation",
    "Merit": "smooth",
    "Quality": "criteria",
    "RankDecision": "rank",
    "Regrouping": "regrouping",
    "SmoothCriterion": "smooth",
    "base_parameters": "base",
    "detected_base": "detection",
    "quality": "criteria",
    "regroup": "regrouping",
    "structural_base": "structure",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
