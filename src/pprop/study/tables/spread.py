"""The tables of variance components: how much of the spread of runs, and of the gap between models, is the split's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from pprop.study.cell import Seeds
from pprop.study.stats.variance import Components, variance_components
from pprop.study.tables.entries import TESTED, ByDataset, Entry, dataset_title, listed
from pprop.study.tables.table import Cells, Number, Table

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
        notes.insert(
            0, f"Splits make up {low:.0f} to {high:.0f} % of the variance of a run, {middle:.0f} % in the median cell."
        )
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


def _differences(appnp: Mapping[Seeds, float], entries: Iterable[Entry]) -> Iterable[Cells]:
    for entry in entries:
        other = entry.accuracies
        gap = {seeds: value - other[seeds] for seeds, value in appnp.items() if seeds in other}
        parts = variance_components(gap)
        if parts is not None:
            yield entry.title, Number(sum(gap.values()) / len(gap), signed=True), *_values(parts)


def _far_out(entry: Entry) -> Iterable[str]:
    """Yield a sentence if runs are so far from the others of their split that the deviations are not normal."""
    rows = entry.rows
    by_split: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        by_split[row.key.seeds.split].append(row.accuracy)
    away = [abs(row.accuracy - float(np.median(by_split[row.key.seeds.split]))) for row in rows]
    limit = FAR * float(np.median(away))
    far = sorted((row for row, each in zip(rows, away, strict=True) if each > limit), key=lambda row: row.accuracy)
    if far:
        others = np.mean([row.epochs for row, each in zip(rows, away, strict=True) if each <= limit])
        named = [
            f"{100 * row.accuracy:.2f} % (split {row.key.seeds.split}, initialisation {row.key.seeds.init}, {row.epochs} epochs)"
            for row in far
        ]
        one = len(far) == 1
        yield (
            f"{entry.title} on {dataset_title(entry.cell.dataset)}: {listed(named)} {'is' if one else 'are'} far from the "
            f"median of {'its split' if one else 'their splits'}, while the other runs have {others:.0f} epochs on average; "
            "the deviation between initialisations is not normal there, so take the intervals with caution."
        )


def _values(parts: Components) -> Cells:
    split, init = (f"{low:.2f} to {high:.2f}" for low, high in (parts.split_interval, parts.init_interval))
    low, high = (Number(100 * end, 0) for end in parts.share_interval)
    return Number(parts.split), split, Number(parts.init), init, Number(100 * parts.share, 0), f"{low} to {high}"
