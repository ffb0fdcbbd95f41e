"""Checkpoints: whole or absent.

    checkpoints/step_0012/
        adapter/         peft's format (adapter_model.safetensors, adapter_config.json), loadable by peft alone
        weights.safetensors   instead of adapter/ when every weight is trained
        optimizer.pt     moments, in their own dtype
        state.json       step, fingerprint of the base weights

A checkpoint is written into a temporary folder, every file is flushed to the disk, and the folder is renamed: a crash
or a full disk leaves the older checkpoints as they were. No random state is saved: each step seeds itself from run seed
and step (rollout.seed_everything), so there is nothing to restore and nothing to restore in the wrong order.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

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
            policy.model.save_pretrained(temporary / "adapter")
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
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        if policy.has_adapter:
            _load_adapter(path / "adapter", policy)
        else:
            _copy(load_file(path / "weights.safetensors"), policy.trainable(), path)
        moments = torch.load(path / "optimizer.pt", map_location=policy.device, weights_only=True)
    # What torch.load raises on a damaged file depends on where the damage is.
    except (OSError, ValueError, RuntimeError, LookupError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise UserError(f"{path}: not a whole checkpoint: {type(error).__name__} {reason}") from error
    optimizer.load_state_dict(moments)
    return dict(state)


def _load_adapter(path: Path, policy: Policy) -> None:
    from peft import get_peft_model_state_dict
    from peft.utils import set_peft_model_state_dict

    saved = load_file(path / "adapter_model.safetensors")
    expected = get_peft_model_state_dict(policy.model)
    odd = sorted(set(saved) ^ set(expected))
    if odd:
        raise UserError(f"{path}: the adapter does not fit the policy; first differing tensor: {odd[0]}")
    set_peft_model_state_dict(policy.model, saved)


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
