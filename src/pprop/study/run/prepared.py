"""A dataset made ready for the runs of a cell: who may see which labels is settled here, and nowhere else.

No graph that leaves this module has the label of a test node. Models are trained on such a graph; the test labels stay
with the one object that compares predictions with them, and a validation cell does not have them at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop.datasets import TEST_SEEDS, Split, load_dataset, paper_split
from pprop.graph import Graph
from pprop.study.cell import Cell, Splits
from pprop.study.stats.metrics import accuracy, f1_macro, f1_paper


def hide_test_labels(graph: Graph) -> Graph:
    """Return the graph with the labels of all test nodes unknown (-1).

    Examples
    --------
    >>> graph = load_dataset("citeseer")
    >>> hidden = hide_test_labels(graph)
    >>> int((hidden.labels < 0).sum()), hidden.n_classes
    (610, 6)
    """
    assert graph.labels is not None
    test = paper_split(graph, TEST_SEEDS[0], per_class=1, stopping=0).evaluation  # the same in every split
    labels = graph.labels.copy()
    labels[test] = -1
    return graph.replace(labels=labels)


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """A dataset for one kind of split.

    Attributes
    ----------
    graph
        For training: without the labels of test nodes.
    data
        Fingerprint of the whole dataset.
    splits
        ``"test"`` or ``"validation"``.

    Examples
    --------
    >>> prepared = Datasets().prepare("citeseer", "validation")
    >>> prepared.split(2413340114, per_class=20)
    Split(120 train, 500 stopping, 880 validation, seed=2413340114)
    """

    graph: Graph
    data: str
    splits: Splits
    _judge: Graph = field(repr=False)  # that labels are compared with; for validation it has no test labels either
    _drawn: dict[tuple[int, int], Split] = field(default_factory=dict[tuple[int, int], Split], repr=False)

    def split(self, seed: int, per_class: int) -> Split:
        """Return a split; more nodes per class than there are raise InputError."""
        if (seed, per_class) not in self._drawn:
            split = paper_split(self._judge, seed, test=self.splits == "test", per_class=per_class)
            self._drawn[seed, per_class] = split
        return self._drawn[seed, per_class]

    def scores(self, predictions: NDArray[np.uint8], split: Split) -> dict[str, float]:
        """Return the metrics of a row for the predicted class of every node, shape (n,)."""
        labels, n_classes = self._judge.labels, self._judge.n_classes
        assert labels is not None
        truth, found = labels[split.evaluation], predictions[split.evaluation]
        f1, macro = f1_paper(found, truth, n_classes), f1_macro(found, truth, n_classes)
        return {"accuracy": accuracy(found, truth), "f1": f1, "f1_macro": macro}


@final
class Datasets:
    """The datasets of a study, each read once for each kind of split.

    Examples
    --------
    >>> datasets = Datasets()
    >>> datasets.prepare("citeseer", "test") is datasets.prepare("citeseer", "test")
    True
    """

    def __init__(self) -> None:
        self._ready: dict[tuple[str, Splits], Prepared] = {}

    def of(self, cell: Cell) -> Prepared:
        """Return the dataset of a cell."""
        return self.prepare(cell.dataset, cell.splits)

    def prepare(self, dataset: str, splits: Splits) -> Prepared:
        """Return a dataset for one kind of split."""
        if (dataset, splits) not in self._ready:
            whole = load_dataset(dataset)
            hidden = hide_test_labels(whole)
            judge = whole if splits == "test" else hidden
            self._ready[dataset, splits] = Prepared(hidden, whole.fingerprint, splits, judge)
        return self._ready[dataset, splits]
