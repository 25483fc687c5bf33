"""From cells to places in a figure: which rows are drawn where, and the sentence on how many runs there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from pprop.datasets import DATASETS
from pprop.study.cell import Cell, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures.style import Figure
from pprop.study.stats.estimate import Estimate
from pprop.study.stats.paired import split_estimate
from pprop.study.store.row import Row
from pprop.study.tables.entries import dataset_title, model_title

RowsOf = Callable[[Cell], list[Row]]
PlaceOf = Callable[[Cell], Hashable | None]
# Series, dataset and place of a point.
Spot = tuple[str, str, str]

MOST_LETTERS = 80  # of exceptions, that a reader can take in
# Orders of series, dataset and place in which points are divided into groups; the one with the fewest exceptions is used.
ORDERS = ((0, 1, 2), (2, 0, 1), (1, 2, 0))


@final
@dataclass(frozen=True, eq=False)
class DrawnFigure:
    """A figure that can be drawn.

    Attributes
    ----------
    name
        For its file: distributions, labels, steps, steps_lead, alpha, propagation, depth or distance; with the
        kind of splits appended where a study has the same figure on both.
    title, caption
        What it shows, and how to read it, with the number of runs behind its points.
    data
        What is drawn, as the figure's data function gives it.
    draw
        Returns the figure.
    experiments
        Names of those whose rows it shows.
    """

    name: str
    title: str
    caption: str
    data: Any
    draw: Callable[[], Figure]
    experiments: tuple[str, ...]


@final
@dataclass(frozen=True)
class FigureRows:
    """What was found for a figure.

    Attributes
    ----------
    rows
        By dataset, as people write it, and place.
    origins
        The names of the experiments they are of, by place.
    hidden
        Names of experiments with cells that have no place in the figure, or a place that another cell has already.

    Examples
    --------
    >>> FigureRows(hidden=("mine",)).note
    ' Not shown, because they have no place of their own: cells of mine.'
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
        names = ", ".join(self.hidden)
        return f" Not shown, because they have no place of their own: cells of {names}." if names else ""


def collect(experiments: Iterable[Experiment], rows_of: RowsOf, place_of: PlaceOf, splits: Splits) -> FigureRows:
    """Gather the rows of experiments by dataset and place; of two cells with one place, the first with rows has it.

    Parameters
    ----------
    experiments, rows_of
        As for `figures_of`.
    place_of
        The place of a cell in the figure; None if it has none.
    splits
        The only kind of splits that is taken.

    Examples
    --------
    >>> from pprop.study.experiment import Point
    >>> cell = Cell("appnp", {"alpha": 0.1, "steps": 10}, "cora_ml")
    >>> experiment = Experiment("mine", "Mine", "alpha", (Point(cell, {}),))
    >>> collect([experiment], lambda cell: ["a row"], model_title, "test").rows
    {'Cora-ML': {'APPNP': ['a row']}}
    """
    rows: dict[str, dict[Any, list[Row]]] = {}
    owners: dict[tuple[str, Hashable], str] = {}
    origins: dict[Hashable, list[str]] = {}
    hidden: dict[str, None] = {}
    for experiment in experiments:
        for cell in (point.cell for point in experiment.points):
            if cell.splits != splits or not (runs := rows_of(cell)):
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
    return FigureRows({dataset_title(name): rows[name] for name in order if name in rows}, origins, tuple(hidden))


def collect_accuracies(experiments: Sequence[Experiment], rows_of: RowsOf) -> FigureRows:
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


def percent_over_splits(runs: Sequence[Row]) -> Estimate:
    """Return the mean accuracy of runs in percent, with its 95 % bootstrap interval over splits.

    >>> from types import SimpleNamespace as Run  # in place of a Row
    >>> from pprop.study.cell import Seeds
    >>> percent_over_splits([Run(accuracy=0.5, key=Run(seeds=Seeds(7, init))) for init in range(3)])
    Estimate(mean=50.0, low=50.0, high=50.0, runs=3)
    """
    return split_estimate({run.key.seeds: 100 * run.accuracy for run in runs})


def runs_note(counts: Mapping[Spot, int], of: str = "at each point") -> str:
    """Say how many runs the points of a figure rest on: most of them, and those that differ.

    Parameters
    ----------
    counts
        Number of runs by (series, dataset, place), the place empty where there is one for each series and dataset.
    of
        What has these runs.

    Examples
    --------
    >>> runs_note({("APPNP", "Cora-ML", ""): 100, ("GCN", "Cora-ML", ""): 100, ("Bt. FP", "Cora-ML", ""): 20})
    '100 runs at each point, but Bt. FP: 20.'
    >>> runs_note({("APPNP", "Cora-ML", ""): 1})
    '1 run at each point.'
    >>> runs_note({(model, "Cora-ML", at): 100 if at == "20" else 20 for model in "ABCDEFGHI" for at in ("10", "20", "40")})
    '20 runs at each point, but at 20: 100.'
    >>> runs_note({(model, "Cora-ML", at): 100 if at == "20" and model != "C" else 20 for model in "ABC" for at in ("10", "20")})
    '20 runs at each point, but A, B at 20: 100.'
    >>> runs_note({("PPNP", "Cora-ML", str(at)): 100 if at > 2 else 20 for at in range(7)})
    '100 runs at each point, but at 0, 1, 2: 20.'
    >>> runs_note({(m, on, at): 20 if on + at == "PubMed1" else 100 for m in "AB" for on in ("Cora-ML", "PubMed") for at in "12"})
    '100 runs at each point, but on PubMed at 1: 20.'
    """
    values = Counter(counts.values())
    common = max(values, key=lambda runs: (values[runs], runs))
    text = f"{common} run{'' if common == 1 else 's'} {of}"
    ways = (_exceptions(counts, common, order) for order in ORDERS)
    exceptions = min(ways, key=lambda found: (len(found), sum(map(len, found))))
    if sum(map(len, exceptions)) > MOST_LETTERS:
        where = dict.fromkeys(dataset for (_, dataset, _), runs in counts.items() if runs != common)
        most = f"{common} in {values[common]} of {values.total()} places, the others on {', '.join(where)}"
        return f"{min(values)} to {max(values)} runs {of}; {most}."
    return f"{text}, but {'; '.join(exceptions)}." if exceptions else f"{text}."


def _exceptions(counts: Mapping[Spot, int], common: int, order: Sequence[int]) -> list[str]:
    """Return the groups whose number of runs is not `common`; series, then places, that differ alike are named together."""
    names: dict[tuple[str, str, int], list[str]] = {}
    for (series, dataset, place), runs in _groups(counts, common, order):
        names.setdefault((dataset, place, runs), []).append(series)
    places: dict[tuple[str, str, int], list[str]] = {}
    for (dataset, place, runs), series in names.items():
        places.setdefault((", ".join(filter(None, series)), dataset, runs), []).append(place)
    found: list[str] = []
    for (series, dataset, runs), some in places.items():
        at = ", ".join(filter(None, some))
        words = [series, dataset and f"on {dataset}", at and f"at {at}"]
        found.append(f"{' '.join(filter(None, words))}: {runs}")
    return found


def _groups(
    counts: Mapping[Spot, int], common: int, order: Sequence[int], depth: int = 1
) -> Iterator[tuple[Spot, int]]:
    """Yield groups whose number of runs is not `common`, each as large as it can be when divided in an order.

    A group goes by the series, dataset and place that its members share, empty where they do not.
    """
    groups: dict[tuple[str, ...], dict[Spot, int]] = {}
    for key, runs in counts.items():
        groups.setdefault(tuple(key[part] for part in order[:depth]), {})[key] = runs
    for members in groups.values():
        some, runs = next(iter(members.items()))
        if len(set(members.values())) > 1:
            yield from _groups(members, common, order, depth + 1)
        elif runs != common:
            series, dataset, place = (some[part] if part in order[:depth] else "" for part in range(3))
            yield (series, dataset, place), runs
