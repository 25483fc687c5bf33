"""Arguments of ``Graph.from_scipy`` as people have them: dense matrices, labels of text or with gaps, frames."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import CapacityError, GraphError
from pprop._process import usable_memory
from pprop._validate import check_array, check_texts, describe, is_a, reject
from pprop.graph.attributes import MISSING_LABELS, check_codes, check_names
from pprop.graph.rows import NodeNames, in_node_order, index_of

BYTES_AN_ENTRY = 16  # of a sparse matrix: the value and its column


def as_sparse(adjacency: object, function: str) -> object:
    """Return a dense matrix of numbers as a sparse one; anything else as it is.

    >>> as_sparse(np.array([[0, 2.0], [0, 0]]), "Graph.from_scipy").nnz
    1
    """
    expected = "a scipy sparse matrix or a square array of numbers"
    if not isinstance(adjacency, np.ndarray):
        if not sparse.issparse(adjacency):
            reject("adjacency", function, expected, describe(adjacency), error=GraphError)
        return adjacency
    array = np.asarray(cast("NDArray[Any]", adjacency))  # a numpy.matrix, too
    if array.ndim != 2 or array.dtype.kind not in "buif":
        reject("adjacency", function, expected, describe(array), error=GraphError)
    needed, memory = BYTES_AN_ENTRY * int(np.count_nonzero(array)), usable_memory()
    if memory is not None and 2 * needed > memory:
        raise CapacityError(
            f"The matrix takes {2 * needed / 1e9:.1f} GB in sparse form, and this process may use {memory / 1e9:.1f} GB. "
            "Pass a scipy sparse matrix."
        )
    return sparse.csr_array(array)


def with_ids(adjacency: Any, ids: Any, function: str) -> tuple[object, Any]:
    """Return a matrix in a data frame of pandas as an array, its columns in the order of its rows, and their ids.

    Anything else is returned as it is. Ids that are given stay, and rows that are merely numbered have none.
    """
    if not is_a(adjacency, "pandas.DataFrame"):
        return adjacency, ids
    keys: list[Any] = adjacency.index.tolist()
    columns: list[Any] = adjacency.columns.tolist()
    if len(set(keys)) < len(keys) or sorted(map(repr, keys)) != sorted(map(repr, columns)):
        expected = "a data frame with the same distinct ids as index and as columns"
        got = describe(adjacency)
        remedy = "Pass .to_numpy() to go by position, or a table with a row for each edge to pprop.Graph.from_pandas."
        reject("adjacency", function, expected, got, remedy=remedy, error=GraphError)
    numbered = keys == list(range(len(keys)))
    return adjacency[keys].to_numpy(), keys if ids is None and not numbered else ids


def as_arrays(fields: dict[str, Any], n: int, function: str) -> dict[str, Any]:
    """Return fields of a Graph of n nodes with features and labels as arrays: frames encoded, names of classes as indices."""
    made = dict(fields)
    for field in ("features", "labels"):
        made[field] = by_nodes(fields["ids"], n, fields[field], field, function)
    if is_frame(made["features"]):
        made |= encoded_frame(made["features"], function)
    if made["labels"] is not None:
        classes = check_names(fields["class_names"], "class_names", function)
        made["labels"], made["class_names"] = as_class_indices(made["labels"], classes, function)
    return made


def is_frame(features: object) -> bool:
    """Whether features are a table with named columns: a data frame of pandas, polars or another library."""
    arrow = hasattr(features, "__arrow_c_stream__") or hasattr(features, "__dataframe__")
    return arrow and hasattr(features, "columns")


def is_matrix(features: object) -> bool:
    """Whether features are rows of numbers, or a frame of them, and not names of columns.

    >>> is_matrix([[1, 2], [3, 4]]), is_matrix(["age"]), is_matrix({"age": "number"}), is_matrix(np.array(["age"]))
    (True, False, False, False)
    """
    if sparse.issparse(features) or is_frame(features):
        return True
    if isinstance(features, list | tuple):
        return any(not isinstance(row, str) and hasattr(row, "__len__") for row in cast("list[object]", features)[:1])
    return is_a(features, "torch.Tensor") or (isinstance(features, np.ndarray) and features.dtype.kind in "buifc")


def encoded_frame(frame: object, function: str) -> dict[str, Any]:
    """Return the fields ``features``, ``feature_names`` and ``recipe`` of a Graph for a table of features."""
    from pprop.graph.features.recipe import Recipe
    from pprop.graph.tables.frames import table_of

    table = table_of(frame, "features", function)
    about: dict[str, Any] = {"typed": table.typed, "title": table.title, "function": function}
    recipe = Recipe.fit(table.columns, **about)
    recipe.advise_of_splits(table.columns, typed=table.typed, title=table.title)
    features, names = recipe.encode(table.columns, **about)
    return {"features": features if names else None, "feature_names": names or None, "recipe": recipe}


def by_nodes(ids: Any, n: int, data: Any, parameter: str, function: str) -> Any:
    """Return a frame or series with its rows in the order of n nodes and without an index; anything else as it is."""
    if index_of(data) is None:
        return data
    names = NodeNames.of_ids(ids, n)
    return in_node_order(data, names, parameter, function, GraphError).reset_index(drop=True)


def as_class_indices(
    labels: object, class_names: tuple[str, ...] | None, function: str, parameter: str = "labels"
) -> tuple[object, tuple[str, ...] | None]:
    """Return labels as class indices, with the names of the classes.

    Text is looked up among the names; without names the classes are sorted, by value where all are integers. Integers
    are indices already. None, NaN and pandas' NA are unknown, and so are the texts that `MISSING_LABELS` lists, unless
    a class is given that name.
    What is neither is returned as it came, to be refused.

    >>> as_class_indices(["b", None, "a"], None, "Graph.from_scipy")
    (array([ 1, -1,  0]), ('a', 'b'))
    >>> as_class_indices([1.0, float("nan"), 0.0], None, "Graph.from_scipy")
    (array([ 1, -1,  0]), None)
    """
    array = check_array(labels, parameter, function, "an integer array or an array of class names", GraphError)
    if array.ndim != 1 or array.dtype.kind not in "OUf":
        return array, class_names
    if array.dtype.kind == "f":
        gaps = np.isnan(array)
        whole = np.where(gaps, -1.0, array)
        if not gaps.any() or (whole != np.floor(whole)).any() or np.abs(whole).max(initial=0.0) > 2**53:
            return array, class_names
        return whole.astype(np.int64), class_names
    cells = [None if _unknown(cell, class_names or ()) else cell for cell in array.tolist()]
    known = [cell for cell in cells if cell is not None]
    if all(isinstance(cell, int | np.integer) and not isinstance(cell, bool) for cell in known):
        return np.asarray([-1 if cell is None else int(cell) for cell in cells], dtype=np.int64), class_names
    if not all(isinstance(cell, str) for cell in known):
        strange = next(cell for cell in known if not isinstance(cell, str))
        got = f"{describe(strange)} of type {type(strange).__name__}"
        reject(parameter, function, "all text or all integers, with None for unknown", got, error=GraphError)
    texts = cast("list[str]", known)
    check_texts(texts, parameter, function, GraphError)
    names = class_names if class_names is not None else tuple(_sorted_names(set(texts)))
    index = {name: code for code, name in enumerate(names)}
    for text in texts:
        if text not in index:
            got = f"the label {describe(text)}"
            reject(parameter, function, "text among class_names", got, error=GraphError)
    return np.asarray([-1 if cell is None else index[cast("str", cell)] for cell in cells], dtype=np.int64), names


def check_class_indices(labels: object, function: str, parameter: str = "labels", remedy: str = "") -> None:
    """Refuse labels that are integers with nearly as many values as nodes; all else is checked elsewhere.

    >>> check_class_indices(np.arange(3000), "Graph.from_scipy")
    Traceback (most recent call last):
        ...
    pprop._errors.GraphError: The 'labels' parameter of Graph.from_scipy must be one class per node. Got 3,000 different ...
    """
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iu":
        codes = cast("NDArray[np.int64]", labels)
        check_codes(codes[codes >= 0], parameter, function, error=GraphError, remedy=remedy)


def _unknown(cell: object, class_names: tuple[str, ...]) -> bool:
    if isinstance(cell, str):
        return cell in MISSING_LABELS and cell not in class_names
    return cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")


def _sorted_names(names: set[str]) -> list[str]:
    try:
        if all(str(int(name)) == name for name in names):
            return sorted(names, key=int)
    except ValueError:
        pass
    return sorted(names)
