"""Whole or not at all, everywhere: on a disk that fills up at any byte every verb leaves what was there, and nothing else."""

from __future__ import annotations

import ast
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel
from armid.logs.read import unchecked_log
from armid.motions.fourier import FourierTrajectory
from armid.motions.trajectory_files import save_trajectory
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.simulation.controller_data import read_controller, write_controller_data
from armid.simulation.tracker import track_poses, write_poses
from support.elbow import fourier_motion
from support.elbow_logs import ROBOT, write_elbow_log
from support.fleet_logs import write_fleet

pytestmark = pytest.mark.filterwarnings("default::armid.kernels.cache.CacheWarning")
RUNNER = CliRunner()
SOURCE = Path(__file__).parents[1] / "src" / "armid"


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The kernel itself refuses every write beyond a byte, whoever writes: Python, NumPy, Arrow or a bag's writer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    (folder / "elbow.yaml").write_text(ROBOT)
    arm = load_robot(folder / "elbow.yaml")
    write_elbow_log(folder / "log.csv", arm, 1, seconds=12.0)
    write_elbow_log(folder / "long.csv", arm, 2, seconds=40.0)
    q = ",".join(["0.1"] * arm.n_joints)
    (folder / "postures.csv").write_text(",".join(arm.joint_names) + f"\n{q}\n" * 3)
    (folder / "targets.csv").write_text(",".join(arm.joint_names) + f"\n{q}" * 30)
    done = run(folder, "identify", "elbow.yaml", "log.csv", "--out", "result")
    assert done.exit_code in (0, 3), done.output
    rng = np.random.default_rng(1)
    motion = FourierTrajectory(arm.joint_names, 4.0, np.zeros(3), *(0.05 * rng.normal(size=(2, 3, 2))))
    save_trajectory(motion, folder / "motion" / "trajectory.json")
    (folder / "path.csv").write_text(",".join(arm.joint_names) + "\n0,0,0\n0.2,0.1,0.1\n0.3,0.4,0.2\n")
    q = 0.8 * rng.normal(size=(60, 3))
    write_controller_data(read_controller(arm, q), folder / "controller" / "controller.npz")
    write_poses(track_poses(arm, q), folder / "tracked" / "poses.csv")
    assert run(folder, "calibrate", "elbow.yaml", "tracked/poses.csv", "--out", "calibrated").exit_code in (0, 3)
    (folder / "arms").mkdir()
    write_fleet(folder / "arms", 2, 2)
    write_stream(folder / "stream.jsonl", folder / "log.csv", arm)
    write_two_sided(folder / "two_sided.npz", arm)
    return folder


def write_stream(path: Path, log: Path, arm: Robot) -> None:
    """A recording as a robot sends it, a line per sample."""
    read = unchecked_log(log, arm)
    rows = zip(read.time, read[Channel.POSITION], read[Channel.LINK_TORQUE], strict=True)
    lines = (json.dumps({"time": t, "position": list(x), "torque": list(y)}) for t, x, y in rows)
    path.write_text("\n".join(lines))


def write_two_sided(path: Path, arm: Robot) -> None:
    """Encoders before and behind springs of 2000 N m/rad in the gears."""
    inputs = fourier_motion(np.random.default_rng(3), 3, 2000, 100.0)
    q = inputs[:, :3]
    tau = inverse_dynamics(arm, *np.split(inputs, 3, axis=1))
    motor = {"q_motor": q + tau / 2000.0, "tau_motor": tau + 0.5 * inputs[:, 6:]}
    np.savez(path, time=np.arange(2000) / 100.0, q=q, **motor)


def run(folder: Path, *words: str):
    paths = [
        str(folder / word) if (folder / word).exists() or before == "--out" else word for before, word in pairs(words)
    ]
    given = [word for word in words if word.startswith("<")]
    stdin = (folder / given[0][1:]).read_text() if given else None
    return RUNNER.invoke(application(), [path for path in paths if not path.startswith("<")], input=stdin)


def pairs(words: tuple[str, ...]) -> list[tuple[str, str]]:
    return list(zip(("", *words), words, strict=False))


EXPORTS = ("urdf", "mjcf", "json", "python", "c", "matlab")
MOTION = "motion/trajectory.json"
VERBS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", "elbow.yaml"),
    "check": ("check", "elbow.yaml", "log.csv"),
    "identify": ("identify", "elbow.yaml", "log.csv"),
    "report": ("report", "result"),
    "compare": ("compare", "result", "result"),
    **{
        f"simulate {kind}": ("simulate", "elbow.yaml", MOTION, "--format", kind)
        for kind in ("csv", "npz", "parquet", "mcap")
    },
    "simulate poses": ("simulate", "elbow.yaml", "postures.csv", "--record", "tracker"),
    "simulate model": ("simulate", "elbow.yaml", "postures.csv", "--record", "controller-model"),
    **{
        f"export {kind}": ("export", "result", "--force", "--to", kind)
        for kind in ("urdf", "mjcf", "json", "python", "c", "matlab")
    },
    "poses": ("poses", "elbow.yaml", "--for", "gravity", "--count", "8", "--no-transitions", "--starts", "1"),
    "map": ("map", "elbow.yaml", "log.csv", "--no-input"),
    "program": ("program", "elbow.yaml", MOTION, "--for", "ros2"),
    "payload": ("payload", "result", "log.csv"),
    "recover": ("recover", "elbow.yaml", "controller/controller.npz"),
    "plan": ("plan", "result", "path.csv", "--force"),
    "sequential": ("sequential", "elbow.yaml", "log.csv"),
    "observe": ("observe", "result", "log.csv", "--free", "long.csv"),
    "recover plan": ("recover", "lwr4-dh", "--plan", "5"),
    "validate": ("validate", "result", "long.csv"),
    "compensate": ("compensate", "elbow.yaml", "calibrated/correction.json", "targets.csv"),
    "online": ("online", "elbow.yaml", "--rate-hz", "100", "<stream.jsonl"),
    "elastic": ("elastic", "elbow.yaml", "two_sided.npz", "--joint", "shoulder", "--no-instruments"),
    "fleet": ("fleet", "arms/fleet.csv"),
    "sweep plan": ("sweep", "elbow.yaml", "--plan", "postures.csv", "--axis", "waist", "--minutes", "1"),
}

COSTLY: dict[str, tuple[str, ...]] = {
    "design": ("design", "elbow.yaml", "--starts", "1", "--period", "4", "--harmonics", "2"),
    "benchmark": ("benchmark", "tx40", "--runs", "2", "--methods", "wls", "--noise", "low", "--seconds", "1"),
    "calibrate": ("calibrate", "elbow.yaml", "tracked/poses.csv"),
    "demo": ("demo", "cmu-dd-arm2", "--starts", "1"),
    "study": ("study", "cylindrical", "--motions", "1", "--motion-seconds", "4", "--poses", "6"),
}
"""Verbs that work for seconds before they write: tried once."""


@pytest.mark.parametrize("name", COSTLY)
def test_a_full_disk_ends_long_work_in_words(name, place, tmp_path):
    with files_of_at_most(0):
        done = run(place, *COSTLY[name], "--out", str(tmp_path / "new"))
    assert done.exit_code == 1, done.output
    assert "cannot be written" in done.stderr, done.stderr
    assert not content(tmp_path)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", VERBS)
def test_a_full_disk_leaves_nothing_new_and_nothing_broken_and_a_rerun_keeps_foreign_files(name, place, tmp_path):
    if name in ("simulate parquet", "simulate mcap"):
        pytest.importorskip({"simulate parquet": "pyarrow", "simulate mcap": "rosbags"}[name])
    with files_of_at_most(300):
        done = run(place, *VERBS[name], "--out", str(tmp_path / "new"))
    assert done.exit_code == 1, done.output
    assert "cannot be written" in done.stderr, done.stderr
    assert not list(tmp_path.rglob("*")), list(tmp_path.rglob("*"))
    mine = {"new/notes.txt": b"four years", "new/log.csv.bak": b"1,2", "new/models/arm.urdf": b"<robot/>"}
    for path, data in mine.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    for _ in range(2):
        done = run(place, *VERBS[name], "--out", str(tmp_path / "new"))
        assert done.exit_code in (0, 3), done.output
        before = content(tmp_path)
        assert before.items() > mine.items()  # a rerun replaces its own files and no others
    largest = max(len(data) for path, data in before.items() if not Path(path).name.startswith("."))
    with files_of_at_most(largest - 1):
        done = run(place, *VERBS[name], "--out", str(tmp_path / "new"))
    if done.exit_code == 1:
        assert content(tmp_path) == before
    else:
        assert not [path for path in content(tmp_path) if path.endswith("tmp")]


OWN_WAYS = {
    "folders.py": "the writer itself",
    "kernels/cache.py": "makes the key with os.open, whole or not at all by a link",
    "logs/conditioning/spool.py": "an unnamed temporary file",
}


def test_there_is_one_writer():
    """No module opens a file for writing but through `armid.folders`; what writes to an open file is given one by it."""
    found = []
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if name in OWN_WAYS:
            continue
        text = path.read_text()
        if not any(word in text for word in ("open(", "write_text", "write_bytes", "savez", "savetxt")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                modes = [
                    a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)
                ]
                writes = any(isinstance(m, str) and m in ("w", "wb", "a", "ab", "x", "xb") for m in modes)
                if called == "open" and writes and not of_an_archive(node):
                    found.append(f"{name}:{node.lineno} {called}")
                if called in ("write_text", "write_bytes") and isinstance(node.func, ast.Attribute):
                    found.append(f"{name}:{node.lineno} {called}")
                if called in ("savez", "savez_compressed", "savetxt") and not given_a_file(node):
                    found.append(f"{name}:{node.lineno} {called}")
    assert [place for place in found if not place.startswith("cli/__init__.py")] == [], (
        "cli opens /dev/null for a closed stdout"
    )


def of_an_archive(call: ast.Call) -> bool:
    """A member of an archive goes into the file that the archive was given."""
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "archive"


def given_a_file(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id in ("file", "out", "buffer")
