"""python -m grpo.paint CONFIG [--adapter PATH ...] [--subject TEXT] [-n 40] [-o FOLDER] [--set table.key=value ...]

Samples sketches from a policy, paints and scores them, and says how good, how varied and how valid they are.

Without --adapter the base policy is sampled, as it is before training. --adapter takes an adapter, a checkpoint or a
run folder (its newest checkpoint), or the word `base`; given twice, the two policies are sampled from the same prompts
with the same seeds and put side by side:

    python -m grpo.paint runs/laptop/config.toml --adapter base --adapter runs/laptop

FOLDER gets a folder for each policy (sketches/, paintings/, sheets/, rollouts.jsonl, metrics.csv), samples.txt with the
table and, of two policies, side_by_side.png. Scorers that are not at hand are left out with a line. With several
subjects each has n samples. The same call gives the same output. Exit codes are those of grpo.run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

# Before torch is imported: an OpenMP thread that spins while it waits takes the core from the browsers.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from rich.console import Console

from grpo import checkpoint
from grpo import config as configs
from grpo.build import build_policy, build_reward
from grpo.check import refuse_missing_painting, scorers_not_at_hand
from grpo.config import Config
from grpo.folder import new_folder, write_error
from grpo.probe import Sampler, compare, number, table
from grpo.prompt import messages
from grpo.run import describe_policy, studio
from grpo.stages import Stages
from render.errors import ConfigError, UserError, exit_code
from render.farm import Farm
from reward.gate import Gate
from reward.mix import display_name

BASE = "base"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grpo.paint", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("config", help="a TOML file, for instance configs/laptop.toml or a run's config.toml")
    parser.add_argument(
        "--adapter",
        dest="adapters",
        action="append",
        metavar="PATH",
        help="an adapter, a checkpoint, a run folder, or base; twice: side by side (default: base)",
    )
    parser.add_argument("--subject", metavar="TEXT", help="what to paint, instead of the config's [subject] name")
    parser.add_argument("-n", dest="samples", type=int, default=40, help="sketches of each policy, default 40")
    parser.add_argument(
        "-o", dest="folder", type=Path, metavar="FOLDER", help="new or empty; default RUNS/NAME_samples"
    )
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE")
    arguments = parser.parse_args(argv)
    stopped = "stopped; what was painted so far stays in the folder"
    return exit_code(lambda: paint(arguments, Console()), stopped)


def paint(arguments: argparse.Namespace, console: Console) -> int:
    started = time.monotonic()
    config = asked_config(arguments)
    adapters = arguments.adapters or [BASE]
    sources = [(None, BASE) if adapter == BASE else checkpoint.find(Path(adapter)) for adapter in adapters]
    names = [name for _, name in sources]
    if len(names) > 2 or len(set(names)) < len(names):
        raise ConfigError(f"--adapter: one policy, or two different ones, not {', '.join(names)}")
    refuse_missing_painting(config)
    folder = output_folder(arguments, config)
    console.print(f"samples go to {folder}", markup=False, highlight=False, soft_wrap=True)
    with studio(config, console) as farm:
        rows = sample(config, sources, farm, folder, arguments.samples, console)
    values = {
        "policies": names,
        "samples": [row["samples"] for row in rows],
        "valid": [row["valid"] for row in rows],
        "reward": [number(row["reward"], ".4f") for row in rows],
        "distinct": [row["rollouts/distinct"] for row in rows],
        "distance": [number(row["distance"], ".2f") for row in rows],
    }
    line = " ".join(f"{key}={','.join(map(str, several))}" for key, several in values.items())
    print(f"{line} seconds={time.monotonic() - started:.0f} folder={folder}", flush=True)
    return 0


def asked_config(arguments: argparse.Namespace) -> Config:
    """The config with the subject that was asked for. Raises ConfigError."""
    config = configs.load(arguments.config, arguments.overrides)
    if arguments.samples < 1:
        raise ConfigError(f"-n: at least 1, not {arguments.samples}")
    if arguments.subject is None:
        return config
    if not arguments.subject.strip():
        raise ConfigError("--subject is empty; say what is to be painted")
    return replace(config, subject=replace(config.subject, name=arguments.subject))


def output_folder(arguments: argparse.Namespace, config: Config) -> Path:
    """The folder that was asked for, which must hold nothing yet, or a new one beside the runs. Raises UserError."""
    folder: Path | None = arguments.folder
    if folder is None:
        path = Path(arguments.config)
        name = path.resolve().parent.name if path.name == "config.toml" else path.stem
        folder = new_folder(Path(config.run.folder), f"{name}_samples")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise write_error(folder, error) from error
    if not empty:
        raise UserError(f"-o {folder}: the folder is not empty; name a new one")
    return folder


def sample(
    config: Config,
    sources: Sequence[tuple[Path | None, str]],
    farm: Farm | None,
    folder: Path,
    samples: int,
    console: Console,
) -> list[dict[str, Any]]:
    """Fill the folder and show the table; a row for each policy. sources: where its weights are (None = the base), and
    its name."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    gate = Gate(config.render.methods)
    with Stages(console) as stages:
        pool, mix = build_reward(config, farm, gate, stages, say, scorers_not_at_hand(config))
        policy = build_policy(config, base_folder(sources), stages)
    asked = messages(config.prompt.system, config.subject.names[0], config.subject.composition)
    policy.assert_sampling(policy.prompt_ids(asked), config.sample)
    say(describe_policy(policy))
    rows: list[dict[str, Any]] = []
    with closing(mix), Stages(console) as stages:
        sampler = Sampler(config, policy, farm, gate, mix, pool, samples)
        base = checkpoint.fingerprint(policy)
        fresh = {name: weight.detach().clone() for name, weight in policy.trainable().items()}
        for place, name in sources:
            with torch.no_grad():
                for key, weight in policy.trainable().items():
                    weight.copy_(fresh[key])
            if place is not None:
                checkpoint.load_weights(place, policy, base)
            rows.append(sampler.paint(name, folder / name, partial(stages.show, name)))
    shown = table(rows, {f"rewards/{term.name}/mean": display_name(term) for term in mix.terms})
    console.print(shown)
    try:
        with (folder / "samples.txt").open("w", encoding="utf-8") as stream:
            Console(file=stream, width=120).print(shown)
    except OSError as error:
        raise write_error(folder, error) from error
    if len(rows) > 1:
        picture = folder / "side_by_side.png"
        compare([folder / name for _, name in sources], rows, picture)
        say(f"side by side: {picture}")
    return rows


def base_folder(sources: Sequence[tuple[Path | None, str]]) -> Path | None:
    """The run folder that a checkpoint lies in, where it keeps the small policy's weights; None = the cache."""
    runs = [place.parent.parent for place, _ in sources if place is not None]
    return next((run for run in runs if (run / "base" / "model").exists()), None)


if __name__ == "__main__":
    sys.exit(main())
