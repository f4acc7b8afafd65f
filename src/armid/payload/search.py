"""The search for what an arm carries: a body fixed to its last link, given an identified arm.

With the arm known, the torque it does not explain is linear in the ten parameters of the load, and every joint feels all of
them: `y - A_arm b = A_load pi`. The uncertainty of the arm's own parameters is carried into that of the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.consistent import Consistency
from armid.consistency.prior import Prior
from armid.consistency.regularisers import PullBack
from armid.errors import InputError
from armid.estimation.covariance import AutocorrelatedNoise
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, information_of
from armid.identifiability.base import BaseParameters
from armid.identifiability.rank import RankDecision
from armid.information.information import ChannelInformation, Information, triangular
from armid.notes import Note, Severity
from armid.parameters.inertial import (
    INERTIAL_NAMES,
    INERTIAL_UNITS,
    N_INERTIAL,
    from_centre_of_mass,
    six,
    transformed,
)
from armid.parameters.space import PAYLOAD, ParameterSpace
from armid.payload.checks import SEEN, load_checks, synchronisation_check, torque_check
from armid.payload.payload import Payload, jacobian
from armid.payload.sensors import sensor_covariance
from armid.payload.synchronisation import in_step, out_of_step, synchronisation_note
from armid.robot.robot import Robot
from armid.rows.filtered import FilteredTorqueRows
from armid.rows.torque import TorqueRows

COLUMNS = tuple(f"{PAYLOAD}.{name}" for name in INERTIAL_NAMES)

_SMALLEST_LOAD = 0.02
"""[kg] A prior body needs some mass; lighter loads than this no joint torque sensor feels."""

_TYPICAL_RADIUS = 0.06
"""[m] Radius of gyration of a stand-in load: a compact tool of about 15 cm."""

_INDEPENDENT = ("iid", "per-channel")
"""Covariances that take samples for independent."""

_SEPARATED = 0.5
"""A principal direction of the load's inertia counts as measured when its standard deviation is below this share of
mass times `_TYPICAL_RADIUS` squared."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Arm:
    """The arm as identified without the load.

    Args:
        robot: geometry.
        estimate: its base parameters, over the parameters of the torque rows without payload.
        scale_deviation: relative standard deviation of the scale of all torques, the arm's and the load's alike; of drive gains
            for currents, zero for calibrated torque.
    """

    robot: Robot
    estimate: Estimate
    scale_deviation: float = 0.0

    def doubt(self, inflation: float) -> float:
        """Factor on its variances: those of independent samples are too small by what the memory of the noise makes of them."""
        return inflation if self.estimate.covariance_kind in _INDEPENDENT else 1.0

    def over(self, space: ParameterSpace) -> FloatArray:
        """Its standard parameters in the order of a parameter vector; those of a payload are zero, shape [p]."""
        known = dict(zip(self.estimate.base.parameters, self.estimate.standard, strict=True))
        values = []
        for parameter in space.parameters:
            if parameter.owner == PAYLOAD:
                values.append(0.0)
            elif parameter.name in known:
                values.append(float(known[parameter.name]))
            else:
                raise InputError(
                    "result", f"the arm was identified without {parameter.name}", "use the effects of the result"
                )
        return np.array(values)


@dataclass(frozen=True, slots=True)
class PayloadSearch:
    """Settings.

    Args:
        prior_weight: of the typical body the load is compared with; decides only what the motion does not show. Where
            the inertia cannot be told apart the weight is at least one: the typical body is then a belief, not a tie-break.
        offsets: let the drives' offsets differ from those of the result (temperature, another day).
        correlated: standard deviations for residuals with a memory; needs a motion, not single poses.
        parameters: how many of the ten parameters to look for: 10, or 4 (mass and first moments) at rest.
    """

    prior_weight: float = 1e-2
    offsets: bool = False
    correlated: bool = True
    parameters: int = N_INERTIAL

    def fit(self, arm: Arm, runs: Sequence[Run], *, frame: str | None = None) -> Payload:
        """The load of some runs that all carried it.

        Args:
            arm: identified without it.
            runs: with payload columns among their parameters.
            frame: the load is given in; the tip frame by default.
        """
        space = _space_of_run(runs[0])
        if COLUMNS[0] not in space:
            raise InputError("runs", "no payload among the parameters", "build them with payload=loaded")
        known = arm.over(space)
        rest = [run.with_measured(run.residuals(known)) for run in runs]
        wanted = [space.index(c) for c in COLUMNS[: self.parameters]]
        if self.offsets:
            wanted += [i for i, parameter in enumerate(space.parameters) if parameter.quantity == "offset"]
        free, covariance = self._least_squares(arm, rest, wanted)
        sensors = np.zeros(covariance.shape)
        if self.correlated:
            sensors = sensor_covariance(rest, free, known + free.standard, gains_known=arm.scale_deviation > 0.0)
        found = self.possible(arm, free, covariance, frame, sensors)
        lag, notes = self._steps(arm, runs, free, wanted)
        checks = [torque_check(*_left_over(runs, rest, free, wanted)), synchronisation_check(lag)]
        return replace(found, notes=(*found.notes, *notes), checks=(*found.checks, *checks))

    def _least_squares(self, arm: Arm, rest: Sequence[Run], wanted: Sequence[int]) -> tuple[Estimate, FloatArray]:
        """The load of what the arm does not explain, and its covariance with the arm's uncertainty."""
        information = information_of(rest)
        space = _space_of_run(rest[0])
        free = WeightedLeastSquares().fit(information, base_of_columns(rest[0].source.columns, wanted), prior=None)
        independent = np.diag(free.covariance)
        if self.correlated:
            free = AutocorrelatedNoise().apply(free, rest, information)
        inflation = max(float(np.exp(np.log(np.diag(free.covariance) / independent).mean())), 1.0)
        return free, free.covariance + arm_covariance(arm, space, information, free, wanted, inflation=inflation)

    def _steps(
        self, arm: Arm, runs: Sequence[Run], free: Estimate, wanted: Sequence[int]
    ) -> tuple[float, tuple[Note, ...]]:
        """By how much torque is late against position [s], and a word on it, as far as the load depends on it."""
        known = arm.over(_space_of_run(runs[0]))
        together = known.copy()
        together[wanted] += free.values
        lag = out_of_step(runs, together) if self.correlated else 0.0
        if lag == 0.0:
            return 0.0, ()
        moved = [in_step(run, lag) for run in runs]
        rest = [run.with_measured(run.residuals(known)) for run in moved]
        again, covariance = self._least_squares(arm, rest, wanted)
        change = float(free.values[0] - again.values[0])
        return lag, (synchronisation_note(runs[0].name, lag, change, float(deviations(covariance)[0])),)

    def possible(
        self, arm: Arm, free: Estimate, covariance: FloatArray, frame: str | None, sensors: FloatArray | None = None
    ) -> Payload:
        """The nearest possible body, in the wanted frame.

        Args:
            arm: that carries it.
            free: the load by least squares alone.
            covariance: of it, by noise and the arm, shape [k, k].
            frame: wanted.
            sensors: what sensors that are a little wrong add to the covariance.
        """
        k = self.parameters
        beside = np.zeros((N_INERTIAL, N_INERTIAL))
        if sensors is not None:
            beside[:k, :k] = sensors[:k, :k]
        values, covariance = free.values[:k], covariance[:k, :k]
        prior = _typical_body(values)
        root = np.linalg.cholesky(np.linalg.inv(correlation_matrix(covariance))).T / deviations(covariance)
        rows = np.zeros((k + 1, N_INERTIAL + 1))
        rows[:k, :k] = root
        rows[:k, -1] = root @ values
        doubt = _inertia_doubt(values, covariance) if k == N_INERTIAL else np.inf
        separated = doubt < _SEPARATED
        pull = PullBack(self.prior_weight if separated else max(self.prior_weight, 1.0))
        consistent = Consistency(pull).fit(_one_factor(rows), INERTIAL_UNITS, prior)
        posterior = _posterior_covariance(rows[:k, :-1], pull, prior)
        T = np.asarray(np.linalg.inv(arm.robot.frame(frame).T_link_frame), dtype=np.float64)
        change = np.array([transformed(e, T) for e in np.eye(N_INERTIAL)]).T
        moved = np.abs(consistent.values[:k] - values) / deviations(covariance)
        spread, at_rest = float(deviations(covariance)[0]), k < N_INERTIAL
        return Payload(
            frame=arm.robot.frame(frame).name,
            inertial=change @ consistent.values,
            covariance=change @ (posterior + beside) @ change.T,
            separated=separated,
            method=free.method,
            checks=load_checks(
                float(values[0]),
                spread,
                float(moved.max(initial=0.0)),
                doubt=None if at_rest else doubt,
                limit=_SEPARATED,
            ),
            notes=_load_notes(values, moved, spread, separated=separated, at_rest=at_rest),
        )


def base_of_columns(columns: Sequence[str], wanted: Sequence[int]) -> BaseParameters:
    """Some columns as base parameters, everything else absent: the arm is known."""
    independent = np.array(wanted, dtype=np.intp)
    dependent = np.setdiff1d(np.arange(len(columns)), independent)
    decision = RankDecision(
        rank=len(wanted),
        tolerance=1e-10,
        singular_values=np.ones(1),
        gap=np.inf,
        reason="the load's own parameters; the arm is known",
    )
    return BaseParameters(
        parameters=tuple(columns),
        independent=independent,
        dependent=dependent,
        K=np.zeros((len(wanted), len(dependent))),
        decision=decision,
    )


def _left_over(
    runs: Sequence[Run], rest: Sequence[Run], free: Estimate, wanted: Sequence[int]
) -> tuple[float, dict[str, float]]:
    """What arm and load leave of the measured torque, all joints stacked, as a fraction of it; and each joint's share of that."""
    load = np.zeros(len(runs[0].source.columns))
    load[list(wanted)] = free.values
    squares = np.sum([np.sum(run.residuals(load) ** 2, axis=0) for run in rest], axis=0)
    left, size = float(squares.sum()), sum(float(np.sum(run.y**2)) for run in runs)
    shares = squares / max(left, 1e-300)
    return float(np.sqrt(left / max(size, 1e-300))), dict(zip(runs[0].channels, shares.tolist(), strict=True))


def _space_of_run(run: Run) -> ParameterSpace:
    """The parameter vector of a run of joint torque.

    Raises:
        InputError: a run of something else.
    """
    if not isinstance(run.source, TorqueRows | FilteredTorqueRows):
        raise InputError(run.name, f"rows of {type(run.source).__name__}", "a load is found from joint torque")
    return run.source.space


def arm_covariance(
    arm: Arm,
    space: ParameterSpace,
    information: Information,
    free: Estimate,
    wanted: Sequence[int],
    *,
    inflation: float = 1.0,
) -> FloatArray:
    """What the arm's own uncertainty does to the load: S C S^T with S = (A^T W A)^-1 A^T W A_arm, and that of the torques' scale.

    The load could also be estimated together with corrections of the arm, C as their prior. On simulated arms that is a little
    better, on a real one (UR10e) clearly worse: corrections take up friction that changes with the load.
    """
    place = {p.name: i for i, p in enumerate(space.parameters) if p.owner != PAYLOAD}
    kept = [i for i, name in enumerate(arm.estimate.names) if name in place]
    own = [place[arm.estimate.names[i]] for i in kept]
    G = information.weighted({name: 1.0 / s for name, s in free.sigma.items()}).gram()
    load = list(wanted)
    S = sensitivity(G[np.ix_(load, load)], G[np.ix_(load, own)])
    C = S @ arm.estimate.covariance[np.ix_(kept, kept)] @ S.T
    return arm.doubt(inflation) * (C + arm.scale_deviation**2 * np.outer(free.values, free.values))


def sensitivity(G_load: FloatArray, G_cross: FloatArray) -> FloatArray:
    """(A^T W A)^-1 A^T W A_arm from Gram matrices, columns scaled, shape [10, n_arm]."""
    scale = 1.0 / np.sqrt(np.diag(G_load))
    scaled = np.linalg.solve(G_load * np.outer(scale, scale), G_cross * scale[:, np.newaxis])
    return np.asarray(scaled * scale[:, np.newaxis])


def deviations(covariance: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(np.diag(covariance), 1e-300))


def correlation_matrix(covariance: FloatArray) -> FloatArray:
    """The correlation matrix, kept invertible."""
    d = deviations(covariance)
    C = covariance / np.outer(d, d)
    return 0.5 * (C + C.T) + 1e-10 * np.eye(len(C))


def _typical_body(values: FloatArray) -> Prior:
    """A compact body of the measured mass at the measured centre (within arm's reach of the flange)."""
    mass = max(float(values[0]), _SMALLEST_LOAD)
    centre = values[1:4] / mass
    reach = float(np.linalg.norm(centre))
    centre = centre * min(1.0, 0.5 / reach) if reach > 0.0 else centre
    ten = from_centre_of_mass(mass, centre, mass * _TYPICAL_RADIUS**2 * np.eye(3))
    return Prior(names=COLUMNS, values=ten, scale=np.ones(N_INERTIAL), origin={PAYLOAD: "typical body"})


def _one_factor(rows: FloatArray) -> Information:
    """A ready triangular factor over the load's parameters as Information."""
    channel = ChannelInformation(PAYLOAD, np.arange(N_INERTIAL), triangular(rows), float(len(rows)))
    return Information(COLUMNS, (channel,))


def _posterior_covariance(root: FloatArray, pull: PullBack, prior: Prior) -> FloatArray:
    """Covariance of the load under an equally strong Gaussian prior, in units that keep it well scaled.

    The typical body has the mass and the centre that were measured: it is a belief about the inertia around that centre, given
    both, and none about them. r = I_c - m radius^2 1 has the prior's curvature by inertia.
    """
    length = _TYPICAL_RADIUS
    scale = prior.values[0] * np.array([1.0, *[length] * 3, *[length**2] * 6])
    J = jacobian(np.asarray(prior.values))[4:]
    J[:, 0] -= length**2 * six(np.eye(3))
    believed = J.T @ pull.curvature(prior)[4:, 4:] @ J
    H = (root * scale).T @ (root * scale) + pull.weight * believed * np.outer(scale, scale)
    return np.linalg.inv(H) * np.outer(scale, scale)


def _inertia_doubt(values: FloatArray, covariance: FloatArray) -> float:
    """Standard deviation of the worst direction of the load's inertia, as a share of a typical body's inertia."""
    largest = float(np.sqrt(np.linalg.eigvalsh(covariance[4:, 4:])[-1]))
    return largest / (max(float(values[0]), _SMALLEST_LOAD) * _TYPICAL_RADIUS**2)


def _load_notes(
    values: FloatArray, moved: FloatArray, spread: float, *, separated: bool, at_rest: bool
) -> tuple[Note, ...]:
    """What a reader must know about a load."""
    notes = []
    if at_rest:
        text = "poses at rest show mass and centre of mass only; the inertia given is that of a compact body"
        notes.append(Note("inertia-not-measured", Severity.INFO, text, PAYLOAD))
    elif not separated:
        text = (
            "the motion does not tell the load's inertia from its mass and centre: turn the wrist faster, about all of its "
            "axes; the inertia given is that of a compact body"
        )
        notes.append(Note("inertia-not-separated", Severity.WARNING, text, PAYLOAD))
    if values[0] <= 0.0:
        text = f"the torque asks for a mass of {values[0]:.3g} kg: no load, or torque of the wrong sign"
        notes.append(Note("no-load", Severity.ERROR, text, PAYLOAD))
    elif values[0] < SEEN * spread:
        text = f"{values[0]:.3g} kg is not to be told from nothing (standard deviation {spread:.2g} kg)"
        notes.append(Note("load-not-seen", Severity.WARNING, text, PAYLOAD))
    if float(moved.max(initial=0.0)) > 3.0:
        name = INERTIAL_NAMES[int(np.argmax(moved))]
        text = f"least squares alone gives an impossible body; {name} moved by {moved.max():.1f} standard deviations"
        notes.append(Note("made-consistent", Severity.WARNING, text, PAYLOAD))
    return tuple(notes)
