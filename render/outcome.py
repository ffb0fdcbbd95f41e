"""From what the page reports to a Painting: which rule decides, and in which order.

The first that holds: not JavaScript, a refused use (even one that the sketch caught), no setup, no WEBGL canvas, an
error before any pigment, no pigment, blank. Everything else is painted; an error after pigment is down leaves the
painting valid with `finished` False.
"""

from __future__ import annotations

from typing import Any

from render.painting import REJECTIONS, Outcome, Painting
from render.pixels import coverage
from render.settings import RenderSettings


def judge(result: dict[str, Any], png: bytes | None, settings: RenderSettings, worker: int) -> Painting:
    """result: the page's report (studio/harness.js, finish), or {"syntax": ...}; png: the canvas where there is one."""
    syntax = result.get("syntax")
    if syntax:
        return _rejected("syntax_error", worker, result, syntax["message"], syntax["line"])
    refusal = result.get("refusal")
    if refusal:
        return _rejected(refusal["reason"], worker, result, refusal["detail"], refusal["line"])
    if result.get("no_setup"):
        return _rejected("no_setup", worker, result)
    errors = result["errors"]
    pigment = result["washes"] + result["strokes"] > 0
    if errors and not pigment:
        return _rejected("throws", worker, result, errors[0]["message"], errors[0]["line"])
    if not result["webgl"]:
        return _rejected("not_webgl", worker, result)
    if not pigment or png is None:
        return _rejected("no_painting", worker, result)
    covered = coverage(png)
    if covered < settings.blank_below:
        return _rejected("blank", worker, result, f"paint coverage {covered:.4f}", png=png, coverage=covered)
    return Painting(Outcome.PAINTED, png=png, coverage=covered, finished=not errors, **_common(result, worker))


def _common(result: dict[str, Any], worker: int) -> dict[str, Any]:
    errors = result.get("errors", ())
    return {
        "width": result.get("width", 0),
        "height": result.get("height", 0),
        "shapes": result.get("shapes", 0),
        "vertices": result.get("vertices", 0),
        "circles": result.get("circles", 0),
        "errors": tuple(f"line {error['line'] or '?'}: {error['message']}" for error in errors),
        "worker": worker,
        "attempt": 1,
    }


def _rejected(
    reason: str, worker: int, result: dict[str, Any], detail: str = "", line: int | None = None, **more: Any
) -> Painting:
    return Painting(
        Outcome.REJECTED,
        reason=reason,
        detail=detail or REJECTIONS[reason],
        line=line,
        **more,
        **_common(result, worker),
    )
