"""Which discrete mistake of a recording is there, if any: hypotheses held against the recording as it is.

Least squares fits a wrong sign almost as well as the truth, with bodies of negative inertia and friction that drives. So every
hypothesis is scored by the error of what can exist: first of parameters whose friction does not drive, which is quick, and where
that does not settle it, of physically consistent parameters. Scores are sums over channels of the logarithm of the error: the
likelihood when no channel's noise is known beforehand.
A channel explained to a hundredth of its torque is explained, and counts as that: smaller errors are what filters and sampling
leave of a model that is right, and by their ratio the light last joint of a small arm would be mirrored.

A mistake that is there makes the model right once it is undone, so that it predicts the held-out motion, undone there too, as
well as what it was learnt from. What merely takes up what a short or poor motion leaves unexplained does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, log

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.bounded import bounded_least_squares
from armid.estimation.covariance import row_inflation
from armid.estimation.imperfections import correlation_length
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, each_run, information_of
from armid.estimation.runs import lengths_of, thinned_runs
from armid.identification.angle_torque import beside_angles, beside_own_angle
from armid.identification.faults import Answer, Fault
from armid.identification.fit import Fit
from armid.identification.hypotheses import SIMPLEST, Hypothesis, Without, exchanges, not_tried, signs
from armid.identification.possible_errors import channel_errors, possible_values
from armid.identification.settings import Identification
from armid.identification.thresholds import (
    GROWTH,
    JOINT_ERROR,
    LIGHT_ERROR,
    MISTAKE_GAIN,
    MISTAKE_ODDS,
    NEGLIGIBLE,
    NEGLIGIBLE_ERROR,
    TIED,
    UNEXPLAINED,
)
from armid.information.information import Information
from armid.information.solve import reduced
from armid.information.status import EstimationError
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot

_LOOKED_AT = 1500
"""Samples spread over the training motion; a sign shows in far fewer."""
_FEW = 500
"""Of them for exchanged joints, of which there are many pairs."""
_QUICK = WeightedLeastSquares(tolerance=1e-2)
"""Noise of the quick score: what is wrong by a hundredth of it changes the score by its square."""
_MOST_COMPARED = 4
"""Hypotheses, the best by their quick score, whose possible bodies are found."""
_CANNOT_DRIVE = ("viscous", "coulomb", "motor_viscous", "motor_coulomb", "rotor_inertia")


def looked_at(runs: Sequence[Run]) -> tuple[Run, ...]:
    """What `mistakes` looks at of a motion."""
    return thinned_runs(runs, _LOOKED_AT) if len(runs) else ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Looked:
    """What `mistakes` looks at: a recording before it was freed from imperfections.

    Those were chosen to explain the recording as it is, and some of them stand in for what is wrong with it.

    Args:
        train, held_out: `looked_at` of either motion; nothing is held against no motion.
    """

    train: Sequence[Run]
    held_out: Sequence[Run]


def mistakes(
    robot: Robot, recorded: Looked, runs: Sequence[Run], fit: Fit, settings: Identification
) -> tuple[Fault, ...]:
    """Discrete mistakes that the training motion shows, or cannot exclude; empty where torque has two sides.

    Signs are always tried. Exchanged joints and turned encoders leave some joint unexplained, and are tried when one is.

    Args:
        robot: as the runs have it.
        recorded: see there.
        runs: training motion that the fit rests on.
        fit: see there.
        settings: see there.
    """
    n = robot.n_joints
    if settings.effects.torques not in (TorqueSide.LINK, TorqueSide.MOTOR) or any(
        run.inputs.shape[1] > 4 * n for run in recorded.train
    ):
        return ()
    torques = _torques(recorded.train)
    bodies = _Bodies(robot=robot, fit=fit, settings=settings, enough=NEGLIGIBLE_ERROR.value * torques)
    own = bodies.errors(information_of(recorded.train))
    if own is None:
        return ()
    rows = _independent_rows(runs, fit)
    without = Without(recorded.train)

    def scored(tried: Iterable[Hypothesis], few: Without, slack: float) -> list[_Score]:
        """The best by their quick score, each with what its possible bodies gain."""
        limit = _quick_score(information_of(few.runs), fit, inf, bodies.enough) + slack
        quick = [(_quick_score(few.told(m), fit, limit, bodies.enough), m) for m in tried]
        near = sorted((item for item in quick if item[0] < limit), key=lambda item: item[0])[:_MOST_COMPARED]
        found = ((m, bodies.errors(without.told(m))) for _, m in near)
        scores = [_Score(mistake=m, own=own, other=other, rows=rows) for m, other in found if other is not None]
        return [confirmed(s) if s.found else s for s in scores]

    def confirmed(score: _Score) -> _Score:
        """With what the held-out motion says of it, and rows without torque of the joints' angles."""
        if not _repeated(score, bodies, without, recorded.held_out):
            return replace(score, repeated=False)
        return replace(score, beside=tuple(_beside_angles(score, bodies, recorded.train)))

    answers = (*_answers(scored(signs(robot), without, log(TIED.value))), *not_tried(robot))
    if any(fault.answer is Answer.FOUND for fault in answers) or not np.any(own > JOINT_ERROR.value * torques):
        return answers
    return (*_answers(scored(exchanges(robot), Without(thinned_runs(recorded.train, _FEW)), 0.0)), *answers)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Score:
    """A hypothesis beside the recording as it is.

    Args:
        mistake: which.
        own, other: errors as it is, and without the mistake, by channel.
        rows: independent ones of a channel, beyond those that the parameters use up.
        repeated: whether the held-out motion shows it too.
        beside: the same two errors beside torque of the joints' angles, where that was looked at.
    """

    mistake: Hypothesis
    own: FloatArray
    other: FloatArray
    rows: float
    repeated: bool = True
    beside: tuple[tuple[FloatArray, FloatArray], ...] = ()

    @property
    def ratios(self) -> FloatArray:
        """Errors as it is over errors without the mistake, by channel."""
        return np.asarray(self.own / self.other)

    @property
    def gain(self) -> float:
        """Fall of the sum of the logarithms of the errors."""
        return float(np.sum(np.log(self.ratios)))

    @property
    def helped(self) -> npt.NDArray[np.bool_]:
        """Channels that are explained better without it."""
        return self.ratios > MISTAKE_GAIN.value

    @property
    def better(self) -> bool:
        """Whether it fits better, on as many joints as it must and its own among them.

        Another geometry may explain what the model lacks of a light joint beyond it: a cable, or a sensor that is not round.
        """
        least, own = self.mistake.least_better, self.helped[list(self.mistake.channels)]
        return self.gain > log(MISTAKE_GAIN.value) and int(np.sum(self.helped)) >= least and bool(np.any(own))

    @property
    def found(self) -> bool:
        """Whether it fits better beyond chance (as many independent rows make it so much likelier), and on other motion too.

        Beside torque of the joints' own angles likewise: what a cable explains as well is not said of the recording.
        """
        if not (self.better and self.repeated and self.rows * self.gain > log(MISTAKE_ODDS.value)):
            return False
        return all(replace(self, own=own, other=other, beside=()).found for own, other in self.beside)

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


def _repeated(score: _Score, bodies: _Bodies, without: Without, held_out: Sequence[Run]) -> bool:
    """Whether possible bodies of the training motion predict the held-out motion once the mistake is undone in both.

    Better than as it is recorded, and as the gate would have it: every joint that it helps within its limit, none far worse than
    on the training motion, none worse than without a model.
    """
    if not held_out:
        return True
    there, torques = Without(held_out), _torques(held_out)
    known, told = bodies.values(without.as_it_is), bodies.values(without.told(score.mistake))
    enough = NEGLIGIBLE_ERROR.value * torques
    own, other = _rms(there.as_it_is, known, enough), _rms(there.told(score.mistake), told, enough)
    light = np.minimum(LIGHT_ERROR.value * np.linalg.norm(torques), UNEXPLAINED.value * torques)
    limit = np.maximum(JOINT_ERROR.value * torques, light)
    grown = np.maximum(GROWTH.value * score.other, NEGLIGIBLE.value * limit)
    explained = np.minimum(grown, np.where(score.helped, limit, torques))
    better = float(np.sum(np.log(own / other))) > log(MISTAKE_GAIN.value)
    return better and bool(np.all(other < explained))


def _beside_angles(score: _Score, bodies: _Bodies, train: Sequence[Run]) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Errors as it is and without the mistake, torque of each joint's own angle free, and of all angles; none without bodies."""
    for rows in (beside_own_angle, beside_angles):
        told = Without(train, rows)
        own, other = bodies.errors(told.as_it_is), bodies.errors(told.told(score.mistake))
        if own is not None and other is not None:
            yield own, other


def _answers(scores: Sequence[_Score]) -> tuple[Fault, ...]:
    """The best of those that fit better is found, the simplest of equals; the others, and those that fit as well, are open."""
    better = sorted((s for s in scores if s.found), key=lambda s: SIMPLEST.index(s.mistake.kind))
    if not better:
        return tuple(score.mistake.fault(Answer.UNDECIDABLE, 0.0) for score in scores if score.tied)
    enough = max(score.gain for score in better) - log(TIED.value)
    chosen = next(score for score in better if score.gain > enough)
    equal = [score for score in scores if score is not chosen and score.better and score.gain > enough]
    rivals = [score.mistake.fault(Answer.UNDECIDABLE, score.explains) for score in equal]
    found = chosen.mistake.fault(Answer.FOUND, chosen.explains)
    return (replace(found, rivals=tuple(rival.name for rival in rivals)), *rivals)


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
    return np.maximum(channel_errors(rows, values), enough)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Bodies:
    """Possible bodies for rows of a recording, weighed as a fit weighed its own.

    Args:
        robot, fit, settings: as for `mistakes`.
        enough: error of each channel that counts as none.
    """

    robot: Robot
    fit: Fit
    settings: Identification
    enough: FloatArray

    def values(self, information: Information) -> FloatArray:
        """Their standard parameters.

        Raises:
            EstimationError: there are none.
        """
        free = WeightedLeastSquares().fit(information, self.fit.estimate.base)
        # Rows were thinned out: fewer of them, each more independent.
        share = information.count / max(self.fit.information.count, 1.0)
        return possible_values(
            self.robot,
            information,
            free,
            inflation=max(1.0, row_inflation(self.fit.information, self.fit.estimate) * share**0.5),
            units=self.fit.consistent.units,
            bodies=self.settings.bodies,
        )

    def errors(self, information: Information) -> FloatArray | None:
        """Error by channel of the best possible bodies on these rows, at least what is enough; None when there are none."""
        try:
            return _rms(information, self.values(information), self.enough)
        except EstimationError:
            return None
