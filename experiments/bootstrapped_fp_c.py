"""Choose the C of bootstrapped feature propagation: mean accuracy on validation splits, which hold no test nodes.

    PPROP_DATA=folder python experiments/bootstrapped_fp_c.py

How exact the regressions must be:

    PPROP_DATA=folder python experiments/bootstrapped_fp_c.py --C 1000 --tolerance 1e-4 1e-5 1e-6
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from pprop import VALIDATION_SEEDS, load_dataset, paper_split
from pprop.models.feature_propagation import BootstrappedFP, Diffused, diffused_features
from pprop.models.feature_rows import device_named
from pprop.models.one_vs_rest import TOLERANCE
from pprop.study.stats.estimate import accuracy

SPLITS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--C", dest="choices", type=float, nargs="+", default=[10, 30, 100, 300, 1000, 3000])
    parser.add_argument("--tolerance", type=float, nargs="+", default=[TOLERANCE])
    how = parser.parse_args()
    for name in ("citeseer", "cora_ml"):
        graph, device = load_dataset(name), device_named("cpu")
        labels = graph.labels
        assert labels is not None
        diffused = Diffused(diffused_features(BootstrappedFP(), graph, device), device)
        for strength, tolerance in itertools.product(how.choices, how.tolerance):
            shares: list[float] = []
            begin = time.process_time()
            for seed in VALIDATION_SEEDS[:SPLITS]:
                split = paper_split(graph, seed=seed, test=False)
                train, stopping, others = split.train, split.stopping, split.evaluation
                found = diffused.bootstrap(
                    BootstrappedFP(C=strength),
                    train,
                    labels[train],
                    stopping,
                    labels[stopping],
                    n_classes=graph.n_classes,
                    tolerance=tolerance,
                )
                shares.append(accuracy(found.log_shares[others].argmax(axis=1), labels[others]))
            seconds, mean = (time.process_time() - begin) / SPLITS, 100 * np.mean(shares)
            print(f"{name} C={strength:g} tolerance={tolerance:g}: {mean:.2f} ({seconds:.1f} CPU seconds a split)")


if __name__ == "__main__":
    main()
