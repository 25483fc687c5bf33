"""How a training went, for people and for --json: epochs, their speed, and what was chosen on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pprop._validate import counted
from pprop.cli.output import columns, picked

if TYPE_CHECKING:
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier, NodeClassifier
    from pprop.estimators.fitted import TrainingRecord


def course(fitted: NodeClassifier) -> tuple[dict[str, Any], list[str]]:
    """Return the part of the report that differs from model to model: epochs, their speed, and what was chosen."""
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier, LabelPropagationClassifier

    training = fitted.record_
    place = f"({training.backend}, {training.device})"
    if isinstance(fitted, APPNPEnsembleClassifier):
        return _of_ensemble(fitted, place)
    if isinstance(fitted, LabelPropagationClassifier):
        return dict.fromkeys(("epochs", "best_epoch", "ms_per_epoch")), [f"time               {_time(training)}"]
    speed = training.ms_per_epoch
    record = {**picked(training, "epochs", "best_epoch"), "ms_per_epoch": speed}
    kept = f"epochs             {training.epochs} (kept: epoch {training.best_epoch + 1})"
    if isinstance(fitted, APPNPClassifierCV):
        alphas, lines = _of_choice(fitted, kept, place)
        return {**record, **alphas}, lines
    return record, [kept, f"time               {_time(training)}, {speed:.1f} ms an epoch {place}"]


def _time(training: TrainingRecord) -> str:
    """Return the seconds of a training without those that compiled kernels, which the next one does not need.

    >>> from pprop.estimators.fitted import TrainingRecord
    >>> _time(TrainingRecord(320, 219, 0.51, 0.84, 22.1, "numba", "cpu", 0, 120, 500, compile_seconds=20.5))
    '1.6 s (and 20.5 s to compile kernels, once)'
    """
    own = f"{training.seconds - training.compile_seconds:.1f} s"
    return (
        f"{own} (and {training.compile_seconds:.1f} s to compile kernels, once)"
        if training.compile_seconds >= 0.05
        else own
    )


def _of_choice(fitted: APPNPClassifierCV, kept: str, place: str) -> tuple[dict[str, Any], list[str]]:
    """Report the alphas. The time is that of all runs together, so the time of an epoch is unknown."""
    runs = fitted.scores_.shape[1]
    means = fitted.scores_.mean(axis=1), fitted.losses_.mean(axis=1)
    alphas = [
        {"alpha": alpha, "stopping_accuracy": accuracy, "stopping_loss": loss}
        for alpha, accuracy, loss in zip(fitted.alphas_, *means, strict=True)
    ]
    lines = [
        f"alpha              {fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the validation nodes",
        f"{kept}, of the run that was kept",
        f"time               {_time(fitted.record_)} for {counted(fitted.scores_.size, 'run')} together {place}",
        "",
        _table(alphas, fitted.best_index_),
        *([f"Means over {runs} runs each."] if runs > 1 else []),
        "",
    ]
    return {"ms_per_epoch": None, "runs": runs, "alphas": alphas}, lines


def _of_ensemble(fitted: APPNPEnsembleClassifier, place: str) -> tuple[dict[str, Any], list[str]]:
    """Report members and rounds, and the alphas if there were several; the epochs of a member are not kept."""
    by_round = fitted.history_.stopping_accuracy.tolist()
    scored = zip(fitted.alphas_, fitted.scores_, strict=True)
    alphas = [{"alpha": alpha, "stopping_accuracy": accuracy} for alpha, accuracy in scored]
    record: dict[str, Any] = {
        **dict.fromkeys(("epochs", "best_epoch", "ms_per_epoch")),
        **picked(fitted, "members", "rounds", "folds", "spread_errors"),
        "stopping_accuracy_by_round": by_round,
        "alphas": alphas,
    }
    again = f" and {counted(fitted.rounds, 'more time')} from their own predictions" if fitted.rounds else ""
    runs = counted(fitted.members * (len(by_round) + len(fitted.alphas_) - 1), "run")
    lines = [f"members            {fitted.members}, trained once{again}"]
    if fitted.folds:
        lines.append(f"folds              {fitted.folds}; a member also trains on the validation nodes of all but one")
    if fitted.spread_errors:
        lines.append(f"spread errors      {fitted.spread_errors:g}; validation accuracies are those before it")
    lines.append(f"by round           {', '.join(f'{share:.1%}' for share in by_round)} of the validation nodes")
    lines.append(f"time               {_time(fitted.record_)} for {runs} {place}")
    if len(fitted.alphas_) > 1:
        best = f"{fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the validation nodes in the first round"
        lines = [f"alpha              {best}", *lines, "", _table(alphas, fitted.best_index_), ""]
    return record, lines


def _table(alphas: Sequence[Mapping[str, float]], best: int) -> str:
    """Return one line per alpha, the chosen one marked.

    >>> rows = [{"alpha": 0.1, "stopping_accuracy": 0.8}, {"alpha": 0.25, "stopping_accuracy": 0.852}]
    >>> print(_table(rows, best=1))
    alpha  validation accuracy  chosen
    -----  -------------------  ------
      0.1                80.0%
     0.25                85.2%  yes
    """
    forms = {"alpha": "{:g}", "stopping_accuracy": "{:.1%}", "stopping_loss": "{:.4f}"}
    rows = [
        [*(forms[name].format(value) for name, value in row.items()), "yes" if k == best else ""]
        for k, row in enumerate(alphas)
    ]
    headings = [*(name.replace("_", " ").replace("stopping", "validation") for name in alphas[0]), "chosen"]
    return columns(headings, rows, left=(len(alphas[0]),))
