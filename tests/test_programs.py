"""Programs for robot controllers: what they would make the arm do is the designed motion."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.arrays import FloatArray
from armid.cli import application
from armid.errors import InputError
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import motion_limits
from armid.motions.trajectory import grid
from armid.motions.trajectory_files import save_trajectory
from armid.motions.transition import TransitionTrajectory
from armid.outcome import UntrustedError
from armid.programs.playable import SoftEnds, from_rest_to_rest, knots_of
from armid.programs.program import ControllerKind, Program, make_program
from armid.programs.wanted import PlayedFor
from armid.robot.robot import Robot
from tests.support.interpreters import play_krl, play_urscript
from tests.support.outcomes import check_family
from tests.support.rtde_server import RtdeServer

CONTROLLERS = Path(__file__).parent / "support" / "controllers"
PERIOD = 2.0


def motion_of(robot: Robot, *, period: float = PERIOD, seed: int = 0) -> FourierTrajectory:
    """A gentle periodic motion about the middle of the joints' ranges, moving at its ends."""
    rng = np.random.default_rng(seed)
    shape = (robot.n_joints, 3)
    return FourierTrajectory(
        joint_names=robot.joint_names,
        period=period,
        repetitions=1,
        offset=motion_limits(robot)[0].middle,
        sine=0.03 * rng.normal(size=shape),
        cosine=0.03 * rng.normal(size=shape),
    )


@pytest.fixture(scope="module")
def iiwa() -> Robot:
    return armid.load_robot("iiwa14")


@pytest.fixture(scope="module")
def panda() -> Robot:
    return armid.load_robot("panda")


@pytest.fixture(scope="module")
def ur() -> Robot:
    return armid.load_robot("ur10e")


def expected(program: Program, *, speed: float = 1.0) -> FloatArray:
    """Positions at every tick of the controller, the start left out."""
    t = grid(program.motion.duration / speed, program.rate_hz)[1:]
    return program.motion.sample(speed * t)[0]


class TestSoftEnds:
    def test_between_the_ramps_it_is_the_motion_itself(self, iiwa: Robot) -> None:
        motion = motion_of(iiwa)
        soft = SoftEnds(motion, 0.5)
        t = np.linspace(0.0, motion.duration, 301)
        for ours, theirs in zip(soft.sample(soft.lead + t[1:-1]), motion.sample(t[1:-1]), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)

    def test_starts_and_ends_at_rest(self, iiwa: Robot) -> None:
        soft = SoftEnds(motion_of(iiwa), 0.7)
        _, qd, qdd = soft.sample([0.0, soft.duration])
        np.testing.assert_allclose(np.concatenate([qd, qdd]), 0.0, atol=1e-12)

    def test_derivatives_are_those_of_the_positions(self, iiwa: Robot) -> None:
        soft, h = SoftEnds(motion_of(iiwa), 0.7), 1e-5
        t = np.linspace(0.05, soft.duration - 0.05, 97)
        _, qd, qdd = soft.sample(t)
        before, after = soft.sample(t - h), soft.sample(t + h)
        np.testing.assert_allclose((after[0] - before[0]) / (2 * h), qd, atol=1e-7)
        np.testing.assert_allclose((after[1] - before[1]) / (2 * h), qdd, atol=1e-6)
        np.testing.assert_allclose((after[2] - before[2]) / (2 * h), soft.jerk(t), atol=1e-4)

    def test_ramp_grows_until_the_acceleration_limits_hold(self, iiwa: Robot) -> None:
        limits = motion_limits(iiwa)[0]
        motion = motion_of(iiwa, period=20.0)
        inner = np.abs(motion.sample(grid(motion.duration, 500.0))[2]).max(axis=0)
        soft, lead = from_rest_to_rest(motion, limits.but(acceleration=1.01 * inner))
        assert isinstance(soft, SoftEnds)
        assert lead > 0.5
        assert (np.abs(soft.sample(grid(soft.duration, 1000.0))[2]) <= 1.011 * inner).all()

    def test_a_motion_from_rest_stays_as_it_is(self, iiwa: Robot) -> None:
        still = TransitionTrajectory(iiwa.joint_names, np.outer([0.0, 0.2], np.ones(7)), np.array([2.0]))
        assert from_rest_to_rest(still, motion_limits(iiwa)[0]) == (still, 0.0)


class TestKnots:
    def test_every_tick_is_the_motion(self, iiwa: Robot) -> None:
        motion = SoftEnds(motion_of(iiwa), 0.5)
        knots = knots_of(motion, 1e-3)
        t = 1e-3 * np.arange(int(motion.duration * 1000) + 1)
        assert np.abs(knots.sample(t)[0] - motion.sample(t)[0]).max() < 1e-7
        assert len(knots.time) < len(t) / 10

    def test_whole_ticks(self, iiwa: Robot) -> None:
        knots = knots_of(SoftEnds(motion_of(iiwa, period=1.9973), 0.5), 0.005)
        ticks = knots.time / 0.005
        np.testing.assert_allclose(ticks, np.round(ticks), atol=1e-9)


class TestUniversalRobots:
    @pytest.mark.parametrize("rate", [500.0, 125.0])
    def test_replayed_script_is_the_motion(self, ur: Robot, rate: float) -> None:
        program = make_program(ur, motion_of(ur), "ur", rate_hz=rate)
        played = play_urscript(program.files["play.script"])
        full = played.positions(register=2)
        np.testing.assert_allclose(full, expected(program), atol=1e-6)
        dry = played.positions(register=1)
        assert len(dry) == 10 * len(full)
        np.testing.assert_allclose(dry, expected(program, speed=0.1), atol=1e-6)

    def test_order_of_the_parts(self, ur: Robot) -> None:
        program = make_program(ur, motion_of(ur), "ur")
        names = [name for name, _ in play_urscript(program.files["play.script"]).calls]
        kept = [name for k, name in enumerate(names) if name != "servoj" or names[k - 1] != "servoj"]
        assert [name for name in kept if not name.startswith("write")] == [
            "popup", "movej", "popup", "servoj", "stopj", "movej", "popup", "servoj", "stopj", "sleep",
        ]  # fmt: skip

    def test_approach_goes_to_the_start(self, ur: Robot) -> None:
        program = make_program(ur, motion_of(ur), "ur")
        moves = [a for name, a in play_urscript(program.files["play.script"]).calls if name == "movej"]
        np.testing.assert_allclose(moves[0][0], program.knots.q[0], atol=1e-9)
        assert moves[0][2] <= 0.1 * motion_limits(ur)[0].velocity.min() + 1e-4


class TestRtdeRecorder:
    def run(self, program: Program, server: RtdeServer, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
        (folder / "record.py").write_text(program.files["record.py"])
        server.start()
        line = [sys.executable, "record.py", "127.0.0.1", "log.csv", "--port", str(server.port), *more]
        return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=30, check=False)

    @staticmethod
    def row(k: int) -> dict[str, tuple[float, ...]]:
        vector = tuple(0.1 * i + 1e-3 * k for i in range(6))
        names = ("actual_q", "actual_qd", "actual_current", "target_q", "target_moment", "joint_temperatures")
        # Before and after the run at full speed the register holds something else.
        register = 2 if 50 <= k < 250 else 0
        return {name: vector for name in names} | {"timestamp": (k / 500.0,), "output_int_register_0": (register,)}

    def test_log_is_read_back(self, ur: Robot, tmp_path: Path) -> None:
        server = RtdeServer(self.row, 400)
        done = self.run(make_program(ur, motion_of(ur), "ur"), server, tmp_path)
        assert done.returncode == 0, done.stderr
        assert "200 rows in log.csv, 0 lost" in done.stderr
        assert server.frequency == 500.0
        log = armid.read_log(tmp_path / "log.csv", ur)
        np.testing.assert_allclose(log.channels[armid.logs.log.Channel.POSITION][0], np.array(self.row(50)["actual_q"]))
        assert len(log.time) == 200

    def test_lost_packages_are_counted(self, ur: Robot, tmp_path: Path) -> None:
        def row(k: int) -> dict[str, tuple[float, ...]]:
            return self.row(k if k < 100 else k + 7)

        done = self.run(make_program(ur, motion_of(ur), "ur"), RtdeServer(row, 400), tmp_path)
        assert "7 lost" in done.stderr

    def test_a_field_the_controller_lacks_is_named(self, ur: Robot, tmp_path: Path) -> None:
        server = RtdeServer(self.row, 10, missing=("target_moment",))
        done = self.run(make_program(ur, motion_of(ur), "ur"), server, tmp_path)
        assert done.returncode == 1
        assert "target_moment" in done.stderr
        assert not (tmp_path / "log.csv").exists()


def built(program: Program, folder: Path, headers: Path, *flags: str) -> Path:
    """The compiled player in a folder with its files."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    program.save(folder)
    line = [
        compiler,
        "-std=c++17",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        *flags,
        f"-I{headers}",
        "play.cpp",
        "-o",
        "play",
    ]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "play"


class TestFranka:
    @pytest.fixture(scope="class")
    @classmethod
    def program(cls, panda: Robot) -> Program:
        return make_program(panda, motion_of(panda), "franka")

    @pytest.fixture(scope="class")
    @classmethod
    def player(cls, program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return built(program, tmp_path_factory.mktemp("franka"), CONTROLLERS)

    def test_commanded_positions_are_the_motion(self, program: Program, player: Path, panda: Robot) -> None:
        subprocess.run(
            [player, "robot", "--full-speed", "--yes", "--log", "log.csv"], cwd=player.parent, check=True, timeout=60
        )
        commanded = np.loadtxt(player.parent / "commanded.txt")
        want = expected(program)
        np.testing.assert_allclose(commanded[-len(want) :], want, atol=1e-6)
        log = armid.read_log(player.parent / "log.csv", panda)
        channels = armid.logs.log.Channel
        assert {channels.POSITION, channels.VELOCITY, channels.LINK_TORQUE} <= set(log.channels)
        assert log.time[-1] - log.time[0] == pytest.approx(program.motion.duration)
        # The state is read before a command is sent, so that a row holds the position of the cycle before.
        np.testing.assert_allclose(log.channels[channels.POSITION][2:], want[:-1], atol=1e-6)

    def test_dry_run_is_the_same_path_ten_times_slower(self, program: Program, player: Path) -> None:
        subprocess.run([player, "robot", "--yes"], cwd=player.parent, check=True, timeout=60)
        want = expected(program, speed=0.1)
        np.testing.assert_allclose(np.loadtxt(player.parent / "commanded.txt")[-len(want) :], want, atol=1e-6)

    def test_velocities_lead_to_the_same_place(self, program: Program, player: Path) -> None:
        subprocess.run(
            [player, "robot", "--full-speed", "--velocity", "--yes"], cwd=player.parent, check=True, timeout=60
        )
        np.testing.assert_allclose(np.loadtxt(player.parent / "commanded.txt")[-1], expected(program)[-1], atol=1e-4)

    def test_a_motion_beyond_the_limits_is_not_started(self, player: Path) -> None:
        text = (player.parent / "motion.txt").read_text().splitlines()
        words = text[len(text) // 2].split()
        words[1] = "9.0"
        (player.parent / "wrong.txt").write_text(
            "\n".join([*text[: len(text) // 2], " ".join(words), *text[len(text) // 2 + 1 :]])
        )
        line = [player, "robot", "--yes", "--motion", "wrong.txt"]
        done = subprocess.run(line, cwd=player.parent, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "joint 1 leaves its limits" in done.stderr

    def test_python_player(self, program: Program, tmp_path: Path) -> None:
        program.save(tmp_path)
        (tmp_path / "pylibfranka.py").write_text(_PYLIBFRANKA)
        line = [sys.executable, "play.py", "robot", "--full-speed", "--yes", "--log", "log.csv"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        commanded = np.array(json.loads((tmp_path / "commanded.json").read_text()))
        want = expected(program)
        np.testing.assert_allclose(commanded[-len(want) :], want, atol=1e-6)
        assert len((tmp_path / "log.csv").read_text().splitlines()) > len(want)


_PYLIBFRANKA = '''
"""Stand-in of pylibfranka: follows at once, one millisecond a cycle."""
import json
import re
from types import SimpleNamespace

COMMANDED = []
STATE = SimpleNamespace(q=[0.0] * 7, dq=[0.0] * 7, tau_J=[1.0] * 7, q_d=[0.0] * 7, tau_J_d=[1.0] * 7)


class ControllerMode:
    JointImpedance = "joint"


class JointPositions:
    def __init__(self, q):
        self.q, self.motion_finished = list(q), False


class Control:
    def __init__(self):
        self.first = True

    def readOnce(self):
        step, self.first = (0.0 if self.first else 1e-3), False
        return STATE, SimpleNamespace(to_sec=lambda: step)

    def writeOnce(self, command):
        COMMANDED.append(command.q)
        STATE.q = STATE.q_d = command.q


class Robot:
    def __init__(self, address):
        pass

    def read_once(self):
        return STATE

    def start_joint_position_control(self, mode):
        return Control()

    def stop(self):
        with open("commanded.json", "w") as file:
            json.dump(COMMANDED, file)
'''


class TestKukaFri:
    @pytest.fixture(scope="class")
    @classmethod
    def program(cls, iiwa: Robot) -> Program:
        return make_program(iiwa, motion_of(iiwa), "kuka-fri")

    @pytest.fixture(scope="class")
    @classmethod
    def player(cls, program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return built(program, tmp_path_factory.mktemp("fri"), CONTROLLERS / "fri")

    def test_commanded_positions_are_the_motion(self, program: Program, player: Path, iiwa: Robot) -> None:
        (player.parent / "start.txt").write_text(" ".join(str(x) for x in program.knots.q[0]))
        line = [player, "192.170.10.2", "--full-speed", "--log", "log.csv"]
        subprocess.run(line, cwd=player.parent, check=True, timeout=60, capture_output=True)
        want = expected(program)
        np.testing.assert_allclose(np.loadtxt(player.parent / "commanded.txt")[: len(want)], want, atol=1e-6)
        log = armid.read_log(player.parent / "log.csv", iiwa)
        channels = armid.logs.log.Channel
        assert {channels.POSITION, channels.LINK_TORQUE} <= set(log.channels)

    def test_an_arm_elsewhere_is_not_moved(self, program: Program, player: Path) -> None:
        (player.parent / "start.txt").write_text(" ".join(str(x + 0.1) for x in program.knots.q[0]))
        done = subprocess.run(
            [player, "192.170.10.2"], cwd=player.parent, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 1
        assert "not at the start" in done.stderr

    def test_rates_the_interface_has(self, iiwa: Robot) -> None:
        with pytest.raises(InputError, match="whole milliseconds"):
            make_program(iiwa, motion_of(iiwa), "kuka-fri", rate_hz=300.0)

    def test_sunrise_application_starts_where_the_motion_does(self, program: Program) -> None:
        text = program.files["ArmidPlay.java"]
        assert f"{program.knots.q[0, 0]:.10f}" in text
        assert "setSendPeriodMilliSec(5)" in text


class TestKrl:
    def test_points_and_times_are_the_motion(self, ur: Robot) -> None:
        program = make_program(ur, motion_of(ur), "kuka-krl")
        approach, (dry, full) = play_krl(program.files["ARMID_PLAY.src"])
        np.testing.assert_allclose(np.radians(approach), program.motion.sample(0.0)[0][0], atol=1e-6)
        np.testing.assert_allclose(np.radians(full.points), program.motion.sample(full.times)[0], atol=1e-6)
        assert full.times[-1] == pytest.approx(program.motion.duration)
        assert (dry.override, full.override) == (10.0, 100.0)
        assert dry.times[-1] == pytest.approx(10.0 * full.times[-1])
        assert (dry.traced, full.traced) == (False, True)

    def test_a_spline_too_long_is_refused(self, ur: Robot) -> None:
        with pytest.raises(InputError, match="one period at a time"):
            make_program(ur, motion_of(ur, period=90.0), "kuka-krl")


class TestRos2:
    def test_quintics_between_points_are_the_motion(self, iiwa: Robot) -> None:
        program = make_program(iiwa, motion_of(iiwa), "ros2")
        t = grid(program.motion.duration, 1000.0)
        from armid.motions.trajectory import SampledTrajectory

        for name, speed in (("goal.yaml", 1.0), ("dry_run.yaml", 0.1)):
            goal = json.loads(program.files[name])["trajectory"]
            assert goal["joint_names"] == list(iiwa.joint_names)
            columns = [
                np.array([point[key] for point in goal["points"]])
                for key in ("positions", "velocities", "accelerations")
            ]
            times = np.array(
                [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in goal["points"]]
            )
            played = SampledTrajectory(iiwa.joint_names, times, *columns)
            np.testing.assert_allclose(played.sample(t / speed)[0], program.motion.sample(t)[0], atol=1e-6)

    def test_message_fits_the_type_definition(self, iiwa: Robot) -> None:
        stores = pytest.importorskip("rosbags.typesys")
        store = stores.get_typestore(stores.Stores.ROS2_HUMBLE)
        kinds = store.types
        goal = json.loads(make_program(iiwa, motion_of(iiwa), "ros2").files["goal.yaml"])["trajectory"]
        point = kinds["trajectory_msgs/msg/JointTrajectoryPoint"]
        duration = kinds["builtin_interfaces/msg/Duration"]
        points = [
            point(
                positions=np.array(p["positions"]),
                velocities=np.array(p["velocities"]),
                accelerations=np.array(p["accelerations"]),
                effort=np.zeros(0),
                time_from_start=duration(**p["time_from_start"]),
            )
            for p in goal["points"]
        ]
        header = kinds["std_msgs/msg/Header"](stamp=kinds["builtin_interfaces/msg/Time"](sec=0, nanosec=0), frame_id="")
        message = kinds["trajectory_msgs/msg/JointTrajectory"](
            header=header, joint_names=goal["joint_names"], points=points
        )
        name = "trajectory_msgs/msg/JointTrajectory"
        back = store.deserialize_cdr(store.serialize_cdr(message, name), name)
        np.testing.assert_array_equal(back.points[3].positions, points[3].positions)

    def test_a_goal_too_long_for_a_line_is_sent_by_the_script(self, iiwa: Robot) -> None:
        short = make_program(iiwa, motion_of(iiwa), "ros2").files["README.md"]
        long = make_program(iiwa, motion_of(iiwa, period=60.0), "ros2", rate_hz=1000.0).files
        assert "ros2 action send_goal" in short
        assert ("python3 send_goal.py goal.yaml" in long["README.md"]) == (len(long["goal.yaml"]) > 120_000)


class TestTable:
    def test_rows_are_the_motion_with_names_and_units(self, iiwa: Robot) -> None:
        program = make_program(iiwa, motion_of(iiwa), "csv", rate_hz=200.0)
        header, *rows = program.files["trajectory.csv"].splitlines()
        assert header.split(",")[:2] == ["time [s]", f"q_{iiwa.joint_names[0]} [rad]"]
        table = np.loadtxt(rows, delimiter=",")
        np.testing.assert_allclose(table[1:, 1:8], expected(program), atol=1e-9)
        dry = np.loadtxt(program.files["dry_run.csv"].splitlines()[1:], delimiter=",")
        np.testing.assert_allclose(dry[:, 0], 10.0 * table[:, 0], rtol=1e-9)

    def test_rows_come_at_the_ticks_whatever_the_duration(self, iiwa: Robot) -> None:
        program = make_program(iiwa, motion_of(iiwa, period=1.9973), "csv", rate_hz=200.0)
        table = np.loadtxt(program.files["trajectory.csv"].splitlines()[1:], delimiter=",")
        np.testing.assert_allclose(table[:, 0], 0.005 * np.arange(len(table)), atol=1e-12)
        assert 0.0 <= table[-1, 0] - program.motion.duration < 0.005
        np.testing.assert_allclose(table[:-1, 1:8], program.motion.sample(table[:-1, 0])[0], atol=1e-9)
        np.testing.assert_allclose(table[-1, 8:], 0.0, atol=1e-9)  # at rest


class TestReadme:
    """Every step can be typed as it stands: no placeholder is left, the arm has its name, and the last step fits the motion."""

    @pytest.mark.parametrize("controller", list(ControllerKind))
    @pytest.mark.parametrize("played_for", list(PlayedFor))
    def test_the_steps(self, controller: ControllerKind, played_for: PlayedFor, iiwa: Robot, ur: Robot) -> None:
        arm = ur if controller in (ControllerKind.UR, ControllerKind.KUKA_KRL) else iiwa
        text = make_program(arm, motion_of(arm), controller, played_for=played_for).files["README.md"]
        assert not re.search(r"@\w+@", text)
        name = arm.source.path.removeprefix("catalogue:")
        last = {
            "identification": f"armid identify {name} ",
            "response": f"armid sweep {name} ",
            "plan": "armid validate ",
        }
        assert [word for word, said in last.items() if said in text] == [played_for.value]
        for words in ("Dry run", "stop button", "the angles above", "## What was tried", "armid "):
            assert words in text
        steps = [int(n) for n in re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE)]
        assert steps == list(range(1, len(steps) + 1))


class TestRefused:
    def test_an_arm_the_controller_does_not_drive(self, iiwa: Robot) -> None:
        with pytest.raises(InputError, match=r"7 joints.*ur drives 6"):
            make_program(iiwa, motion_of(iiwa), "ur")

    def test_joints_of_another_robot(self, iiwa: Robot, ur: Robot) -> None:
        with pytest.raises(InputError, match=ur.joint_names[0]):
            make_program(iiwa, motion_of(ur), "csv")

    def test_a_motion_beyond_the_limits_is_not_written(self, iiwa: Robot, tmp_path: Path) -> None:
        limits = motion_limits(iiwa)[0]
        there = np.stack([limits.middle, limits.upper + 0.2])
        program = make_program(iiwa, TransitionTrajectory(iiwa.joint_names, there, np.array([20.0])), "csv")
        with pytest.raises(UntrustedError, match="position"):
            program.save(tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_motion_that_is_cut_off(self, iiwa: Robot, tmp_path: Path) -> None:
        from armid.motions.sample_table import save_csv

        save_csv(motion_of(iiwa), tmp_path / "cut.csv", rate_hz=100.0)
        with pytest.raises(InputError, match="--home"):
            make_program(iiwa, tmp_path / "cut.csv", "csv")


class TestOtherVerbs:
    def test_plan_writes_the_program_too(self, tmp_path: Path) -> None:
        """`--for` of the verbs that make motions gives what `armid program` gives."""
        from armid.cli.program import program_files

        robot = armid.load_robot("iiwa14")
        files = program_files(robot, {"motion": motion_of(robot)}, "ros2", tmp_path, "plan")
        assert {path.relative_to(tmp_path).as_posix() for path in files} == {
            f"ros2/{name}" for name in ("goal.yaml", "dry_run.yaml", "send_goal.py", "README.md")
        }
        several = program_files(
            robot, {"a": motion_of(robot), "b": motion_of(robot, seed=1)}, "csv", tmp_path, "response"
        )
        assert (tmp_path / "csv" / "b" / "trajectory.csv") in several
        assert program_files(robot, {"motion": motion_of(robot)}, None, tmp_path, "plan") == ()

    @pytest.mark.parametrize("verb", ["design", "plan", "sweep"])
    def test_every_verb_that_makes_a_motion_has_it(self, verb: str) -> None:
        done = CliRunner().invoke(application((verb,)), [verb, "--for", "fanuc"])
        assert done.exit_code == 2
        assert "fanuc" in done.stderr


class TestCommand:
    def test_same_answer_as_the_function(self, ur: Robot, tmp_path: Path) -> None:
        file = save_trajectory(motion_of(ur), tmp_path / "trajectory.json", robot="ur10e")
        line = ["program", "ur10e", str(file), "--for", "ur", "--out", str(tmp_path / "out"), "--json"]
        done = CliRunner().invoke(application(("program",)), line)
        assert done.exit_code == 0, done.stderr
        printed = json.loads(done.stdout)
        assert printed["files"]
        assert printed["duration"] == make_program("ur10e", file, "ur").as_dict()["duration"]
        assert {path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."} == {
            "play.script",
            "recipe.xml",
            "record.py",
            "README.md",
        }

    def test_unknown_controller_is_a_usage_error(self, tmp_path: Path) -> None:
        done = CliRunner().invoke(application(("program",)), ["program", "ur10e", "x.json", "--for", "fanuc"])
        assert done.exit_code == 2

    def test_family(self, iiwa: Robot, tmp_path: Path) -> None:
        check_family(make_program(iiwa, motion_of(iiwa), "ros2"), tmp_path)
