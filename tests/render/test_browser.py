"""The process: a browser that is killed, or loses a part of itself, is a loss with its cause and leaves nothing."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from kit import small

from render.browser import Browser, BrowserLost
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
def test_kill_from_outside_ends_a_paint_that_would_not_end(name):
    one = Browser(RenderSettings())
    one.start()
    family = [psutil.Process(pid) for pid in one.pids()]
    folder = one._folder
    threading.Timer(1.0, one.kill).start()
    started = time.monotonic()
    with pytest.raises(BrowserLost):
        one.paint(LOOPS[name], 1)
    assert time.monotonic() - started < 8
    one.kill()
    assert len(family) > 3
    assert [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
    assert not folder.exists()
    with pytest.raises(BrowserLost):
        one.paint(small(), 1)
    one.start()
    try:
        assert one.paint(small(), 1).painted
    finally:
        one.kill()


HEAVY = small("for (let i = 0; i < 25; i++) brush.circle(0, 0, 90);")


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


def test_kill_nine_of_the_owner_leaves_nothing():
    script = (
        "import sys, time\nfrom render.browser import Browser\nfrom render.settings import RenderSettings\n"
        "one = Browser(RenderSettings()); one.start(); print(one._folder, *one.pids(), flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=STUDIO.parents[1])
    folder, *pids = owner.stdout.readline().split()
    family = [psutil.Process(int(pid)) for pid in pids]
    assert len(family) > 3
    owner.kill()
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and (Path(folder).exists() or any(process.is_running() for process in family)):
        time.sleep(0.05)
    assert [process for process in family if process.is_running()] == []
    assert not Path(folder).exists()
