"""What the paper's text claims about trained models, each checked on the rows of a study."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from pprop.study.cell import MODELS, Seeds, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures.accuracies import WAYS, PropagationPanel, propagation_place
from pprop.study.figures.distance import Distance
from pprop.study.figures.gather import PlaceOf, RowsOf, collect
from pprop.study.figures.sweeps import NO_TELEPORT, Place, alpha_place, depth_place, labels_place, steps_place
from pprop.study.report.graph_claims import Claim
from pprop.study.stats.estimate import student_half
from pprop.study.stats.paired import by_split, split_gaps
from pprop.study.tables.entries import PAPERS_BASELINES, TESTED, Entry, dataset_title
from pprop.study.tables.p_values import papers_comparisons
from pprop.study.tables.times import epoch_times

_Found = Iterator[tuple[str, bool | str | None]]

# The verdict on times of models that different programs train: fused here, by autograd there.
NOT_COMPARABLE = "not comparable"

# Points that two accuracies may differ by and be called about the same.
CLOSE = 0.5
RESAMPLES = 1000

# Accuracies in percent, by run.
Runs = Mapping[Seeds, float]

# What claims are checked on, by part and then by dataset: "main", "many" and "times", the entries of the tables of
# accuracy, over more splits, and time; "growth", all entries of the latter; "accuracy", the runs of the first by model;
# "distance" and "ways", panels of the figures on distances and on ways to propagate; and what `sweep_runs` returns.
Evidence = Mapping[str, Mapping[str, Any]]

# The place of a cell in a figure, and the kind of splits that the figure is of.
_PLACES: Mapping[str, tuple[PlaceOf, Splits]] = {
    "labels": (labels_place, "test"),
    "steps": (steps_place, "validation"),
    "alpha": (alpha_place, "validation"),
    "depth": (depth_place, "validation"),
    "propagation": (propagation_place, "test"),
}


def sweep_runs(experiments: Collection[Experiment], rows_of: RowsOf) -> dict[str, dict[str, dict[Any, Runs]]]:
    """Return the runs behind the figures over one setting, and over ways to propagate: by figure, dataset and place.

    Parameters
    ----------
    experiments, rows_of
        As for `figures_of`.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> sweep_runs(load_experiments().values(), lambda cell: [])["labels"]
    {}
    """
    found: dict[str, dict[str, dict[Any, Runs]]] = {}
    for figure, (place_of, splits) in _PLACES.items():
        rows = collect([each for each in experiments if each.shows == figure], rows_of, place_of, splits).rows
        found[figure] = {
            dataset: {place: {row.key.seeds: 100 * row.accuracy for row in some} for place, some in places.items()}
            for dataset, places in rows.items()
        }
    return found


def row_claims(evidence: Evidence) -> tuple[list[Claim], list[str]]:
    """Return the claims that the rows speak to, and the statements for which rows are missing.

    Examples
    --------
    >>> found, missing = row_claims({})
    >>> len(found), len(missing)
    (0, 16)
    """
    claims: list[Claim] = []
    for statement, parts in _CLAIMS.items():
        for part, check in parts:
            for dataset, data in evidence.get(part, {}).items():
                claims += [Claim(statement, dataset_title(dataset), *found) for found in check(data)]
    return claims, [statement for statement in _CLAIMS if statement not in {claim.statement for claim in claims}]


def _significance(entries: Sequence[Entry]) -> _Found:
    found = papers_comparisons({"": entries}, "accuracy")
    for tests in (list(group) for _, group in groupby(found, key=lambda each: each.entry)):
        worst = max(tests, key=lambda test: (test.splits.holm, test.opponent.title))
        won = sum(test.wins(over_splits=True) for test in tests)
        text = (
            f"{worst.entry.title} over {worst.splits.pairs} splits: better than {won} of {len(tests)} baselines; largest p "
            f"after Holm {worst.splits.holm:.1e}, against {worst.opponent.title}"
        ).replace("e-", "e\u2212")
        there = {test.opponent.title for test in tests}
        left = [title for title in PAPERS_BASELINES if title not in there]
        without = f"; {', '.join(left)} not run" if left else ""
        yield f"{text}{without}", False if won < len(tests) else None if left else True


def _less_variance(accuracies: Mapping[str, Runs]) -> _Found:
    others, steady = ("vanilla_gcn", "gcn", "ngcn", "jk"), ("ppnp", "appnp", "gat")
    runs = {model: each for model, each in accuracies.items() if model in (*others, *steady) and len(each) > 1}
    if set(steady) <= runs.keys() and len(runs) > len(steady):
        spread = {model: float(np.std([*each.values()], ddof=1)) for model, each in runs.items()}
        gap, low, high = _steadiness(runs, steady)
        text = ", ".join(f"{MODELS[model].title} {spread[model]:.2f}" for model in steady)
        found = (
            f"standard deviations of {text}; the largest is {gap:+.2f} ({low:+.2f} to {high:+.2f}) from the median of the "
            "other graph networks"
        ).replace("-", "\u2212")
        yield found, True if high < 0 else False if low > 0 else None


def _simple_gcn(runs: Mapping[str, Runs]) -> _Found:
    recent = ("ngcn", "gat", "jk", "bootstrapped_fp")
    others = [model for model in recent if model in runs]
    if "gcn" in runs and others:
        above = [_above(*_lead(runs["gcn"], runs[model])) for model in others]
        most, enough = len(others) - above.count(False), min(2, len(others))
        found = f"significantly above {above.count(True)} of {len(others)} of them, below {above.count(False)}"
        yield found, True if above.count(True) >= enough else False if most < enough else None


def _slower_than_gcn(entries: Sequence[Entry]) -> _Found:
    for each in epoch_times(entries):
        if each.entry.cell.model == "appnp" and each.ratio == each.ratio:
            yield f"{each.ratio:.2f} times GCN's epoch on {each.device}, in another program", NOT_COMPARABLE


def _faster_than_gat(entries: Sequence[Entry]) -> _Found:
    timed = [each for each in epoch_times(entries) if each.ours is not None]
    for device, group in groupby(timed, key=lambda each: each.device):
        ms = {each.entry.cell.model: each.ours.mean for each in group if each.ours is not None}
        if {"appnp", "gat", "gcn"} <= ms.keys():
            same = f"{ms['gat'] / ms['gcn']:.1f} times GCN's, which has its program"
            yield f"GAT's epoch is {ms['gat'] / ms['appnp']:.1f} times APPNP's on {device}, {same}", NOT_COMPARABLE


def _grows_like_gcn(by_dataset: Mapping[str, Sequence[Entry]]) -> _Found:
    ms: dict[str, dict[str, dict[str, float]]] = {}  # device, model, dataset
    for dataset, entries in by_dataset.items():
        for each in epoch_times(entries):
            if each.ours is not None:
                ms.setdefault(each.device, {}).setdefault(each.entry.cell.model, {})[dataset] = each.ours.mean
    for device, models in ms.items():
        shared = [name for name in models.get("gcn", {}) if name in models.get("appnp", {})]
        if len(shared) > 1:
            small, large = (extreme(shared, key=models["gcn"].__getitem__) for extreme in (min, max))
            known = {
                name: models[name] for name in ("appnp", "gcn", "gat") if {small, large} <= models.get(name, {}).keys()
            }
            factor = {name: of_model[large] / of_model[small] for name, of_model in known.items()}
            text = ", ".join(f"{MODELS[name].title} {each:.1f}" for name, each in factor.items())
            found = f"from {dataset_title(small)} to {dataset_title(large)} on {device} an epoch takes times {text}"
            yield f"{found}, in different programs", NOT_COMPARABLE


def _tuning(runs: Mapping[str, Runs]) -> _Found:
    if {"gcn", "vanilla_gcn"} <= runs.keys():
        lead, half = _lead(runs["gcn"], runs["vanilla_gcn"])
        yield f"GCN is {_signed(lead, half, 2)} points from V. GCN", _above(lead - CLOSE, half)


def _best_alpha(places: Mapping[Place, Runs]) -> _Found:
    for model in (MODELS[name].title for name in TESTED):
        runs = {alpha: each for (title, alpha), each in places.items() if title == model}
        inside = _best({alpha: each for alpha, each in runs.items() if 0.05 <= alpha <= 0.2})
        outside = _best({alpha: each for alpha, each in runs.items() if not 0.05 <= alpha <= 0.2})
        if inside is not None and outside is not None:
            lead = _lead(runs[inside], runs[outside])
            found = f"{model}: α = {inside:g} is {_signed(*lead, 2)} points from α = {outside:g}, the best outside"
            yield found, _above(*lead)


def _ten_steps(runs: Mapping[str, Runs]) -> _Found:
    if {"appnp", "ppnp"} <= runs.keys():
        gap, half = _lead(runs["appnp"], runs["ppnp"])
        found = f"APPNP (K = 10) is {_signed(gap, half, 2)} points from PPNP on the test splits"
        yield found, _above(CLOSE - abs(gap), half)


def _without_teleport(places: Mapping[Place, Runs]) -> _Found:
    runs = {steps: each for (name, steps), each in places.items() if name == NO_TELEPORT and np.isfinite(steps)}
    best, last = _best(runs), max(runs, default=0)
    if best is not None and len(runs) > 1:
        gap, half = _lead(runs[last], runs[best])
        found = f"K = {last:g} is {_signed(gap, half)} points from K = {best:g}, the best"
        yield found, _above(-gap, half)


def _few_labels(runs: Mapping[Place, Runs]) -> _Found:
    for model in (MODELS[name].title for name in TESTED):
        counts = [x for title, x in runs if title == model]
        others = {x: [title for title in PAPERS_BASELINES if (title, x) in runs] for x in counts}
        fewest = min(counts, default=20)
        if fewest == 20 or not others.get(20) or not others[fewest]:
            continue
        best = {x: max(others[x], key=lambda title, x=x: _mean(runs[title, x])) for x in (fewest, 20)}
        leads = {x: split_gaps(runs[model, x], runs[best[x], x]) for x in best}
        text = [f"{_signed(*_interval(leads[x]))} points over {best[x]} with {x} a class" for x in best]
        few, many = leads[fewest], leads[20]
        more = _interval({split: few[split] - many[split] for split in few if split in many})
        left = [title for title in others[20] if title not in others[fewest]]
        without = f" ({', '.join(left)} not run with {fewest})" if left else ""
        yield f"{model}: {', '.join([*text, f'{_signed(*more)} more'])}{without}", _above(*more)


def _farther(panel: Distance) -> _Found:
    rings = [ring for ring in panel.rings if max(ring.improvement.below_and_above) > 0]
    if len(rings) < 2:
        return
    hops = np.array([ring.first for ring in rings], dtype=np.float64)
    gaps = np.array([ring.improvement.mean for ring in rings])
    weights = np.array([max(ring.improvement.below_and_above) for ring in rings]) ** -2.0
    centred = hops - np.average(hops, weights=weights)
    slope = float((weights * centred * gaps).sum() / (weights * centred**2).sum())
    beside = gaps - np.average(gaps, weights=weights) - slope * centred
    # Rings that lie farther from the line than their intervals say: the slope's interval grows alike (Birge's ratio).
    # The weights are of 95 % intervals, 1.96 standard errors.
    scatter = float(1.96**2 * (weights * beside**2).sum()) / max(len(rings) - 2, 1)
    unsure = float((weights * centred**2).sum() ** -0.5) * max(scatter, 1.0) ** 0.5
    found = f"{_signed(slope, unsure, 2)} points a hop over {len(rings)} distances"
    found += f" of {len(panel.rings)}, the others having no interval" if len(rings) < len(panel.rings) else ""
    yield found, _above(slope, unsure)


def _deeper(places: Mapping[Place, Runs]) -> _Found:
    runs = {layers: each for (_, layers), each in places.items()}
    deeper = {layers: each for layers, each in runs.items() if layers > 2}
    best = _best(deeper)
    if 2 in runs and best is not None:
        gap, half = _lead(runs[best], runs[2])
        deep = f"the best of {len(deeper)} deeper networks ({best:g} layers)"
        found = f"{deep} is {_signed(gap, half)} points from two layers"
        found += f"; one layer is {_signed(*_lead(runs[1], runs[2]))}" if 1 in runs else ""
        yield found, False if gap > half else True if gap + half <= CLOSE else None


def _full_propagation(runs: Mapping[str, Runs]) -> _Found:
    if set(WAYS) <= runs.keys():
        other = max((name for name in WAYS if name != "both"), key=lambda name: _mean(runs[name]))
        lead = _lead(runs["both"], runs[other])
        text = ", ".join(f"{name} {_mean(runs[name]):.2f}" for name in WAYS)
        yield f"{text}: {_signed(*lead)} points from {other} alone", _above(*lead)


def _partial_propagation(runs: Mapping[str, Runs]) -> _Found:
    if {"never", "training", "inference"} <= runs.keys():
        gains = {name: _lead(runs[name], runs["never"]) for name in ("inference", "training")}
        text = ", ".join(f"{_signed(*gain)} points in {name} alone" for name, gain in gains.items())
        above = [_above(*gain) for gain in gains.values()]
        yield text, False if False in above else None if None in above else True


def _skipping(panel: PropagationPanel) -> _Found:
    seconds = {way.name: way.seconds.mean for way in panel.ways}
    if panel.times_compare and {"inference", "both"} <= seconds.keys():
        found = f"{seconds['inference']:.2f} s a run instead of {seconds['both']:.2f} s"
        yield found, seconds["inference"] < seconds["both"]


# The parts of the evidence that each claim is about, and the check of one dataset: what was found, and whether the claim holds.
_CLAIMS: dict[str, tuple[tuple[str, Callable[[Any], _Found]], ...]] = {
    "Both models outperform all baselines significantly, p < 0.05 (section 6)": (
        ("main", _significance),
        ("many", _significance),
    ),
    "PPNP, APPNP and GAT have lower variance (section 6)": (("accuracy", _less_variance),),
    "A GCN with good hyperparameters outperforms several recent models (section 6), here: two of N-GCN, GAT, JK, Bt. FP": (
        ("accuracy", _simple_gcn),
    ),
    "Early stopping and optimised hyperparameters have a strong impact (section 5), here: of more than half a point": (
        ("accuracy", _tuning),
    ),
    "APPNP is around 25 % slower than GCN; the paper's own ratios are 1.17 to 1.53 (section 6)": (
        ("times", _slower_than_gcn),
    ),
    "APPNP is significantly faster than GAT (section 6)": (("times", _faster_than_gat),),
    "APPNP's time grows with the graph as GCN's does (section 6)": (("growth", _grows_like_gcn),),
    "The best α lies in [0.05, 0.2] (section 6)": (("alpha", _best_alpha),),
    "Ten steps approximate PPNP (section 6), here: to half a point": (("accuracy", _ten_steps),),
    "Without teleport, accuracy breaks down with more steps (section 6)": (("steps", _without_teleport),),
    "The dominance of PPNP and APPNP increases as labels become fewer (section 6)": (("labels", _few_labels),),
    "The gap between APPNP and GCN tends to increase with the distance from the training nodes (appendix)": (
        ("distance", _farther),
    ),
    "Deep networks do not improve the accuracy (appendix), here: by half a point": (("depth", _deeper),),
    "The best results are achieved with full propagation (section 6)": (("propagation", _full_propagation),),
    "Propagating in inference alone, or in training alone, improves the network, too (section 6)": (
        ("propagation", _partial_propagation),
    ),
    "Skipping propagation in training saves time (section 6)": (("ways", _skipping),),
}


def _mean(runs: Runs) -> float:
    return float(np.mean([*runs.values()]))


def _best(runs: Mapping[float, Runs]) -> float | None:
    """Return where the mean is highest; None where there is no place."""
    return max(runs, key=lambda place: _mean(runs[place]), default=None)


def _steadiness(runs: Mapping[str, Runs], steady: Sequence[str]) -> tuple[float, float, float]:
    """Return the largest standard deviation of some models minus the median of the others', with its 95 % interval.

    By the bootstrap over splits, of which each has all its runs.
    """
    groups = {model: by_split(each) for model, each in runs.items()}
    splits = np.array([split for split in groups[steady[0]] if all(split in each for each in groups.values())])
    if len(splits) < 2:
        return float("nan"), float("nan"), float("nan")

    def gap(drawn: Sequence[int]) -> float:
        pooled = {model: np.concatenate([each[split] for split in drawn]) for model, each in groups.items()}
        spread = {model: float(np.std(values, ddof=1)) for model, values in pooled.items()}
        return max(spread[model] for model in steady) - float(np.median([spread[m] for m in spread if m not in steady]))

    draws = np.random.default_rng(0).integers(len(splits), size=(RESAMPLES, len(splits)))
    low, high = np.quantile([gap(drawn.tolist()) for drawn in splits[draws]], [0.025, 0.975])
    return gap(splits.tolist()), float(low), float(high)


def _lead(first: Runs, second: Runs) -> tuple[float, float]:
    """Return the mean over splits of the first minus the second, and half of its 95 % interval."""
    return _interval(split_gaps(first, second))


def _interval(values: Mapping[int, float]) -> tuple[float, float]:
    """Return the mean over splits and half of its 95 % interval."""
    numbers = [*values.values()]
    return float(np.mean(numbers)) if numbers else float("nan"), student_half(numbers)


def _above(mean: float, half: float) -> bool | None:
    """Return whether a number is above zero; None where its interval holds zero."""
    return None if not abs(mean) > half else mean > 0


def _signed(mean: float, half: float, digits: int = 1) -> str:
    return f"{mean:+.{digits}f} ± {half:.{digits}f}".replace("-", "\u2212")
