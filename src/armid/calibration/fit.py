"""One model fitted to one set of measurements: first the frames alone, then everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armid.calibration.identifiable import ParameterStatus, Selection
from armid.calibration.solve import FitSolution, Mask, SolverSettings, solve
from armid.calibration.start import StartFrames, start_frames
from armid.kinematics.build import kinematic_model
from armid.kinematics.measurement import Measurements, Observed
from armid.kinematics.model import ErrorModel, FrameModel, KinematicModel, covering
from armid.parameters.space import OwnerKind
from armid.robot.robot import Robot


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    Args:
        solver: iterations, loss, noise.
        setups, targets: frames parametrised by the caller instead of around closed-form start values.
        fixed: names of parameters that stay at nominal whatever the data say.
    """

    solver: SolverSettings = field(default_factory=SolverSettings)
    setups: Mapping[str, FrameModel] = field(default_factory=dict)
    targets: Mapping[str, FrameModel] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()

    def allowed(self, model: KinematicModel) -> tuple[Mask, Mask]:
        """Masks of the parameters of the frames, and of all, without the fixed ones."""
        for name in self.fixed:
            model.index(name)
        free = np.array([name not in self.fixed for name in model.names], dtype=bool)
        return model.owned(OwnerKind.SETUP, OwnerKind.TARGET) & free, free


@dataclass(frozen=True, eq=False, kw_only=True)
class KinematicFit:
    """The same model with nominal links and with everything fitted.

    Args:
        errors: what was allowed to differ.
        model: the chain with its parameters.
        before: only sensor and target frames fitted, which is what hand-eye calibration gives.
        after: everything the data can tell.
        settings: how it was done.
    """

    errors: ErrorModel
    model: KinematicModel
    before: FitSolution
    after: FitSolution
    settings: FitSettings


def fit(
    robot: Robot,
    measurements: Measurements,
    errors: ErrorModel | None = None,
    *,
    settings: FitSettings | None = None,
    start: StartFrames | None = None,
    before: KinematicFit | None = None,
) -> KinematicFit:
    """Fit frames, then everything.

    Args:
        robot: nominal arm.
        measurements: what was observed.
        errors: what may differ from nominal.
        settings: how to iterate, and frames with a parametrisation of their own.
        start: start values of sensor and tool frames; closed form by default.
        before: of another error model from the same start: with nominal links its frames are those of this one.
    """
    errors = ErrorModel() if errors is None else errors
    settings = FitSettings() if settings is None else settings
    given = set(settings.setups) >= set(measurements.setups) and set(settings.targets) >= set(measurements.targets)
    setups: dict[str, FrameModel] = {}
    targets: dict[str, FrameModel] = {}
    if not given:
        setups, targets = (start or start_frames(robot, measurements)).models(measurements)
    model = kinematic_model(
        robot, errors, setups={**setups, **settings.setups}, targets={**targets, **settings.targets}
    )
    low, high = measurements.q.min(axis=0), measurements.q.max(axis=0)
    model = covering(model, {k: (float(a), float(b)) for k, (a, b) in enumerate(zip(low, high, strict=True))})
    frames, free = settings.allowed(model)
    some = part_to_start_from(measurements)
    nominal = (
        _solved(model, measurements, some, frames, settings.solver)
        if before is None
        else _carried(before.before, before.model, model)
    )
    after = _solved(model, measurements, some, free, settings.solver, begin=nominal)
    return KinematicFit(errors=errors, model=model, before=nominal, after=after, settings=settings)


_MANY = 4000
"""Configurations from which on a fit starts from that to a part of them: most of its iterations only find the weights."""
_PART = 1000
"""Configurations of such a part: as many as show noise and parameters to a few per cent of their final values."""


def part_to_start_from(measurements: Measurements) -> Measurements:
    """An even part of many configurations, with every sensor and target in it; all of them where that cannot be."""
    groups = np.unique(measurements.group)
    if len(groups) < _MANY or any(o.quantity is Observed.LENGTH for o in measurements.observations):
        return measurements
    part = measurements.subset(np.isin(measurements.group, groups[:: len(groups) // _PART]))
    seen = [{(o.setup, o.target): len(o) for o in m.observations} for m in (measurements, part)]
    enough = seen[0].keys() == seen[1].keys() and min(seen[1].values()) >= _PART // 10
    return part if enough else measurements


def _solved(
    model: KinematicModel,
    measurements: Measurements,
    some: Measurements,
    allowed: Mask,
    settings: SolverSettings,
    *,
    begin: FitSolution | None = None,
) -> FitSolution:
    """The solution for all measurements, by way of that for some of them."""
    start, noise = (None, None) if begin is None else (begin.values, begin.noise)
    first = solve(model, some, start=start, noise=noise, allowed=allowed, settings=settings)
    if some is measurements:
        return first
    again = solve(
        model,
        measurements,
        start=first.values,
        noise=first.noise,
        allowed=allowed,
        settings=settings,
        previous=first,
    )
    return replace(again, iterations=first.iterations + again.iterations)


def fit_candidates(
    robot: Robot,
    measurements: Measurements,
    candidates: Sequence[ErrorModel],
    *,
    settings: FitSettings,
    start: StartFrames | None,
) -> Iterator[KinematicFit]:
    """Every error model fitted to the same measurements; the frames with nominal links, common to all, only once."""
    first: KinematicFit | None = None
    for errors in candidates:
        found = fit(robot, measurements, errors, settings=settings, start=start, before=first)
        first = first or found
        yield found


def _carried(solution: FitSolution, model: KinematicModel, other: KinematicModel) -> FitSolution:
    """A solution with nominal links in the parameter vector of another error model with the same frames."""
    place = {(p.kind, p.name): i for i, p in enumerate(other.parameters)}
    pairs = [(i, place[p.kind, p.name]) for i, p in enumerate(model.parameters) if (p.kind, p.name) in place]
    old, new = (np.array(side, dtype=np.intp) for side in zip(*pairs, strict=True))
    size = len(other.parameters)
    values, kept, ratio = np.zeros(size), np.zeros(size, dtype=bool), np.zeros(size)
    status = [ParameterStatus.REDUNDANT] * size
    values[new], kept[new], ratio[new] = (
        solution.values[old],
        solution.selection.kept[old],
        solution.selection.ratio[old],
    )
    for i, k in pairs:
        status[k] = solution.selection.status[i]
    covariance = np.zeros((size, size))
    covariance[np.ix_(new, new)] = solution.covariance[np.ix_(old, old)]
    prior = np.array(other.tolerances)
    prior[new] = solution.prior[old]
    selection = Selection(kept, ratio, tuple(status))
    return replace(solution, values=values, selection=selection, covariance=covariance, prior=prior)


def refit(previous: KinematicFit, measurements: Measurements, *, before: KinematicFit | None = None) -> KinematicFit:
    """The same model on other measurements, starting from where the previous fit ended.

    Args:
        previous: the fit to start from.
        measurements: the others.
        before: of another error model refitted to them: with nominal links its frames are those of this one.
    """
    frames, free = previous.settings.allowed(previous.model)
    nominal = (
        _solve_again(previous, previous.before, measurements, frames)
        if before is None
        else _carried(before.before, before.model, previous.model)
    )
    return replace(previous, before=nominal, after=_solve_again(previous, previous.after, measurements, free))


def _solve_again(previous: KinematicFit, found: FitSolution, measurements: Measurements, allowed: Mask) -> FitSolution:
    """One of the two solutions of a fit on other measurements, starting from where it was."""
    return solve(
        previous.model,
        measurements,
        start=found.values,
        noise=found.noise,
        allowed=allowed,
        settings=previous.settings.solver,
        previous=found,
    )
