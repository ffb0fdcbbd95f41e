"""The loop of GRPO (Shao et al. 2024), a step at a time:

    references -> sample, paint and score a step's groups -> advantages -> loss and backward in micro-batches
    -> clip -> optimizer -> journal -> checkpoint

The update is grpo.update's, sampling and scoring grpo.rollout's. Rollouts that could not be scored take no part in
anything; a step whose rollouts are all unscored is sampled again.
When the device's memory is short, both go on in smaller batches. What they have come down to is in the checkpoint, so
that a resumed run starts there.
With several ranks (grpo.ranks) each runs this loop and comes to the same numbers; the first one writes.

Left out: generation in another engine, value functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from grpo import checkpoint, memory
from grpo.advantage import advantages
from grpo.config import Config
from grpo.curves import reward_curve
from grpo.folder import read_rows, write_error
from grpo.journal import Journal
from grpo.metrics import COLUMNS, info_of, scorers, summarise
from grpo.policy import Policy
from grpo.ranks import ALONE, Ranks
from grpo.rollout import Collected, Collector, Rollout, derive_seed, seed_everything
from grpo.update import Updater
from render.errors import UserError
from reward.base import Reference
from reward.draw import draw_references
from reward.judge import JudgeOutage, Totals
from reward.pool import Pool
from reward.strength import Strengths

DEAD_STEPS = 5  # steps in a row without a gradient after which the console warns


class Stopped(Exception):
    """The run was asked to stop, and everything up to the last whole step is saved."""


class Unscored(UserError):
    """Several steps in a row brought no scored rollout."""


class Trainer:
    """Owns the step counter. should_stop is asked between steps, say tells a person something, on_other is called with
    each rollout of another rank."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        collector: Collector,
        pool: Pool,
        journal: Journal,
        should_stop: Callable[[], bool] = lambda: False,
        say: Callable[[str], None] = lambda line: None,
        ranks: Ranks = ALONE,
        on_other: Callable[[Rollout], None] = lambda rollout: None,
    ) -> None:
        self.config = config
        self.policy = policy
        self.collector = collector
        self.pool = pool
        self.journal = journal
        self.should_stop = should_stop
        self.say = say
        self.ranks = ranks
        self.on_other = on_other
        self.updater = Updater(config, policy, say, ranks)
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
            state = checkpoint.load(path, self.policy, self.updater.optimizer)
            if state["base"] != self.base:
                raise UserError(
                    f"{path}: the adapter was trained on other base weights ({state['base']}, here {self.base})"
                )
            self.step, self.tokens = state["step"], state["tokens"]
            self.unscored_steps = state["unscored_steps"]
            # As small as they had become, or smaller where the config asks for it.
            size, rows = self.updater.micro_batch_size, self.collector.rows_at_once
            self.updater.micro_batch_size = min(size, state.get("micro_batch_size", size))
            self.collector.rows_at_once = min(rows, state.get("rows_at_once", rows))
        self.rows = self.ranks.once(self._rewind)
        for record in read_rows(self.journal.folder / "rollouts.jsonl"):
            self.strengths.add(record["step"], [record["terms_info"].get("judge", {}).get("won", {})])
        return self.rows

    def _rewind(self) -> list[dict[str, Any]]:
        checkpoint.prune(self.checkpoints, self.config.checkpoint.keep)
        return self.journal.rewind(self.step)

    def try_out(self, prompt_ids: Sequence[int], free: float) -> None:
        """Find what fits the device before the first step: rows sampled at once by calculation, rollouts in a
        micro-batch by a trial. free: bytes. A checkpoint remembers both."""
        text, tokens = self.policy.model.config.get_text_config(), len(prompt_ids)
        fitting = memory.rows_that_fit(
            text, tokens + self.config.sample.max_completion_length, self.policy.dtype.itemsize, free
        )
        fitting = min(self.ranks.tell(fitting))
        if fitting < self.collector.rows_at_once:
            self.say(f"memory for {fitting} rows at once; sampling goes in batches of so many")
            self.collector.rows_at_once = fitting
        self.updater.try_out(prompt_ids)

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
        config = self.config
        references: Sequence[Reference] = ()
        if self.pool.references:  # none in the control task
            references = draw_references(
                self.pool, config.pool, config.run.seed, step, config.run.steps, self.strengths.fit()
            )
        collected, calls, attempts = self._collect(step, references)
        rollouts = collected.rollouts
        values, groups = advantages(
            [rollout.reward for rollout in rollouts], self.config.sample.group_size, self.config.train.scale_rewards
        )
        for rollout, value in zip(rollouts, values, strict=True):
            rollout.advantage = value
        train_started = time.monotonic()
        seed_everything(derive_seed(self.config.run.seed, "train", step, *self.ranks.others))
        update = self.updater.update(rollouts, groups, step)
        self.tokens += sum(len(rollout.completion_ids) for rollout in rollouts)
        finished = time.monotonic()
        metrics = {
            "step": step,
            **summarise(rollouts, groups),
            "loss": update.loss,
            "grad_norm": update.grad_norm,
            "learning_rate": update.learning_rate,
            "updates": update.updates,
            "micro_batch_size": self.updater.micro_batch_size,
            "rows_at_once": self.collector.rows_at_once,
            **update.stats.means(),
            "num_tokens": self.tokens,
            "attempts": attempts,
            "references": " ".join(reference.name for reference in references),
            **self._draw(rollouts, [reference.name for reference in references], step),
            **scorers(rollouts, calls),
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

    def _collect(self, step: int, references: Sequence[Any]) -> tuple[Collected, Totals, int]:
        """The step's rollouts, what asking the judge took, and the tries: a step is sampled again while not one of its
        rollouts could be scored."""
        attempts, calls = 0, Totals()
        while True:
            attempts += 1
            collected, asked = self._gathered(step, attempts, references)
            calls += asked
            if any(rollout.reward is not None for rollout in collected.rollouts):
                self.unscored_steps = 0
                return collected, calls, attempts
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

    def _gathered(self, step: int, attempt: int, references: Sequence[Any]) -> tuple[Collected, Totals]:
        """The shares of all ranks, one after another; the time split is that of the slowest."""

        def share() -> tuple[Collected, Totals, int]:
            before = self.collector.mix.totals()
            collected = self.collector.collect(step, attempt, references)
            return collected, self.collector.mix.totals() - before, self.collector.rows_at_once

        parts = self.ranks.each(share)
        self.collector.rows_at_once = min(rows for _, _, rows in parts)
        for rank, (collected, _, _) in enumerate(parts):
            for rollout in collected.rollouts if rank != self.ranks.rank else ():
                self.on_other(rollout)
        together = Collected(
            [rollout for collected, _, _ in parts for rollout in collected.rollouts],
            {name: max(collected.timings[name] for collected, _, _ in parts) for name in parts[0][0].timings},
        )
        return together, sum((asked for _, asked, _ in parts), Totals())

    def save(self) -> None:
        """Write a checkpoint of the last whole step. Raises UserError in one line when the disk refuses."""
        if not self.ranks.first:
            return
        state = {
            "tokens": self.tokens,
            "unscored_steps": self.unscored_steps,
            "base": self.base,
            "micro_batch_size": self.updater.micro_batch_size,
            "rows_at_once": self.collector.rows_at_once,
        }
        try:
            checkpoint.save(self.checkpoints, self.step, self.policy, self.updater.optimizer, state)
        except OSError as error:
            raise write_error(self.checkpoints, error) from error
        checkpoint.prune(self.checkpoints, self.config.checkpoint.keep)
