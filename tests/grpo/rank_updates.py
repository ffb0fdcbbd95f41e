"""Run by torchrun in test_ranks.py, and by it directly as the single process: the updates of one step in many settings.

python rank_updates.py FOLDER writes FOLDER/COUNT_RANK.pt: what each case's update was. The optimizer is plain gradient
descent here, so that the way of the weights says what the gradient was.
"""

import sys
from pathlib import Path
from unittest import mock

import torch

sys.path.insert(0, str(Path(__file__).parent))
from parts import changed, tiny_policy
from test_out_of_memory import limit, rollouts_of, settings

from grpo import update as updates
from grpo.ranks import join
from render.errors import ConfigError
from reward.base import Verdict

BASE = {"learning_rate": 0.5, "micro_batch_size": 1, "max_grad_norm": 0.0}
CASES = {
    "dapo": {},
    "grpo": {"loss_type": "grpo"},
    "dr_grpo": {"loss_type": "dr_grpo"},
    "bnpo": {"loss_type": "bnpo"},
    "sequence": {"importance_sampling_level": "sequence", "num_iterations": 2},
    "reference": {"beta": 0.1},
    "two updates": {"num_iterations": 2, "top_entropy_quantile": 0.5},
    "clipped": {"max_grad_norm": 0.01},
    "one scored row": {"beta": 0.1},
    "memory": {"micro_batch_size": 2},
}


def refuse(rank: int) -> None:
    if rank == 1:
        raise ConfigError("rank 1 has no token")


def main(folder: Path) -> None:
    ranks = join("cpu")
    found = {}
    for name, train in CASES.items():
        config = changed(settings(), train={**BASE, **train})
        policy, lines = tiny_policy(), []
        for key, weight in policy.trainable().items():
            if "lora_B" in key:
                torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(1))
        rollouts, groups = rollouts_of(config)
        if name == "one scored row":
            for rollout in rollouts[1:]:
                rollout.verdict = Verdict(None, "unscored")
        if name == "memory" and ranks.rank == 1:  # one rank alone is short of it
            limit(policy, lambda rows, number: rows <= 1)
        with mock.patch.object(
            updates, "build_optimizer", lambda policy, train: torch.optim.SGD(policy.trainable().values(), lr=0.5)
        ):
            updater = updates.Updater(config, policy, lines.append, ranks)
        before = {key: weight.detach().clone() for key, weight in policy.trainable().items()}
        update = updater.update(rollouts, groups, 1)
        found[name] = {
            "moved": {key: weight.detach() - before[key] for key, weight in policy.trainable().items()},
            "norm": update.grad_norm,
            "loss": update.loss,
            "means": update.stats.means(),
            "size": updater.micro_batch_size,
            "lines": lines,
        }
    try:
        ranks.each(lambda: refuse(ranks.rank))
    except ConfigError as error:
        found["error of the second"] = error
    torch.save(found, folder / f"{ranks.count}_{ranks.rank}.pt")
    ranks.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
