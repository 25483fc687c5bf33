"""The planner's table for the CPU against the arrays that the fused trainer really holds."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numba
import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop import Graph, Model, Split
from pprop.kernels.contract import TrainerSpec
from pprop.kernels.numba_cpu.fused_readout import Entries, SharedRows, SharedSteps
from pprop.kernels.numba_cpu.team import Arena
from pprop.kernels.numba_cpu.trainer import NumbaTrainer, _Run, _Shared
from pprop.kernels.tensors import TensorTrainer
from pprop.training.memory import RunPlan, plan_runs

# widths that fill their blocks, that do not, and that take several
MODELS = {
    "APPNP": (pprop.APPNP(), 6),
    "APPNP, narrow": (pprop.APPNP(hidden=10, steps=2), 3),
    "APPNP, wide": (pprop.APPNP(hidden=100, steps=40), 20),
    "APPNP, one step": (pprop.APPNP(hidden=20, steps=1), 5),
    "APPNP, no dropout": (pprop.APPNP(dropout=0.0), 9),
    "PPNP": (pprop.PPNP(hidden=20), 17),
    "MLP": (pprop.MLP(hidden=65), 4),
}


# by name: the function `train` hides the module of that name
TRAIN = importlib.import_module("pprop.training.train")


SHARED = (_Shared, SharedSteps, SharedRows, Entries)


class Ready(Exception):  # noqa: N818  no error: all memory is taken, and the training need not begin
    """Carries the trainer out of `train`."""


def make_graph(classes: int, *, weighted: bool) -> tuple[Graph, Split]:
    """1500 nodes, 600 sparse features, a directed weighted or an undirected graph of some 9000 entries."""
    rng = np.random.default_rng(classes)
    entries: Any = sparse.random_array((1500, 1500), density=0.002, rng=rng, format="csr")
    features = sparse.random_array((1500, 600), density=0.02, rng=rng, format="csr", dtype=np.float32)
    adjacency = entries if weighted else ((entries + entries.T) > 0).astype(float)
    graph = Graph.from_scipy(adjacency, directed=weighted, features=features, labels=np.arange(1500) % classes)
    order = rng.permutation(1500)
    return graph, Split(train=order[:100], stopping=order[100:400], evaluation=order[400:])


def prepare(model: Model, graph: Graph, split: Split, monkeypatch: pytest.MonkeyPatch) -> tuple[NumbaTrainer, RunPlan]:
    """Call `train` up to the first epoch; return the trainer and the plan that was made for it."""
    plans: list[RunPlan] = []

    def keep_plan(*arguments: Any, **options: Any) -> RunPlan:
        plans.append(plan_runs(*arguments, **options))
        return plans[0]

    def stop_here(trainer: Any, *others: object) -> NoReturn:
        raise Ready(trainer)

    monkeypatch.setattr(TRAIN, "plan_runs", keep_plan)
    monkeypatch.setattr("pprop.training.loop.run_loop", stop_here)
    monkeypatch.setattr(_Run, "_forward", lambda self, thread: None)  # nothing to compile
    before = numba.get_num_threads()
    numba.set_num_threads(1)  # every thread has a little room of its own, which the table leaves out
    try:
        with pytest.raises(Ready) as caught:
            pprop.train(model, graph, split, backend="numba", progress=False)
    finally:
        numba.set_num_threads(before)
    (trainer,) = caught.value.args
    assert isinstance(trainer, TensorTrainer)
    assert isinstance(trainer.own, NumbaTrainer)
    return trainer.own, plans[0]


def bytes_of(thing: object, but: tuple[type, ...] = ()) -> int:
    """Return the bytes of all arrays that are reached from an object; those in several arrays count once."""
    spans: list[tuple[int, int]] = []
    seen: set[int] = set()
    todo = [thing]
    while todo:
        item = todo.pop()
        if id(item) in seen or isinstance(item, (*but, Arena, TrainerSpec)):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            assert item.flags.c_contiguous
            spans.append((item.ctypes.data, item.ctypes.data + item.nbytes))
        elif isinstance(item, Mapping):
            todo += item.values()
        elif isinstance(item, list | tuple):
            todo += item
        elif type(item).__module__.startswith("pprop."):
            todo += vars(item).values()
    count = reached = 0
    for begin, end in sorted(spans):
        count += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return count


def total(items: Iterable[int]) -> int:
    return sum(items)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_the_table_agrees_with_the_arrays_of_a_run_within_five_percent(kind, weighted, monkeypatch):
    model, classes = MODELS[kind]
    trainer, plan = prepare(model, *make_graph(classes, weighted=weighted), monkeypatch)
    (run,) = trainer._runs
    assert isinstance(run, _Run)
    held = bytes_of(run, but=SHARED)
    assert held > 10**6
    assert total(plan.bytes.training.values()) == pytest.approx(held, rel=0.05)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_the_table_agrees_with_what_all_runs_share_within_five_percent(kind, weighted, monkeypatch):
    model, classes = MODELS[kind]
    trainer, plan = prepare(model, *make_graph(classes, weighted=weighted), monkeypatch)
    assert len(trainer._runs) == 1  # the factors of an alpha are made with its first run
    assert total(plan.bytes.shared.values()) == pytest.approx(bytes_of(trainer._shared), rel=0.05)


def test_the_table_agrees_on_a_graph_of_the_paper(monkeypatch):
    graph = pprop.load_dataset("citeseer")
    trainer, plan = prepare(pprop.APPNP(), graph, pprop.paper_split(graph, seed=pprop.TEST_SEEDS[0]), monkeypatch)
    assert total(plan.bytes.training.values()) == pytest.approx(bytes_of(trainer._runs, SHARED), rel=0.05)
    assert total(plan.bytes.shared.values()) == pytest.approx(bytes_of(trainer._shared), rel=0.05)
