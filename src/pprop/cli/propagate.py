"""``pprop propagate``: spread predictions from anywhere over a graph, the paper's inference-only use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pprop.cli.graphs import GraphArgument, GraphInput, StructureTables
from pprop.cli.output import Session, check_file, counted, new_file, picked
from pprop.cli.tables import NUMBERS, csv_text, read_rows, write_table
from pprop.cli.verbs import AlphaOption, BackendOption, ForceOption, option, out_option, verb
from pprop.settings import BACKEND, NORMALIZATION, POSITIVE_ALPHA, STEPS

if TYPE_CHECKING:
    from pprop.propagation import Solution, Solver


@verb(
    "propagate",
    "pprop propagate citeseer scores.npy --alpha 0.1 --out spread.npy",
    "pprop propagate edges.csv scores.csv --normalization row --exact --out spread.csv",
    "pprop propagate edges.csv scores.csv --solver chebyshev --tol 1e-6 --out spread.csv",
    panel="Propagation",
)
def propagate(
    session: Session,
    graph: GraphArgument,
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="Numbers per node in .csv, .parquet (with ids) or .npy.")
    ],
    *,
    alpha: AlphaOption = POSITIVE_ALPHA.default,
    steps: Annotated[int | None, option(f"Power steps.  [default: {STEPS.default}]")] = None,
    exact: Annotated[bool, option("Solve exactly instead of by power steps.", "--exact")] = False,
    solver: Annotated[
        str | None, option("To a tolerance instead: chebyshev, cg (both undirected) or contraction (any graph).")
    ] = None,
    tol: Annotated[
        float | None,
        option("Relative error that --solver certifies.  [default: 1e-06, in float32 about 2e-06 / alpha]"),
    ] = None,
    normalization: Annotated[
        str, option("sym, row (probabilities stay probabilities) or col.")
    ] = NORMALIZATION.default,
    columns: Annotated[
        str | None, option("Columns of PREDICTIONS, separated by commas; by default all numeric columns.")
    ] = None,
    backend: BackendOption = BACKEND.default,
    tables: StructureTables,
    out: Annotated[Path | None, out_option(".csv, .parquet or .npy; without it, CSV is printed.")] = None,
    force: ForceOption = False,
) -> None:
    """Spread predictions over a graph by personalized PageRank.

    The predictions may come from any model: logits, probabilities or scores, one row per node. Where the graph has ids
    and PREDICTIONS has a column of ids, rows are matched by id; otherwise row k belongs to node k. The result has the
    rows of PREDICTIONS, in their order.
    """
    if sum((exact, steps is not None, solver is not None)) > 1:
        raise typer.BadParameter("Give one of --steps, --exact and --solver: they are different ways to compute.")
    if tol is not None and solver is None:
        raise typer.BadParameter("--tol needs --solver chebyshev, cg or contraction.")
    check_file(out, force=force, formats=NUMBERS)
    if out is None and session.json:
        raise typer.BadParameter("--json needs --out FILE for the numbers.")
    known = GraphInput(graph, tables).read()
    rows = read_rows(predictions, known, tables.id_column, columns, session)

    import numpy as np

    from pprop.propagation import CertifiedSolution, solve

    by_node = np.empty_like(rows.values)
    by_node[rows.nodes] = rows.values
    powers = None if exact or solver is not None else (STEPS.default if steps is None else steps)
    solved = solve(known, by_node, alpha, _solver(powers, solver, tol), normalization, backend=backend)
    solution = cast("Solution | CertifiedSolution", solved)  # which one depends on the name of the solver
    values = solution.value[rows.nodes]
    table = {**rows.ids, **dict(zip(rows.names, values.reshape(len(values), -1).T, strict=True))}
    if out is None:
        session.result({}, csv_text(table))
        return
    if out.suffix.lower() == ".npy":
        with new_file(out, session, force=force) as stream:
            np.save(stream, values, allow_pickle=False)
    else:
        write_table(out, table, session, force=force)
    statistics = solution.statistics
    record: dict[str, Any] = {
        "out": out,
        "nodes": known.n_nodes,
        "columns": rows.names,
        "alpha": alpha,
        "solver": solver or ("exact" if exact else "power iteration"),
        "steps": powers,
        "normalization": normalization,
        "outcome": solution.outcome.value,
        **picked(statistics, "matrix_products", "residual", "error_bound", "norm", "backend", "seconds"),
        "fingerprint": known.fingerprint,
    }
    method = "solved exactly" if powers is None else counted(powers, "power step")
    if isinstance(solution, CertifiedSolution):
        proven = solution.certificate
        record["certificate"] = picked(proven, "tol", "relative_error", "norm")
        products = counted(statistics.matrix_products, "product")
        method = f"{products} to a relative error of at most {proven.relative_error:.2g} ({proven.norm} of a column)"
    spread = f"{counted(len(rows.names), 'column')} of {counted(known.n_nodes, 'node')} spread at alpha {alpha:g}"
    session.result(record, f"{spread}, {method}, {statistics.seconds:.2f} s ({statistics.backend}): {out}")


def _solver(steps: int | None, name: str | None, tol: float | None) -> Solver:
    """Return the solver that the options name."""
    from pprop._validate import check_choice
    from pprop.propagation import Exact, PowerIteration
    from pprop.propagation.tolerance import TOLERANCE_SOLVERS

    if name is None:
        return Exact() if steps is None else PowerIteration(steps)
    return TOLERANCE_SOLVERS[check_choice(name, "solver", "propagate", list(TOLERANCE_SOLVERS))](tol)
