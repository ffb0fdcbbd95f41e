"""python -m bench.render [-n ROUNDS] [--rasterizer auto|llvmpipe|swiftshader ...]

Warm seconds of one painting, in one browser, for three sets of sketches: those of the tests, the embedded pool, and
what the small policy starts from (the grammar). With several rasterizers they are measured in turn within one run and
the table gives each one's ratio to the first. The first painting of each set is not counted (caches fill).
The last line is for machines.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import numpy
from rich.console import Console
from rich.table import Table

from grpo.grammar import sample_sketch
from render.browser import Browser
from render.errors import SetupError
from render.settings import RenderSettings
from reward.pool import EMBEDDED

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "sketches"


def corpus(count: int) -> dict[str, list[str]]:
    """Up to `count` sketches of each set, by name of the set."""
    rng = numpy.random.default_rng(0)
    files = {"tests": sorted(FIXTURES.glob("*.js")), "pool": sorted(EMBEDDED.glob("sources/*.js"))}
    sets = {name: [path.read_text(encoding="utf-8") for path in paths[:count]] for name, paths in files.items()}
    sets["grammar"] = [sample_sketch(rng) for _ in range(count)]
    return sets


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.render", description="Warm seconds of one painting.")
    parser.add_argument("-n", type=int, default=12, help="sketches of each set (default 12)")
    parser.add_argument("--rasterizer", action="append", choices=("auto", "llvmpipe", "swiftshader"))
    arguments = parser.parse_args(argv)
    console = Console()
    browsers: dict[str, Browser] = {}
    wall: dict[tuple[str, str], list[float]] = {}
    cpu: dict[tuple[str, str], list[float]] = {}
    try:
        for name in arguments.rasterizer or ["auto"]:
            browsers[name] = Browser(RenderSettings(rasterizer=name))
            browsers[name].start()
            console.print(f"{name}: {browsers[name].info}", markup=False, highlight=False)
        for group, sketches in corpus(arguments.n).items():
            for number, source in enumerate([sketches[0], *sketches]):
                for name, browser in browsers.items():
                    painting = browser.paint(source, 0)
                    if not painting.painted:
                        console.print(f"{group} {number}: {painting.reason}: {painting.detail}", markup=False)
                        return 1
                    if number:
                        wall.setdefault((group, name), []).append(painting.timings["total"])
                        cpu.setdefault((group, name), []).append(painting.timings["cpu"])
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        for browser in browsers.values():
            browser.kill()
    table = Table(title="Seconds a painting, warm, one browser", title_justify="left")
    for head in ("sketches", "rasterizer", "paintings", "median", "90%", "CPU s, median", "ratio to the first"):
        table.add_column(head, justify="right")
    first = next(iter(browsers))
    parts = []
    for (group, name), seconds in wall.items():
        median = statistics.median(seconds)
        ratio = median / statistics.median(wall[group, first])
        table.add_row(
            group,
            name,
            str(len(seconds)),
            f"{median:.2f}",
            f"{sorted(seconds)[int(0.9 * (len(seconds) - 1))]:.2f}",
            f"{statistics.median(cpu[group, name]):.2f}",
            f"{ratio:.2f}",
        )
        parts.append(f"{group}_{name}_median_s={median:.3f}")
    console.print(table)
    print(" ".join(parts), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
