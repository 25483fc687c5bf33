"""Compute golden rows once more: stored runs of every model, which say whether a change means other results.

    make golden                  the golden rows of this kind of CPU on all graphs, and the first epochs on all backends
    make golden DEVICE=cuda      on a GPU: the first epochs, and published runs of the GPU within rounding
    make golden WRITE=1          store what a raised revision, or a new kind of CPU, has none of

``tests/golden`` has a packed study for each kind of CPU, named after it: two runs or more of every model, whole trainings of
which every bit counts on that kind. On another kind they are compared as published rows are (docs/study.md, "Verifying").
``first_epochs.json`` has losses after two and after four epochs on a small graph: weights, masks and the order of updates
decide them, so all backends agree on them within rounding. The tests compute the rows of Citeseer, and first epochs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pprop import TEST_SEEDS, Graph, Split, Stopping, train
from pprop.kernels import BACKENDS
from pprop.kernels.registry import cpu_kind
from pprop.study.cell import MODELS, Cell, Seeds, make_cell
from pprop.study.revisions import declared_revisions
from pprop.study.run.progress import show_study
from pprop.study.run.recipe import ComputePlace, Datasets, build
from pprop.study.run.runner import recipe_of
from pprop.study.store.pack import Packed, pack_study
from pprop.study.store.row import Row
from pprop.study.store.store import Store
from pprop.study.verify.plan import plan_verification
from pprop.study.verify.verify import CPU, Verification, verify_study

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "golden"
FIRST_EPOCHS = FOLDER / "first_epochs.json"
PUBLISHED = ROOT / "results" / "study.pack"
ROUNDING = 2e-6
"""Largest relative difference of a loss after four epochs in float32. Between the backends 1.1e-7 was measured."""
PER_CELL = 2

# small, because triton's interpreter takes a millisecond for a line of a kernel
SMALL = {
    "appnp": {"hidden": 8, "steps": 3},
    "ngcn": {"hidden": 4, "powers": 2, "replicas": 1},
    "gat": {"heads": 2, "units": 4},
}
# Epochs of golden rows of their own on Citeseer: whole trainings of these models would take the tests a minute.
SHORT = {"ngcn": 20, "gat": 60, "jk": 60, "gcn": 100}


def golden_file(cpu: str) -> Path:
    """Return the packed rows of a kind of CPU."""
    return FOLDER / f"{cpu.replace(' ', '-')}.pack"


def golden_rows() -> list[Row]:
    """Return the stored rows of this kind of CPU; where it has none, those of another kind."""
    here = golden_file(cpu_kind())
    return list(Packed(here if here.exists() else min(FOLDER.glob("*.pack"))))


def check_rows(rows: Sequence[Row], place: ComputePlace = CPU) -> Verification:
    """Compute rows once more, and compare them as a verification of all of them does."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder), create=True) as store,
        show_study(lambda text: None, cells=1, runs=len(rows), show=False) as watch,
    ):
        store.add_all(rows)
        plan = plan_verification(store, sample=len(rows), minutes=1e6)
        return verify_study(store, plan, watch, place)


def remedy(model: str, backend: str) -> str:
    """Return what to do about a difference."""
    return (
        f"{model} on {backend} no longer computes what is stored for its revision. Undo the change; or, if other results are "
        f"meant, raise the revision of {model} on {backend} in src/pprop/study/revisions.toml and run make golden WRITE=1."
    )


def first_epochs(model: str, backend: str, device: str = "cpu", *, runs: int = 2, epochs: int = 4) -> list[float]:
    """Return the stopping losses of the first `runs` of two runs of a model after some epochs on a small graph."""
    random = np.random.default_rng(0)
    n = 24
    above = np.triu(random.random((n, n)) < 0.15, 1)
    features = sparse.csr_array((random.random((n, 12)) < 0.2).astype(np.float32))
    graph = Graph.from_scipy(
        sparse.csr_array((above | above.T).astype(float)), features=features, labels=random.integers(0, 3, n)
    )
    one, two, rest = np.arange(6), np.arange(6, 12), np.arange(12, n)
    trained = train(
        build(make_cell(model, SMALL.get(model, {"hidden": 8}), "citeseer"), graph),
        graph,
        [Split(one, two, rest), Split(two, one, rest)][:runs],
        seeds=[1, 2][:runs],
        stopping=Stopping(100, epochs, "window"),  # keeps the last epoch
        backend=backend,
        device=device,
        progress=False,
    )
    return [float(loss) for loss in trained.stopping_loss]


def stored_epochs() -> dict[str, dict[str, Any]]:
    """Return the stored losses: model, and the revisions that they are of, and the losses after four and two epochs."""
    return json.loads(FIRST_EPOCHS.read_text(encoding="utf-8")) if FIRST_EPOCHS.exists() else {}


def _differing_epochs(device: str) -> list[str]:
    found: list[str] = []
    for model, entry in stored_epochs().items():
        for backend in (backend.name for backend in BACKENDS if backend.computes_on(device)):
            losses = first_epochs(model, backend, device)
            print(f"{model} on {backend}: losses after four epochs {losses}, stored {entry['losses']}", flush=True)
            if not np.allclose(losses, entry["losses"], rtol=ROUNDING, atol=0.0):
                found.append(remedy(model, backend))
    return found


def _differing_rows(rows: Sequence[Row], place: ComputePlace) -> list[str]:
    found: list[str] = []
    for text in sorted({row.cell for row in rows}):
        of_cell, cell = [row for row in rows if row.cell == text], Cell.parse(text)
        checked = check_rows(of_cell, place)
        kinds = sorted({one.kind for one in checked.checked})
        same = sum(one.same == 1.0 and one.apart == 0.0 for one in checked.checked)
        print(
            f"{cell.model} on {cell.dataset}: {len(checked.checked)} rows ({', '.join(kinds)}), the same in {same}",
            flush=True,
        )
        if not checked.sound:
            found += [*checked.differences, remedy(cell.model, of_cell[0].backend)]
    return found


def _gpu_rows() -> list[Row]:
    """Return the first published rows of each model's table cell on each graph that a GPU made in its present revision."""
    found: dict[str, list[Row]] = {}
    for row in sorted(Packed(PUBLISHED), key=lambda row: row.key):
        cell = Cell.parse(row.cell)
        present = row.key.revision == f"triton-{declared_revisions()[cell.model].get('triton')}"
        if present and len(row.predictions) and _is_table_cell(cell):
            found.setdefault(row.cell, []).append(row)
    return [row for of_cell in found.values() for row in of_cell[:PER_CELL]]


def _is_table_cell(cell: Cell) -> bool:
    return cell == make_cell(cell.model, {}, cell.dataset)


def _wanted() -> dict[str, list[Seeds]]:
    """Return cells and seeds of golden rows: trainings that were timed on a CPU, table cells of what is fitted, short ones."""
    short = [make_cell(model, {"max_epochs": epochs}, "citeseer") for model, epochs in SHORT.items()]
    found = {cell.text: {Seeds(TEST_SEEDS[0], 0)} for cell in short}
    for row in Packed(PUBLISHED):
        cell = Cell.parse(row.cell)
        if row.device == "cpu" and (MODELS[cell.model].trained or _is_table_cell(cell)):
            found.setdefault(row.cell, set()).add(row.key.seeds)
    return {text: sorted(seeds)[:PER_CELL] for text, seeds in sorted(found.items())}


def _write(datasets: Sequence[str]) -> None:
    """Store the rows that this kind of CPU, and the first epochs that a revision, has none of."""
    file, loaded = golden_file(cpu_kind()), Datasets()
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
        store.add_all(Packed(file) if file.exists() else [])
        for cell, seeds in ((Cell.parse(text), seeds) for text, seeds in _wanted().items()):
            if cell.dataset not in datasets:
                continue
            recipe = recipe_of(cell, loaded.of(cell), CPU)
            if missing := [one for one in seeds if not store.has(recipe.task.key(one))]:
                recipe.compute(missing, lambda row: print("stored:", row.cell, store.add(row), flush=True))
        file.unlink(missing_ok=True)
        pack_study(store, file)
    epochs = stored_epochs()
    for model in (name for name, kind in MODELS.items() if kind.trained):
        if epochs.get(model, {}).get("revisions") != declared_revisions()[model]:
            epochs[model] = {
                "revisions": dict(declared_revisions()[model]),
                "losses": first_epochs(model, "reference"),
                "after two": first_epochs(model, "reference", epochs=2),
            }
    FIRST_EPOCHS.write_text(json.dumps(epochs, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--datasets", nargs="+", default=["citeseer", "cora_ml", "pubmed", "ms_academic"])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.write:
        return _write(given.datasets)
    if given.device == "cpu":
        place, rows = CPU, golden_rows()
    else:
        place, rows = ComputePlace("cuda", "triton"), _gpu_rows()
    rows = [row for row in rows if Cell.parse(row.cell).dataset in given.datasets]
    found = [*_differing_epochs(given.device), *_differing_rows(rows, place)]
    print("\n".join(found) or "All golden rows are what is computed now.")
    return sys.exit(bool(found))


if __name__ == "__main__":
    main()
