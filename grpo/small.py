"""The small embedded policy: a tiny model of the target's own class, taught the grammar's language before GRPO starts.

`build_tokenizer` makes a byte-level BPE in which every number and every quoted "#rrggbb" colour of the grammar is one
token; `build_model` makes a Qwen3_5MoeForCausalLM of about a million parameters (gated delta-rule layers, full
attention every fourth layer, routed and shared experts), so that the trainer meets the same class, cache and LoRA
surface as with the 35B policy. `warm_start` runs one supervised pass over sketches that `grpo.grammar` samples: cross
entropy on completion tokens only, AdamW, linear warm-up then cosine. The result is cached by content; an interrupted
pass resumes from its last partial state. Left out: packing, dropout, a router balancing loss, any other model class.
torch and transformers are imported inside the functions, so that reading settings stays quick.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from grpo import grammar
from render.disk import locked
from render.errors import ConfigError
from render.settings import setting

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3_5MoeForCausalLM

Messages = Callable[[str], list[dict[str, str]]]

TURN_START, TURN_END, TEXT_END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Quoted colours, numbers, then the rest of a line up to the next of them; a line's text takes its line break along.
SPLIT = r'"#[0-9a-f]{6}"|[0-9]+(?:\.[0-9]+)?|\s*[^\s0-9"#][^\n0-9"#]*|\s+|["#]'
PARTIAL_EVERY_S = 20.0


@dataclass(frozen=True)
class WarmStartSettings:
    """Table [warm_start]: the supervised pass that gives the small policy its language."""

    steps: int = setting(240, doc="optimizer steps of the supervised pass", ge=1, le=100_000)
    batch_size: int = setting(16, doc="sketches of one optimizer step", ge=1, le=4096)
    learning_rate: float = setting(4e-3, doc="peak learning rate of AdamW", gt=0, le=1)
    seed: int = setting(0, doc="seed of the initial weights and of the sampled sketches", ge=0)
    threads: int = setting(2, doc="CPU threads of the supervised pass", ge=1, le=256)
    hidden_size: int = setting(128, doc="width of the residual stream; a multiple of 32", ge=32, le=4096)
    layers: int = setting(4, doc="decoder layers; every fourth one has full attention", ge=4, le=64)
    experts: int = setting(4, doc="routed experts of a layer, of which two are active", ge=2, le=256)


@dataclass(frozen=True)
class WarmStartProgress:
    """One step of the supervised pass. loss: nats per completion token; tokens_per_s: since it began or resumed."""

    step: int
    steps: int
    loss: float
    tokens_per_s: float


def build_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE trained on texts (sketches and prompts); any Unicode text encodes and decodes exactly."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=[TEXT_END, TURN_START, TURN_END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=TEXT_END,
        additional_special_tokens=[TURN_START],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def build_model(tokenizer: PreTrainedTokenizerFast, settings: WarmStartSettings) -> Qwen3_5MoeForCausalLM:
    """A freshly initialised float32 model for the tokenizer's vocabulary; the global torch RNG is left as it was.

    Raises ConfigError when hidden_size is not a multiple of 32.
    """
    import torch
    from transformers import Qwen3_5MoeForCausalLM
    from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig

    if settings.hidden_size % 32:
        raise ConfigError(
            f"[warm_start] hidden_size = {settings.hidden_size}: must be a multiple of 32 (a head's width)"
        )
    heads = settings.hidden_size // 32
    groups = heads if heads % 2 else heads // 2
    stop_ids = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    config = Qwen3_5MoeTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        head_dim=32,
        linear_num_key_heads=groups,
        linear_num_value_heads=heads,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        moe_intermediate_size=settings.hidden_size // 2,
        shared_expert_intermediate_size=settings.hidden_size,
        num_experts=settings.experts,
        num_experts_per_tok=2,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        use_cache=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=stop_ids,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = Qwen3_5MoeForCausalLM._from_config(config, dtype=torch.float32)
    model.set_experts_implementation("grouped_mm")
    model.generation_config.eos_token_id = stop_ids
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def warm_start(
    settings: WarmStartSettings,
    messages: Messages,
    progress: Callable[[WarmStartProgress], None] | None = None,
    cache: Path | str = Path(".cache/warm_start"),
) -> tuple[Qwen3_5MoeForCausalLM, PreTrainedTokenizerFast]:
    """The small policy and its tokenizer, from the cache or by a supervised pass that then fills the cache.

    messages: subject -> chat messages, as the run itself will prompt. The key of the cache is a hash of this file, the
    grammar, the settings, the prompts and the versions of torch, transformers and tokenizers. An entry is written
    beside its place and renamed: it is whole or absent. The model comes back in eval mode, float32. With more than one
    thread OMP_WAIT_POLICY=PASSIVE should be set before torch is imported, or busy cores slow the pass tenfold.
    """
    key = _cache_key(settings, messages)
    entry = Path(cache) / key
    Path(cache).mkdir(parents=True, exist_ok=True)
    with locked(Path(cache) / f"{key}.lock"):
        if not _is_whole(entry):
            shutil.rmtree(entry, ignore_errors=True)
            _train_into(entry, settings, messages, progress)
    return load(entry)


def _is_whole(entry: Path) -> bool:
    """complete.json is written last, so an entry that has it has everything."""
    return (entry / "complete.json").is_file()


def _cache_key(settings: WarmStartSettings, messages: Messages) -> str:
    parts = {
        "source": [Path(grammar.__file__).read_text("utf-8"), Path(__file__).read_text("utf-8")],
        "settings": dataclasses.asdict(settings),
        "prompts": [messages(subject) for subject in grammar.SUBJECTS],
        "versions": [version(package) for package in ("torch", "transformers", "tokenizers")],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def save(folder: Path, model: Any, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write model/ and tokenizer/ into a folder, from which `load` gives the same to the bit."""
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "tokenizer")


def load(entry: Path) -> tuple[Qwen3_5MoeForCausalLM, PreTrainedTokenizerFast]:
    """Model (eval mode, float32) and tokenizer of a folder that `save` wrote."""
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3_5MoeForCausalLM

    # The tokenizer has a folder of its own: beside the model's config.json AutoTokenizer replaces its pre-tokenizer.
    tokenizer = PreTrainedTokenizerFast.from_pretrained(entry / "tokenizer")
    with _without_bars():
        model = Qwen3_5MoeForCausalLM.from_pretrained(entry / "model", dtype=torch.float32)
    model.set_experts_implementation("grouped_mm")
    return model.eval(), tokenizer


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """Silences the bars that transformers draws over the caller's console, here for files of a few megabytes."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _train_into(
    entry: Path,
    settings: WarmStartSettings,
    messages: Messages,
    progress: Callable[[WarmStartProgress], None] | None,
) -> None:
    """Runs the supervised pass and puts model/, tokenizer/ and complete.json into `entry`, all or nothing."""
    import torch

    partial = entry.with_suffix(".partial")
    prompts, sketches = _examples(settings, messages)
    tokenizer = build_tokenizer([*sketches, *(message["content"] for prompt in prompts for message in prompt)])
    model = build_model(tokenizer, settings)
    threads = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    try:
        losses = _fit(model, _batches(tokenizer, prompts, sketches, settings), settings, partial, progress)
    finally:
        torch.set_num_threads(threads)
    temporary = entry.with_suffix(f".tmp{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    with _without_bars():
        save(temporary, model, tokenizer)
    (temporary / "complete.json").write_text(json.dumps({"steps": settings.steps, "loss": losses[-1]}) + "\n")
    try:
        os.rename(temporary, entry)
    except OSError:
        shutil.rmtree(temporary)
        if not _is_whole(entry):  # else another process was quicker and wrote the same
            raise
    partial.unlink(missing_ok=True)


def _examples(settings: WarmStartSettings, messages: Messages) -> tuple[list[list[dict[str, str]]], list[str]]:
    """One prompt and one sketch for every example of the pass; subject and sketch are drawn independently."""
    rng = numpy.random.default_rng(settings.seed)
    count = settings.steps * settings.batch_size
    sketches = [grammar.sample_sketch(rng) for _ in range(count)]
    prompts = [messages(grammar.SUBJECTS[int(rng.integers(len(grammar.SUBJECTS)))]) for _ in range(count)]
    return prompts, sketches


def _batches(
    tokenizer: PreTrainedTokenizerFast,
    prompts: Sequence[list[dict[str, str]]],
    sketches: Sequence[str],
    settings: WarmStartSettings,
) -> list[list[tuple[list[int], int]]]:
    """Batches of (token ids of prompt + sketch + end of turn, length of the prompt); like lengths go together.

    Prompt and sketch are encoded apart, as they will be when the policy is sampled.
    """
    examples = []
    for prompt, sketch in zip(prompts, sketches, strict=True):
        text = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
        prompt_ids = tokenizer.encode(text, add_special_tokens=False)
        sketch_ids = tokenizer.encode(sketch, add_special_tokens=False)
        examples.append(([*prompt_ids, *sketch_ids, tokenizer.eos_token_id], len(prompt_ids)))
    examples.sort(key=lambda example: len(example[0]))
    size = settings.batch_size
    order = numpy.random.default_rng(settings.seed).permutation(settings.steps)
    return [examples[i * size : (i + 1) * size] for i in order]


def _fit(
    model: Qwen3_5MoeForCausalLM,
    batches: Sequence[list[tuple[list[int], int]]],
    settings: WarmStartSettings,
    partial: Path,
    progress: Callable[[WarmStartProgress], None] | None,
) -> list[float]:
    """One pass over the batches; the losses of its steps, nats per completion token."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    losses: list[float] = []
    if partial.is_file():
        state = torch.load(partial, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]
    model.train()
    began = saved = time.monotonic()
    tokens = 0
    for step in range(len(losses), settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * _schedule(step, settings.steps)
        loss = _loss(model, batches[step])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        tokens += sum(len(ids) for ids, _ in batches[step])
        now = time.monotonic()
        if progress is not None:
            progress(WarmStartProgress(step + 1, settings.steps, losses[-1], tokens / (now - began)))
        if now - saved > PARTIAL_EVERY_S:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}
            temporary = partial.with_suffix(f".partial{os.getpid()}")
            torch.save(state, temporary)
            os.replace(temporary, partial)
            saved = now
    return losses


def _schedule(step: int, steps: int) -> float:
    """Factor on the learning rate: linear warm-up over a twentieth of the steps, then half a cosine to 5 %."""
    warmup = max(1, steps // 20)
    if step < warmup:
        return (step + 1) / warmup
    share = (step - warmup) / max(1, steps - warmup)
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * share))


def _loss(model: Qwen3_5MoeForCausalLM, batch: Sequence[tuple[list[int], int]]) -> torch.Tensor:
    """Mean cross entropy over the completion tokens of a right-padded batch."""
    import torch

    length = max(len(ids) for ids, _ in batch)
    ids_BT = torch.full((len(batch), length), model.config.pad_token_id)
    mask_BT = torch.zeros_like(ids_BT)
    labels_BT = torch.full_like(ids_BT, -100)
    for row, (ids, prompt_length) in enumerate(batch):
        ids_BT[row, : len(ids)] = torch.tensor(ids)
        mask_BT[row, : len(ids)] = 1
        labels_BT[row, prompt_length : len(ids)] = torch.tensor(ids[prompt_length:])
    positions_BT = (mask_BT.cumsum(1) - 1).clamp(min=0)
    output: Any = model(input_ids=ids_BT, attention_mask=mask_BT, position_ids=positions_BT, use_cache=False)
    return torch.nn.functional.cross_entropy(output.logits[:, :-1].flatten(0, 1), labels_BT[:, 1:].flatten())
