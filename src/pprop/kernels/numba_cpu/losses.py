"""Losses at labelled nodes. Sums over nodes are made run by run, in one order; a label of -1 counts for nothing."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import kernel, part, serial


@part
def _largest(row, classes):
    """Return the place of the largest number, the first of several."""
    best = 0
    for q in range(1, classes):
        if row[q] > row[best]:
            best = q
    return best


@part
def _labelled(labels):
    count = 0
    for k in range(len(labels)):
        count += labels[k] >= 0
    return count


@serial
def loss_of_run(logits, labels, classes, gradient):
    """Return the mean cross entropy of one run, the right answers and the nodes that count.

    Fills gradient (m, c), unless it is None; columns from `classes` on are padding, with a gradient of zero.
    """
    powers, count, hits, total = np.empty(classes, np.float64), _labelled(labels), 0, 0.0
    for k in range(len(labels)):
        label, row = labels[k], logits[k]
        if gradient is not None:
            gradient[k] = 0
        if label < 0:
            continue
        best, norm = _largest(row, classes), 0.0
        hits += best == label
        for q in range(classes):
            powers[q] = math.exp(row[q] - row[best])
            norm += powers[q]
        total += math.log(norm) - (row[label] - row[best])
        if gradient is not None:
            for q in range(classes):
                gradient[k, q] = (powers[q] / norm - (1.0 if q == label else 0.0)) / count
    return total / count, hits, count


@kernel
def cross_entropy(logits, labels, loss, right, gradient):
    """Mean cross entropy, right answers and gradient per run."""
    for run in prange(len(logits)):
        loss[run], right[run], _ = loss_of_run(logits[run], labels[run], logits.shape[2], gradient[run])


@kernel
def likelihood(probabilities, labels, loss, right, gradient, least):
    """Mean negative log likelihood, right answers and gradient per run; `least` replaces smaller probabilities."""
    for run in prange(len(probabilities)):
        count, total, hits = _labelled(labels[run]), 0.0, 0
        for k in range(labels.shape[1]):
            label, row = labels[run, k], probabilities[run, k]
            gradient[run, k, :] = 0
            if label < 0:
                continue
            hits += _largest(row, len(row)) == label
            own = least if row[label] < least else row[label]
            total -= math.log(own)
            gradient[run, k, label] = -1.0 / (own * count)
        loss[run] = total / count
        right[run] = hits
