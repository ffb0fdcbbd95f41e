"""--check: the plan of a run as a table, and what this machine lacks for it. Nothing is started or trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grpo.config import Config
from grpo.memory import plan, remedy
from grpo.publish.settings import lacking
from grpo.tracking import absent
from render.chromium import find_browser, find_driver
from render.errors import SetupError
from render.reading import documentation, flatten
from reward import hps_files, judge_setup


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
    train, sample = config.train, config.sample
    policy = "embedded, warm-started here" if config.policy.model == "small" else config.policy.model
    adapter = f"LoRA rank {config.lora.rank}, alpha {config.lora.alpha}" if config.lora.enabled else "all weights"
    table.add_row("policy", f"{policy}; trains {adapter}")
    table.add_row(
        "a step",
        f"{sample.prompts_per_step} group(s) of {sample.group_size} rollouts of at most {sample.max_completion_length} "
        f"tokens, temperature {sample.temperature:g}, top_p {sample.top_p:g}, top_k {sample.top_k}",
    )
    for name, line in _reward(config):
        table.add_row(name, line)
    table.add_row(
        "update",
        f"{train.loss_type}, rewards scaled by {train.scale_rewards}, {train.num_iterations} iteration(s), "
        f"{train.optimizer} at {train.learning_rate:g} {train.schedule}",
    )
    for name, line in _estimates(config):
        table.add_row(name, line)
    what = "sketches, none painted" if config.reward.task == "fills" else "paintings"
    table.add_row("run", f"{config.run.steps} steps, {config.run.steps * config.rollouts_per_step} {what}")
    return table


def _reward(config: Config) -> list[tuple[str, str]]:
    if config.reward.task == "fills":
        return [("reward", f"the control task: exp(-((n - {config.reward.target_fills}) / 10)^2), n times brush.fill(")]
    weights = config.reward.weights.as_dict()
    terms = ", ".join(f"{weight:g} {name}{_kind(config, name)}" for name, weight in weights.items() if weight > 0)
    return [
        ("reward", terms),
        ("references", f"{config.pool.references} of the pool {config.pool.source}, half love, half okay"),
    ]


def _estimates(config: Config) -> list[tuple[str, str]]:
    """What the run will take, as far as the config alone tells."""
    found, parts, reward = [], plan(config), config.reward
    if parts is not None:
        found.append(("memory", f"about {sum(parts.values()):.0f} GB where the policy lives"))
        found += [(f"  {part}", f"{size:.1f} GB") for part, size in parts.items()]
    if reward.judge == "vlm":
        cost = judge_setup.cost_estimate(
            reward.vlm, config.run.steps, config.rollouts_per_step, config.pool.references, config.subject.criteria
        )
        money = "no price is configured" if cost.money is None else f"{cost.money:.2f} in money"
        found.append(
            ("judge", f"at most {cost.calls:,} calls, {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out: {money}")
        )
    return found


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
    if config.reward.task == "fills":
        return [*_missing_policy(config), *_missing_memory(config), *_missing_companions(config)]
    return [
        *_missing_policy(config),
        *_missing_preference(config),
        *_missing_judge(config),
        *_missing_memory(config),
        *_missing_pool(config),
        *_missing_studio(config),
        *_missing_companions(config),
    ]


def refuse_missing(config: Config) -> None:
    """SetupError in one line when something is missing that the run cannot fetch by itself."""
    _refuse(missing(config))


def refuse_missing_painting(config: Config) -> None:
    """The same of what sampling and painting need; scorers may be missing."""
    _refuse([*_missing_policy(config), *([] if config.reward.task == "fills" else _missing_studio(config))])


def _refuse(parts: list[Missing]) -> None:
    lacking = [part.text for part in parts if not part.fetched]
    if lacking:
        raise SetupError("; ".join(lacking))


def scorers_not_at_hand(config: Config) -> dict[str, str]:
    """Why the pool, the preference scorer or the judge is not on this machine, by name; nothing is fetched for it."""
    found: dict[str, str] = {}
    pool = _missing_pool(config)
    if pool:
        found |= dict.fromkeys(("pool", "preference", "judge"), pool[0].text.removesuffix("; the run downloads it"))
    for name, parts in (("preference", _missing_preference(config)), ("judge", _missing_judge(config))):
        if parts:
            found.setdefault(name, parts[0].text)
    return found


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


def _missing_preference(config: Config) -> list[Missing]:
    if config.reward.preference != "hpsv3":
        return []
    # What lies on the Hub at a pinned commit is downloaded when the scorer is built.
    return [
        Missing(f"preference scorer: {line}", fetched="hf download" in line)
        for line in hps_files.missing_pieces(config.reward.hpsv3)
    ]


def _missing_judge(config: Config) -> list[Missing]:
    if config.reward.judge != "vlm":
        return []
    return [Missing(line) for line in judge_setup.missing(config.reward.vlm)]


def _missing_companions(config: Config) -> list[Missing]:
    return [Missing(line) for line in (absent(config.tracking), lacking(config.publish)) if line]


def _missing_memory(config: Config) -> list[Missing]:
    """A line where the models do not fit on the GPU, or where there is none for them."""
    parts = plan(config)
    if config.policy.device == "cpu" or parts is None:
        return []
    import torch

    there = torch.cuda.get_device_properties(0).total_memory / 1e9 if torch.cuda.is_available() else 0.0
    needed = sum(parts.values())
    if needed <= there:
        return []
    if not there:
        return [Missing(f"memory: about {needed:.0f} GB are needed on a GPU, and there is none")]
    text = f"memory: about {needed:.0f} GB are needed on the GPU, which has {there:.0f}; {remedy(config, parts)}"
    return [Missing(text)]


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
