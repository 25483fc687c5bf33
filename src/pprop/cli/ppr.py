"""``pprop ppr``: the nodes that a node draws on, by local push, with the error that is certain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._errors import FormatError
from pprop.cli.graphs import (
    DirectedOption,
    GraphArgument,
    GraphInput,
    IdColumnOption,
    NodesOption,
    SourceOption,
    TargetOption,
    WeightOption,
    named_positions,
)
from pprop.cli.output import DebugOption, JsonOption, Session
from pprop.cli.targets import ForceOption, check_file, new_file
from pprop.cli.text import columns, counted

if TYPE_CHECKING:
    from pprop.graph import Graph
    from pprop.propagation import SparseRows

__all__ = ["EXAMPLES", "ppr"]

EXAMPLES = (
    "pprop ppr citeseer 17 --topk 10",
    "pprop ppr edges.csv anna bert --eps 1e-5 --normalization row",
    "pprop ppr cora_ml 0 1 2 --eps 1e-4 --out rows.npz",
)
SHOWN = 10
"""Entries of a row that are printed, unless --topk says otherwise."""


def ppr(
    graph: GraphArgument,
    node: Annotated[list[str], typer.Argument(metavar="NODE...", help="Ids, or positions if the graph has no ids.")],
    alpha: Annotated[float, typer.Option("--alpha", help="Teleport probability in (0, 1].")] = 0.1,
    eps: Annotated[
        float | None,
        typer.Option("--eps", help="Residual per degree to push to.  [default: 1e-4; with --topk, 1e-7 at the finest]"),
    ] = None,
    topk: Annotated[int | None, typer.Option("--topk", help="Only the K largest entries, certain if possible.")] = None,
    normalization: Annotated[str, typer.Option("--normalization", help="sym (the paper's), row or col.")] = "sym",
    self_loops: Annotated[bool, typer.Option("--self-loops/--no-self-loops", help="Add the missing ones.")] = True,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="All entries as a CSR matrix, .npz as scipy writes it.")
    ] = None,
    nodes: NodesOption = None,
    source: SourceOption = "source",
    target: TargetOption = "target",
    weight: WeightOption = None,
    id_column: IdColumnOption = "id",
    directed: DirectedOption = False,
    force: ForceOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show how much a node draws on which others: its row of the personalized PageRank matrix.

    The rows are computed from the surroundings of each NODE alone. No entry is above the exact one, and each row comes
    with a bound of its error. The matrix in --out has one row per NODE and one column per node of the graph.
    """
    with Session("ppr", json=json, debug=debug) as session:
        if out is not None:
            if out.suffix.lower() != ".npz":
                raise FormatError(f"--out must end in .npz. Got {str(out)!r} instead.")
            check_file(out, force=force)
        origin = GraphInput.of(
            graph, nodes=nodes, source=source, target=target, weight=weight, id_column=id_column, directed=directed
        )
        known = origin.read()
        at = named_positions(known, node)

        from pprop.propagation import ppr as push

        eps = 1e-4 if eps is None and topk is None else eps
        rows = push(known, at, alpha, eps, topk, normalization, self_loops)
        if out is not None:
            from scipy import sparse

            with new_file(out, session, force=force) as stream:
                sparse.save_npz(stream, rows.matrix)
        record: dict[str, Any] = {
            "graph": origin.title,
            "alpha": alpha,
            "normalization": normalization,
            "self_loops": self_loops,
            "norm": rows.norm,
            "out": out,
            "fingerprint": known.fingerprint,
            "rows": [_row(known, rows, k, whole=out is None) for k in range(len(at))],
        }
        shown = SHOWN if topk is None else topk
        text = "\n\n".join(_table(row, rows.norm, shown) for row in (_row(known, rows, k) for k in range(len(at))))
        session.result(
            record, text if out is None else f"{counted(len(at), 'row')}, {rows.matrix.nnz:,} entries: {out}"
        )


def _row(graph: Graph, rows: SparseRows, k: int, *, whole: bool = True) -> dict[str, Any]:
    """Return one row as plain numbers, largest entries first; its entries only if `whole`."""
    import numpy as np

    matrix = rows.matrix
    part = slice(matrix.indptr[k], matrix.indptr[k + 1])
    order = np.lexsort((matrix.indices[part], -matrix.data[part]))
    reached, values = matrix.indices[part][order], matrix.data[part][order]
    names = reached if graph.ids is None else graph.ids[reached]
    row: dict[str, Any] = {
        "node": int(rows.nodes[k]) if graph.ids is None else graph.ids[rows.nodes[k]].item(),
        "entries": len(values),
        "error": float(rows.error[k]),
        "eps": float(rows.eps[k]),
        "entries_touched": int(rows.entries_touched[k]),
        "certified": None if rows.certified is None else bool(rows.certified[k]),
        "certain_entries": None if rows.certain_entries is None else int(rows.certain_entries[k]),
    }
    return {**row, "nodes": names.tolist(), "values": values.tolist()} if whole else row


def _table(row: dict[str, Any], norm: str, shown: int) -> str:
    """Return one row for people."""
    pairs = list(zip(row["nodes"], row["values"], strict=True))[:shown]
    head = f"{row['node']}: {counted(row['entries'], 'entry', 'entries')}, error at most {row['error']:.2g} ({norm})"
    if row["certified"] is not None:
        head += ", certainly the largest" if row["certified"] else f", {row['certain_entries']} of them certain"
    body = columns(["node", "share"], [[name, f"{value:.6f}"] for name, value in pairs])
    rest = row["entries"] - len(pairs)
    return f"{head}\n{body}" + (f"\nand {counted(rest, 'more entry', 'more entries')}" if rest > 0 else "")
