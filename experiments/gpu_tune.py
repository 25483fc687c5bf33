"""Time the fused epoch of 100 runs under launch shapes: the default and some alternatives.

    PYTHONPATH=src python3 experiments/gpu_tune.py --data FOLDER --out FOLDER

Shapes are compiled first, in processes of their own. Each line is one shape on one graph: the whole epoch, replayed in
an unbroken row, and its kernels, in milliseconds. Shapes are in order of interest, and what does not fit into
``--seconds`` is left out.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from gpu_kernels import Report, make_spec, parts, replayed, replayed_in_a_row, wait_for

from pprop import Graph, load_dataset
from pprop.kernels.triton_gpu.launch import Tuning
from pprop.kernels.triton_gpu.trainer import TritonTrainer

GRAPHS = ("ms_academic", "pubmed", "cora_ml")
SHAPES: dict[str, dict[str, Any]] = {
    "default": {},
    "4 tiles of a step": {"step_tiles": 4},
    "8 tiles of a step": {"step_tiles": 8},
    "free step registers": {"step_registers": 0},
    "4 tiles, free registers": {"step_tiles": 4, "step_registers": 0},
    "2 warps": {"feature_warps": 2},
    "slices of 32": {"slice_width": 32},
    "72 registers": {"feature_registers": 72},
}
SHOWN = ("backward steps", "backward second", "backward first", "draw everything", "forward first", "forward second",
         "forward steps", "losses")  # fmt: skip


def shape_of(label: str) -> Tuning:
    return dataclasses.replace(Tuning(), **SHAPES[label])


def warm(graphs: dict[str, Graph], part: int, count: int) -> None:
    """Compile every `count`-th pair of shape and graph, from `part` on."""
    pairs = [(label, name) for label in SHAPES for name in graphs]
    for label, name in pairs[part::count]:
        try:
            TritonTrainer(make_spec(graphs[name], 2, "steps", "cuda"), shape_of(label))
        except Exception as error:  # told when it is timed
            print(label, name, error)


def time_shape(report: Report, label: str, name: str, spec: Any) -> None:
    """One line: the whole epoch and its parts."""
    try:
        trainer = TritonTrainer(spec, shape_of(label))
        trainer.clock.fill_(5)  # begins no block of masks
        took = {part: replayed(run, 5) for part, run in parts(spec, trainer).items() if part in SHOWN}
        whole = replayed_in_a_row(trainer.epoch, 32)
    except Exception as error:  # a shape that does not compile or fit is a result
        report.say(f"{name:12s} {label:26s} failed: {type(error).__name__}: {str(error)[:90]}")
        return
    words = "  ".join(f"{part} {ms:.3f}" for part, ms in took.items())
    report.say(f"{name:12s} {label:26s} WHOLE {whole:7.3f}  {words}", **{f"{name} / {label}": {"whole": whole, **took}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the graphs, if they are not where pprop looks")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "gpu-output")))
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=140.0, help="begin no shape after this time")
    parser.add_argument("--compilers", type=int, default=15, help="processes that compile; 0 compiles as it times")
    parser.add_argument("--warm", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.data:
        os.environ["PPROP_DATA"] = str(arguments.data)
    graphs = {name: load_dataset(name) for name in arguments.graphs}
    if arguments.warm:
        torch.set_num_threads(1)
        warm(graphs, *arguments.warm)
        return
    report = Report(arguments.out, "gpu_tune", arguments.seconds)
    compilers = [
        subprocess.Popen(
            [sys.executable, *sys.argv, "--warm", str(part), str(arguments.compilers)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for part in range(arguments.compilers)
    ]  # fmt: skip
    specs = {name: make_spec(graph, arguments.runs, "steps", "cuda") for name, graph in graphs.items()}
    wait_for(report, "compilers", compilers, 0.5 * arguments.seconds)
    report.say(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, {arguments.runs} runs, compiled")
    for label in SHAPES:
        for name, spec in specs.items():
            if report.late:
                report.say(f"out of time before {label!r} on {name}")
                return
            time_shape(report, label, name, spec)
            torch.cuda.empty_cache()
    report.say(f"done in {time.perf_counter() - report.begin:.0f} s")


if __name__ == "__main__":
    main()
