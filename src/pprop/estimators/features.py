"""What the features of a training graph were, by name: kept by a fitted model, saved with it, and asked of other graphs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, cast, final

import numpy as np

from pprop._errors import FormatError, InputError, MismatchError
from pprop._validate import describe, listed, nearest, reject
from pprop.graph import Graph
from pprop.graph.features.encoders import Encoder
from pprop.graph.features.recipe import MOST_NAMED, Recipe
from pprop.graph.features.scaling import Scaling
from pprop.graph.files import parse_json

FILE = "features.json"


def feature_shape(graph: Graph) -> list[int]:
    """Return the shape of one node's features."""
    return [] if graph.feature_shape is None else [int(size) for size in graph.feature_shape[1:]]


def shape_text(shape: list[int]) -> str:
    """Return what is said of the shape of one node's features.

    >>> shape_text([1]), shape_text([3, 2]), shape_text([])
    ('1 feature', '3 x 2 features', 'no features')
    """
    return f"{' x '.join(str(size) for size in shape)} feature{'s' * (shape != [1])}" if shape else "no features"


def check_shape(graph: Graph, shape: list[int], function: str) -> None:
    """Refuse a graph whose features are of another shape than those of the training."""
    if feature_shape(graph) != shape:
        got = f"one with {shape_text(feature_shape(graph))}"
        expected = f"a graph with {shape_text(shape)} per node, as in the training"
        reject("graph", function, expected, got, error=partial(MismatchError, subject="features"))


def scaled_alike(graph: Graph, scaling: Scaling | None, function: str) -> Graph:
    """Return a graph with its features scaled as in the training; refuse one that is scaled otherwise already."""
    if scaling is None:
        return graph
    if graph.scaling is not None and graph.scaling != scaling:
        expected = "a graph whose features are as given, or scaled as in the training"
        remedy = "Make it without Graph.scaled: the model scales the features."
        reject("graph", function, expected, "one scaled otherwise", remedy=remedy)
    return graph.scaled(scaling)


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
        """Return a graph with its features in the order of the training, found by name; refuse one missing or new.

        A graph without names is taken as it is, if it has as many features and those of the training came as a matrix.

        >>> import numpy as np, scipy.sparse as sp
        >>> other = Graph.from_scipy(sp.csr_array((1, 1)), features=np.array([[7.0, 9.0]]), feature_names=["b", "a"])
        >>> TrainedFeatures(names=("a", "b")).matched(other, "load").features
        array([[9., 7.]])
        """
        names, recipe = graph.feature_names, graph.recipe
        if self.recipe is not None and self.names and names is None and graph.features is not None:
            expected = "a graph whose features have names, as the columns of the training had"
            remedy = "Read its table with feature_columns=model.recipe_, or give it feature_names."
            reject("graph", function, expected, "one with features without names", remedy=remedy)
        if self.names is None or names is None:
            return graph
        if self.recipe is not None and recipe is not None:
            _check_columns(self.recipe, recipe, function)
        ours, theirs = set(self.names), set(names)
        missing, new = (
            [name for name in one if name not in other] for one, other in ((self.names, theirs), (names, ours))
        )
        if missing or new:
            it = "it" if len(new) == 1 else "them"
            got, remedy = f"one with {listed(new, MOST_NAMED)}", f"Leave {it} out, or train again with {it}."
            if missing:
                hints = dict.fromkeys(nearest(name, new) for name in missing)
                got, remedy = f"one without {listed(missing, MOST_NAMED)}", " ".join(filter(None, hints))
            reject("graph", function, "a graph with the features of the training", got, remedy=remedy)
        if names == self.names:
            return graph
        if len(ours) < len(self.names) or len(theirs) < len(names):
            expected = "a graph with the features in the order of the training, as two have the same name"
            reject("graph", function, expected, "one in another order")
        features: Any = graph.features
        at = {name: position for position, name in enumerate(names)}
        order = np.array([at[name] for name in self.names])
        fields: dict[str, Any] = {"recipe": self.recipe, "scaling": graph.scaling}
        return graph.replace(features=features[:, order], feature_names=self.names, **fields)

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
    def from_content(cls, content: bytes) -> TrainedFeatures:
        """Read the content of the file, trusting nothing in it; raise FormatError for what is wrong."""
        try:
            value = parse_json(content)
        except ValueError as error:
            raise FormatError(f"{FILE} is no valid JSON") from error
        found = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        if set(found) != {"names", "recipe"}:
            raise FormatError(f"{FILE} does not have a recipe and names")
        names, entry = found["names"], found["recipe"]
        if entry is not None:
            recipe = Recipe.from_json(entry)
            return cls(recipe, recipe.feature_names or None)
        given = cast("list[object]", names) if isinstance(names, list) else []
        texts = tuple(name for name in given if isinstance(name, str))
        if list(texts) != found["names"]:
            raise FormatError(f"{FILE} has {describe(found['names'])} as names")
        return cls(None, texts)


def _check_columns(ours: Recipe, theirs: Recipe, function: str) -> None:
    """Refuse a graph whose columns became other features than those of the training."""
    before, now = ours.encoders, theirs.encoders
    differ: dict[str, str] = {}
    for name in [*before, *now]:
        one, other = before.get(name), now.get(name)
        if one is None or other is None or not _alike(one, other):
            was, here = ("not used" if encoder is None else encoder.summary for encoder in (one, other))
            differ[name] = f"{here} and {was}"
    if not differ:
        return
    names = listed([*differ], MOST_NAMED)
    what = f"column {names}" if len(differ) == 1 else f"columns {names}"
    said = [how if len(differ) == 1 else f"{name!r}: {how}" for name, how in [*differ.items()][:MOST_NAMED]]
    raise InputError(
        f"The {what} became other features in the graph given to {function} than in that of the training "
        f"({'; '.join(said)}). Read the graph with feature_columns=model.recipe_."
    )


def _alike(one: Encoder, other: Encoder) -> bool:
    """Whether features of the same name mean the same: words, rarer values and what fills missing cells are fitted."""
    measured = one.kind == other.kind and one.kind in ("number", "boolean", "date", "embedding")
    return one == other or (measured and not one.missing and not other.missing)
