"""python -m bench.train --generation: ways to call `generate` on tiny models of the policies' classes.

Each way draws the same completions from the same seed, in this process, one thread, by turns with the plain call
(expanded rows, dynamic cache, the library's own choice of experts kernel). Told apart: tokens a CPU second, and whether
the tokens are the plain call's.

Left out: compilation and CUDA graphs, which the library uses on a GPU only.
"""

from __future__ import annotations

import json
import resource
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from rich.console import Console
from rich.table import Table
from transformers import Qwen3Config, Qwen3ForCausalLM

from grpo import grammar, small
from grpo.config import LoraSettings, SampleSettings
from grpo.policy import Policy

ROWS, TOKENS, ROUNDS = 8, 192, 5
EXPERTS = ("grouped_mm", "batched_mm", "eager")


@dataclass(frozen=True)
class Way:
    """A way to draw ROWS completions: tokens [ROWS, TOKENS] from prompt and seed."""

    name: str
    draw: Callable[[int], torch.Tensor]


def policies(lora: bool) -> dict[str, Policy]:
    """A small model of each class, with random weights that make no token certain."""
    texts = [grammar.sample_sketch(numpy.random.default_rng(seed)) for seed in range(64)]
    tokenizer = small.build_tokenizer(texts)
    settings = small.WarmStartSettings()
    torch.manual_seed(0)
    dense = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=128, intermediate_size=384, num_hidden_layers=4,
            num_attention_heads=4, num_key_value_heads=2, head_dim=32, eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    adapter = LoraSettings() if lora else None
    return {
        "Qwen3": Policy(dense.eval(), tokenizer, adapter),
        "Qwen3.5-MoE": Policy(small.build_model(tokenizer, settings).eval(), tokenizer, adapter),
    }


def ways(policy: Policy, prompt: list[int], settings: SampleSettings) -> list[Way]:
    base = policy.model.get_base_model() if policy.has_adapter else policy.model

    def called(cache: str | None = None, expanded: bool = True, experts: str | None = None) -> Callable[[int], Any]:
        def draw(seed: int) -> torch.Tensor:
            before = getattr(base.config, "_experts_implementation", None)
            if experts:
                base.set_experts_implementation(experts)
            ids = torch.tensor([prompt] * (ROWS if expanded else 1))
            config = policy.generation_config(settings, settings.max_completion_length)
            config.update(cache_implementation=cache, num_return_sequences=1 if expanded else ROWS)
            torch.manual_seed(seed)
            drawn: torch.Tensor = policy.model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=config
            )
            if experts:
                base.set_experts_implementation(before)
            return drawn[:, len(prompt) :]

        return draw

    def ours(seed: int) -> torch.Tensor:
        completions = policy.sample(prompt, ROWS, settings, seed)
        width = max(len(completion.ids) for completion in completions)
        rows = [[*completion.ids, *[policy.pad_id] * (width - len(completion.ids))] for completion in completions]
        return torch.tensor(rows)

    found = [
        Way("plain", called()),
        Way("num_return_sequences", called(expanded=False)),
        Way("static cache", called(cache="static")),
        Way("Policy.sample", ours),
    ]
    if hasattr(base.config, "num_experts"):
        found += [Way(f"experts {name}", called(experts=name)) for name in EXPERTS]
    return found


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@torch.no_grad()
def measure(policy: Policy, rounds: int) -> list[dict[str, Any]]:
    """A row for each way: median tokens a CPU second, and whether its tokens are the plain call's."""
    settings = SampleSettings(max_completion_length=TOKENS, top_k=20, top_p=0.9)
    prompt = policy.tokenizer("You paint with p5.brush. a peach hibiscus in loose watercolour")["input_ids"]
    all_ways = ways(policy, prompt, settings)
    speeds: dict[str, list[float]] = {way.name: [] for way in all_ways}
    same = dict.fromkeys(speeds, True)
    for seed in range(rounds + 1):
        plain: torch.Tensor | None = None
        for way in all_ways:
            began = _cpu()
            drawn = way.draw(seed)
            spent = _cpu() - began
            plain = drawn if plain is None else plain
            same[way.name] &= drawn.shape == plain.shape and bool((drawn == plain).all())
            if seed:  # the first round warms up
                speeds[way.name].append(drawn.numel() / spent)
    reference = statistics.median(speeds["plain"])
    return [
        {"way": name, "tokens_per_cpu_s": statistics.median(found), "of_plain": statistics.median(found) / reference,
         "same_tokens": same[name]}
        for name, found in speeds.items()
    ]  # fmt: skip


def generation(quick: bool, console: Console) -> int:
    """Measure and print; the last line is JSON. Exit code 0."""
    torch.set_num_threads(1)
    rows: dict[str, list[dict[str, Any]]] = {}
    for lora in (False, True):
        for name, policy in policies(lora).items():
            title = f"{name}{' with LoRA' if lora else ''}"
            rows[title] = measure(policy, 2 if quick else ROUNDS)
            table = Table(title=f"{title}: {ROWS} rows, {TOKENS} tokens", title_justify="left")
            for column in ("way", "tokens a CPU second", "of plain", "same tokens"):
                table.add_column(column, justify="left" if column == "way" else "right")
            for row in rows[title]:
                same = "yes" if row["same_tokens"] else "no"
                table.add_row(row["way"], f"{row['tokens_per_cpu_s']:,.0f}", f"{row['of_plain']:.2f}", same)
            console.print(table)
    print(json.dumps(rows), flush=True)
    return 0
