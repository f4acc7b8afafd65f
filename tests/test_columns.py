"""`armid map`: columns told by names, ranges and physics; nothing guessed is called sure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.arrays import FloatArray
from armid.cli import application
from armid.columns.draft import MappingDraft, map_log
from armid.columns.names import named_column
from armid.columns.readings import Certainty
from armid.errors import InputError, UnknownNameError
from armid.logs.log import Channel
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import motion_limits
from armid.robot.robot import Robot
from tests.support.outcomes import check_family

RATE = 200.0


def recorded(robot: Robot, *, seconds: float = 10.0, seed: int = 0) -> tuple[FloatArray, ...]:
    """Time, positions, velocities and torques of a motion, SI units, with some noise."""
    rng = np.random.default_rng(seed)
    limits = motion_limits(robot)[0]
    size = 0.15 * limits.half_range[:, np.newaxis]
    motion = FourierTrajectory(
        joint_names=robot.joint_names,
        period=seconds,
        repetitions=1,
        offset=limits.middle,
        sine=size * rng.normal(size=(robot.n_joints, 4)) / 2,
        cosine=size * rng.normal(size=(robot.n_joints, 4)) / 2,
    )
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd = motion.sample(t)
    tau = armid.inverse_dynamics(robot, q, qd, qdd) + robot.drive("coulomb") * np.sign(qd)
    return t, q, qd, tau + 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)


@pytest.fixture(scope="module")
def iiwa() -> Robot:
    return armid.load_robot("iiwa14")


@pytest.fixture(scope="module")
def cylindrical() -> Robot:
    return armid.load_robot("cylindrical")


def odd_csv(robot: Robot, path: Path, rated: FloatArray) -> tuple[FloatArray, ...]:
    """German names, a title, semicolons, decimal commas, ms, deg and mm mixed, permille torque, joints in another order."""
    t, q, qd, tau = recorded(robot)
    order = [2, 0, 1]
    angle = np.array([180 / np.pi, 1e3, 1e3])
    unit = ["Grad", "mm", "mm"]
    header = ["Zeit [ms]"]
    columns = [1e3 * t]
    for j in order:
        header.append(f"Achse {j + 1} Istposition [{unit[j]}]")
        columns.append(angle[j] * q[:, j])
    for j in order:
        header.append(f"Geschwindigkeit_Achse_{j + 1}")
        columns.append(angle[j] * qd[:, j])
    for j in order:
        header.append(f"Drehmoment Achse {j + 1} [‰]")
        columns.append(np.round(1e3 * tau[:, j] / rated[j], 1))
    lines = ["Messung vom 12.03.2026, Zelle 4", ";".join(header)]
    lines += [";".join(f"{x:.6f}".replace(".", ",") for x in row) for row in np.column_stack(columns)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return t, q, qd, tau


class TestOddFile:
    RATED = np.array([80.0, 200.0, 90.0])

    def test_in_one_step(self, cylindrical: Robot, tmp_path: Path) -> None:
        t, q, qd, _ = odd_csv(cylindrical, tmp_path / "Messung.csv", self.RATED)
        draft = map_log(cylindrical, tmp_path / "Messung.csv")
        (file,) = draft.save(tmp_path)
        log = armid.logs.read.unchecked_log(file, cylindrical)
        np.testing.assert_allclose(log.time - log.time[0], t, atol=1e-9)
        np.testing.assert_allclose(log.channels[Channel.POSITION], q, atol=1e-6)
        np.testing.assert_allclose(log.channels[Channel.VELOCITY], qd, atol=1e-6)
        # Without the rated torques it is a current: torque up to a gain per joint.
        assert Channel.CURRENT in log.channels
        assert [question.key for question in draft.questions] == ["rated"]

    def test_with_the_rated_torques(self, cylindrical: Robot, tmp_path: Path) -> None:
        *_, tau = odd_csv(cylindrical, tmp_path / "Messung.csv", self.RATED)
        draft = map_log(cylindrical, tmp_path / "Messung.csv", answers={"rated": "80,200,90", "side": "motor"})
        (file,) = draft.save(tmp_path)
        log = armid.logs.read.unchecked_log(file, cylindrical)
        np.testing.assert_allclose(log.channels[Channel.MOTOR_TORQUE], tau, atol=0.011)
        assert not draft.questions

    def test_units_of_mixed_joints_are_sure(self, cylindrical: Robot, tmp_path: Path) -> None:
        odd_csv(cylindrical, tmp_path / "Messung.csv", self.RATED)
        draft = map_log(cylindrical, tmp_path / "Messung.csv")
        units = {(r.channel, r.joint): (r.unit, r.certainty) for r in draft.readings}
        assert units[Channel.POSITION, "joint1"] == ("deg", Certainty.SURE)
        assert units[Channel.POSITION, "joint2"] == ("mm", Certainty.SURE)
        assert units[Channel.VELOCITY, "joint1"] == ("deg/s", Certainty.SURE)
        assert units[Channel.VELOCITY, "joint3"] == ("mm/s", Certainty.SURE)
        assert units[None, ""] == ("ms", Certainty.SURE)


def written(robot: Robot, path: Path, names: list[str], *columns: FloatArray) -> Path:
    table = np.column_stack(columns)
    lines = [",".join(names), *(",".join(f"{x:.9g}" for x in row) for row in table)]
    path.write_text("\n".join(lines) + "\n")
    return path


def units_of(draft: MappingDraft, channel: Channel) -> set[str]:
    return {r.unit for r in draft.readings if r.channel is channel}


def numbered(*words: str, n: int = 7) -> list[str]:
    return ["t", *(f"{word}{i + 1}" for word in words for i in range(n))]


class TestUnits:
    def test_degrees_by_range(self, iiwa: Robot, tmp_path: Path) -> None:
        t, q, _, tau = recorded(iiwa)
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", numbered("q", "tau"), t, np.degrees(q), tau))
        assert units_of(draft, Channel.POSITION) == {"deg"}

    def test_radians_by_weight(self, iiwa: Robot, tmp_path: Path) -> None:
        t, q, _, tau = recorded(iiwa)
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", numbered("q", "tau"), t, q, tau))
        assert units_of(draft, Channel.POSITION) == {"rad"}
        assert "unit.position" not in [question.key for question in draft.questions]

    def test_angles_stay_open_when_nothing_decides(self, iiwa: Robot, tmp_path: Path) -> None:
        t, q, _, tau = recorded(iiwa)
        noise = np.random.default_rng(1).normal(size=tau.shape)
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", numbered("q", "tau"), t, q, noise))
        assert "unit.position" in [question.key for question in draft.questions]
        answered = map_log(iiwa, tmp_path / "a.csv", answers={"unit.position": "rad"})
        assert units_of(answered, Channel.POSITION) == {"rad"}
        assert "unit.position" not in [question.key for question in answered.questions]

    @pytest.mark.parametrize(("unit", "factor"), [("rad/s", 1.0), ("deg/s", 180 / np.pi), ("rpm", 30 / np.pi)])
    def test_velocity_is_the_derivative(self, iiwa: Robot, tmp_path: Path, unit: str, factor: float) -> None:
        t, q, qd, tau = recorded(iiwa)
        names = numbered("q_deg_", "qd", "tau")
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", names, t, np.degrees(q), factor * qd, tau))
        assert units_of(draft, Channel.VELOCITY) == {unit}

    @pytest.mark.parametrize(("unit", "factor"), [("Nm", 1.0), ("mNm", 1e3)])
    def test_torque_by_weight(self, iiwa: Robot, tmp_path: Path, unit: str, factor: float) -> None:
        t, q, _, tau = recorded(iiwa)
        names = ["t", *(f"q{i}_deg" for i in range(1, 8)), *(f"torque_{i}" for i in range(1, 8))]
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", names, t, np.degrees(q), factor * tau))
        assert units_of(draft, Channel.LINK_TORQUE) == {unit}

    def test_a_name_that_the_numbers_contradict_is_asked(self, iiwa: Robot, tmp_path: Path) -> None:
        t, q, _, tau = recorded(iiwa)
        names = ["t", *(f"q{i}_rad" for i in range(1, 8)), *(f"tau{i}" for i in range(1, 8))]
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", names, t, np.degrees(q), tau))
        assert "unit.position" in [question.key for question in draft.questions]
        assert any(r.certainty is Certainty.OPEN for r in draft.readings if r.channel is Channel.POSITION)

    @pytest.mark.parametrize(("scale", "unit"), [(1.0, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns")])
    def test_clock_without_a_unit(self, iiwa: Robot, tmp_path: Path, scale: float, unit: str) -> None:
        t, q, _, tau = recorded(iiwa)
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", numbered("q", "tau"), scale * t, np.degrees(q), tau))
        assert next(r.unit for r in draft.readings if r.channel is None) == unit


class TestWithoutNames:
    def test_columns_by_what_they_do(self, iiwa: Robot, tmp_path: Path) -> None:
        t, q, qd, tau = recorded(iiwa)
        np.savetxt(tmp_path / "a.csv", np.column_stack([t, q, qd, tau]), delimiter=",")
        draft = map_log(iiwa, tmp_path / "a.csv")
        (file,) = draft.save(tmp_path)
        log = armid.logs.read.unchecked_log(file, iiwa)
        np.testing.assert_allclose(log.channels[Channel.VELOCITY], qd, atol=1e-9)
        np.testing.assert_allclose(log.channels[Channel.LINK_TORQUE], tau, atol=1e-9)
        assert all(r.certainty is not Certainty.SURE for r in draft.readings if r.channel is not None)

    def test_angles_by_weight_without_a_clock(self, iiwa: Robot, tmp_path: Path) -> None:
        _, q, _, tau = recorded(iiwa)
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", numbered("q", "tau")[1:], q, tau))
        assert units_of(draft, Channel.POSITION) == {"rad"}
        assert draft.verdict is armid.Verdict.UNTRUSTED
        assert "--step" in draft.reasons[0]


class TestNames:
    @pytest.mark.parametrize(
        ("name", "channel", "number", "unit"),
        [
            ("Achse 3 Istposition [Grad]", Channel.POSITION, 3, "deg"),
            ("Winkel_A2", Channel.POSITION, 2, ""),
            ("Drehmoment Achse 1 [Nm]", Channel.LINK_TORQUE, 1, "Nm"),
            ("Motorstrom_4 [A]", Channel.CURRENT, 4, "A"),
            ("Sollposition Gelenk 5", Channel.COMMANDED_POSITION, 5, ""),
            ("couple_axe_2 [N.m]", Channel.LINK_TORQUE, 2, "Nm"),
            ("vitesse axe 6 [°/s]", Channel.VELOCITY, 6, "deg/s"),
            ("posición eje 1", Channel.POSITION, 1, ""),
            ("coppia giunto 7", Channel.LINK_TORQUE, 7, ""),
            ("J3_velocity_deg_per_s", Channel.VELOCITY, 3, "deg/s"),
        ],
    )
    def test_languages(self, name: str, channel: Channel, number: int, unit: str) -> None:
        found = named_column(name, ())
        assert (found.channel, found.number, found.unit) == (channel, number, unit)

    def test_the_robots_own_names(self) -> None:
        found = named_column("elbow_joint position", ("shoulder_joint", "elbow_joint"))
        assert (found.channel, found.joint) == (Channel.POSITION, "elbow_joint")

    @pytest.mark.parametrize("name", ["Bemerkung", "Spannung_3", "digital_in_1", "tcp_x"])
    def test_nothing_is_read_into_others(self, name: str) -> None:
        assert named_column(name, ()).channel is None


class TestRefused:
    def test_no_positions(self, iiwa: Robot, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text("t,u1,u2\n" + "\n".join(f"{k},{k},{k}" for k in range(30)))
        with pytest.raises(InputError, match="u1, u2"):
            map_log(iiwa, path)

    def test_an_answer_to_nothing(self, iiwa: Robot, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text("t,q1\n0,1\n")
        with pytest.raises(UnknownNameError, match=r"unit\.position"):
            map_log(iiwa, path, answers={"units": "deg"})

    def test_no_torque_is_untrusted(self, iiwa: Robot, tmp_path: Path) -> None:
        t, q, _, _ = recorded(iiwa)
        draft = map_log(iiwa, written(iiwa, tmp_path / "a.csv", numbered("q"), t, np.degrees(q)))
        assert draft.verdict is armid.Verdict.UNTRUSTED
        assert "torque" in draft.reasons[0]

    @pytest.mark.parametrize("rated", ["1,2", "0,1,2", "1,2,x"])
    def test_rated_torques_that_are_none(self, cylindrical: Robot, tmp_path: Path, rated: str) -> None:
        odd_csv(cylindrical, tmp_path / "m.csv", TestOddFile.RATED)
        with pytest.raises(InputError, match="rated"):
            map_log(cylindrical, tmp_path / "m.csv", answers={"rated": rated, "side": "motor"})


class TestMappingFile:
    def test_one_unit_per_column(self, cylindrical: Robot, tmp_path: Path) -> None:
        t, q, _, tau = recorded(cylindrical)
        scaled = q * np.array([180 / np.pi, 1e3, 1.0])
        written(cylindrical, tmp_path / "a.csv", ["t", "a", "b", "c", "x", "y", "z"], t, scaled, tau)
        (tmp_path / "a.yaml").write_text(
            "schema: armid.log/1\nfile: a.csv\nclock: {column: t}\nchannels:\n"
            "  position: {columns: [a, b, c], unit: [deg, mm, m]}\n  torque: {side: link, columns: [x, y, z]}\n"
        )
        log = armid.logs.read.unchecked_log(tmp_path / "a.yaml", cylindrical)
        np.testing.assert_allclose(log.channels[Channel.POSITION], q, atol=1e-7)

    def test_permille_needs_a_rated_torque(self, cylindrical: Robot, tmp_path: Path) -> None:
        t, q, _, tau = recorded(cylindrical)
        written(cylindrical, tmp_path / "a.csv", ["t", "a", "b", "c", "x", "y", "z"], t, q, tau)
        text = (
            "schema: armid.log/1\nfile: a.csv\nclock: {column: t}\nchannels:\n"
            "  position: {columns: [a, b, c]}\n  torque: {side: motor, columns: [x, y, z], unit: permille}\n"
        )
        (tmp_path / "a.yaml").write_text(text)
        with pytest.raises(InputError, match="rated"):
            armid.logs.read.unchecked_log(tmp_path / "a.yaml", cylindrical)


class TestCommand:
    def test_same_answer_as_the_function(self, cylindrical: Robot, tmp_path: Path) -> None:
        odd_csv(cylindrical, tmp_path / "m.csv", TestOddFile.RATED)
        line = ["map", "cylindrical", str(tmp_path / "m.csv"), "--out", str(tmp_path / "out"), "--json", "--no-input"]
        done = CliRunner().invoke(application(("map",)), line)
        assert done.exit_code == 0, done.stderr
        printed = json.loads(done.stdout)
        assert printed["columns"] == map_log("cylindrical", tmp_path / "m.csv").as_dict()["columns"]
        assert "DECIDE rated" in (tmp_path / "out" / "m.yaml").read_text()

    def test_answers_on_the_line(self, cylindrical: Robot, tmp_path: Path) -> None:
        odd_csv(cylindrical, tmp_path / "m.csv", TestOddFile.RATED)
        line = ["map", "cylindrical", str(tmp_path / "m.csv"), "--out", str(tmp_path), "--answer", "rated=80,200,90"]
        done = CliRunner().invoke(application(("map",)), [*line, "--answer", "side=motor"])
        assert done.exit_code == 0, done.stderr
        assert "rated: [80, 200, 90]" in (tmp_path / "m.yaml").read_text()

    def test_an_unreadable_log_names_the_command(self, iiwa: Robot, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text("t,u1,u2\n" + "\n".join(f"{k},{k},{k}" for k in range(30)))
        with pytest.raises(InputError, match="armid map"):
            armid.read_log(path, iiwa)

    def test_family(self, cylindrical: Robot, tmp_path: Path) -> None:
        odd_csv(cylindrical, tmp_path / "m.csv", TestOddFile.RATED)
        check_family(map_log(cylindrical, tmp_path / "m.csv"), tmp_path, figures=0)
