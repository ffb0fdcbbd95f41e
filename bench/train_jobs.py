"""What both sides of bench.train work on, and how it is measured: model, weights, tokens and rewards by formulas.

Both sides import this module alone, and nothing of it that the other side would not also have loaded.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

END, PAD = 1, 0
LEARNING_RATE, CLIP_LOW, CLIP_HIGH, MAX_GRAD_NORM = 1e-4, 0.2, 0.28, 1.0
LORA_RANK, LORA_ALPHA = 16, 32
PROMPTS = (
    "a peach hibiscus in loose watercolour",
    "a poppy with a bent stem, seen from below",
    "two irises",
    "a branch of cherry blossom after rain, pale",
)


@dataclass(frozen=True)
class Job:
    """Shapes of one comparison. uneven: completion lengths differ (32 to `length` tokens), else all are `length`."""

    name: str
    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    groups: int
    group_size: int
    length: int
    micro_batch: int
    uneven: bool = False
    lora: bool = False
    checkpointing: bool = False  # gradient checkpointing, on the side that has it on by default (TRL)

    @property
    def rows(self) -> int:
        return self.groups * self.group_size


SMALL = Job("small", 16384, 384, 1240, 6, 6, groups=4, group_size=8, length=128, micro_batch=8)
JOBS = {
    job.name: job
    for job in (
        Job("tiny", 512, 64, 192, 2, 4, groups=2, group_size=4, length=32, micro_batch=4),
        SMALL,
        # The vocabulary a small part of the same size: less of the step is the head, where the sides differ most.
        replace(SMALL, name="small-deep", vocabulary=2048, layers=9),
        replace(SMALL, name="small-uneven", uneven=True),
        replace(SMALL, name="small-lora", lora=True),
        replace(SMALL, name="small-checkpointing", checkpointing=True),
    )
}


def build_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte. Ids of the model that it does not know decode to nothing."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(["<|pad|>", "<|end|>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|pad|>", "<|end|>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>", padding_side="left"
    )


def build_model(job: Job) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=job.vocabulary,
        hidden_size=job.hidden,
        intermediate_size=job.intermediate,
        num_hidden_layers=job.layers,
        num_attention_heads=job.heads,
        num_key_value_heads=job.heads // 2,
        head_dim=job.hidden // job.heads,
        tie_word_embeddings=True,
        eos_token_id=END,
        pad_token_id=PAD,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def plain_name(name: str) -> str:
    return name.removeprefix("base_model.model.").replace(".base_layer", "").replace(".default", "")


def fill(model: Any) -> None:
    """The weights: 1 for vectors, 0.02 times a normal variate for matrices, drawn from the parameter's name."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.fill_(1.0)
            else:
                generator = numpy.random.default_rng(zlib.crc32(plain_name(name).encode()))
                weight.copy_(torch.from_numpy(generator.standard_normal(weight.shape, dtype=numpy.float32)).mul_(0.02))


def lora_targets(model: Any) -> list[str]:
    """Every linear layer but the head, by its last name."""
    linear = {name.split(".")[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    return sorted(linear - {"lm_head"})


def prompts(job: Job) -> list[str]:
    """One for each group."""
    return [PROMPTS[group % len(PROMPTS)] for group in range(job.groups)]


def completions(job: Job, step: int) -> list[list[int]]:
    """The tokens that are trained on in a step, each ended by the end token."""
    generator = numpy.random.default_rng([step, job.vocabulary])
    found = []
    for _ in range(job.rows):
        # Most are short and a few are long, as completions are.
        drawn = generator.random()
        length = int(32 + (job.length - 32) * drawn**2) if job.uneven else job.length
        found.append([*generator.integers(2, job.vocabulary, length - 1).tolist(), END])
    return found


def rewards(job: Job, step: int) -> list[float]:
    return numpy.random.default_rng([step, 7]).random(job.rows).round(3).tolist()


class Meter:
    """CPU and wall seconds of a process's steps, those of generation apart, and its memory."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self.begin()

    def begin(self) -> None:
        """A step begins here."""
        self.generate_cpu = self.generate_wall = 0.0
        self.began = _now()

    @contextmanager
    def generating(self) -> Iterator[None]:
        cpu, wall = _now()
        yield
        self.generate_cpu += _now()[0] - cpu
        self.generate_wall += _now()[1] - wall

    def end(self, **values: float) -> None:
        """It ends, and the next one begins."""
        cpu, wall = (end - start for end, start in zip(_now(), self.began, strict=True))
        generated = {"generate_cpu": self.generate_cpu, "generate_wall": self.generate_wall}
        self.steps.append({"cpu": cpu, "wall": wall, **generated, **values})
        self.begin()


def _now() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, time.perf_counter()


def memory_mb(key: str) -> float:
    """VmRSS (now) or VmHWM (the most there ever was) of this process, MiB."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key + ":"))


def gradients(named: Any) -> dict[str, tuple[float, float]]:
    """Norm of each gradient, and its product with a fixed random vector, under the parameter's plain name."""
    found = {}
    for name, weight in named:
        if weight.grad is not None:
            generator = torch.Generator().manual_seed(zlib.crc32(plain_name(name).encode()))
            probe = torch.randn(weight.shape, generator=generator)
            found[plain_name(name)] = (weight.grad.norm().item(), (weight.grad * probe).sum().item())
    return found


def report(meter: Meter, loaded: dict[str, float], first_gradients: dict[str, Any], versions: dict[str, str]) -> None:
    """One JSON object on the last line of standard output, for bench.train."""
    print(
        json.dumps(
            {
                "loaded": loaded,
                "steps": meter.steps,
                "peak_mb": memory_mb("VmHWM"),
                "gradients": first_gradients,
                "versions": versions,
                "process_cpu": _now()[0],
                "threads": torch.get_num_threads(),
            }
        ),
        flush=True,
    )


def arguments() -> tuple[Job, int]:
    """The job and the number of steps, from the command line of a side's process."""
    torch.set_num_threads(1)
    return JOBS[sys.argv[1]], int(sys.argv[2])


def loaded(params: int) -> dict[str, float]:
    """The state of the process once everything is built, before the first step."""
    return {"cpu": _now()[0], "rss_mb": memory_mb("VmRSS"), "peak_mb": memory_mb("VmHWM"), "parameters": params}
