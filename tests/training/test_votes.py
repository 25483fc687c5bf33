"""Stopping nodes that train, too: who trains on which, and who is asked about them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold

from pprop import InputError, Split
from pprop.training.votes import held_out, member_splits

RANDOM = np.random.default_rng(7)
LABELS = RANDOM.integers(0, 3, size=60)
NODES = RANDOM.permutation(60)
SPLIT = Split(NODES[:9], NODES[9:40], NODES[40:])


@pytest.mark.parametrize("folds", [2, 5, 31])
def test_every_stopping_node_is_held_out_once_and_trains_otherwise(folds: int):
    parts = member_splits(SPLIT, LABELS, folds, folds)
    assert sorted(np.concatenate([part.stopping for part in parts])) == sorted(SPLIT.stopping)
    for part in parts:
        assert (part.train[:9] == SPLIT.train).all()
        assert sorted(np.concatenate([part.train[9:], part.stopping])) == sorted(SPLIT.stopping)
        assert (part.evaluation == SPLIT.evaluation).all()


def test_folds_are_as_even_in_classes_as_those_of_scikit_learn():
    parts = member_splits(SPLIT, LABELS, 5, 5)
    theirs = StratifiedKFold(5).split(SPLIT.stopping, LABELS[SPLIT.stopping])
    for part, (_, held) in zip(parts, theirs, strict=True):
        ours = np.bincount(LABELS[part.stopping], minlength=3)
        assert (abs(ours - np.bincount(LABELS[SPLIT.stopping][held], minlength=3)) <= 1).all()


def test_members_take_the_folds_in_turn_and_without_folds_all_nodes():
    parts = member_splits(SPLIT, LABELS, 7, 3)
    assert all(parts[k] is parts[k % 3] for k in range(7))
    assert member_splits(SPLIT, LABELS, 2, 0) == [SPLIT, SPLIT]
    assert [len(part.stopping) for part in member_splits(SPLIT, LABELS, 2, 3)] == [11, 10]


@pytest.mark.parametrize("folds", [-1, 1, 32, 2.5])
def test_impossible_numbers_of_folds_are_refused(folds: int):
    with pytest.raises(InputError, match="'folds' parameter of member_splits"):
        member_splits(SPLIT, LABELS, 2, folds)


@pytest.mark.parametrize(("members", "folds"), [(7, 3), (2, 5), (4, 0)])
def test_a_node_is_judged_by_the_mean_of_those_that_did_not_train_on_it(members: int, folds: int):
    parts = member_splits(SPLIT, LABELS, members, folds)
    logits = RANDOM.normal(size=(members, 60, 3)).astype(np.float32)
    nodes, found = held_out(logits, parts)
    assert nodes.tolist() == sorted(set(np.concatenate([part.stopping for part in parts]).tolist()))
    for node, own in zip(nodes, found, strict=True):
        asked = [k for k in range(members) if node not in parts[k].train]
        mean = softmax(logits[asked, node].astype(float), axis=1).mean(axis=0)
        np.testing.assert_allclose(softmax(own.astype(float)), mean, rtol=1e-5)
