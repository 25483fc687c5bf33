"""``pprop train`` with models that are several runs, or solve in every epoch: what they tell, and what the other verbs make of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import pprop
from pprop.cli.graphs import GraphInput, TableOptions
from pprop.cli.splits import own_split
from pprop.cli.train import CLASSIFIERS, ModelName

pytestmark = pytest.mark.usefixtures("without_drawing")

TRAIN = "train edges.csv --nodes nodes.csv --label-column hobby --hidden 8 --max-epochs 12 --no-baselines --out model"
CHOICE = f"{TRAIN} --model appnp-cv --alphas 0.05,0.2,0.8 --runs 2 --steps 4"
ENSEMBLE = f"{TRAIN} --model appnp-ensemble --members 3 --rounds 1 --folds 2 --alpha 0.2"


def fit(kind: Any, **settings: Any) -> Any:
    """The classifier on the same split, with the seed of the command, by Python."""
    graph = GraphInput("edges.csv", TableOptions(nodes="nodes.csv", label_column="hobby")).read()
    assert graph.labels is not None
    split = own_split(graph, 0.2, 0.2, 0)
    names = np.asarray(graph.class_names)[graph.labels]
    seed = pprop.run_seed(split.seed, 0) % 2**64
    model = kind(graph, hidden=8, max_epochs=12, random_state=seed, **settings)
    model.fit(split.train, names[split.train], stopping=(split.stopping, names[split.stopping]))
    return model, float(model.score(split.evaluation, names[split.evaluation]))


def classes_of(text: str) -> list[str]:
    return [row["class"] for row in csv.DictReader(io.StringIO(text))]


def test_the_alphas_are_told_with_their_scores_and_the_best_is_saved(pprop_here, tables, tmp_path: Path):
    answer = pprop_here(*CHOICE.split(), "--json")
    assert answer.code == 0
    record = answer.record
    model, accuracy = fit(pprop.APPNPClassifierCV, alphas=(0.05, 0.2, 0.8), n_runs=2, steps=4)
    assert (record["model"], record["alpha"], record["runs"]) == ("appnp-cv", model.alpha_, 2)
    assert record["test_accuracy"] == accuracy
    assert record["stopping_accuracy"] == model.record_.stopping_accuracy
    assert record["ms_per_epoch"] is None  # the time is that of six runs
    told = [[row["alpha"], row["stopping_accuracy"], row["stopping_loss"]] for row in record["alphas"]]
    means = zip(model.alphas_, model.scores_.mean(axis=1), model.losses_.mean(axis=1), strict=True)
    assert told == [list(row) for row in means]
    loaded = pprop.load(tmp_path / "model")
    assert isinstance(loaded, pprop.APPNPClassifierCV)
    assert (loaded.logits_ == model.logits_).all()


def test_the_table_of_alphas_marks_the_chosen_one(pprop_here, tables):
    record = pprop_here(*CHOICE.split(), "--json").record
    lines = pprop_here(*CHOICE.split(), "--force").out.splitlines()
    assert f"alpha              {record['alpha']:g}, the best of 3 on the validation nodes" in lines
    start = next(k for k, line in enumerate(lines) if line.split()[:3] == ["alpha", "validation", "accuracy"])
    rows = [line.split() for line in lines[start + 2 : start + 5]]
    expected = [
        [
            f"{row['alpha']:g}",
            f"{row['stopping_accuracy']:.1%}",
            f"{row['stopping_loss']:.4f}",
            *(["yes"] if row["alpha"] == record["alpha"] else []),
        ]
        for row in record["alphas"]
    ]
    assert rows == expected
    assert lines[start + 5] == "Means over 2 runs each."
    assert any(line.endswith("for 6 runs together (numba, cpu)") for line in lines)


def test_a_chosen_model_is_predicted_with_explained_and_live(pprop_here, tables, tmp_path: Path):
    assert pprop_here(*CHOICE.split()).code == 0
    model = pprop.load(tmp_path / "model")
    names = model.graph_.ids
    assert names is not None
    assert classes_of(pprop_here("predict", "model").out) == model.predict(range(40)).tolist()
    explained = pprop_here("explain", "model", "person00", "--json").record["explanations"][0]
    assert list(explained["value"].values()) == pytest.approx(model.logits_[list(names).index("person00")], abs=1e-5)
    (tmp_path / "edits.txt").write_text("+ person01 person30\n")
    live = pprop_here("live", "model", "edits.txt", "--json")
    assert (live.code, live.record["alpha"]) == (0, model.alpha_)


def test_a_model_with_solves_is_trained_predicted_with_explained_and_live(pprop_here, tables, tmp_path: Path):
    command = f"{TRAIN} --model solved-ppnp --alpha 0.2 --tol 1e-3 --solver cg --json"
    record = pprop_here(*command.split()).record
    twin, accuracy = fit(pprop.SolvedPPNPClassifier, alpha=0.2, tol=1e-3, solver="cg")
    assert (record["model"], record["alpha"], record["test_accuracy"]) == ("solved-ppnp", 0.2, accuracy)
    model = pprop.load(tmp_path / "model")
    assert isinstance(model, pprop.SolvedPPNPClassifier)
    assert (model.tol, model.solver) == (1e-3, "cg")
    assert (model.logits_ == twin.logits_).all()
    names = model.graph_.ids
    assert names is not None
    assert classes_of(pprop_here("predict", "model").out) == model.predict(range(40)).tolist()
    explained = pprop_here("explain", "model", "person00", "--json").record["explanations"][0]
    at = list(names).index("person00")
    assert list(explained["value"].values()) == pytest.approx(model.logits_[at], abs=1e-3)
    (tmp_path / "edits.txt").write_text("+ person01 person30\n")
    live = pprop_here("live", "model", "edits.txt", "--json")
    assert (live.code, live.record["alpha"]) == (0, 0.2)
    assert live.record["difference"]["solver"] == "ConjugateGradient(tol=0.001, max_products=10000)"
    assert live.record["difference"]["largest"] < 1e-2


def test_an_ensemble_tells_its_stopping_accuracy_by_round_and_is_saved(pprop_here, tables, tmp_path: Path):
    record = pprop_here(*ENSEMBLE.split(), "--json").record
    model, accuracy = fit(pprop.APPNPEnsembleClassifier, members=3, rounds=1, folds=2, alpha=0.2)
    assert (record["model"], record["members"], record["rounds"], record["folds"]) == ("appnp-ensemble", 3, 1, 2)
    assert (record["alpha"], record["test_accuracy"]) == (0.2, accuracy)
    assert record["stopping_accuracy"] == model.record_.stopping_accuracy
    assert record["stopping_accuracy_by_round"] == model.history_.stopping_accuracy.tolist()
    assert (record["epochs"], record["ms_per_epoch"]) == (None, None)
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["model"]["class"] == "APPNPEnsembleClassifier"
    assert classes_of(pprop_here("predict", "model").out) == model.predict(range(40)).tolist()
    lines = pprop_here(*ENSEMBLE.split(), "--force").out.splitlines()
    assert (
        f"validation         {record['stopping_accuracy']:.1%} of {record['stopping_nodes']} validation nodes" in lines
    )
    assert "members            3, trained once and 1 more time from their own predictions" in lines
    assert "folds              2; a member also trains on the validation nodes of all but one" in lines
    assert any(line.endswith("s for 6 runs (numba, cpu)") for line in lines)


def test_an_ensemble_chooses_its_alpha_and_reuses_labels(pprop_here, tables, tmp_path: Path):
    command = f"{TRAIN} --model appnp-ensemble --members 2 --rounds 0 --alphas 0.05,0.8 --spread-errors 1.5"
    record = pprop_here(*command.split(), "--json").record
    settings: dict[str, Any] = {"alpha": (0.05, 0.8), "spread_errors": 1.5}
    model, accuracy = fit(pprop.APPNPEnsembleClassifier, members=2, rounds=0, **settings)
    assert (record["alpha"], record["test_accuracy"]) == (model.alpha_, accuracy)
    assert record["stopping_accuracy"] == model.record_.stopping_accuracy
    told = [[row["alpha"], row["stopping_accuracy"]] for row in record["alphas"]]
    assert told == [list(row) for row in zip(model.alphas_, model.scores_, strict=True)]
    assert (pprop.load(tmp_path / "model").logits_ == model.logits_).all()
    lines = pprop_here(*command.split(), "--force").out.splitlines()
    assert "members            2, trained once" in lines
    assert "spread errors      1.5; validation accuracies are those before it" in lines
    assert f"alpha              {model.alpha_:g}, the best of 2 on the validation nodes in the first round" in lines
    marked = [line.split()[0] for line in lines if line.endswith("%  yes")]
    assert marked == [f"{model.alpha_:g}"]


def test_an_ensemble_can_be_neither_explained_nor_live(pprop_here, tables, tmp_path: Path):
    assert pprop_here(*TRAIN.split(), "--model", "appnp-ensemble", "--members", 2, "--rounds", 0).code == 0
    (tmp_path / "edits.txt").write_text("+ person01 person30\n")
    for arguments, why in (
        (("explain", "model", "person00"), "Got APPNPEnsembleClassifier, whose logits are no sum over nodes."),
        (("live", "model", "edits.txt"), "Got APPNPEnsembleClassifier, whose members vote."),
    ):
        answer = pprop_here(*arguments)
        assert (answer.code, answer.out) == (3, "")
        assert answer.err.count("\n") == 1
        assert why in answer.err


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ("--alphas 0.1,0.2", 2, "--alphas belongs to appnp-cv and appnp-ensemble; appnp has one --alpha."),
        ("--model mlp --alphas 0.1", 2, "appnp-ensemble; mlp does not propagate."),
        (
            "--model mlp --alpha 0.1",
            2,
            "--alpha belongs to appnp, ppnp, solved-ppnp, appnp-ensemble, label-propagation and gprgnn; mlp does not propagate.",
        ),
        ("--model appnp-cv --alpha 0.1", 2, "gprgnn; appnp-cv chooses one of --alphas."),
        ("--model ppnp --steps 3", 2, "--steps belongs to appnp, appnp-cv, appnp-ensemble and gprgnn; ppnp has none."),
        ("--model appnp-ensemble --alpha 0.1 --alphas 0.1,0.2", 2, "Give one of --alpha and --alphas."),
        ("--model appnp-cv --spread-errors 1", 2, "--spread-errors belongs to appnp-ensemble; appnp-cv has none."),
        ("--model appnp-ensemble --spread-errors -1", 3, "--spread-errors must be"),
        ("--model appnp-ensemble --alphas 0.1,1.3", 3, "--alphas must be"),
        ("--tol 1e-3", 2, "--tol belongs to solved-ppnp; appnp has none."),
        ("--model ppnp --solver cg", 2, "--solver belongs to solved-ppnp; ppnp has none."),
        (
            "--model solved-ppnp --steps 3",
            2,
            "--steps belongs to appnp, appnp-cv, appnp-ensemble and gprgnn; solved-ppnp has",
        ),
        ("--model solved-ppnp --alphas 0.1,0.2", 2, "appnp-ensemble; solved-ppnp has one --alpha."),
        ("--model solved-ppnp --tol 0", 3, "--tol must be a number in (0, 1)."),
        ("--model solved-ppnp --solver exact", 3, "--solver must be one of"),
        ("--model solved-ppnp --alpha 0", 3, "--alpha must be a number in (0, 1]"),
        ("--model solved-ppnp --hidden 8,8", 3, "--hidden must be an integer"),
        ("--model label-propagation --steps 3", 2, "gprgnn; label-propagation has none."),
        ("--model auto --alpha 0.1", 2, "gprgnn; auto chooses for itself."),
        ("--runs 3", 2, "--runs belongs to appnp-cv; appnp has none."),
        ("--model appnp-cv --members 3", 2, "--members belongs to appnp-ensemble; appnp-cv has none."),
        ("--rounds 1", 2, "--rounds belongs to appnp-ensemble; appnp has none."),
        ("--model ppnp --folds 5", 2, "--folds belongs to appnp-ensemble; ppnp has none."),
        ("--model appnp-cv --alphas 0.1,much", 3, "--alphas takes numbers separated by commas, not '0.1,much'."),
        ("--model appnp-cv --alphas 0.1,1.3", 3, "--alphas must be"),
        ("--model appnp-cv --alphas 0.1,0.1", 3, "--alphas must be"),
        ("--model appnp-cv --runs 0", 3, "--runs must be"),
        ("--model appnp-ensemble --members 0", 3, "--members must be"),
        ("--model appnp-ensemble --folds 1", 3, "--folds must be"),
        ("--model appnp-ensemble --folds 99", 3, "at most 6, the number of stopping nodes. Got 99"),
    ],
)
def test_options_that_do_not_fit_the_model_are_refused(
    pprop_here, tables, tmp_path: Path, options: str, code: int, sentence: str
):
    answer = pprop_here(*TRAIN.split(), *options.split())
    assert (answer.code, answer.out) == (code, "")
    assert sentence in " ".join(answer.err.split())
    assert not (tmp_path / "model").exists()


def test_a_large_graph_is_trained_on_neighbourhoods_and_saved_as_an_ordinary_model(pprop_here, tables, tmp_path: Path):
    answer = pprop_here(*TRAIN.replace("--no-baselines", "--scale").split(), "--json")
    assert answer.code == 0
    model, accuracy = fit(pprop.APPNPClassifier, neighbours=64, criterion="plateau")
    assert answer.record["test_accuracy"] == accuracy
    loaded = pprop.load(tmp_path / "model")
    assert (loaded.logits_ == model.logits_).all()
    predicted = pprop_here("predict", "model")
    assert predicted.code == 0
    assert classes_of(predicted.out) == model.predict().tolist()


def test_predictions_in_pieces_with_logits_in_a_file_are_the_same(
    pprop_here, tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert pprop_here(*TRAIN.split()).code == 0
    assert pprop_here("predict", "model", "--out", "whole.csv").code == 0
    monkeypatch.setattr("pprop.cli.models.ROWS", 7)
    names = "pieces.csv", "scale.csv", "scale.parquet"
    for name in names:
        answer = pprop_here("predict", "model", "--out", name, *(["--scale"] if "scale" in name else []))
        assert answer.code == 0
    whole = (tmp_path / "whole.csv").read_bytes()
    assert [(tmp_path / name).read_bytes() == whole for name in names[:2]] == [True, True]
    stored = pyarrow.parquet.read_table(tmp_path / "scale.parquet")
    assert stored.column("class").to_pylist() == classes_of(whole.decode())
    assert not list(tmp_path.glob(".pprop-*"))  # the file of the logits is gone
    assert "--scale needs --out" in pprop_here("predict", "model", "--scale").err
    assert pprop_here(*TRAIN.replace("--out model", "--out other").split(), "--model", "ppnp").code == 0
    refused = pprop_here("predict", "other", "--scale", "--out", "other.csv")
    assert refused.code != 0
    assert "unless the model is APPNP with the built-in network" in " ".join(refused.err.split())


def test_models_without_neighbourhoods_refuse_them(pprop_here, tables):
    answer = pprop_here(*TRAIN.split(), "--model", "ppnp", "--scale")
    assert answer.code == 2
    assert "--scale trains appnp alone: leave out --scale or --model ppnp." in " ".join(answer.err.split())


@pytest.mark.parametrize(
    ("model", "options", "kind"),
    [
        ("boosting", "--hops 1 --no-label-inputs", "ColumnsClassifier"),
        ("residual", "--layers 2", "ResidualClassifier"),
        ("gprgnn", "--alpha 0.3 --steps 3", "GPRGNNClassifier"),
    ],
)
def test_models_for_neighbours_that_differ_are_trained_saved_and_used(
    pprop_here: Any, tables: Any, tmp_path: Path, model: str, options: str, kind: str
):
    answer = pprop_here(*f"{TRAIN} --model {model} {options} --json".split())
    assert answer.code == 0, answer.err
    loaded: Any = pprop.load(tmp_path / "model")
    assert type(loaded).__name__ == kind
    assert answer.record["stopping_accuracy"] == loaded.record_.stopping_accuracy
    assert answer.record["test_accuracy"] == loaded.accuracy_
    assert getattr(loaded, "label_inputs", None) is {"boosting": False, "residual": True}.get(model)
    predicted = pprop_here("predict", "model", "--out", "again.csv")
    assert predicted.code == 0
    assert classes_of((tmp_path / "again.csv").read_text()) == loaded.predict().tolist()
    explained = pprop_here("explain", "model", loaded.graph_.ids[0])
    assert explained.code == 3
    assert f"Got {kind}, whose" in explained.err


def test_residual_keeps_its_own_defaults_where_no_option_is_given(pprop_here: Any, tables: Any, tmp_path: Path):
    assert pprop_here(*TRAIN.replace("--hidden 8 ", "").split(), "--model", "residual", "--layers", 1).code == 0
    loaded: Any = pprop.load(tmp_path / "model")
    assert (loaded.hidden, loaded.dropout, loaded.penalty, loaded.max_epochs) == (32, 0.2, 1e-5, 12)


def test_a_scoring_and_a_threshold_are_told_and_saved(pprop_here, tables, tmp_path: Path):
    answer = pprop_here(
        *TRAIN.split(), "--scoring", "average_precision", "--positive", "chess", "--threshold", "f1", "--json"
    )
    assert answer.code == 0
    record, model = answer.record, pprop.load(tmp_path / "model")
    assert (record["scoring"], record["positive"]) == ("average_precision", "chess")
    assert record["stopping_score"] == model.record_.stopping_score
    limit = model.fitted_.threshold
    assert limit is not None
    assert (record["threshold"]["probability"], record["threshold"]["recall"]) == (limit.probability, limit.recall)
    taken = [name == "chess" for name in classes_of(pprop_here("predict", "model").out)]
    assert taken == (model.predict_proba()[:, model.classes_.tolist().index("chess")] >= limit.probability).tolist()
    text = pprop_here(
        *TRAIN.split(), "--scoring", "average_precision", "--positive", "chess", "--threshold", "f1", "--force"
    ).out
    assert limit.sentence() in text
    assert "judged by          average precision of 'chess': " in text


@pytest.mark.parametrize("model", ModelName)
def test_every_model_has_a_scoring_a_positive_class_and_a_threshold(model: ModelName):
    names = {field.name for field in fields(getattr(pprop, CLASSIFIERS[model]))}
    assert {"scoring", "positive", "threshold"} <= names


@pytest.mark.parametrize("model", ["label-propagation", "appnp-ensemble --members 2 --rounds 0"])
def test_a_threshold_of_models_that_train_otherwise_is_told_and_saved(
    pprop_here, without_drawing, tables, tmp_path: Path, model: str
):
    call = f"{TRAIN} --model {model} --positive chess --threshold f1 --json"
    answer = pprop_here(*call.split())
    assert answer.code == 0, answer.err
    loaded = pprop.load(tmp_path / "model")
    limit = loaded.fitted_.threshold
    assert limit is not None
    assert limit.nodes == answer.record["stopping_nodes"]
    assert answer.record["threshold"]["probability"] == limit.probability
    taken = [name == "chess" for name in classes_of(pprop_here("predict", "model").out)]
    assert taken == (loaded.predict_proba()[:, loaded.classes_.tolist().index("chess")] >= limit.probability).tolist()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            "--threshold f1 --folds 2",
            "--threshold needs validation nodes that no member learns from: leave out --folds",
        ),
        ("--scoring f1 --spread-errors 0.1", "--scoring needs validation nodes that no member learns from: leave out"),
        (
            "--scoring f1 --alphas 0.1,0.2",
            "--scoring is not what the ensemble chooses one of several --alphas by: give",
        ),
    ],
)
def test_an_ensemble_is_not_judged_by_what_it_learns(pprop_here, tables, options: str, told: str):
    answer = pprop_here(*f"{TRAIN} --model appnp-ensemble {options}".split())
    assert (answer.code, told in answer.err) == (2, True), answer.err


def test_a_scoring_of_another_name_is_refused(pprop_here, tables):
    answer = pprop_here(*TRAIN.split(), "--scoring", "auc")
    assert "--scoring must be one of 'accuracy', 'balanced_accuracy', " in answer.err
