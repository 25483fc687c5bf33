"""From names and settings to cells, and from cells to models.

Nothing here loads torch before `build` or `stopping_rule` is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

from pprop._errors import InputError
from pprop._validate import check_choice, check_int
from pprop.datasets import DATASETS
from pprop.graph import Graph
from pprop.study import builders
from pprop.study.cell import Cell, Splits
from pprop.study.kinds import MODELS, ModelKind, nearest

if TYPE_CHECKING:
    from pprop.training import Stopping

__all__ = [
    "MODELS",
    "ModelKind",
    "build",
    "check_dataset",
    "fill_settings",
    "impossible",
    "make_cell",
    "model_kind",
    "nearest",
    "stopping_rule",
]


def _alpha(kind: ModelKind, dataset: str) -> float | None:
    """Return the published teleport probability: the dataset's, unless the model has one of its own."""
    own = next((setting.default for setting in kind.settings if setting.name == "alpha"), None)
    return DATASETS[dataset].recommended.alpha if own is None else own


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
