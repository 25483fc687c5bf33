"""`fit`, as all classifiers of nodes have it: what it is given, read and checked before one of them learns from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from pprop._validate import reject
from pprop.estimators.fitted import Fitted
from pprop.estimators.reading import Given, StoppingNodes
from pprop.estimators.scores import NodeScores
from pprop.estimators.targets import LabelsLike
from pprop.graph.labels import MISSING_LABELS
from pprop.settings import OPTIONAL_STOPPING


class NodeFit(NodeScores, ABC):
    """Mixin with `fit`, which leaves the learning to `_fit`."""

    # What else than early stopping needs stopping nodes; None: nothing, and `stopping` may be None.
    _stopping_nodes_also: ClassVar[str | None] = None

    @abstractmethod
    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        """Learn from nodes of the graph with these settings, which were validated; return what is left behind."""

    def fit(
        self,
        X: ArrayLike | None = None,
        y: LabelsLike | None = None,
        *,
        stopping: StoppingNodes = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        missing_labels: Sequence[str] = MISSING_LABELS,
    ) -> Self:
        """Learn from the labels of some nodes of the graph.

        Parameters
        ----------
        X
            Nodes: integers, always positions, shape (m,) or (m, 1); n truth values, a mask; or text, always ids. None:
            all nodes. A node listed k times counts k times in the loss.
        y
            Their classes, shape (m,): integers, text or truth values; with a mask also one per node of the graph, shape
            (n,). Whole numbers stored as floats become integers. Unknown are None, NaN, what a masked array masks, and
            what `missing_labels` lists; these nodes are left out, and ``n_unlabelled_`` counts them. Where -1 and one
            other integer are the only labels, -1 is a class, and a warning says so. The index of a pandas series counts:
            where it holds ids of the graph, labels are found by them, and without X it names the nodes. Where it is 0,
            1, 2, ..., labels are in the order of the nodes. Where X has an index, too, it may be the same one. Any
            other index is refused. The same holds for `sample_weight`, for `stopping` and for a mask.
        stopping
            What early stopping watches: ``(nodes, y)`` of further nodes, or a fraction in (0, 1) of the nodes in `X`,
            which then do not train. None takes the fraction given to the constructor, or if that is None no node: early
            stopping is off. Of a class with m nodes, ``round(fraction * m)`` are set aside, at least one and at most
            m - 1; the only node of a class trains. Where every class has only one node, early stopping watches the
            training nodes, and a warning says so. Label propagation, which has nothing to stop, takes no fraction, and
            spreads the labels of further nodes, too.
        sample_weight
            How much each node counts, like `y`; None: all the same. Weight k is like listing a node k times, and
            weight 0 like leaving it out. Nodes given as `stopping` count as one. Weights by class come on top.
        ids
            In place of X: ids, integers or text.
        missing_labels
            What stands for an unknown label, as text: ``"-1"`` is also the integer.

        Returns
        -------
        self
        """
        name, graph = type(self).__name__, self._check_graph()
        values = self._checked()
        held = OPTIONAL_STOPPING.check(getattr(self, "stopping", None), name) if stopping is None else stopping
        if held is None and self._stopping_nodes_also is not None:
            reject("stopping", name, f"a float in (0, 1): {self._stopping_nodes_also}", None)
        given = Given.read(
            graph, X, y, name, stopping=held, sample_weight=sample_weight, ids=ids, missing_labels=missing_labels
        )
        fitted = self._fit(given, values)
        self.fitted_ = replace(fitted, unlabelled=given.unlabelled, missing_labels=given.missing_labels)
        return self
