"""``pprop data``: the paper's graphs, and a look at one's own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop.cli.graphs import (
    DirectedOption,
    FeaturesOption,
    GraphInput,
    IdColumnOption,
    LabelColumnOption,
    NodesOption,
    SourceOption,
    TargetOption,
    WeightOption,
)
from pprop.cli.output import BAD_INPUT, DebugOption, JsonOption, Session
from pprop.cli.text import columns, counted, examples

if TYPE_CHECKING:
    from pprop.datasets import DatasetInfo

__all__ = ["app"]

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="citeseer, cora_ml, pubmed or ms_academic.")]

app = typer.Typer(
    help="The paper's graphs, and a check of one's own.",
    epilog=examples("pprop data list", "pprop data check edges.csv --nodes nodes.csv --label-column topic"),
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _front(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")


@app.command("list", epilog=examples("pprop data list"))
def list_all(json: JsonOption = False, debug: DebugOption = False) -> None:
    """List the paper's graphs, their sizes, and whether they are on this machine."""
    with Session("data list", json=json, debug=debug) as session:
        from pprop.datasets import DATASETS

        records = [_describe(info) for info in DATASETS.values()]
        headings = ("graph", "nodes", "edges", "features", "classes", "alpha", "where")
        keys = ("name", "nodes", "edges", "features", "classes", "alpha", "where")
        text = columns(headings, [[record[key] for key in keys] for record in records], left=(0, 6))
        session.result({"datasets": records}, text)


@app.command(epilog=examples("pprop data info citeseer"))
def info(name: NameArgument, json: JsonOption = False, debug: DebugOption = False) -> None:
    """Describe one of the paper's graphs. Nothing is downloaded."""
    with Session("data info", json=json, debug=debug) as session:
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
        if record["where"] == "to be downloaded":
            lines.append(f"Fetch it with: pprop data get {name}")
        else:
            import numpy as np

            graph = load_dataset(name)
            labels = np.empty(0, dtype=np.int64) if graph.labels is None else graph.labels
            sizes: list[int] = np.bincount(labels, minlength=graph.n_classes).tolist()
            names = list(graph.class_names or map(str, range(graph.n_classes)))
            record |= {"fingerprint": graph.fingerprint, "class_sizes": dict(zip(names, sizes, strict=True))}
            lines += [
                f"classes: {', '.join(f'{key} ({size})' for key, size in zip(names, sizes, strict=True))}",
                f"fingerprint: {graph.fingerprint}",
            ]
        session.result(record, "\n".join(lines))


@app.command(epilog=examples("pprop data get cora_ml"))
def get(name: NameArgument, json: JsonOption = False, debug: DebugOption = False) -> None:
    """Fetch one of the paper's graphs into the cache, verify it, and say where it is."""
    with Session("data get", json=json, debug=debug) as session:
        from pprop.datasets import dataset_info, load_dataset
        from pprop.datasets.locate import locate

        described = dataset_info(name)
        if _where(described) == "to be downloaded":
            session.say(f"Downloading {described.url}")
        found = locate(described)
        session.keep(found.path)
        graph = load_dataset(name)
        record = {"name": name, "path": found.path, "origin": found.origin, "fingerprint": graph.fingerprint}
        session.result(record, f"{name} ({found.origin}): {found.path}\n{graph}")


@app.command(
    epilog=examples("pprop data check graph.npz", "pprop data check edges.csv --nodes nodes.csv --label-column topic")
)
def check(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="An .npz file or an edge list in .csv or .parquet; or a dataset.")
    ],
    nodes: NodesOption = None,
    source: SourceOption = "source",
    target: TargetOption = "target",
    weight: WeightOption = None,
    id_column: IdColumnOption = "id",
    label_column: LabelColumnOption = None,
    features: FeaturesOption = None,
    directed: DirectedOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Say what is wrong or worth knowing about a graph file, with counts.

    A problem keeps pprop from reading the graph (exit code 3); a warning is probably not meant; a note is a fact.
    """
    with Session("data check", json=json, debug=debug) as session:
        origin = GraphInput.of(
            path,
            nodes=nodes,
            source=source,
            target=target,
            weight=weight,
            id_column=id_column,
            label_column=label_column,
            features=features,
            directed=directed,
        )
        origin.check_files()

        from pprop.cli.check import inspect

        graph, findings = inspect(origin)
        problems = sum(finding.level == "problem" for finding in findings)
        warnings = sum(finding.level == "warning" for finding in findings)
        record = {
            "path": path,
            "usable": graph is not None,
            "graph": None if graph is None else repr(graph),
            "fingerprint": None if graph is None else graph.fingerprint,
            "findings": [{"level": each.level, "what": each.what, "count": each.count} for each in findings],
        }
        lines = [f"{origin.title}: {'cannot be read' if graph is None else graph!r}"]
        lines += [f"  {each.level:<8} {each.what}" for each in findings]
        lines.append(
            f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}. "
            + ("pprop cannot use this graph." if graph is None else "pprop can use this graph.")
        )
        session.result(record, "\n".join(lines))
        if graph is None:
            raise typer.Exit(BAD_INPUT)


def _describe(info: DatasetInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        **info.sizes,
        "alpha": info.recommended.alpha,
        "known": info.recommended.known,
        "where": _where(info),
    }


def _where(info: DatasetInfo) -> str:
    from pprop.cli.sources import where

    return where(info)
