"""What a painting looks like, in numbers: about forty statistics of colour, value, edge, texture and layout.

A painting is brought to 256 pixels on its longer side and parted into paper and paint: the paper is the mean colour of
the fullest 4-bit RGB bin, paint lies more than 6 CIE Lab units from it. (The recipe's coverage asks for 32 RGB units,
which loses the palest third of a loose wash; that number is `render`'s to report.) Formulas by name: Hasler and
Süsstrunk's colourfulness; slope of the radially averaged power spectrum (1/f); first-order entropy of edge
orientations (Redies, Grebenkina); CIE Lab throughout for value and chroma; Fourier descriptors of the silhouette for
lobes; Pearson correlation under reflection and rotation for symmetry.

Everything is deterministic and costs a few milliseconds. Nothing here judges: `reward.local` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from render.pixels import decode

cv2.setNumThreads(1)

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]

SIDE = 256
SMALL = 64  # side of a picture that is compared pixel by pixel
PAINT_FROM = 6.0
ANGLES = 120
RADII = 40
EPSILON = 1e-6


def resized(rgb: NDArray[np.uint8], side: int = SIDE) -> NDArray[np.uint8]:
    """The longer side at `side` pixels; a smaller picture is enlarged without smoothing: it must not gain softness."""
    height, width = rgb.shape[:2]
    scale = side / max(height, width)
    size = (max(8, round(width * scale)), max(8, round(height * scale)))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST))


def paper_colour(rgb: NDArray[np.uint8]) -> Array:
    """(3,) RGB 0..255: the mean colour of the fullest bin of 4 bits a channel."""
    quantised = (rgb >> 4).astype(np.int32)
    bins = (quantised[..., 0] << 8) | (quantised[..., 1] << 4) | quantised[..., 2]
    fullest = int(np.bincount(bins.ravel(), minlength=4096).argmax())
    return np.asarray(rgb[bins == fullest].mean(axis=0), dtype=np.float32)


def to_lab(rgb: NDArray[Any]) -> Array:
    """CIE Lab (L 0..100) of RGB 0..255, same shape (H, W, 3)."""
    return np.asarray(cv2.cvtColor(rgb.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), dtype=np.float32)


def small_lab(picture: NDArray[np.uint8]) -> Array:
    """RGB (H, W, 3) brought to 64 x 64, in CIE Lab."""
    return to_lab(cv2.resize(picture, (SMALL, SMALL), interpolation=cv2.INTER_AREA))


def colour_distance(labs: Sequence[Array]) -> float | None:
    """Mean over all pairs of the mean CIE76 difference of their pixels, of what `small_lab` gives. 0 where all are
    equal; 2 is about what an eye can tell, 100 black beside white. None for fewer than two."""
    if len(labs) < 2:
        return None
    return float(np.mean([np.linalg.norm(one - other, axis=2).mean() for one, other in combinations(labs, 2)]))


@lru_cache(maxsize=64)
def measure(png: bytes) -> dict[str, float]:
    """All statistics of one painting by name; the names and their order are the same for every picture."""
    return measure_picture(decode(png))


def measure_picture(picture: NDArray[np.uint8]) -> dict[str, float]:
    """The same of decoded RGB (H, W, 3)."""
    rgb = resized(picture)
    lab = to_lab(rgb)
    paper_lab = to_lab(paper_colour(rgb).reshape(1, 1, 3))[0, 0]
    depth = np.linalg.norm(lab - paper_lab, axis=2)
    mask = depth > PAINT_FROM
    coverage = float(mask.mean())
    if mask.sum() < 16:  # keeps every statistic defined on blank paper; `coverage` tells
        mask = np.zeros_like(mask)
        mask.ravel()[np.argsort(depth, axis=None, kind="stable")[-16:]] = True
    found = {
        "coverage": coverage,
        "paper_light": float(paper_lab[0]),
        "paper_chroma": float(np.hypot(paper_lab[1], paper_lab[2])),
    }
    found |= _value(lab, depth, mask)
    found |= _colour(rgb, lab, mask)
    found |= _edges(lab, depth, mask)
    found |= _layout(depth, mask)
    found |= _bloom(lab, depth, mask)
    found["repeats"] = _repeats(depth)
    return found


def _entropy(weights: Array) -> float:
    """Shannon entropy of a histogram over its maximum, 0..1."""
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    shares = weights[weights > 0] / total
    return float(-(shares * np.log(shares)).sum() / np.log(len(weights)))


def _value(lab: Array, depth: Array, mask: Mask) -> dict[str, float]:
    """Light and dark, and how many tones lie between the paper and the deepest pigment."""
    light, tone = lab[..., 0][mask], depth[mask]
    low, high = np.percentile(light, [5, 95])
    deepest = float(np.percentile(tone, 97)) + EPSILON
    return {
        "value_range": float(high - low),
        "dark_share": float((light < 42).mean()),
        "depth": float(tone.mean()),
        "translucency": float(((tone > 0.2 * deepest) & (tone < 0.75 * deepest)).mean()),
        "tone_entropy": _entropy(np.histogram(light, 32, (0, 100))[0].astype(np.float32)),
    }


def _colour(rgb: NDArray[np.uint8], lab: Array, mask: Mask) -> dict[str, float]:
    """Chroma and the circular histogram of hue (24 bins, weighted by chroma) over the paint."""
    red, green, blue = (rgb[..., channel].astype(np.float32) for channel in range(3))
    yellow_blue, red_green = 0.5 * (red + green) - blue, red - green
    light, first, second = lab[..., 0][mask], lab[..., 1][mask], lab[..., 2][mask]
    chroma = np.hypot(first, second)
    hue = np.degrees(np.arctan2(second, first)) % 360
    histogram = np.histogram(hue, 24, (0, 360), weights=chroma)[0].astype(np.float32)
    total = float(chroma.sum()) + EPSILON
    angle = np.radians(hue)
    return {
        "colourfulness": float(
            np.hypot(red_green.std(), yellow_blue.std()) + 0.3 * np.hypot(red_green.mean(), yellow_blue.mean())
        ),
        "chroma": float(chroma.mean()),
        "chroma_spread": float(chroma.std()),
        "mud": float(((chroma < 15) & (light < 75)).mean()),
        "warm_share": float(chroma[(hue < 95) | (hue > 320)].sum() / total),
        "green_share": float(chroma[(hue >= 95) & (hue < 180)].sum() / total),
        "cold_share": float(chroma[(hue >= 180) & (hue <= 320)].sum() / total),
        "hue_entropy": _entropy(histogram),
        "hue_unity": float(np.hypot((chroma * np.cos(angle)).sum(), (chroma * np.sin(angle)).sum()) / total),
    }


def _edges(lab: Array, depth: Array, mask: Mask) -> dict[str, float]:
    """Softness, hardness, direction and scale of the edges; granulation inside the paint.

    softness: share of gradient energy that a blur of 2 pixels leaves, which hard edges lose; calm: share of total
    variation that it leaves, which grain and small strokes lose; flat: share of the paint without any grain.
    """
    light = lab[..., 0]
    across, down = (cv2.Sobel(depth, cv2.CV_32F, *order, ksize=3) / 8.0 for order in ((1, 0), (0, 1)))
    gradient = np.hypot(across, down)
    blurred = cv2.GaussianBlur(depth, (0, 0), 2.0)
    kept = np.hypot(cv2.Sobel(blurred, cv2.CV_32F, 1, 0, ksize=3), cv2.Sobel(blurred, cv2.CV_32F, 0, 1, ksize=3)) / 8.0
    orientation = np.degrees(np.arctan2(down, across)) % 180
    rim = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    inside = cv2.erode(mask.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    mean = cv2.blur(light, (5, 5))
    granulation = np.sqrt(np.maximum(cv2.blur(light * light, (5, 5)) - mean * mean, 0))
    broad = cv2.GaussianBlur(light, (0, 0), 6.0)
    modelling = np.abs(cv2.GaussianBlur(light, (0, 0), 1.5) - broad)
    return {
        "calm": float(kept.sum() / (gradient.sum() + EPSILON)),
        "softness": float(np.sqrt((kept**2).sum() / ((gradient**2).sum() + EPSILON))),
        "spectral_slope": _spectral_slope(light),
        "edge_entropy": _entropy(np.histogram(orientation, 24, (0, 180), weights=gradient)[0].astype(np.float32)),
        "edge_density": float(np.log(gradient.mean() / (mask.mean() + 0.02) + 0.01)),
        "hard_rim": float((gradient[rim] > 9).mean()) if rim.any() else 1.0,
        "inside_share": float(inside.sum() / mask.sum()),
        "granulation": float(np.log(granulation[inside].mean() + 0.1)) if inside.any() else float(np.log(0.1)),
        "modelling": float(np.log(modelling[inside].mean() + 0.1)) if inside.any() else float(np.log(0.1)),
        "flat": float((gradient[inside] < 0.15).mean()) if inside.any() else 0.0,
        "inner_edges": float((gradient[inside] > 4).mean()) if inside.any() else 0.0,
    }


def _spectral_slope(light: Array) -> float:
    """Slope of log power over log frequency, radially averaged between 4 and 100 cycles a side (about -3 in art)."""
    square = cv2.resize(light, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    window, which, counts, centres = _rings()
    power = np.abs(np.fft.rfft2((square - square.mean()) * window)) ** 2
    sums = np.bincount(which, power.ravel(), len(counts) + 2)[1:-1]
    return float(np.polyfit(centres, np.log(sums / counts + EPSILON), 1)[0])


@lru_cache(maxsize=1)
def _rings() -> tuple[Array, NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Hann window, ring of each frequency, frequencies in each ring, and the log frequency of the ring's middle."""
    window = np.hanning(SIDE).astype(np.float32)
    radius = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None]) * SIDE
    edges = np.geomspace(4, 100, 13)
    which = np.digitize(radius.ravel(), edges)
    counts = np.bincount(which, minlength=14)[1:13].astype(np.float64)
    return np.outer(window, window), which, counts, np.log(np.sqrt(edges[:-1] * edges[1:]))


def _layout(depth: Array, mask: Mask) -> dict[str, float]:
    """Where the paint lies on the sheet. Lengths are shares of the longer side, positions run 0..1."""
    height, width = mask.shape
    rows, columns = np.nonzero(mask)
    margin = max(2, round(0.03 * max(height, width)))
    border = np.ones_like(mask)
    border[margin:-margin, margin:-margin] = False
    closed = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(closed, connectivity=8)
    areas = np.sort(stats[1:, cv2.CC_STAT_AREA])[::-1]
    contours, _ = cv2.findContours(closed, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    hull = cv2.convexHull(np.concatenate(contours))
    middle_x, middle_y = float(columns.mean()), float(rows.mean())
    return {
        "centre_x": abs(middle_x / width - 0.5),
        "centre_y": middle_y / height,
        "spread": float(np.hypot(columns - middle_x, rows - middle_y).std() / max(height, width)),
        "reach": float(np.percentile(np.hypot(columns - middle_x, rows - middle_y), 95) / max(height, width)),
        "border": float(mask[border].mean()),
        "solidity": float(mask.sum() / (cv2.contourArea(hull) + 1.0)),
        "pieces": float(np.log1p((areas > 0.0004 * mask.size).sum())),
        "crumbs": float(np.log1p((areas <= 0.0004 * mask.size).sum())),
        "largest_piece": float(areas[0] / areas.sum()),
        "outline": float(np.log(sum(len(contour) for contour in contours) / np.sqrt(mask.sum()))),
        "mirror": _mirror(depth, middle_x),
    }


def _mirror(depth: Array, axis: float) -> float:
    """Correlation of the painting with its reflection about a vertical axis (in pixels)."""
    height, width = depth.shape
    small = cv2.GaussianBlur(depth, (0, 0), 3.0)
    flip = cv2.warpAffine(small, np.array([[-1.0, 0.0, 2 * axis], [0.0, 1.0, 0.0]], np.float32), (width, height))
    return _correlation(small, flip)


def _repeats(depth: Array) -> float:
    """Highest autocorrelation of the painting's detail at a shift of 1/12 to 1/2 of the side: patterns and tilings."""
    square = cv2.resize(depth, (64, 64), interpolation=cv2.INTER_AREA)
    detail = square - cv2.GaussianBlur(square, (0, 0), 8.0)
    power = np.abs(np.fft.rfft2(detail, (128, 128))) ** 2
    overlap, far = _overlap()
    correlation = np.fft.irfft2(power)[far] / (overlap[far] * float((detail * detail).mean()) + EPSILON)
    return float(np.partition(correlation, -12)[-12:].mean())


@lru_cache(maxsize=1)
def _overlap() -> tuple[NDArray[np.float64], Mask]:
    """Pixels that a 64 x 64 square and its shifted self share, and the shifts at which they are compared.

    Beyond a quarter of overlap the estimate is too noisy; below 1/12 of the side any soft painting resembles itself.
    """
    along = np.abs(np.fft.fftfreq(128) * 128)
    overlap = np.outer(64 - np.minimum(along, 64), 64 - np.minimum(along, 64))
    return overlap, (np.hypot(along[:, None], along[None]) >= 5) & (overlap > 64 * 64 / 4)


def _correlation(first: Array, second: Array) -> float:
    first, second = first - first.mean(), second - second.mean()
    return float((first * second).sum() / (np.sqrt((first * first).sum() * (second * second).sum()) + EPSILON))


def _bloom(lab: Array, depth: Array, mask: Mask) -> dict[str, float]:
    """The flower head: the largest piece of paint that is not green, seen in polar coordinates about its centroid.

    lobes: strength of the silhouette's Fourier coefficients 3..9 over its mean radius; ragged: the same for 12 and up.
    rotation: best correlation of the head with itself turned by 1/4 .. 1/8 of a circle. eye: how much deeper the middle
    is than the petals. below: how far the green lies under the head.
    """
    height, width = mask.shape
    hue = np.degrees(np.arctan2(lab[..., 2], lab[..., 1])) % 360
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    green = mask & (hue >= 100) & (hue < 175) & (chroma > 8)
    petals = cv2.morphologyEx((mask & ~green).astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    petals = cv2.morphologyEx(petals, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    _, labels, stats, centres = cv2.connectedComponentsWithStats(petals, connectivity=8)
    if len(stats) < 2:
        head = mask
        rows, columns = np.nonzero(mask)
        x, y = float(columns.mean()), float(rows.mean())
    else:
        largest = 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
        head, (x, y) = labels == largest, (float(part) for part in centres[largest])
    radius = float(np.sqrt(head.sum() / np.pi))
    polar_head = _polar(head.astype(np.float32), x, y, 1.6 * radius)
    polar_depth = _polar(depth * head, x, y, 1.6 * radius)
    silhouette = polar_head.mean(axis=1)
    spectrum = np.abs(np.fft.rfft(silhouette)) / ANGLES
    centre, petal = polar_depth[:, : RADII // 5], polar_depth[:, RADII // 3 : RADII // 2]
    petal_share = polar_head[:, RADII // 3 : RADII // 2].sum() + EPSILON
    outlines, _ = cv2.findContours(head.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = max(outlines, key=len)
    fullness = cv2.contourArea(outline) / (cv2.contourArea(cv2.convexHull(outline)) + 1.0)
    rest = polar_depth - polar_depth.mean(axis=0)
    harmonics = np.abs(np.fft.rfft(rest[:, 4:28], axis=0)) ** 2
    turned = [_correlation(polar_depth, np.roll(polar_depth, ANGLES // fold, axis=0)) for fold in (4, 5, 6, 8)]
    return {
        "head_size": radius / max(height, width),
        "head_share": float(head.sum() / mask.sum()),
        "head_x": abs(x / width - 0.5),
        "head_y": y / height,
        "lobes": float(np.log(np.sqrt((spectrum[3:10] ** 2).sum()) / (spectrum[0] + EPSILON) + 0.01)),
        "ragged": float(np.log(np.sqrt((spectrum[12:] ** 2).sum()) / (spectrum[0] + EPSILON) + 0.01)),
        "rotation": max(turned),
        "eye": float(centre.mean() - petal.sum() / petal_share),
        "notches": float(np.log1p(_notches(outline, 0.1 * radius))),
        "fullness": float(fullness),
        "angular": float((rest**2).mean() / (polar_depth.var() + EPSILON)),
        "petal_rhythm": float(harmonics[3:10].sum() / (harmonics[1:].sum() + EPSILON)),
        "petal_variation": float(cv2.GaussianBlur(polar_depth, (0, 0), 1.0)[:, 6:18].std(axis=0).mean()),
        "below": float(np.clip((np.nonzero(green)[0].mean() - y) / height, -0.5, 0.5)) if green.sum() > 40 else 0.0,
        "green_area": float(green.sum() / mask.sum()),
    }


def _notches(outline: NDArray[np.int32], depth: float) -> int:
    """Dents of a contour that go deeper than `depth` pixels under its convex hull: the gaps between petals."""
    hull = np.sort(cv2.convexHull(outline, returnPoints=False).ravel()).reshape(-1, 1)
    defects = cv2.convexityDefects(outline, hull) if len(hull) > 3 else None
    return 0 if defects is None else int((defects.reshape(-1, 4)[:, 3] / 256.0 > depth).sum())


def _polar(picture: Array, x: float, y: float, radius: float) -> Array:
    """(ANGLES, RADII) samples of the picture about (x, y)."""
    return np.asarray(
        cv2.warpPolar(picture, (RADII, ANGLES), (x, y), max(radius, 2.0), cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS),
        dtype=np.float32,
    )
