"""How many runs are trained at once: as many as fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from pprop._errors import CapacityError
from pprop._memory import usable_memory
from pprop._validate import check_int, describe
from pprop.training.sizes import Items, Sizes, kept_items, result_items, shared_items, training_items

__all__ = ["Plan", "memory_limit", "plan_runs"]

CPU_SHARE = 0.6
"""Of the usable memory that a training may take: the graph as loaded, other programs and the file cache need some."""
GPU_SHARE = 0.7
"""Of the GPU's free memory that a training may use: compiled kernels, captured graphs and torch's allocator need some,
and the table of sizes is some 10 to 20 % too low for graphs whose rows are short."""


@final
@dataclass(frozen=True)
class Plan:
    """What a training of R runs holds in memory, and how many runs go together. All numbers are bytes.

    Attributes
    ----------
    runs, chunk, at_once
        R; runs that are trained together; runs of a chunk whose training memory exists at the same time.
    device
        Where the memory is.
    limit
        What may be used.
    shared
        Held once.
    training
        Held by each run while it is in training.
    kept
        Held by each run of a chunk.
    results
        Left behind by each run, in main memory.

    Examples
    --------
    >>> sizes = Sizes(2810, 2879, 64, 7, feature_entries=142286, entries=18772)
    >>> plan = plan_runs(sizes, 100, memory=2 * 2**30)
    >>> plan.chunk, plan.chunks, list(plan.slices())[-1]
    (100, 1, slice(0, 100, None))
    """

    runs: int
    chunk: int
    at_once: int
    device: str
    limit: int
    shared: Items
    training: Items
    kept: Items
    results: Items

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.runs // self.chunk)

    @property
    def per_run(self) -> int:
        """Bytes of one run in training."""
        return sum(self.training.values()) + sum(self.kept.values())

    @property
    def peak(self) -> int:
        """Bytes at most in use at the same time."""
        return self._fixed + self.chunk * sum(self.kept.values()) + self.at_once * sum(self.training.values())

    @property
    def _fixed(self) -> int:
        return sum(self.shared.values()) + _results(self.results, self.runs, self.device)

    def slices(self) -> Iterator[slice]:
        """Yield the runs of every chunk."""
        for begin in range(0, self.runs, self.chunk):
            yield slice(begin, min(begin + self.chunk, self.runs))

    def describe(self) -> str:
        """Return the plan in a few lines for people.

        Examples
        --------
        >>> sizes = Sizes(2810, 2879, 64, 7, feature_entries=142286, entries=18772)
        >>> print(plan_runs(sizes, 100, memory=320 * 2**20, at_once=2).describe())
        plan: 100 runs on cpu in 2 chunks of up to 50; at most 259 MiB of the 320 MiB that may be used
          once             3.7 MiB        features 3.3 MiB, graph 425 KiB
          run in training  9.6 MiB x 2    feature masks 4.3 MiB, moments 1.4 MiB, hidden layer 1.4 MiB, ...
          run of a chunk   2.2 MiB x 50   predictions 856 KiB, initial weights 722 KiB, best weights 722 KiB
          run's results    1.2 MiB x 100  weights 722 KiB, curves 469 KiB, logits 77 KiB
        """
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        together = f" in {self.chunks} chunks of up to {self.chunk}" if self.chunks > 1 else ""
        head = f"plan: {runs} on {self.device}{together}; "
        head += f"at most {_size(self.peak)} of the {_size(self.limit)} that may be used"
        rows = [
            ("once", self.shared, ""),
            ("run in training", self.training, f"x {self.at_once}"),
            ("run of a chunk", self.kept, f"x {self.chunk}"),
            ("run's results", self.results, f"x {self.runs}"),
        ]
        width = max(len(times) for _, _, times in rows)
        lines = [
            f"  {name:<15}  {_size(sum(items.values())):>7} {times:<{width}}  {_largest(items, 3)}"
            for name, items, times in rows
        ]
        return "\n".join([head, *lines])


def plan_runs(
    sizes: Sizes, runs: int, *, memory: int | None = None, device: str = "cpu", at_once: int | None = None
) -> Plan:
    """Choose the largest chunk of runs that fits, and make the chunks equally long.

    Parameters
    ----------
    sizes
        Of the graph and the model.
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
    Plan
        Its chunk is at least one run.

    Raises
    ------
    CapacityError
        If not even one run fits.

    Examples
    --------
    >>> sizes = Sizes(2810, 2879, 64, 7, feature_entries=142286, entries=18772)
    >>> plan_runs(sizes, 100, memory=2**30).chunk
    50
    >>> plan_runs(sizes, 1, memory=2**20)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    pprop._errors.CapacityError: One run needs 17 MiB on cpu (feature masks 4.3 MiB, features 3.3 MiB, ...), and 1.0 MiB may be used. ...
    """
    check_int(runs, "runs", "plan_runs", low=1)
    limit = memory_limit(device) if memory is None else check_int(memory, "memory", "plan_runs", low=1)
    shared, training = shared_items(sizes, device), training_items(sizes, device)
    kept, results = kept_items(sizes, device), result_items(sizes)
    each, working = sum(kept.values()), sum(training.values())
    most = runs if at_once is None else min(runs, check_int(at_once, "at_once", "plan_runs", low=1))
    free = limit - sum(shared.values())
    if free < each + working + _results(results, 1, device):
        tables = (shared, training, kept, results if device == "cpu" else {})
        raise CapacityError(_one_run_sentence(sizes, device, limit, tables))
    free -= _results(results, runs, device)
    if free < each + working:
        fitting = (limit - sum(shared.values()) - each - working) // sum(results.values())
        raise CapacityError(
            f"The results of {runs} runs need {_size(_results(results, runs, device))} beside the training, and "
            f"{_size(limit)} may be used on {device}. Train at most {fitting} runs in one call."
        )
    together = min(most, free // (each + working))
    chunk = together
    if together == most:  # the others of a chunk wait for their turn, or have had it
        chunk = min(runs, (free - most * working) // each)
    chunk = -(-runs // -(-runs // chunk))  # as many chunks, of equal length
    return Plan(runs, chunk, min(chunk, together), device, limit, shared, training, kept, results)


def memory_limit(device: str) -> int:
    """Return how many bytes a training may use: a share of the usable memory, or of the GPU's free memory.

    Where the system does not tell its memory, there is no limit.

    >>> memory_limit("cpu") > 0
    True
    """
    if device == "cpu":
        memory = usable_memory()
        return 2**62 if memory is None else int(CPU_SHARE * memory)
    import torch

    if torch.device(device).type != "cuda":
        return 2**62
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own, waiting to be used
    return int(GPU_SHARE * free)


def _results(items: Items, runs: int, device: str) -> int:
    """Bytes of the results in the memory that is planned; those of a GPU go to main memory."""
    return runs * sum(items.values()) if device == "cpu" else 0


def _one_run_sentence(sizes: Sizes, device: str, limit: int, tables: tuple[Items, ...]) -> str:
    together: Items = {}
    for table in tables:
        for name, size in table.items():
            together[name] = together.get(name, 0) + size
    largest = max(together, key=lambda name: together[name])
    remedy = f"Use a smaller 'hidden' ({describe(sizes.hidden)} units here), fewer features ({sizes.features}), or"
    if largest == "curves":
        remedy = "Use a smaller 'max_epochs', or"
    if sizes.ppr_rows and largest == "PPR rows":
        remedy = "Use APPNP, which needs no PPR rows, fewer splits in one call, or"
    return (
        f"One run needs {_size(sum(together.values()))} on {device} ({_largest(together, 2)}), and {_size(limit)} may be "
        f"used. {remedy} a machine with more memory."
    )


def _largest(items: Items, most: int) -> str:
    ordered = sorted((size, name) for name, size in items.items() if size)[::-1]
    text = ", ".join(f"{name} {_size(size)}" for size, name in ordered[:most])
    return f"{text}, ..." if len(ordered) > most else text


def _size(count: int) -> str:
    """Return bytes for people.

    >>> _size(1000), _size(3_000_000), _size(200_000_000), _size(5 * 2**30)
    ('1000 bytes', '2.9 MiB', '191 MiB', '5.0 GiB')
    """
    if count > 2**100:  # which a float may not hold
        return f"more than {_size(2**100)}"
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or (unit == "bytes" and size < 10000):
            break
        size, unit = size / 1024, larger
    if unit == "bytes":
        return f"{count} bytes"
    return f"{size:.1f} {unit}" if size < 10 and unit != "KiB" else f"{size:.0f} {unit}"
