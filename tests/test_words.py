"""What people hand to the public functions: anything that cannot be meant is refused in one line that says what is expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armid
from armid.errors import InputError, UnknownNameError
from armid.notes import Note, Severity
from armid.outcome import Listing
from armid.words import number, path_of, several
from support.planar import planar_arm


class Table:
    """Like a data frame: it can be gone through, and that gives the names of its columns."""

    columns = ("t", "q1")

    def __iter__(self) -> Any:
        return iter(self.columns)


@pytest.mark.parametrize("given", [3, None, b"panda", ["panda"], 2.5])
def test_a_robot_is_a_path_a_name_or_a_robot(given: Any) -> None:
    with pytest.raises(InputError, match=r"robot: .*expected a path of a URDF"):
        armid.load_robot(given)


@pytest.mark.parametrize("given", [3, Table(), np.zeros((4, 3))])
def test_recordings_are_paths_or_logs(given: Any) -> None:
    with pytest.raises(InputError, match=r"logs?: a .*expected"):
        armid.identify(planar_arm(), given)
    with pytest.raises(InputError, match=r"log: a .*expected the path of a recording"):
        armid.read_log(given, planar_arm())


def test_a_robot_is_no_result_and_a_log_no_prior() -> None:
    with pytest.raises(InputError, match=r"result: a Robot .*expected a folder"):
        armid.validate(planar_arm(), "log.csv")
    with pytest.raises(InputError, match=r"prior: a Robot"):
        armid.identify(planar_arm(), "log.csv", prior=planar_arm())


def test_friction_may_be_a_list_of_words() -> None:
    arm = planar_arm()
    listed = armid.inspect(arm, friction=["viscous", "coulomb"])
    assert listed.as_dict() == armid.inspect(arm, friction="viscous,coulomb").as_dict()
    with pytest.raises(InputError, match=r"friction: nothing given .*words of viscous"):
        armid.inspect(arm, friction=None)  # type: ignore[arg-type]


def test_numbers_of_any_kind_and_nothing_else() -> None:
    assert number("rate", np.float32(2.0)) == 2.0
    assert number("count", np.int64(3)) == 3.0
    for wrong in ("fast", None, float("nan"), [1.0, 2.0]):
        with pytest.raises(InputError, match=r"rate: .*expected a number"):
            number("rate", wrong)


def test_one_or_several_as_a_list() -> None:
    assert several("logs", Path("a"), (str, Path), "paths") == [Path("a")]
    assert several("logs", (part for part in "ab"), (str, Path), "paths") == ["a", "b"]
    with pytest.raises(InputError, match=r"logs: a int \(expected paths\)"):
        several("logs", ["a", 3], (str, Path), "paths")
    assert path_of("log", Path("x"), "a path") == Path("x")


def test_rows_are_found_by_any_whole_number_and_sorted_by_columns_that_exist() -> None:
    rows = Listing([Note("one", Severity.INFO, "a"), Note("two", Severity.INFO, "b")])
    assert rows[np.int64(1)].code == "two"
    assert [row.code for row in rows.sorted_by("code", descending=True)] == ["two", "one"]
    with pytest.raises(UnknownNameError, match="no column named 'colour'; there are: code"):
        rows.sorted_by("colour")
