"""Tables as text, and the numbers about graphs: everything escaped, aligned, exact."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from pprop import Graph, load_dataset
from pprop._errors import InputError
from pprop.study.tables import paper as paper_tables
from pprop.study.tables.paper import CACHE, cached_shortest_path, dataset_table, mean_shortest_path
from pprop.study.tables.table import (
    NOT_RUN,
    Code,
    Group,
    Measure,
    Number,
    PValue,
    Strong,
    Table,
    TableColumn,
    table_html,
    table_markdown,
)


class Reader(HTMLParser):
    """Collects the cells of a table, and complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


HOSTILE = "<script>alert('x')</script> | `*_#"
TABLE = Table(
    HOSTILE,
    (TableColumn("Model", "text"), TableColumn("Ours", "measure"), TableColumn("p"), TableColumn("Command", "code")),
    (
        Group(
            HOSTILE,
            ((HOSTILE, Strong(Measure(75.731, 0.3)), PValue(1.5e-9), Code(HOSTILE)), ("b", NOT_RUN, None, None)),
        ),
    ),
    (f"{HOSTILE} and `code`",),
)


def test_html_escapes_everything_and_puts_a_mean_and_its_interval_into_two_cells() -> None:
    written = table_html(TABLE)
    assert "<script" not in written
    head, group, first, second = Reader(written).rows
    assert head == ["Model", "Ours", "p", "Command"]
    assert group == [HOSTILE]
    assert first == [HOSTILE, "75.73", "± 0.30", "< 1e−6", HOSTILE]
    assert second == ["b", "not run", "–", "–"]


def test_numbers_of_a_column_have_the_same_decimals_so_that_their_points_align() -> None:
    table = Table(
        "", (TableColumn("x"),), (Group(None, tuple((Number(x, 2, signed=True),) for x in (1, -12.346, 0.1))),)
    )
    cells = [row[0] for row in Reader(table_html(table)).rows[1:]]
    assert cells == ["+1.00", "−12.35", "+0.10"]
    assert table_html(table).count('<td class="number">') == 3


def test_markdown_keeps_its_columns_whatever_the_text_holds() -> None:
    lines = [line for line in table_markdown(TABLE).splitlines() if line.startswith("|")]
    assert lines[1] == "|---|---:|---:|---|"
    assert {line.replace("\\|", "").count("|") for line in lines} == {5}
    assert "**75.73 ± 0.30**" in lines[3]
    assert not any("<script" in line.replace("\\<", "") for line in lines if "`" not in line.replace("\\`", ""))


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_shortest_path_agrees_with_scipy_also_between_several_components(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper_tables, "BLOCK", 1)  # 64 start nodes at once, so that there are several blocks
    random = np.random.default_rng(seed)
    upper = np.triu(random.random((150, 150)) < 0.012, k=1)
    adjacency = (upper | upper.T).astype(np.float64)
    lengths = csgraph.shortest_path(sparse.csr_array(adjacency), unweighted=True)
    reached = np.isfinite(lengths) & ~np.eye(150, dtype=bool)
    assert not reached.all()  # there are isolated nodes and several components
    found = mean_shortest_path(Graph.from_scipy(sparse.csr_array(adjacency)))
    assert found == pytest.approx(lengths[reached].mean(), rel=1e-14)


def test_a_graph_without_paths_is_refused() -> None:
    with pytest.raises(InputError, match="'graph' parameter of mean_shortest_path"):
        mean_shortest_path(Graph.from_scipy(sparse.csr_array((3, 3))))


@pytest.mark.data
def test_citeseer_and_cora_ml_have_the_printed_sizes_and_average_shortest_paths() -> None:
    table = dataset_table(["citeseer", "cora_ml"])
    assert table.notes == ()
    rows = [[str(value) for value in row] for row in table.groups[0].rows]
    assert rows[0] == ["Citeseer", "6", "3703", "2110", "3668", "0.057", "0.036", "0.036", "9.31", "9.31"]
    assert rows[1] == ["Cora-ML", "7", "2879", "2810", "7981", "0.050", "0.047", "0.047", "5.27", "5.27"]


def test_a_dataset_that_is_not_here_is_named(only_bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPROP_DATA", str(only_bundled))
    table = dataset_table(["nowhere"])
    assert table.n_rows == 0
    assert "nowhere could not be loaded here" in table.notes[0]


def test_the_average_is_taken_from_the_studys_folder_and_a_damaged_cache_is_written_anew(tmp_path: Path) -> None:
    graph, path = load_dataset("citeseer"), tmp_path / CACHE
    path.write_text("{ damaged", encoding="utf-8")
    first = cached_shortest_path(graph, tmp_path)
    assert first == pytest.approx(9.31, abs=0.005)
    assert json.loads(path.read_text(encoding="utf-8")) == {graph.fingerprint: first}
    path.write_text(json.dumps({graph.fingerprint: 4.5}), encoding="utf-8")
    assert cached_shortest_path(graph, tmp_path) == 4.5
    assert [entry.name for entry in tmp_path.iterdir()] == [CACHE]


@pytest.mark.parametrize("content", [b"[" * 100_000, b"3", b"[1]", b'{"a": NaN}', None])
def test_a_cache_that_is_none_is_computed_anew(tmp_path: Path, content: bytes | None) -> None:
    ring = Graph.from_scipy(sparse.csr_array([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    if content is None:
        os.mkfifo(tmp_path / CACHE)
    else:
        (tmp_path / CACHE).write_bytes(content)
    assert cached_shortest_path(ring, tmp_path) == 1.0
    assert json.loads((tmp_path / CACHE).read_bytes()) == {ring.fingerprint: 1.0}
