"""``pprop propagate``: spread predictions from anywhere over a graph, the paper's inference-only use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pprop.cli.graphs import (
    DirectedOption,
    GraphArgument,
    GraphInput,
    IdColumnOption,
    NodesOption,
    SourceOption,
    TargetOption,
    WeightOption,
)
from pprop.cli.output import DebugOption, JsonOption, Session
from pprop.cli.rows import SUFFIXES, read_rows
from pprop.cli.tables import check_suffix, print_table, write_table
from pprop.cli.targets import ForceOption, check_file, new_file
from pprop.cli.text import counted

__all__ = ["EXAMPLES", "propagate"]

EXAMPLES = (
    "pprop propagate citeseer scores.npy --alpha 0.1 --out spread.npy",
    "pprop propagate edges.csv scores.csv --normalization row --exact --out spread.csv",
)


def propagate(
    graph: GraphArgument,
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="Numbers per node in .csv, .parquet (with ids) or .npy.")
    ],
    alpha: Annotated[float, typer.Option("--alpha", help="Teleport probability in (0, 1].")] = 0.1,
    steps: Annotated[int | None, typer.Option("--steps", help="Power steps.  [default: 10]")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Solve exactly instead of by power steps.")] = False,
    normalization: Annotated[
        str, typer.Option("--normalization", help="sym, row (probabilities stay probabilities) or col.")
    ] = "sym",
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="Columns of PREDICTIONS, separated by commas; without it, all of numbers."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=".csv, .parquet or .npy; without it, CSV is printed.")
    ] = None,
    nodes: NodesOption = None,
    source: SourceOption = "source",
    target: TargetOption = "target",
    weight: WeightOption = None,
    id_column: IdColumnOption = "id",
    directed: DirectedOption = False,
    backend: Annotated[str, typer.Option("--backend", help="auto, numba or reference.")] = "auto",
    force: ForceOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Spread predictions over a graph by personalized PageRank.

    The predictions may come from any model: logits, probabilities or scores, one row per node. Where the graph has ids
    and PREDICTIONS has a column of ids, rows are matched by id; otherwise row k belongs to node k. The result has the
    rows of PREDICTIONS, in their order.
    """
    with Session("propagate", json=json, debug=debug) as session:
        if exact and steps is not None:
            raise typer.BadParameter("--exact has no steps: give one of --steps and --exact.")
        if out is not None:
            check_suffix(out, SUFFIXES)
            check_file(out, force=force)
        elif json:
            raise typer.BadParameter("--json needs --out FILE for the numbers.")
        origin = GraphInput.of(
            graph, nodes=nodes, source=source, target=target, weight=weight, id_column=id_column, directed=directed
        )
        known = origin.read()
        rows = read_rows(predictions, known, id_column, columns, session)

        from pprop.propagation import Exact, PowerIteration, solve

        steps = 10 if steps is None else steps
        solver = Exact() if exact else PowerIteration(steps)
        solution = solve(known, rows.by_node(), alpha, solver, normalization, backend=backend)
        rows = rows.with_values(solution.value)
        if out is None:
            print_table(rows.table())
            return
        if out.suffix.lower() == ".npy":
            import numpy as np

            with new_file(out, session, force=force) as stream:
                np.save(stream, rows.values, allow_pickle=False)
        else:
            write_table(out, rows.table(), session, force=force)
        statistics = solution.statistics
        record = {
            "out": out,
            "nodes": known.n_nodes,
            "columns": list(rows.names),
            "alpha": alpha,
            "solver": "exact" if exact else "power iteration",
            "steps": None if exact else steps,
            "normalization": normalization,
            "outcome": solution.outcome.value,
            "residual": statistics.residual,
            "error_bound": statistics.error_bound,
            "norm": statistics.norm,
            "backend": statistics.backend,
            "seconds": statistics.seconds,
            "fingerprint": known.fingerprint,
        }
        method = "solved exactly" if exact else counted(steps, "power step")
        text = (
            f"{counted(len(rows.names), 'column')} of {counted(known.n_nodes, 'node')} spread at alpha {alpha:g}, "
            f"{method}, {statistics.seconds:.2f} s ({statistics.backend}): {out}"
        )
        session.result(record, text)
