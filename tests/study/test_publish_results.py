"""Published results: written from packed rows alone, and found out where they are not what the rows give."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tools.publish_results import BEGIN, END, main, without_graphs

from pprop import load_dataset
from pprop._errors import DatasetError
from pprop.datasets import TEST_SEEDS
from pprop.graph import Graph
from pprop.study import graphs
from pprop.study.cell import Seeds, make_cell
from pprop.study.report import sections
from pprop.study.report.measures import MEASURES, OF_GRAPHS, ClaimMeasure, Measurement
from pprop.study.store.pack import pack_study
from pprop.study.store.row import Row
from pprop.study.store.store import Store
from tools import publish_results

pytestmark = pytest.mark.slow

MakeRows = Callable[..., list[Row]]
QUICK = [Seeds(split, 0) for split in TEST_SEEDS]


@pytest.fixture(autouse=True)
def quick_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims about graphs and drawings have tests of their own, and take seconds."""

    def one(results: object, where: str) -> Measurement:
        return Measurement(42.0, 41.0, 43.0, "steps", "5 nodes")

    def saved(figure: object, kind: str) -> bytes:
        return b"<svg></svg>"

    for name in OF_GRAPHS:
        monkeypatch.setitem(MEASURES, name, ClaimMeasure("Checked elsewhere", one))
    monkeypatch.setattr(sections, "save_figure", saved)


@pytest.fixture
def rows(make_rows: MakeRows) -> list[Row]:
    graph = load_dataset("citeseer")
    assert graph.labels is not None
    fields = {"predictions": graph.labels.astype(np.uint8), "data": graph.fingerprint}
    means = {"gcn": 0.75, "appnp": 0.76}
    return [
        row
        for model, mean in means.items()
        for row in make_rows(make_cell(model, {}, "citeseer"), mean, QUICK, **fields)
    ]


@pytest.fixture
def root(tmp_path: Path, rows: list[Row]) -> Path:
    """A project with rows and a README, and nothing written yet."""
    (tmp_path / "README.md").write_text(f"# Project\n\n{BEGIN}\n{END}\n\nThe end.\n", encoding="utf-8")
    pack(tmp_path, rows)
    return tmp_path


def pack(root: Path, rows: list[Row]) -> None:
    file = root / "results" / "study.pack"
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    with Store.open(root / f"store {len(list(root.iterdir()))}", create=True) as store:
        store.add_all(rows)
        pack_study(store, file)


def test_what_was_written_passes_and_every_change_of_it_is_found(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], root) == 0
    written = [
        path for path in root.rglob("*") if path.is_file() and path.suffix in (".md", ".html", ".json", ".svg", ".csv")
    ]
    names = {path.relative_to(root).as_posix() for path in written if "store" not in str(path.relative_to(root))}
    figures = {f"results/figures/{name}.{kind}" for name in ("distributions", "distance") for kind in ("svg", "json")}
    assert (
        names
        == {"README.md", "docs/results.md", "results/report.html", "results/report.md", "results/claims.csv"} | figures
    )
    assert main(["--check"], root) == 0
    drawing = root / "results/figures/distance.svg"
    mark = drawing.read_text().rpartition("</svg>")[2]
    drawing.write_text(f"<svg>drawn with other fonts</svg>{mark}")
    assert main(["--check"], root) == 0
    drawing.write_text(f"<svg>drawn from other data</svg>{mark.replace('data ', 'data 0')}")
    assert main(["--check"], root) == 1
    assert "results/figures/distance.svg is not what the rows give" in capsys.readouterr().err

    for name, old, new in (
        ("README.md", "| APPNP |", "| APPNP again |"),
        ("docs/results.md", "20 of 100 runs", "100 of 100 runs"),
        ("results/report.html", "<td", "<th"),
        ("results/figures/distributions.json", "GCN", "GNN"),
        ("results/claims.csv", "42", "43"),
    ):
        text = (root / name).read_text(encoding="utf-8")
        assert old in text
        (root / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    (root / "results/figures/distance.svg").unlink()
    (root / "results/figures/old.svg").write_text("")
    assert main(["--check"], root) == 1
    told = capsys.readouterr().err
    for name in ("README.md", "docs/results.md", "results/report.html", "results/claims.csv"):
        assert f"{name} is not what the rows give" in told
    assert "| APPNP again |" in told
    assert "| APPNP |" in told
    assert "results/figures/distance.svg is missing." in told
    assert "results/figures/old.svg is no figure of these rows" in told
    assert "results/report.md is not" not in told


def test_other_rows_make_the_check_fail_until_the_results_are_written_again(
    root: Path, rows: list[Row], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], root) == 0
    pack(root, [replace(row, accuracy=row.accuracy + 0.01) for row in rows])
    assert main(["--check"], root) == 1
    assert "run 'make results' and commit" in capsys.readouterr().err
    assert main([], root) == 0
    text = (root / "README.md").read_text(encoding="utf-8")
    told = "APPNP is significantly better than a baseline of the paper (p < 0.05 after Holm) in "
    assert text.startswith(
        f"# Project\n\n{BEGIN}\n\n| Accuracy, % | Citeseer |\n| --- | ---: |\n| Network alone (MLP) |  |\n"
    )
    assert re.search(r"^\| APPNP \| 77\.\d\d ± 0\.\d\d \|$", text, re.MULTILINE)  # the mean of the rows, 0.01 more
    assert "\n\n40 runs of 2 cells. " in text
    assert " ".join(text.split()).count(told) == 1
    assert text.endswith(f".\n\n{END}\n\nThe end.\n")


def test_without_a_graph_nothing_is_written_and_the_rest_is_checked(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([], root) == 0

    def absent(name: str) -> Graph:
        raise DatasetError(f"{name} is not here.")

    for module in (publish_results, graphs):
        monkeypatch.setattr(module, "load_dataset", absent)
    before = (root / "results/report.md").read_bytes()
    assert main([], root) == 1
    assert "graphs of Citeseer are missing. Set PPROP_DATA." in capsys.readouterr().err
    assert (root / "results/report.md").read_bytes() == before
    assert main(["--check"], root) == 0
    assert (
        "NOT CHECKED, because the graphs of Citeseer are missing (set PPROP_DATA): Datasets, Claims"
        in capsys.readouterr().out
    )
    (root / "README.md").write_text(
        (root / "README.md").read_text(encoding="utf-8").replace("Holm", "hand", 1), "utf-8"
    )
    assert main(["--check"], root) == 1
    assert "README.md is not what the rows give" in capsys.readouterr().err


def test_a_readme_without_its_marks_is_refused_before_anything_is_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "README.md").write_text("# Project\n", encoding="utf-8")
    assert main([], root) == 1
    assert "README.md lacks the lines" in capsys.readouterr().err
    assert not (root / "docs").exists()


def test_sections_that_need_graphs_are_cut_out_of_both_kinds_of_page() -> None:
    html = '<p>\n<section id="datasets"><h2>Datasets</h2>\n<p>\n</section>\n<section id="costs">\n</section>\n'
    assert without_graphs(html) == '<p>\n<section id="costs">\n</section>\n'
    assert without_graphs("## Costs\n\nx\n\n## Figures\n\n### A\n\ny\n") == "## Costs\n\nx\n\n"
