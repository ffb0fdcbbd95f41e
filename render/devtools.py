"""Questions to a browser past its driver (Chrome DevTools Protocol): does the page answer, and how did it crash.

While a sketch runs, the driver waits for it and takes no other question. A second connection can ask: a page whose
thread is free answers at once, one that computes without end, or whose machine gives it no time, does not. And only
the browser itself knows whether a page's process was killed or ended itself, as V8 does when its heap is full.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import websocket

from render.processes import command_line

# What a lost connection, an answer that is no JSON, or a browser without a page raise.
_FAILURES = (OSError, ValueError, LookupError, websocket.WebSocketException)


def page_answers(pids: Iterable[int], seconds: float) -> bool:
    """Whether the one page of the browser among `pids` evaluates an expression within `seconds`."""
    limit = time.monotonic() + seconds
    try:
        page: dict[str, Any] = next((target for target in _ask(pids, "list", seconds) if target["type"] == "page"), {})
        with contextlib.closing(_connect(page["webSocketDebuggerUrl"], seconds)) as connection:
            connection.send(json.dumps({"id": 1, "method": "Runtime.evaluate", "params": {"expression": "1"}}))
            connection.settimeout(max(0.1, limit - time.monotonic()))
            return json.loads(connection.recv()).get("id") == 1
    except _FAILURES:
        return False


def feature_status(pids: Iterable[int]) -> dict[str, str]:
    """Chromium's own account of what is drawn by a (perhaps emulated) GPU: SystemInfo.getInfo, featureStatus.

    Raises ConnectionError when the browser among `pids` does not answer.
    """
    try:
        with contextlib.closing(_connect(_ask(pids, "version", 10.0)["webSocketDebuggerUrl"], 10.0)) as connection:
            connection.send(json.dumps({"id": 1, "method": "SystemInfo.getInfo"}))
            return json.loads(connection.recv())["result"]["gpu"]["featureStatus"]
    except _FAILURES as error:
        raise ConnectionError(f"the browser does not answer: {error}") from error


class CrashWatch:
    """Listens for the ends of page processes in the browser among `pids`."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._connection: Any = None
        with contextlib.suppress(*_FAILURES):
            self._connection = _connect(_ask(pids, "version", 5.0)["webSocketDebuggerUrl"], 5.0)
            self._connection.send(
                json.dumps({"id": 1, "method": "Target.setDiscoverTargets", "params": {"discover": True}})
            )

    def ended_itself(self, seconds: float) -> bool:
        """Whether a page's process has raised SIGTRAP, V8's answer to a full heap, since the last call.

        Waits for at most `seconds` for the news. False when the connection is lost.
        """
        limit = time.monotonic() + seconds
        if self._connection is None:
            return False
        try:
            while True:
                self._connection.settimeout(max(0.001, limit - time.monotonic()))
                message = json.loads(self._connection.recv())
                if message.get("method") == "Target.targetCrashed":
                    return message["params"]["errorCode"] == signal.SIGTRAP
        except _FAILURES:
            return False


def _ask(pids: Iterable[int], what: str, seconds: float) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{_port(pids)}/json/{what}", timeout=seconds) as answer:
        return json.load(answer)


def _connect(address: str, seconds: float) -> Any:
    # The browser refuses connections that name an origin, as those of a web page would.
    return websocket.create_connection(address, timeout=seconds, suppress_origin=True)


def _port(pids: Iterable[int]) -> int:
    """Port of the browser's DevTools, which it writes into its profile's folder. Raises LookupError."""
    for pid in pids:
        for argument in command_line(pid).split(b"\0"):
            if argument.startswith(b"--user-data-dir="):
                file = Path(argument.partition(b"=")[2].decode()) / "DevToolsActivePort"
                if file.is_file():
                    return int(file.read_text().split()[0])
    raise LookupError("no browser with DevTools")
