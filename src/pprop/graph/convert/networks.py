"""Graphs of networkx and igraph: their nodes, edges and attributes as the arguments of a Graph, and a Graph as one."""

from __future__ import annotations

import json
import numbers
import warnings
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import GraphError
from pprop._optional import require
from pprop._validate import check_bool, counted, describe, reject
from pprop.graph.attributes import LabelKind
from pprop.graph.convert.links import EdgeList, GraphParts, check_instance, check_weights, edge_list, matrix_of
from pprop.graph.convert.node_columns import NodeColumns

# What `to_networkx` writes beside the nodes: facts that nodes and edges alone do not tell, as JSON under this key.
FACTS = "pprop"
LABEL, FEATURES, WEIGHT = "label", "x", "weight"


def from_networkx(
    graph: object,
    *,
    weight: str | None,
    label: str | None,
    label_kind: LabelKind,
    features: object,
    directed: bool | None,
    function: str,
) -> dict[str, Any]:
    """Return the arguments of ``Graph.from_scipy`` for a graph of networkx."""
    network = check_instance(graph, "networkx.Graph", "g", function)
    keys: list[object] = list(network)
    _check_nodes(keys, function)
    facts = _facts(network)
    index = {key: at for at, key in enumerate(keys)}
    if weight is None:
        ends, values = iter(network.edges()), None
    else:
        triples = list(iter(network.edges(data=weight)))  # whose length is found by going through them all
        ends, values = [(s, t) for s, t, _ in triples], [value for _, _, value in triples]
    pairs = np.asarray([(index[s], index[t]) for s, t in ends], dtype=np.int64).reshape(-1, 2)
    columns = NodeColumns([dict(record) for _, record in network.nodes(data=True)], function)
    name = getattr(network, "name", None)
    return {
        **_matrix(pairs, values, len(keys), weight, network, directed, function),
        **columns.labels_and_features(label, label_kind, features, facts),
        "ids": None if facts.get("ids") is False and keys == list(range(len(keys))) else keys,
        "name": name if isinstance(name, str) and name else None,
    }


def from_igraph(
    graph: object,
    *,
    weight: str | None,
    label: str | None,
    label_kind: LabelKind,
    features: object,
    directed: bool | None,
) -> dict[str, Any]:
    """Return the arguments of ``Graph.from_scipy`` for a graph of igraph."""
    function = "Graph.from_igraph"
    network = check_instance(graph, "igraph.Graph", "g", function)
    n = network.vcount()
    attributes: dict[str, list[object]] = {name: network.vs[name] for name in network.vs.attributes()}
    keys = attributes.pop("name", None)
    if keys is None:
        _check_nodes(list(range(n)), function)
    else:
        _check_nodes(keys, function, "vertices have names that are")
    values = None
    if weight is not None and weight in network.es.attributes():
        values = network.es[weight]
    elif weight is not None:
        values = [None] * network.ecount()
    pairs = np.asarray(network.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    records = [dict(zip(attributes, row, strict=True)) for row in zip(*attributes.values(), strict=True)]
    columns = NodeColumns(records or [{} for _ in range(n)], function)
    name = network["name"] if "name" in network.attributes() else None
    return {
        **_matrix(pairs, values, n, weight, network, directed, function),
        **columns.labels_and_features(label, label_kind, features, {}),
        "ids": keys,
        "name": name if isinstance(name, str) and name else None,
    }


def to_networkx(graph: GraphParts) -> Any:
    """Return a ``networkx.Graph`` or ``networkx.DiGraph``."""
    networkx: Any = require("networkx", extra="convert", purpose="Graph.to_networkx")
    network = networkx.DiGraph() if graph.directed else networkx.Graph()
    keys: list[Any] = list(range(graph.n_nodes)) if graph.ids is None else graph.ids.tolist()
    records: list[dict[str, object]] = [{} for _ in keys]
    if graph.labels is not None:
        for record, code in zip(records, graph.labels.tolist(), strict=True):
            if code >= 0:
                record[LABEL] = code if graph.class_names is None else graph.class_names[code]
    if graph.features is not None:
        for record, row in zip(records, _rows(graph.features), strict=True):
            record[FEATURES] = row
    network.add_nodes_from(zip(keys, records, strict=True))
    source, target, weights = edge_list(graph)
    ends = zip([keys[at] for at in source.tolist()], [keys[at] for at in target.tolist()], strict=True)
    if weights is None:
        network.add_edges_from(ends)
    else:
        network.add_weighted_edges_from(
            ((s, t, w) for (s, t), w in zip(ends, weights.tolist(), strict=True)), weight=WEIGHT
        )
    if graph.name is not None:
        network.graph["name"] = graph.name
    network.graph[FACTS] = json.dumps(_facts_of(graph))
    return network


def _rows(features: Any) -> Iterable[object]:
    """Yield the features of node after node: an array, or of a sparse matrix the nonzero values by column."""
    if isinstance(features, np.ndarray):
        yield from cast("NDArray[Any]", features).copy()
        return
    for start, end in zip(features.indptr[:-1].tolist(), features.indptr[1:].tolist(), strict=True):
        yield dict(zip(features.indices[start:end].tolist(), features.data[start:end].tolist(), strict=True))


def _facts_of(graph: GraphParts) -> dict[str, object]:
    features = graph.features
    return {
        "ids": graph.ids is not None,
        "label": None if graph.labels is None else LABEL,
        "class_names": graph.class_names,
        "features": None if features is None else FEATURES,
        "feature_names": graph.feature_names,
        # of a sparse matrix, whose rows are mappings
        "shape": None if not sparse.issparse(features) else cast("Any", features).shape[1],
        "dtype": None if features is None else str(features.dtype),
    }


def _facts(network: Any) -> dict[str, Any]:
    """Return what `to_networkx` wrote beside the nodes; nothing where it is not of that form, as from a file."""
    text = network.graph.get(FACTS)
    try:
        found: object = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    facts = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    width = facts.get("shape")
    sound = (
        isinstance(facts.get("ids"), bool),
        facts.get("label") in (None, LABEL),
        facts.get("features") in (None, FEATURES),
        facts.get("dtype") in ((None,) if facts.get("features") is None else ("float32", "float64")),
        width is None or (isinstance(width, int) and 0 <= width <= np.iinfo(np.int32).max),
        all(_are_names(facts.get(key)) for key in ("class_names", "feature_names")),
    )
    return facts if all(sound) else {}


def _are_names(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, str) for one in cast("list[Any]", value)))


def _check_nodes(keys: list[Any], function: str, what: str = "nodes are") -> None:
    if not keys:
        reject("g", function, "a graph with at least one node", "an empty graph", error=GraphError)
    if {type(key) for key in keys} in ({str}, {int}):
        return
    texts = sum(isinstance(key, str) for key in keys)
    strange = next((k for k in keys if not isinstance(k, numbers.Integral | str) or isinstance(k, bool)), None)
    integers = sum(isinstance(key, numbers.Integral) and not isinstance(key, bool) for key in keys)
    if len(keys) in (texts, integers):
        return
    got = (
        f"{counted(texts, 'string')} and {counted(integers, 'integer')}"
        if texts + integers == len(keys)
        else f"{describe(strange)} of type {type(strange).__name__}"
    )
    remedy = (
        "networkx.relabel_nodes(g, str) makes strings of them, networkx.convert_node_labels_to_integers(g) numbers."
    )
    if "igraph" in function:
        remedy = "g.vs['name'] = [str(name) for name in g.vs['name']] makes strings of them."
    reject("g", function, f"a graph whose {what} all integers or all strings", got, remedy=remedy, error=GraphError)


def _matrix(
    pairs: NDArray[np.int64],
    values: list[Any] | None,
    n: int,
    weight: str | None,
    network: Any,
    directed: bool | None,
    function: str,
) -> dict[str, Any]:
    if directed is not None:
        directed = check_bool(directed, "directed", function)
    edges = EdgeList(pairs[:, 0], pairs[:, 1], None if values is None else _weights(values, weight, function))
    listed = "directed" if network.is_directed() else "once"
    return matrix_of(edges, n, listed=listed, directed=directed, function=function)


def _weights(values: list[Any], weight: object, function: str) -> NDArray[np.float64] | None:
    """Return the weights of all edges; where none has the attribute, None."""
    missing = sum(value is None for value in values)
    if missing == len(values):
        if values and weight != WEIGHT:
            got = f"{describe(weight)}, which no edge has"
            reject("weight", function, "the name of an edge attribute, or None for an unweighted graph", got)
        return None
    if missing:
        text = f"{counted(missing, 'edge')} of {len(values):,} {'has' if missing == 1 else 'have'} no {weight!r}"
        warnings.warn(f"{function}: {text}; each counts as 1.", stacklevel=5)
    for value in values:
        if not isinstance(value, numbers.Real | None) or isinstance(value, bool):
            got = f"{describe(value)} of type {type(value).__name__} under {weight!r}"
            reject("weight", function, "an edge attribute of numbers", got, error=GraphError)
    return check_weights(np.asarray([1.0 if value is None else float(value) for value in values]), "weight", function)
