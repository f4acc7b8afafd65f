"""Files as other programs write them: every format made with its own library, never with ours."""

from __future__ import annotations

import datetime
import json
import shutil

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import scipy.io

from armid.errors import InputError
from armid.logs import Channel, Clock, Log, ReadOptions, unchecked_log
from armid.logs.readers.mat5 import mat5_arrays
from support.recordings import NAMES, arm, motion

T, Q, QD, _ = motion(2.0, 100.0)
TAU = np.cos(Q) * 10.0
HEADER = ["t", *(f"{word}{i + 1}" for word in ("q", "qd", "tau") for i in range(4))]
TABLE = np.column_stack([T, Q, QD, TAU])


def agree(log: Log, *, torque: bool = True) -> None:
    np.testing.assert_allclose(log.time - log.time[0], T, atol=2e-6)
    np.testing.assert_allclose(log[Channel.POSITION], Q, rtol=1e-12, atol=1e-12)
    if torque:
        np.testing.assert_allclose(log[Channel.LINK_TORQUE], TAU, rtol=1e-12, atol=1e-12)


def lines(delimiter: str = ",") -> list[str]:
    return [delimiter.join(HEADER), *(delimiter.join(f"{x:.17g}" for x in row) for row in TABLE)]


def test_titles_before_the_header(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["Robot: small arm 1", "Date: 2024-05-05 10:22", "", *lines()]))
    agree(unchecked_log(path))


def test_separator_line_of_spreadsheets(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["sep=;", *lines(";")]))
    agree(unchecked_log(path))


def test_units_on_a_line_of_their_own(tmp_path):
    path = tmp_path / "log.csv"
    head, *rows = lines()
    scale = np.array([1e3] + [180 / np.pi] * 8 + [1e3] * 4)
    rows = [",".join(f"{x:.17g}" for x in row * scale) for row in TABLE]
    path.write_text("\n".join([head, "ms," + "deg," * 4 + "deg/s," * 4 + ",".join(["mNm"] * 4), *rows]))
    agree(unchecked_log(path))


def test_header_with_another_number_of_names_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    head, *rows = lines()
    path.write_text("\n".join([head.rsplit(",", 1)[0], *rows]))
    with pytest.raises(InputError, match="the header names 12 columns, the rows have 13"):
        unchecked_log(path)


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("zone", ["", "+02:00"])
def test_dates_with_times_of_day(tmp_path, monkeypatch, arrow, zone):
    if not arrow:
        monkeypatch.setattr("armid.logs.readers.text.arrow_module", lambda: None)
    start = datetime.datetime(2024, 5, 5, 10, 22, 3)
    path = tmp_path / "log.csv"
    stamped = [
        (start + datetime.timedelta(seconds=float(t))).isoformat(sep=" ", timespec="microseconds") + zone for t in T
    ]
    head, *rows = lines()
    path.write_text(
        "\n".join([head, *(f"{stamp},{row.split(',', 1)[1]}" for stamp, row in zip(stamped, rows, strict=True))])
    )
    log = unchecked_log(path)
    agree(log)
    hours = 2.0 if zone else 0.0
    assert log.time[0] == pytest.approx(start.replace(tzinfo=datetime.UTC).timestamp() - hours * 3600.0, abs=1e-5)


def structured() -> np.ndarray:
    out = np.zeros(len(T), dtype=[("t", "f8"), ("q", "f8", 4), ("qd", "f4", 4), ("tau", ">f8", 4), ("note", "S3")])
    out["t"], out["q"], out["qd"], out["tau"] = T, Q, QD, TAU
    return out


def test_structured_arrays(tmp_path):
    np.save(tmp_path / "log.npy", structured())
    agree(unchecked_log(tmp_path / "log.npy"))
    np.savez(tmp_path / "log.npz", log=structured())
    agree(unchecked_log(tmp_path / "log.npz"))


def test_tables_in_hdf5(tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("run/log", data=structured()[["t", "q", "tau"]], compression="gzip")
        file["run/settings"] = np.ones(3)
    agree(unchecked_log(path))


def test_arrow_stream_by_its_first_bytes(tmp_path):
    table = pa.table({name: TABLE[:, i] for i, name in enumerate(HEADER)})
    for name in ("log.arrows", "log.bin"):
        path = tmp_path / name
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=30)
        agree(unchecked_log(path))


def test_struct_columns_of_parquet(tmp_path):
    state = pa.array([{"q": list(q), "dq": list(qd), "mode": "run"} for q, qd in zip(Q, QD, strict=True)])
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"t": T, "state": state, "effort": pa.array(list(TAU))}), path)
    log = unchecked_log(path)
    agree(log)
    assert "state.q" in next(note.message for note in log.notes if note.code == "mapping-guess")


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("compressed", [True, False])
def test_matlab_arrays_are_those_scipy_reads(tmp_path, version, compressed):
    content = {"t": T, "q": Q, "qd": QD.astype("f4"), "tau": TAU, "k": np.arange(6, dtype="i2").reshape(2, 3)}
    if version == "5":
        deep = {"time": T, "x": Q.T, "inner": {"u8": np.arange(9, dtype="u1"), "i8": np.arange(5, dtype="i8")}}
        content |= {"rec": deep, "name": "words", "cell": np.array([1, "a"], dtype=object), "z": Q[:3] + 1j}
    path = tmp_path / "log.mat"
    scipy.io.savemat(path, content, format=version, do_compression=compressed and version == "5")
    found = mat5_arrays(path)
    theirs = scipy.io.loadmat(path, squeeze_me=True, struct_as_record=False)
    for name, values in found.items():
        item = theirs[name.split(".")[0]]
        for part in name.split(".")[1:]:
            item = getattr(item, part)
        np.testing.assert_array_equal(values, np.asarray(item, dtype=float))
    assert set(found) >= {"t", "q", "qd", "tau", "k"}
    if version == "5":
        assert {"rec.time", "rec.x", "rec.inner.u8", "rec.inner.i8"} <= set(found)
        assert not {"name", "cell", "z"} & set(found)
    agree(unchecked_log(path))


def test_json_lines_whose_first_objects_lack_effort(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = [{"t": float(T[k]), "q": list(Q[k]), "tau": list(TAU[k])} for k in range(len(T))]
    for k in (0, 1, 50):
        del rows[k]["tau"]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    log = unchecked_log(path)
    agree(log, torque=False)
    assert np.isnan(log[Channel.LINK_TORQUE]).any(axis=1).nonzero()[0].tolist() == [0, 1, 50]


def test_joint_states_in_changing_order_and_without_effort(tmp_path):
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    folder = tmp_path / "bag"
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        for k in range(len(T)):
            order = np.random.default_rng(k).permutation(4)
            nanoseconds = round(T[k] * 1e9) + 1_700_000_000_000_000_000
            # A publisher that leaves the stamp at zero: the time of recording counts.
            header = types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](0, 0), "")
            effort = TAU[k, order] if k % 5 else np.zeros(0)
            message = types["sensor_msgs/msg/JointState"](
                header, [NAMES[i] for i in order], Q[k, order], QD[k, order], effort
            )
            writer.write(topic, nanoseconds, store.serialize_cdr(message, "sensor_msgs/msg/JointState"))
    kept = np.arange(len(T)) % 5 > 0
    for path in (folder, next(folder.glob("*.mcap"))):
        log = unchecked_log(path, arm())
        assert log.joints == NAMES
        np.testing.assert_allclose(log.time, T[kept] + 1.7e9, atol=1e-6)
        np.testing.assert_array_equal(log[Channel.POSITION], Q[kept])
        np.testing.assert_array_equal(log[Channel.LINK_TORQUE], TAU[kept])
        assert any(note.code == "bare-messages" and note.message.startswith("40 ") for note in log.notes)
    shutil.rmtree(folder)


EVERY_KEY = """
schema: armid.log/1
name: everything
format: csv
delimiter: ";"
decimal: ","
header: true
files:
  motion: {path: motion.csv}
  drive: {path: drive.txt, delimiter: tab, decimal: ".", header: false}
rows: [3, 150]
joints: [shoulder, waist, elbow, wrist]
clock: {column: seconds, file: motion, nanoseconds: rest}
channels:
  position: {file: motion, columns: [b, a, c, d], unit: deg, sign: [1, 1, -1, 1], gear_ratio: [10, 10, 10, 5], offset: 0.25}
  velocity: {file: motion, columns: "v{i0}", unit: deg/s, gain: 2}
  position.motor: {file: drive, columns: "1:4", unit: rev}
  torque: {file: drive, columns: [5, 6, 7, 8], side: motor, unit: mNm, gear_ratio: [100, 100, 50, 50],
           matrix: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]]}
  torque.commanded: {file: drive, columns: "5:8", inverse_matrix: [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]]}
  temperature: {file: drive, columns: "9:12", unit: degC}
conditions: {payload: 1.5, payload_centre: [0, 0, 0.1], tool: gripper, mounting: [9.81, 0, 0], temperature: 28.5, remark: warm}
"""


def test_a_mapping_with_every_key(tmp_path):
    rng = np.random.default_rng(3)
    raw, speed, drive = rng.normal(size=(200, 4)), rng.normal(size=(200, 4)), rng.normal(size=(200, 12))
    nanoseconds = np.arange(200) * 5_000_000
    motion_table = np.column_stack([nanoseconds // 10**9, nanoseconds % 10**9, raw, speed])
    head = "seconds;rest;a;b;c;d;v0;v1;v2;v3"
    body = [";".join(f"{x:.17g}".replace(".", ",") for x in row) for row in motion_table]
    (tmp_path / "motion.csv").write_text("\n".join([head, *body]))
    np.savetxt(tmp_path / "drive.txt", drive, fmt="%.17g", delimiter="\t")
    (tmp_path / "log.yaml").write_text(EVERY_KEY)
    log = unchecked_log(tmp_path / "log.yaml", arm())
    used, order = slice(2, 150), [1, 0, 2, 3]
    assert (log.name, log.joints, log.clock) == ("everything", NAMES, Clock.COLUMN)
    np.testing.assert_allclose(log.time, nanoseconds[used] * 1e-9, atol=1e-12)
    q = np.radians(raw[used][:, [1, 0, 2, 3]]) * [1, 1, -1, 1] / [10, 10, 10, 5] + 0.25
    np.testing.assert_allclose(log[Channel.POSITION], q[:, order], rtol=1e-12)
    np.testing.assert_allclose(log[Channel.VELOCITY], (2 * np.radians(speed[used]))[:, order], rtol=1e-12)
    np.testing.assert_allclose(log[Channel.MOTOR_POSITION], (drive[used, :4] * 2 * np.pi)[:, order], rtol=1e-12)
    tau = drive[used, 4:8] * 1e-3 * [100, 100, 50, 50]
    tau[:, 2] += tau[:, 3]
    np.testing.assert_allclose(log[Channel.MOTOR_TORQUE], tau[:, order], rtol=1e-12)
    np.testing.assert_allclose(log[Channel.COMMANDED_TORQUE], drive[used, 4:8][:, order] / 2, rtol=1e-12)
    np.testing.assert_allclose(log[Channel.TEMPERATURE], drive[used, 8:12][:, order], rtol=1e-12)
    assert log.conditions.payload == 1.5
    assert log.conditions.payload_centre == (0.0, 0.0, 0.1)
    assert (log.conditions.tool, log.conditions.remark) == ("gripper", "warm")
    assert log.conditions.mounting == (9.81, 0.0, 0.0)
    assert log.conditions.temperature == 28.5


def test_permille_of_a_rated_torque(tmp_path):
    """As industrial servo drives report it: the rated torque of each drive is its gain."""
    (tmp_path / "log.yaml").write_text(
        "file: d.csv\nclock: {step: 10, unit: ms}\nchannels:\n  position: {columns: 'q{i}'}\n"
        "  torque: {columns: 't{i}', side: current, unit: permille, gain: [3.0, 2.0, 1.0, 0.5]}\n"
        f"joints: [{', '.join(NAMES)}]\n"
    )
    head = ",".join([*(f"q{i + 1}" for i in range(4)), *(f"t{i + 1}" for i in range(4))])
    np.savetxt(tmp_path / "d.csv", np.column_stack([Q, TAU]), delimiter=",", header=head, comments="", fmt="%.17g")
    log = unchecked_log(tmp_path / "log.yaml", arm())
    np.testing.assert_allclose(log[Channel.CURRENT], TAU * 1e-3 * [3.0, 2.0, 1.0, 0.5], rtol=1e-12)
    assert log.clock is Clock.STEP


def test_large_numbers_pass_the_reader_and_wait_for_the_checks_and_impossible_ones_are_cut(tmp_path):
    path = tmp_path / "log.csv"
    rows = lines()
    rows[5] = ",".join(["0.04", "1e29", *rows[5].split(",")[2:]])
    path.write_text("\n".join(rows))
    passed = unchecked_log(path)
    assert passed[Channel.POSITION].max() == 1e29
    rows[5] = rows[5].replace("1e29", "1e150")
    path.write_text("\n".join(rows))
    cut = unchecked_log(path)
    assert len(cut) == len(passed) - 1
    assert [note.code for note in cut.notes if "in line 6" in note.message] == ["garbage-rows"]


def test_presets_can_be_named(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("\n".join(lines()))
    for name in ("libfranka", "rtde", "fri", "sunrise", "krl", "csv"):
        agree(unchecked_log(path, options=ReadOptions(format=name)))
