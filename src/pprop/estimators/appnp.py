"""APPNP, also with a choice of its alpha, PPNP and the network without propagation as scikit-learn classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop import settings
from pprop._validate import reject
from pprop.estimators.fitted import AnyModel, Choice, Learned, choice_of
from pprop.estimators.node import (
    GRAPH,
    NEIGHBOURS,
    PREDICTOR,
    RANDOM_STATE,
    ModuleOrFactory,
    NodeClassifier,
    NodeRegressor,
    parameters,
    train_options,
    warn_unfinished,
)
from pprop.estimators.reading import FitData
from pprop.graph import Graph
from pprop.models import APPNP, MLP, PPNP, Model, SolvedPPNP
from pprop.propagation.certificate import least_error
from pprop.propagation.tolerance import TOLERANCE_SOLVERS, check_solver
from pprop.training import run_seed
from pprop.training.self_training import best_of
from pprop.training.train import train_alphas


@final
@parameters
class APPNPClassifier(NodeClassifier):
    """The paper's APPNP as a scikit-learn classifier: a network on each node, then K power steps over the graph.

    Samples are nodes: wherever scikit-learn says X, give positions of nodes in `graph`, shape (m,) or (m, 1).
    ``graph.positions(ids)`` turns ids into positions. The labels of the graph are never read.

    Attributes
    ----------
    classes_
        The labels seen in `fit`, sorted, shape (c,).
    n_iter_, history_
        Epochs made, and the curves of the losses and of the stopping accuracy.
    record_
        How the training went.
    alpha_, normalization_
        The teleport probability and the normalisation of the propagation matrix that were used.
    weights_, logits_
        The kept weights by name, and the logits of all nodes, shape (n, c).
    train_nodes_, stopping_nodes_
        Positions of the nodes that trained and of those that early stopping watched.
    known_nodes_, known_labels_
        Both of them, each once, and their labels.
    n_unlabelled_
        Nodes given to `fit` that were left out, since their label is unknown; not saved with a model.
    n_features_in_
        1: a sample is one number, its position.

    References
    ----------
    J. Gasteiger, A. Bojchevski, S. Günnemann. Predict then Propagate: Graph Neural Networks meet Personalized PageRank.
    ICLR 2019.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    >>> model.predict_proba([2]).shape, model.n_iter_
    ((1, 2), 20)
    """

    _several_labels = True
    _kind = staticmethod(APPNP)

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alpha: float | None = settings.TELEPORT.field()
    steps: int = settings.STEPS.field()
    propagation_dropout: float | None = settings.SAME_DROPOUT.field()
    neighbours: int | None = NEIGHBOURS.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    predictor: ModuleOrFactory | None = PREDICTOR.field()
    mixed_precision: bool = settings.MIXED_PRECISION.field()
    block_nodes: int | None = settings.BLOCK_NODES.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        if values["neighbours"] is not None and values["scoring"] is not None:
            expected = "None with neighbours, whose mini-batches end by the paper's early stopping alone"
            reject("scoring", type(self).__name__, expected, repr(self.scoring))
        if values["neighbours"] is not None and self.predictor is not None:
            reject("neighbours", type(self).__name__, "None with a predictor of your own", values["neighbours"])
        return super()._learn(model, data, values)


@final
@parameters
class APPNPRegressor(NodeRegressor):
    """APPNP for numbers: a network predicts the number of each node, and K power steps over the graph average the predictions.

    Samples are nodes, as in `APPNPClassifier`. Labels are standardised for the training, which is the same otherwise;
    predictions are in their unit. Of k numbers per node each has an output of its own.

    Attributes
    ----------
    outputs_
        The standardised predictions of all nodes, shape (n, k).
    n_iter_, history_, record_
        Epochs made, the curves of the losses, and how the training went. What they call accuracy is 1 less the mean
        squared error of the standardised numbers.
    others
        Those of `APPNPClassifier` that do not concern classes.

    Notes
    -----
    Keep it with pickle or joblib: the folder that `save` writes holds classifiers alone.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(40, 40))
    >>> graph = pprop.Graph.from_scipy(path, features=np.arange(40.0)[:, None])
    >>> model = APPNPRegressor(graph, hidden=8, dropout=0.0, max_epochs=100, random_state=0)
    >>> model.fit(range(0, 40, 2), 100.0 + np.arange(0, 40, 2)).predict([9, 29]).round(-1)
    array([110., 130.])
    """

    _kind = staticmethod(APPNP)

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alpha: float | None = settings.TELEPORT.field()
    steps: int = settings.STEPS.field()
    propagation_dropout: float | None = settings.SAME_DROPOUT.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    loss: str = settings.NUMBER_LOSS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()


@final
@parameters
class APPNPClassifierCV(NodeClassifier):
    """`APPNPClassifier` with the teleport probability chosen by the stopping nodes.

    One run per alpha, or several, are trained together, with the same nodes and, run by run, the same initial weights
    and dropout masks. The alpha with the best stopping accuracy, on average over its runs, is chosen, or with a `scoring`
    the alpha with the best value of it; among equals the one with the lowest mean stopping loss, then the first. Of its
    runs the best in the same sense is the model: nothing
    is trained again. With ``n_runs=1`` it is what ``APPNPClassifier(graph, alpha=alpha_, ...)`` with the same
    ``random_state`` learns: bit for bit on the numba backend with one hidden layer, and on the CPU with a `predictor`;
    otherwise (several hidden layers, the reference backend, a GPU) within rounding.

    The stopping accuracy of the alpha that was chosen is the best of several, and so a little too good to expect of
    other nodes.

    Attributes
    ----------
    alpha_
        The teleport probability that was chosen.
    alphas_
        Those it was chosen from, shape (a,).
    scores_, losses_
        Stopping accuracy, or value of the `scoring`, and stopping loss of every run at its kept epoch, shape (a, n_runs).
    best_index_, best_run_
        Row and column of the run that became the model. These and the three above are not saved with a model.
    others
        Those of `APPNPClassifier`.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = APPNPClassifierCV(graph, alphas=[0.1, 0.9], hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    >>> model.alpha_ in model.alphas_, model.scores_.shape
    (True, (2, 1))
    """

    _kind = staticmethod(APPNP)
    _stopping_nodes_also = "stopping nodes choose alpha"

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alphas: Sequence[float] | NDArray[np.floating[Any]] = settings.ALPHAS.field()
    n_runs: int = settings.N_RUNS.field()
    steps: int = settings.STEPS.field()
    propagation_dropout: float | None = settings.SAME_DROPOUT.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    predictor: ModuleOrFactory | None = PREDICTOR.field()
    mixed_precision: bool = settings.MIXED_PRECISION.field()
    block_nodes: int | None = settings.BLOCK_NODES.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()

    def _checked(self) -> dict[str, Any]:
        values = super()._checked()
        return values | {"alpha": values["alphas"][0]}  # any: it is chosen in the training

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Model)
        seeds = [data.seed, *(run_seed(data.seed, run) % 2**64 for run in range(1, values["n_runs"]))]
        options, alphas = train_options(values), values["alphas"]
        weights = None if data.weights is None else data.weights.nodes
        how: dict[str, Any] = {"seeds": seeds, "labels": data.values, "weights": weights}
        trained = train_alphas(model, data.graph, data.split, options, alphas=alphas, **how)
        scored = values["scoring"] is not None
        scores = np.stack([one.stopping_score if scored else one.stopping_accuracy for one in trained])
        losses = np.stack([one.stopping_loss for one in trained])
        index = best_of(scores.mean(axis=1), losses.mean(axis=1))
        run = best_of(scores[index], losses[index])
        warn_unfinished(trained[index], values)
        return Learned.of(
            model, trained[index], run, alphas[index], Choice(np.array(alphas), scores, losses, index, run)
        )

    @property
    def alphas_(self) -> NDArray[np.float64]:
        """The teleport probabilities that one was chosen from."""
        return choice_of(self).alphas

    @property
    def scores_(self) -> NDArray[np.float64]:
        """Stopping accuracy, or value of the `scoring`, of every run at its kept epoch."""
        return choice_of(self).scores

    @property
    def losses_(self) -> NDArray[np.float64]:
        """Stopping loss of every run at its kept epoch."""
        losses = choice_of(self).losses
        assert losses is not None
        return losses

    @property
    def best_index_(self) -> int:
        """Row of the run that became the model."""
        return choice_of(self).index

    @property
    def best_run_(self) -> int:
        """Column of the run that became the model."""
        return choice_of(self).run


@final
@parameters
class PPNPClassifier(NodeClassifier):
    """The paper's PPNP as a scikit-learn classifier: a network on each node, then exact personalized PageRank.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; `alpha` is in (0, 1], and there are no
    `steps`.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = PPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([0, 4])
    array([1, 2])
    """

    _several_labels = True
    _kind = staticmethod(PPNP)

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alpha: float | None = settings.POSITIVE_TELEPORT.field()
    propagation_dropout: float | None = settings.SAME_DROPOUT.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    predictor: ModuleOrFactory | None = PREDICTOR.field()
    mixed_precision: bool = settings.MIXED_PRECISION.field()
    block_nodes: int | None = settings.BLOCK_NODES.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()


def check_tol(tol: float, alpha: float, function: str) -> None:
    """Refuse a relative error that float32 cannot reach."""
    least = least_error(alpha, "float32")
    if tol < least:
        reject("tol", function, f"at least {least:.2g}, what float32 can reach at alpha {alpha:g}", tol)


@final
@parameters
class SolvedPPNPClassifier(NodeClassifier):
    """PPNP that solves for all nodes to a tolerance in every epoch, in place of rows of the PPR matrix.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.SolvedPPNP`. It is
    for many labelled nodes, whose rows of the matrix would not fit; for few, `PPNPClassifier` is faster. It trains on
    the CPU.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = SolvedPPNPClassifier(graph, tol=1e-3, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([0, 4])
    array([1, 2])
    """

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alpha: float | None = settings.POSITIVE_TELEPORT.field()
    tol: float = settings.TOL.field()
    solver: str = settings.SOLVER.field()
    hidden: int = settings.WIDTH.field()
    dropout: float = settings.GCN_DROPOUT.field()
    edge_dropout: float = settings.EDGE_DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()

    def _model(self, values: dict[str, Any]) -> SolvedPPNP:
        kind = TOLERANCE_SOLVERS[values["solver"]]
        check_tol(values["tol"], values["alpha"], type(self).__name__)
        names = ("alpha", "hidden", "dropout", "edge_dropout", "penalty", "normalization", "self_loops")
        return SolvedPPNP(solver=kind(values["tol"]), **{name: values[name] for name in names})

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        if data.graph.directed:
            check_solver(values["solver"], type(self).__name__)
        return super()._learn(model, data, values)


@final
@parameters
class MLPNodeClassifier(NodeClassifier):
    """The network alone, which sees the features of each node and no edges.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((5, 5)), features=np.eye(5)[[0, 0, 0, 1, 1]])
    >>> model = MLPNodeClassifier(graph, hidden=8, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([2])
    array([1])
    """

    _several_labels = True
    _kind = staticmethod(MLP)

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    predictor: ModuleOrFactory | None = PREDICTOR.field()
    mixed_precision: bool = settings.MIXED_PRECISION.field()
    block_nodes: int | None = settings.BLOCK_NODES.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()


@final
@parameters
class MLPNodeRegressor(NodeRegressor):
    """The network alone for numbers, which sees the features of each node and no edges.

    Samples are nodes, as in `APPNPRegressor`, which also lists the attributes.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((40, 40)), features=np.arange(40.0)[:, None])
    >>> model = MLPNodeRegressor(graph, hidden=8, dropout=0.0, max_epochs=100, random_state=0)
    >>> model.fit(range(0, 40, 2), 100.0 + np.arange(0, 40, 2)).predict([9, 29]).round(-1)
    array([110., 130.])
    """

    _kind = staticmethod(MLP)

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    loss: str = settings.NUMBER_LOSS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()
