"""What is trained: the checked arguments of `train`, as tensors on a device, bound to a backend."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pprop._errors import InputError, Remedy
from pprop._validate import check_array, check_int, check_positions, describe, reject
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.graph.attributes import check_labels
from pprop.graph.rows import NodeNames, in_node_order
from pprop.kernels import Kernels
from pprop.kernels.contract import LabelledNodes
from pprop.kernels.losses import CROSS_ENTROPY, LOGISTIC
from pprop.scoring import Scoring
from pprop.settings import DEVICE
from pprop.training.loop import Stopping


def node_sets(
    sets: list[NDArray[np.int64]],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
    targets: NDArray[np.float32] | None = None,
) -> LabelledNodes:
    """Stack one set of nodes per run, of any sizes, with their labels and, if all nodes (n,) have one, their weights.

    With `targets` (n, c), the numbers of an elementwise loss, all nodes have a weight.

    Examples
    --------
    >>> node_sets([np.array([2, 0]), np.array([1])], np.array([5, 6, 7])).labels
    tensor([[ 7,  5],
            [ 6, -1]])
    """
    width = max(len(nodes) for nodes in sets)
    stacked = np.zeros((len(sets), width), dtype=np.int64)
    known = np.full((len(sets), width), -1, dtype=np.int64)
    for run, nodes in enumerate(sets):
        stacked[run, : len(nodes)] = nodes
        known[run, : len(nodes)] = labels[nodes]
    sets_of_nodes = torch.from_numpy(stacked), torch.from_numpy(known)
    if targets is not None:
        weights = np.ones(len(labels)) if weights is None else weights
        numbers = torch.from_numpy(targets[stacked])
    else:
        numbers = None
    if weights is None:
        return LabelledNodes(*sets_of_nodes)
    much = np.where(known >= 0, weights[stacked], 0.0)
    _, power = np.frexp(
        much.max(axis=1, keepdims=True)
    )  # a power of two changes no bit of a mean, and float32 holds it
    return LabelledNodes(*sets_of_nodes, torch.from_numpy(np.ldexp(much, -power).astype(np.float32)), numbers)


@final
@dataclass(frozen=True)
class Task:
    """Everything a training needs, checked and bound to a backend.

    Attributes
    ----------
    graph, kernels
        The graph and the backend.
    seeds
        One signed 64-bit seed per run.
    n_classes
        Number of classes, c.
    train, stopping
        Labelled nodes of every run.
    rule
        When a run ends.
    rate
        Adam's learning rate.
    device
        Where it is computed; the labelled nodes are there.
    alphas
        One teleport probability per run, where runs differ in it; None: that of the model.
    scoring
        What early stopping watches in place of the accuracy; None: nothing else.
    loss
        What the outputs are compared with.
    """

    graph: Graph
    kernels: Kernels
    seeds: tuple[int, ...]
    n_classes: int
    train: LabelledNodes
    stopping: LabelledNodes
    rule: Stopping
    rate: float
    device: torch.device
    alphas: tuple[float, ...] | None = None
    scoring: Scoring | None = None
    loss: str = CROSS_ENTROPY

    def compare(self, outputs: Tensor, nodes: LabelledNodes) -> tuple[Tensor, Tensor, Tensor]:
        """Return loss (R,), how good the outputs (R, m, c) of some nodes are, (R,), and the gradient (R, m, c).

        How good is the number, or weight, of right answers, or what `Kernels.elementwise_loss` says.
        """
        if nodes.targets is None:
            return self.kernels.cross_entropy(outputs, nodes.labels, nodes.weights)
        return self.kernels.elementwise_loss(outputs, nodes.targets, nodes.weights, self.loss)

    @property
    def seed_tensor(self) -> Tensor:
        """The seeds on the device, shape (R,), int64."""
        return torch.tensor(self.seeds, dtype=torch.int64).to(self.device)

    def shown_labels(self) -> Tensor:
        """Return the labels of the training nodes, (n,), -1 for all others, for a model that sees them.

        All runs have the same training nodes then.
        """
        nodes, labels = self.train.nodes, self.train.labels
        if not bool((nodes == nodes[:1]).all() and (labels == labels[:1]).all()):
            reject("splits", "train", "one split for all runs of a model that sees labels", "several")
        shown = torch.full((self.graph.n_nodes,), -1, dtype=torch.int64, device=nodes.device)
        shown[nodes[0]] = labels[0]  # without padding, as all runs have as many
        return shown

    def part(self, runs: slice) -> Task:
        """Return the same training for some of the runs."""
        return replace(
            self,
            seeds=self.seeds[runs],
            train=self.train.keep(runs),
            stopping=self.stopping.keep(runs),
            alphas=None if self.alphas is None else self.alphas[runs],
        )


def check_device(device: object) -> torch.device:
    """Return the torch device of that name: the CPU, or torch's current GPU."""
    try:
        place = torch.device(device)  # pyright: ignore[reportArgumentType]  what is no device is refused below
    except (RuntimeError, TypeError):
        reject("device", "train", "a torch device such as 'cpu' or 'cuda'", describe(device))
    if place.type == "cuda" and not torch.cuda.is_available():
        cpu = Remedy(settings={"device": DEVICE.default})
        raise InputError(f"The device {str(place)!r} needs a CUDA GPU, and torch sees none here.", remedies=[cpu])
    if place.type not in ("cpu", "cuda"):
        reject("device", "train", "'cpu' or 'cuda'", describe(device))
    if place.type == "cpu":
        return place
    current = torch.device("cuda", torch.cuda.current_device())
    if place.index not in (None, current.index):
        raise InputError(
            f"Kernels run on torch's current GPU, {str(current)!r}. To train on {str(place)!r}, call "
            f"torch.cuda.set_device({place.index}) first, or set CUDA_VISIBLE_DEVICES."
        )
    return current


def check_runs(splits: object, seeds: object, n_nodes: int) -> tuple[tuple[Split, ...], tuple[int, ...]]:
    """Return one split and one seed per run."""
    run_splits = (splits,) if isinstance(splits, Split) else _elements(splits)
    if not run_splits or not all(isinstance(split, Split) for split in run_splits):
        reject("splits", "train", "a Split or a sequence of at least one", describe(splits))
    run_seeds = (seeds,) if isinstance(seeds, numbers.Number) else _elements(seeds)
    if not run_seeds:
        reject("seeds", "train", "an integer or a sequence of at least one", describe(seeds))
    if len(run_splits) == 1:
        run_splits = run_splits * len(run_seeds)
    if len(run_seeds) == 1:
        run_seeds = run_seeds * len(run_splits)
    if len(run_seeds) != len(run_splits):
        reject("seeds", "train", f"one seed, or {len(run_splits)} of them, one per split", f"{len(run_seeds)} seeds")
    for split in set(run_splits):
        for name in ("train", "stopping", "evaluation"):
            check_positions(getattr(split, name), f"splits.{name}", "train", n_nodes=n_nodes)
    checked = tuple(check_int(seed, "seeds", "train", low=-(2**63), high=2**64 - 1) for seed in run_seeds)
    return cast("tuple[Split, ...]", run_splits), checked


def _elements(value: object) -> tuple[object, ...]:
    return tuple(cast("Iterable[object]", value)) if isinstance(value, Iterable) else ()


def check_split_labels(
    graph: Graph, labels: ArrayLike | None, splits: tuple[Split, ...], rule: Stopping
) -> tuple[NDArray[np.int64], int]:
    """Return the labels, -1 for all nodes but training and stopping nodes, and the number of classes.

    Stopping nodes may be missing where `rule` does not stop early.
    """
    n = graph.n_nodes
    if labels is None and graph.labels is None:
        raise InputError("train needs labels, and this graph has none. Pass labels=..., one class index per node.")
    ordered = in_node_order(labels, NodeNames.of(graph), "labels", "train")
    given = graph.labels if labels is None else check_labels(ordered, n, graph.class_names, "train")
    assert given is not None
    known = np.full(n, -1, dtype=np.int64)
    for split in splits:
        for name, nodes in (("train", split.train), ("stopping", split.stopping)):
            if len(nodes) == 0 and name == "stopping" and rule.patience is None:
                continue
            if len(nodes) == 0:
                remedy = "Stopping(patience=None) needs no stopping nodes." if name == "stopping" else ""
                reject(f"splits.{name}", "train", "at least one node", "none", remedy=remedy)
            if given[nodes].min() < 0:
                bad = nodes[given[nodes] < 0][0]
                reject("labels", "train", f"known (0 or more) for every {name} node", f"{given[bad]} for node {bad}")
            known[nodes] = given[nodes]
    return known, max(graph.n_classes, int(known.max()) + 1)


def check_split_targets(
    graph: Graph, labels: ArrayLike | None, splits: tuple[Split, ...], rule: Stopping, loss: str
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return which nodes have a target, 0, and which have none, -1, and the targets (n, c), of training and stopping nodes alone.

    Unknown entries are NaN. Stopping nodes may be missing where `rule` does not stop early.
    """
    n = graph.n_nodes
    expected = f"numbers of shape ({n},) or ({n}, c), NaN where unknown, for the loss {loss!r}"
    array = check_array(in_node_order(labels, NodeNames.of(graph), "labels", "train"), "labels", "train", expected)
    if array.ndim not in (1, 2) or len(array) != n or array.dtype.kind not in "fiub":
        reject("labels", "train", expected, array)
    given = array.reshape(n, -1).astype(np.float32)
    found, known = np.full(given.shape, np.nan, np.float32), np.full(n, -1, dtype=np.int64)
    for split in splits:
        for name, nodes in (("train", split.train), ("stopping", split.stopping)):
            if len(nodes) == 0 and name == "stopping" and rule.patience is None:
                continue
            if len(nodes) == 0:
                remedy = "Stopping(patience=None) needs no stopping nodes." if name == "stopping" else ""
                reject(f"splits.{name}", "train", "at least one node", "none", remedy=remedy)
            mine = given[nodes]
            if np.isinf(mine).any():
                reject("labels", "train", expected, f"inf for node {nodes[np.isinf(mine).any(axis=1)][0]}")
            if (nothing := np.isnan(mine).all(axis=1)).any():
                reject("labels", "train", f"known for every {name} node", f"NaN for node {nodes[nothing][0]}")
            if loss == LOGISTIC and not np.isin(mine[~np.isnan(mine)], (0, 1)).all():
                wrong = nodes[~(np.isin(mine, (0, 1)) | np.isnan(mine)).all(axis=1)][0]
                reject(
                    "labels", "train", "0 or 1 for each label of a node, NaN where unknown", f"others for node {wrong}"
                )
            known[nodes], found[nodes] = 0, mine
    return known, found


def check_weights(weights: ArrayLike | None, graph: Graph, splits: tuple[Split, ...]) -> NDArray[np.float64] | None:
    """Return one weight per node, shape (n,), or None.

    Only those of training and stopping nodes are read: finite, not negative, and not all zero in a set.
    """
    if weights is None:
        return None
    n_nodes = graph.n_nodes
    expected = f"an array of {n_nodes} numbers, one per node"
    ordered = in_node_order(weights, NodeNames.of(graph), "weights", "train")
    array = check_array(ordered, "weights", "train", expected)
    if array.shape != (n_nodes,) or array.dtype.kind not in "fiu":
        reject("weights", "train", expected, array)
    known = np.zeros(n_nodes)
    for split in splits:
        for name, nodes in (("train", split.train), ("stopping", split.stopping)):
            mine = array[nodes].astype(np.float64)
            wrong = np.flatnonzero(~(np.isfinite(mine) & (mine >= 0)))
            if wrong.size:
                got = f"{mine[wrong[0]]} for node {nodes[wrong[0]]}"
                reject("weights", "train", f"finite and not negative for every {name} node", got)
            if len(nodes) and not mine.any():
                reject("weights", "train", f"above 0 for at least one {name} node", "0 for all of them")
            known[nodes] = mine
    return known
