"""The tables of p-values: the paper's models, and users', against each baseline; also over more splits, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import final

from pprop.study.cell import MODELS
from pprop.study.graphs import of_own
from pprop.study.stats.estimate import student_half
from pprop.study.stats.paired import Paired, describe_seeds, paired_test, split_gaps, with_holm
from pprop.study.tables.entries import TESTED, ByDataset, Metric, TableEntry, dataset_title, is_papers_baseline
from pprop.study.tables.table import Cells, Measure, Number, PValue, Strong, Table, listed, p_words

OWN_OPPONENTS = ("gcn", "appnp")
SIGNIFICANT = 0.05


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """A model against one opponent on one dataset.

    Attributes
    ----------
    entry, opponent
        The two.
    best
        Whether the opponent is the best of the paper's baselines, or of a user's opponents, by our mean.
    runs, splits
        The paired tests over runs and over split means, corrected over the opponents of the model on the dataset that are
        of one kind: the paper's baselines, or others. Against a model with one run per split both are the latter.
    published
        The paper's p-value, which names no opponent: given for the best baseline of the paper's own table.
    """

    entry: TableEntry
    opponent: TableEntry
    best: bool
    runs: Paired
    splits: Paired
    published: float | None

    @property
    def where(self) -> str:
        """The two models and the dataset."""
        return f"{self.entry.title} against {self.opponent.where}"

    def wins(self, *, over_splits: bool) -> bool:
        """Return whether the model is significantly better, after Holm's correction."""
        return self.splits.difference > 0 and (self.splits if over_splits else self.runs).holm < SIGNIFICANT


def comparisons(group: Sequence[TableEntry], metric: Metric) -> list[Comparison]:
    """Return all comparisons on one dataset: PPNP, APPNP against the baselines; users' models against GCN and APPNP.

    The paper's baselines are one family of tests, MLP and the tuned Bt. FP, which it does not have, another one.

    Examples
    --------
    >>> comparisons([], "accuracy")
    []
    """
    run = [entry for entry in group if entry.sample is not None]
    known = [entry for entry in run if entry.experiment is not None]  # the corrections are over these alone
    others = [entry for entry in known if entry.cell.model in MODELS and entry.cell.model not in TESTED]
    papers = [entry for entry in others if is_papers_baseline(entry.cell)]
    beside = [entry for entry in others if not is_papers_baseline(entry.cell)]
    for_own = [entry for entry in known if entry.cell.model in OWN_OPPONENTS]
    best = _best_in_the_paper(group, metric)
    tested = [entry for entry in run if entry.cell.model in TESTED or entry.cell.model not in MODELS]
    families = [(papers, beside) if entry.cell.model in TESTED else (for_own,) for entry in tested]
    pairs = ((entry, family) for entry, several in zip(tested, families, strict=True) for family in several if family)
    return [each for entry, family in pairs for each in _against(entry, family, metric, best)]


def papers_comparisons(by_dataset: ByDataset, metric: Metric) -> list[Comparison]:
    """Return the comparisons of PPNP and APPNP with the paper's baselines on all datasets.

    >>> papers_comparisons({}, "accuracy")
    []
    """
    found = (each for group in by_dataset.values() for each in comparisons(group, metric))
    return [each for each in found if each.entry.cell.model in TESTED and is_papers_baseline(each.opponent.cell)]


def tuned_comparisons(by_dataset: ByDataset, metric: Metric) -> list[Comparison]:
    """Return the comparisons of PPNP and APPNP with the tuned bootstrapped feature propagation on all datasets.

    >>> tuned_comparisons({}, "accuracy")
    []
    """
    found = (each for group in by_dataset.values() for each in comparisons(group, metric))
    of_tested = (
        each for each in found if each.entry.cell.model in TESTED and not is_papers_baseline(each.opponent.cell)
    )
    return [each for each in of_tested if each.opponent.cell.model == "bootstrapped_fp"]


def _against(
    entry: TableEntry, family: Sequence[TableEntry], metric: Metric, papers_best: str | None
) -> list[Comparison]:
    ours, theirs = entry.values(metric), [other.values(metric) for other in family]
    means = [sum(values.values()) / len(values) for values in theirs]
    splits = [paired_test(ours, values, "splits") for values in theirs]
    of_family = zip(family, theirs, splits, strict=True)
    runs = [paired_test(ours, values) if MODELS[other.cell.model].seeded else test for other, values, test in of_family]
    paper = {"accuracy": entry.published.p_accuracy, "f1": entry.published.p_f1}.get(metric)
    published = [paper if other.cell.config == papers_best else None for other in family]
    of_kind = [entry.cell.model not in TESTED or is_papers_baseline(other.cell) for other in family]
    best = [counts and mean == max(means) for counts, mean in zip(of_kind, means, strict=True)]
    found = zip(family, best, with_holm(runs), with_holm(splits), published, strict=True)
    return [Comparison(entry, *each) for each in found]


def _best_in_the_paper(group: Sequence[TableEntry], metric: Metric) -> str | None:
    """Return the configuration of the baseline that has the highest published mean, whether it was run or not."""
    printed = {entry.cell.config: entry.published for entry in group if entry.cell.model not in TESTED}
    means = {model: each.accuracy if metric == "accuracy" else each.f1 for model, each in printed.items()}
    known = {model: mean for model, mean in means.items() if mean is not None}
    return max(known, key=lambda model: known[model], default=None)


def p_value_table(by_dataset: ByDataset, metric: Metric) -> Table:
    """Return the table of all comparisons, dataset by dataset and model by model, with runs that have no partner named.

    Examples
    --------
    >>> p_value_table({}, "accuracy").n_rows
    0
    """
    unit, digits = (100.0, 2) if metric == "accuracy" else (1.0, 4)

    def row(one: Comparison) -> Cells:
        runs, splits = ((Number(test.pairs, 0), PValue(test.p), PValue(test.holm)) for test in (one.runs, one.splits))
        name = Strong(one.opponent.title) if one.best else one.opponent.title
        over_runs = runs if one.runs.over == "runs" else (None, *runs[1:])
        published = None if one.published is None else PValue(one.published, quoted=True)
        return name, Number(unit * one.splits.difference, digits, signed=True), *over_runs, *splits, published

    groups: dict[str | None, list[Cells]] = {}
    notes: list[str] = []
    for entries in by_dataset.values():
        found = comparisons(entries, metric)
        for entry, of_entry in groupby(found, key=lambda each: each.entry):
            groups[entry.where] = [row(each) for each in of_entry]
        for one in found:
            lonely = ((one.runs.only_first, one.entry), (one.runs.only_second, one.opponent))
            if parts := [f"{describe_seeds(seeds)} of {entry.title}" for seeds, entry in lonely if seeds]:
                notes.append(f"{one.where}: without a partner, and so not in the test over runs: {'; '.join(parts)}.")
    heads = "Against:text | Difference | Pairs of runs | p over runs | Holm | Pairs of split means | p over splits"
    what = {"accuracy": "accuracy", "f1": "macro F1 (the paper's)", "f1_macro": "macro F1 (the usual)"}[metric]
    caption = f"Paired t-tests of {what}; the best opponent is set off"
    made = Table.of(caption, f"{heads} | Holm | Paper's p", groups, notes)
    return made.without("Paper's p") if of_own(by_dataset) else made


def significance_table(by_dataset: ByDataset) -> Table:
    """Return for PPNP and APPNP on each dataset how many baselines they beat, and by how little the nearest.

    Examples
    --------
    >>> significance_table({}).n_rows
    0
    """

    def row(found: Sequence[Comparison]) -> Cells:
        near = min(found, key=lambda each: each.splits.difference)
        wins = (f"{sum(each.wins(over_splits=which) for each in found)} of {len(found)}" for which in (True, False))
        lead = Number(100 * near.splits.difference, 2, signed=True), PValue(near.splits.holm)
        printed = ((each, each.published) for each in found if each.published is not None)
        papers = [(each.opponent.title, PValue(each.runs.p), PValue(p, quoted=True)) for each, p in printed]
        return near.entry.title, *wins, near.opponent.title, *lead, *(papers[0] if papers else (None, None, None))

    groups: dict[str | None, list[Cells]] = {}
    for name, entries in by_dataset.items():
        by_model = groupby(papers_comparisons({name: entries}, "accuracy"), key=lambda each: each.entry)
        groups[dataset_title(name)] = [row(list(found)) for _, found in by_model]
    heads = (
        "Model:text | Better over splits | Better over runs | Nearest baseline:text | Difference, points | "
        "p over splits, Holm | Paper's opponent:text | p over runs, uncorrected | Paper's p"
    )
    caption = f"Significantly better than how many of the paper's baselines, p < {SIGNIFICANT} after Holm"
    made = Table.of(caption, heads, groups)
    return made.without("Paper's opponent", "p over runs, uncorrected", "Paper's p") if of_own(by_dataset) else made


def count_wins(found: Sequence[Comparison]) -> str:
    """Say in how many comparisons the models are significantly better; empty where there are none.

    >>> count_wins([])
    ''
    """
    if not found:
        return ""
    models = list(dict.fromkeys(each.entry.title for each in found))
    over_splits, over_runs = (sum(each.wins(over_splits=which) for each in found) for which in (True, False))
    return (
        f"{listed(models)} {'are' if len(models) > 1 else 'is'} significantly better than a baseline of the paper "
        f"(p < {SIGNIFICANT} after Holm) in {over_splits} of {len(found)} comparisons over splits, and in {over_runs} over runs"
    )


def _gap(each: Comparison, metric: Metric) -> str:
    """Return the mean difference over splits in the metric's unit."""
    points = metric == "accuracy"
    gap = Number(each.splits.difference * (100 if points else 1), 2 if points else 4, signed=True)
    return f"{gap}{' points' if points else ''}"


def missed(found: Sequence[Comparison]) -> str:
    """Return which comparisons over splits are not won, by opponent; empty where all are.

    >>> missed([])
    ''
    """
    lost = [each for each in found if each.splits.difference < 0 and each.splits.holm < SIGNIFICANT]
    unsure = [each for each in found if not each.wins(over_splits=True) and each not in lost]

    def told(those: Sequence[Comparison]) -> str:
        models: dict[str, list[str]] = {}
        for each in those:
            models.setdefault(each.opponent.where, []).append(each.entry.title)
        return listed([f"{listed(titles)} against {opponent}" for opponent, titles in models.items()])

    ways = {"not distinguished": unsure, "significantly worse": lost}
    return "; ".join(f"{way}: {told(those)}" for way, those in ways.items() if those)


def missed_table(main: ByDataset, many: ByDataset, metric: Metric) -> Table:
    """Return the comparisons that are not won over splits, over runs or over more splits, with the tuned Bt. FP among them.

    Parameters
    ----------
    main, many
        Entries of the accuracy table, and what `more_runs_entries` returns.
    metric
        What is compared: accuracy in points, or macro F1.

    Examples
    --------
    >>> missed_table({}, {}, "f1").n_rows
    0
    """
    rows: list[Cells] = []
    for compare in (papers_comparisons, tuned_comparisons):
        later = {each.where: each for each in compare(many, metric)}
        for each in compare(main, metric):
            more = later.get(each.where)
            won = each.wins(over_splits=True) and each.wins(over_splits=False)
            if not won or (more is not None and not more.wins(over_splits=True)):
                _, lead, p = _lead(each.entry, each.opponent, each.splits.holm, metric)
                after = (None, None) if more is None else _lead(more.entry, more.opponent, more.splits.holm, metric)[1:]
                rows.append((each.where, lead, p, PValue(each.runs.holm), *after))
    name = "accuracy, in points" if metric == "accuracy" else "macro F1"
    heads = "Comparison:text | Difference:measure | p over splits | p over runs | Over more splits:measure | p"
    return Table.of(f"Not better in every test of {name}: differences, and p after Holm", heads, {None: rows})


def exceptions(found: Iterable[Comparison], metric: Metric) -> tuple[str, ...]:
    """Return a sentence for each comparison that is not won over splits and over runs.

    >>> exceptions([], "accuracy")
    ()
    """

    def told(each: Comparison) -> str:
        over = f"{p_words(each.splits.holm)} over splits, {p_words(each.runs.holm)} over runs"
        return f"{each.where}: {_gap(each, metric)}, {over}."

    return tuple(told(each) for each in found if not (each.wins(over_splits=True) and each.wins(over_splits=False)))


def changed_verdicts(few: ByDataset, many: ByDataset, metric: Metric = "accuracy") -> tuple[str, ...]:
    """Return a sentence for each comparison that more splits decide in another way than the accuracy table's.

    >>> changed_verdicts({}, {})
    ()
    """
    found = {
        (each.entry.where, each.opponent.title): each for group in few.values() for each in comparisons(group, metric)
    }
    changed: list[str] = []
    for after in (each for group in many.values() for each in comparisons(group, metric)):
        before = found.get((after.entry.where, after.opponent.title))
        if before is not None and before.wins(over_splits=True) != after.wins(over_splits=True):
            then, now = (f"{p_words(each.splits.holm)} over {each.splits.pairs} splits" for each in (before, after))
            changed.append(f"{after.where}: {then}, {now} ({_gap(after, metric)}).")
    return tuple(changed)


def more_leads_table(many: ByDataset, few: ByDataset, metric: Metric = "accuracy") -> Table:
    """Return every comparison of the p-values over all splits there are, beside the same over the accuracy table's.

    Parameters
    ----------
    many, few
        Entries by dataset: what `more_runs_entries` returns, and those of the accuracy table. Corrections after Holm are
        over the baselines of the former in both.
    metric
        What is compared: accuracy in points, or macro F1.

    Examples
    --------
    >>> more_leads_table({}, {}).n_rows
    0
    """
    groups: dict[str | None, list[Cells]] = {}
    for name, entries in many.items():
        configs = {entry.cell.config for entry in entries}
        before = [entry for entry in few.get(name, ()) if entry.cell.config in configs]
        groups[dataset_title(name)] = list(_leads(entries, before, metric))
    heads = (
        f"Model:text | Against:text | Splits | Difference{', points' if metric == 'accuracy' else ''}:measure | p, Holm | "
        "Splits of the accuracy table | Their difference:measure | Their p, Holm"
    )
    return Table.of(f"Leads over more splits{'' if metric == 'accuracy' else ', in macro F1'}", heads, groups)


def _leads(many: Sequence[TableEntry], few: Sequence[TableEntry], metric: Metric) -> Iterable[Cells]:
    before = {(one.entry.cell.config, one.opponent.cell.config): one for one in comparisons(few, metric)}
    for one in comparisons(many, metric):
        then = before[one.entry.cell.config, one.opponent.cell.config]
        leads = (_lead(each.entry, each.opponent, each.splits.holm, metric) for each in (one, then))
        yield one.entry.title, one.opponent.title, *chain.from_iterable(leads)
    # PPNP against APPNP: one test, which needs no correction
    sides = [{entry.cell.model: entry for entry in entries} for entries in (many, few)]
    if all({"ppnp", "appnp"} <= side.keys() for side in sides):
        pairs = [(side["ppnp"], side["appnp"]) for side in sides]
        tests = [paired_test(first.values(metric), second.values(metric), "splits") for first, second in pairs]
        leads = (_lead(*pair, test.p, metric) for pair, test in zip(pairs, tests, strict=True))
        yield "PPNP", "APPNP", *chain.from_iterable(leads)


def _lead(first: TableEntry, second: TableEntry, p: float, metric: Metric) -> Cells:
    unit, digits = (100.0, 2) if metric == "accuracy" else (1.0, 4)
    gaps = [unit * gap for gap in split_gaps(first.values(metric), second.values(metric)).values()]
    return Number(len(gaps), 0), Measure(sum(gaps) / len(gaps), student_half(gaps), digits), PValue(p)
