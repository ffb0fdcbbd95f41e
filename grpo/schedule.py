"""The learning rate of each optimizer step, as a pure function: nothing to save, nothing to restore.

    warm-up   base x (step + 1) / (warmup_steps + 1)   exactly `warmup_steps` steps below base, none of them at 0
    constant  base
    linear    base x (1 - p)                           p = share of the steps after the warm-up that is done
    cosine    base x (1 + cos(pi p)) / 2

Left out: restarts, a floor above 0 (the last step of linear and cosine is still above 0: p < 1).
"""

from __future__ import annotations

import math

SCHEDULES = ("constant", "linear", "cosine")


def learning_rate(step: int, total_steps: int, base: float, warmup_steps: int = 0, kind: str = "constant") -> float:
    """Learning rate of optimizer step `step`, counted from 0, of `total_steps`.

    Raises ValueError for a step outside 0..total_steps - 1, a negative warm-up and an unknown kind.
    """
    if kind not in SCHEDULES:
        raise ValueError(f"kind is {kind!r}: allowed are {', '.join(SCHEDULES)}")
    if warmup_steps < 0 or not 0 <= step < total_steps:
        raise ValueError(
            f"step {step} of {total_steps} with {warmup_steps} warm-up steps: steps count from 0 to total - 1"
        )
    if step < warmup_steps:
        return base * (step + 1) / (warmup_steps + 1)
    done = (step - warmup_steps) / (total_steps - warmup_steps)
    if kind == "linear":
        return base * (1 - done)
    if kind == "cosine":
        return base * (1 + math.cos(math.pi * done)) / 2
    return base
