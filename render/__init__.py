"""Sketch text -> painting: real Chromium, real p5.brush, nothing of models or rewards.

Farm(RenderSettings()).submit(source, seed) gives a future of a Painting; `python -m render` does it for files.
"""

from render.farm import Farm
from render.painting import Outcome, Painting
from render.settings import RenderSettings

__all__ = ["Farm", "Outcome", "Painting", "RenderSettings"]
