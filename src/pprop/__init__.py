"""Predict, then propagate: node classification with personalized PageRank (PPNP and APPNP, ICLR 2019).

>>> import pprop
>>> graph = pprop.load_dataset("citeseer")
>>> graph
Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)

Names are imported when they are first used, so that ``import pprop`` is quick. Threads of GNU OpenMP, torch's among them, are
asked to sleep while they wait, unless ``OMP_WAIT_POLICY`` says otherwise: they read that when torch is loaded.
"""

# ruff: noqa: F403, F405  -- __all__ says which of the starred names are public
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pprop._process import wait_asleep
from pprop._version import __version__

wait_asleep()

if TYPE_CHECKING:
    from pprop._errors import *
    from pprop.datasets import *
    from pprop.estimators import *
    from pprop.graph import *
    from pprop.graph.building.build import build_graph
    from pprop.models import *
    from pprop.propagation import *
    from pprop.training import *
    from pprop.tuning import *

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "GPRGNN",
    "JK",
    "MLP",
    "NGCN",
    "PPNP",
    "TEST_SEEDS",
    "VALIDATION_SEEDS",
    "APPNPClassifier",
    "APPNPClassifierCV",
    "APPNPEnsembleClassifier",
    "APPNPRegressor",
    "AutoClassifier",
    "BootstrappedFPClassifier",
    "CapacityError",
    "Certificate",
    "CertifiedSolution",
    "Chebyshev",
    "ColumnsClassifier",
    "ColumnsRegressor",
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
    "GPRGNNClassifier",
    "Graph",
    "GraphError",
    "GraphFolder",
    "GraphSource",
    "History",
    "Homophily",
    "InputError",
    "JKClassifier",
    "LabelPropagationClassifier",
    "Limit",
    "LiveDifference",
    "LiveGraph",
    "LiveUpdate",
    "LocalPush",
    "MLPNodeClassifier",
    "MLPNodeRegressor",
    "MissingDependencyError",
    "Model",
    "NGCNClassifier",
    "Outcome",
    "PPNPClassifier",
    "PowerIteration",
    "PpropError",
    "PropagatedClassifier",
    "PropagatedFeatures",
    "PropagatedRegressor",
    "Propagation",
    "PropagationSettings",
    "PushedRow",
    "Range",
    "Recommended",
    "ResidualClassifier",
    "ResidualGNN",
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
    "build_graph",
    "explain",
    "group_split",
    "homophily",
    "live",
    "load",
    "load_dataset",
    "paper_split",
    "ppr",
    "propagate",
    "read_edges",
    "read_graph",
    "read_npz",
    "run_seed",
    "solve",
    "time_split",
    "train",
    "transition_matrix",
    "tune",
    "write_folder",
    "write_npz",
]

# From the ground up: a name is looked for where the least has to be imported first.
_LAYERS = ("_errors", "graph", "datasets", "propagation", "models", "training", "scale", "estimators", "tuning")


def __getattr__(name: str) -> object:
    if name in __all__:
        for layer in _LAYERS:
            module = import_module(f"pprop.{layer}")
            if name in getattr(module, "__all__", vars(module)):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'pprop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
