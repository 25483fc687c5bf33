"""A machine with a GPU may lack the packages of the CPU and the command line: what trains must not import them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import importlib.machinery, sys
absent = {"llvmlite", "numba", "pooch", "pydantic", "rich", "typer"}
find = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None: None if name.partition(".")[0] in absent else find(name, path, target)
)
import numpy as np, pprop, scipy.sparse as sp
from pprop.kernels import choose_backend
import pprop.kernels.triton_gpu.backend
path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
graph = pprop.Graph.from_scipy(path, features=np.eye(5), labels=[0, 0, 0, 1, 1])
split = pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
trained = pprop.train(pprop.APPNP(hidden=4), graph, split, stopping=pprop.Stopping(max_epochs=2))
assert pprop.load_dataset("citeseer").n_nodes == 2110
print(trained.backend, *sorted(absent & set(sys.modules)))
"""


def test_training_needs_neither_numba_nor_the_packages_of_the_command_line() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env={**os.environ})
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["reference"]
