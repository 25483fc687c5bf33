"""Which columns of a table become which features: a recipe that one can read, save as JSON, and apply to another table by name."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import FormatError
from pprop._validate import check_sequence, counted, describe, reject
from pprop.graph.columns import Column, read_column
from pprop.graph.encoders import ENCODERS, Block, DateEncoder, Encoder, NumberEncoder, TextEncoder
from pprop.graph.entries import Entry, read_encoder
from pprop.graph.kinds import KINDS, Decision, Kind, decide, decide_date

Wanted = str | Sequence[str] | Mapping[str, str]

MOST_DENSE_FLAGS = 100  # of categories together; with more of them the features are sparse
NAMES_SHOWN = 5
VERSION = 1


@final
@dataclass(frozen=True)
class ColumnRecipe:
    """What becomes of one column: its fitted encoder, or the reason why it is left out."""

    name: str
    encoder: Encoder | None
    reason: str = ""

    @property
    def kind(self) -> Kind:
        """Kind of the column: "number", "boolean", "category", "date", "text" or "unused"."""
        return "unused" if self.encoder is None else self.encoder.kind

    @property
    def summary(self) -> str:
        """What becomes of it, for people."""
        return f"left out: {self.reason}" if self.encoder is None else self.encoder.summary


@final
@dataclass(frozen=True, repr=False)
class Recipe:
    """How columns become features, fitted on one table (`fit`) and applied to others by name (`encode`).

    The kind of each column is decided by the rules in `pprop.graph.kinds`, and encoded as `pprop.graph.encoders` says.

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

    @classmethod
    def fit(
        cls,
        columns: Mapping[str, Any],
        *,
        typed: bool,
        wanted: Wanted = "auto",
        exclude: Collection[str] = (),
        title: str = "the table",
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
        kinds = _kinds(wanted, present, exclude, title, function)
        named = not isinstance(wanted, str | Mapping)
        order = [*kinds, *(name for name in present if name not in kinds)] if named else present
        made: list[ColumnRecipe] = []
        for name in order:
            if named and name not in kinds:
                made.append(ColumnRecipe(name, None, "not asked for"))
                continue
            column = read_column(name, columns[name], typed=typed, title=title, function=function)
            if wanted == "numbers":
                made.append(_plain_number(column))
            elif name in kinds:
                made.append(_wanted_column(column, kinds[name]))
            else:
                made.append(_decided_column(column, decide(column)))
        return cls(tuple(made))

    def encode(
        self,
        columns: Mapping[str, Any],
        *,
        typed: bool,
        exclude: Collection[str] = (),
        title: str = "the table",
        function: str = "Recipe.encode",
    ) -> tuple[Block, tuple[str, ...]]:
        """Return the features of a table, shape (n, f), and their names; columns are found by name, in any order.

        The features are a dense float32 array, or a CSR matrix where there is text or more than 100 flags of categories.
        A column that is not in the recipe is reported in a warning, as are new categories and new missing values.

        Raises
        ------
        FormatError
            A column of the recipe is not in the table, or a cell cannot be encoded; the message names it.
        """
        known = {column.name for column in self.columns}
        new = [name for name in columns if name not in known and name not in exclude]
        blocks: list[Block] = []
        for part in self.columns:
            if part.encoder is None:
                continue
            if part.name not in columns:
                _complain_absent(part.name, new, title, function)
            column = read_column(part.name, columns[part.name], typed=typed, title=title, function=function)
            if column.form == "other":
                column.complain(f"a {part.kind}", 0, got=f"the type {column.cells.type}")
            blocks.append(part.encoder.encode(column))
        if new:
            message = (
                f"{_listed(new)} of {title} {'was' if len(new) == 1 else 'were'} not in the training and not used."
            )
            warnings.warn(message, UserWarning, stacklevel=3)
        rows = len(next(iter(columns.values()), ()))
        return _joined(blocks, rows, self.n_features, self.is_sparse), self.feature_names

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as what JSON can hold: texts, numbers, lists and dictionaries."""
        return {"version": VERSION, "columns": [_to_entry(column) for column in self.columns]}

    @classmethod
    def from_json(cls, entry: object) -> Recipe:
        """Return the recipe that `to_json` wrote, trusting nothing in it.

        Raises
        ------
        FormatError
            The entry is not a recipe; the message says what is wrong in it.
        """
        given = Entry(entry, "the recipe").fields("version", "columns")
        if given["version"].value != VERSION:
            given["version"].complain(f"{VERSION}, the version of recipes that this pprop reads,")
        columns = [_from_entry(column) for column in given["columns"].items()]
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            given["columns"].complain("a list of distinct columns", f"{describe(max(names, key=names.count))} twice")
        return cls(tuple(columns))

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
            encoder.measures and not at
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


def _to_entry(column: ColumnRecipe) -> dict[str, Any]:
    if column.encoder is None:
        return {"name": column.name, "kind": "unused", "reason": column.reason}
    return {"name": column.name, "kind": column.kind, "parameters": column.encoder.parameters}


def _from_entry(entry: Entry) -> ColumnRecipe:
    kind = entry.member("kind").choice(KINDS)
    given = entry.fields("name", "kind", "reason" if kind == "unused" else "parameters")
    name = given["name"].text()
    if kind == "unused":
        if not given["reason"].text():
            given["reason"].complain("a reason")
        return ColumnRecipe(name, None, given["reason"].text())
    return ColumnRecipe(name, read_encoder(kind, given["parameters"]))


def _kinds(
    wanted: object, present: list[str], exclude: Collection[str], title: str, function: str
) -> dict[str, Kind | None]:
    """Return the names that are wanted, each with its kind if that is said."""
    expected = 'feature columns: "auto", "numbers", a sequence of column names, or a mapping from names to kinds'
    if isinstance(wanted, str):
        if wanted not in ("auto", "numbers"):
            reject("feature_columns", function, expected, describe(wanted))
        return {}
    given: list[tuple[object, object]]
    if isinstance(wanted, Mapping):
        given = list(cast("Mapping[object, object]", wanted).items())
    else:
        given = [(name, None) for name in check_sequence(wanted, "feature_columns", function, expected)]
    kinds: dict[str, Kind | None] = {}
    for name, kind in given:
        if name in exclude and isinstance(name, str):
            if kind == "unused":
                continue
            got = f"{describe(name)}, which holds ids, labels or a split,"
            reject("feature_columns", function, f"columns of {title} that are features", got)
        if not isinstance(name, str) or name not in present:
            hint = _nearest(str(name), present)
            remedy = f"{hint} Its columns are {_listed(present, 20)}.".strip()
            reject("feature_columns", function, f"names of columns of {title}", describe(name), remedy=remedy)
        if name in kinds:
            reject("feature_columns", function, "distinct column names", f"{describe(name)} more than once")
        if kind is not None and kind not in KINDS:
            hint = _nearest(str(kind), KINDS)
            choices = ", ".join(KINDS)
            reject(
                "feature_columns",
                function,
                f"kinds of columns ({choices})",
                f"{describe(kind)} for {name!r}",
                remedy=hint,
            )
        kinds[name] = next((one for one in KINDS if one == kind), None)
    return kinds


def _decided_column(column: Column, decision: Decision) -> ColumnRecipe:
    match decision.kind:
        case "unused":
            return ColumnRecipe(column.name, None, decision.reason)
        case "date":
            return ColumnRecipe(column.name, DateEncoder.fit(column, decision.order))
        case "number":
            return ColumnRecipe(column.name, NumberEncoder.fit(column, decision.comma))
        case "text":
            try:
                return ColumnRecipe(column.name, TextEncoder.fit(column, 2))
            except FormatError:
                return ColumnRecipe(column.name, None, "text of which no word occurs in two rows")
        case kind:
            return ColumnRecipe(column.name, ENCODERS[kind].fit(column))


def _wanted_column(column: Column, kind: Kind | None) -> ColumnRecipe:
    """Return the recipe of a column that is named; the kind is decided if it is None."""
    if kind == "unused":
        return ColumnRecipe(column.name, None, "as asked for")
    if column.form == "other":
        _complain_unusable(column, f"has the type {column.cells.type}")
    if not column.n_present:
        _complain_unusable(column, "all values are missing")
    match kind:
        case None:
            decision = decide(column, wanted=True)
        case "date":
            decision = decide_date(column) or Decision("date")
        case "number":
            comma = column.form == "text" and decide(column, wanted=True).comma
            decision = Decision("number", comma=comma)
        case _:
            decision = Decision(kind)
    if decision.kind == "unused":
        _complain_unusable(column, decision.reason)
    made = _decided_column(column, decision)
    # words that never recur are better than nothing where text is asked for
    return ColumnRecipe(column.name, TextEncoder.fit(column)) if made.encoder is None else made


def _plain_number(column: Column) -> ColumnRecipe:
    """Return a number as version 0.1 took it: as it is, with nothing missing. Numbers among text are an error."""
    _, wrong = column.numbers()
    spelled = column.form in ("number", "boolean") or (column.form == "text" and not column.typed)
    if not spelled or not column.n_present or int(wrong.sum()) == column.n_present:
        return ColumnRecipe(column.name, None, "not a column of numbers")
    encoder = NumberEncoder(None)
    encoder.encode(column)
    return ColumnRecipe(column.name, encoder)


def _complain_unusable(column: Column, reason: str) -> NoReturn:
    got = f"{column.name!r}, a column of {column.title} that cannot be used ({reason}),"
    reject("feature_columns", column.function, "columns that can become features", got, error=FormatError)


def _complain_absent(name: str, new: list[str], title: str, function: str) -> NoReturn:
    remedy = _nearest(name, new) or (f"The recipe does not know its {_listed(new)}." if new else "")
    expected = f"a table with the column {name!r}, as in the training"
    reject("nodes", function, expected, f"{title} without it", remedy=remedy, error=FormatError)


def _shown(name: str) -> str:
    """Return a name as it is if it is seen as it is, else in quotes: it may be empty, or break the line."""
    return name if name.isprintable() and name.strip() == name and name else repr(name)


def _nearest(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else ""


def _listed(names: Sequence[str], most: int = NAMES_SHOWN) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


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
