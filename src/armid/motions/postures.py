"""Postures of an arm from a table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray, samples
from armid.documents import read_text
from armid.errors import InputError
from armid.robot.robot import Robot


def load_postures(path: Path, robot: Robot) -> FloatArray:
    """Joint positions from a CSV with a header: columns `q1..qn`, `q_<joint>` or the joints' names; others are ignored.

    Returns:
        [rad or m], shape [n_poses, n_joints].
    """
    text = read_text(path, "postures: a CSV with a header")
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as problem:
        raise InputError(path, f"cannot be read: {problem}") from None
    header = [name.strip() for name in rows[0]] if rows else []
    spellings = (
        [f"q{i + 1}" for i in range(robot.n_joints)],
        [f"q_{name}" for name in robot.joint_names],
        list(robot.joint_names),
    )
    wanted = next((names for names in spellings if set(names) <= set(header)), None)
    if wanted is None:
        raise InputError(path, f"a header of {len(header)} other columns", f"expected columns q1..q{robot.n_joints}")
    columns = [header.index(name) for name in wanted]
    try:
        values = np.array([[float(row[k]) for k in columns] for row in rows[1:] if row])
    except (ValueError, IndexError):
        raise InputError(path, "a row without all its numbers", f"expected a number in {', '.join(wanted)}") from None
    if not len(values):
        raise InputError(path, "no postures below the header")
    return samples(f"{path}: q", values, robot.n_joints)
