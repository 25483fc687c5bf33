"""Which columns of two tables are likely to be what nobody has named: the ends of edges, the ids of nodes, the classes.

A guess is only ever proposed in the remedy of an error; no table is read by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pprop._errors import InputError
from pprop.graph.features.columns import read_column
from pprop.graph.features.splits import split_reason
from pprop.graph.tables.arrow import Column, pa, pc
from pprop.graph.tables.table import DataTable

# Words that tell the two ends of an edge apart, in the order in which they are looked for.
ENDS = (
    *(("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("sender", "receiver")),
    *(("caller", "callee"), ("follower", "followee"), ("citing", "cited"), ("payer", "payee"), ("buyer", "seller")),
    *(("origin", "destination"), ("parent", "child"), ("start", "end"), ("head", "tail"), ("left", "right")),
    *(("first", "second"), ("u", "v"), ("i", "j"), ("a", "b"), ("x", "y"), ("1", "2"), ("0", "1")),
)
IDS = ("id", "ids", "key", "name", "node", "code")
LABELS = (
    *("label", "labels", "lbl", "class", "classes", "cls", "klass", "clazz", "target", "truth", "category", "cat", "y"),
    *(
        "status",
        "outcome",
        "type",
        "kind",
        "topic",
        "subject",
        "species",
        "genre",
        "group",
        "role",
        "team",
        "department",
    ),
    *(
        "dept",
        "community",
        "segment",
        "churn",
        "churned",
        "fraud",
        "spam",
        "bot",
        "illicit",
        "sentiment",
        "field",
        "area",
    ),
)
MOST_CLASSES = 50
MOST_UNKNOWN = 0.5  # of the cells in a column of ends that may be no id of the node table


def likely_ends(names: Sequence[str]) -> dict[str, str]:
    """Return the columns that are called like the two ends of an edge, as the arguments `source` and `target`.

    >>> likely_ends(["day", "from_account", "to_account"]), likely_ends(["id_a", "id_b"]), likely_ends(["day", "amount"])
    ({'source': 'from_account', 'target': 'to_account'}, {'source': 'id_a', 'target': 'id_b'}, {})
    """
    words = {name: _words(name) for name in names}
    for one, other in ENDS:
        for source, of_source in words.items():
            if one in of_source and (len(of_source) > 1 or one.isalpha()):
                wanted = [other if word == one else word for word in of_source]
                target = next((name for name, of_target in words.items() if of_target == wanted), None)
                if target is not None:
                    return {"source": source, "target": target}
    return {}


def likely_columns(edges: DataTable, nodes: DataTable | None, known: Mapping[str, str]) -> dict[str, str]:
    """Return the likely `source`, `target`, `id_column` and `label_column`, beside those that are known.

    The columns of ids are those whose values occur in both tables.

    Examples
    --------
    >>> from pprop.graph.tables.frames import table_of
    >>> calls = table_of({"day": ["mon", "tue"], "who": ["ann", "bob"], "whom": ["bob", "cem"]}, "edges", "f")
    >>> people = table_of({"row": ["1", "2", "3"], "person": ["ann", "bob", "cem"], "team": ["x", "x", "y"]}, "nodes", "f")
    >>> likely_columns(calls, people, {})
    {'source': 'who', 'target': 'whom', 'id_column': 'person', 'label_column': 'team'}
    """
    of_edges = _texts(edges)
    named = likely_ends(list(of_edges))
    first = list(of_edges)[:2]
    ends = named or (dict(zip(("source", "target"), first, strict=True)) if len(first) == 2 else {})
    ends |= {name: known[name] for name in ("source", "target") if name in known}
    if nodes is None:
        return ends
    of_nodes = _texts(nodes)
    ids, best = _called(IDS, list(of_nodes)), 0.0
    for name, column in of_nodes.items():
        if known.get("id_column", name) != name or pc.count_distinct(column).as_py() < len(column):
            continue
        shares = {end: _share(of_edges[end], column) for end in of_edges}
        pair = ends if named or "source" in known else dict(zip(ends, _two_largest(shares), strict=False))
        pair = {**pair, **{end: known[end] for end in ends if end in known}}
        share = min((shares.get(end, 0.0) for end in pair.values()), default=0.0)
        if share > best and share > 1 - MOST_UNKNOWN:
            ids, best, ends = name, share, pair
    found = {**ends, **({} if ids is None else {"id_column": ids})}
    label = known.get("label_column") or _likely_label(nodes, of_nodes, found.get("id_column"))
    return {**found, **({} if label is None else {"label_column": label})}


def _likely_label(nodes: DataTable, texts: Mapping[str, Column], ids: str | None) -> str | None:
    """Return the column that is called like a class; else the last one with few different values, words before numbers.

    A column that holds a split is none.
    """
    candidates = [
        name
        for name, column in texts.items()
        if name != ids
        and not split_reason(read_column(name, nodes.columns[name], typed=nodes.typed))
        and 2 <= pc.count_distinct(pc.filter(column, pc.not_equal(column, ""))).as_py() <= MOST_CLASSES
    ]
    called = _called(LABELS, candidates)
    if called is not None:
        return called
    words = [name for name in candidates if not _is_numeric(nodes, name)]
    few = [name for name in words or candidates if 2 * pc.count_distinct(texts[name]).as_py() <= nodes.n_rows + 2]
    return next(reversed(few), None)


def _words(name: str) -> list[str]:
    """Return the parts of a name: ``fromAccount_2`` has the parts from, account and 2."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+", name)]


def _called(words: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the first name with the first of some words in it."""
    return next((name for word in words for name in names if word in _words(name)), None)


def _texts(table: DataTable) -> dict[str, Column]:
    """Return the columns that can hold ids or classes, as text."""
    found: dict[str, Column] = {}
    for name in table.columns:
        try:
            found[name] = pc.cast(table.texts(name, "column"), pa.large_string())
        except InputError:  # numbers with a fraction, dates, lists
            continue
    return found


def _share(cells: Column, ids: Column) -> float:
    """Return the share of cells that are among the ids."""
    return (
        pc.mean(pc.cast(pc.is_in(cells, value_set=pa.chunked_array(ids).combine_chunks()), pa.float64())).as_py() or 0.0
    )


def _two_largest(shares: Mapping[str, float]) -> list[str]:
    """Return the two columns of the largest shares, in the order of the table."""
    largest = sorted(shares, key=lambda name: -shares[name])[:2]
    return [name for name in shares if name in largest]


def _is_numeric(table: DataTable, name: str) -> bool:
    try:
        return table.is_numeric(name)
    except InputError:  # numbers and words
        return False
