"""Contact sheets: every rollout's painting in a grid, with its reward, or the reason why there is none.

Where nothing is painted (the control task) a tile shows the beginning of the sketch instead.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from grpo.rollout import Rollout

TILE = 300
CAPTION = 26
MARGIN = 8
TITLE = 40
WIDTH = 2000  # of two sheets side by side
WRAP = 34  # characters that fit on a tile
PAPER = (250, 249, 246)
INK = (40, 40, 44)
FAINT = (150, 148, 142)


def contact_sheet(rollouts: Sequence[Rollout]) -> bytes:
    """PNG of all rollouts in the order in which they were sampled, at least four in a row."""
    columns = min(len(rollouts), max(4, round(math.sqrt(len(rollouts) * 2 / 3))))
    rows = math.ceil(len(rollouts) / columns)
    size = (columns * (TILE + MARGIN) + MARGIN, rows * (TILE + CAPTION + MARGIN) + MARGIN)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(15)
    trained = any(rollout.advantage for rollout in rollouts)
    for place, rollout in enumerate(rollouts):
        x = MARGIN + place % columns * (TILE + MARGIN)
        y = MARGIN + place // columns * (TILE + CAPTION + MARGIN)
        tile = _tile(rollout)
        sheet.paste(tile, (x + (TILE - tile.width) // 2, y + (TILE - tile.height) // 2))
        draw.rectangle((x, y, x + TILE - 1, y + TILE - 1), outline=FAINT)
        verdict, painting = rollout.verdict, rollout.painting
        if rollout.reward is not None and rollout.outcome == "scored":
            caption = f"{rollout.index}   {rollout.reward:.3f}" + (f"   {rollout.advantage:+.3f}" if trained else "")
        else:
            caption = f"{rollout.index}   {rollout.outcome}"
            if verdict is not None and painting is not None and painting.png is not None:
                caption += f": {verdict.reason}"
        draw.text((x + 2, y + TILE + 4), caption, font=font, fill=INK)
    return _png(sheet)


def side_by_side(sides: Sequence[tuple[str, bytes]]) -> bytes:
    """PNG of several contact sheets, each under its title; scaled down to about 2,000 pixels in width."""
    sheets: list[Image.Image] = [Image.open(io.BytesIO(png)) for _, png in sides]
    gap = 3 * MARGIN
    scale = min(1.0, WIDTH / (sum(sheet.width for sheet in sheets) + gap * (len(sheets) - 1)))
    sheets = [
        sheet.resize((round(sheet.width * scale), round(sheet.height * scale)), Image.Resampling.LANCZOS)
        for sheet in sheets
    ]
    size = (
        sum(sheet.width for sheet in sheets) + gap * (len(sheets) - 1),
        TITLE + max(sheet.height for sheet in sheets),
    )
    picture, x = Image.new("RGB", size, PAPER), 0
    draw = ImageDraw.Draw(picture)
    for (title, _), sheet in zip(sides, sheets, strict=True):
        draw.text((x + MARGIN, MARGIN), title, font=ImageFont.load_default(22), fill=INK)
        picture.paste(sheet, (x, TITLE))
        x += sheet.width + gap
    return _png(picture)


def _tile(rollout: Rollout) -> Image.Image:
    """The painting on white; without one the verdict's words over the beginning of the sketch."""
    painting, verdict = rollout.painting, rollout.verdict
    if painting is not None and painting.png is not None:
        with Image.open(io.BytesIO(painting.png)) as image:
            picture = image.convert("RGBA")
        ground = Image.new("RGBA", picture.size, "white")
        ground.alpha_composite(picture)
        ground.thumbnail((TILE, TILE), Image.Resampling.LANCZOS)
        return ground.convert("RGB")
    tile = Image.new("RGB", (TILE, TILE), PAPER)
    draw = ImageDraw.Draw(tile)
    words = f"{verdict.reason}: {verdict.detail}".removeprefix(": ") if verdict else ""
    text = textwrap.fill(words, WRAP)[:400]
    draw.multiline_text((12, 12), text, font=ImageFont.load_default(15), fill=INK)
    if rollout.sketch is not None and painting is None:
        below = 24 + 19 * (text.count("\n") + 1)
        draw.multiline_text((12, below), rollout.sketch[:1500], font=ImageFont.load_default(9), fill=FAINT)
    return tile


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()
