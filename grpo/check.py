"""--check: the plan of a run as a table, and what this machine lacks for it. Nothing is started or trained."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from grpo.config import Config, flatten
from reward.pool import EMBEDDED


def print_plan(config: Config, path: str, console: Console) -> None:
    """Every setting with its value and meaning, what the run will do, and one line for each missing piece."""
    console.print(_plan(config, path))
    console.print(_settings(config))
    lacking = missing(config)
    for line in lacking:
        console.print(f"missing: {line}", markup=False, highlight=False)
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
    table.add_row("run", f"{config.run.steps} steps, {config.run.steps * config.rollouts_per_step} paintings")
    return table


def _kind(config: Config, term: str) -> str:
    kind = {"preference": config.reward.preference, "judge": config.reward.judge}.get(term)
    return "" if kind is None else f" ({kind.replace('_', '-')})"


def _settings(config: Config) -> Table:
    """The resolved settings; what differs from its default is bold."""
    table = Table(title="Settings", title_justify="left")
    table.add_column("setting")
    table.add_column("value")
    default = flatten(Config())
    for name, value in flatten(config).items():
        shown = ", ".join(value) if isinstance(value, tuple) else str(value)
        table.add_row(name, shown if value == default[name] else f"[bold]{shown}[/]")
    return table


def missing(config: Config) -> list[str]:
    """One line for each thing that the run needs and this machine does not have."""
    found = [*_missing_policy(config), *_missing_scorers(config), *_missing_pool(config)]
    from render.browser import missing_parts

    return [*found, *missing_parts(config.render)]


def _missing_policy(config: Config) -> list[str]:
    settings, found = config.policy, []
    if settings.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            found.append('a GPU: [policy] device is "cuda" and torch sees none')
    if (
        settings.model != "small"
        and not Path(settings.model).exists()
        and not _cached(settings.model, settings.revision)
    ):
        found.append(f"policy weights: {settings.model} is not in the local Hub cache; the run would download it")
    return found


def _missing_scorers(config: Config) -> list[str]:
    found = []
    weights = config.reward.weights
    if config.reward.preference == "hpsv3" and weights.preference > 0:
        found.append('preference scorer HPSv3: this version holds only the stand-in ([reward] preference = "stand_in")')
    if config.reward.judge == "vlm" and weights.judge > 0:
        found.append(
            'judge by a vision-language model: this version holds only the stand-in ([reward] judge = "stand_in")'
        )
    return found


def _missing_pool(config: Config) -> list[str]:
    pool = config.pool
    if pool.source == "embedded":
        return [] if (EMBEDDED / "metadata.jsonl").exists() else [f"embedded pool: {EMBEDDED} holds no metadata.jsonl"]
    if Path(pool.source).is_dir():
        return []
    if _cached(pool.source, pool.revision, "dataset", "metadata.jsonl"):
        return []
    return [
        f"pool: {pool.source} at {pool.revision or 'no revision'} is not in the local Hub cache; the run downloads it"
    ]


def _cached(repository: str, revision: str, kind: str = "model", file: str = "config.json") -> bool:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, file, revision=revision or None, repo_type=kind)
    return isinstance(found, str)
