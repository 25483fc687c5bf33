"""Accuracy of PPNP and APPNP, 20 test splits, initialisation seed 0, beside the paper's.

    PPROP_DATA=folder python experiments/core_accuracy.py --only citeseer:PPNP citeseer:APPNP cora_ml:PPNP cora_ml:APPNP
    PPROP_DATA=folder python experiments/core_accuracy.py --model APPNP --inits 5 --device cuda --out results/gpu/appnp_row.json

Patience 100 and the cap of 10000 epochs, everything else as published too. `--inits 5` makes the paper's 100 runs; the
second command is the APPNP row of the paper's table.
"""

from __future__ import annotations

import argparse
import json
import platform
from datetime import UTC, datetime
from pathlib import Path

import torch

import pprop
from pprop.study.stats.estimate import bootstrap_interval

PUBLISHED = {  # accuracy in percent and half width of its 95 % interval: the paper's table of average accuracies
    ("citeseer", "PPNP"): (75.83, 0.27),
    ("citeseer", "APPNP"): (75.73, 0.30),
    ("cora_ml", "PPNP"): (85.29, 0.25),
    ("cora_ml", "APPNP"): (85.09, 0.25),
    ("pubmed", "APPNP"): (79.73, 0.31),
    ("ms_academic", "APPNP"): (93.27, 0.08),
}


def run_cell(dataset: str, name: str, inits: int, backend: str, device: str) -> dict[str, object]:
    """Train one cell of the table; return its numbers."""
    graph = pprop.load_dataset(dataset)
    assert graph.recommended is not None
    model = {"PPNP": pprop.PPNP, "APPNP": pprop.APPNP}[name](alpha=graph.recommended.alpha)
    pairs = [(split_seed, init) for split_seed in pprop.TEST_SEEDS for init in range(inits)]
    trained = pprop.train(
        model,
        graph,
        [pprop.paper_split(graph, split_seed) for split_seed, _ in pairs],
        seeds=[pprop.run_seed(split_seed, init) for split_seed, init in pairs],
        backend=backend,
        device=device,
        progress=device == "cpu",
    )
    accuracy = 100 * trained.accuracy()
    interval = bootstrap_interval(accuracy)
    published, half_width = PUBLISHED[dataset, name]
    return {
        "dataset": dataset,
        "model": name,
        "runs": len(pairs),
        "accuracy": round(float(accuracy.mean()), 3),
        "interval": [round(float(end), 3) for end in interval],
        "published": published,
        "published_half_width": half_width,
        "difference": round(float(accuracy.mean()) - published, 3),
        "mean_epochs": round(float(trained.epochs.mean()), 1),
        "epochs_range": [int(trained.epochs.min()), int(trained.epochs.max())],
        "seconds": round(trained.seconds, 1),
        "ms_per_run_epoch": round(1000 / trained.run_epochs_per_second, 3),
        "backend": trained.backend,
        "device": trained.device,
        "fingerprint": graph.fingerprint,
        "accuracies": [round(float(value), 3) for value in accuracy],
        "epochs": trained.epochs.tolist(),
    }


def main() -> None:
    """Run the cells and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/core_accuracy.json"))
    parser.add_argument("--inits", type=int, default=1)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", choices=["PPNP", "APPNP"], help="one row of the table")
    parser.add_argument("--only", nargs="*", default=[], help="cells such as citeseer:APPNP; default: all")
    arguments = parser.parse_args()
    cells = [cell for cell in PUBLISHED if not arguments.only or ":".join(cell) in arguments.only]
    cells = [cell for cell in cells if arguments.model in (None, cell[1])]
    rows: list[dict[str, object]] = []
    for dataset, name in cells:
        row = run_cell(dataset, name, arguments.inits, arguments.backend, arguments.device)
        rows.append(row)
        print(
            f"{dataset:11} {name:6} {row['accuracy']:6.2f}  paper {row['published']:.2f}  "
            f"difference {row['difference']:+.2f}  epochs {row['mean_epochs']:.0f}  {row['seconds']:.1f} s",
            flush=True,
        )
        report = {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"pprop": pprop.__version__, "torch": torch.__version__, "python": platform.python_version()},
            "machine": f"{platform.machine()}, {torch.get_num_threads()} threads"
            if arguments.device == "cpu"
            else torch.cuda.get_device_name(),
            "seconds": round(sum(float(str(one["seconds"])) for one in rows), 1),
            "cells": rows,
        }
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
