"""``pprop build``: a graph folder from edge lists of any length."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pprop._errors import PpropError
from pprop._validate import counted
from pprop.cli.errors import UsageError
from pprop.cli.graphs import TABLES, TableOptions
from pprop.cli.output import Session, check_folder
from pprop.cli.verbs import ForceOption, option, out_option, verb, within

FolderTables = Annotated[TableOptions, {"degree", "structure"}]


@verb(
    "build",
    "pprop build edges.parquet --out graph",
    "pprop build part-*.parquet --nodes nodes.parquet --label-column topic --features numbers --out graph",
    "pprop build edges.csv --nodes 111059956 --feature-file x.npy --directed --memory 8 --out graph",
    panel="Building",
    checks=True,
)
def build(
    session: Session,
    edges: Annotated[
        list[str], typer.Argument(metavar="EDGES...", help=f"Edge lists in {TABLES} (.gz and .zst, too).")
    ],
    *,
    tables: FolderTables,
    feature_file: Annotated[
        Path | None,
        option(
            "Features in place of columns: .npy, or sparse .npz or .data.npy, a row for each node in order.",
            metavar="FILE",
        ),
    ] = None,
    label_file: Annotated[
        Path | None, option("Class indices in .npy, -1 where unknown, for each node in order.", metavar="FILE")
    ] = None,
    memory: Annotated[
        float | None,
        option(
            "Memory for the build in GiB.  [default: 8, or half of the memory if less]",
            metavar="GIB",
            rule=within("(0, inf)"),
        ),
    ] = None,
    restart: Annotated[bool, option("Discard an interrupted build of FOLDER and begin again.", "--restart")] = False,
    out: Annotated[Path, out_option("Folder to make.", metavar="FOLDER")],
    force: ForceOption = False,
) -> None:
    """Build a graph folder from edge lists of any length, within bounded memory.

    Other commands take the folder as GRAPH. It holds the same nodes, edges and weights as the tables. --nodes is a node
    table, or the number n of nodes whose ids are 0 to n - 1. Run the same command again to continue a build that was
    interrupted.
    """
    from pprop.graph.folder_manifest import FILES, manifest_fields

    checks = session.checks
    if tables.files and feature_file is not None:
        checks.add(UsageError("--feature-file is in place of --features: leave one of them out."))
    if label_file is not None and tables.label_column is not None:
        checks.add(UsageError("--label-file is in place of --label-column: leave one of them out."))
    nodes = _nodes(tables.nodes)
    named = {"--label-column": tables.label_column, "--features": tables.named, "--column": tables.column}
    for name, value in named.items():
        if value and not isinstance(nodes, str) and value != ("numbers",):
            checks.add(UsageError(f"{name} names columns of a node table: add --nodes FILE."))
    for name, file in (("--feature-file", feature_file), ("--label-file", label_file)):
        if file is not None and nodes is None:
            order = "add --nodes, a node table with its rows in this order, or how many nodes there are"
            checks.add(UsageError(f"{name} needs the order of the nodes: {order}."))
    for file in (*edges, *([nodes] if isinstance(nodes, str) else []), *tables.files, feature_file, label_file):
        if file is not None and not Path(file).exists():
            checks.add(FileNotFoundError(f"There is no file {str(file)!r}."))
    checks.run(check_folder, out, names=FILES, force=force)
    checks.run(lambda: tables.feature_columns)
    checks.run(tables.check, *edges)
    checks.settle()
    out.parent.mkdir(parents=True, exist_ok=True)
    from pprop.graph.building.build import build_graph

    columns, options = tables.feature_columns, dict[str, Any]()
    if tables.missing_labels is not None:
        options["missing_labels"] = tuple(text.strip() for text in tables.missing_labels.split(","))
    try:
        folder = build_graph(
            edges,
            out,
            nodes=nodes,
            source=tables.source,
            target=tables.target,
            weight=tables.weight,
            directed=tables.directed,
            id_column=tables.id_column,
            label_column=tables.label_column,
            label_kind=tables.label_kind.value,
            feature_columns="numbers" if columns == ("numbers",) else columns,
            unknown_nodes=tables.unknown_nodes.value,
            features=tables.files or feature_file,
            labels=label_file,
            memory=memory,
            replace=force,
            restart=restart,
            say=session.say,
            **options,
        )
    except KeyboardInterrupt:
        if (half := out.with_name(f".{out.name}.build")).exists():
            session.keep(half)  # the same command goes on with it
        raise
    except PpropError as error:
        own = {"labels": "label_file"} | ({} if tables.files else {"features": "feature_file"})
        error.parameter = own.get(error.parameter or "", error.parameter)
        raise
    session.keep(out)
    size = sum(file.stat().st_size for file in folder.path.iterdir())
    recipe = manifest_fields(folder.manifest)["recipe"]
    unused = {} if recipe is None else dict(recipe.unused)
    record = {
        "out": out,
        "nodes": folder.n_nodes,
        "edges": folder.n_edges,
        "entries": folder.n_entries,
        "directed": folder.directed,
        "weighted": folder.weights is not None,
        "features": folder.manifest["feature_columns"],
        "classes": None if folder.class_names is None else list(folder.class_names),
        "used_columns": [] if recipe is None else list(recipe.used),
        "unused_columns": unused,
        "bytes": size,
        "fingerprint": folder.fingerprint,
    }
    text = f"{out}: {folder}\n{counted(folder.n_entries, 'entry', 'entries')}, {size / 1e9:.2f} GB"
    if recipe is not None:
        text += f"\nfeatures of {counted(len(recipe.used), 'column')} of the node table"
    session.result(record, "\n".join([text, *(f"{name!r} is {reason}" for name, reason in unused.items())]))


def _nodes(given: str | None) -> str | int | None:
    """Return a node table, or how many nodes there are.

    >>> _nodes("nodes.csv"), _nodes("100"), _nodes(None)
    ('nodes.csv', 100, None)
    """
    return int(given) if given is not None and given.isdecimal() and not Path(given).exists() else given
