"""``pprop live``: edits of a saved model's graph, and the predictions that follow them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop.cli.edits import FORMS, STANDARD_INPUT, Edit, make_edits, read_edits
from pprop.cli.graphs import GraphInput
from pprop.cli.models import ModelArgument, load_model
from pprop.cli.output import DebugOption, JsonOption, Session
from pprop.cli.tables import check_suffix, write_table
from pprop.cli.targets import ForceOption, check_file
from pprop.cli.text import KEEP_LINES, columns, counted, examples

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.graph import Graph
    from pprop.propagation import LiveGraph, LiveUpdate

__all__ = ["EPILOG", "live"]

EXAMPLES = (
    "pprop live model edits.txt",
    "echo '+ anna bert' | pprop live model --json",
    "pprop live model edits.txt --tol 1e-6 --out predictions.csv",
)
EPILOG = (
    examples(*EXAMPLES) + f"\n\n{KEEP_LINES}\nEdits, one a line:\n" + "\n".join(f"  {form}" for form in FORMS.values())
)
SHOWN = 20
"""Nodes of another class that are printed; --json has them all."""


def live(
    model: ModelArgument,
    edits: Annotated[
        str, typer.Argument(metavar="EDITS", help="A file with an edit on each line; - or none: standard input.")
    ] = STANDARD_INPUT,
    graph: Annotated[
        str | None,
        typer.Option("--graph", metavar="GRAPH", help="A dataset's name or file in place of the one that DIR names."),
    ] = None,
    tol: Annotated[
        float,
        typer.Option("--tol", help="Largest error of a logit, in units of the root of its node's degree."),
    ] = 1e-4,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Predictions after all edits, .csv or .parquet.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Tell how predictions change when the graph does, without training or solving anew.

    Each edit is followed by corrections around it alone. Names are ids, or positions from 0 on if the graph has no ids;
    those with spaces are quoted. An edge has weight one unless it is given. FEATURES are all numbers of the node in the
    order of the columns, or COLUMN=VALUE for those that are not zero. An edit that is not possible ends it all, and
    nothing is printed or written. The folder of the model stays as it is.
    """
    with Session("live", json=json, debug=debug) as session:
        if out is not None:
            check_suffix(out)
            check_file(out, force=force)
        planned = read_edits(edits)
        fitted = load_model(model, None if graph is None else GraphInput.of(graph).read())
        if fitted.graph_changed_:
            session.say(f"Note: {graph!r} is not the graph of the training.")
        from pprop.estimators import live as make_live

        changing = make_live(fitted, tol=tol, history=0)
        before = changing.predict()
        done = make_edits(changing, fitted.graph_, planned)
        if out is not None:
            from pprop.cli.node_table import columns_of

            table = columns_of(changing, changing.graph, changing.nodes, fitted.classes_)
            write_table(out, table, session, force=force)
        changed = _changed(changing, fitted.graph_, before)
        record: dict[str, Any] = {
            "model": str(model),
            "out": out,
            "graph_changed": fitted.graph_changed_,
            "alpha": changing.alpha,
            "tol": changing.tol,
            "difference": None if changing.difference is None else vars(changing.difference),
            "nodes": len(changing.nodes),
            "fingerprint": changing.fingerprint,
            "bound": float(changing.error_bound().max()),
            "pushes": sum(update.pushes for update in done),
            "entries": sum(update.entries for update in done),
            "edits": [_edit(edit, update) for edit, update in zip(planned, done, strict=True)],
            "changed": changed,
        }
        session.result(record, _text(record))


def _edit(edit: Edit, update: LiveUpdate) -> dict[str, Any]:
    return {"line": edit.line, "edit": edit.text, "pushes": update.pushes, "entries": update.entries}


def _changed(changing: LiveGraph, start: Graph, before: NDArray[Any]) -> list[dict[str, Any]]:
    """Return the nodes that are new, or whose class is another than at the start."""
    import numpy as np

    nodes = changing.nodes
    after = changing.predict()
    old = nodes < len(before)
    differs = ~old
    differs[old] = after[old] != before[nodes[old]]
    which: NDArray[np.intp] = np.flatnonzero(differs)
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
    """Return what happened, for people."""
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
                one["node"],
                "" if one["before"] is None else one["before"],
                one["after"],
                "yes" if one["certain"] else "no",
            ]
            for one in changed[:SHOWN]
        ]
        lines += ["", columns(["node", "before", "after", "certain"], rows, left=(0, 1, 2, 3))]
    if len(changed) > SHOWN:
        lines.append(f"and {len(changed) - SHOWN:,} more")
    return "\n".join([*lines, *([f"Predictions: {record['out']}"] if record["out"] else [])])
