"""What a fit leaves behind, `Fitted`: graph, target, model, weights, outputs and record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast, final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pprop._errors import InputError
from pprop._validate import describe, reject, warn
from pprop.datasets import Split
from pprop.estimators.features import scaled_alike
from pprop.estimators.source import GraphSource
from pprop.estimators.targets import Classes, Target, as_classes
from pprop.graph import Graph, Scaling
from pprop.graph.attributes import MISSING_LABELS
from pprop.kernels import BACKENDS, Backend, choose_backend
from pprop.models import Architecture, FeatureNetwork, Model, SolvedPPNP
from pprop.models.blocks import block_logits, steps_fit
from pprop.models.ensemble import Ensemble, KnownErrors, mean_log_probabilities
from pprop.models.feature_propagation import BootstrappedFP, feature_logits
from pprop.models.inference import Inference
from pprop.models.label_propagation import LabelPropagation, log_shares
from pprop.models.model import PropagationSettings
from pprop.models.module import make_module, module_state
from pprop.models.propagated_ones import Propagates, propagated_ones
from pprop.propagation import PowerIteration, PPROperator, Solution, Solver
from pprop.scoring import Scoring, Threshold
from pprop.training import History, Trained


@final
@dataclass(frozen=True)
class Columns:
    """What a `ColumnsClassifier` shows its estimator, which is not part of it: its outputs are all that is kept.

    Attributes
    ----------
    hops, components
        As in `PropagatedFeatures`.
    label_inputs
        Whether training labels are among the columns.
    """

    hops: int
    components: int
    label_inputs: bool


@final
@dataclass(frozen=True, eq=False)
class Blend:
    """Fitted classifiers of the same graph and classes, whose probabilities are averaged.

    Attributes
    ----------
    members
        What their fits left behind.
    """

    members: tuple[Fitted, ...]

    def outputs(self) -> NDArray[np.float64]:
        """Return the logarithm of the geometric mean of the probabilities, divided by its sum, shape (n, c)."""
        every = np.arange(self.members[0].graph.n_nodes)
        return log_geometric_mean([one.classes.probabilities(one.comparable(every)) for one in self.members])


# What a classifier may learn.
AnyModel = Model | Architecture | BootstrappedFP | Ensemble | LabelPropagation | Columns | Blend

# Arrays by name: "layer0", "layer1", ..., "bias0", ... of the built-in network, or the names of a module's state or a description.
# Those of an ensemble begin with "member0.", "member1.", ...
Weights = dict[str, NDArray[Any]]


# Of a blend.
MOST_MEMBERS = 16
# Smallest probability in a geometric mean: a member that is certain does not outvote all others.
LEAST_PROBABILITY = 1e-6


def log_geometric_mean(probabilities: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return the logarithm of the geometric mean of probabilities, each of shape (m, c), divided by its sum.

    >>> mean = log_geometric_mean([np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])])
    >>> np.exp(mean).round(3)
    array([[0.75, 0.25]])
    """
    logs = [np.log(np.maximum(one.astype(np.float64), LEAST_PROBABILITY)) for one in probabilities]
    return special.log_softmax(np.mean(logs, axis=0), axis=1)


@final
class ExpectedWeight(NamedTuple):
    """What one weight of a model must be. No array: the shape may be one that no memory holds."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def named_weights(model: AnyModel, arrays: Iterable[NDArray[Any]]) -> Weights:
    """Name the weights of one run, or of one member after another, which come in the order of `expected_weights`."""
    names = (weight.name for weight in expected_weights(model, 1, 1))  # names do not depend on sizes
    return dict(zip(names, arrays, strict=True))


def expected_weights(model: AnyModel, n_features: int, n_classes: int) -> Iterator[ExpectedWeight]:
    """Give the weights of a model in their order, one by one: the settings in a file may claim any number of any size."""
    if isinstance(model, Ensemble):
        one = list(expected_weights(model.member, n_features, n_classes))
        for k in range(model.members):
            yield from (weight._replace(name=f"member{k}.{weight.name}") for weight in one)
    elif isinstance(model, LabelPropagation | Columns | Blend):
        return  # labels are all that the first has, outputs all that is kept of the second, the third has other models
    elif isinstance(model, BootstrappedFP):
        yield ExpectedWeight("coefficients", (n_classes, n_features), np.dtype(np.float64))
        yield ExpectedWeight("intercepts", (n_classes,), np.dtype(np.float64))
    elif isinstance(model, Architecture):
        for weight in model.weights(n_features, n_classes):
            yield ExpectedWeight(weight.name, weight.shape, np.dtype(np.float32))
    elif isinstance(model.predictor, FeatureNetwork):
        for weight in model.predictor.weights(n_features, n_classes):
            yield ExpectedWeight(weight.name, weight.shape, np.dtype(np.float32))
    else:
        for name, tensor in _state(model).items():
            yield ExpectedWeight(name, tuple(tensor.shape), tensor.cpu().numpy().dtype)


def logits_from(
    model: AnyModel,
    graph: Graph,
    weights: Weights,
    backend: Backend,
    *,
    in_blocks: bool = False,
    file: str | PathLike[str] | None = None,
    shown: tuple[NDArray[np.int64], int] | None = None,
    function: str = "load",
) -> NDArray[np.float32]:
    """Return the logits of all nodes, shape (n, c): the same bits as those at the end of the training.

    They are in memory, or in a file; then, with `in_blocks`, or where steps in memory do not fit, those of APPNP are made as
    `pprop.scale.predict` makes them. `shown` are the labels (n,) that a model sees, -1 where it sees none, and the number of
    classes.
    """
    if file is not None and not _by_steps(model):
        reject("logits_file", function, "None, unless the model is APPNP with the built-in network", describe(file))
    if (
        in_blocks
        or file is not None
        or (_by_steps(model) and not steps_fit(graph, next(reversed(weights.values())).shape[-1]))
    ):
        tensors = [torch.from_numpy(np.array(array))[None] for array in weights.values()]
        return block_logits(model, graph, tensors, backend.kernels, out=file, function=function)
    if isinstance(model, Ensemble):
        arrays, each = list(weights.values()), len(weights) // model.members
        layers = [torch.from_numpy(np.stack(arrays[layer::each])) for layer in range(each)]
        return mean_log_probabilities(Inference(model.member, graph, backend.kernels).logits(layers).numpy())
    if isinstance(model, LabelPropagation | Columns | Blend):  # they are made of labels alone, kept, or those of others
        return np.empty((graph.n_nodes, 0), dtype=np.float32)
    if isinstance(model, BootstrappedFP):
        return feature_logits(model, graph, weights["coefficients"], weights["intercepts"])
    tensors = [torch.from_numpy(np.array(array))[None] for array in weights.values()]
    labels = None if shown is None else (torch.from_numpy(shown[0]), shown[1])
    return Inference(model, graph, backend.kernels, shown=labels).logits(tensors)[0].numpy()


def _by_steps(model: AnyModel) -> bool:
    """Whether a model is the built-in network and power steps."""
    if not isinstance(model, Model) or not isinstance(model.predictor, FeatureNetwork) or model.propagation is None:
        return False
    return isinstance(model.propagation.solver, PowerIteration)


def _state(model: Model) -> dict[str, torch.Tensor]:
    predictor: Any = model.predictor
    with torch.random.fork_rng(devices=[]):  # making a module draws random weights
        module = make_module(predictor)
    return {name: tensor.detach() for name, tensor in module_state(module).items()}


@final
@dataclass(frozen=True)
class TrainingRecord:
    """How one fit went.

    Attributes
    ----------
    epochs, best_epoch
        Epochs made, and the epoch (from 0) whose weights were kept.
    stopping_loss, stopping_accuracy
        On the stopping nodes, at the kept epoch.
    seconds
        Wall-clock time of the fit, set-up and compilation included.
    backend, device
        Name of the backend that trained, and where: ``"cpu"``, or a GPU such as ``"cuda:0"``.
    seed
        Of the run: with it as ``random_state`` the same fit gives the same weights.
    train_nodes, stopping_nodes
        Their numbers.
    compile_seconds
        How many of the seconds kernels were compiled, which happens once on a machine; 0 where that is not known, as on
        a GPU or in models saved before it was noted.
    stopping_score
        The value of the scoring on the stopping nodes, at the kept epoch; None where early stopping watched none.

    Examples
    --------
    >>> record = TrainingRecord(320, 219, 0.51, 0.84, 22.1, "numba", "cpu", 0, 120, 500, compile_seconds=20.5)
    >>> record.best_epoch, round(record.ms_per_epoch, 6)
    (219, 5.0)
    """

    epochs: int
    best_epoch: int
    stopping_loss: float
    stopping_accuracy: float
    seconds: float
    backend: str
    device: str
    seed: int
    train_nodes: int
    stopping_nodes: int
    compile_seconds: float = 0.0
    stopping_score: float | None = None

    @property
    def ms_per_epoch(self) -> float:
        """Milliseconds of an epoch, with the set-up and without compilation; NaN without epochs."""
        return 1000 * (self.seconds - self.compile_seconds) / self.epochs if self.epochs else math.nan

    @classmethod
    def of(cls, trained: Trained, run: int = 0) -> Self:
        """Return the record of one run of a training."""
        score = float(trained.stopping_score[run])
        return cls(
            epochs=int(trained.epochs[run]),
            best_epoch=int(trained.best_epoch[run]),
            stopping_loss=float(trained.stopping_loss[run]),
            stopping_accuracy=float(trained.stopping_accuracy[run]),
            seconds=trained.seconds,
            backend=trained.backend,
            device=trained.device,
            seed=trained.seeds[run],
            train_nodes=len(trained.splits[run].train),
            stopping_nodes=len(trained.splits[run].stopping),
            compile_seconds=trained.compile_seconds,
            stopping_score=None if math.isnan(score) else score,
        )


def backend_again(record: TrainingRecord, function: str) -> Backend:
    """Return the backend of a training where it works on this machine's CPU, for the same bits, and else the default."""
    usable = any(one.name == record.backend and "cpu" in one.devices and one.available for one in BACKENDS)
    return choose_backend(record.backend if usable else "auto", "cpu", function)


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """Teleport probabilities that a fit chose from, shape (a,), how good each was, and which one it took.

    Attributes
    ----------
    alphas
        Shape (a,).
    scores, losses
        On the stopping nodes: per alpha, or per alpha and run.
    index, run
        What became the model.
    """

    alphas: NDArray[np.float64]
    scores: NDArray[np.float64]
    losses: NDArray[np.float64] | None
    index: int
    run: int = 0


@final
@dataclass(frozen=True)
class Learned:
    """The result of a training.

    Attributes
    ----------
    weights
        By name.
    outputs
        Of all nodes, shape (n, c).
    record, history
        How it went, and its curves.
    alpha, choice
        The teleport probability, if the training chose one, and how.
    extras
        Arrays besides the weights that the outputs are made of.
    """

    weights: Weights
    outputs: NDArray[Any]
    record: TrainingRecord
    history: History
    alpha: float | None = None
    choice: Choice | None = None
    extras: Weights = field(default_factory=dict[str, NDArray[Any]])

    @classmethod
    def of(
        cls,
        model: Model | Architecture,
        trained: Trained,
        run: int = 0,
        alpha: float | None = None,
        choice: Choice | None = None,
    ) -> Self:
        """Return what one run of a training has learned."""
        weights = named_weights(model, (np.asarray(array[run]) for array in trained.weights))
        record, history = TrainingRecord.of(trained, run), trained.history[run]
        return cls(weights, trained.logits[run], record, history, alpha, choice)


@final
@dataclass(frozen=True)
class SpreadSettings:
    """How a `PropagatedClassifier` propagates what its estimator predicts of each node alone.

    Attributes
    ----------
    alpha, solver, normalization, self_loops
        As for `propagate`.
    response
        What is propagated: "logits" or "probabilities".
    """

    alpha: float
    solver: Solver
    normalization: str
    self_loops: bool
    response: str

    def operator(self, graph: Graph) -> PPROperator:
        """Return the operator of a graph that is applied."""
        return PPROperator(graph, self.alpha, self.normalization, self.self_loops)


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """Everything that a fit leaves behind: all that predictions, explanations, live graphs, files and servers need.

    Attributes
    ----------
    kind, settings
        The class of the estimator, and its parameters as they were given, without graph and predictor.
    graph, graph_changed
        The graph, and whether it is another one than that of the training.
    target
        What is predicted of a node.
    model, alpha
        The network and its propagation, and the teleport probability; None where there is none.
    outputs
        Of all nodes, shape (n, columns): `target` says what they stand for.
    weights, extras
        Of the model by name, and other arrays that the outputs are made of.
    alone
        What is propagated, shape (n, columns), where another estimator predicted it; None: the model's network does.
    scaling
        Of the features, where they were scaled.
    known_nodes, known_labels
        All nodes whose label was given, in ascending order, and their labels, shape (m,).
    split
        Training and validation nodes; None where a file does not say them.
    record, history, choice
        How the training went; None without one.
    unlabelled, missing_labels
        How many nodes were given without a label (None: not known), and what stands for an unknown one.
    accuracy, test_nodes
        On nodes that took no part, and on how many; None: not known.
    source
        Where the graph can be read again; None: not known.
    """

    kind: type[Any]
    settings: dict[str, Any]
    graph: Graph
    target: Target
    model: AnyModel | SpreadSettings
    alpha: float | None
    outputs: NDArray[Any]
    known_nodes: NDArray[np.int64]
    known_labels: NDArray[Any]
    weights: Weights = field(default_factory=dict[str, NDArray[Any]])
    extras: Weights = field(default_factory=dict[str, NDArray[Any]])
    alone: NDArray[Any] | None = None
    scaling: Scaling | None = None
    split: Split | None = None
    record: TrainingRecord | None = None
    history: History | None = None
    choice: Choice | None = None
    unlabelled: int | None = None
    missing_labels: tuple[str, ...] = MISSING_LABELS
    accuracy: float | None = None
    test_nodes: int | None = None
    source: GraphSource | None = None
    graph_changed: bool = False

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.kind.__name__

    @property
    def classes(self) -> Classes:
        """The target, where it is one of several classes; refuse another."""
        return as_classes(self.target, self.name)

    @property
    def every_weight(self) -> Weights:
        """The weights by name, of a blend those of all members, each after the member's name."""
        if not isinstance(self.model, Blend):
            return self.weights
        parts = [(member_name(k), one.every_weight) for k, one in enumerate(self.model.members)]
        return {f"{member}.{name}": array for member, weights in parts for name, array in weights.items()}

    @property
    def normalization(self) -> str | None:
        """The normalisation of the matrix that propagates; None: the model has no such setting."""
        return getattr(self._propagates, "normalization", None)

    @property
    def _propagates(self) -> object:
        """What says how the model propagates, where something does."""
        model = self.model.member if isinstance(self.model, Ensemble) else self.model
        return model.propagation if isinstance(model, Model) else model

    def predictions(self, nodes: NDArray[np.int64]) -> NDArray[Any]:
        """Return the classes of nodes, shape (m,): those of the largest output, or those that the threshold decides."""
        return self.target.predictions(self.outputs[nodes] if self.threshold is None else self.comparable(nodes))

    def comparable(self, nodes: NDArray[np.int64]) -> NDArray[Any]:
        """Return the outputs of nodes on a scale that is the same for all nodes, shape (m, columns).

        They are what nodes are ranked by. Logits that were propagated with another matrix than "row" are divided by the
        propagation of ones; see `pprop.models.propagated_ones`. The largest of a node remains the largest. Other outputs are
        as they are, and so is the vote of an ensemble that was corrected by its errors.
        """
        found = self.outputs[nodes]
        ones = self._ones()
        return found if ones is None else found / ones[nodes, None].astype(found.dtype)

    def _ones(self) -> NDArray[np.float64] | None:
        """Return the propagation of ones that the outputs are divided by; None: they are not."""
        how = self._propagates
        logits = isinstance(how, PropagationSettings | SolvedPPNP) or getattr(how, "response", None) == "logits"
        if not logits or self.errors is not None:
            return None
        if self not in _ones:
            _ones[self] = propagated_ones(self.graph, cast("Propagates", how))
        return _ones[self]

    @property
    def scoring(self) -> Scoring | None:
        """What the predictions are judged by; None: accuracy."""
        return self.target.scoring if isinstance(self.target, Classes) else None

    @property
    def threshold(self) -> Threshold | None:
        """From which probability on a node is predicted as the positive class; None: there is none."""
        return self.target.threshold if isinstance(self.target, Classes) else None

    @property
    def errors(self) -> KnownErrors | None:
        """The errors at known nodes that an ensemble spreads; None: it spreads none."""
        if not isinstance(self.model, Ensemble) or not self.extras:
            return None
        return KnownErrors(self.known_nodes, self.extras["errors"], float(self.extras["temperature"][0]))

    @property
    def shown(self) -> tuple[NDArray[np.int64], int] | None:
        """The labels that the model sees when it predicts, (n,), -1 for none, and the number of classes; None: it sees none."""
        if not sees_labels(self.model):
            return None
        labels = np.full(self.graph.n_nodes, -1, dtype=np.int64)
        if "shown" in self.extras:  # else on another graph
            labels[self.known_nodes] = self.target.encode(self.known_labels)
            labels[np.setdiff1d(self.known_nodes, self.extras["shown"])] = -1
        return labels, self.target.columns

    def label_sources(self) -> tuple[NDArray[np.float64], Solution]:
        """Return what label propagation spreads, and what becomes of it."""
        assert isinstance(self.model, LabelPropagation)
        codes, amounts = self.target.encode(self.known_labels), self.extras["amounts"]
        backend = self.settings["backend"]
        return self.model.sources(self.graph, self.known_nodes, codes, amounts, self.target.columns, backend)

    def again(self, function: str, file: str | PathLike[str] | None = None) -> Self:
        """Return the same with the outputs computed again: the same bits as at the end of the training.

        Parameters
        ----------
        function
            For errors.
        file
            Where the outputs lie; None: in memory.
        """
        assert not isinstance(self.model, SpreadSettings)
        assert self.record is not None
        if isinstance(self.model, Blend):
            blend = Blend(tuple(one.again(function) for one in self.model.members))
            return replace(self, model=blend, outputs=blend.outputs())
        scaled = scaled_alike(self.graph, self.scaling, function)
        if self.graph_changed and sees_labels(self.model):
            warn(
                f"The labels that this {self.name} was trained with belong to another graph, so that it predicts without labels "
                "here. One with label_inputs=False is trained for that."
            )
        backend, blocks = backend_again(self.record, function), self.settings.get("neighbours") is not None
        outputs: NDArray[Any] = logits_from(
            self.model, scaled, self.weights, backend, in_blocks=blocks, file=file, shown=self.shown, function=function
        )
        errors = self.errors
        if isinstance(self.model, LabelPropagation):
            outputs = log_shares(*self.label_sources())
        elif isinstance(self.model, Columns):
            outputs = self.extras["log_probabilities"]
        elif isinstance(self.model, Ensemble) and errors is not None:
            outputs = self.model.corrected(self.graph, outputs, errors)
        return replace(self, outputs=outputs)

    def on(self, graph: Graph, function: str) -> Self:
        """Return the fitted model on another graph with the same features; nothing is trained.

        Parameters
        ----------
        graph
            With features in the order of the training.
        function
            For errors.
        """
        if graph.fingerprint == self.graph.fingerprint:
            return replace(self, graph=graph, graph_changed=False)
        if (reason := elsewhere(self.name, self.model)) is not None:
            raise InputError(reason)
        none = self.known_nodes[:0]
        model = self.model
        if isinstance(model, Blend):
            model = Blend(tuple(one.on(graph, function) for one in model.members))
        moved = replace(
            self,
            model=model,
            graph=graph,
            graph_changed=True,
            known_nodes=none,
            known_labels=self.known_labels[:0],
            split=Split(none, none, none),
            extras={},
            accuracy=None,
            test_nodes=None,
            source=None,
        )
        return replace(moved, outputs=model.outputs()) if isinstance(model, Blend) else moved.again(function)


def member_name(place: int) -> str:
    """Return the name of a member of a blend: of its weights and of its folder.

    >>> member_name(0)
    'member0'
    """
    return f"member{place}"


# Beside the fitted models and not in them: these are pickled and copied, and the propagation can be computed again.
_ones: WeakKeyDictionary[Fitted, NDArray[np.float64] | None] = WeakKeyDictionary()


def sees_labels(model: AnyModel | SpreadSettings) -> bool:
    """Return whether training labels are inputs of a model that propagates them between its layers."""
    return isinstance(model, Architecture) and model.sees_labels


def elsewhere(name: str, model: AnyModel | SpreadSettings) -> str | None:
    """Return why a fitted model cannot be used on another graph than its own; None: it can."""
    if isinstance(model, Blend):
        reasons = [elsewhere(one.name, one.model) for one in model.members]
        return next((reason for reason in reasons if reason is not None), None)
    if isinstance(model, LabelPropagation):
        what = f"The labels that a {name} spreads"
    elif isinstance(model, Columns):
        what = f"The columns that a {name} reads"
    else:
        return None
    return f"{what} belong to the nodes of the graph that it was fitted on. Fit one on this graph."


def checked_extras(
    name: str, model: AnyModel, extras: Weights, nodes: NDArray[np.int64], n_nodes: int, columns: int
) -> Weights:
    """Return the arrays besides the weights of a model that was read, checked; none on another graph.

    Parameters
    ----------
    name
        Of the class, for an error.
    model, extras
        As read.
    nodes
        Known nodes; none on another graph.
    n_nodes, columns
        Nodes of the graph, and outputs per node.
    """
    if isinstance(model, Columns):
        made = extras.get("log_probabilities", np.empty(0))
        sound = list(extras) == ["log_probabilities"] and made.shape == (n_nodes, columns) and made.dtype == np.float64
        if not sound or not np.isfinite(made).all():
            reject("extras", name, f"given the outputs of {n_nodes} nodes, finite", describe(sorted(extras)))
        return extras
    if isinstance(model, LabelPropagation):
        amounts = extras.get("amounts", np.empty(0))
        sound = list(extras) == ["amounts"] and amounts.shape == nodes.shape and amounts.dtype == np.float64
        if not sound or not (np.isfinite(amounts) & (amounts >= 0)).all() or not amounts.any():
            expected = f"given the amounts of {len(nodes)} labels, finite, not negative and not all 0"
            reject("extras", name, expected, describe(sorted(extras)))
        return extras
    if sees_labels(model):
        shown = extras.get("shown", np.empty(0))
        sound = list(extras) == ["shown"] and shown.ndim == 1 and shown.dtype == np.int64
        if len(nodes) and (not sound or not np.array_equal(np.intersect1d(shown, nodes), shown)):
            reject(
                "extras",
                name,
                "given the nodes whose labels it sees, among the labelled ones",
                describe(sorted(extras)),
            )
        return extras if len(nodes) else {}
    if not isinstance(model, Ensemble) or model.strength == 0:
        if extras:
            reject("extras", name, "none", describe(sorted(extras)))
        return extras
    if len(nodes) == 0:  # another graph: its nodes are not those that were known
        return {}
    wanted = {"errors": (len(nodes), columns), "temperature": (1,)}
    if {key: array.shape for key, array in extras.items()} != wanted or not all(
        array.dtype == np.float64 and np.isfinite(array).all() for array in extras.values()
    ):
        reject("extras", name, f"finite float64 arrays of shapes {wanted}", describe(sorted(extras)))
    if extras["temperature"][0] <= 0:
        reject("extras", name, "given a temperature above 0", describe(extras["temperature"][0].item()))
    return extras


def choice_of(model: HasFitted) -> Choice:
    """Return how a fit chose its teleport probability; a model that was loaded does not say it."""
    return there(model.fitted_.choice, "alphas_, which are not saved", model)


Part = TypeVar("Part")


def there(part: Part | None, name: str, owner: object) -> Part:
    """Return a part of what a fit left behind; not every fit leaves every one."""
    if part is None:
        raise AttributeError(f"this {type(owner).__name__} has no {name}")
    return part


class HasFitted(Protocol):
    """An estimator whose samples are the nodes of a graph."""

    graph: Graph
    fitted_: Fitted


def fitted_of(model: object, function: str, expected: str) -> Fitted:
    """Return what the fit of a classifier left behind; refuse anything else, and a classifier whose graph was exchanged.

    Parameters
    ----------
    model
        A classifier of nodes.
    function, expected
        For an error: the function that was called, and what its argument may be.
    """
    found: object = getattr(model, "fitted_", None)
    if isinstance(found, Fitted):
        check_same_graph(cast("HasFitted", model))
        return found
    if isinstance(model, BaseEstimator) and isinstance(getattr(model, "graph", None), Graph):
        check_is_fitted(model)
    reject("model", function, expected, describe(model))


def check_same_graph(model: HasFitted) -> None:
    """Refuse a model whose graph was exchanged after its fit, or whose arrays may have been written to.

    The same object is the same graph, at no cost; of another one the fingerprint decides, which a Graph computes once.
    A Graph makes its arrays read-only; one that can be written to was made writeable by someone.

    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> from sklearn.naive_bayes import GaussianNB
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((4, 4)), features=np.eye(4))
    >>> model = pprop.PropagatedClassifier(GaussianNB(), graph).fit([0, 1, 2, 3], [0, 0, 1, 1])
    >>> check_same_graph(model.set_params(graph=graph.replace(name="the same")))
    >>> check_same_graph(model.set_params(graph=graph.replace(features=None)))
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The graph of this PropagatedClassifier is not the one that it was fitted on: ...
    """
    name, now, fitted = type(model).__name__, model.graph, model.fitted_.graph
    if now is not fitted:
        if not isinstance(now, Graph):
            reject("graph", name, "a Graph", describe(now))
        if now.fingerprint != fitted.fingerprint:
            raise InputError(
                f"The graph of this {name} is not the one that it was fitted on: its fingerprint is {now.fingerprint}, "
                f"not {fitted.fingerprint}. Call fit again, or put the former graph back."
            )
    features = fitted.features
    arrays: dict[str, Any] = {"indptr": fitted.indptr, "indices": fitted.indices, "weights": fitted.weights}
    if isinstance(features, sparse.csr_array):
        arrays |= {f"features.{part}": getattr(features, part) for part in ("data", "indices", "indptr")}
    else:
        arrays["features"] = features
    writeable = [part for part, array in arrays.items() if _writeable(array)]
    if writeable:
        raise InputError(
            f"The graph of this {name} may have changed since it was fitted: its array {writeable[0]!r} was made "
            "writeable. A Graph is immutable. Make a new one, for instance with .replace(...), and call fit again."
        )


def _writeable(array: object) -> bool:
    """Whether an array, or one that it is a view of, can be written to.

    >>> import numpy as np
    >>> whole = np.arange(3)
    >>> view = whole[:2]
    >>> view.flags.writeable = False
    >>> _writeable(view)
    True
    """
    holder: Any = array
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return True
        holder = cast("Any", holder.base)
    return False
