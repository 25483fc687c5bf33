"""``pprop predict``: the predictions of a saved model for every node."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pprop._errors import InputError
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
    top_of,
    unlabelled_of,
    write_table,
)
from pprop.cli.output import Session, check_file
from pprop.cli.verbs import ForceOption, at_least, option, out_option, verb


@verb(
    "predict",
    "pprop predict model --out predictions.csv",
    "pprop predict model --unlabelled --top 100 --out list.csv",
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
    unlabelled: Annotated[bool, option("Predict nodes without a known label alone.", "--unlabelled")] = False,
    top: Annotated[
        int | None,
        option(
            "Number of nodes with the largest probabilities to predict, the largest first: of the positive class, or of more than two "
            "classes the most probable one.  [default: all nodes, in their order]",
            rule=at_least(1),
        ),
    ] = None,
    scale: Annotated[
        bool,
        option("For a large graph: the logits of all nodes are in a file beside --out until it is written.", "--scale"),
    ] = False,
) -> None:
    """Predict the class of every node with a saved model.

    The table has the columns 'id' ('node', the position, if the graph has no ids), 'class', and 'p_NAME', the probability
    of each class. On the graph of the training, 'role' is training, validation, test, labelled (a label that was not used) or
    unlabelled, and 'label' is the known label. If the model was trained with --threshold, 'class' follows the threshold,
    which is printed with its precision and recall.

    Use --unlabelled --top 100 for a list to work through: the nodes without a label that are most probably of the positive
    class, of two classes the rarer one.

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
    import numpy as np

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
        threshold = fitted.fitted_.threshold
        if threshold is not None:
            record["threshold"] = threshold.described()
            session.say(threshold.sentence())
        nodes = unlabelled_of(fitted) if unlabelled else None
        if unlabelled and nodes is not None and not len(nodes):
            raise InputError("--unlabelled: every node of the graph has a known label. Leave the option out.")
        if top is not None:
            nodes, sentence = top_of(fitted, np.arange(fitted.graph_.n_nodes) if nodes is None else nodes, top)
            session.say(sentence)
        record["rows"] = fitted.graph_.n_nodes if nodes is None else len(nodes)
        if out is None:
            table = prediction_table(fitted, nodes)
            session.result({**record, "predictions": table}, csv_text(table))
            return
        write_table(out, prediction_tables(fitted, nodes), session, force=force)
        session.result(record, f"{counted(record['rows'], 'node')}: {out}")
