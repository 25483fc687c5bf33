"""The rows of `more_accuracy.py`: kept in a file, and compared with APPNP on the same splits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pprop.study.cell import Seeds
from pprop.study.stats.estimate import bootstrap_interval
from pprop.study.stats.paired import paired_test

INITS = 5
MAX_EPOCHS = 10000


class Results:
    """The results file: a list of rows, written after each of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []

    def has(self, **key: object) -> bool:
        return any(all(cell_of(row).get(name) == value for name, value in key.items()) for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        order = sorted(self.rows, key=lambda one: (one["dataset"], one["kind"], one["option"], one["split"]))
        beside = self.path.with_name(self.path.name + ".new")  # the time may be over at any moment
        beside.write_text("[\n" + ",\n".join(json.dumps(one) for one in order) + "\n]\n", encoding="utf-8")
        beside.replace(self.path)


def cell_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row is a result of."""
    cell = {name: row.get(name) for name in ("dataset", "kind", "option", "split", "members")}
    return cell | {"rounds": len(row.get("rounds", [None])) - 1, "max_epochs": row.get("max_epochs", MAX_EPOCHS)}


def mean_of(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def results_of(row: Mapping[str, Any], treated: bool = False) -> dict[str, float]:
    """Return the accuracies that a row of an option has, by the name of the result; only those of `after` where asked."""
    if treated:
        return row.get("after", {})
    found = {"one run": mean_of(row["runs"])}
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
        appnp = {
            Seeds(row["split"], 0): mean_of(row["runs"])
            for reference in ("plain", "appnp")
            for row in rows
            if (row["dataset"], row["kind"], row["option"]) == (name, kind, reference)
            and cell_of(row)["max_epochs"] == cap
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
