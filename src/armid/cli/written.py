"""What every verb writes into its `--out`, so that a file in the way is refused before any work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from armid.apart import refuse_inputs_within
from armid.errors import InputError
from armid.folders import manifest, refuse_foreign, settle

ALWAYS: Mapping[str, tuple[str, ...]] = {
    "inspect": ("inspect.json", "base_parameters.tex"),
    "design": (
        "trajectory.json",
        "trajectory.csv",
        "joint_trajectory.json",
        "joint_trajectory.yaml",
        "design.html",
        "search.json",
    ),
    "poses": ("poses.csv", "poses.json"),
    "calibrate": (
        "calibrated.urdf",
        "calibrated.yaml",
        "correction.json",
        "information.json",
        "information.npz",
        "residuals.csv",
        "mdh.csv",
        "dh.csv",
        "report.html",
        "calibration.json",
    ),
    "compensate": ("targets.csv",),
    "check": ("check.json",),
    "identify": ("result.json", "result.npz", "torque.npz"),
    "validate": ("validation.json",),
    "compare": ("comparison.html",),
    "demo": (
        "training.json",
        "training.csv",
        "training_log.csv",
        "validation.json",
        "validation.csv",
        "validation_log.csv",
        "report.html",
    ),
    "benchmark": ("benchmark.json", "report.html"),
    "study": ("study.json", "estimates.npz", "correction.json", "report.html"),
    "payload": ("payload.json",),
    "recover": ("recovered.json", "recovered.html"),
    "sequential": ("sequential.json",),
    "elastic": ("elastic.json",),
    "online": ("online.json",),
    "observe": ("observation.json", "report.html"),
    "fleet": ("fleet.json", "report.html"),
    "report": ("report.html",),
}
"""Names a verb writes whatever else it is asked."""

SOMETIMES: Mapping[str, tuple[str, ...]] = {
    "inspect": ("*.py", "*.tex", "*.sympy"),
    "design": ("experiment*.json", "experiment*.csv"),
    "poses": ("transitions.json",),
    "simulate": ("log*", "poses.csv", "poses.truth.json", "controller.npz", "controller.truth.json"),
    "calibrate": ("targets.csv",),
    "identify": ("hand_over.html", "sensors.yaml"),
    "map": (),
    "compare": ("comparison.json",),
    "demo": ("*.urdf", "*.xml"),
    "study": ("waypoints*.json", "optimised*.json"),
    "plan": ("plan*",),
    "program": (),
    "recover": ("elements.csv", "recovered.yaml", "postures.csv"),
    "sweep": ("sweep.json", "pose*-*.csv"),
    "fleet": ("population.json", "*.parquet", "visits.csv", "parameters.csv", "spread.csv", "drift.csv"),
}
"""Patterns of names that depend on what was asked or found; a foreign file among them is refused when it comes to writing."""

_GOES_ON = ("resume",)
"""Options that name an earlier state of the same work, which its new state replaces."""

_WORDS = ("logs", "log", "validate", "free", "motion", "robot", "arm", "cell", "table")
"""Options that take a word where others take a path, because it may also name a stream, or something that comes along."""
_PARTS = ("result.json", "correction.json")
"""What is read of a folder that armid wrote; of the folder of a bag everything, which its reader looks after."""

BESIDE = ("map",)
"""Verbs whose answer is one file that belongs beside its input: a mapping reads recordings below its own folder only."""


def check_written(verb: str, folder: Path, options: Mapping[str, Any]) -> None:
    """Refuses an output folder that holds an input, or where a file that is not ours would be written over.

    Args:
        verb: that will write.
        folder: its `--out`.
        options: of the verb by name; files among them are its inputs.

    Raises:
        InputError: names the file.
    """
    if not folder.is_dir():
        return
    settle(folder)
    always, sometimes = ALWAYS.get(verb, ()), SOMETIMES.get(verb, ())
    inputs = {name: tuple(_inputs(name, value)) for name, value in options.items()}
    read = {path.resolve() for name, paths in inputs.items() if name not in _GOES_ON for path in paths}
    listed = manifest(folder)
    for path in sorted(folder.iterdir()):
        if path.resolve() in read and (path.name in always or any(fnmatch(path.name, one) for one in sometimes)):
            raise InputError(path, "is read, and would be replaced by the answer", "choose another --out")
        if path.name in always:
            refuse_foreign(path, listed)
    if verb not in BESIDE:
        refuse_inputs_within(folder, (path for paths in inputs.values() for path in paths))


def _inputs(name: str, value: Any) -> Iterator[Path]:
    """Files that an option names; of a folder that armid wrote those that are read. A robot is no folder."""
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, Path) or (isinstance(one, str) and name in _WORDS):
            for path in (Path(one), *(() if name == "robot" else (Path(one) / part for part in _PARTS))):
                try:
                    if path.is_file():
                        yield path
                except (OSError, ValueError):  # no name a file can have
                    continue
