"""Recordings made of nothing but our own inverse dynamics: any length, the same on every machine, no file needed.

`python -m bench.synthetic FOLDER/log-ROWS-SEED.parquet...` writes logs of so many rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

RATE = 1000.0
"""[Hz]"""
ARM = "panda"
BLOCK = 50_000
"""Rows made at a time: the generator's memory does not grow with the log."""
FREQUENCIES = np.array([0.11, 0.23, 0.37, 0.59, 0.83])
"""[Hz]; no common period within any log made here."""
USED = 0.35
"""Of the range of each joint and of its largest velocity: rich, and far from every limit."""
TORQUE_NOISE = 0.1
"""[N m], standard deviation."""
VELOCITY_NOISE = 1e-3
"""[rad/s], standard deviation."""
VISCOUS, COULOMB = 0.8, 0.6
"""[N m s/rad] and [N m] of every joint: the catalogue's arm has no friction of its own."""

Columns = dict[str, np.ndarray]


def blocks(rows: int, seed: int = 0, *, velocity: bool = False) -> Iterator[Columns]:
    """Columns t, q1..qn, qd1..qdn when asked for, and tau1..taun of a log, block by block."""
    from armid.kernels.dynamics import inverse_dynamics
    from armid.robot.load import load_robot

    robot = load_robot(ARM)
    rng = np.random.default_rng(seed)
    limits = [joint.limits for joint in robot.joints]
    middle = np.array([0.5 * (limit.lower + limit.upper) for limit in limits])
    half = np.array([0.5 * (limit.upper - limit.lower) for limit in limits])
    fastest = np.array([limit.velocity for limit in limits])
    shares = rng.dirichlet(np.full(len(FREQUENCIES), 2.0), size=robot.n_joints)
    phases = rng.uniform(0.0, 2.0 * np.pi, size=shares.shape)
    w = 2.0 * np.pi * FREQUENCIES * rng.uniform(0.9, 1.1, size=shares.shape)
    amplitude = USED * np.minimum(half, fastest / (shares * w).sum(axis=1))[:, None] * shares
    for start in range(0, rows, BLOCK):
        t = np.arange(start, min(start + BLOCK, rows)) / RATE
        angle = w[None] * t[:, None, None] + phases[None]
        sine, cosine = np.sin(angle), np.cos(angle)
        q = middle + (amplitude * sine).sum(axis=2)
        qd = (amplitude * w * cosine).sum(axis=2)
        qdd = -(amplitude * w**2 * sine).sum(axis=2)
        tau = inverse_dynamics(robot, q, qd, qdd) + VISCOUS * qd + COULOMB * np.sign(qd)
        tau += noise(rng, TORQUE_NOISE, tau)
        seen = {"q": q, "tau": tau} if not velocity else {"q": q, "qd": qd + noise(rng, VELOCITY_NOISE, qd), "tau": tau}
        yield {"t": t, **{f"{name}{j + 1}": seen[name][:, j] for name in seen for j in range(robot.n_joints)}}


def noise(rng: np.random.Generator, deviation: float, like: np.ndarray) -> np.ndarray:
    return rng.normal(0.0, deviation, size=like.shape)


def write_npz(path: Path, rows: int, seed: int = 0, *, velocity: bool = False) -> None:
    parts = list(blocks(rows, seed, velocity=velocity))
    np.savez(path, **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def write_parquet(path: Path, rows: int, seed: int = 0) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for columns in blocks(rows, seed):
        table = pa.table(columns)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        _, count, chosen = file.stem.split("-")
        write_parquet(file, int(count), int(chosen))
