"""python -m render: paint sketches from files or standard input, in parallel, each into a PNG.

Every sketch gets one line on standard output (or one JSON object with --json); the progress bar and mistakes go to
standard error.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future, as_completed
from dataclasses import fields, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from render.errors import FarmError, UserError
from render.farm import Farm
from render.painting import Outcome, Painting
from render.settings import RenderSettings

EXIT_PAINTED, EXIT_REJECTED, EXIT_USAGE, EXIT_UNSCORED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
BOUNDS = {"ge": ("at least", operator.ge), "gt": ("above", operator.gt), "le": ("at most", operator.le)}
FLAGS = {"cpu_budget_s": "cpu-budget"}
EPILOG = """exit codes:
  0    every sketch was painted
  1    a sketch was rejected: the line says why
  2    a mistake in the call, a missing file or a missing program
  3    a sketch could not be painted through no fault of its own, or no browser starts
  130  interrupted by Ctrl-C
"""


def parser() -> argparse.ArgumentParser:
    defaults = RenderSettings()
    result = argparse.ArgumentParser(
        "python -m render",
        description="Paint p5.brush sketches with real Chromium.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("sketches", nargs="+", metavar="sketch.js", help="files to paint; - reads standard input")
    result.add_argument(
        "-o",
        "--output",
        default=".",
        help="PNG to write, or a folder (made if missing) that gets NAME.png for each NAME.js; default: this folder",
    )
    result.add_argument("--seed", type=int, default=0, help="seed of all randomness, default 0")
    result.add_argument(
        "--methods", default=",".join(defaults.methods), help="methods on `brush`: all, or names with commas"
    )
    result.add_argument(
        "--workers",
        type=int,
        default=None,
        help="browsers at the same time; default: one per core, or per slot of the grid",
    )
    result.add_argument(
        "--grid", default=defaults.grid_url, metavar="URL", help="Selenium Grid 4 hub whose browsers paint"
    )
    result.add_argument("--profile", default=defaults.profile, help="fast, exact or stock")
    result.add_argument("--backend", default=defaults.backend, help="auto, cpu or gpu: where the blend pass runs")
    result.add_argument("--rasterizer", default=defaults.rasterizer, help="auto, llvmpipe or swiftshader")
    result.add_argument("--cpu-budget", type=float, default=defaults.cpu_budget_s, help="CPU seconds of one sketch")
    result.add_argument("--json", action="store_true", help="one JSON object per sketch instead of a line")
    return result


def settings_of(arguments: argparse.Namespace, sketches: int) -> RenderSettings:
    """The settings that the arguments ask for. Raises UserError when one is out of bounds."""
    methods = arguments.methods
    workers = arguments.workers or (0 if arguments.grid else len(os.sched_getaffinity(0)))
    settings = replace(
        RenderSettings(),
        workers=workers,
        grid_url=arguments.grid,
        profile=arguments.profile,
        backend=arguments.backend,
        rasterizer=arguments.rasterizer,
        methods="all" if methods == "all" else tuple(name.strip() for name in methods.split(",") if name.strip()),
        cpu_budget_s=arguments.cpu_budget,
    )
    for option in fields(settings):
        value, rule = getattr(settings, option.name), option.metadata
        flag = FLAGS.get(option.name, option.name)
        if rule["choices"] and value not in rule["choices"]:
            raise UserError(f"--{flag}: {value!r} is not one of {', '.join(rule['choices'])}")
        for bound, (words, holds) in BOUNDS.items():
            if rule[bound] is not None and not holds(value, rule[bound]):
                raise UserError(f"--{flag}: {value} is not {words} {rule[bound]}")
    return replace(settings, workers=min(workers, sketches))


def read_sketch(name: str) -> str:
    """Text of a sketch file, or of standard input for `-`. Raises UserError."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: not UTF-8 text (byte {error.start})") from error


def targets(names: Sequence[str], output: str) -> list[Path]:
    """The PNG of each sketch. Raises UserError when two would be the same or the place cannot be written."""
    place = Path(output)
    if place.suffix.lower() == ".png" and not place.is_dir():
        if len(names) > 1:
            raise UserError(f"-o {output}: {len(names)} sketches cannot go into one PNG, give a folder")
        result, folder = [place], place.parent
    else:
        result = [place / ("painting.png" if name == "-" else Path(name).stem + ".png") for name in names]
        folder = place
    for path in result:
        if result.count(path) > 1:
            raise UserError(f"two sketches would both be written to {path}: rename one or paint them apart")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {output}: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"-o {output}: the folder cannot be written")
    return result


def describe(name: str, painting: Painting, target: Path) -> str:
    """One line about one painting for a person."""
    seconds = f"{painting.timings['total']:.1f} s"
    if painting.painted:
        ending = "" if painting.finished else f", stopped early: {painting.detail}"
        facts = f"{painting.shapes} shapes, coverage {painting.coverage:.3f}, {seconds}"
        return f"{name}: painted, {facts} -> {target}{ending}"
    where = f" (line {painting.line})" if painting.line else ""
    return f"{name}: {painting.outcome.value}: {painting.reason}{where}: {painting.detail} [{seconds}]"


def as_json(name: str, painting: Painting, target: Path) -> str:
    record = {item.name: getattr(painting, item.name) for item in fields(painting) if item.name != "png"}
    return json.dumps({"sketch": name, "painting": str(target) if painting.png else None, **record})


def paint(arguments: argparse.Namespace) -> int:
    """Paint what the arguments name; the exit code."""
    targets_of = targets(arguments.sketches, arguments.output)
    sources = [read_sketch(name) for name in arguments.sketches]
    outcomes: set[Outcome] = set()
    console = Console(stderr=True)
    columns = (TextColumn("painting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        Farm(settings_of(arguments, len(sources))) as farm,
        Progress(
            *columns,
            console=console,
            transient=True,
            disable=not console.is_terminal,
            # Lines printed while the bar lives go through its console: only right when both are the same terminal.
            redirect_stdout=sys.stdout.isatty(),
        ) as progress,
    ):
        if farm.info.get("fallback"):
            progress.console.print(f"render: {farm.info['fallback']}", markup=False, highlight=False, soft_wrap=True)
        bar = progress.add_task("painting", total=len(sources))
        places: dict[Future[Painting], tuple[str, Path]] = {}
        for name, source, target in zip(arguments.sketches, sources, targets_of, strict=True):
            places[farm.submit(source, arguments.seed)] = name, target
        for future in as_completed(places):
            name, target = places[future]
            painting = future.result()
            outcomes.add(painting.outcome)
            if painting.png is not None:
                try:
                    target.write_bytes(painting.png)
                except OSError as error:
                    raise UserError(f"{target}: {error.strerror}") from error
            progress.advance(bar)
            print((as_json if arguments.json else describe)(name, painting, target), flush=True)
    if Outcome.UNSCORED in outcomes:
        return EXIT_UNSCORED
    return EXIT_REJECTED if Outcome.REJECTED in outcomes else EXIT_PAINTED


def main() -> int:
    try:
        return paint(parser().parse_args())
    except UserError as error:
        print(f"render: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FarmError as error:
        print(f"render: {error}", file=sys.stderr)
        return EXIT_UNSCORED
    except KeyboardInterrupt:
        print("render: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
