"""What the held-out residuals still contain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from armid.identification.residuals import Binned, ResidualDiagnostics, diagnose
from armid.identification.result import Result
from armid.kernels.dynamics import gravity
from armid.page import Block, Figure, Paragraph, Section, Table
from armid.report import plots
from armid.report.torque import channels_of, titled, units

Diagnosed = tuple[str, int, ResidualDiagnostics]


def _diagnostics_of(result: Result) -> Iterator[Diagnosed]:
    """Run, channel index and diagnostics of everything in the traces."""
    n, robot = result.described.n_joints, result.robot
    weights: dict[str, Any] = {}
    for name, k, run, a in channels_of(result):
        if "inputs" not in a:
            continue
        if run not in weights:
            weights[run] = gravity(robot, a["inputs"][:, :n])
        j = k % n
        yield (
            run,
            k,
            diagnose(
                name,
                a["time"],
                a["measured"][:, k] - a["consistent"][:, k],
                a["measured"][:, k],
                a["inputs"][:, n + j],
                weights[run][:, j],
                temperature=a["temperature"][:, j] if "temperature" in a else None,
            ),
        )


def residual_section(result: Result) -> Section:
    found = list(_diagnostics_of(result))
    title = "What the residuals still contain"
    if not found:
        return Section("residuals", title, (Paragraph("No held-out torque is stored with this result.", "faint"),))
    blocks: list[Block] = [_summary_table(result, found)]
    for run, k, d in found:
        blocks += _in_pairs(
            [
                _spectrum_figure(result, run, k, d),
                _correlation_figure(result, run, k, d),
                *_shape_figures(result, run, k, d),
            ]
        )
    lead = Paragraph(
        "Over velocity, a slope or a step is friction the model lacks. Over the gravity load, a slope is a wrong gain or a loss "
        "that grows with load. Over temperature, a slope is friction that changes as the drives warm up."
    )
    return Section("residuals", title, (lead, *blocks))


def _in_pairs(figures: list[Figure]) -> list[Figure]:
    """The last of an odd number takes the whole width, so that the next joint starts a line."""
    return figures if len(figures) % 2 == 0 else [*figures[:-1], replace(figures[-1], half=False)]


def _summary_table(result: Result, found: list[Diagnosed]) -> Table:
    return Table(
        ("joint", "correlated over [s]", "largest mean over velocity", "over gravity load", "over temperature", "unit"),
        tuple(
            (
                titled(result, d.name, run),
                d.correlation_time,
                largest(d.against_velocity),
                largest(d.against_gravity),
                largest(d.against_temperature),
                units(result, k)[0],
            )
            for run, k, d in found
        ),
        caption="Samples closer than the correlation time are not independent; intervals in this report allow for it. "
        "The means are over bins of equal population; a dash: not recorded, or it did not change.",
        digits=3,
    )


def largest(binned: Binned | None) -> float | None:
    return None if binned is None else float(np.abs(binned.mean).max())


def _spectrum_figure(result: Result, run: str, k: int, d: ResidualDiagnostics) -> Figure:
    return Figure(
        f"spectrum-{run}-{k}",
        (
            plots.line(d.frequency, d.torque_spectrum, "measured torque", plots.BLUE),
            plots.line(d.frequency, d.spectrum, "residual", plots.ORANGE, dash="dash"),
        ),
        {
            "title": {"text": f"{titled(result, d.name, run)}: spectrum"},
            "xaxis": {"type": "log", "title": {"text": "frequency [Hz]"}},
            "yaxis": {"type": "log", "exponentformat": "power", "title": {"text": f"[{units(result, k)[0]}/√Hz]"}},
        },
        height=250,
        half=True,
    )


def _correlation_figure(result: Result, run: str, k: int, d: ResidualDiagnostics) -> Figure:
    return Figure(
        f"autocorrelation-{run}-{k}",
        (plots.line(d.lag, d.autocorrelation, "autocorrelation", plots.BLUE),),
        plots.axes(
            "lag [s]",
            "autocorrelation",
            title={"text": f"{titled(result, d.name, run)}: residual in time"},
            showlegend=False,
        ),
        height=250,
        half=True,
    )


def _shape_figures(result: Result, run: str, k: int, d: ResidualDiagnostics) -> Iterator[Figure]:
    torque_unit, speed_unit = units(result, k)
    for name, over, binned, colour in (
        ("velocity", f"velocity [{speed_unit}]", d.against_velocity, plots.BLUE),
        ("gravity load", f"gravity load [{torque_unit}]", d.against_gravity, plots.ORANGE),
        ("temperature", "temperature [°C]", d.against_temperature, plots.GREEN),
    ):
        if binned is not None:
            yield Figure(
                f"over-{name.split()[0]}-{run}-{k}",
                (_with_spread(binned, colour),),
                plots.axes(
                    over,
                    f"residual [{torque_unit}]",
                    showlegend=False,
                    title={"text": f"{titled(result, d.name, run)}: residual over {name}"},
                ),
                height=250,
                half=True,
            )


def _with_spread(binned: Binned, colour: str) -> dict[str, Any]:
    """Means with their scatter as bars."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": plots.short(binned.centre),
        "y": plots.short(binned.mean),
        "error_y": {"type": "data", "array": plots.short(binned.spread), "thickness": 1, "width": 0},
        "line": {"color": colour},
        "marker": {"size": 4},
    }
