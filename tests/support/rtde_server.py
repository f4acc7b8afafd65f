"""A server that speaks RTDE version 2 on the loopback: handshake, recipe, data at a rate."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

TYPES = {"timestamp": "DOUBLE", "output_int_register_0": "INT32"}
"""Of the fields it offers; the others are VECTOR6D."""

Row = Callable[[int], dict[str, tuple[float, ...]]]
"""Values of the fields at a cycle."""


class RtdeServer(threading.Thread):
    """Serves one client `cycles` data packages.

    Args:
        row: values of every field.
        cycles: how many packages.
        missing: fields it does not know.
    """

    def __init__(self, row: Row, cycles: int, missing: tuple[str, ...] = ()) -> None:
        super().__init__(daemon=True)
        self.row, self.cycles, self.missing = row, cycles, missing
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked: list[str] = []
        self.frequency = 0.0

    def run(self) -> None:
        link, _ = self.listener.accept()
        with link, self.listener:
            kinds: list[str] = []
            while True:
                head = self._exactly(link, 3)
                if head is None:
                    return
                size, kind = struct.unpack(">Hc", head)
                payload = self._exactly(link, size - 3) or b""
                if kind == b"V":
                    self._send(link, b"V", b"\x01" if payload == b"\x00\x02" else b"\x00")
                elif kind == b"O":
                    (self.frequency,) = struct.unpack(">d", payload[:8])
                    self.asked = payload[8:].decode().split(",")
                    kinds = [
                        "NOT_FOUND" if name in self.missing else TYPES.get(name, "VECTOR6D") for name in self.asked
                    ]
                    self._send(link, b"O", b"\x01" + ",".join(kinds).encode())
                elif kind == b"S":
                    self._send(link, b"S", b"\x01")
                    with suppress(ConnectionError):  # a recorder that has what it wants hangs up
                        self._stream(link, kinds)
                    return

    def _stream(self, link: socket.socket, kinds: list[str]) -> None:
        for k in range(self.cycles):
            values, data = self.row(k), b"\x01"
            for name, kind in zip(self.asked, kinds, strict=True):
                letters = {"DOUBLE": "d", "VECTOR6D": "6d", "INT32": "i"}[kind]
                data += struct.pack(">" + letters, *values[name])
            if k == 1:
                self._send(link, b"M", b"\x05hello\x04test\x03")
            self._send(link, b"U", data)

    @staticmethod
    def _send(link: socket.socket, kind: bytes, payload: bytes) -> None:
        link.sendall(struct.pack(">Hc", 3 + len(payload), kind) + payload)

    @staticmethod
    def _exactly(link: socket.socket, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            part = link.recv(count - len(data))
            if not part:
                return None
            data += part
        return data
