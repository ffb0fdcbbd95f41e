"""python -m bench.train [--against trl]: what a step of training costs, alone or beside TRL's GRPOTrainer.

Both sides get the same model (Qwen3, weights by a formula), the same prompts, tokens and rewards, and the same
settings: float32 on the CPU, one thread, AdamW, DAPO loss, group-scaled advantages, gradient clipped at 1, no gradient
checkpointing. Each runs in a process of its own, by turns, several times; the first step of a process is not counted.
CPU seconds are the process's user and system time; of a step, that of generation stands apart. Generation is each
side's own; the tokens that are trained on are the job's, whatever was sampled, so that the work is equal. That it is
equal is checked: loss, gradient norm and every parameter's gradient of the first step must agree.

Memory is the most the process ever held (VmHWM), imports included, and what of it came after loading.

Tables go to standard output, progress to standard error, everything into results.json of the results folder. The last
line is for machines: cpu_ratio, wall_ratio and rss_ratio are ours over TRL's on the job "small" (17.5 million
parameters), nan without TRL.

    python -m bench.train                  ours alone
    python -m bench.train --against trl    TRL must be installed: bench/requirements-trl.txt says how
    python -m bench.train --generation     ways to call generate, on the policies' own classes

Left out: rendering and scoring (bench.render), GPUs, other engines.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.environment import environment
from render.errors import UserError

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
MAIN_JOB = "small"
OURS, TRL = "ours", "trl"
INSTALL = "pip install -c constraints-cpu.txt -r bench/requirements-trl.txt"
LIMIT_S = 1200
# Differences that rounding explains: float32, other orders of summation.
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-4
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}


class SideFailed(Exception):
    """A side's process ended badly."""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser("python -m bench.train", description="What a step of training costs.")
    result.add_argument("--against", choices=(TRL,), help="also run this peer, by turns with ours")
    result.add_argument("--generation", action="store_true", help="measure ways to call generate instead")
    result.add_argument("--quick", action="store_true", help="under a minute: the tiny model, two runs of three steps")
    result.add_argument("--jobs", default="", help="with commas; default tiny,small (--quick: tiny)")
    result.add_argument("-n", type=int, help="runs of each side (default 3; --quick: 2)")
    result.add_argument("--steps", type=int, help="counted steps of a run (default 3; --quick: 2)")
    result.add_argument("--out", type=Path, help="folder of the results (default one of its own in bench/results)")
    return result


def plan(arguments: argparse.Namespace) -> argparse.Namespace:
    """Fill in what the arguments leave open. Raises UserError for what cannot be."""
    quick = arguments.quick
    names = [name for name in arguments.jobs.split(",") if name] or (["tiny"] if quick else ["tiny", MAIN_JOB])
    if arguments.against == TRL and importlib.util.find_spec("trl") is None:
        raise UserError(f"TRL is not installed for {sys.executable}; install it with: {INSTALL}")
    result = argparse.Namespace(
        sides=(OURS, TRL) if arguments.against else (OURS,),
        jobs=names,
        runs=(2 if quick else 3) if arguments.n is None else arguments.n,
        steps=(2 if quick else 3) if arguments.steps is None else arguments.steps,
        out=arguments.out or RESULTS / f"train-{time.strftime('%Y%m%d-%H%M%S')}",
    )
    if min(result.runs, result.steps) < 1:
        raise UserError("at least one run (-n) of one step (--steps) is needed")
    return result


def run_side(side: str, job: str, steps: int) -> dict[str, Any]:
    """One process of a side; what it reports. Raises SideFailed with its last words."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.train_{side}", job, str(steps)],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise SideFailed(f"{side} on {job} ended with {done.returncode}: {last}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def figures(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Medians over the counted steps of all runs of a side on a job; memory over its runs. Seconds and MiB."""
    steps = [step for run in runs for step in run["steps"][1:]]

    def median(key: str) -> float:
        return statistics.median(step[key] for step in steps)

    return {
        "cpu": median("cpu"),
        "cpu_least": min(step["cpu"] for step in steps),
        "generate_cpu": median("generate_cpu"),
        "rest_cpu": statistics.median(step["cpu"] - step["generate_cpu"] for step in steps),
        "wall": median("wall"),
        "wall_least": min(step["wall"] for step in steps),
        "tokens_per_cpu_s": statistics.median(step["sampled"] / step["generate_cpu"] for step in steps),
        "peak_mb": statistics.median(run["peak_mb"] for run in runs),
        "loaded_mb": statistics.median(run["loaded"]["rss_mb"] for run in runs),
        "after_loading_mb": statistics.median(run["peak_mb"] - run["loaded"]["rss_mb"] for run in runs),
        "start_cpu": statistics.median(run["loaded"]["cpu"] for run in runs),
    }


def agreement(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """How far two runs of a job are apart in their first step; `equal` when only by rounding."""
    first, other = ours["steps"][0], theirs["steps"][0]
    mine, peer = ours["gradients"], theirs["gradients"]
    scale = math.sqrt(sum(norm**2 for norm, _ in peer.values()))
    both = mine.keys() & peer.keys()
    pairs = (abs(a - b) / scale for name in both for a, b in zip(mine[name], peer[name], strict=True))
    apart = {
        "loss": abs(first["loss"] - other["loss"]),
        "grad_norm": abs(first["grad_norm"] - other["grad_norm"]) / max(other["grad_norm"], 1e-12),
        "gradients": max(pairs, default=math.inf),
        "parameters": len(mine),
    }
    equal = (
        mine.keys() == peer.keys()
        and apart["loss"] < LOSS_TOLERANCE
        and apart["grad_norm"] < GRADIENT_TOLERANCE
        and apart["gradients"] < GRADIENT_TOLERANCE
    )
    return {**apart, "equal": equal}


def measure(wanted: argparse.Namespace, results: dict[str, Any], say: Console) -> None:
    """Run both sides by turns; what they report goes into results as it comes."""
    for job in wanted.jobs:
        for run in range(wanted.runs):
            # By turns, and each goes first as often as the other: the machine may slow down.
            for side in wanted.sides if run % 2 == 0 else tuple(reversed(wanted.sides)):
                began = time.monotonic()
                found = run_side(side, job, wanted.steps + 1)
                results["runs"].setdefault(job, {}).setdefault(side, []).append(found)
                write(wanted.out, results)
                cpu = statistics.median(step["cpu"] for step in found["steps"][1:])
                say.print(
                    f"{job}, run {run + 1} of {wanted.runs}, {side}: {cpu:.3f} CPU s a step, peak "
                    f"{found['peak_mb']:.0f} MiB ({time.monotonic() - began:.0f} s)",
                    markup=False,
                    highlight=False,
                )


def conclude(results: dict[str, Any]) -> str:
    """Figures, ratios and agreement of every job into results; the line for machines."""
    for job, sides in results["runs"].items():
        found = {side: figures(runs) for side, runs in sides.items()}
        results["figures"][job] = found
        if TRL in found:
            results["ratios"][job] = {
                key: found[OURS][key] / found[TRL][key] for key in found[OURS] if found[TRL][key] > 0
            }
            results["agreement"][job] = agreement(sides[OURS][0], sides[TRL][0])
    named = MAIN_JOB if MAIN_JOB in results["ratios"] else next(iter(results["ratios"]), "")
    ratios = results["ratios"].get(named, {})
    line = " ".join(
        f"{name}={ratios.get(key, math.nan):.3f}"
        for name, key in (("cpu_ratio", "cpu"), ("wall_ratio", "wall"), ("rss_ratio", "peak_mb"))
    )
    results["line"] = line
    return line


ROWS = (
    ("CPU seconds a step", "cpu", 3),
    ("  of which generation", "generate_cpu", 3),
    ("  of which the rest", "rest_cpu", 3),
    ("  least seen", "cpu_least", 3),
    ("wall seconds a step", "wall", 3),
    ("  least seen", "wall_least", 3),
    ("tokens sampled a CPU second", "tokens_per_cpu_s", 0),
    ("peak memory, MiB", "peak_mb", 0),
    ("  once loaded", "loaded_mb", 0),
    ("  on top of that", "after_loading_mb", 0),
    ("CPU seconds until loaded", "start_cpu", 2),
)


def tables(results: dict[str, Any]) -> list[Table]:
    """A table a job: ours, the peer's, and ours over the peer's."""
    made = []
    for job, sides in results["figures"].items():
        parameters = results["runs"][job][OURS][0]["loaded"]["parameters"]
        table = Table(title=f"{job}: {parameters / 1e6:.2f} million parameters", title_justify="left")
        table.add_column("median")
        for side in sides:
            table.add_column(side, justify="right")
        ratios = results["ratios"].get(job)
        if ratios:
            table.add_column("ours / TRL", justify="right")
        for label, key, digits in ROWS:
            cells = [f"{figure[key]:,.{digits}f}" for figure in sides.values()]
            table.add_row(label, *cells, *([f"{ratios[key]:.3f}"] if ratios else []))
        found = results["agreement"].get(job)
        if found:
            table.caption = (
                f"first step: losses {found['loss']:.1e} apart, gradient norms {found['grad_norm']:.1e}, gradients of "
                f"{found['parameters']} parameters at most {found['gradients']:.1e}: "
                + ("the same work" if found["equal"] else "NOT the same work")
            )
        made.append(table)
    return made


def write(folder: Path, results: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """The exit code: 0, 1 when a side failed or the work was not equal, 2 for a mistake, 130 after Ctrl-C."""
    console, say = Console() if sys.stdout.isatty() else Console(width=120), Console(stderr=True)
    try:
        arguments = parser().parse_args(argv)
        if arguments.generation:
            from bench.train_generation import generation

            return generation(arguments.quick, console)
        wanted = plan(arguments)
        from bench.train_jobs import JOBS

        for name in wanted.jobs:
            if name not in JOBS:
                raise UserError(f"--jobs: there is no {name!r}; there are {', '.join(JOBS)}")
        results: dict[str, Any] = {
            "environment": environment(),
            "runs": {},
            "figures": {},
            "ratios": {},
            "agreement": {},
        }
        measure(wanted, results, say)
        line = conclude(results)
        write(wanted.out, results)
        for table in tables(results):
            console.print(table)
        console.print(f"results: {wanted.out}", markup=False, highlight=False, soft_wrap=True)
        print(line, flush=True)
        return 0 if all(found["equal"] for found in results["agreement"].values()) else EXIT_FAILED
    except UserError as error:
        print(f"bench.train: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (SideFailed, subprocess.TimeoutExpired) as error:
        print(f"bench.train: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("bench.train: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
