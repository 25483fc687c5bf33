"""Training and predicting from the shell: a new user's graph, the paper's splits, what is saved."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import pprop
from pprop.cli import train
from pprop.cli.splits import own_split

pytestmark = pytest.mark.usefixtures("without_drawing")  # test_demo_and_doctor.py draws


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_a_new_user_gets_predictions_with_one_command(pprop_here, tables, tmp_path: Path):
    command = "train edges.csv --nodes nodes.csv --label-column hobby --out model --max-epochs 60"
    answer = pprop_here(*command.split())
    assert answer.code == 0
    assert "test accuracy" in answer.out
    rows = rows_of(tmp_path / "model" / "predictions.csv")
    assert [row["id"] for row in rows] == [f"person{k:02d}" for k in range(40)]
    assert list(rows[0]) == ["id", "class", "p_chess", "p_tennis", "role", "label"]
    expected = ["chess"] * 20 + ["tennis"] * 20  # also those whose hobby was not given
    assert np.mean([row["class"] == hobby for row, hobby in zip(rows, expected, strict=True)]) > 0.9
    assert all(abs(float(row["p_chess"]) + float(row["p_tennis"]) - 1) < 1e-6 for row in rows)
    assert {file.name for file in (tmp_path / "model").iterdir()} == {
        *("manifest.json", "weights.safetensors", "features.json", "MODEL_CARD.md"),
        *("predictions.csv", "curves.png", "curves.svg", "ranking.png", "ranking.svg"),
    }


def test_predict_equals_what_training_wrote_in_any_format(pprop_here, tables, tmp_path: Path):
    command = "train edges.csv --nodes nodes.csv --label-column hobby --out model --max-epochs 5"
    assert pprop_here(*command.split()).code == 0
    printed = pprop_here("predict", "model")
    assert printed.out == (tmp_path / "model" / "predictions.csv").read_text()
    assert pprop_here("predict", "model", "--out", "p.parquet").code == 0
    table = pq.read_table(tmp_path / "p.parquet").to_pydict()
    record = pprop_here("predict", "model", "--json").record
    assert table["class"] == record["predictions"]["class"]
    assert np.float32(table["p_chess"]).tolist() == np.float32(record["predictions"]["p_chess"]).tolist()
    assert [row["p_chess"] for row in rows_of(tmp_path / "model" / "predictions.csv")] == [
        str(np.float32(p)) for p in table["p_chess"]
    ]


def test_a_changed_graph_is_refused_unless_it_is_named(pprop_here, tables, tmp_path: Path):
    edges, _ = tables
    command = "train edges.csv --nodes nodes.csv --label-column hobby --out model --max-epochs 5"
    assert pprop_here(*command.split()).code == 0
    with edges.open("a") as stream:
        stream.write("person00,person39\n")
    refused = pprop_here("predict", "model", "--out", "p.csv")
    assert refused.code == 3
    assert "fingerprint" in refused.err
    assert "Add: --graph GRAPH" in refused.err
    assert not (tmp_path / "p.csv").exists()
    options = ("--nodes", "nodes.csv", "--label-column", "hobby")
    named = pprop_here("predict", "model", "--graph", "edges.csv", *options, "--out", "p.csv", "--json")
    assert named.code == 0
    assert named.record["graph_changed"] is True
    assert "not the graph of the training" in named.err
    assert len(rows_of(tmp_path / "p.csv")) == 40


def test_the_later_of_two_trainings_to_one_folder_fails_and_keeps_its_model_beside_it(
    pprop_here, tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    options = "--nodes nodes.csv --label-column hobby --out model --no-baselines --max-epochs"
    words = ["train", "edges.csv", *options.split()]
    true = train.write_artefact

    def later(*arguments: Any) -> None:
        monkeypatch.setattr(train, "write_artefact", true)
        assert pprop_here(*words, 1).code == 0  # another training, which ends in the meantime
        true(*arguments)

    monkeypatch.setattr(train, "write_artefact", later)
    answer = pprop_here(*words, 2)
    assert answer.code == 4
    assert answer.err.splitlines()[-1] == (
        "pprop train: 'model' was not replaced: it appeared while this result was made. "
        "This result is in 'model-2'. Rename it, or remove 'model' first."
    )
    epochs = [
        json.loads((tmp_path / name / "manifest.json").read_text())["training"]["epochs"]
        for name in ("model", "model-2")
    ]
    assert epochs == [1, 2]
    assert pprop_here("predict", "model-2").code == 0


def test_an_existing_model_stays_without_force_and_is_replaced_with_it(pprop_here, tmp_path: Path):
    command = ("train", "citeseer", "--out", "model", "--max-epochs")
    assert pprop_here(*command, 1).code == 0
    refused = pprop_here(*command, 2)
    assert refused.code == 4
    assert "--force" in refused.err
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["training"]["epochs"] == 1
    assert pprop_here(*command, 2, "--force").code == 0
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["training"]["epochs"] == 2
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["appnp", "ppnp", "solved-ppnp", "mlp"])
def test_a_dataset_is_trained_on_the_papers_split_with_the_runs_own_seed(pprop_here, name: str):
    seed = pprop.TEST_SEEDS[3]
    command = f"train citeseer --model {name} --split-seed {seed} --init-seed 2 --max-epochs 4 --json"
    record = pprop_here(*command.split()).record
    graph = pprop.load_dataset("citeseer")
    kinds = {"appnp": pprop.APPNP, "ppnp": pprop.PPNP, "solved-ppnp": pprop.SolvedPPNP, "mlp": pprop.MLP}
    model = kinds[name]()
    twin = pprop.train(
        model,
        graph,
        pprop.paper_split(graph, seed),
        seeds=pprop.run_seed(seed, 2),
        stopping=pprop.Stopping(max_epochs=4),
        progress=False,
    )
    assert record["test_accuracy"] == pytest.approx(float(twin.accuracy()[0]), abs=1e-12)
    assert record["stopping_loss"] == pytest.approx(float(twin.stopping_loss[0]), rel=1e-6)
    assert record["fingerprint"] == graph.fingerprint
    assert record["split_seed"] == seed


def test_settings_reach_the_model(pprop_here, tmp_path: Path):
    command = (
        "train citeseer --alpha 0.3 --steps 4 --hidden 16,8 --dropout 0.2 --penalty 0.01 --learning-rate 0.02 "
        "--patience 7 --max-epochs 2 --out model --json"
    )
    record = pprop_here(*command.split()).record
    settings = json.loads((tmp_path / "model" / "manifest.json").read_text())["settings"]
    wanted = {"alpha": 0.3, "steps": 4, "hidden": [16, 8], "dropout": 0.2, "penalty": 0.01, "learning_rate": 0.02}
    assert {key: settings[key] for key in wanted} == wanted
    assert (settings["patience"], settings["max_epochs"]) == (7, 2)
    assert record["parameters"] == 3703 * 16 + 16 * 8 + 8 * 6


def test_without_a_test_share_there_is_no_test_accuracy(pprop_here, tables):
    command = "train edges.csv --nodes nodes.csv --label-column hobby --test 0 --max-epochs 2 --json"
    record = pprop_here(*command.split()).record
    assert record["test_accuracy"] is None
    assert record["test_nodes"] == 0
    assert record["train_nodes"] + record["stopping_nodes"] == 32


@pytest.mark.parametrize("seed", range(5))
def test_an_own_split_divides_every_class_and_trains_on_each(seed: int):
    labels = np.repeat([0, 1, 2, 3, -1], [50, 20, 3, 1, 7])
    graph = pprop.Graph.from_scipy(sp.csr_array((81, 81)), labels=labels)
    split = own_split(graph, test=0.3, stopping=0.2, seed=seed)
    everything = np.concatenate([split.train, split.stopping, split.evaluation])
    assert sorted(everything) == np.flatnonzero(labels >= 0).tolist()
    assert (len(split.evaluation), len(split.stopping)) == (22, 15)
    assert set(labels[split.train]) == {0, 1, 2, 3}
    for large in (0, 1):  # the others are too small for their shares
        share = np.mean(labels[split.evaluation] == large) / np.mean(labels[everything] == large)
        assert 0.75 < share < 1.25


def test_another_seed_draws_another_split():
    graph = pprop.Graph.from_scipy(sp.csr_array((40, 40)), labels=np.arange(40) % 2)
    first, again, other = (own_split(graph, 0.2, 0.2, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.train, again.train)
    assert not np.array_equal(first.train, other.train)


@pytest.mark.parametrize("name", ["appnp", "ppnp", "mlp"])
def test_verbose_prints_the_plan_and_the_device_is_recorded(pprop_here, tables, tmp_path: Path, name: str):
    command = f"train edges.csv --nodes nodes.csv --label-column hobby --model {name} --max-epochs 2 --json --out model"
    answer = pprop_here(*command.split(), "--verbose")
    assert "\nplan: 1 run on cpu; at most " in answer.err
    assert "run in training" in answer.err
    assert answer.record["device"] == "cpu"
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["training"]["device"] == "cpu"
    quiet = pprop_here(*command.split(), "--force")
    assert quiet.code == 0
    assert "plan:" not in quiet.err


@pytest.mark.parametrize("verb", ["train citeseer", "demo"])
def test_a_gpu_that_is_not_there_is_bad_input(pprop_here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    answer = pprop_here(*verb.split(), "--device", "cuda", "--out", "result")
    assert answer.code == 3
    assert answer.out == ""
    sentence = (
        f"pprop {verb.split()[0]}: The device 'cuda' needs a CUDA GPU, and torch sees none here. Add: --device cpu"
    )
    assert answer.err.splitlines()[-1] == sentence
    assert list(tmp_path.iterdir()) == []
