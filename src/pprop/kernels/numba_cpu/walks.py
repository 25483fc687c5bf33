"""What a walk over the edges finds: statistics of the columns where it ends after one step more, and where it returns to.

A walk of k steps from node i ends at a node that is drawn; a column of numbers there has a mean, a variance, a largest and a
smallest value. One pass over the entries makes those of k + 1 steps from those of k: the variance of a mixture is the mean
of the variances and the variance of the means.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel, serial
from pprop.kernels.numba_cpu.vectors import address, prefetch

_AHEAD = 8  # entries whose rows are fetched from memory while others are read
_LINE = 16  # float32 numbers of a cache line
_SHARES = 64  # parts of the nodes, each with room for all places of a walk


@kernel
def walk_means(indptr, indices, weights, mass, mean, mass_after, mean_after):
    """Fill `mean_after` (n, c) with weighted means of the rows of `mean` over the entries of each row, float32.

    Weights (entries,) may be empty, all one. `mass` (n, c) is the probability that a walk has found a number, or empty where
    all have; `mass_after` becomes it for the step more. A row without mass has the mean 0.
    """
    n, c = mean.shape
    gaps = len(mass) > 0
    place = address(mean)
    for task in prange(-(-n // ROW_BLOCK)):
        total, known = np.empty(c), np.empty(c)
        for i in range(task * ROW_BLOCK, min((task + 1) * ROW_BLOCK, n)):
            begin, end, whole = indptr[i], indptr[i + 1], 0.0
            total[:] = 0.0
            known[:] = 0.0
            for e in range(begin, end):
                ahead = np.int64(indices[min(e + _AHEAD, end - 1)]) * c
                for q in range(0, c, _LINE):
                    prefetch(place, ahead + q)
                j, weight = indices[e], weights[e] if len(weights) else 1.0
                whole += weight
                if gaps:
                    for q in range(c):
                        share = weight * mass[j, q]
                        known[q] += share
                        total[q] += share * mean[j, q]
                else:
                    for q in range(c):
                        total[q] += weight * mean[j, q]
            for q in range(c):
                here = known[q] if gaps else whole
                mean_after[i, q] = total[q] / here if here > 0.0 else 0.0
                if gaps:
                    mass_after[i, q] = here / whole if whole > 0.0 else 0.0


@kernel
def walk_spread(indptr, indices, weights, mass, mean, variance, largest, smallest, mean_after, after):
    """Fill the rows of `after` (3, n, c): variance, largest and smallest value where a walk of one step more ends.

    `mean_after` is what `walk_means` has made of the same; where no number is known all are 0. `variance`, `largest` and
    `smallest` (n, c) are those of the walk before: of no step, zeros and the numbers themselves.
    """
    n, c = mean.shape
    gaps = len(mass) > 0
    for task in prange(-(-n // ROW_BLOCK)):
        total, known = np.empty(c), np.empty(c)
        high, low = np.empty(c, np.float32), np.empty(c, np.float32)
        for i in range(task * ROW_BLOCK, min((task + 1) * ROW_BLOCK, n)):
            whole = 0.0
            total[:] = 0.0
            known[:] = 0.0
            high[:] = -np.inf
            low[:] = np.inf
            for e in range(indptr[i], indptr[i + 1]):
                j, weight = indices[e], weights[e] if len(weights) else 1.0
                whole += weight
                if gaps:
                    for q in range(c):
                        share = weight * mass[j, q]
                        known[q] += share
                        apart = np.float64(mean[j, q]) - mean_after[i, q]
                        total[q] += share * (variance[j, q] + apart * apart)
                        if share > 0.0:
                            high[q] = max(high[q], largest[j, q])
                            low[q] = min(low[q], smallest[j, q])
                else:
                    for q in range(c):
                        apart = np.float64(mean[j, q]) - mean_after[i, q]
                        total[q] += weight * (variance[j, q] + apart * apart)
                        high[q] = max(high[q], largest[j, q])
                        low[q] = min(low[q], smallest[j, q])
            for q in range(c):
                here = known[q] if gaps else whole
                some = here > 0.0
                after[0, i, q] = total[q] / here if some else 0.0
                after[1, i, q] = high[q] if some else 0.0
                after[2, i, q] = low[q] if some else 0.0


@kernel
def returns(indptr, indices, weights, degree, out):
    """Fill `out` (n, 3) with the probabilities that a walk is at its start again after two, three and four steps.

    The entries are those of a symmetric matrix of weights without zeros; `degree` (n,) holds the sums of its rows. With
    p the place after two steps, detailed balance d_i P^k_ij = d_j P^k_ji gives P^3_ii = sum_j p_j P_ij d_i / d_j and
    P^4_ii = sum_j p_j^2 d_i / d_j, so that the walks of two steps, as many as sum_j d_j^2, are enough.
    """
    n = len(degree)
    tasks = min(_SHARES, n)
    for task in prange(tasks):
        place, reached = np.zeros(n), np.empty(n, np.int64)
        for i in range(task, n, tasks):
            found = 0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                first = (weights[e] if len(weights) else 1.0) / degree[i] / degree[j]
                for f in range(indptr[j], indptr[j + 1]):
                    k = indices[f]
                    if place[k] == 0.0:
                        reached[found] = k
                        found += 1
                    place[k] += first * (weights[f] if len(weights) else 1.0)
            out[i, 0] = place[i]
            three = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                three += place[j] * (weights[e] if len(weights) else 1.0) / degree[j]
            out[i, 1] = three
            four = 0.0
            for r in range(found):
                k = reached[r]
                four += place[k] * place[k] * degree[i] / degree[k]
                place[k] = 0.0
            out[i, 2] = four


@serial
def has_self_loops(indptr, indices):
    """Return whether a row has an entry on the diagonal."""
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] == i:
                return True
    return False
