"""Live arms: lines on stdin, datagrams and RTDE on the loopback, at 1 kHz without losing a sample; counts when some are lost."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.arrays import FloatArray
from armid.cli import application
from armid.errors import InputError
from armid.logs.live.lines import StreamSample
from armid.logs.live.stream import LiveStream, is_stream, open_stream
from armid.logs.log import Channel, Log
from armid.observation.arm import ObservedArm
from armid.observation.live import LiveObserver, observe_stream, watch
from armid.observation.observe import levels_from, observe
from armid.robot.robot import Robot
from tests.support.contacts import bump, recorded
from tests.support.identified import trusted
from tests.support.rtde_server import RtdeServer

RATE = 1000.0


@pytest.fixture(scope="module")
def ur() -> Robot:
    return armid.load_robot("ur10e")


def line(k: int, n: int) -> str:
    return json.dumps({"time": k / RATE, "position": [1e-3 * k] * n, "torque": [2.0] * n})


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def paced(send: list[str], port: int) -> None:
    """Datagrams at 1 kHz."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        begin = time.monotonic()
        for k, text in enumerate(send):
            out.sendto(text.encode(), ("127.0.0.1", port))
            time.sleep(max(0.0, begin + (k + 1) / RATE - time.monotonic()))


class TestNothingLost:
    def test_lines(self, ur: Robot) -> None:
        text = io.StringIO("\n".join(line(k, 6) for k in range(3000)) + "\n")
        stream = open_stream("-", ur, rate_hz=RATE, stdin=text)
        assert [round(sample.time * RATE) for sample in stream] == list(range(3000))
        assert (stream.received, stream.lost, stream.late) == (3000, 0, 0)

    def test_a_recording_is_no_live_arm(self, ur: Robot, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text("time\n0\n")
        with pytest.raises(InputError, match=r"log.csv: a file.*armid identify and armid observe read recordings"):
            open_stream(str(tmp_path / "log.csv"), ur, rate_hz=RATE)

    def test_datagrams_at_1_khz_while_every_sample_is_worked_on(self, ur: Robot) -> None:
        """Through the observer and the on-line estimator, and with a pause as long as a busy machine makes."""
        port, count = free_port(), 2000
        stream = open_stream(f"udp://127.0.0.1:{port}", ur, rate_hz=RATE)
        estimator = armid.OnlineEstimator(ur, rate=RATE)
        observer = armid.observation.residuals.MomentumObserver(ur, RATE)
        sender = threading.Thread(target=paced, args=([line(k, 6) for k in range(count)], port))
        sender.start()
        for k, sample in enumerate(stream):
            estimator.update_positions(sample.q, sample.torque, time=sample.time)
            observer.push(sample.q, sample.torque)
            if k == 500:
                time.sleep(0.3)
        sender.join()
        assert (stream.received, stream.lost, stream.late) == (count, 0, 0)
        assert estimator.gaps == 0

    def test_rtde(self, ur: Robot) -> None:
        server = RtdeServer(rtde_row, 3000)
        server.start()
        stream = open_stream(f"rtde://127.0.0.1:{server.port}?torque=target_moment", ur, rate_hz=RATE)
        samples = list(stream)
        assert (stream.received, stream.lost) == (3000, 0)
        assert server.asked == ["timestamp", "actual_q", "target_moment"]
        assert server.frequency == RATE
        np.testing.assert_allclose(samples[7].q, rtde_row(7)["actual_q"])

    def test_currents_become_torque_by_the_drive_gains(self, ur: Robot) -> None:
        server = RtdeServer(rtde_row, 5)
        server.start()
        gains = np.arange(1.0, 7.0)
        samples = list(open_stream(f"rtde://127.0.0.1:{server.port}", ur, rate_hz=RATE, gains=gains))
        np.testing.assert_allclose(samples[3].torque, gains * rtde_row(3)["actual_current"])


def rtde_row(k: int) -> dict[str, tuple[float, ...]]:
    vector = tuple(0.1 * i + 1e-3 * k for i in range(6))
    return {name: vector for name in ("actual_q", "actual_current", "target_moment")} | {"timestamp": (k / RATE,)}


class TestCounts:
    def sample(self, k: int) -> StreamSample:
        return StreamSample(k / RATE, np.zeros(6), np.zeros(6))

    def test_missing_and_late_samples_are_counted(self) -> None:
        stream = LiveStream([self.sample(k) for k in (0, 1, 2, 5, 6, 4, 6, 16)], RATE)
        assert len(list(stream)) == 6
        assert (stream.received, stream.lost, stream.late) == (6, 11, 2)

    def test_the_user_may_end_it(self) -> None:
        def samples() -> object:
            yield self.sample(0)
            raise KeyboardInterrupt

        assert len(list(LiveStream(samples(), RATE))) == 1  # type: ignore[arg-type]


class TestRefused:
    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("udp://127.0.0.1", "no port"),
            ("udp://192.0.2.1:5005", "cannot be listened at"),
            ("rtde://127.0.0.1:1?torque=target_moment", "is the controller on"),
            ("rtde://127.0.0.1", "no drive gains"),
            ("tcp://127.0.0.1:1", "udp://HOST:PORT"),
        ],
    )
    def test_streams_that_cannot_be_had(self, ur: Robot, source: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            list(open_stream(source, ur, rate_hz=RATE))

    def test_a_field_that_the_controller_does_not_offer(self, ur: Robot) -> None:
        server = RtdeServer(rtde_row, 5, missing=("target_moment",))
        server.start()
        with pytest.raises(InputError, match=r"'target_moment' is NOT_FOUND"):
            list(open_stream(f"rtde://127.0.0.1:{server.port}?torque=target_moment", ur, rate_hz=RATE))

    def test_an_arm_that_rtde_does_not_drive(self) -> None:
        with pytest.raises(InputError, match="7 joints"):
            list(open_stream("rtde://127.0.0.1?torque=x", armid.load_robot("panda"), rate_hz=RATE))

    def test_words_that_are_streams(self) -> None:
        assert all(is_stream(word) for word in ("-", "udp://a:1", "rtde://a"))
        assert not any(is_stream(word) for word in ("log.csv", "https://a", Path("-")))


def lines_of(log: Log, side: Channel = Channel.LINK_TORQUE) -> list[str]:
    rows = zip(log.time, log.channels[Channel.POSITION], log.channels[side], strict=True)
    return [json.dumps({"time": t, "position": q.tolist(), "torque": tau.tolist()}) for t, q, tau in rows]


class TestObserve:
    @pytest.fixture(scope="class")
    @classmethod
    def free(cls) -> list[Log]:
        return [recorded(armid.load_robot("iiwa14"), seconds=30.0, seed=seed) for seed in (10, 11)]

    def test_live_contacts_are_those_of_the_recording(self, free: list[Log]) -> None:
        """The same begins, sizes, joints and wrenches, sample by sample."""
        robot = armid.load_robot("iiwa14")
        log = recorded(robot, seconds=30.0, seed=10, push=bump(30.0, 7, 2, 6.0, 12.0))
        whole = observe(robot, log, free=free)
        arm = ObservedArm(robot)
        levels = levels_from(arm, [arm.motion(each) for each in free], 1.0, "momentum", 10.0)
        observer, told = LiveObserver(arm, levels, rate_hz=500.0), []
        q, tau = log.channels[Channel.POSITION], log.channels[Channel.LINK_TORQUE]
        watch(
            observer, LiveStream([StreamSample(*row) for row in zip(log.time, q, tau, strict=True)], 500.0), told.append
        )
        assert len(observer.contacts) == len(whole.contacts) > 0
        for live, batch in zip(observer.contacts, whole.contacts, strict=True):
            assert live.joints == batch.joints
            assert live.joint == batch.joint
            assert live.begins == pytest.approx(batch.begins, abs=0.003)
            assert live.torque == pytest.approx(batch.torque, rel=1e-3)
            np.testing.assert_allclose(live.wrench, batch.wrench, rtol=1e-2, atol=1e-2)
        assert [said["event"] for said in told] == ["begins", "contact"] * len(whole.contacts)

    def test_the_verb_reads_stdin_and_tells_at_once(self, free: list[Log], tmp_path: Path) -> None:
        robot = armid.load_robot("iiwa14")
        for k, each in enumerate(free):
            each.save(tmp_path / f"free{k}.npz")
        log = recorded(robot, seconds=30.0, seed=10, push=bump(30.0, 7, 2, 6.0, 12.0))
        words = ["observe", "iiwa14", "-", "--rate-hz", "500", "--follow", "--json"]
        calm = [word for k in range(2) for word in ("--free", str(tmp_path / f"free{k}.npz"))]
        done = CliRunner().invoke(application(("observe",)), [*words, *calm], input="\n".join(lines_of(log)))
        assert done.exit_code == 0, done.stderr
        watching, begins, contact, answer = (json.loads(text) for text in done.stdout.strip().splitlines())
        assert watching["event"] == "watching"
        assert 12.0 < begins["time"] < 12.1
        assert contact["joint"] == robot.joint_names[2]
        assert (answer["received"], answer["lost"]) == (len(log.time), 0)

    def test_a_live_result_with_its_covariance(self, tmp_path: Path) -> None:
        """What the model does not know of itself raises the levels, live as in a recording."""
        result = trusted()
        arm = ObservedArm(result.robot, result)
        free = [recorded(result.robot, seconds=30.0, seed=seed) for seed in (1, 2)]
        motion = arm.motion(free[0])
        levels = levels_from(arm, [arm.motion(each) for each in free], 1.0, "momentum", 10.0)
        observer = LiveObserver(arm, levels, rate_hz=500.0)
        q, tau = free[0].channels[Channel.POSITION], free[0].channels[Channel.LINK_TORQUE]
        for k in range(1000):
            observer.push(free[0].time[k], q[k], tau[k])
        from armid.observation.residuals import residuals

        features = arm.features(motion, residuals(arm.robot, motion, 10.0))
        at = 1000 - 2 * observer.observer._derive.polynomial.half_window - 1
        expected = levels.deviation(features)[at]
        observer._reversal = features.reversal[at]
        live: FloatArray = observer._deviation(observer.observer.state)
        np.testing.assert_allclose(live, features.deviation[at], rtol=1e-4, atol=1e-9)
        assert np.isfinite(expected).all()

    def test_another_rate_than_the_free_motion_is_untrusted(
        self, free: list[Log], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = recorded(armid.load_robot("iiwa14"), seconds=30.0, seed=10)
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines_of(log)[::5])))
        seen = observe_stream("iiwa14", "-", free=free, rate_hz=100.0)
        assert "recorded at 500 Hz" in " ".join(seen.reasons)

    def test_without_a_rate_it_is_refused(self, free: list[Log]) -> None:
        with pytest.raises(InputError, match="--rate-hz"):
            observe_stream("iiwa14", "-", free=free, rate_hz=None)
