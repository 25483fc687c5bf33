"""The logits of all nodes from the weights of one run: the network in blocks of nodes, then power steps."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._process import memory_limit
from pprop._validate import check_int, describe, reject
from pprop.graph import Graph
from pprop.graph.files import path_of
from pprop.kernels import Kernels
from pprop.models.inference import BLOCK, network_predictions
from pprop.models.model import FeatureNetwork, Model, PropagationSettings, network_inputs
from pprop.propagation import PowerIteration
from pprop.settings import STEPS

FUNCTION = "pprop.scale.predict"
# Entries of a graph from which on its transition matrix is not made: for some time that takes 32 bytes an entry.
STREAMED = 2**26


def block_logits(
    model: object,
    graph: Graph,
    weights: list[Tensor],
    kernels: Kernels,
    *,
    steps: int | None = None,
    block: int = BLOCK,
    out: str | PathLike[str] | None = None,
    function: str = FUNCTION,
) -> NDArray[np.float32]:
    """Return what `pprop.scale.predict` returns, given a graph with scaled features and the weights of one run, each (1, a, b).

    Examples
    --------
    >>> import scipy.sparse as sp, pprop
    >>> from pprop.kernels import choose_backend
    >>> graph = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=sp.eye_array(2)).scaled()
    >>> kernels = choose_backend("auto", "cpu", "example").kernels
    >>> block_logits(pprop.APPNP(hidden=2), graph, [torch.eye(2)[None], torch.ones(1, 2, 1)], kernels).round(3)
    array([[1.],
           [1.]], dtype=float32)
    """
    expected = "a training of pprop.APPNP() with the built-in network"
    if not isinstance(model, Model) or not isinstance(model.predictor, FeatureNetwork) or model.propagation is None:
        reject("trained", function, expected, describe(model))
    if not isinstance(model.propagation.solver, PowerIteration):
        reject("trained", function, f"{expected} and power steps", describe(model.propagation.solver))
    count = model.propagation.solver.steps if steps is None else STEPS.check(steps, function)
    features = network_inputs(graph, model.predictor.first_layer)
    if features.shape[1] != weights[0].shape[1]:
        reject("graph", function, f"a graph with {weights[0].shape[1]} features", f"one with {features.shape[1]}")
    found = _room((graph.n_nodes, weights[len(model.predictor.hidden)].shape[2]), out, function)
    nodes = check_int(block, "block", function, low=1)
    network_predictions(model.predictor, features, weights, kernels, torch.from_numpy(found)[None], block=nodes)
    return _propagated(graph, model.propagation, count, found, kernels, out)


def _propagated(
    graph: Graph, settings: PropagationSettings, steps: int, found: NDArray[Any], kernels: Kernels, out: object
) -> NDArray[np.float32]:
    """Return predictions (n, c) after power steps; in place where these fit into memory, else the file is replaced."""
    if steps == 0:
        return found
    if graph.n_entries >= STREAMED or not steps_fit(graph, found.shape[1]):
        where = None if out is None else path_of(out, "out", FUNCTION)
        how = settings.alpha, steps, settings.normalization, settings.self_loops
        # its steps are numba's, which no other training needs
        from pprop.propagation.stored.steps import propagate_folder

        return propagate_folder(graph, found, *how, memory=memory_limit("cpu"), out=where).values
    propagation = kernels.steps(settings.operator(graph).transition, settings.alpha, steps)
    spread: Tensor = propagation.forward(torch.from_numpy(np.asarray(found))[None], None)
    found[:] = spread[0].numpy()
    return found


def steps_fit(graph: Graph, columns: int) -> bool:
    """Whether power steps fit into memory: three states, and the transition matrix as it is made.

    >>> import scipy.sparse as sp
    >>> steps_fit(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])), 3)
    True
    """
    return 12 * graph.n_nodes * columns + 32 * graph.n_entries <= memory_limit("cpu")


def _room(shape: tuple[int, int], out: object, function: str) -> NDArray[np.float32]:
    if out is None:
        return np.empty(shape, dtype=np.float32)
    path = path_of(out, "out", function)
    if path.suffix != ".npy":
        reject("out", function, "a file name that ends in .npy", repr(str(path)))
    try:
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    except OSError as error:
        reject("out", function, "a file that can be written", f"{str(path)!r} ({error.strerror})")
