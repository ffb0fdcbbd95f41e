"""--check: the plan of a run as a table, and what this machine lacks for it. Nothing is started or trained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grpo.config import Config
from render.chromium import find_browser, find_driver
from render.errors import SetupError
from render.reading import documentation, flatten
from reward import hps_files, judge_setup

# Key-value caches, recurrent states, activations, the adapter with its optimizer, as a share of the policy's weights:
# 18 GB beside the 70 of the 35B policy with 8 completions of 9,216 tokens.
WORKING = 0.26


def print_plan(config: Config, path: str, console: Console) -> None:
    """Every setting with its value and meaning, what the run will do, and one line for each missing piece."""
    console.print(_plan(config, path))
    console.print(_settings(config))
    lacking = missing(config)
    for part in lacking:
        console.print(f"missing: {part.text}", soft_wrap=True, markup=False, highlight=False)
    verdict = (
        "nothing is missing on this machine" if not lacking else f"this machine lacks {len(lacking)} of what it needs"
    )
    console.print(f"{path}: the config is valid; {verdict}", markup=False, highlight=False, soft_wrap=True)


def _plan(config: Config, path: str) -> Table:
    table = Table(title=f"Plan of {path}", title_justify="left", show_header=False)
    train, sample, weights = config.train, config.sample, config.reward.weights.as_dict()
    policy = "embedded, warm-started here" if config.policy.model == "small" else config.policy.model
    adapter = f"LoRA rank {config.lora.rank}, alpha {config.lora.alpha}" if config.lora.enabled else "all weights"
    table.add_row("policy", f"{policy}; trains {adapter}")
    table.add_row(
        "a step",
        f"{sample.groups_per_step} group(s) of {sample.group_size} rollouts of at most {sample.max_completion_length} "
        f"tokens, temperature {sample.temperature:g}, top_p {sample.top_p:g}, top_k {sample.top_k}",
    )
    table.add_row(
        "reward",
        ", ".join(f"{weight:g} {name}{_kind(config, name)}" for name, weight in weights.items() if weight > 0),
    )
    table.add_row("references", f"{config.pool.references} of the pool {config.pool.source}, half love, half okay")
    table.add_row(
        "update",
        f"{train.loss_type}, rewards scaled by {train.scale_rewards}, {train.num_iterations} iteration(s), "
        f"{train.optimizer} at {train.learning_rate:g} {train.schedule}",
    )
    for name, line in _estimates(config):
        table.add_row(name, line)
    table.add_row("run", f"{config.run.steps} steps, {config.run.steps * config.rollouts_per_step} paintings")
    return table


def _estimates(config: Config) -> list[tuple[str, str]]:
    """What the run will take, as far as the config alone tells."""
    found, parts, reward = [], memory(config), config.reward
    if parts is not None:
        found.append(("memory", f"about {sum(parts.values()):.0f} GB where the models live: {_parts(parts)}"))
    if reward.judge == "vlm":
        cost = judge_setup.cost_estimate(
            reward.vlm, config.run.steps, config.rollouts_per_step, config.pool.references, config.subject.criteria
        )
        money = "no price is configured" if cost.money is None else f"{cost.money:.2f} in money"
        found.append(
            ("judge", f"at most {cost.calls:,} calls, {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out: {money}")
        )
    return found


def memory(config: Config) -> dict[str, float] | None:
    """Gigabytes (1e9 bytes) by part, of what lives on the policy's device; None for the small policy beside stand-ins.

    The policy's weights by the billions in its name ("35B"), 2 bytes each on a GPU; caches, activations and the
    adapter's optimizer by WORKING of them.
    """
    on_gpu = config.policy.device != "cpu"
    parts: dict[str, float] = {}
    policy = billions(config.policy.model)
    if policy is not None:
        size = policy * (2.0 if on_gpu and config.policy.dtype != "float32" else 4.0)
        parts |= {"policy": size, "caches and activations": WORKING * size}
    if config.reward.preference == "hpsv3" and (config.reward.hpsv3.device == "cpu") != on_gpu:
        parts["HPSv3"] = hps_files.memory_gb(config.reward.hpsv3, on_gpu)
    vlm = config.reward.vlm
    here = config.reward.judge == "vlm" and vlm.backend == "transformers" and (vlm.device == "cpu") != on_gpu
    judge = billions(vlm.model) if here else None
    if judge is not None:
        parts["judge"] = judge * {"8bit": 1.0, "4bit": 0.56}.get(vlm.quantization, 2.0 if on_gpu else 4.0)
    return parts or None


def billions(model: str) -> float | None:
    """Billions of weights that a model's name speaks of: 35 of "Qwen3.5-35B-A3B" (A3B are the active ones)."""
    match = re.search(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)B(?![A-Za-z])", Path(model).name)
    return float(match[1]) if match else None


def _parts(parts: dict[str, float]) -> str:
    return ", ".join(f"{size:.0f} {name}" for name, size in parts.items())


def _kind(config: Config, term: str) -> str:
    kind = {"preference": config.reward.preference, "judge": config.reward.judge}.get(term)
    return "" if kind is None else f" ({kind.replace('_', '-')})"


def _settings(config: Config) -> Table:
    """The resolved settings; what differs from its default is bold."""
    table = Table(title="Settings", title_justify="left")
    table.add_column("setting")
    table.add_column("value", overflow="fold")
    table.add_column("meaning")
    default, meaning = flatten(Config()), documentation(Config)
    for name, value in flatten(config).items():
        shown = ", ".join(value) if isinstance(value, tuple) else str(value)
        table.add_row(name, shown if value == default[name] else f"[bold]{shown}[/]", meaning[name])
    return table


@dataclass(frozen=True)
class Missing:
    """One thing that the run needs and this machine lacks. fetched: the run itself downloads it."""

    text: str
    fetched: bool = False


def missing(config: Config) -> list[Missing]:
    """What the run needs and this machine does not have, one line each."""
    return [
        *_missing_policy(config),
        *_missing_scorers(config),
        *_missing_memory(config),
        *_missing_pool(config),
        *_missing_studio(config),
    ]


def refuse_missing(config: Config) -> None:
    """SetupError in one line when something is missing that the run cannot fetch by itself."""
    lacking = [part.text for part in missing(config) if not part.fetched]
    if lacking:
        raise SetupError("; ".join(lacking))


def _missing_policy(config: Config) -> list[Missing]:
    settings, found = config.policy, []
    if settings.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            found.append(Missing('a GPU: [policy] device is "cuda" and torch sees none'))
    local = settings.model == "small" or Path(settings.model).exists()
    if not local and not _cached(settings.model, settings.revision):
        text = f"policy weights: {settings.model} is not in the local Hub cache; the run downloads it"
        found.append(Missing(text, fetched=True))
    return found


def _missing_scorers(config: Config) -> list[Missing]:
    found = []
    if config.reward.preference == "hpsv3":
        # What lies on the Hub at a pinned commit is downloaded when the scorer is built.
        found += [
            Missing(f"preference scorer: {line}", fetched="hf download" in line)
            for line in hps_files.missing_pieces(config.reward.hpsv3)
        ]
    if config.reward.judge == "vlm":
        found += [Missing(line) for line in judge_setup.missing(config.reward.vlm)]
    return found


def _missing_memory(config: Config) -> list[Missing]:
    """A line where the models do not fit on the GPU, or where there is none for them."""
    parts = memory(config)
    if config.policy.device == "cpu" or parts is None:
        return []
    import torch

    there = torch.cuda.get_device_properties(0).total_memory / 1e9 if torch.cuda.is_available() else 0.0
    needed = sum(parts.values())
    if needed <= there:
        return []
    has = f"it has {there:.0f}" if there else "there is none"
    return [Missing(f"memory: about {needed:.0f} GB are needed on a GPU ({_parts(parts)}); {has}")]


def _missing_pool(config: Config) -> list[Missing]:
    pool = config.pool
    if pool.source == "embedded" or Path(pool.source).is_dir():
        return []
    if _cached(pool.source, pool.revision, "dataset", "metadata.jsonl"):
        return []
    where = f"{pool.source} at {pool.revision or 'no revision'}"
    return [Missing(f"pool: {where} is not in the local Hub cache; the run downloads it", fetched=True)]


def _missing_studio(config: Config) -> list[Missing]:
    found = []
    for look in (find_browser, find_driver):
        try:
            look(config.render)
        except SetupError as error:
            found.append(Missing(f"studio: {error}"))
    return found


def _cached(repository: str, revision: str, kind: str = "model", file: str = "config.json") -> bool:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, file, revision=revision or None, repo_type=kind)
    return isinstance(found, str)
