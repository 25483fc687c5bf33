"""Claim: how fast ten power steps are over an RMAT graph, 16 columns in float32.

- on two cores, 16 million entries: >= 3 times as fast as scipy, 5 times as torch's CSR product and as PyTorch
  Geometric's layer, any reordering counted;
- on one H200, 132 million entries: >= 3 times as fast as torch's CSR product (cuSPARSE), 30 times as PyTorch Geometric,
  and within 1.5 times of entries x columns x 4 bytes a step at the speed of a copy;
- with 4 bytes an entry and 12 bytes a node for the structure, and three states.

    python benchmarks/propagate.py                                    # two cores, five minutes
    python benchmarks/propagate.py --device cuda --entries 132e6
    python benchmarks/propagate.py --device cuda --entries 132e6 --tune --peers    # launch shapes

All contestants take turns in one process; ratios are formed turn by turn. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from typing import TYPE_CHECKING, Any

from _measure import describe_machine, interleave, percentiles, ratios, use_threads, warn_if_busy

if TYPE_CHECKING:  # nothing heavy is imported before the number of threads is set
    from collections.abc import Callable

    from torch import Tensor

    from pprop.graph import Transition

GOALS = {"cpu": {"scipy": 3, "torch_csr": 5, "pyg": 5}, "cuda": {"torch_csr": 3, "pyg": 30}}
MOST_OVER_FLOOR = 1.5
SHAPES: list[dict[str, Any]] = [
    {},
    {"middle_entries": 32},
    {"middle_entries": 128, "middle_warps": 2},
    {"middle_entries": 128, "middle_warps": 4},
    {"piece": 1024},
    {"piece": 8192},
    {"piece_entries": 128},
    {"piece_entries": 512, "piece_warps": 8},
    {"short": 16},
    {"short": 64},
    {"short_unroll": 2},
    {"short_unroll": 8},
    {"short_rows": 32},
    {"short_rows": 128},
]
"""Launch shapes that ``--tune`` tries, as changes of the default."""


def main() -> None:
    """Measure; print a table on standard error, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--entries", type=float, default=16e6, help="self-loops included")
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--order", choices=["shuffled", "generator"], default="shuffled", help="of the nodes' numbers")
    parser.add_argument("--threads", type=int, help="CPU threads and cores.  [default: 2; all with --device cuda]")
    parser.add_argument("--blocks", type=int, default=5, help="turns of every contestant")
    parser.add_argument("--peers", nargs="*", help="scipy, torch_csr, pyg, pyg_csr.  [default: all; no scipy on a GPU]")
    parser.add_argument(
        "--direct", action="store_true", help="the kernels for large graphs, whatever the backend chose"
    )
    parser.add_argument("--tune", action="store_true", help="time launch shapes of the GPU kernels too")
    arguments = parser.parse_args()
    warn_if_busy()
    on_cpu = arguments.device == "cpu"
    use_threads(2 if arguments.threads is None and on_cpu else arguments.threads)
    report = measure(arguments)
    print(json.dumps(report))


def say(text: str) -> None:
    """Tell people on standard error."""
    print(text, file=sys.stderr, flush=True)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the whole report."""
    import torch

    from _large import PEERS, Propagation, bind_ours, copy_bandwidth, milliseconds
    from _rmat import rmat, sym_transition

    device, alpha, steps = arguments.device, arguments.alpha, arguments.steps
    transition = sym_transition(rmat(int(arguments.entries), shuffle=arguments.order == "shuffled", device=device))
    if device != "cpu":
        torch.cuda.empty_cache()
    n, entries = transition.n_nodes, len(transition.indices)
    say(f"RMAT, {arguments.order} order: {n} nodes, {entries} entries, {arguments.columns} columns, {steps} steps")
    generator = torch.Generator(device).manual_seed(1)
    H = torch.randn(n, arguments.columns, generator=generator, device=device)
    bandwidth = copy_bandwidth(device)
    memory = measure_memory(transition, H, arguments)
    ours = bind_ours(transition, alpha, steps, device, direct=arguments.direct)

    def propagate(H: Tensor) -> Tensor:
        return ours.forward(H[None], None)[0]

    contestants: dict[str, Propagation] = {"pprop": propagate}
    names = arguments.peers if arguments.peers is not None else [p for p in PEERS if device == "cpu" or p != "scipy"]
    value = contestants["pprop"](H)
    differences: dict[str, float | str] = {}
    for name in names:
        try:
            bound = PEERS[name](transition, alpha, steps, device)
            with torch.no_grad():
                other = bound(H)
        except (ImportError, RuntimeError) as error:  # a peer that is absent or does not fit is named, not hidden
            differences[name] = f"{type(error).__name__}: {error}"
            say(f"{name}: {differences[name]}")
            continue
        differences[name] = float((other - value).abs().max() / value.abs().max())
        contestants[name] = bound
        del other
    del value
    gc.collect()

    def timed(name: str) -> float:
        with torch.no_grad():
            return milliseconds(lambda: contestants[name](H), device, 1 if device == "cpu" or "pyg" in name else 5)

    measured = interleave({name: (lambda name=name: timed(name)) for name in contestants}, arguments.blocks)
    floor = 1000 * entries * arguments.columns * 4 * steps / bandwidth
    once = 1000 * steps * (4 * entries + 16 * n + 3 * 4 * n * arguments.columns) / bandwidth
    bound: Any = getattr(ours, "own", ours)  # those of the CPU compute on arrays, behind an adapter
    report: dict[str, Any] = {
        "benchmark": "propagate",
        "device": device,
        "machine": describe_machine(device),
        "graph": {"nodes": n, "entries": entries, "order": arguments.order},
        "columns": arguments.columns,
        "steps": steps,
        "kernels": type(bound).__module__ + "." + type(bound).__name__,
        "ms": {name: percentiles(values) for name, values in measured.items()},
        "ratios": ratios(measured),
        "goals": GOALS[device],
        "ns_per_entry_and_step": float(f"{1e6 * percentiles(measured['pprop'])['p50'] / entries / steps:.4g}"),
        "copy_gb_s": round(bandwidth / 1e9, 1),
        "floor_ms": {"gathers_at_copy_speed": round(floor, 2), "everything_read_once": round(once, 2)},
        "over_floor": float(f"{percentiles(measured['pprop'])['p50'] / floor:.3g}"),
        "largest_difference": differences,
        "memory": memory,
    }
    if device != "cpu":
        report["reordering_ms"] = time_reordering(transition, H)
        whole = [one + report["reordering_ms"] for one in measured["pprop"]]
        report["ratios_reordering_counted"] = ratios({**measured, "pprop": whole})
        report["most_over_floor"] = MOST_OVER_FLOOR
    if arguments.tune:
        report["kernels_ms"] = kernel_times(lambda: propagate(H))
        report["shapes_ms"] = tune(transition, H, arguments)
    for name, row in report["ms"].items():
        ratio = report["ratios"].get(name, {}).get("p50", 1.0)
        say(f"{name:>10} {row['p50']:10.2f} ms  (p20 {row['p20']:.2f}, p80 {row['p80']:.2f})   {ratio:6.2f} x")
    say(f"floor {floor:.2f} ms at {bandwidth / 1e9:.0f} GB/s: {report['over_floor']} times; memory {memory}")
    return report


def measure_memory(transition: Transition, H: Tensor, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the bytes of one propagation beside the claim: 4 an entry, 12 a node, three states.

    On the CPU the structure is the transition's own and H the caller's; the rest is the growth of the resident memory.
    On the GPU everything is what torch's allocator held, H included.
    """
    import torch

    from _large import bind_ours, peak_resident

    device, state = arguments.device, 4 * H.numel()
    n, entries = transition.n_nodes, len(transition.indices)
    ours = bind_ours(transition, arguments.alpha, arguments.steps, device, direct=arguments.direct)

    def apply() -> None:
        ours.forward(H[None], None)

    if device == "cpu":
        small = torch.zeros(1, 32, arguments.columns)  # compile first: the compiler takes memory too
        compile_for(arguments, small)
        structure = transition.indptr.nbytes + transition.indices.nbytes
        growth, _ = peak_resident(apply)
        total, bind_peak = structure + growth + state, None
    else:
        gc.collect()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated() - state
        torch.cuda.reset_peak_memory_stats()
        apply()
        bind_peak = torch.cuda.max_memory_allocated() - before
        torch.cuda.reset_peak_memory_stats()
        apply()
        torch.cuda.synchronize()
        total = torch.cuda.max_memory_allocated() - before
    claim = 4 * entries + 12 * n + 3 * state
    return {
        "bytes": int(total),
        "claim": claim,
        "over_claim": float(f"{total / claim:.4g}"),
        "states": 3,
        "bytes_of_a_state": state,
        "bind_peak": bind_peak,
        "transition_scales": transition.row_scale.nbytes
        + (0 if transition.column_scale is transition.row_scale else transition.column_scale.nbytes),
    }


def compile_for(arguments: argparse.Namespace, small: Tensor) -> None:
    """Apply the same kernels to a ring of a few nodes."""
    import numpy as np

    from _large import bind_ours
    from pprop.graph import Transition

    n = small.shape[1]
    neighbours, scale = np.roll(np.arange(n, dtype=np.int32), 1), np.ones(n)
    ring = Transition(np.arange(n + 1), neighbours, None, scale, scale, symmetric=False)
    bind_ours(ring, arguments.alpha, arguments.steps, arguments.device, direct=True).forward(small, None)


def time_reordering(transition: Transition, H: Tensor) -> float:
    """Return the milliseconds in which the GPU numbers the nodes of a matrix anew that already lies on it."""
    import torch

    from _large import milliseconds
    from pprop.kernels.triton_gpu.large_steps import Renumbered
    from pprop.kernels.triton_gpu.launch import LargeTuning

    scale = torch.from_numpy(transition.row_scale).to(H)
    given = [torch.from_numpy(array).to(H.device) for array in (transition.indptr, transition.indices)]

    def renumber() -> None:
        Renumbered(given[0], given[1], None, (scale, scale), LargeTuning())

    renumber()
    times = sorted(milliseconds(renumber, "cuda") for _ in range(5))
    return float(f"{times[2]:.4g}")


def kernel_times(call: Callable[[], object]) -> dict[str, float]:
    """Return the milliseconds of every GPU kernel in one call."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
    averages: Any = profiler.key_averages()
    times: dict[str, float] = {one.key: round(one.device_time_total / 1000, 3) for one in averages}
    return {name: times[name] for name in sorted(times, key=lambda name: -times[name])[:12]}


def tune(transition: Transition, H: Tensor, arguments: argparse.Namespace) -> dict[str, float | None]:
    """Return the milliseconds of every launch shape, the best of three."""
    from _large import large_steps, milliseconds

    found: dict[str, float | None] = {}
    for shape in SHAPES:
        name = ", ".join(f"{key}={value!r}" for key, value in shape.items()) or "default"
        try:
            steps = large_steps(transition, arguments.alpha, arguments.steps, arguments.device, **shape)
            steps.forward(H[None], None)
            times = [milliseconds(lambda one=steps: one.forward(H[None], None), arguments.device) for _ in range(3)]
            found[name] = float(f"{min(times):.4g}")
        except Exception as error:  # a shape that does not fit is no reason to lose the others
            found[name] = None
            say(f"{name}: {type(error).__name__}")
            continue
        say(f"{min(times):10.2f} ms  {name}")
    return found


if __name__ == "__main__":
    main()
