"""A Graph as two pandas frames, one row an edge and one row a node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pprop._errors import CapacityError, GraphError
from pprop._optional import require
from pprop._process import usable_memory
from pprop._validate import describe, reject
from pprop.graph.convert.links import GraphParts, edge_list

FUNCTION = "Graph.to_pandas"


class Tables(NamedTuple):
    """The edges and the nodes of a graph."""

    edges: Any
    nodes: Any

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `Graph.from_pandas` beside the two tables."""
        return dict(self.edges.attrs["from_pandas"])


def to_pandas(graph: GraphParts, id_column: str, label_column: str) -> Tables:
    """Return the frames of a graph."""
    pandas: Any = require("pandas", extra="convert", purpose=FUNCTION)
    source, target, weights = edge_list(graph)
    ids = np.arange(graph.n_nodes) if graph.ids is None else graph.ids
    edges = pandas.DataFrame({"source": ids[source], "target": ids[target]})
    if weights is not None:
        edges["weight"] = weights
    columns: dict[str, Any] = {id_column: ids}
    if graph.labels is not None:
        names = graph.class_names
        cells: list[Any] = [
            None if code < 0 else code if names is None else names[code] for code in graph.labels.tolist()
        ]
        columns[label_column] = pandas.array(cells, dtype="Int64" if names is None else "string")
    nodes = pandas.DataFrame(columns)
    values = _features(graph)
    if values is not None:
        names = graph.feature_names or tuple(f"x{at}" for at in range(values.shape[1]))
        taken = {*columns}
        for name in names:
            if name in taken:
                got = f"{describe(name)} for two columns"
                remedy = "Pass id_column=... or label_column=..., or other feature_names to graph.replace."
                reject("id_column", FUNCTION, "a name that no other column has", got, remedy=remedy)
            taken.add(name)
        nodes = pandas.concat([nodes, pandas.DataFrame(values, columns=list(names))], axis=1)
    edges.attrs["from_pandas"] = {
        "weight": None if weights is None else "weight",
        "directed": graph.directed,
        "id_column": id_column,
        "label_column": None if graph.labels is None else label_column,
        "label_kind": "category",
        "feature_columns": "numbers",
        "name": graph.name,
        "missing_labels": (),  # an empty cell is unknown in any case, and a class may be named NA
    }
    return Tables(edges, nodes)


def _features(graph: GraphParts) -> Any:
    features = graph.features
    if features is None:
        return None
    if features.ndim != 2:
        expected, got = "that of a graph whose features are a matrix", f"features of shape {features.shape}"
        reject("self", FUNCTION, expected, got, error=GraphError)
    if isinstance(features, np.ndarray):
        return features
    needed, memory = features.shape[0] * features.shape[1] * features.dtype.itemsize, usable_memory()
    if memory is not None and 2 * needed > memory:
        raise CapacityError(
            f"The features as a frame take {2 * needed / 1e9:.1f} GB, and this process may use {memory / 1e9:.1f} GB. "
            "Use graph.to_scipy(), which keeps them sparse, or graph.replace(features=None)."
        )
    return features.toarray()
