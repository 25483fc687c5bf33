"""The store: durable rows, claims between processes, damage, a full disk."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from pprop import FormatError, InputError
from pprop.study.cell import Cell, Seeds
from pprop.study.run.attempts import Attempts, Owner, count_claims, this_process
from pprop.study.store.merge import Salvage, merge_studies
from pprop.study.store.row import Row, RowKey, example_row
from pprop.study.store.store import FILE, Store, pools

pytestmark = pytest.mark.slow

CELL = Cell("mlp", {"hidden": [64]}, "citeseer")


def make_row(split: int = 1, init: int = 0, *, revision: str = "c1", nodes: int = 50, **changes) -> Row:
    random = np.random.default_rng([split, init])
    row = Row(
        key=RowKey(CELL.config, revision, "d1", Seeds(split, init)),
        cell=CELL.text,
        accuracy=float(random.random()),
        f1=float(random.random()),
        f1_macro=float(random.random()),
        stopping_loss=float("nan"),
        stopping_accuracy=1 / 3,
        epochs=12,
        best_epoch=7,
        seconds=0.1,
        together=20,
        predictions=random.integers(0, 6, nodes).astype(np.uint8),
        backend="numba",
        device="cpu",
        torch="2.11",
        host="here",
        version="0.1",
        created=f"2026-01-01T00:00:{split % 60:02d}+00:00",
    )
    return replace(row, **changes)


def same(one: Row, other: Row) -> bool:
    """Every field, bit for bit; NaN is NaN."""
    for field in fields(Row):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "predictions":
            if a.dtype != b.dtype or not np.array_equal(a, b):
                return False
        elif a != b and not (a != a and b != b):
            return False
    return True


def test_a_row_comes_back_as_it_went_in(tmp_path: Path):
    rows = [make_row(split, init) for split in (4092258879, 5) for init in (0, 1)]
    with Store.open(tmp_path, create=True) as store:
        assert [store.add(row) for row in rows] == [True] * 4
    with Store.open(tmp_path) as store:
        back = store.rows(CELL.config)
        assert [row.key.seeds for row in back] == sorted(row.key.seeds for row in rows)
        assert all(same(one, other) for one, other in zip(back, sorted(rows, key=lambda row: row.key), strict=True))
        assert store.keys() == {row.key for row in rows}
        assert store.cells() == [CELL]
        assert store.rows("another") == []
        (group,) = store.groups()
        assert (group.runs, group.revision, group.devices, group.cell) == (4, "c1", ("cpu",), CELL)


def test_a_run_is_kept_once_and_another_result_for_it_is_refused(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        assert store.add(make_row())
        assert not store.add(make_row(seconds=7.0, host="elsewhere"))
        with pytest.raises(InputError, match="has another result for split 1, initialisation 0"):
            store.add(make_row(epochs=13))
        assert same(store.rows()[0], make_row())


def test_a_row_is_on_the_disk_when_add_returns(tmp_path: Path):
    """The process is killed right after; nothing was closed."""
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from pprop.study.store.row import example_row\nfrom pprop.study.store.store import Store\n"
        "store = Store.open(Path(sys.argv[1]), create=True)\n"
        "for split in range(3):\n    store.add(example_row(split))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path], check=False).returncode == -9
    assert (tmp_path / f"{FILE}-wal").stat().st_size > 0
    with Store.open(tmp_path) as store:
        assert len(store.rows()) == 3


def test_the_file_is_written_ahead_with_full_synchronisation(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        assert store.execute("PRAGMA journal_mode") == [("wal",)]
        assert store.execute("PRAGMA synchronous") == [(2,)]


def test_rows_of_two_revisions_make_two_pools_newest_first(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        for split in (1, 2):
            store.add(make_row(split, revision="old"))
        store.add(make_row(30, revision="new"))
        newest, oldest = pools(store, CELL)
    assert (newest.revision, [row.key.seeds.split for row in newest.rows]) == ("new", [30])
    assert (oldest.revision, [row.key.seeds.split for row in oldest.rows]) == ("old", [1, 2])


def test_two_claims_on_one_run_cannot_both_succeed(tmp_path: Path):
    keys = [make_row(split).key for split in range(200)]
    got: dict[int, list[RowKey]] = {}
    with Store.open(tmp_path, create=True):
        pass

    def claim(who: int) -> None:
        with Store.open(tmp_path) as store:
            mine = Attempts(store, replace(this_process(), started=str(who), place="a machine far away"))
            got[who] = []
            while piece := mine.claim(keys, most=3):
                got[who] += piece

    threads = [threading.Thread(target=claim, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key for claimed in got.values() for key in claimed) == sorted(keys)


def test_the_claim_of_a_dead_process_is_taken_over_and_that_of_a_living_one_is_not(tmp_path: Path):
    key, here = make_row().key, this_process()
    with Store.open(tmp_path, create=True) as store:
        assert Attempts(store, replace(here, started="before this process")).claim([key]) == [key]
        assert Attempts(store, here).claim([key]) == [key]  # the number of a process is used again: that one is dead
        assert Attempts(store, Owner(here.place, here.pid + 1, "")).claim([key]) == []
        assert Attempts(store, Owner("far away", 1, "")).elsewhere([key]) == 1
        Attempts(store, here).release()
        assert Attempts(store, Owner("far away", 1, "")).claim([key]) == [key]


def test_the_claim_of_another_machine_is_taken_over_when_its_lease_has_run_out(tmp_path: Path, monkeypatch):
    key, far = make_row().key, Owner("far away", 1, "")
    with Store.open(tmp_path, create=True) as store:
        assert Attempts(store, far).claim([key]) == [key]
        assert Attempts(store).claim([key]) == []
        monkeypatch.setattr("pprop.study.run.attempts.time.time", lambda: 4e9)
        assert Attempts(store).claim([key]) == [key]


def test_a_renewed_claim_lasts(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pprop.study.run.attempts._RENEWAL", 0.01)
    key = make_row().key
    with Store.open(tmp_path, create=True) as store, Attempts(store) as mine:
        mine.claim([key])
        store.execute("UPDATE attempts SET lease = 0")
        deadline = threading.Event()
        while store.execute("SELECT lease FROM attempts") == [(0.0,)]:
            assert not deadline.wait(0.01)
    with Store.open(tmp_path) as store:
        assert store.execute("SELECT count(*) FROM attempts WHERE ended IS NULL") == [(0,)]


def test_a_finished_run_cannot_be_claimed(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        mine = Attempts(store)
        assert mine.claim([make_row().key])
        store.add(make_row())
        assert store.execute("SELECT count(*) FROM attempts WHERE ended IS NULL") == [(0,)]
        assert mine.claim([make_row().key]) == []


def test_claims_are_counted_while_their_owner_lives_and_their_run_is_not_there(tmp_path: Path):
    here, keys = this_process(), [make_row(split).key for split in range(4)]
    with Store.open(tmp_path, create=True) as store:
        Attempts(store, replace(here, started="before")).claim(keys[:1])
        Attempts(store, Owner("far away", 1, "")).claim(keys[1:2])
        Attempts(store, here).claim(keys[2:])
        assert count_claims(store) == 3
        store.execute("UPDATE attempts SET ended = NULL")
        store.add(make_row(3))
        store.execute(
            "UPDATE attempts SET ended = NULL"
        )  # as if it had been killed between the row and its claim's end
        assert count_claims(store) == 2
        with Attempts(store):
            assert store.execute("SELECT split FROM attempts WHERE ended IS NOT NULL") == [(3,)]


def test_a_full_disk_is_reported_in_one_sentence_and_every_finished_row_stays(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        store.execute("PRAGMA wal_autocheckpoint = 0")
        (pages,) = store.execute("PRAGMA page_count")[0]
        store.execute(f"PRAGMA max_page_count = {pages + 20}")
        with pytest.raises(OSError, match="the disk is full; every finished run is kept") as caught:
            all(store.add(make_row(split, nodes=5000)) for split in range(1000))
        added = len(store.keys())
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(tmp_path / FILE)
        assert added > 5
        with pytest.raises(OSError, match="the disk is full"):
            store.add_all([make_row(split, nodes=5000) for split in range(2000, 2020)])
        assert len(store.rows()) == added
    with Store.open(tmp_path) as store:
        assert all(same(row, make_row(row.key.seeds.split, nodes=5000)) for row in store.rows())
        assert len(store.keys()) == added
        assert store.add(make_row(5000))  # there is room again


def fill(folder: Path, rows: int = 60) -> bytes:
    with Store.open(folder, create=True) as store:
        store.add_all(make_row(split, nodes=3000) for split in range(rows))
    return (folder / FILE).read_bytes()


@pytest.mark.parametrize(
    ("spoil", "at_least"),
    [
        (lambda sound: sound[: len(sound) // 2], 1),
        (lambda sound: sound[: 3 * len(sound) // 4 + 100], 1),
        (lambda sound: sound[:20480] + bytes(4096) + sound[24576:], 1),
        (lambda sound: sound[:40000] + bytes(byte ^ 255 for byte in sound[40000:40500]) + sound[40500:], 40),
    ],
    ids=["half", "three quarters", "a page of zeros", "flipped bytes"],
)
def test_the_sound_rows_of_a_damaged_store_are_saved_and_the_others_counted(tmp_path: Path, spoil, at_least: int):
    sound = fill(tmp_path / "old")
    file = tmp_path / "old" / FILE
    file.write_bytes(spoil(sound))
    before = file.read_bytes()
    merged = merge_studies([tmp_path / "old"], tmp_path / "new")
    (source,) = merged.sources
    assert not merged.sound
    assert source.problem is not None
    assert "is damaged" in source.problem
    assert source.rows == merged.rows >= at_least
    assert source.lost > 0
    if source.certain:
        assert source.rows + source.lost == 60
    with Store.open(tmp_path / "new") as store:
        assert all(same(row, make_row(row.key.seeds.split, nodes=3000)) for row in store.rows())
    assert file.read_bytes() == before
    assert [path.name for path in (tmp_path / "old").iterdir()] == [FILE]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"f1_macro REAL", b"f1_oacro REAL"),
        (b"CREATE TABLE rows", b"CREATE TABLE sows"),
        (b"CREATE TABLE rows", b"KREATE TABLE rows"),
        (b"CREATE UNIQUE INDEX rows_key", b"CREATE UNIQUE INDEX rows_kez"),
        (b"ppr1", b"ppr3"),
        (b"CREATE TABLE attempts", b"CREATE TABLE attemp\x8bs"),
    ],
)
def test_a_change_on_the_first_page_loses_no_row(tmp_path: Path, old: bytes, new: bytes):
    sound = fill(tmp_path / "old")
    assert sound.count(old) == 1
    (tmp_path / "old" / FILE).write_bytes(sound.replace(old, new))
    (source,) = merge_studies([tmp_path / "old"], tmp_path / "new").sources
    assert (source.rows, source.lost, source.certain) == (60, 0, True)
    assert "is damaged" in (source.problem or "")
    assert (tmp_path / "old" / FILE).read_bytes() == sound.replace(old, new)


@pytest.mark.parametrize("change", [0x01, 0xFF])
def test_a_change_of_any_byte_of_the_header_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int):
    monkeypatch.setattr("pprop.study.store.file._PAUSE", 0.0)
    sound = fill(tmp_path, rows=5)
    for at in range(100):
        spoilt = sound[:at] + bytes([sound[at] ^ change]) + sound[at + 1 :]
        (tmp_path / FILE).write_bytes(spoilt)
        salvage = Salvage(tmp_path)
        assert sorted(row.key.seeds.split for row in salvage) == [0, 1, 2, 3, 4], at
        assert (salvage.lost, salvage.certain) == (0, True), at
        if salvage.problem is not None:
            assert (tmp_path / FILE).read_bytes() == spoilt, at


def test_a_damaged_store_with_pages_of_another_size_is_saved(tmp_path: Path):
    fill(tmp_path)
    with sqlite3.connect(tmp_path / FILE, isolation_level=None) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA page_size = 1024")
        database.execute("VACUUM")
        database.execute("UPDATE rows SET epochs = 99 WHERE number = 2")
    database.close()
    assert len(list(Salvage(tmp_path))) == 59


def test_a_file_that_is_no_database_gives_no_row_and_says_so(tmp_path: Path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / FILE).write_bytes(b"a letter to a friend\n" * 1000)
    (source,) = merge_studies([tmp_path / "old"], tmp_path / "new").sources
    assert (source.rows, source.certain) == (0, False)
    assert "it is no SQLite file" in (source.problem or "")


def test_the_rows_of_a_store_whose_root_is_damaged_are_saved(tmp_path: Path):
    sound = fill(tmp_path / "old")
    spoilt = sound[:4096] + b"\x55" * 4096 + sound[8192:]  # the second page leads to all the rows
    (tmp_path / "old" / FILE).write_bytes(spoilt)
    (source,) = merge_studies([tmp_path / "old"], tmp_path / "new").sources
    assert (source.rows, source.lost, source.certain) == (60, 0, True)
    assert (tmp_path / "old" / FILE).read_bytes() == spoilt
    with Store.open(tmp_path / "new") as store:
        assert all(same(row, make_row(row.key.seeds.split, nodes=3000)) for row in store.rows())


def test_a_row_with_a_changed_number_is_saved_without_a_search_up_to_it(tmp_path: Path):
    with Store.open(tmp_path / "old", create=True) as store:
        store.add_all(make_row(split) for split in range(5))
        store.execute(f"UPDATE rows SET number = {10**15} WHERE number = 5")
        store.execute("UPDATE rows SET epochs = 99 WHERE number = 2")
    (source,) = merge_studies([tmp_path / "old"], tmp_path / "new").sources
    assert (source.rows, source.lost) == (4, 1)


def test_a_damaged_store_is_refused_with_the_way_out(tmp_path: Path):
    sound = fill(tmp_path)
    (tmp_path / FILE).write_bytes(sound[: len(sound) // 2])
    with pytest.raises(FormatError, match=r"is damaged \(.*\) and was left as it is\. Save its sound rows with: pprop"):
        Store.open(tmp_path)
    with pytest.raises(FormatError, match="is damaged"):
        Store.open(tmp_path, create=True)
    assert (tmp_path / FILE).read_bytes() == sound[: len(sound) // 2]


def test_a_row_that_was_changed_in_place_is_noticed(tmp_path: Path):
    fill(tmp_path, rows=3)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE rows SET accuracy = 0.99 WHERE number = 2")
    database.close()
    with pytest.raises(
        FormatError, match=r"damaged \(the row of split 1, .* does not match its checksum\) .* pprop study"
    ):
        Store.open(tmp_path)
    salvage = Salvage(tmp_path)
    assert [row.key.seeds.split for row in salvage] == [0, 2]
    assert (salvage.lost, salvage.certain) == (1, True)
    assert "does not match its checksum" in (salvage.problem or "")


def leave_log(folder: Path) -> None:
    """Leave the files as a process does that is killed after it has added a row: closing moves the log into the file."""
    files = [folder / FILE, folder / f"{FILE}-wal"]
    with Store.open(folder) as store:
        store.execute("PRAGMA wal_autocheckpoint = 0")
        store.add(example_row(1))
        killed = [file.read_bytes() for file in files]
    for file, content in zip(files, killed, strict=True):
        file.write_bytes(content)


def test_a_damaged_store_keeps_its_file_and_its_log_as_they_are(tmp_path: Path):
    sound = fill(tmp_path)
    leave_log(tmp_path)
    file, log = tmp_path / FILE, tmp_path / f"{FILE}-wal"
    file.write_bytes(sound[:40000] + bytes(byte ^ 255 for byte in sound[40000:40200]) + sound[40200:])
    before, logged = file.read_bytes(), log.read_bytes()
    assert logged
    for create in (False, True):
        with pytest.raises(FormatError, match="is damaged"):
            Store.open(tmp_path, create)
    merged = merge_studies([tmp_path], tmp_path / "new")
    assert (file.read_bytes(), log.read_bytes()) == (before, logged)
    with Store.open(tmp_path / "new") as store:
        assert any(row.cell == "{}" for row in store.rows())  # that of the log
    assert merged.rows >= 55


def test_a_sound_store_with_a_log_is_opened(tmp_path: Path):
    fill(tmp_path)
    leave_log(tmp_path)
    with Store.open(tmp_path) as store:
        assert len(store.keys()) == 61


@pytest.mark.parametrize(
    "change", [(b'"dataset"', b'"{ataset"'), (b"citeseer", b"cit\xffseer"), (b"numba", b"n\xc3mba")]
)
def test_changed_text_is_damage(tmp_path: Path, change: tuple[bytes, bytes]):
    sound = fill(tmp_path, rows=3)
    assert sound.count(change[0]) == 3
    (tmp_path / FILE).write_bytes(sound.replace(*change, 1))
    with pytest.raises(FormatError, match=r"is damaged \(.*\) and was left as it is\. Save its sound rows with: pprop"):
        Store.open(tmp_path)
    assert merge_studies([tmp_path], tmp_path / "new").rows == 2


def test_a_store_that_is_damaged_while_it_is_open_says_so(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        store.add(make_row())
        store.execute("UPDATE rows SET cell = '{ataset'")
        for read in (store.cells, store.groups, store.rows):
            with pytest.raises(FormatError, match="is damaged"):
                read()
        store.execute("UPDATE rows SET cell = CAST(x'ff' AS TEXT)")
        with pytest.raises(FormatError, match=r"is damaged \(Could not decode to UTF-8"):
            store.cells()
        with pytest.raises(FormatError, match=r"is damaged \(no such column"):
            store.execute("SELECT absent FROM rows")


def test_claims_that_cannot_be_read_are_damage(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        Attempts(store).claim([make_row().key])
        store.execute("UPDATE attempts SET lease = NULL")
    with pytest.raises(FormatError, match="its list of attempts cannot be read"):
        Store.open(tmp_path)


def test_an_empty_file_is_no_sound_store(tmp_path: Path):
    (tmp_path / FILE).touch()
    with pytest.raises(FormatError, match="is empty: it was never begun, or has lost all its rows"):
        Store.open(tmp_path)
    assert (tmp_path / FILE).stat().st_size == 0
    (tmp_path / f"{FILE}-wal").write_bytes(b"rows")
    with pytest.raises(FormatError, match="it is empty, but its log is not"):
        Store.open(tmp_path, create=True)
    assert (tmp_path / f"{FILE}-wal").read_bytes() == b"rows"
    (tmp_path / f"{FILE}-wal").unlink()
    with Store.open(tmp_path, create=True) as store:  # a process that was killed when it had just begun leaves this
        assert store.keys() == set()


def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="There is no study in"):
        Store.open(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FILE).write_text("a letter to a friend\n" * 100)
    with pytest.raises(FormatError, match="it is no SQLite file"):
        Store.open(tmp_path, create=True)
    (tmp_path / FILE).unlink()
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("CREATE TABLE friends (name TEXT)")
    database.close()
    with pytest.raises(FormatError, match="is a database, but no store of a study"):
        Store.open(tmp_path, create=True)


def test_a_store_of_a_later_version_is_refused(tmp_path: Path):
    with Store.open(tmp_path, create=True) as store:
        store.execute("PRAGMA user_version = 99")
    with pytest.raises(FormatError, match="made by a later version"):
        Store.open(tmp_path)


def test_two_halves_merged_are_the_rows_of_one_store(tmp_path: Path):
    rows = [make_row(split, init) for split in range(10) for init in range(2)]
    parts = {"whole": rows, "left": rows[:12], "right": rows[9:]}  # three of them are in both halves
    for name, part in parts.items():
        with Store.open(tmp_path / name, create=True) as store:
            store.add_all(part)
    merged = merge_studies([tmp_path / "right", tmp_path / "left"], tmp_path / "both")
    assert merged.sound
    assert [(source.rows, source.new) for source in merged.sources] == [(11, 11), (12, 9)]
    with Store.open(tmp_path / "both") as both, Store.open(tmp_path / "whole") as whole:
        assert all(same(one, other) for one, other in zip(both.rows(), whole.rows(), strict=True))


def test_a_conflict_is_named_and_the_first_result_stays(tmp_path: Path):
    for name, epochs in (("first", 12), ("second", 99)):
        with Store.open(tmp_path / name, create=True) as store:
            store.add_all([make_row(1, epochs=epochs), make_row(2)])
    merged = merge_studies([tmp_path / "first", tmp_path / "second"], tmp_path / "out")
    assert not merged.sound
    assert merged.sources[1].conflicts == (f"mlp on citeseer ({CELL.config}), split 1, initialisation 0",)
    with Store.open(tmp_path / "out") as store:
        assert [row.epochs for row in store.rows()] == [12, 12]


def test_a_conflict_of_rows_of_an_unknown_cell_is_named_too(tmp_path: Path):
    for name, epochs in (("first", 12), ("second", 99)):
        with Store.open(tmp_path / name, create=True) as store:
            store.add(replace(example_row(5), epochs=epochs))
    merged = merge_studies([tmp_path / "first", tmp_path / "second"], tmp_path / "out")
    assert merged.sources[1].conflicts == ("an unknown cell (a1), split 5, initialisation 0",)


def test_a_study_is_not_merged_into_itself_or_out_of_nothing(tmp_path: Path):
    with Store.open(tmp_path / "here", create=True):
        pass
    with pytest.raises(InputError, match="cannot be merged into itself"):
        merge_studies([tmp_path / "here"], tmp_path / "here")
    with pytest.raises(FileNotFoundError, match="no study in"):
        merge_studies([tmp_path / "here", tmp_path / "nowhere"], tmp_path / "out")
    with pytest.raises(InputError, match="at least one study"):
        merge_studies([], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_store_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(FormatError, match=r"is not a regular file. Choose another folder."):
        Store.open(tmp_path, create=True)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    with pytest.raises(FormatError, match=r"is not a regular file. Choose another folder."):
        Store.open(tmp_path, create=True)
