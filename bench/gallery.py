"""python -m bench.gallery [--paintings 1000] [--keep FOLDER]: how fast is a gallery built, opened and scrolled?

A run folder is made up (paintings, sketches, rollouts, table; nothing of it was sampled), its gallery is built, opened
from disk in real Chromium and scrolled from end to end by a real scroll gesture. What is printed:

  build       seconds for the whole gallery; for one more step of 20 paintings; and where nothing is new
  open        milliseconds from navigation until the first contentful paint, until `load`, and until every tile of the
              first window stands there with its picture decoded: the page's own performance entries, worst of the opens
  scroll      frames of the gesture, and tiles that a frame showed without their picture
  jumps       the same in the frame after a jump to a random place, begun as soon as the page is open, and tiles whose
              pixels are flat in a screenshot taken at once

The last line is for machines. Left out: a disk that is cold, and the network.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from bench.environment import load_average
from bench.pages import page_browser
from grpo.gallery import build
from render.errors import UserError, exit_code

GROUP = 20  # rollouts of a step
OPENS = 5
JUMPS = 20
GESTURE = 6000  # pixels a second, more than a hand turns a wheel
TERMS = ("gate", "length", "coverage", "preference", "judge")
CONFIG = (
    '[run]\nsteps = 50\nseed = 0\n[reward]\npreference = "stand_in"\njudge = "stand_in"\n[pool]\nsource = "embedded"\n'
)

# For each frame after it was painted: tiles that should be in the window, and those without a picture.
WATCH = """
window.frames_ = []; window.watching = false;
window.blankNow = () => {
  const wall = document.querySelector(".wall"), some = document.querySelector(".tile");
  const side = some.offsetWidth, columns = Math.round((wall.clientWidth + 14) / (side + 14));
  const count = gallery.order.length, row = wall.offsetHeight / Math.ceil(count / columns);
  const top = -wall.getBoundingClientRect().top, high = innerHeight;
  let wanted = 0, blank = 0;
  const tiles = new Map([...wall.querySelectorAll(".tile")].map((tile) => [tile.getAttribute("href"), tile]));
  for (let at = 0; at < count; at++) {
    const y = Math.floor(at / columns) * row;
    if (y + side <= top || y >= top + high) continue;
    wanted += 1;
    const image = tiles.get(gallery.link(gallery.order[at]))?.querySelector("img");
    if (!image || !image.complete || image.naturalWidth === 0) blank += 1;
  }
  return [wanted, blank, scrollY];
};
const channel = new MessageChannel();
channel.port1.onmessage = () => frames_.push([performance.now(), ...blankNow()]);
const next = () => { if (watching) { channel.port2.postMessage(0); requestAnimationFrame(next); } };
"""
ENTRIES = """
const named = (type, name) => performance.getEntriesByType(type).find((entry) => !name || entry.name === name);
return [named("paint", "first-contentful-paint")?.startTime, named("navigation").loadEventEnd,
        named("mark", "wall-shown")?.startTime];
"""


def made_up_run(folder: Path, paintings: int, first_step: int = 1, side: int = 600) -> None:
    """A run folder, or more steps of one: `paintings` rollouts from `first_step` on. side: of a picture, in pixels."""
    for name in ("paintings", "sketches"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(CONFIG, encoding="utf-8")
    steps = -(-paintings // GROUP)
    with (folder / "rollouts.jsonl").open("a") as rollouts, (folder / "metrics.jsonl").open("a") as table:
        for step in range(first_step, first_step + steps):
            records = [_rollout(folder, step, index, side) for index in range(min(GROUP, paintings))]
            paintings -= len(records)
            rollouts.write("".join(json.dumps(record) + "\n" for record in records))
            table.write(json.dumps(_row(step, records)) + "\n")


def _rollout(folder: Path, step: int, index: int, side: int) -> dict[str, Any]:
    chance = random.Random(f"{step} {index}")
    name = f"step_{step:04d}_{index:02d}"
    sketch = (
        f"// made up\nfunction setup() {{ createCanvas(600, 600, WEBGL); }}\n// {name}\n" + "brush.noStroke();\n" * 60
    )
    (folder / "sketches" / f"{name}.js").write_text(sketch, encoding="utf-8")
    (folder / "paintings" / f"{name}.png").write_bytes(blot(step * 1000 + index, side))
    terms = {term: chance.random() for term in TERMS}
    return {
        **{"step": step, "index": index, "group": 0, "subject": "a made-up blot", "reward": sum(terms.values()) / 5},
        **{"advantage": 0.0, "outcome": "scored", "reason": "", "detail": "", "terms": terms, "terms_info": {}},
        **{"finished": True, "tokens": 200 + index, "prompt_ids": [1], "completion_ids": [2] * 200, "text": sketch},
        **{"sketch": True, "timings": {"sampled": 1.0, "scored": 2.0}},
        "painting": {
            **{"outcome": "painted", "reason": "", "detail": "", "line": None, "width": 600, "height": 600},
            **{"coverage": chance.random(), "shapes": 3, "vertices": 30, "circles": 0, "errors": [], "finished": True},
            **{"timings": {"total": 1.0}, "worker": 0, "attempt": 1},
        },
    }


def _row(step: int, records: list[dict[str, Any]]) -> dict[str, Any]:
    rewards = [record["reward"] for record in records]
    return {"step": step, "reward": statistics.fmean(rewards), "rollouts/scored": len(records), "entropy": 1 / step}


def blot(seed: int, side: int) -> bytes:
    """PNG of five soft blots with a grain, so that it weighs about what a painting weighs."""
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side].astype(np.float32) / side
    image = np.full((side, side, 3), 245, np.float32)
    for _ in range(5):
        (cx, cy), radius, colour = chance.uniform(0.2, 0.8, 2), chance.uniform(0.08, 0.3), chance.uniform(20, 240, 3)
        soft = 1 / (1 + np.exp((np.hypot(x - cx, y - cy) - radius) * 60))
        image += soft[..., None] * 0.75 * (colour - image)
    image[: side // 2] += chance.normal(0, 1, (side // 2, side, 1))
    buffer = io.BytesIO()
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def opened(driver: Any, index: Path) -> tuple[float, float, float]:
    """Milliseconds until the first contentful paint, until `load`, and until the first tiles stand."""
    driver.get("about:blank")
    driver.get(index.resolve().as_uri())
    end = time.monotonic() + 60
    while True:
        entries = driver.execute_script(ENTRIES)
        if all(entries):
            return entries[0], entries[1], entries[2]
        assert time.monotonic() < end, f"the wall never stood: {entries}"
        time.sleep(0.02)


def scrolled(driver: Any, speed: int = GESTURE) -> list[list[float]]:
    """[time, tiles in the window, of them without picture, place] of each frame of a gesture through the whole wall."""
    driver.execute_script(WATCH + "watching = true; requestAnimationFrame(next);")
    size = driver.execute_script("return document.documentElement.scrollHeight - innerHeight")
    gesture = {"x": 600, "y": 500, "yDistance": -size - 200, "speed": speed, "gestureSourceType": "mouse"}
    driver.execute_cdp_cmd("Input.synthesizeScrollGesture", gesture)
    driver.execute_script("watching = false")
    frames: list[list[float]] = driver.execute_script("return frames_")
    assert frames[-1][3] >= size - 2, "the gesture did not reach the end of the wall"
    return frames


def jumped(driver: Any, jumps: int) -> tuple[int, int, int]:
    """Over random jumps: tiles in the window, those without picture in the first frame, those flat in a screenshot."""
    driver.execute_script(WATCH)
    wanted = blank = flat = 0
    chance = random.Random(0)
    for _ in range(jumps):
        driver.set_script_timeout(30)
        found = driver.execute_async_script(
            "const [share, done] = arguments;"
            "scrollTo(0, share * (document.documentElement.scrollHeight - innerHeight));"
            "requestAnimationFrame(() => setTimeout(() => done(blankNow())));",
            chance.random(),
        )
        wanted, blank = wanted + found[0], blank + found[1]
        shot = np.asarray(Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("L"))
        boxes = driver.execute_script(
            "return [...document.querySelectorAll('.tile img')].map((image) => image.getBoundingClientRect())"
            ".filter((box) => box.top >= 70 && box.bottom <= innerHeight).map((box) => [box.x, box.y, box.width])"
        )
        for x, y, side in (map(int, box) for box in boxes):
            flat += bool(shot[y : y + side, x : x + side].std() < 1.0)
    return wanted, blank, flat


def measure(paintings: int, folder: Path, console: Console) -> int:
    run, out = folder / "made_up", folder / "gallery"
    if run.exists():
        raise UserError(f"{run} is there already; name a new folder")
    console.print(f"making up a run of {paintings} paintings in {run}", soft_wrap=True)
    made_up_run(run, paintings)
    seconds = []
    for more in (0, GROUP, 0):
        if more:
            made_up_run(run, more, first_step=-(-paintings // GROUP) + 1)
        started = time.perf_counter()
        index = build([run], out)
        seconds.append(time.perf_counter() - started)
    with page_browser() as driver:
        opens = [opened(driver, index) for _ in range(OPENS)]
        wanted, jump_blank, flat = jumped(driver, JUMPS)
        opened(driver, index)
        frames = scrolled(driver)
        version = driver.capabilities["browserVersion"]
    worst = [max(part) for part in zip(*opens, strict=True)]
    gaps = [after[0] - before[0] for before, after in pairwise(frames)]
    blank = int(sum(frame[2] for frame in frames))
    table = Table(
        title=f"Gallery of {paintings} paintings, Chromium {version}, load {load_average()[0]}", title_justify="left"
    )
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("build: all, one more step, nothing new (s)", " ".join(f"{value:.2f}" for value in seconds))
    table.add_row(
        f"open, worst of {OPENS}: first paint, load, tiles stand (ms)", " ".join(f"{value:.0f}" for value in worst)
    )
    table.add_row(
        "scroll: frames, median and longest (ms)", f"{len(frames)} {statistics.median(gaps):.0f} {max(gaps):.0f}"
    )
    table.add_row(
        "scroll: tiles without picture, of tiles shown", f"{blank} of {int(sum(frame[1] for frame in frames))}"
    )
    table.add_row(f"{JUMPS} jumps: without picture in the first frame, of tiles shown", f"{jump_blank} of {wanted}")
    table.add_row(f"{JUMPS} jumps: flat in the screenshot", str(flat))
    console.print(table)
    print(
        f"tiles={paintings} open_s={max(worst) / 1000:.3f} blank={blank} build_s={seconds[0]:.2f} "
        f"step_s={seconds[1]:.3f} idle_s={seconds[2]:.3f} jump_blank={jump_blank} flat={flat}"
    )
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gallery", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--paintings", type=int, default=1000, help="default 1000")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="a new folder for run and gallery; default: temporary"
    )
    arguments = parser.parse_args(argv)
    console = Console(stderr=True)

    def work() -> int:
        if arguments.keep is not None:
            return measure(arguments.paintings, arguments.keep, console)
        with tempfile.TemporaryDirectory(prefix="gallery-") as folder:
            return measure(arguments.paintings, Path(folder), console)

    return exit_code(work, "stopped")


if __name__ == "__main__":
    sys.exit(main())
