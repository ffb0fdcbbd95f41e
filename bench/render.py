"""python -m bench.render: how fast each profile paints, and how near its pictures are to those of stock.

In this order: fresh browsers (cold), warm browsers of all profiles side by side with stock among them, farms of several
sizes, memory over many paintings. Tables go to standard output, progress to standard error; into the folder go
paintings.jsonl (a line a painting, as they come), the pictures, results.json, CSV files and a chart. The last line is
for machines: see `bench.summary.last_line`.

Left out: faults (bench.faults); farms of stock, whose paintings take a minute each.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from rich.console import Console

from bench import trials
from bench.corpus import LIGHT, QUICK, SEED, corpus, other_sets
from bench.environment import environment
from bench.journal import Journal
from bench.progress import Progress
from bench.report import conclude, print_tables
from bench.summary import STOCK, Sample, subject
from render.browser import BrowserLost
from render.errors import FarmError, UserError
from render.settings import PROFILES

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
RESULTS = Path(__file__).parent / "results"


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser("python -m bench.render", description="Speed and pictures of the profiles.")
    result.add_argument("--quick", action="store_true", help="under 2 minutes: few sketches, stock on one light one")
    result.add_argument("--profiles", default=",".join(PROFILES), help=f"some of {', '.join(PROFILES)}; default all")
    result.add_argument("-n", type=int, help="rounds of warm paintings (default 5)")
    result.add_argument("--workers", help="sizes of the farms (default 1 to the number of cores); 0: no farm")
    result.add_argument("--renders", type=int, help="paintings of the memory test (default 200); 0: no test")
    result.add_argument("--sketches", default="", help="names from bench/sketches, with commas (default all)")
    result.add_argument("--stock-sketches", type=int, help="how many sketches stock paints, seed_* first (default all)")
    result.add_argument("--sets", type=int, default=0, help="also so many sketches of tests, pool and grammar, warm")
    result.add_argument("--out", type=Path, help="folder of the results (default one of its own in bench/results)")
    return result


def plan(arguments: argparse.Namespace) -> argparse.Namespace:
    """Fill in what the arguments leave open. Raises UserError for what cannot be."""
    quick, cores = arguments.quick, len(os.sched_getaffinity(0))
    names = _list(arguments.sketches)
    if not names and quick:
        names = QUICK
    sketches = corpus(names)
    wanted = _list(arguments.profiles)
    for name in wanted:
        if name not in PROFILES:
            raise UserError(f"--profiles: there is no {name!r}; there are {', '.join(PROFILES)}")
    sizes = _list(arguments.workers) if arguments.workers else tuple(map(str, range(1, min(cores, 8) + 1)))
    if not all(size.isdecimal() for size in sizes):
        raise UserError(f"--workers: {arguments.workers!r} is not a list of numbers")
    seeds_first = sorted(sketches, key=lambda name: not name.startswith(SEED))
    stock = [name for name in seeds_first if not quick or name == LIGHT][: arguments.stock_sketches]
    defaults = (2, 12) if quick else (5, 200)
    result = argparse.Namespace(
        quick=quick,
        sketches=sketches,
        profiles=tuple(name for name in PROFILES if name in wanted),
        rounds=defaults[0] if arguments.n is None else arguments.n,
        workers=tuple(int(size) for size in sizes if int(size)),
        renders=defaults[1] if arguments.renders is None else arguments.renders,
        stock_sketches=stock if STOCK in wanted else [],
        sets=arguments.sets,
        copies=2 if quick else 3,
        passes=1 if quick else 2,
        out=arguments.out or RESULTS / time.strftime("%Y%m%d-%H%M%S"),
    )
    if not result.profiles or result.rounds < 1 or min(result.renders, result.sets) < 0:
        raise UserError("at least one profile and one round are needed, and no negative numbers")
    return result


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def expected(wanted: argparse.Namespace, cold: list[Sample]) -> str:
    """What is still to come and about how long it takes, from the first paintings."""
    others = [profile for profile in wanted.profiles if profile != STOCK]
    once = sum(sample.wall_s for sample in cold)
    each = once / max(1, len(cold))
    cores = len(os.sched_getaffinity(0))
    seconds = once * wanted.rounds
    seconds += once * wanted.copies * wanted.passes * sum(1 / min(n, cores) for n in wanted.workers)
    if wanted.workers and others:
        seconds += each * wanted.renders / min(max(wanted.workers), cores)
    known = {sample.sketch: trials.stock_seconds(sample) for sample in cold}
    costs = [known[name] for name in wanted.stock_sketches if name in known]
    if not costs:
        return f"to come: about {seconds / 60:.1f} min"
    slow = sum(costs) + costs[0]
    return (
        f"to come: about {(seconds + slow) / 60:.1f} min, of which stock on {len(costs)} sketches takes about "
        f"{slow / 60:.1f} (one after the other, on a quiet machine)"
    )


def measure(wanted: argparse.Namespace, journal: Journal, progress: Progress) -> None:
    """All stages. What they find is in the journal as it comes."""
    others = [profile for profile in wanted.profiles if profile != STOCK]
    journal.note("environment", environment())
    if others:
        trials.cold(journal, progress, others, wanted.sketches)
        progress.say(expected(wanted, list(journal.samples)))
    trials.warm(journal, progress, wanted.profiles, wanted.sketches, wanted.stock_sketches, wanted.rounds)
    conclude(journal, wanted.profiles)
    fastest = subject(wanted.profiles)
    if wanted.workers:
        for profile in (fastest,) if wanted.quick else others:
            trials.throughput(journal, progress, profile, wanted.sketches, wanted.workers, wanted.copies, wanted.passes)
    if wanted.workers and wanted.renders and others:
        trials.endurance(journal, progress, fastest, wanted.sketches, max(wanted.workers), wanted.renders)
    if wanted.sets:
        trials.sets(journal, progress, fastest, other_sets(wanted.sets))


def main(argv: list[str] | None = None) -> int:
    """The exit code: 0, 1 when something could not be measured, 2 for a mistake, 130 after Ctrl-C."""
    console = Console() if sys.stdout.isatty() else Console(width=140)
    progress = Progress(Console(stderr=True))
    journal: Journal | None = None
    try:
        wanted = plan(parser().parse_args(argv))
        journal = Journal(wanted.out, wanted.profiles)
        measure(wanted, journal, progress)
        line = conclude(journal, wanted.profiles)
        print_tables(console, journal, wanted.profiles)
        console.print(f"results: {wanted.out}", markup=False, highlight=False, soft_wrap=True)
        print(line, flush=True)
    except KeyboardInterrupt:
        if journal is None or not journal.samples:
            print("bench.render: interrupted before the first painting", file=sys.stderr)
        else:
            conclude(journal, wanted.profiles)
            print(f"bench.render: interrupted; the results so far are in {journal.folder}", file=sys.stderr)
        return EXIT_INTERRUPTED
    except UserError as error:
        print(f"bench.render: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (BrowserLost, FarmError) as error:
        where = f"; the results so far are in {journal.folder}" if journal else ""
        print(f"bench.render: {error}{where}", file=sys.stderr)
        return EXIT_FAILED
    finally:
        if journal is not None:
            journal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
