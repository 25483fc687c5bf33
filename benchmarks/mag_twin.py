"""Claim: a graph of MAG-Scholar's shape is trained on and predicted in 15 minutes within 16 GiB on two cores.

    python benchmarks/mag_twin.py make DIR            # 12.4 M nodes, 346 M entries, 2.8 M feature columns: 13 GB of disk
    python benchmarks/mag_twin.py run DIR             # train, predict all nodes: time, memory, accuracy
    python benchmarks/mag_twin.py small               # a hundredth of it, in memory: full batches, the network alone, mini-batches

A planted graph of 8 classes with words: 40 draws a node (`nonzeros_a_row` says how many are different), of which some are
of the node's class, frequencies nearly 1 / rank. 20 training nodes a class and 500 stopping nodes; alpha 0.2, 256 neighbours, which
were chosen on one split of the hundredth. Memory is RssAnon, and
beside it the pages of mapped files that the process used (RssFile), read every 50 ms; time is from opening the folder to the
logits of all nodes. `network` is an MLP trained on the labelled nodes alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pprop
from _measure import describe_machine, use_threads, warn_if_busy
from _planted import Planted
from _planted_features import WordFeatures
from _planted_files import write_planted
from pprop import scale

NODES, COLUMNS, CLASSES, MEAN_DEGREE = 12_400_000, 2_800_000, 8, 28.2
DRAWS, STRENGTH, POWER, HOMOPHILY = 40, 0.28, 8.0, 0.4
ALPHA, PENALTY, EPOCHS, NEIGHBOURS = 0.2, 5e-4, 1000, 256


def planted(share: float, options: argparse.Namespace) -> Planted:
    """Return the graph, of a share of the full size."""
    words = WordFeatures(round(COLUMNS * share), DRAWS, options.strength, POWER)
    degree, homophily = options.degree, options.homophily
    return Planted(round(NODES * share), degree, homophily=homophily, classes=CLASSES, features=words, seed=1)


def make(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Write the files and build the graph folder; the files are removed."""
    folder.mkdir(exist_ok=True)
    begin = time.perf_counter()
    files = write_planted(planted(options.share, options), folder / "files")
    written = time.perf_counter() - begin
    begin = time.perf_counter()
    graph = pprop.build_graph(
        files.edges,
        folder / "graph",
        nodes=planted(options.share, options).nodes,
        labels=files.labels,
        features=files.features[0],
        progress=True,
    )
    shutil.rmtree(files.folder)
    return {"write_seconds": written, "build_seconds": time.perf_counter() - begin, "entries": graph.n_entries}


def run(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train and predict on the folder."""
    peaks, over = watch()
    begin = time.perf_counter()
    stages: dict[str, float] = {}
    graph = pprop.read_graph(folder / "graph")
    stages["open"] = time.perf_counter() - begin
    split = chosen(graph.labels, 0)
    trained = trained_on(graph, split, options, predict=False)
    stages["train"] = time.perf_counter() - begin
    logits = scale.predict(trained)
    stages["predict"] = time.perf_counter() - begin
    over()
    alone = scale.train(
        pprop.APPNP(1.0, penalty=PENALTY),
        graph,
        split,
        neighbours=1,
        predict=False,
        device=options.device,
        stopping=pprop.Stopping(max_epochs=options.epochs),
    )
    network = accuracy(scale.predict(alone, steps=0).argmax(1), graph.labels, split)
    features: Any = graph.features
    return {
        "seconds": stages["predict"],
        "until": stages,
        "epochs": int(trained.epochs[0]),
        "nonzeros_a_row": features.nnz / graph.n_nodes,
        "entries": graph.n_entries,
        "columns_trained": int(np.count_nonzero(trained.weights[0][0].any(axis=1))),
        "accuracy": accuracy(logits.argmax(1), graph.labels, split),
        "network_accuracy": network,
        "peak_gib": peaks,
    }


def small(options: argparse.Namespace) -> dict[str, Any]:
    """Compare full batches, the network alone and mini-batches on a share of the graph."""
    graph = planted(options.share, options).graph()
    found: dict[str, list[float]] = {"full": [], "network": [], "minibatch": []}
    seconds = dict.fromkeys(found, 0.0)
    how: dict[str, Any] = {"stopping": pprop.Stopping(max_epochs=options.epochs), "device": options.device}
    for seed in range(options.splits):
        split = chosen(graph.labels, seed)
        for name, values in found.items():
            begin = time.perf_counter()
            if name == "minibatch":
                trained = trained_on(graph, split, options, predict=True)
            else:
                model = pprop.APPNP(ALPHA, penalty=PENALTY) if name == "full" else pprop.MLP(penalty=PENALTY)
                trained = pprop.train(model, graph, split, **how)
            values.append(accuracy(trained.logits[0].argmax(1), graph.labels, split))
            seconds[name] += time.perf_counter() - begin
            print(seed, name, values[-1], round(seconds[name], 1), file=sys.stderr, flush=True)
    differences = np.subtract(found["minibatch"], found["full"])
    error = differences.std(ddof=1) / len(differences) ** 0.5 if len(differences) > 1 else None
    means = {name: float(np.mean(values)) for name, values in found.items()}
    about = {"nodes": graph.n_nodes, "entries": graph.n_entries, "splits": options.splits, "seconds": seconds}
    return about | {"accuracy": means, "difference": float(differences.mean()), "standard_error": error}


def trained_on(graph: pprop.Graph, split: pprop.Split, options: argparse.Namespace, *, predict: bool) -> pprop.Trained:
    """Train APPNP in mini-batches."""
    stopping = pprop.Stopping(max_epochs=options.epochs)
    return scale.train(
        pprop.APPNP(ALPHA, penalty=PENALTY),
        graph,
        split,
        neighbours=NEIGHBOURS,
        stopping=stopping,
        predict=predict,
        device=options.device,
        verbose=True,
        progress=False,
    )


def chosen(labels: Any, seed: int) -> pprop.Split:
    """Return 20 training nodes of every class, 500 stopping nodes, and no others."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))[:100_000]
    train = np.concatenate([order[labels[order] == k][:20] for k in range(CLASSES)])
    rest = order[~np.isin(order, train)]
    return pprop.Split(np.sort(train), np.sort(rest[:500]), np.sort(rest[500:1000]))


def accuracy(predicted: Any, labels: Any, split: pprop.Split) -> float:
    """Return the percentage of right answers for all nodes that the training did not see."""
    right = predicted == labels
    seen = np.concatenate([split.train, split.stopping])
    return 100 * float((right.sum() - right[seen].sum()) / (len(right) - len(seen)))


def watch() -> tuple[dict[str, float], Callable[[], None]]:
    """Note the largest RssAnon, RssFile and sum of both from now on, in GiB, until the function returned is called."""
    peaks, over = {"anonymous": 0.0, "files": 0.0, "together": 0.0}, threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            lines = Path("/proc/self/status").read_text().splitlines()
            held = {line.split(":")[0]: int(line.split()[1]) / 2**20 for line in lines if line.startswith("Rss")}
            now = {
                "anonymous": held["RssAnon"],
                "files": held["RssFile"],
                "together": held["RssAnon"] + held["RssFile"],
            }
            peaks.update({name: max(peaks[name], value) for name, value in now.items()})

    thread = threading.Thread(target=look, daemon=True)
    thread.start()

    def stop() -> None:
        over.set()
        thread.join()

    return peaks, stop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "run", "small"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--share", type=float, help="of the full size.  [default: 1; small: 0.01]")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="at most")
    parser.add_argument("--strength", type=float, default=STRENGTH, help="share of words of the class's own")
    parser.add_argument("--homophily", type=float, default=HOMOPHILY)
    parser.add_argument("--degree", type=float, default=MEAN_DEGREE)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, help="[default: 2; all with --device cuda]")
    options = parser.parse_args()
    options.share = options.share or (0.01 if options.what == "small" else 1.0)
    warn_if_busy()
    use_threads(2 if options.threads is None and options.device == "cpu" else options.threads)
    work: dict[str, Callable[[], dict[str, Any]]] = {
        "make": lambda: make(options.folder, options),
        "run": lambda: run(options.folder, options),
        "small": lambda: small(options),
    }
    found = work[options.what]()
    given = {name: str(value) for name, value in vars(options).items()}
    print(
        json.dumps({"benchmark": "mag_twin", **found, "arguments": given, "machine": describe_machine(options.device)})
    )


if __name__ == "__main__":
    main()
