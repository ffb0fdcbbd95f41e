"""The refresher: it keeps a real gallery fresh, costs the run nothing, and neither fails nor outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gallery_kit import plain_step, start

from grpo.background import Claim, Refresher
from render.processes import alive, identify

ROOT = Path(__file__).parents[2]


def wait_until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = start(tmp_path / "run")
    plain_step(folder, 1)
    return folder


def script(folder: Path, text: str) -> list[str]:
    """A stand-in for the refresh: `text` in a process, which leaves a line in FOLDER/log when it starts."""
    begin = f"import os, sys, time, signal\nopen({str(folder / 'log')!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    return [sys.executable, "-c", begin + text]


def started(folder: Path) -> list[int]:
    log = folder / "log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def test_the_gallery_holds_every_step_at_the_end(run: Path) -> None:
    said: list[str] = []
    refresher = Refresher(run, 1, said.append)
    refresher.step_done(1)
    plain_step(run, 2)
    refresher.step_done(2)
    refresher.close()
    assert said == []
    (wall,) = (run / "gallery" / "data").glob("*/wall.js")
    assert len(wall.read_text().splitlines()) == 2 + 2  # a line a step between head and tail
    assert (run / "gallery" / "index.html").is_file()


def test_a_step_between_two_refreshes_is_in_the_last_one(run: Path) -> None:
    refresher = Refresher(run, 5, print, script(run, ""))
    for step in range(1, 8):
        refresher.step_done(step)
        if step == 5:
            wait_until(lambda: refresher.refreshes == 1)
    refresher.close()
    assert refresher.refreshes == 2


def test_off_does_nothing(run: Path) -> None:
    refresher = Refresher(run, 0, print, script(run, ""))
    refresher.step_done(1)
    refresher.close()
    assert started(run) == []


def test_requests_are_put_together_and_one_runs_at_a_time(run: Path) -> None:
    held = run / "held"
    held.touch()
    refresher = Refresher(run, 1, print, script(run, f"while os.path.exists({str(held)!r}): time.sleep(.01)"))
    refresher.step_done(1)
    wait_until(lambda: started(run))
    for step in range(2, 30):
        refresher.step_done(step)
    time.sleep(0.2)
    assert len(started(run)) == 1
    held.unlink()
    refresher.close()
    assert len(started(run)) == 2


def test_a_failure_is_said_once(run: Path) -> None:
    said: list[str] = []
    refresher = Refresher(run, 1, said.append, script(run, "sys.exit('error: the disk is full')"))
    for step in (1, 2, 3):
        refresher.step_done(step)
        wait_until(lambda step=step: refresher.failures == step)
    refresher.close()
    assert said == ["the gallery could not be refreshed (the disk is full); the run goes on without it"]


def test_a_command_that_is_not_there_is_said_too(run: Path) -> None:
    said: list[str] = []
    refresher = Refresher(run, 1, said.append, ["/no/such/program"])
    refresher.step_done(1)
    refresher.close()
    assert len(said) == 1
    assert "No such file" in said[0]


def test_closing_waits_so_long_and_no_longer(run: Path) -> None:
    said: list[str] = []
    refresher = Refresher(
        run, 1, said.append, script(run, "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
    )
    refresher.step_done(1)
    wait_until(lambda: started(run))
    (process,) = identify(started(run))
    began = time.monotonic()
    refresher.close(0.5)
    assert time.monotonic() - began < 5
    assert not alive([process])
    assert said == ["the gallery could not be refreshed (it took more than 0 s); the run goes on without it"]


def test_it_is_niced_and_in_a_session_of_its_own(run: Path) -> None:
    words = f"open({str(run / 'seen')!r}, 'w').write(f'{{os.nice(0)}} {{os.getsid(0) == os.getpid()}}')"
    program = (
        "import grpo.gallery, os, sys\n"
        f"grpo.gallery.build = lambda runs, out: {words}\n"
        "from grpo.background import main\n"
        f"sys.exit(main([{str(run)!r}, sys.argv[1]]))"
    )
    refresher = Refresher(run, 1, print, [sys.executable, "-c", program, str(os.getpid())])
    refresher.step_done(1)
    refresher.close()
    assert (run / "seen").read_text() == f"{min(19, os.nice(0) + 10)} True"


def test_it_dies_with_the_run(run: Path) -> None:
    """kill -9 of the run while a refresh is on its way: the real process, held up in the middle."""
    program = (
        "import grpo.gallery, os, sys, time\n"
        f"def build(runs, out):\n    open({str(run / 'log')!r}, 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
        "grpo.gallery.build = build\n"
        "from grpo.background import main\n"
        f"sys.exit(main([{str(run)!r}, sys.argv[1]]))"
    )
    parent = (
        "import os, sys, time\nfrom pathlib import Path\nfrom grpo.background import Refresher\n"
        f"r = Refresher(Path({str(run)!r}), 1, print, [sys.executable, '-c', {program!r}, str(os.getpid())])\n"
        "r.step_done(1)\ntime.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=ROOT)
    try:
        wait_until(lambda: started(run))
        (child,) = identify(started(run))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: not alive([child]), 10)


def test_asking_costs_the_run_nothing(run: Path) -> None:
    refresher = Refresher(run, 1, print, script(run, "time.sleep(.5)"))
    refresher.step_done(1)  # makes the thread
    spent = []
    for step in range(2, 200):
        began = time.thread_time()
        refresher.step_done(step)
        spent.append(time.thread_time() - began)
    refresher.close()
    assert sorted(spent)[len(spent) // 2] < 0.001


def test_the_module_needs_no_torch() -> None:
    line = "import sys, grpo.background; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], cwd=ROOT).returncode == 0


def test_one_at_a_time_holds_the_claim(run: Path) -> None:
    one, other = Claim(run), Claim(run)
    assert one.take()
    assert one.take()
    assert not other.take()
    one.release()
    assert other.take()
    assert not Claim(run / "nowhere").take()
