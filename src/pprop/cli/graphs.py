"""The GRAPH argument: a dataset's name, or a path to an npz file or an edge list, with the options of the latter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from pprop._errors import FormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pprop.estimators import GraphSource
    from pprop.graph import Graph

__all__ = [
    "DirectedOption",
    "FeaturesOption",
    "GraphArgument",
    "GraphInput",
    "IdColumnOption",
    "LabelColumnOption",
    "NodesOption",
    "SourceOption",
    "TargetOption",
    "WeightOption",
    "named_positions",
    "node_keys",
]

TABLES = (".csv", ".parquet")
SUFFIXES = (".npz", *TABLES)
PANEL = "For an edge list"

GraphArgument = Annotated[
    str, typer.Argument(metavar="GRAPH", help="A dataset's name, an .npz file, or an edge list in .csv or .parquet.")
]
NodesOption = Annotated[
    str | None,
    typer.Option("--nodes", metavar="FILE", help="Node table (.csv, .parquet): ids, features, labels."),
]
SourceOption = Annotated[str, typer.Option("--source", metavar="COLUMN", help="Column of the edge list.")]
TargetOption = Annotated[str, typer.Option("--target", metavar="COLUMN", help="Column of the edge list.")]
WeightOption = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="Column of the edge list; without it, no weights.")
]
IdColumnOption = Annotated[str, typer.Option("--id-column", metavar="COLUMN", help="Column with the nodes' ids.")]
LabelColumnOption = Annotated[
    str | None,
    typer.Option("--label-column", metavar="COLUMN", help="Column of the node table; empty cells are unknown labels."),
]
FeaturesOption = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="COLUMNS",
        help="Columns of the node table, separated by commas; without it, all columns of numbers.",
    ),
]
DirectedOption = Annotated[bool, typer.Option("--directed", help="Keep the directions of the edges.")]


@final
@dataclass(frozen=True)
class GraphInput:
    """Where a graph comes from: the argument and its options.

    >>> GraphInput.of("citeseer").read()
    Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)
    """

    graph: str
    nodes: str | None = None
    source: str = "source"
    target: str = "target"
    weight: str | None = None
    id_column: str = "id"
    label_column: str | None = None
    features: tuple[str, ...] | None = None
    directed: bool = False

    @classmethod
    def of(cls, graph: str, *, features: str | None = None, **options: Any) -> GraphInput:
        """Return the source that the arguments of a verb describe; refuse options that it has no use for."""
        chosen = None if features is None else tuple(name.strip() for name in features.split(","))
        made = cls(graph, features=chosen, **options)
        if not made.is_table:
            idle = replace(made, nodes=None, weight=None, label_column=None, features=None)
            if made != idle:
                kind = "a file" if made.path else "a dataset"
                raise typer.BadParameter(
                    "--nodes, --weight, --label-column and --features belong to an edge list "
                    f"({' or '.join(TABLES)}), and {graph!r} is {kind} with all of these inside."
                )
        elif made.nodes is None and (made.label_column is not None or made.features is not None):
            raise typer.BadParameter("--label-column and --features name columns of a node table: add --nodes FILE.")
        return made

    @property
    def path(self) -> Path | None:
        """The file; None for a dataset."""
        file = Path(self.graph)
        is_path = file.suffix.lower() in SUFFIXES or len(file.parts) != 1 or file.is_file()
        return file if is_path else None

    @property
    def is_table(self) -> bool:
        """Whether this is an edge list."""
        return self.path is not None and self.path.suffix.lower() in TABLES

    @property
    def title(self) -> str:
        """What people call this graph."""
        return self.graph if self.path is None else self.path.name

    @property
    def saved(self) -> GraphSource:
        """The same, as a manifest holds it."""
        from pprop.estimators import GraphSource

        if self.path is None:
            return GraphSource("dataset", {"name": self.graph})
        if not self.is_table:
            return GraphSource("npz", {"path": self.path, "directed": True if self.directed else None})
        columns = {"source": self.source, "target": self.target, "weight": self.weight, "id_column": self.id_column}
        arguments = {"path": self.path, "nodes": self.nodes, "directed": self.directed, **columns}
        return GraphSource("edges", {**arguments, "label_column": self.label_column, "feature_columns": self.features})

    def read(self) -> Graph:
        """Read the graph."""
        self.check_files()
        from pprop.graph import read_edges, read_npz

        if self.path is None:
            from pprop.datasets import load_dataset

            return load_dataset(self.graph)
        if not self.is_table:
            return read_npz(self.path, directed=True if self.directed else None)
        return read_edges(
            self.path,
            self.nodes,
            source=self.source,
            target=self.target,
            weight=self.weight,
            directed=self.directed,
            id_column=self.id_column,
            label_column=self.label_column,
            feature_columns=self.features,
        )

    def check_files(self) -> None:
        """Say which file is missing, or of a kind that holds no graph."""
        for name in (None if self.path is None else self.graph, self.nodes):
            if name is not None and not Path(name).exists():
                raise FileNotFoundError(f"There is no file {name!r}.")
        if self.path is not None and self.path.suffix.lower() not in SUFFIXES:
            raise FormatError(
                f"A graph is an .npz file or an edge list in .csv or .parquet. Got {self.graph!r} instead."
            )


def named_positions(graph: Graph, names: list[str]) -> Sequence[int] | NDArray[Any]:
    """Return the positions of nodes that were named on the command line, where everything is text."""
    given = node_keys(graph.ids, names)
    return given if graph.ids is None else graph.positions(given)


def node_keys(ids: NDArray[Any] | None, names: Sequence[str]) -> list[Any]:
    """Return names as the ids that they stand for, numbers or text; as positions where there are no ids."""
    if ids is not None and ids.dtype.kind not in "iu":
        return list(names)
    try:
        return [int(name) for name in names]
    except ValueError:
        what = "positions" if ids is None else "whole numbers as ids"
        raise InputError(f"The nodes of this graph have {what}. Got {', '.join(names)!r} instead.") from None
