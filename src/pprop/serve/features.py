"""The features of one node as a request gives them: by name, or all in their order."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import InputError
from pprop._validate import nearest
from pprop.estimators.decomposed import Decomposed
from pprop.graph import Graph
from pprop.graph.features.recipe import Recipe
from pprop.serve.faults import invalid, unusable

Given = Mapping[str, Any] | Sequence[float]
_WARNINGS = threading.Lock()  # who catches warnings changes the state of the whole process
_SHOWN = 60


@final
class FeatureRow(NamedTuple):
    """The features of one node, shape (1, f), with the names that they were made of and those that the model leaves out."""

    values: Any
    used: list[str]
    left_out: list[str]


def feature_row(graph: Graph, given: Given) -> FeatureRow:
    """Return the features of one node, as the graph has those of the others.

    Parameters
    ----------
    graph
        With features in columns, and a recipe where they were made from a table.
    given
        All numbers in the order of the features; or values by name. Where there is a recipe these are cells of the columns
        of the table, and one that is not given is missing; otherwise numbers, and one that is not given is zero.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> graph = Graph.from_scipy(sp.csr_array((2, 2)), features=np.eye(2), feature_names=["x", "y"])
    >>> feature_row(graph, {"y": 3.0})
    FeatureRow(values=array([[0., 3.]]), used=['y'], left_out=[])
    """
    shape = graph.feature_shape
    if shape is None or len(shape) != 2:
        raise unusable("The nodes of this graph have no columns of features, so a new one cannot be described.")
    width, recipe = int(shape[1]), graph.recipe
    if not isinstance(given, Mapping):
        if len(given) != width:
            raise invalid(f"A node of this graph has {width:,} features. Got {len(given):,} instead.")
        return FeatureRow(_row(graph, np.asarray(given, dtype=np.float64)), [], [])
    names = graph.feature_names or tuple(str(column) for column in range(width))
    place = {name: column for column, name in enumerate(names)}
    if recipe is not None and not all(name in place for name in given):
        return _encoded(graph, recipe, given)
    row = np.zeros(width)
    for name, value in given.items():
        if name not in place:
            hint = nearest(name[:_SHOWN], names) or f"The first is {names[0]!r}, the last {names[-1]!r}."
            raise invalid(f"There is no feature {name[:_SHOWN]!r}. {hint}")
        if isinstance(value, str) or value is None:
            raise invalid(f"The feature {name!r} is a number. Got {value!r:.60} instead.")
        row[place[name]] = _number(value)
    return FeatureRow(_row(graph, row), list(given), [])


def network_row(parts: Decomposed, row: FeatureRow) -> NDArray[np.float64]:
    """Return what the network predicts for one node alone, shape (1, c); not finite where its features are too large."""
    with np.errstate(all="ignore"):
        return parts.alone(Graph.from_scipy(sparse.csr_array((1, 1)), features=row.values)).astype(np.float64)


def _number(value: float) -> float:
    """Return a number of a request, which may be an integer beyond all floats: then infinity, which `_row` refuses."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _row(graph: Graph, values: Any) -> Any:
    """Return numbers in the form and the precision of the features of the graph."""
    known: Any = graph.features
    wide = known.dtype if known.dtype.kind == "f" and known.dtype.itemsize >= 4 else np.dtype(np.float32)
    with np.errstate(over="ignore"):
        row = values[None].astype(wide)
    if not np.isfinite(row).all():
        raise invalid("A feature is too large for the numbers of this graph.")
    return sparse.csr_array(row) if sparse.issparse(known) else row


def _encoded(graph: Graph, recipe: Recipe, given: Mapping[str, Any]) -> FeatureRow:
    """Return the features that the recipe makes of the cells of one row of a table."""
    from pprop.graph.tables.arrow import pa

    known = [column.name for column in recipe.columns]
    for name in given:
        if name not in known and name not in recipe.others:
            hint = nearest(name[:_SHOWN], known)
            raise invalid(
                f"There is no column {name[:_SHOWN]!r} in the table that the model was trained on. {hint}".rstrip()
            )
    used = [name for name in given if name in recipe.encoders]
    cells = {name: pa.chunked_array([pa.array([_cell(given.get(name))], pa.string())]) for name in recipe.encoders}
    try:
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of new categories and missing cells, which are allowed here
            block, _ = recipe.encode(cells, typed=False, title="the request", function="predict-new")
    except InputError as error:
        raise invalid(str(error)) from error
    left_out = [name for name in given if name not in recipe.encoders]
    dense = block.toarray() if sparse.issparse(block) else block
    return FeatureRow(_row(graph, np.asarray(dense, dtype=np.float64)[0]), used, left_out)


def _cell(value: Any) -> str:
    """Return a value as a table in text has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
