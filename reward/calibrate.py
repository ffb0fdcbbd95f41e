"""python -m reward.calibrate [CONFIG]: can these scorers teach?

Every term of the config scores loved paintings, okay ones and hacked canvases (reward.hacked). For each term:

    love > okay, okay > hacked   the share of pairs that it orders so, ties counted half (the area under the ROC curve)
    spread                       standard deviation over the paintings of the pool
    saturated                    share of the pool's scores within .02 of 0 or 1
    splits                       judge: share of comparisons whose two orders name different winners
    bias                         judge: how far the answers lean to the first picture, as a share of wins above half
    consistent                   judge: share of comparisons that come out the same when they are asked again

A judge compares a painting of the pool with references drawn from the others. Answers are kept in the judge's cache, so
that an interrupted calibration goes on where it was; only what is asked again is paid again. The last line is for
machines: `can_teach=.. cannot=..`. Exit codes as for `python -m reward`; 1 when a paid scorer (preference, judge)
cannot teach. The coverage is a guard, not a scorer: that it knows no taste is no fault.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.progress import track
from rich.table import Table

from render.errors import UserError, exit_code
from render.painting import Outcome, Painting
from render.pixels import coverage
from reward.base import Candidate, Score, Term
from reward.config import DEFAULT, ScoringConfig, load, scorers
from reward.draw import half_and_half
from reward.hacked import hacked_canvases
from reward.judge import Judge
from reward.mix import Mix, display_name
from reward.pool import Pool

SCORERS = ("preference", "judge")
KINDS = ("love", "okay", "hacked")
ORDERED = 0.75  # share of pairs ordered okay > hacked below which a term does not know a painting from a hack
TASTE = 0.60  # share of pairs ordered love > okay from which a term is said to know them apart
FLAT = 0.01  # spread below which every painting scores the same
FULL = 0.9  # share of saturated scores from which nothing is left to learn
NEAR = 0.02  # of 0 or 1: saturated
AGAIN = 12  # comparisons that are asked again


@dataclass(frozen=True)
class Calibration:
    """What was found of one term. scores: by kind of canvas; unscored: how many canvases it gave no score."""

    term: str
    shown: str
    scores: dict[str, list[float]]
    unscored: int
    splits: float | None = None
    bias: float | None = None
    consistent: float | None = None

    @property
    def pool(self) -> list[float]:
        return self.scores["love"] + self.scores["okay"]

    @property
    def spread(self) -> float:
        return statistics.pstdev(self.pool) if self.pool else 0.0

    @property
    def saturated(self) -> float:
        return statistics.fmean(float(not NEAR < score < 1 - NEAR) for score in self.pool) if self.pool else 0.0

    def ordered(self, better: str, worse: str) -> float | None:
        return auc(self.scores[better], self.scores[worse])

    @property
    def verdict(self) -> tuple[bool, str]:
        """Whether the term can teach, and in a few words why, or what it cannot."""
        okay_hacked, love_okay = self.ordered("okay", "hacked"), self.ordered("love", "okay")
        if okay_hacked is None or love_okay is None:
            return False, "cannot teach: it gave no score"
        if self.spread < FLAT:
            return False, "cannot teach: every painting scores the same"
        if okay_hacked < ORDERED:
            return False, "cannot teach: hacked canvases score like paintings"
        if self.saturated > FULL:
            return False, "cannot teach: nearly every score is at an end of the scale"
        if love_okay < TASTE:
            return True, "teaches painting, not taste: love and okay score alike"
        return True, "can teach"


def auc(better: Sequence[float], worse: Sequence[float]) -> float | None:
    """Share of pairs (one of each) in which the first is higher, ties half (Mann and Whitney 1947); None without."""
    if not better or not worse:
        return None
    return statistics.fmean((high > low) + 0.5 * (high == low) for high in better for low in worse)


def calibrate(mix: Mix, pool: Pool, config: ScoringConfig, limit: int, console: Console) -> list[Calibration]:
    """Ask every term but the length, which looks at no picture, about up to `limit` paintings of each kind."""
    canvases = [(kind, name, png) for kind, name, png in _canvases(pool, limit)]
    terms = [term for term in mix.terms if term.name != "length"]
    found: dict[str, dict[str, list[Score]]] = {term.name: {kind: [] for kind in KINDS} for term in terms}

    def score(canvas: tuple[str, str, bytes]) -> dict[str, Score]:
        _, name, png = canvas
        candidate = Candidate("", None, Painting(Outcome.PAINTED, png=png, coverage=coverage(png), finished=True))
        references = half_and_half(pool.without(name), config.pool.references, 0, len(name))
        return {term.name: term.score(candidate, references) for term in terms}

    with ThreadPoolExecutor(mix.parallel) as threads:
        results = threads.map(score, canvases)
        for (kind, _, _), scores in zip(
            canvases, track(results, "scoring", len(canvases), console=console), strict=True
        ):
            for term, value in scores.items():
                found[term][kind].append(value)
    return [_calibration(term, found[term.name], pool) for term in terms]


def _canvases(pool: Pool, limit: int) -> list[tuple[str, str, bytes]]:
    """(kind, name, PNG): paintings evenly through each tier, and the hacked canvases."""
    chosen = []
    for tier in ("love", "okay"):
        paintings = pool.tier(tier)
        for reference in paintings[:: -(-len(paintings) // limit)]:
            chosen.append((tier, reference.name, reference.png))
    hacked = hacked_canvases(pool.tier("love")[0].png)
    return chosen + [("hacked", f"hacked: {name}", png) for name, png in hacked.items()]


def _calibration(term: Term, scores: dict[str, list[Score]], pool: Pool) -> Calibration:
    values = {kind: [score.value for score in found if score.value is not None] for kind, found in scores.items()}
    unscored = sum(score.value is None for found in scores.values() for score in found)
    if not isinstance(term, Judge):
        return Calibration(term.name, display_name(term), values, unscored)
    orders = [order for found in scores.values() for score in found for order in score.info.get("orders", {}).values()]
    first = [(with_first + second_first) / 2 - 0.5 for with_first, second_first in orders]
    splits = [(with_first > 0.5) == (second_first > 0.5) for with_first, second_first in orders]
    return Calibration(
        term.name,
        display_name(term),
        values,
        unscored,
        statistics.fmean(splits) if splits else None,
        statistics.fmean(first) if first else None,
        consistency(term, pool),
    )


def consistency(judge: Judge, pool: Pool) -> float | None:
    """Share of AGAIN comparisons within the pool whose answer, asked twice past the cache, names the same winner."""
    paintings = [*pool.tier("love")[: AGAIN // 2], *pool.tier("okay")[: AGAIN // 2]]
    pairs = list(zip(paintings, reversed(paintings), strict=True))[:AGAIN]
    same = []
    for one, other in pairs:
        if one is other:
            continue
        answers = [judge.ask_afresh(one.png, other.png) for _ in range(2)]
        if None not in answers:
            same.append((answers[0] > 0.5) == (answers[1] > 0.5))  # type: ignore[operator]
    return statistics.fmean(same) if same else None


def table(found: Sequence[Calibration]) -> Table:
    """A column a term, so that it fits a narrow terminal."""
    shown = Table(title="Can these scorers teach?", title_justify="left")
    shown.add_column("")
    for one in found:
        shown.add_column(one.shown, justify="right", overflow="fold")
    rows: dict[str, Callable[[Calibration], float | None]] = {
        **{f"mean, {kind}": partial(_mean_of, kind) for kind in KINDS},
        "love > okay": lambda one: one.ordered("love", "okay"),
        "okay > hacked": lambda one: one.ordered("okay", "hacked"),
        "spread": lambda one: one.spread,
        "saturated": lambda one: one.saturated,
        "splits": lambda one: one.splits,
        "bias": lambda one: one.bias,
        "consistent": lambda one: one.consistent,
    }
    for name, value_of in rows.items():
        values = map(value_of, found)
        shown.add_row(name, *("-" if value is None else f"{value:z.2f}" for value in values))
    shown.add_row("without a score", *(str(one.unscored) for one in found), end_section=True)
    shown.add_row("verdict", *(one.verdict[1] for one in found))
    return shown


def _mean_of(kind: str, one: Calibration) -> float | None:
    return statistics.fmean(one.scores[kind]) if one.scores[kind] else None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m reward.calibrate", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("config", nargs="?", default=str(DEFAULT), help=f"whose scorers are asked; default {DEFAULT}")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE")
    parser.add_argument("--limit", type=int, default=12, help="paintings of each tier, at most; default 12")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: run(arguments), "stopped; what the judge answered is in its cache")


def run(arguments: argparse.Namespace) -> int:
    console = Console()
    config = load(arguments.config, arguments.overrides)
    if arguments.limit < 1:
        raise UserError(f"--limit must be at least 1, not {arguments.limit}")

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    with scorers(config, say, lambda done, total: say(f"painting the pool: {done} of {total}")) as (mix, pool):
        found = calibrate(mix, pool, config, arguments.limit, console)
    console.print(table(found))
    weights = config.reward.weights.as_dict()
    can = [one.term for one in found if one.verdict[0]]
    cannot = [one.term for one in found if not one.verdict[0]]
    print(f"can_teach={','.join(can) or '-'} cannot={','.join(cannot) or '-'}", flush=True)
    return 1 if any(weights[term] > 0 for term in cannot if term in SCORERS) else 0


if __name__ == "__main__":
    sys.exit(main())
