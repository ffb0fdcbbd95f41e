"""Builds the parts of a run from its config: the pool and the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress
from transformers.utils import logging as transformers_logging

from grpo.config import Config
from grpo.policy import Policy, load_pretrained, resolve_device
from grpo.prompt import messages
from grpo.small import WarmStartProgress, warm_start
from render.farm import Farm
from reward.pool import Pool, load_pool, studio_fingerprint


def build_pool(config: Config, farm: Farm, progress: Progress) -> Pool:
    """The references; sketches without an image are painted by the farm, once, and cached by content."""
    task = progress.add_task("painting the pool", total=None, text="")

    def paint(source: str, seed: int) -> Any:
        painting = farm.submit(source, seed).result()
        progress.advance(task)
        return painting

    pool = load_pool(
        config.pool,
        paint,
        fingerprint=studio_fingerprint(str(farm.info["rasterizer"])),
        parallel=int(farm.info["workers"]),
    )
    tiers = {tier: len(pool.tier(tier)) for tier in ("love", "okay")}
    progress.update(
        task,
        total=len(pool.references),
        completed=len(pool.references),
        text=", ".join(f"{count} {tier}" for tier, count in tiers.items()),
    )
    return pool


def build_policy(config: Config, folder: Path, progress: Progress) -> Policy:
    """The policy with its adapter; the small one is warm-started first, from cache where it was done before."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.use_deterministic_algorithms(True, warn_only=True)
    if config.policy.model == "small":
        task = progress.add_task("warm start", total=config.warm_start.steps, text="")

        def on_progress(done: WarmStartProgress) -> None:
            text = f"loss {done.loss:.3f}  {done.tokens_per_s:,.0f} tokens/s"
            progress.update(task, completed=done.step, total=done.steps, text=text)

        model: Any
        model, tokenizer = warm_start(
            config.warm_start, lambda subject: messages(config.prompt.system, subject), on_progress
        )
        progress.update(task, completed=config.warm_start.steps)
        model = model.to(resolve_device(config.policy.device))
    else:
        model, tokenizer = load_pretrained(config)
    torch.set_num_threads(config.policy.threads)
    lora = config.lora if config.lora.enabled else None
    return Policy(model, tokenizer, lora, config.train.gradient_checkpointing)
