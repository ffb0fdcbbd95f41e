"""The numbers of a report as tables of words, for the terminal and for Markdown.

A table knows nothing of where it will be shown. "not in this file" stands where the file cannot say a number; "-" where
it could and there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grpo.report.numbers import LOW

ABSENT = "not in this file"
NONE = "-"
Found = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """head: names of the columns after the first, which holds the rows' labels. notes: lines under the table."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def number(value: float | None, form: str = ".3f") -> str:
    """A value, or "-"."""
    return NONE if value is None else format(value, form)


def tables(found: Found) -> list[Table]:
    """Everything about one run."""
    return [
        _reward(found),
        _trend(found),
        _rise(found),
        _correlations(found),
        _outcomes(found),
        _draw(found),
        _diversity(found),
        _time(found),
        *([_judge(found)] if found["judge"] else []),
    ]


def term_name(found: Found, term: str) -> str:
    """The name that people see: a stand-in is called so."""
    return f"{term} (stand-in)" if term in found["stand_ins"] else term


def _row(label: str, values: Sequence[Any] | None, form: str | Callable[[Any], str], width: int) -> tuple[str, ...]:
    if values is None:
        return (label, ABSENT, *[""] * (width - 1))
    show = form if callable(form) else lambda value: number(value, form)
    return (label, *(show(value) for value in values))


class _Rows:
    """Rows with a cell for each third."""

    def __init__(self, found: Found) -> None:
        self.names = tuple(found["thirds"]["names"])
        self.rows: list[tuple[str, ...]] = []

    def add(self, label: str, values: Sequence[Any] | None, form: str | Callable[[Any], str] = ".3f") -> None:
        self.rows.append(_row(label, values, form, len(self.names)))

    def table(self, title: str, *notes: str) -> Table:
        return Table(title, self.names, tuple(self.rows), notes)


def _reward(found: Found) -> Table:
    part, rows, below = found["by_third"], _Rows(found), found["by_third"]["below"]
    rows.add("steps", [f"{first} to {last}" for first, last in found["thirds"]["steps"]], str)
    rows.add("mean reward", part["reward"])
    rows.add("without the luck of the draw", part["reward_adjusted"])
    rows.add("best of each step", part["best"])
    rows.add("median of each step", part["median"])
    rows.add("spread in a step", part["spread"])
    for term, values in part["terms"].items():
        rows.add(f"term {term_name(found, term)}", values)
    rows.add(f"share below {LOW}", below and below["share"], ".1%")
    counts = below and [f"{few} of {all_}" for few, all_ in zip(below["count"], below["scored"], strict=True)]
    rows.add(f"rollouts below {LOW}", counts, str)
    rows.add("of these rejected", below and below["rejected"], "d")
    return rows.table("Reward")


def _trend(found: Found) -> Table:
    rows = []
    for label, key in (("reward", "reward"), ("without the luck of the draw", "reward_adjusted")):
        line = found["trend"][key]
        if line is None:
            there = found["by_third"][key] is not None
            rows.append((label, NONE if there else ABSENT, "", "", ""))
            continue
        error = None if line["standard_error"] is None else 100 * line["standard_error"]
        rows.append(
            (label, number(100 * line["slope"], "+.4f"), number(error, ".4f"), number(line["t"], ".1f"), str(line["n"]))
        )
    note = "Least squares over the steps, which t takes as independent: above 2 or so it is hardly an accident."
    return Table("Trend", ("slope in 100 steps", "standard error", "t", "steps"), tuple(rows), (note,))


def _rise(found: Found) -> Table:
    rise, head = found["rise"], ("reward", "share of the rise")
    title = f"Where the rise came from, {found['thirds']['names'][0]} to {found['thirds']['names'][-1]}"
    if rise is None:
        there = found["rollouts"] is not None
        return Table("Where the rise came from", head, (("rise of the mean", NONE if there else ABSENT, ""),))

    def share(value: float) -> str:
        return format(value / rise["rise"], ".0%") if abs(rise["rise"]) > 1e-9 else NONE

    rows = [
        (label, format(rise[key], "+.4f"), share(rise[key]))
        for label, key in (
            (f"bad ones (below {LOW}) became rarer", "rarer"),
            ("good ones became better", "good_better"),
            ("bad ones became better", "bad_better"),
            ("together: rise of the mean", "rise"),
        )
    ]
    facts = (
        f"Bad ones: {rise['share_first']:.1%} to {rise['share_last']:.1%}, "
        f"mean {number(rise['bad_first'])} to {number(rise['bad_last'])}; "
        f"good ones: mean {number(rise['good_first'])} to {number(rise['good_last'])}."
    )
    formula = "(p1 - p2)(g' - b') + (1 - p')(g2 - g1) + p'(b2 - b1), p share of bad ones, b and g means, ' = average"
    return Table(title, head, tuple(rows), (facts, f"Exact: {formula}."))


def _correlations(found: Found) -> Table:
    related, head = found["correlations"], ("all", "inside groups")
    title = "Correlation of reward (Pearson's r)"
    if related is None:
        return Table(
            title, head, tuple((name, ABSENT, "") for name in ("coverage", "length in tokens", "shapes drawn"))
        )
    rows = tuple(
        (label, number(related[key]["all"], "+.2f"), number(related[key]["inside_groups"], "+.2f"))
        for label, key in (("coverage", "coverage"), ("length in tokens", "tokens"), ("shapes drawn", "shapes"))
    )
    kind = "painted and scored" if related["painted"] else "scored (nothing was painted)"
    return Table(
        title, head, rows, (f"Over {related['rollouts']} rollouts, {kind}; inside: each group's means taken out.",)
    )


def _outcomes(found: Found) -> Table:
    rows, reasons, groups = _Rows(found), found["reasons"], found["groups"]
    for outcome in ("scored", "rejected", "unscored"):
        rows.add(outcome, found["by_third"]["outcomes"][outcome], "d")
        for reason, counts in (reasons or {}).get(outcome, {}).items():
            rows.add(f"  {outcome}: {reason}", counts, "d")
    if groups and groups["shares"]:
        for label, values in zip(("zero spread", "unscored"), groups["shares"], strict=True):
            rows.add(f"share of dead groups: {label}", values, ".1%")
    else:
        rows.add("groups", groups and groups["all"], "d")
        rows.add("dead groups: zero spread", groups and groups["zero_spread"], "d")
        rows.add("dead groups: unscored", groups and groups["unscored"], "d")
    notes = [f"{count}x {cause}" for cause, count in (reasons or {}).get("unscored_causes", {}).items()]
    if found["totals"]["sampled_again"]:
        notes.append(f"{found['totals']['sampled_again']} times a step without any score was sampled again.")
    return rows.table("Outcomes", *notes)


def _draw(found: Found) -> Table:
    rows, draw = _Rows(found), found["draw"]
    rows.add("difficulty, logits above the pool", draw and draw["difficulty"], "+.3f")
    rows.add("effect on the judge's mean", draw and draw["effect"], "+.4f")
    if draw is None:
        return rows.table("Luck of the draw of references")
    related = number(draw["correlation"], "+.2f")
    weight = "" if draw["weight"] is None else f" It counts with the judge's weight, {draw['weight']:g}."
    return rows.table(
        "Luck of the draw of references",
        f"Easiest step {draw['easiest']:+.3f}, hardest {draw['hardest']:+.3f}; "
        f"correlation with reward {related}.{weight}",
    )


def _diversity(found: Found) -> Table:
    part, rows = found["by_third"], _Rows(found)
    rows.add("feature distance", part["feature_distance"], ".2f")
    rows.add("colour distance", part["colour_distance"], ".1f")
    rows.add("distinct completions", part["distinct"], ".1%")
    rows.add("entropy of a token, nats", part["entropy"])
    return rows.table(
        "Diversity inside groups",
        "Feature distance: 0 the same painting, about 1.4 two drawn at random from this report. "
        "Colour distance: 2 is about what an eye can tell.",
    )


def _time(found: Found) -> Table:
    part, rows, totals = found["by_third"], _Rows(found), found["totals"]
    rows.add("tokens of a completion", part["tokens"], ".1f")
    rows.add("cut off", part["cut_off"], ".1%")
    for label, key in (("coverage of a painting", "coverage"), ("shapes of a painting", "shapes")):
        rows.add(label, part[key], ".3f" if key == "coverage" else ".1f")
    if part["fills"] and any(value is not None for value in part["fills"]):
        rows.add("brush.fill( in a sketch", part["fills"], ".2f")
    rows.add("seconds a step", part["step_time"], ".1f")
    for label, key in (
        ("sampling", "sample"),
        ("painting, waited for", "paint_waited"),
        ("scoring", "score"),
        ("training", "train"),
    ):
        rows.add(f"  {label}", part["time"][key], ".1f")
    rows.add("gradient norm", part["gradient"], ".4f")
    notes = []
    if totals["seconds"] is not None:
        notes.append(f"All steps together: {totals['seconds']:,.0f} s.")
    if totals["tokens"] is not None:
        notes.append(f"Tokens sampled: {totals['tokens']:,.0f}.")
    return rows.table("Tokens and time", *notes)


def _judge(found: Found) -> Table:
    judge, cost = found["judge"], found["by_third"]["cost"]
    steps, faults = found["steps"], ", ".join(f"{count} {kind}" for kind, count in judge["faults"].items()) or "none"

    def whole(key: str) -> str:
        return number(judge[key], ",.0f")

    rows = [
        ("calls", f"{whole('calls')}, of which {whole('retries')} again after a fault"),
        ("answers", f"{whole('answers')} paid, {whole('cached')} from the cache"),
        ("comparisons that stayed missing", whole("missing")),
        ("faults", faults),
        ("outages", f"{whole('outages')}, waited {whole('waited_s')} s"),
        ("tokens", f"{whole('tokens_in')} in, {whole('tokens_out')} out"),
    ]
    if judge["priced"] and judge["cost"] is not None:
        thirds = ", ".join(number(value, ".4f") for value in cost or [])
        rows.append(("cost", f"{judge['cost']:.4f} in money, {judge['cost'] / steps:.4f} a step (by thirds {thirds})"))
    else:
        rows.append(("cost", "no price is set in [reward.vlm]"))
    return Table("The judge", ("over the run",), tuple(rows))


def each_step(found: Found) -> Table:
    """A row a step."""
    names = {
        "reward": "reward",
        "reward_adjusted": "without the draw",
        "best": "best",
        "median": "median",
        "below": f"below {LOW}",
        "feature_distance": "feature distance",
        "draw_effect": "effect of the draw",
    }
    shown = [key for key in names if any(row[key] is not None for row in found["each_step"])]
    forms = {"below": ".0%", "feature_distance": ".2f", "draw_effect": "+.3f"}
    rows = tuple(
        (str(row["step"]), *(number(row[key], forms.get(key, ".3f")) for key in shown)) for row in found["each_step"]
    )
    return Table("Each step", tuple(names[key] for key in shown), rows)
