"""The arrays of a graph folder: npy files that are written piece by piece, digested on the way, and mapped to be read."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph.attributes import seal

HEADER = 128  # bytes before the numbers, the same for every shape, so that the shape can be written last
BLOCK = 2**20  # bytes that are digested together
_STEP = 2**26  # bytes that are read or copied at a time


@final
class Digest:
    r"""Digest of a stream of bytes, about as fast as memory, that tells of every change that nobody planned.

    Of every mebibyte, as 64-bit numbers x_j (zeros after the end), it takes

    .. math:: \sum_j x_j m_j \bmod 2^{64}, \qquad m_j \text{ odd}

    so that no change of one number, and almost none of several, goes unseen; and of these sums the SHA-256. SHA-256 of
    the bytes themselves would take longer than writing them.

    Examples
    --------
    >>> one, other = Digest(), Digest()
    >>> one.update(np.arange(6)), other.update(np.arange(4)), other.update(np.arange(4, 6))
    (None, None, None)
    >>> one.hexdigest() == other.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._rest = np.empty(0, dtype=np.uint8)
        self._hash = hashlib.sha256(b"pprop digest 1")
        self._length = 0

    def update(self, array: NDArray[Any]) -> None:
        """Take the bytes of an array, in C order."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._length += len(data)
        if len(self._rest):
            part, data = data[: BLOCK - len(self._rest)], data[BLOCK - len(self._rest) :]
            self._rest = np.concatenate([self._rest, part])
            if len(self._rest) < BLOCK:
                return
            self._take(self._rest)
        whole = len(data) - len(data) % BLOCK
        self._take(data[:whole])
        self._rest = data[whole:].copy()

    def _take(self, data: NDArray[np.uint8]) -> None:
        self._hash.update(self.sums(data))

    @staticmethod
    def sums(data: NDArray[np.uint8]) -> bytes:
        """Return the sums of whole mebibytes; several processes may make those of parts of one stream."""
        if not len(data):
            return b""
        numbers = np.frombuffer(data.tobytes() if data.ctypes.data % 8 else data, dtype="<u8")
        return (numbers.reshape(-1, BLOCK // 8) @ _multipliers()).astype("<u8").tobytes()

    def take_sums(self, sums: bytes) -> None:
        """Take the next mebibytes of the stream by their sums; all that came before were whole mebibytes, too."""
        self._hash.update(sums)
        self._length += len(sums) // 8 * BLOCK

    def hexdigest(self) -> str:
        """Return 32 hex digits."""
        end = self._hash.copy()
        padded = np.zeros(BLOCK, dtype=np.uint8)
        padded[: len(self._rest)] = self._rest
        end.update((padded.view("<u8") @ _multipliers()).astype("<u8").tobytes())
        end.update(str(self._length).encode())
        return end.hexdigest()[:32]


_kept: list[NDArray[np.uint64]] = []


def _multipliers() -> NDArray[np.uint64]:
    """The odd numbers m_j: splitmix64 of j, with the last bit set."""
    if not _kept:
        with np.errstate(over="ignore"):
            state = np.arange(1, BLOCK // 8 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        _kept.append(state ^ (state >> np.uint64(31)) | np.uint64(1))
    return _kept[0]


def npy_header(dtype: np.dtype[Any], shape: Sequence[int], *, by_columns: bool = False) -> bytes:
    """Return the first `HEADER` bytes of an npy file, whose numbers lie row by row or, in Fortran order, column by column.

    >>> npy_header(np.dtype("<i4"), (3,))[10:67]
    b"{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }"
    """
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': {by_columns}, 'shape': {tuple(shape)}, }}".encode("ascii")
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11) + b"\n"


@final
class ArrayWriter:
    """An npy file that grows row by row, its digest with it; the shape is filled in when it is closed.

    Parameters
    ----------
    path
        The file.
    dtype
        Of the numbers, written with the lowest byte first.
    width
        The shape of a row; () for a vector.
    rows
        None for a new file; else how many rows of an old one are kept, read once more for the digest.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> writer = ArrayWriter(Path(folder.name, "x.npy"), np.dtype(np.int32))
    >>> writer.write(np.arange(2)), writer.write(np.arange(3))
    (None, None)
    >>> writer.close()["shape"], np.load(Path(folder.name, "x.npy"))
    ([5], array([0, 1, 0, 1, 2], dtype=int32))
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, dtype: Any, width: Sequence[int] = (), rows: int | None = None) -> None:
        self.path, self.dtype, self.width = path, np.dtype(dtype).newbyteorder("<"), tuple(width)
        self.rows = 0
        self._digest = Digest()
        self._stream = path.open("wb" if rows is None else "r+b")
        if rows is None:
            self._stream.write(self._header())
            return
        self._stream.seek(HEADER)
        left = rows * self._row_bytes
        while left:
            part = np.fromfile(self._stream, dtype=np.uint8, count=min(left, _STEP))
            if not len(part):
                raise OSError(f"{str(path)!r} is shorter than it was")
            self._digest.update(part)
            left -= len(part)
        self._stream.truncate(HEADER + rows * self._row_bytes)
        self.rows = rows

    @property
    def _row_bytes(self) -> int:
        return math.prod(self.width) * self.dtype.itemsize

    def _header(self) -> bytes:
        return npy_header(self.dtype, (self.rows, *self.width))

    def write(self, array: NDArray[Any]) -> None:
        """Add rows, shape (rows, ...)."""
        part = np.ascontiguousarray(array, dtype=self.dtype)
        if part.size:
            self._stream.write(part.reshape(-1).view(np.uint8).data)
            self._digest.update(part)
        self.rows += len(part)

    def sync(self) -> None:
        """Bring what was written to the disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> dict[str, Any]:
        """Write the shape, bring all to the disk, and return what a manifest says of the array."""
        self._stream.seek(0)
        self._stream.write(self._header())
        self.sync()
        self._stream.close()
        shape = [self.rows, *self.width]
        return {"dtype": self.dtype.str, "shape": shape, "digest": self._digest.hexdigest()}

    def abandon(self) -> None:
        """Close the file as it is."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.abandon()


def write_array(path: Path, array: NDArray[Any]) -> dict[str, Any]:
    """Write a whole array and return what a manifest says of it."""
    with ArrayWriter(path, array.dtype, array.shape[1:]) as writer:
        for rows in blocks(len(array), math.prod(array.shape[1:]) * array.dtype.itemsize):
            writer.write(array[rows])
        return writer.close()


def blocks(rows: int, row_bytes: int, most: int = _STEP) -> Iterator[slice]:
    """Give the rows of an array in order, as many at a time as take `most` bytes.

    >>> list(blocks(5, 8, 16))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(most // max(row_bytes, 1), 1)
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


def map_array(path: Path, dtype: str, shape: Sequence[int]) -> NDArray[Any]:
    """Map the numbers of an npy file of `ArrayWriter` to be read; nothing is read yet."""
    if not math.prod(shape):  # an empty file cannot be mapped
        return seal(np.empty(tuple(shape), dtype=dtype))
    return np.memmap(path, dtype=dtype, mode="r", offset=HEADER, shape=tuple(shape))


@final
@dataclass(frozen=True, eq=False)
class Texts:
    """Texts one after another in mapped arrays: text i is the UTF-8 bytes from offset i to offset i + 1.

    Examples
    --------
    >>> texts = Texts(np.array([0, 1, 3]), np.frombuffer(b"abc", dtype=np.uint8))
    >>> len(texts), texts[1:], texts[np.array([1, 0])]
    (2, array(['bc'], dtype='<U2'), array(['bc', 'a'], dtype='<U2'))
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | NDArray[Any]) -> NDArray[np.str_]:
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        starts, ends = self.offsets[rows].tolist(), self.offsets[rows + 1].tolist()
        cells = [
            bytes(self.data[start:end]).decode("utf-8", "surrogatepass")
            for start, end in zip(starts, ends, strict=True)
        ]
        return np.asarray(cells, dtype=np.str_)

    def array(self) -> NDArray[np.str_]:
        """Return all texts as an array of numpy, in which each takes the room of the longest."""
        return self[:]

    @property
    def sound(self) -> bool:
        """Whether the offsets rise from 0 to the number of bytes. They are read once."""
        rising = all((np.diff(self.offsets[one.start : one.stop + 1]) >= 0).all() for one in blocks(len(self), 8))
        return rising and int(self.offsets[0]) == 0 and int(self.offsets[-1]) == len(self.data)

    @property
    def array_bytes(self) -> int:
        """What `array` takes at most: four bytes for a character, as many as the longest text has bytes."""
        longest = max(
            (int(np.diff(self.offsets[one.start : one.stop + 1]).max()) for one in blocks(len(self), 8)), default=0
        )
        return 4 * longest * len(self)


def write_texts(folder: Path, name: str, texts: Sequence[str] | NDArray[np.str_]) -> dict[str, dict[str, Any]]:
    """Write texts as the two arrays of `Texts`; return what a manifest says of them."""
    with (
        ArrayWriter(folder / f"{name}.offsets.npy", np.int64) as offsets,
        ArrayWriter(folder / f"{name}.bytes.npy", np.uint8) as data,
    ):
        offsets.write(np.zeros(1, dtype=np.int64))
        start = 0
        for rows in blocks(len(texts), 64):
            cells = [str(text).encode("utf-8", "surrogatepass") for text in cast("Any", texts)[rows]]
            ends = start + np.cumsum([len(cell) for cell in cells], dtype=np.int64)
            offsets.write(ends)
            data.write(np.frombuffer(b"".join(cells), dtype=np.uint8))
            start = int(ends[-1])
        return {f"{name}.offsets": offsets.close(), f"{name}.bytes": data.close()}
