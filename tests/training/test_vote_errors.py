"""Errors of a vote at known nodes: who is asked, and at which temperature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from pprop import Split
from pprop.models.ensemble import best_temperature
from pprop.training.votes import member_splits, vote_errors

RANDOM = np.random.default_rng(5)
LABELS = RANDOM.integers(0, 3, size=60)
NODES = RANDOM.permutation(60)
SPLIT = Split(np.concatenate([NODES[:9], NODES[:2]]), NODES[9:40], NODES[40:])  # two nodes count twice


@pytest.mark.parametrize(("members", "folds"), [(7, 3), (2, 5), (4, 0), (1, 0)])
def test_a_stopping_node_is_asked_of_those_that_stop_on_it_and_others_of_all(members: int, folds: int):
    parts = member_splits(SPLIT, LABELS, members, folds)
    logits = RANDOM.normal(size=(members, 60, 3)).astype(np.float32)
    known = vote_errors(logits, parts, LABELS)
    assert (known.nodes == np.sort(NODES[:40])).all()
    means, held = [], []
    for node in known.nodes:
        stops = [k for k in range(members) if node in parts[k].stopping]
        means.append(softmax(logits[stops or range(members), node].astype(float), axis=1).mean(axis=0))
        held.append(bool(stops))
    codes, mean = LABELS[known.nodes], np.array(means)
    assert known.temperature == best_temperature(np.log(mean[held]), codes[held])
    sharp = mean ** (1 / known.temperature)
    wanted = np.eye(3)[codes] - sharp / sharp.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(known.errors, wanted, atol=1e-5)


def test_labels_of_other_nodes_are_not_read():
    parts = member_splits(SPLIT, LABELS, 4, 2)
    logits = RANDOM.normal(size=(4, 60, 3)).astype(np.float32)
    hidden = LABELS.copy()
    hidden[SPLIT.evaluation] = -1
    with_all, without = (vote_errors(logits, parts, labels) for labels in (LABELS, hidden))
    assert (with_all.errors == without.errors).all()
