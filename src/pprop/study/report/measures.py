"""The figures behind the paper's claims: each measure takes the results of a study and a dataset, and returns one figure.

A difference is the mean over splits of the first minus the second, with the 95 % interval of that mean (Student's t), unless
its measure says otherwise. A measure decides nothing: what a figure means is written by hand beside it (`claims`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from pprop import settings as st
from pprop._errors import PpropError
from pprop.datasets import TEST_SEEDS, paper_split
from pprop.graph import Graph, transition_matrix
from pprop.study.cell import Seeds
from pprop.study.figures.accuracies import WAYS
from pprop.study.figures.distance import Distance, gains_by_hop, hops_from
from pprop.study.figures.sweeps import NO_TELEPORT, Place
from pprop.study.report.results import Results, Runs
from pprop.study.stats.estimate import student_half
from pprop.study.stats.paired import by_split, split_gaps
from pprop.study.tables.entries import PAPERS_BASELINES, ByDataset, Metric, dataset_title
from pprop.study.tables.table import Number
from pprop.study.tables.times import epoch_times

RESAMPLES = 1000
FEWEST_LABELS, MOST_LABELS = 1, 20  # per class: the slope of the lead is over these and what lies between
FAR, NEAR = 4, 2  # hops from the training nodes

_Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Measurement:
    """A number with its 95 % interval and what it was computed from.

    Attributes
    ----------
    value, low, high
        The number and the ends of its interval, or of the range that the unit names; NaN for a number without one.
    unit
        Of all three.
    n
        How many splits, runs or nodes it was computed from, and which: ``"20 splits"``.
    decimals, signed
        How the three are printed.

    Examples
    --------
    >>> one = Measurement(0.391, 0.126, 0.657, "points", "20 splits", signed=True)
    >>> one.text
    '+0.39 (+0.13 to +0.66) points'
    >>> one.words
    {'value': '+0.39', 'low': '+0.13', 'high': '+0.66'}
    """

    value: float
    low: float
    high: float
    unit: str
    n: str
    decimals: int = 2
    signed: bool = False

    @property
    def words(self) -> dict[str, str]:
        """The three numbers as they are printed."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: str(Number(number, self.decimals, self.signed)) for name, number in numbers.items()}

    @property
    def text(self) -> str:
        """The number, its interval and its unit."""
        words = self.words
        interval = "" if np.isnan(self.low) else f" ({words['low']} to {words['high']})"
        return f"{words['value']}{interval} {self.unit}".rstrip()


Measured: TypeAlias = Callable[[Results, str], Measurement | None]


@final
@dataclass(frozen=True)
class ClaimMeasure:
    """What is measured, in words, and the function of the results and a dataset that measures it.

    The function returns None where rows or a graph are missing.
    """

    what: str
    of: Measured


def difference(first: Runs, second: Runs, unit: str = "points", decimals: int = 2) -> Measurement | None:
    """Return the mean over splits of the first minus the second with its 95 % interval; None without two common splits.

    Examples
    --------
    >>> gcn, gat = ({Seeds(split, 0): value + split for split in (0, 2)} for value in (75.0, 76.0))
    >>> difference(gat, gcn).text
    '+1.00 (+1.00 to +1.00) points'
    """
    return mean_over_splits(split_gaps(first, second).values(), unit, decimals)


def mean_over_splits(values: Iterable[float], unit: str = "points", decimals: int = 2) -> Measurement | None:
    """Return the mean of numbers, one for each split, with its 95 % interval by Student's t; None for fewer than two.

    Examples
    --------
    >>> mean_over_splits([1.0, 3.0]).text, mean_over_splits([1.0])
    ('+2.00 (−10.71 to +14.71) points', None)
    """
    numbers = [*values]
    if len(numbers) < 2:
        return None
    mean, half = float(np.mean(numbers)), student_half(numbers)
    return Measurement(mean, mean - half, mean + half, unit, f"{len(numbers)} splits", decimals, signed=True)


# --- accuracy and macro F1 of the accuracy table


def _values(entries: ByDataset, dataset: str, metric: Metric = "accuracy") -> dict[str, dict[Seeds, float]]:
    """Return the metric of each run by the model's title: accuracy in percent."""
    unit = 100.0 if metric == "accuracy" else 1.0
    run = (entry for entry in entries.get(dataset, ()) if entry.sample is not None)
    return {entry.title: {seeds: unit * value for seeds, value in entry.values(metric).items()} for entry in run}


def _minus(first: str, second: str) -> Measured:
    """Return the measure of one model's accuracy minus another's."""

    def measure(results: Results, dataset: str) -> Measurement | None:
        runs = _values(results.main, dataset)
        return difference(runs[first], runs[second]) if {first, second} <= runs.keys() else None

    return measure


def _nearest(model: str, *, many: bool = False) -> Measured:
    """Return the measure of a model's smallest lead in accuracy over a baseline of the paper."""

    def measure(results: Results, dataset: str) -> Measurement | None:
        runs = _values(results.many if many else results.main, dataset)
        if model not in runs or not set(PAPERS_BASELINES) <= runs.keys():
            return None
        leads = (difference(runs[model], runs[other]) for other in PAPERS_BASELINES)
        return min((lead for lead in leads if lead), key=lambda lead: lead.value, default=None)

    return measure


def _gcn_over_two(results: Results, dataset: str) -> Measurement | None:
    """GCN's second largest lead over N-GCN, GAT, JK and Bt. FP: it is ahead of two where this is positive."""
    runs, recent = _values(results.main, dataset), ("N-GCN", "GAT", "JK", "Bt. FP")
    if not {"GCN", *recent} <= runs.keys():
        return None
    leads = [lead for other in recent if (lead := difference(runs["GCN"], runs[other]))]
    return sorted(leads, key=lambda lead: -lead.value)[1] if len(leads) > 1 else None


def _f1_of_ppnp(results: Results, dataset: str) -> Measurement | None:
    """PPNP's macro F1 minus the highest of the paper's other models."""
    runs = _values(results.main, dataset, "f1")
    others = [name for name in (*PAPERS_BASELINES, "APPNP") if name in runs]
    if "PPNP" not in runs or not others:
        return None
    return difference(runs["PPNP"], runs[max(others, key=lambda name: _mean(runs[name]))], "macro F1", 4)


def _steadiness(results: Results, dataset: str) -> Measurement | None:
    """The largest standard deviation of PPNP, APPNP and GAT minus the median of the others', by resampling splits."""
    steady, others = ("PPNP", "APPNP", "GAT"), ("V. GCN", "GCN", "N-GCN", "JK")
    runs = {name: each for name, each in _values(results.main, dataset).items() if name in (*steady, *others)}
    groups = {name: by_split(each) for name, each in runs.items()}
    if len(groups) < len(steady) + len(others):
        return None
    splits = np.array([split for split in groups["GAT"] if all(split in each for each in groups.values())])
    if len(splits) < 2:
        return None

    def gap(drawn: Sequence[int]) -> float:
        spread = {
            name: float(np.std(np.concatenate([each[split] for split in drawn]), ddof=1))
            for name, each in groups.items()
        }
        return max(spread[name] for name in steady) - float(np.median([spread[name] for name in others]))

    draws = np.random.default_rng(0).integers(len(splits), size=(RESAMPLES, len(splits)))
    low, high = np.quantile([gap(drawn.tolist()) for drawn in splits[draws]], [0.025, 0.975])
    return Measurement(gap(splits.tolist()), float(low), float(high), "points", f"{len(splits)} splits", signed=True)


# --- time


def _ms_per_epoch(results: Results, dataset: str) -> dict[str, float]:
    """Return milliseconds per epoch by model, on a GPU where there is one."""
    timed = [each for each in epoch_times(results.times.get(dataset, ())) if each.ours is not None]
    device = max((each.device for each in timed), default="")  # "cuda ..." comes after "cpu"
    return {each.entry.title: each.ours.mean for each in timed if each.device == device and each.ours is not None}


def _time_ratio(first: str, second: str) -> Measured:
    def measure(results: Results, dataset: str) -> Measurement | None:
        ms = _ms_per_epoch(results, dataset)
        if not {first, second} <= ms.keys():
            return None
        return _plain(ms[first] / ms[second], f"times {second}'s epoch", "5 runs of each")

    return measure


def _growth(results: Results, dataset: str) -> Measurement | None:
    """How an epoch of APPNP grows from GCN's fastest graph to its slowest, over the same of GCN's."""
    ms = {name: found for name in results.times if {"APPNP", "GCN"} <= (found := _ms_per_epoch(results, name)).keys()}
    if len(ms) < 2:
        return None
    small, large = (extreme(ms, key=lambda name: ms[name]["GCN"]) for extreme in (min, max))
    appnp, gcn = (ms[large][model] / ms[small][model] for model in ("APPNP", "GCN"))
    where = f"{dataset_title(small)} and {dataset_title(large)}, 5 runs of each model"
    return _plain(appnp / gcn, "times GCN's growth", where)


def _skipping(results: Results, dataset: str) -> Measurement | None:
    """Seconds of a run that propagates in inference alone, over those of one that always does."""
    panels = (panel for each in results.drawn if each.name == "propagation" for panel in each.data)
    panel = next((panel for panel in panels if panel.dataset == dataset_title(dataset)), None)
    if panel is None or not panel.times_compare:
        return None
    seconds = {way.name: way.seconds for way in panel.ways}
    if not {"inference", "both"} <= seconds.keys():
        return None
    runs = min(seconds[name].runs for name in ("inference", "both"))
    return _plain(seconds["inference"].mean / seconds["both"].mean, "times the seconds", f"{runs} runs of each")


# --- sweeps over one setting


def _best_alpha(model: str) -> Measured:
    """Return the measure of the best alpha in [0.05, 0.2] minus the best outside."""

    def measure(results: Results, dataset: str) -> Measurement | None:
        runs = {alpha: each for (title, alpha), each in results.sweep("alpha", dataset).items() if title == model}
        inside = _best({alpha: each for alpha, each in runs.items() if 0.05 <= alpha <= 0.2})
        outside = _best({alpha: each for alpha, each in runs.items() if not 0.05 <= alpha <= 0.2})
        return None if inside is None or outside is None else difference(inside, outside)

    return measure


def _no_teleport(results: Results, dataset: str) -> Measurement | None:
    """The accuracy with the most steps without teleport minus that with the best number of steps."""
    places = results.sweep("steps", dataset).items()
    runs = {steps: each for (name, steps), each in places if name == NO_TELEPORT and np.isfinite(steps)}
    best = _best(runs)
    return difference(runs[max(runs)], best) if best is not None and len(runs) > 1 else None


def _steps(alpha: float, few: int, many: int) -> Measured:
    """Return the measure of the accuracy with many steps minus that with few."""

    def measure(results: Results, dataset: str) -> Measurement | None:
        runs = results.sweep("steps", dataset)
        first, second = ((f"α = {alpha:g}", float(steps)) for steps in (many, few))
        return difference(runs[first], runs[second]) if {first, second} <= runs.keys() else None

    return measure


def _with_labels(first: str, second: str, labels: int) -> Measured:
    """Return the measure of one model's accuracy minus another's with some training nodes per class."""

    def measure(results: Results, dataset: str) -> Measurement | None:
        runs = results.sweep("labels", dataset)
        places: tuple[Place, Place] = (first, float(labels)), (second, float(labels))
        return difference(runs[places[0]], runs[places[1]]) if {*places} <= runs.keys() else None

    return measure


def lead_by_labels(runs: Mapping[Place, Runs], model: str) -> dict[float, dict[int, float]]:
    """Return a model's lead over the best baseline of the paper, by training nodes per class from 1 to 20 and by split.

    Which baseline is the best is decided by the mean at each number of training nodes.

    Examples
    --------
    >>> runs = {("GCN", 1.0): {Seeds(7, 0): 50.0}, ("JK", 1.0): {Seeds(7, 0): 52.0}, ("APPNP", 1.0): {Seeds(7, 0): 55.0}}
    >>> lead_by_labels(runs, "APPNP")
    {1.0: {7: 3.0}}
    """
    leads: dict[float, dict[int, float]] = {}
    for labels in sorted(x for title, x in runs if title == model and FEWEST_LABELS <= x <= MOST_LABELS):
        others = [runs[title, labels] for title in PAPERS_BASELINES if (title, labels) in runs]
        if others:
            leads[labels] = split_gaps(runs[model, labels], max(others, key=_mean))
    return leads


def _slope_over_labels(model: str) -> Measured:
    """Return the measure of the change of the lead per doubling of the training nodes, from 1 to 20 per class."""

    def measure(results: Results, dataset: str) -> Measurement | None:
        leads = lead_by_labels(results.sweep("labels", dataset), model)
        if not {FEWEST_LABELS, MOST_LABELS} <= leads.keys():
            return None
        splits = [split for split in leads[MOST_LABELS] if all(split in each for each in leads.values())]
        doublings = np.log2([*leads])
        slopes = [float(np.polyfit(doublings, [each[split] for each in leads.values()], 1)[0]) for split in splits]
        return mean_over_splits(slopes, "points per doubling")

    return measure


def _deeper(results: Results, dataset: str) -> Measurement | None:
    """The best network of more than two layers minus that of two."""
    runs = {layers: each for (_, layers), each in results.sweep("depth", dataset).items()}
    best = _best({layers: each for layers, each in runs.items() if layers > 2})
    return difference(best, runs[2]) if 2 in runs and best is not None else None


def _way_minus(first: str, second: str = "") -> Measured:
    """Return the measure of one way to propagate minus another one, by default the best other one."""

    def measure(results: Results, dataset: str) -> Measurement | None:
        runs: Mapping[str, Runs] = results.sweep("propagation", dataset)
        if not set(WAYS) <= runs.keys():
            return None
        other = second or max((way for way in WAYS if way != first), key=lambda way: _mean(runs[way]))
        return difference(runs[first], runs[other])

    return measure


# --- distance from the training nodes


def _per_hop(results: Results, dataset: str) -> Measurement | None:
    """The slope of a line through the rings of the figure on distances, each weighted by its interval."""
    panels = (panel for each in results.drawn if each.name == "distance" for panel in each.data)
    panel = next((panel for panel in panels if panel.dataset == dataset_title(dataset)), None)
    return None if panel is None else weighted_slope(panel)


def weighted_slope(panel: Distance) -> Measurement | None:
    """Return the points per hop of a line through rings that are weighted by their intervals; None for fewer than two.

    Where the rings lie farther from the line than their intervals say, the slope's interval grows alike (Birge's ratio).
    The weights are of 95 % intervals, 1.96 standard errors.
    """
    rings = [ring for ring in panel.rings if max(ring.improvement.below_and_above) > 0]
    if len(rings) < 2:
        return None
    hops = np.array([ring.first for ring in rings], dtype=np.float64)
    gaps = np.array([ring.improvement.mean for ring in rings])
    weights = np.array([max(ring.improvement.below_and_above) for ring in rings]) ** -2.0
    centred = hops - np.average(hops, weights=weights)
    slope = float((weights * centred * gaps).sum() / (weights * centred**2).sum())
    beside = gaps - np.average(gaps, weights=weights) - slope * centred
    scatter = float(1.96**2 * (weights * beside**2).sum()) / max(len(rings) - 2, 1)
    half = float((weights * centred**2).sum() ** -0.5) * max(scatter, 1.0) ** 0.5
    return Measurement(slope, slope - half, slope + half, "points per hop", f"{len(rings)} distances", signed=True)


def _far_minus_near(results: Results, dataset: str) -> Measurement | None:
    """The improvement over GCN of nodes at least 4 hops away minus that of nodes at most 2 hops away, split by split."""
    models = {entry.title: entry for entry in results.main.get(dataset, ()) if entry.sample is not None}
    if not {"APPNP", "GCN"} <= models.keys():
        return None
    with suppress(PpropError, OSError):  # the table of datasets says why a graph is not here
        graph = results.graph_of(dataset)
        rows = [results.with_predictions(models[name]) for name in ("APPNP", "GCN")]
        if {row.key.data for some in rows for row in some} == {graph.fingerprint}:
            splits = {seed: paper_split(graph, seed) for seed in {row.key.seeds.split for some in rows for row in some}}
            return far_minus_near(*gains_by_hop(graph, splits, *rows))
    return None


def far_minus_near(gains: _Floats, nodes: _Floats) -> Measurement | None:
    """Return the improvement at 4 hops and more minus that at 1 and 2 hops, in points.

    Parameters
    ----------
    gains, nodes
        Nodes more that are right, and nodes, by split and hop: shape (splits, hops).

    Examples
    --------
    >>> nodes = np.full((2, 6), 10.0)
    >>> far_minus_near(nodes * [0, 0.1, 0.1, 0.5, 0.3, 0.3], nodes).text
    '+20.00 (+20.00 to +20.00) points'
    """
    near, far = (
        (gains[:, part].sum(axis=1), nodes[:, part].sum(axis=1)) for part in (slice(1, NEAR + 1), slice(FAR, None))
    )
    there = (near[1] > 0) & (far[1] > 0)
    shares = [100 * gain[there] / count[there] for gain, count in (far, near)]
    return mean_over_splits((shares[0] - shares[1]).tolist())


# --- graphs and sizes


def _hidden_units(results: Results, dataset: str) -> Measurement:
    """Hidden units of N-GCN over the most of PPNP, GCN and GAT."""
    from pprop.models import FeatureNetwork

    units = max(st.WIDTH.default, st.HEADS.default * st.UNITS.default, *FeatureNetwork().widths(1, 1)[1:-1])
    of_ngcn = st.REPLICAS.default * st.POWERS.default * st.NGCN_WIDTH.default
    return _plain(of_ngcn / units, "times as many", f"{of_ngcn} and {units} units", 0)


def _parameter_ratio(*models: str) -> Callable[[Graph], Measurement]:
    """Return the measure of the parameters of some models over APPNP's: the smallest, and the range."""

    def measure(graph: Graph) -> Measurement:
        from pprop.models import GAT, GCN, JK, NGCN, Architecture, FeatureNetwork

        assert graph.features is not None
        f, c = int(graph.features.shape[1]), graph.n_classes

        def count(model: Architecture) -> int:
            return sum(int(np.prod(weight.shape)) for weight in model.weights(f, c))

        ours = sum(a * b for a, b in pairwise(FeatureNetwork().widths(f, c)))
        known: dict[str, Callable[[], Architecture]] = {"GCN": GCN, "GAT": GAT, "JK": JK, "N-GCN": NGCN}
        ratios = [count(known[name]()) / ours for name in models]
        least, most = min(ratios), max(ratios)
        ends = (least, most) if len(models) > 1 else (float("nan"), float("nan"))
        return Measurement(least, *ends, "times APPNP's parameters", f"{ours:,} of APPNP", 3)

    return measure


def _second_eigenvalue(graph: Graph) -> Measurement:
    """The second largest eigenvalue of the transition matrix; the range is from the smallest to the largest."""
    A_hat = transition_matrix(graph).to_scipy()
    start = np.linspace(1.0, 2.0, graph.n_nodes)  # ARPACK would draw one, and the last digits with it
    second, first = np.sort(eigsh(A_hat, k=2, which="LA", v0=start, tol=1e-7, return_eigenvectors=False))
    (last,) = eigsh(A_hat, k=1, which="SA", v0=start, tol=1e-7, return_eigenvectors=False)
    return Measurement(float(second), float(last), float(first), "", f"{graph.n_nodes:,} nodes", 4)


def _steps_to_forget(graph: Graph) -> Measurement:
    """The steps after which walks without teleport, from five nodes, differ by less than 1 % in total variation."""
    walk = transition_matrix(graph, "row").to_scipy().T.tocsr()
    nodes = np.linspace(0, graph.n_nodes - 1, 5).astype(np.int64)
    where, steps = np.zeros((graph.n_nodes, len(nodes))), 0
    where[nodes, np.arange(len(nodes))] = 1.0
    while steps < 20_000 and max(np.abs(a - b).sum() / 2 for a, b in combinations(where.T, 2)) > 0.01:
        where, steps = walk @ where, steps + 1
    return _plain(float(steps if steps < 20_000 else np.inf), "steps", f"{len(nodes)} nodes", 0)


def _farthest(graph: Graph) -> Measurement:
    """The largest distance of a node to the training set: the mean over the test splits, and the range."""
    reach = [int(hops_from(graph, paper_split(graph, seed).train).max()) for seed in TEST_SEEDS]
    return Measurement(float(np.mean(reach)), float(min(reach)), float(max(reach)), "hops", f"{len(reach)} splits", 1)


def _convergence(graph: Graph) -> Measurement:
    """Steps to a relative error of 1e-4 with alpha = 0.05, over those with alpha = 0.5."""
    T, H = transition_matrix(graph).to_scipy(), np.random.default_rng(0).standard_normal((graph.n_nodes, 3))
    slow, fast = (steps_to(T, H, alpha, 1e-4) for alpha in (0.05, 0.5))
    return _plain(slow / fast, "times as many steps", f"{slow} and {fast} steps", 1)


def steps_to(T: Any, H: _Floats, alpha: float, tolerance: float) -> int:
    """Return the steps after which power iteration is as near to its limit as `tolerance`, relative to it.

    Parameters
    ----------
    T
        The transition matrix, shape (n, n).
    H
        Predictions, shape (n, c).

    Examples
    --------
    >>> steps_to(np.eye(2), np.ones((2, 1)), 0.5, 1e-4)
    0
    """
    exact = H
    for _ in range(int(np.log(1e-9) / np.log1p(-alpha))):
        exact = (1 - alpha) * (T @ exact) + alpha * H
    error, steps = H - exact, 0
    while np.linalg.norm(error) > tolerance * np.linalg.norm(exact):  # Z^(k) - Z shrinks by one product a step
        error, steps = (1 - alpha) * (T @ error), steps + 1
    return steps


def _of_graph(measure: Callable[[Graph], Measurement]) -> Measured:
    """Return the measure of a graph as one of results; None where the graph is not on this machine."""

    @cache
    def found(graph: Graph) -> Measurement:
        return measure(graph)

    def of_results(results: Results, dataset: str) -> Measurement | None:
        with suppress(PpropError, OSError):
            return found(results.graph_of(dataset))
        return None

    return of_results


def _plain(value: float, unit: str, n: str, decimals: int = 2) -> Measurement:
    return Measurement(value, float("nan"), float("nan"), unit, n, decimals)


def _mean(runs: Runs) -> float:
    return float(np.mean([*runs.values()]))


def _best(runs: Mapping[float, Runs]) -> Runs | None:
    return max(runs.values(), key=_mean, default=None)


# Measures that need a graph at most, and no trained model.
OF_GRAPHS: Mapping[str, ClaimMeasure] = {
    "second_eigenvalue": ClaimMeasure(
        "Second largest eigenvalue of Â (the smallest to the largest)", _of_graph(_second_eigenvalue)
    ),
    "steps_to_forget": ClaimMeasure(
        "Steps until walks without teleport from five nodes differ by less than 1 %", _of_graph(_steps_to_forget)
    ),
    "convergence": ClaimMeasure("Steps to a relative error of 1e−4: α = 0.05 over α = 0.5", _of_graph(_convergence)),
    "hidden_units": ClaimMeasure("Hidden units of N-GCN over those of GCN, GAT and PPNP", _hidden_units),
    "gcn_parameters": ClaimMeasure("Parameters of GCN over APPNP's", _of_graph(_parameter_ratio("GCN"))),
    "parameters": ClaimMeasure(
        "Parameters of GCN, GAT, JK and N-GCN over APPNP's: the smallest (and the range)",
        _of_graph(_parameter_ratio("GCN", "GAT", "JK", "N-GCN")),
    ),
    "farthest": ClaimMeasure(
        "Largest distance of a node to the training set: mean over splits (and the range)", _of_graph(_farthest)
    ),
}

# Measures of the rows of a study.
OF_ROWS: Mapping[str, ClaimMeasure] = {
    "ppnp_nearest": ClaimMeasure("PPNP minus the nearest baseline", _nearest("PPNP")),
    "appnp_nearest": ClaimMeasure("APPNP minus the nearest baseline", _nearest("APPNP")),
    "ppnp_nearest_200": ClaimMeasure("PPNP minus the nearest baseline, more splits", _nearest("PPNP", many=True)),
    "appnp_nearest_200": ClaimMeasure("APPNP minus the nearest baseline, more splits", _nearest("APPNP", many=True)),
    "ngcn_gcn": ClaimMeasure("N-GCN minus GCN", _minus("N-GCN", "GCN")),
    "gat_gcn": ClaimMeasure("GAT minus GCN", _minus("GAT", "GCN")),
    "jk_gcn": ClaimMeasure("JK minus GCN", _minus("JK", "GCN")),
    "gcn_over_two": ClaimMeasure("GCN's second largest lead over N-GCN, GAT, JK and Bt. FP", _gcn_over_two),
    "gcn_vanilla": ClaimMeasure("GCN minus V. GCN", _minus("GCN", "V. GCN")),
    "steadiness": ClaimMeasure(
        "Largest standard deviation of PPNP, APPNP and GAT minus the median of V. GCN, GCN, N-GCN and JK", _steadiness
    ),
    "appnp_ppnp": ClaimMeasure("APPNP (K = 10) minus PPNP, test accuracy", _minus("APPNP", "PPNP")),
    "ppnp_appnp": ClaimMeasure("PPNP minus APPNP, where the paper ran out of memory", _minus("PPNP", "APPNP")),
    "ppnp_f1": ClaimMeasure("PPNP minus the best other model of the paper", _f1_of_ppnp),
    "appnp_gcn_time": ClaimMeasure("Time per epoch: APPNP over GCN", _time_ratio("APPNP", "GCN")),
    "gat_appnp_time": ClaimMeasure("Time per epoch: GAT over APPNP", _time_ratio("GAT", "APPNP")),
    "growth": ClaimMeasure(
        "Growth of the time per epoch from the fastest to the slowest graph: APPNP over GCN", _growth
    ),
    "skipping": ClaimMeasure("Seconds of a training: without propagation over with it", _skipping),
    "ppnp_alpha": ClaimMeasure("PPNP: best α in [0.05, 0.2] minus best α outside", _best_alpha("PPNP")),
    "appnp_alpha": ClaimMeasure("APPNP: best α in [0.05, 0.2] minus best α outside", _best_alpha("APPNP")),
    "no_teleport": ClaimMeasure("α = 0: K = 100 minus the best K", _no_teleport),
    "steps_1_100": ClaimMeasure("α = 0.1: K = 100 minus K = 1", _steps(0.1, 1, 100)),
    "steps_10_100": ClaimMeasure("α = 0.1: K = 100 minus K = 10", _steps(0.1, 10, 100)),
    "steps_2_10": ClaimMeasure("α = 0.1: K = 10 minus K = 2", _steps(0.1, 2, 10)),
    "steps_1_100_alpha_02": ClaimMeasure("α = 0.2: K = 100 minus K = 1", _steps(0.2, 1, 100)),
    "steps_10_100_alpha_02": ClaimMeasure("α = 0.2: K = 100 minus K = 10", _steps(0.2, 10, 100)),
    "ppnp_labels": ClaimMeasure(
        "PPNP minus the best baseline (without Bt. FP), from 1 to 20 labels per class", _slope_over_labels("PPNP")
    ),
    "appnp_labels": ClaimMeasure(
        "APPNP minus the best baseline (without Bt. FP), from 1 to 20 labels per class", _slope_over_labels("APPNP")
    ),
    "gat_appnp_60": ClaimMeasure("GAT minus APPNP, 60 labels per class", _with_labels("GAT", "APPNP", 60)),
    "ppnp_appnp_1": ClaimMeasure("PPNP minus APPNP, 1 label per class", _with_labels("PPNP", "APPNP", 1)),
    "ppnp_appnp_2": ClaimMeasure("PPNP minus APPNP, 2 labels per class", _with_labels("PPNP", "APPNP", 2)),
    "per_hop": ClaimMeasure("APPNP minus GCN: slope of the weighted line through all distances", _per_hop),
    "far_near": ClaimMeasure("APPNP minus GCN: nodes at 4 or more hops minus nodes at 1 or 2 hops", _far_minus_near),
    "deeper": ClaimMeasure("The best network of 3 to 5 layers minus two layers", _deeper),
    "full": ClaimMeasure("Propagation in training and inference minus the best other way", _way_minus("both")),
    "inference_never": ClaimMeasure("Inference alone minus never", _way_minus("inference", "never")),
    "training_never": ClaimMeasure("Training alone minus never", _way_minus("training", "never")),
    "inference_both": ClaimMeasure("Inference alone minus training and inference", _way_minus("inference", "both")),
}

MEASURES: Mapping[str, ClaimMeasure] = {**OF_GRAPHS, **OF_ROWS}
