"""Which runs ``pprop study run`` asks for: experiments by name, on a user's graph where there is one, or a user's model."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pprop._errors import InputError
from pprop.cli.errors import Checks
from pprop.cli.graphs import GraphInput
from pprop.cli.output import Session
from pprop.cli.report import column_lines, columns_of_tables

if TYPE_CHECKING:
    from pprop.graph import Graph
    from pprop.study.experiment import Experiment
    from pprop.study.run.runner import Job

# Models that a user's is compared with.
RIVALS = ("appnp", "gcn")


def read_own_graph(session: Session, given: GraphInput) -> Graph:
    """Read a user's graph as a study takes it, and say what was made of it."""
    from pprop.study.experiment_folder import check_graph_name
    from pprop.study.graphs import own_graph, own_sentences

    name = check_graph_name(name_of(given))
    graph = given.read()
    ready = own_graph(graph, name)
    used, unused = columns_of_tables(graph, given)
    beside = dict.fromkeys(unused.keys() & given.unused_edge_columns(), "left out: a study takes no weights of edges")
    for line in (
        *own_sentences(graph, ready),
        *column_lines(used, {**unused, **beside}, more="'pprop data check' with --columns shows all"),
    ):
        session.say(line)
    return ready


def name_of(given: GraphInput) -> str:
    """Return what a study calls a user's graph."""
    return given.title.partition(".")[0]


def find_experiments(names: Sequence[str], out: Path, graph: str = "") -> dict[str, Experiment]:
    """Return experiments by names, groups and files, also by names of files kept in the study's folder; refuse all others.

    >>> [*find_experiments(["quick"], Path("no study"))]
    ['quick']
    """
    from pprop.study.experiment import read_experiment
    from pprop.study.experiment_folder import experiments_of, experiments_on, load_experiments

    known = load_experiments() | experiments_on(graph) if graph else experiments_of(out)
    groups = sorted({group for experiment in known.values() for group in experiment.groups})
    found: dict[str, Experiment] = {}
    with Checks() as checks:
        for name in names:
            if name.endswith(".toml"):
                read = checks.run(read_experiment, Path(name))
                found |= {} if read is None else {name: read}
            elif name in known:
                found[name] = known[name]
            elif name in groups:
                found |= {each.name: each for each in known.values() if name in each.groups}
            else:
                near = difflib.get_close_matches(name.lower(), [*groups, *known], n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Groups are: {', '.join(groups)}."
                checks.add(InputError(f"unknown experiment or group {name!r}. {hint} All names: pprop study list."))
    return found


def named_jobs(names: list[str], runs: int | None, out: Path, graph: str = "") -> list[Job]:
    """Return the cells of names, groups and files, each once; names also of files kept in the study's folder.

    With the name of a user's graph they are on that graph.

    >>> [job.cell.model for job in named_jobs(["quick"], 2, Path("no study"), "mine")]
    ['appnp', 'gcn', 'mlp']
    """
    from pprop.study.experiment_folder import experiments_on, on_graph
    from pprop.study.run.runner import Job

    found = find_experiments(names, out, graph)
    if graph:
        made = [one if one.name in experiments_on(graph) else on_graph(one, graph) for one in found.values()]
        found = {one.name: one for one in made if one is not None}
        if not found:
            raise InputError(f"{', '.join(names)} has published numbers of the paper's graphs alone, not for --graph.")
    return [
        Job(point.cell, experiment.seeds(runs, point.cell), experiment.alone)
        for experiment in found.values()
        for point in experiment.points
    ]


def model_jobs(model: str, dataset: str, runs: int | None, out: Path, graph: Graph | None = None) -> list[Job]:
    """Return the cells of a user's model and of those it is compared with, or say why the model cannot be run.

    Parameters
    ----------
    model
        ``"module:function"``.
    dataset
        Name of one of the paper's, of `graph`, or of a graph that the study's folder `out` has.
    runs
        Of each; None: all.
    out, graph
        Where the user's graphs are, and one that is not there yet.

    Examples
    --------
    >>> [job.cell.model for job in model_jobs("pprop.estimators:APPNPClassifier", "citeseer", 1, Path("no study"))]
    ['pprop.estimators:APPNPClassifier', 'appnp', 'gcn']
    """
    from pprop.study.cell import make_cell
    from pprop.study.experiment import Experiment, Point
    from pprop.study.experiment_folder import TEMPLATE
    from pprop.study.graphs import load_graph, own_names
    from pprop.study.run.recipe import ComputePlace, Datasets
    from pprop.study.run.runner import Job
    from pprop.study.run.user_model import user_cell, user_recipe

    on_own = graph is not None or dataset in own_names(out)
    rivals = [make_cell(name, {}, TEMPLATE if on_own else dataset) for name in RIVALS]
    cells = [user_cell(model, dataset), *(replace(cell, dataset=dataset) for cell in rivals)]
    prepared = Datasets(lambda name: load_graph(name, out) if graph is None else graph).of(cells[0])
    user_recipe(cells[0], prepared, ComputePlace("cpu", "numba"))  # refused before anything is there
    experiment = Experiment(model, model, "accuracy", tuple(Point(cell, {}) for cell in cells))
    return [Job(cell, experiment.seeds(runs)) for cell in cells]
