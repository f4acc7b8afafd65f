"""The page about a program: what will move, how fast, and what is written."""

from __future__ import annotations

import numpy as np

from armid.motions.trajectory import grid
from armid.page import Figure, Report, Section, Table
from armid.programs.program import Program
from armid.report.judged import judged_page
from armid.report.plots import COLOURS, axes, line

_PLOT_RATE_HZ = 50.0


def program_report(program: Program) -> Report:
    """Everything the page shows."""
    t = grid(program.motion.duration, _PLOT_RATE_HZ)
    q, qd, _ = program.motion.sample(t)
    figures = tuple(
        Figure(
            name,
            tuple(
                line(t, np.asarray(values[:, i]), joint, COLOURS[i % len(COLOURS)])
                for i, joint in enumerate(program.robot.joint_names)
            ),
            axes("time [s]", title),
            caption=caption,
        )
        for name, values, title, caption in (
            ("positions", q, "position [rad or m]", "What the controller is asked to follow."),
            ("velocities", qd, "velocity [rad/s or m/s]", "Zero at both ends."),
        )
    )
    files = Table(("file", "bytes"), tuple((name, len(text)) for name, text in program.files.items()))
    return judged_page(
        program,
        f"{program.robot.name}: program for {program.controller}",
        f"{program.motion.duration:.3f} s at {program.rate_hz:.5g} Hz",
        Section("motion", "The motion", (*program._tables(), *figures)),
        Section("files", "Files", (files,)),
    )
