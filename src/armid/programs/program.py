"""`armid program`, and `--for` of every verb that makes a motion: a folder the robot's own controller can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import degrees
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armid.documents import write_text
from armid.errors import InputError
from armid.motions.limits import MotionLimits, motion_limits
from armid.motions.trajectory import SampledTrajectory, Trajectory, grid
from armid.motions.trajectory_files import input_of, trajectory_of
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.programs import franka, kuka, ros2, table, ur
from armid.programs.playable import from_rest_to_rest, knots_of
from armid.programs.wanted import PlayedFor, Wanted
from armid.robot.load import load_robot
from armid.robot.robot import JointKind, Robot
from armid.words import choice

DRY_RUN_SPEED = 0.1
"""Share of the speed of the first run: slow enough to reach the stop button."""


class ControllerKind(StrEnum):
    """Whose program is written."""

    UR = "ur"
    FRANKA = "franka"
    KUKA_FRI = "kuka-fri"
    KUKA_KRL = "kuka-krl"
    ROS2 = "ros2"
    CSV = "csv"


_WRITERS = {
    ControllerKind.UR: ur.files,
    ControllerKind.FRANKA: franka.files,
    ControllerKind.KUKA_FRI: kuka.fri_files,
    ControllerKind.KUKA_KRL: kuka.krl_files,
    ControllerKind.ROS2: ros2.files,
    ControllerKind.CSV: table.files,
}

_RATES = {
    ControllerKind.UR: 500.0,
    ControllerKind.FRANKA: 1000.0,
    ControllerKind.KUKA_FRI: 200.0,
    ControllerKind.KUKA_KRL: 1000.0 / 12.0,
    ControllerKind.ROS2: 100.0,
    ControllerKind.CSV: 1000.0,
}
"""[Hz] of the controllers' interpolation, where nothing else is asked for: UR e-series, FCI, FRI at 5 ms, KRC at 12 ms."""

_JOINTS = {
    ControllerKind.UR: (6, 6),
    ControllerKind.FRANKA: (7, 7),
    ControllerKind.KUKA_FRI: (7, 7),
    ControllerKind.KUKA_KRL: (1, 6),
}
"""Fewest and most joints, where the controller's interface has a fixed number."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Program(Outcome):
    """A motion as files for one controller.

    Args:
        robot: the arm.
        controller: whose program it is.
        motion: what is played, from rest to rest.
        knots: the same as the table the program evaluates.
        begins: when the motion that was asked for begins in it [s].
        rate_hz: of the controller.
        files: text by file name.
        checks: limits at every tick.
        notes: what was assumed.
        provenance: where the motion came from.
    """

    _page: ClassVar[str] = "armid.report.program:program_report"

    robot: Robot
    controller: ControllerKind
    motion: Trajectory
    knots: SampledTrajectory
    begins: float
    rate_hz: float
    files: Mapping[str, str]
    checks: tuple[Check, ...]
    notes: tuple[Note, ...]
    provenance: Provenance

    def _heading(self) -> str:
        return (
            f"program for {self.controller}: {self.robot.name}, {self.motion.duration:.4g} s at {self.rate_hz:.4g} Hz, "
            f"{len(self.knots.time)} knots"
        )

    def _tables(self) -> tuple[Table, ...]:
        t = grid(self.motion.duration, self.rate_hz)
        q, qd, qdd = self.motion.sample(t)
        rows = []
        for i, joint in enumerate(self.robot.joints):
            scale, unit = (degrees(1.0), "deg") if joint.kind is JointKind.REVOLUTE else (1e3, "mm")
            rows.append(
                (
                    joint.name,
                    f"{scale * q[0, i]:.2f}",
                    f"{scale * q[:, i].min():.1f} .. {scale * q[:, i].max():.1f} {unit}",
                    f"{scale * np.abs(qd[:, i]).max():.1f}",
                    f"{scale * np.abs(qdd[:, i]).max():.0f}",
                )
            )
        header = ("joint", "starts at", "range", "fastest [1/s]", "acceleration [1/s^2]")
        return (Table(header, tuple(rows), caption="What will move"),)

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": "armid.program/1",
            "robot": self.robot.name,
            "controller": self.controller.value,
            "duration": self.motion.duration,
            "begins": self.begins,
            "rate_hz": self.rate_hz,
            "knots": len(self.knots.time),
            "start": dict(zip(self.robot.joint_names, self.knots.q[0].tolist(), strict=True)),
            "files": sorted(self.files),
            "verdict": self.verdict.value,
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes every file of the program.

        Raises:
            UntrustedError: a limit is broken; such a program is not written.
        """
        self.raise_if_untrusted()
        return tuple(write_text(Path(folder) / name, text) for name, text in self.files.items())


def make_program(
    robot: str | Path | Robot,
    trajectory: str | Path | Trajectory,
    controller: str | ControllerKind,
    *,
    rate_hz: float | None = None,
    played_for: str | PlayedFor = PlayedFor.IDENTIFICATION,
    base: str | None = None,
    tip: str | None = None,
) -> Program:
    """A motion as a program for the robot's own controller: player, recorder and the steps to run them.

    The arm is brought to the start slowly, a dry run at a tenth of the speed comes first, and the motion begins and ends at
    rest. Every tick is held against the robot's limits before anything is written.

    Args:
        robot: description; its limits count.
        trajectory: from `armid design`, `plan` or `sweep --plan`: a file, or the trajectory itself.
        controller: `ur`, `franka`, `kuka-fri`, `kuka-krl`, `ros2` or `csv`.
        rate_hz: of the controller; 500 for UR (125 for the CB3 series), 1000 for Franka, 200 for FRI, 100 for ROS 2.
        played_for: `identification`, `response` (a plan of `sweep`) or `plan`: what the README says of the recording.
        base, tip: link names that bound the chain.

    Raises:
        InputError: other joints than the robot's, a motion that cannot start from rest, or an arm the controller does not drive.
    """
    arm = robot if isinstance(robot, Robot) else load_robot(robot, base=base, tip=tip)
    wanted = choice("controller", controller, ControllerKind)
    motion = _named(trajectory_of(trajectory), arm)
    _check_arm(arm, wanted)
    limits, notes = motion_limits(arm)
    playable, begins = from_rest_to_rest(motion, limits)
    rate = _RATES[wanted] if rate_hz is None else rate_hz
    if not 1.0 <= rate <= 10000.0:
        raise InputError("rate", f"{rate} Hz", "between 1 and 10000")
    knots = knots_of(playable, 1.0 / rate)
    asked = Wanted(
        robot=arm,
        knots=knots,
        limits=limits,
        rate_hz=rate,
        begins=begins,
        dry_run=DRY_RUN_SPEED,
        motion=playable,
        played_for=choice("played_for", played_for, PlayedFor),
    )
    return Program(
        robot=arm,
        controller=wanted,
        motion=playable,
        knots=knots,
        begins=begins,
        rate_hz=rate,
        files=_WRITERS[wanted](asked),
        checks=_limit_checks(arm, playable, limits, rate),
        notes=notes,
        provenance=Provenance(
            inputs=input_of(trajectory, "trajectory"), settings={"controller": wanted.value, "rate_hz": rate}
        ),
    )


def _named(motion: Trajectory, robot: Robot) -> Trajectory:
    """The motion, if it is one of this robot's joints in their order.

    Raises:
        InputError: with both lists of names.
    """
    generic = tuple(f"joint{i + 1}" for i in range(len(motion.joint_names)))
    if motion.joint_names in (robot.joint_names, generic) and len(motion.joint_names) == robot.n_joints:
        return motion
    raise InputError(
        "trajectory",
        f"moves {', '.join(motion.joint_names)}",
        f"{robot.name} has {', '.join(robot.joint_names)}, in this order",
    )


def _check_arm(robot: Robot, controller: ControllerKind) -> None:
    """Refuses an arm the controller cannot drive.

    Raises:
        InputError: too many or too few joints, or joints that do not turn.
    """
    if controller not in _JOINTS:
        return
    fewest, most = _JOINTS[controller]
    if not fewest <= robot.n_joints <= most:
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        raise InputError(
            robot.name, f"{robot.n_joints} joints", f"{controller} drives {count}; ros2 and csv any number"
        )
    if any(joint.kind is not JointKind.REVOLUTE for joint in robot.joints):
        raise InputError(robot.name, "has a prismatic joint", f"{controller} drives joints that turn; take ros2 or csv")


def _limit_checks(robot: Robot, motion: Trajectory, limits: MotionLimits, rate_hz: float) -> tuple[Check, ...]:
    """Positions, speeds and accelerations of every tick against the limits."""
    t = grid(motion.duration, rate_hz)
    q, qd, qdd = motion.sample(t)
    beyond = np.maximum(limits.lower - q, q - limits.upper) / limits.half_range
    used = {
        "position": 1.0 + beyond.max(axis=0),
        "velocity": np.abs(qd).max(axis=0) / limits.velocity,
        "acceleration": np.abs(qdd).max(axis=0) / limits.acceleration,
    }
    checks = []
    for kind, share in used.items():
        worst = int(share.argmax())
        checks.append(
            Check(
                code=f"{kind}-limit",
                passed=bool(share[worst] <= 1.0 + 1e-9),
                value=float(share[worst]),
                limit=1.0,
                message=f"{kind} of {robot.joint_names[worst]} reaches {100 * share[worst]:.1f} % of its limit",
                subject=robot.joint_names[worst],
            )
        )
    return tuple(checks)
