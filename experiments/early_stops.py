"""Which cells of the study have runs that end on the plateau of their first epochs: the table of docs/study.md.

    python experiments/early_stops.py

A run counts as early if it ends within 50 epochs beyond its patience. A cell is listed if these runs are at least 5 points
worse on average than the others. Of each cell, the rows that a GPU computed with the version of its newest row. A test compares
the page with it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from gpu_rows_on_cpu import PACK, newest_of

from pprop.datasets import DATASETS
from pprop.study.cell import MODELS, Cell, fill_settings
from pprop.study.store.pack import Packed
from pprop.study.store.row import Row

BEYOND, WORSE = 50, 0.05


def place(cell: Cell) -> str:
    """Return what sets a cell apart from that of the accuracy table."""
    if cell.per_class != 20:
        return f"{cell.per_class} a class"
    if cell.splits == "validation":
        steps = f", K = {cell.settings['steps']}" if "steps" in cell.settings else ""
        return f"α = {cell.settings['alpha']:g}{steps}"
    return "20 a class"


def of_search(cell: Cell) -> bool:
    """Return whether a cell is one of a search: a validation cell with other settings than alpha and steps."""
    published = fill_settings(cell.model, {}, cell.dataset)
    changed = [name for name, value in cell.settings.items() if published.get(name) != value]
    return cell.splits == "validation" and (
        bool(set(changed) - {"alpha", "steps", "hidden"}) or "alpha" not in cell.settings
    )


def table(published: Iterable[Row]) -> list[str]:
    """Return the cells as lines of Markdown, accuracies in percent."""
    found: list[tuple[tuple[int, str, int, str], str]] = []
    for text, rows in newest_of(published).items():
        cell = Cell.parse(text)
        if not MODELS[cell.model].trained or of_search(cell):
            continue
        limit = cell.settings["patience"] + BEYOND
        early = [row.accuracy for row in rows if row.epochs < limit]
        others = [row.accuracy for row in rows if row.epochs >= limit]
        if early and others and np.mean(others) - np.mean(early) >= WORSE:
            line = (
                f"| {cell.dataset} | {MODELS[cell.model].title} | {place(cell)} | {len(early)} of {len(rows)} | "
                f"{100 * np.mean(early):.1f} | {100 * np.mean(others):.1f} | {100 * np.mean(early + others):.1f} |"
            )
            found.append(((list(DATASETS).index(cell.dataset), cell.model, cell.per_class, text), line))
    return [
        "| dataset | model | where | early runs | their accuracy | that of the others | of all |",
        "|---|---|---|---|---|---|---|",
        *(line for _, line in sorted(found)),
    ]


if __name__ == "__main__":
    print("\n".join(table(Packed(PACK))))
