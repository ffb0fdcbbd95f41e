"""python -m bench.faults: paint good and poisoned sketches while the farm's processes are killed; who gets what?

First every good sketch is painted alone, for its picture. Then comes the mix, in an order drawn by a seed, and while it
is painted, processes of the farm are killed (SIGKILL) or stopped (SIGSTOP) at random. What is counted:

  lost           good sketches without their right picture, byte for byte
  wrong_class    poisoned sketches that got another class than the one named here
  phantom_zeros  good sketches that were rejected, which a reward would score 0
  orphans        processes and temporary files left after the farm was closed
  recover        seconds until the worker's place can paint again: from the kill, from the limit that the guard saw
                 broken, or from the deadline where that ended the attempt

Only first attempts are killed: a sketch that loses its browser twice is given up as unscored, by design. For the same
reason each of them that met a poisoned sketch may leave one unscored. The last line is for machines; the exit code is 1
when any of the first four is not 0.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.poison import GOOD, POISON
from render import Farm, Outcome, Painting, RenderSettings
from render.errors import FarmError, UserError
from render.processes import Identity, alive, command_line, identify
from render.seat import Order, Seat

LOSSES = ("browser_died", "driver_died", "page_lost", "context_lost", "host_stalled")

_PARTS: dict[str, Callable[[bytes], bool]] = {
    "worker": lambda line: b"render.worker" in line,
    "driver": lambda line: b"chromedriver" in line,
    "browser": lambda line: b"--user-data-dir" in line and b"--type=" not in line,
    "renderer": lambda line: b"--type=renderer" in line,
    "gpu": lambda line: b"--type=gpu-process" in line,
}
PARTS = (*_PARTS, "guardian")
STOPPED = ("worker", "browser", "driver")


def members(identities: frozenset[Identity], part: str) -> list[int]:
    """Pids of those of a farm's processes that are of one kind, one of PARTS, told by their command lines."""
    if part == "guardian":
        return [psutil.Process(pid).ppid() for pid in members(identities, "driver")]
    return [identity.pid for identity in alive(identities) if _PARTS[part](command_line(identity.pid))]


@dataclass(frozen=True)
class Blow:
    """A process that was killed or stopped: when (monotonic clock), in whose place, which part, how, at what work."""

    at: float
    index: int
    part: str
    stop: bool
    order: Order

    @property
    def label(self) -> str:
        return f"{self.part} {'stopped' if self.stop else 'killed'}"

    def may_meet_poison(self) -> bool:
        """Aimed at a poisoned sketch, or at a good one that was done at this moment, so that the next one was met."""
        return self.order.source not in GOOD or not self.order.faults


@dataclass
class Tally:
    """What a drill showed. wrong: one line for each sketch that did not get what it deserves."""

    healthy: int = 0
    right: int = 0
    poisoned: int = 0
    classed: int = 0
    spared: int = 0
    phantom_zeros: int = 0
    wrong: list[str] = field(default_factory=list)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    fits: Counter[str] = field(default_factory=Counter)
    blows: list[Blow] = field(default_factory=list)
    seen: frozenset[Identity] = frozenset()
    seconds: float = 0.0

    @property
    def lost(self) -> int:
        return self.healthy - self.right

    def wrong_class(self) -> int:
        """Each blow that may have met a poisoned sketch excuses one that ended unscored."""
        return self.poisoned - self.classed - min(self.spared, sum(blow.may_meet_poison() for blow in self.blows))

    def note(self, name: str, painting: Painting, picture: bytes) -> None:
        """Count one answer. name: a key of POISON, empty for a good sketch whose clean PNG is `picture`."""
        spared = False
        if name:
            fits = painting.outcome is Outcome.REJECTED and painting.reason in POISON[name].reasons
            spared = painting.outcome is Outcome.UNSCORED and painting.reason in LOSSES
            self.poisoned += 1
            self.classed += fits
            self.spared += spared
        else:
            fits = painting.png == picture and painting.painted
            self.healthy += 1
            self.right += fits
            self.phantom_zeros += painting.outcome is Outcome.REJECTED
        kind = name or "good"
        self.fits[kind] += fits
        label = f"{painting.outcome.value} {painting.reason}".strip()
        self.outcomes.setdefault(kind, Counter())[label + (", 2nd attempt" if painting.attempt > 1 else "")] += 1
        if not fits and not (spared and self.blows):
            self.wrong.append(f"{kind}: {label}: {painting.detail}")


def clean_pictures(farm: Farm) -> list[bytes]:
    """PNG of each good sketch, painted alone. Raises RuntimeError when one is not painted."""
    pictures = []
    for source in GOOD:
        painting = farm.submit(source).result()
        if not painting.painted or painting.png is None:
            raise RuntimeError(f"a good sketch is not painted: {painting.reason}: {painting.detail}")
        pictures.append(painting.png)
    return pictures


def drill(
    farm: Farm,
    pictures: list[bytes],
    count: int,
    share: float,
    seed: int,
    kills: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Tally:
    """Paint `count` sketches of which `share` are poisoned, kinds in turn, and strike `kills` times meanwhile.

    advance: called after each sketch.
    """
    kinds, draw = list(POISON), random.Random(seed)
    poisoned = round(count * share)
    names = [kinds[index % len(kinds)] for index in range(poisoned)] + [""] * (count - poisoned)
    draw.shuffle(names)
    tally, began, over = Tally(), time.monotonic(), threading.Event()
    done = 0

    def strike_evenly() -> None:
        while not over.wait(0.02):
            tally.seen |= farm.processes()
            if len(tally.blows) < min(kills, kills * (done + 1) // count + 1):
                blow = strike(farm, draw)
                tally.blows += [blow] if blow else []

    orders: dict[Future[Painting], tuple[str, int]] = {}
    striker = threading.Thread(target=strike_evenly, name="striker", daemon=True)
    striker.start()
    try:
        for index, name in enumerate(names):
            good = index % len(GOOD)
            orders[farm.submit(POISON[name].source if name else GOOD[good])] = name, good
        for future in as_completed(orders):
            name, good = orders[future]
            tally.note(name, future.result(), pictures[good])
            done += 1
            advance()
    finally:
        over.set()
        striker.join()
    tally.seconds = time.monotonic() - began
    return tally


def strike(farm: Farm, draw: random.Random) -> Blow | None:
    """Kill, or one time in ten stop, one process of a worker that makes a first attempt; None if there is none now.

    Three in four are aimed at good sketches, which would seldom be met by chance: they are soon done.
    """
    good = draw.random() < 0.75
    # No job is handed out meanwhile: the blow meets the sketch that it is aimed at, or none.
    with farm._lock:
        aims = [(seat, order) for seat in farm._seats if (order := _first_attempt(seat)) is not None]
        aims = [(seat, order) for seat, order in aims if (order.source in GOOD) == good]
        if not aims:
            return None
        seat, order = draw.choice(aims)
        stop = draw.random() < 0.1
        part = draw.choice(STOPPED if stop else PARTS)
        try:
            victims = members(seat.identity | seat.browser, part)
            if not victims:
                return None
            os.kill(victims[0], signal.SIGSTOP if stop else signal.SIGKILL)
        except (ProcessLookupError, psutil.NoSuchProcess):
            return None
        return Blow(time.monotonic(), seat.index, part, stop, order)


def _first_attempt(seat: Seat) -> Order | None:
    order = seat.order
    unfit = order is None or order.faults or seat.state != "busy" or time.monotonic() - seat.since < 0.05
    return None if unfit else order


def recover_times(farm: Farm, blows: list[Blow]) -> dict[str, list[float]]:
    """Seconds from each blow, broken limit or deadline until the place could paint again, by what it was."""
    times: dict[str, list[float]] = {}
    for recovery in farm.recoveries:
        label, begin = recovery.fault.kind, recovery.fault.noticed
        for blow in blows:
            if blow.index == recovery.index and recovery.began <= blow.at <= recovery.fault.noticed:
                # What is stopped cannot be told from what is slow before the deadline.
                label, begin = blow.label, recovery.fault.noticed if blow.stop else blow.at
        times.setdefault(label, []).append(recovery.ready - begin)
    return times


def percentile(values: list[float], share: float) -> float:
    """The smallest of `values` that at least `share` of them do not exceed; NaN of none."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else math.nan


def left_over(processes: frozenset[Identity], seconds: float = 5.0) -> int:
    """How many of `processes` still run after at most `seconds`."""
    limit = time.monotonic() + seconds
    while alive(processes) and time.monotonic() < limit:
        time.sleep(0.05)
    return len(alive(processes))


@contextlib.contextmanager
def own_temporary_folder() -> Iterator[Path]:
    """Have everything temporary of this process and of those it starts in a folder of its own."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


def named_after(folder: Path) -> frozenset[Identity]:
    """Processes whose command line names `folder`."""
    needle = os.fsencode(folder)
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return identify(pid for pid in pids if needle in command_line(pid))


def show(console: Console, tally: Tally, times: dict[str, list[float]]) -> None:
    table = Table("sketch", "times", "right", "became", title="Sketches", title_justify="left")
    for kind in sorted(tally.outcomes, key=lambda kind: (kind != "good", kind)):
        became = tally.outcomes[kind]
        told = "\n".join(f"{times} {label}" for label, times in became.most_common())
        table.add_row(kind, str(became.total()), str(tally.fits[kind]), told)
    console.print(table)
    table = Table(
        "lost by", "times", "p50 s", "p95 s", "max s", title="Until the place paints again", title_justify="left"
    )
    for label, seconds in sorted(times.items()):
        table.add_row(
            label,
            str(len(seconds)),
            f"{statistics.median(seconds):.2f}",
            f"{percentile(seconds, 0.95):.2f}",
            f"{max(seconds):.2f}",
        )
    console.print(table)
    for line in tally.wrong:
        console.print(f"wrong: {line}", markup=False)


def run(arguments: argparse.Namespace) -> int:
    console = Console()
    errors = Console(stderr=True)
    settings = RenderSettings(workers=arguments.workers, cpu_budget_s=1.5, deadline_s=12, memory_mb=1000)
    kills = arguments.sketches // 8 if arguments.kills is None else arguments.kills
    columns = (TextColumn("painting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with own_temporary_folder() as folder:
        with (
            Farm(settings) as farm,
            Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress,
        ):
            bar = progress.add_task("painting", total=arguments.sketches)
            pictures = clean_pictures(farm)
            tally = drill(
                farm,
                pictures,
                arguments.sketches,
                arguments.poisoned,
                arguments.seed,
                kills,
                lambda: progress.advance(bar),
            )
        orphans = left_over(tally.seen | named_after(folder)) + len(list(folder.iterdir()))
    times = recover_times(farm, tally.blows)
    show(console, tally, times)
    every = [seconds for group in times.values() for seconds in group]
    for line in (
        f"{farm.info['workers']} workers, {farm.info['rasterizer']}, {tally.seconds:.0f} s",
        f"{len(tally.blows)} killed or stopped; {tally.spared} poisoned sketches unscored, by that or by the machine",
        f"farm: {farm.counters}",
        f"recover p50 {percentile(every, 0.5):.2f} s, p95 {percentile(every, 0.95):.2f} s",
    ):
        console.print(line, markup=False, highlight=False)
    print(
        f"sketches={arguments.sketches} lost={tally.lost} wrong_class={tally.wrong_class()} "
        f"phantom_zeros={tally.phantom_zeros} orphans={orphans} recover_p95_s={percentile(every, 0.95):.2f}",
        flush=True,
    )
    return 1 if tally.lost or tally.wrong_class() or tally.phantom_zeros or orphans else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.faults", description="A fault drill of the render farm.")
    parser.add_argument("-n", "--sketches", type=int, default=200, help="sketches in the mix (default 200)")
    parser.add_argument("--poisoned", type=float, default=0.3, help="share of them that is poisoned (default 0.3)")
    parser.add_argument("--workers", type=int, default=0, help="browsers; default: one per core")
    parser.add_argument("--kills", type=int, help="processes killed or stopped meanwhile; default: one in 8 sketches")
    parser.add_argument("--seed", type=int, default=0, help="of the order and of the kills (default 0)")
    arguments = parser.parse_args(argv)
    if (
        arguments.sketches < 1
        or not 0 <= arguments.poisoned <= 1
        or (arguments.kills or 0) < 0
        or arguments.workers < 0
    ):
        parser.error("--sketches must be at least 1, --poisoned from 0 to 1, --kills and --workers not below 0")
    try:
        return run(arguments)
    except (UserError, FarmError) as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("faults: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
