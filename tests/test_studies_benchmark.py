"""`armid benchmark`: deterministic, resumable, beside bounds that nobody passes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.closed_loop.bound import loop_bound, torque_bound
from armid.errors import InputError, UnknownNameError
from armid.parameters.inertial import pseudo_inertia
from armid.robot.load import load_robot
from armid.studies import benchmark as module
from armid.studies.protocol import NOISE, Protocol

QUICK = {"methods": ("wls", "didim"), "noise": ("standard",), "runs": 2, "seconds": 2.0}


def robot():
    return load_robot("cmu-dd-arm2")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("benchmark")
    return out, armid.benchmark(robot(), out=out, **QUICK)


def test_rows_say_what_the_contract_promises(found):
    rows = found[1].as_dict()["rows"]
    assert [(row["noise"], row["method"]) for row in rows] == [("standard", "wls"), ("standard", "didim")]
    for row in rows:
        assert {"torque_error", "parameter_error", "efficiency", "coverage", "cpu_seconds"} <= set(row)
        assert row["failed"] == 0
        assert row["efficiency"] > 0.5
        assert 0.0 < row["torque_error"] < 0.2
    assert rows[1]["bound"] == "loop"


def test_the_whole_identify_is_one_of_the_methods():
    words = {"noise": ("standard",), "runs": 1, "seconds": 4.0}
    whole, plain = armid.benchmark(robot(), methods=("identify", "wls"), **words).rows
    assert not whole.failed
    assert whole.bound == "torque"
    assert whole.efficiency < 2.0 * plain.efficiency
    assert whole.coverage >= 0.8


def test_the_same_seed_gives_the_same_numbers(found):
    again = armid.benchmark(robot(), **QUICK)
    for a, b in zip(found[1].runs, again.runs, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.deviations, b.deviations)
    assert [r.efficiency for r in found[1].rows] == [r.efficiency for r in again.rows]


def test_only_what_is_missing_is_run_again(found, monkeypatch):
    out, first = found
    (out / "runs" / "standard-0001-wls.json").unlink()
    ran = []
    real = module._one

    def counted(protocol, log, level, run, method):
        ran.append((run, method))
        return real(protocol, log, level, run, method)

    monkeypatch.setattr(module, "_one", counted)
    again = armid.benchmark(robot(), out=out, **QUICK)
    assert ran == [(1, "wls")]
    for a, b in zip(first.runs, again.runs, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


def test_runs_of_other_settings_are_not_mixed_in(found):
    with pytest.raises(InputError, match="another arm, duration or seed"):
        armid.benchmark(robot(), out=found[0], **(QUICK | {"seed": 7}))
    broken = found[0] / "runs" / "standard-0000-didim.json"
    text = broken.read_text()
    broken.write_text(json.dumps(json.loads(text) | {"values": [1.0]}))
    with pytest.raises(InputError, match="delete it; it is then run again"):
        armid.benchmark(robot(), out=found[0], **QUICK)
    broken.write_text(text)


def test_unknown_words_are_refused_before_anything_runs():
    with pytest.raises(UnknownNameError, match="no method named 'best'"):
        armid.benchmark(robot(), methods=("best",))
    with pytest.raises(UnknownNameError, match="no level of noise named 'loud'"):
        armid.benchmark(robot(), noise=("loud",))
    assert CliRunner().invoke(application(), ["benchmark", "panda", "--methods", "best"]).exit_code == 2


def test_a_page_shows_table_and_distributions(found, tmp_path):
    files = found[1].save(tmp_path)
    assert {path.name for path in files} == {"benchmark.json", "report.html"}
    assert found[1].figures() == ("errors-standard",)


def test_the_command_prints_what_the_function_returns(found):
    words = ["--methods", "wls,didim", "--noise", "standard", "--runs", "2", "--seconds", "2", "--json"]
    answer = CliRunner().invoke(application(), ["benchmark", "cmu-dd-arm2", *words, "--out", str(found[0])])
    assert answer.exit_code in (0, 3), answer.output
    rows = json.loads(answer.stdout)["rows"]
    for got, expected in zip(rows, found[1].as_dict()["rows"], strict=True):
        for name in ("method", "noise", "parameter_error", "efficiency", "coverage"):
            assert got[name] == expected[name]


def test_wrong_starts_are_possible_bodies():
    protocol = Protocol(load_robot("tx40-birdy"), 1.0)
    first, second = protocol.wrong_start(0), protocol.wrong_start(1)
    np.testing.assert_array_equal(first, protocol.wrong_start(0))
    assert not np.allclose(first, second)
    wrong = protocol.wrong_standard(0)
    for i in range(6):
        ten = wrong[protocol.link_columns(i)]
        assert np.linalg.eigvalsh(pseudo_inertia(ten))[0] > 0.0
    ratio = wrong[protocol.standard != 0.0] / protocol.standard[protocol.standard != 0.0] - 1.0
    assert 0.08 < np.std(ratio) < 0.2


def test_motions_rest_at_both_ends_and_keep_the_limits():
    protocol = Protocol(load_robot("rv2sq"), 4.0)
    q = protocol.training.reference
    rate, arm = protocol.controller.rate, protocol.robot
    qd = np.gradient(q, 1.0 / rate, axis=0)
    assert np.all(q >= arm.limit("lower"))
    assert np.all(q <= arm.limit("upper"))
    assert np.all(np.abs(qd) <= arm.limit("velocity"))
    assert np.abs(qd[[0, -1]]).max() < 0.02
    assert not np.allclose(q, protocol.validation.reference)


def test_bounds_scale_with_the_noise_and_the_loop_is_worth_knowing():
    protocol = Protocol(robot(), 2.0)
    n = protocol.robot.n_joints
    position, torque = (np.full(n, x) for x in NOISE["standard"])
    one, two = (
        np.sqrt(np.diag(loop_bound(protocol.training, protocol.truth, k * position, k * torque))) for k in (1.0, 2.0)
    )
    # Small against friction's width, so that everything is linear.
    np.testing.assert_allclose(two, 2.0 * one, rtol=0.05)
    blind = np.sqrt(np.diag(torque_bound(protocol.training, protocol.truth, position, torque)))
    assert np.median(blind / one) > 2.0
