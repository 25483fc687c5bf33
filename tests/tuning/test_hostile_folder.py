"""A folder of a search that is hostile, damaged or cannot be written ends in a sentence, never in a wait."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pprop import CapacityError, FormatError, Graph, InputError, Range, tune

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sound(graph: Graph, labelled: Any, quick_search: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "search"
    tune(graph, *labelled, **{**quick_search, "trials": 1}, folder=folder)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy of a folder of one trial, to be damaged."""
    return shutil.copytree(sound, tmp_path / "search")


def refuse(sentence: str, graph: Graph, labelled: Any, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=sentence):
        tune(graph, *labelled, **arguments)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tuning.json", r"must be a folder that can be written. Got '.*search' instead \(it is not a regular file\)"),
        ("trials.sqlite3", r"is damaged: trials.sqlite3 is not a regular file. Choose another folder."),
    ],
)
def test_only_regular_files_are_read(
    graph: Graph, labelled: Any, quick: dict[str, Any], folder: Path, name: str, sentence: str
) -> None:
    quick["folder"] = folder
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refuse(sentence, graph, labelled, quick, InputError)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    refuse(sentence, graph, labelled, quick, InputError)


@pytest.mark.parametrize("name", ["tuning.json", "trials.sqlite3", ".lock", "best.json"])
def test_a_folder_in_the_place_of_a_file_is_a_sentence(
    graph: Graph, labelled: Any, quick: dict[str, Any], folder: Path, name: str
) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    sentence = "folder that can be written. Got .*Is a directory|is damaged: trials.sqlite3 is not a regular file"
    refuse(sentence, graph, labelled, {**quick, "folder": folder}, InputError)


def test_a_lock_that_is_a_pipe_is_not_waited_for(
    graph: Graph, labelled: Any, quick: dict[str, Any], folder: Path
) -> None:
    (folder / ".lock").unlink()
    os.mkfifo(folder / ".lock")
    assert len(tune(graph, *labelled, **quick, folder=folder).trials) == 4


@pytest.mark.parametrize("content", [b"[" * 100_000, b"[" * 900 + b"]" * 900, b'{"format": 1, "format": 2}'])
def test_a_description_that_is_no_json_is_refused(
    graph: Graph, labelled: Any, quick: dict[str, Any], folder: Path, content: bytes
) -> None:
    (folder / "tuning.json").write_bytes(content)
    sentence = r"is damaged: tuning.json is no valid JSON"
    refuse(sentence, graph, labelled, {**quick, "folder": folder}, FormatError)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DELETE FROM trial_user_attributes", "lacks its settings or its scores. Choose another folder."),
        ("DELETE FROM trial_params", "lacks its settings or its scores. Choose another folder."),
        ("UPDATE trial_params SET param_value = 99", "trials.sqlite3 holds trials that cannot be read. Choose another"),
        ("UPDATE trial_params SET distribution_json = '['", "trials.sqlite3 holds trials that cannot be read"),
    ],
)
def test_trials_that_lack_something_are_refused(
    graph: Graph, labelled: Any, quick: dict[str, Any], folder: Path, statement: str, sentence: str
) -> None:
    with sqlite3.connect(folder / "trials.sqlite3") as connection:
        connection.execute(statement)
    connection.close()
    refuse(sentence, graph, labelled, {**quick, "folder": folder}, FormatError)


@pytest.mark.parametrize("name", ["file/search", "x" * 300])
def test_a_folder_that_cannot_be_made_is_a_sentence(
    graph: Graph, labelled: Any, quick: dict[str, Any], tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("precious")
    sentence = r"The 'folder' parameter of tune must be a folder that can be written. Got '.*' instead \(.+\)\."
    refuse(sentence, graph, labelled, {**quick, "folder": tmp_path / name}, InputError)


def test_a_folder_with_a_null_character_is_no_path(graph: Graph, labelled: Any, quick: dict[str, Any]) -> None:
    refuse(
        "The 'folder' parameter of tune must be a path. Got", graph, labelled, {**quick, "folder": "a\0"}, InputError
    )


def test_integers_beyond_any_float_are_no_range_and_no_size(graph: Graph, labelled: Any, quick: dict[str, Any]) -> None:
    for low, high in ((1, 10**400), (-(10**5000), 1)):
        with pytest.raises(InputError, match=r"parameter of Range must be a finite number"):
            Range(low, high)
    quick["space"] = {"max_epochs": 2, "hidden": [10**400]}
    sentence = "One run needs more than 1152921504606846976 TiB on cpu .* Use a smaller 'hidden'"
    refuse(sentence, graph, labelled, quick, CapacityError)
    quick["space"] = {"hidden": [4], "max_epochs": 10**400}
    refuse(r"\(curves more than .* Use a smaller 'max_epochs', or a machine", graph, labelled, quick, CapacityError)


def test_patience_beyond_64_bits_is_never_spent(graph: Graph, labelled: Any, quick: dict[str, Any]) -> None:
    quick["space"] = {"hidden": [4], "max_epochs": 2}
    patient = tune(graph, *labelled, **{**quick, "space": {**quick["space"], "patience": 10**400}})
    plain = tune(graph, *labelled, **{**quick, "space": {**quick["space"], "patience": 2}})
    assert [trial.scores for trial in patient.trials] == [trial.scores for trial in plain.trials]
