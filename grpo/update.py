"""One step's update: the gradient of grpo.loss.policy_loss over the step's rollouts, clipped, into the optimizer.

The loss's denominators are computed over the whole step before the first backward, so that the gradient does not depend
on the cut into micro-batches (bnpo does, by its definition). With num_iterations = 1 the old log-probabilities are the
new ones, detached; with more they are computed once before the first update.
A step in which no group gives a gradient leaves the weights untouched (Adam's momentum would move them without
evidence).

When the device's memory is short, what the failed try held is released and the gradient is computed again from the same
rollouts in micro-batches of half the size: weights and optimizer are as they were, only dropout would draw anew. The
smaller size stays for the steps to come. The optimizer's own step is never redone: its moments may be half moved.

With several ranks (grpo.ranks) each computes the gradient of its share of the rows, divided by the whole step's
denominators, and the sum over the ranks is the gradient. When one is short of memory, all halve.

On a GPU a trial with the longest completions finds the size before the first step.

Shapes: _B the step's scored rollouts, or those of one micro-batch; _T completion tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from grpo.advantage import GroupStats
from grpo.config import Config, TrainSettings
from grpo.loss import LossStats, Objective, denominators, entropy_threshold, loss_mask, policy_loss
from grpo.policy import Batch, Policy, collate, release_memory
from grpo.ranks import ALONE, Ranks
from grpo.rollout import Rollout
from grpo.schedule import learning_rate
from render.errors import UserError
from reward.base import Verdict

Result = TypeVar("Result")


@dataclass(frozen=True)
class Update:
    """What the optimizer did in one step."""

    loss: float
    grad_norm: float
    learning_rate: float
    stats: LossStats
    updates: int


@dataclass(frozen=True)
class Window:
    """What the updates of one step are computed from, whatever the cut into micro-batches and the ranks' shares.

    old, reference: log-probabilities, taught: tokens the policy term is kept on; each [B, T], or None where not needed.
    """

    rows: list[Rollout]
    mask: Tensor
    old: Tensor | None = None
    reference: Tensor | None = None
    taught: Tensor | None = None

    def cuts(self, size: int, share: range) -> list[slice]:
        """The micro-batches, of at most `size` rows, of these rows."""
        return [slice(start, min(start + size, share.stop)) for start in range(share.start, share.stop, size)]


class Updater:
    """Owns the optimizer. micro_batch_size: rollouts in one pass, at most; it shrinks when memory is short, and
    `say` is told so."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        say: Callable[[str], None] = lambda line: None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.config = config
        self.policy = policy
        self.say = say
        self.ranks = ranks
        self.micro_batch_size = config.train.micro_batch_size or len(ranks.share(config.rollouts_per_step, 0))
        self.optimizer = build_optimizer(policy, config.train)

    def update(self, rollouts: list[Rollout], groups: list[GroupStats], step: int) -> Update:
        """num_iterations optimizer updates on the step's rollouts."""
        train = self.config.train
        total = self.config.run.steps * train.num_iterations
        rows = [rollout for rollout in rollouts if rollout.reward is not None]
        window = self._window(rows)
        useful = train.beta > 0 or any(group.gives_gradient for group in groups)
        stats, first_loss, norm, rate, updates = LossStats(), 0.0, 0.0, 0.0, 0
        for iteration in range(train.num_iterations):
            loss, part = self._summed(*self._fitting(lambda: self._gradient(window), "in the update"))
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
                first_loss, norm = loss, gradient
            if useful:
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                self._move()
                updates += 1
        self.optimizer.zero_grad(set_to_none=True)
        return Update(first_loss, norm, rate, stats, updates)

    def try_out(self, prompt_ids: Sequence[int]) -> None:
        """Find the micro-batch before the first step: the gradient of made-up rollouts of full length, thrown away.

        prompt_ids: of a prompt of the run.
        """
        length = self.config.sample.max_completion_length
        ids, size = tuple(prompt_ids), self.micro_batch_size * self.ranks.count
        rows = [Rollout(0, index, 0, "", ids, (self.policy.pad_id,) * length, True, "") for index in range(size)]
        for row in rows:
            row.verdict, row.advantage = Verdict(1.0, "scored"), 1.0
        window = Window(rows, self._mask(rows))
        self._fitting(lambda: self._gradient(window), "in the trial at the start")
        self.optimizer.zero_grad(set_to_none=True)

    def _move(self) -> None:
        try:
            self.optimizer.step()
        except torch.OutOfMemoryError as error:
            raise UserError(
                "out of memory in the optimizer's own step, which cannot be redone; a smaller [lora] rank or "
                '[train] optimizer = "adamw8bit" needs less'
            ) from error

    def _fitting(self, work: Callable[[], Result], where: str) -> Result:
        """What work() gives; done again in micro-batches of half the size while a rank's memory is short."""
        while True:
            reason, result = "", None
            try:
                result = work()
            except torch.OutOfMemoryError as error:
                reason = (str(error).splitlines() or ["out of memory"])[0]
            # Only here, outside the handler, is the traceback gone that kept the failed try's tensors.
            reason = next(filter(None, self.ranks.tell(reason)), "")
            if not reason:
                return cast(Result, result)
            del result
            self.optimizer.zero_grad(set_to_none=True)
            release_memory()
            if self.micro_batch_size == 1:
                raise UserError(
                    f"{where}: out of memory with a micro-batch of one rollout ({reason}); "
                    + ("" if self.config.train.gradient_checkpointing else "set [train] gradient_checkpointing, or ")
                    + f"make [train] logprob_chunk ({self.config.train.logprob_chunk}) or [sample] "
                    f"max_completion_length ({self.config.sample.max_completion_length}) smaller"
                )
            self.micro_batch_size = max(1, min(self.micro_batch_size, self.config.rollouts_per_step) // 2)
            if self.ranks.first:
                self.say(f"{where}: out of memory; again, and from now on, in micro-batches of {self.micro_batch_size}")

    def _window(self, rows: list[Rollout]) -> Window:
        """The trained rollouts with their mask, and what is computed once, before the first update."""
        train, mask = self.config.train, self._mask(rows)
        window = Window(rows, mask)
        old = reference = taught = None
        if train.num_iterations > 1 or train.top_entropy_quantile < 1:
            old, entropy_BT = self._known(window, self._sampled_under)
            if train.top_entropy_quantile < 1:
                taught = entropy_BT >= entropy_threshold(entropy_BT[mask], train.top_entropy_quantile)
        if train.beta > 0:
            reference, _ = self._known(window, self._reference_logprobs)
        return Window(rows, mask, old if train.num_iterations > 1 else None, reference, taught)

    def _known(self, window: Window, look: Callable[[Batch], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies [B, T] of the whole window."""
        found = self._fitting(lambda: self._looked_up(window, look), "before the update")
        self.ranks.add(found)
        return found

    def _looked_up(self, window: Window, look: Callable[[Batch], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Those of this rank's share, micro-batch by micro-batch; 0 elsewhere."""
        logprobs_BT = torch.zeros(window.mask.shape, device=window.mask.device)
        entropy_BT = torch.zeros_like(logprobs_BT)
        for cut in self._cuts(window):
            batch = self.batch(window.rows[cut])
            logprobs_BT[cut, : batch.completion_length], entropy_BT[cut, : batch.completion_length] = look(batch)
        return logprobs_BT, entropy_BT

    def _cuts(self, window: Window, rank: int | None = None) -> list[slice]:
        """The micro-batches of this rank, or of another."""
        return window.cuts(self.micro_batch_size, self.ranks.share(len(window.rows), rank))

    def _summed(self, loss: float, stats: LossStats) -> tuple[float, LossStats]:
        """The gradient in the weights' grad, the loss and its statistics: from this rank's share to the window's."""
        if self.ranks.count == 1:
            return loss, stats
        weights = list(self.policy.trainable().values())
        for weight in weights:
            if weight.grad is None:  # no row of the step in this share
                weight.grad = torch.zeros_like(weight)
        self.ranks.add(weight.grad for weight in weights if weight.grad is not None)
        told = self.ranks.tell((loss, stats))
        return math.fsum(part for part, _ in told), sum((part for _, part in told), LossStats())

    def _gradient(self, window: Window) -> tuple[float, LossStats]:
        """This rank's share of the loss, its gradient in the weights' grad, and its statistics."""
        train = self.config.train
        objective, cuts = objective_of(train), self._cuts(window)
        divisors = denominators(
            window.mask,
            scored_B=[True] * len(window.rows),
            micro_batches=sum(len(self._cuts(window, rank)) for rank in range(self.ranks.count)),
            max_completion_length=self.config.sample.max_completion_length,
        )
        loss_sum, stats = 0.0, LossStats()
        self.policy.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        for cut in cuts:
            rows = window.rows[cut]
            batch = self.batch(rows)
            logprobs_BT, entropy_BT = self.policy.logprobs(
                batch, self.config.sample.temperature, train.logprob_chunk, train.logprob_keep_mb << 20
            )
            length = batch.completion_length
            old_BT, reference_BT, taught_BT = (
                None if known is None else known[cut, :length]
                for known in (window.old, window.reference, window.taught)
            )
            loss, part = policy_loss(
                logprobs_BT,
                torch.tensor([rollout.advantage for rollout in rows], device=logprobs_BT.device),
                window.mask[cut, :length],
                divisors,
                objective,
                old_logprobs_BT=old_BT,
                reference_logprobs_BT=reference_BT,
                entropy_BT=entropy_BT,
                taught_BT=taught_BT,
            )
            loss.backward()
            loss_sum += loss.item()
            stats = stats + part
        return loss_sum, stats

    def batch(self, rollouts: list[Rollout]) -> Batch:
        """The tokens of some rollouts, padded."""
        return collate(
            [rollout.prompt_ids for rollout in rollouts],
            [rollout.completion_ids for rollout in rollouts],
            self.policy.pad_id,
            self.policy.device,
        )

    def _mask(self, rollouts: list[Rollout]) -> Tensor:
        lengths = [len(rollout.completion_ids) for rollout in rollouts]
        return loss_mask(
            lengths,
            max(lengths),
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
    def _reference_logprobs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        self.policy.model.eval()
        with self.policy.reference():
            return self.policy.logprobs(batch, self.config.sample.temperature, self.config.train.logprob_chunk)


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
