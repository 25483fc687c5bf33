"""`train`: R independent runs of a model on a graph."""

from __future__ import annotations

import numbers
import sys
import time
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from pprop._errors import InputError
from pprop._interrupt import remember_interrupts
from pprop._validate import check_float, check_int, check_positions, describe, reject
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.graph._attributes import check_labels
from pprop.kernels import Kernels, choose_backend
from pprop.kernels.random_bits import derive_seed, signed
from pprop.kernels.streams import RUNS
from pprop.models import FeatureNetwork, Model
from pprop.models.inference import predict_alone, propagate_predictions
from pprop.models.network import normalized_features
from pprop.models.readout import MapReadout, PlainReadout, Readout, RowReadout
from pprop.propagation import Exact, PPROperator
from pprop.training.chunks import train_chunks
from pprop.training.loop import LoopResult
from pprop.training.module_program import train_modules
from pprop.training.plan import plan_runs
from pprop.training.program import NodeSet, Task, node_sets
from pprop.training.progress import Progress, show_progress
from pprop.training.result import Trained
from pprop.training.sizes import Sizes
from pprop.training.stopping import Stopping
from pprop.training.train_runs import train_runs

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
    model: Model,
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
) -> Trained:
    """Train a model once for every split and seed.

    The loss is the mean cross entropy of the training nodes plus penalty / 2 * |W|^2 of the first layer; Adam minimises
    it in full batches. The paper's network trains all runs as one program; a module of one's own, one run after another.
    Each run depends on its seed and its nodes alone: on the ``numba`` backend it has the same bits whatever else is in
    the batch and however many threads work.

    Parameters
    ----------
    model
        ``APPNP(...)``, ``PPNP(...)`` or ``MLP(...)``.
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

    Returns
    -------
    Trained
        The runs with their best weights, predictions, curves and costs.

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
    for value, kind, name in ((model, Model, "model"), (graph, Graph, "graph"), (stopping, Stopping, "stopping")):
        if not isinstance(value, kind):
            reject(name, "train", f"a pprop.{kind.__name__}", describe(value))
    run_splits, run_seeds = _pair(splits, seeds)
    for split in set(run_splits):
        _check_nodes(split, graph.n_nodes)
    known, n_classes = _check_labels(graph, labels, run_splits)
    place = _device(device)
    chosen = choose_backend(backend, place.type, "train")
    train_set = node_sets([split.train for split in run_splits], known).to(place)
    stopping_set = node_sets([split.stopping for split in run_splits], known).to(place)
    operator = None if model.propagation is None else model.propagation.operator(graph)
    task = Task(
        model=model,
        graph=graph,
        kernels=chosen.kernels,
        readout=_readout(model, operator, graph, chosen.kernels, train_set, stopping_set, place),
        seeds=tuple(signed(seed) for seed in run_seeds),
        n_classes=n_classes,
        train=train_set,
        stopping=stopping_set,
        rule=stopping,
        rate=check_float(learning_rate, "learning_rate", "train", "(0, inf)"),
        device=place,
    )
    loop_begin = time.perf_counter()
    if isinstance(model.predictor, FeatureNetwork):
        with remember_interrupts():
            result, logits = _train_network(task, model.predictor, operator, progress, verbose=verbose)
    else:
        if place.type != "cpu":
            raise InputError(f"A predictor of one's own is trained on the CPU. Got device={device!r}.")
        with show_progress(progress, "Training", len(run_seeds), batch=1, max_epochs=stopping.max_epochs) as bar:
            result = train_modules(task, model.predictor, bar)
        logits = _logits(task, operator, result)
    loop_seconds = time.perf_counter() - loop_begin
    return Trained(
        model=model,
        graph=graph,
        splits=run_splits,
        seeds=run_seeds,
        epochs=result.epochs,
        best_epoch=result.best_epoch,
        stopping_loss=result.stopping_loss,
        stopping_accuracy=result.stopping_accuracy,
        history=result.history,
        weights=tuple(tensor.numpy() for tensor in result.weights),
        logits=logits.numpy(),
        backend=chosen.name,
        device=str(place),
        seconds=time.perf_counter() - begin,
        run_epochs_per_second=float(result.epochs.sum()) / loop_seconds,
    )


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


def _train_network(
    task: Task, predictor: FeatureNetwork, operator: PPROperator | None, progress: bool | None, *, verbose: bool
) -> tuple[LoopResult, torch.Tensor]:
    """Train the paper's network in as many runs at once as fit into memory; return the logits of all nodes, too."""
    fused = len(predictor.hidden) == 1
    at_once = task.kernels.runs_at_once(len(task.seeds)) if fused else None
    sizes = _sizes(task, predictor, operator)
    plan = plan_runs(sizes, len(task.seeds), device=str(task.device), at_once=at_once)
    if verbose:
        sys.stderr.write(plan.describe() + "\n")
    logits: list[torch.Tensor] = []

    def train_chunk(runs: slice, bar: Progress) -> LoopResult:
        part = task.part(runs)
        result = train_runs(part, predictor, operator, bar)
        logits.append(_logits(part, operator, result))
        return result

    refill, cap = plan.at_once < plan.chunk, task.rule.max_epochs
    batch = plan.at_once if refill else plan.chunk
    with show_progress(progress, "Training", plan.runs, batch=batch, max_epochs=cap, refill=refill) as bar:
        return train_chunks(plan, train_chunk, bar), torch.cat(logits)


def _logits(task: Task, operator: PPROperator | None, result: LoopResult) -> torch.Tensor:
    """Return the logits of all nodes with the best weights, on the CPU."""
    weights = [tensor.to(task.device) for tensor in result.weights]
    predictions = predict_alone(task.model, task.graph, weights, task.kernels)
    return propagate_predictions(task.model, operator, predictions, task.kernels).cpu()


def _sizes(task: Task, predictor: FeatureNetwork, operator: PPROperator | None) -> Sizes:
    features = normalized_features(task.graph)
    steps = operator is not None and not isinstance(task.readout, RowReadout)
    solver = None if task.model.propagation is None else task.model.propagation.solver
    return Sizes(
        nodes=task.graph.n_nodes,
        features=features.shape[1],
        hidden=sum(predictor.hidden),
        classes=task.n_classes,
        feature_entries=features.nnz,
        entries=len(operator.transition.indices) if operator is not None and steps else 0,
        steps=solver.matrix_products if solver is not None else 0,
        ppr_rows=len(task.readout.nodes) if isinstance(task.readout, RowReadout) else 0,
        weighted=operator is not None and operator.transition.weights is not None,
        dropout=predictor.dropout > 0 or task.matrix_dropout > 0,
        train_nodes=task.train.nodes.shape[1],
        stopping_nodes=task.stopping.nodes.shape[1],
        max_epochs=task.rule.max_epochs,
    )


def _readout(
    model: Model,
    operator: PPROperator | None,
    graph: Graph,
    kernels: Kernels,
    train_set: NodeSet,
    stopping_set: NodeSet,
    place: torch.device,
) -> Readout:
    if operator is None or model.propagation is None:
        return PlainReadout(graph.n_nodes)
    if isinstance(model.propagation.solver, Exact):
        needed = torch.cat([train_set.nodes.flatten(), stopping_set.nodes.flatten()])
        return RowReadout(operator, needed.cpu().numpy(), kernels, device=place)
    return MapReadout(model.propagation.solver.bind(operator, kernels), graph.n_nodes)


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
