"""Means, paired tests, Holm's correction and variance components, against hand-made values and scipy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from pprop import load_dataset, run_seed
from pprop._errors import InputError
from pprop.kernels.random_bits import signed
from pprop.models import Architecture, Model
from pprop.models.model import FeatureNetwork, initial_weights
from pprop.study.cell import MODELS, Cell, Seeds, make_cell
from pprop.study.report.sections import P_VALUES
from pprop.study.run.recipe import build
from pprop.study.stats.estimate import bootstrap_interval, combined_intervals, estimate
from pprop.study.stats.paired import describe_seeds, holm, paired_test, split_means
from pprop.study.stats.variance import variance_components
from pprop.study.store.row import Row

SPLITS, INITS = 20, 5
ROOT = Path(__file__).parents[2]


def runs(seed: int, mean: float = 0.8) -> dict[Seeds, float]:
    random = np.random.default_rng(seed)
    return {Seeds(s, i): mean + 0.01 * float(random.standard_normal()) for s in range(SPLITS) for i in range(INITS)}


def test_the_plus_minus_is_the_larger_distance_to_an_end_of_the_percentile_interval() -> None:
    values = np.random.default_rng(3).gamma(1.0, size=30)  # skewed: the two distances differ
    summary = estimate(values)
    low, high = bootstrap_interval(values)
    assert summary.runs == 30
    assert summary.mean == pytest.approx(values.mean())
    assert summary.mean - low != pytest.approx(high - summary.mean, rel=1e-3)
    assert summary.half == max(summary.mean - low, high - summary.mean)


def test_combined_intervals_are_the_root_of_the_squares_and_keep_the_sign() -> None:
    assert combined_intervals(84.0, 0.3, 85.0, 0.4) == -2.0
    assert math.isnan(combined_intervals(1.0, 0.0, 2.0, 0.0))


def test_the_test_over_runs_pairs_equal_seeds_whatever_their_order() -> None:
    first, second = runs(0), runs(1, 0.795)
    shuffled = dict(sorted(second.items(), key=lambda item: item[1]))
    test = paired_test(first, shuffled, "runs")
    expected = stats.ttest_rel([first[seeds] for seeds in first], [second[seeds] for seeds in first])
    assert test.pairs == 100
    assert test.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert test.t == pytest.approx(expected.statistic, rel=1e-9)
    assert (test.only_first, test.only_second) == ((), ())


def test_the_test_over_splits_pairs_means_also_with_a_model_of_one_run_per_split() -> None:
    first = runs(0)
    second = {Seeds(s, 0): 0.78 + 0.001 * s for s in range(SPLITS)}
    test = paired_test(first, second, "splits")
    means = [np.mean([first[Seeds(s, i)] for i in range(INITS)]) for s in range(SPLITS)]
    expected = stats.ttest_rel(means, [second[Seeds(s, 0)] for s in range(SPLITS)])
    assert test.pairs == 20
    assert test.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert test.only_first == ()


def test_runs_without_a_partner_are_named() -> None:
    first, second = runs(0), runs(1)
    del first[Seeds(3, 4)], second[Seeds(5, 0)], second[Seeds(5, 1)]
    test = paired_test(first, second)
    assert test.pairs == 97
    assert test.only_first == (Seeds(5, 0), Seeds(5, 1))
    assert test.only_second == (Seeds(3, 4),)
    assert paired_test(first, second, "splits").only_first == ()  # the split has other runs
    assert describe_seeds(test.only_second) == "split 3 init 4"


def test_no_test_is_made_without_spread_or_with_one_pair() -> None:
    same = {Seeds(s, 0): 0.8 + 0.01 * s for s in range(5)}
    shifted = {seeds: value - 0.05 for seeds, value in same.items()}
    assert math.isnan(paired_test(same, same).p)
    assert math.isnan(paired_test(same, shifted).p)  # equal up to rounding
    assert math.isnan(paired_test({Seeds(0, 0): 1.0}, {Seeds(0, 0): 0.5}).p)
    empty = paired_test(same, {Seeds(9, 9): 1.0})
    assert empty.pairs == 0
    assert math.isnan(empty.difference)


def test_split_means_do_not_depend_on_the_order_of_rows() -> None:
    values = runs(4)
    assert split_means(values) == split_means(dict(reversed(values.items())))


def test_holm_agrees_with_values_computed_by_hand() -> None:
    # sorted 0.005, 0.01, 0.03, 0.04: 4 * 0.005, 3 * 0.01, 2 * 0.03, then 1 * 0.04 raised to the one before
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02], rtol=1e-14)


def test_holm_stops_at_one_keeps_single_tests_and_skips_those_not_made() -> None:
    np.testing.assert_array_equal(holm([0.6, 0.9]), [1.0, 1.0])
    np.testing.assert_array_equal(holm([0.3]), [0.3])
    np.testing.assert_allclose(holm([0.02, np.nan, 0.01]), [0.02, np.nan, 0.02])
    assert holm([]).shape == (0,)
    with pytest.raises(InputError, match="'p_values' parameter of holm"):
        holm([0.2, 1.2])


def test_variance_components_agree_with_one_way_analysis_of_variance() -> None:
    random = np.random.default_rng(0)
    table = 0.8 + 0.02 * random.standard_normal((SPLITS, 1)) + 0.01 * random.standard_normal((SPLITS, INITS))
    parts = variance_components({Seeds(s, i): float(table[s, i]) for s in range(SPLITS) for i in range(INITS)})
    assert parts is not None
    within = sum((table[s] - table[s].mean()) @ (table[s] - table[s].mean()) for s in range(SPLITS)) / (SPLITS * 4)
    between = INITS * sum((table[s].mean() - table.mean()) ** 2 for s in range(SPLITS)) / (SPLITS - 1)
    assert parts.init**2 == pytest.approx(within)
    assert parts.split**2 == pytest.approx((between - within) / INITS)
    assert stats.f_oneway(*table).statistic == pytest.approx(between / within)
    assert parts.share == pytest.approx(parts.split**2 / (parts.split**2 + parts.init**2))
    assert parts.split_interval[0] < parts.split < parts.split_interval[1]
    assert parts.init_interval[0] < parts.init < parts.init_interval[1]


def studies(split: float, init: float, count: int) -> list[dict[Seeds, float]]:
    random = np.random.default_rng([7, int(100 * split)])
    tables = split * random.standard_normal((count, SPLITS, 1)) + init * random.standard_normal((count, SPLITS, INITS))
    return [{Seeds(s, i): float(table[s, i]) for s in range(SPLITS) for i in range(INITS)} for table in tables]


@pytest.mark.parametrize("split", [0.3, 1.0, 3.0])
def test_intervals_of_components_cover_the_truth_in_95_of_100_studies(split: float) -> None:
    count = 300
    found = [variance_components(values) for values in studies(split, 1.0, count)]
    parts = [each for each in found if each is not None]
    share = split**2 / (split**2 + 1)
    covered = {
        "split": sum(each.split_interval[0] <= split <= each.split_interval[1] for each in parts),
        "init": sum(each.init_interval[0] <= 1.0 <= each.init_interval[1] for each in parts),
        "share": sum(each.share_interval[0] <= share <= each.share_interval[1] for each in parts),
    }
    low, high = stats.binom.interval(0.999, count, 0.95)  # resampling splits, at 84 to 86 %, would fall below
    assert all(low <= number <= high for number in covered.values()), covered


def test_the_interval_of_splits_is_exact_where_initialisations_do_not_matter() -> None:
    effects = np.random.default_rng(2).standard_normal(SPLITS)
    parts = variance_components({Seeds(s, i): float(effects[s]) for s in range(SPLITS) for i in range(INITS)})
    assert parts is not None
    squares = (SPLITS - 1) * effects.var(ddof=1)
    expected = np.sqrt(squares / stats.chi2.ppf([0.975, 0.025], SPLITS - 1))
    np.testing.assert_allclose(parts.split_interval, expected, rtol=1e-9)
    assert parts.init == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(parts.share_interval, [1.0, 1.0], rtol=1e-12)


def test_the_interval_of_splits_begins_above_zero_just_where_the_f_test_rejects() -> None:
    for values in studies(0.35, 1.0, 40):
        table = [[values[Seeds(s, i)] for i in range(INITS)] for s in range(SPLITS)]
        rejected = stats.f_oneway(*table).pvalue < 0.025
        parts = variance_components(values)
        assert parts is not None
        assert (parts.split_interval[0] > 0) == rejected
        assert (parts.share_interval[0] > 0) == rejected


def test_runs_that_are_all_alike_have_no_share() -> None:
    parts = variance_components({Seeds(s, i): 0.5 for s in range(4) for i in range(3)})
    assert parts is not None
    assert (parts.split, parts.init, parts.split_interval, parts.init_interval) == (0.0, 0.0, (0.0, 0.0), (0.0, 0.0))
    assert math.isnan(parts.share)
    assert math.isnan(parts.share_interval[0])


def test_a_split_variance_below_zero_is_zero() -> None:
    # means of all splits equal: nothing is left for the splits
    values = {Seeds(s, i): 0.8 + (-1) ** i * 0.01 for s in range(6) for i in range(2)}
    parts = variance_components(values)
    assert parts is not None
    assert parts.split == 0.0
    assert parts.share == 0.0


def test_an_unbalanced_design_has_no_components() -> None:
    values = runs(0)
    del values[Seeds(0, 0)]
    assert variance_components(values) is None
    assert variance_components({Seeds(s, 0): 0.8 for s in range(20)}) is None


def initial(model: object, n_features: int, n_classes: int, seeds: Seeds) -> list[Tensor]:
    """The matrices with which the training of a model begins."""
    if isinstance(model, Model):
        assert isinstance(model.predictor, FeatureNetwork)
        described = model.predictor.weights(n_features, n_classes, model.penalty)
    else:
        assert isinstance(model, Architecture)
        described = model.weights(n_features, n_classes)
    seed = torch.tensor([signed(run_seed(seeds.split, seeds.init))])
    return [tensor[0] for tensor in initial_weights(described, seed)]


def test_models_share_initial_weights_and_masks_of_features_at_equal_seeds_as_the_pages_say() -> None:
    graph, page = load_dataset("citeseer"), (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    cells: dict[str, Cell] = {name: make_cell(name, {}, "citeseer") for name in MODELS if MODELS[name].seeded}
    models = {name: build(cell, graph) for name, cell in cells.items()}
    begin = {name: initial(model, 300, graph.n_classes, Seeds(2144199730, 3)) for name, model in models.items()}
    first, *_ = appnp = begin["appnp"]

    def same(tensors: list[Tensor]) -> list[bool]:
        return [
            one.shape == other.shape and torch.equal(one, other) for one, other in zip(tensors, appnp, strict=False)
        ]

    equal = {name for name in begin if len(begin[name]) == 2 and all(same(begin[name]))}
    assert equal == {"appnp", "ppnp", "mlp", "gcn"}
    assert same(begin["jk"]) == [True, False]
    other = {name for name, tensors in begin.items() if tensors[0].shape != first.shape}
    assert other == {"vanilla_gcn", "ngcn", "gat"}
    for name in other:  # the same numbers, scaled
        block = begin[name][0][:300]
        ratio = block / first[:, : block.shape[1]]
        assert float(ratio.max() - ratio.min()) < 1e-4
    text = " ".join(page.split())
    same_weights = "Equal seeds give PPNP, APPNP, MLP and GCN the same initial weights, and JK the same first matrix."
    assert same_weights in text
    assert same_weights in P_VALUES
    # a mask depends on the seed, which heads and towers have for themselves, and on the share that is dropped
    branches = {name for name, model in models.items() if isinstance(model, Architecture) and model.branches() > 1}
    assert branches == {"ngcn", "gat"}
    assert {cell.settings["dropout"] for name, cell in cells.items() if name not in branches} == {0.5}
    assert "All models but N-GCN and GAT have the same dropout masks of the features." in text


@pytest.mark.slow
def test_appnp_that_always_teleports_is_the_mlp_of_the_same_seeds_in_every_row(published: tuple[Row, ...]) -> None:
    """Without propagation the two differ in nothing, if initial weights and masks are the same."""
    for dataset in ("citeseer", "cora_ml"):
        found = [
            {
                row.key.seeds: (row.accuracy, row.f1, row.epochs, row.best_epoch, row.stopping_loss)
                for row in published
                if row.key.config == make_cell(model, settings, dataset, "validation").config
            }
            for model, settings in (("appnp", {"alpha": 1.0}), ("mlp", {}))
        ]
        shared = found[0].keys() & found[1].keys()
        assert len(shared) >= 5
        assert {one: found[0][one] for one in shared} == {one: found[1][one] for one in shared}
