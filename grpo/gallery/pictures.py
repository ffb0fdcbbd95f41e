"""What the gallery makes of a painting: a small one for the wall, its mean colour, and what the live repainting of its
sketch is compared with.

A page from disk may show pictures but not read their pixels. So the build reads them: a checksum of all pixels (equal
or not) and the mean colours in fields of 8 x 8 pixels (how far apart).
"""

from __future__ import annotations

import base64
import io
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from render.disk import write_whole

SMALL = 320  # pixels, the longer side on the wall
FIELD = 8  # pixels, the side of a field of mean colour


@dataclass(frozen=True)
class Look:
    """small: WebP. colour: mean, #rrggbb. checksum: CRC-32 of the RGBA bytes, row by row. fields: PNG as data URL."""

    small: bytes
    colour: str
    checksum: int
    fields: str


def look(path: Path) -> Look | None:
    """None where there is no painting, or one that cannot be read."""
    try:
        with Image.open(path) as opened:
            image = opened.convert("RGBA")
    except (OSError, SyntaxError):  # Pillow says SyntaxError of a PNG that is broken inside
        return None
    checksum = zlib.crc32(image.tobytes())
    ground = Image.new("RGBA", image.size, "white")
    ground.alpha_composite(image)
    painting = ground.convert("RGB")
    whole = painting.crop((0, 0, max(FIELD, image.width // FIELD * FIELD), max(FIELD, image.height // FIELD * FIELD)))
    fields = whole.reduce(FIELD)
    mean = fields.resize((1, 1), Image.Resampling.BOX).tobytes()
    painting.thumbnail((SMALL, SMALL), Image.Resampling.LANCZOS, reducing_gap=None)
    return Look(
        small=_bytes(painting, "WEBP", quality=84, method=2),
        colour=f"#{mean.hex()}",
        checksum=checksum,
        fields="data:image/png;base64," + base64.b64encode(_bytes(fields, "PNG")).decode(),
    )


def _bytes(image: Image.Image, kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def link(source: Path, target: Path) -> None:
    """The same file under another name; a copy where the disk knows no hard links. Whole or as it was."""
    if target.exists() and source.samefile(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(target.name + ".part")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:
        write_changed(target, source.read_bytes())
        return
    os.replace(temporary, target)


def write_changed(path: Path, content: bytes) -> bool:
    """Write a file unless it holds these bytes already. True where it was written."""
    try:
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return True
