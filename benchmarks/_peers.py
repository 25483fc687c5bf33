"""The peers: the paper's APPNP in plain PyTorch (sparse COO), and with PyTorch Geometric's layer.

Both train one run the way the paper does: dropout 0.5 on the nonzeros of the features and on the hidden layer, ten power
steps with edge dropout, cross entropy on the training nodes plus the L2 penalty, one Adam step; then loss and accuracy on
the stopping nodes with dropout off. Both are written to be fast: features stay sparse wherever that is faster, indices are
sorted and marked so, Adam is torch's fused one, gradients are not made where nobody reads them, and an epoch waits for
the device once, to read the two numbers that early stopping needs.

PyTorch Geometric drops edges of what the step before has left over, so that an edge survives K steps with probability
0.5^K: not the paper's model, but the same work.
"""

from __future__ import annotations

import importlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  torch's own name for it
from scipy import sparse
from torch import Tensor, nn

import pprop
from _measure import interleave, time_epochs
from pprop.graph import transition_matrix
from pprop.kernels.contract import FeatureMatrix
from pprop.models.model import network_inputs

STEPS, DROPOUT, PENALTY, HIDDEN, RATE = 10, 0.5, 0.005, 64, 0.01


@final
@dataclass(frozen=True)
class Problem:
    """One run of APPNP: features X (n, f), transition matrix T (n, n), nodes and labels, all of the peers' own making."""

    name: str
    alpha: float
    features: FeatureMatrix
    transition: sparse.csr_array
    adjacency: sparse.csr_array
    labels: Tensor
    train: Tensor
    stopping: Tensor
    n_classes: int
    device: str


def load_problem(name: str, device: str, split_seed: int = pprop.TEST_SEEDS[0]) -> Problem:
    """Load a dataset and one of the paper's splits."""
    graph = pprop.load_dataset(name)
    split = pprop.paper_split(graph, split_seed)
    assert graph.labels is not None
    return Problem(
        name=name,
        alpha=0.1 if graph.recommended is None else graph.recommended.alpha,
        features=network_inputs(graph),
        transition=transition_matrix(graph).to_scipy().astype(np.float32),
        adjacency=graph.adjacency,
        labels=torch.tensor(graph.labels, dtype=torch.int64, device=device),
        train=torch.tensor(split.train, dtype=torch.int64, device=device),
        stopping=torch.tensor(split.stopping, dtype=torch.int64, device=device),
        n_classes=graph.n_classes,
        device=device,
    )


class Peer(ABC):
    """The part of the paper's model in which the peers do not differ."""

    def __init__(self, problem: Problem) -> None:
        torch.manual_seed(0)
        n_features = problem.features.shape[1]
        self.problem = problem
        self.first = _glorot(n_features, HIDDEN, problem.device)
        self.second = _glorot(HIDDEN, problem.n_classes, problem.device)
        self._optimizer = torch.optim.Adam([self.first, self.second], lr=RATE, fused=True)

    @abstractmethod
    def predict(self, training: bool) -> Tensor:
        """Return the propagated predictions of all nodes, shape (n, c)."""

    def epoch(self) -> tuple[float, float]:
        """Make one training step; return the loss and the accuracy on the stopping nodes after it."""
        problem = self.problem
        self._optimizer.zero_grad()
        self._loss(self.predict(training=True)[problem.train], problem.labels[problem.train]).backward()
        self._optimizer.step()
        with torch.no_grad():
            logits, labels = self.predict(training=False)[problem.stopping], problem.labels[problem.stopping]
            accuracy = (logits.argmax(dim=1) == labels).to(torch.float32).mean()
            loss, right = cast("list[float]", torch.stack([self._loss(logits, labels), accuracy]).tolist())
        return loss, right

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels) + 0.5 * PENALTY * self.first.square().sum()

    def _hidden(self, product: Tensor, training: bool) -> Tensor:
        """H = dropout(relu(X W_1)) W_2."""
        return F.dropout(F.relu(product), DROPOUT, training) @ self.second


@final
class CooPeer(Peer):
    """The paper's equations in torch's sparse COO tensors.

        Z^0 = H,   Z^(k+1) = dropout((1 - alpha) A_hat) Z^k + alpha H

    The mask is drawn afresh from the undropped matrix at every step.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        kind = "dense" if isinstance(problem.features, np.ndarray) else "coo"
        self._first_layer = _first_layer(problem.features, kind, problem.device)
        self._matrix = _Coo((1 - problem.alpha) * problem.transition, problem.device)

    def predict(self, training: bool) -> Tensor:
        state = self._hidden(self._first_layer(self.first, training), training)
        teleport = self.problem.alpha * state
        for _ in range(STEPS):
            state = _product(self._matrix.drop(training), state) + teleport
        return state


DENSE_FORM = ("dense", "index")
PYG_FORMS = (("coo", "index"), ("csr", "index"), DENSE_FORM, ("coo", "csr"))
"""(features, adjacency): sparse or dense features; an edge list with cached normalisation, or a torch CSR matrix."""
CLOSE = 1.5  # times the best time of the trial


@final
class PygPropagation:
    """PyTorch Geometric's APPNP layer on a graph.

    Parameters
    ----------
    problem
        The run.
    adjacency
        ``"index"``: `edge_index` with ``cached=True``; ``"csr"``: a normalised sparse tensor.
    """

    def __init__(self, problem: Problem, adjacency: str) -> None:
        device, layer = problem.device, _pyg_layer()
        if adjacency == "index":
            self._edges = torch.from_numpy(np.stack(problem.adjacency.nonzero()).astype(np.int64)).to(device)
            self._layer = layer(STEPS, problem.alpha, dropout=DROPOUT, cached=True, add_self_loops=True).to(device)
        else:
            self._edges = _csr(problem.transition, device)
            self._layer = layer(STEPS, problem.alpha, dropout=DROPOUT, normalize=False).to(device)

    def __call__(self, predictions: Tensor, *, training: bool) -> Tensor:
        """Return the propagated predictions, shape (n, c)."""
        self._layer.train(training)
        return self._layer(predictions, self._edges)


@final
class PygPeer(Peer):
    """PyTorch Geometric's APPNP layer behind a two-layer network.

    Parameters
    ----------
    problem
        The run.
    features
        ``"coo"``, ``"csr"`` or ``"dense"``: how the first layer reads X.
    adjacency
        As for `PygPropagation`.
    """

    def __init__(self, problem: Problem, features: str = "coo", adjacency: str = "index") -> None:
        super().__init__(problem)
        self._layer = PygPropagation(problem, adjacency)
        self._first_layer = _first_layer(problem.features, features, problem.device)

    def predict(self, training: bool) -> Tensor:
        return self._layer(self._hidden(self._first_layer(self.first, training), training), training=training)


def peer_timers(
    problem: Problem, names: Sequence[str], seconds: float
) -> tuple[dict[str, Callable[[], float]], dict[str, Any]]:
    """Return, for every peer named, a function that measures its epoch in milliseconds; and what was tried.

    ``"coo"`` is `CooPeer`, ``"pyg"`` the fastest form of `PygPeer`, ``"pyg_dense"`` the form of PyTorch Geometric's own
    examples, with dense features. All are warm. Forms that came close in a trial race again in every turn, and the
    fastest counts, so that a busy moment during the trial cannot choose a slow one.
    """
    timers: dict[str, Callable[[], float]] = {}

    def warm(peer: Peer) -> Callable[[], float]:
        peer.epoch()  # the first one normalises, allocates and selects
        return lambda: time_epochs(peer.epoch, seconds, problem.device)

    if "coo" in names:
        timers["coo"] = warm(CooPeer(problem))
    forms = PYG_FORMS if "pyg" in names else (DENSE_FORM,) if "pyg_dense" in names else ()
    candidates = {_title(*form): warm(PygPeer(problem, *form)) for form in forms}
    tried = {form: min(values) for form, values in interleave(candidates, 3).items()}
    if "pyg" in names:
        close = [timer for form, timer in candidates.items() if tried[form] <= CLOSE * min(tried.values())]
        timers["pyg"] = lambda: min(timer() for timer in close)
    if "pyg_dense" in names:
        timers["pyg_dense"] = candidates[_title(*DENSE_FORM)]
    return timers, {"pyg_forms": {form: round(ms, 2) for form, ms in tried.items()}} if tried else {}


def _title(features: str, adjacency: str) -> str:
    return f"{features} features, {'edge list' if adjacency == 'index' else 'CSR adjacency'}"


@final
class _Coo:
    """A constant sparse matrix whose entries can be dropped. Sorted, and marked so: torch need not sort it again."""

    def __init__(self, matrix: sparse.csr_array, device: str) -> None:
        ordered = matrix.tocoo()
        self._indices = torch.from_numpy(np.stack(ordered.coords).astype(np.int64)).to(device)
        self._values = torch.from_numpy(ordered.data.astype(np.float32)).to(device)
        self._shape = matrix.shape
        self._whole = self._with(self._values)

    def drop(self, training: bool) -> Tensor:
        return self._with(F.dropout(self._values, DROPOUT)) if training else self._whole

    def _with(self, values: Tensor) -> Tensor:
        return torch.sparse_coo_tensor(self._indices, values, self._shape, is_coalesced=True, check_invariants=False)


def _first_layer(matrix: FeatureMatrix, kind: str, device: str) -> Callable[[Tensor, bool], Tensor]:
    """Return the function (W_1, training) -> dropout(X) W_1."""
    if not isinstance(matrix, sparse.csr_array) or kind == "dense":
        dense = torch.from_numpy(np.array(matrix.toarray())).to(device)
        return lambda weights, training: F.dropout(dense, DROPOUT, training) @ weights
    if kind == "coo":
        coo = _Coo(matrix, device)
        return lambda weights, training: _product(coo.drop(training), weights)
    csr = _csr(matrix, device)
    pointers, columns, values = csr.crow_indices(), csr.col_indices(), csr.values()

    def product(weights: Tensor, training: bool) -> Tensor:
        kept = values if not training else F.dropout(values, DROPOUT)
        return torch.sparse_csr_tensor(pointers, columns, kept, csr.shape, check_invariants=False) @ weights

    return product


def _csr(matrix: sparse.csr_array, device: str) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls CSR a beta feature
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            matrix.shape,
            device=device,
        )


def _product(matrix: Tensor, dense: Tensor) -> Tensor:
    return cast("Tensor", torch.sparse.mm(matrix, dense))


def _glorot(rows: int, columns: int, device: str) -> Tensor:
    return nn.init.xavier_uniform_(torch.empty(rows, columns)).to(device).requires_grad_()


def _pyg_layer() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns on import
            return importlib.import_module("torch_geometric.nn").APPNP
    except ImportError as error:
        raise SystemExit('The peer needs PyTorch Geometric: pip install "pprop[bench]"') from error
