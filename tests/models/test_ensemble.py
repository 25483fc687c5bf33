"""Errors at known nodes, spread: against the matrices of the definition, and as probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.special import log_softmax, softmax

from pprop import Graph, InputError, transition_matrix
from pprop.models.ensemble import KnownErrors, best_temperature, spread_errors

RANDOM = np.random.default_rng(11)
KNOWN = np.array([1, 4, 9, 17])
CODES = np.array([2, 0, 1, 1])
LOGITS = RANDOM.normal(size=(20, 3))


def a_graph(directed: bool) -> Graph:
    """20 nodes, weighted; the last has no edge."""
    upper = np.triu((RANDOM.random((20, 20)) < 0.2) * RANDOM.uniform(0.5, 2, (20, 20)), 1)
    upper[:, 19] = 0
    dense = np.where(RANDOM.random((20, 20)) < 0.5, upper, upper.T) if directed else upper + upper.T
    return Graph.from_scipy(sparse.csr_array(dense), directed=directed)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("normalization", "self_loops"), [("sym", True), ("row", False), ("col", True)])
def test_corrected_probabilities_are_those_of_the_definition(directed: bool, normalization: str, self_loops: bool):
    graph = a_graph(directed)
    known = KnownErrors.of(KNOWN, LOGITS[KNOWN], CODES, temperature=2.0)
    found = spread_errors(graph, LOGITS, known, 0.01, normalization, self_loops)

    P, wrong = softmax(LOGITS / 2.0, axis=1), np.zeros((20, 3))
    wrong[KNOWN] = np.eye(3)[CODES] - P[KNOWN]
    T = transition_matrix(graph, normalization, self_loops).to_scipy().toarray()
    powers = [np.linalg.matrix_power(0.9 * T, k) for k in range(11)]
    wanted = P + 0.01 * (sum(powers[:10]) + powers[10] / 0.1) @ wrong
    np.testing.assert_allclose(wanted.sum(axis=1), 1)
    assert wanted.min() > 1e-6  # nothing is cut off
    np.testing.assert_allclose(np.exp(found), wanted, rtol=2e-6)


def test_whatever_the_strength_rows_sum_to_one_and_the_largest_entry_stays_the_largest():
    graph = a_graph(False)
    known = KnownErrors.of(KNOWN, LOGITS[KNOWN], CODES, temperature=0.2)
    start = np.zeros((20, 3))
    start[KNOWN] = known.errors
    T = transition_matrix(graph).to_scipy().toarray()
    powers = [np.linalg.matrix_power(0.9 * T, k) for k in range(11)]
    for strength in (0.5, 3, 1000):
        found = spread_errors(graph, LOGITS, known, strength)
        raw = softmax(LOGITS / 0.2, axis=1) + strength * (sum(powers[:10]) + powers[10] / 0.1) @ start
        assert raw.min() < 0
        assert np.isfinite(found).all()
        np.testing.assert_allclose(np.exp(found.astype(float)).sum(axis=1), 1, rtol=1e-5)
        assert (found.argmax(axis=1) == raw.argmax(axis=1)).all()


def test_nodes_out_of_reach_of_known_ones_keep_their_sharpened_probabilities():
    known = KnownErrors.of(KNOWN, LOGITS[KNOWN], CODES, temperature=0.5)
    found = spread_errors(a_graph(False), LOGITS, known, 2.0)
    np.testing.assert_allclose(np.exp(found[19]), softmax(LOGITS[19] / 0.5), rtol=1e-5)


def test_without_strength_only_the_temperature_is_left():
    known = KnownErrors.of(KNOWN, LOGITS[KNOWN], CODES, temperature=0.5)
    np.testing.assert_allclose(
        spread_errors(a_graph(False), LOGITS, known, 0.0), log_softmax(LOGITS / 0.5, axis=1), atol=2e-6
    )


def test_a_shift_of_all_logits_of_a_node_changes_nothing():
    """So logarithms of probabilities, and logits of one member, mean the same."""
    known = [KnownErrors.of(KNOWN, logits[KNOWN], CODES, 0.5) for logits in (LOGITS, LOGITS + 7)]
    np.testing.assert_allclose(known[0].errors, known[1].errors, atol=1e-12)
    assert best_temperature(LOGITS[KNOWN], CODES) == best_temperature(LOGITS[KNOWN] + 7, CODES)


def test_the_temperature_is_the_best_within_a_step_of_its_grid():
    logits = RANDOM.normal(size=(400, 4))
    codes = np.array([RANDOM.choice(4, p=row) for row in softmax(logits / 0.4, axis=1)])

    def loss(heat: float) -> float:
        return -float(log_softmax(logits / heat, axis=1)[np.arange(400), codes].mean())

    best = optimize.minimize_scalar(loss, bounds=(0.05, 3), method="bounded").x
    step = (3 / 0.05) ** (1 / 59)
    assert best / step < best_temperature(logits, codes) < best * step


def test_bad_strengths_and_shapes_are_refused():
    graph, known = a_graph(False), KnownErrors.of(KNOWN, LOGITS[KNOWN], CODES, 1.0)
    for strength in (-0.1, np.inf, np.nan):
        with pytest.raises(InputError, match="'strength' parameter of spread_errors"):
            spread_errors(graph, LOGITS, known, strength)
    with pytest.raises(InputError, match=r"'logits' parameter of spread_errors must be of shape \(20, 3\)"):
        spread_errors(graph, LOGITS[:, :2], known, 0.1)
