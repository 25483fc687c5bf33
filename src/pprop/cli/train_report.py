"""What ``pprop train`` says of a training: as a record, and in lines for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pprop.cli.output import columns, counted

if TYPE_CHECKING:
    from pprop.cli.graphs import GraphInput
    from pprop.datasets import Split
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier, NodeClassifier


def report(
    fitted: NodeClassifier, model: str, origin: GraphInput, split: Split, init_seed: int | None
) -> tuple[dict[str, Any], str]:
    """Return the record and the text."""
    graph, training = fitted.graph_, fitted.record_
    accuracy = None
    if len(split.evaluation) and graph.labels is not None:
        names = graph.class_names or tuple(range(graph.n_classes))
        accuracy = float(fitted.score(split.evaluation, [names[k] for k in graph.labels[split.evaluation]]))
    course, lines = _course(fitted)
    record: dict[str, Any] = {
        "model": model,
        "graph": origin.title,
        "test_accuracy": accuracy,
        "stopping_accuracy": training.stopping_accuracy,
        "stopping_loss": training.stopping_loss,
        **course,
        "seconds": training.seconds,
        "backend": training.backend,
        "device": training.device,
        "seed": training.seed,
        "split_seed": split.seed,
        "init_seed": (init_seed or 0) if origin.path is None else None,
        "train_nodes": len(split.train),
        "stopping_nodes": len(split.stopping),
        "test_nodes": len(split.evaluation),
        "alpha": fitted.alpha_,
        "parameters": sum(int(array.size) for array in fitted.weights_.values()),
        "classes": fitted.classes_.tolist(),
        "fingerprint": graph.fingerprint,
    }
    tested = (
        "not measured (--test 0)" if accuracy is None else f"{accuracy:.1%} of {counted(len(split.evaluation), 'node')}"
    )
    above = [
        f"test accuracy      {tested}",
        f"stopping accuracy  {training.stopping_accuracy:.1%} of {counted(len(split.stopping), 'node')}",
    ]
    return record, "\n".join([*above, *lines])


def _course(fitted: NodeClassifier) -> tuple[dict[str, Any], list[str]]:
    """Return what is different from model to model: epochs, their speed, and what was chosen."""
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier

    training = fitted.record_
    place = f"({training.backend}, {training.device})"
    if isinstance(fitted, APPNPEnsembleClassifier):
        return _of_ensemble(fitted, place)
    record: dict[str, Any] = {"epochs": training.epochs, "best_epoch": training.best_epoch}
    kept = f"epochs             {training.epochs} (kept: epoch {training.best_epoch + 1})"
    if isinstance(fitted, APPNPClassifierCV):
        return _of_choice(fitted, record, kept, place)
    speed = 1000 * training.seconds / training.epochs
    time = f"time               {training.seconds:.1f} s, {speed:.1f} ms an epoch {place}"
    return {**record, "ms_per_epoch": speed}, [kept, time]


def _of_choice(
    fitted: APPNPClassifierCV, record: dict[str, Any], kept: str, place: str
) -> tuple[dict[str, Any], list[str]]:
    """Tell of the alphas too. The time is that of all runs together, so that none is known of an epoch."""
    runs = fitted.scores_.shape[1]
    figures = {
        "alpha": fitted.alphas_.tolist(),
        "stopping_accuracy": fitted.scores_.mean(axis=1).tolist(),
        "stopping_loss": fitted.losses_.mean(axis=1).tolist(),
    }
    lines = [
        f"alpha              {fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the stopping nodes",
        f"{kept}, of the run that was kept",
        f"time               {fitted.record_.seconds:.1f} s for {counted(fitted.scores_.size, 'run')} together {place}",
        "",
        _table(figures, fitted.best_index_),
        *([f"Means over {runs} runs each."] if runs > 1 else []),
        "",
    ]
    return {**record, "ms_per_epoch": None, "runs": runs, "alphas": _rows(figures)}, lines


def _of_ensemble(fitted: APPNPEnsembleClassifier, place: str) -> tuple[dict[str, Any], list[str]]:
    """Tell of members and rounds, and of the alphas if there were several; the epochs of a member are not kept."""
    by_round = fitted.history_.stopping_accuracy.tolist()
    figures = {"alpha": fitted.alphas_.tolist(), "stopping_accuracy": fitted.scores_.tolist()}
    record: dict[str, Any] = {
        "epochs": None,
        "best_epoch": None,
        "ms_per_epoch": None,
        "members": fitted.members,
        "rounds": fitted.rounds,
        "folds": fitted.folds,
        "spread_errors": fitted.spread_errors,
        "stopping_accuracy_by_round": by_round,
        "alphas": _rows(figures),
    }
    again = f" and {counted(fitted.rounds, 'more time')} from their own predictions" if fitted.rounds else ""
    runs = fitted.members * (len(by_round) + len(fitted.alphas_) - 1)
    lines = [
        f"members            {fitted.members}, trained once{again}",
        f"by round           {', '.join(f'{share:.1%}' for share in by_round)} of the stopping nodes",
        f"time               {fitted.record_.seconds:.1f} s for {counted(runs, 'run')} {place}",
    ]
    if fitted.spread_errors:
        lines.insert(1, f"spread errors      {fitted.spread_errors:g}; stopping accuracies are those before it")
    if fitted.folds:
        lines.insert(1, f"folds              {fitted.folds}; a member also trains on the stopping nodes of all but one")
    if len(fitted.alphas_) > 1:
        best = f"{fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the stopping nodes in the first round"
        lines = [f"alpha              {best}", *lines, "", _table(figures, fitted.best_index_), ""]
    return record, lines


def _rows(figures: Mapping[str, list[float]]) -> list[dict[str, float | None]]:
    """Return one record per alpha; JSON knows no number that is not finite."""
    rows = zip(*figures.values(), strict=True)
    return [dict(zip(figures, (value if math.isfinite(value) else None for value in row), strict=True)) for row in rows]


def _table(figures: Mapping[str, list[float]], best: int) -> str:
    """Return one line per alpha, the chosen one marked.

    >>> print(_table({"alpha": [0.1, 0.25], "stopping_accuracy": [0.8, 0.852]}, best=1))
    alpha  stopping accuracy  chosen
    -----  -----------------  ------
      0.1              80.0%
     0.25              85.2%  yes
    """
    forms = {"alpha": "{:g}", "stopping_accuracy": "{:.1%}", "stopping_loss": "{:.4f}"}
    rows = [
        [*(forms[name].format(value) for name, value in zip(figures, row, strict=True)), "yes" if k == best else ""]
        for k, row in enumerate(zip(*figures.values(), strict=True))
    ]
    return columns([*(name.replace("_", " ") for name in figures), "chosen"], rows, left=(len(figures),))
