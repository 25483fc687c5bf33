"""The hot loops: one contract, several backends, the same random masks in all of them."""

from pprop.kernels.contract import Draw, EdgeAttention, FeatureProduct, Kernels, RowPropagation, StepPropagation
from pprop.kernels.registry import BACKENDS, Backend, choose_backend

__all__ = [
    "BACKENDS",
    "Backend",
    "Draw",
    "EdgeAttention",
    "FeatureProduct",
    "Kernels",
    "RowPropagation",
    "StepPropagation",
    "choose_backend",
]
