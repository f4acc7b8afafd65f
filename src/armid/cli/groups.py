"""Options that belong together, declared once for every verb that has them.

A group is a function: its parameters are the options, and it returns the keywords that the library is called with. `takes`
gives a verb the options of its groups, and the verb gets those keywords instead.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import typer

from armid.cli import options as opt
from armid.parameters.effects import DEFAULT_FRICTION, PayloadRuns, TorqueSide

Keywords = dict[str, Any]
Group = Callable[..., Keywords]


def takes(*groups: Group) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A verb with the options of these groups behind its own, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        options = {group: tuple(inspect.signature(group).parameters) for group in groups}

        @functools.wraps(function)
        def run(*args: Any, **given: Any) -> Any:
            asked: Keywords = {}
            for group, names in options.items():
                asked |= group(**{name: given.pop(name) for name in names if name in given})
            return function(*args, **given, **asked)

        run.__signature__ = signature_with(function, *groups)  # type: ignore[attr-defined]
        return run

    return decorate


def signature_with(function: Callable[..., Any], *groups: Callable[..., Any]) -> inspect.Signature:
    """A verb's own options and behind them those of its groups, which are declared there where both name one."""
    added = [p for group in groups for p in inspect.signature(group, eval_str=True).parameters.values()]
    declared = {parameter.name for parameter in added}
    own = inspect.signature(function, eval_str=True).parameters.values()
    kept = [p for p in own if p.kind is not p.VAR_KEYWORD and p.name not in declared]
    return inspect.Signature([*kept, *(p.replace(kind=p.KEYWORD_ONLY) for p in added)])


def renamed(options: Keywords, **names: str) -> Keywords:
    """Options under the names that the library has for them: `joint="joints"`."""
    return {names.get(name, name): value for name, value in options.items()}


def arm(base: opt.BaseLinkOption = None, tip: opt.TipOption = None) -> Keywords:
    """Which chain of a description."""
    return dict(locals())


def effects(
    friction: opt.FrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    payload: opt.PayloadRunsOption = PayloadRuns.NONE,
    torques: opt.TorquesOption = TorqueSide.LINK,
) -> Keywords:
    """What enters the model besides the links."""
    return dict(locals())


def signals(
    processing: opt.ProcessingOption = None,
    average: opt.AverageOption = False,
    period_s: opt.PeriodOption = None,
    filter: opt.FilterOption = None,
    filter_order: opt.FilterOrderOption = None,
    differentiator: opt.DifferentiatorOption = None,
) -> Keywords:
    """How recordings are filtered, averaged and differentiated."""
    from armid.logs.conditioning.processing import processing_of

    asked = processing_of(
        processing,
        filter=filter,
        order=filter_order,
        differentiator=differentiator,
        average=average,
        period_s=period_s,
    )
    return {"processing": asked}


def reading(
    step: opt.StepOption = None, data_root: opt.DataRootOption = None, accept: opt.AcceptOption = None
) -> Keywords:
    """What log files do not say themselves, and which of their errors are accepted."""
    from armid.logs.read import ReadOptions

    return {"options": ReadOptions(step=step, data_root=data_root), "accept": accept or ()}


def motion_limits(
    limits_file: opt.LimitsFileOption = None,
    max_acceleration: opt.AccelerationOption = None,
    max_jerk: opt.JerkOption = None,
    max_torque: opt.TorqueLimitOption = None,
) -> Keywords:
    """What the arm's description cannot say, or narrower."""
    return dict(locals())


def was_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line or in a configuration file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
