"""The results in short, for the documentation: the main tables beside the paper's, and parts of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pprop.study.experiment import Experiment
from pprop.study.report.cost import costs, main_cost_table
from pprop.study.report.page import Block, Bullets, Page, Section
from pprop.study.tables import Column, Entry, Group, Table, comparisons, score
from pprop.study.tables.beside import beside_table
from pprop.study.tables.grid import Number, PValue, Value
from pprop.study.tables.p_values import Comparison
from pprop.study.tables.samples import Metric
from pprop.study.tables.scores import SLACK, SLACK_ELSEWHERE, disagreements
from pprop.study.tables.titles import TESTED, dataset_title, listed

__all__ = ["brief_page", "more_splits_sentence", "significance_sentence", "significance_table"]

FROM_REPORT = ("Time per epoch", "Spread", "A thousand runs", "Figures", "Claims in the text")
"""Sections of the report that are taken as they are, where it has them."""

SIGNIFICANT = 0.05
OVER = {"over runs": False, "over split means": True}
"""The two kinds of pairs: whether they are of split means."""


def brief_page(
    report: Page,
    main: Mapping[str, Sequence[Entry]],
    experiments: Mapping[str, Experiment],
    times: Mapping[str, Sequence[Entry]] | None = None,
) -> Page:
    """Return the results in short.

    Parameters
    ----------
    report
        The whole of it.
    main
        Entries of the accuracy table, by dataset.
    experiments
        Those that come with pprop.
    times
        Entries of the table of time per epoch, by dataset.

    Examples
    --------
    >>> [section.title for section in brief_page(Page("Study", ("2 runs.",), ()), {}, {}).sections]
    []
    """
    of_report = {section.title: section for section in report.sections}
    sections = [
        Section("Accuracy", tuple(_scores(main, "accuracy"))),
        Section("Macro F1", tuple(_scores(main, "f1"))),
        Section("p-values", tuple(_p_values(main))),
        *(_without_commands(of_report[title]) for title in FROM_REPORT if title in of_report),
        Section("Cost", tuple(_cost(main, experiments, times or {}))),
        *(of_report[title] for title in ("What was run", "Notes") if title in of_report),
    ]
    return Page("Results", report.lead, tuple(section for section in sections if section.blocks))


def _without_commands(section: Section) -> Section:
    """Return a section whose tables have no column of commands: the whole report has them."""

    def narrow(block: Block) -> Block:
        if not isinstance(block, Table):
            return block
        kept = [number for number, column in enumerate(block.columns) if column.kind != "code"]
        groups = (
            replace(group, rows=tuple(tuple(row[n] for n in kept) for row in group.rows)) for group in block.groups
        )
        return replace(block, columns=tuple(block.columns[number] for number in kept), groups=tuple(groups))

    return replace(section, blocks=tuple(narrow(block) for block in section.blocks))


def _scores(main: Mapping[str, Sequence[Entry]], metric: Metric) -> Iterator[Block]:
    scores = [score(entry, metric) for group in main.values() for entry in group]
    if not any(one.ours is not None for one in scores):
        return
    yield beside_table(main, metric)
    compared = [one for one in scores if one.within is not None]
    if compared:
        unit = 1.0 if metric == "accuracy" else 0.01
        slack = f"{SLACK_ELSEWHERE * unit:g}{' points' if metric == 'accuracy' else ''}"
        wider = f"{max(SLACK.values()) * unit:g} on {' and '.join(map(dataset_title, SLACK))}"
        yield (
            f"Of {len(compared)} values that the paper also gives, {sum(bool(one.within) for one in compared)} are within "
            f"the sum of both 95 % intervals plus {slack} ({wider}, whose files have another order of nodes, and so other "
            "test nodes)."
        )
    outside = disagreements([one for one in compared if not one.within])
    if outside:
        yield "The others:"
        yield Bullets(outside)


def _p_values(main: Mapping[str, Sequence[Entry]]) -> Iterator[Block]:
    table = significance_table(main)
    if not table.n_rows:
        return
    yield (
        "Paired t-tests of accuracy against every baseline that was run, corrected after Holm over the baselines of one "
        "dataset. Over runs, pairs have equal seeds, as published; over split means, they are means over the "
        "initialisations of a split, because initialisations of different models have nothing in common. Bt. FP has one "
        "run per split, so that both are over split means. The paper's p is taken as that against the best baseline of "
        "its own table."
    )
    yield table
    metrics: tuple[tuple[str, Metric], ...] = (("accuracy", "accuracy"), ("macro F1", "f1"))
    for name, metric in metrics:
        found = [each for group in main.values() for each in comparisons(group, metric) if _of_the_paper(each)]
        models = " and ".join(dict.fromkeys(each.entry.title for each in found))
        runs, splits = (sum(_wins(each, over_splits=which) for each in found) for which in (False, True))
        yield (
            f"By {name}, {models} {'are' if ' and ' in models else 'is'} significantly better, p < {SIGNIFICANT} after Holm, in "
            f"{runs} of {len(found)} comparisons over runs, and in {splits} over split means."
        )
        missed = [each for each in found if not (_wins(each, over_splits=False) and _wins(each, over_splits=True))]
        if missed:
            yield "Not so:"
            yield Bullets(tuple(_missed(each, metric) for each in missed))


def significance_table(main: Mapping[str, Sequence[Entry]]) -> Table:
    """Return for PPNP and APPNP on each dataset how many baselines they beat, and by how little the nearest.

    Examples
    --------
    >>> significance_table({}).n_rows
    0
    """
    groups: list[Group] = []
    for name, entries in main.items():
        found = [each for each in comparisons(entries, "accuracy") if _of_the_paper(each)]
        rows = [
            _row([each for each in found if each.entry is entry]) for entry in dict.fromkeys(e.entry for e in found)
        ]
        if rows:
            groups.append(Group(dataset_title(name), tuple(rows)))
    columns = (
        Column("Model", "text"),
        Column("Better over runs"),
        Column("Better over split means"),
        Column("Nearest baseline", "text"),
        Column("Difference, points"),
        Column("p over runs, Holm"),
        Column("p over split means, Holm"),
        Column("Paper's opponent", "text"),
        Column("p over runs"),
        Column("Paper's p"),
    )
    return Table(f"Significantly better than how many baselines, p < {SIGNIFICANT} after Holm", columns, tuple(groups))


def significance_sentence(main: Mapping[str, Sequence[Entry]]) -> str:
    """Return in how many comparisons of accuracy PPNP and APPNP are significantly better, and in which they are not.

    Empty where there is nothing to compare.

    Examples
    --------
    >>> significance_sentence({})
    ''
    """
    found = [each for group in main.values() for each in comparisons(group, "accuracy") if _of_the_paper(each)]
    if not found:
        return ""
    models = list(dict.fromkeys(each.entry.title for each in found))
    runs, splits = (sum(_wins(each, over_splits=which) for each in found) for which in (False, True))
    told = (
        f"{listed(models)} {'are' if len(models) > 1 else 'is'} significantly better than a baseline (p < {SIGNIFICANT} after Holm) "
        f"in {runs} of {len(found)} comparisons over runs, and in {splits} over split means"
    )
    against: dict[str, dict[str, list[str]]] = {}  # dataset, model, opponents
    for each in found:
        lost = [over for over, which in OVER.items() if not _wins(each, over_splits=which)]
        if lost:
            only = f" ({lost[0]} alone)" if len(lost) < len(OVER) else ""
            opponents = against.setdefault(dataset_title(each.entry.cell.dataset), {})
            opponents.setdefault(each.entry.title, []).append(f"{each.opponent.title}{only}")
    parts: list[str] = []
    for dataset, by_model in against.items():
        same: dict[str, list[str]] = {}
        for model, opponents in by_model.items():
            same.setdefault(listed(opponents), []).append(model)
        parts += [f"{listed(models)} against {opponents} on {dataset}" for opponents, models in same.items()]
    return f"{told}; not so: {'; '.join(parts)}." if parts else f"{told}."


def more_splits_sentence(many: Mapping[str, Sequence[Entry]]) -> str:
    """Return where PPNP and APPNP are not significantly better over all splits of the section on more runs.

    Empty where there are none.

    Parameters
    ----------
    many
        What `more_runs_entries` returns.

    Examples
    --------
    >>> more_splits_sentence({})
    ''
    """
    found = [each for group in many.values() for each in comparisons(group, "accuracy") if _of_the_paper(each)]
    if not found:
        return ""
    splits = max(each.splits.pairs for each in found)
    where = listed([dataset_title(name) for name in many])
    missed = [each for each in found if not _wins(each, over_splits=True)]
    told = f"Over {splits} splits of {where} they are in {len(found) - len(missed)} of {len(found)}"
    without = [
        f"{each.entry.title} against {each.opponent.title} on {dataset_title(each.entry.cell.dataset)}"
        for each in missed
    ]
    return f"{told}; not so: {'; '.join(without)}." if without else f"{told}."


def _row(found: Sequence[Comparison]) -> tuple[Value, ...]:
    nearest = min(found, key=lambda each: each.splits.difference)
    printed = next((each for each in found if each.published is not None), None)
    return (
        nearest.entry.title,
        f"{sum(_wins(each, over_splits=False) for each in found)} of {len(found)}",
        f"{sum(_wins(each, over_splits=True) for each in found)} of {len(found)}",
        nearest.opponent.title,
        Number(100 * nearest.splits.difference, 2, signed=True),
        PValue(nearest.runs_holm),
        PValue(nearest.splits_holm),
        None if printed is None else printed.opponent.title,
        None if printed is None else PValue(printed.runs.p),
        None if printed is None or printed.published is None else PValue(printed.published),
    )


def _of_the_paper(each: Comparison) -> bool:
    return each.entry.cell.model in TESTED


def _wins(each: Comparison, *, over_splits: bool) -> bool:
    p = each.splits_holm if over_splits else each.runs_holm
    return each.splits.difference > 0 and p < SIGNIFICANT


def _missed(each: Comparison, metric: Metric) -> str:
    where = f"{each.entry.title} against {each.opponent.title} on {dataset_title(each.entry.cell.dataset)}"
    points = metric == "accuracy"
    gap = Number(each.splits.difference * (100 if points else 1), 2 if points else 4, signed=True)
    over = f"p = {each.runs_holm:.2g} over runs, {each.splits_holm:.2g} over split means"
    return f"{where}: {gap}{' points' if points else ''}, {over}."


def _cost(
    main: Mapping[str, Sequence[Entry]], experiments: Mapping[str, Experiment], times: Mapping[str, Sequence[Entry]]
) -> Iterator[Block]:
    table = main_cost_table(main, experiments.values(), times)
    if not table.n_rows:
        return
    found = [cost for group in main.values() for cost in costs(group, experiments.values())]
    both = [cost for cost in found if cost.authors is not None and cost.gpu and not cost.cpu]
    yield (
        f"The {sum(cost.runs for cost in found):,} runs of the main table took {sum(cost.gpu for cost in found):,.0f} seconds "
        f"of a GPU and {sum(cost.cpu for cost in found):,.0f} of a CPU."
    )
    if both:
        ours, authors = sum(cost.gpu for cost in both), sum(cost.authors or 0.0 for cost in both)
        yield (
            f"For the {len(both)} cells that ran on the GPU and that the paper timed, the authors' code would need "
            f"{authors / 3600:.1f} hours on the paper's GPU of 2018, {authors / ours:,.0f} times our {ours:,.0f} seconds on "
            "one of today: the ratio is one of machines as well as of programs."
        )
    yield table
