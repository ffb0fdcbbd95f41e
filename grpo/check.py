"""--check: the plan of a run as a table, and what this machine lacks for it. Nothing is started or trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grpo.config import Config, documentation, flatten
from render.chromium import find_browser, find_driver
from render.errors import SetupError


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
    table.add_row("run", f"{config.run.steps} steps, {config.run.steps * config.rollouts_per_step} paintings")
    return table


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
    return [*_missing_policy(config), *_missing_scorers(config), *_missing_pool(config), *_missing_studio(config)]


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
    stand_in = "this version holds only the stand-in"
    found = []
    if config.reward.preference == "hpsv3":
        found.append(Missing(f'preference scorer HPSv3: {stand_in} ([reward] preference = "stand_in")'))
    if config.reward.judge == "vlm":
        found.append(Missing(f'judge by a vision-language model: {stand_in} ([reward] judge = "stand_in")'))
    return found


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
