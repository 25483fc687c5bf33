"""Whether two tables have the columns that options name: all that is missing at once, and the options that would do."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pprop._errors import ColumnError, InputError, PpropError, Remedy, SeveralErrors, columns_text
from pprop.cli.graphs import Tables
from pprop.graph.features.kinds import KINDS
from pprop.graph.tables.likely import likely_columns
from pprop.graph.tables.streams import TableStream
from pprop.graph.tables.table import DataTable

OF_EDGES = ("source", "target", "weight")
ROWS = 2**20  # of each table that are compared to find likely columns


def check_columns(edges: str, given: Tables, *, labels: bool = False, split_column: str | None = None) -> None:
    """Refuse columns that the tables do not have, before any row is read.

    Parameters
    ----------
    edges
        The edge list.
    given
        The options of the tables.
    labels
        Whether the classes of nodes are needed.
    split_column
        A column of the node table that holds the split.
    """
    header = _header(edges, "path")
    wanted = {name: value for name in OF_EDGES if (value := getattr(given, name)) is not None}
    errors: list[ColumnError | InputError] = [error] if (error := header.lacks(wanted)) is not None else []
    nodes = None
    if given.nodes is not None and Path(given.nodes).exists():
        nodes = _header(given.nodes, "nodes")
        named = {"id_column": given.id_column, "label_column": given.label_column, "split_column": split_column}
        named |= {f"features[{at}]": name for at, name in enumerate(given.named)}
        named |= {f"column[{at}]": name for at, name in enumerate(given.kinds)}
        error = nodes.lacks({parameter: name for parameter, name in named.items() if name is not None})
        errors += [] if error is None else [error]
    for name, kind in given.kinds.items():
        if kind not in KINDS:
            expected = f"NAME=KIND, where KIND is one of {', '.join(KINDS)}"
            errors.append(
                InputError(parameter="column", function="train", expected=expected, found=repr(f"{name}={kind}"))
            )
    if labels and given.label_column is None:
        what = "Training needs the classes of some nodes: name the column that holds them."
        errors.append(InputError(f"{what}{_columns(nodes)}"))
    if errors:
        raise _together(errors, _proposed(edges, given, errors, labels=labels))


def _header(file: str, parameter: str) -> DataTable:
    stream = TableStream.of([file], parameter, "read_edges")
    return stream.header(stream.files[0])


def _columns(nodes: DataTable | None) -> str:
    """Return the columns of the node table, as a sentence."""
    return "" if nodes is None else f" The columns of {nodes.path}: {columns_text(nodes.names)}."


def _together(errors: list[Any], options: Mapping[str, object]) -> PpropError:
    """Return one error for all, with the options to add."""
    remedy = [Remedy(settings=options)] if options else []
    if len(errors) == 1:
        errors[0].remedies = (*errors[0].remedies, *remedy)
        return errors[0]
    return SeveralErrors(errors=errors, remedies=remedy)


def _proposed(edges: str, given: Tables, errors: list[Any], *, labels: bool) -> dict[str, object]:
    """Return the options that name columns in place of the missing ones: those that are spelled alike, or likely ones."""
    defaults = vars(Tables())
    missing: dict[str, str] = {}
    alike: dict[str, str] = {}
    for error in errors:
        if isinstance(error, ColumnError):
            missing |= error.missing
            typed = {parameter: name for parameter, name in error.missing.items() if name != defaults.get(parameter)}
            close = {parameter: get_close_matches(name, error.columns, 1) for parameter, name in typed.items()}
            alike |= {parameter: names[0] for parameter, names in close.items() if names and "[" not in parameter}
    try:
        likely = _likely(edges, given, missing)
    except InputError:  # a table that cannot be read is refused when its columns are known
        likely = {}
    unnamed = {"label_column"} if labels and given.label_column is None else set[str]()
    found: dict[str, object] = {
        name: column for name, column in {**likely, **alike}.items() if name in missing or name in unnamed
    }
    return found | ({"nodes": ..., "label_column": ...} if labels and given.nodes is None else {})


def _likely(edges: str, given: Tables, missing: Mapping[str, str]) -> dict[str, str]:
    known = {
        name: value
        for name in ("source", "target", "id_column", "label_column")
        if name not in missing and (value := getattr(given, name)) is not None
    }
    nodes = given.nodes is not None and Path(given.nodes).exists()
    return likely_columns(_begin(edges), _begin(str(given.nodes)) if nodes else None, known)


def _begin(file: str) -> DataTable:
    """Return the first rows of a table."""
    return next(TableStream.of([file], "path", "read_edges").tables(ROWS))[0]
