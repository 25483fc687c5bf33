"""Work on a few thousand nodes beside processes that never rest: threads that wait for one another leave the cores alone.

Processor time shows it on any machine, however busy: a step of a module with two threads takes 1.1 to 1.5 times one thread's
where waiting threads sleep, and 3 to 4 times where they spin. `benchmarks/busy.py` measures the time that passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pprop._process import usable_cores

# pprop comes before torch, whose waiting threads then sleep. The loops begin once all is loaded and compiled.
WORK = """
import pprop

import json, subprocess, sys, time
import numba, numpy as np, scipy.sparse as sp, torch

n, rng = 3000, np.random.default_rng(0)
one_way = sp.random_array((n, n), density=4.5 / n, rng=rng)
graph = pprop.Graph.from_scipy(sp.csr_array(((one_way + one_way.T) > 0).astype(float)))
layer, inputs, predictions = pprop.Propagation(graph, alpha=0.1), torch.randn(n, 64), torch.randn(n, 4)
network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.Adam(network.parameters())

def step():
    optimizer.zero_grad()
    layer(network(inputs)).square().mean().backward()
    optimizer.step()

def seconds(function, threads):
    numba.set_num_threads(threads)
    torch.set_num_threads(threads)
    for _ in range(3):
        function()
    begin = time.process_time()
    for _ in range(20):
        function()
    return time.process_time() - begin

works = {"propagation": lambda: layer(predictions), "step of a module": step}
for work in works.values():
    seconds(work, 2)
endless = "import os; parent = os.getppid()\\nwhile os.getppid() == parent: pass"  # but no longer than this process
loops = [subprocess.Popen([sys.executable, "-c", endless]) for _ in range(4)]
try:
    print(json.dumps({name: [seconds(work, 2) / seconds(work, 1) for _ in range(3)] for name, work in works.items()}))
    assert all(loop.poll() is None for loop in loops)
finally:
    for loop in loops:
        loop.kill()
"""


@pytest.mark.slow
@pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")
def test_beside_four_busy_loops_two_threads_take_at_most_twice_the_processor_time_of_one():
    """In the median of three turns."""
    names = ("NUMBA", "OMP", "OPENBLAS", "MKL")
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {f"{name}_NUM_THREADS": "2" for name in names}
    command = [sys.executable, "-c", WORK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=900)
    for work, ratios in json.loads(done.stdout).items():
        assert sorted(ratios)[1] <= 2.0, (
            f"{work}: {', '.join(f'{ratio:.1f}' for ratio in ratios)} times one thread's processor time"
        )
