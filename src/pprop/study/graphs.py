"""The graphs of a study: the paper's, by their names, and copies of the user's in the study's folder.

A user's graph is standardised as the paper's are. Its splits are drawn by the paper's protocol (`Protocol`) from the nodes that
have labels, with fewer known and stopping nodes where it is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import DatasetError, InputError, PpropError
from pprop._validate import counted
from pprop.datasets import DATASETS, Split, load_dataset, paper_split, standardize
from pprop.datasets.splits import DEFAULT_KNOWN, PER_CLASS, STOPPING, known_nodes
from pprop.graph import Graph, GraphFolder, write_folder

FOLDER = "graphs"  # of a study's folder
MOST_CLASSES = 256  # a row has one byte for the class of a node


@final
@dataclass(frozen=True, eq=False)
class Protocol:
    """How the splits of a graph are drawn.

    Attributes
    ----------
    nodes : array
        Those that splits are drawn from, in index order: all that have labels.
    known, stopping
        How many of them may be seen, and how many of these decide when training ends.

    Examples
    --------
    >>> protocol = protocol_of(load_dataset("citeseer"))
    >>> protocol.known, protocol.stopping, len(protocol.test)
    (1500, 500, 610)
    """

    nodes: NDArray[np.int64]
    known: int
    stopping: int

    @property
    def test(self) -> NDArray[np.int64]:
        """The test nodes in index order, the same in every split."""
        return np.delete(self.nodes, known_nodes(len(self.nodes), self.known))

    def split(self, graph: Graph, seed: int, *, test: bool = True, per_class: int = PER_CLASS) -> Split:
        """Draw a split of the graph; without `test` the labels of test nodes are not read, and may be hidden (-1)."""
        if len(self.nodes) == graph.n_nodes:
            return paper_split(graph, seed, test, self.known, per_class, self.stopping)
        assert graph.labels is not None
        n = len(self.nodes)
        labelled = Graph.from_scipy(
            sparse.csr_array((n, n)), labels=graph.labels[self.nodes], class_names=graph.class_names
        )
        drawn = paper_split(labelled, seed, test, self.known, per_class, self.stopping)
        sets = [self.nodes[some] for some in (drawn.train, drawn.stopping, drawn.evaluation)]
        for nodes in sets:
            nodes.flags.writeable = False
        return Split(*sets, seed=drawn.seed, test=drawn.test)


def protocol_of(graph: Graph) -> Protocol:
    """Return how the splits of a graph with labels are drawn.

    The paper's graphs have the paper's numbers. Of any other, at most half of the nodes with labels are known, at most
    1500, and at most a third of these are for early stopping, at most 500.

    Examples
    --------
    >>> graph = Graph.from_scipy(sparse.csr_array((200, 200)), labels=[0, 1] * 95 + [-1] * 10)
    >>> protocol = protocol_of(graph)
    >>> len(protocol.nodes), protocol.known, protocol.stopping
    (190, 95, 31)
    >>> protocol.split(graph, seed=1)
    Split(40 train, 31 stopping, 95 test, seed=1)
    """
    assert graph.labels is not None
    if graph.recommended is not None:
        return Protocol(np.arange(graph.n_nodes), graph.recommended.known, STOPPING)
    nodes = np.flatnonzero(graph.labels >= 0)
    known = min(DEFAULT_KNOWN, len(nodes) // 2)
    return Protocol(nodes, known, min(STOPPING, known // 3))


def of_own(names: Iterable[str]) -> bool:
    """Return whether there are graphs and all of them are a user's: then the paper has printed nothing about any.

    >>> of_own(["mine"]), of_own(["mine", "citeseer"]), of_own([])
    (True, False, False)
    """
    found = set(names)
    return bool(found) and found.isdisjoint(DATASETS)


def own_graph(graph: Graph, name: str) -> Graph:
    """Return a user's graph as a study takes it: standardised, named, large enough for the splits.

    Raises
    ------
    InputError
        It has no labels or no features, too many classes, or a class with too few nodes. The sentence has the numbers.

    Examples
    --------
    >>> own_graph(Graph.from_scipy(sparse.csr_array((5, 5))), "mine")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The graph 'mine' has no labels, and a study needs the classes of its nodes.
    """
    if graph.labels is None or not (graph.labels >= 0).any():
        raise InputError(f"The graph {name!r} has no labels, and a study needs the classes of its nodes.")
    if graph.features is None:
        raise InputError(f"The graph {name!r} has no features, which the models of a study need.")
    if graph.n_classes > MOST_CLASSES:
        raise InputError(f"The graph {name!r} has {graph.n_classes} classes, and a study takes at most {MOST_CLASSES}.")
    classes = graph.class_names or tuple(map(str, range(graph.n_classes)))
    ready = standardize(graph).replace(name=name, class_names=classes, recommended=None)
    _check_size(ready)
    return ready


def _check_size(graph: Graph) -> None:
    """Raise unless every class has enough known nodes, and some are left to evaluate on."""
    assert graph.labels is not None
    assert graph.class_names is not None
    protocol = protocol_of(graph)
    of_class = np.bincount(graph.labels[protocol.nodes], minlength=graph.n_classes)
    known = protocol.nodes[known_nodes(len(protocol.nodes), protocol.known)]
    known_of_class = np.bincount(graph.labels[known], minlength=graph.n_classes)
    rare = int(known_of_class.argmin())
    of_all = (
        f"{protocol.known} of the {counted(len(protocol.nodes), 'node')} with labels in the largest component are known"
    )
    if known_of_class[rare] < PER_CLASS:
        raise InputError(
            f"The graph {graph.name!r} has too few nodes of class {graph.class_names[rare]!r} for a study: {of_all}, among "
            f"them {known_of_class[rare]} of the {of_class[rare]} of that class, where {PER_CLASS} have to train."
        )
    train = PER_CLASS * graph.n_classes
    if train + protocol.stopping >= protocol.known:
        raise InputError(
            f"The graph {graph.name!r} is too small for a study: {of_all}, where {PER_CLASS} nodes of each of its "
            f"{graph.n_classes} classes have to train, {protocol.stopping} are for early stopping, and one must be left."
        )


def own_sentences(given: Graph, ready: Graph) -> list[str]:
    """Return what was made of a user's graph: what was left out, and how its splits are drawn.

    Parameters
    ----------
    given, ready
        Before and after `own_graph`.

    Examples
    --------
    >>> ring = sparse.diags_array([1.0] * 4, offsets=[-199, -1, 1, 199], shape=(200, 200))
    >>> given = Graph.from_scipy(2 * ring, features=np.ones((200, 1)), labels=[0, 1] * 100)
    >>> own_sentences(given, own_graph(given, "ring"))[0]
    'ring: 200 nodes, 200 edges, 2 classes; weights of edges ignored.'
    """
    left = given.n_nodes - ready.n_nodes
    changes = [
        f"{counted(left, 'node')} outside the largest component left out" if left else "",
        "directions of edges ignored" if given.directed else "",
        "weights of edges ignored" if given.weights is not None else "",
    ]
    found = (
        f"{ready.name}: {counted(ready.n_nodes, 'node')}, {counted(ready.n_edges, 'edge')}, {ready.n_classes} classes"
    )
    return ["; ".join([found, *filter(None, changes)]) + ".", split_sentence(ready)]


def split_sentence(graph: Graph) -> str:
    """Return how the splits of a user's graph are drawn.

    >>> split_sentence(Graph.from_scipy(sparse.csr_array((200, 200)), labels=[0, 1] * 95 + [-1] * 10, name="mine"))
    'Splits of mine: 95 known nodes, 40 of them for training, 31 for early stopping; 95 for testing; 10 nodes without labels in no split.'
    """
    protocol = protocol_of(graph)
    unlabelled = graph.n_nodes - len(protocol.nodes)
    without = f"; {counted(unlabelled, 'node')} without labels in no split" if unlabelled else ""
    return (
        f"Splits of {graph.name}: {protocol.known} known nodes, {PER_CLASS * graph.n_classes} of them for training, "
        f"{protocol.stopping} for early stopping; {len(protocol.nodes) - protocol.known} for testing{without}."
    )


def own_names(study: Path) -> list[str]:
    """Return the names of the graphs that a study's folder has a copy of.

    >>> own_names(Path("no study"))
    []
    """
    folder = Path(study) / FOLDER
    return sorted(file.parent.name for file in folder.glob("[!.]*/manifest.json")) if folder.is_dir() else []


def load_graph(name: str, study: Path | None = None) -> Graph:
    """Return a graph by its name: one of the paper's, or that of which the study's folder has a copy.

    Raises
    ------
    DatasetError
        It is neither.

    Examples
    --------
    >>> load_graph("citeseer")
    Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)
    """
    if name in DATASETS or study is None:
        return load_dataset(name)
    if name not in own_names(study):
        raise DatasetError(
            f"The study has no copy of the graph {name!r}. Run an experiment with --graph to give it again."
        )
    return GraphFolder.open(Path(study) / FOLDER / name).graph()


def keep_graph(graph: Graph, study: Path, of_rows: Iterable[str] = ()) -> None:
    """Copy a graph of `own_graph` into a study's folder, unless it is there.

    Parameters
    ----------
    graph
        Its name is that of the copy.
    study
        The folder.
    of_rows
        Fingerprints of the graphs of that name that the study has rows of.

    Raises
    ------
    InputError
        The study has another graph of that name, or rows of one.

    Examples
    --------
    >>> import tempfile
    >>> graph = Graph.from_scipy(sparse.csr_array((2, 2)), labels=[0, 1], name="mine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep_graph(graph, Path(folder))
    ...     load_graph("mine", Path(folder)) == graph
    True
    """
    name = graph.name or ""
    kept = [load_graph(name, study).fingerprint] if name in own_names(study) else []
    for other in (*kept, *of_rows):
        if other != graph.fingerprint:
            raise InputError(
                f"The study {str(study)!r} has another graph {name!r}, with the fingerprint {other[:12]}; that of this one is "
                f"{graph.fingerprint[:12]}. Rename the file, or choose another --out."
            )
    if not kept:
        (Path(study) / FOLDER).mkdir(parents=True, exist_ok=True)
        write_folder(graph, Path(study) / FOLDER / name)


def merge_graphs(source: Path, study: Path) -> Sequence[str]:
    """Copy the graphs of one study into the folder of another; return what is wrong with those that were left out.

    >>> merge_graphs(Path("no study"), Path("no study"))
    []
    """
    problems: list[str] = []
    for name in own_names(source):
        try:
            keep_graph(load_graph(name, source), study)
        except PpropError as error:
            problems.append(f"The graph {name!r} was left out. {error}")
    return problems
