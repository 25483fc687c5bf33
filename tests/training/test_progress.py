"""What the progress line says: runs, epochs per second, and an honest time left."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, bisect_right
from pathlib import Path

import numpy as np
import pytest

from pprop._words import duration
from pprop.training.progress import LEAST_ENDED, Pace, _mean_rest, show_progress

NO_CAP = 10**9
RECORDED = Path(__file__).parents[2] / "results" / "core_accuracy.json"


def follow(pace: Pace, last_epochs: list[int], batch: int, from_work: float | None = None) -> list[tuple[float, float]]:
    """Report runs with these last epochs, in batches; return (estimated, true) epochs left of all runs.

    At every 20th epoch where there is an estimate; or once, as soon as `from_work` epochs are made.
    """
    pairs: list[tuple[float, float]] = []
    done, total = 0, sum(last_epochs)
    for begin in range(0, len(last_epochs), batch):
        part = sorted(last_epochs[begin : begin + batch])
        for epoch in range(1, part[-1] + 1):
            done += len(part) - bisect_left(part, epoch)
            pace.report(epoch, begin + bisect_right(part, epoch), 0.001 * done)
            due = epoch % 20 == 0 if from_work is None else done >= from_work
            if due and done < total:
                left, bounded = pace.epochs_left()
                if not bounded:
                    pairs.append((left, total - done))
                if from_work is not None:
                    return pairs
    return pairs


def test_epochs_of_all_runs_together_are_counted_and_set_up_is_not():
    pace = Pace(runs=4, batch=4, max_epochs=1000)
    pace.report(1, 0, seconds=30.0)  # compiled for half a minute
    pace.report(11, 0, seconds=32.0)
    assert pace.epochs_per_second == pytest.approx(4 * 10 / 2)


def test_runs_that_ended_make_no_more_epochs():
    pace = Pace(runs=2, batch=2, max_epochs=1000)
    pace.report(1, 0, seconds=0.0)
    pace.report(5, 1, seconds=1.0)
    pace.report(9, 1, seconds=2.0)
    assert pace.epochs_per_second == pytest.approx((8 + 4) / 2)


def test_before_enough_runs_have_ended_the_cap_bounds_the_time():
    pace = Pace(runs=10, batch=5, max_epochs=200)
    pace.report(1, 0, seconds=0.0)
    pace.report(50, 0, seconds=1.0)
    assert pace.epochs_left() == (5 * 150 + 5 * 200, True)
    assert pace.time_left().startswith("at most ")


def test_nothing_is_said_before_there_is_a_rate():
    capped = Pace(runs=10, batch=10, max_epochs=100)
    assert capped.time_left() == ""
    capped.report(1, 0, seconds=3.0)
    assert capped.time_left() == ""


def test_nothing_is_left_when_all_runs_have_ended():
    pace = Pace(runs=5, batch=5, max_epochs=100)
    pace.report(1, 0, seconds=0.0)
    pace.report(7, 5, seconds=1.0)
    assert pace.epochs_left() == (0.0, False)
    assert pace.time_left() == ""


def test_the_estimate_never_exceeds_the_cap():
    pace = Pace(runs=100, batch=100, max_epochs=60)
    pace.report(1, 0, seconds=0.0)
    pace.report(50, 1, seconds=1.0)
    pace.report(59, LEAST_ENDED, seconds=2.0)
    assert pace.epochs_left()[0] <= 95 * 1


def ratio_at(share: float, batch: int) -> float:
    """Return estimated over true epochs left when `share` of the work is done, over 20 trainings of the model's own kind."""
    sums = np.zeros(2)
    for seed in range(20):
        last_epochs = [100 + int(x) for x in np.random.default_rng(seed).rayleigh(40, size=100)]
        pairs = follow(Pace(100, batch, NO_CAP), last_epochs, batch, share * sum(last_epochs))
        sums += pairs[0]
    return sums[0] / sums[1]


@pytest.mark.parametrize("batch", [1, 25])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_the_estimate_is_unbiased_for_small_batches_where_the_risk_grows_in_proportion(batch, share):
    assert ratio_at(share, batch) == pytest.approx(1, abs=0.05)


def test_the_estimate_for_one_large_batch_is_too_short_and_less_so_later():
    """The earliest end seen is later than the earliest possible one; `pprop.training.progress` states the size of it."""
    early, late = ratio_at(0.8, 100), ratio_at(0.95, 100)
    assert 0.65 < early < late < 1
    assert late > 0.85


def test_the_estimate_stays_within_the_stated_factor_on_the_trainings_it_was_chosen_on():
    """Not an independent check: it keeps what the module says about these four cells true."""
    for cell in json.loads(RECORDED.read_text())["cells"]:
        for batch in (1, 5, 20):
            for estimate, left in follow(Pace(20, batch, NO_CAP), cell["epochs"], batch):
                if left > 0.05 * sum(cell["epochs"]):
                    assert left / 2.5 < estimate < 2.5 * left


def test_the_mean_rest_goes_over_into_its_limit_without_a_jump():
    growth = 2e-6
    at = 5 * (2 / growth) ** 0.5
    assert _mean_rest(growth, 0.9999 * at) == pytest.approx(_mean_rest(growth, 1.0001 * at), rel=0.025)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "1 s"), (59.4, "59 s"), (3570, "1 h"), (3599, "1 h"), (86000, "23 h 53 min")]
)
def test_durations_are_short_and_never_zero(seconds, text):
    assert duration(seconds) == text


def test_the_line_goes_to_standard_error_and_tells_runs_and_rate(capsys):
    with show_progress(True, 3, batch=2, max_epochs=50) as report:
        for epoch in range(1, 4):
            report(epoch, 0, 2 * epoch)
        report(4, 2, 8)
        report(1, 2, 9)
        report(2, 3, 10)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Training" in shown.err
    assert "3/3" in shown.err
    assert "epochs/s" in shown.err


@pytest.mark.parametrize("show", [False, None])
def test_nothing_is_drawn_when_nobody_looks(show, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with show_progress(show, 1, batch=1, max_epochs=10) as report:
        report(1, 1, 1)
    assert capsys.readouterr().err == ""
