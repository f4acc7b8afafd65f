"""A whole simulated experiment: which specimen, which controller, which sensors, which mistakes; and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from armid.errors import InputError
from armid.logs.log import Log
from armid.robot.robot import Robot
from armid.simulation.controllers import ComputedTorque, Controller, HandGuiding, PdGravity
from armid.simulation.measure import Mistakes, hanging, measure, temperatures
from armid.simulation.motions import CommandedMotion
from armid.simulation.physics import Physics
from armid.simulation.run import SimulatedRun, run_motion
from armid.simulation.sensors import Sensors
from armid.simulation.tracker import EncoderErrors, Tracker
from armid.simulation.variation import varied

_LARGEST_VARIATION = 1.0
"""Relative; a specimen that is off by more than everything is another robot."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scenario:
    """What is simulated, apart from the arm and its motion.

    Args:
        controller: how the arm is driven.
        physics: what the arm is subject to.
        sensors: what is logged, and how well; None for perfect ones.
        mistakes: made by whoever logged it.
        variation: how much the physical arm differs from its description, relative, 0 to 1; see `variation.varied`.
        model_variation: how much the controller's model differs from the description, relative.
        tracker: what watches the tool, for measured poses.
        joint_errors: compliance and encoder errors, for measured poses.
        seed: of everything random.
    """

    controller: Controller = field(default_factory=PdGravity)
    physics: Physics = field(default_factory=Physics)
    sensors: Sensors = field(default_factory=Sensors)
    mistakes: Mistakes = field(default_factory=Mistakes)
    variation: float = 0.0
    model_variation: float = 0.0
    tracker: Tracker = field(default_factory=Tracker)
    joint_errors: EncoderErrors = field(default_factory=EncoderErrors)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError("seed", f"{self.seed}", "a whole number from 0 on")
        for name in ("variation", "model_variation"):
            value = getattr(self, name)
            if not 0.0 <= value <= _LARGEST_VARIATION:
                raise InputError(name, f"{value}", f"a relative deviation from 0 to {_LARGEST_VARIATION:g}")


@dataclass(frozen=True, eq=False)
class Experiment:
    """A simulated experiment.

    Args:
        declared: the arm as its users believe it to be.
        scenario: what was simulated.
        run: what really happened; `run.robot` is the physical arm.
        log: what was logged.
    """

    declared: Robot
    scenario: Scenario
    run: SimulatedRun
    log: Log


# Streams of chance besides the sensors' own, which are derived from the seed itself.
SPECIMEN, MODEL = 1, 2


def physical_robot(declared: Robot, scenario: Scenario) -> Robot:
    """The specimen that is really there: varied parameters, and hanging when it was mounted wrongly."""
    robot = declared
    if scenario.variation:
        robot = varied(robot, scenario.variation, np.random.default_rng([scenario.seed, SPECIMEN]))
    return hanging(robot) if scenario.mistakes.upside_down else robot


def _with_model_error(controller: Controller, declared: Robot, scenario: Scenario) -> Controller:
    """The controller with a model as wrong as the scenario says; the real mounting is known to it."""
    believed = hanging(declared) if scenario.mistakes.upside_down else declared
    if scenario.model_variation:
        believed = varied(believed, scenario.model_variation, np.random.default_rng([scenario.seed, MODEL]))
    if isinstance(controller, PdGravity | ComputedTorque | HandGuiding) and controller.model is None:
        return replace(controller, model=believed)
    return controller


def _with_seed(physics: Physics, seed: int) -> Physics:
    """The physics with its encoders' noise drawn from the scenario's seed as well as their own."""
    if physics.feedback is None:
        return physics
    own = int(np.random.SeedSequence([seed, physics.feedback.seed]).generate_state(1)[0])
    return replace(physics, feedback=replace(physics.feedback, seed=own))


def run_scenario(
    declared: Robot, motion: CommandedMotion, scenario: Scenario | None = None, *, start: npt.ArrayLike | None = None
) -> Experiment:
    """Simulates an experiment: the specimen, the motion, the sensors, the mistakes. The same seed gives the same log.

    Args:
        declared: the arm as described.
        motion: commanded, in drive coordinates.
        scenario: everything else; a perfect arm of that description by default.
        start: where the arm stands at rest, shape [n_joints]; by default it is already in the motion's first state.
    """
    plan = scenario or Scenario()
    run = run_motion(
        physical_robot(declared, plan),
        motion,
        controller=_with_model_error(plan.controller, declared, plan),
        physics=_with_seed(plan.physics, plan.seed),
        declared=declared,
        start=start,
    )
    log = measure(run, plan.sensors, mistakes=plan.mistakes, declared=declared, seed=plan.seed)
    if plan.physics.drift.active:
        log = temperatures(plan.physics.drift, log)
    return Experiment(declared, plan, run, log)
