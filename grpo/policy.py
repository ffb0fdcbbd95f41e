"""The policy: a causal language model, its tokenizer and its adapter.

`sample` draws completions, `logprobs` scores them. What is drawn and what is trained on are the same token ids: a
completion is never decoded and encoded again. Every field of the sampler is passed explicitly, because `generate`
otherwise fills it from the checkpoint's own generation config; `assert_sampling` proves once at start that the
distribution in force is the one of the config.
The reference for a KL term is the same model with its adapter off (`reference`).

Legend: _B sequences, _P prompt tokens, _T completion tokens, _L = P + T, _V vocabulary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoTokenizer, GenerationConfig, StoppingCriteria, StoppingCriteriaList

from grpo.config import Config, LoraSettings, SampleSettings
from grpo.logprobs import completion_logprobs
from render.errors import ConfigError, SetupError

VISION = ("visual", "vision_tower", "vision_model", "multi_modal_projector")


@dataclass(frozen=True)
class Completion:
    """ids: the sampled tokens up to and including the first stop id. finished: ended by a stop id, not by the limit."""

    ids: tuple[int, ...]
    finished: bool


@dataclass(frozen=True)
class Batch:
    """Left-padded prompts followed by right-padded completions.

    input_ids, attention_mask: [B, L]. completion_length: T, the length of the longest completion.
    """

    input_ids: Tensor
    attention_mask: Tensor
    completion_length: int


def collate(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], pad_id: int, device: torch.device | str
) -> Batch:
    """Pad token lists into one Batch. Lengths, never the value of a token, say what is padding."""
    prompt_length = max(len(ids) for ids in prompts)
    completion_length = max(len(ids) for ids in completions)
    shape = (len(prompts), prompt_length + completion_length)
    input_ids = torch.full(shape, pad_id, dtype=torch.long)
    attention_mask = torch.zeros(shape, dtype=torch.long)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        start = prompt_length - len(prompt)
        end = prompt_length + len(completion)
        input_ids[row, start:end] = torch.tensor([*prompt, *completion])
        attention_mask[row, start:end] = 1
    return Batch(input_ids.to(device), attention_mask.to(device), completion_length)


class Policy:
    """A model with its tokenizer.

    eos_ids: every id that ends a completion, the union of the tokenizer's and the checkpoint's.
    """

    def __init__(self, model: Any, tokenizer: Any, lora: LoraSettings | None, checkpointing: bool = False) -> None:
        self.tokenizer = tokenizer
        self.eos_ids = stop_ids(model, tokenizer)
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.eos_ids[0]
        model.generation_config = GenerationConfig(eos_token_id=list(self.eos_ids), pad_token_id=self.pad_id)
        self.adapted: tuple[str, ...] = ()
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        if lora is not None:
            model, self.adapted = add_adapter(model, lora)
        self.model = model
        self.has_adapter = lora is not None

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def trainable(self) -> dict[str, nn.Parameter]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    def prompt_ids(self, messages: list[dict[str, str]]) -> list[int]:
        """Chat messages -> ids, with the generation prompt and thinking off."""
        encoded = self.tokenizer.apply_chat_template(
            messages, tokenize=True, add_generation_prompt=True, return_dict=True, enable_thinking=False
        )
        return list(encoded["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    def generation_config(self, settings: SampleSettings, max_new_tokens: int) -> GenerationConfig:
        """Every field that shapes the distribution, said out loud."""
        return GenerationConfig(
            do_sample=True,
            num_beams=1,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            min_p=settings.min_p or None,
            typical_p=1.0,
            epsilon_cutoff=0.0,
            eta_cutoff=0.0,
            repetition_penalty=settings.repetition_penalty,
            no_repeat_ngram_size=0,
            max_new_tokens=max_new_tokens,
            eos_token_id=list(self.eos_ids),
            pad_token_id=self.pad_id,
            use_cache=True,
        )

    @torch.no_grad()
    def sample(
        self,
        prompt_ids: Sequence[int],
        count: int,
        settings: SampleSettings,
        seed: int,
        on_finished: Callable[[int, Completion], None] | None = None,
        on_token: Callable[[int], None] | None = None,
    ) -> list[Completion]:
        """Draw `count` completions of one prompt. on_finished(row, completion) is called the moment a row ends, while
        the others are still being drawn; on_token(tokens so far) after each token. Same seed, same tokens."""
        self.model.eval()
        prompt = torch.tensor([list(prompt_ids)], device=self.device)
        watcher = _Watcher(len(prompt_ids), self.eos_ids, on_finished, on_token)
        torch.manual_seed(seed)
        output_BL = self.model.generate(
            input_ids=prompt.expand(count, -1),
            attention_mask=torch.ones_like(prompt).expand(count, -1),
            generation_config=self.generation_config(settings, settings.max_completion_length),
            stopping_criteria=StoppingCriteriaList([watcher]),
        )
        watcher.close(output_BL)
        return [watcher.done[row] for row in range(count)]

    @torch.no_grad()
    def assert_sampling(self, prompt_ids: Sequence[int], settings: SampleSettings) -> None:
        """Draw one token and compare the distribution in force with the one that the settings describe.

        Raises ConfigError when they differ: then something outside the config shapes what is sampled.
        """
        self.model.eval()
        prompt = torch.tensor([list(prompt_ids)], device=self.device)
        state = torch.get_rng_state()
        drawn = self.model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            generation_config=self.generation_config(settings, 1),
            output_logits=True,
            output_scores=True,
            return_dict_in_generate=True,
        )
        torch.set_rng_state(state)
        expected_V = shaped_logits(drawn.logits[0][0].float(), prompt[0], settings).log_softmax(-1)
        actual_V = drawn.scores[0][0].float().log_softmax(-1)
        both = expected_V.isfinite() & actual_V.isfinite()
        tail = torch.where(both, 0.0, expected_V.exp() + actual_V.exp()).sum().item()
        difference = (expected_V - actual_V)[both].abs().max().item() if both.any() else float("inf")
        if not (difference < 1e-3 and tail < 1e-2):
            raise ConfigError(
                f"[sample] the sampler does not draw from the distribution of the config (log-probabilities differ by "
                f"{difference:.3g}, cut tokens hold {tail:.3g}): a setting of the checkpoint or the library is in force"
            )

    def logprobs(self, batch: Batch, temperature: float, chunk: int) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies of the completion tokens, [B, T] each, under the full distribution at
        `temperature`; 0 on padding."""
        return completion_logprobs(
            self.model,
            batch.input_ids,
            batch.attention_mask,
            batch.completion_length,
            temperature=temperature,
            chunk=chunk,
        )

    @contextlib.contextmanager
    def reference(self) -> Iterator[None]:
        """The model as it was before training: adapter off."""
        with self.model.disable_adapter(), torch.no_grad():
            yield


class _Watcher(StoppingCriteria):
    """Sees every token as it is drawn, and hands a row over the moment its stop id appears. It never stops anything."""

    def __init__(
        self,
        prompt_length: int,
        eos_ids: Sequence[int],
        on_finished: Callable[[int, Completion], None] | None,
        on_token: Callable[[int], None] | None,
    ) -> None:
        self.prompt_length = prompt_length
        self.eos_ids = frozenset(eos_ids)
        self.on_finished = on_finished
        self.on_token = on_token
        self.done: dict[int, Completion] = {}

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        for row, token in enumerate(input_ids[:, -1].tolist()):
            if row not in self.done and token in self.eos_ids:
                self._finish(row, Completion(tuple(input_ids[row, self.prompt_length :].tolist()), True))
        if self.on_token is not None:
            self.on_token(input_ids.shape[1] - self.prompt_length)
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)

    def close(self, output_BL: Tensor) -> None:
        """Rows that never drew a stop id were cut at the limit."""
        for row in range(output_BL.shape[0]):
            if row not in self.done:
                self._finish(row, Completion(tuple(output_BL[row, self.prompt_length :].tolist()), False))

    def _finish(self, row: int, completion: Completion) -> None:
        self.done[row] = completion
        if self.on_finished is not None:
            self.on_finished(row, completion)


def shaped_logits(logits_V: Tensor, context: Tensor, settings: SampleSettings) -> Tensor:
    """The distribution that the settings describe, as logits [V]: repetition penalty over the context's tokens, then
    temperature, top-k, top-p (Holtzman et al. 2020) and min-p, in the order in which transformers applies them."""
    logits_V = logits_V.clone()
    if settings.repetition_penalty != 1:
        seen = context.unique()
        values = logits_V[seen]
        penalty = settings.repetition_penalty
        logits_V[seen] = torch.where(values > 0, values / penalty, values * penalty)
    logits_V = logits_V / settings.temperature
    if settings.top_k > 0:
        kept = logits_V.topk(min(settings.top_k, logits_V.numel())).values[-1]
        logits_V = logits_V.masked_fill(logits_V < kept, float("-inf"))
    if settings.top_p < 1:
        ordered, order = logits_V.sort(descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        logits_V[order[before >= settings.top_p]] = float("-inf")
    if settings.min_p > 0:
        probabilities = logits_V.softmax(-1)
        logits_V = logits_V.masked_fill(probabilities < settings.min_p * probabilities.max(), float("-inf"))
    return logits_V


def stop_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """The union of the stop ids that tokenizer, model config and generation config name, in order, without repeats."""
    found: list[int] = []
    for source in (tokenizer, model.config, getattr(model, "generation_config", None)):
        named = getattr(source, "eos_token_id", None)
        for token in named if isinstance(named, (list, tuple)) else [named]:
            if token is not None and token not in found:
                found.append(int(token))
    if not found:
        raise ConfigError("[policy] model: neither tokenizer nor checkpoint names a stop id; sampling would never end")
    return tuple(found)


def lora_targets(model: Any, targets: tuple[str, ...] | str) -> list[str]:
    """Full names of the layers to adapt. "all-linear": every nn.Linear but the head and the vision part (routed experts
    and routers are parameters, not layers, and stay frozen). A list matches the last part of a layer's name.

    Raises ConfigError for a name that matches no linear layer.
    """
    head = model.get_output_embeddings()
    linear = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head and not any(part in name for part in VISION)
    ]
    if isinstance(targets, str):
        if targets != "all-linear":
            raise ConfigError(f'[lora] targets is "all-linear" or a list of layer names, not "{targets}"')
        return linear
    for target in targets:
        if not any(name.split(".")[-1] == target for name in linear):
            ends = sorted({name.split(".")[-1] for name in linear})
            raise ConfigError(f"[lora] targets: no linear layer is called {target}; there are {', '.join(ends)}")
    return [name for name in linear if name.split(".")[-1] in targets]


def add_adapter(model: Any, settings: LoraSettings) -> tuple[Any, tuple[str, ...]]:
    """Wrap the model in a LoRA adapter (Hu et al. 2021) and return it with the names of the adapted layers.

    The matrices are drawn under a fixed seed, so that the same config starts from the same adapter.
    """
    from peft import LoraConfig, get_peft_model

    names = lora_targets(model, settings.targets)
    state = torch.get_rng_state()
    torch.manual_seed(0)
    wrapped = get_peft_model(
        model,
        LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules=names,
            bias="none",
            task_type="CAUSAL_LM",
        ),
    )
    torch.set_rng_state(state)
    adapted = {
        name.split(".base_model.model.")[-1].removeprefix("base_model.model.").split(".lora_A")[0]
        for name, weight in wrapped.named_parameters()
        if ".lora_A." in name and weight.requires_grad
    }
    if adapted != set(names):
        odd = sorted(adapted ^ set(names))
        raise ConfigError(f"[lora] targets: the adapter does not sit where it was asked to: {', '.join(odd[:5])}")
    return wrapped, tuple(names)


def resolve_device(name: str) -> str:
    """auto -> cuda where there is one. Raises ConfigError when a GPU is asked for and there is none."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError('[policy] device is "cuda", but torch sees no GPU on this machine; use "auto" or "cpu"')
    return name


def load_pretrained(config: Config) -> tuple[Any, Any]:
    """Model and tokenizer of a folder or a Hub model, in the class that its own config names (its first architecture),
    so that an adapter's names fit the checkpoint's.

    Raises SetupError in one line when it can neither be found locally nor downloaded.
    """
    import transformers

    settings = config.policy
    device = resolve_device(settings.device)
    dtype = {"auto": torch.bfloat16 if device == "cuda" else torch.float32}.get(settings.dtype) or getattr(
        torch, settings.dtype
    )
    if dtype is torch.bfloat16 and device == "cpu":
        raise ConfigError('[policy] dtype "bfloat16" needs a GPU and there is none; use "auto" or "float32"')
    if Path(settings.model).exists() and not Path(settings.model, "config.json").exists():
        raise SetupError(f"[policy] model: the folder {settings.model} holds no config.json")
    revision = settings.revision or None
    try:
        model_config = AutoConfig.from_pretrained(settings.model, revision=revision)
        kind = getattr(transformers, (model_config.architectures or ["AutoModelForCausalLM"])[0])
        tokenizer = AutoTokenizer.from_pretrained(settings.model, revision=revision)
        model = kind.from_pretrained(settings.model, revision=revision, dtype=dtype)
    except OSError as error:
        first = str(error).strip().splitlines()[0]
        raise SetupError(f"[policy] model: {settings.model} can be neither found nor downloaded: {first}") from None
    return model.to(device), tokenizer
