"""What a report is made from: the rows of a study, gathered for its tables, figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias, final

from pprop.graph import Graph
from pprop.study.cell import Seeds, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures import figures_of
from pprop.study.figures.accuracies import propagation_place
from pprop.study.figures.gather import DrawnFigure, PlaceOf, RowsOf, collect
from pprop.study.figures.sweeps import alpha_place, depth_place, labels_place, steps_place
from pprop.study.graphs import load_graph
from pprop.study.store.row import Row, RowKey
from pprop.study.store.store import Store
from pprop.study.tables.clock import Stretch, all_stretches, keys_of_shared
from pprop.study.tables.entries import (
    ByDataset,
    Samples,
    TableEntry,
    dataset_order,
    dataset_title,
    entries,
    read_all_samples,
)
from pprop.study.tables.over_nodes import NodeLead, node_leads
from pprop.study.tables.runs import published_and_own
from pprop.study.tables.spread import more_runs_entries

# Accuracies in percent, or another metric, by run.
Runs: TypeAlias = Mapping[Seeds, float]

# What experiments show that have no figure.
IN_TABLES = ("accuracy", "time", "rerun", "quick")

# The place of a cell in a figure, and the kind of splits that the figure is of.
_PLACES: Mapping[str, tuple[PlaceOf, Splits]] = {
    "labels": (labels_place, "test"),
    "steps": (steps_place, "validation"),
    "alpha": (alpha_place, "validation"),
    "depth": (depth_place, "validation"),
    "propagation": (propagation_place, "test"),
}


@final
@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study, each computed when it is first used, while the store is open.

    Attributes
    ----------
    store
        The rows.
    experiments
        What they are shown as. Only those that come with pprop, also on a user's graphs, fill tables and figures;
        others have a section of their own. The paper's claims are checked on the paper's graphs alone.
    folder
        The study's, which has the user's graphs, and keeps what takes long to compute.
    sentences
        Whether the claims' readings and sentences are shown, which were written about the published rows.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name, Store.open(Path(name), create=True) as store:
    ...     Results(store, {}, Path(name)).datasets
    []
    """

    store: Store
    experiments: Mapping[str, Experiment]
    folder: Path
    sentences: bool = False

    @cached_property
    def everything(self) -> Samples:
        """All rows."""
        return read_all_samples(self.store)

    @cached_property
    def published(self) -> Mapping[str, Experiment]:
        """The experiments that come with pprop, also on a user's graphs."""
        return published_and_own(self.experiments)[0]

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The stretches of work that made all rows."""
        return all_stretches(self.everything)

    @cached_property
    def shared(self) -> frozenset[RowKey]:
        """The rows of processes that shared their device: their seconds are not for planning."""
        return keys_of_shared(self.stretches)

    @cached_property
    def own(self) -> Mapping[str, Experiment]:
        """The user's experiments."""
        return published_and_own(self.experiments)[1]

    @cached_property
    def samples(self) -> Samples:
        """The rows that tables and figures show."""
        return self.everything.published(self.published)

    @cached_property
    def main(self) -> ByDataset:
        """The entries of the accuracy table."""
        return entries(self.published, self.samples)

    @cached_property
    def times(self) -> ByDataset:
        """The entries of the table of time per epoch."""
        return entries(self.published, self.samples, "time")

    @cached_property
    def many(self) -> ByDataset:
        """The entries of the accuracy table that have more runs than it shows, with all of these."""
        return more_runs_entries(self.published, self.everything, self.main, self.samples)

    @cached_property
    def leads_over_nodes(self) -> list[NodeLead]:
        """The comparisons of accuracy over test nodes, on the graphs that are here."""
        return node_leads(self.main, self.many, self.with_predictions, self.graph_of)

    @cached_property
    def datasets(self) -> list[str]:
        """Those that have rows."""
        return sorted({sample.cell.dataset for sample in self.everything.values()}, key=dataset_order)

    @cached_property
    def graph_of(self) -> Callable[[str], Graph]:
        """The graph of a dataset, each read once."""
        return cache(partial(load_graph, study=self.folder))

    @cached_property
    def begun(self) -> Mapping[str, Experiment]:
        """The experiments that have rows; cells of the accuracy table count only for those that fill it.

        Figures share cells with that table, and a figure of one such point shows nothing.
        """

        def has_own_rows(experiment: Experiment) -> bool:
            cells = [point.cell for point in experiment.points if self.samples.of(point.cell) is not None]
            return any(experiment.shows in IN_TABLES or cell.config not in self.configs for cell in cells)

        return {name: one for name, one in self.published.items() if has_own_rows(one)}

    @cached_property
    def configs(self) -> set[str]:
        """The configurations of the accuracy table."""
        return {entry.cell.config for group in self.main.values() for entry in group}

    @cached_property
    def drawn(self) -> list[DrawnFigure]:
        """The figures."""
        return figures_of(self.begun.values(), self._rows_of, self.graph_of)

    def sweep(self, figure: str, dataset: str) -> Mapping[Any, Runs]:
        """Return the runs behind a figure over one setting, or over ways to propagate, on one dataset: by their place.

        The figure is one of labels, steps, alpha, depth and propagation.
        """
        return self._sweeps.get((figure, dataset_title(dataset)), {})

    @cached_property
    def _sweeps(self) -> Mapping[tuple[str, str], Mapping[Any, Runs]]:
        found: dict[tuple[str, str], Mapping[Any, Runs]] = {}
        for figure, (place_of, splits) in _PLACES.items():
            shown = [one for one in self.begun.values() if one.shows == figure]
            for dataset, places in collect(shown, self._rows_of, place_of, splits).rows.items():
                found[figure, dataset] = {
                    place: {row.key.seeds: 100 * row.accuracy for row in rows} for place, rows in places.items()
                }
        return found

    def with_predictions(self, entry: TableEntry) -> list[Row]:
        """Return the rows of an entry of the accuracy table with their predictions, where the store has these."""
        keys = {row.key for row in entry.rows}
        return [row for row in self.store.rows(entry.cell.config) if row.key in keys and len(row.predictions)]

    @cached_property
    def _rows_of(self) -> RowsOf:
        """A function from a cell to its rows for figures.

        They have predictions for the models that are compared by distance, and are of every device where time is shown.
        """
        timed = {entry.cell.config for group in self.times.values() for entry in group}

        @cache
        def rows(config: str, model: str) -> list[Row]:
            sample = self.samples.get(config)
            if sample is None:
                return []
            if config in timed:
                devices = sorted({row.device for row in sample.all_rows})
                return [row for device in devices if (one := sample.on(device)) is not None for row in one.rows]
            if config in self.configs and model in ("appnp", "gcn"):
                keys = {row.key for row in sample.rows}
                return [row for row in self.store.rows(config) if row.key in keys]
            return list(sample.rows)

        return lambda cell: rows(cell.config, cell.model)
