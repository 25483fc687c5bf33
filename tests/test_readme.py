"""The README: what it runs runs and prints what it says; `make results CHECK=1` compares its table with the rows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tools.readme import Shown, abridged, printed, shown

from pprop._version import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = shown(TEXT)
COMMANDS = [one for one in SHOWN if one.code.startswith("pprop ")]
PYTHON = [one for one in SHOWN if one.python]
TOLERANCE = 5.0  # points: an accuracy on 300 nodes elsewhere, where sums of floats may round otherwise


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a clone looks to the commands."""
    path = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", path / "examples")
    return path


@pytest.fixture(scope="module")
def outputs(folder: Path) -> dict[str, str]:
    """What the commands and the Python of the README print now."""
    above, found = list[str](), dict[str, str]()
    for one in [*COMMANDS, *PYTHON]:
        found[one.code] = abridged(printed(one, folder, above), one.output)
        if one.python:
            above.append(one.code)
    return found


def form(output: str) -> list[str]:
    """Return the lines of an output without numbers and alignment."""
    numbers = re.sub(r"[+-]?\d[\d,.]*", "0", output)
    return sorted(re.sub(r"[ -]+", " ", line) for line in numbers.splitlines())  # classes may be ordered otherwise


def accuracies(output: str) -> list[float]:
    return [float(found) for found in re.findall(r"(\d+\.\d)%", output)]


@pytest.mark.parametrize("one", [one for one in (*COMMANDS, *PYTHON) if one.output], ids=lambda one: one.code[:24])
def test_what_is_shown_is_what_is_printed(one: Shown, outputs: dict[str, str]) -> None:
    """`python -m tools.readme --write` shows the present output."""
    now = outputs[one.code]
    if not one.code.startswith("pprop explain") and not one.python:  # whose rows and columns go by the logits
        assert form(now) == form(one.output)
        assert accuracies(now) == pytest.approx(accuracies(one.output), abs=TOLERANCE)
    else:
        assert len(now.splitlines()) == len(one.output.splitlines())
        assert now.splitlines()[0].split() == one.output.splitlines()[0].split()


def test_python_runs(outputs: dict[str, str]) -> None:
    assert len(PYTHON) == 2
    assert all(one.code in outputs for one in PYTHON)


def test_targets_of_make_exist() -> None:
    calls = [one.code.split(" #")[0].split(" && ")[0] for one in SHOWN if one.code.startswith("make ")]
    assert {"make venv", "make demo", "make test"} <= {call.strip() for call in calls}
    for call in calls:
        subprocess.run([*call.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_every_block_is_of_a_kind_that_is_looked_at() -> None:
    assert set(re.findall(r"^```(\w+)$", TEXT, flags=re.MULTILINE)) == {"console", "python", "text", "bibtex"}
    assert len(COMMANDS) + len(PYTHON) + sum(one.code.startswith("make ") for one in SHOWN) == len(SHOWN)


def test_the_prose_is_about_five_hundred_words() -> None:
    written = re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    own = re.sub(r"<!-- begin .*?<!-- end [^>]*-->", "", written, flags=re.DOTALL)
    assert len(own.split()) <= 560


def test_nothing_claims_a_release_on_a_package_index() -> None:
    assert not re.search(r"pip install ['\"]?pprop", TEXT)


def test_commands_within_sentences_have_options_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    from pprop.cli.app import run

    prose = re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    commands = [text.split() for text in re.findall(r"`pprop ([a-z][^`]*)`", prose)]
    assert {words[0] for words in commands} == {"explore", "study", "doctor"}
    for words in commands:
        verb = words[:2] if words[0] == "study" else words[:1]
        assert run([*verb, "--help"]) == 0
        told = capsys.readouterr().out
        for option in (word for word in words if word.startswith("--")):
            assert option in told


def test_the_time_of_a_module_is_the_recorded_one() -> None:
    import json

    record: dict[str, Any] = json.loads((ROOT / "results" / "gpu" / "modules.json").read_text())["shapes"]["89k_500"]
    epochs = {name: f"{each['p50']:.1f} ms" for name, each in record["epoch_ms"].items()}
    assert f"one epoch of a two-layer module takes {epochs['pprop']}" in TEXT
    peers = [float(value.split()[0]) for name, value in epochs.items() if name.startswith("pyg")]
    assert f"layer it takes {min(peers):.1f} ms" in TEXT  # the fastest form of the other


def test_the_citation_is_of_this_version() -> None:
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
