"""The pool: paintings of two tiers, `love` and `okay`, that stand for the taste which the policy learns.

Format (that of the public pool): a folder with metadata.jsonl, one JSON object a line with `tier`, `file_name` (the
image, usually images/NAME.png) and `source_file` (the sketch, usually sources/NAME.js); other keys are kept as they
are. A line whose image is absent is painted from its source, once: the PNG is cached under a key made of the source,
the seed and a fingerprint of everything else that decides pixels.

Which of them a step compares with is in reward.draw.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from render.disk import locked, write_whole
from render.errors import ConfigError, FarmError, SetupError
from render.farm import Farm
from render.painting import Outcome, Painting
from reward.base import Reference
from reward.settings import PoolSettings

TIERS = ("love", "okay")
EMBEDDED = Path(__file__).parent.parent / "embedded_pool"
CACHE = Path(".cache") / "pool"
SEED = 0
STUDIO = Path(__file__).parent.parent.parent / "render" / "studio"

Paint = Callable[[str, int], Painting]


@dataclass(frozen=True)
class Pool:
    """The references, sorted by tier and name, and where they came from."""

    references: tuple[Reference, ...]
    origin: str

    def tier(self, name: str) -> tuple[Reference, ...]:
        return tuple(reference for reference in self.references if reference.tier == name)

    def without(self, name: str) -> Pool:
        """The same pool, one painting left out."""
        return Pool(tuple(reference for reference in self.references if reference.name != name), self.origin)


@dataclass(frozen=True)
class _Entry:
    """One line of metadata.jsonl, resolved: at least one of image and source exists."""

    name: str
    tier: str
    image: Path | None
    source: str
    meta: dict[str, Any]
    where: str


def studio_fingerprint(painter: str) -> str:
    """Hash of what decides the pixels of a sketch beside its text and seed: the painter (rasterizer and patches, as the
    farm's info names them), the page and the pinned libraries."""
    digest = hashlib.sha256(painter.encode())
    for path in sorted(STUDIO.iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def load_pool(
    settings: PoolSettings,
    paint: Paint | None = None,
    *,
    fingerprint: str = "",
    cache: Path = CACHE,
    parallel: int = 1,
    on_painted: Callable[[int, int], None] = lambda done, total: None,
) -> Pool:
    """The pool that the settings name.

    paint: renders a sketch that has no image, called from `parallel` threads at once; None where images are expected.
    on_painted(done, total): called after each painting that was not in the cache.
    Raises ConfigError (folder, line or tier wrong, a sketch that does not paint), SetupError (the Hub cannot be
    reached, or nothing to paint with) and FarmError (the farm failed while painting).
    """
    folder = _folder(settings)
    entries = _read_metadata(folder / "metadata.jsonl")
    missing = [entry for entry in entries if entry.image is None]
    images = _painted(missing, paint, fingerprint, cache, parallel, on_painted) if missing else {}
    references = [
        Reference(
            entry.name,
            entry.tier,
            entry.image.read_bytes() if entry.image else images[entry.name],
            entry.source,
            entry.meta,
        )
        for entry in entries
    ]
    pool = Pool(tuple(sorted(references, key=lambda reference: (reference.tier, reference.name))), str(folder))
    for tier, needed in shares(settings.references).items():
        if len(pool.tier(tier)) < max(needed, 1):
            raise ConfigError(
                f"[pool] references = {settings.references} takes {needed} paintings of tier {tier} a step, "
                f"but {folder} holds {len(pool.tier(tier))}"
            )
    return pool


def unpainted(settings: PoolSettings) -> int:
    """How many paintings of the pool have no image and must be painted from their sketch."""
    return sum(entry.image is None for entry in _read_metadata(_folder(settings) / "metadata.jsonl"))


def paint_pool(settings: PoolSettings, farm: Farm, on_painted: Callable[[int, int], None]) -> Pool:
    """The pool, its missing images painted by the farm that paints the candidates too."""
    return load_pool(
        settings,
        lambda source, seed: farm.submit(source, seed).result(),
        fingerprint=studio_fingerprint(f"{farm.info['rasterizer']} {' '.join(farm.info['patches'])}"),
        parallel=int(farm.info["workers"]),
        on_painted=on_painted,
    )


def shares(count: int) -> dict[str, int]:
    """`count` references split over the tiers in equal parts by largest remainder; the earlier tier wins a tie."""
    exact = count / len(TIERS)
    split = {tier: int(exact) for tier in TIERS}
    for tier in TIERS[: count - sum(split.values())]:
        split[tier] += 1
    return split


def _folder(settings: PoolSettings) -> Path:
    if settings.source == "embedded":
        return EMBEDDED
    folder = Path(settings.source).expanduser()
    if folder.is_dir():
        return folder
    if _on_the_hub(settings.source):
        return _download(settings.source, settings.revision)
    raise ConfigError(f'[pool] source = "{settings.source}": no such folder, nor "embedded", nor a dataset "org/name"')


def _on_the_hub(source: str) -> bool:
    """Whether a source that is no folder has the form of a dataset's name."""
    return source.count("/") == 1 and not source.startswith((".", "/", "~"))


def at_hand(settings: PoolSettings) -> Path | None:
    """The pool's folder where it is on this machine, or in the local cache of the Hub; nothing is fetched."""
    folder = EMBEDDED if settings.source == "embedded" else Path(settings.source).expanduser()
    if folder.is_dir():
        return folder
    if not _on_the_hub(settings.source) or not settings.revision:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        found = snapshot_download(
            settings.source, repo_type="dataset", revision=settings.revision, local_files_only=True
        )
    except LocalEntryNotFoundError:
        return None
    return Path(found)


def _download(dataset: str, revision: str) -> Path:
    """The snapshot of a Hub dataset at a pinned commit, from the local Hub cache where it is already there."""
    if not revision:
        raise ConfigError(f'[pool] source = "{dataset}" needs revision = "<commit>": the pool is part of the reward')
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(dataset, repo_type="dataset", revision=revision))
    # The transport under huggingface_hub differs between its versions, and its errors share no base class.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SetupError(
            f"[pool] dataset {dataset} at {revision} could not be fetched from the Hugging Face Hub "
            f'({reason}); "embedded" needs no network'
        ) from error


def _read_metadata(path: Path) -> list[_Entry]:
    if not path.is_file():
        raise ConfigError(f"{path.parent} is not a pool: it has no metadata.jsonl")
    entries: list[_Entry] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            entries.append(_read_line(path, line, f"{path}:{number}"))
    seen: dict[str, str] = {}
    for entry in entries:
        if entry.name in seen:
            raise ConfigError(f"{entry.where}: the name {entry.name} stands already at {seen[entry.name]}")
        seen[entry.name] = entry.where
    if not entries:
        raise ConfigError(f"{path} holds no painting")
    return entries


def _read_line(path: Path, line: str, where: str) -> _Entry:
    try:
        meta = json.loads(line)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: not a line of JSON ({error.msg} at column {error.colno})") from error
    if not isinstance(meta, dict):
        raise ConfigError(f"{where}: a JSON object is needed, not {type(meta).__name__}")
    if meta.get("tier") not in TIERS:
        raise ConfigError(f"{where}: tier must be one of {', '.join(TIERS)}, not {meta.get('tier')!r}")
    image = _member(path.parent, meta, "file_name", where)
    source = _member(path.parent, meta, "source_file", where)
    if image is None and source is None:
        raise ConfigError(f"{where}: neither the image (file_name) nor the sketch (source_file) is there")
    name = (image or source or path).stem
    text = source.read_text(encoding="utf-8") if source else ""
    return _Entry(name, meta["tier"], image, text, meta, where)


def _member(folder: Path, meta: dict[str, Any], key: str, where: str) -> Path | None:
    """The existing file that meta[key] names, or None."""
    value = meta.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where}: {key} must be a path inside the pool, not {value!r}")
    path = folder / value
    # A pool may come from the network: its metadata must not name files outside its own folder. The Hub cache keeps
    # files as links into a folder beside the snapshot, so the path is checked as written, not as resolved.
    if os.path.isabs(value) or ".." in Path(value).parts:
        raise ConfigError(f"{where}: {key} must be a path inside the pool, not {value!r}")
    return path if path.is_file() else None


def _painted(
    entries: Sequence[_Entry],
    paint: Paint | None,
    fingerprint: str,
    cache: Path,
    parallel: int,
    on_painted: Callable[[int, int], None],
) -> dict[str, bytes]:
    """PNG of each entry by name: from the cache, or painted and cached. One process paints at a time, others wait."""

    def cached(entry: _Entry) -> Path:
        key = hashlib.sha256(json.dumps([entry.source, SEED, fingerprint]).encode()).hexdigest()
        return cache / f"{key}.png"

    def fresh(entry: _Entry) -> None:
        if paint is None:
            raise SetupError(f"{entry.where}: the image is not there, and no render farm was given to paint it")
        painting = paint(entry.source, SEED)
        if painting.outcome is Outcome.UNSCORED:
            raise FarmError(f"{entry.where}: the farm did not paint the sketch ({painting.reason}: {painting.detail})")
        if painting.outcome is Outcome.REJECTED or painting.png is None:
            raise ConfigError(f"{entry.where}: the sketch does not paint ({painting.reason}: {painting.detail})")
        write_whole(cached(entry), painting.png)

    cache.mkdir(parents=True, exist_ok=True)
    if any(not cached(entry).is_file() for entry in entries):
        with locked(cache / "lock"), ThreadPoolExecutor(max(1, parallel)) as threads:
            # By its file: two entries with the same sketch are painted once.
            wanted = list({cached(entry): entry for entry in entries if not cached(entry).is_file()}.values())
            for done, _ in enumerate(threads.map(fresh, wanted), 1):
                on_painted(done, len(wanted))
    return {entry.name: cached(entry).read_bytes() for entry in entries}
