"""The section on more runs than the accuracy table has: the order of the models, their leads, and where they vary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pprop.study.experiment import Experiment
from pprop.study.report.page import Block, Bullets
from pprop.study.stats.variance import init_tails
from pprop.study.tables import Entry, Samples, more_leads_table, more_runs_entries, more_runs_table, spread_table
from pprop.study.tables.titles import dataset_title

__all__ = ["more_runs_blocks"]

ORDER = (
    "Does any ranking change with 1000 runs instead of 100? Models in the order of their means over 200 splits with 5 "
    "initialisations each (Bt. FP, which has none, with one run each); the first 20 splits are the paper's, and their runs "
    "those of the accuracy table. No other section counts the additional runs, and ranks here count the models of this "
    "table alone. The \u00b1 of all runs is half the 95 % interval over splits (Student's t), that of the accuracy table's "
    "runs the one that stands there. Above the next: the lead over the model below, with its 95 % interval over splits. "
    "Other order: how often 20 splits, drawn with replacement from the 200, put the model below first."
)
LEADS = (
    "PPNP and APPNP against the baselines that have all runs, and against each other: paired t-tests over split means, "
    "corrected after Holm over these baselines, so that the p-values of the accuracy table's splits are not those of the "
    "section above where a baseline is missing here."
)
VARIES = "The components of the variance, from all runs; the intervals suppose normal deviations."
HEAVY = 6.0
"""Kurtosis, twice that of normal deviations, beyond which their interval is not taken as it is."""


def more_runs_blocks(
    experiments: Mapping[str, Experiment], everything: Samples, main: Mapping[str, Sequence[Entry]], shown: Samples
) -> Iterable[Block]:
    """Yield the blocks of the section; none where no such runs were begun.

    Parameters
    ----------
    experiments, everything, main, shown
        As for `more_runs_entries`.

    Examples
    --------
    >>> list(more_runs_blocks({}, Samples([]), {}, Samples([])))
    []
    """
    table = more_runs_table(experiments, everything, shown)
    if not table.n_rows:
        if table.notes:  # begun, and no two models have all of their runs yet
            yield Bullets(table.notes)
        return
    many = more_runs_entries(experiments, everything, main, shown)
    names = sorted(
        name
        for name, one in experiments.items()
        if one.shows == "runs" and any(point.cell.dataset in many for point in one.points)
    )
    yield ORDER
    yield table
    yield LEADS
    yield more_leads_table(many, main)
    yield VARIES
    spread = spread_table(many)
    yield replace(spread, caption=f"{spread.caption}, from all runs", notes=tuple(_heavy_tails(many)))
    rows = [row for entries in many.values() for entry in entries if entry.sample for row in entry.sample.rows]
    device = " --device cuda" if all(row.device.startswith("cuda") for row in rows if row.epochs) else ""
    yield f"`pprop study run {' '.join(names)} --out DIR{device}` makes these runs."


def _heavy_tails(many: Mapping[str, Sequence[Entry]]) -> Iterable[str]:
    """Yield, for each cell whose initialisations deviate far from normally, an interval that does not suppose it."""
    for name, entries in many.items():
        for entry in entries:
            tails = init_tails(entry.accuracies)
            if tails is not None and tails.kurtosis > HEAVY:
                low, high = tails.interval
                yield (
                    f"{entry.title} on {dataset_title(name)}: the deviations between initialisations have a kurtosis of "
                    f"{tails.kurtosis:.0f}, where normal ones have 3, so that their interval is too narrow: resampling the "
                    f"splits gives {low:.2f} to {high:.2f}."
                )
