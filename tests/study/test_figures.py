"""The figures: what they show is right, and the same figure is the same file."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

import pprop
from pprop.study.figures.accuracies import distribution_data, draw_distribution
from pprop.study.figures.model import draw_curves
from pprop.study.figures.style import save_figure
from pprop.study.stats.estimate import bootstrap_interval

pytestmark = pytest.mark.slow

HISTORY = pprop.History(np.linspace(2, 1, 50), np.linspace(1.9, 1.2, 50), np.linspace(0.2, 0.7, 50))


def distribution():
    return distribution_data({"MLP": [0.62, 0.64, 0.63], "APPNP": [0.75, 0.76, 0.77]})


FIGURES = {
    "distribution": lambda: draw_distribution(distribution(), "Citeseer"),
    "curves": lambda: draw_curves(HISTORY, 39, "APPNP"),
}


def test_the_distribution_shows_every_run_its_mean_and_interval():
    mlp, appnp = distribution()
    assert mlp.values.tolist() == pytest.approx([62, 64, 63])
    assert (mlp.estimate.mean, appnp.estimate.mean) == (pytest.approx(63), pytest.approx(76))
    assert 62 <= mlp.estimate.low < mlp.estimate.mean < mlp.estimate.high <= 64
    assert len(set(mlp.offsets)) == 3
    assert (abs(mlp.offsets) <= 1).all()


def test_the_curves_count_epochs_from_one_and_accuracies_in_per_cent():
    above, below = FIGURES["curves"]().axes
    epochs, accuracy = np.asarray(above.lines[0].get_xdata()), np.asarray(below.lines[0].get_ydata())
    assert (epochs[0], epochs[-1]) == (1, 50)
    assert above.get_legend_handles_labels()[1][-1] == "kept: epoch 40"
    assert accuracy[-1] == pytest.approx(70)


def test_a_best_epoch_outside_the_history_is_refused():
    sentence = r"'best_epoch' parameter of draw_curves must be an integer from 0 to 49"
    with pytest.raises(pprop.InputError, match=sentence):
        draw_curves(HISTORY, best_epoch=50)


def test_the_drawing_holds_the_data():
    axes = FIGURES["distribution"]().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["MLP", "APPNP"]
    drawn = [offset for points in axes.collections for offset in np.asarray(points.get_offsets())[:, 0]]
    assert sorted(drawn) == pytest.approx([62, 63, 64, 75, 76, 77])
    above, below = FIGURES["curves"]().axes
    assert above.lines[0].get_ydata() == pytest.approx(HISTORY.train_loss)
    assert above.lines[1].get_ydata() == pytest.approx(HISTORY.stopping_loss)
    assert below.lines[0].get_ydata() == pytest.approx(100 * HISTORY.stopping_accuracy)


@pytest.mark.parametrize("name", ["distribution", "curves"])
@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_same_figure_is_the_same_file(name: str, kind: str, start: bytes):
    first, again = FIGURES[name](), FIGURES[name]()
    save_figure(again, "png")  # saving once more, or in another format before, changes nothing
    files = [save_figure(first, kind), save_figure(again, kind)]
    assert files[0].startswith(start)
    assert files[0] == files[1]


def test_a_users_own_matplotlib_settings_neither_matter_nor_change():
    plain = save_figure(FIGURES["curves"](), "svg")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        assert save_figure(FIGURES["curves"](), "svg") == plain
        assert mpl.rcParams["font.size"] == 30


def test_an_unknown_format_is_refused():
    with pytest.raises(pprop.InputError, match="'png' or 'svg'"):
        save_figure(FIGURES["curves"](), "gif")


def test_the_data_of_a_figure_needs_no_matplotlib():
    code = (
        "import sys; from pprop.study.figures.accuracies import distribution_data; "
        "distribution_data({'a': [1.0]}); sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_drawing_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(pprop.MissingDependencyError, match=r"pip install matplotlib"):
        draw_distribution(distribution())


def test_the_bootstrap_interval_of_many_values_is_the_normal_one():
    values = np.random.default_rng(0).normal(10, 2, size=2000)
    low, high = bootstrap_interval(values, resamples=4000)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert (low, high) == (pytest.approx(values.mean() - half, abs=0.01), pytest.approx(values.mean() + half, abs=0.01))


def test_the_bootstrap_interval_of_one_value_is_that_value():
    assert bootstrap_interval([0.5]) == (0.5, 0.5)


@pytest.mark.parametrize("values", [[], [[1.0]], [np.nan]])
def test_the_bootstrap_refuses_what_has_no_mean(values):
    with pytest.raises(pprop.InputError, match="'values' parameter of bootstrap_interval"):
        bootstrap_interval(values)
