"""Rows of numbers in a file, read in order by ordinary reads into memory that is used again.

A mapped file is read page by page as it is touched, and the system keeps what it likes. Here whole blocks are read, past
the system's cache where the file system can (O_DIRECT), so that a file may be much larger than memory, a read costs next
to no processor time, and what the process holds is known. Where the file system cannot, pages are given back when read.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError

_PAGE = 4096  # what direct reads are aligned to
_DIRECT = getattr(os, "O_DIRECT", 0)
_CHECKED = 4096  # bytes at both ends of a mapped array that the file must still have
_SAMPLE = 2**28  # bytes read to measure a disk
Task = TypeVar("Task")
Found = TypeVar("Found")


@final
class Buffer:
    """Memory for one read, on a page border and with room for the pages that a read begins and ends in.

    Examples
    --------
    >>> Buffer(1000).room
    1000
    """

    def __init__(self, room: int) -> None:
        self.room = room
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # which counts as memory of this process
        self.memory = mmap.mmap(-1, -(-room // _PAGE) * _PAGE + 2 * _PAGE, flags=private)


@final
class StoredRows:
    """A C-contiguous array of one or two dimensions, in a mapped file or in memory, read by rows.

    An array in memory is not copied. Of a mapped one, or a contiguous part of it, the file is found and opened, and must
    still have the numbers of the mapping at both ends.

    Parameters
    ----------
    array
        The array; other layouts than C are read through numpy.
    what
        What it is, for messages.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(10))
    ...     stored = StoredRows(np.load(f"{folder}/x.npy", mmap_mode="r"), "the numbers")
    ...     found = stored.in_file, stored.read(3, 6, Buffer(24)).tolist()
    ...     stored.close()
    >>> found
    (True, [3, 4, 5])
    """

    def __init__(self, array: NDArray[Any], what: str) -> None:
        self.array, self.what = array, what
        self.row_bytes = array.dtype.itemsize * (array.shape[1] if array.ndim == 2 else 1)
        self.bytes_read = 0
        self._file: int | None = None
        self._direct = False
        place = _place(array)
        if place is not None:
            self._path, self._offset = place
            self._open()

    @property
    def identity(self) -> list[object] | None:
        """What tells the file and its state from others: path, size and time of its last change; None in memory."""
        if self._file is None:
            return None
        about = os.fstat(self._file)
        return [os.path.abspath(self._path), self._offset, about.st_size, about.st_mtime_ns]

    @property
    def in_file(self) -> bool:
        """Whether rows are read from a file."""
        return self._file is not None

    def read(self, first: int, last: int, buffer: Buffer) -> NDArray[Any]:
        """Return the rows `first` to `last`, in `buffer` or where they lie; until the next read into this buffer."""
        if self._file is None:
            return self.array[first:last]
        size = (last - first) * self.row_bytes
        data = self._bytes(self._offset + first * self.row_bytes, size, buffer)
        return data.view(self.array.dtype).reshape((last - first, *self.array.shape[1:]))

    def speed(self) -> float | None:
        """Return the bytes that a second of reading gives, measured on at most 256 MiB; None for an array in memory."""
        if self._file is None:
            return None
        size = min(self.array.nbytes, _SAMPLE) // _PAGE * _PAGE
        if size == 0:
            return None
        begin, step, buffer = (self.array.nbytes - size) // 2, min(size, 2**25), Buffer(min(size, 2**25))
        self._forget(self._offset + begin, size)
        started, known = time.perf_counter(), self.bytes_read
        for at in range(begin, begin + size - step + 1, step):
            self._bytes(self._offset + at, step, buffer)
        done, self.bytes_read = self.bytes_read - known, known
        return done / (time.perf_counter() - started)

    def close(self) -> None:
        """Close the file; mapped and other arrays stay as they are."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> None:
        path, array = self._path, self.array
        try:
            self._file = os.open(path, os.O_RDONLY | _DIRECT)
            self._direct = _DIRECT != 0
        except OSError as error:  # a file system in memory, or one over a network
            if error.errno != errno.EINVAL:
                raise
            self._file = os.open(path, os.O_RDONLY)
        size = os.fstat(self._file).st_size
        if size < self._offset + array.nbytes:
            self._changed(f"it has {size:,} bytes, and {self._offset + array.nbytes:,} were mapped")
        flat, few = array.reshape(-1).view(np.uint8), min(_CHECKED, array.nbytes)
        for begin in {0, array.nbytes - few}:
            if not np.array_equal(self._bytes(self._offset + begin, few, Buffer(few)), flat[begin : begin + few]):
                self._changed("its numbers are not those that were mapped")
        self.bytes_read = 0

    def _bytes(self, offset: int, size: int, buffer: Buffer) -> NDArray[np.uint8]:
        assert self._file is not None
        assert size <= buffer.room
        begin = offset // _PAGE * _PAGE
        wanted, length = offset + size - begin, -(-(offset + size - begin) // _PAGE) * _PAGE
        view, done = memoryview(buffer.memory), 0
        while done < wanted:
            try:
                # after a short read, which may end anywhere, on from the last whole page
                at = done // _PAGE * _PAGE
                got = os.preadv(self._file, [view[at:length]], begin + at)
            except OSError as error:
                if not self._direct or error.errno != errno.EINVAL:
                    raise
                self.close()  # the file system takes the flag and not the reads
                self._file, self._direct = os.open(self._path, os.O_RDONLY), False
                continue
            if at + got <= done:
                self._changed(f"it ends after {begin + done:,} bytes")
            done = at + got
        if not self._direct:
            self._forget(begin, length)
        self.bytes_read += size
        return np.frombuffer(buffer.memory, np.uint8, size, offset - begin)

    def _forget(self, offset: int, size: int) -> None:
        """Let the system give back the pages that it keeps of the file; some systems cannot be told."""
        if self._file is not None and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, offset, size, os.POSIX_FADV_DONTNEED)

    def _changed(self, how: str) -> None:
        self.close()
        raise FormatError(
            f"The file '{self._path}' of {self.what} has changed since it was opened: {how}. Open it again."
        )


def ahead(
    read: Callable[[Task, int], Found], tasks: Iterable[Task], pool: ThreadPoolExecutor
) -> Generator[Found, None, None]:
    """Yield read(task, 0), read(task, 1), read(task, 0), ...: each is read while the one before is used.

    The second argument says which of two buffers to read into.

    Examples
    --------
    >>> with ThreadPoolExecutor(1) as pool:
    ...     list(ahead(lambda task, slot: (task, slot), "abc", pool))
    [('a', 0), ('b', 1), ('c', 0)]
    """
    waiting: Future[Found] | None = None
    for number, task in enumerate(tasks):
        coming = pool.submit(read, task, number % 2)
        if waiting is not None:
            yield waiting.result()
        waiting = coming
    if waiting is not None:
        yield waiting.result()


def _place(array: NDArray[Any]) -> tuple[str, int] | None:
    """Return the file that an array is mapped from, and where in it the array begins; None for any other array."""
    root: Any = array
    while isinstance(root, np.ndarray) and not isinstance(root.base, mmap.mmap):
        root = root.base
    if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c" or not array.size:
        return None
    offset = int(root.offset) + (array.ctypes.data - root.ctypes.data)
    if not array.flags.c_contiguous or not array.dtype.isnative or offset % array.dtype.itemsize:
        return None
    return str(root.filename), offset
