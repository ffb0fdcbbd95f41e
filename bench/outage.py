"""python -m bench.outage: a laptop run whose judge fails in every way, and goes dark in the middle; what is lost?

The judge is a server on loopback (bench.judge_server): it prefers the brighter of two pictures, lets a share of the
calls fail (too many requests, broken, overloaded, no answer, a web page, half a body, no content, no verdict, a
connection cut in the middle), and answers nothing but 503 for a while from the middle of a step on. What is counted:

  crash              the run did not end by itself with exit code 0
  paid_twice         good answers that were delivered more than once for the same two pictures in the same order
  phantom_zeros      rollouts with reward 0 that no rule rejects
  wrong_comparisons  comparisons whose outcome is not what the server's rule says of those two pictures
  unscored           rollouts without a reward, for whatever reason
  missing            comparisons that were given up

The last line is for machines; the exit code is 1 when any of the first four is not 0.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.judge_server import JudgeServer, brighter
from grpo.folder import read_rows
from render.errors import FarmError, UserError
from render.farm import Farm
from reward.config import load
from reward.pictures import prepared
from reward.pool import Pool, paint_pool

CONFIG = Path("configs") / "laptop.toml"
IMAGE_SIZE = 128
NAME = "outage"


@dataclass(frozen=True)
class Found:
    """What a drill found, beside the server's own counts."""

    code: int
    rollouts: list[dict[str, Any]]
    metrics: list[dict[str, Any]]
    wrong: int
    dark_s: float

    @property
    def phantom_zeros(self) -> int:
        return sum(row["reward"] == 0 and row["outcome"] != "rejected" for row in self.rollouts)

    @property
    def unscored(self) -> Counter[str]:
        return Counter(row["reason"] for row in self.rollouts if row["outcome"] == "unscored")


def overrides(arguments: argparse.Namespace, server: JudgeServer, folder: Path) -> list[str]:
    values = {
        "run.steps": arguments.steps,
        "run.name": NAME,
        "run.folder": folder,
        "sample.group_size": arguments.group,
        "probe.samples": 0,
        "gallery.every": 0,
        "reward.judge": "vlm",
        "reward.vlm.backend": "server",
        "reward.vlm.base_url": server.url,
        "reward.vlm.model": "the-brighter-one",
        "reward.vlm.mode": arguments.mode,
        "reward.vlm.image_size": IMAGE_SIZE,
        "reward.vlm.timeout_s": 2.0,
        "reward.vlm.tries": 5,
        "reward.vlm.pause_s": 3.0,
        "reward.vlm.on_outage": "pause",
        "reward.vlm.price_in": 0.13,
        "reward.vlm.price_out": 0.52,
        "reward.vlm.cache": folder / "answers.sqlite",
    }
    settings = [*(f"{key}={value}" for key, value in values.items()), *arguments.overrides]
    return [part for setting in settings for part in ("--set", setting)]


def drill(arguments: argparse.Namespace, server: JudgeServer, folder: Path) -> Found:
    """The run, its judge dark for `arguments.dark` seconds from the middle of its middle step on."""
    command = [sys.executable, "-m", "grpo.run", str(CONFIG), *overrides(arguments, server, folder)]
    run = folder / NAME
    process = subprocess.Popen(command)
    ended = threading.Event()
    dark_s = 0.0

    def middle() -> bool:
        done = len(read_rows(run / "metrics.jsonl"))
        return done >= arguments.steps // 2 and len(read_rows(run / "rollouts.partial.jsonl")) > 0

    def switch() -> None:
        nonlocal dark_s
        while not middle():
            if ended.wait(0.05):
                return
        started = time.monotonic()
        server.dark()
        ended.wait(arguments.dark)
        dark_s = time.monotonic() - started
        server.light()

    thread = threading.Thread(target=switch, daemon=True)
    thread.start()
    try:
        code = process.wait()
    finally:
        ended.set()
        if process.poll() is None:
            process.terminate()
            process.wait()
        thread.join()
    rollouts = read_rows(run / "rollouts.jsonl")
    return Found(code, rollouts, read_rows(run / "metrics.jsonl"), wrong_comparisons(run, rollouts, pool()), dark_s)


def pool() -> Pool:
    """The references of the run, from its own cache."""
    config = load(CONFIG)
    with Farm(config.render) as farm:
        return paint_pool(config.pool, farm, lambda done, total: None)


def wrong_comparisons(run: Path, rollouts: list[dict[str, Any]], references: Pool) -> int:
    """Comparisons in the journal whose winner the server's rule does not confirm."""
    pictures = {reference.name: prepared(reference.png, IMAGE_SIZE).png for reference in references.references}
    wrong = 0
    for row in rollouts:
        won = row["terms_info"].get("judge", {}).get("won", {})
        path = run / "paintings" / f"step_{row['step']:04d}_{row['index']:02d}.png"
        own = prepared(path.read_bytes(), IMAGE_SIZE).png if won else b""
        wrong += sum((value > 0.5) != (brighter(own, pictures[name]) > 0) for name, value in won.items())
    return wrong


def show(console: Console, found: Found, server: JudgeServer) -> None:
    table = Table(title="What the server saw", title_justify="left", show_header=False)
    table.add_row("requests", f"{len(server.requests)}, {server.most_in_flight} at once at most")
    table.add_row("good answers", f"{server.delivered.total()} to {len(server.delivered)} different questions")
    table.add_row("failed", ", ".join(f"{count} {kind}" for kind, count in server.faults.most_common()) or "none")
    table.add_row("dark for", f"{found.dark_s:.0f} s")
    table.add_row("rollouts", f"{len(found.rollouts)}; {dict(Counter(row['outcome'] for row in found.rollouts))}")
    table.add_row("unscored", ", ".join(f"{count} {cause}" for cause, count in found.unscored.items()) or "none")
    console.print(table)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.outage", description="An outage drill of the judge.")
    parser.add_argument("--steps", type=int, default=12, help="of the run (default 12)")
    parser.add_argument("--group", type=int, default=8, help="rollouts a step (default 8)")
    parser.add_argument("--fail-rate", type=float, default=0.3, help="share of the calls that fails (default 0.3)")
    parser.add_argument("--dark", type=float, default=60.0, help="seconds without any answer (default 60)")
    parser.add_argument("--mode", choices=("verdict", "soft"), default="verdict")
    parser.add_argument("--seed", type=int, default=0, help="of the failures (default 0)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE")
    arguments = parser.parse_args(argv)
    if arguments.steps < 2 or arguments.group < 2 or not 0 <= arguments.fail_rate < 1 or arguments.dark < 0:
        parser.error("--steps and --group must be at least 2, --fail-rate from 0 to below 1, --dark not below 0")
    console = Console()
    with tempfile.TemporaryDirectory(prefix="outage-") as folder:
        try:
            with JudgeServer(fail_rate=arguments.fail_rate, seed=arguments.seed, retry_after="1") as server:
                found = drill(arguments, server, Path(folder))
        except (UserError, FarmError) as error:
            print(f"outage: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("outage: interrupted", file=sys.stderr)
            return 130
    show(console, found, server)
    paid_twice = sum(count - 1 for count in server.delivered.values())
    missing, outages, waited = (
        sum(row[f"judge/{part}"] for row in found.metrics) for part in ("missing", "outages", "waited_s")
    )
    print(
        f"steps={len(found.metrics)} crash={int(found.code != 0)} paid_twice={paid_twice} "
        f"phantom_zeros={found.phantom_zeros} wrong_comparisons={found.wrong} "
        f"unscored={found.unscored.total()} missing={missing} outages={outages} waited_s={waited:.0f}",
        flush=True,
    )
    return 1 if found.code or paid_twice or found.phantom_zeros or found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
