"""Processes of this machine, told apart beyond doubt: find and end those that the farm started (Linux).

A process is named by its pid together with the clock tick at which it started (`/proc/PID/stat`, field 22), so that a
pid that the system has given to somebody else is never signalled. Nothing is ever looked up by a program's name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable
from typing import NamedTuple

PR_SET_PDEATHSIG = 1


class Identity(NamedTuple):
    """One process: its pid and the clock tick, counted from boot, at which it started."""

    pid: int
    started: int


class _Stat(NamedTuple):
    state: str
    parent: int
    session: int
    started: int


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The program's name stands in brackets and may hold blanks and brackets itself: cut behind the last one.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


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


def command_line(pid: int) -> bytes:
    """Arguments of a process, each ended by a zero byte; empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def kill_all(identities: Iterable[Identity]) -> None:
    """SIGKILL `identities`, all their descendants and every member of their sessions; never the caller's own session.

    Only identities that still run open the door to their session: while one of its members lives, the kernel does not
    give the session's number away.
    """
    roots = alive(identities)
    snapshot = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := _stat(int(name)))}
    own = os.getsid(0)
    sessions = {snapshot[root.pid].session for root in roots if root.pid in snapshot} - {own, 0}
    victims = {root.pid for root in roots} | {pid for pid, stat in snapshot.items() if stat.session in sessions}
    grown = True
    while grown:
        children = {pid for pid, stat in snapshot.items() if stat.parent in victims} - victims
        victims |= children
        grown = bool(children)
    for pid in victims - {os.getpid()}:
        stat = _stat(pid)
        if stat and pid in snapshot and stat.started == snapshot[pid].started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


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
