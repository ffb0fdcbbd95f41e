"""Photographs to paint from: a folder with metadata.jsonl, a line a picture, with `file_name`, `licence`, `attribution`
and `url`; `subject` where a picture shows something of its own.

Whoever publishes a painting has to name the photograph, so one without licence or attribution is refused before
anything is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import UnidentifiedImageError

from render.errors import ConfigError
from reward.pictures import prepared
from reward.pool.workshop import METADATA, read_lines

NEEDED = ("file_name", "licence", "attribution", "url")
KNOWN = (*NEEDED, "subject")


@dataclass(frozen=True)
class Photo:
    """png: what is sent. The rest is kept with every painting that was made from it."""

    name: str
    png: bytes
    licence: str
    attribution: str
    url: str
    subject: str = ""

    @property
    def columns(self) -> dict[str, str]:
        """Its part of a painting's metadata."""
        return {
            "reference_photo": self.name,
            "reference_photo_licence": self.licence,
            "reference_photo_attribution": self.attribution,
            "reference_photo_url": self.url,
        }


def read_photos(folder: Path, longer_side: int) -> list[Photo]:
    """The photographs of a folder in the order of their metadata, none wider or higher than `longer_side` pixels.

    Raises ConfigError in one line for what is missing or wrong.
    """
    path = folder / METADATA
    if not path.is_file():
        raise ConfigError(f"{folder}: no {METADATA} there; a line a photograph, with {', '.join(NEEDED)}")
    photos = []
    for number, record in enumerate(read_lines(path), 1):
        where = f"{path}, photograph {number}"
        for key in record:
            if key not in KNOWN:
                raise ConfigError(f"{where}: {key} is not known; known are {', '.join(KNOWN)}")
        for key in KNOWN:
            value = record.get(key, "")
            if not isinstance(value, str) or (key in NEEDED and not value.strip()):
                raise ConfigError(f"{where}: {key} must be a text, not {record.get(key)!r}")
        image = folder / record["file_name"]
        try:
            png = prepared(image.read_bytes(), longer_side).png
        except (OSError, UnidentifiedImageError) as error:
            raise ConfigError(f"{where}: {image} cannot be read: {error}") from error
        photos.append(
            Photo(
                record["file_name"],
                png,
                record["licence"],
                record["attribution"],
                record["url"],
                record.get("subject", ""),
            )
        )
    if not photos:
        raise ConfigError(f"{path} names no photograph")
    return photos
