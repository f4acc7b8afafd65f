"""armid lets a robot arm learn its own body from its own measurements.

From a description and a log to a judged model:

    robot = armid.load_robot("arm.urdf")
    log = armid.read_log("log.csv", robot)
    result = armid.identify(robot, log, validate="other.csv")
    print(result.summary())
    result.export("identified.urdf")

Reading          load_robot  map_log  read_log  check_log  load_result  load_calibration  load_answer
Planning ahead   inspect  design_motion  choose_poses  simulate  show
Learning         identify  identify_payload  identify_sequential  identify_transmission  recover  sweep  calibrate
                 OnlineEstimator  fleet
Judging          validate  compare
Using            observe  plan_motion  make_program  compensate
Studies          demo  study  benchmark
Rigid body       inverse_dynamics  forward_dynamics  mass_matrix  coriolis  gravity  regressor  forward_kinematics  jacobian
Nouns            Robot  Effects  Log  Trajectory  Information  BaseParameters  Estimate  Result  Calibration  Payload  Design
                 Inspection  Note  Check  Verdict  ArmidError  InputError

Every answer has `verdict`, `checks`, `notes`, `provenance`, `summary()`, `plot(name)`, `report(path)`, `save(folder)` and
`as_dict()`. The machine room is one level down: `armid.robot`, `armid.rows`, `armid.information`, `armid.identifiability`,
`armid.estimation`, `armid.consistency`. Names load when first used, so that `import armid` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_PUBLIC = {
    "ArmidError": "errors",
    "BaseParameters": "identifiability.base",
    "Calibration": "calibration.calibrate",
    "Check": "outcome",
    "Design": "design.design",
    "Effects": "parameters.effects",
    "Estimate": "estimation.estimate",
    "Information": "information.information",
    "InputError": "errors",
    "Inspection": "inspection.inspection",
    "Log": "logs.log",
    "Note": "notes",
    "OnlineEstimator": "online.estimator",
    "Payload": "payload.payload",
    "Result": "identification.result",
    "Robot": "robot.robot",
    "Trajectory": "motions.trajectory",
    "Verdict": "outcome",
    "benchmark": "studies.benchmark",
    "calibrate": "calibration.calibrate",
    "check_log": "logs.check",
    "choose_poses": "design.poses",
    "compare": "identification.compare",
    "compensate": "calibration.compensate",
    "coriolis": "kernels.rigid_body",
    "demo": "studies.demo",
    "design_motion": "design.design",
    "fleet": "fleets.fleet",
    "forward_dynamics": "kernels.rigid_body",
    "forward_kinematics": "kernels.rigid_body",
    "gravity": "kernels.rigid_body",
    "identify": "identification.identify",
    "identify_payload": "payload.identify",
    "identify_sequential": "sequential.identify",
    "identify_transmission": "transmission.identify",
    "inspect": "inspection.inspect",
    "inverse_dynamics": "kernels.rigid_body",
    "jacobian": "kernels.rigid_body",
    "load_answer": "answers",
    "load_calibration": "calibration.stored",
    "load_result": "identification.result",
    "load_robot": "robot.load",
    "make_program": "programs.program",
    "map_log": "columns.draft",
    "mass_matrix": "kernels.rigid_body",
    "observe": "observation.observe",
    "plan_motion": "planning.plan",
    "read_log": "logs.check",
    "recover": "recovery.recover",
    "regressor": "kernels.rigid_body",
    "show": "report.preview",
    "simulate": "simulation.simulate",
    "study": "studies.kinematics.study",
    "sweep": "response.sweep",
    "validate": "identification.validate",
}
"""The promise: where each public name lives, below `armid`."""

_ROOMS = ("consistency", "estimation", "identifiability", "information", "robot", "rows")
"""The machine room, one level down."""

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"armid.{_PUBLIC[name]}"), name)
    if not name.startswith("_"):
        try:
            return import_module(f"armid.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"armid.{name}":
                raise
    raise AttributeError(f"module 'armid' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The promise and the rooms below it; what else a module has begins with an underscore and is nobody's business."""
    return sorted([*__all__, *_ROOMS, *(name for name in globals() if name.startswith("__"))])
