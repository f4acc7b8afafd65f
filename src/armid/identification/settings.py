"""Settings of an identification."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from armid.consistency.bounds import Bounds
from armid.consistency.possible import PossibleBodies, Way
from armid.consistency.regularisers import PullBack, Regulariser
from armid.estimation.covariance import AutocorrelatedNoise, Covariance
from armid.identification.result import Result
from armid.identification.sensors import Imperfections
from armid.identification.tolerances import ImperfectionTolerances
from armid.logs.conditioning import Conditioning, VelocitySource
from armid.notes import Note
from armid.parameters.effects import Effects
from armid.robot.robot import Robot

if TYPE_CHECKING:  # few name them
    from armid.closed_loop.controller import JointController
    from armid.estimation.essential import Rule
    from armid.estimation.population import Population

PRIOR_WEIGHT = 0.1
"""Of the pull towards the prior bodies, see `Identification`: weak, it decides what the data leave open."""


class Method(StrEnum):
    """How the unconstrained estimate is found."""

    ORDINARY = "ols"
    """Every row counts the same."""
    WEIGHTED = "wls"
    """Every channel counts by its own noise."""
    HUBER = "huber"
    """The same, and outliers count less."""
    TUKEY = "tukey"
    """The same, and gross outliers do not count."""
    AUTO = "auto"
    """Weighted, or Huber where that predicts blocks of the training motion better."""
    RIDGE = "ridge"
    """Pulled towards the description's values, as strongly as the regulariser's weight says."""
    TORQUE_ERROR = "torque-error"
    """Corrections to the description's values from the error of its torque; the same values as weighted least squares."""
    TOTAL = "tls"
    """Total least squares: noise in the motion too, of the size the log shows."""
    INSTRUMENTAL = "iv"
    """Instrumental variables from simulating the arm along the commanded motion, which the log must hold."""
    DIDIM = "didim"
    """The simulated closed loop's torque nearest to the measured one; needs the controller."""
    CLOE = "cloe"
    """The simulated closed loop's position nearest to the measured one; needs the controller."""
    ML = "ml"
    """Maximum likelihood of position and torque in the simulated closed loop; needs the controller."""

    @property
    def in_loop(self) -> bool:
        """Whether the closed loop is simulated."""
        return self in (Method.DIDIM, Method.CLOE, Method.ML)


@dataclass(frozen=True, eq=False, kw_only=True)
class Identification:
    """Settings of an identification.

    Args:
        effects: what the model contains.
        conditioning: of the logs; open choices are made on the training motion.
        velocity: derived from position or as recorded; None: whichever explains the training torque better.
        method: of the unconstrained estimate.
        covariance: how the noise is modelled.
        regulariser: pull towards the prior in the consistent estimate; its weight is one over the squared
            relative doubt, so 0.1 doubts every body by three times its own size.
        bounds: further constraints on the bodies.
        way: how possible bodies are found: convex program, smooth refinement of it, or [Halper2024]'s inequalities.
        prior: an earlier result whose Information is added.
        presliding: look for a distance over which Coulomb friction turns around, joint by joint, on the training motion.
        find_gravity: estimate the direction of gravity (base tilt, mounting) and use it instead of the description's.
        essential: also eliminate parameters by this rule, and report what each removal costs; None for not.
        keep, drop: base parameters that this elimination must leave in, and take out first; names or patterns.
        sensitivity: also report what another cut-off and leaving out each file would change.
        seed: of sampled certificates.
        imperfections: families that may enter the model, with their tolerances; used by weighted least squares with linear
            friction.
        sensors: of a sensor file, undone in every recording first.
        correct: undo the faults that were found in the recordings, and say so.
        controller: of the recorded motion, for methods that simulate the closed loop.
        described: the arm as described, when the one identified is its calibrated version: how many parameters a motion
            must determine is a matter of the intended structure, see `usable_base`.
        population: of arms of this kind, as a prior for this one.
        remarks: on how the recordings came about, such as those set aside; they join the notes of the result.
    """

    effects: Effects
    conditioning: Conditioning = field(default_factory=Conditioning)
    velocity: VelocitySource | None = None
    method: Method = Method.WEIGHTED
    covariance: Covariance = field(default_factory=AutocorrelatedNoise)
    regulariser: Regulariser = field(default_factory=lambda: PullBack(PRIOR_WEIGHT))
    bounds: Bounds = field(default_factory=Bounds)
    way: Way = Way.LMI
    prior: Result | None = None
    presliding: bool = True
    find_gravity: bool = False
    essential: Rule | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    sensitivity: bool = True
    seed: int = 0
    controller: JointController | None = None
    described: Robot | None = None
    imperfections: ImperfectionTolerances = field(default_factory=ImperfectionTolerances)
    correct: bool = False
    sensors: Imperfections | None = None
    remarks: tuple[Note, ...] = ()
    population: Population | None = None

    @property
    def bodies(self) -> PossibleBodies:
        """Settings of the estimate of possible bodies."""
        return PossibleBodies(self.regulariser, self.bounds, self.way)
