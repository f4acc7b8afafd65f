"""Simulated logs in which nothing is wrong, as varied as cells are: how often something is found all the same.

Case k of a seed is always the same log: an arm of the catalogue or of the `example-robot-data` wheel, a specimen off its
description, one of three motions, a rate, sensors, drives, a side of the drives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import armid
from armid.errors import ArmidError, InputError
from armid.identification.faults import Answer
from armid.identification.result import Result
from armid.logs.log import Log
from armid.motions.limits import motion_limits
from armid.motions.trajectory import Trajectory
from armid.motions.trapezoid import random_waypoints
from armid.robot.robot import Robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario
from armid.simulation.sensors import RecordedVelocity, Sensors, TorqueSensor, VelocitySensor, typical_sensors
from armid.studies.arms import package_arms, random_motion
from bench.measure import table

CATALOGUE = ("panda", "iiwa14", "ur10e", "rv2sq", "tx40", "lwr4plus")
MOTIONS = ("fourier", "fourier", "point-to-point", "slow")
RATES = (100.0, 250.0, 500.0, 1000.0)
BY_FAULTS = ("fault", "implausible-sensor")
"""Codes of conditions that fail by a fault."""


@dataclass(frozen=True, kw_only=True)
class CleanCase:
    """What is simulated.

    Args:
        number: of the case.
        arm: catalogue name, or file of the wheel.
        motion: one of `MOTIONS`.
        seconds: of it.
        rate: of the log [Hz].
        noise: of the torque sensors, times typical ones'; 0 for perfect sensors.
        velocity: recorded, differenced or none.
        variation: of the specimen against its description.
        friction, rotors: over the torque and inertia of every joint.
        torques: side that is identified.
    """

    number: int
    arm: str
    motion: str
    seconds: float
    rate: float
    noise: float
    velocity: str
    variation: float
    friction: float
    rotors: float
    torques: str

    @property
    def name(self) -> str:
        """In one line."""
        return (
            f"{self.number} {self.arm}, {self.motion} {self.seconds:.0f} s at {self.rate:.0f} Hz, noise x {self.noise:g}, "
            f"velocity {self.velocity}, {self.torques}"
        )


@cache
def arms() -> dict[str, Robot]:
    """Arms by name: those of the catalogue, then those of the wheel where it is installed."""
    found = {name: armid.load_robot(name) for name in CATALOGUE}
    with suppress(InputError):
        found |= {file.path.stem: file.robot for file in package_arms() if file.robot is not None}
    return found


def case_of(number: int, seed: int = 0) -> CleanCase:
    """A case by its number."""
    rng = np.random.default_rng([seed, number])
    return CleanCase(
        number=number,
        arm=str(rng.choice(list(arms()))),
        motion=str(rng.choice(MOTIONS)),
        seconds=float(rng.uniform(10.0, 30.0)),
        rate=float(rng.choice(RATES)),
        noise=float(rng.choice([0.0, 0.3, 1.0, 1.0, 3.0])),
        velocity=str(rng.choice(list(RecordedVelocity))),
        variation=float(rng.uniform(0.0, 0.3)),
        friction=float(rng.uniform(0.02, 0.1)),
        rotors=float(rng.uniform(0.2, 0.8)),
        torques=str(rng.choice(["link", "motor"])),
    )


def _sensors(case: CleanCase, robot: Robot) -> Sensors:
    typical = typical_sensors(robot.limit("torque"))
    velocity = VelocitySensor(source=RecordedVelocity(case.velocity))
    if case.noise == 0.0:
        return Sensors(velocity=velocity)

    def louder(sensor: TorqueSensor | None) -> TorqueSensor | None:
        return None if sensor is None else replace(sensor, noise=tuple(case.noise * np.atleast_1d(sensor.noise)))

    return replace(typical, velocity=velocity, torque=louder(typical.torque), motor=louder(typical.motor))


def _trajectory(case: CleanCase, robot: Robot, seed: int) -> Trajectory:
    if case.motion != "point-to-point":
        stretch = 2.0 if case.motion == "slow" else 1.0
        found = random_motion(robot, seed, seconds=case.seconds / stretch, rate=200.0)
        return replace(
            found,
            time=stretch * found.time,
            qd=found.qd / stretch,
            qdd=found.qdd / stretch**2,
        )
    limits, _ = motion_limits(robot)
    around = random_motion(robot, seed, seconds=10.0)
    low, high = around.q.min(axis=0), around.q.max(axis=0)
    fast = np.abs(around.qd).max(axis=0), np.abs(around.qdd).max(axis=0)
    rng = np.random.default_rng(seed)
    return random_waypoints(
        robot.joint_names,
        low,
        high,
        np.minimum(fast[0], limits.velocity),
        fast[1],
        count=int(case.seconds / 1.5),
        rng=rng,
    )


def logs_of(case: CleanCase) -> tuple[Robot, Log, Log]:
    """The arm as described, its training log and another motion of the same specimen.

    Raises:
        ArmidError: a motion that the arm cannot do.
    """
    robot = arms()[case.arm]
    plan = Scenario(physics=Physics(collisions=False), variation=case.variation, seed=case.number)
    first, second = (
        armid.simulate(
            robot,
            _trajectory(case, robot, 2 * case.number + k),
            scenario=replace(plan, sensors=_sensors(case, robot)),
            rate_hz=case.rate,
            rotor_ratio=case.rotors,
            friction_ratio=case.friction,
        ).log
        for k in range(2)
    )
    return robot, first, second


def outcome_of(case: CleanCase) -> dict[str, Any]:
    """What was said about a clean case, as a record."""
    record: dict[str, Any] = {"case": case.name, "number": case.number}
    try:
        robot, train, test = logs_of(case)
    except ArmidError as error:
        return record | {"answer": "not simulated", "said": str(error)[:200]}
    try:
        checked = [armid.check_log(log, robot) for log in (train, test)]
        result = armid.identify(
            robot, checked[0], validate=checked[1], torques=case.torques, sensitivity=False, seed=case.number
        )
    except ArmidError as error:
        return record | {"answer": "refused", "said": str(error)[:200]}
    return record | said_of(result)


def said_of(result: Result) -> dict[str, Any]:
    """Verdict, what made it so, and what was found."""
    failed = [check for check in result.checks if check.decisive and not check.passed]
    by_fault = [check for check in failed if check.code in BY_FAULTS]
    found = [fault for fault in result.faults if fault.answer is Answer.FOUND]
    answer = "by a fault" if by_fault else "by other reasons" if failed else "noted" if found else "nothing"
    said = [check.message for check in by_fault or failed] or [fault.sentence for fault in found]
    return {
        "answer": answer,
        "said": "; ".join(said)[:300],
        "found": [fault.sentence for fault in found],
        "error": result.relative_error["held_out"],
        "undecidable": sum(fault.answer is Answer.UNDECIDABLE for fault in result.faults),
        "excluded": sum(fault.answer is Answer.EXCLUDED for fault in result.faults),
    }


def report_clean(records: Sequence[Mapping[str, Any]]) -> None:
    """How many, and which."""
    answers = ("nothing", "noted", "by a fault", "by other reasons", "refused")
    simulated = [r for r in records if r["answer"] != "not simulated"]
    count = max(len(simulated), 1)
    rows = [
        [answer, n, f"{100 * n / count:.1f} %"]
        for answer in answers
        for n in [sum(r["answer"] == answer for r in simulated)]
    ]
    title = f"Clean simulated logs: {len(simulated)} of {len(records)} motions that the arms can do"
    table(title, ("untrusted, or found and noted", "logs", "share"), rows)
    for answer in answers[1:]:
        those = [[r["case"], r["said"]] for r in simulated if r["answer"] == answer]
        table(f"Clean logs: {answer}", ("log", "said"), those)
