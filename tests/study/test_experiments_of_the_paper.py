"""The bundled experiment files against the paper's tables and the protocol's grids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pprop.study.experiment
from pprop.datasets import DATASETS, TEST_SEEDS, VALIDATION_SEEDS
from pprop.study.cell import MODELS, is_original, make_cell
from pprop.study.experiment import Experiment, Published
from pprop.study.experiment_folder import load_experiments

FILES = Path(pprop.study.experiment.__file__).parent / "experiments"
GRAPHS = ("citeseer", "cora_ml", "pubmed", "ms_academic")

# Rows as they are printed: tables 2, 4, 3, 5 and 6, one column per graph in the order above.
ACCURACY = """
vanilla_gcn      73.51 0.48  82.30 0.34  77.65 0.40  91.65 0.09
gcn              75.40 0.30  83.41 0.39  78.68 0.38  92.10 0.08
ngcn             74.25 0.40  82.25 0.30  77.43 0.42  92.86 0.11
gat              75.39 0.27  84.37 0.24  77.76 0.44  91.22 0.07
jk               73.03 0.47  82.69 0.35  77.88 0.38  91.71 0.10
bootstrapped_fp  73.55 0.57  80.84 0.97  72.94 1.00  91.61 0.24
ppnp             75.83 0.27  85.29 0.25  - -         - -
appnp            75.73 0.30  85.09 0.25  79.73 0.31  93.27 0.08
mlp              - -         - -         - -         - -
"""
F1 = """
vanilla_gcn      0.7002 0.0043  0.8205 0.0027  0.7801 0.0038  0.9000 0.0008
gcn              0.7065 0.0037  0.8289 0.0030  0.7883 0.0032  0.9045 0.0008
ngcn             0.7021 0.0035  0.8183 0.0024  0.7773 0.0040  0.9144 0.0012
gat              0.7062 0.0029  0.8359 0.0025  0.7777 0.0040  0.8917 0.0007
jk               0.6914 0.0043  0.8202 0.0026  0.7799 0.0039  0.8985 0.0012
bootstrapped_fp  0.6789 0.0055  0.8026 0.0082  0.7448 0.0079  0.8997 0.0018
ppnp             0.7102 0.0041  0.8454 0.0021  - -            - -
appnp            0.7105 0.0038  0.8429 0.0022  0.7966 0.0031  0.9184 0.0009
mlp              - -            - -            - -            - -
"""
TIMES = """
vanilla_gcn  37.6   32.4   48.6    45.5
gcn          35.3   36.5   48.3    39.2
ngcn         115.9  118.9  342.6   328.5
gat          187.0  217.4  1029.8  772.2
jk           57.5   43.6   77.8    61.9
ppnp         49.2   55.3   -       -
appnp        43.3   42.7   64.1    59.8
mlp          -      -      -       -
"""
P_ACCURACY = "ppnp 1.02e-03 5.96e-14 - -\nappnp 1.77e-02 4.27e-09 2.19e-15 5.93e-13"
P_F1 = "ppnp 4.49e-02 4.50e-14 - -\nappnp 2.32e-02 1.07e-08 8.70e-14 1.99e-08"


def table(text: str, columns: int) -> dict[tuple[str, str], tuple[float | None, ...]]:
    cells: dict[tuple[str, str], tuple[float | None, ...]] = {}
    for line in text.strip().splitlines():
        model, *words = line.split()
        values = [None if word == "-" else float(word) for word in words]
        for place, graph in enumerate(GRAPHS):
            cells[model, graph] = tuple(values[columns * place : columns * (place + 1)])
    return cells


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return load_experiments()


def test_tables_of_accuracy_f1_and_p_values_are_the_papers(experiments: dict[str, Experiment]):
    accuracy, f1, p_accuracy, p_f1 = table(ACCURACY, 2), table(F1, 2), table(P_ACCURACY, 1), table(P_F1, 1)
    assert len(accuracy) == 36
    for (model, graph), numbers in accuracy.items():
        key = model, graph
        expected = Published(
            accuracy=numbers[0],
            accuracy_interval=numbers[1],
            f1=f1[key][0],
            f1_interval=f1[key][1],
            p_accuracy=p_accuracy.get(key, (None,))[0],
            p_f1=p_f1.get(key, (None,))[0],
        )
        experiment = experiments[f"gasteiger_2019_{model}_{graph}"]
        assert (experiment.published or Published()) == expected
        assert experiment.shows == "accuracy"
        assert [point.at for point in experiment.points] == [{}]


def test_the_settings_written_in_a_file_are_the_published_defaults(experiments: dict[str, Experiment]):
    for model in MODELS:
        for graph in GRAPHS:
            (point,) = experiments[f"gasteiger_2019_{model}_{graph}"].points
            original = {"reading": "original", "C": 1.0, "self_loops": False}  # the defaults are the tuned ones
            assert point.cell == make_cell(model, original if model == "bootstrapped_fp" else {}, graph)
    for graph in GRAPHS:
        (point,) = experiments[f"pprop_2026_bootstrapped_fp_{graph}"].points
        assert point.cell == make_cell("bootstrapped_fp", {}, graph)
        assert experiments[f"pprop_2026_bootstrapped_fp_{graph}"].published is None


def test_times_are_the_papers_and_measured_one_run_at_a_time(experiments: dict[str, Experiment]):
    for (model, graph), (milliseconds,) in table(TIMES, 1).items():
        experiment = experiments[f"gasteiger_2019_{model}_{graph}_time"]
        assert (experiment.published or Published()) == Published(ms_per_epoch=milliseconds)
        assert (experiment.shows, experiment.alone) == ("time", True)
        # Its runs are no runs of the accuracy table: those were trained together.
        assert experiment.points[0].cell != make_cell(model, {}, graph)
    assert sum(experiment.alone for experiment in experiments.values()) == 32


def test_100_runs_make_a_cell_and_20_where_nothing_is_random(experiments: dict[str, Experiment]):
    for experiment in experiments.values():
        if experiment.shows == "accuracy":
            (point,) = experiment.points
            runs = 20 if point.cell.model == "bootstrapped_fp" else 100
            assert len(experiment.seeds()) == len(experiment.seeds(cell=point.cell)) == runs


def test_seeds_go_through_all_splits_before_the_next_initialisation(experiments: dict[str, Experiment]):
    experiment = experiments["gasteiger_2019_gcn_pubmed"]
    pairs = [(seeds.split, seeds.init) for seeds in experiment.seeds()]
    assert pairs == [(split, init) for init in range(5) for split in TEST_SEEDS]
    assert experiment.seeds(runs=25) == experiment.seeds()[:25]


def test_bootstrapped_feature_propagation_has_one_run_per_split_among_other_models(experiments: dict[str, Experiment]):
    experiment = experiments["gasteiger_2019_labels_citeseer"]
    runs = {point.cell.model: len(experiment.seeds(cell=point.cell)) for point in experiment.points}
    assert runs == {model: 20 if model == "bootstrapped_fp" else 100 for model in MODELS}


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_grids_are_those_of_the_protocol(experiments: dict[str, Experiment], graph: str):
    def grid(figure: str, axis: str) -> list[object]:
        points = experiments[f"gasteiger_2019_{figure}_{graph}"].points
        return list(dict.fromkeys(point.at[axis] for point in points))

    labels = [1, 2, 5, 10, 20, 40] + ([60] if graph != "ms_academic" else [])
    assert grid("labels", "per_class") == labels
    assert set(grid("labels", "model")) == set(MODELS)
    assert grid("steps", "steps") == [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, "limit"]
    assert grid("steps", "alpha") == [0.0, 0.1] + ([0.2] if graph == "ms_academic" else [])
    assert grid("alpha", "alpha") == [0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0]
    assert grid("alpha", "model") == ["appnp", "ppnp"]
    assert grid("depth", "layers") == [1, 2, 3, 4, 5]
    assert grid("propagation", "propagation") == ["never", "training", "inference", "both"]
    assert len(experiments[f"gasteiger_2019_labels_{graph}"].points) == 9 * len(labels)


@pytest.mark.parametrize("graph", GRAPHS)
def test_figures_use_the_splits_of_the_protocol(experiments: dict[str, Experiment], graph: str):
    expected = {"labels": "test", "steps": "validation", "alpha": "validation", "depth": "validation"}
    for figure, splits in {**expected, "propagation": "test"}.items():
        experiment = experiments[f"gasteiger_2019_{figure}_{graph}"]
        assert {point.cell.splits for point in experiment.points} == {splits}
        seeds = VALIDATION_SEEDS if splits == "validation" else TEST_SEEDS
        assert tuple(seed.split for seed in experiment.seeds(runs=20)) == seeds


def test_layers_are_counted_with_the_last(experiments: dict[str, Experiment]):
    points = experiments["gasteiger_2019_depth_pubmed"].points
    assert [point.cell.settings["hidden"] for point in points] == [[64] * layers for layers in range(5)]


def test_the_ways_to_propagate_are_four_cells_of_two_models(experiments: dict[str, Experiment]):
    points = experiments["gasteiger_2019_propagation_ms_academic"].points
    cells = {point.at["propagation"]: point.cell for point in points}
    assert cells["never"] == make_cell("mlp", {}, "ms_academic")
    assert cells["training"] == make_cell("appnp", {"evaluate": "network"}, "ms_academic")
    assert cells["inference"] == make_cell("mlp", {"evaluate": "propagated", "alpha": 0.2, "steps": 10}, "ms_academic")
    assert cells["both"] == make_cell("appnp", {}, "ms_academic")


def test_limits_of_the_step_figure_are_cells_of_the_alpha_figure(experiments: dict[str, Experiment]):
    limits = [p.cell for p in experiments["gasteiger_2019_steps_ms_academic"].points if p.at["steps"] == "limit"]
    alphas = [p.cell for p in experiments["gasteiger_2019_alpha_ms_academic"].points]
    assert [cell.model for cell in limits] == ["appnp", "ppnp", "ppnp"]
    assert limits[1] in alphas
    assert limits[2] in alphas


def test_each_search_holds_the_published_setting_on_both_of_its_graphs(experiments: dict[str, Experiment]):
    searches = [experiment for experiment in experiments.values() if experiment.shows == "search"]
    searched = {experiment.points[0].cell.model for experiment in searches}
    assert searched == set(MODELS)
    for experiment in searches:
        cells = [point.cell for point in experiment.points]
        assert {cell.splits for cell in cells} == {"validation"}
        for graph in ("citeseer", "cora_ml"):
            assert make_cell(cells[0].model, {}, graph, "validation") in cells


def test_the_authors_second_run_shares_its_rows_with_the_first(experiments: dict[str, Experiment]):
    again = experiments["authors_2019_rerun_appnp_cora_ml"]
    assert again.published == Published(85.05, 0.23, 0.8431, 0.0021, ms_per_epoch=32.7)
    assert again.points == experiments["gasteiger_2019_appnp_cora_ml"].points


def test_quick_is_20_runs_of_three_models_on_citeseer(experiments: dict[str, Experiment]):
    quick = experiments["quick"]
    assert [point.cell for point in quick.points] == [
        make_cell(model, {}, "citeseer") for model in ("appnp", "gcn", "mlp")
    ]
    assert len(quick.seeds()) == 20


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_thousand_runs_are_those_of_the_accuracy_table_and_900_more(experiments: dict[str, Experiment], graph: str):
    more = experiments[f"pprop_2026_runs_{graph}"]
    assert sorted(point.cell.model for point in more.points) == sorted([*MODELS, "bootstrapped_fp"])
    for point in more.points:
        tuned = point.cell.model == "bootstrapped_fp" and not is_original(point.cell)
        kind = "pprop_2026" if tuned else "gasteiger_2019"
        published = experiments[f"{kind}_{point.cell.model}_{graph}"]
        assert point.cell == published.points[0].cell
        assert set(published.seeds(cell=point.cell)) < set(more.seeds(cell=point.cell))
    assert len(more.seeds()) == len(set(more.seeds())) == 1000
    assert len({seeds.split for seeds in more.seeds()}) == 200


def test_groups_hold_what_their_names_say(experiments: dict[str, Experiment]):
    groups: dict[str, set[str]] = {}
    for experiment in experiments.values():
        for group in experiment.groups:
            groups.setdefault(group, set()).add(experiment.name)
    assert {name: len(members) for name, members in groups.items()} == {
        "accuracy": 40,
        "figures": 20,
        "rerun": 1,
        "search": 9,
        "time": 32,
        **dict.fromkeys(("labels", "steps", "alpha", "depth", "propagation"), 4),
        **dict.fromkeys(MODELS, 4),
        "bootstrapped_fp": 8,
        **dict.fromkeys(DATASETS, 10),
        **{f"{graph}_figures": 5 for graph in GRAPHS},
        **{f"{graph}_time": 8 for graph in GRAPHS},
        "runs": 4,
        **{f"{graph}_runs": 1 for graph in GRAPHS},
    }
    assert not set(groups) & set(experiments)


def test_every_file_is_named_for_its_content_and_says_where_its_numbers_are():
    for path in FILES.glob("*.toml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("# ")
        assert path.stem == "quick" or re.fullmatch(r"((gasteiger|authors)_2019|pprop_2026)_[a-z_]+", path.stem)
