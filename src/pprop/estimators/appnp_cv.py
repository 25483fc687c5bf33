"""APPNP that chooses its teleport probability, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import check_choice, check_float, check_int
from pprop.datasets import Split
from pprop.estimators._model_weights import AnyModel, named_weights
from pprop.estimators._settings import layer_widths, matrix_dropout, module_or_none, power_steps, switch
from pprop.estimators.base import Learned, StoppingNodes
from pprop.estimators.record import TrainingRecord
from pprop.estimators.trained import ModuleOrFactory, TrainedClassifier
from pprop.graph import NORMALIZATIONS, Graph
from pprop.models import APPNP, Model
from pprop.training import run_seed
from pprop.training.alphas import check_alphas, train_alphas

__all__ = ["APPNPClassifierCV"]

ALPHAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


@final
class APPNPClassifierCV(TrainedClassifier):
    """`APPNPClassifier` with the teleport probability chosen by the stopping nodes.

    One run per alpha, or several, are trained together, with the same nodes and, run by run, the same initial weights
    and dropout masks. The alpha with the best stopping accuracy, on average over its runs, is chosen; among equals the
    one with the lowest mean stopping loss, then the first. Of its runs the best in the same sense is the model: nothing
    is trained again. With ``n_runs=1`` it is what ``APPNPClassifier(graph, alpha=alpha_, ...)`` with the same
    ``random_state`` learns: bit for bit on the numba backend with one hidden layer, and on the CPU with a predictor of
    one's own; otherwise (several hidden layers, the reference backend, a GPU) within rounding.

    The stopping accuracy of the alpha that was chosen is the best of several, and so a little too good to expect of
    other nodes.

    Parameters
    ----------
    graph
        With features. It is shared, not copied, when the estimator is cloned.
    alphas
        Teleport probabilities in [0, 1] to choose from, shape (a,).
    n_runs
        Runs per alpha. The first has the seed of `random_state`, run k the seed ``pprop.run_seed(seed, k)``.
    steps, hidden, dropout, propagation_dropout, penalty, learning_rate, patience, max_epochs, normalization, self_loops
        See `APPNPClassifier`.
    predictor, stopping, random_state, backend, device, verbose
        See `APPNPClassifier`.

    Attributes
    ----------
    alpha_
        The teleport probability that was chosen.
    alphas_
        Those it was chosen from, shape (a,).
    scores_, losses_
        Stopping accuracy and loss of every run at its kept epoch, shape (a, n_runs).
    best_index_, best_run_
        Row and column of the run that became the model. A saved model has this and the three above no more.
    others
        Those of `APPNPClassifier`.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = APPNPClassifierCV(graph, alphas=[0.1, 0.9], hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    >>> model.alpha_ in model.alphas_, model.scores_.shape
    (True, (2, 1))
    """

    alphas_: NDArray[np.float64]
    scores_: NDArray[np.float64]
    losses_: NDArray[np.float64]
    best_index_: int
    best_run_: int

    def __init__(
        self,
        graph: Graph,
        alphas: Sequence[float] | NDArray[np.floating[Any]] = ALPHAS,
        n_runs: int = 1,
        steps: int = 10,
        hidden: int | Sequence[int] = 64,
        dropout: float = 0.5,
        propagation_dropout: float | None = None,
        penalty: float = 0.005,
        learning_rate: float = 0.01,
        patience: int = 100,
        max_epochs: int = 10000,
        normalization: str = "sym",
        self_loops: bool = True,
        predictor: ModuleOrFactory | None = None,
        stopping: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "auto",
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.alphas = alphas
        self.n_runs = n_runs
        self.steps = steps
        self.hidden = hidden
        self.dropout = dropout
        self.propagation_dropout = propagation_dropout
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_epochs = max_epochs
        self.normalization = normalization
        self.self_loops = self_loops
        self.predictor = predictor
        self.stopping = stopping
        self.random_state = random_state
        self.backend = backend
        self.device = device
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, stopping: StoppingNodes = None) -> Self:
        """Train with every alpha on some nodes of the graph, and keep the best; see `APPNPClassifier.fit`."""
        super().fit(X, y, stopping=stopping)
        self.alpha_ = float(self.alphas_[self.best_index_])
        self.model_ = self._model(self.alpha_)
        return self

    def _teleport(self) -> float:
        return check_alphas(self.alphas, "APPNPClassifierCV")[0]  # any: it is not known before the training

    def _check_learning(self) -> None:
        super()._check_learning()
        check_int(self.n_runs, "n_runs", "APPNPClassifierCV", low=1)

    def _model(self, alpha: float | None) -> Model:
        name = "APPNPClassifierCV"
        return APPNP(
            alpha=check_float(alpha, "alpha", name, "[0, 1]"),
            steps=power_steps(self.steps, name),
            hidden=layer_widths(self.hidden, name),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            propagation_dropout=matrix_dropout(self.propagation_dropout, name),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
            normalization=check_choice(self.normalization, "normalization", name, NORMALIZATIONS),
            self_loops=switch(self.self_loops, "self_loops", name),
            predictor=module_or_none(self.predictor, name),
        )

    def _learn(
        self, model: AnyModel, graph: Graph, split: Split, labels: NDArray[np.int64], seed: int, told: int
    ) -> Learned:
        assert isinstance(model, Model)
        alphas = check_alphas(self.alphas, "APPNPClassifierCV")
        trained = train_alphas(
            model,
            graph,
            split,
            alphas=alphas,
            seeds=[seed, *(run_seed(seed, run) % 2**64 for run in range(1, self.n_runs))],
            labels=labels,
            stopping=self._rule(),
            learning_rate=float(self.learning_rate),
            backend=self.backend,
            device=self.device,
            progress=told >= 1,
            verbose=told >= 2,
        )
        self.alphas_ = np.array(alphas)
        self.scores_ = np.stack([one.stopping_accuracy for one in trained])
        self.losses_ = np.stack([one.stopping_loss for one in trained])
        self.best_index_ = _best(self.scores_.mean(axis=1), self.losses_.mean(axis=1))
        self.best_run_ = run = _best(self.scores_[self.best_index_], self.losses_[self.best_index_])
        chosen = trained[self.best_index_]
        record = TrainingRecord(
            epochs=int(chosen.epochs[run]),
            best_epoch=int(chosen.best_epoch[run]),
            stopping_loss=float(chosen.stopping_loss[run]),
            stopping_accuracy=float(chosen.stopping_accuracy[run]),
            seconds=chosen.seconds,
            backend=chosen.backend,
            device=chosen.device,
            seed=chosen.seeds[run],
            train_nodes=len(split.train),
            stopping_nodes=len(split.stopping),
        )
        weights = named_weights(model, (np.asarray(array[run]) for array in chosen.weights))
        return Learned(weights, chosen.logits[run], record, chosen.history[run])

    def _settings(self) -> dict[str, Any]:
        settings = super()._settings()
        return settings | {"alphas": list(check_alphas(self.alphas, "APPNPClassifierCV"))}  # an array is no JSON


def _best(scores: NDArray[np.float64], losses: NDArray[np.float64]) -> int:
    """Return the position of the highest score, among equals that of the lowest loss, among equals the first.

    >>> _best(np.array([0.8, 0.9, 0.9]), np.array([1.0, 0.7, 0.6]))
    2
    """
    # counts over the same nodes, but their means over several runs may differ in the last bit
    same = np.isclose(scores, scores.max(), rtol=0, atol=1e-12)
    return int(np.lexsort((losses, ~same))[0])  # a loss that is no number comes last
