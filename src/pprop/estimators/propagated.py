"""Any scikit-learn classifier, its predictions spread over a graph."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import field
from typing import Any, NoReturn, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.estimators.fitted import Fitted, SpreadSettings
from pprop.estimators.node import GRAPH, ClassPredictor, parameters, recommended_normalization, unchecked
from pprop.estimators.reading import labelled_nodes
from pprop.estimators.targets import Classes, LabelsLike, known_labels
from pprop.graph import Graph
from pprop.graph.attributes import MISSING_LABELS
from pprop.graph.rows import NodeNames, in_node_order
from pprop.propagation import PowerIteration, Solver, solve
from pprop.propagation.live_record import probabilities_of
from pprop.settings import BACKEND, NORMALIZATION, SELF_LOOPS, STEPS, TELEPORT, UNBIASED, Setting, choice, switch, whole

_NAME = "PropagatedClassifier"
RESPONSES = ("logits", "probabilities")
_METHODS = {"probabilities": "predict_proba", "logits": "decision_function"}


def _check_solver(value: object, name: str, function: str) -> object:
    if value is not None and not isinstance(value, Solver):
        reject(name, function, "a solver, such as Exact(), or None", describe(value))
    return value


ESTIMATOR = Setting[Any](
    "estimator",
    None,
    "A classifier with `predict_proba` or `decision_function`. It is cloned and fitted to the rows of the nodes in "
    "`fit`; with `prefit`, used as it is.",
    unchecked,
)
SPREAD_STEPS = STEPS.but(STEPS.default, "Power steps K, at most 10000, where no `solver` is given.")
SOLVER_OR_NONE = Setting[Solver | None](
    "solver", None, "In place of K power steps: ``Exact()``, or any other solver.", _check_solver
)
RESPONSE = choice(
    "response",
    "auto",
    ("auto", *RESPONSES),
    "What is spread. ``'probabilities'``: those of `predict_proba`. ``'logits'``: the scores of `decision_function`. "
    "``'auto'``: logits where the estimator has them, else probabilities. On a graph that recommends no matrix, with "
    "``normalization=None``, probabilities come first: their averages rank a rare class better.",
)
OPTIONAL_NORMALIZATION = NORMALIZATION.optional(
    "Of T, see `pprop.transition_matrix`. None: 'row' for probabilities, whose T averages them, so that they remain "
    "probabilities; for logits the graph's recommended one, or 'row' without one. Probabilities spread with another one are "
    "divided by their sum."
)
FEATURES = Setting[Any](
    "features",
    None,
    "What the estimator is given, one row per node: an array of any number of axes (memory-mapped, if it is large), a "
    "sparse matrix, a tensor, a data frame, a list of texts. None: ``graph.features``. Rows of a pandas frame are found "
    "by the ids in its index. It is never copied as a whole, unless such ids are in another order. "
    "``np.arange(n)`` gives positions, for an estimator whose samples are nodes themselves.",
    unchecked,
)
PREFIT = switch("prefit", False, "Whether the estimator is fitted already; `fit` then only spreads its predictions.")
BATCH_SIZE = whole("batch_size", 1, 1, "Nodes that the estimator predicts at a time; None: all at once.").optional()


@final
@parameters
class PropagatedClassifier(ClassPredictor):
    """A scikit-learn classifier that sees each node alone; its predictions are then spread by personalized PageRank.

        Z = (1 - alpha) T Z + alpha H,    H the predictions of `estimator` for every node.

    The graph takes no part in the training, only in the predictions. Samples are nodes, as in `APPNPClassifier`:
    wherever scikit-learn says X, give positions. So `GridSearchCV`, `cross_val_score` and the like work, with the
    settings of the inner estimator under names such as ``estimator__C``.

    Attributes
    ----------
    estimator_
        The fitted inner estimator.
    classes_
        Its classes, shape (c,).
    alone_
        Its predictions H of all nodes before they are spread, shape (n, c).
    logits_
        The spread predictions of all nodes as logits, shape (n, c): of probabilities the logarithm.
    response_, normalization_, alpha_
        What was spread, and how.
    known_nodes_, known_labels_
        The nodes that `fit` was given, in ascending order, and their labels, for explanations; none with `prefit`.
    statistics_
        Cost and residual of the propagation.
    n_features_in_
        1: a sample is one number, its position.

    Notes
    -----
    `predict_proba` sums to one in any case: spread probabilities do, spread logits go through a softmax (which means
    little for the margins of a support vector machine). Logits that were spread with another T than "row" are first divided
    by the propagation of ones, as in `APPNPClassifier.predict_proba`. Save it with pickle or joblib, as scikit-learn's own.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> from sklearn.linear_model import LogisticRegression
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = PropagatedClassifier(LogisticRegression(C=10.0), graph).fit([0, 4], ["left", "right"])
    >>> model.predict([1, 3])
    array(['left', 'right'], dtype='<U5')
    >>> model.predict_proba([1]).sum().round(12)
    np.float64(1.0)
    """

    estimator: Any = field(kw_only=False, metadata={"setting": ESTIMATOR})
    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alpha: float | None = TELEPORT.field()
    steps: int = SPREAD_STEPS.field()
    solver: Solver | None = SOLVER_OR_NONE.field()
    response: str = RESPONSE.field()
    normalization: str | None = OPTIONAL_NORMALIZATION.field()
    self_loops: bool = SELF_LOOPS.field()
    features: Any = FEATURES.field()
    prefit: bool = PREFIT.field()
    batch_size: int | None = BATCH_SIZE.field()
    backend: str = BACKEND.field()

    def fit(
        self,
        X: ArrayLike | None = None,
        y: LabelsLike | None = None,
        *,
        ids: ArrayLike | None = None,
        missing_labels: Sequence[str] = MISSING_LABELS,
    ) -> Self:
        """Fit the estimator to some nodes, and spread its predictions for all of them.

        Parameters
        ----------
        X, y, ids, missing_labels
            Nodes and their classes, as in `APPNPClassifier.fit`; not read with `prefit`.

        Returns
        -------
        self
        """
        graph = self._check_graph()
        values = self._checked()
        alpha = self.solver_.check_alpha(values["alpha"], _NAME)
        own = self.normalization is None and recommended_normalization(graph) == UNBIASED
        response = choose_response(self.estimator, values["response"], probabilities_first=own)
        averages = self.normalization is None and response == "probabilities"
        normalization = UNBIASED if averages else values["normalization"]
        spread = SpreadSettings(alpha, self.solver_, normalization, values["self_loops"], response)
        rows = node_rows(self.features, graph)
        estimator, nodes, labels = self.estimator, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.str_)
        unlabelled = None
        if not values["prefit"]:
            given = labelled_nodes(X, y, graph, _NAME, ids=ids, missing_labels=missing_labels)
            nodes, labels, unlabelled = given.nodes, given.labels, given.unlabelled
            known_labels(nodes, Classes.of(labels).encode(labels), graph.n_nodes)  # refuses two classes for one node
            estimator = cast("Any", clone(estimator)).fit(take(rows, nodes), labels)
        classes = classes_of(estimator)
        alone = outputs(estimator, rows, graph.n_nodes, len(classes), response, values["batch_size"], _NAME)
        solution = solve(graph, alone, alpha, spread.solver, normalization, spread.self_loops, backend=self.backend)
        logits = solution.value
        if response == "probabilities":  # the logarithm of a zero is that of a tiny number
            logits = np.log(np.maximum(probabilities_of(solution.value, response), np.finfo(np.float64).tiny))
        distinct, first = np.unique(nodes, return_index=True)
        self.estimator_, self.statistics_ = estimator, solution.statistics
        self.fitted_ = Fitted(
            kind=type(self),
            settings={
                name: getattr(self, name) if name == "normalization" else value
                for name, value in values.items()
                if name not in ("estimator", "graph", "features")
            },
            graph=graph,
            target=Classes(classes),
            model=spread,
            alpha=alpha,
            outputs=logits,
            known_nodes=distinct,
            known_labels=labels[first],
            alone=alone,
            unlabelled=unlabelled,
            missing_labels=MISSING_LABELS if values["prefit"] else tuple(missing_labels),
        )
        return self

    @property
    def alone_(self) -> NDArray[np.float64]:
        """The estimator's predictions H of all nodes before they are spread, shape (n, c)."""
        assert self.fitted_.alone is not None
        return self.fitted_.alone

    @property
    def response_(self) -> str:
        """What was spread."""
        return self._spread.response

    @property
    def normalization_(self) -> str:
        """Of T, with which it was spread."""
        return self._spread.normalization

    @property
    def _spread(self) -> SpreadSettings:
        return cast("SpreadSettings", self.fitted_.model)

    @property
    def solver_(self) -> Solver:
        """What propagates: `solver`, or `steps` power steps."""
        return PowerIteration(self.steps) if self.solver is None else self.solver

    def save(self, path: object, **options: object) -> NoReturn:
        """Refuse: the folder that `pprop.load` reads holds no code, and any estimator may be inside; use joblib or pickle."""
        del path, options
        raise InputError(
            f"A {_NAME} is not saved as a folder, since its {type(self.estimator).__name__} can only be pickled. Call "
            "joblib.dump(model, 'model.joblib'), and joblib.load to have it again, where you trust the file."
        )

    def __sklearn_clone__(self) -> Self:
        # scikit-learn would copy the features, which are shared like the graph: they may be larger than memory
        given = cast("dict[str, Any]", self.get_params(deep=False))
        features = given.pop("features")
        copies: dict[str, Any] = {name: clone(value, safe=False) for name, value in given.items()}
        twin = type(self)(features=features, **copies)
        if hasattr(self, "_metadata_request"):  # the arguments of set_score_request
            object.__setattr__(twin, "_metadata_request", copy.deepcopy(cast("Any", self)._metadata_request))
        return twin


def node_rows(features: object, graph: Graph) -> Any:
    """Return the rows that the estimator is given, one per node, as they are: nothing is copied.

    But a frame whose index holds the ids in another order is put into that of the nodes, a sparse matrix in a form without
    rows (COO, for one) becomes CSR, and small numbers of the graph become float32.
    """
    features = in_node_order(features, NodeNames.of(graph), "features", _NAME)
    if features is None and graph.features is None:
        raise InputError(
            f"{_NAME} needs features, and this graph has none. Pass features=..., anything with one row per node."
        )
    rows: Any = graph.features if features is None else features
    shape: Any = (len(rows),) if isinstance(features, list) else getattr(rows, "shape", None)
    if not shape or shape[0] != graph.n_nodes:
        expected = (
            f"an array, a tensor, a sparse matrix, a data frame or a list with {graph.n_nodes} rows, one per node"
        )
        reject("features", _NAME, expected, describe(rows))
    rowless = sparse.issparse(cast("object", features)) and rows.format not in ("csr", "csc", "lil")
    if features is None and rows.dtype.itemsize < np.dtype(np.float32).itemsize:
        return rows.astype(np.float32)
    return rows.tocsr() if rowless else rows


def take(rows: Any, nodes: NDArray[np.int64]) -> Any:
    """Return the rows of some nodes, in the kind of container that all of them have.

    >>> take(["a", "b", "c"], np.array([2, 0])), take(np.eye(2), np.array([1]))
    (['c', 'a'], array([[0., 1.]]))
    """
    if hasattr(rows, "iloc"):
        return rows.iloc[nodes]
    if hasattr(rows, "shape"):
        return rows[nodes]
    return [rows[node] for node in nodes.tolist()]


def choose_response(estimator: object, wanted: str, *, probabilities_first: bool = False) -> str:
    """Return "probabilities" or "logits": the one wanted, or for "auto" the first that the estimator has.

    Logits come first: on validation splits of the paper's graphs they do better than probabilities (docs/predictors.md). On
    other graphs probabilities come first: they rank rare classes better (docs/propagation.md).

    >>> from sklearn.naive_bayes import MultinomialNB
    >>> choose_response(MultinomialNB(), "auto")
    'probabilities'
    """
    has = [kind for kind in RESPONSES if hasattr(estimator, _METHODS[kind])]
    name = type(estimator).__name__
    if isinstance(estimator, type):
        reject("estimator", _NAME, "a classifier such as LogisticRegression()", f"the class {estimator.__name__}")
    if not has:
        expected = "a classifier with predict_proba or decision_function"
        reject("estimator", _NAME, expected, f"{name}, which has neither,")
    if wanted not in ("auto", *has):
        expected = f"{has[0]!r} for {name}, which has no {_METHODS[wanted]}"
        reject("response", _NAME, expected, repr(wanted))
    if wanted != "auto":
        return wanted
    return has[-1] if probabilities_first else has[0]


def classes_of(estimator: Any) -> NDArray[Any]:
    """Return the classes of a fitted estimator, shape (c,)."""
    found: Any = getattr(estimator, "classes_", None)
    if found is None:
        raise NotFittedError(
            f"The estimator of {_NAME} is not fitted: {type(estimator).__name__} has no classes_. Fit it first, or "
            "leave prefit=False. (scikit-learn's clone, and so its cross-validation, forgets a fit; wrap the estimator "
            "in sklearn.frozen.FrozenEstimator to keep it.)"
        )
    several = isinstance(found, list)  # one array for each of several targets
    classes: NDArray[Any] = np.empty((0, 0)) if several else np.asarray(found)
    if classes.ndim != 1 or len(classes) < 2:
        expected = "a classifier of one target with at least two classes"
        got = "several targets" if several else f"classes_ = {describe(found)}"
        reject("estimator", _NAME, expected, f"{type(estimator).__name__} with {got}")
    return classes


def outputs(
    estimator: Any, rows: Any, n_nodes: int, n_classes: int, response: str, batch_size: int | None, function: str
) -> NDArray[np.float64]:
    """Return the outputs of the estimator for every node, shape (n, c).

    Logits of two classes, of which scikit-learn gives the difference d alone, become -d / 2 and d / 2.

    Parameters
    ----------
    estimator, rows
        Fitted; of all nodes.
    n_nodes, n_classes
        n and c.
    response
        "probabilities" or "logits".
    batch_size
        Rows at a time; None gives the estimator the very object that holds all rows.
    function
        For the error sentence.
    """
    method = getattr(estimator, _METHODS[response])
    if batch_size is None:
        found: NDArray[Any] = np.asarray(method(rows), dtype=np.float64)
    else:
        every = np.arange(n_nodes)
        parts = [method(take(rows, every[first : first + batch_size])) for first in range(0, n_nodes, batch_size)]
        found = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    name = f"{type(estimator).__name__}, whose {_METHODS[response]} gives"
    if response == "logits" and found.shape == (n_nodes,) and n_classes == 2:
        found = np.stack([-found / 2, found / 2], axis=1)
    if found.shape != (n_nodes, n_classes):
        expected = f"a classifier with one column per class, shape ({n_nodes}, {n_classes})"
        reject("estimator", function, expected, f"{name} shape {found.shape},")
    if not np.isfinite(found).all():
        reject("estimator", function, "a classifier with finite outputs", f"{name} NaN or infinity,")
    if response == "probabilities" and (found.min() < 0 or np.abs(found.sum(axis=1) - 1).max() > 1e-3):
        expected = "a classifier whose probabilities are not negative and sum to one"
        remedy = 'Use response="logits", where it has any.' if function == _NAME else ""
        reject("estimator", function, expected, f"{name} others,", remedy=remedy)
    return found
