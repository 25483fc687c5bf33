"""The leads of PPNP and APPNP over test nodes: what p-values over splits, which share these nodes, do not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import final

import numpy as np

from pprop._errors import PpropError
from pprop.graph import Graph
from pprop.study.graphs import protocol_of
from pprop.study.stats.estimate import student_half
from pprop.study.stats.nodes import OverNodes, over_nodes, right_shares
from pprop.study.stats.paired import split_gaps
from pprop.study.store.row import Row
from pprop.study.tables.entries import ByDataset, TableEntry, dataset_title, is_papers_baseline
from pprop.study.tables.p_values import Comparison, comparisons
from pprop.study.tables.table import Cells, Measure, Number, Table, listed, p_words

NORMAL = 1.96  # standard errors: the end of a 95 % interval


@final
@dataclass(frozen=True, eq=False)
class NodeLead:
    """A comparison of accuracy, with its uncertainty over test nodes.

    Attributes
    ----------
    few
        Over the splits of the accuracy table.
    many
        Over all splits there are; None where there are no more.
    nodes
        The difference in points over test nodes, from the runs of the accuracy table, which have predictions.
    """

    few: Comparison
    many: Comparison | None
    nodes: OverNodes

    @property
    def most(self) -> Comparison:
        """The comparison over the most splits."""
        return self.few if self.many is None else self.many

    @property
    def z(self) -> float:
        """The lead over the most splits, in standard errors over test nodes; infinite without any."""
        return self.z_of(self.most)

    def z_of(self, one: Comparison) -> float:
        """Return a lead in standard errors over test nodes; infinite where these are zero."""
        points = 100 * one.splits.difference
        return points / self.nodes.error if self.nodes.error > 0 else float(np.copysign(np.inf, points))

    @property
    def of_these_nodes(self) -> bool:
        """Whether the lead is significant over splits, and within what other test nodes may change."""
        return self.most.wins(over_splits=True) and self.z < NORMAL


def node_leads(
    main: ByDataset,
    many: ByDataset,
    with_predictions: Callable[[TableEntry], Sequence[Row]],
    graph_of: Callable[[str], Graph],
) -> list[NodeLead]:
    """Return the comparisons of accuracy whose runs all have predictions, on the graphs that are here.

    Parameters
    ----------
    main, many
        Entries of the accuracy table, and what `more_runs_entries` returns.
    with_predictions
        The rows of an entry that have predictions.
    graph_of
        The graph of a dataset; it may raise `DatasetError`.

    Examples
    --------
    >>> node_leads({}, {}, lambda entry: [], lambda name: None)
    []
    """
    found: list[NodeLead] = []
    for name, entries in main.items():
        few = comparisons(entries, "accuracy")
        more = {one.where: one for one in comparisons(many.get(name, ()), "accuracy")}
        rows = {entry.cell.config: with_predictions(entry) for entry in entries if entry.sample is not None}
        whole = {
            entry.cell.config for entry in entries if entry.sample and len(rows[entry.cell.config]) == len(entry.rows)
        }
        few = [one for one in few if {one.entry.cell.config, one.opponent.cell.config} <= whole]
        with suppress(PpropError, OSError):  # the table of datasets says why a graph is not here
            graph = graph_of(name) if few else None
            if graph is None or graph.labels is None:
                continue
            if {row.key.data for config in whole for row in rows[config]} != {graph.fingerprint}:
                continue
            test = protocol_of(graph).test
            right = {config: right_shares(rows[config], graph.labels, test) for config in sorted(whole)}
            sides = [(right[one.entry.cell.config], right[one.opponent.cell.config]) for one in few]
            gaps = 100 * np.stack([first - second for first, second in sides], axis=1)
            found += [NodeLead(one, more.get(one.where), each) for one, each in zip(few, over_nodes(gaps), strict=True)]
    return found


def over_nodes_table(leads: Iterable[NodeLead], caption: str = "Leads over splits, and over test nodes") -> Table:
    """Return each lead in points with its interval over splits, and over test nodes.

    >>> over_nodes_table([]).n_rows
    0
    """

    def points(one: Comparison) -> Measure:
        gaps = [100 * gap for gap in split_gaps(one.entry.values("accuracy"), one.opponent.values("accuracy")).values()]
        return Measure(sum(gaps) / len(gaps), student_half(gaps), 2)

    def row(one: NodeLead) -> Cells:
        later = (None, None) if one.many is None else (points(one.many), Number(one.z, 1, signed=True))
        over = Number(one.nodes.half, 2), Number(one.z_of(one.few), 1, signed=True)
        return one.few.entry.title, one.few.opponent.title, points(one.few), *over, *later

    def where(one: NodeLead) -> str:
        return f"{dataset_title(one.few.entry.cell.dataset)}, {one.nodes.nodes:,} test nodes"

    groups: dict[str | None, list[Cells]] = {title: [*map(row, group)] for title, group in groupby(leads, key=where)}
    heads = (
        "Model:text | Against:text | Difference:measure | ± over test nodes | Standard errors | "
        "Over more splits:measure | Standard errors of it"
    )
    made = Table.of(caption, heads, groups)
    more = any(cells[5] is not None for group in groups.values() for cells in group)
    return made if more else made.without("Over more splits", "Standard errors of it")


def over_nodes_sentence(leads: Iterable[NodeLead]) -> str:
    """Return which leads over the paper's baselines are about the test nodes that there are; empty where none is.

    >>> over_nodes_sentence([])
    ''
    """
    won = [one for one in leads if is_papers_baseline(one.few.opponent.cell) and one.most.wins(over_splits=True)]
    parts: list[str] = []
    for dataset, group in groupby(
        (one for one in won if one.of_these_nodes), key=lambda one: one.few.entry.cell.dataset
    ):
        these = list(group)
        against: dict[str, list[str]] = {}
        for one in these:
            against.setdefault(one.few.entry.title, []).append(one.few.opponent.title)
        same: dict[str, list[str]] = {}
        for model, opponents in against.items():
            same.setdefault(listed(opponents), []).append(model)
        told = listed([f"of {listed(models)} over {opponents}" for opponents, models in same.items()])
        nodes, splits = these[0].nodes.nodes, max(one.most.splits.pairs for one in these)
        low, high = (Number(extreme(one.z for one in these), 1) for extreme in (min, max))
        largest = p_words(max(one.most.splits.holm for one in these))
        errors = f"{low}" if str(low) == str(high) else f"{low} to {high}"
        parts.append(
            f"On {dataset_title(dataset)} the leads {told} are {errors} standard errors over its {nodes:,} test nodes. "
            f"Their p-values over {splits} splits ({largest}) are about these nodes, and do not carry over to others."
        )
    if not parts:
        return ""
    certain = [one.z for one in won if not one.of_these_nodes]
    rest = f" All other significant leads are at least {Number(min(certain), 1)} standard errors." if certain else ""
    return f"All splits of a graph share its test nodes, as in the paper. {' '.join(parts)}{rest}"
