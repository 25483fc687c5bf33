"""Predict, then propagate, on the bundled Citeseer graph: a network alone, and with its predictions propagated."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import pprop

SPLITS = 5


def main() -> None:
    console = Console()
    graph = pprop.load_dataset("citeseer")
    splits = [pprop.paper_split(graph, seed) for seed in pprop.TEST_SEEDS[:SPLITS]]
    console.print(f"Citeseer: {graph}")
    console.print(f"{SPLITS} of the paper's test splits, each {splits[0]}\n")
    table = Table(title="Test accuracy")
    for heading in ("model", "accuracy", "lowest", "highest", "paper (100 runs)", "epochs", "seconds"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for name, model, paper in (
        ("MLP, no propagation", pprop.MLP(), "-"),
        ("APPNP, 10 power steps", pprop.APPNP(alpha=0.1, steps=10), "75.73"),
    ):
        trained = pprop.train(model, graph, splits, seeds=[pprop.run_seed(s.seed, 0) for s in splits], progress=True)
        accuracy = 100 * trained.accuracy()
        numbers = (f"{value:.2f}" for value in (accuracy.mean(), accuracy.min(), accuracy.max()))
        table.add_row(name, *numbers, paper, f"{trained.epochs.mean():.0f}", f"{trained.seconds:.0f}")
    console.print()
    console.print(table)
    console.print("Next: README.md has a ten-line example; docs/api.md lists everything else.")


if __name__ == "__main__":
    main()
