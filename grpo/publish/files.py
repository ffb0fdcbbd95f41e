"""What of a run goes up: the files of a model repository and of a dataset repository, as they lie there.

    NAME                                          NAME-rollouts
        README.md               the card              README.md                 the card
        adapter_model.safetensors                     rollouts/step_0001/       see grpo.publish.rollouts
        adapter_config.json policy.json               metrics.csv config.toml run.json
        base/                   embedded policy
        images/                 curve, contact sheets
        metrics.csv config.toml
        run.json                which run it is

A folder a step, so that no folder grows large and a step that is up never changes. The adapter is linked into
RUN/publish/adapter first: the run may remove its older checkpoints meanwhile. Texts go through grpo.publish.secrets.
Left out: the optimizer's state, and runs that train every weight.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections import Counter
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from grpo import config as configs
from grpo.folder import read_rows
from grpo.publish import card as cards
from grpo.publish import rollouts
from grpo.publish.secrets import Cleaner
from render.disk import write_whole
from render.errors import UserError

PLACE = "publish"  # in the run's folder: the adapter that is going up, run.json and a lock
MARKER = "run.json"
OWN = ("rollouts/", "images/", "base/")  # folders of ours on the Hub: what a run no longer has is removed there


@dataclass(frozen=True)
class Item:
    """A file: its path in the repository, and where it lies or what is in it."""

    path: str
    content: Path | bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def is_there(self, remote: Any) -> bool:
        """Whether the Hub has these very bytes. remote: huggingface_hub's RepoFile, or None."""
        if remote is None or remote.size != self.size:
            return False
        content = self.content if isinstance(self.content, bytes) else self.content.read_bytes()
        if remote.lfs is not None:
            return bool(remote.lfs.sha256 == sha256(content).hexdigest())
        return bool(remote.blob_id == sha1(b"blob %d\0" % len(content) + content).hexdigest())


@dataclass(frozen=True)
class Repository:
    """kind: model or dataset. parts: files that belong together in one commit, in the order in which they go up."""

    kind: str
    name: str
    parts: tuple[tuple[Item, ...], ...]

    @property
    def items(self) -> list[Item]:
        return [item for part in self.parts for item in part]


@dataclass(frozen=True)
class Publication:
    """A run as it goes up. step: of the adapter. steps: of the rollouts. painted, rollouts: how many."""

    model: Repository
    dataset: Repository
    step: int
    steps: tuple[int, ...]
    painted: int
    rollouts: int


def collect(folder: Path, name: str, step: int | None, keep: bool) -> Publication:
    """Everything of a run that goes up as `name` and `name`-rollouts.

    step: of the checkpoint; None = the newest. keep: link the adapter and note the run's mark in RUN/publish, so that
    an upload can take its time; without it nothing is written. Raises UserError in one line where the folder holds no
    run, no such checkpoint or no adapter.
    """
    if not (folder / "config.toml").is_file():
        raise UserError(f"{folder}: not a run folder (it holds no config.toml)")
    reached, adapter = _adapter(folder, step, keep)
    policy = json.loads((adapter / "policy.json").read_text(encoding="utf-8"))
    cleaner = Cleaner(folder, _places(folder, policy))
    toml = configs.dump(configs.load(folder / "config.toml"))  # with every setting, also those that are newer
    config = cleaner.settings(toml)
    metrics = read_rows(folder / "metrics.jsonl")
    found = list(rollouts.steps(folder, config, cleaner, metrics[-1]["step"] if metrics else 0))
    shared = [Item("config.toml", cleaner.config(toml).encode()), *_files(folder, {"metrics.csv": "metrics.csv"})]
    marker = Item(MARKER, _marker(folder, keep))
    pictures = _files(folder, _pictures(folder))
    base = _base(folder) if config["policy"]["model"] == "small" else []
    facts = cards.Facts(
        name=name,
        dataset=rollouts_name(name),
        run=folder.resolve().name,
        step=reached,
        config=config,
        policy=json.loads(cleaner.text(json.dumps(policy))),
        metrics=metrics,
        outcomes=sum((Counter(step.outcomes) for step in found), Counter()),
        painted=sum(len(step.paintings) for step in found),
        pictures=tuple(item.path for item in pictures),
        pool=cards.pool_licence(toml, cleaner),
        embedded=bool(base),
    )
    body = cleaner.text((adapter / "README.md").read_text(encoding="utf-8"))
    model = (
        Item("README.md", cards.model_card(facts, body).encode()),
        Item("adapter_model.safetensors", adapter / "adapter_model.safetensors"),
        *(
            Item(file, cleaner.text((adapter / file).read_text(encoding="utf-8")).encode())
            for file in ("adapter_config.json", "policy.json")
        ),
        *pictures,
        *base,
        *shared,
        marker,
    )
    parts = [
        (
            Item(f"{step.folder}/metadata.jsonl", step.metadata),
            *(Item(f"{step.folder}/{file}", path) for file, path in step.paintings.items()),
        )
        for step in found
    ]
    card = cards.dataset_card(facts, rollouts.columns(config))
    return Publication(
        Repository("model", name, (model,)),
        Repository("dataset", facts.dataset, ((marker,), *parts, (Item("README.md", card.encode()), *shared))),
        reached,
        tuple(step.number for step in found),
        facts.painted,
        sum(facts.outcomes.values()),
    )


def rollouts_name(name: str) -> str:
    """The dataset's repository, beside the model's."""
    return f"{name}-rollouts"


# --- the parts ------------------------------------------------------------------------------------------------------


def _adapter(folder: Path, step: int | None, keep: bool) -> tuple[int, Path]:
    """The step of a whole checkpoint, and the folder of its adapter. A run removes its older ones at any time."""
    found = sorted(
        (path for path in (folder / "checkpoints").glob("step_*") if (path / "state.json").is_file()), reverse=True
    )
    if not found:
        raise UserError(f"{folder}: no checkpoint yet; a run saves its first one before the first step")
    steps = {int(path.name.removeprefix("step_")): path for path in found}
    if step is not None and step not in steps:
        there = ", ".join(str(number) for number in sorted(steps))
        raise UserError(f"{folder}: no checkpoint of step {step}; there are those of {there}")
    for number, path in steps.items():
        if step is not None and number != step:
            continue
        adapter = path / "adapter"
        if not adapter.is_dir() and path.is_dir():
            raise UserError(f"{path}: holds no adapter ([lora] enabled = false); only adapters are published")
        with contextlib.suppress(FileNotFoundError):
            return number, _linked(adapter, folder / PLACE / "adapter") if keep else adapter
    raise UserError(f"{folder}: its checkpoints were removed while they were read; start again")


def _linked(source: Path, target: Path) -> Path:
    """The same files under another name, which the run does not remove."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in source.iterdir():
        try:
            os.link(file, target / file.name)
        except FileNotFoundError:
            raise
        except OSError:  # a disk without hard links
            shutil.copyfile(file, target / file.name)
    return target


def _marker(folder: Path, keep: bool) -> bytes:
    """Which run this is: by it a repository is known again, and another run's is not overwritten."""
    path = folder / PLACE / MARKER
    if path.is_file():
        return path.read_bytes()
    number = uuid.uuid4().hex if keep else "0" * 32
    content = (json.dumps({"run": folder.resolve().name, "id": number}) + "\n").encode()
    if keep:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)
    return content


def _places(folder: Path, policy: dict[str, Any]) -> dict[str, str]:
    """Absolute paths that the adapter's files name, and what stands for each. A run's folder may have been moved."""
    places = {}
    for key, end in (("base", "/base/model"), ("tokenizer", "/base/tokenizer")):
        place = str(policy[key])
        if place.startswith("/"):
            places[place] = f".{end}" if (folder / end[1:]).is_dir() else f".../{Path(place).name}"
    return places


def _base(folder: Path) -> list[Item]:
    """The embedded policy's frozen weights: nobody else has them."""
    return [
        Item(str(path.relative_to(folder)), path) for path in sorted((folder / "base").rglob("*")) if path.is_file()
    ]


def _pictures(folder: Path) -> dict[str, str]:
    """Pictures of the card: path in the repository -> in the run's folder."""
    sheets = sorted((folder / "sheets").glob("step_*.png"))
    ends = {f"images/{sheet.name}": f"sheets/{sheet.name}" for sheet in (*sheets[:1], *sheets[-1:])}
    return {"images/curve.png": "curve.png", **ends, "images/before_after.png": "probe/before_after.png"}


def _files(folder: Path, wanted: dict[str, str]) -> list[Item]:
    """Those of the wanted files that there are, as they are now: a run goes on writing them."""
    return [Item(path, (folder / place).read_bytes()) for path, place in wanted.items() if (folder / place).is_file()]
