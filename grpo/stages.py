"""Progress of what comes before the first step: a bar in a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 10.0


class Stages:
    """A context manager; `show(name, done, total, text)` may be called from any thread, as often as one likes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._tasks: dict[str, TaskID] = {}
        self._shown: dict[str, float] = {}
        columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, TextColumn("{task.fields[text]}"), console=console)

    def __enter__(self) -> Stages:
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def show(self, name: str, done: int, total: int, text: str = "") -> None:
        """Stage `name` has done `done` of `total`; the last call of a stage has done == total."""
        if self.console.is_terminal:
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=total, text="")
            self._progress.update(self._tasks[name], completed=done, total=total, text=text)
            return
        now = time.monotonic()
        if done >= total or now - self._shown.get(name, float("-inf")) >= LINE_EVERY_S:
            self._shown[name] = now
            line = f"{name}: {done} of {total}" + (f"  {text}" if text else "")
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
