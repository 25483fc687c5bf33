"""Which backends there are, the one place that chooses among them, and the kind of CPU they are compiled for."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import platform
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, final

from numpy.typing import NDArray

from pprop._errors import InputError, MissingDependencyError
from pprop._validate import check_choice
from pprop.kernels.arrays import Array
from pprop.kernels.contract import Kernels


@final
@dataclass(frozen=True)
class Backend:
    """Description of a backend; its code is loaded when `kernels` is first read.

    Attributes
    ----------
    name
        What the ``backend=`` argument of every function takes.
    devices
        Torch device types it computes on.
    requires
        Package it needs.
    install
        The command that installs that package.
    summary
        One line for people.
    implementation
        The module and the class of its operations.
    on_arrays
        Whether its own kernels compute on numpy arrays, and not on tensors.
    interpreter
        Environment variable that, set to 1 before the start, has the backend interpreted on CPU tensors, for tests.

    Examples
    --------
    >>> [backend.name for backend in BACKENDS]
    ['numba', 'triton', 'reference']
    """

    name: str
    devices: tuple[str, ...]
    requires: str
    install: str
    summary: str
    implementation: str
    on_arrays: bool = False
    interpreter: str = ""

    @property
    def available(self) -> bool:
        """Whether the package it needs is installed."""
        return importlib.util.find_spec(self.requires) is not None

    def computes_on(self, device: str) -> bool:
        """Whether it computes on a torch device type, interpreted or not."""
        interpreted = bool(self.interpreter) and os.environ.get(self.interpreter) == "1"
        return device in self.devices or (device == "cpu" and interpreted)

    @property
    def kernels(self) -> Kernels:
        """The backend's operations on tensors, as models and their training have them."""
        return _on_tensors(self) if self.on_arrays else _load(self)

    @property
    def own_kernels(self) -> Kernels:
        """The backend's operations on what it computes on: arrays or tensors."""
        return _load(self)

    def own(self, array: NDArray[Any]) -> Array:
        """Return an array as `own_kernels` take it; a tensor shares its memory."""
        if self.on_arrays:
            return array
        from pprop.kernels.tensors import tensor_of

        return tensor_of(array)


@cache
def _load(backend: Backend) -> Kernels:
    if not backend.available:
        raise MissingDependencyError(
            f"The {backend.name!r} backend needs {backend.requires!r}. Install it with: {backend.install}"
        )
    _one_torch_thread_in_children()
    return pkgutil.resolve_name(backend.implementation)()


@cache
def _on_tensors(backend: Backend) -> Kernels:
    from pprop.kernels.tensors import TensorKernels

    return TensorKernels(_load(backend))


@cache
def _one_torch_thread_in_children() -> None:
    """From now on let torch compute with one thread in a forked child: it would wait for threads of its parent."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_one_torch_thread)


def _one_torch_thread() -> None:
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


# In order of preference.
BACKENDS = (
    Backend(
        name="numba",
        devices=("cpu",),
        requires="numba",
        install="pip install numba",
        summary="fixed-order CPU kernels: the same bits for any number of runs and threads",
        implementation="pprop.kernels.numba_cpu.backend:NumbaKernels",
        on_arrays=True,
    ),
    Backend(
        name="triton",
        devices=("cuda",),
        requires="triton",
        install="pip install triton",
        summary="fused GPU kernels: the whole epoch of all runs as one captured graph",
        implementation="pprop.kernels.triton_gpu.backend:TritonKernels",
        interpreter="TRITON_INTERPRET",
    ),
    Backend(
        name="reference",
        devices=("cpu", "cuda", "mps"),
        requires="torch",
        install="pip install torch",
        summary="plain torch, easy to read; the other backends are tested against it",
        implementation="pprop.kernels.reference.backend:ReferenceKernels",
    ),
)


def choose_backend(name: str, device: str, function: str) -> Backend:
    """Return the backend called `name`; ``"auto"`` is the first one, in order of preference, that fits the device.

    A backend that is named is never replaced by another: if it does not fit or is not installed, that is an error.

    Examples
    --------
    >>> choose_backend("auto", "cpu", "propagate").name
    'numba'
    """
    check_choice(name, "backend", function, ["auto", *(backend.name for backend in BACKENDS)])
    if name == "auto":
        fitting_backend = next((b for b in BACKENDS if device in b.devices and b.available), None)
        if fitting_backend is None:
            raise InputError(f"No backend computes on {device!r}. Move the tensors to the CPU.")
        return fitting_backend
    backend = next(b for b in BACKENDS if b.name == name)
    if not backend.computes_on(device):
        fitting = ", ".join(repr(b.name) for b in BACKENDS if device in b.devices)
        raise InputError(
            f"The {name!r} backend computes on {' and '.join(backend.devices)}, and the tensors are on {device}. "
            f"Choose 'auto' or one of: {fitting}."
        )
    if not backend.available:
        _load(backend)
    return backend


@cache
def cpu_kind() -> str:
    """Return the architecture and LLVM's name of this CPU, such as ``"aarch64 neoverse-n1"``.

    Results of compiled kernels have the same bits on machines of one kind.

    >>> len(cpu_kind().split())
    2
    """
    from llvmlite import binding

    return f"{platform.machine()} {binding.get_host_cpu_name()}"
