"""A study by its folder, by a packed file, or by a folder of packed files: read all the same."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from pprop._errors import FormatError
from pprop.study.merge import Source, merge_studies
from pprop.study.store import FILE

__all__ = ["packs_of", "study_folder"]


def packs_of(at: Path) -> list[Path]:
    """Return the packed files that stand for a study: the file itself, or those in a folder that has no store.

    Examples
    --------
    >>> packs_of(Path("no study"))
    []
    """
    at = Path(at)
    if at.is_file():
        return [at]
    return [] if (at / FILE).exists() else sorted(at.glob("*.pack"))


@contextmanager
def study_folder(at: Path) -> Generator[Path]:
    """Give the folder of a study to be read; packed files are unpacked into one that is removed afterwards.

    A study's own folder is given as it is, and so is one that holds nothing: who opens its store says so.

    Raises
    ------
    FormatError
        A packed file is damaged, or two have different results for one run.

    Examples
    --------
    >>> from pprop.study.archive import pack_study
    >>> from pprop.study.row_codec import example_row
    >>> from pprop.study.store import Store
    >>> with tempfile.TemporaryDirectory() as name:
    ...     with Store.open(Path(name) / "study", create=True) as store:
    ...         added, packed = store.add(example_row(5)), pack_study(store, Path(name) / "study.pack")
    ...     with study_folder(Path(name)) as folder, Store.open(folder) as store:
    ...         len(store.rows())
    1
    """
    packs = packs_of(at)
    if not packs:
        yield Path(at)
        return
    with tempfile.TemporaryDirectory(prefix="pprop-study-") as name:
        merged = merge_studies(packs, Path(name))
        if not merged.sound:
            raise FormatError(" ".join(_problems(merged.sources)))
        yield Path(name)


def _problems(sources: tuple[Source, ...]) -> Iterator[str]:
    for source in sources:
        if source.problem is not None:
            yield f"{source.problem} {source.lost} rows are lost; 'pprop study merge' saves the others."
        for conflict in source.conflicts[:1]:
            more = f", and {len(source.conflicts) - 1} more" if len(source.conflicts) > 1 else ""
            yield f"{source.folder} has another result than the files before it for {conflict}{more}."
