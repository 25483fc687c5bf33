"""Users' experiment files: what they say counts, not their bytes, and no merge is refused for them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pprop import InputError
from pprop._errors import FormatError
from pprop.study.experiment_folder import experiments_of, files_of, keep_experiment, load_experiments
from pprop.study.store.merge import merge_studies
from pprop.study.store.pack import pack_study
from pprop.study.store.row import example_row
from pprop.study.store.store import Store

TEXT = 'title = "Mine"\nshows = "accuracy"\nmodel = "mlp"\ndataset = "citeseer"\nn_inits = 1\n'
RETOLD = TEXT.replace('"Mine"', '"Ours"  # a comment').replace('"mlp"\n', '"mlp"\ngroups = ["few"]\nn_splits = 20\n')
CHANGES = (
    ("n_inits = 1", "n_inits = 2"),
    ("n_inits", "n_splits"),
    ('"mlp"', '"gcn"'),
    ('"accuracy"', '"search"'),
    ("n_inits = 1\n", "n_inits = 1\npublished = { accuracy = 60 }\n"),
)


def study(folder: Path, text: str, split: int = 5, name: str = "mine.toml") -> Path:
    """Return a study of one row, with one experiment file."""
    with Store.open(folder, create=True) as store:
        store.add(example_row(split))
    (folder / "experiments").mkdir()
    (folder / "experiments" / name).write_text(text, encoding="utf-8")
    return folder


def test_an_edited_comment_or_title_does_not_stop_a_study(tmp_path: Path):
    mine = tmp_path / "mine.toml"
    mine.write_text(TEXT)
    keep_experiment(mine, tmp_path / "study")
    mine.write_text(RETOLD)
    keep_experiment(mine, tmp_path / "study")
    assert files_of(tmp_path / "study") == {"mine.toml": TEXT.encode()}


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_file_that_says_something_else_is_refused_for_a_run(tmp_path: Path, old: str, new: str):
    mine = tmp_path / "mine.toml"
    mine.write_text(TEXT)
    keep_experiment(mine, tmp_path / "study")
    mine.write_text(TEXT.replace(old, new))
    with pytest.raises(InputError, match="this study has another experiment 'mine'"):
        keep_experiment(mine, tmp_path / "study")
    assert files_of(tmp_path / "study") == {"mine.toml": TEXT.encode()}


def test_the_name_of_an_experiment_of_the_paper_is_taken(tmp_path: Path):
    quick = tmp_path / "quick.toml"
    quick.write_text(TEXT)
    with pytest.raises(InputError, match="pprop has another experiment 'quick'"):
        keep_experiment(quick, tmp_path / "study")


def test_a_merge_takes_files_that_say_the_same_once(tmp_path: Path):
    folders = [study(tmp_path / "a", TEXT, 5), study(tmp_path / "b", RETOLD, 6)]
    merged = merge_studies(folders, tmp_path / "out")
    assert (merged.rows, merged.sound) == (2, True)
    assert files_of(tmp_path / "out") == {"mine.toml": TEXT.encode()}


def test_a_merge_keeps_both_of_two_files_that_differ(tmp_path: Path):
    other = TEXT.replace("n_inits = 1", "n_inits = 3")
    folders = [study(tmp_path / "a", TEXT, 5), study(tmp_path / "b", other, 6)]
    for _ in range(2):  # merging once more changes nothing
        merged = merge_studies(folders, tmp_path / "out")
        assert (merged.rows, merged.sound) == (2, True)
        assert files_of(tmp_path / "out") == {"mine.toml": TEXT.encode(), "mine_2.toml": other.encode()}
    assert experiments_of(tmp_path / "out")["mine_2"].n_inits == 3


def test_a_merge_does_not_hide_an_experiment_of_the_paper(tmp_path: Path):
    merge_studies([study(tmp_path / "a", TEXT, name="quick.toml")], tmp_path / "out")
    assert files_of(tmp_path / "out") == {"quick_2.toml": TEXT.encode()}
    assert experiments_of(tmp_path / "out")["quick"] == load_experiments()["quick"]


def test_a_file_that_cannot_be_read_costs_no_rows_and_is_named(tmp_path: Path):
    merged = merge_studies([study(tmp_path / "a", TEXT + "nonsense = 3\n")], tmp_path / "out")
    assert (merged.rows, merged.sound) == (1, False)
    assert "mine.toml was left out. mine.toml, line 6: unknown key 'nonsense'" in str(merged.sources[0].problem)
    assert files_of(tmp_path / "out") == {}


def test_a_packed_study_brings_its_files_along(tmp_path: Path):
    folder, file = study(tmp_path / "a", TEXT), tmp_path / "study.pack"
    with Store.open(folder) as store:
        pack_study(store, file)
    merge_studies([file], tmp_path / "out")
    assert files_of(tmp_path / "out") == files_of(folder)


def test_a_packed_file_writes_into_the_study_alone(tmp_path: Path):
    folder, file = study(tmp_path / "a", TEXT), tmp_path / "study.pack"
    with Store.open(folder) as store:
        pack_study(store, file)
    source = sqlite3.connect(file)
    with source:
        source.execute("UPDATE experiments SET file = '../../mine.toml'")
    source.close()
    merge_studies([file], tmp_path / "b" / "out")
    assert list(files_of(tmp_path / "b" / "out")) == ["mine.toml"]
    assert not list(tmp_path.glob("*.toml"))


def test_a_file_packed_before_there_were_experiments_is_refused(tmp_path: Path):
    folder, file = study(tmp_path / "a", TEXT), tmp_path / "study.pack"
    with Store.open(folder) as store:
        pack_study(store, file)
    source = sqlite3.connect(file)
    with source:
        source.execute("DROP TABLE experiments")
    source.close()
    with pytest.raises(FormatError, match="is no packed study"):
        merge_studies([file], tmp_path / "out")
