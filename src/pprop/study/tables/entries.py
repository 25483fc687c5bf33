"""The entries of tables: a model on a dataset with its experiment, rows and command; titles of models and datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from pprop.datasets import DATASETS
from pprop.study.cell import Cell, Seeds
from pprop.study.experiment import Experiment, Published
from pprop.study.store.row import Row
from pprop.study.tables.samples import Sample, Samples
from pprop.study.zoo import MODELS

DATASET_TITLES: Mapping[str, str] = {
    "citeseer": "Citeseer",
    "cora_ml": "Cora-ML",
    "pubmed": "PubMed",
    "ms_academic": "MS Academic",
}
_ORDER = ("mlp", "vanilla_gcn", "gcn", "ngcn", "gat", "jk", "bootstrapped_fp", "ppnp", "appnp")  # the paper's

TESTED = ("ppnp", "appnp")
"""The paper's own models, which are compared with all others."""


@final
@dataclass(frozen=True, eq=False)
class Entry:
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
    def wanted(self) -> int | None:
        """Runs by the protocol; None for a user's model."""
        return None if self.experiment is None else len(self.experiment.seeds(cell=self.cell))

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


ByDataset: TypeAlias = Mapping[str, Sequence[Entry]]
"""The entries of a table, by dataset."""


def command(experiment: Experiment, cell: Cell, sample: Sample | None) -> str:
    """Return what to type to get the rows of a sample: also how many runs, and on which device, where it matters.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> experiment = load_experiments()["gasteiger_2019_appnp_cora_ml"]
    >>> command(experiment, experiment.points[0].cell, None)
    'pprop study run gasteiger_2019_appnp_cora_ml --out DIR'
    """
    parts = ["pprop study run", experiment.name, "--out DIR"]
    if sample is not None:
        runs = first_runs(sample, experiment.seeds(cell=cell))
        if runs is not None and runs < len(experiment.seeds(cell=cell)):
            parts.append(f"--runs {runs}")
        if all(row.device.startswith("cuda") for row in sample.rows):
            parts.append("--device cuda")
    return " ".join(parts)


def first_runs(sample: Sample, seeds: Sequence[Seeds]) -> int | None:
    """Return r if a sample is the first r of `seeds`, else None.

    >>> from pprop.study.store.store import Pool
    >>> first_runs(Sample(Cell("mlp", {}, "citeseer"), Pool(Cell("mlp", {}, "citeseer"), "c", "d", ())), [Seeds(1, 0)])
    0
    """
    there = {row.key.seeds for row in sample.rows}
    return len(there) if there == set(seeds[: len(there)]) else None


def entries(
    experiments: Mapping[str, Experiment], samples: Samples, shows: str = "accuracy"
) -> dict[str, tuple[Entry, ...]]:
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
    >>> from pprop.study.experiment_folder import load_experiments
    >>> entries(load_experiments(), Samples([]))
    {}
    """
    found: dict[str, list[Entry]] = {}
    for experiment in experiments.values():
        if experiment.shows == shows:
            for point in experiment.points:
                if shows == "accuracy" and not _in_the_table(point.cell):
                    continue
                entry = Entry(point.cell, model_title(point.cell), experiment, samples.of(point.cell))
                found.setdefault(point.cell.dataset, []).append(entry)
    for entry in _own(samples) if shows == "accuracy" else ():
        found.setdefault(entry.cell.dataset, []).append(entry)
    return {
        dataset: tuple(sorted(found[dataset], key=lambda entry: model_order(entry.cell)))
        for dataset in sorted(found, key=dataset_order)
        if any(entry.sample is not None for entry in found[dataset])
    }


def _own(samples: Samples) -> Iterable[Entry]:
    """Yield users' models on the paper's test splits, with their settings where a model was run with several."""
    own = [each for each in samples.values() if each.cell.model not in MODELS and _in_the_table(each.cell)]
    for sample in own:
        same = [
            each for each in own if (each.cell.model, each.cell.dataset) == (sample.cell.model, sample.cell.dataset)
        ]
        yield Entry(sample.cell, model_title(sample.cell, settings=len(same) > 1), None, sample)


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
        return MODELS[cell.model].title
    text = ", ".join(f"{name}={value}" for name, value in sorted(cell.settings.items()))
    return f"{cell.model} ({text})" if text and settings else cell.model


def listed(names: Sequence[str]) -> str:
    """Return names in a row, as in a sentence.

    >>> listed(["GCN", "GAT", "JK"]), listed(["GCN"])
    ('GCN, GAT and JK', 'GCN')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def dataset_order(name: str) -> tuple[int, str]:
    """Return a key that sorts the paper's datasets as the paper does, and others behind them.

    >>> sorted(["mine", "pubmed", "citeseer"], key=dataset_order)
    ['citeseer', 'pubmed', 'mine']
    """
    known = list(DATASETS)
    return (known.index(name) if name in known else len(known), name)


def model_order(cell: Cell) -> tuple[int, str]:
    """Return a key that sorts cells by model as the paper does, and users' models behind them.

    >>> cells = [Cell("mine:build", {}, "citeseer"), Cell("appnp", {}, "citeseer"), Cell("gcn", {}, "citeseer")]
    >>> [cell.model for cell in sorted(cells, key=model_order)]
    ['gcn', 'appnp', 'mine:build']
    """
    return (_ORDER.index(cell.model) if cell.model in _ORDER else len(_ORDER), cell.text)
