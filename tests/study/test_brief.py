"""The results in short: costs by hand, the tables beside the paper's, and sentences that follow the rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tools.brief import (
    TUNED,
    brief_page,
    more_splits_sentence,
    short_table,
    significance_sentence,
    tuned_sentence,
)

from pprop.datasets import TEST_SEEDS
from pprop.study.cell import Seeds, make_cell
from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import load_experiments
from pprop.study.figures.gather import percent_over_splits
from pprop.study.figures.style import figure_json
from pprop.study.figures.sweeps import lines_data
from pprop.study.report.claims import Claim, ClaimFigure, claims_table, counts
from pprop.study.report.measures import Measurement
from pprop.study.report.page import Bullets, Page, Section
from pprop.study.store.row import Row
from pprop.study.store.store import Pool
from pprop.study.tables.entries import Sample, Samples, TableEntry, entries
from pprop.study.tables.p_values import (
    changed_verdicts,
    missed,
    missed_table,
    more_leads_table,
    significance_table,
    tuned_comparisons,
)
from pprop.study.tables.paper import overview_table
from pprop.study.tables.table import NOT_RUN, Measure, PValue, Strong, Table
from pprop.study.tables.times import costs, main_cost_table

MakeRows = Callable[..., list[Row]]
Paper = dict[str, Experiment]


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_experiments()


def main_of(paper: Paper, *groups: list[Row]) -> dict[str, tuple[TableEntry, ...]]:
    def sample(rows: list[Row]) -> Sample:
        cell = make_cell(*models[rows[0].key.config])
        return Sample(cell, Pool(cell, "c1", "d1", tuple(rows)))

    models = {
        make_cell(model, {}, dataset).config: (model, {}, dataset)
        for model in ("mlp", "gcn", "gat", "jk", "ppnp", "appnp", "bootstrapped_fp")
        for dataset in ("citeseer", "cora_ml", "ms_academic")
    }
    return entries(paper, Samples([sample(rows) for rows in groups]))


def test_the_authors_cost_is_their_time_per_epoch_times_our_epochs_times_our_runs(
    paper: Paper, make_rows: MakeRows
) -> None:
    appnp = make_rows(make_cell("appnp", {}, "cora_ml"), seconds=0.5, device="cuda (H200)", epochs=1000)
    appnp[0] = replace(appnp[0], epochs=2000, device="cpu", seconds=7.0)
    mlp_cell = make_cell("mlp", {}, "cora_ml")
    mlp = make_rows(mlp_cell, seconds=0.25)
    main = main_of(paper, appnp, mlp)
    by_model = {cost.entry.cell.model: cost for cost in costs(main["cora_ml"], paper.values())}
    assert by_model["appnp"].gpu == pytest.approx(99 * 0.5)
    assert by_model["appnp"].cpu == pytest.approx(7.0)
    assert by_model["appnp"].authors == pytest.approx(0.0427 * (99 * 1000 + 2000))  # the paper's 42.7 ms an epoch
    assert by_model["mlp"].authors is None  # which the paper did not time
    alone = make_rows(paper["gasteiger_2019_mlp_cora_ml_time"].points[0].cell, seconds=0.8, epochs=200, together=1)
    timed = Sample(paper["gasteiger_2019_mlp_cora_ml_time"].points[0].cell, Pool(mlp_cell, "c1", "d1", tuple(alone)))
    table = main_cost_table(main, paper.values(), entries(paper, Samples([timed]), "time"))
    total = ["All", "200", "None", "49.5", "32.0", f"{0.004 * sum(row.epochs for row in mlp):.0f}", "None", "4313"]
    assert [str(value) for value in table.groups[0].rows[-1]] == total  # 4 ms an epoch on the CPU, of the MLP alone
    assert any("45.7 s: 4,570 s for 100 runs, where the estimate above is 4,313 s" in note for note in table.notes)


def test_the_table_beside_the_papers_sets_off_the_best_and_names_cells_that_lack_runs(
    paper: Paper, make_rows: MakeRows
) -> None:
    gcn = make_rows(make_cell("gcn", {}, "citeseer"), mean=0.7)
    appnp = make_rows(make_cell("appnp", {}, "citeseer"), mean=0.8)
    elsewhere = make_rows(make_cell("gcn", {}, "ms_academic"), seeds=[Seeds(seed, 0) for seed in TEST_SEEDS])
    table = overview_table(main_of(paper, gcn, appnp, elsewhere), "accuracy", beside_paper=True)
    assert [column.title for column in table.columns] == ["Model", "Citeseer", "paper", "MS Academic", "paper"]
    rows = {str(row[0]): row for row in table.groups[0].rows}
    mean = float(np.mean([100 * row.accuracy for row in appnp]))
    best = rows["APPNP"][1]
    assert isinstance(best, Strong)
    assert isinstance(best.value, Measure)
    assert best.value.mean == pytest.approx(mean)
    assert isinstance(rows["GCN"][1], Measure)
    assert rows["APPNP"][2] == Measure(75.73, 0.30)
    assert rows["PPNP"][1:] == (NOT_RUN, Strong(Measure(75.83, 0.27)), NOT_RUN, None)
    assert table.notes == ("GCN on MS Academic: 20 of 100 runs.",)


def test_significance_counts_baselines_and_names_those_that_are_not_beaten(paper: Paper, make_rows: MakeRows) -> None:
    def rows(model: str, shift: float) -> list[Row]:
        cell = make_cell(model, {}, "citeseer")
        same = make_rows(make_cell("gcn", {}, "citeseer"))  # equal draws, so that the shift alone decides
        wiggle = 1e-4 * np.random.default_rng([ord(letter) for letter in model]).standard_normal(len(same))
        return [
            replace(row, key=replace(row.key, config=cell.config), accuracy=row.accuracy + shift + float(more))
            for row, more in zip(same, wiggle, strict=True)
        ]

    ahead = make_rows(make_cell("gcn", {}, "citeseer"))
    main = main_of(paper, rows("appnp", 0.01), ahead, rows("gat", 0.02), rows("mlp", -0.1))
    (row,) = significance_table(main).groups[0].rows
    assert [str(value) for value in row[:5]] == ["APPNP", "1 of 2", "1 of 2", "GAT", "\u22121.00"]  # MLP does not count
    assert str(row[6]) == "GCN"  # the best of the paper's own baselines there, of which it prints p = 0.0177
    assert str(row[8]) == "1.77e\u221202"
    page = brief_page(Page("Study", ("3 runs.", "Lead."), (Section("Spread", ("In the report.",)),)), main, paper)
    assert page.lead == ("Lead.",)
    titles = ["Summary", "Accuracy", "Macro F1", "Beside the paper", "Significance", "Time and cost"]
    assert [part.title for part in page.sections] == titles
    _, _, papers_test, not_won, _, f1 = page.sections[4].blocks
    assert str(papers_test) == (
        "By the paper's test, over runs and without a correction, they are better in 1 of 2; the exceptions: APPNP against "
        "GAT on Citeseer (p < 1e−6)."
    )
    assert isinstance(not_won, Table)
    ((where, gap, *values),) = not_won.groups[0].rows
    assert (where, str(gap)[:5], values[2:]) == ("APPNP against GAT on Citeseer", "\u22121.00", [None, None])
    assert str(values[0]) == "< 1e−6"
    assert str(f1) == "In macro F1 they are better in 0 of 2 over splits and 0 over runs."
    better = brief_page(Page("Study", (), ()), main_of(paper, rows("appnp", 0.03), ahead), paper)
    (lines,) = better.sections[0].blocks
    assert "in 1 of 1 comparisons over splits, and in 1 over runs." in str(lines)
    assert [block.caption for block in better.sections[4].blocks if isinstance(block, Table)] == [
        "Significantly better than how many of the paper's baselines, p < 0.05 after Holm",
        "Not better in every test of macro F1: differences, and p after Holm",
    ]


def test_claims_have_a_row_for_each_dataset_and_are_counted_in_the_summary(paper: Paper) -> None:
    lead = Measurement(0.66, 0.41, 0.91, "points", "20 splits", signed=True)
    claims = [
        ClaimFigure(
            Claim("GAT is not above GCN (section 6)", "citeseer", "gat_gcn", "does not hold", "By {value}."), lead
        ),
        ClaimFigure(Claim("Other sizes", "citeseer", "gat_appnp_60", "finding", "By {low} at least."), lead),
    ]
    page = brief_page(Page("Study", (), ()), {}, paper, claims=claims)
    assert [part.title for part in page.sections] == ["Summary", "Claims in the text"]
    (lines,) = page.sections[0].blocks
    assert isinstance(lines, Bullets)
    assert lines.items[:-1] == counts(claims)
    assert lines.items[-1].endswith(": +0.66 (+0.41 to +0.91) points.")
    _, table = page.sections[1].blocks
    assert table == claims_table(claims, sentences=True)
    assert isinstance(table, Table)
    assert [str(group.rows[0][-1]) for group in table.groups] == ["By +0.66.", "By +0.41 at least."]


def test_one_sentence_counts_the_comparisons_and_names_those_that_are_not_won(
    paper: Paper, make_rows: MakeRows
) -> None:
    def rows(model: str, dataset: str, shift: float, splits_alone: float = 0.0) -> list[Row]:
        cell = make_cell(model, {}, dataset)
        same = make_rows(make_cell("gcn", {}, dataset))  # equal draws, so that the shift alone decides
        wiggle = 1e-4 * np.random.default_rng([ord(letter) for letter in model]).standard_normal(len(same))
        signs = {split: 1 if place % 2 else -1 for place, split in enumerate(TEST_SEEDS)}
        return [
            replace(
                row,
                key=replace(row.key, config=cell.config),
                accuracy=row.accuracy + shift + float(more) + splits_alone * signs[row.key.seeds.split],
            )
            for row, more in zip(same, wiggle, strict=True)
        ]

    assert significance_sentence(main_of(paper, rows("gcn", "citeseer", 0.0))) == ""
    won = [rows("appnp", "citeseer", 0.01), rows("gcn", "citeseer", 0.0)]
    start = "significantly better than a baseline of the paper (p < 0.05 after Holm) in "
    assert (
        significance_sentence(main_of(paper, *won))
        == f"APPNP is {start}1 of 1 comparisons over splits, and in 1 over runs."
    )
    # a difference of 0.3 deviations: enough over 100 runs, not over 20 split means
    some = [rows("ppnp", "citeseer", 0.01), rows("gat", "citeseer", 0.007, 0.01), rows("jk", "citeseer", 0.02)]
    elsewhere = [rows("ppnp", "cora_ml", 0.0), rows("appnp", "cora_ml", 0.0), rows("gat", "cora_ml", 0.01)]
    text = significance_sentence(main_of(paper, *won, *some, *elsewhere))
    assert text == (
        f"PPNP and APPNP are {start}2 of 8 comparisons over splits, and in 4 over runs; the exceptions: "
        "PPNP and APPNP against GAT (not over splits) and JK on Citeseer; PPNP and APPNP against GAT on Cora-ML."
    )
    few = main_of(paper, *won)
    f1 = " By macro F1 over 20 splits, not distinguished: APPNP against GCN on Citeseer."
    counted = "Over 20 splits of Citeseer they are in 1 of 1 by accuracy and in 0 of 1 by macro F1"
    assert more_splits_sentence(few, few) == f"{counted}.{f1}"
    with_gat = main_of(paper, *won, rows("gat", "citeseer", 0.0))
    assert more_splits_sentence(with_gat, few) == f"{counted} (without GAT, not run there).{f1}"
    *_, gcn, appnp = short_table(few)
    assert re.fullmatch(r"\| GCN \| \d\d\.\d\d ± \d\.\d\d \|", gcn)
    assert appnp.startswith(f"| APPNP | {100 * np.mean([row.accuracy for row in won[0]]):.2f} ± ")
    everywhere = main_of(paper, *won, *elsewhere)
    text = more_splits_sentence(everywhere, everywhere)
    assert text.startswith(
        "Over 20 splits of Citeseer and Cora-ML they are in 1 of 3 by accuracy and in 0 of 3 by macro F1. "
    )
    assert " By accuracy over 20 splits, significantly worse: PPNP and APPNP against GAT on Cora-ML. " in text


def test_a_model_that_is_better_in_macro_f1_alone_is_named_and_has_its_difference_interval_and_p(
    paper: Paper, make_rows: MakeRows
) -> None:
    splits = np.random.default_rng(0).normal(-0.004, 0.004, 20)  # in macro F1

    def entry(name: str, model: str, accuracy: float, gaps: Iterable[float]) -> TableEntry:
        cell = make_cell(model, {"reading": "original"} if name == "Bt. FP" else {}, "citeseer")
        rows = make_rows(cell, seeds=[Seeds(split, 0) for split in TEST_SEEDS])
        wiggle = np.random.default_rng(len(name)).normal(0, 1e-4, 20)
        drawn = [
            replace(row, accuracy=accuracy + float(more), f1=0.7 + gap)
            for row, more, gap in zip(rows, wiggle, gaps, strict=True)
        ]
        return TableEntry(
            cell, name, paper[f"gasteiger_2019_{model}_citeseer"], Sample(cell, Pool(cell, "c", "d", (*drawn,)))
        )

    appnp, none = entry("APPNP", "appnp", 0.76, splits.tolist()), [0.0] * 20
    half, test = float(stats.t.ppf(0.975, 19) * stats.sem(splits)), stats.ttest_1samp(splits, 0.0)
    tuned = {"citeseer": (appnp, entry("Bt. FP, tuned", "bootstrapped_fp", 0.75, none))}
    (found,) = tuned_comparisons(tuned, "f1")
    worse = "significantly worse: APPNP against Bt. FP, tuned on Citeseer"
    assert missed([found]) == worse
    start = "PPNP and APPNP are significantly better than a tuned linear model on propagated features (Bt. FP, tuned): "
    count = "in 1 of 1 by accuracy and in 0 of 1 by macro F1"
    end = f" By macro F1 over 20 splits, {worse}."
    assert tuned_sentence(tuned, {}) == f"{start}over 20 splits {count}.{end} {TUNED}"
    assert tuned_sentence(tuned, tuned) == f"{start}over 20 splits {count}, over 20 splits {count}.{end} {TUNED}"
    assert "ties" not in tuned_sentence(tuned, tuned)
    changed = changed_verdicts({"citeseer": (appnp, entry("GCN", "gcn", 0.75, [-1.0] * 20))}, tuned, "f1")
    assert changed == ()  # another opponent
    ((row,),) = (group.rows for group in more_leads_table(tuned, tuned, "f1").groups)
    told = [f"{splits.mean():.4f} ± {half:.4f}".replace("-", "−"), str(PValue(float(test.pvalue)))]
    assert [str(value) for value in row[3:5]] == told
    ((_, *values),) = missed_table(tuned, tuned, "f1").groups[0].rows
    assert [str(value) for value in values] == [*told, told[1], *told]
    assert missed_table(tuned, tuned, "accuracy").n_rows == 0


def test_the_data_of_a_figure_is_read_back_as_it_was_to_six_digits(make_rows: MakeRows) -> None:
    runs = make_rows(make_cell("gcn", {}, "citeseer"))
    lines = lines_data({"Citeseer": {("GCN", 20.0): runs, ("GCN", 5.0): runs[:20]}}, "test")
    (read,) = json.loads(figure_json(lines))
    (series,) = read["panels"][0]["series"]
    assert series["x"] == [5, 20]
    wanted = percent_over_splits(runs)
    assert series["estimates"][1] == {
        name: pytest.approx(getattr(wanted, name), rel=1e-6) for name in ("mean", "low", "high", "runs")
    }
