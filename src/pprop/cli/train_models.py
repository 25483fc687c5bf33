"""The models of ``pprop train``: their names, the options that each has to itself, and their classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pprop.estimators import NodeClassifier
    from pprop.graph import Graph

__all__ = ["ModelName", "make_classifier", "own_settings", "read_numbers"]


class ModelName(StrEnum):
    """The models that can be trained."""

    APPNP = "appnp"
    PPNP = "ppnp"
    SOLVED_PPNP = "solved-ppnp"
    MLP = "mlp"
    APPNP_CV = "appnp-cv"
    APPNP_ENSEMBLE = "appnp-ensemble"


_OWNERS: Mapping[str, tuple[ModelName, ...]] = MappingProxyType(
    {
        "alpha": (ModelName.APPNP, ModelName.PPNP, ModelName.SOLVED_PPNP, ModelName.APPNP_ENSEMBLE),
        "steps": (ModelName.APPNP, ModelName.APPNP_CV, ModelName.APPNP_ENSEMBLE),
        "tol": (ModelName.SOLVED_PPNP,),
        "solver": (ModelName.SOLVED_PPNP,),
        "alphas": (ModelName.APPNP_CV, ModelName.APPNP_ENSEMBLE),
        "runs": (ModelName.APPNP_CV,),
        "members": (ModelName.APPNP_ENSEMBLE,),
        "rounds": (ModelName.APPNP_ENSEMBLE,),
        "folds": (ModelName.APPNP_ENSEMBLE,),
        "spread-errors": (ModelName.APPNP_ENSEMBLE,),
    }
)
"""Options that not every model has, and the models that have them."""
_SETTINGS = {"runs": "n_runs", "spread-errors": "spread_errors"}
"""Names of options in the classifiers, where they are others."""


def own_settings(model: ModelName, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options given as settings of the model's classifier; those that are None keep its defaults.

    >>> own_settings(ModelName.APPNP_CV, {"alpha": None, "runs": 3})
    {'n_runs': 3}
    """
    wanted = {option: value for option, value in given.items() if value is not None}
    for option in wanted:
        if model not in _OWNERS[option]:
            raise typer.BadParameter(f"--{option} belongs to {_all_of(_OWNERS[option])}; {_why_not(model, option)}.")
    if {"alpha", "alphas"} <= set(wanted):
        raise typer.BadParameter("Give one of --alpha and --alphas.")
    names = _SETTINGS | ({"alphas": "alpha"} if model is ModelName.APPNP_ENSEMBLE else {})  # it takes one or several
    return {names.get(option, option): value for option, value in wanted.items()}


def read_numbers(text: str, option: str, kind: type[int] | type[float]) -> tuple[float, ...]:
    """Return numbers that are typed with commas between them.

    >>> read_numbers("64,32", "hidden", int)
    (64, 32)
    """
    try:
        return tuple(kind(number) for number in text.split(","))
    except ValueError:
        noun = "integers" if kind is int else "numbers"
        raise typer.BadParameter(f"--{option} takes {noun} separated by commas, not {text!r}.") from None


def make_classifier(model: ModelName, graph: Graph, settings: Mapping[str, Any]) -> NodeClassifier:
    """Return the classifier of a model, not fitted yet."""
    from pprop import estimators

    kinds = {
        ModelName.APPNP: estimators.APPNPClassifier,
        ModelName.PPNP: estimators.PPNPClassifier,
        ModelName.SOLVED_PPNP: estimators.SolvedPPNPClassifier,
        ModelName.MLP: estimators.MLPNodeClassifier,
        ModelName.APPNP_CV: estimators.APPNPClassifierCV,
        ModelName.APPNP_ENSEMBLE: estimators.APPNPEnsembleClassifier,
    }
    return kinds[model](graph, **settings)


def _all_of(models: tuple[ModelName, ...]) -> str:
    *most, last = models
    return f"{', '.join(most)} and {last}" if most else str(last)


def _why_not(model: ModelName, option: str) -> str:
    if model is ModelName.MLP and option in ("alpha", "alphas"):
        return "mlp does not propagate"
    if option == "alpha":
        return f"{model} chooses one of --alphas"
    if option == "alphas":
        return f"{model} has one --alpha"
    return f"{model} has none"
