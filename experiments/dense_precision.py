"""Whether the GPU's factors of 11 significant bits change the accuracy on dense features: 100 runs on Citeseer, both devices.

    PYTHONPATH=src python3 experiments/dense_precision.py

The bag of words is projected on its 256 leading directions, which leaves no zeros. The same 20 splits and 5 seeds train APPNP
on the CPU, in float32, and on a GPU. results/gpu/dense_precision.txt is what it printed on an H200.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.sparse.linalg import svds

import pprop

DIRECTIONS, SPLITS, SEEDS = 256, 20, 5


def main() -> None:
    """Train on both devices; print the accuracies and their differences split by split."""
    graph = pprop.load_dataset("citeseer")
    words: Any = graph.scaled("l1").features
    left, sizes, _ = svds(words, k=DIRECTIONS, rng=np.random.default_rng(0))
    dense = graph.replace(features=(left * sizes).astype(np.float32))
    splits = [pprop.paper_split(graph, seed) for seed in pprop.VALIDATION_SEEDS[:SPLITS]]
    pairs = [(split, seed) for split in range(SPLITS) for seed in range(SEEDS)]
    accuracy: dict[str, np.ndarray] = {}
    for device in ("cpu", "cuda"):
        trained = pprop.train(
            pprop.APPNP(alpha=0.1),
            dense,
            [splits[split] for split, _ in pairs],
            seeds=[pprop.run_seed(pprop.VALIDATION_SEEDS[split], seed) for split, seed in pairs],
            device=device,
            progress=False,
        )
        accuracy[device] = 100 * np.asarray(trained.accuracy())
        print(
            f"{device}: {accuracy[device].mean():.2f} % (standard deviation {accuracy[device].std(ddof=1):.2f}), "
            f"{trained.epochs.mean():.0f} epochs, {trained.seconds:.1f} s for {len(pairs)} runs",
            flush=True,
        )
    by_split = (accuracy["cuda"] - accuracy["cpu"]).reshape(SPLITS, SEEDS).mean(axis=1)
    test = stats.ttest_1samp(by_split, 0.0)
    interval = test.confidence_interval(0.95)
    print(
        f"cuda - cpu: {by_split.mean():+.3f} points, 95 % interval over splits {interval.low:+.3f} to {interval.high:+.3f}, "
        f"p = {test.pvalue:.2f}"
    )


if __name__ == "__main__":
    main()
