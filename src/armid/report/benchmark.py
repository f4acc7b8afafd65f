"""The page of a Monte-Carlo comparison."""

from __future__ import annotations

import numpy as np

from armid.page import Figure, Paragraph, Report, Section
from armid.report.judged import judged_page
from armid.report.plots import axes, short
from armid.studies.benchmark import Benchmark, benchmark_table, bound_kind


def benchmark_page(found: Benchmark) -> Report:
    """Table, and per level of noise how the errors are distributed."""
    levels = dict.fromkeys(row.noise for row in found.rows)
    sections = [
        Section("methods", "Methods", (benchmark_table(found.rows),)),
        *(
            Section(
                f"noise-{level}",
                f"Noise: {level}",
                (_distributions(found, level), _failures(found, level)),
            )
            for level in levels
        ),
    ]
    return judged_page(found, f"{found.robot.name}: Monte-Carlo of methods", "Error over the bound", *sections)


def _distributions(found: Benchmark, level: str) -> Figure:
    """Errors over the bound of every parameter and run."""
    boxes = []
    for method in dict.fromkeys(run.method for run in found.runs):
        good = [run for run in found.runs if (run.noise, run.method) == (level, method) and not run.failure]
        bound = found.bounds[level].get(bound_kind(method))
        if good and bound is not None:
            error = np.concatenate([np.abs(run.values - found.truth) / bound for run in good])
            boxes.append({"type": "box", "name": method, "y": short(error.tolist()), "boxpoints": False})
    layout = axes("", "|error| / deviation of the bound")
    layout["yaxis"] = {**layout.get("yaxis", {}), "type": "log"}
    caption = "Every base parameter of every run. An estimator at its bound has half its errors below 0.67."
    return Figure(f"errors-{level}", tuple(boxes), layout, caption)


def _failures(found: Benchmark, level: str) -> Paragraph:
    failed = [
        f"{run.method}, run {run.run + 1}: {run.failure}" for run in found.runs if run.noise == level and run.failure
    ]
    return Paragraph("; ".join(failed) if failed else "Every run finished.", "bad" if failed else "faint")
