"""A whole frequency-response campaign on the simulated MABI arm: are inertias at fresh poses within 1 %?

    OMP_NUM_THREADS=1 python bench/bench_sweep.py [minutes [measurements [controller Hz]]]

Poses by the expected error of prediction, motions within limits, MuJoCo with Coulomb friction, gravity and the simulator's
typical sensors (20-bit encoders with one step of noise, motor torque with noise of 0.3 % of the limit per sample at 1 kHz),
then 32 parameters and the inertia of every axis at 500 poses where nothing was measured. Prints expected and actual errors.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

from armid.design.poses import PoseMethod, PoseSettings, Purpose, design_poses
from armid.motions.sweep import Signal
from armid.response.axis_inertia import axis_inertia_model, expected_accuracy
from armid.response.frequency_response import axis_response
from armid.response.plan import Site, SweepSettings, sweep_plan
from armid.robot.load import load_robot
from armid.simulation.controllers import PdGravity
from armid.simulation.dynamics import RigidModel
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import typical_sensors


def main(minutes: float = 8.0, count: int = 64, hold_hz: float = 10.0, signal: str = "sines") -> None:
    began = perf_counter()
    robot = load_robot("mabi-max100")
    settings = PoseSettings(count=int(count), method=PoseMethod.PREDICTION, transitions=False)
    design = design_poses(robot, Purpose.AXIS_INERTIA, settings)
    axes = [robot.joint_names[int(np.argmax(row))] for row in design.channels]
    sites = [Site(str(k), pose, axis) for k, (pose, axis) in enumerate(zip(design.poses, axes, strict=True))]
    sweeps = sweep_plan(robot, sites, SweepSettings(minutes=minutes, signal=Signal(signal)))
    expected = expected_accuracy(
        robot, [s.motion.pose for s in sweeps], [s.motion.axis for s in sweeps], [s.deviation for s in sweeps]
    )
    sensors = typical_sensors(robot.limit("torque"))
    measured = []
    for k, sweep in enumerate(sweeps):
        scenario = Scenario(
            controller=PdGravity(frequency_hz=hold_hz), sensors=sensors, physics=Physics(collisions=False), seed=k
        )
        measured.append(axis_response(run_scenario(robot, sweep.motion, scenario).log, robot))
    model = axis_inertia_model(robot, [m for m in measured if m.usable])
    fresh = np.random.default_rng(9).uniform(robot.limit("lower"), robot.limit("upper"), size=(500, robot.n_joints))
    rigid = RigidModel(robot)
    truth = np.array([np.diag(rigid.mass_matrix(q, rotors=True)) for q in fresh])
    error = model.inertia(fresh) / truth - 1.0
    score = (model.inertia(fresh) - truth) / model.deviation(fresh)
    total = sum(s.motion.duration for s in sweeps) / 60.0
    print(
        f"{len(sweeps)} measurements ({sum(m.usable for m in measured)} usable), {total:.1f} minutes of motion, {signal}"
    )
    print("axis   expected rms %  worst pose % |  actual rms %  worst pose %  | error / deviation, rms")
    for k, name in enumerate(robot.joint_names):
        rms, worst = 100 * np.sqrt(np.mean(error[:, k] ** 2)), 100 * np.abs(error[:, k]).max()
        print(
            f"{name}  {100 * expected.typical[k]:12.3f}  {100 * expected.worst[k]:12.3f} | {rms:12.3f}  {worst:12.3f}  |"
            f" {np.sqrt(np.mean(score[:, k] ** 2)):8.2f}"
        )
    print(f"{len(model.estimate)} base parameters; {perf_counter() - began:.0f} s of computing")


if __name__ == "__main__":
    main(*(float(x) for x in sys.argv[1:4]), *sys.argv[4:5])
