"""The models that work on a pool: those that write sketches, and the critic that looks at them.

The road is the judge's: one request each through huggingface_hub's client (reward.judge_remote), faults told apart
(reward.faults), asked again with pauses and held while the service is down (reward.calls). Every finished call is a
line of the workshop's calls.jsonl, so that the same question is never asked twice. Left out: streaming.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

from render.errors import ConfigError, SetupError
from render.reading import read_table
from reward.calls import Line, Meter, Totals
from reward.faults import Fault
from reward.judge_remote import complete, connect, content_of, identity, place
from reward.judge_setup import advice
from reward.pictures import data_uri
from reward.pool.workshop import Log
from reward.settings import VlmSettings

SHORT_ANSWER = 16  # tokens of the answer to the first question

Conversation = list[dict[str, Any]]


@dataclass(frozen=True)
class Reply:
    """What a model said. tokens: as the server counted them."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True)
class Manner:
    """How a model is asked. thinking: False asks the chat template for an answer without thoughts, as vLLM and SGLang
    understand it."""

    max_tokens: int
    temperature: float
    thinking: bool = True

    @property
    def options(self) -> dict[str, Any]:
        quiet = {} if self.thinking else {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
        return {"max_tokens": self.max_tokens, "temperature": self.temperature, **quiet}


def named(text: str, who: str, common: Mapping[str, Any], key_variable: str, price: tuple[float, float]) -> VlmSettings:
    """The settings behind MODEL@PROVIDER or MODEL@http://HOST/v1. Raises ConfigError where the text is neither."""
    model, _, where = text.rpartition("@")
    if not model or not where:
        raise ConfigError(
            f'--{who} {text}: a model and who serves it are needed, as in "zai-org/GLM-5.2@novita" or '
            '"my-model@http://127.0.0.1:8000/v1"'
        )
    values: dict[str, Any] = {"model": model, "price_in": price[0], "price_out": price[1], **common}
    if where.startswith(("http://", "https://")):
        values |= {"backend": "server", "base_url": where, "key_variable": key_variable}
    else:
        values |= {"backend": "providers", "provider": where}
    settings: VlmSettings = read_table(VlmSettings, values, f"--{who} {text}")
    return settings


class Model:
    """One model at one place. `ask` may be used by several threads at once. who: `writer` or `critic`, for people."""

    def __init__(
        self,
        settings: VlmSettings,
        who: str,
        manner: Manner,
        on_wait: Callable[[str], None] = lambda text: None,
        pause_scale: float = 1.0,
    ) -> None:
        self.settings = settings
        self.who = who
        self.manner = manner
        self.name = settings.model
        self.title = f"{settings.model} at {place(settings)}"
        self.client = connect(settings, who)
        self.meter = Meter(settings.price_in, settings.price_out)
        self.line: Line[Reply] = Line(self.title, settings, self.meter, self._known, on_wait, pause_scale, who)

    def key(self, conversation: Conversation, index: int) -> str:
        """Names a call by all that its answer depends on. index: tells samples of the same question apart."""
        question = [identity(self.settings), asdict(self.manner), conversation, index]
        return hashlib.sha256(json.dumps(question).encode()).hexdigest()

    def ask(self, conversation: Conversation) -> Reply:
        """Raises Fault where the question is given up, JudgeOutage where the model is closed."""
        return self.line.call(lambda: self._send(conversation, self.manner.options))

    def probe(self) -> None:
        """One short question. Raises SetupError in one line where the model cannot be asked at all."""
        try:
            self.line.once(self._known)
        except Fault as fault:
            if fault.kind != "null":  # so few tokens may all go into thoughts
                raise SetupError(advice(self.title, fault, self.settings, self.who)) from fault

    def _known(self) -> Reply:
        # The time keeps any cache on the way from answering.
        question = f"Answer with the word yes and nothing else. ({time.time_ns()})"
        options = {**self.manner.options, "max_tokens": SHORT_ANSWER}
        return self._send([{"role": "user", "content": question}], options)

    def _send(self, conversation: Conversation, options: Mapping[str, Any]) -> Reply:
        reply = complete(self.client, self.settings.model, conversation, options)
        tokens, content = content_of(reply)
        if not isinstance(content, str) or not content.strip():
            cut = reply["choices"][0].get("finish_reason") == "length"
            text = "the answer is empty"
            text += ": all its tokens went into thoughts (see --max-tokens, --no-thinking)" if cut else ""
            raise Fault("null", text, again=not cut, of_service=False, tokens=tokens)
        self.meter.add(answers=1, tokens_in=tokens[0], tokens_out=tokens[1])
        return Reply(content, *tokens)

    def totals(self) -> Totals:
        return self.meter.totals(self.line.waiting_s())


class Calls:
    """The finished calls of a workshop. Two threads with the same question share one call."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.replies = {
            record["key"]: Reply(record["text"], record["tokens_in"], record["tokens_out"]) for record in log.records
        }
        self.lock = threading.Lock()
        self.flights: dict[str, Future[Reply]] = {}

    def known(self, model: Model, conversation: Conversation, index: int) -> Reply | None:
        return self.replies.get(model.key(conversation, index))

    def ask(self, model: Model, conversation: Conversation, index: int) -> Reply:
        """The answer, which is on the disk when this returns. Raises what `Model.ask` raises, and OSError."""
        key = model.key(conversation, index)
        with self.lock:
            if key in self.replies:
                return self.replies[key]
            flight = self.flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self.flights[key] = Future()
        if not mine:
            return flight.result()
        try:
            reply = model.ask(conversation)
            self.log.append({"key": key, "role": model.who, "model": model.title, **asdict(reply)})
            with self.lock:
                self.replies[key] = reply
            flight.set_result(reply)
            return reply
        except BaseException as error:
            flight.set_exception(error)
            raise
        finally:
            with self.lock:
                del self.flights[key]


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def picture_part(png: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_uri(png)}}
