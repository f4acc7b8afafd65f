"""Calibrated kinematics in the dynamics, on physics that is not ours: MuJoCo moves a misbuilt, tilted arm.

Everything between the simulated arm and the numbers goes through files and commands: tracked poses to a correction,
recorded torque with it to parameters.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot
from armid.kinematics.model import ErrorModel
from armid.kinematics.rotations import rotation_exp
from armid.kinematics.words import UnknownGeometry
from armid.logs.log import Channel
from armid.motions.fourier import FourierTrajectory
from armid.robot.load import load_robot
from armid.robot.yaml_write import to_yaml
from armid.simulation import (
    EncoderErrors,
    LogFormat,
    Physics,
    Tracker,
    measure,
    run_motion,
    track_poses,
    typical_sensors,
    write_log,
    write_poses,
)
from armid.simulation.tracker import true_positions
from armid.simulation.variation import varied
from support import browser, identified

TILT = np.array([0.025, -0.018, 0.0])
"""[rad] 1.8 degrees: a base bolted to a floor that is not level."""

ENCODERS = EncoderErrors(eccentricity=(6e-3, 9e-3, 8e-3), eccentricity_phase=(0.3, -1.0, 2.0), compliance=2e-4)


def run(*words: object) -> dict:
    result = CliRunner().invoke(application(), [str(word) for word in words])
    assert result.exit_code in (0, 3), result.stderr
    return json.loads(result.stdout)


def misbuilt(nominal, rng):
    """The arm with a good part of the usual tolerances, other bodies, and a base that leans."""
    model = kinematic_model(nominal, ErrorModel(UnknownGeometry.HAYATI), setups={}, targets={})
    values = model.tolerances * rng.normal(size=len(model.parameters))
    for i, name in enumerate(model.names):
        # What no measurement of the tool tells from the frames of tracker and tool.
        if name.startswith("link1.") or name in ("link3.theta", "link3.d"):
            values[i] = 0.0
    R_world_base = rotation_exp(TILT[np.newaxis])[0]
    arm = varied(calibrated_robot(model, values), 0.15, rng).mounted(R_world_base)
    # Little dry friction: what joints do around a reversal would hide a per mille of kinematics.
    drives = (replace(joint.drive, coulomb=0.1 * joint.drive.coulomb) for joint in arm.joints)
    joints = tuple(replace(joint, drive=drive) for joint, drive in zip(arm.joints, drives, strict=True))
    return replace(arm, joints=joints), R_world_base


def fourier(nominal, seed) -> FourierTrajectory:
    rng = np.random.default_rng(seed)
    sine, cosine = rng.normal(size=(2, nominal.n_joints, 5)) * 0.35 / np.sqrt(np.arange(1, 6))
    return FourierTrajectory(nominal.joint_names, 10.0, np.zeros(nominal.n_joints), sine, cosine)


def shown_by_encoders(real, q):
    """What encoders show when the links stand at q: the inverse of the tracker's own error model, by iteration."""
    shown = np.array(q)
    for _ in range(30):
        shown = shown - (true_positions(real, shown, ENCODERS, None) - q)
    return shown


def recorded(nominal, real, seed, path, *, encoders):
    """A log of the real arm, with or without errors of its encoders."""
    motion = run_motion(
        real, fourier(nominal, seed), declared=nominal, physics=Physics(step=2e-3, control_rate_hz=500.0)
    )
    sensors = typical_sensors(0.2 * nominal.limit("torque"))
    sensors = replace(sensors, torque=replace(sensors.torque, saturation=np.inf))
    log = measure(motion, replace(sensors, motor=None), declared=nominal, seed=seed)
    keep = (Channel.POSITION, Channel.LINK_TORQUE)
    channels = {c: np.array(log[c]) for c in keep}
    if encoders:
        channels[Channel.POSITION] += shown_by_encoders(real, motion.q) - motion.q
    return write_log(replace(log, channels=channels), path, LogFormat.CSV)


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """A levelled tracker beside the leaning arm; logs with good encoders and with bad ones."""
    folder = tmp_path_factory.mktemp("cell")
    nominal = load_robot(str(identified.urdf_file()))
    rng = np.random.default_rng(5)
    real, R_world_base = misbuilt(nominal, rng)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R_world_base, (1.5, 0.3, 0.2)
    target = np.eye(4)
    target[:3, 3] = (0.1, 0.05, 0.2)
    tracker = Tracker(T, target, position_noise=3e-5, orientation_noise=1e-4)
    q = rng.uniform(-1.8, 1.8, (60, 3))
    for name, errors in (("good", None), ("bad", ENCODERS)):
        write_poses(track_poses(real, q, tracker, errors=errors, seed=2), folder / f"poses_{name}.csv")
        for seed in (3, 4):
            recorded(nominal, real, seed, folder / f"log_{name}{seed}.csv", encoders=errors is not None)
    return folder, nominal, real


def identify(cell, which, *more):
    """Without imperfections: a tilt, or encoders that err, would be found there too, and hide what the calibration does."""
    folder = cell[0]
    return run(
        "identify",
        identified.urdf_file(),
        folder / f"log_{which}3.csv",
        "--validate",
        folder / f"log_{which}4.csv",
        "--out",
        folder / f"identified_{which}",
        "--imperfections",
        "none",
        "--json",
        *more,
    )


def calibrated(cell, which, terms):
    folder = cell[0]
    out = folder / f"calibrated_{which}"
    data = run(
        "calibrate",
        identified.urdf_file(),
        folder / f"poses_{which}.csv",
        "--model",
        "hayati",
        "--terms",
        terms,
        "--out",
        out,
        "--json",
    )
    return data, out / "correction.json"


@pytest.fixture(scope="module")
def good(cell):
    data, correction = calibrated(cell, "good", "offset")
    assert data["position_error_after"]["mean"] < 0.05 * data["position_error_before"]["mean"]
    return identify(cell, "good", "--correction", correction, "--find-gravity"), correction


def angle(a, b):
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), np.dot(a, b)))


def test_tilt_is_recovered_and_held_out_torque_improves(cell, good):
    _, nominal, real = cell
    data, _ = good
    described, fitted, levelled = data["hand_over"]["results"]
    errors = [r["relative_error_held_out"] for r in (described, fitted, levelled)]
    assert errors[2] < 0.4 * errors[0]
    assert errors[2] < 0.4 * errors[1]  # the tilt matters most
    assert angle(real.gravity, nominal.gravity) > np.radians(1.5)
    assert angle(levelled["gravity"], real.gravity) < np.radians(0.1)
    assert np.allclose(described["gravity"], nominal.gravity)


def test_calibration_alone_matters_once_gravity_is_known(cell, good):
    """Nominal kinematics with the true gravity against calibrated kinematics with it.

    Joint zeros turn link frames, which the bodies' parameters absorb; what is left are axes and lengths.
    """
    _, _, real = cell
    down = ",".join(repr(float(x)) for x in real.gravity)
    without = identify(cell, "good", f"--gravity={down}")
    assert good[0]["relative_error_held_out"] < 0.9 * without["relative_error_held_out"]


def test_gravity_may_be_given_in_either_frame(cell, good):
    """In the base frame, or in the frame of the levelled tracker, whose calibration says how the base stands in it."""
    _, _, real = cell
    correction = good[1]
    down = ",".join(repr(float(x)) for x in real.gravity)
    g = float(np.linalg.norm(real.gravity))
    in_base = identify(cell, "good", "--correction", correction, f"--gravity={down}")
    in_sensor = identify(cell, "good", "--correction", correction, f"--gravity=0,0,{-g}", "--gravity-frame", "sensor")
    a, b = (data["hand_over"]["results"][-1] for data in (in_base, in_sensor))
    assert angle(a["gravity"], real.gravity) < 1e-9
    assert angle(b["gravity"], real.gravity) < 2e-4  # as well as the tracker's orientation noise allows
    found = good[0]["relative_error_held_out"]
    for data in (in_base, in_sensor):
        assert data["relative_error_held_out"] == pytest.approx(found, rel=0.1)
    wrong = CliRunner().invoke(
        application(), ["identify", "panda", "x.csv", "--gravity=0,0,-9.81", "--gravity-frame", "sensor"]
    )
    assert wrong.exit_code == 1
    assert "--correction to place it" in wrong.stderr


def test_encoder_errors_of_the_correction_are_taken_off_the_log(cell):
    """Eccentric encoders and sagging joints: the correction's terms beside its geometry alone."""
    rich, correction = calibrated(cell, "bad", "offset,eccentricity,compliance")
    assert "eccentricity" in rich["terms"]
    plain = json.loads(Path(correction).read_text())
    plain["parameters"] = {
        name: value
        for name, value in plain["parameters"].items()
        if not any(word in name for word in ("eccentricity", "compliance"))
    }
    bare = cell[0] / "bare.json"
    bare.write_text(json.dumps(plain))
    without = identify(cell, "bad", "--correction", bare, "--find-gravity")
    with_terms = identify(cell, "bad", "--correction", correction, "--find-gravity")
    assert with_terms["relative_error_held_out"] < 0.8 * without["relative_error_held_out"]
    notes = [note["message"] for note in with_terms["notes"] if note["code"] == "encoders-corrected"]
    assert notes
    assert "joint2.eccentricity_sin" in notes[0]
    assert not [note for note in without["notes"] if note["code"] == "encoders-corrected"]
    page = next(Path(f) for f in with_terms["files"] if f.endswith("hand_over.html")).read_text()
    assert f"With calibrated kinematics the {notes[0]}." in page


def test_the_page_shows_torque_and_parameters_on_the_screen(good, tmp_path):
    page = next(Path(f) for f in good[0]["files"] if f.endswith("hand_over.html"))
    with browser.Browser(tmp_path / "profile") as screen:
        screen.open(page.as_uri())
        asked = "[...document.querySelectorAll('.plot rect.bar')].length"
        bars = 0
        for _ in range(100):
            bars = screen.call("Runtime.evaluate", expression=asked)["result"].get("value", 0)
            if bars:
                break
        text = screen.call("Runtime.evaluate", expression="document.body.innerText")["result"]["value"]
    assert bars >= 2 * len(good[0]["hand_over"]["parameters"]) * 0.9  # fig. 7: two bars per parameter, and the joints'
    assert "The error of torque on held-out motion falls by" in text
    assert "calibrated, gravity levelled" in text


def test_poses_files_carry_names_and_the_real_arm_survives_its_file(cell):
    """The misbuilt arm written as YAML is the same arm: what other tools would simulate."""
    folder, nominal, real = cell
    (folder / "real.yaml").write_text(to_yaml(real))
    again = load_robot(str(folder / "real.yaml"))
    assert np.allclose(again.gravity, real.gravity)
    with (folder / "poses_good.csv").open() as handle:
        assert next(csv.reader(handle))[:3] == list(nominal.joint_names)
