"""GAT against a dense twin in float64, one run and one head at a time, with gradients by torch's autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Graph, InputError
from pprop.kernels import BACKENDS
from pprop.kernels.random_bits import derive_seed, keep_bits
from pprop.kernels.streams import Bernoulli
from pprop.models import GAT
from pprop.models.architecture import Masks, initial_weights

FEATURES, HIDDEN, EDGES, BRANCHES = 0, 1, 2, 7
RUNS = [(11, 0), (-4, 1)]  # the seed of a run and its position
EPOCH = 37
MODEL = GAT(heads=3, units=4)


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(2)
    A = rng.random((14, 14)) < 0.2
    A[6], A[:, 6] = False, False  # isolated
    A[2, 2] = True
    X = rng.random((14, 9)) * (rng.random((14, 9)) < 0.5)
    X[:, 0] += 0.1
    return Graph.from_scipy(sparse.csr_array((A | A.T).astype(float)), features=sparse.csr_array(X))


def kernels_named(name):
    backend = next(backend for backend in BACKENDS if backend.name == name)
    if not backend.available or not backend.computes_on("cpu"):
        pytest.skip(f"the {name} backend does not compute on the CPU here")
    return backend.kernels


def some_weights(graph, n_classes, dtype=torch.float32):
    """Nothing is zero, so that every bias shows."""
    generator = torch.Generator().manual_seed(5)
    shapes = [weight.shape for weight in MODEL.weights(graph.features.shape[1], n_classes)]
    return [
        torch.randn(len(RUNS), *shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in shapes
    ]


def kept(seed, stream, first, second, position, p):
    """The mask divided by the keep probability; `first`, `second` and `position` broadcast to its shape."""
    if p == 0.0:
        return 1.0
    law = Bernoulli.from_probability(p)
    first, second, position = torch.broadcast_tensors(*(torch.as_tensor(at) for at in (first, second, position)))
    return keep_bits(torch.tensor(seed), stream, first, second, position, law).double() / (
        1 - law.threshold / 2**law.digits
    )


def dense_head(H, adjacent, weights, seed, p, input_mask, summed_layer):
    W, vectors, (b_left, b_right), bias = weights
    n = len(H)
    node, column = torch.arange(n)[:, None], torch.arange(W.shape[1])
    T = (H * input_mask) @ W
    score = (T @ vectors[:, 0] + b_left)[:, None] + (T @ vectors[:, 1] + b_right)[None, :]
    score = torch.nn.functional.leaky_relu(score, 0.2).masked_fill(~adjacent, -torch.inf)
    a = torch.softmax(score, dim=1) * kept(seed, EDGES, node, torch.arange(n), EPOCH, p)
    return a @ (T * kept(seed, HIDDEN + 16 * summed_layer, node, EPOCH, column, p)) + bias


def dense_gat(graph, weights, run, seed, p):
    adjacent = torch.from_numpy(graph.adjacency.toarray() != 0) | torch.eye(graph.n_nodes, dtype=torch.bool)
    counts = torch.from_numpy(graph.features.toarray())
    X = counts / counts.sum(dim=1, keepdim=True)
    f, node = X.shape[1], torch.arange(len(X))[:, None]
    W, vectors, score_biases, bias = (weight[run] for weight in weights[:4])
    heads = []
    for k in range(MODEL.heads):
        own = derive_seed(seed, BRANCHES, k)
        parts = W[f * k : f * (k + 1)], vectors[4 * k : 4 * (k + 1)], score_biases[k], bias[k]
        mask = kept(own, FEATURES, node, torch.arange(f), EPOCH, p)
        heads.append(torch.nn.functional.elu(dense_head(X, adjacent, parts, own, p, mask, 2)))
    H = torch.cat(heads, dim=1)
    last = [weight[run] for weight in weights[4:]]
    mask = kept(seed, HIDDEN + 16, node, EPOCH, torch.arange(H.shape[1]), p)
    return dense_head(H, adjacent, (*last[:2], last[2][0], last[3][0]), seed, p, mask, 3)


@pytest.mark.parametrize("p", [0.0, 0.6])
@pytest.mark.parametrize("backend", ["numba", "triton", "reference"])
def test_gat_and_its_gradients_are_those_of_the_dense_twin(graph, backend, p):
    kernels = kernels_named(backend)
    weights = some_weights(graph, n_classes=3)
    twins = [weight.detach().double().requires_grad_() for weight in weights]
    bound = GAT(MODEL.heads, MODEL.units, dropout=p).bind(graph, kernels)
    outputs = bound.outputs(weights, Masks(torch.tensor([seed for seed, _ in RUNS]), EPOCH))
    expected = torch.stack([dense_gat(graph, twins, run, seed, p) for seed, run in RUNS])
    above = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(outputs.double(), expected, rtol=1e-5, atol=1e-5)
    gradients = torch.autograd.grad(outputs, weights, above)
    wanted = torch.autograd.grad(expected, twins, above.double())
    for gradient, twin in zip(gradients, wanted, strict=True):
        assert float(twin.abs().max()) > 1e-3  # all of the weights matter
        torch.testing.assert_close(gradient.double(), twin, rtol=1e-4, atol=1e-4 * float(twin.abs().max()))


def test_gat_drops_nothing_without_seeds(graph):
    kernels = kernels_named("reference")
    weights = some_weights(graph, n_classes=3)
    quiet = MODEL.bind(graph, kernels).outputs(weights, Masks(None))
    undropped = GAT(MODEL.heads, MODEL.units, dropout=0.0).bind(graph, kernels)
    assert torch.equal(quiet, undropped.outputs(weights, Masks(torch.tensor([1, 2]), 3)))


def test_a_run_of_gat_has_the_same_bits_alone_and_in_a_batch(graph):
    kernels = kernels_named("numba")
    weights = some_weights(graph, n_classes=3)
    seeds = torch.tensor([seed for seed, _ in RUNS])

    def results(at):
        mine = [weight.detach()[at].clone().requires_grad_() for weight in weights]
        outputs = MODEL.bind(graph, kernels).outputs(mine, Masks(seeds[at], EPOCH))
        return [outputs.detach(), *torch.autograd.grad(outputs, mine, torch.ones_like(outputs))]

    together = results([0, 1])
    for run in (0, 1):
        for alone, all_ in zip(results([run]), together, strict=True):
            assert torch.equal(alone[0], all_[run])


def test_biases_start_at_zero_all_else_after_glorot_and_everything_is_penalised():
    described = GAT().weights(n_features=100, n_classes=7)
    start = initial_weights(described, torch.tensor([3]), kernels_named("numba"))
    limits = {"layer0": 108, "scores0": 9, "layer1": 71, "scores1": 8}
    for weight, tensor in zip(described, start, strict=True):
        assert weight.penalty == 0.001
        assert tuple(tensor.shape[1:]) == weight.shape
        limit = (6 / limits[weight.name]) ** 0.5 if weight.name in limits else 0.0
        assert float(tensor.abs().max()) <= limit
        assert float(tensor.abs().max()) >= 0.8 * limit


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"heads": 0}, "The 'heads' parameter of GAT must be"),
        ({"units": 1.5}, "The 'units' parameter of GAT must be"),
        ({"dropout": 1.0}, "The 'dropout' parameter of GAT must be"),
        ({"penalty": -1.0}, "The 'penalty' parameter of GAT must be"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        GAT(**settings)
