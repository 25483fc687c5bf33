"""Send random graphs through networkx, PyG, scipy and pandas and back, and compare them with what went in.

    python experiments/roundtrips.py --graphs 10000

Graphs of 1 to 12 nodes, directed or not, weighted or not, with self-loops and isolated nodes; ids are integers, text or
none; labels have unknowns, names or none; features are sparse or dense, float32 or float64, or none. What comes back must
have the fingerprint, names and direction of the graph, after the losses that `pprop.graph.LOSSES` lists. Every graph goes
through every format.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from pprop import Graph
from pprop.graph import LOSSES

# Texts that are hard to keep: numbers, blanks, separators, markers of missing values, other scripts.
WORDS = ("a", "b", "7", "007", "-1", "1.0", "", " x", "a,b", "NA", "nan", "true", "é", "日本", "\n", '"', "2020-01-01")
NAMES = tuple(word for word in WORDS if word not in ("", "nan"))  # see LOSSES["pandas"]


def random_graph(rng: np.random.Generator) -> Graph:
    """Return a graph; the same for the same state of `rng`."""
    n = int(rng.integers(1, 13))
    directed, weighted = bool(rng.integers(2)), bool(rng.integers(2))
    density = float(rng.choice([0.0, 0.1, 0.3, 0.8]))
    adjacency = (rng.random((n, n)) < density) * (
        rng.choice([0.1, 1.0, 2.0, 1e-300, np.pi], (n, n)) if weighted else 1.0
    )
    if not directed:
        adjacency = np.triu(adjacency) + np.triu(adjacency, 1).T
    if rng.integers(2):
        np.fill_diagonal(adjacency, 0.0)
    fields: dict[str, Any] = {}
    match rng.integers(4):
        case 0:
            fields["ids"] = rng.choice(50, n, replace=False) - 10
        case 1:
            fields["ids"] = np.arange(n)
        case 2:
            words = [f"{rng.choice(WORDS)}{k}" if rng.integers(3) else str(k) for k in range(n)]
            fields["ids"] = list(rng.permutation(words))
        case _:
            pass
    match rng.integers(4):
        case 0:
            fields["labels"] = rng.integers(-1, min(n, 4), n)
        case 1:
            names = tuple(str(name) for name in rng.choice(NAMES, int(rng.integers(1, 5)), replace=False))
            fields |= {"labels": rng.integers(-1, len(names), n), "class_names": names}
        case 2:
            fields["labels"] = np.full(n, -1)
        case _:
            pass
    dtype, width = rng.choice(["float32", "float64"]), int(rng.integers(1, 5))
    values = (rng.standard_normal((n, width)) * (rng.random((n, width)) < 0.5)).astype(dtype)
    match rng.integers(3):
        case 0:
            fields["features"] = values
        case 1:
            fields["features"] = sparse.csr_array(values)
        case _:
            pass
    if "features" in fields and rng.integers(2):
        fields["feature_names"] = [f"column {k}" for k in range(width)]
    if rng.integers(2):
        fields["name"] = "random"
    return Graph.from_scipy(sparse.csr_array(adjacency), directed=directed, **fields)


def through_networkx(graph: Graph) -> Graph:
    return Graph.from_networkx(graph.to_networkx())


def through_pyg(graph: Graph) -> Graph:
    return Graph.from_pyg(graph.to_pyg())


def through_scipy(graph: Graph) -> Graph:
    return Graph.from_scipy(**graph.to_scipy())


def through_pandas(graph: Graph) -> Graph:
    tables = graph.to_pandas()
    return Graph.from_pandas(*tables, **tables.options)


def unchanged(graph: Graph) -> Graph:
    return graph


def spells_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and str(int(text)) == text


def after_pandas(graph: Graph) -> Graph:
    """Return the graph less what `LOSSES["pandas"]` lists."""
    changes: dict[str, Any] = {"recommended": None, "recipe": None, "scaling": None}
    if graph.ids is None:
        changes["ids"] = np.arange(graph.n_nodes)
    elif all(spells_integer(str(key)) for key in graph.ids.tolist()):
        changes["ids"] = [int(key) for key in graph.ids.tolist()]
    if graph.features is not None:
        given = graph.features
        dense: np.ndarray = given if isinstance(given, np.ndarray) else given.toarray()
        names = graph.feature_names or tuple(f"x{k}" for k in range(dense.shape[1]))
        changes |= {"features": dense.astype(np.float32), "feature_names": names}
    if graph.labels is not None:
        classes = [name.removesuffix(".0") for name in graph.class_names or map(str, range(graph.n_nodes))]
        labels: list[int] = graph.labels.tolist()
        kept = sorted({classes[code] for code in labels if code >= 0})
        if all(spells_integer(name) for name in kept):
            kept.sort(key=int)
        codes = [kept.index(classes[code]) if code >= 0 else -1 for code in labels]
        changes |= {"labels": codes, "class_names": kept}
    return graph.replace(**changes)


# By format: there and back, and what is left of a graph then.
FORMATS: dict[str, tuple[Callable[[Graph], Graph], Callable[[Graph], Graph]]] = {
    "networkx": (through_networkx, unchanged),
    "PyG": (through_pyg, unchanged),
    "scipy": (through_scipy, unchanged),
    "pandas": (through_pandas, after_pandas),
}


def differences(graph: Graph, back: Graph) -> list[str]:
    """Return what of two graphs is not the same, names included."""
    fields = ["fingerprint", "class_names", "feature_names", "name", "directed"]
    return [field for field in fields if getattr(graph, field) != getattr(back, field)]


def check(form: str, graph: Graph) -> list[str]:
    """Return what is lost beyond the listed losses of a format, by name; nothing if all is well."""
    there_and_back, left = FORMATS[form]
    return differences(left(graph), there_and_back(graph))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lost: dict[str, Counter[str]] = {form: Counter() for form in FORMATS}
    kinds: Counter[str] = Counter()
    rng = np.random.default_rng(given.seed)
    for _ in range(given.graphs):
        graph = random_graph(rng)
        kinds["directed" if graph.directed else "undirected"] += 1
        kinds["weighted"] += graph.weights is not None
        for form in FORMATS:
            lost[form].update(check(form, graph))
    print(f"{given.graphs} graphs, {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}")
    for form, found in lost.items():
        print(f"{form}: {found.total()} differences beyond what the format cannot hold{': ' if found else ''}", end="")
        print(", ".join(f"{count} {field}" for field, count in found.items()))
        for sentence in LOSSES[form]:
            print(f"    {sentence}")


if __name__ == "__main__":
    main()
