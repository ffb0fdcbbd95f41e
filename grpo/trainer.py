"""The loop of GRPO (Shao et al. 2024), a step at a time:

    references -> sample, paint and score a step's groups -> advantages -> loss and backward in micro-batches
    -> clip -> optimizer -> journal -> checkpoint

The loss is grpo.loss.policy_loss; its denominators are computed over the whole step before the first backward, so that
the gradient does not depend on the cut into micro-batches. With num_iterations = 1 the old log-probabilities are the
new ones, detached; with more they are computed once before the first update, in the same micro-batches.
Rollouts that could not be scored take no part in anything. A step in which no group gives a gradient leaves the weights
untouched (Adam's momentum would move them without evidence). A step whose rollouts are all unscored is sampled again.

Left out: several GPUs, generation in another engine, value functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grpo import checkpoint
from grpo.advantage import GroupStats, advantages
from grpo.config import Config, TrainSettings
from grpo.curves import reward_curve
from grpo.journal import Journal, read_rows, write_error
from grpo.loss import LossStats, Objective, denominators, entropy_threshold, loss_mask, policy_loss
from grpo.metrics import COLUMNS, info_of, scorers, summarise
from grpo.policy import Batch, Policy, collate
from grpo.rollout import Collected, Collector, Rollout, derive_seed, seed_everything
from grpo.schedule import learning_rate
from render.errors import UserError
from reward.draw import draw_references
from reward.judge import JudgeOutage
from reward.pool import Pool
from reward.strength import Strengths

DEAD_STEPS = 5  # steps in a row without a gradient after which the console warns


class Stopped(Exception):
    """The run was asked to stop, and everything up to the last whole step is saved."""


class Unscored(UserError):
    """Several steps in a row brought no scored rollout."""


@dataclass(frozen=True)
class Update:
    """What the optimizer did in one step."""

    loss: float
    grad_norm: float
    learning_rate: float
    stats: LossStats
    updates: int


class Trainer:
    """Owns the optimizer and the step counter. should_stop is asked between steps."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        collector: Collector,
        pool: Pool,
        journal: Journal,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.config = config
        self.policy = policy
        self.collector = collector
        self.pool = pool
        self.journal = journal
        self.should_stop = should_stop
        self.optimizer = build_optimizer(policy, config.train)
        self.base = checkpoint.fingerprint(policy)
        self.strengths = Strengths(pool)
        self.rows: list[dict[str, Any]] = []
        self.step = 0
        self.tokens = 0
        self.unscored_steps = 0

    @property
    def checkpoints(self) -> Path:
        return self.journal.folder / "checkpoints"

    def resume(self) -> list[dict[str, Any]]:
        """Go back to the newest whole checkpoint, and drop the journal's rows after it. Returns the rows that stay.

        Without a checkpoint the run starts from its beginning.
        """
        path = checkpoint.latest(self.checkpoints)
        if path is not None:
            state = checkpoint.load(path, self.policy, self.optimizer)
            if state["base"] != self.base:
                raise UserError(
                    f"{path}: the adapter was trained on other base weights ({state['base']}, here {self.base})"
                )
            self.step, self.tokens = state["step"], state["tokens"]
            self.unscored_steps = state["unscored_steps"]
        checkpoint.prune(self.checkpoints, self.config.checkpoint.keep)
        self.rows = self.journal.rewind(self.step)
        for record in read_rows(self.journal.folder / "rollouts.jsonl"):
            self.strengths.add(record["step"], [record["terms_info"].get("judge", {}).get("won", {})])
        return self.rows

    def run(self, on_step: Callable[[dict[str, Any], Path], None] = lambda metrics, sheet: None) -> None:
        """Train until the last step. on_step(metrics, sheet) after each.

        Raises Stopped, Unscored or JudgeOutage, the last whole step saved.
        """
        while self.step < self.config.run.steps:
            if self.should_stop():
                self.save()
                raise Stopped
            try:
                metrics, sheet = self.one_step(self.step + 1)
            except JudgeOutage:
                self.save()
                raise
            self.step += 1
            if self.step % self.config.checkpoint.every == 0 or self.step == self.config.run.steps:
                self.save()
            on_step(metrics, sheet)

    def one_step(self, step: int) -> tuple[dict[str, Any], Path]:
        started = time.monotonic()
        config, before = self.config, self.collector.mix.totals()
        references = draw_references(
            self.pool, config.pool, config.run.seed, step, config.run.steps, self.strengths.fit()
        )
        collected, attempts = self._collect(step, references)
        rollouts = collected.rollouts
        values, groups = advantages(
            [rollout.reward for rollout in rollouts], self.config.sample.group_size, self.config.train.scale_rewards
        )
        for rollout, value in zip(rollouts, values, strict=True):
            rollout.advantage = value
        train_started = time.monotonic()
        seed_everything(derive_seed(self.config.run.seed, "train", step))
        update = self.update(rollouts, groups, step)
        self.tokens += sum(len(rollout.completion_ids) for rollout in rollouts)
        finished = time.monotonic()
        metrics = {
            "step": step,
            **summarise(rollouts, groups),
            "loss": update.loss,
            "grad_norm": update.grad_norm,
            "learning_rate": update.learning_rate,
            "updates": update.updates,
            **update.stats.means(),
            "num_tokens": self.tokens,
            "attempts": attempts,
            "references": " ".join(reference.name for reference in references),
            **self._draw(rollouts, [reference.name for reference in references], step),
            **scorers(rollouts, self.collector.mix.totals() - before),
            **{f"time/{name}": value for name, value in collected.timings.items()},
            "time/train": finished - train_started,
            "step_time": finished - started,
        }
        reward, effect = metrics["reward"], metrics["draw/effect"]
        metrics["reward_adjusted"] = None if reward is None else self._adjusted(reward, effect)
        metrics = {name: metrics[name] for name in COLUMNS}
        sheet = self.journal.step(rollouts, metrics)
        self.rows.append(metrics)
        self.journal.picture("curve.png", self._curve())
        return metrics, sheet

    def _draw(self, rollouts: list[Rollout], names: list[str], step: int) -> dict[str, float | None]:
        """What the judge's comparisons say of this step's draw, by all that is known now."""
        won = [info_of(rollout, "judge").get("won", {}) for rollout in rollouts]
        self.strengths.add(step, won)
        fit = self.strengths.fit()
        if not fit.steps:
            return {"draw/difficulty": None, "draw/effect": None}
        return {"draw/difficulty": fit.difficulty(names), "draw/effect": fit.effect(names, step)}

    def _adjusted(self, reward: float, effect: float | None) -> float:
        """A step's reward less what its draw gave."""
        return reward - self.config.reward.weights.judge * (effect or 0.0)

    def _curve(self) -> bytes:
        """The run so far, every step's draw judged by what is known now."""
        fit, rows = self.strengths.fit(), [row for row in self.rows if row["reward"] is not None]
        effects = [fit.effect(row["references"].split(), row["step"]) if fit.steps else None for row in rows]
        return reward_curve(
            [row["step"] for row in rows],
            [row["reward"] for row in rows],
            [self._adjusted(row["reward"], effect) for row, effect in zip(rows, effects, strict=True)],
            f"Reward of {self.journal.folder.name}",
        )

    def _collect(self, step: int, references: Sequence[Any]) -> tuple[Collected, int]:
        """The step's rollouts; sampled again while not one of them could be scored."""
        attempts = 0
        while True:
            attempts += 1
            collected = self.collector.collect(step, attempts, references)
            if any(rollout.reward is not None for rollout in collected.rollouts):
                self.unscored_steps = 0
                return collected, attempts
            self.unscored_steps += 1
            self.journal.discard_partial()
            if self.unscored_steps >= self.config.run.max_unscored_steps:
                verdict = collected.rollouts[-1].verdict
                cause = f"{verdict.reason}: {verdict.detail}" if verdict else "no verdict"
                self.unscored_steps = 0
                self.save()
                raise Unscored(
                    f"step {step}: no rollout could be scored, {attempts} times in a row (last cause: {cause}); "
                    f"the run is saved, go on with --resume when the cause is mended"
                )

    def update(self, rollouts: list[Rollout], groups: list[GroupStats], step: int) -> Update:
        """num_iterations optimizer updates on the step's rollouts."""
        train = self.config.train
        total = self.config.run.steps * train.num_iterations
        rows = [rollout for rollout in rollouts if rollout.reward is not None]
        size = train.micro_batch_size
        cuts = [rows[start : start + size] for start in range(0, len(rows), size)]
        batches = [self._batch(cut) for cut in cuts]
        masks = [self._mask(cut, batch) for cut, batch in zip(cuts, batches, strict=True)]
        window = denominators(
            torch.cat([mask.reshape(-1) for mask in masks]),
            scored_B=[True] * len(rows),
            micro_batches=len(cuts),
            max_completion_length=self.config.sample.max_completion_length,
        )
        old: list[Tensor | None] = [None] * len(cuts)
        taught: list[Tensor | None] = [None] * len(cuts)
        if train.num_iterations > 1 or train.top_entropy_quantile < 1:
            before = [self._sampled_under(batch) for batch in batches]
            if train.num_iterations > 1:
                old = [logprobs_BT for logprobs_BT, _ in before]
            if train.top_entropy_quantile < 1:
                entropies = [entropy_BT[mask] for (_, entropy_BT), mask in zip(before, masks, strict=True)]
                threshold = entropy_threshold(torch.cat(entropies), train.top_entropy_quantile)
                taught = [entropy_BT >= threshold for _, entropy_BT in before]
        reference = [self._reference_logprobs(batch) for batch in batches] if train.beta > 0 else [None] * len(cuts)
        useful = train.beta > 0 or any(group.gives_gradient for group in groups)
        objective = objective_of(train)

        stats, first_loss, norm, rate, updates = LossStats(), 0.0, 0.0, 0.0, 0
        for iteration in range(train.num_iterations):
            loss_sum = 0.0
            self.policy.model.train()
            self.optimizer.zero_grad(set_to_none=True)
            parts = zip(cuts, batches, masks, old, reference, taught, strict=True)
            for cut, batch, mask, old_BT, reference_BT, taught_BT in parts:
                logprobs_BT, entropy_BT = self.policy.logprobs(
                    batch, self.config.sample.temperature, train.logprob_chunk
                )
                loss, part = policy_loss(
                    logprobs_BT,
                    torch.tensor([rollout.advantage for rollout in cut], device=logprobs_BT.device),
                    mask,
                    window,
                    objective,
                    old_logprobs_BT=old_BT,
                    reference_logprobs_BT=reference_BT,
                    entropy_BT=entropy_BT,
                    taught_BT=taught_BT,
                )
                loss.backward()
                loss_sum += loss.item()
                stats = stats + part
            gradient = clip_gradient(self.policy.trainable().values(), train.max_grad_norm)
            rate = learning_rate(
                (step - 1) * train.num_iterations + iteration,
                total,
                train.learning_rate,
                train.warmup_steps,
                train.schedule,
            )
            if iteration == 0:
                first_loss, norm = loss_sum, gradient
            if useful:
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                self.optimizer.step()
                updates += 1
        self.optimizer.zero_grad(set_to_none=True)
        return Update(first_loss, norm, rate, stats, updates)

    def _batch(self, rollouts: list[Rollout]) -> Batch:
        return collate(
            [rollout.prompt_ids for rollout in rollouts],
            [rollout.completion_ids for rollout in rollouts],
            self.policy.pad_id,
            self.policy.device,
        )

    def _mask(self, rollouts: list[Rollout], batch: Batch) -> Tensor:
        return loss_mask(
            [len(rollout.completion_ids) for rollout in rollouts],
            batch.completion_length,
            scored_B=[rollout.reward is not None for rollout in rollouts],
            truncated_B=[not rollout.finished for rollout in rollouts],
            mask_truncated=self.config.train.mask_truncated,
        ).to(self.policy.device)

    @torch.no_grad()
    def _sampled_under(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies under the policy that sampled, before any update."""
        self.policy.model.eval()
        return self.policy.logprobs(batch, self.config.sample.temperature, self.config.train.logprob_chunk)

    @torch.no_grad()
    def _reference_logprobs(self, batch: Batch) -> Tensor:
        self.policy.model.eval()
        with self.policy.reference():
            return self.policy.logprobs(batch, self.config.sample.temperature, self.config.train.logprob_chunk)[0]

    def save(self) -> None:
        """Write a checkpoint of the last whole step. Raises UserError in one line when the disk refuses."""
        state = {"tokens": self.tokens, "unscored_steps": self.unscored_steps, "base": self.base}
        try:
            checkpoint.save(self.checkpoints, self.step, self.policy, self.optimizer, state)
        except OSError as error:
            raise write_error(self.checkpoints, error) from error
        checkpoint.prune(self.checkpoints, self.config.checkpoint.keep)


def objective_of(train: TrainSettings) -> Objective:
    return Objective(
        loss_type=train.loss_type,
        clip_low=train.clip_low,
        clip_high=train.clip_high,
        importance_sampling_level=train.importance_sampling_level,
        beta=train.beta,
        kl_estimator=train.kl_estimator,
        kl_times_ratio=train.kl_times_ratio,
    )


def build_optimizer(policy: Policy, train: TrainSettings) -> torch.optim.Optimizer:
    """AdamW (Loshchilov and Hutter 2019), torch's or bitsandbytes' with 8-bit moments. The rate is set at each step."""
    weights = list(policy.trainable().values())
    betas = (train.adam_beta1, train.adam_beta2)
    if train.optimizer == "adamw8bit":
        from bitsandbytes.optim import AdamW8bit

        optimizer: torch.optim.Optimizer = AdamW8bit(
            weights, lr=train.learning_rate, betas=betas, weight_decay=train.weight_decay
        )
        return optimizer
    return torch.optim.AdamW(weights, lr=train.learning_rate, betas=betas, weight_decay=train.weight_decay)


def clip_gradient(weights: Any, limit: float) -> float:
    """Scale the whole gradient down to the norm `limit` (0 = leave it) and return the norm that it had."""
    norm = torch.nn.utils.clip_grad_norm_(list(weights), limit if limit > 0 else float("inf"))
    return float(norm)
