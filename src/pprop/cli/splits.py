"""Training, stopping and test nodes: the paper's split of a dataset, or one of the labelled nodes of a user's graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

import typer

from pprop._errors import InputError
from pprop.cli.graphs import GraphInput
from pprop.cli.verbs import Options, option
from pprop.settings import STOPPING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph

TEST = 0.2  # share of the labelled nodes
FUNCTION = "train"


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

    test = check_float(test, "test", FUNCTION, "[0, 1)")
    stopping = check_float(stopping, "stopping", FUNCTION, "(0, 1)")
    seed = check_int(seed, "seed", FUNCTION, low=0, high=2**32 - 1)
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
