"""Whether the modules of several runs can be trained together, by a trial with two of them, and how many at a time.

Together means stacked weights and one `torch.func.vmap` over the runs. That asks something of a module: runs that differ in
their tensors alone, a forward pass that `vmap` can follow and that changes no buffer, and no randomness but dropout. A
module that does not comply is trained one run after another, with the same results, and the note says why.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from pprop._memory import memory_limit
from pprop.models.model import Model
from pprop.models.module import module_state, node_blocks
from pprop.models.network import FeatureNetwork
from pprop.training.module_runs import OneModule, RunsRandomness, StackedModules, named_parts, run_modules, trainable
from pprop.training.task import Task

# Where runs go together. On a CPU they would share its cores, and one run alone keeps the bits it always had.
TOGETHER_ON = {"cuda"}
# Of the largest prediction: what the runs of the trial may differ in from each run alone.
_TOLERANCE = 1e-2


def runs_together(model: Model, task: Task, inputs: Tensor) -> tuple[int, str]:
    """Return how many runs of a module are trained at the same time, and a note on it for people."""
    runs = len(task.seeds)
    if runs == 1:
        return 1, "modules: 1 run"
    reason = f"runs go together only on {', '.join(sorted(TOGETHER_ON))}"
    if task.device.type in TOGETHER_ON:
        reason, each = _trial(model, task, inputs)
        if reason is None:
            limit = memory_limit(str(task.device))
            most = max(1, min(runs, limit // max(each, 1)))
            most = -(-runs // -(-runs // most))  # as many batches, of equal length
            return most, f"modules: {runs} runs, {most} together; a run takes about {each / 2**20:.0f} MiB"
    return 1, f"modules: {runs} runs one after another: {reason}"


def _trial(model: Model, task: Task, inputs: Tensor) -> tuple[str | None, int]:
    """Compute two runs alone and together; return why they cannot go together, if so, and the bytes of one run."""
    assert not isinstance(model.predictor, FeatureNetwork)
    if model.mixed_precision:
        return "torch.autocast has no effect inside torch.func.vmap", 0
    seeds, block = task.seeds[:2], node_blocks(inputs, model.block_nodes)[0]
    randomness = RunsRandomness(seeds, task.device)
    modules = run_modules(model.predictor, randomness, len(seeds), task.device, model.block_nodes)
    reason = _unlike(modules, model.predictor, task.seeds)
    alone: list[list[Tensor]] = [[], []]
    for seed, module in zip(seeds, modules, strict=True):
        twin, own = copy.deepcopy(module), RunsRandomness([seed], task.device)
        one = OneModule(twin, own, task.n_classes, mixed_precision=model.mixed_precision)
        own.begin(1)
        with torch.no_grad():
            alone[0].append(one.predict(block, training=True)[0])
            if any(not torch.equal(now, module.get_buffer(name)) for name, now in twin.named_buffers()):
                reason = reason or "its forward pass changes its buffers, as that of BatchNorm does"
            alone[1].append(one.predict(block, training=False)[0])
    if reason is not None:
        return reason, 0
    before = _allocated(task.device)
    try:
        together = StackedModules(modules, randomness, task.n_classes)
        randomness.begin(1)
        found = [together.predict(block, training=True)]
        held = _allocated(task.device) - before
        with torch.no_grad():
            found.append(together.predict(block, training=False))
    except torch.OutOfMemoryError:
        return "two of them together do not fit into memory", 0
    except Exception as error:  # whatever a module does that vmap cannot follow
        return f"torch.func cannot compute it ({_first_line(error)})", 0
    for expected, mine in zip(alone, found, strict=True):
        if not _close(torch.stack(expected), mine.detach()):
            return "together it does not predict what it predicts alone (tensors that are no parameters or buffers?)", 0
    weights = 4 * sum(parameter.numel() for parameter in trainable(modules[0]))
    # activations, as much again on the way back, gradients, moments and best weights, states of the propagation
    return None, held + 5 * weights + 4 * 12 * len(inputs) * task.n_classes


def _unlike(modules: list[nn.Module], predictor: object, seeds: tuple[int, ...]) -> str | None:
    """Return why the modules of all runs cannot be stacked, by their looks; the first of them are given."""
    first = _looks(modules[0])
    if not set(module_state(modules[0])) <= {name for name, *_ in first}:
        return "it uses a tensor under two names"
    differ = any(_looks(module) != first for module in modules[1:])
    if not isinstance(predictor, nn.Module):  # else all are copies
        for seed in seeds[len(modules) :]:
            (module,) = run_modules(
                predictor, RunsRandomness([seed], torch.device("cpu")), 1, torch.device("cpu"), None
            )
            differ = differ or _looks(module) != first
    return "the modules of the runs differ in more than the values of their tensors" if differ else None


def _looks(module: nn.Module) -> list[tuple[object, ...]]:
    """Return all of a module that runs must have in common."""
    parts: list[tuple[object, ...]] = [(name, type(part)) for name, part in named_parts(module)]
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return parts + [(name, tensor.shape, tensor.dtype, tensor.requires_grad) for name, tensor in tensors]


def _allocated(device: torch.device) -> int:
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def _close(expected: Tensor, found: Tensor) -> bool:
    expected, found = expected.nan_to_num(), found.nan_to_num()
    return bool((expected - found).abs().max() <= _TOLERANCE * expected.abs().max())


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__
