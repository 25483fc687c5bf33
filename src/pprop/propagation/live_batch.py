"""Many edits of a live graph in one list: how they are written, and what those of edges come to.

An edit is the name of a method of `LiveGraph` and its arguments. Edits of edges that follow one another are looked at as
arrays: of each edge only the weight before the first and after the last of them matters for the predictions.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, cast, final

import numpy as np

from pprop._errors import InputError, Where
from pprop._validate import check_float, describe, reject
from pprop.propagation.live_record import LiveRecord, check_weights, reject_edge
from pprop.propagation.operator import Nodes, Values

# edits of edges: how many arguments one may have that is of one edge; None for many edges
_EDGES: dict[str, tuple[int, int] | None] = {
    "add_edge": (2, 3),
    "remove_edge": (2, 2),
    "set_weight": (3, 3),
    "add_edges": None,
    "remove_edges": None,
    "set_weights": None,
}
_NODES = ("add_node", "add_nodes", "remove_node", "remove_nodes", "set_features", "set_predictions")

Call = tuple[str, tuple[Any, ...], dict[str, Any]]  # method, arguments, those by name
Net = tuple[Nodes, Nodes, Values, Values]  # ends of distinct edges, weights before and after; 0: no edge


@contextmanager
def at_edit(index: int, places: Sequence[str] | None) -> Generator[None]:
    """Say of which edit an error is: what `places` calls it, or its index."""
    try:
        yield
    except InputError as error:
        error.at(Where(edit=index, title=places[index] if places else None))
        raise


def bind(methods: object, call: Call) -> dict[str, Any]:
    """Return the arguments of a call by their names; `methods` has the method."""
    name, arguments, named = call
    expected = inspect.signature(getattr(methods, name))
    if isinstance(methods, type):
        arguments = (None, *arguments)
    try:
        bound = expected.bind(*arguments, **named)
    except TypeError as error:
        raise InputError(f"The arguments of {name} are {', '.join(expected.parameters)}: {error}.") from None
    bound.apply_defaults()
    return bound.arguments


@final
class EdgeEdits:
    """Edits of edges that follow one another, on nodes that stay as they are meanwhile.

    Parameters
    ----------
    record
        Of the nodes.
    places
        See `at_edit`.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> record = LiveRecord(pprop.Graph.from_scipy(sp.csr_array((3, 3))))
    >>> (edits,) = runs([("set_weight", 0, 1, 3.0), ("add_edge", 2, 0)], record, None, pprop.LiveGraph)
    >>> [array.tolist() for array in edits.net(lambda u, v: (v == 1) * 1.0)]
    [[0, 2], [1, 0], [1.0, 0.0], [3.0, 1.0]]
    """

    def __init__(self, record: LiveRecord, places: Sequence[str] | None) -> None:
        self._record, self._places = record, places
        self.taken: list[tuple[Any, ...]] = []  # index in the batch, method, ends, and a weight where there is one

    def take(self, index: int, call: Call, methods: object) -> None:
        """Take the edit at an index of the batch; `methods` has the one that it names."""
        name = call[0]
        with at_edit(index, self._places):
            given = bind(methods, call)
            if _EDGES[name] is not None:
                ends = _by_position(self._record, name, given["u"], given["v"])
                self.taken.append((index, name, *ends, given.get("weight", 1.0)))
                return
            pairs = self._record.check_pairs(given["pairs"], name)
            weights = check_weights(given.get("weights"), len(pairs), name)
        self.taken += [(index, name, *pair, w) for pair, w in zip(pairs.tolist(), weights.tolist(), strict=True)]

    def nodes(self) -> Nodes:
        """Return the positions that the edits name, in their order."""
        return np.array([end for edit in self.taken for end in edit[2:4]], np.int64)

    def net(self, weights_of: Callable[[Nodes, Nodes], Values]) -> Net:
        """Return the edges that will have another weight, or refuse the first edit that is not possible."""
        ends, weights, count = self._checked()
        names = [edit[1] for edit in self.taken[:count]]
        adds = np.array([name[0] == "a" for name in names], np.bool_)
        after = np.where(np.array([name[0] == "r" for name in names], np.bool_), 0.0, weights)
        low, high = ends.min(axis=1, initial=self._record.n), ends.max(axis=1, initial=0)
        keys = low * self._record.n + high
        order = np.argsort(keys, kind="stable")  # by edge, then as they were given
        first = np.flatnonzero(np.diff(keys[order], prepend=-1))
        old = weights_of(low[order[first]], high[order[first]])
        before = np.roll(after[order], 1)
        before[first] = old
        wrong = order[adds[order] != (before == 0.0)]
        if len(wrong):
            k = int(wrong.min())
            with at_edit(self.taken[k][0], self._places):
                reject_edge(int(ends[k, 0]), int(ends[k, 1]), names[k], there=bool(adds[k]))
        if count < len(self.taken):
            index, name, u, v, *weight = self.taken[count]
            with at_edit(index, self._places):
                self._record.check_pair(u, v, name)
                check_float(weight[0], "weight", name, "(0, inf)")
        new = after[order[np.append(first[1:], count) - 1]] if count else after
        at, other = ends[order[first]].T, old != new
        return at[0][other], at[1][other], old[other], new[other]

    def _checked(self) -> tuple[Nodes, Values, int]:
        """Return ends (m, 2) and weights (m,) of the first m edits, those before one that is wrong by itself, and m."""
        alive, n = self._record.alive, self._record.n
        u, v = ([edit[column] for edit in self.taken] for column in (2, 3))
        weights = [edit[4] if len(edit) > 4 else 1.0 for edit in self.taken]
        ends = np.stack([_numbers(side, numbers.Integral, np.int64, -1) for side in (u, v)], axis=1)
        given = _numbers(weights, numbers.Real, np.float64, -1.0)
        inside = (ends >= 0) & (ends < n)
        sound = (inside & alive[np.where(inside, ends, 0)]).all(axis=1) & (given > 0.0) & np.isfinite(given)
        count = len(sound) if sound.all() else int(sound.argmin())
        return ends[:count], given[:count], count


def _numbers(values: list[Any], kind: type, dtype: Any, other: float) -> Any:
    """Return numbers of a kind as an array, with `other` in place of what is none of them, or too large."""
    types = set(map(type, values))
    if types <= {int} or (dtype is np.float64 and types <= {int, float}):
        try:
            return np.array(values, dtype)
        except OverflowError:
            pass
    found = np.full(len(values), other, dtype)
    for k, value in enumerate(values):
        if isinstance(value, kind) and not isinstance(value, bool):
            try:
                found[k] = value
            except OverflowError:
                continue
    return found


def _by_position(record: LiveRecord, name: str, u: object, v: object) -> tuple[object, object]:
    """Return the ends of an edge with positions in place of ids; what is no text is checked with the others."""
    one = record.check_node(u, "u", name) if isinstance(u, str) else u
    return one, record.check_node(v, "v", name) if isinstance(v, str) else v


def runs(
    edits: object, record: LiveRecord, places: Sequence[str] | None, methods: object
) -> Generator[EdgeEdits | tuple[int, Call]]:
    """Yield the edits of a batch: those of edges that follow one another together, others with their index.

    One is read after those before it have been made.
    """
    expected = "edits, each a tuple of a method's name and its arguments"
    if isinstance(edits, str | bytes) or not isinstance(edits, Iterable):
        reject("edits", "apply", expected, describe(edits))
    run = EdgeEdits(record, places)
    for index, given in enumerate(cast("Iterable[Any]", edits)):
        if not isinstance(given, tuple | list) or not given:
            reject("edits", "apply", expected, f"{describe(cast('object', given))} at index {index}")
        edit = cast("Sequence[Any]", given)
        name = edit[0]
        span = _EDGES.get(name) if isinstance(name, str) else None
        if span is not None and span[0] < len(edit) <= span[1] + 1 and not isinstance(edit[-1], dict):
            if isinstance(edit[1], str) or isinstance(edit[2], str):
                with at_edit(index, places):
                    edit = (name, *_by_position(record, name, *edit[1:3]), *edit[3:])
            run.taken.append((index, *edit))
            continue
        if not isinstance(name, str) or (name not in _EDGES and name not in _NODES):
            known = ", ".join([*_EDGES, *_NODES])
            reject("edits", "apply", f"edits that begin with one of {known}", f"{describe(name)} at index {index}")
        arguments = list[Any](edit[1:])
        named: dict[str, Any] = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        call: Call = name, tuple(arguments), named
        if name in _EDGES:
            run.take(index, call, methods)
            continue
        if run.taken:
            yield run
            run = EdgeEdits(record, places)
        yield index, call
    if run.taken:
        yield run
