"""APPNP that chooses its teleport probability, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.estimators.base import FitData, TrainedClassifier, train_options
from pprop.estimators.fitted import Learned, TrainingRecord
from pprop.estimators.parameters import MatrixParameters, PredictorParameters, parameters
from pprop.estimators.weights import AnyModel, named_weights
from pprop.models import APPNP, Model
from pprop.settings import ALPHAS, N_RUNS, SAME_DROPOUT, STEPS
from pprop.training import run_seed
from pprop.training.train import train_alphas


@final
@parameters
class APPNPClassifierCV(TrainedClassifier, MatrixParameters, PredictorParameters):
    """`APPNPClassifier` with the teleport probability chosen by the stopping nodes.

    One run per alpha, or several, are trained together, with the same nodes and, run by run, the same initial weights
    and dropout masks. The alpha with the best stopping accuracy, on average over its runs, is chosen; among equals the
    one with the lowest mean stopping loss, then the first. Of its runs the best in the same sense is the model: nothing
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
        Stopping accuracy and loss of every run at its kept epoch, shape (a, n_runs).
    best_index_, best_run_
        Row and column of the run that became the model. These and the three above are not saved with a model.
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

    _kind = staticmethod(APPNP)

    alphas: Sequence[float] | NDArray[np.floating[Any]] = ALPHAS.field()
    n_runs: int = N_RUNS.field()
    steps: int = STEPS.field()
    propagation_dropout: float | None = SAME_DROPOUT.field()

    def _checked(self) -> dict[str, Any]:
        values = super()._checked()
        return values | {"alpha": values["alphas"][0]}  # any: it is chosen in the training

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Model)
        seeds = [data.seed, *(run_seed(data.seed, run) % 2**64 for run in range(1, values["n_runs"]))]
        options, alphas = train_options(values), values["alphas"]
        trained = train_alphas(model, data.graph, data.split, options, alphas=alphas, seeds=seeds, labels=data.labels)
        self.alphas_ = np.array(values["alphas"])
        self.scores_ = np.stack([one.stopping_accuracy for one in trained])
        self.losses_ = np.stack([one.stopping_loss for one in trained])
        self.best_index_ = _best(self.scores_.mean(axis=1), self.losses_.mean(axis=1))
        self.best_run_ = run = _best(self.scores_[self.best_index_], self.losses_[self.best_index_])
        chosen, alpha = trained[self.best_index_], values["alphas"][self.best_index_]
        weights = named_weights(model, (np.asarray(array[run]) for array in chosen.weights))
        return Learned(weights, chosen.logits[run], TrainingRecord.of(chosen, run), chosen.history[run], alpha)


def _best(scores: NDArray[np.float64], losses: NDArray[np.float64]) -> int:
    """Return the position of the highest score, among equals that of the lowest loss, among equals the first.

    >>> _best(np.array([0.8, 0.9, 0.9]), np.array([1.0, 0.7, 0.6]))
    2
    """
    # counts over the same nodes, but their means over several runs may differ in the last bit
    same = np.isclose(scores, scores.max(), rtol=0, atol=1e-12)
    return int(np.lexsort((losses, ~same))[0])  # a loss that is no number comes last
