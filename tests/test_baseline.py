"""The parts of the recorded baseline that take seconds; ``python -m tools.baseline --check`` compares all of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pprop.kernels.registry import cpu_kind
from tools import baseline

ANSWERS = {"one": "1\n    2", "two": ""}


def test_every_classifier_has_the_parameters_and_defaults_that_it_had():
    assert baseline.differences("parameters", baseline.parameters_text(), baseline.stored("parameters")) == []


def test_every_way_to_make_a_graph_makes_the_same_graph():
    now = baseline.graphs_text(small=True)
    before = {title: answer for title, answer in baseline.stored("graphs").items() if title in now}
    assert len(before) >= 12
    assert baseline.differences("graphs", now, before) == []


@pytest.mark.skipif(not baseline.file_of("bits").exists(), reason=f"no bits are recorded for CPUs of kind {cpu_kind()}")
def test_every_classifier_learns_the_same_bits():
    now = baseline.bits_text(["dense"], rest=False)
    before = {title: answer for title, answer in baseline.stored("bits").items() if title in now}
    assert len(before) >= 14
    assert baseline.differences("bits", now, before) == []


def test_a_difference_is_told_with_the_lines_of_both():
    now = {"one": "1\n    3", "three": ""}
    assert baseline.differences("p", ANSWERS, ANSWERS) == []
    assert baseline.differences("p", now, ANSWERS) == [
        *("p: one", "@@ -2 +2 @@", "-    2", "+    3"),
        *("p: two", "@@ -0,0 +1 @@", "+(no answer)"),
        "p: three is new; write it",
    ]


def test_what_is_written_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(baseline, "FOLDER", tmp_path)
    baseline.write("parameters", ANSWERS)
    assert baseline.stored("parameters") == ANSWERS


def test_times_and_folders_are_blanked_and_what_was_learned_is_not(tmp_path: Path):
    record = {
        "seconds": 1.5,
        "ms_per_epoch": 2,
        "test_accuracy": 0.5,
        "graph": f"{tmp_path}/edges.csv",
        "in": [{"out": "a"}],
    }
    assert json.loads(json.dumps(baseline.blanked(record, str(tmp_path)))) == {
        "seconds": baseline.BLANK,
        "ms_per_epoch": baseline.BLANK,
        "test_accuracy": 0.5,
        "graph": "edges.csv",
        "in": [{"out": baseline.BLANK}],
    }
