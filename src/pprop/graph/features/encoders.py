"""How the cells of one column become features, one encoder for each kind of column. An encoder is data: fitted numbers and words.

=========  =============================================================  ==================================================
kind       features                                                       missing cells
=========  =============================================================  ==================================================
number     the number                                                     the median, and a flag "NAME is missing"
boolean    0 or 1                                                         0.5, and a flag
date       days since 1970-01-01 (UTC), with the time as a fraction       the median, and a flag
category   a flag "NAME=value" for each value, sorted; of more than 50,   a flag
           the most frequent and those of ten cells or more, at most
           500, and "NAME=other values" for the rest
embedding  "NAME[0]" to "NAME[f-1]", the numbers of a list of length f    the medians, and a flag
text       "NAME: word", tf-idf of at most 5,000 lower-case words that    no words
           occur in two cells or more; a row has length 1
=========  =============================================================  ==================================================

The flag is there only if a cell was missing when the encoder was fitted. Where one is missing later without a flag, and
where a category is new, the cells are counted in a warning; the former are filled, the latter have no flag set.
"""

from __future__ import annotations

import datetime as dt
import warnings
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, ClassVar, Self, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import table_text
from pprop._validate import counted, describe
from pprop.graph.features.columns import DAY_PATTERNS, LARGEST, Column, DayOrder, Parsed
from pprop.graph.features.kinds import Kind, unfit

Block = NDArray[np.float32] | sparse.csr_array[np.float32]  # shape: (n, features of the column)

MOST_VALUES = 50
MOST_CODES, FREQUENT = 500, 10  # a value that is among so many and has so many cells has a flag, too
MOST_WORDS = 5000
WORD = r"\w+"
EXAMPLES = 3  # in one warning


class Encoder(ABC):
    """The features of one column. `missing` counts the cells that were missing when it was fitted."""

    kind: ClassVar[Kind]
    missing: int

    @classmethod
    @abstractmethod
    def fit(cls, column: Column) -> Self:
        """Return the encoder of a column, or raise FormatError with the cell that cannot be of this kind."""

    @abstractmethod
    def encode(self, column: Column) -> Block:
        """Return the features of a column, shape (n, f)."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What is done, for people."""

    def feature_names(self, name: str) -> list[str]:
        """Return the names of the f features of a column called `name`: by default itself, and whether it was missing."""
        return _with_flag([name], name, self.missing)

    @property
    def parameters(self) -> dict[str, Any]:
        """What was fitted, as JSON holds it."""
        fitted: dict[str, Any] = asdict(cast("Any", self))
        return {name: [*value] if isinstance(value, tuple) else value for name, value in fitted.items()}

    @property
    def n_measures(self) -> int:
        """How many features, the first ones, are quantities on a scale, to be standardised."""
        return 0

    @property
    def is_sparse(self) -> bool:
        """Whether most of the features of a row are zero."""
        return False


@final
@dataclass(frozen=True)
class NumberEncoder(Encoder):
    """A number as it is. Without a `fill` a missing cell is an error."""

    kind = "number"
    fill: float | None
    missing: int = 0
    comma: bool = False  # text may have a decimal comma
    flags: bool = False  # it was 0 and 1 alone, which truth values say as well

    @classmethod
    def fit(cls, column: Column, comma: bool = False) -> NumberEncoder:
        values = _checked(column, column.numbers(comma=comma), "a number")
        known = values[~np.isnan(values)]
        return cls(float(np.median(known)), len(values) - len(known), comma, bool(np.isin(known, (0, 1)).all()))

    def encode(self, column: Column) -> Block:
        if column.form == "boolean" and not self.flags:  # the name is the same, the meaning is not
            column.complain("a number, as in the training,", 0, got="the type bool")
        values = _checked(column, column.numbers(comma=self.comma), "a number")
        if self.fill is None and np.isnan(values).any():
            column.complain("a number", int(np.flatnonzero(np.isnan(values))[0]), got="a missing value")
        return _filled(column, values, self.fill or 0.0, self.missing, f"{self.fill:g}" if self.fill else "0")

    @property
    def n_measures(self) -> int:
        return 1

    @property
    def summary(self) -> str:
        filled = f", {self.missing} missing filled with {self.fill:g}" if self.missing else ""
        return "number" + (", decimal comma" if self.comma else "") + filled


@final
@dataclass(frozen=True)
class BooleanEncoder(Encoder):
    """0 for false, 1 for true."""

    kind = "boolean"
    missing: int = 0

    @classmethod
    def fit(cls, column: Column) -> BooleanEncoder:
        return cls(int(np.isnan(_checked(column, column.truths(), "a truth value")).sum()))

    def encode(self, column: Column) -> Block:
        return _filled(column, _checked(column, column.truths(), "a truth value"), 0.5, self.missing, "0.5")

    @property
    def summary(self) -> str:
        return f"boolean, {self.missing} missing filled with 0.5" if self.missing else "boolean"


@final
@dataclass(frozen=True)
class DateEncoder(Encoder):
    """Days since 1970-01-01, of which float32 keeps about four minutes in our time."""

    kind = "date"
    fill: float
    missing: int = 0
    order: DayOrder = "year first"

    @classmethod
    def fit(cls, column: Column, order: DayOrder | None = None) -> DateEncoder:
        """Return the encoder; without an `order`, of the one in which most cells are dates."""
        chosen = order or min(DAY_PATTERNS, key=lambda one: int(column.days(one)[1].sum()))
        values = _checked(column, column.days(chosen), "a date")
        return cls(float(np.median(values[~np.isnan(values)])), int(np.isnan(values).sum()), chosen)

    def encode(self, column: Column) -> Block:
        values = _checked(column, column.days(self.order), "a date")
        return _filled(column, values, self.fill, self.missing, _day(self.fill))

    @property
    def n_measures(self) -> int:
        return 1

    @property
    def summary(self) -> str:
        filled = [f"{self.missing} missing filled with {_day(self.fill)}"] if self.missing else []
        return ", ".join(["date", *([self.order] if self.order != "year first" else []), *filled])


@final
@dataclass(frozen=True)
class CategoryEncoder(Encoder):
    """A flag for each value; `others` counts the rarer values that share one."""

    kind = "category"
    values: tuple[str, ...]
    others: int = 0
    missing: int = 0

    @classmethod
    def fit(cls, column: Column) -> CategoryEncoder:
        counts = column.counts()
        frequent = list(counts)
        further = [value for value in frequent[MOST_VALUES:MOST_CODES] if counts[value] >= FREQUENT]
        kept = tuple(sorted([*frequent[:MOST_VALUES], *further]))
        return cls(kept, len(frequent) - len(kept), column.n_missing)

    def encode(self, column: Column) -> Block:
        from pprop.graph.tables.arrow import pa, pc

        texts = column.texts()
        found: Any = pc.index_in(texts, value_set=pa.array(self.values, pa.large_string()))
        codes: NDArray[np.int64] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        new = (codes < 0) & ~column.missing
        if new.any() and not self.others:
            values: list[str] = pc.unique(texts.filter(pa.array(new))).to_pylist()
            shown = ", ".join(describe(value) for value in islice(values, EXAMPLES))
            more = ", ..." if len(values) > EXAMPLES else ""
            _caution(
                column, int(new.sum()), f"hold values that were not there when the recipe was fitted ({shown}{more})"
            )
        if self.others:
            codes[new] = len(self.values)
        if self.missing:
            codes[column.missing] = len(self.values) + bool(self.others)
        elif column.n_missing:
            _caution(column, column.n_missing, "are missing; none was when the recipe was fitted")
        rows = np.flatnonzero(codes >= 0)
        starts = np.concatenate([[0], np.cumsum(codes >= 0)])
        shape = (len(codes), len(self.feature_names("")))
        flags: NDArray[np.float32] = np.ones(len(rows), np.float32)
        return sparse.csr_array[np.float32]((flags, codes[rows], starts), shape=shape)

    @property
    def summary(self) -> str:
        values = counted(len(self.values), "value") + (f" and {self.others} rarer together" if self.others else "")
        return f"category, {values}" + (f", {self.missing} missing" if self.missing else "")

    def feature_names(self, name: str) -> list[str]:
        flags = [f"{name}={value}" for value in self.values] + ([f"{name}=other values"] if self.others else [])
        return _with_flag(flags, name, self.missing)

    @property
    def is_sparse(self) -> bool:
        return True


@final
@dataclass(frozen=True)
class TextEncoder(Encoder):
    r"""tf-idf of words: in a cell with counts :math:`t_w`, :math:`x_w \propto t_w \, (1 + \ln \frac{1 + n}{1 + n_w})`, length 1.

    `n` cells were there when it was fitted, `n_w` of them with the word.
    """

    kind = "text"
    words: tuple[str, ...]
    idf: tuple[float, ...]
    missing: int = 0

    @classmethod
    def fit(cls, column: Column, min_cells: int = 1) -> TextEncoder:
        """Return the encoder of the words that occur in at least `min_cells` cells."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        model: Any = TfidfVectorizer(token_pattern=WORD, min_df=min_cells, max_features=MOST_WORDS)
        try:
            model.fit(column.texts().drop_null().to_pylist())
        except ValueError:  # no words, or none that recurs
            expected = "words" if min_cells == 1 else f"a word that recurs in {min_cells} rows"
            column.complain(expected, int(np.flatnonzero(~column.missing)[0]))
        words = sorted(cast("dict[str, int]", model.vocabulary_), key=model.vocabulary_.__getitem__)
        return cls(tuple(words), tuple(model.idf_.tolist()), column.n_missing)

    def encode(self, column: Column) -> Block:
        from sklearn.feature_extraction.text import TfidfVectorizer

        if not len(column.cells):  # scikit-learn wants a row
            return sparse.csr_array(np.empty((0, len(self.words)), dtype=np.float32))
        model: Any = TfidfVectorizer(token_pattern=WORD, vocabulary=list(self.words))
        model.idf_ = np.array(self.idf)
        rows: sparse.csr_matrix[np.float64] = model.transform(column.texts().fill_null("").to_pylist())
        return sparse.csr_array(rows.astype(np.float32))

    @property
    def summary(self) -> str:
        return f"text, {counted(len(self.words), 'word')}" + (f", {self.missing} missing" if self.missing else "")

    def feature_names(self, name: str) -> list[str]:
        return [f"{name}: {word}" for word in self.words]

    @property
    def is_sparse(self) -> bool:
        return True


@final
@dataclass(frozen=True)
class EmbeddingEncoder(Encoder):
    """The numbers of lists of one length, f of them; `fill` has the median of each."""

    kind = "embedding"
    fill: tuple[float, ...]
    missing: int = 0

    @classmethod
    def fit(cls, column: Column) -> EmbeddingEncoder:
        size = column.size
        if size is None:
            row = int(np.argmin(column.missing))
            column.complain("lists of numbers, all of one length,", row, got=f"a column that {column.type_problem}")
        values = _fitting(column, column.vectors(size))
        absent = np.isnan(values)
        fill = [float(np.median(part[~np.isnan(part)])) if not np.isnan(part).all() else 0.0 for part in values.T]
        return cls(tuple(fill), int(absent.any(axis=1).sum()))

    def encode(self, column: Column) -> Block:
        values = _fitting(column, column.vectors(len(self.fill)))
        absent = np.isnan(values)
        rows = absent.any(axis=1)
        if rows.any() and not self.missing:
            _caution(
                column,
                int(rows.sum()),
                "have missing numbers; none was when the recipe was fitted. They are filled with medians",
            )
        block = np.empty((len(values), len(self.fill) + bool(self.missing)), dtype=np.float32)
        block[:, : len(self.fill)] = values
        if rows.any():
            np.copyto(block[:, : len(self.fill)], np.asarray(self.fill, dtype=np.float32), where=absent)
        if self.missing:
            block[:, -1] = rows
        return block

    @property
    def summary(self) -> str:
        filled = f", {self.missing} missing filled with medians" if self.missing else ""
        return f"embedding, {counted(len(self.fill), 'number')}{filled}"

    @property
    def n_measures(self) -> int:
        return len(self.fill)

    def feature_names(self, name: str) -> list[str]:
        return _with_flag([f"{name}[{at}]" for at in range(len(self.fill))], name, self.missing)


ENCODERS: dict[str, type[Encoder]] = {
    encoder.kind: encoder
    for encoder in (NumberEncoder, BooleanEncoder, CategoryEncoder, DateEncoder, TextEncoder, EmbeddingEncoder)
}


def _checked(column: Column, parsed: Parsed, expected: str) -> NDArray[np.float64]:
    """Return values of which the missing ones are NaN and all others fit into float32."""
    values, wrong = parsed
    if wrong.any():
        column.complain(expected, int(np.flatnonzero(wrong)[0]))
    broken = unfit(values)
    if broken.any():
        column.complain(f"{expected} of at most {LARGEST:.2g}, which float32 can hold,", int(np.flatnonzero(broken)[0]))
    return values


def _fitting(column: Column, values: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of lists, all of which fit into float32 or are missing."""
    broken = unfit(values).any(axis=1)
    if broken.any():
        row = int(np.flatnonzero(broken)[0])
        expected = f"numbers of at most {LARGEST:.2g}, which float32 can hold,"
        column.complain(expected, row, got=f"{values[row][unfit(values[row])][0]:g}")
    return values


def _filled(column: Column, values: NDArray[np.float64], fill: float, missing: int, text: str) -> Block:
    """Return values with the missing ones filled, and a flag for them if some were when the encoder was fitted."""
    absent = np.isnan(values)
    if absent.any() and not missing:
        _caution(
            column, int(absent.sum()), f"are missing; none was when the recipe was fitted. They are filled with {text}"
        )
    block = np.empty((len(values), 2 if missing else 1), dtype=np.float32)
    block[:, 0] = np.where(absent, fill, values)
    if missing:
        block[:, 1] = absent
    return block


def _caution(column: Column, cells: int, what: str) -> None:
    message = f"{counted(cells, 'cell')} of {column.name!r} in {table_text(column.title)} {what}."
    warnings.warn(message, UserWarning, stacklevel=5)


def _with_flag(names: list[str], name: str, missing: int) -> list[str]:
    return [*names, f"{name} is missing"] if missing else names


def _day(days: float) -> str:
    try:
        return str(dt.date(1970, 1, 1) + dt.timedelta(days=int(days // 1)))
    except OverflowError:  # Arrow's years go beyond 9999
        return f"day {days:g}"
