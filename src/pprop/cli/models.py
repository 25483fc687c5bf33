"""A saved model's folder, with predictions and curves beside it, and predictions as tables in CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeAlias, final

import typer

from pprop._errors import InputError, MismatchError
from pprop.cli.errors import Checks, UsageError
from pprop.cli.graphs import GraphInput, StructureChoice
from pprop.cli.output import Session, new_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.estimators import GraphSource, NodeClassifier
    from pprop.graph.features.recipe import Recipe
    from pprop.propagation import LiveGraph
    from pprop.study.figures.model import RankingPicture

Column: TypeAlias = "list[Any] | NDArray[Any]"
FORMATS = (".csv", ".parquet")
ROWS = 2**16  # of a table that are written at a time
IDENTITY = (
    "The model has weights for each node of its own graph (--structure identity), which mean nothing on another. "
    "Train it with --structure degree or with columns."
)
ModelArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by 'pprop train' or by save.")]
FILES = frozenset(
    {
        "manifest.json",
        "weights.safetensors",
        "features.json",
        "MODEL_CARD.md",
        "predictions.csv",
        "curves.png",
        "curves.svg",
        "ranking.png",
        "ranking.svg",
        *(f"member{k}" for k in range(16)),  # folders of a blend: as many as `BlendClassifier` may have
    }
)


def _check_files(recipe: Recipe, origin: GraphInput) -> None:
    """Refuse a graph without the files of features that the model was trained on."""
    from pprop.graph.files import is_array_file

    given = {Path(file).name for file in origin.tables.files}
    missing = [name for name in recipe.used if is_array_file(name) and name not in given]
    if missing and origin.tables.structure is None:
        others = sorted(given - {*recipe.used})
        files = "a file of this name" if len(missing) == 1 else "files of these names"
        text = f"The model reads {', '.join(missing)}, a row per row of --nodes: add --features with {files} for the nodes of this graph."
        if others:
            text += (
                f" --features has {', '.join(others)}, which the model does not know: files are found by their names."
            )
        raise UsageError(text)


def check_model(folder: Path, origin: GraphInput | None) -> None:
    """Raise if a folder holds no model, and what is wrong with another graph for it, before any table is read."""
    from pprop.estimators.loading import saved_recipe, saved_source

    with Checks() as checks:
        if not folder.is_dir():
            checks.add(FileNotFoundError(f"There is no folder {str(folder)!r}."))
        source = checks.run(saved_source, folder) if folder.is_dir() else None
        if origin is not None:
            checks.run(origin.check_options)
            checks.run(origin.check_files)
        if origin is not None and not checks:  # the model knows the names of columns that no option gives
            like = origin.like(source)
            recipe = checks.run(saved_recipe, folder) if like.is_table else None
            if recipe is not None and recipe.used and like.tables.nodes is None and like.tables.structure is None:
                used = ", ".join(map(repr, recipe.used))
                checks.add(UsageError(f"The model reads {used} of a node table: add --nodes FILE."))
            if recipe is not None:
                checks.run(_check_files, recipe, like)
            checks.run(like.check)


def load_model(
    folder: Path, origin: GraphInput | None, session: Session, remark: str = "", logits_file: Path | None = None
) -> NodeClassifier:
    """Load a saved model on another graph, or on its own; say so if it is not the graph of the training."""
    check_model(folder, origin)
    from pprop.estimators import load
    from pprop.estimators.loading import saved_recipe, saved_source

    graph, source = None, saved_source(folder)
    if origin is not None:
        origin = origin.like(source)
        recipe = saved_recipe(folder) if origin.is_table else None
        graph = origin.read(recipe)
    own = origin is not None and origin.tables.structure is StructureChoice.IDENTITY
    try:
        model = load(folder, graph=graph, logits_file=logits_file)
    except MismatchError as error:
        if own and error.subject == "features":
            raise InputError(IDENTITY) from error
        if source is not None and source.arguments.get("nodes") is not None:
            both = {"graph": ..., "nodes": ...}
            error.remedies = tuple(
                replace(one, settings=both) if "graph" in one.settings else one for one in error.remedies
            )
        raise
    if own and model.graph_changed_:
        raise InputError(IDENTITY)
    if origin is not None and model.graph_changed_:
        note = f"Note: {origin.graph!r} is not the graph of the training"
        session.say(f"{note}: its fingerprint is {model.graph_.fingerprint}. {remark}" if remark else f"{note}.")
    return model


def write_artefact(
    folder: Path,
    model: NodeClassifier,
    source: GraphSource,
    session: Session,
    accuracy: float | None = None,
    test_nodes: int | None = None,
    ranking: RankingPicture | None = None,
) -> None:
    """Write model, predictions and pictures into a new folder; with the accuracy on so many test nodes, if it is known.

    `ranking` is what the picture of precision, recall and calibration shows; without it there is none.
    """
    from pprop.estimators import APPNPEnsembleClassifier

    model.save(folder, source=source, accuracy=accuracy, test_nodes=test_nodes)
    with (folder / "predictions.csv").open("wb") as stream:
        write_tables(prediction_tables(model), stream, parquet=False)
    trained = len(model.history_.train_loss) > 0
    if not trained and ranking is None:
        return
    if find_spec("matplotlib") is None:
        session.say("No curves were drawn: that needs matplotlib. Install it with: pip install matplotlib")
        return
    from pprop.study.figures.model import draw_curves, draw_ranking

    name = type(model).__name__.replace("Classifier", "").removesuffix("Node")
    title = name if model.graph_.name is None else f"{name} on {model.graph_.name}"
    if ranking is not None:
        write_figure(draw_ranking(ranking, title), folder / "ranking")
    if not trained:
        return
    if isinstance(model, APPNPEnsembleClassifier):
        title += " (epochs are rounds)"
    scoring = model.fitted_.scoring
    score = None if scoring is None or model.record_.stopping_score is None else scoring.words
    write_figure(draw_curves(model.history_, model.record_.best_epoch, title, score), folder / "curves")


def write_figure(figure: Any, stem: Path) -> None:
    """Write a figure as PNG and SVG beside each other."""
    from pprop.study.figures.style import save_figure

    for kind in ("png", "svg"):
        stem.with_suffix(f".{kind}").write_bytes(save_figure(figure, kind))


def write_table(path: Path, tables: Iterable[Mapping[str, Column]], session: Session, *, force: bool) -> None:
    """Write tables with the same named columns, one after another, to a CSV or Parquet file."""
    with new_file(path, session, force=force) as stream:
        write_tables(tables, stream, parquet=path.suffix.lower() == ".parquet")


def write_tables(tables: Iterable[Mapping[str, Column]], stream: IO[bytes], *, parquet: bool) -> None:
    """Write them to a stream. No more than one of them is in memory if they are made one after another."""
    if not parquet:
        for number, table in enumerate(tables):
            text = csv_text(table)
            stream.write((text.partition("\n")[2] if number else text).encode())
        return
    from pprop.graph.tables.arrow import pa
    from pprop.graph.tables.arrow import parquet as files

    with ExitStack() as stack:
        writer = schema = None
        for table in tables:
            made = pa.table(dict(table))
            if writer is None:
                schema = made.schema
                for number, one in enumerate(schema):
                    if one.type == pa.null():  # the first nodes have no label, and later ones may
                        schema = schema.set(number, one.with_type(schema.field("class").type))
                writer = stack.enter_context(files.ParquetWriter(stream, schema))
            writer.write_table(made.cast(schema))


def csv_text(table: Mapping[str, Column]) -> str:
    r"""Return named columns as CSV; a float is written so that reading it gives the same float.

    >>> csv_text({"id": ["a", "b"], "share": [0.1, 0.9]})
    'id,share\na,0.1\nb,0.9\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    # numpy writes the shortest text that gives the same number in its own width: 0.1 for a float32, not 0.10000000149
    cells = [column if isinstance(column, list) else column.astype(str).tolist() for column in table.values()]
    writer.writerows(zip(*cells, strict=True))
    return text.getvalue()


def keep_test_nodes(model: NodeClassifier, nodes: NDArray[np.int64]) -> None:
    """Note in a fitted model which nodes are for testing: it is saved with them."""
    fitted = model.fitted_
    if fitted.split is not None:
        model.fitted_ = replace(fitted, split=replace(fitted.split, evaluation=nodes))


ROLES = ("unlabelled", "labelled", "training", "validation", "test")


@final
class Roles:
    """What each node of a model's graph was for, one of `ROLES`, and the known labels.

    "labelled" is a node with a known label of which the model says no more: it was not used.
    """

    def __init__(self, model: NodeClassifier) -> None:
        import numpy as np

        graph, fitted = model.graph_, model.fitted_
        self._labels, names = (graph.labels, graph.class_names) if graph.labels is not None else (None, None)
        self._names = None if names is None else np.asarray(names)
        self._of_fit = dict(zip(fitted.known_nodes.tolist(), fitted.known_labels.tolist(), strict=True))
        self.codes = np.zeros(graph.n_nodes, dtype=np.int8)
        if self._labels is not None:
            self.codes[self._labels >= 0] = 1
        self.codes[fitted.known_nodes] = 1
        if fitted.split is not None:
            for code, nodes in enumerate((fitted.split.train, fitted.split.stopping, fitted.split.evaluation), start=2):
                self.codes[nodes] = code

    def columns(self, nodes: NDArray[np.int64]) -> dict[str, Column]:
        """Return the columns ``role`` and ``label`` of some nodes; a label is None where it is unknown."""
        return {
            "role": [ROLES[code] for code in self.codes[nodes].tolist()],
            "label": [self._label(node) for node in nodes.tolist()],
        }

    def _label(self, node: int) -> Any:
        if node in self._of_fit:
            return self._of_fit[node]
        if self._labels is None or self._labels[node] < 0:
            return None
        code = int(self._labels[node])
        return code if self._names is None else self._names[code].item()


def prediction_table(
    model: NodeClassifier, nodes: NDArray[np.int64] | None = None, roles: Roles | None = None
) -> dict[str, Column]:
    """Return named columns of some nodes, None for all.

    They are ``id`` (``node``, the position, where the graph has no ids), ``class``, ``p_...`` and, on the graph of the training,
    ``role`` and ``label``; `roles` are those of the model, where they are at hand.
    """
    import numpy as np

    graph = model.graph_
    nodes = np.arange(graph.n_nodes) if nodes is None else nodes
    table = columns_of(model, None if graph.ids is None else graph.ids[nodes], nodes, model.classes_)
    return table if model.graph_changed_ else table | (roles or Roles(model)).columns(nodes)


def prediction_tables(model: NodeClassifier, nodes: NDArray[np.int64] | None = None) -> Iterator[dict[str, Column]]:
    """Give the same for some nodes at a time."""
    import numpy as np

    nodes, roles = np.arange(model.graph_.n_nodes) if nodes is None else nodes, Roles(model)
    for first in range(0, max(len(nodes), 1), ROWS):
        yield prediction_table(model, nodes[first : first + ROWS], roles)


def unlabelled_of(model: NodeClassifier) -> NDArray[np.int64]:
    """Return the nodes without a known label."""
    import numpy as np

    return np.flatnonzero(Roles(model).codes == 0)


def top_of(model: NodeClassifier, nodes: NDArray[np.int64], top: int) -> tuple[NDArray[np.int64], str]:
    """Return the nodes with the largest probabilities, the largest first, and a sentence that says of what.

    It is the positive class, of two classes the rarer one in training, and of more classes the most probable one.
    """
    import numpy as np

    from pprop.scoring import positive_class

    fitted, classes = model.fitted_, model.classes_
    counts = np.bincount(fitted.target.encode(fitted.known_labels), minlength=len(classes))
    settings: Any = model
    positive = positive_class(classes, counts, getattr(settings, "positive", None), function="predict")
    scores: list[NDArray[Any]] = []
    for first in range(0, len(nodes), ROWS):
        each = model.predict_proba(nodes[first : first + ROWS])
        scores.append(each.max(axis=1) if positive is None else each[:, classes == positive][:, 0])
    order = np.argsort(-np.concatenate([np.empty(0), *scores]), kind="stable")[:top]
    of = "its most probable class" if positive is None else f"{positive!r}"
    return nodes[order], f"Ranked by the probability of {of}."


def columns_of(
    model: NodeClassifier | LiveGraph, ids: NDArray[Any] | None, nodes: NDArray[np.int64], classes: NDArray[Any]
) -> dict[str, Column]:
    """Return the same of a model or live graph, for some nodes with these ids."""
    first: dict[str, Column] = {"node": nodes.tolist()} if ids is None else {"id": ids.tolist()}
    probabilities = model.predict_proba(nodes)
    named = {f"p_{name}": probabilities[:, k] for k, name in enumerate(classes.tolist())}
    return {**first, "class": model.predict(nodes).tolist(), **named}
