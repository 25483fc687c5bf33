"""Which columns of a table become which features: a recipe that one can read, save as JSON, and apply to another table by name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import Advice, FormatError, Remedy, table_text
from pprop._validate import counted, describe, listed, nearest, reject, warn
from pprop.graph.features.column_recipe import (
    ColumnRecipe,
    beside_commas,
    decided_column,
    from_entry,
    plain_number,
    to_entry,
    wanted_column,
    wanted_kinds,
)
from pprop.graph.features.columns import is_list, read_column
from pprop.graph.features.encoders import Block, Encoder, NumberEncoder, TextEncoder
from pprop.graph.features.entries import Entry
from pprop.graph.features.kinds import decide
from pprop.graph.features.splits import HOLDS_FOLDS, HOLDS_PART, HOLDS_SPLIT, use_of_splits
from pprop.graph.files import is_array_file

Wanted = str | Sequence[str] | Mapping[str, str]

MOST_NAMED = 20  # columns in one sentence
MOST_DENSE_FLAGS = 100  # of categories together; with more of them the features are sparse
VERSION = 1
PANDAS_INDEX = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # as pandas writes an index without a name: no column


@final
@dataclass(frozen=True, repr=False)
class Recipe:
    """How columns become features, fitted on one table (`fit`) and applied to others by name (`encode`).

    The kind of each column is decided by the rules in `pprop.graph.features.kinds`, and encoded as `pprop.graph.features.encoders` says.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = {
    ...     "age": pa.array(["31", "27", "", "45", "38"]),
    ...     "team": pa.array(["red", "blue", "red", "red", "blue"]),
    ...     "phone": pa.array(["0301", "0302", "0405", "0406", "0407"]),
    ... }
    >>> recipe = Recipe.fit(table, typed=False)
    >>> print(recipe)
    age    number, 1 missing filled with 34.5
    team   category, 2 values
    phone  left out: looks like an identifier
    >>> recipe
    Recipe(4 features of 2 used and 1 unused column)
    >>> features, names = recipe.encode(table, typed=False)
    >>> names
    ('age', 'age is missing', 'team=blue', 'team=red')
    >>> features[2]
    array([34.5,  1. ,  0. ,  1. ], dtype=float32)
    """

    columns: tuple[ColumnRecipe, ...]
    others: tuple[str, ...] = ()  # of the same table: ids, labels, a split

    @classmethod
    def fit(
        cls,
        columns: Mapping[str, Any],
        *,
        typed: bool,
        wanted: Wanted = "auto",
        exclude: Collection[str] = (),
        title: Path | str = "the table",
        function: str = "Recipe.fit",
    ) -> Recipe:
        """Return the recipe of a table.

        Parameters
        ----------
        columns
            The columns by name, each a pyarrow array, chunked or not.
        typed
            Whether the columns have types of their own. If not (CSV), all are text, and text may spell a number.
        wanted
            "auto", "numbers" (every column of numbers as it is, nothing missing), a sequence of names (no other columns,
            and none of these is left out), or a mapping from names to kinds (the kinds of the others are decided).
        exclude
            Columns that are no features: ids, labels, a split.
        title, function
            What messages call the table and the function that the user called.

        Raises
        ------
        FormatError
            A column cannot be of the kind wanted; the message names a cell.
        InputError
            A name or kind is unknown.
        """
        present = [name for name in columns if name not in exclude]
        kinds = wanted_kinds(wanted, present, exclude, title, function)
        named = not isinstance(wanted, str | Mapping)
        order = [*kinds, *(name for name in present if name not in kinds)] if named else present
        made: list[ColumnRecipe] = []
        for name in order:
            if named and name not in kinds:
                made.append(ColumnRecipe(name, None, "not asked for"))
                continue
            column = read_column(name, columns[name], typed=typed, title=title, function=function)
            if wanted == "numbers":
                made.append(plain_number(column))
            elif name in kinds:
                made.append(wanted_column(column, kinds[name]))
            else:
                made.append(decided_column(column, decide(column)))
        if not typed and any(isinstance(one.encoder, NumberEncoder) and one.encoder.comma for one in made):
            for at, part in enumerate(made):
                if isinstance(part.encoder, NumberEncoder) and not part.encoder.comma and kinds.get(part.name) is None:
                    column = read_column(part.name, columns[part.name], typed=typed, title=title, function=function)
                    made[at] = beside_commas(column, part, wanted=named)
        for part in made if not named and wanted != "numbers" else ():  # an embedding that cannot be used is a loss
            given = columns[part.name]
            if part.encoder is None and kinds.get(part.name) != "unused" and is_list(given.type) and len(given):
                warnings.warn(f"The column {part.name!r} of {table_text(title)} is {part.summary}.", stacklevel=3)
        return cls(tuple(made), tuple(name for name in columns if name in exclude))

    def advise_of_splits(self, columns: Mapping[str, Any], *, typed: bool, title: Path | str) -> None:
        """Warn of columns that are left out because they hold a split, and say how it is used, in the words of Python."""
        held = [one for one in self.columns if one.reason in (HOLDS_SPLIT, HOLDS_FOLDS, HOLDS_PART)]
        if held:
            read = [read_column(one.name, columns[one.name], typed=typed, title=title) for one in held]
            names = f"column {held[0].name!r}"
            if len(held) > 1:
                names = f"columns {', '.join(repr(one.name) for one in held[:-1])} and {held[-1].name!r}"
            reasons = " or ".join(dict.fromkeys(one.reason for one in held))
            why = f"it {reasons}" if len(held) == 1 else f"each {reasons}"
            are = "is" if len(held) == 1 else "are"
            text = f"The {names} of {table_text(title)} {are} left out of the features: {why}."
            warn(
                Advice(
                    f"{text} {use_of_splits([*zip(read, (one.reason for one in held), strict=True)])}",
                    command_line=False,
                )
            )

    def encode(
        self,
        columns: Mapping[str, Any],
        *,
        typed: bool,
        exclude: Collection[str] = (),
        title: Path | str = "the table",
        function: str = "Recipe.encode",
    ) -> tuple[Block, tuple[str, ...]]:
        """Return the features of a table, shape (n, f), and their names; columns are found by name, in any order.

        The features are a dense float32 array, or a CSR matrix where there is text or more than 100 flags of categories.
        New categories and new missing values are counted in a warning.

        Raises
        ------
        FormatError
            Columns of the recipe are not in the table, the table has one that was not in the training, or a cell cannot
            be encoded; the message names all of them.
        """
        known = {*self.others, *(column.name for column in self.columns)}
        strange = [name for name in columns if name not in known and not PANDAS_INDEX.fullmatch(name)]
        new = [name for name in strange if name not in exclude]
        absent = [name for name in self.encoders if name not in columns]
        if absent:
            _complain_absent(absent, new, title, function)
        blocks: list[Block] = []
        for part in self.columns:
            if part.encoder is None:
                continue
            column = read_column(part.name, columns[part.name], typed=typed, title=title, function=function)
            if column.form == "other" or (column.form == "vector" and part.kind != "embedding"):
                column.complain(
                    f"a {part.kind}", 0, got=getattr(column.cells.type, "got", f"the type {column.cells.type}")
                )
            blocks.append(part.encoder.encode(column))
        if new:
            expected = "a table with the columns of the training"
            remedy = f"Leave {'it' if len(new) == 1 else 'them'} out, or train again."
            got = f"{table_text(title)} with {listed(new)}"
            reject("nodes", function, expected, got, remedy=remedy, error=FormatError)
        rows = len(next(iter(columns.values()), ()))
        return _joined(blocks, rows, self.n_features, self.is_sparse), self.feature_names

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as what JSON can hold: texts, numbers, lists and dictionaries."""
        columns = [to_entry(column) for column in self.columns]
        return {"version": VERSION, "columns": columns, "others": list(self.others)}

    @classmethod
    def from_json(cls, entry: object) -> Recipe:
        """Return the recipe that `to_json` wrote, trusting nothing in it.

        Raises
        ------
        FormatError
            The entry is not a recipe; the message says what is wrong in it.
        """
        given = Entry(entry, "the recipe").fields("version", "columns", "others")
        if given["version"].value != VERSION:
            given["version"].complain(f"{VERSION}, the version of recipes that this pprop reads,")
        columns = [from_entry(column) for column in given["columns"].items()]
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            given["columns"].complain("a list of distinct columns", f"{describe(max(names, key=names.count))} twice")
        return cls(tuple(columns), tuple(other.text() for other in given["others"].items()))

    @property
    def encoders(self) -> dict[str, Encoder]:
        """The encoders of the columns that are used, by name."""
        return {column.name: column.encoder for column in self.columns if column.encoder is not None}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the f features."""
        names = [feature for name, encoder in self.encoders.items() for feature in encoder.feature_names(name)]
        return tuple(name.replace("\0", "\\0") for name in names)  # numpy's text cannot end in a null character

    @property
    def n_features(self) -> int:
        """Number f of features."""
        return len(self.feature_names)

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Which features are quantities to be standardised (numbers and dates, not flags or words), shape (f,)."""
        marks = [
            at < encoder.n_measures
            for name, encoder in self.encoders.items()
            for at in range(len(encoder.feature_names(name)))
        ]
        return np.array(marks, dtype=bool)

    @property
    def is_sparse(self) -> bool:
        """Whether `encode` gives a CSR matrix."""
        sparse_ones = [encoder for encoder in self.encoders.values() if encoder.is_sparse]
        flags = sum(len(encoder.feature_names("")) for encoder in sparse_ones)
        return flags > MOST_DENSE_FLAGS or any(isinstance(encoder, TextEncoder) for encoder in sparse_ones)

    @property
    def used(self) -> dict[str, str]:
        """What is made of each column that is used, for people."""
        return {column.name: column.summary for column in self.columns if column.encoder is not None}

    @property
    def unused(self) -> dict[str, str]:
        """Why each of the other columns is left out, for people."""
        return {column.name: column.summary for column in self.columns if column.encoder is None}

    def __repr__(self) -> str:
        used, features = len(self.encoders), counted(self.n_features, "feature")
        return f"Recipe({features} of {used} used and {counted(len(self.columns) - used, 'unused column')})"

    def __str__(self) -> str:
        names = [_shown(column.name) for column in self.columns]
        width = max(map(len, names), default=0)
        pairs = zip(names, self.columns, strict=True)
        return "\n".join(f"{name:{width}}  {column.summary}" for name, column in pairs)


def _complain_absent(names: list[str], new: list[str], title: Path | str, function: str) -> NoReturn:
    """Refuse a table without these columns of the recipe, some of which may be files; `new` are unknown to the recipe."""
    files, columns = ([name for name in names if is_array_file(name) is kind] for kind in (True, False))
    given, others = ([name for name in new if is_array_file(name) is kind] for kind in (True, False))
    words: list[str] = []
    if columns:
        alike = nearest(columns[0], others) if len(columns) == 1 else ""
        words.append(alike or (f"The recipe does not know its {listed(others, MOST_NAMED)}." if others else ""))
    settings: dict[str, object] = {}
    if files:
        what = "A file of this name" if len(files) == 1 else "Files of these names"
        words.append(f"{what} must have a row for each row of {table_text(title)}.")
        if given:
            words.append(
                f"Files are found by their names: rename {listed(given, MOST_NAMED)} if the content is the same."
            )
        paths = [f".../{name}" for name in files]
        settings["features"] = paths[0] if len(paths) == 1 else paths
    one = len(names) == 1
    expected = f"a table with the column{'' if one else 's'} {listed(names, MOST_NAMED)}, as in the training"
    got = f"{table_text(title)} without {'it' if one else 'them'}"
    if files and given:
        got += f", and with the file{'' if len(given) == 1 else 's'} {listed(given, MOST_NAMED)},"
    what_to_do = " ".join(filter(None, words))
    remedy = Remedy(what_to_do, settings=settings) if settings else what_to_do
    reject("nodes", function, expected, got, remedy=remedy, error=FormatError)


def _shown(name: str) -> str:
    """Return a name as it is if it is seen as it is, else in quotes: it may be empty, or break the line."""
    return name if name.isprintable() and name.strip() == name and name else repr(name)


def _joined(blocks: list[Block], rows: int, width: int, as_sparse: bool) -> Block:
    if as_sparse:
        parts = [block if sparse.issparse(block) else sparse.csr_array(block) for block in blocks]
        return sparse.csr_array(sparse.hstack(parts, format="csr", dtype=np.float32))
    features = np.empty((rows, width), dtype=np.float32)
    start = 0
    for block in blocks:
        dense = block.toarray() if isinstance(block, sparse.csr_array) else block
        features[:, start : start + dense.shape[1]] = dense
        start += dense.shape[1]
    return features
