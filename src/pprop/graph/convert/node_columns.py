"""Attributes of nodes, as networks keep them, a mapping for each node: labels and features out of them."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import Advice, GraphError, InputError, Remedy
from pprop._validate import check_choice, check_sequence, counted, describe, is_a, listed, nearest, reject
from pprop.graph.attributes import LABEL_KINDS, LabelKind
from pprop.graph.convert.arguments import as_class_indices, is_matrix

if TYPE_CHECKING:
    from pprop.graph.tables.table import DataTable

Wanted = object  # a name, a sequence of names, a mapping of names to kinds, None, or the features themselves


@final
class NodeColumns:
    """The attributes of n nodes, one mapping a node, in the order of the nodes."""

    def __init__(self, records: Sequence[Mapping[Any, object]], function: str) -> None:
        self.records = records
        self.function = function
        own = function != "read_graph"  # whose arguments are those of tables
        self.label, self.features = ("label", "features") if own else ("label_column", "feature_columns")
        self.names = list(dict.fromkeys(key for record in records for key in record))

    def column(self, name: object, parameter: str) -> list[Any]:
        """Return the values of an attribute, None where a node has none."""
        if name not in self.names:
            hint = nearest(str(name), map(str, self.names))
            remedy = f"The attributes of the nodes are: {listed(self.names, 20) or 'none'}. {hint}".rstrip()
            reject(parameter, self.function, "the name of a node attribute", describe(name), remedy=remedy)
        return [record.get(name) for record in self.records]

    def labels_and_features(
        self, label: str | None, label_kind: LabelKind, wanted: Wanted, facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the fields of a Graph; what is not asked for is as `facts`, written by ``to_networkx``, say."""
        check_choice(label_kind, "label_kind", self.function, LABEL_KINDS)
        fields: dict[str, Any] = {}
        own_label, own_features = facts.get("label"), facts.get("features")
        names = facts.get("class_names")
        if label is None and own_label is not None and own_label not in self.names:  # every label is unknown
            fields |= {"labels": np.full(len(self.records), -1), "class_names": names}
        elif label is not None or own_label is not None:
            kept = own_label is not None and label in (None, own_label)
            fields |= self._kept_labels(own_label, names) if kept else self._labels(label, label_kind)
        if is_matrix(wanted):
            tensor = is_a(wanted, "torch.Tensor")
            return fields | {"features": cast("Any", wanted).detach().cpu().numpy() if tensor else wanted}
        if wanted is None and own_features is not None and own_features in self.names:
            values = self.column(own_features, self.features)
            found = (
                self._sparse(values, facts) if facts.get("shape") is not None else self._vectors(own_features, values)
            )
            return fields | {"features": found, "feature_names": facts.get("feature_names")}
        if wanted is None:
            others = [name for name in self.names if name not in (label, own_label)]
            if others:
                remedy = Remedy(
                    f'Name those that are features, or pass {self.features}="auto" for all.',
                    ("feature_columns",),
                    shell="Those that are features are named by {all}.",
                )
                warnings.warn(Advice(f"The node attributes {listed(others)} are left out.", remedy), stacklevel=5)
            return fields
        return fields | self._features(wanted, label or own_label)

    def _kept_labels(self, label: object, names: Sequence[str] | None) -> dict[str, Any]:
        """Return the labels that `to_networkx` wrote."""
        cells = np.empty(len(self.records), dtype=object)
        cells[:] = self.column(label, self.label)
        known = {cell for cell in cells.tolist() if isinstance(cell, str)}
        if names is not None and not known <= {*names}:  # edited since: named anew
            names = None
        codes, classes = as_class_indices(cells, None if names is None else tuple(names), self.function, self.label)
        return {"labels": codes, "class_names": classes}

    def _labels(self, label: object, kind: LabelKind) -> dict[str, Any]:
        """Return the labels under an attribute, read as a column of a table is."""
        from pprop.graph.tables.classes import read_labels

        with self._own_words():
            codes, names = read_labels(self._table({str(label): self.column(label, self.label)}), str(label), kind=kind)
        return {"labels": codes, "class_names": names}

    def _features(self, wanted: Wanted, label: object) -> dict[str, Any]:
        expected = "a sequence of attribute names, a mapping of names to kinds, 'auto', or a matrix with a row per node"
        if isinstance(wanted, str) and wanted != "auto":
            reject(self.features, self.function, expected, describe(wanted), remedy=f"Pass [{wanted!r}].")
        if isinstance(wanted, str | Mapping):
            kinds: dict[Any, str] = {} if isinstance(wanted, str) else dict(cast("Mapping[Any, str]", wanted))
            every = dict.fromkeys([*self.names, *kinds])  # names that no node has are refused below
            chosen: list[object] = [name for name in every if name != label and kinds.get(name) != "unused"]
            wanted = {name: kind for name, kind in kinds.items() if name in chosen} or "auto"
        else:
            chosen = check_sequence(wanted, self.features, self.function, expected)
        columns = {name: self.column(name, self.features) for name in chosen}
        vectors = [name for name, values in columns.items() if any(_is_vector(value) for value in values)]
        if len(columns) == len(vectors) == 1 and not any(map(_is_missing, columns[vectors[0]])):
            return {"features": self._vectors(vectors[0], columns[vectors[0]])}
        blocks = {name: self._block(name, columns[name]) for name in vectors}
        return {} if not columns else self._encoded({**columns, **blocks}, wanted)

    def _encoded(self, columns: Mapping[Any, Any], wanted: Wanted) -> dict[str, Any]:
        from pprop.graph.features.recipe import Recipe

        with self._own_words():
            table = self._table({str(name): values for name, values in columns.items()})
            about: dict[str, Any] = {"typed": True, "title": "the nodes", "function": self.function}
            recipe = Recipe.fit(table.columns, wanted="auto" if wanted is None else cast("Any", wanted), **about)
            recipe.advise_of_splits(table.columns, typed=True, title="the nodes")
            features, names = recipe.encode(table.columns, **about)
        return {"features": features, "feature_names": names, "recipe": recipe} if names else {"recipe": recipe}

    def _table(self, columns: Mapping[str, Any]) -> DataTable:
        from pprop.graph.tables.frames import table_of

        return replace(table_of(columns, "g", self.function), title="the nodes")

    @contextmanager
    def _own_words(self) -> Generator[None]:
        """Let errors about columns of tables speak of the arguments of `function`."""
        try:
            yield
        except InputError as error:
            own = {"label_column": self.label, "feature_columns": self.features}
            error.parameter = own.get(error.parameter or "", error.parameter)
            raise

    def _vectors(self, name: object, values: list[Any]) -> NDArray[Any]:
        """Return one array of the vectors of all nodes, shape (n, ...)."""
        arrays = [np.asarray(value.detach().cpu() if is_a(value, "torch.Tensor") else value) for value in values]
        like = next((array for array in arrays if array.ndim), arrays[0])
        for at, array in enumerate(arrays):
            if array.ndim == 0 or array.shape != like.shape or array.dtype.kind not in "buif":
                expected = f"a vector of {counted(like.size, 'number')} under {name!r} for every node"
                got = f"{describe(values[at])} for the node at position {at}"
                reject(self.features, self.function, expected, got, error=GraphError)
        return np.stack(arrays)

    def _block(self, name: object, values: list[Any]) -> NDArray[Any]:
        """Return the vectors of all nodes as a column of lists, shape (n, f); NaN where a node has none."""
        known = np.array([not _is_missing(value) for value in values])
        first = next(value for value in values if _is_vector(value))
        rows = self._vectors(name, [first if _is_missing(value) else value for value in values])
        if rows.ndim != 2 or not rows.shape[1]:
            expected = f"vectors of at least one number under {name!r}, to be used beside other attributes"
            reject(self.features, self.function, expected, f"arrays of shape {rows.shape[1:]}", error=GraphError)
        if known.all():
            return rows
        rows = rows.astype(np.float32 if rows.dtype == np.float32 else np.float64)
        rows[~known] = np.nan
        return rows

    def _sparse(self, rows: list[Any], facts: Mapping[str, Any]) -> sparse.csr_array:
        """Return the matrix whose rows are mappings of column to value, as `to_networkx` writes sparse features."""
        try:
            indices = np.asarray([int(column) for row in rows for column in row], dtype=np.int64)
            values = np.asarray([float(value) for row in rows for value in row.values()])
        except (AttributeError, TypeError, ValueError, OverflowError):
            expected = "a mapping of columns to numbers for every node, as written by to_networkx"
            reject(self.features, self.function, expected, "something else", error=GraphError)
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        shape = (len(rows), cast("int", facts["shape"]))
        return sparse.csr_array((values.astype(facts["dtype"]), indices, indptr), shape=shape)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _is_vector(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray) or is_a(value, "torch.Tensor")
