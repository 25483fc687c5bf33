"""The stages of a build of a graph folder: nodes numbered, features and labels, entries scattered, sorted, all put in place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, final

from pprop._validate import counted, reject
from pprop.graph.building.id_keys import Collision, TextIds
from pprop.graph.building.matrix import MatrixBuild
from pprop.graph.building.node_arrays import FUNCTION, NodeTable, copy_features, copy_labels, feature_file
from pprop.graph.building.node_numbers import MOST_NODES, Numbering, open_lookup
from pprop.graph.building.plan import Plan
from pprop.graph.building.progress import show_stage
from pprop.graph.building.workplace import Workplace, file_mark
from pprop.graph.features.recipe import Recipe
from pprop.graph.folder_manifest import write_manifest
from pprop.graph.tables.build import TableColumns
from pprop.graph.tables.streams import TableStream


@final
@dataclass(frozen=True)
class Build:
    """The stages of a build; what is done of them is in the workplace's record."""

    edges: TableStream
    nodes: TableStream | None
    count: int | None
    columns: TableColumns
    features: Any
    labels: Any
    name: str
    memory: int
    progress: bool | None
    say: Callable[[str], None]
    replace: bool

    @property
    def job(self) -> dict[str, Any]:
        """What identifies the build, for the record."""
        given = self.columns
        kinds = given.feature_columns
        files = {"nodes": [] if self.nodes is None else list(self.nodes.files)}
        files |= {
            key: [] if path is None else [Path(path)]
            for key, path in (("features", self.features), ("labels", self.labels))
        }
        names = ("source", "target", "weight", "directed", "id_column", "label_column", "label_kind", "unknown_nodes")
        return {
            "version": 1,
            "edges": [file_mark(file) for file in self.edges.files],
            **{key: [file_mark(file) for file in some if file.exists()] for key, some in files.items()},
            "count": self.count,
            **{key: getattr(given, key) for key in names},
            "missing_labels": list(given.missing_labels),
            "feature_columns": kinds.to_json() if isinstance(kinds, Recipe) else kinds,
            "name": self.name,
            **({"beside": [file_mark(file) for file in given.files]} if given.files else {}),
        }

    def run(self, workplace: Workplace) -> None:
        """Do what is not done yet, and put the result in its place."""
        rows = self.edges.rows()
        plan = self._plan(rows, workplace.state.get("numbers"))
        plan.check_disk(workplace.path, workplace.size())
        self.say(f"Going on with {str(workplace.path)!r}." if workplace.resumed else f"Building {plan}")
        if unused := self.edges.unused_columns():
            self.say(f"Left out: {', '.join(map(repr, unused))} of {self.edges.title}, which no argument names.")
        while True:
            try:
                matrix = self._numbered(workplace, rows)
                self._written(workplace)
                self._build(matrix, rows)
                break
            except (TextIds, Collision) as found:
                seed = workplace.state.get("seed")
                if self.count is not None:
                    expected = f"edge lists of positions from 0 to {self.count - 1:,}, as nodes={self.count} says"
                    reject("edges", FUNCTION, expected, f"other ids in {self.edges.title}")
                workplace.clear()
                workplace.save(seed=1 if isinstance(found, TextIds) else (seed or 0) + 1)
        self._finish(matrix, workplace)

    def _plan(self, rows: int, numbers: Mapping[str, Any] | None) -> Plan:
        known = self.count if self.nodes is None else self.nodes.rows()
        n = numbers["n"] if numbers else min(known if known is not None else rows // 8 + 1, MOST_NODES)
        features = (
            0 if self.features is None or not Path(self.features).exists() else Path(self.features).stat().st_size
        )
        features += sum(file.stat().st_size for file in self.columns.files if file.exists())
        if self.nodes is not None:
            features += sum(4 * file.stat().st_size for file in self.nodes.files) // 2
        return Plan(
            edges=rows,
            entries=rows * (1 if self.columns.directed else 2),
            weighted=self.columns.weight is not None,
            memory=self.memory,
            nodes=n,
            feature_bytes=features,
            text=bool(numbers and numbers.get("seed") is not None),
        )

    def _numbered(self, workplace: Workplace, rows: int) -> MatrixBuild:
        """Number the nodes, unless that is done, and return what builds the matrix of them."""
        numbers = workplace.state.get("numbers")
        if numbers is None:
            numbers = self._numbers(workplace, rows)
            workplace.save(numbers=numbers)
        plan = self._plan(rows, numbers)
        plan.check_disk(workplace.path, workplace.size())
        may_miss = self.nodes is not None and self.columns.unknown_nodes != "add"
        lookup = open_lookup(numbers, workplace.path, may_miss=may_miss)
        return MatrixBuild(self.edges, self.columns, lookup, plan, workplace)

    def _numbers(self, workplace: Workplace, rows: int) -> dict[str, Any]:
        if self.count is not None:
            return {"kind": "position", "n": self.count, "known": self.count, "arrays": {}}
        seed = workplace.state.get("seed")
        add = self.columns.unknown_nodes == "add"
        total = (0 if self.nodes is None else self.nodes.rows()) + (rows if self.nodes is None or add else 0)
        plan = changed(self._plan(rows, None), text=seed is not None)
        with show_stage(self.progress, "Numbering nodes", total) as tick:
            ends = {"source": self.columns.source, "target": self.columns.target}
            ids = None if self.nodes is None else _only(self.nodes, self.columns.id_column)
            numbering = Numbering(
                ids,
                self.columns.id_column,
                self.edges,
                ends,
                add,
                workplace.path,
                workplace.result,
                self.memory,
                plan.rows,
                tick,
            )
            found = numbering.integers() if seed is None else None
            found = numbering.searched(seed) if found is None else found
        if not found["n"]:
            table, _ = next((self.edges if self.nodes is None else self.nodes).tables(1))
            if self.nodes is None:
                table.complain("an edge list with at least one edge, or come with a node table", "no rows")
            table.complain("a node table with at least one node", "no rows")
        return found

    def _written(self, workplace: Workplace) -> None:
        """Write features and labels, unless that is done."""
        if "nodes" in workplace.state:
            return
        numbers = workplace.state["numbers"]
        n, result = numbers["n"], workplace.result
        arrays: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        parts: list[Any] = []
        if self.features is not None:
            parts.append(copy_features(feature_file(self.features, n, self.memory), result))
        if self.labels is not None:
            parts.append(copy_labels(self.labels, n, result))
        if self.nodes is not None:
            passes = (self.columns.label_column is not None) + (self.features is None)
            with show_stage(self.progress, "Features and labels", passes * numbers["known"]) as tick:
                rows = self._plan(0, numbers).rows // 16
                table = NodeTable(
                    self.nodes,
                    self.columns,
                    numbers["known"],
                    n,
                    workplace.path,
                    result,
                    self.memory,
                    max(rows, 2**8),
                    tick,
                )
                parts += [table.labels(), *([table.features()] if self.features is None else [])]
        for some, about in parts:
            arrays |= some
            fields |= about
        recipe = fields.pop("recipe", None)
        workplace.save(nodes={"arrays": arrays, **fields, "recipe": None if recipe is None else recipe.to_json()})

    def _build(self, matrix: MatrixBuild, rows: int) -> None:
        state = matrix.workplace.state
        if "scattered" not in state:
            with show_stage(self.progress, "Reading edges", rows) as tick:
                matrix.scatter(tick)
        if "sorted" not in state:
            with show_stage(self.progress, "Sorting", state["scatter"]["buckets"]) as tick:
                matrix.sort(tick)

    def _finish(self, matrix: MatrixBuild, workplace: Workplace) -> None:
        """Complete the folder and put it in its place."""
        state = workplace.state
        made, nodes = state["matrix"], state["nodes"]
        arrays = {**made["arrays"], **matrix.weights(), **state["numbers"]["arrays"], **nodes["arrays"]}
        entries = made["arrays"]["indices"]["shape"][0]
        names = nodes.get("class_names")
        write_manifest(
            workplace.result,
            arrays,
            directed=self.columns.directed,
            edges=entries if self.columns.directed else (entries + made["loops"]) // 2,
            feature_columns=nodes.get("feature_columns"),
            class_names=None if names is None else tuple(names),
            name=self.name,
            recipe=None if nodes["recipe"] is None else Recipe.from_json(nodes["recipe"]),
        )
        matrix.caution()
        known = state["numbers"]
        if known["n"] > known["known"] and self.nodes is not None:
            self._caution_added(known["n"] - known["known"])
        workplace.move(replace=self.replace)

    def _caution_added(self, count: int) -> None:
        more = f"{counted(count, 'node')} of {self.edges.title}"
        warnings.warn(f"Added {more} that the node table does not have, without features.", stacklevel=5)


def _only(stream: TableStream, column: str) -> TableStream:
    return changed(stream, wanted=frozenset([column]))
