"""Sentences that a user meets when something is wrong, as they are, so that a change of one shows where it is read.

``tests/golden/sentences.txt`` has the calls, in Python (``>>>``) and on the command line (``$``), and under each what it
answers. After a change run ``python -m tests.test_sentences`` from the root of the repository: it writes the answers
anew, and ``git diff`` shows those that are others. A new case is a line with its call in that file.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import pprop
from pprop.cli.app import run

TABLE = Path(__file__).parent / "golden" / "sentences.txt"
FILES = {
    "edges.csv": "source,target,w\nann,bob,1\nbob,cem,2\ncem,dee,1\ndee,eve,3\neve,ann,1\n",
    "nodes.csv": "id,team,age,city\nann,red,31,Oslo\nbob,red,27,Rome\ncem,blue,45,Oslo\ndee,blue,38,Rome\neve,,29,Oslo\n",
    "calls.csv": "from,to,minutes\nann,bob,1\nbob,cem,2\ncem,dee,1\ndee,eve,3\neve,ann,1\n",
    "people.csv": "name,status,age\nann,red,31\nbob,red,27\ncem,blue,45\ndee,blue,38\neve,,29\n",
    "few.csv": "id,team,age\nann,red,31\nbob,red,27\n",
    "twice.csv": "id,team\nann,red\nann,blue\n",
    "empty.csv": "id,team\nann,red\n,blue\n",
    "words.csv": "source,target,w\nann,bob,much\n",
    "minus.csv": "source,target,w\nann,bob,-1\n",
    "ragged.csv": "source,target\nann,bob\nbob\n",
    "headless.csv": "ann,bob\nbob,cem\n",
    "none.csv": "",
    "scores.csv": "id,a,b\nann,1,0\nbob,1,0\ncem,0,1\ndee,0,1\neve,0,0\n",
    "tags.csv": "id,team\nann,red|blue\nbob,blue|green\ncem,red\ndee,green|red\neve,\n",
    "splits.csv": "id,team,age,part\nann,red,31,train\nbob,red,27,perhaps\ncem,blue,45,test\ndee,blue,38,train\neve,,29,\n",
    "edits.txt": "+ ann cem\n- ann dee\n",
    "fake.parquet": "source,target\nann,bob\n",
    "fake.npz": "not a zip file",
    "graph.txt": "",
}


def fill(folder: Path) -> dict[str, Any]:
    """Write the files of the cases and return the names that calls in Python use."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    np.save(folder / "scores.npy", np.ones((4, 2)))
    graph = pprop.read_edges(folder / "edges.csv", folder / "nodes.csv", label_column="team")
    bare = pprop.Graph.from_scipy(sp.csr_array(graph.adjacency))
    network = pprop.MLPNodeClassifier(graph, max_epochs=1, stopping=None, backend="reference", random_state=0)
    fitted = network.fit([0, 1, 2, 3], ["red", "red", "blue", "blue"])
    fitted.save(folder / "model")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "manifest.json").write_text("{}")
    public = {name: getattr(pprop, name) for name in pprop.__all__}
    return {**public, "np": np, "pd": pd, "sp": sp, "g": graph, "bare": bare, "fitted": fitted, "folder": folder}


def answer_of(call: str, names: dict[str, Any]) -> str:
    """Return what a call answers: the class of an error and its sentence, or an exit code and what is printed.

    Of standard error that is the error, not what came before it.
    """
    if call.startswith(">>> "):
        try:
            with warnings.catch_warnings(action="ignore"):
                value = eval(call[4:], names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return f"no error: {value!r}"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(call.removeprefix("$ pprop ").split())
    said = err.getvalue()
    said = out.getvalue() + said[max(said.rfind("\npprop ") + 1, 0) :].rstrip()
    return f"{code}: {said}".replace(f"{names['folder']}/", "").strip()


def cases() -> dict[str, str]:
    """Return the answers in the table by their calls."""
    found: dict[str, str] = {}
    for part in TABLE.read_text(encoding="utf-8").strip().split("\n\n"):
        call, _, answer = part.partition("\n")
        found[call] = answer
    return found


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fill(tmp_path_factory.mktemp("sentences"))


@pytest.mark.parametrize("call", cases())
def test_a_sentence_is_as_it_was(call: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(names["folder"])
    assert answer_of(call, names) == cases()[call]


def record() -> None:
    """Write the table anew."""
    with tempfile.TemporaryDirectory() as folder:
        names, before = fill(Path(folder)), Path.cwd()
        os.chdir(folder)
        try:
            parts = [f"{call}\n{answer_of(call, names)}".strip() for call in cases()]
        finally:
            os.chdir(before)
    TABLE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
