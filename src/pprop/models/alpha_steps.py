"""Power steps whose teleport probability differs from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels import Draw, Kernels
from pprop.propagation.solvers import LinearMap

__all__ = ["AlphaSteps"]


@final
class AlphaSteps(LinearMap):
    """K power steps of R runs, each with an alpha of its own.

        Z_r^(0) = H_r,    Z_r^(k+1) = (1 - alpha_r) drop_k(T) Z_r^(k) + alpha_r H_r.

    A backend's power steps have one alpha for all runs. Here each step is a product of its own with the bare matrix, and
    the teleport is added between the products. Step k of K in epoch e has the mask number e K + k of the entry, as
    APPNP's has (``docs/randomness.md``), so that a run has the masks that it would have alone.

    Parameters
    ----------
    transition
        T.
    alphas
        One teleport probability per run.
    steps
        K.
    kernels
        The backend.
    device
        Where the predictions will be.

    Examples
    --------
    Over a single edge, one step mixes a node with its neighbour, by as much as the run's alpha leaves.

    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> from pprop.kernels import choose_backend
    >>> T = transition_matrix(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])), self_loops=False)
    >>> kernels = choose_backend("auto", "cpu", "example").kernels
    >>> steps = AlphaSteps(T, [0.25, 1.0], 1, kernels)
    >>> steps.forward(torch.tensor([[[1.0], [0.0]], [[1.0], [0.0]]]), None).flatten().tolist()
    [0.25, 0.75, 1.0, 0.0]
    """

    def __init__(
        self,
        transition: Transition,
        alphas: Sequence[float],
        steps: int,
        kernels: Kernels,
        device: torch.device | None = None,
    ) -> None:
        self._product = kernels.steps(transition, 0.0, 1)
        self._steps = self.matrix_products = steps
        exact = torch.tensor(list(alphas), dtype=torch.float64)[:, None, None]
        self._teleport, self._rest = exact.float().to(device), (1 - exact).float().to(device)  # shape: (R, 1, 1)

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        state, teleported = predictions.clone(), self._teleport * predictions
        for step in range(self._steps):
            state = self._rest * self._product.forward(state.contiguous(), self._at(draw, step)) + teleported
        return state

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        # H enters every step with weight alpha, and once more as the start: dH = alpha (g_1 + ... + g_K) + g_0
        total = torch.zeros_like(gradient)
        for step in reversed(range(self._steps)):
            total = total + self._teleport * gradient
            gradient = self._rest * self._product.adjoint(gradient.contiguous(), self._at(draw, step))
        return total + gradient

    def keep(self, slots: Tensor) -> None:
        """Go on with some of the runs only, given as positions."""
        self._teleport, self._rest = self._teleport[slots], self._rest[slots]

    def _at(self, draw: Draw | None, step: int) -> Draw | None:
        """Return the draw of one step: to a single product, an epoch is one step."""
        return None if draw is None else Draw(draw.seeds, draw.epoch * self._steps + step, draw.probability)
