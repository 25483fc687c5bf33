"""Requests that are wrong, too large, too many or from elsewhere: one clear answer each, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.serve.browser import serving
from tests.serve.serving import TOKEN, Client, fitted, planted

from pprop._errors import InputError
from pprop.serve import faults
from pprop.serve.app import create_app
from pprop.serve.guard import POLICY
from pprop.serve.holder import Holder
from pprop.serve.limits import ServerLimits
from pprop.serve.page_files import PageFiles
from pprop.serve.served import Served


def refused(answer: Any, status: int, code: str) -> str:
    """Check the form of an answer that is an error, and return its sentence."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"error", "message"}
    assert body["error"] == code
    assert "\n" not in body["message"]
    assert "Traceback" not in body["message"]
    return body["message"]


def post(client: Client, path: str, body: Any, **options: Any) -> Any:
    return client.post(f"/api/v1/{path}", json=body, **options)


@pytest.mark.parametrize("path", ["explain", "neighbourhood"])
def test_an_unknown_id(client: Client, path: str):
    assert refused(client.get(f"/api/v1/{path}?id=nobody"), 404, "unknown_node") == (
        "There is no node 'nobody' in the graph."
    )
    refused(client.get(f"/api/v1/{path}"), 422, "invalid")


def test_numbers_beyond_all_floats(client: Client):
    told = refused(post(client, "predict-new", {"features": {"f1": 10**400}}), 422, "invalid")
    assert told == "A feature is too large for the numbers of this graph."
    told = refused(post(client, "predict-new", {"features": [10**400, 0, 0, 0, 0, 0]}), 422, "invalid")
    assert told == "features.0: Input should be a valid number."


def test_a_list_with_a_value_that_is_no_number_is_told_as_such(client: Client):
    body = b'{"features": [0, NaN, 0, 0, 0, 0]}'
    answer = client.post("/api/v1/predict-new", content=body, headers={"Content-Type": "application/json"})
    assert refused(answer, 422, "invalid").startswith("features.1: Input should be a finite number")


def test_names_of_files_that_no_system_has(client: Client):
    for name in ("a" * 300 + ".js", "a/" * 3000 + "a.js"):
        refused(client.get(f"/static/{name}"), 404, "not_found")


def head_of(connection: socket.socket) -> tuple[bytes, dict[str, Any]]:
    """Return the head and the JSON of an answer."""
    head = b""
    with connection.makefile("rb") as lines:
        while (line := lines.readline()) not in (b"\r\n", b""):
            head += line.lower()
        length = next(int(line.split(b":")[1]) for line in head.splitlines() if line.startswith(b"content-length"))
        body = lines.read(length)
    return head, json.loads(body)


def test_heads_that_do_not_end_and_too_many_connections(served: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pprop.serve.protocol.HEAD_SECONDS", 0.5)
    monkeypatch.setattr("pprop.serve.protocol.MOST_CONNECTIONS", 2)
    with serving(served) as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
        first, second, third = (socket.create_connection(("127.0.0.1", port), 20) for _ in range(3))
        with first, second, third:
            third.sendall(head + b"\r\n")
            told, body = head_of(third)
            assert told.startswith(b"http/1.1 503")
            assert b"retry-after: 5" in told
            assert b"x-content-type-options: nosniff" in told
            assert body["error"] == "busy"
            first.sendall(head + b"\r\n")
            assert head_of(first)[1] == {"status": "ok"}
            first.sendall(head)  # of a second request, which does not end
            assert first.recv(1) == b""
            assert second.recv(1) == b""  # nothing at all


def test_an_unknown_id_among_many(client: Client):
    refused(post(client, "predict", {"ids": ["n1", "n60"]}), 404, "unknown_node")
    refused(post(client, "predict-new", {"features": {}, "edges": [{"id": 3}]}), 404, "unknown_node")
    refused(post(client, "what-if", {"id": "n1", "remove": [{"source": "n1", "target": "?"}]}), 404, "unknown_node")
    long = refused(post(client, "predict", {"ids": ["x" * 10_000]}), 404, "unknown_node")
    assert len(long) < 200
    refused(client.get("/api/v1/explain?id=n1&class=physics"), 404, "unknown_class")
    refused(post(client, "what-if", {"id": "n1", "class": "physics"}), 404, "unknown_class")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"ids": ["n1"], "alpha": NaN}',
        b'{"ids": ["n1"], "alpha": ' + b"9" * 5000 + b"}",
        b'{"ids": ["n1"], "alpha": 1e999}',
    ],
)
def test_a_malformed_body(client: Client, body: bytes):
    answer = client.post("/api/v1/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    refused(answer, answer.status_code, answer.json()["error"])


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"ids": []},
        {"ids": ["n1"] * 1001},
        {"ids": [True]},
        {"ids": [1.5]},
        {"ids": [["n1"]]},
        {"ids": "n1"},
        {"ids": ["n1"], "alpha": 0},
        {"ids": ["n1"], "alpha": 1.01},
        {"ids": ["n1"], "alpha": "0.1"},
        {"ids": ["n1"], "steps": 0},
        {"ids": ["n1"], "steps": 201},
        {"ids": ["n1"], "steps": 2.5},
        {"ids": ["n1"], "unknown": 1},
    ],
)
def test_a_body_of_another_shape(client: Client, body: Any):
    refused(post(client, "predict", body), 422, "invalid")


@pytest.mark.parametrize(
    "query",
    [
        "explain?id=n1&k=0",
        "explain?id=n1&k=1001",
        "explain?id=n1&alpha=nan",
        "explain?id=n1&alpha=0",
        "explain?id=n1&steps=201",
        "neighbourhood?id=n1&size=201",
        "neighbourhood?id=n1&size=x",
        "search?order=size",
        "search?limit=-1",
        "search?distance=far",
        "search?role=maybe",
        "search?confidence_from=-0.1",
        "search?confidence_to=1.1",
        "search?confidence_from=nan",
        "search?confidence_to=sure",
        "search?confidence_from=",
        "search?confidence_from=0.6&confidence_to=0.5",
    ],
)
def test_a_wrong_query(client: Client, query: str):
    refused(client.get(f"/api/v1/{query}"), 422, "invalid")


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ({"f9": 1.0}, "There is no feature 'f9'"),
        ({"f1": "red"}, "is a number"),
        ({"f1": None}, "is a number"),
        ([1.0, 2.0], "has 6 features. Got 2 instead"),
        ([1.0] * 7, "Got 7 instead"),
    ],
)
def test_wrong_feature_names_or_lengths(client: Client, features: Any, sentence: str):
    assert sentence in refused(post(client, "predict-new", {"features": features}), 422, "invalid")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_features_that_are_not_finite(client: Client, number: str):
    for body in (f'{{"features": {{"f1": {number}}}}}', f'{{"features": [{number},1,1,1,1,1]}}'):
        answer = client.post("/api/v1/predict-new", content=body, headers={"content-type": "application/json"})
        refused(answer, 422, "invalid")


def test_features_too_large_for_the_numbers_of_the_graph():
    graph = planted()
    narrow = graph.replace(features=graph.features.astype("float32"), feature_names=graph.feature_names)  # pyright: ignore[reportOptionalMemberAccess]
    client = Client(create_app(Holder(Served(fitted(narrow).fitted_, "narrow")), ServerLimits()))
    assert "too large" in refused(post(client, "predict-new", {"features": {"f1": 1e300}}), 422, "invalid")


def test_features_too_large_for_the_network(client: Client):
    body = {"features": {f"f{k}": 1e300 for k in range(6)}}
    assert "no finite number" in refused(post(client, "predict-new", body), 422, "invalid")


def test_a_failure_of_the_server_is_one_sentence_too(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    from pprop.serve import diagnostics

    monkeypatch.setattr(diagnostics, "diagnostics", lambda view: 1 / 0)
    client = Client(create_app(Holder(served), ServerLimits()))
    refused(client.get("/api/v1/diagnostics"), 500, "failed")
    assert "ZeroDivisionError" in caplog.text
    assert client.get("/api/v1/model").status_code == 200


def test_a_huge_body_is_refused_by_its_length(guarded: Client):
    headers = {"authorization": f"Bearer {TOKEN}"}
    refused(post(guarded, "predict", {"ids": ["n1"] * 400}, headers=headers), 413, "too_large")
    assert post(guarded, "predict", {"ids": ["n1"]}, headers=headers).status_code == 200


def test_a_huge_body_without_a_length_is_refused_while_it_comes(guarded: Client):
    sent = 0

    async def pieces() -> Any:
        nonlocal sent
        while sent < 10_000:
            sent += 100
            yield b"[" * 100

    answer = guarded.post("/api/v1/predict", content=pieces(), headers={"authorization": f"Bearer {TOKEN}"})
    refused(answer, 413, "too_large")


def test_a_body_that_does_not_arrive(served: Served):
    app = create_app(Holder(served), ServerLimits(seconds=0.05))
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.sleep(10)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": "/api/v1/predict", "headers": headers, "client": ("::1", 1)}
    asyncio.run(app(scope, never, send))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"] == "too_slow"


def test_an_answer_that_takes_too_long(served: Served, monkeypatch: pytest.MonkeyPatch):
    import time

    from pprop.serve import answers

    monkeypatch.setattr(answers, "explain", lambda *arguments: time.sleep(0.3))
    client = Client(create_app(Holder(served), ServerLimits(seconds=0.05)))
    refused(client.get("/api/v1/explain?id=n1"), 503, "too_slow")


def test_a_flood_is_told_when_to_come_again(served: Served):
    client = Client(create_app(Holder(served), ServerLimits(rate=5)))
    answers = [client.get("/healthz") for _ in range(40)]
    late = [answer for answer in answers if answer.status_code != 200]
    assert len(late) >= 20
    for answer in late:
        refused(answer, 429, "too_many_requests")
        assert int(answer.headers["retry-after"]) >= 1
    assert Client(client._app, "192.168.0.7").get("/healthz").status_code == 200  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../served.py",
        "/static/%2e%2e/served.py",
        "/static/..%2fserved.py",
        "/static//etc/passwd",
        "/static/.hidden.js",
        "/static/a\\..\\b.js",
        "/static/served.py",
        "/static/",
        "/static/%00.js",
        "/static/x.js/",
    ],
)
def test_path_tricks(client: Client, path: str):
    refused(client.get(path), 404, "not_found")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path):
    folder = tmp_path / "page"
    folder.mkdir()
    (tmp_path / "secret.js").write_text("secret")
    (folder / "link.js").symlink_to(tmp_path / "secret.js")
    with pytest.raises(faults.Fault, match="no such file"):
        PageFiles(folder).read("link.js")


def test_files_of_the_page_have_types_tags_and_a_policy(served: Served, tmp_path: Path):
    for name in ("index.html", "app.js", "style.css"):
        (tmp_path / name).write_text(name)
    client = Client(create_app(Holder(served), ServerLimits(), files=PageFiles(tmp_path)))
    kinds = {"/": "text/html", "/static/app.js": "text/javascript", "/static/style.css": "text/css"}
    for path, kind in kinds.items():
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-content-type-options"] == "nosniff"
        again = client.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    (tmp_path / "app.js").write_text("another")
    assert client.get("/static/app.js").text == "another"


def test_a_parameter_that_there_is_not(client: Client):
    told = refused(client.get("/api/v1/search?training=true&q=n"), 422, "invalid")
    assert told.startswith(
        "The query has no parameter 'training'. Its parameters: q, label, predicted, role, distance,"
    )
    assert refused(client.get("/api/v1/model?x=1"), 422, "invalid") == "The query has no parameter 'x'. It has none."


def test_another_path(client: Client):
    refused(client.get("/api/v2/model"), 404, "not_found")


def test_a_wrong_method_is_told_all_right_ones(client: Client):
    right = {
        "/api/v1/edits": "GET, HEAD, POST",
        "/api/v1/predict": "POST",
        "/api/v1/model": "GET, HEAD",
        "/": "GET, HEAD",
    }
    for path, methods in right.items():
        answer = client.request("DELETE", path)
        refused(answer, 405, "wrong_method")
        assert answer.headers["allow"] == methods
    assert client.request("HEAD", "/api/v1/predict").headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (None, "no_token"),
        ("Bearer wrong", "wrong_token"),
        ("Bearer", "wrong_token"),
        (f"Basic {TOKEN}", "wrong_token"),
        (f"Bearer {TOKEN} more", "wrong_token"),
        ("Bearer \xff", "wrong_token"),
    ],
)
def test_a_missing_or_wrong_token(guarded: Client, given: str | None, code: str):
    headers = {} if given is None else {"authorization": given.encode("latin-1")}
    for path in ("/api/v1/model", "/metrics", "/readyz", "/openapi.json"):
        answer = guarded.get(path, headers=headers)
        refused(answer, 401, code)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_the_right_token_and_what_needs_none(guarded: Client):
    assert guarded.get("/api/v1/model", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/static/nothing.js").status_code == 404


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "attacker.example"}, "wrong_host"),
        ({"host": "attacker.example:8642"}, "wrong_host"),
        ({"host": "localhost.attacker.example"}, "wrong_host"),
        ({"host": ""}, "wrong_host"),
        ({"host": "192.168.0.3"}, "wrong_host"),
        ({"origin": "https://attacker.example"}, "other_site"),
        ({"origin": "http://127.0.0.1:3000"}, "other_site"),
        ({"origin": "http://localhost:8642"}, "other_site"),
        ({"origin": "null"}, "other_site"),
        ({"sec-fetch-site": "cross-site"}, "other_site"),
        ({"sec-fetch-site": "same-site"}, "other_site"),
    ],
)
def test_requests_that_another_site_makes_a_browser_send(client: Client, headers: dict[str, str], code: str):
    refused(client.get("/api/v1/model", headers=headers), 403, code)
    refused(post(client, "predict", {"ids": ["n1"]}, headers=headers), 403, code)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://127.0.0.1:8642"},
        {"host": "localhost:8642", "origin": "http://localhost:8642"},
        {"host": "[::1]:8642"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_requests_of_the_page_itself(client: Client, headers: dict[str, str]):
    assert client.get("/api/v1/model", headers=headers).status_code == 200


def test_a_name_that_was_allowed(served: Served):
    client = Client(create_app(Holder(served), ServerLimits(hosts=("graph.example",))))
    answer = client.get("/api/v1/model", headers={"host": "graph.example", "origin": "https://graph.example"})
    assert answer.status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.3", "example.org"])
def test_an_address_that_others_reach_needs_a_token(host: str):
    with pytest.raises(InputError, match="needs a token"):
        ServerLimits(host=host)
    assert ServerLimits(host=host, token=TOKEN).token == TOKEN


@pytest.mark.parametrize("token", ["", "  ", "two words", "ümlaut", "line\nbreak"])
def test_a_token_that_no_header_can_hold(token: str):
    with pytest.raises(InputError, match="'token' parameter of ServerLimits must be printable ASCII"):
        ServerLimits(token=token)


def test_hostile_names_stay_text():
    hostile = "<script>alert(1)</script>\u202e\ud800"
    graph = planted()
    model = fitted(graph)
    served = Served(model.fitted_, "hostile", [hostile] * 60)
    client = Client(create_app(Holder(served), ServerLimits()))
    answer = client.get("/api/v1/search?q=script")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["nodes"][0]["name"] == hostile
    assert client.get("/api/v1/predictions").status_code == 200


def test_text_in_a_request_that_is_no_text(client: Client):
    body = b'{"ids": ["\\ud800"]}'
    answer = client.post("/api/v1/predict", content=body, headers={"content-type": "application/json"})
    refused(answer, 404, "unknown_node")
