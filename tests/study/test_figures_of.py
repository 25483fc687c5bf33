"""Every figure that a study's rows allow: from experiments and rows to captions and drawings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pprop
from pprop.datasets import TEST_SEEDS
from pprop.study.cell import Cell, Seeds, make_cell
from pprop.study.experiment import Experiment, Point
from pprop.study.experiment_folder import load_experiments
from pprop.study.figures import figures_of
from pprop.study.figures.distance import Distance, hops_from
from pprop.study.figures.sweeps import Lines

CITESEER = pprop.load_dataset("citeseer").fingerprint


def row(
    accuracy: float, seed: int = TEST_SEEDS[0], predictions: Any = None, device: str = "cpu", data: str = CITESEER
) -> Any:
    return SimpleNamespace(
        accuracy=accuracy,
        seconds=1.0,
        epochs=100,
        together=1,
        device=device,
        predictions=predictions,
        key=SimpleNamespace(data=data, seeds=Seeds(seed, 0)),
    )


def experiment(name: str, shows: str, *cells: Cell) -> Experiment:
    return Experiment(name, name.capitalize(), shows, tuple(Point(cell, {}) for cell in cells))


def no_graph(name: str) -> pprop.Graph:
    raise pprop.DatasetError(f"no {name} here")


def figures(experiments: Iterable[Experiment], rows_of: Callable[[Cell], list[Any]], graph_of: Any = no_graph):
    return {figure.name: figure for figure in figures_of(experiments, rows_of, graph_of)}


def accuracy_of(lines: Lines, dataset: str, series: str) -> dict[float, float]:
    panel = next(panel for panel in lines.panels if panel.dataset == dataset)
    line = next(line for line in panel.series if line.name == series)
    points = dict(zip(line.x, (point.mean for point in line.estimates), strict=True))
    return points if line.limit is None else points | {float("inf"): line.limit.mean}


def test_the_bundled_experiments_fill_the_grids_of_the_paper():
    drawn = figures(load_experiments().values(), lambda cell: [row(0.5)])
    assert list(drawn) == [
        "distributions",
        "labels",
        "steps",
        "steps_lead",
        "alpha",
        "depth",
        "propagation",
    ]
    four = ["Citeseer", "Cora-ML", "PubMed", "MS Academic"]
    for name in ("labels", "steps", "steps_lead", "alpha", "depth"):
        assert [panel.dataset for panel in drawn[name].data.panels] == four
    assert [panel.dataset for panel in drawn["propagation"].data] == four
    assert [[row.model for row in panel.models] for panel in drawn["distributions"].data] == [
        ["MLP", "V. GCN", "GCN", "N-GCN", "GAT", "JK", "Bt. FP", "Bt. FP, tuned", "PPNP", "APPNP"]
    ] * 4
    labels, steps = drawn["labels"].data, drawn["steps"].data
    assert list(accuracy_of(labels, "Cora-ML", "GAT")) == [1, 2, 5, 10, 20, 40, 60]
    assert list(accuracy_of(labels, "MS Academic", "GAT")) == [1, 2, 5, 10, 20, 40]
    grid = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, float("inf")]
    for alpha in ("α = 0", "α = 0.1", "α = 0.2"):
        assert list(accuracy_of(steps, "MS Academic", alpha)) == grid
    assert [series.name for series in steps.panels[0].series] == ["α = 0", "α = 0.1"]
    assert list(accuracy_of(drawn["alpha"].data, "PubMed", "PPNP")) == [
        *(0.005, 0.01, 0.02, 0.05, 0.1, 0.15),
        *(0.2, 0.3, 0.5, 0.7, 0.9, 1.0),
    ]
    assert list(accuracy_of(drawn["depth"].data, "PubMed", "APPNP")) == [1, 2, 3, 4, 5]
    assert [way.name for way in drawn["propagation"].data[0].ways] == ["never", "training", "inference", "both"]
    splits = {name: drawn[name].data.splits for name in ("labels", "steps", "alpha", "depth")}
    assert splits == {"labels": "test", "steps": "validation", "alpha": "validation", "depth": "validation"}
    assert all("1 run" in figure.caption for name, figure in drawn.items() if not name.endswith("_lead"))
    assert not any("Not shown" in figure.caption for figure in drawn.values())


def test_a_cell_is_drawn_where_its_settings_say():
    def rows_of(cell: Cell) -> list[Any]:
        if cell.dataset != "cora_ml" or cell.model not in ("appnp", "ppnp"):
            return []
        share = cell.settings["alpha"] / 2 + 0.001 * cell.settings.get("steps", 500)
        return [row(share)]

    experiments = [load_experiments()[f"gasteiger_2019_{kind}_cora_ml"] for kind in ("alpha", "steps")]
    drawn = figures(experiments, lambda cell: [] if cell.settings.get("steps") == "limit" else rows_of(cell))
    assert accuracy_of(drawn["alpha"].data, "Cora-ML", "APPNP")[0.5] == pytest.approx(100 * (0.25 + 0.01))
    assert accuracy_of(drawn["alpha"].data, "Cora-ML", "PPNP")[0.5] == pytest.approx(100 * (0.25 + 0.5))
    assert accuracy_of(drawn["steps"].data, "Cora-ML", "α = 0.1")[100] == pytest.approx(100 * (0.05 + 0.1))
    assert accuracy_of(drawn["steps"].data, "Cora-ML", "α = 0.1")[float("inf")] == pytest.approx(100 * (0.05 + 0.5))
    assert drawn["alpha"].experiments == ("gasteiger_2019_alpha_cora_ml",)
    drawing = drawn["alpha"].draw()
    assert [line.get_label() for line in drawing.axes[0].lines] == ["PPNP", "APPNP"]


def test_the_quick_study_alone_has_its_distributions():
    quick = load_experiments()["quick"]
    drawn = figures([quick], lambda cell: [row(0.5)] * (20 if cell.model != "mlp" else 7))
    assert list(drawn) == ["distributions"]
    assert "20 runs of each model, but MLP: 7." in drawn["distributions"].caption


def test_two_cells_with_one_place_are_not_pooled():
    published = experiment("published", "accuracy", make_cell("appnp", {}, "citeseer"))
    mine = experiment("mine", "accuracy", make_cell("appnp", {"hidden": [32]}, "citeseer"))
    again = experiment("again", "quick", make_cell("appnp", {}, "citeseer"))
    drawn = figures([published, mine, again], lambda cell: [row(0.75 if cell.settings["hidden"] == [64] else 0.25)])
    (model,) = drawn["distributions"].data[0].models
    assert (model.estimate.mean, model.estimate.runs) == (75, 1)
    assert "Not shown, because they have no place of their own: cells of mine." in drawn["distributions"].caption
    assert drawn["distributions"].experiments == ("published",)


def test_a_cell_that_does_not_belong_into_a_figure_is_named():
    sweep = experiment("mine", "steps", make_cell("gcn", {}, "citeseer"), make_cell("appnp", {}, "citeseer"))
    drawn = figures([sweep], lambda cell: [row(0.75)])
    assert [series.name for series in drawn["steps"].data.panels[0].series] == ["α = 0.1"]
    assert "cells of mine" in drawn["steps"].caption


def test_a_figure_on_both_kinds_of_splits_is_two():
    cells = [make_cell("appnp", {}, "citeseer", splits=splits) for splits in ("test", "validation")]
    drawn = figures([experiment("mine", "alpha", *cells)], lambda cell: [row(0.5 if cell.splits == "test" else 0.25)])
    assert list(drawn) == ["alpha_test", "alpha_validation"]
    assert accuracy_of(drawn["alpha_validation"].data, "Citeseer", "APPNP") == {0.1: 25}


def test_times_of_different_devices_are_said_not_to_compare():
    names = [load_experiments()["gasteiger_2019_propagation_citeseer"]]
    alike = figures(names, lambda cell: [row(0.5)])["propagation"]
    assert "Times are " in alike.caption
    unlike = figures(names, lambda cell: [row(0.5, device="cuda" if cell.model == "mlp" else "cpu")])["propagation"]
    assert "Times on Citeseer do not compare" in unlike.caption


def test_distances_come_from_the_predictions_of_the_two_models():
    graph = pprop.load_dataset("citeseer")
    assert graph.labels is not None
    labels, seeds = graph.labels, TEST_SEEDS[:2]
    far = {seed: hops_from(graph, pprop.paper_split(graph, seed).train) >= 3 for seed in seeds}

    def rows_of(cell: Cell) -> list[Any]:
        wrong = (labels + 1) % graph.n_classes
        # GCN is wrong from three hops on, APPNP never.
        return [
            row(0.5, seed, np.where(far[seed] & (cell.model == "gcn"), wrong, labels).astype(np.uint8))
            for seed in seeds
        ]

    experiments = load_experiments().values()
    wanted = [one for one in experiments if one.name.endswith(("_appnp_citeseer", "2019_gcn_citeseer"))]
    drawn = figures(wanted, rows_of, lambda name: graph)["distance"]
    panel = drawn.data[0]
    assert isinstance(panel, Distance)
    assert [ring.improvement.mean for ring in panel.rings] == [0, 0] + [100] * (len(panel.rings) - 2)
    assert drawn.experiments == ("gasteiger_2019_appnp_citeseer", "gasteiger_2019_gcn_citeseer")
    assert "2 runs of each model." in drawn.caption


def test_a_graph_that_is_not_here_is_named_and_the_others_are_drawn():
    citeseer = pprop.load_dataset("citeseer")
    cells = [make_cell(model, {}, dataset) for model in ("appnp", "gcn") for dataset in ("citeseer", "pubmed")]
    predictions = np.zeros(citeseer.n_nodes, dtype=np.uint8)
    drawn = figures(
        [experiment("mine", "accuracy", *cells)],
        lambda cell: [row(0.5, predictions=predictions)],
        lambda name: citeseer if name == "citeseer" else no_graph(name),
    )
    assert [panel.dataset for panel in drawn["distance"].data] == ["Citeseer"]
    assert "Without PubMed, whose graph is not on this machine." in drawn["distance"].caption


def test_distances_that_no_graph_allows_are_said_to_be_missing():
    cells = [make_cell(model, {}, dataset) for model in ("appnp", "gcn") for dataset in ("citeseer", "pubmed")]
    drawn = figures([experiment("mine", "accuracy", *cells)], lambda cell: [row(0.5)])
    assert list(drawn) == ["distributions"]
    told = "There is no figure of distances. Without Citeseer, PubMed, whose graph is not on this machine."
    assert drawn["distributions"].caption.endswith(told)


def test_predictions_on_another_version_of_a_graph_are_not_judged_by_its_labels():
    citeseer = pprop.load_dataset("citeseer")
    predictions = np.zeros(citeseer.n_nodes, dtype=np.uint8)
    cells = [make_cell(model, {}, "citeseer") for model in ("appnp", "gcn")]
    drawn = figures(
        [experiment("mine", "accuracy", *cells)],
        lambda cell: [row(0.5, predictions=predictions, data="another")],
        lambda name: citeseer,
    )
    assert list(drawn) == ["distributions"]
    assert drawn["distributions"].caption.endswith("Without Citeseer, whose graph here is not the one of the rows.")


def test_a_limit_whose_runs_ended_at_the_most_epochs_says_so():
    """Without teleport early stopping often never ends the limit of many steps; elsewhere nothing is said."""
    limits = [make_cell("appnp", {"alpha": 0.0, "steps": "limit"}, where) for where in ("citeseer", "cora_ml")]
    others = [make_cell("ppnp", {}, "citeseer"), make_cell("appnp", {}, "citeseer")]

    def rows_of(cell: Cell) -> list[Any]:
        rows = [row(0.5, seed) for seed in TEST_SEEDS[:3]]
        for one in rows[: 2 if cell.dataset == "citeseer" else 1]:
            one.epochs = 10_000 if cell in limits else 9_999
        return rows

    drawn = figures([experiment("mine", "steps", *limits, *others)], rows_of)
    assert " 3 of 6 runs of α = 0 with the limit ended at the cap of 10,000 epochs." in drawn["steps"].caption
    assert drawn["steps"].caption.count("the cap") == 1
    without = figures([experiment("mine", "steps", *others)], rows_of)
    assert "the cap" not in without["steps"].caption
