"""A model knows its features by name and scale: on other graphs, and in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import load as read_tensors
from scipy import sparse
from tests.estimators.folders import edit, put_features, put_tensors

import pprop
from pprop import (
    APPNPClassifier,
    APPNPEnsembleClassifier,
    FormatError,
    Graph,
    GraphSource,
    InputError,
    LabelPropagationClassifier,
    MLPNodeClassifier,
)
from pprop.estimators.features import TrainedFeatures
from pprop.estimators.loading import saved_recipe

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 3, "random_state": 0, "backend": "reference"}
N = 30
WORDS, PLACES = ("red tea", "blue maps", "green chess"), ("north", "south", "east", "west", "home")
LABELS = [*"abc"] * 10

Use = Callable[[Graph], Any]


def people(n: int = N, seed: int = 0, **changes: Any) -> pa.Table:
    """A table with a number, a category, a date and a text; `changes` put columns in, or with None take them out."""
    rng = np.random.default_rng(seed)
    at = np.arange(n)
    columns: dict[str, Any] = {
        "id": [f"n{i}" for i in at],
        "age": rng.normal(40, 10, n).round(1),
        "team": np.array(["tea", "maps", "chess"])[at % 3],
        "since": np.datetime64("2020-01-01") + 11 * (at % 17),
        "bio": [f"{WORDS[i % 3]} {'often' if i % 2 else 'never'} {PLACES[i % 5]}" for i in at],
    }
    return pa.table({name: values for name, values in {**columns, **changes}.items() if values is not None})


def ring(n: int = N) -> pa.Table:
    ids = np.array([f"n{i}" for i in range(n)])
    return pa.table({"source": ids, "target": np.roll(ids, -3)})


def graph_of(table: pa.Table, **options: Any) -> Graph:
    return Graph.from_pandas(ring(len(table)), table, **options)


def fitted(graph: Graph, kind: Any = APPNPClassifier, **settings: Any) -> Any:
    return kind(graph, **{**QUICK, **settings}).fit(np.arange(N), LABELS)


def numbers(features: Any, names: str | None = "ab", n: int = N) -> Graph:
    path = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n))
    return Graph.from_scipy(path, features=features, feature_names=None if names is None else list(names))


@pytest.fixture(scope="module")
def trained() -> Any:
    return fitted(graph_of(people()))


@pytest.fixture
def uses(trained: Any, tmp_path: Path) -> list[Use]:
    """The two ways to another graph, for a model of columns of all kinds."""
    assert [column.kind for column in trained.recipe_.columns] == ["number", "category", "date", "text"]
    trained.save(tmp_path / "model")
    return [trained.on, lambda graph: pprop.load(tmp_path / "model", graph=graph)]


def test_columns_in_another_order_give_the_same_bits(trained: Any, uses: list[Use]) -> None:
    table = people()
    turned = graph_of(table.select(["bio", "since", "team", "age", "id"]), feature_columns=trained.recipe_)
    own = graph_of(table.select(["bio", "since", "team", "age", "id"]))  # by a recipe of its own, which is the same
    assert own.feature_names != trained.graph_.feature_names
    for use in uses:
        for graph in (turned, own):
            other = use(graph)
            assert other.graph_changed_ is False
            assert np.array_equal(other.logits_, trained.logits_)
            assert other.graph_.feature_names == trained.graph_.feature_names


def test_a_missing_renamed_or_new_column_is_named(trained: Any, uses: list[Use]) -> None:
    table = people()
    renamed = table.rename_columns(["id", "years", "team", "since", "bio"])
    for use in uses:
        for other, said in (
            (table.drop_columns(["age"]), r"The column 'age' .* \(not used and number\)"),
            (renamed, r"The columns 'age', 'years' .* \('age': not used and number; 'years': number and not used\)"),
            (table.append_column("height", pa.array(np.linspace(1, 2, N))), r"'height' .* \(number and not used\)"),
        ):
            with pytest.raises(InputError, match=rf"{said}\. Read the graph with feature_columns=model\.recipe_"):
                use(graph_of(other))
    with pytest.raises(FormatError, match=r"with the column 'age', as in the training\. Got .* without it"):
        graph_of(renamed, feature_columns=trained.recipe_)


def test_words_categories_and_fillings_that_were_fitted_to_other_tables_are_refused(uses: list[Use]) -> None:
    others: dict[str, Any] = {
        "bio": [f"{PLACES[i % 5]} {WORDS[i % 3]} {'often' if i % 4 else 'never'}" for i in range(N)],  # other weights
        "team": ["tea", "maps", "golf"] * 10,
        "age": [None, *np.linspace(20, 60, N - 1).tolist()],
    }
    for use in uses:
        for name, column in others.items():
            with pytest.raises(InputError, match=rf"The column '{name}' became other features in the graph given to"):
                use(graph_of(people(**{name: column})))


def test_numbers_without_gaps_mean_the_same_in_any_table() -> None:
    model = fitted(graph_of(people(team=None, bio=None)))
    newer = people(40, seed=5, team=None, bio=None)
    own, same = graph_of(newer), graph_of(newer, feature_columns=model.recipe_)
    assert own.recipe != same.recipe  # of their medians
    assert np.array_equal(model.on(own).logits_, model.on(same).logits_)


def test_nodes_that_came_later_are_predicted_by_the_network_and_spread(trained: Any, uses: list[Use]) -> None:
    graph = graph_of(people(40, seed=3), feature_columns=trained.recipe_)
    center, scale = trained.scaling_.center, trained.scaling_.scale
    rows = (cast("Any", graph.features).toarray().astype(np.float64) - center) / scale
    weights = {name: array.astype(np.float64) for name, array in trained.weights_.items()}
    alone = np.maximum(rows @ weights["layer0"] + weights["bias0"], 0) @ weights["layer1"] + weights["bias1"]
    expected = pprop.propagate(graph, alone, alpha=0.1)
    for use in uses:
        other = use(graph)
        np.testing.assert_allclose(other.logits_, expected, rtol=1e-4, atol=1e-5)
        assert other.predict().shape == (40,)
        assert other.graph_changed_ is True
        assert len(other.known_nodes_) == len(other.train_nodes_) == len(other.stopping_nodes_) == 0
        assert (other.accuracy_, other.source_) == (None, None)
        assert other.scaling_ == trained.scaling_
    assert len(trained.known_nodes_) == N  # which is as it was


def test_features_of_matrices_are_found_by_name() -> None:
    features = np.random.default_rng(0).normal(size=(N, 2))
    model = fitted(numbers(features), MLPNodeClassifier)
    for other in (numbers(features[:, ::-1], "ba"), numbers(sparse.csr_array(features[:, ::-1]), "ba")):
        np.testing.assert_allclose(model.on(other).logits_, model.logits_, rtol=1e-6)
    assert np.array_equal(model.on(numbers(features, None)).logits_, model.logits_)  # without names: by position
    with pytest.raises(InputError, match=r"with the features of the training\. Got one without 'a' instead\.$"):
        model.on(numbers(features, "xb"))
    with pytest.raises(InputError, match=r"Got one without 'a', 'b' instead\.$"):
        model.on(numbers(features, "xy"))
    with pytest.raises(InputError, match=r"Got one with 'c' instead\. Leave it out, or train again with it\."):
        model.on(numbers(np.ones((N, 3)), "abc"))
    with pytest.raises(
        InputError, match=r"Classifier\.on must be .* 2 features per node, .* Got one with 3 features inst"
    ):
        model.on(numbers(np.ones((N, 3)), None))
    with pytest.raises(InputError, match="must be a Graph"):
        model.on(cast("Any", features))
    long = Graph.from_scipy(sparse.csr_array((2, 2)), features=np.eye(2), feature_names=["weight", "colour"])
    with pytest.raises(InputError, match=r"one without 'color' instead\. Did you mean 'colour'\?"):
        TrainedFeatures(names=("weight", "color")).matched(long, "load")


def test_two_features_of_one_name_keep_their_order() -> None:
    features = np.random.default_rng(0).normal(size=(N, 3))
    model = fitted(numbers(features, "aab"), MLPNodeClassifier)
    assert np.array_equal(model.on(numbers(features, "aab")).logits_, model.logits_)
    with pytest.raises(InputError, match="in the order of the training, as two have the same name"):
        model.on(numbers(features, "baa"))


def test_features_that_are_scaled_already_are_not_scaled_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    raw, newer = numbers(rng.normal(5, 3, (N, 2))), numbers(rng.normal(7, 9, (N, 2)))
    model, ready = fitted(raw, MLPNodeClassifier), fitted(raw.scaled(), MLPNodeClassifier)
    assert np.array_equal(ready.logits_, model.logits_)
    for one in (model, ready):
        assert np.array_equal(one.on(newer).logits_, model.on(newer).logits_)
        assert np.array_equal(one.on(newer.scaled(model.scaling_)).logits_, model.on(newer).logits_)
        with pytest.raises(InputError, match=r"Got one scaled otherwise instead\. Make it without Graph\.scaled"):
            one.on(newer.scaled())
    pprop.write_npz(raw.scaled(), tmp_path / "scaled.npz")  # which does not say that it is
    ready.save(tmp_path / "model", source=GraphSource("npz", {"path": tmp_path / "scaled.npz"}))
    again = pprop.load(tmp_path / "model")
    assert np.array_equal(again.logits_, model.logits_)
    assert again.graph_.scaling == model.scaling_
    assert np.array_equal(again.on(newer).logits_, model.on(newer).logits_)


def test_an_ensemble_leaves_the_errors_of_its_nodes_behind() -> None:
    graph = graph_of(people(bio=None))
    model = fitted(graph, APPNPEnsembleClassifier, members=1, rounds=0, spread_errors=0.5, max_epochs=2, stopping=0.5)
    other = model.on(graph_of(people(40, seed=2, bio=None), feature_columns=model.recipe_))
    assert (other.errors_, other.logits_.shape) == (None, (40, 3))
    assert model.errors_ is not None


@pytest.mark.parametrize("scaling", ["standard", "l1", "none"])
def test_the_scaling_comes_back_bit_for_bit(tmp_path: Path, scaling: str) -> None:
    rng = np.random.default_rng(0)
    graph, newer = numbers(rng.normal(5, 3, (N, 2))), numbers(rng.normal(7, 9, (N, 2)))
    model = fitted(graph, MLPNodeClassifier, scaling=scaling)
    model.save(tmp_path / "model")
    again = pprop.load(tmp_path / "model", graph=graph)
    assert again.scaling_ == model.scaling_
    assert again.scaling_ is not None
    assert again.scaling_.kind == scaling
    assert np.array_equal(again.logits_, model.logits_)
    assert np.array_equal(pprop.load(tmp_path / "model", graph=newer).logits_, model.on(newer).logits_)
    tensors = read_tensors((tmp_path / "model" / "weights.safetensors").read_bytes())
    kept = {name: array for name, array in tensors.items() if name.startswith("scaling.")}
    assert sorted(kept) == (["scaling.center", "scaling.scale"] if scaling == "standard" else [])
    for name, array in kept.items():
        assert array.tobytes() == getattr(model.scaling_, name.removeprefix("scaling.")).tobytes()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.pop("scaling.center"), "the scaling 'standard' does not fit 2 features"),
        (lambda t: t.update({"scaling.scale": np.ones(3)}), "the scaling 'standard' does not fit 2 features"),
        (lambda t: t.update({"scaling.scale": np.array([1.0, 0.0])}), "the scaling 'standard' does not fit 2 features"),
        (lambda t: t.update({"scaling.center": np.array([1.0, np.nan])}), "the scaling 'standard' does not fit"),
        (lambda t: t.update({"scaling.scale": np.ones(2, np.float32)}), "the scaling 'standard' does not fit"),
        (lambda t: t.update({"scaling.more": np.ones(2)}), "the scaling 'standard' does not fit 2 features"),
    ],
)
def test_a_scaling_that_does_not_fit_is_refused(tmp_path: Path, change: Any, what: str) -> None:
    graph = numbers(np.random.default_rng(0).normal(size=(N, 2)))
    fitted(graph, MLPNodeClassifier).save(tmp_path / "model")
    put_tensors(tmp_path / "model", change)
    with pytest.raises(FormatError, match=f"is damaged: {what}"):
        pprop.load(tmp_path / "model", graph=graph)


@pytest.mark.parametrize("value", ["auto", "l2", None, 3])
def test_a_scaling_that_there_is_not_is_refused(tmp_path: Path, value: object) -> None:
    graph = numbers(np.random.default_rng(0).normal(size=(N, 2)))
    fitted(graph, MLPNodeClassifier).save(tmp_path / "model")
    edit(tmp_path / "model", lambda manifest: manifest["graph"].update(scaling=value))
    with pytest.raises(FormatError, match="is damaged: "):
        pprop.load(tmp_path / "model", graph=graph)


def test_a_recipe_is_saved_beside_the_model_and_read_alone(trained: Any, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    entry = json.loads((tmp_path / "model" / "features.json").read_bytes())
    assert entry == {"names": None, "recipe": trained.recipe_.to_json()}
    assert saved_recipe(tmp_path / "model") == trained.recipe_
    with pytest.raises(FormatError, match="holds no pprop model"):
        saved_recipe(tmp_path)


def test_names_alone_are_saved_and_nothing_where_there_are_none(tmp_path: Path) -> None:
    features = np.random.default_rng(0).normal(size=(N, 2))
    names = ["\ud800", "日本 \"'"]  # text that is no valid UTF-8 among them
    named = numbers(features).replace(feature_names=names)
    fitted(named, MLPNodeClassifier).save(tmp_path / "named")
    content = (tmp_path / "named" / "features.json").read_bytes()
    assert TrainedFeatures.from_content(content) == TrainedFeatures(None, tuple(names))
    assert saved_recipe(tmp_path / "named") is None
    pprop.load(tmp_path / "named", graph=named)
    fitted(named.replace(feature_names=None), MLPNodeClassifier).save(tmp_path / "named", overwrite=True)
    assert not (tmp_path / "named" / "features.json").exists()
    pprop.load(tmp_path / "named", graph=named)


def test_a_table_without_features_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{i},n{(i + 3) % N}\n" for i in range(N)))
    (tmp_path / "nodes.csv").write_text("id\n" + "".join(f"n{i}\n" for i in range(N)))
    source = GraphSource("edges", {"path": tmp_path / "edges.csv", "nodes": tmp_path / "nodes.csv"})
    graph = source.read()
    assert (graph.features, graph.feature_names) == (None, None)
    model = LabelPropagationClassifier(graph).fit(np.arange(9), LABELS[:9])
    model.save(tmp_path / "model", source=source)
    assert np.array_equal(pprop.load(tmp_path / "model").logits_, model.logits_)


RECIPE: dict[str, Any] = {"version": 1, "columns": [], "others": []}
NUMBER = {"name": "a", "kind": "number", "parameters": {"fill": 0.0, "missing": 0, "comma": False}}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", r"features\.json is no valid JSON"),
        (b"\xff\xfe", r"features\.json is no valid JSON"),
        (b"[" * 100_000, r"features\.json is no valid JSON"),
        (b'{"names": null, "names": null, "recipe": null}', r"features\.json is no valid JSON"),
        (b"[]", r"features\.json does not have a recipe and names"),
        (b'{"names": ["a", "b"]}', r"features\.json does not have a recipe and names"),
        ({"names": ["a", "b"], "recipe": None, "run": "rm"}, r"features\.json does not have a recipe and names"),
        ({"names": None, "recipe": None}, r"features\.json has None as names"),
        ({"names": "ab", "recipe": None}, r"features\.json has 'ab' as names"),
        ({"names": {"a": 1, "b": 2}, "recipe": None}, r"features\.json has .* as names"),
        ({"names": ["a", 2], "recipe": None}, r"features\.json has .* as names"),
        ({"names": ["a"], "recipe": None}, r"features\.json has 1 feature\b"),
        ({"names": ["a", "b", "c"], "recipe": None}, r"features\.json has 3 features"),
        ({"names": None, "recipe": 3}, "the recipe"),
        ({"names": None, "recipe": RECIPE | {"version": 2}}, "the version of recipes that this pprop reads"),
        ({"names": None, "recipe": RECIPE | {"columns": [NUMBER, NUMBER]}}, "'a' twice"),
        ({"names": None, "recipe": RECIPE | {"columns": [NUMBER]}}, r"features\.json has 1 feature\b"),
        ({"names": None, "recipe": RECIPE | {"columns": [NUMBER | {"kind": "pickle"}]}}, "'pickle'"),
        ({"names": None, "recipe": RECIPE | {"columns": [NUMBER | {"parameters": {"fill": "x"}}]}}, "the recipe"),
        ({"names": None, "recipe": RECIPE}, r"features\.json has no features"),
    ],
)
def test_features_that_do_not_fit_are_refused(tmp_path: Path, content: Any, what: str) -> None:
    graph = numbers(np.random.default_rng(0).normal(size=(N, 2)))
    fitted(graph, MLPNodeClassifier).save(tmp_path / "model")
    written = content if isinstance(content, bytes) else json.dumps(content).encode()
    put_features(tmp_path / "model", written)
    for use in (lambda path: pprop.load(path, graph=graph), saved_recipe):
        with pytest.raises(FormatError, match=f"is damaged: .*{what}"):
            use(tmp_path / "model")


def test_features_that_are_changed_missing_or_new_are_refused(trained: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    trained.save(folder)
    content = (folder / "features.json").read_bytes()
    digit = next(at for at, byte in enumerate(content) if chr(byte) == "1")
    (folder / "features.json").write_bytes(content[:digit] + b"9" + content[digit + 1 :])
    for use in (lambda path: pprop.load(path, graph=trained.graph_), saved_recipe):
        with pytest.raises(FormatError, match=r"is damaged: features\.json is not the file .* its SHA-256 differs"):
            use(folder)
    (folder / "features.json").unlink()
    for use in (lambda path: pprop.load(path, graph=trained.graph_), saved_recipe):
        with pytest.raises(FormatError, match=r"is damaged: features\.json cannot be read \(No such file"):
            use(folder)
    (folder / "features.json").write_bytes(content)
    pprop.load(folder, graph=trained.graph_)
    edit(folder, lambda manifest: manifest.update(features=None))
    with pytest.raises(FormatError, match=r"features\.json is not the file that the manifest describes"):
        saved_recipe(folder)
    edit(folder, lambda manifest: manifest.pop("features"))
    with pytest.raises(FormatError, match=r"manifest\.json lacks 'features'"):
        saved_recipe(folder)


def test_features_of_version_2_which_had_no_digest_are_read_with_a_warning(trained: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    trained.save(folder)
    edit(folder, lambda manifest: (manifest.update(format_version=2), manifest.pop("features")))
    with pytest.warns(UserWarning, match=r"has format version 2, without a digest of features\.json"):
        model = pprop.load(folder, graph=trained.graph_)
    assert np.array_equal(model.logits_, trained.logits_)
    model.save(folder, overwrite=True)
    pprop.load(folder, graph=trained.graph_)  # without a warning, which would be an error
    assert json.loads((folder / "manifest.json").read_bytes())["format_version"] == 3


def test_only_a_regular_file_of_features_is_read(tmp_path: Path) -> None:
    graph = numbers(np.random.default_rng(0).normal(size=(N, 2)))
    fitted(graph, MLPNodeClassifier).save(tmp_path / "model")
    file = tmp_path / "model" / "features.json"
    with file.open("ab") as stream:
        stream.truncate(2**40)  # a hole, which takes no room on the disk
    with pytest.raises(FormatError, match=r"features\.json cannot be read \(it has more than 67108864 bytes\)"):
        pprop.load(tmp_path / "model", graph=graph)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(FormatError, match=r"features\.json cannot be read \(it is not a regular file\)"):
        pprop.load(tmp_path / "model", graph=graph)
    file.unlink()
    file.symlink_to("nowhere")
    with pytest.raises(FormatError, match=r"features\.json cannot be read \(No such file or directory\)"):
        pprop.load(tmp_path / "model", graph=graph)
