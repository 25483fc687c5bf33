"""What the paper's text claims about trained models, each checked on the rows of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from pprop.study.claims import Claim
from pprop.study.figures import Lines, Propagated
from pprop.study.figures.estimate import Estimate
from pprop.study.tables import Entry, comparisons, epoch_times
from pprop.study.tables.titles import dataset_title

__all__ = ["Evidence", "row_claims"]

_Found = Iterator[tuple[str, str, bool]]


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
        What the figures show, by name: "labels", "steps", "alpha", "depth", "propagation".
    """

    entries: Mapping[str, Sequence[Entry]]
    times: Mapping[str, Sequence[Entry]]
    figures: Mapping[str, Any]


def row_claims(evidence: Evidence) -> tuple[list[Claim], list[str]]:
    """Return the claims that the rows speak to, and the statements for which rows are missing.

    Examples
    --------
    >>> found, missing = row_claims(Evidence({}, {}, {}))
    >>> len(found), len(missing)
    (0, 8)
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
        tests = [each for each in comparisons(entries, "accuracy") if each.entry.cell.model == "appnp"]
        if not tests:
            continue
        worst = max(tests, key=lambda test: (test.splits_holm, test.opponent.title))
        better = sum(test.splits.difference > 0 for test in tests)
        found = (
            f"better than {better} of {len(tests)} models run; largest p after Holm {worst.splits_holm:.1e} over splits, "
            f"against {worst.opponent.title}"
        ).replace("e-", "e\u2212")
        yield dataset_title(name), found, better == len(tests) and worst.splits_holm < 0.05


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
    for name in ("α = 0.1", "α = 0.2"):
        for dataset, points in _series(evidence, "steps", name):
            if 10 in points and np.inf in points:
                gap = points[10].mean - points[np.inf].mean
                found = f"K = 10 is {gap:+.2f} points from PPNP ({name})".replace("-", "\u2212")
                yield dataset, found, abs(gap) <= _combined(points[10], points[np.inf])


def _without_teleport(evidence: Evidence) -> _Found:
    for dataset, points in _series(evidence, "steps", "α = 0"):
        steps = sorted(x for x in points if np.isfinite(x))
        if len(steps) > 1:
            best, last = max(steps, key=lambda x: points[x].mean), steps[-1]
            lost = points[best].mean - points[last].mean
            found = f"{lost:.1f} points lost from K = {best:g} to K = {last:g}"
            yield dataset, found, lost > _combined(points[best], points[last])


def _few_labels(evidence: Evidence) -> _Found:
    gcn = dict(_series(evidence, "labels", "GCN"))
    for dataset, appnp in _series(evidence, "labels", "APPNP"):
        both = sorted(set(appnp) & set(gcn.get(dataset, {})))
        if len(both) > 1 and 20 in both and both[0] < 20:
            few, usual = (appnp[x].mean - gcn[dataset][x].mean for x in (both[0], 20))
            found = f"{few:+.1f} points over GCN with {both[0]:g} a class, {usual:+.1f} with 20".replace("-", "\u2212")
            yield dataset, found, few > usual


def _skipping(evidence: Evidence) -> _Found:
    panels: Sequence[Propagated] = evidence.figures.get("propagation", ())
    for panel in panels:
        ways = {way.name: way for way in panel.ways}
        if {"inference", "both"} <= set(ways) and panel.times_compare:
            without, always = ways["inference"].seconds.mean, ways["both"].seconds.mean
            found = f"{without:.2f} s a run instead of {always:.2f} s"
            yield panel.dataset, found, without < always


_CLAIMS: dict[str, Callable[[Evidence], _Found]] = {
    "APPNP outperforms all baselines significantly, p < 0.05 (section 6)": _significance,
    "A GCN with good hyperparameters outperforms several recent models (section 6)": _simple_gcn,
    "APPNP is around 25 % slower than GCN; the paper's own ratios are 1.17 to 1.53 (section 6)": _slower_than_gcn,
    "The best α lies in [0.05, 0.2] (section 6)": _best_alpha,
    "Ten steps approximate PPNP (section 6)": _ten_steps,
    "Without teleport, accuracy breaks down with more steps (section 6)": _without_teleport,
    "The advantage grows as labels become fewer (section 6)": _few_labels,
    "Skipping propagation in training saves time (section 6)": _skipping,
}


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
    assert entry.sample is not None
    return float(np.mean(list(entry.sample.values("accuracy").values())))
