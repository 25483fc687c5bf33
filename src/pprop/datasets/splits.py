"""The paper's splits: which nodes may be seen, and which of them train, stop and evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_bool, check_int, describe, reject
from pprop.graph import Graph

VISIBLE_SEED = 4143496719  # of the one draw that divides a graph into known and test nodes

# The 20 seeds of the paper's test splits.
TEST_SEEDS: tuple[int, ...] = (
    2144199730,
    794209841,
    2985733717,
    2282690970,
    1901557222,
    2009332812,
    2266730407,
    635625077,
    3538425002,
    960893189,
    497096336,
    3940842554,
    3594628340,
    948012117,
    3305901371,
    3644534211,
    2297033685,
    4092258879,
    2590091101,
    1694925034,
)

# The 20 seeds of the paper's validation splits.
VALIDATION_SEEDS: tuple[int, ...] = (
    2413340114,
    3258769933,
    1789234713,
    2222151463,
    2813247115,
    1920426428,
    4272044734,
    2092442742,
    841404887,
    2188879532,
    646784207,
    1633698412,
    2256863076,
    374355442,
    289680769,
    4281139389,
    4263036964,
    900418539,
    119332950,
    1628837138,
)

FUNCTION = "paper_split"
DEFAULT_KNOWN = 1500
PER_CLASS, STOPPING = 20, 500  # training nodes of each class, and nodes for early stopping


@final
@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of node positions, read-only int64.

    Attributes
    ----------
    train : array of shape (c * per_class,)
        Training nodes, class by class, in the order drawn.
    stopping : array of shape (stopping,)
        Nodes for early stopping, in the order drawn.
    evaluation : array
        Test nodes in index order, or validation nodes in the order in which the known set was drawn.
    seed : int
        The seed of this split; 0 for one that was not drawn here.
    test : bool
        Whether `evaluation` is the test set.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> graph = Graph.from_scipy(sp.csr_array((5, 5)), labels=[0, 0, 1, 1, 1])
    >>> paper_split(graph, seed=1, known=4, per_class=1, stopping=1)
    Split(2 train, 1 stopping, 1 test, seed=1)
    """

    train: NDArray[np.int64]
    stopping: NDArray[np.int64]
    evaluation: NDArray[np.int64]
    seed: int = 0
    test: bool = True

    def __repr__(self) -> str:
        kind = "test" if self.test else "validation"
        sizes = f"{len(self.train)} train, {len(self.stopping)} stopping, {len(self.evaluation)} {kind}"
        return f"Split({sizes}, seed={self.seed})"


def paper_split(
    graph: Graph,
    seed: int,
    test: bool = True,
    known: int | None = None,
    per_class: int = PER_CLASS,
    stopping: int = STOPPING,
) -> Split:
    """Draw a split by the paper's protocol.

    A fixed seed draws the known nodes; all others are the test set, the same for every split. The split's own seed then
    draws, from the known nodes in the order drawn, `per_class` training nodes of each class in turn, and `stopping`
    nodes of those left. What remains of the known nodes is the validation set.

    Parameters
    ----------
    graph
        A graph whose nodes all have labels, standardised as by `load_dataset`. Without `test`, the known nodes' labels
        are enough: those of the test nodes may be hidden (-1).
    seed
        From 0 to 2**32 - 1; the paper's are `TEST_SEEDS` and `VALIDATION_SEEDS`.
    test
        True evaluates on the test nodes, False on the validation nodes.
    known
        Number of known nodes; None takes ``graph.recommended.known``, or 1500 where the graph recommends nothing.
    per_class
        Training nodes of each class. The draws are nested: those for 5 are among those for 10.
    stopping
        Number of nodes for early stopping.

    Returns
    -------
    Split

    Examples
    --------
    >>> from pprop.datasets import TEST_SEEDS, load_dataset, paper_split
    >>> split = paper_split(load_dataset("citeseer"), TEST_SEEDS[0])
    >>> split
    Split(120 train, 500 stopping, 610 test, seed=2144199730)
    >>> split.train[:5]
    array([1773, 1495,  247, 1329,  726])
    """
    if not isinstance(graph, Graph):
        reject("graph", FUNCTION, "a Graph", describe(graph))
    if graph.labels is None:
        reject("graph", FUNCTION, "a graph with labels", "a graph without")
    seed = check_int(seed, "seed", FUNCTION, low=0, high=2**32 - 1)
    test = check_bool(test, "test", FUNCTION)
    per_class = check_int(per_class, "per_class", FUNCTION, low=1)
    stopping = check_int(stopping, "stopping", FUNCTION, low=0)
    known = _check_known(graph, known, test)

    visible = known_nodes(graph.n_nodes, known)
    labels = graph.labels
    unknown = int(((labels if test else labels[visible]) < 0).sum())
    if unknown:
        remedy = "Leave them out with graph.subgraph, or make a split of your own."
        got = f"{unknown} nodes of unknown class"
        reject("graph", FUNCTION, "a graph whose nodes all have labels", got, remedy=remedy)
    random = np.random.RandomState(seed)
    train = np.concatenate(
        [random.choice(nodes, per_class, replace=False) for nodes in _by_class(graph, labels, visible, per_class)]
    )
    left = visible[~np.isin(visible, train)]
    most = len(left) if test else max(len(left) - 1, 0)
    if stopping > most or not (test or left.size):
        expected = f"at most {most}, the known nodes left after training" + ("" if test else " and one to evaluate")
        reject("stopping", FUNCTION, expected, stopping, remedy="Ask for fewer, or for a larger known set.")
    stops = random.choice(left, stopping, replace=False)
    evaluation = np.setdiff1d(np.arange(graph.n_nodes), visible) if test else left[~np.isin(left, stops)]
    sets = [np.asarray(nodes, dtype=np.int64) for nodes in (train, stops, evaluation)]
    for nodes in sets:
        nodes.flags.writeable = False
    return Split(*sets, seed=seed, test=test)


def known_nodes(n_nodes: int, known: int) -> NDArray[np.int64]:
    """Return the known nodes of a graph in the order drawn, shape (known,): the same for every split.

    >>> known_nodes(5, 3)
    array([4, 3, 1])
    """
    return np.random.RandomState(VISIBLE_SEED).choice(np.arange(n_nodes), known, replace=False)


def _check_known(graph: Graph, known: int | None, test: bool) -> int:
    high = graph.n_nodes - 1 if test else graph.n_nodes
    if known is not None:
        return check_int(known, "known", FUNCTION, low=1, high=high)
    size = DEFAULT_KNOWN if graph.recommended is None else graph.recommended.known
    if size > high:
        reject("known", FUNCTION, f"an integer from 1 to {high}", f"None, which stands for {size},")
    return size


def _by_class(
    graph: Graph, labels: NDArray[np.int64], visible: NDArray[np.int64], per_class: int
) -> list[NDArray[np.int64]]:
    """Return the known nodes of each class, in the order drawn."""
    groups = [visible[labels[visible] == index] for index in range(graph.n_classes)]
    for index, nodes in enumerate(groups):
        if len(nodes) < per_class:
            name = "" if graph.class_names is None else f" ({graph.class_names[index]!r})"
            expected = f"at most {len(nodes)}, the number of known nodes of class {index}{name}"
            reject("per_class", FUNCTION, expected, per_class, remedy="Ask for fewer, or for a larger known set.")
    return groups
