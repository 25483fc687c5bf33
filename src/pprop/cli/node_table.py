"""The predictions of a classifier for all nodes, as a table: id, class, one probability per class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pprop.cli.tables import Column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.estimators import NodeClassifier
    from pprop.graph import Graph
    from pprop.propagation import LiveGraph

__all__ = ["columns_of", "prediction_table"]


def prediction_table(model: NodeClassifier) -> dict[str, Column]:
    """Return named columns: ``id`` (``node``, the position, where the graph has no ids), ``class``, ``p_...``."""
    import numpy as np

    return columns_of(model, model.graph_, np.arange(model.graph_.n_nodes), model.classes_)


def columns_of(
    model: NodeClassifier | LiveGraph, graph: Graph, nodes: NDArray[np.int64], classes: NDArray[Any]
) -> dict[str, Column]:
    """Return the same of whatever predicts `nodes`, positions that are those of `graph` in its order."""
    first: dict[str, Column] = {"node": nodes.tolist()} if graph.ids is None else {"id": graph.ids.tolist()}
    probabilities = model.predict_proba(nodes)
    named = {f"p_{name}": probabilities[:, k] for k, name in enumerate(classes.tolist())}
    return {**first, "class": model.predict(nodes).tolist(), **named}
