"""python -m bench.faults: paint a mix of good and poisoned sketches and see that each gets what it deserves.

First every good sketch is painted alone, for its picture. Then comes the mix, one sketch in five poisoned, in an order
drawn by a seed; and last the good ones again while processes of the farm are killed at random. A good sketch is right
when its PNG is the clean one byte for byte; a poisoned one when its class is the one named here. The last line is for
machines; the exit code is 1 when anything is wrong or a process is left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from render import Farm, Outcome, Painting, RenderSettings
from render.processes import Identity, alive

CANVAS = "createCanvas(240, 240, WEBGL); background(250); brush.noStroke();"
PAINT = "brush.fill('#c33', 90); brush.circle(0, 0, 60);"

GOOD = (
    f"function setup() {{ {CANVAS} }} function draw() {{ {PAINT} noLoop(); }}",
    f"""function setup() {{ {CANVAS} noLoop(); }}
function draw() {{
  brush.fill('#36a', 110); brush.fillBleed(0.2); brush.circle(-40, -30, 45);
  brush.fill('#e92', 90); brush.beginShape();
  for (let i = 0; i < 5; i++) brush.vertex(70 * cos(TWO_PI * i / 5), 30 + 60 * sin(TWO_PI * i / 5));
  brush.endShape(true);
}}""",
    f"""function setup() {{ {CANVAS} noLoop(); }}
function draw() {{
  for (let i = 0; i < 3; i++) {{
    brush.fill(random(['#274', '#5a3', '#183']), 100); brush.circle(random(-70, 70), random(-70, 70), random(15, 40));
  }}
}}""",
)


@dataclass(frozen=True)
class Poison:
    """A sketch that harms, and the reasons that are right for its rejection."""

    source: str
    reasons: frozenset[str]


def _in_setup(code: str, *reasons: str, head: str = "") -> Poison:
    return Poison(
        f"{head}function setup() {{ {CANVAS} {code} }} function draw() {{ {PAINT} noLoop(); }}", frozenset(reasons)
    )


POISON = {
    "loops in setup": _in_setup("while (true) {}", "too_slow"),
    "loops in draw": Poison(
        f"function setup() {{ {CANVAS} }} function draw() {{ {PAINT} while (true) {{}} }}", frozenset({"too_slow"})
    ),
    "loops in a promise": _in_setup("const again = () => Promise.resolve().then(again); again();", "too_slow"),
    "loops at top level": _in_setup("", "too_slow", head="while (true) {}\n"),
    "allocates typed arrays": _in_setup(
        "const kept = []; while (true) kept.push(new Float64Array(1 << 22).fill(1));", "too_big", "throws"
    ),
    "allocates arrays": _in_setup("const kept = []; while (true) kept.push(new Array(1e5).fill(0.5));", "too_big"),
    "never resolves": Poison(
        f"async function setup() {{ {CANVAS} await new Promise(() => {{}}); }} function draw() {{ {PAINT} noLoop(); }}",
        frozenset({"too_slow"}),
    ),
    "is not JavaScript": _in_setup("let = = 3;", "syntax_error"),
    "throws": _in_setup("null.colour;", "throws"),
    "reaches for the network": _in_setup("fetch('http://127.0.0.1/');", "outside_access"),
}


@dataclass
class Tally:
    """What a drill showed. wrong: one line for each sketch that did not get what it deserves."""

    healthy: int = 0
    right: int = 0
    poisoned: int = 0
    classed: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)

    def note(self, name: str, painting: Painting) -> None:
        label = f"{painting.outcome.value} {painting.reason}".strip()
        self.outcomes.setdefault(name, Counter())[label] += 1

    def miss(self, name: str, painting: Painting) -> None:
        self.wrong.append(f"{name}: {painting.outcome.value} {painting.reason}: {painting.detail}")


def clean_pictures(farm: Farm) -> list[bytes]:
    """PNG of each good sketch, painted alone. Raises RuntimeError when one is not painted."""
    pictures = []
    for source in GOOD:
        painting = farm.submit(source).result()
        if not painting.painted or painting.png is None:
            raise RuntimeError(f"a good sketch is not painted: {painting.reason}: {painting.detail}")
        pictures.append(painting.png)
    return pictures


def mixed(farm: Farm, pictures: list[bytes], count: int, share: float, seed: int) -> Tally:
    """Paint `count` sketches of which `share` are poisoned, kinds in turn, all submitted at once."""
    kinds = list(POISON)
    poisoned = round(count * share)
    names = [kinds[index % len(kinds)] for index in range(poisoned)] + [""] * (count - poisoned)
    random.Random(seed).shuffle(names)
    tally, began = Tally(), time.monotonic()
    orders: dict[Future[Painting], tuple[str, int]] = {}
    for index, name in enumerate(names):
        good = index % len(GOOD)
        orders[farm.submit(POISON[name].source if name else GOOD[good])] = name, good
    for future in as_completed(orders):
        name, good = orders[future]
        painting = future.result()
        tally.note(name or "good", painting)
        if name:
            tally.poisoned += 1
            fits = painting.outcome is Outcome.REJECTED and painting.reason in POISON[name].reasons
            tally.classed += fits
        else:
            tally.healthy += 1
            fits = painting.png == pictures[good]
            tally.right += fits
        if not fits:
            tally.miss(name or "good", painting)
    tally.seconds = time.monotonic() - began
    return tally


def sabotaged(farm: Farm, pictures: list[bytes], count: int, kills: int, seed: int) -> Tally:
    """Paint `count` good sketches while `kills` processes of the farm, drawn at random, are killed.

    A good sketch that loses its browser twice may end unscored; it may not be rejected or come out wrong.
    """
    tally, began, draw = Tally(), time.monotonic(), random.Random(seed)
    orders = {farm.submit(GOOD[index % len(GOOD)]): index % len(GOOD) for index in range(count)}
    for done, future in enumerate(as_completed(orders), start=1):
        painting = future.result()
        tally.note("good, under fire", painting)
        tally.healthy += 1
        fits = painting.png == pictures[orders[future]]
        tally.right += fits
        if not fits and painting.outcome is not Outcome.UNSCORED:
            tally.miss("good, under fire", painting)
        if kills and done % max(1, count // (kills + 1)) == 0:
            kills -= 1
            victims = sorted(alive(farm.processes()))
            with contextlib.suppress(ProcessLookupError):
                os.kill(draw.choice(victims).pid, signal.SIGKILL)
    tally.seconds = time.monotonic() - began
    return tally


def left_over(processes: frozenset[Identity], seconds: float = 5.0) -> int:
    """How many of `processes` still run after at most `seconds`."""
    limit = time.monotonic() + seconds
    while alive(processes) and time.monotonic() < limit:
        time.sleep(0.05)
    return len(alive(processes))


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.faults", description="Good and poisoned sketches, mixed.")
    parser.add_argument("-n", "--sketches", type=int, default=100, help="sketches in the mix, a fifth of them poisoned")
    parser.add_argument("--workers", type=int, default=0, help="browsers; default: one per core")
    parser.add_argument("--kills", type=int, default=5, help="processes killed in the second part")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    settings = RenderSettings(workers=arguments.workers, cpu_budget_s=4, deadline_s=30, memory_mb=1200)
    with Farm(settings) as farm:
        pictures = clean_pictures(farm)
        mix = mixed(farm, pictures, arguments.sketches, 0.2, arguments.seed)
        fire = sabotaged(farm, pictures, arguments.sketches // 4, arguments.kills, arguments.seed)
        processes = farm.processes()
    left = left_over(processes)
    table = Table("sketch", "became", "times")
    for name, became in sorted((mix.outcomes | fire.outcomes).items()):
        for label, times in became.most_common():
            table.add_row(name, label, str(times))
    console = Console()
    console.print(table)
    wrong = mix.wrong + fire.wrong
    for line in wrong:
        console.print(f"wrong: {line}", markup=False)
    console.print(f"farm: {farm.info['workers']} workers, {farm.info['rasterizer']}; {farm.counters}", markup=False)
    print(
        f"sketches={arguments.sketches} healthy={mix.healthy} right={mix.right} poisoned={mix.poisoned} "
        f"classed={mix.classed} under_fire={fire.healthy} under_fire_right={fire.right} wrong={len(wrong)} "
        f"processes_left={left} seconds={mix.seconds + fire.seconds:.1f}"
    )
    return 1 if wrong or left else 0


if __name__ == "__main__":
    sys.exit(main())
