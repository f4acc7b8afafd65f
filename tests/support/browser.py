"""Headless Chromium over its debugging protocol, for tests that look at pixels."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--window-size=900,700",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)


def executable() -> str:
    """Chromium, or the test is skipped."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no Chromium installed")


class Browser:
    """One page in a browser of its own."""

    def __init__(self, profile: Path) -> None:
        from websockets.sync.client import connect

        self.process = subprocess.Popen(
            [executable(), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = self._port(profile / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            page = next(entry for entry in json.load(answer) if entry["type"] == "page")
        self.socket = connect(page["webSocketDebuggerUrl"], max_size=None)
        self.number = 0

    def _port(self, path: Path) -> int:
        end = time.monotonic() + 120.0  # a busy machine takes its time
        while time.monotonic() < end:
            if path.exists() and path.read_text().strip():
                return int(path.read_text().splitlines()[0])
            time.sleep(0.1)
        self.process.kill()
        raise TimeoutError("Chromium did not start")

    def call(self, method: str, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv(timeout=60))
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def screenshot(self) -> bytes:
        """PNG of what is visible; while a page is being loaded there is nothing to capture yet."""
        end = time.monotonic() + 120.0  # a busy machine takes its time
        while True:
            try:
                return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=10)
