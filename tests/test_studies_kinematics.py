"""The 2 x 2 study of [Kolyubin2017] fig. 6: nominal or calibrated kinematics x random way-points or optimised motion."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.documents import plain
from armid.errors import InputError, UnknownNameError
from armid.identifiability.expectation import trajectory_condition
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.build import kinematic_model
from armid.kinematics.correction import FORMAT, load_correction
from armid.kinematics.model import ErrorModel
from armid.kinematics.words import UnknownGeometry
from armid.motions.trajectory import grid
from armid.motions.trajectory_files import load_trajectory
from armid.outcome import Verdict
from armid.parameters.effects import TorqueSide
from armid.robot.load import load_robot
from armid.studies.kinematics.comparison import Study, StudySettings
from armid.studies.kinematics.misbuilt import misbuilt, target
from armid.studies.kinematics.motions import DESIGN_EFFECTS, random_points, room_of
from armid.studies.kinematics.study import payloads_of, run_study
from support import identified, kolyubin
from support.outcomes import check_kept

SMALL = StudySettings(seconds=12.0, motions=2, repetitions=2, payload=0.0, torques=TorqueSide.LINK)


def run(*words: object):
    return CliRunner().invoke(application(), [str(word) for word in words])


@pytest.fixture(scope="module")
def lwr() -> Study:
    """The published arm, smaller than by default: joint torque alone, no payload, short motions."""
    return run_study(load_robot("lwr4plus"), SMALL)


def test_calibrated_kinematics_and_optimised_motion_spread_least(lwr):
    """Fig. 6: the way-points' relative standard deviations are halved, and more."""
    way, best = (np.median(lwr.relative(lwr.cases[k].spread)) for k in (2, 3))
    assert best < 0.5 * way
    assert best == min(np.median(lwr.relative(case.spread)) for case in lwr.cases)
    assert lwr.cases[3].label == "ID OT"


def test_and_are_nearest_to_the_truth(lwr):
    errors = [np.median(lwr.relative(case.error(lwr.truth))) for case in lwr.cases]
    assert errors[3] < 1.1 * min(
        errors
    )  # of so few recordings noise makes a tie; the whole study has 0.27 against 0.39 %
    assert errors[3] < 0.25 * errors[0]
    held_out = [case.relative_error.mean() for case in lwr.cases]
    assert held_out[3] == min(held_out)
    assert held_out[3] < 0.75 * held_out[1]  # calibration alone, same recordings
    assert held_out[2] < held_out[0]


def test_calibration_changes_parameters_by_more_than_noise_does(lwr):
    """Fig. 7: the same recordings, so that noise is common to both beliefs and what is left is kinematics."""
    noise = lwr.relative(lwr.cases[1].repeatability)
    assert np.mean(np.abs(lwr.changes(1)) > 2.0 * noise) > 0.3


def test_the_published_arm_is_table_2(lwr):
    """Against plain products of the table's rows, written in the tests."""
    q = np.random.default_rng(0).uniform(-1, 1, (20, 7)) * kolyubin.LIMITS
    nominal = load_robot("lwr4plus")
    for table, robot in ((kolyubin.NOMINAL, nominal), (kolyubin.TRUE, lwr.real.robot)):
        T = forward_kinematics(robot, q, robot.frame("link7"))
        rows = [(0.0, 0.0, 0.0, 0.31), *table[2:8]]
        want = np.tile(np.eye(4), (len(q), 1, 1))
        for i, (alpha, a, theta, d) in enumerate(rows):
            want = want @ np.array([target((alpha, a, theta + x, d)) for x in q[:, i]])
        assert np.abs(T - want).max() < 1e-12
    assert lwr.kinematics.position_before.mean == pytest.approx(5.6e-3, rel=0.15)
    assert lwr.kinematics.position_after.mean < 0.1e-3
    assert len(lwr.kinematics.poses) == 17


def test_both_kinds_of_motion_last_equally_long_and_keep_the_limits(lwr):
    room = room_of(load_robot("lwr4plus"))
    for motion in (m for kind in lwr.motions for m in kind):
        assert motion.trajectory.duration == pytest.approx(12.0, abs=1e-6)
        q, qd, qdd = motion.trajectory.sample(grid(12.0, 200.0))
        assert ((q >= room.limits.lower - 1e-9) & (q <= room.limits.upper + 1e-9)).all()
        assert (np.abs(qd) <= room.limits.velocity * (1.0 + 1e-9)).all()
        assert (np.abs(qdd) <= room.limits.acceleration * (1.0 + 1e-9)).all()
        torque = inverse_dynamics(room.robot, q, qd, qdd, drives=True)
        assert (np.abs(torque) <= room.limits.torque * 1.02).all()  # 200 Hz against the 100 Hz it was checked at
        assert room.scene.is_free(motion.trajectory.sample(grid(12.0, 50.0))[0]).all()
        again = trajectory_condition(room.robot, DESIGN_EFFECTS, motion.trajectory)
        assert motion.condition_number == pytest.approx(again)
    worst = max(m.condition_number for m in lwr.motions[1])
    assert worst < min(m.condition_number for m in lwr.motions[0])


def correction_file(folder: Path) -> Path:
    """Deviations of the three-joint arm, of a good part of the default tolerances."""
    robot = load_robot(str(identified.urdf_file()))
    model = kinematic_model(robot, ErrorModel(UnknownGeometry.HAYATI), setups={}, targets={})
    values = 0.8 * model.tolerances * np.random.default_rng(1).normal(size=len(model.parameters))
    held = ("link1.alpha", "link1.a", "link1.theta", "link1.d", "link3.theta", "link3.d")
    parameters = {n: {"value": 0.0 if n in held else float(v)} for n, v in zip(model.names, values, strict=True)}
    data = {
        "format": FORMAT,
        "robot": {"name": robot.name, "joints": list(robot.joint_names), "sha256": ""},
        "geometry": "hayati",
        "terms": ["offset"],
        "couplings": [],
        "setups": {},
        "targets": {},
        "parameters": parameters,
    }
    path = folder / "real.json"
    path.write_text(json.dumps(data))
    return path


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """Another arm through the command, deviations from a file."""
    folder = tmp_path_factory.mktemp("study")
    words = [
        "study",
        identified.urdf_file(),
        "--correction",
        correction_file(folder),
        "--torques",
        "link",
        "--seconds",
        10,
        "--motions",
        3,
        "--repetitions",
        2,
        "--poses",
        12,
        "--out",
        folder / "out",
        "--json",
    ]
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), folder / "out", words


def test_the_command_on_another_arm(answer):
    data, out, _ = answer
    cases = {case["case"]: case for case in data["cases"]}
    assert set(cases) == {"CAD RP", "CAD OT", "ID RP", "ID OT"}
    error = {label: case["median_relative_error"] for label, case in cases.items()}
    assert error["ID OT"] == min(error.values())
    assert error["ID OT"] < 0.8 * min(error["CAD RP"], error["ID RP"])
    torque = {label: case["relative_error_held_out"] for label, case in cases.items()}
    assert torque["ID OT"] == min(torque.values())
    assert data["position_error_after"]["mean"] < 0.1 * data["position_error_before"]["mean"]
    assert data["base_parameters"] == len(data["parameters"]) > data["essential_parameters"] > 8
    assert json.loads((out / "study.json").read_text())["cases"] == data["cases"]
    assert sorted(str(path) for path in out.iterdir() if path.name != ".armid.json") == sorted(data["files"])


def test_what_it_leaves_can_be_used_again(answer):
    """The stored motions and correction are files of the other verbs."""
    data, out, _ = answer
    robot = load_robot(str(identified.urdf_file()))
    model, values = load_correction(out / "correction.json", robot)
    assert np.isfinite(values).all()
    assert model.robot.n_joints == 3
    stored = load_trajectory(out / "optimised1.json")
    want = next(m for m in data["motions"] if m["kind"] == "optimised motion")
    assert trajectory_condition(robot, DESIGN_EFFECTS, stored) == pytest.approx(want["condition_number"])
    with np.load(out / "estimates.npz") as arrays:
        assert arrays["ID_OT"].shape == (3, 2, data["base_parameters"])
        row = data["parameters"][3]
        assert row["ID OT"]["mean"] == pytest.approx(float(arrays["ID_OT"][..., 3].mean()))


def test_the_page_has_its_figures(answer):
    page = (answer[1] / "report.html").read_text()
    for words in ("Spread of the parameters", "What calibration changed", "link2.mx", "ID OT", '"trace"', '"medians"'):
        assert words in page


def test_the_same_seed_gives_the_same_numbers():
    robot = load_robot(str(identified.urdf_file()))
    settings = replace(SMALL, seconds=4.0, motions=1, poses=8)
    a, b = (run_study(robot, settings) for _ in range(2))
    c = run_study(robot, replace(settings, seed=1))
    for x, y, z in zip(a.cases, b.cases, c.cases, strict=True):
        assert np.array_equal(x.estimates, y.estimates)
        assert not np.array_equal(x.estimates, z.estimates)


def test_bad_input_is_named_and_leaves_nothing(tmp_path):
    arm = identified.urdf_file()
    for words, problem in (
        (("--torques", "difference"), "know nothing of kinematics"),
        (("--seconds", "1"), "more than two seconds"),
        (("--correction", tmp_path / "none.json"), "expected a correction file"),
        (("--trajectory", tmp_path / "none.json"), "no such file"),
    ):
        done = run("study", arm, "--poses", 6, "--out", tmp_path / "out", *words)
        assert done.exit_code == 1, done.output
        assert problem in done.stderr
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "study.json").write_text("x")
    done = run("study", arm, "--out", tmp_path / "mine")
    assert done.exit_code == 1
    assert "was not written by armid" in done.stderr
    with pytest.raises(InputError, match="a spread needs repetitions"):
        StudySettings(repetitions=1)


def test_the_answer_can_be_read(lwr: Study, tmp_path: Path) -> None:
    assert lwr.verdict is Verdict.TRUSTED
    assert "\n" not in repr(lwr)
    assert len(repr(lwr)) < 200
    assert "held-out torque" in lwr.summary()
    assert "tool position error [mm]" in lwr._repr_html_()
    assert lwr.plot("medians").data
    assert lwr.provenance.settings["motions"] == 2
    files = lwr.save(tmp_path / "study")
    check_kept(lwr, tmp_path / "study")
    assert [file.name for file in files][:3] == ["study.json", "estimates.npz", "correction.json"]
    assert json.loads(files[0].read_text()) == json.loads(json.dumps(plain(lwr.as_dict())))
    lwr.save(tmp_path / "study")  # an earlier study is replaced
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    lwr.save(tmp_path / "mine")  # files of others stay
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "x"
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "study.json").write_text("x")
    with pytest.raises(InputError, match="was not written by armid"):
        lwr.save(tmp_path / "theirs")


def test_a_calibration_that_does_not_help_is_not_trusted(lwr: Study) -> None:
    k = lwr.kinematics
    worse = replace(lwr, kinematics=replace(k, position_after=k.position_before))
    assert {check.code for check in worse.checks if not check.passed} >= {"calibration"}
    assert worse.verdict is Verdict.UNTRUSTED
    a, b, c, d = lwr.cases
    blind = replace(lwr, cases=(a, b, c, replace(d, residuals=np.ones_like(d.residuals), relative_error=np.ones(2))))
    assert {check.code for check in blind.checks if not check.passed} >= {"prediction"}
    turned = replace(lwr, cases=(d, b, c, a))
    assert {check.code for check in turned.checks if not check.passed} == {"as-published"}
    assert turned.verdict is Verdict.TRUSTED


def test_the_library_takes_words_and_objects() -> None:
    quick = {"seconds": 4.0, "motions": 1, "repetitions": 2, "poses": 8, "payload_kg": 0.0, "torques": "link"}
    told: list[str] = []
    found = armid.study(load_robot(str(identified.urdf_file())), progress=told.append, **quick)
    again = run_study(load_robot(str(identified.urdf_file())), replace(SMALL, seconds=4.0, motions=1, poses=8))
    assert np.array_equal(found.cases[0].estimates, again.cases[0].estimates)
    assert told[0] == "0 %: measuring poses and calibrating"
    with pytest.raises(UnknownNameError, match="no torques named 'elbow'"):
        armid.study("lwr4plus", torques="elbow")


def test_way_points_slow_down_for_weak_drives():
    """The torque limits hold also where full acceleration would ask for more."""
    robot = load_robot("lwr4plus")
    joints = tuple(replace(j, limits=replace(j.limits, torque=0.45 * j.limits.torque)) for j in robot.joints)
    room = room_of(replace(robot, joints=joints))
    motion = random_points(room, 10.0, np.random.default_rng(0))
    torque = inverse_dynamics(room.robot, *motion.sample(grid(10.0, 200.0)), drives=True)
    assert (np.abs(torque) <= room.limits.torque * 1.02).all()
    assert motion.acceleration[1] < room.limits.acceleration[1]
    assert motion.duration == pytest.approx(10.0, abs=1e-6)


def test_deviations_are_drawn_for_arms_nobody_published_any_for():
    robot = load_robot("panda")
    real = misbuilt(robot, None, np.random.default_rng(0))
    q = np.random.default_rng(1).uniform(-1, 1, (50, robot.n_joints))
    away = np.linalg.norm((forward_kinematics(real.robot, q) - forward_kinematics(robot, q))[:, :3, 3], axis=1)
    assert 1e-3 < away.mean() < 2e-2
    assert payloads_of(robot, StudySettings()) == (None,)
    assert len(payloads_of(load_robot("lwr4plus"), StudySettings())) == 2
