"""What the gallery needs of a run's config.toml, read leniently: the file may come from another version.

Keys that are missing have their defaults; a folder without a config (samples of grpo.paint) is shown all the same.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from render.settings import PROFILES, RenderSettings
from reward.settings import PoolSettings, RewardSettings

SHOWN = (
    ("policy", "model"),
    ("sample", "group_size"),
    ("sample", "prompts_per_step"),
    ("sample", "temperature"),
    ("train", "loss_type"),
    ("train", "learning_rate"),
    ("reward", "preference"),
    ("reward", "judge"),
    ("pool", "source"),
    ("run", "seed"),
)
Tables = dict[str, Any]


def read_config(folder: Path) -> Tables:
    """The tables of config.toml; empty where it is missing or cannot be read."""
    try:
        return tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def weights(tables: Tables) -> dict[str, float]:
    """Weight of each term; the control task pays its one term whole."""
    reward = tables.get("reward", {})
    if reward.get("task") == "fills":
        return {"fills": 1.0}
    return {**RewardSettings().weights.as_dict(), **reward.get("weights", {})} if tables else {}


def stand_ins(tables: Tables) -> list[str]:
    """Terms whose scorer is a stand-in."""
    reward = {"preference": "stand_in", "judge": "stand_in", **tables.get("reward", {})} if tables else {}
    return [term for term in ("preference", "judge") if reward.get(term) == "stand_in"]


def render_settings(tables: Tables) -> RenderSettings:
    """Those that decide the pixels."""
    found, default = tables.get("render", {}), RenderSettings()
    methods = found.get("methods", default.methods)
    profile = found.get("profile", default.profile)
    known = PROFILES.get(profile, ())
    return RenderSettings(
        profile=profile if profile in PROFILES else default.profile,
        without=tuple(name for name in found.get("without", ()) if name in known),
        rasterizer=found.get("rasterizer", default.rasterizer),
        methods=methods if isinstance(methods, str) else tuple(methods),
        seed=found.get("seed", default.seed),
        max_side=found.get("max_side", default.max_side),
        browser=found.get("browser", default.browser),
        driver=found.get("driver", default.driver),
    )


def pool_settings(tables: Tables) -> PoolSettings:
    found, default = tables.get("pool", {}), PoolSettings()
    return PoolSettings(
        source=found.get("source", default.source), revision=found.get("revision", default.revision), references=2
    )


def described(tables: Tables) -> list[list[str]]:
    """Settings that the page shows of a run: name and value."""
    found = [[f"{table} {key}", tables.get(table, {}).get(key)] for table, key in SHOWN]
    return [[name.replace("_", " "), str(value)] for name, value in found if value not in (None, "")]
