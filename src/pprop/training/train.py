"""`train`: R independent runs of a model on a graph."""

from __future__ import annotations

import numbers
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from pprop._errors import InputError
from pprop._interrupt import remember_interrupts
from pprop._validate import check_float, check_int, check_positions, describe, reject
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.graph.attributes import check_labels
from pprop.kernels import choose_backend
from pprop.kernels.random_bits import derive_seed, signed
from pprop.kernels.streams import RUNS
from pprop.models import Architecture, FeatureNetwork, Model
from pprop.training.chunks import train_chunks
from pprop.training.divergence import LARGEST_RATE, diverged, finite_logits
from pprop.training.loop import Ended, LoopResult
from pprop.training.methods import Method, method_of
from pprop.training.plan import plan_runs
from pprop.training.program import Task, node_sets
from pprop.training.progress import Progress, show_progress
from pprop.training.result import Trained
from pprop.training.stopping import Stopping

__all__ = ["run_seed", "train"]


def run_seed(split_seed: int, init_seed: int) -> int:
    """Return the seed of a run from the seed of its split and of its initialisation, a 64-bit integer.

    Runs of a study differ in both, and no two of them shall share weights or masks.

    Examples
    --------
    >>> run_seed(2144199730, 0) != run_seed(2144199730, 1)
    True
    """
    check_int(split_seed, "split_seed", "run_seed", low=0, high=2**64 - 1)
    check_int(init_seed, "init_seed", "run_seed", low=0, high=2**32 - 1)
    return derive_seed(split_seed, RUNS, init_seed)


def train(
    model: Model | Architecture,
    graph: Graph,
    splits: Split | Sequence[Split],
    *,
    seeds: int | Sequence[int] = 0,
    labels: ArrayLike | None = None,
    stopping: Stopping = Stopping(),
    learning_rate: float = 0.01,
    backend: str = "auto",
    device: str = "cpu",
    progress: bool | None = None,
    verbose: bool = False,
    on_end: Callable[[Trained, NDArray[np.int64]], None] | None = None,
) -> Trained:
    """Train a model once for every split and seed.

    The loss is the mean cross entropy of the training nodes plus penalty / 2 * |W|^2 of the first layer; Adam minimises
    it in full batches. The paper's network trains all runs as one program; a module of one's own, one run after another.
    Each run depends on its seed and its nodes alone: on the ``numba`` backend it has the same bits whatever else is in
    the batch and however many threads work.

    Parameters
    ----------
    model
        ``APPNP(...)``, ``PPNP(...)``, ``MLP(...)``, or a baseline such as ``GCN(...)``.
    graph
        With features, n nodes.
    splits
        Training, stopping and evaluation nodes: one split, or one per run.
    seeds
        One seed, or one per run, of up to 64 bits. See `run_seed`. One split with R seeds makes R runs, and so do R
        splits with one seed; each run then still has its own split.
    labels
        Class indices, shape (n,); default: the graph's. Only those of training and stopping nodes are read.
    stopping
        Patience and cap.
    learning_rate
        Adam's.
    backend
        ``"auto"``, or ``"numba"`` (CPU), ``"triton"`` (GPU), ``"reference"`` (anywhere).
    device
        ``"cpu"``, or ``"cuda"`` for a GPU. A run has the same masks on both and the same first epochs within rounding.
    progress
        Whether to draw a progress bar on standard error; None: if that is a terminal.
    verbose
        Whether to say on standard error how much memory the training takes and how many runs go together.
    on_end
        Called in this thread as runs end, with the results of just those and their positions among all, so that nothing
        of them is lost if the others never end. What it raises ends the training.

    Returns
    -------
    Trained
        The runs with their best weights, predictions, curves and costs.

    Raises
    ------
    DivergenceError
        The loss of a run, or what it predicts in the end, is no finite number. Such a run ends at once, without the others
        noticing, and `on_end` is not told of it. When all have ended, the error names these runs and has the others.

    Examples
    --------
    >>> import pprop
    >>> graph = pprop.load_dataset("citeseer")
    >>> split = pprop.paper_split(graph, seed=2144199730)
    >>> trained = train(pprop.APPNP(alpha=0.1), graph, split, stopping=Stopping(max_epochs=3))
    >>> trained.epochs, trained.predict([0, 1, 2]).shape, trained.backend
    (array([3]), (1, 3), 'numba')
    """
    begin = time.perf_counter()
    for value, kind, name in (
        (model, Model | Architecture, "model"),
        (graph, Graph, "graph"),
        (stopping, Stopping, "stopping"),
    ):
        if not isinstance(value, kind):
            wanted = "a model such as pprop.APPNP()" if name == "model" else f"a pprop.{name.title()}"
            reject(name, "train", wanted, describe(value))
    run_splits, run_seeds = _pair(splits, seeds)
    for split in set(run_splits):
        _check_nodes(split, graph.n_nodes)
    known, n_classes = _check_labels(graph, labels, run_splits)
    place = _device(device)
    if isinstance(model, Model) and not isinstance(model.predictor, FeatureNetwork) and place.type != "cpu":
        raise InputError(f"A predictor of one's own is trained on the CPU. Got device={device!r}.")
    chosen = choose_backend(backend, place.type, "train")
    task = Task(
        graph=graph,
        kernels=chosen.kernels,
        seeds=tuple(signed(seed) for seed in run_seeds),
        n_classes=n_classes,
        train=node_sets([split.train for split in run_splits], known).to(place),
        stopping=node_sets([split.stopping for split in run_splits], known).to(place),
        rule=stopping,
        rate=min(check_float(learning_rate, "learning_rate", "train", "(0, inf)"), LARGEST_RATE),
        device=place,
    )
    logits = np.zeros((len(run_seeds), graph.n_nodes, n_classes), dtype=np.float32)
    sound = np.zeros(len(run_seeds), dtype=np.bool_)

    def trained(result: LoopResult, runs: NDArray[np.int64], work: int) -> Trained:
        now = time.perf_counter()
        return Trained(
            model=model,
            graph=graph,
            splits=tuple(run_splits[int(run)] for run in runs.tolist()),
            seeds=tuple(run_seeds[int(run)] for run in runs.tolist()),
            epochs=result.epochs,
            best_epoch=result.best_epoch,
            stopping_loss=result.stopping_loss,
            stopping_accuracy=result.stopping_accuracy,
            history=result.history,
            weights=tuple(tensor.numpy() for tensor in result.weights),
            logits=logits[runs],
            backend=chosen.name,
            device=str(place),
            seconds=now - begin,
            run_epochs_per_second=work / (now - loop_begin),
        )

    with remember_interrupts():
        method = method_of(model, task)
        loop_begin = time.perf_counter()

        def ended(result: LoopResult, runs: NDArray[np.int64], work: int) -> None:
            sound[runs], found = finite_logits(result, method.logits, place)
            finite = sound[runs]
            if not finite.any():
                return
            runs = runs[finite]
            logits[runs] = found
            if on_end is not None:
                on_end(trained(result.of(finite), runs, work), runs)

        result = _train(task, method, ended, progress, verbose=verbose)
    if not sound.all():
        others = np.flatnonzero(sound)
        finished = trained(result.of(sound), others, int(result.epochs.sum())) if len(others) else None
        raise diverged(result, sound, finished)
    return trained(result, np.arange(len(run_seeds)), int(result.epochs.sum()))


def _train(task: Task, method: Method, ended: Ended, progress: bool | None, *, verbose: bool) -> LoopResult:
    """Train in as many runs at once as fit into memory."""
    sizes, runs, cap = method.sizes(), len(task.seeds), task.rule.max_epochs
    if sizes is None:
        with show_progress(progress, "Training", runs, batch=1, max_epochs=cap) as bar:
            return method.train(task, bar, ended)
    plan = plan_runs(sizes, runs, device=str(task.device), at_once=method.at_once)
    if verbose:
        sys.stderr.write(plan.describe() + "\n")
    work = 0

    def train_chunk(part: slice, bar: Progress) -> LoopResult:
        nonlocal work
        before = work

        def ended_here(result: LoopResult, which: NDArray[np.int64], epochs: int) -> None:
            ended(result, which + part.start, before + epochs)

        result = method.train(task.part(part), bar, ended_here)
        work += int(result.epochs.sum())
        return result

    refill = plan.at_once < plan.chunk
    batch = plan.at_once if refill else plan.chunk
    with show_progress(progress, "Training", runs, batch=batch, max_epochs=cap, refill=refill) as bar:
        return train_chunks(plan, train_chunk, bar)


def _device(device: object) -> torch.device:
    try:
        place = torch.device(device)  # pyright: ignore[reportArgumentType]  what is no device is refused below
    except (RuntimeError, TypeError):
        reject("device", "train", "a torch device such as 'cpu' or 'cuda'", describe(device))
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device={str(place)!r} needs a CUDA GPU, and torch sees none here. Use device='cpu'.")
    if place.type not in ("cpu", "cuda"):
        reject("device", "train", "'cpu' or 'cuda'", describe(device))
    if place.type == "cpu":
        return place
    current = torch.device("cuda", torch.cuda.current_device())
    if place.index not in (None, current.index):
        raise InputError(
            f"Kernels run on torch's current GPU, {str(current)!r}. To train on {str(place)!r}, call "
            f"torch.cuda.set_device({place.index}) first, or set CUDA_VISIBLE_DEVICES."
        )
    return current


def _pair(splits: object, seeds: object) -> tuple[tuple[Split, ...], tuple[int, ...]]:
    """Return one split and one seed per run."""
    run_splits = (splits,) if isinstance(splits, Split) else _elements(splits)
    if not run_splits or not all(isinstance(split, Split) for split in run_splits):
        reject("splits", "train", "a Split or a sequence of at least one", describe(splits))
    run_seeds = (seeds,) if isinstance(seeds, numbers.Number) else _elements(seeds)
    if not run_seeds:
        reject("seeds", "train", "an integer or a sequence of at least one", describe(seeds))
    if len(run_splits) == 1:
        run_splits = run_splits * len(run_seeds)
    if len(run_seeds) == 1:
        run_seeds = run_seeds * len(run_splits)
    if len(run_seeds) != len(run_splits):
        reject("seeds", "train", f"one seed, or {len(run_splits)} of them, one per split", f"{len(run_seeds)} seeds")
    checked = tuple(check_int(seed, "seeds", "train", low=-(2**63), high=2**64 - 1) for seed in run_seeds)
    return cast("tuple[Split, ...]", run_splits), checked


def _elements(value: object) -> tuple[object, ...]:
    return tuple(cast("Iterable[object]", value)) if isinstance(value, Iterable) else ()


def _check_labels(graph: Graph, labels: ArrayLike | None, splits: tuple[Split, ...]) -> tuple[NDArray[np.int64], int]:
    """Return the labels with those of all other nodes hidden, and the number of classes."""
    n = graph.n_nodes
    if labels is None and graph.labels is None:
        raise InputError("train needs labels, and this graph has none. Pass labels=..., one class index per node.")
    given = graph.labels if labels is None else check_labels(labels, n, graph.class_names, "train")
    assert given is not None
    known = np.full(n, -1, dtype=np.int64)
    for split in splits:
        for name, nodes in (("train", split.train), ("stopping", split.stopping)):
            if len(nodes) == 0:
                reject(f"splits.{name}", "train", "at least one node", "none")
            if given[nodes].min() < 0:
                bad = nodes[given[nodes] < 0][0]
                reject("labels", "train", f"known (0 or more) for every {name} node", f"{given[bad]} for node {bad}")
            known[nodes] = given[nodes]
    return known, max(graph.n_classes, int(known.max()) + 1)


def _check_nodes(split: Split, n: int) -> None:
    for name in ("train", "stopping", "evaluation"):
        check_positions(getattr(split, name), f"splits.{name}", "train", n_nodes=n)
