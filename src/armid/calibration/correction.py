"""The correction file, written from a calibration; `armid.kinematics.correction` reads it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.documents import write_json
from armid.kinematics.calibrated import frame_matrix
from armid.kinematics.correction import FORMAT
from armid.kinematics.load import carries
from armid.kinematics.model import KinematicModel, Slot, covered_ranges
from armid.parameters.inertial import N_INERTIAL
from armid.robot.robot import Robot


def correction(
    nominal: Robot, fit: KinematicFit, *, measured: FloatArray | None = None, advice: str = ""
) -> dict[str, Any]:
    """The correction as plain data: error model, frames, and the value of every fitted parameter.

    Args:
        nominal: the arm as described.
        fit: to the measurements.
        measured: configurations of these [rad or m], shape [n, n_joints]; their ranges are stored.
        advice: what the calibration says about itself.
    """
    model, values = fit.model, fit.after.values
    sigma = np.sqrt(np.diag(fit.after.covariance))
    return {
        "format": FORMAT,
        "robot": {"name": nominal.name, "joints": list(nominal.joint_names), "sha256": nominal.source.sha256},
        "geometry": str(fit.errors.geometry),
        "terms": sorted(str(term) for term in fit.errors.terms),
        **_load_data(nominal, model),
        "couplings": [list(pair) for pair in fit.errors.couplings],
        "covered": {nominal.joint_names[k]: list(ends) for k, ends in covered_ranges(model).items()},
        **({} if measured is None else {"measured": _ranges(nominal, measured)}),
        **({"advice": advice} if advice else {}),
        "parameters": {
            p.name: {"value": float(values[i]), "unit": p.unit, "standard_deviation": float(sigma[i])}
            for i, p in enumerate(model.parameters)
            if fit.after.selection.kept[i] or values[i] != 0.0
        },
        "setups": {name: _frame_data(slots, model) for name, slots in model.setups.items()},
        "targets": {name: _frame_data(slots, model) for name, slots in model.targets.items()},
        "T_sensor_base": {name: frame_matrix(slots, values).tolist() for name, slots in model.setups.items()},
        "T_link_target": {name: frame_matrix(slots, values).tolist() for name, slots in model.targets.items()},
    }


def _ranges(nominal: Robot, q: FloatArray) -> dict[str, list[float]]:
    ends = zip(nominal.joint_names, q.min(axis=0), q.max(axis=0), strict=True)
    return {name: [float(low), float(high)] for name, low, high in ends}


def _load_data(nominal: Robot, model: KinematicModel) -> dict[str, Any]:
    """Inertial parameters of the tool on the last link, when one was stated."""
    if not carries(nominal, model.robot):
        return {}
    return {"load": (model.robot.inertial - nominal.inertial)[-N_INERTIAL:].tolist()}


def _frame_data(slots: tuple[Slot, ...], model: KinematicModel) -> list[dict[str, Any]]:
    """The chain of a frame, naming which values are free."""
    return [
        {
            "motion": slot.element.motion.value,
            "value": slot.element.value,
            "free": None if slot.parameter is None else model.parameters[slot.parameter].quantity,
            "body": None if slot.parameter is None else model.parameters[slot.parameter].owner,
        }
        for slot in slots
    ]


def save_correction(
    nominal: Robot, fit: KinematicFit, path: str | Path, *, measured: FloatArray | None = None, advice: str = ""
) -> Path:
    """Write the correction file; see `correction`."""
    return write_json(path, correction(nominal, fit, measured=measured, advice=advice))
