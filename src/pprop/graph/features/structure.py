"""Features made of the graph alone, for nodes that have none."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._validate import check_choice

STRUCTURES = ("identity", "degree")
DEGREES = ("log degree", "log in-degree", "log out-degree")  # names of the columns that `degree_columns` makes

# Of neighbours: none, 1, 2 or 3, 4 to 7, and so on; the last one has no end.
_BUCKETS = 17


@final
class Structure(NamedTuple):
    """Features, shape (n, f), and their names, f of them or None."""

    features: Any
    names: tuple[str, ...] | None


def structural_features(adjacency: sparse.csr_array, directed: bool, kind: object, function: str) -> Structure:
    """Return features of the nodes that depend on the edges alone.

    Parameters
    ----------
    adjacency
        Shape (n, n), entry (i, j) is what i receives from j.
    directed
        Whether edges have a direction: degrees are then counted for both.
    kind
        ``"identity"``: one column per node, so that the network has weights for each; they mean nothing on any other
        graph. ``"degree"``: log(1 + weighted degree), and in which of 17 buckets the number of neighbours is: 0, 1,
        2 to 3, 4 to 7 and so on. They mean the same on other graphs.
    function
        For the error sentence.

    Examples
    --------
    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> features, names = structural_features(path, False, "degree", "f")
    >>> features[:, :4].round(2)
    array([[0.69, 0.  , 1.  , 0.  ],
           [1.1 , 0.  , 0.  , 1.  ],
           [0.69, 0.  , 1.  , 0.  ]], dtype=float32)
    >>> names[:4], len(names)
    (('log degree', 'degree 0', 'degree 1', 'degree 2-3'), 18)
    >>> structural_features(path, False, "identity", "f").features.shape
    (3, 3)
    """
    chosen = check_choice(kind, "kind", function, STRUCTURES)
    n = int(adjacency.shape[0])
    if chosen == "identity":
        return Structure(sparse.eye_array(n, dtype=np.float32, format="csr"), None)
    sides = {"in-degree": adjacency, "out-degree": adjacency.T.tocsr()} if directed else {"degree": adjacency}
    parts = [_degrees(matrix) for matrix in sides.values()]
    spans = ["0", "1", *(f"{2**k}-{2 ** (k + 1) - 1}" for k in range(1, _BUCKETS - 2)), f"{2 ** (_BUCKETS - 2)}+"]
    names = (*(f"log {side}" for side in sides), *(f"{side} {span}" for side in sides for span in spans))
    logs, buckets = zip(*parts, strict=True)
    return Structure(np.column_stack([*logs, *buckets]).astype(np.float32), names)


def degree_columns(adjacency: sparse.csr_array, directed: bool) -> dict[str, NDArray[np.float64]]:
    """Return log(1 + weighted degree) of the nodes as a column of a node table; of a directed graph one for each direction.

    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> degree_columns(path, False)["log degree"].round(2)
    array([0.69, 1.1 , 0.69])
    """
    sides = {"log in-degree": adjacency, "log out-degree": adjacency.T} if directed else {"log degree": adjacency}
    return {name: np.log1p(np.asarray(matrix.sum(axis=1)).ravel()) for name, matrix in sides.items()}


def _degrees(matrix: sparse.csr_array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log(1 + sum of weights), shape (n,), and one column per bucket of the number of entries, one of them 1."""
    count = np.diff(matrix.indptr).astype(np.int64)
    bucket = np.minimum(np.frexp(count.astype(np.float64))[1], _BUCKETS - 1)  # the number of binary digits
    return np.log1p(np.asarray(matrix.sum(axis=1)).ravel()), np.eye(_BUCKETS)[bucket]
