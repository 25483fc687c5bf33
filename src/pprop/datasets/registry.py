"""The paper's four graphs: sizes, settings, and where the authors' files are."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from pprop._errors import DatasetError
from pprop._validate import check_choice
from pprop.graph import Graph, Recommended

AUTHORS = "https://raw.githubusercontent.com/gasteigerjo/ppnp/master/ppnp/data"


@final
@dataclass(frozen=True)
class DatasetInfo:
    """One of the paper's graphs.

    Attributes
    ----------
    name
        The name that `load_dataset` takes.
    recommended
        The paper's teleport probability and size of the known set.
    n_nodes, n_edges, n_features, n_classes
        Table 1 of the paper: the largest component, undirected, without self-loops.
    git_blob
        Git's id of the authors' file: sha1 over ``blob``, the size, a null byte and the content.
    sha256
        Its sha256 where known.
    has_ids
        Whether node ids belong to the dataset. They do not where the bundled copy, or the usual source, has none: so
        the graph and its fingerprint do not depend on where the file came from.

    Examples
    --------
    >>> DATASETS["cora_ml"].sizes
    {'nodes': 2810, 'edges': 7981, 'features': 2879, 'classes': 7}
    """

    name: str
    recommended: Recommended
    n_nodes: int
    n_edges: int
    n_features: int
    n_classes: int
    git_blob: str
    sha256: str | None
    has_ids: bool

    @property
    def file_name(self) -> str:
        """Name of the file in every folder."""
        return f"{self.name}.npz"

    @property
    def url(self) -> str:
        """Address of the authors' file."""
        return f"{AUTHORS}/{self.file_name}"

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of Table 1, by name."""
        return {what: getattr(self, f"n_{what}") for what in ("nodes", "edges", "features", "classes")}


def sizes_of(graph: Graph) -> dict[str, int]:
    """Return the same numbers for any graph.

    >>> import scipy.sparse as sp
    >>> sizes_of(Graph.from_scipy(sp.csr_array((5, 5)), labels=[0, 1, 1, 0, -1]))
    {'nodes': 5, 'edges': 0, 'features': 0, 'classes': 2}
    """
    features = 0 if graph.features is None else int(graph.features.shape[1])
    return {"nodes": graph.n_nodes, "edges": graph.n_edges, "features": features, "classes": graph.n_classes}


DATASETS = MappingProxyType(  # by name
    {
        info.name: info
        for info in (  # name, recommended, nodes, edges, features, classes, git_blob, sha256, has_ids
            DatasetInfo(
                *("citeseer", Recommended(0.1, 1500, "sym"), 2110, 3668, 3703, 6),
                "184dd894a26157601bd1d17b99d6ec4561c9de10",
                "9c72e32115590d1e6b2701f7af490519c8b2948ade22ec513e262aac3e47f722",
                has_ids=False,
            ),
            DatasetInfo(
                *("cora_ml", Recommended(0.1, 1500, "sym"), 2810, 7981, 2879, 7),
                "f70cf83ac06ed70900e94c042ff32bbc8ceca086",
                "e3439bfd32c4a962d5c56a4f313793baee39181c208c90a3915b61183d3e1cda",
                has_ids=True,
            ),
            DatasetInfo(
                *("pubmed", Recommended(0.1, 1500, "sym"), 19717, 44324, 500, 3),
                "e7dbba82dd4aaeff5a0e59b23d58158ced3ec42c",
                sha256=None,
                has_ids=False,
            ),
            DatasetInfo(
                *("ms_academic", Recommended(0.2, 5000, "sym"), 18333, 81894, 6805, 15),
                "9bdd7da943d86b74297e8d32e99eb64245b52835",
                sha256=None,
                has_ids=True,
            ),
        )
    }
)


def dataset_info(name: str) -> DatasetInfo:
    """Return the description of a dataset, without loading it.

    Parameters
    ----------
    name
        ``"citeseer"``, ``"cora_ml"``, ``"pubmed"`` or ``"ms_academic"``.

    Returns
    -------
    DatasetInfo

    Examples
    --------
    >>> dataset_info("ms_academic").recommended
    Recommended(alpha=0.2, known=5000, normalization='sym')
    """
    plain = name.lower().replace("-", "_").replace(" ", "_") if isinstance(name, str) else ""
    near = difflib.get_close_matches(plain, DATASETS, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}?" if near else ""
    return DATASETS[check_choice(name, "name", "load_dataset", tuple(DATASETS), remedy=hint, error=DatasetError)]
