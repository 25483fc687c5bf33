"""Estimators whose samples are the nodes of one graph: their parameters, predicting, fitting, saving, moving to another graph."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
import textwrap
from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import nn

from pprop import settings
from pprop._errors import InputError
from pprop._validate import describe, name_methods, reject, warn
from pprop.estimators.explanation import explain
from pprop.estimators.features import TrainedFeatures, check_shape, feature_shape
from pprop.estimators.fitted import (
    AnyModel,
    Fitted,
    Learned,
    TrainingRecord,
    Weights,
    check_same_graph,
    there,
)
from pprop.estimators.judgement import Judging
from pprop.estimators.reading import (
    FitData,
    Given,
    StoppingNodes,
    check_sample_weight,
    check_some,
    node_positions,
    read_labelled,
    seed_of,
)
from pprop.estimators.saving import save_model
from pprop.estimators.several_targets import Quantities, SeveralLabels
from pprop.estimators.source import GraphSource
from pprop.estimators.targets import Classes, LabelsLike, Target, check_same_kind, has_columns
from pprop.graph import Graph, Scaling
from pprop.graph.attributes import MISSING_LABELS
from pprop.graph.features.recipe import Recipe
from pprop.models import Architecture, Model
from pprop.scoring import Threshold
from pprop.settings import ALPHA, MAX_EPOCHS, OPTIONAL_STOPPING, UNBIASED, Setting, check_fields
from pprop.training import History, Stopping, Trained, train
from pprop.training.train import TrainOptions

# What may take the place of the built-in network.
ModuleOrFactory = nn.Module | Callable[[], nn.Module]

Kind = TypeVar("Kind", bound=type)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(dataclasses.field,))
def parameters(kind: Kind) -> Kind:
    """Make a dataclass of a classifier.

    The constructor keeps every parameter as it is, as scikit-learn expects; `fit` checks them. All are keyword-only but
    the graph. The docstring gets a section with the parameters and their lines of help.
    """
    made = cast("Any", dataclasses.dataclass(eq=False, repr=False, kw_only=True))(kind)
    if made.__doc__ and "Examples\n" in made.__doc__:
        made.__doc__ = _documented(made)
    return made


def _documented(kind: type) -> str:
    """Return the docstring of a class with its parameters before the first section, in the order of its fields."""
    text = textwrap.dedent("    " + (kind.__doc__ or "")).rstrip() + "\n"
    fields = dataclasses.fields(cast("Any", kind))
    helps = (textwrap.fill(field.metadata["setting"].help, 112) for field in fields)
    lines = [f"{field.name}\n{textwrap.indent(line, '    ')}" for field, line in zip(fields, helps, strict=True)]
    section = "\n".join(["Parameters", "----------", *lines, "", ""])
    first = re.search(r"^\w[\w ]*\n-{3,}$", text, flags=re.MULTILINE)
    assert first is not None
    return text[: first.start()] + section + text[first.start() :]


def _check_predictor(value: object, name: str, function: str) -> object:
    if value is not None and not callable(value):
        reject(name, function, "an nn.Module, a function that makes one, or None", describe(value))
    return value


def unchecked(value: object, name: str, function: str) -> object:
    """Return a value as it is: it is checked where it is used."""
    return value


GRAPH = Setting[Any]("graph", None, "With features. It is shared, not copied, when the estimator is cloned.", unchecked)
PREDICTOR = Setting[ModuleOrFactory | None](
    "predictor",
    None,
    "In place of the built-in network: any ``nn.Module`` from features (n, ...), a tensor whose first axis is the node, "
    "to logits (n, c); or a function that makes one. `hidden`, `dropout` and `bias` then have no meaning "
    "for it.",
    _check_predictor,
)
NEIGHBOURS = settings.whole(
    "neighbours",
    1,
    1,
    "In place of power steps over all nodes, train on so many of the largest entries of the PPR rows of the labelled nodes, "
    "in mini-batches (see `pprop.train`): for graphs that do not fit otherwise. 64 is a good number. None: on all nodes.",
).optional()
RANDOM_STATE = Setting[int | np.random.RandomState | None](
    "random_state",
    None,
    "An integer is the seed of the run; a RandomState, or numpy's global one for None, draws one at every fit.",
    unchecked,
)


class NodeEstimator(BaseEstimator, ABC):
    """An estimator whose samples are the nodes of one graph.

    `fit` leaves one object behind, `fitted_`, which `predict` and `explain` read, and of which the attributes are parts.
    The target of the fit says what the outputs of a node stand for, and how good they are.
    """

    graph: Graph
    fitted_: Fitted

    explain = explain

    def predict(self, X: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Return what is predicted of nodes: classes or numbers, shape (m,), or (m, k) of k numbers or labels per node.

        Parameters
        ----------
        X
            Nodes: positions, a mask or ids that are text, as in `fit`. None: all of them.
        ids
            In place of X: ids, integers or text.
        """
        nodes = self._positions(X, "predict", ids)  # which refuses a classifier that is not fitted
        return self.fitted_.predictions(nodes)

    def _check_graph(self) -> Graph:
        if not isinstance(self.graph, Graph):
            reject("graph", type(self).__name__, "a Graph", describe(self.graph))
        return self.graph

    def _checked(self) -> dict[str, Any]:
        """Return all settings in their canonical form; an alpha and a normalisation of None become the graph's."""
        values = check_fields(self, type(self).__name__, skip=("stopping",))
        if "alpha" in values and values["alpha"] is None:
            values["alpha"] = recommended_alpha(self.graph)
        if "normalization" in values and values["normalization"] is None:
            values["normalization"] = recommended_normalization(self.graph)
        return values

    def _positions(self, X: object, function: str, ids: object = None) -> NDArray[np.int64]:
        """Return the positions of nodes in the graph of the fit."""
        check_is_fitted(self)
        check_same_graph(self)
        return node_positions(X, "X", function, self.fitted_.graph, ids=ids)

    def __sklearn_tags__(self) -> Any:
        tags = cast("Any", super().__sklearn_tags__())
        tags.input_tags.one_d_array = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def graph_(self) -> Graph:
        """The graph of the fit."""
        return self.fitted_.graph

    @property
    def n_features_in_(self) -> int:
        """1: a sample is one number, its position."""
        return len([self.fitted_])

    @property
    def alpha_(self) -> float | None:
        """The teleport probability that was used."""
        return self.fitted_.alpha

    @property
    def normalization_(self) -> str | None:
        """The normalisation of the propagation matrix that was used; None: the model has no such setting."""
        return self.fitted_.normalization

    @property
    def known_nodes_(self) -> NDArray[np.int64]:
        """The nodes whose labels were given, each once."""
        return self.fitted_.known_nodes

    @property
    def known_labels_(self) -> NDArray[Any]:
        """Their labels."""
        return self.fitted_.known_labels

    @property
    def n_unlabelled_(self) -> int:
        """Nodes given to `fit` that were left out, since their label is unknown."""
        return there(self.fitted_.unlabelled, "n_unlabelled_", self)

    @property
    def missing_labels_(self) -> tuple[str, ...]:
        """What stands for an unknown label."""
        return self.fitted_.missing_labels


class ClassPredictor(ClassifierMixin, NodeEstimator):
    """What is predicted of a node are classes: their probabilities and logits."""

    def score(
        self,
        X: ArrayLike | None = None,
        y: LabelsLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> float:
        """Return the value of the classifier's `scoring` on nodes; without one the accuracy.

        Parameters
        ----------
        X, ids
            Nodes, as in `predict`.
        y
            Their labels, as in `fit`; nodes whose label is unknown are left out.
        sample_weight
            Weights of the nodes, as many as labels.
        """
        check_is_fitted(self)
        check_same_graph(self)  # before labels, which may be those of another graph
        if y is None:
            raise InputError("score requires y to be passed, but the target y is None. Pass one class label per node.")
        fitted = self.fitted_
        if isinstance(fitted.target, SeveralLabels):
            several = read_labelled(X, y, ("X", "y"), "score", fitted.graph, ids=ids, kind=SeveralLabels)
            check_some(several, "score")
            much = check_sample_weight(sample_weight, several, "score")
            return fitted.target.score(several.labels, fitted.outputs[several.nodes], much)
        names, missing = fitted.classes.names, fitted.missing_labels
        given = read_labelled(X, y, ("X", "y"), "score", fitted.graph, ids=ids, missing=missing, classes=names)
        check_some(given, "score")
        check_same_kind(given.labels, names, "y", "score")
        weights = check_sample_weight(sample_weight, given, "score")
        plain = fitted.scoring is None and fitted.threshold is None
        outputs = fitted.outputs[given.nodes] if plain else fitted.comparable(given.nodes)
        return fitted.target.score(given.labels, outputs, weights)

    def decision_function(self, X: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Return the logits of nodes, shape (m, c), as in ``logits_``; with two classes a score to rank nodes by, shape (m,).

        The score is the second logit less the first. Like the probabilities of `predict_proba`, it does not depend on the
        number of neighbours: with ``normalization="sym"`` it is divided by the propagation of ones.

        Parameters
        ----------
        X, ids
            Nodes, as in `predict`.
        """
        nodes, fitted = self._positions(X, "decision_function", ids), self.fitted_
        if isinstance(fitted.target, SeveralLabels):
            return fitted.target.margins(fitted.comparable(nodes))
        return fitted.classes.margins(
            fitted.comparable(nodes) if fitted.classes.columns == 2 else fitted.outputs[nodes]
        )

    def predict_proba(self, X: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Return the class probabilities of nodes, shape (m, c), columns in the order of ``classes_``.

        They can be compared between nodes. With ``normalization="sym"``, the logits of a node with many neighbours are larger
        by a factor, about the root of its degree. The probabilities are the softmax of the logits without this factor: divided
        by the propagation of ones. The class of the largest probability is that of `predict`, and ``logits_`` are not changed.
        With ``"row"``, the default of a graph of your own, there is no such factor.

        Parameters
        ----------
        X, ids
            Nodes, as in `predict`.
        """
        nodes, target = self._positions(X, "predict_proba", ids), self.fitted_.target
        target = target if isinstance(target, SeveralLabels) else self.fitted_.classes
        return target.probabilities(self.fitted_.comparable(nodes))

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels seen in `fit`, sorted, shape (c,); of an indicator matrix its columns."""
        target = self.fitted_.target
        return target.names if isinstance(target, SeveralLabels) else self.fitted_.classes.names

    @property
    def logits_(self) -> NDArray[Any]:
        """The logits of all nodes, shape (n, c)."""
        return self.fitted_.outputs


class NodeLearner(NodeEstimator):
    """An estimator that is fitted to the labels of some nodes of its graph, of any target, and has a model."""

    # What else than early stopping needs stopping nodes; None: nothing, and `stopping` may be None.
    _stopping_nodes_also: ClassVar[str | None] = None
    # Whether validation nodes end the training; else all labels are learned.
    stops_early: ClassVar[bool] = True

    random_state: int | np.random.RandomState | None

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        """Learn from nodes of the graph with these settings, which were validated; return what is left behind."""
        return self._learned(given, values, self._learn)

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        """Train the model that `_model` returned: as a rule one run of `train`."""
        assert isinstance(model, Model | Architecture)
        options = train_options(values)
        weights = None if data.weights is None else data.weights.nodes
        trained = train(
            model,
            data.graph,
            data.split,
            seeds=data.seed,
            labels=data.values,
            weights=weights,
            neighbours=values.get("neighbours"),
            **vars(replace(options, loss=values.get("loss", data.target.loss))),
        )
        warn_unfinished(trained, values)
        return Learned.of(model, trained)

    def _fit_to(
        self,
        kind: type[Target],
        X: object,
        y: object,
        stopping: StoppingNodes,
        sample_weight: object,
        ids: object,
        missing_labels: Sequence[str] = MISSING_LABELS,
    ) -> Self:
        """Learn from labels of a kind; the other arguments are those of `fit`."""
        name, graph = type(self).__name__, self._check_graph()
        values = self._checked()
        held = OPTIONAL_STOPPING.check(getattr(self, "stopping", None), name) if stopping is None else stopping
        if held is None and self._stopping_nodes_also is not None:
            reject("stopping", name, f"a float in (0, 1): {self._stopping_nodes_also}", None)
        given = Given.read(
            graph,
            X,
            y,
            name,
            stopping=held,
            sample_weight=sample_weight,
            ids=ids,
            missing_labels=missing_labels,
            kind=kind,
        )
        fitted = self._fit(given, values)
        self.fitted_ = replace(fitted, unlabelled=given.unlabelled, missing_labels=given.missing_labels)
        return self

    # Makes the model from the settings that its arguments name.
    _kind: ClassVar[Callable[..., AnyModel]]

    def _model(self, values: dict[str, Any]) -> AnyModel:
        """Return the model with these settings, which were validated."""
        return self._kind(**{name: values[name] for name in inspect.signature(self._kind).parameters if name in values})

    def _learned(
        self,
        given: Given,
        values: dict[str, Any],
        learn: Callable[[AnyModel, FitData, dict[str, Any]], Learned],
    ) -> Fitted:
        """Let `learn` train the model on some nodes, as a rule stopped by others; return what is left behind."""
        graph = self.graph
        # Without labels and class names, so that nothing below can read them or count their classes.
        labelled = graph.labels is not None or graph.class_names is not None
        bare = graph.replace(labels=None, class_names=None) if labelled else graph
        built_in = getattr(self, "predictor", None) is None
        scaled = bare.scaled("none" if values["scaling"] == "auto" and not built_in else values["scaling"])
        if "bias" in values:
            values["bias"] = uses_bias(values["bias"], scaled)
        model = self._model(values)
        if given.stopping is None:
            values["patience"] = None
        seed = seed_of(getattr(self, "random_state", None), type(self).__name__)
        data = FitData.of(given, scaled, seed, values.get("class_weight"))
        if given.kind is not Classes:
            _check_for_classes(type(self).__name__, values)
        judged_by = any(values.get(name) is not None for name in ("scoring", "positive", "threshold"))
        judged = Judging.of(data, values, type(self).__name__) if judged_by else None
        scoring = None if judged is None else judged.scoring
        learned = learn(model, data, values | {"scoring": scoring})
        if learned.alpha is not None:  # selected during fit
            values["alpha"] = learned.alpha
            model = self._model(values)
        known_nodes = data.known
        fitted = Fitted(
            kind=type(self),
            settings=self._settings(),
            graph=graph,
            target=data.target if judged is None else replace(data.classes, scoring=scoring),
            model=model,
            alpha=values.get("alpha"),
            outputs=learned.outputs,
            known_nodes=known_nodes,
            known_labels=data.target.decode(data.values[known_nodes]),
            weights=learned.weights,
            extras=learned.extras,
            scaling=scaled.scaling,
            split=data.split,
            record=learned.record,
            history=learned.history,
            choice=learned.choice,
        )
        return fitted if judged is None else judged.decided(fitted)

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
        used = TrainedFeatures.of(self.graph_).matched(graph, name)
        check_shape(used, feature_shape(self.graph_), name)
        ours, theirs = ({"directed": one.directed, "weighted": one.weights is not None} for one in (self.graph_, used))
        for what, here in theirs.items():
            if here != ours[what]:
                which = f"is {what}" if here else f"is not {what}"
                warn(f"The graph given to {name} {which}, unlike that of the training.")
        other = copy.copy(self)
        other.graph, other.fitted_ = used, self.fitted_.on(used, name)
        return other

    def save(
        self,
        path: str | PathLike[str],
        *,
        source: GraphSource | None = None,
        accuracy: float | None = None,
        test_nodes: int | None = None,
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
        test_nodes
            On how many nodes it was measured; with them the model card states its 95 % interval.
        overwrite
            Replace an existing folder, if there is nothing but a pprop model in it.
        """
        check_is_fitted(self)
        check_same_graph(self)
        tested = None if accuracy is None else (accuracy, test_nodes)
        save_model(self.fitted_, path, source=source, tested=tested, overwrite=overwrite)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as they were given, without graph and predictor: a later set_params does not change them."""
        settings = cast("dict[str, Any]", self.get_params(deep=False))
        return {name: value for name, value in settings.items() if name not in ("graph", "predictor")}

    @property
    def model_(self) -> AnyModel:
        """The network and its propagation."""
        return cast("AnyModel", self.fitted_.model)

    @property
    def weights_(self) -> Weights:
        """The kept weights by name."""
        return self.fitted_.weights

    @property
    def scaling_(self) -> Scaling | None:
        """How the features were scaled."""
        return self.fitted_.scaling

    @property
    def settings_(self) -> dict[str, Any]:
        """The parameters as they were in `fit`, without graph and predictor."""
        return self.fitted_.settings

    @property
    def record_(self) -> TrainingRecord:
        """How the training went."""
        return there(self.fitted_.record, "record_", self)

    @property
    def history_(self) -> History:
        """The curves of the training."""
        return there(self.fitted_.history, "history_", self)

    @property
    def n_iter_(self) -> int:
        """Epochs made."""
        return self.record_.epochs

    @property
    def threshold_(self) -> Threshold | None:
        """From which probability on a node is predicted as the positive class; None: every node gets its most probable class."""
        return self.fitted_.threshold

    @property
    def train_nodes_(self) -> NDArray[np.int64]:
        """The nodes that trained."""
        return there(self.fitted_.split, "train_nodes_", self).train

    @property
    def stopping_nodes_(self) -> NDArray[np.int64]:
        """The nodes that early stopping watched."""
        return there(self.fitted_.split, "stopping_nodes_", self).stopping

    @property
    def accuracy_(self) -> float | None:
        """Accuracy on test nodes, where it is known."""
        return self.fitted_.accuracy

    @property
    def test_nodes_(self) -> int | None:
        """On how many nodes it was measured."""
        return self.fitted_.test_nodes

    @property
    def source_(self) -> GraphSource | None:
        """Where the graph can be read again."""
        return self.fitted_.source

    @property
    def graph_changed_(self) -> bool:
        """Whether the graph is another one than that of the training."""
        return self.fitted_.graph_changed


class NodeClassifier(ClassPredictor, NodeLearner):
    """A classifier that is fitted to the labels of some nodes of its graph, and has a model that can be saved."""

    # Whether `fit` also takes an indicator matrix, several labels of a node.
    _several_labels: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Any:
        tags = cast("Any", super().__sklearn_tags__())
        tags.classifier_tags.multi_label = self._several_labels
        return tags

    def _target_of(self, y: object) -> type[Target]:
        return SeveralLabels if self._several_labels and has_columns(y) else Classes

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
        """Learn from the labels of some nodes of the graph.

        Parameters
        ----------
        X
            Nodes: integers, always positions, shape (m,) or (m, 1); n truth values, a mask; or text, always ids. None:
            all nodes. A node listed k times counts k times in the loss.
        y
            Their classes, shape (m,): integers, text or truth values; with a mask also one per node of the graph, shape
            (n,). Of some classifiers, such as `APPNPClassifier`, also an indicator matrix (m, k) of 0 and 1, NaN where unknown:
            any number of labels per node, each predicted by itself. Whole numbers stored as floats become integers. Unknown
            are None, NaN, what a masked array masks, and what `missing_labels` lists; these nodes are left out, and
            ``n_unlabelled_`` counts them. Where -1 and one other integer are the only labels, -1 is a class, and a warning says
            so. The index of a pandas series counts:
            where it holds ids of the graph, labels are found by them, and without X it names the nodes. Where it is 0,
            1, 2, ..., labels are in the order of the nodes. Where X has an index, too, it may be the same one. Any
            other index is refused. The same holds for `sample_weight`, for `stopping` and for a mask.
        stopping
            What early stopping watches: ``(nodes, y)`` of further nodes, or a fraction in (0, 1) of the nodes in `X`,
            which then do not train. None takes the fraction given to the constructor, or if that is None no node: early
            stopping is off. Of a class with m nodes, ``round(fraction * m)`` are set aside, at least one and at most
            m - 1; the only node of a class trains. Where every class has only one node, early stopping watches the
            training nodes, and a warning says so. Label propagation, which has nothing to stop, takes no fraction, and
            spreads the labels of further nodes, too, unless they choose its threshold.
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
        return self._fit_to(self._target_of(y), X, y, stopping, sample_weight, ids, missing_labels)


class NumberPredictor(RegressorMixin, NodeEstimator):
    """What is predicted of a node are numbers."""

    def score(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> float:
        """Return R2 on nodes, of several numbers the mean.

        Parameters
        ----------
        X, ids
            Nodes, as in `predict`.
        y
            Their numbers, as in `fit`; nodes with an unknown one are left out.
        sample_weight
            Weights of the nodes, as many as rows of y.
        """
        check_is_fitted(self)
        check_same_graph(self)
        if y is None:
            raise InputError("score requires y to be passed, but the target y is None. Pass one number per node.")
        given = read_labelled(X, y, ("X", "y"), "score", self.fitted_.graph, ids=ids, kind=Quantities)
        check_some(given, "score")
        weights = check_sample_weight(sample_weight, given, "score")
        whole = ~np.isnan(given.labels.reshape(len(given.labels), -1)).any(axis=1)
        if not whole.any():
            reject("y", "score", "nodes all of whose numbers are known", "none")
        much = None if weights is None else weights[whole]
        return self.fitted_.target.score(given.labels[whole], self.fitted_.outputs[given.nodes[whole]], much)

    def __sklearn_tags__(self) -> Any:
        tags = cast("Any", super().__sklearn_tags__())
        tags.target_tags.multi_output = True
        return tags

    @property
    def outputs_(self) -> NDArray[Any]:
        """The standardised predictions of all nodes, shape (n, k)."""
        return self.fitted_.outputs


class NodeRegressor(NumberPredictor, NodeLearner):
    """A regressor that is fitted to the numbers of some nodes of its graph: one or several of each."""

    def fit(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        stopping: StoppingNodes = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Self:
        """Learn from the numbers of some nodes of the graph.

        Parameters
        ----------
        X, ids
            Nodes, as in `APPNPClassifier.fit`.
        y
            Their numbers, shape (m,), or (m, k) for k numbers per node; NaN, None or what a masked array masks is unknown.
            Nodes without a known number are left out. The index of a pandas series or frame counts, as in
            `APPNPClassifier.fit`. Training is on standardised numbers; predictions are in the unit of y.
        stopping
            What early stopping watches: ``(nodes, y)`` of further nodes, or a fraction in (0, 1) of the nodes in `X`, drawn at
            random, which then do not train. None takes the fraction given to the constructor.
        sample_weight
            How much each node counts, like `y`; None: all the same.

        Returns
        -------
        self
        """
        return self._fit_to(Quantities, X, y, stopping, sample_weight, ids)


def _check_for_classes(name: str, values: dict[str, Any]) -> None:
    """Refuse settings that have a meaning for classes alone."""
    for setting in ("scoring", "positive", "threshold", "class_weight", "neighbours"):
        if values.get(setting) is not None:
            reject(setting, name, "None for a target other than one class per node", describe(values[setting]))


def uses_bias(value: bool | str, graph: Graph) -> bool:
    """Return whether the network of a classifier has biases: with ``"auto"``, where columns are standardised.

    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((2, 2)), features=np.eye(2))
    >>> uses_bias("auto", graph.scaled("l1")), uses_bias("auto", graph.scaled("standard")), uses_bias(True, graph)
    (False, True, True)
    """
    if not isinstance(value, str):
        return value
    return graph.scaling is not None and graph.scaling.kind == "standard"


def train_options(values: dict[str, Any]) -> TrainOptions:
    """Return how to train, from the settings of a classifier; `scoring` is a `Scoring` by then."""
    rule = Stopping(values["patience"], values["max_epochs"], values["criterion"])
    level = values["verbose"]
    return TrainOptions(
        rule,
        values["learning_rate"],
        values["backend"],
        values["device"],
        progress=level >= 1,
        verbose=level >= 2,
        scoring=values.get("scoring"),
    )


def warn_unfinished(trained: Trained, values: dict[str, Any]) -> None:
    """Warn where early stopping did not end a run, and nobody chose its last epoch."""
    last = MAX_EPOCHS.default
    if values["patience"] is not None and values["max_epochs"] == last and (trained.epochs >= last).any():
        warn(
            f"Training made all {last} epochs, and its stopping nodes still improved. Choose another max_epochs, a lower "
            "patience, or a higher learning_rate.",
            ConvergenceWarning,
        )


def recommended_alpha(graph: Graph) -> float:
    """Return the teleport probability that a graph recommends, or the default.

    >>> import pprop
    >>> recommended_alpha(pprop.load_dataset("citeseer"))
    0.1
    """
    return ALPHA.default if graph.recommended is None else graph.recommended.alpha


def recommended_normalization(graph: Graph) -> str:
    """Return the normalisation that a graph recommends, or the one of a graph without a recommendation.

    >>> import pprop, scipy.sparse as sp
    >>> recommended_normalization(pprop.load_dataset("citeseer"))
    'sym'
    >>> recommended_normalization(pprop.Graph.from_scipy(sp.csr_array((2, 2))))
    'row'
    """
    advice = None if graph.recommended is None else graph.recommended.normalization
    return UNBIASED if advice is None else advice


name_methods(
    "", NodeEstimator, ClassPredictor, NodeLearner, NodeClassifier, NumberPredictor, NodeRegressor
)  # a model has another class
