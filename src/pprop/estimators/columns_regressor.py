"""Gradient boosting, or any scikit-learn regressor, on columns that know the graph."""

from __future__ import annotations

import time
from dataclasses import field
from typing import Any, cast, final

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from pprop import settings
from pprop._process import compiling
from pprop._validate import describe, reject
from pprop.estimators.columns import columns_of, weights_of
from pprop.estimators.fitted import AnyModel, Columns, Fitted, Learned, TrainingRecord
from pprop.estimators.node import GRAPH, RANDOM_STATE, NodeRegressor, parameters, unchecked
from pprop.estimators.reading import FitData, Given
from pprop.estimators.several_targets import Quantities
from pprop.graph import Graph
from pprop.training import History

_NAME = "ColumnsRegressor"

ESTIMATOR = settings.Setting[Any](
    "estimator",
    None,
    "A regressor. A clone is fitted to the columns of the training nodes, for each number of its own. None: scikit-learn's "
    "`HistGradientBoostingRegressor` with 200 rounds, a learning rate of 0.08, 15 leaves and an L2 penalty of 1.",
    unchecked,
)


@final
@parameters
class ColumnsRegressor(NodeRegressor):
    """Gradient boosting on columns of each node's surroundings: features and known numbers nearby, structure of the graph.

    The columns are those of `PropagatedFeatures`. Known numbers in the columns of a training node are out of fold: its own is
    not among them. Samples are nodes, as in `APPNPRegressor`. Validation nodes, `stopping` of `fit`, only measure the model: their
    numbers are neither learned nor in a column.

    Attributes
    ----------
    estimators_, features_
        The fitted estimators, one for each number, and the fitted `PropagatedFeatures`.
    outputs_
        The standardised predictions of all nodes, shape (n, k).
    record_
        How long it took; what it calls accuracy is 1 less the mean squared error of the standardised numbers.

    Notes
    -----
    Keep it with pickle or joblib.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> ring = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(200, 200))
    >>> graph = pprop.Graph.from_scipy(ring, features=(np.arange(200.0)[:, None] * 7) % 50)
    >>> neighbours = graph.adjacency @ graph.features[:, 0]
    >>> model = ColumnsRegressor(graph, random_state=0).fit(range(150), neighbours[:150])
    >>> bool(model.score(range(150, 199), neighbours[150:199]) > 0.9)
    True
    """

    graph: Graph = field(
        kw_only=False,
        metadata={"setting": GRAPH.but(None, "With features or without. Shared, not copied, in a clone.")},
    )
    estimator: Any = ESTIMATOR.field()
    hops: int = settings.HOPS.field()
    label_inputs: bool = settings.LABEL_COLUMNS.field()
    folds: int = settings.COLUMN_FOLDS.field()
    components: int = settings.COMPONENTS.field()
    stopping: float | None = settings.MEASURED.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()

    _kind = Columns
    stops_early = False

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        if self.estimator is not None and (isinstance(self.estimator, type) or not hasattr(self.estimator, "predict")):
            reject("estimator", _NAME, "a regressor such as Ridge(), or None", describe(self.estimator))
        return self._learned(given, values | {"scaling": "none"}, self._learn)

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Columns)
        assert isinstance(data.target, Quantities)
        begin, compiled = time.perf_counter(), compiling.seconds
        graph, target, seed = data.graph, data.target, data.seed % 2**32
        train, watched = data.split.train, data.split.stopping
        known, columns = np.unique(train), columns_of(model, data, values, "numbers")
        rows = columns.fit(known, data.values[known]).columns_
        made, estimators = np.empty((graph.n_nodes, target.columns)), list[Any]()
        for place in range(target.columns):
            estimator = boosting(seed) if self.estimator is None else cast("Any", clone(self.estimator))
            estimators.append(estimator)
            some = train[~np.isnan(data.values[train, place])]
            much = weights_of(estimator, data, some, _NAME)
            made[:, place] = estimator.fit(rows[some], data.values[some, place], **much).predict(rows)
        strange = np.flatnonzero(~np.isfinite(made).all(axis=1))
        if strange.size:
            reject(
                "estimator", _NAME, "a regressor with finite predictions", f"{made[strange[0]]} for node {strange[0]}"
            )
        off = np.nanmean(np.square(made[watched] - data.values[watched])) if len(watched) else np.nan
        record = TrainingRecord(
            epochs=0,
            best_epoch=0,
            stopping_loss=float(0.5 * off * target.columns),
            stopping_accuracy=float(1 - off),
            seconds=time.perf_counter() - begin,
            compile_seconds=compiling.seconds - compiled,
            backend=type(estimators[0]).__module__.partition(".")[0],
            device="cpu",
            seed=data.seed,
            train_nodes=len(train),
            stopping_nodes=len(watched),
        )
        self.estimators_, self.features_ = estimators, columns
        none = np.empty(0)
        return Learned({}, made, record, History(none, none.copy(), none.copy()))

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"estimator": None if self.estimator is None else str(self.estimator)}


def boosting(seed: int) -> Any:
    """Return scikit-learn's gradient boosting, without early stopping."""
    kind: Any = HistGradientBoostingRegressor
    return kind(
        learning_rate=0.08,
        max_iter=200,
        max_leaf_nodes=15,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
