"""A mean of several models is served; its predictions are not explained, and its graph is not edited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server is an extra")

from tests.serve.serving import CLASSES, planted

from pprop import InputError, LabelPropagationClassifier
from pprop.estimators.blend import BlendClassifier
from pprop.serve.live import LiveHolder
from pprop.serve.served import Served


def test_a_mean_of_several_models_is_served_and_takes_no_edits(tmp_path: Path) -> None:
    graph = planted()
    assert graph.labels is not None
    known = np.arange(0, graph.n_nodes - 3, 4)
    members = [LabelPropagationClassifier(graph, alpha=alpha) for alpha in (0.1, 0.3)]
    blend = BlendClassifier(graph, members=members).fit(known, np.array(CLASSES)[graph.labels[known]])
    served = Served(blend.fitted_, "a blend")
    card = served.card()
    assert (card["explains"], card["spreads"], card["training_nodes"]) == (False, False, len(known))
    answer = served.view.prediction(1, served.view.default)
    assert answer["predicted"] == blend.predict([1])[0]
    with pytest.raises(InputError):
        LiveHolder(served, tmp_path / "edits.log")
