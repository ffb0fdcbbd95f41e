"""python -m reward.pool check POOL [--run RUN]: what is wrong with a pool, one line a finding.

Format (missing and unreadable files, tiers, misspelt columns), licences of photographs, paintings that are nearly the
same, coverage, the spread of coverage and score in each tier, and, for a given run, which references are of no use to
its policy: a reference teaches if the policy beats it between a quarter and three quarters of the time, as
reward.strength estimates it at the run's last step.

Images that are missing while the sketch is there are painted once and cached, as a run does it.
Exit codes: 0 nothing found, 1 findings, 2 a mistake.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from render.errors import UserError
from render.farm import Farm
from render.settings import RenderSettings
from reward.base import Reference
from reward.calibrate import auc
from reward.local import PreferenceStandIn, Study
from reward.pool import TIERS, Pool, paint_pool
from reward.pool.findings import Entry, Finding, coverages, duplicates, licences, read_pool
from reward.pool.workshop import METADATA, read_lines
from reward.settings import PoolSettings
from reward.strength import Strengths

USEFUL = (0.25, 0.75)  # share of comparisons that the policy wins
NEEDED = 2  # of each tier: a step with four references takes two
DISAGREE = 0.4  # share of pairs in which a loved painting scores above an okay one


@dataclass(frozen=True)
class Difficulty:
    """One reference and a run's policy. won: out of `comparisons`, 0..1 each; win_rate: expected at the last step."""

    name: str
    tier: str
    won: float
    comparisons: int
    win_rate: float

    @property
    def verdict(self) -> str:
        low, high = USEFUL
        return "too hard" if self.win_rate < low else "too easy" if self.win_rate > high else "useful"


@dataclass(frozen=True)
class Report:
    """notes: what a person should know and need not mend. tiers: a row a tier. difficulty: with --run alone."""

    findings: list[Finding]
    notes: list[str]
    tiers: list[dict[str, Any]]
    score: str
    difficulty: list[Difficulty] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", type=Path, metavar="POOL", help='folder of the pool, or "embedded"')
    parser.add_argument("--run", type=Path, metavar="RUN", help="folder of a run that was compared with this pool")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the text")


def run(arguments: argparse.Namespace) -> int:
    """Say what is found; 0 or 1. Raises UserError in one line."""
    notes = Console(stderr=True, highlight=False)
    settings = PoolSettings(source=str(arguments.pool), references=1)
    report = check(
        settings,
        arguments.run,
        lambda done, total: notes.print(f"painting the pool: {done} of {total}", highlight=False),
    )
    if arguments.json:
        print(json.dumps(_plain(report), ensure_ascii=False))
    else:
        show(report, Console())
    return 1 if report.findings else 0


def check(settings: PoolSettings, run: Path | None, on_painted: Any = lambda done, total: None) -> Report:
    """Everything that can be said of a pool; with `run` (its folder) of its difficulty, too. Raises UserError."""
    if settings.source != "embedded" and not Path(settings.source).expanduser().is_dir():
        raise UserError(f"{settings.source}: no such folder")
    folder, entries, findings, notes = read_pool(settings)
    for tier in TIERS:
        count = sum(entry.tier == tier for entry in entries)
        if count < NEEDED:
            text = f"tier {tier} holds {count}; a step with four references needs {NEEDED}"
            findings.append(Finding("format", METADATA, text))
    pictures = _pictures(settings, entries, findings, notes, on_painted)
    findings += licences(entries)
    covered, more = coverages(entries, pictures)
    findings += more + duplicates(pictures)
    score, scores = _scores(entries, pictures)
    notes += _disagreement(entries, scores, score)
    difficulty = difficulties(entries, run, str(folder)) if run is not None else []
    low, high = (f"{100 * share:.0f}" for share in USEFUL)
    findings += [
        Finding(
            "difficulty",
            one.name,
            f"{one.verdict} for this run: expected to be beaten {100 * one.win_rate:.0f}% of the time at its last "
            f"step ({one.won:g} of {one.comparisons} so far); useful is {low}-{high}%",
        )
        for one in difficulty
        if one.comparisons and one.verdict != "useful"
    ]
    tiers = [_tier_row(tier, entries, covered, scores, difficulty) for tier in TIERS]
    return Report(findings, notes, tiers, score, difficulty)


def _pictures(
    settings: PoolSettings, entries: Sequence[Entry], findings: Sequence[Finding], notes: list[str], on_painted: Any
) -> dict[str, bytes]:
    """PNG of each entry by name; what has only a sketch is painted, unless the pool could not be loaded anyway."""
    pictures = {entry.name: entry.png for entry in entries if entry.png is not None}
    missing = len(entries) - len(pictures)
    if not missing:
        return pictures
    if any(finding.kind == "format" for finding in findings):
        notes.append(f"without an image, and not looked at: {missing}; mend the format first")
        return pictures
    notes.append(f"without an image: {missing}; they are painted from their sketch when the pool is loaded")
    with Farm(RenderSettings()) as farm:
        pool = paint_pool(settings, farm, on_painted)
    return {reference.name: reference.png for reference in pool.references}


def _scores(entries: Sequence[Entry], pictures: Mapping[str, bytes]) -> tuple[str, dict[str, float]]:
    """(what the score is, score by name): hpsv3_mu where every painting has it, else that of the local stand-in."""
    mu = {entry.name: entry.meta.get("hpsv3_mu") for entry in entries}
    if mu and all(isinstance(value, int | float) for value in mu.values()):
        return "hpsv3_mu", {name: float(value) for name, value in mu.items() if value is not None}
    loved = [entry for entry in entries if entry.name in pictures]
    if any(sum(entry.tier == tier for entry in loved) < NEEDED for tier in TIERS):
        return "", {}
    references = tuple(Reference(entry.name, entry.tier, pictures[entry.name]) for entry in loved)
    stand_in = PreferenceStandIn(Study(Pool(references, "")))
    values = {reference.name: stand_in.look(reference.png).value for reference in references}
    return "stand-in preference", {name: value for name, value in values.items() if value is not None}


def _disagreement(entries: Sequence[Entry], scores: Mapping[str, float], score: str) -> list[str]:
    of = {
        tier: [scores[entry.name] for entry in entries if entry.tier == tier and entry.name in scores] for tier in TIERS
    }
    ordered = auc(of["love"], of["okay"])
    if ordered is None:
        return []
    text = f"{score}: a loved painting scores above an okay one in {100 * ordered:.0f}% of the pairs"
    return [text + ("; this score and these ratings disagree" if ordered < DISAGREE else "")]


def difficulties(entries: Sequence[Entry], run: Path, origin: str) -> list[Difficulty]:
    """How hard each reference is for a run's policy. Raises UserError where the run cannot say."""
    path = run / "rollouts.jsonl"
    if not path.is_file():
        raise UserError(f"{run} is not the folder of a run: it has no rollouts.jsonl")
    names = {entry.name: entry.tier for entry in entries}
    strengths = Strengths(Pool(tuple(Reference(name, tier, b"") for name, tier in names.items()), origin))
    won: dict[str, list[float]] = {name: [] for name in names}
    last, drawn = 0, 0
    for record in read_lines(path):
        info = ((record.get("terms_info") or {}).get("judge") or {}).get("won") or {}
        known = {name: float(value) for name, value in info.items() if name in names}
        drawn += len(info)
        if known:
            last = max(last, int(record["step"]))
            strengths.add(int(record["step"]), [known])
        for name, value in known.items():
            won[name].append(value)
    if not last:
        reason = "its references are not in this pool" if drawn else "it holds no comparison with a reference"
        raise UserError(f"{path}: {reason}")
    fit = strengths.fit()
    found = [
        Difficulty(name, tier, round(sum(won[name]), 3), len(won[name]), fit.win_rate(name, last))
        for name, tier in names.items()
    ]
    return sorted(found, key=lambda one: one.win_rate)


def _tier_row(
    tier: str,
    entries: Sequence[Entry],
    covered: Mapping[str, float],
    scores: Mapping[str, float],
    difficulty: Sequence[Difficulty],
) -> dict[str, Any]:
    names = [entry.name for entry in entries if entry.tier == tier]
    coverage = [covered[name] for name in names if name in covered]
    score = [scores[name] for name in names if name in scores]
    row: dict[str, Any] = {
        "tier": tier,
        "paintings": len(names),
        "coverage": [min(coverage), statistics.median(coverage), max(coverage)] if coverage else None,
        "score": [statistics.fmean(score), statistics.pstdev(score)] if score else None,
    }
    if difficulty:
        own = [one.verdict for one in difficulty if one.tier == tier]
        row |= {verdict: own.count(verdict) for verdict in ("too hard", "useful", "too easy")}
    return row


def show(report: Report, console: Console) -> None:
    """Findings, then what is good to know."""
    for finding in report.findings:
        console.print(f"{finding.kind}: {finding.where}: {finding.text}", markup=False, highlight=False, soft_wrap=True)
    table = Table(title="Tiers", title_justify="left")
    for column in ("tier", "paintings", "coverage: least, median, most", f"{report.score or 'score'}: mean, deviation"):
        table.add_column(column, justify="left" if column == "tier" else "right")
    verdicts = ("too hard", "useful", "too easy") if report.difficulty else ()
    for verdict in verdicts:
        table.add_column(verdict, justify="right")
    for row in report.tiers:
        numbers = (" ".join(f"{value:.3f}" for value in row[key]) if row[key] else "-" for key in ("coverage", "score"))
        table.add_row(row["tier"], str(row["paintings"]), *numbers, *(str(row[verdict]) for verdict in verdicts))
    console.print(table)
    for note in report.notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    count = len(report.findings)
    console.print(f"{count} finding{'s' * (count != 1)}" if count else "nothing found", highlight=False)


def _plain(report: Report) -> dict[str, Any]:
    return {
        **asdict(report),
        "difficulty": [{**asdict(one), "verdict": one.verdict} for one in report.difficulty],
    }
