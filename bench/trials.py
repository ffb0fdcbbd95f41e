"""The measurements: fresh browsers, warm browsers side by side, farms of several sizes, memory over many paintings.

Profiles are compared within one run, in turn, sketch by sketch, and the paintings of the slow profile are spread over
all passes, so that a machine that grows slower or faster does so for all of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from bench.environment import describe_profile, load_average
from bench.faults import left_over
from bench.journal import Journal
from bench.progress import Progress
from bench.summary import STOCK, Sample
from render.browser import Browser, BrowserLost
from render.errors import FarmError
from render.farm import Farm
from render.guardian import descendants
from render.painting import Painting
from render.processes import Identity, command_line, usage
from render.settings import RenderSettings

# Measured for flat and for wide shapes on 600 x 600; a larger canvas costs more.
STOCK_S_PER_SHAPE = 3.0
SAMPLE_S = 0.5
NOT_PHASES = ("total", "cpu", "queue")


class Unpainted(FarmError):
    """A sketch of the corpus was not painted: nothing can be compared."""


def settings_of(profile: str, workers: int = 1) -> RenderSettings:
    return RenderSettings(profile=profile, workers=workers)


def stock_seconds(sample: Sample) -> float:
    """Expected seconds of a sketch by stock, from what another profile has counted in it."""
    return STOCK_S_PER_SHAPE * sample.shapes * (sample.width * sample.height / 600**2) ** 0.5


def _checked(painting: Painting, profile: str, sketch: str) -> bytes:
    if not painting.painted or not painting.finished or painting.png is None:
        said = painting.detail or "; ".join(painting.errors)
        raise Unpainted(f"{sketch} by {profile}: {painting.outcome} {painting.reason}: {said}")
    return painting.png


def _sample(painting: Painting, profile: str, sketch: str, stage: str, number: int, wall_s: float) -> Sample:
    return Sample(
        profile=profile,
        sketch=sketch,
        stage=stage,
        round=number,
        wall_s=wall_s,
        cpu_s=painting.timings["cpu"],
        digest=hashlib.sha256(_checked(painting, profile, sketch)).hexdigest(),
        shapes=painting.shapes,
        width=painting.width,
        height=painting.height,
        coverage=painting.coverage,
        phases={name: value for name, value in painting.timings.items() if name not in NOT_PHASES},
        load=load_average()[0],
    )


def _cpu_by_process(browser: Browser) -> dict[tuple[str, int], float]:
    """CPU seconds so far by kind (page: JavaScript and masks; gpu: the blend pass; other) and pid."""
    kinds = {b"--type=renderer": "page", b"--type=gpu-process": "gpu"}
    used = {}
    for pid in browser.pids():
        line = command_line(pid)
        kind = next((name for flag, name in kinds.items() if flag in line), "other")
        used[kind, pid] = usage([pid])[0]
    return used


def paint(
    journal: Journal, browser: Browser, profile: str, sketch: str, source: str, stage: str, number: int
) -> Sample:
    """Paint in one browser and note it. Raises Unpainted, BrowserLost."""
    before = _cpu_by_process(browser)
    began = time.perf_counter()
    painting = browser.paint(source, 0)
    wall_s = time.perf_counter() - began
    sample = _sample(painting, profile, sketch, stage, number, wall_s)
    for (kind, pid), seconds in _cpu_by_process(browser).items():
        spent = seconds - before.get((kind, pid), 0.0)
        sample.cpu_split_s[kind] = sample.cpu_split_s.get(kind, 0.0) + spent
    assert painting.png is not None
    journal.add(sample, painting.png)
    return sample


def cold(journal: Journal, progress: Progress, profiles: Sequence[str], sketches: Mapping[str, str]) -> None:
    """The first painting of a fresh browser, for each profile and sketch; and how long browsers take to start."""
    starts: dict[str, list[float]] = defaultdict(list)
    with progress.stage("fresh browsers", len(profiles) * len(sketches)) as step:
        for sketch, source in sketches.items():
            for profile in profiles:
                browser = Browser(settings_of(profile))
                try:
                    began = time.perf_counter()
                    browser.start()
                    starts[profile].append(time.perf_counter() - began)
                    paint(journal, browser, profile, sketch, source, "cold", 0)
                finally:
                    browser.kill()
                step(1, f"{sketch} by {profile}")
    journal.note("start_s", {profile: statistics.median(seconds) for profile, seconds in starts.items()})


class WarmBrowsers:
    """One warm browser for each profile. A browser that is lost is replaced once a painting; `lost` counts them."""

    def __init__(self, journal: Journal, profiles: Sequence[str]) -> None:
        self.lost: dict[str, int] = dict.fromkeys(profiles, 0)
        self._journal = journal
        self._browsers = {profile: Browser(settings_of(profile)) for profile in profiles}

    def __enter__(self) -> WarmBrowsers:
        try:
            for browser in self._browsers.values():
                browser.start()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def _kill(self) -> None:
        for browser in self._browsers.values():
            browser.kill()

    def describe(self) -> dict[str, dict[str, Any]]:
        return {name: describe_profile(one.settings, one.info) for name, one in self._browsers.items()}

    def paint(self, profile: str, sketch: str, source: str, stage: str, number: int) -> Sample:
        """Raises Unpainted, or BrowserLost when the browser is lost a second time."""
        browser = self._browsers[profile]
        try:
            return paint(self._journal, browser, profile, sketch, source, stage, number)
        except BrowserLost:
            self.lost[profile] += 1
            browser.kill()
            browser.start()
            return paint(self._journal, browser, profile, sketch, source, stage, number)


def warm(
    journal: Journal,
    progress: Progress,
    profiles: Sequence[str],
    sketches: Mapping[str, str],
    stock_sketches: Sequence[str],
    rounds: int,
) -> None:
    """Every sketch by every profile, `rounds` times, in shuffled orders; stock paints each of its sketches once.

    The first painting of each browser warms it and counts as cold (for stock, whose browser has not painted yet).
    """
    light = min(sketches, key=lambda name: len(sketches[name])) if not stock_sketches else stock_sketches[0]
    cost = {sample.sketch: stock_seconds(sample) for sample in journal.samples}
    others = [profile for profile in profiles if profile != STOCK]
    # A profile's own cost is small beside that of stock: one second stands for it.
    total = rounds * len(others) * len(sketches) + sum(cost.get(name, 60.0) for name in stock_sketches)
    rng = random.Random(0)
    with WarmBrowsers(journal, profiles) as browsers, progress.stage("warm browsers", total) as step:
        if STOCK in profiles:
            progress.say(f"stock warms up on {light}")
        for profile in profiles:
            stage = "cold" if profile == STOCK else "warm-up"
            browsers.paint(profile, light, sketches[light], stage, 0)
        journal.note("profiles", browsers.describe())
        for number in range(rounds):
            order = list(sketches)
            rng.shuffle(order)
            for position, sketch in enumerate(order):
                turn = (number + position) % len(profiles)
                for profile in (*profiles[turn:], *profiles[:turn]):
                    if profile != STOCK:
                        browsers.paint(profile, sketch, sketches[sketch], "warm", number)
                        step(1, f"{sketch} by {profile}")
                    elif sketch in stock_sketches and stock_sketches.index(sketch) % rounds == number:
                        progress.say(f"stock paints {sketch}, about {cost.get(sketch, 60.0):.0f} s")
                        sample = browsers.paint(profile, sketch, sketches[sketch], "warm", number)
                        step(cost.get(sketch, 60.0), f"{sketch} by {profile}")
                        progress.say(f"stock painted {sketch} in {sample.wall_s:.1f} s")
        journal.note("browsers_lost", browsers.lost)


def sets(journal: Journal, progress: Progress, profile: str, groups: Mapping[str, Sequence[str]]) -> None:
    """Sketches that are not the corpus', once each, warm. Raises Unpainted."""
    with (
        WarmBrowsers(journal, [profile]) as browsers,
        progress.stage("other sets", sum(map(len, groups.values()))) as step,
    ):
        for group, sources in groups.items():
            for number, source in enumerate(sources):
                browsers.paint(profile, group, source, f"set {group}", number)
                step(1, group)


@contextlib.contextmanager
def _open_farm(settings: RenderSettings, light: str) -> Iterator[Farm]:
    """A farm all of whose workers have painted once."""
    with Farm(settings) as farm:
        met: set[int] = set()
        limit = time.monotonic() + 120
        while len(met) < settings.workers and time.monotonic() < limit:
            batch = [farm.submit(light) for _ in range(settings.workers)]
            met |= {future.result().worker for future in batch}
        if len(met) < settings.workers:
            raise FarmError(f"only {len(met)} of {settings.workers} workers paint")
        yield farm


def throughput(
    journal: Journal,
    progress: Progress,
    profile: str,
    sketches: Mapping[str, str],
    workers: Sequence[int],
    copies: int,
    passes: int,
) -> None:
    """Pictures a minute by farms of several sizes: `copies` of every sketch at once, in `passes` there and back."""
    light = min(sketches.values(), key=len)
    seconds: dict[int, float] = dict.fromkeys(workers, 0.0)
    painted: dict[int, int] = dict.fromkeys(workers, 0)
    names = [name for name in sketches for _ in range(copies)]
    with progress.stage(f"farms, {profile}", passes * len(workers) * len(names)) as step:
        for number in range(passes):
            for count in workers if number % 2 == 0 else reversed(workers):
                random.Random(number).shuffle(names)
                with _open_farm(settings_of(profile, count), light) as farm:
                    began = time.perf_counter()
                    futures = [(name, farm.submit(sketches[name])) for name in names]
                    for name, future in futures:
                        _note_farm(journal, future.result(), profile, name, f"workers={count}", number)
                        step(1, f"{count} workers")
                    seconds[count] += time.perf_counter() - began
                    painted[count] += len(names)
                rates = {str(size): 60 * painted[size] / seconds[size] for size in workers if seconds[size]}
                journal.note("pictures_a_minute", {**journal.facts.get("pictures_a_minute", {}), profile: rates})


def _note_farm(journal: Journal, painting: Painting, profile: str, sketch: str, stage: str, number: int) -> None:
    png = _checked(painting, profile, sketch)
    wall_s = painting.timings["total"] - painting.timings["queue"]
    sample = _sample(painting, profile, sketch, stage, number, wall_s)
    sample.phases["transport"] = wall_s - sum(sample.phases.values())
    journal.add(sample, png)


def endurance(
    journal: Journal, progress: Progress, profile: str, sketches: Mapping[str, str], workers: int, renders: int
) -> None:
    """Memory of the workers over many paintings in one farm; jobs lost, bytes that changed, processes left behind."""
    settings = settings_of(profile, workers)
    names = list(sketches)
    order = [names[index % len(names)] for index in range(renders)]
    random.Random(1).shuffle(order)
    known = {s.sketch: s.digest for s in journal.samples if s.profile == profile}
    seen: frozenset[Identity] = frozenset()
    curve: list[tuple[int, float]] = []
    lost: list[str] = []
    wrong: list[str] = []
    with progress.stage(f"memory over {renders} paintings", renders) as step:
        with _open_farm(settings, min(sketches.values(), key=len)) as farm:
            orders: dict[Future[Painting], str] = {farm.submit(sketches[name]): name for name in order}
            waiting = set(orders)
            while waiting:
                done, waiting = wait(waiting, timeout=SAMPLE_S)
                for future in done:
                    name, painting = orders[future], future.result()
                    if not painting.painted or painting.png is None:
                        lost.append(f"{name}: {painting.outcome} {painting.reason}: {painting.detail}")
                    elif hashlib.sha256(painting.png).hexdigest() != known.get(name):
                        wrong.append(name)
                seen |= farm.processes()
                curve += [(renders - len(waiting), memory) for memory in _memory(farm)]
                step(len(done), "")
            counters = dict(farm.counters)
        orphans = left_over(seen)
    journal.note(
        "endurance",
        {
            "profile": profile,
            "workers": workers,
            "renders": renders,
            **growth(curve, renders),
            "recycle_mb": settings.recycle_mb,
            "recycle_after": settings.recycle_after,
            "counters": counters,
            "lost": lost,
            "wrong": wrong,
            "orphans": orphans,
        },
    )


def _memory(farm: Farm) -> list[float]:
    """MiB of each worker's browser with all its processes, as the mark for recycling counts them."""
    roots = [process.pid for process in farm.processes() if b"render.worker" in command_line(process.pid)]
    return [usage(below)[1] for root in roots if (below := descendants(root))]


def growth(curve: Sequence[tuple[int, float]], renders: int) -> dict[str, float]:
    """From (paintings done, MiB of one worker): medians of three tenths, last less first, the peak.

    A browser fills its caches over the first dozens of paintings; what grows on after the middle is a leak.
    """
    tenth = max(1, renders // 10)

    def median(start: int) -> float:
        found = [memory for done, memory in curve if start <= done <= start + tenth]
        # A short run may have no sample there: then the nearest one.
        return statistics.median(found) if found else min(curve, key=lambda point: abs(point[0] - start))[1]

    first, middle, last = median(0), median((renders - tenth) // 2), median(renders - tenth)
    return {
        "first_mb": first,
        "middle_mb": middle,
        "last_mb": last,
        "growth_mb": last - first,
        "peak_mb": max(memory for _, memory in curve),
    }
