"""What the paper's text claims about the graphs themselves, each as a number or a check on the real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import cg, eigsh

from pprop import settings as st
from pprop.datasets import TEST_SEEDS, paper_split
from pprop.graph import Graph, transition_matrix
from pprop.study.figures.distance import hops_from

ALPHA = 0.1
EXACT_STEPS = 300  # 0.9**300 is 2e-14: power iteration has reached the limit in float64
CLOSE = 1e-9

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Claim:
    """A claim, and what was found.

    Attributes
    ----------
    statement
        What the paper says.
    where
        On which dataset it was checked.
    found
        The number or the outcome.
    holds
        Whether it is so; None where the evidence does not decide it, or words where it cannot.

    Examples
    --------
    >>> Claim("1 + 1 = 2", "everywhere", "2", True).holds
    True
    """

    statement: str
    where: str
    found: str
    holds: bool | str | None

    @property
    def verdict(self) -> str:
        """Whether it holds, in words."""
        return (
            self.holds if isinstance(self.holds, str) else {True: "yes", False: "no", None: "not decided"}[self.holds]
        )


def model_claims() -> list[Claim]:
    """Check every claim that needs neither a graph nor training.

    >>> [claim.found for claim in model_claims()]
    ['N-GCN 320, GCN 64, GAT 64, PPNP 64']
    """
    statement = "N-GCN uses 320 hidden units, 5 times as many as GCN, GAT and PPNP (appendix)"
    units: dict[str, Any] = {
        "N-GCN": st.REPLICAS.default * st.POWERS.default * st.NGCN_WIDTH.default,
        "GCN": st.WIDTH.default,
        "GAT": st.HEADS.default * st.UNITS.default,
        "PPNP": st.HIDDEN.default,
    }
    holds = units["N-GCN"] == 320 and all(5 * units[model] == 320 for model in ("GCN", "GAT", "PPNP"))
    return [Claim(statement, "all", ", ".join(f"{model} {count}" for model, count in units.items()), holds)]


def graph_claims(graph: Graph, where: str) -> list[Claim]:
    """Check every claim that needs no training on one graph.

    Parameters
    ----------
    graph
        Undirected, connected, with features and labels, large enough for the paper's splits.
    where
        What it is called.

    Examples
    --------
    >>> from pprop.datasets import load_dataset
    >>> GRAPH_CLAIMS["The network has the same number of parameters as GCN (section 5)"](load_dataset("citeseer"))
    ('237,376 each', True)
    """
    return [Claim(statement, where, *check(graph)) for statement, check in GRAPH_CLAIMS.items()]


def _spectrum(graph: Graph) -> tuple[str, bool]:
    A_hat = transition_matrix(graph).to_scipy()
    start = np.linspace(1.0, 2.0, graph.n_nodes)  # ARPACK would draw one, and the last digits with it
    second, first = np.sort(eigsh(A_hat, k=2, which="LA", v0=start, tol=1e-7, return_eigenvectors=False))
    (last,) = eigsh(A_hat, k=1, which="SA", v0=start, tol=1e-7, return_eigenvectors=False)
    root = np.sqrt(np.diff(graph.indptr) + 1.0)
    off = np.abs(A_hat @ root - root).max() / root.max()
    holds = abs(first - 1) < 1e-6 and off < CLOSE and second < 1 - 1e-6 and last > -1 + 1e-6
    return f"largest {first:.4f}, second {second:.4f}, smallest {last:.4f}".replace("-", "\u2212"), bool(holds)


def _partial_sum(graph: Graph) -> tuple[str, bool]:
    from pprop.propagation import PowerIteration, propagate

    A_hat, H = transition_matrix(graph).to_scipy(), _predictions(graph)
    power, total = H, np.zeros_like(H)
    for i in range(10):
        total += ALPHA * (1 - ALPHA) ** i * power
        power = A_hat @ power
    total += (1 - ALPHA) ** 10 * power
    off = np.abs(propagate(graph, H, ALPHA, PowerIteration(10)) - total).max()
    return _agreement(float(off))


def _influence(graph: Graph) -> tuple[str, bool]:
    import torch

    from pprop.propagation import PowerIteration, Propagation

    nodes = _some_nodes(graph)
    columns = np.arange(len(nodes))
    H = torch.zeros(graph.n_nodes, len(nodes), dtype=torch.float64, requires_grad=True)
    # columns do not mix, so that the gradient of this one sum holds in column i how each node bears on node i of ours
    Propagation(graph, ALPHA, PowerIteration(EXACT_STEPS))(H)[nodes, columns].sum().backward()
    assert H.grad is not None
    influence, A_hat = H.grad.numpy(), transition_matrix(graph).to_scipy()
    off = np.abs(influence[nodes] - influence[nodes].T).max()
    for column, node in enumerate(nodes):
        unit = np.zeros(graph.n_nodes)
        unit[node] = 1.0
        off = max(off, np.abs(influence[:, column] - _ppr(A_hat, unit)).max())
    return _agreement(float(off))


def _limit_without_teleport(graph: Graph) -> tuple[str, bool]:
    walk = transition_matrix(graph, "row").to_scipy().T.tocsr()
    nodes = _some_nodes(graph)
    start = np.zeros((graph.n_nodes, len(nodes)))
    start[nodes, np.arange(len(nodes))] = 1.0
    where, steps = start, 0
    while _furthest_apart(where) > 0.01 and steps < 20_000:
        where, steps = walk @ where, steps + 1
    personal = start
    for _ in range(EXACT_STEPS):
        personal = (1 - ALPHA) * (walk @ personal) + ALPHA * start
    apart = _furthest_apart(personal)
    text = f"after {steps} steps, walks from {len(nodes)} roots differ by less than 1 %; with teleport, the limits differ by {apart:.0%}"
    return text, steps < 20_000 and apart > 0.01


def _largest_distance(graph: Graph) -> tuple[str, bool]:
    reach = [int(hops_from(graph, paper_split(graph, seed).train).max()) for seed in TEST_SEEDS]
    return f"{min(reach)} to {max(reach)} over the 20 test splits", min(reach) <= 10 <= max(reach)


def _parameters(graph: Graph) -> tuple[str, bool]:
    from pprop.models import GCN, FeatureNetwork

    assert graph.features is not None
    n_features = int(graph.features.shape[1])
    widths = FeatureNetwork().widths(n_features, graph.n_classes)
    ours = sum(a * b for a, b in pairwise(widths))
    gcn = sum(int(np.prod(weight.shape)) for weight in GCN().weights(n_features, graph.n_classes))
    return (f"{ours:,} each" if ours == gcn else f"{ours:,} and {gcn:,}"), ours == gcn


def _fewer_parameters(graph: Graph) -> tuple[str, bool]:
    from pprop.models import GAT, GCN, JK, NGCN, Architecture

    assert graph.features is not None
    f, c = int(graph.features.shape[1]), graph.n_classes

    def count(model: Architecture) -> int:
        return sum(int(np.prod(weight.shape)) for weight in model.weights(f, c))

    ours = count(GCN())  # the same: the claim before this one
    others = {"GCN": ours, "GAT": count(GAT()), "JK": count(JK()), "N-GCN": count(NGCN())}
    less = {"V. GCN": count(GCN(hidden=st.VANILLA_GCN_WIDTH.default)), "Bt. FP": c * (f + 1)}
    times, fewer = (", ".join(f"{name} {n / ours:.2f}" for name, n in some.items()) for some in (others, less))
    return f"times as many as APPNP: {times}; the small ones: {fewer}", all(n >= 0.99 * ours for n in others.values())


def _convergence(graph: Graph) -> tuple[str, bool]:
    A_hat, H = transition_matrix(graph).to_scipy(), _predictions(graph)
    alphas = (0.05, 0.1, 0.2, 0.5)
    steps = [_steps_to(A_hat, H, alpha, 1e-4) for alpha in alphas]
    counts = ", ".join(f"{count} (α = {alpha:g})" for alpha, count in zip(alphas, steps, strict=True))
    return f"steps to a relative error of 1e\u22124: {counts}", all(more > less for more, less in pairwise(steps))


def _random_walk_matrix(graph: Graph) -> tuple[str, bool]:
    from pprop.propagation import PowerIteration, propagate

    H = _predictions(graph)
    Z = propagate(graph, H, ALPHA, PowerIteration(EXACT_STEPS), "col", self_loops=False)
    # A D^-1 is similar to the symmetric D^-1/2 A D^-1/2, for which conjugate gradients solve the equation
    similar = transition_matrix(graph, "sym", self_loops=False).to_scipy()
    root = np.sqrt(np.diff(graph.indptr).astype(np.float64))[:, None]
    expected = root * np.column_stack([_ppr(similar, column) for column in (H / root).T])
    kept = np.abs(Z.sum(axis=0) - H.sum(axis=0)).max()
    return _agreement(max(float(np.abs(Z - expected).max()), float(kept) / graph.n_nodes))


# Checks by the statement that they check: each takes a graph and returns what was found, and whether it is so.
GRAPH_CLAIMS: dict[str, Callable[[Graph], tuple[str, bool]]] = {
    "The largest eigenvalue of Â is 1, with √d as its eigenvector, and the spectrum lies in (−1, 1] (appendix A)": _spectrum,
    "K power steps are the partial sum of appendix B": _partial_sum,
    "The influence of x on y is the entry (y, x) of the PPR matrix, which is symmetric (section 3)": _influence,
    "Without teleport the limit does not depend on the root (section 2)": _limit_without_teleport,
    "K = 10 coincides with the largest distance of a node to the training set (section 6)": _largest_distance,
    "The network has the same number of parameters as GCN (section 5)": _parameters,
    "The number of parameters is on par or lower than that of previous models (abstract), here: GCN, GAT, JK, N-GCN": _fewer_parameters,
    "A higher α converges faster (section 6)": _convergence,
    "A D⁻¹ without self-loops is another propagation matrix: solved to the same tolerance, sums kept": _random_walk_matrix,
}


def _agreement(off: float) -> tuple[str, bool]:
    """Say that two computations agree, by a bound that does not change with the machine's rounding."""
    return ("agrees to 1e\u22129" if off < CLOSE else f"off by {off:.0e}"), off < CLOSE


def _ppr(T: sparse.csr_array, h: _Floats) -> _Floats:
    """Solve (I - (1 - alpha) T) z = alpha h for a symmetric T by conjugate gradients."""
    system = sparse.eye_array(T.shape[0], format="csr") - (1 - ALPHA) * T
    result: Any = cg(system, ALPHA * h, rtol=1e-12, atol=0.0)
    return np.asarray(result[0], dtype=np.float64)


def _steps_to(T: sparse.csr_array, H: _Floats, alpha: float, tolerance: float) -> int:
    exact = H
    for _ in range(int(np.log(1e-9) / np.log1p(-alpha))):
        exact = (1 - alpha) * (T @ exact) + alpha * H
    error, steps = H - exact, 0
    while np.linalg.norm(error) > tolerance * np.linalg.norm(exact):  # Z^(k) - Z shrinks by one product a step
        error, steps = (1 - alpha) * (T @ error), steps + 1
    return steps


def _furthest_apart(columns: _Floats) -> float:
    """Return the largest distance in total variation between two distributions, given as columns."""
    return float(max(np.abs(a - b).sum() / 2 for a, b in combinations(columns.T, 2)))


def _some_nodes(graph: Graph) -> NDArray[np.int64]:
    return np.linspace(0, graph.n_nodes - 1, 5).astype(np.int64)


def _predictions(graph: Graph) -> _Floats:
    """Return predictions of any kind, shape (n, 3)."""
    return np.random.default_rng(0).standard_normal((graph.n_nodes, 3))
