"""python -m bench.train_trl JOB STEPS: TRL's GRPOTrainer on the same job, in a process of its own.

Its own sampling runs, and is timed; then the job's tokens take the place of what it sampled, and the reward function
gives the job's rewards in the order of the rows. Everything else is the trainer's own.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState

from bench import train_jobs as jobs


def settings(job: jobs.Job, steps: int, folder: str) -> Any:
    """GRPOConfig with everything said that the comparison depends on."""
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=job.micro_batch,
        gradient_accumulation_steps=job.rows // job.micro_batch,
        num_generations=job.group_size,
        max_completion_length=job.length,
        loss_type="dapo",
        scale_rewards="group",
        epsilon=jobs.CLIP_LOW,
        epsilon_high=jobs.CLIP_HIGH,
        beta=0.0,
        num_iterations=1,
        temperature=1.0,
        learning_rate=jobs.LEARNING_RATE,
        lr_scheduler_type="constant",
        max_grad_norm=jobs.MAX_GRAD_NORM,
        weight_decay=0.0,
        gradient_checkpointing=job.checkpointing,
        bf16=False,
        use_cpu=True,
        shuffle_dataset=False,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )


def build(job: jobs.Job, steps: int, folder: str, meter: jobs.Meter) -> Any:
    """The trainer, its sampling timed and replaced."""
    from datasets import Dataset
    from trl import GRPOTrainer

    class Trainer(GRPOTrainer):
        drawn = 0
        step = 0

        def _generate_single_turn(self, *arguments: Any, **named: Any) -> Any:
            with meter.generating():
                completion_ids, logprobs = super()._generate_single_turn(*arguments, **named)
            self.drawn = sum(len(ids) for ids in completion_ids)
            self.step += 1
            return jobs.completions(job, self.step), logprobs

    def reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
        assert len(completion_ids) == job.rows
        return jobs.rewards(job, trainer.step)

    model = jobs.build_model(job)
    model.config._name_or_path = "bench"
    adapter = None
    if job.lora:
        from peft import LoraConfig

        adapter = LoraConfig(
            r=jobs.LORA_RANK, lora_alpha=jobs.LORA_ALPHA, target_modules=jobs.lora_targets(model), task_type="CAUSAL_LM"
        )
    rows = Dataset.from_dict({"prompt": jobs.prompts(job) * (steps + 1)})
    trainer = Trainer(
        model=model,
        reward_funcs=reward,
        args=settings(job, steps, folder),
        train_dataset=rows,
        processing_class=jobs.build_tokenizer(),
        peft_config=adapter,
    )
    jobs.fill(trainer.model)
    return trainer


class Watch(TrainerCallback):
    """Ends a step of the meter where the trainer ends one, its log line included."""

    def __init__(self, meter: jobs.Meter, model: Any) -> None:
        self.meter = meter
        self.model = model
        self.first: dict[str, tuple[float, float]] = {}
        self.trainer: Any = None

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.meter.begin()

    def on_pre_optimizer_step(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if not self.first:
            self.first = jobs.gradients(self.model.named_parameters())

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any) -> None:
        if "loss" in logs:
            self.meter.end(loss=logs["loss"], grad_norm=logs["grad_norm"], sampled=self.trainer.drawn)


def main() -> None:
    job, steps = jobs.arguments()
    meter = jobs.Meter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = build(job, steps, folder, meter)
        watch = Watch(meter, trainer.model)
        watch.trainer = trainer
        trainer.add_callback(watch)
        loaded = jobs.loaded(sum(weight.numel() for weight in trainer.model.parameters()))
        trainer.train()
    names = ("torch", "transformers", "peft", "trl")
    versions = {name: importlib.metadata.version(name) for name in names}
    assert torch.get_num_threads() == 1
    jobs.report(meter, loaded, watch.first, versions)


if __name__ == "__main__":
    main()
