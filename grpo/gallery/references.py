"""The pool's paintings that a run's judge compared with, for the page that puts both side by side.

A painting comes from the pool's folder, or from the cache in which the run's farm left it. Left out: any download. A
pool of the Hub is read where it is already in the local cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from render.chromium import KINDS
from render.errors import FarmError, UserError
from render.farm import Farm
from render.settings import RenderSettings
from reward.pool import CACHE, Pool, at_hand, load_pool, paint_pool, studio_fingerprint, unpainted
from reward.settings import PoolSettings

Show = Callable[[str, int, int], None]


def find_pool(settings: PoolSettings, render: RenderSettings, paint: bool, show: Show) -> tuple[Pool | None, str]:
    """The pool with its paintings, or None and why not. paint: paint them once where they are not at hand."""
    try:
        settings = _local(settings)
        why, needs_cache = "its pictures are not at hand", unpainted(settings) > 0
        kinds = KINDS if render.rasterizer == "auto" else (render.rasterizer,)
        for kind in kinds if CACHE.is_dir() or not needs_cache else ():
            try:
                return load_pool(settings, fingerprint=studio_fingerprint(f"{kind} {' '.join(_applied(render))}")), ""
            except UserError as error:
                why = str(error)
        if not paint:
            return None, why
        with Farm(replace(render, workers=0)) as farm:
            return paint_pool(settings, farm, lambda done, total: show("references", done, total)), ""
    except (UserError, FarmError) as error:
        return None, str(error)


def _applied(render: RenderSettings) -> list[str]:
    """The patches in the order in which the page reports them: `blend` is in place last."""
    return sorted(render.patches(), key=lambda patch: patch == "blend")


def _local(settings: PoolSettings) -> PoolSettings:
    """A dataset of the Hub as its folder in the local cache. Raises UserError where it is not there."""
    folder = at_hand(settings)
    if folder is None and settings.revision:
        raise UserError(f"the pool {settings.source} is not in the local cache of the Hub")
    if folder is None or settings.source == "embedded":
        return settings
    return replace(settings, source=str(folder), revision="")
