"""What a result came from: inputs with hashes, versions, settings."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from armid.identification.settings import Identification
from armid.logs.log import Log
from armid.robot.robot import Robot


def provenance(robot: Robot, train: Sequence[Log], held_out: Sequence[Log], settings: Identification) -> dict[str, Any]:
    """Inputs with hashes, versions, settings."""
    return {
        "robot": {"name": robot.name, "path": robot.source.path, "sha256": robot.source.sha256},
        "train": [log_record(log) for log in train],
        "held_out": [log_record(log) for log in held_out],
        "versions": {name: installed(name) for name in ("armid", "numpy", "scipy", "clarabel")},
        "settings": {
            "consistency": settings.way.value,
            "bounds": list(settings.bounds.statements),
            "regulariser": settings.regulariser.name,
            "regulariser_weight": settings.regulariser.weight,
            "covariance": type(settings.covariance).__name__,
            "seed": settings.seed,
            "prior": None if settings.prior is None else dict(settings.prior.provenance).get("robot"),
        },
    }


def log_record(log: Log) -> dict[str, Any]:
    return {
        "name": log.name,
        "samples": len(log),
        "start_s": float(log.time[0]),
        "end_s": float(log.time[-1]),
        "files": [{"path": path, "sha256": digest} for path, digest in log.source.files],
        "reader": log.source.reader,
    }


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
