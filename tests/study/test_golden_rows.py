"""Golden rows: stored runs of every model are what is computed now, so a change that means other results is noticed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tools.golden import ROUNDING, check_rows, first_epochs, golden_file, golden_rows, remedy, stored_epochs

from pprop.kernels import BACKENDS
from pprop.kernels.registry import cpu_kind
from pprop.study.cell import MODELS, Cell
from pprop.study.revisions import declared_revisions, revision_of
from pprop.study.store.row import Row

pytestmark = pytest.mark.slow

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRAINED = [name for name, kind in MODELS.items() if kind.trained]
# Models that a fused trainer trains: two rows, in one batch, take it a second.
FUSED = ("appnp", "ppnp", "mlp")
# Models whose kernels the others have, too: the interpreter would show nothing new.
ON_A_GPU_ONLY = ("vanilla_gcn", "jk", "ngcn", "mlp")


@pytest.fixture(scope="module")
def golden() -> list[Row]:
    return golden_rows()


@pytest.mark.parametrize("model", MODELS)
def test_whole_trainings_on_citeseer_are_the_same_bit_for_bit(golden: list[Row], model: str):
    """On a kind of CPU without rows of its own, those of another kind are compared within rounding."""
    backend = "numba" if model in TRAINED else "numpy"
    rows = [row for row in golden if row.key.revision == revision_of(model, backend)]
    rows = [row for row in rows if (cell := Cell.parse(row.cell)).model == model and cell.dataset == "citeseer"]
    assert len(rows) >= 2, f"There are no golden rows of {model} in its present revision. Run make golden WRITE=1."
    if model not in FUSED:  # a row takes seconds; make golden computes all of them
        rows = [min(rows, key=lambda row: row.epochs)]
    found = check_rows(rows)
    assert not found.differences, "\n".join((remedy(model, backend), *found.differences))
    kind = "exact" if golden_file(cpu_kind()).exists() else "cpu"
    assert [checked.kind for checked in found.checked] == [kind] * len(rows)


@pytest.mark.parametrize("backend", [backend.name for backend in BACKENDS])
@pytest.mark.parametrize("model", TRAINED)
def test_the_first_epochs_are_the_same_on_every_backend_within_rounding(model: str, backend: str):
    """Triton is interpreted where there is no GPU: two epochs of one run. Others do two runs, which differ, and four epochs.

    Other masks, weights or updates differ by far more than rounding.
    """
    device = DEVICE if backend == "triton" else "cpu"
    if not next(one for one in BACKENDS if one.name == backend).computes_on(device):
        pytest.skip(f"no GPU, and {backend} is not interpreted")
    if backend == "triton" and device == "cpu" and model in ON_A_GPU_ONLY:
        pytest.skip("interpreted for models whose kernels no other has")
    stored = stored_epochs()[model]
    assert stored["revisions"] == declared_revisions()[model], "The revision was raised. Run make golden WRITE=1."
    if backend == "triton" and device == "cpu":
        found, wanted = first_epochs(model, backend, device, runs=1, epochs=2), stored["after two"][:1]
    else:
        found, wanted = first_epochs(model, backend, device), stored["losses"]
    np.testing.assert_allclose(found, wanted, rtol=ROUNDING, err_msg=remedy(model, backend))
