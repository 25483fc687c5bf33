"""An edge table and a node table to the parts of a Graph."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import Advice, FormatError, GraphError, InputError, PpropError, Remedy, UnknownNodeError, together
from pprop._validate import check_bool, check_choice, check_sequence, counted, describe, listed, reject
from pprop.graph.attributes import (
    LABEL_KINDS,
    MISSING_LABELS,
    Csr,
    LabelKind,
    check_features,
    check_labels,
    check_missing,
    seal,
)
from pprop.graph.convert.arguments import as_class_indices, by_nodes, check_class_indices, encoded_frame, is_frame
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.scaling import STORED, row_blocks
from pprop.graph.features.structure import DEGREES, degree_columns
from pprop.graph.files import existing_file, is_array_file, mapped_array
from pprop.graph.rows import check_same_index, index_of, numbers_rows
from pprop.graph.tables.arrow import Column, pa
from pprop.graph.tables.classes import read_labels
from pprop.graph.tables.csr import csr_of_edges
from pprop.graph.tables.frames import list_column, table_of
from pprop.graph.tables.keys import (
    NORMALIZE,
    alike,
    id_array,
    join,
    look_up_nodes,
    new_nodes,
    number_nodes,
    repeated_row,
    same_letters,
    spelled_alike,
)
from pprop.graph.tables.likely import likely_columns, likely_ends
from pprop.graph.tables.table import DataTable, is_text

UnknownNodes: TypeAlias = Literal["error", "drop", "add"]
FeatureColumns: TypeAlias = str | Sequence[str] | Mapping[str, str] | Recipe
FROM_EDGES = "Graph.from_edges"
WEIGHTS = re.compile(r"\s*(.*[^a-z])?weights?\s*", re.IGNORECASE)  # "Weight", "edge_weight"
BLOCK = "features"  # the name of the column that an array of features becomes beside others
UNKNOWN_NODES = ("error", "drop", "add")


@final
@dataclass(frozen=True)
class TableColumns:
    """What the columns of an edge table and a node table mean: the arguments of `function`, checked."""

    function: str
    source: str = "source"
    target: str = "target"
    weight: str | None = None
    directed: bool = False
    id_column: str = "id"
    label_column: str | None = None
    label_kind: LabelKind = "auto"
    feature_columns: FeatureColumns = "auto"
    features: object = None  # beside those of the columns: an array with one row per node, or a frame
    missing_labels: Sequence[str] = MISSING_LABELS
    unknown_nodes: UnknownNodes = "error"
    degree: bool = False
    files: tuple[Path, ...] = field(init=False, default=())  # the .npy files of features, instead of `features`

    def __post_init__(self) -> None:
        function = self.function
        object.__setattr__(self, "directed", check_bool(self.directed, "directed", function))
        object.__setattr__(self, "degree", check_bool(self.degree, "degree", function))
        files = _feature_files(self.features, function)
        if files:
            object.__setattr__(self, "files", files)
            object.__setattr__(self, "features", None)
        beside = "features" if files else "degree" if self.degree else None
        if beside and isinstance(self.feature_columns, str) and self.feature_columns == "numbers":
            reject(beside, function, "left out with feature_columns='numbers'", describe(getattr(self, beside)))
        object.__setattr__(self, "missing_labels", check_missing(self.missing_labels, function))
        object.__setattr__(self, "feature_columns", _check_features(self.feature_columns, function))
        check_choice(self.label_kind, "label_kind", function, LABEL_KINDS)
        check_choice(self.unknown_nodes, "unknown_nodes", function, UNKNOWN_NODES)
        if self.source == self.target:
            reject("target", function, "another column than source", f"{describe(self.target)} for both")
        if self.label_column is not None and self.label_column == self.id_column:
            got = f"{describe(self.label_column)} for both"
            reject("label_column", function, "another column than that of the ids", got)

    @property
    def of_edges(self) -> tuple[object, ...]:
        """The columns of the edge table that are read."""
        return tuple(name for name in (self.source, self.target, self.weight) if name is not None)

    def check_alone(self) -> None:
        """Refuse arguments that name columns of a node table where there is none."""
        named = {
            "label_column": self.label_column,
            "feature_columns": None if self.feature_columns in ("auto", "numbers") else self.feature_columns,
            "features": self.files or None,
            "degree": self.degree or None,
        }
        given = next((name for name, value in named.items() if value is not None), None)
        if given is not None:
            expected = "left out when there is no node table"
            reject(given, self.function, expected, describe(named[given]), remedy="Pass nodes=... too.")

    def parts(self, edges: DataTable, nodes: DataTable | None) -> dict[str, Any]:
        """Return the arguments of `Graph._of_parts`, but for the name."""
        self._check_ends(edges)
        if nodes is not None:
            self._check_ids(edges, nodes)
        with ThreadPoolExecutor(2) as threads:
            one, other = threads.map(edges.keys, (self.source, self.target), ("source", "target"))
        ends = one, other
        del one, other
        weights = None if self.weight is None else _weights(edges, self.weight)
        attributes: dict[str, Any] = {}
        if nodes is None:
            _check_order("features", self.features, self.function)
            if not edges.n_rows:
                edges.complain("an edge list with at least one edge, or come with a node table", "no rows")
            source, target, ids = number_nodes(*ends)
        else:
            nodes = self.with_files(nodes, nodes.n_rows)
            ids = _distinct_ids(nodes, self.id_column)
            source, target = look_up_nodes(*ends, ids)
            strange = (source < 0) | (target < 0)
            if strange.any():
                if self.unknown_nodes == "error":
                    row = int(np.argmax(strange))
                    key = str(ends[0 if source[row] < 0 else 1][row].as_py())
                    self.refuse_unknown(
                        edges, nodes.path or nodes.title, key, row, spelled_alike(key, ids), int(strange.sum())
                    )
                if self.unknown_nodes == "add":
                    n_known, ids = len(ids), join(*alike(ids, new_nodes(*ends, ids)))
                    more = f"{counted(len(ids) - n_known, 'node')} of {edges.title}"
                    warnings.warn(f"Added {more} that the node table does not have, without features.", stacklevel=4)
                    source, target = look_up_nodes(*ends, ids)
                else:
                    lost = f"{counted(int(strange.sum()), 'edge')} of {edges.title}"
                    warnings.warn(f"Left out {lost} to nodes that the node table does not have.", stacklevel=4)
                    source, target = source[~strange], target[~strange]
                    weights = None if weights is None else weights[~strange]
        same, key = same_letters(ids)
        if same:
            several = (
                f"{counted(same, 'id')} of {(edges if nodes is None else nodes).title} {'is' if same == 1 else 'are'}"
            )
            what = f"{several} the same letters as another one in another Unicode form (such as {key!r})"
            warnings.warn(f"{what}: each is a node of its own. If they are one, {NORMALIZE}", stacklevel=4)
        keys = id_array(ids, edges.title if nodes is None else nodes.title)
        beside = by_nodes(keys, len(keys), self.features, "features", self.function)
        del ends
        csr = csr_of_edges(source, target, len(ids), weights, directed=self.directed)
        if csr[2] is not None and not np.isfinite(csr[2]).all():
            got = f"weights in {edges.title} whose sum is beyond the largest float"
            reject(edges.parameter, self.function, "an edge list of finite weights", got, error=GraphError)
        if nodes is not None:
            table = padded(nodes, len(ids) - nodes.n_rows)
            attributes = self._attributes(self._with_degree(table, csr), beside)
        elif beside is not None:
            attributes = matrix_fields(beside, len(keys), self.function)
        if self.weight is None and not isinstance(self.feature_columns, Recipe):  # else it was said before the training
            caution_weights(edges, stacklevel=5)
        return {"csr": csr, "directed": self.directed, "ids": seal(keys), **attributes}

    def _check_ends(self, edges: DataTable) -> None:
        """Refuse a table without the columns of the ends and the weights, and propose the ends by their names."""
        wanted = {"source": self.source, "target": self.target, "weight": self.weight}
        error = edges.lacks({parameter: name for parameter, name in wanted.items() if name is not None})
        if error is not None:
            likely = likely_ends(error.columns)
            found = {end: likely[end] for end in error.missing if end in likely}
            if found and all(parameter == name for parameter, name in error.missing.items()):  # nobody named them
                error.remedies = (Remedy(settings=found),)
            raise error

    def _check_ids(self, edges: DataTable, nodes: DataTable) -> None:
        """Refuse a node table without the columns of ids and labels, and propose that of the ids by its name and values."""
        wanted = {"id_column": self.id_column, "label_column": self.label_column}
        error = nodes.lacks({parameter: name for parameter, name in wanted.items() if name is not None})
        if error is not None:
            if error.missing.get("id_column") == type(self).id_column:  # nobody named it
                likely = likely_columns(edges, nodes, {"source": self.source, "target": self.target})
                found = {name: likely[name] for name in ("id_column",) if name in likely}
                error.remedies = (*error.remedies, *([Remedy(settings=found)] if found else []))
            raise error

    def refuse_unknown(
        self, edges: DataTable, nodes: Path | str, key: str, row: int, alike: str, rows: int
    ) -> NoReturn:
        """Refuse an edge list with the id `key` in some row, and unknown ones in `rows` of them."""
        add = Remedy(f"{alike}Add these nodes to the table, or leave their edges out.")
        choice = Remedy(settings={"unknown_nodes": ("drop", "add")})
        raise UnknownNodeError(
            parameter=edges.parameter,
            function=self.function,
            node=key,
            nodes=nodes,
            count=rows,
            rows=edges.n_rows,
            where=edges.where(row),
            remedies=[add] if self.function == FROM_EDGES else [add, choice],
        )

    def _attributes(self, nodes: DataTable, beside: Any) -> dict[str, Any]:
        """Return features, of columns and given `beside` them, and labels, with their names."""
        found = self.features_of(nodes, beside)
        if self.label_column is not None:
            codes, names = read_labels(nodes, self.label_column, self.missing_labels, self.label_kind)
            found |= {"labels": seal(codes), "class_names": names}
        return found

    def features_of(self, nodes: DataTable, beside: Any = None) -> dict[str, Any]:
        """Return the recipe, the features and their names, of columns and given `beside` them."""
        exclude = [name for name in (self.id_column, self.label_column) if name is not None]
        about: dict[str, Any] = {
            "typed": nodes.typed,
            "exclude": exclude,
            "title": nodes.path or nodes.title,
            "function": self.function,
        }
        given = self._wanted(nodes)
        recipe = given if isinstance(given, Recipe) else Recipe.fit(nodes.columns, wanted=given, **about)
        found: dict[str, Any] = {}
        if beside is not None and not recipe.encoders:
            found = matrix_fields(beside, nodes.n_rows, self.function)
        else:
            columns = nodes.columns
            if beside is not None:
                columns = {**columns, **self._columns_beside(nodes, beside)}
                new = [name for name in columns if name not in nodes.columns]
                if not isinstance(given, Recipe | str | Mapping):
                    given = [*given, *new]
                recipe = given if isinstance(given, Recipe) else Recipe.fit(columns, wanted=given, **about)
                if not is_frame(beside) and BLOCK not in recipe.encoders:
                    self._refuse_beside(nodes, beside)
            if not isinstance(given, Recipe):
                recipe.advise_of_splits(columns, typed=nodes.typed, title=about["title"])
            features, names = recipe.encode(columns, **about)
            found = {"recipe": recipe}
            if names:
                features = self._rows_of_file(recipe, nodes, features)
                kept = check_features(features, nodes.n_rows, self.function)
                found |= {"features": kept, "feature_names": names}
        return found

    def with_files(self, nodes: DataTable, n_rows: int) -> DataTable:
        """Return a node table of `n_rows` rows, or a part of it, with a column for each file of features, named as the file."""
        columns, wrong = dict(nodes.columns), list[PpropError]()
        for file in self.files:
            try:
                rows = features_in_file(file, n_rows, nodes.title, self.function, numbers=not nodes.first)
                if file.name in columns:
                    reject("features", self.function, f"files whose names {nodes.title} does not have", repr(file.name))
            except InputError as error:
                wrong.append(error)
            else:
                columns[file.name] = list_column(rows[nodes.first : nodes.first + nodes.n_rows])
        if wrong:
            raise together(wrong)
        return replace(nodes, columns=columns)

    def _with_degree(self, nodes: DataTable, csr: Csr) -> DataTable:
        """Return a node table with the degrees as columns, where they are asked for or the recipe has them."""
        given = self.feature_columns
        known = given.encoders if isinstance(given, Recipe) else ()
        if not self.degree and not any(name in known and name not in nodes.columns for name in DEGREES):
            return nodes
        values = np.ones(len(csr[1])) if csr[2] is None else csr[2]
        n = len(csr[0]) - 1
        degrees = degree_columns(sparse.csr_array((values, csr[1], csr[0]), shape=(n, n)), self.directed)
        for name in degrees:
            if name in nodes.columns:
                reject("degree", self.function, f"left out where {nodes.title} has the column {name!r}", "True")
        made = {name: pa.chunked_array([pa.array(column)]) for name, column in degrees.items()}
        return replace(nodes, columns={**nodes.columns, **made})

    def _wanted(self, nodes: DataTable) -> FeatureColumns:
        """Return the wanted features with those that files and degrees add."""
        given = self.feature_columns
        more = {file.name: "embedding" for file in self.files}
        if self.degree:
            more |= {name: "number" for name in DEGREES if name in nodes.columns}
        if not more or isinstance(given, Recipe):
            return given
        if isinstance(given, str):
            return more
        return {**given, **more} if isinstance(given, Mapping) else [*given, *more]

    def _rows_of_file(self, recipe: Recipe, nodes: DataTable, features: Any) -> Any:
        """Return features as a file has them, where they are nothing else: it stays where it is, mapped to be read."""
        whole = nodes.n_rows, recipe.n_features
        if len(self.files) == 1 and [*recipe.encoders] == [self.files[0].name]:
            rows = mapped_array(self.files[0], "features", self.function)
            if rows.shape == whole and rows.dtype in STORED and rows.dtype.itemsize <= 4:
                return rows
        return features

    def _columns_beside(self, nodes: DataTable, given: Any) -> dict[str, Column]:
        """Return features that are used together with columns of the node table as columns of that table.

        An array is one column, whose cells are lists.
        """
        if not nodes.typed or sparse.issparse(given):
            self._refuse_beside(nodes, given)
        columns = given
        if not is_frame(given):
            array = check_features(given, nodes.n_rows, self.function)
            if not isinstance(array, np.ndarray) or array.ndim != 2:
                self._refuse_beside(nodes, given)
            columns = {BLOCK: pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])}
        table = table_of(columns, "features", self.function)
        if table.n_rows != nodes.n_rows:
            reject(
                "features", self.function, f"a table of {counted(nodes.n_rows, 'row')}, one per node", describe(given)
            )
        twice = [name for name in table.columns if name in nodes.columns]
        if twice:
            got = f"one with {listed(twice)}"
            reject("features", self.function, f"a table with other columns than {nodes.title}", got)
        return dict(table.columns)

    def _refuse_beside(self, nodes: DataTable, given: object) -> NoReturn:
        expected = f"the only features, where columns of {nodes.title} are features as well"
        remedy = "Pass feature_columns=[] to leave the columns out."
        reject("features", self.function, expected, describe(given), remedy=remedy)


def _feature_files(features: object, function: str) -> tuple[Path, ...]:
    """Return the files that were given as features, none where these are something else."""
    given: Any = [features] if isinstance(features, str | PathLike) else features
    paths = cast("Sequence[object]", given) if isinstance(given, list | tuple) else ()
    if not paths or not all(isinstance(path, str | PathLike) for path in paths):
        return ()
    files = tuple(existing_file(path, "features", function) for path in paths)
    for file in files:
        if not is_array_file(file.name):
            reject("features", function, "an .npy file", repr(str(file)), error=FormatError)
    return files


def _check_order(parameter: str, data: object, function: str) -> None:
    """Refuse rows for nodes that only edges name: their order is that of first appearance, which rows hardly have."""
    index = index_of(data)
    if data is not None and (index is None or numbers_rows(index)):
        expected = "left out where the order of the nodes is not given, or a frame with their ids as index"
        remedy = "Pass nodes=..., the ids in the order of the rows (np.arange(n) for positions)."
        if function != FROM_EDGES:
            remedy = "Pass nodes=..., a table of the nodes in the order of the rows."
        reject(parameter, function, expected, describe(data), remedy=remedy)


def matrix_fields(features: object, n: int, function: str) -> dict[str, Any]:
    """Return the fields of a Graph of n nodes for features that are given as a matrix or a frame, checked."""
    fields = encoded_frame(features, function) if is_frame(features) else {"features": features}
    kept = None if fields["features"] is None else check_features(fields["features"], n, function)
    return {**fields, "features": kept}


def padded(table: DataTable, rows: int) -> DataTable:
    """Return a table with empty rows added.

    >>> from pprop.graph.tables.frames import table_of
    >>> padded(table_of({"age": [31]}, "nodes", "Graph.from_pandas"), 1).columns["age"].to_pylist()
    [31, None]
    """
    if not rows:
        return table
    columns = {
        name: join(column, pa.chunked_array([_empty(column.type, rows, typed=table.typed)]))
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns, n_rows=table.n_rows + rows)


def _empty(kind: Any, rows: int, *, typed: bool) -> Any:
    return pa.nulls(rows, kind) if typed or not is_text(kind) else pa.array([""] * rows, type=kind)


def _check_features(columns: object, function: str) -> Any:
    """Return the wanted features as the recipe takes them; None is "auto"."""
    if columns is None or columns in ("auto", "numbers") or isinstance(columns, Recipe):
        return columns or "auto"
    expected = '"auto", "numbers", a sequence of column names, a mapping from names to kinds, or a Recipe'
    if isinstance(columns, Mapping):
        return dict(cast("Mapping[str, str]", columns))
    return check_sequence(columns, "feature_columns", function, expected)


def _distinct_ids(nodes: DataTable, column: object) -> Column:
    ids = nodes.keys(column, "id_column")
    if not nodes.n_rows:
        nodes.complain("a node table with at least one node", "no rows")
    row = repeated_row(ids)
    if row is not None:
        nodes.complain("a node table of distinct ids", f"the id {describe(str(ids[row]))} a second time", row)
    return ids


def features_in_file(
    file: Path, n_rows: int | None, title: Path | str, function: str, *, numbers: bool = True
) -> NDArray[Any]:
    """Return the mapped array of an .npy file of features; refuse one that is no matrix of numbers.

    `n_rows` are those of the node table `title`, None where they are not known. `numbers`: refuse one without any number.
    """
    rows = mapped_array(file, "features", function)
    count = "" if n_rows is None else f" with {counted(n_rows, 'row')}"
    expected = f"a matrix of numbers{count}, one for each of {title}" if count else "a matrix of numbers"
    wrong = rows.ndim != 2 or (n_rows is not None and len(rows) != n_rows)
    if wrong or not rows.shape[1] or rows.dtype.kind not in "buif":
        got = f"{describe(rows)} in {str(file)!r}".replace("memmap", "an array", 1)
        reject("features", function, expected, got, error=FormatError)
    missing = numbers and rows.dtype.kind == "f"
    if missing and not any((~np.isnan(rows[part])).any() for part in row_blocks(rows.shape)):
        got = f"{str(file)!r}, in which all are missing (NaN),"
        reject("features", function, "a matrix with numbers", got, error=FormatError)
    return rows


def _weights(edges: DataTable, column: object) -> NDArray[np.float64]:
    weights = edge_weights(edges, column)
    caution_zeros(int(np.count_nonzero(weights == 0)), edges.title, stacklevel=5)
    return weights


def edge_weights(edges: DataTable, column: object) -> NDArray[np.float64]:
    """Return the weights of edges, finite and not negative, shape (rows,)."""
    weights = edges.numbers(column, "weight")
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        edges.complain("an edge list of non-negative weights", f"{weights[negative[0]]:g}", int(negative[0]))
    return weights


def caution_zeros(zeros: int, title: str, stacklevel: int = 2) -> None:
    """Warn of edges that are left out since their weight is zero."""
    if zeros:
        warnings.warn(f"Left out {counted(zeros, 'edge')} of {title} of weight zero.", stacklevel=stacklevel)


def caution_weights(edges: DataTable, stacklevel: int = 2) -> None:
    """Warn of a column that is named as weights are, and that nobody asked for."""
    for name in edges.others:
        if WEIGHTS.fullmatch(name):
            got = f"{name!r} of {edges.title} is left out: all edges count alike"
            warnings.warn(Advice(f"{got}.", Remedy(settings={"weight": name})), stacklevel=stacklevel)


def edge_parts(
    source: object, target: object, weight: object, *, directed: bool, nodes: object, features: object, labels: object
) -> dict[str, Any]:
    """Return the arguments of `Graph._of_parts` for the ends of edges, as `Graph.from_edges` takes them."""
    function = FROM_EDGES
    columns = TableColumns(function, weight=None if weight is None else "weight", directed=directed, features=features)
    given = {"source": source, "target": target} | ({} if weight is None else {"weight": weight})
    if nodes is None:
        _check_order("labels", labels, function)
    check_same_index(given, function)
    edges = table_of(given, "source", function, title="the edges")
    of_nodes = None if nodes is None else table_of({"id": nodes}, "nodes", function, title="the nodes")
    parts = columns.parts(edges, of_nodes)
    n = len(parts["ids"])
    if labels is not None:
        codes, names = as_class_indices(by_nodes(parts["ids"], n, labels, "labels", function), None, function)
        if names is None:
            check_class_indices(codes, function)
        parts |= {"labels": check_labels(codes, n, names, function), "class_names": names}
    return parts
