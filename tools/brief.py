"""The results in short, for the documentation (`publish_results`): a summary, the main tables, the figures and the verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tools.bootstrapped_fp import Readings, validation_blocks

from pprop.study.experiment import Experiment
from pprop.study.report.claims import ClaimFigure, claims_table, counts, further_findings
from pprop.study.report.page import Block, Bullets, Page, Picture, Section
from pprop.study.store.row import RowKey
from pprop.study.tables.agreement import agreement, fitted_sentence, init_sentence, nearness_sentence, nearness_table
from pprop.study.tables.entries import ByDataset, Metric, Samples, dataset_order, dataset_title
from pprop.study.tables.over_nodes import NodeLead, over_nodes_sentence, over_nodes_table
from pprop.study.tables.p_values import (
    SIGNIFICANT,
    Comparison,
    count_wins,
    missed,
    missed_table,
    papers_comparisons,
    significance_table,
    tuned_comparisons,
)
from pprop.study.tables.paper import overview_table, score
from pprop.study.tables.runs import search_sentence
from pprop.study.tables.table import Number, listed, p_words
from pprop.study.tables.times import cost_sentences, ratio_table

SHORT = {"mlp": "Network alone (MLP)", "gcn": "GCN", "appnp": "APPNP"}  # models of the README's table

TUNED = (
    "The tuned model's penalty, scaling and self-loops were chosen on validation splits; PPNP and APPNP have the published "
    "settings."
)
METRICS: tuple[Metric, Metric] = ("accuracy", "f1")

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
    claims: Sequence[ClaimFigure] = (),
    samples: Samples | None = None,
    readings: Readings = (),
    shared: Collection[RowKey] = (),
    leads: Sequence[NodeLead] = (),
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
    readings
        Rows of Bt. FP on validation splits.
    shared
        Rows of processes that shared their device: their seconds are not for planning.
    leads
        Comparisons of accuracy over test nodes.

    Examples
    --------
    >>> [section.title for section in brief_page(Page("Study", ("2 runs.",), ()), {}, {}).sections]
    []
    """
    figures = next((section.blocks for section in report.sections if section.title == "Figures"), ())
    there = samples or Samples([])
    sections = [
        Section("Summary", tuple(summary(main, many or {}, claims, there, readings, leads))),
        Section("Accuracy", tuple(_scores(main, "accuracy"))),
        Section("Macro F1", tuple(_scores(main, "f1"))),
        Section("Beside the paper", tuple(_near(main, there))),
        Section("Bt. FP on validation splits", tuple(validation_blocks(main, readings))),
        Section("Significance", tuple(_p_values(main, many or {}))),
        Section("Over test nodes", tuple(_over_nodes(leads))),
        Section("Time and cost", tuple(_times(main, experiments, times or {}, shared))),
        Section("Figures", tuple(replace(each, command="") if isinstance(each, Picture) else each for each in figures)),
        Section("Claims in the text", tuple(claims_blocks(claims))),
        Section("Hyperparameters", tuple(_search(experiments, there))),
        Section("What is missing", tuple(_missing(experiments, there, shared))),
        Section("Looks at test nodes", tuple(_looks(report))),
    ]
    return Page("Results", report.lead[1:2], tuple(section for section in sections if section.blocks))


def summary(
    main: ByDataset,
    many: ByDataset,
    claims: Sequence[ClaimFigure],
    samples: Samples,
    readings: Readings = (),
    leads: Sequence[NodeLead] = (),
) -> Iterator[Block]:
    """Yield what reproduces, and what does not, in lines; nothing where there is nothing to say."""
    lines = [
        agreement(main, samples),
        init_sentence(main),
        significance_sentence(main),
        more_splits_sentence(main, many),
        over_nodes_sentence(leads),
        tuned_sentence(main, many),
    ]
    apart = [one.where for one in _apart(main, "accuracy")]
    if apart:
        lines.append(f"Accuracies that disagree with the paper's: {listed(apart)}.")
        if any(validation_blocks(main, readings)):
            lines[-1] += (
                " On three graphs of four the paper's row of Bt. FP is most likely of the validation splits, see below."
            )
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


def _near(main: ByDataset, samples: Samples) -> Iterator[Block]:
    if (table := nearness_table(main)).n_rows:
        yield from (nearness_sentence(main), table)
        if text := fitted_sentence(main, samples):
            yield text


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
    yield _by_the_papers_test(papers_comparisons(main, "accuracy"))
    yield from (table for metric in METRICS if (table := missed_table(main, many, metric)).n_rows)
    yield from _f1_verdicts(main)


def _over_nodes(leads: Sequence[NodeLead]) -> Iterator[Block]:
    """Yield the leads that are significant over splits and not over test nodes; nothing where there are none."""
    table = over_nodes_table(
        (one for one in leads if one.of_these_nodes),
        "Significant over splits, and not over test nodes: accuracy in points",
    )
    if table.n_rows:
        yield (
            "All splits of a graph are evaluated on the same test nodes, as in the paper. Tests over splits show how results vary with "
            "the training nodes. They do not show how results vary with the test nodes. Here test nodes are drawn with replacement "
            "instead of splits. The report has all comparisons."
        )
        yield table


def _by_the_papers_test(found: Sequence[Comparison]) -> str:
    """Return a sentence on the test that the paper made: over runs, and uncorrected."""
    lost = [each for each in found if not (each.runs.difference > 0 and each.runs.p < SIGNIFICANT)]
    text = f"By the paper's test, over runs and without a correction, they are better in {len(found) - len(lost)} of {len(found)}"
    return _except(text, [f"{each.where} ({p_words(each.runs.p)})" for each in lost])


def _f1_verdicts(main: ByDataset) -> Iterator[Block]:
    """Yield a sentence on macro F1."""
    found = papers_comparisons(main, "f1")
    over_splits, over_runs = (sum(each.wins(over_splits=which) for each in found) for which in (True, False))
    if found:
        yield f"In macro F1 they are better in {over_splits} of {len(found)} over splits and {over_runs} over runs."


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

    By accuracy and by macro F1. It names the baselines that have no such runs; empty where there are none.

    Parameters
    ----------
    main, many
        Entries of the accuracy table, and what `more_runs_entries` returns.

    Examples
    --------
    >>> more_splits_sentence({}, {})
    ''
    """
    found, f1 = (papers_comparisons(many, metric) for metric in METRICS)
    if not found:
        return ""
    splits = max(each.splits.pairs for each in found)
    where = listed([dataset_title(name) for name in many])
    there = {each.opponent.title for each in found}
    left = dict.fromkeys(
        each.opponent.title for each in papers_comparisons(main, "accuracy") if each.opponent.title not in there
    )
    without = f" (without {listed(list(left))}, not run there)" if left else ""
    counts = f"{_won(found)} by accuracy and in {_won(f1)} by macro F1"
    return f"Over {splits} splits of {where} they are in {counts}{without}.{_rest(found, f1)}"


def tuned_sentence(main: ByDataset, many: ByDataset) -> str:
    """Return how PPNP and APPNP compare with the tuned linear model; empty where it was not run.

    >>> tuned_sentence({}, {})
    ''
    """
    few = [tuned_comparisons(main, metric) for metric in METRICS]
    if not few[0]:
        return ""
    more = [tuned_comparisons(many, metric) for metric in METRICS]
    parts = [
        f"over {found[0].splits.pairs} splits in {_won(found)} by accuracy and in {_won(f1)} by macro F1"
        for found, f1 in (few, more)
        if found
    ]
    text = "PPNP and APPNP are significantly better than a tuned linear model on propagated features (Bt. FP, tuned)"
    return f"{text}: {', '.join(parts)}.{_rest(*(more if more[0] else few))} {TUNED}"


def _won(found: Sequence[Comparison]) -> str:
    return f"{sum(each.wins(over_splits=True) for each in found)} of {len(found)}"


def _rest(found: Sequence[Comparison], f1: Sequence[Comparison]) -> str:
    """Return a sentence on what is not won by accuracy, and one on macro F1; empty where all is."""
    rest = {"accuracy": missed(found), "macro F1": missed(f1)}
    splits = max(each.splits.pairs for each in found)
    return "".join(f" By {name} over {splits} splits, {text}." for name, text in rest.items() if text)


def _times(
    main: ByDataset, experiments: Mapping[str, Experiment], times: ByDataset, shared: Collection[RowKey]
) -> Iterator[Block]:
    table = ratio_table(times)
    if table.n_rows:
        yield table
        yield (
            "Not comparable with the paper's: MLP, PPNP and APPNP have a fused training step here, the "
            "others use autograd."
        )
    yield from cost_sentences(main, experiments.values(), shared)[:1]


def claims_blocks(claims: Sequence[ClaimFigure]) -> Iterator[Block]:
    """Yield the table of claims."""
    if claims:
        yield (
            "The figures are computed from the rows and the graphs. The readings and sentences are written by hand: "
            "no program decides them. Brackets have the 95 % interval, or the range where the row says so. The intervals are not "
            "corrected for the number of claims."
        )
        yield claims_table(claims, sentences=True)


def _search(experiments: Mapping[str, Experiment], samples: Samples) -> Iterator[Block]:
    if text := search_sentence(experiments, samples):
        yield f"30 settings of each model (the report has the grids), five validation splits. {text}"


def _missing(experiments: Mapping[str, Experiment], samples: Samples, shared: Collection[RowKey]) -> Iterator[Block]:
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
            alone = [row for row in made if row.key not in shared] or made
            counts[2] += sum(row.seconds for row in alone) / len(alone) * (len(seeds) - len(made)) if made else 0.0
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
            "devices that made these, one process each. Bt. FP was run with 20 labels per class only, and its hyperparameters were not "
            "searched."
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
