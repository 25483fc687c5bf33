"""Choose the C of bootstrapped feature propagation: mean accuracy on validation splits, which hold no test nodes.

    PPROP_DATA=folder python experiments/bootstrapped_fp_c.py [--splits 5]

How exact the regressions must be:

    PPROP_DATA=folder python experiments/bootstrapped_fp_c.py --C 1000 --tolerance 1e-4 1e-5 1e-6
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time

import numpy as np

from pprop import VALIDATION_SEEDS, load_dataset, paper_split
from pprop.models.feature_propagation import BootstrappedFP, Diffused, diffused_features
from pprop.models.feature_rows import device_named
from pprop.models.one_vs_rest import TOLERANCE

CHOICES = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--datasets", nargs="+", default=["citeseer", "cora_ml"])
    parser.add_argument("--C", dest="choices", type=float, nargs="+", default=CHOICES)
    parser.add_argument("--tolerance", type=float, nargs="+", default=[TOLERANCE])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments = parser.parse_args()
    for name in arguments.datasets:
        graph = load_dataset(name)
        assert graph.labels is not None
        device = device_named(arguments.device)
        diffused = Diffused(diffused_features(BootstrappedFP(), graph, device), device)
        for strength, tolerance in itertools.product(arguments.choices, arguments.tolerance):
            shares: list[float] = []
            begin = time.process_time()
            for seed in VALIDATION_SEEDS[: arguments.splits]:
                split = paper_split(graph, seed=seed, test=False)
                known, watched, others = (
                    (nodes, graph.labels[nodes]) for nodes in (split.train, split.stopping, split.evaluation)
                )
                found = diffused.bootstrap(
                    BootstrappedFP(C=strength), *known, *watched, n_classes=graph.n_classes, tolerance=tolerance
                )
                right = found.log_shares[others[0]].argmax(axis=1) == others[1]
                shares.append(np.count_nonzero(right) / len(right))
            seconds = (time.process_time() - begin) / len(shares)
            how = f"C={strength:g} tolerance={tolerance:g}"
            sys.stdout.write(f"{name} {how}: {100 * np.mean(shares):.2f} ({seconds:.1f} CPU seconds a split)\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
