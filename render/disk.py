"""Files that several processes share: a lock between them, and writes that are whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """An exclusive lock between processes; the kernel lifts it when its holder ends, however it ends."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def lock_at_once(handle: int | IO[str]) -> bool:
    """An exclusive lock on an open file, lifted when it is closed; False, without waiting, where another has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or as it was, whatever happens. One writer at a time (see `locked`)."""
    temporary = path.with_name(path.name + ".part")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
