"""Every estimator of `armid identify` end to end on logs with known truth, through the folder and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.export.export import Format, export_result
from armid.export.gate import ExportRefusedError
from armid.identification.chosen import Parameters
from armid.identification.result import load_result
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.elbow import coloured, fourier_motion
from support.elbow_logs import FRICTION, ROBOT, run, true_standard, write_columns, write_elbow_log


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    (folder / "elbow.yaml").write_text(ROBOT)
    robot = load_robot(folder / "elbow.yaml")
    for k in (1, 2):
        write_elbow_log(folder / f"log{k}.csv", robot, k, commanded=True)
    write_elbow_log(folder / "silent.csv", robot, 3)
    write_elbow_log(folder / "sound.csv", robot, 4)
    write_elbow_log(folder / "spoiled.csv", robot, 4, spoil=slice(700, 760))
    return folder


def identified(place, *options, log="log1", name="out", code=0):
    report = run(
        "identify",
        place / "elbow.yaml",
        place / f"{log}.csv",
        "--validate",
        place / "log2.csv",
        "--out",
        place / name,
        "--json",
        *options,
        code=code,
    )
    return report, load_result(place / name)


def shifts(result):
    truth = true_standard(result.described, TorqueRows(result.described, FRICTION))
    return (result.estimate.values - result.estimate.base.values(truth)) / result.estimate.standard_deviations


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("ols", "ordinary least squares"),
        ("wls", "weighted least squares"),
        ("huber", "Huber"),
        ("tukey", "Tukey"),
        ("ridge", "nominal values"),
        ("torque-error", "torque-error model"),
        ("tls", "total least squares"),
        ("iv", "instrumental variables"),
    ],
)
def test_every_method_finds_the_truth_within_its_deviations(place, method, words):
    report, result = identified(place, "--method", method, name=method)
    assert report["verdict"] == "trusted"
    assert words in result.estimate.method
    assert result.estimate.covariance_kind == "autocorrelation"
    off = shifts(result)
    assert np.abs(off).max() < 4.5
    assert np.sqrt(np.mean(off**2)) < 1.8
    assert report["relative_error_held_out"] < 0.02


def test_robust_methods_name_the_rows_they_distrust_and_are_not_moved_by_them(place):
    def widened(*options, name):
        """Deviations with sixty spoiled rows over those without, and the result with them."""
        sound, spoiled = (identified(place, *options, log=k, name=f"{k}-{name}") for k in ("sound", "spoiled"))
        ratio = spoiled[1].estimate.standard_deviations / sound[1].estimate.standard_deviations
        return np.median(ratio), *spoiled

    plain, _, _ = widened("--imperfections", "none", name="plain")
    for method in ("huber", "tukey"):
        ratio, report, result = widened("--method", method, name=method)
        found = [n for n in report["notes"] if n["code"] == "distrusted-rows" and n["subject"] == "shoulder"]
        assert found
        assert "spoiled" in found[0]["message"]
        assert np.sqrt(np.mean(shifts(result) ** 2)) < 3.0
        assert ratio < 0.9 * plain


def test_ridge_goes_from_the_data_to_the_description_with_its_stated_strength(place):
    _, free = identified(place, "--imperfections", "none", name="plain")
    _, weak = identified(place, "--method", "ridge", "--prior-weight", "1e-6", name="weak")
    _, strong = identified(place, "--method", "ridge", "--prior-weight", "1e9", name="strong", code=3)
    assert np.abs((weak.estimate.values - free.estimate.values) / free.estimate.standard_deviations).max() < 0.05
    nominal = strong.consistent.prior.values
    assert strong.estimate.values == pytest.approx(strong.estimate.base.values(nominal), abs=2e-3)
    assert np.all(strong.estimate.standard_deviations < free.estimate.standard_deviations)


def test_corrections_to_the_description_are_listed_beside_it(place):
    _, free = identified(place, "--imperfections", "none", name="plain")
    _, result = identified(place, "--method", "torque-error", name="corrections")
    assert result.estimate.values == pytest.approx(free.estimate.values, rel=1e-6, abs=1e-8)
    entry = result.estimate.provenance.corrections["link3.mx"]
    assert entry.correction == pytest.approx(0.1 * entry.nominal, abs=5.0 * entry.standard_deviation)


def test_instruments_need_a_command_and_say_so(place):
    outcome = run(
        "identify", place / "elbow.yaml", place / "silent.csv", "--method", "iv", "--out", place / "no", code=1
    )
    assert "no commanded positions" in outcome.stderr
    assert not (place / "no").exists()


def test_an_earlier_result_is_continued_by_least_squares_only(place):
    identified(place, name="wls")
    args = ("identify", place / "elbow.yaml", place / "log2.csv", "--prior", place / "wls", "--method", "huber")
    assert "continued by wls" in run(*args, "--out", place / "no", code=1).stderr


def essentials(place, rule):
    """The result of `--essential`, once per rule."""
    folder = place / f"essential-{rule}"
    if not folder.exists():
        identified(place, "--essential", "--essential-by", rule, name=folder.name)
    return load_result(folder)


@pytest.mark.parametrize("rule", ["significance", "bic"])
def test_essential_parameters_by_a_stated_rule_with_the_price_of_each_removal(place, rule):
    result = essentials(place, rule)
    found = result.sensitivity.essential.as_dict()
    assert found["rule"] == rule
    assert 9 <= len(found["kept"]) <= 24
    assert len(found["kept"]) + len(found["removals"]) == len(result.estimate)
    for step in found["removals"]:
        assert step["held_out_error"] > 0.5
        assert step["bic_change"] < 0.0 if rule == "bic" else step["p_value"] > 0.05
    run("report", place / f"essential-{rule}")
    assert f"base parameters are essential by {rule}" in (place / f"essential-{rule}" / "report.html").read_text()


def test_a_reversed_mounting_is_found_on_request(place):
    robot = load_robot(place / "elbow.yaml")
    hanging = robot.with_gravity([0.0, 0.0, 9.81])
    for name, seed in (("hanging", 6), ("other", 7)):
        write_elbow_log(place / f"{name}.csv", hanging, seed)
    args = ("identify", place / "elbow.yaml", place / "hanging.csv", "--out", place / "hanging", "--json")
    refused = run(*args, code=1)
    assert "gravity-reversed" in refused["error"]["message"]
    report = run(*args, "--find-gravity")
    assert report["verdict"] == "trusted"
    assert load_result(place / "hanging").robot.gravity == pytest.approx([0.0, 0.0, 9.81], abs=0.05)
    assert any(note["code"] == "gravity-found" for note in report["notes"])
    assert run("validate", place / "hanging", place / "other.csv", "--json")["verdict"] == "trusted"
    learned = run("validate", place / "hanging", place / "hanging.csv", "--json", code=3)
    assert "learned from it" in learned["reasons"][0]


def test_drive_gains_come_from_a_pair_of_runs_with_and_without_a_weighed_payload(place):
    robot = load_robot(place / "elbow.yaml")
    gains = np.array([12.0, 9.0, 7.5])
    effects = replace(FRICTION, torques=TorqueSide.MOTOR, payload=PayloadRuns.BOTH)
    carried = from_centre_of_mass(2.5, [0.25, 0.02, 0.05], np.eye(3) * 0.01)
    for name, loaded, seed in (("bare", False, 11), ("heavy", True, 12), ("test", False, 13)):
        rng = np.random.default_rng(seed)
        x = fourier_motion(rng, 3, 2500, 100.0)
        source = TorqueRows(robot, effects, loaded=loaded)
        own = TorqueRows(robot, replace(effects, payload=PayloadRuns.NONE))
        values = dict(zip(own.columns, gain_truth(robot, own), strict=True))
        standard = [*(values[c] for c in source.columns if not c.startswith("payload")), *carried]
        current = evaluate_rows(source, x) @ np.array(standard) / gains
        current += coloured(rng, current.shape, 0.003)
        columns = {"time": np.arange(len(x))[:, None] / 100.0, "q": x[:, :3], "i": current}
        write_columns(place / f"{name}.csv", robot, columns)
        mapping = f"""
schema: armid.log/1
name: {name}
file: {name}.csv
clock: {{column: time, unit: s}}
channels:
  position: {{columns: [q_waist, q_shoulder, q_elbow]}}
  torque: {{columns: [i_waist, i_shoulder, i_elbow], side: current, unit: A}}
"""
        (place / f"{name}.yaml").write_text(mapping + ("conditions: {payload: 2.5}\n" if loaded else ""))
    report = run(
        "identify",
        place / "elbow.yaml",
        place / "bare.yaml",
        place / "heavy.yaml",
        "--validate",
        place / "test.yaml",
        "--torques",
        "motor",
        "--payload",
        "both",
        "--out",
        place / "gains",
        "--json",
    )
    found = load_result(place / "gains").gains
    for name, gain in zip(robot.joint_names, gains, strict=True):
        value, deviation = found[name]
        assert abs(value - gain) < 4.0 * deviation
        assert deviation < 0.05 * gain
    assert report["relative_error_held_out"] < 0.05


def gain_truth(robot, source):
    linear = TorqueRows(robot, Effects(viscous=True, coulomb=True, offset=True))
    known = dict(zip(linear.columns, true_standard(robot, linear), strict=True))
    return [known.get(name, 0.1) for name in source.columns]


def chosen_note(report):
    (note,) = [n for n in report["notes"] if n["code"] == "method-chosen"]
    return note["message"]


def test_auto_stays_with_weighted_least_squares_on_a_clean_log(place):
    report, result = identified(place, "--method", "auto", name="auto")
    _, plain = identified(place, name="wls")
    assert "auto took wls: not following outliers changes the median error" in chosen_note(report)
    assert result.provenance.settings["method"] == "wls"
    np.testing.assert_allclose(result.estimate.values, plain.estimate.values, rtol=1e-12)


def test_auto_turns_to_huber_where_a_burst_moves_the_fit(place):
    report, result = identified(place, "--method", "auto", log="spoiled", name="auto-spoiled")
    _, robust = identified(place, "--method", "huber", log="spoiled", name="spoiled-huber")
    assert "auto took huber" in chosen_note(report)
    np.testing.assert_allclose(result.estimate.values, robust.estimate.values, rtol=1e-12)


def test_auto_continues_an_earlier_result_by_weighted_least_squares(place):
    identified(place, name="wls")
    args = ("identify", place / "elbow.yaml", place / "silent.csv", "--prior", place / "wls", "--method", "auto")
    run(*args, "--out", place / "more")
    assert "earlier" in load_result(place / "more").estimate.method


def test_a_reduced_model_is_validated_exported_compared_and_reported_like_any_other(place):
    """Without a parameter of little weight it is trusted; without one that carries the arm it fails, where the whole does not."""
    result, stored, motion = essentials(place, "bic"), place / "essential-bic", place / "silent.csv"
    whole = run("validate", stored, motion, "--json")
    light = run("validate", stored, motion, "--parameters", "essential", "--json")
    assert (whole["parameters"], light["parameters"], light["verdict"]) == ("consistent", "essential", "trusted")
    base = armid.validate(result, motion, parameters="base")
    assert (base.price, light["price"]) == pytest.approx((1.0, light["relative_error_held_out"] / base.relative_error))
    assert light["relative_error_held_out"] != whole["relative_error_held_out"]

    few = {name: v for name, v in result.sensitivity.essential.values.items() if name != "link2.mx"}
    deviations = {name: result.sensitivity.essential.standard_deviations[name] for name in few}
    choice = replace(result.sensitivity.essential, kept=tuple(few), values=few, standard_deviations=deviations)
    crippled = replace(result, sensitivity=replace(result.sensitivity, essential=choice))
    bad = armid.validate(crippled, motion, parameters="essential")
    assert bad.verdict == "untrusted" != armid.validate(crippled, motion).verdict
    assert bad.price > 3.0
    assert bad.joints[1].train.rmse > 2.0 * light["joints"][1]["rmse_train"]
    rows = {row.name: row for row in armid.compare(result, crippled, parameters="essential").rows}
    assert rows["link2.mx"].values[0] != 0.0 == rows["link2.mx"].values[1]
    assert rows["link2.mx"].differences[1] == pytest.approx(-few_deviations(result, "link2.mx"), rel=1e-9)
    with pytest.raises(ExportRefusedError, match="reduced to"):
        export_result(crippled, Format.PYTHON, place / "crippled", parameters=Parameters.ESSENTIAL)

    written = run("export", stored, "--to", "json", "--parameters", "essential", "--json")
    assert any("essential of" in line for line in json.loads(Path(written["file"]).read_text())["comments"])
    assert "not bodies" in run("export", stored, "--to", "urdf", "--parameters", "essential", code=1).stderr
    run("report", stored)
    assert "Held-out error of the reduced model" in (stored / "report.html").read_text()


def few_deviations(result, name):
    """How many deviations an essential parameter is from zero."""
    found = result.sensitivity.essential
    return found.values[name] / found.standard_deviations[name]
