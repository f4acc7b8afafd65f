"""One kilogram on the embedded iiwa with joint torque sensors: how far off are mass and centre, over many recordings?

    OMP_NUM_THREADS=1 python bench/bench_payload.py [recordings]

The arm is identified from 30 s of motion, checked on 8 s of another, and the load found from 14 s, off-line and sample by
sample; everything with the simulator's typical sensors, every recording another motion and other noise. Prints the worst and the
root-mean-square error, and how errors compare with their stated deviations.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from typer.testing import CliRunner

from armid.cli import application
from armid.cli.payload import moving, streamed
from armid.design.trajectory import SampledTrajectory
from armid.estimation.payload import Arm, Payload
from armid.estimation.result import Result, load_result
from armid.logs.log import Log
from armid.parameters.inertial import from_centre_of_mass, transformed
from armid.robot.load import load_robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import typical_sensors
from armid.simulation.writers import LogFormat, write_log

ROBOT = load_robot("iiwa14")
CENTRE = np.array([0.02, -0.01, 0.06])
ARMS = 2


def excitation(seed: int, seconds: float) -> SampledTrajectory:
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.005)
    w, phase = rng.uniform(0.5, 2.0, (3, 7)), rng.uniform(0, 6, (3, 7))
    angle = t[:, np.newaxis, np.newaxis] * w + phase
    waves = (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))
    return SampledTrajectory(ROBOT.joint_names, t, *(0.26 * x.sum(axis=1) for x in waves))


def recorded(seed: int, seconds: float, *, loaded: bool) -> Log:
    body = transformed(from_centre_of_mass(1.0, CENTRE, 2e-3 * np.eye(3)), np.asarray(ROBOT.tip.T_link_frame))
    physics = Physics(collisions=False, payload=body if loaded else None)
    scenario = Scenario(physics=physics, sensors=typical_sensors(ROBOT.limit("torque")), seed=seed)
    return run_scenario(ROBOT, excitation(seed, seconds), scenario).log


def identified(folder: Path, seed: int) -> Result:
    logs = [
        write_log(replace(recorded(s, t, loaded=False), name=n), folder / f"{n}{seed}.csv", LogFormat.CSV)
        for n, s, t in (("empty", 200 + seed, 30.0), ("check", seed, 8.0))
    ]
    out = folder / f"result{seed}"
    arguments = ["identify", "iiwa14", str(logs[0]), "--validate", str(logs[1]), "--out", str(out), "--json"]
    CliRunner().invoke(application(), arguments)
    return load_result(out)


def errors(found: Payload) -> list[float]:
    deviation = found.standard_deviations
    return [
        found.mass - 1.0,
        *(found.centre - CENTRE),
        float(deviation["mass"]),
        *np.asarray(deviation["centre_of_mass"]),
    ]  # type: ignore[arg-type]


def main(count: int = 20) -> None:
    rows: dict[str, list[list[float]]] = {"off-line": [], "sample by sample": []}
    with TemporaryDirectory() as name:
        results = [identified(Path(name), seed) for seed in range(1, ARMS + 1)]
        for k in range(int(count)):
            known = results[k % ARMS]
            arm, log = Arm(known.robot, known.estimate), recorded(100 + k, 14.0, loaded=True)
            rows["off-line"].append(errors(moving(arm, known, [log], None, offsets=False)))
            rows["sample by sample"].append(errors(streamed(arm, known, [log], None)))
    print(f"1 kg, {int(count)} recordings of 14 s, arms from 30 s")
    for label, found in rows.items():
        e = np.array(found)
        centre = np.linalg.norm(e[:, 1:4], axis=1)
        score = np.sqrt(np.mean((e[:, :4] / e[:, 4:]) ** 2))
        print(
            f"  {label:18s} mass {100 * np.abs(e[:, 0]).max():.2f} % worst, {100 * np.sqrt(np.mean(e[:, 0] ** 2)):.2f} % rms;  "
            f"centre {1e3 * centre.max():.1f} mm worst, {1e3 * np.sqrt(np.mean(centre**2)):.1f} mm rms;  "
            f"error / deviation {score:.2f}"
        )


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:2]))
