"""A predictor of one's own: a small convolutional network on images, trained end to end through the propagation.

    python examples/digits_cnn.py

The nodes are the 1797 images of scikit-learn's digits, 8 x 8 pixels each; every image is joined to its nearest
neighbours. Features are a tensor whose first axis is the node, here (n, 1, 8, 8), and go to the module as they are. Two
images of each digit train, two more stop the training; the network alone is trained on the same ones, for comparison.
"""

from __future__ import annotations

import argparse
from typing import Any, cast

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
from torch import nn

import pprop

NEIGHBOURS, TRAIN, STOPPING = 8, 2, 2


def digits_graph() -> pprop.Graph:
    """Return the graph of the images: an edge where either of two is among the nearest neighbours of the other."""
    digits: Any = cast("Any", load_digits)()
    near: Any = cast("Any", kneighbors_graph)(digits.data, NEIGHBOURS)
    images = digits.images[:, None].astype(np.float32) / 16
    return pprop.Graph.from_scipy(near.maximum(near.T), features=images, labels=digits.target, name="digits")


def network() -> nn.Module:
    """Return a network from images (n, 1, 8, 8) to logits (n, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(64, 10),
    )


def accuracies(max_epochs: int, seed: int = 0) -> dict[str, float]:
    """Return the test accuracy of the network alone and of APPNP around it."""
    graph = digits_graph()
    assert graph.labels is not None
    random = np.random.default_rng(seed)
    drawn = [random.permutation(np.flatnonzero(graph.labels == digit)) for digit in range(10)]
    train = np.concatenate([nodes[:TRAIN] for nodes in drawn])
    watched = np.concatenate([nodes[TRAIN : TRAIN + STOPPING] for nodes in drawn])
    test = np.concatenate([nodes[TRAIN + STOPPING :] for nodes in drawn])
    settings: dict[str, Any] = {"predictor": network, "max_epochs": max_epochs, "random_state": seed, "verbose": 1}
    models = {
        "network alone": pprop.MLPNodeClassifier(graph, **settings),
        "APPNP": pprop.APPNPClassifier(graph, alpha=0.1, propagation_dropout=0.0, **settings),
    }
    y = graph.labels
    return {
        name: float(model.fit(train, y[train], stopping=(watched, y[watched])).score(test, y[test]))
        for name, model in models.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-epochs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name, accuracy in accuracies(arguments.max_epochs, arguments.seed).items():
        print(f"{name}: {100 * accuracy:.1f} % of the other images are read right")


if __name__ == "__main__":
    main()
