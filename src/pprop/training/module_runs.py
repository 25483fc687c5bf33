"""The torch modules of R runs, and the randomness they draw: one run alone, or several stacked by `torch.func`.

Every run draws from torch's generators as they are after seeding with its own seed and the epoch, whether it is alone or one
of several, so that its masks are the same both ways on one device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, cast, final

import torch
import torch.nn.functional as F  # noqa: N812  torch's own name for it
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.overrides import TorchFunctionMode

from pprop._errors import InputError
from pprop.kernels.random_bits import MODULE, derive_seed
from pprop.models.module import call_module, checked_predictions, make_module, module_state

# Functions of torch that draw a mask, and how runs that are computed together draw theirs: one after the other.
_DROPOUTS = {F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout}
# Of one generator after another.
_States = tuple[Tensor, ...]


@final
class RunsRandomness:
    """torch's generators of the CPU and of a device, lent to one of R runs at a time and left as they were found.

    A moment is 0 for the initialisation, epoch + 1 for an epoch; see ``docs/randomness.md``.

    Examples
    --------
    >>> randomness = RunsRandomness([5, 6], torch.device("cpu"))
    >>> randomness.begin(1)
    >>> with randomness.of(1):
    ...     first = torch.rand(2)
    >>> randomness.begin(1)
    >>> with randomness.of(1):
    ...     bool((torch.rand(2) == first).all())
    True
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self._seeds, self._moment = tuple(seeds), 0
        self._generators = [torch.default_generator]
        if device.type == "cuda":
            torch.cuda.init()
            self._generators.append(torch.cuda.default_generators[device.index or 0])
        self._states: list[_States | None] = [None] * len(self._seeds)

    def begin(self, moment: int) -> None:
        """Let every run begin a moment."""
        self._moment = moment
        self._states = [None for _ in self._seeds]

    @contextmanager
    def of(self, run: int) -> Generator[None]:
        """Let one run draw in a block; it goes on where its last block of the moment ended."""
        outside, state = self._now(), self._states[run]
        try:
            if state is None:
                seed = derive_seed(self._seeds[run], MODULE, self._moment)
                for generator in self._generators:
                    generator.manual_seed(seed)
            else:
                self._set(state)
            yield
            self._states[run] = self._now()
        finally:
            self._set(outside)

    def noted(self) -> list[_States | None]:
        """Return where the runs are."""
        return self._states.copy()

    def back_to(self, noted: list[_States | None]) -> None:
        """Let the runs draw again what they drew after `noted`."""
        self._states = noted.copy()

    def keep(self, slots: Sequence[int]) -> None:
        """Go on with some of the runs."""
        self._seeds = tuple(self._seeds[slot] for slot in slots)
        self._states = [self._states[slot] for slot in slots]

    def _now(self) -> _States:
        return tuple(generator.get_state() for generator in self._generators)

    def _set(self, states: _States) -> None:
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)


class RunModules(ABC):
    """The modules of R runs in training.

    Attributes
    ----------
    parameters
        What is trained: leaves, for several runs with the runs axis first.
    first
        The first of them with two dimensions or more beside the runs, which the penalty applies to; None without one.
    """

    parameters: Sequence[Tensor]
    first: Tensor | None

    @abstractmethod
    def predict(self, block: Tensor, *, training: bool) -> Tensor:
        """Return the predictions (R, m, c) of a block of m nodes, at least in float32."""

    @abstractmethod
    def state(self) -> list[Tensor]:
        """Return the live tensors of the state in the order of the module's state dict, each with the runs axis first."""

    @abstractmethod
    def squares(self, weight: Tensor) -> Tensor:
        """Return |W|^2 of a parameter, shape (R,)."""


@final
class OneModule(RunModules):
    """The module of one run, called as it is."""

    def __init__(self, module: nn.Module, randomness: RunsRandomness, classes: int, *, mixed_precision: bool) -> None:
        self._module, self._randomness, self._classes, self._mixed = module, randomness, classes, mixed_precision
        self.parameters = trainable(module)
        self.first = next((p for p in self.parameters if p.ndim >= 2), None)

    def predict(self, block: Tensor, *, training: bool) -> Tensor:
        self._module.train(training)
        precision = torch.autocast(block.device.type, torch.bfloat16) if self._mixed else nullcontext()
        with self._randomness.of(0), precision:
            predictions = call_module(self._module, block, self._classes)
        return predictions[None]

    def state(self) -> list[Tensor]:
        return [tensor.detach()[None] for tensor in module_state(self._module).values()]

    def squares(self, weight: Tensor) -> Tensor:
        return weight.square().sum()[None]


@final
class StackedModules(RunModules):
    """The modules of several runs with their tensors stacked, computed together by `torch.func.vmap`."""

    def __init__(self, modules: Sequence[nn.Module], randomness: RunsRandomness, classes: int) -> None:
        self._module, self._randomness, self._classes = modules[0], randomness, classes
        self._tensors, self._buffers = stack_module_state(list(modules))
        for name, parameter in self._module.named_parameters():
            self._tensors[name].requires_grad_(parameter.requires_grad)
        self._names = list(module_state(self._module))
        self._choose()

    def _choose(self) -> None:
        self.parameters = [tensor for tensor in self._tensors.values() if tensor.requires_grad]
        self.first = next((p for p in self.parameters if p.ndim >= 3), None)
        self._runs = torch.arange(len(self.parameters[0]), device=self.parameters[0].device)

    def predict(self, block: Tensor, *, training: bool) -> Tensor:
        self._module.train(training)

        def of_run(tensors: dict[str, Tensor], buffers: dict[str, Tensor], run: Tensor) -> Tensor:
            with _EachRunDraws(run, self._randomness):
                return functional_call(self._module, (tensors, buffers), (block,))

        found = vmap(of_run, randomness="error")(self._tensors, self._buffers, self._runs)
        checked_predictions(found[0], len(block), self._classes, block.device)
        return found.to(torch.promote_types(found.dtype, torch.float32))

    def state(self) -> list[Tensor]:
        live = self._tensors | self._buffers
        return [live[name].detach() for name in self._names]

    def squares(self, weight: Tensor) -> Tensor:
        return weight.square().flatten(1).sum(1)

    def keep(self, slots: Tensor) -> dict[Tensor, Tensor]:
        """Go on with some of the runs; return which new parameter is part of which old one."""
        old, self._tensors = self._tensors, {
            name: tensor.detach()[slots].requires_grad_(tensor.requires_grad) for name, tensor in self._tensors.items()
        }  # fmt: skip
        self._buffers = {name: buffer[slots] for name, buffer in self._buffers.items()}
        self._choose()
        return {new: old[name] for name, new in self._tensors.items()}


@final
class _EachRunDraws(TorchFunctionMode):
    """Inside `vmap`: dropout of several runs, each by the generators of its own run."""

    def __init__(self, run: Tensor, randomness: RunsRandomness) -> None:
        super().__init__()
        self._run, self._randomness = run, randomness

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _DROPOUTS or not kwargs.get("training") or not kwargs.get("p"):
            return func(*args, **kwargs)
        (values,) = args
        function = partial(func, **kwargs | {"inplace": False})
        return cast("Tensor", _ForEachRun.apply(self._run, values, function, self._randomness))


@final
class _ForEachRun(torch.autograd.Function):
    """A function applied run by run inside `vmap`; `run` is batched even where the values are not yet."""

    @staticmethod
    def forward(run: Tensor, values: Tensor, function: Any, randomness: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise NotImplementedError("only inside vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(  # pyright: ignore[reportIncompatibleMethodOverride]
        info: Any, in_dims: Any, run: Tensor, values: Tensor, function: Callable[[Tensor], Tensor],
        randomness: RunsRandomness,
    ) -> tuple[Tensor, int]:  # fmt: skip
        axis, each = in_dims[1], list[Tensor]()
        for number in range(info.batch_size):
            with randomness.of(number):
                each.append(function(values if axis is None else values.select(axis, number)))
        return torch.stack(each), 0


def named_parts(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return a module and all modules in it, by name."""
    return list(module.named_modules())  # pyright: ignore[reportUnknownArgumentType]  torch does not tell it


def trainable(module: nn.Module) -> list[Tensor]:
    """Return the parameters of a module that are trained; refuse one without."""
    found: list[Tensor] = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not found:
        raise InputError("The predictor has no trainable parameter. Use pprop.propagate for fixed predictions.")
    return found


def run_modules(
    predictor: Any, randomness: RunsRandomness, runs: int, device: torch.device, block_nodes: int | None
) -> list[nn.Module]:
    """Make the module of every run on a device, initialised by the run's seed."""
    randomness.begin(0)
    modules: list[nn.Module] = []
    for run in range(runs):
        with randomness.of(run):
            modules.append(make_module(predictor).to(device))
    for name, part in named_parts(modules[0]):
        if block_nodes is not None and isinstance(part, nn.modules.batchnorm._BatchNorm):  # pyright: ignore[reportPrivateUsage]
            raise InputError(
                f"block_nodes={block_nodes} does not go with {type(part).__name__} ({name!r} of the predictor): its "
                "statistics would be those of a block. Use LayerNorm, or leave block_nodes out."
            )
    return modules
