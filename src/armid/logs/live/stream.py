"""One way to follow a live arm, whatever it speaks, with nothing lost unnoticed.

A thread does nothing but receive; what it received waits in a queue while samples are worked on, so that a slow moment (a page
fault, another program) costs delay and not samples. What still went missing is counted by the samples' own clock.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Queue
from typing import Generic, TextIO, TypeVar
from urllib.parse import SplitResult, parse_qs, urlsplit

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.live.lines import StreamSample, read_stream
from armid.logs.live.rtde import PORT, rtde_rows
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot

WAYS = "`-` (lines on stdin), udp://HOST:PORT or rtde://HOST[:PORT][?torque=FIELD]"

_GAP = 1.5
"""Sampling periods: a longer step means that samples are missing."""

_WAITING = 65_536
"""Samples that may wait to be worked on: a minute at 1 kHz. A pipe or a connection then waits too."""

_FIRST = 60.0
"""[s] to wait for the first datagram."""

_SILENCE = 2.0
"""[s] without a datagram that end a stream."""

_BUFFER = 8 << 20
"""[bytes] asked of the system for datagrams that wait to be received; it may give less."""

T = TypeVar("T")


def is_stream(source: object) -> bool:
    """Whether a word names a live stream rather than a file."""
    return isinstance(source, str) and (source == "-" or source.startswith(("udp://", "rtde://")))


class LiveStream:
    """Samples in the order of their time, and a count of those that did not come.

    Args:
        samples: as they arrive.
        rate_hz: at which they are sent.
    """

    def __init__(self, samples: Iterable[StreamSample], rate_hz: float) -> None:
        if not rate_hz > 0.0:
            raise InputError("rate", f"{rate_hz:g} Hz", "a positive number of samples per second")
        self._samples, self.rate_hz = samples, rate_hz
        self.received = 0
        """Samples handed on."""
        self.lost = 0
        """Missing, by the clock of the others."""
        self.late = 0
        """Not after the one before: left out."""

    def __iter__(self) -> Iterator[StreamSample]:
        """Until the stream ends, or the user has seen enough (Ctrl-C)."""
        before: float | None = None
        try:
            for sample in self._samples:
                step = None if before is None else (sample.time - before) * self.rate_hz
                if step is not None and step <= 0.0:
                    self.late += 1
                    continue
                if step is not None and step > _GAP:
                    self.lost += round(step) - 1
                before = sample.time
                self.received += 1
                yield sample
        except KeyboardInterrupt:
            return


def open_stream(
    source: str,
    robot: Robot,
    *,
    rate_hz: float,
    side: TorqueSide = TorqueSide.LINK,
    gains: FloatArray | None = None,
    stdin: TextIO | None = None,
) -> LiveStream:
    """A live arm.

    Args:
        source: `-`: JSON lines on stdin; `udp://HOST:PORT`: the same in datagrams, until an empty one or two seconds without any;
            `rtde://HOST[:PORT][?torque=FIELD]`: a UR controller.
        robot: names and number of joints.
        rate_hz: samples per second.
        side: which torques a sample holds.
        gains: torque per ampere where currents come, shape [n_joints].
        stdin: other lines than the process's own.

    Raises:
        InputError: another word, or a stream that cannot be had.
    """
    if source == "-":
        return LiveStream(_drained(read_stream(stdin or sys.stdin, robot, side, gains)), rate_hz)
    url = urlsplit(source)
    if url.scheme == "udp":
        return LiveStream(read_stream(_drained(_datagrams(_listening(url), source)), robot, side, gains), rate_hz)
    if url.scheme == "rtde":
        return LiveStream(_drained(_ur_samples(url, robot, rate_hz, gains)), rate_hz)
    if Path(source).exists():
        raise InputError(
            source, "a file, not a live arm", f"armid identify and armid observe read recordings; here {WAYS}"
        )
    raise InputError("stream", source, WAYS)


class _Ended(Generic[T]):
    """What a receiving thread says last."""

    def __init__(self, problem: BaseException | None = None) -> None:
        self.problem = problem


def _drained(items: Iterable[T]) -> Iterator[T]:
    """The same items, received by a thread of its own that never waits for whoever uses them."""
    waiting: Queue[T | _Ended[T]] = Queue(_WAITING)

    def receive() -> None:
        try:
            for item in items:
                waiting.put(item)
            waiting.put(_Ended())
        except BaseException as problem:  # whoever waits must hear of it, whatever it is
            waiting.put(_Ended(problem))

    threading.Thread(target=receive, name="stream", daemon=True).start()
    return _until_ended(waiting)


def _until_ended(waiting: Queue[T | _Ended[T]]) -> Iterator[T]:
    while True:
        item = waiting.get()
        if isinstance(item, _Ended):
            if item.problem is not None:
                raise item.problem
            return
        yield item


def _listening(url: SplitResult) -> socket.socket:
    """A socket that datagrams can be sent to from now on."""
    port = _port(url, None)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    try:
        receiver.bind((url.hostname or "127.0.0.1", port))
    except OSError as problem:
        receiver.close()
        said = f"cannot be listened at: {problem.strerror or problem}"
        raise InputError(url.geturl(), said, "an address of this machine and a port that is free") from None
    return receiver


def _datagrams(receiver: socket.socket, where: str) -> Iterator[str]:
    """Lines of the datagrams that arrive, until an empty one or silence."""
    with receiver:
        receiver.settimeout(_FIRST)
        try:
            while True:
                data = receiver.recv(65_536)
                if not data:
                    return
                receiver.settimeout(_SILENCE)
                yield from data.decode("utf-8", "replace").splitlines()
        except TimeoutError:
            if receiver.gettimeout() == _FIRST:
                raise InputError(where, f"no datagram within {_FIRST:g} s", "is the sender's address right?") from None


def _ur_samples(url: SplitResult, robot: Robot, rate_hz: float, gains: FloatArray | None) -> Iterator[StreamSample]:
    """Samples of a UR controller: currents times drive gains, or a field of torques that the user names."""
    where, field = url.geturl(), parse_qs(url.query).get("torque", ["actual_current"])[0]
    if robot.n_joints != 6:
        raise InputError(where, f"{robot.name} has {robot.n_joints} joints", "RTDE controllers drive six")
    if field == "actual_current" and gains is None:
        raise InputError(
            where,
            "currents, but no drive gains are known",
            "identify from currents, or say ?torque=FIELD with a torque in N m",
        )
    factor = gains if field == "actual_current" and gains is not None else 1.0
    for time, q, torque in rtde_rows(url.hostname or "", _port(url, PORT), rate_hz, field):
        yield StreamSample(time, q, factor * torque)


def _port(url: SplitResult, default: int | None) -> int:
    try:
        port = url.port or default
    except ValueError:
        port = None
    if port is None:
        raise InputError(url.geturl(), "no port", "for example udp://127.0.0.1:5005")
    return port
