"""The results in short, for the documentation (`publish_results`): the main tables beside the paper's, and parts of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import compress

from pprop.study.experiment import Experiment
from pprop.study.report.page import Block, Bullets, Page, Section
from pprop.study.tables.entries import ByDataset, Metric, dataset_title
from pprop.study.tables.p_values import SIGNIFICANT, Comparison, papers_comparisons, significance_table
from pprop.study.tables.paper import SLACK, SLACK_ELSEWHERE, disagreements, overview_table, score
from pprop.study.tables.table import Number, Table, listed
from pprop.study.tables.times import costs, main_cost_table

# Sections of the report that are taken as they are, where it has them.
FROM_REPORT = ("Time per epoch", "Spread", "A thousand runs", "Figures", "Claims in the text")


def brief_page(
    report: Page, main: ByDataset, experiments: Mapping[str, Experiment], times: ByDataset | None = None
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
        kept = [column.kind != "code" for column in block.columns]
        groups = (replace(one, rows=tuple(tuple(compress(row, kept)) for row in one.rows)) for one in block.groups)
        return replace(block, columns=tuple(compress(block.columns, kept)), groups=tuple(groups))

    return replace(section, blocks=tuple(narrow(block) for block in section.blocks))


def _scores(main: ByDataset, metric: Metric) -> Iterator[Block]:
    scores = [score(entry, metric) for group in main.values() for entry in group]
    if not any(one.ours is not None for one in scores):
        return
    yield overview_table(main, metric, beside_paper=True)
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


def _p_values(main: ByDataset) -> Iterator[Block]:
    table = significance_table(main)
    if not table.n_rows:
        return
    yield (
        "Paired t-tests of accuracy against every baseline that was run, with Holm's correction over the baselines "
        "of one dataset. Over runs, pairs have equal seeds, as published; over split means, they are means over the "
        "initialisations of a split, because initialisations of different models have nothing in common. Bt. FP "
        "has one run per split, so both are over split means. The paper's p is taken to be against the best "
        "baseline of its own table."
    )
    yield table
    metrics: dict[str, Metric] = {"accuracy": "accuracy", "macro F1": "f1"}
    for name, metric in metrics.items():
        found = papers_comparisons(main, metric)
        yield f"By {name}, {_wins(found)}."
        if missed := [each for each in found if not (each.wins(over_splits=False) and each.wins(over_splits=True))]:
            yield "The exceptions:"
            yield Bullets(tuple(_missed(each, metric) for each in missed))


def _wins(found: list[Comparison]) -> str:
    """Say in how many comparisons the models are significantly better."""
    models = list(dict.fromkeys(each.entry.title for each in found))
    over_runs, over_splits = (sum(each.wins(over_splits=which) for each in found) for which in (False, True))
    return (
        f"{listed(models)} {'are' if len(models) > 1 else 'is'} significantly better than a baseline (p < {SIGNIFICANT} after Holm) "
        f"in {over_runs} of {len(found)} comparisons over runs, and in {over_splits} over split means"
    )


def _missed(each: Comparison, metric: Metric) -> str:
    points = metric == "accuracy"
    gap = Number(each.splits.difference * (100 if points else 1), 2 if points else 4, signed=True)
    over = f"p = {each.runs.holm:.2g} over runs, {each.splits.holm:.2g} over split means"
    return f"{each.where}: {gap}{' points' if points else ''}, {over}."


def significance_sentence(main: ByDataset) -> str:
    """Return in how many comparisons of accuracy PPNP and APPNP are significantly better, and in which they are not.

    Empty where there is nothing to compare.

    Examples
    --------
    >>> significance_sentence({})
    ''
    """
    found = papers_comparisons(main, "accuracy")
    if not found:
        return ""
    against: dict[str, dict[str, list[str]]] = {}  # dataset, model, opponents
    ways = {"over runs": False, "over split means": True}
    for each in found:
        lost = [over for over, which in ways.items() if not each.wins(over_splits=which)]
        if lost:
            only = f" ({lost[0]} alone)" if len(lost) < len(ways) else ""
            opponents = against.setdefault(dataset_title(each.entry.cell.dataset), {})
            opponents.setdefault(each.entry.title, []).append(f"{each.opponent.title}{only}")
    parts: list[str] = []
    for dataset, by_model in against.items():
        same: dict[str, list[str]] = {}
        for model, opponents in by_model.items():
            same.setdefault(listed(opponents), []).append(model)
        parts += [f"{listed(models)} against {opponents} on {dataset}" for opponents, models in same.items()]
    return _except(_wins(found), parts)


def _except(text: str, parts: list[str]) -> str:
    return f"{text}; the exceptions: {'; '.join(parts)}." if parts else f"{text}."


def more_splits_sentence(many: ByDataset) -> str:
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
    found = papers_comparisons(many, "accuracy")
    if not found:
        return ""
    splits = max(each.splits.pairs for each in found)
    missed = [each.where for each in found if not each.wins(over_splits=True)]
    where = listed([dataset_title(name) for name in many])
    return _except(f"Over {splits} splits of {where} they are in {len(found) - len(missed)} of {len(found)}", missed)


def _cost(main: ByDataset, experiments: Mapping[str, Experiment], times: ByDataset) -> Iterator[Block]:
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
