"""Processes of this machine, told apart beyond doubt: find and end those that the farm started (Linux).

A process is named by its pid together with the clock tick at which it started (`/proc/PID/stat`, field 22), so that a
pid that the system has given to somebody else is never signalled. Nothing is ever looked up by a program's name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
TICKS = float(os.sysconf("SC_CLK_TCK"))
DEATH_S = 2.0  # a process with much memory takes a while to die; one that waits for a disk may not die at all


class Identity(NamedTuple):
    """One process: its pid and the clock tick, counted from boot, at which it started."""

    pid: int
    started: int


class _Stat(NamedTuple):
    state: str
    parent: int
    session: int
    ticks: int
    started: int


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The program's name stands in brackets and may hold blanks and brackets itself: cut behind the last one.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(fields[0], int(fields[1]), int(fields[3]), sum(map(int, fields[11:15])), int(fields[19]))


def identify(pids: Iterable[int]) -> frozenset[Identity]:
    """Identities of those of `pids` that exist now."""
    return frozenset(Identity(pid, stat.started) for pid in pids if (stat := _stat(pid)))


def alive(identities: Iterable[Identity]) -> list[Identity]:
    """Those of `identities` that still run; a zombie does not run."""
    found = []
    for identity in identities:
        stat = _stat(identity.pid)
        if stat and stat.started == identity.started and stat.state not in "ZX":
            found.append(identity)
    return found


def stopped(pids: Iterable[int]) -> bool:
    """Whether any of `pids` has been stopped by a signal (SIGSTOP) or a debugger."""
    return any((stat := _stat(pid)) and stat.state in "Tt" for pid in pids)


def command_line(pid: int) -> bytes:
    """Arguments of a process, each ended by a zero byte; empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def usage(pids: Iterable[int]) -> tuple[float, float]:
    """CPU seconds of `pids` and of the children that they have waited for, and the memory in MiB that they hold.

    CPU: utime + stime + cutime + cstime of /proc/PID/stat. Memory: RssAnon + RssShmem of /proc/PID/status, that is
    without the programs' own files; pages shared by fork count once for each.
    """
    ticks = memory_kb = 0
    for pid in pids:
        stat = _stat(pid)
        if stat is None:
            continue
        ticks += stat.ticks
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith((b"RssAnon:", b"RssShmem:")):
                    memory_kb += int(line.split()[1])
    return ticks / TICKS, memory_kb / 1024


def kill_all(identities: Iterable[Identity]) -> None:
    """SIGKILL `identities`, all their descendants and every member of their sessions; never the caller's own session.

    Returns when they are dead, at the latest after DEATH_S. Only identities that still run open the door to their
    session: while one of its members lives, the kernel does not give the session's number away.
    """
    roots = alive(identities)
    snapshot = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := _stat(int(name)))}
    own = os.getsid(0)
    victims = {root.pid for root in roots} & snapshot.keys()  # the others have ended in between
    sessions = {snapshot[pid].session for pid in victims} - {own, 0}
    victims |= {pid for pid, stat in snapshot.items() if stat.session in sessions}
    grown = True
    while grown:
        children = {pid for pid, stat in snapshot.items() if stat.parent in victims} - victims
        victims |= children
        grown = bool(children)
    kill(Identity(pid, snapshot[pid].started) for pid in victims - {os.getpid()})


def kill(identities: Iterable[Identity]) -> None:
    """SIGKILL those of `identities` that still run. Returns when they are dead, at the latest after DEATH_S."""
    dying = alive(identities)
    for identity in dying:
        with contextlib.suppress(ProcessLookupError):
            os.kill(identity.pid, signal.SIGKILL)
    limit = time.monotonic() + DEATH_S
    while (dying := alive(dying)) and time.monotonic() < limit:
        time.sleep(0.005)


def remove_folder(folder: str | Path) -> None:
    """Remove a folder into which dying processes may still be writing; given up after DEATH_S."""
    limit = time.monotonic() + DEATH_S
    while os.path.exists(folder) and time.monotonic() < limit:
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.exists(folder):
            time.sleep(0.02)


def die_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when the thread that started it ends (PR_SET_PDEATHSIG).

    parent: pid of the process that started this one; when it is gone already, this process ends here.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(0)


def kernel_kills() -> int:
    """Processes that the kernel has ended since boot because memory ran out (`oom_kill` of /proc/vmstat)."""
    with open("/proc/vmstat", encoding="ascii") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
