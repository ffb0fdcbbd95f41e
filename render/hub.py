"""A Selenium Grid 4 hub: what it offers, how a session's browser is asked past its driver, how a session is ended.

Three of the hub's interfaces are used besides WebDriver itself: GET /status (slots and who sits in them), DELETE
/session/ID, and the websocket /session/ID/se/cdp, by which a hub passes Chrome DevTools Protocol to the browser on its
node. All three are asked at the hub's own address: those that a hub advertises may belong to an inner network.

A session whose page computes for ever cannot be ended by WebDriver alone: chromedriver queues the DELETE behind the
script that never returns. So the browser is told to close over the websocket first, which ends the page in any state.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import websocket

from render.errors import ConfigError, SetupError

# Names under which a node offers Chromium, best first: the headless shell starts faster and takes less memory.
NAMES = ("chrome-headless-shell", "chrome", "chromium")
STATUS_S = 5.0
CLOSE_S = 1.0
DELETE_S = 3.0
IDLE_MARGIN_S = 5.0


@dataclass(frozen=True)
class Slots:
    """Places for one kind of browser on a hub.

    name: its browserName. binary: path on the nodes where they name one, else empty. total: sessions that can run at
    the same time, of anybody; free: those that could start now. idle_s: seconds without a command after which a node
    ends a session.
    """

    name: str
    binary: str
    total: int
    free: int
    idle_s: float


class Hub:
    """A hub (or a standalone Grid) at `url`, http://[USER:PASSWORD@]HOST[:PORT][/PATH]. Raises ConfigError.

    url: without user and password, for messages too.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            self.port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        except (KeyError, ValueError):
            raise ConfigError(f"grid_url = {url!r} is not an address like http://hub:4444") from None
        if not parts.hostname:
            raise ConfigError(f"grid_url = {url!r} names no machine, as http://hub:4444 does")
        self.host = parts.hostname
        self.user, self.password = unquote(parts.username or ""), unquote(parts.password or "")
        self._parts = SplitResult(parts.scheme, f"{self.host}:{self.port}", parts.path.rstrip("/"), "", "")
        self.url = self._parts.geturl()
        self._headers = {}
        if self.user:
            secret = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {secret}"

    def slots(self) -> Slots:
        """What the hub offers for Chromium now; of several kinds the best name, then the one with most places.

        Raises ConnectionError when nobody answers, SetupError when what answers is no Grid 4 or has no Chromium.
        """
        try:
            nodes = self.ask("GET", "/status", STATUS_S)["value"]["nodes"]
        except (KeyError, TypeError, ValueError):
            raise SetupError(f"grid_url: what answers at {self.url} is no Selenium Grid 4 hub") from None
        total: dict[tuple[str, str], int] = defaultdict(int)
        free: dict[tuple[str, str], int] = defaultdict(int)
        others = set()
        idle_s = 300.0
        for node in (node for node in nodes if node["availability"] == "UP"):
            room = node["maxSessions"] - sum(1 for slot in node["slots"] if slot["session"])
            kinds: dict[tuple[str, str], list[bool]] = defaultdict(list)
            for slot in node["slots"]:
                stereotype = slot["stereotype"]
                name = stereotype.get("browserName", "")
                if name in NAMES:
                    binary = stereotype.get("goog:chromeOptions", {}).get("binary", "")
                    kinds[name, binary].append(not slot["session"])
                else:
                    others.add(name)
            for kind, empty in kinds.items():
                total[kind] += min(len(empty), node["maxSessions"])
                free[kind] += max(0, min(sum(empty), room))
            idle_s = min(idle_s, node.get("sessionTimeout", 300_000) / 1000)
        if not total:
            found = f"only {', '.join(sorted(others))}" if others else "no node at all"
            raise SetupError(f"grid_url: the hub at {self.url} has no node with Chromium, {found}")
        best = min(total, key=lambda kind: (NAMES.index(kind[0]), -total[kind]))
        return Slots(*best, total[best], free[best], idle_s)

    def first_slots(self, deadline_s: float) -> Slots:
        """`slots` for the start of a farm: a hub that is not there is a person's to mend. Raises SetupError.

        deadline_s: a node also ends a command that lasts longer than its session timeout, which must not come first.
        """
        try:
            slots = self.slots()
        except ConnectionError as error:
            raise SetupError(f"grid_url: {error}; is a Selenium Grid 4 running there?") from error
        if slots.idle_s < deadline_s + IDLE_MARGIN_S:
            raise SetupError(
                f"grid_url: the nodes of {self.url} end a command after {slots.idle_s:g} s, "
                f"deadline_s = {deadline_s:g} needs --session-timeout {deadline_s + IDLE_MARGIN_S:.0f} or more"
            )
        return slots

    def ask(self, method: str, path: str, seconds: float) -> Any:
        """JSON answer to a request. Raises ConnectionError when none comes, KeyError when the hub knows no such thing,
        ValueError for what is no JSON."""
        request = urllib.request.Request(self.url + path, method=method, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 401:
                raise SetupError(f"grid_url: the hub at {self.url} wants another user and password") from None
            raise KeyError(path) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ConnectionError(f"nobody answers at {self.url} ({_words(reason)})") from error

    def own_address(self) -> str:
        """Address of this machine on the way to the hub. Nothing is sent: the kernel is asked for the route."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((self.host, self.port))
                return str(probe.getsockname()[0])
        except OSError as error:
            raise ConnectionError(f"there is no way to {self.url} ({_words(error)})") from error

    def websocket(self, session: str, seconds: float) -> websocket.WebSocket:
        """DevTools of the browser of a session. Raises OSError or WebSocketException."""
        address = self._parts._replace(scheme={"http": "ws", "https": "wss"}[self._parts.scheme])
        return websocket.create_connection(
            f"{address.geturl()}/session/{session}/se/cdp",
            timeout=seconds,
            suppress_origin=True,
            header=[f"{name}: {value}" for name, value in self._headers.items()],
        )

    def end(self, session: str) -> bool:
        """End a session, whatever its page does; from any process. Whether the hub has said that it is gone."""
        with contextlib.suppress(OSError, websocket.WebSocketException):
            connection = self.websocket(session, CLOSE_S)
            connection.send(json.dumps({"id": 1, "method": "Browser.close"}))
            connection.recv()
            connection.close()
        for _ in range(2):  # a hub that is asked again frees the slot of a session whose end it did not see
            try:
                self.ask("DELETE", f"/session/{session}", DELETE_S)
                return True
            except ConnectionError:
                continue
            except (KeyError, ValueError):
                # No such session any more; or its driver is dead, and each word to it would keep its slot taken longer.
                return True
        return False


class DevTools:
    """Chrome DevTools Protocol with the browser of one session; open before its page hangs. From any thread.

    closed: the connection is gone, and with it most likely the browser or its node.
    """

    def __init__(self, hub: Hub, session: str) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._crash = 0
        self.closed = False
        try:
            self._connection = hub.websocket(session, STATUS_S)
        except (OSError, websocket.WebSocketException) as error:
            raise SetupError(
                f"grid_url: the hub at {hub.url} gives no DevTools connection ({_words(error)}): its nodes need "
                "enable-cdp = true, and whatever stands before it must pass websockets"
            ) from error
        self.ask("Target.setDiscoverTargets", {"discover": True})

    def ask(
        self, method: str, parameters: dict[str, Any] | None = None, *, target: str = "", seconds: float = 1.0
    ) -> Any:
        """Result of a command, to the browser or to an attached target. Raises ConnectionError when none comes."""
        limit = time.monotonic() + seconds
        with self._lock:
            self._number += 1
            command = {"id": self._number, "method": method, "params": parameters or {}}
            try:
                self._connection.send(json.dumps(command | ({"sessionId": target} if target else {})))
                while True:
                    message = self._next(limit)
                    if message.get("id") == self._number:
                        return message["result"]
            except websocket.WebSocketTimeoutException as error:
                raise ConnectionError(f"the browser does not answer to {method}") from error
            except (OSError, ValueError, LookupError, websocket.WebSocketException) as error:
                self.closed = self.closed or not self._connection.connected
                raise ConnectionError(f"the connection to the browser is lost ({_words(error)})") from error

    def _next(self, limit: float) -> dict[str, Any]:
        self._connection.settimeout(max(0.001, limit - time.monotonic()))
        message = json.loads(self._connection.recv())
        if message.get("method") == "Target.targetCrashed":
            self._crash = message["params"]["errorCode"]
        return message

    def ended_itself(self, seconds: float) -> bool:
        """Whether a page's process has raised SIGTRAP, V8's answer to a full heap, since the last call.

        Waits for at most `seconds` for the news. False when the connection is lost.
        """
        limit = time.monotonic() + seconds
        with self._lock:
            with contextlib.suppress(OSError, ValueError, LookupError, websocket.WebSocketException):
                while not self._crash:
                    self._next(limit)
            crash, self._crash = self._crash, 0
        return crash == signal.SIGTRAP

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(OSError, websocket.WebSocketException):
            self._connection.shutdown()


def _words(error: object) -> str:
    """An exception in a few words of one line."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split()) or type(error).__name__
