"""The report of ``pprop train``: a record for --json, and lines of text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pprop.cli.output import columns, counted
from pprop.cli.splits import class_names

if TYPE_CHECKING:
    from pprop.cli.graphs import GraphInput
    from pprop.datasets import Split
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier, NodeClassifier


def report(
    fitted: NodeClassifier, model: str, origin: GraphInput, split: Split, init_seed: int | None
) -> tuple[dict[str, Any], str]:
    """Return the record and the text."""
    training, tested, accuracy = fitted.record_, "not measured (--test 0)", None
    if len(split.evaluation):
        accuracy = float(fitted.score(split.evaluation, class_names(fitted.graph_)[split.evaluation]))
        tested = f"{accuracy:.1%} of {counted(len(split.evaluation), 'node')}"
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
        "fingerprint": fitted.graph_.fingerprint,
    }
    stopped = f"{training.stopping_accuracy:.1%} of {counted(len(split.stopping), 'node')}"
    return record, "\n".join([f"test accuracy      {tested}", f"stopping accuracy  {stopped}", *lines])


def _course(fitted: NodeClassifier) -> tuple[dict[str, Any], list[str]]:
    """Return the part of the report that differs from model to model: epochs, their speed, and what was chosen."""
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier

    training = fitted.record_
    place = f"({training.backend}, {training.device})"
    if isinstance(fitted, APPNPEnsembleClassifier):
        return _of_ensemble(fitted, place)
    speed = 1000 * training.seconds / training.epochs
    record = {"epochs": training.epochs, "best_epoch": training.best_epoch, "ms_per_epoch": speed}
    kept = f"epochs             {training.epochs} (kept: epoch {training.best_epoch + 1})"
    if isinstance(fitted, APPNPClassifierCV):
        alphas, lines = _of_choice(fitted, kept, place)
        return {**record, **alphas}, lines
    return record, [kept, f"time               {training.seconds:.1f} s, {speed:.1f} ms an epoch {place}"]


def _of_choice(fitted: APPNPClassifierCV, kept: str, place: str) -> tuple[dict[str, Any], list[str]]:
    """Report the alphas. The time is that of all runs together, so the time of an epoch is unknown."""
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
    return {"ms_per_epoch": None, "runs": runs, "alphas": _rows(figures)}, lines


def _of_ensemble(fitted: APPNPEnsembleClassifier, place: str) -> tuple[dict[str, Any], list[str]]:
    """Report members and rounds, and the alphas if there were several; the epochs of a member are not kept."""
    by_round = fitted.history_.stopping_accuracy.tolist()
    figures = {"alpha": fitted.alphas_.tolist(), "stopping_accuracy": fitted.scores_.tolist()}
    record: dict[str, Any] = {
        **dict.fromkeys(("epochs", "best_epoch", "ms_per_epoch")),
        **{name: getattr(fitted, name) for name in ("members", "rounds", "folds", "spread_errors")},
        "stopping_accuracy_by_round": by_round,
        "alphas": _rows(figures),
    }
    again = f" and {counted(fitted.rounds, 'more time')} from their own predictions" if fitted.rounds else ""
    runs = counted(fitted.members * (len(by_round) + len(fitted.alphas_) - 1), "run")
    lines = [f"members            {fitted.members}, trained once{again}"]
    if fitted.folds:
        lines.append(f"folds              {fitted.folds}; a member also trains on the stopping nodes of all but one")
    if fitted.spread_errors:
        lines.append(f"spread errors      {fitted.spread_errors:g}; stopping accuracies are those before it")
    lines.append(f"by round           {', '.join(f'{share:.1%}' for share in by_round)} of the stopping nodes")
    lines.append(f"time               {fitted.record_.seconds:.1f} s for {runs} {place}")
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
