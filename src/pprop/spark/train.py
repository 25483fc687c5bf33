"""`train`: neighbourhoods of the labelled nodes pushed in Spark, and a model fitted to them on the driver."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from pprop._errors import InputError
from pprop._validate import counted
from pprop.estimators.appnp import APPNPClassifier
from pprop.graph import Graph
from pprop.graph.attributes import MISSING_LABELS
from pprop.settings import POSITIVE_ALPHA, UNBIASED
from pprop.spark.foreign import Say, arrow
from pprop.spark.graphs import work_folder
from pprop.spark.session import session_of
from pprop.spark.tables import check_columns, column, id_type, read_frame
from pprop.spark.topk import ppr_topk
from pprop.training.minibatch.neighbourhoods import EPS, NEIGHBOURS, Neighbourhoods, keep_neighbourhoods

FUNCTION = "pprop.spark.train"


def train(
    nodes: Any,
    edges: Any,
    label_column: str,
    out: str | PathLike[str],
    *,
    alpha: float = POSITIVE_ALPHA.default,
    feature_columns: Any = "auto",
    neighbours: int = NEIGHBOURS,
    eps: float = EPS,
    work: str | PathLike[str] | None = None,
    id_column: str = "id",
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    directed: bool = False,
    say: Say | None = None,
    **settings: Any,
) -> APPNPClassifier:
    """Train APPNP on a graph in Spark, and save it: the driver sees the neighbourhoods of labelled nodes, and no more.

    Local push finds, in tasks, the nodes that each labelled node draws on most. Their rows of `nodes` alone are collected,
    and the network is fitted to them as `APPNPClassifier(neighbours=...)` does.

    Parameters
    ----------
    nodes
        A DataFrame or Parquet path with one row for each node: its id, columns of features, and its class, null where it is
        not known.
    edges, work, id_column, source, target, weight, directed, say
        As in `pprop.spark.propagate`.
    label_column
        Column of `nodes` with the class.
    out
        Folder for the model, which `pprop.spark.predict` reads.
    alpha
        Teleport probability of the model.
    feature_columns
        As in `pprop.read_edges`; kinds and scaling are found out from the rows that are collected.
    neighbours, eps
        As in `pprop.train`.
    **settings
        Of `APPNPClassifier`: ``random_state=0``, ``hidden=64`` and others.

    Returns
    -------
    APPNPClassifier
        Fitted. Its graph are the collected nodes without edges, so predict with `pprop.spark.predict`.
    """
    spark = session_of(nodes, edges)
    frame = read_frame(spark, nodes, "nodes", FUNCTION)
    check_columns(frame, {"id_column": id_column, "label_column": label_column}, "nodes", FUNCTION)
    kind = id_type(frame, id_column, "nodes", FUNCTION)
    label = column(label_column)
    known = label.isNotNull() & ~label.cast("string").isin(list(MISSING_LABELS))
    table = frame.withColumn(id_column, column(id_column).cast(kind))
    labelled = table.filter(known).select(column(id_column).alias("id"))
    later: Any = None  # the graph of the collected nodes
    estimator = APPNPClassifier(later, alpha=POSITIVE_ALPHA.check(alpha, FUNCTION), neighbours=neighbours, **settings)
    normalization = UNBIASED if estimator.normalization is None else estimator.normalization
    folder = work_folder(spark, work, FUNCTION)
    rows = ppr_topk(
        edges,
        labelled,
        alpha,
        eps,
        neighbours,
        normalization,
        estimator.self_loops,
        work=folder,
        source=source,
        target=target,
        weight=weight,
        directed=directed,
        say=say,
    )
    found = rows.toArrow()
    if not len(found):
        raise InputError(f"No node has a class in the column {label_column!r}.")
    members = rows.selectExpr("neighbour AS id").union(labelled).distinct()
    part = table.join(members.withColumnRenamed("id", id_column), id_column, "left_semi").toArrow()
    graph = _graph(part, id_column, label_column, feature_columns, directed=directed)
    ids: Any = graph.ids
    place = {one: at for at, one in enumerate(ids.tolist())}
    own, other = ([place[one] for one in found.column(name).to_pylist()] for name in ("id", "neighbour"))
    shape = (graph.n_nodes, graph.n_nodes)
    values, error = (found.column(name).to_numpy() for name in ("value", "error"))
    kept = np.full(graph.n_nodes, np.nan)
    if not directed or normalization == "row":  # what is left out of a row is then known
        kept[own] = 1.0 - error
        values = values / (1.0 - error)
    matrix = sparse.csr_array((values.astype(np.float32), (own, other)), shape=shape)
    nodes_of = np.unique(np.array(own))
    if say is not None:
        say(f"{counted(len(nodes_of), 'labelled node')}, whose neighbourhoods have {counted(graph.n_nodes, 'node')}.")
    keep_neighbourhoods(graph, Neighbourhoods(nodes_of, matrix[nodes_of], kept[nodes_of]))
    estimator.set_params(graph=graph)
    codes: Any = graph.labels
    names: Any = graph.class_names
    estimator.fit(nodes_of, np.array(names)[codes[nodes_of]])
    estimator.save(out)
    return estimator


def _graph(part: Any, id_column: str, label_column: str, feature_columns: Any, *, directed: bool) -> Graph:
    """Return the collected rows as a graph without edges."""
    pa = arrow()

    kind = part.schema.field(id_column).type
    none = pa.table({"source": pa.array([], kind), "target": pa.array([], kind)})
    return Graph.from_pandas(
        none, part, id_column=id_column, label_column=label_column, feature_columns=feature_columns, directed=directed
    )
