"""What the paper's text claims about trained models, each checked on the rows of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from pprop.study.cell import Seeds
from pprop.study.claims import Claim
from pprop.study.experiment import Experiment
from pprop.study.figures import Lines, Propagated
from pprop.study.figures.distance import Distance
from pprop.study.figures.estimate import Estimate
from pprop.study.figures.gather import RowsOf, collect, labels_place
from pprop.study.figures.propagation import WAYS, Way
from pprop.study.statistics import split_gaps, student_half
from pprop.study.tables import Entry, comparisons, epoch_times
from pprop.study.tables.titles import TESTED, dataset_title
from pprop.study.zoo import MODELS

__all__ = ["Evidence", "LabelRuns", "label_runs", "row_claims"]

_Found = Iterator[tuple[str, str, bool | None]]
_Runs = Mapping[Seeds, float]

LabelRuns = Mapping[str, Mapping[tuple[str, int], _Runs]]
"""Accuracies in percent of the figure on labels: by dataset, then model and training nodes per class, then run."""


CLOSE = 0.5
"""Points that two accuracies may differ by and be called about the same."""


@final
@dataclass(frozen=True)
class Evidence:
    """What the claims are checked on.

    Attributes
    ----------
    entries
        Of the accuracy table, by dataset.
    times
        Of the table of time per epoch, by dataset.
    figures
        What the figures show, by name: "steps", "alpha", "depth", "propagation", "distance".
    labels
        What `label_runs` returns.
    """

    entries: Mapping[str, Sequence[Entry]]
    times: Mapping[str, Sequence[Entry]]
    figures: Mapping[str, Any]
    labels: LabelRuns = field(default_factory=dict[str, Any])


def label_runs(experiments: Iterable[Experiment], rows_of: RowsOf) -> LabelRuns:
    """Return the accuracies of every run over the number of training nodes per class.

    Parameters
    ----------
    experiments, rows_of
        As for `figures_of`.

    Examples
    --------
    >>> from pprop.study.experiment import load_experiments
    >>> label_runs(load_experiments().values(), lambda cell: [])
    {}
    """
    found = collect([each for each in experiments if each.shows == "labels"], rows_of, labels_place, "test")
    return {
        dataset: {place: {row.key.seeds: 100 * row.accuracy for row in rows} for place, rows in places.items()}
        for dataset, places in found.rows.items()
    }


def row_claims(evidence: Evidence) -> tuple[list[Claim], list[str]]:
    """Return the claims that the rows speak to, and the statements for which rows are missing.

    Examples
    --------
    >>> found, missing = row_claims(Evidence({}, {}, {}))
    >>> len(found), len(missing)
    (0, 13)
    """
    claims: list[Claim] = []
    missing: list[str] = []
    for statement, check in _CLAIMS.items():
        found = [Claim(statement, *each) for each in check(evidence)]
        claims.extend(found)
        if not found:
            missing.append(statement)
    return claims, missing


def _significance(evidence: Evidence) -> _Found:
    for name, entries in evidence.entries.items():
        found = comparisons(entries, "accuracy")
        for model in TESTED:
            tests = [each for each in found if each.entry.cell.model == model]
            if not tests:
                continue
            worst = max(tests, key=lambda test: (test.splits_holm, test.opponent.title))
            better = sum(test.splits.difference > 0 for test in tests)
            told = (
                f"{worst.entry.title} is better than {better} of {len(tests)} models run; largest p after Holm "
                f"{worst.splits_holm:.1e} over splits, against {worst.opponent.title}"
            ).replace("e-", "e\u2212")
            yield dataset_title(name), told, better == len(tests) and worst.splits_holm < 0.05


def _less_variance(evidence: Evidence) -> _Found:
    for name, entries in evidence.entries.items():
        spread = {
            entry.cell.model: float(np.std([*entry.accuracies.values()], ddof=1))
            for entry in entries
            if entry.sample is not None and len(entry.sample.rows) > 1
        }
        others = [spread[model] for model in ("vanilla_gcn", "gcn", "ngcn", "jk") if model in spread]
        steady = [model for model in ("ppnp", "appnp", "gat") if model in spread]
        if len(steady) == 3 and others:
            middle = float(np.median(others))
            told = ", ".join(f"{MODELS[model].title} {spread[model]:.2f}" for model in steady)
            found = f"standard deviations of {told}; the median of the other graph networks is {middle:.2f}"
            yield dataset_title(name), found, max(spread[model] for model in steady) < middle


def _simple_gcn(evidence: Evidence) -> _Found:
    recent = ("ngcn", "gat", "jk", "bootstrapped_fp")
    for name, entries in evidence.entries.items():
        means = {entry.cell.model: _mean(entry) for entry in entries if entry.sample is not None}
        others = [model for model in recent if model in means]
        if "gcn" in means and others:
            below = sum(means[model] < means["gcn"] for model in others)
            yield dataset_title(name), f"above {below} of {len(others)} of them", below >= min(2, len(others))


def _slower_than_gcn(evidence: Evidence) -> _Found:
    for name, entries in evidence.times.items():
        for each in epoch_times(entries):
            if each.entry.cell.model == "appnp" and each.ratio == each.ratio:
                yield dataset_title(name), f"{each.ratio:.2f} times GCN's epoch on {each.device}", 1 < each.ratio < 1.6


def _best_alpha(evidence: Evidence) -> _Found:
    for dataset, points in _series(evidence, "alpha", "APPNP"):
        best = max(points, key=lambda x: points[x].mean)
        yield dataset, f"highest mean at α = {best:g}", 0.05 <= best <= 0.2


def _ten_steps(evidence: Evidence) -> _Found:
    for name, entries in evidence.entries.items():
        runs = {entry.cell.model: entry.accuracies for entry in entries if entry.sample is not None}
        if {"appnp", "ppnp"} <= runs.keys():
            gap, half = _interval(split_gaps(runs["appnp"], runs["ppnp"]))
            found = f"APPNP (K = 10) is {_signed(gap, half, 2)} points from PPNP on the test splits"
            holds = True if abs(gap) + half <= CLOSE else False if abs(gap) - half > CLOSE else None
            yield dataset_title(name), found, holds


def _without_teleport(evidence: Evidence) -> _Found:
    for dataset, points in _series(evidence, "steps", "α = 0"):
        steps = sorted(x for x in points if np.isfinite(x))
        if len(steps) > 1:
            best, last = max(steps, key=lambda x: points[x].mean), steps[-1]
            lost = points[best].mean - points[last].mean
            found = f"{lost:.1f} points lost from K = {best:g} to K = {last:g}"
            yield dataset, found, lost > _combined(points[best], points[last])


def _few_labels(evidence: Evidence) -> _Found:
    baselines = [kind.title for kind in MODELS.values() if kind.name not in TESTED]
    for dataset, runs in evidence.labels.items():
        for model in (MODELS[name].title for name in TESTED):
            counts = [x for title, x in runs if title == model]
            others = {x: [title for title in baselines if (title, x) in runs] for x in counts}
            fewest = min(counts, default=20)
            if fewest == 20 or not others.get(20) or not others[fewest]:
                continue
            best = {x: max(others[x], key=lambda title, x=x: np.mean([*runs[title, x].values()])) for x in (fewest, 20)}
            leads = {x: split_gaps(runs[model, x], runs[best[x], x]) for x in best}
            told = [f"{_signed(*_interval(leads[x]))} points over {best[x]} with {x} a class" for x in best]
            more = _interval(
                {split: lead - leads[20][split] for split, lead in leads[fewest].items() if split in leads[20]}
            )
            left = [title for title in others[20] if title not in others[fewest]]
            without = f" ({', '.join(left)} not run with {fewest})" if left else ""
            yield dataset, f"{model}: {', '.join([*told, f'{_signed(*more)} more'])}{without}", _above(*more)


def _farther(evidence: Evidence) -> _Found:
    panels: Sequence[Distance] = evidence.figures.get("distance", ())
    for panel in panels:
        rings = [ring for ring in panel.rings if max(ring.improvement.below_and_above) > 0]
        if len(rings) < 2:
            continue
        hops = np.array([ring.first for ring in rings], dtype=np.float64)
        gaps = np.array([ring.improvement.mean for ring in rings])
        weights = np.array([max(ring.improvement.below_and_above) for ring in rings]) ** -2.0
        centred = hops - np.average(hops, weights=weights)
        slope = float((weights * centred * gaps).sum() / (weights * centred**2).sum())
        unsure = float((weights * centred**2).sum() ** -0.5)
        found = f"{_signed(slope, unsure, 2)} points a hop over {len(rings)} distances"
        if len(rings) < len(panel.rings):
            found += f" of {len(panel.rings)}, the others having no interval"
        yield panel.dataset, found, _above(slope, unsure)


def _deeper(evidence: Evidence) -> _Found:
    for dataset, points in _series(evidence, "depth", "APPNP"):
        deep = [x for x in points if x > 2]
        if 2 in points and deep:
            best = max(deep, key=lambda x: points[x].mean)
            gap = points[best].mean - points[2].mean
            found = f"the best of {len(deep)} deeper networks ({best:g} layers) is {gap:+.1f} points from two layers"
            if 1 in points:
                found += f"; one layer is {points[1].mean - points[2].mean:+.1f}"
            yield dataset, found.replace("-", "\u2212"), gap <= _combined(points[best], points[2])


def _full_propagation(evidence: Evidence) -> _Found:
    for panel, ways in _ways(evidence):
        told = ", ".join(f"{name} {ways[name].accuracy.mean:.2f}" for name in WAYS)
        yield panel.dataset, told, max(WAYS, key=lambda name: ways[name].accuracy.mean) == "both"


def _partial_propagation(evidence: Evidence) -> _Found:
    for panel, ways in _ways(evidence):
        never = ways["never"].accuracy
        gains = {name: ways[name].accuracy for name in ("inference", "training")}
        told = ", ".join(f"{point.mean - never.mean:+.1f} points in {name} alone" for name, point in gains.items())
        holds = all(point.mean - never.mean > _combined(point, never) for point in gains.values())
        yield panel.dataset, told.replace("-", "\u2212"), holds


def _skipping(evidence: Evidence) -> _Found:
    for panel, ways in _ways(evidence, ("inference", "both")):
        if panel.times_compare:
            without, always = ways["inference"].seconds.mean, ways["both"].seconds.mean
            found = f"{without:.2f} s a run instead of {always:.2f} s"
            yield panel.dataset, found, without < always


_CLAIMS: dict[str, Callable[[Evidence], _Found]] = {
    "Both models outperform all baselines significantly, p < 0.05 (section 6)": _significance,
    "PPNP, APPNP and GAT have lower variance (section 6)": _less_variance,
    "A GCN with good hyperparameters outperforms several recent models (section 6)": _simple_gcn,
    "APPNP is around 25 % slower than GCN; the paper's own ratios are 1.17 to 1.53 (section 6)": _slower_than_gcn,
    "The best α lies in [0.05, 0.2] (section 6)": _best_alpha,
    "Ten steps approximate PPNP (section 6), here: to half a point": _ten_steps,
    "Without teleport, accuracy breaks down with more steps (section 6)": _without_teleport,
    "The dominance of PPNP and APPNP increases as labels become fewer (section 6)": _few_labels,
    "The gap between APPNP and GCN tends to increase with the distance from the training nodes (appendix)": _farther,
    "Deep networks do not improve the accuracy (appendix)": _deeper,
    "The best results are achieved with full propagation (section 6)": _full_propagation,
    "Propagating in inference alone, or in training alone, improves the network, too (section 6)": _partial_propagation,
    "Skipping propagation in training saves time (section 6)": _skipping,
}


def _ways(evidence: Evidence, needed: Sequence[str] = WAYS) -> Iterator[tuple[Propagated, dict[str, Way]]]:
    """Yield the panels of the figure on propagation that have the needed ways, with all of theirs by name."""
    panels: Sequence[Propagated] = evidence.figures.get("propagation", ())
    for panel in panels:
        ways = {way.name: way for way in panel.ways}
        if set(needed) <= set(ways):
            yield panel, ways


def _series(evidence: Evidence, figure: str, name: str) -> Iterator[tuple[str, dict[float, Estimate]]]:
    """Yield, by dataset, the points of one line of a figure; its limit is the point at infinity."""
    lines: Lines | None = evidence.figures.get(figure)
    for panel in () if lines is None else lines.panels:
        for series in panel.series:
            if series.name == name:
                points = dict(zip(series.x, series.estimates, strict=True))
                limit = {} if series.limit is None else {float(np.inf): series.limit}
                yield panel.dataset, points | limit


def _combined(first: Estimate, second: Estimate) -> float:
    return float(np.hypot(max(first.below_and_above), max(second.below_and_above)))


def _mean(entry: Entry) -> float:
    return float(np.mean([*entry.accuracies.values()]))


def _interval(values: Mapping[int, float]) -> tuple[float, float]:
    """Return the mean over splits and half of its 95 % interval."""
    numbers = [*values.values()]
    return float(np.mean(numbers)) if numbers else float("nan"), student_half(numbers)


def _above(mean: float, half: float) -> bool | None:
    """Return whether a number is above zero; None where its interval holds zero."""
    return None if not abs(mean) > half else mean > 0


def _signed(mean: float, half: float, digits: int = 1) -> str:
    return f"{mean:+.{digits}f} ± {half:.{digits}f}".replace("-", "\u2212")
