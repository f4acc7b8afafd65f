"""Live samples of a UR controller by its Real-Time Data Exchange, version 2."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import numpy as np

from armid.errors import InputError

PORT = 30004

_JOINTS = 6
_VERSION, _OUTPUTS, _START, _DATA = b"V", b"O", b"S", b"U"
_LONGEST_WAIT = 5.0
"""[s] without a word from the controller: it is gone."""


def rtde_rows(host: str, port: int, rate_hz: float, torque: str) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Time [s], positions [rad] and the field named `torque`, as the controller sends them.

    Args:
        host, port: of the controller.
        rate_hz: asked for.
        torque: RTDE field of six numbers: `actual_current`, `target_moment`, ...

    Raises:
        InputError: nobody there, another protocol, or a field that the controller does not offer.
    """
    where = f"rtde://{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=_LONGEST_WAIT) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            recipe = _begun(link, where, rate_hz, ("timestamp", "actual_q", torque))
            layout = struct.Struct(">d6d6d")
            while True:
                kind, payload = _package(link)
                if kind == _DATA and payload[0] == recipe and len(payload) == 1 + layout.size:
                    time, *values = layout.unpack(payload[1:])
                    yield time, np.array(values[:_JOINTS]), np.array(values[_JOINTS:])
    except EOFError:
        return
    except OSError as problem:
        raise InputError(where, f"{problem.strerror or problem}", "is the controller on, and RTDE enabled?") from None


def _begun(link: socket.socket, where: str, rate_hz: float, fields: tuple[str, ...]) -> int:
    """The handshake; the number of the recipe."""
    _send(link, _VERSION, struct.pack(">H", 2))
    if _answer(link, _VERSION) != b"\x01":
        raise InputError(where, "does not speak RTDE version 2", "CB3 3.4 or newer, or an e-series controller")
    _send(link, _OUTPUTS, struct.pack(">d", rate_hz) + ",".join(fields).encode())
    reply = _answer(link, _OUTPUTS)
    kinds = reply[1:].decode("ascii", "replace").split(",")
    for name, kind, wanted in zip(fields, kinds, ("DOUBLE", "VECTOR6D", "VECTOR6D"), strict=False):
        if kind != wanted:
            raise InputError(where, f"field {name!r} is {kind}", f"a field of type {wanted} is needed")
    _send(link, _START, b"")
    if _answer(link, _START) != b"\x01":
        raise InputError(where, "the controller refused to start", "another client may hold the output")
    return reply[0]


def _send(link: socket.socket, kind: bytes, payload: bytes) -> None:
    link.sendall(struct.pack(">Hc", 3 + len(payload), kind) + payload)


def _answer(link: socket.socket, wanted: bytes) -> bytes:
    """The next package of a kind; messages of the controller in between are not for us."""
    while True:
        kind, payload = _package(link)
        if kind == wanted:
            return payload


def _package(link: socket.socket) -> tuple[bytes, bytes]:
    size, kind = struct.unpack(">Hc", _exactly(link, 3))
    return kind, _exactly(link, max(size - 3, 0))


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
