"""Argument checks, all in one sentence form.

*The 'alpha' parameter of propagate must be a float in (0, 1]. Got 1.3 instead.*

Each check returns the value in its canonical type, so that a public function validates and converts in one line.
"""

from __future__ import annotations

import inspect
import math
import numbers
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pprop._errors import InputError, NumberIn, PpropError, Remedy, Where

if TYPE_CHECKING:  # numpy is imported in the checks that need it: settings, and so `pprop --help`, do without
    import numpy as np
    from numpy.typing import NDArray


# Where the files of this package lie.
_PACKAGE = os.path.join(os.path.dirname(__file__), "")
# Texts that an unknown one is compared with.
_COMPARED = 5000


def describe(value: object) -> str:
    """Return a short text for `value`, fit for the end of an error sentence.

    >>> describe("x" * 100)
    "a str of 100 characters beginning 'xxxxxxxxxxxxxxxxxxxx'"
    """
    shape: Any = getattr(value, "shape", None)
    if shape is not None and tuple(shape) != ():
        dtype: Any = getattr(value, "dtype", None)
        return f"{type(value).__name__} of shape {tuple(shape)}" + (f" and dtype {dtype}" if dtype is not None else "")
    if isinstance(value, str) and len(value) > 60:
        return f"a str of {len(value)} characters beginning {value[:20]!r}"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, lists in lists in lists
        text = f"a value of type {type(value).__name__} that is too long to print"
    if "\n" in text:  # arrays and sparse matrices write several lines; a sentence has one
        text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun and a separator for thousands.

    >>> counted(1, "node"), counted(12345, "edge"), counted(2, "class", "classes")
    ('1 node', '12,345 edges', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def any_of(names: Sequence[str]) -> str:
    """Return names as alternatives.

    >>> any_of(["a"]), any_of(["a", "b", "c"])
    ('a', 'a, b or c')
    """
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def listed(items: Sequence[object], most: int = 5) -> str:
    """Return the first items, and how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(item) for item in items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def nearest(wanted: str, known: Iterable[str], most: int = 1) -> str:
    """Return a question that names those of many texts that are most like an unknown one; empty if none is.

    Of more than a few thousand only those that begin alike are compared, since a comparison takes microseconds.

    >>> nearest("incom", ["age", "income", "country"])
    "Did you mean 'income'?"
    """
    import difflib

    texts = list(known)
    if len(texts) > _COMPARED:
        start = wanted[:2].casefold()
        texts = [text for text in texts if text[:2].casefold() == start][:_COMPARED]
    found = difflib.get_close_matches(wanted, texts, most)
    return f"Did you mean {' or '.join(repr(text) for text in found)}?" if found else ""


def reject(
    parameter: str,
    function: str,
    expected: str | NumberIn,
    got: object,
    *,
    remedy: str | Remedy = "",
    error: Callable[..., PpropError] = InputError,
    where: Where | None = None,
) -> NoReturn:
    """Raise an error about an argument. `got` is described unless it is already a sentence part (a str of the caller).

    >>> reject("alpha", "propagate", "a float in (0, 1]", 1.3)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'alpha' parameter of propagate must be a float in (0, 1]. Got 1.3 instead.
    """
    remedies = () if not remedy else (remedy if isinstance(remedy, Remedy) else Remedy(remedy),)
    found = got if isinstance(got, str) else describe(got)
    raise error(parameter=parameter, function=function, expected=expected, found=found, remedies=remedies, where=where)


def is_a(value: object, kind: str) -> bool:
    """Whether `value` is of the class `kind`; where its module is not imported yet, nothing is.

    >>> is_a(3, "networkx.Graph"), is_a(3, "builtins.int")
    (False, True)
    """
    module, _, name = kind.rpartition(".")
    made = getattr(sys.modules.get(module), name, None)
    return isinstance(made, type) and isinstance(value, made)


def name_methods(owner: str, *parts: type) -> None:
    """Let a TypeError of Python name methods for a class that users know, or by their names alone, and not for its parts.

    >>> class Part:
    ...     def double(self): ...
    >>> name_methods("Number", Part)
    >>> Part().double(2)
    Traceback (most recent call last):
        ...
    TypeError: Number.double() takes 1 positional argument but 2 were given
    """
    for part in parts:
        for member in vars(part).values():
            method = getattr(member, "__func__", member)
            if isinstance(method, FunctionType):
                method.__qualname__ = f"{owner}.{method.__name__}" if owner else method.__name__


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn about the line that called this package: Python shows a warning once per such line.

    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn("Of this line.")
    >>> caught[0].filename.startswith("<doctest")
    True
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_float(value: object, parameter: str, function: str, interval: str) -> float:
    """Return `value` as a float inside `interval`, written as in mathematics: ``"(0, 1]"`` or ``"[0, inf)"``.

    >>> check_float(1, "alpha", "propagate", "(0, 1]")
    1.0
    """
    low, high = (float(end) for end in interval[1:-1].split(","))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer beyond the largest float
            number = math.inf
        above = number >= low if interval[0] == "[" else number > low
        below = number <= high if interval[-1] == "]" else number < high
        if above and below:
            return number
    reject(parameter, function, NumberIn(interval), describe(value))


def check_int(value: object, parameter: str, function: str, *, low: int, high: int | None = None) -> int:
    """Return `value` as an int of at least `low` (and at most `high`).

    >>> check_int(10, "steps", "PowerIteration", low=0)
    10
    """
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= low and (high is None or number <= high):
            return number
    span = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    reject(parameter, function, span, describe(value))


def check_bool(value: object, parameter: str, function: str) -> bool:
    """Return `value` if it is True or False, numpy's included. Nothing else counts as true: "no" would.

    >>> import numpy as np
    >>> check_bool(np.True_, "directed", "Graph.from_scipy")
    True
    """
    if isinstance(value, bool):
        return value
    import numpy as np

    if not isinstance(value, np.bool_):
        reject(parameter, function, "True or False", describe(value))
    return bool(cast("bool", value))


def check_choice(
    value: object,
    parameter: str,
    function: str,
    choices: Sequence[str],
    *,
    remedy: str = "",
    error: type[PpropError] = InputError,
) -> str:
    """Return `value` if it is one of `choices`.

    >>> check_choice("row", "normalization", "propagate", ["sym", "row", "col"])
    'row'
    """
    if isinstance(value, str) and value in choices:
        return value
    expected = f"{'one of ' if len(choices) > 1 else ''}{any_of([repr(choice) for choice in choices])}"
    reject(parameter, function, expected, describe(value), remedy=remedy, error=error)


def check_array(
    value: object, parameter: str, function: str, expected: str, error: type[InputError] = InputError
) -> NDArray[Any]:
    """Return `value` as numpy reads it, or say that it is ragged or otherwise no array.

    >>> check_array([0, 1], "labels", "Graph.from_scipy", "an array")
    array([0, 1])
    """
    import numpy as np

    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; tensors that are elsewhere or need a gradient
        reject(parameter, function, expected, describe(value), error=error)


def check_sequence(
    value: object, parameter: str, function: str, expected: str, error: type[InputError] = InputError
) -> list[object]:
    """Return what `value` holds, in its order. A text holds letters and a set has no order: neither is meant.

    >>> check_sequence(("x", "y"), "feature_names", "Graph.from_scipy", "a sequence of names")
    ['x', 'y']
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | AbstractSet):
        try:
            return list(cast("Iterable[object]", value))
        except TypeError:  # an array without a dimension
            pass
    reject(parameter, function, expected, describe(cast("object", value)), error=error)


def check_texts(
    texts: Sequence[str], parameter: str, function: str, error: type[InputError] = InputError
) -> NDArray[np.str_]:
    r"""Return texts as an array, in which one that ends in a null character would become the one without it.

    >>> check_texts(["a", "a\0"], "y", "fit")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'y' parameter of fit must be text that does not end in a null character. Got 'a\x00' at index 1 instead.
    """
    import numpy as np

    for index, text in enumerate(texts):
        if text.endswith("\0"):
            expected = "text that does not end in a null character"
            reject(parameter, function, expected, f"{describe(text)} at index {index}", error=error)
    return np.asarray(texts, dtype=np.str_)


def check_positions(value: object, parameter: str, function: str, *, n_nodes: int) -> NDArray[np.int64]:
    """Return `value` as a one-dimensional array of node positions, each from 0 to ``n_nodes - 1``.

    >>> check_positions([0, 4], "nodes", "predict", n_nodes=5)
    array([0, 4])
    """
    import numpy as np

    expected = f"a one-dimensional array of node positions from 0 to {n_nodes - 1}"
    array = check_array(value, parameter, function, expected)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        remedy = "Use graph.positions(ids) to turn ids into positions." if array.dtype.kind in "USO" else ""
        reject(parameter, function, expected, array, remedy=remedy)
    positions = array.astype(np.int64)
    outside = np.flatnonzero((positions < 0) | (positions >= n_nodes))
    if outside.size:
        reject(parameter, function, expected, f"{positions[outside[0]]} at index {outside[0]}")
    return positions


def is_finite(value: object) -> bool:
    """Whether a value is a number, no truth value, and finite.

    >>> is_finite(2), is_finite(True), is_finite(float("nan"))
    (True, False, False)
    """
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def check_widths(value: object, name: str, function: str) -> list[int]:
    """Return the widths of layers, given as a sequence or as the only one.

    >>> check_widths(64, "hidden", "train"), check_widths((64, 32), "hidden", "train")
    ([64], [64, 32])
    """
    several = isinstance(value, Sequence) and not isinstance(value, str)
    found: list[Any] = list(cast("Any", value)) if several else [value]
    for width in found:
        if not isinstance(width, numbers.Integral) or isinstance(width, bool) or width < 1:
            reject(name, function, "an integer of at least 1, or a sequence of them", describe(cast("object", value)))
    return [int(width) for width in found]


def check_folds(value: object, name: str, function: str) -> int:
    """Return a number of folds, 0 or at least 2.

    >>> check_folds(3, "folds", "fit")
    3
    """
    folds = check_int(value, name, function, low=0)
    if folds == 1:
        reject(name, function, "0, or an integer of at least 2", folds)
    return folds


def check_bias(value: object, name: str, function: str) -> bool | str:
    """Return True, False or ``"auto"``.

    >>> check_bias("auto", "bias", "fit"), check_bias(True, "bias", "fit")
    ('auto', True)
    """
    if isinstance(value, str) and value == "auto":
        return value
    try:
        return check_bool(value, name, function)
    except InputError:
        reject(name, function, "True, False or 'auto'", describe(value))


def check_class_weight(value: object, name: str, function: str) -> str | dict[object, float] | None:
    """Return None, ``"balanced"``, or a dict from classes to floats above 0.

    >>> check_class_weight({"yes": 3}, "class_weight", "fit")
    {'yes': 3.0}
    """
    expected = "None, 'balanced', or a dict from classes to numbers above 0"
    if value is None or (isinstance(value, str) and value == "balanced"):
        return value
    if not isinstance(value, Mapping):
        reject(name, function, expected, describe(value))
    given = cast("Mapping[object, object]", value)
    for label, weight in given.items():
        if not is_finite(weight) or not cast("float", weight) > 0:
            reject(name, function, expected, f"{describe(weight)} for {describe(label)}")
    return {label: float(cast("float", weight)) for label, weight in given.items()}


def read_threshold(value: object, name: str, function: str) -> tuple[str, tuple[float, ...]]:
    """Return what a threshold is chosen for, and the numbers that belong to it.

    >>> read_threshold("cost=10:1", "threshold", "fit"), read_threshold(0.3, "threshold", "fit")
    (('cost', (10.0, 1.0)), ('probability', (0.3,)))
    """
    if isinstance(value, str):
        kind, _, text = value.partition("=")
        numbers_given = [_finite_number(part) for part in text.split(":")] if text else []
        match (kind.strip(), *numbers_given):
            case ("f1",):
                return "f1", ()
            case ("precision" | "recall" as kind, float(share)) if 0 < share <= 1:
                return kind, (share,)
            case ("cost", float(miss), float(alarm)) if miss > 0 and alarm > 0:
                return "cost", (miss, alarm)
            case _ if not text and (share := _finite_number(value)) is not None and 0 < share < 1:
                return "probability", (share,)
            case _:
                pass
    elif is_finite(value) and 0 < cast("float", value) < 1:
        return "probability", (float(cast("float", value)),)
    expected = "a probability between 0 and 1, 'f1', 'precision=0.5', 'recall=0.8' or 'cost=10:1' (of a miss and of a false alarm)"
    reject(name, function, expected, describe(value))


def _finite_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def check_threshold(value: object, name: str, function: str) -> object:
    """Return a threshold as it is, a probability or how to choose one; `read_threshold` takes it apart.

    >>> check_threshold("recall=0.8", "threshold", "fit")
    'recall=0.8'
    """
    read_threshold(value, name, function)
    return value


def check_verbose(value: object, name: str, function: str) -> int:
    """Return a level of what is printed, also given as a truth value.

    >>> check_verbose(True, "verbose", "fit")
    1
    """
    import numpy as np

    level = int(cast("int", value)) if isinstance(value, numbers.Integral | np.bool_) else -1
    if level < 0:
        reject(name, function, "0, 1 or 2, or False or True", describe(cast("object", value)))
    return level
