"""The GRAPH argument (a dataset's name, an npz file or an edge list) and its options; its nodes by name, and their split."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

import typer

from pprop._errors import FormatError, InputError
from pprop.cli.verbs import Options, option
from pprop.settings import STOPPING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.estimators import GraphSource
    from pprop.graph import Graph

TEST = 0.2  # share of the labelled nodes
TABLES = (".csv", ".parquet")
SUFFIXES = (".npz", *TABLES)

GraphArgument = Annotated[
    str, typer.Argument(metavar="GRAPH", help="A dataset's name, an .npz file, or an edge list in .csv or .parquet.")
]
OtherGraphOption = Annotated[
    str | None, option("A dataset's name or file in place of the one that DIR names.", metavar="GRAPH")
]

_column = partial(option, metavar="COLUMN")


@final
@dataclass(frozen=True)
class Tables(Options):
    """The options of an edge list and its node table."""

    panel: ClassVar[str] = "Your graph"
    nodes: Annotated[str | None, option("Node table (.csv, .parquet): ids, features, labels.", metavar="FILE")] = None
    source: Annotated[str, _column("Column of the edge list where edges begin.")] = "source"
    target: Annotated[str, _column("Column of the edge list where edges end.")] = "target"
    weight: Annotated[str | None, _column("Column of the edge list with weights; by default there are none.")] = None
    id_column: Annotated[str, _column("Column with the nodes' ids.")] = "id"
    label_column: Annotated[str | None, _column("Column of the node table; empty cells are unknown labels.")] = None
    features: Annotated[
        str | None,
        option("Columns of the node table, separated by commas; by default all numeric columns.", metavar="COLUMNS"),
    ] = None
    directed: Annotated[bool, option("Keep the directions of the edges.", "--directed")] = False

    @property
    def feature_columns(self) -> tuple[str, ...] | None:
        """The names in `features`."""
        return None if self.features is None else tuple(name.strip() for name in self.features.split(","))


StructureTables = Annotated[Tables, {"label_column", "features"}]


@final
@dataclass(frozen=True)
class GraphInput:
    """Where a graph comes from: the argument and its options. Options that the graph has no use for are refused.

    >>> GraphInput("citeseer").read()
    Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)
    """

    graph: str
    tables: Tables = field(default_factory=Tables)

    def __post_init__(self) -> None:
        given = self.tables
        if not self.is_table and (given.nodes, given.weight, given.label_column, given.features) != (None,) * 4:
            kind = "a file" if self.path else "a dataset"
            raise typer.BadParameter(
                "--nodes, --weight, --label-column and --features belong to an edge list "
                f"({' or '.join(TABLES)}), and {self.graph!r} is {kind} with all of these inside."
            )
        if self.is_table and given.nodes is None and (given.label_column, given.features) != (None, None):
            raise typer.BadParameter("--label-column and --features name columns of a node table: add --nodes FILE.")

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
        """The name of this graph in texts."""
        return self.graph if self.path is None else self.path.name

    @property
    def saved(self) -> GraphSource:
        """The same, as the manifest of a model holds it."""
        from pprop.estimators import GraphSource

        return GraphSource(*self._reader())

    def read(self) -> Graph:
        """Read the graph."""
        self.check_files()
        from pprop import datasets, graph

        kind, arguments = self._reader()
        read: Any = {"dataset": datasets.load_dataset, "npz": graph.read_npz, "edges": graph.read_edges}[kind]
        return read(**arguments)

    def _reader(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of the graph, and the arguments of the function that reads it."""
        given = self.tables
        if self.path is None:
            return "dataset", {"name": self.graph}
        if not self.is_table:
            return "npz", {"path": self.path, "directed": True if given.directed else None}
        names = ("nodes", "directed", "source", "target", "weight", "id_column", "label_column", "feature_columns")
        return "edges", {"path": self.path} | {name: getattr(given, name) for name in names}

    def check_files(self) -> None:
        """Raise if a file is missing, or of a kind that holds no graph."""
        for name in (None if self.path is None else self.graph, self.tables.nodes):
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
    """Return names as ids, numbers or text; as positions where there are no ids."""
    if ids is not None and ids.dtype.kind not in "iu":
        return list(names)
    try:
        return [int(name) for name in names]
    except ValueError:
        what = "positions" if ids is None else "whole numbers as ids"
        raise InputError(f"The nodes of this graph have {what}. Got {', '.join(names)!r} instead.") from None


@final
@dataclass(frozen=True)
class SplitOptions(Options):
    """How the nodes are divided."""

    panel: ClassVar[str] = "Split"
    split_seed: Annotated[
        int | None, option("Datasets: seed of the paper's split.  [default: its first test split]")
    ] = None
    init_seed: Annotated[int | None, option("Datasets: seed of the initial weights.  [default: 0]")] = None
    test: Annotated[float | None, option(f"Own graph: share of labelled nodes for testing.  [default: {TEST}]")] = None
    stopping: Annotated[
        float | None, option(f"Own graph: share for early stopping.  [default: {STOPPING.default}]")
    ] = None
    seed: Annotated[int | None, option("Own graph: seed of the split and the weights.  [default: 0]")] = None

    def check(self, origin: GraphInput) -> None:
        """Refuse the options of a dataset for a graph of the user's, and the other way round."""
        if origin.path is None:
            wrong, why = ("test", "stopping", "seed"), "is for a graph of your own; a dataset has --split-seed"
        else:
            wrong = ("split_seed", "init_seed")
            why = "belongs to a dataset; a graph of your own has --test, --stopping and --seed"
        for name in wrong:
            if getattr(self, name) is not None:
                raise typer.BadParameter(f"--{name.replace('_', '-')} {why}.")

    def draw(self, graph: Graph, origin: GraphInput) -> tuple[Split, int]:
        """Return the split, and the seed of weights and masks as an unsigned number."""
        from pprop.training import run_seed

        if origin.path is None:
            from pprop.datasets import TEST_SEEDS, paper_split

            split = paper_split(graph, TEST_SEEDS[0] if self.split_seed is None else self.split_seed)
        else:
            test = TEST if self.test is None else self.test
            stopping = STOPPING.default if self.stopping is None else self.stopping
            split = own_split(graph, test, stopping, self.seed or 0)
        return split, run_seed(split.seed, self.init_seed or 0) % 2**64


def own_split(graph: Graph, test: float, stopping: float, seed: int) -> Split:
    """Divide the labelled nodes; each set gets its share of every class, up to whole nodes.

    One node of each class, drawn at random, is always a training node. The others are shuffled within their class and
    taken in the order of their rank in it, first for the test set, then for early stopping, the rest for training.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> graph = Graph.from_scipy(sp.csr_array((10, 10)), labels=[0, 0, 0, 0, 1, 1, 1, 1, -1, -1])
    >>> own_split(graph, test=0.25, stopping=0.25, seed=0)
    Split(4 train, 2 stopping, 2 test, seed=0)
    """
    import numpy as np

    from pprop._validate import check_float, check_int
    from pprop.datasets import Split

    test = check_float(test, "test", "train", "[0, 1)")
    stopping = check_float(stopping, "stopping", "train", "(0, 1)")
    seed = check_int(seed, "seed", "train", low=0, high=2**32 - 1)
    labels = graph.labels
    if labels is None or not (labels >= 0).any():
        raise InputError(
            "Training needs the labels of some nodes, and this graph has none. An edge list takes them from a column "
            "of its node table: --nodes FILE --label-column COLUMN."
        )
    random = np.random.default_rng(seed)
    held, dealt, ranks = list[Any](), list[Any](), list[Any]()
    for index in np.unique(labels[labels >= 0]):
        nodes = random.permutation(np.flatnonzero(labels == index))
        held.append(nodes[:1])
        dealt.append(nodes[1:])
        ranks.append((np.arange(len(nodes) - 1) + random.random()) / max(len(nodes) - 1, 1))
    order = np.concatenate(dealt)[np.argsort(np.concatenate(ranks), kind="stable")]
    total = len(order) + len(held)
    n_test = round(test * total)
    n_stopping = max(1, round(stopping * total))
    if n_test + n_stopping > len(order):
        raise InputError(
            f"The graph has {total} labelled nodes, of which one of each of its {len(held)} classes trains. That leaves "
            f"{len(order)}, too few for {n_test} test and {n_stopping} stopping nodes. "
            "Ask for smaller --test and --stopping fractions, or label more nodes."
        )
    train = np.concatenate([*held, order[n_test + n_stopping :]])
    return Split(train, order[n_test : n_test + n_stopping], np.sort(order[:n_test]), seed=seed)


def class_names(graph: Graph) -> NDArray[Any]:
    """Return the label of each node as the name of its class, or its number where classes have no names."""
    import numpy as np

    if graph.labels is None:
        raise InputError("Training needs labels, and this graph has none.")
    names = np.asarray(graph.class_names) if graph.class_names is not None else np.arange(graph.n_classes)
    return names[graph.labels]
