"""What a figure shows, as text: to be published beside it, compared, and drawn otherwise."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np

__all__ = ["figure_json"]

DIGITS = 6
"""Significant digits: more than a figure can show, and fewer than the order of a sum can change."""


def figure_json(data: object) -> str:
    """Return the data of a figure as JSON, a line for each panel; infinity and NaN are strings.

    Examples
    --------
    >>> from pprop.study.stats.estimate import Estimate
    >>> print(figure_json((Estimate(mean=2 / 3, low=0.6, high=float("inf"), runs=20),)), end="")
    [
    {"mean": 0.666667, "low": 0.6, "high": "inf", "runs": 20}
    ]
    """
    plain = _plain(data)
    panels = cast("list[object]", plain) if isinstance(plain, list) else [plain]
    lines = ",\n".join(json.dumps(panel, ensure_ascii=False, allow_nan=False) for panel in panels)
    return f"[\n{lines}\n]\n"


def _plain(value: Any) -> object:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in cast("list[object]", value)]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    return value
