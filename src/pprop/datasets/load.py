"""From the name of a dataset to its graph, standardised as in the paper."""

from __future__ import annotations

import numpy as np

from pprop._errors import DatasetError
from pprop.datasets.files import locate
from pprop.datasets.registry import dataset_info, sizes_of
from pprop.graph import Graph, read_npz


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
        The name is unknown, the file cannot be downloaded, or the graph in it is not the paper's.

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
    Recommended(alpha=0.1, known=1500, normalization='sym')
    """
    info = dataset_info(name)
    found = locate(info)
    graph = standardize(read_npz(found.path))
    sizes = sizes_of(graph)
    wrong = [f"{sizes[what]} {what} instead of {size}" for what, size in info.sizes.items() if sizes[what] != size]
    if wrong:
        raise DatasetError(
            f"The file {str(found.path)!r} ({found.origin}) is not the dataset {info.name!r}: it gives "
            f"{', '.join(wrong)}. Remove it, or rename it and load it with read_npz."
        )
    ids = None
    if info.has_ids and graph.ids is not None:
        ids = np.char.strip(graph.ids.astype(str))  # Cora-ML's end in a line break
    return graph.replace(ids=ids, name=info.name, recommended=info.recommended)


def standardize(graph: Graph) -> Graph:
    """Return the graph as the paper uses it: undirected, no self-loops, unweighted, largest connected component.

    An edge in either direction counts, the nodes keep their order, and the features keep their values, in float32.

    Parameters
    ----------
    graph
        Any graph, n nodes.

    Returns
    -------
    Graph
        At most n nodes; features (m, f), labels (m,) and ids (m,) come along.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> arcs = sp.csr_array(([2.0, 1.0, 1.0, 5.0], ([0, 1, 2, 3], [1, 0, 1, 3])), shape=(5, 5))
    >>> standardize(Graph.from_scipy(arcs, directed=True, ids=list("abcde"))).ids
    array(['a', 'b', 'c'], dtype='<U1')
    """
    simple = graph.undirected().without_self_loops().unweighted().largest_component()
    if simple.features is None or simple.features.dtype == np.float32:
        return simple
    return simple.replace(features=simple.features.astype(np.float32), recipe=simple.recipe)
