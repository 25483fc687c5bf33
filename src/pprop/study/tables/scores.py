"""The tables of accuracy and of macro F1: ours beside the paper's, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from pprop.study.experiment import Published
from pprop.study.stats.estimate import Estimate, combined_intervals, estimate
from pprop.study.tables.entries import Entry
from pprop.study.tables.grid import NOT_RUN, Code, Column, Group, Measure, Number, Strong, Table, Value
from pprop.study.tables.samples import Metric
from pprop.study.tables.titles import dataset_title

__all__ = ["Score", "disagreements", "overview_table", "score", "score_table"]

TITLES: dict[Metric, str] = {
    "accuracy": "Accuracy in percent",
    "f1": "Macro F1 by the paper's definition",
    "f1_macro": "Macro F1 by the usual definition",
}


SLACK = {"pubmed": 0.5, "ms_academic": 0.5}
"""Points by which a mean may miss the sum of both intervals: the files of these two graphs have another order of nodes than
the authors', and so other splits and test nodes. Elsewhere it is `SLACK_ELSEWHERE`."""
SLACK_ELSEWHERE = 0.3


@final
@dataclass(frozen=True, eq=False)
class Score:
    """A metric of one entry in the unit in which it is printed: accuracy in percent, F1 in [0, 1].

    Attributes
    ----------
    entry
        Whose it is.
    metric
        Which one.
    ours
        None where nothing was run.
    paper, paper_half
        What the paper printed; None where it printed nothing.
    """

    entry: Entry
    metric: Metric
    ours: Estimate | None
    paper: float | None
    paper_half: float | None

    @property
    def title(self) -> str:
        """Of the model; where the authors' second run stands beside it, this is said."""
        again = self.entry.experiment is not None and self.entry.experiment.shows == "rerun"
        return f"{self.entry.title}, re-run" if again else self.entry.title

    @property
    def decimals(self) -> int:
        """As many as the paper prints."""
        return 2 if self.metric == "accuracy" else 4

    @property
    def our_half(self) -> float | None:
        """The number behind our ±; a single run has none."""
        return None if self.ours is None or self.ours.runs < 2 else self.ours.half

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours.mean - self.paper

    @property
    def intervals(self) -> float | None:
        """The same in units of the combined interval."""
        if self.ours is None or self.paper is None or self.paper_half is None or self.our_half is None:
            return None
        return combined_intervals(self.ours.mean, self.our_half, self.paper, self.paper_half)

    @property
    def slack(self) -> float:
        """What is granted beyond the two intervals, in the unit of the metric."""
        points = SLACK.get(self.entry.cell.dataset, SLACK_ELSEWHERE)
        return points if self.metric == "accuracy" else points / 100

    @property
    def within(self) -> bool | None:
        """Whether ours is as near to the paper's as the sum of both intervals and the slack; None without either."""
        if self.difference is None or self.our_half is None or self.paper_half is None:
            return None
        return abs(self.difference) <= self.our_half + self.paper_half + self.slack


def score(entry: Entry, metric: Metric) -> Score:
    """Return a metric of an entry.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> experiment = load_experiments()["gasteiger_2019_appnp_cora_ml"]
    >>> made = score(Entry(experiment.points[0].cell, "APPNP", experiment, None), "accuracy")
    >>> made.paper, made.ours
    (85.09, None)
    """
    unit = 100.0 if metric == "accuracy" else 1.0
    ours = None
    if entry.sample is not None:
        ours = estimate([unit * value for value in entry.sample.values(metric).values()])
    printed = (entry.experiment.published if entry.experiment else None) or Published()
    paper = {"accuracy": (printed.accuracy, printed.accuracy_interval), "f1": (printed.f1, printed.f1_interval)}
    return Score(entry, metric, ours, *paper.get(metric, (None, None)))


def overview_table(by_dataset: Mapping[str, Sequence[Entry]], metric: Metric) -> Table:
    """Return the table in the paper's layout, ours alone: models down, datasets across, the best of each set off.

    Examples
    --------
    >>> overview_table({}, "accuracy").columns
    (Column(title='Model', kind='text'),)
    """
    titles = list(dict.fromkeys(entry.title for group in by_dataset.values() for entry in group))
    columns = (Column("Model", "text"), *(Column(dataset_title(name), "measure") for name in by_dataset))
    scores = {name: {entry.title: score(entry, metric) for entry in group} for name, group in by_dataset.items()}
    best = {name: max((s.ours.mean for s in group.values() if s.ours), default=None) for name, group in scores.items()}
    rows: list[tuple[Value, ...]] = []
    for title in titles:
        cells = (_overview_cell(scores[name].get(title), best[name]) for name in by_dataset)
        rows.append((title, *cells))
    return Table(f"{TITLES[metric]}, mean and 95 % interval", columns, (Group(None, tuple(rows)),))


def score_table(by_dataset: Mapping[str, Sequence[Entry]], metric: Metric, reruns: Iterable[Entry] = ()) -> Table:
    """Return the table of a metric dataset by dataset: ours, the paper's, the difference, and the command.

    Parameters
    ----------
    by_dataset
        As `entries` gives them.
    metric
        ``"f1_macro"`` has no published values and so fewer columns.
    reruns
        Entries that have other published values: the authors' second run.

    Examples
    --------
    >>> [column.title for column in score_table({}, "f1_macro").columns]
    ['Model', 'Runs', 'Ours']
    """
    again = [entry for entry in reruns if entry.sample is not None]
    groups: list[Group] = []
    for name, group in by_dataset.items():
        shown = [*group, *(entry for entry in again if entry.cell.dataset == name)]
        groups.append(Group(dataset_title(name), tuple(_score_row(score(entry, metric)) for entry in shown)))
    columns = (Column("Model", "text"), Column("Runs"), Column("Ours", "measure"))
    if metric == "f1_macro":
        return Table(TITLES[metric], columns, tuple(groups))
    columns += (Column("Paper", "measure"), Column("Difference"), Column("In intervals"), Column("Command", "code"))
    notes = ("Re-run: beside what the authors' own code gave when they ran it again.",) if again else ()
    return Table(f"{TITLES[metric]}, beside the paper's", columns, tuple(groups), notes)


def disagreements(scores: Iterable[Score]) -> tuple[str, ...]:
    """Return a sentence for each score that is further from the paper's than the combined interval.

    Examples
    --------
    >>> disagreements([])
    ()
    """
    return tuple(_disagreement(each) for each in scores if each.intervals is not None and abs(each.intervals) > 1)


def _disagreement(one: Score) -> str:
    ours, paper, difference = one.ours, one.paper, one.difference
    assert ours is not None  # there are intervals
    assert paper is not None
    assert difference is not None
    digits, half = one.decimals, one.paper_half or 0.0
    unit = " points" if one.metric == "accuracy" else ""
    runs = "" if ours.runs == one.entry.wanted else f" ({ours.runs} of {one.entry.wanted} runs)"
    times = Number(abs(one.intervals or 0.0), 1)
    return (
        f"{one.title} on {dataset_title(one.entry.cell.dataset)}{runs}: ours {Measure(ours.mean, ours.half, digits)}, "
        f"the paper's {Measure(paper, half, digits)}; ours is {Number(abs(difference), digits)}{unit} "
        f"{'higher' if difference > 0 else 'lower'}, {times} combined intervals, and "
        f"{'inside' if one.within else 'outside'} the sum of both intervals plus {one.slack:g}{unit}."
    )


def _overview_cell(one: Score | None, best: float | None) -> Value:
    if one is None:
        return None
    if one.ours is None:
        return NOT_RUN
    measure = Measure(one.ours.mean, one.our_half, one.decimals)
    return Strong(measure) if one.ours.mean == best else measure


def _score_row(one: Score) -> tuple[Value, ...]:
    entry, digits = one.entry, one.decimals
    ours = NOT_RUN if one.ours is None else Measure(one.ours.mean, one.our_half, digits)
    row: tuple[Value, ...] = (one.title, _runs(one), ours)
    if one.metric == "f1_macro":
        return row
    return (
        *row,
        None if one.paper is None else Measure(one.paper, one.paper_half, digits),
        None if one.difference is None else Number(one.difference, digits, signed=True),
        None if one.intervals is None else Number(one.intervals, 1, signed=True),
        Code(entry.command),
    )


def _runs(one: Score) -> str:
    count = 0 if one.ours is None else one.ours.runs
    wanted = one.entry.wanted
    return str(count) if wanted is None or wanted == count else f"{count} of {wanted}"
