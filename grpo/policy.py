"""The policy: a causal language model, its tokenizer and its adapter.

`sample` draws completions, `logprobs` scores them. What is drawn and what is trained on are the same token ids: a
completion is never decoded and encoded again. Every field of the sampler is passed explicitly, because `generate`
otherwise fills it from the checkpoint's own generation config; `assert_sampling` proves once at start that the
distribution in force is the one of the config.
The reference for a KL term is the same model with its adapter off (`reference`).
`generate` gets all rows of a batch at once, prompts expanded, with a cache that grows and the library's own choice of
experts kernel: no other exact way was faster on a CPU (`python -m bench.train --generation`). [sample] cache = "static"
draws the same tokens; it is there for GPUs, where the library compiles the decoding step for it.

Legend: _B sequences, _P prompt tokens, _T completion tokens, _L = P + T, _V vocabulary.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from grpo.adapter import Origin, add_adapter, is_vision
from grpo.config import LoraSettings, SampleSettings
from grpo.logprobs import completion_logprobs
from grpo.pretrained import set_experts
from render.errors import ConfigError


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


class MemoryShort(Exception):
    """The device's memory ran out while rows were being drawn.

    begun: for each row that is not finished the tokens that it has so far, equally many for all. The finished ones have
    been handed over.
    """

    def __init__(self, begun: dict[int, tuple[int, ...]], reason: str) -> None:
        super().__init__(reason)
        self.begun = begun


def release_memory() -> None:
    """Give back what nothing refers to any more: tensors in reference cycles, and the allocator's cached blocks."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def free_memory() -> int:
    """Bytes of the current GPU that can still be had: what no one holds, and what the allocator keeps unused."""
    release_memory()
    return torch.cuda.mem_get_info()[0]


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

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        lora: LoraSettings | None,
        checkpointing: bool = False,
        origin: Origin | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.origin = origin or Origin()
        self.base_class = type(model).__name__
        self.dtype = model.get_input_embeddings().weight.dtype
        self.eos_ids = stop_ids(model, tokenizer)
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.eos_ids[0]
        model.generation_config = GenerationConfig(eos_token_id=list(self.eos_ids), pad_token_id=self.pad_id)
        self.adapted: tuple[str, ...] = ()
        set_experts(model)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        if lora is not None:
            model, self.adapted = add_adapter(model, lora, self.origin)
        else:
            for name, weight in model.named_parameters():
                weight.requires_grad_(not is_vision(name))
        self.model = model
        self.has_adapter = lora is not None

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def trainable(self) -> dict[str, nn.Parameter]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    def counts(self) -> tuple[int, int]:
        """Weights that are trained, and all of them."""
        if self.has_adapter:
            trained, total = self.model.get_nb_trainable_parameters()  # knows how 4-bit weights are packed
            return int(trained), int(total)
        weights = [(weight.numel(), weight.requires_grad) for weight in self.model.parameters()]
        return sum(size for size, trained in weights if trained), sum(size for size, _ in weights)

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
            cache_implementation="static" if settings.cache == "static" else None,
        )

    def sample(
        self,
        prompt_ids: Sequence[int],
        count: int,
        settings: SampleSettings,
        seed: int,
        on_finished: Callable[[int, Completion], None] | None = None,
        on_token: Callable[[int], None] | None = None,
    ) -> list[Completion]:
        """`sample_rows` for `count` completions of one prompt."""
        return self.sample_rows([prompt_ids] * count, settings, seed, on_finished, on_token)

    @torch.no_grad()
    def sample_rows(
        self,
        prompts: Sequence[Sequence[int]],
        settings: SampleSettings,
        seed: int,
        on_finished: Callable[[int, Completion], None] | None = None,
        on_token: Callable[[int], None] | None = None,
        begun: Sequence[tuple[int, ...]] | None = None,
    ) -> list[Completion]:
        """Draw one completion of each prompt, all in one batch. on_finished(row, completion) is called the moment a row
        ends, while the others are still being drawn; on_token(tokens so far) after each token. Same seed, same tokens.

        begun: tokens that the completions have already, equally many for all, to go on from.
        Raises MemoryShort, with what to go on from, when the device's memory runs out.
        """
        self.model.eval()
        begun = begun or [()] * len(prompts)
        batch = collate(prompts, begun, self.pad_id, self.device)
        watcher = _Watcher(batch, self.eos_ids, on_finished, on_token)
        torch.manual_seed(seed)
        try:
            output_BL = self.model.generate(
                input_ids=batch.input_ids,
                attention_mask=batch.attention_mask,
                generation_config=self.generation_config(settings, settings.max_completion_length - len(begun[0])),
                stopping_criteria=StoppingCriteriaList([watcher]),
            )
        except torch.OutOfMemoryError as error:
            reason = (str(error).splitlines() or [""])[0]
        else:
            watcher.close(output_BL)
            return [watcher.done[row] for row in range(len(prompts))]
        # Outside the handler, whose traceback holds on to the caches of the failed try.
        raise MemoryShort(watcher.unfinished(), reason)

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

    def logprobs(self, batch: Batch, temperature: float, chunk: int, keep_bytes: int = 0) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies of the completion tokens, [B, T] each, under the full distribution at
        `temperature`; 0 on padding."""
        return completion_logprobs(
            self.model,
            batch.input_ids,
            batch.attention_mask,
            batch.completion_length,
            temperature=temperature,
            chunk=chunk,
            keep_bytes=keep_bytes,
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
        batch: Batch,
        eos_ids: Sequence[int],
        on_finished: Callable[[int, Completion], None] | None,
        on_token: Callable[[int], None] | None,
    ) -> None:
        self.prompt_length = batch.input_ids.shape[1] - batch.completion_length
        self.drawn_BL = batch.input_ids
        self.eos_ids = frozenset(eos_ids)
        self.on_finished = on_finished
        self.on_token = on_token
        self.done: dict[int, Completion] = {}

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        self.drawn_BL = input_ids
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

    def unfinished(self) -> dict[int, tuple[int, ...]]:
        """The tokens so far of the rows that are not finished."""
        completions = self.drawn_BL[:, self.prompt_length :].tolist()
        return {row: tuple(tokens) for row, tokens in enumerate(completions) if row not in self.done}

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
    settings = (model.config, model.config.get_text_config(), getattr(model, "generation_config", None))
    for source in (tokenizer, *settings):
        named = getattr(source, "eos_token_id", None)
        for token in named if isinstance(named, (list, tuple)) else [named]:
            if token is not None and token not in found:
                found.append(int(token))
    if not found:
        raise ConfigError("[policy] model: neither tokenizer nor checkpoint names a stop id; sampling would never end")
    return tuple(found)
