"""The readings of JK that were tried (experiments/jk_readings.py) against a dense twin in float64."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("jk_readings", ROOT / "experiments" / "jk_readings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up by name
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments")  # where Python finds what is beside a script that it runs
        spec.loader.exec_module(module)
    return module


SCRIPT = load_script()
DIFFERENT = [
    {},
    {"propagated": True},
    {"convolutions": 2},
    {"convolutions": 2, "propagated": True},
    {"mask": "shared"},
    {"mask": "shared", "last_relu": False},
    {"mask": "none"},
    {"between": False},
    {"biases": True, "propagated": True},
    {"last_relu": False},
]


def twin_of(model: Any) -> Any:
    def twin(dense: Any, weights: Any, seed: int | None, epoch: int) -> torch.Tensor:
        def dropped(H: torch.Tensor, layer: int) -> torch.Tensor:
            return dense.hidden(H, seed, layer, epoch, model.dropout)

        last = model.convolutions
        matrices, biases = weights[: last + 1], weights[last + 1 :] or [0.0] * (last + 1)
        H: list[torch.Tensor] = []
        for layer in range(last):
            if layer == 0:
                before = dense.features(seed, epoch, model.dropout)
            else:
                before = H[-1] if model.mask == "shared" or not model.between else dropped(H[-1], layer)
            after = dense.A_hat @ before @ matrices[layer] + biases[layer]
            if model.last_relu or layer < last - 1:
                after = torch.relu(after)
            H.append(dropped(after, layer + 1) if model.mask == "shared" else after)
        together = torch.cat(H, dim=1)
        if model.mask == "own":
            together = dropped(together, last)
        product = together @ matrices[last]
        return (dense.A_hat @ product if model.propagated else product) + biases[last]

    return twin


@pytest.mark.parametrize("settings", DIFFERENT, ids=str)
def test_a_reading_computes_what_its_description_says(check_outputs: Any, settings: Any) -> None:
    model = SCRIPT.Reading(hidden=4, **settings)
    check_outputs(model, twin_of(model))


def test_the_penalised_matrices_are_those_that_are_named() -> None:
    penalties = {
        named: [weight.penalty for weight in SCRIPT.Reading(penalised=named, biases=True).weights(9, 3)]
        for named in ("all", "convolutions", "first")
    }
    assert penalties == {
        "all": [0.001] * 4 + [0.0] * 4,
        "convolutions": [0.001] * 3 + [0.0] * 5,
        "first": [0.001] + [0.0] * 7,
    }


def test_the_page_has_the_measured_tables() -> None:
    rows = SCRIPT.Rows(ROOT / "results" / "jk_readings.json")
    page = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    for other in (SCRIPT.PLAIN, SCRIPT.REFERENCE):
        assert "\n".join(SCRIPT.table(rows, other)) in page
