"""python -m grpo.run CONFIG [--set table.key=value ...] [--check] [--resume [RUN]]
torchrun --nproc-per-node N -m grpo.run CONFIG ...    on N GPUs (grpo.ranks)

Trains a policy to paint, by GRPO. In order: read the config, start the render farm (its workers are spawned before any
model is loaded), paint the pool, build the reward, load or warm-start the policy, train, sum up.

Ctrl-C or SIGTERM finishes the step in flight, saves and stops; a second one stops at once, and `--resume` goes on from
the last whole checkpoint. With several ranks the first signal stops at once. Exit codes: 0 done, 2 a mistake or
something missing (one line says what), 3 the farm, the scorers or another rank failed, 130 stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before torch is imported: an OpenMP thread that spins while it waits takes the core from the browsers.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from rich.console import Console

from grpo import config as configs
from grpo.check import print_plan, refuse_missing
from grpo.companions import Companions
from grpo.config import Config
from grpo.folder import latest_folder, new_folder, read_rows
from grpo.journal import Follower, Journal
from grpo.ranks import ALONE, RankLost, Ranks, join
from grpo.stages import Stages
from render.errors import ConfigError, exit_code, say_error
from render.farm import Farm

# What may differ between a run and its continuation; everything else would make it another run. Those of [train] are
# what an out-of-memory error asks to change: they change how the gradient is computed, not what it is.
MAY_CHANGE = (
    *("run.steps", "run.folder", "run.name", "run.max_unscored_steps", "render.workers", "checkpoint."),
    *("gallery.", "tracking.", "publish."),
    *("train.micro_batch_size", "train.gradient_checkpointing", "train.logprob_chunk", "train.logprob_keep_mb"),
)


class Stop:
    """The first SIGINT or SIGTERM asks for a stop after the step; the second stops at once.

    With several ranks the first one does: torchrun sends a signal to all when a rank has ended, and gives them seconds.
    """

    def __init__(self, console: Console, ranks: Ranks) -> None:
        self.console = console
        self.asked = False
        self.training = False
        self.on_asked: Callable[[], None] = lambda: None
        handle = self._handle if ranks.count == 1 else signal.SIG_DFL
        signal.signal(signal.SIGTERM, handle)
        signal.signal(signal.SIGINT, signal.default_int_handler if ranks.count > 1 and ranks.first else handle)

    def _handle(self, number: int, frame: Any) -> None:
        if self.asked or not self.training:
            raise KeyboardInterrupt
        self.asked = True
        self.on_asked()
        self.console.print("[bold]stopping after this step[/] (once more to stop at once)")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grpo.run", description=__doc__.split("\n\n")[1])
    parser.add_argument("config", help="a TOML file, for instance configs/laptop.toml")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE")
    parser.add_argument("--check", action="store_true", help="resolve everything, print the plan, train nothing")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="auto",
        metavar="RUN",
        help="go on with a run folder (default: the latest of this config)",
    )
    arguments = parser.parse_args(argv)
    return exit_code(lambda: run(arguments), "stopped; --resume goes on from the last checkpoint")


def run(arguments: argparse.Namespace) -> int:
    config = configs.load(arguments.config, arguments.overrides)
    ranks = ALONE if arguments.check else join(config.policy.device)
    console = Console(quiet=not ranks.first)
    for note in configs.notes(config):
        console.print(f"note: {note}", markup=False)
    if arguments.check:
        print_plan(config, arguments.config, console)
        return 0
    return train(config, arguments.config, arguments.resume, console, ranks)


def train(config: Config, path: str, resume: str | None, console: Console, ranks: Ranks) -> int:
    started = time.monotonic()
    stop = Stop(console, ranks)
    if ranks.count > config.rollouts_per_step:
        raise ConfigError(
            f"{path}: {ranks.count} ranks for {config.rollouts_per_step} rollouts in a step; start fewer ranks"
        )
    folder, resuming = ranks.once(lambda: run_folder(config, path, resume, console))
    ranks.once(lambda: refuse_missing(config))

    def say(text: str) -> None:
        if ranks.first:
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(f"rank {ranks.rank}: {text}", file=sys.stderr)

    with accompanied(config, folder, say, ranks) as companions, studio(config, console, ranks) as farm:
        code = _train(config, folder, resuming, farm, companions, stop, console, say, started, ranks)
    ranks.close()
    return code


def accompanied(
    config: Config, folder: Path, say: Callable[[str], None], ranks: Ranks
) -> contextlib.AbstractContextManager[Companions | None]:
    """What goes beside the run, once for all ranks."""
    if not ranks.first:
        return contextlib.nullcontext()
    return Companions(config, folder, say)


@contextlib.contextmanager
def studio(config: Config, console: Console, ranks: Ranks = ALONE) -> Iterator[Farm | None]:
    """The render farm, or this rank's part of it; None for a task that paints nothing."""
    if config.reward.task == "fills":
        yield None
        return
    settings = config.render
    if ranks.count > 1:
        browsers = settings.workers or os.cpu_count() or 1
        settings = dataclasses.replace(settings, workers=max(1, len(ranks.share(browsers))))
    with Farm(settings) as farm:
        console.print(f"render farm: {describe(farm.info)}", markup=False, highlight=False, soft_wrap=True)
        if farm.info.get("fallback"):
            console.print(f"render farm: {farm.info['fallback']}", markup=False, highlight=False, soft_wrap=True)
        yield farm


def _train(
    config: Config,
    folder: Path,
    resuming: bool,
    farm: Farm | None,
    companions: Companions | None,
    stop: Stop,
    console: Console,
    say: Callable[[str], None],
    started: float,
    ranks: Ranks,
) -> int:
    # Torch and transformers are imported after the farm's workers are spawned.
    from grpo import adapter
    from grpo.build import build_policy, build_reward, warm_up
    from grpo.console import StepConsole, judge_table, summary
    from grpo.metrics import COLUMNS
    from grpo.policy import free_memory
    from grpo.probe import Probe, Sampler
    from grpo.prompt import messages
    from grpo.rollout import Collector, Rollout, subject_of
    from grpo.trainer import Stopped, Trainer, Unscored
    from reward.gate import Gate
    from reward.judge import JudgeOutage
    from reward.mix import display_name

    with Stages(console) as stages:
        gate = Gate(config.render.methods)
        pool, mix = build_reward(config, farm, gate, stages, say)
        if ranks.count > 1 and config.policy.model == "small":
            ranks.once(lambda: warm_up(config, folder, stages))
        policy = build_policy(config, folder, stages)
    asked = messages(config.prompt.system, subject_of(config, 1, 0), config.subject.composition)
    policy.assert_sampling(policy.prompt_ids(asked), config.sample)
    console.print(describe_policy(policy), markup=False, highlight=False, soft_wrap=True)

    journal = (Journal if ranks.first else Follower)(folder, COLUMNS)
    journal.write("config.toml", configs.dump(config))
    journal.write("policy.json", json.dumps(adapter.record(policy), indent=1) + "\n")
    terms = {f"rewards/{term.name}/mean": display_name(term) for term in mix.terms} or {"fills": "fills"}
    steps = StepConsole(console, config.run.steps, config.rollouts_per_step, terms)

    def on_rollout(rollout: Rollout) -> None:
        journal.rollout(rollout)
        steps.rollout(rollout)

    def on_other(rollout: Rollout) -> None:
        """A rollout of another rank, told when the step's are put together."""
        steps.rollout(rollout)
        for kind in ("sampled", "painted", "scored"):
            steps.event(kind)

    def on_step(metrics: dict[str, Any], sheet: Path) -> None:
        steps.finished(metrics, sheet)
        if companions is not None:
            companions.step(metrics, sheet)

    collector = Collector(config, policy, farm, gate, mix, on_rollout, steps.event, say, ranks)
    trainer = Trainer(config, policy, collector, pool, journal, lambda: stop.asked, say, ranks, on_other)
    if resuming:
        rows = trainer.resume()
        console.print(
            f"resumed {folder} after step {trainer.step}" if rows else f"{folder}: no step yet, starting over"
        )
        steps.step = trainer.step
    else:
        if policy.device.type == "cuda":
            trainer.try_out(policy.prompt_ids(asked), free_memory())
        trainer.save()
    ranks.follow(policy.trainable().values())
    sampler = Sampler(config, policy, farm, gate, mix, pool, config.probe.samples)
    probe = Probe(folder / "probe", sampler, console)
    stop.on_asked = lambda: mix.stop("the run was told to stop")
    if companions is not None and companions.where:
        say(companions.where)
    seen, code = "", 0
    try:
        ranks.once(lambda: probe.before(trainer.step))
        stop.training = True
        with steps:
            trainer.run(on_step)
        stop.training = False
        seen = "" if stop.asked else ranks.once(lambda: probe.after(trainer.step))
    except Stopped:
        console.print(f"stopped after step {trainer.step}; go on with --resume {folder}", markup=False)
        code = 130
    except (Unscored, JudgeOutage, RankLost) as error:
        say_error(error)
        code = 130 if stop.asked else 3
    finally:
        mix.close()
    stop.training = False
    if companions is None:
        return code
    companions.close()
    rows = read_rows(folder / "metrics.jsonl")
    rewards: dict[int, list[float]] = {row["step"]: [] for row in rows}
    for record in read_rows(folder / "rollouts.jsonl"):
        if record["reward"] is not None:
            rewards[record["step"]].append(record["reward"])
    table, line = summary(rows, list(rewards.values()), folder, time.monotonic() - started)
    console.print(table)
    scorers = judge_table(rows)
    if scorers is not None:
        console.print(scorers)
    if seen:
        say(seen)
    where = f"the run is in {folder}: sheets/ and curve.png to look at, metrics.csv to plot, rollouts.jsonl to read"
    say(where)
    if companions.where:
        say(companions.where)
    print(line, flush=True)
    return code


def run_folder(config: Config, path: str, resume: str | None, console: Console) -> tuple[Path, bool]:
    """The folder of this run, and whether it is one to go on with.

    Raises ConfigError when the folder to resume does not exist or holds a run with other settings.
    """
    root, name = Path(config.run.folder), config.run.name or Path(path).stem
    if resume is None:
        return new_folder(root, name), False
    folder = latest_folder(root, name) if resume == "auto" else Path(resume)
    if folder is None:
        console.print(f"--resume: no run of {name} in {root} yet, starting afresh", markup=False)
        return new_folder(root, name), False
    if not (folder / "config.toml").exists():
        raise ConfigError(f"--resume {folder}: not a run folder (it holds no config.toml)")
    old = configs.load(folder / "config.toml")
    changed = [key for key in configs.differences(old, config) if not key.startswith(MAY_CHANGE)]
    if changed:
        key = changed[0]
        now, was = configs.flatten(config)[key], configs.flatten(old)[key]
        raise ConfigError(
            f"--resume {folder}: {key} is {now!r} now and was {was!r}: that is another run; start it without --resume"
        )
    return folder, True


def describe(info: dict[str, Any]) -> str:
    """What paints, in a line."""
    patches = f"patches {', '.join(info['patches']) or 'none'}" + (f" ({info['warning']})" if info["warning"] else "")
    browsers = f"{info['workers']} browser{'s' if info['workers'] > 1 else ''}"
    return f"{browsers}, Chromium {info['version']}, {info['rasterizer']}, {patches}"


def describe_policy(policy: Any) -> str:
    """Class, commit, size and trained share of the policy, and the layers of its adapter by name and count."""
    from grpo.adapter import kinds

    trained, weights = policy.counts()
    commit = f" at {policy.origin.revision[:12]}" if policy.origin.revision else ""
    adapter = f"\nadapter on {len(policy.adapted)} layers: {kinds(policy.adapted)}" if policy.adapted else ""
    return (
        f"policy: {policy.base_class}{commit}, {weights:,} weights, {trained:,} trained ({trained / weights:.2%}), "
        f"on {policy.device}{adapter}"
    )


if __name__ == "__main__":
    sys.exit(main())
