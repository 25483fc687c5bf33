"""What more accuracy the same labels give: ensembles, self-training, stopping nodes that train, labels reused, chosen alphas.

    export PPROP_DATA=folder
    python experiments/more_accuracy.py --only citeseer cora_ml --splits 10
    python experiments/more_accuracy.py --members 10 --device cuda --minutes 9 --option plain folds folds_spread
    python experiments/more_accuracy.py --splits 20 --members 10 --device cuda --option folds_high --test
    python experiments/more_accuracy.py --table [--after]

Options are measured on validation splits, which hold no test nodes and no test labels, each paired with APPNP (the published
settings, five runs per split, the seeds of the study) on the same splits. Every result is kept in the results file the
moment it is there, and is not computed again: the same command goes on where the last one ended, or where its
``--minutes`` were over. With ``--test`` one option, chosen before, is run on the test splits, once; APPNP's runs there
are those of the study.

All splits of a graph are trained together, and members are trained once for all options that use them
(`ensemble_members.py`): spreading errors costs no training, and choosing an alpha none for an alpha that is there. With
``--rounds`` an ensemble is taught by its own predictions, split by split; each of its rounds is a result: round 0 is the
ensemble alone, "all rounds" the mean over all of them, which is what `APPNPEnsembleClassifier` predicts, "chosen" the
round with the best stopping accuracy. ``--after`` shows what else can be done with the predictions of round 0
(`after_training.py`). Options whose name begins with "folds" train on stopping labels, too; no other does. "spread"
options reuse stopping labels when predicting. "folds_gcn", "folds_gat" and "folds_tuned_fp" are controls: other models, with
their published settings, given the same folds. Bootstrapped feature propagation has no seed, so 5 members, one a fold.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _common import RESULTS, Rows
from accuracy_rows import INITS, MAX_EPOCHS, cell_of, table
from after_training import treatments
from ensemble_members import Block, Network, train_blocks
from ensembles import ALPHAS, CHOSEN, FOLDS, STRENGTH
from numpy.typing import NDArray

from pprop import TEST_SEEDS, VALIDATION_SEEDS, Stopping, Trained
from pprop._process import TimeUp, end_at, remember_interrupts
from pprop.datasets import DATASETS
from pprop.models import Model
from pprop.models.ensemble import Ensemble, mean_log_probabilities, spread_errors
from pprop.study.cell import Seeds, make_cell
from pprop.study.revisions import revision_of
from pprop.study.run.recipe import Datasets, Prepared
from pprop.study.store.pack import Packed
from pprop.training.self_training import SelfTraining, best_of, self_train
from pprop.training.train import TrainOptions
from pprop.training.votes import scores, vote_errors

STUDY = RESULTS / "study.pack"
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "idf": {"idf": True},
    "folds": {"folds": FOLDS},
    "folds_spread": {"folds": FOLDS, "spread": STRENGTH},
    "folds_alphas": {"folds": FOLDS, "alphas": ALPHAS},
    "folds_high": {"folds": FOLDS, "alpha": CHOSEN},
    "folds_light": {"folds": FOLDS, "penalty": 0.001},
    "folds_calm": {"folds": FOLDS, "dropout": 0.2},
    "folds_gcn": {"folds": FOLDS, "kind": "gcn"},
    "folds_gat": {"folds": FOLDS, "kind": "gat"},
    "folds_tuned_fp": {"folds": FOLDS, "kind": "tuned_fp"},
}
"""What differs from: APPNP, the published alpha, features as they are, stopping nodes stop alone. Another kind is a control."""

NETWORK = ("dropout", "penalty", "idf", "kind")


@cache
def published_runs(name: str) -> dict[Seeds, float]:
    """Return the test accuracies of APPNP in the packed study, those of the present revision, so that none is run again."""
    cell = make_cell("appnp", {}, name)
    rows = (row for row in Packed(STUDY) if row.key.config == cell.config)
    return {row.key.seeds: row.accuracy for row in rows if row.key.revision == revision_of(cell.model, row.backend)}


class Work:
    """The rows of one graph that are not there yet, and what has to be trained for them."""

    def __init__(
        self, rows: Rows, name: str, prepared: Prepared, seeds: Sequence[int], how: argparse.Namespace
    ) -> None:
        self.rows, self.name, self.prepared, self.how = rows, name, prepared, how
        assert prepared.graph.labels is not None
        self.labels: NDArray[np.int64] = prepared.graph.labels
        self.began = time.perf_counter()
        self.wanted: dict[tuple[str, int], list[Block]] = {}
        for seed in seeds:
            if not self._has("appnp", seed, max_epochs=how.max_epochs):
                self._want_reference(seed)
            for label in how.option:
                if not self._has(label, seed, members=how.members, rounds=how.rounds, max_epochs=how.max_epochs):
                    self.wanted[label, seed] = self._blocks(OPTIONS[label], seed)

    def _cell(self, label: str, seed: int) -> dict[str, Any]:
        return {"dataset": self.name, "kind": self.prepared.splits, "option": label, "split": seed}

    def _has(self, label: str, seed: int, **more: object) -> bool:
        cell = self._cell(label, seed) | more
        return any(cell.items() <= cell_of(row).items() for row in self.rows.rows)

    def _want_reference(self, seed: int) -> None:
        if self.prepared.splits == "test":
            found = published_runs(self.name)
            self.rows.add(self._cell("appnp", seed) | {"runs": [found[Seeds(seed, init)] for init in range(INITS)]})
        else:
            network = Network(DATASETS[self.name].recommended.alpha)
            self.wanted["appnp", seed] = [Block(network, seed, INITS, published=True)]

    def _blocks(self, settings: Mapping[str, Any], seed: int) -> list[Block]:
        """Return the members that an option needs: one block for each alpha."""
        network = {name: settings[name] for name in NETWORK if name in settings}
        alphas = settings.get("alphas") or [settings.get("alpha", DATASETS[self.name].recommended.alpha)]
        return [Block(Network(alpha, **network), seed, self.how.members, settings.get("folds", 0)) for alpha in alphas]

    def run(self) -> None:
        """Train what is needed, network by network, and write each row as soon as its members are there.

        Self-training goes on from members once all runs of their network have ended.
        """
        blocks = {block: None for needed in self.wanted.values() for block in needed}
        networks = {block.network: None for block in blocks}
        logits: dict[Block, NDArray[np.float32]] = {}

        def ended(block: Block, found: NDArray[np.float32]) -> None:
            logits[block] = found
            self._write(logits)

        for network in networks:
            own = [block for block in blocks if block.network == network]
            sys.stderr.write(f"{self.name}: {sum(block.members for block in own)} runs of {network}\n")
            stopping = Stopping(max_epochs=self.how.max_epochs)
            self._write(logits, train_blocks(own, self.prepared, stopping, self.how.device, ended))

    def _write(self, logits: Mapping[Block, NDArray[np.float32]], trained: Trained | None = None) -> None:
        ready = [key for key, blocks in self.wanted.items() if all(block in logits for block in blocks)]
        for label, seed in ready:
            if self.how.rounds and trained is None and label != "appnp":
                continue
            blocks = self.wanted.pop((label, seed))
            found = [logits[block] for block in blocks]
            if label == "appnp":
                row: dict[str, Any] = {"runs": [self._accuracy(blocks[0], one) for one in found[0]]}
                row |= self._after(blocks[0], found[0])
            else:
                row = self._row(OPTIONS[label], blocks, found, trained)
            self.rows.add(self._cell(label, seed) | {"max_epochs": self.how.max_epochs} | row)

    def _row(
        self,
        settings: Mapping[str, Any],
        blocks: Sequence[Block],
        found: Sequence[NDArray[np.float32]],
        trained: Trained | None,
    ) -> dict[str, Any]:
        row: dict[str, Any] = {"members": self.how.members}
        split, own, best = blocks[0].split(self.prepared), blocks[0].splits(self.prepared), 0
        if len(blocks) > 1:
            judged = [scores(one, own, split.train, self.labels) for one in found]
            best = best_of([score[2] for score in judged], [score[1] for score in judged])
            row |= {"alpha": blocks[best].network.alpha, "alphas": [block.network.alpha for block in blocks]}
            row |= {"alpha stopping": [score[2] for score in judged]}
            row |= {"alpha ensembles": [self._accuracy(blocks[0], mean_log_probabilities(one)) for one in found]}
        block, rounds = blocks[best], [found[best]]
        if self.how.rounds and trained is not None:
            rounds = self._taught(block, replace(trained, logits=found[best]))
        judged = [scores(one, own, split.train, self.labels) for one in rounds]
        chosen = max(range(len(rounds)), key=lambda k: (judged[k][2], -judged[k][1]))
        voted, every = [mean_log_probabilities(one) for one in rounds], np.concatenate(rounds)
        vote = mean_log_probabilities(every)
        row |= {
            "runs": [self._accuracy(block, one) for one in rounds[0]],
            "rounds": [self._accuracy(block, one) for one in voted],
            "stopping": [score[2] for score in judged],
            "chosen": self._accuracy(block, voted[chosen]),
            "all rounds": self._accuracy(block, vote),
        }
        if "spread" in settings:
            known = vote_errors(every, own * len(rounds), self.labels)
            spread = spread_errors(self.prepared.graph, vote, known, settings["spread"])
            row |= {"strength": settings["spread"], "errors spread": self._accuracy(block, spread)}
        ended = round(time.perf_counter() - self.began, 1)  # all that is trained together took so long up to here
        row |= {"ended": ended, "device": self.how.device}
        return row if "spread" in settings or len(blocks) > 1 else row | self._after(block, rounds[0])

    def _taught(self, block: Block, first: Trained) -> list[NDArray[np.float32]]:
        """Return the logits of the members of all rounds."""
        model = block.network.model()
        assert isinstance(model, Model)  # controls have no rounds
        rounds = self_train(
            Ensemble(model, block.members),
            SelfTraining(self.how.rounds, folds=block.folds),
            block.network.graph(self.prepared),
            block.split(self.prepared),
            labels=self.labels,
            seed=block.first_seed(),
            first=first,
            options=TrainOptions(Stopping(max_epochs=self.how.max_epochs), device=self.how.device),
        )
        return [one.trained.logits for one in rounds]

    def _accuracy(self, block: Block, logits: NDArray[Any]) -> float:
        found = logits.argmax(axis=1).astype(np.uint8)
        return self.prepared.scores(found, block.split(self.prepared))["accuracy"]

    def _after(self, block: Block, logits: NDArray[np.float32]) -> dict[str, dict[str, float]]:
        """Return the accuracies of what can be done with the members' predictions, on validation splits only."""
        if self.prepared.splits == "test":
            return {}
        split, own = block.split(self.prepared), block.splits(self.prepared)
        found = treatments(self.prepared.graph, split, own, self.labels, logits)
        return {"after": {name: self._accuracy(block, scored) for name, scored in found.items()}}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--option", nargs="+", default=["plain"], choices=list(OPTIONS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--max-epochs", type=int, default=MAX_EPOCHS, help="of a run, of APPNP, too")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, help="end after so long; the same command goes on from there")
    parser.add_argument("--test", action="store_true", help="run the one option that was chosen on the test splits")
    parser.add_argument("--out", type=Path, default=RESULTS / "more_accuracy.json")
    parser.add_argument("--table", action="store_true", help="print what is in the file, and run nothing")
    parser.add_argument("--after", action="store_true", help="print what can be done after training instead")
    how = parser.parse_args(arguments)
    rows, datasets = Rows(how.out), Datasets()
    if how.test and len(how.option) != 1:
        parser.error("--test runs one option: name it with --option.")
    kind, seeds = ("test", TEST_SEEDS) if how.test else ("validation", VALIDATION_SEEDS)
    try:
        with end_at(None if how.minutes is None else time.monotonic() + 60 * how.minutes), remember_interrupts():
            for name in () if how.table else how.only:
                Work(rows, name, datasets.prepare(name, kind), seeds[: how.splits], how).run()
    except TimeUp:
        sys.stderr.write("The time is over. The same command goes on from here.\n")
    print(table(rows.rows, how.after))


if __name__ == "__main__":
    main()
