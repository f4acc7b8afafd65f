"""Logs of a simulated three-joint arm with known truth, written to files for the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from armid.cli import application
from armid.identification.metrics import nominal_standard
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from support.elbow import coloured, fourier_motion

ROBOT = """
format: armid-robot/1
name: elbow
joints:
  - name: waist
    link: l1
    mdh: {d: 0.3}
    inertial: {mass: 6, com: [0, 0.02, -0.05], inertia_at_com: [0.05, 0, 0, 0.05, 0, 0.04]}
  - name: shoulder
    link: l2
    mdh: {alpha: -pi/2, a: 0.1}
    inertial: {mass: 5, com: [0.2, 0.01, 0.05], inertia_at_com: [0.02, 0, 0, 0.1, 0, 0.1]}
  - name: elbow
    link: l3
    mdh: {a: 0.4}
    inertial: {mass: 3, com: [0.1, -0.02, 0.02], inertia_at_com: [0.01, 0, 0, 0.03, 0, 0.03]}
"""
FRICTION = Effects(viscous=True, coulomb=True, offset=True)


def run(*args: object, code: int = 0) -> Any:
    """A command that must end with this code: its JSON, or what it printed."""
    outcome = CliRunner().invoke(application(), [str(a) for a in args])
    assert outcome.exit_code == code, outcome.stderr + outcome.stdout
    return json.loads(outcome.stdout) if outcome.stdout.strip().startswith("{") else outcome


def true_standard(robot: Robot, source: TorqueRows) -> np.ndarray:
    """The description's masses and inertias made a tenth heavier, plus friction."""
    values = 1.1 * nominal_standard(robot, source.columns)
    for i, name in enumerate(source.columns):
        if name.startswith("joint"):
            values[i] = {"viscous": 2.0, "coulomb": 1.5, "offset": 0.2}[name.split(".")[1]]
    return values


def write_elbow_log(
    path: Path,
    robot: Robot,
    seed: int,
    *,
    seconds: float = 20.0,
    rate: float = 100.0,
    position_noise: float = 1e-5,
    commanded: bool = False,
    spoil: slice | None = None,
    moving: tuple[int, ...] = (0, 1, 2),
) -> Path:
    """A Fourier motion of some joints with coloured torque noise; `spoil` adds 40 N m to the shoulder there."""
    rng = np.random.default_rng(seed)
    inputs = fourier_motion(rng, 3, int(seconds * rate), rate)
    for j in set(range(3)) - set(moving):
        inputs[:, [j, 3 + j, 6 + j]] = [inputs[0, j], 0.0, 0.0]
    source = TorqueRows(robot, FRICTION)
    clean = evaluate_rows(source, inputs) @ true_standard(robot, source)
    torque = clean + coloured(rng, clean.shape, 0.05)
    if spoil is not None:
        torque[spoil, 1] += 40.0
    q = inputs[:, :3] + rng.normal(size=(len(inputs), 3)) * position_noise
    columns = {"time": np.arange(len(inputs))[:, None] / rate, "q": q, "tau": torque}
    if commanded:
        columns["q_cmd"] = inputs[:, :3]
    return write_columns(path, robot, columns)


def write_columns(path: Path, robot: Robot, columns: dict[str, np.ndarray]) -> Path:
    """A CSV file with one column per quantity and joint."""
    names = [
        label
        for kind in columns
        for label in ([kind] if kind == "time" else [f"{kind}_{n}" for n in robot.joint_names])
    ]
    table = np.hstack(list(columns.values()))
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    return path
