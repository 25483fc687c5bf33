"""docs/convert.md: its code runs, and its list of losses is the one in the code."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from pprop.graph import LOSSES

PAGE = (Path(__file__).parents[2] / "docs" / "convert.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_page_lists_the_losses() -> None:
    listed = re.findall(r"^- (networkx|PyG|scipy|pandas): (.*)$", PAGE, flags=re.MULTILINE)
    expected = [(form, text) for form, texts in LOSSES.items() for text in texts or ("nothing is lost.",)]
    assert listed == expected


def test_the_first_block_runs() -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS[0], names)
    assert names["graph"].class_names == ("Mr. Hi", "Officer")


def test_the_recipe_for_dgl_keeps_directions_weights_features_and_labels() -> None:
    source, target = torch.tensor([0, 1, 2, 1]), torch.tensor([1, 0, 1, 2])
    g = SimpleNamespace(
        edges=lambda: (source, target),
        num_nodes=lambda: 4,
        ndata={"feat": torch.eye(4), "label": torch.tensor([0, 1, 0, -1])},
        edata={"weight": torch.tensor([1.0, 2.0, 3.0, 4.0])},
    )
    names: dict[str, Any] = {"g": g}
    exec(BLOCKS[1], names)
    assert repr(names["graph"]) == "Graph(4 nodes, 2 edges, undirected, 4 features, 2 classes)"
    expected = np.zeros((4, 4))
    expected[[1, 0, 1, 2], [0, 1, 2, 1]] = [1, 2, 3, 4]
    assert np.array_equal(names["weighted"].adjacency.toarray(), expected)
    assert sorted(zip(*(end.tolist() for end in names["ends"]), strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
