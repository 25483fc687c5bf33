"""What all classifiers share: nodes as samples, predicting, saving, other graphs."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, Self, cast

from sklearn.utils.validation import check_is_fitted

from pprop._validate import describe, name_methods, reject, warn
from pprop.estimators.features import TrainedFeatures, check_shape, feature_shape
from pprop.estimators.fitted import (
    AnyModel,
    FittedModel,
    FittedScores,
    check_same_graph,
)
from pprop.estimators.fitting import NodeFit
from pprop.estimators.saving import save_model
from pprop.estimators.scores import NodeScores
from pprop.estimators.source import GraphSource
from pprop.graph import Graph
from pprop.graph.features.recipe import Recipe


class NodeClassifier(FittedModel, NodeFit):
    """A classifier whose samples are the nodes of one graph."""

    # Makes the model from the settings that its arguments name.
    _kind: ClassVar[Callable[..., AnyModel]]

    def _model(self, values: dict[str, Any]) -> AnyModel:
        """Return the model with these settings, which were validated."""
        return self._kind(**{name: values[name] for name in inspect.signature(self._kind).parameters})

    @property
    def recipe_(self) -> Recipe | None:
        """How the columns of a table became features; None where the graph came with a matrix."""
        check_is_fitted(self)
        return self.graph_.recipe

    def on(self, graph: Graph) -> Self:
        """Return the fitted model on another graph with the same features, such as one with nodes that came later.

        Nothing is trained: the network predicts every node of the graph, and the predictions are spread there. Features
        are found by name, where both graphs have names, and scaled as in the training. Read the tables of another graph
        with ``feature_columns=model.recipe_``.

        Parameters
        ----------
        graph
            Its labels are not read.

        Returns
        -------
        A new classifier, whose ``graph_changed_`` says whether the graph is another one. This one stays as it is.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
        >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
        >>> model = pprop.APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
        >>> model = model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5)
        >>> pair = pprop.Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=sp.eye_array(5).tocsr()[[0, 1]])
        >>> model.on(pair).predict()
        array(['left', 'left'], dtype='<U5')
        """
        check_is_fitted(self)
        name = f"{type(self).__name__}.on"
        if not isinstance(graph, Graph):
            reject("graph", name, "a Graph", describe(graph))
        used = TrainedFeatures.of(self.graph_).matched(graph, name)
        check_shape(used, feature_shape(self.graph_), name)
        ours, theirs = ({"directed": one.directed, "weighted": one.weights is not None} for one in (self.graph_, used))
        for what, here in theirs.items():
            if here != ours[what]:
                which = f"is {what}" if here else f"is not {what}"
                warn(f"The graph given to {name} {which}, unlike that of the training.")
        other = copy.copy(self)
        other.graph, other.fitted_ = used, self.fitted_.on(used, name)
        return other

    def save(
        self,
        path: str | PathLike[str],
        *,
        source: GraphSource | None = None,
        accuracy: float | None = None,
        test_nodes: int | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the fitted model to a folder: weights, a readable manifest and a model card. Read it with `pprop.load`.

        The folder appears when it is complete, or not at all. Nothing is pickled: of a `predictor` the weights are
        saved and the code is not, and of a RandomState the seed that it drew.

        Parameters
        ----------
        path
            The folder, which must not exist.
        source
            Where the graph can be read again. None: the dataset of the graph's name, if there is one.
        accuracy
            Test accuracy to state in the manifest. None if unknown.
        test_nodes
            On how many nodes it was measured; with them the model card states its 95 % interval.
        overwrite
            Replace an existing folder, if there is nothing but a pprop model in it.
        """
        check_is_fitted(self)
        check_same_graph(self)
        tested = None if accuracy is None else (accuracy, test_nodes)
        save_model(self.fitted_, path, source=source, tested=tested, overwrite=overwrite)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as they were given, without graph and predictor: a later set_params does not change them."""
        settings = cast("dict[str, Any]", self.get_params(deep=False))
        return {name: value for name, value in settings.items() if name not in ("graph", "predictor")}


name_methods("", FittedScores, NodeScores, FittedModel, NodeFit, NodeClassifier)  # a model has another class
