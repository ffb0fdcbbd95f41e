"""Several GPUs: one process (a rank) for each, started on one machine by

    torchrun --nproc-per-node N -m grpo.run CONFIG

Every rank holds the whole policy and is asked the same things in the same order. It samples, paints and scores its
share of a step's rollouts; then all know all of them, each computes the gradient of its share of the scored ones, and
the sum is the whole step's gradient, the same on every rank. The first rank alone keeps journal and checkpoints, talks,
and decides what one must decide for all. Random numbers depend on the share: a run of several ranks is another run than
one of a single process, and repeats itself with the same number of ranks.

When a rank ends, torchrun ends the others, and a collective that waits for it fails at once. Nothing is lost but the
step in flight: the run goes on from its last checkpoint.

Between GPUs gradients travel by NCCL, all else and all on a CPU by gloo. Torch is imported only where there are several
ranks. Left out: several machines, weights cut into pieces (the policy must fit one GPU).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from render.errors import ConfigError, FarmError, UserError

if TYPE_CHECKING:
    from torch import Tensor

Result = TypeVar("Result")
# One rank waits for another as long as that takes (a judge's outage, a probe): a dead one is noticed otherwise.
PATIENCE = timedelta(days=7)


class RankLost(UserError):
    """Another rank ended, or the connection to it did."""


class Ranks:
    """This process among those that train together. rank: 0 .. count - 1."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank = rank
        self.count = count

    @property
    def first(self) -> bool:
        return self.rank == 0

    @property
    def others(self) -> tuple[int, ...]:
        """What sets this rank's random numbers apart: nothing for the first, its number for another."""
        return () if self.first else (self.rank,)

    def share(self, total: int, rank: int | None = None) -> range:
        """Which of `total` rows are this rank's (or another's): shares that differ by one at most."""
        rank = self.rank if rank is None else rank
        return range(rank * total // self.count, (rank + 1) * total // self.count)

    def each(self, work: Callable[[], Result]) -> list[Result]:
        """What work() gives on every rank, by rank, told to every rank.

        A UserError or FarmError of one is raised on all, so that none waits for ever; the first rank says it. Raises
        RankLost when another rank has ended.
        """
        if self.count == 1:
            return [work()]
        mine: tuple[Result | None, UserError | FarmError | None]
        try:
            mine = work(), None
        except (UserError, FarmError) as error:
            mine = None, error
        told = self._gather(mine)
        fault = next((fault for _, fault in told if fault is not None), None)
        if fault is not None:
            raise fault if self.first else type(fault)("")  # its line is printed once, by the first
        return [value for value, _ in told]  # type: ignore[misc]

    def tell(self, value: Result) -> list[Result]:
        """The value of every rank, by rank, told to every rank."""
        return self.each(lambda: value)

    def once(self, work: Callable[[], Result]) -> Result:
        """What work() gives on the first rank, which alone does it while the others wait. Errors as with `each`."""
        return self.each(work if self.first else lambda: None)[0]  # type: ignore[return-value]

    def add(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over the ranks. All of one dtype and device, the same shapes on every rank."""
        if self.count > 1:
            self._together(list(tensors), summed=True)

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by that of the first rank."""
        if self.count > 1:
            self._together(list(tensors), summed=False)

    def _together(self, tensors: list[Tensor], summed: bool) -> None:
        import torch
        from torch import distributed

        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        with _named_errors():
            if summed:
                distributed.all_reduce(flat)
            else:
                distributed.broadcast(flat, 0)
        start = 0
        with torch.no_grad():
            for tensor in tensors:
                tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
                start += tensor.numel()

    def _gather(self, value: Result) -> list[Result]:
        from torch import distributed

        found: list[Result] = [value] * self.count
        with _named_errors():
            distributed.all_gather_object(found, value)
        return found

    def close(self) -> None:
        """Leave the others; only where all have come to their end."""
        if self.count > 1:
            from torch import distributed

            distributed.destroy_process_group()


ALONE = Ranks()


def join(device: str, environment: Mapping[str, str] = os.environ) -> Ranks:
    """The ranks that torchrun started this process among; ALONE without it. device: as [policy] device has it.

    With GPUs this rank's becomes torch's current one. Raises ConfigError for ranks on several machines, and for more
    ranks than GPUs.
    """
    if "TORCHELASTIC_RUN_ID" not in environment:
        return ALONE
    rank, count = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    if count == 1:
        return ALONE
    if int(environment["LOCAL_WORLD_SIZE"]) != count:
        raise ConfigError("torchrun: all ranks must run on one machine; use --nnodes 1")
    import torch
    from torch import distributed

    on_gpu = device != "cpu" and torch.cuda.is_available()
    if on_gpu:
        if count > torch.cuda.device_count():
            raise ConfigError(
                f"torchrun --nproc-per-node {count}: one rank takes one GPU, and torch sees {torch.cuda.device_count()}"
            )
        torch.cuda.set_device(rank)
    distributed.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=PATIENCE)
    return Ranks(rank, count)


class _named_errors:
    """What torch raises when a peer is gone, as one line."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RuntimeError):
            raise RankLost(
                f"another rank of this run has ended ({(str(error).splitlines() or [''])[0]}); "
                "--resume goes on from the last checkpoint"
            ) from error
