"""One sentence for everything that is wrong, before work that takes long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.spark.graphs import Tables, make_tables

from pprop import InputError, MissingDependencyError

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def tables(spark: Any) -> Tables:
    return make_tables(spark)


@pytest.fixture(scope="module")
def folder(tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pprop.spark import pack_graph

    return pack_graph(tables.edges, tmp_path_factory.mktemp("bad") / "graph", nodes=tables.predictions)


def pack(edges: Any, place: Path, **how: Any) -> Any:
    from pprop.spark import pack_graph

    return pack_graph(edges, place / "graph", **how)


def test_wrong_edges(tables: Tables, tmp_path: Path) -> None:
    edges = tables.edges
    with pytest.raises(
        InputError, match=r"^The table of edges has no column 'from'\. Its columns: source, target, weight\."
    ):
        pack(edges, tmp_path, source="from")
    with pytest.raises(InputError, match="3 edges of 200 lack a source or a target"):
        pack(_with_nulls(edges, 3), tmp_path)
    with pytest.raises(InputError, match=r"ids of one type: edges\.source is text, edges\.target is integer"):
        pack(edges.selectExpr("source", "CAST(1 AS BIGINT) target"), tmp_path)
    with pytest.raises(InputError, match="ids that are integers or text"):
        pack(edges.selectExpr("weight AS source", "target"), tmp_path)
    with pytest.raises(InputError, match="weight that is missing, negative or not finite"):
        pack(edges.selectExpr("source", "target", "-weight AS weight"), tmp_path, weight="weight")
    with pytest.raises(InputError, match=r"spark\.read\.csv"):
        pack("edges.csv", tmp_path)
    with pytest.raises(InputError, match="there is no such path"):
        pack(str(tmp_path / "none.parquet"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def _with_nulls(edges: Any, count: int) -> Any:
    rows = [(None if k < count else row["source"], row["target"]) for k, row in enumerate(edges.collect())]
    return edges.sparkSession.createDataFrame(rows, "source string, target string")


def test_wrong_nodes(tables: Tables, tmp_path: Path) -> None:
    some = tables.predictions.filter("id != 'n2'")
    with pytest.raises(InputError, match="1 id that no node has, for example 'n2'"):
        pack(tables.edges, tmp_path, nodes=some)
    twice = tables.predictions.unionAll(tables.predictions.filter("id = 'n2'"))
    with pytest.raises(InputError, match="other edges or with other arguments"):
        pack(tables.edges, tmp_path, nodes=twice)
    with pytest.raises(InputError, match="occur more than once, for example 'n2'"):
        pack(tables.edges, tmp_path, nodes=twice, restart=True)


def test_wrong_predictions(tables: Tables, folder: Any, tmp_path: Path) -> None:
    from pprop.spark import propagate

    given = tables.predictions
    with pytest.raises(InputError, match="NaN or infinite, in the columns 'a'"):
        propagate(folder, given.selectExpr("id", "CASE WHEN id = 'n2' THEN DOUBLE('NaN') ELSE a END AS a"))
    with pytest.raises(InputError, match="1 node has no prediction, for example 'n2'"):
        propagate(folder, given.filter("id != 'n2'"))
    with pytest.raises(InputError, match="1 id that no node has, for example 'who'"):
        propagate(folder, given.unionAll(given.selectExpr("'who'", "a", "b", "`c.d`").limit(1)))
    with pytest.raises(InputError, match="1 row with an id that came before, for example 'n2'"):
        propagate(folder, given.unionAll(given.filter("id = 'n2'")))
    with pytest.raises(InputError, match="has no column of numbers besides 'id'"):
        propagate(folder, given.select("id"))
    with pytest.raises(InputError, match="ids of one type"):
        propagate(folder, given.selectExpr("CAST(1 AS BIGINT) id", "a"))
    with pytest.raises(InputError, match=r"'tol' parameter of .* must be None where steps are given"):
        propagate(folder, given, 0.1, 3, 1e-3)
    with pytest.raises(InputError, match=r"'directed' parameter of .* must be left out for a graph that is packed"):
        propagate(folder, given, directed=True)
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with pytest.raises(InputError, match="cannot be written"):
        propagate(folder, given, work=blocked / "work")


def test_columns_that_fit_no_batch(tables: Tables, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__("pprop.spark.propagate", fromlist=["CHUNK_BYTES"])
    monkeypatch.setattr(module, "CHUNK_BYTES", 8)
    with pytest.raises(InputError, match="at most 2 columns"):
        module.propagate(folder, tables.predictions)


def test_executors_with_another_version(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__("pprop.spark.session", fromlist=["__version__"])
    monkeypatch.setattr(module, "__version__", "9.9")
    with pytest.raises(MissingDependencyError, match=r"has pprop .*, and the driver 9\.9"):
        module.check_executors(spark, tmp_path)


def test_java_is_found_or_its_absence_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pprop.spark import find_java

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        MissingDependencyError, match=r"Spark needs Java 17 or newer, and JAVA_HOME, .* has no bin/java"
    ):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="there is no 'java' on the PATH"):
        find_java()
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_292\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    with pytest.raises(MissingDependencyError, match="is Java 8"):
        find_java()
    old.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(MissingDependencyError, match="does not run"):
        find_java()


@pytest.mark.usefixtures("spark")  # skips where there is no Java
def test_executors_without_the_package(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    script = (
        "import sys; from pathlib import Path\n"
        "from pprop.spark.session import check_executors, session_of\n"
        f"check_executors(session_of(master='local[1]'), Path({str(tmp_path)!r}))\n"
    )
    environment = os.environ | {"PYSPARK_PYTHON": str(tmp_path / "bare" / "bin" / "python")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("pprop._errors.MissingDependencyError: The Python of an executor, ")
    assert "has no 'pprop'. Set PYSPARK_PYTHON" in last
