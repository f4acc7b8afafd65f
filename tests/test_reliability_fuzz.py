"""Every reader on spoiled inputs: an answer, or an error of ours, within five seconds and a gigabyte; `bench fuzz` has more."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("h5py")
pytest.importorskip("pyarrow")
pytest.importorskip("rosbags")

from armid.errors import ArmidError, InputError
from armid.logs.read import unchecked_log
from support.fuzz import MEGABYTES, PIECES, SECONDS, WAYS, Edit, elbow, readers, tried

NAMES = (
    "csv", "npz", "mat", "parquet", "hdf5", "json lines", "bag", "mcap", "mapping", "urdf", "robot yaml",
    "poses", "paths", "trajectories", "scenarios", "cells", "bounds", "config", "result",
)  # fmt: skip

EDITS = st.lists(
    st.builds(
        Edit,
        st.floats(0.0, 1.0),
        st.integers(0, WAYS - 1),
        st.integers(0, len(PIECES) - 1),
        st.integers(1, 255),
    ),
    min_size=1,
    max_size=4,
)


def test_every_reader_is_fuzzed():
    assert set(readers()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_seeds_are_good(name, tmp_path):
    for file in readers()[name].seeds:
        assert not tried(readers()[name], tmp_path, file, []).refused


@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_spoiled_inputs_are_read_or_refused(name, data, tmp_path: Path):
    reader = readers()[name]
    file = data.draw(st.sampled_from(sorted(reader.seeds)))
    edits = data.draw(EDITS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = tried(reader, tmp_path, file, edits)
    assert done.seconds < SECONDS
    assert done.megabytes < MEGABYTES


@pytest.mark.parametrize("rows", [1, 2, 5, 6])
def test_a_few_rows_without_names_are_no_traceback(rows, tmp_path: Path):
    """20,000 spoiled CSV files found three of these: a log cut after so few rows that no motion can be told from them."""
    path = tmp_path / "log.csv"
    path.write_text("".join(f"0.0{k},1,2,3,4,5,6,7,8,{9 + k}\n" for k in range(rows)))
    with suppress(ArmidError):
        unchecked_log(path, elbow())


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("  - message_count: 20", "  - message_count: twenty"),
        ("  - message_count: 20", "  - message_count:"),
        ("name: /joint_states", "name: [/joint_states]"),
    ],
)
def test_a_list_of_topics_of_other_kinds_is_no_traceback(part: str, instead: str, tmp_path: Path):
    """Found by 20,000 spoiled bags: counts that are words or missing, a name that is a list."""
    bag = readers()["bag"]
    for name, content in bag.seeds.items():
        (tmp_path / name).write_bytes(content.replace(part.encode(), instead.encode()))
    assert instead in (tmp_path / "metadata.yaml").read_text()
    with pytest.raises(InputError):
        bag.read(tmp_path)
