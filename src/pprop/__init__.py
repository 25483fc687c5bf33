"""Predict, then propagate: node classification with personalized PageRank (PPNP and APPNP, ICLR 2019).

>>> import pprop
>>> graph = pprop.load_dataset("citeseer")
>>> graph
Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)

Names are imported when they are first used, so that ``import pprop`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pprop._version import __version__

if TYPE_CHECKING:
    from pprop._errors import (
        CapacityError,
        DatasetError,
        DivergenceError,
        FormatError,
        GraphError,
        InputError,
        MissingDependencyError,
        PpropError,
        ToleranceError,
    )
    from pprop.datasets import TEST_SEEDS, VALIDATION_SEEDS, Split, load_dataset, paper_split
    from pprop.estimators import (
        APPNPClassifier,
        APPNPClassifierCV,
        APPNPEnsembleClassifier,
        BootstrappedFPClassifier,
        Explanation,
        GATClassifier,
        GCNClassifier,
        GraphSource,
        JKClassifier,
        MLPNodeClassifier,
        NGCNClassifier,
        PPNPClassifier,
        PropagatedClassifier,
        SolvedPPNPClassifier,
        TrainingRecord,
        explain,
        live,
        load,
    )
    from pprop.graph import Graph, Recommended, read_edges, read_npz, transition_matrix, write_npz
    from pprop.models import (
        APPNP,
        GAT,
        GCN,
        JK,
        MLP,
        NGCN,
        PPNP,
        FeatureNetwork,
        Model,
        PropagationSettings,
        SolvedPPNP,
    )
    from pprop.propagation import (
        Certificate,
        CertifiedSolution,
        Chebyshev,
        ConjugateGradient,
        Contraction,
        Exact,
        Limit,
        LiveDifference,
        LiveGraph,
        LiveUpdate,
        LocalPush,
        Outcome,
        PowerIteration,
        Propagation,
        PushedRow,
        Solution,
        SparseRows,
        Statistics,
        ToleranceOutcome,
        ppr,
        propagate,
        solve,
    )
    from pprop.training import History, Stopping, Trained, run_seed, train
    from pprop.tuning import Range, Tuned, TuningTrial, tune

_HOMES = {
    "_errors": (
        "CapacityError",
        "DatasetError",
        "DivergenceError",
        "FormatError",
        "GraphError",
        "InputError",
        "MissingDependencyError",
        "PpropError",
        "ToleranceError",
    ),
    "datasets": ("TEST_SEEDS", "VALIDATION_SEEDS", "Split", "load_dataset", "paper_split"),
    "estimators": (
        "APPNPClassifier",
        "APPNPClassifierCV",
        "APPNPEnsembleClassifier",
        "BootstrappedFPClassifier",
        "Explanation",
        "GATClassifier",
        "GCNClassifier",
        "GraphSource",
        "JKClassifier",
        "MLPNodeClassifier",
        "NGCNClassifier",
        "PPNPClassifier",
        "PropagatedClassifier",
        "SolvedPPNPClassifier",
        "TrainingRecord",
        "explain",
        "live",
        "load",
    ),
    "graph": ("Graph", "Recommended", "read_edges", "read_npz", "transition_matrix", "write_npz"),
    "models": (
        "APPNP",
        "GAT",
        "GCN",
        "JK",
        "MLP",
        "NGCN",
        "PPNP",
        "FeatureNetwork",
        "Model",
        "PropagationSettings",
        "SolvedPPNP",
    ),
    "propagation": (
        "Certificate",
        "CertifiedSolution",
        "Chebyshev",
        "ConjugateGradient",
        "Contraction",
        "Exact",
        "Limit",
        "LiveDifference",
        "LiveGraph",
        "LiveUpdate",
        "LocalPush",
        "Outcome",
        "PowerIteration",
        "Propagation",
        "PushedRow",
        "Solution",
        "SparseRows",
        "Statistics",
        "ToleranceOutcome",
        "ppr",
        "propagate",
        "solve",
    ),
    "training": ("History", "Stopping", "Trained", "run_seed", "train"),
    "tuning": ("Range", "Tuned", "TuningTrial", "tune"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "JK",
    "MLP",
    "NGCN",
    "PPNP",
    "TEST_SEEDS",
    "VALIDATION_SEEDS",
    "APPNPClassifier",
    "APPNPClassifierCV",
    "APPNPEnsembleClassifier",
    "BootstrappedFPClassifier",
    "CapacityError",
    "Certificate",
    "CertifiedSolution",
    "Chebyshev",
    "ConjugateGradient",
    "Contraction",
    "DatasetError",
    "DivergenceError",
    "Exact",
    "Explanation",
    "FeatureNetwork",
    "FormatError",
    "GATClassifier",
    "GCNClassifier",
    "Graph",
    "GraphError",
    "GraphSource",
    "History",
    "InputError",
    "JKClassifier",
    "Limit",
    "LiveDifference",
    "LiveGraph",
    "LiveUpdate",
    "LocalPush",
    "MLPNodeClassifier",
    "MissingDependencyError",
    "Model",
    "NGCNClassifier",
    "Outcome",
    "PPNPClassifier",
    "PowerIteration",
    "PpropError",
    "PropagatedClassifier",
    "Propagation",
    "PropagationSettings",
    "PushedRow",
    "Range",
    "Recommended",
    "Solution",
    "SolvedPPNP",
    "SolvedPPNPClassifier",
    "SparseRows",
    "Split",
    "Statistics",
    "Stopping",
    "ToleranceError",
    "ToleranceOutcome",
    "Trained",
    "TrainingRecord",
    "Tuned",
    "TuningTrial",
    "__version__",
    "explain",
    "live",
    "load",
    "load_dataset",
    "paper_split",
    "ppr",
    "propagate",
    "read_edges",
    "read_npz",
    "run_seed",
    "solve",
    "train",
    "transition_matrix",
    "tune",
    "write_npz",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'pprop' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"pprop.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
