"""``pprop data``: the paper's graphs, and a check of a user's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._validate import counted
from pprop.cli.graphs import GraphInput, TableOptions
from pprop.cli.output import BAD_INPUT, Session, columns
from pprop.cli.report import column_lines, columns_of_tables
from pprop.cli.verbs import ColumnsOption, examples, make_app, verb

if TYPE_CHECKING:
    from pprop.datasets import DatasetInfo

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="citeseer, cora_ml, pubmed or ms_academic.")]
TO_BE_DOWNLOADED = "to be downloaded"


@verb("data list", "pprop data list")
def list_all(session: Session) -> None:
    """List the paper's graphs, their sizes, and whether they are on this machine."""
    from pprop.datasets import DATASETS

    records = [_describe(info) for info in DATASETS.values()]
    keys = ("name", "nodes", "edges", "features", "classes", "alpha", "where")
    text = columns(("graph", *keys[1:]), [[record[key] for key in keys] for record in records], left=(0, 6))
    session.result({"datasets": records}, text)


@verb("data info", "pprop data info citeseer")
def info(session: Session, name: NameArgument) -> None:
    """Describe one of the paper's graphs. Nothing is downloaded."""
    from pprop.datasets import TEST_SEEDS, dataset_info, load_dataset

    described = dataset_info(name)
    record = _describe(described) | {"url": described.url, "sha256": described.sha256, "test_seeds": TEST_SEEDS}
    lines = [
        f"{name}: {counted(described.n_nodes, 'node')}, {counted(described.n_edges, 'edge')}, "
        f"{counted(described.n_features, 'feature')}, {counted(described.n_classes, 'class', 'classes')}",
        f"paper: alpha {described.recommended.alpha:g}, {described.recommended.known} known nodes",
        f"file: {described.url}",
        f"where: {record['where']}",
        f"seeds of the paper's test splits: {', '.join(map(str, TEST_SEEDS))}",
    ]
    if record["where"] == TO_BE_DOWNLOADED:
        lines.append(f"Fetch it with: pprop data get {name}")
    else:
        import numpy as np

        graph = load_dataset(name)
        labels = np.empty(0, dtype=np.int64) if graph.labels is None else graph.labels
        counts = np.bincount(labels, minlength=graph.n_classes).tolist()
        sizes = dict(zip(graph.class_names or map(str, range(graph.n_classes)), counts, strict=True))
        record |= {"fingerprint": graph.fingerprint, "class_sizes": sizes}
        lines.append(f"classes: {', '.join(f'{key} ({size})' for key, size in sizes.items())}")
        lines.append(f"fingerprint: {graph.fingerprint}")
    session.result(record, "\n".join(lines))


@verb("data get", "pprop data get cora_ml")
def get(session: Session, name: NameArgument) -> None:
    """Download one of the paper's graphs into the cache, verify it, and print its path."""
    from pprop.datasets import dataset_info, load_dataset
    from pprop.datasets.files import locate

    described = dataset_info(name)
    if where(described) == TO_BE_DOWNLOADED:
        session.say(f"Downloading {described.url}")
    found = locate(described)
    session.keep(found.path)
    graph = load_dataset(name)
    record = {"name": name, "path": found.path, "origin": found.origin, "fingerprint": graph.fingerprint}
    session.result(record, f"{name} ({found.origin}): {found.path}\n{graph}")


@verb(
    "data check",
    "pprop data check graph.npz",
    "pprop data check edges.csv --nodes nodes.csv --label-column topic",
    checks=True,
)
def check(
    session: Session,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="An .npz file or an edge list in .csv or .parquet; or a dataset.")
    ],
    tables: TableOptions,
    every_column: ColumnsOption = False,
) -> None:
    """Check a graph file for problems, with counts.

    A problem keeps pprop from reading the graph (exit code 3); a warning is probably not meant; a note is a fact.
    """
    origin, checks = GraphInput(path, tables), session.checks
    checks.run(origin.check_files)
    if checks:  # otherwise what is wrong with columns is a finding
        checks.run(origin.check)
    checks.settle()

    from pprop.cli.check import Finding, inspect
    from pprop.graph.homophily import homophily

    graph, findings = inspect(origin, session.words)
    if graph is not None and graph.features is not None and graph.features.ndim == 2:
        findings.append(Finding("note", f"Scaling: {graph.scaled().scaling}.", graph.features.shape[1]))
    alike = None if graph is None or graph.labels is None else homophily(graph)
    if alike is not None:
        # there is no split here, so test labels cannot be left out, as the report of a training does
        what = f"Homophily of all labels in the file: {alike.figures('labelled nodes')}. {alike.sentence}"
        findings.append(Finding("note", what, alike.edges))
    record: dict[str, Any] = {
        "path": path,
        "usable": graph is not None,
        "graph": None if graph is None else repr(graph),
        "fingerprint": None if graph is None else graph.fingerprint,
        "findings": [vars(finding) for finding in findings],
        "homophily": None if alike is None else vars(alike),
    }
    used, unused = ({}, {}) if graph is None else columns_of_tables(graph, origin)
    record["columns"] = {"used": used, "unused": unused}
    levels = [finding.level for finding in findings]
    totals = f"{counted(levels.count('problem'), 'problem')}, {counted(levels.count('warning'), 'warning')}."
    lines = [
        f"{origin.title}: {'cannot be read' if graph is None else repr(graph)}",
        *(f"  column   {line}" for line in column_lines(used, unused, every=every_column)),
        *(f"  {finding.level:<8} {finding.what}" for finding in findings),
        f"{totals} pprop {'cannot' if graph is None else 'can'} use this graph.",
    ]
    session.result(record, "\n".join(lines))
    if graph is None:
        raise typer.Exit(BAD_INPUT)


app = make_app(
    "The paper's graphs, and a check of your own.",
    examples("pprop data list", "pprop data check edges.csv --nodes nodes.csv --label-column topic"),
    *(list_all, info, get, check),
)


def where(info: DatasetInfo) -> str:
    """Return in which of its places the file of a dataset is; nothing is downloaded.

    >>> from pprop.datasets import DATASETS
    >>> where(DATASETS["citeseer"]) != "to be downloaded"
    True
    """
    from pprop.datasets.files import found_here

    found = found_here(info)
    return TO_BE_DOWNLOADED if found is None else found.origin


def _describe(info: DatasetInfo) -> dict[str, Any]:
    advice = info.recommended
    return {"name": info.name, **info.sizes, "alpha": advice.alpha, "known": advice.known, "where": where(info)}
