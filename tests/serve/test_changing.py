"""Imagined changes, and live ones in a log that survives everything but damage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.serve.serving import CLASSES, Client, fitted, planted
from tests.serve.test_bad_input import post, refused

import pprop
from pprop._errors import FormatError, InputError
from pprop.graph import write_npz
from pprop.serve import schemas
from pprop.serve.app import create_app
from pprop.serve.holder import Holder
from pprop.serve.limits import ServerLimits
from pprop.serve.live import LiveHolder
from pprop.serve.log import EditLog
from pprop.serve.served import Served


def probabilities(client: Client, key: str) -> list[float]:
    return post(client, "predict", {"ids": [key]}).json()["predictions"][0]["probabilities"]


def edges_of(graph: pprop.Graph) -> set[tuple[str, str]]:
    matrix = sp.triu(graph.adjacency, 1).tocoo()
    assert graph.ids is not None
    return set(zip(graph.ids[matrix.row].tolist(), graph.ids[matrix.col].tolist(), strict=True))


def expected(model: Any, graph: pprop.Graph) -> Any:
    """Return the probabilities of the model on another graph, by the library."""
    return model.on(graph).predict_proba()


def changed(graph: pprop.Graph, remove: Any = (), add: Any = ()) -> pprop.Graph:
    """Return a graph with other edges."""
    matrix = graph.adjacency.toarray()
    for u, v, weight in [*((u, v, 0.0) for u, v in remove), *add]:
        matrix[u, v] = matrix[v, u] = weight
    return graph.replace(adjacency=sp.csr_array(matrix))


def test_a_what_if_is_what_the_model_says_on_that_graph(client: Client, model: Any):
    graph = model.graph_
    other = int(graph.indices[graph.indptr[5]])
    new = next(k for k in range(60) if k != 5 and graph.adjacency[5, k] == 0)
    body = {
        "id": "n5",
        "remove": [{"source": "n5", "target": f"n{other}"}],
        "add": [{"source": f"n{new}", "target": "n5", "weight": 2.5}],
    }
    found = post(client, "what-if", body).json()
    after = changed(graph, [(5, other)], [(5, new, 2.5)])
    with pytest.warns(UserWarning, match="weighted"):
        wanted = expected(model, after)
    np.testing.assert_allclose(found["after"]["probabilities"], wanted[5], atol=1e-5)
    np.testing.assert_allclose(found["before"]["probabilities"], model.predict_proba([5])[0], atol=1e-6)
    assert found["after"]["degree"] == np.diff(after.indptr)[5]
    moved = np.flatnonzero(wanted.argmax(axis=1) != model.predict_proba().argmax(axis=1))
    assert found["moved_total"] == len(set(moved.tolist()) - {5})
    assert probabilities(client, "n5") == found["before"]["probabilities"]  # the graph is unchanged


@pytest.mark.parametrize("edit", ["remove", "add"])
@pytest.mark.parametrize("spread", [{}, {"alpha": 0.4, "steps": 3}])
def test_a_what_if_is_explained_on_that_graph(client: Client, model: Any, edit: str, spread: dict[str, Any]):
    graph = model.graph_
    linked = [k for k in range(60) if k != 5 and (graph.adjacency[5, k] > 0) == (edit == "remove")]
    other = linked[0]
    after = changed(graph, [(5, other)] if edit == "remove" else (), [(5, other, 1.0)] if edit == "add" else ())
    body = {"id": "n5", edit: [{"source": "n5", "target": f"n{other}"}], "k": 60, **spread}
    found = {name: post(client, "what-if", {**body, "class": name}).json() for name in CLASSES}
    schemas.WhatIf.model_validate(found["art"])
    sums = [
        sum(node["contribution"] for node in one["explanation"]["contributors"])
        + one["explanation"]["rest"]["contribution"]
        for one in found.values()
    ]
    assert sums == pytest.approx([one["explanation"]["logit"] for one in found.values()], abs=1e-5)
    probabilities = np.exp(sums) / np.exp(sums).sum()
    np.testing.assert_allclose(found["art"]["after"]["probabilities"], probabilities, atol=1e-5)
    one = post(client, "what-if", {**body, "k": 3}).json()["explanation"]
    assert one["class"] == CLASSES[int(np.argmax(sums))]
    assert len(one["contributors"]) == 3
    plain = client.get("/api/v1/explain", params={"id": "n5", "class": "art", "k": 60, **spread}).json()
    assert plain["logit"] != pytest.approx(sums[0], abs=1e-3)  # the graph is unchanged
    assert (one["alpha"], one["steps"]) == (plain["alpha"], plain["steps"])
    if spread:  # the model of the library has its own alpha and steps
        return
    explained = pprop.explain(model.on(after), 5, k=60)
    for code, name in enumerate(CLASSES):
        terms = {node["id"]: node["contribution"] for node in found[name]["explanation"]["contributors"]}
        weights = {node["id"]: node["weight"] for node in found[name]["explanation"]["contributors"]}
        assert set(terms) <= set(explained.names)
        wanted = dict(zip(explained.names, explained.contributions[:, code].tolist(), strict=True))
        assert {key: terms.get(key, 0.0) for key in wanted} == pytest.approx(wanted, abs=1e-5)
        shares = dict(zip(explained.names, explained.weights.tolist(), strict=True))
        assert weights == pytest.approx({key: shares[key] for key in weights}, abs=1e-6)


def test_taking_an_edge_and_giving_it_back_changes_nothing(client: Client, model: Any):
    graph = model.graph_
    pair = {"source": "n5", "target": f"n{int(graph.indices[graph.indptr[5]])}"}
    found = post(client, "what-if", {"id": "n5", "remove": [pair], "add": [pair]}).json()
    np.testing.assert_allclose(found["after"]["probabilities"], found["before"]["probabilities"], atol=1e-6)


def test_what_ifs_that_do_not_fit_the_graph(client: Client, model: Any):
    graph = model.graph_
    there = f"n{int(graph.indices[graph.indptr[5]])}"
    absent = next(f"n{k}" for k in range(60) if k != 5 and graph.adjacency[5, k] == 0)
    for body in (
        {"id": "n5", "add": [{"source": "n5", "target": there}]},
        {"id": "n5", "remove": [{"source": "n5", "target": absent}]},
        {"id": "n5", "add": [{"source": "n5", "target": absent}] * 2},
    ):
        refused(post(client, "what-if", body), 409, "edge_state")
    refused(post(client, "what-if", {"id": "n5", "add": [{"source": "n5", "target": "n1"}] * 101}), 422, "invalid")
    for weight in (0, -1, 1e10):
        refused(
            post(client, "what-if", {"id": "n5", "add": [{"source": "n5", "target": "n1", "weight": weight}]}),
            422,
            "invalid",
        )


@pytest.mark.parametrize("edges", [[], [("n1", 1.0), ("n4", 1.0)]])
def test_a_new_node_gets_the_prediction_that_it_would_have_in_the_graph(client: Client, model: Any, edges: Any):
    graph = model.graph_
    values = np.array([0.1, 3.0, 0.2, 0.5, 0.6, 0.7])
    matrix = np.zeros((61, 61))
    matrix[:60, :60] = graph.adjacency.toarray()
    for key, weight in edges:
        matrix[60, int(key[1:])] = matrix[int(key[1:]), 60] = weight
    grown = pprop.Graph.from_scipy(
        sp.csr_array(matrix), features=np.vstack([graph.features, values]), feature_names=graph.feature_names
    )
    wanted = expected(model, grown)[60]
    body = {
        "features": {f"f{k}": value for k, value in enumerate(values.tolist())},
        "edges": [{"id": key, "weight": weight} for key, weight in edges],
    }
    found = post(client, "predict-new", body).json()
    np.testing.assert_allclose(found["prediction"]["probabilities"], wanted, atol=1e-5)
    assert found["prediction"]["predicted"] == CLASSES[int(wanted.argmax())]
    assert (found["used"], found["left_out"]) == ([f"f{k}" for k in range(6)], [])
    in_order = post(client, "predict-new", {**body, "features": values.tolist()}).json()
    assert in_order["prediction"] == found["prediction"]
    refused(post(client, "predict-new", {**body, "edges": [{"id": "n1"}, {"id": "n1"}]}), 422, "invalid")


def test_a_server_without_a_log_takes_no_edits(client: Client):
    refused(client.get("/api/v1/edits"), 404, "not_live")
    edit = {"op": "remove_node", "id": "n1"}
    assert "--live" in refused(post(client, "edits", {"edits": [edit]}), 404, "not_live")


EDITS = (
    {"op": "add_node", "id": "new", "features": {"f1": 3.0}},
    {"op": "add_edge", "source": "new", "target": "n1"},
    {"op": "set_features", "id": "n7", "features": [9.0, 0, 0, 0, 0, 0]},
    {"op": "remove_node", "id": "n9"},
)


def check_edited(client: Client, model: Any) -> None:
    """Compare a server after `EDITS` with the model on the graph that they make."""
    graph = model.graph_
    matrix = np.zeros((61, 61))
    matrix[:60, :60] = graph.adjacency.toarray()
    matrix[60, 1] = matrix[1, 60] = 1.0
    features = np.vstack([graph.features, [0, 3.0, 0, 0, 0, 0]])
    features[7] = [9.0, 0, 0, 0, 0, 0]
    left = np.delete(np.arange(61), 9)
    after = pprop.Graph.from_scipy(
        sp.csr_array(matrix[np.ix_(left, left)]), features=features[left], feature_names=graph.feature_names
    )
    wanted = expected(model, after)
    for key, row in (("new", 59), ("n1", 1), ("n7", 7), ("n59", 58)):
        np.testing.assert_allclose(probabilities(client, key), wanted[row], atol=1e-5)
    refused(post(client, "predict", {"ids": ["n9"]}), 404, "unknown_node")
    card = client.get("/api/v1/model").json()
    assert (card["nodes"], card["edges"], card["live"]) == (60, after.n_edges, True)
    explained = client.get("/api/v1/explain?id=new&k=100").json()
    total = sum(one["contribution"] for one in explained["contributors"]) + explained["rest"]["contribution"]
    assert total == pytest.approx(explained["logit"], rel=1e-12)
    assert client.get("/api/v1/search?q=new").json()["nodes"][0]["id"] == "new"
    for role, nodes in (("training", model.train_nodes_), ("validation", model.stopping_nodes_)):
        assert client.get(f"/api/v1/search?role={role}").json()["total"] == len(set(nodes.tolist()) - {9})
    assert client.get("/api/v1/search?role=unlabelled").json()["total"] == 4  # the new node is one of them


def test_live_edits_are_there_and_are_there_again_after_a_restart(live: Any, model: Any):
    client, _ = live()
    before = probabilities(client, "n1")
    assert client.get("/api/v1/edits").json() == {"sequence": 0, "log": "edits.log"}
    assert post(client, "edits", {"edits": list(EDITS[:2])}).json() == {"sequence": 1, "applied": 2}
    assert probabilities(client, "n1") != before
    assert post(client, "edits", {"edits": list(EDITS[2:])}).json() == {"sequence": 2, "applied": 2}
    check_edited(client, model)
    client, holder = live()
    assert holder.sequence == 2
    assert "pprop_edit_sequence 2.0" in client.get("/metrics").text
    check_edited(client, model)
    assert post(client, "edits", {"edits": [{"op": "remove_node", "id": "new"}]}).json()["sequence"] == 3
    assert "pprop_edits_total" in client.get("/metrics").text


FIRST_EDITS = """
import json, sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from tests.serve.serving import Client
import pprop
from pprop.serve.app import create_app
from pprop.serve.limits import ServerLimits
from pprop.serve.live import LiveHolder
from pprop.serve.served import Served

folder = Path(sys.argv[1])
holder = LiveHolder(Served(pprop.load(folder / "model").fitted_, "a model"), folder / "edits.log")
client = Client(create_app(holder, ServerLimits()))
compiled, compile_one = [], Dispatcher.compile

def noted(self, signature):
    compiled.append(f"{self.py_func.__module__}.{self.py_func.__name__}")
    return compile_one(self, signature)

Dispatcher.compile = noted
codes = []
for path, body in json.loads(sys.argv[2]):
    answer = client.get(path) if body is None else client.post(path, json=body)
    codes.append(answer.status_code)
print(json.dumps([codes, compiled]))
"""


def test_the_first_edits_of_a_server_compile_nothing(tmp_path: Path):
    graph = planted()
    graph = graph.replace(
        features=sp.csr_array(np.asarray(graph.features))
    )  # read in another way than one node's few nonzeros
    write_npz(graph, tmp_path / "graph.npz")
    fitted(graph, max_epochs=2).save(
        tmp_path / "model", source=pprop.GraphSource("npz", {"path": str(tmp_path / "graph.npz")})
    )
    far = [k for k in range(60) if k not in (2, 9) and graph.adjacency[2, k] == 0]
    hub = [{"op": "add_edge", "source": "n2", "target": f"n{k}"} for k in far]
    full = {"op": "set_features", "id": "n3", "features": [1.0] * 6}
    weighted = {"op": "add_edge", "source": "new", "target": "n3", "weight": 2.5}
    batches: list[list[dict[str, Any]]] = [[edit] for edit in (*EDITS, full, weighted)]
    batches += [hub, [{**edit, "op": "remove_edge"} for edit in hub], [{"op": "remove_node", "id": "new"}]]
    reads = ["/api/v1/explain?id=n1", "/api/v1/explain?id=n1&alpha=0.3&steps=4", "/api/v1/diagnostics"]
    requests: list[tuple[str, Any]] = [("/api/v1/predict-new", {"features": {"f1": 1.0}, "edges": [{"id": "n1"}]})]
    for edits in batches:
        requests += [("/api/v1/edits", {"edits": edits}), *((path, None) for path in reads)]
    command = [sys.executable, "-c", FIRST_EDITS, str(tmp_path), json.dumps(requests)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    codes, compiled = json.loads(done.stdout)
    assert codes == [200] * len(requests)
    assert compiled == []


def test_a_batch_is_made_whole_or_not_at_all(live: Any, tmp_path: Path):
    client, holder = live()
    before, log = probabilities(client, "n1"), (tmp_path / "edits.log").read_bytes()
    there = f"n{int(holder.served.fitted.graph.indices[0])}"
    cases: list[tuple[list[Any], int, str]] = [
        ([EDITS[0], EDITS[1], EDITS[1]], 409, "There is already an edge between"),
        ([EDITS[1]], 404, "There is no node 'new'"),
        ([EDITS[0], EDITS[0]], 409, "already"),
        ([{**EDITS[0], "id": "n3"}], 409, "already"),
        ([{**EDITS[0], "features": {"g": 1}}], 422, "no feature 'g'"),
        ([{**EDITS[0], "features": [1.0]}], 422, "6 features"),
        ([EDITS[3], EDITS[3]], 404, "no node 'n9'"),
        ([EDITS[3], {"op": "set_features", "id": "n9", "features": {}}], 404, "no node"),
        ([{"op": "add_edge", "source": "n0", "target": there}], 409, "edit 1 (add_edge 'n0'"),
        ([{"op": "remove_edge", "source": "n0", "target": "n0"}], 409, "There is no edge between 'n0' and 'n0'."),
        ([{"op": "fly", "id": "n0"}], 422, "op"),
        ([{"op": "add_edge", "source": "n0", "target": "n1", "weight": -1}], 422, "weight"),
        ([{**EDITS[0], "id": ""}], 422, "empty"),
        ([], 422, "at least 1"),
    ]
    for edits, status, text in cases:
        answer = post(client, "edits", {"edits": edits})
        assert answer.status_code == status, answer.text
        assert text in answer.json()["message"]
    assert probabilities(client, "n1") == before
    assert (tmp_path / "edits.log").read_bytes() == log
    assert holder.sequence == 0
    assert post(client, "edits", {"edits": [EDITS[3], {**EDITS[0], "id": "n9"}]}).status_code == 200


def test_nodes_without_ids_get_the_next_number(tmp_path: Path):
    with_numbers = Served(fitted(planted(ids=False)).fitted_, "numbers")
    holder = LiveHolder(with_numbers, tmp_path / "log")
    client = Client(create_app(holder, ServerLimits()))
    new = {"op": "add_node", "features": {"f1": 1.0}}
    refused(post(client, "edits", {"edits": [{**new, "id": 99}]}), 409, "edit")
    edits = [{**new, "id": 60}, {"op": "add_edge", "source": "60", "target": 3}, {"op": "remove_node", "id": 0}]
    assert post(client, "edits", {"edits": edits}).status_code == 200
    found = post(client, "predict", {"ids": [60, 1]}).json()["predictions"]
    assert [one["id"] for one in found] == [60, 1]  # numbers stay, also after a node before them has gone
    refused(post(client, "predict", {"ids": [0]}), 404, "unknown_node")
    holder.log.close()


def test_a_log_cut_in_the_middle_of_a_line(live: Any, tmp_path: Path):
    client, _ = live()
    post(client, "edits", {"edits": list(EDITS[:2])})
    whole = (tmp_path / "edits.log").read_bytes()
    post(client, "edits", {"edits": list(EDITS[2:])})
    longer = (tmp_path / "edits.log").read_bytes()
    for size in range(len(whole), len(longer), 7):
        (tmp_path / "cut.log").write_bytes(longer[:size])
        with EditLog(tmp_path / "cut.log", json.loads(whole.split(b"\n")[0][9:])["graph"]) as log:
            assert (log.sequence, log.cut) == (1, size - len(whole))
        assert (tmp_path / "cut.log").read_bytes() == whole


def test_logs_that_are_refused(live: Any, tmp_path: Path):
    client, holder = live()
    post(client, "edits", {"edits": list(EDITS[:2])})
    post(client, "edits", {"edits": list(EDITS[2:])})
    path, graph = tmp_path / "edits.log", holder.served.fitted.graph.fingerprint
    with pytest.raises(InputError, match="in use by another server"):
        EditLog(path, graph)
    holder.log.close()
    with pytest.raises(FormatError, match="belongs to another graph"):
        EditLog(path, "f" * 32)
    content = path.read_bytes()
    (tmp_path / "damaged").write_bytes(content.replace(b'"f1"', b'"f2"'))
    with pytest.raises(FormatError, match="damaged in line 2"):
        EditLog(tmp_path / "damaged", graph)
    first, _, last = content.split(b"\n")[:3]
    (tmp_path / "missing").write_bytes(first + b"\n" + last + b"\n")
    with pytest.raises(FormatError, match="damaged in line 2"):
        EditLog(tmp_path / "missing", graph)
    for other in (b"", b"hello", b"a,b\n1,2\n"):
        (tmp_path / "other").write_bytes(other)
        with pytest.raises(FormatError, match="is no log of edits"):
            EditLog(tmp_path / "other", graph)
        assert (tmp_path / "other").read_bytes() == other
    with pytest.raises(InputError, match="is a folder"):
        EditLog(tmp_path, graph)
    with pytest.raises(InputError, match="does not exist"):
        EditLog(tmp_path / "no" / "log", graph)


def test_an_edit_that_cannot_be_written_is_taken_back(live: Any, model: Any, monkeypatch: pytest.MonkeyPatch):
    import os

    client, holder = live()
    before = probabilities(client, "n1")
    real = os.fsync
    calls: list[int] = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    answer = post(client, "edits", {"edits": list(EDITS[:2])})
    assert "No space left" in refused(answer, 503, "log")
    assert probabilities(client, "n1") == before
    assert post(client, "edits", {"edits": list(EDITS[:2])}).json()["sequence"] == 1
    calls.clear()
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    refused(post(client, "edits", {"edits": list(EDITS[2:])}), 503, "log")
    refused(client.get("/readyz"), 503, "not_ready")  # what is in the file is not known
    assert holder.sequence == 1
    monkeypatch.setattr(os, "fsync", real)
    assert client.get("/readyz").status_code == 200
    assert post(client, "edits", {"edits": list(EDITS[2:])}).json()["sequence"] == 2
    check_edited(client, model)


def test_edits_work_again_once_a_full_disk_has_space(live: Any, model: Any, tmp_path: Path):
    resource = pytest.importorskip("resource", reason="a limit for files stands for the size of the disk")
    client, _ = live()
    post(client, "edits", {"edits": list(EDITS[:2])})
    log = tmp_path / "edits.log"
    before, limits = log.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))  # a part of a line fits
    try:
        answers = [post(client, "edits", {"edits": list(EDITS[2:])}) for _ in range(2)]
        ready = client.get("/readyz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    for answer in answers:
        assert "The graph is unchanged" in refused(answer, 503, "log")
    assert ready.status_code == 200  # the log is sound, and the next edit may fit
    assert log.read_bytes() == before
    assert post(client, "edits", {"edits": list(EDITS[2:])}).json()["sequence"] == 2
    client, holder = live()
    assert holder.sequence == 2
    check_edited(client, model)


def test_models_that_cannot_be_live(tmp_path: Path):
    for model in (fitted(planted(), pprop.MLPNodeClassifier), fitted(planted(directed=True))):
        with pytest.raises(InputError, match=r"--live needs a model|undirected"):
            LiveHolder(Served(model.fitted_, "x"), tmp_path / "log")
        assert not (tmp_path / "log").exists()
    assert Holder(Served(fitted(planted(directed=True)).fitted_, "x")).ready
