from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armid.errors import ArmidError, InputError, UnknownNameError
from armid.logs import Channel, Clock, Log, ReadOptions, open_log, unchecked_log
from armid.logs.readers import Layout, open_table
from armid.logs.readers import npz as npz_reader
from armid.logs.vocabulary import taken_apart
from support.recordings import NAMES, arm, motion

T, Q, QD, QDD = motion(1.0, 100.0)
TAU = np.cos(Q) * 10.0
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def csv_text(columns: dict[str, np.ndarray], delimiter: str = ",", decimal: str = ".", header: bool = True) -> str:
    lines = [delimiter.join(columns)] if header else []
    for row in np.column_stack(list(columns.values())):
        lines.append(delimiter.join(repr(float(x)).replace(".", decimal) for x in row))
    return "\n".join(lines) + "\n"


def numbered(**groups: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name}{i + 1}": values[:, i] for name, values in groups.items() for i in range(values.shape[1])}


def agree(log: Log, *, q: np.ndarray = Q, tau: np.ndarray = TAU, channel: Channel = Channel.LINK_TORQUE) -> None:
    np.testing.assert_allclose(log.time - log.time[0], T, **EXACT)
    np.testing.assert_allclose(log[Channel.POSITION], q, **EXACT)
    np.testing.assert_allclose(log[channel], tau, **EXACT)


DIALECTS = [(d, p) for d in (",", ";", "\t", "|", " ", "   ") for p in ".," if d != p]


@pytest.mark.parametrize(("delimiter", "decimal"), DIALECTS)
@pytest.mark.parametrize("header", [True, False])
def test_text_of_any_dialect(tmp_path, delimiter, decimal, header):
    path = tmp_path / "log.csv"
    path.write_text(csv_text({"t": T, **numbered(q=Q, qd=QD, tau=TAU)}, delimiter, decimal, header))
    log = unchecked_log(path, arm())
    agree(log)
    np.testing.assert_allclose(log[Channel.VELOCITY], QD, **EXACT)
    assert any(note.code == "mapping-guess" for note in log.notes)
    assert len(log.source.files[0][1]) == 64


def test_text_without_pyarrow_reads_the_same(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_text(csv_text({"t": T, **numbered(q=Q, tau=TAU)}))
    monkeypatch.setattr("armid.logs.readers.text.arrow_module", lambda: None)
    agree(unchecked_log(path))


def test_text_with_comments_quotes_bom_and_windows_ends(tmp_path):
    path = tmp_path / "log.txt"
    text = "# recorded on a rainy day\n" + csv_text(
        {f'"{k}"': v for k, v in {"time [s]": T, **numbered(q=Q, tau=TAU)}.items()}
    )
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    agree(unchecked_log(path))


def test_header_in_a_comment_line(tmp_path):
    path = tmp_path / "log.dat"
    path.write_text("# " + csv_text({"t": T, **numbered(q=Q, tau=TAU)}, " "))
    agree(unchecked_log(path))


def test_broken_rows_and_cells_are_left_out_and_said(tmp_path):
    lines = csv_text({"t": T, **numbered(q=Q, tau=TAU)}).splitlines()
    lines[10] = "1,2,3"
    lines[20] = lines[20].replace(lines[20].split(",")[3], "garb@ge", 1)
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n0.5,0.")
    log = unchecked_log(path)
    codes = {note.code for note in log.notes}
    assert {"malformed-rows", "malformed-cells"} <= codes
    assert len(log) == len(T) - 1
    assert np.isnan(log[Channel.POSITION]).sum() == 1


def test_large_text_streams_in_pieces_equal_to_the_whole(tmp_path):
    path = tmp_path / "log.csv"
    big = {k: np.tile(v, 40) for k, v in numbered(q=Q, tau=TAU).items()}
    path.write_text(csv_text({"t": np.arange(4000) / 100.0, **big}, " "))
    pieces = list(open_log(path).chunks(700))
    assert len(pieces) > 3
    whole = unchecked_log(path)
    np.testing.assert_array_equal(np.concatenate([p[Channel.POSITION] for p in pieces]), whole[Channel.POSITION])
    np.testing.assert_array_equal(np.concatenate([p.time for p in pieces]), whole.time)


def test_npz_with_two_dimensional_arrays(tmp_path):
    path = tmp_path / "log.npz"
    np.savez_compressed(path, times=T + 1.46e9, positions=Q, velocities=QD, torques=TAU.T, masses=np.ones(3))
    log = unchecked_log(path)
    np.testing.assert_allclose(log[Channel.LINK_TORQUE], TAU, **EXACT)
    assert log.clock is Clock.COLUMN


def test_npy_by_content(tmp_path):
    path = tmp_path / "log.npy"
    np.save(path, np.column_stack([T, Q, QD, TAU]))
    log = unchecked_log(path, arm())
    agree(log)


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_columnar(tmp_path, kind):
    path = tmp_path / f"log.{kind}"
    table = pa.table({"timestamp": T, **numbered(q=Q, tau=TAU), "state": ["run"] * len(T)})
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    agree(unchecked_log(path))


def test_parquet_with_list_columns_and_timestamps(tmp_path):
    path = tmp_path / "log.parquet"
    stamps = pa.array((T * 1e6).round().astype("int64"), pa.timestamp("us"))
    table = pa.table({"time": stamps, "position": list(Q), "effort": list(TAU)})
    pq.write_table(table, path)
    agree(unchecked_log(path))


def test_matlab_5_struct_with_time_along_columns(tmp_path):
    path = tmp_path / "log.mat"
    scipy.io.savemat(
        path, {"rec": {"time_cont": T, "act_pos_deg": np.degrees(Q).T, "torque_nm": TAU.T}, "para": {"u": np.ones(4)}}
    )
    agree(unchecked_log(path))


def test_matlab_73_and_hdf5(tmp_path):
    for name in ("log.mat", "log.h5"):
        path = tmp_path / name
        with h5py.File(path, "w", userblock_size=512 if name.endswith("mat") else 0) as file:
            file["rec/time"] = T[np.newaxis]
            file["rec/position"] = Q.T
            file["rec/torque"] = TAU
            file["rec/gains"] = np.ones(4)
        agree(unchecked_log(path))


def test_json_lines_take_joint_names_from_each_line(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = []
    for k in range(len(T)):
        order = [0, 1, 2, 3] if k % 2 else [3, 1, 0, 2]
        lines.append(
            json.dumps(
                {
                    "header": {"stamp": {"sec": int(T[k]), "nanosec": round((T[k] % 1) * 1e9)}},
                    "name": [NAMES[i] for i in order],
                    "position": Q[k, order].tolist(),
                    "effort": TAU[k, order].tolist(),
                }
            )
        )
    path.write_text("\n".join(lines) + "\n{broken\n")
    log = unchecked_log(path, arm())
    assert log.joints == NAMES
    np.testing.assert_allclose(log.time, T, atol=1e-9)
    np.testing.assert_allclose(log[Channel.POSITION], Q, **EXACT)
    assert any(note.code == "malformed-rows" for note in log.notes)


def write_bag(path: Path, order: list[int], storage: str) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        main = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        other = writer.add_connection("/gripper", "sensor_msgs/msg/JointState", typestore=store)
        for k in range(len(T)):
            stamp = types["builtin_interfaces/msg/Time"](sec=int(T[k]) + 100, nanosec=round((T[k] % 1) * 1e9))
            header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
            message = types["sensor_msgs/msg/JointState"](
                header=header,
                name=[NAMES[i] for i in order] + ["finger"],
                position=np.append(Q[k, order], 0.0),
                velocity=np.append(QD[k, order], 0.0),
                effort=np.append(TAU[k, order], 0.0),
            )
            writer.write(main, 10**9 + k, store.serialize_cdr(message, "sensor_msgs/msg/JointState"))
            if k % 3 == 0:
                writer.write(other, 10**9 + k, store.serialize_cdr(message, "sensor_msgs/msg/JointState"))


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_ros_bags_by_joint_name(tmp_path, storage):
    folder = tmp_path / "bag"
    write_bag(folder, [2, 0, 3, 1], storage)
    sources = [folder, *folder.glob("*.mcap")]
    for source in sources:
        log = unchecked_log(source, arm())
        assert log.joints == NAMES
        np.testing.assert_allclose(log.time, T + 100.0, atol=1e-6)
        np.testing.assert_allclose(log[Channel.POSITION], Q, **EXACT)
        assert any(note.code == "joint-order-by-name" and "finger" in note.message for note in log.notes)
        assert any("/gripper" in note.message for note in log.notes)
    with pytest.raises(UnknownNameError, match="/joint_states"):
        unchecked_log(folder, arm(), options=ReadOptions(topic="/none"))


def test_libfranka_time_is_in_milliseconds_and_q_d_is_not_velocity(tmp_path):
    columns = {"time": T * 1e3, "success_rate": np.ones_like(T)}
    for name, values in (("q", Q), ("q_d", Q + 1.0), ("dq", QD), ("tau_J", TAU)):
        columns |= {f"state.{name}[{i}]": values[:, i] for i in range(4)}
    path = tmp_path / "log.csv"
    path.write_text(csv_text(columns))
    log = unchecked_log(path)
    agree(log)
    np.testing.assert_allclose(log[Channel.VELOCITY], QD, **EXACT)
    np.testing.assert_allclose(log[Channel.COMMANDED_POSITION], Q + 1.0, **EXACT)
    assert "libfranka" in log.source.reader


def test_rtde_recorder(tmp_path):
    columns = {"timestamp": T + 798.0}
    for name, values in (
        ("target_q", Q),
        ("target_qd", QD),
        ("actual_q", Q),
        ("actual_qd", QD),
        ("actual_current", TAU / 10),
        ("target_moment", TAU),
    ):
        columns |= {f"{name}_{i}": values[:, i] for i in range(4)}
    path = tmp_path / "log.csv"
    path.write_text(csv_text(columns, " "))
    log = unchecked_log(path)
    assert log.torques == (Channel.CURRENT, Channel.COMMANDED_TORQUE)
    np.testing.assert_allclose(log[Channel.CURRENT], TAU / 10, **EXACT)
    assert "rtde" in log.source.reader


def test_fri_recorder(tmp_path):
    columns = {
        "Zeit": T,
        **{f"MsrJntPos{i + 1}": Q[:, i] for i in range(4)},
        **{f"MsrJntTrq{i + 1}": TAU[:, i] for i in range(4)},
    }
    path = tmp_path / "log.txt"
    path.write_text(csv_text(columns, "\t", ","))
    log = unchecked_log(path)
    agree(log)
    assert "fri" in log.source.reader


def test_columns_named_after_joints_are_matched_by_name(tmp_path):
    order = [2, 0, 3, 1]
    columns = {"t": T}
    for word, values in (("position", Q), ("effort", TAU)):
        columns |= {f"{NAMES[i]}.{word}": values[:, i] for i in order}
    path = tmp_path / "log.csv"
    path.write_text(csv_text(columns))
    log = unchecked_log(path, arm())
    assert log.joints == NAMES
    agree(log)
    path.write_text(path.read_text().replace("elbow", "knee"))
    with pytest.raises(InputError, match="no joint named"):
        unchecked_log(path, arm())


@pytest.mark.parametrize(
    ("name", "word", "index", "unit"),
    [
        ("q_0", "q", 0, ""),
        ("state.tau_J[6]", "statetauj", 6, ""),
        ("act_pos_deg", "actpos", None, "deg"),
        ("time [ms]", "time", None, "ms"),
        ("q1_deg", "q", 1, "deg"),
        ("torque3 (mNm)", "torque", 3, "mNm"),
        ("actual_current_5", "actualcurrent", 5, ""),
    ],
)
def test_column_names_are_taken_apart(name, word, index, unit):
    parts = taken_apart(name)
    assert (parts.word, parts.index, parts.unit) == (word, index, unit)


def test_clock_in_other_units_is_recognised_by_the_velocity(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(csv_text({"stamp": T * 1e9, **numbered(q=Q, qd=QD, tau=TAU)}))
    log = unchecked_log(path)
    agree(log)
    assert any(note.code == "clock-unit-guess" and "ns" in note.message for note in log.notes)


def test_step_is_inferred_from_the_velocity_or_asked_for(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(csv_text(numbered(q=Q, qd=QD, tau=TAU)))
    log = unchecked_log(path)
    assert log.clock is Clock.INFERRED
    assert np.median(np.diff(log.time)) == pytest.approx(0.01, rel=2e-3)
    path.write_text(csv_text(numbered(q=Q, tau=TAU)))
    assert [n.code for n in unchecked_log(path).errors] == ["clock-unknown"]
    log = unchecked_log(path, options=ReadOptions(step=0.01))
    agree(log)
    assert not log.errors


MAPPING = """
schema: armid.log/1
files:
  motion: {path: motion.txt, flat: 4}
  drive: drive.csv
rows: [11, 90]
clock: {step: 10, unit: ms}
joints: [elbow, waist, wrist, shoulder]
channels:
  position:
    file: motion
    unit: deg
    sign: [1, -1, 1, 1]
    inverse_matrix: [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 1, 2]]
    offset: [0.5, 0, 0, 0]
  torque: {file: drive, columns: "2:5", side: motor, unit: mNm, gear_ratio: [100, 1, 1, 50]}
conditions: {payload: 2.5, payload_centre: [0, 0, 0.1], tool: gripper, mounting: [0, 0, 9.81], temperature: 31}
"""


def mapped_folder(tmp_path: Path) -> Path:
    raw = np.random.default_rng(0).normal(size=(100, 4))
    (tmp_path / "motion.txt").write_text("\n".join(repr(float(x)) for x in raw.ravel()))
    (tmp_path / "drive.csv").write_text(csv_text({"n": np.arange(100.0), **numbered(m=raw * 1e3)}))
    (tmp_path / "log.yaml").write_text(MAPPING)
    return tmp_path / "log.yaml"


def test_mapping_with_everything_in_it(tmp_path):
    log = unchecked_log(mapped_folder(tmp_path), arm())
    raw = np.random.default_rng(0).normal(size=(100, 4))[10:90]
    R = np.array([[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 1, 2.0]])
    q = np.linalg.solve(R, (np.radians(raw) * [1, -1, 1, 1]).T).T + np.array([0.5, 0, 0, 0])
    order = [1, 3, 0, 2]
    np.testing.assert_allclose(log[Channel.POSITION], q[:, order], rtol=1e-12)
    np.testing.assert_allclose(log[Channel.MOTOR_TORQUE], (raw * [100, 1, 1, 50])[:, order], rtol=1e-12)
    np.testing.assert_allclose(np.diff(log.time), 0.01, rtol=1e-9)
    assert log.conditions.payload == 2.5
    assert log.conditions.loaded
    assert log.conditions.mounting == (0, 0, 9.81)
    assert len(log.source.files) == 2


def test_mapping_finds_recordings_under_a_root(tmp_path, monkeypatch):
    mapping = mapped_folder(tmp_path)
    moved = tmp_path / "elsewhere" / "log.yaml"
    moved.parent.mkdir()
    mapping.rename(moved)
    with pytest.raises(InputError, match="does not exist"):
        unchecked_log(moved, arm())
    assert len(unchecked_log(moved, arm(), options=ReadOptions(data_root=tmp_path))) == 80
    monkeypatch.setenv("ARMID_DATA", str(tmp_path))
    assert len(unchecked_log(moved, arm())) == 80


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("unit: deg", "unit: gradians"), "unit of position.*rad, deg"),
        (("rows:", "colour: red\nrows:"), "colour.*there are: schema"),
        (("side: motor", "side: left"), "torque side.*link, motor"),
        (("sign: [1, -1, 1, 1]", "sign: [1, 2, 1, 1]"), "expected 1 or -1"),
        (("sign: [1, -1, 1, 1]", "sign: [1, -1]"), "expected one, or one for each"),
        (("rows: [11, 90]", "rows: [90, 11]"), "rows"),
        (("clock: {step: 10, unit: ms}", "clock: {step: -1}"), "positive"),
        (("clock: {step: 10, unit: ms}", "clock: {step: 1, unit: fortnight}"), "unit of time"),
        (('columns: "2:5"', 'columns: "2:9"'), "column"),
        (("file: drive", "file: engine"), "file for channel"),
        (("[0, 0, 1, 2]]", "[0, 0, 2, 0]]"), "inverted"),
        (("payload: 2.5", "payload: heavy"), "finite number"),
        (("motion.txt", "missing.txt"), "does not exist"),
        (("flat: 4", "flat: 7"), "left over|columns"),
        (("schema: armid.log/1", "schema: armid.log/9"), "schema"),
        (("joints: [elbow, waist, wrist, shoulder]", "joints: [elbow, elbow, wrist, shoulder]"), "twice"),
        (("channels:", "channels: ["), "not valid YAML"),
        (("rows:", "tool: &a [1]\nrows:"), "anchors"),
        (("rows: [11, 90]", "rows: [11, 90]\nrows: [1, 2]"), "appears twice"),
        (("rows: [11, 90]", "rows: " + "[" * 40 + "]" * 40), "nested too deeply"),
    ],
)
def test_mistakes_in_a_mapping_are_named(tmp_path, change, match):
    mapping = mapped_folder(tmp_path)
    mapping.write_text(MAPPING.replace(*change))
    with pytest.raises(ArmidError, match=match):
        unchecked_log(mapping, arm())


def test_files_of_different_length_are_refused(tmp_path):
    mapping = mapped_folder(tmp_path)
    text = (tmp_path / "drive.csv").read_text().splitlines()
    (tmp_path / "drive.csv").write_text("\n".join(text[:-5]))
    with pytest.raises(InputError, match="different numbers of rows"):
        unchecked_log(mapping, arm())


def test_bad_files_are_refused_with_a_reason(tmp_path):
    cases = {
        "empty.csv": b"",
        "blank.csv": b"\n\n  \n",
        "words.csv": b"to be or not to be\nthat is the question\n",
        "binary.csv": b"1,2,3\n4,\x00\x01\x02,6\n",
        "noise.npz": b"PK\x03\x04" + bytes(200),
        "noise.npy": b"\x93NUMPY\x01\x00" + bytes(100),
        "noise.parquet": b"PAR1" + bytes(50) + b"PAR1",
        "noise.mat": b"MATLAB 5.0 MAT-file" + bytes(200),
        "noise.h5": b"\x89HDF\r\n\x1a\n" + bytes(100),
        "noise.jsonl": b"{nope\n",
        "noise.mcap": b"\x89MCAP0\r\n" + bytes(100),
        "noise.db3": b"SQLite format 3\x00" + bytes(100),
        "noise.arrow": b"ARROW1" + bytes(64),
    }
    for name, content in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=name):
            unchecked_log(path, arm())
    with pytest.raises(InputError, match="no such file"):
        unchecked_log(tmp_path / "nothing.csv", arm())
    path = tmp_path / "log.csv"
    path.write_text(csv_text({"t": T, **numbered(q=Q, tau=TAU)}))
    with pytest.raises(UnknownNameError, match="log format"):
        unchecked_log(path, options=ReadOptions(format="punchcard"))


def test_object_arrays_are_refused(tmp_path):
    npy = tmp_path / "log.npy"
    np.save(npy, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    npz = tmp_path / "log.npz"
    np.savez(npz, q=np.array([[1, "x"]], dtype=object), allow_pickle=True)
    for path in (npy, npz):
        with pytest.raises(InputError, match="objects"):
            unchecked_log(path, arm())


def npy_header(shape: tuple[int, ...]) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue()


def test_zip_bombs_and_lying_headers_are_refused_before_expanding(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q.npy", npy_header((100 << 20 >> 3, 1)) + bytes(100 << 20))
    with pytest.raises(InputError, match="would expand"):
        unchecked_log(path, arm())
    liar = tmp_path / "liar.npz"
    with zipfile.ZipFile(liar, "w") as archive:
        archive.writestr("q.npy", npy_header((1 << 40, 7)) + bytes(80))
    with pytest.raises(InputError, match="promises"):
        unchecked_log(liar, arm())
    mat = tmp_path / "bomb.mat"
    scipy.io.savemat(mat, {"q": np.zeros((100 << 20 >> 3, 1))}, do_compression=True)
    with pytest.raises(InputError, match="would expand"):
        unchecked_log(mat, arm())


def test_truncated_files_never_end_in_a_traceback(tmp_path):
    whole = {}
    np.savez(tmp_path / "log.npz", times=T, positions=Q, torques=TAU)
    pq.write_table(pa.table({"t": T, **numbered(q=Q, tau=TAU)}), tmp_path / "log.parquet")
    scipy.io.savemat(tmp_path / "log.mat", {"time": T, "q": Q, "tau": TAU}, do_compression=True)
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["time"], file["q"], file["tau"] = T, Q, TAU
    (tmp_path / "log.csv").write_text(csv_text({"t": T, **numbered(q=Q, tau=TAU)}))
    for name in ("log.npz", "log.parquet", "log.mat", "log.h5", "log.csv"):
        whole[name] = (tmp_path / name).read_bytes()
    for name, content in whole.items():
        for share in (0.03, 0.3, 0.6, 0.9, 0.99):
            path = tmp_path / f"cut.{name}"
            path.write_bytes(content[: int(share * len(content))])
            try:
                unchecked_log(path, arm())
            except ArmidError as error:
                assert str(error)  # noqa: PT017


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_never_end_in_a_traceback(tmp_path, data):
    kind = data.draw(st.sampled_from(["npz", "npy", "mat", "parquet", "h5", "jsonl", "csv", "arrow"]))
    path = tmp_path / f"log.{kind}"
    match kind:
        case "npz":
            np.savez(path, times=T, positions=Q, torques=TAU)
        case "npy":
            np.save(path, np.column_stack([T, Q, TAU]))
        case "mat":
            scipy.io.savemat(path, {"time": T, "q": Q, "tau": TAU})
        case "parquet":
            pq.write_table(pa.table({"t": T, **numbered(q=Q, tau=TAU)}), path)
        case "h5":
            with h5py.File(path, "w") as file:
                file["time"], file["q"], file["tau"] = T, Q, TAU
        case "arrow":
            pyarrow.feather.write_feather(pa.table({"t": T, **numbered(q=Q, tau=TAU)}), path)
        case "jsonl":
            path.write_text(
                "\n".join(
                    json.dumps({"time": t, "position": list(q), "effort": list(q)}) for t, q in zip(T, Q, strict=True)
                )
            )
        case _:
            path.write_text(csv_text({"t": T, **numbered(q=Q, tau=TAU)}))
    content = bytearray(path.read_bytes())
    for place, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), min_size=1, max_size=8)
    ):
        content[place] = value
    path.write_bytes(bytes(content))
    try:
        log = unchecked_log(path, arm())
    except ArmidError as error:
        assert str(error)  # noqa: PT017
    else:
        assert log[Channel.POSITION].shape[1] == 4


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.sampled_from("0123456789.,;\t eE+-\nqtaunNif#%\"'�"), max_size=300))
def test_any_text_is_read_or_refused(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text)
    try:
        unchecked_log(path, arm())
    except ArmidError as error:
        assert str(error)  # noqa: PT017


KEYS = [
    "file",
    "files",
    "clock",
    "channels",
    "position",
    "torque",
    "columns",
    "unit",
    "side",
    "rows",
    "joints",
    "step",
    "flat",
]
SCALARS = st.none() | st.booleans() | st.integers(-3, 200) | st.floats(allow_nan=True)
WORDS = st.sampled_from(["2:5", "q_{i}", "deg", "drive", "x", "motion.txt"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.recursive(
        SCALARS | WORDS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
        max_leaves=20,
    )
)
def test_any_mapping_is_carried_out_or_refused(tmp_path, content):
    import yaml

    mapped_folder(tmp_path)
    path = tmp_path / "fuzz.yaml"
    path.write_text(yaml.safe_dump(content))
    try:
        unchecked_log(path, arm())
    except ArmidError as error:
        assert str(error)  # noqa: PT017


def test_arrow_and_line_parsers_agree_after_a_bad_cell(tmp_path, monkeypatch):
    rows = 120_000
    values = np.arange(rows * 3, dtype=float).reshape(rows, 3) / 7.0
    lines = [",".join(map(repr, row)) for row in values.tolist()]
    lines[100_000] = "1.5,oops,2.5"
    lines.insert(50_000, "1,2")
    path = tmp_path / "log.csv"
    path.write_text("a,b,c\n" + "\n".join(lines) + "\n")
    fast = np.concatenate([np.column_stack(list(c.values())) for c in open_table(path, Layout()).chunks(10_000)])
    monkeypatch.setattr("armid.logs.readers.text.arrow_module", lambda: None)
    slow = np.concatenate([np.column_stack(list(c.values())) for c in open_table(path, Layout()).chunks(10_000)])
    np.testing.assert_array_equal(fast, slow)
    assert len(fast) == rows


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_large_archive_is_streamed_with_the_same_numbers(tmp_path, monkeypatch, save):
    rng = np.random.default_rng(0)
    arrays = {
        "time": np.arange(1000) * 1e-3,
        "q": rng.normal(size=(1000, 3)),
        "tau": rng.normal(size=(1000, 3)).astype(np.float32),
        "mode": np.arange(1000)[:, np.newaxis],
        "gains": np.ones(3),
        "joint_names": np.array(["a", "b", "c"]),
    }
    save(tmp_path / "log.npz", **arrays)
    held = npz_reader.open_npz(tmp_path / "log.npz", Layout())
    monkeypatch.setattr(npz_reader, "HELD_BYTES", 0)
    streamed = npz_reader.open_npz(tmp_path / "log.npz", Layout())
    assert isinstance(streamed, npz_reader.StreamedArchive)
    assert set(streamed.names) == set(held.names) == {"time", "q", "tau", "mode"}
    (whole,) = held.chunks(1000)
    pieces = list(streamed.chunks(300, ["q", "tau", "mode"]))
    assert [len(piece["q"]) for piece in pieces] == [300, 300, 300, 100]
    for name in ("q", "tau", "mode"):
        np.testing.assert_array_equal(np.concatenate([piece[name] for piece in pieces]), whole[name])


def test_a_large_archive_with_time_along_its_columns_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_reader, "HELD_BYTES", 0)
    q = np.random.default_rng(0).normal(size=(3, 50))
    np.savez(tmp_path / "log.npz", time=np.arange(50.0), q=q)
    (piece,) = npz_reader.open_npz(tmp_path / "log.npz", Layout()).chunks(50)
    np.testing.assert_array_equal(piece["q"], q.T)


def test_a_large_archive_that_ends_early_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_reader, "HELD_BYTES", 0)
    path = tmp_path / "log.npz"
    np.savez(path, time=np.arange(5000.0), q=np.ones((5000, 3)))
    opened = npz_reader.open_npz(path, Layout())
    damaged = bytearray(path.read_bytes())
    damaged[20_000:60_000] = bytes(40_000)
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"log\.npz"):
        list(opened.chunks(1000))
