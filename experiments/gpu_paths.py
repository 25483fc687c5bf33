"""See that what lies on top of the GPU kernels gives on a GPU what it gives on the CPU: solvers, ensembles, chosen alphas, Bt. FP.

    PPROP_DATA=folder PYTHONPATH=src python3 experiments/gpu_paths.py

Solvers on Cora-ML, one line each: the relative error that is certified, beside the true one by `Exact` in float64. Then
estimators on one validation split, of which only Bt. FP is compared with the CPU. A line that begins with BAD has a
certificate that does not hold or labels that differ. results/gpu/paths.txt is what it printed on an H200.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import pprop
from pprop.models.feature_propagation import BootstrappedFP, FeaturePropagation

ALPHA, COLUMNS = 0.1, 7
SOLVERS = (pprop.Chebyshev, pprop.ConjugateGradient, pprop.Contraction)


def say(fine: bool, what: str) -> None:
    print("ok " if fine else "BAD", what, flush=True)


def solvers(graph: pprop.Graph) -> None:
    """Print products, errors and milliseconds of every solver in every float type, and the error of a gradient."""
    H = torch.from_numpy(np.random.default_rng(0).standard_normal((graph.n_nodes, COLUMNS)))
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        given = H.to(dtype).to("cuda")
        exact = pprop.propagate(graph, given.cpu().double(), alpha=ALPHA, solver=pprop.Exact())
        for solver in SOLVERS:
            pprop.solve(graph, given, alpha=ALPHA, solver=solver())  # compiles
            begin = time.perf_counter()
            solution = pprop.solve(graph, given, alpha=ALPHA, solver=solver())
            found = solution.value.cpu().double()  # waits for the device
            took = f"{1e3 * (time.perf_counter() - begin):.1f} ms"
            error = float(((found - exact).norm(dim=0) / exact.norm(dim=0)).max())
            certified = solution.certificate.relative_error
            words = (
                f"{solution.statistics.matrix_products} products, certified {certified:.2e}, true {error:.2e}, {took}"
            )
            say(error <= certified, f"{solver.__name__}, {dtype}: {words}")
    given = H.to("cuda").requires_grad_()
    weights = torch.ones_like(H) + H
    layer = pprop.Propagation(graph, alpha=ALPHA, solver=pprop.ConjugateGradient(tol=1e-9))
    (layer(given) * weights.to("cuda")).sum().backward()
    assert given.grad is not None
    exact = pprop.propagate(graph, weights, alpha=ALPHA, solver=pprop.Exact())
    error = float((given.grad.cpu() - exact).norm() / exact.norm())
    say(error <= 1e-9, f"gradient through ConjugateGradient(tol=1e-9): {error:.2e}")


def estimators(graph: pprop.Graph) -> None:
    """Print the validation accuracy of what trains on top of `train`; of Bt. FP, whether both devices agree."""
    split = pprop.paper_split(graph, pprop.VALIDATION_SEEDS[0])
    labels = graph.labels
    assert labels is not None
    common: dict[str, Any] = {"random_state": 0, "device": "cuda"}
    alphas: dict[str, Any] = {"alpha": [0.1, 0.2], "spread_errors": 0.1, **common}
    ensemble = pprop.APPNPEnsembleClassifier
    models: dict[str, Any] = {
        "ensemble, folds": ensemble(graph, members=5, folds=5, rounds=0, **common),
        "ensemble, one round of self-training": ensemble(graph, members=4, rounds=1, **common),
        "ensemble, alphas and spread errors": ensemble(graph, members=2, folds=5, rounds=0, **alphas),
        "APPNPClassifierCV": pprop.APPNPClassifierCV(graph, **common),
        "Bt. FP": FeaturePropagation(graph, BootstrappedFP(), device="cuda"),
        "Bt. FP on the CPU": FeaturePropagation(graph, BootstrappedFP()),
    }
    found: dict[str, NDArray[Any]] = {}
    for name, model in models.items():
        begin = time.perf_counter()
        model.fit(split.train, labels[split.train], stopping=(split.stopping, labels[split.stopping]))
        found[name] = np.asarray(model.predict(split.evaluation))
        accuracy = 100 * float((found[name] == labels[split.evaluation]).mean())
        print(f"    {name}: {accuracy:.2f} %, {time.perf_counter() - begin:.1f} s", flush=True)
    same = float((found["Bt. FP"] == found["Bt. FP on the CPU"]).mean())
    say(same == 1, f"Bt. FP: {100 * same:.2f} % of the labels are those of the CPU")


if __name__ == "__main__":
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Cora-ML")
    cora_ml = pprop.load_dataset("cora_ml")
    solvers(cora_ml)
    estimators(cora_ml)
