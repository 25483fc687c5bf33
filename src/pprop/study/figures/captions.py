"""Sentences that stand below several figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

__all__ = ["DATASET_TITLES", "dataset_title", "runs_note"]

DATASET_TITLES: Mapping[str, str] = {
    "citeseer": "Citeseer",
    "cora_ml": "Cora-ML",
    "pubmed": "PubMed",
    "ms_academic": "MS Academic",
}
MOST_EXCEPTIONS = 8  # that a reader can take in


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
    """
    values = Counter(counts.values())
    common = max(values, key=lambda runs: (values[runs], runs))
    text = f"{common} run{'' if common == 1 else 's'} {of}"
    exceptions = _exceptions(counts, common, 0)
    if len(exceptions) > MOST_EXCEPTIONS:
        most = f"{common} in {values[common]} of {values.total()} places"
        return f"{min(values)} to {max(values)} runs {of}; {most}."
    return f"{text}, but {'; '.join(exceptions)}." if exceptions else f"{text}."


def _exceptions(counts: Mapping[tuple[str, str, str], int], common: int, depth: int) -> list[str]:
    """Return the groups whose number of runs is not `common`, each as large as it can be."""
    groups: dict[tuple[str, ...], dict[tuple[str, str, str], int]] = {}
    for key, runs in counts.items():
        groups.setdefault(key[: depth + 1], {})[key] = runs
    found: list[str] = []
    for key, members in groups.items():
        if len(set(members.values())) > 1:
            found += _exceptions(members, common, depth + 1)
        elif (runs := next(iter(members.values()))) != common:
            words = [word + part for word, part in zip(("", "on ", "at "), key, strict=False)]
            found.append(f"{' '.join(words)}: {runs}")
    return found
