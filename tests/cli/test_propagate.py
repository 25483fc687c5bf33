"""Propagating predictions from a file: matched by id, in every format, against the library."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pprop


@pytest.fixture
def scores(tables, tmp_path: Path) -> dict[str, tuple[float, ...]]:
    """Three numbers per node, written in an order of their own to scores.csv."""
    random = np.random.default_rng(1)
    values = {f"person{k:02d}": tuple(random.normal(size=3).tolist()) for k in random.permutation(40)}
    lines = [",".join([name, *map(repr, numbers)]) for name, numbers in values.items()]
    (tmp_path / "scores.csv").write_text("id,good,bad,odd\n" + "\n".join(lines) + "\n")
    return values


def twin(edges: Path, scores: dict[str, tuple[float, ...]], **options) -> dict[str, list[float]]:
    graph = pprop.read_edges(edges)
    assert graph.ids is not None
    spread = pprop.propagate(graph, np.array([scores[name] for name in graph.ids]), **options)
    return dict(zip(graph.ids.tolist(), spread.tolist(), strict=True))


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (
            {"alpha": 0.2, "solver": pprop.PowerIteration(3), "normalization": "row"},
            "--alpha 0.2 --steps 3 --normalization row",
        ),
        ({"alpha": 0.1, "solver": pprop.Exact()}, "--exact"),
        ({"alpha": 0.1, "solver": pprop.Chebyshev(1e-9)}, "--solver chebyshev --tol 1e-9"),
        (
            {"alpha": 0.3, "solver": pprop.ConjugateGradient(), "backend": "reference"},
            "--alpha 0.3 --solver cg --backend reference",
        ),
        (
            {"solver": pprop.Contraction(1e-4), "normalization": "col", "backend": "reference"},
            "--solver contraction --tol 1e-4 --normalization col --backend reference",
        ),
        ({}, ""),
    ],
)
def test_rows_are_matched_by_id_and_keep_their_order(pprop_here, tables, scores, tmp_path: Path, options, arguments):
    assert pprop_here("propagate", "edges.csv", "scores.csv", *arguments.split(), "--out", "spread.csv").code == 0
    with (tmp_path / "spread.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    expected = twin(tables[0], scores, **options)
    assert [row["id"] for row in rows] == list(scores)
    for row in rows:
        assert [float(row[name]) for name in ("good", "bad", "odd")] == expected[row["id"]]  # every digit is written


def test_parquet_and_csv_give_the_same_numbers(pprop_here, tables, scores, tmp_path: Path):
    columns = {"id": list(scores), "good": [a for a, *_ in scores.values()], "word": ["x"] * 40}
    pq.write_table(pa.table(columns), tmp_path / "scores.parquet")
    answer = pprop_here("propagate", "edges.csv", "scores.parquet", "--out", "spread.parquet", "--json")
    assert answer.record["columns"] == ["good"]
    assert "Left out" in answer.err
    spread = pq.read_table(tmp_path / "spread.parquet").to_pydict()
    expected = twin(tables[0], scores)
    assert spread == {"id": list(scores), "good": [expected[name][0] for name in scores]}


def test_probabilities_of_a_parquet_file_stay_probabilities_by_rows(pprop_here, tables, scores, tmp_path: Path):
    share = 1 / (1 + np.exp([a for a, *_ in scores.values()]))
    pq.write_table(pa.table({"id": list(scores), "yes": share, "no": 1 - share}), tmp_path / "shares.parquet")
    arguments = "propagate edges.csv shares.parquet --normalization row --out spread.parquet"
    assert pprop_here(*arguments.split()).code == 0
    spread = pq.read_table(tmp_path / "spread.parquet")
    np.testing.assert_allclose(np.add(spread["yes"], spread["no"]), 1.0, rtol=1e-12)
    assert abs(np.subtract(spread["yes"], share)).max() > 0.01


def test_an_array_belongs_to_the_nodes_in_their_order_and_keeps_its_type(pprop_here, tmp_path: Path):
    graph = pprop.load_dataset("citeseer")
    H = np.random.default_rng(0).random((graph.n_nodes, 3), dtype=np.float32)
    np.save(tmp_path / "h.npy", H)
    answer = pprop_here("propagate", "citeseer", "h.npy", "--alpha", "0.1", "--out", "z.npy", "--json")
    Z = np.load(tmp_path / "z.npy")
    assert Z.dtype == np.float32
    assert np.array_equal(Z, pprop.propagate(graph, H, alpha=0.1))
    assert answer.record["fingerprint"] == graph.fingerprint
    assert answer.record["steps"] == 10


@pytest.mark.usefixtures("without_drawing")
def test_what_predict_writes_can_be_propagated(pprop_here, tables):
    command = "train edges.csv --nodes nodes.csv --label-column hobby --out model --max-epochs 2"
    assert pprop_here(*command.split()).code == 0
    answer = pprop_here("propagate", "edges.csv", "model/predictions.csv", "--out", "z.csv", "--json")
    assert answer.record["columns"] == ["p_chess", "p_tennis"]


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (lambda text: text.replace("person00", "stranger"), ["1 row with ids", "'stranger'", "1 node", "'person00'"]),
        (lambda text: text + text.splitlines()[1] + "\n", ["1 row with an id that came before"]),
        (lambda text: "\n".join(text.splitlines()[:31]) + "\n", ["10 nodes of the graph without a row"]),
        (lambda text: text.replace("id,good", "name,good"), ["Left out", "row k is taken for node k"]),
    ],
)
def test_rows_that_do_not_match_are_counted(pprop_here, tables, scores, tmp_path: Path, change, fragments):
    file = tmp_path / "scores.csv"
    file.write_text(change(file.read_text()))
    answer = pprop_here("propagate", "edges.csv", "scores.csv", "--out", "spread.csv")
    assert answer.code == (0 if "Left out" in fragments else 3)
    for fragment in fragments:
        assert fragment in answer.err
    assert (tmp_path / "spread.csv").exists() == (answer.code == 0)


def test_too_few_rows_without_ids_are_refused(pprop_here, tables, tmp_path: Path):
    (tmp_path / "scores.csv").write_text("good\n1\n2\n")
    answer = pprop_here("propagate", "edges.csv", "scores.csv")
    assert answer.code == 3
    assert "2 rows for 40 nodes" in answer.err


def test_a_solver_to_a_tolerance_tells_what_it_certifies(pprop_here, tables, scores):
    options = "--solver chebyshev --tol 1e-6 --normalization row --out z.csv"
    command = ["propagate", "edges.csv", "scores.csv", *options.split()]
    record = pprop_here(*command, "--json").record
    assert record["outcome"] == "tolerance reached"
    assert record["steps"] is None
    assert record["certificate"]["relative_error"] <= record["certificate"]["tol"] == 1e-6
    assert record["certificate"]["norm"] == "2-norm weighted by the degrees"
    assert 1 <= record["matrix_products"] <= 40
    assert "to a relative error of at most" in pprop_here(*command, "--force").out


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-6), (np.float32, 160 * 2.0**-23)])
@pytest.mark.parametrize("solver", ["chebyshev", "cg", "contraction"])
def test_without_a_tolerance_a_solver_takes_one_that_the_numbers_can_reach(
    pprop_here, tables, tmp_path: Path, solver, dtype, tol
):
    np.save(tmp_path / "scores.npy", np.random.default_rng(0).normal(size=(40, 3)).astype(dtype))
    command = ("propagate", "edges.csv", "scores.npy", "--solver", solver, "--out", "z.npy", "--json")
    certificate = pprop_here(*command).record["certificate"]
    assert certificate["relative_error"] <= certificate["tol"] == tol
    assert np.load(tmp_path / "z.npy").dtype == dtype


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ("--steps 3 --exact", "Give one of --steps, --exact and --solver"),
        ("--solver cg --exact", "Give one of --steps, --exact and --solver"),
        ("--tol 1e-3", "--tol needs --solver"),
        ("--solver gauss", "must be one of 'chebyshev', 'cg' or 'contraction'. Got 'gauss'."),
        ("--solver cg --tol 2", "--tol must be a number in (0, 1). Got 2.0."),
        ("--solver cg --tol 1e-17", "at alpha 0.1. Got 1e-17."),
        (
            "--solver cg --directed",
            "--solver must be 'contraction' for a directed graph. Got 'cg'. Add: --solver contraction",
        ),
    ],
)
def test_solvers_that_contradict_or_do_not_fit_are_refused(pprop_here, tables, scores, arguments, fragment):
    answer = pprop_here("propagate", "edges.csv", "scores.csv", *arguments.split(), "--out", "z.csv")
    assert answer.code != 0
    assert fragment in " ".join(answer.err.replace("│", " ").split())


def test_a_solver_for_undirected_graphs_is_refused_for_a_file_with_a_directed_one(pprop_here, tables, scores):
    pprop.write_npz(pprop.read_edges(tables[0], directed=True), "directed.npz")
    answer = pprop_here("propagate", "directed.npz", "scores.csv", "--solver", "cg")
    assert answer.code == 3
    assert answer.err.endswith("GRAPH must be undirected. Got a directed graph. Use --solver contraction.\n")
