"""Sentences that stand below several figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["DATASET_TITLES", "dataset_title", "runs_note"]

DATASET_TITLES: Mapping[str, str] = {
    "citeseer": "Citeseer",
    "cora_ml": "Cora-ML",
    "pubmed": "PubMed",
    "ms_academic": "MS Academic",
}
MOST_EXCEPTIONS = 8  # that a reader can take in
ORDERS = ((0, 1, 2), (2, 0, 1))
"""Ways to divide points into groups: by series, dataset, place, or by place first; what makes fewer, shorter exceptions is told."""


def dataset_title(name: str) -> str:
    """Return a dataset's name as people write it.

    Examples
    --------
    >>> dataset_title("cora_ml"), dataset_title("mine")
    ('Cora-ML', 'mine')
    """
    return DATASET_TITLES.get(name, name)


def runs_note(counts: Mapping[tuple[str, str, str], int], of: str = "at each point") -> str:
    """Say how many runs the points of a figure rest on: most of them, and those that differ.

    Parameters
    ----------
    counts
        Number of runs by (series, dataset, place), the place empty where there is one for each series and dataset.
    of
        What has these runs.

    Examples
    --------
    >>> runs_note({("APPNP", "Cora-ML", ""): 100, ("GCN", "Cora-ML", ""): 100, ("Bt. FP", "Cora-ML", ""): 20})
    '100 runs at each point, but Bt. FP: 20.'
    >>> runs_note({("APPNP", "Cora-ML", ""): 1})
    '1 run at each point.'
    >>> runs_note({(model, "Cora-ML", at): 100 if at == "20" else 20 for model in "ABCDEFGHI" for at in ("10", "20", "40")})
    '20 runs at each point, but at 20: 100.'
    >>> runs_note({(model, "Cora-ML", at): 100 if at == "20" and model != "C" else 20 for model in "ABC" for at in ("10", "20")})
    '20 runs at each point, but A, B at 20: 100.'
    """
    values = Counter(counts.values())
    common = max(values, key=lambda runs: (values[runs], runs))
    text = f"{common} run{'' if common == 1 else 's'} {of}"
    exceptions = min((_exceptions(counts, common, order) for order in ORDERS), key=_length)
    if len(exceptions) > MOST_EXCEPTIONS:
        most = f"{common} in {values[common]} of {values.total()} places"
        return f"{min(values)} to {max(values)} runs {of}; {most}."
    return f"{text}, but {'; '.join(exceptions)}." if exceptions else f"{text}."


def _length(exceptions: Sequence[str]) -> tuple[int, int]:
    return len(exceptions), sum(map(len, exceptions))


def _exceptions(counts: Mapping[tuple[str, str, str], int], common: int, order: tuple[int, int, int]) -> list[str]:
    """Return the groups whose number of runs is not `common`; series that differ alike are named together."""
    names: dict[tuple[str, int], list[str]] = {}
    for (series, dataset, place), runs in _groups(counts, common, order):
        rest = " ".join(word for word in (dataset and f"on {dataset}", place and f"at {place}") if word)
        names.setdefault((rest, runs), []).append(series)
    return [
        f"{' '.join(words)}: {runs}"
        for (rest, runs), series in names.items()
        if (words := [word for word in (", ".join(filter(None, series)), rest) if word])
    ]


def _groups(
    counts: Mapping[tuple[str, str, str], int], common: int, order: tuple[int, int, int], depth: int = 1
) -> Iterator[tuple[tuple[str, str, str], int]]:
    """Yield groups whose number of runs is not `common`, each as large as it can be when divided in an order.

    A group goes by the series, dataset and place that its members share, empty where they do not.
    """
    groups: dict[tuple[str, ...], dict[tuple[str, str, str], int]] = {}
    for key, runs in counts.items():
        groups.setdefault(tuple(key[part] for part in order[:depth]), {})[key] = runs
    for members in groups.values():
        some, runs = next(iter(members.items()))
        if len(set(members.values())) > 1:
            yield from _groups(members, common, order, depth + 1)
        elif runs != common:
            series, dataset, place = (some[part] if part in order[:depth] else "" for part in range(3))
            yield (series, dataset, place), runs
