"""The bounds for runs computed by other arithmetic, against the measurement they come from."""

from __future__ import annotations

import json
import runpy
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pprop import InputError
from pprop.study.cell import Seeds
from pprop.study.stats.variance import (
    FALSE_ALARM,
    ROW_FACTOR,
    UNKNOWN_SPREAD,
    mean_bound,
    row_bound,
    spread,
    variance_components,
)
from pprop.study.store.row import Row

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MEASURED: list[dict[str, Any]] = json.loads((ROOT / "results" / "gpu_rows_on_cpu.json").read_text())


def in_units() -> np.ndarray:
    """Measured differences of GPU and CPU in units of the difference of two initialisations."""
    return np.array([(one["accuracy"][0] - one["accuracy"][1]) / (sqrt(2) * one["spread"]) for one in MEASURED])


def test_the_spread_is_the_component_of_initialisations():
    random = np.random.default_rng(3)
    runs = {Seeds(s, i): 0.8 + 0.05 * s + 0.01 * random.standard_normal() for s in range(20) for i in range(5)}
    parts = variance_components(runs)
    assert parts is not None
    assert spread(runs) == pytest.approx(parts.init, rel=1e-12)


def test_splits_with_different_numbers_of_runs_count_by_their_degrees_of_freedom():
    runs = {Seeds(1, init): 0.02 * (-1) ** init for init in range(10)} | {
        Seeds(2, 0): 5.0,
        Seeds(3, 0): 6.0,
        Seeds(3, 1): 6.0,
    }
    assert spread(runs) == pytest.approx(sqrt(10 * 0.02**2 / 10))


def test_without_runs_that_share_a_split_the_spread_is_that_of_all_runs_and_larger():
    several = {Seeds(s, i): 0.05 * s + 0.01 * i for s in range(12) for i in range(2)}
    first = {seeds: value for seeds, value in several.items() if seeds.init == 0}
    assert spread(first) == pytest.approx(np.std(list(first.values()), ddof=1))
    assert spread(first) > spread(several)
    assert spread(dict(list(first.items())[:10])) == UNKNOWN_SPREAD


def test_the_mean_of_one_run_has_the_bound_of_the_run():
    assert mean_bound([0.1], [0.007]) == row_bound(0.007) == pytest.approx(4 * 0.007 * sqrt(2))
    for wrong in ([], [0.1, 0.2]):
        with pytest.raises(InputError, match="one for each spread and at least one"):
            mean_bound(wrong, [0.007] * (len(wrong) // 2))


def test_the_mean_of_many_runs_is_judged_as_by_a_t_test():
    """With 1000 runs the other two bounds are far: a p-value of scipy's t-test below 1e-4 is what is beyond it."""
    noise = np.random.default_rng(0).standard_normal(1000) * 0.001
    for shift in np.linspace(0, 3e-4, 31):
        apart = noise - noise.mean() + shift
        beyond = abs(float(apart.mean())) > mean_bound(apart.tolist(), [0.002] * 1000)
        assert beyond == (stats.ttest_1samp(apart, 0).pvalue < FALSE_ALARM)


def test_one_run_that_parted_as_far_as_it_may_is_no_systematic_error():
    apart, sigmas = [row_bound(0.01)] + [0.0] * 9, [0.01] * 10
    assert np.mean(apart) <= mean_bound(apart, sigmas)
    same = [0.0005] * 10  # all shifted alike: no spread at all among them, and still within what one run may be off
    assert np.mean(same) <= mean_bound(same, sigmas) == pytest.approx(row_bound(0.01) / 10)


def test_a_shift_that_even_parted_runs_do_not_explain_is_beyond_the_bound():
    apart, sigmas = [0.0, 0.05] * 20, [0.005] * 40
    assert mean_bound(apart, sigmas) == pytest.approx(4 * sqrt(2) * 0.005 / sqrt(40))
    assert np.mean(apart) > mean_bound(apart, sigmas)


def test_every_measured_run_is_within_its_bound_and_the_mean_within_its_own():
    apart = np.array([one["accuracy"][0] - one["accuracy"][1] for one in MEASURED])
    assert np.all(np.abs(in_units()) <= ROW_FACTOR)
    assert abs(float(apart.mean())) <= mean_bound(apart.tolist(), [one["spread"] for one in MEASURED])


@pytest.mark.parametrize("m", [5, 20, 100])
def test_samples_of_the_measured_differences_with_random_signs_seldom_have_a_mean_beyond_the_bound(m: int):
    random = np.random.default_rng(m)
    sigmas = np.array([one["spread"] for one in MEASURED])
    rounds = 1_000
    drawn = random.integers(0, len(MEASURED), size=(rounds, m))
    apart = in_units()[drawn] * sqrt(2) * sigmas[drawn] * random.choice([-1.0, 1.0], size=(rounds, m))
    false_alarms = sum(
        abs(float(one.mean())) > mean_bound(one.tolist(), some)
        for one, some in zip(apart, sigmas[drawn].tolist(), strict=True)
    )
    assert false_alarms <= 0.002 * rounds


@pytest.fixture(autouse=True)
def beside_the_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")  # as for a script that is run


def test_the_page_has_the_measured_table():
    table = runpy.run_path(str(ROOT / "experiments" / "gpu_rows_on_cpu.py"))["table"]
    page = (ROOT / "docs" / "study.md").read_text()
    assert "\n".join(table(MEASURED)) in page


def test_the_page_has_the_present_number_of_pairs_that_are_far_apart_and_the_odds_that_follow(
    published: tuple[Row, ...],
):
    script = runpy.run_path(str(ROOT / "experiments" / "gpu_rows_on_cpu.py"))
    units = script["pairs"](script["newest_of"](published))
    beyond = sum(one > ROW_FACTOR for one in units)

    def once_in(probability: float) -> str:
        return f"{float(f'{1 / probability:.2g}'):.0f}"

    def odds(share: float) -> tuple[str, str]:
        wrong = share * beyond / len(units)
        return once_in(wrong), once_in(1 - (1 - wrong) ** 20)

    page = " ".join((ROOT / "docs" / "study.md").read_text().split())
    start = f"Of {len(units)} pairs of initialisations of one split in `results/study.pack` {beyond} are more than 4 units apart"
    assert start in page
    some, every = odds(0.1), odds(1.0)
    assert f"is called wrong once in {some[0]}, and a sample of 20 once in {some[1]};" in page
    assert f"once in {every[0]} and once in {every[1]}." in page
    source = (ROOT / "src" / "pprop" / "study" / "stats" / "variance.py").read_text()
    assert f"{beyond} of {len(units)} such differences" in source


def test_the_page_has_the_cells_with_runs_that_stop_early(published: tuple[Row, ...]):
    table = runpy.run_path(str(ROOT / "experiments" / "early_stops.py"))["table"]
    page = (ROOT / "docs" / "study.md").read_text()
    lines = table(published)
    assert len(lines) > 10
    assert "\n".join(lines) in page
