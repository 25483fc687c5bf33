"""What all classifiers share: nodes as samples, fitting, predicting, saving."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pprop._validate import describe, reject
from pprop.datasets import Split
from pprop.estimators.decomposed import decompose
from pprop.estimators.explanation import AGREE, NodeSum, check_agreement
from pprop.estimators.fitted import (
    AnyModel,
    FittedModel,
    Learned,
    TrainingRecord,
    Weights,
    check_same_graph,
    logits_from,
)
from pprop.estimators.inputs import TrainedFeatures, feature_shape
from pprop.estimators.options import train_options, uses_bias, warn_unfinished
from pprop.estimators.parameters import FitParameters, TrainingParameters
from pprop.estimators.samples import (
    divide_nodes,
    labelled_nodes,
    read_stopping,
    seed_of,
)
from pprop.estimators.saving import save_model
from pprop.estimators.scores import NodeScores
from pprop.estimators.source import GraphSource
from pprop.estimators.targets import LabelsLike
from pprop.estimators.weighting import NodeWeights, check_sample_weight, node_weights
from pprop.graph import Graph
from pprop.graph.labels import MISSING_LABELS
from pprop.graph.recipe import Recipe
from pprop.kernels import choose_backend
from pprop.models import Architecture, Model
from pprop.propagation.attribution import Attributor
from pprop.settings import OPTIONAL_STOPPING
from pprop.training import History, train

# Nodes and their labels; or a fraction of the nodes to fit.
StoppingNodes = tuple[ArrayLike, LabelsLike] | float | None


@final
class FitData(NamedTuple):
    """What a model learns from: a graph without labels, nodes, class indices (n,), -1 where unlabelled, and a seed.

    `weights` say how much each node counts; None: all the same.
    """

    graph: Graph
    split: Split
    labels: NDArray[np.int64]
    seed: int
    weights: NodeWeights | None = None


class NodeClassifier(FittedModel, NodeScores, FitParameters, ABC):
    """A classifier whose samples are the nodes of one graph."""

    # What else than early stopping needs stopping nodes; None: nothing, and `stopping` may be None.
    _stopping_nodes_also: ClassVar[str | None] = None
    # Makes the model from the settings that its arguments name.
    _kind: ClassVar[Callable[..., AnyModel]]

    def _model(self, values: dict[str, Any]) -> AnyModel:
        """Return the model with these settings, which were validated."""
        return self._kind(**{name: values[name] for name in inspect.signature(self._kind).parameters})

    @abstractmethod
    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        """Train a model that `_model` returned; return its weights, logits and record."""

    def _extras(self) -> Weights:
        """Return the arrays besides the weights that the logits are made of; a model is saved with them."""
        return {}

    def _restored(self, logits: NDArray[np.float32], extras: Weights) -> NDArray[np.float32]:
        """Return the logits of a loaded model, given those of its weights and the arrays of `_extras`."""
        if extras:
            reject("extras", type(self).__name__, "none", describe(sorted(extras)))
        return logits

    def fit(
        self,
        X: ArrayLike | None = None,
        y: LabelsLike | None = None,
        *,
        stopping: StoppingNodes = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        missing_labels: Sequence[str] = MISSING_LABELS,
    ) -> Self:
        """Train on some nodes of the graph.

        Parameters
        ----------
        X
            Nodes: integers, always positions, shape (m,) or (m, 1); n truth values, a mask; or text, always ids. None:
            all nodes. A node listed k times counts k times in the loss.
        y
            Their classes, shape (m,): integers, text or truth values; with a mask also one per node of the graph, shape
            (n,). Whole numbers stored as floats become integers. Unknown are None, NaN, what a masked array masks, and
            what `missing_labels` lists; these nodes are left out, and ``n_unlabelled_`` counts them. Where -1 and one
            other integer are the only labels, -1 is a class, and a warning says so.
        stopping
            What early stopping watches: ``(nodes, y)`` of further nodes, or a fraction in (0, 1) of the nodes in `X`,
            which then do not train. None takes the fraction given to the constructor, or if that is None no node: early
            stopping is off. Of a class with m nodes,
            ``round(fraction * m)`` are set aside, at least one and at most m - 1; the only node of a class trains.
            Where every class has only one node, early stopping watches the training nodes, and a warning says so.
        sample_weight
            How much each node counts, like `y`; None: all the same. Weight k is like listing a node k times, and
            weight 0 like leaving it out. Nodes given as `stopping` count as one. Weights by class come on top.
        ids
            In place of X: ids, integers or text.
        missing_labels
            What stands for an unknown label, as text: ``"-1"`` is also the integer.

        Returns
        -------
        self
        """
        name, graph = type(self).__name__, self._check_graph()
        values = self._checked()
        # Without labels and class names, so that nothing below can read them or count their classes.
        labelled = graph.labels is not None or graph.class_names is not None
        bare = graph.replace(labels=None, class_names=None) if labelled else graph
        built_in = getattr(self, "predictor", None) is None
        scaled = bare.scaled("none" if values["scaling"] == "auto" and not built_in else values["scaling"])
        if "bias" in values:
            values["bias"] = uses_bias(values["bias"], scaled)
        model = self._model(values)
        held = OPTIONAL_STOPPING.check(self.stopping, name) if stopping is None else stopping
        if held is None:
            if self._stopping_nodes_also is not None:
                reject("stopping", name, f"a float in (0, 1): {self._stopping_nodes_also}", None)
            values["patience"] = None
        given = labelled_nodes(X, y, graph, name, ids=ids, missing_labels=missing_labels)
        held = read_stopping(held, given.labels, graph, missing_labels)
        nodes, labels = given.nodes, given.labels
        much = check_sample_weight(sample_weight, given.length, given.rows)
        if much is not None:
            nodes, labels, much = nodes[much > 0], labels[much > 0], much[much > 0]
        seed = seed_of(self.random_state, name)
        split, known, classes = divide_nodes(nodes, labels, held, seed, graph.n_nodes)
        weights = node_weights(nodes, much, split, known, classes, values.get("class_weight"))
        learned = self._learn(model, FitData(scaled, split, known, seed, weights), values)
        if learned.alpha is not None:  # selected during fit
            values["alpha"] = learned.alpha
            model = self._model(values)
        self.train_nodes_, self.stopping_nodes_ = split.train, split.stopping
        self.n_unlabelled_, self.missing_labels_ = given.unlabelled, tuple(missing_labels)
        self.known_nodes_ = np.flatnonzero(known >= 0)
        self.known_labels_ = classes[known[self.known_nodes_]]
        self.graph_, self.model_, self.alpha_, self.classes_ = graph, model, values.get("alpha"), classes
        self.scaling_ = scaled.scaling
        self.weights_, self.logits_ = learned.weights, learned.logits
        self._keep_record(learned.record, learned.history)
        return self

    @property
    def recipe_(self) -> Recipe | None:
        """How the columns of a table became features; None where the graph came with a matrix."""
        check_is_fitted(self)
        return self.graph_.recipe

    def on(self, graph: Graph) -> Self:
        """Return the fitted model on another graph with the same features, such as one with nodes that came later.

        Nothing is trained: the network predicts every node of the graph, and the predictions are spread there. Features
        are found by name, where both graphs have names, and scaled as in the training. Read the tables of another graph
        with ``feature_columns=model.recipe_``.

        Parameters
        ----------
        graph
            Its labels are not read.

        Returns
        -------
        A new classifier, whose ``graph_changed_`` says whether the graph is another one. This one stays as it is.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
        >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
        >>> model = pprop.APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
        >>> model = model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5)
        >>> pair = pprop.Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=sp.eye_array(5).tocsr()[[0, 1]])
        >>> model.on(pair).predict()
        array(['left', 'left'], dtype='<U5')
        """
        check_is_fitted(self)
        name = f"{type(self).__name__}.on"
        if not isinstance(graph, Graph):
            reject("graph", name, "a Graph", describe(graph))
        other, used = copy.copy(self), TrainedFeatures.of(self.graph_).matched(graph, name)
        if feature_shape(used) != feature_shape(self.graph_):
            wanted = f"a graph with features of shape {tuple(feature_shape(self.graph_))} per node, as in the training"
            reject("graph", name, wanted, f"{tuple(feature_shape(used))}")
        other.graph_changed_ = used.fingerprint != self.graph_.fingerprint
        other.graph = other.graph_ = used
        if other.graph_changed_:
            other.known_nodes_, other.known_labels_ = self.known_nodes_[:0], self.known_labels_[:0]
            other.accuracy_ = other.source_ = None
            backend = choose_backend("auto", "cpu", name)
            scaled = used if self.scaling_ is None else used.scaled(self.scaling_)
            other.logits_ = other._restored(logits_from(self.model_, scaled, self.weights_, backend), {})
        return other

    def save(
        self,
        path: str | PathLike[str],
        *,
        source: GraphSource | None = None,
        accuracy: float | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the fitted model to a folder: weights, a readable manifest and a model card. Read it with `pprop.load`.

        The folder appears when it is complete, or not at all. Nothing is pickled: of a `predictor` the weights are
        saved and the code is not, and of a RandomState the seed that it drew.

        Parameters
        ----------
        path
            The folder, which must not exist.
        source
            Where the graph can be read again. None: the dataset of the graph's name, if there is one.
        accuracy
            Test accuracy to state in the manifest. None if unknown.
        overwrite
            Replace an existing folder, if there is nothing but a pprop model in it.
        """
        check_is_fitted(self)
        check_same_graph(self)
        save_model(self, self._extras(), path, source=source, accuracy=accuracy, overwrite=overwrite)

    def _keep_record(
        self,
        record: TrainingRecord,
        history: History,
        *,
        accuracy: float | None = None,
        source: GraphSource | None = None,
        graph_changed: bool = False,
    ) -> None:
        # Those of this fit: a later set_params does not change them.
        settings = cast("dict[str, Any]", self.get_params(deep=False))
        self.settings_ = {name: value for name, value in settings.items() if name not in ("graph", "predictor")}
        self.record_, self.history_, self.n_iter_ = record, history, record.epochs
        self.accuracy_, self.source_, self.graph_changed_ = accuracy, source, graph_changed
        self.n_features_in_ = 1  # a sample has one number: its position

    def _node_sum(self) -> NodeSum:
        name = type(self).__name__
        parts = decompose(self.model_, self.weights_.values(), self.scaling_, name, "explain")
        settings = parts.description.propagation
        how = (None, None) if settings is None else (settings.operator(self.graph_), settings.solver)
        attributor = Attributor(parts.alone(self.graph_), *how)
        # `tol` bounds the norm of a whole column
        far = AGREE * max(attributor.largest, 1.0) + 10 * parts.tol * float(np.abs(attributor.value).max(initial=0.0))
        check_agreement(name, attributor.value, self.logits_, far)
        return NodeSum(self.logits_, "logit", attributor)


class TrainedClassifier(NodeClassifier, TrainingParameters):
    """A classifier that is one run of `train`."""

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Model | Architecture)
        options, weights = vars(train_options(values)), None if data.weights is None else data.weights.nodes
        trained = train(model, data.graph, data.split, seeds=data.seed, labels=data.labels, weights=weights, **options)
        warn_unfinished(trained, values)
        return Learned.of(model, trained)
