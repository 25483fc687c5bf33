"""``pprop predict``: the predictions of a saved model for every node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
from pprop.cli.models import ModelArgument, load_model
from pprop.cli.output import DebugOption, JsonOption, Session
from pprop.cli.tables import check_suffix, print_table, write_table
from pprop.cli.targets import ForceOption, check_file
from pprop.cli.text import counted

__all__ = ["EXAMPLES", "predict"]

EXAMPLES = (
    "pprop predict model --out predictions.csv",
    "pprop predict model --graph newer.csv --nodes nodes.csv --out predictions.parquet",
)


def predict(
    model: ModelArgument,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph", metavar="GRAPH", help="Another graph than the one that DIR names: as in 'pprop train'."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=".csv or .parquet; without it, CSV is printed.")
    ] = None,
    nodes: NodesOption = None,
    source: SourceOption = "source",
    target: TargetOption = "target",
    weight: WeightOption = None,
    id_column: IdColumnOption = "id",
    label_column: LabelColumnOption = None,
    features: FeaturesOption = None,
    directed: DirectedOption = False,
    force: ForceOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Predict the class of every node with a saved model.

    The table has a column 'id' (or 'node', the position, if the graph has no ids), 'class', and one probability per
    class, 'p_NAME'. The model remembers its graph and where it was read. If that graph has changed since, it is
    refused; naming a graph with --graph uses that one in any case, and says so if it is another.
    """
    with Session("predict", json=json, debug=debug) as session:
        if out is not None:
            check_suffix(out)
            check_file(out, force=force)
        if not model.is_dir():
            raise FileNotFoundError(f"There is no folder {str(model)!r}.")
        options: dict[str, Any] = {
            "nodes": nodes,
            "source": source,
            "target": target,
            "weight": weight,
            "id_column": id_column,
            "label_column": label_column,
            "features": features,
            "directed": directed,
        }
        if graph is None and (nodes, weight, label_column, features, directed) != (None,) * 4 + (False,):
            raise typer.BadParameter("--nodes, --weight, --label-column, --features and --directed describe a --graph.")
        given = None if graph is None else GraphInput.of(graph, **options).read()
        fitted = load_model(model, given)
        if fitted.graph_changed_:
            session.say(
                f"Note: {graph!r} is not the graph of the training: its fingerprint is {fitted.graph_.fingerprint}. "
                "Nothing is known about the accuracy on it."
            )

        from pprop.cli.node_table import prediction_table

        table = prediction_table(fitted)
        if out is None and not json:
            print_table(table)
            return
        record: dict[str, Any] = {
            "model": str(model),
            "out": out,
            "nodes": fitted.graph_.n_nodes,
            "classes": fitted.classes_.tolist(),
            "fingerprint": fitted.graph_.fingerprint,
            "graph_changed": fitted.graph_changed_,
        }
        if out is None:
            record["predictions"] = table
        else:
            write_table(out, table, session, force=force)
        session.result(record, f"{counted(fitted.graph_.n_nodes, 'node')}: {out}")
