"""Choose the C of bootstrapped feature propagation: mean accuracy on validation splits, which hold no test nodes.

PPROP_DATA=... python experiments/bootstrapped_fp_c.py [--splits 5]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from pprop import VALIDATION_SEEDS, BootstrappedFPClassifier, load_dataset, paper_split

CHOICES = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    splits = parser.parse_args().splits
    for name in ("citeseer", "cora_ml"):
        graph = load_dataset(name)
        assert graph.labels is not None
        for strength in CHOICES:
            shares: list[float] = []
            for seed in VALIDATION_SEEDS[:splits]:
                split = paper_split(graph, seed=seed, test=False)
                watched = (split.stopping, graph.labels[split.stopping])
                model = BootstrappedFPClassifier(graph, C=strength, random_state=0)
                model.fit(split.train, graph.labels[split.train], stopping=watched)
                shares.append(model.score(split.evaluation, graph.labels[split.evaluation]))
            sys.stdout.write(f"{name} C={strength:g}: {100 * np.mean(shares):.2f}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
