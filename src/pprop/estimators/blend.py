"""Several classifiers of one graph, whose probabilities are averaged."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, cast, final

import numpy as np
from sklearn.base import clone

from pprop._process import compiling
from pprop._validate import check_sequence, describe, reject
from pprop.datasets import Split
from pprop.estimators.fitted import MOST_MEMBERS, Blend, Fitted, TrainingRecord, Weights
from pprop.estimators.node import NodeClassifier, parameters, unchecked
from pprop.estimators.reading import Given
from pprop.estimators.targets import Classes
from pprop.graph import Graph
from pprop.settings import Setting
from pprop.training import History

_NAME = "BlendClassifier"


def _check_members(value: object, name: str, function: str) -> list[NodeClassifier]:
    expected = f"a list of 1 to {MOST_MEMBERS} classifiers that pprop can save, such as APPNPClassifier(graph)"
    found = list(check_sequence(value, name, function, expected))
    wrong = [
        one
        for one in found
        if not isinstance(one, NodeClassifier)
        or isinstance(one, BlendClassifier)
        or getattr(one, "predictor", None) is not None  # whose code is not saved
    ]
    if wrong:
        reject(name, function, expected, describe(wrong[0]))
    if not 1 <= len(found) <= MOST_MEMBERS:
        reject(name, function, expected, f"{len(found)} of them")
    return cast("list[NodeClassifier]", found)


MEMBERS = Setting[Any]("members", (), "Classifiers of the same graph. They are cloned and fitted.", _check_members)
BLENDED_GRAPH = Setting[Any]("graph", None, "With the features that the members need. Shared in a clone.", unchecked)


@final
@parameters
class BlendClassifier(NodeClassifier):
    """Several classifiers of the same graph. The probabilities of a node are the geometric mean of theirs, divided by its sum.

    Every member is fitted to all that `fit` is given; label propagation, which does not stop early, spreads the labels of
    validation nodes, too. A probability below 1e-6 counts as 1e-6. `save` writes a folder with
    a folder for each member, and `pprop.load` reads it. A blend is no sum over the nodes of the graph, so that it is not
    explained, and its graph is not edited live; its members can be.

    Attributes
    ----------
    members_
        The fitted members.
    logits_
        Logarithms of the probabilities of all nodes, shape (n, c).
    classes_, known_nodes_, known_labels_, n_unlabelled_, n_features_in_
        As in `APPNPClassifier`.
    weights_
        The weights of all members by name: ``"member0.layer0"``, ...

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path)
    >>> members = [pprop.LabelPropagationClassifier(graph, alpha=alpha) for alpha in (0.1, 0.5)]
    >>> model = BlendClassifier(graph, members=members).fit([0, 4], ["left", "right"])
    >>> model.predict([1, 3]), len(model.members_)
    (array(['left', 'right'], dtype='<U5'), 2)
    """

    graph: Graph = dataclasses.field(kw_only=False, metadata={"setting": BLENDED_GRAPH})
    members: Sequence[NodeClassifier] = MEMBERS.field()

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        begin, compiled = time.perf_counter(), compiling.seconds
        members = [cast("NodeClassifier", clone(one)).set_params(graph=self.graph) for one in values["members"]]
        fitted = [fit_member(one, given) for one in members]
        blended = blend_of([one.fitted_ for one in fitted])
        assert blended.record is not None
        seconds, compiling_took = time.perf_counter() - begin, compiling.seconds - compiled
        return dataclasses.replace(
            blended, record=dataclasses.replace(blended.record, seconds=seconds, compile_seconds=compiling_took)
        )

    def _settings(self) -> dict[str, Any]:
        return {}  # each member has its own

    @property
    def members_(self) -> list[NodeClassifier]:
        """The fitted members."""
        return [member_of(one) for one in cast("Blend", self.fitted_.model).members]

    @property
    def weights_(self) -> Weights:
        """The weights of all members by name."""
        return self.fitted_.every_weight


def fit_member(member: NodeClassifier, given: Given) -> NodeClassifier:
    """Fit a classifier to what `fit` was given: one that does not stop early learns from validation nodes, too."""
    used = given if member.stops_early else given.all_labels()
    watched: Any = used.stopping
    return member.fit(used.nodes, used.labels, stopping=watched, sample_weight=used.weights, missing_labels=())


def member_of(fitted: Fitted) -> NodeClassifier:
    """Return the classifier that left this behind."""
    one = fitted.kind(graph=fitted.graph, **fitted.settings)
    one.fitted_ = fitted
    return one


def blend_of(members: Sequence[Fitted]) -> Fitted:
    """Return what a `BlendClassifier` of fitted members leaves behind."""
    first = members[0]
    blend, none = Blend(tuple(members)), np.empty(0)
    records = [one.record for one in members if one.record is not None]
    watched = next((one.split for one in members if one.split is not None and len(one.split.stopping)), None)
    split = first.split if watched is None else watched
    record = TrainingRecord(
        epochs=0,
        best_epoch=0,
        stopping_loss=float("nan"),
        stopping_accuracy=float("nan"),
        seconds=sum(one.seconds for one in records),
        compile_seconds=sum(one.compile_seconds for one in records),
        backend=records[-1].backend,
        device=records[-1].device,
        seed=records[-1].seed,
        train_nodes=0 if split is None else len(split.train),
        stopping_nodes=0 if split is None else len(split.stopping),
    )
    return Fitted(
        kind=BlendClassifier,
        settings={},
        graph=first.graph,
        target=Classes(first.classes.names),
        model=blend,
        alpha=None,
        outputs=blend.outputs(),
        known_nodes=first.known_nodes,
        known_labels=first.known_labels,
        split=None if split is None else Split(split.train, split.stopping, none.astype(np.int64)),
        record=record,
        history=History(none, none.copy(), none.copy()),
        graph_changed=first.graph_changed,
    )
