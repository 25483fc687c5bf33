"""What more accuracy the same labels give: ensembles, self-training, stopping nodes that train, other settings.

    PPROP_DATA=folder python experiments/more_accuracy.py --only citeseer cora_ml --splits 10
    PPROP_DATA=folder python experiments/more_accuracy.py --splits 20 --members 8 --device cuda --option plain folds
    PPROP_DATA=folder python experiments/more_accuracy.py --splits 20 --members 8 --device cuda --option folds --test
    python experiments/more_accuracy.py --table [--after]

Options are measured on validation splits, which hold no test nodes and no test labels, each paired with APPNP (the published
settings, five runs per split, the seeds of the study) on the same splits. Every result is kept in the results file the
moment it is there, and is not computed again. With ``--test`` one option, chosen before, is run on the test splits,
once; APPNP's runs there are those of the study.

An option trains an ensemble and then teaches it with its own predictions; each of its rounds is a result: round 0 is the
ensemble alone, "all rounds" the mean over all of them, which is what `APPNPEnsembleClassifier` predicts, "chosen" the
round with the best stopping accuracy. ``--after`` shows what else can be done with the predictions of round 0
(`after_training.py`). Options whose name begins with "folds" train on stopping labels, too; no other does.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from after_training import treatments
from numpy.typing import NDArray
from scipy import sparse

from pprop import APPNP, TEST_SEEDS, VALIDATION_SEEDS, Graph, Split, Stopping, run_seed, train
from pprop.datasets import DATASETS
from pprop.models.ensemble import Ensemble
from pprop.study.bootstrap import bootstrap_interval
from pprop.study.cell import Seeds
from pprop.study.opened import study_folder
from pprop.study.prepared import Datasets, Prepared
from pprop.study.statistics import paired_test
from pprop.study.store import Store
from pprop.study.zoo import make_cell
from pprop.training.self_training import Round, SelfTraining, self_train

PUBLISHED = {"citeseer": 75.73, "cora_ml": 85.09, "pubmed": 79.73, "ms_academic": 93.27}
INITS = 5
STUDY = Path(__file__).parents[1] / "results" / "study.pack"
PER_CLASS = 20
MAX_EPOCHS = 10000
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "idf": {"idf": True},
    "few": {"share": 0.2},
    "many": {"share": 0.8},
    "emphasis": {"emphasis": 5},
    "folds": {"folds": 5},
    "folds_high": {"folds": 5, "alpha": 0.3},
    "folds_light": {"folds": 5, "penalty": 0.001},
    "folds_calm": {"folds": 5, "dropout": 0.2},
    "wide": {"hidden": 256},
    "calm": {"dropout": 0.2},
    "low": {"alpha": 0.05},
    "high": {"alpha": 0.2},
}
"""What differs from: the published alpha, half of the nodes teach, each counts once, features as they are, stopping nodes stop alone."""


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
        self.path.write_text("[\n" + ",\n".join(json.dumps(one) for one in order) + "\n]\n", encoding="utf-8")


def cell_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row is a result of."""
    cell = {name: row.get(name) for name in ("dataset", "kind", "option", "split", "members")}
    return cell | {"rounds": len(row.get("rounds", [None])) - 1, "max_epochs": row.get("max_epochs", MAX_EPOCHS)}


def accuracy(prepared: Prepared, split: Split, logits: NDArray[Any]) -> float:
    return prepared.scores(logits.argmax(axis=1).astype(np.uint8), split)["accuracy"]


def reference(results: Results, name: str, kind: str, prepared: Prepared, seeds: Sequence[int], device: str) -> None:
    """Run APPNP as published, all splits and initialisations in one training; on test splits the study's runs are taken."""
    missing = [seed for seed in seeds if not results.has(dataset=name, kind=kind, option="appnp", split=seed)]
    if not missing:
        return
    if kind == "test":
        found = published_runs(name)
        for seed in missing:
            runs = [found[Seeds(seed, init)] for init in range(INITS)]
            results.add({"dataset": name, "kind": kind, "option": "appnp", "split": seed, "runs": runs})
        return
    runs = [(seed, init) for seed in missing for init in range(INITS)]
    trained = train(
        APPNP(alpha=DATASETS[name].recommended.alpha),
        prepared.graph,
        [prepared.split(seed, PER_CLASS) for seed, _ in runs],
        seeds=[run_seed(*run) for run in runs],
        device=device,
        progress=None,
    )
    for k, seed in enumerate(missing):
        split, own = prepared.split(seed, PER_CLASS), trained.logits[k * INITS : (k + 1) * INITS]
        cell = {"dataset": name, "kind": kind, "option": "appnp", "split": seed}
        results.add(
            cell | {"runs": [accuracy(prepared, split, logits) for logits in own], **after(prepared, split, own)}
        )


def published_runs(name: str) -> dict[Seeds, float]:
    """Return the test accuracies of APPNP in the packed study, so that no test run of it is made again."""
    with study_folder(STUDY) as folder, Store.open(folder) as store:
        return {row.key.seeds: row.accuracy for row in store.rows(make_cell("appnp", {}, name).config)}


def after(prepared: Prepared, split: Split, logits: NDArray[Any]) -> dict[str, dict[str, float]]:
    """Return the accuracies of what can be done with the members' predictions, on validation splits only."""
    if prepared.splits == "test":
        return {}
    labels = prepared.graph.labels
    assert labels is not None
    scores = treatments(prepared.graph, split, labels, logits)
    return {"after": {name: accuracy(prepared, split, found) for name, found in scores.items()}}


def weighted(graph: Graph) -> Graph:
    """Return the graph with column j of its features times log(n / df_j), df_j being the number of nodes that have it."""
    assert graph.features is not None
    words = sparse.csr_array(graph.features).astype(np.float64)  # pyright: ignore[reportArgumentType]  dense or sparse
    having = np.bincount(words.indices, minlength=words.shape[1])
    words.data *= np.log(graph.n_nodes / np.maximum(having, 1))[words.indices]
    return graph.replace(features=words)


def option(
    results: Results, name: str, kind: str, prepared: Prepared, seed: int, label: str, how: argparse.Namespace
) -> None:
    """Run one option on one split."""
    cell = {"dataset": name, "kind": kind, "option": label, "split": seed, "members": how.members}
    if results.has(**cell, rounds=how.rounds, max_epochs=how.max_epochs):
        return
    settings = OPTIONS[label]
    alpha = settings.get("alpha", DATASETS[name].recommended.alpha)
    split, labels = prepared.split(seed, PER_CLASS), prepared.graph.labels
    assert labels is not None
    graph = weighted(prepared.graph) if settings.get("idf") else prepared.graph
    network = {name: settings[name] for name in ("hidden", "dropout", "penalty") if name in settings}
    model = Ensemble(APPNP(alpha=alpha, **network), how.members)
    teaching = SelfTraining(
        how.rounds, settings.get("share", 0.5), settings.get("emphasis", 1), settings.get("folds", 0)
    )
    begin = time.perf_counter()
    rounds: list[Round] = list(
        self_train(
            model,
            teaching,
            graph,
            split,
            labels=labels,
            seed=run_seed(seed, 0) % 2**64,
            stopping=Stopping(max_epochs=how.max_epochs),
            device=how.device,
        )
    )
    best = max(range(len(rounds)), key=lambda k: (rounds[k].stopping_accuracy, -rounds[k].stopping_loss))
    results.add(
        cell
        | {
            "max_epochs": how.max_epochs,
            "runs": [accuracy(prepared, split, logits) for logits in rounds[0].trained.logits],
            "rounds": [accuracy(prepared, split, one.logits) for one in rounds],
            "stopping": [one.stopping_accuracy for one in rounds],
            "chosen": accuracy(prepared, split, rounds[best].logits),
            "all rounds": accuracy(prepared, split, np.mean([np.exp(one.logits) for one in rounds], axis=0)),
            **after(prepared, split, rounds[0].trained.logits),
            "seconds": round(time.perf_counter() - begin, 1),
            "device": how.device,
        }
    )


def mean_of(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def results_of(row: Mapping[str, Any], treated: bool = False) -> dict[str, float]:
    """Return the accuracies that a row of an option has, by the name of the result; only those of `after` where asked."""
    if treated:
        return row.get("after", {})
    found = {"one run": mean_of(row["runs"])}
    if "rounds" in row:
        found |= {("ensemble" if k == 0 else f"round {k}"): value for k, value in enumerate(row["rounds"])}
        found |= {name: row[name] for name in ("chosen", "all rounds")}
    return found


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", dest="dataset", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--option", nargs="+", default=["plain"], choices=list(OPTIONS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--max-epochs", type=int, default=MAX_EPOCHS, help="of a run; with --members-only of APPNP, too"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--members-only", action="store_true", help="compare with single members of 'plain', train no other APPNP"
    )
    parser.add_argument("--test", action="store_true", help="run the one option that was chosen on the test splits")
    parser.add_argument("--out", type=Path, default=Path("results/more_accuracy.json"))
    parser.add_argument("--table", action="store_true", help="print what is in the file, and run nothing")
    parser.add_argument("--after", action="store_true", help="print what can be done after training instead")
    how = parser.parse_args()
    results = Results(how.out)
    if how.test and len(how.option) != 1:
        parser.error("--test runs one option: name it with --option.")
    kind, seeds = ("test", TEST_SEEDS) if how.test else ("validation", VALIDATION_SEEDS)
    datasets = Datasets()
    names: list[str] = [] if how.table else how.dataset
    for name in names:
        prepared = datasets.prepare(name, kind)
        if not how.members_only:
            reference(results, name, kind, prepared, seeds[: how.splits], how.device)
        for label in how.option:
            for seed in seeds[: how.splits]:
                option(results, name, kind, prepared, seed, label, how)
            sys.stderr.write(f"{name} {label} done\n")
    print(table(results.rows, how.after))


if __name__ == "__main__":
    main()
