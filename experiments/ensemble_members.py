"""The trainings behind `more_accuracy.py`: members of ensembles on many splits, all that have the same network in one call.

A block is the members of one ensemble on one split. Options that differ only in what is done with the members share a block,
and so do options that choose between alphas; a block is trained once. Runs of all blocks with the same network and
alpha lie on one axis, whatever their training and stopping nodes, and `train` plans how many of them go together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop import APPNP, GAT, GCN, Graph, Split, Stopping, Trained, run_seed, train
from pprop.models import Architecture, Model
from pprop.models.feature_propagation import BootstrappedFP, FeaturePropagation
from pprop.study.run.recipe import Prepared
from pprop.training.self_training import member_seeds
from pprop.training.votes import member_splits

PER_CLASS = 20


@dataclass(frozen=True)
class Network:
    """What is trained; `idf` weights features by log(n / df) before rows are scaled.

    A `kind` other than APPNP is a control, with its published settings: the others are not read.
    """

    alpha: float
    dropout: float = 0.5
    penalty: float = 0.005
    idf: bool = False
    kind: str = "appnp"

    def model(self) -> Model | Architecture:
        if self.kind == "appnp":
            return APPNP(alpha=self.alpha, dropout=self.dropout, penalty=self.penalty)
        return {"gcn": GCN, "gat": GAT}[self.kind]()

    def graph(self, prepared: Prepared) -> Graph:
        return weighted(prepared.graph) if self.idf else prepared.graph


@dataclass(frozen=True)
class Block:
    """The members of an ensemble on a split; `published`: runs with the seeds of the study instead."""

    network: Network
    seed: int
    members: int
    folds: int = 0
    published: bool = False

    def split(self, prepared: Prepared) -> Split:
        return prepared.split(self.seed, PER_CLASS)

    def splits(self, prepared: Prepared) -> list[Split]:
        labels = prepared.graph.labels
        assert labels is not None
        return member_splits(self.split(prepared), labels, self.members, self.folds)

    def first_seed(self) -> int:
        return run_seed(self.seed, 0) % 2**64

    def seeds(self) -> list[int]:
        if self.published:
            return [run_seed(self.seed, init) for init in range(self.members)]
        return member_seeds(self.first_seed(), 0, self.members)


def weighted(graph: Graph) -> Graph:
    """Return the graph with column j of its features times log(n / df_j), df_j being the number of nodes that have it."""
    assert graph.features is not None
    words = sparse.csr_array(graph.features).astype(np.float64)  # pyright: ignore[reportArgumentType]  dense or sparse
    having = np.bincount(words.indices, minlength=words.shape[1])
    words.data *= np.log(graph.n_nodes / np.maximum(having, 1))[words.indices]
    return graph.replace(features=words)


def train_blocks(
    blocks: Sequence[Block],
    prepared: Prepared,
    stopping: Stopping,
    device: str,
    finished: Callable[[Block, NDArray[np.float32]], None],
) -> Trained | None:
    """Train blocks of one network in one call; `finished` gets the logits (m, n, c) of each as its last member ends.

    Bootstrapped feature propagation (kind ``"tuned_fp"``) is fitted member by member, and returns None.
    """
    if blocks[0].network.kind == "tuned_fp":
        return _fit_blocks(blocks, prepared, device, finished)
    found: dict[int, NDArray[np.float32]] = {}

    def ended(trained: Trained, runs: NDArray[np.int64]) -> None:
        found.update(zip(runs.tolist(), trained.logits, strict=True))
        begin = 0
        for block in blocks:
            own = range(begin, begin + block.members)
            begin += block.members
            if all(run in found for run in own):
                finished(block, np.stack([found.pop(run) for run in own]))

    network = blocks[0].network
    return train(
        network.model(),
        network.graph(prepared),
        [split for block in blocks for split in block.splits(prepared)],
        seeds=[seed for block in blocks for seed in block.seeds()],
        stopping=stopping,
        device=device,
        verbose=True,
        on_end=ended,
    )


def _fit_blocks(
    blocks: Sequence[Block], prepared: Prepared, device: str, finished: Callable[[Block, NDArray[np.float32]], None]
) -> None:
    model, labels = FeaturePropagation(prepared.graph, BootstrappedFP(), device), prepared.graph.labels
    assert labels is not None
    for block in blocks:
        logits: list[NDArray[np.float32]] = []
        for split in block.splits(prepared):
            model.fit(split.train, labels[split.train], stopping=(split.stopping, labels[split.stopping]))
            logits.append(model.record_.log_shares.astype(np.float32))
        finished(block, np.stack(logits))
