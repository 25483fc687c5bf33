"""How far runs that a GPU computed are from the same runs on the CPU.

    PPROP_DATA=folder python experiments/gpu_rows_on_cpu.py
    python experiments/gpu_rows_on_cpu.py --table
    python experiments/gpu_rows_on_cpu.py --pairs

A seeded sample of the runs of each cell of the accuracy table in `results/study.pack`. What both devices found is written
down run by run as the runs end, so that the command goes on where it was stopped. `--table` writes the table of
docs/study.md; `--pairs` counts how often two initialisations are far apart. `pprop.study.stats.variance` has the bounds that
follow, and a test compares all three.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
from _common import RESULTS, Rows

from pprop import TEST_SEEDS
from pprop.study.cell import MODELS, Cell, Seeds, make_cell
from pprop.study.revisions import current_revision
from pprop.study.run.recipe import ComputePlace, Datasets
from pprop.study.run.runner import recipe_of
from pprop.study.stats.variance import row_bound, spread
from pprop.study.store.pack import Packed
from pprop.study.store.row import Row

PLAN = {  # runs of each cell, as many as two cores can afford
    "citeseer": {"vanilla_gcn": 20, "mlp": 20, "ppnp": 20, "appnp": 10, "jk": 10, "gat": 6, "gcn": 6, "ngcn": 6},
    "cora_ml": {"vanilla_gcn": 20, "mlp": 10, "ppnp": 20, "appnp": 10, "jk": 3, "gat": 4, "gcn": 4, "ngcn": 2},
    "pubmed": {"vanilla_gcn": 4, "mlp": 4, "ppnp": 2, "appnp": 3},
    "ms_academic": {"vanilla_gcn": 4, "mlp": 4, "appnp": 3},
}
SEED = 6
BOTH = ("accuracy", "epochs", "best_epoch", "stopping_loss")
PACK = RESULTS / "study.pack"


def newest_of(published: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows that a GPU computed, of each cell those of the revision of the newest row, whatever the present one is."""
    found: dict[str, list[Row]] = {}
    for row in published:
        if row.device != "cpu":
            found.setdefault(row.cell, []).append(row)
    for text, rows in found.items():
        newest = max(rows, key=lambda row: (row.created, row.key)).key
        found[text] = [row for row in rows if (row.key.revision, row.key.data) == (newest.revision, newest.data)]
    return found


def sampled(rows: list[Row], runs: int) -> list[Row]:
    """Return a sample of the rows of a cell; the first 100 runs, so that later ones do not change it."""
    published = [row for row in rows if row.key.seeds.split in TEST_SEEDS]
    chosen = np.random.default_rng(SEED).permutation(len(published))[:runs]  # more runs later keep the first ones
    return [published[int(index)] for index in chosen]


def compared(gpu: Row, cpu: Row, cell: Cell, sigma: float) -> dict[str, Any]:
    """Return what both found, and the spread between initialisations."""
    return {
        "dataset": cell.dataset,
        "model": cell.model,
        "split": gpu.key.seeds.split,
        "init": gpu.key.seeds.init,
        **{name: [getattr(gpu, name), getattr(cpu, name)] for name in BOTH},
        "same_prediction": round(np.count_nonzero(gpu.predictions == cpu.predictions) / len(gpu.predictions), 6),
        "spread": round(sigma, 6),
        "cpu_seconds": round(cpu.seconds, 3),
    }


def table(found: list[dict[str, Any]]) -> list[str]:
    """Return the measurement as lines of Markdown, accuracies in points."""
    by_cell = {(dataset, model): list[dict[str, Any]]() for dataset, models in PLAN.items() for model in models}
    for one in found:
        by_cell[one["dataset"], one["model"]].append(one)
    lines = [
        "| dataset | model | runs | same accuracy | same epoch kept | same classes | mean difference | largest | "
        "two initialisations | bound of a row |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (dataset, model), rows in by_cell.items():
        if not rows:
            continue
        apart = np.array([100 * (one["accuracy"][0] - one["accuracy"][1]) for one in rows])
        kept = sum(one["best_epoch"][0] == one["best_epoch"][1] for one in rows)
        same = 100 * np.mean([one["same_prediction"] for one in rows])
        sigma = rows[0]["spread"]
        lines.append(
            f"| {dataset} | {MODELS[model].title} | {len(rows)} | {np.count_nonzero(apart == 0)} | {kept} | "
            f"{same:.2f} % | {apart.mean():+.2f} | {np.abs(apart).max():.2f} | {100 * sqrt(2) * sigma:.2f} | "
            f"{100 * row_bound(sigma):.2f} |"
        )
    return lines


def pairs(by_cell: dict[str, list[Row]]) -> list[float]:
    """Return how far apart two initialisations of one split are, over all cells, in units of root two times the spread.

    Only splits of the accuracy table count, so that runs beyond it change nothing.
    """
    units: list[float] = []
    for rows in by_cell.values():
        published = [row for row in rows if row.key.seeds.split in TEST_SEEDS]
        some = list(combinations(sorted(published, key=lambda row: row.key.seeds), 2))
        apart = [abs(a.accuracy - b.accuracy) for a, b in some if a.key.seeds.split == b.key.seeds.split]
        sigma = spread({row.key.seeds: row.accuracy for row in published})
        units += [one / (sqrt(2) * sigma) for one in apart]
    return units


def compute(rows: Rows) -> None:
    """Compute what is not yet in the file."""
    datasets, by_cell = Datasets(), newest_of(Packed(PACK))
    for dataset, model in ((dataset, model) for dataset, models in PLAN.items() for model in models):
        cell = make_cell(model, {}, dataset)
        revision = current_revision(cell, "triton")
        known = sorted((row for row in by_cell[cell.text] if row.key.revision == revision), key=lambda row: row.key)
        sigma = spread({row.key.seeds: row.accuracy for row in known})
        there = {(one["dataset"], one["model"], one["split"], one["init"]) for one in rows.rows}
        wanted = {row.key.seeds: row for row in sampled(known, PLAN[dataset][model])}
        left = {seeds: row for seeds, row in wanted.items() if (dataset, model, seeds.split, seeds.init) not in there}

        def take(row: Row, left: dict[Seeds, Row] = left, cell: Cell = cell, sigma: float = sigma) -> None:
            rows.add(compared(left[row.key.seeds], row, cell, sigma))

        if left:
            recipe_of(cell, datasets.of(cell), ComputePlace("cpu", "numba")).compute(list(left), take)
            print(f"{dataset} {model}: {len(left)} runs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="compute nothing; write what there is as a table")
    parser.add_argument("--pairs", action="store_true", help="compute nothing; compare the pack's initialisations")
    how, rows = parser.parse_args(), Rows(RESULTS / "gpu_rows_on_cpu.json")
    if how.table:
        print("\n".join(table(rows.rows)))
    elif how.pairs:
        units = pairs(newest_of(Packed(PACK)))
        beyond = [f"{sum(one > limit for one in units)} beyond {limit}" for limit in (2, 3, 4, 5, 6)]
        print(f"{len(units)} pairs of initialisations: {', '.join(beyond)}")
    else:
        compute(rows)


if __name__ == "__main__":
    main()
