"""Power steps with an alpha per run, against dense matrices and against the backend's own power steps."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from pprop.graph import transition_matrix
from pprop.kernels import BACKENDS, Draw
from pprop.models.alpha_steps import AlphaSteps

ALPHAS = [0.1, 0.7]
SEEDS = [11, -4]
KERNELS = {backend.name: backend.kernels for backend in BACKENDS if backend.available and "cpu" in backend.devices}


def polynomial(dense: Any, alpha: float, steps: int, seed: int | None, epoch: int) -> Tensor:
    """The matrix that takes H to Z, with the masks of docs/randomness.md."""
    identity = torch.eye(len(dense.A_hat), dtype=torch.float64)
    matrix = identity
    for step in range(steps):
        matrix = (1 - alpha) * dense.matrix(seed, epoch * steps + step, 0.5) @ matrix + alpha * identity
    return matrix


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("epoch", [None, 0, 11])
def test_each_run_has_its_own_alpha_and_the_masks_of_appnp(dense: Any, backend: str, steps: int, epoch: int | None):
    rng = torch.Generator().manual_seed(1)
    n = len(dense.A_hat)
    H, gradient = (torch.randn(2, n, 3, generator=rng) for _ in range(2))
    draw = None if epoch is None else Draw(torch.tensor(SEEDS), epoch, 0.5)
    map_ = AlphaSteps(transition_matrix(dense.graph), ALPHAS, steps, KERNELS[backend])
    Z, back = map_.forward(H, draw), map_.adjoint(gradient, draw)
    for run, alpha in enumerate(ALPHAS):
        matrix = polynomial(dense, alpha, steps, None if epoch is None else SEEDS[run], epoch or 0)
        torch.testing.assert_close(Z[run].double(), matrix @ H[run].double(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(back[run].double(), matrix.T @ gradient[run].double(), rtol=1e-5, atol=1e-5)


def test_runs_that_leave_take_their_alpha_with_them(dense: Any):
    H = torch.randn(3, len(dense.A_hat), 2, generator=torch.Generator().manual_seed(1))
    transition, kernels = transition_matrix(dense.graph), KERNELS["numba"]
    map_ = AlphaSteps(transition, [0.1, 0.4, 0.9], 2, kernels)
    map_.keep(torch.tensor([0, 2]))
    expected = torch.cat([kernels.steps(transition, a, 2).forward(H[r : r + 1], None) for a, r in ((0.1, 0), (0.9, 2))])
    torch.testing.assert_close(map_.forward(H[[0, 2]], None), expected)


@pytest.mark.skipif(find_spec("triton") is None, reason="the GPU backend needs triton")
def test_a_gpu_draws_the_same_masks_with_the_epoch_on_the_device(dense: Any):
    triton = next(backend for backend in BACKENDS if backend.name == "triton")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # without a GPU its kernels are interpreted
    H, gradient = (
        torch.randn(2, len(dense.A_hat), 3, generator=torch.Generator().manual_seed(k)).to(device) for k in (1, 2)
    )
    draw = Draw(torch.tensor(SEEDS, device=device), torch.tensor([5], device=device), 0.5)
    map_ = AlphaSteps(transition_matrix(dense.graph), ALPHAS, 2, triton.kernels, device)
    Z, back = map_.forward(H, draw).cpu(), map_.adjoint(gradient, draw).cpu()
    for run, alpha in enumerate(ALPHAS):
        matrix = polynomial(dense, alpha, 2, SEEDS[run], 5)
        torch.testing.assert_close(Z[run].double(), matrix @ H[run].cpu().double(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(back[run].double(), matrix.T @ gradient[run].cpu().double(), rtol=1e-5, atol=1e-5)
