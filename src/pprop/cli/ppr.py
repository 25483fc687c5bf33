"""``pprop ppr``: the nodes that a node draws on, by local push, with a bound of the error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._validate import counted
from pprop.cli.graphs import GraphArgument, GraphInput, StructureTables, named_positions
from pprop.cli.output import Session, check_file, columns, new_file, picked
from pprop.cli.verbs import AlphaOption, ForceOption, at_least, option, out_option, verb, within
from pprop.settings import NORMALIZATION, POSITIVE_ALPHA, SELF_LOOPS

if TYPE_CHECKING:
    from pprop.graph import Graph
    from pprop.propagation import SparseRows

SHOWN = 10  # Entries of a row that are printed without --topk.


@verb(
    "ppr",
    "pprop ppr citeseer 17 --topk 10",
    "pprop ppr edges.csv anna bert --eps 1e-5 --normalization row",
    "pprop ppr cora_ml 0 1 2 --eps 1e-4 --out rows.npz",
    panel="Rows",
    checks=True,
)
def ppr(
    session: Session,
    graph: GraphArgument,
    node: Annotated[list[str], typer.Argument(metavar="NODE...", help="Ids, or positions if the graph has no ids.")],
    *,
    alpha: AlphaOption = POSITIVE_ALPHA.default,
    eps: Annotated[
        float | None,
        option(
            "Residual per degree at which the push ends.  [default: 1e-4; with --topk, 1e-7 at the finest]",
            rule=within("(0, 1)"),
        ),
    ] = None,
    topk: Annotated[
        int | None,
        option("Number of largest entries to return, proven to be the largest if possible.", rule=at_least(1)),
    ] = None,
    normalization: Annotated[
        str, option("Normalisation: sym (the paper's), row or col.", rule=NORMALIZATION.rule)
    ] = NORMALIZATION.default,
    self_loops: Annotated[
        bool, option("Add a self-loop to nodes without one.", "--self-loops/--no-self-loops")
    ] = SELF_LOOPS.default,
    tables: StructureTables,
    out: Annotated[Path | None, out_option("All entries as a CSR matrix, .npz as scipy writes it.")] = None,
    force: ForceOption = False,
) -> None:
    """Show a node's row of the personalized PageRank matrix: how much it receives from which nodes.

    Each row is computed from the neighbourhood of its node alone. Its entries are at most the exact ones, and the error is
    printed. --out saves a matrix with one row per NODE and one column per node of the graph.
    """
    origin, checks = GraphInput(graph, tables), session.checks
    checks.run(check_file, out, force=force, formats=[".npz"])
    checks.run(origin.check)
    checks.settle()
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
    if out is None:
        text = "\n\n".join(_table(row, rows.norm, SHOWN if topk is None else topk) for row in record["rows"])
    else:
        text = f"{counted(len(at), 'row')}, {rows.matrix.nnz:,} entries: {out}"
    session.result(record, text)


def _row(graph: Graph, rows: SparseRows, k: int, *, whole: bool) -> dict[str, Any]:
    """Return one row as plain numbers, largest entries first; its entries only if `whole`."""
    import numpy as np

    names = np.arange(graph.n_nodes) if graph.ids is None else graph.ids
    part = slice(*rows.matrix.indptr[k : k + 2])
    reached, values = rows.matrix.indices[part], rows.matrix.data[part]
    order = np.lexsort((reached, -values))
    facts = picked(rows, "error", "eps", "entries_touched", "certified", "certain_entries")
    row: dict[str, Any] = {
        "node": names[rows.nodes[k]].item(),
        "entries": len(values),
        **{name: None if value is None else value[k] for name, value in facts.items()},
    }
    return {**row, "nodes": names[reached[order]].tolist(), "values": values[order].tolist()} if whole else row


def _table(row: dict[str, Any], norm: str, shown: int) -> str:
    """Return one row as text."""
    pairs = list(zip(row["nodes"], row["values"], strict=True))[:shown]
    head = f"{row['node']}: {counted(row['entries'], 'entry', 'entries')}, error at most {row['error']:.2g} ({norm})"
    if row["certified"] is not None:
        head += ", proven to be the largest" if row["certified"] else f", {row['certain_entries']} of them proven"
    body = columns(["node", "share"], [[name, f"{value:.6f}"] for name, value in pairs])
    rest = row["entries"] - len(pairs)
    return f"{head}\n{body}" + (f"\nand {counted(rest, 'more entry', 'more entries')}" if rest > 0 else "")
