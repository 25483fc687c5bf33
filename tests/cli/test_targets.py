"""Outputs appear complete or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from pprop.cli.output import Session, new_file, new_folder

NAMES = frozenset({"a.txt"})


def interrupted_file(target: Path) -> None:
    with new_file(target, Session("test"), force=True) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt


def interrupted_folder(target: Path) -> None:
    with new_folder(target, Session("test"), names=NAMES, force=True) as folder:
        folder.mkdir()
        (folder / "a.txt").write_text("half")
        raise KeyboardInterrupt


def interrupted_session(target: Path) -> None:
    with Session("train") as session:
        with new_file(target, session, force=False) as stream:
            stream.write(b"whole")
        raise KeyboardInterrupt


def test_a_file_appears_when_it_is_complete_and_not_before(tmp_path: Path):
    target = tmp_path / "deep" / "result.csv"
    with new_file(target, Session("test"), force=False) as stream:
        stream.write(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert list(target.parent.iterdir()) == [target]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path):
    target = tmp_path / "result.csv"
    target.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        interrupted_file(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_replaces_another_only_when_it_is_complete(tmp_path: Path):
    target = tmp_path / "model"
    with new_folder(target, Session("test"), names=NAMES, force=False) as folder:
        folder.mkdir()
        (folder / "a.txt").write_text("first")
    with pytest.raises(KeyboardInterrupt):
        interrupted_folder(target)
    assert (target / "a.txt").read_text() == "first"
    with new_folder(target, Session("test"), names=NAMES, force=True) as folder:
        folder.mkdir()
        (folder / "a.txt").write_text("second")
    assert (target / "a.txt").read_text() == "second"
    assert list(tmp_path.iterdir()) == [target]


def test_force_never_removes_a_file_that_the_verb_did_not_write(tmp_path: Path):
    (tmp_path / "a.txt").touch()
    (tmp_path / "thesis.tex").touch()
    with (
        pytest.raises(FileExistsError, match=r"holds 'thesis.tex'"),
        new_folder(tmp_path, Session("test"), names=NAMES, force=True),
    ):
        pass


def test_ctrl_c_after_the_work_says_what_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    target = tmp_path / "result.csv"
    with pytest.raises(typer.Exit) as ended:
        interrupted_session(target)
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == f"pprop train: Interrupted. Kept: {str(target)!r}.\n"
