"""Any scikit-learn regressor, its predictions spread over a graph."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from pprop._validate import describe, reject
from pprop.estimators.fitted import Fitted, SpreadSettings
from pprop.estimators.node import GRAPH, NumberPredictor, parameters
from pprop.estimators.propagated import BATCH_SIZE, ESTIMATOR, FEATURES, SOLVER_OR_NONE, SPREAD_STEPS, node_rows, take
from pprop.estimators.reading import check_sample_weight, labelled_nodes
from pprop.estimators.several_targets import Quantities
from pprop.graph import Graph
from pprop.propagation import PowerIteration, Solver, solve
from pprop.settings import BACKEND, OWN_NORMALIZATION, SELF_LOOPS, TELEPORT, UNBIASED

_NAME = "PropagatedRegressor"


@final
@parameters
class PropagatedRegressor(NumberPredictor):
    """A scikit-learn regressor that sees each node alone; its predictions are then spread by personalized PageRank.

        Z = (1 - alpha) T Z + alpha H,    H the predictions of `estimator` for every node.

    The graph takes no part in the training, only in the predictions. With rows that sum to one, the default, a prediction is a
    weighted mean of those of the node and its surroundings. Samples are nodes, as in `PropagatedClassifier`.

    Attributes
    ----------
    estimator_
        The fitted inner estimator.
    alone_
        Its predictions of all nodes before they are spread, shape (n, k).
    alpha_, normalization_
        How they were spread.
    known_nodes_, known_labels_
        The nodes that `fit` was given, in ascending order, and their numbers.

    Notes
    -----
    Keep it with pickle or joblib, as scikit-learn's own.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> from sklearn.linear_model import Ridge
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.arange(5.0)[:, None])
    >>> model = PropagatedRegressor(Ridge(alpha=1e-9), graph, alpha=0.5).fit([0, 1, 4], [10.0, 11.0, 14.0])
    >>> model.predict([2]).round(6)
    array([12.])
    """

    estimator: Any = field(
        kw_only=False,
        metadata={
            "setting": ESTIMATOR.but(None, "A regressor. It is cloned and fitted to the rows of the nodes in `fit`.")
        },
    )
    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alpha: float | None = TELEPORT.field()
    steps: int = SPREAD_STEPS.field()
    solver: Solver | None = SOLVER_OR_NONE.field()
    normalization: str | None = OWN_NORMALIZATION.but(None, "Of T, see `pprop.transition_matrix`. None: 'row'.").field()
    self_loops: bool = SELF_LOOPS.field()
    features: Any = FEATURES.field()
    batch_size: int | None = BATCH_SIZE.field()
    backend: str = BACKEND.field()

    def fit(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator to some nodes, and spread its predictions for all of them.

        Parameters
        ----------
        X, y, sample_weight, ids
            Nodes, their numbers and how much each counts, as in `APPNPRegressor.fit`.

        Returns
        -------
        self
        """
        graph, values = self._check_graph(), self._checked()
        if not hasattr(self.estimator, "predict") or isinstance(self.estimator, type):
            reject("estimator", _NAME, "a regressor such as Ridge()", describe(self.estimator))
        solver = PowerIteration(values["steps"]) if self.solver is None else self.solver
        alpha = solver.check_alpha(values["alpha"], _NAME)
        normalization = UNBIASED if self.normalization is None else values["normalization"]
        rows = node_rows(self.features, graph)
        given = labelled_nodes(X, y, graph, _NAME, ids=ids, kind=Quantities)
        labels, weights = given.labels, check_sample_weight(sample_weight, given)
        if np.isnan(labels).any():
            reject("y", "fit", "all numbers of a node known, as a regressor needs", "a row with some unknown")
        target = Quantities.of(labels, weights)
        values_of = target.at_nodes(given.nodes, target.encode(labels), graph.n_nodes)
        much: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
        estimator = cast("Any", clone(self.estimator)).fit(take(rows, given.nodes), labels, **much)
        alone = _predictions(estimator, rows, graph.n_nodes, values["batch_size"], target.columns)
        solution = solve(graph, alone, alpha, solver, normalization, values["self_loops"], backend=self.backend)
        known = np.flatnonzero(target.known(values_of))
        self.estimator_, self.statistics_ = estimator, solution.statistics
        self.fitted_ = Fitted(
            kind=type(self),
            settings={name: one for name, one in values.items() if name not in ("estimator", "graph", "features")},
            graph=graph,
            target=target,
            model=SpreadSettings(alpha, solver, normalization, values["self_loops"], "numbers"),
            alpha=alpha,
            outputs=target.encode(solution.value),
            known_nodes=known,
            known_labels=target.decode(values_of[known]),
            alone=alone,
            unlabelled=given.unlabelled,
        )
        return self

    @property
    def alone_(self) -> NDArray[np.float64]:
        """The estimator's predictions of all nodes before they are spread, shape (n, k)."""
        assert self.fitted_.alone is not None
        return self.fitted_.alone

    @property
    def normalization_(self) -> str:
        """Of T, with which it was spread."""
        return cast("SpreadSettings", self.fitted_.model).normalization


def _predictions(estimator: Any, rows: Any, n_nodes: int, batch: int | None, columns: int) -> NDArray[np.float64]:
    """Return the predictions of every node, shape (n, columns), some nodes at a time."""
    size = batch or max(n_nodes, 1)
    found = np.empty((n_nodes, columns))
    for begin in range(0, n_nodes, size):
        some = np.arange(begin, min(begin + size, n_nodes))
        found[some] = np.asarray(estimator.predict(take(rows, some))).reshape(len(some), -1)
    strange = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if strange.size:
        reject("estimator", _NAME, "a regressor with finite predictions", f"{found[strange[0]]} for node {strange[0]}")
    return found
