"""The figures of a search: what they show, and that they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from pprop import InputError
from pprop.study.figures.model import draw_history, draw_slices, search_data
from pprop.study.figures.style import save_figure

pytestmark = pytest.mark.slow

SETTINGS = [{"alpha": 0.1, "steps": 4, "hidden": 64}, {"alpha": 0.5, "steps": 2, "hidden": (8, 4)}]
CHOICES = {"alpha": True, "steps": False, "hidden": [64, (8, 4)]}


def test_each_setting_is_a_slice_with_its_values_or_the_positions_of_its_choices():
    data = search_data([0.5, 0.75], SETTINGS, CHOICES)
    assert [one.name for one in data.slices] == ["alpha", "steps", "hidden"]
    assert [one.log for one in data.slices] == [True, False, False]
    assert [one.values.tolist() for one in data.slices] == [[0.1, 0.5], [4.0, 2.0], [0.0, 1.0]]
    assert data.slices[2].choices == ("64", "(8, 4)")


def test_the_best_so_far_never_falls():
    data = search_data([0.5, 0.25, 0.75, 0.7], [SETTINGS[0]] * 4, CHOICES)
    assert data.best_so_far.tolist() == [50.0, 50.0, 75.0, 75.0]


def test_history_shows_every_trial_and_the_defaults():
    data = search_data([0.5, 0.25, 0.75], [SETTINGS[0]] * 3, CHOICES)
    (axes,) = draw_history(data, "A title").axes
    lines = {str(line.get_label()): line for line in axes.lines}
    assert np.asarray(lines["trial"].get_ydata()).tolist() == [50.0, 25.0, 75.0]
    assert set(np.asarray(lines["defaults"].get_ydata()).tolist()) == {50.0}
    low, high = axes.get_ylim()
    assert low < 25.0
    assert high > 75.0


def test_slices_have_an_axis_each_and_give_the_same_bytes_twice():
    figures = [draw_slices(search_data([0.5, 0.75], SETTINGS, CHOICES)) for _ in range(2)]
    assert [axes.get_xlabel() for axes in figures[0].axes] == ["alpha", "steps", "hidden"]
    assert figures[0].axes[0].get_xscale() == "log"
    assert [tick.get_text() for tick in figures[0].axes[2].get_xticklabels()] == ["64", "(8, 4)"]
    assert save_figure(figures[0], "svg") == save_figure(figures[1], "svg")


def test_one_trial_can_be_drawn():
    data = search_data([0.5], SETTINGS[:1], {"alpha": True})
    assert save_figure(draw_history(data), "png").startswith(b"\x89PNG")
    assert save_figure(draw_slices(data), "png").startswith(b"\x89PNG")


def test_without_trials_there_is_nothing_to_show():
    with pytest.raises(InputError, match="at least one trial"):
        search_data([], [], {})
