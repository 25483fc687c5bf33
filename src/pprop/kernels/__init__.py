"""The hot loops: one contract, several backends, the same random masks in all of them."""

from pprop.kernels.contract import EdgeAttention, FeatureProduct, Kernels, LinearMap, RowPropagation, StepPropagation
from pprop.kernels.random_bits import Draw
from pprop.kernels.registry import BACKENDS, Backend, choose_backend

__all__ = [
    "BACKENDS",
    "Backend",
    "Draw",
    "EdgeAttention",
    "FeatureProduct",
    "Kernels",
    "LinearMap",
    "RowPropagation",
    "StepPropagation",
    "choose_backend",
]
