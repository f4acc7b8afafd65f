"""The conditions of the gate, one by one, and that the page about them lists exactly these."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.estimation.torque_error import JointErrors, TorqueErrors
from armid.identification import gate as verdict
from armid.identification.comparison import Comparison
from armid.identification.gate import (
    constant_checks,
    held_out_checks,
    interval_check,
    log_checks,
    margins,
    nominal_checks,
    physical_checks,
)
from armid.notes import Note, Severity
from support.identified import trusted

DOCS = Path(__file__).parents[1] / "docs" / "gate.md"


def test_docs_list_the_conditions_of_the_code() -> None:
    source = Path(verdict.__file__).read_text()
    coded = set(re.findall(r'Check\(\s*code="([a-z-]+)"', source)) | {"log-…"}
    documented = set(re.findall(r"^\| `([a-z-]+…?)` \|", DOCS.read_text(), re.M))
    assert coded == documented


@pytest.mark.parametrize(
    "constant",
    [
        "LARGEST_RELATIVE_ERROR:15 %",
        "LARGEST_GROWTH:2.5",
        "LARGEST_CONSISTENCY_COST:fails above 3",
        "REVERSED_IS_BETTER:ratio 1.2",
    ],
)
def test_docs_state_the_limits_of_the_code(constant: str) -> None:
    name, text = constant.split(":")
    value = getattr(verdict, name)
    number = float(re.findall(r"[\d.]+", text)[0])
    assert value == pytest.approx(number / 100 if "%" in text else number)
    assert text in DOCS.read_text()


def failed(checks: object) -> list[str]:
    return [check.code for check in checks if check.decisive and not check.passed]  # type: ignore[attr-defined]


def test_fixture_passes_everything() -> None:
    assert failed(trusted().checks) == []
    codes = {check.code for check in trusted().checks}
    assert {"rank", "held-out", "not-worse-than-nominal", "finite-intervals", "physical", "physical-margin"} <= codes


def test_a_joint_worse_than_nominal_is_named() -> None:
    good = Comparison(name="waist", rmse=0.1, rmse_other=0.5, excess=-0.3, uncertainty=0.01)
    bad = Comparison(name="elbow", rmse=0.5, rmse_other=0.1, excess=0.2, uncertainty=0.01)
    unsure = Comparison(name="wrist", rmse=0.5, rmse_other=0.1, excess=0.2, uncertainty=0.3)
    assert failed(nominal_checks([good, unsure])) == []
    checks = nominal_checks([good, bad, unsure])
    assert failed(checks) == ["not-worse-than-nominal"]
    assert checks[0].subject == "elbow"
    assert nominal_checks([]) == ()


def test_a_joint_worse_than_its_mean_torque_is_named() -> None:
    good = Comparison(name="waist", rmse=0.1, rmse_other=0.5, excess=-0.3, uncertainty=0.01)
    bad = Comparison(name="elbow", rmse=0.5, rmse_other=0.1, excess=0.2, uncertainty=0.01)
    assert constant_checks([good]) == ()
    checks = constant_checks([good, bad])
    assert failed(checks) == ["worse-than-constant"]
    assert checks[0].subject == "elbow"


def test_noise_that_free_parameters_fitted_is_no_cost_of_possible_bodies() -> None:
    result = trusted()

    def with_errors(train: float, held_out: float) -> list[JointErrors]:
        joint = result.joints[0]
        return [replace(joint, train=TorqueErrors(rmse=train), held_out=TorqueErrors(rmse=held_out))]

    def costs(bodies: list[JointErrors], free: list[JointErrors]) -> list[str]:
        return failed(physical_checks(result.consistent, result.certificates, bodies, free))

    # A wrong sign shows on both motions; noise that was fitted only on the one it was fitted to.
    assert costs(with_errors(4.0, 4.0), with_errors(1.0, 1.0)) == ["consistency-cost"]
    assert costs(with_errors(4.0, 4.0), with_errors(1.0, 3.9)) == []
    assert costs(with_errors(4.0, np.nan), with_errors(1.0, np.nan)) == ["consistency-cost"]


def test_intervals_must_be_finite() -> None:
    estimate, consistent = trusted().estimate, trusted().consistent
    assert interval_check(estimate, consistent).passed
    covariance = np.array(estimate.covariance)
    covariance[2, 2] = np.inf
    check = interval_check(replace(estimate, covariance=covariance), consistent)
    assert not check.passed
    assert estimate.names[2] in check.message
    deviations = np.array(consistent.standard_deviations)
    claimed = consistent.determined_by.index("data")
    deviations[claimed] = np.inf
    check = interval_check(estimate, replace(consistent, standard_deviations=deviations))
    assert not check.passed
    assert consistent.names[claimed] in check.message


def test_bodies_on_the_edge_fail() -> None:
    consistent = trusted().consistent
    values = np.array(consistent.values)
    body = consistent.bodies[1]
    # All mass in one point: a body just possible, which no file keeps so.
    values[list(body.columns)] = [2.0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    flat = replace(consistent, values=values)
    assert margins(flat)[body.owner] == pytest.approx(0.0, abs=1e-15)
    assert "physical-margin" in failed(physical_checks(flat, trusted().certificates, (), ()))


def test_memorised_motion_fails() -> None:
    joint = trusted().joints[0]
    worse = replace(joint, held_out=replace(joint.held_out, rmse=5 * joint.train.rmse, relative=0.1))
    assert failed(held_out_checks([worse], {"held_out": 0.1})) == ["joint-overfitted"]
    negligible = replace(worse, held_out=replace(worse.held_out, relative=0.01))
    assert failed(held_out_checks([negligible], {"held_out": 0.01})) == []
    assert failed(held_out_checks([], {})) == ["held-out"]


def test_meaning_of_the_log_must_be_settled() -> None:
    lag = Note("torque-lag", Severity.WARNING, "torque comes 15 ms late")
    accepted = Note("torque-sign", Severity.ERROR, "opposite sign")
    harmless = Note("clock-irregular", Severity.WARNING, "steps vary")
    assert failed(log_checks([lag, accepted, harmless])) == ["log-torque-lag", "log-torque-sign"]
    assert failed(log_checks([lag, harmless], torque_delay=0.015)) == []
    # Half a control period of a held command is no answer to a lag of many milliseconds.
    assert failed(log_checks([lag, harmless], torque_delay=-0.0005)) == failed(log_checks([lag, harmless]))
