"""A served graph under edits: each batch made whole, logged, and only then acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import numpy as np

from pprop._errors import EdgeError, InputError
from pprop.estimators.live import live_of
from pprop.propagation.live_graph import compile_edits
from pprop.serve.faults import Fault
from pprop.serve.features import feature_row
from pprop.serve.holder import Holder
from pprop.serve.log import Edit, EditLog
from pprop.serve.served import Served
from pprop.serve.view import View

_TOGETHER = 2000  # batches of a log that are made again together


@final
class LiveHolder(Holder):
    """A model on a graph that changes.

    Edits are made in a `LiveGraph`, which checks them and takes a batch back as a whole. What is served are the
    predictions of the model itself, as it was trained, on the graph as it is: they are made anew when the first request
    after an edit comes.

    Parameters
    ----------
    served
        The model.
    path
        The log.
    """

    def __init__(self, served: Served, path: Path) -> None:
        super().__init__(served)
        if served.view.spread is None:
            raise InputError(f"--live needs a model that spreads predictions. {served.refusal or served.view.refusal}")
        graph = served.fitted.graph
        if graph.feature_shape is None or len(graph.feature_shape) != 2:
            raise InputError("--live needs a graph whose nodes have columns of features.")
        self._live = live_of(served.fitted, history=1)
        compile_edits(len(served.classes))
        self._graph, self._lock = graph, served.lock
        self._free = graph.n_nodes  # the position that the next new node gets
        self._training, self._validation = served.view.training, served.view.validation
        self._names, self._texts = served.view.names, served.view.texts
        self._fresh = True
        self.log = EditLog(path, graph.fingerprint)
        for begin in range(0, len(self.log.batches), _TOGETHER):
            edits = [edit for batch in self.log.batches[begin : begin + _TOGETHER] for edit in batch]
            try:
                self._make(edits)
            except (Fault, InputError, KeyError, TypeError) as error:
                self.log.close()
                raise InputError(
                    f"The log {str(path)!r} has an edit after batch {begin} that this graph does not allow: {error}"
                ) from error
        self._fresh = not self.log.batches
        self.log.batches = []

    @property
    def ready(self) -> bool:
        """Whether edits can be written."""
        return not self.log.broken

    def recover(self) -> bool:
        """Try to bring the log in order after a failed write, and return whether that worked."""
        with self._lock, suppress(OSError):
            self.log.repair()
        return self.ready

    @property
    def present(self) -> View | None:
        """The view, or None where edits have made it out of date."""
        return self.served.view if self._fresh else None

    @property
    def sequence(self) -> int:
        """Number of the last batch."""
        return self.log.sequence

    def card(self) -> dict[str, Any]:
        """Return the model card."""
        self.refresh()
        return self.served.card(live=True)

    def refresh(self) -> View:
        """Return the view as it is after all edits."""
        with self._lock:
            if not self._fresh:
                graph, nodes = self._live.graph, self._live.nodes
                keys: Any = nodes.tolist() if graph.ids is None else graph.ids.tolist()
                new = np.zeros(self._free - len(self._training), dtype=bool)
                view = self.served.view_of(
                    graph,
                    keys,
                    np.concatenate([self._training, new])[nodes],
                    np.concatenate([self._validation, new])[nodes],
                    self._taken(self._names, nodes),
                    self._taken(self._texts, nodes),
                    sequence=self.sequence,
                )
                self.served.view = view.prepared()
                self._fresh = True
            return self.served.view

    def edit(self, edits: Sequence[Edit]) -> int:
        """Make a batch of edits, all or none; it is on the disk when its number is returned."""
        with self._lock:
            before = self._free
            self._make(edits)
            try:
                sequence = self.log.append(edits)
            except OSError as error:
                self._live.undo()
                self._free = before
                reason = error.strerror or str(error)
                raise Fault(
                    503,
                    "log",
                    f"The log of edits cannot be written: {reason}. The graph is unchanged; send the edits again.",
                ) from error
            self._fresh = False
            return sequence

    def _make(self, edits: Sequence[Edit]) -> None:
        """Make edits in their order, all or none."""
        new: dict[str, int | None] = {}  # positions of new nodes by the text of their id, None of nodes that are gone
        free = self._free
        calls: list[tuple[Any, ...]] = []
        for edit in edits:
            calls.append(self._call(edit, new, free))
            free += edit["op"] == "add_node"
        try:
            with np.errstate(all="ignore"):  # features may be so large that the network fails, which is refused
                self._live.apply(calls, places=[place(k, edit) for k, edit in enumerate(edits)])
        except EdgeError as error:
            error.function = ""
            if error.where is not None and error.where.edit is not None:
                edit = edits[error.where.edit]
                error.u, error.v = f"{edit['source']!r:.80}", f"{edit['target']!r:.80}"
            raise Fault(409, "edit", str(error)) from error
        except InputError as error:
            raise Fault(409, "edit", str(error)) from error
        self._free = free

    def _call(self, edit: Edit, new: dict[str, int | None], free: int) -> tuple[Any, ...]:
        """Return an edit as `LiveGraph.apply` takes it, and note what becomes of ids."""
        op = edit["op"]
        if op in ("add_edge", "remove_edge"):
            ends = self._position(edit["source"], new), self._position(edit["target"], new)
            return ("add_edge", *ends, edit["weight"]) if op == "add_edge" else ("remove_edge", *ends)
        if op == "add_node":
            key = self._new_key(edit["id"], new, free)
            new[str(key)] = free
            row = feature_row(self._graph, edit["features"]).values
            named = {"id": None if self._graph.ids is None else key}
            return "add_node", row if not isinstance(row, np.ndarray) else row[0], named
        at = self._position(edit["id"], new)
        if op == "remove_node":
            new[str(edit["id"])] = None
            return "remove_node", at
        row = feature_row(self._graph, edit["features"]).values
        return "set_features", at, row if not isinstance(row, np.ndarray) else row[0]

    def _new_key(self, key: Any, new: dict[str, int | None], free: int) -> Any:
        """Return the id of a new node, of the type of the others."""
        ids = self._graph.ids
        if ids is None:
            if str(key) != str(free):
                text = f"The nodes of this graph have numbers, and the next new one is {free}. Got {key!r:.60} instead."
                raise Fault(409, "edit", text)
            return free
        if ids.dtype.kind == "U":
            text = str(key)
            if not text or text.endswith("\0"):
                raise Fault(422, "invalid", "The id of a node must not be empty, nor end in a null character.")
            found: Any = text
        else:
            try:
                found = int(key)
            except ValueError:
                raise Fault(422, "invalid", f"The ids of this graph are integers. Got {key!r:.60} instead.") from None
            if not -(2**63) <= found < 2**63:
                raise Fault(422, "invalid", "The id of a node must be an integer of 64 bits.")
        if self._at(str(found), new) is not None:
            raise Fault(409, "edit", f"There is a node {found!r:.80} in the graph already.")
        return found

    def _at(self, text: str, new: dict[str, int | None]) -> int | None:
        """Return the position of an id in the graph as the edits so far leave it."""
        if text in new:
            return new[text]
        ids = self._graph.ids
        try:
            if ids is None:
                at = int(text) if text.isascii() and text.isdigit() else -1
                alive = self._live.nodes
                place = int(np.searchsorted(alive, at))
                return at if place < len(alive) and alive[place] == at and str(at) == text else None
            key: Any = text if ids.dtype.kind == "U" else int(text)
            return int(self._live.positions([key])[0])
        except (InputError, ValueError, OverflowError):
            return None

    def _position(self, key: Any, new: dict[str, int | None]) -> int:
        at = self._at(str(key), new)
        if at is None:
            raise Fault(404, "unknown_node", f"There is no node {str(key)[:80]!r} in the graph.")
        return at

    @staticmethod
    def _taken(texts: Sequence[str | None] | None, nodes: Any) -> list[str | None] | None:
        if texts is None:
            return None
        return [texts[at] if at < len(texts) else None for at in nodes.tolist()]


def place(index: int, edit: Edit) -> str:
    """Return what a sentence calls an edit.

    >>> place(0, {"op": "remove_edge", "source": "a", "target": "b"})
    "edit 1 (remove_edge 'a' 'b')"
    """
    names = [edit[part] for part in ("source", "target", "id") if part in edit]
    return f"edit {index + 1} ({edit['op']} {' '.join(f'{name!r:.60}' for name in names)})"
