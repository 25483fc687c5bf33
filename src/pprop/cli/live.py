"""``pprop live``: edits of a saved model's graph as lines of text, and the predictions that follow them.

All edits are read and checked first, then made together; an error names the line of its edit.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from pprop._errors import EdgeError, FormatError, InputError, Where
from pprop._validate import counted
from pprop.cli.graphs import GraphInput, OtherGraphOption, node_keys
from pprop.cli.models import FORMATS, ModelArgument, check_model, columns_of, load_model, write_table
from pprop.cli.output import Session, check_file, columns, picked
from pprop.cli.verbs import ForceOption, option, out_option, verb
from pprop.settings import LIVE_TOL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pprop.graph import Graph
    from pprop.propagation import LiveGraph, LiveUpdate

# how an edit is written, and how many words follow the first one, at least and at most
FORMS = {
    "+": ("+ A B [WEIGHT]", 2, 3),
    "-": ("- A B", 2, 2),
    "=": ("= A B WEIGHT", 3, 3),
    "node": ("node NAME FEATURES...", 2, math.inf),
    "features": ("features NAME FEATURES...", 2, math.inf),
    "remove": ("remove NAME", 1, 1),
}
STANDARD_INPUT = "-"
SHOWN = 20  # Nodes of another class that are printed; --json has them all.


@verb(
    "live",
    "pprop live model edits.txt",
    "echo '+ anna bert' | pprop live model --json",
    "pprop live model edits.txt --tol 1e-6 --out predictions.csv",
    notes="\n  ".join(["Edits, one a line:", *(form for form, _, _ in FORMS.values())]),
    checks=True,
)
def live(
    session: Session,
    model: ModelArgument,
    edits: Annotated[
        str, typer.Argument(metavar="EDITS", help="A file with an edit on each line; - or none: standard input.")
    ] = STANDARD_INPUT,
    graph: OtherGraphOption = None,
    tol: Annotated[
        float,
        option("Largest error of a logit, in units of the root of its node's degree.", rule=LIVE_TOL.rule),
    ] = LIVE_TOL.default,
    out: Annotated[Path | None, out_option("Predictions after all edits, .csv or .parquet.")] = None,
    force: ForceOption = False,
) -> None:
    """Show how predictions change when the graph does, without training or solving again.

    All edits are made together, in their order, and followed by corrections where they matter. Names are ids, or positions
    from 0 on if the graph has no ids; those with spaces are quoted. An edge has weight one unless it is given. FEATURES are
    all numbers of the node in the order of the columns, or COLUMN=VALUE for those that are not zero. If an edit is not
    possible, none is made, and nothing is printed or written. The folder of the model stays as it is.
    """
    origin, checks = None if graph is None else GraphInput(graph), session.checks
    checks.run(check_file, out, force=force, formats=FORMATS)
    checks.run(check_model, model, origin)
    if checks and edits == STANDARD_INPUT:  # which may wait for somebody to type
        checks.settle()
    planned = checks.run(read_edits, edits) or []
    checks.settle()
    fitted = load_model(model, origin, session)
    from pprop.estimators import live as make_live

    changing = make_live(fitted, tol=tol, history=0)
    before = changing.predict()
    done = make_edits(changing, fitted.graph_, planned)
    if out is not None:
        table = columns_of(changing, changing.graph.ids, changing.nodes, fitted.classes_)
        write_table(out, [table], session, force=force)
    record: dict[str, Any] = {
        "model": model,
        "out": out,
        "graph_changed": fitted.graph_changed_,
        **picked(changing, "alpha", "tol"),
        "difference": None if changing.difference is None else vars(changing.difference),
        "nodes": len(changing.nodes),
        "fingerprint": changing.fingerprint,
        "bound": float(changing.error_bound().max()),
        **picked(done, "pushes", "entries", "summed_up"),
        "edits": [{"line": edit.line, "edit": edit.text} for edit in planned],
        "changed": _changed(changing, fitted.graph_, before),
    }
    session.result(record, _text(record))


def _changed(changing: LiveGraph, start: Graph, before: NDArray[Any]) -> list[dict[str, Any]]:
    """Return the nodes that are new, or whose class is another than at the start."""
    import numpy as np

    nodes = changing.nodes
    after = changing.predict()
    old = nodes < len(before)
    differs = ~old
    differs[old] = after[old] != before[nodes[old]]
    which = np.flatnonzero(differs)
    names = nodes if start.ids is None else changing.graph.ids
    assert names is not None
    logits, bounds = np.sort(changing.logits(nodes[which]), axis=1), changing.error_bound(nodes[which])
    return [
        {
            "node": names[at].item(),
            "before": before[nodes[at]].item() if old[at] else None,
            "after": after[at].item(),
            "bound": float(bound),
            "certain": bool(row[-1] - row[-2] > 2 * bound),  # no error within the bound could change it
        }
        for at, row, bound in zip(which.tolist(), logits, bounds, strict=True)
    ]


def _text(record: dict[str, Any]) -> str:
    difference, changed = record["difference"], record["changed"]
    lines = [
        f"{counted(len(record['edits']), 'edit')}: {counted(record['entries'], 'entry', 'entries')} of the adjacency "
        f"read, {counted(record['pushes'], 'correction')}.",
        f"Predictions are the fixed point at alpha {record['alpha']:g}, no logit further than {record['bound']:.2g} from it.",
        f"At the start it differs from {difference['solver']} by at most {difference['largest']:.2g}, and in the class of "
        f"{counted(difference['classes'], 'node')}.",
        f"{counted(len(changed), 'node')} new or of another class than at the start{':' if changed else '.'}",
    ]
    if changed:
        rows = [
            [
                *("" if each[key] is None else each[key] for key in ("node", "before", "after")),
                "yes" if each["certain"] else "no",
            ]
            for each in changed[:SHOWN]
        ]
        lines += ["", columns(["node", "before", "after", "proven"], rows, left=(0, 1, 2, 3))]
    if len(changed) > SHOWN:
        lines.append(f"and {len(changed) - SHOWN:,} more")
    if record["out"]:
        lines.append(f"Predictions: {record['out']}")
    return "\n".join(lines)


@final
@dataclass(frozen=True)
class Edit:
    """One line of edits.

    Attributes
    ----------
    place
        File and number of the line, for errors.
    line, text
        The number, from 1 on, and the line.
    verb
        A key of `FORMS`.
    words
        The names after it.
    weight
        Of a new edge, or another weight of an edge.
    features
        Of a node: numbers by the name of their column, or in the order of all columns.
    """

    place: str
    line: int
    text: str
    verb: str
    words: tuple[str, ...]
    weight: float = 1.0
    features: dict[str, float] | list[float] = field(default_factory=list[float])


def read_edits(source: str) -> list[Edit]:
    """Read all edits of a file, or with ``-`` of standard input; empty lines and those that begin with # are skipped."""
    title = "standard input" if source == STANDARD_INPUT else repr(source)
    try:
        content = sys.stdin.read() if source == STANDARD_INPUT else Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"EDITS must be text in UTF-8. Got {title} with other bytes instead.") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {title}.") from error
    lines = ((number, line.strip()) for number, line in enumerate(content.split("\n"), start=1))
    return [parse_edit(line, number, title) for number, line in lines if line and not line.startswith("#")]


def parse_edit(text: str, line: int = 1, title: str = "standard input") -> Edit:
    """Return the edit of a line.

    >>> edit = parse_edit("+ anna 'van Dyk' 2.5")
    >>> edit.verb, edit.words, edit.weight
    ('+', ('anna', 'van Dyk'), 2.5)
    >>> parse_edit("- anna", line=7)
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: Line 7 of standard input, '- anna': An edit '-' is written: - A B.
    """
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    place = f"Line {line} of {title}, {shown!r}"
    with _at(place):
        try:
            verb, *words = shlex.split(text)
        except ValueError as error:
            raise FormatError(f"A quotation is not closed ({error}).") from error
        if verb not in FORMS:
            raise FormatError(f"An edit begins with {', '.join(FORMS)}. Got {verb!r} instead.")
        form, least, most = FORMS[verb]
        if not least <= len(words) <= most:
            raise FormatError(f"An edit {verb!r} is written: {form}.")
        if verb in ("+", "="):
            weight = _number(words[2], "weight") if len(words) == 3 else 1.0
            if weight <= 0:
                raise FormatError(f"A weight is a positive number. Got {words[2]!r} instead.")
            return Edit(place, line, text, verb, tuple(words[:2]), weight=weight)
        if verb in ("node", "features"):
            return Edit(place, line, text, verb, (words[0],), features=_features(words[1:]))
        return Edit(place, line, text, verb, tuple(words))


def make_edits(live: LiveGraph, graph: Graph, edits: Sequence[Edit]) -> LiveUpdate:
    """Make edits together, in their order, and return their cost; `graph` is the one that was made live."""
    new: dict[Any, int | None] = {}  # positions of new nodes by id, None of nodes that are gone
    calls: list[tuple[Any, ...]] = []
    free = graph.n_nodes  # the position that the next new node gets
    for edit in edits:
        with _at(edit.place):
            calls.append(_call(live, graph, edit, new, free))
        free += edit.verb == "node"
    try:
        return live.apply(calls, places=[edit.place for edit in edits])
    except EdgeError as error:
        if error.where is not None and error.where.edit is not None:
            error.u, error.v = edits[error.where.edit].words
            error.function = ""
        raise


def _call(live: LiveGraph, graph: Graph, edit: Edit, new: dict[Any, int | None], free: int) -> tuple[Any, ...]:
    """Return an edit as `LiveGraph.apply` takes it, and note what becomes of ids."""
    if edit.verb == "node":
        (key,) = node_keys(graph.ids, edit.words)
        if graph.ids is None and key != free:
            have = f"The nodes of this graph have positions, and the next new one is {free}"
            raise InputError(f"{have}. Got {key} instead.")
        new[key] = free
        return "add_node", _row(graph, edit.features), {"id": None if graph.ids is None else key}
    at = [_position(live, graph, name, new) for name in edit.words]
    if edit.verb == "-":
        return "remove_edge", *at
    if edit.verb == "features":
        return "set_features", *at, _row(graph, edit.features)
    if edit.verb == "remove":
        new[node_keys(graph.ids, edit.words)[0]] = None
        return "remove_node", *at
    return "add_edge" if edit.verb == "+" else "set_weight", *at, edit.weight


def _position(live: LiveGraph, graph: Graph, name: str, new: dict[Any, int | None]) -> int:
    (key,) = node_keys(graph.ids, [name])
    if graph.ids is None:
        return key
    try:
        at = new[key] if key in new else int(live.positions([key])[0])
    except InputError:
        at = None
    if at is None:
        raise InputError(f"There is no node {name!r} in the graph.")
    return at


def _row(graph: Graph, given: dict[str, float] | list[float]) -> Any:
    """Return the features of one node, sparse where those of the graph are."""
    import numpy as np
    from scipy import sparse

    known = graph.features
    if known is None or known.ndim != 2:
        has = "none" if known is None else f"arrays of shape {known.shape[1:]}, which no line can hold"
        raise InputError(f"Features are columns of numbers, and the nodes of this graph have {has}.")
    row, width = np.zeros(known.shape[1], known.dtype), known.shape[1]
    if isinstance(given, list):
        if len(given) != width:
            raise InputError(f"A node has {width} features. Got {len(given)} instead; or write COLUMN=VALUE.")
        row[:] = given
    else:
        names = graph.feature_names or [str(column) for column in range(width)]
        place = {name: column for column, name in enumerate(names)}
        for name, value in given.items():
            if name not in place:
                what = "the columns are" if graph.feature_names else "they have no names, so columns are"
                raise InputError(f"There is no feature {name!r}: {what} {names[0]!r} to {names[-1]!r}.")
            row[place[name]] = value
    return sparse.csr_array(row[None]) if sparse.issparse(known) else row


def _features(words: Sequence[str]) -> dict[str, float] | list[float]:
    """Return numbers by the names of their columns, or, where none is named, in their order."""
    named = ["=" in word for word in words]
    if not any(named):
        return [_number(word, "feature") for word in words]
    if not all(named):
        raise FormatError("Features are all written COLUMN=VALUE, or all as numbers.")
    values: dict[str, float] = {}
    for name, _, value in (word.rpartition("=") for word in words):
        if name in values:
            raise FormatError(f"The feature {name!r} is given more than once.")
        values[name] = _number(value, "feature")
    return values


def _number(word: str, what: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"A {what} is a finite number. Got {word!r} instead.")
    return value


@contextmanager
def _at(place: str) -> Generator[None]:
    """Put the place before the sentence of an error."""
    try:
        yield
    except InputError as error:
        error.at(Where(title=place))
        raise
