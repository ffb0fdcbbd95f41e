"""How far the benchmark is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich import progress as bars
from rich.console import Console


class Progress:
    """Reports to standard error, which leaves standard output to the tables and the last line."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        """One line about what goes on."""
        self._console.print(line, markup=False, highlight=False)

    @contextlib.contextmanager
    def stage(self, name: str, total: float) -> Iterator[Callable[[float, str], None]]:
        """A bar over `total` seconds or paintings; the yielded function moves it on and says what was done."""
        columns = (
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.TaskProgressColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("left"),
            bars.TimeRemainingColumn(),
        )
        began = time.monotonic()
        if not self._console.is_terminal:
            self.say(f"{name} ...")
        with bars.Progress(
            *columns, console=self._console, transient=True, disable=not self._console.is_terminal
        ) as progress:
            task = progress.add_task(name, total=total)
            yield lambda amount, what: progress.update(task, advance=amount, description=f"{name}: {what}"[:60])
        self.say(f"{name}: done in {time.monotonic() - began:.0f} s")
