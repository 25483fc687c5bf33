"""Every Python block of docs/tuning.md runs, and what it says of `--space` is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pprop import Range
from pprop.cli.tune import read_setting

pytestmark = pytest.mark.slow

TEXT = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
ROWS = re.findall(r"^\| `(\w+)=(\S+)` \| `([^`]*)` \|", TEXT, flags=re.MULTILINE)


@pytest.mark.parametrize("code", BLOCKS, ids=["APPNPClassifierCV", "tune"])
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/tuning.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("name", "typed", "written"), ROWS)
def test_what_is_typed_is_what_is_written_in_python(name: str, typed: str, written: str):
    assert read_setting(f"{name}={typed}") == (name, eval(written, {"Range": Range}))


def test_the_table_was_found():
    assert [name for name, _, _ in ROWS] == ["alpha", "steps", "hidden", "max_epochs"]
