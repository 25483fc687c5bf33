"""Figures: each is a function that computes what is shown, and one that draws it, which imports matplotlib.

============================================ ====================
figure                                       module
============================================ ====================
labels, steps, steps_lead, alpha, depth      `sweeps`
distributions, propagation                   `accuracies`
distance                                     `distance`
training curves, contributions to a node,    `model`
trials of a search for settings
============================================ ====================

`gather` finds the rows of a study's figure; `style` has what all of them share.
"""

from collections.abc import Callable, Iterable

from pprop.graph import Graph
from pprop.study.experiment import Experiment
from pprop.study.figures.accuracies import distributions_figure, propagation_figure
from pprop.study.figures.distance import distance_figure
from pprop.study.figures.gather import DrawnFigure, RowsOf, collect_accuracies
from pprop.study.figures.sweeps import sweep_figures


def figures_of(
    experiments: Iterable[Experiment], rows_of: RowsOf, graph_of: Callable[[str], Graph]
) -> list[DrawnFigure]:
    """Return every figure that has rows.

    Parameters
    ----------
    experiments
        Those whose cells are looked at; the order decides which of two cells with the same place is shown.
    rows_of
        The rows of a cell that may be pooled; empty where there are none.
    graph_of
        The graph of a dataset, for the distances; it may raise `DatasetError`, which the caption then says, or that of
        the distributions where there are no distances at all.

    Examples
    --------
    >>> from pprop.datasets import load_dataset
    >>> from pprop.study.experiment_folder import load_experiments
    >>> figures_of(load_experiments().values(), lambda cell: [], load_dataset)
    []
    """
    known = list(experiments)
    tables = collect_accuracies(known, rows_of)
    distances, left_out = distance_figure(tables, graph_of)
    distributions = distributions_figure(tables, "" if distances else left_out)
    return [*distributions, *sweep_figures(known, rows_of), *propagation_figure(known, rows_of), *distances]
