"""Builds the parts of a run from its config: the pool with the reward, and the policy."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from grpo import small
from grpo.adapter import Origin
from grpo.config import Config
from grpo.policy import Policy
from grpo.pretrained import load_pretrained
from grpo.prompt import messages
from grpo.small import WarmStartProgress
from grpo.stages import Stages
from render.farm import Farm
from reward.control import Control
from reward.gate import Gate
from reward.mix import Mix, build_mix
from reward.placing import device_of
from reward.pool import Pool, paint_pool


def build_pool(config: Config, farm: Farm, stages: Stages) -> Pool:
    """The references; sketches without an image are painted by the farm, once, and cached by content."""
    pool = paint_pool(config.pool, farm, lambda done, total: stages.show("painting the pool", done, total))
    tiers = ", ".join(f"{len(pool.tier(tier))} {tier}" for tier in ("love", "okay"))
    stages.show("pool", len(pool.references), len(pool.references), tiers)
    return pool


def build_reward(
    config: Config,
    farm: Farm | None,
    gate: Gate,
    stages: Stages,
    on_note: Callable[[str], None],
    absent: Mapping[str, str] | None = None,
) -> tuple[Pool, Mix | Control]:
    """The pool and what judges; an empty pool and the control task where nothing is painted (farm is None).

    absent: as build_mix takes it; a "pool" in it is not fetched.
    """
    if farm is None:
        return Pool((), "no pool"), Control(gate, config.reward.target_fills)
    pool = Pool((), "no pool") if absent and "pool" in absent else build_pool(config, farm, stages)
    return pool, build_mix(config.reward, config.subject, gate, pool, on_note, absent)


def warm_up(config: Config, folder: Path, stages: Stages) -> None:
    """Have the small policy's weights in the run's folder, where other ranks find them."""
    quiet_libraries()
    _small(config, folder, stages)


def _small(config: Config, folder: Path | None, stages: Stages) -> tuple[Any, Any]:
    """The small policy, kept in the run's own folder, so that a run can be resumed and read without the cache."""
    base = folder / "base" if folder else None
    if base is not None and (base / "model").exists():
        return small.load(base)

    def on_progress(done: WarmStartProgress) -> None:
        stages.show("warm start", done.step, done.steps, f"loss {done.loss:.3f}  {done.tokens_per_s:,.0f} tokens/s")

    model, tokenizer = small.warm_start(
        config.warm_start,
        lambda subject: messages(config.prompt.system, subject, config.subject.composition),
        on_progress,
    )
    if base is not None:
        part = base.with_name(".base.part")
        shutil.rmtree(part, ignore_errors=True)
        small.save(part, model, tokenizer)
        part.rename(base)
    return model, tokenizer


def quiet_libraries() -> None:
    """Their notices about deprecations to come and optional kernels would break up the live table."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")


def build_policy(config: Config, folder: Path | None, stages: Stages) -> Policy:
    """The policy with its adapter; the small one is warm-started first, from cache where it was done before.

    folder: the run's, which keeps the small one's weights; None = they are not kept.
    """
    quiet_libraries()
    torch.use_deterministic_algorithms(True, warn_only=True)
    if config.policy.model == "small":
        model, tokenizer = _small(config, folder, stages)
        model = model.to(device_of(config.policy.device, "policy"))
        base = (folder / "base").resolve() if folder else None
        origin = Origin(model=str(base / "model"), tokenizer=str(base / "tokenizer")) if base else Origin()
    else:
        model, tokenizer, origin = load_pretrained(config)
    torch.set_num_threads(config.policy.threads)
    lora = config.lora if config.lora.enabled else None
    return Policy(model, tokenizer, lora, config.train.gradient_checkpointing, origin)
