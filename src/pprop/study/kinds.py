"""The models of the paper: their settings, and the published values as defaults."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

from pprop._errors import InputError
from pprop.graph import NORMALIZATIONS
from pprop.study.settings import Setting, choice, number, steps_or_limit, switch, whole, widths

__all__ = ["MODELS", "ModelKind", "nearest"]


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
    builder
        Name of its function in `pprop.study.builders`.
    trained
        Whether `pprop.train` takes it, epoch by epoch; otherwise it has `fit` and `predict` of its own.
    seeded
        Whether its result depends on the initialisation. If not, there is one run per split.

    Examples
    --------
    >>> MODELS["vanilla_gcn"].title, MODELS["vanilla_gcn"].builder
    ('V. GCN', 'gcn')
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
            whole("layers", 2, low=1),
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
