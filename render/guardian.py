"""A small process between the owner and its browser: nothing that the browser starts outlives the owner.

    python -I -S guardian.py FOLDER COMMAND [ARGUMENT ...]

It makes FOLDER (for the profile and all temporary files), starts COMMAND (chromedriver), adopts every orphan below it
(PR_SET_CHILD_SUBREAPER) and reaps the dead. It ends everything with SIGKILL and removes FOLDER as soon as one of three
things happens: its standard input closes (the owner closed it, or died by any signal), its parent changes, or COMMAND
ends. COMMAND itself carries PR_SET_PDEATHSIG, so it goes too when this process is killed first. Its owner starts it in
a session of its own, so that Ctrl-C in a terminal does not reach the browser.

FOLDER is made here and not by the owner, so that there is no moment at which the owner's death would leave it behind.
What COMMAND writes to standard error goes to FOLDER/chromedriver.log.

A thread of the owner that ends would fire PR_SET_PDEATHSIG by mistake (the signal belongs to the thread that started
the child); hence the pipe. As a subreaper this process also keeps the CPU time of every descendant that has ended
(cutime and cstime of /proc/PID/stat), which a sum over living processes would lose.

Uses the standard library only: it starts without site-packages.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_MS = 500
LOG = "chromedriver.log"

_KERNEL_LISTS = os.path.exists("/proc/thread-self/children")
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def descendants(root: int) -> list[int]:
    """Process ids below `root`, parents first, read from /proc; zombies are included.

    A child that is born or orphaned in this moment may be missed: whoever needs them all asks until none is left.
    """
    children = _listed if _KERNEL_LISTS else _scanned()
    found: list[int] = []
    queue = [root]
    while queue:
        below = children(queue.pop(0))
        found.extend(below)
        queue.extend(below)
    return found


def _listed(pid: int) -> list[int]:
    """The kernel's own lists, one for each thread (CONFIG_PROC_CHILDREN): their cost is that of the family alone."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it ended: its children have another parent now
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found.extend(map(int, file.read().split()))
        except OSError:  # the thread ended: another one has its children now
            continue
    return found


def _scanned() -> Callable[[int], list[int]]:
    """The same from the parents of all processes of the machine."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(name))
    return lambda pid: children.get(pid, [])


def end_descendants() -> None:
    """Kill and reap until nothing is left below this process: a child may be born while its parent is being killed."""
    while True:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # no child, and orphans would be children: nothing is left
            return
        time.sleep(0.005)


def main(folder: str, command: list[str]) -> None:
    owner = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides what Ctrl-C means
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.path.join(folder, LOG), "wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stderr=log,
                preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
            )
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        while not poll.poll(POLL_MS) and os.getppid() == owner:
            reaped = 1
            while reaped:
                reaped = os.waitpid(-1, os.WNOHANG)[0]
                if reaped == child.pid:
                    return
    except ChildProcessError:
        return
    finally:
        end_descendants()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
