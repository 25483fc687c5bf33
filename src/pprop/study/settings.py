"""One setting of a model: its name, its default and what it accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from pprop._validate import check_bool, check_choice, check_float, check_int, check_sequence, describe, reject

__all__ = ["Setting", "choice", "number", "steps_or_limit", "switch", "whole", "widths"]

Check = Callable[[object, str, str], Any]


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
        Name and value of another setting without which this one means nothing; the cell then goes without it.

    Examples
    --------
    >>> number("alpha", 0.1, "[0, 1]").check(1, "alpha", "appnp")
    1.0
    """

    name: str
    default: Any
    check: Check
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
