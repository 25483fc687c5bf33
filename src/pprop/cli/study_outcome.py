"""What ``pprop study run`` answers: how far the study is, and a user's model beside others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pprop._validate import counted
from pprop.cli.output import columns, picked

if TYPE_CHECKING:
    from pprop.study.run.runner import StudyOutcome
    from pprop.study.stats.estimate import Estimate
    from pprop.study.stats.paired import Paired, Versus


def outcome_record(outcome: StudyOutcome, out: Path, compared: list[Versus]) -> dict[str, Any]:
    """Return the answer as data.

    >>> from pprop.study.run.runner import StudyOutcome
    >>> outcome_record(StudyOutcome(2, 0, 2, 0, 0, (), False), Path("study"), [])["computed"]
    2
    """
    record: dict[str, Any] = {
        "out": out,
        **picked(outcome, "wanted", "found", "computed", "elsewhere", "left", "time_up"),
        "refused": [{"cell": refused.cell.text, "reason": refused.reason} for refused in outcome.refused],
    }
    if compared:
        record["models"] = [
            {
                "model": each.cell.model,
                "runs": each.accuracy.runs,
                "accuracy": each.accuracy.mean,
                "accuracy_interval": _interval(each.accuracy),
                "f1": each.f1.mean,
                "f1_interval": _interval(each.f1),
                "seconds": each.seconds,
                "p_runs": each.over_runs and each.over_runs.p,
                "p_splits": each.over_splits and each.over_splits.p,
                "p_runs_holm": each.over_runs and each.over_runs.holm,
                "p_splits_holm": each.over_splits and each.over_splits.holm,
            }
            for each in compared
        ]
    return record


def _interval(summary: Estimate) -> list[float] | None:
    """Return the ends of an interval; a single run has none."""
    return None if summary.runs < 2 else [summary.low, summary.high]


def _measure(summary: Estimate, scale: float, decimals: int) -> str:
    mean = f"{scale * summary.mean:.{decimals}f}"
    return mean if summary.runs < 2 else f"{mean} ± {scale * summary.half:.{decimals}f}"


def _p(test: Paired | None) -> str:
    return "-" if test is None or math.isnan(test.holm) else f"{test.holm:.2g}"


def outcome_text(outcome: StudyOutcome, out: Path, compared: list[Versus]) -> str:
    """Return the answer for people.

    >>> from pprop.study.run.runner import StudyOutcome
    >>> print(outcome_text(StudyOutcome(2, 0, 2, 0, 0, (), False), Path("study"), []))
    2 runs computed, 0 there before, of 2.
    Try: pprop study report study
    """
    from pprop.study.cell import title_of

    lines: list[str] = []
    if compared:
        headings = ("model", "runs", "accuracy %", "F1", "s/run", "p over runs", "p over splits")
        rows = [
            (
                each.cell.model,
                each.accuracy.runs,
                _measure(each.accuracy, 100, 2),
                _measure(each.f1, 1, 4),
                f"{each.seconds:.2f}",
                _p(each.over_runs),
                _p(each.over_splits),
            )
            for each in compared
        ]
        lines.append(columns(headings, rows))
        if any(each.over_runs for each in compared):
            own = compared[0].cell.model
            lines.append(f"p: paired t-tests of {own} against each of the others, with Holm's correction")
        lines.append("")
    lines.append(f"{counted(outcome.computed, 'run')} computed, {outcome.found} there before, of {outcome.wanted}.")
    if outcome.elsewhere:
        lines.append(f"{counted(outcome.elsewhere, 'run')} being computed by another process.")
    lines += [f"Refused: {title_of(refused.cell)}. {refused.reason}" for refused in outcome.refused]
    if outcome.left:
        why = "The time limit has come. " if outcome.time_up else ""
        lines.append(f"{why}{counted(outcome.left, 'run')} left: run the same command again to go on.")
    lines.append(f"Try: pprop study report {out}")
    return "\n".join(lines)
