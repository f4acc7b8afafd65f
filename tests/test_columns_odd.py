"""Odd tables on other arms: languages, separators, dates, shares of rated torque, currents, several torques, wrong words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.arrays import FloatArray
from armid.cli import application
from armid.columns.draft import MappingDraft, map_log
from armid.columns.readings import Certainty
from armid.errors import InputError, UnknownNameError
from armid.logs.log import Channel
from armid.robot.robot import Robot
from tests.test_columns import recorded


def table(
    path: Path,
    header: Sequence[str],
    *columns: FloatArray,
    sep: str = ",",
    comma: bool = False,
    first: Sequence[str] = (),
) -> Path:
    """A text file; `first` is a first column of words."""
    rows = [[f"{x:.8g}" for x in row] for row in np.column_stack(columns)]
    if comma:
        rows = [[word.replace(".", ",") for word in row] for row in rows]
    if first:
        rows = [[word, *row] for word, row in zip(first, rows, strict=True)]
    path.write_text("\n".join([sep.join(header), *(sep.join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def counted(word: str, n: int) -> list[str]:
    return [word.replace("#", str(i + 1)) for i in range(n)]


def found(draft: MappingDraft, channel: Channel | None) -> dict[str, str]:
    return {r.joint: r.column for r in draft.readings if r.channel is channel}


def asked(draft: MappingDraft) -> list[str]:
    return [question.key for question in draft.questions]


@pytest.fixture(scope="module")
def ur() -> Robot:
    return armid.load_robot("ur10e")


@pytest.fixture(scope="module")
def panda() -> Robot:
    return armid.load_robot("panda")


def test_french_with_currents_in_milliampere_and_no_velocity(ur: Robot, tmp_path: Path) -> None:
    t, q, _, tau = recorded(ur)
    header = ["Temps (s)", *counted("Angle articulation # (deg)", 6), *counted("Courant moteur # (mA)", 6)]
    draft = map_log(ur, table(tmp_path / "a.csv", header, t, np.degrees(q), 100.0 * tau, sep="\t"))
    (file,) = draft.save(tmp_path)
    log = armid.logs.read.unchecked_log(file, ur)
    np.testing.assert_allclose(log.channels[Channel.CURRENT], 0.1 * tau, atol=1e-4)
    np.testing.assert_allclose(log.channels[Channel.POSITION], q, atol=1e-6)


def test_dates_and_the_robots_names_in_another_order(ur: Robot, tmp_path: Path) -> None:
    t, q, qd, tau = recorded(ur)
    order, begin = [3, 0, 5, 1, 4, 2], datetime(2026, 3, 12, 9)
    stamps = [(begin + timedelta(seconds=float(x))).isoformat(sep=" ", timespec="milliseconds") for x in t]
    names = [ur.joint_names[j] for j in order]
    header = ["timestamp", *(f"{n}.pos" for n in names), *(f"{n}.vel" for n in names), *(f"{n}.eff" for n in names)]
    path = table(tmp_path / "a.csv", header, q[:, order], qd[:, order], tau[:, order], first=stamps)
    (file,) = map_log(ur, path).save(tmp_path)
    log = armid.logs.read.unchecked_log(file, ur)
    np.testing.assert_allclose(log.channels[Channel.LINK_TORQUE], tau, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(log.time - log.time[0], t, atol=2e-3)


@pytest.mark.parametrize("unknown", [("关节#角度", "关节#力矩"), ("zz#", "yy#"), ("p.J#.kulma", "p.J#.vääntö")])
def test_a_language_nobody_taught_it(panda: Robot, tmp_path: Path, unknown: tuple[str, str]) -> None:
    """Told by what the numbers do, and never called sure."""
    t, q, _, tau = recorded(panda)
    header = ["时间", *counted(unknown[0], 7), *counted(unknown[1], 7)]
    draft = map_log(panda, table(tmp_path / "a.csv", header, t, q, tau))
    assert list(found(draft, Channel.POSITION).values()) == header[1:8]
    assert list(found(draft, Channel.LINK_TORQUE).values()) == header[8:]
    assert all(r.certainty is not Certainty.SURE for r in draft.readings)


def test_unknown_columns_that_follow_nothing_stay_unknown(panda: Robot, tmp_path: Path) -> None:
    t, q, _, _ = recorded(panda)
    noise = np.random.default_rng(0).normal(size=(2, *q.shape))
    header = ["t", *counted("q#", 7), *counted("zz#", 7), *counted("yy#", 7)]
    draft = map_log(panda, table(tmp_path / "a.csv", header, t, q, *noise))
    assert not any(r.channel is not None and r.channel.is_torque for r in draft.readings)
    assert draft.verdict is armid.Verdict.UNTRUSTED


def test_two_sets_that_could_be_the_torque_are_asked_about(panda: Robot, tmp_path: Path) -> None:
    t, q, _, tau = recorded(panda)
    header = ["t", *counted("q#", 7), *counted("zz#", 7), *counted("yy#", 7)]
    path = table(tmp_path / "a.csv", header, t, q, tau, 1.01 * tau)
    assert "torque" in asked(map_log(panda, path))
    answered = map_log(panda, path, answers={"torque": "yy#"})
    assert found(answered, Channel.LINK_TORQUE)["joint1"] == "yy1"
    assert "torque" not in asked(answered)
    with pytest.raises(UnknownNameError, match="zz#"):
        map_log(panda, path, answers={"torque": "xx#"})


def test_percent_of_rated_torque_and_positions_named_by_nothing(tmp_path: Path) -> None:
    robot = armid.load_robot("tx40")
    t, q, _, tau = recorded(robot)
    header = ["Zeit", *counted("A#_Ist", 6), *counted("M# [%]", 6)]
    share = 100.0 * tau / np.array([300.0, 250.0, 100.0, 20.0, 20.0, 10.0])
    draft = map_log(robot, table(tmp_path / "a.csv", header, t, np.degrees(q), share, sep=";", comma=True))
    assert {"position", "rated"} <= set(asked(draft))
    assert {r.unit for r in draft.readings if r.channel is Channel.POSITION} == {"deg"}
    (file,) = draft.save(tmp_path)
    np.testing.assert_allclose(armid.logs.read.unchecked_log(file, robot).channels[Channel.POSITION], q, atol=1e-6)


def test_torque_counted_the_other_way_is_asked_and_undone(tmp_path: Path) -> None:
    robot = armid.load_robot("iiwa14")
    t, q, qd, tau = recorded(robot)
    header = ["tiempo", *counted("posicion_eje_#", 7), *counted("velocidad_eje_#", 7), *counted("par_eje_#", 7)]
    path = table(tmp_path / "a.csv", header, t, q, qd, -tau)
    assert "sign.torque" in asked(map_log(robot, path))
    draft = map_log(robot, path, answers={"sign.torque": "reversed", "side": "link"})
    (file,) = draft.save(tmp_path)
    np.testing.assert_allclose(
        armid.logs.read.unchecked_log(file, robot).channels[Channel.LINK_TORQUE], tau, rtol=1e-6, atol=1e-6
    )
    assert not draft.questions


def test_measured_torque_goes_before_commanded_wherever_it_stands(panda: Robot, tmp_path: Path) -> None:
    t, q, qd, tau = recorded(panda)
    header = ["time", *counted("tau_cmd_#", 7), *counted("q_#", 7), *counted("dq_#", 7), *counted("tau_J_#", 7)]
    draft = map_log(panda, table(tmp_path / "a.csv", header, t, 1.1 * tau, q, qd, tau))
    assert found(draft, Channel.LINK_TORQUE)["joint1"] == "tau_J_1"
    assert "tau_cmd_1" in draft.notes[0].message


def test_italian_millimetres_degrees_and_title_lines(tmp_path: Path) -> None:
    robot = armid.load_robot("cylindrical")
    t, q, qd, tau = recorded(robot)
    scale = np.array([180.0 / np.pi if joint.kind.value == "revolute" else 1e3 for joint in robot.joints])
    header = ["tempo_ms", *counted("posizione giunto #", 3), *counted("velocità giunto #", 3)]
    path = table(
        tmp_path / "a.csv",
        [*header, *counted("coppia giunto # [Nm]", 3)],
        1e3 * t,
        scale * q,
        scale * qd,
        tau,
        sep=";",
        comma=True,
    )
    path.write_text("Prova 3\nRobot: cilindrico\n\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    (file,) = map_log(robot, path).save(tmp_path)
    log = armid.logs.read.unchecked_log(file, robot)
    np.testing.assert_allclose(log.channels[Channel.POSITION], q, atol=1e-5)
    np.testing.assert_allclose(log.channels[Channel.VELOCITY], qd, atol=1e-5)


def test_a_velocity_whose_name_and_numbers_disagree_is_open(tmp_path: Path) -> None:
    robot = armid.load_robot("iiwa14")
    t, q, qd, tau = recorded(robot)
    header = ["t[s]", *counted("pos[#]", 7), *counted("vel[#] (rad/s)", 7), *counted("torque[#] (Nm)", 7)]
    draft = map_log(robot, table(tmp_path / "a.csv", header, t, np.degrees(q), np.degrees(qd), tau))
    assert "unit.velocity" in asked(draft)
    assert all(r.certainty is Certainty.OPEN for r in draft.readings if r.channel is Channel.VELOCITY)


def test_a_joint_too_few_is_said(panda: Robot, tmp_path: Path) -> None:
    t, q, _, tau = recorded(panda)
    header = ["t", *counted("q#", 6), *counted("tau#", 6)]
    with pytest.raises(InputError, match="6 columns of position for 7 joints"):
        map_log(panda, table(tmp_path / "a.csv", header, t, q[:, :6], tau[:, :6]))


@pytest.mark.parametrize("verb", ["check", "identify"])
def test_a_table_that_cannot_be_read_is_drafted_and_the_command_named(panda: Robot, tmp_path: Path, verb: str) -> None:
    t, q, _, tau = recorded(panda)
    path = table(tmp_path / "a.csv", ["t", *counted("zz#", 7), *counted("yy#", 7)], t, q, tau)
    done = CliRunner().invoke(application((verb,)), [verb, "panda", str(path)])
    assert done.exit_code == 1
    assert "position from zz1 .. zz7 [rad] (likely); torque.link from yy1 .. yy7 [Nm]" in done.stderr
    assert f"`armid map panda {path}` writes it" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_units_as_endings_of_names_a_microsecond_clock_a_title_and_a_footer(ur: Robot, tmp_path: Path) -> None:
    """`vitesse_deg_s` is no time, and a joint's column is found by its number wherever it stands."""
    t, q, qd, tau = recorded(ur)
    order = [2, 0, 1, 5, 4, 3]
    names = [f"axe{j + 1}" for j in order]
    header = [
        "horodatage_us",
        *(f"{n}_{word}" for word in ("position_deg", "vitesse_deg_s", "couple_Nm") for n in names),
    ]
    columns = (1e6 * t, np.degrees(q[:, order]), np.degrees(qd[:, order]), tau[:, order])
    path = table(tmp_path / "a.tsv", header, *columns, sep="\t")
    path.write_text("Essai 12\n" + path.read_text() + "fin de l'enregistrement\n")
    draft = map_log(ur, path)
    assert asked(draft) == ["side"]
    (file,) = draft.save(tmp_path)
    log = armid.logs.read.unchecked_log(file, ur)
    for channel, truth in ((Channel.POSITION, q), (Channel.VELOCITY, qd), (Channel.LINK_TORQUE, tau)):
        np.testing.assert_allclose(log.channels[channel], truth, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(log.time - log.time[0], t, atol=1e-6)


def test_a_name_that_ends_like_another_unit_leaves_the_word_to_the_numbers(ur: Robot, tmp_path: Path) -> None:
    t, q, qd, tau = recorded(ur)
    header = ["t", *counted("q#", 6), *counted("dq#_s", 6), *counted("tau#", 6)]
    (file,) = map_log(ur, table(tmp_path / "a.csv", header, t, q, np.degrees(qd), tau)).save(tmp_path)
    np.testing.assert_allclose(armid.logs.read.unchecked_log(file, ur).channels[Channel.VELOCITY], qd, atol=1e-5)


def test_names_in_quotes_that_hold_the_separator(ur: Robot, tmp_path: Path) -> None:
    t, q, _, tau = recorded(ur)
    header = ["time, s", *counted("joint #, position, rad", 6), *counted("joint #, torque, Nm", 6)]
    log = read_back(ur, table(tmp_path / "a.csv", [f'"{name}"' for name in header], t, q, tau))
    np.testing.assert_allclose(log.channels[Channel.POSITION], q, atol=1e-6)
    np.testing.assert_allclose(log.channels[Channel.LINK_TORQUE], tau, atol=1e-4)


def test_an_index_without_a_name_and_separators_at_the_ends(ur: Robot, tmp_path: Path) -> None:
    t, q, _, tau = recorded(ur)
    path = table(
        tmp_path / "a.csv", ["", "time", *counted("pos #", 6), *counted("torque #", 6)], np.arange(len(t)), t, q, tau
    )
    path.write_text(path.read_text().replace("\n", ",\n"))
    log = read_back(ur, path)
    np.testing.assert_allclose(log.channels[Channel.LINK_TORQUE], tau, atol=1e-4)
    np.testing.assert_allclose(np.diff(log.time), np.diff(t), atol=1e-6)


def test_points_that_group_thousands_beside_decimal_commas(ur: Robot, tmp_path: Path) -> None:
    """The first of them comes after a second, far below the lines the layout is found from."""
    t, q, _, tau = recorded(ur)
    stamps = [f"{1e3 * x:,.1f}".translate(str.maketrans(",.", ".,")) for x in t]
    assert stamps[-1].count(".") == 1
    header = ["Zeit (ms)", *counted("Position # (Grad)", 6), *counted("Moment # (Nm)", 6)]
    log = read_back(ur, table(tmp_path / "a.csv", header, np.degrees(q), tau, sep=";", comma=True, first=stamps))
    np.testing.assert_allclose(np.diff(log.time), np.diff(t), atol=1e-6)
    np.testing.assert_allclose(log.channels[Channel.POSITION], q, atol=1e-6)


def test_letters_of_mechanics_with_units_of_turning_and_sliding_joints(tmp_path: Path) -> None:
    arm = armid.load_robot("cylindrical")
    t, q, _, tau = recorded(arm)
    header = ["t[ms]", "theta1[deg]", "d2[mm]", "d3[mm]", "M1[Nm]", "F2[N]", "F3[N]"]
    log = read_back(arm, table(tmp_path / "a.csv", header, 1e3 * t, np.degrees(q[:, :1]), 1e3 * q[:, 1:], tau))
    np.testing.assert_allclose(log.channels[Channel.POSITION], q, atol=1e-6)
    np.testing.assert_allclose(log.channels[Channel.LINK_TORQUE], tau, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("named", [True, False])
def test_a_row_for_every_joint_becomes_a_column_of_every_joint(named: bool, ur: Robot, tmp_path: Path) -> None:
    """In another order than the robot's, with decimal commas; an instant that lacks a joint is left out."""
    t, q, _, tau = recorded(ur)
    order = [2, 0, 5, 1, 4, 3]
    joints = [ur.joint_names[j] if named else str(j + 1) for j in range(6)]
    lines = [f"{1e3 * t[k]:.3f};{joints[j]};{np.degrees(q[k, j])};{tau[k, j]}" for k in range(len(t)) for j in order]
    del lines[6 * 50 + 2]
    header = "Zeit [ms];Gelenk;Winkel [Grad];Drehmoment [Nm]\n"
    (tmp_path / "a.csv").write_text(header + "\n".join(lines).replace(".", ","), encoding="utf-8")
    draft = map_log(ur, tmp_path / "a.csv")
    file, wide = draft.save(tmp_path)
    assert wide.name == "a-wide.csv"
    assert [note.code for note in draft.notes] == ["long-table"]
    log = armid.logs.read.unchecked_log(file, ur)
    left = np.delete(np.arange(len(t)), 50)
    np.testing.assert_allclose(log.channels[Channel.POSITION], q[left], atol=1e-6)
    np.testing.assert_allclose(log.channels[Channel.LINK_TORQUE], tau[left], atol=1e-6)
    np.testing.assert_allclose(log.time, t[left], atol=1e-6)


def test_rows_of_other_joints_than_the_arms_are_refused(ur: Robot, tmp_path: Path) -> None:
    lines = [f"{0.005 * k},j{j},{0.1 * j + 0.01 * k}" for k in range(300) for j in range(5)]
    (tmp_path / "a.csv").write_text("\n".join(["time,joint,position", *lines]))
    with pytest.raises(InputError, match="1 columns of position for 6 joints"):
        map_log(ur, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open("a") as file:
        file.write('\n1.5,"' + "x" * 200_000 + '",1\n')  # a cell longer than the reader of cells takes
    with pytest.raises(InputError, match="1 columns of position for 6 joints"):
        map_log(ur, tmp_path / "a.csv")


def test_the_mapping_of_a_recording_elsewhere_is_written_where_it_can_be_used(
    ur: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, q, _, tau = recorded(ur)
    (tmp_path / "data").mkdir()
    (tmp_path / "here").mkdir()
    log = table(
        tmp_path / "data" / "a.csv", ["zeit_s", *counted("winkel#_grad", 6), *counted("moment#_Nm", 6)], t, q, tau
    )
    monkeypatch.chdir(tmp_path / "here")
    for words, place in (((), tmp_path / "data"), (("--out", "."), tmp_path / "here")):
        done = CliRunner().invoke(application(("map",)), ["map", "ur10e", str(log), "--no-input", *words])
        assert done.exit_code in (0, 3), done.output
        assert (place / "a.yaml").is_file()
        assert ("--data-root" in done.stderr) == bool(words)


def read_back(robot: Robot, path: Path) -> armid.Log:
    """What the mapping makes of a table, in one step."""
    (file,) = map_log(robot, path).save(path.parent)
    return armid.logs.read.unchecked_log(file, robot)
