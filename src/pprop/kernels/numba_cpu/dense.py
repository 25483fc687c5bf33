"""Dense operators: activations, softmax, the second layer with its adjoints, the losses, and the optimiser.

Both products of the second layer are made of one small loop, four rows of sums in registers at a time: a row that is read
serves all four, and their additions do not wait for each other. They are compiled for a number of lanes, see `tile_of`.
"""

from __future__ import annotations

import math
from functools import cache

import llvmlite.binding as llvm
import numpy as np
from numba import prange

from pprop.kernels.losses import ELEMENTWISE, HUBER, HUBER_TURN, LOGISTIC
from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel, part, serial
from pprop.kernels.numba_cpu.bits import keep_word
from pprop.kernels.numba_cpu.vectors import (
    add_term,
    address,
    item,
    keep_lanes,
    load,
    put,
    relu_keep,
    store,
    times,
    token_of,
    zeros,
)

_ROWS = 4  # of sums that are made together
# Bytes of each: four and the row that is weighted fill the registers, of which AVX-512 has 2 kB, AVX2 and NEON 512 bytes.
_TILE = 256 if llvm.get_host_cpu_features().get("avx512f", False) else 64


def tile_of(width: int, itemsize: int) -> int:
    """Return how many columns are made at a time: equal tiles cover a row, the last of which may overlap another.

    >>> tile_of(7, itemsize=4)
    7
    """
    tiles = max(1, -(-width * itemsize // _TILE))
    return max(1, -(-width // tiles))


_HUBER, _LOGISTIC = ELEMENTWISE.index(HUBER), ELEMENTWISE.index(LOGISTIC)


@kernel
def activate(values, relu, seeds, stream, epoch, threshold, digits, scale):
    """values = scale * keep * values in place, (R, n, h), of max(values, 0) for `relu`; no dropout without digits."""
    runs, n, width = values.shape
    for row in prange(runs * n):
        run, i, place, token = row // n, row % n, address(values), token_of(32)
        for first in range(0, width, 32):
            keep = keep_word(seeds[run], stream, i, epoch, first // 32, threshold, digits)
            at = row * width + first
            if first + 32 <= width:
                whole = load(place, at, token)
                if relu:
                    store(place, at, relu_keep(whole, keep, keep, scale))
                else:
                    store(place, at, times(scale, keep_lanes(whole, keep)))
            else:
                for q in range(width - first):
                    kept, value = (keep >> np.uint64(q)) & np.uint64(1), item(place, at + q)
                    # a NaN stays one, so that a run that diverges shows
                    put(place, at + q, 0 if not kept or (relu and value <= 0) else value * scale)


@kernel
def activate_adjoint(gradient, activated, scale):
    """gradient = scale * gradient where the activated value is positive, else 0, in place; both flat."""
    for k in prange(len(gradient)):
        gradient[k] = gradient[k] * scale if activated[k] > 0 else 0


@kernel
def find_strange(values, together, strange):
    """strange[block] = whether one of `together` values is NaN or infinite; flat."""
    for block in prange(len(strange)):
        found = False
        for k in range(block * together, min(len(values), (block + 1) * together)):
            found |= not abs(values[k]) < np.inf
        strange[block] = found


@kernel
def turn(before, keep, arrived, stay, own, weight):
    """before = (keep * before + stay * arrived) + weight * own, each product and each sum rounded; all flat."""
    for k in prange(len(before)):
        before[k] = keep * before[k] + stay * arrived[k] + weight * own[k]


@kernel
def elu(values):
    """values = exp(values) - 1 where negative, in place; flat."""
    for k in prange(len(values)):
        if values[k] < 0:
            values[k] = math.expm1(values[k])


@kernel
def elu_adjoint(gradient, result):
    """gradient = gradient * (result + 1) where the result is negative, in place: the slope exp(x) is y + 1; both flat."""
    for k in prange(len(gradient)):
        if not result[k] >= 0:  # so that a NaN stays one
            gradient[k] *= result[k] + 1


@kernel
def softmax(values, out):
    """Softmax of every row of values (rows, width)."""
    width = values.shape[1]
    for i in prange(len(values)):
        largest = values[i, 0]
        for q in range(1, width):
            largest = max(largest, values[i, q])
        norm = 0.0
        for q in range(width):
            out[i, q] = math.exp(values[i, q] - largest)
            norm += out[i, q]
        for q in range(width):
            out[i, q] /= norm


@kernel
def softmax_adjoint(gradient, result, out):
    """out = result * (gradient - <gradient, result>) in every row of (rows, width)."""
    width = gradient.shape[1]
    for i in prange(len(gradient)):
        centre = 0.0
        for q in range(width):
            centre += gradient[i, q] * result[i, q]
        for q in range(width):
            out[i, q] = result[i, q] * (gradient[i, q] - centre)


@part
def _products(left, at, row, step, some, terms, right, right_at, out, out_at, width, token):
    """out[r] = sum over k of left[at + r * row + k * step] * right[k], for `some` r, at most `_ROWS`.

    A factor of zero adds nothing. Right[k] and out[r] are lanes of rows of `width` numbers, from `right_at` and `out_at` on.
    """
    r1, r2, r3 = min(1, some - 1), min(2, some - 1), min(3, some - 1)  # where there are fewer, the last is made again
    a0, a1, a2, a3 = at, at + r1 * row, at + r2 * row, at + r3 * row
    s0, s1, s2, s3 = zeros(right, token), zeros(right, token), zeros(right, token), zeros(right, token)
    for k in range(terms):
        values, own = load(right, right_at + k * width, token), k * step
        s0, s1 = add_term(item(left, a0 + own), values, s0), add_term(item(left, a1 + own), values, s1)
        s2, s3 = add_term(item(left, a2 + own), values, s2), add_term(item(left, a3 + own), values, s3)
    store(out, out_at, s0)
    store(out, out_at + r1 * width, s1)
    store(out, out_at + r2 * width, s2)
    store(out, out_at + r3 * width, s3)


@cache
def linear(tile):
    """out_r = inputs_r weights_r, so many columns at a time; a hidden value of zero adds nothing."""

    @kernel
    def run_linear(inputs, weights, out):
        runs, n, width = out.shape
        inner = inputs.shape[2]
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            begin, end = run * n + block * ROW_BLOCK, run * n + min(n, (block + 1) * ROW_BLOCK)
            source, matrix, target, token = address(inputs), address(weights), address(out), token_of(tile)
            for first in range(0, width, tile):
                q = min(first, width - tile)
                at = run * inner * width + q
                for i in range(begin, end, _ROWS):
                    some, to = min(_ROWS, end - i), i * width + q
                    _products(source, i * inner, inner, 1, some, inner, matrix, at, target, to, width, token)

    return run_linear


@cache
def linear_weight_adjoint(tile):
    """out_r = inputs_r^T gradient_r, so many columns at a time: blocks of nodes are summed apart, then added in order."""

    @kernel
    def run_linear_weight_adjoint(inputs, gradient, out):
        runs, inner, width = out.shape
        n = inputs.shape[1]
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        partial = np.empty((runs, blocks, inner, width), out.dtype)
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            begin, end = run * n + block * ROW_BLOCK, run * n + min(n, (block + 1) * ROW_BLOCK)
            source, above, target, token = address(inputs), address(gradient), address(partial), token_of(tile)
            for first in range(0, width, tile):
                q = min(first, width - tile)
                at = begin * width + q
                for p in range(0, inner, _ROWS):
                    some, own, to = min(_ROWS, inner - p), begin * inner + p, (task * inner + p) * width + q
                    _products(source, own, 1, inner, some, end - begin, above, at, target, to, width, token)
        for run in prange(runs):
            total = out[run]
            total[:] = 0
            for block in range(blocks):
                part = partial[run, block]
                for p in range(inner):
                    for q in range(width):
                        total[p, q] += part[p, q]

    return run_linear_weight_adjoint


@kernel
def adam(weights, gradient, mean, square, rate, mean_correction, square_correction, penalty, squares):
    """One Adam step in place; squares[r] = |W_new|^2, summed by column within a block, then over blocks in order."""
    runs, rows, width = weights.shape
    blocks = (rows + ROW_BLOCK - 1) // ROW_BLOCK
    partial = np.empty((runs, blocks, width), weights.dtype)
    keep_mean, keep_square = weights.dtype.type(0.9), weights.dtype.type(0.999)
    new_mean, new_square = weights.dtype.type(0.1), weights.dtype.type(0.001)
    epsilon = weights.dtype.type(1e-8)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        w, g, a, b, part = weights[run], gradient[run], mean[run], square[run], partial[run, block]
        part[:] = 0
        for i in range(block * ROW_BLOCK, min(rows, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                full = g[i, q] + penalty * w[i, q]
                a[i, q] = keep_mean * a[i, q] + new_mean * full
                b[i, q] = keep_square * b[i, q] + new_square * (full * full)
                w[i, q] -= rate * (a[i, q] / mean_correction) / (np.sqrt(b[i, q] / square_correction) + epsilon)
                part[q] += w[i, q] * w[i, q]
    for run in prange(runs):
        total = 0.0
        for block in range(blocks):
            for q in range(width):
                total += partial[run, block, q]
        squares[run] = total


@part
def _largest(row, classes):
    """Return the place of the largest number, the first of several."""
    best = 0
    for q in range(1, classes):
        if row[q] > row[best]:
            best = q
    return best


@part
def _weight_of(labels, weights):
    """Return the weight of all labelled nodes; without weights each counts as 1.0, which changes no bit of a product."""
    total = 0.0
    for k in range(len(labels)):
        if labels[k] >= 0:
            total += weights[k]
    return total


@serial
def loss_of_run(logits, labels, weights, classes, gradient):
    """Return the mean cross entropy of one run, weighted, and the weights (float64) of right answers and of all nodes.

    Fills gradient (m, c), unless it is None; columns from `classes` on are padding, with a gradient of zero.
    """
    powers, whole, hits, total = np.empty(classes, np.float64), _weight_of(labels, weights), 0.0, 0.0
    for k in range(len(labels)):
        label, row, weight = labels[k], logits[k], weights[k]
        if gradient is not None:
            gradient[k] = 0
        if label < 0 or weight == 0:
            continue
        best, norm = _largest(row, classes), 0.0
        if best == label:
            hits += weight
        for q in range(classes):
            powers[q] = math.exp(row[q] - row[best])
            norm += powers[q]
        total += weight * (math.log(norm) - (row[label] - row[best]))
        if gradient is not None:
            for q in range(classes):
                gradient[k, q] = weight * (powers[q] / norm - (1.0 if q == label else 0.0)) / whole
    return total / whole, hits, whole


@kernel
def cross_entropy(logits, labels, weights, loss, right, gradient):
    """Mean cross entropy, weight of right answers and gradient per run; weights in float64."""
    for run in prange(len(logits)):
        loss[run], right[run], _ = loss_of_run(logits[run], labels[run], weights[run], logits.shape[2], gradient[run])


@part
def _apart(output, target, kind):
    """Return the loss of one output, its slope, and how good it is; `kind` is a place in `ELEMENTWISE`."""
    if kind == _LOGISTIC:
        # log(1 + exp(o)), which neither overflows nor loses the small ones
        power = math.exp(-abs(output))
        share = 1 / (1 + power) if output >= 0 else power / (1 + power)
        right = 1.0 if (output > 0) == (target > 0.5) else 0.0
        return max(output, 0.0) + math.log1p(power) - target * output, share - target, right
    off = output - target
    if kind == _HUBER and abs(off) > HUBER_TURN:
        slope = HUBER_TURN if off > 0 else -HUBER_TURN
        return HUBER_TURN * (abs(off) - 0.5 * HUBER_TURN), slope, 1 - off * off
    return 0.5 * off * off, off, 1 - off * off


@serial
def elementwise_of_run(outputs, targets, weights, kind, gradient):
    """Return the mean loss of one run, its goodness times the weight of all nodes, and that weight; weights in float64.

    Fills gradient (m, c), unless it is None; columns beyond those of the targets are padding, with a gradient of zero.
    """
    known, whole, total, good = 0.0, 0.0, 0.0, 0.0
    for k in range(len(targets)):
        whole += weights[k]
        for q in range(targets.shape[1]):
            if targets[k, q] == targets[k, q]:
                known += weights[k]
    scale = targets.shape[1] / known
    for k in range(len(targets)):
        weight = weights[k]
        if gradient is not None:
            gradient[k] = 0
        if weight == 0:
            continue
        for q in range(targets.shape[1]):
            target = np.float64(targets[k, q])
            if target == target:
                loss, slope, right = _apart(np.float64(outputs[k, q]), target, kind)
                total += weight * loss
                good += weight * right
                if gradient is not None:
                    gradient[k, q] = weight * slope * scale
    return total * scale, good / known * whole, whole


@kernel
def elementwise_loss(outputs, targets, weights, kind, loss, good, gradient):
    """Mean loss, goodness and gradient per run."""
    for run in prange(len(outputs)):
        loss[run], good[run], _ = elementwise_of_run(outputs[run], targets[run], weights[run], kind, gradient[run])


@kernel
def likelihood(probabilities, labels, weights, loss, right, gradient, least):
    """Mean negative log likelihood, weight of right answers and gradient; `least` replaces smaller probabilities."""
    for run in prange(len(probabilities)):
        whole, total, hits = _weight_of(labels[run], weights[run]), 0.0, 0.0
        for k in range(labels.shape[1]):
            label, row, weight = labels[run, k], probabilities[run, k], weights[run, k]
            gradient[run, k, :] = 0
            if label < 0 or weight == 0:
                continue
            if _largest(row, len(row)) == label:
                hits += weight
            own = least if row[label] < least else row[label]
            total -= weight * math.log(own)
            gradient[run, k, label] = -weight / (own * whole)
        loss[run] = total / whole
        right[run] = hits
