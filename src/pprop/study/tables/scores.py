"""The tables of accuracy and of macro F1: ours beside the paper's, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from pprop.study.stats.estimate import Estimate, combined_intervals, estimate
from pprop.study.tables.entries import ByDataset, Entry, Metric, dataset_title
from pprop.study.tables.table import NOT_RUN, Cells, Code, Measure, Number, Strong, Table, Value, number

TITLES: dict[Metric, str] = {
    "accuracy": "Accuracy in percent",
    "f1": "Macro F1 by the paper's definition",
    "f1_macro": "Macro F1 by the usual definition",
}


# Points by which a mean may miss the sum of both intervals: the files of these two graphs have another order of nodes
# than the authors', and so other splits and test nodes. Elsewhere it is `SLACK_ELSEWHERE`.
SLACK = {"pubmed": 0.5, "ms_academic": 0.5}
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
        """Of the model; it says so where the published values are those of the authors' second run."""
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
    def our_value(self) -> Value:
        """Ours as a table shows it."""
        return NOT_RUN if self.ours is None else Measure(self.ours.mean, self.our_half, self.decimals)

    @property
    def paper_value(self) -> Value:
        """The paper's as a table shows it."""
        return None if self.paper is None else Measure(self.paper, self.paper_half, self.decimals)

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
        """The allowance beyond the two intervals, in the unit of the metric."""
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
    values = [unit * value for value in entry.values(metric).values()]
    ours, printed = estimate(values) if values else None, entry.published
    paper = {"accuracy": (printed.accuracy, printed.accuracy_interval), "f1": (printed.f1, printed.f1_interval)}
    return Score(entry, metric, ours, *paper.get(metric, (None, None)))


def overview_table(by_dataset: ByDataset, metric: Metric, beside_paper: bool = False) -> Table:
    """Return the table in the paper's layout: models down, datasets across, the best of each column in bold.

    With `beside_paper` the paper's values are next to ours, and cells with fewer runs than the protocol has are named below.

    Examples
    --------
    >>> overview_table({}, "accuracy").columns
    (Column(title='Model', kind='text'),)
    """
    scores = {name: {entry.title: score(entry, metric) for entry in group} for name, group in by_dataset.items()}
    best = {
        name: (
            max((one.ours.mean for one in group.values() if one.ours), default=None),
            max((one.paper for one in group.values() if one.paper is not None), default=None),
        )
        for name, group in scores.items()
    }

    def cells(name: str, title: str) -> Cells:
        one = scores[name].get(title)
        values = (None, None) if one is None else (one.our_value, one.paper_value)
        marked = (
            Strong(value) if isinstance(value, Measure) and value.mean == top else value
            for value, top in zip(values, best[name], strict=True)
        )
        return tuple(marked) if beside_paper else (next(marked),)

    titles = dict.fromkeys(title for group in scores.values() for title in group)
    rows = ((title, *(cell for name in scores for cell in cells(name, title))) for title in titles)
    paper = " | paper:measure" if beside_paper else ""
    heads = " | ".join(["Model:text", *(f"{dataset_title(name)}:measure{paper}" for name in scores)])
    caption = f"{TITLES[metric]}, mean and 95 % interval" + (", beside the paper's" if beside_paper else "")
    notes = tuple(
        f"{one.entry.title} on {dataset_title(name)}: {one.ours.runs} of {one.entry.wanted} runs."
        for name, group in scores.items()
        for one in group.values()
        if one.ours is not None and one.entry.wanted is not None and one.ours.runs < one.entry.wanted
    )
    return Table.of(caption, heads, {None: rows}, notes if beside_paper else ())


def score_table(by_dataset: ByDataset, metric: Metric, reruns: Iterable[Entry] = ()) -> Table:
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
    with_paper = metric != "f1_macro"

    def row(one: Score) -> Cells:
        count, wanted = 0 if one.ours is None else one.ours.runs, one.entry.wanted
        runs = str(count) if wanted is None or wanted == count else f"{count} of {wanted}"
        apart = number(one.difference, one.decimals, signed=True), number(one.intervals, 1, signed=True)
        paper = (one.paper_value, *apart, Code(one.entry.command))
        return (one.title, runs, one.our_value, *(paper if with_paper else ()))

    groups: dict[str | None, list[Cells]] = {}
    for name, group in by_dataset.items():
        shown = [*group, *(entry for entry in again if entry.cell.dataset == name)]
        groups[dataset_title(name)] = [row(score(entry, metric)) for entry in shown]
    heads = "Model:text | Runs | Ours:measure"
    if not with_paper:
        return Table.of(TITLES[metric], heads, groups)
    notes = ("Re-run: beside what the authors' own code gave when they ran it again.",) if again else ()
    heads += " | Paper:measure | Difference | In intervals | Command:code"
    return Table.of(f"{TITLES[metric]}, beside the paper's", heads, groups, notes)


def disagreements(scores: Iterable[Score]) -> tuple[str, ...]:
    """Return a sentence for each score that is further from the paper's than the combined interval.

    Examples
    --------
    >>> disagreements([])
    ()
    """
    return tuple(_disagreement(each) for each in scores if each.intervals is not None and abs(each.intervals) > 1)


def _disagreement(one: Score) -> str:
    difference, runs = one.difference or 0.0, 0 if one.ours is None else one.ours.runs
    unit = " points" if one.metric == "accuracy" else ""
    of_runs = "" if runs == one.entry.wanted else f" ({runs} of {one.entry.wanted} runs)"
    return (
        f"{one.title} on {dataset_title(one.entry.cell.dataset)}{of_runs}: ours {one.our_value}, the paper's "
        f"{one.paper_value}; ours is {Number(abs(difference), one.decimals)}{unit} "
        f"{'higher' if difference > 0 else 'lower'}, {Number(abs(one.intervals or 0.0), 1)} combined intervals, and "
        f"{'inside' if one.within else 'outside'} the sum of both intervals plus {one.slack:g}{unit}."
    )
