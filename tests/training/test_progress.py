"""The progress line: runs, epochs per second, time left."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from pprop._words import duration
from pprop.training.loop import show_progress


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("pprop.training.loop.monotonic", made)
    monkeypatch.setenv("COLUMNS", "200")
    return made


def line_after(
    reports: Sequence[tuple[float, int, int, int]],
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
    *,
    runs: int,
    max_epochs: int,
) -> str:
    """Return the line after reports: seconds since the last one, epoch, runs that have ended, epochs of all runs."""
    with show_progress(True, runs, max_epochs=max_epochs) as report:
        for seconds, epoch, runs_ended, work in reports:
            clock.seconds += seconds
            report(epoch, runs_ended, work)
    shown = capsys.readouterr()
    assert shown.out == ""
    return " ".join(shown.err.split())


def test_epochs_of_all_runs_together_are_counted_and_set_up_is_not(clock: Clock, capsys: pytest.CaptureFixture[str]):
    line = line_after([(30, 1, 0, 4), (2, 11, 0, 44)], clock, capsys, runs=4, max_epochs=1000)
    assert "0/4 runs, epoch 11, 20 epochs/s, 0:00:32" in line


def test_before_a_run_has_ended_the_cap_bounds_the_time(clock: Clock, capsys: pytest.CaptureFixture[str]):
    """Two runs at epoch 50 of at most 200, 98 epochs per second: 300 epochs are left."""
    line = line_after([(30, 1, 0, 2), (1, 50, 0, 100)], clock, capsys, runs=2, max_epochs=200)
    assert line.endswith("at most 0:00:04 left")


def test_runs_that_ended_early_shorten_the_time_of_the_others(clock: Clock, capsys: pytest.CaptureFixture[str]):
    """One run after another, each of 100 epochs of at most 10,000, a second each: three of ten are left, and rich rounds up."""
    reports = [(1, 1, 0, 1), *((1, 100, ended, 100 * ended) for ended in range(1, 8))]
    line = line_after(reports, clock, capsys, runs=10, max_epochs=10_000)
    assert "7/10 runs" in line
    assert line.endswith("about 0:00:04 left")


def test_runs_trained_together_are_estimated_by_those_that_ended(clock: Clock, capsys: pytest.CaptureFixture[str]):
    """Of 100 runs, one ends in every second from epoch 11 on: half of them have ended, half are at epoch 60."""
    reports, work = list[tuple[float, int, int, int]](), 0
    for epoch in range(1, 61):
        work += 100 - max(0, epoch - 11)
        reports.append((1, epoch, max(0, epoch - 10), work))
    line = line_after(reports, clock, capsys, runs=100, max_epochs=10_000)
    left = int(line.rsplit(":", 1)[1].split()[0]) + 60 * int(line.rsplit(":", 2)[1])
    assert 40 < left < 70


def test_nothing_is_estimated_before_there_is_a_rate(clock: Clock, capsys: pytest.CaptureFixture[str]):
    assert line_after([(3, 1, 0, 10)], clock, capsys, runs=10, max_epochs=100).endswith("at most -:--:-- left")


def test_nothing_is_left_when_all_runs_have_ended(clock: Clock, capsys: pytest.CaptureFixture[str]):
    line = line_after([(1, 1, 0, 5), (1, 6, 2, 30), (1, 7, 5, 33)], clock, capsys, runs=5, max_epochs=100)
    assert "5/5 runs" in line
    assert line.endswith("0:00:00 left")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "1 s"), (59.4, "59 s"), (3570, "1 h"), (3599, "1 h"), (86000, "23 h 53 min")]
)
def test_durations_are_short_and_never_zero(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("show", [False, None])
def test_nothing_is_drawn_when_nobody_looks(show, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with show_progress(show, 1, max_epochs=10) as report:
        report(1, 1, 1)
    assert capsys.readouterr().err == ""
