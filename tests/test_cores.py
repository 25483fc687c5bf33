"""How many cores a process may use: its affinity, and the quota of its control group, from files as the system has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pprop import _process
from pprop._process import core_quota, settle_threads, usable_cores


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max 100000", None), ("200000 100000", 2), ("350000 100000", 3), ("50000 100000", 1), ("", None)],
)
def test_the_quota_of_version_2_is_rounded_down_to_whole_cores(tmp_path, limit, cores):
    write(tmp_path / "proc/self", cgroup="0::/app\n")
    write(tmp_path / "sys/fs/cgroup/app", cpu__max=f"{limit}\n")
    assert core_quota(tmp_path) == cores


def test_the_least_quota_of_all_groups_around_the_process_counts(tmp_path):
    write(tmp_path / "proc/self", cgroup="0::/outer/inner\n")
    write(tmp_path / "sys/fs/cgroup/outer", cpu__max="300000 100000\n")
    write(tmp_path / "sys/fs/cgroup/outer/inner", cpu__max="800000 100000\n")
    assert core_quota(tmp_path) == 3


def test_a_container_that_sees_its_own_group_as_the_root_has_its_quota(tmp_path):
    write(tmp_path / "proc/self", cgroup="0::/docker/0123abcd\n")  # a path of the host, which is not there
    write(tmp_path / "sys/fs/cgroup", cpu__max="200000 100000\n")
    assert core_quota(tmp_path) == 2


@pytest.mark.parametrize("folder", ["cpu", "cpu,cpuacct"])
@pytest.mark.parametrize(("quota", "cores"), [("-1", None), ("150000", 1), ("400000", 4)])
def test_the_quota_of_version_1(tmp_path, folder, quota, cores):
    write(tmp_path / "proc/self", cgroup="5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/\n")
    write(tmp_path / "sys/fs/cgroup" / folder / "job", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000\n")
    assert core_quota(tmp_path) == cores


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert core_quota(tmp_path) is None


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind a process to cores")
def test_a_process_that_is_bound_to_one_core_uses_one():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_the_quota_limits_what_the_affinity_allows(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(_process, "core_quota", lambda: 3)
    assert usable_cores() == 3
    monkeypatch.setattr(_process, "core_quota", lambda: None)
    assert usable_cores() == 64


def test_a_command_lets_libraries_know_the_cores_and_leaves_what_is_chosen(monkeypatch):
    monkeypatch.setattr(_process, "usable_cores", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    environment = {"OMP_NUM_THREADS": "1"}
    settle_threads(environment)
    assert environment == {
        "OMP_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
    }
    alone: dict[str, str] = {}
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    settle_threads(alone)
    assert alone == {}


@pytest.mark.parametrize(("chosen", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_openmp_sleep_while_they_wait_unless_the_user_has_chosen(chosen: str | None, expected: str):
    others = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment = others | ({} if chosen is None else {"OMP_WAIT_POLICY": chosen})
    code = "import pprop, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == [expected, "False"]
