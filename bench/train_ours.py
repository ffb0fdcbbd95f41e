"""python -m bench.train_ours JOB STEPS: this project's side of bench.train, in a process of its own.

A step is what grpo.trainer does once painting and scoring are taken away: sample and decode the groups, advantages,
update, metrics. The tokens that are trained on are the job's, in the place of those that were sampled.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata

import torch

import grpo.trainer  # noqa: F401  what a run has loaded counts as its memory
from bench import train_jobs as jobs
from grpo.advantage import advantages
from grpo.config import Config, LoraSettings, RunSettings, SampleSettings, TrainSettings
from grpo.metrics import summarise
from grpo.policy import Policy
from grpo.rollout import Rollout, derive_seed
from grpo.update import Updater
from reward.base import Verdict


def settings(job: jobs.Job, steps: int) -> Config:
    return dataclasses.replace(
        Config(),
        run=RunSettings(steps=steps),
        lora=LoraSettings(enabled=job.lora, rank=jobs.LORA_RANK, alpha=jobs.LORA_ALPHA),
        sample=SampleSettings(
            group_size=job.group_size, prompts_per_step=job.groups, max_completion_length=job.length, temperature=1.0
        ),
        train=TrainSettings(
            loss_type="dapo",
            scale_rewards="group",
            clip_low=jobs.CLIP_LOW,
            clip_high=jobs.CLIP_HIGH,
            micro_batch_size=job.micro_batch,
            learning_rate=jobs.LEARNING_RATE,
            warmup_steps=0,
            max_grad_norm=jobs.MAX_GRAD_NORM,
        ),
    )


def main() -> None:
    job, steps = jobs.arguments()
    config = settings(job, steps)
    model = jobs.build_model(job)
    policy = Policy(model, jobs.build_tokenizer(), config.lora if job.lora else None)
    jobs.fill(policy.model)
    updater = Updater(config, policy)
    texts = [policy.tokenizer(text)["input_ids"] for text in jobs.prompts(job)]
    prompts = [texts[row // job.group_size] for row in range(job.rows)]
    loaded = jobs.loaded(sum(weight.numel() for weight in policy.model.parameters()))

    first: dict[str, tuple[float, float]] = {}

    def look(optimizer: torch.optim.Optimizer, *_: object) -> None:
        if not first:
            first.update(jobs.gradients(policy.trainable().items()))

    updater.optimizer.register_step_pre_hook(look)
    meter = jobs.Meter()
    for step in range(1, steps + 1):
        with meter.generating():
            sampled = policy.sample_rows(prompts, config.sample, derive_seed(0, "sample", step))
        tokens = jobs.completions(job, step)
        values, groups = advantages(jobs.rewards(job, step), job.group_size, config.train.scale_rewards)
        rollouts = [
            Rollout(
                step, row, row // job.group_size, "", tuple(prompts[row]), tuple(tokens[row]), True,
                policy.decode(tokens[row]),
                verdict=Verdict(reward, "scored"), advantage=values[row],
            )
            for row, reward in enumerate(jobs.rewards(job, step))
        ]  # fmt: skip
        update = updater.update(rollouts, groups, step)
        summarise(rollouts, groups)
        sampled_tokens = sum(len(completion.ids) for completion in sampled)
        meter.end(loss=update.loss, grad_norm=update.grad_norm, sampled=sampled_tokens)
    names = ("torch", "transformers", "peft")
    jobs.report(meter, loaded, first, {name: importlib.metadata.version(name) for name in names})


if __name__ == "__main__":
    main()
