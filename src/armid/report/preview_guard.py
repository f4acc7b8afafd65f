"""Who may talk to the preview: only the page that armid itself named, opened on this machine.

A server on the loopback address is still in reach of every page in the user's browser and of every user of the machine. So
each request must name this server as its host (against a name that is pointed at 127.0.0.1 later), must come from its own page
(against other pages), and must know a token that stands in the address armid prints (against other users).
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from armid.errors import ArmidError

_LOCK = threading.Lock()
_PARAMETER = "token"
_QUIET = logging.getLogger("armid.preview")
"""Browsers open connections ahead and close them unused; the server's library reports each with its traceback."""
_QUIET.setLevel(logging.CRITICAL + 1)


@dataclass(eq=False)
class Guard:
    """Judges requests to one server.

    Args:
        host: address the server listens at.
        token: what its visitors must know.
    """

    host: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    port: int = 0
    installed: bool = False

    def url(self, port: int) -> str:
        """The address with the token in it, for the page and for its socket; from now on requests must name this port.

        The page finds its socket by the second half. Without it the socket would need the cookie, which browsers do not send
        where cookies are blocked or the page stands inside another one (an editor's preview), and would never connect.
        """
        self.port = port
        place = f"{self.host}:{port}/?{_PARAMETER}={self.token}"
        return f"http://{place}&websocket=ws://{place}"

    @property
    def cookie(self) -> str:
        """Name of the cookie that stands for the token: cookies are shared by all ports of a host."""
        return f"armid-{self.port}"

    def refusal(self, path: str, headers: Any) -> str:
        """Why a request is refused; empty when it is not."""
        places = {f"{name}:{self.port}" for name in (self.host, "localhost")}
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or hosts[0] not in places:
            return "this server goes by another name"
        if any(origin not in {f"http://{place}" for place in places} for origin in origins):
            return "requests of other pages are not answered"
        if not any(hmac.compare_digest(known.encode(), self.token.encode()) for known in self._tokens(path, headers)):
            return "open the address that armid printed, with its token"
        return ""

    def _tokens(self, path: str, headers: Any) -> Iterator[str]:
        yield from parse_qs(urlsplit(path).query).get(_PARAMETER, [])
        for text in headers.get_all("Cookie"):
            try:
                jar = SimpleCookie(text)
            except CookieError:
                continue
            if self.cookie in jar:
                yield jar[self.cookie].value

    def wrapped(self, process: Any) -> Any:
        """A handler of requests that asks us first, and lets the page remember the token."""

        def judged(connection: Any, request: Any) -> Any:
            reason = self.refusal(request.path, request.headers)
            if reason:
                return connection.respond(HTTPStatus.FORBIDDEN, f"armid: {reason}\n")
            answer = None if process is None else process(connection, request)
            if answer is not None:
                answer.headers["Set-Cookie"] = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                answer.headers["Referrer-Policy"] = "no-referrer"
            return answer

        return judged


@contextmanager
def guarding(guard: Guard) -> Iterator[None]:
    """Servers of `websockets` started inside this context ask the guard about every request.

    Raises:
        ArmidError: none was started: the viewer's library serves in another way, which we do not guard.
    """
    from websockets.asyncio import server

    with _LOCK:
        plain = server.serve

        def serve(*args: Any, process_request: Any = None, **kwargs: Any) -> Any:
            guard.installed = True
            return plain(*args, process_request=guard.wrapped(process_request), **({"logger": _QUIET} | kwargs))

        server.serve = serve  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            server.serve = plain  # type: ignore[misc]
    if not guard.installed:
        raise ArmidError("the preview cannot be guarded with this version of viser (try: pip install 'viser==1.1.*')")
