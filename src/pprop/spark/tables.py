"""Tables of the user: data frames of Spark or Parquet paths, checked before any work that takes long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, cast, final

from pprop._errors import ColumnError, FormatError, InputError, Remedy, Where
from pprop._validate import counted, describe, listed, nearest, reject
from pprop.graph.tables.likely import likely_ends
from pprop.spark.foreign import Column, DataFrame, SparkSession, sql_functions

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "float", "double")

TEXT = (".csv", ".tsv", ".csv.gz", ".txt")  # suffixes of tables that are no Parquet


def read_frame(spark: SparkSession, table: Any, parameter: str, function: str) -> DataFrame:
    """Return a data frame: the one given, or that of a Parquet path."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import DataFrame

    if isinstance(table, DataFrame):
        return table
    if not isinstance(table, str | PathLike):
        reject(parameter, function, "a DataFrame of Spark or a Parquet path", describe(table))
    path = str(cast("str", table))
    if path.lower().endswith(TEXT):
        remedy = f"Read it with spark.read.csv({path!r}, header=True) and cast its columns."
        reject(parameter, function, "a DataFrame of Spark or a Parquet path", repr(path), remedy=remedy)
    try:
        return spark.read.parquet(path)
    except AnalysisException as error:
        why = "there is no such path" if "PATH_NOT_FOUND" in str(error) else "it holds no Parquet files"
        raise FormatError(f"The table of {parameter} cannot be read from {path!r}: {why}.") from error


def check_columns(frame: DataFrame, columns: dict[str, str | None], parameter: str, function: str) -> None:
    """Refuse a table that lacks one of the columns, given by the argument that names each; the error has all of them."""
    missing = {name: column for name, column in columns.items() if column is not None and column not in frame.columns}
    if missing:
        named = [column for name, column in missing.items() if column != name]  # not the name that is the default
        remedies = [Remedy(hint) for hint in dict.fromkeys(nearest(one, frame.columns) for one in named) if hint]
        likely = {} if named else {name: one for name, one in likely_ends(frame.columns).items() if name in missing}
        remedies += [Remedy(settings=likely)] if likely else []
        raise ColumnError(
            missing=missing,
            columns=frame.columns,
            parameter=next(iter(missing)),
            function=function,
            where=Where(f"the table of {parameter}"),
            remedies=remedies,
        )


def id_type(frame: DataFrame, column: str, parameter: str, function: str) -> str:
    """Return "bigint" or "string", the two types of ids."""
    kind = dict(frame.dtypes)[column]
    if kind in _WHOLE:
        return "bigint"
    if kind != "string":
        reject(f"{parameter}.{column}", function, "ids that are integers or text", f"a column of type {kind}")
    return "string"


def same_type(kinds: dict[str, str], function: str) -> str:
    """Return the one type of all columns of ids."""
    if len(set(kinds.values())) > 1:
        found = ", ".join(f"{name} is {'text' if kind == 'string' else 'integer'}" for name, kind in kinds.items())
        raise InputError(f"{function} needs ids of one type: {found}. Cast one of them.")
    return next(iter(kinds.values()))


@final
@dataclass(frozen=True)
class Edges:
    """An edge list with the columns ``source``, ``target`` and, of a weighted graph, ``weight``.

    Attributes
    ----------
    frame
        Ids of one type, weights in float64, none of them zero.
    count, dropped
        Rows, and rows that were left out since their weight is zero.
    kind
        "bigint" or "string".
    digest
        A text that other rows would give another of, whatever their order.
    """

    frame: DataFrame
    count: int
    dropped: int
    kind: str
    weighted: bool
    digest: str

    @classmethod
    def read(
        cls, spark: SparkSession, table: object, source: str, target: str, weight: str | None, function: str
    ) -> Edges:
        """Check an edge list by one pass over it."""
        sql = sql_functions()

        frame = read_frame(spark, table, "edges", function)
        check_columns(frame, {"source": source, "target": target, "weight": weight}, "edges", function)
        kinds = {f"edges.{one}": id_type(frame, one, "edges", function) for one in (source, target)}
        kind = same_type(kinds, function)
        columns = [column(source).cast(kind).alias("source"), column(target).cast(kind).alias("target")]
        if weight is not None:
            if dict(frame.dtypes)[weight] not in _NUMBERS:
                got = f"a column of type {dict(frame.dtypes)[weight]}"
                reject(f"edges.{weight}", function, "weights that are numbers", got)
            columns.append(column(weight).cast("double").alias("weight"))
        used = frame.select(*columns)
        checks: dict[str, Column] = {
            "count": sql.count(sql.lit(1)),
            "nulls": _count(sql.col("source").isNull() | sql.col("target").isNull()),
            "digest": digest_of(used.columns),
        }
        if weight is not None:
            number = sql.col("weight")
            checks["wrong"] = _count(number.isNull() | sql.isnan(number) | (number < 0) | (number == float("inf")))
            checks["zeros"] = _count(number == 0)
        found = used.agg(*(check.alias(name) for name, check in checks.items())).collect()[0]
        if found["nulls"]:
            raise InputError(f"{counted(found['nulls'], 'edge')} of {found['count']:,} lack a source or a target.")
        if weight is not None and found["wrong"]:
            raise InputError(
                f"{counted(found['wrong'], 'edge')} of {found['count']:,} have a weight that is missing, negative or not finite."
            )
        dropped = 0 if weight is None else int(found["zeros"] or 0)
        if dropped:
            used = used.filter(sql.col("weight") != 0)
        return cls(used, int(found["count"]) - dropped, dropped, kind, weight is not None, found["digest"])


@final
@dataclass(frozen=True)
class Numbers:
    """A table with an id and numbers for each node: columns ``id``, and ``value0``, ``value1``, ... for those of `names`, float64."""

    frame: DataFrame
    names: tuple[str, ...]
    kind: str
    digest: str

    @classmethod
    def read(
        cls, spark: SparkSession, table: object, id_column: str, columns: Sequence[str] | None, function: str
    ) -> Numbers:
        """Check predictions by one pass over them."""
        sql = sql_functions()

        frame = read_frame(spark, table, "predictions", function)
        check_columns(frame, {"id_column": id_column}, "predictions", function)
        types = dict(frame.dtypes)
        names = [one for one in frame.columns if one != id_column and types[one] in _NUMBERS]
        if columns is not None:
            names = [columns] if isinstance(columns, str) else list(columns)
            check_columns(frame, {f"columns[{k}]": one for k, one in enumerate(names)}, "predictions", function)
            wrong = [one for one in names if types[one] not in _NUMBERS]
            if wrong:
                reject("columns", function, "columns of numbers", f"{wrong[0]!r}, of type {types[wrong[0]]}")
        if not names:
            raise InputError(f"'predictions' of {function} has no column of numbers besides {id_column!r}.")
        kind = id_type(frame, id_column, "predictions", function)
        used = frame.select(
            column(id_column).cast(kind).alias("id"),
            *(column(name).cast("double").alias(f"value{k}") for k, name in enumerate(names)),
        )
        values = [sql.col(one) for one in used.columns[1:]]
        sums = [_count(one.isNull() | sql.isnan(one) | (sql.abs(one) == float("inf"))) for one in values]
        found = used.agg(
            _count(sql.col("id").isNull()).alias("nulls"),
            digest_of(used.columns).alias("digest"),
            *(one.alias(f"wrong{k}") for k, one in enumerate(sums)),
        ).collect()[0]
        if found["nulls"]:
            raise InputError(f"{counted(found['nulls'], 'row')} of the predictions lack an id.")
        wrong = [one for k, one in enumerate(names) if found[f"wrong{k}"]]
        if wrong:
            count = sum(found[f"wrong{k}"] or 0 for k in range(len(names)))
            raise InputError(
                f"Predictions must be finite numbers. Got {counted(count, 'value')} that {'is' if count == 1 else 'are'} "
                f"missing, NaN or infinite, in the columns {listed(wrong)}."
            )
        return cls(used, tuple(names), kind, found["digest"])


def column(name: str) -> Column:
    """Return a column by its name, which may hold dots."""
    sql = sql_functions()

    return sql.col("`" + name.replace("`", "``") + "`")


def _count(condition: Column) -> Column:
    sql = sql_functions()

    return sql.sum(condition.cast("bigint"))


def digest_of(columns: Sequence[Any]) -> Column:
    """Return what the hashes of all rows give together, whatever their order, as text; the sum shows rows that come twice."""
    sql = sql_functions()

    hashed = sql.xxhash64(*columns)
    return sql.concat_ws(" ", sql.bit_xor(hashed), sql.sum(hashed.bitwiseAND(2**24 - 1)))
