"""What the pages say of Bt. FP on validation splits: every figure from the rows of the experiment, and the sentences from figures."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tools.bootstrapped_fp import OPEN, SAME, THREE, over_validation, read_readings, validation_blocks, validation_table
from tools.brief import summary

from pprop.datasets import DATASETS, TEST_SEEDS, VALIDATION_SEEDS
from pprop.study.cell import Seeds, make_cell
from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import load_experiments
from pprop.study.stats.estimate import estimate, half_by_chance, student_half
from pprop.study.store.row import Row
from pprop.study.store.store import Pool
from pprop.study.tables.entries import Sample, Samples, TableEntry, dataset_title, entries
from pprop.study.tables.table import Table

MakeRows = Callable[..., list[Row]]
ROOT = Path(__file__).parents[2]
READINGS = [*read_readings(ROOT)]
OURS = "ours: rows sum to one, C = 1000"


@pytest.fixture(scope="module")
def page() -> str:
    """The section of the page, as one line."""
    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    section = text.partition("## Bootstrapped feature propagation")[2].partition("\n## ")[0]
    return " ".join(section.split())


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(ROOT / "experiments")  # as for a script that is run
    return runpy.run_path(str(ROOT / "experiments" / "bootstrapped_fp_readings.py"))


def mean(dataset: str, reading: str, key: str) -> float:
    found = over_validation(READINGS, dataset, reading, key)
    assert found is not None
    return found.mean


def test_both_readings_have_all_validation_splits_of_three_graphs_with_where_they_come_from() -> None:
    for dataset in ("citeseer", "cora_ml", "pubmed"):
        for reading in (SAME, OPEN):
            rows = [row for row in READINGS if (row["dataset"], row["reading"]) == (dataset, reading)]
            assert sorted(row["split"] for row in rows) == sorted(VALIDATION_SEEDS)
            assert all(row["commit"] and row["machine"] and row["command"].startswith("python ") for row in rows)


def test_the_page_has_the_means_over_validation_splits(page: str) -> None:
    def percent(dataset: str, reading: str = SAME, key: str = "best") -> str:
        return f"{100 * mean(dataset, reading, key):.2f}"

    pubmed = f"{percent('pubmed')} with a macro F1 of {mean('pubmed', SAME, 'f1'):.4f}"
    assert f"has {percent('citeseer')} on Citeseer, {percent('cora_ml')} on Cora-ML, and on PubMed {pubmed}" in page
    others = [
        (percent(name, OPEN, "last_best"), f"{mean(name, OPEN, 'last_best_f1'):.4f}")
        for name in ("citeseer", "cora_ml")
    ]
    (citeseer, its_f1), (cora, other_f1) = others
    assert f"{citeseer} and {cora} with macro F1 of {its_f1} and {other_f1}" in page
    second = {row["split"] for row in READINGS if (row["dataset"], row["reading"]) == ("ms_academic", OPEN)}
    assert f"On MS Academic it was run on {len(second)} of 20 splits only." in page
    fourth = f"{percent('ms_academic')} and a macro F1 of {mean('ms_academic', SAME, 'f1'):.4f}."
    assert f"The 20 validation splits have {fourth}" in page
    printed = load_experiments()["gasteiger_2019_bootstrapped_fp_pubmed"].published
    assert printed is not None
    assert (percent("pubmed"), round(mean("pubmed", SAME, "f1"), 4)) == (f"{printed.accuracy:.2f}", printed.f1)


def test_the_page_says_how_often_the_first_regression_is_the_best_round(page: str) -> None:
    def of(dataset: str) -> tuple[int, float]:
        rows = [row for row in READINGS if (row["dataset"], row["reading"]) == (dataset, SAME)]
        return sum(row["best_at"] == 0 for row in rows), 100 * float(np.mean([row["last"] for row in rows]))

    (pubmed, its_last), (cora, last) = of("pubmed"), of("cora_ml")
    assert f"On all {pubmed} validation splits of PubMed, and on {cora} of 20 of Cora-ML," in page
    assert f"the last has a mean accuracy of {last:.1f} % on Cora-ML and {its_last:.1f} % on PubMed." in page


def test_the_page_has_the_table_of_best_rounds(script: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    lines = script["table"](script["Rows"](ROOT / "results" / "bootstrapped_fp_readings.json")).splitlines()
    shown = [
        line.replace(", best round |", " |") for line in lines if ", best round |" in line or "the paper, if on" in line
    ]
    assert len(shown) == len(script["READINGS"])  # our own reading is what the others are compared with
    assert "\n".join(shown) in text


def test_the_page_has_the_losses_of_readings_with_a_strong_penalty(page: str, script: dict[str, Any]) -> None:
    losses: dict[str, dict[float, list[float]]] = {"cora_ml": {}, "pubmed": {}}
    for dataset, of in losses.items():
        ours = {row["split"]: row["best"] for row in READINGS if (row["dataset"], row["reading"]) == (dataset, OURS)}
        for name, reading in script["READINGS"].items():
            rows = [row for row in READINGS if (row["dataset"], row["reading"]) == (dataset, name)]
            gaps = [100 * (ours[row["split"]] - row["best"]) for row in rows if row["split"] in ours]
            of.setdefault(reading.C, []).append(float(np.mean(gaps)))
        assert max((max(found), strength) for strength, found in of.items())[1] == 1.0
    cora, pubmed = (f"{min(of[1.0]):.1f} to {max(of[1.0]):.1f}" for of in losses.values())
    assert f"Readings with C = 1 lose {cora} points on Cora-ML and {pubmed} on PubMed." in page


def test_the_script_has_means_and_widths_of_all_splits(script: dict[str, Any]) -> None:
    lines = script["widths"](script["Rows"](ROOT / "results" / "bootstrapped_fp_readings.json")).splitlines()
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    of = {
        tuple(cells[:2]): cells[2:]
        for line in lines[2:]
        if (cells := [cell.strip() for cell in line.strip("|").split("|")])
    }
    assert of["pubmed", "the paper"] == ["72.94 ± 1.00", "-", "0.7448 ± 0.0079", "-"]
    for dataset in THREE:
        for reading, best in ((SAME, "best"), (OPEN, "last best")):
            accuracy, its_range, f1, other_range = of[dataset, f"{reading}, {best}"]
            assert f"| {accuracy} | {its_range} | {f1} | {other_range} |" in page


def test_the_page_compares_readings_with_and_without_self_loops(page: str) -> None:
    with_loops = "the authors' code, but self-loops"

    def f1(reading: str) -> str:
        shared = {row["split"] for row in READINGS if row["reading"] == with_loops}
        of = [row for row in READINGS if row["reading"] == reading and row["split"] in shared]
        values = [[row["f1"] for row in of if row["dataset"] == name] for name in ("citeseer", "cora_ml", "pubmed")]
        assert {len(each) for each in values} == {5}
        return ", ".join(f"{np.mean(each):.3f}" for each in values)

    assert f"({f1(SAME)} without self-loops; {f1(with_loops)} with)" in page


def half_widths(values: list[float]) -> NDArray[np.float64]:
    """The ± of a mean by 400 bootstraps of 1,000 resamples each, without the code of pprop."""
    sample, random = np.array(values), np.random.default_rng(7)
    counts = random.multinomial(len(sample), np.full(len(sample), 1 / len(sample)), size=(400, 1000))
    ends = np.quantile(counts @ sample / len(sample), [0.025, 0.975], axis=1)
    return np.abs(ends - sample.mean()).max(axis=0)


def on_test(published: tuple[Row, ...], dataset: str, seeds: Sequence[int] = TEST_SEEDS) -> list[Row]:
    """The newest rows of Bt. FP on test splits, in the order of a store; all splits without seeds."""
    config = load_experiments()[f"gasteiger_2019_bootstrapped_fp_{dataset}"].points[0].cell.config
    rows = sorted((row for row in published if row.key.config == config), key=lambda row: row.created)
    of_split = {row.key.seeds.split: row for row in rows}
    return [of_split[seed] for seed in sorted(seeds or of_split)]


@pytest.mark.slow
def test_the_papers_widths_are_those_of_the_validation_splits_more_often(page: str, published: tuple[Row, ...]) -> None:
    within = {"validation": 0, "test": 0}
    for dataset in THREE:
        papers = load_experiments()[f"gasteiger_2019_bootstrapped_fp_{dataset}"].published
        assert papers is not None
        halves = (papers.accuracy_interval or 0) / 100, papers.f1_interval or 0
        for half, key, metric in zip(halves, ("best", "f1"), ("accuracy", "f1"), strict=True):
            values = {
                "validation": [row[key] for row in READINGS if (row["dataset"], row["reading"]) == (dataset, SAME)],
                "test": [getattr(row, metric) for row in on_test(published, dataset)],
            }
            for kind, each in values.items():
                assert len(each) == 20
                low, high = np.quantile(half_widths(each), [0.005, 0.995])
                within[kind] += bool(low <= half <= high)
    assert within == {"validation": 4, "test": 0}
    told = (
        "Of the paper's six widths there, 4 are within what chance gives on the validation splits, and none on the test"
    )
    assert told in page
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    told = "Of the paper's 6 widths on these graphs, 4 are within the range of the validation splits and none within"
    assert told in text


@pytest.mark.slow
def test_on_ms_academic_means_and_the_width_of_macro_f1_are_nearer_the_test_splits(
    page: str, published: tuple[Row, ...]
) -> None:
    paper = load_experiments()["gasteiger_2019_bootstrapped_fp_ms_academic"].published
    assert paper is not None
    assert paper.accuracy is not None
    assert paper.f1 is not None
    rows = [row for row in READINGS if (row["dataset"], row["reading"]) == ("ms_academic", SAME)]
    test = on_test(published, "ms_academic")
    values = {
        "test": ([100 * row.accuracy for row in test], [row.f1 for row in test]),
        "validation": ([100 * row["best"] for row in rows], [row["f1"] for row in rows]),
    }
    gaps: dict[str, tuple[float, float]] = {}
    within: dict[str, tuple[bool, bool]] = {}
    for kind, (accuracy, f1) in values.items():
        assert (len(accuracy), len(f1)) == (20, 20)
        gaps[kind] = float(np.mean(accuracy)) - paper.accuracy, float(np.mean(f1)) - paper.f1
        ranges = (np.quantile(half_widths(each), [0.005, 0.995]) for each in (accuracy, f1))
        halves = paper.accuracy_interval or 0.0, paper.f1_interval or 0.0
        first, second = (bool(low <= half <= high) for half, (low, high) in zip(halves, ranges, strict=True))
        within[kind] = first, second
    assert within == {"test": (True, True), "validation": (True, False)}
    assert all(abs(one) < abs(other) for one, other in zip(gaps["test"], gaps["validation"], strict=True))
    assert "both means are nearer to it, and so is the width of macro F1" in page
    (accuracy, f1), (other, other_f1) = gaps["test"], gaps["validation"]
    told = (
        f"Our means are nearer to it there. On the test splits they differ by {accuracy:+.2f} points and {f1:+.4f} of macro F1. On "
        f"the validation splits they differ by {other:+.2f} points and {other_f1:+.4f}. The paper's ± of macro F1 "
        f"({paper.f1_interval:.4f}) is within the range of the test splits alone. Its ± of accuracy is within both ranges."
    ).replace("-0.", "\N{MINUS SIGN}0.")
    assert told in (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_has_the_tuned_models_accuracy_on_cora_ml_and_its_distance_to_ppnp(
    page: str, published: tuple[Row, ...]
) -> None:
    def by_split(model: str) -> dict[int, float]:
        config = make_cell(model, {}, "cora_ml").config
        rows = sorted((row for row in published if row.key.config == config), key=lambda row: row.created)
        newest = {row.key.seeds: 100 * row.accuracy for row in rows}
        splits = sorted({seeds.split for seeds in newest})
        return {split: float(np.mean([of for seeds, of in newest.items() if seeds.split == split])) for split in splits}

    tuned, ppnp = by_split("bootstrapped_fp"), by_split("ppnp")
    few = estimate([tuned[split] for split in TEST_SEEDS])
    told = (
        f"Bt. FP, tuned, has {few.mean:.2f} ± {few.half:.2f} there, PPNP {np.mean([ppnp[s] for s in TEST_SEEDS]):.2f}"
    )
    assert tuned.keys() == ppnp.keys()
    assert len(tuned) == 200
    gaps = [ppnp[split] - tuned[split] for split in tuned]
    assert (
        f"{told}, and over 200 splits the difference is {np.mean(gaps):.2f} ± {student_half(gaps):.2f} points." in page
    )


@pytest.mark.slow
def test_the_page_has_the_means_over_test_splits(page: str, published: tuple[Row, ...]) -> None:
    def told(values: list[float]) -> str:
        found = estimate([100 * value for value in values])
        return f"{found.mean:.2f} ± {found.half:.2f}"

    words: dict[str, str] = {}
    times: list[str] = []
    for dataset in DATASETS:
        papers = load_experiments()[f"gasteiger_2019_bootstrapped_fp_{dataset}"].published
        assert papers is not None
        assert papers.accuracy is not None
        ours = [row.accuracy for row in on_test(published, dataset)]
        words[dataset] = f"{told(ours)} on {dataset_title(dataset)}"
        half = float(np.hypot(100 * estimate(ours).half, papers.accuracy_interval or 0))
        times.append(f"{(100 * np.mean(ours) - papers.accuracy) / half:.1f}")
        assert f"({papers.accuracy:.2f} ± {papers.accuracy_interval:.2f})" in page.replace("(paper ", "(")
    assert all(text.partition(" on ")[0] in page for text in words.values())
    assert page.index(words["citeseer"]) < page.index(f"{times[0]} and {times[1]} combined intervals higher")
    more = [100 * np.array([row.accuracy for row in on_test(published, name, ())]) for name in ("citeseer", "cora_ml")]
    both = " and ".join(f"{values.mean():.2f} ± {student_half(values):.2f}" for values in more)  # as in the report
    assert [len(values) for values in more] == [200, 200]
    assert f"over 200 splits they are {both}." in page


@pytest.mark.slow
def test_the_page_has_the_difference_of_appnp_on_test_and_validation_nodes(
    page: str, published: tuple[Row, ...]
) -> None:
    def of(splits: Any) -> float:
        config = make_cell("appnp", {}, "citeseer", splits).config
        rows = {row.key.seeds: row for row in published if row.key.config == config}
        seeds = [Seeds(s, i) for s in (TEST_SEEDS if splits == "test" else VALIDATION_SEEDS) for i in range(5)]
        return 100 * float(np.mean([rows[one].accuracy for one in seeds]))

    assert f"APPNP's accuracy is {of('test') - of('validation'):.1f} points lower there." in page


def originals(make_rows: MakeRows, means: dict[str, float]) -> dict[str, tuple[TableEntry, ...]]:
    experiments: dict[str, Experiment] = load_experiments()
    cells = [experiments[f"gasteiger_2019_bootstrapped_fp_{name}"].points[0].cell for name in means]
    seeds = [Seeds(seed, 0) for seed in TEST_SEEDS]
    samples = [
        Sample(cell, Pool(cell, "c1", "d1", tuple(make_rows(cell, mean=of, seeds=seeds))))
        for cell, of in zip(cells, means.values(), strict=True)
    ]
    return entries(experiments, Samples(samples))


def rows_with(dataset: str, accuracy: float, f1: float, splits: int = 20) -> list[dict[str, Any]]:
    """Rows of both readings whose means are these, though no two are equal."""
    wiggle = 0.001 * (np.arange(splits) - (splits - 1) / 2)
    return [
        {"dataset": dataset, "reading": reading, "split": seed} | {keys[0]: accuracy + each, keys[1]: f1 + each}
        for reading, keys in ((SAME, ("best", "f1")), (OPEN, ("last_best", "last_best_f1")))
        for seed, each in zip(VALIDATION_SEEDS[:splits], wiggle.tolist(), strict=True)
    ]


def test_the_sentences_have_the_figures_of_all_graphs_with_all_splits(make_rows: MakeRows) -> None:
    main = originals(make_rows, {"citeseer": 0.751, "cora_ml": 0.8306, "pubmed": 0.7284, "ms_academic": 0.9154})
    rows = [
        *rows_with("citeseer", 0.7359, 0.68),  # the paper has 73.55 and 0.6789
        *rows_with("cora_ml", 0.8090, 0.8032),  # 80.84 and 0.8026
        *rows_with("pubmed", 0.7294, 0.7448),  # as the paper
    ]
    table, finding, _, second, limits = validation_blocks(main, rows)
    assert isinstance(table, Table)
    citeseer = table.groups[0].rows
    wanted = estimate([row["best"] for row in rows if row["dataset"] == "citeseer" and row["reading"] == SAME])
    low, high = half_by_chance([row["best"] for row in rows if row["dataset"] == "citeseer" and row["reading"] == SAME])
    assert [str(value) for value in citeseer[2][:3]] == [
        "Ours on the validation splits",
        f"73.59 ± {100 * wanted.half:.2f}",
        f"{100 * low:.2f} to {100 * high:.2f}",
    ]
    assert str(citeseer[0][1]) == "73.55 ± 0.57"
    ours = {name: [row.accuracy for entry in main[name] for row in entry.rows] for name in ("citeseer", "cora_ml")}
    test = [f"{100 * np.mean(ours[name]) - paper:+.2f}" for name, paper in (("citeseer", 73.55), ("cora_ml", 80.84))]
    told = f"it differs by +0.04 and +0.06 points there, and by {test[0]} and {test[1]} on the test splits."
    assert told in str(finding)
    assert "fitted, and no evidence" in str(second)
    assert "no further test node was used" in str(limits)
    assert str(second).endswith("It was not run on MS Academic.")
    more = rows_with("ms_academic", 0.9182, 0.8966)  # 91.61, 0.8997
    _, _, fourth, _, second, _ = validation_blocks(main, [*rows, *more])
    f1 = float(np.mean([row.f1 for entry in main["ms_academic"] for row in entry.rows])) - 0.8997
    assert f"points and {f1:+.4f} of macro F1. ".replace("-", "\N{MINUS SIGN}") in str(fourth)
    assert "On the validation splits they differ by +0.21 points and \N{MINUS SIGN}0.0031." in str(fourth)
    assert "macro F1 (0.0018) is within" in str(fourth)
    assert "MS Academic" not in str(second)
    fewer = [row | {"last_best": row["last_best"] + 0.001} for row in more[20:23]]
    _, _, _, _, second, _ = validation_blocks(main, [*rows, *more[:20], *fewer])
    assert str(second).endswith(
        "On MS Academic it was run on 3 of 20 validation splits. It differs from the first reading there by +0.10 points and "
        "+0.0000 of macro F1."
    )
    (lines,) = summary(main, {}, (), Samples([]), rows)
    assert "most likely of the validation splits" in str(lines)
    (lines,) = summary(main, {}, (), Samples([]))
    assert "validation splits" not in str(lines)


def test_the_rows_bear_the_sentences_about_them() -> None:
    papers = {name: load_experiments()[f"gasteiger_2019_bootstrapped_fp_{name}"].published for name in DATASETS}
    gaps: dict[str, float] = {}
    for dataset in THREE:
        paper = papers[dataset]
        assert paper is not None
        assert paper.accuracy is not None
        assert paper.f1 is not None
        gaps[dataset] = 100 * mean(dataset, SAME, "best") - paper.accuracy
        f1_gap = mean(dataset, SAME, "f1") - paper.f1
        assert abs(gaps[dataset]) < 0.07  # on the test splits 1.56 and 2.22
        assert abs(f1_gap) < 0.0016
        if dataset == "pubmed":  # every digit
            assert abs(gaps[dataset]) < 0.005
            assert abs(f1_gap) < 0.00005
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    told = f"{gaps['citeseer']:+.2f} and {gaps['cora_ml']:+.2f}"
    assert f"it differs by {told} points there, and by +1.56 and +2.22 on the test splits." in text
    assert (len(THREE), len(DATASETS)) == (3, 4)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "On three graphs of four the paper's row of it is most likely of the validation splits." in readme


def test_without_all_splits_nothing_is_said(make_rows: MakeRows) -> None:
    main = originals(make_rows, {"citeseer": 0.751})
    rows = rows_with("citeseer", 0.7359, 0.68, splits=19)
    assert [*validation_blocks(main, rows)] == []
    assert len(validation_table(main, rows).groups[0].rows) == 2  # the paper's, and ours on test
    assert json.loads(json.dumps(rows)) == rows
