"""The best of four classifiers, from label propagation to APPNP that uses its labels twice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pprop import settings
from pprop._validate import warn
from pprop.estimators.appnp import APPNPClassifier, MLPNodeClassifier
from pprop.estimators.ensemble import APPNPEnsembleClassifier
from pprop.estimators.fitted import Fitted, check_same_graph
from pprop.estimators.label_propagation import LabelPropagationClassifier
from pprop.estimators.node import NodeClassifier, TrainedClassifier
from pprop.estimators.parameters import GRAPH, RANDOM_STATE, parameters
from pprop.estimators.reading import Given, class_weights, known_labels, seed_of
from pprop.estimators.targets import Classes, hold_out
from pprop.graph import Graph

# Strength with which APPNP's errors at known nodes correct the others. Of 0.03, 0.1 and 0.3, with stopping labels, it
# is the best or as good as the best on all four graphs of the paper (docs/accuracy.md, "What can be done after training").
REUSE = 0.3

# By name, the simplest first: what each is, and the settings that it has in place of its defaults.
CANDIDATES: Mapping[str, tuple[type[NodeClassifier], Mapping[str, Any]]] = MappingProxyType(
    {
        "label_propagation": (LabelPropagationClassifier, {}),
        "network": (MLPNodeClassifier, {}),
        "appnp": (APPNPClassifier, {}),
        "appnp_label_reuse": (APPNPEnsembleClassifier, {"members": 1, "rounds": 0, "spread_errors": REUSE}),
    }
)


@final
@parameters
class AutoClassifier(NodeClassifier):
    """Tries four classifiers on the labels of `fit`, keeps the one that does best on some of them, and fits it to all.

    The four are, the simplest first: ``"label_propagation"`` (`LabelPropagationClassifier`), which reads no features;
    ``"network"`` (`MLPNodeClassifier`), which reads no edges; ``"appnp"`` (`APPNPClassifier`); and
    ``"appnp_label_reuse"``, the same with its errors at known nodes spread to the others (`APPNPEnsembleClassifier` with
    ``members=1, rounds=0, spread_errors=0.3``).

    Of every class the share `validation` of the nodes is set aside. The four learn from the others, of which those that
    train take the share `stopping` for early stopping; label propagation spreads the labels of all of them. The best on
    the nodes that were set aside, among equals the simplest, is then fitted once more to all nodes. With a
    `class_weight`, nodes count by it: ``"balanced"`` compares balanced accuracies. Without features, label propagation
    is the only one, and a warning says so. Samples are nodes, as in `APPNPClassifier`.

    Attributes
    ----------
    best_, chosen_
        The fitted classifier, and its name. `predict`, `explain`, `save` and the others are those of it, and
        `pprop.load` returns it.
    scores_
        Accuracy of each on the nodes that were set aside, by name, before the last fit. The best of several is a little
        too good to expect of other nodes.
    validation_nodes_
        These nodes.
    classes_, logits_, known_nodes_, known_labels_, n_unlabelled_, n_features_in_
        Those of the classifier.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> ring = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(20, 20))
    >>> graph = pprop.Graph.from_scipy(ring, features=np.ones((20, 1)))
    >>> y = ["left"] * 10 + ["right"] * 10
    >>> model = AutoClassifier(graph, hidden=8, max_epochs=20, random_state=0).fit(range(0, 20, 2), y[::2])
    >>> model.chosen_, sorted(model.scores_)
    ('label_propagation', ['appnp', 'appnp_label_reuse', 'label_propagation', 'network'])
    >>> model.predict([1, 17])
    array(['left', 'right'], dtype='<U5')
    """

    _stopping_nodes_also = "its candidates stop by other nodes than they train on"

    graph: Graph = dataclasses.field(
        kw_only=False,
        metadata={"setting": GRAPH.but(None, "With features or without. Shared, not copied, in a clone.")},
    )
    alpha: float | None = settings.TELEPORT.field()
    validation: float = settings.VALIDATION.field()
    normalization: str = settings.NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        name, graph = type(self).__name__, self.graph
        nodes, labels = given.nodes, given.labels
        much = np.ones(len(nodes)) if given.weights is None else given.weights
        seed = seed_of(self.random_state, name)
        classes, codes = np.unique(labels, return_inverse=True)
        known_labels(nodes, codes, graph.n_nodes)
        paired = isinstance(given.stopping, tuple)
        if not paired:  # else they may have another class
            Classes.of(labels)

        def fitted(kind: str, some: NDArray[np.bool_]) -> NodeClassifier:
            weights = None if given.weights is None else given.weights[some]
            spread: Any = given.stopping if paired or kind != "label_propagation" else None
            return self._candidate(kind, seed).fit(
                nodes[some], labels[some], stopping=spread, sample_weight=weights, missing_labels=()
            )

        kinds = list(CANDIDATES)
        if graph.features is None:
            kinds = kinds[:1]
            warn(
                f"This graph has no features, so {name} tries label propagation alone. Graph.with_structure makes some."
            )
        judges = _set_aside(nodes, codes, values["validation"], seed)
        if not judges.any():
            warn(
                f"Every class has one node only, so there is none for {name} to choose by: label propagation is taken."
            )
        found = {kind: fitted(kind, ~judges) for kind in kinds} if judges.any() else {}
        by_class = class_weights(values["class_weight"], codes[judges], much[judges], classes)
        counts = much[judges] * by_class[codes[judges]]
        self.scores_ = {
            kind: float(np.average(model.predict(nodes[judges]) == labels[judges], weights=counts))
            for kind, model in found.items()
        }
        self.validation_nodes_ = np.unique(nodes[judges])
        self.chosen_ = max(self.scores_, key=lambda kind: self.scores_[kind]) if found else kinds[0]
        self.best_ = best = fitted(self.chosen_, np.ones(len(nodes), dtype=np.bool_))
        best.fitted_ = replace(best.fitted_, unlabelled=given.unlabelled, missing_labels=given.missing_labels)
        return replace(best.fitted_, record=None, history=None)  # `best_` has those of its own training

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Write the chosen classifier to a folder, with the options of its own `save`; `pprop.load` returns that one."""
        check_is_fitted(self)
        check_same_graph(self)
        self.best_.save(path, **options)

    def on(self, graph: Graph) -> NodeClassifier:
        """Return the chosen classifier on another graph; see `APPNPClassifier.on`."""
        check_is_fitted(self)
        return self.best_.on(graph)

    def _candidate(self, kind: str, seed: int) -> NodeClassifier:
        make, own = CANDIDATES[kind]
        names = {field.name for field in dataclasses.fields(cast("Any", make))} - {"stopping", "random_state"}
        shared = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name in names}
        if issubclass(make, TrainedClassifier):
            shared["random_state"] = seed
        return make(**{**shared, **own})


def _set_aside(nodes: NDArray[np.int64], codes: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Return which nodes choose, shape (m,); none where every class has one node only."""
    several = np.unique(codes[np.unique(nodes, return_index=True)[1]], return_counts=True)[1] > 1
    if not several.any():
        return np.zeros(len(nodes), dtype=np.bool_)
    chosen = hold_out(nodes, codes, fraction, (seed + 1) % 2**64)[1]  # not the draw of the stopping nodes
    return np.isin(nodes, chosen)
