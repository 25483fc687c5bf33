"""What backends compute on, numpy arrays or tensors, and the few operations that differ in name between the two.

A program that has a tensor has imported torch; nothing here imports it.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A numpy array, or a tensor where the backend computes on tensors. Which of them is known where kernels are chosen.
Array = Any

_FEW = 2**16  # numbers up to which numpy's own test takes less than a call of a kernel
_BLOCK = 2**14  # numbers that one thread looks at together

# The distance from 1 to the next number of a float type, by its name.
EPS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}


def is_tensor(value: object) -> bool:
    """Whether something is a torch tensor.

    >>> is_tensor(np.ones(2))
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def module_of(array: Array) -> Any:
    """Return the module whose functions compute on an array: numpy or torch.

    Only functions that both have under one name, with the arguments `axis` and `keepdims`, are called by way of it.

    >>> module_of(np.ones(2)) is np
    True
    """
    return sys.modules["torch"] if is_tensor(array) else np


def device_of(array: Array) -> str:
    """Return the type of the device that an array is on, as torch names it.

    >>> device_of(np.ones(2))
    'cpu'
    """
    return array.device.type if is_tensor(array) else "cpu"


def type_name(array: Array) -> str:
    """Return the name of the type of an array's numbers, or of a type of numpy or torch.

    >>> type_name(np.ones(2, np.float32)), type_name(np.dtype(np.float64))
    ('float32', 'float64')
    """
    return str(getattr(array, "dtype", array)).removeprefix("torch.")


def cast(array: Array, name: str) -> Array:
    """Return an array in the type with this name: the array itself if it has that type.

    >>> cast(np.ones(2, np.float32), "float64").dtype
    dtype('float64')
    """
    if is_tensor(array):
        return array.to(getattr(sys.modules["torch"], name))
    return array.astype(name, copy=False)


def on_host(array: Array) -> NDArray[Any]:
    """Return a numpy array of an array or tensor: a tensor of the CPU shares its memory.

    >>> on_host(np.ones(2))
    array([1., 1.])
    """
    return array.detach().cpu().numpy() if is_tensor(array) else np.asarray(array)


def beside(array: NDArray[Any], other: Array) -> Array:
    """Return a numpy array as another array is: an array, or a tensor on the same device.

    >>> beside(np.zeros(1), np.ones(2))
    array([0.])
    """
    return sys.modules["torch"].from_numpy(array).to(other.device) if is_tensor(other) else array


def empty_like(shape: tuple[int, ...], other: Array) -> Array:
    """Return an array of a shape, in the type and on the device of another; its numbers are not set.

    >>> empty_like((2, 3), np.ones(2, np.float32)).shape
    (2, 3)
    """
    return other.new_empty(shape) if is_tensor(other) else np.empty(shape, other.dtype)


def copy_of(array: Array) -> Array:
    """Return a copy of an array.

    >>> copy_of(np.ones(2))
    array([1., 1.])
    """
    return array.clone() if is_tensor(array) else array.copy()


def all_finite(values: Array) -> bool:
    """Whether no number of an array is NaN or infinite: in one pass, without an array of answers.

    >>> all_finite(np.ones(2)), all_finite(np.array([np.inf]))
    (True, False)
    """
    if is_tensor(values):
        torch: Any = sys.modules["torch"]
        ends = torch.stack(torch.aminmax(values.detach())) if values.numel() else values  # one wait for a device
        return all(math.isfinite(float(end)) for end in ends.flatten().cpu())
    if values.size < _FEW:
        return bool(np.isfinite(values).all())
    from pprop.kernels.numba_cpu.dense import find_strange

    flat = np.ascontiguousarray(values).reshape(-1)
    strange = np.zeros(-(-len(flat) // _BLOCK), np.bool_)
    find_strange(flat, _BLOCK, strange)
    return not strange.any()
