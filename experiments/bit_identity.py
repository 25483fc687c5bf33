"""The bits of run 37 in every batch: Citeseer, 100 epochs, R in {1, 2, 7, 100}, one and two threads, PPNP and APPNP.

    python experiments/bit_identity.py --out results/bit_identity.json

The test suite checks most of these combinations on every change; this script checks all of them and keeps the digests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from pathlib import Path

import numba
import torch

import pprop

RUN = 37
BATCHES = {1: [RUN], 2: [4, RUN], 7: [RUN, 1, 2, 99, 50, 3, 8], 100: list(range(100))}


def digest_of_run(kind: str, batch: list[int], threads: int) -> str:
    """Train a batch; return a digest of run 37's losses, weights and logits."""
    numba.set_num_threads(threads)
    torch.set_num_threads(threads)
    graph = pprop.load_dataset("citeseer")
    pairs = [(seed, init) for seed in pprop.TEST_SEEDS for init in range(5)]
    trained = pprop.train(
        getattr(pprop, kind)(),
        graph,
        [pprop.paper_split(graph, pairs[run][0]) for run in batch],
        seeds=[pprop.run_seed(*pairs[run]) for run in batch],
        stopping=pprop.Stopping(patience=1000, max_epochs=100),
        backend="numba",
    )
    at = batch.index(RUN)
    digest = hashlib.sha256()
    history = trained.history[at]
    for array in (history.train_loss, history.stopping_loss, *(w[at] for w in trained.weights), trained.logits[at]):
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def main() -> None:
    """Run every combination and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/bit_identity.json"))
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for kind in ("APPNP", "PPNP"):
        for runs, batch in BATCHES.items():
            for threads in (2, 1):
                begin = time.perf_counter()
                digest = digest_of_run(kind, batch, threads)
                seconds = round(time.perf_counter() - begin, 1)
                rows.append({"model": kind, "runs": runs, "threads": threads, "digest": digest, "seconds": seconds})
                same = {name: len({r["digest"] for r in rows if r["model"] == name}) == 1 for name in ("APPNP", kind)}
                report = {"machine": platform.machine(), "same_bits": same, "rows": rows}
                arguments.out.parent.mkdir(parents=True, exist_ok=True)
                arguments.out.write_text(json.dumps(report, indent=1) + "\n")
                print(f"{kind:6} R={runs:<4} threads={threads}  {digest}  {seconds} s  same so far: {same}", flush=True)


if __name__ == "__main__":
    main()
