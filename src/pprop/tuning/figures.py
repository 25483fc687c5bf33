"""The figures of a search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pprop.settings import Range
from pprop.study.figures.model import Search, draw_history, draw_slices, search_data
from pprop.study.figures.style import save_figure
from pprop.tuning.tune import Tuned


def plotted(tuned: Tuned) -> Search:
    """Return what the figures of a search show.

    Examples
    --------
    >>> from pprop.tuning import TuningTrial
    >>> trial = TuningTrial({"alpha": 0.3}, scores=(0.8,), seconds=1.0)
    >>> data = plotted(Tuned("appnp", trial.settings, 0.8, 0.8, (trial,), {"alpha": Range(0.1, 0.5, log=True)}, 1.0))
    >>> data.slices[0].name, data.slices[0].log
    ('alpha', True)
    """
    choices: dict[str, Any] = {
        name: values.log if isinstance(values, Range) else values for name, values in tuned.varied.items()
    }
    return search_data([trial.score for trial in tuned.trials], [trial.settings for trial in tuned.trials], choices)


def save_figures(tuned: Tuned, folder: Path, title: str | None = None) -> None:
    """Write ``history`` and ``slices`` as PNG and SVG into a folder; needs the extra ``tune``."""
    data = plotted(tuned)
    for name, figure in (("history", draw_history(data, title)), ("slices", draw_slices(data, title))):
        for kind in ("png", "svg"):
            folder.joinpath(f"{name}.{kind}").write_bytes(save_figure(figure, kind))
