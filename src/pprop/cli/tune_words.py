"""The words of ``pprop tune``: the space as it is typed, and the graph as it is typed again."""

from __future__ import annotations

import shlex
from typing import Any

import typer

from pprop._errors import InputError
from pprop.cli.graphs import GraphInput

__all__ = ["read_setting", "shell_graph"]


def read_setting(text: str) -> tuple[str, Any]:
    """Return a setting and what it varies over.

    >>> read_setting("alpha=0.1:0.5:log"), read_setting("hidden=16,64"), read_setting("dropout=0.5")
    (('alpha', Range(low=0.1, high=0.5, log=True)), ('hidden', [16, 64]), ('dropout', 0.5))
    """
    from pprop.tuning import Range
    from pprop.tuning.tune import IN_SHELL

    name, found, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not found or name not in IN_SHELL:
        raise typer.BadParameter(f"--space takes SETTING=VALUES, SETTING one of {', '.join(IN_SHELL)}, not {text!r}.")
    try:
        if ":" in values:
            low, high, *log = values.split(":")
            if log not in ([], ["log"]):
                raise ValueError
            return name, Range(_number(low), _number(high), log=bool(log))
        several = [_number(value) for value in values.split(",")]
    except InputError:
        raise
    except ValueError:
        raise typer.BadParameter(
            f"--space takes numbers, as LOW:HIGH, LOW:HIGH:log, A,B,... or one value, not {text!r}."
        ) from None
    return name, several if len(several) > 1 else several[0]


def shell_graph(
    origin: GraphInput, split_seed: int | None, test: float | None, stopping: float | None, seed: int
) -> str:
    """Return the graph, with the options of its files and of its split, as they are typed."""
    words = [origin.graph]
    for option, value, default in (
        ("--nodes", origin.nodes, None),
        ("--source", origin.source, "source"),
        ("--target", origin.target, "target"),
        ("--weight", origin.weight, None),
        ("--id-column", origin.id_column, "id"),
        ("--label-column", origin.label_column, None),
        ("--features", ",".join(origin.features) if origin.features else None, None),
        ("--split-seed", split_seed, None),
        ("--test", test, None),
        ("--stopping", stopping, None),
        ("--seed", seed if origin.path is not None else None, None),
    ):
        if value not in (default, None):
            words += [option, str(value)]
    if origin.directed:
        words.append("--directed")
    return shlex.join(words)


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
