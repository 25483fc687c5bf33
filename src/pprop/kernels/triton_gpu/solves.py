"""Solves to a tolerance without waiting for the device at every look.

A step is one launch on graphs whose rows are dealt out in tiles, three for conjugate gradients; on larger ones the product
is made first, by its own launches. Steps find out on the device that they are done (`solve_steps`), so that the host
launches all that are expected and looks once, or a few times. From the second solve of a shape on, a few steps are one CUDA
graph, which is replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.kernels.capture import capture
from pprop.kernels.contract import StepPropagation
from pprop.kernels.product_solves import column_norms, measure_on
from pprop.kernels.solves import LOOK_EVERY, Limits, Solved, Solves, System
from pprop.kernels.triton_gpu import solve_steps
from pprop.kernels.triton_gpu.launch import power_of_two
from pprop.kernels.triton_gpu.plan import RowPlan, row_plan
from pprop.kernels.triton_gpu.solve_steps import descend, product_step, turn

_NORMS = {"euclidean": 0, "max": 1, "sum": 2}
_COLUMNS = 32  # of a program
_UNROLL = 4  # entries of a row in flight
_LIMIT = 8  # iterations of a row before it is spread over more lanes: a step waits for its longest row
_PROGRAMS = 1024  # at most, so that few parts are left to add up
_KEPT = 2**22  # numbers of a state, up to which buffers and CUDA graphs of a shape are kept for the next solve
_SHAPES = 4  # of which they are kept at the same time
_HEAD = int(solve_steps.HEAD.value)
_DONE, _MADE = int(solve_steps.DONE.value), int(solve_steps.MADE.value)
_POWER, _CHEBYSHEV, _IMAGE = (kind.value for kind in (solve_steps.POWER, solve_steps.CHEBYSHEV, solve_steps.IMAGE))


class _Bound(NamedTuple):
    """The system on a device in one float type.

    A and (1 - alpha) S, or what makes products with S A and 1 - alpha for every node; and the measure.
    """

    matrix: RowPlan | StepPropagation
    scale: Tensor
    measure: Tensor


@final
class TritonSolves(Solves):
    """Solves on CUDA tensors of float32 or float64, and on small CPU tensors where triton is interpreted.

    Parameters
    ----------
    system
        The equation.
    bind_product
        Makes what makes products with S A, a power step without teleport, for what is too large for tiles.
    large
        Whether that is the whole graph, and not only states of 2^31 numbers.
    """

    def __init__(self, system: System, bind_product: Callable[[], StepPropagation], *, large: bool) -> None:
        super().__init__(system)
        self._bind_product, self._large = bind_product, large
        self._known: dict[Any, _Bound] = {}
        self._spaces: dict[Any, _Space] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: buffers with their CUDA graphs, and the lock."""
        return {**vars(self), "_spaces": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def recurrence(self, own: Tensor, start: Tensor, momentum: float, limits: Limits) -> Solved:
        with self._lock:
            space = self._space(_CHEBYSHEV if momentum else _POWER, own)
            control = space.solve(own, {0: start}, limits, momentum)
            made = int(control[_MADE])
            return space.solved((made - 1 if momentum else made) % 2, control)

    def conjugate_gradient(self, own: Tensor, start: Tensor | None, limits: Limits) -> Solved:
        with self._lock:
            space = self._space(_IMAGE, own)
            return space.solved(0, space.solve(own, {0: start, 1: own}, limits, 0.0))

    def residual(self, own: Tensor, state: Tensor) -> Tensor:
        return self.recurrence(own, state, 0.0, Limits(0.0, 1, 1)).value.sub_(state)

    def norms(self, values: Tensor) -> NDArray[np.float64]:
        return column_norms(self.system, values).cpu().numpy()

    def _space(self, kind: int, like: Tensor) -> _Space:
        stream = torch.cuda.current_stream(like.device).cuda_stream if like.device.type == "cuda" else 0
        key = kind, like.shape[1], like.dtype, like.device, stream
        space = self._spaces.pop(key, None)
        if space is None:
            with torch.inference_mode(mode=False):  # its tensors are changed outside of that mode, too
                space = _Space(kind, self.system.norm, like, self._bind(like))
        if like.numel() <= _KEPT:
            self._spaces[key] = space
            while len(self._spaces) > _SHAPES:
                del self._spaces[next(iter(self._spaces))]
        return space

    def _bind(self, like: Tensor) -> _Bound:
        n, columns = like.shape
        slots = 32 if columns <= 8 else 16
        gathers = not self._large and (n + 1) * _padded(columns) < 2**31
        key = like.device, like.dtype, slots if gathers else 0
        if key not in self._known:
            t, stay = self.system.transition, 1.0 - self.system.alpha
            measure = measure_on(self.system, like.device)
            if gathers:
                made: RowPlan | StepPropagation = row_plan(
                    t.indptr,
                    t.indices,
                    n,
                    slots=slots,
                    device=like.device,
                    unroll=_UNROLL,
                    limit=_LIMIT,
                    values=None if t.weights is None else torch.from_numpy(t.weights).to(like.dtype),
                )
                scale = torch.from_numpy(stay * t.row_scale).to(like)
            else:
                made, scale = self._bind_product(), like.new_full((n,), stay)
            self._known[key] = _Bound(made, scale, measure)
        return self._known[key]


def _padded(columns: int) -> int:
    """Return the columns of a state that is gathered from: whole programs."""
    width = min(power_of_two(columns), _COLUMNS)
    return -(-columns // width) * width


@final
class _Space:
    """Buffers of the solves of one kind and shape, and the launches that go between them.

    The states are u_k and u_(k+1) in turns, or u, r, p and the image of p. Each has a row of zeros at the end, which
    padding points to.
    """

    def __init__(self, kind: int, norm: str, like: Tensor, bound: _Bound) -> None:
        (n, self._c), self._kind, self._bound = like.shape, kind, bound
        plan = bound.matrix if isinstance(bound.matrix, RowPlan) else None
        block = min(power_of_two(self._c), _COLUMNS)
        self._n, self._width = n, self._c if plan is None else _padded(self._c)
        blocks = -(-self._c // block)
        self._rows = max(16, 1024 // block)  # of a program that gathers nothing
        self._count = -(-n // self._rows) if plan is None else plan.count
        count = max(self._count, -(-n // self._rows))
        self._own = like.new_zeros(n + 1, self._width)
        self._states = [torch.zeros_like(self._own) for _ in range(4 if kind == _IMAGE else 2)]
        self._control = torch.zeros(_HEAD + solve_steps.ROWS_OF_CONTROL * self._width, device=like.device).double()
        self._ticket = torch.zeros(1, dtype=torch.int32, device=like.device)
        parts = min(count, _PROGRAMS) * 2 * blocks * block
        self._partial = torch.zeros(parts, dtype=torch.float64, device=like.device)
        self._told = torch.zeros_like(self._control, device="cpu", pin_memory=like.device.type == "cuda")
        self._blocks, self._norm = blocks, 0 if kind == _IMAGE else _NORMS[norm]
        self._shape: dict[str, Any] = {"C": block, "P": max(16, 1024 // block), "LOOK": LOOK_EVERY}
        # a step that gathers costs next to nothing once the solve is done, a product before the step costs as ever
        self._chunk, self._slack = (LOOK_EVERY, LOOK_EVERY) if plan is not None else (2, 0)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._used, self._captures = False, like.device.type == "cuda"

    def solve(self, own: Tensor, states: dict[int, Tensor | None], limits: Limits, momentum: float) -> np.ndarray:
        """Fill the states, zero where nothing is given, and make products until it is done; return `control`."""
        self._prepare()
        cg, (n, c) = self._kind == _IMAGE, (self._n, self._c)
        told = [0.0, -1.0 if cg else 0.0, limits.near, limits.most, limits.stop, 2.0, momentum]
        self._told.numpy()[: len(told)] = told
        self._control.copy_(self._told, non_blocking=True)
        if not cg:
            self._own[:n, :c].copy_(own)
        for place, state in enumerate(self._states):
            given = states.get(place)
            if given is None:
                state.zero_()
            else:
                state[:n, :c].copy_(given)
        if cg:  # |r|^2, and the first direction
            self._descend()
        made, until = 0, limits.near + self._slack
        while True:
            made = self._advance(made, min(until, limits.most))
            control = self._control.cpu().numpy()
            if control[_DONE]:
                return control
            until = made + 2 * self._chunk

    def solved(self, place: int, control: np.ndarray) -> Solved:
        """Return how a solve ended, with a copy of one of the states."""
        rows = control[_HEAD:].reshape(-1, self._width)[:, : self._c]
        value = self._states[place][: self._n, : self._c].clone(memory_format=torch.contiguous_format)
        return Solved(value, int(control[_MADE]), rows[0].copy(), rows[1].copy())

    def _prepare(self) -> None:
        """Capture a few steps when the space is used again: the first solve has compiled them."""
        if self._used and self._captures:
            self._captures = False  # also where it is refused: then steps are launched one by one
            self._graph = capture(self._own.device, self._some_steps)
        self._used = True

    def _some_steps(self) -> None:
        for k in range(self._chunk):
            self._step(k)

    def _advance(self, made: int, until: int) -> int:
        """Make products, at least until so many are made; return how many there are, unless it was done before."""
        while made < until:
            if self._graph is None:
                self._step(made)
                made += 1
            else:
                self._graph.replay()
                made += self._chunk
        return made

    def _step(self, k: int) -> None:
        """Launch the step after k products."""
        if self._kind == _IMAGE:
            _state, _residual, direction, image = self._states
            self._multiply(direction, image)
            self._descend()
        else:
            self._multiply(self._states[k % 2], self._states[(k + 1) % 2])

    def _multiply(self, source: Tensor, out: Tensor) -> None:
        matrix, scale, measure = self._bound
        gathers = isinstance(matrix, RowPlan)
        if gathers:
            values = matrix.values
            arrived, tiles, rows, index = source, matrix.tiles, matrix.rows, matrix.index
        else:
            arrived, values, tiles, rows, index = (
                matrix.forward(source[None, : self._n], None),
                None,
                *[self._ticket] * 3,
            )
        each = -(-self._count // _PROGRAMS)
        product_step[(-(-self._count // each), self._blocks)](
            self._control, self._ticket, tiles, rows, index, scale if values is None else values, arrived, scale, measure,
            self._own, source, out, self._partial, self._n, self._count, self._width, each,
            T=matrix.slots if isinstance(matrix, RowPlan) else self._rows, U=_UNROLL, NORM=self._norm, KIND=self._kind,
            GATHER=gathers, WEIGHTS="" if values is None else "stored", num_warps=4, **self._shape,
        )  # fmt: skip

    def _descend(self) -> None:
        state, residual, direction, image = self._states
        count = -(-self._n // self._rows)
        each = -(-count // _PROGRAMS)
        grid, sizes = (-(-count // each), self._blocks), (self._n, self._width, each)
        descend[grid](
            self._control, self._ticket, self._bound.measure, state, residual, direction, image, self._partial, *sizes,
            T=self._rows, num_warps=4, **self._shape,
        )  # fmt: skip
        turn[grid](
            self._control, residual, direction, *sizes, T=self._rows, C=self._shape["C"], num_warps=4
        )  # fmt: skip
