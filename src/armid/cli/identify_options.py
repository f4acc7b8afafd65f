"""Options of `armid identify` alone, in groups."""

from __future__ import annotations

from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.groups import Keywords


def gravity_and_base(
    gravity: opt.GravityOption = None,
    gravity_frame: opt.GravityFrameOption = "base",
    find_gravity: opt.FindGravityOption = False,
    correction: opt.CorrectionOption = None,
) -> Keywords:
    """How the arm stands and where its joints are."""
    return dict(locals())


def selection(
    essential: opt.EssentialOption = False,
    essential_by: Annotated[
        opt.EssentialWord, typer.Option("--essential-by", help="By what --essential judges a parameter.")
    ] = "significance",
    keep: opt.KeepOption = None,
    drop: opt.DropOption = None,
) -> Keywords:
    """Which parameters could be left out."""
    return {"essential": essential_by if essential else None, "keep": keep or (), "drop": drop or ()}


def bodies(
    consistency: opt.ConsistencyOption = "lmi",
    regulariser: opt.RegulariserOption = "pull-back",
    prior_weight: opt.PriorWeightOption = 0.1,
    bounds: opt.BoundsOption = None,
) -> Keywords:
    """How bodies are made physical."""
    return dict(locals())


def sensor_faults(
    imperfections: opt.ImperfectionsOption = "all",
    tolerance: opt.ToleranceOption = None,
    correct: opt.CorrectOption = False,
    sensors: opt.SensorsOption = None,
) -> Keywords:
    """What may be wrong with the recordings, and what is done about it."""
    return {**locals(), "tolerance": tolerance or ()}
