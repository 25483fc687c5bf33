"""The table of datasets: sizes, label rates and average shortest paths, recomputed beside the printed ones."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pprop._errors import PpropError
from pprop.datasets import DATASETS, load_dataset
from pprop.datasets.registry import sizes_of
from pprop.graph import Graph
from pprop.graph.files import read_json
from pprop.study.tables.grid import Column, Group, Number, Table, Value
from pprop.study.tables.shortest_paths import mean_shortest_path
from pprop.study.tables.titles import dataset_title

__all__ = ["cached_shortest_path", "dataset_table"]

CACHE = "shortest_paths.json"
"""Where a study's folder keeps the averages: the larger graphs need half a minute."""

PRINTED = {"citeseer": (0.036, 9.31), "cora_ml": (0.047, 5.27), "pubmed": (0.003, 6.34), "ms_academic": (0.016, 5.43)}
"""The paper's label rates and average shortest paths."""
FULL_SIZES = {"citeseer": 3312, "cora_ml": 2995}
"""Nodes of the full graphs, to which the printed label rates refer; the others are connected as they come."""


def dataset_table(names: Sequence[str], folder: Path | None = None) -> Table:
    """Return the table for the datasets in `names`; those whose file is not here are named below it.

    Parameters
    ----------
    names
        For `load_dataset`.
    folder
        A study's folder, which keeps the average shortest paths for the next time; None computes them anew.

    Examples
    --------
    >>> [str(value) for value in dataset_table(["citeseer"]).groups[0].rows[0]]
    ['Citeseer', '6', '3703', '2110', '3668', '0.057', '0.036', '0.036', '9.31', '9.31']
    """
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = []
    for name in names:
        try:
            graph = load_dataset(name)
        except (PpropError, OSError) as error:
            notes.append(f"{dataset_title(name)} could not be loaded here: {' '.join(str(error).split())}")
            continue
        rows.append(_row(name, graph, folder))
        if name in DATASETS and sizes_of(graph) != DATASETS[name].sizes:
            notes.append(f"{dataset_title(name)}: the sizes differ from the paper's, {DATASETS[name].sizes}.")
    columns = (
        Column("Dataset", "text"),
        *(Column(title) for title in ("Classes", "Features", "Nodes", "Edges")),
        *(Column(f"Label rate{of}") for of in ("", " of the full graph", ", paper")),
        *(Column(f"Average shortest path{of}") for of in ("", ", paper")),
    )
    return Table("Datasets: the largest component of each", columns, (Group(None, tuple(rows)),), tuple(notes))


def cached_shortest_path(graph: Graph, folder: Path | None) -> float:
    """Return the average shortest path of a graph, from the study's folder if it is known there.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> cached_shortest_path(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])), None)
    1.0
    """
    if folder is None:
        return mean_shortest_path(graph)
    path = folder / CACHE
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # a cache that is not there, or is not readable, is written anew
        found = read_json(path)
        known = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    value = known.get(graph.fingerprint)
    if not isinstance(value, float):
        value = known[graph.fingerprint] = mean_shortest_path(graph)
        with suppress(OSError):  # a study that may only be read has its report all the same
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(known, sort_keys=True), encoding="utf-8")
            part.replace(path)
    return value


def _row(name: str, graph: Graph, folder: Path | None) -> tuple[Value, ...]:
    sizes = sizes_of(graph)
    labelled = 20 * graph.n_classes
    rate, path = PRINTED.get(name, (None, None))
    return (
        dataset_title(name),
        *(Number(sizes[key], 0) for key in ("classes", "features", "nodes", "edges")),
        Number(labelled / graph.n_nodes, 3),
        Number(labelled / FULL_SIZES.get(name, graph.n_nodes), 3),
        None if rate is None else Number(rate, 3),
        Number(cached_shortest_path(graph, folder), 2),
        None if path is None else Number(path, 2),
    )
