"""The tables of `more_accuracy.py`: its rows compared with APPNP on the same splits.

python experiments/accuracy_rows.py     the two tables of test splits of docs/accuracy.md; a test compares the page
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from _common import RESULTS, Rows

from pprop.study.cell import Seeds
from pprop.study.stats.estimate import bootstrap_interval
from pprop.study.stats.paired import paired_test
from pprop.study.tables.entries import DATASET_TITLES

INITS = 5
MAX_EPOCHS = 10000
VOTE = ("folds_high", 10)
CONTROLS = (("folds_gcn", 10), ("folds_gat", 10), ("folds_tuned_fp", 5))
"""The option that was run on test splits, and the other models that were given its folds, each with its members."""


def cell_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row is a result of."""
    cell = {name: row.get(name) for name in ("dataset", "kind", "option", "split", "members")}
    return cell | {"rounds": len(row.get("rounds", [None])) - 1, "max_epochs": row.get("max_epochs", MAX_EPOCHS)}


def results_of(row: Mapping[str, Any], treated: bool = False) -> dict[str, float]:
    """Return the accuracies that a row of an option has, by the name of the result; only those of `after` where asked."""
    if treated:
        return row.get("after", {})
    found = {"one run": fmean(row["runs"])}
    if "rounds" in row:
        found |= {("ensemble" if k == 0 else f"round {k}"): value for k, value in enumerate(row["rounds"])}
        if len(row["rounds"]) > 1:
            found |= {name: row[name] for name in ("chosen", "all rounds")}
    return found | {name: row[name] for name in ("errors spread",) if name in row}


def table(rows: Sequence[Mapping[str, Any]], treated: bool = False) -> str:
    """Return the comparison with APPNP on the same splits as a table in Markdown, in percent."""
    lines = [
        "| graph | splits | option | members | result | accuracy | APPNP | difference (95 % interval) | p |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cells: dict[tuple[str, str, str, int, int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["option"] != "appnp" or treated:
            name, kind, label, _, members, rounds, cap = cell_of(row).values()
            cells.setdefault((name, kind, label, members or INITS, rounds, cap), []).append(row)
    for (name, kind, label, members, _, cap), own in sorted(cells.items()):
        # single runs of "plain" are APPNP as published, too; the runs with the seeds of the study count where there are any
        wanted = [{"dataset": name, "kind": kind, "option": which, "max_epochs": cap} for which in ("plain", "appnp")]
        appnp = {
            Seeds(row["split"], 0): fmean(row["runs"])
            for cell in wanted
            for row in rows
            if cell.items() <= cell_of(row).items()
        }
        capped = "" if cap == MAX_EPOCHS else f", {cap} epochs"
        for result in results_of(own[-1], treated):
            found = ((row, results_of(row, treated)) for row in own)
            ours = {Seeds(row["split"], 0): each[result] for row, each in found if result in each}
            both = sorted(ours.keys() & appnp.keys())
            if len(both) < 2:
                continue
            low, high = (100 * end for end in bootstrap_interval([ours[seeds] - appnp[seeds] for seeds in both]))
            test = paired_test(ours, appnp, over="splits")
            mean, base = (100 * float(np.mean([values[seeds] for seeds in both])) for values in (ours, appnp))
            lines.append(
                f"| {name} | {len(both)} {kind} | {label}{capped} | {members} | {result} | {mean:.2f} | {base:.2f} | "
                f"{mean - base:+.2f} ({low:.2f} to {high:.2f}) | {test.p:.2g} |"
            )
    return "\n".join(lines)


def on_test(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the two tables of test splits, in percent: the vote beside APPNP, and beside other models."""
    gains: list[str] = []
    controls: list[str] = []

    def of(name: str, option: str, members: int | None) -> dict[int, Mapping[str, Any]]:
        cell = {"dataset": name, "kind": "test", "option": option, "members": members}
        return {row["split"]: row for row in rows if cell.items() <= cell_of(row).items()}

    def gap(ours: Mapping[int, float], theirs: Mapping[int, float]) -> str:
        apart = [ours[split] - theirs[split] for split in sorted(ours.keys() & theirs.keys())]
        low, high = bootstrap_interval(apart)
        return f"{fmean(apart):+.2f} ({low:.2f} to {high:.2f})"

    for name, title in DATASET_TITLES.items():
        plain = {split: 100 * fmean(row["runs"]) for split, row in of(name, "appnp", None).items()}
        single = {split: 100 * fmean(row["runs"]) for split, row in of(name, *VOTE).items()}
        vote, *others = (
            {split: 100 * row["rounds"][0] for split, row in of(name, *option).items()} for option in (VOTE, *CONTROLS)
        )
        p = paired_test(*({Seeds(split, 0): one[split] for split in vote} for one in (vote, plain)), over="splits").p
        means = [f"{fmean(each.values()):.2f}" for each in (plain, vote, *others)]
        alone = fmean(single.values()) - fmean(plain.values())
        gains.append(f"| {title} | {means[0]} | {means[1]} | {gap(vote, plain)} | {p:.1e} | {alone:+.2f} |")
        controls.append(f"| {title} | {' | '.join([*means[1:], *(gap(vote, each) for each in others)])} |")
    return [*gains, *controls]


if __name__ == "__main__":
    print("\n".join(on_test(Rows(RESULTS / "more_accuracy.json").rows)))
