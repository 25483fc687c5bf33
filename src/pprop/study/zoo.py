"""The models of the paper: which settings each has, with the published values as defaults. Nothing here loads torch."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

from pprop import settings
from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.settings import Setting


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
        What may be set, with the paper's values as defaults; None: the dataset's teleport probability.
    trained
        Whether `pprop.train` takes it, epoch by epoch; otherwise it has its own `fit` and `predict`.
    seeded
        Whether its result depends on the initialisation. If not, there is one run per split.
    needs
        Names of settings, each with the name and the value of another one without which it has no meaning: a cell then
        does not have it.

    Examples
    --------
    >>> MODELS["vanilla_gcn"].title
    'V. GCN'
    >>> sorted(MODELS["jk"].names)
    ['criterion', 'dropout', 'hidden', 'layers', 'learning_rate', 'max_epochs', 'patience', 'penalty']
    """

    name: str
    title: str
    settings: tuple[Setting[Any], ...]
    trained: bool = True
    seeded: bool = True
    needs: tuple[tuple[str, str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the settings."""
        return tuple(setting.name for setting in self.settings)

    def defaults(self) -> dict[str, Any]:
        """Return the published value of each setting in its canonical form."""
        values = {setting.name: setting.default for setting in self.settings}
        return {name: None if value is None else self.check(name, value) for name, value in values.items()}

    def check(self, name: str, value: object) -> Any:
        """Return a setting's value in its canonical form, or say what is wrong with the name or the value."""
        if name not in self.names:
            raise InputError(f"unknown setting {name!r} of {self.name}.{nearest(name, self.names)}")
        return self.settings[self.names.index(name)].check(value, self.name)


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


def _check_steps(value: object, name: str, model: str) -> int | str:
    if value == "limit":
        return "limit"
    if isinstance(value, str):
        reject(name, model, "an integer of at least 0 or 'limit'", describe(value))
    return settings.STEPS.check(value, model)


def _of_dataset(alpha: Setting[float]) -> Setting[Any]:
    return dataclasses.replace(alpha, default=None)


def _evaluate(*choices: str) -> Setting[str]:
    return settings.choice("evaluate", choices[0], choices, "How runs are evaluated; see `pprop.study.run.recipe`.")


_ALPHA, _STEPS = _of_dataset(settings.ALPHA), settings.STEPS
_STEPS_OR_LIMIT = dataclasses.replace(_STEPS, rule=_check_steps)
_TRAINING = (settings.LEARNING_RATE, settings.PATIENCE, settings.MAX_EPOCHS, settings.CRITERION)
_VANILLA_TRAINING = (
    settings.LEARNING_RATE,
    settings.VANILLA_GCN_PATIENCE,
    settings.VANILLA_GCN_MAX_EPOCHS,
    settings.VANILLA_GCN_CRITERION,
)
_NETWORK = (settings.HIDDEN, settings.DROPOUT, settings.PENALTY)
_MATRIX = (settings.PROPAGATION_DROPOUT, settings.NORMALIZATION, settings.SELF_LOOPS)
_GCN = (settings.WIDTH, settings.GCN_DROPOUT, settings.MATRIX_DROPOUT, settings.GCN_PENALTY)
_VANILLA_GCN = (
    settings.VANILLA_GCN_WIDTH,
    settings.GCN_DROPOUT,
    settings.VANILLA_GCN_MATRIX_DROPOUT,
    settings.VANILLA_GCN_PENALTY,
)
_NGCN = (settings.NGCN_WIDTH, settings.POWERS, settings.REPLICAS, settings.NGCN_DROPOUT, settings.NGCN_PENALTY)
_GAT = (settings.HEADS, settings.UNITS, settings.GAT_DROPOUT, settings.GAT_PENALTY)
_JK = (settings.JK_WIDTH, settings.LAYERS, settings.JK_DROPOUT, settings.JK_PENALTY)
_FP = (
    settings.FP_ALPHA.within(settings.POSITIVE_ALPHA),
    settings.FP_STEPS,
    settings.FP_ROUNDS,
    settings.FP_SHARE,
    settings.INVERSE_PENALTY,
    settings.SELF_LOOPS,
)
_PROPAGATED = ("evaluate", "propagated")
_MLP = (*_NETWORK, *_TRAINING, _evaluate("model", "propagated"), _ALPHA, _STEPS)
_APPNP = (_ALPHA, _STEPS_OR_LIMIT, *_NETWORK, *_MATRIX, *_TRAINING, _evaluate("model", "network"))
_PPNP = (_of_dataset(settings.POSITIVE_ALPHA), *_NETWORK, *_MATRIX, *_TRAINING, _evaluate("model", "network"))
_ALL = (
    ModelKind("appnp", "APPNP", _APPNP),
    ModelKind("ppnp", "PPNP", _PPNP),
    ModelKind("mlp", "MLP", _MLP, needs=(("alpha", *_PROPAGATED), ("steps", *_PROPAGATED))),
    ModelKind("vanilla_gcn", "V. GCN", (*_VANILLA_GCN, *_VANILLA_TRAINING)),
    ModelKind("gcn", "GCN", (*_GCN, *_TRAINING)),
    ModelKind("ngcn", "N-GCN", (*_NGCN, *_TRAINING)),
    ModelKind("gat", "GAT", (*_GAT, *_TRAINING)),
    ModelKind("jk", "JK", (*_JK, *_TRAINING)),
    ModelKind("bootstrapped_fp", "Bt. FP", _FP, trained=False, seeded=False),
)

# Every model of the paper by name.
MODELS: Mapping[str, ModelKind] = MappingProxyType({kind.name: kind for kind in _ALL})
