"""`predict`: the logits of all nodes from trained weights, the network in blocks of nodes, then power steps."""

from __future__ import annotations

from os import PathLike

import numpy as np
import torch
from numpy.typing import NDArray

from pprop._validate import check_int, describe, reject
from pprop.graph import Graph
from pprop.kernels import choose_backend
from pprop.models.blocks import FUNCTION, block_logits
from pprop.models.inference import BLOCK
from pprop.training.result import Trained


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
    memory or to a file; K power steps then spread them, on a graph of 67 million entries or more by `propagate_folder`.

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
        reject("trained", FUNCTION, "what pprop.train returned", describe(trained))
    if graph is not None and not isinstance(graph, Graph):
        reject("graph", FUNCTION, "a Graph or None", describe(graph))
    at = check_int(run, "run", FUNCTION, low=0, high=len(trained.seeds) - 1)
    known = trained.graph.scaled()
    used = known if graph is None or graph is trained.graph else graph.scaled(known.scaling or "none")
    weights = [torch.from_numpy(np.array(array[at]))[None] for array in trained.weights]
    kernels = choose_backend("auto", "cpu", FUNCTION).kernels
    return block_logits(trained.model, used, weights, kernels, steps=steps, block=block, out=out)
