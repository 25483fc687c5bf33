"""Splits of a graph of one's own as life has them: the future is tested on the past, and what belongs together stays together."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._errors import InputError
from pprop._validate import check_array, check_float, check_int, counted, describe, reject
from pprop.datasets.splits import Split
from pprop.graph import Graph
from pprop.graph.rows import NodeNames, in_node_order

TEST = 0.2
STOPPING = 0.2


def time_split(
    graph: Graph, times: ArrayLike, *, test: float = TEST, stopping: float = STOPPING, labels: ArrayLike | None = None
) -> Split:
    """Train on the past and test on the future: the latest labelled nodes test, those before them stop the training.

    Nodes of one time stay together, in the later of two sets. A node without a time takes no part.

    Parameters
    ----------
    graph
        With n nodes.
    times
        Numbers, dates (numpy's datetime64 or a series of pandas) or texts that sort by time, such as "2026-11-19", shape
        (n,); a series is read by its index where that holds ids. Missing: NaN, NaT, None or "".
    test, stopping
        Shares of the labelled nodes with a time.
    labels
        Class indices, shape (n,), -1 where unknown; None: the graph's.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> graph = Graph.from_scipy(sp.csr_array((6, 6)), labels=[0, 1, 0, 1, 0, -1])
    >>> split = time_split(graph, [2020, 2021, 2022, 2023, 2019, 2024], test=0.2, stopping=0.2)
    >>> split.train, split.stopping, split.evaluation
    (array([0, 1, 4]), array([2]), array([3]))
    """
    function = "time_split"
    shares = _shares(test, stopping, function)
    when = _column(graph, times, "times", function)
    ranks = _ranks(when, function)
    known = np.flatnonzero((_labels(graph, labels, function) >= 0) & (ranks >= 0))
    sizes = np.bincount(ranks[known], minlength=int(ranks.max(initial=-1)) + 1)
    after = len(known) - np.cumsum(sizes) + sizes  # nodes of a time or a later one
    tests = after <= max(round(shares[0] * len(known)), 0)
    stops = ~tests & (after - int(sizes[tests].sum()) <= round(shares[1] * len(known)))
    part = np.where(tests, 2, np.where(stops, 1, 0))[ranks[known]]
    return _split(known, part, shares, 0, "times: a time that many nodes share is not divided. Ask for larger shares")


def group_split(
    graph: Graph,
    groups: ArrayLike,
    *,
    test: float = TEST,
    stopping: float = STOPPING,
    labels: ArrayLike | None = None,
    seed: int = 0,
) -> Split:
    """Keep together what belongs together, such as the members of a household: each group is in one of the three sets.

    Groups are dealt one by one, the largest first, each to the set whose classes then come nearest to its share of each
    class. A node without a group is a group of its own.

    Parameters
    ----------
    graph
        With n nodes.
    groups
        Numbers or texts, shape (n,); a series is read by its index where that holds ids. Missing: NaN, None or "".
    test, stopping
        Shares of the labelled nodes.
    labels
        Class indices, shape (n,), -1 where unknown; None: the graph's.
    seed
        Of the order of groups that are alike.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> graph = Graph.from_scipy(sp.csr_array((6, 6)), labels=[0, 1, 0, 1, 0, 1])
    >>> group_split(graph, ["a", "a", "b", "b", "c", "c"], test=0.34, stopping=0.33, seed=1)
    Split(2 train, 2 stopping, 2 test, seed=1)
    """
    function = "group_split"
    shares = _shares(test, stopping, function)
    seed = check_int(seed, "seed", function, low=0, high=2**32 - 1)
    column = _column(graph, groups, "groups", function)
    ranks = _ranks(column, function, "groups")
    codes = _labels(graph, labels, function)
    known = np.flatnonzero(codes >= 0)
    group, alone = ranks[known], ranks[known] < 0
    group[alone] = ranks.max(initial=-1) + 1 + np.arange(np.count_nonzero(alone))
    names, group = np.unique(group, return_inverse=True)
    classes, code = np.unique(codes[known], return_inverse=True)
    table = np.zeros((len(names), len(classes)))
    np.add.at(table, (group, code), 1.0)
    random = np.random.default_rng(seed)
    order = random.permutation(len(names))
    wanted = np.outer([1 - sum(shares), shares[1], shares[0]], table.sum(axis=0))
    found, dealt = np.zeros_like(wanted), np.zeros(len(names), dtype=np.int64)
    scale = table.sum(axis=0)
    order = order[np.argsort(-np.linalg.norm(table / scale, axis=1)[order], kind="stable")]
    for one in order:
        # how far each set is from what it should have, as a share of its class, with this group and without
        gain = (((wanted - found - table[one]) / scale) ** 2 - ((wanted - found) / scale) ** 2).sum(axis=1)
        gain[[part for part, share in ((1, shares[1]), (2, shares[0])) if share == 0]] = np.inf
        dealt[one] = int(gain.argmin())
        found[dealt[one]] += table[one]
    return _split(
        known, dealt[group], shares, seed, "groups: there are too few, or one is too large. Ask for other shares"
    )


def _split(
    known: NDArray[np.int64], part: NDArray[np.int64], shares: tuple[float, float], seed: int, why: str
) -> Split:
    train, stopping, test = (known[part == number] for number in range(3))
    for name, nodes, share in (
        ("training", train, 1.0),
        ("validation", stopping, shares[1]),
        ("test", test, shares[0]),
    ):
        if share and not len(nodes):
            raise InputError(f"No {name} node is left of {counted(len(known), 'labelled node')} divided by {why}.")
    return Split(train, stopping, test, seed=seed)


def _shares(test: object, stopping: object, function: str) -> tuple[float, float]:
    found = check_float(test, "test", function, "[0, 1)"), check_float(stopping, "stopping", function, "[0, 1)")
    if sum(found) >= 1:
        reject("stopping", function, f"less than {1 - found[0]:g}, so that nodes are left for training", found[1])
    return found


def _labels(graph: Graph, labels: ArrayLike | None, function: str) -> NDArray[np.int64]:
    found = graph.labels if labels is None else _column(graph, labels, "labels", function)
    if found is None:
        raise InputError(
            f"{function} needs labels, and this graph has none. Pass labels=..., one class index per node."
        )
    if found.dtype.kind == "O":
        found = np.array(found.tolist())
    if found.dtype.kind not in "iu":
        reject("labels", function, "class indices, -1 where unknown", found)
    return found.astype(np.int64)


def _column(graph: Graph, values: object, name: str, function: str) -> NDArray[np.generic]:
    if not isinstance(graph, Graph):
        reject("graph", function, "a pprop.Graph", describe(graph))
    expected = f"one value per node, shape ({graph.n_nodes},)"
    if isinstance(values, list):  # numpy would make texts of numbers and texts
        values = np.array(cast("list[object]", values), dtype=object)
    found = check_array(in_node_order(values, NodeNames.of(graph), name, function), name, function, expected)
    if found.shape != (graph.n_nodes,):
        reject(name, function, expected, found)
    return found


def _ranks(values: NDArray[np.generic], function: str, name: str = "times") -> NDArray[np.int64]:
    """Return the positions of values among their sorted different ones, -1 where one is missing."""
    if values.dtype.kind == "O":
        missing = np.array([item is None or item != item or item == "" for item in values.tolist()], dtype=np.bool_)
        items: list[object] = values[~missing].tolist()
        kinds = {type(item) for item in items}
        if len(kinds) > 1 and not kinds <= {int, float, bool}:
            expected = "of one type"
            reject(name, function, expected, " and ".join(sorted(kind.__name__ for kind in kinds)))
        given = np.array(items)
    else:
        if values.dtype.kind not in "iufMmUb":
            reject(name, function, "numbers, dates or texts", values)
        missing = values == "" if values.dtype.kind == "U" else values != values
        given = values[~missing]
    ranks = np.full(len(values), -1, dtype=np.int64)
    ranks[~missing] = np.unique(given, return_inverse=True)[1]
    return ranks
