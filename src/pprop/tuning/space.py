"""The space of a search: which settings vary, over what, and which stay."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np

from pprop import settings
from pprop._validate import describe, reject
from pprop.settings import Range, Setting

FUNCTION = "tune"

_TRAINING = (settings.LEARNING_RATE, settings.PATIENCE, settings.MAX_EPOCHS)
_NETWORK = (settings.HIDDEN, settings.DROPOUT, settings.PENALTY, *_TRAINING)
_MATRIX = (settings.SAME_DROPOUT, settings.NORMALIZATION, settings.SELF_LOOPS)
_MODELS: Mapping[str, tuple[Setting[Any], ...]] = {
    "appnp": (settings.ALPHA, settings.STEPS, *_NETWORK, *_MATRIX),
    "ppnp": (settings.POSITIVE_ALPHA, *_NETWORK, *_MATRIX),
    "mlp": _NETWORK,
}
# The models that can be tuned, and the settings of each by name: those of its classifier.
SETTINGS: Mapping[str, Mapping[str, Setting[Any]]] = {
    model: {setting.name: setting for setting in given} for model, given in _MODELS.items()
}

# What a setting varies over: a range, or some values.
Varied = Range | tuple[Any, ...]


def _frozen(value: object) -> object:
    """Return a value of a setting in a form that can be compared and written: several hidden layers are a tuple.

    >>> _frozen([np.int64(64), np.int64(32)]), _frozen(np.float64(0.5)), _frozen(np.True_)
    ((64, 32), 0.5, True)
    """
    if isinstance(value, np.ndarray | np.generic):
        value = cast("object", value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(part) for part in cast("Sequence[object]", value))
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


@final
@dataclass(frozen=True)
class Space:
    """A checked space.

    Attributes
    ----------
    varied
        What varies, and over what.
    fixed
        What does not; settings in neither keep the classifier's default.

    Examples
    --------
    >>> space = Space.of({"alpha": Range(0.1, 0.5), "hidden": [8, 16], "dropout": 0.0}, "appnp")
    >>> space.varied, space.fixed
    ({'alpha': Range(low=0.1, high=0.5, log=False), 'hidden': (8, 16)}, {'dropout': 0.0})
    >>> space.start({"alpha": 0.05, "hidden": 64})
    {'alpha': 0.1, 'hidden': 8}
    """

    varied: Mapping[str, Varied]
    fixed: Mapping[str, Any]

    @classmethod
    def of(cls, space: object, model: str) -> Space:
        """Return the space that a caller of `tune` describes; None is the default one of the model."""
        if space is None:
            every = SETTINGS[model].items()
            return cls({name: setting.search for name, setting in every if setting.search is not None}, {})
        if not isinstance(space, Mapping):
            expected = "a mapping from settings to a Range, a list of values or a value"
            reject("space", FUNCTION, expected, describe(space))
        varied: dict[str, Varied] = {}
        fixed: dict[str, Any] = {}
        described = cast("Mapping[object, object]", space)
        for name, given in described.items():
            values = cast("object", given.tolist()) if isinstance(given, np.ndarray) else given  # to choose from
            if not isinstance(name, str) or name not in SETTINGS[model]:
                known = ", ".join(SETTINGS[model])
                reject("space", FUNCTION, f"about settings of {model}: {known}", describe(name))
            if isinstance(values, Range):
                varied[name] = values
            elif isinstance(values, list):
                choices = tuple(_frozen(value) for value in cast("list[object]", values))
                if not choices or any(choices.index(value) != k for k, value in enumerate(choices)):
                    expected = f"values of {name!r}, at least one, no two the same"
                    reject("space", FUNCTION, expected, describe(list(choices)))
                varied[name] = choices
            else:
                fixed[name] = _frozen(values)
        if not varied:
            reject("space", FUNCTION, "at least one setting with a Range or a list of values", describe(described))
        return cls(varied, fixed)

    def start(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return the point of the space that is nearest to the defaults: the first choice where theirs is none."""
        point: dict[str, Any] = {}
        for name, values in self.varied.items():
            default = defaults[name]
            if isinstance(values, Range):
                point[name] = values.nearest(values.low if default is None else default)
            else:
                point[name] = default if default in values else values[0]
        return point

    def corners(self) -> list[tuple[str, Any]]:
        """Return every setting with each of the values that may be impossible: both ends, all choices, what is fixed."""
        ends = [
            (name, value)
            for name, values in self.varied.items()
            for value in ((values.low, values.high) if isinstance(values, Range) else values)
        ]
        return [*ends, *self.fixed.items()]

    def to_json(self) -> dict[str, Any]:
        """Return the space as JSON writes it."""
        varied = {
            name: vars(values) if isinstance(values, Range) else {"values": values}
            for name, values in self.varied.items()
        }
        return {"varied": varied, "fixed": dict(self.fixed)}
