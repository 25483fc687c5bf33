"""The results in short, for the documentation (`publish_results`): a summary, the main tables, the figures and the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pprop.study.experiment import Experiment
from pprop.study.report.claims import Found, claims_table, counts, further_findings
from pprop.study.report.page import Block, Bullets, Page, Picture, Section
from pprop.study.tables.entries import ByDataset, Metric, Samples, dataset_order, dataset_title
from pprop.study.tables.p_values import (
    SIGNIFICANT,
    count_wins,
    papers_comparisons,
    significance_table,
    tuned_comparisons,
)
from pprop.study.tables.paper import agreement, overview_table, score
from pprop.study.tables.runs import search_sentence
from pprop.study.tables.table import Cells, Number, Table, listed
from pprop.study.tables.times import cost_sentences, ratio_table

SHORT = {"mlp": "Network alone (MLP)", "gcn": "GCN", "appnp": "APPNP"}  # models of the README's table

LOOKS = (
    "Against the published means: 20 runs of PPNP and APPNP on Citeseer and Cora-ML (`core_accuracy.json`).",
    "180 further splits of Citeseer and Cora-ML, with the same test nodes.",
    "Times: 100 runs of APPNP a graph (`gpu/appnp_row.json`), 100 on Cora-ML twice (`cell_cora_ml_cpu.json`, "
    "`gpu/cell_cora_ml.json`). GPU against CPU: 194 runs (`gpu_rows_on_cpu.json`), five of GCN, 20 rows (`verify.txt`). "
    "`make demo`: four splits of Citeseer.",
    "20 splits of each graph, once: `PropagatedClassifier` (`propagated_classifier.json`), mini-batches (`minibatch.json`), the "
    "ensemble with the stopping labels and its controls (`more_accuracy.json`; GCN and GAT on MS Academic: ten).",
    "Bt. FP, tuned: four splits of Cora-ML with C from 10 to 1e5. Bt. FP on MS Academic: three splits before all 20.",
    "Changed after a test cell had differed from the paper, on validation splits: JK's convolutions, Bt. FP's solver and "
    "reading.",
)


def brief_page(
    report: Page,
    main: ByDataset,
    experiments: Mapping[str, Experiment],
    times: ByDataset | None = None,
    many: ByDataset | None = None,
    claims: Sequence[Found] = (),
    samples: Samples | None = None,
) -> Page:
    """Return the results in short.

    Parameters
    ----------
    report
        The whole of it.
    main, times, many
        Entries of the accuracy table, of that of time per epoch, and those with more runs, by dataset.
    experiments
        Those that come with pprop.
    claims
        With their figures.
    samples
        The rows that are shown.

    Examples
    --------
    >>> [section.title for section in brief_page(Page("Study", ("2 runs.",), ()), {}, {}).sections]
    []
    """
    figures = next((section.blocks for section in report.sections if section.title == "Figures"), ())
    sections = [
        Section("Summary", tuple(summary(main, many or {}, claims))),
        Section("Accuracy", tuple(_scores(main, "accuracy"))),
        Section("Macro F1", tuple(_scores(main, "f1"))),
        Section("Significance", tuple(_p_values(main, many or {}))),
        Section("Time and cost", tuple(_times(main, experiments, times or {}))),
        Section("Figures", tuple(replace(each, command="") if isinstance(each, Picture) else each for each in figures)),
        Section("Claims in the text", tuple(claims_blocks(claims))),
        Section("Hyperparameters", tuple(_search(experiments, samples or Samples([])))),
        Section("What is missing", tuple(_missing(experiments, samples or Samples([])))),
        Section("Looks at test nodes", tuple(_looks(report))),
    ]
    return Page("Results", report.lead[1:2], tuple(section for section in sections if section.blocks))


def summary(main: ByDataset, many: ByDataset, claims: Sequence[Found]) -> Iterator[Block]:
    """Yield what reproduces, and what does not, in lines; nothing where there is nothing to say."""
    lines = [agreement(main), significance_sentence(main), more_splits_sentence(main, many), tuned_sentence(main, many)]
    apart = [one.where for one in _apart(main, "accuracy")]
    lines.append(f"Accuracies that disagree with the paper's: {listed(apart)}; why is unknown." if apart else "")
    lines += [*counts(claims), further_findings(claims)]
    if lines := [line for line in lines if line]:
        yield Bullets(tuple(lines))


def _apart(main: ByDataset, metric: Metric) -> list[Any]:
    scores = (score(entry, metric) for group in main.values() for entry in group)
    return [one.entry for one in scores if one.agrees is False]


def _scores(main: ByDataset, metric: Metric) -> Iterator[Block]:
    scores = [score(entry, metric) for group in main.values() for entry in group]
    if not any(one.ours is not None for one in scores):
        return
    yield overview_table(main, metric, beside_paper=True)
    apart = [
        f"{one.title} on {dataset_title(one.entry.cell.dataset)} by {Number(one.difference, one.decimals, signed=True)} "
        f"({Number(abs(one.intervals), 1)} times)"
        for one in scores
        if one.agrees is False and one.difference is not None and one.intervals is not None
    ]
    if apart:
        yield f"Beyond the combined interval: {listed(apart)}."


def _p_values(main: ByDataset, many: ByDataset) -> Iterator[Block]:
    table = significance_table(main)
    if not table.n_rows:
        return
    yield (
        "Paired t-tests of accuracy over splits (means over initialisations), beside those over runs, "
        "as published; Holm's correction is over the paper's baselines on one dataset. The paper's p is taken to be against "
        "its best baseline."
    )
    yield table
    if (missed := _not_better(main, many)).n_rows:
        yield missed
    yield from _f1_verdicts(main)


def _not_better(main: ByDataset, many: ByDataset) -> Table:
    """Return the comparisons of accuracy that are not won over splits and over runs, with their p over more splits."""
    rows: list[Cells] = []
    for compare in (papers_comparisons, tuned_comparisons):
        later = {each.where: each.splits.holm for each in compare(many, "accuracy")}
        for each in compare(main, "accuracy"):
            if not (each.wins(over_splits=True) and each.wins(over_splits=False)):
                values = (each.splits.holm, each.runs.holm, later.get(each.where))
                gap = Number(100 * each.splits.difference, 2, signed=True)
                rows.append((each.where, gap, *(None if value is None else f"{value:.2g}" for value in values)))
    heads = "Comparison:text | Points | over splits | over runs | over 200 splits"
    return Table.of("Not better by both tests: p after Holm", heads, {None: rows})


def _f1_verdicts(main: ByDataset) -> Iterator[Block]:
    """Yield a sentence on macro F1, which names where the tuned linear model is the better one."""
    found = papers_comparisons(main, "f1")
    over_splits, over_runs = (sum(each.wins(over_splits=which) for each in found) for which in (True, False))
    lost = [
        f"{each.where} ({Number(each.splits.difference, 4, signed=True)}, p = {each.splits.holm:.2g})"
        for each in tuned_comparisons(main, "f1")
        if each.splits.difference < 0 and each.splits.holm < SIGNIFICANT
    ]
    if found:
        text = f"In macro F1 they are better in {over_splits} of {len(found)} over splits and {over_runs} over runs"
        yield f"{text}; significantly worse: {listed(lost)}." if lost else f"{text}."


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
    ways = {"over splits": True, "over runs": False}
    for each in found:
        lost = [over for over, which in ways.items() if not each.wins(over_splits=which)]
        if lost:
            only = f" (not {lost[0]})" if len(lost) < len(ways) else ""
            opponents = against.setdefault(dataset_title(each.entry.cell.dataset), {})
            opponents.setdefault(each.entry.title, []).append(f"{each.opponent.title}{only}")
    parts: list[str] = []
    for dataset, by_model in against.items():
        same: dict[str, list[str]] = {}
        for model, opponents in by_model.items():
            same.setdefault(listed(opponents), []).append(model)
        parts += [f"{listed(models)} against {opponents} on {dataset}" for opponents, models in same.items()]
    return _except(count_wins(found), parts)


def short_table(main: ByDataset) -> list[str]:
    """Return the accuracies of `SHORT` with their intervals, as the lines of a table in Markdown; empty without rows.

    >>> short_table({})
    []
    """
    found = {
        (entry.cell.model, dataset): f"{one.ours.mean:.2f} ± {one.ours.half:.2f}"
        for dataset, group in main.items()
        for entry in group
        if entry.cell.model in SHORT and (one := score(entry, "accuracy")).ours
    }
    datasets = [dataset for dataset in main if any((model, dataset) in found for model in SHORT)]
    if not datasets:
        return []
    head = ["Accuracy, %", *map(dataset_title, datasets)]
    rows = [[title, *(found.get((model, name), "") for name in datasets)] for model, title in SHORT.items()]
    return [f"| {' | '.join(row)} |" for row in (head, ["---", *("---:" for _ in datasets)], *rows)]


def _except(text: str, parts: list[str]) -> str:
    return f"{text}; the exceptions: {'; '.join(parts)}." if parts else f"{text}."


def more_splits_sentence(main: ByDataset, many: ByDataset) -> str:
    """Return where PPNP and APPNP are not significantly better over all splits of the section on more runs.

    It names the baselines that have no such runs; empty where there are none.

    Parameters
    ----------
    main, many
        Entries of the accuracy table, and what `more_runs_entries` returns.

    Examples
    --------
    >>> more_splits_sentence({}, {})
    ''
    """
    found = papers_comparisons(many, "accuracy")
    if not found:
        return ""
    splits = max(each.splits.pairs for each in found)
    missed = [each.where for each in found if not each.wins(over_splits=True)]
    where = listed([dataset_title(name) for name in many])
    there = {each.opponent.title for each in found}
    left = dict.fromkeys(
        each.opponent.title for each in papers_comparisons(main, "accuracy") if each.opponent.title not in there
    )
    without = f" (without {listed(list(left))}, not run there)" if left else ""
    return _except(
        f"Over {splits} splits of {where} they are in {len(found) - len(missed)} of {len(found)}{without}", missed
    )


def tuned_sentence(main: ByDataset, many: ByDataset) -> str:
    """Return how PPNP and APPNP compare with the tuned linear model; empty where it was not run.

    >>> tuned_sentence({}, {})
    ''
    """
    found, more = tuned_comparisons(main, "accuracy"), tuned_comparisons(many, "accuracy")
    if not found:
        return ""
    won = sum(each.wins(over_splits=True) for each in found)
    ties = [each for each in (more or found) if not each.wins(over_splits=True)]
    text = "A tuned linear model on propagated features (Bt. FP, tuned)"
    better = f"PPNP and APPNP are better in {won} of {len(found)} comparisons over {found[0].splits.pairs} splits"
    if not ties:
        return f"{text}: {better}."
    models: dict[str, list[str]] = {}
    for each in ties:
        models.setdefault(dataset_title(each.entry.cell.dataset), []).append(each.entry.title)
    names = [f"{listed(titles)} on {dataset}" for dataset, titles in models.items()]
    gaps = [f"{Number(100 * each.splits.difference, 2, signed=True)}" for each in ties]
    values = listed([f"{each.splits.holm:.2g}" for each in ties])
    over = f"{listed(gaps)} points from it over {ties[0].splits.pairs} splits, p = {values}"
    return f"{text} ties {listed(names)}: {over}; {better}."


def _times(main: ByDataset, experiments: Mapping[str, Experiment], times: ByDataset) -> Iterator[Block]:
    table = ratio_table(times)
    if table.n_rows:
        yield table
        yield (
            "Not comparable with the paper's: MLP, PPNP and APPNP have a fused training step here, the "
            "others use autograd."
        )
    yield from cost_sentences(main, experiments.values())[:1]


def claims_blocks(claims: Sequence[Found]) -> Iterator[Block]:
    """Yield the table of claims."""
    if claims:
        yield (
            "The figures are computed from the rows and the graphs. The readings and sentences are written by hand: "
            "no program decides them. Brackets have the 95 % interval, or the range where the row says so."
        )
        yield claims_table(claims, sentences=True)


def _search(experiments: Mapping[str, Experiment], samples: Samples) -> Iterator[Block]:
    if text := search_sentence(experiments, samples):
        yield f"30 settings of each model (the report has the grids), five validation splits. {text}"


def _missing(experiments: Mapping[str, Experiment], samples: Samples) -> Iterator[Block]:
    done: dict[str, list[float]] = {}
    where: dict[str, set[str]] = {}
    for one in experiments.values():
        if one.shows in ("quick", "rerun", "time", "runs"):
            continue
        counts = done.setdefault(one.shows, [0, 0, 0.0])
        for cell in (point.cell for point in one.points):
            sample, seeds = samples.of(cell), set(one.seeds(cell=cell))
            made = [row for row in (() if sample is None else sample.rows) if row.key.seeds in seeds]
            counts[0], counts[1] = counts[0] + len(made), counts[1] + len(seeds)
            counts[2] += sum(row.seconds for row in made) / len(made) * (len(seeds) - len(made)) if made else 0.0
            if len(made) < len(seeds):
                where.setdefault(one.shows, set()).add(cell.dataset)
    lacking = {shows: each for shows, each in done.items() if 0 < each[0] < each[1]}
    if lacking:
        graphs = {shows: listed([*map(dataset_title, sorted(where[shows], key=dataset_order))]) for shows in lacking}
        told = [
            f"{shows} {made:,.0f} of {wanted:,.0f} (lacking: {graphs[shows]})"
            for shows, (made, wanted, _) in lacking.items()
        ]
        yield (
            f"Runs made: {', '.join(told)}. The rest would take {sum(each[2] for each in lacking.values()):,.0f} seconds of the "
            "devices that made these. Bt. FP, untuned: 20 labels a class alone, and no search."
        )


def _looks(report: Page) -> Iterator[Block]:
    again = [
        block
        for section in report.sections
        if section.title == "What was run"
        for block in section.blocks
        if isinstance(block, str)
    ]
    if again:
        yield Bullets((f"In the rows: {again[0][0].lower()}{again[0][1:]}", *LOOKS))
