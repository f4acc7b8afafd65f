"""The criteria excitation is searched by, under the names of this room."""

from __future__ import annotations

from armid.identifiability.smooth import FLOOR, Merit, SmoothCriterion, gram_condition_number

DesignCriterion = SmoothCriterion
CriterionSettings = Merit
condition_number = gram_condition_number

__all__ = ["FLOOR", "CriterionSettings", "DesignCriterion", "condition_number"]
