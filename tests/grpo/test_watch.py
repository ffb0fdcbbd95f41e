"""The watching server over real HTTP: it serves the gallery and nothing else, to this machine and nobody else, and
tells its pages when the run has gone on."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gallery_kit import plain_step, rollout, start, step
from selenium.webdriver.common.by import By

from bench.pages import page_browser
from grpo import watch
from grpo.background import Claim
from grpo.watch import Watcher, fingerprint, serve

ROOT = Path(__file__).parents[2]


def wait_until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


class Watched:
    """A run of one step, watched in this process."""

    def __init__(self, root: Path) -> None:
        self.run = start(root / "run")
        (self.run / "secret.txt").write_text("secret")
        (root / "gallery.txt").write_text("secret")
        plain_step(self.run, 1)
        self.said: list[str] = []
        self.watcher = Watcher(self.run, self.run / "gallery", self.said.append)
        self.watcher.refresh()
        self.server = serve(self.run / "gallery", self.watcher, 0)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        threading.Thread(target=self.watcher.follow, daemon=True).start()

    def close(self) -> None:
        self.watcher.stop()
        self.server.shutdown()
        self.server.server_close()

    def ask(self, path: str, method: str = "GET", host: str | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest(method, path, skip_host=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        connection.endheaders()
        return connection.getresponse()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    patch = pytest.MonkeyPatch()
    patch.setattr(watch, "LOOK_S", 0.05)
    patch.setattr(watch, "BEAT_S", 0.3)
    patch.setattr(watch, "PAUSE", 0.0)
    found = Watched(tmp_path_factory.mktemp("watched"))
    yield found
    found.close()
    patch.undo()


def test_the_gallery_is_served(watched: Watched) -> None:
    page = watched.ask("/")
    assert page.status == 200
    assert page.getheader("Content-Type") == "text/html"
    assert page.getheader("Cache-Control") == "no-cache"
    assert page.read() == (watched.run / "gallery" / "index.html").read_bytes()
    data = watched.ask("/data/runs.js?version=1")
    assert data.read() == (watched.run / "gallery" / "data" / "runs.js").read_bytes()
    head = watched.ask("/", "HEAD")
    assert (head.status, head.read()) == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/data/../../secret.txt",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/..%5csecret.txt",
        "/link.txt",
        "/.gallery.json",
        "/data/",
        "/data",
        "/%00",
        "/../gallery.txt",
    ],
)
def test_nothing_else_is(watched: Watched, path: str) -> None:
    link = watched.run / "gallery" / "link.txt"
    if not link.is_symlink():
        link.symlink_to(watched.run / "secret.txt")
    answer = watched.ask(path)
    assert answer.status == 404
    assert b"secret" not in answer.read()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_nothing_can_be_sent(watched: Watched, method: str) -> None:
    assert watched.ask("/", method).status == 501


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:PORT", 200),
        ("localhost:PORT", 200),
        ("LOCALHOST", 200),
        ("[::1]:9", 200),
        ("evil.example:PORT", 403),
        ("127.0.0.1.evil.example:PORT", 403),
        ("localhost.evil.example", 403),
        ("192.168.0.7:PORT", 403),
        ("evil.example:127.0.0.1", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/events"])
def test_only_names_of_this_machine_are_answered(watched: Watched, host: str, status: int, path: str) -> None:
    assert watched.ask(path, host=host.replace("PORT", str(watched.port))).status == status


def test_it_listens_on_this_machine_alone(watched: Watched) -> None:
    assert watched.server.server_address[0] == "127.0.0.1"


def test_pages_are_told_when_the_run_has_gone_on(watched: Watched) -> None:
    stream = watched.ask("/events")
    assert stream.getheader("Content-Type", "").startswith("text/event-stream")

    def message() -> str:
        while True:
            line = stream.readline().decode().strip()
            if line.startswith("data: "):
                return line.removeprefix("data: ")

    first = message()
    assert first == watched.watcher.version
    plain_step(watched.run, 2)
    second = message()
    assert second != first
    assert (watched.run / "gallery" / "data" / "run" / "step_0002.js").is_file()
    assert stream.readline().decode().strip() == ""
    assert stream.readline().decode().startswith(": still here")  # signs of life, and no message without a change


def test_the_step_in_flight_is_shown(watched: Watched) -> None:
    before = watched.watcher.version
    step(watched.run, 9, [rollout(9, 0, 0.5)], {}, whole=False)
    flight = watched.run / "gallery" / "data" / "run" / "flight.js"
    wait_until(lambda: "sketch 9 0" in flight.read_text())
    wait_until(lambda: watched.watcher.version != before)
    (watched.run / "rollouts.partial.jsonl").unlink()


def test_a_run_that_refreshes_by_itself_is_left_to_it(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    plain_step(folder, 1)
    watcher, claim = Watcher(folder, folder / "gallery", print), Claim(folder)
    assert claim.take()
    watcher.refresh()
    assert not (folder / "gallery").exists()
    claim.release()
    watcher.refresh()
    assert (folder / "gallery" / "index.html").exists()
    assert Claim(folder).take()  # given back


def test_a_gallery_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    watcher = Watcher(folder, folder / "gallery", print)
    server = serve(folder / "gallery", watcher, 0)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.status == 503
        assert b'http-equiv="refresh"' in answer.read()
    finally:
        server.shutdown()
        server.server_close()


def test_a_failure_is_said_once_and_tried_again(tmp_path: Path) -> None:
    folder, said = start(tmp_path / "run"), []
    plain_step(folder, 1)
    (folder / "gallery").mkdir()
    (folder / "gallery" / "mine.txt").write_text("not a gallery")
    watcher = Watcher(folder, folder / "gallery", said.append)
    for _ in range(3):
        watcher._rest_until = 0.0
        watcher.refresh()
    assert len(said) == 1
    (folder / "gallery" / "mine.txt").unlink()
    watcher._rest_until = 0.0
    watcher.refresh()
    assert (folder / "gallery" / "index.html").exists()


def test_the_version_is_that_of_what_is_written_last(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "index.html").write_text("a")
    before = fingerprint(tmp_path)
    (tmp_path / "new.png").write_bytes(b"")
    (tmp_path / "data" / "wall.js").write_text("b")
    assert fingerprint(tmp_path) == before
    (tmp_path / "data" / "runs.js").write_text("c")
    assert fingerprint(tmp_path) != before


def test_the_command_prints_its_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    plain_step(folder, 1)
    line = [sys.executable, "-m", "grpo.watch", str(folder)]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        stream = http.client.HTTPConnection(host, int(port), timeout=20)
        stream.request("GET", "/events")  # a page that waits must not keep it from ending
        assert stream.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("what", ["no run", "port taken", "port too high"])
def test_a_mistake_ends_in_one_line(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = {"port taken": taken.getsockname()[1], "port too high": 70000}.get(what, 0)
        if what != "no run":
            start(folder)
        assert watch.main([str(folder), "--port", str(port)]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert printed.startswith("error: ")


def test_a_page_in_chromium_follows_the_run(watched: Watched) -> None:
    with page_browser(1000, 700) as driver:
        driver.get(f"http://127.0.0.1:{watched.port}/")
        driver.execute_script("window.kept = true")
        wait_until(lambda: "run" in driver.find_element(By.ID, "title").text)

        def steps() -> set[int]:
            return set(driver.execute_script("return [...gallery.byKey.values()].map((one) => one.step)"))

        wait_until(lambda: 1 in steps())
        assert 5 not in steps()
        plain_step(watched.run, 5)
        wait_until(lambda: 5 in steps())
        assert driver.execute_script("return window.kept")  # without a reload of the page
