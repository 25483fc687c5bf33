"""Rows of a dense X from where they lie into memory in float32: converted, and scaled to the bits of a scaled copy."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from pprop.graph.features.scaling import DenseRows
from pprop.kernels.numba_cpu._jit import part
from pprop.kernels.numba_cpu.vectors import (
    Vector,
    address,
    apart,
    call_llvm,
    item,
    lane_by_lane,
    lanes,
    load,
    pointer,
    store,
    together,
    width_of,
)

_WORD, _ONE = lanes(32), lanes(1)


@intrinsic
def load_as(typing, address, offset, like, token):
    """Return the lanes that begin at an offset, as numbers of the type at the address `like`; uint16 are bits of float16."""
    source, vector = address.dtype, Vector(like.dtype, width_of(token))
    width = 16 if source == types.uint16 else source.bitwidth

    def codegen(context, builder, sig, args):
        kind, found = ir.HalfType() if source == types.uint16 else context.get_value_type(source), []
        base = pointer(context, builder, sig, args)
        for begin, target in vector.parts:
            place = builder.gep(base, [context.get_constant(types.intp, begin)])
            place = builder.bitcast(place, ir.VectorType(kind, target.count).as_pointer())
            values = builder.load(place, align=source.bitwidth // 8)
            if source in (types.int8, types.uint8):
                values = (builder.sitofp if source.signed else builder.uitofp)(values, target)
            elif width != vector.dtype.bitwidth:
                values = (builder.fpext if width < vector.dtype.bitwidth else builder.fptrunc)(values, target)
            found.append(values)
        return together(builder, found)

    return vector(address, offset, like, token), codegen


@intrinsic
def rounded(typing, vector, like):
    """Return a vector in float64 rounded to float32, as numbers of the type at the address `like`."""
    result = Vector(like.dtype, vector.width)

    def codegen(context, builder, sig, args):
        found = []
        for value, (_, kind) in zip(apart(builder, args[0]), result.parts, strict=True):
            narrow = builder.fptrunc(value, ir.VectorType(ir.FloatType(), kind.count))
            found.append(narrow if like.dtype == types.float32 else builder.fpext(narrow, kind))
        return together(builder, found)

    return result(vector, like), codegen


@intrinsic
def quotient(typing, vector, divisor, inverse):
    """Return vector / divisor, correctly rounded (Markstein), given 1 / divisor; of finite numbers far from both limits."""

    def operation(builder, value, by, one_over):
        near = builder.fmul(value, one_over)
        rest = call_llvm("fma", builder, builder.fneg(near), by, value)
        return call_llvm("fma", builder, rest, one_over, near)

    return lane_by_lane((vector, divisor, inverse), operation)


@intrinsic
def minus(typing, left, right):
    """Return left - right."""
    return lane_by_lane((left, right), "fsub")


@final
class RowsInMemory(NamedTuple):
    """The arrays of `DenseRows`, for kernels; (0, 4) and (0, f) where nothing is scaled.

    Attributes
    ----------
    matrix
        Shape (n, f), float32, float64, int8 or uint8; uint16 for the bits of float16.
    by_row
        Two divisors and their inverses, (n, 4).
    by_column
        Divisor, inverse and shift of every column, (3, f).
    """

    matrix: NDArray[Any]
    by_row: NDArray[np.float64]
    by_column: NDArray[np.float64]

    @classmethod
    def of(cls, rows: DenseRows) -> RowsInMemory:
        """Return the arrays of rows; what is scaled has the bits of `DenseRows.toarray`."""
        found = rows.readable()
        matrix = found.matrix.view(np.uint16) if found.matrix.dtype == np.float16 else found.matrix
        by_row, by_column = np.empty((0, 4)), np.empty((0, rows.shape[1]))
        if found.by_row is not None:
            first, second = found.by_row.T
            by_row = np.stack([first, 1 / first, second, 1 / second], axis=1)
        if found.by_column is not None:
            divisor, shift = found.by_column
            by_column = np.stack([divisor, 1 / divisor, shift])
        return cls(matrix, by_row, by_column)


@part
def _scaled(x, at, i, j, f, by_row, rows, by_column, columns, doubles, out, token):
    """Return lanes of X from (i, j) on, which lie at `at`, scaled and rounded to float32."""
    values = load_as(x, at, doubles, token)
    if rows:
        values = quotient(values, item(by_row, 4 * i), item(by_row, 4 * i + 1))
        values = quotient(values, item(by_row, 4 * i + 2), item(by_row, 4 * i + 3))
    if columns:
        values = quotient(values, load(by_column, j, token), load(by_column, f + j, token))
        values = minus(values, load(by_column, 2 * f + j, token))
    return rounded(values, out)


@part
def copy_row(X, by_row, by_column, i, first, columns, out, out_at):
    """Copy so many numbers of row i, from a column on, as a network reads them."""
    f, rows, scaled = X.shape[1], by_row.shape[0] > 0, by_column.shape[0] > 0
    x, divisors, shifts = address(X), address(by_row), address(by_column)
    at, whole = i * f + first, columns // 32 * 32
    if rows or scaled or X.itemsize == 8:
        for j in range(0, whole, 32):
            lane_values = _scaled(x, at + j, i, first + j, f, divisors, rows, shifts, scaled, shifts, out, _WORD)
            store(out, out_at + j, lane_values)
        for j in range(whole, columns):
            one = _scaled(x, at + j, i, first + j, f, divisors, rows, shifts, scaled, shifts, out, _ONE)
            store(out, out_at + j, one)
    else:
        for j in range(0, whole, 32):
            store(out, out_at + j, load_as(x, at + j, out, _WORD))
        for j in range(whole, columns):
            store(out, out_at + j, load_as(x, at + j, out, _ONE))
