"""From cells to places in a figure: which rows are drawn where. Two cells are never pooled."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from pprop.datasets import DATASETS
from pprop.study.cell import Cell, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures.captions import dataset_title
from pprop.study.store.row import Row
from pprop.study.zoo import MODELS

__all__ = [
    "Found",
    "RowsOf",
    "alpha_place",
    "collect",
    "collect_accuracies",
    "depth_place",
    "labels_place",
    "model_title",
    "propagation_place",
    "steps_place",
]

RowsOf = Callable[[Cell], list[Row]]


@final
@dataclass(frozen=True)
class Found:
    """What was found for a figure.

    Attributes
    ----------
    rows
        By dataset, as people write it, and place.
    origins
        The names of the experiments they are of, by place.
    hidden
        Names of experiments with cells that another one stands in for, or that do not belong into the figure.

    Examples
    --------
    >>> Found(hidden=("mine",)).note
    ' Not shown, for want of a place of their own: cells of mine.'
    """

    rows: dict[str, dict[Any, list[Row]]] = field(default_factory=dict[str, dict[Any, list[Row]]])
    origins: dict[Hashable, list[str]] = field(default_factory=dict[Hashable, list[str]])
    hidden: tuple[str, ...] = ()

    @property
    def experiments(self) -> tuple[str, ...]:
        """All names that rows are shown of."""
        return tuple(dict.fromkeys(name for names in self.origins.values() for name in names))

    @property
    def note(self) -> str:
        """A sentence about what is not shown; empty where all is."""
        return (
            f" Not shown, for want of a place of their own: cells of {', '.join(self.hidden)}." if self.hidden else ""
        )


def collect(
    experiments: Iterable[Experiment],
    rows_of: RowsOf,
    place_of: Callable[[Cell], Hashable | None],
    splits: Splits | None = None,
) -> Found:
    """Gather the rows of experiments by dataset and place; of two cells with one place, the first with rows has it.

    Parameters
    ----------
    experiments, rows_of
        As for `figures_of`.
    place_of
        Where a cell stands in the figure; None if it does not belong there.
    splits
        The only kind of splits that is taken; None takes both.

    Examples
    --------
    >>> from pprop.study.experiment import Point
    >>> cell = Cell("appnp", {"alpha": 0.1, "steps": 10}, "cora_ml")
    >>> experiment = Experiment("mine", "Mine", "alpha", (Point(cell, {}),))
    >>> collect([experiment], lambda cell: ["a row"], alpha_place).rows
    {'Cora-ML': {('APPNP', 0.1): ['a row']}}
    """
    rows: dict[str, dict[Any, list[Row]]] = {}
    owners: dict[tuple[str, Hashable], str] = {}
    origins: dict[Hashable, list[str]] = {}
    hidden: dict[str, None] = {}
    for experiment in experiments:
        for cell in (point.cell for point in experiment.points):
            if splits not in (None, cell.splits) or not (runs := rows_of(cell)):
                continue
            place = place_of(cell)
            owner = owners.get((cell.dataset, place))
            if place is not None and owner is None:
                owners[cell.dataset, place] = cell.config
                rows.setdefault(cell.dataset, {})[place] = runs
                origins.setdefault(place, []).append(experiment.name)
            elif owner != cell.config:
                hidden[experiment.name] = None
    order = [*DATASETS, *sorted(set(rows) - set(DATASETS))]
    return Found({dataset_title(name): rows[name] for name in order if name in rows}, origins, tuple(hidden))


def collect_accuracies(experiments: Sequence[Experiment], rows_of: RowsOf) -> Found:
    """Gather the rows of the accuracy table by dataset and model.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> collect_accuracies(list(load_experiments().values()), lambda cell: []).rows
    {}
    """

    def rows_on_tests(cell: Cell) -> list[Row]:
        return rows_of(cell) if cell.per_class == 20 else []

    # The published cells come first: a model's place is theirs. "quick" holds some of the same cells again.
    tables = [one for shows in ("accuracy", "quick") for one in experiments if one.shows == shows]
    return collect(tables, rows_on_tests, model_title, "test")


def model_title(cell: Cell) -> str:
    """Return a model's name as the paper writes it; one's own model goes by its address.

    Examples
    --------
    >>> model_title(Cell("vanilla_gcn", {}, "citeseer")), model_title(Cell("mine:build", {}, "citeseer"))
    ('V. GCN', 'mine:build')
    """
    return MODELS[cell.model].title if cell.model in MODELS else cell.model


def labels_place(cell: Cell) -> tuple[str, int]:
    """Return the model and the training nodes per class.

    >>> labels_place(Cell("gcn", {}, "citeseer", per_class=5))
    ('GCN', 5)
    """
    return model_title(cell), cell.per_class


def steps_place(cell: Cell) -> tuple[float, float] | None:
    """Return alpha and K, infinite for PPNP and for the limit without teleport.

    >>> steps_place(Cell("appnp", {"alpha": 0.0, "steps": "limit"}, "citeseer"))
    (0.0, inf)
    """
    if cell.model not in ("appnp", "ppnp"):
        return None
    steps: Any = "limit" if cell.model == "ppnp" else cell.settings["steps"]
    return cell.settings["alpha"], math.inf if steps == "limit" else float(steps)


def alpha_place(cell: Cell) -> tuple[str, float] | None:
    """Return the model and alpha.

    >>> alpha_place(Cell("ppnp", {"alpha": 0.2}, "citeseer"))
    ('PPNP', 0.2)
    """
    return (model_title(cell), cell.settings["alpha"]) if "alpha" in cell.settings else None


def depth_place(cell: Cell) -> int | None:
    """Return the number of layers: one more than there are hidden ones.

    >>> depth_place(Cell("appnp", {"hidden": [64, 64]}, "citeseer"))
    3
    """
    return len(cell.settings["hidden"]) + 1 if cell.model == "appnp" else None


def propagation_place(cell: Cell) -> str | None:
    """Return when the cell propagates: one of `WAYS`.

    >>> propagation_place(Cell("mlp", {"evaluate": "propagated"}, "citeseer"))
    'inference'
    """
    ways = {
        ("mlp", "model"): "never",
        ("appnp", "network"): "training",
        ("mlp", "propagated"): "inference",
        ("appnp", "model"): "both",
    }
    return ways.get((cell.model, cell.settings.get("evaluate", "")))
