"""Small real parts for the trainer's tests: a tiny transformer with a byte tokenizer, and a policy that says what it is
told to, for tests of the road around the model."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from grpo.config import Config, LoraSettings
from grpo.policy import Completion, Policy
from render.painting import Outcome, Painting
from reward.base import Candidate, Reference, Score
from reward.gate import Gate
from reward.mix import Mix

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GOOD = "function setup(){createCanvas(9,9,WEBGL);brush.fill('#f00');brush.circle(%d,4,3)}"


def byte_tokenizer(pad: str = "<|endoftext|>") -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    vocabulary = {token: index for index, token in enumerate([*specials, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(specials)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token=pad, chat_template=TEMPLATE
    )


def tiny_model(tokenizer: PreTrainedTokenizerFast, seed: int = 0) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config).eval()


def tiny_policy(lora: bool = True, checkpointing: bool = False, seed: int = 0) -> Policy:
    tokenizer = byte_tokenizer()
    settings = LoraSettings(rank=4, alpha=8) if lora else None
    return Policy(tiny_model(tokenizer, seed), tokenizer, settings, checkpointing)


def changed(config: Config, **tables: dict[str, Any]) -> Config:
    """A config with some settings of some tables replaced."""
    return dataclasses.replace(
        config, **{table: dataclasses.replace(getattr(config, table), **values) for table, values in tables.items()}
    )


def png(shade: int = 200) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9), (shade, 100, 100)).save(buffer, "PNG")
    return buffer.getvalue()


def painted(**values: Any) -> Painting:
    return Painting(
        **{"outcome": Outcome.PAINTED, "png": png(), "coverage": 0.3, "shapes": 1, "finished": True, **values}
    )


class Script:
    """A policy that 'samples' the texts it was given, one after another."""

    def __init__(self, texts: Sequence[str], between: Callable[[int], None] = lambda row: None) -> None:
        self.texts = list(texts)
        self.between = between
        self.samplings = 0

    def prompt_ids(self, messages: list[dict[str, str]]) -> list[int]:
        return [1, 2, 3]

    def decode(self, ids: Sequence[int]) -> str:
        return self.texts[ids[0]]

    def sample_rows(
        self,
        prompts: Any,
        settings: Any,
        seed: int,
        on_finished: Any = None,
        on_token: Any = None,
        begun: Any = None,
    ) -> list[Completion]:
        self.samplings += 1
        completions = []
        for row in range(len(prompts)):
            completion = Completion((row, 7, 1), True)
            on_finished(row, completion)
            completions.append(completion)
            self.between(row)
        return completions


class Painter:
    """Answers each sketch at once with what `answer(source)` gives."""

    def __init__(self, answer: Callable[[str], Painting]) -> None:
        self.answer = answer
        self.sources: list[str] = []

    def submit(self, source: str, seed: int = 0) -> Future[Painting]:
        self.sources.append(source)
        future: Future[Painting] = Future()
        future.set_result(self.answer(source))
        return future


class Fixed:
    """A term that gives each sketch the value that `value(candidate)` says."""

    stand_in = False

    def __init__(self, name: str, value: Callable[[Candidate], float | None]) -> None:
        self.name = name
        self.value = value

    def score(self, candidate: Candidate, references: Sequence[Reference]) -> Score:
        value = self.value(candidate)
        return Score(value, cause="" if value is not None else "the scorer did not answer")


def mix_of(value: Callable[[Candidate], float | None], gate: Gate) -> Mix:
    return Mix({"gate": 0.0, "judge": 1.0}, gate, [Fixed("judge", value)])
