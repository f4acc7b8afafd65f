"""The correction file: everything a calibration found, to be applied to the nominal robot again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.documents import read_json, restored
from armid.errors import InputError, UnknownNameError
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot, frame_matrix
from armid.kinematics.encoders import encoder_terms, without_encoder_terms
from armid.kinematics.load import carries
from armid.kinematics.model import ErrorModel, FrameModel, KinematicModel, covering
from armid.kinematics.words import Term, UnknownGeometry
from armid.parameters.inertial import N_INERTIAL
from armid.robot.elementary import Elementary, Move
from armid.robot.robot import Robot

FORMAT = "armid-correction/1"
_WHAT = "a correction file"


def load_correction(path: str | Path, robot: Robot) -> tuple[KinematicModel, FloatArray]:
    """The model and parameters of a correction file, for the nominal robot it was made with."""
    data = read_json(path, _WHAT, schema=FORMAT, key="format")
    found: tuple[KinematicModel, FloatArray] = restored(path, data, lambda value: _corrected_model(value, robot), _WHAT)
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Correction:
    """A correction file, for the nominal robot it was made with: what is carried into the dynamics.

    Args:
        path: of the file.
        nominal: the arm as described.
        model, values: the chain with its parameters.
        measured: joint ranges of the configurations it rests on [rad or m], by joint; empty when unknown.
        advice: what its calibration said about itself; empty when unknown.
    """

    path: Path
    nominal: Robot
    model: KinematicModel
    values: FloatArray
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    advice: str = ""

    @property
    def robot(self) -> Robot:
        """The nominal arm with corrected geometry, zeros and couplings: what torque passes through."""
        arm = calibrated_robot(self.model, without_encoder_terms(self.model, self.values))
        arm = arm.with_inertial(self.nominal.inertial) if carries(self.nominal, arm) else arm
        remark = f"kinematics corrected by {self.path.name}"
        return replace(arm, source=replace(self.nominal.source, remark=remark))

    @property
    def encoder_terms(self) -> tuple[str, ...]:
        """Names of the terms that change the recorded motion instead: gains, eccentricity, compliance."""
        return tuple(self.model.names[term.parameter] for term in encoder_terms(self.model, self.values))

    def gravity(self, in_sensor: npt.ArrayLike, setup: str | None = None) -> FloatArray:
        """Gravity in the base frame from a levelled instrument: `R_sensor_base^T g_sensor` [m/s^2], shape [3].

        Args:
            in_sensor: gravity in the instrument's frame, shape [3].
            setup: name of the sensor placement; the only one by default.

        Raises:
            InputError: the correction holds no sensor frame, or several and none was named.
        """
        setups = self.model.setups
        if setup is None and len(setups) != 1:
            known = ", ".join(setups) or "none"
            raise InputError(self.path, f"{len(setups)} sensor frames: {known}", "name the levelled one")
        name = next(iter(setups)) if setup is None else setup
        if name not in setups:
            raise UnknownNameError("sensor frame", name, tuple(setups))
        R_sensor_base = frame_matrix(setups[name], self.values)[:3, :3]
        return np.asarray(R_sensor_base.T @ np.asarray(in_sensor, dtype=np.float64))


def read_correction(path: str | Path, nominal: Robot) -> Correction:
    """A correction file for the arm it was made with.

    Raises:
        InputError: not a correction file, or one of another arm.
    """
    data = read_json(path, _WHAT, schema=FORMAT, key="format")
    found: Correction = restored(path, data, lambda value: _correction(Path(path), nominal, value), _WHAT)
    return found


def _correction(path: Path, nominal: Robot, data: Mapping[str, Any]) -> Correction:
    model, values = _corrected_model(data, nominal)
    measured = {name: (float(low), float(high)) for name, (low, high) in data.get("measured", {}).items()}
    return Correction(
        path=path,
        nominal=nominal,
        model=model,
        values=values,
        measured=measured,
        advice=str(data.get("advice", "")),
    )


def _corrected_model(data: Mapping[str, Any], robot: Robot) -> tuple[KinematicModel, FloatArray]:
    """Model and values from the plain data of a correction."""
    if tuple(data["robot"]["joints"]) != robot.joint_names:
        raise InputError(
            "correction",
            f"made for joints {', '.join(data['robot']['joints'])}",
            f"this robot has {', '.join(robot.joint_names)}",
        )
    errors = ErrorModel(
        UnknownGeometry(data["geometry"]),
        frozenset(Term(t) for t in data["terms"]),
        tuple((int(a), int(b)) for a, b in data["couplings"]),
    )
    frames = [{name: _frame_model(parts) for name, parts in data[kind].items()} for kind in ("setups", "targets")]
    if "load" in data:
        values = np.array(robot.inertial)
        values[-N_INERTIAL:] += np.array(data["load"], dtype=np.float64).reshape(N_INERTIAL)
        robot = robot.with_inertial(values)
    model = kinematic_model(robot, errors, setups=frames[0], targets=frames[1])
    ranges = {name: (float(low), float(high)) for name, (low, high) in data.get("covered", {}).items()}
    model = covering(model, {robot.joint_names.index(name): ends for name, ends in ranges.items()})
    values = np.zeros(len(model.parameters))
    for name, entry in data["parameters"].items():
        values[model.index(name)] = float(entry["value"])
    return model, values


def _frame_model(parts: list[dict[str, Any]]) -> FrameModel:
    return FrameModel(
        tuple(Elementary(motion=Move(p["motion"]), value=float(p["value"])) for p in parts),
        tuple(p["free"] for p in parts),
        body=next((p["body"] for p in parts if p.get("body")), None),
    )
