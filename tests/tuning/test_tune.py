"""The search: what judges, what is tried, what comes out, and that it goes on where it was."""

from __future__ import annotations

import importlib
import json
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pprop
from pprop import APPNPClassifier, DivergenceError, FormatError, Graph, InputError, MissingDependencyError, Range, tune
from pprop.estimators.reading import Given
from pprop.tuning.space import Space
from pprop.tuning.tune import repeated_holdout

pytestmark = pytest.mark.slow


def but(arguments: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {**arguments, **changes}


def settings_of(tuned: pprop.Tuned) -> list[tuple[Any, ...]]:
    return [(dict(trial.settings), trial.scores) for trial in tuned.trials]


def test_the_score_of_a_trial_is_that_of_its_runs_on_nodes_that_neither_train_nor_stop(
    graph: Graph, labelled, quick: dict[str, Any]
):
    nodes, names = labelled
    tuned = tune(graph, nodes, names, stopping=0.5, **quick)
    given = Given.read(graph, nodes, names, "tune", stopping=0.5)
    splits, known, _ = repeated_holdout(given, graph, times=2, seed=7)
    for trial in tuned.trials[:2]:
        for time, split in enumerate(splits):
            trained = pprop.train(
                pprop.APPNP(trial.settings["alpha"], hidden=trial.settings["hidden"]),
                graph,
                split,
                seeds=pprop.run_seed(7, time),
                labels=known,
                stopping=pprop.Stopping(max_epochs=6),
                progress=False,
            )
            right = trained.predict(split.evaluation)[0] == known[split.evaluation]
            assert trial.scores[time] == pytest.approx(right.mean())


@pytest.mark.parametrize("dense", [True, False])
def test_what_is_judged_is_the_classifier_that_is_recommended(
    graph: Graph, labelled, quick: dict[str, Any], dense: bool
):
    """Of a table it standardises the columns and has biases, of counts it does as in the paper."""
    features: Any = graph.features
    own = graph.replace(features=features.toarray()) if dense else graph
    nodes, names = labelled
    tuned = tune(own, nodes, names, stopping=0.5, **but(quick, {"trials": 1, "backend": "reference"}))
    given = Given.read(own, nodes, names, "tune", stopping=0.5)
    splits, known, target = repeated_holdout(given, own, times=2, seed=7)
    for time, split in enumerate(splits):
        model: Any = tuned.classifier(own, random_state=pprop.run_seed(7, time) % 2**64, backend="reference")
        watched = split.stopping, target.names[known[split.stopping]]
        model.fit(split.train, target.names[known[split.train]], stopping=watched)
        assert (model.model_.predictor.bias, model.scaling_.kind) == (dense, "standard" if dense else "l1")
        assert model.score(split.evaluation, target.names[known[split.evaluation]]) == tuned.trials[0].scores[time]


def test_the_first_trial_is_nearest_to_the_defaults_and_the_result_is_never_worse(
    graph: Graph, labelled, quick: dict[str, Any]
):
    tuned = tune(graph, *labelled, **quick)
    assert tuned.trials[0].settings == {"alpha": 0.1, "hidden": 4}  # 64, the default, is not in the space
    assert len(tuned.trials) == 4
    assert tuned.default_score == tuned.trials[0].score
    assert tuned.score == max(trial.score for trial in tuned.trials) >= tuned.default_score
    assert all(0.05 <= trial.settings["alpha"] <= 0.9 for trial in tuned.trials)
    assert len({trial.settings["alpha"] for trial in tuned.trials}) == 4
    assert tuned.settings["max_epochs"] == 6


def test_the_result_makes_a_classifier_and_a_command(graph: Graph, labelled, quick: dict[str, Any]):
    tuned = tune(graph, *labelled, **quick)
    classifier = tuned.classifier(graph, random_state=0)
    assert isinstance(classifier, APPNPClassifier)
    assert (classifier.alpha, classifier.max_epochs) == (tuned.settings["alpha"], 6)
    assert classifier.fit(*labelled).alpha_ == tuned.settings["alpha"]
    command = tuned.command("mine.npz").split()
    assert command[:3] == ["pprop", "train", "mine.npz"]
    assert command[command.index("--alpha") + 1] == str(tuned.settings["alpha"])
    other = tune(graph, *labelled, **but(quick, {"space": {"self_loops": [True, False], "max_epochs": 2}, "trials": 2}))
    with pytest.raises(InputError, match="no option for 'self_loops'"):
        other.command("mine.npz")


def test_a_search_in_parts_is_the_search_in_one_go(graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path):
    whole = tune(graph, *labelled, **but(quick, {"trials": 12}))  # more than the random trials at the begin
    for trials in (1, 11, 12):
        parts = tune(graph, *labelled, **but(quick, {"trials": trials}), folder=tmp_path / "search")
    assert settings_of(parts) == settings_of(whole)
    best = json.loads((tmp_path / "search" / "best.json").read_text())
    assert best["score"] == whole.score
    assert best["trials"] == 12


def test_an_interrupted_trial_is_made_again(
    graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module: Any = importlib.import_module("pprop.tuning.tune")  # the package offers the function under that name

    whole, train, calls = tune(graph, *labelled, **quick), module.train, 0

    def interrupted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return train(*arguments, **options)

    monkeypatch.setattr(module, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(graph, *labelled, **quick, folder=tmp_path / "search")
    assert json.loads((tmp_path / "search" / "best.json").read_text())["trials"] == 2
    assert settings_of(tune(graph, *labelled, **quick, folder=tmp_path / "search")) == settings_of(whole)
    with sqlite3.connect(tmp_path / "search" / "trials.sqlite3") as database:
        states = [state for (state,) in database.execute("SELECT state FROM trials ORDER BY number")]
    database.close()
    assert states == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


class _Collected:
    """Ctrl-C while Python collects it: the exception is printed and forgotten, as in a callback of any library."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def _of_a_library(number: int, frame: object) -> None:
    """Stand for the handler that PySpark leaves: it raises an error of its own once its context has ended."""
    raise AttributeError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("handler", [signal.default_int_handler, _of_a_library])
def test_ctrl_c_that_a_callback_swallows_still_ends_the_search(
    graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handler: Any
):
    module: Any = importlib.import_module("pprop.tuning.tune")
    add, calls = module.add_trial, 0

    def swallowed(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            _Collected()
        add(*arguments)

    monkeypatch.setattr(module, "add_trial", swallowed)
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tune(graph, *labelled, **quick, folder=tmp_path / "search")
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert json.loads((tmp_path / "search" / "best.json").read_text())["trials"] == 2


def test_a_time_limit_ends_the_search_after_at_least_one_trial(
    graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path
):
    long = quick["space"] | {"patience": 10**6, "max_epochs": 300}
    endless = but(quick, {"space": long, "trials": 10**6})
    tuned = tune(graph, *labelled, **endless, time_limit=1e-3, folder=tmp_path / "search")
    assert len(tuned.trials) == 1
    more = tune(graph, *labelled, **but(endless, {"trials": 3}), folder=tmp_path / "search")
    assert settings_of(more)[0] == settings_of(tuned)[0]
    assert len(more.trials) == 3


def test_several_layers_are_a_choice_like_another():
    space = Space.of({"hidden": [8, [6, 4]], "alpha": Range(0.1, 0.5)}, "appnp")
    assert space.varied["hidden"] == (8, (6, 4))
    assert ("hidden", (6, 4)) in space.corners()
    assert space.start({"hidden": (6, 4), "alpha": 0.2}) == {"hidden": (6, 4), "alpha": 0.2}
    assert json.loads(json.dumps(space.to_json()))["varied"]["hidden"] == {"values": [8, [6, 4]]}


def test_numbers_of_numpy_are_searched_and_kept_as_pythons_own(
    graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path
):
    numpys: Any = Range  # whose annotations know Python's numbers alone
    own = {"steps": Range(2, 5), "alpha": Range(0.1, 0.5, log=True), "hidden": [8, (6, 4)], "self_loops": [True, False]}
    theirs: dict[str, Any] = {
        "steps": numpys(np.int64(2), np.int32(5)),
        "alpha": numpys(np.float64(0.1), np.float64(0.5), log=np.True_),
        "hidden": [np.int64(8), list(np.array([6, 4]))],
        "self_loops": np.array([True, False]),
    }
    fixed = {"dropout": 0.5, "max_epochs": 3}
    kept = {"dropout": np.float64(0.5), "max_epochs": np.int16(3)}
    tuned = tune(graph, *labelled, **but(quick, {"space": theirs | kept}), folder=tmp_path)
    again = tune(
        graph, *labelled, **but(quick, {"space": own | fixed, "trials": 5}), folder=tmp_path
    )  # the same search
    assert settings_of(again)[:4] == settings_of(tuned)
    best = json.loads((tmp_path / "best.json").read_text())
    assert best["settings"] == json.loads(json.dumps(dict(again.settings)))
    assert {type(value) for trial in tuned.trials for value in trial.settings.values()} <= {int, float, bool, tuple}
    assert [type(value) for value in (numpys(np.int64(2), 7).low, numpys(0.5, np.float32(2)).high)] == [int, float]


def test_an_array_is_a_list_of_values():
    assert Space.of({"alpha": np.array([0.1, 0.2])}, "appnp").varied["alpha"] == (0.1, 0.2)
    assert Space.of({"hidden": np.array([[8, 4], [6, 4]])}, "appnp").varied["hidden"] == ((8, 4), (6, 4))
    with pytest.raises(InputError, match="no two the same"):
        Space.of({"hidden": np.array([8, 8])}, "appnp")


@pytest.mark.parametrize("model", ["ppnp", "mlp"])
def test_the_other_models_are_tuned_in_their_default_space(
    graph: Graph, labelled, model: str, monkeypatch: pytest.MonkeyPatch
):
    module: Any = importlib.import_module("pprop.tuning.tune")
    monkeypatch.setattr(module, "Stopping", lambda *rule: pprop.Stopping(max_epochs=2))  # as the defaults are slow
    tuned = tune(graph, *labelled, model=model, trials=1, holdouts=1, progress=False)
    assert list(tuned.settings) == list(Space.of(None, model).varied)
    expected = {"hidden": 64, "dropout": 0.5, "penalty": 0.005, "learning_rate": 0.01}
    assert {name: tuned.settings[name] for name in expected} == expected
    assert f"--model {model}" in tuned.command("g")


def test_the_labels_of_the_graph_are_not_read(graph: Graph, labelled, quick: dict[str, Any]):
    misleading = graph.replace(labels=np.zeros(60, dtype=np.int64))
    assert settings_of(tune(misleading, *labelled, **quick)) == settings_of(tune(graph, *labelled, **quick))


@pytest.mark.parametrize("stopping", [0.5, "nodes"])
def test_holdouts_are_disjoint_and_share_out_every_class(graph: Graph, labelled, stopping: Any):
    nodes, names = labelled
    if stopping == "nodes":
        stopping = (nodes[::2], names[::2])
        nodes, names = nodes[1::2], names[1::2]
    given = Given.read(graph, nodes, names, "tune", stopping=stopping)
    splits, known, target = repeated_holdout(given, graph, times=3, seed=1)
    assert target.names.tolist() == ["ant", "bee"]
    judges = {tuple(split.evaluation) for split in splits}
    assert len(judges) == 3
    for split in splits:
        sets = [set(part.tolist()) for part in (split.train, split.stopping, split.evaluation)]
        assert sum(map(len, sets)) == len(set.union(*sets)) == 40
        assert [np.bincount(known[part]).tolist() for part in (split.stopping, split.evaluation)] == [[5, 5], [5, 5]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "gcn"}, "'model' parameter of tune"),
        ({"trials": 0}, "'trials' parameter of tune"),
        ({"time_limit": 0}, "'time_limit' parameter of tune"),
        ({"holdouts": 0}, "'holdouts' parameter of tune"),
        ({"seed": -1}, "'seed' parameter of tune"),
        ({"stopping": 1.5}, "a pair .nodes, y. or a float"),
        ({"stopping": ([59], ["ant"])}, "one half can stop and the other judge"),
        ({"space": {}}, "at least one setting"),
        ({"space": {"alpha": 0.1}}, "at least one setting"),
        ({"space": {"depth": [1, 2]}}, "about settings of appnp: alpha, steps"),
        ({"space": {"alpha": Range(0.1, 1.5)}}, "impossible 'alpha'"),
        ({"space": {"alpha": Range(0.1, 0.5), "dropout": 1.0}}, "impossible 'dropout'"),
        ({"space": {"hidden": [8, 8]}}, "no two the same"),
        ({"space": {"hidden": []}}, "at least one"),
        ({"space": {"hidden": [8, 0]}}, "impossible 'hidden'"),
        ({"space": {"steps": Range(0.5, 3.5)}}, "impossible 'steps'"),
        ({"space": {"learning_rate": [0.0]}}, "impossible 'learning_rate'"),
        ({"space": ["alpha"]}, "a mapping from settings"),
        ({"model": "mlp", "space": {"alpha": Range(0.1, 0.5)}}, "about settings of mlp"),
    ],
)
def test_impossible_arguments_are_refused_before_any_training(
    graph: Graph, labelled, arguments: dict[str, Any], message: str, tmp_path: Path
):
    with pytest.raises(InputError, match=message):
        tune(graph, *labelled, folder=tmp_path / "search", **arguments)
    assert not (tmp_path / "search").exists()


@pytest.mark.parametrize(
    ("low", "high", "log"), [(1, 1, False), (0, 1, True), (0.0, float("inf"), False), ("a", 2, False)]
)
def test_an_impossible_range_is_refused(low: Any, high: Any, log: bool):
    with pytest.raises(InputError, match="parameter of Range"):
        Range(low, high, log=log)


def test_another_question_is_refused_in_the_same_folder(graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path):
    tune(graph, *labelled, **but(quick, {"trials": 1}), folder=tmp_path)
    nodes, names = labelled
    for arguments, name in (
        ((graph, nodes, names, but(quick, {"seed": 8})), "seed"),
        ((graph, nodes, names, but(quick, {"holdouts": 1})), "holdouts"),
        ((graph, nodes, names, but(quick, {"space": {"alpha": Range(0.1, 0.2)}})), "space"),
        ((graph, nodes[1:], names[1:], quick), "nodes"),
        ((graph.replace(features=np.eye(60)), nodes, names, quick), "graph"),
    ):
        with pytest.raises(InputError, match=f"a tuning with another '{name}'"):
            tune(*arguments[:3], **arguments[3], folder=tmp_path)


def test_a_strange_or_damaged_folder_is_refused(graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"holds 'thesis.tex' and no tuning"):
        tune(graph, *labelled, **quick, folder=tmp_path)
    tune(graph, *labelled, **but(quick, {"trials": 1}), folder=tmp_path / "search")
    (tmp_path / "search" / "trials.sqlite3").write_bytes(b"no database" * 1000)
    with pytest.raises(FormatError, match=r"damaged: trials.sqlite3"):
        tune(graph, *labelled, **quick, folder=tmp_path / "search")
    (tmp_path / "search" / "tuning.json").write_text("{")
    with pytest.raises(FormatError, match=r"damaged: tuning.json"):
        tune(graph, *labelled, **quick, folder=tmp_path / "search")


def test_two_processes_do_not_search_in_one_folder(graph: Graph, labelled, quick: dict[str, Any], tmp_path: Path):
    import fcntl

    tune(graph, *labelled, **but(quick, {"trials": 1}), folder=tmp_path)
    with (tmp_path / ".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="Another process is tuning"):
            tune(graph, *labelled, **quick, folder=tmp_path)


def test_without_optuna_the_extra_is_named(
    graph: Graph, labelled, quick: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"Tuning needs \'optuna\'.*pip install optuna"):
        tune(graph, *labelled, **quick, folder=tmp_path / "search")
    assert not (tmp_path / "search").exists()


def test_a_trial_that_diverges_scores_zero_and_the_search_goes_on(graph: Graph, labelled, quick: dict[str, Any]):
    space = {"learning_rate": [0.01, 1e30], "hidden": 4, "max_epochs": 4}
    tuned = tune(graph, *labelled, **but(quick, {"space": space, "trials": 6}))
    wild = [trial for trial in tuned.trials if trial.settings["learning_rate"] == 1e30]
    assert wild
    assert all(trial.scores == (0.0, 0.0) for trial in wild)
    assert tuned.settings["learning_rate"] == 0.01


def test_a_search_whose_first_trial_diverges_says_so(graph: Graph, labelled, quick: dict[str, Any]):
    with pytest.raises(DivergenceError, match="Use a lower learning_rate"):
        tune(graph, *labelled, **but(quick, {"space": {"learning_rate": 1e30, "hidden": [4, 8]}}))


def test_a_scoring_judges_the_trials_and_goes_with_the_settings(graph: Graph, labelled: Any, quick: dict[str, Any]):
    nodes, names = labelled
    tuned = tune(graph, nodes, names, **quick, scoring="average_precision", positive="bee")
    assert tuned.scoring is not None
    assert (tuned.scoring.name, tuned.scoring.positive) == ("average_precision", "bee")
    assert tuned.score == max(trial.score for trial in tuned.trials)
    assert tuned.command("edges.csv").endswith("--scoring average_precision --positive bee")
    best: Any = tuned.classifier(graph)
    assert (best.scoring, best.positive) == ("average_precision", "bee")
    again = tune(graph, nodes, names, **quick, scoring="average_precision", positive="bee")
    assert [trial.scores for trial in again.trials] == [trial.scores for trial in tuned.trials]
    accuracy = tune(graph, nodes, names, **quick)
    assert accuracy.scoring is None
    assert "--scoring" not in accuracy.command("edges.csv")


def test_a_scoring_without_judging_nodes_of_its_class_is_refused(graph: Graph, quick: dict[str, Any]):
    nodes, names = np.arange(20), ["ant"] * 19 + ["bee"]
    with pytest.raises(InputError, match=r"None of .* nodes is 'bee': average precision of 'bee' has no value"):
        tune(graph, nodes, names, **quick, scoring="average_precision")
