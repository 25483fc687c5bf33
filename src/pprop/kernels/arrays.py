"""What backends compute on: numpy arrays, or tensors."""

from __future__ import annotations

from typing import Any

# A numpy array, or a tensor where the backend computes on tensors. Which of them is known where kernels are chosen.
Array = Any
