"""A simulated fleet of three-joint arms with known truth: bodies and friction differ from arm to arm, some wear out."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from armid.identification.metrics import nominal_standard
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.space import named_parameter
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from support.elbow import coloured, fourier_motion
from support.elbow_logs import FRICTION, ROBOT

DATES = ("2026-01-05", "2026-02-02", "2026-03-02", "2026-04-06", "2026-05-04", "2026-06-01")


def true_arm(robot: Robot, source: TorqueRows, rng: np.random.Generator, spread: float) -> np.ndarray:
    """Standard parameters of one arm: links a tenth heavier than described, all within `spread` of one another."""
    values = 1.1 * nominal_standard(robot, source.columns)
    scale = 1.0 + spread * rng.normal(size=robot.n_joints)
    for i, name in enumerate(source.columns):
        parameter = named_parameter(name)
        if parameter.of_joint:
            values[i] = {"viscous": 2.0, "coulomb": 1.5, "offset": 0.2}[parameter.quantity]
            values[i] *= 1.0 + spread * rng.normal()
        else:
            values[i] *= scale[parameter.body]
    return values


def write_log(path: Path, source: TorqueRows, values: np.ndarray, seed: int, seconds: float, noise: float) -> Path:
    """A Fourier motion with coloured torque noise."""
    rng = np.random.default_rng(seed)
    inputs = fourier_motion(rng, 3, int(100.0 * seconds), 100.0)
    torque = evaluate_rows(source, inputs) @ values
    torque = torque + coloured(rng, torque.shape, noise)
    q = inputs[:, :3] + 1e-5 * rng.normal(size=(len(inputs), 3))
    columns = np.column_stack([np.arange(len(inputs)) / 100.0, q, torque])
    head = ",".join(["time", *(f"{kind}{j + 1}" for kind in ("q", "tau") for j in range(3))])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, columns, delimiter=",", header=head, comments="", fmt="%.9g")
    return path


def write_fleet(
    folder: Path,
    arms: int,
    dates: int,
    *,
    seconds: float = 8.0,
    spread: float = 0.2,
    noise: float = 0.05,
    worn: dict[int, tuple[str, int, float]] | None = None,
    seed: int = 0,
) -> Path:
    """Logs and table of a fleet; `worn` gives by arm a parameter, the date it changes on, and the factor."""
    (folder / "elbow.yaml").write_text(ROBOT)
    robot = load_robot(folder / "elbow.yaml")
    source = TorqueRows(robot, FRICTION)
    rng = np.random.default_rng(seed)
    with (folder / "fleet.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["arm", "date", "robot", "logs", "payload", "remarks"])
        for arm in range(arms):
            values = true_arm(robot, source, rng, spread)
            for k, date in enumerate(DATES[:dates]):
                now = values.copy()
                if worn and arm in worn and k >= worn[arm][1]:
                    now[source.columns.index(worn[arm][0])] *= worn[arm][2]
                name = f"r{arm:02d}/{date}.csv"
                write_log(folder / name, source, now, 1000 * arm + k + seed, seconds, noise)
                table.writerow([f"r{arm:02d}", date, "elbow.yaml", name, "", ""])
    return folder / "fleet.csv"
