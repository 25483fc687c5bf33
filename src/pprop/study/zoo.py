"""The models of the paper: their settings, and the published values as defaults. Nothing here loads torch."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

from pprop._errors import InputError
from pprop._validate import check_bool, check_choice, check_float, check_int, check_sequence, describe, reject
from pprop.graph import NORMALIZATIONS


@final
@dataclass(frozen=True)
class Setting:
    """A setting that an experiment may give a model.

    Attributes
    ----------
    name
        As in an experiment file.
    default
        The published value; None: the dataset's teleport probability.
    check
        Takes (value, name, model) and returns the value in its one canonical form, or raises InputError.
    needs
        Name and value of another setting without which this one has no meaning; a cell then does not have it.
    """

    name: str
    default: Any
    check: Callable[[object, str, str], Any]
    needs: tuple[str, str] | None = None


def number(name: str, default: float | None, interval: str, needs: tuple[str, str] | None = None) -> Setting:
    """Return a setting that is a float in an interval; integers become floats, so that 1 and 1.0 are one cell.

    >>> number("dropout", 0.5, "[0, 1)").check(1.5, "dropout", "gcn")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'dropout' parameter of gcn must be a float in [0, 1). Got 1.5 instead.
    """

    def check(value: object, name: str, model: str) -> float:
        return check_float(value, name, model, interval) + 0.0  # -0.0 becomes 0.0: one number, one cell

    return Setting(name, default, check, needs)


def whole(name: str, default: int, low: int, needs: tuple[str, str] | None = None) -> Setting:
    """Return a setting that is an integer of at least `low`.

    >>> whole("patience", 100, low=1).check(10, "patience", "gcn")
    10
    """
    return Setting(name, default, lambda value, name, model: check_int(value, name, model, low=low), needs)


def choice(name: str, default: str, choices: Sequence[str]) -> Setting:
    """Return a setting that is one of several words.

    >>> choice("evaluate", "model", ["model", "network"]).check("network", "evaluate", "appnp")
    'network'
    """
    return Setting(name, default, lambda value, name, model: check_choice(value, name, model, choices))


def switch(name: str, default: bool) -> Setting:
    """Return a setting that is true or false.

    >>> switch("self_loops", True).check(False, "self_loops", "appnp")
    False
    """
    return Setting(name, default, check_bool)


def widths(name: str, default: Sequence[int]) -> Setting:
    """Return a setting that lists the widths of hidden layers; a single width may be written alone.

    >>> widths("hidden", [64]).check(64, "hidden", "mlp")
    [64]
    """
    return Setting(name, list(default), _check_widths)


def steps_or_limit(name: str, default: int) -> Setting:
    """Return a setting that is a number of power steps, or ``"limit"`` for infinitely many.

    >>> steps_or_limit("steps", 10).check("limit", "steps", "appnp")
    'limit'
    """
    return Setting(name, default, _check_steps)


def _check_widths(value: object, name: str, model: str) -> list[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        return [check_int(value, name, model, low=1)]
    expected = "a list of layer widths, each at least 1"
    return [check_int(width, name, model, low=1) for width in check_sequence(value, name, model, expected)]


def _check_steps(value: object, name: str, model: str) -> int | str:
    if value == "limit":
        return "limit"
    if isinstance(value, str):
        reject(name, model, "an integer of at least 0 or 'limit'", describe(value))
    return check_int(value, name, model, low=0)


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or all of them.

    >>> nearest("alhpa", ["alpha", "steps"]), nearest("zzz", ["alpha", "steps"])
    (" Did you mean 'alpha'?", ' Known are: alpha, steps.')
    """
    known = list(known)
    near = difflib.get_close_matches(name.lower(), known, n=1) if isinstance(name, str) else []
    return f" Did you mean {near[0]!r}?" if near else f" Known are: {', '.join(known)}."


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
    trained
        Whether `pprop.train` takes it, epoch by epoch; otherwise it has its own `fit` and `predict`.
    seeded
        Whether its result depends on the initialisation. If not, there is one run per split.

    Examples
    --------
    >>> MODELS["vanilla_gcn"].title
    'V. GCN'
    >>> sorted(MODELS["jk"].names)
    ['criterion', 'dropout', 'hidden', 'layers', 'learning_rate', 'max_epochs', 'patience', 'penalty']
    """

    name: str
    title: str
    settings: tuple[Setting, ...]
    trained: bool = True
    seeded: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the settings."""
        return tuple(setting.name for setting in self.settings)

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
    ),
    ModelKind("vanilla_gcn", "V. GCN", (*_gcn(16, 0.0, 5e-4), *_training(10, 200, "loss"))),
    ModelKind("gcn", "GCN", (*_gcn(64, 0.5, 0.02), *_training())),
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
    ),
    ModelKind(
        "jk",
        "JK",
        (
            whole("hidden", 64, low=1),
            whole("layers", 2, low=1),
            number("dropout", 0.5, "[0, 1)"),
            number("penalty", 0.001, "[0, inf)"),
            *_training(),
        ),
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
        trained=False,
        seeded=False,
    ),
)

MODELS: Mapping[str, ModelKind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Every model of the paper by name."""


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
