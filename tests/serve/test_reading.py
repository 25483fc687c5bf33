"""What the endpoints answer is what the library says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.serve.serving import CLASSES, Client, fitted, planted

import pprop
from pprop.propagation import PowerIteration, propagate
from pprop.serve import schemas
from pprop.serve.app import create_app
from pprop.serve.holder import Holder
from pprop.serve.limits import ServerLimits
from pprop.serve.served import Served


def post(client: Client, path: str, body: Any) -> Any:
    found = client.post(f"/api/v1/{path}", json=body)
    assert found.status_code == 200, found.text
    return found.json()


def get(client: Client, path: str, **query: Any) -> Any:
    found = client.get(f"/api/v1/{path}", params=query)
    assert found.status_code == 200, found.text
    return found.json()


def client_of(model: Any) -> Client:
    return Client(create_app(Holder(Served(model.fitted_, "another")), ServerLimits(rate=1e6)))


def test_health_readiness_and_metrics(client: Client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    client.get("/api/v1/nothing")
    text = client.get("/metrics").text
    assert 'pprop_requests_total{endpoint="/healthz",method="GET",status="200"}' in text
    assert 'pprop_requests_total{endpoint="other",method="GET",status="404"}' in text
    assert 'pprop_request_seconds_bucket{endpoint="/healthz"' in text
    assert 'pprop_model_info{graph="planted",kind="APPNP",name="a model"' in text
    assert "pprop_graph_nodes 60.0" in text


def test_the_model_card(client: Client, model: Any):
    card = get(client, "model")
    schemas.Card.model_validate(card)
    assert card["classes"] == list(CLASSES)
    assert (card["nodes"], card["edges"], card["features"]) == (60, model.graph_.n_edges, 6)
    assert (card["alpha"], card["steps"], card["live"], card["named"]) == (0.1, 10, False, True)
    labels, known = np.asarray(model.graph_.labels), np.zeros(60, dtype=bool)
    known[model.known_nodes_] = True
    tested = (labels >= 0) & ~known
    counts = {role: card[f"{role}_nodes"] for role in ("training", "validation", "test", "unlabelled")}
    used = {"training": len(model.train_nodes_), "validation": len(model.stopping_nodes_)}
    assert counts == {**used, "test": tested.sum(), "unlabelled": 3}
    assert min(counts.values()) > 0
    assert card["accuracy"] == pytest.approx(model.score(np.flatnonzero(tested), np.array(CLASSES)[labels[tested]]))
    assert get(client, "explain", id=card["example"])["id"] == card["example"]


def test_predictions_are_those_of_the_model(client: Client, model: Any):
    found = post(client, "predict", {"ids": ["n0", "n7", "n59"]})
    schemas.PredictionsAnswer.model_validate(found)
    assert (found["alpha"], found["steps"]) == (0.1, 10)
    assert [one["predicted"] for one in found["predictions"]] == model.predict([0, 7, 59]).tolist()
    expected = model.predict_proba([0, 7, 59])
    np.testing.assert_allclose([one["probabilities"] for one in found["predictions"]], expected, atol=1e-6)
    first, _, last = found["predictions"]
    assert first["role"] == ("training" if 0 in model.train_nodes_ else "validation")
    assert (first["distance"] == 0) == (first["role"] == "training")
    used = post(client, "predict", {"ids": [f"n{model.train_nodes_[0]}", f"n{model.stopping_nodes_[0]}", "n1"]})
    assert [one["role"] for one in used["predictions"]] == ["training", "validation", "test"]
    assert (first["name"], first["text"]) == ("Title 0", "Title 0, and a long text.")
    assert (last["label"], last["role"]) == (None, "unlabelled")
    assert last["degree"] == np.diff(model.graph_.indptr)[59]


@pytest.mark.parametrize(("alpha", "steps"), [(0.5, None), (None, 3), (0.02, 150), (1.0, 1), (0.3, 10)])
def test_another_alpha_or_number_of_steps(client: Client, served: Served, alpha: float | None, steps: int | None):
    asked = {"ids": ["n3"], "alpha": alpha, "steps": steps}
    found = post(client, "predict", {name: value for name, value in asked.items() if value is not None})
    used = 0.1 if alpha is None else alpha, 10 if steps is None else steps
    assert (found["alpha"], found["steps"]) == used
    assert served.view.H is not None
    Z = propagate(served.fitted.graph, served.view.H, used[0], PowerIteration(used[1]), normalization="row")[3]
    expected = np.exp(Z - Z.max()) / np.exp(Z - Z.max()).sum()
    np.testing.assert_allclose(found["predictions"][0]["probabilities"], expected, rtol=1e-12)


def test_all_predictions_come_as_a_stream_of_lines(client: Client, model: Any):
    answer = client.get("/api/v1/predictions")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    for line in lines:
        schemas.BriefWithProbabilities.model_validate(line)
    assert [line["predicted"] for line in lines] == model.predict().tolist()


@pytest.mark.parametrize("name", [None, "zoology"])
def test_contributions_add_up_to_the_logit_of_the_library(client: Client, model: Any, name: str | None):
    query = {"id": "n5", "k": 4} | ({} if name is None else {"class": name})
    found = get(client, "explain", **query)
    schemas.ExplanationAnswer.model_validate(found)
    code = int(model.logits_[5].argmax()) if name is None else CLASSES.index(name)
    total = sum(one["contribution"] for one in found["contributors"]) + found["rest"]["contribution"]
    assert total == pytest.approx(found["logit"], rel=1e-13)
    assert found["logit"] == pytest.approx(float(model.logits_[5, code]), abs=1e-5)
    sizes = [abs(one["contribution"]) for one in found["contributors"]]
    assert sizes == sorted(sizes, reverse=True)
    explained = pprop.explain(model, 5, k=60)
    weights = dict(zip(explained.names, explained.weights, strict=True))
    assert [one["weight"] for one in found["contributors"]] == pytest.approx(
        [weights[one["id"]] for one in found["contributors"]]
    )
    assert found["rest"]["nodes"] == len(weights) + explained.other_count - 4
    everything = get(client, "explain", id="n5", k=1000)
    assert everything["rest"]["nodes"] == 0
    assert everything["rest"]["contribution"] == pytest.approx(0.0, abs=1e-12)


def test_a_neighbourhood_has_the_nodes_of_largest_influence_and_the_edges_among_them(client: Client, model: Any):
    found = get(client, "neighbourhood", id="n8", size=12)
    schemas.Neighbourhood.model_validate(found)
    nodes = found["nodes"]
    assert (found["centre"], nodes[0]["id"], nodes[0]["x"], nodes[0]["y"]) == ("n8", "n8", 0.0, 0.0)
    assert len(nodes) == found["shown"] == 12
    explained = pprop.explain(model, 8, k=60)
    order = np.argsort(-np.abs(explained.weights), kind="stable")
    weights = dict(zip(explained.names, explained.weights, strict=True))
    assert nodes[-1]["influence"] == pytest.approx(sorted(explained.weights)[-12])
    assert {one["id"] for one in nodes[1:4]} <= {explained.names[at] for at in order[:12]}
    assert [one["influence"] for one in nodes] == pytest.approx([weights[one["id"]] for one in nodes])
    shown = [one["id"] for one in nodes]
    adjacency = model.graph_.adjacency.toarray()
    places = [int(name[1:]) for name in shown]
    edges = {frozenset((one["source"], one["target"])) for one in found["edges"]}
    wanted = {
        frozenset((a, b))
        for a, u in zip(shown, places, strict=True)
        for b, v in zip(shown, places, strict=True)
        if u < v and adjacency[u, v]
    }
    assert edges == wanted
    assert found == get(client, "neighbourhood", id="n8", size=12)  # the same picture
    apart = np.array([[one["x"], one["y"]] for one in nodes])
    gaps = np.linalg.norm(apart[:, None] - apart, axis=2) + np.eye(12)
    assert gaps.min() > 0.02


def test_search(client: Client, model: Any):
    found = get(client, "search", q="n5")
    schemas.FoundAnswer.model_validate(found)
    assert found["total"] == 11
    assert found["nodes"][0]["id"] == "n5"
    assert get(client, "search", q="TITLE 59")["nodes"][0]["id"] == "n59"
    assert get(client, "search", q="nowhere") == {"total": 0, "nodes": []}
    assert [one["id"] for one in get(client, "search", limit=2, offset=3)["nodes"]] == ["n3", "n4"]
    unsure = get(client, "search", order="confidence", limit=60)["nodes"]
    assert [one["confidence"] for one in unsure] == sorted(one["confidence"] for one in unsure)
    wrong = get(client, "search", label="art", predicted="maths", role="test", limit=100)
    labels, predicted = np.asarray(model.graph_.labels), model.predict()
    assert wrong["total"] == ((labels == 0) & (predicted == "maths")).sum()
    assert get(client, "search", role="training")["total"] == len(model.train_nodes_)
    assert get(client, "search", role="validation")["total"] == len(model.stopping_nodes_) > 0
    assert get(client, "search", role="unlabelled")["total"] == 3
    assert get(client, "search", distance="0")["total"] == len(model.train_nodes_)
    assert (
        get(client, "search", distance="unreachable")["total"]
        + sum(get(client, "search", distance=str(d))["total"] for d in range(20))
        == 60
    )


def test_diagnostics_are_of_test_nodes(client: Client, model: Any):
    found, labels = get(client, "diagnostics"), np.asarray(model.graph_.labels)
    schemas.Diagnostics.model_validate(found)
    assert sum(map(sum, found["confusion"])) == found["tested"] == 57 - len(model.known_nodes_)
    assert found["accuracy"] == get(client, "model")["accuracy"]
    right = sum(found["confusion"][k][k] for k in range(3))
    assert found["accuracy"] == pytest.approx(right / found["tested"])
    for role, nodes in (("training", model.train_nodes_), ("validation", model.stopping_nodes_)):
        assert [one[role] for one in found["classes"]] == np.bincount(labels[nodes], minlength=3).tolist()
    assert sum(one["test"] for one in found["classes"]) == found["tested"]
    assert sum(one["labelled"] for one in found["classes"]) == 57
    assert sum(one["predicted"] for one in found["classes"]) == 60
    assert sum(one["nodes"] for one in found["distance"]) == sum(one["nodes"] for one in found["confidence"]) == 60
    cell = get(client, "search", label="art", predicted="art", role="test")
    assert cell["total"] == found["confusion"][0][0]
    assert [one["id"] for one in found["uncertain"]] == [
        one["id"] for one in get(client, "search", order="confidence")["nodes"]
    ]


def test_bins_of_confidence_are_searches(client: Client, model: Any):
    bins = get(client, "diagnostics")["confidence"]
    confidence = model.predict_proba().max(axis=1)
    assert sum(one["nodes"] > 0 for one in bins) > 2
    for one in bins:
        found = get(client, "search", confidence_from=one["from"], confidence_to=one["to"], limit=60)
        assert found["total"] == len(found["nodes"]) == one["nodes"]
        wanted = np.flatnonzero((confidence >= one["from"]) & (confidence < one["to"] + (one["to"] == 1)))
        assert [node["id"] for node in found["nodes"]] == [f"n{at}" for at in wanted]
    half = get(client, "search", confidence_to=0.5)["total"]
    assert half + get(client, "search", confidence_from=0.5)["total"] == get(client, "search")["total"] == 60
    parameters = client.get("/openapi.json").json()["paths"]["/api/v1/search"]["get"]["parameters"]
    bounds = {one["name"]: one for one in parameters if one["name"].startswith("confidence")}
    assert set(bounds) == {"confidence_from", "confidence_to"}
    for one in bounds.values():
        assert one["description"]
        assert {"type": "number", "minimum": 0, "maximum": 1}.items() <= one["schema"].items()


def test_a_threshold_is_described_and_decides_about_predictions_alone():
    model = fitted(planted(), stopping=0.5, threshold=0.05, positive="art")
    client, limit, labels = client_of(model), model.threshold_, np.asarray(model.graph_.labels)
    card = get(client, "model")
    schemas.Card.model_validate(card)
    found = card["threshold"]
    assert (found["positive"], found["probability"], found["rule"]) == ("art", 0.05, "a given probability")
    assert (found["precision"], found["recall"]) == (limit.precision, limit.recall)
    counts = (limit.nodes, limit.positives, limit.taken, limit.hits)
    assert tuple(found[name] for name in ("nodes", "positives", "taken", "hits")) == counts
    assert found["nodes"] == card["validation_nodes"]
    assert found["sentence"] == limit.sentence()
    answers = post(client, "predict", {"ids": [f"n{k}" for k in range(60)]})["predictions"]
    assert [one["predicted"] for one in answers] == model.predict().tolist()
    alone = np.array([one["network"] for one in answers])
    tested = [k for k, one in enumerate(answers) if one["role"] == "test"]
    assert np.mean(alone[tested].argmax(axis=1) != model.fitted_.target.choose(alone[tested])) > 0.1
    for row in get(client, "diagnostics")["distance"]:
        here = [k for k in tested if answers[k]["distance"] == row["distance"]]
        if here:
            assert row["network_accuracy"] == pytest.approx(np.mean(alone[here].argmax(axis=1) == labels[here]))


def test_a_model_without_a_threshold_describes_none(client: Client):
    assert get(client, "model")["threshold"] is None


def test_ids_that_are_numbers_come_as_numbers_and_are_found_as_text():
    client = client_of(fitted(planted(ids=False)))
    found = post(client, "predict", {"ids": [7, "8"]})
    assert [one["id"] for one in found["predictions"]] == [7, 8]
    assert get(client, "explain", id="7")["id"] == 7


def test_a_model_solved_exactly():
    model = fitted(planted(), pprop.PPNPClassifier)
    client = client_of(model)
    assert get(client, "model")["steps"] is None
    found = get(client, "explain", id="n1", k=5)
    assert found["logit"] == pytest.approx(float(model.logits_[1].max()), abs=1e-5)
    many = get(client, "explain", id="n1", alpha=0.1, steps=200)
    assert many["logit"] == pytest.approx(found["logit"], abs=1e-6)
    assert post(client, "predict", {"ids": ["n1"], "alpha": 0.9})["steps"] is None
    assert post(client, "what-if", {"id": "n1"})["moved_total"] == 0
    assert client.get("/api/v1/explain?id=n1&alpha=1e-5").status_code == 422


def test_a_network_alone_explains_itself_and_spreads_nothing():
    client = client_of(fitted(planted(), pprop.MLPNodeClassifier))
    card = get(client, "model")
    assert (card["alpha"], card["steps"], card["spreads"], card["explains"]) == (None, None, False, True)
    found = get(client, "explain", id="n1")
    assert [one["id"] for one in found["contributors"]] == ["n1"]
    assert found["contributors"][0]["contribution"] == found["logit"]
    assert get(client, "neighbourhood", id="n1")["shown"] > 1  # its neighbours, without influence
    for answer in (
        client.get("/api/v1/explain?id=n1&alpha=0.5"),
        client.post("/api/v1/what-if", json={"id": "n1"}),
    ):
        assert (answer.status_code, answer.json()["error"]) == (409, "not_for_this_model")
        assert "nothing is spread" in answer.json()["message"]


def test_a_model_whose_layers_propagate_predicts_and_explains_nothing():
    model = fitted(planted(), pprop.GCNClassifier)
    client = client_of(model)
    assert post(client, "predict", {"ids": ["n1"]})["predictions"][0]["network"] is None
    assert get(client, "diagnostics")["distance"][0]["network_accuracy"] is None
    for answer in (
        client.get("/api/v1/explain?id=n1"),
        client.get("/api/v1/neighbourhood?id=n1"),
        client.post("/api/v1/what-if", json={"id": "n1"}),
        client.post("/api/v1/predict-new", json={"features": {}}),
    ):
        assert answer.status_code == 409
        assert "GCNClassifier" in answer.json()["message"]


def test_label_propagation_explains_by_labels():
    graph = planted()
    known = np.arange(0, 57, 4)
    model = pprop.LabelPropagationClassifier(graph).fit(known, np.array(CLASSES)[np.asarray(graph.labels)[known]])
    client = client_of(model)
    found = get(client, "explain", id="n1", k=50)
    assert all(one["role"] == "training" for one in found["contributors"])
    assert client.get("/api/v1/explain?id=n1&alpha=0.5").status_code == 409


def test_a_directed_graph_has_edges_from_the_giver_to_the_receiver():
    graph = planted(directed=True, weighted=True)
    client = client_of(fitted(graph))
    found = get(client, "neighbourhood", id="n3", size=40)
    adjacency = graph.adjacency.toarray()
    assert found["edges"]
    for edge in found["edges"]:
        weight = adjacency[int(edge["target"][1:]), int(edge["source"][1:])]
        assert edge["weight"] == pytest.approx(weight)
        assert weight > 0


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/api/v1/model", "/api/v1/explain?id=n1", "/api/v1/explain?id=nobody"]
)
def test_head_is_get_without_a_body(client: Client, path: str):
    found, head = client.get(path), client.request("HEAD", path)
    assert head.content == b""
    assert (head.status_code, dict(head.headers)) == (found.status_code, dict(found.headers))


def test_an_integer_may_be_written_with_a_point():
    numbered = Client(create_app(Holder(Served(fitted(planted(ids=False)).fitted_, "numbers")), ServerLimits()))
    whole = numbered.post("/api/v1/predict", json={"ids": [7, 8], "steps": 138}).json()
    assert numbered.post("/api/v1/predict", json={"ids": [7.0, "8"], "steps": 138.0}).json() == whole
    assert [one["id"] for one in whole["predictions"]] == [7, 8]
    assert len(numbered.post("/api/v1/what-if", json={"id": 7, "k": 5.0}).json()["explanation"]["contributors"]) == 5
    for steps in (1.5, True, "3", 1e300):
        assert numbered.post("/api/v1/predict", json={"ids": [7], "steps": steps}).status_code == 422
