"""A stored result cannot be made trusted by hand, and what was learned from is no test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.documents import write_arrays, write_json
from armid.errors import InputError
from armid.identification.pipeline import run_identification
from armid.identification.result import load_result
from armid.identification.settings import Identification
from armid.identification.stored import arrays, seal, summary
from armid.identification.validate import validate
from armid.outcome import Verdict
from armid.robot.load import load_robot
from support.identified import EFFECTS, log, trusted, untrusted, urdf_file


def failed(result: object) -> list[str]:
    return [check.code for check in result.checks if check.decisive and not check.passed]  # type: ignore[attr-defined]


def edited(folder: Path, **changes: object) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    trusted().save(tmp_path / "r")
    again = load_result(tmp_path / "r")
    assert again.verdict is Verdict.TRUSTED
    assert [(c.code, c.passed, c.value) for c in again.checks] == [
        (c.code, c.passed, c.value) for c in trusted().checks
    ]


def test_failed_conditions_taken_out_by_hand_come_back(tmp_path: Path) -> None:
    untrusted().save(tmp_path / "r")
    assert load_result(tmp_path / "r").verdict is Verdict.UNTRUSTED
    stored = json.loads((tmp_path / "r" / "result.json").read_text())
    kept = [check for check in stored["checks"] if check["passed"]]
    assert "seal" in failed(load_result(edited(tmp_path / "r", checks=kept)))


def test_figures_are_judged_again_even_when_the_seal_fits(tmp_path: Path) -> None:
    """Somebody who also makes a new seal still meets the figures."""
    bad = [replace(m, rmse_moving=0.9 * m.torque_moving) for m in trusted().evidence.held_out]  # type: ignore[union-attr]
    forged = replace(trusted(), evidence=replace(trusted().evidence, held_out=tuple(bad)))
    place = tmp_path / "r"
    forged.save(place)
    assert json.loads((place / "result.json").read_text())["verdict"] == "trusted"
    found = load_result(place)
    assert "seal" not in failed(found)
    assert "joint-unexplained" in failed(found)


def test_exchanged_arrays_break_the_seal(tmp_path: Path) -> None:
    trusted().save(tmp_path / "r")
    data = arrays(trusted())
    write_arrays(tmp_path / "r" / "result.npz", {**data, "standard": np.asarray(data["standard"]) * 1.01})
    assert "seal" in failed(load_result(tmp_path / "r"))


@pytest.mark.parametrize("checks", [[], None])
def test_without_conditions_it_is_untrusted(tmp_path: Path, checks: object) -> None:
    assert replace(trusted(), checks=()).verdict is Verdict.UNTRUSTED
    place = tmp_path / "r"
    trusted().save(place)
    text = {**summary(trusted()), "checks": checks or [], "evidence": None}
    write_json(place / "result.json", {**text, "seal": seal(text, arrays(trusted()))})
    found = load_result(place)
    assert found.verdict is Verdict.UNTRUSTED
    assert "no conditions were checked" in found.reasons[0]


def test_validating_an_untrusted_result_does_not_make_it_trusted() -> None:
    robot = load_robot(str(urdf_file()))
    other = log(robot, trusted().robot, seed=11)
    assert validate(trusted(), other).verdict is Verdict.TRUSTED
    answer = validate(untrusted(), other)
    assert answer.verdict is Verdict.UNTRUSTED
    assert "stored-verdict" in failed(answer)


def test_a_missing_test_can_be_made_up_for() -> None:
    robot = load_robot(str(urdf_file()))
    untested = run_identification(
        robot, [log(robot, trusted().robot, seed=3)], [], Identification(effects=EFFECTS, sensitivity=False)
    )
    assert failed(untested) == ["held-out"]
    assert validate(untested, log(robot, trusted().robot, seed=11)).verdict is Verdict.TRUSTED


def test_the_training_log_is_no_test() -> None:
    robot = load_robot(str(urdf_file()))
    own = log(robot, trusted().robot, seed=3)
    with pytest.raises(InputError, match="among the training logs"):
        run_identification(robot, [own], [own], Identification(effects=EFFECTS, sensitivity=False))
    result = run_identification(robot, [own], [], Identification(effects=EFFECTS, sensitivity=False))
    assert "never-seen" in failed(validate(result, own))
