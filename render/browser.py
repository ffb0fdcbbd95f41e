"""One Chromium of its own, through Selenium: start, paint, kill.

A Browser owns a loopback server (the studio), a guardian process, a chromedriver and the browser below it. It paints
one sketch at a time, each in a fresh page, and never watches the clock: whoever owns it calls `kill` from another
thread, upon which `paint` raises BrowserLost at once.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3
import websocket
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chromium.remote_connection import ChromiumRemoteConnection
from selenium.webdriver.remote.client_config import ClientConfig

from render import backend, chromium
from render.devtools import feature_status
from render.errors import SetupError, UserError
from render.guardian import LOG, descendants
from render.outcome import judge
from render.painting import CAUSES, Outcome, Painting
from render.processes import Identity, alive, identify, kill, remove_folder, usage
from render.serve import StudioServer
from render.settings import RenderSettings, check_methods

START_TIMEOUT_S = 60.0
FOREVER_S = 24 * 3600


class BrowserLost(Exception):
    """The browser, its driver or the page is gone. `cause` is a key of painting.CAUSES, the text says what was seen."""

    def __init__(self, cause: str, detail: str) -> None:
        assert cause in CAUSES
        super().__init__(detail)
        self.cause = cause


def new_folder() -> Path:
    """A name that nobody uses in the directory for temporary files; the guardian makes the folder."""
    return Path(tempfile.gettempdir()) / f"studio-{secrets.token_hex(8)}"


class Browser:
    """One warm browser.

    settings: binaries, rasterizer, allowed methods, canvas limit. index: written into each painting as `worker`.
    folder: for the profile and all temporary files, made by the guardian at the start and removed at the end; None for
    one of its own.
    info: after start, `rasterizer` (the kind of GL, see chromium.KINDS), `fallback` (what was fallen back from and why,
    in one line; else empty), `renderer` (GL string), `version`, `binary`, `2d_canvas`, `patches` (those in force, see
    settings.PATCHES) and `warning` (why a patch of the profile is not; else empty).
    """

    def __init__(self, settings: RenderSettings, index: int = 0, *, folder: Path | None = None) -> None:
        self.settings = settings
        self.index = index
        self.info: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._killed = False
        self._driver_process: frozenset[Identity] = frozenset()
        self._server: StudioServer | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._given_folder = folder
        self._folder: Path | None = None
        self._driver: Any = None
        self._known: frozenset[Identity] = frozenset()

    # ---- life ---------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the browser and probe it.

        Raises SetupError for what is missing, ConfigError for a method that `brush` does not have, BrowserLost when
        the browser does not start. May be called again after `kill`. A `kill` from another thread in the meantime ends
        the attempt.
        """
        self._killed = False
        binary = chromium.find_browser(self.settings)
        driver = chromium.find_driver(self.settings)
        kinds = backend.kinds_to_try(self.settings, chromium.has_nvidia())
        troubles = {"": backend.unmet(self.settings, kinds)}
        checked = False
        for kind, tries in backend.tries(kinds).items():
            for attempt in range(tries):
                if attempt:
                    time.sleep(0.5 * 2**attempt + 0.1 * (self.index % 8))
                try:
                    self._launch(binary, driver, kind)
                    self._probe(kind)
                    troubles.pop(kind, None)
                    self.info["fallback"] = backend.fallback(troubles.values(), kind)
                    return
                except BrowserLost as error:
                    troubles[kind] = f"{kind}: {error}"
                    self._end()
                    if self._killed:
                        raise
                    if "only supports Chrome" in str(error):
                        raise SetupError(f"chromedriver and browser are of different versions: {error}") from error
                    if error.cause == "context_lost":  # no WebGL by this kind: trying again would not help
                        break
                    if not checked:
                        chromium.check_runs(binary)
                        chromium.check_runs(driver)
                        checked = True
                except UserError:
                    self._end()
                    raise
        raise BrowserLost("browser_died", "; ".join(filter(None, troubles.values())))

    def _launch(self, binary: Path, driver: Path, kind: str) -> None:
        with self._lock:  # a `kill` comes before it, or finds what there is to end
            if self._killed:
                raise BrowserLost("browser_died", "the browser was killed while it started")
            self._server = StudioServer()
            self._folder = folder = self._given_folder or new_folder()
            guardian = Path(__file__).with_name("guardian.py")
            self._guardian = subprocess.Popen(
                [sys.executable, "-I", "-S", str(guardian), str(folder), str(driver), "--port=0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=chromium.environment(kind, folder),
            )
        try:
            port = self._driver_port()
            options = webdriver.ChromeOptions()
            options.binary_location = str(binary)
            options.page_load_strategy = "eager"
            for flag in chromium.flags(kind, folder / "profile"):
                options.add_argument(flag)
            if chromium.is_shell(binary):
                options.set_capability("browserName", "chrome-headless-shell")
            url = f"http://127.0.0.1:{port}"
            connection = ChromiumRemoteConnection(
                remote_server_addr=url,
                vendor_prefix="goog",
                browser_name="chrome",
                client_config=ClientConfig(remote_server_addr=url, timeout=FOREVER_S, keep_alive=True),
            )
            self._driver = webdriver.Remote(command_executor=connection, options=options)
            self._driver.set_script_timeout(FOREVER_S)
            self._driver.set_page_load_timeout(FOREVER_S)
        except (WebDriverException, urllib3.exceptions.HTTPError, OSError) as error:
            raise BrowserLost("browser_died", f"{_line(error)}; {self._log_tail(folder / LOG)}") from error
        self.info = {
            "rasterizer": kind,
            "binary": str(binary),
            "version": self._driver.capabilities.get("browserVersion", ""),
        }

    def _driver_port(self) -> int:
        """chromedriver picks its own port and prints it; a watchdog ends it if it says nothing."""
        guardian = self._guardian
        if guardian is None:
            raise OSError("the browser was killed while it started")
        assert guardian.stdout is not None
        timer = threading.Timer(START_TIMEOUT_S, guardian.kill)
        timer.start()
        line = b""
        try:
            for line in guardian.stdout:
                if b"started successfully on port" in line:
                    self._driver_process = identify(descendants(guardian.pid))
                    return int(line.split()[-1].rstrip(b"."))
        finally:
            timer.cancel()
        raise OSError(f"chromedriver ended before it was ready: {line.decode(errors='replace').strip() or 'no word'}")

    def _probe(self, kind: str) -> None:
        """Believe a kind of GL by what it shows (see render.backend), and check the methods' names.

        Raises BrowserLost ("context_lost") with what is wrong, ConfigError for a method that `brush` does not have.
        """

        def refuse(reason: str) -> None:
            if reason:
                raise BrowserLost("context_lost", reason)

        with self._losses():
            drawn = self._driver.execute_script(backend.PICTURE)
        if drawn is None:
            raise BrowserLost("context_lost", "no WebGL")
        self.info["renderer"], pixels = drawn
        refuse(backend.wrong_renderer(kind, self.info["renderer"]))
        with self._losses():
            self.info["2d_canvas"] = self._features().get("2d_canvas", "unknown")
        refuse(backend.wrong_canvas(kind, self.info["2d_canvas"]))
        refuse(backend.wrong_picture(pixels))
        # The probe asks whether this machine paints, whatever the settings allow a sketch.
        probe = RenderSettings(methods="all", profile=self.settings.profile, without=self.settings.without)
        painting = self._paint(backend.PAINTING, 1, probe)
        if painting.png is None or painting.outcome is not Outcome.PAINTED:
            raise BrowserLost("context_lost", f"the probe gave {painting.outcome}: {painting.reason} {painting.detail}")
        refuse(backend.wrong_painting(painting.png))
        with self._losses():
            names = self._driver.execute_script("return Object.keys(window.brush)")
        check_methods(self.settings.methods, names)

    def _features(self) -> dict[str, str]:
        return feature_status(self.pids())

    def kill(self) -> None:
        """End the driver and every process of the browser, reap them and remove the profile. From any thread, often."""
        self._killed = True
        self._end()

    def _end(self) -> None:
        with self._lock:  # held to the end: whoever comes second returns when nothing is left
            guardian, self._guardian = self._guardian, None
            if guardian is not None:
                self._known |= identify(descendants(guardian.pid))
                assert guardian.stdin is not None
                assert guardian.stdout is not None
                guardian.send_signal(signal.SIGCONT)  # a stopped one would not see what comes
                guardian.stdin.close()  # the guardian kills and reaps on end of file
                try:
                    guardian.wait(5.0)
                except subprocess.TimeoutExpired:
                    guardian.kill()
                    guardian.wait()
                guardian.stdout.close()
                kill(self._known)
                self._known = frozenset()
            if self._server is not None:
                self._server.close()
                self._server = None
            if self._folder is not None:
                remove_folder(self._folder)
                self._folder = None

    # ---- measures -----------------------------------------------------------------------------------------------
    def pids(self) -> list[int]:
        """chromedriver and every process of the browser, guardian apart."""
        guardian = self._guardian
        if guardian is None:
            return []
        found = descendants(guardian.pid)
        self._known |= identify(found)
        return found

    def usage(self) -> tuple[float, float]:
        """CPU seconds since the start and memory in MiB, of all processes together (see processes.usage).

        The guardian has waited for every orphan, so that processes that ended in between are counted.
        """
        guardian = self._guardian
        return (0.0, 0.0) if guardian is None else usage((guardian.pid, *descendants(guardian.pid)))

    # ---- painting -----------------------------------------------------------------------------------------------
    def paint(self, source: str, seed: int) -> Painting:
        """Paint one sketch in a fresh page. Same source and seed: the same pixels, in any browser, in any order.

        Raises BrowserLost when the session, the page or the WebGL context is lost.
        """
        return self._paint(source, seed, self.settings)

    def _paint(self, source: str, seed: int, settings: RenderSettings) -> Painting:
        started = time.monotonic()
        server = self._server
        if server is None or self._killed:
            raise BrowserLost("browser_died", "the browser is not running")
        cpu_before, _ = self.usage()
        timings: dict[str, float] = {}
        with self._losses():
            syntax = self._syntax_error(source)
            result: dict[str, Any] = {"syntax": syntax}
            if syntax is None:
                server.prepare(source, seed, settings)
                self._driver.get(server.page())
                timings["load"] = time.monotonic() - started
                result = self._driver.execute_async_script("studio.paint(arguments[arguments.length - 1])")
        if result.get("context_lost"):
            raise BrowserLost("context_lost", CAUSES["context_lost"])
        timings["run"] = time.monotonic() - started - timings.get("load", 0.0)
        reading = time.monotonic()
        png = base64.b64decode(result["png"].partition(",")[2]) if result.get("png") else None
        if "applied" in result:
            warnings = [*server.refused.values(), *result["warnings"]]
            self.info |= {"patches": tuple(result["applied"]), "warning": "; ".join(warnings)}
        cpu_after, _ = self.usage()
        painting = judge(result, png, settings, worker=self.index)
        timings |= {
            "read": time.monotonic() - reading,
            "total": time.monotonic() - started,
            "cpu": cpu_after - cpu_before,
        }
        painting.timings.update(timings)
        return painting

    def _syntax_error(self, source: str) -> dict[str, Any] | None:
        """V8's own parser on the sketch alone, without running it: where it fails, or None.

        That the sketch is a whole Script by itself is also what keeps its brackets from closing the page's wrapper.
        """
        answer = self._driver.execute(
            "executeCdpCommand",
            {
                "cmd": "Runtime.compileScript",
                "params": {"expression": source, "sourceURL": "sketch.js", "persistScript": False},
            },
        )["value"]
        details = answer.get("exceptionDetails")
        if details is None:
            return None
        message = details.get("exception", {}).get("description", details.get("text", ""))
        return {"message": message.splitlines()[0], "line": details["lineNumber"] + 1}

    @contextlib.contextmanager
    def _losses(self) -> Iterator[None]:
        """Turn whatever Selenium raises into BrowserLost, with the cause read from what is still alive."""
        try:
            yield
        except (WebDriverException, websocket.WebSocketException, urllib3.exceptions.HTTPError, OSError) as error:
            raise BrowserLost(self._cause(error), _line(error)) from error

    def _cause(self, error: Exception) -> str:
        text = str(error)
        if self._killed or "tab crashed" in text:
            return "browser_died"
        if not isinstance(error, WebDriverException):
            return "driver_died" if self._driver_ended() else "page_lost"
        if "invalid session" in text or "not reachable" in text or "disconnected" in text:
            return "browser_died"
        return "page_lost"

    def _driver_ended(self) -> bool:
        """A broken connection may be seen a moment before the process is gone."""
        for _ in range(20):
            if not alive(self._driver_process):
                return True
            time.sleep(0.05)
        return False

    def _log_tail(self, log: Path) -> str:
        try:
            lines = log.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return "chromedriver said: " + (" | ".join(lines[-3:]) or "nothing")


def _line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"
