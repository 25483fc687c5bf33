"""The model card: the manifest in a page for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["model_card"]

_SHOWN_CLASSES = 20


def model_card(manifest: Mapping[str, Any]) -> str:
    """Return a short description of a saved model in Markdown."""
    model, graph, training = manifest["model"], manifest["graph"], manifest["training"]
    classes: list[object] = manifest["classes"]["values"]
    shown = ", ".join(_code(name) for name in classes[:_SHOWN_CLASSES])
    more = "" if len(classes) <= _SHOWN_CLASSES else f" and {len(classes) - _SHOWN_CLASSES} more"
    name = "a graph without a name" if graph["name"] is None else _code(graph["name"])
    rows = {
        "accuracy on held-out nodes": _percent(manifest["accuracy"]),
        "accuracy on stopping nodes": _percent(training["stopping_accuracy"]),
        "epochs (best)": f"{training['epochs']} ({training['best_epoch']})",
        "training, stopping nodes": f"{training['train_nodes']}, {training['stopping_nodes']}",
        "seconds": f"{training['seconds']:.1f}",
        "backend, device": f"{training['backend']}, {training['device']}",
        "seed": training["seed"],
        "weights": f"{model['parameters']:,}",
    }
    settings = "\n".join(f"| {key} | {_code(value)} |" for key, value in manifest["settings"].items())
    figures = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    teleport = "" if model["alpha"] is None else f" The teleport probability used is alpha = {model['alpha']:g}."
    return f"""# {model["class"]}

Assigns each node of {name} ({graph["nodes"]:,} nodes, {graph["edges"]:,} edges) to one of {len(classes)} classes:
{shown}{more}.{teleport}

Written by pprop {manifest["versions"]["pprop"]}. Use it with

    import pprop
    model = pprop.load("this folder")
    model.predict([0, 1, 2])  # positions of nodes in model.graph

## Training

| | |
|---|---|
{figures}

## Settings

| | |
|---|---|
{settings}

## Limits

The model knows the graph it was trained on (fingerprint {_code(graph["fingerprint"])}). On another graph with the same
features it runs, but nothing is known about its accuracy there. `manifest.json` has all details; the weights are in
`weights.safetensors`.
"""


def _code(value: object) -> str:
    text = " ".join(str(value).split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`"


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.2f} %"
