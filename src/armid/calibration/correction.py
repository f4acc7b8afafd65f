"""The correction file: everything a calibration found, to be applied to the nominal robot again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.build import kinematic_model
from armid.calibration.calibrated import NOT_IN_ROBOT, calibrated_robot, frame_matrix
from armid.calibration.fit import Fit
from armid.calibration.model import ErrorModel, FrameModel, Geometry, KinematicModel, Slot, Term
from armid.errors import InputError
from armid.notes import Note, Severity
from armid.robot.elementary import Elementary, Motion
from armid.robot.robot import Robot

FORMAT = "armid-correction/1"


def correction(nominal: Robot, fit: Fit) -> dict[str, Any]:
    """The correction as plain data: error model, frames, and the value of every fitted parameter."""
    model, values = fit.model, fit.after.values
    sigma = np.sqrt(np.diag(fit.after.covariance))
    return {
        "format": FORMAT,
        "robot": {"name": nominal.name, "joints": list(nominal.joint_names), "sha256": nominal.source.sha256},
        "geometry": str(fit.errors.geometry),
        "terms": sorted(str(term) for term in fit.errors.terms),
        "couplings": [list(pair) for pair in fit.errors.couplings],
        "parameters": {
            p.name: {"value": float(values[i]), "unit": p.unit, "standard_deviation": float(sigma[i])}
            for i, p in enumerate(model.parameters)
            if fit.after.selection.kept[i]
        },
        "setups": {name: frame_data(slots, model) for name, slots in model.setups.items()},
        "targets": {name: frame_data(slots, model) for name, slots in model.targets.items()},
        "T_sensor_base": {name: frame_matrix(slots, values).tolist() for name, slots in model.setups.items()},
        "T_link_target": {name: frame_matrix(slots, values).tolist() for name, slots in model.targets.items()},
    }


def frame_data(slots: tuple[Slot, ...], model: KinematicModel) -> list[dict[str, Any]]:
    """The chain of a frame, naming which values are free."""
    return [
        {
            "motion": slot.element.motion.value,
            "value": slot.element.value,
            "free": None if slot.parameter is None else model.names[slot.parameter].rsplit(".", 1)[1],
            "body": None if slot.parameter is None else model.names[slot.parameter].rsplit(".", 1)[0],
        }
        for slot in slots
    ]


def save_correction(nominal: Robot, fit: Fit, path: str | Path) -> Path:
    """Write the correction file."""
    path = Path(path)
    path.write_text(json.dumps(correction(nominal, fit), indent=1) + "\n", encoding="utf-8")
    return path


def load_correction(path: str | Path, robot: Robot) -> tuple[KinematicModel, FloatArray]:
    """The model and parameters of a correction file, for the nominal robot it was made with."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(path, f"not a correction file: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(path, "not a correction file", f"expected format {FORMAT!r}")
    try:
        return restored(data, robot)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(path, f"a field is missing or of the wrong kind: {error}") from None


def corrected_robot(path: str | Path, nominal: Robot) -> tuple[Robot, tuple[Note, ...]]:
    """The nominal arm with the geometry, zeros, gains and couplings of a correction file, and what it could not take over.

    Args:
        path: written by a calibration.
        nominal: the arm it was made with.

    Raises:
        InputError: not a correction file, or one of another arm.
    """
    model, values = load_correction(path, nominal)
    robot = calibrated_robot(model, values)
    source = replace(nominal.source, remark=f"kinematics corrected by {Path(path).name}")
    left_out = [
        model.names[term.parameter] for term in model.terms
        if term.basis in NOT_IN_ROBOT and values[term.parameter] != 0.0
    ]  # fmt: skip
    notes = (
        Note("correction-left-out", Severity.INFO, f"not carried into the rigid arm: {', '.join(left_out)}"),
    ) * bool(left_out)  # fmt: skip
    return replace(robot, source=source), notes


def restored(data: Mapping[str, Any], robot: Robot) -> tuple[KinematicModel, FloatArray]:
    """Model and values from the plain data of a correction."""
    if tuple(data["robot"]["joints"]) != robot.joint_names:
        raise InputError(
            "correction",
            f"made for joints {', '.join(data['robot']['joints'])}",
            f"this robot has {', '.join(robot.joint_names)}",
        )
    errors = ErrorModel(
        Geometry(data["geometry"]),
        frozenset(Term(t) for t in data["terms"]),
        tuple((int(a), int(b)) for a, b in data["couplings"]),
    )
    frames = [{name: frame_model(parts) for name, parts in data[kind].items()} for kind in ("setups", "targets")]
    model = kinematic_model(robot, errors, setups=frames[0], targets=frames[1])
    values = np.zeros(len(model.parameters))
    for name, entry in data["parameters"].items():
        values[model.index(name)] = float(entry["value"])
    return model, values


def frame_model(parts: list[dict[str, Any]]) -> FrameModel:
    return FrameModel(
        tuple(Elementary(Motion(p["motion"]), float(p["value"])) for p in parts),
        tuple(p["free"] for p in parts),
        body=next((p["body"] for p in parts if p.get("body")), None),
    )
