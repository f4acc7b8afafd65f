"""The file is judged, not the model behind it: read back, held against held-out torque, refused when worse than before."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import yaml

from armid.documents import write_text
from armid.export.export import Format, export_result
from armid.export.gate import ReloadError, reload_checks
from armid.export.judged import FileRefusedError, JointFileError, drives_of, file_errors
from armid.export.losses import HELD
from armid.export.refit import without_offsets
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.robot.urdf.arm import parse_urdf
from armid.robot.urdf.rotors import with_rotors
from armid.robot.urdf.update import updated_urdf
from armid.simulation.variation import varied
from support.identified import URDF, log, trusted, urdf_file
from support.robot_files import with_gripper

EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)


@cache
def offset_arm() -> Result:
    """The trio with offsets of half its torque: a file without them predicts worse than the description does with its own."""
    robot = load_robot(str(urdf_file()))
    drives = [
        replace(j, drive=replace(j.drive, rotor_inertia=0.2, offset=0.0 if i else 6.0))
        for i, j in enumerate(robot.joints)
    ]
    truth = replace(varied(robot, 0.1, np.random.default_rng(1)), joints=tuple(drives))
    logs = [log(robot, truth, seed=seed) for seed in (3, 5)]
    result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
    # As if the description had known the offset: only then is a file without it worse than what was there before.
    joints = tuple(
        replace(j, drive=replace(j.drive, offset=t.drive.offset)) for j, t in zip(robot.joints, truth.joints)
    )
    return replace(result, described=replace(robot, joints=joints))


def test_the_models_own_error_is_that_of_a_file_that_drops_nothing():
    result = trusted()
    found = file_errors(result, drives_of(result.robot, *HELD[Format.C]), plain=drives_of(result.robot))
    assert found is not None
    assert found.file == pytest.approx(result.relative_error["held_out"], rel=1e-9)
    for mine, theirs in zip(found.joints, result.joints, strict=True):
        assert mine.file == pytest.approx(theirs.held_out.rmse, rel=1e-9)
    assert found.plain > 2.0 * found.file


def test_the_error_of_the_file_stands_in_it_and_in_the_answer(tmp_path: Path):
    done = export_result(trusted(), Format.URDF, tmp_path)
    assert done.errors is not None
    text = done.files[0].read_text()
    assert f"{100 * done.errors.file:.3g} %" in text
    assert "do not read the rotor inertia" in text
    assert all(f"{'To know' if line in done.to_know else 'Missing'}: {line}." in text for line in done.missing)
    assert done.errors.model < done.errors.file < done.errors.plain
    json.dumps(done.errors.as_dict())


def test_a_file_worse_than_the_description_is_refused_with_the_way_out(tmp_path: Path):
    with pytest.raises(
        FileRefusedError, match=r"waist .* against .*offset.*--to mjcf, python, c or json.*--friction viscous,coulomb"
    ):
        export_result(offset_arm(), Format.URDF, tmp_path)
    assert list(tmp_path.iterdir()) == []
    for holds_offsets in (Format.MJCF, Format.C):
        done = export_result(offset_arm(), holds_offsets, tmp_path)
        assert done.errors is not None
        assert done.errors.file == pytest.approx(done.errors.model)


@cache
def leaning_arm() -> Result:
    """The trio, which has no offsets, with bodies too light by a fifth and offsets that make up for it where it was held out."""
    robot = load_robot(str(urdf_file()))
    truth = varied(robot, 0.02, np.random.default_rng(1))
    logs = [log(robot, truth, seed=seed) for seed in (3, 5)]
    result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
    values, names = np.array(result.consistent.values), result.consistent.names
    values[[name.startswith("link") for name in names]] *= 0.8
    assert result.held_out_information is not None
    for channel, joint in zip(result.held_out_information.channels, range(1, 4), strict=True):
        place = names.index(f"joint{joint}.offset")
        values[place] = 0.0
        column = channel.R[:, list(channel.columns).index(place)]
        left = channel.z - channel.R @ values[channel.columns]
        values[place] = column @ left / (column @ column)
    return replace(result, consistent=replace(result.consistent, values=values))


def test_bodies_that_lean_on_offsets_are_estimated_anew_for_a_file_without_them(tmp_path: Path):
    result = leaning_arm()
    held = file_errors(result, drives_of(result.robot, *HELD[Format.URDF]), plain=drives_of(result.robot))
    assert held is not None
    assert held.worse
    done = export_result(result, Format.URDF, tmp_path)
    assert done.errors is not None
    assert not done.errors.worse
    assert done.errors.file < 0.1 * held.file
    assert done.errors.model == pytest.approx(held.model)
    assert any("estimated anew without offsets" in line for line in done.missing)
    assert "estimated anew without offsets" in done.files[0].read_text()


def test_what_needs_its_offsets_is_not_mended_by_leaving_them_out():
    without = without_offsets(offset_arm())
    assert without is not None
    assert not without.robot.drive("offset").any()
    before, after = (
        file_errors(arm, drives_of(arm.robot, *HELD[Format.URDF]), plain=drives_of(arm.robot))
        for arm in (offset_arm(), without)
    )
    assert before is not None
    assert after is not None
    assert after.beside(before).worse


def test_a_file_that_lost_nothing_is_as_good_as_the_model_that_was_judged():
    joint = JointFileError(name="wrist", file=0.031, plain=0.031, model=0.031, description=0.025, relative=0.2)
    assert not joint.worse  # noise of a light joint, which the gate compares beyond chance
    assert replace(joint, file=0.04).worse
    assert not replace(joint, file=0.04, description=0.05).worse
    assert not replace(joint, file=0.04, relative=0.005).worse


def test_forced_it_is_marked(tmp_path: Path):
    done = export_result(offset_arm(), Format.URDF, tmp_path, force=True)
    assert "UNVALIDATED" in done.files[0].name
    assert "waist is predicted worse than by the description" in done.files[0].read_text()


def test_rotor_inertia_survives_a_urdf_by_drakes_tags(tmp_path: Path):
    done = export_result(trusted(), Format.URDF, tmp_path)
    again = load_robot(done.files[0])
    assert again.drive("rotor_inertia") == pytest.approx(trusted().robot.drive("rotor_inertia"))
    assert pin.buildModelFromXML(done.files[0].read_text().replace("package://trio/column.stl", "")).nq == 3


def test_tags_of_a_transmission_that_is_there_are_replaced():
    own = (
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="waist"/>'
        '<actuator name="m"><drake:rotor_inertia value="1e-4"/><drake:gear_ratio value="100"/></actuator></transmission>'
    )
    text = URDF.replace('<robot name="trio">', '<robot name="trio" xmlns:drake="http://drake.mit.edu">')
    text = text.replace("</robot>", own + "</robot>")
    robot = parse_urdf(text)
    assert robot.drive("rotor_inertia").tolist() == [1.0, 0.0, 0.0]
    joints = tuple(replace(j, drive=replace(j.drive, rotor_inertia=0.25)) for j in robot.joints)
    new = with_rotors(text, replace(robot, joints=joints))
    assert parse_urdf(new).drive("rotor_inertia").tolist() == [0.25, 0.25, 0.25]
    assert new.count("<transmission") == 3
    assert new.count("xmlns:drake") == 1


def test_the_table_beside_the_urdf_has_every_drive(tmp_path: Path):
    done = export_result(trusted(), Format.URDF, tmp_path)
    table = yaml.safe_load(next(f for f in done.files if f.suffix == ".yaml").read_text())
    for joint in trusted().robot.joints:
        row, drive = table["joints"][joint.name], joint.drive
        assert (row["armature"], row["damping"], row["friction"], row["offset"]) == (
            drive.rotor_inertia,
            drive.viscous,
            drive.coulomb,
            drive.offset,
        )


def test_fingers_keep_their_mass_when_the_identified_hand_is_lighter(tmp_path: Path):
    text = with_gripper()
    robot = parse_urdf(text)
    last = robot.n_joints - 1
    light = np.array(robot.inertial)
    light[10 * last :] *= 0.3
    new = updated_urdf(text, robot.with_inertial(light))
    assert np.allclose(parse_urdf(new).inertial, light, rtol=1e-9, atol=1e-12)
    model = mujoco.MjModel.from_xml_path(str(write_text(tmp_path / "arm.urdf", new)))
    moving = [int(model.jnt_bodyid[i]) for i in range(model.njnt)]
    assert all(model.body_mass[body] > 0.0 for body in moving)


def test_a_joint_that_looks_like_a_grippers_is_named():
    text = URDF.replace('"elbow"', '"gripper_joint"')
    note = next(note for note in parse_urdf(text).notes if note.code == "gripper-joint")
    assert "'gripper_joint'" in note.message
    assert "--tip upper" in note.message
    assert all(note.code != "gripper-joint" for note in parse_urdf(text, tip="upper").notes)


def test_what_a_program_refuses_in_the_description_already_is_no_fault_of_the_file():
    flat = (
        '<link name="antenna"><inertial><mass value="0.1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/>'
        '</inertial></link><joint name="a" type="continuous"><parent link="base"/><child link="antenna"/></joint></robot>'
    )
    text = URDF.replace("</robot>", flat)
    robot = parse_urdf(text, tip="fore")
    told = {check.program: check for check in reload_checks(robot, text, mjcf=False, original=text)}
    assert "antenna" in told["MuJoCo"].refusal
    assert told["MuJoCo"].words().startswith("MuJoCo refuses what the description itself says: ")
    assert told["MuJoCo"].words().count("refuses") == 1
    assert told["Pinocchio"].difference < 1e-9
    with pytest.raises(ReloadError, match=r"^MuJoCo refuses the exported file: .*antenna"):
        reload_checks(robot, text, mjcf=False)
    # The description was refused for another link first, which the export has mended.
    worse = text.replace(
        'ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.03"',
        'ixx="0.05" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"',
    )
    told = {check.program: check for check in reload_checks(robot, text, mjcf=False, original=worse)}
    assert "antenna" in told["MuJoCo"].refusal
    with pytest.raises(ReloadError, match="column"):
        reload_checks(robot, worse, mjcf=False, original=text)


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_files_of_arms_on_something_free_to_move_are_read_back_alike(kind: str):
    cart = f'<link name="map"/><joint name="drive" type="{kind}"><parent link="map"/><child link="base"/>'
    text = URDF.replace("</robot>", cart + '<origin xyz="1 0 0.2" rpy="0.3 0 0"/></joint></robot>')
    body = '<inertial><mass value="9"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    text = text.replace('<link name="base"/>', f'<link name="base">{body}</link>')
    robot = parse_urdf(text)
    assert all(read.difference < 1e-9 for read in reload_checks(robot, text, mjcf=False, original=text))
