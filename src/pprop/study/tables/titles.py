"""What datasets and models are called in tables, and in which order they stand there."""

from __future__ import annotations

from collections.abc import Sequence

from pprop.datasets import DATASETS
from pprop.study.cell import Cell
from pprop.study.figures.captions import dataset_title
from pprop.study.zoo import MODELS

__all__ = ["TESTED", "dataset_order", "dataset_title", "listed", "model_order", "model_title"]

_MODELS = ("mlp", "vanilla_gcn", "gcn", "ngcn", "gat", "jk", "bootstrapped_fp", "ppnp", "appnp")  # the paper's order

TESTED = ("ppnp", "appnp")
"""The paper's own models, which are compared with all others."""


def model_title(cell: Cell, settings: bool = False) -> str:
    """Return what the paper calls the model of a cell; one's own model goes by its address, with its settings if asked.

    >>> model_title(Cell("vanilla_gcn", {}, "citeseer")), model_title(Cell("mine:build", {"width": 3}, "citeseer"), True)
    ('V. GCN', 'mine:build (width=3)')
    """
    if cell.model in MODELS:
        return MODELS[cell.model].title
    told = ", ".join(f"{name}={value}" for name, value in sorted(cell.settings.items()))
    return f"{cell.model} ({told})" if told and settings else cell.model


def listed(names: Sequence[str]) -> str:
    """Return names in a row, as in a sentence.

    >>> listed(["GCN", "GAT", "JK"]), listed(["GCN"])
    ('GCN, GAT and JK', 'GCN')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def dataset_order(name: str) -> tuple[int, str]:
    """Return a key that sorts the paper's datasets as the paper does, and others behind them.

    >>> sorted(["mine", "pubmed", "citeseer"], key=dataset_order)
    ['citeseer', 'pubmed', 'mine']
    """
    known = list(DATASETS)
    return (known.index(name) if name in known else len(known), name)


def model_order(cell: Cell) -> tuple[int, str]:
    """Return a key that sorts cells by model as the paper does, and one's own models behind them.

    >>> cells = [Cell("mine:build", {}, "citeseer"), Cell("appnp", {}, "citeseer"), Cell("gcn", {}, "citeseer")]
    >>> [cell.model for cell in sorted(cells, key=model_order)]
    ['gcn', 'appnp', 'mine:build']
    """
    return (_MODELS.index(cell.model) if cell.model in _MODELS else len(_MODELS), cell.text)
