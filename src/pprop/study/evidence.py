"""What the paper's claims about trained models are checked on: the accuracy of every run, where it stands in a figure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from pprop.study.cell import Cell, Seeds, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures import Propagated
from pprop.study.figures.distance import Distance
from pprop.study.figures.gather import (
    RowsOf,
    alpha_place,
    collect,
    depth_place,
    labels_place,
    propagation_place,
    steps_place,
)
from pprop.study.tables import Entry

__all__ = ["Evidence", "Runs", "SweepRuns", "sweep_runs"]

Runs = Mapping[Seeds, float]
"""Accuracies in percent, by run."""

SweepRuns = Mapping[str, Mapping[str, Mapping[Any, Runs]]]
"""By figure, dataset and place in the figure."""

_PLACES: Mapping[str, tuple[Callable[[Cell], Hashable | None], Splits]] = {
    "labels": (labels_place, "test"),
    "steps": (steps_place, "validation"),
    "alpha": (alpha_place, "validation"),
    "depth": (depth_place, "validation"),
    "propagation": (propagation_place, "test"),
}
"""Where a cell stands in a figure, and the kind of splits that the figure is of."""


@final
@dataclass(frozen=True)
class Evidence:
    """What the claims are checked on.

    Attributes
    ----------
    entries
        Of the accuracy table, by dataset.
    times
        Of the table of time per epoch, by dataset.
    runs
        What `sweep_runs` returns.
    distances, propagated
        What the figures on distances and on ways to propagate show.
    """

    entries: Mapping[str, Sequence[Entry]] = field(default_factory=dict[str, Sequence[Entry]])
    times: Mapping[str, Sequence[Entry]] = field(default_factory=dict[str, Sequence[Entry]])
    runs: SweepRuns = field(default_factory=dict[str, Any])
    distances: Sequence[Distance] = ()
    propagated: Sequence[Propagated] = ()


def sweep_runs(experiments: Iterable[Experiment], rows_of: RowsOf) -> SweepRuns:
    """Return the accuracies of every run behind the figures over one setting, and over ways to propagate.

    Parameters
    ----------
    experiments, rows_of
        As for `figures_of`.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> sweep_runs(load_experiments().values(), lambda cell: [])["labels"]
    {}
    """
    known = list(experiments)
    found = {
        figure: collect([each for each in known if each.shows == figure], rows_of, place_of, splits)
        for figure, (place_of, splits) in _PLACES.items()
    }
    return {
        figure: {
            dataset: {place: {row.key.seeds: 100 * row.accuracy for row in rows} for place, rows in places.items()}
            for dataset, places in each.rows.items()
        }
        for figure, each in found.items()
    }
