"""From a study's rows to a page: which sections there are, and what is said in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from pprop._errors import MissingDependencyError, PpropError
from pprop.datasets import load_dataset
from pprop.study.cell import Cell
from pprop.study.claims import Claim, graph_claims
from pprop.study.claims_from_rows import row_claims
from pprop.study.evidence import Evidence, sweep_runs
from pprop.study.experiment import Experiment
from pprop.study.figures import Drawn, figures_of, save_figure
from pprop.study.figures.as_json import figure_json
from pprop.study.report.cost import main_cost_table
from pprop.study.report.more_runs import more_runs_blocks
from pprop.study.report.others import own_experiments_table, published_and_own
from pprop.study.report.page import Block, Bullets, Page, Picture, Section
from pprop.study.report.runs import cost_table, incomplete, origin_table, other_cells_table, rerun_table, run_again
from pprop.study.store.row import Row
from pprop.study.store.store import Store
from pprop.study.tables import (
    Column,
    Entry,
    Group,
    Sample,
    Samples,
    Score,
    Table,
    dataset_table,
    difference_spread_table,
    disagreements,
    entries,
    overview_table,
    p_value_table,
    read_all_samples,
    score,
    score_table,
    search_table,
    spread_table,
    time_table,
)
from pprop.study.tables.entries import first_runs
from pprop.study.tables.grid import Strong
from pprop.study.tables.samples import Metric
from pprop.study.tables.titles import dataset_order, dataset_title

__all__ = ["build_page"]

METHOD = (
    "Every mean is over runs: the paper's splits times initialisations. The number behind ± is the larger distance from "
    "the mean to an end of its 95 % percentile bootstrap interval (1000 resamples). Differences from the paper are given "
    "in combined intervals, the root of the sum of squares of both ±; beyond 1 the two disagree. As in the paper, ± takes "
    "runs for independent, although those of one split vary together (Spread): it is too narrow for the mean over other "
    "splits than these, so that equal results on other splits (PubMed, MS Academic) lie beyond 1 more often than one time "
    "in 20, and results on the paper's own splits less often. Intervals from fewer than ten runs are too narrow in any "
    "case. `DIR` in a command stands for the study's folder; what has no command of its own is computed from the rows of "
    "the accuracy table, or from the graphs, by `pprop study report DIR`."
)


def build_page(store: Store, experiments: Mapping[str, Experiment], folder: Path) -> Page:
    """Return the report of a store as a page. Sections without rows are left out.

    Parameters
    ----------
    store
        The rows.
    experiments
        What they are shown as. Only those that come with pprop fill tables, figures and claims; others have a section of
        their own.
    folder
        The study's, which keeps what takes long to compute.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name, Store.open(Path(name), create=True) as store:
    ...     [section.title for section in build_page(store, {}, Path(name)).sections]
    []
    """
    everything = read_all_samples(store)
    if not everything:
        return Page("Study", ("There are no rows yet. `pprop study run quick --out DIR` makes some.",), ())
    published, own = published_and_own(experiments)
    samples = everything.published(published)
    main, times = entries(published, samples), entries(published, samples, "time")
    compared = {entry.cell.config for group in main.values() for entry in group if entry.cell.model in ("appnp", "gcn")}
    begun = _begun(published, samples, main)
    timed = {entry.cell.config for group in times.values() for entry in group}
    rows_of = _rows_for_figures(store, samples, compared, timed)
    drawn = figures_of(begun.values(), rows_of, cache(load_dataset))
    datasets = sorted({sample.cell.dataset for sample in everything.values()}, key=dataset_order)
    shown = {each.name: each.data for each in drawn}
    runs = sweep_runs(begun.values(), rows_of)
    evidence = Evidence(main, times, runs, shown.get("distance", ()), shown.get("propagation", ()))
    reruns = [entry for group in entries(published, samples, "rerun").values() for entry in group]
    more = tuple(more_runs_blocks(published, everything, main, samples))
    sections = [
        Section("What was run", _what_was_run(everything, samples)),
        *_scores(main, reruns),
        Section(
            "p-values", (*_p_values(main), *([MORE_SPLITS] if any(isinstance(each, Table) for each in more) else []))
        ),
        Section("Time per epoch", tuple(_times(times))),
        Section("Spread", (*_table(spread_table(main), SPREAD), *_table(difference_spread_table(main), LEAD))),
        Section("A thousand runs", more),
        Section("Figures", tuple(_pictures(drawn, published, samples))),
        Section("Hyperparameters", _table(search_table(published, samples), SEARCH)),
        Section("Other experiments", tuple(_others(own, everything))),
        Section("Datasets", (dataset_table(datasets, folder),)),
        Section("Claims in the text", tuple(_claims(datasets, evidence))),
        Section("Costs", (*_table(main_cost_table(main, published.values(), times), COSTS), cost_table(everything))),
        Section("Notes", tuple(_notes([*published.values(), *own.values()], begun, samples, main))),
    ]
    return Page("Study: predict, then propagate", _lead(main, everything), tuple(s for s in sections if s.blocks))


SPREAD = (
    "How much of the spread is due to splits, and how much to initialisation? Analysis of variance over both; only for "
    "models that have all initialisations of every split. What is called initialisation is all that the seed of a run "
    "decides: first weights and dropout. "
    "The intervals suppose normal deviations: those of initialisations and of shares are exact then, that of splits is the "
    "modified large-sample interval, which held the truth in 94 to 95 % of simulated studies of this size; resampling the "
    "splits did so in 84 to 86 %. Heavy tails make them too narrow."
)
LEAD = (
    "The same for the accuracy of APPNP minus that of another model in the run with the same split and initialisation: "
    "what is hard for both cancels. A lead that varies between splits is made surer by more splits alone, not by more "
    "initialisations."
)
MORE_SPLITS = "The section on a thousand runs has the same comparisons over more splits, for the models that have them."
HOLDS = {True: "yes", False: Strong("no"), None: "not decided"}
JUDGED = (
    "Differences in accuracy are judged split by split, ± half the 95 % interval of their mean: where it holds zero, nothing "
    "is decided. What is called the best of several has the highest mean on these splits, which favours it a little."
)
SEARCH = "The published setting among its neighbours, on validation splits. Rank 1 is the highest mean."
OTHERS = (
    "Experiment files of one's own, each with the runs that it names. No other section's table, figure or claim draws on "
    "what they add; a run that is also one of the paper's is the same row here and there."
)
COSTS = (
    "Seconds are a run's share of the training that it was part of, so that they add up to what was spent; runs trained "
    "together share a device."
)


def _lead(main: Mapping[str, Sequence[Entry]], samples: Samples) -> tuple[Block, ...]:
    count = sum(len(sample.all_rows) for sample in samples.values())
    scores = [score(entry, "accuracy") for group in main.values() for entry in group]
    compared = [each for each in scores if each.intervals is not None]
    within = sum(abs(each.intervals or 0.0) <= 1 for each in compared)
    text = f"{_counted(count, 'run')} of {_counted(len(samples), 'cell')}. "
    if compared:
        given = "1 accuracy" if len(compared) == 1 else f"{len(compared)} accuracies"
        verb = "agrees" if within == 1 else "agree"
        text += f"Of {given} that the paper also gives, {within} {verb} with it within the combined interval."
    return (text.strip(), METHOD)


def _what_was_run(everything: Samples, samples: Samples) -> tuple[Block, ...]:
    again = sum(sample.cell.splits == "test" for sample in run_again(samples))
    told = (
        f"{again} test cell{'s were' if again != 1 else ' was'} run again with another version; see the notes."
        if again
        else "No test cell was run with more than one version of the code or the data."
    )
    return origin_table(everything), told


def _scores(main: Mapping[str, Sequence[Entry]], reruns: Sequence[Entry]) -> Iterable[Section]:
    if not main:
        return
    shown: tuple[tuple[str, Metric], ...] = (("Accuracy", "accuracy"), ("Macro F1", "f1"))
    for title, metric in shown:
        scores = [score(entry, metric) for group in main.values() for entry in group]
        scores += [score(entry, metric) for entry in reruns]
        blocks: list[Block] = [overview_table(main, metric), score_table(main, metric, reruns), *_verdict(scores)]
        if metric == "f1":
            blocks.insert(0, F1)
            blocks.append(overview_table(main, "f1_macro"))
        yield Section(title, tuple(blocks))


F1 = (
    "The paper's macro F1 is the harmonic mean of the class-averaged precision and the class-averaged recall, where a class "
    "without false positives has precision 1 and one without false negatives recall 1. The usual macro F1, the mean of the "
    "classes' F1, stands below for comparison with other work."
)


def _verdict(scores: Sequence[Score]) -> Iterable[Block]:
    told = disagreements(scores)
    if told:
        yield "Where ours and the paper's disagree:"
        yield Bullets(told)
    elif any(each.intervals is not None for each in scores):
        yield "Ours and the paper's agree everywhere within the combined interval."


def _p_values(main: Mapping[str, Sequence[Entry]]) -> Iterable[Block]:
    metrics: tuple[Metric, ...] = ("accuracy", "f1")
    made = [table for metric in metrics if (table := p_value_table(main, metric)).n_rows]
    if made:
        yield (
            "Two-sided paired t-tests, over runs as published and over split means, because initialisations of different "
            "models are not matched. Bt. FP has one run per split, so that its test is over split means in both columns. "
            "Holm: corrected over the opponents on one dataset and metric. The paper names no opponent; its p-value stands "
            "beside the best baseline of its own table, the likely reading."
        )
    yield from made


def _times(times: Mapping[str, Sequence[Entry]]) -> Iterable[Block]:
    if times:
        yield (
            "Compare ratios, not milliseconds: the paper's epoch is a training step and evaluations on three sets on a GPU "
            "of 2018, ours a training step and one evaluation on the stopping set. Ratios to GCN are ratios of programs, "
            "too: MLP, PPNP and APPNP have a fused training step of their own here, the other models go through torch's "
            "autograd, operation by operation, with the same sparse kernels."
        )
        yield time_table(times)


def _pictures(drawn: Sequence[Drawn], experiments: Mapping[str, Experiment], samples: Samples) -> Iterable[Block]:
    for each in drawn:
        try:
            svg = save_figure(each.draw(), "svg").decode()
        except MissingDependencyError as error:
            yield f"Figures are left out: {error}"
            return
        command, data = _command(each.experiments, experiments, samples), figure_json(each.data)
        digest = hashlib.sha256(data.encode()).hexdigest()[:16]  # a drawing of older data can be told by it
        yield Picture(each.name, each.title, each.caption, f"{svg.rstrip()}\n<!-- data {digest} -->\n", command, data)


def _others(own: Mapping[str, Experiment], everything: Samples) -> Iterable[Block]:
    """Yield the table of one's own experiments, and a figure of each that is for one and has more than one point."""
    yield from _table(own_experiments_table(own, everything), OTHERS)
    drawn: list[Drawn] = []
    for number, one in enumerate(own.values(), 1):
        samples = everything.named([one])
        begun = sum(samples.of(point.cell) is not None for point in one.points)
        if one.shows not in TOLD_IN_TABLES and begun > 1:
            made = figures_of([one], _rows(samples), load_dataset)
            drawn += [
                replace(each, name=f"other_{number}_{each.name}", title=f"{one.title}: {each.title}") for each in made
            ]
    yield from _pictures(drawn, {}, everything)  # by their names: a group may have published members too


def _command(names: Sequence[str], experiments: Mapping[str, Experiment], samples: Samples) -> str:
    """Return what gives the rows of some experiments, by the name of their group if they are all of it.

    With the least number of runs where cells lack some, and the device where all trainings were on a GPU.
    """
    members: dict[str, set[str]] = {}
    for name, experiment in experiments.items():
        for group in experiment.groups:
            members.setdefault(group, set()).add(name)
    group = next((group for group in sorted(members) if members[group] == set(names)), None)
    parts = [f"pprop study run {group or ' '.join(sorted(names))} --out DIR"]
    asked = [
        (experiments[name], point.cell) for name in names if name in experiments for point in experiments[name].points
    ]
    there = [(one, sample) for one, cell in asked if (sample := samples.of(cell)) is not None]
    counts = [
        (made, len(seeds))
        for one, sample in there
        if (made := first_runs(sample, seeds := one.seeds(cell=sample.cell))) is not None  # no command makes others
    ]
    if fewest := min((made for made, wanted in counts if made < wanted), default=0):
        parts.append(f"--runs {fewest}")
    trained = [sample for _, sample in there if any(row.epochs for row in sample.rows)]
    if trained and all(row.device.startswith("cuda") for sample in trained for row in sample.rows):
        parts.append("--device cuda")
    return " ".join(parts)


def _claims(datasets: Sequence[str], evidence: Evidence) -> Iterable[Block]:
    claims: list[Claim] = []
    for name in datasets:
        try:
            claims += graph_claims(load_dataset(name), dataset_title(name))
        except (PpropError, OSError):  # the table of datasets says why
            continue
    found, missing = row_claims(evidence)
    claims += found
    groups = tuple(
        Group(
            statement,
            tuple((claim.where, claim.found, HOLDS[claim.holds]) for claim in claims if claim.statement == statement),
        )
        for statement in dict.fromkeys(claim.statement for claim in claims)
    )
    if groups:
        columns = (Column("Dataset", "text"), Column("Found", "text"), Column("Holds", "text"))
        yield Table("What the paper's text claims, and what was found", columns, groups)
    if found:
        yield JUDGED
    if missing:
        yield "Not checked, for want of rows:"
        yield Bullets(tuple(missing))


def _notes(
    experiments: Sequence[Experiment],
    begun: Mapping[str, Experiment],
    samples: Samples,
    main: Mapping[str, Sequence[Entry]],
) -> Iterable[Block]:
    shown = {point.cell.config for one in experiments for point in one.points} | _configs(main)
    unshown = [sample.cell for key, sample in samples.items() if key not in shown]
    again = rerun_table(samples, {cell.config for cell in unshown})
    if again.n_rows:
        yield "Rows of different versions are never averaged: tables and figures show the newest."
        yield again
    others = other_cells_table(unshown, samples)
    if others.n_rows:
        yield others
    lacking = incomplete({name: one for name, one in begun.items() if one.shows not in TOLD_IN_TABLES}, samples)
    if lacking:
        yield "Experiments that lack runs:"
        yield Bullets(lacking)


TOLD_IN_TABLES = ("accuracy", "time", "rerun", "quick")


def _begun(
    experiments: Mapping[str, Experiment], samples: Samples, main: Mapping[str, Sequence[Entry]]
) -> dict[str, Experiment]:
    """Return the experiments that have rows; cells of the accuracy table count only for those that fill it.

    Figures share cells with that table, and a figure of one such point tells nothing.
    """
    shared = _configs(main)

    def has_own_rows(experiment: Experiment) -> bool:
        cells = [point.cell for point in experiment.points if samples.of(point.cell) is not None]
        return any(experiment.shows in TOLD_IN_TABLES or cell.config not in shared for cell in cells)

    return {name: experiment for name, experiment in experiments.items() if has_own_rows(experiment)}


def _configs(main: Mapping[str, Sequence[Entry]]) -> set[str]:
    return {entry.cell.config for group in main.values() for entry in group}


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(table: Table, text: str) -> tuple[Block, ...]:
    return (text, table) if table.n_rows else ()


def _rows(samples: Samples) -> Callable[[Cell], list[Row]]:
    """Return a function from a cell to its rows."""
    return lambda cell: [] if (sample := samples.of(cell)) is None else list(sample.rows)


def _rows_for_figures(
    store: Store, samples: Samples, compared: set[str], timed: set[str]
) -> Callable[[Cell], list[Row]]:
    """Return a function from a cell to its rows.

    They have predictions for the cells that are `compared` by distance, and are of every device for those that are
    `timed`.
    """
    light = _rows(samples)

    @cache
    def with_predictions(config: str) -> list[Row]:
        shown = {row.key for row in samples[config].rows}
        return [row for row in store.rows(config) if row.key in shown]

    def on_all_devices(sample: Sample) -> list[Row]:
        devices = sorted({row.device for row in sample.all_rows})
        return [row for device in devices if (one := sample.on(device)) is not None for row in one.rows]

    def rows(cell: Cell) -> list[Row]:
        if cell.config not in samples:
            return []
        if cell.config in timed:
            return on_all_devices(samples[cell.config])
        return with_predictions(cell.config) if cell.config in compared else light(cell)

    return rows
