"""The Propagation layer: training and evaluation, its masks, its state, and one PPR matrix for all passes."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
import torch

from pprop import Exact, PowerIteration, Propagation, propagate

SOLVERS = [PowerIteration(3), Exact()]


def ones(*shape):
    return torch.ones(*shape, dtype=torch.float64)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_in_evaluation_the_layer_is_propagate(make_graph, backend, solver, dtype):
    graph, _ = make_graph(directed=True, weighted=True)
    H = torch.randn(9, 3, generator=torch.Generator().manual_seed(1)).to(dtype)
    layer = Propagation(graph, 0.2, solver, "row", False, dropout=0.5, backend=backend).eval()
    Z = layer(H)
    assert Z.dtype == dtype
    assert torch.equal(Z, propagate(graph, H, 0.2, solver, "row", False, backend=backend))
    assert layer.passes == 0
    assert torch.equal(layer(torch.stack([H, 2 * H]))[0], Z)  # any number of runs, whatever the seeds


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_without_dropout_training_is_evaluation(make_graph, backend, solver):
    graph, _ = make_graph(directed=True, weighted=True)
    layer = Propagation(graph, solver=solver, backend=backend)
    H = torch.randn(9, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(layer.train()(H), layer.eval()(H))
    assert not list(layer.parameters())


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_every_training_pass_and_every_run_has_masks_of_its_own(make_graph, backend, solver):
    graph, _ = make_graph(directed=True, weighted=True)
    layer = Propagation(graph, solver=solver, dropout=0.5, seed=[1, 2], backend=backend)
    passes = [layer(ones(2, 9, 1)) for _ in range(3)]
    assert layer.passes == 3
    for a in range(3):
        assert not torch.equal(passes[a][0], passes[a][1])
        for b in range(a):
            assert not torch.equal(passes[a], passes[b])
    alone = Propagation(graph, solver=solver, dropout=0.5, seed=2, backend=backend)
    assert torch.equal(alone(ones(9, 1)), passes[0][1])  # run 2 alone is run 2 of the batch


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_same_seed_repeats_the_same_passes(make_graph, backend, solver):
    graph, _ = make_graph(directed=True, weighted=True)
    first, second = (Propagation(graph, solver=solver, dropout=0.5, seed=9, backend=backend) for _ in range(2))
    for _ in range(3):
        assert torch.equal(first(ones(9, 1)), second(ones(9, 1)))


def test_evaluation_passes_do_not_shift_the_masks(make_graph, backend):
    graph, _ = make_graph(directed=True, weighted=True)
    first, second = (Propagation(graph, dropout=0.5, backend=backend) for _ in range(2))
    second.eval()(ones(9, 1))
    assert torch.equal(first(ones(9, 1)), second.train()(ones(9, 1)))


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_restored_layer_goes_on_with_the_masks_of_the_saved_one(make_graph, backend, solver):
    graph, _ = make_graph(directed=True, weighted=True)
    layer = Propagation(graph, solver=solver, dropout=0.5, seed=4, backend=backend)
    layer(ones(9, 1))
    layer(ones(9, 1))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    restored = Propagation(graph, solver=solver, dropout=0.5, seed=4, backend=backend)
    restored.load_state_dict(torch.load(file, weights_only=True))
    duplicate = copy.deepcopy(layer)
    third = layer(ones(9, 1))
    assert torch.equal(restored(ones(9, 1)), third)
    assert torch.equal(duplicate(ones(9, 1)), third)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_backends_agree_with_dropout_on(make_graph, solver):
    graph, _ = make_graph(directed=True, weighted=True)
    H = torch.randn(2, 9, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    numba, reference = (
        Propagation(graph, solver=solver, dropout=0.4, seed=[0, -1], backend=name) for name in ("numba", "reference")
    )
    for _ in range(3):
        torch.testing.assert_close(numba(H), reference(H), rtol=0, atol=1e-14)


@pytest.mark.parametrize("seed", [2**64 - 1, np.int64(-1), [-1], np.array([-1]), torch.tensor([-1])])
def test_seeds_are_64_bits_in_any_integer_form(make_graph, seed):
    graph, _ = make_graph(directed=True, weighted=True)
    first, second = Propagation(graph, dropout=0.5, seed=seed), Propagation(graph, dropout=0.5, seed=-1)
    assert torch.equal(first(ones(9, 1)), second(ones(9, 1)))


def test_the_layer_moves_and_prints_like_any_other(make_graph):
    graph, _ = make_graph(directed=False, weighted=False)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), Propagation(graph, 0.2, dropout=0.5)).to("cpu").double()
    assert model(ones(9, 4)).dtype == torch.float64
    assert "alpha=0.2, solver=PowerIteration(steps=10), dropout=0.5" in repr(model)
