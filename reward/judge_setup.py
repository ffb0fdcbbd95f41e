"""Before a run starts: what the judge lacks on this machine, what its answers will cost, and what to do where it does
not answer. No network, no torch."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import dataclass
from pathlib import Path

from reward.faults import Fault
from reward.judge_remote import key_of
from reward.settings import SubjectSettings, VlmSettings
from reward.verdict import Prompt

PIXELS_PER_TOKEN = 32  # each way, of Qwen3-VL
CHARACTERS_PER_TOKEN = 4.0
VERDICT_TOKENS = 60  # of a winner and a reason of about 160 characters


@dataclass(frozen=True)
class CostEstimate:
    """Of a whole run in which no comparison is repeated or missing. money: None where no price is configured."""

    calls: int
    tokens_in: int
    tokens_out: int
    money: float | None


def cost_estimate(
    settings: VlmSettings, steps: int, group: int, references: int, criteria: str = SubjectSettings().criteria
) -> CostEstimate:
    """Both orders of `group` paintings beside `references` references in each of `steps` steps, square pictures."""
    calls = steps * group * references * 2
    pictures = 2 * math.ceil(settings.image_size / PIXELS_PER_TOKEN) ** 2
    text = math.ceil(sum(map(len, Prompt(settings.mode, criteria).texts)) / CHARACTERS_PER_TOKEN)
    tokens_in = calls * (pictures + text)
    tokens_out = calls * (1 if settings.mode == "soft" else VERDICT_TOKENS)
    money = (tokens_in * settings.price_in + tokens_out * settings.price_out) / 1e6
    return CostEstimate(calls, tokens_in, tokens_out, money if settings.price_in or settings.price_out else None)


def missing(settings: VlmSettings) -> list[str]:
    """One line for each piece that the judge lacks here; empty if a start can be tried."""
    from huggingface_hub import constants

    found = []
    if settings.backend != "transformers":
        if constants.HF_HUB_OFFLINE:
            found.append("judge: HF_HUB_OFFLINE is set, so that huggingface_hub sends no request at all; unset it")
        if settings.backend == "providers" and key_of(settings) is None:
            found.append(
                f"judge: no token; set the environment variable {settings.key_variable}"
                + (" or log in with `hf auth login`" if settings.key_variable == "HF_TOKEN" else "")
            )
        return found
    absent = _absent_weights(settings)
    if absent:
        found.append(absent)
    if settings.quantization != "none" and importlib.util.find_spec("bitsandbytes") is None:
        found.append(f"judge: bitsandbytes is not installed, which [reward.vlm] {settings.quantization} needs")
    return found


def _absent_weights(settings: VlmSettings) -> str:
    """What is missing of the model's files in its folder or in the Hub's cache; empty if nothing is."""
    from huggingface_hub import try_to_load_from_cache

    folder = Path(settings.model)

    def path(name: str) -> Path | None:
        if folder.is_dir():
            return folder / name if (folder / name).is_file() else None
        found = try_to_load_from_cache(settings.model, name, revision=settings.revision or None)
        return Path(found) if isinstance(found, str) else None

    where = str(folder) if folder.is_dir() else f"the cache of the Hub for {settings.model}"
    fetch = "" if folder.is_dir() else f"; fetch it with `hf download {settings.model}`"
    wanted = ["config.json", "tokenizer_config.json"]
    index = path("model.safetensors.index.json")
    if index is None:
        wanted.append("model.safetensors")
    else:
        wanted.extend(sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())))
    absent = [name for name in wanted if path(name) is None]
    if not absent:
        return ""
    others = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    return f"judge: {where} lacks {absent[0]}{others}{fetch}"


def advice(name: str, fault: Fault, settings: VlmSettings, who: str = "judge") -> str:
    """One line about a judge, or whoever, that did not answer its first question, with what to look at."""
    hints = {
        "401": f"is the token in the environment variable {settings.key_variable} right?",
        "403": f"may the token in the environment variable {settings.key_variable} use this model?",
        "402": "buy credits, or name another provider",
        "404": f'is "{settings.model}" the name it knows the model by, and the address whole?',
        "client": "name another provider or model",
        "refused": "is the server running, and the address right?",
        "verdict": "a model that gives no readable verdict cannot judge; name another",
    }
    text = f"the {who} {name} does not answer: {fault.text}"
    return f"{text}; {hints[fault.kind]}" if fault.kind in hints else text
