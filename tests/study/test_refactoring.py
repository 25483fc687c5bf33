"""What a change of the sources does to rows: nothing, unless it changes results; then a golden row says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.golden import golden_file

from pprop.kernels.registry import cpu_kind

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

RUN_PUBLISHED = """
import tempfile
from itertools import takewhile
from pathlib import Path
from pprop.study.run import runner
from pprop.study.run.recipe import ComputePlace
from pprop.study.store.pack import Packed
from pprop.study.store.store import Store
from pprop.study.revisions import current_revision
from pprop.study.run.progress import show_study

CPU, GPU = ComputePlace("cpu", "numba"), ComputePlace("cuda", "triton")
PLACES = {"numba": CPU, "numpy": CPU, "triton": GPU, "torch": GPU}
rows = takewhile(lambda row: '"citeseer"' in row.cell, Packed(Path("results/study.pack")))  # the first cells of all
with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    store.add_all(row for row in rows if row.key.seeds.init == 0)
    jobs = {}
    for group in store.groups():
        if group.revision == current_revision(group.cell, group.backend):
            seeds = tuple(key.seeds for key in store.keys(group.config) if key.revision == group.revision)
            jobs.setdefault(PLACES[group.backend], []).append(runner.Job(group.cell, seeds))
    for place, some in jobs.items():
        runner.place_of = lambda device: place  # nothing is to be computed, so no GPU is needed
        with show_study(lambda text: None, cells=len(some), runs=1, show=False) as watch:
            done = runner.run_study(store, some, watch)
        print(place.backend, done.wanted, done.found, done.computed + done.left + len(done.refused))
"""

CHECK_GOLDEN = """
from pprop.study.cell import Cell
from tools.golden import check_rows, golden_rows

rows = [row for row in golden_rows() if Cell.parse(row.cell).model == "bootstrapped_fp" and "citeseer" in row.cell]
found = check_rows(rows[:1])
print("the same" if found.sound else "\\n".join(found.differences))
"""


def changed(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """Copy the package, and replace text in it: file, before, after."""
    shutil.copytree(ROOT / "src" / "pprop", folder / "pprop", ignore=shutil.ignore_patterns("__pycache__"))
    for file, before, after in changes:
        path = folder / "pprop" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, (file, before)
        path.write_text(text.replace(before, after), encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def refactored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with a new function in every module, so that no source file is what it was."""
    folder = changed(tmp_path_factory.mktemp("refactored"))
    for path in (folder / "pprop").rglob("*.py"):
        path.write_text(f"{path.read_text(encoding='utf-8')}\n\ndef _added():\n    return 1\n", encoding="utf-8")
    source = "from pprop.study.revisions import provenance_here; print(provenance_here().source)"
    assert run(folder, "-c", source) != run(ROOT / "src", "-c", source)  # the changed package is the one that runs
    return folder


def test_a_study_over_published_rows_computes_nothing_after_a_harmless_change(refactored: Path):
    lines = [line.split() for line in run(refactored, "-c", RUN_PUBLISHED).splitlines()]
    assert {backend for backend, *_ in lines} == {"numba", "triton"}
    for _, wanted, found, others in lines:
        assert (int(found), others) == (int(wanted), "0")
    assert sum(int(wanted) for _, wanted, *_ in lines) > 1500


def test_a_changed_number_in_a_model_is_found_by_golden_rows(tmp_path: Path):
    """A model that is fitted: kernels would have to be compiled first. Rows of another kind of CPU show large changes only."""
    before = "(1 - model.alpha) * (M @ part)"
    after = before.replace("(1 ", "(1.0001 " if golden_file(cpu_kind()).exists() else "(0 ")
    folder = changed(tmp_path, ("models/feature_propagation.py", before, after))
    assert "Bt. FP, tuned on citeseer" in run(folder, "-c", CHECK_GOLDEN)
