"""Record what pprop answers, as text, and compare it: the proof that a change of the code changes nothing else.

    python -m tools.baseline --check                  compare all parts with tests/golden/baseline (minutes)
    python -m tools.baseline --check bits graphs      only these parts
    python -m tools.baseline --write commands         write a part anew, after a change that is meant; git diff shows it
    python -m tools.baseline --write durations        the only part that is never compared: it runs every test

Parts, each a file of ``tests/golden/baseline``:

- ``parameters``: ``get_params()`` of every classifier: names and defaults.
- ``graphs``: sizes, fingerprints, ids, names of features and classes of graphs from every way to make one: datasets (those of the
  paper where ``PPROP_DATA`` is), CSV, Parquet, frames, npz, Matrix Market, networkx, PyTorch Geometric, a graph folder.
- ``bits``: digests of ``decision_function``, ``classes_`` and epochs of every classifier on six small graphs, of their
  settings one by one, of trainings in mini-batches, of a model that was saved, loaded and pickled, and of all solvers, PPR rows,
  live edits and steps from disk.
- ``commands``: what the command line answers to calls on small tables and on the bundled recipes: exit code, ``--json``,
  and a digest of each file that a call writes.
- ``server``: status, headers and bodies of requests to ``pprop serve --live``, edits among them.
- ``openapi``: the server's OpenAPI document.
- ``durations``: seconds of each file of tests, on the machine that is named there.

``bits``, ``commands`` and ``server`` hold for one kind of CPU, which their files are named after, and are not compared on
another one. Times, versions, dates and folders are blanked. Not covered: GPUs (see ``tools.golden``), Spark, pictures,
pages, what goes to standard error, and sentences of errors (``tests.test_sentences``).

``tests/test_baseline.py`` compares what takes seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import functools
import hashlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from email.message import Message
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp
from numpy.typing import NDArray

import pprop
from pprop import Graph
from pprop.kernels.registry import cpu_kind

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "golden" / "baseline"
RECIPES = ROOT / "examples" / "recipes"
BLANK = "..."
# Members of JSON objects whose values another run, machine or version changes.
_VOLATILE = re.compile(
    r"(^|_)(seconds|minutes|hours|ms|time|times|written|created|versions?|packages|python|platform|machine|host|path|folder|"
    r"out|bytes|memory|gib|cpu|started|log|per_second|last)($|_)|^(ms_|time_)"
)


def digest(*arrays: Any) -> str:
    """Return a digest of the type, shape and bits of arrays.

    >>> digest(np.zeros(2)) == digest([0.0, 0.0]) != digest(-np.zeros(2))
    True
    """
    total = hashlib.sha256()
    for one in arrays:
        array = np.ascontiguousarray(one)
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return total.hexdigest()[:16]


# Graphs


def planted(n: int = 60, *, directed: bool = False, weighted: bool = False, dense: bool = True) -> Graph:
    """Return three groups of nodes, mostly connected inside, two isolated nodes, and features that tell the groups apart."""
    rng = np.random.default_rng(7)
    group = np.arange(n) % 3
    upper = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, 0.25, 0.02), 1).astype(float)
    upper[:, [5, 11]] = upper[[5, 11]] = 0.0
    if weighted:
        upper *= rng.integers(1, 8, (n, n)) / 4
    features: Any = rng.random((n, 6)) + 2.0 * np.eye(3, 6)[group]
    if not dense:
        words = np.repeat(np.eye(3), 10, axis=1)[group] * 0.4 + 0.05
        features = sp.csr_array((rng.random((n, 30)) < words).astype(np.float32))
    return Graph.from_scipy(
        sp.csr_array(upper if directed else upper + upper.T),
        directed,
        features=features,
        labels=np.where(np.arange(n) < n - 3, group, -1),
        ids=[f"n{k}" for k in range(n)],
        class_names=("art", "maths", "zoology"),
        name="planted",
    )


def write_tables(folder: Path) -> None:
    """Write edges.csv and nodes.csv of forty people with columns of all kinds, and the same as Parquet."""
    rng = np.random.default_rng(0)
    names = [f"person{k:02d}" for k in range(40)]
    pairs = {(int(min(a, b)), int(max(a, b))) for a in range(40) for b in rng.choice(20, 3) + 20 * (a // 20) if a != b}
    edges = pd.DataFrame(
        [(names[a], names[b], 1 + (a + b) % 3) for a, b in sorted(pairs | {(0, 20)})],
        columns=["source", "target", "calls"],
    )
    nodes = pd.DataFrame(
        {
            "id": names,
            "hobby": [None if k % 5 == 4 else "chess" if k < 20 else "tennis" for k in range(40)],
            "reads": (rng.random(40) + (np.arange(40) < 20)).round(3),
            "city": [("Oslo", "Rome", "Lima")[k % 3] for k in range(40)],
            "member": np.arange(40) % 7 == 0,
            "since": [f"20{10 + k % 9}-0{1 + k % 8}-15" for k in range(40)],
            "about": [f"likes {'books' if k < 20 else 'balls'} and number{k % 4}" for k in range(40)],
            "part": [("train", "train", "val", "test")[k % 4] for k in range(40)],
        }
    )
    for name, table in (("edges", edges), ("nodes", nodes)):
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet", index=False)
    np.save(folder / "scores.npy", rng.random((40, 3)).astype(np.float32))
    pd.DataFrame({"id": names, "a": rng.random(40).round(3), "b": rng.random(40).round(3)}).to_csv(
        folder / "scores.csv", index=False
    )
    (folder / "edits.txt").write_text("+ person00 person25\n- person00 person20\n= person00 person25 2.5\n")
    (folder / "mine.toml").write_text(
        'title = "Mine"\nshows = "accuracy"\ndataset = "citeseer"\nn_splits = 2\nn_inits = 1\n'
        '[settings]\nmax_epochs = 3\n[grid]\nmodel = ["mlp", "appnp"]\n'
    )


def _described(graph: Graph) -> str:
    parts = {
        "fingerprint": graph.fingerprint,
        "ids": None if graph.ids is None else digest(np.asarray(graph.ids).astype(str)),
        "features": None if graph.features is None else f"{graph.features.dtype} {graph.features.shape}",
        "feature_names": None if graph.feature_names is None else digest(list(graph.feature_names)),
        "classes": None if graph.class_names is None else digest(list(graph.class_names)),
        "labels": None if graph.labels is None else digest(np.asarray(graph.labels, np.int64)),
        "adjacency": digest(*(getattr(sp.csr_array(graph.adjacency), part) for part in ("indptr", "indices", "data"))),
    }
    return "\n".join([repr(graph), *(f"    {name} {value}" for name, value in parts.items())])


def _graphs(folder: Path) -> Iterator[tuple[str, Callable[[], Graph]]]:
    """Yield names and makers of graphs. One that needs what is not here is absent from a check, not a difference."""
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    tables = functools.partial(pprop.read_edges, edges, nodes, label_column="hobby")
    for name in ("citeseer", "cora_ml", "pubmed", "ms_academic"):
        if name == "citeseer" or os.environ.get("PPROP_DATA"):
            yield f"dataset {name}", functools.partial(pprop.load_dataset, name)
    yield (
        "recipes",
        lambda: pprop.read_edges(RECIPES / "edges.csv", RECIPES / "nodes.csv", label_column="cuisine"),
    )
    yield "csv", tables
    yield "csv, weighted and directed", lambda: tables(weight="calls", directed=True)
    yield "csv without nodes", lambda: pprop.read_edges(edges)
    yield "csv, some columns and degrees", lambda: tables(feature_columns=["reads", "city"]).with_degree()
    yield "csv, identity", lambda: tables().with_structure("identity", replace=True)
    yield (
        "parquet",
        lambda: pprop.read_edges(folder / "edges.parquet", folder / "nodes.parquet", label_column="hobby"),
    )
    yield (
        "frames",
        lambda: Graph.from_pandas(pd.read_csv(edges), pd.read_csv(nodes), label_column="hobby"),
    )
    yield "npz", lambda: _through(pprop.write_npz, pprop.read_npz, folder / "g.npz")
    yield "graph folder", lambda: _through(pprop.write_folder, pprop.read_graph, folder / "gf")
    yield "matrix market", lambda: _matrix_market(folder / "g.mtx")
    yield "networkx", lambda: Graph.from_networkx(planted(weighted=True).to_networkx())
    yield "pyg", lambda: Graph.from_pyg(planted(dense=False).to_pyg())
    yield "built", lambda: _built(edges, nodes, folder / "built")
    yield "largest component", lambda: planted(directed=True).undirected().largest_component()
    yield "subgraph", lambda: planted(weighted=True).subgraph(np.arange(5, 40)[::-1])
    yield "scaled", lambda: planted(dense=False).scaled()


def _through(write: Callable[..., Any], read: Callable[..., Graph], path: Path) -> Graph:
    write(planted(weighted=True), path)
    return read(path)


def _matrix_market(path: Path) -> Graph:
    scipy.io.mmwrite(path, sp.coo_array(planted(directed=True, weighted=True).adjacency))
    return pprop.read_graph(path)


def _built(edges: Path, nodes: Path, out: Path) -> Graph:
    pprop.build_graph(edges, out, nodes=nodes, label_column="hobby", progress=False)
    return pprop.read_graph(out)


def graphs_text(*, small: bool = False) -> dict[str, str]:
    """Return the descriptions of all graphs, by their names; `small`: of those that are made in a moment."""
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name))
        return {
            title: _described(_quietly(make))
            for title, make in _graphs(Path(name))
            if not (small and title.startswith("dataset"))
        }


def _quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return call()


# Parameters and bits of classifiers


def _estimators() -> dict[str, Any]:
    return {name: getattr(pprop, name) for name in sorted(pprop.__all__) if re.fullmatch(r"\w+Classifier(CV)?", name)}


def parameters_text() -> dict[str, str]:
    """Return the parameters of all classifiers with their defaults, by their names."""
    graph = planted()
    found: dict[str, str] = {}
    for name, kind in _estimators().items():
        params: dict[str, Any] = _made(kind, graph).get_params(deep=False)
        lines = (f"    {key} = {value!r}" for key, value in params.items() if key not in ("graph", "estimator"))
        found[name] = "\n".join(lines)
    return found


def _linear() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


# Settings that keep a training small, for the classifiers that have them. The matrix is the paper's on every graph.
_SMALL: dict[str, Any] = {"hidden": 8, "max_epochs": 12, "random_state": 3, "normalization": "sym"}
_QUICK = {
    **_SMALL,
    "units": 2,
    "heads": 2,
    "replicas": 1,
    "powers": 2,
    "members": 2,
    "rounds": 1,
    "alphas": (0.1, 0.3),
    "n_runs": 2,
}
# Settings that are tried one by one, with APPNP.
_VARIED: tuple[dict[str, Any], ...] = (
    {"backend": "reference"},
    {"hidden": (8, 4)},
    {"neighbours": 8},
    {"neighbours": 60},
    {"stopping": None},
    {"criterion": "paper", "patience": 2},
    {"class_weight": "balanced"},
    {"bias": True},
    {"bias": False},
    {"scaling": "none"},
    {"scaling": "standard"},
    {"normalization": "row"},
    {"self_loops": False},
    {"alpha": 0.4, "steps": 2},
    {"dropout": 0.0},
    {"penalty": 0.0},
    {"mixed_precision": True},
    {"block_nodes": 16},
)


def _module() -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))


def _made(kind: Any, graph: Graph, **settings: Any) -> Any:
    """Return a classifier of a graph with those of the settings that it has."""
    first: tuple[Any, ...] = (_linear(), graph) if kind is pprop.PropagatedClassifier else (graph,)
    names = set(cast("dict[str, Any]", kind(*first).get_params(deep=False)))
    return kind(*first, **{name: value for name, value in settings.items() if name in names})


def _fitted(kind: Any, graph: Graph, **settings: Any) -> Any:
    labels = np.asarray(graph.labels)
    known = np.flatnonzero(labels >= 0)[::2]
    return _made(kind, graph, **{**_QUICK, **settings}).fit(known, labels[known])


def _bits_of(model: Any) -> str:
    nodes = np.arange(int(model.graph.n_nodes))
    record = getattr(model, "record_", None)
    epochs = (
        "" if record is None else f", epochs {record.epochs}, best {record.best_epoch}, loss {record.stopping_loss!r}"
    )
    return f"{digest(model.decision_function(nodes))}, classes {digest(model.classes_, model.predict(nodes))}{epochs}"


def _answer(call: Callable[[], str]) -> str:
    """Return the answer of a call, or the class of what it raises."""
    try:
        return _quietly(call)
    except pprop.PpropError as error:
        return type(error).__name__


BIT_GRAPHS: Mapping[str, Callable[[], Graph]] = {
    "dense": planted,
    "sparse": lambda: planted(dense=False),
    "weighted": lambda: planted(weighted=True),
    "directed": lambda: planted(directed=True, weighted=True),
    "recipes": lambda: pprop.read_edges(RECIPES / "edges.csv", RECIPES / "nodes.csv", label_column="cuisine"),
    "citeseer": lambda: pprop.load_dataset("citeseer"),
}


def bits_text(graphs: Sequence[str] = tuple(BIT_GRAPHS), *, rest: bool = True) -> dict[str, str]:
    """Return the bits of all classifiers on some graphs; `rest`: and of everything else that ``bits`` has."""
    found: dict[str, str] = {}
    for title in graphs:
        graph = BIT_GRAPHS[title]()
        for name, kind in _estimators().items():
            found[f"{name} on {title}"] = _answer(lambda kind=kind, graph=graph: _bits_of(_fitted(kind, graph)))
    return found | (_other_bits() if rest else {})


def _other_bits() -> dict[str, str]:
    dense, sparse = planted(), planted(dense=False)
    found: dict[str, str] = {}
    for settings in _VARIED:
        for title, graph in (("dense", dense), ("sparse", sparse)):
            text = ", ".join(f"{name}={value!r}" for name, value in settings.items())
            found[f"APPNPClassifier({text}) on {title}"] = _answer(
                lambda graph=graph, settings=settings: _bits_of(_fitted(pprop.APPNPClassifier, graph, **settings))
            )
    found |= {name: _answer(call) for name, call in _model_calls(dense)} | {
        name: _answer(call) for name, call in _propagation_calls(planted(weighted=True), planted(directed=True))
    }
    return found


def _model_calls(graph: Graph) -> Iterator[tuple[str, Callable[[], str]]]:
    known = np.flatnonzero(np.asarray(graph.labels) >= 0)
    y = np.asarray(graph.labels)[known]

    def fit(**arguments: Any) -> str:
        return _bits_of(pprop.APPNPClassifier(graph, **_SMALL).fit(known[::4], y[::4], **arguments))

    yield "fit with stopping nodes", lambda: fit(stopping=(known[1::4], y[1::4]))
    yield "fit with sample weights", lambda: fit(sample_weight=1.0 + np.arange(len(known[::4])) % 4)
    yield (
        "fit with repeated nodes",
        lambda: _bits_of(
            pprop.APPNPClassifier(graph, **_SMALL).fit(known[[9, 3, 3, 0, 1, 2, 7, 9]], y[[9, 3, 3, 0, 1, 2, 7, 9]])
        ),
    )
    yield (
        "fit by ids and texts",
        lambda: _bits_of(
            pprop.APPNPClassifier(graph, **_SMALL).fit(y=[f"c{k}" for k in y[::4]], ids=[f"n{k}" for k in known[::4]])
        ),
    )
    yield (
        "fit twice with a RandomState",
        lambda: " ".join(
            _bits_of(model.fit(known, y))
            for state in [np.random.RandomState(5)]
            for model in [pprop.APPNPClassifier(graph, **_SMALL).set_params(max_epochs=6, random_state=state)] * 2
        ),
    )
    yield "a module as predictor", lambda: _bits_of(_fitted(pprop.APPNPClassifier, graph, predictor=_module))
    for name in ("APPNPClassifier", "APPNPEnsembleClassifier", "GCNClassifier", "LabelPropagationClassifier"):
        model = _quietly(functools.partial(_fitted, getattr(pprop, name), graph))
        yield f"{name} saved and loaded", functools.partial(_loaded, model, graph)
        yield f"{name} pickled", functools.partial(_pickled, model)
        if name != "LabelPropagationClassifier":
            yield f"{name} on another graph", functools.partial(_elsewhere, model)
        yield f"{name} explained", functools.partial(_explained, model)
    yield (
        "train, three runs",
        lambda: digest(
            pprop.train(
                pprop.APPNP(hidden=8),
                graph,
                [_split(graph, seed) for seed in range(3)],
                seeds=[1, 2, 3],
                stopping=pprop.Stopping(5, 12),
                progress=False,
            ).stopping_loss
        ),
    )


def _split(graph: Graph, seed: int) -> pprop.Split:
    order = np.random.default_rng(seed).permutation(graph.n_nodes - 3)
    return pprop.Split(order[:15], order[15:30], order[30:])


def _loaded(model: Any, graph: Graph) -> str:
    with tempfile.TemporaryDirectory() as name:
        model.save(Path(name, "model"))
        return _bits_of(pprop.load(Path(name, "model"), graph=graph))


def _pickled(model: Any) -> str:
    return _bits_of(pickle.loads(pickle.dumps(model)))  # noqa: S301  our own


def _elsewhere(model: Any) -> str:
    other = planted(45)
    return _bits_of(model.on(other))


def _explained(model: Any) -> str:
    return digest(json.dumps(model.explain(3, k=5).to_json()))


def _propagation_calls(graph: Graph, directed: Graph) -> Iterator[tuple[str, Callable[[], str]]]:
    rng = np.random.default_rng(1)
    h32, h64 = rng.random((60, 3)).astype(np.float32), rng.random((60, 3))
    solvers = {
        "PowerIteration(10)": pprop.PowerIteration(10),
        "Exact()": pprop.Exact(),
        "Chebyshev(1e-5)": pprop.Chebyshev(1e-5),
        "ConjugateGradient(1e-5)": pprop.ConjugateGradient(1e-5),
        "Contraction(1e-5)": pprop.Contraction(1e-5),
    }
    for name, solver in solvers.items():
        for kind in ("sym", "row", "col"):
            for title, one in (("weighted", graph), ("directed", directed)):
                for h in (h32, h64):
                    yield (
                        f"propagate {name} {kind} {title} {h.dtype}",
                        lambda one=one, h=h, solver=solver, kind=kind: digest(
                            pprop.propagate(one, h, 0.1, solver=solver, normalization=kind)
                        ),
                    )
    for backend in ("reference", "numba"):
        yield f"propagate {backend}", lambda b=backend: digest(pprop.propagate(graph, h32, 0.2, backend=b))
    for title, one in (("weighted", graph), ("directed", directed)):
        yield f"ppr {title}", lambda one=one: _fields(pprop.ppr(one, [0, 7], eps=1e-4))
        yield f"ppr topk {title}", lambda one=one: _fields(pprop.ppr(one, [3], topk=5))
        for kind in ("sym", "row", "col"):
            yield f"transition {title} {kind}", lambda one=one, kind=kind: _fields(pprop.transition_matrix(one, kind))
    yield "live edits", lambda: _live(graph, h64)
    yield "steps from disk", lambda: _from_disk(graph, h32)


def _fields(record: Any) -> str:
    """Return a digest of the arrays that a record of the library consists of; of a sparse matrix, those of its CSR form."""
    found = list[Any]()
    for one in dataclasses.fields(record):
        value = getattr(record, one.name)
        if sp.issparse(value):
            csr = sp.csr_array(cast("Any", value))
            found += [csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data]
        elif isinstance(value, np.ndarray):
            found.append(value.astype(np.int64) if value.dtype.kind == "i" else value)
    return digest(*found)


def _live(graph: Graph, h: NDArray[Any]) -> str:
    live = pprop.live(graph, h, alpha=0.1, tol=1e-6)
    live.add_edge(0, 5, 2.0)
    live.remove_edge(*_first_edge(graph))
    live.set_predictions([3], np.ones((1, h.shape[1])))
    return digest(np.asarray(live.logits))


def _first_edge(graph: Graph) -> tuple[int, int]:
    u, v = sp.csr_array(graph.adjacency).nonzero()
    return int(u[0]), int(v[0])


def _from_disk(graph: Graph, h: NDArray[Any]) -> str:
    from pprop.scale import propagate_folder

    with tempfile.TemporaryDirectory() as name:
        stored = pprop.write_folder(graph, Path(name, "graph"))
        return digest(propagate_folder(stored, h).values, propagate_folder(stored, h, normalization="row").values)


# Commands

_TABLES = "edges.csv --nodes nodes.csv --label-column hobby"
_SHORT = "--max-epochs 8 --hidden 8"
COMMANDS = (
    "--version",
    "data list --json",
    "data info citeseer --json",
    "data check citeseer --json",
    f"data check {_TABLES} --json",
    "data check edges.parquet --nodes nodes.parquet --label-column hobby --columns --json",
    "data check RECIPES/edges.csv --nodes RECIPES/nodes.csv --label-column cuisine --json",
    f"train citeseer {_SHORT} --no-baselines --json",
    f"train RECIPES/edges.csv --nodes RECIPES/nodes.csv --label-column cuisine {_SHORT} --out recipes --json",
    f"train {_TABLES} {_SHORT} --out model --json",
    f"train {_TABLES} {_SHORT} --model mlp --split-column part --seed 4 --no-baselines --json",
    f"train {_TABLES} {_SHORT} --model appnp-cv --alphas 0.1,0.3 --weight calls --json",
    f"train {_TABLES} --model label-propagation --out labels --json",
    f"train {_TABLES} {_SHORT} --model auto --directed --degree --json",
    f"train {_TABLES} {_SHORT} --neighbours 8 --features reads,city --no-baselines --json",
    f"train {_TABLES} {_SHORT} --column city=text --column since=unused --class-weight balanced --no-baselines --json",
    "predict model --out predictions.csv --json",
    "predict model --graph edges.parquet --nodes nodes.parquet",
    "predict labels --json --out labels.csv",
    "explain model person03 person30 --top 4 --json",
    "explain model person03 --mode fast --json",
    "live model edits.txt --out edited.csv --json",
    "ppr edges.csv person00 --topk 5 --json",
    "ppr citeseer 17 18 --eps 1e-4 --out rows.npz --json",
    "propagate edges.csv scores.csv --alpha 0.2 --out spread.csv --json",
    "propagate edges.csv scores.csv --exact --normalization row",
    "propagate edges.csv scores.csv --solver chebyshev --tol 1e-6 --json --out solved.npy",
    f"build {_TABLES} --out built --json",
    "train built --max-epochs 4 --hidden 8 --no-baselines --json",
    f"tune {_TABLES} --trials 2 --holdouts 2 --space hidden=8 --space max_epochs=4 --space alpha=0.1,0.3 --out tuned --json",
    "study list --json",
    "study run mine.toml --out study --json",
    "study status study --json",
    "study verify study --sample 2 --json",
    "study report study --json",
    "study pack study --out study.pack --json",
    "study merge study.pack --out merged --json",
)


def blanked(value: Any, folder: str) -> Any:
    """Return JSON with what another run, machine or version changes replaced."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            key: BLANK if _VOLATILE.search(key) and not isinstance(one, dict | list) else blanked(one, folder)
            for key, one in members.items()
        }
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [blanked(one, folder) for one in items]
    return _plain(value, folder) if isinstance(value, str) else value


def _plain(text: str, folder: str) -> str:
    text = text.replace(f"{folder}/", "").replace(folder, ".").replace(f"{RECIPES}/", "RECIPES/")
    return text.replace(pprop.__version__, BLANK)


def _written(before: Mapping[Path, tuple[int, int]], folder: Path) -> Iterator[str]:
    """Yield the names of new files, with digests of those that every run writes alike."""
    for path, state in sorted(_files(folder).items()):
        if before.get(path) == state:
            continue
        name = path.relative_to(folder).as_posix()
        alike = path.suffix in (".csv", ".npy", ".npz", ".safetensors") or path.name == "features.json"
        yield f"    {name} {hashlib.sha256(path.read_bytes()).hexdigest()[:16] if alike else BLANK}"


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    return {
        path: (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file() and "-wal" not in path.name and "-shm" not in path.name
    }


def commands_text() -> dict[str, str]:
    """Return exit code, standard output and written files of each command, by the command."""
    from pprop.cli.app import run

    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        write_tables(Path(name))
        for command in COMMANDS:
            before, out, error = _files(Path(name)), io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                code = run([word.replace("RECIPES", str(RECIPES)) for word in command.split()])
            text = out.getvalue()
            if text.startswith("{"):
                text = json.dumps(blanked(json.loads(text), name), indent=1, ensure_ascii=False)
            if code:
                text += error.getvalue()
            found[f"$ pprop {command}"] = "\n".join(
                [f"{code}:", _plain(text, name).rstrip(), *_written(before, Path(name))]
            )
            print(command, file=sys.stderr)
    return found


# Server


_NEW_NODE = {"op": "add_node", "id": "new", "features": {"reads": 0.5}}
_REMOVED = {"op": "remove_edge", "source": "person00", "target": "person25"}
_OTHER_FEATURES = {"op": "set_features", "id": "person30", "features": {"reads": 2.0}}
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    ("GET", "/api/v1/model", None),
    ("HEAD", "/api/v1/model", None),
    ("POST", "/api/v1/model", {}),
    ("GET", "/api/v1/nothing", None),
    ("GET", "/api/v1/search", None),
    ("GET", "/api/v1/search?q=person1&limit=3&order=confidence", None),
    ("GET", "/api/v1/search?label=chess&role=training&limit=2", None),
    ("GET", "/api/v1/search?predicted=tennis&confidence_from=0.5&offset=1&limit=2", None),
    ("GET", "/api/v1/search?distance=1&limit=2", None),
    ("GET", "/api/v1/search?colour=red", None),
    ("GET", "/api/v1/search?limit=many", None),
    ("POST", "/api/v1/predict", {"ids": ["person00", "person30"]}),
    ("POST", "/api/v1/predict", {"ids": ["person00"], "alpha": 0.4}),
    ("POST", "/api/v1/predict", {"ids": ["person00"], "steps": 2}),
    ("POST", "/api/v1/predict", {"ids": ["nobody"]}),
    ("POST", "/api/v1/predict", {"ids": []}),
    ("POST", "/api/v1/predict", {"id": "person00"}),
    ("POST", "/api/v1/predict", "{not json"),
    ("GET", "/api/v1/predictions", None),
    ("GET", "/api/v1/explain?id=person03&k=4", None),
    ("GET", "/api/v1/explain?id=person03&k=2&class=tennis&alpha=0.3", None),
    ("GET", "/api/v1/explain?id=person03&steps=3", None),
    ("GET", "/api/v1/explain?id=nobody", None),
    ("GET", "/api/v1/explain", None),
    ("GET", "/api/v1/neighbourhood?id=person03&size=6", None),
    ("GET", "/api/v1/neighbourhood?id=person03&size=3&alpha=0.5", None),
    ("GET", "/api/v1/diagnostics", None),
    ("POST", "/api/v1/what-if", {"id": "person03", "remove": [{"source": "person00", "target": "person20"}], "k": 3}),
    (
        "POST",
        "/api/v1/what-if",
        {"id": "person03", "add": [{"source": "person03", "target": "person30"}], "k": 3, "class": "chess"},
    ),
    (
        "POST",
        "/api/v1/predict-new",
        {"features": {"reads": 1.2, "city": "Rome", "age": 3}, "edges": [{"id": "person00"}]},
    ),
    ("POST", "/api/v1/predict-new", {"features": {"reads": 1.2, "city": "Rome"}, "edges": [{"id": "person00"}]}),
    ("POST", "/api/v1/predict-new", {"edges": [{"id": "person30"}]}),
    ("GET", "/api/v1/edits", None),
    ("POST", "/api/v1/edits", {"edits": [{"op": "add_edge", "source": "person00", "target": "person25"}]}),
    ("POST", "/api/v1/edits", {"edits": [{"op": "remove_edge", "source": "person00", "target": "person39"}]}),
    ("POST", "/api/v1/edits", {"edits": [_NEW_NODE, {"op": "add_edge", "source": "new", "target": "person01"}]}),
    ("POST", "/api/v1/edits", {"edits": [_REMOVED, {"op": "remove_node", "id": "person07"}, _OTHER_FEATURES]}),
    ("GET", "/api/v1/edits", None),
    ("POST", "/api/v1/predict", {"ids": ["person00", "person30"]}),
    ("GET", "/api/v1/explain?id=person00&k=3", None),
    ("GET", "/api/v1/model", None),
    ("GET", "/", None),
    ("GET", "/static/main.js", None),
    ("GET", "/static/../app.py", None),
)
_HEADERS = ("content-type", "cache-control", "allow", "content-security-policy", "x-content-type-options")


@contextlib.contextmanager
def _served() -> Generator[tuple[str, str]]:
    """Start a server of a small model with a log, and yield its address and folder."""
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name))
        tables = {"path": f"{name}/edges.csv", "nodes": f"{name}/nodes.csv", "label_column": "hobby"}
        source = pprop.GraphSource("edges", tables)
        graph = source.read()
        known = np.flatnonzero(np.asarray(graph.labels) >= 0)[::2]
        model = pprop.APPNPClassifier(graph, **_SMALL)
        model.fit(known, np.asarray(graph.class_names)[np.asarray(graph.labels)[known]]).save(
            Path(name, "model"), source=source
        )
        command = [sys.executable, "-m", "pprop", "serve", "model", "--port", "0"]
        process = subprocess.Popen(
            [*command, "--live", "edits.log", "--json"],
            cwd=name,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            started = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", started)
            if found is None:
                raise SystemExit(f"The server did not start: {started!r}")
            yield found[0], name
        finally:
            process.terminate()
            process.wait(30)


def _asked(address: str, method: str, path: str, body: Any) -> tuple[int, Message, bytes]:
    data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def server_text() -> dict[str, str]:
    """Return status, headers and body of each request, by its number and line."""
    found: dict[str, str] = {}
    with _served() as (address, folder):
        for number, (method, path, body) in enumerate(REQUESTS):
            status, headers, content = _asked(address, method, path, body)
            kind = headers.get("content-type", "")
            text = f"{len(content)} bytes"
            if "json" in kind and content:
                lines = [
                    json.dumps(blanked(json.loads(line), folder), ensure_ascii=False) for line in content.splitlines()
                ]
                text = "\n".join(lines)
            elif path in ("/", "/static/main.js"):
                text = "a page"
            shown = [f"    {name}: {headers[name]}" for name in _HEADERS if name in headers]
            title = f"{number} {method} {path}{'' if body is None else f' {body}'}"
            found[title] = "\n".join([str(status), *shown, _plain(text, folder)])
    return found


def openapi_text() -> dict[str, str]:
    """Return the OpenAPI document of the server."""
    with _served() as (address, folder):
        document = json.loads(_asked(address, "GET", "/openapi.json", None)[2])
    document["info"]["version"] = BLANK
    return {"openapi.json": _plain(json.dumps(document, indent=1, ensure_ascii=False), folder)}


# Durations


def durations_text() -> dict[str, str]:
    """Run all tests in this process and return the seconds that each file of tests takes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=0", "--durations-min=0.01"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = defaultdict[str, float](float)
    for taken, file in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +([^:\s]+)::", done.stdout, re.MULTILINE):
        seconds[file] += float(taken)
    most = sorted(seconds.items(), key=lambda one: -one[1])
    lines = [f"    {taken:8.1f} {file}" for file, taken in most]
    title = f"{os.cpu_count()} cores, {cpu_kind()}, one process: {sum(seconds.values()):.0f} s"
    return {title: "\n".join(lines)}


PARTS: Mapping[str, Callable[[], dict[str, str]]] = {
    "parameters": parameters_text,
    "graphs": graphs_text,
    "bits": bits_text,
    "commands": commands_text,
    "server": server_text,
    "openapi": openapi_text,
    "durations": durations_text,
}
OF_ONE_CPU = ("bits", "commands", "server")


def file_of(part: str) -> Path:
    """Return the file of a part; on this kind of CPU, for those whose bits depend on it."""
    return FOLDER / (f"{part}.{cpu_kind().replace(' ', '-')}.txt" if part in OF_ONE_CPU else f"{part}.txt")


def write(part: str, answers: Mapping[str, str]) -> None:
    """Record the answers of a part, by their titles."""
    FOLDER.mkdir(exist_ok=True)
    text = "\n\n".join(f"{title}\n{answer}" for title, answer in answers.items()) + "\n"
    file_of(part).write_text(text, encoding="utf-8")


def stored(part: str) -> dict[str, str]:
    """Return the recorded answers of a part, by their titles."""
    entries = file_of(part).read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    return {title: answer for title, _, answer in (entry.partition("\n") for entry in entries)}


def _without_gaps(answer: str) -> str:
    return re.sub(r"\n\n+", "\n", answer).rstrip()  # an empty line ends an answer


def differences(part: str, now: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """Return the lines in which answers differ; of titles that one of both lacks only those that `before` has."""
    found: list[str] = []
    for title, answer in before.items():
        if now.get(title) != answer:
            lines = difflib.unified_diff(
                answer.splitlines(), now.get(title, "(no answer)").splitlines(), lineterm="", n=0
            )
            found += [f"{part}: {title}", *list(lines)[2:]]
    found += [f"{part}: {title} is new; write it" for title in now if title not in before]
    return found


def main() -> int:
    """Write or compare the parts that are named; return 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    doing = parser.add_mutually_exclusive_group(required=True)
    doing.add_argument("--write", action="store_true")
    doing.add_argument("--check", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    given = parser.parse_args()
    os.environ.setdefault("COLUMNS", "120")
    parts, found = given.parts or [part for part in PARTS if part != "durations"], list[str]()
    for part in parts:
        if given.check and not file_of(part).exists():
            print(f"{part}: nothing is recorded for {cpu_kind()}.")
            continue
        now = {title: _without_gaps(answer) for title, answer in PARTS[part]().items()}
        if given.write:
            write(part, now)
        else:
            before = stored(part)
            if part == "graphs" and not os.environ.get("PPROP_DATA"):
                before = {title: answer for title, answer in before.items() if title in now}
            some = differences(part, now, before)
            print(f"{part}: {len(now)} answers, {'as recorded' if not some else 'others than recorded'}")
            found += some
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
