"""From the journal to what a person reads: tables, CSV, the chart; and the facts of results.json."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.chart import draw_chart
from bench.compare import Difference, difference
from bench.environment import load_average, page_fingerprint
from bench.journal import Journal
from bench.summary import STOCK, determinism, last_line, seed_median, seeds_of, split, subject, timings
from render.pixels import decode


def compare_with_stock(journal: Journal) -> dict[tuple[str, str], Difference]:
    """Each (profile, sketch) that stock has painted too, against stock's picture."""
    return {
        (profile, sketch): difference(decode(png), decode(journal.pictures[STOCK, sketch]))
        for (profile, sketch), png in journal.pictures.items()
        if profile != STOCK and (STOCK, sketch) in journal.pictures
    }


def conclude(journal: Journal, profiles: Sequence[str]) -> str:
    """Work out what the paintings so far say, write results.json, the CSV files and the chart; the last line."""
    samples = journal.samples
    differences = compare_with_stock(journal)
    rows = timings(samples)
    line = last_line(samples, differences, profiles)
    name = subject(profiles)
    both = seeds_of(samples, name) & seeds_of(samples, STOCK)
    stages = ["warm", *dict.fromkeys(s.stage for s in samples if s.stage.startswith("workers="))]
    journal.facts |= {
        "load_average_at_the_end": load_average(),
        "page_changed": page_fingerprint() != journal.facts["environment"]["page"],
        "timings": rows,
        "split": {profile: {stage: split(samples, profile, stage) for stage in stages} for profile in profiles},
        "differences": [{"profile": key[0], "sketch": key[1], **asdict(found)} for key, found in differences.items()],
        "determinism": {profile: determinism(samples, profile) for profile in profiles},
        "speedup": {
            "sketches": sorted(both),
            "medians_s": {profile: seed_median(samples, profile, both) for profile in (STOCK, name)},
        },
    }
    journal.note("line", line)
    _write_csv(journal, "timings.csv", rows)
    _write_csv(journal, "differences.csv", journal.facts["differences"])
    bars = {(row["profile"], row["sketch"]): row["p50"] for row in rows if row["stage"] == "warm"}
    if bars:
        machine = journal.facts["environment"]
        note = f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_average'][0]:g} at the start"
        draw_chart(journal.folder / "seconds.png", bars, profiles, "p5.brush in headless Chromium", note)
    return line


def _write_csv(journal: Journal, name: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        with (journal.folder / name).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def print_tables(console: Console, journal: Journal, profiles: Sequence[str]) -> None:
    """Everything that `conclude` has worked out, for a person."""
    facts = journal.facts
    machine = facts["environment"]
    console.print(
        f"{machine['cpu']}, {machine['cores']} cores, kernel {machine['kernel']}, p5 {machine['p5']}, "
        f"p5.brush {machine['p5.brush']}; load average {machine['load_average'][0]:g} at the start, "
        f"{facts['load_average_at_the_end'][0]:g} at the end",
        markup=False,
        highlight=False,
    )
    if facts["page_changed"]:
        console.print("the page's files were changed during the run: its results do not belong together")
    for name, seen in facts.get("profiles", {}).items():
        patches = ", ".join(seen["patches"]) or "none"
        warning = f"; {seen['warning']}" if seen.get("warning") else ""
        console.print(
            f"{name}: patches {patches}; Chromium {seen.get('version', '?')}, {seen.get('renderer', '?')}{warning}",
            markup=False,
            highlight=False,
        )
    for stage in dict.fromkeys(row["stage"] for row in facts["timings"]):
        if stage != "warm-up":
            console.print(_timings(facts["timings"], stage))
    console.print(_split(facts["split"]))
    if facts["differences"]:
        console.print(_differences(facts["differences"]))
    console.print(_determinism(facts["determinism"]))
    for profile, rates in facts.get("pictures_a_minute", {}).items():
        console.print(_rates(profile, rates))
    if "endurance" in facts:
        console.print(_endurance(facts["endurance"]))


def _table(title: str, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    table = Table(title=title, title_justify="left")
    for position, head in enumerate(heads):
        table.add_column(head, justify="right" if position else "left")
    for row in rows:
        table.add_row(*(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row))
    return table


def _timings(rows: Sequence[dict[str, Any]], stage: str) -> Table:
    return _table(
        f"Seconds a painting, {stage}",
        ("sketch", "profile", "paintings", "p50", "p95", "max", "CPU s, p50"),
        sorted(
            (row["sketch"], row["profile"], row["n"], row["p50"], row["p95"], row["max"], row["cpu_p50"])
            for row in rows
            if row["stage"] == stage
        ),
    )


def _split(splits: dict[str, dict[str, dict[str, dict[str, float]]]]) -> Table:
    words = {"wall_s": "wall", "cpu_s": "CPU"}
    rows = [
        (profile, stage, words[kind], ", ".join(f"{name} {seconds:.3f}" for name, seconds in parts.items()))
        for profile, stages in splits.items()
        for stage, both in stages.items()
        for kind, parts in both.items()
        if len(parts) > 1
    ]
    table = _table(
        "Where the time goes: median seconds, seed-like sketches (all, where there is none)",
        ("profile", "stage", "", "parts"),
        rows,
    )
    table.columns[-1].justify = "left"
    return table


def _differences(rows: Sequence[dict[str, Any]]) -> Table:
    return _table(
        "Against stock, levels of 255",
        ("sketch", "profile", "mean |d|", "max |d|", "mean d", "SSIM", "coverage", "stock", "error"),
        sorted(
            (
                row["sketch"],
                row["profile"],
                f"{row['mad']:.3f}",
                row["maximum"],
                f"{row['bias']:+.3f}",
                f"{row['ssim']:.4f}",
                f"{row['coverage']:.4f}",
                f"{row['reference_coverage']:.4f}",
                f"{100 * row['coverage_error']:.2f} %",
            )
            for row in rows
        ),
    )


def _determinism(found: dict[str, dict[str, Any]]) -> Table:
    words = {True: "yes", False: "no", None: "not repeated"}
    return _table(
        "The same bytes every time",
        ("profile", "identical", "sketches repeated", "paintings", "different"),
        (
            (
                profile,
                words[verdict["identical"]],
                verdict["repeated"],
                ", ".join(f"{count} {stage}" for stage, count in verdict["stages"].items()),
                ", ".join(verdict["different"]) or "-",
            )
            for profile, verdict in found.items()
        ),
    )


def _rates(profile: str, rates: dict[str, float]) -> Table:
    one = rates.get("1", math.nan)
    return _table(
        f"Pictures a minute through a farm, {profile}",
        ("workers", "pictures a minute", "times one worker"),
        ((workers, f"{rate:.1f}", rate / one) for workers, rate in rates.items()),
    )


def _endurance(facts: dict[str, Any]) -> Table:
    counted = ", ".join(f"{name} {count}" for name, count in facts["counters"].items())
    return _table(
        f"{facts['renders']} paintings in one farm of {facts['workers']}, {facts['profile']}",
        ("what", "found"),
        (
            ("memory of a worker's browser, MiB: first tenth", f"{facts['first_mb']:.0f}"),
            ("tenth in the middle", f"{facts['middle_mb']:.0f}"),
            ("last tenth", f"{facts['last_mb']:.0f} ({facts['growth_mb']:+.0f})"),
            ("peak (mark for recycling)", f"{facts['peak_mb']:.0f} ({facts['recycle_mb']})"),
            ("jobs lost", len(facts["lost"])),
            ("pictures with other bytes", len(facts["wrong"])),
            ("processes left behind", facts["orphans"]),
            ("farm", counted),
        ),
    )
