"""What a fit leaves behind: weights by name, logits and record, and the attributes of a fitted classifier."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, Self, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.estimators.source import GraphSource
from pprop.graph import Graph, Scaling
from pprop.kernels import BACKENDS, Backend, choose_backend
from pprop.models import Architecture, FeatureNetwork, Model
from pprop.models.blocks import block_logits, steps_fit
from pprop.models.ensemble import Ensemble, mean_log_probabilities
from pprop.models.feature_propagation import BootstrappedFP, feature_logits
from pprop.models.inference import Inference
from pprop.models.label_propagation import LabelPropagation
from pprop.models.module import make_module, module_state
from pprop.propagation import PowerIteration
from pprop.training import History, Trained

# What a classifier may learn.
AnyModel = Model | Architecture | BootstrappedFP | Ensemble | LabelPropagation

# Arrays by name: "layer0", "layer1", ..., "bias0", ... of the built-in network, or the names of a module's state or a description.
# Those of an ensemble begin with "member0.", "member1.", ...
Weights = dict[str, NDArray[Any]]


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
    elif isinstance(model, LabelPropagation):
        return  # labels are all it has
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
    function: str = "load",
) -> NDArray[np.float32]:
    """Return the logits of all nodes, shape (n, c): the same bits as those at the end of the training.

    They are in memory, or in a file; then, with `in_blocks`, or where steps in memory do not fit, those of APPNP are made as
    `pprop.scale.predict` makes them.
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
    if isinstance(model, LabelPropagation):  # they are made of labels alone
        return np.empty((graph.n_nodes, 0), dtype=np.float32)
    if isinstance(model, BootstrappedFP):
        return feature_logits(model, graph, weights["coefficients"], weights["intercepts"])
    tensors = [torch.from_numpy(np.array(array))[None] for array in weights.values()]
    return Inference(model, graph, backend.kernels).logits(tensors)[0].numpy()


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

    @property
    def ms_per_epoch(self) -> float:
        """Milliseconds of an epoch, with the set-up and without compilation; NaN without epochs."""
        return 1000 * (self.seconds - self.compile_seconds) / self.epochs if self.epochs else math.nan

    @classmethod
    def of(cls, trained: Trained, run: int = 0) -> Self:
        """Return the record of one run of a training."""
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
        )


def backend_again(record: TrainingRecord, function: str) -> Backend:
    """Return the backend of a training where it works on this machine's CPU, for the same bits, and else the default."""
    usable = any(one.name == record.backend and "cpu" in one.devices and one.available for one in BACKENDS)
    return choose_backend(record.backend if usable else "auto", "cpu", function)


@final
@dataclass(frozen=True)
class Learned:
    """The result of a fit: weights by name, logits of all nodes (n, c), record, curves, and the alpha if one was chosen."""

    weights: Weights
    logits: NDArray[np.float32]
    record: TrainingRecord
    history: History
    alpha: float | None = None

    @classmethod
    def of(cls, model: Model | Architecture, trained: Trained, run: int = 0, alpha: float | None = None) -> Self:
        """Return what one run of a training has learned."""
        weights = named_weights(model, (np.asarray(array[run]) for array in trained.weights))
        return cls(weights, trained.logits[run], TrainingRecord.of(trained, run), trained.history[run], alpha)


class FittedScores:
    """The attributes of every fitted classifier of nodes."""

    graph: Graph
    graph_: Graph
    classes_: NDArray[Any]
    n_features_in_: int
    logits_: NDArray[Any]
    known_nodes_: NDArray[np.int64]
    known_labels_: NDArray[Any]
    n_unlabelled_: int
    missing_labels_: tuple[str, ...]


class FittedModel(FittedScores):
    """The attributes of a fitted classifier with a model of its own, which can be saved."""

    model_: AnyModel
    settings_: dict[str, Any]
    n_iter_: int
    history_: History
    record_: TrainingRecord
    alpha_: float | None
    accuracy_: float | None
    test_nodes_: int | None
    source_: GraphSource | None
    graph_changed_: bool
    scaling_: Scaling | None
    weights_: Weights
    train_nodes_: NDArray[np.int64]
    stopping_nodes_: NDArray[np.int64]


def check_same_graph(model: FittedScores) -> None:
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
    name, now, fitted = type(model).__name__, model.graph, model.graph_
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
