"""How much memory a process may take: limits of control groups from files made up here, limits of a process for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pprop._process import usable_memory

resource = pytest.importorskip("resource", reason="this system has no resource limits")

MACHINE = usable_memory(Path("/nowhere"))
V1, V2 = "4:cpu,memory:/outer/inner\n3:cpuset:/\n0::/\n", "0::/outer/inner\n"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def version_2(root: Path, place: str, limit: str, used: int, cached: int = 0) -> None:
    stat = f"anon 5\ninactive_file {cached}\nactive_file {2 * cached}\n"
    write(root / "sys/fs/cgroup" / place, memory__max=f"{limit}\n", memory__current=f"{used}\n", memory__stat=stat)


def version_1(root: Path, place: str, limit: int, used: int, cached: int = 0) -> None:
    stat = f"inactive_file 1\ntotal_inactive_file {cached}\ntotal_active_file {2 * cached}\n"
    files = {"memory__limit_in_bytes": f"{limit}\n", "memory__usage_in_bytes": f"{used}\n", "memory__stat": stat}
    write(root / "sys/fs/cgroup/memory" / place, **files)


def test_a_machine_without_limits_has_all_its_memory(tmp_path: Path) -> None:
    write(tmp_path / "proc/self", cgroup=V2)
    version_2(tmp_path, "outer/inner", "max", 1000)
    version_2(tmp_path, "outer", str(2**62), 1000)
    assert usable_memory(tmp_path) == MACHINE


def test_a_container_has_what_its_group_does_not_use_and_what_the_file_cache_would_give_back(tmp_path: Path) -> None:
    write(tmp_path / "proc/self", cgroup=V2)
    version_2(tmp_path, "outer/inner", "1000000", 300_000, cached=10_000)
    assert usable_memory(tmp_path) == 1_000_000 - 300_000 + 30_000


def test_a_group_around_that_of_the_process_may_leave_less(tmp_path: Path) -> None:
    write(tmp_path / "proc/self", cgroup=V2)
    version_2(tmp_path, "outer/inner", "1000000", 300_000)
    version_2(tmp_path, "outer", "2000000", 1_900_000)
    assert usable_memory(tmp_path) == 100_000


def test_the_first_version_of_control_groups_counts_as_well(tmp_path: Path) -> None:
    write(tmp_path / "proc/self", cgroup=V1)
    version_1(tmp_path, "outer/inner", 9223372036854771712, 0)
    version_1(tmp_path, "outer", 700_000, 200_000, cached=1000)
    assert usable_memory(tmp_path) == 500_000 + 3000


@pytest.mark.parametrize("version", [V1, V2])
def test_a_container_that_is_told_its_path_on_the_host_finds_its_limit_at_the_top(tmp_path: Path, version: str) -> None:
    write(tmp_path / "proc/self", cgroup=version)
    version_1(tmp_path, "", 500_000, 100_000)
    version_2(tmp_path, "", "500000", 100_000)
    assert usable_memory(tmp_path) == 400_000


def test_a_group_that_is_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "proc/self", cgroup=V2)
    version_2(tmp_path, "outer/inner", "1000", 2000)
    assert usable_memory(tmp_path) == 0


PROGRAM = """
import resource
import numpy as np, torch
from scipy import sparse
from pprop import *
from pprop._process import memory_limit, usable_memory

path = Graph.from_scipy(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(9000, 9000)))
assert Propagation(path, solver=Exact())(torch.ones(9000, 1)).shape == (9000, 1)
for limit, field in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[field]) * resource.getpagesize()
    resource.setrlimit(limit, (used + 600 * 2**20, resource.RLIM_INFINITY))
    assert 0 < usable_memory() <= 600 * 2**20
    assert memory_limit("cpu") == int(0.6 * usable_memory())
    try:
        Propagation(path, solver=Exact(), dropout=0.5)(torch.ones(9000, 1))  # a matrix of 618 MiB
    except CapacityError as error:
        print(error)
    resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says how much a process uses")
@pytest.mark.slow
def test_a_matrix_beyond_a_limit_of_the_process_is_refused_before_it_is_made() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    sentence = (
        "Exact needs the dense matrix of 9000 nodes, 0.6 GiB, and this process may use 0.6 GiB. Use PowerIteration"
    )
    for_address_space, for_data = done.stdout.splitlines()
    assert for_address_space.startswith(sentence)
    assert for_data.startswith(sentence)
