"""The predictions of a classifier for all nodes, as a table: id, class, one probability per class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pprop.cli.tables import Column

if TYPE_CHECKING:
    from pprop.estimators import NodeClassifier

__all__ = ["prediction_table"]


def prediction_table(model: NodeClassifier) -> dict[str, Column]:
    """Return named columns: ``id`` (``node``, the position, where the graph has no ids), ``class``, ``p_...``."""
    import numpy as np

    graph = model.graph_
    nodes = np.arange(graph.n_nodes)
    first: dict[str, Column] = {"node": nodes.tolist()} if graph.ids is None else {"id": graph.ids.tolist()}
    probabilities = model.predict_proba(nodes)
    named = {f"p_{name}": probabilities[:, k] for k, name in enumerate(model.classes_.tolist())}
    return {**first, "class": model.predict(nodes).tolist(), **named}
