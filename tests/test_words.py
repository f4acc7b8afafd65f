"""What people hand to the public functions: anything that cannot be meant is refused in one line that says what is expected."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armid
from armid.errors import InputError, UnknownNameError
from armid.logs.error_codes import ERROR_CODES, accepted_codes
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.outcome import Listing
from armid.robot.catalogue import catalogue_bytes
from armid.words import number, path_of, several, whole_number
from support import identified
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


RIGID_BODY = {
    "inverse_dynamics": 3,
    "forward_dynamics": 3,
    "mass_matrix": 1,
    "coriolis": 2,
    "gravity": 1,
    "regressor": 3,
    "forward_kinematics": 1,
    "jacobian": 1,
}


@pytest.mark.parametrize("name", RIGID_BODY)
def test_rigid_body_functions_take_whatever_names_a_robot(name: str, tmp_path: Path) -> None:
    function, states = getattr(armid, name), [np.full(7, 0.1 + 0.2 * k) for k in range(RIGID_BODY[name])]
    expected = function(armid.load_robot("panda"), *states)
    np.testing.assert_array_equal(function("panda", *states), expected)
    path = tmp_path / "arm.yaml"
    path.write_bytes(catalogue_bytes("panda"))
    np.testing.assert_array_equal(function(path, *states), expected)
    result, few = identified.trusted(), [state[: identified.trusted().robot.n_joints] for state in states]
    np.testing.assert_array_equal(function(result, *few), function(result.robot, *few))
    with pytest.raises(InputError, match=r"q: .*are no numbers .*expected an array \[n_samples, 7\]"):
        function("panda", "0,0,0,0,0,0,0", *states[1:])
    with pytest.raises(UnknownNameError, match=r"pandaa.*there are: .*panda"):
        function("pandaa", *states)
    with pytest.raises(InputError, match=r"robot: nothing given .*a catalogue name"):
        function(None, *states)


def test_a_stored_result_stands_for_the_identified_arm(tmp_path: Path) -> None:
    result = identified.trusted()
    result.save(tmp_path / "result")
    q = np.full(result.robot.n_joints, 0.3)
    found = armid.gravity(tmp_path / "result", q)
    np.testing.assert_allclose(found, armid.gravity(result.robot, q), rtol=1e-12)
    assert not np.allclose(found, armid.gravity(result.described, q))


def test_whole_numbers_are_whole_and_large_enough() -> None:
    assert whole_number("count", np.int64(3)) == 3
    assert whole_number("count", 4.0) == 4
    for wrong in (0, -1, 2.5, float("inf")):
        with pytest.raises(InputError, match=r"count: .*whole number, at least 1"):
            whole_number("count", wrong)


def test_nothing_to_search_with_is_refused_and_not_taken_for_the_default() -> None:
    arm = planar_arm()
    for starts in (0, -1, 1.5):
        with pytest.raises(InputError, match=r"starts: .*at least 1"):
            armid.design_motion(arm, starts=starts)
    with pytest.raises(InputError, match=r"seconds: 'ten' .*expected a number"):
        armid.design_motion(arm, seconds="ten")
    for count in (0, -3):
        with pytest.raises(InputError, match=r"count: .*at least 1"):
            armid.choose_poses(arm, "gravity", count=count)
    with pytest.raises(InputError, match=r"count: 'many' .*expected a number"):
        armid.choose_poses(arm, "gravity", count="many")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, 3, {}])
def test_what_a_controller_reports_is_a_file_or_samples(given: Any) -> None:
    with pytest.raises(InputError, match=r"samples: .*expected controller data"):
        armid.recover(planar_arm(), given)


def test_options_of_reading_may_be_named_in_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("q1,q2,tau1,tau2\n" + "\n".join(f"{0.01 * k},{0.02 * k},1,{k}" for k in range(50)))
    log = armid.read_log(path, planar_arm(), options={"step": 0.01})  # type: ignore[arg-type]
    assert log.time[1] - log.time[0] == pytest.approx(0.01)
    assert len(armid.read_log(path, planar_arm(), options={}, step=0.02)) == 50  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=r"no option of reading named 'steps'; there are: format, step"):
        armid.read_log(path, planar_arm(), options={"steps": 0.01})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"options: a float .*expected ReadOptions"):
        armid.read_log(path, planar_arm(), options=0.01)  # type: ignore[arg-type]


def test_only_errors_that_logs_can_have_are_accepted() -> None:
    arm = planar_arm()
    for ask in (
        lambda: armid.identify(arm, "log.csv", accept="torque-lagg"),
        lambda: armid.recover(arm, "samples.npz", accept=["torque-lagg"]),
        lambda: armid.identify_sequential(arm, "plan", accept=("torque-sign", "torque-lagg")),
        lambda: armid.validate(identified.trusted(), "log.csv", accept="torque-lagg"),
    ):
        with pytest.raises(UnknownNameError, match=r"no error of logs named 'torque-lagg'; .*torque-lag, torque-sign"):
            ask()
    assert accepted_codes("torque-lag, spikes") == ("torque-lag", "spikes")


def test_every_error_of_a_check_can_be_accepted() -> None:
    """Codes stand next to their severity in the checks: none that can be an error is missing, and none is made up."""
    logs = Path(armid.__file__).parent / "logs"
    found: set[str] = set()
    for path in (*logs.glob("health/*.py"), *logs.glob("conditioning/*.py"), logs / "timing.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and any("Severity.ERROR" in ast.unparse(part) for part in node.args):
                found |= {part.value for part in node.args[:1] if isinstance(part, ast.Constant)}
    computed = {"not-finite", "corrupt-values", "time-not-finite"}  # by a variable for code or severity
    assert found | computed == set(ERROR_CODES)


def test_logs_and_comparisons_say_their_verdict_to_programs() -> None:
    result = identified.trusted()
    comparison = armid.compare(result, result)
    assert comparison.as_dict()["verdict"] == str(comparison.verdict)
    log = Log(name="empty", joints=("a",), time=np.arange(3.0), channels={Channel.POSITION: np.zeros((3, 1))})
    assert log.as_dict()["verdict"] == str(log.verdict)


def test_methods_of_a_benchmark_are_words_with_commas() -> None:
    with pytest.raises(UnknownNameError, match="no method named 'guess'"):
        armid.benchmark("planar2", methods="ols, guess")
    with pytest.raises(UnknownNameError, match="no level of noise named 'loud'"):
        armid.benchmark("planar2", methods="ols,wls", noise="loud")
    with pytest.raises(InputError, match="methods: nothing given"):
        armid.benchmark("planar2", methods=None)  # type: ignore[arg-type]
