"""The judge over the network: Hugging Face Inference Providers, or any server of the chat-completions protocol.

Both through huggingface_hub's InferenceClient, which sends one request and repeats nothing; what goes wrong is told
apart in reward.faults. Pictures travel as PNG data URIs between the parts of the text. Left out: seeds, response
formats and other options that some servers refuse; at temperature 0 none of them is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from render.errors import SetupError
from reward.faults import Fault, fault_of
from reward.pictures import data_uri
from reward.settings import VlmSettings
from reward.verdict import MAX_TOKENS, TOP_LOGPROBS, Answer, Prompt, letters, read_verdict, sigmoid

if TYPE_CHECKING:
    from huggingface_hub import InferenceClient

HUGGING_FACE = (".huggingface.co", ".huggingface.cloud", ".hf.space")
NO_KEY = "none"  # an empty key would make huggingface_hub send its own token to whatever server it is


def key_of(settings: VlmSettings) -> str | None:
    """The token to send, None if there is none. A Hugging Face token goes to Hugging Face's own machines only."""
    key = os.environ.get(settings.key_variable, "").strip()
    if settings.backend == "server":
        host = f".{urlparse(settings.base_url).hostname}"
        if settings.key_variable == "HF_TOKEN" and not host.endswith(HUGGING_FACE):
            return None
        return key or None
    if not key and settings.key_variable == "HF_TOKEN":
        from huggingface_hub import get_token

        key = get_token() or ""
    return key or None


def place(settings: VlmSettings) -> str:
    """Who is asked: the provider, or the server's address."""
    return settings.provider if settings.backend == "providers" else settings.base_url.rstrip("/")


def identity(settings: VlmSettings) -> str:
    """Of the one who answers, for the keys of caches."""
    return json.dumps([settings.backend, settings.model, place(settings)])


def connect(settings: VlmSettings, who: str = "judge") -> InferenceClient:
    """The client for back end `providers` or `server`; no request is sent yet. who: for the message.

    Raises SetupError where the token is missing or the network is switched off.
    """
    from huggingface_hub import InferenceClient, constants

    if constants.HF_HUB_OFFLINE:
        raise SetupError(
            "HF_HUB_OFFLINE is set, so that huggingface_hub sends nothing, not even to a server of your own: "
            f"unset it for the {who} ({settings.backend})"
        )
    key = key_of(settings)
    if settings.backend == "providers" and key is None:
        raise SetupError(
            f"the {who} needs a token of Hugging Face with the right to call Inference Providers: set the "
            f"environment variable {settings.key_variable} (or, for HF_TOKEN, log in with `hf auth login`)"
        )
    target = {"provider" if settings.backend == "providers" else "base_url": place(settings)}
    return InferenceClient(api_key=key or NO_KEY, timeout=settings.timeout_s, **target)


def complete(
    client: InferenceClient, model: str, conversation: list[dict[str, Any]], options: Mapping[str, Any]
) -> Any:
    """The chat completion (nested dicts) that one request brings. Raises Fault where none comes back."""
    try:
        return client.chat_completion(conversation, model=model, **options)
    # Which exceptions a transport library raises is nothing to rely on; fault_of raises what is not a fault of it.
    except Exception as error:
        raise fault_of(error) from error


class RemoteJudge:
    """Back end `providers` or `server`. Raises SetupError where the token is missing or the network is switched off."""

    stand_in = False
    concurrent = True

    def __init__(self, settings: VlmSettings) -> None:
        self.model = settings.model
        self.image_size = settings.image_size
        self.name = f"{settings.model} at {place(settings)}"
        self.identity = identity(settings)
        self.client = connect(settings)

    def ask(self, first: bytes, second: bytes, prompt: Prompt) -> Answer:
        options: dict[str, Any] = {"max_tokens": MAX_TOKENS[prompt.mode], "temperature": 0.0}
        if prompt.mode == "soft":
            options |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        return read_reply(complete(self.client, self.model, messages(first, second, prompt), options), prompt.mode)


def messages(first: bytes, second: bytes, prompt: Prompt) -> list[dict[str, Any]]:
    """The question as one user turn: text, picture, text, picture, text."""
    before, between, after = ({"type": "text", "text": text} for text in prompt.texts)
    pictures = ({"type": "image_url", "image_url": {"url": data_uri(png)}} for png in (first, second))
    return [{"role": "user", "content": [before, next(pictures), between, next(pictures), after]}]


def read_reply(reply: Any, mode: str) -> Answer:
    """The answer in a chat completion (nested dicts). Raises Fault where it holds none."""
    paid, content = content_of(reply)
    if mode == "soft":
        pairs = _logprobs(_at(reply, "choices", 0, "logprobs", "content", 0))
        if not pairs and isinstance(content, str):
            raise Fault("no_logprobs", "the answer has no log-probabilities", of_service=False, tokens=paid)
        if pairs:
            logit, mass = letters(pairs)
            return Answer(sigmoid(logit), logit, mass, "", *paid)
    if not isinstance(content, str):
        raise Fault("null", "the answer has no content", of_service=False, tokens=paid)
    try:
        first, reason = read_verdict(content)
    except ValueError as error:
        raise Fault("verdict", str(error), of_service=False, tokens=paid) from error
    return Answer(first, None, None, reason, *paid)


def content_of(reply: Any) -> tuple[tuple[int, int], Any]:
    """((tokens in, tokens out), content) of a chat completion. Raises Fault where it is none."""
    tokens = tuple(
        count if isinstance(count := _at(reply, "usage", name), int) else 0
        for name in ("prompt_tokens", "completion_tokens")
    )
    paid = (tokens[0], tokens[1])
    if _at(reply, "choices", 0) is None:
        raise Fault("json", "what came back is not the JSON of an answer", tokens=paid)
    return paid, _at(reply, "choices", 0, "message", "content")


def _logprobs(position: Any) -> list[tuple[str, float | None]]:
    """(token, log-probability) of one place in the reply, most probable first; empty where the server told none."""
    found: list[tuple[str, float | None]] = []
    for entry in _at(position, "top_logprobs") or ():
        token, value = _at(entry, "token"), _at(entry, "logprob")
        if isinstance(token, str) and isinstance(value, int | float):
            found.append((token, float(value)))
    return found


def _at(value: Any, *path: str | int) -> Any:
    """What stands at a path through dicts and lists; None where it leads nowhere."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value
