"""A few threads that ask the judge. Unlike the pool of concurrent.futures they do not hold up the end of the program:
a call that hangs until its timeout must not make Ctrl-C wait for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any


class Workers:
    """Runs tasks in at most `count` threads, in the order in which they came."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.threads: list[threading.Thread] = []
        self.open: set[Future[Any]] = set()
        self.closed_by: BaseException | None = None

    def submit(self, task: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self.lock:
            if self.closed_by is not None:
                raise self.closed_by
            self.open.add(future)
            if len(self.threads) < min(self.count, len(self.open)):
                self.threads.append(threading.Thread(target=self._work, name="judge", daemon=True))
                self.threads[-1].start()
        self.tasks.put((future, task))
        return future

    def _work(self) -> None:
        while (entry := self.tasks.get()) is not None:
            future, task = entry
            if future.done():  # closed
                continue
            try:
                result, error = task(), None
            # Whatever a task raises belongs to the one who waits for its future.
            except BaseException as raised:  # noqa: BLE001
                result, error = None, raised
            with self.lock:
                self.open.discard(future)
            with suppress(InvalidStateError):  # closed meanwhile
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(result)

    def close(self, reason: BaseException) -> None:
        """Every task that is not done ends with `reason`, and so does every later one. What runs is left alone."""
        with self.lock:
            self.closed_by = reason
            pending = list(self.open)
            self.open.clear()
            threads = len(self.threads)
        for future in pending:
            with suppress(InvalidStateError):  # done meanwhile
                future.set_exception(reason)
        for _ in range(threads):
            self.tasks.put(None)
