"""`predict`: the logits of all nodes from trained weights, the network in blocks of nodes, then power steps."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._validate import check_int, describe, reject
from pprop.graph import Graph
from pprop.graph.files import path_of
from pprop.kernels import Kernels, choose_backend
from pprop.models import FeatureNetwork, Model, PropagationSettings
from pprop.models.inference import BLOCK, network_predictions
from pprop.models.network import network_inputs
from pprop.propagation import PowerIteration
from pprop.scale.steps import propagate_folder
from pprop.settings import STEPS
from pprop.training import Trained
from pprop.training.memory import memory_limit

FUNCTION = "pprop.scale.predict"


def predict(
    trained: Trained,
    graph: Graph | None = None,
    *,
    run: int = 0,
    steps: int | None = None,
    block: int = BLOCK,
    out: str | PathLike[str] | None = None,
) -> NDArray[np.float32]:
    """Return the logits of all nodes of a graph with the weights of one run.

    The network is computed for `block` nodes at a time, whose features alone are read, and writes its predictions to
    memory or to a file; K power steps then spread them, by `propagate_folder` where they do not fit into memory.

    Parameters
    ----------
    trained
        APPNP with the built-in network, trained in mini-batches or in full batches.
    graph
        None: that of the training. Features must be those of the training, column by column. Those of another graph are
        scaled as those of the training were.
    run
        Which of the runs.
    steps
        Power steps K; None: those of the model.
    block
        Nodes at a time.
    out
        A file for the predictions in numpy's format, ``.npy``, which is replaced; None: they are in memory.

    Returns
    -------
    The logits, shape (n, c), float32; with `out` the mapped file.

    Raises
    ------
    CapacityError
        Not even one class at a time fits into memory.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), labels=[0, 0, 0, 1, 1])
    >>> split = pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> trained = pprop.train(pprop.APPNP(hidden=4), graph, split, stopping=pprop.Stopping(max_epochs=3))
    >>> bool((predict(trained, block=2) == trained.logits[0]).all())
    True
    """
    if not isinstance(trained, Trained):
        reject("trained", FUNCTION, "what pprop.train or pprop.scale.train returned", describe(trained))
    model = trained.model
    if not isinstance(model, Model) or not isinstance(model.predictor, FeatureNetwork) or model.propagation is None:
        reject("trained", FUNCTION, "a training of pprop.APPNP() with the built-in network", describe(model))
    if not isinstance(model.propagation.solver, PowerIteration):
        reject("trained", FUNCTION, "a training of pprop.APPNP(), which predicts by power steps", describe(model))
    if graph is not None and not isinstance(graph, Graph):
        reject("graph", FUNCTION, "a Graph or None", describe(graph))
    at = check_int(run, "run", FUNCTION, low=0, high=len(trained.seeds) - 1)
    count = model.propagation.solver.steps if steps is None else STEPS.check(steps, FUNCTION)
    known = trained.graph.scaled()
    used = known if graph is None or graph is trained.graph else graph.scaled(known.scaling or "none")
    features = network_inputs(used, model.predictor.first_layer)
    weights = [torch.from_numpy(np.array(array[at]))[None] for array in trained.weights]
    if features.shape[1] != weights[0].shape[1]:
        reject("graph", FUNCTION, f"a graph with {weights[0].shape[1]} features", f"one with {features.shape[1]}")
    kernels, classes = choose_backend("auto", "cpu", FUNCTION).kernels, weights[len(model.predictor.hidden)].shape[2]
    found = _room((used.n_nodes, classes), out)
    nodes = check_int(block, "block", FUNCTION, low=1)
    network_predictions(model.predictor, features, weights, kernels, torch.from_numpy(found)[None], block=nodes)
    return _propagated(used, model.propagation, count, found, kernels, out)


def _propagated(
    graph: Graph, settings: PropagationSettings, steps: int, found: NDArray[Any], kernels: Kernels, out: object
) -> NDArray[np.float32]:
    """Return predictions (n, c) after power steps; in place where these fit into memory, else the file is replaced."""
    if steps == 0:
        return found
    if steps_bytes(found, graph) > memory_limit("cpu"):
        where = None if out is None else path_of(out, "out", FUNCTION)
        how = settings.alpha, steps, settings.normalization, settings.self_loops
        return propagate_folder(graph, found, *how, memory=memory_limit("cpu"), out=where).values
    propagation = kernels.steps(settings.operator(graph).transition, settings.alpha, steps)
    spread: Tensor = propagation.forward(torch.from_numpy(np.asarray(found))[None], None)
    found[:] = spread[0].numpy()
    return found


def steps_bytes(predictions: NDArray[Any], graph: Graph) -> int:
    """Return the bytes of power steps in memory: three states, and the transition matrix with its rows sorted anew."""
    return 3 * predictions.nbytes + 8 * graph.n_entries


def _room(shape: tuple[int, int], out: object) -> NDArray[np.float32]:
    if out is None:
        return np.empty(shape, dtype=np.float32)
    path = path_of(out, "out", FUNCTION)
    if path.suffix != ".npy":
        reject("out", FUNCTION, "a file name that ends in .npy", repr(str(path)))
    try:
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    except OSError as error:
        reject("out", FUNCTION, "a file that can be written", f"{str(path)!r} ({error.strerror})")
