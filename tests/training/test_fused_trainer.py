"""The fused trainer of a backend computes what the program of single operations computes on the reference backend."""

from __future__ import annotations

import gc
import os

import numba
import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.sparse import csgraph

import pprop
from pprop import Graph
from pprop.kernels import BACKENDS
from pprop.kernels.contract import Trainer
from pprop.kernels.numba_cpu.fused_readout import REACH, hops
from pprop.models.inference import bind_propagation
from pprop.training.epoch import RunsTrainer
from pprop.training.loop import run_captured, run_loop
from pprop.training.task import Task, node_sets
from pprop.training.trainers import network_trainer

pytestmark = pytest.mark.slow

MODELS = {"APPNP": pprop.APPNP, "PPNP": pprop.PPNP, "MLP": pprop.MLP}


def make_graph(n: int = 300, features: int = 37, *, directed: bool = False, weighted: bool = False) -> Graph:
    rng = np.random.default_rng(7)
    dense = (rng.random((n, n)) < 4 / n) * (rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0)
    dense[:, 3] = dense[3, :] = 1.0  # a hub
    dense[5, :] = dense[:, 5] = 0.0  # isolated
    A = dense if directed else np.triu(dense) + np.triu(dense, 1).T
    X = rng.random((n, features)) * (rng.random((n, features)) < 0.2)
    X[11] = 0.0
    X[:, 2] = 0.0
    return Graph.from_scipy(sparse.csr_array(A), features=sparse.csr_array(X), directed=directed)


def trainer_of(
    backend: str, graph: Graph, model: pprop.Model, classes: int, runs: int, *, fused: bool
) -> tuple[Trainer, Task]:
    """A trainer of several runs whose node sets have different sizes."""
    n, rng = graph.n_nodes, np.random.default_rng(3)
    labels = rng.integers(0, classes, n)
    orders = [rng.permutation(n) for _ in range(runs)]
    train = node_sets([order[: 20 - run] for run, order in enumerate(orders)], labels)
    stopping = node_sets([order[20 : 60 + run] for run, order in enumerate(orders)], labels)
    kernels = next(b for b in BACKENDS if b.name == backend).kernels
    seeds = tuple(range(11, 11 + runs))
    task = Task(graph, kernels, seeds, classes, train, stopping, pprop.Stopping(), 0.01, torch.device("cpu"))
    needed = torch.cat([train.nodes.flatten(), stopping.nodes.flatten()])
    bound = bind_propagation(model, graph, kernels, needed)
    return network_trainer(task, bound, fused=fused), task


@pytest.mark.parametrize(
    ("kind", "hidden", "classes", "directed", "weighted", "options"),
    [
        ("APPNP", 64, 7, False, False, {"steps": 10}),
        ("APPNP", 5, 3, True, True, {"steps": 3, "dropout": 0.3, "normalization": "row"}),
        ("APPNP", 100, 18, False, True, {"steps": 45, "propagation_dropout": 0.1}),
        ("APPNP", 16, 3, True, False, {"steps": 1, "dropout": 0.0, "propagation_dropout": 0.5}),
        ("APPNP", 16, 3, False, False, {"steps": 0}),
        ("APPNP", 16, 24, True, True, {"steps": 4}),
        ("APPNP", 16, 40, False, False, {"steps": 4, "dropout": 0.0, "propagation_dropout": 0.3}),
        ("PPNP", 64, 7, False, False, {}),
        ("PPNP", 100, 18, True, True, {"dropout": 0.3, "propagation_dropout": 0.0}),
        ("MLP", 100, 18, False, False, {"dropout": 0.6}),
        ("MLP", 16, 3, False, False, {"dropout": 0.0, "penalty": 0.0}),
    ],
)
def test_fused_training_equals_the_program_of_single_operations(kind, hidden, classes, directed, weighted, options):
    graph = make_graph(150, directed=directed, weighted=weighted)
    model = MODELS[kind](hidden=hidden, **options)
    fused, _ = trainer_of("numba", graph, model, classes, 3, fused=True)
    plain, _ = trainer_of("reference", graph, model, classes, 3, fused=False)
    assert not isinstance(fused, RunsTrainer)
    assert isinstance(plain, RunsTrainer)
    for epoch in range(5):
        mine, theirs = fused.epoch(), plain.epoch()
        torch.testing.assert_close(mine[:2], theirs[:2].float(), rtol=2e-5, atol=2e-5)
        torch.testing.assert_close(mine[2], theirs[2].float(), rtol=0, atol=1.1 / 40)  # a tie may fall either way
        if epoch == 2:
            fused.keep(torch.tensor([0, 2]))
            plain.keep(torch.tensor([0, 2]))
    for mine, theirs in zip(fused.weights(), plain.weights(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
    fused.close()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_rows_that_no_labelled_node_reads_are_left_out_without_a_trace(steps, directed):
    """On a path of 150 nodes most rows are farther from the few labelled ones than the steps reach."""
    n, rng = 150, np.random.default_rng(5)
    path = sparse.diags_array(np.ones(n - 1), offsets=1, shape=(n, n))
    features = sparse.csr_array(rng.random((n, 20)) * (rng.random((n, 20)) < 0.3))
    graph = Graph.from_scipy(path if directed else path + path.T, features=features, directed=directed)
    labels = rng.integers(0, 3, n)
    train, stopping = node_sets([np.array([40, 41, 90])], labels), node_sets([np.array([70, 149])], labels)
    trainers = []
    for backend, fused in (("numba", True), ("reference", False)):
        kernels = next(b for b in BACKENDS if b.name == backend).kernels
        task = Task(graph, kernels, (3,), 3, train, stopping, pprop.Stopping(), 0.01, torch.device("cpu"))
        needed = torch.cat([train.nodes.flatten(), stopping.nodes.flatten()])
        bound = bind_propagation(pprop.APPNP(hidden=8, steps=steps), graph, kernels, needed)
        trainers.append(network_trainer(task, bound, fused=fused))
    mine, theirs = trainers
    for _ in range(4):
        torch.testing.assert_close(mine.epoch()[:2], theirs.epoch()[:2].float(), rtol=2e-5, atol=2e-5)
    for weights, others in zip(mine.weights(), theirs.weights(), strict=True):
        torch.testing.assert_close(weights, others, rtol=1e-3, atol=1e-5)
    mine.close()


@pytest.mark.parametrize("directed", [False, True])
def test_hops_are_those_of_the_shortest_path(directed):
    drawn = sparse.random_array((300, 300), density=0.007, rng=np.random.default_rng(2))
    A = sparse.csr_array(drawn if directed else drawn + drawn.T)
    nodes = np.array([0, 7])
    found = hops(A.indptr.astype(np.int64), A.indices.astype(np.int32), nodes)
    expected = np.minimum(csgraph.dijkstra(A, unweighted=True, indices=nodes, min_only=True), REACH)
    assert set(found) == set(range(REACH + 1))
    np.testing.assert_array_equal(found, expected)


def test_masks_go_on_where_a_group_of_planes_ends():
    """Feature decisions come in groups of 128 epochs, edge decisions in groups of 128 steps; K = 3 crosses many."""
    graph, model = make_graph(60), pprop.APPNP(steps=3, hidden=8)
    fused, _ = trainer_of("numba", graph, model, 3, 1, fused=True)
    plain, _ = trainer_of("reference", graph, model, 3, 1, fused=False)
    for _ in range(139):
        fused.epoch()
        plain.epoch()
    mine, theirs = fused.epoch(), plain.epoch()
    torch.testing.assert_close(mine[:2], theirs[:2], rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kind", ["APPNP", "PPNP", "MLP"])
def test_a_team_of_threads_gives_the_bits_of_one(kind, monkeypatch):
    graph, model = make_graph(700, 120), MODELS[kind]()
    monkeypatch.setattr("pprop.kernels.numba_cpu.trainer._WORK_PER_THREAD", 1)
    values = []
    before = numba.get_num_threads()
    try:
        for threads in (1, 2):
            numba.set_num_threads(min(threads, before))
            trainer, _ = trainer_of("numba", graph, model, 7, 1, fused=True)
            curve = [trainer.epoch().clone() for _ in range(10)]
            values.append((torch.stack(curve), [w.clone() for w in trainer.weights()]))
            trainer.close()
    finally:
        numba.set_num_threads(before)
    assert torch.equal(values[0][0], values[1][0])
    assert all(torch.equal(a, b) for a, b in zip(values[0][1], values[1][1], strict=True))


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from Linux's /proc")
def test_three_hundred_epochs_take_no_more_memory_than_ten():
    trainer, _ = trainer_of("numba", make_graph(), pprop.APPNP(), 7, 2, fused=True)
    for _ in range(10):
        trainer.epoch()
    gc.collect()
    before = resident()
    for _ in range(300):
        trainer.epoch()
    assert resident() - before < 2**20


def test_the_loop_of_a_gpu_ends_runs_as_the_plain_loop_does():
    """Without a GPU nothing is captured, but the looks at every 32nd epoch, the packing and the curves are the same."""
    graph, model, rule = make_graph(80), pprop.APPNP(hidden=8, steps=1), pprop.Stopping(patience=7, max_epochs=70)
    results = []
    for captured in (False, True):
        trainer, _ = trainer_of("reference", graph, model, 3, 12, fused=False)
        if captured:
            results.append(run_captured(trainer, 12, rule, Silent(), torch.device("cpu")))
        else:
            results.append(run_loop(trainer, 12, rule, Silent()))
    plain, looked = results
    assert len(set(plain.epochs.tolist())) > 3  # runs end at different epochs, and not all at the cap
    for name in ("epochs", "best_epoch", "stopping_loss", "stopping_accuracy"):
        assert np.array_equal(getattr(plain, name), getattr(looked, name)), name
    assert all(torch.equal(a, b) for a, b in zip(plain.weights, looked.weights, strict=True))
    for one, other in zip(plain.history, looked.history, strict=True):
        assert np.array_equal(one.train_loss, other.train_loss)
        assert np.array_equal(one.stopping_accuracy, other.stopping_accuracy)


class Silent:
    def epoch(self, epoch, runs_ended):
        pass

    def ended(self, result, runs):
        pass
