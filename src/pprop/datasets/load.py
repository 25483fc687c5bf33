"""From the name of a dataset to its graph."""

from __future__ import annotations

import numpy as np

from pprop._errors import DatasetError
from pprop.datasets.locate import Located, locate
from pprop.datasets.registry import DatasetInfo, dataset_info, sizes_of
from pprop.datasets.standardize import standardize
from pprop.graph import Graph, read_npz

__all__ = ["load_dataset"]


def load_dataset(name: str) -> Graph:
    """Load one of the paper's graphs, standardised: undirected, no self-loops, unweighted, largest component.

    The file is taken from the folder named by the environment variable ``PPROP_DATA``, then from the cache, then from
    the package (Citeseer), and otherwise downloaded from the authors' repository, verified, and cached. It is read
    anew at every call.

    Parameters
    ----------
    name
        ``"citeseer"``, ``"cora_ml"``, ``"pubmed"`` or ``"ms_academic"``.

    Returns
    -------
    Graph
        Features are sparse float32 of shape (n, f), as stored (not normalised); labels (n,). ``name`` and
        ``recommended``, the paper's alpha and known-set size, are set.

    Raises
    ------
    DatasetError
        The name is unknown, the file cannot be had, or the graph in it is not the paper's.

    References
    ----------
    J. Gasteiger, A. Bojchevski, S. Günnemann. Predict then Propagate: Graph Neural Networks meet Personalized PageRank.
    ICLR 2019, Table 1.

    Examples
    --------
    >>> graph = load_dataset("citeseer")
    >>> graph
    Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)
    >>> graph.recommended
    Recommended(alpha=0.1, known=1500)
    """
    info = dataset_info(name)
    found = locate(info)
    graph = standardize(read_npz(found.path))
    _check_sizes(graph, info, found)
    ids = None
    if info.has_ids and graph.ids is not None:
        ids = np.char.strip(graph.ids.astype(str))  # Cora-ML's end in a line break
    return graph.replace(ids=ids, name=info.name, recommended=info.recommended)


def _check_sizes(graph: Graph, info: DatasetInfo, found: Located) -> None:
    sizes = sizes_of(graph)
    wrong = [f"{sizes[what]} {what} instead of {size}" for what, size in info.sizes.items() if sizes[what] != size]
    if wrong:
        raise DatasetError(
            f"The file {str(found.path)!r} ({found.origin}) is not the dataset {info.name!r}: it gives "
            f"{', '.join(wrong)}. Remove it, or rename it and load it with read_npz."
        )
