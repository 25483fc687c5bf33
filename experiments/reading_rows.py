"""What the scripts that try readings of a baseline write down: a record for each run, in a file that is always whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, final


@final
class Rows:
    """The runs found so far, of all datasets and readings."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []

    def of(self, dataset: str, reading: str) -> dict[int, dict[str, Any]]:
        """Return the runs of a reading by the seed of their split."""
        return {row["split"]: row for row in self._rows if (row["dataset"], row["reading"]) == (dataset, reading)}

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Write down more runs."""
        self._rows += rows
        text = ",\n ".join(json.dumps(row) for row in self._rows)
        part = self._file.with_suffix(".part")
        part.write_text(f"[{text}]\n", encoding="utf-8")
        part.replace(self._file)
