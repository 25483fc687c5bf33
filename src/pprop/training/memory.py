"""How much memory a training takes, how many runs are trained at once, as many as fit, and what a GPU says that runs out of it."""

from __future__ import annotations

import gc
import re
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import torch

from pprop._errors import CapacityError, Remedy
from pprop._process import memory_limit
from pprop._validate import check_int, describe
from pprop.graph.features.scaling import DenseRows
from pprop.kernels.contract import FeatureMatrix, TrainerBytes
from pprop.settings import DEVICE

# Bytes by name.
Items = dict[str, int]


@final
@dataclass(frozen=True)
class TrainingBytes:
    """What a training holds in memory, item by item, in bytes.

    Attributes
    ----------
    shared
        Held once.
    training
        Held by each run while it is in training.
    kept
        Held by each run of a chunk, in training or not.
    results
        Left behind by each run, in main memory.
    hidden, features
        Units and features of the model, for the remedy in an error.
    """

    shared: Items
    training: Items
    kept: Items
    results: Items
    hidden: int
    features: int


def training_bytes(
    trainer: TrainerBytes, shape: tuple[int, int], hidden: int, classes: int, weights: int, max_epochs: int
) -> TrainingBytes:
    """Return the bytes of a training, given those of its trainer, the shape of X and the number of weights of one run.

    The predictions of all nodes are made once, after the training, for all runs of a chunk together.

    >>> few = training_bytes(TrainerBytes({}, {}), (5, 4), hidden=8, classes=2, weights=48, max_epochs=100)
    >>> few.kept, few.results
    ({'initial weights': 192, 'best weights': 192, 'predictions': 240}, {'weights': 192, 'logits': 40, 'curves': 4800})
    """
    nodes, features = shape
    predictions = 4 * nodes * (hidden + 2 * classes)
    kept = {"initial weights": 4 * weights, "best weights": 4 * weights, "predictions": predictions}
    curves = 2 * 3 * 8 * max_epochs  # at their longest, as recorded and as handed out
    results = {"weights": 4 * weights, "logits": 4 * nodes * classes, "curves": curves}
    return TrainingBytes(trainer.shared, trainer.run, kept, results, hidden, features)


def operations_bytes(
    features: FeatureMatrix,
    floats: int,
    weights: int,
    entries: int,
    mask_words: int,
    ppr_rows: int = 0,
    step_masks: int = 0,
) -> TrainerBytes:
    """Return the bytes of `RunsTrainer`: so many activations, weights and bytes of the steps' masks of a run, and mask words an entry."""
    n, f = features.shape
    graph = 16 * entries + 48 * n
    if isinstance(features, DenseRows):
        held, masks = 4 * n * f, n * -(-f // 32)
    else:
        held, masks = 24 * features.nnz + 8 * (n + f + 2), mask_words * features.nnz
    shared = {"features": held, "graph": graph, "PPR rows": 4 * ppr_rows * n}
    run = {
        "weights": 4 * weights,
        "moments": 8 * weights,
        "gradients": 4 * weights,
        "states": 4 * floats,
        "feature masks": 4 * masks,
        "edge masks": 4 * mask_words * entries + step_masks,
    }
    return TrainerBytes(shared, run)


def split_runs(runs: slice, size: int) -> list[slice]:
    """Return consecutive runs in parts of some size; the last may be shorter.

    >>> split_runs(slice(2, 7), 3)
    [slice(2, 5, None), slice(5, 7, None)]
    """
    return [slice(begin, min(begin + size, runs.stop)) for begin in range(runs.start, runs.stop, size)]


@final
@dataclass(frozen=True)
class RunPlan:
    """What a training of R runs holds in memory, and how many runs go together.

    Attributes
    ----------
    runs, chunk, at_once
        R; runs that are trained together; runs of a chunk whose training memory exists at the same time.
    device
        Where the memory is.
    limit
        Bytes that may be used.
    bytes
        What is held.
    """

    runs: int
    chunk: int
    at_once: int
    device: str
    limit: int
    bytes: TrainingBytes

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.runs // self.chunk)

    @property
    def peak(self) -> int:
        """Bytes at most in use at the same time."""
        held = self.bytes
        fixed = sum(held.shared.values()) + _results(held.results, self.runs, self.device)
        return fixed + self.chunk * sum(held.kept.values()) + self.at_once * sum(held.training.values())

    def slices(self) -> list[slice]:
        """Return the runs of every chunk."""
        return split_runs(slice(0, self.runs), self.chunk)

    def describe(self) -> str:
        """Return the plan in a few lines for people."""
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        together = f" in {self.chunks} chunks of up to {self.chunk}" if self.chunks > 1 else ""
        head = f"plan: {runs} on {self.device}{together}; "
        head += f"at most {bytes_text(self.peak)} of the {bytes_text(self.limit)} that may be used"
        held = self.bytes
        rows = [
            ("once", held.shared, ""),
            ("run in training", held.training, f"x {self.at_once}"),
            ("run of a chunk", held.kept, f"x {self.chunk}"),
            ("run's results", held.results, f"x {self.runs}"),
        ]
        width = max(len(times) for _, _, times in rows)
        lines = [
            f"  {name:<15}  {bytes_text(sum(items.values())):>7} {times:<{width}}  {_largest(items, 3)}"
            for name, items, times in rows
        ]
        return "\n".join([head, *lines])


def plan_runs(
    held: TrainingBytes,
    runs: int,
    *,
    memory: int | None = None,
    device: str = DEVICE.default,
    at_once: int | None = None,
) -> RunPlan:
    """Choose the largest chunk of runs that fits, and make the chunks equally long.

    Parameters
    ----------
    held
        Bytes of the training.
    runs
        R.
    memory
        Bytes that may be used; None: `memory_limit` of the device.
    device
        ``"cpu"``, or a torch device with memory of its own.
    at_once
        Runs of a chunk that are in training at the same time, where runs are trained one after another by several
        threads; None: all of them.

    Returns
    -------
    RunPlan
        Its chunk is at least one run.

    Raises
    ------
    CapacityError
        If not even one run fits.
    """
    check_int(runs, "runs", "plan_runs", low=1)
    limit = memory_limit(device) if memory is None else check_int(memory, "memory", "plan_runs", low=1)
    shared, each, working = (sum(items.values()) for items in (held.shared, held.kept, held.training))
    most = runs if at_once is None else min(runs, check_int(at_once, "at_once", "plan_runs", low=1))
    free = limit - shared
    if free < each + working + _results(held.results, 1, device):
        raise CapacityError(_one_run_sentence(held, device, limit))
    free -= _results(held.results, runs, device)
    if free < each + working:
        fitting = (limit - shared - each - working) // sum(held.results.values())
        raise CapacityError(
            f"The results of {runs} runs need {bytes_text(_results(held.results, runs, device))} beside the training, and "
            f"{bytes_text(limit)} may be used on {device}. Train at most {fitting} runs in one call."
        )
    together = min(most, free // (each + working))
    chunk = together
    if together == most:  # the others of a chunk wait for their turn, or have had it
        chunk = min(runs, (free - most * working) // each)
    chunk = -(-runs // -(-runs // chunk))  # as many chunks, of equal length
    return RunPlan(runs, chunk, min(chunk, together), device, limit, held)


def _results(items: Items, runs: int, device: str) -> int:
    """Bytes of the results in the memory that is planned; those of a GPU go to main memory."""
    return runs * sum(items.values()) if device == "cpu" else 0


def _one_run_sentence(held: TrainingBytes, device: str, limit: int) -> str:
    together: Items = {}
    for table in (held.shared, held.training, held.kept, held.results if device == "cpu" else {}):
        for name, size in table.items():
            together[name] = together.get(name, 0) + size
    largest = max(together, key=lambda name: together[name])
    remedy = f"Use a smaller 'hidden' ({describe(held.hidden)} units here), fewer features ({held.features}), or"
    if largest == "curves":
        remedy = "Use a smaller 'max_epochs', or"
    if largest == "PPR rows":
        remedy = "Use APPNP, which needs no PPR rows, fewer splits in one call, or"
    return (
        f"One run needs {bytes_text(sum(together.values()))} on {device} ({_largest(together, 2)}), and {bytes_text(limit)} may be "
        f"used. {remedy} a machine with more memory."
    )


def _largest(items: Items, most: int) -> str:
    ordered = sorted((size, name) for name, size in items.items() if size)[::-1]
    text = ", ".join(f"{name} {bytes_text(size)}" for size, name in ordered[:most])
    return f"{text}, ..." if len(ordered) > most else text


def bytes_text(count: int) -> str:
    """Return bytes for people.

    >>> bytes_text(1000), bytes_text(3_000_000), bytes_text(200_000_000), bytes_text(5 * 2**30)
    ('1000 bytes', '2.9 MiB', '191 MiB', '5.0 GiB')
    """
    if count > 2**100:  # which a float may not hold
        return f"more than {bytes_text(2**100)}"
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or (unit == "bytes" and size < 10000):
            break
        size, unit = size / 1024, larger
    if unit == "bytes":
        return f"{count} bytes"
    return f"{size:.1f} {unit}" if size < 10 and unit != "KiB" else f"{size:.0f} {unit}"


@contextmanager
def explain_exhaustion(device: torch.device, runs: int, *, own_module: bool) -> Generator[None]:
    """Turn torch's error of exhausted memory in a block into CapacityError.

    What the failed training held is freed first, so that the process can go on.

    >>> with explain_exhaustion(torch.device("cuda:0"), 1, own_module=False):
    ...     raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
    Traceback (most recent call last):
        ...
    pprop._errors.CapacityError: The memory of cuda:0 ran out during the training (tried to allocate 2.00 GiB). Use a \
smaller hidden, or the CPU (device), or free what else is on the GPU.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        wanted = re.search(r"[Tt]ried to allocate [\d.]+ \w+", str(error))
        traceback.clear_frames(error.__traceback__)  # which hold the tensors of the training
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
        asked = "" if wanted is None else f" (t{wanted[0][1:]})"
        fewer = "fewer runs in one call, " if runs > 1 and not own_module else ""  # modules go one after another
        name = "block_nodes" if own_module else "hidden"
        less = f"{fewer}a smaller {{}}{', mixed_precision=True' if own_module else ''}"
        remedy = Remedy(f"Use {less}, or the CPU ({{}}), or free what else is on the GPU.", (name, "device"))
        raise CapacityError(f"The memory of {device} ran out during the training{asked}.", remedies=[remedy]) from None
