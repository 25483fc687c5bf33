"""What a report is made from: the rows of a study, gathered for its tables, figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import final

from pprop._errors import PpropError
from pprop.datasets import DATASETS
from pprop.graph import Graph
from pprop.study.cell import Cell, is_original
from pprop.study.experiment import Experiment
from pprop.study.figures import figures_of
from pprop.study.figures.gather import Drawn, RowsOf
from pprop.study.graphs import load_graph
from pprop.study.report.graph_claims import Claim, graph_claims, model_claims
from pprop.study.report.row_claims import Evidence, row_claims, sweep_runs
from pprop.study.store.row import Row
from pprop.study.store.store import Store
from pprop.study.tables.entries import ByDataset, Samples, dataset_order, dataset_title, entries, read_all_samples
from pprop.study.tables.runs import published_and_own
from pprop.study.tables.spread import more_runs_entries

# What experiments show that have no figure.
IN_TABLES = ("accuracy", "time", "rerun", "quick")


def _key(cell: Cell) -> str:
    """Return the name of a model for claims; the paper's own of the two ways to propagate features has the plain one."""
    return f"{cell.model}_tuned" if cell.model == "bootstrapped_fp" and not is_original(cell) else cell.model


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

    @cached_property
    def everything(self) -> Samples:
        """All rows."""
        return read_all_samples(self.store)

    @cached_property
    def published(self) -> Mapping[str, Experiment]:
        """The experiments that come with pprop, also on a user's graphs."""
        return published_and_own(self.experiments)[0]

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
    def drawn(self) -> list[Drawn]:
        """The figures."""
        return figures_of(self.begun.values(), self._rows_of, self.graph_of)

    @cached_property
    def evidence(self) -> Evidence:
        """What the paper's claims are checked on."""
        main, many, times = (
            {name: group for name, group in each.items() if name in DATASETS}
            for each in (self.main, self.many, self.times)
        )
        run = {name: [entry for entry in group if entry.sample is not None] for name, group in main.items()}
        papers = {dataset_title(name) for name in DATASETS}
        panels = {
            each.name: {one.dataset: one for one in each.data if one.dataset in papers}
            for each in self.drawn
            if each.name in ("distance", "propagation")
        }
        begun = [one for one in self.begun.values() if any(point.cell.dataset in DATASETS for point in one.points)]
        return {
            "main": main,
            "many": many,
            "times": times,
            "growth": {"all": times},
            "accuracy": {name: {_key(each.cell): each.accuracies for each in group} for name, group in run.items()},
            "distance": panels.get("distance", {}),
            "ways": panels.get("propagation", {}),
            **sweep_runs(begun, self._rows_of),
        }

    @cached_property
    def claims(self) -> tuple[list[Claim], list[str]]:
        """The paper's claims that were checked, and the statements for which rows are missing; none of a user's graphs."""
        papers = [name for name in self.datasets if name in DATASETS]
        if self.datasets and not papers:
            return [], []
        found = model_claims() if any(name in DATASETS for name in self.main) else []
        for name in papers:
            with suppress(PpropError, OSError):  # the table of datasets says why
                found += graph_claims(self.graph_of(name), dataset_title(name))
        of_rows, missing = row_claims(self.evidence)
        return [*found, *of_rows], missing

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
