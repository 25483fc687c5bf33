"""Gradient boosting, or any scikit-learn classifier, on columns that know the graph."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import has_fit_parameter

from pprop import settings
from pprop._process import compiling
from pprop._validate import describe, reject
from pprop.estimators.fitted import AnyModel, Columns, Fitted, Learned, TrainingRecord
from pprop.estimators.judgement import measured
from pprop.estimators.node import GRAPH, RANDOM_STATE, NodeClassifier, parameters, unchecked
from pprop.estimators.propagated import outputs
from pprop.estimators.propagated_features import PropagatedFeatures
from pprop.estimators.reading import FitData, Given
from pprop.estimators.several_targets import SeveralLabels
from pprop.graph import Graph
from pprop.training import History

_NAME = "ColumnsClassifier"
_BATCH = 2**17  # nodes that are predicted at a time
# Where a probability is 0, its logarithm is that of this number.
_LEAST = float(np.finfo(np.float64).tiny)

ESTIMATOR = settings.Setting[Any](
    "estimator",
    None,
    "A classifier with `predict_proba`. It is cloned, and fitted to the columns of the training nodes. None: scikit-learn's "
    "`HistGradientBoostingClassifier` with 120 rounds, a learning rate of 0.08, 15 leaves and an L2 penalty of 1.",
    unchecked,
)


@final
@parameters
class ColumnsClassifier(NodeClassifier):
    """Gradient boosting on columns of each node's surroundings: features and known labels nearby, structure of the graph.

    The columns are those of `PropagatedFeatures`. They let a classifier use neighbours that differ as well as neighbours that
    are alike. Labels in the columns of a training node are out of fold: its own label is not among them. The columns of all
    other nodes hold the labels of all training nodes. Samples are nodes, as in `APPNPClassifier`, which also lists the
    attributes.

    Validation nodes, `stopping` of `fit`, measure the model and choose its `threshold`: their labels are neither learned
    nor in a column.

    Attributes
    ----------
    estimator_, features_
        The fitted estimator, whose classes are positions in ``classes_`` (of several labels per node a list, one for each), and
        the fitted `PropagatedFeatures`. A model that was loaded has neither.
    logits_
        Logarithms of the probabilities of all nodes, shape (n, c).
    record_
        How long it took, and loss and accuracy on the validation nodes.

    Notes
    -----
    A saved model holds the probabilities of all nodes and not the estimator, since nothing is pickled. It predicts the nodes
    of its own graph alone. Pickle or joblib keep the estimator, too.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> from sklearn.linear_model import LogisticRegression
    >>> ring = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(40, 40))
    >>> graph = pprop.Graph.from_scipy(ring, features=np.arange(40.0)[:, None] % 2)
    >>> y = np.where(np.arange(40) % 2, "odd", "even")
    >>> model = ColumnsClassifier(graph, estimator=LogisticRegression(), random_state=0).fit(range(0, 30), y[:30])
    >>> model.predict([38, 39])
    array(['even', 'odd'], dtype='<U4')
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
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.MEASURED_SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    stopping: float | None = settings.MEASURED.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()

    _several_labels = True
    _kind = Columns
    stops_early = False

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        _check_estimator(self.estimator)
        return self._learned(given, values | {"scaling": "none"}, self._learn)

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Columns)
        if isinstance(data.target, SeveralLabels):
            return self._learn_several(model, data, values)
        begin, compiled = time.perf_counter(), compiling.seconds
        graph, target, train, seed = data.graph, data.classes, data.split.train, data.seed % 2**32
        present, places = np.unique(data.values[train], return_inverse=True)
        if len(present) < 2:
            reject(
                "y", "fit", "training labels of at least two classes", f"1 class, {target.names[present[0]].item()!r},"
            )
        known = np.unique(train)
        columns = columns_of(model, data, values, "classes")
        # text: an integer might be read as the mark of an unknown label
        rows = columns.fit(known, target.names.astype(str)[data.values[known]]).columns_
        estimator = boosting(seed) if self.estimator is None else cast("Any", clone(self.estimator))
        estimator.fit(rows[train], places, **weights_of(estimator, data, train, _NAME))
        made = outputs(estimator, rows, graph.n_nodes, len(present), "probabilities", _BATCH, _NAME)
        logarithms = np.full((graph.n_nodes, target.columns), np.log(_LEAST))
        logarithms[:, present] = np.log(np.maximum(made, _LEAST))
        watched = data.split.stopping
        weights = None if data.weights is None else data.weights.nodes[watched]
        record = TrainingRecord(
            epochs=0,
            best_epoch=0,
            seconds=time.perf_counter() - begin,
            compile_seconds=compiling.seconds - compiled,
            backend=type(estimator).__module__.partition(".")[0],
            device="cpu",
            seed=data.seed,
            train_nodes=len(train),
            stopping_nodes=len(watched),
            **measured(target, data.values[watched], logarithms[watched], weights, values["scoring"]),
        )
        self.estimator_, self.features_ = estimator, columns
        none = np.empty(0)
        history = History(none, none.copy(), none.copy())
        return Learned({}, logarithms, record, history, extras={"log_probabilities": logarithms})

    def _learn_several(self, model: Columns, data: FitData, values: dict[str, Any]) -> Learned:
        """Fit one estimator to each label of several; outputs are log odds."""
        begin, compiled = time.perf_counter(), compiling.seconds
        graph, train, watched, seed = data.graph, data.split.train, data.split.stopping, data.seed % 2**32
        columns, known = columns_of(model, data, values, "labels"), np.unique(train)
        rows = columns.fit(known, data.values[known]).columns_
        odds, estimators = np.empty((graph.n_nodes, data.target.columns)), list[Any]()
        for place in range(data.target.columns):
            some = train[~np.isnan(data.values[train, place])]
            named = data.values[some, place].astype(np.int64)
            if len(np.unique(named)) < 2:
                got = f"column {place}, of which {'all' if named.any() else 'none'} are"
                reject("y", "fit", "labels that some training nodes have and others have not", got)
            estimator = boosting(seed) if self.estimator is None else cast("Any", clone(self.estimator))
            estimator.fit(rows[some], named, **weights_of(estimator, data, some, _NAME))
            share = outputs(estimator, rows, graph.n_nodes, 2, "probabilities", _BATCH, _NAME)
            odds[:, place] = np.log(np.maximum(share[:, 1], _LEAST)) - np.log(np.maximum(share[:, 0], _LEAST))
            estimators.append(estimator)
        targets, kept = data.values[watched], ~np.isnan(data.values[watched])
        each = np.logaddexp(0, odds[watched]) - np.nan_to_num(targets) * odds[watched]
        record = TrainingRecord(
            epochs=0,
            best_epoch=0,
            stopping_loss=float(each[kept].mean() * data.target.columns) if kept.any() else np.nan,
            stopping_accuracy=float(((odds[watched] > 0) == (targets > 0))[kept].mean()) if kept.any() else np.nan,
            seconds=time.perf_counter() - begin,
            compile_seconds=compiling.seconds - compiled,
            backend=type(estimators[0]).__module__.partition(".")[0],
            device="cpu",
            seed=data.seed,
            train_nodes=len(train),
            stopping_nodes=len(watched),
        )
        self.estimator_, self.features_ = estimators, columns
        none = np.empty(0)
        return Learned({}, odds, record, History(none, none.copy(), none.copy()))

    def _settings(self) -> dict[str, Any]:
        # the estimator as text: what a file can hold, and a later change of the estimator does not change
        return super()._settings() | {"estimator": None if self.estimator is None else str(self.estimator)}


def columns_of(model: Columns, data: FitData, values: dict[str, Any], task: str) -> PropagatedFeatures:
    """Return the columns that are to be computed of the training nodes and what is known of them."""
    return PropagatedFeatures(
        data.graph,
        hops=model.hops,
        spread=min(model.hops, 1),
        labels=model.label_inputs,
        task=task,
        folds=min(values["folds"], len(np.unique(data.split.train))),
        components=model.components,
        missing_labels=(),
        random_state=data.seed % 2**32,
    )


def weights_of(estimator: Any, data: FitData, nodes: NDArray[np.int64], function: str) -> dict[str, Any]:
    """Return how much nodes count, as an argument of `fit`, where they do not count the same."""
    if data.weights is None:
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        got = f"{type(estimator).__name__}, whose fit has no sample_weight,"
        reject("estimator", function, "one that weights samples, where nodes or classes have weights", got)
    return {"sample_weight": data.weights.nodes[nodes]}


def boosting(seed: int) -> Any:
    """Return scikit-learn's gradient boosting with the settings that did well on many graphs, without early stopping."""
    kind: Any = HistGradientBoostingClassifier
    return kind(
        learning_rate=0.08,
        max_iter=120,
        max_leaf_nodes=15,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )


def _check_estimator(estimator: Any) -> None:
    expected = "a classifier with predict_proba, such as RandomForestClassifier(), or None"
    if isinstance(estimator, str):
        remedy = "A model that was loaded has its estimator as text: pass the estimator again."
        reject("estimator", _NAME, expected, repr(estimator), remedy=remedy)
    if isinstance(estimator, type):
        reject("estimator", _NAME, expected, f"the class {estimator.__name__}")
    if estimator is not None and not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
        reject("estimator", _NAME, expected, describe(estimator))
