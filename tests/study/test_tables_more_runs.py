"""More runs than the accuracy table's: kept out of it, and ranked in a table of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pprop.datasets import TEST_SEEDS
from pprop.study.cell import Cell, Seeds, make_cell, split_seeds
from pprop.study.experiment import Experiment, Point
from pprop.study.experiment_folder import load_experiments
from pprop.study.report.page import Block
from pprop.study.report.sections import thousand_runs
from pprop.study.run.progress import study_status
from pprop.study.store.row import Row
from pprop.study.store.store import Pool, Store
from pprop.study.tables.entries import ByDataset, Sample, Samples, entries, read_all_samples, read_samples
from pprop.study.tables.p_values import more_leads_table
from pprop.study.tables.spread import more_runs_entries, more_runs_table, standings
from pprop.study.tables.table import Measure, PValue, Strong, Table

pytestmark = pytest.mark.slow

MakeRows = Callable[..., list[Row]]
MANY = [Seeds(split, init) for init in range(5) for split in split_seeds("test", 200)]
FEW = [Seeds(split, init) for init in range(5) for split in TEST_SEEDS]
NAME = "pprop_2026_runs_citeseer"


@pytest.fixture(scope="module")
def paper() -> dict[str, Experiment]:
    return load_experiments()


def samples_of(*groups: list[Row]) -> Samples:
    found: list[Sample] = []
    for rows in groups:
        cell = Cell.parse(rows[0].cell)
        pools = [
            Pool(
                cell,
                name,
                "d1",
                tuple(sorted((row for row in rows if row.key.revision == name), key=lambda row: row.key)),
            )
            for name in sorted({row.key.revision for row in rows}, reverse=True)
        ]
        found.append(Sample(cell, pools[0], tuple(pools[1:])))
    return Samples(found)


def blocks_of(paper: dict[str, Experiment], everything: Samples, main: ByDataset, shown: Samples) -> list[Block]:
    many = more_runs_entries(paper, everything, main, shown)
    made: Any = SimpleNamespace(published=paper, everything=everything, main=main, samples=shown, many=many)
    return list(thousand_runs(made))


def shifted(rows: list[Row], few: float) -> list[Row]:
    """Add to the accuracy of the runs of the accuracy table alone."""
    return [replace(row, accuracy=row.accuracy + (few if row.key.seeds in FEW else 0.0)) for row in rows]


def test_the_runs_of_the_tables_are_those_of_the_accuracy_experiments(paper: dict[str, Experiment]) -> None:
    for experiment in paper.values():
        if experiment.shows == "accuracy":
            cell = experiment.points[0].cell
            others = [one for one in paper.values() if one.shows != "runs" and cell in [p.cell for p in one.points]]
            assert {seeds for one in others for seeds in one.seeds(cell=cell)} == set(experiment.seeds(cell=cell))


def test_samples_are_those_of_a_store_that_never_had_the_additional_runs(tmp_path: Path, make_rows: MakeRows) -> None:
    gcn, mlp = make_cell("gcn", {}, "citeseer"), make_cell("mlp", {}, "citeseer")
    own = make_rows(Cell("mine:build", {}, "citeseer"), seeds=MANY[:30])
    before = [*make_rows(gcn), *make_rows(mlp, seeds=FEW[:20]), *own]
    later = {
        "revision": "c2",
        "created": "2027-01-01T00:00:00+00:00",
    }  # the newest rows of the cell, of another version
    more = [
        *make_rows(gcn, 0.1, [seeds for seeds in MANY if seeds not in FEW]),
        *make_rows(mlp, 0.1, [seeds for seeds in MANY if seeds not in FEW], **later),
        *make_rows(mlp, 0.1, [Seeds(TEST_SEEDS[0], 5)]),  # an initialisation that the table has not
        *make_rows(make_cell("jk", {}, "citeseer"), 0.1, MANY[20:30]),  # a model with additional runs alone
    ]
    found: list[dict[str, list[Row]]] = []
    for name, rows in (("before", before), ("after", before + more)):
        with Store.open(tmp_path / name, create=True) as store:
            store.add_all(rows)
            samples = read_samples(store)
            found.append({key: list(sample.rows) for key, sample in samples.items()})
            assert all(not sample.others for sample in samples.values())
            everything = read_all_samples(store)
            assert sum(len(p.rows) for each in everything.values() for p in (each.pool, *each.others)) == len(rows)
    keys = [{config: [(r.key, r.accuracy, r.created) for r in rows] for config, rows in one.items()} for one in found]
    assert keys[0] == keys[1]
    assert {len(rows) for rows in keys[1].values()} == {100, 20, 30}


def test_status_counts_for_each_experiment_the_runs_and_seconds_that_it_names(
    tmp_path: Path, make_rows: MakeRows, paper: dict[str, Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pprop.study.run.progress._is_current", lambda group, data: True)
    with Store.open(tmp_path, create=True) as store:
        store.add_all(make_rows(make_cell("gcn", {}, "citeseer"), seeds=MANY, seconds=2.0))
        status = study_status(store, [paper["gasteiger_2019_gcn_citeseer"], paper[NAME]])
    assert [(each.done, each.wanted, each.seconds) for each in status.experiments] == [
        (100, 100, 200.0),
        (1000, 8400, 2000.0),
    ]


def test_models_are_ranked_by_all_their_runs_and_changes_are_told(
    paper: dict[str, Experiment], make_rows: MakeRows
) -> None:
    gcn = shifted(make_rows(make_cell("gcn", {}, "citeseer"), 0.75, MANY), 0.02)
    appnp = make_rows(make_cell("appnp", {}, "citeseer"), 0.76, MANY)
    mlp = make_rows(make_cell("mlp", {}, "citeseer"), 0.6, MANY)
    few_only = make_rows(make_cell("jk", {}, "citeseer"), 0.9, FEW)
    everything = samples_of(gcn, appnp, mlp, few_only)
    table = more_runs_table(paper, everything, everything.published(paper))
    (group,) = table.groups
    assert group.title == "Citeseer"
    assert [row[0] for row in group.rows] == ["APPNP", "GCN", "MLP"]  # JK has no runs beyond the 100
    assert [str(row[1]) for row in group.rows] == ["1000"] * 3
    assert [str(row[4]) for row in group.rows] == ["100"] * 3
    assert [row[6] for row in group.rows] == [Strong("2"), Strong("1"), "3"]
    note, jk, outside = table.notes
    assert note.startswith("Citeseer: ranks change with more runs: APPNP from 2 to 1, GCN from 1 to 2. ")
    assert (
        jk
        == "Citeseer: no more runs than the accuracy table's were made of JK; at their pace they would take 1,800 seconds."
    )
    few = {each.title: each.few for each in standings(paper[NAME], everything, everything.published(paper))[0]}
    assert not few["GCN"].low <= 75.2 <= few["GCN"].high  # shifted by two points, and by 0.2 in all
    assert outside.startswith("In 1 of 3 cells ")
    best = standings(paper[NAME], everything, everything.published(paper))[0][0]
    assert best.many.mean == pytest.approx(100 * np.mean([row.accuracy for row in appnp]))
    assert best.few.mean == pytest.approx(100 * np.mean([row.accuracy for row in appnp if row.key.seeds in FEW]))


def test_a_model_alone_is_not_ranked(paper: dict[str, Experiment], make_rows: MakeRows) -> None:
    everything = samples_of(make_rows(make_cell("gcn", {}, "citeseer"), 0.75, MANY))
    table = more_runs_table(paper, everything, everything.published(paper))
    assert table.groups == ()
    assert table.notes == ("Citeseer: GCN alone has all runs, so there is no order yet.",)


def test_the_lead_and_the_chance_of_another_order_agree_with_student_and_the_normal_law(
    paper: dict[str, Experiment], make_rows: MakeRows
) -> None:
    rows = {
        model: make_rows(make_cell(model, {}, "citeseer"), mean, MANY)
        for model, mean in (("gcn", 0.75), ("appnp", 0.7515))
    }
    everything = samples_of(*rows.values())
    (first, last), missing, _ = standings(paper[NAME], everything, everything.published(paper))
    means = {
        model: np.array(
            [np.mean([r.accuracy for r in made if r.key.seeds.split == split]) for split in split_seeds("test", 200)]
        )
        for model, made in rows.items()
    }
    gap = 100 * (means["appnp"] - means["gcn"])
    interval = stats.ttest_rel(100 * means["appnp"], 100 * means["gcn"]).confidence_interval()
    assert missing == []
    assert first.lead == pytest.approx(gap.mean())
    assert first.lead_half == pytest.approx((interval.high - interval.low) / 2)
    assert first.other_order == pytest.approx(stats.norm.cdf(-gap.mean() / (gap.std() / np.sqrt(20))), abs=0.02)
    assert first.same_order == pytest.approx(1 - first.other_order, abs=1e-12)
    assert np.isnan(last.other_order)


def test_a_model_that_lacks_runs_or_has_them_of_another_version_is_not_ranked(
    paper: dict[str, Experiment], make_rows: MakeRows
) -> None:
    begun = make_rows(make_cell("gcn", {}, "citeseer"), 0.75, MANY[:400])
    mixed = make_rows(make_cell("mlp", {}, "citeseer"), 0.6, FEW)
    mixed += make_rows(
        make_cell("mlp", {}, "citeseer"), 0.6, [seeds for seeds in MANY if seeds not in FEW], revision="c2"
    )
    everything = samples_of(begun, mixed)
    ranked, missing, _ = standings(paper[NAME], everything, everything.published(paper))
    assert ranked == []
    assert missing == [
        "MLP on Citeseer: 900 of 1000 runs are of another version than the accuracy table's.",
        "GCN on Citeseer has 400 of 1000 runs, and is left out until it has all.",
    ]


def test_own_experiments_show_the_runs_that_they_name(make_rows: MakeRows) -> None:
    cell = make_cell("gcn", {}, "citeseer")
    mine = Experiment("mine", "Mine", "accuracy", (Point(cell, {}),), n_splits=30, n_inits=1)
    sample = samples_of(make_rows(cell, seeds=MANY)).named([mine]).of(cell)
    assert sample is not None
    assert [row.key.seeds for row in sample.rows] == sorted(mine.seeds())


def test_the_interval_of_all_runs_is_one_over_splits(paper: dict[str, Experiment], make_rows: MakeRows) -> None:
    rng = np.random.default_rng(0)
    shift = {split: float(rng.normal(0, 0.02)) for split in split_seeds("test", 200)}
    rows = [
        replace(row, accuracy=row.accuracy + shift[row.key.seeds.split])
        for row in make_rows(make_cell("gcn", {}, "citeseer"), 0.75, MANY)
    ]
    everything = samples_of(rows)
    (one,), _, _ = standings(paper[NAME], everything, everything.published(paper))
    means = [100 * np.mean([row.accuracy for row in rows if row.key.seeds.split == split]) for split in shift]
    low, high = stats.t.interval(0.95, 199, loc=np.mean(means), scale=stats.sem(means))
    assert (one.many.low, one.many.mean, one.many.high) == pytest.approx((low, np.mean(means), high))
    assert one.many.runs == 1000


def test_leads_over_more_splits_stand_beside_those_of_the_accuracy_table(
    paper: dict[str, Experiment], make_rows: MakeRows
) -> None:
    rng = np.random.default_rng(1)
    cells = {model: make_cell(model, {}, "citeseer") for model in ("appnp", "ppnp", "gcn", "jk")}
    rows = {
        model: [replace(row, accuracy=0.75 + float(rng.normal(0, 0.01))) for row in make_rows(cell, 0.75, MANY)]
        for model, cell in cells.items()
    }
    rows["jk"] = [row for row in rows["jk"] if row.key.seeds in FEW]
    everything = samples_of(*rows.values())
    shown = everything.published(paper)
    main = entries(paper, shown)
    many = more_runs_entries(paper, everything, main, shown)
    assert [entry.title for entry in many["citeseer"]] == ["GCN", "PPNP", "APPNP"]
    (group,) = more_leads_table(many, main).groups
    assert [row[:2] for row in group.rows] == [("PPNP", "GCN"), ("APPNP", "GCN"), ("PPNP", "APPNP")]  # not JK

    def means(model: str, splits: list[int]) -> list[float]:
        of = {each: [100 * row.accuracy for row in rows[model] if row.key.seeds.split == each] for each in splits}
        return [float(np.mean(values)) for values in of.values()]

    for row, (one, other) in zip(group.rows, [("ppnp", "gcn"), ("appnp", "gcn"), ("ppnp", "appnp")], strict=True):
        for at, splits in ((2, list(split_seeds("test", 200))), (5, list(TEST_SEEDS))):
            gaps = np.subtract(means(one, splits), means(other, splits))
            half = float(stats.t.isf(0.025, len(gaps) - 1) * stats.sem(gaps))
            assert str(row[at]) == str(len(splits))
            assert str(row[at + 1]) == str(Measure(float(gaps.mean()), half))
            assert str(row[at + 2]) == str(PValue(float(stats.ttest_1samp(gaps, 0.0).pvalue)))
    texts = [block for block in blocks_of(paper, everything, main, shown) if isinstance(block, str)]
    assert texts[-1].startswith(f"`pprop study run {NAME} --out DIR` makes these runs")


def test_heavy_tails_get_an_interval_that_does_not_suppose_normal_deviations(
    paper: dict[str, Experiment], make_rows: MakeRows
) -> None:
    rng = np.random.default_rng(2)
    rows = {
        model: [
            replace(row, accuracy=0.75 + float(rng.normal(0, 0.01)), device="cuda (H200)")
            for row in make_rows(make_cell(model, {}, "citeseer"), 0.75, MANY)
        ]
        for model in ("appnp", "gcn")
    }
    for place in (3, 400, 777):
        rows["gcn"][place] = replace(rows["gcn"][place], accuracy=0.5)
    everything = samples_of(*rows.values())
    shown = everything.published(paper)
    blocks = blocks_of(paper, everything, entries(paper, shown), shown)
    (table,) = (block for block in blocks if isinstance(block, Table) and "from all runs" in block.caption)
    (note,) = table.notes  # APPNP's deviations are normal
    found = np.array(
        [
            [100 * row.accuracy for row in rows["gcn"] if row.key.seeds.split == split]
            for split in split_seeds("test", 200)
        ]
    )
    kurtosis = float(stats.kurtosis((found - found.mean(axis=1, keepdims=True)).ravel(), fisher=False))
    assert note.startswith(
        f"GCN on Citeseer: the deviations between initialisations have a kurtosis of {kurtosis:.0f}, "
    )
    low, high = (float(end) for end in note.rstrip(".").rpartition("splits gives ")[2].split(" to "))
    again = stats.bootstrap((found.var(axis=1, ddof=1),), np.mean, method="percentile", rng=5, n_resamples=4000)
    ends = np.sqrt([again.confidence_interval.low, again.confidence_interval.high])
    assert [low, high] == pytest.approx(ends.tolist(), rel=0.05)
    assert blocks[-1] == f"`pprop study run {NAME} --out DIR --device cuda` makes these runs."


def test_nothing_is_said_where_no_run_was_made_beyond_the_table(
    paper: dict[str, Experiment], make_rows: MakeRows
) -> None:
    everything = samples_of(make_rows(make_cell("gcn", {}, "citeseer"), 0.75, FEW))
    shown = everything.published(paper)
    assert not blocks_of(paper, everything, entries(paper, shown), shown)
