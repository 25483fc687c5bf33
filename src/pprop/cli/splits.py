"""Which nodes train, which stop the training and which test it: the options, and the split of a user's own graph."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

from pprop._errors import FormatError, InputError
from pprop._validate import check_float, check_int, listed
from pprop.cli.errors import Checks, UsageError
from pprop.cli.graphs import GraphInput
from pprop.cli.split_columns import GROUP, TIME, Groups, Times, read_times, suspects
from pprop.cli.verbs import Options, at_least, option, within
from pprop.settings import STOPPING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph

TEST = 0.2  # share of the labelled nodes
SEED = at_least(0, 2**32 - 1)
COLUMNS = ("split_column", TIME, GROUP)


@final
@dataclass(frozen=True)
class SplitOptions(Options):
    """How the nodes are divided."""

    panel: ClassVar[str] = "Split"
    split_seed: Annotated[
        int | None, option("Datasets: seed of the paper's split.  [default: its first test split]", rule=SEED)
    ] = None
    init_seed: Annotated[int | None, option("Datasets: seed of the initial weights.  [default: 0]")] = None
    test: Annotated[
        float | None,
        option(f"Own graph: share of labelled nodes for testing.  [default: {TEST}]", rule=within("[0, 1)")),
    ] = None
    stopping: Annotated[
        float | None,
        option(
            f"Own graph: share for validation, which ends the training.  [default: {STOPPING.default}]",
            rule=within("[0, 1)"),
        ),
    ] = None
    seed: Annotated[int | None, option("Own graph: seed of the split and the weights.  [default: 0]", rule=SEED)] = None
    split_column: Annotated[
        str | None,
        option(
            "Own graph: column of the node table that says train, val (or stopping), test or unused.", metavar="COLUMN"
        ),
    ] = None
    test_fold: Annotated[
        str | None,
        option("Own graph: fold for testing, where --split-column holds folds; the others train.", metavar="FOLD"),
    ] = None
    split_time: Annotated[
        str | None,
        option(
            "Own graph: column of the node table with dates or numbers. Trains on the past and tests on the latest nodes.",
            metavar="COLUMN",
        ),
    ] = None
    split_group: Annotated[
        str | None,
        option(
            "Own graph: column of the node table with groups, such as households. Keeps each group in one set.",
            metavar="COLUMN",
        ),
    ] = None

    @property
    def columns(self) -> dict[str, str]:
        """The columns that divide the nodes, by the parameters that name them: one at most, once the options are checked.

        >>> SplitOptions(split_time="opened").columns
        {'split_time': 'opened'}
        """
        return {name: column for name in COLUMNS if (column := getattr(self, name)) is not None}

    @property
    def column(self) -> str | None:
        """The column that divides the nodes."""
        return next(iter(self.columns.values()), None)

    def check(self, origin: GraphInput) -> None:
        """Refuse the options of a dataset for a graph of the user's, and the other way round."""
        if origin.path is None:
            wrong, why = (
                ("test", "stopping", "seed", "split_column", "test_fold", TIME, GROUP),
                "is for a graph of your own; a dataset has --split-seed",
            )
        else:
            wrong = ("split_seed", "init_seed")
            why = "belongs to a dataset; a graph of your own has --test, --stopping and --seed"
        with Checks() as checks:
            for name in wrong if origin.is_known else ():
                if getattr(self, name) is not None:
                    checks.add(UsageError(f"{_typed(name)} {why}."))
            if origin.path is None:
                return
            for name in self.columns if origin.tables.nodes is None else ():
                checks.add(UsageError(f"{_typed(name)} names a column of a node table: add --nodes FILE."))
            if len(self.columns) > 1:
                checks.add(UsageError(f"Give one of {' and '.join(map(_typed, self.columns))}."))
            if self.split_column is not None and self.test is not None:
                checks.add(UsageError("--split-column says which nodes test; leave --test out."))
            if self.split_column is None and self.test_fold is not None:
                checks.add(UsageError("--test-fold is a value of the column that --split-column names: add it."))
            if self.split_column is None and max(self._test, self._stopping) < 1 <= self._test + self._stopping:
                checks.add(
                    InputError(
                        f"--test {self._test:g} and --stopping {self._stopping:g} leave no nodes for training: together "
                        "they must be less than 1."
                    )
                )

    @property
    def _test(self) -> float:
        return TEST if self.test is None else self.test

    @property
    def _stopping(self) -> float:
        return STOPPING.default if self.stopping is None else self.stopping

    def read(self, origin: GraphInput) -> SplitTable:
        """Return what the node table says of the split. It is read before the graph is: its tables are gone then."""
        name = self.column
        if (table := origin.node_table()) is None or origin.path is None:
            return SplitTable()
        if name is None:
            return SplitTable(cautions=tuple(suspects(origin)))
        from pprop.graph.features.columns import read_column

        parameter = next(iter(self.columns))
        column = read_column(name, table.column(name, parameter), typed=table.typed)
        if parameter == TIME:
            return SplitTable(read_times(column))
        if column.form not in ("text", "number", "boolean") and not (parameter == GROUP and column.form == "date"):
            what = "split" if parameter == "split_column" else "groups"
            verb = "is" if parameter == "split_column" else "are"
            table.complain(
                f"a table whose {what} {verb} text, whole numbers or truth values",
                f"{column.cells.type} under {name!r}",
            )
        found = [cell or "" for cell in column.texts().to_pylist()]
        return SplitTable(Groups(name, found) if parameter == GROUP else self._parts(found))

    def without_column(self, origin: GraphInput) -> GraphInput:
        """Return the graph without that column among its features, unless options choose all of them."""
        if self.column is None or origin.tables.features is not None or origin.tables.structure is not None:
            return origin
        unread = [*(origin.tables.column or ()), f"{self.column}=unused"]
        return replace(origin, tables=replace(origin.tables, column=unread))

    def _parts(self, found: list[str]) -> list[str]:
        """Return the cells of a split, or what they mean where they are folds, "" where missing."""
        if self.test_fold is None:
            return found
        if self.test_fold not in found:
            folds = listed(sorted({*found} - {""}), 20)
            raise InputError(
                f"--test-fold takes a value of the column {self.split_column!r}: {folds}. Got {self.test_fold!r}."
            )
        return [cell and ("test" if cell == self.test_fold else "train") for cell in found]

    def draw(self, graph: Graph, origin: GraphInput, table: SplitTable | None = None) -> Drawn:
        """Return the split; `table` is what `read` returned."""
        from pprop.training import run_seed

        if graph.labels is None or not (graph.labels >= 0).any():
            text = "Training needs the classes of some nodes, and this graph has none."
            raise InputError(text, remedies=[origin.label_remedy])
        sentence, record = "", dict[str, Any]()
        if origin.path is None:
            from pprop.datasets import TEST_SEEDS, paper_split

            try:
                split = paper_split(graph, TEST_SEEDS[0] if self.split_seed is None else self.split_seed)
            except InputError as error:
                error.parameter = "split_seed"
                raise
            record = {"kind": "paper"}
        else:
            seed, column = self.seed or 0, None if table is None else table.column
            match column:
                case None:
                    split, record = own_split(graph, self._test, self._stopping, seed), {"kind": "random"}
                case Times():
                    split = replace(column.split(graph, self._test, self._stopping), seed=seed)
                    sentence, record = column.sentence(split), column.record(split)
                case Groups():
                    split = column.split(graph, self._test, self._stopping, seed)
                    sentence, record = column.sentence(split), column.record(split)
                case _:
                    split = column_split(graph, column, self._stopping, seed)
                    record = {"kind": "column", "column": self.split_column}
        run = run_seed(split.seed, self.init_seed or 0) % 2**64
        return Drawn(split, run, sentence, record, () if table is None else table.cautions)


@final
@dataclass(frozen=True)
class SplitTable:
    """What a node table says of the split.

    Attributes
    ----------
    column
        The cells of --split-column, or what --split-time or --split-group name; None: the split is random.
    cautions
        Columns that speak against a random split, one sentence each.
    """

    column: list[str] | Times | Groups | None = None
    cautions: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Drawn:
    """The split of a graph.

    Attributes
    ----------
    split, seed
        The nodes, and the seed of weights and masks as an unsigned number.
    sentence, record
        How the nodes were divided: for people, empty where nothing need be said, and for --json.
    cautions
        What speaks against it, one sentence each.
    """

    split: Split
    seed: int
    sentence: str
    record: dict[str, Any]
    cautions: tuple[str, ...]


def _typed(parameter: str) -> str:
    """Return the option of a parameter.

    >>> _typed("split_time")
    '--split-time'
    """
    return f"--{parameter.replace('_', '-')}"


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

    from pprop.datasets import Split

    test = check_float(test, "test", "train", "[0, 1)")
    stopping = check_float(stopping, "stopping", "train", "[0, 1)")
    seed = check_int(seed, "seed", "train", low=0, high=2**32 - 1)
    labels = _labels(graph)
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
    n_stopping = max(1, round(stopping * total)) if stopping else 0
    if n_test + n_stopping > len(order):
        raise InputError(
            f"The graph has {total} labelled nodes, of which one of each of its {len(held)} classes trains. That leaves "
            f"{len(order)}, too few for {n_test} test and {n_stopping} validation nodes. "
            "Ask for smaller --test and --stopping fractions, or label more nodes."
        )
    train = np.concatenate([*held, order[n_test + n_stopping :]])
    return Split(train, order[n_test : n_test + n_stopping], np.sort(order[:n_test]), seed=seed)


def column_split(graph: Graph, words: list[str], stopping: float, seed: int) -> Split:
    """Divide the labelled nodes as a column says; where it names no stopping nodes, a share of the training nodes is taken.

    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> graph = Graph.from_scipy(sp.csr_array((5, 5)), labels=[0, 0, 1, 1, -1])
    >>> column_split(graph, ["train", "Test", "train", "val", "train"], 0.2, 0)
    Split(2 train, 1 stopping, 1 test, seed=0)
    """
    import numpy as np

    from pprop.datasets import Split
    from pprop.estimators.targets import hold_out
    from pprop.graph.features.columns import FALSE_TRUE
    from pprop.graph.features.splits import part_of

    labels = _labels(graph)
    meaning = {word: part_of(word) for word in dict.fromkeys(words)}
    unknown = next((word for word, part in meaning.items() if part is None), None)
    if unknown is not None:
        insist = f" --test-fold {shlex.quote(unknown)} tests on the nodes with that value and trains on the others."
        codes = unknown[-1:].isdigit() or unknown.lower() in sum(FALSE_TRUE, ())
        raise FormatError(
            "--split-column takes a column that says train, val (or stopping), test or unused, or nothing, of each "
            f"node. Got {unknown!r} in row {words.index(unknown) + 1}.{insist if codes else ''}"
        )
    parts = np.array([meaning[word] for word in words] + ["unused"] * (graph.n_nodes - len(words)))
    train, watched, test = (np.flatnonzero((parts == part) & (labels >= 0)) for part in ("train", "stopping", "test"))
    if not len(train):
        raise InputError("The split column names no training node that has a label.")
    if not len(watched) and stopping:
        train, watched = hold_out(train, np.unique(labels[train], return_inverse=True)[1], stopping, seed)
    return Split(train, watched, test, seed=seed)


def class_names(graph: Graph) -> NDArray[Any]:
    """Return the label of each node as the name of its class, or its number where classes have no names."""
    import numpy as np

    labels = _labels(graph)
    names = np.asarray(graph.class_names) if graph.class_names is not None else np.arange(graph.n_classes)
    return names[labels]


def _labels(graph: Graph) -> NDArray[Any]:
    if graph.labels is None:
        raise InputError("Training needs the classes of some nodes, and this graph has none.")
    return graph.labels
