"""The models of a study by name: their settings, published values, and how a cell becomes a model.

Nothing here loads torch before `build` or `stopping_rule` is called.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

from pprop._errors import InputError
from pprop._validate import check_choice, check_int
from pprop.datasets import DATASETS
from pprop.graph import NORMALIZATIONS, Graph
from pprop.study import builders
from pprop.study.cell import Cell, Splits
from pprop.study.settings import Setting, choice, number, steps_or_limit, switch, whole, widths

if TYPE_CHECKING:
    from pprop.training import Stopping

__all__ = [
    "MODELS",
    "ModelKind",
    "build",
    "fill_settings",
    "impossible",
    "make_cell",
    "model_kind",
    "nearest",
    "stopping_rule",
]


@final
@dataclass(frozen=True)
class ModelKind:
    """A model of the paper.

    Attributes
    ----------
    name
        As in an experiment file.
    title
        As in the paper's tables.
    settings
        What may be set, with the paper's values as defaults.
    builder
        Name of its function in `pprop.study.builders`.
    trained
        Whether `pprop.train` takes it, epoch by epoch; otherwise it is an estimator with `fit` and `predict`.
    seeded
        Whether its result depends on the initialisation. If not, there is one run per split.

    Examples
    --------
    >>> MODELS["vanilla_gcn"].title, MODELS["vanilla_gcn"].modules
    ('V. GCN', ('pprop.study.builders:gcn',))
    >>> sorted(MODELS["jk"].names)
    ['criterion', 'dropout', 'hidden', 'layers', 'learning_rate', 'max_epochs', 'patience', 'penalty']
    """

    name: str
    title: str
    settings: tuple[Setting, ...]
    builder: str
    trained: bool = True
    seeded: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the settings."""
        return tuple(setting.name for setting in self.settings)

    @property
    def modules(self) -> tuple[str, ...]:
        """Where its code begins, for `pprop.study.code_version`."""
        return (f"{builders.__name__}:{self.builder}",)

    def check(self, name: str, value: object) -> Any:
        """Return a setting's value in its canonical form, or say what is wrong with the name or the value."""
        if name not in self.names:
            raise InputError(f"unknown setting {name!r} of {self.name}.{nearest(name, self.names)}")
        return self.settings[self.names.index(name)].check(value, name, self.name)


def _training(patience: int = 100, max_epochs: int = 10000, criterion: str = "paper") -> tuple[Setting, ...]:
    """Return what every trained model shares."""
    return (
        number("learning_rate", 0.01, "(0, inf)"),
        whole("patience", patience, low=1),
        whole("max_epochs", max_epochs, low=1),
        choice("criterion", criterion, ("paper", "loss", "window")),
    )


def _network(*, propagates: bool) -> tuple[Setting, ...]:
    """Return the settings of the paper's network, and of its propagation."""
    network = (widths("hidden", [64]), number("dropout", 0.5, "[0, 1)"), number("penalty", 0.005, "[0, inf)"))
    if not propagates:
        return network
    matrix = number("propagation_dropout", 0.5, "[0, 1)")
    return *network, matrix, choice("normalization", "sym", NORMALIZATIONS), switch("self_loops", True)


def _gcn(hidden: int, matrix_dropout: float, penalty: float) -> tuple[Setting, ...]:
    return (
        whole("hidden", hidden, low=1),
        number("dropout", 0.5, "[0, 1)"),
        number("matrix_dropout", matrix_dropout, "[0, 1)"),
        number("penalty", penalty, "[0, inf)"),
    )


_PROPAGATED = ("evaluate", "propagated")
_ALL = (
    ModelKind(
        "appnp",
        "APPNP",
        (
            number("alpha", None, "[0, 1]"),
            steps_or_limit("steps", 10),
            *_network(propagates=True),
            *_training(),
            choice("evaluate", "model", ("model", "network")),
        ),
        "appnp",
    ),
    ModelKind(
        "ppnp",
        "PPNP",
        (
            number("alpha", None, "(0, 1]"),
            *_network(propagates=True),
            *_training(),
            choice("evaluate", "model", ("model", "network")),
        ),
        "ppnp",
    ),
    ModelKind(
        "mlp",
        "MLP",
        (
            *_network(propagates=False),
            *_training(),
            choice("evaluate", "model", ("model", "propagated")),
            number("alpha", None, "[0, 1]", needs=_PROPAGATED),
            whole("steps", 10, low=0, needs=_PROPAGATED),
        ),
        "mlp",
    ),
    ModelKind("vanilla_gcn", "V. GCN", (*_gcn(16, 0.0, 5e-4), *_training(10, 200, "loss")), "gcn"),
    ModelKind("gcn", "GCN", (*_gcn(64, 0.5, 0.02), *_training()), "gcn"),
    ModelKind(
        "ngcn",
        "N-GCN",
        (
            whole("hidden", 16, low=1),
            whole("powers", 5, low=1),
            whole("replicas", 4, low=1),
            number("dropout", 0.5, "[0, 1)"),
            number("penalty", 1e-5, "[0, inf)"),
            *_training(),
        ),
        "ngcn",
    ),
    ModelKind(
        "gat",
        "GAT",
        (
            whole("heads", 8, low=1),
            whole("units", 8, low=1),
            number("dropout", 0.6, "[0, 1)"),
            number("penalty", 0.001, "[0, inf)"),
            *_training(),
        ),
        "gat",
    ),
    ModelKind(
        "jk",
        "JK",
        (
            whole("hidden", 64, low=1),
            whole("layers", 3, low=1),
            number("dropout", 0.5, "[0, 1)"),
            number("penalty", 0.001, "[0, inf)"),
            *_training(),
        ),
        "jk",
    ),
    ModelKind(
        "bootstrapped_fp",
        "Bt. FP",
        (
            number("alpha", 0.2, "(0, 1]"),
            whole("steps", 10, low=0),
            whole("rounds", 10, low=0),
            number("share", 0.1, "(0, 1]"),
            number("C", 1000.0, "(0, inf)"),
            switch("self_loops", True),
        ),
        "bootstrapped_fp",
        trained=False,
        seeded=False,
    ),
)

MODELS: Mapping[str, ModelKind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Every model of the paper by name."""


def _alpha(kind: ModelKind, dataset: str) -> float | None:
    """Return the published teleport probability: the dataset's, unless the model has one of its own."""
    own = next((setting.default for setting in kind.settings if setting.name == "alpha"), None)
    return DATASETS[dataset].recommended.alpha if own is None else own


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or all of them.

    >>> nearest("alhpa", ["alpha", "steps"]), nearest("zzz", ["alpha", "steps"])
    (" Did you mean 'alpha'?", ' Known are: alpha, steps.')
    """
    known = list(known)
    near = difflib.get_close_matches(name.lower(), known, n=1) if isinstance(name, str) else []
    return f" Did you mean {near[0]!r}?" if near else f" Known are: {', '.join(known)}."


def model_kind(name: object) -> ModelKind:
    """Return a model by its name.

    Examples
    --------
    >>> model_kind("apnp")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: unknown model 'apnp'. Did you mean 'appnp'?
    """
    if not isinstance(name, str) or name not in MODELS:
        raise InputError(f"unknown model {name!r}.{nearest(name, MODELS)}")
    return MODELS[name]


def check_dataset(name: object) -> str:
    """Return the name of a dataset.

    Examples
    --------
    >>> check_dataset("cora")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: unknown dataset 'cora'. Did you mean 'cora_ml'?
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise InputError(f"unknown dataset {name!r}.{nearest(name, DATASETS)}")
    return name


def fill_settings(model: str, settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return all settings of a model on a dataset: those given, checked, and the published ones for the rest.

    Examples
    --------
    >>> fill_settings("appnp", {"hidden": 32}, "ms_academic")["alpha"]
    0.2
    >>> fill_settings("mlp", {"alpha": 0.1}, "citeseer")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'alpha' parameter of mlp has no meaning without evaluate = 'propagated'.
    """
    kind = model_kind(model)
    given = {name: kind.check(name, value) for name, value in settings.items()}
    check_dataset(dataset)
    if fault := impossible(kind, given):
        raise InputError(fault[1])
    defaults = {setting.name: setting.default for setting in kind.settings} | {"alpha": _alpha(kind, dataset)}
    wanted = {setting.name: given.get(setting.name, copy(defaults[setting.name])) for setting in kind.settings}
    return {s.name: wanted[s.name] for s in kind.settings if s.needs is None or wanted[s.needs[0]] == s.needs[1]}


def impossible(kind: ModelKind, given: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return which of the checked settings cannot be with the others, and a sentence that says why; None if all can.

    Examples
    --------
    >>> impossible(MODELS["appnp"], {"alpha": 0.0, "steps": "limit", "normalization": "row"})
    ('normalization', "The limit of appnp without teleport is known for normalization = 'sym' alone.")
    """
    wanted = {setting.name: setting.default for setting in kind.settings} | dict(given)
    for setting in kind.settings:
        if setting.needs is not None and setting.name in given and wanted[setting.needs[0]] != setting.needs[1]:
            other, value = setting.needs
            sentence = f"The {setting.name!r} parameter of {kind.name} has no meaning without {other} = {value!r}."
            return setting.name, sentence
    no_teleport = wanted.get("steps") == "limit" and wanted["alpha"] == 0
    if no_teleport and wanted["normalization"] != "sym":
        return "normalization", f"The limit of {kind.name} without teleport is known for normalization = 'sym' alone."
    return None


def make_cell(
    model: str, settings: Mapping[str, Any], dataset: str, splits: Splits = "test", per_class: int = 20
) -> Cell:
    """Return a cell with all its settings, in the one form that equal computations share.

    APPNP with infinitely many steps and a teleport probability is PPNP, and becomes that cell.

    Examples
    --------
    >>> cell = make_cell("appnp", {"steps": "limit"}, "cora_ml")
    >>> cell == make_cell("ppnp", {}, "cora_ml")
    True
    """
    filled = fill_settings(model, settings, dataset)
    check_choice(splits, "splits", "a cell", ("test", "validation"))
    check_int(per_class, "per_class", "a cell", low=1)
    if model == "appnp" and filled["steps"] == "limit" and filled["alpha"] > 0:
        model = "ppnp"
        del filled["steps"]
    return Cell(model, filled, dataset, splits, per_class)


def build(cell: Cell, graph: Graph) -> Any:
    """Return the model of a cell: what `pprop.train` takes, or an estimator on `graph` where nothing is trained.

    Examples
    --------
    >>> from pprop.datasets import load_dataset
    >>> build(make_cell("appnp", {}, "citeseer"), load_dataset("citeseer")).propagation.solver
    PowerIteration(steps=10)
    """
    return getattr(builders, model_kind(cell.model).builder)(cell.settings, graph)


def stopping_rule(cell: Cell) -> Stopping:
    """Return when the runs of a cell end.

    Examples
    --------
    >>> stopping_rule(make_cell("vanilla_gcn", {}, "citeseer"))
    Stopping(patience=10, max_epochs=200, criterion='loss')
    """
    from pprop.training import Stopping

    settings = cell.settings
    return Stopping(settings["patience"], settings["max_epochs"], settings["criterion"])
