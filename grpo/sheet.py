"""The contact sheet of a step: every rollout's painting in a grid, with its reward, or the reason why there is none."""

from __future__ import annotations

import io
import math
import textwrap

from PIL import Image, ImageDraw, ImageFont

from grpo.rollout import Rollout

TILE = 300
CAPTION = 26
MARGIN = 8
PAPER = (250, 249, 246)
INK = (40, 40, 44)
FAINT = (150, 148, 142)


def contact_sheet(rollouts: list[Rollout], columns: int = 4) -> bytes:
    """PNG of all rollouts in the order in which they were sampled."""
    columns = min(columns, len(rollouts))
    rows = math.ceil(len(rollouts) / columns)
    size = (columns * (TILE + MARGIN) + MARGIN, rows * (TILE + CAPTION + MARGIN) + MARGIN)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(15)
    for place, rollout in enumerate(rollouts):
        x = MARGIN + place % columns * (TILE + MARGIN)
        y = MARGIN + place // columns * (TILE + CAPTION + MARGIN)
        painting = rollout.painting
        if painting is not None and painting.png is not None:
            with Image.open(io.BytesIO(painting.png)) as image:
                tile = image.convert("RGBA")
                ground = Image.new("RGBA", tile.size, "white")
                ground.alpha_composite(tile)
                ground.thumbnail((TILE, TILE), Image.Resampling.LANCZOS)
                sheet.paste(ground.convert("RGB"), (x + (TILE - ground.width) // 2, y + (TILE - ground.height) // 2))
        draw.rectangle((x, y, x + TILE - 1, y + TILE - 1), outline=FAINT)
        if rollout.outcome == "scored":
            caption = f"{rollout.index}   {rollout.reward:.3f}   {rollout.advantage:+.3f}"
        else:
            caption = f"{rollout.index}   {rollout.outcome}"
            verdict = rollout.verdict
            text = f"{verdict.reason}: {verdict.detail}" if verdict else ""
            draw.multiline_text((x + 12, y + 12), textwrap.fill(text, 34)[:400], font=font, fill=INK)
        draw.text((x + 2, y + TILE + 4), caption, font=font, fill=INK)
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()
