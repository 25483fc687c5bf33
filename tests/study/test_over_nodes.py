"""Leads over test nodes: shares of right runs by hand, the bootstrap beside its normal limit, and what the pages say of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pprop import Graph, load_dataset
from pprop._errors import DatasetError, InputError
from pprop.datasets import TEST_SEEDS
from pprop.study.cell import Seeds, make_cell
from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import load_experiments
from pprop.study.graphs import protocol_of
from pprop.study.stats.nodes import over_nodes, right_shares
from pprop.study.store.row import Row
from pprop.study.store.store import Pool
from pprop.study.tables.entries import Sample, Samples, TableEntry, entries
from pprop.study.tables.over_nodes import NodeLead, node_leads, over_nodes_sentence, over_nodes_table

MakeRows = Callable[..., list[Row]]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_dataset("citeseer")


@pytest.fixture(scope="module")
def paper() -> dict[str, Experiment]:
    return load_experiments()


def test_the_interval_over_nodes_is_that_of_a_mean_over_nodes() -> None:
    values = np.random.default_rng(1).normal(0.4, [5.0, 9.0], size=(610, 2))
    for column, found in zip(values.T, over_nodes(values), strict=True):
        assert (found.mean, found.nodes) == (pytest.approx(column.mean()), 610)
        assert found.error == pytest.approx(float(stats.sem(column)))
        assert found.half == pytest.approx(1.96 * float(stats.sem(column)), rel=0.12)
    assert over_nodes(values) == over_nodes(values)
    with pytest.raises(InputError, match="rows"):
        right_shares([], np.zeros(3, dtype=np.int64), np.arange(2))


def rows_of(
    make_rows: MakeRows, graph: Graph, model: str, wrong: Sequence[int], lead: float = 0.0, **fields: Any
) -> list[Row]:
    """20 runs of a model that errs on the test nodes at these places alone; accuracies beside GCN's by `lead` in every run."""
    cell, test = make_cell(model, {}, "citeseer"), protocol_of(graph).test
    assert graph.labels is not None
    predictions = graph.labels.astype(np.uint8)
    predictions[test[list(wrong)]] += 1
    given = {"data": graph.fingerprint, "predictions": predictions, "seeds": [Seeds(seed, 0) for seed in TEST_SEEDS]}
    same = make_rows(make_cell("gcn", {}, "citeseer"), **given, **fields)
    wiggle = 1e-4 * np.random.default_rng(len(model)).standard_normal(len(same))
    return [
        replace(row, key=replace(row.key, config=cell.config), accuracy=row.accuracy + lead + float(more))
        for row, more in zip(same, wiggle, strict=True)
    ]


def leads_of(
    paper: dict[str, Experiment], graph_of: Callable[[str], Graph], groups: dict[str, list[Row]], many: Any = None
) -> list[NodeLead]:
    samples: list[Sample] = []
    for model, rows in groups.items():
        cell = make_cell(model, {}, "citeseer")
        samples.append(Sample(cell, Pool(cell, "c1", rows[0].key.data, tuple(rows))))
    main = entries(paper, Samples(samples))

    def with_predictions(entry: TableEntry) -> list[Row]:
        return [row for row in entry.rows if len(row.predictions)]

    return node_leads(main, main if many else {}, with_predictions, graph_of)


def test_a_lead_on_a_few_nodes_is_certain_over_splits_and_not_over_nodes(
    make_rows: MakeRows, graph: Graph, paper: dict[str, Experiment]
) -> None:
    groups = {
        "gcn": rows_of(make_rows, graph, "gcn", range(3)),  # right everywhere else: 3 of 610 nodes
        "gat": rows_of(make_rows, graph, "gat", range(120), lead=-0.19),
        "appnp": rows_of(make_rows, graph, "appnp", (), lead=0.005),
    }
    gcn, gat = leads_of(paper, lambda _: graph, groups)
    assert [one.few.opponent.title for one in (gcn, gat)] == ["GCN", "GAT"]
    assert gcn.nodes.mean == pytest.approx(100 * 3 / 610)
    assert gcn.nodes.nodes == 610
    share = 3 / 610
    error = 100 * np.sqrt(share * (1 - share) / 610)
    assert gcn.z == pytest.approx(100 * gcn.few.splits.difference / error, rel=1e-2)
    assert gcn.of_these_nodes
    assert gcn.few.splits.p < 1e-6
    assert gat.z > 10
    assert not gat.of_these_nodes
    first, second = over_nodes_table([gcn, gat]).groups[0].rows
    assert over_nodes_table([gcn, gat]).groups[0].title == "Citeseer, 610 test nodes"
    assert [str(first[1]), str(second[1])] == ["GCN", "GAT"]
    assert len(first) == 5  # no more splits
    assert over_nodes_sentence([gcn, gat]) == (
        "All splits of a graph share its test nodes, as in the paper. On Citeseer the leads of APPNP over GCN are "
        f"{gcn.z:.1f} standard errors over its 610 test nodes. Their p-values over 20 splits (p < 1e−6) are about these nodes, "
        f"and do not carry over to others. All other significant leads are at least {gat.z:.1f} standard errors."
    )
    assert over_nodes_sentence([gat]) == ""
    (again, _) = leads_of(paper, lambda _: graph, groups, many=True)
    assert again.many is not None
    assert len(over_nodes_table([again]).groups[0].rows[0]) == 7


def test_without_predictions_or_the_graph_of_the_rows_nothing_is_said(
    make_rows: MakeRows, graph: Graph, paper: dict[str, Experiment]
) -> None:
    groups = {model: rows_of(make_rows, graph, model, range(3)) for model in ("gcn", "appnp")}

    def absent(name: str) -> Graph:
        raise DatasetError(f"{name} is not here.")

    assert len(leads_of(paper, lambda _: graph, groups)) == 1
    assert leads_of(paper, absent, groups) == []
    bare = [replace(row, predictions=np.zeros(0, dtype=np.uint8)) for row in groups["gcn"]]
    assert leads_of(paper, lambda _: graph, groups | {"gcn": bare}) == []
    other = {
        model: [replace(row, key=replace(row.key, data="other")) for row in rows] for model, rows in groups.items()
    }
    assert leads_of(paper, lambda _: graph, other) == []


@pytest.mark.slow
def test_the_pages_have_the_leads_of_citeseer_over_its_test_nodes(
    published: tuple[Row, ...], graph: Graph, paper: dict[str, Experiment]
) -> None:
    """Computed again from the rows: shares of right runs by node, and Student's test over 200 splits."""
    labels, test = graph.labels, protocol_of(graph).test
    assert labels is not None
    names = ("gcn", "gat", "bootstrapped_fp", "ppnp", "appnp")
    cells = {name: paper[f"gasteiger_2019_{name}_citeseer"].points[0].cell for name in names}
    of_config: dict[str, list[Row]] = {cell.config: [] for cell in cells.values()}
    for row in published:
        if row.key.config in of_config and row.key.data == graph.fingerprint:
            of_config[row.key.config].append(row)
    right: dict[str, Any] = {}
    means: dict[str, dict[int, float]] = {}
    for name, cell in cells.items():
        rows = of_config[cell.config]
        newest = max(
            {row.key.revision for row in rows}, key=lambda one: max(r.created for r in rows if r.key.revision == one)
        )
        rows = [row for row in rows if row.key.revision == newest]
        shares = {
            seed: np.mean(
                [row.predictions[test] == labels[test] for row in rows if row.key.seeds.split == seed], axis=0
            )
            for seed in TEST_SEEDS
        }
        right[name] = np.mean([*shares.values()], axis=0)
        splits = {row.key.seeds.split for row in rows}
        means[name] = {s: float(np.mean([r.accuracy for r in rows if r.key.seeds.split == s])) for s in splits}
    z: list[float] = []
    p: list[float] = []
    for model in ("ppnp", "appnp"):
        for other in ("gcn", "gat", "bootstrapped_fp"):
            gaps = [100 * (means[model][split] - means[other][split]) for split in means["appnp"]]
            assert len(gaps) == 200
            z.append(float(np.mean(gaps) / stats.sem(100 * (right[model] - right[other]))))
            p.append(float(stats.ttest_1samp(gaps, 0.0).pvalue))
    assert 1e-26 < min(p) < 1e-24
    assert max(p) < 1e-6  # the printed bound
    page = " ".join((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split())
    told = f"over GCN, GAT and Bt. FP are {min(z):.1f} to {max(z):.1f} standard errors over its 610 test nodes."
    assert told in page
    assert "over 200 splits (p \\< 1e−6) are about these nodes" in page
