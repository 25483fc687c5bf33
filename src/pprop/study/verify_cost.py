"""What a row may take to be computed once more on the CPU, from the epochs it took before."""

from __future__ import annotations

from pprop.datasets import DATASETS
from pprop.study.cell import Cell

__all__ = ["expected_seconds"]

# Microseconds of an epoch for each node and edge of the graph, one run on two cores: two thirds of what the runs of
# results/gpu_rows_on_cpu.json took, since that machine was busy with other things, too. N-GCN: 0.2 s on Cora-ML.
_MICROSECONDS = {
    "mlp": 0.5,
    "ppnp": 0.8,
    "appnp": 0.6,
    "vanilla_gcn": 2.0,
    "gcn": 2.5,
    "jk": 8.0,
    "gat": 12.0,
    "ngcn": 19.0,
}
_SLOWER = 30.0  # than on a GPU: a model of one's own, of which nothing else is known


def expected_seconds(cell: Cell, epochs: int, seconds: float, device: str) -> float:
    """Return about how long a run takes on two cores.

    Parameters
    ----------
    cell, epochs, seconds, device
        Of its row.

    Examples
    --------
    >>> cell = Cell("appnp", {}, "cora_ml")
    >>> round(expected_seconds(cell, 1400, 0.04, "cuda (NVIDIA H200)"), 1), expected_seconds(cell, 1400, 9.5, "cpu")
    (9.1, 9.5)
    """
    if device == "cpu":
        return seconds
    if cell.model not in _MICROSECONDS or cell.dataset not in DATASETS:
        return _SLOWER * seconds
    info = DATASETS[cell.dataset]
    return 1e-6 * _MICROSECONDS[cell.model] * epochs * (info.n_nodes + info.n_edges)
