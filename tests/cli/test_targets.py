"""Outputs appear complete or not at all."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from pprop.cli.output import Session, check_folder, new_file, new_folder

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
    with pytest.raises(FileExistsError, match=r"holds 'thesis.tex'"):
        check_folder(tmp_path, names=NAMES, force=True)


def write_folder(target: Path, text: str, *, force: bool, meanwhile: Callable[[], object] = lambda: None) -> None:
    with new_folder(target, Session("test"), names=NAMES, force=force) as folder:
        folder.mkdir()
        (folder / "a.txt").write_text(text)
        meanwhile()


def test_of_two_writers_of_a_folder_the_later_keeps_its_result_beside_it(tmp_path: Path):
    target = tmp_path / "model"
    (tmp_path / "model-2").mkdir()  # a name that is not free
    with pytest.raises(FileExistsError, match=r"model' was not replaced: it appeared .* in '.*model-3'"):
        write_folder(target, "later", force=False, meanwhile=lambda: write_folder(target, "earlier", force=False))
    assert (target / "a.txt").read_text() == "earlier"
    assert (tmp_path / "model-3" / "a.txt").read_text() == "later"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "model-2", "model-3"]


def test_of_two_writers_with_force_the_later_replaces_the_folder(tmp_path: Path):
    target = tmp_path / "model"
    write_folder(target, "later", force=True, meanwhile=lambda: write_folder(target, "earlier", force=True))
    assert (target / "a.txt").read_text() == "later"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("force", [True, False])
def test_a_foreign_file_that_appears_during_the_work_stays(tmp_path: Path, force: bool):
    target = tmp_path / "model"

    def foreign() -> None:
        target.mkdir()
        (target / "thesis.tex").touch()

    with pytest.raises(FileExistsError, match=r"model' was not replaced: it .* in '.*model-2'"):
        write_folder(target, "result", force=force, meanwhile=foreign)
    assert [file.name for file in target.iterdir()] == ["thesis.tex"]
    assert (tmp_path / "model-2" / "a.txt").read_text() == "result"


def test_a_file_under_the_name_of_the_folder_stays(tmp_path: Path):
    target = tmp_path / "model"
    with pytest.raises(FileExistsError, match=r"model' was not replaced: it is a file"):
        write_folder(target, "result", force=True, meanwhile=target.touch)
    assert target.is_file()
    assert (tmp_path / "model-2" / "a.txt").read_text() == "result"


def test_an_empty_folder_and_a_link_to_one_are_replaced(tmp_path: Path):
    target, link = tmp_path / "model", tmp_path / "link"
    target.mkdir()
    (tmp_path / "empty").mkdir()
    link.symlink_to(tmp_path / "empty")
    for one in (target, link):
        write_folder(one, "result", force=False)
        assert (one / "a.txt").read_text() == "result"


@pytest.mark.parametrize("links", [True, False])
def test_of_two_writers_of_a_file_the_later_keeps_its_result_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
):
    def no_link(*names: object) -> None:
        raise PermissionError("a disk without links")

    if not links:
        monkeypatch.setattr("os.link", no_link)
    target = tmp_path / "result.csv"
    target.with_name("result-2.csv").touch()

    def write(text: bytes, meanwhile: Callable[[], object] = lambda: None) -> None:
        with new_file(target, Session("test"), force=False) as stream:
            stream.write(text)
            meanwhile()

    with pytest.raises(FileExistsError, match=r"result.csv' was not replaced: .* in '.*result-3.csv'"):
        write(b"later", meanwhile=lambda: write(b"earlier"))
    assert target.read_bytes() == b"earlier"
    assert target.with_name("result-3.csv").read_bytes() == b"later"
    assert len(list(tmp_path.iterdir())) == 3


def test_ctrl_c_after_the_work_says_what_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    target = tmp_path / "result.csv"
    with pytest.raises(typer.Exit) as ended:
        interrupted_session(target)
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == f"pprop train: Interrupted. Kept: {str(target)!r}.\n"


FULL = [
    "train edges.csv --nodes nodes.csv --label-column hobby --out new --no-baselines --max-epochs 1",
    "train edges.csv --nodes nodes.csv --label-column hobby --out model --force --no-baselines --max-epochs 1",
    "build edges.csv --out graph",
    "predict model --out predictions.csv",
    "propagate edges.csv scores.csv --out spread.parquet",
    "ppr edges.csv person00 --out rows.npz",
]


def test_a_full_disk_has_one_exit_code(
    pprop_here, tables, without_drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "scores.csv").write_text("id,s\n" + "".join(f"person{k:02d},{k}\n" for k in range(40)))
    assert pprop_here(*FULL[0].replace("new", "model").split()).code == 0
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("os.fsync", full)
    for words in FULL:
        answer = pprop_here(*words.split())
        assert (words, answer.code) == (words, 4), answer.err
        assert re.search("No space left on device|is full", answer.err), answer.err
        assert ".build" not in answer.err  # it is gone, as there is nothing to go on with
    assert sorted(tmp_path.rglob("*")) == before


def test_too_little_room_found_before_the_work_has_the_exit_code_of_a_full_disk(
    pprop_here, tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = sorted(tmp_path.rglob("*"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage._replace(free=10))
    answer = pprop_here("build", "edges.csv", "--out", "graph")
    assert answer.code == 4
    assert "0.0 GB of disk, and 0.0 GB are free" in answer.err
    assert sorted(tmp_path.rglob("*")) == before
