"""Why GAT gains nothing from the stopping labels on Cora-ML: which classes it predicts, with equal and with unequal labels.

    export PPROP_DATA=folder
    python experiments/gat_rare_class.py --splits 5 | tee results/gat_rare_class.txt

One run on each validation split, which holds no test nodes. The 400 stopping labels that `folds` adds come in the shares of the
graph's classes; "equal part" is as many of each class as the rarest has among them. All but the first stop on one fold.
"""

from __future__ import annotations

import argparse

import numpy as np
from ensemble_members import PER_CLASS
from ensembles import FOLDS

from pprop import GAT, GCN, VALIDATION_SEEDS, Split, run_seed, train
from pprop.models import Architecture
from pprop.study.run.recipe import Datasets
from pprop.training.votes import member_splits


def main() -> None:
    """Train all cases on the same splits and print their accuracy and the recall of each class."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--dataset", default="cora_ml")
    how = parser.parse_args()
    prepared, seeds = Datasets().prepare(how.dataset, "validation"), VALIDATION_SEEDS[: how.splits]
    labels = prepared.graph.labels
    assert labels is not None
    classes = np.arange(prepared.graph.n_classes)

    plain = [prepared.split(seed, PER_CLASS) for seed in seeds]
    folds = [member_splits(split, labels, 1, FOLDS)[0] for split in plain]

    def equal_part(split: Split, fold: Split) -> Split:
        more = [one[labels[one] == k] for one in [np.setdiff1d(fold.train, split.train)] for k in classes]
        few = min(map(len, more))
        return Split(np.concatenate([split.train, *(one[:few] for one in more)]), fold.stopping, split.evaluation)

    equal = [equal_part(split, fold) for split, fold in zip(plain, folds, strict=True)]
    cases: list[tuple[str, Architecture, list[Split]]] = [
        ("GAT, 20 labels a class", GAT(), plain),
        ("GAT, folds", GAT(), folds),
        ("GAT, folds, equal part", GAT(), equal),
        ("GAT, folds, a tenth of the penalty", GAT(penalty=GAT().penalty / 10), folds),
        ("GCN, folds", GCN(), folds),
    ]
    print("| runs | training labels of each class | accuracy | recall of each class |\n|---|---|---|---|")
    for title, model, splits in cases:
        trained = train(model, prepared.graph, splits, seeds=[run_seed(seed, 0) for seed in seeds])
        right = [one.argmax(axis=1) == labels for one in trained.logits]
        own = [(good[split.evaluation], labels[split.evaluation]) for good, split in zip(right, plain, strict=True)]
        recall = np.mean([[good[truth == k].mean() for k in classes] for good, truth in own], axis=0)
        counts = np.mean([np.bincount(labels[split.train], minlength=len(classes)) for split in splits], axis=0)
        taught, found = (" ".join(f"{one:.0f}" for one in values) for values in (counts, 100 * recall))
        accuracy = 100 * np.mean([good.mean() for good, _ in own])
        print(f"| {title} | {taught} | {accuracy:.2f} | {found} |", flush=True)


if __name__ == "__main__":
    main()
