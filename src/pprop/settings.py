"""Every setting of a model or a training: name, type, range, default and a line of help, declared once.

Models, classifiers, studies, tuning and the command line read them from here:

- ``learning_rate: float = LEARNING_RATE.default`` is the default of an argument;
- ``learning_rate: float = LEARNING_RATE.field()`` is a field of a dataclass, which `check_fields` checks;
- ``LEARNING_RATE.check(value, "train")`` returns a value in its canonical form, or raises InputError;
- ``LEARNING_RATE.help`` is its line of help, ``LEARNING_RATE.search`` what `tune` varies it over.

A model with another default or range has its own constant, made with `Setting.but`: ``GCN_PENALTY = PENALTY.but(0.02)``.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, final

from pprop._errors import InputError, NumberIn
from pprop._validate import (
    check_bias,
    check_bool,
    check_choice,
    check_class_weight,
    check_float,
    check_folds,
    check_int,
    check_sequence,
    check_threshold,
    check_verbose,
    check_widths,
    describe,
    is_finite,
    nearest,
    reject,
)

T = TypeVar("T")


@final
@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: integers if both are, else floats.

    Parameters
    ----------
    low, high
        The ends, low < high; numpy's numbers become Python's.
    log
        Whether to search on a logarithmic scale; `low` is then above 0.

    Examples
    --------
    >>> Range(0.02, 0.5, log=True)
    Range(low=0.02, high=0.5, log=True)
    >>> Range(3, 2)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'high' parameter of Range must be a finite number above 'low', 3. Got 2 instead.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        log = check_bool(self.log, "log", "Range")
        if not is_finite(self.low) or (log and self.low <= 0):
            reject("low", "Range", f"a finite number{' above 0 for a logarithmic range' * log}", describe(self.low))
        if not is_finite(self.high) or self.high <= self.low:
            reject("high", "Range", f"a finite number above 'low', {self.low!r}", describe(self.high))
        for name, value in (("low", self.low), ("high", self.high)):
            plain = int(value) if isinstance(value, numbers.Integral) else float(value)
            object.__setattr__(self, name, plain)
        object.__setattr__(self, "log", log)

    @property
    def whole(self) -> bool:
        """Whether the numbers are integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def nearest(self, value: float) -> float:
        """Return the number of the range that is nearest to a value.

        >>> Range(1, 8).nearest(10), Range(0.1, 0.2).nearest(0.15)
        (8, 0.15)
        """
        return min(max(value, self.low), self.high)


@final
@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting.

    Attributes
    ----------
    name
        As an argument of a model or classifier and in an experiment file.
    default
        The published value.
    help
        One line for people.
    rule
        Takes (value, name, function) and returns the value in its canonical form, or raises InputError.
    search
        What `tune` varies it over by default: a `Range`, or a tuple of values; None: it keeps its default.

    Examples
    --------
    >>> LEARNING_RATE.default, LEARNING_RATE.check(1, "train")
    (0.01, 1.0)
    >>> LEARNING_RATE.check(0, "train")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'learning_rate' parameter of train must be a float in (0, inf). Got 0 instead.
    """

    name: str
    default: T
    help: str
    rule: Callable[[object, str, str], Any]
    search: Range | tuple[Any, ...] | None = None

    def check(self, value: object, function: str) -> Any:
        """Return a value in its canonical form; `function` is named in the error for an impossible one."""
        return self.rule(value, self.name, function)

    def but(self, default: T, help: str | None = None) -> Setting[T]:  # noqa: A002  the field's name
        """Return the same setting with another default, and with another line of help where one is given."""
        return dataclasses.replace(self, default=default, help=self.help if help is None else help)

    def within(self, like: Setting[Any]) -> Setting[T]:
        """Return the same setting with the range of another one."""
        return dataclasses.replace(self, rule=like.rule)

    def optional(self, help: str | None = None) -> Setting[T | None]:  # noqa: A002
        """Return the same setting with None as its default, which is passed on unchecked."""
        rule = self.rule

        def check(value: object, name: str, function: str) -> Any:
            return None if value is None else rule(value, name, function)

        return Setting(self.name, None, self.help if help is None else help, check, self.search)

    def field(self) -> T:
        """Return a field of a dataclass with this default, which `check_fields` and `settings_of` find again."""
        return dataclasses.field(default=self.default, metadata={"setting": self})


def settings_of(kind: Any) -> dict[str, Setting[Any]]:
    """Return the settings among the fields of a dataclass or of an instance of one, by name."""
    fields = dataclasses.fields(kind)
    return {field.name: field.metadata["setting"] for field in fields if "setting" in field.metadata}


def check_fields(instance: Any, function: str, *, skip: Sequence[str] = ()) -> dict[str, Any]:
    """Return all settings of a dataclass's instance in their canonical form, or raise InputError for the first wrong one.

    Parameters
    ----------
    instance
        Of a dataclass with fields made by `Setting.field`.
    function
        Its name in the error.
    skip
        Names of settings that are not checked, and not returned.
    """
    settings = {name: setting for name, setting in settings_of(instance).items() if name not in skip}
    return {name: setting.check(getattr(instance, name), function) for name, setting in settings.items()}


def number(name: str, default: float, interval: str, line: str, search: Range | None = None) -> Setting[float]:
    """Return a setting that is a float in an interval; an integer becomes a float, and -0.0 becomes 0.0."""
    return Setting(name, default, line, lambda value, name, of: check_float(value, name, of, interval) + 0.0, search)


def whole(
    name: str, default: int, low: int, line: str, high: int | None = None, search: Range | None = None
) -> Setting[int]:
    """Return a setting that is an integer of at least `low`, and at most `high`."""
    return Setting(name, default, line, lambda value, name, of: check_int(value, name, of, low=low, high=high), search)


def choice(name: str, default: str, choices: Sequence[str], line: str) -> Setting[str]:
    """Return a setting that is one of several words."""
    return Setting(name, default, line, lambda value, name, of: check_choice(value, name, of, choices))


def switch(name: str, default: bool, line: str) -> Setting[bool]:
    """Return a setting that is true or false."""
    return Setting(name, default, line, check_bool)


def text(name: str, default: str, line: str) -> Setting[str]:
    """Return a setting that is checked where it is used, since what is possible depends on the machine."""
    return Setting(name, default, line, lambda value, name, of: value)


def _check_alphas(value: object, name: str, function: str) -> tuple[float, ...]:
    expected = NumberIn("[0, 1]", several=True)
    found: list[float] = []
    for alpha in check_sequence(value, name, function, str(expected)):
        try:
            found.append(check_float(alpha, name, function, expected.interval))
        except InputError:
            reject(name, function, expected, describe(alpha))
    if not found or len(set(found)) < len(found):
        reject(name, function, expected, describe(value))
    return tuple(found)


def _check_one_or_several(value: object, name: str, function: str) -> float | tuple[float, ...]:
    import numpy as np

    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    check = _check_alphas if several else ALPHA.rule
    return check(cast("object", value), name, function)


def _check_scoring(value: object, name: str, function: str) -> str:
    remedy = nearest(value, SCORINGS) if isinstance(value, str) else ""
    return check_choice(value, name, function, SCORINGS, remedy=remedy)


def _check_class_name(value: object, name: str, function: str) -> object:
    """Return the name of a class as it is: whether there is such a class is known when labels are."""
    import numpy as np

    if isinstance(value, str | numbers.Integral | np.bool_):
        return cast("object", value)
    reject(name, function, "the name of a class, or None", describe(value))


# Ways to normalise an adjacency matrix; see `pprop.transition_matrix`.
NORMALIZATIONS = ("sym", "row", "col")
# What early stopping may watch; see `pprop.Stopping`.
CRITERIA = ("paper", "loss", "window", "plateau")
# What predictions can be judged by, the larger the better: `pprop.scoring` computes them.
SCORINGS = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "f1_macro",
    "precision",
    "recall",
    "matthews_corrcoef",
    "roc_auc",
    "average_precision",
    "neg_log_loss",
    "neg_brier_score",
)
# Of power steps, and of layers: loading a model makes them all, and its file may come from anyone.
MOST_STEPS = 10_000

# The propagation

ALPHA_RANGE = Range(0.02, 0.5, log=True)
ALPHA = number("alpha", 0.1, "[0, 1]", "Teleport probability in [0, 1].", ALPHA_RANGE)
TELEPORT = ALPHA.optional("Teleport probability in [0, 1]. None: the graph's recommended one, or 0.1 without one.")
POSITIVE_ALPHA = number("alpha", ALPHA.default, "(0, 1]", "Teleport probability in (0, 1].", ALPHA_RANGE)
POSITIVE_TELEPORT = POSITIVE_ALPHA.optional(
    "Teleport probability in (0, 1]. None: the graph's recommended one, or 0.1 without one."
)
ALPHAS = Setting[Sequence[float]](
    "alphas", (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5), "Teleport probabilities in [0, 1] to choose from.", _check_alphas
)
STEPS = whole("steps", 10, 0, "Power steps K, at most 10000.", MOST_STEPS, Range(2, 20))
LABEL_STEPS = STEPS.but(50, "Power steps K that spread the labels, at most 10000.")
TOL = number("tol", 1e-4, "(0, 1)", "Relative error of each solve. Training is in float32, which reaches 1e-6 / alpha.")
LIVE_TOL = number(
    "tol",
    TOL.default,
    "(0, inf)",
    "Largest error of a logit of a live graph, in units of the root of its node's degree.",
)
SOLVER = choice(
    "solver",
    "chebyshev",
    ("chebyshev", "cg", "contraction"),
    "``'chebyshev'`` or ``'cg'`` (conjugate gradients) for undirected graphs, ``'contraction'`` for all.",
)
NORMALIZATION = choice(
    "normalization", "sym", NORMALIZATIONS, "Normalisation of the matrix; see `pprop.transition_matrix`."
)
# Of a graph that recommends none: each node gets an average, so that no score depends on the number of neighbours.
UNBIASED = "row"
OWN_NORMALIZATION = NORMALIZATION.optional(
    "Normalisation of the matrix, ``'sym'``, ``'row'`` or ``'col'``; see `pprop.transition_matrix`. None: the graph's "
    "recommended one, or ``'row'`` without one."
)
SELF_LOOPS = switch("self_loops", True, "Whether nodes without a self-loop get one; see `pprop.transition_matrix`.")

# The network

SCALING = choice(
    "scaling",
    "auto",
    ("auto", "l1", "standard", "none"),
    "Scaling of the features. ``'l1'``: of each node, divided by the sum of their absolute values, as in the paper. "
    "``'standard'``: of each column, centred and divided by the standard deviation. ``'none'``: as they are. "
    "``'auto'``: l1 for sparse counts, standard for tables and other dense features; see `Graph.scaled`. A `predictor` "
    "gets them as they are, unless one is chosen.",
)
HIDDEN = Setting[int | Sequence[int]](
    "hidden", 64, "Width of the hidden layer, or of several.", check_widths, (16, 32, 64, 128)
)
WIDTH = whole("hidden", 64, 1, "Width of the hidden layer.")
NETWORK_BIAS = switch("bias", False, "Whether every layer adds a bias.")
BIAS = Setting[bool | str](
    "bias",
    "auto",
    "Whether every layer adds a bias: True, False, or ``'auto'``: where the columns of the features are standardised.",
    check_bias,
)
FIRST_LAYER = choice(
    "first_layer",
    "auto",
    ("auto", "sparse", "dense"),
    "How the first layer of the built-in network reads the features: ``'sparse'`` by their nonzeros, ``'dense'`` by whole "
    "rows. The two draw different masks for dropout. ``'auto'``: dense where more than a quarter of them is not zero.",
)
DROPOUT = number("dropout", 0.5, "[0, 1)", "Dropout on the input and on the hidden layer.", Range(0.0, 0.8))
PROPAGATION_DROPOUT = number(
    "propagation_dropout", DROPOUT.default, "[0, 1)", "Dropout on the entries of the propagation matrix."
)
SAME_DROPOUT = PROPAGATION_DROPOUT.optional(
    "Dropout on the entries of the propagation matrix. None: the same as `dropout`."
)
EDGE_DROPOUT = number(
    "edge_dropout", 0.0, "[0, 1)", "Probability of dropping an edge of the graph, drawn again in every epoch."
)
PENALTY = number(
    "penalty",
    0.005,
    "[0, inf)",
    "lambda of the L2 penalty lambda / 2 * |W|^2 on the first layer.",
    Range(1e-4, 0.1, log=True),
)

# A module in place of the network

MIXED_PRECISION = switch(
    "mixed_precision",
    False,
    "Whether a `predictor` is trained with ``torch.autocast`` in bfloat16, which needs no scaled gradients. Weights, the "
    "propagation and the final predictions stay in float32.",
)
BLOCK_NODES = whole(
    "block_nodes",
    1,
    1,
    "Nodes that a `predictor` is given at a time, where its activations of all do not fit into memory; the training pass "
    "is then computed twice. None: all nodes.",
).optional()

# The training

LEARNING_RATE = number("learning_rate", 0.01, "(0, inf)", "Learning rate of Adam.", Range(2e-3, 0.05, log=True))
PATIENCE = whole("patience", 100, 1, "Epochs without improvement before training ends.")
MAX_EPOCHS = whole("max_epochs", 10000, 1, "Largest number of epochs.")
NUMBER_LOSS = choice(
    "loss",
    "squared_error",
    ("squared_error", "huber"),
    "What is minimised: the squared error, or with ``'huber'`` the distance where an error is more than 1.35 standard deviations "
    "of the labels, so that a few large ones count less.",
)
CRITERION = choice("criterion", "paper", CRITERIA, "What early stopping watches; see `pprop.Stopping`.")
STOPPING = number(
    "stopping",
    0.2,
    "(0, 1)",
    "Fraction of the nodes given to `fit` that is set aside for early stopping, unless `fit` is given other nodes.",
)
OPTIONAL_STOPPING = STOPPING.optional(
    f"{STOPPING.help} None: no early stopping; all nodes train, for `max_epochs`, and the last weights are kept."
).but(STOPPING.default)
VALIDATION = number(
    "validation", 0.2, "(0, 1)", "Fraction of the nodes given to `fit`, of each class, by which a classifier is chosen."
)
CLASS_WEIGHT = Setting[str | Mapping[Any, float] | None](
    "class_weight",
    None,
    "Weights of the classes in the loss and in early stopping. None: every node counts the same. ``'balanced'``: every "
    "class counts the same. A dict: these numbers, 1 for a class that is not in it.",
    check_class_weight,
)
SCORING = Setting[str | None](
    "scoring",
    "accuracy",
    "Measure that early stopping maximises on the validation nodes and that `score` returns, by scikit-learn's name: "
    f"{', '.join(SCORINGS)}. Use average_precision for a rare class. None: the paper's early stopping, and accuracy as the "
    "score. With a measure, an epoch takes longer, because it computes the probabilities of the validation nodes.",
    _check_scoring,
).optional()
AUTO_SCORING = SCORING.but(
    None,
    f"Measure that candidates are judged by on the validation nodes, by scikit-learn's name: {', '.join(SCORINGS)}. None: the "
    "average precision of the rarer class of two where at most a quarter of the labels are of this class, else the accuracy.",
)
MEASURED_SCORING = SCORING.but(
    None,
    f"Measure that `score` returns, by scikit-learn's name: {', '.join(SCORINGS)}. None: the accuracy.",
)
TIME = number(
    "time",
    120.0,
    "(0, inf)",
    "Seconds after which no further candidate is tried, without the seconds to compile kernels, once on a machine. A fit that "
    "has begun is finished, and what is kept is fitted to all labels. None: every candidate is tried.",
).optional()
POSITIVE = Setting[Any](
    "positive",
    "",
    "Name of the class that is looked for. None: the rarer class of two; of more classes, measures are means over all.",
    _check_class_name,
).optional()
THRESHOLD = Setting[str | float | None](
    "threshold",
    "f1",
    "Probability from which on a node is predicted as the positive class, or how to choose it on the validation nodes: "
    "``'f1'`` for the largest F1, ``'precision=0.5'``, ``'recall=0.8'``, or ``'cost=10:1'`` for a miss at 10 and a false "
    "alarm at 1. None: a node gets its most probable class.",
    check_threshold,
).optional()
BACKEND = text("backend", "auto", "``'auto'``, or ``'numba'`` (CPU), ``'triton'`` (GPU), ``'reference'`` (anywhere).")
DEVICE = text("device", "cpu", "Where to train: ``'cpu'``, or ``'cuda'`` for a GPU.")
VERBOSE = Setting[int](
    "verbose", 0, "0: silent; 1: a progress bar on standard error; 2: also the memory needed.", check_verbose
)

# Several runs

N_RUNS = whole("n_runs", 1, 1, "Runs per alpha. Run k > 0 has the seed ``pprop.run_seed(seed, k)``.")
MEMBERS = whole("members", 8, 1, "Runs in a round, trained together.")
ROUNDS = whole("rounds", 2, 0, "How often the members are trained again from their own predictions.")
SHARE = number(
    "share", 0.5, "(0, 1]", "Share of the nodes predicted in each class that joins the training nodes in a round."
)
EMPHASIS = whole(
    "emphasis", 1, 1, "How often a labelled node counts in the loss of later rounds, where one that joined counts once."
)
FOLDS = Setting[int](
    "folds", 0, "0, or the number of folds of stopping nodes, of which all but one train a member.", check_folds
)
SPREAD_ERRORS = number(
    "spread_errors", 0.0, "[0, inf)", "Strength with which errors at known nodes correct the others; 0: not at all."
)
ENSEMBLE_ALPHA = Setting[float | Sequence[float] | None](
    "alpha", None, "The teleport probability, or several to choose from, in [0, 1].", _check_one_or_several
).optional()

# The paper's baselines

GCN_DROPOUT = DROPOUT.but(DROPOUT.default, "Dropout on the nonzeros of the features and on the hidden layer.")
MATRIX_DROPOUT = number("matrix_dropout", 0.5, "[0, 1)", "Dropout on the entries of A_hat, drawn again in each layer.")
GCN_PENALTY = PENALTY.but(0.02)
VANILLA_GCN_WIDTH = WIDTH.but(16)
VANILLA_GCN_MATRIX_DROPOUT = MATRIX_DROPOUT.but(0.0)
VANILLA_GCN_PENALTY = PENALTY.but(5e-4)
VANILLA_GCN_PATIENCE = PATIENCE.but(10)
VANILLA_GCN_MAX_EPOCHS = MAX_EPOCHS.but(200)
VANILLA_GCN_CRITERION = CRITERION.but("loss")
NGCN_WIDTH = WIDTH.but(16, "Width of each tower's hidden layer.")
NGCN_DROPOUT = DROPOUT.but(DROPOUT.default, "Dropout on the features and on the hidden layer, a mask for each tower.")
POWERS = whole("powers", 5, 1, "Number of powers of A_hat, from 0.")
REPLICAS = whole("replicas", 4, 1, "Towers per power.")
NGCN_PENALTY = PENALTY.but(1e-5, "lambda of the L2 penalty lambda / 2 * |W|^2 on all matrices.")
HEADS = whole("heads", 8, 1, "Heads of the first layer.")
UNITS = whole("units", 8, 1, "Columns of each head.")
GAT_DROPOUT = DROPOUT.but(0.6, "Dropout on the input of each head, on its coefficients and on its sum.")
GAT_PENALTY = PENALTY.but(0.001, "lambda of the L2 penalty lambda / 2 * |W|^2 on all weights, vectors and biases.")
JK_WIDTH = WIDTH.but(64, "Width of each convolution.")
LAYERS = whole(
    "layers", 2, 1, "Convolutions. The paper's three layers are two of them and the last product.", MOST_STEPS
)
JK_DROPOUT = DROPOUT.but(DROPOUT.default, "Dropout on the features, between convolutions and on their concatenation.")
JK_PENALTY = PENALTY.but(0.001, "lambda of the L2 penalty lambda / 2 * |W|^2 on all matrices.")
RESIDUAL_WIDTH = WIDTH.but(32, "Width of every layer.")
RESIDUAL_LAYERS = whole("layers", 8, 0, "Layers, each of which looks one step further.", MOST_STEPS)
RESIDUAL_DROPOUT = DROPOUT.but(0.2, "Dropout on the features, on the first layer and on what each layer adds.")
RESIDUAL_PENALTY = PENALTY.but(1e-5, "lambda of the L2 penalty lambda / 2 * |W|^2 on all matrices.")
RESIDUAL_MAX_EPOCHS = MAX_EPOCHS.but(400)
LABELS_AS_INPUTS = switch(
    "label_inputs",
    True,
    "Whether training labels are inputs; each epoch hides a random half of them and learns from those.",
)
HOPS = whole("hops", 2, 0, "Steps up to which columns of neighbours are averaged.", 100)
COLUMN_FOLDS = whole(
    "folds", 5, 2, "Parts of the training nodes: the columns of a node do not hold the labels of its own part."
)
COMPONENTS = whole(
    "components",
    48,
    1,
    "Components to which rare sparse columns, such as words, are reduced, if there are more of them.",
)
LABEL_COLUMNS = LABELS_AS_INPUTS.but(True, "Whether shares of training labels nearby are among the columns.")
MEMBERS_READ_LABELS = LABELS_AS_INPUTS.but(
    True, "Whether candidates may read labels of training nodes beside features and edges. Published models do not."
)
MEASURED = OPTIONAL_STOPPING.but(
    None, "Fraction of the nodes given to `fit` that measure the model and are not learned from. None: none."
)
FP_ALPHA = number("alpha", 0.2, "[0, 1]", "Teleport probability of the diffusion, in [0, 1].")
FP_STEPS = whole("steps", 10, 0, "Steps K of the diffusion.", MOST_STEPS)
FP_ROUNDS = whole("rounds", 10, 0, "How often nodes are added; 0: feature propagation without bootstrapping.")
FP_SHARE = number("share", 0.1, "(0, 1]", "Nodes that a round adds, as a share of all.")
INVERSE_PENALTY = number("C", 1000.0, "(0, inf)", "Inverse strength of the regression's penalty, as in scikit-learn.")
FP_READING = choice("reading", "tuned", ("tuned", "original"), "What the paper leaves open: features and intercept.")
