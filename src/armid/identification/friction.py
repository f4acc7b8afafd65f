"""Velocity scales and load of friction beyond viscous + Coulomb + offset, found on the training motion.

The outer search of Stribeck and smooth friction goes over one velocity scale per joint: first a grid, joint by joint (a
joint's friction shows in its own channel only), then Gauss-Newton over all scales and all linear parameters together. The
same tangents give the standard deviations of the scales, and what not knowing them exactly adds to those of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.covariance import Covariance
from armid.estimation.estimate import Estimate
from armid.estimation.extended import Column, extended
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, information_of
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structural_base
from armid.information.information import Information
from armid.information.solve import belief, solve
from armid.rows.friction import Shape, Shapes, shape_values

__all__ = ["FrictionSearch", "Shape", "ShapeFit", "Shapes", "rigid_part", "scale_deviations", "shape_values"]

Build = Callable[[Shapes], tuple[Run, ...]]
"""The training runs with given shapes of friction."""

_LONGEST_STEP = 0.5
"""Of the logarithm of a scale per iteration. It also damps joints whose friction shows no scale: they stay where they are."""
_UNDETERMINED = 0.5
"""Relative deviation of a scale beyond which it is not determined: linearised, it would say nothing."""
_RELATIVE_STEP = 1e-3
"""Of a scale, for the difference that stands for the derivative: far above round-off, far below any curvature."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapeFit:
    """Shapes that explain the training torque best.

    Args:
        shapes: scales and load.
        estimate: linear parameters with them, plain weighted least squares.
        runs: the training runs with these shapes.
        iterations: of the refinement.
        converged: whether it settled.
    """

    shapes: Shapes
    estimate: Estimate
    runs: tuple[Run, ...]
    iterations: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionSearch:
    """Finds velocity scales and load.

    Args:
        candidates: scales tried per joint before refining, spaced evenly in the logarithm.
        fastest: largest scale, relative to the 90 % quantile of the joint's speed.
        slowest: smallest, likewise.
        iterations: of the refinement and of the load, at most.
        tolerance: relative change of a scale, or of the load torque, that counts as settled.
    """

    candidates: int = 12
    fastest: float = 1.5
    slowest: float = 0.002
    iterations: int = 15
    tolerance: float = 1e-3

    def fit(self, build: Build, start: Shapes) -> ShapeFit:
        """Args:
        build: training runs with given shapes, over the same rows whatever the shapes.
        start: presliding, and for load-dependent friction the rigid part of a fit without it; scales are searched for.
        """
        has_scale, first = self.first(build, start)
        runs = build(first)
        base = structural_base(*{torque_source([run]).loaded: run.source for run in runs}.values())
        shapes = self.coarse(build, base, first) if has_scale else first
        return self.refined(build, base, shapes, has_scale=has_scale)

    def first(self, build: Build, start: Shapes) -> tuple[bool, Shapes]:
        """Whether there are scales, and shapes with some in the middle."""
        probe = build(replace(start, scales=(1.0,) * len(start.presliding)))
        if not torque_source(probe).effects.has_scale:
            return False, replace(start, scales=())
        return True, replace(start, scales=tuple(float(s) for s in self.grid(probe)[self.candidates // 2]))

    def grid(self, runs: Sequence[Run]) -> FloatArray:
        """Scales to try, shape [candidates, n_joints]."""
        n = torque_source(runs).robot.n_joints
        speed = np.quantile(np.abs(np.concatenate([run.inputs[:, n : 2 * n] for run in runs])), 0.9, axis=0)
        speed = np.maximum(speed, 1e-6)
        return np.geomspace(self.slowest * speed, self.fastest * speed, self.candidates)

    def coarse(self, build: Build, base: BaseParameters, start: Shapes) -> Shapes:
        """The best candidate of every joint, by the noise of its own channel."""
        grid = self.grid(build(start))
        noise = []
        for scales in grid:
            runs = build(replace(start, scales=tuple(float(s) for s in scales)))
            noise.append(list(WeightedLeastSquares().fit(information_of(runs), base).sigma.values()))
        best = np.argmin(np.array(noise), axis=0)
        return replace(start, scales=tuple(float(grid[k, j]) for j, k in enumerate(best)))

    def refined(self, build: Build, base: BaseParameters, shapes: Shapes, *, has_scale: bool) -> ShapeFit:
        """Scales by Gauss-Newton steps that must lower the noise; the load from the rigid part just estimated."""
        runs, estimate = fitted(build, base, shapes)
        limits = self.grid(runs)[[0, -1]] if has_scale else np.empty((2, 0))
        for used in range(1, self.iterations + 1):
            change = 0.0
            if has_scale:
                step = _scale_step(build, runs, shapes, estimate)
                shapes, runs, estimate, change = _descended(build, base, (shapes, runs, estimate), step, limits)
            if shapes.load is not None:
                shapes, moved = _with_load(runs, shapes, estimate)
                runs, estimate = fitted(build, base, shapes)
                change = max(change, moved)
            if change < self.tolerance:
                return ShapeFit(shapes=shapes, estimate=estimate, runs=runs, iterations=used, converged=True)
        return ShapeFit(shapes=shapes, estimate=estimate, runs=runs, iterations=self.iterations, converged=False)


def fitted(build: Build, base: BaseParameters, shapes: Shapes) -> tuple[tuple[Run, ...], Estimate]:
    runs = build(shapes)
    return runs, WeightedLeastSquares().fit(information_of(runs), base)


def _misfit(estimate: Estimate) -> float:
    """Sum over channels of the logarithm of the residual noise."""
    return float(np.sum(np.log(np.maximum(list(estimate.sigma.values()), 1e-12))))


State = tuple[Shapes, tuple[Run, ...], Estimate]


def _descended(
    build: Build, base: BaseParameters, state: State, step: FloatArray, limits: FloatArray
) -> tuple[Shapes, tuple[Run, ...], Estimate, float]:
    """The state after a step in the logarithm of the scales, halved until it helps; the size of what was done."""
    shapes, runs, estimate = state
    for _ in range(4):
        scales = np.clip(np.array(shapes.scales) * np.exp(step), *limits)
        trial = replace(shapes, scales=tuple(float(s) for s in scales))
        new_runs, new = fitted(build, base, trial)
        if _misfit(new) <= _misfit(estimate):
            done = float(np.abs(np.log(scales / np.array(shapes.scales))).max(initial=0.0))
            return trial, new_runs, new, done
        step = 0.5 * step
    return shapes, runs, estimate, 0.0


def _with_load(runs: Sequence[Run], shapes: Shapes, estimate: Estimate) -> tuple[Shapes, float]:
    """Shapes whose load is the rigid torque of this estimate, and how much that changed the load torque."""
    assert shapes.load is not None
    load = rigid_part(estimate)
    before, after = (
        np.concatenate([run.predicted([x.get(name, 0.0) for name in run.source.columns]) for run in runs])
        for x in (shapes.load, load)
    )
    moved = float(np.linalg.norm(after - before) / max(float(np.linalg.norm(after)), 1e-300))
    return replace(shapes, load=load), moved


def rigid_part(estimate: Estimate) -> dict[str, float]:
    """The estimate's standard parameters without friction, rotor inertia and offsets; those that are not zero."""
    valued = zip(estimate.base.standard, estimate.standard, strict=True)
    return {one.name: float(value) for one, value in valued if value != 0.0 and not one.of_joint}


def _tangents(build: Build, runs: Sequence[Run], shapes: Shapes, standard: FloatArray) -> tuple[Run, ...]:
    """The runs with one more column per joint: the change of its torque with the logarithm of its scale.

    All scales are moved at once: each shows in its own channel only.
    """
    ahead, behind = (build(shapes.scaled(1.0 + h)) for h in (_RELATIVE_STEP, -_RELATIVE_STEP))
    out = []
    for run, a, b in zip(runs, ahead, behind, strict=True):
        slope = (a.predicted(standard) - b.predicted(standard)) / (2.0 * _RELATIVE_STEP)
        columns = [Column(_scale_name(j), ((channel, slope[:, j]),)) for j, channel in enumerate(run.channels)]
        out.append(extended(run, columns))
    return tuple(out)


def _scale_name(joint: int) -> str:
    """Of the velocity scale of a joint's friction, as a parameter."""
    return f"joint{joint + 1}.friction_velocity"


def _scale_step(build: Build, runs: Sequence[Run], shapes: Shapes, estimate: Estimate) -> FloatArray:
    """Gauss-Newton step of the logarithms of the scales, shape [n_joints]."""
    base, n, p = estimate.base, len(shapes.scales), len(estimate.base.parameters)
    wide = information_of(_tangents(build, runs, shapes, estimate.standard))
    rows = wide.select([*base.independent, *range(p, p + n)])
    weights = {name: 1.0 / s for name, s in estimate.sigma.items()}
    r = len(base)
    root = np.zeros((n, r + n))
    root[:, r:] = np.eye(n) / _LONGEST_STEP
    solution = solve(rows, weights=weights, prior=belief(rows.parameters, np.zeros(r + n), root))
    return np.clip(solution.values[r:], -_LONGEST_STEP, _LONGEST_STEP)


def scale_deviations(
    build: Build, runs: Sequence[Run], shapes: Shapes, estimate: Estimate, covariance: Covariance
) -> tuple[Estimate, tuple[float, ...]]:
    """The estimate with what uncertain scales add to its covariance, and the deviation of every scale [rad/s or m/s].

    A scale the motion does not determine (no such friction at that joint) has an infinite deviation and is left out.

    Args:
        build: training runs with given shapes.
        runs: with these shapes.
        shapes: as found.
        estimate: of the linear parameters with these shapes.
        covariance: how the noise is modelled.
    """
    wide = _tangents(build, runs, shapes, estimate.standard)
    seen = _determined(wide, estimate, len(shapes.scales))
    if not seen:
        return estimate, (float("inf"),) * len(shapes.scales)
    kept = covariance.apply(_widened(estimate, seen, len(shapes.scales)), wide)
    r = len(estimate)
    deviations = [float("inf")] * len(shapes.scales)
    for k, j in enumerate(seen):
        relative = float(kept.standard_deviations[r + k])
        deviations[j] = shapes.scales[j] * relative if relative < _UNDETERMINED else float("inf")
    return estimate.with_covariance(kept.covariance[:r, :r], kept.covariance_kind), tuple(deviations)


def _determined(wide: Sequence[Run], estimate: Estimate, n: int) -> list[int]:
    """Joints whose scale the rows determine, taken as independent samples: the most generous reading."""
    p = len(estimate.base.parameters)
    information = information_of(wide)
    weights = {name: 1.0 / s for name, s in estimate.sigma.items()}
    left = list(range(n))
    while left:
        rows = information.select([*estimate.base.independent, *(p + j for j in left)])
        solution = solve(rows, weights=weights, prior=_weak_belief(rows.parameters, len(left)))
        deviation = np.sqrt(np.diag(solution.inverse)[len(estimate) :])
        worst = int(np.argmax(deviation))
        if deviation[worst] < _UNDETERMINED:
            return left
        del left[worst]
    return left


def _weak_belief(names: tuple[str, ...], n: int) -> Information:
    """Rows that keep one of the last n parameters, scales, from making the factor singular when it has no effect."""
    root = np.zeros((n, len(names)))
    root[:, -n:] = np.eye(n) / (10.0 * _UNDETERMINED)
    return belief(names, np.zeros(len(names)), root)


def _widened(estimate: Estimate, joints: Sequence[int], n: int) -> Estimate:
    """The estimate over its base parameters and the logarithms of some scales, which are where they should be."""
    base, r, p = estimate.base, len(estimate), len(estimate.base.parameters)
    others = [j for j in range(n) if j not in joints]
    independent = np.array([*base.independent, *(p + j for j in joints)])
    dependent = np.array([*base.dependent, *(p + j for j in others)], dtype=np.intp)
    K = np.zeros((r + len(joints), len(dependent)))
    K[:r, : len(base.dependent)] = base.K
    names = (*base.parameters, *(_scale_name(j) for j in range(n)))
    size = r + len(joints)
    return replace(
        estimate,
        base=BaseParameters(
            parameters=names, independent=independent, dependent=dependent, K=K, decision=base.decision
        ),
        units=(*estimate.units, *("1" for _ in joints)),
        values=np.concatenate([estimate.values, np.zeros(len(joints))]),
        covariance=np.zeros((size, size)),
    )
