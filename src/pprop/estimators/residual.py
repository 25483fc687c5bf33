"""A residual graph network that may see training labels, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, final

import numpy as np

from pprop import settings
from pprop.estimators.fitted import AnyModel, Learned
from pprop.estimators.node import GRAPH, RANDOM_STATE, NodeClassifier, parameters
from pprop.estimators.reading import FitData
from pprop.graph import Graph
from pprop.models import ResidualGNN


@final
@parameters
class ResidualClassifier(NodeClassifier):
    """A deep network for neighbours that differ; with `label_inputs` it also reads the labels of training nodes.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.ResidualGNN`. Each layer
    reads a node's own values and the mean of its neighbours' with separate weights.

    With `label_inputs`, the default, each epoch hides a random half of the training labels, and the loss is on that half. For
    predictions all training labels are inputs. Labels of validation and test nodes never are. State this beside an
    accuracy: published models of this kind do not read labels. The network needs many labels; with few, `APPNPClassifier` is
    better.

    Notes
    -----
    On another graph (`on`, or `pprop.load` with a graph) there are no training labels to read. With `label_inputs` the network
    then predicts without labels, for which it was not trained, and a warning says so.

    References
    ----------
    O. Platonov, D. Kuznedelev, M. Diskin, A. Babenko, L. Prokhorenkova. A critical look at the evaluation of GNNs under
    heterophily. ICLR 2023.
    Y. Shi, Z. Huang, S. Feng, H. Zhong, W. Wang, Y. Sun. Masked Label Prediction. IJCAI 2021.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(40, 40))
    >>> graph = pprop.Graph.from_scipy(path, features=np.ones((40, 1)))
    >>> y = np.where(np.arange(40) % 2, "odd", "even")
    >>> known = np.flatnonzero(np.arange(40) % 4 < 3)
    >>> model = ResidualClassifier(graph, hidden=8, layers=2, max_epochs=60, random_state=0).fit(known, y[known])
    >>> model.predict([3, 7, 11])
    array(['odd', 'odd', 'odd'], dtype='<U4')
    """

    _kind = ResidualGNN

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    hidden: int = settings.RESIDUAL_WIDTH.field()
    layers: int = settings.RESIDUAL_LAYERS.field()
    dropout: float = settings.RESIDUAL_DROPOUT.field()
    penalty: float = settings.RESIDUAL_PENALTY.field()
    label_inputs: bool = settings.LABELS_AS_INPUTS.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.RESIDUAL_MAX_EPOCHS.field()
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
        learned = super()._learn(model, data, values)
        return replace(learned, extras={"shown": np.unique(data.split.train)} if values["label_inputs"] else {})
