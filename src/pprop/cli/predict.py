"""``pprop predict``: the predictions of a saved model for every node."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pprop._validate import counted
from pprop.cli.errors import UsageError
from pprop.cli.graphs import GraphInput, TableOptions
from pprop.cli.models import (
    FORMATS,
    ModelArgument,
    check_model,
    csv_text,
    load_model,
    prediction_table,
    prediction_tables,
    write_table,
)
from pprop.cli.output import Session, check_file
from pprop.cli.verbs import ForceOption, option, out_option, verb


@verb(
    "predict",
    "pprop predict model --out predictions.csv",
    "pprop predict model --graph newer.csv --nodes nodes.csv --out predictions.parquet",
    "pprop predict model --graph built --scale --out predictions.parquet",
    checks=True,
)
def predict(
    session: Session,
    model: ModelArgument,
    *,
    graph: Annotated[
        str | None,
        option(
            "Another graph than the one that DIR names: as in 'pprop train'.", metavar="GRAPH", panel=TableOptions.panel
        ),
    ] = None,
    tables: Annotated[TableOptions, {"column", "degree", "structure"}],
    out: Annotated[Path | None, out_option(".csv or .parquet; without it, CSV is printed.")] = None,
    force: ForceOption = False,
    scale: Annotated[
        bool,
        option("For a large graph: the logits of all nodes are in a file beside --out until it is written.", "--scale"),
    ] = False,
) -> None:
    """Predict the class of every node with a saved model.

    The table has the columns 'id' ('node', the position, if the graph has no ids), 'class', and 'p_NAME', the probability
    of each class.

    The model reads its graph again from where it was trained, and refuses it if it has changed. --graph takes another
    graph, whose tables are read as in the training unless an option changes that.

    Use --scale to keep the logits of all nodes in a file instead of memory.
    """
    checks = session.checks
    if tables.named:
        text = f"The model knows its columns: --features takes .npy files alone, not {tables.named[0]!r}."
        checks.add(UsageError(text))
    checks.run(check_file, out, force=force, formats=FORMATS)
    if graph is None and tables != TableOptions():
        checks.add(UsageError("The options of a graph (--nodes, --source, --weight and so on) describe a --graph."))
    if scale and out is None:
        checks.add(UsageError("--scale needs --out FILE: what it is for is too long to print."))
    origin = None if graph is None else GraphInput(graph, tables)
    checks.run(check_model, model, origin)
    checks.settle()
    with ExitStack() as stack:
        logits = None
        if scale and out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            logits = Path(stack.enter_context(TemporaryDirectory(dir=out.parent, prefix=".pprop-")), "logits.npy")
        fitted = load_model(model, origin, session, "Nothing is known about the accuracy on it.", logits)
        record: dict[str, Any] = {
            "model": model,
            "out": out,
            "nodes": fitted.graph_.n_nodes,
            "classes": fitted.classes_,
            "fingerprint": fitted.graph_.fingerprint,
            "graph_changed": fitted.graph_changed_,
        }
        if out is None:
            table = prediction_table(fitted)
            session.result({**record, "predictions": table}, csv_text(table))
            return
        write_table(out, prediction_tables(fitted), session, force=force)
        session.result(record, f"{counted(fitted.graph_.n_nodes, 'node')}: {out}")
