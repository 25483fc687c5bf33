"""Which rows are computed once more: a seeded choice over all cells that this machine can afford."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, final

import numpy as np

from pprop._errors import DatasetError, InputError, PpropError
from pprop._validate import check_float, check_int
from pprop.datasets import DATASETS
from pprop.kernels.registry import cpu_kind
from pprop.study.cell import Cell, Seeds
from pprop.study.graphs import load_graph
from pprop.study.revisions import current_revision, recorded_provenance, recorded_revision
from pprop.study.run.recipe import Datasets
from pprop.study.store.row import RowKey
from pprop.study.store.store import RowGroup, Store

# Microseconds of an epoch for each node and edge of the graph, one run on two cores: two thirds of what the runs of
# results/gpu_rows_on_cpu.json took, since that machine was busy with other things, too. N-GCN: 0.2 s on Cora-ML.
_EPOCH = {"mlp": 0.5, "ppnp": 0.8, "appnp": 0.6, "vanilla_gcn": 2.0, "gcn": 2.5, "jk": 8.0, "gat": 12.0, "ngcn": 19.0}
_SLOWER = 30.0  # than on a GPU: a user's model


def expected_seconds(cell: Cell, epochs: int, seconds: float, device: str) -> float:
    """Return about how long a run takes on two cores.

    Parameters
    ----------
    cell, epochs, seconds, device
        Of its row.

    Examples
    --------
    >>> cell = Cell("appnp", {}, "cora_ml")
    >>> round(expected_seconds(cell, 1400, 0.04, "cuda (NVIDIA H200)"), 1), expected_seconds(cell, 1400, 9.5, "cpu")
    (9.1, 9.5)
    """
    if device == "cpu":
        return seconds
    if cell.model not in _EPOCH or cell.dataset not in DATASETS:
        return _SLOWER * seconds
    info = DATASETS[cell.dataset]
    return 1e-6 * _EPOCH[cell.model] * epochs * (info.n_nodes + info.n_edges)


# Of a row: from this kind of CPU, so that it must be the same bit for bit; from another kind, or one that was not
# recorded; from a GPU, or another backend than the CPU's usual one; or of another revision.
Kind = Literal["exact", "cpu", "gpu", "stale"]

# The kinds in words.
KINDS: Mapping[Kind, str] = {
    "exact": "from this kind of CPU",
    "cpu": "from another kind of CPU, or one not recorded",
    "gpu": "from a GPU",
    "stale": "of other revisions",
}

# What computes on the CPU: models that are trained, and those that are fitted.
_USUAL = ("numba", "numpy")
# Configuration, revision and data of rows.
_Version: TypeAlias = tuple[str, str, str]
_RUNS = "SELECT config, code, data, split, init, epochs, seconds, device, backend, version, host FROM rows"


@dataclass(frozen=True)
class Planned:
    """A row to be computed once more.

    Attributes
    ----------
    key, cell, kind
        Which one.
    seconds
        What that may take on two cores.
    """

    key: RowKey
    cell: Cell
    kind: Kind
    seconds: float


@final
@dataclass(frozen=True)
class VerificationPlan:
    """What a verification will compute, and what it leaves out.

    Attributes
    ----------
    chosen
        The rows to compute, those of a cell one after another.
    rows
        Rows in the store.
    stale
        Rows left out because they are of another revision or other data.
    long
        Cells of which no row fits into the time.
    absent
        For each dataset or user's model that is not here, a sentence that says so and how many rows need it.
    """

    chosen: tuple[Planned, ...]
    rows: int
    stale: int
    long: tuple[Cell, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """What all of it may take on two cores."""
        return sum(planned.seconds for planned in self.chosen)

    @property
    def cells(self) -> int:
        """How many cells the chosen rows are of."""
        return len({planned.key.config for planned in self.chosen})


def plan_verification(
    store: Store, sample: int = 20, seed: int = 0, minutes: float = 5.0, *, stale: bool = False
) -> VerificationPlan:
    """Choose rows to be computed once more: one of each cell before a second one of any, within the time.

    Parameters
    ----------
    store
        The rows.
    sample
        How many; at most all.
    seed
        Of the choice, which depends on nothing else but the rows.
    minutes
        What they may take on two cores, by the epochs they took before; one row is chosen in any case.
    stale
        Choose among the rows of other revisions, too.

    Raises
    ------
    InputError
        No row is of the present revision and data.
    DatasetError
        None can be computed once more, since a dataset is not here.
    """
    check_int(sample, "sample", "plan_verification", low=1)
    check_int(seed, "seed", "plan_verification", low=0)
    check_float(minutes, "minutes", "plan_verification", "(0, inf)")
    groups = store.groups()
    kinds, absent, old = _kinds(groups, stale, Datasets(partial(load_graph, study=store.path.parent)))
    rows, n_absent = sum(group.runs for group in groups), sum(runs for _, runs in absent.values())
    lacking = tuple(
        f"The {what} {name!r} was not found here ({runs} row{'s' * (runs != 1)}): {error}"
        for (what, name), (error, runs) in sorted(absent.items(), key=lambda entry: entry[0][0])
    )
    strata: dict[tuple[str, Kind], list[Planned]] = defaultdict(list)
    for config, code, data, split, init, epochs, seconds, device, backend, *made in sorted(store.execute(_RUNS)):
        key = RowKey(config, recorded_revision(code), data, Seeds(split, init))
        if (key.config, key.revision, key.data) not in kinds:
            continue
        cell, kind = kinds[key.config, key.revision, key.data]
        if kind == "exact" and (device != "cpu" or backend not in _USUAL):
            kind = "gpu"
        elif kind == "exact" and recorded_provenance(made[0], code, made[1]).cpu != cpu_kind():
            kind = "cpu"
        planned = Planned(key, cell, kind, expected_seconds(cell, epochs, seconds, device))
        strata[config, kind].append(planned)
    if not strata:
        remedy = " --stale computes those of another revision, too." if old else ""
        if not absent:
            raise InputError(f"None of the {rows} rows is of the present revision and data.{remedy}")
        others = f"{rows - n_absent} of them are of another revision or other data.{remedy}" if rows > n_absent else ""
        sentence = (f"None of the {rows} rows can be computed once more.", *lacking, others)
        kind_of_error = DatasetError if any(what == "dataset" for what, _ in absent) else InputError
        raise kind_of_error(" ".join(filter(None, sentence)))
    chosen, long = _chosen(list(strata.values()), sample, seed, 60 * minutes)
    candidates = sum(len(stratum) for stratum in strata.values())
    ordered = tuple(sorted(chosen, key=lambda planned: (planned.key, planned.kind)))
    return VerificationPlan(ordered, rows, rows - candidates - n_absent, long, lacking)


def _chosen(
    strata: Sequence[Sequence[Planned]], sample: int, seed: int, limit: float
) -> tuple[list[Planned], tuple[Cell, ...]]:
    """Return the choice, and the cells that have only rows which take longer than all the time there is."""
    random = np.random.default_rng(seed)
    # in random order, the kinds taking turns: a few rows from the CPU are not lost among thousands
    turns: Counter[Kind] = Counter()
    order: list[tuple[int, int]] = []
    for at in random.permutation(len(strata)):
        kind = strata[int(at)][0].kind
        order.append((turns[kind], int(at)))
        turns[kind] += 1
    order.sort(key=lambda one: one[0])
    queues = [[strata[at][int(index)] for index in random.permutation(len(strata[at]))] for _, at in order]
    chosen: list[Planned] = []
    left = limit
    for turn in range(max(len(queue) for queue in queues)):
        for queue in queues:
            if turn < len(queue) and len(chosen) < sample and queue[turn].seconds <= left:
                chosen.append(queue[turn])
                left -= queue[turn].seconds
    if not chosen:
        chosen.append(min((one for queue in queues for one in queue), key=lambda one: (one.seconds, one.key)))
    long = {queue[0].key.config: queue[0].cell for queue in queues if min(one.seconds for one in queue) > limit}
    return chosen, tuple(long[config] for config in sorted(long))


def _kinds(
    groups: Sequence[RowGroup], stale: bool, datasets: Datasets
) -> tuple[dict[_Version, tuple[Cell, Kind]], dict[tuple[str, str], tuple[PpropError, int]], bool]:
    """Return the kind of the rows that can be computed here, what others lack and how many, and whether some are old."""
    kinds: dict[_Version, tuple[Cell, Kind]] = {}
    absent: dict[tuple[str, str], tuple[PpropError, int]] = {}
    old = False
    for group in groups:
        lacks = ("model", group.cell.model)
        try:
            current = current_revision(group.cell, group.backend) == group.revision
            if not current and not stale:
                old = True
                continue
            lacks = ("dataset", group.cell.dataset)
            if datasets.of(group.cell).data == group.data:
                kinds[group.config, group.revision, group.data] = group.cell, "exact" if current else "stale"
        except PpropError as error:
            absent[lacks] = error, absent.get(lacks, (error, 0))[1] + group.runs
    return kinds, absent, old
