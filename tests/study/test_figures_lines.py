"""The figures over one setting and the propagation figure: the numbers they show, and that the drawing shows them."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pprop
from pprop.study.cell import MODELS, Cell, Seeds, fill_settings, name_of
from pprop.study.experiment import Experiment, Point
from pprop.study.figures.accuracies import (
    WAYS,
    distribution_data,
    distributions_data,
    draw_distributions,
    draw_propagation,
    left_end,
    propagation_data,
)
from pprop.study.figures.gather import runs_note
from pprop.study.figures.style import LOOKS, OTHERS, looks_of, push_apart, save_figure
from pprop.study.figures.sweeps import (
    ALPHA,
    DEPTH,
    LABELS,
    STEPS,
    STEPS_LEAD,
    UNSEEDED,
    Lines,
    draw_lines,
    from_appnp,
    from_ppnp,
    lines_data,
    sweep_figures,
)
from pprop.study.stats.estimate import bootstrap_interval

pytestmark = pytest.mark.slow


def runs(*accuracies: float, **more: Any) -> list[Any]:
    """Return rows of which only what a figure reads is there."""
    return [
        SimpleNamespace(accuracy=accuracy, key=SimpleNamespace(seeds=Seeds(split, 0)), **more)
        for split, accuracy in enumerate(accuracies)
    ]


def steps():
    return lines_data(
        {
            "Cora-ML": {
                ("α = 0.1", 10): runs(0.85, 0.87),
                ("α = 0.1", 1): runs(0.70, 0.72, 0.74),
                ("α = 0.1", math.inf): runs(0.88),
                ("α = 0", 1): runs(0.70),
                ("α = 0", math.inf): runs(0.30),
            },
            "MS Academic": {("α = 0.2", 10): runs(0.93)},
        },
        "validation",
    )


def axes_of(figure: Any) -> list[Any]:
    return figure.axes


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_point_is_the_mean_of_its_runs_with_an_interval_over_splits():
    point = steps().panels[0].series[1].estimates[0]
    assert (point.mean, point.runs) == (pytest.approx(72), 3)
    assert (point.low, point.high) == pytest.approx(bootstrap_interval([70, 72, 74]))
    assert 70 <= point.low < 72 < point.high <= 74


def test_steps_are_in_order_and_infinitely_many_are_the_limit():
    cora, academic = steps().panels
    assert [series.name for series in cora.series] == ["α = 0", "α = 0.1"]
    assert cora.series[1].x == (1, 10)
    assert [point.mean for point in cora.series[1].estimates] == pytest.approx([72, 86])
    assert cora.series[1].limit is not None
    assert cora.series[1].limit.mean == pytest.approx(88)
    assert [(series.name, series.limit) for series in academic.series] == [("α = 0.2", None)]


def test_a_drawing_over_steps_has_its_lines_limits_and_names():
    axes, academic = axes_of(draw_lines(steps(), STEPS))
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["α = 0.1"].get_xdata() == pytest.approx([1, 10])
    assert lines["α = 0.1"].get_ydata() == pytest.approx([72, 86])
    dashed = [line.get_ydata()[0] for line in axes.lines if str(line.get_label()).startswith("_")]
    assert sorted(dashed) == pytest.approx([30, 88])
    # what ends below the panel has its height as a number, and so has its limit, which is below, too
    assert sorted(texts(axes)) == ["limit", "limit \u2193 30", "α = 0 \u2193 70", "α = 0.1"]
    assert 72 < axes.get_ylim()[0] < 85
    assert [label.get_text() for label in axes.get_xticklabels()][:3] == ["1\n1+", "2", "5"]
    assert [label.get_text() for label in axes.get_xticklabels()][3] == "10\n2"
    assert texts(academic) == ["α = 0.2"]
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == academic.get_xlim()
    assert axes.get_ylabel() == "validation accuracy (%)"


def test_a_single_point_has_its_interval_as_a_bar():
    (axes,) = axes_of(draw_lines(lines_data({"PubMed": {("APPNP", 2): runs(0.5, 0.7)}}, "validation"), DEPTH))
    bars = [
        segment[:, 1].tolist()
        for lines in axes.collections
        if hasattr(lines, "get_segments")
        for segment in lines.get_segments()
    ]
    assert bars == [pytest.approx([50, 70])]


def test_a_series_of_which_only_the_limit_is_there_is_named_too():
    rows = {"PubMed": {("α = 0.1", math.inf): runs(0.8), ("α = 0", 2): runs(0.7)}}
    axes = axes_of(draw_lines(lines_data(rows, "validation"), STEPS))[0]
    assert sorted(texts(axes)) == ["α = 0", "α = 0.1, limit"]


def test_labels_have_every_model_in_the_papers_order_each_named_at_its_end():
    points = {
        (model, k): runs(0.5 + 0.001 * k) for model in reversed(list(LOOKS)) if "α" not in model for k in (1.0, 60.0)
    }
    rows = {"Cora-ML": points, "PubMed": {("GCN", 5.0): runs(0.7)}, "Citeseer": {("GCN", 5.0): []}}
    lines = lines_data(rows, "test")
    assert [panel.dataset for panel in lines.panels] == ["Cora-ML", "PubMed"]
    figure = draw_lines(lines, replace(LABELS, heights="", lowest=-math.inf))
    models = ["MLP", "V. GCN", "GCN", "N-GCN", "GAT", "JK", "Bt. FP", "Bt. FP, tuned", "PPNP", "APPNP"]
    assert sorted(texts(axes_of(figure)[0])) == sorted(models)
    assert not figure.legends
    assert axes_of(figure)[0].get_ylabel() == "test accuracy (%)"
    assert [line.get_label() for line in axes_of(figure)[0].lines] == models
    assert axes_of(figure)[0].lines[0].get_ydata() == pytest.approx([50.1, 56])


def test_a_model_has_the_same_colour_in_every_figure():
    both, appnp = {("PPNP", 1.0): runs(0.6), ("APPNP", 1.0): runs(0.5)}, {("APPNP", 2.0): runs(0.5)}
    labels, alpha, depth = (
        axes_of(draw_lines(lines_data({"PubMed": points}, "test"), axis))[0]
        for points, axis in ((both, LABELS), (both, ALPHA), (appnp, DEPTH))
    )
    rows = axes_of(draw_distributions(distributions_data({"PubMed": {"APPNP": runs(0.5, 0.6)}})))[0]
    colours = {line.get_label(): line.get_color() for axes in (labels, alpha, depth) for line in axes.lines}
    (zero,) = [name for name in colours if str(name).startswith("_")]  # what differences are from
    assert colours.pop(zero) == "0.35"
    assert colours == {"APPNP": LOOKS["APPNP"].colour, "PPNP": LOOKS["PPNP"].colour}
    assert {line.get_color() for line in rows.lines} == {LOOKS["APPNP"].colour}


def test_all_models_can_be_told_apart_without_colour():
    looks = [look for name, look in LOOKS.items() if "α" not in name]
    assert len({(look.marker, look.dashes) for look in looks}) == len(looks)


def test_no_two_models_share_a_colour():
    colours = [look.colour for name, look in LOOKS.items() if "α" not in name]
    assert len({*colours, *(look.colour for look in OTHERS)}) == len(colours) + len(OTHERS)


def test_a_model_far_behind_the_others_is_written_and_not_drawn():
    others = {name: runs(*np.linspace(0.74, 0.78, 9)) for name in ("GCN", "GAT", "APPNP")}
    others["GCN"] += runs(0.5)  # a single run that is far off
    panels = distributions_data({"Citeseer": {"MLP": runs(0.6, 0.62, 0.64, 0.66), **others}})
    axes = axes_of(draw_distributions(panels))[0]
    assert axes.get_xlim()[0] > 66
    assert {"\u25c2 60.0 to 66.0", "\u25c2 50.0", "63.0"} <= set(texts(axes))
    assert [len(dots.get_offsets()) for dots in axes.collections] == [9, 9, 9]


def test_models_of_the_user_stand_last_and_look_like_no_other():
    looks = looks_of(["mine", "yours", "APPNP"])
    assert list(looks) == ["APPNP", "mine", "yours"]
    assert len({look.colour for look in looks.values()}) == 3


def test_depth_counts_layers_on_an_even_axis():
    lines = lines_data({"PubMed": {("APPNP", 5): runs(0.7), ("APPNP", 1): runs(0.75, 0.77)}}, "validation")
    axes = axes_of(draw_lines(lines, DEPTH))[0]
    assert axes.lines[0].get_xdata() == pytest.approx([1, 5])
    assert axes.lines[0].get_ydata() == pytest.approx([76, 70])
    assert axes.get_xscale() == "linear"


def test_alpha_has_both_models():
    points = {("APPNP", 0.5): runs(0.7), ("APPNP", 0.005): runs(0.6), ("PPNP", 1.0): runs(0.5)}
    axes = axes_of(draw_lines(lines_data({"PubMed": points}, "validation"), ALPHA))[0]
    assert [(line.get_label(), list(line.get_xdata())) for line in axes.lines] == [
        ("PPNP", [1.0]),
        ("APPNP", [0.005, 0.5]),
    ]


def test_no_run_at_all_is_refused():
    lines = lines_data({"PubMed": {}}, "test")
    assert lines == Lines((), "test")
    with pytest.raises(pprop.InputError, match="'lines' parameter of draw_lines must be lines of at least one run"):
        draw_lines(lines, LABELS)


def propagation():
    fast = {"epochs": 400, "together": 20, "device": "cpu"}
    return propagation_data(
        {
            "Citeseer": {
                "both": runs(0.75, 0.77, seconds=2.0, **fast),
                "never": runs(0.62, seconds=1.0, **fast),
                "training": [],
            },
            "PubMed": {
                "both": runs(0.8, seconds=2.0, epochs=100, together=1, device="cuda"),
                "never": runs(0.7, seconds=2.0, epochs=100, together=20, device="cuda"),
            },
        }
    )


def test_propagation_has_accuracies_and_times_of_the_ways_that_ran():
    citeseer, pubmed = propagation()
    assert [way.name for way in citeseer.ways] == ["never", "both"]
    both = citeseer.ways[1]
    assert (both.accuracy.mean, both.accuracy.runs, both.seconds.mean) == (pytest.approx(76), 2, 2.0)
    assert both.ms_per_epoch == pytest.approx(1000 * 4.0 / 800)
    assert citeseer.times_compare
    assert not pubmed.times_compare


def test_the_time_of_a_way_is_that_of_runs_alone_where_they_were_timed_on_its_device():
    rows = {"Citeseer": {name: runs(0.7, seconds=9.0, epochs=400, together=20, device="cuda") for name in WAYS}}
    timed = {
        "Citeseer": {
            "MLP": runs(0.5, seconds=0.2, epochs=200, together=1, device="cuda"),
            "APPNP": [
                *runs(0.5, seconds=0.6, epochs=200, together=1, device="cuda"),
                *runs(0.5, seconds=60.0, epochs=200, together=1, device="cpu"),
                *runs(0.5, seconds=60.0, epochs=200, together=5, device="cuda"),
            ],
        }
    }
    (panel,) = propagation_data(rows, timed)
    assert [way.seconds.mean for way in panel.ways] == pytest.approx([0.4, 1.2, 0.4, 1.2])
    assert panel.times_compare


def test_a_drawing_of_propagation_has_points_and_bars():
    figure = draw_propagation(propagation())
    assert len(axes_of(figure)) == 4
    accuracy, seconds = axes_of(figure)[:2]
    assert [label.get_text() for label in accuracy.get_yticklabels()] == ["never", "both"]
    assert accuracy.lines[0].get_xdata() == pytest.approx([62, 76])
    assert [bar.get_width() for bar in seconds.patches] == pytest.approx([1, 2])
    assert texts(seconds) == ["1", "2"]


def test_an_unknown_way_to_propagate_is_refused():
    with pytest.raises(pprop.InputError, match=r"'rows' parameter of propagation_data must be keyed by one of 'never'"):
        propagation_data({"PubMed": {"always": []}})


def test_panels_of_distributions_have_models_in_one_order_with_their_means():
    panels = distributions_data(
        {"Citeseer": {"mine": runs(0.9), "APPNP": runs(0.75, 0.77), "GCN": runs(0.74)}, "PubMed": {"JK": []}}
    )
    assert [(panel.dataset, [row.model for row in panel.models]) for panel in panels] == [
        ("Citeseer", ["GCN", "APPNP", "mine"])
    ]
    axes = axes_of(draw_distributions(panels))[0]
    assert texts(axes) == ["74.0", "76.0", "90.0", "mean"]
    assert np.asarray(axes.collections[1].get_offsets())[:, 0] == pytest.approx([75, 77])
    (two_splits,) = [row.over_splits for row in panels[0].models if row.model == "APPNP"]
    assert two_splits is not None
    assert [line.get_xdata().tolist() for line in axes.lines].count(
        [two_splits.low, two_splits.high]
    ) == 2  # equal here


def test_a_model_far_behind_is_written_and_one_just_behind_is_drawn():
    others = {"GCN": [0.74, 0.75, 0.76, 0.77], "GAT": [0.75, 0.76, 0.77, 0.78], "APPNP": [0.76, 0.77, 0.78, 0.79]}
    # a run of Bt. FP reaches down to where the MLP's middle is
    few = {"Bt. FP": [0.68, 0.69, 0.73, 0.74]} | others
    assert left_end(distribution_data({"MLP": [0.63, 0.68, 0.69, 0.71]} | few)) == pytest.approx(68)
    assert left_end(distribution_data({"MLP": [0.735, 0.736, 0.737, 0.738]} | others)) == pytest.approx(73.5)
    assert left_end(distribution_data({"MLP": [0.63, 0.68, 0.76, 0.78]} | others)) == pytest.approx(63)


def test_one_column_stacks_the_panels():
    wide, narrow = draw_lines(steps(), STEPS), draw_lines(steps(), STEPS, columns=1)
    assert wide.get_figwidth() == 2 * narrow.get_figwidth()
    assert [axes.get_subplotspec().rowspan.start for axes in axes_of(narrow)] == [0, 1]


@pytest.mark.parametrize(
    "draw", [lambda: draw_lines(steps(), STEPS), lambda: draw_propagation(propagation())], ids=["steps", "propagation"]
)
def test_the_same_rows_give_the_same_bytes(draw):
    assert save_figure(draw(), "svg") == save_figure(draw(), "svg")


def test_names_are_pushed_apart_no_further_than_needed():
    assert push_apart([0, 100], 9) == [0, 100]
    assert push_apart([50, 50], 10) == [45, 55]
    # the third meets the block of the first two, and all three centre on what they want
    assert push_apart([0, 0, 6], 6) == pytest.approx([-4, 2, 8])


def test_the_note_on_runs_names_what_differs_in_groups_as_large_as_can_be():
    counts = {("APPNP", "Cora-ML", x): 100 for x in "123"} | {("APPNP", "PubMed", x): 100 for x in "123"}
    assert runs_note(counts) == "100 runs at each point."
    counts |= {("Bt. FP", dataset, x): 20 for dataset in ("Cora-ML", "PubMed") for x in "12"}
    assert runs_note(counts) == "100 runs at each point, but Bt. FP: 20."
    counts["APPNP", "PubMed", "3"] = 7
    assert runs_note(counts) == "100 runs at each point, but APPNP on PubMed at 3: 7; Bt. FP: 20."
    counts |= {("APPNP", "Cora-ML", x): 50 for x in "123"}
    assert runs_note(counts) == (
        "20 runs at each point, but APPNP on Cora-ML: 50; APPNP on PubMed at 1, 2: 100; APPNP on PubMed at 3: 7."
    )


def test_the_note_on_runs_counts_where_very_many_differ():
    counts = {("APPNP", "Cora-ML", str(x)): x for x in range(1, 32)} | {("GCN", "Cora-ML", "1"): 31}
    assert runs_note(counts) == "1 to 31 runs at each point; 31 in 2 of 32 places, the others on Cora-ML."


def test_one_run_for_each_split_is_no_lack_of_a_model_without_a_seed() -> None:
    cells = [
        Cell(model, fill_settings(model, {}, "citeseer"), "citeseer", per_class=5)
        for model in ("appnp", "gcn", "bootstrapped_fp")
    ]
    assert [name_of(cell) in UNSEEDED for cell in cells] == [not MODELS[cell.model].seeded for cell in cells]

    def rows_of(cell: Cell) -> list[Any]:
        seeds = [Seeds(split, init) for split in range(2) for init in range(3 if MODELS[cell.model].seeded else 1)]
        return [SimpleNamespace(key=SimpleNamespace(seeds=one), accuracy=0.5 + 0.1 * one.split) for one in seeds]

    experiment = Experiment("mine", "Mine", "labels", tuple(Point(cell, {}) for cell in cells))
    (drawn,) = sweep_figures([experiment], rows_of)
    assert drawn.caption.endswith(" 6 runs at each point. Bt. FP, tuned: one per split.")
    (axes,) = axes_of(drawn.draw())
    assert [label.get_text() for label in axes.get_xticklabels()][2] == "5\n55.0\n6"
    (alone,) = sweep_figures([replace(experiment, points=experiment.points[::2])], rows_of)
    assert alone.caption.endswith("8 points below APPNP. Bt. FP, tuned: one per split.")


def test_leads_are_over_the_splits_that_both_have_and_cut_off_far_below() -> None:
    def of(values: dict[Seeds, float]) -> list[Any]:
        return [SimpleNamespace(key=SimpleNamespace(seeds=seeds), accuracy=value) for seeds, value in values.items()]

    hard = {0: -0.3, 1: 0.0, 2: 0.2}
    appnp = {Seeds(split, init): 0.7 + hard[split] for split in hard for init in range(2)}
    gcn = {Seeds(split, 0): 0.68 + hard[split] + 0.01 * split for split in hard} | {Seeds(9, 0): 0.1}
    mlp = {Seeds(split, 0): 0.4 + hard[split] for split in hard}
    rows: dict[str, dict[tuple[str, float], list[Any]]] = {
        "Citeseer": {("APPNP", 5): of(appnp), ("GCN", 5): of(gcn), ("MLP", 5): of(mlp), ("GAT", 1): of(gcn)}
    }
    lines = lines_data(rows, "test", from_appnp, "APPNP")
    (panel,) = lines.panels
    assert panel.base is not None
    assert (panel.base.name, panel.base.x, panel.base.estimates[0].runs) == ("APPNP", (5.0,), 6)
    means = {series.name: (series.x, series.estimates[0].mean, series.estimates[0].runs) for series in panel.series}
    assert means == {"MLP": ((5.0,), pytest.approx(-30.0), 3), "GCN": ((5.0,), pytest.approx(-1.0), 4)}
    gcn_points = next(series for series in panel.series if series.name == "GCN").estimates[0]
    assert -2.001 < gcn_points.low < gcn_points.high < 0.001  # what is hard for both has cancelled
    (axes,) = axes_of(draw_lines(lines, LABELS))
    assert axes.get_ylim()[0] == LABELS.lowest
    assert [label.get_text() for label in axes.get_xticklabels()][2] == "5\n66.7\n3+"
    assert "MLP \u2193 \u221230" in texts(axes)
    assert axes.get_ylabel() == "points from APPNP"
    assert not lines_data({"Citeseer": {("GCN", 5): of(gcn)}}, "test", from_appnp).panels


def test_steps_are_held_against_ppnp_with_their_alpha_split_by_split() -> None:
    def of(*values: float) -> list[Any]:
        return [
            SimpleNamespace(key=SimpleNamespace(seeds=Seeds(split, 0)), accuracy=value)
            for split, value in enumerate(values)
        ]

    limit = float("inf")
    points = {
        ("α = 0.1", 2.0): of(0.4, 0.7),
        ("α = 0.1", 1.0): of(0.3, 0.6),
        ("α = 0.1", limit): of(0.5, 0.8),
        ("α = 0", 2.0): of(0.1, 0.1),
    }
    points |= {
        ("α = 0", limit): of(0.2, 0.2),
        ("α = 0.2", 2.0): of(0.9, 0.9),
        ("α = 0.2", limit): of(0.8, 0.8),
        ("α = 0.3", 5.0): of(0.5, 0.5),
    }
    lines = lines_data({"Citeseer": points}, "validation", from_ppnp)
    found = {
        series.name: dict(zip(series.x, (point.mean for point in series.estimates), strict=True))
        for series in lines.panels[0].series
    }
    assert found == {"α = 0.1": pytest.approx({1.0: -20.0, 2.0: -10.0}), "α = 0.2": pytest.approx({2.0: 10.0})}
    (axes,) = axes_of(draw_lines(lines, STEPS_LEAD))
    assert axes.get_ylabel() == "points from PPNP"
    assert not lines_data(
        {"Citeseer": {("α = 0", 2.0): of(0.1), ("α = 0", limit): of(0.2)}}, "validation", from_ppnp
    ).panels
