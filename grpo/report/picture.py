"""The overview of a run, or of several, as one picture. A panel whose numbers the file does not have says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grpo.report.numbers import LOW
from grpo.report.plot import COLOURS, INK, SOFT, Panel, Sheet, Values, spread
from grpo.report.source import Source
from grpo.report.tables import ABSENT, Found, number

WIDTH, PANEL_WIDTH, PANEL_HEIGHT, MARGIN, HEAD = 1500, 480, 290, 20, 64
RAW, ADJUSTED, GOOD, BAD, LOST = "#b9b3a6", "#d9663b", "#2f6f8f", "#c0504d", "#c9c6bf"
Place = tuple[float, float, float, float]


def overview(source: Source, found: Found) -> Sheet:
    """Nine panels of one run."""
    return _OneRun(source, found).sheet


def side_by_side(sources: Sequence[Source], runs: Sequence[Found], names: Sequence[str]) -> Sheet:
    """Six panels with a line a run."""
    sheet = _paper(2, "Side by side")
    steps = (min(run["first_step"] for run in runs), max(run["last_step"] for run in runs))
    x = MARGIN / 2 + 8
    for index, name in enumerate(names):
        sheet.box(x, 46, x + 14, 51, COLOURS[index % len(COLOURS)])
        sheet.text(x + 20, 48, name, 14, INK, "lm")
        x += 44 + round(sheet.length(name, 14))

    def each(key: str) -> Callable[[Source, Found], Values | None]:
        def values(source: Source, found: Found) -> Values | None:
            column = [row[key] for row in found["each_step"]]
            return column if any(value is not None for value in column) else None

        return values

    def column(name: str) -> Callable[[Source, Found], Values | None]:
        return lambda source, found: source.column(name)

    panels: list[tuple[str, Callable[[Source, Found], Values | None]]] = [
        ("Reward", each("reward")),
        ("Reward without the luck of the draw", each("reward_adjusted")),
        (f"Share of rollouts below {LOW}", each("below")),
        ("Feature distance in groups", each("feature_distance")),
        ("Entropy of a token, nats", column("entropy")),
        ("Tokens of a completion", column("completions/mean_length")),
    ]
    for index, (title, get) in enumerate(panels):
        lines = [get(source, found) for source, found in zip(sources, runs, strict=True)]
        place = _place(index)
        if not any(line is not None and any(value is not None for value in line) for line in lines):
            _absent(sheet, place, title)
            continue
        panel = Panel(sheet, place, title, steps, spread(*lines))
        for number_of, (source, line) in enumerate(zip(sources, lines, strict=True)):
            if line is not None:
                panel.line(source.steps, line, COLOURS[number_of % len(COLOURS)], width=1.6)
    return sheet


class _OneRun:
    """Draws the panels of one run onto self.sheet."""

    def __init__(self, source: Source, found: Found) -> None:
        self.source, self.found = source, found
        self.steps = source.steps
        self.x_range = (self.steps[0], self.steps[-1])
        self.sheet = _paper(3, f"{found['name']}: {found['steps']} steps")
        self._head()
        for index, draw in enumerate(
            (
                self._reward,
                self._rollouts,
                self._terms,
                self._outcomes,
                self._low,
                self._diversity,
                self._entropy,
                self._tokens,
                self._time,
            )
        ):
            draw(_place(index))

    def _each(self, key: str) -> list[float | None] | None:
        values = [row[key] for row in self.found["each_step"]]
        return values if any(value is not None for value in values) else None

    def _head(self) -> None:
        part, trend = self.found["by_third"], self.found["trend"]["reward"]
        words = []
        if part["reward"] and len(part["reward"]) > 1:
            words.append(f"reward {number(part['reward'][0])} to {number(part['reward'][-1])} by thirds")
        if trend and trend["t"] is not None:
            words.append(f"slope {100 * trend['slope']:+.3f} in 100 steps, t = {trend['t']:.1f}")
        rise = self.found["rise"]
        if rise:
            words.append(
                f"of the rise {rise['rise']:+.3f}: bad ones rarer {rise['rarer']:+.3f}, "
                f"good ones better {rise['good_better']:+.3f}, bad ones better {rise['bad_better']:+.3f}"
            )
        self.sheet.text(MARGIN / 2 + 8, 44, "   |   ".join(words), 13, SOFT)

    def _panel(self, place: Place, title: str, *series: Values | None, floor: float | None = None) -> Panel | None:
        """A panel for these values, or None with a word where there are none."""
        if not any(one is not None and any(value is not None for value in one) for one in series):
            _absent(self.sheet, place, title)
            return None
        return Panel(self.sheet, place, title, self.x_range, spread(*series, floor=floor))

    def _reward(self, place: Place) -> None:
        raw, adjusted = self.source.column("reward"), self._each("reward_adjusted")
        panel = self._panel(place, "Reward", raw, adjusted)
        if panel is None:
            return
        panel.line(self.steps, raw or [], RAW, "as paid")
        if adjusted is not None:
            panel.line(self.steps, adjusted, ADJUSTED, "without the luck of the draw")
        line = self.found["trend"]["reward_adjusted"] or self.found["trend"]["reward"]
        if line is not None:
            ends = [line["intercept"] + line["slope"] * step for step in self.x_range]
            panel.line(self.x_range, ends, INK, "least squares", 1.0)

    def _rollouts(self, place: Place) -> None:
        samples = [one for one in self.source.samples or () if one.reward is not None]
        panel = self._panel(place, "Every rollout, best and median", [one.reward for one in samples], floor=0.0)
        if panel is None:
            return
        for outcome, colour in (("scored", GOOD), ("rejected", BAD)):
            points = [
                (float(one.step), one.reward) for one in samples if one.outcome == outcome and one.reward is not None
            ]
            panel.dots(points, colour, 90 if outcome == "scored" else 200)
        panel.level(LOW)
        for key, colour in (("best", "#6a994e"), ("median", ADJUSTED)):
            values = self._each(key)
            if values is not None:
                panel.line(self.steps, values, colour, key, 1.5)
        if any(one.outcome == "rejected" for one in samples):
            panel.legend("rejected", BAD)

    def _terms(self, place: Place) -> None:
        terms = [term for term in self.found["by_third"]["terms"] if term != "gate"]
        columns = {term: self.source.column(f"rewards/{term}/mean") or [] for term in terms}
        panel = self._panel(place, "Terms", *columns.values())
        if panel is None:
            return
        for index, (term, values) in enumerate(columns.items()):
            panel.line(self.steps, values, COLOURS[index % len(COLOURS)], term, 1.6)
        if self.found["stand_ins"]:
            words = "stand-ins: " + ", ".join(self.found["stand_ins"])
            self.sheet.text(panel.right, place[1] + 10, words, 12, SOFT, "ra")

    def _outcomes(self, place: Place) -> None:
        title = "Rollouts of a step"
        counts = {
            outcome: [float(value) for value in self._counts(outcome)]
            for outcome in ("scored", "rejected", "unscored")
            if self._counts(outcome)
        }
        total = [sum(values) for values in zip(*counts.values(), strict=True)] if counts else None
        panel = self._panel(place, title, total, floor=0.0)
        if panel is None:
            return
        colours = {"scored": "#a9c6d3", "rejected": BAD, "unscored": LOST}
        panel.stacked(self.steps, [(name, colours[name], values) for name, values in counts.items()])

    def _counts(self, outcome: str) -> list[float]:
        if self.source.samples is not None:
            found = dict.fromkeys(self.steps, 0.0)
            for sample in self.source.samples:
                found[sample.step] += sample.outcome == outcome
            return [found[step] for step in self.steps]
        column = self.source.column(f"rollouts/{outcome}")
        return [value or 0.0 for value in column] if column is not None else []

    def _low(self, place: Place) -> None:
        values = self._each("below")
        panel = self._panel(place, f"Share of rollouts below {LOW}", values, floor=0.0)
        if panel is not None and values is not None:
            panel.stacked(self.steps, [("", BAD, values)])

    def _diversity(self, place: Place) -> None:
        values = self._each("feature_distance")
        panel = self._panel(place, "Feature distance between the paintings of a group", values, floor=0.0)
        if panel is not None and values is not None:
            panel.line(self.steps, values, COLOURS[3])

    def _entropy(self, place: Place) -> None:
        values = self.source.column("entropy")
        panel = self._panel(place, "Entropy of a token, nats", values)
        if panel is not None and values is not None:
            panel.line(self.steps, values, COLOURS[7])

    def _tokens(self, place: Place) -> None:
        names = ("completions/min_length", "completions/mean_length", "completions/max_length")
        lines: list[Any] = [self.source.column(name) for name in names]
        panel = self._panel(place, "Tokens of a completion", *lines)
        if panel is None:
            return
        for line, colour, name in zip(lines, (LOST, COLOURS[5], LOST), ("shortest, longest", "mean", ""), strict=True):
            if line is not None:
                panel.line(self.steps, line, colour, name, 1.6)

    def _time(self, place: Place) -> None:
        parts = (
            ("sampling", "#2f6f8f", "time/sample"),
            ("waiting for paint", "#d9a441", "time/paint_waited"),
            ("scoring", "#8d5a97", "time/score"),
            ("training", "#6a994e", "time/train"),
        )
        layers = [(name, colour, self.source.column(key)) for name, colour, key in parts]
        there = [(name, colour, values) for name, colour, values in layers if values is not None]
        whole = self.source.column("step_time")
        panel = self._panel(place, "Seconds of a step", whole, floor=0.0)
        if panel is None:
            return
        if there:
            panel.stacked(self.steps, there)
        else:
            panel.line(self.steps, whole or [], COLOURS[5])


def _paper(rows: int, title: str) -> Sheet:
    sheet = Sheet(WIDTH, HEAD + rows * (PANEL_HEIGHT + MARGIN))
    sheet.text(MARGIN / 2 + 8, 12, title, 22)
    return sheet


def _place(index: int) -> Place:
    x = MARGIN / 2 + index % 3 * (PANEL_WIDTH + MARGIN / 2)
    return x, HEAD + index // 3 * (PANEL_HEIGHT + MARGIN), PANEL_WIDTH, PANEL_HEIGHT


def _absent(sheet: Sheet, place: Place, title: str) -> None:
    x, y, width, height = place
    sheet.text(x + 8, y + 6, title, 16)
    sheet.text(x + width / 2, y + height / 2, ABSENT, 14, SOFT, "mm")
