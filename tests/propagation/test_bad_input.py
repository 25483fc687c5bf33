"""Wrong arguments get the house sentence, name the function that was called, and change nothing."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Exact, Graph, InputError, PowerIteration, Propagation, propagate, solve

PATH = Graph.from_scipy(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
H = np.ones((5, 7))
SHAPE = "must be an array of real numbers of shape (5,) or (5, c)."
SOLVERS = "PowerIteration(steps), Exact(), Limit(), Chebyshev(tol), ConjugateGradient(tol) or Contraction(tol)"


@pytest.mark.parametrize("function", [propagate, solve])
@pytest.mark.parametrize(
    ("arguments", "parameter", "rest"),
    [
        ({"alpha": 1.3}, "alpha", "must be a float in [0, 1]. Got 1.3 instead."),
        ({"alpha": -0.1}, "alpha", "must be a float in [0, 1]. Got -0.1 instead."),
        ({"alpha": math.nan}, "alpha", "must be a float in [0, 1]. Got nan instead."),
        ({"alpha": "x"}, "alpha", "must be a float in [0, 1]. Got 'x' instead."),
        ({"alpha": None}, "alpha", "must be a float in [0, 1]. Got None instead."),
        ({"alpha": True}, "alpha", "must be a float in [0, 1]. Got True instead."),
        ({"alpha": 0, "solver": Exact()}, "alpha", "must be a float in (0, 1]. Got 0 instead."),
        ({"alpha": 1.3, "solver": Exact()}, "alpha", "must be a float in (0, 1]. Got 1.3 instead."),
        ({"H": np.ones((4, 7))}, "H", f"{SHAPE} Got ndarray of shape (4, 7) and dtype float64 instead."),
        ({"H": np.ones((5, 7, 1))}, "H", f"{SHAPE} Got ndarray of shape (5, 7, 1) and dtype float64 instead."),
        ({"H": torch.ones(7, 5)}, "H", f"{SHAPE} Got Tensor of shape (7, 5) and dtype torch.float32 instead."),
        ({"H": 1.0}, "H", f"{SHAPE} Got 1.0 instead."),
        ({"H": None}, "H", f"{SHAPE} Got None instead."),
        ({"H": [[1, 2], [3], [4], [5], [6]]}, "H", f"{SHAPE} Got [[1, 2], [3], [4], [5], [6]] instead."),
        ({"H": list("abcde")}, "H", f"{SHAPE} Got ['a', 'b', 'c', 'd', 'e'] instead."),
        ({"H": sparse.eye_array(5)}, "H", f"{SHAPE} Got dia_array of shape (5, 5) and dtype float64 instead."),
        ({"H": torch.eye(5).to_sparse()}, "H", f"{SHAPE} Got Tensor of shape (5, 5) and dtype torch.float32 instead."),
        ({"H": np.ones(5, complex)}, "H", f"{SHAPE} Got ndarray of shape (5,) and dtype complex128 instead."),
        (
            {"H": torch.ones(5, dtype=torch.complex64)},
            "H",
            f"{SHAPE} Got Tensor of shape (5,) and dtype torch.complex64 instead.",
        ),
        ({"H": [1, 2, math.nan, 4, 5]}, "H", "must be free of NaN and infinity. Got 1 such values instead."),
        ({"H": np.full(5, np.inf)}, "H", "must be free of NaN and infinity. Got 5 such values instead."),
        ({"solver": "exact"}, "solver", f"must be {SOLVERS}. Got 'exact' instead."),
        ({"solver": 10}, "solver", f"must be {SOLVERS}. Got 10 instead."),
        ({"normalization": "max"}, "normalization", "must be one of 'sym', 'row' or 'col'. Got 'max' instead."),
        ({"normalization": None}, "normalization", "must be one of 'sym', 'row' or 'col'. Got None instead."),
        ({"self_loops": "no"}, "self_loops", "must be True or False. Got 'no' instead."),
        (
            {"backend": "cuda"},
            "backend",
            "must be one of 'auto', 'numba', 'triton' or 'reference'. Got 'cuda' instead.",
        ),
        (
            {"graph": np.eye(5)},
            "graph",
            "must be a pprop.Graph. Got ndarray of shape (5, 5) and dtype float64 instead. "
            "Make one with pprop.Graph.from_scipy.",
        ),
    ],
)
def test_wrong_arguments_are_named_in_one_sentence(function: Any, arguments, parameter, rest):
    sentence = f"The {parameter!r} parameter of {function.__name__} {rest}"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        function(**{"graph": PATH, "H": H, **arguments})


def test_a_solver_class_is_no_solver():
    solver: Any = Exact
    with pytest.raises(InputError, match=f"^The 'solver' parameter of propagate must be {re.escape(SOLVERS)}"):
        propagate(PATH, H, solver=solver)


@pytest.mark.parametrize("steps", [-1, 2.0, "3", None, True, 10_001, 2**70])
def test_steps_are_a_count(steps):
    sentence = f"The 'steps' parameter of PowerIteration must be an integer from 0 to 10000. Got {steps!r} instead."
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        PowerIteration(steps)


@pytest.mark.parametrize(
    ("arguments", "parameter", "rest"),
    [
        ({"alpha": 2}, "alpha", "must be a float in [0, 1]. Got 2 instead."),
        ({"alpha": 0.0, "solver": Exact()}, "alpha", "must be a float in (0, 1]. Got 0.0 instead."),
        ({"dropout": 1}, "dropout", "must be a float in [0, 1). Got 1 instead."),
        ({"dropout": -0.5}, "dropout", "must be a float in [0, 1). Got -0.5 instead."),
        ({"dropout": math.nan}, "dropout", "must be a float in [0, 1). Got nan instead."),
        ({"solver": "exact"}, "solver", f"must be {SOLVERS}. Got 'exact' instead."),
        ({"normalization": "max"}, "normalization", "must be one of 'sym', 'row' or 'col'. Got 'max' instead."),
        ({"self_loops": 0.5}, "self_loops", "must be True or False. Got 0.5 instead."),
        (
            {"backend": "cuda"},
            "backend",
            "must be one of 'auto', 'numba', 'triton' or 'reference'. Got 'cuda' instead.",
        ),
        ({"graph": None}, "graph", "must be a pprop.Graph. Got None instead. Make one with pprop.Graph.from_scipy."),
        ({"seed": []}, "seed", "must be an integer, or one integer per run. Got none instead."),
        ({"seed": 1.5}, "seed", f"must be an integer from {-(2**63)} to {2**64 - 1}. Got 1.5 instead."),
        ({"seed": [1, "2"]}, "seed", f"must be an integer from {-(2**63)} to {2**64 - 1}. Got '2' instead."),
        ({"seed": 2**64}, "seed", f"must be an integer from {-(2**63)} to {2**64 - 1}. Got {2**64} instead."),
    ],
)
def test_a_layer_is_not_made_with_wrong_arguments(arguments, parameter, rest):
    make: Any = Propagation
    sentence = f"The {parameter!r} parameter of Propagation {rest}"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        make(**{"graph": PATH, **arguments})


@pytest.mark.parametrize(
    "predictions",
    [
        torch.ones(5),
        torch.ones(4, 7),
        torch.ones(7, 5),
        torch.ones(1, 1, 5, 7),
        torch.ones(5, 7, dtype=torch.int64),
        torch.ones(5, 7, dtype=torch.complex64),
        np.ones((5, 7)),
        None,
    ],
)
def test_a_layer_refuses_predictions_of_another_shape_or_kind_and_counts_no_pass(predictions):
    layer = Propagation(PATH, dropout=0.5)
    sentence = "The 'predictions' parameter of Propagation must be a float tensor of shape (5, c) or (R, 5, c). Got "
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        layer(predictions)
    assert layer.passes == 0


@pytest.mark.parametrize(("seed", "shape", "expected", "got"), [([1, 2], (3, 5, 7), 3, 2), (0, (2, 5, 7), 2, 1)])
def test_a_layer_wants_one_seed_per_run_when_it_drops(seed, shape, expected, got):
    layer = Propagation(PATH, dropout=0.5, seed=seed)
    sentence = f"The 'seed' parameter of Propagation must be {expected} integers, one per run. Got {got} instead."
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        layer(torch.ones(*shape))
    assert layer.passes == 0
