"""A study of the user's own graph: the paper's tables and figures for it, nothing of the paper's numbers, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop import InputError, load_dataset
from pprop.cli.app import run
from pprop.datasets import DATASETS, TEST_SEEDS, VISIBLE_SEED
from pprop.graph import Graph, write_folder, write_npz
from pprop.settings import ALPHA
from pprop.study import cell, experiment_folder
from pprop.study.cell import Cell, make_cell
from pprop.study.experiment import Experiment, Point
from pprop.study.experiment_folder import TEMPLATE, check_graph_name, experiments_on, load_experiments, on_graph
from pprop.study.graphs import keep_graph, load_graph, own_graph, own_names, protocol_of
from pprop.study.report import write_report
from pprop.study.report.measures import MEASURES, OF_GRAPHS, ClaimMeasure, Measurement
from pprop.study.run import user_model
from pprop.study.stats.estimate import estimate
from pprop.study.store.row import Row
from pprop.study.store.store import Store

pytestmark = pytest.mark.slow

CLASSES = ("birds", "cats", "dogs")
RUNS = 3
EPOCHS = 30
SHORT = {"max_epochs": EPOCHS}
LABELS_OF = ("mlp", "gcn", "appnp")
SWEEPS = ("alpha", "depth", "steps", "labels")


@pytest.fixture(autouse=True, scope="module")
def short_trainings() -> Iterator[None]:
    """All experiments that come with pprop, with few epochs: on a small graph some runs take all 10,000; labels of few models."""

    def short(point: Point) -> Point:
        settings = {**point.cell.settings, **(SHORT if "max_epochs" in point.cell.settings else {})}
        return Point(replace(point.cell, settings=settings), point.at)

    def shown(one: Experiment) -> list[Point]:
        return [point for point in one.points if one.shows != "labels" or point.cell.model in LABELS_OF]

    bundled = {name: replace(one, points=tuple(map(short, shown(one)))) for name, one in load_experiments().items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment_folder, "_bundled", lambda: bundled)
        yield


def cell_of(model: str, per_class: int = 20, **settings: Any) -> Cell:
    """Return a cell of the study."""
    return replace(make_cell(model, {**SHORT, **settings}, TEMPLATE), dataset="animals", per_class=per_class)


def animals(of_class: tuple[int, ...] = (110, 110, 110), unlabelled: int = 14, apart: int = 4, seed: int = 0) -> Graph:
    """Return a planted graph: classes that link among themselves, some nodes without labels, some outside."""
    random = np.random.default_rng(seed)
    n_inside = sum(of_class)
    truth = np.repeat(np.arange(len(of_class)), of_class)
    likely = np.where(truth[:, None] == truth, 0.05, 0.005)
    upper = np.triu(random.random((n_inside, n_inside)) < likely, 1)
    upper[np.arange(n_inside - 1), np.arange(1, n_inside)] = True  # connected
    n = n_inside + apart
    adjacency = np.zeros((n, n))
    adjacency[:n_inside, :n_inside] = upper | upper.T
    features = (random.random((n, 30)) < 0.1).astype(np.float32)
    features[np.arange(n_inside), 10 * truth + random.integers(10, size=n_inside)] = 1
    labels = np.concatenate([truth, np.zeros(apart, dtype=np.int64)])
    labels[random.choice(n_inside, unlabelled, replace=False)] = -1
    return Graph.from_scipy(
        sparse.csr_array(adjacency),
        features=sparse.csr_array(features),
        labels=labels,
        class_names=CLASSES[: len(of_class)],
    )


@dataclass(frozen=True)
class Study:
    graph: Graph
    file: Path
    folder: Path
    report: str


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study with two groups of experiments on the graph, and its report."""
    home = tmp_path_factory.mktemp("own")
    graph = animals()
    write_npz(graph, home / "animals.npz")
    asked = ["quick", "propagation", "--graph", home / "animals.npz", "--runs", RUNS, "--out", home / "study"]
    assert run(["study", "run", *map(str, asked)]) == 0
    write_report(home / "study")
    return Study(graph, home / "animals.npz", home / "study", (home / "study/report.md").read_text())


@pytest.fixture
def pprop(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def rows_of(folder: Path) -> list[Row]:
    with Store.open(folder) as store:
        return store.rows()


def table(report: str, caption: str) -> dict[str, list[str]]:
    """Return the rows of a table of the report by their first value."""
    _, _, after = report.partition(f"**{caption}**")
    lines = [line for line in after.split("\n\n")[1].splitlines() if line.startswith("|")]
    cells = [[value.strip(" *") for value in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


def test_every_row_is_of_the_graph_and_its_accuracy_that_of_the_test_nodes(study: Study):
    kept = load_graph("animals", study.folder)
    assert kept.labels is not None
    assert kept.n_nodes == study.graph.n_nodes - 4
    labelled = np.flatnonzero(kept.labels >= 0)
    n_known = len(labelled) // 2
    known = np.random.RandomState(VISIBLE_SEED).choice(np.arange(len(labelled)), n_known, replace=False)
    test = np.delete(labelled, known)
    rows = rows_of(study.folder)
    assert len(rows) == RUNS * 5  # MLP and APPNP, which both experiments have, count once
    for row in rows:
        assert json.loads(row.cell)["dataset"] == "animals"
        assert row.key.data == kept.fingerprint
        assert row.accuracy == pytest.approx(float((row.predictions[test] == kept.labels[test]).mean()))


def test_splits_leave_out_nodes_without_labels_and_keep_to_the_rule(study: Study):
    kept = load_graph("animals", study.folder)
    assert kept.labels is not None
    protocol = protocol_of(kept)
    assert (len(protocol.nodes), protocol.known, protocol.stopping) == (316, 158, 52)
    seen = [protocol.split(kept, seed) for seed in TEST_SEEDS]
    for split in seen:
        assert (np.bincount(kept.labels[split.train]) == 20).all()
        every = np.concatenate([split.train, split.stopping, split.evaluation])
        assert len(np.unique(every)) == len(every) == 60 + 52 + 158
        assert (kept.labels[every] >= 0).all()
        np.testing.assert_array_equal(split.evaluation, protocol.test)
    assert len({split.train.tobytes() for split in seen}) == len(seen)
    hidden = kept.labels.copy()
    hidden[protocol.test] = -1
    validation = protocol.split(kept.replace(labels=hidden), 7, test=False)
    assert len(validation.evaluation) == 158 - 60 - 52
    assert not np.isin(validation.evaluation, protocol.test).any()


def test_the_tables_have_the_numbers_of_the_rows(study: Study):
    rows = rows_of(study.folder)
    found = table(study.report, "Accuracy in percent: mean ± 95 % interval over runs (over splits)")
    assert found["Model"] == ["animals"]
    for model, title in (("appnp", "APPNP"), ("gcn", "GCN"), ("mlp", "MLP")):
        of_model = estimate([100 * row.accuracy for row in rows if row.cell == cell_of(model).text])
        assert of_model.runs == RUNS
        assert found[title] == [f"{of_model.mean:.2f} ± {of_model.half:.2f}"]
    assert found["GAT"] == ["not run"]
    details = table(study.report, "Accuracy in percent")
    assert details["Model"] == ["Runs", "Ours", "Command"]
    assert details["APPNP"][0] == f"{RUNS} of 100"
    assert "gasteiger_2019_appnp_animals --out DIR --runs 3" in details["APPNP"][2]
    for title in ("Macro F1", "p-values", "Figures", "Datasets", "Costs"):
        assert f"\n## {title}\n" in study.report
    assert table(study.report, "Datasets: the largest component of each")["animals"][:3] == ["3", "30", "330"]
    assert (
        "Splits of animals: 158 known nodes, 60 of them for training, 52 for early stopping; 158 for testing; 14 nodes"
        in (study.report)
    )


def test_the_figures_are_of_the_graph(study: Study):
    for name in ("distributions", "propagation", "distance"):
        assert (study.folder / f"figures/{name}.svg").stat().st_size > 1000
        (data,) = json.loads((study.folder / f"figures/{name}.json").read_text())
        assert data["dataset"] == "animals"
    ways = {way["name"]: way["accuracy"]["mean"] for way in _propagation(study.folder)}
    cell = cell_of("appnp", evaluate="network")
    accuracies = [100 * row.accuracy for row in rows_of(study.folder) if row.cell == cell.text]
    assert list(ways) == ["never", "training", "inference", "both"]
    assert ways["training"] == pytest.approx(float(np.mean(accuracies)))


def _propagation(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "figures/propagation.json").read_text())[0]["ways"]


def test_the_figures_over_one_setting_are_of_the_graph(study: Study, tmp_path: Path, pprop):
    code, _, err = pprop("study", "run", *SWEEPS, "--graph", study.file, "--runs", 2, "--out", tmp_path)
    refused = {text for line in err.splitlines() for _, found, text in [line.partition(" labels per class. ")] if found}
    assert code == 3
    assert len(refused) == 2, refused
    assert all(f"must be at most {most}, " in " ".join(refused) for most in (38, 53))  # of 40 and of 60 a class
    write_report(tmp_path)
    for name in ("alpha", "depth", "steps", "steps_lead", "labels"):
        assert (tmp_path / f"figures/{name}.svg").stat().st_size > 1000
        (panel,) = json.loads((tmp_path / f"figures/{name}.json").read_text())[0]["panels"]
        assert panel["dataset"] == "animals"
    lead = {series["name"]: series for series in panel["series"]}["GCN"]
    assert lead["x"] == [1, 2, 5, 10, 20]
    of_model = {model: cell_of(model, per_class=5) for model in ("gcn", "appnp")}
    accuracy = {
        model: [row.accuracy for row in rows_of(tmp_path) if row.cell == one.text] for model, one in of_model.items()
    }
    assert lead["estimates"][2]["mean"] == pytest.approx(100 * (np.mean(accuracy["gcn"]) - np.mean(accuracy["appnp"])))


def test_nothing_of_the_papers_numbers_is_shown(study: Study):
    for word in (
        "Citeseer",
        "citeseer",
        "Cora",
        "Claims",
        "agree",
        "In intervals",
        "Paper's",
        "| Paper",
    ):
        assert word not in study.report, word
    published = [one.published for one in load_experiments().values() if one.published is not None]
    printed = {f"{each.accuracy:.2f} ± {each.accuracy_interval:.2f}" for each in published if each.accuracy}
    assert len(printed) > 20
    assert not any(text in study.report for text in printed)


def test_a_second_run_computes_nothing_also_from_a_folder_of_the_same_graph(study: Study, tmp_path: Path, pprop):
    before = (study.folder / "graphs/animals/manifest.json").read_bytes()
    write_folder(study.graph, tmp_path / "animals")
    code, out, err = pprop(
        *("study", "run", "quick", "propagation", "--graph", tmp_path / "animals"),
        *("--runs", RUNS, "--out", study.folder),
    )
    assert code == 0
    assert f"0 runs computed, {5 * RUNS} there before, of {5 * RUNS}." in out
    assert "animals: 330 nodes, " in err
    assert "; 4 nodes outside the largest component left out." in err
    assert "14 nodes without labels in no split." in err
    assert (study.folder / "graphs/animals/manifest.json").read_bytes() == before
    code, out, _ = pprop(
        "study", "run", "quick_animals", "--runs", RUNS, "--out", study.folder
    )  # by name, from the copy
    assert (code, f"0 runs computed, {3 * RUNS} there before" in out) == (0, True)


def test_another_graph_of_the_same_name_is_refused(study: Study, tmp_path: Path, pprop):
    write_npz(animals(seed=1), tmp_path / "animals.npz")
    before = len(rows_of(study.folder))
    code, out, err = pprop("study", "run", "quick", "--graph", tmp_path / "animals.npz", "--out", study.folder)
    assert (code, out) == (3, "")
    assert "has another graph 'animals', with the fingerprint " in err
    assert "Rename the file, or choose another --out." in err
    assert len(rows_of(study.folder)) == before
    other = own_graph(animals(seed=1), "animals")
    with pytest.raises(InputError, match="has another graph 'animals'"):  # rows without the copy count, too
        keep_graph(other, tmp_path / "empty", [row.key.data for row in rows_of(study.folder)])
    assert own_names(tmp_path / "empty") == []


def test_status_and_verify_know_the_graph(study: Study, pprop):
    code, out, _ = pprop("study", "status", study.folder, "--json")
    found = {each["name"]: each for each in json.loads(out)["experiments"]}
    assert code == 0
    assert found["quick_animals"]["done"] == 3 * RUNS
    assert found["gasteiger_2019_propagation_animals"]["done"] == 4 * RUNS
    assert json.loads(out)["other_cells"] == []
    code, out, _ = pprop("study", "verify", study.folder, "--sample", 2)
    assert code == 0, out


def test_a_merge_takes_the_graph_along_and_a_pack_says_that_it_does_not(study: Study, tmp_path: Path, pprop):
    assert pprop("study", "merge", study.folder, "--out", tmp_path / "both")[0] == 0
    assert own_names(tmp_path / "both") == ["animals"]
    code, out, _ = pprop("study", "pack", study.folder, "--out", tmp_path / "study.pack")
    assert (code, "Not in it: the graph animals." in out) == (0, True)
    code, out, _ = pprop("study", "report", tmp_path / "study.pack", "--out", tmp_path / "pages")
    text = (tmp_path / "pages/report.md").read_text()
    caption = "Accuracy in percent: mean ± 95 % interval over runs (over splits)"
    assert (code, table(text, caption)) == (0, table(study.report, caption))
    assert "The study has no copy of the graph" in text
    with Store.open(tmp_path / "other", create=True):
        keep_graph(own_graph(animals(seed=1), "animals"), tmp_path / "other")
    code, out, _ = pprop("study", "merge", study.folder, tmp_path / "other", "--out", tmp_path / "mixed")
    assert code == 3
    assert "The graph 'animals' was left out." in out
    assert load_graph("animals", tmp_path / "mixed").fingerprint == load_graph("animals", study.folder).fingerprint


OWN = "import pprop\n\ndef build(graph):\n    return pprop.MLP()\n"


def test_a_model_of_the_user_is_compared_on_the_users_graph(study: Study, tmp_path: Path, monkeypatch, pprop):
    make, own = cell.make_cell, user_model.user_cell
    monkeypatch.setattr(cell, "make_cell", lambda name, settings, dataset: make(name, SHORT, dataset))
    monkeypatch.setattr(user_model, "user_cell", lambda name, dataset: own(name, dataset, max_epochs=EPOCHS))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model_for_animals.py").write_text(OWN)
    code, _, _ = pprop("study", "merge", study.folder, "--out", "copy")
    asked = ("study", "run", "--model", "model_for_animals:build", "--runs", RUNS, "--out", "copy", "--json")
    code, out, _ = pprop(*asked, "--graph", study.file)
    assert (code, [each["model"] for each in json.loads(out)["models"]]) == (
        0,
        ["model_for_animals:build", "appnp", "gcn"],
    )
    assert json.loads(out)["computed"] == RUNS
    code, out, _ = pprop(*asked, "--dataset", "animals")
    assert (code, json.loads(out)["computed"]) == (0, 0)


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (
            animals().replace(labels=None, class_names=None),
            "The graph 'mine' has no labels, and a study needs the classes",
        ),
        (animals().replace(features=None), "The graph 'mine' has no features"),
        (
            animals((150, 150, 30), unlabelled=0),
            "too few nodes of class 'dogs' for a study: 165 of the 330 nodes with labels in the largest component are known, "
            "among them 17 of the 30 of that class, where 20 have to train.",
        ),
        (
            animals((60, 60, 60), unlabelled=0),
            "The graph 'mine' is too small for a study: 90 of the 180 nodes with labels in the largest component are known, "
            "where 20 nodes of each of its 3 classes have to train, 30 are for early stopping, and one must be left.",
        ),
    ],
)
def test_a_graph_that_cannot_be_studied_is_refused_in_a_sentence(graph: Graph, told: str, tmp_path: Path, pprop):
    write_npz(graph, tmp_path / "mine.npz")
    code, out, err = pprop("study", "run", "quick", "--graph", tmp_path / "mine.npz", "--out", tmp_path / "study")
    assert (code, out) == (3, "")
    assert told in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("quick", "--graph", "nowhere.npz"), 4, "There is no file 'nowhere.npz'."),
        (("quick", "--graph", "citeseer"), 3, "cannot be called 'citeseer'"),
        (("quick", "--nodes", "nodes.csv"), 2, "--nodes belongs to a graph of your own: add --graph."),
        (("mine.toml", "--graph", "x.npz"), 2, "--graph takes names of experiments and groups"),
        (("quick", "--graph", "x.npz", "--dataset", "citeseer"), 2, "Give names of experiments, or --model together"),
        (("--model", "m:f", "--graph", "x.npz", "--dataset", "citeseer"), 2, "Give names of experiments"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments, code: int, told: str, tmp_path: Path, monkeypatch, pprop
):
    monkeypatch.chdir(tmp_path)
    found, _, err = pprop("study", "run", *arguments)
    assert found == code
    assert told in " ".join(err.split())
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("name", ["pubmed", "quick", "accuracy", "citeseer_time", "two words", "", "1st", "x" * 41])
def test_names_that_a_study_cannot_take(name: str):
    with pytest.raises(InputError, match="A graph of your own cannot be called"):
        check_graph_name(name)


def test_experiments_on_a_graph_are_those_on_citeseer_with_the_default_alpha():
    assert DATASETS[TEMPLATE].recommended.alpha == ALPHA.default
    there = load_experiments()
    on_citeseer = [one for one in there.values() if any(point.cell.dataset == TEMPLATE for point in one.points)]
    found = experiments_on("mine")
    assert len(found) == len(on_citeseer)
    for one, other in zip(found.values(), on_citeseer, strict=True):
        cells = [point.cell for point in other.points if point.cell.dataset == TEMPLATE]
        assert [point.cell for point in one.points] == [replace(cell, dataset="mine") for cell in cells]
        assert (one.published, one.shows, one.seeds()) == (None, other.shows, other.seeds())
    assert not found.keys() & there.keys()
    for name, one in there.items():
        made = on_graph(one, "mine")
        assert (made is None) == (one.shows == "rerun"), name
        assert made is None or made == found[made.name]


def test_beside_the_papers_graphs_the_users_has_rows_of_its_own_and_no_claims(tmp_path: Path, make_rows, monkeypatch):
    measure = ClaimMeasure("On graphs", lambda results, where: Measurement(42.0, 41.0, 43.0, "steps", where))
    for name in OF_GRAPHS:
        monkeypatch.setitem(MEASURES, name, measure)
    graph, mine = load_dataset("citeseer"), own_graph(animals(), "animals")
    with Store.open(tmp_path, create=True) as store:
        keep_graph(mine, tmp_path)
        for model in ("mlp", "gcn", "appnp"):
            for name, of_name in {"citeseer": graph, "animals": mine}.items():
                predicted = np.zeros(of_name.n_nodes, dtype=np.uint8)
                one = replace(cell_of(model), dataset=name)
                store.add_all(make_rows(one, data=of_name.fingerprint, predictions=predicted))
    write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    found = table(text, "Accuracy in percent: mean ± 95 % interval over runs (over splits)")
    assert found["Model"] == ["Citeseer", "animals"]
    details = text.partition("Accuracy in percent, beside the paper's")[2]
    assert "| Model | Runs | Ours | Paper | Difference | In intervals | Command |" in details
    claims = text.partition("What the paper claims")[2].partition("\n## ")[0]
    assert "Citeseer" in claims
    assert "animals" not in claims


def test_a_run_says_what_became_of_every_column(tmp_path: Path, monkeypatch, pprop):
    monkeypatch.chdir(tmp_path)
    n = 240
    Path("links.csv").write_text("source,target,metres\n" + "".join(f"a{k},a{(k + 1) % n},{k}.5\n" for k in range(n)))
    rows = (f"a{k},{k % 7},{'left' if k % 3 else ''},{k % 2},call {k}\n" for k in range(n))
    Path("places.csv").write_text("id,stars,side,kind,phone\n" + "".join(rows))

    def end(*arguments: object) -> None:
        raise InputError("That is enough.")

    monkeypatch.setattr("pprop.cli.study.named_jobs", end)  # the columns are told before
    _, _, told = pprop(
        "study", "run", "quick", "--graph", "links.csv", "--nodes", "places.csv", "--label-column", "kind"
    )
    lines = {line.split()[0]: line for line in told.splitlines() if line.strip()}
    assert lines.keys() >= {"stars", "side", "phone", "metres"}
    assert "text" in lines["phone"]
    assert "number" in lines["stars"]
    assert "left out: a study takes no weights" in lines["metres"]
    assert not Path("study").exists()
