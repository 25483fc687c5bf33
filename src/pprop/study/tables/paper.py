"""The tables that the paper has, too, ours beside the printed values: datasets, accuracy and macro F1.

Where all graphs are the user's, there is nothing printed, and no column for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import PpropError
from pprop._validate import reject
from pprop.datasets import DATASETS
from pprop.datasets.registry import sizes_of
from pprop.graph import Graph
from pprop.graph.files import read_json
from pprop.study.graphs import load_graph, of_own, split_sentence
from pprop.study.stats.estimate import Estimate, combined_intervals, estimate
from pprop.study.stats.paired import split_estimate
from pprop.study.tables.entries import ByDataset, Metric, TableEntry, dataset_title
from pprop.study.tables.table import NOT_RUN, Cells, Code, Measure, Number, Strong, Table, Value, number

TITLES: dict[Metric, str] = {
    "accuracy": "Accuracy in percent",
    "f1": "Macro F1 by the paper's definition",
    "f1_macro": "Macro F1 by the usual definition",
}


@final
@dataclass(frozen=True, eq=False)
class Score:
    """A metric of one entry in the unit in which it is printed: accuracy in percent, F1 in [0, 1].

    Attributes
    ----------
    entry
        Whose it is.
    metric
        Which one.
    ours, over_splits
        The mean with its interval over runs, and over splits; None where nothing was run.
    paper, paper_half
        What the paper printed; None where it printed nothing.
    """

    entry: TableEntry
    metric: Metric
    ours: Estimate | None
    over_splits: Estimate | None
    paper: float | None
    paper_half: float | None

    @property
    def title(self) -> str:
        """Of the model; it says so where the published values are those of the authors' second run."""
        again = self.entry.experiment is not None and self.entry.experiment.shows == "rerun"
        return f"{self.entry.title}, re-run" if again else self.entry.title

    @property
    def decimals(self) -> int:
        """As many as the paper prints."""
        return 2 if self.metric == "accuracy" else 4

    @property
    def our_half(self) -> float | None:
        """The number behind our ±; a single run has none."""
        return None if self.ours is None or self.ours.runs < 2 else self.ours.half

    @property
    def our_value(self) -> Value:
        """Ours as a table shows it."""
        if self.ours is None or self.over_splits is None:
            return NOT_RUN
        alone = len({row.key.seeds.split for row in self.entry.rows}) == self.ours.runs  # then both are the same
        return Measure(self.ours.mean, self.our_half, self.decimals, None if alone else self.over_splits.half)

    @property
    def paper_value(self) -> Value:
        """The paper's as a table shows it."""
        return None if self.paper is None else Measure(self.paper, self.paper_half, self.decimals)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours.mean - self.paper

    @property
    def intervals(self) -> float | None:
        """The same in units of the combined interval."""
        if self.ours is None or self.paper is None or self.paper_half is None or self.our_half is None:
            return None
        return combined_intervals(self.ours.mean, self.our_half, self.paper, self.paper_half)

    @property
    def agrees(self) -> bool | None:
        """Whether ours and the paper's differ by no more than the combined interval; None without either."""
        return None if self.intervals is None else abs(self.intervals) <= 1


def score(entry: TableEntry, metric: Metric) -> Score:
    """Return a metric of an entry.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> experiment = load_experiments()["gasteiger_2019_appnp_cora_ml"]
    >>> made = score(TableEntry(experiment.points[0].cell, "APPNP", experiment, None), "accuracy")
    >>> made.paper, made.ours
    (85.09, None)
    """
    unit = 100.0 if metric == "accuracy" else 1.0
    values = {seeds: unit * value for seeds, value in entry.values(metric).items()}
    ours = (estimate([*values.values()]), split_estimate(values)) if values else (None, None)
    printed = entry.published
    paper = {"accuracy": (printed.accuracy, printed.accuracy_interval), "f1": (printed.f1, printed.f1_interval)}
    return Score(entry, metric, *ours, *paper.get(metric, (None, None)))


def overview_table(by_dataset: ByDataset, metric: Metric, beside_paper: bool = False) -> Table:
    """Return the table in the paper's layout: models down, datasets across, the best of each column in bold.

    With `beside_paper` the paper's values are next to ours, and cells with fewer runs than the protocol has are named below.

    Examples
    --------
    >>> overview_table({}, "accuracy").columns
    (TableColumn(title='Model', kind='text'),)
    """
    scores = {name: {entry.title: score(entry, metric) for entry in group} for name, group in by_dataset.items()}

    def bold(column: dict[str, Value]) -> dict[str, Value]:
        measures = {title: value for title, value in column.items() if isinstance(value, Measure)}
        best = max((measure.mean for measure in measures.values()), default=None)
        return column | {title: Strong(measure) for title, measure in measures.items() if measure.mean == best}

    columns: list[dict[str, Value]] = []
    for group in scores.values():
        columns.append(bold({title: one.our_value for title, one in group.items()}))
        if beside_paper:
            columns.append(bold({title: one.paper_value for title, one in group.items()}))
    titles = dict.fromkeys(title for group in scores.values() for title in group)
    rows = ((title, *(column.get(title) for column in columns)) for title in titles)
    paper = " | paper:measure" if beside_paper else ""
    heads = " | ".join(["Model:text", *(f"{dataset_title(name)}:measure{paper}" for name in scores)])
    caption = f"{TITLES[metric]}: mean ± 95 % interval over runs (over splits)"
    caption += ", beside the paper's" if beside_paper else ""
    notes = tuple(
        f"{one.entry.where}: {one.ours.runs} of {one.entry.wanted} runs."
        for group in scores.values()
        for one in group.values()
        if one.ours is not None and one.entry.wanted is not None and one.ours.runs < one.entry.wanted
    )
    return Table.of(caption, heads, {None: rows}, notes if beside_paper else ())


def score_table(by_dataset: ByDataset, metric: Metric, reruns: Iterable[TableEntry] = ()) -> Table:
    """Return the table of a metric dataset by dataset: ours, the paper's, the difference, and the command.

    Parameters
    ----------
    by_dataset
        As `entries` gives them.
    metric
        Which one.
    reruns
        Entries that have other published values: the authors' second run.

    Examples
    --------
    >>> [column.title for column in score_table({}, "f1").columns]
    ['Model', 'Runs', 'Ours', 'Paper', 'Difference', 'In intervals', 'Command']
    """
    again = [entry for entry in reruns if entry.sample is not None]

    def row(one: Score) -> Cells:
        count, wanted = 0 if one.ours is None else one.ours.runs, one.entry.wanted
        runs = str(count) if wanted is None or wanted == count else f"{count} of {wanted}"
        apart = number(one.difference, one.decimals, signed=True), number(one.intervals, 1, signed=True)
        return one.title, runs, one.our_value, one.paper_value, *apart, Code(one.entry.command)

    groups: dict[str | None, list[Cells]] = {}
    for name, group in by_dataset.items():
        shown = [*group, *(entry for entry in again if entry.cell.dataset == name)]
        groups[dataset_title(name)] = [row(score(entry, metric)) for entry in shown]
    notes = ("Re-run: beside what the authors' own code gave when they ran it again.",) if again else ()
    heads = "Model:text | Runs | Ours:measure | Paper:measure | Difference | In intervals | Command:code"
    made = Table.of(f"{TITLES[metric]}, beside the paper's", heads, groups, notes)
    if of_own(by_dataset):
        return replace(made, caption=TITLES[metric]).without("Paper", "Difference", "In intervals")
    return made


def disagreements(scores: Iterable[Score]) -> tuple[str, ...]:
    """Return a sentence for each score that is further from the paper's than the combined interval.

    Examples
    --------
    >>> disagreements([])
    ()
    """
    return tuple(_disagreement(each) for each in scores if each.agrees is False)


def _disagreement(one: Score) -> str:
    difference, runs = one.difference or 0.0, 0 if one.ours is None else one.ours.runs
    unit = " points" if one.metric == "accuracy" else ""
    of_runs = "" if runs == one.entry.wanted else f" ({runs} of {one.entry.wanted} runs)"
    return (
        f"{one.title} on {dataset_title(one.entry.cell.dataset)}{of_runs}: ours {one.our_value}, the paper's "
        f"{one.paper_value}; ours is {Number(abs(difference), one.decimals)}{unit} "
        f"{'higher' if difference > 0 else 'lower'}, {Number(abs(one.intervals or 0.0), 1)} combined intervals."
    )


# Where a study's folder keeps the averages: the larger graphs need half a minute.
CACHE = "shortest_paths.json"

# The paper's label rates and average shortest paths.
PRINTED = {"citeseer": (0.036, 9.31), "cora_ml": (0.047, 5.27), "pubmed": (0.003, 6.34), "ms_academic": (0.016, 5.43)}
# Nodes of the full graphs, to which the printed label rates refer; the others are connected as they come.
FULL_SIZES = {"citeseer": 3312, "cora_ml": 2995}
MOST_NODES = 50_000  # of a graph whose average shortest path is computed: the work grows with the square
BLOCK = 16  # words of 64 start nodes each that are searched from at once: few enough for a processor's cache

_Words: TypeAlias = NDArray[np.uint64]
_BITS_IN = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)


def dataset_table(names: Sequence[str], folder: Path | None = None) -> Table:
    """Return the table for the datasets in `names`; those whose file is not here are named below it.

    Parameters
    ----------
    names
        For `load_graph`.
    folder
        A study's folder, which has the user's graphs and keeps the average shortest paths for the next time; None
        computes them anew.

    Examples
    --------
    >>> [str(value) for value in dataset_table(["citeseer"]).groups[0].rows[0]]
    ['Citeseer', '6', '3703', '2110', '3668', '0.057', '0.036', '0.036', '9.31', '9.31']
    """
    rows: list[Cells] = []
    notes: list[str] = []
    for name in names:
        try:
            graph = load_graph(name, folder)
        except (PpropError, OSError) as error:
            notes.append(f"{dataset_title(name)} could not be loaded here: {' '.join(str(error).split())}")
            continue
        rows.append(_row(name, graph, folder))
        if name in DATASETS and sizes_of(graph) != DATASETS[name].sizes:
            notes.append(f"{dataset_title(name)}: the sizes differ from the paper's, {DATASETS[name].sizes}.")
        if name not in DATASETS:
            notes.append(split_sentence(graph))
        if graph.n_nodes > MOST_NODES:
            notes.append(f"{dataset_title(name)}: the average shortest path of so many nodes is not computed.")
    heads = (
        "Dataset:text | Classes | Features | Nodes | Edges | Label rate | Label rate of the full graph | "
        "Label rate, paper | Average shortest path | Average shortest path, paper"
    )
    made = Table.of("Datasets: the largest component of each", heads, {None: rows}, notes)
    printed = ("Label rate of the full graph", "Label rate, paper", "Average shortest path, paper")
    return made.without(*printed) if of_own(names) else made


def cached_shortest_path(graph: Graph, folder: Path | None) -> float:
    """Return the average shortest path of a graph, from the study's folder if it is known there.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> cached_shortest_path(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])), None)
    1.0
    """
    if folder is None:
        return mean_shortest_path(graph)
    path = folder / CACHE
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # a cache that is not there, or is not readable, is written anew
        found = read_json(path)
        known = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    value = known.get(graph.fingerprint)
    if not isinstance(value, float):
        value = known[graph.fingerprint] = mean_shortest_path(graph)
        with suppress(OSError):  # a study that may only be read has its report all the same
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(known, sort_keys=True), encoding="utf-8")
            part.replace(path)
    return value


def _row(name: str, graph: Graph, folder: Path | None) -> Cells:
    sizes = (Number(sizes_of(graph)[key], 0) for key in ("classes", "features", "nodes", "edges"))
    rates = (Number(20 * graph.n_classes / n, 3) for n in (graph.n_nodes, FULL_SIZES.get(name, graph.n_nodes)))
    rate, path = PRINTED.get(name, (None, None))
    ours = None if graph.n_nodes > MOST_NODES else cached_shortest_path(graph, folder)
    return dataset_title(name), *sizes, *rates, number(rate, 3), number(ours), number(path)


def mean_shortest_path(graph: Graph) -> float:
    """Return the average number of edges on the shortest path between two different nodes that are connected.

    Exact. Every node is a start: bit s of a node's words says whether start s has reached it, so that one pass over the
    edges is a step of 1024 searches.

    Parameters
    ----------
    graph
        Undirected, at least one edge; weights do not count.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> mean_shortest_path(path)
    2.0
    """
    if graph.directed or not graph.n_entries:
        reject("graph", "mean_shortest_path", "undirected and have edges", graph)
    hops = pairs = 0
    for start in range(0, graph.n_nodes, 64 * BLOCK):
        nodes = np.arange(start, min(start + 64 * BLOCK, graph.n_nodes))
        reached = np.zeros((graph.n_nodes, -(-len(nodes) // 64)), dtype=np.uint64)
        word, bit = np.divmod(nodes - start, 64)
        reached[nodes, word] = np.left_shift(np.uint64(1), bit.astype(np.uint64))
        before, distance = len(nodes), 0
        while True:
            reached = _step(graph, reached)
            now, distance = int(_BITS_IN[reached.view(np.uint16)].sum(dtype=np.int64)), distance + 1
            if now == before:
                break
            hops, pairs, before = hops + distance * (now - before), pairs + now - before, now
    return hops / pairs


def _step(graph: Graph, reached: _Words) -> _Words:
    """Return the words of each node joined with those of its neighbours, shape (n, words)."""
    joined = reached.copy()
    rows = np.flatnonzero(np.diff(graph.indptr))  # reduceat gives an empty row its neighbour's value
    joined[rows] |= np.bitwise_or.reduceat(reached[graph.indices], graph.indptr[rows], axis=0)
    return joined
