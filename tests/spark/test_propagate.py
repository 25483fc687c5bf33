"""Propagation in Spark against propagation on one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.spark.graphs import Tables, in_order, make_tables, rows_by_id

import pprop
from pprop import InputError

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves its sockets to the collector


@pytest.fixture(scope="module")
def tables(spark: Any) -> Tables:
    return make_tables(spark)


@pytest.mark.parametrize(
    ("kind", "directed", "weight"),
    [("string", False, None), ("bigint", True, "weight"), ("string", False, "weight"), ("bigint", True, None)],
)
def test_packing_gives_the_graph_of_read_edges(
    spark: Any, tmp_path: Path, kind: str, directed: bool, weight: str | None
) -> None:
    from pprop.spark import pack_graph

    tables = make_tables(spark, kind)
    said: list[str] = []
    how: dict[str, Any] = {"directed": directed, "weight": weight}
    folder = pack_graph(
        tables.edges, tmp_path / "graph", nodes=tables.predictions, partitions=3, say=said.append, **how
    )
    folder.verify()
    with pytest.warns(UserWarning, match="weight") if weight is None else _nothing():
        expected = tables.graph(tmp_path, **how)
    np.testing.assert_allclose(in_order(folder, tables.ids), expected.adjacency.toarray(), rtol=1e-12)
    assert folder.n_edges == expected.n_edges
    assert not (tmp_path / "graph.packing").exists()
    assert "listed before" in said[-1]


class _nothing:  # noqa: N801  -- a context that does nothing
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


def test_hubs_have_parts_of_their_own(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pprop.spark import pack, pack_graph

    tables, leaves = make_tables(spark), 3000
    rows = [(-1, k, 1.0) for k in range(leaves)] + [(k, -2, 2.0) for k in range(leaves)] + [(3, 4, 5.0)]
    monkeypatch.setattr(pack, "LEAST_HUB", 128)
    edges = tables.edges.sparkSession.createDataFrame(rows, "source bigint, target bigint, weight double")
    seen: list[Any] = []
    layout = pack._layout
    monkeypatch.setattr(pack, "_layout", lambda *given: seen.append(layout(*given)) or seen[-1])
    folder = pack_graph(edges, tmp_path / "graph", weight="weight", directed=True, partitions=4)
    assert len(seen[0].hubs) == 2
    assert seen[0].pieces == (2, 2)
    folder.verify()
    found = in_order(folder, [*range(leaves), -1, -2])
    wanted = np.zeros((leaves + 2, leaves + 2))
    wanted[np.arange(leaves), leaves] = 1
    wanted[leaves + 1, np.arange(leaves)] = 2
    wanted[4, 3] = 5
    np.testing.assert_array_equal(found, wanted)


@pytest.fixture(scope="module")
def graphs(tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from pprop.spark import pack_graph

    place = tmp_path_factory.mktemp("graphs")
    return {
        "undirected": pack_graph(tables.edges, place / "plain", nodes=tables.predictions),
        "directed": pack_graph(
            tables.edges, place / "directed", nodes=tables.predictions, directed=True, weight="weight"
        ),
    }


def expected(tables: Tables, folder: Any, solver: Any, normalization: str) -> Any:
    graph = folder.graph()
    order = np.array([graph.ids.tolist().index(one) for one in tables.ids])
    H = np.empty_like(tables.H)
    H[order] = tables.H
    return pprop.propagate(graph, H, 0.2, solver, normalization)[order]


@pytest.mark.parametrize(("which", "normalization"), [("undirected", "sym"), ("directed", "sym"), ("directed", "col")])
@pytest.mark.parametrize("stripes", [1, 3])
def test_steps_equal_those_of_one_machine(
    tables: Tables, graphs: dict[str, Any], tmp_path: Path, which: str, normalization: str, stripes: int
) -> None:
    from pprop.spark import propagate

    said: list[str] = []
    memory = len(tables.ids) * 12 // stripes + 1
    spread = propagate(
        graphs[which],
        tables.predictions,
        0.2,
        4,
        None,
        normalization,
        tasks=3,
        memory=memory,
        work=tmp_path,
        say=said.append,
    )
    assert spread.columns == ["id", "a", "b", "c.d"]
    wanted = expected(tables, graphs[which], pprop.PowerIteration(4), normalization)
    found = rows_by_id(spread, tables.ids)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    assert ("stripes" in said[0]) == (stripes > 1)
    assert "a join would shuffle" in said[0]
    assert sorted(file.name for file in tmp_path.glob("*.npy")) == ["values.npy"]


@pytest.mark.parametrize(("which", "normalization"), [("directed", "row"), ("undirected", "sym")])
def test_a_tolerance_is_kept(tables: Tables, graphs: dict[str, Any], which: str, normalization: str) -> None:
    from pprop.spark import propagate

    said: list[str] = []
    spread = propagate(graphs[which], tables.predictions, 0.2, tol=1e-2, normalization=normalization, say=said.append)
    wanted = expected(tables, graphs[which], pprop.Exact(), normalization)
    found = rows_by_id(spread, tables.ids)
    order = np.inf if normalization == "row" else 2
    error = np.linalg.norm(found - wanted, order, axis=0) / np.linalg.norm(wanted, order, axis=0)
    proven = float(said[-1].split()[-1].rstrip("."))
    assert error.max() <= proven <= 1e-2


def test_a_killed_job_goes_on_after_the_last_step(
    tables: Tables, graphs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pprop.spark import propagate
    from pprop.spark import propagate as _  # noqa: F401

    module = __import__("pprop.spark.propagate", fromlist=["_one_step"])
    made: list[int] = []
    step = module._one_step

    def dying(spark: Any, job: Any, one: Any) -> Any:
        if one.number == 2 and len(made) == 2:
            made.append(-1)
            raise KeyboardInterrupt
        made.append(one.number)
        return step(spark, job, one)

    monkeypatch.setattr(module, "_one_step", dying)
    arguments = (graphs["undirected"], tables.predictions, 0.2, 4)
    with pytest.raises(KeyboardInterrupt):
        propagate(*arguments, work=tmp_path / "killed")
    spread = rows_by_id(propagate(*arguments, work=tmp_path / "killed"), tables.ids)
    assert made == [0, 1, -1, 2, 3]
    again = rows_by_id(propagate(*arguments, work=tmp_path / "killed"), tables.ids)  # all is there
    assert made == [0, 1, -1, 2, 3]
    whole = rows_by_id(propagate(*arguments, work=tmp_path / "whole"), tables.ids)
    np.testing.assert_array_equal(spread, whole)
    np.testing.assert_array_equal(again, whole)
    with pytest.raises(InputError, match="another alpha"):
        propagate(graphs["undirected"], tables.predictions, 0.3, 4, work=tmp_path / "killed")
    with pytest.raises(InputError, match="another graph"):
        propagate(graphs["directed"], tables.predictions, 0.2, 4, work=tmp_path / "killed")
    facts = json.loads((tmp_path / "killed" / "progress.json").read_text())
    assert facts["step"] == 4


def test_edges_are_packed_once(tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pprop.spark import propagate

    module = __import__("pprop.spark.graphs", fromlist=["pack_graph"])
    edges = tables.edges.withColumnRenamed("source", "from")
    path = str(tmp_path / "edges.parquet")
    edges.write.parquet(path)
    how: dict[str, Any] = {"source": "from", "work": tmp_path / "work"}
    first = rows_by_id(propagate(path, tables.predictions, 0.2, 0, **how), tables.ids)
    np.testing.assert_allclose(first, tables.H, rtol=1e-6)  # no steps
    monkeypatch.setattr(module, "pack_graph", None)
    second = rows_by_id(propagate(path, tables.predictions, 0.2, 0, **how), tables.ids)
    np.testing.assert_array_equal(first, second)
    with pytest.raises(InputError, match="other edges"):
        propagate(edges.limit(10), tables.predictions, 0.2, 0, **how)
