"""What the writers of all controllers are given, and what they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files as package_files
from math import degrees

import numpy as np

from armid.arrays import FloatArray
from armid.motions.limits import MotionLimits
from armid.motions.trajectory import SampledTrajectory, Trajectory
from armid.robot.robot import JointKind, Robot

_APPROACH_SPEED = 0.1
"""Share of the velocity limits on the way to the start."""


class PlayedFor(StrEnum):
    """What the recording of a motion is for; decides the last step of the README."""

    IDENTIFICATION = "identification"
    RESPONSE = "response"
    PLAN = "plan"


@dataclass(frozen=True, eq=False, kw_only=True)
class Wanted:
    """A motion to be written as a program.

    Args:
        robot: the arm.
        motion: from rest to rest.
        knots: the same as quintics between knots.
        limits: the robot's, completed where the description is silent.
        rate_hz: of the controller.
        begins: when the motion that was asked for begins [s].
        dry_run: share of the speed of the first run.
        played_for: what the recording is for.
    """

    robot: Robot
    motion: Trajectory
    knots: SampledTrajectory
    limits: MotionLimits
    rate_hz: float
    begins: float
    dry_run: float
    played_for: PlayedFor = PlayedFor.IDENTIFICATION

    @property
    def arm(self) -> str:
        """What the arm is called on the command line."""
        return self.robot.source.path.removeprefix("catalogue:") or "ROBOT"

    @property
    def start(self) -> FloatArray:
        """Where the motion starts and must be approached [rad or m]."""
        return self.knots.q[0]

    @property
    def approach_speed(self) -> float:
        """[rad/s] on the way to the start: a tenth of what the slowest joint may do."""
        return float(_APPROACH_SPEED * self.limits.velocity.min())

    @property
    def _speeds(self) -> str:
        kinds = {joint.kind for joint in self.robot.joints}
        return "rad/s" if kinds == {JointKind.REVOLUTE} else "rad/s or m/s"

    def facts(self) -> list[str]:
        """Limits, duration, approach and what to watch: at the head of every file and in the README."""
        q, qd, qdd = self.motion.sample(np.linspace(0.0, self.motion.duration, 2000))
        lines = [
            f"{self.robot.name}: {self.motion.duration:.3f} s, from rest to rest, {self.rate_hz:.5g} Hz",
            f"The motion that was designed begins {self.begins:.3f} s after the start."
            if self.begins
            else "The motion is played as designed from its first instant.",
            f"Approach: straight in joint space to the start at no more than {self.approach_speed:.3f} {self._speeds}.",
            f"Dry run: the same path at {100 * self.dry_run:.0f} % of the speed comes first "
            f"({self.motion.duration / self.dry_run:.0f} s).",
            "joint: starts at; range; fastest of limit; acceleration of limit",
        ]
        for i, joint in enumerate(self.robot.joints):
            scale, unit = (degrees(1.0), "deg") if joint.kind is JointKind.REVOLUTE else (1.0, "m")
            low, high = scale * q[:, i].min(), scale * q[:, i].max()
            lines.append(
                f"  {joint.name}: {scale * q[0, i]:.3f} {unit}; {low:.1f} to {high:.1f} {unit}; "
                f"{np.abs(qd[:, i]).max():.3f} of {self.limits.velocity[i]:.3f}; "
                f"{np.abs(qdd[:, i]).max():.3f} of {self.limits.acceleration[i]:.3f} (SI units)"
            )
        lines.append(
            "Watch: the way to the start (it is not checked for contact), cables, the hand on the stop button. At the start the "
            "controller must show the angles above; if it does not, zeros or directions of its axes differ: stop."
        )
        return lines


def afterwards(wanted: Wanted, log: str) -> str:
    """What to do with the recording."""
    arm = wanted.arm
    match wanted.played_for:
        case PlayedFor.RESPONSE:
            return (
                f"Every motion of the plan has a folder like this one; record each into a file of its own. "
                f"`armid sweep {arm} LOG...` then takes them all."
            )
        case PlayedFor.PLAN:
            return (
                f"`armid check {arm} {log}`, then `armid validate RESULT {log}`, with the result the motion was planned with: "
                "was the torque as predicted?"
            )
    return f"`armid check {arm} {log}`, then `armid identify {arm} {log}`."


def readme(name: str, wanted: Wanted, *, log: str = "log.csv", **values: str) -> str:
    """The README of a program's folder, from its template.

    Args:
        name: of the template.
        wanted: the motion.
        log: name of the recording as the steps before have it.
        values: what else the template names.
    """
    return template(
        name,
        afterwards=afterwards(wanted, log),
        arm=wanted.arm,
        robot=wanted.robot.name,
        facts="\n".join(wanted.facts()),
        rate=f"{wanted.rate_hz:.5g}",
        dry_percent=f"{100 * wanted.dry_run:.0f}",
        **values,
    )


def template(name: str, **values: str) -> str:
    """A template of this room with `@name@` replaced."""
    text = (package_files("armid.programs") / "templates" / name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def commented(lines: Iterable[str], mark: str) -> str:
    """Lines as comments."""
    return "\n".join(f"{mark} {line}".rstrip() for line in lines)


def numbers(values: FloatArray, *, digits: int = 10) -> str:
    """Numbers with commas, without exponents (KRL and URScript read none)."""
    return ", ".join(f"{x:.{digits}f}" for x in values)


def limit_values(wanted: Wanted) -> dict[str, str]:
    """What the C++ and Python players are told of the arm."""
    limits = wanted.limits
    return {
        "n": str(wanted.robot.n_joints),
        "lower": numbers(limits.lower, digits=6),
        "upper": numbers(limits.upper, digits=6),
        "velocity": numbers(limits.velocity, digits=6),
        "acceleration": numbers(limits.acceleration, digits=6),
        "approach": f"{wanted.approach_speed:.6f}",
        "dry_run": f"{wanted.dry_run:.6f}",
        "tick": f"{1.0 / wanted.rate_hz:.9f}",
    }


def knot_table(knots: SampledTrajectory) -> str:
    """Knots as text: time, positions, velocities, accelerations, SI units, one knot a line."""
    table = np.column_stack([knots.time, knots.q, knots.qd, knots.qdd])
    return "\n".join(" ".join(f"{x:.12g}" for x in row) for row in table) + "\n"
