"""What the features of a training graph were, by name: kept by a fitted model, saved with it, and asked of other graphs."""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, final

import numpy as np

from pprop._errors import FormatError, InputError
from pprop._validate import describe, reject
from pprop.graph import Graph
from pprop.graph.files import read_json
from pprop.graph.recipe import Recipe

FILE = "features.json"


def feature_shape(graph: Graph) -> list[int]:
    """Return the shape of one node's features."""
    return [] if graph.features is None else [int(size) for size in graph.features.shape[1:]]


@final
@dataclass(frozen=True)
class TrainedFeatures:
    """The features that a model learned from.

    Attributes
    ----------
    recipe
        How they were made from the columns of a table; None where they came as a matrix.
    names
        Their names, f of them; None where they have none.
    """

    recipe: Recipe | None = None
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, graph: Graph) -> TrainedFeatures:
        """Return what a graph says about its features."""
        return cls(graph.recipe, graph.feature_names)

    def matched(self, graph: Graph, function: str) -> Graph:
        """Return a graph with its features in the order of the training, found by name; refuse it where one is missing.

        A graph without names is taken as it is, if it has as many features.

        >>> import numpy as np, scipy.sparse as sp
        >>> other = Graph.from_scipy(sp.csr_array((1, 1)), features=np.array([[7.0, 9.0]]), feature_names=["b", "a"])
        >>> TrainedFeatures(names=("a", "b")).matched(other, "load").features
        array([[9., 7.]])
        """
        theirs, recipe = graph.feature_names, graph.recipe
        if self.names is None or theirs is None:
            return graph
        if self.recipe is not None and recipe is not None and recipe != self.recipe and not self._plain:
            raise InputError(
                f"The features of this graph were made from its columns by another recipe than those of the model given to "
                f"{function}: its words and categories are others. Read it with feature_columns=model.recipe_."
            )
        missing = [name for name in self.names if name not in set(theirs)]
        if missing:
            near = difflib.get_close_matches(missing[0], theirs, n=1)
            new = near or [name for name in theirs if name not in set(self.names)][:1]
            remedy = f"It has {new[0]!r}, which the training had not." if new else ""
            expected = f"a graph with the feature {missing[0]!r}, as in the training"
            reject("graph", function, expected, "one without it", remedy=remedy)
        if theirs == self.names:
            return graph
        features: Any = graph.features
        at = {name: position for position, name in enumerate(theirs)}
        order = np.array([at[name] for name in self.names])
        return graph.replace(features=features[:, order], feature_names=self.names, recipe=self.recipe)

    @property
    def _plain(self) -> bool:
        """Whether features of the same name mean the same under any recipe: all but words, whose weights are fitted."""
        return self.recipe is None or all(column.kind != "text" for column in self.recipe.columns)

    def content(self) -> bytes | None:
        """Return the content of the file; None where there is nothing to say."""
        if self.recipe is None and self.names is None:
            return None
        recipe = None if self.recipe is None else self.recipe.to_json()
        names = None if self.names is None or self.recipe is not None else list(self.names)
        return (json.dumps({"names": names, "recipe": recipe}, ensure_ascii=False, indent=1) + "\n").encode(
            "utf-8", "surrogatepass"
        )

    @classmethod
    def read(cls, folder: Path) -> TrainedFeatures:
        """Read the file in the folder of a model, trusting nothing in it; raise FormatError for what is wrong."""
        if not os.path.lexists(folder / FILE):
            return cls()
        try:
            content = read_json(folder / FILE)
        except (OSError, ValueError) as error:
            raise FormatError(f"{FILE} cannot be read ({error})") from error
        found = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        if set(found) != {"names", "recipe"}:
            raise FormatError(f"{FILE} does not have a recipe and names")
        names, entry = found["names"], found["recipe"]
        if entry is not None:
            recipe = Recipe.from_json(entry)
            return cls(recipe, recipe.feature_names)
        listed = cast("list[object]", names) if isinstance(names, list) else [None]
        if not all(isinstance(name, str) for name in listed):
            raise FormatError(f"{FILE} has {describe(names)} as names")
        return cls(None, tuple(str(name) for name in listed))
