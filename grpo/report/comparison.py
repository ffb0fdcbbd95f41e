"""Several runs side by side: one column each, with the difference where there are two.

Thirds are each run's own, so that runs of different length are compared at the same part of their way; the reward over
the steps that all of them have stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from grpo.report.numbers import LOW, mean
from grpo.report.tables import ABSENT, NONE, Found, Table, number, term_name

Get = Callable[[Found], Any]
# What follows a missing key: the file cannot say it.
_MISSING = object()


def comparison(runs: Sequence[Found]) -> Table:
    """All of them in one table."""
    low, high = max(run["first_step"] for run in runs), min(run["last_step"] for run in runs)
    rows: list[tuple[str, ...]] = []

    def add(label: str, form: str, get: Get) -> None:
        values = [_value(run, get) for run in runs]
        cells = [ABSENT if value is _MISSING else number(value, form) for value in values]
        if len(runs) == 2:
            both = [value for value in values if isinstance(value, (int, float))]
            sign = form if form.startswith("+") else f"+{form.replace('d', '.0f')}"
            cells.append(format(both[1] - both[0], sign) if len(both) == 2 else "")
        rows.append((label, *cells))

    def ends(label: str, form: str, get: Get) -> None:
        if all(run["steps"] == 1 for run in runs):
            add(label, form, lambda run: _end(get(run), 0))
            return
        add(f"{label}, first third", form, lambda run: _end(get(run), 0))
        add("  last third", form, lambda run: _end(get(run), -1))

    def part(key: str) -> Get:
        return lambda run: run["by_third"][key]

    add("steps", "d", lambda run: run["steps"])
    add("rollouts", "d", lambda run: run["rollouts"])
    ends("reward", ".3f", part("reward"))
    if low <= high:
        add(f"reward of steps {low} to {high}", ".3f", lambda run: _between(run, low, high))
    for label, key in (("slope", "reward"), ("slope without the draw", "reward_adjusted")):
        add(f"{label} in 100 steps", "+.4f", partial(_line, key=key, part="slope", times=100))
        add("  its t", ".1f", partial(_line, key=key, part="t"))
    ends("best of each step", ".3f", part("best"))
    ends("median of each step", ".3f", part("median"))
    for term in dict.fromkeys(term for run in runs for term in run["by_third"]["terms"]):
        called = {term_name(run, term) for run in runs if term in run["by_third"]["terms"]}
        label = f"term {called.pop()}" if len(called) == 1 else f"term {term} (a stand-in in some)"
        ends(label, ".3f", partial(_term, term=term))
    ends(f"share below {LOW}", ".1%", lambda run: run["by_third"]["below"] and run["by_third"]["below"]["share"])
    for label, key in (
        ("rise: bad ones rarer", "rarer"),
        ("rise: good ones better", "good_better"),
        ("rise: bad ones better", "bad_better"),
    ):
        add(label, "+.3f", partial(_rise, key=key))
    for name in ("coverage", "tokens", "shapes"):
        add(f"correlation with {name}, inside groups", "+.2f", partial(_correlation, name=name))
    for kind in ("zero_spread", "unscored"):
        add(f"dead groups: {kind.replace('_', ' ')}", "d", partial(_count, table="groups", key=kind))
    for outcome in ("rejected", "unscored"):
        add(f"rollouts {outcome}", "d", partial(_outcomes, key=outcome))
    ends("effect of the draw", "+.4f", lambda run: run["draw"] and run["draw"]["effect"])
    ends("feature distance in groups", ".2f", part("feature_distance"))
    ends("colour distance in groups", ".1f", part("colour_distance"))
    ends("distinct completions", ".1%", part("distinct"))
    ends("entropy of a token, nats", ".3f", part("entropy"))
    ends("tokens of a completion", ".1f", part("tokens"))
    ends("seconds a step", ".1f", part("step_time"))
    add("seconds in all", ",.0f", lambda run: run["totals"]["seconds"])
    add("cost of the judge", ".4f", _cost)
    head = names(runs) + (("difference",) if len(runs) == 2 else ())
    return Table("Side by side", head, tuple(rows))


def names(runs: Sequence[Found]) -> tuple[str, ...]:
    """Names of the runs; the path where two are called the same."""
    names = [run["name"] for run in runs]
    return tuple(name if names.count(name) == 1 else run["path"] for name, run in zip(names, runs, strict=True))


def _value(run: Found, get: Get) -> Any:
    value = get(run)
    return _MISSING if value is None else None if value is NONE else value


def _end(values: Sequence[float | None] | None, place: int) -> Any:
    """The first or last third of a list; None: the file has no such thing; NONE: it has none there."""
    if values is None:
        return None
    return NONE if values[place] is None else values[place]


def _between(run: Found, low: int, high: int) -> Any:
    value = mean([row["reward"] for row in run["each_step"] if low <= row["step"] <= high])
    return NONE if value is None else value


def _line(run: Found, key: str, part: str, times: float = 1.0) -> Any:
    line = run["trend"][key]
    if line is None:
        return None if run["by_third"][key] is None else NONE
    return NONE if line[part] is None else times * line[part]


def _term(run: Found, term: str) -> Any:
    return run["by_third"]["terms"].get(term)


def _rise(run: Found, key: str) -> Any:
    return _of_rollouts(run, run["rise"] and run["rise"][key])


def _correlation(run: Found, name: str) -> Any:
    return _of_rollouts(run, run["correlations"] and run["correlations"][name]["inside_groups"])


def _of_rollouts(run: Found, value: float | None) -> Any:
    """A file without rollouts cannot say it; a run with rollouts may have none."""
    return NONE if value is None and run["rollouts"] is not None else value


def _count(run: Found, table: str, key: str) -> Any:
    found = run[table]
    return None if found is None or found[key] is None else sum(found[key])


def _outcomes(run: Found, key: str) -> Any:
    found = run["by_third"]["outcomes"][key]
    return None if found is None else sum(found)


def _cost(run: Found) -> Any:
    judge = run["judge"]
    return judge["cost"] if judge and judge["priced"] else None
