"""How a graph folder is built within given memory, and what that takes: rows at a time, buckets, time and disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from pprop._validate import counted
from pprop._words import duration
from pprop.graph.files import check_disk

# Bytes of memory for an edge that is read and scattered, all threads together, and for an entry that is sorted.
EDGE_BYTES, ENTRY_BYTES, WEIGHTED_BYTES = 400, 64, 192
MOST_ROWS, LEAST_ROWS = 2**22, 2**8
MOST_BUCKETS, BUCKET_BYTES = 512, 2**22
SLACK = 2**30  # bytes of the disk that are given back later than they could be
# Edges a second on two cores: a rough guess for the estimate, and nothing else.
SPEED, TEXT_SPEED, WEIGHTED_SPEED = 3e6, 0.4e6, 1.2e6


@final
@dataclass(frozen=True)
class Plan:
    """What a build takes.

    Attributes
    ----------
    edges
        Rows of the edge lists; of CSV files a guess.
    entries
        Of the matrix, at most: two for an undirected edge.
    weighted
        Whether they have weights.
    memory
        Bytes.
    nodes
        How many there are, where that is known; else a guess.
    feature_bytes
        That the features take in the folder.
    text
        Whether ids are text, as far as is known.

    Examples
    --------
    >>> plan = Plan(edges=10**9, entries=2 * 10**9, weighted=False, memory=8 * 2**30, nodes=10**8)
    >>> plan.buckets, plan.rows
    (512, 4194304)
    >>> print(plan)
    1,000,000,000 edges: about 6 min, at most 8.0 GiB of memory, 19.9 GB of disk while it is built and 9.6 GB afterwards.
    """

    edges: int
    entries: int
    weighted: bool
    memory: int
    nodes: int
    feature_bytes: int = 0
    text: bool = False

    @property
    def rows(self) -> int:
        """Edges that are read at a time."""
        fit = self.memory // 4 // EDGE_BYTES
        fit = fit // 4 if self.text else fit
        return max(LEAST_ROWS, min(MOST_ROWS, 1 << max(fit, 1).bit_length() - 1))

    @property
    def buckets(self) -> int:
        """Files that the entries are scattered to."""
        return max(1, min(MOST_BUCKETS, _open_files() - 64, self.temporary // BUCKET_BYTES, self.nodes or 1))

    @property
    def most_sorted(self) -> int:
        """Entries that may be sorted at a time."""
        return max(LEAST_ROWS, self.memory // 2 // (WEIGHTED_BYTES if self.weighted else ENTRY_BYTES))

    @property
    def temporary(self) -> int:
        """Bytes of the scattered entries."""
        return self.entries * (16 if self.weighted else 8)

    @property
    def lasting(self) -> int:
        """Bytes of the folder."""
        return self.entries * (12 if self.weighted else 4) + 16 * self.nodes + self.feature_bytes

    @property
    def disk(self) -> int:
        """Bytes of the disk while it is built, at most: the arrays grow as the scattered entries go."""
        of_entries = self.entries * (12 if self.weighted else 4)
        slack = min(SLACK, of_entries)
        return max(self.temporary, of_entries) + slack + 28 * self.nodes + self.feature_bytes

    @property
    def seconds(self) -> float:
        """Time, roughly."""
        speed = TEXT_SPEED if self.text else WEIGHTED_SPEED if self.weighted else SPEED
        return self.edges / speed + self.feature_bytes / 2e8

    def __str__(self) -> str:
        return (
            f"{counted(self.edges, 'edge')}: about {duration(self.seconds)}, at most {self.memory / 2**30:.1f} GiB of memory, "
            f"{self.disk / 1e9:.1f} GB of disk while it is built and {self.lasting / 1e9:.1f} GB afterwards."
        )

    def check_disk(self, folder: Path, held: int) -> None:
        """Refuse a build that the disk has no room for; `held` bytes of it are there from before."""
        check_disk(folder, self.disk - held, "The files of this build")


def _open_files() -> int:
    """Return how many files this process may have open."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_BUCKETS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**20 if soft == resource.RLIM_INFINITY else soft
