"""What tables show: the rows of each cell (`Sample`), and each model on a dataset with its rows and command (`TableEntry`).

Also the titles and the order of models and datasets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, final

from pprop.study.cell import MODELS, Cell, Seeds, is_original, name_of
from pprop.study.experiment import Experiment, Published
from pprop.study.experiment_folder import load_experiments
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row, without_predictions
from pprop.study.store.store import Pool, Store, newest_first, pools

Metric = Literal["accuracy", "f1", "f1_macro"]

DATASET_TITLES = {"citeseer": "Citeseer", "cora_ml": "Cora-ML", "pubmed": "PubMed", "ms_academic": "MS Academic"}
_ORDER = ("mlp", "vanilla_gcn", "gcn", "ngcn", "gat", "jk", "bootstrapped_fp", "ppnp", "appnp")  # the paper's

# The paper's own models, which are compared with all others.
TESTED = ("ppnp", "appnp")
# Models that are beside the paper's baselines: the paper has no MLP, and its bootstrapped feature propagation is not tuned.
_BESIDE = ("mlp", "bootstrapped_fp")
PAPERS_BASELINES = (*(kind.title for name, kind in MODELS.items() if name not in (*TESTED, *_BESIDE)), "Bt. FP")


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a cell that are shown, and those that are not.

    Attributes
    ----------
    cell
        What was run.
    pool
        The rows that are shown: one version of the code and of the data. Their predictions are left out.
    others
        Rows of the same cell with other versions, newest first: the cell was run again.
    """

    cell: Cell
    pool: Pool
    others: tuple[Pool, ...] = ()

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The rows of all versions, those that are shown first."""
        return self.pool, *self.others

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that are shown, in the order of their seeds."""
        return self.pool.rows

    @property
    def title(self) -> str:
        """Of the model."""
        return model_title(self.cell)

    @property
    def where(self) -> str:
        """The model and the dataset."""
        return f"{self.title} on {dataset_title(self.cell.dataset)}"

    def values(self, metric: Metric) -> dict[Seeds, float]:
        """Return a metric of each run, in [0, 1]."""
        return {row.key.seeds: float(getattr(row, metric)) for row in self.rows}

    def percent(self, metric: Metric = "accuracy") -> Estimate:
        """Return the mean of a metric over the runs with its interval, in percent."""
        return estimate([100 * value for value in self.values(metric).values()])

    @property
    def all_rows(self) -> tuple[Row, ...]:
        """The rows of all versions, pool by pool: not to be averaged."""
        return tuple(row for pool in self.pools for row in pool.rows)

    def on(self, device: str) -> Sample | None:
        """Return the newest of the pools that have rows of a device, with those rows alone; None if there are none.

        The versions of CPU and GPU code differ, so that rows of the two are never in one pool: where a cell was timed
        on both, the pool that is shown has one of them.
        """
        kept = ((pool, tuple(row for row in pool.rows if row.device == device)) for pool in self.pools)
        return next((Sample(self.cell, replace(pool, rows=rows)) for pool, rows in kept if rows), None)

    def only(self, seeds: Collection[Seeds]) -> Sample | None:
        """Return what the sample would be if no other runs than these had been made; None if none of them was.

        The pool that is shown may be another one: the newest row of all need not be one of these.
        """
        wanted = frozenset(seeds)
        kept = [replace(pool, rows=tuple(row for row in pool.rows if row.key.seeds in wanted)) for pool in self.pools]
        found = newest_first(pool for pool in kept if pool.rows)
        return Sample(self.cell, found[0], tuple(found[1:])) if found else None


@final
class Samples(dict[str, Sample]):
    """The samples of a study by the configuration of their cells, in the order of the cells' texts.

    Examples
    --------
    >>> cell = Cell("mlp", {}, "citeseer")
    >>> samples = Samples([Sample(cell, Pool(cell, "c1", "d1", ()))])
    >>> samples.of(cell).cell.model, samples.of(Cell("gcn", {}, "citeseer"))
    ('mlp', None)
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        super().__init__((each.cell.config, each) for each in sorted(samples, key=lambda each: each.cell.text))

    def of(self, cell: Cell) -> Sample | None:
        """Return the sample of a cell, or None where nothing was run."""
        return self.get(cell.config)

    def published(self, experiments: Mapping[str, Experiment]) -> Samples:
        """Return what tables and figures show of the samples.

        Here, and nowhere else, the runs that experiments of kind ``"runs"`` add are kept away from all that the other
        experiments show.

        Examples
        --------
        >>> Samples([]).published(load_experiments()).of(Cell("mlp", {}, "citeseer")) is None
        True
        """
        return self.named(one for one in experiments.values() if one.shows != "runs")

    def named(self, experiments: Iterable[Experiment]) -> Samples:
        """Return what the samples would be if cells of `experiments` had no more runs than these name.

        Cells that are in none of them keep all their runs.

        Examples
        --------
        >>> from pprop.study.store.row import example_row
        >>> experiment = load_experiments()["gasteiger_2019_mlp_citeseer"]
        >>> cell = experiment.points[0].cell
        >>> rows = (example_row(split=2144199730), example_row(split=17))
        >>> everything = Samples([Sample(cell, Pool(cell, "c1", "d1", rows))])
        >>> [row.key.seeds.split for row in everything.named([experiment]).of(cell).rows]
        [2144199730]
        """
        named: dict[str, set[Seeds]] = {}
        for experiment, cell in ((one, point.cell) for one in experiments for point in one.points):
            named.setdefault(cell.config, set()).update(experiment.seeds(cell=cell))
        found = (each.only(named[config]) if config in named else each for config, each in self.items())
        return Samples(each for each in found if each is not None)


def read_samples(store: Store) -> Samples:
    """Return the rows that tables show, cell by cell, the newest pool of each first.

    Of a cell of the experiments that come with pprop, the runs that these name; see `Samples.published`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     len(read_samples(store))
    0
    """
    return read_all_samples(store).published(load_experiments())


def read_all_samples(store: Store) -> Samples:
    """Return all that a store holds, also the runs beyond those of the tables.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     len(read_all_samples(store))
    0
    """
    samples: list[Sample] = []
    for cell in store.cells():
        # no table needs the predictions of every node, which fill the memory
        shown, *others = (replace(pool, rows=tuple(map(without_predictions, pool.rows))) for pool in pools(store, cell))
        samples.append(Sample(cell, shown, tuple(others)))
    return Samples(samples)


@final
@dataclass(frozen=True, eq=False)
class TableEntry:
    """One model on one dataset.

    Attributes
    ----------
    cell
        What is run.
    title
        Of the model.
    experiment
        Whose published values belong to it; None for a user's model.
    sample
        Its rows; None where it was not run.
    """

    cell: Cell
    title: str
    experiment: Experiment | None
    sample: Sample | None

    @property
    def rows(self) -> tuple[Row, ...]:
        """Its rows; empty where it was not run."""
        return () if self.sample is None else self.sample.rows

    @property
    def published(self) -> Published:
        """What the paper printed of it."""
        return (self.experiment and self.experiment.published) or Published()

    @property
    def where(self) -> str:
        """The model and the dataset."""
        return f"{self.title} on {dataset_title(self.cell.dataset)}"

    @property
    def wanted(self) -> int | None:
        """Runs by the protocol; None for a user's model."""
        return None if self.experiment is None else len(self.experiment.seeds(cell=self.cell))

    def values(self, metric: Metric) -> dict[Seeds, float]:
        """Return a metric of each run, in [0, 1]; empty where it was not run."""
        return {} if self.sample is None else self.sample.values(metric)

    @property
    def accuracies(self) -> dict[Seeds, float]:
        """Those of its runs in percent; empty where it was not run."""
        return {row.key.seeds: 100 * row.accuracy for row in self.rows}

    @property
    def command(self) -> str:
        """What to type to get its rows."""
        if self.experiment is not None:
            return command(self.experiment, self.cell, self.sample)
        return f"pprop study run --model {self.cell.model} --dataset {self.cell.dataset} --out DIR"


# The entries of a table, by dataset.
ByDataset: TypeAlias = Mapping[str, Sequence[TableEntry]]


def command(experiment: Experiment, cell: Cell, sample: Sample | None) -> str:
    """Return what to type to get the rows of a sample: also how many runs, and on which device, where it matters.

    Examples
    --------
    >>> experiment = load_experiments()["gasteiger_2019_appnp_cora_ml"]
    >>> command(experiment, experiment.points[0].cell, None)
    'pprop study run gasteiger_2019_appnp_cora_ml --out DIR'
    """
    return run_command(experiment.name, [] if sample is None else [(sample, experiment.seeds(cell=cell))])


def run_command(names: str, runs: Sequence[tuple[Sample, Sequence[Seeds]]]) -> str:
    """Return what to type to get the rows of samples of the named experiments, each with the runs that it should have.

    With the least number of runs where cells lack some, and the device where all trainings were on a GPU.

    >>> run_command("quick", [])
    'pprop study run quick --out DIR'
    """
    counts = [(first_runs(sample, seeds), len(seeds)) for sample, seeds in runs]
    fewest = min((made for made, wanted in counts if made is not None and made < wanted), default=0)
    rows = [row for sample, _ in runs for row in sample.rows]
    devices = {row.device for row in [row for row in rows if row.epochs] or rows}
    on_gpu = devices and all(device.startswith("cuda") for device in devices)
    limit, device = f" --runs {fewest}" if fewest else "", " --device cuda" if on_gpu else ""
    return f"pprop study run {names} --out DIR{limit}{device}"


def first_runs(sample: Sample, seeds: Sequence[Seeds]) -> int | None:
    """Return r if a sample is the first r of `seeds`, else None.

    >>> first_runs(Sample(Cell("mlp", {}, "citeseer"), Pool(Cell("mlp", {}, "citeseer"), "c", "d", ())), [Seeds(1, 0)])
    0
    """
    there = {row.key.seeds for row in sample.rows}
    return len(there) if there == set(seeds[: len(there)]) else None


def entries(
    experiments: Mapping[str, Experiment], samples: Samples, shows: str = "accuracy"
) -> dict[str, tuple[TableEntry, ...]]:
    """Return the entries of the main table by dataset: those of the paper, then users' models.

    Only datasets with rows are there; of those, every model is, run or not. What shows accuracy elsewhere than on the
    test splits with 20 training nodes per class is left out: it does not compare.

    Parameters
    ----------
    experiments
        Those that come with pprop: two with the same model on the same dataset could not be distinguished.
    samples
        The rows.
    shows
        Which of the experiments are taken.

    Examples
    --------
    >>> entries(load_experiments(), Samples([]))
    {}
    """
    of_kind = ((one, point.cell) for one in experiments.values() if one.shows == shows for point in one.points)
    papers = (TableEntry(cell, model_title(cell), one, samples.of(cell)) for one, cell in of_kind)
    found: dict[str, list[TableEntry]] = {}
    for entry in (*papers, *_own(samples)) if shows == "accuracy" else papers:
        if shows != "accuracy" or _in_the_table(entry.cell):
            found.setdefault(entry.cell.dataset, []).append(entry)
    return {
        dataset: tuple(sorted(found[dataset], key=lambda entry: model_order(entry.cell)))
        for dataset in sorted(found, key=dataset_order)
        if any(entry.sample is not None for entry in found[dataset])
    }


def _own(samples: Samples) -> Iterable[TableEntry]:
    """Yield users' models on the paper's test splits, with their settings where a model was run with several."""
    own = [each for each in samples.values() if each.cell.model not in MODELS and _in_the_table(each.cell)]
    times_run = Counter((each.cell.model, each.cell.dataset) for each in own)
    for sample in own:
        several = times_run[sample.cell.model, sample.cell.dataset] > 1
        yield TableEntry(sample.cell, model_title(sample.cell, settings=several), None, sample)


def _in_the_table(cell: Cell) -> bool:
    return cell.splits == "test" and cell.per_class == 20


def dataset_title(name: str) -> str:
    """Return a dataset's name as people write it.

    Examples
    --------
    >>> dataset_title("cora_ml"), dataset_title("mine")
    ('Cora-ML', 'mine')
    """
    return DATASET_TITLES.get(name, name)


def model_title(cell: Cell, settings: bool = False) -> str:
    """Return the paper's name of the model of a cell; a user's model has its address, with `settings` also these.

    >>> model_title(Cell("vanilla_gcn", {}, "citeseer")), model_title(Cell("mine:build", {"width": 3}, "citeseer"), True)
    ('V. GCN', 'mine:build (width=3)')
    """
    if cell.model in MODELS:
        return name_of(cell)
    text = ", ".join(f"{name}={value}" for name, value in sorted(cell.settings.items()))
    return f"{cell.model} ({text})" if text and settings else cell.model


def is_papers_baseline(cell: Cell) -> bool:
    """Return whether a model is one that the paper compares its own with.

    >>> [is_papers_baseline(Cell(model, {}, "citeseer")) for model in ("gcn", "mlp", "bootstrapped_fp", "appnp", "mine:build")]
    [True, False, False, False, False]
    """
    return cell.model in MODELS and name_of(cell) in PAPERS_BASELINES


def dataset_order(name: str) -> tuple[int, str]:
    """Return a key that sorts the paper's datasets as the paper does, and others behind them.

    >>> sorted(["mine", "pubmed", "citeseer"], key=dataset_order)
    ['citeseer', 'pubmed', 'mine']
    """
    known = list(DATASET_TITLES)
    return (known.index(name) if name in known else len(known), name)


def model_order(cell: Cell) -> tuple[int, str]:
    """Return a key that sorts cells by model as the paper does, and users' models behind them.

    >>> cells = [Cell("mine:build", {}, "citeseer"), Cell("appnp", {}, "citeseer"), Cell("gcn", {}, "citeseer")]
    >>> [cell.model for cell in sorted(cells, key=model_order)]
    ['gcn', 'appnp', 'mine:build']
    """
    place = _ORDER.index(cell.model) if cell.model in _ORDER else len(_ORDER)
    return place, "" if is_original(cell) else cell.text
