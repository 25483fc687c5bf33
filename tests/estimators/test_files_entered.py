"""How many files of the package one fit runs through: what somebody who follows it has to open."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import scipy.sparse as sp

import pprop

ROOT = Path(pprop.__file__).parent
MOST_FILES = 36  # lower it with every merge that makes the code simpler


def path_graph() -> pprop.Graph:
    path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    return pprop.Graph.from_scipy(path, features=sp.eye_array(5))


def fit(graph: pprop.Graph) -> None:
    model = pprop.APPNPClassifier(graph, hidden=8, max_epochs=5, random_state=0)
    model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5)


def test_a_fit_runs_through_few_files() -> None:
    fit(path_graph())  # imports, and what is made once
    graph = path_graph()
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        fit(graph)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = sorted(str(Path(file).relative_to(ROOT)) for file in entered if file.startswith(str(ROOT)))
    assert len(files) <= MOST_FILES, "\n".join(files)
