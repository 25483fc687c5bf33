"""Kill ``pprop serve --live`` in the middle of edits, start it again each time, and look for every acknowledged edit.

    python experiments/serve_kill.py --kills 50 > results/serve_kill.txt

A small model is served on loopback. Four clients send batches of edits without a pause: each adds a node of its own and one
edge of it, so that a half batch would be seen. The server is killed (SIGKILL) at a random moment after its first answer,
started again with the same log, and asked for all nodes: every batch that was acknowledged must be there, with its edge, and
of the others each is there as a whole or not at all. Every few kills the beginning of a line is put at the end of the log as
well, as by a machine that went down in the middle of a write.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from serve_fuzz import small_model

FORKS = multiprocessing.get_context("forkserver")
# imported once: a start then takes little time
PRELOADED = [
    "pprop.cli.app",
    "pprop.estimators",
    "pprop.serve.app",
    "pprop.serve.live",
    "pprop.kernels.numba_cpu.backend",
]
CLIENTS = 4
CUT_EVERY = 5


def call(address: str, path: str, body: Any = None) -> Any:
    """Return an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def serve(folder: Path, port: int) -> None:
    """Run the command, silently."""
    from pprop.cli.app import run

    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    words = ["serve", str(folder / "model"), "--graph", str(folder / "graph.npz"), "--port", str(port)]
    sys.exit(run([*words, "--live", str(folder / "edits.log")]))


def start(folder: Path) -> tuple[BaseProcess, str]:
    """Start a server and return it with its address, when it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = FORKS.Process(target=serve, args=(folder, port))
    process.start()
    address = f"http://127.0.0.1:{port}"
    while True:
        try:
            call(address, "/readyz")
        except OSError:
            if not process.is_alive():
                raise RuntimeError(f"The server did not start: {(folder / 'said').read_text()}") from None
            time.sleep(0.05)
        else:
            return process, address


def edit_on(address: str, names: list[str], acknowledged: set[str], sent: set[str], stop: threading.Event) -> None:
    """Send batch after batch until the server is gone."""
    while not stop.is_set():
        name = names.pop()
        batch = [
            {"op": "add_node", "id": name, "features": {"f0": 1.0, "f3": 2.0}},
            {"op": "add_edge", "source": name, "target": str(random.randrange(60)), "weight": 1.0},
        ]
        sent.add(name)
        try:
            call(address, "/api/v1/edits", {"edits": batch})
        except (OSError, urllib.error.URLError, ValueError):
            return
        acknowledged.add(name)


def found(address: str, names: list[str]) -> dict[str, int]:
    """Return the number of edges of each of these nodes that is there."""
    with urllib.request.urlopen(f"{address}/api/v1/predictions", timeout=60) as answer:
        there = {json.loads(line)["id"] for line in answer}
    degrees: dict[str, int] = {}
    here = [name for name in names if name in there]
    for first in range(0, len(here), 1000):
        answer = call(address, "/api/v1/predict", {"ids": here[first : first + 1000]})
        degrees |= {one["id"]: one["degree"] for one in answer["predictions"]}
    return degrees


def main() -> None:
    """Kill, start again, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    lost, half, cuts, kept = 0, 0, 0, 0
    acknowledged: set[str] = set()
    sent: set[str] = set()
    begin = time.perf_counter()
    FORKS.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = small_model()
        model.save(folder / "model")
        from pprop.graph import write_npz

        write_npz(model.graph_, folder / "graph.npz")
        log = folder / "edits.log"
        server, address = start(folder)
        for kill in range(options.kills):
            stop, before = threading.Event(), len(acknowledged)
            names = [f"k{kill}-{number}" for number in range(100_000)]
            threads = [
                threading.Thread(target=edit_on, args=(address, names, acknowledged, sent, stop))
                for _ in range(CLIENTS)
            ]
            for thread in threads:
                thread.start()
            while len(acknowledged) == before and any(thread.is_alive() for thread in threads):
                time.sleep(0.001)
            time.sleep(random.uniform(0.0, 0.5))
            server.kill()
            stop.set()
            server.join()
            for thread in threads:
                thread.join()
            if kill % CUT_EVERY == CUT_EVERY - 1:  # a line that was begun and never acknowledged
                line = log.read_bytes().splitlines(keepends=True)[-1]
                with log.open("ab") as stream:
                    stream.write(line[: random.randrange(1, len(line))])
                cuts += 1
            server, address = start(folder)
            degrees = found(address, sorted(sent))
            lost += len(acknowledged - set(degrees))
            half += sum(degree < 1 for degree in degrees.values())
            kept = len(set(degrees) - acknowledged)
            done = len(acknowledged) - before
            print(f"kill {kill + 1:3}: {done:4} batches acknowledged, {lost} lost, {half} half", flush=True)
        server.terminate()
        server.join()
    print(
        f"{options.kills} kills, {cuts} lines cut, {len(acknowledged)} acknowledged batches, {lost} lost, {half} half; {kept} "
        f"of {len(sent) - len(acknowledged)} unacknowledged ones are there, whole; {time.perf_counter() - begin:.0f} s"
    )
    sys.exit(bool(lost or half))


if __name__ == "__main__":
    main()
