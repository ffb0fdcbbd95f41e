"""All chains of a workshop at once: what is left of them, and walking them in threads while a person watches."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from render.errors import UserError
from reward.faults import Fault
from reward.pool.chain import Chain, PaintingLost, Studio, steps
from reward.pool.models import Conversation, Model, Reply


class _Unknown(Exception):
    """What comes next is not on the disk yet."""


def calls_left(chain: Chain, studio: Studio) -> int:
    """Calls that a chain still needs, at most: what is on the disk is walked through."""
    asked = 0

    def known(model: Model, conversation: Conversation, index: int) -> Reply:
        nonlocal asked
        reply = studio.calls.known(model, conversation, index)
        if reply is None:
            raise _Unknown
        asked += 1
        return reply

    taken = 0
    try:
        for calls, _ in steps(chain, studio, known, _not_painted):
            taken, asked = taken + calls, 0
    except _Unknown:
        pass
    return studio.calls_of_a_chain - taken - asked


def finished(chain: Chain, studio: Studio) -> bool:
    """Whether every answer of a chain, whose calls are all done, has been painted."""
    try:
        list(steps(chain, studio, studio.calls.ask, _not_painted))
    except _Unknown:
        return False
    return True


def _not_painted(*_: object) -> dict[str, Any]:
    raise _Unknown


def work(chains: list[Chain], studio: Studio, concurrency: int, console: Console) -> Counter[str]:
    """Walk all chains in threads; why some did not reach their end. A mistake or a dead farm ends all of them."""
    waiting: queue.SimpleQueue[Chain] = queue.SimpleQueue()
    found: queue.SimpleQueue[tuple[int, dict[str, Any] | None, BaseException | None]] = queue.SimpleQueue()
    for chain in chains:
        waiting.put(chain)

    def walk() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                chain, taken = waiting.get_nowait(), 0
                error: BaseException | None = None
                try:
                    for calls, record in steps(chain, studio, studio.calls.ask, studio.candidates.made):
                        taken += calls
                        found.put((calls, record, None))
                # Whatever it is, the thread that shows it decides.
                except BaseException as raised:  # noqa: BLE001
                    error = raised
                found.put((studio.calls_of_a_chain - taken, None, error))

    # Daemons: a call that hangs until its timeout must not make Ctrl-C wait for it.
    for _ in range(min(concurrency, len(chains))):
        threading.Thread(target=walk, name="chain", daemon=True).start()
    causes: Counter[str] = Counter()
    known = set(studio.candidates.records)
    with _bar(console, len(chains) * studio.calls_of_a_chain) as (progress, advance):
        ended = 0
        while ended < len(chains):
            calls, record, error = found.get()
            advance(calls)
            if record is not None:
                if record["name"] not in known:
                    progress.console.print(describe(record), markup=False, highlight=False, soft_wrap=True)
                continue
            ended += 1
            if isinstance(error, Fault | PaintingLost):
                cause = f"{error.kind}: {error.text}" if isinstance(error, Fault) else str(error)
                causes[cause] += 1
                progress.console.print(f"not done: {cause}", markup=False, highlight=False, soft_wrap=True)
            elif isinstance(error, OSError):
                raise UserError(f"{studio.candidates.folder}: cannot be written: {error.strerror}") from error
            elif error is not None:
                raise error
    return causes


@contextlib.contextmanager
def _bar(console: Console, total: int) -> Iterator[tuple[Progress, Callable[[int], None]]]:
    columns = (TextColumn("calls"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("calls", total=total)
        yield progress, lambda calls: progress.advance(task, calls)


def describe(record: dict[str, Any]) -> str:
    """One line about a candidate for a person."""
    who = record["generator_model"]
    if record["outcome"] == "painted":
        stopped = f", stopped early: {record['gate_errors'][0]}" if record["gate_errors"] else ""
        return (
            f"{record['name']}: painted by {who}, {record['shapes']} shapes, "
            f"coverage {record['paint_coverage']:.3f}{stopped}"
        )
    return f"{record['name']}: rejected, by {who}: {record['gate_errors'][0]}"
