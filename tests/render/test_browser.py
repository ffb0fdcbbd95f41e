"""The process: a browser that is killed, or loses a part of itself, is a loss with its cause and leaves nothing."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from kit import small

import render.browser
from render import guardian
from render.browser import Browser, BrowserLost
from render.chromium import find_browser
from render.errors import SetupError
from render.serve import STUDIO
from render.settings import RenderSettings

# ---- the process ------------------------------------------------------------------------------------------------
LOOPS = {
    "in setup": "function setup() { createCanvas(100, 100, WEBGL); while (true) {} }",
    "at top level": "for (;;) {}\nfunction setup() {}",
    "in promises": "function setup() { const f = () => Promise.resolve().then(f); f() }",
    "in awaits, without a setup": "async function f() { for (;;) await null }\nf();",
    "never resolved": "async function setup() { createCanvas(100, 100, WEBGL); await new Promise(() => {}) }",
}


@pytest.mark.parametrize("name", LOOPS)
def test_kill_from_outside_ends_a_paint_that_would_not_end(browser, name):
    family = [psutil.Process(pid) for pid in browser.pids()]
    folder = browser._folder
    threading.Timer(0.7, browser.kill).start()
    started = time.monotonic()
    with pytest.raises(BrowserLost):
        browser.paint(LOOPS[name], 1)
    assert time.monotonic() - started < 8
    browser.kill()
    assert len(family) > 3
    assert [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
    assert not folder.exists()
    with pytest.raises(BrowserLost):
        browser.paint(small(), 1)
    browser.start()
    assert browser.paint(small(), 1).painted


HEAVY = small("for (let i = 0; i < 20; i++) brush.circle(0, 0, 90);")


def _named(one: Browser, text: str) -> list[int]:
    found = []
    for pid in one.pids():
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(text in part for part in psutil.Process(pid).cmdline()):
                found.append(pid)
    return found


def _strike(one: Browser, kind: str, after: float) -> threading.Timer:
    def strike() -> None:
        for pid in _named(one, kind):
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(after, strike)
    timer.start()
    return timer


@pytest.mark.parametrize(("victim", "cause"), [("chromedriver", "driver_died"), ("--type=renderer", "browser_died")])
def test_death_in_the_middle_is_a_loss_with_its_cause(victim, cause):
    one = Browser(RenderSettings())
    one.start()
    try:
        timer = _strike(one, victim, 0.7)
        with pytest.raises(BrowserLost) as lost:
            one.paint(LOOPS["in setup"], 1)
        timer.join()
        assert lost.value.cause == cause, lost.value
    finally:
        one.kill()


def test_death_of_the_gpu_process_is_never_blank_paper():
    """From the third on Chromium gives no WebGL at all: that is no fault of the sketch either."""
    one = Browser(RenderSettings())
    one.start()
    try:
        whole = one.paint(HEAVY, 1)
        causes = set()
        for share in (0.3, 0.5, 0.7, 0.9):
            timer = _strike(one, "--type=gpu-process", share * whole.timings["total"])
            try:
                painting = one.paint(HEAVY, 1)
            except BrowserLost as lost:
                causes.add(lost.cause)
            else:  # struck before the first or after the last pixel
                assert painting.png == whole.png
            timer.join()
        assert causes == {"context_lost"}
    finally:
        one.kill()


def test_kill_nine_of_the_owner_leaves_nothing(tmp_path):
    script = (
        "import sys, time\nfrom render.browser import Browser\nfrom render.settings import RenderSettings\n"
        "one = Browser(RenderSettings()); one.start(); print(one._folder, *one.pids(), flush=True); time.sleep(600)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=STUDIO.parents[1], env=environment
    )
    folder, *pids = owner.stdout.readline().split()
    family = [psutil.Process(int(pid)) for pid in pids]
    assert len(family) > 3
    assert Path(folder).parent == tmp_path
    owner.kill()
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and (list(tmp_path.iterdir()) or any(process.is_running() for process in family)):
        time.sleep(0.05)
    assert [process for process in family if process.is_running()] == []
    assert list(tmp_path.iterdir()) == []


def test_normal_end_and_a_killed_guardian_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one = Browser(RenderSettings())
    for kills_guardian in (False, True):
        one.start()
        family = [psutil.Process(pid) for pid in one.pids()]
        assert len(list(tmp_path.iterdir())) == 1
        if kills_guardian:
            one._guardian.kill()
            one._guardian.wait()
        one.kill()
        assert psutil.wait_procs(family, timeout=5)[1] == []
        assert list(tmp_path.iterdir()) == []


# ---- start --------------------------------------------------------------------------------------------------
def _program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_stopped_guardian_ends_its_browser_as_any_other(tmp_path):
    one = Browser(RenderSettings(), folder=tmp_path / "own")
    one.start()
    guard = one._guardian
    family = [psutil.Process(pid) for pid in one.pids()]
    os.kill(guard.pid, signal.SIGSTOP)
    one.kill()
    assert guard.returncode == 0  # ended by itself, not killed after a while
    assert [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize("key", ["browser", "driver"])
def test_a_program_that_cannot_run_is_not_tried_again(tmp_path, key):
    path = _program(tmp_path / "program", f"echo $@ >> {tmp_path}/calls; echo 'libmissing.so: not found' >&2; exit 127")
    with pytest.raises(SetupError, match=r"program does not run: libmissing\.so: not found"):
        Browser(RenderSettings(**{key: path})).start()
    assert len((tmp_path / "calls").read_text().splitlines()) == 2  # the start, and what --version says


def test_a_browser_that_dies_at_its_first_starts_is_tried_again(tmp_path, monkeypatch):
    """As browsers do that start at the same moment as many others."""
    real = find_browser(RenderSettings())
    monkeypatch.setattr(render.browser.time, "sleep", lambda seconds: None)
    flaky = _program(
        tmp_path / real.name,
        f"""case "$*" in *--version*) exec {real} "$@";; esac
echo >> {tmp_path}/starts; [ $(wc -l < {tmp_path}/starts) -lt 3 ] && exit 1; exec {real} "$@" """,
    )
    one = Browser(RenderSettings(browser=flaky))
    one.start()
    try:
        assert one.info["rasterizer"] == "llvmpipe"
        assert one.paint(small(), 1).painted
    finally:
        one.kill()


def test_a_browser_that_always_dies_is_given_up_with_what_was_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(render.browser.time, "sleep", lambda seconds: None)
    dead = _program(tmp_path / "headless-shell", f'case "$*" in *--version*) exit 0;; esac; echo >> {tmp_path}/starts')
    with pytest.raises(BrowserLost, match=r"(?s)llvmpipe: .*exited.*; swiftshader: .*exited"):
        Browser(RenderSettings(browser=dead)).start()
    assert len((tmp_path / "starts").read_text().splitlines()) == 6


@pytest.mark.parametrize("methods", [("noStroke",), ("vertex", "endShape")])
def test_any_settings_of_a_sketch_let_a_browser_start(methods):
    one = Browser(RenderSettings(methods=methods, max_side=16, blank_below=0.9))
    try:
        one.start()
        assert one.paint(small(), 1).reason in ("unknown_method", "canvas_size")
    finally:
        one.kill()


def test_families_are_the_same_by_the_kernels_lists_and_by_a_scan(browser, monkeypatch):
    by_lists = set(guardian.descendants(browser._guardian.pid))
    monkeypatch.setattr(guardian, "_KERNEL_LISTS", False)
    assert set(guardian.descendants(browser._guardian.pid)) == by_lists
    assert len(by_lists) > 3
