"""The runner: missing runs only, labels out of reach, a time limit, a full disk, Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import pprop
from pprop import TEST_SEEDS, VALIDATION_SEEDS, InputError
from pprop.estimators import BootstrappedFPClassifier
from pprop.kernels.random_bits import signed
from pprop.study.cell import Cell, Seeds, make_cell
from pprop.study.run import recipe as recipe_module
from pprop.study.run.progress import show_study
from pprop.study.run.runner import Job, StudyOutcome, run_study
from pprop.study.store.row import Row
from pprop.study.store.store import Store
from pprop.training import trainers

pytestmark = pytest.mark.slow

RUNS = tuple(Seeds(split, init) for init in range(2) for split in TEST_SEEDS[:3])
VALIDATION = tuple(Seeds(split, 0) for split in VALIDATION_SEEDS[:2])
COSTS = {"seconds", "together", "created"}


def small(model: str, splits: str = "test", per_class: int = 20, **settings: Any) -> Cell:
    return make_cell(model, {"max_epochs": 5, **settings}, "citeseer", splits, per_class)  # pyright: ignore[reportArgumentType]


def study(folder: Path, *jobs: Job, said: list[str] | None = None, **options: Any) -> StudyOutcome:
    texts = [] if said is None else said
    with (
        Store.open(folder, create=True) as store,
        show_study(texts.append, cells=len(jobs), runs=1, show=False) as watch,
    ):
        return run_study(store, jobs, watch, **options)


def rows(folder: Path) -> list[Row]:
    with Store.open(folder) as store:
        return store.rows()


def results(folder: Path) -> list[dict[str, Any]]:
    """Everything that was computed, times apart."""
    return [
        {f.name: getattr(row, f.name) for f in fields(Row) if f.name not in {*COSTS, "predictions"}}
        | {"predictions": row.predictions.tolist()}
        for row in rows(folder)
    ]


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Every call of train that the study makes: its graph, runs and cap."""
    calls: list[dict[str, Any]] = []
    real: Callable[..., Any] = recipe_module.train

    def spy(model, graph, splits, **options):
        calls.append({"graph": graph, "splits": splits, "cap": options["stopping"].max_epochs})
        return real(model, graph, splits, **options)

    monkeypatch.setattr(recipe_module, "train", spy)
    return calls


def test_only_missing_runs_are_computed_and_a_cell_of_two_experiments_once(tmp_path: Path, trainings):
    cell = small("mlp")
    first = study(tmp_path, Job(cell, RUNS[:2]))
    assert (first.wanted, first.computed, first.found, first.left) == (2, 2, 0, 0)
    second = study(tmp_path, Job(cell, RUNS[1:4]), Job(cell, RUNS[:4]))
    assert (second.wanted, second.computed, second.found, second.left) == (4, 2, 2, 0)
    assert [len(call["splits"]) for call in trainings] == [2, 2]
    assert study(tmp_path, Job(cell, RUNS[:4])).computed == 0
    assert len(trainings) == 2
    assert [row.key.seeds for row in rows(tmp_path)] == sorted(RUNS[:4])


@pytest.mark.parametrize("model", ["appnp", "ppnp", "mlp", "gcn", "vanilla_gcn"])
def test_a_run_has_the_same_bits_in_whatever_company_it_was_computed(tmp_path: Path, model: str):
    cell = small(model)
    study(tmp_path / "together", Job(cell, RUNS[1:4]))
    for seeds in (RUNS[3], RUNS[1], RUNS[2]):
        study(tmp_path / "apart", Job(cell, (seeds,)))
    assert results(tmp_path / "together") == results(tmp_path / "apart")


def test_a_row_is_what_train_gives_for_that_split_and_seed(tmp_path: Path):
    study(tmp_path, Job(small("appnp", alpha=0.2), RUNS[:1]))
    (row,) = rows(tmp_path)
    graph = pprop.load_dataset("citeseer")
    split = pprop.paper_split(graph, RUNS[0].split)
    trained = pprop.train(
        pprop.APPNP(alpha=0.2), graph, split, seeds=pprop.run_seed(*vars(RUNS[0]).values()), stopping=_five()
    )
    np.testing.assert_array_equal(row.predictions, trained.predict()[0])
    assert row.accuracy == trained.accuracy()[0]
    assert (row.epochs, row.best_epoch) == (5, trained.best_epoch[0])
    assert (row.stopping_loss, row.stopping_accuracy) == (trained.stopping_loss[0], trained.stopping_accuracy[0])
    assert row.key.data == graph.fingerprint
    assert (row.backend, row.device, row.together) == ("numba", "cpu", 1)
    assert row.seconds > 0


def _five() -> pprop.Stopping:
    return pprop.Stopping(max_epochs=5)


def test_training_sees_no_label_of_a_test_node_in_either_kind_of_split(tmp_path: Path, trainings):
    study(tmp_path, Job(small("mlp"), RUNS[:1]), Job(small("mlp", "validation"), VALIDATION[:1]))
    graph = pprop.load_dataset("citeseer")
    test = pprop.paper_split(graph, TEST_SEEDS[0]).evaluation
    known = np.setdiff1d(np.arange(graph.n_nodes), test)
    assert graph.labels is not None
    for call in trainings:
        assert (call["graph"].labels[test] == -1).all()
        np.testing.assert_array_equal(call["graph"].labels[known], graph.labels[known])


def test_a_validation_study_is_the_same_whatever_the_test_labels_are(tmp_path: Path, monkeypatch):
    jobs = [Job(small(model, "validation"), VALIDATION) for model in ("appnp", "gcn")]
    study(tmp_path / "true", *jobs)
    graph = pprop.load_dataset("citeseer")
    test = pprop.paper_split(graph, TEST_SEEDS[0]).evaluation
    assert graph.labels is not None
    scrambled = graph.labels.copy()
    scrambled[test] = (scrambled[test] + 1) % graph.n_classes
    monkeypatch.setattr("pprop.study.graphs.load_dataset", lambda name: graph.replace(labels=scrambled))
    study(tmp_path / "scrambled", *jobs)
    study(tmp_path / "scrambled", Job(small("mlp"), RUNS[:1]))
    true, other = results(tmp_path / "true"), results(tmp_path / "scrambled")
    for result in (*true, *other):
        result["seeds"] = result.pop("key").seeds  # the fingerprint of the data is part of the key, and differs
    assert [result for result in other if "validation" in result["cell"]] == true
    (tested,) = (result for result in other if "validation" not in result["cell"])
    assert tested["accuracy"] < 0.2  # that the scrambled labels are there to be seen by a test


def test_more_labels_per_class_than_there_are_are_refused_and_the_rest_goes_on(tmp_path: Path):
    said: list[str] = []
    jobs = [Job(small("mlp", per_class=per_class), RUNS[:1]) for per_class in (2000, 5)]
    outcome = study(tmp_path, *jobs, said=said)
    assert (outcome.computed, outcome.left) == (1, 0)
    (refused,) = outcome.refused
    assert refused.cell == jobs[0].cell
    assert "the number of known nodes of class" in refused.reason
    assert said[0].startswith("Refused: MLP on citeseer, 2000 labels per class. The 'per_class' parameter")


def test_the_network_alone_is_evaluated_without_the_propagation_it_was_trained_with(tmp_path: Path):
    cell = small("appnp", evaluate="network")
    study(tmp_path, Job(cell, RUNS[:2]), Job(small("appnp"), RUNS[:2]))
    graph = pprop.load_dataset("citeseer")
    assert graph.features is not None
    with Store.open(tmp_path) as store:
        alone, both = store.rows(cell.config), store.rows(small("appnp").config)
    for row, other in zip(alone, both, strict=True):
        split = pprop.paper_split(graph, row.key.seeds.split)
        seed = pprop.run_seed(row.key.seeds.split, row.key.seeds.init)
        trained = pprop.train(pprop.APPNP(), graph, split, seeds=seed, stopping=_five())
        dense = sparse.csr_array(graph.features).toarray().astype(np.float64)
        dense /= dense.sum(axis=1, keepdims=True)
        first, second = (array[0].astype(np.float64) for array in trained.weights)
        logits = np.maximum(dense @ first, 0) @ second
        assert (row.predictions == logits.argmax(axis=1)).mean() > 0.999  # but for ties up to rounding
        assert (row.epochs, row.stopping_loss) == (other.epochs, other.stopping_loss)
        assert (row.predictions != other.predictions).mean() > 0.05


def test_an_mlp_is_propagated_after_it_was_trained_without(tmp_path: Path):
    cell = small("mlp", evaluate="propagated", alpha=0.15, steps=7)
    study(tmp_path, Job(cell, RUNS[:1]))
    (row,) = rows(tmp_path)
    graph = pprop.load_dataset("citeseer")
    split = pprop.paper_split(graph, RUNS[0].split)
    trained = pprop.train(pprop.MLP(), graph, split, seeds=pprop.run_seed(RUNS[0].split, 0), stopping=_five())
    spread = pprop.propagate(graph, trained.logits[0].astype(np.float64), alpha=0.15, solver=pprop.PowerIteration(7))
    assert (row.predictions == np.asarray(spread).argmax(axis=1)).mean() > 0.999
    assert (row.predictions != trained.predict()[0]).mean() > 0.05


def test_bootstrapped_feature_propagation_is_fitted_run_by_run_and_has_no_epochs(tmp_path: Path):
    cell = make_cell("bootstrapped_fp", {"rounds": 0, "steps": 3, "C": 5.0}, "citeseer")
    assert study(tmp_path, Job(cell, RUNS[:2])).computed == 2
    graph = pprop.load_dataset("citeseer")
    assert graph.labels is not None
    for row in rows(tmp_path):
        split = pprop.paper_split(graph, row.key.seeds.split)
        model = BootstrappedFPClassifier(graph, rounds=0, steps=3, C=5.0)
        model.fit(split.train, graph.labels[split.train], stopping=(split.stopping, graph.labels[split.stopping]))
        np.testing.assert_array_equal(row.predictions, model.predict(np.arange(graph.n_nodes)))
        assert row.accuracy == model.score(split.evaluation, graph.labels[split.evaluation])
        assert row.stopping_accuracy == model.score(split.stopping, graph.labels[split.stopping])
        assert (row.epochs, row.together) == (0, 1)
        assert (row.backend, row.device) == ("numpy", "cpu")


def test_timed_runs_are_trained_one_by_one_after_a_short_one_that_does_not_count(tmp_path: Path, trainings):
    cell = small("mlp", max_epochs=40)
    outcome = study(tmp_path, Job(cell, RUNS[:3], alone=True))
    assert outcome.computed == 3
    assert [(len(call["splits"]), call["cap"]) for call in trainings] == [(1, 20), (1, 40), (1, 40), (1, 40)]
    assert {(row.together, row.epochs) for row in rows(tmp_path)} == {(1, 40)}


def endless(model: str = "mlp") -> Cell:
    return small(model, max_epochs=10**6, patience=10**6)


def test_a_time_limit_ends_a_training_and_keeps_what_was_finished(tmp_path: Path):
    begin = time.monotonic()
    outcome = study(tmp_path, Job(small("mlp"), RUNS), Job(endless(), RUNS), minutes=2 / 60)
    assert time.monotonic() - begin < 20
    assert outcome.time_up
    assert (outcome.computed, outcome.left, outcome.elsewhere) == (6, 6, 0)
    assert len(rows(tmp_path)) == 6
    assert study(tmp_path, Job(small("mlp"), RUNS)).left == 0


def test_nothing_is_begun_that_cannot_be_expected_to_end_in_time(tmp_path: Path, trainings):
    study(tmp_path, Job(small("mlp"), RUNS[:1]))
    (row,) = rows(tmp_path)
    slow = small("mlp", hidden=[32])
    with Store.open(tmp_path) as store:
        key = replace(row.key, config=slow.config)
        store.add(replace(row, key=key, cell=slow.text, seconds=3600.0))
    outcome = study(tmp_path, Job(slow, RUNS), Job(small("mlp"), RUNS), minutes=1)
    assert outcome.time_up
    assert (outcome.found, outcome.computed, outcome.left) == (
        2,
        5,
        5,
    )  # the quick cell was computed, the slow one left
    assert len(trainings) == 2


def test_ctrl_c_keeps_every_finished_run_and_leaves_no_claim(tmp_path: Path, monkeypatch):
    real = Store.add

    def add(self, row):
        real(self, row)
        if len(self.keys()) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Store, "add", add)
    with pytest.raises(KeyboardInterrupt):
        study(tmp_path, Job(small("gcn"), RUNS))
    monkeypatch.undo()
    kept = len(rows(tmp_path))
    assert 3 <= kept < 6
    assert study(tmp_path, Job(small("gcn"), RUNS)).computed == 6 - kept


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_a_callback_swallows_still_ends_the_study(tmp_path: Path, monkeypatch):
    class Collected:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    real = Store.add

    def add(self, row):
        real(self, row)
        if len(self.keys()) == 6:  # the last run of its batch: no epoch is left that would look for Ctrl-C
            Collected()

    monkeypatch.setattr(Store, "add", add)
    with pytest.raises(KeyboardInterrupt):
        study(tmp_path, Job(small("gcn"), RUNS))
    assert len(rows(tmp_path)) == 6


def test_a_full_disk_stops_the_study_and_every_finished_run_stays(tmp_path: Path, monkeypatch):
    study(tmp_path, Job(small("mlp"), RUNS[:2]))
    real = Store.open.__func__

    def cramped(cls, folder, create=False):
        store = real(cls, folder, create)
        (pages,) = store.execute("PRAGMA page_count")[0]
        store.execute(f"PRAGMA max_page_count = {pages + 1}")
        return store

    monkeypatch.setattr(Store, "open", classmethod(cramped))
    with pytest.raises(OSError, match="the disk is full; every finished run is kept"):
        study(tmp_path, Job(small("appnp"), RUNS))
    monkeypatch.undo()
    kept = len(rows(tmp_path))
    assert kept >= 2
    assert study(tmp_path, Job(small("appnp"), RUNS), Job(small("mlp"), RUNS[:2])).computed == 8 - kept


def test_a_gpu_that_is_not_there_is_reported_before_anything_runs(tmp_path: Path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match="torch sees none here"):
        study(tmp_path, Job(small("mlp"), RUNS[:1]), device="cuda")


def test_a_cell_that_diverges_names_its_runs_and_epochs_and_writes_no_row(tmp_path: Path):
    wild, sound = small("mlp", learning_rate=1e30), small("mlp")
    for _ in range(2):  # a study that is asked for it again says it again
        outcome = study(tmp_path, Job(wild, RUNS[:2]), Job(sound, RUNS[:2]))
        (refused,) = outcome.refused
        assert refused.cell == wild
        first, second = (f"epoch 1 of split seed {seeds.split}, init seed 0" for seeds in RUNS[:2])
        assert f"Training diverged in {first}, {second}: " in refused.reason
        assert "Use a lower learning_rate" in refused.reason
        assert (outcome.wanted, outcome.left, outcome.elsewhere) == (4, 0, 0)
    assert [row.key.config for row in rows(tmp_path)] == [sound.config] * 2
    with Store.open(tmp_path) as store:
        assert store.execute("SELECT count(*) FROM attempts WHERE ended IS NULL") == [(0,)]


def test_the_other_runs_of_a_cell_have_the_rows_they_have_without_the_one_that_diverges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cell = small("mlp")
    study(tmp_path / "without", Job(cell, (RUNS[0], *RUNS[2:])))
    bad, real = signed(pprop.run_seed(RUNS[1].split, RUNS[1].init)), trainers.initial_weights

    def spoilt(widths: Any, seeds: torch.Tensor, kernels: Any) -> list[torch.Tensor]:
        factor = torch.where(seeds == bad, 1e30, 1.0).float()[:, None, None]
        return [weight * factor for weight in real(widths, seeds, kernels)]

    monkeypatch.setattr(trainers, "initial_weights", spoilt)
    monkeypatch.setattr(recipe_module.TrainedTogether, "compute", in_pairs(recipe_module.TrainedTogether.compute))
    outcome = study(tmp_path / "with", Job(cell, RUNS))
    assert f"epoch 1 of split seed {RUNS[1].split}, init seed {RUNS[1].init}: " in outcome.refused[0].reason
    assert (outcome.computed, outcome.left) == (5, 0)
    assert results(tmp_path / "with") == results(tmp_path / "without")


def in_pairs(compute: Callable[..., None]) -> Callable[..., None]:
    """Return a computation that takes two runs at a time from now on: what diverges in one part ends no other part."""

    def pair(self: Any, runs: Any, finished: Any) -> None:
        self.at_once = 2
        compute(self, runs, finished)

    return pair
