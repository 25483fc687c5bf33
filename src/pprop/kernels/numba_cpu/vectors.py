"""Rows of numbers in registers: LLVM's vector values as a numba type.

A loop over an array that holds a row of sums is stored and loaded again for every term, because LLVM does not see that
nothing else points there. A `Vector` is a value, not memory: sixteen NEON or eight AVX registers hold the 64 sums of
one row of the first layer while its entries stream past. Every function is one or a few instructions per register.

The number of lanes is part of a type, so it comes with the type of an argument, a `lanes` token.

Memory is a C-contiguous array, or the `address` of one, which is what is left of it without its shape: no reference is
counted, no index wraps around, and a function that takes a dozen of them is still cheap to call and to compile. Offsets
are counted in elements. Nothing is checked, and the caller keeps the arrays alive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

from pprop.kernels.numba_cpu._jit import part


@cache
def lanes(width: int) -> tuple[Any, ...]:
    """Return the token that tells a kernel, at compile time, how many lanes its vectors have.

    Its numba type holds the number, as its length for a power of two and else as a tuple of such, and as no array it costs
    no counting of references.

    >>> lanes(16), lanes(12)
    ((0, 0, 0, 0), ((0, 0, 0), (0, 0)))
    """
    powers = [power for power in range(width.bit_length() - 1, -1, -1) if width >> power & 1]
    return (0,) * powers[0] if len(powers) == 1 else tuple((0,) * power for power in powers)


def width_of(token: Any) -> int:
    """Return the number of lanes of a token's type."""
    parts = list(token)
    return sum(map(width_of, parts)) if parts and isinstance(parts[0], types.BaseTuple) else 2 ** len(parts)


class Vector(types.Type):
    """A row of `width` numbers of one type; a value that is never written to memory unless `store` does so.

    For LLVM it is a structure of vectors with a power of two of lanes each, the longest first: others waste registers.
    """

    def __init__(self, dtype: Any, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Vector({dtype}, {width})")

    @property
    def parts(self) -> list[tuple[int, Any]]:
        """First lane and LLVM type of every vector."""
        element, found, begin = ir.FloatType() if self.dtype == types.float32 else ir.DoubleType(), [], 0
        while begin < self.width:
            lanes_here = 1 << ((self.width - begin).bit_length() - 1)
            found.append((begin, ir.VectorType(element, lanes_here)))
            begin += lanes_here
        return found


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ir.LiteralStructType([kind for _, kind in fe_type.parts]))


def apart(builder: Any, structure: Any) -> list[Any]:
    """Return the vectors of a structure."""
    return [builder.extract_value(structure, place) for place in range(len(structure.type.elements))]


def together(builder: Any, vectors: list[Any]) -> Any:
    """Return the structure of vectors."""
    structure = ir.Constant(ir.LiteralStructType([vector.type for vector in vectors]), ir.Undefined)
    for place, vector in enumerate(vectors):
        structure = builder.insert_value(structure, vector, place)
    return structure


def pointer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Return where in memory, an array or an address, the element at an offset is: the first two arguments."""
    base = args[0]
    if isinstance(sig.args[0], types.Array):
        base = context.make_array(sig.args[0])(context, builder, base).data
    return builder.gep(base, [context.cast(builder, args[1], sig.args[1], types.intp)])


def _mix(builder: Any, vector: Any, scalars: list[Any], order: list[int]) -> Any:
    """Fill every lane of an LLVM vector with one of the scalars, whose places `order` has."""
    index = ir.IntType(32)
    start = ir.Constant(vector, ir.Undefined)
    for place, value in enumerate(scalars):
        start = builder.insert_element(start, value, index(place))
    lanes_of = ir.Constant(ir.VectorType(index, vector.count), order)
    return builder.shuffle_vector(start, ir.Constant(vector, ir.Undefined), lanes_of)


def _splat(builder: Any, vector: Any, *scalars: Any) -> Any:
    """Fill an LLVM vector with one scalar, or its equal parts with one each."""
    part_of = vector.count // len(scalars)
    return _mix(builder, vector, list(scalars), [lane // part_of for lane in range(vector.count)])


def call_llvm(name: str, builder: Any, *arguments: Any) -> Any:
    """Return what a function of LLVM makes of vectors of one type."""
    vector = arguments[0].type
    kind = "f32" if isinstance(vector.element, ir.FloatType) else "f64"
    signature = ir.FunctionType(vector, [vector] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{vector.count}{kind}")
    return builder.call(function, arguments)


def lane_by_lane(operands: tuple[Any, ...], operation: str | Callable[..., Any]) -> Any:
    """Return signature and code of an operation on vectors of one type; a number counts as a vector of it.

    An operation is the name of a method of the builder, or a function of the builder and the vectors.
    """
    vector = next(kind for kind in operands if isinstance(kind, Vector))

    def codegen(context, builder, sig, args):
        given = [
            apart(builder, value) if isinstance(kind, Vector) else context.cast(builder, value, kind, vector.dtype)
            for kind, value in zip(sig.args, args, strict=True)
        ]
        found = []
        for place, (_, kind) in enumerate(vector.parts):
            whole = [value[place] if isinstance(value, list) else _splat(builder, kind, value) for value in given]
            found.append(
                getattr(builder, operation)(*whole) if isinstance(operation, str) else operation(builder, *whole)
            )
        return together(builder, found)

    return vector(*operands), codegen


@intrinsic
def address(typing, array):
    """Return where the numbers of an array begin."""
    place = types.CPointer(array.dtype)

    def codegen(context, builder, sig, args):
        return context.make_array(sig.args[0])(context, builder, args[0]).data

    return place(array), codegen


@intrinsic
def item(typing, address, offset):
    """Return one number."""

    def codegen(context, builder, sig, args):
        return builder.load(pointer(context, builder, sig, args))

    return address.dtype(address, offset), codegen


@intrinsic
def put(typing, address, offset, number):
    """Write one number."""

    def codegen(context, builder, sig, args):
        value = context.cast(builder, args[2], sig.args[2], address.dtype)
        builder.store(value, pointer(context, builder, sig, args))
        return context.get_dummy_value()

    return types.void(address, offset, number), codegen


@intrinsic(prefer_literal=True)
def token_of(typing, width):
    """Return the token of so many lanes, given as a literal, inside of a loop that threads share: some cannot pass into it."""
    token = typeof(lanes(width.literal_value))

    def codegen(context, builder, sig, args):
        return ir.Constant(context.get_value_type(token), ir.Undefined)

    return token(width), codegen


@intrinsic
def count(typing, token):
    """Return the number of lanes of a token."""
    width = width_of(token)

    def codegen(context, builder, sig, args):
        return context.get_constant(types.intp, width)

    return types.intp(token), codegen


@intrinsic
def zeros(typing, address, token):
    """Return a vector of zeros, of the type of the numbers at an address."""
    vector = Vector(address.dtype, width_of(token))

    def codegen(context, builder, sig, args):
        return ir.Constant(context.get_value_type(vector), None)

    return vector(address, token), codegen


@intrinsic
def load(typing, address, offset, token):
    """Return the lanes that begin at an offset."""
    vector = Vector(address.dtype, width_of(token))

    def codegen(context, builder, sig, args):
        base, found = pointer(context, builder, sig, args), []
        for begin, kind in vector.parts:
            place = builder.bitcast(builder.gep(base, [context.get_constant(types.intp, begin)]), kind.as_pointer())
            found.append(builder.load(place, align=address.dtype.bitwidth // 8))
        return together(builder, found)

    return vector(address, offset, token), codegen


@intrinsic
def store(typing, address, offset, vector):
    """Write a vector, from an offset on."""

    def codegen(context, builder, sig, args):
        base = pointer(context, builder, sig, args)
        for (begin, kind), value in zip(vector.parts, apart(builder, args[2]), strict=True):
            place = builder.bitcast(builder.gep(base, [context.get_constant(types.intp, begin)]), kind.as_pointer())
            builder.store(value, place, align=address.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(address, offset, vector), codegen


@intrinsic
def fma(typing, factor, vector, total):
    """Return factor * vector + total, with one rounding where the processor can."""
    return lane_by_lane((factor, vector, total), partial(call_llvm, "fmuladd"))


@intrinsic
def times(typing, left, right):
    """Return left * right."""
    return lane_by_lane((left, right), "fmul")


@intrinsic
def add(typing, left, right):
    """Return left + right."""
    return lane_by_lane((left, right), "fadd")


@intrinsic
def add_term(typing, factor, vector, total):
    """Return total + factor * vector, the product and the sum rounded; a factor of zero adds zero, whatever the vector."""

    def operation(builder, one, row, sums):
        zero = ir.Constant(row.type, None)
        return builder.fadd(sums, builder.select(builder.fcmp_unordered("!=", one, zero), builder.fmul(one, row), zero))

    return lane_by_lane((factor, vector, total), operation)


@intrinsic
def divide(typing, left, right):
    """Return left / right."""
    return lane_by_lane((left, right), "fdiv")


@intrinsic
def root(typing, vector):
    """Return the square root of every lane."""
    return lane_by_lane((vector,), partial(call_llvm, "sqrt"))


@intrinsic
def where_positive(typing, vector, test, scale):
    """Return scale * vector where `test` is positive, else zero."""

    def operation(builder, value, tested, factor):
        zero = ir.Constant(value.type, None)
        return builder.select(builder.fcmp_ordered(">", tested, zero), builder.fmul(value, factor), zero)

    return lane_by_lane((vector, test, scale), operation)


@intrinsic
def any_above(typing, vector, number):
    """Return whether the absolute value of any lane is above a number."""
    width = ir.IntType(vector.width)

    def codegen(context, builder, sig, args):
        (row,) = apart(builder, args[0])
        bound = _splat(builder, row.type, context.cast(builder, args[1], sig.args[1], vector.dtype))
        above = builder.fcmp_ordered(">", call_llvm("fabs", builder, row), bound)
        return builder.icmp_unsigned("!=", builder.bitcast(above, width), width(0))

    return types.boolean(vector, number), codegen


@intrinsic
def wide(typing, vector):
    """Return a vector in float64."""
    result = Vector(types.float64, vector.width)

    def codegen(context, builder, sig, args):
        if vector.dtype == types.float64:
            return args[0]
        parts = zip(result.parts, apart(builder, args[0]), strict=True)
        return together(builder, [builder.fpext(value, kind) for (_, kind), value in parts])

    return result(vector), codegen


@intrinsic
def fma_halves(typing, left, right, vector, total):
    """Return factor * vector + total, where the factor is `left` in the first half of the lanes, `right` in the other."""

    def codegen(context, builder, sig, args):
        factors = [context.cast(builder, args[side], sig.args[side], vector.dtype) for side in (0, 1)]
        found = []
        for (begin, kind), row, sums in zip(vector.parts, *(apart(builder, value) for value in args[2:]), strict=True):
            sides = [int(lane >= vector.width // 2) for lane in range(begin, begin + kind.count)]
            found.append(call_llvm("fmuladd", builder, _mix(builder, kind, factors, sides), row, sums))
        return together(builder, found)

    return vector(left, right, vector, total), codegen


@intrinsic(prefer_literal=True)
def lane(typing, vector, place):
    """Return the number in one lane, given as a literal."""
    place_value = place.literal_value

    def codegen(context, builder, sig, args):
        (row,) = apart(builder, args[0])
        return builder.extract_element(row, ir.IntType(32)(place_value))

    return vector.dtype(vector, place), codegen


@intrinsic
def relu_keep(typing, vector, low, high, scale):
    """Return scale * vector where it is positive (or NaN) and its lane's bit is set, else zero; up to 64 lanes.

    `low` has the bits of the first 32 lanes, `high` those of the others.
    """
    width = vector.width

    def codegen(context, builder, sig, args):
        (row,) = apart(builder, args[0])
        kind = row.type
        numbers = ir.VectorType(ir.IntType(32), width)
        words = [context.cast(builder, args[side], sig.args[side], types.uint32) for side in (1, 2)]
        spread = _splat(builder, numbers, *words[: 1 + (width > 32)])
        bit = ir.Constant(numbers, [1 << (lane % 32) for lane in range(width)])
        kept = builder.icmp_unsigned("!=", builder.and_(spread, bit), ir.Constant(numbers, None))
        zero = ir.Constant(kind, None)
        positive = builder.fcmp_unordered(">", row, zero)
        factor = _splat(builder, kind, context.cast(builder, args[3], sig.args[3], vector.dtype))
        return together(builder, [builder.select(builder.and_(kept, positive), builder.fmul(row, factor), zero)])

    return vector(vector, low, high, scale), codegen


@intrinsic
def keep_lanes(typing, vector, word):
    """Return a vector of 32 lanes with zeros where the lane's bit of a word is not set."""

    def codegen(context, builder, sig, args):
        bits = context.cast(builder, args[1], sig.args[1], types.uint32)
        kept = builder.bitcast(bits, ir.VectorType(ir.IntType(1), 32))
        (row,) = apart(builder, args[0])
        return together(builder, [builder.select(kept, row, ir.Constant(row.type, None))])

    return vector(vector, word), codegen


@intrinsic
def prefetch(typing, address, offset):
    """Ask for the cache line at an offset, to be read soon."""

    def codegen(context, builder, sig, args):
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        signature = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
        place = builder.bitcast(pointer(context, builder, sig, args), byte)
        builder.call(function, [place, number(0), number(3), number(1)])  # a read, of lasting use, of data
        return context.get_dummy_value()

    return types.void(address, offset), codegen


@part
def gather(begin, end, indices, weights, weighted, source, stride, column, token):
    """Return the sum of weight times row of `source`, the lanes from `column` on, over the entries begin to end."""
    total = zeros(source, token)
    for e in range(begin, end):
        weight = item(weights, e) if weighted else 1.0
        total = fma(weight, load(source, np.int64(item(indices, e)) * stride + column, token), total)
    return total
