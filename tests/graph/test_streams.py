"""Tables in streams: some rows at a time give what `read_table` gives at once, and reading goes on at a place."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pprop.graph.tables import streams
from pprop.graph.tables.readers import read_table
from pprop.graph.tables.streams import TableStream

ROWS = [(f"n{k}", f"é {k}" if k % 5 else "", f"{k / 7:.3f}") for k in range(200)]
PLAIN = "\n".join(",".join(row) for row in ROWS)
TEXTS = {
    "plain": "id,name,x\n" + PLAIN + "\n",
    "without a last line end": "id,name,x\n" + PLAIN,
    "marked UTF-8": "\ufeffid,name,x\n" + PLAIN,
    "Windows": "id,name,x\r\n" + PLAIN.replace("\n", "\r\n"),
    "old Mac": "id,name,x\r" + PLAIN.replace("\n", "\r"),
    "comments": "# made today\n# by hand\nid,name,x\n" + PLAIN,
    "Excel": "sep=;\nid;name;x\n" + PLAIN.replace(",", ";"),
    "blank lines and blanks": " id , name,x \n\n" + PLAIN.replace("\n", "\n\n").replace(",", " , "),
    "quotes": '"id","na""me",x\n' + "\n".join(f'"{a}","{b}, ""{a}""\n\n",{c}' for a, b, c in ROWS),
    "quoted sharp": '"#id",name,x\n' + PLAIN,
}


def joined(stream: TableStream, rows: int = 3, **more: Any) -> tuple[dict[str, list[Any]], int]:
    found: dict[str, list[Any]] = {}
    parts = 0
    for table, _ in stream.tables(rows, **more):
        for name, column in table.columns.items():
            assert table.first >= len(found.setdefault(name, [])) or "start" in more
            found[name] += column.to_pylist()
        parts += 1
    return found, parts


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_csv_in_blocks_is_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, packed: bool):
    monkeypatch.setattr(streams, "LEAST", 600)
    content = TEXTS[kind].encode()
    file = tmp_path / ("t.csv.gz" if packed else "t.csv")
    file.write_bytes(gzip.compress(content) if packed else content)
    whole = read_table(file, "path", "read_edges")
    stream = TableStream.of([file], "path", "read_edges")
    found, parts = joined(stream)
    assert parts > 3
    assert found == {name: column.to_pylist() for name, column in whole.columns.items()}
    assert 0.5 < TableStream.of([file], "path", "read_edges").rows() / 200 < 5
    tables = list(stream.tables(3))
    place = tables[2][1]
    assert place is not None
    rest, _ = joined(stream, start=place)
    assert rest == {name: cells[place.row :] for name, cells in found.items()}


@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
def test_parquet_goes_on_at_a_row_group(tmp_path: Path, rows: int):
    columns = {"id": list(range(100)), "x": [None, 0.5] * 50}
    for name, size in (("one", 13), ("two", 100)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet", row_group_size=size)
    stream = TableStream.of([tmp_path / "one.parquet", tmp_path / "two.parquet"], "edges", "build_graph", ("id",))
    tables = list(stream.tables(rows))
    cells = [cell for table, _ in tables for cell in table.columns["id"].to_pylist()]
    assert cells == columns["id"] * 2
    assert stream.rows() == 200
    done = 0
    for table, place in tables:
        done += table.n_rows
        if place is not None:
            rest = [cell for part, _ in stream.tables(rows, place) for cell in part.columns["id"].to_pylist()]
            assert rest == cells[done:]
    assert tables[-1][1] is not None
