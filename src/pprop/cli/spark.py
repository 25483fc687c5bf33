"""``pprop spark``: the same propagation on a cluster, from Parquet files to Parquet files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from pprop._errors import InputError
from pprop.cli.errors import Checks, UsageError
from pprop.cli.models import check_model
from pprop.cli.output import Session, check_folder
from pprop.cli.splits import SEED
from pprop.cli.verbs import (
    AlphaOption,
    ForceOption,
    Options,
    at_least,
    examples,
    make_app,
    option,
    out_option,
    verb,
    within,
)
from pprop.settings import NORMALIZATION, POSITIVE_ALPHA, STEPS

CLUSTER = (
    "SPARK_MASTER",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "PYSPARK_GATEWAY_PORT",
)  # set where files may be elsewhere
EdgesArgument = Annotated[
    str, typer.Argument(metavar="EDGES", help="Parquet file or folder with one edge per row, or a packed graph.")
]
OutOption = Annotated[Path, out_option("Folder of Parquet files to make.", metavar="FOLDER")]


@dataclass(frozen=True)
class Cluster(Options):
    """The options of every verb that works in Spark."""

    panel: ClassVar[str] = "Spark"
    source: Annotated[str, option("Column of EDGES where edges begin.", metavar="COLUMN")] = "source"
    target: Annotated[str, option("Column of EDGES where edges end.", metavar="COLUMN")] = "target"
    weight: Annotated[
        str | None, option("Column of EDGES with weights; by default there are none.", metavar="COLUMN")
    ] = None
    id_column: Annotated[str, option("Column with the nodes' ids.", metavar="COLUMN")] = "id"
    directed: Annotated[bool, option("Keep the directions of the edges.", "--directed")] = False
    work: Annotated[
        Path | None,
        option(
            "Folder that all machines see: the packed graph, states, and where a killed job goes on.", metavar="FOLDER"
        ),
    ] = None
    master: Annotated[
        str | None, option("Of a new session: 'local[2]', 'spark://...'; spark-submit sets its own.", metavar="URL")
    ] = None

    def begin(self, checks: Checks, **tables: tuple[str, Mapping[str, str | None]]) -> None:
        """Start the session, with a sentence where Java or Spark is missing, and settle the checks.

        Paths that only a cluster knows, and the columns that options name, are looked at when Spark runs. It is not started
        for a call that is wrong already.
        """
        from pprop.spark.tables import TEXT

        for path, _ in tables.values():
            if path.lower().endswith(TEXT):
                other = "'pprop build', 'pprop propagate' and 'pprop train' read text"
                checks.add(InputError(f"pprop spark reads Parquet, and {path!r} is a text file. {other}."))
            if self._is_local(path) and not Path(path).exists():
                checks.add(FileNotFoundError(f"There is no file or folder {path!r}."))
        checks.settle()
        from pprop.spark.session import session_of
        from pprop.spark.tables import check_columns, read_frame

        spark = session_of(master=self.master)
        for name, (path, columns) in tables.items():
            if (Path(path) / "manifest.json").exists():  # a graph that is packed
                continue
            frame = checks.run(read_frame, spark, path, name, "spark")
            if frame is not None:
                checks.run(check_columns, frame, dict(columns), name, "spark")
        checks.settle()

    def _is_local(self, path: str) -> bool:
        """Whether a path can only be one of this machine."""
        local = self.master is not None and self.master.startswith("local")
        return "://" not in path and (local or not any(name in os.environ for name in CLUSTER))

    @property
    def ends(self) -> dict[str, str | None]:
        """The columns of EDGES by the options that name them."""
        return {"source": self.source, "target": self.target, "weight": self.weight}

    @property
    def ids(self) -> dict[str, str | None]:
        """The column of ids of a table of nodes."""
        return {"id_column": self.id_column}

    @property
    def edges(self) -> dict[str, Any]:
        """The arguments that say which columns are what."""
        return {name: getattr(self, name) for name in ("source", "target", "weight", "directed", "id_column")}


@verb("spark pack", "pprop spark pack edges.parquet --nodes nodes.parquet --out graph", panel="Packing", checks=True)
def pack(
    session: Session,
    edges: EdgesArgument,
    *,
    nodes: Annotated[str | None, option("Parquet with all ids, or the number of nodes.", metavar="FILE")] = None,
    cluster: Annotated[Cluster, {"work"}],
    out: Annotated[Path, out_option("Graph folder to make.", metavar="FOLDER")],
    force: ForceOption = False,
) -> None:
    """Pack edges into a graph folder, which other verbs take instead of EDGES; it is one of 'pprop build'."""
    from pprop.graph.folder_manifest import FILES

    checks = session.checks
    checks.run(check_folder, out, names=FILES, force=force)
    counted = nodes is not None and nodes.isdecimal() and not Path(nodes).exists()
    tables = {"edges": (edges, cluster.ends)}
    if nodes is not None and not counted:
        tables["nodes"] = nodes, cluster.ids
    cluster.begin(checks, **tables)
    from pprop.spark import pack_graph

    given = int(nodes) if nodes is not None and counted else nodes
    folder = pack_graph(edges, out, nodes=given, replace=force, say=session.say, **cluster.edges)
    session.keep(out)
    record = {"out": out, "nodes": folder.n_nodes, "entries": folder.n_entries, "fingerprint": folder.fingerprint}
    session.result(record, f"{out}: {folder}")


@verb(
    "spark propagate",
    "pprop spark propagate edges.parquet scores.parquet --alpha 0.1 --work /shared/spread --out spread",
    "pprop spark propagate graph scores.parquet --tol 1e-4 --normalization row --out spread",
    panel="Propagation",
    checks=True,
)
def propagate(
    session: Session,
    edges: EdgesArgument,
    predictions: Annotated[
        str, typer.Argument(metavar="PREDICTIONS", help="Parquet with an id and numbers for every node.")
    ],
    *,
    alpha: AlphaOption = POSITIVE_ALPHA.default,
    steps: Annotated[int | None, option(f"Power steps.  [default: {STEPS.default}]", rule=STEPS.rule)] = None,
    tol: Annotated[
        float | None, option("Instead of --steps: the relative error that is certified.", rule=within("(0, 1)"))
    ] = None,
    normalization: Annotated[
        str, option("sym, row (probabilities stay probabilities) or col.", rule=NORMALIZATION.rule)
    ] = NORMALIZATION.default,
    columns: Annotated[
        str | None, option("Columns of PREDICTIONS, separated by commas; by default all numbers.")
    ] = None,
    memory: Annotated[
        float | None,
        option("GB of a machine that a state may take.  [default: half]", metavar="GB", rule=within("(0, inf)")),
    ] = None,
    cluster: Cluster,
    out: OutOption,
    force: ForceOption = False,
) -> None:
    """Spread predictions over a graph by personalized PageRank, in Spark."""
    checks = session.checks
    if steps is not None and tol is not None:
        checks.add(UsageError("Give one of --steps and --tol: --tol is in place of --steps."))
    checks.run(_check_out, out, force=force)
    named = {} if columns is None else {f"columns[{at}]": name.strip() for at, name in enumerate(columns.split(","))}
    cluster.begin(checks, edges=(edges, cluster.ends), predictions=(predictions, cluster.ids | named))
    from pprop.spark import propagate as spread

    found = spread(
        edges,
        predictions,
        alpha,
        steps,
        tol,
        normalization,
        work=cluster.work,
        say=session.say,
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        memory=None if memory is None else int(memory * 1e9),
        **cluster.edges,
    )
    _write(session, found, out, force=force, alpha=alpha, steps=steps, tol=tol)


@verb(
    "spark predict",
    "pprop spark predict model nodes.parquet edges.parquet --out predictions",
    panel="Prediction",
    checks=True,
)
def predict(
    session: Session,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved model.")],
    nodes: Annotated[str, typer.Argument(metavar="NODES", help="Parquet with the id and the columns of every node.")],
    edges: EdgesArgument,
    *,
    cluster: Cluster,
    out: OutOption,
    force: ForceOption = False,
) -> None:
    """Classify all nodes with a saved model, in Spark."""
    checks = session.checks
    checks.run(_check_out, out, force=force)
    checks.run(check_model, model, None)
    cluster.begin(checks, nodes=(nodes, cluster.ids), edges=(edges, cluster.ends))
    from pprop.spark import predict as classify

    found = classify(model, nodes, edges, work=cluster.work, say=session.say, **cluster.edges)
    _write(session, found, out, force=force, model=model)


@verb("spark ppr", "pprop spark ppr edges.parquet labelled.parquet --topk 64 --out rows", panel="Rows", checks=True)
def ppr(
    session: Session,
    edges: EdgesArgument,
    nodes: Annotated[str, typer.Argument(metavar="NODES", help="Parquet with the ids whose rows are wanted.")],
    *,
    alpha: AlphaOption = POSITIVE_ALPHA.default,
    eps: Annotated[
        float | None, option("Residual per degree to push to.  [default: 1e-05]", rule=within("(0, 1)"))
    ] = None,
    topk: Annotated[int | None, option("Entries of a row, at most.  [default: 64]", rule=at_least(1))] = None,
    normalization: Annotated[
        str, option("sym (the paper's), row or col.", rule=NORMALIZATION.rule)
    ] = NORMALIZATION.default,
    cluster: Cluster,
    out: OutOption,
    force: ForceOption = False,
) -> None:
    """Find how much nodes draw on which others, in Spark: the largest entries of their PPR rows, by local push."""
    checks = session.checks
    checks.run(_check_out, out, force=force)
    cluster.begin(checks, edges=(edges, cluster.ends), nodes=(nodes, cluster.ids))
    from pprop.spark import ppr_topk
    from pprop.training.minibatch.neighbourhoods import EPS, NEIGHBOURS

    most, finest = NEIGHBOURS if topk is None else topk, EPS if eps is None else eps
    how: dict[str, Any] = {"work": cluster.work, "say": session.say, **cluster.edges}
    found = ppr_topk(edges, nodes, alpha, finest, most, normalization, **how)
    _write(session, found, out, force=force, alpha=alpha, eps=finest, topk=most)


@verb(
    "spark train",
    "pprop spark train nodes.parquet edges.parquet --label-column topic --out model",
    panel="Training",
    checks=True,
)
def train(
    session: Session,
    nodes: Annotated[str, typer.Argument(metavar="NODES", help="Parquet with id, columns and class of every node.")],
    edges: EdgesArgument,
    *,
    label_column: Annotated[str, option("Column of NODES with the classes; empty where unknown.", metavar="COLUMN")],
    alpha: AlphaOption = POSITIVE_ALPHA.default,
    seed: Annotated[int, option("Of the split and the weights.", rule=SEED)] = 0,
    cluster: Cluster,
    out: Annotated[Path, out_option("Folder of the model.", metavar="FOLDER")],
    force: ForceOption = False,
) -> None:
    """Train APPNP on the neighbourhoods of the labelled nodes, which Spark finds; 'pprop spark predict' applies it."""
    from pprop.estimators.manifest import MANIFEST, WEIGHTS

    checks = session.checks
    checks.run(check_folder, out, names=frozenset({MANIFEST, WEIGHTS, "features.json"}), force=force)
    labelled = cluster.ids | {"label_column": label_column}
    cluster.begin(checks, nodes=(nodes, labelled), edges=(edges, cluster.ends))
    from pprop.spark import train as fit

    how: dict[str, Any] = {"work": cluster.work, "say": session.say, **cluster.edges}
    model = fit(nodes, edges, label_column, out, alpha=alpha, random_state=seed, **how)
    session.keep(out)
    record = model.record_
    facts = {
        "out": out,
        "epochs": record.epochs,
        "stopping_accuracy": record.stopping_accuracy,
        "seconds": record.seconds,
    }
    session.result(
        facts, f"{out}: {record.epochs} epochs, {100 * record.stopping_accuracy:.1f} % of the stopping nodes"
    )


def _check_out(out: Path, *, force: bool) -> None:
    """Refuse an output that is there before the work begins."""
    if out.exists() and not force:
        raise FileExistsError(f"{str(out)!r} is already there. Choose another --out, or add --force to replace it.")


def _write(session: Session, found: Any, out: Path, *, force: bool, **record: Any) -> None:
    found.write.mode("overwrite" if force else "error").parquet(str(out))
    session.keep(out)
    session.result({"out": out, "columns": found.columns, **record}, f"{out}: {', '.join(found.columns[:6])}")


app = make_app(
    "Work on graphs beyond one machine, with Spark.",
    examples("pprop spark propagate edges.parquet scores.parquet --work /shared/spread --out spread"),
    *(pack, propagate, predict, ppr, train),
)
