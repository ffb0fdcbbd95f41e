"""python -m reward.pool generate WORKSHOP --writer MODEL@WHERE ...: candidates for a pool, written by models.

Each writer gets the policy's own system prompt and the subject, or a photograph of it, and answers with a sketch. The
farm paints it, the gate looks at it, and for N rounds a critic that sees the painting says what would make it better,
and the writer revises. WHERE is a provider of Hugging Face Inference Providers, or the address of a server that speaks
OpenAI's chat completions, up to and with /v1. Tokens come from the environment.

Nothing that was answered is asked again: started again with the same arguments, it goes on where it was, also after
kill -9; with more rounds, writers or subjects it adds what is new. A call that fails is a cause and no candidate.
Exit codes: 0 all done, 2 a mistake or something missing, 3 some calls or paintings failed (start it again), 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from render.errors import ConfigError
from render.farm import Farm
from render.painting import Painting
from render.settings import RenderSettings
from reward.asking import system_prompt
from reward.config import ScoringConfig, load
from reward.gate import Gate
from reward.pool import SEED
from reward.pool.chain import Candidates, Chain, Studio
from reward.pool.models import Calls, Manner, Model, named
from reward.pool.photos import read_photos
from reward.pool.work import calls_left, finished, work
from reward.pool.workshop import CALLS, CANDIDATES, Log

CRITIC_TOKENS = 600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("workshop", type=Path, metavar="WORKSHOP", help="folder that holds everything; made if missing")
    add("--writer", action="append", required=True, metavar="MODEL@WHERE", help="who writes sketches; may be repeated")
    add("--critic", metavar="MODEL@WHERE", help="a vision model that says what would make a painting better")
    add(
        "--rounds",
        type=int,
        default=None,
        metavar="N",
        help="revisions of each sketch; default 3 with a critic, 0 without",
    )
    add(
        "-n",
        "--sketches",
        type=int,
        default=1,
        metavar="N",
        help="of each writer, for each subject or photograph; default 1",
    )
    add("--subject", action="append", metavar="TEXT", help="what is painted; may be repeated; default: the config's")
    add("--photos", type=Path, metavar="FOLDER", help="photographs, with metadata.jsonl (see reward/pool/photos.py)")
    add("--system", default="full", metavar="TEXT", help='system prompt: "full" or a text file')
    add("--config", metavar="CONFIG", help="whose [subject] and [render] are taken; default: the built-in ones")
    add("--temperature", type=float, default=1.0, metavar="T", help="of the writers; the critic's is 0")
    add("--max-tokens", type=int, default=8192, metavar="N", help="of a sketch; default 8192")
    add("--no-thinking", action="store_true", help="ask the chat template for answers without thoughts (vLLM, SGLang)")
    add("--image-size", type=int, default=512, metavar="N", help="longer side of the pictures that are sent, in pixels")
    add("--concurrency", type=int, default=8, metavar="N", help="calls in flight, at most; default 8")
    add("--timeout", type=float, default=300.0, metavar="SECONDS", help="of one call")
    add("--tries", type=int, default=5, metavar="N", help="calls for one answer, at most")
    add(
        "--key-variable",
        default="HF_TOKEN",
        metavar="NAME",
        help="environment variable with the key of a server that needs one",
    )
    add("--price", action="append", default=[], metavar="MODEL=IN:OUT", help="money for a million tokens in and out")
    add("--workers", type=int, default=None, metavar="N", help="browsers that paint; default: the config's")
    add("--dry-run", action="store_true", help="say how many calls it would make, and stop")


def run(arguments: argparse.Namespace) -> int:
    """Do what the arguments say; the exit code. Raises UserError and FarmError in one line."""
    notes = Console(stderr=True)

    def say(text: str) -> None:
        notes.print(text, markup=False, highlight=False, soft_wrap=True)

    config = load(arguments.config) if arguments.config else ScoringConfig()
    models, chains, rounds, system = _plan(arguments, config, say)
    with contextlib.ExitStack() as stack:
        logs = [Log(arguments.workshop / name) for name in (CALLS, CANDIDATES)]
        for log in logs:
            stack.callback(log.close)
        farms: list[Farm] = []
        candidates = Candidates(
            arguments.workshop,
            logs[1],
            Gate(config.render.methods),
            lambda source: _painted(farms[0], source),
        )
        critic = next((model for model in models if model.who == "critic"), None)
        studio = Studio(
            system, config.subject.criteria, critic, rounds, Calls(logs[0]), candidates, arguments.image_size
        )
        left = [calls_left(chain, studio) for chain in chains]
        total = len(chains) * studio.calls_of_a_chain
        say(
            f"sketches: {len(chains)}, revisions of each: {rounds}; at most {total} calls, of which "
            f"{total - sum(left)} are done and {sum(left)} are left"
            + (f", and one short question to each model ({len(models)})" if sum(left) else "")
        )
        if arguments.dry_run:
            return 0
        if not any(left) and all(finished(chain, studio) for chain in chains):
            say(f"nothing is left to do; rate them with: python -m reward.pool rate {arguments.workshop}")
            return 0
        if any(left):
            for model in models:
                model.probe()
        settings = config.render if arguments.workers is None else _with_workers(config, arguments.workers)
        farms.append(stack.enter_context(Farm(settings)))
        causes = work(chains, studio, arguments.concurrency, notes)
    _summary(causes, studio, models, arguments.workshop, say)
    return 3 if causes else 0


def _plan(
    arguments: argparse.Namespace, config: ScoringConfig, say: Callable[[str], None]
) -> tuple[list[Model], list[Chain], int, str]:
    """(models, chains, rounds, system prompt) that the arguments ask for. Raises ConfigError, SetupError."""
    rounds = arguments.rounds if arguments.rounds is not None else 3 if arguments.critic else 0
    counts = {"rounds": (rounds, 0), "sketches": (arguments.sketches, 1), "max-tokens": (arguments.max_tokens, 1)}
    for flag, (value, lowest) in counts.items():
        if value < lowest:
            raise ConfigError(f"--{flag} must be at least {lowest}, not {value}")
    if arguments.temperature < 0:
        raise ConfigError(f"--temperature must be at least 0, not {arguments.temperature:g}")
    if rounds and not arguments.critic:
        raise ConfigError(f"--rounds {rounds} needs a --critic to say what is to be revised")
    if arguments.critic and not rounds:
        raise ConfigError("--critic has no effect with --rounds 0")
    prices = _prices(arguments.price)
    common = {"concurrency": arguments.concurrency, "timeout_s": arguments.timeout, "tries": arguments.tries}
    common |= {"image_size": arguments.image_size}
    models = []
    places = [("writer", text) for text in dict.fromkeys(arguments.writer)]
    for who, text in places + ([("critic", arguments.critic)] if arguments.critic else []):
        price = prices.pop(text.rpartition("@")[0], (0.0, 0.0))
        settings = named(text, who, common, arguments.key_variable, price)
        manner = Manner(arguments.max_tokens, arguments.temperature, not arguments.no_thinking)
        if who == "critic":
            manner = Manner(CRITIC_TOKENS, 0.0, not arguments.no_thinking)
        models.append(Model(settings, who, manner, say))
    if prices:
        raise ConfigError(f"--price {next(iter(prices))}: no --writer and no --critic has that name")
    photos = read_photos(arguments.photos, arguments.image_size) if arguments.photos else [None]
    subjects = list(dict.fromkeys(arguments.subject or config.subject.names))
    writers = [model for model in models if model.who == "writer"]
    chains = [
        Chain(subject, writer, index, photo)
        for index in range(arguments.sketches)
        for photo in photos
        for subject in ([photo.subject] if photo and photo.subject else subjects)
        for writer in writers
    ]
    return models, chains, rounds, system_prompt(arguments.system, config.subject.composition, "--system")


def _prices(texts: list[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for text in texts:
        model, _, both = text.rpartition("=")
        try:
            price_in, price_out = (float(part) for part in both.split(":"))
        except ValueError:
            raise ConfigError(f"--price {text}: MODEL=IN:OUT is needed, as in zai-org/GLM-5.2=0.6:2.2") from None
        found[model] = (price_in, price_out)
    return found


def _with_workers(config: ScoringConfig, workers: int) -> RenderSettings:
    if workers < 1:
        raise ConfigError(f"--workers must be at least 1, not {workers}")
    return replace(config.render, workers=workers)


def _painted(farm: Farm, source: str) -> Painting:
    return farm.submit(source, SEED).result()


def _summary(
    causes: Counter[str], studio: Studio, models: list[Model], workshop: Path, say: Callable[[str], None]
) -> None:
    outcomes = Counter(record["outcome"] for record in studio.candidates.records.values())
    say(f"{workshop}: candidates painted: {outcomes['painted']}, rejected: {outcomes['rejected']}")
    for model in models:
        totals = model.totals()
        money = f", cost {totals.cost:.2f}" if any(model.meter.prices) else ""
        faults = "".join(f", {count} x {kind}" for kind, count in totals.faults.items())
        say(
            f"{model.who} {model.title}: {totals.answers} answers in {totals.calls} calls, "
            f"{totals.tokens_in} tokens in, {totals.tokens_out} out{money}{faults}"
        )
    for cause, count in causes.items():
        say(f"not done: {count} x {cause}")
    if causes:
        say("the same command tries those again, and asks nothing that was answered")
    else:
        say(f"rate them with: python -m reward.pool rate {workshop}")
