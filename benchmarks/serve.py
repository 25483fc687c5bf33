"""Claim: what a server answers under load, on two cores that it shares with the process that loads it.

- predictions by id: 99th percentile under 10 ms at 300 requests a second; exact explanations: under 30 ms at 50 a second,
  both together, no error, and no growth of memory in ten minutes;
- the first page within a second; a slider (prediction, explanation and neighbourhood at another alpha) within 100 ms on
  PubMed; the neighbourhood of the largest hub, 200 nodes, within 300 ms.

    python benchmarks/serve.py                            # PubMed and MS Academic, ten minutes each
    python benchmarks/serve.py pubmed --seconds 30
    python benchmarks/serve.py --model folder --seconds 30

The server is ``pprop serve`` in a process of its own, the load comes from this one. Requests begin at fixed times, whether
earlier ones are answered or not, and a time is counted from the moment at which the request should have begun: waiting in a
queue counts. On a virtual machine "stolen" is the share of processor time that its host gave to others meanwhile: with more
than a few percent the figures are those of the host. "quiet" has the times of requests at moments when, for half a minute,
less than 1 % was stolen in every ten seconds, and how much of the load these moments are. Memory is the resident memory of the
server, after a fifth of the time and at the end. The last line is one JSON object; ``--json FILE`` writes it to a file too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import describe_machine, warn_if_busy

GOALS = {
    "predict_p99_ms": 10.0,
    "explain_p99_ms": 30.0,
    "first_page_ms": 1000.0,
    "slider_ms": 100.0,
    "hub_ms": 300.0,
    "growth_mib": 10.0,
}
RATES = {"predict": 300.0, "explain": 50.0}
CONNECTIONS = 8
START_SECONDS = 120
IDLE_SECONDS = 20  # the server closes connections that are idle for 30
WINDOW_SECONDS = 10
QUIET_WINDOWS, QUIET_SHARE = 3, 0.01  # windows in a row, and what may be stolen in each


def main() -> None:
    """Measure; print a table on standard error, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["pubmed", "ms_academic"])
    parser.add_argument("--model", type=Path, help="a saved model; without it, one is trained on each dataset")
    parser.add_argument("--seconds", type=float, default=600.0, help="of the load")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warn_if_busy()
    report: dict[str, Any] = {"benchmark": "serve", "machine": describe_machine("cpu"), "goals": GOALS, "graphs": {}}
    with tempfile.TemporaryDirectory() as folder:
        if options.model is not None:
            models = {options.model.name: options.model}
        else:
            models = {name: train(name, Path(folder, name)) for name in options.datasets}
        for name, model in models.items():
            found = report["graphs"][name] = asyncio.run(measure(model, options.seconds))
            print(f"{name}: {json.dumps(found, indent=1)}", file=sys.stderr)
    line = json.dumps(report)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def train(name: str, folder: Path) -> Path:
    """Train a model of the default settings, for a little while: its accuracy does not matter here."""
    command = [sys.executable, "-m", "pprop", "train", name, "--max-epochs", "100", "--no-baselines"]
    subprocess.run([*command, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder


class Connection:
    """One kept-alive connection: a request at a time, its answer read to the end. One that was idle for long is made anew."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        if self._streams is not None and time.monotonic() - self._used > IDLE_SECONDS:
            self._streams[1].close()
            self._streams = None
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        body = await reader.readexactly(length)
        self._used = time.monotonic()
        return int(lines[0].split()[1]), body

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """Return an answer, which must be a success."""
        status, content = await self.call(method, path, b"" if body is None else json.dumps(body).encode())
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {content[:300]!r}")
        return json.loads(content)


async def measure(model: Path, seconds: float) -> dict[str, Any]:
    """Start a server and return all figures."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "pprop", "serve", str(model), "--port", "0", "--json"]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert server.stdout is not None
        line = await asyncio.wait_for(server.stdout.readline(), START_SECONDS)
        port = int(json.loads(line)["address"].rstrip("/").rpartition(":")[2])
        connections = [Connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
        await connections[0].call("GET", "/readyz")
        found: dict[str, Any] = {"start_s": round(time.perf_counter() - begin, 2)}
        card = await connections[0].json("GET", "/api/v1/model")
        ids = [json.loads(line)["id"] for line in (await all_lines(port)).splitlines()]
        found["first_page_ms"] = await first_page(port, card["example"])
        found["slider_ms"] = await slider(connections, ids)
        found["hub_ms"] = await hub(connections[0], ids)
        found |= await load(port, ids, seconds, server.pid)
    finally:
        server.terminate()
        await server.wait()
    return found


async def all_lines(port: int) -> bytes:
    """Return the stream of all predictions, which has no length."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /api/v1/predictions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    content = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    parts = list[bytes]()
    while content:  # chunks: a length in hex digits, a line end, the content, a line end
        size, _, content = content.partition(b"\r\n")
        parts.append(content[: int(size, 16)])
        content = content[int(size, 16) + 2 :]
    return b"".join(parts)


async def first_page(port: int, example: Any) -> float:
    """Return the milliseconds of all that the page fetches before it shows a node, on fresh connections."""
    begin = time.perf_counter()
    one = Connection("127.0.0.1", port)
    _, page = await one.call("GET", "/")
    files = set(re.findall(r"/?static/[\w./-]+", page.decode("utf-8", "replace")))
    paths = [f"/{file.lstrip('/')}" for file in files]
    paths += ["/api/v1/model", "/api/v1/diagnostics"]
    paths += [f"/api/v1/{kind}?id={example}" for kind in ("explain", "neighbourhood")]
    await asyncio.gather(*(Connection("127.0.0.1", port).call("GET", path) for path in paths))
    await one.json("POST", "/api/v1/predict", {"ids": [example]})
    return round(1000 * (time.perf_counter() - begin), 1)


async def slider(connections: list[Connection], ids: list[Any]) -> dict[str, float]:
    """Return how long a node's prediction, explanation and neighbourhood at another alpha take together."""
    times: list[float] = []
    random.seed(0)
    for k in range(60):
        key, alpha = random.choice(ids), round(0.05 + 0.9 * k / 60 + 0.001, 4)
        begin = time.perf_counter()
        await asyncio.gather(
            connections[0].json("POST", "/api/v1/predict", {"ids": [key], "alpha": alpha}),
            connections[1].json("GET", f"/api/v1/explain?id={key}&alpha={alpha}"),
            connections[2].json("GET", f"/api/v1/neighbourhood?id={key}&alpha={alpha}"),
        )
        times.append(1000 * (time.perf_counter() - begin))
    return shares(times)


async def hub(connection: Connection, ids: list[Any]) -> dict[str, float]:
    """Return how long the neighbourhood of the node with most neighbours takes."""
    degrees: list[tuple[int, Any]] = []
    for first in range(0, len(ids), 1000):
        answer = await connection.json("POST", "/api/v1/predict", {"ids": ids[first : first + 1000]})
        degrees += [(one["degree"], one["id"]) for one in answer["predictions"]]
    key = max(degrees, key=lambda pair: pair[0])[1]
    times: list[float] = []
    for _ in range(20):
        begin = time.perf_counter()
        found = await connection.json("GET", f"/api/v1/neighbourhood?id={key}&size=200")
        times.append(1000 * (time.perf_counter() - begin))
        assert found["shown"] == 200
    return shares(times)


async def load(port: int, ids: list[Any], seconds: float, pid: int) -> dict[str, Any]:
    """Ask for predictions and explanations at fixed rates; return times, errors and memory."""
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in RATES}  # when wanted, milliseconds
    stolen: list[float] = []  # of each window
    errors: list[str] = []
    memory: dict[str, float] = {}
    free: dict[str, asyncio.LifoQueue[Connection]] = {}
    for kind in RATES:
        free[kind] = asyncio.LifoQueue()
        for _ in range(CONNECTIONS):
            free[kind].put_nowait(Connection("127.0.0.1", port))
    random.seed(1)

    async def ask(kind: str, wanted: float) -> None:
        connection = await free[kind].get()
        key = random.choice(ids)
        try:
            if kind == "predict":
                await connection.json("POST", "/api/v1/predict", {"ids": [key]})
            else:
                await connection.json("GET", f"/api/v1/explain?id={key}")
            times[kind].append((wanted - begin, 1000 * (time.perf_counter() - wanted)))
        except Exception as error:
            errors.append(f"{kind}: {error!r}"[:200])
            connection = Connection("127.0.0.1", port)
        free[kind].put_nowait(connection)

    async def every(kind: str) -> None:
        tasks: set[asyncio.Task[None]] = set()
        for k in range(int(seconds * RATES[kind])):
            wanted = begin + k / RATES[kind]
            await asyncio.sleep(max(wanted - time.perf_counter(), 0.0))
            task = asyncio.create_task(ask(kind, wanted))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def watch() -> None:
        await asyncio.sleep(seconds / 5)
        memory["after a fifth"] = resident(pid)
        await asyncio.sleep(seconds * 4 / 5)
        memory["at the end"] = resident(pid)

    async def watch_host() -> None:
        last = processor_time()
        for k in range(int(seconds // WINDOW_SECONDS)):
            await asyncio.sleep(begin + (k + 1) * WINDOW_SECONDS - time.perf_counter())
            last, before = processor_time(), last
            stolen.append(stolen_share(before, last))

    first = processor_time()
    begin = time.perf_counter() + 0.1
    await asyncio.gather(*map(every, RATES), watch(), watch_host())
    result: dict[str, Any] = {f"{kind}_ms": shares([each for _, each in some]) for kind, some in times.items()}
    quiet = {
        k for k in range(QUIET_WINDOWS - 1, len(stolen)) if max(stolen[k + 1 - QUIET_WINDOWS : k + 1]) < QUIET_SHARE
    }
    if quiet:
        result["quiet"] = {"seconds": len(quiet) * WINDOW_SECONDS} | {
            f"{kind}_ms": shares([each for at, each in found if at // WINDOW_SECONDS in quiet])
            for kind, found in times.items()
        }
    growth = memory["at the end"] - memory["after a fifth"]
    return {
        **result,
        "requests": sum(map(len, times.values())),
        "errors": len(errors),
        "first_errors": errors[:3],
        "memory_mib": memory,
        "growth_mib": round(growth, 1),
        "seconds": seconds,
        "stolen": stolen_share(first, processor_time()),
        "load": os.getloadavg()[0],
    }


def processor_time() -> tuple[int, int]:
    """Return how much time of the processors other machines on the same host have taken so far, and all of it."""
    parts = [int(one) for one in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return parts[7], sum(parts)


def stolen_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the share of processor time that was stolen between two calls of `processor_time`.

    >>> stolen_share((10, 100), (12, 200))
    0.02
    """
    return round((after[0] - before[0]) / max(after[1] - before[1], 1), 4)


def resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024, 1)


def shares(times: list[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the largest of some times.

    >>> shares([3.0, 1.0, 2.0])
    {'p50': 2.0, 'p99': 3.0, 'max': 3.0}
    """
    found = sorted(times)
    return {
        "p50": round(found[len(found) // 2], 2),
        "p99": round(found[min(int(0.99 * len(found)), len(found) - 1)], 2),
        "max": round(found[-1], 2),
    }


if __name__ == "__main__":
    main()
