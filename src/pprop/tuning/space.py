"""The space of a search: which settings vary, over what, and which stay."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast, final

import numpy as np

from pprop._validate import check_bool, describe, reject

__all__ = ["DEFAULT_SPACES", "SETTINGS", "Range", "Space", "Varied"]

FUNCTION = "tune"

_NETWORK = ("hidden", "dropout", "penalty", "learning_rate", "patience", "max_epochs")
_GRAPH = ("propagation_dropout", "normalization", "self_loops")
SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"appnp": ("alpha", "steps", *_NETWORK, *_GRAPH), "ppnp": ("alpha", *_NETWORK, *_GRAPH), "mlp": _NETWORK}
)
"""The models that can be tuned, and the settings of each: those of its classifier."""


def _number(value: float | numbers.Real) -> float:
    """Return a number of any kind, numpy's among them, as Python's own, which JSON can hold."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _frozen(value: object) -> object:
    """Return a value of a setting so that it can be kept, compared and written: several hidden layers are a tuple.

    >>> _frozen([np.int64(64), np.int64(32)]), _frozen(np.float64(0.5)), _frozen(np.True_)
    ((64, 32), 0.5, True)
    """
    if isinstance(value, np.ndarray | np.generic):
        value = cast("object", value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(part) for part in cast("Sequence[object]", value))
    return _number(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else value


def _listed(value: object) -> object:
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


@final
@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: integers if both are, else floats.

    Parameters
    ----------
    low, high
        The ends, low < high; numpy's are kept as Python's own.
    log
        Whether every factor, rather than every difference, is as likely as another; low is then above 0.

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
        if not _is_number(self.low) or (self.log and self.low <= 0):
            expected = "a finite number above 0 for a logarithmic range" if self.log else "a finite number"
            reject("low", "Range", expected, describe(self.low))
        if not _is_number(self.high) or self.high <= self.low:
            reject("high", "Range", f"a finite number above 'low', {self.low!r}", describe(self.high))
        for name, value in (("low", _number(self.low)), ("high", _number(self.high)), ("log", log)):
            object.__setattr__(self, name, value)  # frozen from now on

    @property
    def whole(self) -> bool:
        """Whether the numbers are integers."""
        return isinstance(self.low, numbers.Integral) and isinstance(self.high, numbers.Integral)

    def nearest(self, value: float) -> float:
        """Return the number of the range that is nearest to a value.

        >>> Range(1, 8).nearest(10), Range(0.1, 0.2).nearest(0.15)
        (8, 0.15)
        """
        return min(max(value, self.low), self.high)


Varied = Range | tuple[Any, ...]
"""What a setting varies over: a range, or some values."""

_COMMON: Mapping[str, Varied] = MappingProxyType(
    {
        "hidden": (16, 32, 64, 128),
        "dropout": Range(0.0, 0.8),
        "penalty": Range(1e-4, 0.1, log=True),
        "learning_rate": Range(2e-3, 0.05, log=True),
    }
)
_ALPHA = Range(0.02, 0.5, log=True)
DEFAULT_SPACES: Mapping[str, Mapping[str, Varied]] = MappingProxyType(
    {
        "appnp": {"alpha": _ALPHA, "steps": Range(2, 20), **_COMMON},
        "ppnp": {"alpha": _ALPHA, **_COMMON},
        "mlp": _COMMON,
    }
)
"""What is searched unless the caller says otherwise."""


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
            return cls(DEFAULT_SPACES[model], {})
        if not isinstance(space, Mapping):
            reject(
                "space", FUNCTION, "a mapping from settings to a Range, a list of values or a value", describe(space)
            )
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
                    reject(
                        "space", FUNCTION, f"values of {name!r}, at least one, no two the same", describe(list(choices))
                    )
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
        """Return the space as JSON holds it."""
        varied = {
            name: {"low": values.low, "high": values.high, "log": values.log}
            if isinstance(values, Range)
            else {"values": [_listed(value) for value in values]}
            for name, values in self.varied.items()
        }
        return {"varied": varied, "fixed": {name: _listed(value) for name, value in self.fixed.items()}}
