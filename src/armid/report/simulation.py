"""The page about a simulation: what was commanded, what the arm did, and what was logged."""

from __future__ import annotations

from armid.logs.log import Channel
from armid.page import Block, Figure, Paragraph, Report, Section
from armid.report.plots import COLOURS, DASHES, axes, line
from armid.simulation.scenario import Experiment
from armid.simulation.simulation import Simulation
from armid.simulation.truth import injected_faults

_SHOWN = {
    Channel.POSITION: "position [rad or m]",
    Channel.VELOCITY: "velocity [rad/s or m/s]",
    Channel.LINK_TORQUE: "joint torque [N m or N]",
    Channel.MOTOR_TORQUE: "motor torque [N m or N]",
}
"""Channels of the log that are drawn, with their axis."""


def simulation_report(simulation: Simulation) -> Report:
    """Everything the page shows."""
    sections = [Section("summary", "The runs", (Paragraph(simulation._heading()), *simulation._tables()))]
    if simulation.experiments:
        first = simulation.experiments[0]
        sections += [Section("log", "The first log", _log(first)), Section("errors", "Tracking", (_tracking(first),))]
    said = [f"{note.code}: {note.message}" for note in (*simulation.events, *simulation.notes)]
    if said:
        sections.append(Section("notes", "Notes", tuple(Paragraph(text, "faint") for text in said)))
    return Report(
        title=f"{simulation.robot.name}: simulated",
        subtitle=f"{simulation.record}, {simulation.samples} samples, seed {simulation.scenario.seed}",
        verdict=str(simulation.verdict),
        reasons=simulation.reasons,
        sections=tuple(sections),
    )


def _log(experiment: Experiment) -> tuple[Block, ...]:
    log = experiment.log
    wrong = ", ".join(injected_faults(experiment))
    blocks: list[Block] = [Paragraph(f"Wrong on purpose: {wrong}.", "bad")] if wrong else []
    for channel, title in _SHOWN.items():
        if channel in log:
            data = tuple(
                line(log.time, log[channel][:, j], joint, COLOURS[j % len(COLOURS)], dash=_dash(j))
                for j, joint in enumerate(log.joints)
            )
            blocks.append(Figure(channel.value, data, axes("time [s]", title), height=260))
    return tuple(blocks)


def _tracking(experiment: Experiment) -> Figure:
    run = experiment.run
    data = tuple(
        line(run.time, run.motor_q[:, j] - run.command.q[:, j], joint, COLOURS[j % len(COLOURS)], dash=_dash(j))
        for j, joint in enumerate(run.robot.joint_names)
    )
    caption = "What the drives really did less what was commanded."
    return Figure("tracking", data, axes("time [s]", "error [rad or m]"), caption, height=260)


def _dash(joint: int) -> str:
    return DASHES[joint // len(COLOURS) % len(DASHES)]
