"""A SCARA that is in no catalogue, from its URDF to files: units that mix, and a slide whose weight looks like an offset."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.design.motion import Design
from armid.export.gate import pinocchio_model
from armid.identification.result import Result
from armid.kernels.dynamics import inverse_dynamics
from armid.logs import Channel
from armid.robot.robot import JointKind, Robot
from armid.robot.urdf.arm import parse_urdf
from armid.studies.arms import random_motion
from support.scara import SCARA_URDF


@cache
def designed(criterion: str | None) -> Design:
    arm = parse_urdf(SCARA_URDF)
    return armid.design_motion(
        arm, torques="motor", criterion=criterion, period=8.0, harmonics=4, starts=1, seconds=0.0, workers=1
    )


def typical_deviation(design: Design) -> float:
    """Geometric mean of the expected deviations: units are a common factor."""
    return float(np.exp(np.log(design.deviations).mean()))


def test_the_default_motion_uses_the_arm_where_the_condition_number_alone_leaves_it_idle():
    own, condition, volume = (designed(word) for word in (None, "condition", "log-det"))
    assert condition.condition_number < own.condition_number, "each is good at what it was asked for"
    assert typical_deviation(own) < 0.5 * typical_deviation(condition)
    assert typical_deviation(own) < 1.1 * typical_deviation(volume)
    used, idle = (np.asarray(d.certificate.usage["torque"]) for d in (own, condition))
    assert used[:2].min() > 5.0 * idle[:2].max()


def test_the_answer_says_what_the_motion_uses_and_what_stays_weak():
    text = designed(None).summary()
    assert "noise" in text
    assert "above 15 %" in text
    for joint in ("shoulder", "elbow", "slide", "roll"):
        assert joint in text


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Robot, Result]:
    """The specimen, 15 % off its description, and what was learnt from one motion of it and tested on another."""
    path = tmp_path_factory.mktemp("scara") / "scara.urdf"
    path.write_text(SCARA_URDF, encoding="utf-8")
    arm = armid.load_robot(path)
    drives = {"rotor_ratio": 0.5, "friction_ratio": 0.05}
    motions = [random_motion(arm, seed, seconds=8.0) for seed in (0, 1)]
    ran = [
        armid.simulate(arm, motion, variation=0.15, sensors="typical", rate_hz=100.0, seed=3, **drives)
        for motion in motions
    ]
    result = armid.identify(arm, ran[0].log, validate=ran[1].log, torques="motor", sensitivity=False)
    return ran[0].experiments[0].run.robot, result


def test_force_of_the_slide_without_its_gear_ratio_is_said_to_be_that() -> None:
    arm = parse_urdf(SCARA_URDF)
    logs = []
    for seed in (0, 1):
        ran = armid.simulate(arm, random_motion(arm, seed, seconds=12.0), rate_hz=100.0, seed=seed).log
        force = np.array(ran.channels[Channel.MOTOR_TORQUE])
        force[:, 2] /= 50.0
        logs.append(replace(ran, channels={**ran.channels, Channel.MOTOR_TORQUE: force}))
    result = armid.identify(arm, logs[0], validate=logs[1], torques="motor", sensitivity=False)
    assert result.verdict == "untrusted"
    assert any("all that slide carries" in why and "a ratio of about 5" in why for why in result.reasons)


def test_weight_and_offset_of_the_slide_are_one_and_the_weight_keeps_it(identified):
    truth, result = identified
    assert result.robot.joints[2].kind is JointKind.PRISMATIC
    note = next(note for note in result.notes if note.code == "offset-is-weight")
    assert "offset" in note.subject
    assert "mass" in note.message
    weight = sum(float(link.inertial[0]) for link in truth.links[2:])
    found = sum(float(link.inertial[0]) for link in result.robot.links[2:])
    assert found == pytest.approx(weight, rel=0.03)


def test_the_file_holds_gravity(identified, tmp_path: Path):
    truth, result = identified
    assert result.verdict == "trusted", result.reasons
    result.export(tmp_path / "scara.urdf")
    text = (tmp_path / "scara.urdf").read_text(encoding="utf-8")
    assert "held-out" in text.lower()
    model = pinocchio_model(result.robot, text)
    assert model is not None
    q, still = np.array([0.3, -0.8, -0.1, 0.5]), np.zeros(4)
    expected = inverse_dynamics(truth, q, still, still)[0]
    np.testing.assert_allclose(model(q, still, still)[2], expected[2], rtol=0.03)
