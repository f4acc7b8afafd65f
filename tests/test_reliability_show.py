"""The preview answers only its own page: host, origin and token are checked on every request."""

from __future__ import annotations

import http.client
import logging
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from armid.robot.load import load_robot
from armid.scene.scene import build_scene

pytest.importorskip("viser", reason="viser is not installed")

from armid.report.preview import Preview, Show
from armid.report.preview_guard import Guard, guarding


class Answer(NamedTuple):
    status: int
    cookie: str | None
    content: bytes


@pytest.fixture(scope="module")
def viewer():
    robot = load_robot("cylindrical")
    with Preview(Show(robot, None, build_scene(robot), np.zeros(robot.n_joints)), port=0) as running:
        yield running


def asked(viewer, path: str, **headers: str) -> Answer:
    place = urlsplit(viewer.url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in {"Host": f"{place.hostname}:{place.port}", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return Answer(answer.status, answer.getheader("Set-Cookie"), content)


def page(viewer) -> str:
    place = urlsplit(viewer.url)
    return f"{place.path}?{place.query}"


def test_the_address_that_was_printed_is_answered_and_remembered(viewer):
    answer = asked(viewer, page(viewer))
    assert answer.status == 200
    cookie = answer.cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert asked(viewer, "/", Cookie=cookie.split(";")[0]).status == 200


def test_without_the_token_nothing_is_answered(viewer):
    for path in ("/", "/?token=", "/?token=guess", "/index.html"):
        answer = asked(viewer, path)
        assert answer.status == 403
        assert answer.cookie is None
        assert b"token" in answer.content


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", ""])
def test_another_host_is_refused(viewer, host):
    assert asked(viewer, page(viewer), Host=host).status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_another_origin_is_refused(viewer, origin):
    assert asked(viewer, page(viewer), Origin=origin).status == 403
    place = urlsplit(viewer.url)
    assert asked(viewer, page(viewer), Origin=f"http://{place.hostname}:{place.port}").status == 200


def test_a_socket_needs_the_same(viewer):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    place = urlsplit(viewer.url)
    socket = f"ws://{place.hostname}:{place.port}/"
    for url, headers in ((socket, {}), (f"{socket}?{place.query}", {"Origin": "http://evil.example"})):
        with pytest.raises(InvalidStatus, match="403"):
            connect(url, additional_headers=headers, subprotocols=["viser-v1"])
    connect(f"{socket}?{place.query}", subprotocols=["viser-v1"]).close()


def test_the_page_finds_its_socket_without_cookies(viewer):
    from websockets.sync.client import connect

    (place,) = parse_qs(urlsplit(viewer.url).query)["websocket"]
    assert place.startswith("ws://127.0.0.1:")
    connect(place, subprotocols=["viser-v1"], origin=f"http://{urlsplit(viewer.url).netloc}").close()


def test_connections_that_a_browser_opens_ahead_and_drops_are_no_news(monkeypatch):
    from websockets.asyncio import server

    given: dict[str, object] = {}
    monkeypatch.setattr(server, "serve", lambda *_, **options: given.update(options))
    with guarding(Guard("127.0.0.1")):
        server.serve()
    logger = given["logger"]
    assert isinstance(logger, logging.Logger)
    assert not logger.isEnabledFor(logging.CRITICAL)
