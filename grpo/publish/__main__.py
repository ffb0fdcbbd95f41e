"""python -m grpo.publish RUN --to OWNER/NAME [--step N] [--private] [--dry-run] [--yes] [--replace]

Puts a run on the Hugging Face Hub: the adapter with a model card, curves and contact sheets as OWNER/NAME, every
rollout with its painting as the dataset OWNER/NAME-rollouts. First it says what would go up and how big it is, and asks
where somebody sits at the terminal. What is there already is not sent again: killed at any moment and started again, it
goes on where it was; after more steps it adds what is new.

A repository that holds another run, or something else, is refused; --replace puts this run in its place. What goes up
is said in grpo.publish.files, what never does in grpo.publish.secrets. Exit codes: 0 done, 2 a mistake or something
missing (one line says what), 3 the Hub could not be reached or did not take it, 130 stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from grpo.background import NICENESS
from grpo.publish.files import MARKER, OWN, PLACE, Item, Publication, Repository, collect
from grpo.publish.settings import check_name
from render.disk import lock_at_once
from render.errors import ConfigError, UserError, exit_code, say_error
from render.processes import die_with_parent

if TYPE_CHECKING:
    from grpo.publish.hub import Hub

FILES, BYTES = 200, 512 << 20  # of one commit, at most, unless one step has more
FRESH = (".gitattributes", "README.md")  # what a new repository may hold


@dataclass(frozen=True)
class Work:
    """What is to be done for a repository: whether to create it, commits of files, paths to remove."""

    repository: Repository
    new: bool
    commits: tuple[tuple[Item, ...], ...]
    removals: tuple[str, ...]

    @property
    def items(self) -> list[Item]:
        return [item for commit in self.commits for item in commit]

    @property
    def idle(self) -> bool:
        return not (self.new or self.commits or self.removals)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grpo.publish", description=__doc__.split("\n\n")[1])
    parser.add_argument("run", type=Path, help="a run folder, for instance runs/laptop")
    parser.add_argument("--to", required=True, metavar="OWNER/NAME", help="repository on the Hub")
    parser.add_argument("--step", type=int, help="checkpoint whose adapter goes up (default: the newest)")
    parser.add_argument("--private", action="store_true", help="repositories that are new are private")
    parser.add_argument("--dry-run", action="store_true", help="say what would go up; no network")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--replace", action="store_true", help="put this run where another one is")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)  # grpo.publish.background: end when it ends
    arguments = parser.parse_args(argv)
    if arguments.parent:
        die_with_parent(arguments.parent)
        os.nice(NICENESS)
    return exit_code(lambda: publish(arguments), "stopped; the same command goes on from here")


def publish(arguments: argparse.Namespace) -> int:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    try:
        check_name(arguments.to)
    except ConfigError as error:
        raise UserError(f"--to: {error}") from None
    if arguments.dry_run:
        console.print(
            "\n".join(describe(collect(arguments.run, arguments.to, arguments.step, False), arguments.private))
        )
        console.print("dry run: nothing was sent, and the Hub was not asked what is there")
        return 0
    from grpo.publish.hub import Hub, HubLost

    hub = Hub(console.print)
    try:
        with alone(arguments.run):
            return _publish(arguments, hub, console)
    except HubLost as error:
        say_error(error)
        return 3


def _publish(arguments: argparse.Namespace, hub: Hub, console: Console) -> int:
    publication = collect(arguments.run, arguments.to, arguments.step, True)
    console.print("\n".join(describe(publication, arguments.private)))
    works = [plan(one, hub, arguments.replace) for one in (publication.model, publication.dataset)]
    for work in works:
        console.print(_to_do(work))
    if all(work.idle for work in works):
        console.print("everything is there already")
        return 0
    if not arguments.yes and sys.stdin.isatty() and not _agreed(console):
        console.print("nothing was sent")
        return 0
    with bar(console, sum(item.size for work in works for item in work.items)) as sent:
        for work in works:
            carry_out(work, hub, arguments.private, sent, console.print)
    for one in (publication.model, publication.dataset):
        console.print(f"published: {address(one)}")
    return 0


# --- what is to be done ---------------------------------------------------------------------------------------------


def plan(repository: Repository, hub: Hub, replace: bool) -> Work:
    """What the Hub lacks of a repository. Raises UserError where it holds something else and replace is off."""
    there = hub.listing(repository.kind, repository.name)
    found = there or {}
    items = {item.path: item for item in repository.items}
    if not items[MARKER].is_there(found.get(MARKER)) and set(found) - set(FRESH) and not replace:
        what = "another run" if MARKER in found else "something else"
        raise UserError(f"{repository.name}: this {repository.kind} holds {what}; take another name, or --replace it")
    missing = [tuple(item for item in part if not item.is_there(found.get(item.path))) for part in repository.parts]
    ours = (path for path in found if path != ".gitattributes" and (replace or path.startswith(OWN)))
    removals = tuple(sorted(path for path in ours if path not in items))
    return Work(repository, there is None, tuple(_commits(missing)), removals)


def _commits(parts: list[tuple[Item, ...]]) -> Iterator[tuple[Item, ...]]:
    """Parts put together until a commit is full; a part stays whole."""
    commit: list[Item] = []
    size = 0
    for part in parts:
        more = sum(item.size for item in part)
        if commit and (len(commit) + len(part) > FILES or size + more > BYTES):
            yield tuple(commit)
            commit, size = [], 0
        commit.extend(part)
        size += more
    if commit:
        yield tuple(commit)


def carry_out(work: Work, hub: Hub, private: bool, sent: Callable[[int], None], say: Callable[[str], None]) -> None:
    """Create what is new, send what is missing, commit by commit, and remove what is ours and gone in the last one."""
    kind, name = work.repository.kind, work.repository.name
    if work.new:
        hub.create(kind, name, private)
    commits = list(work.commits) or ([()] if work.removals else [])
    for number, items in enumerate(commits, 1):
        removals = work.removals if number == len(commits) else ()
        message = f"{_files(len(items))}, part {number} of {len(commits)}"
        hub.commit(kind, name, items, removals, message, sent)
        say(f"{name}: {message}, {_size(items)}")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One publishing of a run at a time. Raises UserError where another one goes on."""
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    (folder / PLACE).mkdir(exist_ok=True)
    with (folder / PLACE / "lock").open("a") as handle:
        if not lock_at_once(handle):
            raise UserError(f"{folder}: is being published already, by the run itself or by hand")
        yield


# --- what a person sees ---------------------------------------------------------------------------------------------


def describe(publication: Publication, private: bool) -> list[str]:
    """What goes up, as lines: the same for the same run."""
    lines = []
    for repository in (publication.model, publication.dataset):
        lines.append(f"{repository.kind} {repository.name} ({'private' if private else 'public'} where it is new)")
        rows = {item.path: _size([item]) for item in repository.items if not item.path.startswith("rollouts/")}
        if repository is publication.dataset and publication.steps:
            first, last = publication.steps[0], publication.steps[-1]
            paths = [item for item in repository.items if item.path.startswith("rollouts/")]
            what = f"{publication.rollouts:,} rollouts, {publication.painted:,} paintings"
            rows = {f"rollouts/step_{first:04d} to step_{last:04d}": f"{_size(paths)}, {what}", **rows}
        width = max(map(len, rows))
        lines += [f"  {path:<{width}}  {about}" for path, about in rows.items()]
    everything = [*publication.model.items, *publication.dataset.items]
    lines.append(f"adapter of step {publication.step}; in all {_files(len(everything))}, {_size(everything)}")
    return lines


def _to_do(work: Work) -> str:
    items, repository = work.items, work.repository
    there = len(repository.items) - len(items)
    state = "is new" if work.new else f"has {_files(there)} already"
    gone = f", to remove: {_files(len(work.removals))}" if work.removals else ""
    send = f"{_files(len(items))}, {_size(items)}" if items else "nothing"
    return f"{repository.kind} {repository.name} {state}; to send: {send}{gone}"


def address(repository: Repository) -> str:
    """Where a browser finds it."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    return f"{endpoint}/{'datasets/' if repository.kind == 'dataset' else ''}{repository.name}"


def _agreed(console: Console) -> bool:
    try:
        return console.input("send it? [y/N] ", markup=False).strip().lower() in ("y", "yes")
    except EOFError:
        return False


@contextmanager
def bar(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar over the bytes to send, on a terminal alone."""
    columns: list[Any] = [TextColumn("sending"), BarColumn(), DownloadColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _size(items: list[Item] | tuple[Item, ...]) -> str:
    """Bytes of these files together, in the units of the Hub: 1 MB = 1,000,000 bytes."""
    size = float(sum(item.size for item in items))
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


if __name__ == "__main__":
    sys.exit(main())
