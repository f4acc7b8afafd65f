"""The truth about a simulated experiment, in the words of the later stages, so that any of them can be scored."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.documents import new_file, plain, write_json
from armid.errors import MissingDependencyError
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.space import ROTOR_INERTIA, OwnerKind, Parameter
from armid.robot.robot import Robot
from armid.rows.torque import space_of
from armid.simulation.plant import Plant
from armid.simulation.scenario import Experiment

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None

SCHEMA = "armid-simulation-truth"
VERSION = 1


def true_parameters(plant: Plant, side: TorqueSide) -> dict[str, float]:
    """Standard parameters by name, as a perfect identification from torques of that side would find them.

    A link-side sensor sees the share of friction and offset on its side of the transmission and no rotor; a motor-side
    one sees all of it. With a payload, `payload.*` are listed apart from the last link.
    """
    robot = plant.robot
    payload = PayloadRuns.NONE if plant.payload is None else PayloadRuns.LOADED
    effects = Effects(viscous=True, coulomb=True, offset=True, torques=side, payload=payload)
    space = space_of(robot, effects)
    return {p.name: _true_value(plant, side, p) for p in space}


def _true_value(plant: Plant, side: TorqueSide, parameter: Parameter) -> float:
    if parameter.component is not None:
        of_payload = parameter.kind is OwnerKind.PAYLOAD
        ten = plant.payload if of_payload else plant.robot.links[parameter.body].inertial
        assert ten is not None, "a plant knows every body"
        return float(ten[parameter.component])
    if parameter.kind is OwnerKind.PAYLOAD or parameter.drive_quantity is None:
        return 0.0  # a body held rigidly has no drive, and a plant only linear friction
    value = float(getattr(plant.robot.joints[parameter.body].drive, parameter.drive_quantity))
    share = float(plant.sensed_friction[parameter.body])
    if parameter.quantity == ROTOR_INERTIA:
        return value
    if parameter.is_motor_side:
        return (1.0 - share) * value
    return value if side is TorqueSide.MOTOR else share * value


def truth_of(experiment: Experiment) -> dict[str, Any]:
    """Everything a later stage may be scored against, as plain JSON values."""
    run, plan = experiment.run, experiment.scenario
    plant = run.plant
    truth = {
        "format": SCHEMA,
        "version": VERSION,
        "robot": description(experiment.declared),
        "seed": plan.seed,
        "parameters": {side.value: true_parameters(plant, side) for side in TorqueSide},
        "sensed_friction": plant.sensed_friction.tolist(),
        "payload": None if plant.payload is None else plant.payload.tolist(),
        "gravity": {"true": run.robot.gravity.tolist(), "declared": experiment.declared.gravity.tolist()},
        "faults_injected": list(injected_faults(experiment)),
        "mistakes": settings_values(plan.mistakes),
        "events": [fault.as_dict() for fault in run.faults],
        "complete": run.complete,
        "samples": len(experiment.log),
        "duration": float(run.time[-1]),
        "step": float(plant.model.opt.timestep),
        "scenario": settings_values(plan),
        "mujoco": mujoco.mj_versionString(),
    }
    out: dict[str, Any] = plain(truth)
    return out


def injected_faults(experiment: Experiment) -> tuple[str, ...]:
    """Codes of everything that is wrong with the log on purpose."""
    plan = experiment.scenario
    sensors, physics = plan.sensors, plan.physics
    lags = {getattr(sensors.lag, f.name) for f in fields(sensors.lag)}
    flags = {
        "clock-jitter": sensors.clock.jitter > 0.0,
        "lag": len(lags) > 1,
        "dropped-samples": sensors.packets.dropped > 0.0,
        "repeated-samples": sensors.packets.repeated > 0.0,
        "friction-drift": physics.drift.active,
        "payload": physics.payload is not None,
        "torque-gain": sensors.torque is not None and bool(np.any(np.asarray(sensors.torque.gain) != 1.0)),
        "torque-offset": sensors.torque is not None and bool(np.any(np.asarray(sensors.torque.offset) != 0.0)),
    }
    return (*plan.mistakes.codes, *(code for code, is_on in flags.items() if is_on))


def description(robot: Robot) -> dict[str, Any]:
    return {
        "name": robot.name,
        "source": robot.source.path,
        "sha256": robot.source.sha256,
        "joints": list(robot.joint_names),
        "links": list(robot.link_names),
    }


def settings_values(value: Any) -> Any:
    """Settings by the names of their fields; an arm is named, not written out. The rest is left to `documents.plain`."""
    if isinstance(value, Robot):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: settings_values(getattr(value, f.name)) for f in fields(value)}
    return [settings_values(item) for item in value] if isinstance(value, tuple | list) else value


def write_truth(experiment: Experiment, path: Path) -> Path:
    """`truth.json`."""
    return write_json(path, truth_of(experiment))


_TRUE_ARRAYS = (
    "time",
    "q",
    "qd",
    "qdd",
    "motor_q",
    "motor_qd",
    "motor_qdd",
    "motor_torque",
    "link_torque",
    "rigid_torque",
    "friction",
    "external_torque",
    "friction_scale",
)


def write_true_motion(experiment: Experiment, path: Path) -> Path:
    """What really happened, tick by tick, as npz: the arrays of `Run` under their own names."""
    arrays: dict[str, FloatArray] = {name: getattr(experiment.run, name) for name in _TRUE_ARRAYS}
    with new_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return path
