"""A CSR matrix inside an npz file, spread over four arrays that must agree before any of them is believed."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop.graph._npy import Member, damage, open_member

__all__ = ["PARTS", "CsrMembers", "open_csr"]

PARTS = ("data", "indices", "indptr", "shape")


@final
@dataclass(frozen=True)
class CsrMembers:
    """Headers of ``data`` (e,), ``indices`` (e,) and ``indptr`` (rows + 1,) that fit together, and the true shape."""

    path: Path
    key: str
    data: Member
    indices: Member
    indptr: Member
    shape: tuple[int, int]

    @property
    def n_bytes(self) -> int:
        """What the three arrays will take."""
        return self.data.n_bytes + self.indices.n_bytes + self.indptr.n_bytes

    def read(self) -> sparse.csr_array:
        """Return the matrix, shape (rows, columns), once every pointer and index is known to be in range."""
        rows, columns = self.shape
        indptr = self.indptr.read().astype(np.int64, copy=False)
        entries = self.data.shape[0]
        if indptr[0] != 0 or indptr[-1] != entries or (indptr[1:] < indptr[:-1]).any():
            raise damage(self.path, f"an inconsistent '{self.key}.indptr', which must rise from 0 to {entries},")
        indices = self.indices.read()
        outside = (indices < 0) | (indices >= columns)
        if outside.any():
            bad = indices[outside][0]
            raise damage(self.path, f"the index {bad} in '{self.key}.indices', outside 0 to {columns - 1},")
        index_dtype = np.int32 if max(entries, rows, columns) <= np.iinfo(np.int32).max else np.int64
        data = self.data.read()
        parts: tuple[NDArray[np.generic], ...] = (
            data.astype(np.float32) if data.dtype == np.float16 else data,  # scipy has no half precision
            indices.astype(index_dtype, copy=False),
            indptr.astype(index_dtype, copy=False),
        )
        return sparse.csr_array(parts, shape=self.shape)


def open_csr(archive: zipfile.ZipFile, path: Path, key: str) -> CsrMembers | None:
    """Open the four arrays under `key` by their headers; None where the archive has none of them."""
    found = {part: open_member(archive, path, f"{key}.{part}") for part in PARTS}
    if not any(found.values()):
        return None
    members: dict[str, Member] = {}
    for part, member in found.items():
        if member is None:
            raise damage(path, f"no array under '{key}.{part}'")
        if member.pickled:
            raise damage(path, f"pickled objects under '{key}.{part}', which are never loaded,")
        allowed = "buif" if part == "data" else "iu"
        if len(member.shape) != 1 or member.dtype.kind not in allowed:
            raise damage(path, f"'{key}.{part}' of shape {member.shape} and dtype {member.dtype}")
        members[part] = member
    shape = _shape(members["shape"], path)
    rows, columns = shape
    entries = members["data"].shape[0]
    if members["indptr"].shape[0] != rows + 1:
        raise damage(path, f"{members['indptr'].shape[0]} pointers in '{key}.indptr' for {rows} rows")
    if members["indices"].shape[0] != entries:
        raise damage(path, f"{members['indices'].shape[0]} indices but {entries} values in '{key}'")
    if entries > rows * columns:
        raise damage(path, f"{entries} entries in a '{key}' of shape {shape}")
    return CsrMembers(path, key, members["data"], members["indices"], members["indptr"], shape)


def _shape(member: Member, path: Path) -> tuple[int, int]:
    if member.shape != (2,):
        raise damage(path, f"{member.key!r} of length {member.shape[0]} where two numbers belong")
    rows, columns = (int(size) for size in member.read())
    limit = np.iinfo(np.int32).max
    if not (0 <= rows <= limit and 0 <= columns <= limit):
        raise damage(path, f"the absurd size ({rows}, {columns}) under {member.key!r}")
    return rows, columns
