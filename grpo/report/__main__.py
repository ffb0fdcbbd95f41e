"""python -m grpo.report RUN... [-o FOLDER] [--json]

Says what a run, or several, came to: in the terminal, and as report.md with overview.png in RUN/report (or FOLDER).
Of several it prints a table with a column each, and writes comparison.md and comparison.png into the first one's
report folder (or FOLDER), with everything about each of them below the table.

RUN is a run folder, or a metrics.csv with TRL's columns that some other trainer wrote: published curves lie beside
ours, and what a file cannot say is shown as "not in this file". The formulas stand in grpo.report.numbers (thirds,
trend, where a rise came from), grpo.report.diversity (distances) and grpo.report.draw (luck of the draw).

The paintings are measured once; an interrupted report goes on where it stopped. --json prints every number.
Exit codes: 0 done, 2 a mistake (one line says what), 130 stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from grpo.folder import write_error
from grpo.report.analysis import analyse
from grpo.report.comparison import comparison, names
from grpo.report.diversity import feature_distances, look
from grpo.report.draw import draws
from grpo.report.picture import overview, side_by_side
from grpo.report.source import Source, load
from grpo.report.tables import ABSENT, Found, Table, each_step, tables
from grpo.stages import Stages
from render.disk import write_whole
from render.errors import UserError, exit_code


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grpo.report", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run folder, or a metrics.csv")
    parser.add_argument("-o", dest="folder", type=Path, metavar="FOLDER", help="default: the (first) run's report/")
    parser.add_argument("--json", action="store_true", help="print every number as JSON instead of tables")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: work(arguments), "stopped; what was measured is kept, the same command goes on")


def work(arguments: argparse.Namespace) -> int:
    if len({path.resolve() for path in arguments.runs}) < len(arguments.runs):
        raise UserError("the same run twice: nothing to compare")
    sources = [load(path) for path in arguments.runs]
    folder: Path = arguments.folder or report_folder(sources[0])
    progress = Console(stderr=True)
    with Stages(progress) as stages:
        found = report(sources, arguments.folder, stages)
    written = write(sources, found, folder)
    if arguments.json:
        print(json.dumps({"runs": found}, ensure_ascii=False, indent=1, allow_nan=False))
        return 0
    console = Console()
    shown = tables(found[0]) if len(found) == 1 else [comparison(found)]
    for run in found:
        _say(console, headline(run))
        for note in run["notes"]:
            _say(console, f"  {note}")
    for table in shown:
        console.print(_rich(table))
        for note in table.notes:
            console.print(Text(note, style="dim"))
        console.print()
    _say(console, "written: " + ", ".join(map(str, written)))
    return 0


def report(sources: Sequence[Source], folder: Path | None, stages: Stages) -> list[Found]:
    """The numbers of each run. What is measured of its paintings is kept in its report folder, or in `folder`."""

    def cache(source: Source) -> Path:
        return report_folder(source) / "features.jsonl" if folder is None else folder / f"features_{source.name}.jsonl"

    looks = [look(source, cache(source), partial(stages.show, f"paintings of {source.name}")) for source in sources]
    return [
        analyse(source, draws(source), distances, seen.colours if seen else {})
        for source, distances, seen in zip(sources, feature_distances(looks), looks, strict=True)
    ]


def report_folder(source: Source) -> Path:
    """RUN/report; of a table alone a folder beside it."""
    return (
        source.folder / "report" if source.folder is not None else source.path.with_name(f"{source.path.stem}_report")
    )


def write(sources: Sequence[Source], found: Sequence[Found], folder: Path) -> list[Path]:
    """Markdown and picture. Returns their paths. Raises UserError when the disk refuses."""
    if len(found) == 1:
        text, picture = folder / "report.md", folder / "overview.png"
        overview(sources[0], found[0]).save(picture)
        lines = [f"# Report of {found[0]['name']}", "", *_markdown_run(found[0], picture.name)]
    else:
        text, picture = folder / "comparison.md", folder / "comparison.png"
        side_by_side(sources, found, names(found)).save(picture)
        lines = ["# Side by side", "", *(f"- {headline(run)}" for run in found), ""]
        lines += [f"![side by side]({picture.name})", "", *_markdown(comparison(found))]
        for name, run in zip(names(found), found, strict=True):
            lines += [f"# {name}", "", *_markdown_run(run, "")]
    try:
        write_whole(text, ("\n".join(lines).rstrip() + "\n").encode())
    except OSError as error:
        raise write_error(text, error) from error
    return [text, picture]


def headline(run: Found) -> str:
    """One line: what it is."""
    rollouts = "" if run["rollouts"] is None else f", {run['rollouts']} rollouts"
    return f"{run['name']}: steps {run['first_step']} to {run['last_step']} ({run['steps']}){rollouts}, {run['path']}"


def _markdown_run(run: Found, picture: str) -> list[str]:
    lines = [headline(run), "", *(f"- {note}" for note in run["notes"])]
    lines += [""] if run["notes"] else []
    lines += [f"![overview]({picture})", ""] if picture else []
    for table in tables(run):
        lines += _markdown(table)
    steps = each_step(run)
    return [*lines, "<details><summary>Each step</summary>", "", *_pipes(steps), "", "</details>", ""]


def _markdown(table: Table) -> list[str]:
    notes = [line for note in table.notes for line in (_escaped(note), "")]
    return [f"## {table.title}", "", *_pipes(table), "", *notes]


def _pipes(table: Table) -> list[str]:
    rows = [("", *table.head), *table.rows]
    lines = ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
    return [lines[0], "|---" + "|---:" * len(table.head) + "|", *lines[1:]]


def _escaped(cell: str) -> str:
    """No cell may end its column or become a tag."""
    indent = "&nbsp;&nbsp;" if cell.startswith("  ") else ""
    return indent + cell.strip().replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _rich(table: Table) -> RichTable:
    shown = RichTable(title=table.title, title_justify="left")
    shown.add_column("", overflow="fold")
    for name in table.head:
        shown.add_column(name, justify="right", overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(cell, style="dim" if cell == ABSENT else "") for cell in row))
    return shown


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
