"""Paths from files: waypoints in a table, lines and arcs of the tool in YAML, or the path of a stored trajectory."""

from __future__ import annotations

import csv
from pathlib import Path as FilePath

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.documents import read_text
from armid.errors import InputError
from armid.kernels.kinematics import forward_kinematics
from armid.motions.fourier import FourierTrajectory
from armid.motions.trajectory import Trajectory
from armid.motions.trajectory_files import load_trajectory
from armid.planning.path import STANDSTILL, Path, SplinePath, TrajectoryPath
from armid.planning.tool_path import Arc, ToolLine, tool_path
from armid.robot.document import Field, document
from armid.robot.robot import Robot
from armid.robot.shapes import read_pose

_FORMAT = "armid-path/1"

_KEYS = (
    "format",
    "description",
    "start",
    "start_deg",
    "frame",
    "line",
    "arc",
    "rpy",
    "rpy_deg",
    "orientation",
    "waypoints",
    "waypoints_deg",
)

_TRACED = 400
"""Points at which a trajectory that is no Fourier series is traced; its pauses are dropped."""


def path_of(path: str | FilePath | Path | npt.ArrayLike, robot: Robot) -> Path:
    """A path from its file, or through way-points [rad or m], shape [n_points, n_joints]; a path stays as it is."""
    if isinstance(path, str | FilePath):
        return load_path(FilePath(path), robot)
    if isinstance(path, Path):
        return path
    return SplinePath(robot.joint_names, samples("path", np.asarray(path, dtype=np.float64), robot.n_joints))


def load_path(source: FilePath, robot: Robot) -> Path:
    """The path in a file; `docs/formats.md` describes the kinds.

    Args:
        source: `.csv` of waypoints, `.yaml` of a tool path or waypoints, `.json` of a trajectory.
        robot: whose joints move.

    Raises:
        InputError: the file cannot be read or does not fit the robot; says where.
        PathError: a place on the path that cannot be reached or has no direction.
    """
    if not source.is_file():
        raise InputError(source, "no such file", "give a path as CSV, YAML or trajectory JSON (docs/formats.md)")
    match source.suffix.lower():
        case ".csv":
            return SplinePath(robot.joint_names, _read_waypoints(source, robot.joint_names))
        case ".json":
            return _trace(_of_robot(load_trajectory(source), robot, source))
        case ".yaml" | ".yml":
            return parse_path(read_text(source, "a path"), source.name, robot)
    raise InputError(source, f"suffix {source.suffix!r}", "expected .csv, .yaml or .json")


def _read_waypoints(source: FilePath, joints: tuple[str, ...]) -> FloatArray:
    """Waypoints by joint name (or q1, q2, ..), in the robot's order, shape [n, n_joints]."""
    try:
        lines = read_text(source, "a table of way-points").removeprefix("\ufeff").splitlines()
        table = [[cell.strip() for cell in row] for row in csv.reader(lines) if any(cell.strip() for cell in row)]
    except csv.Error as problem:
        raise InputError(source, f"not a table: {problem}") from None
    if not table:
        raise InputError(source, "empty file", f"expected a header {','.join(joints)} and one row per waypoint")
    header, *rows = table
    order = _columns(source, header, joints)
    out = np.empty((len(rows), len(joints)))
    for k, row in enumerate(rows):
        if len(row) != len(header):
            raise InputError(f"{source}, row {k + 2}", f"{len(row)} values", f"expected {len(header)}")
        for j, column in enumerate(order):
            out[k, j] = _number(row[column], f"{source}, row {k + 2}, column {header[column]}")
    return out


def _columns(source: FilePath, header: list[str], joints: tuple[str, ...]) -> list[int]:
    """Where each joint's column is; a `time` column is ignored, any other stranger refused."""
    numbered = [f"q{i + 1}" for i in range(len(joints))]
    names = list(joints) if set(joints) <= set(header) else numbered
    missing = [name for name in names if name not in header]
    extra = [name for name in header if name not in (*names, "time")]
    if missing or extra or len(set(header)) != len(header):
        what = f"misses {', '.join(missing)}" if missing else f"has {', '.join(extra)}" if extra else "repeats a name"
        raise InputError(f"{source}, header", what, f"expected the joints {', '.join(joints)}, or q1..q{len(joints)}")
    return [header.index(name) for name in names]


def _number(text: str, where: str) -> float:
    """A finite decimal number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise InputError(where, f"{text[:30]!r} is not a finite number", "angles in rad, lengths in m")
    return value


def parse_path(text: str, where: str, robot: Robot) -> Path:
    """A path from the text of a YAML file."""
    top = Field(document(text, where), f"{where}:").keys(_KEYS, required=("format",))
    top["format"].choice((_FORMAT,))
    kinds = [key for key in ("line", "arc", "waypoints", "waypoints_deg") if key in top]
    if len(kinds) != 1:
        raise InputError(where, f"{len(kinds)} of line, arc and waypoints", "exactly one says what the path is")
    kind = kinds[0]
    if kind.startswith("waypoints"):
        scale = np.pi / 180.0 if kind.endswith("_deg") else 1.0
        rows = [row.vector(robot.n_joints) * scale for row in top[kind].items()]
        return SplinePath(robot.joint_names, np.array(rows).reshape(-1, robot.n_joints))
    start = _start_pose(top, where, robot)
    frame = top["frame"].name() if "frame" in top else None
    T = forward_kinematics(robot, start, frame)[0]
    end = T.copy()
    end[:3, :3] = _end_rotation(top, T)
    turns = "orientation" not in top or top["orientation"].choice(("follow", "free")) == "follow"
    entry = top[kind]
    if kind == "line":
        fields = entry.keys(("to", "by"))
        if len(fields) != 1:
            raise entry.error(f"{len(fields)} of `to` and `by`", "a line needs one of them")
        end[:3, 3] = fields["to"].vector(3) if "to" in fields else T[:3, 3] + fields["by"].vector(3)
        return tool_path(robot, start, ToolLine(T, end), frame=frame, orientation=turns)
    fields = entry.keys(("via", "to"), required=("via", "to"))
    end[:3, 3] = fields["to"].vector(3)
    return tool_path(robot, start, Arc(T, fields["via"].vector(3), end), frame=frame, orientation=turns)


def _start_pose(top: dict[str, Field], where: str, robot: Robot) -> FloatArray:
    """Joint positions where a tool path begins, shape [n_joints]."""
    if ("start" in top) == ("start_deg" in top):
        raise InputError(where, "a tool path needs `start` or `start_deg`", "joint positions where it begins")
    if "start" in top:
        return top["start"].vector(robot.n_joints)
    return top["start_deg"].vector(robot.n_joints) * np.pi / 180.0


def _end_rotation(top: dict[str, Field], T: FloatArray) -> FloatArray:
    """Orientation at the end, in base axes; that of the start when none is given."""
    given: dict[str, Field] = {key: top[key] for key in ("rpy", "rpy_deg") if key in top}
    return read_pose(given)[:3, :3] if given else T[:3, :3]


def _of_robot(trajectory: Trajectory, robot: Robot, source: FilePath) -> Trajectory:
    """A stored trajectory, refused when its joints are not the robot's."""
    if sorted(trajectory.joint_names) != sorted(robot.joint_names):
        raise InputError(
            source, f"moves {', '.join(trajectory.joint_names)}", f"{robot.name} has {', '.join(robot.joint_names)}"
        )
    return trajectory


def _trace(trajectory: Trajectory) -> Path:
    """The path of a motion: exact for a Fourier series that never stands still, otherwise a spline.

    An excitation starts and ends at rest, where time as a parameter has no direction: points of equal distance do.
    """
    if isinstance(trajectory, FourierTrajectory):
        trajectory = trajectory.repeated(1)
    t = np.linspace(0.0, trajectory.duration, 20 * _TRACED)
    q, qd, _ = trajectory.sample(t)
    speed = np.linalg.norm(qd, axis=1)
    if isinstance(trajectory, FourierTrajectory) and speed.min() > STANDSTILL * speed.max():
        return TrajectoryPath(trajectory)
    travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    if not travelled[-1] > 0.0:
        raise InputError("path", "the trajectory stands still", "a path needs somewhere to go")
    at = np.interp(np.linspace(0.0, travelled[-1], _TRACED), travelled, t)
    return SplinePath(trajectory.joint_names, trajectory.sample(at)[0], straight_ends=False)
