"""Counter-based random bits on the GPU, for the definition in ``docs/randomness.md``.

Philox costs about 90 integer instructions, against 64 fused multiply-adds for an entry of the first layer. The trainer
therefore draws 32 decisions of an entry at once and keeps them (see `planes`); the single operators draw as they go.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

from pprop.kernels.triton_gpu._jit import INTERPRETED, device, kernel

__all__ = ["drawn_word", "keep_word", "loop_end", "lowest_one", "philox", "words_kernel"]


@device
def philox(k0, k1, c0, c1, c2, c3):
    """Philox4x32-10 on uint32 tensors or scalars that broadcast together."""
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, 0xD2511F53), tl.mul(c0, 0xD2511F53, sanitize_overflow=False)
        high1, low1 = tl.umulhi(c2, 0xCD9E8D57), tl.mul(c2, 0xCD9E8D57, sanitize_overflow=False)
        c0 = high1 ^ c1 ^ k0
        c2 = high0 ^ c3 ^ k1
        c1 = low1
        c3 = low0
        k0 = tl.add(k0, 0x9E3779B9, sanitize_overflow=False)
        k1 = tl.add(k1, 0xBB67AE85, sanitize_overflow=False)
    return c0, c1, c2, c3


@device
def drawn_word(seed, stream, first, second, block, threshold, digits):
    """Return decisions 32 * block to 32 * block + 31 of each site, as uint32: bit t is one where entry t is kept.

    `first` and `second` are uint32 tensors that broadcast together; everything else is a scalar. The digits are read
    from the least significant on, which is from the last word to the first; one call of Philox makes four words.
    """
    k0 = (seed & 0xFFFFFFFF).to(tl.uint32)
    k1 = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    c0 = first | (second & 0)  # of the common shape
    c1 = second | (first & 0)
    c2 = (c0 & 0) | stream.to(tl.uint32)
    begin = block.to(tl.int64) * digits
    call = (begin + digits - 1) >> 2
    keep = (c0 & 0) | 0xFFFFFFFF
    while call >= (begin >> 2):
        words = philox(k0, k1, c0, c1, c2, (c0 & 0) | call.to(tl.uint32))
        for back in tl.static_range(4):
            word, digit = words[3 - back], (call * 4 - begin).to(tl.int32) + (3 - back)
            inside = (digit >= 0) & (digit < digits)  # whether this word is one of the decisions' digits
            one = (threshold >> tl.where(inside, digits - 1 - digit, 0)) & 1
            keep = tl.where(inside, tl.where(one == 1, word & keep, word | keep), keep)
        call -= 1
    return keep


@device
def _same(count):
    return count


loop_end: Any = _same
"""What kernels pass the end of a range through, for the interpreter's sake."""
keep_word: Any = drawn_word
"""What kernels call: `drawn_word`, or, interpreted, its equal in numpy. Triton's interpreter takes 25 ms for a word."""
if INTERPRETED:
    from pprop.kernels.triton_gpu.interpreted import keep_word, loop_end


@device
def lowest_one(word):
    """Return the lowest one of int32 words, alone in its word, and its place: the exponent of that power of two."""
    alone = word & -word
    return alone, ((alone.to(tl.float32).to(tl.int32, bitcast=True) >> 23) & 255) - 127


@kernel("stream", "threshold", "digits", "count")
def words_kernel(seeds, stream, first, second, block, threshold, digits, out, count, B: tl.constexpr):
    """out[k] = the keep word of a site of its own for every k; for tests."""
    k = tl.program_id(0)
    lane = tl.arange(0, B)
    seed = tl.load(seeds + k)
    one = tl.load(first + k + lane * 0).to(tl.uint32)
    two = tl.load(second + k + lane * 0).to(tl.uint32)
    word = drawn_word(seed, stream.to(tl.int32), one, two, tl.load(block + k), threshold, digits)
    tl.store(out + k * B + lane, word.to(tl.int64), mask=lane < count)
