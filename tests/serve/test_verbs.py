"""The verbs serve and explore: what they refuse before they listen, and one server from its start to its end."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pprop
from pprop.cli.app import run
from pprop.graph import write_npz
from pprop.serve.names import names_of

Refused = Callable[..., tuple[int, str]]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Call the command, which is to fail, and return its code and its only line."""

    def call(*words: object) -> tuple[int, str]:
        code = run([str(word) for word in words])
        out, err = capsys.readouterr()
        assert out == ""
        lines = [line for line in err.splitlines() if line.startswith("pprop")]
        assert len(lines) == 1
        return code, lines[0]

    return call


@pytest.fixture
def folder(model: Any, tmp_path: Path) -> Path:
    """A saved model, and its graph beside it."""
    write_npz(model.graph_, tmp_path / "graph.npz")
    source = pprop.GraphSource("npz", {"path": str(tmp_path / "graph.npz")})
    model.save(tmp_path / "model", source=source)
    return tmp_path / "model"


def test_an_address_that_others_reach_needs_a_token(refused: Refused, folder: Path):
    code, line = refused("serve", folder, "--host", "0.0.0.0")
    assert code == 3
    assert line.startswith("pprop serve: A server at '0.0.0.0', which other machines reach, needs a token")


def test_a_port_in_use_is_said_before_a_model_is_loaded_or_trained(
    refused: Refused, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pprop.APPNPClassifier, "fit", lambda *_, **__: pytest.fail("trained"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for verb, what in (("serve", folder), ("explore", "citeseer")):
            assert refused(verb, what, "--port", port) == (
                4,
                f"pprop {verb}: Port {port} of 127.0.0.1 is in use. Choose another one with --port.",
            )
    assert refused("serve", folder, "--port", 70000)[0] == 3


def test_a_damaged_or_newer_or_missing_model(refused: Refused, folder: Path, tmp_path: Path):
    code, line = refused("serve", tmp_path / "nothing")
    assert (code, "There is no folder" in line) == (4, True)
    manifest = folder / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "format_version": 99}))
    code, line = refused("serve", folder)
    assert (code, "Install a newer pprop" in line) == (3, True)
    manifest.write_text(json.dumps(content))
    (folder / "weights.safetensors").write_bytes(b"damaged")
    code, line = refused("explore", folder)
    assert (code, "is damaged" in line) == (3, True)


def test_a_model_whose_graph_is_gone(refused: Refused, folder: Path, tmp_path: Path):
    (tmp_path / "graph.npz").unlink()
    code, line = refused("serve", folder)
    assert code in (3, 4)
    assert "graph.npz" in line


def test_a_log_of_another_graph_or_no_log(refused: Refused, folder: Path, tmp_path: Path):
    (tmp_path / "log").write_text("a,b\n1,2\n")
    code, line = refused("serve", folder, "--live", tmp_path / "log", "--port", 0)
    assert (code, "is no log of edits" in line) == (3, True)


def test_a_dataset_that_does_not_exist(refused: Refused):
    code, line = refused("explore", "citeseeer")
    assert (code, "citeseer" in line) == (4, True)


def test_names_are_columns_of_the_node_table(tmp_path: Path):
    rows = [f"{k},{'red' if k % 2 else 'blue'},{k}.5,Title {k},{'word ' * 100}" for k in range(12)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,topic,size,Title,abstract", *rows]))
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *(f"{k},{(k + 2) % 12}" for k in range(12))]))
    arguments = {
        "path": str(tmp_path / "edges.csv"),
        "nodes": str(tmp_path / "nodes.csv"),
        "label_column": "topic",
        "feature_columns": ["size"],
    }
    source = pprop.GraphSource("edges", arguments)
    graph = source.read()
    assert names_of(graph, None) == (None, None)  # nobody knows where the graph was read
    names, texts = names_of(graph, source)
    assert names == [f"Title {k}" for k in range(12)]
    assert texts is not None
    assert texts[3] == ("word " * 100).strip()


def read_terminal(master: int, until: Callable[[str], object], seconds: float = 600.0) -> str:
    """Return what a command shows on its terminal, up to something or, with an error, a limit of time or its end."""
    text, end = "", time.monotonic() + seconds
    while not until(text):
        ready, _, _ = select.select([master], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"Nothing more came in time after: {text[-300:]!r}"
        text += os.read(master, 4096).decode("utf-8", "replace")
    return text


@pytest.mark.slow
def test_exploring_without_a_model_trains_one_and_serves_it(tmp_path: Path):
    pty = pytest.importorskip("pty", reason="a terminal, on which progress is drawn")
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "pprop", "explore", "--no-browser", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PPROP_DATA", "PPROP_TOKEN")}
    environment |= {"COLUMNS": "120", "TERM": "xterm", "PYTHONPATH": str(Path(pprop.__file__).parents[1])}
    process = subprocess.Popen(command, stdout=terminal, stderr=terminal, cwd=tmp_path, env=environment)
    try:
        os.close(terminal)
        shown = read_terminal(master, lambda text: "Ctrl-C ends it." in text)
        assert "No model is given: training APPNP on recipes" in shown
        trained = shown.index("Trained in ")
        assert shown.index("No model is given") < shown.index("epoch ") < trained
        epochs = [int(one) for one in re.findall(r"runs, epoch (\d+)", shown[:trained])]
        assert len(set(epochs)) > 2  # it moves while the model is trained
        assert epochs == sorted(epochs)
        found = re.search(r"APPNP on recipes: (http://127\.0\.0\.1:\d+/)", shown[trained:])
        assert found is not None
        accuracy = re.search(r"; ([\d.]+)% of [\d,]+ test nodes are right", shown[trained:])
        assert accuracy is not None
        assert 75 < float(accuracy[1]) < 95
        address = found[1]
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert answer.headers["content-type"].startswith("text/html")
            assert b"pprop" in answer.read()
        with urllib.request.urlopen(f"{address}readyz", timeout=30) as answer:
            assert json.load(answer) == {"status": "ready"}
        request = urllib.request.Request(
            f"{address}api/v1/predict", b'{"ids": ["quick-lamb-dip"]}', {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            (prediction,) = json.load(answer)["predictions"]
        assert prediction["id"] == "quick-lamb-dip"
        assert sum(prediction["probabilities"]) == pytest.approx(1.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        with suppress(OSError):  # a terminal that nobody writes to any more
            shown += os.read(master, 4096).decode("utf-8", "replace")
        assert "Traceback" not in shown
        assert list(tmp_path.iterdir()) == []  # nothing is left behind
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.slow
def test_a_server_from_its_start_to_its_end(folder: Path, tmp_path: Path):
    command = [sys.executable, "-m", "pprop", "serve", str(folder), "--port", "0", "--json"]
    environment = {**os.environ, "PPROP_TOKEN": "from-the-environment"}
    log = ["--live", str(tmp_path / "edits.log")]
    with subprocess.Popen([*command, *log], stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        request = urllib.request.Request(
            f"{address}api/v1/model", headers={"Authorization": "Bearer from-the-environment"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            card = json.load(answer)
        assert (card["nodes"], card["live"]) == (60, True)
        with urllib.request.urlopen(f"{address}healthz", timeout=30) as answer:
            assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        with socket.create_connection(("127.0.0.1", int(address.rstrip("/").rpartition(":")[2]))) as raw:
            raw.sendall(b"nonsense\r\n\r\n")
            assert b"400" in raw.recv(1000)
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
