from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.logs import Channel, Log
from support.realdata import real_data
from support.recordings import recording

RUNNER = CliRunner()

ROBOT = """
<robot name="testarm">
  <link name="base"/>
  {links}
  {joints}
</robot>
"""


def urdf() -> str:
    """The arm of `recordings.arm` as a URDF."""
    from armid.parameters.inertial import to_centre_of_mass
    from support.recordings import arm

    robot = arm()
    links, joints = [], []
    parent = "base"
    for joint, link in zip(robot.joints, robot.links, strict=True):
        mass, c, I = to_centre_of_mass(link.inertial)
        links.append(
            f'<link name="{link.name}"><inertial><origin xyz="{c[0]} {c[1]} {c[2]}"/><mass value="{mass}"/>'
            f'<inertia ixx="{I[0, 0]}" ixy="{I[0, 1]}" ixz="{I[0, 2]}" iyy="{I[1, 1]}" iyz="{I[1, 2]}" izz="{I[2, 2]}"/>'
            "</inertial></link>"
        )
        axis = {"Rx": "1 0 0", "Ry": "0 1 0", "Rz": "0 0 1"}[joint.transforms[-1].motion.value]
        z = joint.transforms[0].value
        joints.append(
            f'<joint name="{joint.name}" type="revolute"><parent link="{parent}"/><child link="{link.name}"/>'
            f'<origin xyz="0 0 {z}"/><axis xyz="{axis}"/><limit lower="-2.8" upper="2.8" velocity="3" effort="200"/></joint>'
        )
        parent = link.name
    return ROBOT.format(links="\n".join(links), joints="\n".join(joints))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("check")
    (place / "arm.urdf").write_text(urdf())
    write(place / "clean.npz", recording())
    return place


def write(path, log: Log, sign: float = 1.0) -> None:
    np.savez(
        path, time=log.time, q=log[Channel.POSITION], qd=log[Channel.VELOCITY], tau=sign * log[Channel.LINK_TORQUE]
    )


def run(*words: object):
    return RUNNER.invoke(application(), ["check", *map(str, words)])


def test_a_clean_log_is_ok(folder):
    result = run(folder / "arm.urdf", folder / "clean.npz", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["ok"] is True
    assert answer["problems"] == []
    assert answer["logs"][0]["samples"] == 4000
    assert {note["code"] for note in answer["notes"]} >= {"mapping-guess"}


def test_an_error_gives_exit_three_and_is_named(folder):
    write(folder / "reversed.npz", recording(), sign=-1.0)
    result = run(folder / "arm.urdf", folder / "clean.npz", folder / "reversed.npz", "--json", "--out", folder / "out")
    assert result.exit_code == 3
    answer = json.loads(result.stdout)
    assert answer["ok"] is False
    first = answer["problems"][0]
    assert {"code", "severity", "message", "subject"} <= set(first)
    assert {p["code"] for p in answer["problems"]} == {"torque-sign"}
    assert {p["log"] for p in answer["problems"]} == {"reversed"}
    assert answer.pop("files") == [str(folder / "out" / "check.json")]
    assert json.loads((folder / "out" / "check.json").read_text()) == answer
    assert "torque-sign" in result.stderr


def test_what_could_be_wrong_is_asked_for(folder):
    torque = np.array(recording()[Channel.LINK_TORQUE])
    torque[:, 0] *= -1.0  # round a vertical axis: no weight tells, friction that would drive does
    log = recording()
    np.savez(folder / "first.npz", time=log.time, q=log[Channel.POSITION], qd=log[Channel.VELOCITY], tau=torque)
    answer = json.loads(run(folder / "arm.urdf", folder / "first.npz", "--faults", "--json").stdout)
    # A reversed torque may look like other mistakes of the same sensor besides; the sign itself must be found.
    signs = [fault for fault in answer["faults"] if fault["answer"] == "found" and fault["fault"] == "torque-sign"]
    assert [fault["subject"] for fault in signs] == [recording().joints[0]]
    clean = json.loads(run(folder / "arm.urdf", folder / "clean.npz", "--faults", "--json").stdout)
    assert not [fault for fault in clean["faults"] if fault["answer"] == "found" and fault["large"]]


def test_what_was_found_goes_to_stdout(folder):
    write(folder / "reversed.npz", recording(), sign=-1.0)
    result = run(folder / "arm.urdf", folder / "clean.npz", folder / "reversed.npz")
    assert result.exit_code == 3
    for text in ("clean: usable", "reversed: not to be used as it is", "torque-sign", "untrusted"):
        assert text in result.stdout


@pytest.mark.parametrize(
    "words", [["{robot}", "{log}", "--side", "left"], ["{robot}", "{log}", "--format", "stone"], [], ["{robot}"]]
)
def test_unknown_words_and_missing_arguments_are_usage(folder, words):
    filled = [word.format(robot=folder / "arm.urdf", log=folder / "clean.npz") for word in words]
    assert run(*filled).exit_code == 2


def test_the_thresholds_need_no_log(folder):
    result = run("--thresholds")
    assert result.exit_code == 0
    assert "reason" in result.stdout
    table = json.loads(run("--thresholds", "--json").stdout)["logs"]
    assert json.loads(run("--json", "--thresholds").stdout)["logs"] == table
    assert len({each["name"] for each in table}) == len(table) > 30
    assert all(each["reason"] for each in table)
    calibrations = json.loads(run("--thresholds", "--json").stdout)["calibrations"]
    assert {"blocked-folds", "beyond-range"} <= {each["name"] for each in calibrations}


def test_the_library_gives_what_the_command_prints(folder):
    printed = json.loads(run(folder / "arm.urdf", folder / "clean.npz", "--json").stdout)
    del printed["files"]
    assert armid.check_log(folder / "clean.npz", str(folder / "arm.urdf")).as_dict() == printed


def test_options_reach_the_reader(folder):
    log = recording()
    columns = np.hstack([log[Channel.POSITION], log[Channel.LINK_TORQUE]])
    names = [f"q{i + 1}" for i in range(4)] + [f"tau{i + 1}" for i in range(4)]
    np.savetxt(folder / "bare.csv", columns, delimiter=",", header=",".join(names), comments="")
    without = json.loads(run(folder / "arm.urdf", folder / "bare.csv", "--json").stdout)
    assert "clock-unknown" in {p["code"] for p in without["problems"]}
    with_step = run(folder / "arm.urdf", folder / "bare.csv", "--step", "0.005", "--json")
    assert with_step.exit_code == 0
    current = json.loads(
        run(folder / "arm.urdf", folder / "bare.csv", "--step", 0.005, "--side", "current", "--json").stdout
    )
    assert "torque-in-ampere" in {p["code"] for p in current["problems"]}
    hanging = json.loads(run(folder / "arm.urdf", folder / "clean.npz", "--gravity", "0,0,9.81", "--json").stdout)
    assert {p["code"] for p in hanging["problems"]} == {"gravity-reversed"}


@pytest.mark.parametrize(
    "words",
    [
        ["{robot}", "missing.csv"],
        ["{robot}", "{robot}"],
        ["nobody", "{log}"],
        ["{robot}", "{log}", "--gravity", "down"],
        ["{robot}", "{log}", "--step", "-1"],
    ],
)
def test_known_failures_take_one_line(folder, words):
    filled = [word.format(robot=folder / "arm.urdf", log=folder / "clean.npz") for word in words]
    result = run(*filled)
    assert result.exit_code == 1
    assert result.stderr.startswith("armid: ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize("lost", [np.nan, np.inf, 1e300])
def test_a_torque_spike_beside_lost_positions_ends_in_words(folder, lost):
    tau = np.cumsum(np.ones((50, 4)), axis=0)
    tau[12] = 0.0
    q = np.full((50, 4), lost)
    np.savez(folder / "lost.npz", time=np.arange(50) / 100.0, q=q, qd=np.zeros((50, 4)), tau=tau)
    result = run(folder / "arm.urdf", folder / "lost.npz", "--json")
    assert result.exit_code in (1, 3), result.output
    assert isinstance(result.exception, SystemExit)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_log_however_strange_ends_in_a_traceback(folder, data):
    rows = data.draw(st.integers(0, 200))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    extreme = st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e150, -1e300, 1e-300, 57.3])
    arrays = {}
    for name in ("time", "q", "qd", "tau"):
        shape = (rows,) if name == "time" else (rows, 4)
        kind = data.draw(st.sampled_from(["constant", "noise", "ramp"]))
        scale = data.draw(extreme)
        with np.errstate(all="ignore"):
            base = {
                "constant": np.ones(shape),
                "noise": rng.normal(size=shape),
                "ramp": np.cumsum(np.ones(shape), axis=0),
            }
            arrays[name] = base[kind] * scale
        if rows and data.draw(st.booleans()):
            arrays[name][data.draw(st.integers(0, rows - 1))] = data.draw(extreme)
    np.savez(folder / "strange.npz", **arrays)
    result = run(folder / "arm.urdf", folder / "strange.npz", "--json")
    assert result.exit_code in (0, 1, 3), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


MAPPINGS = {
    "panda": ("panda", {"clock-irregular", "repeated-rows"}),
    "ur10e-50sec_12harm": ("dynamics/ur10e/ur10e.urdf", {"clock-irregular", "torque-in-ampere"}),
    "ur10e-14harm50sec-load": ("dynamics/ur10e/ur10e.urdf", {"clock-irregular", "torque-in-ampere"}),
    "lwr4plus-1": ("dynamics/lwr4plus/kuka_lwr4.urdf", set()),
    "lwr4plus-2": ("dynamics/lwr4plus/kuka_lwr4.urdf", set()),
    "xmate7pro-3-periods-1": ("dynamics/xmate7pro/XM7p.urdf", set()),
    "xmate7pro-1-periods-2": ("dynamics/xmate7pro/XM7p.urdf", set()),
    "med7": ("dynamics/med7/med7dock.urdf", set()),
    "tx40": ("tx40", set()),
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_recordings_have_the_problems_they_are_known_for_and_no_error(name):
    robot, expected = MAPPINGS[name]
    root = real_data()
    from pathlib import Path

    mapping = Path(__file__).parent.parent / "docs" / "mappings" / f"{name}.yaml"
    arm = str(root / robot) if "/" in robot else robot
    result = run(arm, mapping, "--data-root", root, "--json")
    answer = json.loads(result.stdout)
    assert answer["ok"], answer["problems"]
    assert expected <= {problem["code"] for problem in answer["problems"]}


def test_med7_torque_has_the_opposite_sign():
    robot = real_data("dynamics", "med7", "med7dock.urdf")
    log = real_data("dynamics", "med7", "measurements.csv")
    result = run(robot, log, "--step", 0.01, "--json")
    assert result.exit_code == 3
    signs = {p["subject"] for p in json.loads(result.stdout)["problems"] if p["code"] == "torque-sign"}
    assert {"A2", "A4", "A6"} <= signs


def test_ur10e_columns_are_told_apart_and_ampere_recognised():
    robot = real_data("dynamics", "ur10e", "ur10e.urdf")
    log = real_data("dynamics", "ur10e", "ur-20_02_06-20sec_10harm.csv")
    answer = json.loads(run(robot, log, "--json").stdout)
    found = {p["code"]: p for p in answer["problems"]}
    assert {"clock-irregular", "torque-unit"} <= set(found)
    assert "ampere" in found["torque-unit"]["message"]


def test_ur10e_payload_is_noticed_when_nobody_mentions_it():
    robot = real_data("dynamics", "ur10e", "ur10e.urdf")
    for name, carried in (("ur-20_01_31-load.csv", True), ("ur-20_01_31-unload.csv", False)):
        answer = json.loads(run(robot, real_data("dynamics", "ur10e", name), "--side", "current", "--json").stdout)
        assert ("payload-suspected" in {p["code"] for p in answer["problems"]}) == carried
