"""One Chromium on another machine: a session of a Selenium Grid 4 hub in the place of a browser of this one.

A GridBrowser paints like a Browser: same page, same flags, same bytes, same causes when it is lost. What is different,
because there is no process of the browser here:

  CPU budget      the browser's own account over DevTools (SystemInfo.getProcessInfo: CPU seconds of its processes),
                  so that a busy node does not turn into rejected sketches; a process that comes and goes between two
                  looks is missed
  memory ceiling  not known here: `memory_mb` and `recycle_mb` have no effect. JavaScript's heap has its own ceiling;
                  for the rest a node must be given a limit (see docs/RENDERING.md)
  environment     cannot be set on a node: llvmpipe works where the node has Mesa and its environment says so, which
                  the probe finds out; otherwise swiftshader. The time zone is set by DevTools
  kill            closes the browser over DevTools and ends the session; a session that both can't reach is ended by its
                  node when nothing was asked of it for that node's session timeout
  the page        comes from a server on this machine's address on the way to the hub, which the nodes must reach

Left out: starting or watching hubs and nodes.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import IO, Any, ClassVar, TypeVar

from selenium import webdriver
from selenium.common.exceptions import SessionNotCreatedException, WebDriverException
from selenium.webdriver.chromium.remote_connection import ChromiumRemoteConnection
from selenium.webdriver.remote.client_config import ClientConfig

from render import backend, chromium
from render.browser import FOREVER_S, Browser, BrowserLost
from render.disk import lock_at_once
from render.errors import SetupError, UserError
from render.hub import DevTools, Hub, Slots
from render.serve import StudioServer
from render.settings import RenderSettings

Result = TypeVar("Result")

LOOPBACK = "127.0.0.1"
SLOT_WAIT_S = 20.0
TRIES = 2


class GridStudio(StudioServer):
    """The studio's server on an address that nodes can reach: page and sketch only for who knows a random token.

    Whoever can reach the port may still ask for the libraries. The token travels in the page's address; the browser
    names that address when it asks for the sketch (Referer).
    """

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self._token = secrets.token_urlsafe(18)

    def page(self) -> str:
        return f"{super().page()}?{self._token}"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path, _, query = request.path.partition("?")
        given = {"/studio": query, "/sketch.js": request.headers.get("Referer", "").partition("?")[2]}.get(path)
        if given is not None and not secrets.compare_digest(given.encode(), self._token.encode()):
            request.send_error(404)
            return
        super()._answer(request)


class GridBrowser(Browser):
    """One warm browser on the hub `settings.grid_url`; see Browser. info has `session` and `grid` too."""

    # Hub and name of each session of this process that a hub could not be told to end: it holds a slot.
    _forsaken: ClassVar[set[tuple[str, str]]] = set()

    def __init__(self, settings: RenderSettings, index: int = 0) -> None:
        super().__init__(settings, index)
        self._hub = Hub(settings.grid_url)
        self._over: Future[None] = Future()
        self._session = ""
        self._devtools: DevTools | None = None
        self._seconds: dict[int, float] = {}
        self._gpu: int | None = None
        self._gpu_runs = True

    # ---- life ---------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Get a session and probe its browser.

        Raises BrowserLost when no slot is free within SLOT_WAIT_S, when nobody answers for as long, or when no browser
        starts; SetupError for a hub that passes no DevTools, ConfigError for a method that `brush` does not have.
        """
        self._killed = False
        self._over = Future()
        kinds = backend.kinds_to_try(self.settings, nvidia=self.settings.backend == "gpu")
        troubles = {"": backend.unmet(self.settings, kinds)}
        for kind in kinds:
            for _ in range(TRIES):
                slots, turn = self._free_slot()
                try:
                    with turn:
                        self._open(slots, kind)
                    self._probe(kind)
                    troubles.pop(kind, None)
                    self.info["fallback"] = backend.fallback(troubles.values(), kind)
                    return
                except BrowserLost as error:
                    troubles[kind] = f"{kind}: {error}"
                    self._end()
                    if self._killed:
                        raise
                    self._over = Future()
                    if error.cause == "context_lost":  # no WebGL by this kind: trying again would not help
                        break
                except UserError:
                    killed = self._killed
                    self._end()
                    if killed:
                        raise BrowserLost("browser_died", "the browser was killed while it started") from None
                    raise
        raise BrowserLost("browser_died", f"{self._hub.url}: {'; '.join(filter(None, troubles.values()))}")

    def _free_slot(self) -> tuple[Slots, IO[str]]:
        """Wait until the hub has a free slot: a request that waits in the hub's queue could not be taken back.

        With it comes this machine's turn to ask for a session, until the file is closed: two that saw the same last
        slot free would both ask for it, and one of them would wait in the queue. A hub that does not answer, or has no
        node yet, may just be starting again: it is given the same time.
        """
        limit = time.monotonic() + SLOT_WAIT_S
        while True:
            try:
                slots = self._hub.slots()
                for url, session in [*self._forsaken]:
                    if url == self._hub.url and self._hub.end(session):
                        self._forsaken.discard((url, session))
                cause, trouble = "host_stalled", f"no slot of the hub at {self._hub.url} is free, of {slots.total}"
                turn = _turn() if slots.free else None
                if turn is not None:
                    with contextlib.ExitStack() as held:
                        held.enter_context(turn)
                        slots = self._hub.slots()
                        if slots.free:
                            held.pop_all()
                            return slots, turn
            except (ConnectionError, SetupError) as error:
                cause, trouble = "page_lost", str(error)
            if self._killed or time.monotonic() > limit:
                raise BrowserLost(cause, trouble)
            time.sleep(0.25)

    def _open(self, slots: Slots, kind: str) -> None:
        with self._losses():
            host = self._hub.own_address()
        with self._lock:  # a `kill` comes before it, or finds what there is to end
            if self._killed:
                raise BrowserLost("browser_died", "the browser was killed while it started")
            self._server = GridStudio(host)
        options = webdriver.ChromeOptions()
        options.page_load_strategy = "eager"
        options.set_capability("browserName", slots.name)
        if slots.binary:
            # A node adds what its stereotype says of Chrome, yet not for the headless shell.
            options.binary_location = slots.binary
        for flag in chromium.flags(kind, Path()):
            if not flag.startswith("--user-data-dir"):  # chromedriver makes one on the node
                options.add_argument(flag.replace(f"EXCLUDE {LOOPBACK}", f"EXCLUDE {host}"))
        self._start_session(options)
        self.info = {
            "rasterizer": kind,
            "binary": slots.binary or slots.name,
            "version": self._driver.capabilities.get("browserVersion", ""),
            "session": self._session,
            "grid": self._hub.url,
        }
        threading.Thread(target=self._keep, args=(self._over, self._session, slots.idle_s / 3), daemon=True).start()

    def _start_session(self, options: webdriver.ChromeOptions) -> None:
        connection = ChromiumRemoteConnection(
            remote_server_addr=self._hub.url,
            vendor_prefix="goog",
            browser_name="chrome",
            client_config=ClientConfig(
                remote_server_addr=self._hub.url,
                timeout=FOREVER_S,
                keep_alive=True,
                username=self._hub.user or None,
                password=self._hub.password or None,
            ),
        )

        def begin() -> Any:
            try:
                driver = webdriver.Remote(command_executor=connection, options=options)
            except SessionNotCreatedException as error:
                # A hub says the same three times over, with the reason between what failed and on which machine.
                said = str(error.msg).partition("Host info")[0].rpartition("Message: ")[2]
                raise WebDriverException(" ".join(said.split())) from error
            with self._lock:
                self._session = driver.session_id or ""
                late = self._killed
            if late:
                self._hub.end(self._session)
            return driver

        with self._losses():
            driver = self._call(begin)
            self._driver = _Breakable(driver, self._call)
            self._devtools = DevTools(self._hub, self._session)
            self._seconds, self._gpu, self._gpu_runs = {}, None, True
            for process in self._devtools.ask("SystemInfo.getProcessInfo")["processInfo"]:
                if process["type"] == "GPU":
                    self._gpu = process["id"]
            self._driver.set_script_timeout(FOREVER_S)
            self._driver.set_page_load_timeout(FOREVER_S)
            self._driver.execute(
                "executeCdpCommand", {"cmd": "Emulation.setTimezoneOverride", "params": {"timezoneId": "UTC"}}
            )

    def _call(self, function: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """Result of `function`, or BrowserLost as soon as the browser is killed, though the hub may never answer."""
        result: Future[Result] = Future()

        def run() -> None:
            try:
                result.set_result(function(*args, **options))
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
                result.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        both: tuple[Future[Any], ...] = (result, self._over)
        wait(both, return_when=FIRST_COMPLETED)
        if not result.done():
            raise BrowserLost("browser_died", "the session was ended")
        return result.result()

    def _keep(self, over: Future[None], session: str, seconds: float) -> None:
        """Ask the session something now and then, so that its node does not take it for forgotten."""
        while not wait((over,), timeout=seconds).done:
            # Behind a script that runs the answer comes late; that it was asked is what counts.
            with contextlib.suppress(ConnectionError, KeyError, ValueError):
                self._hub.ask("GET", f"/session/{session}/timeouts", 1.0)

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
        with self._lock:  # held to the end: whoever comes second returns when nothing is left
            if self._devtools is not None:
                self._devtools.close()
                self._devtools = None
            if self._session:
                if not self._hub.end(self._session):
                    self._forsaken.add((self._hub.url, self._session))
                self._session = ""
            if self._server is not None:
                self._server.close()
                self._server = None

    # ---- measures -----------------------------------------------------------------------------------------------
    def pids(self) -> list[int]:
        """None: no process of the browser is on this machine."""
        return []

    def usage(self) -> tuple[float, float]:
        """CPU seconds of the browser's processes on the node since their start; memory is not known: 0."""
        with contextlib.suppress(ConnectionError):
            if self._devtools is not None:
                processes = self._devtools.ask("SystemInfo.getProcessInfo")["processInfo"]
                self._seconds |= {process["id"]: process["cpuTime"] for process in processes}
                self._gpu_runs = self._gpu is None or any(process["id"] == self._gpu for process in processes)
        return sum(self._seconds.values()), 0.0

    def _features(self) -> dict[str, str]:
        if self._devtools is None:
            raise ConnectionError("the session was ended")
        return self._devtools.ask("SystemInfo.getInfo", seconds=10.0)["gpu"]["featureStatus"]

    def lost(self) -> tuple[str, str] | None:
        if self._devtools is not None and self._devtools.closed:
            return "page_lost", "the connection to the browser's node is lost"
        return None if self._gpu_runs else ("context_lost", "the browser's GPU process ended")

    def stopped(self) -> bool:
        """Not known of a process on another machine."""
        return False

    def page_answers(self, seconds: float) -> bool:
        """Whether the page evaluates an expression within `seconds`."""
        devtools, limit = self._devtools, time.monotonic() + seconds
        try:
            if devtools is None:
                return False
            targets = devtools.ask("Target.getTargets", seconds=seconds)["targetInfos"]
            page = next(target["targetId"] for target in targets if target["type"] == "page")
            attached = devtools.ask(
                "Target.attachToTarget", {"targetId": page, "flatten": True}, seconds=max(0.1, limit - time.monotonic())
            )
            devtools.ask(
                "Runtime.evaluate",
                {"expression": "1"},
                target=attached["sessionId"],
                seconds=max(0.1, limit - time.monotonic()),
            )
            return True
        except (ConnectionError, LookupError, StopIteration):
            return False

    def filled_heap(self, growth_mb: float, seconds: float) -> bool:
        """By how much the browser has grown is not known here: that the page's process ended itself must do."""
        devtools = self._devtools
        return devtools is not None and devtools.ended_itself(seconds)

    def _cause(self, error: Exception) -> str:
        text = str(error)
        if self._killed or "tab crashed" in text:
            return "browser_died"
        if isinstance(error, WebDriverException):
            gone = ("invalid session", "Unable to find session", "not reachable", "disconnected")
            return "browser_died" if any(words in text for words in gone) else "page_lost"
        return "page_lost"


def _turn() -> IO[str] | None:
    """A lock that one process of this machine can hold, on a file that is there; None while another holds it."""
    handle = Path(__file__).open()  # noqa: SIM115 - the caller's to close
    if lock_at_once(handle):
        return handle
    handle.close()
    return None


class _Breakable:
    """Selenium's driver, whose methods go through `call`."""

    def __init__(self, driver: webdriver.Remote, call: Callable[..., Any]) -> None:
        self._driver = driver
        self._call = call

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._driver, name)
        return functools.partial(self._call, value) if callable(value) else value
