"""A run in numbers: everything that a report says of one, as plain dicts and lists that JSON can hold.

None stands for what the file cannot say; a list with a None in it has nothing to say of that third. Thirds are thirds
of the steps in the table, whatever was scored in them. Shares and means of rollouts are over the scored ones of a
third taken together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from grpo.report import rollouts as of_rollouts
from grpo.report.diversity import Group
from grpo.report.draw import Draws
from grpo.report.numbers import (
    LOW,
    NAMES,
    correlation,
    cuts,
    fit_line,
    mean,
    median,
)
from grpo.report.source import Sample, Source

Thirds = list[float | None]
TIME_PARTS = ("sample", "paint_waited", "score", "train")
# Key of the report -> column: means by thirds that are read straight from the table.
PLAIN = {
    "reward": "reward",
    "spread": "reward_std",
    "entropy": "entropy",
    "tokens": "completions/mean_length",
    "cut_off": "completions/clipped_ratio",
    "coverage": "coverage",
    "shapes": "shapes",
    "fills": "fills",
    "step_time": "step_time",
    "gradient": "grad_norm",
}
# What the judge's calls took, over the whole run.
JUDGE = ("calls", "answers", "cached", "retries", "missing", "tokens_in", "tokens_out", "cost", "outages", "waited_s")


def analyse(
    source: Source, draws: Draws, distances: dict[Group, float], colours: dict[Group, float | None]
) -> dict[str, Any]:
    """distances, colours: feature and colour distance inside the groups, where they were measured."""
    return Analysis(source, draws, distances, colours).everything()


class Analysis:
    """One run with its steps cut into thirds."""

    def __init__(
        self, source: Source, draws: Draws, distances: dict[Group, float], colours: dict[Group, float | None]
    ) -> None:
        self.source, self.draws = source, draws
        self.distances, self.colours = distances, colours
        self.parts = cuts(len(source.rows))
        self.part_of = {source.steps[position]: index for index, part in enumerate(self.parts) for position in part}

    def everything(self) -> dict[str, Any]:
        source, parts = self.source, self._samples_by_third()
        notes = [*source.notes, *([self.draws.note] if self.draws.note else [])]
        missing = [
            step for step, reward in zip(source.steps, source.column("reward") or [], strict=True) if reward is None
        ]
        if missing:
            shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
            notes.append(f"{len(missing)} steps without a reward (step {shown}): they are left out of its means")
        return {
            "name": source.name,
            "path": str(source.path),
            "steps": len(source.rows),
            "first_step": source.steps[0],
            "last_step": source.steps[-1],
            "rollouts": None if source.samples is None else len(source.samples),
            "stand_ins": sorted(source.stand_ins),
            "notes": notes,
            "thirds": {
                "names": list(NAMES[len(self.parts)]),
                "steps": [[source.steps[part[0]], source.steps[part[-1]]] for part in self.parts],
            },
            "by_third": self._by_third(),
            "trend": {
                "reward": self._trend(source.column("reward")),
                "reward_adjusted": self._trend(self.draws.adjusted),
            },
            "rise": of_rollouts.rise(parts) if parts else None,
            "correlations": of_rollouts.correlations(parts) if parts else None,
            "groups": of_rollouts.groups(parts) if parts else self._shares_of_groups(),
            "reasons": of_rollouts.reasons(parts) if parts else None,
            "draw": self._draw(),
            "judge": self._judge(),
            "totals": self._totals(),
            "each_step": self._each_step(),
        }

    # --- by thirds ----------------------------------------------------------------------------------------------------

    def _means(self, values: Sequence[float | None] | None) -> Thirds | None:
        return None if values is None else [mean([values[place] for place in part]) for part in self.parts]

    def _by_third(self) -> dict[str, Any]:
        source, samples = self.source, self._samples_by_third()
        best, middle = self._best_and_median()
        terms = [name.split("/")[1] for name in sorted(source.columns) if _is_term(name)]
        columns = {f"rewards/{term}/mean": source.column(f"rewards/{term}/mean") for term in terms}
        if not source.paints:  # the control task has one term of its own, which is the reward
            columns = {}
        return {
            **{key: self._means(source.column(column)) for key, column in PLAIN.items()},
            "reward_adjusted": self._means(self.draws.adjusted),
            "best": self._means(best),
            "median": self._means(middle),
            "terms": {name.split("/")[1]: self._means(values) for name, values in columns.items() if _any(values)},
            "time": {part: self._means(source.column(f"time/{part}")) for part in TIME_PARTS},
            "cost": self._means(self._paid("cost")),
            "below": of_rollouts.below(samples) if samples else None,
            "outcomes": self._outcomes(),
            "distinct": self._distinct(),
            "feature_distance": self._means(self._of_groups(self.distances)),
            "colour_distance": self._means(self._of_groups(self.colours)),
        }

    def _best_and_median(self) -> tuple[list[float | None] | None, list[float | None] | None]:
        """Best and median reward of each step: the table's, or the rollouts' where the table has none."""
        found = []
        for column, statistic in (("reward_best", max), ("reward_median", median)):
            values = self.source.column(column)
            found.append(self._of_rewards(statistic) if values is None else values)
        return found[0], found[1]

    def _of_rewards(self, statistic: Callable[[list[float]], float]) -> list[float | None] | None:
        if self.source.samples is None:
            return None
        rewards: dict[int, list[float]] = {}
        for sample in self.source.samples:
            if sample.reward is not None:
                rewards.setdefault(sample.step, []).append(sample.reward)
        return [statistic(rewards[step]) if step in rewards else None for step in self.source.steps]

    def _samples_by_third(self) -> list[list[Sample]] | None:
        if self.source.samples is None:
            return None
        found: list[list[Sample]] = [[] for _ in self.parts]
        for sample in self.source.samples:
            found[self.part_of[sample.step]].append(sample)
        return found

    def _outcomes(self) -> dict[str, Any]:
        """Rollouts by what became of them: a count for each third."""
        parts = self._samples_by_third()
        found: dict[str, Any] = {}
        for outcome in ("scored", "rejected", "unscored"):
            column = self.source.column(f"rollouts/{outcome}")
            if parts is not None:
                found[outcome] = [sum(sample.outcome == outcome for sample in part) for part in parts]
            elif column is not None:
                found[outcome] = [int(sum(column[place] or 0 for place in part)) for part in self.parts]
            else:
                found[outcome] = None
        return found

    def _distinct(self) -> Thirds | None:
        """Mean over the steps of: different completions of a step / its completions."""
        if self.source.samples is None:
            return None
        completions: dict[int, list[int]] = {}
        for sample in self.source.samples:
            completions.setdefault(sample.step, []).append(sample.completion)
        shares = {step: len(set(found)) / len(found) for step, found in completions.items()}
        return self._means([shares.get(step) for step in self.source.steps])

    def _of_groups(self, values: dict[Group, Any]) -> list[float | None] | None:
        """Mean over the groups of each step."""
        if not values:
            return None
        steps: dict[int, list[float | None]] = {}
        for (step, _), value in values.items():
            steps.setdefault(step, []).append(value)
        return [mean(steps.get(step, [])) for step in self.source.steps]

    # --- over the run -------------------------------------------------------------------------------------------------

    def _trend(self, values: Sequence[float | None] | None) -> dict[str, Any] | None:
        line = None if values is None else fit_line(self.source.steps, values)
        return None if line is None else asdict(line)

    def _shares_of_groups(self) -> dict[str, Any] | None:
        """Where the file says nothing of rollouts: the table's mean shares of groups that gave no gradient."""
        columns = ("frac_reward_zero_std", "frac_unscored_groups")
        shares = [self._means(self.source.column(name)) for name in columns]
        if shares == [None, None]:
            return None
        return {"all": None, "zero_spread": None, "unscored": None, "shares": shares}

    def _draw(self) -> dict[str, Any] | None:
        effect = self.draws.effect
        if not _any(effect) or effect is None:
            return None
        rewards = self.source.column("reward") or []
        both = [
            (one, other) for one, other in zip(rewards, effect, strict=True) if one is not None and other is not None
        ]
        weight = self.source.setting("reward", "weights", "judge")
        there = [value for value in effect if value is not None]
        return {
            "difficulty": self._means(self.draws.difficulty),
            "effect": self._means(effect),
            "easiest": max(there),
            "hardest": min(there),
            "weight": weight,
            "correlation": correlation([one for one, _ in both], [other for _, other in both]),
        }

    def _paid(self, part: str) -> list[float | None] | None:
        """A column of what the judge took; None where no judge was ever asked."""
        asked = [self.source.column(f"judge/{name}") for name in ("calls", "cached", "missing")]
        return self.source.column(f"judge/{part}") if any(any(column) for column in asked if column) else None

    def _judge(self) -> dict[str, Any] | None:
        if self._paid("calls") is None:
            return None
        found: dict[str, Any] = {}
        for part in JUDGE:
            values = self._paid(part)
            found[part] = None if values is None else sum(value or 0.0 for value in values)
        faults: Counter[str] = Counter()
        for row in self.source.rows:
            for entry in str(row.get("judge/faults") or "").split():
                kind, _, count = entry.rpartition(":")
                faults[kind] += int(count)
        prices = [self.source.setting("reward", "vlm", key) for key in ("price_in", "price_out")]
        return {**found, "faults": dict(faults.most_common()), "priced": any(prices) or bool(found["cost"])}

    def _totals(self) -> dict[str, Any]:
        source = self.source
        seconds, tokens = source.column("step_time"), source.column("num_tokens")
        attempts = source.column("attempts")
        return {
            "seconds": sum(value or 0.0 for value in seconds) if _any(seconds) and seconds else None,
            "tokens": max((value for value in tokens or () if value is not None), default=None),
            "sampled_again": None if not attempts else int(sum((value or 1) - 1 for value in attempts)),
        }

    def _each_step(self) -> list[dict[str, Any]]:
        best, middle = self._best_and_median()
        low: dict[int, list[bool]] = {}
        for sample in self.source.samples or ():
            if sample.reward is not None:
                low.setdefault(sample.step, []).append(sample.reward < LOW)
        features, colours = self._of_groups(self.distances), self._of_groups(self.colours)
        columns = {
            "reward": self.source.column("reward"),
            "reward_adjusted": self.draws.adjusted,
            "best": best,
            "median": middle,
            "below": None if self.source.samples is None else [_share(low.get(step)) for step in self.source.steps],
            "feature_distance": features,
            "colour_distance": colours,
            "draw_effect": self.draws.effect,
        }
        return [
            {"step": step, **{name: values[place] if values else None for name, values in columns.items()}}
            for place, step in enumerate(self.source.steps)
        ]


def _is_term(column: str) -> bool:
    return column.startswith("rewards/") and column.endswith("/mean") and column.count("/") == 2


def _any(values: Sequence[float | None] | None) -> bool:
    return values is not None and any(value is not None for value in values)


def _share(flags: Sequence[bool] | None) -> float | None:
    return sum(flags) / len(flags) if flags else None
