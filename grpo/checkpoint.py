"""Checkpoints: whole or absent.

    checkpoints/step_0012/
        adapter/         in peft's format, with its record and its model card (adapter.py)
        weights.safetensors   instead of adapter/ when every weight is trained
        optimizer.pt     moments, in their own dtype
        state.json       step, fingerprint of the base weights

A checkpoint is written into a temporary folder, every file is flushed to the disk, and the folder is renamed: a crash
or a full disk leaves the older checkpoints as they were. No random state is saved: each step seeds itself from run seed
and step (rollout.seed_everything), so there is nothing to restore and nothing to restore in the wrong order.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from grpo import adapter
from grpo.policy import Policy
from render.errors import UserError


def save(folder: Path, step: int, policy: Policy, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> Path:
    """Write checkpoint `step` under `folder` and return its path. OSError of the disk travels on; nothing half-written
    stays behind."""
    final = folder / f"step_{step:04d}"
    temporary = folder / f".part_{step:04d}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        if policy.has_adapter:
            adapter.save(temporary / "adapter", policy)
        else:
            weights = {name: weight.detach().contiguous() for name, weight in policy.trainable().items()}
            save_file(weights, temporary / "weights.safetensors")
        torch.save(optimizer.state_dict(), temporary / "optimizer.pt")
        (temporary / "state.json").write_text(json.dumps({**state, "step": step}, indent=1), encoding="utf-8")
        for path in temporary.rglob("*"):
            if path.is_file():
                _flush(path)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(temporary, final)
        _flush(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return final


def load(path: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put weights and moments back and return the state. Raises UserError when the checkpoint does not fit the policy:
    a missing or unexpected tensor is never passed over."""
    with _whole(path):
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        _load_weights(path, policy)
        moments = torch.load(path / "optimizer.pt", map_location=policy.device, weights_only=True)
    optimizer.load_state_dict(moments)
    return dict(state)


def find(path: Path) -> tuple[Path, str]:
    """What `path` names: the folder to load weights from, and a name for people. A run folder stands for its newest
    checkpoint, a checkpoint's adapter/ for the checkpoint. Raises UserError when it is none of them."""
    place = path.resolve()
    if (place / "adapter_config.json").is_file():
        if not (place.parent / "state.json").is_file():
            return place, place.name
        place = place.parent
    if not (place / "state.json").is_file():
        newest = latest(place / "checkpoints")
        if newest is None:
            raise UserError(
                f"{path}: neither an adapter (adapter_config.json), nor a checkpoint (state.json), "
                "nor a run folder that holds a checkpoint"
            )
        place = newest
    return place, f"{place.parent.parent.name}_{place.name}" if place.parent.name == "checkpoints" else place.name


def load_weights(path: Path, policy: Policy, base: str) -> None:
    """The weights alone, of a checkpoint or of an adapter by itself. base: fingerprint of the policy's frozen weights,
    which must be those that a checkpoint was trained on. Raises UserError as `load` does."""
    with _whole(path):
        if (path / "state.json").is_file():
            trained_on = json.loads((path / "state.json").read_text(encoding="utf-8"))["base"]
            if trained_on != base:
                raise UserError(f"{path}: was trained on other base weights ({trained_on}, here {base})")
        _load_weights(path, policy)


def _load_weights(path: Path, policy: Policy) -> None:
    if policy.has_adapter:
        adapter.load(path if (path / "adapter_config.json").is_file() else path / "adapter", policy)
    else:
        _copy(load_file(path / "weights.safetensors"), policy.trainable(), path)


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Whatever reading a damaged or missing file raises becomes one line."""
    try:
        yield
    # What torch.load raises on a damaged file depends on where the damage is.
    except (OSError, ValueError, RuntimeError, LookupError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise UserError(f"{path}: not a whole checkpoint: {type(error).__name__} {reason}") from error


def _copy(saved: dict[str, torch.Tensor], weights: dict[str, torch.nn.Parameter], path: Path) -> None:
    odd = sorted(set(saved) ^ set(weights))
    if odd:
        raise UserError(f"{path}: the weights do not fit the policy; first differing tensor: {odd[0]}")
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(saved[name])


def latest(folder: Path) -> Path | None:
    """The newest whole checkpoint, or None."""
    return max((path for path in folder.glob("step_*") if (path / "state.json").exists()), key=_step, default=None)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step_"))


def prune(folder: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints, and what an interrupted save left."""
    for path in sorted(folder.glob("step_*"), key=_step)[:-keep]:
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(".part_*"):
        shutil.rmtree(path, ignore_errors=True)


def fingerprint(policy: Policy) -> str:
    """A hash of the frozen weights that an adapter belongs to (of their sums, so that a large model takes seconds)."""
    digest = hashlib.sha256()
    for name, weight in policy.model.named_parameters():
        if policy.has_adapter and not weight.requires_grad:
            total = weight.detach().double().sum().item() if weight.is_floating_point() else int(weight.long().sum())
            digest.update(f"{name} {tuple(weight.shape)} {total!r}\n".encode())
    return digest.hexdigest()[:16]


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
