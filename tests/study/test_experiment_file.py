from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pprop._errors import FormatError, InputError
from pprop.datasets import VALIDATION_SEEDS
from pprop.study.experiment import Published, read_experiment
from pprop.study.experiment_folder import load_experiments

SOUND = """\
title = "Mine"
shows = "accuracy"
model = "appnp"
dataset = "citeseer"
splits = "validation"
n_splits = 3
n_inits = 2
alone = true
per_class = 5
groups = ["mine", "few"]

[settings]
alpha = 0.2

[published]
accuracy = 75
p_f1 = 1e-3
"""
FIGURE = 'title = "Mine"\nshows = "alpha"\ndataset = "citeseer"\n'  # three lines


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(FormatError) as caught:
        read_experiment(write(folder, text))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_everything_in_a_file_arrives(tmp_path: Path):
    experiment = read_experiment(write(tmp_path, SOUND))
    assert (experiment.name, experiment.title, experiment.shows) == ("mine", "Mine", "accuracy")
    assert (experiment.n_splits, experiment.n_inits, experiment.alone) == (3, 2, True)
    assert experiment.groups == ("mine", "few")
    assert experiment.published == Published(accuracy=75.0, p_f1=1e-3)
    (point,) = experiment.points
    assert (point.at, point.cell.splits, point.cell.per_class) == ({}, "validation", 5)
    assert point.cell.settings["alpha"] == 0.2
    assert len(experiment.seeds()) == 6


def test_no_more_runs_are_made_than_asked_for(tmp_path: Path):
    experiment = replace(read_experiment(write(tmp_path, SOUND)), n_inits=10**15)  # of all there would be no end
    assert [(seeds.split, seeds.init) for seeds in experiment.seeds(runs=4)] == [
        *((split, 0) for split in VALIDATION_SEEDS[:3]),
        (VALIDATION_SEEDS[0], 1),
    ]
    assert len(replace(experiment, n_inits=2).seeds(runs=10**30)) == 6


def test_a_grid_is_the_product_of_its_axes(tmp_path: Path):
    text = FIGURE + '[settings]\ndropout = 0.2\n[grid]\nmodel = ["appnp", "mlp"]\nper_class = [5, 10]\npenalty = [0, 1]'
    points = read_experiment(write(tmp_path, text)).points
    assert [tuple(point.at.values()) for point in points] == [
        (model, size, penalty) for model in ("appnp", "mlp") for size in (5, 10) for penalty in (0.0, 1.0)
    ]
    for point in points:
        cell = point.cell
        expected = {"model": cell.model, "per_class": cell.per_class, "penalty": cell.settings["penalty"]}
        assert point.at == expected
        assert cell.settings["dropout"] == 0.2


def test_a_point_overrides_what_holds_for_all(tmp_path: Path):
    text = FIGURE + 'model = "appnp"\nsettings = { dropout = 0.2, steps = 5 }\n'
    text += '[[points]]\nat = { kind = "a" }\nsettings = { steps = 3 }\n'
    text += '[[points]]\nat = { kind = "b" }\ndataset = "pubmed"\nper_class = 4\n'
    first, second = read_experiment(write(tmp_path, text)).points
    assert (first.at, first.cell.settings["steps"], first.cell.settings["dropout"]) == ({"kind": "a"}, 3, 0.2)
    assert (second.cell.dataset, second.cell.per_class, second.cell.settings["steps"]) == ("pubmed", 4, 5)


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path):
    write(tmp_path, SOUND, "b.toml")
    write(tmp_path, SOUND, "a.toml")
    assert list(load_experiments(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("model =", "modle =", 3, "unknown key 'modle'. Did you mean 'model'?"),
        ("alpha =", "alhpa =", 13, "unknown setting 'alhpa' of appnp. Did you mean 'alpha'?"),
        ("alpha =", "heads =", 13, "unknown setting 'heads' of appnp."),
        ("p_f1 =", "pf1 =", 17, "unknown key 'pf1' of published. Did you mean 'p_f1'?"),
        ('"appnp"', '"apnp"', 3, "unknown model 'apnp'. Did you mean 'appnp'?"),
        ('"appnp"', "7", 3, "unknown model 7. Known are: appnp, ppnp, mlp, "),
        ('"citeseer"', '"cite_seer"', 4, "unknown dataset 'cite_seer'. Did you mean 'citeseer'?"),
        ('"citeseer"', '["citeseer"]', 4, "unknown dataset ['citeseer']. Known are: citeseer, cora_ml, "),
        ('"validation"', '"valid"', 5, "one of 'test' or 'validation'. Got 'valid' instead."),
        ('"accuracy"', '"acuracy"', 2, "The 'shows' parameter of an experiment must be one of 'accuracy', 'time'"),
        ("n_splits = 3", "n_splits = 1001", 6, "must be an integer from 1 to 1000. Got 1001 instead."),
        ("n_inits = 2", "n_inits = 2.0", 7, "must be an integer from 1 to"),
        ("alone = true", "alone = 1", 8, "must be True or False. Got 1 instead."),
        ("n_inits = 2", "n_inits = 1001", 7, "must be an integer from 1 to 1000. Got 1001 instead."),
        ("per_class = 5", "per_class = 0", 9, "must be an integer from 1 to 1000000. Got 0 instead."),
        ("per_class = 5", "per_class = 10_000_000", 9, "must be an integer from 1 to 1000000. Got 10000000 instead."),
        (
            "alpha = 0.2",
            f"max_epochs = {10**26}",
            13,
            "The 'max_epochs' parameter of appnp must be an integer of at most 1000000.",
        ),
        ("alpha = 0.2", f"hidden = [64, {10**12}]", 13, "at most 1000000. Got 1000000000000 instead."),
        ('["mine", "few"]', '["mine", 3]', 10, "The 'groups' parameter of an experiment must be a text. Got 3"),
        ('"Mine"', '" "', 1, "must be a text"),
        ("alpha = 0.2", "alpha = 1.2", 13, "The 'alpha' parameter of appnp must be a float in [0, 1]. Got 1.2"),
        ("alpha = 0.2", "alpha = nan", 13, "must be a float in [0, 1]. Got nan"),
        ("alpha = 0.2", 'alpha = "0.2"', 13, "must be a float in [0, 1]. Got '0.2'"),
        (
            "alpha = 0.2",
            'steps = "limit"\nalpha = 0\nnormalization = "col"',
            15,
            "known for normalization = 'sym' alone",
        ),
        ("accuracy = 75", "accuracy = 175", 16, "must be a float in [0, 100]. Got 175 instead."),
        ("[settings]\nalpha = 0.2", "settings = 3", 12, "'settings' must be a table. Got 3 instead."),
        ('title = "Mine"\n', "", 1, "the key 'title' is missing."),
        ('model = "appnp"\n', "", 1, "the key 'model' is missing."),
        ("[published]", "[published", 15, "no TOML. "),
        ("[settings]", "[settings]\nalpha = 0.1", 14, "no TOML. "),
        ("p_f1 = 1e-3\n", 'p_f1 = """', 17, "no TOML. Unterminated string."),
    ],
)
def test_a_fault_is_named_with_file_and_line(tmp_path: Path, old: str, new: str, line: int, words: str):
    assert old in SOUND
    message = refusal(tmp_path, SOUND.replace(old, new))
    assert message.startswith(f"mine.toml, line {line}: ")
    assert words in message


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('model = "appnp"\n[grid]\nalpha = []', 6, "the grid of 'alpha' is empty."),
        ('model = "appnp"\n[grid]', 5, "the grid is empty."),
        ('model = "appnp"\n[grid]\nalpha = 0.1', 6, "the grid of 'alpha' must be a list. Got 0.1 instead."),
        ('model = "appnp"\n[grid]\nalpha = [0.1,\n 0.2,\n 7]', 8, "must be a float in [0, 1]. Got 7 instead."),
        ('model = "appnp"\n[grid]\nalpha = [0.1, 0.1]', 5, "{'alpha': 0.1} is there twice."),
        ('model = "appnp"\n[grid]\nmodel = ["mlp"]', 6, "'model' is set already, outside the grid."),
        ('[grid]\nmodel = ["appnp",\n"pppnp"]', 6, "unknown model 'pppnp'. Did you mean 'ppnp'?"),
        ('[grid]\nmodel = ["appnp", "gcn"]\nalpha = [0.1]', 6, "unknown setting 'alpha' of gcn."),
        ('model = "mlp"\n[grid]\nalpha = [0.1]', 6, "has no meaning without evaluate = 'propagated'."),
        ('[grid]\nmodels = ["appnp"]', 5, "unknown key 'models' of grid. Did you mean 'model'?"),
        ("[grid]\nalpha = [0.1]", 4, "the key 'model' is missing."),
        ('model = "appnp"\n[grid]\nalhpa = [0.1]', 6, "unknown key 'alhpa' of grid. Did you mean 'alpha'?"),
        ('model = "mlp"\npoints = 3', 5, "points must be written as tables under [[points]]."),
        ('model = "mlp"\n[[points]]\nat = {}', 6, "'at' must name numbers or words"),
        ('model = "mlp"\n[[points]]\nsettings = {}', 5, "a point needs 'at'"),
        ('model = "mlp"\n[[points]]\nat = {x = 1}\n[[points]]\nat = {x = 1}', 7, "{'x': 1} is there twice."),
        ('model = "mlp"\n[[points]]\nat = {x = 1}\nmodle = 1', 7, "unknown key 'modle' of points."),
        ('model = "mlp"\n[[points]]\nat = {x = 1}\nsettings = { hiden = 1 }', 7, "Did you mean 'hidden'?"),
        ('model = "appnp"\n[grid]\nalpha = [0.1]\n[[points]]\nat = {alpha = 0.1}', 7, "{'alpha': 0.1} is there twice."),
    ],
)
def test_a_fault_in_a_figure_is_named_with_file_and_line(tmp_path: Path, text: str, line: int, words: str):
    message = refusal(tmp_path, FIGURE + text)
    assert message.startswith(f"mine.toml, line {line}: ")
    assert words in message


def test_points_may_stand_beside_a_grid(tmp_path: Path):
    text = 'model = "appnp"\n[grid]\nalpha = [0.1, 0.2]\n[[points]]\nat = {alpha = 0.2, steps = 5}\nsettings = {alpha = 0.2, steps = 5}'
    (tmp_path / "mine.toml").write_text(FIGURE + text)
    points = read_experiment(tmp_path / "mine.toml").points
    assert [dict(point.at) for point in points] == [{"alpha": 0.1}, {"alpha": 0.2}, {"alpha": 0.2, "steps": 5}]
    assert [point.cell.settings["steps"] for point in points] == [10, 10, 5]


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent\.toml cannot be read: No such file or directory"):
        read_experiment(tmp_path / "absent.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"title = \xff")
    with pytest.raises(FormatError, match=r"mine\.toml: no TOML\. Byte 8 is not UTF-8"):
        read_experiment(path)


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "9" * 5000])
def test_values_that_no_experiment_has_are_no_traceback(tmp_path: Path, value: str) -> None:
    (tmp_path / "deep.toml").write_text(f"title = {value}")
    with pytest.raises(FormatError, match=r"deep.toml: no experiment. A value is nested too deeply or too long."):
        read_experiment(tmp_path / "deep.toml")


def test_only_regular_files_of_a_sensible_size_are_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    os.mkfifo(file)
    with pytest.raises(InputError, match=r"mine.toml cannot be read: it is not a regular file."):
        read_experiment(file)
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"mine.toml cannot be read: it is not a regular file."):
        read_experiment(file)
    file.unlink()
    with file.open("wb") as stream:
        stream.truncate(2**40)  # a hole, which takes no room on the disk
    with pytest.raises(InputError, match=r"mine.toml cannot be read: it has more than 1048576 bytes."):
        read_experiment(file)
