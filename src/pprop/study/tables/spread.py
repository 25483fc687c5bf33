"""The tables of how far the accuracy table can be relied on: how much runs vary, and whether more runs change the order.

The variance of runs, and of the gap between models, is divided into that of splits and that of initialisations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop.study.cell import Seeds
from pprop.study.experiment import Experiment
from pprop.study.stats.estimate import Estimate, student_half
from pprop.study.stats.paired import by_split, split_means
from pprop.study.stats.variance import Components, variance_components
from pprop.study.tables.entries import TESTED, ByDataset, Sample, Samples, TableEntry, dataset_order, dataset_title
from pprop.study.tables.table import Cells, Measure, Number, Strong, Table, listed

# Draws of as many splits as the accuracy table has.
DRAWS = 10_000

# Times the median distance of a run from the median of its split beyond which a run is named.  That is about ten
# standard deviations of normal runs; a few runs that are far off change neither median much.
FAR = 20

_HEADS = (
    "Between splits | 95 % interval | Between initialisations | 95 % interval | Splits' share of the variance, % | "
    "95 % interval"
)


def spread_table(by_dataset: ByDataset) -> Table:
    """Return the standard deviations of the accuracy between splits and between initialisations, in points.

    Only models that have several initialisations of each split are there.

    Examples
    --------
    >>> spread_table({}).n_rows
    0
    """
    groups: dict[str | None, list[Cells]] = {}
    notes: list[str] = []
    shares: list[float] = []
    for name, entries in by_dataset.items():
        parts = [(entry, found) for entry in entries if (found := variance_components(entry.accuracies)) is not None]
        shares += [found.share for _, found in parts]
        groups[dataset_title(name)] = [(entry.title, *_values(found)) for entry, found in parts]
        notes.extend(note for entry, _ in parts for note in _far_out(entry))
    if len(shares) > 1:
        low, middle, high = (100 * float(np.nanquantile(shares, q)) for q in (0, 0.5, 1))
        most = f"{low:.0f} to {high:.0f} % of the variance of a run, {middle:.0f} % in the median cell"
        notes = [f"Splits make up {most}.", *notes]
    caption = "Where accuracy varies: standard deviations in points"
    return Table.of(caption, f"Model:text | {_HEADS}", groups, notes)


def difference_spread_table(by_dataset: ByDataset) -> Table:
    """Return the same for the accuracy of APPNP minus that of each baseline in the run with the same seeds.

    Splits that are hard for both models cancel; the initialisations of both add up.

    Examples
    --------
    >>> difference_spread_table({}).n_rows
    0
    """
    groups: dict[str | None, Iterable[Cells]] = {}
    for name, entries in by_dataset.items():
        appnp = [entry for entry in entries if entry.cell.model == "appnp"]
        baselines = [entry for entry in entries if entry.cell.model not in TESTED]
        rows = [row for entry in appnp for row in _differences(entry.accuracies, baselines)]
        groups[f"APPNP minus another model on {dataset_title(name)}"] = rows
    caption = "Where the lead of APPNP varies: standard deviations in points"
    return Table.of(caption, f"Model:text | Mean difference | {_HEADS}", groups)


def _differences(appnp: Mapping[Seeds, float], entries: Iterable[TableEntry]) -> Iterable[Cells]:
    for entry in entries:
        other = entry.accuracies
        gap = {seeds: value - other[seeds] for seeds, value in appnp.items() if seeds in other}
        parts = variance_components(gap)
        if parts is not None:
            yield entry.title, Number(sum(gap.values()) / len(gap), signed=True), *_values(parts)


def _far_out(entry: TableEntry) -> Iterable[str]:
    """Yield a sentence if runs are so far from the others of their split that the deviations are not normal."""
    rows = entry.rows
    medians = {split: np.median(values) for split, values in by_split(entry.values("accuracy")).items()}
    away = np.array([abs(row.accuracy - float(medians[row.key.seeds.split])) for row in rows])
    is_far = away > FAR * np.median(away)
    far = sorted((row for row, each in zip(rows, is_far, strict=True) if each), key=lambda row: row.accuracy)
    if far:
        others = np.mean([row.epochs for row, each in zip(rows, is_far, strict=True) if not each])
        named = [
            f"{100 * row.accuracy:.2f} % (split {row.key.seeds.split}, initialisation {row.key.seeds.init}, {row.epochs} epochs)"
            for row in far
        ]
        one = len(far) == 1
        yield (
            f"{entry.where}: {listed(named)} {'is' if one else 'are'} far from the "
            f"median of {'its split' if one else 'their splits'}, while the other runs have {others:.0f} epochs on average; "
            "the deviation between initialisations is not normal there, so treat the intervals with caution."
        )


def _values(parts: Components) -> Cells:
    split, init = (f"{low:.2f} to {high:.2f}" for low, high in (parts.split_interval, parts.init_interval))
    low, high = (Number(100 * end, 0) for end in parts.share_interval)
    return Number(parts.split), split, Number(parts.init), init, Number(100 * parts.share, 0), f"{low} to {high}"


@final
@dataclass(frozen=True, eq=False)
class Standing:
    """One model among those with more runs, on one dataset; in percent.

    Attributes
    ----------
    title
        Of the model.
    many, few
        Its accuracy over all runs, with an interval over splits (Student's t), and over those of the accuracy table,
        with its interval there.
    rank, few_rank
        Its places by their means, from 1; only models with more runs are counted.
    lead, lead_half
        How far its mean over all runs is above that of the next model, and half the 95 % interval of that (Student's t
        over splits); NaN for the last.
    other_order
        How probable it is that as many splits as the accuracy table has put the next model before it; NaN for the last.
    same_order
        How probable it is that they put all the models in the order of all runs.
    """

    title: str
    many: Estimate
    few: Estimate
    rank: int
    few_rank: int
    lead: float
    lead_half: float
    other_order: float
    same_order: float


def standings(
    experiment: Experiment, everything: Samples, shown: Samples
) -> tuple[list[Standing], list[str], dict[str, float]]:
    """Return the models that have all runs of an experiment of kind ``"runs"``, the best first, and what is missing.

    What is missing: sentences about models that lack some of the runs, and models that have none beyond those of the
    accuracy table, with the seconds that the others would take at the pace of those.

    The probabilities are those of the bootstrap: splits are drawn with replacement from all of the experiment's, each
    with all its initialisations, the same for every model.

    Parameters
    ----------
    experiment
        Whose runs count.
    everything
        All rows; those count that have the version of the code and the data that the accuracy table shows.
    shown
        The rows of the accuracy table.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> standings(load_experiments()["pprop_2026_runs_citeseer"], Samples([]), Samples([]))
    ([], [], {})
    """
    complete, missing, absent = _complete(experiment, everything, shown)
    return _ranked(complete) if complete else [], missing, absent


def more_runs_entries(
    experiments: Mapping[str, Experiment], everything: Samples, main: ByDataset, shown: Samples
) -> dict[str, list[TableEntry]]:
    """Return the entries of the accuracy table that have more runs, with all of these; only datasets with several such.

    Parameters
    ----------
    experiments
        Those of kind ``"runs"`` count.
    everything, shown
        As for `standings`.
    main
        The entries of the accuracy table, by dataset.

    Examples
    --------
    >>> more_runs_entries({}, Samples([]), {}, Samples([]))
    {}
    """
    found: dict[str, list[TableEntry]] = {}
    for experiment in (one for one in experiments.values() if one.shows == "runs"):
        many = {sample.cell.config: sample for sample, _ in _complete(experiment, everything, shown)[0]}
        for name, entries in main.items():
            more = [replace(entry, sample=many[entry.cell.config]) for entry in entries if entry.cell.config in many]
            if len(more) > 1:
                found[name] = more
    return found


def _complete(
    experiment: Experiment, everything: Samples, shown: Samples
) -> tuple[list[tuple[Sample, Sample]], list[str], dict[str, float]]:
    """Return the models that have all runs, each with those of the accuracy table; and what is missing."""
    found: list[tuple[Sample, Sample]] = []
    missing: list[str] = []
    absent: dict[str, float] = {}
    for cell in (point.cell for point in experiment.points):
        few, all_rows = shown.of(cell), everything.of(cell)
        if few is None or all_rows is None:
            continue
        seeds = experiment.seeds(cell=cell)
        version, wanted = (few.pool.revision, few.pool.data), len(seeds)
        further = set(seeds) - {row.key.seeds for row in few.rows}
        more = [row for row in all_rows.all_rows if row.key.seeds in further]
        # runs of other versions are never averaged with those of the table
        same = next((pool for pool in all_rows.pools if (pool.revision, pool.data) == version), None)
        many = None if same is None else Sample(cell, same).only(seeds)
        if many is not None and len(many.rows) == wanted > len(few.rows):
            found.append((many, few))
        elif many is not None and len(many.rows) > len(few.rows):
            missing.append(f"{few.where} has {len(many.rows)} of {wanted} runs, and is left out until it has all.")
        elif others := sum((row.key.revision, row.key.data) != version for row in more):
            missing.append(f"{few.where}: {others} of {wanted} runs are of another version than the accuracy table's.")
        else:
            absent[few.title] = sum(row.seconds for row in few.rows) * (wanted / len(few.rows) - 1)
    return found, missing, absent


def more_runs_table(experiments: Mapping[str, Experiment], everything: Samples, shown: Samples) -> Table:
    """Return, for each dataset, the models by their mean over all runs, beside what the accuracy table's runs say.

    Notes below say, for each dataset, which ranks change; a model alone has no rank.

    Examples
    --------
    >>> more_runs_table({}, Samples([]), Samples([])).n_rows
    0
    """
    groups: dict[str | None, list[Cells]] = {}
    notes: list[str] = []
    never: list[str] = []
    outside: list[bool] = []
    chosen = [one for one in experiments.values() if one.shows == "runs"]
    for experiment in sorted(chosen, key=lambda one: dataset_order(one.points[0].cell.dataset)):
        ranked, missing, absent = standings(experiment, everything, shown)
        title = dataset_title(experiment.points[0].cell.dataset)
        if len(ranked) == 1:
            notes.append(f"{title}: {ranked[0].title} alone has all runs, so there is no order yet.")
        elif ranked:
            groups[title] = [_row(each) for each in ranked]
            notes.append(order_sentence(title, ranked))
            outside += [not each.few.low <= each.many.mean <= each.few.high for each in ranked]
        notes.extend(missing)
        if absent:
            which = ", ".join(absent) if ranked or missing else "any model"
            never.append(
                f"{title}: no more runs than the accuracy table's were made of {which}; at their pace they would take "
                f"{sum(absent.values()):,.0f} seconds."
            )
    if notes:  # begun
        notes.extend(never)
    if outside:
        notes.append(
            f"In {sum(outside)} of {len(outside)} cells the mean over all runs is outside the 95 % interval of the accuracy table, "
            "which treats runs of one split as independent."
        )
    heads = (
        "Model:text | Runs | Accuracy:measure | Rank | Runs of the accuracy table | Their accuracy:measure | Their rank | "
        "Above the next:measure | Other order in fewer runs, %"
    )
    return Table.of("More runs: accuracy in percent", heads, groups, notes)


def order_sentence(dataset: str, ranked: Sequence[Standing]) -> str:
    """Return which ranks change on a dataset, and how likely that was.

    >>> one = Estimate(75.0, 74.8, 75.2, 100)
    >>> order_sentence("Citeseer", [Standing("GCN", one, one, 1, 1, *[float("nan")] * 3, same_order=1.0)])
    'Citeseer: no rank changes. 100 % of draws of as many splits as the accuracy table has give this order.'
    """
    changed = [f"{each.title} from {each.few_rank} to {each.rank}" for each in ranked if each.rank != each.few_rank]
    ranks = f"ranks change with more runs: {', '.join(changed)}" if changed else "no rank changes"
    # neighbours whose order all the runs together do not decide
    close = [f"{one.title} and {after.title}" for one, after in pairwise(ranked) if one.lead <= one.lead_half]
    open_ = f" Neighbours whose order all runs do not decide: {', '.join(close)}." if close else ""
    share = Number(100 * ranked[0].same_order, 0)
    return f"{dataset}: {ranks}.{open_} {share} % of draws of as many splits as the accuracy table has give this order."


def _ranked(complete: Sequence[tuple[Sample, Sample]]) -> list[Standing]:
    titles, few = [sample.title for sample, _ in complete], [sample.percent() for _, sample in complete]
    means = 100 * np.array([[*split_means(sample.values("accuracy")).values()] for sample, _ in complete])
    many = [_over_splits(of_model, len(sample.rows)) for of_model, (sample, _) in zip(means, complete, strict=True)]

    def by_mean(some: Sequence[Estimate]) -> list[int]:
        return sorted(range(len(some)), key=lambda model: (-some[model].mean, titles[model]))

    order, few_order = by_mean(many), by_mean(few)
    means = means[order]
    n_few = min(len({row.key.seeds.split for row in sample.rows}) for _, sample in complete)
    picked = np.random.default_rng(0).integers(means.shape[1], size=(DRAWS, n_few))
    drawn = np.stack([of_model[picked].mean(axis=1) for of_model in means])  # shape: (models, draws)
    same_order = float((drawn[:-1] >= drawn[1:]).all(axis=0).mean())
    standing: list[Standing] = []
    for place, model in enumerate(order):
        last = place + 1 == len(order)
        gap = np.full(2, np.nan) if last else means[place] - means[place + 1]
        other_order = float("nan") if last else float((drawn[place] < drawn[place + 1]).mean())
        ranks, lead = (place + 1, few_order.index(model) + 1), (float(gap.mean()), student_half(gap))
        standing.append(Standing(titles[model], many[model], few[model], *ranks, *lead, other_order, same_order))
    return standing


def _over_splits(means: NDArray[np.float64], runs: int) -> Estimate:
    """Return the mean over runs, with the 95 % interval of the mean over splits that all have as many."""
    mean, half = float(means.mean()), student_half(means)
    return Estimate(mean, mean - half, mean + half, runs)


def _row(one: Standing) -> Cells:
    many, few = (
        (Number(each.runs, 0), Measure(each.mean, each.half), str(rank))
        for each, rank in ((one.many, one.rank), (one.few, one.few_rank))
    )
    their_rank = few[2] if one.rank == one.few_rank else Strong(few[2])
    last = np.isnan(one.lead)
    lead = (None, None) if last else (Measure(one.lead, one.lead_half), Number(100 * one.other_order, 0))
    return one.title, *many, *few[:2], their_rank, *lead
