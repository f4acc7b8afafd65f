"""Logs of strangers: names decide, nothing is waited for, and nothing is read or told that lies elsewhere."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.calibration.poses_table import read_table
from armid.cli import application
from armid.consistency.bounds_file import read_bounds
from armid.errors import ArmidError, InputError
from armid.logs.check import check_log
from armid.logs.log import Channel
from armid.logs.read import ReadOptions, unchecked_log
from armid.motions.postures import load_postures
from armid.motions.trajectory_files import load_trajectory
from armid.planning.path_files import load_path
from armid.recovery.samples import read_samples
from armid.robot.load import load_robot
from armid.scene.cell import load_cell
from armid.simulation.settings_file import load_scenario
from support.elbow_logs import ROBOT

N = 300
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "elbow.yaml"
    path.write_text(ROBOT)
    return load_robot(path)


def recording(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    t = np.arange(N) * 1e-3
    q = np.stack([np.sin((k + 1) * 5 * t) for k in range(n)], axis=1)
    return {"time": t, "q": q, "tau": rng.normal(size=(N, n))}


def write_npz(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    np.savez(path, joint_names=np.array(names), **data)
    return path


def write_large_npz(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    """Large enough to be streamed."""
    many = 1 + (70 << 20) // (8 * sum(x[:1].size for x in data.values())) // N
    long = {name: np.concatenate([x] * many) for name, x in data.items() if name != "time"}
    np.savez(path, joint_names=np.array(names), time=np.arange(many * N) * 1e-3, **long)
    return path


def write_hdf5(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        group = file.create_group("rec")
        for name, values in data.items():
            group[name] = values
        group["joint_names"] = names
    return path.with_suffix(".h5")


def write_mat(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    savemat = pytest.importorskip("scipy.io").savemat
    cells = np.empty(len(names), dtype=object)
    cells[:] = names
    savemat(path.with_suffix(".mat"), {**data, "joint_names": cells}, do_compression=True)
    return path.with_suffix(".mat")


def write_characters_mat(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    savemat = pytest.importorskip("scipy.io").savemat
    savemat(path.with_suffix(".mat"), {**data, "joint_names": np.array(names)})
    return path.with_suffix(".mat")


def write_json_lines(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    lines = [{name: values[i].tolist() for name, values in data.items()} | {"joint_names": names} for i in range(N)]
    path.with_suffix(".jsonl").write_text("\n".join(map(json.dumps, lines)))
    return path.with_suffix(".jsonl")


def write_lists_parquet(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({name: values.tolist() for name, values in data.items()})
    pq.write_table(table.replace_schema_metadata({"joint_names": json.dumps(names)}), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def write_csv(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    header = ["time", *(f"q_{name}" for name in names), *(f"tau_{name}" for name in names)]
    table = np.column_stack(list(data.values()))
    np.savetxt(path.with_suffix(".csv"), table, delimiter=",", header=",".join(header), comments="")
    return path.with_suffix(".csv")


def write_mapped(path: Path, data: dict[str, np.ndarray], names: list[str]) -> Path:
    """A mapping that takes whole arrays leaves the names to the file."""
    write_npz(path, data, names)
    channels = "channels: {position: {columns: [q]}, torque.link: {columns: [tau]}}"
    text = f"file: {path.name}\nclock: {{column: time}}\n{channels}\n"
    path.with_suffix(".yaml").write_text(text)
    return path.with_suffix(".yaml")


WRITERS = [
    write_npz,
    write_large_npz,
    write_hdf5,
    write_mat,
    write_characters_mat,
    write_json_lines,
    write_lists_parquet,
    write_csv,
    write_mapped,
]


@pytest.mark.parametrize("write", WRITERS)
def test_columns_are_matched_by_the_names_in_the_file(write, arm, tmp_path):
    data, order = recording(3), [2, 0, 1]
    moved = {name: x[:, order] if x.ndim == 2 else x for name, x in data.items()}
    path = write(tmp_path / "log.npz", moved, [arm.joint_names[k] for k in order])
    log = unchecked_log(path, arm)
    assert log.joints == arm.joint_names
    np.testing.assert_allclose(log[Channel.POSITION][:N], data["q"], atol=1e-12)
    np.testing.assert_allclose(log[log.torques[0]][:N], data["tau"], atol=1e-12)


@pytest.mark.parametrize("write", WRITERS)
def test_names_of_another_arm_are_refused_with_both_lists(write, arm, tmp_path):
    path = write(tmp_path / "log.npz", recording(3), ["hip", "knee", "ankle"])
    with pytest.raises(InputError) as refused:
        unchecked_log(path, arm)
    for name in ("hip", "knee", "ankle", *arm.joint_names):
        assert name in str(refused.value)


def test_fewer_or_repeated_names_are_refused(arm, tmp_path):
    for names, problem in ((["a", "b"], "2 joint names for 3"), (["a", "a", "b"], "a name of its own")):
        with pytest.raises(InputError, match=problem):
            unchecked_log(write_npz(tmp_path / "log.npz", recording(3), names), arm)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder with a pipe", "mapping to a pipe", "mapping to a device"])
def test_pipes_and_devices_are_refused_and_not_waited_for(kind, arm, tmp_path):
    pipe = tmp_path / "bag" / "pipe.csv"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    (tmp_path / "m.yaml").write_text(f"file: {'/dev/zero' if 'device' in kind else pipe}\n")
    path = {"pipe": pipe, "device": Path("/dev/zero"), "folder with a pipe": pipe.parent}.get(kind, tmp_path / "m.yaml")
    with pytest.raises(InputError, match="no regular file"):
        unchecked_log(path, arm, options=ReadOptions(data_root="/") if "mapping" in kind else None)
    if kind == "pipe":
        for read in (load_postures, read_samples):
            with pytest.raises(InputError, match="not a file"):
                read(pipe, arm)
        done = RUNNER.invoke(application(), ["check", "panda", str(pipe)])
        assert done.exit_code == 1


def test_a_mapping_reads_only_below_its_folder_or_the_data_root(arm, tmp_path):
    folder, other = tmp_path / "mapping", tmp_path / "elsewhere"
    folder.mkdir()
    other.mkdir()
    log = write_csv(other / "log.csv", recording(3), list(arm.joint_names))
    (folder / "link.csv").symlink_to(log)
    for name in (str(log), "../elsewhere/log.csv", "link.csv"):
        (folder / "m.yaml").write_text(f"file: {name}\n")
        with pytest.raises(InputError, match="outside its folder and the data root"):
            unchecked_log(folder / "m.yaml", arm)
        assert len(unchecked_log(folder / "m.yaml", arm, options=ReadOptions(data_root=tmp_path))) == N
    (folder / "own.csv").write_bytes(log.read_bytes())
    (folder / "m.yaml").write_text("file: own.csv\n")
    assert len(unchecked_log(folder / "m.yaml", arm)) == N


@pytest.mark.parametrize("kind", ["external", "virtual", "link", "virtual through another"])
def test_hdf5_takes_numbers_only_from_below_its_folder_or_the_data_root(kind, arm, tmp_path):
    h5py = pytest.importorskip("h5py")
    folder, other = tmp_path / "log", tmp_path / "elsewhere"
    folder.mkdir()
    other.mkdir()
    data = recording(3)
    (other / "raw.bin").write_bytes(data["q"].tobytes())
    with h5py.File(other / "source.h5", "w") as file:
        file["q"] = data["q"]
    with h5py.File(folder / "middle.h5", "w") as file:
        file.create_dataset("q", data["q"].shape, "f8", external=[(str(other / "raw.bin"), 0, data["q"].nbytes)])
    with h5py.File(folder / "log.h5", "w") as file:
        file["time"], file["tau"] = data["time"], data["tau"]
        if kind == "external":
            file.create_dataset("q", data["q"].shape, "f8", external=[(str(other / "raw.bin"), 0, data["q"].nbytes)])
        elif kind == "link":
            file["q"] = h5py.ExternalLink(str(other / "source.h5"), "q")
        else:
            source = "middle.h5" if "through" in kind else str(other / "source.h5")
            layout = h5py.VirtualLayout(shape=data["q"].shape, dtype="f8")
            layout[:] = h5py.VirtualSource(source, "q", shape=data["q"].shape)
            file.create_virtual_dataset("q", layout)
    with pytest.raises(InputError, match="outside its folder and the data root"):
        unchecked_log(folder / "log.h5", arm)
    if kind != "link":  # links are not followed at all
        allowed = unchecked_log(folder / "log.h5", arm, options=ReadOptions(data_root=tmp_path))
        np.testing.assert_array_equal(allowed[Channel.POSITION], data["q"])


def complaint(read, *words) -> str:
    """What a reader says; nothing when it can make something of the text."""
    try:
        read(*words)
    except ArmidError as error:
        return str(error)
    return ""


SECRET = "hunter2secretpassword"
TEXTS = [
    f"{SECRET}:x:0:0:root:/root:/bin/bash\n",
    f"-----BEGIN KEY-----\n{SECRET}\n",
    f"{{{SECRET}: [\n",
    f"{SECRET}\n1,2\n",
    f'{{"token": "{SECRET}"}}\n',
    f"key: {SECRET}\nother: &{SECRET} [1\n",
    f"<a {SECRET}='1'><b></a>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_messages_never_print_a_file_that_is_no_log(text, arm, tmp_path):
    for suffix in (".csv", ".jsonl", ".yaml", ".txt", ".npz", ".mat", ".json"):
        path = tmp_path / f"a{suffix}"
        path.write_text(text)
        (tmp_path / "m.yaml").write_text(f"file: a{suffix}\n")
        for read, *words in (
            (unchecked_log, path, arm),
            (unchecked_log, tmp_path / "m.yaml", arm),
            (load_postures, path, arm),
            (load_trajectory, path),
            (read_samples, path, arm),
            (read_bounds, path, arm),
            (load_scenario, path, arm),
            (load_robot, path),
            (load_path, path, arm),
            (read_table, path),
            (load_cell, path),
        ):
            assert SECRET not in complaint(read, *words), suffix


def test_an_odd_zip_method_is_an_error_of_ours(arm, tmp_path):
    path = tmp_path / "odd.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", b"x" * 100)
    raw = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = raw.index(mark) + offset
        raw[place : place + 2] = (99).to_bytes(2, "little")
    path.write_bytes(raw)
    for read in (unchecked_log, read_samples):
        with pytest.raises(InputError):
            read(path, arm)


@pytest.fixture(scope="module")
def good_lines(arm, tmp_path_factory) -> list[str]:
    return (
        write_csv(tmp_path_factory.mktemp("good") / "log.csv", recording(3), list(arm.joint_names))
        .read_text()
        .splitlines()
    )


@pytest.mark.parametrize("first", [1, 100])
@pytest.mark.parametrize("columns", ["all", "values", "clock"])
def test_garbage_rows_inside_a_good_log_are_cut_and_counted_with_their_lines(first, columns, good_lines, arm, tmp_path):
    lines = list(good_lines)
    for k in range(first, first + 9):
        cells = lines[k].split(",")
        lines[k] = ",".join(
            "1e154" if columns == "all" or (columns == "clock") == (i == 0) else cell for i, cell in enumerate(cells)
        )
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    log = unchecked_log(tmp_path / "log.csv", arm)
    assert len(log) == N - 9
    assert float(log.time.max()) < 1.0
    (note,) = [note for note in log.notes if note.code == "garbage-rows"]
    assert note.message.startswith("9 row(s)")
    assert f"in line {', '.join(str(k + 1) for k in range(first, first + 9))}:" in note.message
    stamps = np.concatenate(list(opened(tmp_path / "log.csv", arm).stamps()))
    np.testing.assert_array_equal(stamps, log.time)


def opened(path: Path, arm):
    from armid.logs.read import open_log

    stream = open_log(path, arm)
    next(iter(stream.chunks()))
    return stream


def test_a_jump_of_the_clock_by_1e154_s_is_garbage_and_no_restart(good_lines, arm, tmp_path):
    lines = list(good_lines)
    lines[150] = ",".join(["1e154", *lines[150].split(",")[1:]])
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    codes = {note.code for note in check_log(tmp_path / "log.csv", arm).notes}
    assert "garbage-rows" in codes
    assert "time-backwards" not in codes


def test_a_file_of_nothing_but_garbage_is_not_called_a_good_log(good_lines, arm, tmp_path):
    rows = [",".join(["1e154"] * len(good_lines[0].split(",")))] * 200
    (tmp_path / "log.csv").write_text("\n".join([good_lines[0], *rows]) + "\n")
    done = RUNNER.invoke(application(), ["check", str(arm.source.path), str(tmp_path / "log.csv")])
    assert done.exit_code in (1, 3)


def test_a_truncated_last_line_stays_tolerated(good_lines, arm, tmp_path):
    (tmp_path / "log.csv").write_text("\n".join(good_lines)[:-20])
    log = unchecked_log(tmp_path / "log.csv", arm)
    assert len(log) >= N - 1


def test_a_mapping_to_a_name_no_file_can_have_is_an_error_of_ours(arm, tmp_path):
    (tmp_path / "m.yaml").write_text(f"file: {'x' * 400}\n")
    with pytest.raises(InputError, match="does not exist"):
        unchecked_log(tmp_path / "m.yaml", arm)


@pytest.mark.parametrize("size", [0, 3, 2**40])
def test_texts_in_hdf5_that_do_not_end_are_refused_and_not_waited_for(size, arm, tmp_path):
    """20,000 spoiled files found one in which the HDF5 library went round for ever: free room of no size among the names."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        t = np.arange(50) * 0.01
        file["time"], file["q"], file["tau"] = t, np.ones((50, arm.n_joints)), np.ones((50, arm.n_joints))
        file["joint_names"] = list(arm.joint_names)
    unchecked_log(path, arm)
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")
    at = heap + 16
    while int.from_bytes(data[at : at + 2], "little"):
        at += 16 + (int.from_bytes(data[at + 8 : at + 16], "little") + 7) // 8 * 8
    data[at + 8 : at + 16] = size.to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="do not end"):
        unchecked_log(path, arm)
