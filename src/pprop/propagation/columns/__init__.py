"""What the graph says of each node, as columns for any model: walks over the edges, structure, known labels nearby."""

from pprop.propagation.columns.averages import averages
from pprop.propagation.columns.label_shares import known_nearby
from pprop.propagation.columns.structure import structure_columns
from pprop.propagation.columns.walks import walk_statistics

__all__ = ["averages", "known_nearby", "structure_columns", "walk_statistics"]
