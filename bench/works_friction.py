"""Friction and rotors found again on our own logs: [Khosla1985]'s sequential estimate, [Kolyubin2017]'s model 2."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import armid
from armid.identification.result import Result
from armid.motions.fourier import FourierTrajectory
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.robot import Robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario
from armid.simulation.sensors import Sensors, TorqueSensor
from armid.simulation.writers import LogFormat, write_log

SEQUENTIAL = (
    ("cmu-dd-arm2", 100),
    ("cmu-dd-arm2", 500),
    ("cmu-dd-arm2", 1000),
    ("cylindrical", 250),
    ("ur10e", 125),
    ("panda", 1000),
    ("panda", 200),
    ("iiwa14", 250),
    ("rv2sq", 500),
    ("tx40-birdy", 200),
    ("mabi-max100", 250),
    ("lwr4-dh", 500),
)
"""Arms and rates of their logs [Hz]."""

PAYLOAD_KG = 3.28
"""Of [Kolyubin2017]."""


def random_motion(robot: Robot, seed: int, *, period: float = 10.0, harmonics: int = 5) -> FourierTrajectory:
    """Smooth random motion in the middle of the range."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(robot.limit("lower"), -1.5), np.minimum(robot.limit("upper"), 1.5)
    size = 0.12 * (high - low)[:, np.newaxis] / np.arange(1, harmonics + 1)
    a, b = (rng.uniform(-1.0, 1.0, size.shape) * size for _ in range(2))
    return FourierTrajectory(robot.joint_names, period, 0.5 * (low + high), a, b)


def sequential_friction(*, quick: bool) -> None:
    """`armid sequential --friction viscous,coulomb` on simulated logs: Coulomb friction beside the truth, and all intervals."""
    print(
        "| arm, rate | verdict | Coulomb friction found | true | largest error, standard deviations | base parameters in their "
        "95 % intervals |\n|---|---|---|---|---|---|"
    )
    total = np.zeros(2, dtype=int)
    for name, rate in SEQUENTIAL[: 2 if quick else None]:
        robot = armid.load_robot(name)
        done = armid.simulate(name, random_motion(robot, 1), rate_hz=float(rate), seed=3)
        found = armid.identify_sequential(name, done.log, friction="viscous,coulomb")
        truth = done.truth["parameters"]["link"]
        own = [p for p in found.parameters if p.name.endswith("coulomb")]
        worst = max(abs(p.value - truth[p.name]) / p.standard_deviation for p in own)
        values = " ".join(f"{p.value:.3f}" for p in own)
        true = " ".join(f"{truth[p.name]:.3g}" for p in own)
        e = found.estimate
        exact = e.base.values(np.array([truth[name] for name in e.base.parameters]))
        inside = np.abs(e.values - exact) <= 1.96 * e.standard_deviations
        total += inside.sum(), len(inside)
        held = f"{inside.sum()} of {len(inside)}"
        print(f"| {name}, {rate} Hz | {found.verdict} | {values} | {true} | {worst:.1f} | {held} |", flush=True)
    print(f"base parameters in their 95 % intervals: {total[0]} of {total[1]}")


ROTOR_RUNS = 14
"""Pairs of runs without and with the payload: 98 intervals, so that 95 % can be told from 85 %."""


def rotors(*, quick: bool) -> None:
    """Rotor inertias of model 2 in their 95 % intervals, from runs without and with a payload."""
    robot = armid.load_robot("lwr4plus")
    true = {
        f"{name}.rotor_inertia": value
        for name, value in zip(robot.joint_names, robot.drive("rotor_inertia"), strict=True)
    }
    found = [both_sides(robot, seed) for seed in range(1 if quick else ROTOR_RUNS)]
    own = [[one.parameters[name] for name in true] for one in found]
    inside = np.array([[p.low <= true[p.name] <= p.high for p in run] for run in own])
    errors = np.array([[(p.value - true[p.name]) / p.standard_deviation for p in run] for run in own])
    worst = max(abs(p.value / true[p.name] - 1.0) for run in own for p in run)
    carried = max(abs(one.parameters["payload.mass"].value / PAYLOAD_KG - 1.0) for one in found)
    trusted = sum(one.verdict == "trusted" for one in found)
    print(
        f"rotor inertias of model 2 inside their 95 % intervals: {inside.sum()} of {inside.size}; largest error "
        f"{100 * worst:.2f} %; {trusted} of {len(found)} results trusted; payload of {PAYLOAD_KG:g} kg within "
        f"{100 * carried:.2f} %"
    )
    print("| rotor of | inside | mean error, deviations | root mean square |\n|---|---|---|---|")
    for k, name in enumerate(robot.joint_names):
        size = float(np.sqrt((errors[:, k] ** 2).mean()))
        print(f"| {name} | {inside[:, k].sum()} of {len(found)} | {errors[:, k].mean():+.1f} | {size:.1f} |")


NOISE_RUNS = 10
"""Recordings of the same motion whose noise alone differs."""

QUIET, FAST_CUTOFF = 0.02, 15.0
"""Share of the noise that leaves the rest to be seen, and a low-pass [Hz] that takes less of the reversals."""


def rotor_noise(motions: Sequence[int] = (0, 1)) -> None:
    """Rotor inertias from the same motion again and again: what noise does, and what the motion and the cut-off do.

    Deviations are those without the choice of the cut-off (`sensitivity=False`): scatter near one says that they are right about
    noise, a mean far from zero that something else adds to the error.
    """
    robot = armid.load_robot("lwr4plus")
    true = robot.drive("rotor_inertia")
    names = [f"{name}.rotor_inertia" for name in robot.joint_names]
    print(
        "| motion | errors of joints 1 to 7 over deviations without the choice of the cut-off: mean | scatter |\n|---|---|---|"
    )
    for motion in motions:
        found = [both_sides(robot, motion, noise=noise, sensitivity=False) for noise in range(NOISE_RUNS)]
        own = [[one.parameters[name] for name in names] for one in found]
        errors = np.array(
            [[(p.value - t) / p.standard_deviation for p, t in zip(run, true, strict=True)] for run in own]
        )
        mean, scatter = (" ".join(f"{x:+.1f}" for x in v) for v in (errors.mean(axis=0), errors.std(axis=0, ddof=1)))
        print(f"| {motion} | {mean} | {scatter.replace('+', '')} |", flush=True)
    for cutoff in (None, FAST_CUTOFF):
        quiet = both_sides(robot, motions[0], share=QUIET, cutoff_hz=cutoff, sensitivity=False)
        errors = np.array([quiet.parameters[name].value for name in names]) / true - 1.0
        words = " ".join(f"{100.0 * e:+.2f}" for e in errors)
        where = f"{QUIET:g} of the noise, low-pass of {quiet.conditioning.cutoff_hz:.1f} Hz"
        print(f"motion {motions[0]}, {where}: errors of joints 1 to 7 {words} %", flush=True)


def both_sides(
    robot: Robot,
    seed: int,
    *,
    noise: int | None = None,
    share: float = 1.0,
    cutoff_hz: float | None = None,
    sensitivity: bool = True,
) -> Result:
    """Model 2 from a random motion without a payload and another with it.

    Args:
        robot: whose logs are simulated.
        seed: of the motions.
        noise: seed of the sensors' noise; that of the motions when left out.
        share: of the noise.
        cutoff_hz: of the low-pass; chosen from the logs when left out.
        sensitivity: whether the choice of the cut-off is part of the intervals.
    """
    load = from_centre_of_mass(PAYLOAD_KG, [0.1, 0.0, 0.13], 4e-3 * np.eye(3))
    sensors = Sensors(torque=TorqueSensor(noise=0.02 * share), motor=TorqueSensor(noise=0.05 * share))
    logs = []
    with tempfile.TemporaryDirectory() as place:
        for k, (mass, body) in enumerate(((0.0, None), (PAYLOAD_KG, load))):
            physics = Physics(payload=body, collisions=False)
            scenario = Scenario(physics=physics, sensors=sensors, seed=10 * (seed if noise is None else noise) + k)
            log = armid.simulate(robot, random_motion(robot, 10 * seed + k, period=14.0), scenario=scenario).log
            write_log(log.selected(slice(0, None, 2)), Path(place) / f"{k}.csv", LogFormat.CSV)
            logs.append(Path(place) / f"{k}.yaml")
            words = f"schema: armid.log/1\nname: run{k}\nfile: {k}.csv\nconditions: {{payload: {mass}}}\n"
            logs[-1].write_text(words)
        return armid.identify(
            robot,
            logs,
            torques="both",
            payload="both",
            rotor_inertia=True,
            cutoff_hz=cutoff_hz,
            sensitivity=sensitivity,
        )
