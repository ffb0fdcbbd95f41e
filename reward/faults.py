"""What went wrong with a call to a judge that is asked over the network, and whether asking again can help.

Faults are told apart by HTTP status and by Python's own exceptions, found anywhere in the chain of causes: the
transport under huggingface_hub has changed its name twice, so its classes say nothing that lasts.

  asked again       408, 409, 429, 5xx, timeouts, lost or refused connections, bodies that are not the protocol's JSON,
                    replies without content, without log-probabilities, or without a readable verdict
  not asked again   every other 4xx
  of the service    a fault that would have hit any question: it counts towards an outage. The others (a request that is
                    refused for what it holds, a reply that says nothing) are about this one comparison
"""

from __future__ import annotations

import email.utils
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

AGAIN = {408, 409, 429}
OF_THE_ACCOUNT = {401, 402, 403, 404}
LONGEST_RETRY_AFTER_S = 120.0
OF_THE_PROGRAM = (TypeError, AttributeError, NameError, LookupError, AssertionError)


class Fault(Exception):
    """One call that gave no answer.

    kind: the name it is counted under (a status, "timeout", "refused", "reset", "html", "json", "null", "verdict",
    "no_logprobs", "client"). again: asking again can help. of_service: any other question would have failed as well.
    after_s: seconds that the server asked to wait. tokens: what an unusable reply has cost all the same.
    """

    def __init__(
        self,
        kind: str,
        text: str,
        *,
        again: bool = True,
        of_service: bool = True,
        after_s: float | None = None,
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.again = again
        self.of_service = of_service
        self.after_s = after_s
        self.tokens = tokens

    @property
    def out_of_credit(self) -> bool:
        return self.kind == "402"


def fault_of(error: Exception) -> Fault:
    """The fault behind an exception of the client. Raises the exception itself where it is a fault of the program."""
    for link in _chain(error):
        response = getattr(link, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int) and status >= 400:
            return _of_status(status, getattr(response, "headers", {}), getattr(error, "server_message", None))
    links = list(_chain(error))
    if any(isinstance(link, TimeoutError) for link in links):
        return Fault("timeout", "no answer in time")
    if isinstance(error, json.JSONDecodeError):
        if error.doc.lstrip().startswith("<"):
            return Fault("html", "a web page came back instead of an answer")
        return Fault("json", "what came back is not JSON")
    if isinstance(error, UnicodeDecodeError) or (isinstance(error, ValueError) and "Invalid" in str(error)):
        return Fault("json", "what came back is not the JSON of an answer")
    if isinstance(error, ValueError):  # huggingface_hub refuses to send: no such provider, or not this model there
        return Fault("client", one_line(str(error)), again=False)
    if isinstance(error, OF_THE_PROGRAM):
        raise error
    for link in links:
        if isinstance(link, ConnectionRefusedError | socket.gaierror):
            return Fault("refused", one_line(f"no connection: {link.strerror or link}"))
    return Fault("reset", one_line(f"the connection was lost: {error}"))


def _of_status(status: int, headers: Mapping[str, str], message: str | None) -> Fault:
    phrase = http.client.responses.get(status, "")
    text = f"{status} {phrase}".strip() + (f": {message}" if message else "")
    again = status in AGAIN or status >= 500
    return Fault(
        str(status),
        one_line(text),
        again=again,
        of_service=again or status in OF_THE_ACCOUNT,
        after_s=retry_after(headers.get("Retry-After")) if again else None,
    )


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header (seconds or an HTTP date) asks to wait, 0 to 120; None if it says nothing."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S) if seconds == seconds else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def one_line(text: str, length: int = 200) -> str:
    return " ".join(text.split())[:length]
