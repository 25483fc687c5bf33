"""`predict`: the logits of all nodes from trained weights, the network in blocks of nodes, then power steps."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._errors import CapacityError
from pprop._validate import check_int, describe, reject
from pprop.graph import Graph
from pprop.graph.files import path_of
from pprop.kernels import Kernels, choose_backend
from pprop.models import FeatureNetwork, Model, PropagationSettings
from pprop.models.inference import BLOCK, network_predictions
from pprop.models.network import network_inputs
from pprop.propagation import PowerIteration
from pprop.settings import STEPS
from pprop.training import Trained
from pprop.training.memory import bytes_text, memory_limit

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
    memory or to a file; K power steps then spread them.

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
        The power steps of so many nodes and classes do not fit into memory.

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
    return _propagated(used, model.propagation, count, found, kernels)


def _propagated(
    graph: Graph, settings: PropagationSettings, steps: int, found: NDArray[Any], kernels: Kernels
) -> NDArray[np.float32]:
    """Spread predictions (n, c) in place. Steps whose entries are streamed from a folder belong here."""
    if steps == 0:
        return found
    needed = 3 * found.nbytes + 8 * graph.n_entries
    if needed > memory_limit("cpu"):
        raise CapacityError(
            f"{steps} power steps of {len(found):,} nodes and {found.shape[1]} classes need {bytes_text(needed)} in memory, "
            f"and {bytes_text(memory_limit('cpu'))} may be used. Use steps=0 and spread the predictions elsewhere."
        )
    propagation = kernels.steps(settings.operator(graph).transition, settings.alpha, steps)
    spread: Tensor = propagation.forward(torch.from_numpy(np.asarray(found))[None], None)
    found[:] = spread[0].numpy()
    return found


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
