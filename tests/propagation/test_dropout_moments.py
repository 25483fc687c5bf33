"""Mean and variance of dropped propagation over 10^4 seeds against their closed forms.

A kept entry is multiplied by 1 / (1 - p), so a mask entry M has mean 1 and variance v = p / (1 - p). With masks that are
independent between entries and between steps, and h = H, b = 1 - alpha,

    E Z1 = b T h + alpha h                      Var Z1_i = b^2 v sum_j T_ij^2 h_j^2
    E Z2 = b T E[Z1] + alpha h                  Var Z2_i = b^2 sum_j T_ij^2 ((1 + v) Var Z1_j + v E[Z1_j]^2)
                                                Cov(Z2_i, Z2_k) = b^2 sum_j T_ij T_kj Var Z1_j

(different rows of Z1 use different entries, so they are independent). PyTorch Geometric's APPNP drops from the already
dropped weights at each step; then the self-loop of node i enters twice with the same mask and the mean itself moves by
b^2 v T_ii^2 h_i. The tests below would see that.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Exact, Graph, PowerIteration, Propagation

RUNS = 10_000
ALPHA = 0.2
ERRORS = 5.0  # standard errors

# a directed weighted graph of six nodes: a self-loop of weight 1.5, a node that only receives, one that is alone
A = np.zeros((6, 6))
for receiver, sender, weight in [
    (0, 0, 1.5),
    (0, 1, 1.0),
    (1, 2, 2.0),
    (2, 0, 0.7),
    (2, 1, 1.0),
    (3, 2, 3.0),
    (3, 0, 1),
]:
    A[receiver, sender] = weight
START = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -1.0])


@pytest.fixture
def transition(dense_transition):
    return dense_transition(A)


def moments_after(steps, T, h, p):
    """Mean and covariance matrix of Z after one or two steps."""
    b, v = 1 - ALPHA, p / (1 - p)
    mean = b * T @ h + ALPHA * h
    variance = b**2 * v * (T**2) @ h**2
    covariance = np.diag(variance)
    if steps == 2:
        covariance = b**2 * (T * variance) @ T.T
        variance, mean = b**2 * (T**2) @ ((1 + v) * variance + v * mean**2), b * T @ mean + ALPHA * h
        np.fill_diagonal(covariance, variance)
    return mean, covariance


def deviations(samples, mean, covariance):
    """How many standard errors the samples' mean and covariance are off, entry by entry; samples (runs, n)."""
    centred = samples - mean
    products = centred[:, :, None] * centred[:, None, :]
    results = []
    for values, expected in [(samples, mean), (products, covariance)]:
        error = values.std(axis=0) / len(samples) ** 0.5
        gap = np.abs(values.mean(axis=0) - expected)
        assert (gap[error < 1e-12] < 1e-12).all()  # no randomness there: exact
        results.append((gap / np.maximum(error, 1e-12))[error >= 1e-12])
    return results[0].max(), results[1].max()


def library_samples(solver, p, backend, *, passes=1):
    """Z of 10^4 runs in one call; the last of several training passes."""
    graph = Graph.from_scipy(sparse.csr_array(A), directed=True)
    layer = Propagation(graph, ALPHA, solver, dropout=p, seed=range(RUNS), backend=backend)
    H = torch.from_numpy(START)[:, None].repeat(RUNS, 1, 1)
    for _ in range(passes - 1):
        layer(H)
    return layer(H)[..., 0].numpy()


@pytest.mark.parametrize("p", [0.5, 0.25])
@pytest.mark.parametrize("steps", [1, 2])
def test_mean_and_covariance_of_dropped_power_steps_match_the_closed_form(transition, backend, steps, p):
    samples = library_samples(PowerIteration(steps), p, backend)
    of_mean, of_covariance = deviations(samples, *moments_after(steps, transition, START, p))
    assert of_mean < ERRORS
    assert of_covariance < ERRORS


def test_a_later_epoch_has_the_same_moments(transition, backend):
    samples = library_samples(PowerIteration(2), 0.5, backend, passes=4)
    of_mean, of_covariance = deviations(samples, *moments_after(2, transition, START, 0.5))
    assert of_mean < ERRORS
    assert of_covariance < ERRORS


def test_the_mean_over_masks_is_the_undropped_result(transition, power_twin):
    for steps in (1, 2):
        mean, _ = moments_after(steps, transition, START, 0.5)
        np.testing.assert_allclose(mean, power_twin(transition, START, ALPHA, steps), rtol=0, atol=1e-15)


@pytest.mark.parametrize("p", [0.5, 0.3])
@pytest.mark.parametrize("steps", [1, 2])
def test_the_closed_form_is_the_sum_over_all_masks_of_a_tiny_graph(dense_transition, steps, p):
    """Two nodes, three entries: all 2^3 or 2^6 masks, each with its probability."""
    T, h = dense_transition(np.array([[0.0, 2.0], [0.0, 0.0]])), np.array([1.0, -3.0])
    entries = [(0, 0), (0, 1), (1, 1)]
    mean, second = np.zeros(2), np.zeros((2, 2))
    for masks in itertools.product(itertools.product([0, 1], repeat=3), repeat=steps):
        probability, state = 1.0, h
        for mask in masks:
            M = np.zeros((2, 2))
            for entry, kept in zip(entries, mask, strict=True):
                M[entry] = T[entry] * kept / (1 - p)
                probability *= 1 - p if kept else p
            state = (1 - ALPHA) * M @ state + ALPHA * h
        mean += probability * state
        second += probability * np.outer(state, state)
    expected, covariance = moments_after(steps, T, h, p)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(second - np.outer(mean, mean), covariance, rtol=0, atol=1e-13)


def test_a_compounding_mask_would_be_seen(transition):
    """The same check on PyTorch Geometric's scheme, drawn with numpy: mean and variance are far outside."""
    T, p, b = transition, 0.5, 1 - ALPHA
    rng = np.random.default_rng(0)
    masks = (rng.random((2, RUNS, 6, 6)) >= p) / (1 - p)
    first = b * np.einsum("rij,j->ri", masks[0] * T, START) + ALPHA * START
    compounded = b * np.einsum("rij,rj->ri", masks[0] * masks[1] * T, first) + ALPHA * START
    independent = b * np.einsum("rij,rj->ri", masks[1] * T, first) + ALPHA * START
    mean, covariance = moments_after(2, T, START, p)
    # the check accepts numpy's independent masks, and rejects the compounding ones by both moments
    assert max(deviations(independent, mean, covariance)) < ERRORS
    of_mean, of_covariance = deviations(compounded, mean, covariance)
    assert of_mean > 2 * ERRORS
    assert of_covariance > 2 * ERRORS
    # the bias is that of the closed form: b^2 v T_ii^2 h_i
    biased = mean + b**2 * p / (1 - p) * np.diag(T) ** 2 * START
    assert deviations(compounded, biased, covariance)[0] < ERRORS


@pytest.mark.parametrize("p", [0.5, 0.25])
def test_mean_and_covariance_of_the_dropped_ppr_matrix_match_the_closed_form(transition, backend, p):
    """Z_i = sum_j M_ij Pi_ij h_j: mean Pi h, variance v sum_j Pi_ij^2 h_j^2, nothing between rows."""
    P = ALPHA * np.linalg.inv(np.eye(6) - (1 - ALPHA) * transition)
    samples = library_samples(Exact(), p, backend)
    of_mean, of_covariance = deviations(samples, P @ START, np.diag(p / (1 - p) * (P**2) @ START**2))
    assert of_mean < ERRORS
    assert of_covariance < ERRORS


def test_passes_are_independent_of_one_another(transition, backend):
    """Fresh masks at every epoch: the results of two passes are uncorrelated, node by node."""
    one, two = (library_samples(PowerIteration(2), 0.5, backend, passes=k) for k in (1, 2))
    mean, covariance = moments_after(2, transition, START, 0.5)
    deviation = np.sqrt(np.diag(covariance))
    products = ((one - mean) * (two - mean)).mean(axis=0)
    assert (np.abs(products) < ERRORS * deviation**2 / RUNS**0.5).all()
