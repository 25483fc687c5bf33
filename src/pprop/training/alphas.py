"""`train_alphas`: one model with many teleport probabilities, all runs together."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from pprop._interrupt import remember_interrupts
from pprop._validate import check_float, check_sequence, describe, reject
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.kernels import choose_backend
from pprop.kernels.random_bits import signed
from pprop.models import FeatureNetwork, Model
from pprop.models.inference import Inference
from pprop.propagation import PowerIteration
from pprop.training.alpha_trainers import fuses, make_alpha_trainer
from pprop.training.chunks import train_chunks
from pprop.training.divergence import LARGEST_RATE, diverged, finite_logits
from pprop.training.loop import LoopResult, nobody
from pprop.training.methods import NetworkMethod
from pprop.training.plan import memory_limit, plan_runs
from pprop.training.program import Task, node_sets
from pprop.training.progress import Progress, show_progress
from pprop.training.propagated import bind_propagation
from pprop.training.result import Trained
from pprop.training.sizes import shared_items
from pprop.training.stopping import Stopping
from pprop.training.train import (
    _check_labels,  # pyright: ignore[reportPrivateUsage]  the same checks, in the same words
    _check_nodes,  # pyright: ignore[reportPrivateUsage]
    _device,  # pyright: ignore[reportPrivateUsage]
    _pair,  # pyright: ignore[reportPrivateUsage]
    train,
)
from pprop.training.train_runs import drive

__all__ = ["check_alphas", "train_alphas"]

FUNCTION = "train_alphas"


def check_alphas(alphas: object, function: str) -> tuple[float, ...]:
    """Return teleport probabilities in [0, 1], at least one, no two the same.

    >>> check_alphas([0.1, 1], "example")
    (0.1, 1.0)
    """
    expected = "a sequence of floats in [0, 1], at least one and no two the same"
    given = check_sequence(alphas, "alphas", function, expected)
    numbers = tuple(check_float(alpha, "alphas", function, "[0, 1]") for alpha in given)
    if not numbers or len(set(numbers)) < len(numbers):
        reject("alphas", function, expected, describe(alphas))
    return numbers


def train_alphas(
    model: Model,
    graph: Graph,
    splits: Split | Sequence[Split],
    *,
    alphas: Sequence[float],
    seeds: int | Sequence[int] = 0,
    labels: ArrayLike | None = None,
    stopping: Stopping = Stopping(),
    learning_rate: float = 0.01,
    backend: str = "auto",
    device: str = "cpu",
    progress: bool | None = None,
    verbose: bool = False,
) -> tuple[Trained, ...]:
    """Train a model with each of some teleport probabilities: what `train` does for one after another, all together.

    A run has the weights to begin with, the masks and the nodes that `train` gives it, whatever its alpha. On the
    ``numba`` backend with a network of one hidden layer it has the same bits: every run is trained by one thread, and
    the threads are shared out over the runs of all alphas. Elsewhere all runs are one program (on a GPU one captured
    epoch), in which the numbers agree within rounding. A predictor of one's own is trained run by run.

    Parameters
    ----------
    model
        ``APPNP(...)``; its own alpha plays no part.
    alphas
        Teleport probabilities in [0, 1].
    graph, splits, seeds, labels, stopping, learning_rate, backend, device, progress, verbose
        As for `train`; every alpha gets all splits and seeds.

    Returns
    -------
    One `Trained` per alpha, in their order. ``seconds`` and ``run_epochs_per_second`` are those of all together.

    Raises
    ------
    DivergenceError
        As in `train`. Runs are counted alpha by alpha; what is finished has the alphas that have a run left.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5), labels=[0, 0, 0, 1, 1])
    >>> split = Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> few = train_alphas(pprop.APPNP(hidden=4), graph, split, alphas=[0.1, 0.5], stopping=Stopping(max_epochs=3))
    >>> [one.model.propagation.alpha for one in few], few[1].logits.shape
    ([0.1, 0.5], (1, 5, 2))
    """
    begin = time.perf_counter()
    given = check_alphas(alphas, FUNCTION)
    settings = model.propagation if isinstance(model, Model) else None
    if settings is None or not isinstance(settings.solver, PowerIteration):
        reject("model", FUNCTION, "a model with power steps such as pprop.APPNP()", describe(model))
    steps = settings.solver.steps
    models = [replace(model, propagation=replace(settings, alpha=alpha)) for alpha in given]
    if not isinstance(model.predictor, FeatureNetwork):
        return tuple(
            train(
                one, graph, splits, seeds=seeds, labels=labels, stopping=stopping, learning_rate=learning_rate,
                backend=backend, device=device, progress=progress, verbose=verbose,
            )
            for one in models
        )  # fmt: skip
    for value, kind, name in ((graph, Graph, "graph"), (stopping, Stopping, "stopping")):
        if not isinstance(value, kind):
            reject(name, FUNCTION, f"a pprop.{kind.__name__}", describe(value))
    run_splits, run_seeds = _pair(splits, seeds)
    for split in set(run_splits):
        _check_nodes(split, graph.n_nodes)
    known, n_classes = _check_labels(graph, labels, run_splits)
    place = _device(device)
    chosen = choose_backend(backend, place.type, FUNCTION)
    each = len(run_seeds)
    task = Task(
        graph=graph,
        kernels=chosen.kernels,
        seeds=tuple(signed(seed) for seed in run_seeds) * len(given),
        n_classes=n_classes,
        train=node_sets([split.train for split in run_splits] * len(given), known).to(place),
        stopping=node_sets([split.stopping for split in run_splits] * len(given), known).to(place),
        rule=stopping,
        rate=min(check_float(learning_rate, "learning_rate", FUNCTION, "(0, inf)"), LARGEST_RATE),
        device=place,
    )
    with remember_interrupts():
        loop_begin = time.perf_counter()
        alpha_of_run = [alpha for alpha in given for _ in run_seeds]
        result = _train(task, model, steps, alpha_of_run, progress, verbose=verbose)
        rate = int(result.epochs.sum()) / (time.perf_counter() - loop_begin)
        made: list[Trained] = []
        sound = np.zeros((len(given), each), dtype=np.bool_)
        for k, one in enumerate(models):
            part = result.of(slice(k * each, (k + 1) * each))
            sound[k], logits = finite_logits(part, Inference(one, graph, chosen.kernels).logits, place)
            if not sound[k].any():
                continue
            part = part.of(sound[k])
            made.append(
                Trained(
                    model=one,
                    graph=graph,
                    splits=tuple(itertools.compress(run_splits, sound[k])),
                    seeds=tuple(itertools.compress(run_seeds, sound[k])),
                    epochs=part.epochs,
                    best_epoch=part.best_epoch,
                    stopping_loss=part.stopping_loss,
                    stopping_accuracy=part.stopping_accuracy,
                    history=part.history,
                    weights=tuple(tensor.numpy() for tensor in part.weights),
                    logits=logits,
                    backend=chosen.name,
                    device=str(place),
                    seconds=0.0,
                    run_epochs_per_second=rate,
                )
            )
    seconds = time.perf_counter() - begin
    finished = tuple(replace(one, seconds=seconds) for one in made)
    if not sound.all():
        names = [f"run {run} with alpha {alpha:g}" for alpha in given for run in range(each)]
        raise diverged(result, sound.ravel(), finished or None, names)
    return finished


def _train(
    task: Task, model: Model, steps: int, alphas: Sequence[float], progress: bool | None, *, verbose: bool
) -> LoopResult:
    """Train run r with alphas[r], as many runs at once as fit into memory."""
    predictor, runs = model.predictor, len(task.seeds)
    assert isinstance(predictor, FeatureNetwork)
    propagated = bind_propagation(model, task)
    assert propagated.operator is not None
    operator = propagated.operator
    method = NetworkMethod(propagated, predictor, task)
    sizes, fused, device = method.sizes(), fuses(task, predictor), str(task.device)
    if fused:  # each alpha has a copy of its own of what its runs read
        others = len(set(alphas)) - 1
        memory = max(0, memory_limit(device) - others * sum(shared_items(sizes, device).values()))
        plan = plan_runs(sizes, runs, memory=memory, device=device, at_once=method.at_once)
    else:
        units = 4 * sum(predictor.hidden) + 6 * task.n_classes
        plan = plan_runs(replace(sizes, units=units, weights=sizes.weight_count), runs, device=device)
    if verbose:
        sys.stderr.write(plan.describe() + "\n")

    def train_chunk(part: slice, bar: Progress) -> LoopResult:
        here = task.part(part)
        trainer = make_alpha_trainer(here, model, operator, steps, alphas[part], fused=fused)
        return drive(trainer, here, bar, nobody)

    refill = plan.at_once < plan.chunk
    batch, cap = plan.at_once if refill else plan.chunk, task.rule.max_epochs
    with show_progress(progress, "Training", runs, batch=batch, max_epochs=cap, refill=refill) as bar:
        return train_chunks(plan, train_chunk, bar)
