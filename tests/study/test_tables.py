"""The tables, on rows made up for the purpose: scores, p-values, time per epoch, searches, spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pprop.datasets import TEST_SEEDS
from pprop.study.cell import Cell, Seeds, make_cell
from pprop.study.experiment import Experiment, Point
from pprop.study.experiment_folder import load_experiments
from pprop.study.store.row import Row
from pprop.study.store.store import Pool
from pprop.study.tables.entries import Sample, Samples, TableEntry, command, entries
from pprop.study.tables.p_values import comparisons, p_value_table, papers_comparisons, tuned_comparisons
from pprop.study.tables.paper import disagreements, overview_table, score, score_table
from pprop.study.tables.runs import run_again, search_table
from pprop.study.tables.spread import difference_spread_table, spread_table
from pprop.study.tables.table import NOT_RUN, Code, Measure, Number, Strong
from pprop.study.tables.times import epoch_times, time_table

MakeRows = Callable[..., list[Row]]
Paper = dict[str, Experiment]


@pytest.fixture(scope="module")
def paper() -> dict[str, Experiment]:
    return load_experiments()


def sample_of(rows: list[Row]) -> Sample:
    cell = Cell.parse(rows[0].cell)
    ordered = tuple(sorted(rows, key=lambda row: row.key))
    return Sample(cell, Pool(cell, rows[0].key.revision, rows[0].key.data, ordered))


def table_entries(paper: dict[str, Experiment], *groups: list[Row]) -> tuple[TableEntry, ...]:
    (found,) = entries(paper, Samples([sample_of(rows) for rows in groups])).values()
    return found


def test_a_dataset_with_rows_shows_every_model_in_the_papers_order_and_own_models_last(
    paper: Paper, make_rows: MakeRows
) -> None:
    own = Cell("mine:build", {"patience": 100}, "citeseer")
    found = table_entries(paper, make_rows(make_cell("gcn", {}, "citeseer")), make_rows(own))
    titles = [entry.title for entry in found]
    assert titles == [
        "MLP",
        "V. GCN",
        "GCN",
        "N-GCN",
        "GAT",
        "JK",
        "Bt. FP",
        "Bt. FP, tuned",
        "PPNP",
        "APPNP",
        "mine:build",
    ]
    assert [entry.title for entry in found if entry.sample is not None] == ["GCN", "mine:build"]
    assert found[-1].command == "pprop study run --model mine:build --dataset citeseer --out DIR"


def test_an_own_model_with_two_settings_is_told_apart_and_other_splits_stay_out(
    paper: Paper, make_rows: MakeRows
) -> None:
    first, second = (Cell("mine:build", {"patience": patience}, "citeseer") for patience in (10, 100))
    few = replace(first, per_class=5)
    found = table_entries(paper, make_rows(first), make_rows(second), make_rows(few))
    assert [entry.title for entry in found][10:] == ["mine:build (patience=100)", "mine:build (patience=10)"]


def test_an_experiment_on_validation_splits_or_with_other_label_rates_stays_out_of_the_accuracy_table(
    paper: Paper, make_rows: MakeRows
) -> None:
    published = paper["gasteiger_2019_mlp_citeseer"]
    mlp = published.points[0].cell
    others = (replace(mlp, splits="validation"), replace(mlp, per_class=5))
    more = {f"mine_{i}": replace(published, points=(Point(cell, {}),)) for i, cell in enumerate(others)}
    groups = [make_rows(cell) for cell in (mlp, make_cell("appnp", {}, "citeseer"), *others)]
    found = table_entries(paper | more, *groups)
    assert [entry.cell for entry in found if entry.title == "MLP"] == [mlp]
    (test,) = comparisons(found, "accuracy")
    assert test.splits.holm == test.splits.p  # of a family of one


def test_a_score_is_the_mean_in_the_papers_unit_with_its_distance_from_the_paper(
    paper: Paper, make_rows: MakeRows
) -> None:
    rows = make_rows(make_cell("appnp", {}, "cora_ml"), mean=0.86)
    entry = table_entries(paper, rows)[-1]
    made = score(entry, "accuracy")
    assert made.ours is not None
    assert made.ours.mean == pytest.approx(100 * np.mean([row.accuracy for row in rows]))
    assert (made.paper, made.paper_half) == (85.09, 0.25)
    assert made.difference == pytest.approx(made.ours.mean - 85.09)
    assert made.intervals == pytest.approx((made.ours.mean - 85.09) / math.sqrt(made.ours.half**2 + 0.25**2))
    usual = score(entry, "f1_macro")
    assert usual.paper is None
    assert usual.intervals is None


def test_a_single_run_has_no_interval_and_so_cannot_disagree(paper: Paper, make_rows: MakeRows) -> None:
    rows = make_rows(make_cell("appnp", {}, "cora_ml"), mean=0.5, seeds=[Seeds(TEST_SEEDS[0], 0)])
    made = score(table_entries(paper, rows)[-1], "accuracy")
    assert made.intervals is None
    assert disagreements([made]) == ()
    shown = score_table({"cora_ml": [made.entry]}, "accuracy").groups[0].rows[0][2]
    assert shown == Measure(100 * rows[0].accuracy, None)


def test_disagreements_say_how_far(paper: Paper, make_rows: MakeRows) -> None:
    def sentences(mean: float) -> tuple[str, ...]:
        rows = [replace(row, accuracy=mean + 0.01 * (-1) ** row.key.seeds.init) for row in made]
        return disagreements([score(table_entries(paper, rows)[-1], "accuracy")])

    made = make_rows(make_cell("appnp", {}, "cora_ml"), seeds=[Seeds(s, i) for i in range(4) for s in TEST_SEEDS[:10]])
    assert sentences(0.8509) == ()
    (near,) = sentences(0.8455)
    assert near.startswith("APPNP on Cora-ML (40 of 100 runs): ours 84.55 ± ")
    assert "0.54 points lower" in near
    assert near.endswith("combined intervals.")


def test_an_interval_over_splits_has_all_runs_of_a_split_or_none(paper: Paper, make_rows: MakeRows) -> None:
    """Runs of a split that are alike: an interval over runs is too narrow by about the root of their number."""
    made = make_rows(make_cell("appnp", {}, "cora_ml"))
    first = {row.key.seeds.split: row.accuracy for row in made if row.key.seeds.init == 0}
    alike = [replace(row, accuracy=first[row.key.seeds.split]) for row in made]
    (shown,) = (each for each in table_entries(paper, alike) if each.sample is not None)
    one = score(shown, "accuracy")
    assert one.ours is not None
    assert one.over_splits is not None
    assert one.over_splits.mean == pytest.approx(one.ours.mean)
    assert 1.7 < one.over_splits.half / one.ours.half < 2.8  # the root of 5 is 2.24
    assert str(one.our_value).endswith(f" ± {one.ours.half:.2f} ({one.over_splits.half:.2f})")
    single = score(table_entries(paper, [row for row in made if row.key.seeds.init == 0])[-1], "accuracy")
    assert isinstance(single.our_value, Measure)
    assert single.our_value.over_splits is None  # it would be the same


def test_mlp_and_the_tuned_baseline_are_no_part_of_the_papers_family(paper: Paper, make_rows: MakeRows) -> None:
    models = {"appnp": 0.76, "gcn": 0.757, "gat": 0.755, "mlp": 0.6}
    groups = [make_rows(make_cell(model, {}, "citeseer"), mean) for model, mean in models.items()]
    tuned = make_cell("bootstrapped_fp", {}, "citeseer")
    original = make_cell("bootstrapped_fp", {"reading": "original", "C": 1.0, "self_loops": False}, "citeseer")
    fitted = [make_rows(cell, 0.75, [Seeds(split, 0) for split in TEST_SEEDS]) for cell in (tuned, original)]
    shown = {"citeseer": table_entries(paper, *groups, *fitted)}
    assert [each.opponent.title for each in papers_comparisons(shown, "accuracy")] == ["GCN", "GAT", "Bt. FP"]
    assert [each.opponent.title for each in tuned_comparisons(shown, "accuracy")] == ["Bt. FP, tuned"]
    found = {each.opponent.title: each for each in comparisons(shown["citeseer"], "accuracy")}
    assert found["MLP"].splits.holm == pytest.approx(2 * found["MLP"].splits.p)  # of a family of two
    assert [title for title, each in found.items() if each.best] == ["GCN"]


def test_the_score_table_shows_missing_cells_as_missing_and_gives_a_command_for_each(
    paper: Paper, make_rows: MakeRows
) -> None:
    table = score_table({"citeseer": table_entries(paper, make_rows(make_cell("gcn", {}, "citeseer")))}, "accuracy")
    by_model = {row[0]: row for row in table.groups[0].rows}
    assert by_model["GAT"][1] == "0 of 100"
    assert by_model["GAT"][2] is NOT_RUN
    assert by_model["GAT"][3] == Measure(75.39, 0.27)
    assert by_model["GAT"][-1] == Code("pprop study run gasteiger_2019_gat_citeseer --out DIR")
    assert by_model["GCN"][1] == "100"
    assert by_model["MLP"][3] is None  # the paper printed none


def test_the_best_model_of_each_dataset_is_set_off(paper: Paper, make_rows: MakeRows) -> None:
    groups = [make_rows(make_cell(model, {}, "citeseer"), mean) for model, mean in (("gcn", 0.7), ("mlp", 0.8))]
    table = overview_table({"citeseer": table_entries(paper, *groups)}, "accuracy")
    strong = [row[0] for row in table.groups[0].rows if isinstance(row[1], Strong)]
    assert strong == ["MLP"]


def test_a_command_tells_the_number_of_runs_and_the_device_that_give_the_same_rows(
    paper: Paper, make_rows: MakeRows
) -> None:
    experiment = paper["gasteiger_2019_gcn_citeseer"]
    cell = experiment.points[0].cell

    def told(seeds: list[Seeds], device: str = "cpu") -> str:
        sample = sample_of(make_rows(cell, seeds=seeds, device=device))
        return command(experiment, cell, sample).removeprefix("pprop study run gasteiger_2019_gcn_citeseer --out DIR")

    seeds = list(experiment.seeds())
    assert told(seeds) == ""
    assert told(seeds[:20]) == " --runs 20"
    assert told(seeds[5:20]) == ""  # no number of runs gives just these
    assert told(seeds[:20], "cuda (NVIDIA H200)") == " --runs 20 --device cuda"


def test_p_values_agree_with_scipy_and_with_holm_by_hand(paper: Paper, make_rows: MakeRows) -> None:
    cells = {model: make_cell(model, {}, "citeseer") for model in ("appnp", "gcn", "gat")}
    rows = {model: make_rows(cells[model], mean) for model, mean in (("appnp", 0.76), ("gcn", 0.755), ("gat", 0.757))}
    found = comparisons(table_entries(paper, *rows.values()), "accuracy")
    assert [(each.entry.title, each.opponent.title, each.best) for each in found] == [
        ("APPNP", "GCN", False),
        ("APPNP", "GAT", True),
    ]
    raw = [
        stats.ttest_rel([row.accuracy for row in rows["appnp"]], [row.accuracy for row in rows[model]]).pvalue
        for model in ("gcn", "gat")
    ]
    assert [each.runs.p for each in found] == pytest.approx(raw, rel=1e-9)
    low, high = min(raw), max(raw)
    assert sorted(each.runs.holm for each in found) == pytest.approx(sorted([2 * low, max(2 * low, high)]), rel=1e-9)
    assert [each.splits.pairs for each in found] == [20, 20]
    assert [each.published for each in found] == [1.77e-2, None]


def test_the_papers_p_value_stands_beside_the_best_baseline_of_its_own_table(paper: Paper, make_rows: MakeRows) -> None:
    models = {"appnp": 0.85, "gcn": 0.84, "gat": 0.83, "mlp": 0.6}
    groups = [make_rows(make_cell(model, {}, "cora_ml"), mean) for model, mean in models.items()]
    found = {each.opponent.title: each for each in comparisons(table_entries(paper, *groups), "f1")}
    assert [title for title, each in found.items() if each.best] == ["GCN"]
    assert {title: each.published for title, each in found.items()} == {"MLP": None, "GCN": None, "GAT": 1.07e-8}


def test_a_model_with_one_run_per_split_is_tested_over_split_means(paper: Paper, make_rows: MakeRows) -> None:
    one = make_rows(make_cell("bootstrapped_fp", {}, "citeseer"), seeds=[Seeds(split, 0) for split in TEST_SEEDS])
    (found,) = comparisons(table_entries(paper, one, make_rows(make_cell("appnp", {}, "citeseer"))), "f1")
    assert found.runs == found.splits
    assert found.runs.pairs == 20
    assert p_value_table({"citeseer": [found.entry, found.opponent]}, "f1").notes == ()


def test_an_own_model_is_compared_with_gcn_and_appnp_alone(paper: Paper, make_rows: MakeRows) -> None:
    groups = [make_rows(make_cell(model, {}, "citeseer")) for model in ("gcn", "appnp", "mlp")]
    found = comparisons(table_entries(paper, *groups, make_rows(Cell("mine:build", {}, "citeseer"), 0.7)), "accuracy")
    assert [each.opponent.title for each in found if each.entry.title == "mine:build"] == ["GCN", "APPNP"]
    assert all(each.opponent.title != "mine:build" for each in found)


def test_runs_without_a_partner_are_named_below_the_table(paper: Paper, make_rows: MakeRows) -> None:
    appnp = make_rows(make_cell("appnp", {}, "citeseer"))
    gcn = make_rows(make_cell("gcn", {}, "citeseer"))[1:]
    table = p_value_table({"citeseer": table_entries(paper, appnp, gcn)}, "accuracy")
    (note,) = table.notes
    assert "APPNP against GCN on Citeseer" in note
    assert f"split {TEST_SEEDS[0]} init 0 of APPNP" in note


def test_time_ratios_use_runs_that_were_alone_in_the_same_place(paper: Paper, make_rows: MakeRows) -> None:
    def timed(model: str, seconds: float, **fields: object) -> list[Row]:
        cell = paper[f"gasteiger_2019_{model}_citeseer_time"].points[0].cell
        seeds = [Seeds(split, 0) for split in TEST_SEEDS[:5]]
        return make_rows(cell, seeds=seeds, seconds=seconds, epochs=200, **({"together": 1} | fields))

    gcn, appnp, gat = timed("gcn", 0.4), timed("appnp", 0.6), timed("gat", 2.0, host="elsewhere")
    appnp[0] = replace(appnp[0], seconds=60.0, together=20)
    shown = entries(paper, Samples([sample_of(rows) for rows in (gcn, appnp, gat)]), "time")
    times = {each.entry.cell.model: each for each in epoch_times(shown["citeseer"])}
    assert times["appnp"].ours is not None
    assert times["appnp"].ours.mean == pytest.approx(3.0)
    assert times["appnp"].ratio == pytest.approx(1.5)
    assert times["appnp"].paper_ratio == pytest.approx(43.3 / 35.3)
    assert times["appnp"].in_company == 1
    assert math.isnan(times["gat"].ratio)
    assert times["jk"].ours is None
    notes = " ".join(time_table(shown).notes)
    assert "APPNP on Citeseer on cpu: 1 rows of runs that were not alone are left out." in notes
    assert "GAT on Citeseer on cpu has no ratio" in notes


def test_times_of_two_devices_stand_apart_each_with_its_own_ratio(paper: Paper, make_rows: MakeRows) -> None:
    def timed(model: str, on_cpu: float, on_gpu: float) -> Sample:
        cell = paper[f"gasteiger_2019_{model}_citeseer_time"].points[0].cell
        fields = {"seeds": [Seeds(split, 0) for split in TEST_SEEDS[:5]], "epochs": 200, "together": 1}
        gpu = make_rows(cell, seconds=on_gpu, device="cuda (H200)", revision="c2", **fields)
        cpu = make_rows(cell, seconds=on_cpu, **fields)
        return Sample(cell, Pool(cell, "c2", "d1", tuple(gpu)), (Pool(cell, "c1", "d1", tuple(cpu)),))

    samples = Samples([timed("gcn", 0.4, 0.1), timed("appnp", 0.6, 0.2)])
    shown = entries(paper, samples, "time")
    times = {(each.entry.cell.model, each.device): each for each in epoch_times(shown["citeseer"])}
    assert times["appnp", "cpu"].ratio == pytest.approx(1.5)
    assert times["appnp", "cuda (H200)"].ratio == pytest.approx(2.0)
    assert [group.title for group in time_table(shown).groups] == ["Citeseer on cpu", "Citeseer on cuda (H200)"]
    commands = {str(row[-1]) for row in time_table(shown).groups[1].rows if row[0] == "APPNP"}
    assert commands == {"pprop study run gasteiger_2019_appnp_citeseer_time --out DIR --device cuda"}
    assert run_again(samples)  # both pools say numba here
    cells = [replace(s, others=tuple(_by_triton(pool) for pool in s.others)) for s in samples.values()]
    assert not run_again(Samples(cells))


def _by_triton(pool: Pool) -> Pool:
    return replace(pool, rows=tuple(replace(row, backend="triton") for row in pool.rows))


def test_a_search_ranks_the_published_setting_and_names_what_the_best_changes(
    paper: Paper, make_rows: MakeRows
) -> None:
    experiment = paper["gasteiger_2019_search_appnp"]
    cells = [point.cell for point in experiment.points if point.cell.dataset == "citeseer"]
    seeds = experiment.seeds()
    published = make_cell("appnp", {}, "citeseer", splits="validation")
    best = make_cell("appnp", {"penalty": 0.02}, "citeseer", splits="validation")
    means = {published.config: 0.8, best.config: 0.85}
    samples = Samples([sample_of(make_rows(cell, means.get(cell.config, 0.7), seeds)) for cell in cells])
    (row,) = search_table(paper, samples).groups[0].rows
    assert row[:2] == ("Citeseer", "30")
    assert row[3] == Number(2, 0)
    assert row[5] == "penalty = 0.02"


def test_spread_is_shown_for_models_with_all_initialisations(paper: Paper, make_rows: MakeRows) -> None:
    one = make_rows(make_cell("mlp", {}, "citeseer"), seeds=[Seeds(split, 0) for split in TEST_SEEDS])
    table = spread_table({"citeseer": table_entries(paper, one, make_rows(make_cell("gcn", {}, "citeseer")))})
    (row,) = table.groups[0].rows
    assert row[0] == "GCN"
    assert isinstance(row[3], Number)
    assert row[3].value == pytest.approx(1.0, abs=0.2)  # the rows are drawn with a deviation of one point


def test_every_run_far_from_the_others_of_its_split_is_named_below_the_spread(
    paper: Paper, make_rows: MakeRows
) -> None:
    def note_of(rows: list[Row]) -> tuple[str, ...]:
        return spread_table({"citeseer": table_entries(paper, rows)}).notes

    def named(row: Row) -> str:
        seeds = row.key.seeds
        return f"{100 * row.accuracy:.2f} % (split {seeds.split}, initialisation {seeds.init}, {row.epochs} epochs)"

    rows = make_rows(make_cell("gcn", {}, "citeseer"))
    assert note_of(rows) == ()
    rows[37] = replace(rows[37], accuracy=0.5, epochs=100)
    (note,) = note_of(rows)
    assert note.startswith(f"GCN on Citeseer: {named(rows[37])} is far from the median of its split, while the other ")
    assert "have 400 epochs on average" in note
    rows[57] = replace(rows[57], accuracy=0.2, epochs=90)  # of the same split, and farther: it hides nothing
    rows[3] = replace(rows[3], accuracy=0.55, epochs=110)
    assert rows[57].key.seeds.split == rows[37].key.seeds.split
    (note,) = note_of(rows)
    assert note.startswith(
        f"GCN on Citeseer: {named(rows[57])}, {named(rows[37])} and {named(rows[3])} are far from the "
    )
    assert "have 400 epochs on average" in note


def test_what_is_hard_for_both_models_is_no_part_of_the_spread_of_their_difference(
    paper: Paper, make_rows: MakeRows
) -> None:
    hard = {split: 0.03 * math.sin(place) for place, split in enumerate(TEST_SEEDS)}

    def shifted(model: str) -> list[Row]:
        rows = make_rows(make_cell(model, {}, "citeseer"))
        return [replace(row, accuracy=row.accuracy + hard[row.key.seeds.split]) for row in rows]

    groups = {"citeseer": table_entries(paper, shifted("gcn"), shifted("appnp"), shifted("ppnp"))}
    alone = {row[0]: row for row in spread_table(groups).groups[0].rows}
    (group,) = difference_spread_table(groups).groups
    (row,) = group.rows  # PPNP is no baseline
    assert group.title == "APPNP minus another model on Citeseer"
    assert row[0] == "GCN"
    between_alone, gap, between, within = (value(cell) for cell in (alone["GCN"][1], row[1], row[2], row[4]))
    assert between_alone == pytest.approx(2.1, abs=0.5)
    assert between < 0.7
    assert within == pytest.approx(math.sqrt(2), abs=0.3)
    means = [np.mean([each.accuracy for each in make_rows(make_cell(m, {}, "citeseer"))]) for m in ("appnp", "gcn")]
    assert gap == pytest.approx(100 * float(means[0] - means[1]))


def value(cell: object) -> float:
    assert isinstance(cell, Number)
    return cell.value
