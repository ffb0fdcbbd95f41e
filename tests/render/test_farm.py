"""The render farm against real Chromium: limits, losses, retries, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from kit import wait_until

import bench.faults
from bench.faults import clean_pictures, drill, left_over
from bench.poison import CANVAS, GOOD, PAINT, POISON
from render import Farm, Outcome, RenderSettings
from render.errors import ConfigError, FarmError, SetupError
from render.farm import verdict
from render.seat import Seat
from render.worker import Fault

ROOT = Path(__file__).parents[2]
SMALL = RenderSettings(workers=2, cpu_budget_s=3, deadline_s=60, memory_mb=1000)
# Busy for a second or two, then paints: there is time to kill what works on it.
LONG = f"""function setup() {{ {CANVAS} noLoop(); }}
function draw() {{ let x = 1; for (let i = 0; i < 2e8; i++) x = (x * 31 + i) | 0; {PAINT} }}"""


@pytest.fixture(scope="module")
def farm() -> Iterator[Farm]:
    with Farm(SMALL) as opened:
        yield opened


@pytest.fixture(scope="module")
def clean(farm: Farm) -> list[bytes]:
    return clean_pictures(farm)


@pytest.fixture(scope="module")
def long_picture(farm: Farm) -> bytes:
    painting = farm.submit(LONG).result(120)
    assert painting.painted, painting
    assert painting.png
    return painting.png


def members(farm: Farm, part: str) -> list[int]:
    return bench.faults.members(farm.processes(), part)


# What two failed attempts mean.

SLOW, BIG = Fault("too_slow", "slow"), Fault("too_big", "big")
DIED, LOST = Fault("browser_died", "died"), Fault("page_lost", "lost")


@pytest.mark.parametrize(
    ("faults", "outcome", "reason"),
    [
        ([SLOW, SLOW], Outcome.REJECTED, "too_slow"),
        ([BIG, BIG], Outcome.REJECTED, "too_big"),
        ([SLOW, BIG], Outcome.REJECTED, "too_big"),
        ([SLOW, DIED], Outcome.UNSCORED, "browser_died"),
        ([DIED, SLOW], Outcome.UNSCORED, "browser_died"),
        ([DIED, LOST], Outcome.UNSCORED, "page_lost"),
        ([BIG, LOST], Outcome.UNSCORED, "page_lost"),
        ([DIED], Outcome.UNSCORED, "browser_died"),
    ],
)
def test_only_limits_broken_twice_reject(faults: list[Fault], outcome: Outcome, reason: str) -> None:
    painting = verdict(faults)
    assert (painting.outcome, painting.reason) == (outcome, reason)
    assert painting.png is None


# Healthy work.


def test_same_bytes_on_both_workers(farm: Farm, clean: list[bytes]) -> None:
    workers: dict[int, set[bytes | None]] = {}

    def both_seen() -> bool:
        for painting in [future.result(120) for future in [farm.submit(GOOD[1], 0) for _ in range(4)]]:
            workers.setdefault(painting.worker, set()).add(painting.png)
        return len(workers) == 2

    wait_until(both_seen, 90)
    assert workers == {0: {clean[1]}, 1: {clean[1]}}
    other_seed = farm.submit(GOOD[1], 1).result(120)
    assert other_seed.painted
    assert other_seed.png != clean[1]


def test_the_order_of_submission_changes_no_byte(farm: Farm, clean: list[bytes]) -> None:
    order = [2, 0, 1, 1, 2, 0]
    futures = [farm.submit(GOOD[index]) for index in order]
    assert [future.result(120).png == clean[index] for future, index in zip(futures, order, strict=True)] == [True] * 6


def test_a_painting_carries_its_facts(farm: Farm) -> None:
    painting = farm.submit(GOOD[2]).result(120)
    assert (painting.outcome, painting.reason, painting.attempt) == (Outcome.PAINTED, "", 1)
    assert (painting.width, painting.height, painting.shapes) == (240, 240, 3)
    assert painting.worker in (0, 1)
    assert {"queue", "load", "run", "read", "total", "cpu"} <= painting.timings.keys()
    assert painting.timings["total"] >= painting.timings["queue"] + painting.timings["run"]
    assert painting.timings["cpu"] > 0
    assert farm.info["workers"] == 2
    assert farm.info["rasterizer"] in ("llvmpipe", "swiftshader")


def test_a_rejection_is_final_at_once(farm: Farm) -> None:
    retries = farm.counters["retries"]
    painting = farm.submit("function setup( {").result(120)
    assert (painting.outcome, painting.reason, painting.attempt) == (Outcome.REJECTED, "syntax_error", 1)
    assert farm.counters["retries"] == retries


def test_a_full_queue_makes_submit_wait_and_ctrl_c_ends_the_wait(clean: list[bytes]) -> None:
    with Farm(replace(SMALL, workers=1, queue_limit=2)) as farm:
        futures = [farm.submit(source) for source in (LONG, GOOD[0], GOOD[1])]
        wait_until(lambda: len(farm._queue) == 2)
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        timer = threading.Timer(0.2, signal.pthread_kill, (main_thread, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            futures.extend(farm.submit(LONG) for _ in range(3))
        assert len(farm._queue) <= 2
        # The farm goes on, and lets the next one in when there is room.
        assert farm.submit(GOOD[2]).result(120).png == clean[2]
        assert [future.result(120).painted for future in futures] == [True] * len(futures)


# Sketches that harm.


def test_a_promise_that_never_resolves_is_too_slow_although_it_costs_nothing() -> None:
    with Farm(replace(SMALL, workers=1, deadline_s=4)) as farm:
        painting = farm.submit(POISON["never resolves"].source).result(120)
        assert (painting.outcome, painting.reason, painting.attempt) == (Outcome.REJECTED, "too_slow", 2)
        assert painting.timings["cpu"] < SMALL.cpu_budget_s


def test_a_frozen_browser_is_the_machines_fault() -> None:
    """Every process of the browser is stopped, as on a machine that gives it no time: unscored, never a zero."""
    with Farm(replace(SMALL, workers=1, deadline_s=2)) as farm:
        future = farm.submit(LONG)
        while not future.done():
            # Not while it starts: that has a longer limit.
            for pid in members(farm, "renderer") if farm._seats[0].state == "busy" else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            time.sleep(0.02)
        painting = future.result()
        assert (painting.outcome, painting.reason) == (Outcome.UNSCORED, "host_stalled")


def test_a_sketch_without_computing_time_is_neither_rejected_nor_in_the_way(
    farm: Farm, clean: list[bytes], long_picture: bytes
) -> None:
    """The renderer of one is stopped for longer than the CPU budget lasts: waiting is not computing."""
    future = farm.submit(LONG)
    wait_until(future.running)
    busy = next(seat for seat in farm._seats if seat.order)
    others = [farm.submit(source) for source in GOOD]
    limit = time.monotonic() + SMALL.cpu_budget_s + 0.5
    stopped: set[int] = set()
    while time.monotonic() < limit or not all(other.done() for other in others):
        for pid in bench.faults.members(busy.browser, "renderer"):
            stopped.add(pid)
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.02)
    assert [other.result().png for other in others] == clean
    assert not future.done()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    painting = future.result(120)
    assert (painting.png == long_picture, painting.attempt) == (True, 1)
    assert painting.timings["total"] > SMALL.cpu_budget_s > painting.timings["cpu"]


# Losses that are not the sketch's fault.


def test_a_stopped_worker_or_driver_is_replaced_after_the_deadline(clean: list[bytes]) -> None:
    with Farm(replace(SMALL, workers=1, deadline_s=4)) as farm:
        assert farm.submit(GOOD[0]).result(120).painted
        for part in ("worker", "driver"):
            wait_until(lambda: farm._seats[0].state == "idle")
            os.kill(members(farm, part)[0], signal.SIGSTOP)
            painting = farm.submit(GOOD[0]).result(120)
            assert (painting.png == clean[0], painting.attempt) == (True, 2), (part, painting)
            recovery = farm.recoveries[-1]
            assert recovery.fault.kind == "host_stalled", part
            assert recovery.ready - recovery.fault.noticed < 15, part


@pytest.mark.parametrize("part", ["renderer", "gpu", "browser", "driver", "guardian", "worker"])
def test_what_is_killed_is_replaced_and_its_sketch_painted_right(farm: Farm, long_picture: bytes, part: str) -> None:
    wait_until(lambda: len(members(farm, "worker")) == 2 and len(members(farm, "browser")) == 2)
    retries = farm.counters["retries"]
    futures = [farm.submit(LONG), farm.submit(LONG)]
    wait_until(lambda: all(future.running() for future in futures))
    time.sleep(0.3)
    # One of the two: the other attempt may then be made beside it.
    victims = members(farm, part)
    wait_until(lambda: victims or members(farm, part))
    os.kill((victims or members(farm, part))[0], signal.SIGKILL)
    paintings = [future.result(120) for future in futures]
    assert [painting.png == long_picture for painting in paintings] == [True, True], paintings
    assert sorted(painting.attempt for painting in paintings) == [1, 2]
    assert farm.counters["retries"] == retries + 1


def test_a_sketch_that_loses_its_worker_twice_is_unscored_and_leaves_no_file(
    clean: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Farm(replace(SMALL, workers=1)) as farm:
        future = farm.submit(LONG)
        for before in (0, 1):
            wait_until(
                lambda before=before: (
                    farm.counters["retries"] == before and farm._seats[0].state == "busy" and members(farm, "worker")
                )
            )
            os.kill(members(farm, "worker")[0], signal.SIGKILL)
        painting = future.result(120)
        assert (painting.outcome, painting.reason, painting.attempt) == (Outcome.UNSCORED, "browser_died", 2)
        assert farm.submit(GOOD[0]).result(120).png == clean[0]
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_sixty_sketches_a_fifth_of_them_poisoned() -> None:
    # A third worker, for the sketches that wait for their deadline and cost nothing.
    with Farm(replace(SMALL, workers=3, cpu_budget_s=1.5, deadline_s=12)) as farm:
        tally = drill(farm, clean_pictures(farm), 60, 0.2, seed=1)
        processes = farm.processes()
    assert tally.wrong == []
    assert (tally.healthy, tally.right, tally.poisoned, tally.classed) == (48, 48, 12, 12)
    assert (tally.lost, tally.wrong_class(), tally.phantom_zeros) == (0, 0, 0)
    # A limit has to be broken twice; what the page itself refuses is final at once.
    limits = {"rejected too_slow, 2nd attempt", "rejected too_big, 2nd attempt", "rejected throws"}
    broken = [kind for kind in POISON if "loops" in kind or "allocates" in kind]
    assert {label for kind in broken for label in tally.outcomes[kind]} <= limits
    assert left_over(processes) == 0


# Beginning, recycling, ending.


def test_workers_load_no_torch_even_if_the_main_module_does(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    # No guard around the main module's code: it must not be run again in a worker.
    script.write_text(
        "import torch\nfrom pathlib import Path\nfrom render import Farm, RenderSettings\n"
        "with Farm(RenderSettings(workers=1)) as farm:\n"
        "    own = 'libtorch' in Path('/proc/self/maps').read_text()\n"
        "    maps = [Path(f'/proc/{seat.process.pid}/maps').read_text() for seat in farm._seats]\n"
        "print(own, ['libtorch' in text for text in maps])\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.strip() == "True [False]", done.stderr


def test_a_browser_is_replaced_while_it_still_paints(clean: list[bytes]) -> None:
    seats: set[Seat] = set()
    painted = beside = 0
    with Farm(replace(SMALL, workers=1, recycle_after=2)) as farm:
        while farm.counters["recycled"] < 2 or not beside:
            assert painted < 60
            coming = next((seat for seat in farm._seats if seat.successor_of), None)
            assert farm.submit(GOOD[0]).result(120).png == clean[0]
            painted += 1
            # One more painting by the old browser while the next one was starting.
            beside += coming is not None and coming.successor_of is not None
            seats.update(farm._seats)
            assert len(farm._seats) <= 2
        assert farm.counters["restarts"] == 0
    assert len(seats) >= 3


@pytest.mark.parametrize("which", ["old", "new"])
def test_a_death_during_the_replacement_costs_no_sketch_and_no_seat(clean: list[bytes], which: str) -> None:
    with Farm(replace(SMALL, workers=1, recycle_after=1)) as farm:
        assert farm.submit(GOOD[0]).result(120).painted
        wait_until(lambda: len(farm._seats) == 2 and farm._seats[1].process)
        old, new = farm._seats
        for identity in (old if which == "old" else new).identity:
            os.kill(identity.pid, signal.SIGKILL)
        assert farm.submit(GOOD[1]).result(120).png == clean[1]
        assert farm.submit(GOOD[2]).result(120).png == clean[2]
        assert len([seat for seat in farm._seats if not seat.successor_of and not seat.last]) == 1


def test_an_idle_browser_over_its_memory_mark_is_recycled() -> None:
    with Farm(replace(SMALL, workers=1, recycle_mb=128)) as farm:
        assert farm.submit(GOOD[0]).result(120).painted
        wait_until(lambda: farm.counters["recycled"])


def test_close_answers_what_is_pending_and_leaves_no_process() -> None:
    farm = Farm(replace(SMALL, workers=1))
    farm.start()
    futures = [farm.submit(LONG) for _ in range(3)]
    wait_until(futures[0].running)
    everything = psutil.Process().children(recursive=True)
    mine = [child for child in everything if child.pid in {identity.pid for identity in farm.processes()}]
    assert mine
    farm.close()
    farm.close()
    assert [future.result(0).reason for future in futures] == ["farm_closed"] * 3
    assert all(future.result().outcome is Outcome.UNSCORED for future in futures)
    assert psutil.wait_procs(mine, timeout=5)[1] == []
    with pytest.raises(FarmError, match="not open"):
        farm.submit(GOOD[0])


def test_a_cancelled_sketch_is_not_painted(farm: Farm, long_picture: bytes) -> None:
    futures = [farm.submit(LONG) for _ in range(3)]
    assert futures[2].cancel()
    assert [future.result(120).png == long_picture for future in futures[:2]] == [True, True]
    assert futures[2].cancelled()


def test_a_missing_browser_is_one_clear_line() -> None:
    with pytest.raises(SetupError, match="no-such-browser") as caught:
        Farm(replace(SMALL, browser="/no-such-browser")).start()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("methods", [("fill", "circel"), "fill", ()])
def test_a_wrong_method_is_a_mistake_in_the_settings(methods: tuple[str, ...] | str) -> None:
    with pytest.raises(ConfigError, match="methods: ") as caught:
        Farm(replace(SMALL, methods=methods)).start()
    assert "\n" not in str(caught.value)


def test_no_browser_at_all_ends_the_farm_and_answers_everyone() -> None:
    """Each worker is killed as it starts, again and again."""
    with Farm(replace(SMALL, workers=1)) as farm:
        futures = [farm.submit(LONG) for _ in range(3)]
        limit = time.monotonic() + 60
        while not all(future.done() for future in futures):
            assert time.monotonic() < limit
            for pid in members(farm, "worker"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        assert [future.result().outcome for future in futures] == [Outcome.UNSCORED] * 3
        with pytest.raises(FarmError, match="no browser could be started") as caught:
            farm.submit(GOOD[0])
        assert "\n" not in str(caught.value)


PARENT = """
import json, sys, time
from render import Farm, RenderSettings
with Farm(RenderSettings(workers=2, recycle_after=int(sys.argv[2]))) as farm:
    futures = [farm.submit(sys.argv[1]) for _ in range(6)]
    coming = sys.argv[2] != "1"
    while not (futures[1].running() and len(farm.processes()) > 8 and coming):
        time.sleep(0.05)
        now = time.monotonic()
        coming = coming or any(seat.successor_of and now - seat.since > 0.5 for seat in farm._seats if seat.process)
    print("painting", flush=True)
    time.sleep(120)
"""


@pytest.mark.parametrize(
    ("number", "workers_before_s", "recycle_after"),
    [
        (signal.SIGKILL, None, 300),
        # The parent dies while it is replacing its workers, which have died or have painted enough.
        (signal.SIGKILL, 0.0, 300),
        (signal.SIGKILL, 0.01, 300),
        (signal.SIGKILL, 0.1, 300),
        (signal.SIGKILL, None, 1),
        (signal.SIGTERM, None, 300),
        (signal.SIGINT, None, 300),
    ],
)
def test_no_browser_and_no_file_outlives_its_parent(
    number: signal.Signals, workers_before_s: float | None, recycle_after: int, tmp_path: Path
) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, LONG, str(recycle_after)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"painting\n"
        children = psutil.Process(parent.pid).children(recursive=True)
        assert len(children) > 8
        assert len(list(tmp_path.iterdir())) >= 2
        if workers_before_s is not None:
            for child in psutil.Process(parent.pid).children():
                child.send_signal(number)
            time.sleep(workers_before_s)
        parent.send_signal(number)
        gone, left = psutil.wait_procs(children, timeout=5)
        assert left == []
        assert len(gone) == len(children)
    wait_until(lambda: not list(tmp_path.iterdir()), 5)
