"""The verbs serve and explore: what they refuse before they listen, and one server from its start to its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
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


def test_a_port_in_use(refused: Refused, folder: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("serve", folder, "--port", port) == (
            4,
            f"pprop serve: Port {port} of 127.0.0.1 is in use. Choose another one with --port.",
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
    assert (code, "citeseer" in line) == (3, True)


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
