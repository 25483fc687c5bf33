"""Accuracy of PPNP and APPNP, 20 test splits, initialisation seed 0, beside the paper's.

    PPROP_DATA=folder python experiments/core_accuracy.py --datasets citeseer cora_ml --models PPNP APPNP
    PPROP_DATA=folder python experiments/core_accuracy.py --inits 5 --device cuda --out results/gpu/appnp_row.json

Patience 100 and the cap of 10000 epochs, everything else as published too. `--inits 5` makes the paper's 100 runs; the
second command is the APPNP row of the paper's table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from _common import RESULTS, published

import pprop
from pprop.datasets import DATASETS
from pprop.study.stats.estimate import bootstrap_interval


def run_cell(dataset: str, name: str, inits: int, device: str) -> dict[str, Any]:
    """Train one cell of the table; return its numbers."""
    graph, (paper, half_width) = pprop.load_dataset(dataset), published(name.lower(), dataset)
    pairs = list(itertools.product(pprop.TEST_SEEDS, range(inits)))
    trained = pprop.train(
        {"PPNP": pprop.PPNP, "APPNP": pprop.APPNP}[name](alpha=DATASETS[dataset].recommended.alpha),
        graph,
        [pprop.paper_split(graph, split_seed) for split_seed, _ in pairs],
        seeds=[pprop.run_seed(split_seed, init) for split_seed, init in pairs],
        device=device,
        progress=device == "cpu",
    )
    accuracy = 100 * trained.accuracy()
    return {
        "dataset": dataset,
        "model": name,
        "runs": len(pairs),
        "accuracy": round(float(accuracy.mean()), 3),
        "interval": [round(end, 3) for end in bootstrap_interval(accuracy)],
        "published": paper,
        "published_half_width": half_width,
        "difference": round(float(accuracy.mean()) - paper, 3),
        "mean_epochs": round(float(trained.epochs.mean()), 1),
        "epochs_range": [int(trained.epochs.min()), int(trained.epochs.max())],
        "seconds": round(trained.seconds, 1),
        "ms_per_run_epoch": round(1000 / trained.run_epochs_per_second, 3),
        "backend": trained.backend,
        "device": trained.device,
        "fingerprint": graph.fingerprint,
        "accuracies": accuracy.round(3).tolist(),
        "epochs": trained.epochs.tolist(),
    }


def main() -> None:
    """Run the cells and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "core_accuracy.json")
    parser.add_argument("--inits", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--datasets", nargs="+", choices=list(DATASETS), default=list(DATASETS))
    parser.add_argument("--models", nargs="+", choices=["PPNP", "APPNP"], default=["APPNP"])
    how = parser.parse_args()
    rows: list[dict[str, Any]] = []
    on_cpu = f"{platform.machine()}, {torch.get_num_threads()} threads"
    for dataset, name in itertools.product(how.datasets, how.models):
        row = run_cell(dataset, name, how.inits, how.device)
        rows.append(row)
        print(
            f"{dataset} {name} {row['accuracy']:.2f}, paper {row['published']:.2f}, {row['seconds']:.1f} s", flush=True
        )
        report = {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"pprop": pprop.__version__, "torch": torch.__version__, "python": platform.python_version()},
            "machine": on_cpu if how.device == "cpu" else torch.cuda.get_device_name(),
            "seconds": round(sum(one["seconds"] for one in rows), 1),
            "cells": rows,
        }
        how.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
