"""Cross entropy of one run at labelled nodes; padded classes count for nothing."""

from __future__ import annotations

import math

import numpy as np

from pprop.kernels.numba_cpu._jit import part, serial

__all__ = ["loss_and_gradient", "loss_and_right"]


@part
def _powers(row, classes, powers):
    """powers = exp(row - max); return the place of the maximum and the sum."""
    best = 0
    for q in range(1, classes):
        if row[q] > row[best]:
            best = q
    total = 0.0
    for q in range(classes):
        powers[q] = math.exp(row[q] - row[best])
        total += powers[q]
    return best, total


@serial
def loss_and_gradient(logits, labels, classes, gradient):
    """Return the mean cross entropy; gradient (m, c) is its own, zero in padded rows and classes."""
    powers = np.empty(classes, np.float64)
    count, total = 0, 0.0
    for k in range(len(labels)):
        count += labels[k] >= 0
    for k in range(len(labels)):
        gradient[k] = 0
        if labels[k] >= 0:
            best, norm = _powers(logits[k], classes, powers)
            total += math.log(norm) - (logits[k, labels[k]] - logits[k, best])
            for q in range(classes):
                gradient[k, q] = (powers[q] / norm - (1.0 if q == labels[k] else 0.0)) / count
    return total / count


@serial
def loss_and_right(logits, labels, classes):
    """Return the mean cross entropy and the share of right answers."""
    powers = np.empty(classes, np.float64)
    count, right, total = 0, 0, 0.0
    for k in range(len(labels)):
        if labels[k] >= 0:
            best, norm = _powers(logits[k], classes, powers)
            total += math.log(norm) - (logits[k, labels[k]] - logits[k, best])
            count += 1
            right += best == labels[k]
    return total / count, right / count
