"""`predict`: a saved model maps its network over all nodes in Spark, and propagates what it says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np

from pprop._validate import describe, reject
from pprop.estimators.fitted import Fitted
from pprop.estimators.loading import load, saved_recipe
from pprop.estimators.targets import Classes
from pprop.graph import Graph
from pprop.graph.files import path_of
from pprop.models import FeatureNetwork, Model
from pprop.propagation import PowerIteration
from pprop.spark.foreign import DataFrame, RecordBatch, Say, arrow
from pprop.spark.graphs import work_folder
from pprop.spark.propagate import propagate
from pprop.spark.session import check_executors, one_thread, session_of
from pprop.spark.tables import check_columns, column, id_type, read_frame

FUNCTION = "pprop.spark.predict"
TOL = 1e-6  # of PPNP, whose propagation has no steps
ONES = "ones"  # the column that is propagated beside the logits


def predict(
    model: str | PathLike[str],
    nodes: Any,
    edges: Any,
    *,
    work: str | PathLike[str] | None = None,
    id_column: str = "id",
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    directed: bool = False,
    memory: int | None = None,
    progress: bool | None = None,
    say: Say | None = None,
) -> DataFrame:
    """Classify all nodes of a table with a saved model, in Spark.

    The network is computed for some rows at a time, in every task; its predictions are written to `work` and propagated
    with the model's alpha, steps and normalisation, as by `propagate`.

    Parameters
    ----------
    model
        Folder of a saved APPNP or PPNP model with the built-in network, or one of `pprop.spark.train`.
    nodes
        A DataFrame or Parquet path with one row for each node: its id, and the columns that the model was trained with, which
        are found by name.
    edges, work, id_column, source, target, weight, directed, memory, progress, say
        As in `propagate`.

    Returns
    -------
    DataFrame
        The id, ``class``, ``confidence``, and a column ``p_CLASS`` with the probability of every class.
    """
    folder_of_model = path_of(model, "model", FUNCTION)
    recipe = saved_recipe(folder_of_model)
    if recipe is None:
        remedy = "Train it on a table of nodes, whose columns have names."
        reject("model", FUNCTION, "a model of columns of a table", "one of a matrix", remedy=remedy)
    spark = session_of(nodes, edges)
    frame = read_frame(spark, nodes, "nodes", FUNCTION)
    used = list(recipe.used)
    check_columns(frame, {"id_column": id_column}, "nodes", FUNCTION)
    check_columns(frame, {f"model (column {name!r})": name for name in used}, "nodes", FUNCTION)
    folder = work_folder(spark, work, FUNCTION)
    check_executors(spark, folder)
    shared = folder / "model"
    shutil.copytree(folder_of_model, shared, dirs_exist_ok=True)
    kind = id_type(frame, id_column, "nodes", FUNCTION)
    table = frame.select(column(id_column).cast(kind).alias("id"), *(column(name) for name in used))
    known = _first(shared, table)
    propagation = _propagation(known)
    classes = [str(name) for name in known.classes.names.tolist()]
    names = [f"logit{k}" for k in range(len(classes))]
    divided = propagation.normalization != "row"  # by ones that are propagated beside them; see `Fitted.comparable`
    names += [ONES] if divided else []
    logits = folder / ("logits_and_ones" if divided else "logits")
    if not (logits / "_SUCCESS").exists():
        fields = ", ".join([f"id {kind}", *(f"{name} float" for name in names)])
        table.mapInArrow(NetworkRows(shared, len(classes), divided), fields).write.mode("overwrite").parquet(
            str(logits)
        )
    by_steps = isinstance(propagation.solver, PowerIteration)
    spread = propagate(
        edges,
        str(logits),
        propagation.alpha,
        propagation.solver.steps if by_steps else None,
        None if by_steps else TOL,
        propagation.normalization,
        propagation.self_loops,
        work=folder,
        source=source,
        target=target,
        weight=weight,
        directed=directed,
        memory=memory,
        progress=progress,
        say=say,
    )
    return _classified(spread, names, classes, known.classes, id_column, kind)


def _first(folder: Path, table: DataFrame) -> Fitted:
    """Return what was saved, on the first row of a table: its classes and settings."""
    rows = table.limit(1).toArrow()
    if not len(rows):
        reject("nodes", FUNCTION, "at least one row", "none")
    return load(folder, _alone(folder, rows)).fitted_


def _propagation(known: Fitted) -> Any:
    found = known.model
    if not isinstance(found, Model) or not isinstance(found.predictor, FeatureNetwork) or found.propagation is None:
        reject("model", FUNCTION, "APPNP or PPNP with the built-in network", describe(found))
    return found.propagation


def _alone(folder: Path, rows: Any) -> Graph:
    """Return a graph of the rows of a table, without edges: its propagation changes no prediction."""
    pa = arrow()

    kind = rows.schema.field("id").type
    none = pa.table({"source": pa.array([], kind), "target": pa.array([], kind)})
    recipe: Any = saved_recipe(folder)
    return Graph.from_pandas(none, rows, feature_columns=recipe)


@final
@dataclass(frozen=True)
class NetworkRows:
    """The network's logits of the rows of a task, and where `ones` are wanted, a column of ones."""

    model: Path
    classes: int
    ones: bool = False

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        pa = arrow()

        one_thread()
        for batch in batches:
            if not len(batch):
                continue
            rows = pa.Table.from_batches([batch])
            numbered = rows.set_column(
                0, "id", pa.array(np.arange(len(rows)))
            )  # ids may occur twice, which is said later
            known = load(self.model, _alone(self.model, numbered)).fitted_
            logits = known.outputs.astype(np.float32)
            values = [pa.array(np.ascontiguousarray(logits[:, k])) for k in range(self.classes)]
            names = ["id", *(f"logit{k}" for k in range(self.classes))]
            if self.ones:
                values.append(pa.array(np.ones(len(rows), dtype=np.float32)))
                names.append(ONES)
            yield pa.RecordBatch.from_arrays([batch.column(0), *values], names=names)


def _classified(
    spread: DataFrame, names: list[str], classes: list[str], target: Classes, id_column: str, kind: str
) -> DataFrame:
    """Return class, confidence and probabilities of logits; the last of `names` may be the ones that divide them."""

    def classify(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        pa = arrow()

        for batch in batches:
            if not len(batch):
                continue
            logits = np.stack([batch.column(1 + k).to_numpy() for k in range(len(names))], axis=1).astype(np.float64)
            if ONES in names:
                ones = logits[:, -1:]
                logits = logits[:, :-1] / np.where(ones > 0, ones, 1.0)
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            best = logits.argmax(axis=1) if target.threshold is None else target.choose(shares)
            confidence = shares[np.arange(len(best)), best]
            columns = [batch.column(0), pa.array(np.array(classes)[best].tolist()), pa.array(confidence)]
            columns += [pa.array(np.ascontiguousarray(shares[:, k])) for k in range(len(classes))]
            named = [id_column, "class", "confidence", *(f"p_{name}" for name in classes)]
            yield pa.RecordBatch.from_arrays(columns, names=named)

    quoted = ["`" + name.replace("`", "``") + "`" for name in (id_column, *(f"p_{name}" for name in classes))]
    fields = ", ".join(
        [f"{quoted[0]} {kind}, class string, confidence double", *(f"{one} double" for one in quoted[1:])]
    )
    return spread.mapInArrow(classify, fields)
