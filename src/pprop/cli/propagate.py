"""``pprop propagate``: spread predictions from anywhere over a graph, the paper's inference-only use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

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

if TYPE_CHECKING:
    from pprop.propagation import Solution, Solver

__all__ = ["EXAMPLES", "propagate"]

EXAMPLES = (
    "pprop propagate citeseer scores.npy --alpha 0.1 --out spread.npy",
    "pprop propagate edges.csv scores.csv --normalization row --exact --out spread.csv",
    "pprop propagate edges.csv scores.csv --solver chebyshev --tol 1e-6 --out spread.csv",
)


def propagate(
    graph: GraphArgument,
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="Numbers per node in .csv, .parquet (with ids) or .npy.")
    ],
    alpha: Annotated[float, typer.Option("--alpha", help="Teleport probability in (0, 1].")] = 0.1,
    steps: Annotated[int | None, typer.Option("--steps", help="Power steps.  [default: 10]")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Solve exactly instead of by power steps.")] = False,
    solver: Annotated[
        str | None,
        typer.Option(
            "--solver", help="To a tolerance instead: chebyshev, cg (both undirected) or contraction (any graph)."
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            "--tol", help="Relative error that --solver certifies.  [default: 1e-06, in float32 about 2e-06 / alpha]"
        ),
    ] = None,
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
        if sum((exact, steps is not None, solver is not None)) > 1:
            raise typer.BadParameter("Give one of --steps, --exact and --solver: they are different ways to compute.")
        if tol is not None and solver is None:
            raise typer.BadParameter("--tol needs --solver chebyshev, cg or contraction.")
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

        from pprop.propagation import CertifiedSolution, solve

        chosen = _solver(steps, exact, solver, tol)
        solved = solve(known, rows.by_node(), alpha, chosen, normalization, backend=backend)
        solution = cast("Solution | CertifiedSolution", solved)  # which of them, only the name of the solver tells
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
        record: dict[str, Any] = {
            "out": out,
            "nodes": known.n_nodes,
            "columns": list(rows.names),
            "alpha": alpha,
            "solver": solver or ("exact" if exact else "power iteration"),
            "steps": None if exact or solver is not None else (10 if steps is None else steps),
            "normalization": normalization,
            "outcome": solution.outcome.value,
            "matrix_products": statistics.matrix_products,
            "residual": statistics.residual,
            "error_bound": statistics.error_bound,
            "norm": statistics.norm,
            "backend": statistics.backend,
            "seconds": statistics.seconds,
            "fingerprint": known.fingerprint,
        }
        method = "solved exactly" if exact else counted(10 if steps is None else steps, "power step")
        if isinstance(solution, CertifiedSolution):
            certificate = solution.certificate
            record["certificate"] = {
                "tol": certificate.tol,
                "relative_error": certificate.relative_error,
                "norm": certificate.norm,
            }
            method = (
                f"{counted(statistics.matrix_products, 'product')} to a relative error of at most "
                f"{certificate.relative_error:.2g} ({certificate.norm} of a column)"
            )
        text = (
            f"{counted(len(rows.names), 'column')} of {counted(known.n_nodes, 'node')} spread at alpha {alpha:g}, "
            f"{method}, {statistics.seconds:.2f} s ({statistics.backend}): {out}"
        )
        session.result(record, text)


def _solver(steps: int | None, exact: bool, name: str | None, tol: float | None) -> Solver:
    """Return the solver that the options name."""
    from pprop._validate import check_choice
    from pprop.propagation import Exact, PowerIteration
    from pprop.propagation.tolerance_solvers import TOLERANCE_SOLVERS

    if name is None:
        return Exact() if exact else PowerIteration(10 if steps is None else steps)
    return TOLERANCE_SOLVERS[check_choice(name, "solver", "propagate", list(TOLERANCE_SOLVERS))](tol)
