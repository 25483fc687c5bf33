"""The regressions of all classes at once against scikit-learn's, one class at a time and to a tight tolerance."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from pprop import InputError
from pprop.models.feature_rows import CPU, Device, Directions, FeatureRows, Torch, device_named, leading_directions
from pprop.models.one_vs_rest import CERTAIN, LearningRows, Regression, fit_one_vs_rest

N, F, C = 120, 30, 4
TIGHT = 1e-7  # float64 tells losses apart down to a gradient of about 1e-8


@pytest.fixture
def features() -> Any:
    """Nearly alike, as diffused features are: one direction is a hundred times as strong as the others."""
    rng = np.random.default_rng(3)
    return np.abs(rng.standard_normal((N, F)) * 0.02 + rng.random(F)) / F


@pytest.fixture
def classes(features: Any) -> Any:
    order = np.argsort(features @ np.random.default_rng(4).standard_normal(F))
    found = np.empty(N, dtype=np.int64)
    found[order] = np.arange(N) * C // N
    found[::7] = 0  # not separable
    return found


def nothing(n_classes: int = C) -> Regression:
    return Regression(np.zeros((n_classes, F)), np.zeros(n_classes))


def rows_of(features: Any, device: Device, directions: Directions | None = None) -> LearningRows:
    """All rows, with five directions, so that neither those nor the others do the whole work."""
    directions = leading_directions(features, device, k=5) if directions is None else directions
    rows = LearningRows(features, directions.turned(features), directions, device)
    rows.add(np.arange(len(features)))
    return rows


def fitted(features: Any, classes: Any, strength: float, *, tolerance: float = TIGHT, **how: Any) -> Regression:
    device = how.get("device", CPU())
    rows = rows_of(device.put(features), device, how.get("directions"))
    return fit_one_vs_rest(rows, classes, how.get("start", nothing()), strength, tolerance)


@pytest.mark.parametrize("strength", [1.0, 1000.0, 1e5])
def test_each_class_has_the_optimum_of_scikit_learn(features: Any, classes: Any, strength: float):
    found = fitted(features, classes, strength)
    for code in range(C):
        one = LogisticRegression(C=strength, tol=1e-12, solver="newton-cholesky", max_iter=1000)
        one.fit(features, classes == code)
        # the loss grows by |w - w*|^2 / (2 C N) at least, so that a gradient g leaves |w - w*| <= C N |g|
        apart = np.linalg.norm(found.coefficients[code] - one.coef_[0])
        assert apart <= min(strength * N * TIGHT * np.sqrt(F + 1), 0.01 * np.linalg.norm(one.coef_))
        odds = features @ found.coefficients[code] + found.intercepts[code]
        np.testing.assert_allclose(odds, one.decision_function(features), atol=2e-3)


def test_the_gradient_that_is_left_is_that_of_scikit_learns_loss(features: Any, classes: Any):
    found = fitted(features, classes, 1000.0, tolerance=1e-5)
    W, b = torch.tensor(found.coefficients, requires_grad=True), torch.tensor(found.intercepts, requires_grad=True)
    odds = torch.tensor(features) @ W.T + b
    targets = torch.nn.functional.one_hot(torch.tensor(classes), C).double()
    mean = torch.nn.functional.binary_cross_entropy_with_logits(odds, targets, reduction="sum") / N
    (mean + (W**2).sum() / (2 * 1000.0 * N)).backward()
    assert W.grad is not None
    assert b.grad is not None
    left = float(max(W.grad.abs().max(), b.grad.abs().max()))
    assert left <= 1e-5
    assert left == pytest.approx(found.gradient, rel=1e-6)


def test_neither_the_start_nor_the_directions_change_what_is_found(features: Any, classes: Any):
    plain = fitted(features, classes, 10.0)
    rng = np.random.default_rng(5)
    start = Regression(rng.standard_normal((C, F)), rng.standard_normal(C))
    columns = np.linalg.qr(rng.standard_normal((F, 3)))[0]
    directions = Directions(rng.random(F), columns, np.array([1.0, 0.1, 0.0]), 0.01)
    other = fitted(features, classes, 10.0, start=start, directions=directions)
    np.testing.assert_allclose(other.coefficients, plain.coefficients, atol=2 * 10 * N * TIGHT * np.sqrt(F + 1))
    np.testing.assert_allclose(other.intercepts, plain.intercepts, atol=1e-3)


def test_a_class_that_none_has_is_certain_and_leaves_the_others_as_they_are(features: Any, classes: Any):
    found = fitted(features, classes, 100.0, start=nothing(C + 1))
    without = fitted(features, classes, 100.0)
    assert found.intercepts[C] == -CERTAIN
    assert not found.coefficients[C].any()
    np.testing.assert_allclose(found.coefficients[:C], without.coefficients, rtol=1e-12)


def test_a_class_that_all_have_is_certain(features: Any):
    found = fitted(features, np.full(N, 2), 100.0)
    np.testing.assert_array_equal(found.intercepts, [-CERTAIN, -CERTAIN, CERTAIN, -CERTAIN])
    assert not found.coefficients.any()


@pytest.mark.parametrize("k", [5, 40])
@pytest.mark.parametrize("device", [CPU(), Torch("cpu")], ids=["numpy", "torch"])
def test_directions_are_the_leading_principal_ones(device: Device, k: int):
    rng = np.random.default_rng(6)
    left, right = (np.linalg.qr(rng.standard_normal((size, 20)))[0] for size in (50, 40))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    features = (left * 2.0 ** -np.arange(20)) @ right.T + rng.random(40)
    found = leading_directions(device.put(features), device, k)
    columns, squares = device.get(found.columns), device.get(found.squares)
    np.testing.assert_allclose(squares[:5], 4.0 ** -np.arange(5) / 50, rtol=1e-2)
    np.testing.assert_allclose(abs(columns.T @ right[:, :5])[:5], np.eye(5), atol=0.1)
    np.testing.assert_allclose(columns.T @ columns, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(device.get(found.centre), features.mean(axis=0))
    everything = squares.sum() + (40 - k) * found.others
    assert everything == pytest.approx(features.var(axis=0).sum(), rel=1e-6)


def test_good_directions_save_products_of_all_features(features: Any, classes: Any, monkeypatch: pytest.MonkeyPatch):
    products: list[int] = []
    plain = FeatureRows.times

    def counted(self: FeatureRows, coefficients: Any) -> Any:
        products.append(self.shape[1])
        return plain(self, coefficients)

    monkeypatch.setattr(FeatureRows, "times", counted)
    fitted(features, classes, 1e3, tolerance=1e-6)
    with_directions = products.count(F)
    products.clear()
    none = Directions(np.zeros(F), np.zeros((F, 1)), np.zeros(1), 0.0)
    fitted(features, classes, 1e3, tolerance=1e-6, directions=none)
    assert with_directions < 0.7 * products.count(F)


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(7)
    features, classes = rng.random((600, 200)), rng.integers(0, 3, 600)
    found: list[Regression] = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            device = CPU()
            with device.fixed_order():
                start = Regression(np.zeros((3, 200)), np.zeros(3))
                found.append(fit_one_vs_rest(rows_of(features, device), classes, start, 1.0, 1e-6))
    np.testing.assert_array_equal(found[0].coefficients, found[1].coefficients)


def test_a_tolerance_that_cannot_be_reached_is_told(features: Any, classes: Any):
    with pytest.warns(RuntimeWarning, match=r"ended with a gradient of .*, above 1\.0e-30"):
        fitted(features, classes, 100.0, tolerance=1e-30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(features, classes, 100.0, tolerance=1e-6)


def test_an_unknown_or_absent_device_is_refused():
    with pytest.raises(InputError, match="The 'device' parameter of feature propagation must be"):
        device_named("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="needs a CUDA GPU"):
            device_named("cuda")


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_torch_finds_the_same_as_numpy(features: Any, classes: Any, name: str):
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    features.setflags(write=False)
    here, there = fitted(features, classes, 100.0), fitted(features, classes, 100.0, device=Torch(name))
    bound = 2 * 100 * N * TIGHT * np.sqrt(F + 1)  # as above
    np.testing.assert_allclose(there.coefficients, here.coefficients, atol=bound)
    assert bound < 0.02 * abs(here.coefficients).max()
