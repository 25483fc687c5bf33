"""A model with the propagation layer under `torch.compile`: the layer stays as it is, and says nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn

import pprop


def step(model: Callable[[Tensor], Tensor], layer: pprop.Propagation, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the values and the gradient of a training pass, the first one of the layer's masks."""
    weight.grad, layer.passes = None, 0
    values = model(torch.ones(5, 3))
    values.square().sum().backward()
    assert weight.grad is not None
    return values.detach().clone(), weight.grad.clone()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # of Python's own modules, which Dynamo's start imports
def test_a_compiled_model_has_the_same_values_and_gradients_without_a_warning():
    graph = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    linear, layer = nn.Linear(3, 2), pprop.Propagation(graph, alpha=0.1, dropout=0.5)
    model = nn.Sequential(linear, layer, nn.ReLU())
    expected = step(model, layer, linear.weight)
    compiled = torch.compile(model, backend="eager")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [step(compiled, layer, linear.weight) for _ in range(2)]
        layer.eval()
        alone = compiled(torch.ones(5, 3))
    assert [str(one.message) for one in said if "torch" in one.filename or issubclass(one.category, UserWarning)] == []
    for values, gradient in found:
        assert torch.equal(values, expected[0])
        assert torch.equal(gradient, expected[1])
    assert torch.equal(alone, model(torch.ones(5, 3)))
    assert layer.passes == 1
