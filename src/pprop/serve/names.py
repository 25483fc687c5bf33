"""Names and texts of nodes, where the data has them: columns of the node table that the graph was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from pprop._errors import PpropError
from pprop.estimators import GraphSource
from pprop.graph import Graph

NAMES = ("name", "title")
TEXTS = ("text", "abstract", "description", "summary")
_LONG, _SHORT = 5000, 200  # characters that are shown


@final
class Names(NamedTuple):
    """A short and a long text of each node, by position; None where there is none."""

    names: Sequence[str | None] | None
    texts: Sequence[str | None] | None


def names_of(graph: Graph, source: GraphSource | None) -> Names:
    """Return the names of the nodes of a graph: the column ``name`` or ``title``, and ``text`` or ``abstract``.

    Only a graph that was read from tables has such columns; a model remembers their source.
    """
    ids = graph.ids
    arguments: Mapping[str, Any] = {} if source is None else source.arguments
    file = arguments.get("nodes")
    if not isinstance(file, str) or ids is None:
        return Names(None, None)
    from pprop.graph.tables.readers import read_table

    key, label = arguments.get("id_column") or "id", arguments.get("label_column")
    try:
        found = {name.casefold(): name for name in reversed(read_table(file, "nodes", "serve", ()).names)}
        wanted = [
            next((found[one] for one in kinds if one in found and found[one] not in (key, label)), None)
            for kinds in (NAMES, TEXTS)
        ]
        if wanted == [None, None]:
            return Names(None, None)
        table = read_table(file, "nodes", "serve", (key, *(one for one in wanted if one is not None)))
        keys = [str(one) for one in table.keys(key, "id_column").to_pylist()]
        columns = [
            None
            if one is None
            else dict(zip(keys, (cell or "" for cell in table.texts(one, "nodes").to_pylist()), strict=True))
            for one in wanted
        ]
    except PpropError:  # a column of another kind, or a file that has gone: nodes have no names then
        return Names(None, None)
    short, long = columns
    return Names(_listed(short or long, ids, _SHORT), _listed(long, ids, _LONG))


def _listed(texts: Mapping[str, str] | None, ids: Any, most: int) -> list[str | None] | None:
    if texts is None:
        return None
    found = [texts.get(str(key), "").strip() for key in ids.tolist()]
    return [(one if len(one) <= most else f"{one[: most - 1]}…") or None for one in found]
