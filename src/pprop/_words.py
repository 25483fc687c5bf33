"""Texts of values, for people."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a time for people.

    >>> [duration(s) for s in (0.2, 59.6, 200, 7260, 200000)]
    ['1 s', '1 min', '3 min', '2 h 1 min', '56 h']
    """
    if seconds < 59.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 24 and minutes else f"{hours + round(minutes / 60)} h"
