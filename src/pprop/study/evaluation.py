"""From trained runs to the predicted class of every node, as the cell wants it.

The paper's figure on propagation takes models apart: one trained with propagation is evaluated by its network alone, and
one trained without is propagated afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from pprop.graph import Graph
from pprop.kernels import choose_backend
from pprop.models import APPNP, Model
from pprop.models.inference import Inference
from pprop.training import Trained

__all__ = ["Evaluation"]


@final
class Evaluation:
    """How the runs of a cell are evaluated, by its setting ``evaluate``.

    ``"model"``, the default: as they were trained. ``"network"``: by the network alone, without the propagation they were
    trained with. ``"propagated"``: propagated with the settings ``alpha`` and ``steps``, which training did not know.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5), labels=[0, 0, 0, 1, 1])
    >>> split = pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> trained = pprop.train(pprop.MLP(hidden=4), graph, split, stopping=pprop.Stopping(max_epochs=3))
    >>> Evaluation({"evaluate": "propagated", "alpha": 0.1, "steps": 2}, graph).classes(trained).shape
    (1, 5)
    """

    def __init__(self, settings: Mapping[str, Any], graph: Graph) -> None:
        self._settings, self._graph = settings, graph
        self._how = settings.get("evaluate", "model")
        self._inference: Inference | None = None  # bound to the graph once, for all runs of the cell

    def classes(self, trained: Trained) -> NDArray[np.uint8]:
        """Return the class of all nodes in all runs, shape (R, n)."""
        return self._logits(trained).argmax(axis=2).astype(np.uint8)

    def _logits(self, trained: Trained) -> NDArray[np.float32]:
        if self._how == "model":
            return trained.logits
        place = torch.device(trained.device)
        if self._inference is None:
            kernels = choose_backend(trained.backend, place.type, "study").kernels
            self._inference = Inference(self._model(trained), self._graph, kernels)
        if self._how == "network":
            weights = [torch.from_numpy(array).to(place) for array in trained.weights]
            return self._inference.alone(weights).cpu().numpy()
        return self._inference.propagated(torch.from_numpy(trained.logits).to(place)).cpu().numpy()

    def _model(self, trained: Trained) -> Model:
        if self._how == "network":
            assert isinstance(trained.model, Model)
            return trained.model
        return APPNP(alpha=self._settings["alpha"], steps=self._settings["steps"])
