"""One cell of the study: many recordings, each identified by itself, under one belief about the kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.covariance import AutocorrelatedNoise
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import rows_of, runs_of
from armid.estimation.run import information_of
from armid.identifiability.base import BaseParameters
from armid.identifiability.practical import excited_base
from armid.identifiability.structure import structural_base
from armid.identification.torque_error import stacked_relative_error, torque_errors
from armid.logs.samples import Samples
from armid.parameters.effects import Effects, PayloadRuns
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """Kinematics and kind of motion, and what repeated identifications gave.

    Args:
        kinematics, motion: names.
        label: short, as in the paper: CAD or ID, RP or OT.
        estimates: of the described arm's base parameters, shape [n_motions, n_repetitions, r].
        predicted: standard deviations that the first identification states itself, correlated residuals accounted for,
            shape [r].
        relative_error: held-out torque error of every identification, all channels, shape [n_motions, n_repetitions].
        rmse: held-out, mean over the identifications, by channel [N m or N].
        residuals: held-out, of the first identification, shape [n_samples, n_channels].
    """

    kinematics: str
    motion: str
    label: str
    estimates: FloatArray
    predicted: FloatArray
    relative_error: FloatArray
    rmse: dict[str, float]
    residuals: FloatArray

    @property
    def all(self) -> FloatArray:
        """Every identification, shape [n_motions * n_repetitions, r]."""
        return self.estimates.reshape(-1, self.estimates.shape[2])

    @property
    def mean(self) -> FloatArray:
        return np.asarray(self.all.mean(axis=0))

    @property
    def spread(self) -> FloatArray:
        """Standard deviation over all identifications, shape [r]: another motion of the same kind, and other noise."""
        return np.asarray(self.all.std(axis=0, ddof=1))

    @property
    def repeatability(self) -> FloatArray:
        """Standard deviation over recordings of the same motion, shape [r]: noise alone."""
        within = self.estimates - self.estimates.mean(axis=1, keepdims=True)
        freedom = self.estimates.shape[0] * (self.estimates.shape[1] - 1)
        return np.asarray(np.sqrt((within**2).sum(axis=(0, 1)) / freedom))

    def error(self, truth: FloatArray) -> FloatArray:
        """Root mean square difference from the truth, shape [r]: spread and bias together."""
        return np.asarray(np.sqrt(np.mean((self.all - truth) ** 2, axis=0)))


@dataclass(frozen=True, eq=False)
class Belief:
    """An arm to identify with.

    Args:
        name, label: of the kinematics.
        robot: the arm believed in.
    """

    name: str
    label: str
    robot: Robot


def described_base(nominal: Robot, effects: Effects) -> BaseParameters:
    """The combinations every case is compared in: base parameters of the arm as described."""
    loads = (True, False) if effects.payload is PayloadRuns.BOTH else (True,)
    return structural_base(*(rows_of(nominal, effects, loaded) for loaded in loads), what="the torque")


@dataclass(frozen=True, eq=False)
class RunEstimate:
    """What one recording gave by itself.

    Args:
        standard: standard parameters, shape [p].
        deviations: it states of the described arm's base parameters, correlated residuals accounted for, shape [r]; empty
            where nobody asked.
    """

    standard: FloatArray
    deviations: FloatArray


def identify_run(
    belief: Belief, base: BaseParameters, effects: Effects, samples: Samples, *, deviations: bool
) -> RunEstimate:
    """One recording identified by itself, weighted least squares ([Kolyubin2017] eq. 25).

    Args:
        belief: kinematics.
        base: combinations of parameters to compare, of the described arm.
        effects: what the model contains.
        samples: the recording.
        deviations: whether to state them.
    """
    fit = _estimate(belief, base, effects, samples)
    if not deviations:
        return RunEstimate(fit.standard, np.zeros(0))
    honest = _with_honest_covariance(belief, effects, samples, fit)
    M = base.projection @ honest.base.embedding
    variances = np.einsum("ij,jk,ik->i", M, honest.covariance, M)
    return RunEstimate(fit.standard, np.sqrt(np.maximum(variances, 0.0)))


def compare_runs(
    belief: Belief,
    motion: tuple[str, str],
    base: BaseParameters,
    effects: Effects,
    fits: Sequence[Sequence[RunEstimate]],
    held_out: Samples,
) -> Case:
    """Identifications of one kind of motion side by side, on the held-out motion.

    Args:
        belief: kinematics.
        motion: name and label of the kind of motion.
        base: combinations of parameters to compare, of the described arm.
        effects: what the model contains.
        fits: of several motions, each several times; the first with its deviations.
        held_out: of another motion.
    """
    test = runs_of(held_out, belief.robot, effects)
    flat = [fit.standard for repeats in fits for fit in repeats]
    errors = [torque_errors(test, standard) for standard in flat]
    return Case(
        kinematics=belief.name,
        motion=motion[0],
        label=f"{belief.label} {motion[1]}",
        estimates=np.array([[base.projection @ fit.standard for fit in repeats] for repeats in fits]),
        predicted=fits[0][0].deviations,
        relative_error=np.array([stacked_relative_error(test, s) for s in flat]).reshape(len(fits), -1),
        rmse={name: float(np.mean([e[name].rmse for e in errors])) for name in errors[0]},
        residuals=np.vstack([run.residuals(flat[0]) for run in test]),
    )


def _estimate(belief: Belief, base: BaseParameters, effects: Effects, samples: Samples) -> Estimate:
    """One recording's unconstrained estimate.

    Axes of a calibrated arm that should meet miss each other by fractions of a millimetre, which makes parameters
    independent on paper that no torque can tell apart; the data's own rank decides there, as in `usable_base`.
    """
    information = information_of(runs_of(samples, belief.robot, effects))
    if belief.label != NOMINAL_LABEL:
        base = excited_base(information)
    return WeightedLeastSquares().fit(information, base)


NOMINAL_LABEL = "CAD"


def _with_honest_covariance(belief: Belief, effects: Effects, samples: Samples, estimate: Estimate) -> Estimate:
    """The estimate with the deviations it would state: residuals of sampled motion are correlated."""
    runs = runs_of(samples, belief.robot, effects)
    return AutocorrelatedNoise().apply(estimate, runs, information_of(runs))
