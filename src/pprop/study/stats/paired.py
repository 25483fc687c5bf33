"""Is one model better than another on the same splits? Paired t-tests, with Holm's correction, and a user's model by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pprop._validate import check_choice, reject
from pprop.study.cell import Cell, Seeds
from pprop.study.revisions import current_data, current_revision
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row
from pprop.study.store.store import Store, pools

Over = Literal["runs", "splits"]


@final
@dataclass(frozen=True)
class Paired:
    """A paired t-test of one model against another.

    Attributes
    ----------
    over
        Whether pairs are runs or means over the initialisations of a split.
    pairs
        Their number.
    difference
        Mean of the first minus the second.
    t, p
        The statistic and the two-sided p-value; NaN where no test can be made: fewer than two pairs, or all differences
        the same.
    only_first, only_second
        Runs of either model that have no partner in the other and so are not part of the test.
    holm
        The p-value after Holm's correction; NaN before it.
    """

    over: Over
    pairs: int
    difference: float
    t: float
    p: float
    only_first: tuple[Seeds, ...]
    only_second: tuple[Seeds, ...]
    holm: float = float("nan")


def paired_test(first: Mapping[Seeds, float], second: Mapping[Seeds, float], over: Over = "runs") -> Paired:
    """Compare two models on the runs, or the splits, that both have.

    Parameters
    ----------
    first, second
        The metric of each run.
    over
        ``"runs"``: pairs of equal split and initialisation seed. ``"splits"``: pairs of means over the initialisations
        of a split, because runs of one split vary together. Equal seeds give PPNP, APPNP, MLP and GCN the same initial
        weights, and JK the same first matrix. Matrices of V. GCN, N-GCN and GAT have other shapes.

    Returns
    -------
    Paired

    Examples
    --------
    >>> appnp = {Seeds(1, 0): 0.85, Seeds(2, 0): 0.86, Seeds(3, 0): 0.84}
    >>> gcn = {Seeds(1, 0): 0.83, Seeds(2, 0): 0.85, Seeds(4, 0): 0.80}
    >>> test = paired_test(appnp, gcn)
    >>> test.pairs, round(test.difference, 3), round(test.p, 3), test.only_first
    (2, 0.015, 0.205, (Seeds(split=3, init=0),))
    """
    check_choice(over, "over", "paired_test", ("runs", "splits"))
    means: Mapping[Any, float] = first if over == "runs" else split_means(first)
    others: Mapping[Any, float] = second if over == "runs" else split_means(second)
    shared = sorted(means.keys() & others.keys())
    a, b = np.array([means[pair] for pair in shared]), np.array([others[pair] for pair in shared])
    difference = a - b
    t = p = float("nan")
    # Differences that are equal up to rounding have no spread to compare their mean with.
    if len(shared) > 1 and np.ptp(difference) > 1e-12 * max(1.0, float(np.abs(difference).max())):
        result: Any = stats.ttest_rel(a, b)
        t, p = float(result.statistic), float(result.pvalue)
    only_first, only_second = (
        tuple(sorted(seeds for seeds in some if (seeds if over == "runs" else seeds.split) not in other))
        for some, other in ((first, others), (second, means))
    )
    mean = float(difference.mean()) if shared else float("nan")
    return Paired(over, len(shared), mean, t, p, only_first, only_second)


def with_holm(tests: Sequence[Paired]) -> list[Paired]:
    """Return the tests of one family with their p-values corrected by `holm`.

    >>> with_holm([])
    []
    """
    return [replace(test, holm=float(p)) for test, p in zip(tests, holm([test.p for test in tests]), strict=True)]


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    r"""Return the p-values of one family of tests, corrected by Holm's step-down method.

    With the p-values in ascending order, the i-th of m becomes

    .. math:: \tilde p_{(i)} = \min\Bigl(1, \max_{j \le i} (m - j + 1)\, p_{(j)}\Bigr).

    Parameters
    ----------
    p_values
        Shape (m,), each in [0, 1]. NaN means that no test could be made: it stays NaN and does not count.

    Returns
    -------
    array of shape (m,), in the order given.

    References
    ----------
    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = np.asarray(p_values, dtype=np.float64)
    made = np.flatnonzero(~np.isnan(given))
    if given.ndim != 1 or ((given[made] < 0) | (given[made] > 1)).any():
        reject("p_values", "holm", "a one-dimensional array of numbers in [0, 1]", given)
    order = made[np.argsort(given[made], kind="stable")]
    corrected = np.full(given.shape, np.nan)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)))
    return corrected


def by_split(values: Mapping[Seeds, float]) -> dict[int, list[float]]:
    """Return the values of each split's initialisations, in the order of seeds.

    Examples
    --------
    >>> by_split({Seeds(7, 0): 1.0, Seeds(7, 1): 2.0, Seeds(5, 0): 4.0})
    {5: [4.0], 7: [1.0, 2.0]}
    """
    grouped: dict[int, list[float]] = {}
    for seeds in sorted(values):
        grouped.setdefault(seeds.split, []).append(values[seeds])
    return grouped


def split_means(values: Mapping[Seeds, float]) -> dict[int, float]:
    """Return the mean over initialisations of each split, in the order of split seeds.

    Examples
    --------
    >>> split_means({Seeds(7, 0): 1.0, Seeds(7, 1): 2.0, Seeds(5, 0): 4.0})
    {5: 4.0, 7: 1.5}
    """
    return {split: float(np.mean(group)) for split, group in by_split(values).items()}


def split_estimate(values: Mapping[Seeds, float], resamples: int = 1000) -> Estimate:
    """Return the mean of runs with the 95 % percentile bootstrap interval over splits: a draw has all runs of a split.

    Examples
    --------
    >>> runs = {Seeds(split, init): float(split) for split in (1, 3) for init in range(50)}
    >>> split_estimate(runs)
    Estimate(mean=2.0, low=1.0, high=3.0, runs=100)
    """
    groups = by_split(values)
    if not groups:
        reject("values", "split_estimate", "at least one run", "none")
    sums, counts = (np.array([measure(group) for group in groups.values()], dtype=float) for measure in (sum, len))
    drawn = np.random.default_rng(0).integers(len(groups), size=(resamples, len(groups)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    mean = float(sums.sum() / counts.sum())
    return Estimate(mean, min(float(low), mean), max(float(high), mean), len(values))


def split_gaps(first: Mapping[Seeds, float], second: Mapping[Seeds, float]) -> dict[int, float]:
    """Return the mean of the first minus that of the second on each split that both have.

    Examples
    --------
    >>> split_gaps({Seeds(7, 0): 1.0, Seeds(7, 1): 2.0, Seeds(5, 0): 4.0}, {Seeds(7, 0): 1.0})
    {7: 0.5}
    """
    other = split_means(second)
    return {split: mean - other[split] for split, mean in split_means(first).items() if split in other}


def describe_seeds(seeds: Iterable[Seeds], most: int = 4) -> str:
    """Return a short text that names runs one by one, or by initialisation where they are more than `most`.

    Examples
    --------
    >>> describe_seeds([Seeds(5, 1), Seeds(7, 1)])
    'split 5 init 1, split 7 init 1'
    >>> describe_seeds([Seeds(split, init) for init in (1, 2) for split in range(20)])
    '40 runs: init 1 (20 splits), init 2 (20 splits)'
    """
    given = sorted(set(seeds))
    if not given:
        reject("seeds", "describe_seeds", "at least one run", "none")
    if len(given) <= most:
        return ", ".join(f"split {one.split} init {one.init}" for one in given)
    counts = Counter(sorted(one.init for one in given)).items()
    parts = (f"init {init} ({count} split{'' if count == 1 else 's'})" for init, count in counts)
    return f"{len(given)} runs: {', '.join(parts)}"


@final
@dataclass(frozen=True)
class Versus:
    """A model in numbers.

    Attributes
    ----------
    cell
        Which one.
    accuracy, f1
        Mean and interval of both, in [0, 1]; the paper's F1.
    seconds
        Mean of a run.
    over_runs, over_splits
        Paired t-tests of the first model's accuracy against this one's, with Holm's correction over the models compared
        with; None for the first itself.
    """

    cell: Cell
    accuracy: Estimate
    f1: Estimate
    seconds: float
    over_runs: Paired | None
    over_splits: Paired | None


def current_rows(store: Store, cell: Cell) -> tuple[Row, ...]:
    """Return the rows of a cell of the present revision on the present data.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     current_rows(store, Cell("mlp", {}, "citeseer"))
    ()
    """
    data = current_data(cell.dataset, store.path.parent)
    same_data = (pool for pool in pools(store, cell) if pool.data == data)
    current = (pool.rows for pool in same_data if pool.revision == current_revision(cell, pool.rows[0].backend))
    return next(current, ())


def compare_models(store: Store, first: Cell, others: Sequence[Cell], runs: Sequence[Seeds]) -> list[Versus]:
    """Return the first model and those it is compared with, on the wanted runs; a model without any is left out.

    Parameters
    ----------
    store
        Where the rows are.
    first
        The cell of the model in question.
    others
        Cells of the models to compare it with.
    runs
        The runs that count.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> mine, theirs = Cell("mlp", {}, "citeseer"), Cell("gcn", {}, "citeseer")
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     compare_models(store, mine, [theirs], [Seeds(1, 0)])
    []
    """
    wanted = set(runs)
    rows_of = {cell: [row for row in current_rows(store, cell) if row.key.seeds in wanted] for cell in (first, *others)}
    found = {cell: rows for cell, rows in rows_of.items() if rows}

    values = {cell: {row.key.seeds: row.accuracy for row in rows} for cell, rows in found.items()}
    rivals = [cell for cell in found if cell is not first and first in found]

    def tests(over: Over) -> Mapping[Cell, Paired]:
        made = with_holm([paired_test(values[first], values[cell], over) for cell in rivals])
        return dict(zip(rivals, made, strict=True))

    over_runs, over_splits = tests("runs"), tests("splits")
    versus: list[Versus] = []
    for cell, rows in found.items():
        scores = estimate([row.accuracy for row in rows]), estimate([row.f1 for row in rows])
        seconds = sum(row.seconds for row in rows) / len(rows)
        versus.append(Versus(cell, *scores, seconds, over_runs.get(cell), over_splits.get(cell)))
    return versus
