"""Any scikit-learn classifier, its predictions spread over a graph."""

from __future__ import annotations

import copy
from typing import Any, NoReturn, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from pprop._errors import InputError
from pprop._validate import check_choice, check_int, describe, reject
from pprop.estimators import base
from pprop.estimators._outputs import choose_response, classes_of, node_rows, outputs, take
from pprop.estimators._samples import class_labels, known_labels, no_target
from pprop.estimators._settings import switch, teleport_probability
from pprop.graph import NORMALIZATIONS, Graph
from pprop.propagation import PowerIteration, Solver, Statistics, solve

__all__ = ["PropagatedClassifier"]

_NAME = "PropagatedClassifier"


@final
class PropagatedClassifier(base.NodeScores):
    """A scikit-learn classifier that sees each node alone; its predictions are then spread by personalized PageRank.

        Z = (1 - alpha) T Z + alpha H,    H the predictions of `estimator` for every node.

    The graph takes no part in the training, only in the predictions. Samples are nodes, as in `APPNPClassifier`:
    wherever scikit-learn says X, give positions. So `GridSearchCV`, `cross_val_score` and the like work, with the
    settings of the inner estimator under names such as ``estimator__C``.

    Parameters
    ----------
    estimator
        A classifier with `predict_proba` or `decision_function`. It is cloned and fitted to the rows of the nodes in
        `fit`; with `prefit`, used as it is.
    graph
        Shared, not copied, when this classifier is cloned.
    alpha
        Teleport probability. None takes ``graph.recommended.alpha``, or 0.1 where the graph recommends none.
    steps
        Power steps K, where no `solver` is given.
    solver
        In place of K power steps: ``Exact()``, or any other solver.
    response
        What is spread. ``"probabilities"``: those of `predict_proba`. ``"logits"``: the scores of `decision_function`.
        ``"auto"``: logits where the estimator has them, else probabilities.
    normalization
        Of T, see `pprop.transition_matrix`. None takes "row" for probabilities, whose T averages them, so that they
        remain probabilities, and the paper's "sym" for logits. Probabilities that another one was asked for are
        divided by their sum afterwards.
    self_loops
        Whether every node also listens to itself.
    features
        What the estimator is given, one row per node: an array of any number of axes (memory-mapped, if it is large),
        a sparse matrix, a tensor, a data frame, a list of texts. None takes ``graph.features``. It is never copied as a
        whole. ``np.arange(n)`` gives positions, for an estimator whose samples are nodes themselves.
    prefit
        Whether the estimator is fitted already; `fit` then needs no nodes and only spreads its predictions.
    batch_size
        Nodes that the estimator predicts at a time; None: all at once.
    backend
        ``"auto"``, or ``"numba"``, ``"reference"``.

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
    `predict_proba` sums to one in any case: spread probabilities are, spread logits go through a softmax (which means
    little for the margins of a support vector machine). Save it with pickle or joblib, as scikit-learn's own.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> from sklearn.linear_model import LogisticRegression
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = PropagatedClassifier(LogisticRegression(C=10.0), graph).fit([0, 4], ["left", "right"])
    >>> model.predict([1, 3])
    array(['left', 'right'], dtype='<U5')
    >>> model.predict_proba([1]).sum().round(12)
    np.float64(1.0)
    """

    def __init__(
        self,
        estimator: Any,
        graph: Graph,
        alpha: float | None = None,
        steps: int = 10,
        solver: Solver | None = None,
        response: str = "auto",
        normalization: str | None = None,
        self_loops: bool = True,
        features: Any = None,
        prefit: bool = False,
        batch_size: int | None = None,
        backend: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.graph = graph
        self.alpha = alpha
        self.steps = steps
        self.solver = solver
        self.response = response
        self.normalization = normalization
        self.self_loops = self_loops
        self.features = features
        self.prefit = prefit
        self.batch_size = batch_size
        self.backend = backend

    estimator_: Any
    alone_: NDArray[np.float64]
    response_: str
    normalization_: str
    alpha_: float
    statistics_: Statistics

    def fit(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Self:
        """Fit the estimator to some nodes, and spread its predictions for all of them.

        Parameters
        ----------
        X
            Node positions, shape (m,) or (m, 1); not read with `prefit`.
        y
            Their classes, shape (m,): integers or strings; not read with `prefit`.

        Returns
        -------
        self
        """
        graph = self._check_graph()
        solver, alpha = self._solver(graph)
        response = choose_response(self.estimator, self.response, _NAME)
        normalization = self._normalization(response)
        loops, prefit = switch(self.self_loops, "self_loops", _NAME), switch(self.prefit, "prefit", _NAME)
        batch = None if self.batch_size is None else check_int(self.batch_size, "batch_size", _NAME, low=1)
        rows = node_rows(self.features, graph, _NAME)
        estimator, nodes, labels = self.estimator, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.str_)
        if not prefit:
            nodes, labels = _samples(graph, X, y)
            estimator = cast("Any", clone(estimator)).fit(take(rows, nodes), labels)
        classes = classes_of(estimator, _NAME)
        alone = outputs(estimator, rows, graph.n_nodes, len(classes), response, batch, _NAME)
        solution = solve(graph, alone, alpha, solver, normalization, loops, backend=self.backend)
        self.estimator_, self.graph_, self.classes_, self.alone_ = estimator, graph, classes, alone
        self.logits_ = _log_shares(solution.value) if response == "probabilities" else solution.value
        self.alpha_, self.response_, self.normalization_ = alpha, response, normalization
        self.statistics_ = solution.statistics
        self.known_nodes_, first = np.unique(nodes, return_index=True)
        self.known_labels_ = labels[first]
        self.n_features_in_ = 1
        return self

    def save(self, path: object, **options: object) -> NoReturn:
        """Refuse: the folder that `pprop.load` reads holds no code, and any estimator may be inside; use joblib or pickle."""
        del path, options
        raise InputError(
            f"A {_NAME} is not saved as a folder, since its {type(self.estimator).__name__} can only be pickled. Call "
            "joblib.dump(model, 'model.joblib'), and joblib.load to have it again, where you trust the file."
        )

    def __sklearn_clone__(self) -> Self:
        # scikit-learn would copy the features, which are shared like the graph: they may be larger than memory
        settings = cast("dict[str, Any]", self.get_params(deep=False))
        twin = type(self)(
            **{
                name: value if name == "features" else cast("Any", clone(value, safe=False))
                for name, value in settings.items()
            }
        )
        if hasattr(self, "_metadata_request"):  # what set_score_request was told
            object.__setattr__(twin, "_metadata_request", copy.deepcopy(cast("Any", self)._metadata_request))
        return twin

    def _solver(self, graph: Graph) -> tuple[Solver, float]:
        if self.solver is not None and not isinstance(self.solver, Solver):
            reject("solver", _NAME, "a solver, such as Exact(), or None", describe(self.solver))
        solver = PowerIteration(check_int(self.steps, "steps", _NAME, low=0)) if self.solver is None else self.solver
        return solver, solver.check_alpha(teleport_probability(self.alpha, graph, "[0, 1]", _NAME), _NAME)

    def _normalization(self, response: str) -> str:
        if self.normalization is None:
            return "row" if response == "probabilities" else "sym"
        return check_choice(self.normalization, "normalization", _NAME, NORMALIZATIONS)


def _samples(graph: Graph, X: object, y: object) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the nodes to be fitted to and their labels, shape (m,) each, checked."""
    nodes = base.node_positions(X, "X", "fit", graph.n_nodes)
    if len(nodes) == 0:
        reject("X", "fit", "an array of at least one node", "none")
    if y is None:
        raise no_target(_NAME)
    labels = class_labels(y, "y", "fit", len(nodes))
    classes, codes = np.unique(labels, return_inverse=True)
    known_labels(nodes, codes, graph.n_nodes, "fit")  # refuses two classes for one node
    if len(classes) < 2:
        reject("y", "fit", "labels of at least two classes", f"1 class, {classes[0].item()!r},")
    return nodes, labels


def _log_shares(spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of spread probabilities (n, c), divided by their sum; of a zero, that of a tiny number.

    A row without anything, which a directed graph without teleport may leave, counts every class alike.
    """
    floor = np.finfo(np.float64).tiny
    positive = np.maximum(spread, floor)  # a solver to a tolerance may leave zeros a little below
    return np.log(np.maximum(positive / positive.sum(axis=1, keepdims=True), floor))
