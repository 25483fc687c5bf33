"""``pprop ppr``: rows of the PPR matrix as a table, as JSON, as a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop.graph import transition_matrix


def test_the_table_names_the_largest_entries_and_the_error(pprop_here, tables):
    answer = pprop_here("ppr", "edges.csv", "person00", "--topk", "3", "--alpha", "0.3")
    assert answer.code == 0
    head, titles, _, *lines = answer.out.splitlines()
    assert titles.split() == ["node", "share"]
    shares = {name: float(share) for name, share in map(str.split, lines)}
    graph = pprop.read_edges(tables[0])
    at = graph.positions(["person00"])[0]
    rows = pprop.ppr(graph, [at], 0.3, topk=3)
    assert graph.ids is not None
    assert rows.certified is not None
    assert rows.certain_entries is not None
    sure = "proven to be the largest" if rows.certified[0] else f"{rows.certain_entries[0]} of them proven"
    assert head == f"person00: 3 entries, error at most {rows.error[0]:.2g} ({rows.norm}), {sure}"
    T = transition_matrix(graph).to_scipy().toarray()
    exact = 0.3 * np.linalg.inv(np.eye(len(T)) - 0.7 * T)[at]
    reached = graph.positions(list(shares))
    below = exact[reached] - list(shares.values())
    assert (below >= -6e-7).all()  # six digits are printed
    assert (below <= rows.entry_errors().toarray()[0, reached] + 6e-7).all()
    assert list(shares) == [graph.ids[node] for node in np.argsort(-exact)[:3]]


def test_json_has_what_the_library_gives(pprop_here, tables):
    graph = pprop.read_edges(tables[0])
    answer = pprop_here("ppr", "edges.csv", "person07", "person21", "--eps", "1e-5", "--normalization", "row", "--json")
    at = graph.positions(["person07", "person21"])
    rows = pprop.ppr(graph, at, 0.1, 1e-5, normalization="row")
    assert answer.record["fingerprint"] == graph.fingerprint
    for k, row in enumerate(answer.record["rows"]):
        assert row["node"] == ["person07", "person21"][k]
        assert row["error"] == rows.error[k]
        assert row["values"] == sorted(row["values"], reverse=True)
        dense = np.zeros(graph.n_nodes)
        dense[graph.positions(row["nodes"])] = row["values"]
        assert np.array_equal(dense, rows.matrix[[k]].toarray()[0])


def test_all_entries_go_to_a_file_that_scipy_reads(pprop_here, tmp_path: Path):
    answer = pprop_here("ppr", "citeseer", 5, 17, "--eps", "1e-3", "--out", "rows.npz", "--json")
    expected = pprop.ppr(pprop.load_dataset("citeseer"), [5, 17], 0.1, 1e-3).matrix
    assert np.array_equal(sparse.load_npz(tmp_path / "rows.npz").toarray(), expected.toarray())
    assert [row["entries"] for row in answer.record["rows"]] == np.diff(expected.indptr).tolist()
    assert "values" not in answer.record["rows"][0]


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (("edges.csv", "nobody"), 3, "The graph has no node 'nobody'. Its first ids: person00, person0"),
        (("edges.csv", "person0"), 3, "The graph has no node 'person0'. Did you mean 'person"),
        (("citeseer", "1", "x", "--", "-2"), 3, "since the graph has no ids. Got 'x', '-2'"),
        (("citeseer", "anna"), 3, "since the graph has no ids. Got 'anna'"),
        (("citeseer", "2110"), 3, "NODE must be a position from 0 to 2109, since the graph has no ids. Got '2110'"),
        (("citeseer", "1", "--eps", "2"), 3, "--eps must be"),
        (("citeseer", "1", "--topk", "0"), 3, "--topk must be"),
        (("citeseer", "1", "--out", "rows.csv"), 3, "--out must end in .npz"),
        (("citeseer",), 2, "NODE"),
    ],
)
def test_wrong_arguments_end_in_one_line(pprop_here, tables, arguments, code, fragment):
    answer = pprop_here("ppr", *arguments)
    assert answer.code == code
    assert fragment in answer.err
    assert answer.err.count("\n") == 1
