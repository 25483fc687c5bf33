"""Tables of numbers per node on their way in and out: CSV, Parquet, and npy for numbers alone."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from pprop._errors import FormatError
from pprop.cli.output import Session
from pprop.cli.targets import new_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Column", "check_suffix", "print_table", "read_npy", "write_csv", "write_table"]

Column: TypeAlias = "list[Any] | NDArray[Any]"
FORMATS = (".csv", ".parquet")


def check_suffix(path: Path, allowed: Sequence[str] = FORMATS) -> None:
    """Refuse, before any work is done, an output file in a format that is not offered, or not installed.

    >>> check_suffix(Path("predictions.xlsx"))
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: --out must end in .csv or .parquet. Got 'predictions.xlsx' instead.
    """
    suffix = path.suffix.lower()
    if suffix not in allowed:
        choices = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise FormatError(f"--out must end in {choices}. Got {str(path)!r} instead.")
    if suffix == ".parquet":
        _parquet()


def write_table(path: Path, table: Mapping[str, Column], session: Session, *, force: bool) -> None:
    """Write named columns of equal length to a CSV or Parquet file."""
    with new_file(path, session, force=force) as stream:
        if path.suffix.lower() == ".parquet":
            arrow, parquet = _parquet()
            parquet.write_table(arrow.table(dict(table)), stream)
        else:
            write_csv(table, stream)


def write_csv(table: Mapping[str, Column], stream: IO[bytes]) -> None:
    """Write named columns as CSV in UTF-8; a float is written so that reading it gives the same float."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    _write_rows(table, text)
    text.flush()
    text.detach()


def print_table(table: Mapping[str, Column]) -> None:
    """Write named columns as CSV to standard output."""
    _write_rows(table, sys.stdout)


def _write_rows(table: Mapping[str, Column], stream: IO[str]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table)
    # numpy writes the shortest text that gives the same number in its own width: 0.1 for a float32, not 0.10000000149
    cells = [column if isinstance(column, list) else column.astype(str).tolist() for column in table.values()]
    writer.writerows(zip(*cells, strict=True))


def read_npy(path: Path) -> NDArray[np.generic]:
    """Read an npy file without unpickling, its size checked against its header before memory is taken."""
    import numpy as np

    try:
        return np.array(np.lib.format.open_memmap(path, mode="r"))
    except (ValueError, EOFError) as error:  # a header that lies, objects that would be unpickled, an empty file
        raise FormatError(f"The file {str(path)!r} is not a sound .npy file of numbers, as its suffix says.") from error


def _parquet() -> tuple[Any, Any]:
    from pprop._optional import require

    purpose = "Writing Parquet files"
    return (
        require("pyarrow", extra="parquet", purpose=purpose),
        require("pyarrow.parquet", extra="parquet", purpose=purpose),
    )
