"""A damaged, foreign or newer folder is refused with a sentence, and saving leaves all or nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.estimators.folders import edit, put_tensors, put_weights

import pprop
from pprop import (
    APPNPClassifier,
    APPNPEnsembleClassifier,
    BootstrappedFPClassifier,
    CapacityError,
    FormatError,
    Graph,
    InputError,
    JKClassifier,
    MLPNodeClassifier,
)
from pprop.estimators import saving

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 3, "random_state": 0, "backend": "reference"}


@pytest.fixture(scope="module")
def model(graph: Graph, nodes: Any, animals: Any) -> APPNPClassifier:
    return APPNPClassifier(graph, **QUICK).fit(nodes, animals)


@pytest.fixture
def folder(model: APPNPClassifier, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def set_key(section: str, key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda manifest: manifest[section].update({key: value})


def drop(*path: str) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        for key in path[:-1]:
            manifest = manifest[key]
        del manifest[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (drop("model"), "manifest.json lacks 'model'"),
        (drop("model", "class"), "manifest.json lacks 'class' under 'model'"),
        (drop("classes", "values"), "manifest.json lacks 'values' under 'classes'"),
        (drop("graph", "fingerprint"), "manifest.json lacks 'fingerprint' under 'graph'"),
        (drop("training", "epochs"), "manifest.json lacks 'epochs' under 'training'"),
        (drop("weights"), "manifest.json lacks 'weights'"),
        (drop("accuracy"), "manifest.json lacks 'accuracy'"),
        (drop("settings", "alpha"), "the setting 'alpha' is missing or unknown"),
        (set_key("settings", "spin", 3), "the setting 'spin' is missing or unknown"),
        (set_key("settings", "steps", "ten"), "a setting is impossible .*'steps' .* Got 'ten' instead"),
        (set_key("model", "alpha", 7.0), "a setting is impossible .*'alpha' .* Got 7.0 instead"),
        (set_key("model", "class", "Oracle"), "there is no model class 'Oracle'"),
        (set_key("model", "class", 3), "manifest.json has 3 as 'class' under 'model'"),
        (set_key("model", "alpha", True), "manifest.json has True as 'alpha' under 'model'"),
        (set_key("classes", "kind", "float"), "manifest.json has 'float' as 'kind' under 'classes'"),
        (set_key("classes", "values", ["a", 1]), "manifest.json has .* as 'values' under 'classes'"),
        (set_key("classes", "values", ["ant", "bee", "bee\0"]), "manifest.json has .* as 'values' under 'classes'"),
        (set_key("classes", "values", ["b", "a"]), "manifest.json has .* as 'values' under 'classes'"),
        (lambda m: m.update(classes={"kind": "int", "values": [1, 2**70]}), "as 'values' under 'classes'"),
        (set_key("graph", "feature_shape", ["wide"]), "as 'feature_shape' under 'graph'"),
        (set_key("training", "seed", 0.5), "manifest.json has 0.5 as 'seed' under 'training'"),
        (lambda m: m.update(settings=[]), "manifest.json has .* as 'settings'"),
        (lambda m: m.update(accuracy="good"), "manifest.json has 'good' as 'accuracy'"),
        (lambda m: m.update(format_version="one"), "its format version is 'one'"),
        (lambda m: m.update(format_version=0), "its format version is 0"),
        (set_key("classes", "values", ["ant", "bee"]), r"'layer1' is float32 of shape \(8, 3\), where the settings"),
        (set_key("settings", "hidden", 9), r"'layer0' is float32 of shape \(40, 8\), where the settings would have"),
        (set_key("settings", "hidden", [8, 8]), "the weight 'layer2' is missing in weights.safetensors"),
        (set_key("settings", "hidden", []), "the weight 'layer1' is unknown to the settings"),
        (set_key("settings", "steps", 10**9), r"'steps' .* integer from 0 to 10000. Got 1000000000 instead"),
        (
            set_key("settings", "hidden", 2**63),
            r"where the settings would have float32 of shape \(40, 9223372036854775808",
        ),
        (set_key("settings", "hidden", 10**400), r"where the settings would have float32 of shape \(40, 10000000000"),
        (set_key("settings", "penalty", 10**400), r"a setting is impossible .*'penalty' .* Got 10000000000"),
        (set_key("model", "alpha", 10**400), "manifest.json has 1000000.* as 'alpha' under 'model'"),
        (set_key("training", "seconds", -(10**400)), "manifest.json has -1000000.* as 'seconds' under 'training'"),
        (lambda m: m.update(accuracy=93.0), "manifest.json has 93.0 as 'accuracy'"),
        (lambda m: m.update(accuracy=10**400), "manifest.json has 1000000.* as 'accuracy'"),
        (set_key("weights", "sha256", "0" * 64), "is not the file that the manifest describes, its SHA-256 differs"),
    ],
)
def test_a_damaged_manifest_is_refused(graph: Graph, folder: Path, change: Any, what: str) -> None:
    edit(folder, change)
    with pytest.raises(FormatError, match=f"The model in '.*model' is damaged: .*{what}"):
        pprop.load(folder, graph=graph)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"\xff\xfe", b'{"format": "pprop-model"', b"[" * 100_000),
        *(b"[" * depth + b"]" * depth for depth in (50, 500, 900)),
        *(b'{"accuracy": %s}' % constant for constant in (b"NaN", b"Infinity", b"-Infinity")),
        b'{"settings": {"steps": 3, "steps": 4}}',
    ],
)
def test_a_manifest_that_is_no_json_is_refused(graph: Graph, folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(
        FormatError, match=r"is damaged: manifest.json is no valid JSON. Save it again, or use another copy."
    ):
        pprop.load(folder, graph=graph)


def test_a_manifest_that_no_memory_holds_is_refused(graph: Graph, folder: Path) -> None:
    with (folder / "manifest.json").open("ab") as stream:
        stream.truncate(2**40)  # a hole, which takes no room on the disk
    with pytest.raises(FormatError, match=r"manifest.json cannot be read \(it has more than 67108864 bytes\)"):
        pprop.load(folder, graph=graph)


@pytest.mark.parametrize("name", ["manifest.json", "weights.safetensors"])
def test_only_regular_files_are_read(graph: Graph, folder: Path, name: str) -> None:
    file = folder / name
    content = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    complaint = rf"is damaged: {name} cannot be read \(it is not a regular file\). Save it again, or use another copy."
    with pytest.raises(FormatError, match=complaint):
        pprop.load(folder, graph=graph)
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(FormatError, match=complaint):
        pprop.load(folder, graph=graph)
    file.unlink()
    file.mkdir()
    with pytest.raises(FormatError, match=rf"is damaged: {name} cannot be read \(Is a directory\)"):
        pprop.load(folder, graph=graph)
    file.rmdir()
    (folder / "elsewhere").write_bytes(content)
    file.symlink_to("elsewhere")  # to a regular file: how many tools keep large files
    assert pprop.load(folder, graph=graph).n_iter_ == 3


def test_weights_that_no_memory_holds_are_refused(graph: Graph, folder: Path) -> None:
    with (folder / "weights.safetensors").open("ab") as stream:
        stream.truncate(2**43)
    with pytest.raises(
        CapacityError, match=r"Loading '.*weights.safetensors' takes 17592.2 GB, and this process may use"
    ):
        pprop.load(folder, graph=graph)


@pytest.mark.parametrize(("setting", "value"), [("members", 10**9), ("rounds", 10**400)])
def test_members_that_have_no_weights_are_not_waited_for(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path, setting: str, value: int
) -> None:
    ensemble = APPNPEnsembleClassifier(graph, members=1, rounds=1, **QUICK).fit(nodes, animals)
    ensemble.save(tmp_path / "model")
    edit(tmp_path / "model", set_key("settings", setting, value))
    with pytest.raises(FormatError, match=r"the weight 'member2.layer0' is missing in weights.safetensors"):
        pprop.load(tmp_path / "model", graph=graph)


@pytest.mark.parametrize(("kind", "setting"), [(JKClassifier, "layers"), (BootstrappedFPClassifier, "steps")])
def test_layers_and_steps_are_bounded(graph: Graph, nodes: Any, kind: Any, setting: str) -> None:
    """A saved model makes them all when it is loaded; one that cannot be loaded cannot be fitted either."""
    with pytest.raises(InputError, match=rf"The '{setting}' parameter .* to 10000. Got 1000000000 instead"):
        kind(graph, **{setting: 10**9}).fit(nodes, nodes % 2)


def test_the_graph_of_the_manifest_must_have_its_features(graph: Graph, model: APPNPClassifier, tmp_path: Path) -> None:
    pprop.write_npz(graph, tmp_path / "zoo.npz")
    model.save(tmp_path / "model", source=pprop.GraphSource("npz", {"path": tmp_path / "zoo.npz"}))
    edit(tmp_path / "model", set_key("graph", "feature_shape", [41]))
    put_tensors(tmp_path / "model", lambda t: t.update({"weights.layer0": np.zeros((41, 8), np.float32)}))
    with pytest.raises(InputError, match=r"a graph with 41 features per node, .* Got one with 40 features instead"):
        pprop.load(tmp_path / "model")


def test_every_missing_key_of_the_manifest_is_a_sentence(graph: Graph, folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    manifest = json.loads(text)
    unread = {"written", "versions"} | {("model", "parameters"), ("weights", "file")}
    unread |= {("features", "file")} | {("graph", key) for key in ("nodes", "edges", "directed")}
    unread |= {("settings", key) for key in ("mixed_precision", "block_nodes", "first_layer", "neighbours")}  # later
    unread |= {"scoring", "threshold", ("training", "stopping_score")}  # later, too
    unread |= {("settings", key) for key in ("scoring", "positive", "threshold")}
    paths = [(key,) for key in manifest if key not in {"format", "format_version", *unread}]
    paths += [
        (a, b) for a, section in manifest.items() if isinstance(section, dict) and a not in unread for b in section
    ]
    for path in paths:
        if path in unread:
            continue
        (folder / "manifest.json").write_text(text)
        edit(folder, drop(*path))
        with pytest.raises(FormatError, match="is damaged"):
            pprop.load(folder, graph=graph)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.pop("weights.layer0"), "the weight 'layer0' is missing in weights.safetensors"),
        (lambda t: t.update({"weights.layer9": np.zeros(2)}), "the weight 'layer9' is unknown to the settings"),
        (lambda t: t.update({"weights.layer1": np.zeros((3, 8), np.float32)}), r"float32 of shape \(3, 8\), where the"),
        (lambda t: t.update({"weights.layer1": np.zeros((8, 3))}), r"'layer1' is float64 of shape \(8, 3\), where the"),
        (lambda t: t["weights.layer0"].__setitem__((0, 0), np.nan), "the weight 'layer0' holds NaN or infinity"),
        (lambda t: t["weights.layer1"].__setitem__((7, 2), -np.inf), "the weight 'layer1' holds NaN or infinity"),
        (lambda t: t["known.nodes"].__setitem__(slice(2), [1, 0]), "labelled nodes that are not in ascending order"),
        (lambda t: t.update({"secret": np.zeros(2)}), "weights.safetensors holds the unknown tensor 'secret'"),
        (lambda t: t.pop("history.train_loss"), "weights.safetensors lacks the curve 'train_loss' of 3 epochs"),
        (lambda t: t.update({"history.stopping_loss": np.zeros(4)}), "lacks the curve 'stopping_loss' of 3 epochs"),
    ],
)
def test_weights_that_do_not_fit_are_refused(graph: Graph, folder: Path, change: Any, what: str) -> None:
    put_tensors(folder, change)
    with pytest.raises(FormatError, match=f"is damaged: .*{what}"):
        pprop.load(folder, graph=graph)


def test_weights_that_are_cut_changed_or_gone_are_refused(graph: Graph, folder: Path) -> None:
    file = folder / "weights.safetensors"
    content = file.read_bytes()
    for broken in (content[:-1], content[: len(content) // 2], b"", content[:-1] + b"?"):
        file.write_bytes(broken)
        with pytest.raises(FormatError, match="its SHA-256 differs"):
            pprop.load(folder, graph=graph)
    for broken in (content[:-1], b"", b"\x00" * 64):
        put_weights(folder, broken)
        with pytest.raises(FormatError, match=r"is damaged: weights.safetensors is no valid safetensors file."):
            pprop.load(folder, graph=graph)
    file.unlink()
    with pytest.raises(
        FormatError, match=r"is damaged: weights.safetensors cannot be read \(No such file or directory\)."
    ):
        pprop.load(folder, graph=graph)


def test_a_foreign_folder_is_refused(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"The folder '.*' holds no pprop model: it has no manifest.json."):
        pprop.load(tmp_path, graph=graph)
    for content in ('{"format": "onnx"}', "[]", '"pprop-model"', "{}"):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(FormatError, match=r"holds no pprop model: its manifest.json is of another format."):
            pprop.load(tmp_path, graph=graph)


@pytest.mark.parametrize(("version", "remedy"), [(1, "Train the model again."), (4, "Install a newer pprop.")])
def test_a_format_that_is_not_read_is_refused_by_name(graph: Graph, folder: Path, version: int, remedy: str) -> None:
    edit(folder, lambda manifest: manifest.update(format_version=version, model=None))
    sentence = rf"has format version {version}, and pprop .* reads versions 2 and 3. {remedy}"
    with pytest.raises(FormatError, match=sentence):
        pprop.load(folder, graph=graph)


def test_a_source_that_cannot_be_understood_is_refused(folder: Path) -> None:
    for source in ({"kind": "pickle", "path": "x"}, {"path": "x"}, {"kind": "npz", "path": "x", "run": "rm"}):
        edit(folder, set_key("graph", "source", source))
        with pytest.raises(FormatError, match=r"The graph's source .* cannot be understood."):
            pprop.load(folder)


@pytest.mark.parametrize("path", ["nowhere", 3])
def test_a_path_that_is_no_folder_is_refused(graph: Graph, path: Any) -> None:
    with pytest.raises(InputError, match=r"The 'path' parameter of load must be .* Got .* instead"):
        pprop.load(path, graph=graph)


def test_a_graph_that_is_no_graph_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"The 'graph' parameter of load must be a Graph or None. Got 'zoo' instead."):
        pprop.load(folder, graph="zoo")  # pyright: ignore[reportArgumentType]


def test_nothing_is_ever_unpickled(graph: Graph, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("unpickling")

    for name in ("pickle.load", "pickle.loads", "pickle.Unpickler", "torch.load"):
        monkeypatch.setattr(name, refuse)
    assert pprop.load(folder, graph=graph).n_iter_ == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"overwrite": 1}, "The 'overwrite' parameter of save must be True or False. Got 1 instead."),
        ({"accuracy": 93.0}, r"The 'accuracy' parameter of save must be a float in \[0, 1\]. Got 93.0 instead."),
        ({"source": "x.npz"}, "The 'source' parameter of save must be a GraphSource or None. Got 'x.npz' instead."),
        ({"path": 3}, "The 'path' parameter of save must be a path. Got 3 instead."),
        (
            {"path": "no/such/model"},
            "The 'path' parameter of save must be a folder in an existing folder. Got .*model' ",
        ),
    ],
)
def test_saving_with_impossible_arguments_is_refused(
    model: APPNPClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence):
        cast("Any", model).save(**{"path": "model", **options})
    assert list(tmp_path.iterdir()) == []


def test_an_existing_model_is_replaced_only_when_asked(
    graph: Graph, nodes: Any, animals: Any, folder: Path, tmp_path: Path
) -> None:
    other = MLPNodeClassifier(graph, **QUICK).fit(nodes, animals)
    with pytest.raises(
        InputError, match=r"must be a new folder. Got .*, a saved model, instead. Pass overwrite=True to"
    ):
        other.save(folder)
    assert isinstance(pprop.load(folder, graph=graph), APPNPClassifier)
    other.save(folder, overwrite=True)
    assert np.array_equal(pprop.load(folder, graph=graph).logits_, other.logits_)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_what_is_not_a_model_is_never_replaced(model: APPNPClassifier, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for name in ("empty", "thesis", "file"):
        for overwrite in (False, True):
            with pytest.raises(
                InputError, match=r"must be a new folder or a pprop model to replace. Got .* which is nei"
            ):
                model.save(tmp_path / name, overwrite=overwrite)
    assert (tmp_path / "thesis" / "thesis.tex").read_text() == (tmp_path / "file").read_text() == "precious"
    (folder / "notes.txt").write_text("precious")
    with pytest.raises(
        InputError, match=r"must be a folder with a pprop model and nothing else. Got .* with 'notes.txt'"
    ):
        model.save(folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "precious"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_while_saving_leaves_what_was_there(
    graph: Graph,
    model: APPNPClassifier,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    error: BaseException,
) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(os, failing, fail)
    expected = InputError if isinstance(error, OSError) else KeyboardInterrupt
    for path in (folder, tmp_path / "new"):
        with pytest.raises(expected):
            model.save(path, overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    monkeypatch.undo()
    assert np.array_equal(pprop.load(folder, graph=graph).logits_, model.logits_)


def test_the_old_model_comes_back_when_the_new_one_cannot_be_renamed(
    model: APPNPClassifier, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    rename = Path.rename

    def fail(self: Path, target: Any) -> Path:
        if self.parent.name.endswith(".part") and self.name == "model":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(InputError, match=r"must be a path that can be written. Got .* instead \(Input/output error\)."):
        model.save(folder, overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_folder_that_cannot_be_written_is_a_sentence(
    model: APPNPClassifier, open_folder: Path, ordinary_user: Callable[[Callable[[], object]], str]
) -> None:
    model.save(open_folder / "model")
    open_folder.chmod(0o555)
    sentence = r"InputError: .*must be a path that can be written. Got .* instead \(Permission denied\)."
    assert re.match(sentence, ordinary_user(lambda: model.save(open_folder / "new")))
    assert re.match(sentence, ordinary_user(lambda: model.save(open_folder / "model", overwrite=True)))
    assert [file.name for file in open_folder.iterdir()] == ["model"]


def test_a_folder_that_this_user_may_not_look_into_is_a_sentence(
    graph: Graph, model: APPNPClassifier, open_folder: Path, ordinary_user: Callable[[Callable[[], object]], str]
) -> None:
    secret = open_folder / "secret"
    secret.mkdir()
    model.save(secret / "model")
    model.save(open_folder / "model")
    (open_folder / "model" / "weights.safetensors").chmod(0)
    secret.chmod(0)
    for action, sentence in (
        (lambda: pprop.load(secret / "model", graph=graph), "'path' parameter of load must be an existing folder"),
        (
            lambda: model.save(secret / "deep" / "new"),
            "'path' parameter of save must be a folder in an existing folder",
        ),
        (
            lambda: pprop.write_npz(graph, secret / "deep" / "g"),
            "'path' parameter of write_npz must be a file in an exi",
        ),
        (
            lambda: pprop.load(open_folder / "model", graph=graph),
            r"weights.safetensors cannot be read \(Permission denied",
        ),
    ):
        assert re.match(f"(InputError|FormatError): .*{sentence}", ordinary_user(action))


def test_a_model_can_be_moved(graph: Graph, model: APPNPClassifier, folder: Path, tmp_path: Path) -> None:
    shutil.move(folder, tmp_path / "elsewhere")
    assert np.array_equal(pprop.load(tmp_path / "elsewhere", graph=graph).logits_, model.logits_)


def test_of_two_models_saved_to_one_folder_at_once_the_later_is_kept_beside_it(
    model: APPNPClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = tmp_path / "model", tmp_path / "model-2"
    true = saving.replaced_folder

    def raced(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(saving, "replaced_folder", true)
        model.save(earlier, accuracy=0.25)  # between the look at the folder and the renaming
        return true(*arguments, **named)

    monkeypatch.setattr(saving, "replaced_folder", raced)
    with pytest.raises(InputError, match=r"model' was not replaced: it appeared .* This result is in '.*model-2'"):
        model.save(earlier, accuracy=0.75)
    accuracies = [json.loads((folder / "manifest.json").read_bytes())["accuracy"] for folder in (earlier, later)]
    assert accuracies == [0.25, 0.75]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "model-2"]
