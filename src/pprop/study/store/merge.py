"""Rows computed on different machines, or what is left of a damaged store, in one new store."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

from pprop._errors import FormatError, InputError
from pprop.study.cell import Cell
from pprop.study.experiment_folder import merge_experiments
from pprop.study.store.pack import Packed
from pprop.study.store.salvage import Salvage
from pprop.study.store.store import FILE, Store

_BATCH = 200  # rows in one transaction: one commit for each would wait for the disk each time


@final
@dataclass(frozen=True)
class Source:
    """What one folder gave.

    Attributes
    ----------
    folder
        Where it is.
    rows, new
        Rows read, and those of them that the new store did not have yet.
    conflicts
        Runs that were there with another result; the first one was kept.
    lost
        Rows that could not be read.
    certain
        Whether that is their number, or a lower bound.
    problem
        What is wrong with the folder's store or its experiment files, or None.
    """

    folder: Path
    rows: int
    new: int
    conflicts: tuple[str, ...]
    lost: int
    certain: bool
    problem: str | None


@final
@dataclass(frozen=True)
class Merged:
    """What a merge gave.

    Attributes
    ----------
    sources
        One for each folder.
    rows
        Rows of the new store.
    """

    sources: tuple[Source, ...]
    rows: int

    @property
    def sound(self) -> bool:
        """Whether every row was read and no two results disagreed."""
        return not any(source.conflicts or source.lost or source.problem for source in self.sources)


def merge_studies(folders: Sequence[Path], out: Path) -> Merged:
    """Write every sound row of some studies, folders or packed files, into the store of `out`, which may have rows.

    A run that two of them have with the same result is taken once. With different results it is a conflict: the first
    one stays, and the run is named. The user's experiment files are copied, too; of two that share a name and differ, the
    second gets another name. No source is changed.

    Examples
    --------
    >>> import tempfile
    >>> from pprop.study.store.row import example_row
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     here, there, out = (Path(folder) / name for name in ("here", "there", "out"))
    ...     for place, split in ((here, 5), (there, 6)):
    ...         with Store.open(place, create=True) as store:
    ...             added = store.add(example_row(split))
    ...     merged = merge_studies([here, there], out)
    >>> merged.rows, merged.sound
    (2, True)
    """
    if not folders:
        raise InputError("A merge needs the folder of at least one study.")
    # all of them are looked at before anything is written
    studies = [Packed(at) if Path(at).is_file() else Salvage(at) for at in folders]
    for folder in folders:
        if Path(folder).resolve() == Path(out).resolve():
            raise InputError(f"The study {str(folder)!r} cannot be merged into itself. Choose another --out.")
    with Store.open(out, create=True) as store:
        sources = tuple(_take(study, store, Path(out)) for study in studies)
        return Merged(sources, len(store.keys()))


def _take(study: Salvage | Packed, store: Store, out: Path) -> Source:
    wrong = merge_experiments(study.files, out)
    rows = new = 0
    conflicts: list[str] = []
    every = iter(study)
    while batch := list(islice(every, _BATCH)):
        rows += len(batch)
        try:
            new += store.add_all(batch)
        except InputError:  # a conflict somewhere in the batch: take its rows one by one to see where
            for row in batch:
                try:
                    new += store.add(row)
                except InputError:
                    cell, seeds = Cell.parse(row.cell), row.key.seeds
                    run = f"split {seeds.split}, initialisation {seeds.init}"
                    conflicts.append(f"{cell.model} on {cell.dataset} ({cell.config}), {run}")
    problem = " ".join(filter(None, (study.problem, *wrong))) or None
    return Source(study.folder, rows, new, tuple(conflicts), study.lost, study.certain, problem)


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
    >>> from pprop.study.store.pack import pack_study
    >>> from pprop.study.store.row import example_row
    >>> from pprop.study.store.store import Store
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
        problems: list[str] = []
        for source in merged.sources:
            if source.problem is not None:
                problems.append(f"{source.problem} {source.lost} rows are lost; 'pprop study merge' saves the others.")
            if source.conflicts:
                run, *others = source.conflicts
                more = f", and {len(others)} more" if others else ""
                problems.append(f"{source.folder} has another result than the files before it for {run}{more}.")
        if problems:
            raise FormatError(" ".join(problems))
        yield Path(name)
