"""The cards of what goes up: a README.md with the header that the Hub reads, for the adapter and for its rollouts.

The part on loading the adapter, with the class that it needs, is the card that grpo.adapter wrote beside the weights.
Around it: recipe, curves, contact sheets, licences as far as they are known without asking anybody.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo.publish.secrets import Cleaner

OURS = "mit"
UNKNOWN = "unknown"
TAGS = ("lora", "grpo", "p5.brush", "code-generation", "art")
# Upper bounds of the Hub's size classes, in rows.
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
CAPTIONS = {
    "curve": "Reward over the steps, as paid and without the luck of the draw of references.",
    "step": "Contact sheet of step {step}: every rollout with its reward and advantage, none picked.",
    "before_after": "Samples of the same prompts and seeds before the first step and after the last one, none picked.",
}


@dataclass(frozen=True)
class Facts:
    """What the cards say. config: cleaned tables of config.toml. policy: cleaned policy.json of the adapter.

    metrics: rows of the run's table. outcomes: rollouts by outcome. painted: how many have a painting. pictures: paths
    in the repository. pool: licence of the pool. embedded: the base's weights are in the repository too.
    """

    name: str
    dataset: str
    run: str
    step: int
    config: Mapping[str, Any]
    policy: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    outcomes: Mapping[str, int]
    painted: int
    pictures: tuple[str, ...]
    pool: str
    embedded: bool


# --- the adapter ----------------------------------------------------------------------------------------------------


def model_card(facts: Facts, body: str) -> str:
    """The adapter's card. body: the one beside the weights, cleaned; its header is replaced."""
    folder = facts.name.partition("/")[2]
    fetch = f"```\nhf download {facts.name} --local-dir {folder} && cd {folder}\n```\n\nIn this folder:"
    written = re.sub(r"\A---\n.*?\n---\n", "", body, flags=re.DOTALL).strip()
    parts = [
        _header(_model_header(facts)),
        written.replace("In this folder:", fetch, 1),
        "## How it was trained",
        f"Run `{facts.run}`, adapter of step {facts.step} of {facts.config['run']['steps']}. "
        f"[config.toml](config.toml) holds every setting, [metrics.csv](metrics.csv) a row a step, "
        f"[{facts.dataset}](https://huggingface.co/datasets/{facts.dataset}) every rollout with its painting.",
        _table(_recipe(facts.config)),
        *_results(facts),
        *_gallery(facts),
        "## Licences",
        _table(_licences(facts)),
    ]
    return "\n\n".join(parts) + "\n"


def _model_header(facts: Facts) -> dict[str, Any]:
    head: dict[str, Any] = {}
    if facts.policy["revision"]:
        head["base_model"] = facts.policy["base"]
    head |= {"library_name": "peft", "tags": list(TAGS), "datasets": [facts.dataset]}
    if facts.embedded and facts.pool == OURS:
        head["license"] = OURS
    return head


def _recipe(config: Mapping[str, Any]) -> dict[str, str]:
    sample, train, reward, subject = config["sample"], config["train"], config["reward"], config["subject"]["name"]
    rows = {
        "subject": subject if isinstance(subject, str) else "; ".join(subject),
        "rollouts of a step": f"{sample['prompts_per_step']} x {sample['group_size']} (prompts x group), at most "
        f"{sample['max_completion_length']} tokens each",
        "sampling": f"temperature {sample['temperature']:g}, top_p {sample['top_p']:g}, top_k {sample['top_k']}",
        "loss": f"{train['loss_type']}, rewards scaled by {train['scale_rewards']}, clip {train['clip_low']:g} and "
        f"{train['clip_high']:g}, beta {train['beta']:g}, num_iterations {train['num_iterations']}",
        "optimizer": f"{train['optimizer']}, learning rate {train['learning_rate']:g} {train['schedule']}, "
        f"{train['warmup_steps']} steps of warm-up",
    }
    if reward["task"] == "fills":
        return {**rows, "reward": f"the control task: {reward['target_fills']} times `brush.fill(` in the text"}
    kinds = {"preference": _scorer(reward, "preference"), "judge": _scorer(reward, "judge")}
    shares = [
        f"{weight:g} {term}" + (f" ({kinds[term]})" if term in kinds else "")
        for term, weight in reward["weights"].items()
        if weight > 0
    ]
    pool = config["pool"]
    commit = f" at {pool['revision']}" if pool["revision"] else ""
    return {
        **rows,
        "reward": ", ".join(shares),
        "pool": f"{pool['source']}{commit}, {pool['references']} references a step, {pool['reference_policy']}",
        "painting": f"p5.brush in Chromium, profile {config['render']['profile']}, seed {config['render']['seed']}",
        "seed": str(config["run"]["seed"]),
    }


def _scorer(reward: Mapping[str, Any], term: str) -> str:
    """Who gives that term."""
    if reward[term] == "stand_in":
        return "an embedded stand-in, no model"
    if term == "judge":
        return f"{reward['vlm']['model']}, pairwise"
    return f"HPSv3, {reward['hpsv3']['weights']}"


def _results(facts: Facts) -> list[str]:
    """Mean reward of the first and the last third of the steps, and what became of the rollouts."""
    rewards = [row["reward"] for row in facts.metrics if isinstance(row.get("reward"), (int, float))]
    if not rewards:
        return []
    third = max(1, len(rewards) // 3)
    rows = {
        "steps": str(len(facts.metrics)),
        "reward, first third": f"{statistics.fmean(rewards[:third]):.3f}",
        "reward, last third": f"{statistics.fmean(rewards[-third:]):.3f}",
        "rollouts": _counts(facts),
    }
    return ["## What came of it", _table(rows)]


def _counts(facts: Facts) -> str:
    parts = [f"{facts.outcomes.get(outcome, 0):,} {outcome}" for outcome in ("scored", "rejected", "unscored")]
    return f"{sum(facts.outcomes.values()):,} ({', '.join(parts)})"


def _gallery(facts: Facts) -> list[str]:
    parts = []
    for path in facts.pictures:
        stem = Path(path).stem
        kind, _, number = stem.partition("_") if stem.startswith("step_") else (stem, "", "0")
        caption = CAPTIONS[kind].format(step=int(number))
        parts.append(f"![{stem}]({path})\n\n*{caption}*")
    return ["## Curve and paintings", *parts] if parts else []


# --- the rollouts ---------------------------------------------------------------------------------------------------


def dataset_card(facts: Facts, columns: Mapping[str, tuple[str, str]]) -> str:
    """The dataset's card. columns: name -> type and meaning."""
    count = sum(facts.outcomes.values())
    look = 'best["image"].show()' if "image" in columns else 'print(best["sketch"])'
    head = {
        "pretty_name": f"Rollouts of {facts.name}",
        "tags": [tag for tag in TAGS if tag != "lora"],
        "size_categories": [next((name for limit, name in SIZES if count < limit), "1M<n<10M")],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": "rollouts/**"}],
                "features": [{"name": name, "dtype": kind} for name, (kind, _) in columns.items()],
            }
        ],
    }
    parts = [
        _header(head),
        f"# Rollouts of {facts.name}",
        f"Everything that a policy wrote while it learnt to paint with p5.brush by GRPO. Rollouts: {_counts(facts)}; "
        f"{facts.painted:,} have a painting. Sorted by `step`, early rows show the policy before training. "
        f"The adapter is [{facts.name}](https://huggingface.co/{facts.name}).",
        "```python\nfrom datasets import load_dataset\n"
        f'rollouts = load_dataset("{facts.dataset}", split="train")\n'
        'best = rollouts.filter(lambda row: row["reward"] is not None).sort("reward", reverse=True)[0]\n'
        f"{look}\n```",
        "## Columns",
        _table({f"`{name}`": f"{kind}: {meaning}" for name, (kind, meaning) in columns.items()}),
        "`outcome` tells a bad sketch from a failed machine: a rejected one has reward 0.0, an unscored one has none "
        "and was left out of training. [metrics.csv](metrics.csv) holds a row a step, [config.toml](config.toml) "
        "every setting.",
        "## Licences",
        _table(_licences(facts)),
    ]
    return "\n\n".join(parts) + "\n"


# --- licences -------------------------------------------------------------------------------------------------------


def pool_licence(toml: str, cleaner: Cleaner) -> str:
    """The licence of the pool, from the card in its folder or in the cache of the Hub; "unknown" where neither says."""
    pool = tomllib.loads(toml)["pool"]
    if pool["source"] == "embedded":
        return OURS
    card = Path(pool["source"]) / "README.md"
    if pool["revision"] and not card.parent.is_dir():
        card = _cached(pool["source"], pool["revision"]) or card
    if not card.is_file():
        return UNKNOWN
    head = re.match(r"---\n(.*?)\n---", card.read_text(encoding="utf-8", errors="replace"), re.DOTALL)
    found = re.search(r"^license:[ \t]*[\"']?([^\"'\n]+?)[\"']?[ \t]*$", head.group(1), re.MULTILINE) if head else None
    return cleaner.text(found.group(1)) if found else UNKNOWN


def _cached(dataset: str, revision: str) -> Path | None:
    """The card of a dataset of the Hub that was fetched before."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    with contextlib.suppress(HFValidationError):  # a folder of another machine
        cached = try_to_load_from_cache(dataset, "README.md", repo_type="dataset", revision=revision)
        return Path(cached) if isinstance(cached, str) else None
    return None


def _licences(facts: Facts) -> dict[str, str]:
    base, pool = facts.policy["base"], facts.config["pool"]["source"]
    if facts.embedded:
        about_base = f"{OURS}: the embedded policy, warm-started by this project; its weights are in `base/`"
    elif facts.policy["revision"]:
        about_base = f"that of [{base}](https://huggingface.co/{base}); an adapter is of no use without it"
    else:
        about_base = f"{UNKNOWN}: `{base}`, a folder of the machine it was trained on"
    rows = {"base": about_base}
    if facts.config["reward"]["task"] != "fills":
        place = "the embedded pool" if pool == "embedded" else f"`{pool}`"
        rows["pool of references"] = f"{facts.pool}: {place}; none of its paintings are in here"
    return {**rows, "p5.brush, p5": "MIT, LGPL-2.1; the sketches call them, neither is in here"}


# --- Markdown -------------------------------------------------------------------------------------------------------


def _header(values: Mapping[str, Any]) -> str:
    """YAML: a line a key, values as JSON, which YAML reads."""
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---"])


def _table(rows: Mapping[str, str]) -> str:
    body = [f"| {key} | {_cell(value)} |" for key, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *body])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
