"""Planted graphs: edges, dense features and sparse features, each number a function of its place and a seed alone.

Nodes have places: classes one after the other, and in a class by falling weight. The weight of rank r in a class of R nodes
is the integral over [r, r + 1) of a density in proportion to (x + 1)^-a, so that a rank is drawn by one power:

    x = (1 + u ((R + 1)^(1 - a) - 1))^(1 / (1 - a)) - 1,   rank = floor(x),   u uniform in [0, 1).

The node at place p is (p * step + shift) mod n, with a step that shares no divisor with n.
"""

# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import kernel, part
from pprop.kernels.numba_cpu.bits import philox

_TASK = 4096  # edges or rows of one task
_LOW24 = np.uint64(0xFFFFFF)
_8, _24, _32 = np.uint64(8), np.uint64(24), np.uint64(32)
_UNIT40, _UNIT32, _UNIT24 = 2.0**-40, 2.0**-32, 2.0**-24


@part
def _rank(u, span, power, size):
    """Return the rank that a uniform number draws among `size`; `span` is (size + 1)^(1 - a) - 1, `power` 1 / (1 - a)."""
    x = 1.0 + u * span
    if power == 2.0:  # a tail of 3, the default; a power of real numbers takes as long as all the rest of an edge
        x = x * x
    elif power == 3.0:  # a tail of 2.5
        x = x * x * x
    elif power != 1.0:
        x = x**power
    return min(np.int64(x - 1.0), size - 1)


@part
def _node(place, step, shift, n, inverse):
    """Return (place * step + shift) mod n by a product with 1 / n, as divisions of 64 bits are slow."""
    number = place * step + shift
    rest = number - np.int64(number * inverse) * n
    rest = rest + n if rest < 0 else rest
    return rest - n if rest >= n else rest


@part
def _class(u, bounds, guide, n):
    """Return the class that holds place u n; guide[k] is the class of place k n / len(guide)."""
    found = guide[np.int64(u * len(guide))]
    while bounds[found + 1] <= u * n:
        found += 1
    return found


@kernel
def edges(seed, stream, first, bounds, guide, spans, power, homophily, step, shift, source, target):
    """Fill `source` and `target` with edges first, first + 1, ...

    bounds (classes + 1,) has the first place of every class, `guide` what `_class` and `spans` (classes,) what `_rank` needs.
    """
    n, count = bounds[-1], len(source)
    inverse = 1.0 / n
    for task in prange(-(-count // _TASK)):
        for at in range(task * _TASK, min((task + 1) * _TASK, count)):
            e = np.uint64(first + at)
            w0, w1, w2, w3 = philox(seed, e & np.uint64(0xFFFFFFFF), e >> _32, np.uint64(stream), np.uint64(0))
            # two ranks of 40 bits and two numbers of 24 bits
            rank_one = ((w0 << _8) | (w2 >> _24)) * _UNIT40
            rank_two = ((w1 << _8) | (w3 >> _24)) * _UNIT40
            of_class, inside = (w2 & _LOW24) * _UNIT24, (w3 & _LOW24) * _UNIT24
            begin = _class(of_class, bounds, guide, n)
            size = bounds[begin + 1] - bounds[begin]
            left = bounds[begin] + _rank(rank_one, spans[begin], power, size)
            end = begin
            if inside >= homophily:  # what is left of the number is uniform again, and draws another class
                other = (inside - homophily) / (1.0 - homophily) * (n - size)
                other = other + size if other >= bounds[begin] else other
                end = _class(min(other * inverse, 1.0 - _UNIT40), bounds, guide, n)
            size = bounds[end + 1] - bounds[end]
            rank = _rank(rank_two, spans[end], power, size)
            if bounds[end] + rank == left:  # no self-loops
                rank = rank + 1 if rank + 1 < size else 0
            source[at] = _node(left, step, shift, n, inverse)
            target[at] = _node(bounds[end] + rank, step, shift, n, inverse)


@kernel
def dense_rows(seed, stream, first, classes, means, out):
    """Fill out (rows, f) with means[class of the row] plus normal noise, four numbers from each four words."""
    rows, f = out.shape
    for task in prange(-(-rows // 64)):
        for i in range(task * 64, min((task + 1) * 64, rows)):
            for j in range(0, f, 4):
                w0, w1, w2, w3 = philox(seed, np.uint64(first + i), np.uint64(j >> 2), np.uint64(stream), np.uint64(0))
                for half in range(2):
                    radius, angle = (w0, w1) if half == 0 else (w2, w3)
                    size = np.sqrt(-2.0 * np.log((radius + 0.5) * _UNIT32))
                    turn = 2.0 * np.pi * (angle * _UNIT32)
                    at = j + 2 * half
                    if at < f:
                        out[i, at] = means[classes[i], at] + size * np.cos(turn)
                    if at + 1 < f:
                        out[i, at + 1] = means[classes[i], at + 1] + size * np.sin(turn)


@kernel
def sparse_rows(
    seed, stream, first, classes, own, n_classes, spans, sizes, power, step, shift, indices, values, counts
):
    """Draw words for every row: indices and values (rows, draws), of which counts[i] in row i are filled, sorted.

    A word is one of the class's own with probability `own`, else one of all; `spans` and `sizes` are of both lists.
    Word r of class k is word r * n_classes + k of all, so that classes share no words of their own.
    """
    rows, draws = indices.shape
    columns = sizes[1]
    for task in prange(-(-rows // 64)):
        for i in range(task * 64, min((task + 1) * 64, rows)):
            filled = 0
            for draw in range(draws):
                w0, w1, w2, w3 = philox(
                    seed, np.uint64(first + i), np.uint64(draw >> 1), np.uint64(stream), np.uint64(0)
                )
                high, low = (w0, w1) if draw & 1 == 0 else (w2, w3)
                u = ((high << _8) | (low >> _24)) * _UNIT40
                if (low & _LOW24) * _UNIT24 < own:
                    word = _rank(u, spans[0], power, sizes[0]) * n_classes + classes[i]
                else:
                    word = _rank(u, spans[1], power, columns)
                column = np.int32((word * step + shift) % columns)
                at = filled
                while at > 0 and indices[i, at - 1] > column:
                    at -= 1
                if at > 0 and indices[i, at - 1] == column:
                    values[i, at - 1] += 1
                    continue
                for k in range(filled, at, -1):
                    indices[i, k], values[i, k] = indices[i, k - 1], values[i, k - 1]
                indices[i, at], values[i, at] = column, 1
                filled += 1
            counts[i] = filled
