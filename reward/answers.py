"""The judge's answers on disk: one SQLite file, so that a run that is started again pays nothing twice.

The key is a sha256 over everything that an answer depends on (reward.judge builds it); the value is the answer, whole.
Safe for several threads (one connection behind a lock) and several processes (write-ahead log, patient locks).
Left out: any eviction. A run of a hundred steps leaves some megabytes.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from render.errors import UserError
from reward.verdict import Answer

PATIENCE_S = 30.0  # for another process that is writing


class AnswerStore:
    """Answers by key. Raises UserError, naming the file, where it cannot be read or written or is no such cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        with self._named_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self.connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)")
            (state,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise sqlite3.DatabaseError(str(state).splitlines()[0])

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"the judge's cache {self.path} cannot be used ({error}); move it away, or name another with "
                "[reward.vlm] cache (what it holds will be asked and paid again)"
            ) from error

    def get(self, key: str) -> Answer | None:
        with self._named_errors(), self.lock:
            row = self.connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return Answer(**json.loads(row[0])) if row else None

    def put(self, key: str, answer: Answer) -> None:
        """Keep the answer; the first one that was kept under a key stays."""
        text = json.dumps(dataclasses.asdict(answer))
        with self._named_errors(), self.lock:
            self.connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, text))

    def close(self) -> None:
        with self.lock:
            self.connection.close()
