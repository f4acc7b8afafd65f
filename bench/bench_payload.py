"""One kilogram on the embedded iiwa with joint torque sensors: how far off are mass and centre, over many recordings?

    OMP_NUM_THREADS=1 python bench/bench_payload.py [recordings]

The arm is identified from 30 s of motion, checked on 8 s of another, and the load found from 14 s, off-line and sample by
sample; everything with the simulator's typical sensors, every recording another motion and other noise. Prints the worst and the
root-mean-square error, and how errors compare with their stated deviations. Then what spoils it: an arm identified from 8 s,
torque 5 ms late (which is refused, and here let pass), and rest instead of motion, where friction holds what it likes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from typer.testing import CliRunner

from armid.cli import application
from armid.identification.result import Result, load_result
from armid.logs.log import Log
from armid.motions.trajectory import SampledTrajectory
from armid.parameters.inertial import from_centre_of_mass, transformed
from armid.payload.identify import identified_arm, identify_payload, loaded_runs
from armid.payload.payload import Payload
from armid.payload.search import PayloadSearch
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


def visits(seed: int, *, poses: int = 8, move: float = 1.5, hold: float = 0.7) -> SampledTrajectory:
    """From pose to pose, with a rest at each."""
    way = np.random.default_rng(seed).uniform(-0.55, 0.55, size=(poses, 7))
    t = np.arange(0.0, poses * (move + hold) - move, 0.005)
    k = np.minimum((t / (move + hold)).astype(int), poses - 1)
    s = np.clip((t - k * (move + hold) - hold) / move, 0.0, 1.0)[:, np.newaxis]
    d = way[np.minimum(k + 1, poses - 1)] - way[k]
    q, qd = way[k] + d * (10 * s**3 - 15 * s**4 + 6 * s**5), d * (30 * s**2 - 60 * s**3 + 30 * s**4) / move
    return SampledTrajectory(ROBOT.joint_names, t, q, qd, d * (60 * s - 180 * s**2 + 120 * s**3) / move**2)


def recorded(
    seed: int, seconds: float, *, loaded: bool, motion: SampledTrajectory | None = None, friction: float = 1.0
) -> Log:
    body = transformed(from_centre_of_mass(1.0, CENTRE, 2e-3 * np.eye(3)), np.asarray(ROBOT.tip.T_link_frame))
    physics = Physics(collisions=False, payload=body if loaded else None, sensed_friction=friction)
    scenario = Scenario(physics=physics, sensors=typical_sensors(ROBOT.limit("torque")), seed=seed)
    return run_scenario(ROBOT, motion or excitation(seed, seconds), scenario).log


def identified(folder: Path, seed: int, *, seconds: float = 30.0, friction: float = 1.0) -> Result:
    logs = [
        write_log(
            replace(recorded(s, t, loaded=False, friction=friction), name=n), folder / f"{n}{seed}.csv", LogFormat.CSV
        )
        for n, s, t in (("empty", 200 + seed, seconds), ("check", seed, 8.0))
    ]
    out = folder / f"result{seed}-{seconds:g}-{friction:g}"
    arguments = ["identify", "iiwa14", str(logs[0]), "--validate", str(logs[1]), "--out", str(out), "--json"]
    CliRunner().invoke(application(), arguments)
    return load_result(out)


def errors(found: Payload) -> list[float]:
    deviation = found.standard_deviations
    return [
        found.mass - 1.0,
        *(found.centre_of_mass - CENTRE),
        float(deviation["mass"]),
        *np.asarray(deviation["centre_of_mass"]),
    ]  # type: ignore[arg-type]


def late(log: Log, samples: int) -> Log:
    """The same with torque that many samples late."""
    channels = {
        c: np.vstack([np.repeat(v[:1], samples, axis=0), v[:-samples]]) if c.is_torque else v
        for c, v in log.channels.items()
    }
    return replace(log, channels=channels)


def main(count: int = 20) -> None:
    rows: dict[str, list[list[float]]] = {}

    def add(label: str, found: Payload) -> None:
        rows.setdefault(label, []).append(errors(found))

    with TemporaryDirectory() as name:
        folder = Path(name)
        results = [identified(folder, seed) for seed in range(1, ARMS + 1)]
        short, behind = identified(folder, 1, seconds=8.0), identified(folder, 1, friction=0.0)
        for k in range(int(count)):
            known = results[k % ARMS]
            log = recorded(100 + k, 14.0, loaded=True)
            add("off-line", identify_payload(known, log))
            add("sample by sample", identify_payload(known, log, online=True))
            add("arm from 8 s", identify_payload(short, log))
            runs = loaded_runs(known, [late(log, 5)])
            add("torque 5 ms late", PayloadSearch(correlated=False).fit(identified_arm(known), runs))
        for k in range(int(count) // 3):
            for label, known, friction in (("at rest", behind, 0.0), ("at rest, friction felt", results[0], 1.0)):
                log = recorded(300 + k, 0.0, loaded=True, motion=visits(k), friction=friction)
                add(label, identify_payload(known, log, static=True))
    print(f"1 kg, {int(count)} recordings of 14 s, arms from 30 s; at rest: 8 poses")
    for label, found in rows.items():
        e = np.array(found)
        centre = np.linalg.norm(e[:, 1:4], axis=1)
        score = np.sqrt(np.mean((e[:, :4] / e[:, 4:]) ** 2))
        print(
            f"  {label:23s} mass {100 * np.abs(e[:, 0]).max():5.2f} % worst, {100 * np.sqrt(np.mean(e[:, 0] ** 2)):5.2f} % rms;  "
            f"centre {1e3 * centre.max():5.1f} mm worst, {1e3 * np.sqrt(np.mean(centre**2)):5.1f} mm rms;  "
            f"error / deviation {score:.2f}"
        )


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:2]))
