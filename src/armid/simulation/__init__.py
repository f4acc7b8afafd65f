"""The embedded robot: MuJoCo physics, a controller, sensors with stated errors, logs and the truth."""

from armid.simulation.controller_data import ControllerData, read_controller, write_controller_data
from armid.simulation.controllers import ComputedTorque, HandGuiding, PdGravity
from armid.simulation.drift import FrictionDrift
from armid.simulation.faults import CommandError, GainError, SimulationError
from armid.simulation.feedback import Feedback
from armid.simulation.files import Job, RunRecord, run_jobs, write_experiment
from armid.simulation.measure import Mistakes, measure
from armid.simulation.motions import Approached, CommandedMotion, Held
from armid.simulation.physics import OnFault, Physics
from armid.simulation.plant import Plant, build_plant
from armid.simulation.run import SimulatedRun, run_motion
from armid.simulation.scenario import Experiment, Scenario, run_scenario
from armid.simulation.sensors import (
    ChannelLag,
    CurrentSensor,
    EncoderSide,
    Packets,
    PositionSensor,
    RecordedVelocity,
    SampleClock,
    Sensors,
    TorqueSensor,
    VelocitySensor,
    typical_sensors,
)
from armid.simulation.settings_file import load_scenario
from armid.simulation.tracker import EncoderErrors, TrackedPoses, Tracker, track_poses, write_poses
from armid.simulation.truth import true_parameters, truth_of
from armid.simulation.variation import varied
from armid.simulation.writers import LogFormat, write_log

__all__ = [
    "Approached",
    "ChannelLag",
    "CommandError",
    "CommandedMotion",
    "ComputedTorque",
    "ControllerData",
    "CurrentSensor",
    "EncoderErrors",
    "EncoderSide",
    "Experiment",
    "Feedback",
    "FrictionDrift",
    "GainError",
    "HandGuiding",
    "Held",
    "Job",
    "LogFormat",
    "Mistakes",
    "OnFault",
    "Packets",
    "PdGravity",
    "Physics",
    "Plant",
    "PositionSensor",
    "RecordedVelocity",
    "RunRecord",
    "SampleClock",
    "Scenario",
    "Sensors",
    "SimulatedRun",
    "SimulationError",
    "TorqueSensor",
    "TrackedPoses",
    "Tracker",
    "VelocitySensor",
    "build_plant",
    "load_scenario",
    "measure",
    "read_controller",
    "run_jobs",
    "run_motion",
    "run_scenario",
    "track_poses",
    "true_parameters",
    "truth_of",
    "typical_sensors",
    "varied",
    "write_controller_data",
    "write_experiment",
    "write_log",
    "write_poses",
]
