"""The graph layer: the frozen Graph, its normalisation and its file formats.

Importing it loads numpy and scipy. pyarrow, pandas, networkx, scikit-learn and rich are imported where they are needed, torch in
`pprop.graph.convert.pyg` alone.
"""

from pprop.graph.attributes import Recommended
from pprop.graph.edges import read_edges
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.scaling import Scaling
from pprop.graph.folder import GraphFolder, write_folder
from pprop.graph.formats import read_graph
from pprop.graph.graph import LOSSES, Graph
from pprop.graph.homophily import Homophily, homophily
from pprop.graph.npz import read_npz, write_npz
from pprop.graph.transition import Transition, transition_matrix

__all__ = [
    "LOSSES",
    "Graph",
    "GraphFolder",
    "Homophily",
    "Recipe",
    "Recommended",
    "Scaling",
    "Transition",
    "homophily",
    "read_edges",
    "read_graph",
    "read_npz",
    "transition_matrix",
    "write_folder",
    "write_npz",
]
