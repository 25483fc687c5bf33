"""Every figure that a study's rows allow, for the report."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

from pprop._errors import DatasetError
from pprop.datasets import DATASETS, paper_split
from pprop.graph import Graph
from pprop.study.cell import Cell, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures import gather, sweeps
from pprop.study.figures.captions import dataset_title, runs_note
from pprop.study.figures.distance import Distance, distance_data, draw_distance
from pprop.study.figures.distribution import distributions_data, draw_distributions
from pprop.study.figures.gather import Found, RowsOf, collect, collect_accuracies
from pprop.study.figures.leads import LOWEST, draw_leads, draw_steps_leads, leads_data, steps_leads_data
from pprop.study.figures.lines import Lines
from pprop.study.figures.propagation import Propagated, draw_propagation, propagation_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawn", "figures_of"]

BANDS = "with their 95 % bootstrap intervals as bands"


@final
@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure, drawn when it is asked for.

    Attributes
    ----------
    name
        For its file: distributions, labels, labels_lead, steps, steps_lead, alpha, propagation, depth or distance; with the
        kind of splits appended where a study has the same figure on both.
    title, caption
        What it shows, and how to read it, with the number of runs behind its points.
    data
        What is drawn, as the figure's data function gives it.
    draw
        Returns the figure.
    experiments
        Names of those whose rows it shows.
    """

    name: str
    title: str
    caption: str
    data: Any
    draw: Callable[[], Figure]
    experiments: tuple[str, ...]


@final
@dataclass(frozen=True)
class Sweep:
    """A figure of lines: where a cell stands in it, its two functions, and what is said about it."""

    name: str
    title: str
    place: Callable[[Cell], Hashable | None]
    data: Callable[..., Lines]
    draw: Callable[[Lines], Figure]
    caption: str


SWEEPS = (
    Sweep(
        "labels",
        "Accuracy over the number of training nodes",
        gather.labels_place,
        sweeps.labels_data,
        sweeps.draw_labels,
        f"Mean accuracies over the number of training nodes per class (logarithmic), {BANDS}. With 20 they are the runs of "
        "the accuracy table.",
    ),
    Sweep(
        "steps",
        "Accuracy over the number of propagation steps",
        gather.steps_place,
        sweeps.steps_data,
        sweeps.draw_steps,
        f"Mean accuracies of APPNP, trained anew at each number of propagation steps K (logarithmic), {BANDS}. "
        "Dashed: the limit of many steps, which is PPNP for α > 0, and for α = 0 the same prediction for all nodes "
        "up to a factor.",
    ),
    Sweep(
        "alpha",
        "Accuracy over the teleport probability",
        gather.alpha_place,
        sweeps.alpha_data,
        sweeps.draw_alpha,
        f"Mean accuracies over the teleport probability α (logarithmic), {BANDS}.",
    ),
    Sweep(
        "depth",
        "Accuracy over the depth of the network",
        gather.depth_place,
        sweeps.depth_data,
        sweeps.draw_depth,
        f"Mean accuracies of APPNP over the number of layers of its network, {BANDS}.",
    ),
)


@final
@dataclass(frozen=True)
class Leads:
    """A figure of differences between the cells of a sweep: of which, on which splits, and what `Sweep` has as well."""

    of: str
    splits: Splits
    title: str
    data: Callable[..., Lines | None]
    draw: Callable[[Lines], Figure]
    caption: str


LEADS = (
    Leads(
        "labels",
        "test",
        "Lead of APPNP over the number of training nodes",
        leads_data,
        draw_leads,
        "Accuracy of each model minus that of APPNP over the number of training nodes per class (logarithmic), split by "
        "split, with 95 % bootstrap intervals over splits as bands: above zero a model is better than APPNP. Cut off below "
        f"{abs(LOWEST):g} points behind it.",
    ),
    Leads(
        "steps",
        "validation",
        "Distance from PPNP over the number of propagation steps",
        steps_leads_data,
        draw_steps_leads,
        "Accuracy of APPNP at each number of propagation steps K (logarithmic) minus that of PPNP with the same α, split by "
        "split, with 95 % bootstrap intervals over splits as bands: above zero APPNP is better.",
    ),
)


def figures_of(experiments: Iterable[Experiment], rows_of: RowsOf, graph_of: Callable[[str], Graph]) -> list[Drawn]:
    """Return every figure that has rows.

    Parameters
    ----------
    experiments
        Those whose cells are looked at; the order decides which of two cells with the same place is shown.
    rows_of
        The rows of a cell that may be pooled; empty where there are none.
    graph_of
        The graph of a dataset, for the distances; it may raise `DatasetError`, which the caption then tells, or that of
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
    distances, left_out = _distances(tables, graph_of)
    figures = [*_distributions(tables, "" if distances else left_out)]
    for sweep in SWEEPS:
        figures += _sweep(sweep, [one for one in known if one.shows == sweep.name], rows_of)
        figures += [drawn for each in LEADS if each.of == sweep.name for drawn in _leads(each, sweep, known, rows_of)]
    figures += _propagation(known, rows_of)
    return figures + distances


def _distributions(found: Found, no_distances: str) -> Iterator[Drawn]:
    panels = distributions_data(found.rows)
    if not panels:
        return
    counts = {(row.model, panel.dataset, ""): row.estimate.runs for panel in panels for row in panel.models}
    caption = (
        "Test accuracy of every run (points), and above them the mean (long tick, number) with its 95 % bootstrap "
        f"interval (bar). {runs_note(counts, 'of each model')}{found.note}"
    )
    if no_distances:
        caption += f" There is no figure of distances. {no_distances}"
    draw = partial(draw_distributions, panels)
    yield Drawn("distributions", "Accuracy distributions", caption, panels, draw, found.experiments)


def _sweep(sweep: Sweep, experiments: Sequence[Experiment], rows_of: RowsOf) -> Iterator[Drawn]:
    both: tuple[Splits, Splits] = ("test", "validation")
    found = {splits: collect(experiments, rows_of, sweep.place, splits) for splits in both}
    shown = [splits for splits in both if found[splits].rows]
    for splits in shown:
        lines = sweep.data(found[splits].rows, splits=splits)
        counts = {
            (series.name, panel.dataset, f"{x:g}"): point.runs
            for panel in lines.panels
            for series in panel.series
            for x, point in zip(series.x, series.estimates, strict=True)
        }
        counts |= {
            (series.name, panel.dataset, "the limit"): series.limit.runs
            for panel in lines.panels
            for series in panel.series
            if series.limit is not None
        }
        caption = f"{sweep.caption}{_best_alphas(lines) if sweep.name == 'alpha' else ''} {runs_note(counts)}"
        name = sweep.name if len(shown) == 1 else f"{sweep.name}_{splits}"
        draw = partial(sweep.draw, lines)
        yield Drawn(name, sweep.title, caption + found[splits].note, lines, draw, found[splits].experiments)


def _leads(leads: Leads, sweep: Sweep, experiments: Sequence[Experiment], rows_of: RowsOf) -> Iterator[Drawn]:
    shown = [one for one in experiments if one.shows == sweep.name]
    found = collect(shown, rows_of, sweep.place, leads.splits)
    lines = leads.data(found.rows, splits=leads.splits)
    if lines is not None:
        draw = partial(leads.draw, lines)
        yield Drawn(f"{sweep.name}_lead", leads.title, leads.caption, lines, draw, found.experiments)


def _best_alphas(lines: Lines) -> str:
    """Say where the mean of each model is highest."""
    best: dict[str, list[str]] = {}
    for panel in lines.panels:
        for series in panel.series:
            if series.x:
                x = max(zip(series.x, series.estimates, strict=True), key=lambda point: point[1].mean)[0]
                best.setdefault(series.name, []).append(f"{x:g} on {panel.dataset}")
    told = "; ".join(f"{name} at α = {', '.join(places)}" for name, places in best.items())
    return f" Highest means: {told}." if told else ""


def _propagation(experiments: Sequence[Experiment], rows_of: RowsOf) -> Iterator[Drawn]:
    shown = [one for one in experiments if one.shows == "propagation"]
    found = collect(shown, rows_of, gather.propagation_place, "test")
    timed = collect([one for one in experiments if one.shows == "time"], rows_of, gather.model_title, "test")
    panels = propagation_data(found.rows, timed.rows)
    if not panels:
        return
    counts = {(f"'{way.name}'", panel.dataset, ""): way.accuracy.runs for panel in panels for way in panel.ways}
    caption = (
        "Left: mean test accuracy with its 95 % bootstrap interval when predictions are propagated never (an MLP), in "
        "training alone, in inference alone, or in both (APPNP). Right: mean seconds of training for one run; without "
        f"propagation in training it is that of an MLP, with it that of APPNP. {_times(panels)} {runs_note(counts, 'of each')}{found.note}"
    )
    draw = partial(draw_propagation, panels)
    yield Drawn("propagation", "Propagation in training and inference", caption, panels, draw, found.experiments)


def _times(panels: Sequence[Propagated]) -> str:
    """Say what the times are of, and where they do not compare."""
    unlike = [panel.dataset for panel in panels if not panel.times_compare]
    if unlike:
        return (
            f"Times on {', '.join(unlike)} do not compare: the runs were not all trained on one kind of device, as "
            "many at once."
        )
    epochs = "; ".join(
        f"{panel.dataset} {', '.join(f'{way.ms_per_epoch:.3g}' for way in panel.ways)}" for panel in panels
    )
    how = (
        "of runs that were timed alone; the seconds are these times the epochs of each run"
        if _alone(panels)
        else "a run's share where several were trained together"
    )
    return f"Milliseconds an epoch, from top to bottom: {epochs}; {how}."


def _alone(panels: Sequence[Propagated]) -> bool:
    return all(way.together == (1,) for panel in panels for way in panel.ways)


def _distances(found: Found, graph_of: Callable[[str], Graph]) -> tuple[list[Drawn], str]:
    """Return the figure, if there is one, and a sentence about the datasets that it is without."""
    panels: list[Distance] = []
    absent: list[str] = []
    other: list[str] = []
    for dataset in DATASETS:
        rows = found.rows.get(dataset_title(dataset), {})
        better, baseline = rows.get("APPNP", []), rows.get("GCN", [])
        seeds = {row.key.seeds.split for row in better} & {row.key.seeds.split for row in baseline}
        if not seeds:
            continue
        try:
            graph = graph_of(dataset)
        except DatasetError:
            absent.append(dataset_title(dataset))
            continue
        if {row.key.data for row in (*better, *baseline)} != {graph.fingerprint}:
            other.append(dataset_title(dataset))  # node i of the predictions may be another node here
            continue
        splits = {seed: paper_split(graph, seed) for seed in seeds}
        panels.append(distance_data(dataset_title(dataset), graph, splits, better, baseline))
    reasons = [f"{', '.join(absent)}, whose graph is not on this machine"] if absent else []
    reasons += [f"{', '.join(other)}, whose graph here is not the one of the rows"] if other else []
    without = f"Without {', and without '.join(reasons)}." if reasons else ""
    if not panels:
        return [], without
    counts = {
        (model, panel.dataset, ""): panel.runs[index]
        for panel in panels
        for index, model in enumerate(("APPNP", "GCN"))
    }
    caption = (
        "How many more percent of the test nodes APPNP gets right than GCN, by the distance of a node from the nearest "
        "training node, with a 95 % bootstrap interval over splits. Below each distance: the mean number of test nodes "
        f"there; the farthest are taken together until there is one on average. {runs_note(counts, 'of each model')}"
    )
    draw = partial(draw_distance, panels)
    names = (*found.origins["APPNP"], *found.origins["GCN"])
    title = "Improvement over GCN by distance from the training nodes"
    return [Drawn("distance", title, f"{caption} {without}".strip(), panels, draw, names)], without
