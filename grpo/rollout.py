"""The `Rollout` record, and the collector that samples, paints and scores a step's rollouts at the same time.

A completion leaves the sampler the moment its stop id is drawn (`Policy.sample`'s on_finished). Its sketch goes to the
farm at once; when the painting is back, a scoring thread judges it and the journal writes it down: all of that while
the other completions are still being sampled. What is left to wait for after the last token is the `paint_waited` and
`score` part of the step's time.
"""

from __future__ import annotations

import random
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy
import torch

from grpo.config import Config
from grpo.policy import Completion, MemoryShort, Policy, release_memory
from grpo.prompt import messages
from grpo.ranks import ALONE, Ranks
from render.errors import UserError
from render.painting import Painting
from render.sketch import find_sketch
from reward.base import Candidate, Reference, Verdict
from reward.control import Control
from reward.gate import Gate
from reward.mix import Mix


class Painter(Protocol):
    """What the collector needs of a render farm."""

    def submit(self, source: str, seed: int = 0) -> Future[Painting]: ...


@dataclass
class Rollout:
    """One completion and all that became of it.

    prompt_ids, completion_ids: the tokens as they were sampled. finished: ended by a stop id, not by the limit.
    reward is a float or None (not scored); advantage is filled in when the step's groups are whole.
    timings: seconds; `sampled` and `scored` count from the start of the step.
    """

    step: int
    index: int
    group: int
    subject: str
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    finished: bool
    text: str
    sketch: str | None = None
    painting: Painting | None = None
    verdict: Verdict | None = None
    advantage: float = 0.0
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def reward(self) -> float | None:
        return self.verdict.reward if self.verdict else None

    @property
    def outcome(self) -> str:
        return self.verdict.outcome if self.verdict else "unscored"

    @property
    def name(self) -> str:
        return f"step_{self.step:04d}_{self.index:02d}"

    def record(self) -> dict[str, Any]:
        """Everything but the pixels, as JSON can hold it."""
        painting, verdict = self.painting, self.verdict
        terms = verdict.terms if verdict else {}
        return {
            "step": self.step,
            "index": self.index,
            "group": self.group,
            "subject": self.subject,
            "reward": self.reward,
            "advantage": self.advantage,
            "outcome": self.outcome,
            "reason": verdict.reason if verdict else "",
            "detail": verdict.detail if verdict else "",
            "terms": {name: score.value for name, score in terms.items()},
            "terms_info": {
                name: {**score.info, **({"cause": score.cause} if score.cause else {})} for name, score in terms.items()
            },
            "finished": self.finished,
            "tokens": len(self.completion_ids),
            "prompt_ids": list(self.prompt_ids),
            "completion_ids": list(self.completion_ids),
            "text": self.text,
            "sketch": self.sketch is not None,
            "painting": None
            if painting is None
            else {
                "outcome": str(painting.outcome),
                "reason": painting.reason,
                "detail": painting.detail,
                "line": painting.line,
                "width": painting.width,
                "height": painting.height,
                "coverage": painting.coverage,
                "shapes": painting.shapes,
                "vertices": painting.vertices,
                "circles": painting.circles,
                "errors": list(painting.errors),
                "finished": painting.finished,
                "timings": painting.timings,
                "worker": painting.worker,
                "attempt": painting.attempt,
            },
            "timings": self.timings,
        }


@dataclass(frozen=True)
class Collected:
    """The rollouts of a step in order, and its time split in seconds: `sample` until the last token, `paint_waited`
    after it for paintings, `score` after those for the scorer."""

    rollouts: list[Rollout]
    timings: dict[str, float]


def derive_seed(*parts: int | str) -> int:
    """A 31-bit seed from the run's seed and where it is used; the same on every machine."""
    return zlib.crc32(" ".join(str(part) for part in parts).encode()) & 0x7FFFFFFF


def seed_everything(seed: int) -> None:
    """Python, numpy and torch (all devices). A step seeds them from run seed and step, so that a resumed run has the
    same randomness as an unbroken one without any state to save."""
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


class Collector:
    """Samples a step and sees each rollout through to its verdict.

    painter: None where the text alone is judged. on_event(kind) is called with "sampled", "painted" or "scored" for the
    console; on_rollout(rollout) from the scoring thread once for each rollout, as soon as it has its verdict.
    rows_at_once: rollouts sampled in one batch, at most; it shrinks when memory is short, and `say` is told so.
    """

    def __init__(
        self,
        config: Config,
        policy: Policy,
        painter: Painter | None,
        gate: Gate,
        mix: Mix | Control,
        on_rollout: Callable[[Rollout], None],
        on_event: Callable[[str], None] = lambda kind: None,
        say: Callable[[str], None] = lambda line: None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.config = config
        self.policy = policy
        self.painter = painter
        self.gate = gate
        self.mix = mix
        self.on_rollout = on_rollout
        self.on_event = on_event
        self.say = say
        self.share = ranks.share(config.rollouts_per_step)
        self.rows_at_once = config.sample.rows_at_once or len(self.share)

    def collect(self, step: int, attempt: int, references: Sequence[Reference]) -> Collected:
        """This rank's share of a step's rollouts. Raises what the scorer, the journal or the farm raise."""
        started = time.monotonic()
        pending: list[tuple[Rollout, Future[None]]] = []
        lock = threading.Lock()
        painted_at = [started]
        with ThreadPoolExecutor(self.mix.parallel, thread_name_prefix="scorer") as scorer:

            def begin(rollout: Rollout) -> None:
                rollout.timings["sampled"] = time.monotonic() - started
                self.on_event("sampled")
                done: Future[None] = Future()
                pending.append((rollout, done))
                found = find_sketch(rollout.text)
                rollout.sketch = found.source
                if self.painter is None or rollout.sketch is None or self.gate.refuses(rollout.sketch):
                    _follow(scorer.submit(judge, rollout), done)
                    return
                painting = self.painter.submit(rollout.sketch, self.config.render.seed)
                painting.add_done_callback(lambda future: paint_done(rollout, future, done))

            def paint_done(rollout: Rollout, future: Future[Painting], done: Future[None]) -> None:
                try:
                    rollout.painting = future.result()
                    with lock:
                        painted_at[0] = max(painted_at[0], time.monotonic())
                    self.on_event("painted")
                    _follow(scorer.submit(judge, rollout), done)
                # Whatever went wrong in this callback belongs to the caller of collect, who waits on `done`.
                except BaseException as error:  # noqa: BLE001
                    done.set_exception(error)

            def judge(rollout: Rollout) -> None:
                candidate = Candidate(rollout.text, rollout.sketch, rollout.painting)
                rollout.verdict = self.mix.judge(candidate, references)
                rollout.timings["scored"] = time.monotonic() - started
                self.on_rollout(rollout)
                self.on_event("scored")

            try:
                self._sample(step, attempt, begin)
                sampled_at = time.monotonic()
                for _, done in pending:
                    done.result()
            except BaseException:
                # The threads of the pool are waited for: none may go on waiting for a judge that is down.
                self.mix.stop("the step is given up")
                raise
        finished_at = time.monotonic()
        waited_until = min(max(painted_at[0], sampled_at), finished_at)
        rollouts = sorted((rollout for rollout, _ in pending), key=lambda rollout: rollout.index)
        assert [rollout.index for rollout in rollouts] == list(self.share)
        return Collected(
            rollouts,
            {
                "sample": sampled_at - started,
                "paint_waited": waited_until - sampled_at,
                "score": finished_at - waited_until,
            },
        )

    def _sample(self, step: int, attempt: int, begin: Callable[[Rollout], None]) -> None:
        """This rank's rollouts of the step, rows_at_once in a batch; a batch may hold rows of several groups."""
        config, settings = self.config, self.config.sample
        subjects = [subject_of(config, step, group) for group in range(settings.prompts_per_step)]
        prompts = [
            tuple(self.policy.prompt_ids(messages(config.prompt.system, subject, config.subject.composition)))
            for subject in subjects
        ]

        def hand_over(index: int, completion: Completion) -> None:
            group = index // settings.group_size
            begin(
                Rollout(
                    step=step,
                    index=index,
                    group=group,
                    subject=subjects[group],
                    prompt_ids=prompts[group],
                    completion_ids=completion.ids,
                    finished=completion.finished,
                    text=self.policy.decode(completion.ids),
                )
            )

        first = self.share.start
        while first < self.share.stop:
            rows = list(range(first, min(first + self.rows_at_once, self.share.stop)))
            seed = derive_seed(config.run.seed, "sample", step, attempt, first)
            self._draw([prompts[row // settings.group_size] for row in rows], rows, None, seed, hand_over)
            first = rows[-1] + 1

    def _draw(
        self,
        prompts: list[tuple[int, ...]],
        rows: list[int],
        begun: list[tuple[int, ...]] | None,
        seed: int,
        hand_over: Callable[[int, Completion], None],
    ) -> None:
        """Draw these rows in one batch, or, when the device's memory runs out, go on with them in smaller ones.

        Unfinished rows go on from the tokens that they have: to draw them anew would favour short completions, which
        had been handed over before. Their further random numbers come from seeds of their own, made from the batch's
        seed, the row and the tokens reached, and later batches are of the smaller size: both change what is drawn from
        here on, not what it is drawn from.
        """
        try:
            self.policy.sample_rows(
                prompts,
                self.config.sample,
                seed,
                on_finished=lambda row, completion: hand_over(rows[row], completion),
                begun=begun,
            )
            return
        except MemoryShort as error:
            left, reason = error.begun, str(error)
        release_memory()
        tokens = len(next(iter(left.values())))
        if len(rows) == 1:
            raise UserError(
                f"in sampling: out of memory with one rollout of {tokens} tokens ({reason}); make [sample] "
                f"max_completion_length ({self.config.sample.max_completion_length}) smaller"
            )
        self.rows_at_once = len(rows) // 2
        self.say(
            f"in sampling: out of memory after {tokens} tokens; the {len(left)} unfinished rollouts go on in batches "
            f"of {self.rows_at_once}, and so it is from now on"
        )
        unfinished = list(left)
        for start in range(0, len(unfinished), self.rows_at_once):
            cut = unfinished[start : start + self.rows_at_once]
            self._draw(
                [prompts[row] for row in cut],
                [rows[row] for row in cut],
                [left[row] for row in cut],
                derive_seed(seed, rows[cut[0]], tokens),
                hand_over,
            )


def subject_of(config: Config, step: int, group: int) -> str:
    """The subject of a group: a function of seed, step and group, so that a resumed run goes on where it stopped.

    in_turn: one after the other over the whole run. drawn: each step shuffles them, and its groups take them from the
    top; no subject comes twice in a step before all have come once.
    """
    subjects, groups = config.subject.names, config.sample.prompts_per_step
    if config.subject.order == "in_turn":
        return subjects[(step * groups + group) % len(subjects)]
    order = random.Random(f"subjects {config.run.seed} {step}").sample(subjects, len(subjects))
    return order[group % len(subjects)]


def _follow(source: Future[None], target: Future[None]) -> None:
    """Let `target` end as `source` ends."""

    def copy(done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            target.set_exception(error)
        else:
            target.set_result(None)

    source.add_done_callback(copy)
