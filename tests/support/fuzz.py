"""Damaged inputs for every reader: a good seed of each kind, and ways to spoil it.

An `Edit` is a place, a way and a piece; a damaged input is a seed with some of them. Tests draw edits with Hypothesis, which
shrinks what it finds; `python -m bench fuzz` draws many more at random.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from armid.calibration.read import read_poses
from armid.cli import application
from armid.consistency.bounds_file import read_bounds
from armid.errors import ArmidError, InputError
from armid.identification.result import load_result
from armid.logs.read import unchecked_log
from armid.motions.fourier import FourierTrajectory
from armid.motions.sample_table import save_csv
from armid.motions.trajectory_files import load_trajectory, save_trajectory
from armid.planning.path_files import load_path
from armid.robot.load import load_robot
from armid.robot.urdf.write import new_urdf
from armid.robot.yaml_write import to_yaml
from armid.scene.cell import load_cell
from armid.simulation.settings_file import load_scenario
from support import identified
from support.elbow_logs import ROBOT

PIECES = (
    b"nan", b"inf", b"-1", b"0", b"1e400", b"1e154", b"-1e-320", b"9" * 400, b"0x10", b"1_0", b"\xd9\xa1", b"true", b"null", b"~",
    b"{", b"}", b"[", b"]", b":", b"- ", b",", b";", b"\t", b"\n",
    b"\r", b"\x00", b"\xff\xfe", b"'", b'"', b"&a", b"*a", b"!!x", b"<", b"/>",
    b"<!--", b"-->", b"<robot>", b"&lt;", b"#", b"%", b"..", b"/dev/zero", b"/etc/passwd", b"joint1", b"time", b"q1", b"",
)  # fmt: skip
"""What people and attackers put into files."""


class Edit(NamedTuple):
    """One way to spoil: at a share of the length, in a way, with a piece, over some bytes."""

    place: float
    way: int
    piece: int
    length: int


WAYS = 7


def spoiled(seed: bytes, edits: Sequence[Edit]) -> bytes:
    """The seed with some edits."""
    out = bytearray(seed)
    for edit in edits:
        at = min(int(edit.place * len(out)), max(len(out) - 1, 0))
        piece = PIECES[edit.piece % len(PIECES)]
        match edit.way % WAYS:
            case 0:
                del out[at:]
            case 1:
                out[at : at + len(piece)] = piece
            case 2:
                out[at:at] = piece
            case 3:
                del out[at : at + edit.length]
            case 4:
                out[at:at] = out[at : at + edit.length]
            case 5:
                out[at : at + 1] = bytes([edit.length % 256])
            case 6:
                end = next((k for k in range(at, min(at + 40, len(out))) if out[k] in b" ,:\n<>\"'[]{}"), at)
                out[at:end] = piece
    return bytes(out)


@dataclass(frozen=True)
class Reader:
    """A kind of input.

    Args:
        seeds: good ones, by the name of the file.
        read: what makes something of the file, or of the folder it stands in.
        folder: whether all seeds stand together and `read` takes their folder; one of them is spoiled.
        packed: seeds whose file is an archive that holds them, by how it is made: what is spoiled inside has the checksums
            of whoever meant it, and passes the first doors.
    """

    seeds: dict[str, bytes]
    read: Callable[[Path], Any]
    folder: bool = False
    packed: dict[str, Packing] = field(default_factory=dict)


class Packing(NamedTuple):
    """An archive's name and the archive made from one spoiled member."""

    file: str
    pack: Callable[[bytes], bytes]


@cache
def elbow() -> Any:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "elbow.yaml"
        path.write_text(ROBOT)
        return load_robot(path)


def made(write: Callable[[Path], Any], name: str) -> dict[str, bytes]:
    """Files that something writes into a fresh folder; of a single file the one of that name."""
    with tempfile.TemporaryDirectory() as place:
        write(Path(place) / name)
        files = [path for path in Path(place).rglob("*") if path.is_file() and not path.name.startswith(".")]
        return {path.name: path.read_bytes() for path in files}


def arrays() -> dict[str, np.ndarray]:
    t = np.arange(60) * 0.01
    q = np.stack([np.sin((k + 2) * t) for k in range(3)], axis=1)
    return {"time": t, "q": q, "tau": 3.0 * np.cos(q)}


def members(archive: bytes, file: str) -> tuple[dict[str, bytes], dict[str, Packing]]:
    """The members of an npz file as seeds, and how each goes back into it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as stored:
        content = {name: stored.read(name) for name in stored.namelist()}

    def pack(member: str, spoiled_one: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as new:
            for name, data in (content | {member: spoiled_one}).items():
                new.writestr(name, data)
        return out.getvalue()

    seeds = {f"{file}: {name}": data for name, data in content.items()}
    return seeds, {f"{file}: {name}": Packing(file, partial(pack, name)) for name in content}


def _csv(path: Path) -> None:
    names = elbow().joint_names
    header = ["time", *(f"q_{name}" for name in names), *(f"tau_{name}" for name in names)]
    np.savetxt(
        path, np.column_stack(list(arrays().values())), fmt="%.6g", delimiter=",", header=",".join(header), comments=""
    )


def _json_lines(path: Path) -> None:
    data = arrays()
    path.write_text("\n".join(json.dumps({name: x[i].tolist() for name, x in data.items()}) for i in range(60)))


def _hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, values in arrays().items():
            file[name] = values
        file["joint_names"] = list(elbow().joint_names)


def _parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: values.tolist() for name, values in arrays().items()}), path)


def _mat(path: Path) -> None:
    from scipy.io import savemat

    savemat(
        path, {**arrays(), "joint_names": np.array(elbow().joint_names, dtype=object)}, do_compression=path.stem == "b"
    )


def _bag(path: Path, *, mcap: bool) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store, data = get_typestore(Stores.ROS2_HUMBLE), arrays()
    state, header, moment = (
        store.types[name]
        for name in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )
    plugin = StoragePlugin.MCAP if mcap else StoragePlugin.SQLITE3
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        topic = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
        for k in range(20):
            values = (data["q"][k], np.zeros(3), data["tau"][k])
            message = state(header(moment(100, int(1e7) * k), ""), list(elbow().joint_names), *values)
            writer.write(topic, 10**9 + k, store.serialize_cdr(message, state.__msgtype__))


MAPPING = b"""schema: armid.log/1
file: log.csv
joints: [a, b, c]
clock: {column: time, unit: s}
rows: [1, 50]
channels:
  position: {columns: [q_a, q_b, q_c], unit: rad, sign: [1, -1, 1]}
  torque.link: {columns: [tau_a, tau_b, tau_c], gain: 1.0, offset: [0, 0, 0.5]}
conditions: {payload: 1.5, tool: gripper, mounting: [0, 0, -9.81]}
"""
CELL = b"""format: armid-cell/1
margin: 0.02
floor: -0.1
obstacles:
  - {name: table, box: {size: [1.2, 0.8, 0.05]}, xyz: [0.4, 0, -0.05]}
  - {name: pillar, cylinder: {from: [0.6, 0.5, 0], to: [0.6, 0.5, 1.5], radius: 0.08}}
regions:
  - {axis_distance: 0.3, height: -0.2}
"""
PATHS = {
    "a.yaml": b"format: armid-path/1\nwaypoints_deg: [[0, 0, 0], [20, 10, -30], [40, 0, 0]]\n",
    "b.yaml": b"format: armid-path/1\nwaypoints: [[0, 0, 0], [0.2, 0.1, -0.3], [0.4, 0, 0.1]]\n",
}
SCENARIO = b"""seed: 3
controller: {kind: pd}
sensors: typical
variation: 0.1
"""
BOUNDS = b"mass: {link1: [0.5, 9], link2: [0.1, 5]}\ntotal_mass: [1, 20]\n"
CONFIG = b"identify:\n  friction: viscous,coulomb\n  seed: 3\n  out: x\ncheck:\n  step: 0.01\n"
POSES = b"q1,q2,q3,x,y,z\n" + b"".join(b"0.%d,0.2,0.3,0.4,0.%d,0.6\n" % (k, k) for k in range(9))


def _motion() -> FourierTrajectory:
    rng = np.random.default_rng(1)
    return FourierTrajectory(elbow().joint_names, 4.0, np.zeros(3), *rng.normal(size=(2, 3, 2)))


def read_config(path: Path) -> None:
    from typer.testing import CliRunner

    done = CliRunner().invoke(application(("check", "identify")), ["check", "--thresholds", "--config", str(path)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code:
        assert done.exit_code in (1, 2), done.exit_code
        raise InputError(path, done.stderr)


def _log(path: Path) -> None:
    unchecked_log(path, elbow())


@cache
def readers() -> dict[str, Reader]:
    """Every reader with its seeds."""
    log = made(_csv, "log.csv")["log.csv"]
    named = {"a": elbow().joint_names[0], "b": elbow().joint_names[1], "c": elbow().joint_names[2]}
    mapping = MAPPING
    for letter, name in named.items():
        mapping = mapping.replace(f"_{letter}".encode(), f"_{name}".encode())
    mapping = mapping.replace(b"[a, b, c]", ", ".join(elbow().joint_names).join(("[", "]")).encode())
    result = made(lambda path: identified.trusted().save(path.parent), "x")
    urdf = new_urdf(elbow()).encode()
    npz = made(lambda path: np.savez_compressed(path, **arrays()), "log.npz")
    inside, packed = members(npz["log.npz"], "log.npz")
    kept, kept_packed = members(result["result.npz"], "result.npz")
    return {
        "csv": Reader({"log.csv": log}, _log),
        "npz": Reader(npz | inside, _log, packed=packed),
        "mat": Reader(made(_mat, "a.mat") | made(_mat, "b.mat"), _log),
        "parquet": Reader(made(_parquet, "log.parquet"), _log),
        "hdf5": Reader(made(_hdf5, "log.h5"), _log),
        "json lines": Reader(made(_json_lines, "log.jsonl"), _log),
        "bag": Reader(made(lambda path: _bag(path, mcap=False), "bag"), _log, folder=True),
        "mcap": Reader(
            {k: v for k, v in made(lambda path: _bag(path, mcap=True), "bag").items() if k.endswith("mcap")}, _log
        ),
        "mapping": Reader({"m.yaml": mapping, "log.csv": log}, lambda folder: _log(folder / "m.yaml"), folder=True),
        "urdf": Reader({"arm.urdf": urdf}, load_robot),
        "robot yaml": Reader({"arm.yaml": ROBOT.encode(), "b.yaml": to_yaml(elbow()).encode()}, load_robot),
        "poses": Reader({"poses.csv": POSES}, lambda path: read_poses(path, elbow().joint_names)),
        "paths": Reader(PATHS, lambda path: load_path(path, elbow())),
        "trajectories": Reader(
            made(lambda path: save_trajectory(_motion(), path), "t.json")
            | made(lambda path: save_csv(_motion(), path, rate_hz=20.0), "t.csv"),
            load_trajectory,
        ),
        "scenarios": Reader({"s.yaml": SCENARIO}, lambda path: load_scenario(path, elbow())),
        "cells": Reader({"cell.yaml": CELL}, load_cell),
        "bounds": Reader({"bounds.yaml": BOUNDS}, lambda path: read_bounds(path, elbow())),
        "config": Reader({"armid.yaml": CONFIG}, read_config),
        "result": Reader(result | kept, load_result, folder=True, packed=kept_packed),
    }


SECONDS = 5.0
"""No input may take longer."""
MEGABYTES = 1024.0
"""Nor more memory than this."""


@dataclass
class Outcome:
    """What became of one input."""

    refused: bool
    seconds: float
    megabytes: float


def tried(reader: Reader, folder: Path, name: str, edits: Sequence[Edit]) -> Outcome:
    """Reads a seed spoiled by some edits.

    Raises:
        Exception: whatever comes out that is no error of ours.
    """
    written = name
    for seed, content in reader.seeds.items():
        if seed not in reader.packed and (reader.folder or seed == name):
            (folder / seed).write_bytes(spoiled(content, edits) if seed == name else content)
    if name in reader.packed:
        written, pack = reader.packed[name]
        (folder / written).write_bytes(pack(spoiled(reader.seeds[name], edits)))
    before, began = resident("VmRSS"), time.process_time()
    peak_from_here()
    refused = False
    try:
        reader.read(folder if reader.folder else folder / written)
    except ArmidError as error:
        refused = True
        assert len(str(error)) < 5000, "a message nobody reads"  # noqa: PT017
    return Outcome(refused, time.process_time() - began, resident("VmHWM") - before)


def peak_from_here() -> None:
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def resident(key: str) -> float:
    """Memory of this process [MB]."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    return 0.0
