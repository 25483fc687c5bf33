"""`train`: R independent runs of a model on a graph; `train_alphas`: with several teleport probabilities at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pprop._process import compiling, remember_interrupts
from pprop._validate import check_bool, check_int, describe, reject
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.kernels import choose_backend
from pprop.kernels.losses import CROSS_ENTROPY, ELEMENTWISE
from pprop.kernels.random_bits import RUNS, derive_seed, signed
from pprop.models import Architecture, FeatureNetwork, Model
from pprop.models.inference import Inference
from pprop.propagation import PowerIteration
from pprop.scoring import Scoring
from pprop.settings import ALPHAS, BACKEND, DEVICE, LEARNING_RATE
from pprop.training.loop import RunsEnded, Stopping, show_progress, train_chunks
from pprop.training.memory import explain_exhaustion, plan_runs
from pprop.training.minibatch.neighbourhoods import EPS
from pprop.training.minibatch.training import BATCH, NeighbourhoodTraining, check_model
from pprop.training.result import LARGEST_RATE, LoopResult, Trained, diverged, finite_logits, without_stopping
from pprop.training.scored import rule_of
from pprop.training.task import (
    Task,
    check_device,
    check_runs,
    check_split_labels,
    check_split_targets,
    check_weights,
    node_sets,
)
from pprop.training.trainers import ModelTraining, training_of

OnEnd = Callable[[Trained, NDArray[np.int64]], None]
# How a model is trained on a task, in place of the usual way.
Way = Callable[[Model | Architecture, Task], ModelTraining]


def run_seed(split_seed: int, init_seed: int) -> int:
    """Return the seed of a run from the seed of its split and of its initialisation, a 64-bit integer.

    Runs of one model differ in at least one of them, and so in their weights and masks. Models share random numbers at equal
    seeds: matrices of equal shapes in equal layers begin the same.

    Examples
    --------
    >>> run_seed(2144199730, 0) != run_seed(2144199730, 1)
    True
    """
    check_int(split_seed, "split_seed", "run_seed", low=0, high=2**64 - 1)
    check_int(init_seed, "init_seed", "run_seed", low=0, high=2**32 - 1)
    return derive_seed(split_seed, RUNS, init_seed)


@final
@dataclass(frozen=True)
class TrainOptions:
    """The arguments of `train` that say how to train, and are the same for all runs: ``train(..., **vars(options))``."""

    stopping: Stopping = Stopping()
    learning_rate: float = LEARNING_RATE.default
    backend: str = BACKEND.default
    device: str = DEVICE.default
    progress: bool | None = None
    verbose: bool = False
    scoring: Scoring | None = None
    loss: str = CROSS_ENTROPY


def train(
    model: Model | Architecture,
    graph: Graph,
    splits: Split | Sequence[Split],
    *,
    seeds: int | Sequence[int] = 0,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    neighbours: int | None = None,
    batch: int | None = None,
    eps: float | None = None,
    stopping: Stopping = Stopping(),
    learning_rate: float = LEARNING_RATE.default,
    backend: str = BACKEND.default,
    device: str = DEVICE.default,
    progress: bool | None = None,
    verbose: bool = False,
    predict: bool = True,
    scoring: Scoring | None = None,
    loss: str = CROSS_ENTROPY,
    on_end: OnEnd | None = None,
) -> Trained:
    """Train a model once for every split and seed.

    The loss is the mean cross entropy of the training nodes, or another `loss`, plus penalty / 2 * |W|^2 of the first layer;
    Adam minimises it in full batches. The paper's network trains all runs as one program; a torch module one run after another.
    Each run depends on its seed and its nodes alone: on the ``numba`` backend it has the same bits for any batch
    and any number of threads.

    With `neighbours` it is trained on the nodes that its labelled nodes draw on most, and on no others. The logits of a
    training or stopping node are then the sum over the largest entries of its row of the personalized PageRank matrix, found
    by local push, and not K power steps over all nodes. The cost depends on the labelled nodes and their neighbourhoods, not
    on the size of the graph. Weights are those of the same network: the predictions of all nodes are K power steps, as
    always. Columns of sparse features that no neighbourhood of a training node contains are left out: their weights are
    zero. Entries of a row are dropped with the model's `propagation_dropout`, afresh in every epoch. Runs are trained one
    after another.

    Parameters
    ----------
    model
        ``APPNP(...)``, ``PPNP(...)``, ``MLP(...)``, or a baseline such as ``GCN(...)``.
    graph
        With features, n nodes. The built-in network and the baselines read them as `Graph.scaled` leaves them.
    splits
        Training, stopping and evaluation nodes: one split, or one per run.
    seeds
        One seed, or one per run, of up to 64 bits. See `run_seed`. One split with R seeds makes R runs, and so do R
        splits with one seed; each run then still has its own split.
    labels
        Class indices, shape (n,); default: the graph's. Only those of training and stopping nodes are read. With another
        `loss` the numbers that outputs are compared with, shape (n,) or (n, c), NaN where unknown.
    weights
        How much each node counts, shape (n,), not negative; None: all the same. The loss is then the weighted mean over
        the training nodes, and early stopping watches the weighted means of loss and accuracy over the stopping
        nodes. A node with weight k counts like one that is listed k times.
    neighbours
        Entries of a row that are kept, at most; their weights are divided by the share that they have of the row. Only of
        ``APPNP(...)`` with the built-in network and alpha above 0. None: all nodes train.
    batch
        With `neighbours`: training nodes of a mini-batch, at most; None: 1024. One epoch makes an Adam step for each; up to
        so many nodes train as one.
    eps
        With `neighbours`: accuracy of the search for the largest entries, see `pprop.ppr`; None: 1e-5. A row costs at most
        1 / (alpha eps) entries.
    stopping
        Patience and cap. With ``Stopping(patience=None)`` splits may have no stopping nodes: stopping loss and accuracy
        are then NaN.
    learning_rate
        Adam's.
    backend
        ``"auto"``, or ``"numba"`` (CPU), ``"triton"`` (GPU), ``"reference"`` (anywhere).
    device
        ``"cpu"``, or ``"cuda"`` for a GPU. A run has the same masks on both and the same first epochs within rounding.
    progress
        Whether to draw a progress bar on standard error; None: if that is a terminal.
    verbose
        Whether to write to standard error how much memory the training takes, how many runs go together, and why; with
        `neighbours` also how long the search for them may take.
    predict
        Whether to compute the logits of all nodes. Without them use `pprop.scale.predict`; the shape of
        `Trained.logits` is then (R, 0, c).
    scoring
        What early stopping maximises on the stopping nodes (`pprop.scoring.Scoring`): its value takes the place of the
        accuracy in the criterion "plateau", and every stopping node counts once. The steps of the training are the same.
        An epoch takes longer, as it predicts these nodes once more. None: `stopping` as it is.
    loss
        What the outputs are compared with: ``"cross_entropy"``, classes; ``"squared_error"`` or ``"huber"``, numbers, best
        standardised; ``"logistic"``, 1 for each label that a node has and 0 for others. The stopping accuracy is then the
        share of labels that are right, and of numbers 1 less the mean squared error.
    on_end
        Called in this thread as runs end, with the results of just those and their positions among all, so that they
        can be stored before the others end. An exception that it raises ends the training.

    Returns
    -------
    Trained
        The runs with their best weights, predictions, curves and costs.

    Raises
    ------
    CapacityError
        It does not fit into memory, as planned or as it turns out on a GPU; the message says what helps. With `neighbours`
        it is raised before the search where that is clear by then.
    DivergenceError
        The loss of a run, or its predictions, are not finite. Such a run ends at once and does not affect the others;
        `on_end` is not called for it. When all have ended, the error names these runs and has the others.

    References
    ----------
    A. Bojchevski et al. Scaling Graph Neural Networks with Approximate PageRank. KDD 2020, of `neighbours`.

    Examples
    --------
    >>> import pprop
    >>> graph = pprop.load_dataset("citeseer")
    >>> split = pprop.paper_split(graph, seed=2144199730)
    >>> trained = train(pprop.APPNP(alpha=0.1), graph, split, stopping=Stopping(max_epochs=3))
    >>> trained.epochs, trained.predict([0, 1, 2]).shape, trained.backend
    (array([3]), (1, 3), 'numba')
    >>> few = train(pprop.APPNP(alpha=0.1), graph, split, neighbours=16, stopping=Stopping(max_epochs=3))
    >>> int(few.weights[0][0].any(axis=1).sum()) < graph.feature_shape[1]  # other columns are in no neighbourhood
    True
    """
    if not isinstance(model, Model | Architecture):
        reject("model", "train", "a model such as pprop.APPNP()", describe(model))
    way = _way(
        model, neighbours, batch, eps, scoring=scoring, verbose=verbose, predict=check_bool(predict, "predict", "train")
    )
    options = TrainOptions(stopping, learning_rate, backend, device, progress, verbose, scoring, loss)
    if check_loss(loss) != CROSS_ENTROPY:
        _check_elementwise(model, options, neighbours)
    result, sound, trained = _train_models(
        [model], (), graph, splits, seeds, labels, weights, options, on_end, way=way, predict=predict
    )
    if not sound.all():
        raise diverged(result, sound, trained[0] if trained else None)
    return trained[0]


def check_loss(loss: object) -> str:
    """Return the name of a loss; refuse others.

    >>> check_loss("huber")
    'huber'
    """
    if loss not in (CROSS_ENTROPY, *ELEMENTWISE):
        names = ", ".join(map(repr, (CROSS_ENTROPY, *ELEMENTWISE)))
        reject("loss", "train", f"one of {names}", describe(loss))
    return cast("str", loss)


def _check_elementwise(model: Model | Architecture, options: TrainOptions, neighbours: int | None) -> None:
    """Refuse what is for classes alone."""
    loss, classes = repr(options.loss), f"{CROSS_ENTROPY!r} with"
    if neighbours is not None:
        reject("loss", "train", f"{classes} neighbours", loss)
    if options.scoring is not None:
        reject("loss", "train", f"{classes} a scoring", loss)
    if isinstance(model, Architecture) and (model.sees_labels or model.probabilities):
        reject("loss", "train", f"{classes} {type(model).__name__}, which is made for classes", loss)
    if isinstance(model, Model) and not isinstance(model.predictor, FeatureNetwork):
        reject("loss", "train", f"{classes} a module in place of the built-in network", loss)


def _way(
    model: Model | Architecture,
    neighbours: int | None,
    batch: int | None,
    eps: float | None,
    *,
    scoring: Scoring | None,
    verbose: bool,
    predict: bool,
) -> Way:
    """Return how to train a model: on all nodes, or on neighbourhoods."""
    if neighbours is None:
        for name, value in (("batch", batch), ("eps", eps)):
            if value is not None:
                reject(name, "train", "None without neighbours", value)
        return training_of
    if scoring is not None:
        reject("scoring", "train", "None with neighbours, whose training reports accuracy", describe(scoring))
    described = check_model(model, "train")
    most = check_int(neighbours, "neighbours", "train", low=1)
    size = BATCH if batch is None else check_int(batch, "batch", "train", low=1)
    near = EPS if eps is None else eps
    return lambda _, task: NeighbourhoodTraining(described, task, most, size, near, verbose=verbose, predict=predict)


def train_alphas(
    model: Model,
    graph: Graph,
    splits: Split | Sequence[Split],
    options: TrainOptions,
    *,
    alphas: Sequence[float],
    seeds: int | Sequence[int] = 0,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Trained, ...]:
    """Train a model with each of several teleport probabilities, all runs together.

    Each run has the initial weights, the masks and the nodes that `train` gives it. On the ``numba`` backend with a
    network of one hidden layer it also has the same bits; elsewhere the numbers agree within rounding.

    Parameters
    ----------
    model
        ``APPNP(...)``; its alpha is not used.
    alphas
        Teleport probabilities in [0, 1].
    graph, splits, seeds, labels, weights
        As for `train`; every alpha gets all splits and seeds.
    options
        How all runs are trained.

    Returns
    -------
    One `Trained` per alpha, in their order. ``seconds`` and ``run_epochs_per_second`` are those of all together.

    Raises
    ------
    DivergenceError
        As in `train`. Runs are counted alpha by alpha; `finished` has the alphas with a run that did not diverge.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), labels=[0, 0, 0, 1, 1])
    >>> split = Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> short = TrainOptions(Stopping(max_epochs=3))
    >>> few = train_alphas(pprop.APPNP(hidden=4), graph, split, short, alphas=[0.1, 0.5])
    >>> [one.model.propagation.alpha for one in few], few[1].logits.shape
    ([0.1, 0.5], (1, 5, 2))
    """
    given = ALPHAS.check(alphas, "train_alphas")
    settings = model.propagation if isinstance(model, Model) else None
    if settings is None or not isinstance(settings.solver, PowerIteration):
        reject("model", "train_alphas", "a model with power steps such as pprop.APPNP()", describe(model))
    models = [replace(model, propagation=replace(settings, alpha=alpha)) for alpha in given]
    result, sound, trained = _train_models(models, given, graph, splits, seeds, labels, weights, options)
    if not sound.all():
        each = len(sound) // len(given)
        names = [f"run {run} with alpha {alpha:g}" for alpha in given for run in range(each)]
        raise diverged(result, sound, trained or None, names if len(given) > 1 else None)
    return trained


def _train_models(
    models: Sequence[Model | Architecture],
    alphas: Sequence[float],
    graph: Graph,
    splits: Split | Sequence[Split],
    seeds: int | Sequence[int],
    labels: ArrayLike | None,
    weights: ArrayLike | None,
    options: TrainOptions,
    on_end: OnEnd | None = None,
    *,
    way: Way = training_of,
    predict: bool = True,
) -> tuple[LoopResult, NDArray[np.bool_], tuple[Trained, ...]]:
    """Train models that differ in alpha alone, if there are several: all runs of the first, then all of the next.

    Return the result of the loop, which runs did not diverge, and the models that have such a run.
    """
    begin, compiled = time.perf_counter(), compiling.seconds
    for value, kind, name in ((graph, Graph, "graph"), (options.stopping, Stopping, "stopping")):
        if not isinstance(value, kind):
            reject(name, "train", f"a pprop.{kind.__name__}", describe(value))
    run_splits, run_seeds = check_runs(splits, seeds, graph.n_nodes)
    scoring = (
        None if options.stopping.patience is None else options.scoring
    )  # without patience there is no early stopping
    rule = options.stopping if scoring is None else rule_of(options.stopping, scoring)
    targets: NDArray[np.float32] | None = None
    if options.loss == CROSS_ENTROPY:
        known, n_classes = check_split_labels(graph, labels, run_splits, rule)
    else:
        known, targets = check_split_targets(graph, labels, run_splits, rule, options.loss)
        n_classes = targets.shape[1]
    if scoring is not None:
        for split in set(run_splits):
            scoring.check(known[split.stopping], "validation nodes")
    much = check_weights(weights, graph, run_splits)
    place, first, each = check_device(options.device), models[0], len(run_seeds)
    own_module = isinstance(first, Model) and not isinstance(first.predictor, FeatureNetwork)
    chosen = choose_backend(options.backend, place.type, "train")
    run_splits, run_seeds = run_splits * len(models), run_seeds * len(models)
    scaled = graph if own_module else graph.scaled()
    # without stopping nodes the training nodes show whether a run diverges
    watched = [split.stopping if len(split.stopping) else split.train for split in run_splits]
    task = Task(
        graph=scaled,
        kernels=chosen.kernels,
        seeds=tuple(signed(seed) for seed in run_seeds),
        n_classes=n_classes,
        train=node_sets([split.train for split in run_splits], known, much, targets).to(place),
        stopping=node_sets(watched, known, much, targets).to(place),
        rule=rule,
        rate=min(LEARNING_RATE.check(options.learning_rate, "train"), LARGEST_RATE),
        device=place,
        alphas=None if len(models) == 1 else tuple(alpha for alpha in alphas for _ in range(each)),
        scoring=scoring,
        loss=options.loss,
    )
    logits = np.zeros((len(run_seeds), graph.n_nodes if predict else 0, n_classes), dtype=np.float32)
    sound = np.zeros(len(run_seeds), dtype=np.bool_)

    def trained(result: LoopResult, runs: NDArray[np.int64], work: int) -> Trained:
        now, spent = time.perf_counter(), compiling.seconds
        mine = tuple(run_splits[int(run)] for run in runs.tolist())
        result = without_stopping(result, np.array([len(split.stopping) == 0 for split in mine]))
        left_behind: dict[str, Any] = vars(result) | {"weights": tuple(tensor.numpy() for tensor in result.weights)}
        return Trained(
            model=models[int(runs[0]) // each],
            graph=graph,
            splits=mine,
            seeds=tuple(run_seeds[int(run)] for run in runs.tolist()),
            **left_behind,
            logits=logits[runs],
            backend=chosen.name,
            device=str(place),
            seconds=now - begin,
            run_epochs_per_second=work / (now - loop_begin - (spent - loop_compiled)),
            compile_seconds=spent - compiled,
        )

    with remember_interrupts(), explain_exhaustion(place, len(run_seeds), own_module=own_module):
        training = way(first, task)
        operator = training.operator if len(models) == 1 else None
        shown = (task.shown_labels(), n_classes) if isinstance(first, Architecture) and first.sees_labels else None
        inferences = [Inference(model, scaled, chosen.kernels, operator, training.inputs, shown) for model in models]
        loop_begin, loop_compiled = time.perf_counter(), compiling.seconds

        def ended(result: LoopResult, runs: NDArray[np.int64], work: int) -> None:
            for number in sorted({int(run) // each for run in runs}):
                of_model = runs // each == number
                part, mine = result.of(of_model), runs[of_model]
                finite, found = np.isfinite(part.stopping_loss), np.empty((1, 0, n_classes), np.float32)
                if predict:
                    usual = inferences[number].logits
                    finite, found = finite_logits(part, partial(_logits, training, usual), place)
                sound[mine] = finite
                if finite.any():
                    logits[mine[finite]] = found
                    if on_end is not None:
                        on_end(trained(part.of(finite), mine[finite], work), mine[finite])

        result = _train(task, training, ended, options)
    model_of_run, work = np.arange(len(run_seeds)) // each, int(result.epochs.sum())
    parts = [sound & (model_of_run == number) for number in range(len(models))]
    made = [trained(result.of(part), np.flatnonzero(part), work) for part in parts if part.any()]
    return result, sound, tuple(made)


def _logits(training: ModelTraining, usual: Callable[[list[Tensor]], Tensor], weights: list[Tensor]) -> Tensor:
    """Return the logits of all nodes by a training's own way, where it has one."""
    found = training.logits(weights)
    return usual(weights) if found is None else found


def _train(task: Task, training: ModelTraining, ended: RunsEnded, options: TrainOptions) -> LoopResult:
    """Train in as many runs at once as fit into memory."""
    held, runs = training.bytes(), len(task.seeds)
    chunks = [slice(0, runs)]
    if held is not None:
        plan = plan_runs(held, runs, device=str(task.device), at_once=training.at_once)
        chunks = plan.slices()
        if options.verbose:
            sys.stderr.write(plan.describe() + "\n")
    if options.verbose and training.note is not None:
        sys.stderr.write(training.note + "\n")
    with show_progress(options.progress, runs, max_epochs=task.rule.max_epochs) as report:
        return train_chunks(chunks, training.batches, task.rule, task.device, report, ended)
