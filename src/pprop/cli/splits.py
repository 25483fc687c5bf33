"""Which nodes train, which stop the training and which test it: the options, and the split of a user's own graph."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

from pprop._errors import FormatError, InputError
from pprop._validate import check_float, check_int, listed
from pprop.cli.errors import Checks, UsageError
from pprop.cli.graphs import GraphInput
from pprop.cli.verbs import Options, at_least, option, within
from pprop.settings import STOPPING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph

TEST = 0.2  # share of the labelled nodes
SEED = at_least(0, 2**32 - 1)


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

    def check(self, origin: GraphInput) -> None:
        """Refuse the options of a dataset for a graph of the user's, and the other way round."""
        if origin.path is None:
            wrong, why = (
                ("test", "stopping", "seed", "split_column", "test_fold"),
                "is for a graph of your own; a dataset has --split-seed",
            )
        else:
            wrong = ("split_seed", "init_seed")
            why = "belongs to a dataset; a graph of your own has --test, --stopping and --seed"
        with Checks() as checks:
            for name in wrong if origin.is_known else ():
                if getattr(self, name) is not None:
                    checks.add(UsageError(f"--{name.replace('_', '-')} {why}."))
            if origin.path is None:
                return
            if self.split_column is not None and origin.tables.nodes is None:
                checks.add(UsageError("--split-column names a column of a node table: add --nodes FILE."))
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

    def cells(self, origin: GraphInput) -> list[str] | None:
        """Return the cells of the split column, or what they mean where they are folds, "" where missing; None without one.

        They are read before the graph is: its tables are gone then.
        """
        if self.split_column is None or (table := origin.node_table()) is None:
            return None
        from pprop.graph.features.columns import read_column

        column = table.column(self.split_column, "split_column")
        read = read_column(str(self.split_column), column, typed=table.typed)
        if read.form not in ("text", "number", "boolean"):
            table.complain(
                "a table whose split is text, whole numbers or truth values", f"{read.cells.type} under {read.name!r}"
            )
        found = [cell or "" for cell in read.texts().to_pylist()]
        if self.test_fold is None:
            return found
        if self.test_fold not in found:
            folds = listed(sorted({*found} - {""}), 20)
            raise InputError(
                f"--test-fold takes a value of the column {self.split_column!r}: {folds}. Got {self.test_fold!r}."
            )
        return [cell and ("test" if cell == self.test_fold else "train") for cell in found]

    def draw(self, graph: Graph, origin: GraphInput, cells: list[str] | None = None) -> tuple[Split, int]:
        """Return the split, and the seed of weights and masks as an unsigned number; `cells` are those of `cells`."""
        from pprop.training import run_seed

        if graph.labels is None or not (graph.labels >= 0).any():
            text = "Training needs the classes of some nodes, and this graph has none."
            raise InputError(text, remedies=[origin.label_remedy])
        if origin.path is None:
            from pprop.datasets import TEST_SEEDS, paper_split

            try:
                split = paper_split(graph, TEST_SEEDS[0] if self.split_seed is None else self.split_seed)
            except InputError as error:
                error.parameter = "split_seed"
                raise
        else:
            seed = self.seed or 0
            if cells is None:
                split = own_split(graph, self._test, self._stopping, seed)
            else:
                split = column_split(graph, cells, self._stopping, seed)
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
