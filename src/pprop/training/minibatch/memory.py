"""How much memory a training on neighbourhoods takes: of the search, and of the runs."""

from __future__ import annotations

from pprop._errors import CapacityError
from pprop.models.blocks import STREAMED
from pprop.models.inference import BLOCK
from pprop.training.memory import TrainingBytes, bytes_text

_PER_NODE = 44  # bytes of what local push prepares: degrees, thresholds, shares, scales
_PER_ENTRY = 40  # bytes of an entry of a row on its way from the search to float32


def check_search(nodes: int, labelled: int, neighbours: int, limit: int) -> None:
    """Refuse a search whose rows do not fit into memory.

    >>> check_search(10**6, 1000, 64, limit=2**30)
    >>> check_search(10**6, 10**6, 64, limit=2**30)
    Traceback (most recent call last):
        ...
    pprop._errors.CapacityError: The neighbourhoods of 1,000,000 labelled nodes need up to 2.4 GiB, and 1.0 GiB may be used. \
Use fewer neighbours (64 here), fewer labelled nodes, or a machine with more memory.
    """
    needed = _PER_NODE * nodes + _PER_ENTRY * labelled * min(neighbours, nodes)
    if needed > limit:
        raise CapacityError(
            f"The neighbourhoods of {labelled:,} labelled nodes need up to {bytes_text(needed)}, and {bytes_text(limit)} "
            f"may be used. Use fewer neighbours ({neighbours} here), fewer labelled nodes, or a machine with more memory."
        )


def neighbourhood_bytes(
    *,
    nodes: int,
    entries: int,
    row_entries: int,
    batches: int,
    members: int,
    columns: int,
    features: int,
    hidden: int,
    first: int,
    other_weights: int,
    classes: int,
    max_epochs: int,
    predict: bool,
) -> TrainingBytes:
    """Return the bytes of a training on neighbourhoods.

    Parameters
    ----------
    nodes, entries, features, classes, hidden
        Of the graph and the network; `hidden` is all hidden units together.
    row_entries
        Entries of all rows together.
    batches
        Bytes of the batches that are held at the same time.
    members
        Nodes that the network sees at once, at most.
    columns
        Feature columns that are trained, at most.
    first, other_weights
        Units of the first layer, and the numbers of weights of all other layers.
    max_epochs
        The longest curves.
    predict
        Whether all nodes are predicted.
    """
    trained, whole = columns * first + other_weights, features * first + other_weights
    steps = (32 * entries if entries < STREAMED else 0) + 24 * nodes if predict else 0
    logits = 4 * nodes * classes if predict else 0
    return TrainingBytes(
        shared={"PPR rows": 12 * row_entries, "push": _PER_NODE * nodes, "transition": steps},
        training={
            "batches": batches,
            "weights": 16 * trained,
            "states": 4 * members * (2 * hidden + 4 * classes),
            "initial weights": 4 * whole,
        },
        kept={
            "best weights": 4 * trained,
            "predictions": 3 * logits + (4 * min(nodes, BLOCK) * hidden if predict else 0),
        },
        results={"weights": 8 * whole, "logits": logits, "curves": 2 * 3 * 8 * max_epochs},
        hidden=hidden,
        features=features,
    )
