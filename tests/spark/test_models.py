"""Rows by push, training and prediction in Spark, against one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.spark.graphs import make_tables

import pprop
from pprop.estimators.loading import saved_recipe
from pprop.models import PropagationSettings
from pprop.scale import find_neighbourhoods

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
N, CLASSES = 120, ("art", "law")


@pytest.fixture(scope="module")
def planted(spark: Any) -> tuple[Any, Any]:
    """Two classes that mostly link to their own, and features that tell them a little; labels of some."""
    rng = np.random.default_rng(1)
    label = np.arange(N) % 2
    source, target = rng.integers(0, N, 900), rng.integers(0, N, 900)
    keep = (label[source] == label[target]) | (rng.random(900) < 0.1)
    edges = [(f"p{s}", f"p{t}") for s, t in zip(source[keep], target[keep], strict=True)]
    x = rng.standard_normal((N, 2)) + label[:, None] * 1.5
    nodes = [
        (f"p{k}", float(x[k, 0]), float(x[k, 1]), "xyz"[k % 3], CLASSES[label[k]] if k < 60 else None) for k in range(N)
    ]
    return (
        spark.createDataFrame(nodes, "id string, x double, y double, kind string, topic string"),
        spark.createDataFrame(edges, "source string, target string"),
    )


def test_pushed_rows_are_those_of_ppr(spark: Any, tmp_path: Path) -> None:
    from pprop.spark import pack_graph, ppr_topk

    tables = make_tables(spark, "bigint")
    folder = pack_graph(tables.edges, tmp_path / "graph", nodes=tables.predictions, weight="weight")
    wanted = tables.predictions.filter("id < 70")
    rows = ppr_topk(folder, wanted, 0.2, 1e-5, 6).collect()
    graph = folder.graph()
    ids: Any = graph.ids
    at = np.flatnonzero(ids < 70)
    push = pprop.LocalPush(graph, 0.2).rows(at, 1e-5, 6, to_eps=True)
    expected = {
        (int(ids[at[k]]), int(ids[push.matrix.indices[e]])): push.matrix.data[e]
        for k in range(len(at))
        for e in range(push.matrix.indptr[k], push.matrix.indptr[k + 1])
    }
    found = {(row["id"], row["neighbour"]): row["value"] for row in rows}
    assert found.keys() == expected.keys()
    assert max(abs(found[key] - expected[key]) for key in found) < 1e-12
    with pytest.raises(pprop.InputError, match="not in the graph, for example 5"):
        ppr_topk(folder, tables.edges.selectExpr("CAST(5 AS BIGINT) AS id"), 0.2)


def test_a_model_is_trained_and_applied(planted: tuple[Any, Any], tmp_path: Path) -> None:
    from pprop.spark import pack_graph, predict, train

    nodes, edges = planted
    folder = pack_graph(edges, tmp_path / "graph", nodes=nodes)
    model = train(nodes, folder, "topic", tmp_path / "model", neighbours=16, random_state=0, max_epochs=300)
    assert model.record_.train_nodes + model.record_.stopping_nodes == 60
    found = predict(tmp_path / "model", nodes, folder, work=tmp_path / "work")
    assert found.columns == ["id", "class", "confidence", "p_art", "p_law"]
    rows = {row["id"]: row for row in found.collect()}
    assert len(rows) == N
    right = np.mean([rows[f"p{k}"]["class"] == CLASSES[k % 2] for k in range(60, N)])
    assert right > 0.8
    # the same model on the whole graph, on one machine
    table = nodes.toArrow()
    recipe: Any = saved_recipe(tmp_path / "model")
    whole = pprop.Graph.from_pandas(edges.toArrow(), table, feature_columns=recipe)
    loaded = pprop.load(tmp_path / "model", whole)
    shares = loaded.predict_proba(np.arange(N))
    for k, one in enumerate(table.column("id").to_pylist()):
        np.testing.assert_allclose([rows[one]["p_art"], rows[one]["p_law"]], shares[k], atol=1e-5)
        assert rows[one]["confidence"] == max(rows[one]["p_art"], rows[one]["p_law"])


def test_neighbourhoods_are_those_of_one_machine(planted: tuple[Any, Any], tmp_path: Path) -> None:
    """The rows that a model is trained with, collected from Spark, are those of the whole graph."""
    from pprop.spark import train

    nodes, edges = planted
    model = train(nodes, edges, "topic", tmp_path / "model", neighbours=16, max_epochs=2, work=tmp_path / "work")
    rows_of_own = PropagationSettings(normalization="row")
    held = find_neighbourhoods(model.graph, model.known_nodes_, rows_of_own)
    whole = pprop.Graph.from_pandas(edges.toArrow(), nodes.toArrow(), feature_columns={"kind": "unused"})
    ids: Any = whole.ids
    place = {one: k for k, one in enumerate(ids.tolist())}
    members: Any = model.graph.ids
    at = np.array([place[one] for one in members.tolist()])
    alone = find_neighbourhoods(whole, at[held.nodes], rows_of_own, neighbours=16)
    rows = alone.matrix[alone.places(at[held.nodes])][:, at].toarray()
    found = held.matrix.toarray()
    # nodes are pushed in another order, so that entries differ within eps, and one or another of two like ones is kept
    np.testing.assert_allclose(held.kept, alone.kept[alone.places(at[held.nodes])], atol=2e-3)
    np.testing.assert_allclose(np.sort(found, axis=1), np.sort(rows, axis=1), atol=2e-3)
    assert ((found > 0) == (rows > 0)).mean() > 0.98
