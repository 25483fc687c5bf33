"""Requests made up from the OpenAPI document: no failure of the server, no answer that the document does not have."""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.serve.serving import Client

pytest.importorskip("schemathesis", reason="schemathesis makes up requests")

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
CASES = 300  # experiments/serve_fuzz.py makes up ten thousand


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what schemathesis and uvicorn import
def test_no_made_up_request_fails_or_gets_an_undocumented_answer(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    with warnings.catch_warnings():
        script = importlib.import_module("serve_fuzz")
    with script.serving(model, tmp_path / "edits.log") as address:
        counts, faults = script.fuzz(address, CASES)
    assert faults == []
    assert sum(counts.values()) >= CASES
    assert {int(name[-3:]) for name in counts} >= {200, 404, 422}


def test_every_endpoint_documents_its_errors(client: Client):
    document = client.get("/openapi.json").json()
    wanted = {"400", "401", "403", "404", "405", "408", "409", "413", "422", "429", "503"}
    assert len(document["paths"]) == 13
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert wanted < set(operation["responses"]), path
            for status in wanted:
                schema = operation["responses"][status]["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Error"}


def test_the_document_is_valid_and_its_operations_have_names_for_a_client(client: Client):
    from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

    document = client.get("/openapi.json").json()
    assert [error.message for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    names = {
        f"{method} {path}": operation["operationId"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert len(set(names.values())) == len(names) == 14
    assert all(
        re.fullmatch(r"[a-z]+(?:[A-Z][a-z]+)*", name) for name in names.values()
    )  # no path, as explain_api_v1_...
    assert names["post /api/v1/predict"] == "predictNodes"
    assert (names["get /api/v1/edits"], names["post /api/v1/edits"]) == ("getEdits", "applyEdits")
    steps = document["components"]["schemas"]["PredictRequest"]["properties"]["steps"]["anyOf"]
    assert {"type": "integer", "minimum": 1, "maximum": 200} in steps  # also with integers such as 138.0
