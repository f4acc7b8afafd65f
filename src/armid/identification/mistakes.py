"""Discrete mistakes of a recording as hypotheses: another sign, two joints exchanged, a quarter turn of an encoder.

Least squares fits a wrong sign almost as well as the truth, with bodies of negative inertia and friction that drives. So every
hypothesis is scored by the error of what can exist: first of parameters whose friction does not drive, which is quick, and where
that does not settle it, of physically consistent parameters. Scores are sums over channels of the logarithm of the error: the
likelihood when no channel's noise is known beforehand.
A channel explained to a hundredth of its torque is explained, and counts as that: smaller errors are what filters and sampling
leave of a model that is right, and by their ratio the light last joint of a small arm would be mirrored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import inf, log, pi

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.bounded import bounded_least_squares
from armid.estimation.covariance import row_inflation
from armid.estimation.imperfections import correlation_length
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, each_run, information_of
from armid.estimation.runs import lengths_of, thinned_runs
from armid.identification.candidates import MOTION, in_mapping
from armid.identification.faults import Answer, Fault
from armid.identification.fit import Fit, consistent_prior
from armid.identification.settings import Identification
from armid.identification.thresholds import JOINT_ERROR, MISTAKE_GAIN, MISTAKE_ODDS, NEGLIGIBLE_ERROR, TIED
from armid.information.information import Information, with_reversed
from armid.information.solve import reduced
from armid.information.status import EstimationError
from armid.parameters.effects import TorqueSide
from armid.robot.robot import JointKind, Robot

_LOOKED_AT = 1500
"""Samples spread over the training motion; a sign shows in far fewer."""
_FEW = 500
"""Of them for exchanged joints, of which there are many pairs."""
_QUICK = WeightedLeastSquares(tolerance=1e-2)
"""Noise of the quick score: what is wrong by a hundredth of it changes the score by its square."""
_MOST_COMPARED = 4
"""Hypotheses, the best by their quick score, whose possible bodies are found."""
_SIMPLEST = ("torque-sign", "mirrored", "position-sign", "torques-swapped", "swapped", "quarter-turn")
"""Of mistakes that explain as much the first is named."""
_CANNOT_DRIVE = ("viscous", "coulomb", "motor_viscous", "motor_coulomb", "rotor_inertia")

Change = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From inputs [n_samples, >= 3 n] and torque [n_samples, n] to what they would be without the mistake."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Hypothesis:
    """Something that is either wrong with a recording or not.

    Args:
        kind: `torque-sign`, `position-sign`, `mirrored`, `swapped`, `torques-swapped`, `quarter-turn`.
        joint: that it is about; of two the first.
        words: that undo it in a mapping.
        experiment: that would decide it.
        undo: the motion and torque without it, save for `reversed_torque`; one function for hypotheses that share it.
        reversed_torque: channel whose torque has the other sign, besides.
        angle: by which the zero is off [rad]; NaN for what has no size.
        other: the second joint of two.
    """

    kind: str
    joint: str
    words: str
    experiment: str
    undo: Change
    reversed_torque: int | None = None
    angle: float = float("nan")
    other: str = ""

    @property
    def exchange(self) -> bool:
        """Whether it is more than a sign."""
        return self.kind not in _SIMPLEST[:3]

    @property
    def least_better(self) -> int:
        """Joints that must be explained better without it.

        Two joints that were exchanged are both wrong, and a turned encoder turns weight for its own joint and for those beside
        it. Of one light joint alone another geometry explains a cable, or a sensor that is not round.
        """
        return 2 if self.exchange else 1

    def fault(self, answer: Answer, explains: float) -> Fault:
        """As a row of what could be wrong; found, it is always too large to be used."""
        found = answer is Answer.FOUND
        return Fault(
            kind=f"{self.kind} with {self.other}" if self.other else self.kind,
            joint=self.joint,
            estimate=self.angle,
            low=self.angle,
            high=self.angle,
            standard_deviation=0.0 if found else inf,
            unit="rad" if self.angle == self.angle else "",
            answer=answer,
            explains=explains,
            words=self.words if found else "",
            experiment="" if found else self.experiment,
            large=found,
        )


def looked_at(runs: Sequence[Run]) -> tuple[Run, ...]:
    """What `mistakes` looks at of a training motion."""
    return thinned_runs(runs, _LOOKED_AT)


def mistakes(
    robot: Robot, recorded: Sequence[Run], runs: Sequence[Run], fit: Fit, settings: Identification
) -> tuple[Fault, ...]:
    """Discrete mistakes that the training motion shows, or cannot exclude; empty where torque has two sides.

    Signs are always tried. Exchanged joints and turned encoders leave some joint unexplained, and are tried when one is.

    Args:
        robot: as the runs have it.
        recorded: `looked_at` of the training motion before it was freed from imperfections: those were chosen to explain the
            recording as it is, and some of them stand in for what is wrong with it.
        runs: training motion that the fit rests on.
        fit: see there.
        settings: see there.
    """
    n = robot.n_joints
    if settings.effects.torques not in (TorqueSide.LINK, TorqueSide.MOTOR) or any(
        run.inputs.shape[1] > 4 * n for run in recorded
    ):
        return ()
    torques = _torques(recorded)
    enough = NEGLIGIBLE_ERROR.value * torques
    own = _errors(robot, information_of(recorded), fit, settings, enough)
    if own is None:
        return ()
    rows = _independent_rows(runs, fit)
    without = _Without(recorded)

    def scored(tried: Iterable[Hypothesis], few: _Without, slack: float) -> list[_Score]:
        """The best by their quick score, each with what its possible bodies gain."""
        limit = _quick_score(information_of(few.runs), fit, inf, enough) + slack
        quick = [(_quick_score(few.told(m), fit, limit, enough), m) for m in tried]
        near = sorted((item for item in quick if item[0] < limit), key=lambda item: item[0])[:_MOST_COMPARED]
        found = ((m, _errors(robot, without.told(m), fit, settings, enough)) for _, m in near)
        return [_Score(m, own / other, rows) for m, other in found if other is not None]

    answers = (*_answers(scored(signs(robot), without, log(TIED.value))), *_not_tried(robot))
    if any(fault.answer is Answer.FOUND for fault in answers) or not np.any(own > JOINT_ERROR.value * torques):
        return answers
    return (*_answers(scored(exchanges(robot), _Without(thinned_runs(recorded, _FEW)), 0.0)), *answers)


@dataclass(frozen=True, eq=False)
class _Score:
    """A hypothesis beside the recording as it is.

    Args:
        mistake: which.
        ratios: errors as it is over errors without the mistake, by channel.
        rows: independent ones of a channel, beyond those that the parameters use up.
    """

    mistake: Hypothesis
    ratios: FloatArray
    rows: float

    @property
    def gain(self) -> float:
        """Fall of the sum of the logarithms of the errors."""
        return float(np.sum(np.log(self.ratios)))

    @property
    def better(self) -> bool:
        """Whether it fits better, on as many joints as it must."""
        better = int(np.sum(self.ratios > MISTAKE_GAIN.value))
        return self.gain > log(MISTAKE_GAIN.value) and better >= self.mistake.least_better

    @property
    def found(self) -> bool:
        """Whether it fits better beyond chance: as many independent rows make it so much likelier."""
        return self.better and self.rows * self.gain > log(MISTAKE_ODDS.value)

    @property
    def tied(self) -> bool:
        """Whether it fits as well as the recording as it is, or better though not so much that it is found."""
        if self.better:
            return not self.found
        return self.gain > -log(TIED.value) and not self.mistake.exchange

    @property
    def explains(self) -> float:
        """Share of the squared error that goes away, every channel counting the same."""
        return float(np.mean(1.0 - np.minimum(1.0 / self.ratios, 1.0) ** 2))


def _answers(scores: Sequence[_Score]) -> tuple[Fault, ...]:
    """The best of those that fit better is found, the simplest of equals; those that fit as well are undecidable."""
    better = sorted((s for s in scores if s.found), key=lambda s: _SIMPLEST.index(s.mistake.kind))
    if better:
        best = max(score.gain for score in better)
        chosen = next(score for score in better if score.gain > best - log(TIED.value))
        return (chosen.mistake.fault(Answer.FOUND, chosen.explains),)
    return tuple(score.mistake.fault(Answer.UNDECIDABLE, 0.0) for score in scores if score.tied)


def _not_tried(robot: Robot) -> tuple[Fault, ...]:
    """Directions of drives that move several joints: reversed, their coupling would be another one too."""
    return tuple(
        Fault(
            kind=kind,
            joint=robot.joint_names[j],
            experiment=f"turn {robot.joint_names[j]} and look which way it counts",
        )
        for j in range(robot.n_joints)
        if _coupled(robot, j)
        for kind in ("position-sign", "mirrored")
    )


def _coupled(robot: Robot, j: int) -> bool:
    """Whether a drive moves more than its own joint, or another drive moves that too."""
    C = robot.coupling
    return C is not None and bool(np.count_nonzero(C[j]) + np.count_nonzero(C[:, j]) > 2)


def _independent_rows(runs: Sequence[Run], fit: Fit) -> float:
    """Of a channel, by how long its residuals hold together, without those that the parameters use up; zero where none are left.

    Of an arm that hardly moves there are fewer than parameters, and any hypothesis may fit.
    """
    lengths = np.array(list(each_run(runs, partial(_correlation_lengths, standard=fit.estimate.standard))))
    counts = np.array(lengths_of(runs), dtype=np.float64)
    independent = float(np.sum(counts[:, np.newaxis] / np.maximum(lengths, 1.0)))
    return max(independent - len(fit.estimate.base), 0.0) / lengths.shape[1]


def _correlation_lengths(run: Run, standard: FloatArray) -> list[float]:
    """Of the residuals of a run, by channel."""
    return [correlation_length(column) for column in run.residuals(standard).T]


def _torques(runs: Sequence[Run]) -> FloatArray:
    """Root mean square torque by channel."""
    return np.maximum(np.sqrt(sum(np.sum(run.y**2, axis=0) for run in runs) / sum(lengths_of(runs))), 1e-150)


def signs(robot: Robot) -> Iterator[Hypothesis]:
    """Signs of torque and position, joint by joint; of drives that are coupled, of torque alone."""
    n, names = robot.n_joints, robot.joint_names
    for j, name in enumerate(names):
        yield Hypothesis(
            kind="torque-sign",
            joint=name,
            words=in_mapping("torque", "sign", name, "-1"),
            experiment=f"move {name} against a spring or a hand and look at the sign",
            undo=_as_it_is,
            reversed_torque=j,
        )
        if _coupled(robot, j):
            continue
        backwards = _backwards(j, n)
        yield Hypothesis(
            kind="position-sign",
            joint=name,
            words=in_mapping(MOTION, "sign", name, "-1"),
            experiment=f"turn {name} and look which way it counts",
            undo=backwards,
        )
        yield Hypothesis(
            kind="mirrored",
            joint=name,
            words=in_mapping("position, velocity and torque", "sign", name, "-1"),
            experiment=f"turn {name} and look which way it counts",
            undo=backwards,
            reversed_torque=j,
        )


def exchanges(robot: Robot) -> Iterator[Hypothesis]:
    """Joints exchanged, with and without their motion, and encoders off by a quarter or half a turn; not for coupled drives."""
    if robot.coupling is not None:
        return
    names, n = robot.joint_names, robot.n_joints
    for i, j in combinations(range(n), 2):
        for kind, motion in (("torques-swapped", False), ("swapped", True)):
            what = "columns" if motion else "torque columns"
            yield Hypothesis(
                kind=kind,
                joint=names[i],
                words=f"{what} of {names[i]} and {names[j]} exchanged",
                experiment=f"move {names[i]} alone",
                undo=_swapped(i, j, n, motion=motion),
                other=names[j],
            )
    for j, joint in enumerate(robot.joints):
        for angle in (0.5 * pi, pi, -0.5 * pi) if joint.kind is JointKind.REVOLUTE else ():
            yield Hypothesis(
                kind="quarter-turn",
                joint=joint.name,
                words=in_mapping("position", "offset", joint.name, f"{-angle:.6g}"),
                experiment=f"drive {joint.name} to its zero and look",
                undo=_turned(j, -angle),
                angle=angle,
            )


def _as_it_is(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    return inputs, y


def _backwards(j: int, n: int) -> Change:
    def change(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        inputs = np.array(inputs)
        inputs[:, j::n] *= -1.0  # position, velocity, acceleration and direction of the joint
        return inputs, y

    return change


def _turned(j: int, angle: float) -> Change:
    def change(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        inputs = np.array(inputs)
        inputs[:, j] += angle
        return inputs, y

    return change


def _swapped(i: int, j: int, n: int, *, motion: bool) -> Change:
    def change(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        y = np.array(y)
        y[:, [i, j]] = y[:, [j, i]]
        if motion:
            inputs = np.array(inputs)
            for start in range(0, inputs.shape[1], n):
                inputs[:, [start + i, start + j]] = inputs[:, [start + j, start + i]]
        return inputs, y

    return change


class _Without:
    """What a few runs tell once a mistake is undone; hypotheses that differ in the sign of a torque alone share their rows.

    Args:
        runs: as recorded.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._known: dict[Change, Information] = {_as_it_is: information_of(runs)}

    def told(self, mistake: Hypothesis) -> Information:
        """Of the rows without it."""
        if mistake.undo not in self._known:
            self._known[mistake.undo] = information_of([_undone(run, mistake.undo) for run in self.runs])
        known, channel = self._known[mistake.undo], mistake.reversed_torque
        return known if channel is None else with_reversed(known, self.runs[0].channels[channel])


def _undone(run: Run, undo: Change) -> Run:
    inputs, y = undo(run.inputs, run.y)
    return replace(run, inputs=inputs, y=y)


def _quick_score(information: Information, fit: Fit, limit: float, enough: FloatArray) -> float:
    """Sum of the logarithms of the channels' errors with friction that does not drive; infinite when it cannot be fitted.

    Args:
        information: of the rows.
        fit: whose base parameters are estimated.
        limit: above which the score need not be exact.
        enough: error of each channel that counts as none.
    """
    base = fit.estimate.base
    try:
        values, sigma = _QUICK.quick(information, base)
    except EstimationError:
        return inf
    rows = reduced(information, base)
    if (score := float(np.sum(np.log(_rms(rows, values, enough))))) > limit:
        return score
    factor = rows.weighted({name: 1.0 / max(s, 1e-12) for name, s in sigma.items()}).stacked()
    bounded = np.array([one.quantity in _CANNOT_DRIVE for one in base.leading])
    if np.any(bounded & (values < 0.0)):
        scale = np.maximum(np.linalg.norm(factor[:-1, :-1], axis=0), 1e-300)
        values = bounded_least_squares(factor[:-1, :-1] / scale, factor[:-1, -1], bounded) / scale
    return float(np.sum(np.log(_rms(rows, values, enough))))


def _rms(rows: Information, values: FloatArray, enough: FloatArray) -> FloatArray:
    """Root mean square error by channel, at least what is enough."""
    return np.sqrt(
        [max(c.error_energy(values) / max(c.count, 1.0), e**2) for c, e in zip(rows.channels, enough, strict=True)]
    )


def _errors(
    robot: Robot, information: Information, fit: Fit, settings: Identification, enough: FloatArray
) -> FloatArray | None:
    """Error by channel of the best possible bodies on these rows, at least what is enough; None when there are none."""
    try:
        free = WeightedLeastSquares().fit(information, fit.estimate.base)
        prior = consistent_prior(robot, information.parameters, information, free)
        # Rows were thinned out: fewer of them, each more independent.
        share = information.count / max(fit.information.count, 1.0)
        inflation = max(1.0, row_inflation(fit.information, fit.estimate) * share**0.5)
        rows = information.weighted({name: 1.0 / (s * inflation) for name, s in free.sigma.items()})
        values = settings.bodies.values(rows, fit.consistent.units, prior)
    except EstimationError:
        return None
    return _rms(information, values, enough)
