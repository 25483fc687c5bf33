"""Identity and provenance of rows: declared revisions, the ledger of older rows, and what the store makes of both."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pprop import InputError
from pprop.kernels import BACKENDS
from pprop.study import revisions
from pprop.study.cell import MODELS, Cell
from pprop.study.revisions import (
    current_revision,
    declared_revisions,
    provenance_here,
    recorded_revision,
    revision_of,
    stored_names,
)
from pprop.study.run.attempts import Attempts
from pprop.study.store.row import Row, encode, example_row
from pprop.study.store.store import Store

pytestmark = pytest.mark.slow

LEDGER = Path(revisions.__file__).with_name("ledger.csv")


def older_row() -> Row:
    """A row as it was stored before there were revisions, under a hash that the ledger knows."""
    row, cell = example_row(), Cell("appnp", {}, "citeseer")
    key = replace(row.key, config=cell.config, revision="numba-1")
    return replace(row, key=key, cell=cell.text, stored_as="b3cd4d9ba2f3")


def test_every_model_has_a_declared_revision_on_every_backend_that_computes_it():
    kernels = {backend.name for backend in BACKENDS}
    for name, kind in MODELS.items():
        assert set(declared_revisions()[name]) == (kernels if kind.trained else {"numpy", "torch"})
    assert set(declared_revisions()) == set(MODELS)
    with pytest.raises(InputError, match="'mlp' has no declared revision on the backend 'abacus'"):
        revision_of("mlp", "abacus")


def test_the_first_lines_of_the_ledger_are_never_changed():
    """New lines go to the end. A line that is changed would give published rows another identity."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines(keepends=True)
    assert hashlib.sha256("".join(lines[:35]).encode()).hexdigest()[:16] == "e524fad38afd2294"


def test_no_revision_of_the_ledger_is_later_than_the_declared_one():
    for entry in csv.DictReader(LEDGER.read_text(encoding="utf-8").splitlines()):
        backend, _, number = entry["revision"].partition("-")
        for model in entry["models"].split():
            assert 1 <= int(number) <= declared_revisions()[model][backend], entry


def test_every_published_row_has_a_revision_and_no_two_share_an_identity(published: tuple[Row, ...]):
    assert len(published) == 60_956
    assert all(recorded_revision(row.stored_as) == row.key.revision for row in published if row.stored_as)
    assert {row.key.revision.partition("-")[0] for row in published} == {"numba", "triton", "numpy", "torch"}
    assert max(Counter(row.key for row in published).values()) == 1


def test_the_newest_published_rows_are_of_the_present_revision(published: tuple[Row, ...]):
    """Rows of other readings of a model have other settings, so the rule is by model: its newest row on a backend."""
    newest: dict[tuple[str, str], Row] = {}
    models = {text: Cell.parse(text).model for text in {row.cell for row in published}}
    for row in published:
        key = models[row.cell], row.key.revision.partition("-")[0]
        newest[key] = max(newest.get(key, row), row, key=lambda one: one.created)
    for (model, backend), row in newest.items():
        assert row.key.revision == revision_of(model, backend)


def test_an_older_row_is_found_by_its_revision_and_stays_under_its_hash(tmp_path: Path):
    old = older_row()
    with Store.open(tmp_path, create=True) as store:
        assert store.add(old)
        assert store.has(old.key)
        assert store.keys() == {old.key}
        (group,) = store.groups()
        assert (group.revision, group.runs) == ("numba-1", 1)
        (there,) = store.rows()
        assert (there.stored_as, encode(there)) == ("b3cd4d9ba2f3", encode(old))
        with Attempts(store) as mine:
            assert mine.claim([old.key]) == []


def test_a_new_row_of_the_same_identity_is_the_row_that_is_there_or_a_conflict(tmp_path: Path):
    old = older_row()
    new = replace(old, stored_as="", version=provenance_here().text)
    with Store.open(tmp_path, create=True) as store:
        assert store.add(replace(old, predictions=old.predictions[:0]))
        assert not store.add(new)  # gives its predictions to the row that is there, which stays what it was
        assert [encode(row) for row in store.rows()] == [encode(old)]
        with pytest.raises(InputError, match="has another result"):
            store.add(replace(new, accuracy=0.1))
        assert store.add(replace(new, key=replace(new.key, seeds=replace(new.key.seeds, split=6))))
        (group,) = store.groups()  # stored under two names
        assert group.runs == 2


def test_rows_of_a_backend_that_no_longer_computes_the_model_are_of_no_present_revision(published: tuple[Row, ...]):
    """The first rows of bootstrapped feature propagation name the backend that it did not use."""
    (cell,) = {row.cell for row in published if row.stored_as == "08cdd3c3ef22" and "citeseer" in row.cell}
    assert current_revision(Cell.parse(cell), "numba") == ""


def test_a_hash_that_the_ledger_does_not_know_is_a_revision_of_its_own(tmp_path: Path):
    unknown = replace(example_row(), key=replace(example_row().key, revision="0123456789ab"))
    with Store.open(tmp_path, create=True) as store:
        store.add(unknown)
        assert [row.key.revision for row in store.rows()] == ["0123456789ab"]
    assert stored_names("0123456789ab") == ("0123456789ab",)


def test_provenance_is_kept_with_a_row_and_is_no_part_of_its_key(tmp_path: Path):
    made = replace(provenance_here(), commit="0" * 12)
    row = replace(example_row(), version=made.text)
    with Store.open(tmp_path, create=True) as store:
        store.add(row)
        (there,) = store.rows()
        assert there.provenance == made
        assert not store.add(replace(row, version=replace(made, source="1" * 12, cpu="another").text))
