"""A length of the description that is wrong: what looks like a wrong clock, a gain or a zero may be the arm drawn otherwise.

Columns of sensors are all that a search for faults compares, and one of them is nearest to any mistake of the geometry. So a
fault that is too large to be used is held against the description: the way from one joint to the next stretched, with bodies
free, and nothing undone. Both hypotheses are scored as discrete mistakes are, by the sum over channels of the logarithm of the
error. A few hundred samples tell; the rows of another geometry are evaluated without compiling them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import NORMAL_95
from armid.estimation.recording import torque_source, with_torque_source
from armid.estimation.run import Run
from armid.estimation.runs import lengths_of, thinned_runs
from armid.identifiability.base import BaseParameters
from armid.identification.faults import LENGTH, Answer, Fault
from armid.identification.thresholds import TIED
from armid.kernels.evaluate import reference_rows
from armid.robot.robot import Joint, Robot

_SAMPLES = 256
"""Of the training motion."""
_STEP = 0.1
"""Share by which a length is first stretched and shortened."""
_MOST = 0.5
"""Share by which a length may be wrong."""
_REFINED = 2
"""Lengths, the best by their first parabola, that are looked at again."""
_STEPS = 3
"""Of the parabola at most."""
_SETTLED = 1e-3
"""Share of a length by which a last step may move it."""
_WEIGHED = 4
"""Times that channels are weighed by their errors anew."""
_TOLERANCE = 0.01
"""Share by which lengths of a description may be off in a healthy cell: a millimetre of ten centimetres."""
_EXPERIMENT = "measure the length, or calibrate the arm (armid calibrate)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """The length that explains most.

    Args:
        joint: name; its constant translation is described wrongly, which in a URDF is the way to it from the joint before.
        share: by which it is described too long.
        standard_deviation: of that.
        score: sum of the logarithms of the channels' errors with it set right and nothing else.
    """

    joint: str
    share: float
    standard_deviation: float
    score: float

    def fault(self, answer: Answer, *, explains: float, instead: str = "") -> Fault:
        """As a row of what could be wrong."""
        half, found = NORMAL_95 * self.standard_deviation, answer is Answer.FOUND
        return Fault(
            kind=LENGTH,
            joint=self.joint,
            estimate=self.share,
            standard_deviation=self.standard_deviation,
            low=self.share - half,
            high=self.share + half,
            unit="1",
            tolerance=_TOLERANCE,
            answer=answer,
            explains=explains,
            words=f"description: way to {self.joint} from the joint before divided by {1.0 + self.share:.4g}"
            if found
            else "",
            experiment="" if found else f"explains as much as {instead}, and one of them is there: {_EXPERIMENT}",
            large=found,
        )


def score_of(runs: Sequence[Run], base: BaseParameters, noise: FloatArray) -> float:
    """Sum of the logarithms of the channels' errors of the free fit to a few samples.

    Args:
        runs: training motion.
        base: parameters to fit.
        noise: of the channels, to begin with [N m or N].
    """
    return _score(thinned_runs(runs, _SAMPLES), base, noise)


def wrong_length(
    robot: Robot, runs: Sequence[Run], base: BaseParameters, *, rows_per_sample: float, noise: FloatArray
) -> Length | None:
    """The length that explains most of these runs; None where the rows do not tell one.

    Args:
        robot: as described.
        runs: training motion in which nothing is undone.
        base: parameters to fit.
        rows_per_sample: how many samples of the runs tell as much as one independent one.
        noise: of the channels where nothing is wrong [N m or N].
    """
    thin = thinned_runs(runs, _SAMPLES)
    rows = max(1.0, rows_per_sample * sum(map(len, thin)) / max(sum(lengths_of(runs)), 1))

    def energy(j: int, share: float) -> float:
        other = _described(thin, robot, j, share)
        return float(np.sum((_residuals(other, base, noise) / noise) ** 2)) / rows

    as_it_is = energy(0, 0.0)
    found = [
        _Parabola.through(j, [(0.0, as_it_is), *((x, energy(j, x)) for x in (-_STEP, _STEP))])
        for j, joint in enumerate(robot.joints)
        if _has_length(joint)
    ]
    best = sorted((p for p in found if p is not None), key=lambda p: p.least)[:_REFINED]
    settled = [p for p in (_settled(p, partial(energy, p.joint)) for p in best) if p is not None]
    if not settled:
        return None
    own = min(settled, key=lambda p: p.least)
    return Length(
        joint=robot.joint_names[own.joint],
        share=own.place,
        standard_deviation=own.deviation,
        score=_score(_described(thin, robot, own.joint, own.place), base, noise),
    )


def length_answers(found: Sequence[Fault], length: Length, undone: float, before: float) -> tuple[Fault, ...]:
    """What was found, with the length in its place where that explains more, and beside it where it explains as much.

    Args:
        found: faults, of which some are too large to be used.
        length: see there.
        undone: score with these faults undone.
        before: score with nothing undone.
    """
    explains = float(np.clip(1.0 - np.exp(2.0 * (length.score - before) / max(len(found), 1)), 0.0, 1.0))
    names = ", ".join(fault.name for fault in found)
    if length.score > undone + log(TIED.value) or abs(length.share) < _TOLERANCE:
        return tuple(found)
    if length.score > undone - log(TIED.value):
        doubt = f"(unless it is length of {length.joint}, which explains as much)"
        rival = length.fault(Answer.UNDECIDABLE, explains=explains, instead=names)
        return (*(replace(fault, words=f"{fault.words} {doubt}".lstrip()) for fault in found), rival)
    less = f"length of {length.joint} explains more: {_EXPERIMENT}"
    open_ = (replace(f, answer=Answer.UNDECIDABLE, words="", experiment=less, large=False) for f in found)
    return (length.fault(Answer.FOUND, explains=explains), *open_)


@dataclass(frozen=True, slots=True)
class _Parabola:
    """Of the squared error over the share by which a length is too long: where it is least, how little, and its curvature."""

    joint: int
    place: float
    least: float
    curvature: float

    @property
    def deviation(self) -> float:
        """Of the place, where energies are in units of the noise."""
        return float(np.sqrt(2.0 / self.curvature))

    @staticmethod
    def through(joint: int, points: Sequence[tuple[float, float]]) -> _Parabola | None:
        """Through three points; None where it has no lowest point, or a share that cannot be."""
        x, y = np.array(points).T
        c, b, a = np.linalg.solve(np.vander(x, 3, increasing=True), y)
        if not (np.isfinite(y).all() and a > 1e-9 * abs(y).max()):
            return None
        place = float(-0.5 * b / a)
        return _Parabola(joint, place, float(c + 0.5 * b * place), 2.0 * float(a)) if abs(place) <= _MOST else None


def _settled(first: _Parabola, energy: Callable[[float], float]) -> _Parabola | None:
    """The parabola at its own lowest point, of ever smaller steps."""
    own: _Parabola | None = first
    step = 0.3 * _STEP
    for _ in range(_STEPS):
        if own is None:
            return None
        middle = own.place
        own = _Parabola.through(own.joint, [(x, energy(x)) for x in (middle, middle - step, middle + step)])
        if own is not None and abs(own.place - middle) < _SETTLED:
            return own
        step *= 0.5
    return own


def _score(runs: Sequence[Run], base: BaseParameters, noise: FloatArray) -> float:
    """Sum of the logarithms of the channels' errors, each weighed by its own."""
    errors = noise
    for _ in range(_WEIGHED):
        errors = np.maximum(np.sqrt(np.mean(_residuals(runs, base, errors) ** 2, axis=0)), 1e-12 * noise)
    return float(np.sum(np.log(errors)))


def _residuals(runs: Sequence[Run], base: BaseParameters, noise: FloatArray) -> FloatArray:
    """Of the free fit to runs of few samples, channels weighed by this noise [N m or N], shape [n, n_channels]."""
    A = np.concatenate([reference_rows(run.source, run.inputs)[:, :, list(base.independent)] for run in runs])
    y = np.concatenate([run.y for run in runs])
    weighed = (A / noise[:, np.newaxis]).reshape(-1, A.shape[2])
    norms = np.maximum(np.linalg.norm(weighed, axis=0), 1e-300)
    b = np.linalg.lstsq(weighed / norms, (y / noise).ravel(), rcond=1e-12)[0] / norms
    return np.asarray(y - A @ b)


def _described(runs: Sequence[Run], robot: Robot, j: int, share: float) -> list[Run]:
    """The runs of an arm whose translation at joint j is described too long by a share, and here is not."""
    own = (stretched(joint, 1.0 / (1.0 + share)) if i == j else joint for i, joint in enumerate(robot.joints))
    arm = replace(robot, joints=tuple(own))
    return [with_torque_source(run, replace(torque_source([run]), robot=arm)) for run in runs]


def stretched(joint: Joint, factor: float) -> Joint:
    """The joint with its constant translations multiplied."""
    return replace(
        joint,
        transforms=tuple(
            replace(e, value=factor * e.value) if _is_way(e.motion.is_rotation, e.variable) else e
            for e in joint.transforms
        ),
    )


def _is_way(rotation: bool, variable: bool) -> bool:
    return not rotation and not variable


def _has_length(joint: Joint) -> bool:
    """Whether there is some way from the joint before."""
    return any(_is_way(e.motion.is_rotation, e.variable) and e.value != 0.0 for e in joint.transforms)
