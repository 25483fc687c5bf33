"""Where a graph came from, written so that it can be read again."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self, cast, final

from pprop._errors import FormatError, InputError
from pprop._validate import check_choice, describe, reject
from pprop.datasets import DATASETS, load_dataset
from pprop.graph import Graph, read_edges, read_graph, read_npz
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.structure import STRUCTURES
from pprop.graph.files import path_of
from pprop.graph.formats import TABLE_OPTIONS

_READERS: Mapping[str, Any] = MappingProxyType(
    {"dataset": load_dataset, "npz": read_npz, "edges": read_edges, "file": read_graph}
)
_PATHS = ("path", "nodes")


@final
@dataclass(frozen=True)
class GraphSource:
    """A reader's name and its arguments: what `pprop.load` needs to find the graph of a saved model.

    Parameters
    ----------
    kind
        ``"dataset"`` (`load_dataset`), ``"npz"`` (`read_npz`), ``"edges"`` (`read_edges`) or ``"file"`` (`read_graph`).
    arguments
        Of that reader, by name. Paths are made absolute.
    structure
        None, or the features that the graph is given after it is read, see `Graph.with_structure`.

    Examples
    --------
    >>> source = GraphSource("dataset", {"name": "citeseer"})
    >>> source.read()
    Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)
    >>> source.to_json()
    {'kind': 'dataset', 'name': 'citeseer'}
    """

    kind: str
    arguments: Mapping[str, Any]
    structure: str | None = None

    def __post_init__(self) -> None:
        reader = _READERS[check_choice(self.kind, "kind", "GraphSource", list(_READERS))]
        if self.structure is not None:
            check_choice(self.structure, "structure", "GraphSource", STRUCTURES)
        allowed = {*inspect.signature(reader).parameters} - {"options"}
        if self.kind == "file":
            allowed |= set(TABLE_OPTIONS)
        first = "name" if self.kind == "dataset" else "path"
        given = dict(self.arguments)
        if given.get("label_column") is not None:
            given.setdefault("label_kind", "auto")  # said, as a manifest that does not say it means another
        for argument, value in given.items():
            if argument not in allowed:
                known = ", ".join(sorted(allowed))
                reject("arguments", "GraphSource", f"among {known} for kind {self.kind!r}", repr(argument))
            if argument in _PATHS and value is not None:
                given[argument] = os.path.abspath(path_of(value, "arguments", "GraphSource"))
            elif argument == "features" and value is not None:
                paths = cast("list[object]", value if isinstance(value, tuple | list) else [value])
                given[argument] = [os.path.abspath(path_of(path, "arguments", "GraphSource")) for path in paths]
            elif isinstance(value, tuple | list):
                given[argument] = [str(item) for item in cast("list[object]", value)]
            elif isinstance(value, Mapping):
                pairs = cast("Mapping[object, object]", value).items()
                given[argument] = {str(key): str(item) for key, item in pairs}
            elif not isinstance(value, str | bool | None):
                reject("arguments", "GraphSource", f"a str, a bool or None under {argument!r}", describe(value))
        if not isinstance(given.get(first), str):
            reject("arguments", "GraphSource", f"given {first!r} for kind {self.kind!r}", describe(given.get(first)))
        object.__setattr__(self, "arguments", MappingProxyType(given))

    @classmethod
    def of(cls, graph: Graph) -> Self | None:
        """Return the source of one of the paper's graphs, known by its name; None for any other graph.

        >>> GraphSource.of(load_dataset("citeseer")).kind
        'dataset'
        """
        return cls("dataset", {"name": graph.name}) if graph.name in DATASETS else None

    def read(self, recipe: Recipe | None = None, paths: Mapping[str, str] | None = None) -> Graph:
        """Read the graph; the columns of a table become features by a recipe, where one is given.

        `paths` are other names of the same files, for errors. Those of a graph folder have become features already: whoever
        needs a recipe compares it with that of the graph.
        """
        columns: dict[str, Any] = {}
        if recipe is not None and self.kind in ("edges", "file") and not os.path.isdir(self.arguments["path"]):
            columns["feature_columns"] = recipe
        graph: Graph = _READERS[self.kind](**{**self.arguments, **columns, **(paths or {})})
        return graph if self.structure is None else graph.with_structure(self.structure, replace=True)

    def __str__(self) -> str:
        return repr(self.arguments["name" if self.kind == "dataset" else "path"])

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphSource, (self.kind, dict(self.arguments), self.structure)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the source in a manifest."""
        own = {} if self.structure is None else {"structure": self.structure}
        return {"kind": self.kind, **own, **self.arguments}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Return the source from its entry in a manifest. Where it has no kind of labels, each value was a class.

        >>> GraphSource.from_json({"kind": "edges", "path": "/e.csv", "label_column": "team"}).to_json()
        {'kind': 'edges', 'path': '/e.csv', 'label_column': 'team', 'label_kind': 'category'}
        """
        given = {key: value for key, value in entry.items() if key not in ("kind", "structure")}
        if given.get("label_column") is not None:
            given.setdefault("label_kind", "category")
        try:
            return cls(entry["kind"], given, entry.get("structure"))
        except (InputError, KeyError) as error:
            raise FormatError(f"The graph's source {describe(dict(entry))} cannot be understood.") from error
