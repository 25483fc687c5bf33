from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

import pprop
from pprop._errors import InputError
from pprop.study.cell import MODELS, fill_settings, make_cell, model_kind
from pprop.study.run.recipe import build, stopping_rule

NAMES = ["appnp", "ppnp", "mlp", "vanilla_gcn", "gcn", "ngcn", "gat", "jk", "bootstrapped_fp"]


@pytest.fixture(scope="module")
def graph() -> pprop.Graph:
    return pprop.load_dataset("citeseer")


def test_the_zoo_has_the_models_of_the_paper():
    assert list(MODELS) == NAMES
    assert [kind.title for kind in MODELS.values()] == [
        *("APPNP", "PPNP", "MLP", "V. GCN", "GCN", "N-GCN", "GAT", "JK", "Bt. FP, tuned")
    ]


@pytest.mark.parametrize(
    ("dataset", "alpha"), [("citeseer", 0.1), ("cora_ml", 0.1), ("pubmed", 0.1), ("ms_academic", 0.2)]
)
def test_alpha_is_the_datasets_unless_given(dataset: str, alpha: float):
    assert fill_settings("appnp", {}, dataset)["alpha"] == alpha
    assert fill_settings("ppnp", {}, dataset)["alpha"] == alpha
    assert fill_settings("mlp", {"evaluate": "propagated"}, dataset)["alpha"] == alpha
    assert fill_settings("appnp", {"alpha": 0.5}, dataset)["alpha"] == 0.5
    assert fill_settings("bootstrapped_fp", {}, dataset)["alpha"] == 0.2  # the model's own


@pytest.mark.parametrize("model", NAMES)
def test_every_default_is_a_value_that_the_model_accepts_as_it_is(model: str):
    filled = fill_settings(model, {}, "citeseer")
    assert fill_settings(model, filled, "citeseer") == filled


@pytest.mark.parametrize("model", [name for name in NAMES if MODELS[name].trained])
def test_the_paper_trains_all_with_the_same_rate_and_all_but_vanilla_gcn_with_the_same_stopping(model: str):
    cell = make_cell(model, {}, "cora_ml")
    vanilla = pprop.Stopping(10, 200, "loss")
    assert stopping_rule(cell) == (vanilla if model == "vanilla_gcn" else pprop.Stopping(100, 10000, "paper"))
    assert cell.settings["learning_rate"] == 0.01


def test_one_computation_is_one_cell():
    written = [
        make_cell("appnp", settings, "citeseer")
        for settings in ({}, {"alpha": 0.1, "steps": 10}, {"hidden": 64}, {"hidden": [64], "penalty": 0.005})
    ]
    assert len({cell.config for cell in written}) == 1
    assert make_cell("appnp", {"alpha": 1}, "citeseer").config == make_cell("appnp", {"alpha": 1.0}, "citeseer").config
    assert make_cell("appnp", {"alpha": -0.0}, "citeseer").config == make_cell("appnp", {"alpha": 0}, "citeseer").config


def test_infinitely_many_steps_are_ppnp_with_teleport_and_a_limit_without():
    with_teleport = make_cell("appnp", {"steps": "limit", "alpha": 0.3}, "citeseer", "validation")
    assert with_teleport == make_cell("ppnp", {"alpha": 0.3}, "citeseer", "validation")
    without = make_cell("appnp", {"steps": "limit", "alpha": 0}, "citeseer")
    assert (without.model, without.settings["steps"]) == ("appnp", "limit")


def test_a_cell_does_not_share_its_lists():
    first = make_cell("mlp", {}, "citeseer")
    first.settings["hidden"].append(3)
    assert make_cell("mlp", {}, "citeseer").settings["hidden"] == [64]


def test_propagation_is_a_setting_of_an_mlp_that_is_propagated_and_of_no_other():
    assert "alpha" not in make_cell("mlp", {}, "citeseer").settings
    settings = make_cell("mlp", {"evaluate": "propagated", "steps": 5}, "ms_academic").settings
    assert (settings["alpha"], settings["steps"]) == (0.2, 5)


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        ("appnp", {"alhpa": 0.1}, "unknown setting 'alhpa' of appnp. Did you mean 'alpha'?"),
        ("gcn", {"zzz": 1}, "unknown setting 'zzz' of gcn. Known are: hidden, dropout, matrix_dropout, "),
        ("apnp", {}, "unknown model 'apnp'. Did you mean 'appnp'?"),
        ("appnp", {"alpha": 1.3}, "The 'alpha' parameter of appnp must be a float in [0, 1]. Got 1.3 instead."),
        ("appnp", {"alpha": True}, "must be a float in [0, 1]. Got True"),
        ("ppnp", {"alpha": 0.0}, "The 'alpha' parameter of ppnp must be a float in (0, 1]. Got 0.0 instead."),
        ("appnp", {"steps": 2.5}, "must be an integer from 0 to 10000. Got 2.5"),
        ("appnp", {"steps": "limits"}, "must be an integer of at least 0 or 'limit'. Got 'limits'"),
        ("appnp", {"hidden": [64, 0]}, "must be an integer of at least 1, or a sequence of them. Got"),
        ("appnp", {"hidden": "64"}, "must be an integer of at least 1, or a sequence of them. Got '64'"),
        ("appnp", {"evaluate": "propagated"}, "must be one of 'model' or 'network'. Got 'propagated'"),
        ("mlp", {"steps": 3}, "The 'steps' parameter of mlp has no meaning without evaluate = 'propagated'."),
        ("gat", {"dropout": 1.0}, "must be a float in [0, 1). Got 1.0"),
        ("jk", {"penalty": float("nan")}, "must be a float in [0, inf). Got nan"),
        ("appnp", {"alpha": 0, "steps": "limit", "normalization": "row"}, "normalization = 'sym' alone"),
    ],
)
def test_a_wrong_setting_is_refused(model: str, settings: dict[str, object], words: str):
    with pytest.raises(InputError) as caught:
        make_cell(model, settings, "citeseer")
    assert words in str(caught.value)


def test_an_unknown_dataset_is_refused():
    with pytest.raises(InputError, match=r"unknown dataset 'cora'\. Did you mean 'cora_ml'"):
        make_cell("mlp", {}, "cora")


def test_the_paper_network_is_built_from_its_settings(graph: pprop.Graph):
    built = {name: build(make_cell(name, {"hidden": [8], "dropout": 0.25}, "citeseer"), graph) for name in NAMES[:3]}
    assert built["appnp"] == pprop.APPNP(0.1, 10, hidden=8, dropout=0.25, propagation_dropout=0.5)
    assert built["ppnp"] == pprop.PPNP(0.1, hidden=8, dropout=0.25, propagation_dropout=0.5)
    assert built["mlp"] == pprop.MLP(hidden=8, dropout=0.25)


@pytest.mark.parametrize("model", NAMES[:3])
def test_the_defaults_build_what_the_library_calls_by_that_name(model: str, graph: pprop.Graph):
    assert build(make_cell(model, {}, "citeseer"), graph) == getattr(pprop, model.upper())()


@pytest.mark.parametrize(("model", "name"), [("gcn", "GCN"), ("ngcn", "NGCN"), ("gat", "GAT"), ("jk", "JK")])
def test_the_defaults_of_a_baseline_are_those_of_its_description(model: str, name: str, graph: pprop.Graph):
    assert build(make_cell(model, {}, "citeseer"), graph) == getattr(pprop.models, name)()


def test_vanilla_gcn_is_a_smaller_gcn_without_dropout_on_the_matrix(graph: pprop.Graph):
    from pprop.models import GCN

    expected = GCN(hidden=16, dropout=0.5, matrix_dropout=0.0, penalty=5e-4)
    assert build(make_cell("vanilla_gcn", {}, "citeseer"), graph) == expected


def test_the_limit_without_teleport_is_built_with_its_solver(graph: pprop.Graph):
    from pprop.propagation import Limit

    propagation = build(make_cell("appnp", {"alpha": 0, "steps": "limit"}, "citeseer"), graph).propagation
    assert (propagation.alpha, propagation.solver, propagation.dropout) == (0.0, Limit(), 0.5)


def test_bootstrapped_feature_propagation_has_the_defaults_of_the_estimator(graph: pprop.Graph):
    from pprop.estimators import BootstrappedFPClassifier
    from pprop.models.feature_propagation import BootstrappedFP

    settings = make_cell("bootstrapped_fp", {}, "citeseer").settings
    parameters = inspect.signature(BootstrappedFPClassifier).parameters
    assert settings == {name: parameters[name].default for name in settings}
    assert BootstrappedFP() == BootstrappedFP(**settings)
    assert build(make_cell("bootstrapped_fp", {"rounds": 3}, "citeseer"), graph).model == BootstrappedFP(rounds=3)


def test_a_cell_trains(graph: pprop.Graph):
    cell = make_cell("gcn", {"max_epochs": 2, "hidden": 4}, "citeseer")
    split = pprop.paper_split(graph, seed=pprop.TEST_SEEDS[0])
    trained = pprop.train(build(cell, graph), graph, split, stopping=stopping_rule(cell))
    assert trained.epochs.tolist() == [2]
    assert np.isfinite(trained.stopping_loss).all()


def test_models_are_listed_without_torch():
    code = "import sys, pprop.study.experiment_folder as e; e.load_experiments(); print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(InputError, match="unknown model 3"):
        model_kind(3)
