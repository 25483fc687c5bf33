"""Graphs of PyTorch Geometric: a Data, or its edge_index alone, as the arguments of a Graph, and a Graph as a Data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import GraphError
from pprop._optional import require
from pprop._validate import check_array, check_bool, check_int, describe, is_a, reject
from pprop.graph.convert.arguments import check_class_indices, is_frame
from pprop.graph.convert.links import EdgeList, GraphParts, check_weights, edge_list, matrix_of

FUNCTION = "Graph.from_pyg"
# Attributes of a Data that are arguments of a Graph by the same name, as `to_pyg` writes them.
LISTS = ("ids", "class_names", "feature_names")


def from_pyg(
    data: object, *, num_nodes: int | None, edge_weight: object, features: object, directed: bool | None
) -> dict[str, Any]:
    """Return the arguments of ``Graph.from_scipy`` for a Data or an edge_index."""
    if num_nodes is not None:
        num_nodes = check_int(num_nodes, "num_nodes", FUNCTION, low=1)
    if directed is not None:
        directed = check_bool(directed, "directed", FUNCTION)
    if is_a(data, "torch_geometric.data.HeteroData"):
        got = "a HeteroData, which has nodes or edges of several kinds"
        remedy = "data.to_homogeneous() makes a Data of it."
        reject("data", FUNCTION, "a torch_geometric.data.Data with nodes of one kind", got, remedy=remedy)
    if is_a(data, "torch_geometric.data.Data"):
        return _from_data(cast("Any", data), num_nodes, edge_weight, features, directed)
    ends = _edge_index(data, "data")
    shape = getattr(features, "shape", None)
    rows = int(shape[0]) if shape and num_nodes is None else 0
    n = _n_nodes(ends, max(rows, int(ends.max(initial=-1)) + 1) if rows else num_nodes, None)
    weights = None if edge_weight is None else _weights(edge_weight, "edge_weight", ends.shape[1])
    matrix = matrix_of(_edges(ends, weights), n, listed="both", directed=directed, function=FUNCTION)
    return matrix | ({} if features is None else {"features": _features(features, "features")})


def _from_data(
    data: Any, num_nodes: int | None, edge_weight: object, features: object, directed: bool | None
) -> dict[str, Any]:
    if data.edge_index is None:
        remedy = "Of a Data with an 'adj_t', row, col, _ = data.adj_t.t().coo() and torch.stack([row, col]) are one."
        reject("data", FUNCTION, "a Data with an 'edge_index'", "one without", remedy=remedy)
    ends = _edge_index(data.edge_index, "data.edge_index")
    with warnings.catch_warnings():  # where only the edges tell how many nodes there are, as documented
        warnings.simplefilter("ignore")
        known = data.num_nodes
    n = _n_nodes(ends, num_nodes, known)
    n_edges, labels = ends.shape[1], data.y
    weights = _edge_weights(data, n_edges) if edge_weight is None else _weights(edge_weight, "edge_weight", n_edges)
    rows = _features(data.x, "data.x") if features is None else _features(features, "features")
    if directed is None and isinstance(getattr(data, "directed", None), bool):
        directed = data.directed
    return {
        **matrix_of(_edges(ends, weights), n, listed="both", directed=directed, function=FUNCTION),
        "features": rows,
        "labels": None if labels is None else _labels(labels, n),
        "name": data.name if isinstance(getattr(data, "name", None), str) else None,
        **{field: _list(getattr(data, field, None)) for field in LISTS},
    }


def to_pyg(graph: GraphParts, masks: Mapping[str, object] | None) -> Any:
    """Return a ``torch_geometric.data.Data``."""
    function = "Graph.to_pyg"
    with warnings.catch_warnings():  # it looks for its own extensions, and says which it does not find
        warnings.simplefilter("ignore")
        geometric: Any = require("torch_geometric.data", extra="bench", purpose=function)
    import torch

    source, target, weights = edge_list(graph, both_ways=True)
    data = geometric.Data(
        edge_index=torch.from_numpy(np.stack([source, target])), num_nodes=graph.n_nodes, directed=graph.directed
    )
    if weights is not None:
        data.edge_weight = torch.from_numpy(weights.copy())
    features = graph.features
    if isinstance(features, np.ndarray):
        data.x = torch.from_numpy(features.copy())
    elif features is not None:
        entries = features.tocoo()
        places = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
        values = torch.from_numpy(entries.data.copy())
        made = torch.sparse_coo_tensor(places, values, size=features.shape, check_invariants=True)
        data.x = made.coalesce()
    if graph.labels is not None:
        data.y = torch.from_numpy(graph.labels.copy())
    if graph.ids is not None:
        integers = graph.ids.dtype.kind == "i"
        data.ids = torch.from_numpy(graph.ids.copy()) if integers else graph.ids.tolist()
    for field in ("class_names", "feature_names", "name"):
        value = getattr(graph, field)
        if value is not None:
            data[field] = value if isinstance(value, str) else list(value)
    for key, mask in () if masks is None else masks.items():
        data[key] = torch.from_numpy(_mask(mask, key, graph.n_nodes, function))
    return data


def _mask(mask: object, key: object, n: int, function: str) -> NDArray[np.bool_]:
    expected = f"a mapping of names, such as 'train_mask', to boolean arrays of shape ({n},)"
    array = _array(mask, "masks", function)
    if not isinstance(key, str) or not key.isidentifier():
        reject("masks", function, expected, f"the name {describe(key)}")
    if key in ("x", "y", "edge_index", "edge_weight", "directed", "num_nodes", "name", *LISTS):
        reject("masks", function, expected, f"the name {key!r}, under which the graph itself is kept,")
    if array.dtype.kind != "b" or array.shape != (n,):
        reject("masks", function, expected, f"{describe(array)} under {key!r}")
    return array.copy()


def _array(value: object, parameter: str, function: str = FUNCTION) -> NDArray[Any]:
    """Return a tensor, wherever it is, or anything like an array as numpy's."""
    if is_a(value, "torch.Tensor"):
        tensor = cast("Any", value).detach().cpu()
        value = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor  # numpy has no such type
    return check_array(value, parameter, function, "a tensor or array")


def _edge_index(given: object, parameter: str) -> NDArray[Any]:
    expected = "an edge_index, integers of shape (2, edges)"
    if parameter == "data":
        expected = f"a torch_geometric.data.Data or {expected}"
    if is_a(given, "torch.Tensor") and str(cast("Any", given).layout) != "torch.strided":
        remedy = "adjacency.to_sparse_coo().indices() of its transpose is one."
        reject(parameter, FUNCTION, expected, "a sparse tensor", remedy=remedy, error=GraphError)
    array = _array(given, parameter)
    if array.ndim != 2 or array.shape[0] != 2 or (array.size and array.dtype.kind not in "iu"):
        remedy = "Pass the transpose." if array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iu" else ""
        got = describe(array if array.shape else given)
        reject(parameter, FUNCTION, expected, got, remedy=remedy, error=GraphError)
    return array.astype(np.int64)


def _n_nodes(ends: NDArray[np.int64], wanted: int | None, known: int | None) -> int:
    n = wanted if wanted is not None else known if known is not None else int(ends.max(initial=-1)) + 1
    if wanted is not None and known is not None and known > wanted:
        reject("num_nodes", FUNCTION, f"at least {known}, the number of nodes of the data", str(wanted))
    outside = ends[(ends < 0) | (ends >= n)]
    if outside.size:
        expected = f"an edge_index of node positions from 0 to {n - 1}" if n else "an edge_index of node positions"
        reject("data", FUNCTION, expected, f"the position {outside[0]}", error=GraphError)
    if n == 0:
        reject("data", FUNCTION, "a graph with at least one node", "none", remedy="Pass num_nodes=...")
    return n


def _edges(ends: NDArray[np.int64], weights: NDArray[np.float64] | None) -> EdgeList:
    return EdgeList(ends[0], ends[1], weights)


def _edge_weights(data: Any, n_edges: int) -> NDArray[np.float64] | None:
    key = next((key for key in ("edge_weight", "edge_attr") if getattr(data, key, None) is not None), None)
    if key is None:
        return None
    return _weights(data[key], f"data.{key}", n_edges)


def _weights(given: object, parameter: str, n_edges: int) -> NDArray[np.float64]:
    """Return one weight per edge, shape (edges,), also given as one column."""
    array = _array(given, parameter)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n_edges,):
        expected = f"one weight per edge, shape ({n_edges},)"
        remedy = f"Choose one column: data.edge_weight = {parameter}[:, 0], or set {parameter} = None."
        if not parameter.startswith("data."):
            remedy = "Choose one column, such as edge_weight[:, 0]." if array.ndim == 2 else ""
        reject(parameter, FUNCTION, expected, describe(array), remedy=remedy, error=GraphError)
    return check_weights(array, parameter, FUNCTION)


def _features(x: object, parameter: str) -> object:
    """Return x as an array or, where it is a sparse tensor, as a scipy matrix; matrices of scipy and frames stay."""
    if x is None or sparse.issparse(x) or is_frame(x):
        return x
    if not is_a(x, "torch.Tensor") or str(cast("Any", x).layout) == "torch.strided":
        return _array(x, parameter)
    tensor = cast("Any", x).detach().cpu().to_sparse_coo().coalesce()
    values, places = _array(tensor.values(), parameter), tensor.indices().numpy()
    if places.shape[0] != 2 or values.ndim != 1:
        reject(parameter, FUNCTION, "a matrix of node features", describe(x), error=GraphError)
    return sparse.csr_array((values, (places[0], places[1])), shape=tuple(tensor.shape))


def _labels(y: object, n: int) -> NDArray[Any]:
    array = _array(y, "data.y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    expected = f"a class index per node, integers of shape ({n},), with -1 for unknown"
    if array.ndim == 2 and array.shape[0] == n:
        got = f"{array.shape[1]} columns, several labels a node"
        remedy = "Choose one column, data.y = data.y[:, 0], or leave them out with data.y = None."
        reject("data.y", FUNCTION, expected, got, remedy=remedy, error=GraphError)
    if array.shape != (n,):
        remedy = "Labels of whole graphs, or of edges, are left out with data.y = None."
        reject("data.y", FUNCTION, expected, describe(array), remedy=remedy, error=GraphError)
    if array.dtype.kind == "f":
        remedy = (
            "Where they are classes, data.y = data.y.long(); targets of a regression are left out with data.y = None."
        )
        reject("data.y", FUNCTION, expected, describe(array), remedy=remedy, error=GraphError)
    remedy = (
        "Leave them out with data.y = None. Codes of classes are text in graph.replace(labels=y.numpy().astype(str))."
    )
    check_class_indices(array, FUNCTION, "data.y", remedy)
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _list(value: object) -> object:
    return _array(value, "data.ids") if is_a(value, "torch.Tensor") else value
