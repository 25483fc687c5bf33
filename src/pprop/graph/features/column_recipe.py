"""The recipe of one column: fitted to the kind that was decided, or to the kind that the user wants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, cast, final

import numpy as np

from pprop._errors import ColumnError, FormatError, Remedy, Where, table_text
from pprop._validate import check_sequence, describe, nearest, reject
from pprop.graph.features.columns import Column
from pprop.graph.features.encoders import ENCODERS, DateEncoder, Encoder, NumberEncoder, TextEncoder
from pprop.graph.features.entries import Entry, read_encoder
from pprop.graph.features.kinds import KINDS, DecidedKind, Kind, decide, decide_date, unclear_points


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


def wanted_kinds(
    wanted: object, present: list[str], exclude: Collection[str], title: Path | str, function: str
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
    missing: list[str] = []
    for name, kind in given:
        if isinstance(name, str) and name in exclude:
            if kind == "unused":
                continue
            got = f"{describe(name)}, which holds ids, labels or a split,"
            reject("feature_columns", function, f"columns of {table_text(title)} that are features", got)
        if not isinstance(name, str) or name not in present:
            if not isinstance(name, str):
                reject("feature_columns", function, f"names of columns of {table_text(title)}", describe(name))
            missing.append(name)
            continue
        if name in kinds:
            reject("feature_columns", function, "distinct column names", f"{describe(name)} more than once")
        if kind is not None and kind not in KINDS:
            expected, got = f"kinds of columns ({', '.join(KINDS)})", f"{describe(kind)} for {name!r}"
            reject("feature_columns", function, expected, got, remedy=nearest(str(kind), KINDS))
        kinds[name] = next((one for one in KINDS if one == kind), None)
    if missing:
        hints = [hint for name in missing if (hint := nearest(name, present))]
        names = {f"feature_columns[{at}]": name for at, name in enumerate(missing)}
        raise ColumnError(
            parameter="feature_columns",
            function=function,
            missing=names if len(missing) > 1 else {"feature_columns": missing[0]},
            columns=present,
            where=Where(title),
            remedies=[Remedy(hint) for hint in dict.fromkeys(hints)],
        )
    return kinds


def decided_column(column: Column, decision: DecidedKind) -> ColumnRecipe:
    """Return the recipe of a column whose kind is decided, fitted to its cells."""
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


def wanted_column(column: Column, kind: Kind | None) -> ColumnRecipe:
    """Return the recipe of a column that is named; the kind is decided if it is None."""
    if kind == "unused":
        return ColumnRecipe(column.name, None, "as asked for")
    if column.form == "other":
        _complain_unusable(column, column.type_problem)
    if not column.n_present:
        _complain_unusable(column, "all values are missing")
    if column.form == "vector" and kind not in (None, "embedding"):
        _complain_unusable(column, f"has lists, of which no {kind} can be made")
    if column.size is not None and np.isnan(column.vectors(column.size)).all():
        _complain_unusable(column, "all values are missing")
    match kind:
        case None:
            decision = decide(column, wanted=True)
        case "date":
            decision = decide_date(column) or DecidedKind("date", order=DateEncoder.fit(column).order)
        case "number":
            comma = column.form == "text" and decide(column, wanted=True).comma
            decision = DecidedKind("number", comma=comma)
        case _:
            decision = DecidedKind(kind)
    if decision.kind == "unused":
        _complain_unusable(column, decision.reason)
    made = decided_column(column, decision)
    # words that never recur are better than nothing where text is asked for
    return ColumnRecipe(column.name, TextEncoder.fit(column)) if made.encoder is None else made


def beside_commas(column: Column, made: ColumnRecipe, *, wanted: bool) -> ColumnRecipe:
    """Return the recipe of a column of numbers in a table where others have decimal commas: left out if points are unclear."""
    reason = unclear_points(column)
    if reason and wanted:
        _complain_unusable(column, reason)
    return ColumnRecipe(column.name, None, reason) if reason else made


def plain_number(column: Column) -> ColumnRecipe:
    """Return the recipe of a column of numbers that are taken as they are, none missing; text among them is an error."""
    _, wrong = column.numbers()
    spelled = column.form in ("number", "boolean") or (column.form == "text" and not column.typed)
    if not spelled or not column.n_present or int(wrong.sum()) == column.n_present:
        return ColumnRecipe(column.name, None, "not a column of numbers")
    encoder = replace(NumberEncoder.fit(column), fill=None, missing=0)
    encoder.encode(column)
    return ColumnRecipe(column.name, encoder)


def _complain_unusable(column: Column, reason: str) -> NoReturn:
    got = f"{column.name!r}, a column of {table_text(column.title)} that cannot be used ({reason}),"
    reject("feature_columns", column.function, "columns that can become features", got, error=FormatError)


def to_entry(column: ColumnRecipe) -> dict[str, Any]:
    """Return the recipe of a column as JSON holds it."""
    if column.encoder is None:
        return {"name": column.name, "kind": "unused", "reason": column.reason}
    return {"name": column.name, "kind": column.kind, "parameters": column.encoder.parameters}


def from_entry(entry: Entry) -> ColumnRecipe:
    """Return the recipe of a column that `to_entry` wrote, trusting nothing in it."""
    kind = entry.member("kind").choice(KINDS)
    given = entry.fields("name", "kind", "reason" if kind == "unused" else "parameters")
    name = given["name"].text()
    if kind == "unused":
        if not given["reason"].text():
            given["reason"].complain("a reason")
        return ColumnRecipe(name, None, given["reason"].text())
    return ColumnRecipe(name, read_encoder(kind, given["parameters"]))
