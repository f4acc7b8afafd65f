"""A plain table: one row per tick, joints by name, units in the header."""

from __future__ import annotations

from math import ceil

import numpy as np

from armid.motions.sample_table import header_line
from armid.motions.trajectory import Trajectory
from armid.programs.wanted import Wanted, readme
from armid.robot.robot import Robot


def files(wanted: Wanted) -> dict[str, str]:
    """`trajectory.csv` at the controller's rate, `dry_run.csv` at a tenth of the speed, and how to use them."""
    return {
        "trajectory.csv": rows_text(wanted.motion, wanted.robot, wanted.rate_hz),
        "dry_run.csv": rows_text(wanted.motion, wanted.robot, wanted.rate_hz, speed=wanted.dry_run),
        "README.md": readme("README_table.md", wanted, dry_rate=f"{wanted.dry_run * wanted.rate_hz:.5g}"),
    }


def rows_text(motion: Trajectory, robot: Robot, rate_hz: float, *, speed: float = 1.0) -> str:
    """A table of samples with names and units in its header, a row per tick; the last tick may lie behind the end, at rest.

    Args:
        motion: what is sampled.
        robot: names and kinds of the joints.
        rate_hz: rows a second.
        speed: share of the speed at which it is run; the same rows, later.
    """
    t = np.arange(ceil(motion.duration * rate_hz - 1e-6) + 1) / rate_hz
    q, qd, qdd = motion.sample(np.minimum(t, motion.duration))
    table = np.column_stack([t / speed, q, speed * qd, speed**2 * qdd])
    lines = [header_line(robot.joint_names, robot), *(",".join(f"{x:.12g}" for x in row) for row in table)]
    return "\n".join(lines) + "\n"
