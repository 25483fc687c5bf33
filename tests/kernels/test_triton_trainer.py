"""The fused trainer of the GPU backend against a dense twin in float64 with torch's own gradients and optimiser.

Without a GPU the kernels are interpreted on the CPU, so graphs are small; small launch shapes make them cross tiles.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop.graph import transition_matrix
from pprop.graph.features.scaling import DenseRows
from pprop.kernels.contract import LabelledNodes, PropagateRows, PropagateSteps, TrainerSizes, TrainerSpec
from pprop.kernels.device_rows import DeviceRows
from pprop.kernels.random_bits import DENSE_FEATURES, EDGES, FEATURES, HIDDEN, PPR, Bernoulli, keep_bits, stream

pytest.importorskip("triton", reason="the GPU backend needs triton")

from pprop.kernels.triton_gpu.dense_first import _in_units
from pprop.kernels.triton_gpu.launch import Tuning
from pprop.kernels.triton_gpu.network import Network
from pprop.kernels.triton_gpu.plan import row_plan
from pprop.kernels.triton_gpu.propagate import StepsPropagation
from pprop.kernels.triton_gpu.trainer import TritonTrainer, trainer_bytes

pytestmark = pytest.mark.slow

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = Tuning(slice_width=8, feature_warps=4, feature_unroll=2, feature_limit=4, tile_warps=2, second_rows=256)
"""The second layer's way back reads 512 nodes whatever there are: all of them in two products take the interpreter less."""
ALPHA, RATE, PENALTY = 0.15, 0.01, 0.005


class Twin:
    """One run: dense matrices, float64, autograd, torch's Adam."""

    def __init__(self, spec, run, T, dropout, matrix_dropout):
        self.spec, self.T, self.seed = spec, T, spec.seeds[run].cpu()
        self.dense = isinstance(spec.features, DenseRows)
        self.X = torch.from_numpy(spec.features.toarray()).double()
        self.W = [torch.nn.Parameter(w[run].detach().cpu().double()) for w in spec.weights]
        sets = [s.to("cpu") for s in (spec.train, spec.stopping)]
        much = [torch.ones(s.labels.shape) if s.weights is None else s.weights for s in sets]
        self.sets = [(s.nodes[run], s.labels[run], w[run].double()) for s, w in zip(sets, much, strict=True)]
        self.optimiser = torch.optim.Adam(self.W, lr=RATE)
        self.law, self.matrix_law = (p and Bernoulli.from_probability(p) for p in (dropout, matrix_dropout))
        self.epochs = 0

    def drop(self, matrix, law, number, position=None, *, by_row=False):
        """Drop entries: site (i, j) at a position, or site (i, epoch) at position j."""
        if not law:
            return matrix
        i, j = torch.meshgrid(*(torch.arange(k) for k in matrix.shape), indexing="ij")
        if by_row:
            keep = keep_bits(self.seed, number, i, torch.full_like(i, self.epochs), j, law)
        else:
            keep = keep_bits(self.seed, number, i, j, torch.tensor(position), law)
        return matrix * keep * law.scale

    def logits(self, which, *, training):
        law, matrix_law = (self.law, self.matrix_law) if training else (None, None)
        kind = DENSE_FEATURES if self.dense else FEATURES
        b_1, b_2 = self.W[2:] if len(self.W) > 2 else torch.zeros(2, 1)
        hidden = (self.drop(self.X, law, kind, self.epochs, by_row=self.dense) @ self.W[0] + b_1).relu()
        H = self.drop(hidden, law, stream(HIDDEN, 1), by_row=True) @ self.W[1] + b_2
        nodes, propagation = self.sets[which][0], self.spec.propagation
        if isinstance(propagation, PropagateSteps):
            state = H
            for k in range(propagation.steps):
                M = self.drop(self.T, matrix_law, EDGES, self.epochs * propagation.steps + k)
                state = (1 - ALPHA) * (M @ state) + ALPHA * H
            return state[nodes]
        if isinstance(propagation, PropagateRows):
            return self.drop(self.T, matrix_law, PPR, by_row=True)[nodes] @ H
        return H[nodes]

    def loss(self, which, *, training):
        logits, (_, labels, weights) = self.logits(which, training=training), self.sets[which]
        each = torch.nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="none")
        total = weights[labels >= 0].sum()
        entropy = (each * weights).sum() / total
        accuracy = weights[logits.argmax(dim=1) == labels].sum() / total
        return entropy + 0.5 * PENALTY * (self.W[0] ** 2).sum(), accuracy

    def epoch(self):
        loss, _ = self.loss(0, training=True)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        with torch.no_grad():
            result = [float(loss), *(float(x) for x in self.loss(1, training=False))]
        self.epochs += 1
        return result


def make(
    make_graph,
    dense_transition,
    kind,
    *,
    n=23,
    f=11,
    hidden=9,
    c=3,
    runs=2,
    dropout=0.5,
    steps=2,
    weighted=False,
    dense=False,
    bias=False,
):
    """A trainer's specification for some runs, and its twins."""
    rng = np.random.default_rng(3)
    graph, A = make_graph(n, directed=True, weighted=weighted)
    matrix = torch.from_numpy(dense_transition(A, "sym"))
    X = rng.standard_normal((n, f)) * (rng.random((n, f)) < 0.4)
    X[:, 2] = rng.standard_normal(n)  # a column, and a row, that needs several lanes
    X[4] = rng.standard_normal(f)
    X[5] = 0.0
    sizes = [(6, 5)[run % 2] for run in range(runs)]
    nodes = np.stack([rng.permutation(n) for _ in range(runs)])
    labels = rng.integers(0, c, n)
    train, stopping = nodes[:, :6].copy(), nodes[:, -9:].copy()
    known = [np.where(np.arange(6) < np.array(sizes)[:, None], labels[train], -1), labels[stopping]]
    train[known[0] < 0] = 0
    if kind == "steps":
        propagation = PropagateSteps(transition_matrix(graph), ALPHA, steps)
    elif kind == "rows":
        inverse = torch.linalg.inv(torch.eye(n, dtype=torch.float64) - (1 - ALPHA) * matrix) * ALPHA
        matrix, order = inverse, torch.from_numpy(rng.permutation(n))
        block = matrix[order].float()
        propagation = PropagateRows(block.to(DEVICE), order.to(DEVICE), torch.argsort(order).to(DEVICE))
    else:
        propagation = None
    shapes = [(f, hidden), (hidden, c), *([(1, hidden), (1, c)] if bias else [])]
    spec = TrainerSpec(
        features=DenseRows(X.astype(np.float32)) if dense else sparse.csr_array(X.astype(np.float32)),
        weights=tuple(torch.from_numpy(rng.standard_normal((runs, *s)) * 0.5).float().to(DEVICE) for s in shapes),
        seeds=torch.tensor([5, -77, 2**40 + 1][:runs]).to(DEVICE),
        propagation=propagation,
        train=LabelledNodes(torch.from_numpy(train).to(DEVICE), torch.from_numpy(known[0]).to(DEVICE)),
        stopping=LabelledNodes(torch.from_numpy(stopping).to(DEVICE), torch.from_numpy(known[1]).to(DEVICE)),
        dropout=dropout,
        matrix_dropout=0.0 if kind == "none" else dropout,
        rate=RATE,
        penalty=PENALTY,
    )
    return spec, [Twin(spec, run, matrix, dropout, spec.matrix_dropout) for run in range(runs)]


def compare(trainer, twins, epochs, rounding=2e-5, step=2e-4):
    for _ in range(epochs):
        found = trainer.epoch().cpu().double().numpy()
        expected = np.array([twin.epoch() for twin in twins]).T
        np.testing.assert_allclose(found, expected, rtol=0, atol=rounding)
    for found, layer in zip(trainer.weights(), zip(*(twin.W for twin in twins), strict=True), strict=True):
        expected = torch.stack([w.detach() for w in layer])
        # Adam divides by the root of the square: where a gradient is near nothing its rounding shows
        torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=step)


@pytest.mark.parametrize("dropout", [0.375, 0.0])
@pytest.mark.parametrize(("f", "hidden"), [(11, 9), (70, 40)])
def test_epochs_on_dense_features_are_those_of_the_twin(make_graph, dense_transition, dropout, f, hidden):
    """Several words of columns and slices of units; factors of the first layer have 11 significant bits."""
    spec, twins = make(make_graph, dense_transition, "steps", f=f, hidden=hidden, dropout=dropout, dense=True)
    tuning = dataclasses.replace(SMALL, slice_width=16, dense_rows=16, dense_columns=32, dense_nodes=16)
    trainer = TritonTrainer(spec, tuning)
    compare(trainer, twins, 1, rounding=2e-3, step=8e-3)
    trainer.keep(torch.tensor([1], device=DEVICE))
    compare(trainer, twins[1:], 1, rounding=2e-3, step=8e-3)


@pytest.mark.parametrize(("kind", "dropout"), [("steps", 0.375), ("steps", 0.0), ("rows", 0.3), ("none", 0.5)])
def test_epochs_are_those_of_the_dense_twin_also_after_runs_have_left(make_graph, dense_transition, kind, dropout):
    """Probabilities of 3, 0, 16 and 1 binary digits."""
    spec, twins = make(make_graph, dense_transition, kind, dropout=dropout)
    trainer = TritonTrainer(spec, SMALL)
    compare(trainer, twins, 1)
    trainer.keep(torch.tensor([1], device=DEVICE))
    compare(trainer, twins[1:], 1)


@pytest.mark.parametrize(("dense", "dropout"), [(False, 0.375), (True, 0.375), (False, 0.0)])
def test_biases_are_those_of_the_twin_also_after_runs_have_left(make_graph, dense_transition, dense, dropout):
    spec, twins = make(make_graph, dense_transition, "steps", dropout=dropout, dense=dense, bias=True, hidden=20)
    trainer = TritonTrainer(spec, dataclasses.replace(SMALL, slice_width=16, dense_rows=16, dense_nodes=16))
    near = {"rounding": 2e-3, "step": 8e-3} if dense else {}
    compare(trainer, twins, 2, **near)
    trainer.remember(torch.tensor([True, False], device=DEVICE))
    best = trainer.remembered()
    assert [tuple(found.shape) for found in best] == [tuple(given.shape) for given in spec.weights]
    assert torch.equal(best[2][0], trainer.weights()[2][0])
    assert torch.equal(best[3][1], spec.weights[3][1])
    trainer.keep(torch.tensor([1], device=DEVICE))
    compare(trainer, twins[1:], 1, **near)


@pytest.mark.parametrize("kind", ["steps", "rows"])
def test_weighted_nodes_count_as_in_the_twin_also_after_runs_have_left(make_graph, dense_transition, kind):
    """Labels are kept by node for steps, in the order given for rows."""
    spec, _ = make(make_graph, dense_transition, kind, dropout=0.0)
    rng = np.random.default_rng(8)

    def weighted(nodes):
        weights = rng.gamma(1.0, size=tuple(nodes.labels.shape))
        weights[:, 1] = 0.0
        return dataclasses.replace(nodes, weights=torch.from_numpy(weights).float().to(DEVICE))

    spec = dataclasses.replace(spec, train=weighted(spec.train), stopping=weighted(spec.stopping))
    _, plain = make(make_graph, dense_transition, kind, dropout=0.0)
    twins = [Twin(spec, run, plain[run].T, 0.0, 0.0) for run in range(2)]
    trainer = TritonTrainer(spec, SMALL)
    compare(trainer, twins, 1)
    trainer.keep(torch.tensor([1], device=DEVICE))
    compare(trainer, twins[1:], 1)


@pytest.mark.parametrize(("c", "dropout"), [(9, 0.5), (20, 0.5), (20, 0.0), (70, 0.5)])
def test_steps_by_launches_on_a_weighted_graph_with_wide_layers(make_graph, dense_transition, c, dropout):
    """Rows of 16 numbers in the states, and of 24 and 72, which are no power of two."""
    spec, twins = make(make_graph, dense_transition, "steps", hidden=20, c=c, runs=1, weighted=True, dropout=dropout)
    tuning = Tuning(slice_width=16, feature_warps=2, tile_warps=2)
    compare(TritonTrainer(spec, tuning), twins, 1)


def test_larger_programs_and_wider_classes_give_the_same_epochs(make_graph, dense_transition):
    spec, twins = make(make_graph, dense_transition, "steps", hidden=20, runs=1, weighted=True)
    tuning = dataclasses.replace(
        SMALL,
        slice_width=16,
        feature_warps=1,
        tile_warps=1,
        second_rows=32,
        step_tiles=3,
        least_classes=8,
        feature_registers=0,
        step_registers=0,
    )
    compare(TritonTrainer(spec, tuning), twins, 1)


@pytest.mark.parametrize("placed", [2**23, 7])
def test_a_plan_has_every_entry_once_and_its_rows_by_length(monkeypatch, placed):
    rng = np.random.default_rng(5)
    matrix = sparse.csr_array(sparse.random_array((90, 40), density=0.2, rng=rng))
    monkeypatch.setattr("pprop.kernels.triton_gpu.plan._PLACED", placed)
    numbers = torch.arange(matrix.nnz) + 1
    plan = row_plan(matrix.indptr, matrix.indices, 40, slots=4, device="cpu", limit=8, values=numbers)
    assert plan.values is not None
    there = plan.values > 0
    found = plan.values[there] - 1
    assert sorted(found.tolist()) == list(range(matrix.nnz))
    assert np.array_equal(plan.index[there], matrix.indices[found])
    assert (plan.index[~there] == 40).all()
    short = plan.rows.reshape(-1, 4)[plan.tiles[:, 0] == 0].ravel()
    assert (np.diff(np.diff(matrix.indptr)[short[short >= 0]]) <= 0).all()


def test_a_slice_of_two_words_of_hidden_units(make_graph, dense_transition):
    spec, twins = make(make_graph, dense_transition, "none", hidden=70, runs=1)
    compare(TritonTrainer(spec, Tuning(slice_width=64, feature_warps=4, second_rows=256)), twins, 1)


def at_rest(monkeypatch, spec):
    """A trainer that made no pass at epoch 0, for tests that have it make one elsewhere."""
    with monkeypatch.context() as patch:
        patch.setattr(TritonTrainer, "_look", lambda *_, **__: None)
        patch.setattr(StepsPropagation, "backward", lambda *_, **__: None)
        return TritonTrainer(spec, SMALL)


@pytest.mark.parametrize(("steps", "first", "epochs"), [(35, 21, 1), (1, 31, 2)])
def test_masks_across_words(monkeypatch, make_graph, dense_transition, steps, first, epochs):
    """35 steps of epoch 21 lie in three words of an entry's sequence; at epoch 32 features take their second word."""
    spec, twins = make(make_graph, dense_transition, "steps", n=6, f=4, hidden=3, runs=1, steps=steps)
    trainer = at_rest(monkeypatch, spec)
    trainer.clock.fill_(first)
    twins[0].epochs = first
    trainer.keep(torch.tensor([0], device=DEVICE))  # makes the pass at the counter
    compare(trainer, twins, epochs)


def test_a_run_has_the_same_bits_alone_and_in_a_batch(monkeypatch, make_graph, dense_transition):
    spec, _ = make(make_graph, dense_transition, "steps", runs=2)
    whole, kept = TritonTrainer(spec, SMALL), at_rest(monkeypatch, spec)
    kept.keep(torch.tensor([1], device=DEVICE))  # makes the pass of this run alone
    assert torch.equal(whole.epoch()[:, 1:2], kept.epoch())
    for a, b in zip(whole.weights(), kept.weights(), strict=True):
        assert torch.equal(a[1:2], b)


def test_weights_are_remembered_run_by_run_and_stay_with_their_run(make_graph, dense_transition):
    spec, _ = make(make_graph, dense_transition, "none", dropout=0.0)
    trainer = TritonTrainer(spec, SMALL)
    trainer.epoch()
    live = [w.clone() for w in trainer.weights()]
    trainer.remember(torch.tensor([False, True], device=DEVICE))
    trainer.epoch()
    for kept, first, after in zip(trainer.remembered(), spec.weights, live, strict=True):
        assert torch.equal(kept[0], first[0])
        assert torch.equal(kept[1], after[1])
        assert not torch.equal(after[1], first[1])
    trainer.keep(torch.tensor([1], device=DEVICE))
    for kept, after in zip(trainer.remembered(), live, strict=True):
        assert torch.equal(kept[0], after[1])


def test_memory_is_what_is_planned(monkeypatch, make_graph, dense_transition):
    """The buffers of one run, as the trainer holds them, against the plan, which counts masks from above."""
    for part, name in ((TritonTrainer, "_look"), (Network, "backward"), (StepsPropagation, "backward")):
        monkeypatch.setattr(part, name, lambda *_, **__: None)  # nothing is computed here
    taken = []
    for runs in (1, 2):
        spec, _ = make(make_graph, dense_transition, "steps", f=40, runs=runs)
        trainer = TritonTrainer(spec, Tuning(feature_warps=1, tile_warps=1))
        taken.append(sum(tensor.untyped_storage().nbytes() for tensor in tensors_of(trainer).values()))
    entries = len(transition_matrix(make_graph(23, directed=True, weighted=False)[0]).indices)
    sizes = TrainerSizes(
        23, 40, 9, 3, feature_entries=int(np.count_nonzero(spec.features.toarray())), entries=entries, steps=2
    )
    planned = sum(trainer_bytes(sizes, Tuning(feature_warps=1, tile_warps=1)).run.values())
    assert 0.5 * planned < taken[1] - taken[0] <= planned


def tensors_of(thing, seen=None):
    """Every tensor that an object of the library holds, by its storage."""
    seen = {} if seen is None else seen
    if isinstance(thing, torch.Tensor):
        seen[thing.untyped_storage().data_ptr()] = thing
    elif isinstance(thing, list | tuple):
        for part in thing:
            tensors_of(part, seen)
    elif type(thing).__module__.startswith("pprop.kernels.triton_gpu"):
        for part in vars(thing).values():
            tensors_of(part, seen)
    return seen


def test_features_without_entries(make_graph, dense_transition):
    spec, twins = make(make_graph, dense_transition, "none", runs=1)
    spec = dataclasses.replace(spec, features=sparse.csr_array(spec.features.shape, dtype=np.float32))
    twins[0].X[:] = 0.0
    compare(TritonTrainer(spec, SMALL), twins, 1)


def test_every_column_of_dense_features_has_its_own_unit():
    sizes = np.float32(2.0) ** np.array([0, -20, -40, -60, 20, 40, 3, 0, 0], dtype=np.float32)
    X = np.random.default_rng(0).standard_normal((40, 9)).astype(np.float32) * sizes
    X[:, 7] = 0
    halves, units, scale = _in_units(DeviceRows(DenseRows(X), torch.device(DEVICE)))
    found = (halves.double() * units.double() / scale).cpu().numpy()
    np.testing.assert_allclose(found, X, rtol=2.0**-10, atol=1e-4 * np.abs(X).max(axis=0).min())
    assert np.abs(found[:, 3]).max() > 0  # with one unit for all, they would be zero
    assert torch.isfinite(halves).all()
