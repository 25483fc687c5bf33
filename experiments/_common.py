"""What several of these scripts need: rows in a file, the paper's accuracies, and the difference of runs on the same splits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from pprop.study.experiment_folder import load_experiments
from pprop.study.stats.estimate import student_half

RESULTS = Path(__file__).parents[1] / "results"


@final
class Rows:
    """A list of rows in a JSON file, which is always whole: a script that is stopped goes on from there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []

    def add(self, *rows: dict[str, Any]) -> None:
        """Write down more rows."""
        self.rows += rows
        part = self._file.with_name(self._file.name + ".part")
        part.write_text("[\n" + ",\n".join(map(json.dumps, self.rows)) + "\n]\n", encoding="utf-8")
        part.replace(self._file)

    def by_split(self, dataset: str, reading: str, value: str) -> dict[int, float]:
        """Return a value of the runs of a reading by the seed of their split."""
        of = (dataset, reading)
        return {row["split"]: row[value] for row in self.rows if (row["dataset"], row["reading"]) == of}


def published(model: str, dataset: str) -> tuple[float, float]:
    """Return the paper's accuracy in percent, and half of its 95 % interval."""
    found = load_experiments()[f"gasteiger_2019_{model}_{dataset}"].published
    assert found is not None
    assert found.accuracy is not None
    assert found.accuracy_interval is not None
    return found.accuracy, found.accuracy_interval


def difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> str:
    """Return the mean difference over the splits that both have, Student's 95 % interval, and how many; or a dash."""
    apart = [ours[split] - theirs[split] for split in ours if split in theirs]
    return f"{np.mean(apart):+.2f} ± {student_half(apart):.2f} ({len(apart)})" if len(apart) > 1 else "-"
