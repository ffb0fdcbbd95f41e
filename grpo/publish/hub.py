"""The Hub, as far as publishing needs it: list, create, commit. Tried again where that helps, one line where not.

    hub = Hub(say)
    hub.listing(kind, name)                       path -> RepoFile of what is there; None = no such repository
    hub.create(kind, name, private)
    hub.commit(kind, name, adds, removals, message, sent)

huggingface_hub does the work. It tries most calls again by itself, and waits as Retry-After says; what it gives up, and
what it does not try again (creating, committing), is tried again here. A commit is either there as a whole or not at
all, and of a large file that was sent before, the Hub asks for nothing: so a killed upload goes on where it was.

Environment: HF_TOKEN or `hf auth login`, HF_ENDPOINT, HF_HUB_DISABLE_XET as huggingface_hub documents them.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoFile, get_token
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import disable_progress_bars

from grpo.publish.files import Item
from render.errors import UserError

PAUSES_S = (2.0, 8.0, 30.0, 60.0)  # before the second, third ... try
BUSY = (408, 409, 412, 425, 429)  # besides 5xx: to be tried again
TOGETHER = 16  # files of one request, so that the bar moves
THREADS = 4
LOGIN = "make one with write access at https://huggingface.co/settings/tokens, then `hf auth login` or HF_TOKEN=..."
# What huggingface_hub raises for a connection that broke is of the HTTP library that it is built on.
HTTPError: type[Exception] = HfHubHTTPError.__mro__[1]
T = TypeVar("T")


class HubLost(Exception):
    """The Hub does not take it now; the text is one line. What is up stays up."""


class Hub:
    """say(line): tells a person that it waits. Raises UserError where there is no token."""

    def __init__(self, say: Callable[[str], None]) -> None:
        token = get_token()
        if not token:
            raise UserError(f"no token for the Hub: {LOGIN}")
        self.say = say
        self.api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token, library_name="grpo-paint")
        disable_progress_bars()
        # The library says on its logger that it waits and why: a line of ours in the place of its own.
        library = logging.getLogger("huggingface_hub")
        library.handlers[:] = [_Waiting(say)]

    def listing(self, kind: str, name: str) -> dict[str, RepoFile] | None:
        """Files of a repository by path; None where there is no such repository, or none that the token may see."""

        def work() -> dict[str, RepoFile] | None:
            try:
                tree = self.api.list_repo_tree(name, repo_type=kind, recursive=True)
                return {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
            except HfHubHTTPError as error:
                if error.response.status_code == 404:
                    return None
                raise

        return self._tried(name, work)

    def create(self, kind: str, name: str, private: bool) -> None:
        self._tried(name, lambda: self.api.create_repo(name, repo_type=kind, private=private, exist_ok=True))

    def commit(
        self,
        kind: str,
        name: str,
        adds: Sequence[Item],
        removals: Sequence[str],
        message: str,
        sent: Callable[[int], None],
    ) -> None:
        """Put these files up and remove those, in one commit. sent(bytes): so much more is there."""
        operations = [CommitOperationAdd(item.path, item.content) for item in adds]
        for start in range(0, len(operations), TOGETHER):
            some = operations[start : start + TOGETHER]

            def work(some: list[CommitOperationAdd] = some) -> None:
                # Large files go up here, small ones travel with the commit.
                self.api.preupload_lfs_files(name, some, repo_type=kind, num_threads=THREADS, free_memory=False)

            self._tried(name, work)
            sent(sum(item.size for item in adds[start : start + TOGETHER]))
        everything: list[Any] = [*operations, *(CommitOperationDelete(path, is_folder=False) for path in removals)]
        self._tried(name, lambda: self.api.create_commit(name, everything, commit_message=message, repo_type=kind))

    def _tried(self, name: str, work: Callable[[], T]) -> T:
        """What work() returns. Raises UserError where another try is of no use, HubLost after the last one."""
        for pause in (*PAUSES_S, None):
            try:
                return work()
            except (HTTPError, OfflineModeIsEnabled, RuntimeError, ValueError) as raised:
                why, wait = _judge(name, raised)
            if pause is None:
                break
            wait = pause if wait is None else wait
            self.say(f"{name}: {why}; waiting {wait:.0f} s")
            time.sleep(wait)
        raise HubLost(f"{name}: {why}, {len(PAUSES_S) + 1} times; nothing that is up is lost, start again to go on")


def _judge(name: str, raised: Exception) -> tuple[str, float | None]:
    """Why it may work later, and the seconds that the Hub asks to wait. Raises UserError where it will not."""
    # The library wraps what broke a file's upload.
    error = raised.__cause__ if isinstance(raised, RuntimeError) and raised.__cause__ is not None else raised
    if isinstance(error, HfHubHTTPError):
        return _judge_answer(name, error)
    if isinstance(error, OfflineModeIsEnabled):
        raise UserError(f"{name}: HF_HUB_OFFLINE is set, so nothing can go up") from raised
    if isinstance(error, FileNotFoundError):
        raise UserError(f"{error.filename}: was removed while it was going up; start again") from raised
    if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):  # a card, a name, no room
        raise UserError(f"{name}: the Hub refuses it: {_line(error)}") from raised
    return f"the connection to the Hub broke ({_line(error)})", None


def _judge_answer(name: str, error: HfHubHTTPError) -> tuple[str, float | None]:
    status, said = error.response.status_code, error.server_message or ""
    told = f" ({' '.join(said.split())})" if said else ""
    if status == 401:
        raise UserError(f"the Hub does not know the token (401){told}: {LOGIN}") from error
    if status == 403:
        raise UserError(
            f"{name}: the token has no right to write there (403){told}: take a name of your own or of your "
            "organisation, and a token with write access"
        ) from error
    if status >= 500 or status in BUSY:
        asked = error.response.headers.get("Retry-After", "")
        what = "the Hub wants fewer requests (429)" if status == 429 else f"the Hub answered {status}{told}"
        return what, float(asked) if asked.isdigit() else None
    raise UserError(f"{name}: the Hub refuses it ({status}){told or f': {_line(error)}'}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class _Waiting(logging.Handler):
    """Says that the library waits, and why; addresses are left out, because those of uploads are signed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self.say = say
        self.why = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = " ".join(record.getMessage().split())
        if " thrown while requesting " in text:
            self.why = f"{text.partition(' thrown while requesting ')[0]}. "
        elif text.startswith(("Rate limited", "Retrying in")):
            self.say(f"the Hub: {self.why}{text}")
