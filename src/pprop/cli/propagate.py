"""``pprop propagate``: spread predictions from anywhere over a graph, the paper's inference-only use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from pprop._errors import FormatError, InputError
from pprop._validate import check_choice, counted, listed
from pprop.cli.errors import Checks, UsageError
from pprop.cli.graphs import GraphArgument, GraphInput, StructureTables, TableFiles
from pprop.cli.models import FORMATS, Column, csv_text, write_table
from pprop.cli.output import Session, check_file, new_file, picked
from pprop.cli.verbs import BackendOption, ForceOption, option, out_option, setting, verb, within
from pprop.settings import ALPHA, BACKEND, NORMALIZATION, POSITIVE_ALPHA, STEPS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.graph import Graph
    from pprop.graph.tables.table import DataTable
    from pprop.propagation import Solver

NUMBERS = (*FORMATS, ".npy")


@verb(
    "propagate",
    "pprop propagate citeseer scores.npy --alpha 0.1 --out spread.npy",
    "pprop propagate edges.csv scores.csv --normalization row --exact --out spread.csv",
    "pprop propagate edges.csv scores.csv --solver chebyshev --tol 1e-6 --out spread.csv",
    panel="Propagation",
    checks=True,
)
def propagate(
    session: Session,
    graph: GraphArgument,
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="Numbers per node in .csv, .parquet (with ids) or .npy.")
    ],
    *,
    alpha: Annotated[float, setting(ALPHA)] = ALPHA.default,
    steps: Annotated[int | None, option(f"Power steps.  [default: {STEPS.default}]", rule=STEPS.rule)] = None,
    exact: Annotated[bool, option("Solve exactly instead of by power steps.", "--exact")] = False,
    solver: Annotated[
        str | None, option("Solver to a tolerance instead: chebyshev, cg (both undirected) or contraction (any graph).")
    ] = None,
    tol: Annotated[
        float | None,
        option(
            "Relative error that --solver certifies.  [default: 1e-06, in float32 about 2e-06 / alpha]",
            rule=within("(0, 1)"),
        ),
    ] = None,
    normalization: Annotated[
        str, option("Normalisation: sym, row (probabilities stay probabilities) or col.", rule=NORMALIZATION.rule)
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

    The predictions may come from any model: logits, probabilities or scores, one row per node. Rows are matched by id if
    the graph has ids and PREDICTIONS has a column of ids; otherwise row k belongs to node k. The result has the rows of
    PREDICTIONS in their order.
    """
    from pprop.kernels import choose_backend
    from pprop.propagation.tolerance import TOLERANCE_SOLVERS, check_solver

    origin, checks = GraphInput(graph, tables), session.checks
    if sum((exact, steps is not None, solver is not None)) > 1:
        checks.add(UsageError("Give one of --steps, --exact and --solver: they are different ways to compute."))
    if tol is not None and solver is None:
        checks.add(UsageError("--tol needs --solver chebyshev, cg or contraction."))
    checks.run(check_file, out, force=force, formats=NUMBERS)
    if out is None and session.json:
        checks.add(UsageError("--json needs --out FILE for the numbers."))
    powers = None if exact or solver is not None else (STEPS.default if steps is None else steps)
    if powers is None:
        checks.run(POSITIVE_ALPHA.check, alpha, "propagate")
    if solver is not None:
        checks.run(check_choice, solver, "solver", "propagate", list(TOLERANCE_SOLVERS))
    if tables.directed and solver is not None:
        checks.run(check_solver, solver, "propagate")
    checks.run(choose_backend, backend, "cpu", "propagate")
    checks.run(origin.check)
    checks.run(check_rows, predictions, columns, origin.files)
    checks.settle()
    chosen = _solver(powers, solver, tol)
    known = origin.read()
    rows = read_rows(predictions, known, tables.id_column, columns, session, origin.files)

    import numpy as np

    from pprop.propagation import CertifiedSolution, solve

    by_node = np.empty_like(rows.values)
    by_node[rows.nodes] = rows.values
    solution = solve(known, by_node, alpha, chosen, normalization, backend=backend)
    values = solution.value[rows.nodes]
    table = {**rows.ids, **dict(zip(rows.names, values.reshape(len(values), -1).T, strict=True))}
    if out is None:
        session.result({}, csv_text(table))
        return
    if out.suffix.lower() == ".npy":
        with new_file(out, session, force=force) as stream:
            np.save(stream, values, allow_pickle=False)
    else:
        write_table(out, [table], session, force=force)
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
    from pprop.propagation import Exact, PowerIteration
    from pprop.propagation.tolerance import TOLERANCE_SOLVERS

    if name is None:
        return Exact() if steps is None else PowerIteration(steps)
    return TOLERANCE_SOLVERS[name](tol)


@final
@dataclass(frozen=True)
class Rows:
    """Numbers of all nodes in the order of a file.

    Attributes
    ----------
    ids
        The column of ids by its name, empty where there is none.
    names, values
        Names of the columns of numbers, and the numbers, shape (n,) or (n, c).
    nodes
        The node of each row, shape (n,).
    """

    ids: dict[str, Column]
    names: list[str]
    values: NDArray[Any]
    nodes: NDArray[np.int64]


def check_rows(path: Path, columns: str | None, files: TableFiles) -> None:
    """Refuse a file that cannot be read as numbers, or that lacks the columns that are named, before any row is read."""
    with Checks() as checks:
        if not path.exists():
            checks.add(FileNotFoundError(f"There is no file {str(path)!r}."))
        if path.suffix.lower() not in NUMBERS:
            checks.add(FormatError(f"PREDICTIONS must be a .csv, .parquet or .npy file. Got {str(path)!r} instead."))
        elif path.suffix.lower() != ".npy" and path.exists():
            names = {f"columns[{at}]": name for at, name in enumerate(_names(columns))}
            checks.run(lambda: files.header(str(path), "predictions").check_columns(names))
        elif path.suffix.lower() == ".npy" and columns is not None:
            checks.add(UsageError("--columns names columns, and an .npy file has no names."))


def _names(columns: str | None) -> list[str]:
    return [] if columns is None else [name.strip() for name in columns.split(",")]


def read_rows(
    path: Path, graph: Graph, id_column: str, columns: str | None, session: Session, files: TableFiles
) -> Rows:
    """Read a .csv, .parquet or .npy file with one row for each node of the graph."""
    if path.suffix.lower() != ".npy":
        return _read_table(files.table(str(path), "predictions"), path, graph, id_column, columns, session)
    import numpy as np

    try:  # nothing is unpickled, and the size is checked against the header before memory is taken
        values = np.array(np.lib.format.open_memmap(path, mode="r"))
    except (ValueError, EOFError) as error:  # a header that lies, objects that would be unpickled, an empty file
        raise FormatError(f"The file {str(path)!r} is not a sound .npy file of numbers, as its suffix says.") from error
    if values.ndim not in (1, 2) or len(values) != graph.n_nodes:
        raise FormatError(
            f"An .npy file of predictions must have one row for each of the {graph.n_nodes} nodes. "
            f"Got an array of shape {values.shape} in {str(path)!r} instead."
        )
    names = [f"column_{k}" for k in range(1 if values.ndim == 1 else values.shape[1])]
    return Rows({} if graph.ids is None else {"id": graph.ids.tolist()}, names, values, np.arange(len(values)))


def _read_table(
    table: DataTable, path: Path, graph: Graph, id_column: str, columns: str | None, session: Session
) -> Rows:
    import numpy as np

    if columns is None:
        others = {id_column, "class"}  # the class that 'pprop predict' writes is a name even where it is a number
        names = [name for name in table.columns if name not in others and table.is_numeric(name)]
        left = [name for name in table.columns if name not in names and name != id_column]
        if left:
            session.say(f"Left out, since they are not numbers to be spread: {listed(left)}.")
    else:
        names = _names(columns)
    if not names:
        raise FormatError(f"The table {str(path)!r} has no column of numbers besides {id_column!r}.")
    values = np.stack([table.numbers(name, "columns") for name in names], axis=1)
    keys = table.texts(id_column, "id_column").to_pylist() if id_column in table.columns else None
    if keys is not None and graph.ids is not None:
        nodes = _match(path, keys, graph.ids)
        return Rows({id_column: graph.ids[nodes].tolist()}, names, values, nodes)
    if len(values) != graph.n_nodes:
        why = "has no ids" if graph.ids is None else f"has ids, but the table has no column {id_column!r}"
        raise InputError(
            f"The table {str(path)!r} has {counted(len(values), 'row')} for {counted(graph.n_nodes, 'node')}. "
            f"The graph {why}, so row k belongs to node k."
        )
    if graph.ids is not None:
        session.say(f"No column {id_column!r} in {path.name}: row k is taken for node k.")
    return Rows({} if keys is None else {id_column: keys}, names, values, np.arange(len(values)))


def _match(path: Path, keys: list[str], ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the node of each row; every node must have exactly one."""
    import numpy as np

    position = {str(key): index for index, key in enumerate(ids.tolist())}
    given = set(keys)
    unknown, missing = [key for key in keys if key not in position], [key for key in position if key not in given]
    faults: list[str] = []
    if unknown:
        faults.append(f"{counted(len(unknown), 'row')} with ids that are not in the graph ({listed(unknown, 3)})")
    if missing:
        faults.append(f"{counted(len(missing), 'node')} of the graph without a row ({listed(missing, 3)})")
    if len(given) < len(keys):
        faults.append(f"{counted(len(keys) - len(given), 'row')} with an id that came before")
    if faults:
        raise InputError(
            f"The table {str(path)!r} must have one row for each of the graph's {counted(len(position), 'node')}. "
            f"Got {'; '.join(faults)}."
        )
    return np.array([position[key] for key in keys], dtype=np.int64)
