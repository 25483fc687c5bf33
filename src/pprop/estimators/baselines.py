"""The paper's trained baselines as scikit-learn classifiers: GCN, N-GCN, GAT and jumping knowledge."""

from __future__ import annotations

from typing import final

from pprop.estimators.base import TrainedClassifier
from pprop.estimators.parameters import parameters
from pprop.models import GAT, GCN, JK, NGCN
from pprop.settings import (
    CRITERION,
    GAT_DROPOUT,
    GAT_PENALTY,
    GCN_DROPOUT,
    GCN_PENALTY,
    HEADS,
    JK_DROPOUT,
    JK_PENALTY,
    JK_WIDTH,
    LAYERS,
    MATRIX_DROPOUT,
    NGCN_DROPOUT,
    NGCN_PENALTY,
    NGCN_WIDTH,
    POWERS,
    REPLICAS,
    UNITS,
    WIDTH,
)


@final
@parameters
class GCNClassifier(TrainedClassifier):
    """A graph convolutional network of two layers, with the settings of the paper's optimised GCN.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.GCN`.
    The paper's vanilla GCN is ``GCNClassifier(graph, hidden=16, matrix_dropout=0.0, penalty=5e-4, patience=10,
    max_epochs=200, criterion="loss")``.

    References
    ----------
    T. N. Kipf, M. Welling. Semi-Supervised Classification with Graph Convolutional Networks. ICLR 2017.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = GCNClassifier(graph, hidden=8, dropout=0.0, matrix_dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    """

    _kind = GCN

    hidden: int = WIDTH.field()
    dropout: float = GCN_DROPOUT.field()
    matrix_dropout: float = MATRIX_DROPOUT.field()
    penalty: float = GCN_PENALTY.field()
    criterion: str = CRITERION.field()


@final
@parameters
class NGCNClassifier(TrainedClassifier):
    """Graph convolutional networks that see the graph at several distances, mixed by attention.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.NGCN`.

    References
    ----------
    S. Abu-El-Haija, A. Kapoor, B. Perozzi, J. Lee. N-GCN: Multi-scale Graph Convolution for Semi-supervised Node
    Classification. UAI 2019.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = NGCNClassifier(graph, hidden=8, dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    """

    _kind = NGCN

    hidden: int = NGCN_WIDTH.field()
    powers: int = POWERS.field()
    replicas: int = REPLICAS.field()
    dropout: float = NGCN_DROPOUT.field()
    penalty: float = NGCN_PENALTY.field()


@final
@parameters
class GATClassifier(TrainedClassifier):
    """Two layers of attention over the neighbours of a node and itself.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.GAT`.

    References
    ----------
    P. Veličković, G. Cucurull, A. Casanova, A. Romero, P. Liò, Y. Bengio. Graph Attention Networks. ICLR 2018.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = GATClassifier(graph, units=4, dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    """

    _kind = GAT

    heads: int = HEADS.field()
    units: int = UNITS.field()
    dropout: float = GAT_DROPOUT.field()
    penalty: float = GAT_PENALTY.field()


@final
@parameters
class JKClassifier(TrainedClassifier):
    """Layers of a graph convolutional network, all of which the last layer sees.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.JK`.

    References
    ----------
    K. Xu, C. Li, Y. Tian, T. Sonobe, K. Kawarabayashi, S. Jegelka. Representation Learning on Graphs with Jumping
    Knowledge Networks. ICML 2018.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = JKClassifier(graph, hidden=8, dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    """

    _kind = JK

    hidden: int = JK_WIDTH.field()
    layers: int = LAYERS.field()
    dropout: float = JK_DROPOUT.field()
    penalty: float = JK_PENALTY.field()
