"""How near our values are to the paper's: within its intervals, within a margin, and beside the spread of initialisations.

Also how many values agreed before readings were chosen anew because their test values had differed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Any, final

from scipy import stats

from pprop.datasets import DATASETS
from pprop.study.cell import MODELS, is_original, make_cell
from pprop.study.stats.variance import TAIL, variance_components
from pprop.study.tables.entries import ByDataset, Metric, Samples, TableEntry, dataset_title
from pprop.study.tables.paper import Score, score
from pprop.study.tables.table import Cells, Number, Table, listed, p_words

MARGIN = 0.5  # points of accuracy, and hundredths of macro F1
PAPERS_SPLITS = ("citeseer", "cora_ml")  # datasets whose splits and test nodes are known to be the paper's own

# What the values of a metric are called, and its unit in points.
_METRICS: Mapping[Metric, tuple[str, float]] = {"accuracy": ("accuracies", 1.0), "f1": ("values of macro F1", 0.01)}

# Models whose reading was chosen anew after its test values had differed from the paper's: the settings of the first
# reading, and its name.
_FIRST: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "jk": ({"layers": 3}, "the first reading of JK"),
    "bootstrapped_fp": ({}, "the tuned Bt. FP in place of Bt. FP"),
}


@final
@dataclass(frozen=True, eq=False)
class Apart:
    r"""Ours minus the paper's, with the error of this difference.

    Attributes
    ----------
    score
        Both values.
    half
        Half the 95 % interval of the difference. Where the splits are the paper's own it is Student's t of
        :math:`\sqrt 2 \sigma / \sqrt{s r}`, :math:`\sigma` being the deviation between the r initialisations of each
        of s splits, and 0 for a model without initialisations. Elsewhere it is of splits, too; the paper's, of which
        the interval over splits is not known, are taken to vary as ours.
    z
        The difference in standard errors of initialisations; None where splits are not the paper's own, or the
        model has no initialisations.
    """

    score: Score
    half: float
    z: float | None

    @property
    def difference(self) -> float:
        """Ours minus the paper's, in the unit of the metric."""
        return self.score.difference or 0.0

    @property
    def near(self) -> bool:
        """Whether the whole interval of the difference is within the margin on either side of 0."""
        return abs(self.difference) + self.half <= MARGIN * _METRICS[self.score.metric][1]


def apart(one: Score, own_splits: Collection[str] = PAPERS_SPLITS) -> Apart | None:
    """Return the difference of a value from the paper's with its error; None without either, or of a single run.

    Parameters
    ----------
    one
        Both values.
    own_splits
        Datasets whose splits and test nodes are the paper's own.
    """
    if one.agrees is None or one.ours is None or one.over_splits is None or one.paper_half is None:
        return None
    shared, seeded = one.entry.cell.dataset in own_splits, MODELS[one.entry.cell.model].seeded
    if shared and not seeded:
        return Apart(one, 0.0, None)
    unit = 100.0 if one.metric == "accuracy" else 1.0
    parts = variance_components({seeds: unit * value for seeds, value in one.entry.values(one.metric).items()})
    if shared and parts is not None and parts.init > 0:
        error = sqrt(2) * parts.init / sqrt(parts.splits * parts.inits)
        quantile = float(stats.t.isf(TAIL, parts.splits * (parts.inits - 1)))
        return Apart(one, quantile * error, (one.ours.mean - (one.paper or 0.0)) / error)
    if not seeded:  # runs are splits, also in the paper
        return Apart(one, hypot(one.ours.half, one.paper_half), None)
    return Apart(one, sqrt(2) * one.over_splits.half, None)


def aparts(
    by_dataset: ByDataset, metric: Metric, own_splits: Collection[str] = PAPERS_SPLITS
) -> dict[str, list[Apart]]:
    """Return the differences of all values that the paper printed, by dataset.

    >>> aparts({}, "accuracy")
    {}
    """
    found = {
        name: [one for entry in group if (one := apart(score(entry, metric), own_splits)) is not None]
        for name, group in by_dataset.items()
    }
    return {name: group for name, group in found.items() if group}


@final
@dataclass(frozen=True)
class InitTest:
    """Are the differences more than initialisations explain? The sum of squares of `models` z, and its p-value."""

    statistic: float
    models: int
    p: float


def init_test(found: Iterable[Apart]) -> InitTest | None:
    """Test that differences are of initialisations alone, by the chi-squared distribution; None where no z is known.

    >>> init_test([]) is None
    True
    """
    squares = [one.z**2 for one in found if one.z is not None]
    if not squares:
        return None
    return InitTest(sum(squares), len(squares), float(stats.chi2.sf(sum(squares), len(squares))))


def nearness_table(by_dataset: ByDataset) -> Table:
    """Return how many values are near the paper's, by metric and dataset, by three measures.

    >>> nearness_table({}).n_rows
    0
    """

    def row(title: str, found: Sequence[Apart]) -> Cells:
        agree, near = sum(one.score.agrees is True for one in found), sum(one.near for one in found)
        test, far = init_test(found), max(found, key=lambda one: abs(one.difference))
        digits = far.score.decimals
        where = far.score.title if len({one.score.entry.cell.dataset for one in found}) == 1 else far.score.entry.where
        shown = ("–", None) if test is None else (f"{test.statistic:.1f} of {test.models}", f"{test.p:.2g}")
        farthest = f"{where} {Number(far.difference, digits, signed=True)}"
        return title, f"{agree} of {len(found)}", f"{near} of {len(found)}", *shown, farthest

    groups: dict[str | None, list[Cells]] = {}
    titles: dict[Metric, str] = {"accuracy": "Accuracy", "f1": "Macro F1"}
    for metric, title in titles.items():
        found = aparts(by_dataset, metric)
        if found:
            everything = [one for group in found.values() for one in group]
            groups[title] = [row(dataset_title(name), group) for name, group in found.items()]
            groups[title] += [row("All", everything)] if len(found) > 1 else []
    heads = (
        f"Dataset:text | Within the combined interval | Whole interval within ±{MARGIN} points | χ² of initialisations | "
        "p of χ² | Largest difference:text"
    )
    return Table.of("How many of our values are near the paper's", heads, groups)


def nearness_sentence(by_dataset: ByDataset) -> str:
    """Return how to read the table, and what PubMed would have if its splits were the paper's; empty without values.

    >>> nearness_sentence({})
    ''
    """
    if not aparts(by_dataset, "accuracy"):
        return ""
    text = (
        "A value within the combined interval is not shown to differ; that is not the same as equal. The next column "
        f"counts values of which the whole 95 % interval of the difference is within ±{MARGIN} points, or ±{MARGIN / 100} "
        "of macro F1. "
    )
    own = listed([dataset_title(name) for name in PAPERS_SPLITS if name in by_dataset])
    if own:
        text += (
            f"On {own} the splits and test nodes are the paper's own, so differences and their intervals are of "
            "initialisations alone. χ² is the sharper test: do initialisations explain the differences of all networks? "
        )
        far = max(
            (one for group in aparts(by_dataset, "accuracy").values() for one in group if one.z is not None),
            key=lambda one: abs(one.z or 0.0),
            default=None,
        )
        if far is not None and far.z is not None:
            text += (
                f"The accuracy farthest beyond them is {far.score.entry.where}: {Number(far.difference, 2, signed=True)} points, "
                f"{Number(abs(far.z), 1)} standard errors. "
            )
    text += (
        "On other graphs the interval is of splits, too; the paper's splits are taken to vary as ours, and 20 of them may be "
        "too few for the margin."
    )
    pubmed = init_test(aparts(by_dataset, "accuracy", ("pubmed",)).get("pubmed", ()))
    if pubmed is not None:
        text += (
            f" If PubMed's splits are the paper's, too, its χ² of accuracies is {pubmed.statistic:.1f} of "
            f"{pubmed.models} ({p_words(pubmed.p)})."
        )
    return text


def fitted_sentence(by_dataset: ByDataset, samples: Samples) -> str:
    """Return how many values agree with the first reading of JK, and what JK adds to the test of initialisations.

    Empty where the first reading has no rows.

    >>> fitted_sentence({}, Samples([]))
    ''
    """
    first = _with_first(by_dataset, "jk", _FIRST["jk"][0], samples)
    if first is None:
        return ""
    text = (
        "JK's values are fitted: its reading was chosen after its test values had differed from the paper's. With its first reading, "
        f"{listed([*_counts(first).values()])} agree."
    )
    parts: list[str] = []
    for metric, (name, _) in _METRICS.items():
        found = [one for group in aparts(by_dataset, metric).values() for one in group]
        test = init_test(found)
        if test is not None and (of_jk := init_test(one for one in found if one.score.entry.cell.model == "jk")):
            parts.append(f"{of_jk.statistic:.1f} of {test.statistic:.1f} for {name}")
    return f"{text} JK's share of χ² is fitted, too: {listed(parts)}." if parts else text


def init_sentence(by_dataset: ByDataset) -> str:
    """Return the test of initialisations alone, where splits and test nodes are the paper's own; empty without values.

    >>> init_sentence({})
    ''
    """
    tests = {
        name: test
        for metric, (name, _) in _METRICS.items()
        if (test := init_test(one for group in aparts(by_dataset, metric).values() for one in group)) is not None
    }
    if not tests:
        return ""
    own = listed([dataset_title(name) for name in PAPERS_SPLITS if name in by_dataset])
    told = listed(
        [f"{test.statistic:.1f} of {test.models} for {name} ({p_words(test.p)})" for name, test in tests.items()]
    )
    return (
        f"On {own} splits and test nodes are the paper's own, so only initialisations differ. χ² of the networks' differences, "
        f"the sharper test, is {told}."
    )


def apart_table(by_dataset: ByDataset, metric: Metric) -> Table:
    """Return each difference from the paper's value with its 95 % interval, and in standard errors of initialisations.

    >>> apart_table({}, "accuracy").n_rows
    0
    """
    groups: dict[str | None, list[Cells]] = {}
    for name, found in aparts(by_dataset, metric).items():
        groups[dataset_title(name)] = [
            (
                one.score.title,
                Number(one.difference, one.score.decimals, signed=True),
                Number(one.half, one.score.decimals),
                None if one.z is None else Number(one.z, 1, signed=True),
                "yes" if one.near else "no",
            )
            for one in found
        ]
    heads = f"Model:text | Difference | Half of its 95 % interval | z of initialisations | Within ±{MARGIN} points:text"
    what = {"accuracy": "accuracy", "f1": "macro F1"}.get(metric, metric)
    return Table.of(f"Ours minus the paper's {what}, with its interval", heads, groups)


def agreement(by_dataset: ByDataset, samples: Samples | None = None) -> str:
    """Return how many values agree with the paper's, are within the margin, and agreed before readings were chosen anew.

    Parameters
    ----------
    by_dataset
        Entries of the accuracy table.
    samples
        All rows that are shown, among them those of the first readings.

    Examples
    --------
    >>> agreement({})
    ''
    """
    if not (now := _counts(by_dataset)):
        return ""
    text = f"{' and '.join(now.values())} agree with the paper's."
    within = {
        metric: [one.near for group in aparts(by_dataset, metric).values() for one in group] for metric in _METRICS
    }
    if any(within.values()):
        near = " and ".join(str(sum(found)) for found in within.values() if found)
        text += f" In {near} the whole 95 % interval of the difference is within ±{MARGIN} points or ±{MARGIN / 100}."
    before, parts = by_dataset, list[str]()
    for model, (settings, name) in _FIRST.items():
        if (swapped := _with_first(before, model, settings, samples or Samples([]))) is not None:
            before = swapped
            numbers = listed([counted.partition(" of")[0] for counted in _counts(before).values()])
            parts.append(f"with {name}{' as well' if parts else ''}, {numbers}{'' if parts else ' agree'}")
    if parts:
        told = "; ".join(parts)
        text += f" Readings were changed after their test values had differed. {told[0].upper()}{told[1:]}."
    return text


def _counts(by_dataset: ByDataset) -> dict[Metric, str]:
    """Return how many values of each metric agree, of how many that can be compared."""
    parts: dict[Metric, str] = {}
    for metric, (name, _) in _METRICS.items():
        found = [score(entry, metric).agrees for group in by_dataset.values() for entry in group]
        if any(each is not None for each in found):
            parts[metric] = f"{found.count(True)} of {len(found) - found.count(None)} {name}"
    return parts


def _with_first(
    by_dataset: ByDataset, model: str, settings: Mapping[str, Any], samples: Samples
) -> dict[str, list[TableEntry]] | None:
    """Return the entries with the first reading of a model in place of the present one; None where it has no rows."""

    def with_first(entry: TableEntry) -> TableEntry:
        papers = entry.cell.model == model and entry.cell.dataset in DATASETS
        chosen = papers and (model != "bootstrapped_fp" or is_original(entry.cell))
        cell = make_cell(model, settings, entry.cell.dataset) if chosen else entry.cell
        there = samples.of(cell)
        return entry if there is None or cell == entry.cell else replace(entry, cell=cell, sample=there)

    swapped = {name: [with_first(entry) for entry in group] for name, group in by_dataset.items()}
    same = all(new is old for name, group in by_dataset.items() for new, old in zip(swapped[name], group, strict=True))
    return None if same else swapped
