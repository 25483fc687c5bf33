"""The table of the experiments with more runs: whether the order of the models is that of the accuracy table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop.study.experiment import Experiment
from pprop.study.stats.estimate import Estimate, student_half
from pprop.study.stats.paired import split_means
from pprop.study.tables.entries import ByDataset, Entry, Sample, Samples, dataset_order, dataset_title, model_title
from pprop.study.tables.table import Cells, Measure, Number, Strong, Table

# Draws of as many splits as the accuracy table has.
DRAWS = 10_000


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


def standings(experiment: Experiment, everything: Samples, shown: Samples) -> tuple[list[Standing], list[str]]:
    """Return the models that have all runs of an experiment of kind ``"runs"``, the best first, and what is missing.

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
    ([], [])
    """
    complete, missing, _ = _complete(experiment, everything, shown)
    return _ranked(complete), missing


def more_runs_entries(
    experiments: Mapping[str, Experiment], everything: Samples, main: ByDataset, shown: Samples
) -> dict[str, list[Entry]]:
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
    found: dict[str, list[Entry]] = {}
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
    """Return the models that have all runs, each with those of the accuracy table; sentences; and models with no others.

    The latter with the seconds that the others would take at the pace of those.
    """
    found: list[tuple[Sample, Sample]] = []
    missing: list[str] = []
    absent: dict[str, float] = {}
    for cell in (point.cell for point in experiment.points):
        few, all_rows = shown.of(cell), everything.of(cell)
        if few is None or all_rows is None:
            continue
        seeds, there = experiment.seeds(cell=cell), {row.key.seeds for row in few.rows}
        version, wanted = (few.pool.revision, few.pool.data), len(seeds)
        pools = (all_rows.pool, *all_rows.others)  # runs of other versions are never averaged with those of the table
        same = next((pool for pool in pools if (pool.revision, pool.data) == version), None)
        many = None if same is None else Sample(cell, same).only(seeds)
        where = f"{model_title(cell)} on {dataset_title(cell.dataset)}"
        if many is not None and len(many.rows) == wanted > len(few.rows):
            found.append((many, few))
        elif many is not None and len(many.rows) > len(few.rows):
            missing.append(f"{where} has {len(many.rows)} of {wanted} runs, and is left out until it has all.")
        elif others := sum(
            row.key.seeds in set(seeds) - there and (row.key.revision, row.key.data) != version
            for row in all_rows.all_rows
        ):
            missing.append(f"{where}: {others} of {wanted} runs are of another version than the accuracy table's.")
        else:
            absent[model_title(cell)] = sum(row.seconds for row in few.rows) * (wanted / len(few.rows) - 1)
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
    outside = cells = 0
    chosen = [one for one in experiments.values() if one.shows == "runs"]
    for experiment in sorted(chosen, key=lambda one: dataset_order(one.points[0].cell.dataset)):
        complete, missing, absent = _complete(experiment, everything, shown)
        ranked = _ranked(complete)
        title = dataset_title(experiment.points[0].cell.dataset)
        if len(ranked) == 1:
            notes.append(f"{title}: {ranked[0].title} alone has all runs, so that there is no order yet.")
        elif ranked:
            groups[title] = [_row(each) for each in ranked]
            notes.append(order_sentence(title, ranked))
            outside += sum(not each.few.low <= each.many.mean <= each.few.high for each in ranked)
            cells += len(ranked)
        notes.extend(missing)
        if absent:
            which = ", ".join(absent) if ranked or missing else "any model"
            never.append(
                f"{title}: no more runs than the accuracy table's were made of {which}; at their pace they would take "
                f"{sum(absent.values()):,.0f} seconds."
            )
    if notes:  # begun
        notes.extend(never)
    if cells:
        notes.append(
            f"In {outside} of {cells} cells the mean over all runs lies outside the 95 % interval of the accuracy table, "
            "which takes runs of one split for independent."
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
    close = [
        f"{one.title} and {after.title}" for one, after in pairwise(ranked) if one.lead <= one.lead_half
    ]  # neighbours whose order all the runs together do not decide
    open_ = f" Neighbours that all runs do not tell apart: {', '.join(close)}." if close else ""
    share = Number(100 * ranked[0].same_order, 0)
    return f"{dataset}: {ranks}.{open_} {share} % of draws of as many splits as the accuracy table has give this order."


def _ranked(complete: Sequence[tuple[Sample, Sample]]) -> list[Standing]:
    if not complete:
        return []
    titles = [model_title(few.cell) for _, few in complete]
    by_split = {title: split_means(many.values("accuracy")) for title, (many, _) in zip(titles, complete, strict=True)}
    many = {
        title: _over_splits(100 * np.array([*by_split[title].values()]), len(sample.rows))
        for title, (sample, _) in zip(titles, complete, strict=True)
    }
    few = {title: sample.percent() for title, (_, sample) in zip(titles, complete, strict=True)}
    order = sorted(many, key=lambda title: (-many[title].mean, title))
    few_order = sorted(few, key=lambda title: (-few[title].mean, title))
    means = np.array([[100 * mean for mean in by_split[title].values()] for title in order])
    n_few = min(len({row.key.seeds.split for row in sample.rows}) for _, sample in complete)
    picked = np.random.default_rng(0).integers(means.shape[1], size=(DRAWS, n_few))
    drawn = np.stack([of_model[picked].mean(axis=1) for of_model in means])  # shape: (models, draws)
    same_order = float((drawn[:-1] >= drawn[1:]).all(axis=0).mean())
    standing: list[Standing] = []
    for place, title in enumerate(order):
        last = place + 1 == len(order)
        gap = np.full(2, np.nan) if last else means[place] - means[place + 1]
        standing.append(
            Standing(
                title=title,
                many=many[title],
                few=few[title],
                rank=place + 1,
                few_rank=few_order.index(title) + 1,
                lead=float(gap.mean()),
                lead_half=student_half(gap),
                other_order=float("nan") if last else float((drawn[place] < drawn[place + 1]).mean()),
                same_order=same_order,
            )
        )
    return standing


def _over_splits(means: NDArray[np.float64], runs: int) -> Estimate:
    """Return the mean over runs, with the 95 % interval of the mean over splits that all have as many."""
    mean, half = float(means.mean()), student_half(means)
    return Estimate(mean, mean - half, mean + half, runs)


def _row(one: Standing) -> Cells:
    last = np.isnan(one.lead)
    few_rank = str(one.few_rank)
    return (
        one.title,
        Number(one.many.runs, 0),
        Measure(one.many.mean, one.many.half),
        Number(one.rank, 0),
        Number(one.few.runs, 0),
        Measure(one.few.mean, one.few.half),
        few_rank if one.rank == one.few_rank else Strong(few_rank),
        None if last else Measure(one.lead, one.lead_half),
        None if last else Number(100 * one.other_order, 0),
    )
