"""The report: the same rows give the same bytes, everything is escaped, and what is missing is said or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pprop import load_dataset
from pprop._errors import MissingDependencyError
from pprop.datasets import TEST_SEEDS, VALIDATION_SEEDS
from pprop.study.cell import Cell, Seeds, make_cell, split_seeds
from pprop.study.figures import figures_of, style
from pprop.study.figures.gather import DrawnFigure
from pprop.study.report import results, sections, write_report
from pprop.study.report.measures import MEASURES, OF_GRAPHS, ClaimMeasure, Measurement
from pprop.study.stats.estimate import estimate
from pprop.study.store.merge import merge_studies
from pprop.study.store.row import Row
from pprop.study.store.store import Store

pytestmark = pytest.mark.slow

MakeRows = Callable[..., list[Row]]
QUICK = [Seeds(split, 0) for split in TEST_SEEDS]


@pytest.fixture(autouse=True, scope="module")
def quick_claims() -> Iterator[None]:
    """The claims about graphs have tests of their own, and take seconds."""

    def one(results: object, where: str) -> Measurement:
        return Measurement(42.0, 41.0, 43.0, "steps", "5 nodes")

    with pytest.MonkeyPatch.context() as patch:
        for name in OF_GRAPHS:
            patch.setitem(MEASURES, name, ClaimMeasure("Checked elsewhere", one))
        yield


@contextmanager
def without_drawings() -> Generator[None]:
    """Figures with their data and captions, but drawn as nothing: drawing takes more than half of a report's time."""

    def undrawn(*arguments: Any) -> list[DrawnFigure]:
        return [replace(each, draw=lambda: None) for each in figures_of(*arguments)]

    with pytest.MonkeyPatch.context() as patch:
        for module in (results, sections):
            patch.setattr(module, "figures_of", undrawn)
        patch.setattr(sections, "save_figure", lambda *_: b"<svg></svg>")
        yield


@pytest.fixture
def undrawn() -> Iterator[None]:
    with without_drawings():
        yield


@pytest.fixture(scope="module")
def quick(make_rows: MakeRows) -> list[Row]:
    """What `pprop study run quick` leaves, apart from what was predicted."""
    graph = load_dataset("citeseer")
    assert graph.labels is not None
    predictions = graph.labels.astype(np.uint8)
    models = {"mlp": 0.62, "gcn": 0.75, "appnp": 0.76}
    return [
        row
        for model, mean in models.items()
        for row in make_rows(
            make_cell(model, {}, "citeseer"), mean, QUICK, predictions=predictions, data=graph.fingerprint
        )
    ]


def study(folder: Path, rows: list[Row]) -> Path:
    with Store.open(folder, create=True) as store:
        store.add_all(rows)
    return folder


@pytest.fixture(scope="module")
def alone(quick: list[Row], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The report of these rows and no others."""
    return report(study(tmp_path_factory.mktemp("alone"), quick))


def contents(paths: list[Path], root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def report(folder: Path) -> dict[str, str]:
    return {
        name: data.decode() for name, data in contents(write_report(folder, folder / "out"), folder / "out").items()
    }


class Page(HTMLParser):
    """Sections and text of a page, and everything that it would load from elsewhere."""

    VOID = ("meta", "br", "link", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if tag == "section" and name == "id":
                self.ids.append(value or "")
            local = (value or "").startswith("#")
            if name in ("src", "srcset", "data") or (name in ("href", "xlink:href") and not local):
                self.loads.append(f"{tag} {name}={value}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_quick_study_gives_a_short_report_without_empty_sections(alone: dict[str, str]) -> None:
    page = Page(alone["report.html"])
    expected = [
        "accuracy",
        "macro-f1",
        "beside-the-paper",
        "p-values",
        "over-test-nodes",
        "figures",
        "datasets",
        "claims-in-the-text",
        "what-was-run",
        "costs",
    ]
    assert page.ids == expected
    figures = {f"figures/{name}.{end}" for name in ("distributions", "distance") for end in ("svg", "json")}
    assert set(alone) == {"report.html", "report.md"} | figures
    headings = re.findall(r"^## (.*)$", alone["report.md"], flags=re.MULTILINE)
    assert [heading.lower().replace(" ", "-") for heading in headings] == expected


def test_the_html_page_needs_nothing_from_elsewhere(alone: dict[str, str]) -> None:
    text = alone["report.html"]
    page = Page(text)
    assert page.loads == []
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert "@import" not in text
    assert "url(http" not in text
    assert "svg" in page.tags
    assert "@media print" in text


def test_the_same_rows_give_the_same_bytes_in_any_folder_and_order(
    tmp_path: Path, quick: list[Row], alone: dict[str, str]
) -> None:
    again = report(study(tmp_path, list(reversed(quick))))
    assert again == alone
    assert str(tmp_path) not in "".join(again.values())


@pytest.mark.usefixtures("undrawn")
def test_a_merge_of_two_stores_gives_the_report_of_one(tmp_path: Path, quick: list[Row]) -> None:
    here, there = study(tmp_path / "here", quick[::2]), study(tmp_path / "there", quick[1::2] + quick[:4])
    merged = tmp_path / "merged"
    assert merge_studies([there, here], merged).sound
    found = report(merged)
    assert found == report(study(tmp_path / "whole", quick))
    assert found != report(here)


def test_what_a_user_named_is_escaped_in_both_pages(tmp_path: Path, quick: list[Row], make_rows: MakeRows) -> None:
    own = make_rows(Cell("mine:<img src=x onerror=alert(1)>", {}, "citeseer"), 0.74, QUICK, host="<b>host</b>|")
    written = report(study(tmp_path, quick + own))
    page = Page(written["report.html"])
    assert page.loads == []
    assert "b" not in page.tags
    assert "mine:<img src=x onerror=alert(1)>" in page.text
    assert "<b>host" not in written["report.md"].replace("\\<", "")


@pytest.mark.usefixtures("undrawn")
def test_an_own_model_has_its_row_its_interval_and_its_p_values(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    text = report(study(tmp_path, quick + make_rows(Cell("mine:build", {}, "citeseer"), 0.74, QUICK)))["report.md"]
    assert re.search(r"\| mine:build \| 20 \| \d\d\.\d\d ± \d\.\d\d \|", text)
    own = text.split("**mine:build on Citeseer**")[1].splitlines()[1:3]
    assert [line.split(" | ")[0].strip("| *") for line in own] == ["GCN", "APPNP"]


@pytest.mark.usefixtures("undrawn")
def test_a_cell_that_was_run_again_is_listed_and_never_averaged(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    again = make_rows(
        make_cell("gcn", {}, "citeseer"), 0.5, QUICK[:3], revision="c2", created="2026-02-01T00:00:00+00:00"
    )
    text = report(study(tmp_path, quick + again))["report.md"]
    assert "1 test cell was run again with another version" in text
    mean = 100 * float(np.mean([row.accuracy for row in again]))
    shown = [line for line in text.splitlines() if line.startswith("| GCN on Citeseer | test |")]
    assert [line.split(" | ")[2] for line in shown] == ["c2", "c1"]
    assert [line.split(" | ")[4] for line in shown] == ["3", "20"]
    assert f"| {mean:.2f} ± " in shown[0]
    assert "**shown**" in shown[0]
    assert re.search(rf"\| GCN \| 3 of 100 \| {mean:.2f} ± ", text)


@pytest.mark.usefixtures("undrawn")
def test_a_model_without_epochs_that_was_fitted_again_is_listed_with_the_settings_that_tell_it_apart(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    fitted = {"seeds": QUICK[:4], "epochs": 0, "together": 1}
    bt_fp, jk = make_cell("bootstrapped_fp", {}, "citeseer"), make_cell("jk", {"layers": 3}, "citeseer")
    newer = {"revision": "c2", "created": "2026-02-01T00:00:00+00:00"}
    rows = make_rows(bt_fp, 0.75, **fitted) + make_rows(bt_fp, 0.76, backend="numpy", **newer, **fitted)
    rows += make_rows(jk, 0.72, QUICK) + make_rows(jk, 0.73, QUICK, **newer)
    text = report(study(tmp_path, quick + rows))["report.md"]
    listed = [line.strip("| ").split(" | ") for line in text.splitlines() if re.search(r"\| c[12] \|", line)]
    assert [(line[0], line[-1]) for line in listed] == [
        ("JK on Citeseer, layers = 3", "**shown among other cells**"),  # no other table has it
        ("JK on Citeseer, layers = 3", "not shown"),
        ("Bt. FP, tuned on Citeseer", "**shown**"),
        ("Bt. FP, tuned on Citeseer", "not shown"),
    ]


@pytest.mark.usefixtures("undrawn")
def test_times_in_the_figure_on_propagation_are_of_its_device_though_another_was_timed_later(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    def timed(model: str, seconds: float, **fields: str) -> list[Row]:
        cell = make_cell(model, {"patience": 200, "max_epochs": 200}, "citeseer")
        return make_rows(cell, 0.7, QUICK[:5], seconds=seconds, epochs=200, together=1, **fields)

    cuda = {"device": "cuda (H200)", "backend": "triton"}
    later = {"revision": "c2", "created": "2026-02-01T00:00:00+00:00"}
    rows = [*timed("mlp", 0.1, **cuda), *timed("appnp", 0.3, **cuda)]
    rows += [*timed("mlp", 10.0, **later), *timed("appnp", 30.0, **later)]
    for model, evaluate in (("mlp", "propagated"), ("appnp", "network")):
        rows += make_rows(make_cell(model, {"evaluate": evaluate}, "citeseer"), 0.7, QUICK, **cuda)
    on_gpu = [replace(row, **cuda) for row in quick]
    text = report(study(tmp_path, on_gpu + rows))["report.md"]
    assert "Times are milliseconds an epoch of runs timed alone, times each run's epochs." in text
    wanted = "| Citeseer | Seconds of a training: without propagation over with it | 0.33 times the seconds |"
    assert wanted in text  # 400 epochs of 0.5 and 1.5 ms


@pytest.mark.usefixtures("undrawn")
def test_the_command_of_a_figure_asks_for_the_runs_and_the_device_that_it_shows(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    few = make_rows(make_cell("gcn", {}, "citeseer", per_class=5), 0.7, QUICK)
    on_gpu = [replace(row, device="cuda (H200)") for row in quick + few]
    text = report(study(tmp_path, on_gpu))["report.md"]
    assert "pprop study run gasteiger_2019_labels_citeseer --out DIR --runs 20 --device cuda" in text


@pytest.mark.usefixtures("undrawn")
def test_cells_that_no_experiment_has_are_shown_with_their_settings(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    odd = make_rows(make_cell("appnp", {"steps": 7}, "citeseer"), 0.7, QUICK[:2])
    text = report(study(tmp_path, quick + odd))["report.md"]
    (line,) = [line for line in text.splitlines() if "steps = 7" in line]
    assert line.startswith("| APPNP | Citeseer | test | ")
    assert " | 2 | " in line


def test_a_figure_begun_is_drawn_and_what_it_lacks_is_said(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    few = make_rows(make_cell("gcn", {}, "citeseer", per_class=5), 0.7, QUICK)
    written = report(study(tmp_path, quick + few))
    assert "figures/labels.svg" in written
    assert "- `gasteiger_2019_labels_citeseer` has 80 of " in written["report.md"]


def own_experiment(folder: Path, name: str, *lines: str) -> None:
    """Keep an experiment file of one's own with a study."""
    home = folder / "experiments" / f"{name}.toml"
    home.parent.mkdir(exist_ok=True)
    home.write_text("\n".join([f'title = "Title of {name}"', *lines]))


def without(text: str, title: str) -> str:
    """Return a report in Markdown without one of its sections, the notes, and what counts or costs rows."""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    left_out = (f"## {title}", "## What was run", "## Costs", "## Notes")
    return "".join(part for part in parts if not part.startswith(left_out))


def test_additional_runs_change_no_other_table_figure_or_claim(
    tmp_path: Path, quick: list[Row], alone: dict[str, str], make_rows: MakeRows
) -> None:
    more = [Seeds(split, init) for init in range(5) for split in split_seeds("test", 200)]
    more = [seeds for seeds in more if seeds.split not in TEST_SEEDS]
    few = [Seeds(split, init) for init in range(1, 5) for split in TEST_SEEDS]
    common = {"predictions": quick[0].predictions, "data": quick[0].key.data}
    added = [
        row for model in ("appnp", "gcn") for row in make_rows(make_cell(model, {}, "citeseer"), 0.3, more, **common)
    ]
    mixed = report(study(tmp_path / "mixed", quick + added))
    assert without(mixed["report.md"], "A thousand runs") == without(alone["report.md"], "A thousand runs")
    assert {name: text for name, text in mixed.items() if name.startswith("figures")} == {
        name: text for name, text in alone.items() if name.startswith("figures")
    }
    assert "- APPNP on Citeseer has 920 of 1000 runs, and is left out until it has all." in mixed["report.md"]
    assert "A thousand runs" not in alone["report.md"]
    rest = [
        row for model in ("appnp", "gcn") for row in make_rows(make_cell(model, {}, "citeseer"), 0.3, few, **common)
    ]
    with without_drawings():
        whole = report(study(tmp_path / "whole", quick + added + rest))["report.md"]
    section = re.split(r"^## ", whole.split("\n## A thousand runs\n")[1], flags=re.MULTILINE)[0]
    assert len(re.findall(r"^\| (?:APPNP|GCN) \| 1000 \| ", section, flags=re.MULTILINE)) == 2
    assert "| 1000 |" not in without(whole, "A thousand runs")


def test_own_experiments_change_no_table_figure_or_claim_and_have_a_section(
    tmp_path: Path, quick: list[Row], alone: dict[str, str], make_rows: MakeRows
) -> None:
    cells = {
        "narrow": (make_cell("mlp", {"hidden": [8]}, "citeseer"), 0.39),
        "gat": (make_cell("gat", {"max_epochs": 5}, "citeseer"), 0.99),
        "short": (make_cell("gcn", {"max_epochs": 5}, "citeseer"), 0.98),
        "few": (make_cell("appnp", {"steps": 3}, "citeseer", per_class=5), 0.3),
        "alpha": (make_cell("appnp", {"alpha": 0.5}, "citeseer"), 0.97),
    }
    added = [
        row for cell, mean in cells.values() for row in make_rows(cell, mean, QUICK, predictions=quick[0].predictions)
    ]
    checked = make_cell("mlp", {"hidden": [9]}, "citeseer", splits="validation")
    added += make_rows(checked, 0.51, [Seeds(VALIDATION_SEEDS[0], 0)])
    both = study(tmp_path / "both", quick + added)
    mlp, gat, gcn, appnp = (f'model = "{model}"\ndataset = "citeseer"' for model in ("mlp", "gat", "gcn", "appnp"))
    shows = 'shows = "accuracy"'
    own_experiment(both, "narrow", shows, mlp, "[settings]\nhidden = [8]")
    own_experiment(both, "gat", shows, gat, "[settings]\nmax_epochs = 5")
    own_experiment(both, "short", shows, gcn, "[settings]\nmax_epochs = 5")
    own_experiment(both, "few", shows, appnp, "per_class = 5\n[settings]\nsteps = 3")
    own_experiment(both, "alpha", 'shows = "alpha"', appnp, "[grid]\nalpha = [0.5]")
    own_experiment(
        both, "checked", shows, mlp, 'splits = "validation"\nn_splits = 1\nn_inits = 1\n[settings]\nhidden = [9]'
    )
    mixed = report(both)
    assert without(mixed["report.md"], "Other experiments") == without(alone["report.md"], "Other experiments")
    assert {name: text for name, text in mixed.items() if name.endswith("svg")} == {
        name: text for name, text in alone.items() if name.endswith("svg")
    }
    section = re.split(r"^## ", mixed["report.md"].split("\n## Other experiments\n")[1], flags=re.MULTILINE)[0]
    assert r"| MLP | Citeseer | test | hidden = \[8\] | 20 of 100 | 39." in section
    assert re.search(r"\| MLP \| Citeseer \| validation \| hidden = \S+ \| 1 \| 5\d\.\d\d \|", section)  # one run: no ±
    assert "| APPNP | Citeseer | test | alpha = 0.5 |" in section
    for name in (*cells, "checked"):
        assert f"Title of {name}" in section


def test_an_own_figure_is_drawn_apart_from_the_published_one(
    tmp_path: Path, quick: list[Row], make_rows: MakeRows
) -> None:
    cells = [make_cell("appnp", {"alpha": alpha}, "citeseer") for alpha in (0.3, 0.5)]
    folder = study(tmp_path, quick + [row for cell in cells for row in make_rows(cell, 0.7, QUICK)])
    grid = 'model = "appnp"\ndataset = "citeseer"\n[grid]\nalpha = [0.3, 0.5]'
    own_experiment(folder, "mine", 'shows = "alpha"', grid)
    written = report(folder)
    assert {name for name in written if "alpha" in name} == {"figures/other_1_alpha.svg", "figures/other_1_alpha.json"}
    section = written["report.md"].split("\n## Other experiments\n")[1]
    assert "### Title of mine: Accuracy over the teleport probability" in section
    assert "pprop study run mine --out DIR\n" in section
    assert "- The best α is around" in section  # it is not measured on these


@pytest.mark.usefixtures("undrawn")
def test_a_kept_file_with_the_name_of_a_published_experiment_does_not_take_its_place(
    tmp_path: Path, quick: list[Row], alone: dict[str, str], make_rows: MakeRows
) -> None:
    both = study(tmp_path / "both", quick + make_rows(make_cell("mlp", {"hidden": [8]}, "citeseer"), 0.39, QUICK))
    ours = ('shows = "accuracy"', 'model = "mlp"\ndataset = "citeseer"\n[settings]')
    own_experiment(both, "gasteiger_2019_mlp_citeseer", *ours, "hidden = [8]")
    own_experiment(both, "gasteiger_2019_gcn_citeseer", ours[0], 'model = "gcn"\ndataset = "citeseer"')
    mixed = report(both)["report.md"]
    assert without(mixed, "Other experiments") == without(alone["report.md"], "Other experiments")
    assert "Title of gasteiger" in mixed


def test_every_compared_number_has_its_command_and_agreement_is_counted(
    quick: list[Row], alone: dict[str, str]
) -> None:
    text = alone["report.md"]
    assert "`pprop study run gasteiger_2019_appnp_citeseer --out DIR --runs 20`" in text
    agree = 0
    for model, paper in (("gcn", 75.40), ("appnp", 75.73)):  # both ± 0.30
        ours = estimate([100 * row.accuracy for row in quick if Cell.parse(row.cell).model == model])
        agree += abs(ours.mean - paper) <= np.hypot(ours.half, 0.30)
    assert f"{agree} of 2 accuracies" in text


def test_without_matplotlib_the_report_says_so_and_has_the_rest(
    tmp_path: Path, quick: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise MissingDependencyError("Drawing figures needs matplotlib.")

    monkeypatch.setattr(style, "require", absent)
    written = report(study(tmp_path, quick))
    assert set(written) == {"report.html", "report.md"}
    assert "Figures are left out: Drawing figures needs matplotlib." in written["report.md"]


def test_an_empty_store_gives_a_page_that_tells_how_to_begin(tmp_path: Path) -> None:
    Store.open(tmp_path, create=True).close()
    written = report(tmp_path)
    assert "pprop study run quick --out DIR" in written["report.md"]
    assert Page(written["report.html"]).ids == []


def test_a_folder_without_a_study_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no study"):
        write_report(tmp_path, tmp_path)
