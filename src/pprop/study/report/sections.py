"""The sections of the report: sentences, tables and pictures from the results of a study."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pprop._errors import MissingDependencyError
from pprop._validate import counted
from pprop.study.experiment import Experiment
from pprop.study.figures import figures_of
from pprop.study.figures.gather import DrawnFigure
from pprop.study.figures.style import figure_json, save_figure
from pprop.study.graphs import of_own
from pprop.study.report import claims
from pprop.study.report.page import Block, Bullets, Picture
from pprop.study.report.results import IN_TABLES, Results
from pprop.study.stats import nodes
from pprop.study.stats.variance import init_tails
from pprop.study.tables import agreement, clock, over_nodes, p_values, paper, runs, spread, times
from pprop.study.tables.entries import ByDataset, Metric, Samples, entries, run_command
from pprop.study.tables.table import Table

METHOD = (
    "Every mean is over runs: splits by the paper's rule times initialisations. The number after ± is the larger distance "
    "from the mean to an end of its 95 % percentile bootstrap interval over runs, as in the paper; "
    "in brackets is the same with whole splits resampled, because runs of one split vary together."
)
AGREEMENT = (
    "Ours and the paper's agree if they differ by at most the combined interval, the root of the sum of "
    "squares of both ± over runs."
)
COMMANDS = (
    "`DIR` in a command is the study's folder; what has no command is computed from the rows of the accuracy table, "
    "or from the graphs, by `pprop study report DIR`."
)
P_VALUES = (
    "Two-sided paired t-tests. What counts is the test over splits, whose pairs are means over the initialisations of "
    "a split, because runs of one split vary together. Beside it is the test over runs, as published: its pairs have "
    "equal seeds. Equal seeds give PPNP, APPNP, MLP and GCN the same initial weights, and JK the same first matrix. Matrices "
    "of V. GCN, N-GCN and GAT have other shapes. Bt. FP has one run per split, so both tests are over splits. Holm's correction is "
    "over the paper's baselines on one dataset and metric; MLP and the tuned Bt. FP, which the paper does not have, "
    "are a family of their own."
)
P_PUBLISHED = "The paper names no opponent: its p-value is beside the best baseline of its own table."
TIMES_PUBLISHED = (
    "Compare ratios, not milliseconds: the paper's epoch is a training step and evaluations on three sets, on a GPU of "
    "2018; ours is a training step and one evaluation on the stopping set. Ratios to GCN are of programs, too, and not "
    "comparable with the paper's: MLP, PPNP and APPNP have a fused training step here, the other models use torch's "
    "autograd with the same sparse kernels."
)
TIMES_OWN = (
    "An epoch is a training step and one evaluation on the stopping set. Ratios to GCN are of programs, too: MLP, PPNP "
    "and APPNP have a fused training step, the other models use torch's autograd with the same sparse kernels."
)
CLAIMS_TEXT = (
    "Differences in accuracy are in points: the mean over splits, with its 95 % interval (Student's t) in brackets. Intervals "
    "of spreads and of slopes over distances come from resampling splits. Where a unit names a range, the brackets have the "
    "range. The best of several is the one with the highest mean on the same splits, which favours it a little. The readings "
    "and sentences are written by hand; no program decides them."
)
OVER_NODES = (
    "All splits of a graph are evaluated on the same test nodes. Intervals and p-values over splits show how results vary with "
    "the training nodes and initialisations. They do not show how results vary with the test nodes. Here test nodes are drawn "
    f"with replacement instead of splits ({nodes.RESAMPLES} resamples). Each node has the share of the accuracy table's runs that "
    "predict its class correctly. Leads are also given in standard errors over nodes."
)
# Kurtosis, twice that of normal deviations, beyond which their interval is not taken as it is.
HEAVY = 6.0


def lead(results: Results) -> tuple[Block, ...]:
    """Return the first blocks of the page: how many accuracies agree with the paper, and how to read the numbers."""
    count = sum(len(sample.all_rows) for sample in results.everything.values())
    agree = agreement.agreement(results.main, results.samples)
    text = f"{counted(count, 'run')} of {counted(len(results.everything), 'cell')}. {agree}"
    return (text.strip(), METHOD if of_own(results.datasets) else f"{METHOD} {AGREEMENT}", COMMANDS)


def _what_was_run(results: Results) -> Iterator[Block]:
    yield runs.origin_table(results.everything)
    again = sum(sample.cell.splits == "test" for sample in runs.run_again(results.samples))
    if again:
        yield f"{again} test cell{'s were' if again != 1 else ' was'} run again with another version; see the report's notes."
    else:
        yield "No test cell was run with more than one version of the code or the data."


def _accuracy(results: Results) -> Iterable[Block]:
    return _scores(results, "accuracy") if results.main else ()


def _near(results: Results) -> Iterator[Block]:
    yield from _with_text(agreement.nearness_table(results.main), agreement.nearness_sentence(results.main))
    if text := agreement.fitted_sentence(results.main, results.samples):
        yield text


def _f1(results: Results) -> Iterator[Block]:
    if results.main:
        yield (
            "The paper's macro F1 is the harmonic mean of the class-averaged precision and recall; a class without "
            "false positives has precision 1, and one without false negatives recall 1. The usual macro F1, the "
            "mean of the classes' F1, is below for comparison with other work."
        )
        yield from _scores(results, "f1")
        yield paper.overview_table(results.main, "f1_macro")


def _scores(results: Results, metric: Metric) -> Iterator[Block]:
    reruns = [entry for group in entries(results.published, results.samples, "rerun").values() for entry in group]
    yield paper.overview_table(results.main, metric)
    yield paper.score_table(results.main, metric, reruns)
    shown = [*(entry for group in results.main.values() for entry in group), *reruns]
    scores = [paper.score(entry, metric) for entry in shown]
    if apart := paper.disagreements(scores):
        yield "Where ours and the paper's disagree:"
        yield Bullets(apart)
    elif any(each.intervals is not None for each in scores):
        yield "Ours and the paper's agree everywhere within the combined interval."
    if (near := agreement.apart_table(results.main, metric)).n_rows:
        yield near


def _p_values(results: Results) -> Iterator[Block]:
    metrics: tuple[Metric, ...] = ("accuracy", "f1")
    made = [table for metric in metrics if (table := p_values.p_value_table(results.main, metric)).n_rows]
    if made:
        yield P_VALUES if of_own(results.main) else f"{P_VALUES} {P_PUBLISHED}"
        yield p_values.significance_table(results.main)
        for metric, name in zip(metrics, ("accuracy", "macro F1"), strict=True):
            found = p_values.papers_comparisons(results.main, metric)
            if found:
                yield f"By {name}, {p_values.count_wins(found)}."
                yield Bullets(p_values.exceptions(found, metric))
    yield from made
    if changed := p_values.changed_verdicts(results.main, results.many):
        yield "More splits (the section on a thousand runs) decide otherwise than the accuracy table's:"
        yield Bullets(changed)


def _over_nodes(results: Results) -> Iterator[Block]:
    yield from _with_text(over_nodes.over_nodes_table(results.leads_over_nodes), OVER_NODES)
    if text := over_nodes.over_nodes_sentence(results.leads_over_nodes):
        yield text


def _times(results: Results) -> Iterator[Block]:
    if results.times:
        yield TIMES_OWN if of_own(results.times) else TIMES_PUBLISHED
        yield times.time_table(results.times)


def _spread(results: Results) -> Iterator[Block]:
    yield from _with_text(
        spread.spread_table(results.main),
        "How much of the spread is due to splits, and how much to initialisation, that is, to all that the seed of "
        "a run decides: first weights and dropout? Analysis of variance over both, for models that have all "
        "initialisations of every split. The intervals assume normal deviations. Those of initialisations and of "
        "shares are then exact; that of splits is the modified large-sample interval, which contained the true "
        "value in 94 to 95 % of simulated studies of this size, resampling the splits in 84 to 86 %. Heavy tails "
        "make the intervals too narrow.",
    )
    yield from _with_text(
        spread.difference_spread_table(results.main),
        "The same for the accuracy of APPNP minus that of another model in the run with the same split and "
        "initialisation: what is hard for both cancels. Where the lead varies between splits, only more splits "
        "determine it better, not more initialisations.",
    )


def thousand_runs(results: Results) -> Iterator[Block]:
    """Yield the blocks of the section on more runs; none where no such runs were begun."""
    experiments, many = results.published, results.many
    table = spread.more_runs_table(experiments, results.everything, results.samples)
    if not table.n_rows:
        if table.notes:  # begun, and no two models have all of their runs yet
            yield Bullets(table.notes)
        return
    more = {name: one for name, one in experiments.items() if one.shows == "runs"}
    names = sorted(name for name, one in more.items() if any(point.cell.dataset in many for point in one.points))
    yield (
        "Does any ranking change with 1000 runs instead of 100? Models are in the order of their means over 200 "
        "splits with 5 initialisations each (Bt. FP, tuned, which has none, has one run each). The first 20 splits are the "
        "paper's, with the runs of the accuracy table. Ranks count the models of this table only. Other "
        "sections use the additional runs only where they say so. The ± of all runs is half the 95 % interval over splits (Student's t), "
        "the ± of the accuracy table's runs the one given there. Above the next: the lead over the model below, "
        "with its 95 % interval over splits. Other order: how often 20 splits, drawn with replacement from the 200, "
        "put the model below first."
    )
    yield table
    yield (
        "PPNP and APPNP against the baselines that have all runs, and against each other: paired t-tests over split "
        "means, with Holm's correction over these baselines. Where a baseline is missing here, as Bt. FP is, the "
        "p-values of the accuracy table's splits differ from those of the section above. All splits have the same test nodes: the "
        "section on test nodes says what these leads are for others."
    )
    named: dict[Metric, str] = {"accuracy": "accuracy", "f1": "macro F1"}
    for metric, name in named.items():
        yield p_values.more_leads_table(many, results.main, metric)
        found = p_values.papers_comparisons(many, metric)
        if found:
            won = sum(each.wins(over_splits=True) for each in found)
            rest = p_values.missed(found)
            yield f"By {name}, PPNP and APPNP are better in {won} of {len(found)} comparisons{f'; {rest}' if rest else ''}."
        if changed := p_values.changed_verdicts(results.main, many, metric):
            yield f"Verdicts of the section on p-values that change with all splits, by {name}:"
            yield Bullets(changed)
    yield "The components of the variance, from all runs; the intervals assume normal deviations."
    parts = spread.spread_table(many)
    yield replace(parts, caption=f"{parts.caption}, from all runs", notes=tuple(_heavy_tails(many)))
    rows = [row for group in many.values() for entry in group for row in entry.rows]
    device = " --device cuda" if all(row.device.startswith("cuda") for row in rows if row.epochs) else ""
    yield f"`pprop study run {' '.join(names)} --out DIR{device}` makes these runs."


def _heavy_tails(many: ByDataset) -> Iterable[str]:
    """Yield, for each cell whose initialisations deviate far from normally, an interval that does not suppose it."""
    for entry in (entry for group in many.values() for entry in group):
        tails = init_tails(entry.accuracies)
        if tails is not None and tails.kurtosis > HEAVY:
            low, high = tails.interval
            yield (
                f"{entry.where}: the deviations between initialisations have a kurtosis "
                f"of {tails.kurtosis:.0f}, where normal ones have 3, so their interval is too narrow: resampling the "
                f"splits gives {low:.2f} to {high:.2f}."
            )


def _figures(results: Results) -> Iterator[Block]:
    return _pictures(results.drawn, results.published, results.samples)


def _pictures(drawn: Sequence[DrawnFigure], experiments: Mapping[str, Experiment], samples: Samples) -> Iterator[Block]:
    for each in drawn:
        try:
            svg = save_figure(each.draw(), "svg").decode()
        except MissingDependencyError as error:
            yield f"Figures are left out: {error}"
            return
        command, data = _command(each.experiments, experiments, samples), figure_json(each.data)
        digest = hashlib.sha256(data.encode()).hexdigest()[:16]  # a drawing of older data can be recognised by it
        yield Picture(each.name, each.title, each.caption, f"{svg.rstrip()}\n<!-- data {digest} -->\n", command, data)


def _hyperparameters(results: Results) -> Iterable[Block]:
    text = (
        "The default setting among its neighbours: 30 settings of each model, each on the first five validation splits; the grid "
        "stands with the model. Defaults are the published settings, but for Bt. FP, tuned, which the paper does not have. Rank 1 is "
        f"the highest mean. {runs.search_sentence(results.published, results.samples)}"
    ).rstrip()
    return _with_text(runs.search_table(results.published, results.samples), text)


def _other_experiments(results: Results) -> Iterator[Block]:
    """Yield the table of the user's experiments, and a figure of each that is for one and has more than one point."""
    yield from _with_text(
        runs.own_experiments_table(results.own, results.everything),
        "The user's own experiment files, each with the runs that it names. No table, figure or claim of another "
        "section uses what they add; a run that is also one of the paper's is the same row in both.",
    )
    for number, one in enumerate(results.own.values(), 1):
        named = results.everything.named([one])
        there = {point.cell: list(each.rows) for point in one.points if (each := named.of(point.cell))}
        if one.shows not in IN_TABLES and len(there) > 1:
            made = figures_of([one], lambda cell, there=there: there.get(cell, []), results.graph_of)
            drawn = [
                replace(each, name=f"other_{number}_{each.name}", title=f"{one.title}: {each.title}") for each in made
            ]
            yield from _pictures(drawn, {}, results.everything)  # by name: a group may have published members too


def _datasets(results: Results) -> Iterator[Block]:
    yield paper.dataset_table(results.datasets, results.folder)


def _command(names: Sequence[str], experiments: Mapping[str, Experiment], samples: Samples) -> str:
    """Return what gives the rows of some experiments, by the name of their group if they are all of it."""
    members: dict[str, set[str]] = {}
    for name, experiment in experiments.items():
        for group in experiment.groups:
            members.setdefault(group, set()).add(name)
    group = next((group for group in sorted(members) if members[group] == set(names)), None)
    asked = ((one, point.cell) for name in names if (one := experiments.get(name)) for point in one.points)
    there = [(sample, one.seeds(cell=cell)) for one, cell in asked if (sample := samples.of(cell)) is not None]
    return run_command(group or " ".join(sorted(names)), there)


def _claims(results: Results) -> Iterator[Block]:
    if shown := claims.found(results):
        yield CLAIMS_TEXT if results.sentences else CLAIMS_TEXT.partition(" The readings")[0]
        yield claims.claims_table(shown, results.sentences)
        if missing := claims.not_computed(shown):
            yield "Claims without a figure, because rows or graphs are missing:"
            yield Bullets(tuple(missing))


def _costs(results: Results) -> Iterator[Block]:
    yield from times.cost_sentences(results.main, results.published.values(), results.shared)
    yield clock.clock_sentence(results.stretches)
    if (main := times.main_cost_table(results.main, results.published.values(), results.times, results.shared)).n_rows:
        yield main
    yield runs.cost_table(results.everything, results.shared)
    yield clock.clock_table(results.stretches)


def _notes(results: Results) -> Iterator[Block]:
    samples, experiments = results.samples, (*results.published.values(), *results.own.values())
    shown = {point.cell.config for one in experiments for point in one.points} | results.configs
    unshown = {key: sample.cell for key, sample in samples.items() if key not in shown}
    again = runs.rerun_table(samples, unshown.keys())
    yield from _with_text(again, "Rows of different versions are never averaged: tables and figures show the newest.")
    if unshown:
        yield runs.other_cells_table(unshown.values(), samples)
    lacking = runs.incomplete({name: one for name, one in results.begun.items() if one.shows not in IN_TABLES}, samples)
    if lacking:
        yield "Experiments that lack runs:"
        yield Bullets(lacking)


def _with_text(table: Table, text: str) -> tuple[Block, ...]:
    return (text, table) if table.n_rows else ()


SECTIONS: dict[str, Callable[[Results], Iterable[Block]]] = {
    "Accuracy": _accuracy,
    "Macro F1": _f1,
    "Beside the paper": _near,
    "p-values": _p_values,
    "Over test nodes": _over_nodes,
    "Time per epoch": _times,
    "Spread": _spread,
    "A thousand runs": thousand_runs,
    "Figures": _figures,
    "Hyperparameters": _hyperparameters,
    "Other experiments": _other_experiments,
    "Datasets": _datasets,
    "Claims in the text": _claims,
    "What was run": _what_was_run,
    "Costs": _costs,
    "Notes": _notes,
}
