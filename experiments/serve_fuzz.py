"""Make up requests from the OpenAPI document of a server, sound and unsound ones, and check every answer.

    python experiments/serve_fuzz.py --cases 10000 > results/serve_fuzz.txt

A small live model is served on loopback. schemathesis makes up requests to each endpoint, half of them as the document
wants them and half not; most of the former name nodes and features that there are. An answer must be no failure of the
server (5xx), have a status that the document names for that endpoint, the content type and the shape that it promises;
unsound requests must be refused. Edits are made for real, so the graph changes under the other requests.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

warnings.filterwarnings("ignore", category=DeprecationWarning)  # of what schemathesis imports

CLASSES = ("art", "maths", "zoology")


def small_model(n: int = 60) -> Any:
    """Return a fitted model of three classes on a small graph."""
    import pprop

    rng = np.random.default_rng(0)
    group = np.arange(n) % 3
    upper = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, 0.25, 0.02), 1).astype(float)
    features = rng.random((n, 6)) + 2.0 * np.eye(3, 6)[group]
    graph = pprop.Graph.from_scipy(
        sp.csr_array(upper + upper.T),
        features=features,
        labels=group,
        ids=[str(k) for k in range(n)],  # which made-up requests hit now and then
        class_names=CLASSES,
        feature_names=[f"f{k}" for k in range(6)],
    )
    known = np.arange(0, n, 4)
    model = pprop.APPNPClassifier(graph, hidden=8, max_epochs=40, random_state=0)
    return model.fit(known, np.array(CLASSES)[group[known]])


@contextmanager
def serving(model: Any, log: Path) -> Generator[str]:
    """Serve a live model in a thread; give its address."""
    from pprop.serve import server
    from pprop.serve.app import create_app
    from pprop.serve.limits import ServerLimits
    from pprop.serve.live import LiveHolder
    from pprop.serve.served import Served

    limits = ServerLimits(port=0, rate=1e6)
    holder = LiveHolder(Served(model.fitted_, "made up"), log)
    with server.bound(limits) as made:
        made_server = server.make_server(create_app(holder, limits))
        thread = threading.Thread(target=made_server.run, kwargs={"sockets": [made]})
        thread.start()
        try:
            yield server.address_of(made, limits).rstrip("/")
        finally:
            made_server.should_exit = True
            thread.join()
            holder.log.close()


def fuzz(address: str, cases: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Send made-up requests to every endpoint; return how many had which status, and what was wrong."""
    import requests
    import schemathesis
    from schemathesis import checks as every_check

    every_check.load_all_checks()
    document = requests.get(f"{address}/openapi.json", timeout=10).json()
    api: Any = schemathesis.openapi.from_dict(document)
    known = cast("Any", every_check).CHECKS
    operations: list[Any] = [one.ok() for one in api.get_all_operations()]
    checks: list[Any] = [check for check in known.get_all() if check.__name__ in WANTED]
    each = max(cases // (2 * len(operations)), 1)
    counts: Counter[str] = Counter()
    faults: list[str] = []
    rng = random.Random(seed)
    with requests.Session() as session:

        def call(case: Any) -> None:
            name_nodes(case, rng)
            answer = case.call(base_url=address, session=session, timeout=60)
            counts[f"{case.operation.method.upper()} {case.operation.path} {answer.status_code}"] += 1
            case.validate_response(answer, checks=checks)

        pairs = [(operation, mode) for operation in operations for mode in schemathesis.GenerationMode]
        while sum(counts.values()) < cases and not faults:  # some endpoints take nothing that could be made up
            for operation, mode in pairs:
                fault = made_up(call, operation.as_strategy(generation_mode=mode), each, seed)
                if fault:
                    faults.append(f"{operation.method.upper()} {operation.path} ({mode.value}): {fault}")
            seed += 1
    return counts, faults


def name_nodes(case: Any, rng: random.Random) -> None:
    """Put nodes of the graph in the place of most made-up ones in a sound request, which would hardly ever name one."""
    if not case.meta.generation.mode.is_positive:
        return

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(one) for one in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        found = {key: named(one) for key, one in cast("dict[str, Any]", value).items()}
        for key in found:
            if key in ("id", "source", "target") and found.get("op") != "add_node" and rng.random() < 0.9:
                found[key] = str(rng.randrange(60))
            elif key == "ids":
                found[key] = [str(rng.randrange(60)) for _ in found[key]]
            elif key == "features" and rng.random() < 0.7:
                found[key] = {f"f{rng.randrange(6)}": rng.uniform(-3, 3)}
            elif key == "class" and rng.random() < 0.7:
                found[key] = rng.choice(CLASSES)
        return found

    if case.query:
        case.query = named(case.query)
    if isinstance(case.body, dict):
        case.body = named(case.body)


def made_up(call: Callable[[Any], None], strategy: Any, examples: int, number: int) -> str:
    """Call with so many made-up cases; return what was wrong with the first that was, or nothing."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis.errors import Unsatisfiable

    def one(case: Any) -> None:
        call(case)

    run = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )(seed(number)(given(strategy)(one)))
    try:
        run()
    except Unsatisfiable:  # nothing about this endpoint can be wrong
        return ""
    except Exception as error:
        return str(error) or repr(error)
    return ""


WANTED = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
}


def main() -> None:
    """Make up requests and print what came back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, serving(small_model(), Path(folder, "edits.log")) as address:
        counts, faults = fuzz(address, options.cases, options.seed)
    for name, count in sorted(counts.items()):
        print(f"{count:6}  {name}")
    total = sum(counts.values())
    print(f"{total:6}  requests in {time.perf_counter() - begin:.0f} s, seed {options.seed}; {len(faults)} faults")
    for fault in faults:
        print(fault)
    sys.exit(bool(faults) or total < options.cases)


if __name__ == "__main__":
    main()
