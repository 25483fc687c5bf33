"""An experiment: the cells behind one published number or figure, and that number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from sys import maxsize
from typing import Any, final

from pprop._validate import check_int
from pprop.study.cell import Cell, Seeds, split_seeds
from pprop.study.zoo import MODELS

__all__ = ["SHOWS", "Experiment", "Point", "Published", "load_experiments", "read_experiment"]

SHOWS = (
    *("accuracy", "time"),  # the tables
    *("labels", "steps", "alpha", "depth", "propagation"),  # the figures
    *("rerun", "search", "quick"),  # the authors' second run, hyperparameters, and cells that other experiments show
    "runs",  # cells of the accuracy table with more splits than it has: no other table or figure shows those
)
"""What an experiment may be for."""


@final
@dataclass(frozen=True)
class Point:
    """One cell of an experiment.

    Attributes
    ----------
    cell
        What is run.
    at
        Where it stands in a figure, such as ``{"alpha": 0.1}``; empty for an entry of a table.
    """

    cell: Cell
    at: Mapping[str, Any]


@final
@dataclass(frozen=True)
class Published:
    """What the paper printed; None where it printed nothing.

    Attributes
    ----------
    accuracy, accuracy_interval
        Percent: 85.09 and 0.25.
    f1, f1_interval
        The paper's macro F1, in [0, 1].
    ms_per_epoch
        Milliseconds, on a GPU of its time.
    p_accuracy, p_f1
        Of the paired t-tests.

    Examples
    --------
    >>> Published(accuracy=85.09, accuracy_interval=0.25).f1 is None
    True
    """

    accuracy: float | None = None
    accuracy_interval: float | None = None
    f1: float | None = None
    f1_interval: float | None = None
    ms_per_epoch: float | None = None
    p_accuracy: float | None = None
    p_f1: float | None = None


@final
@dataclass(frozen=True)
class Experiment:
    """The content of an experiment file.

    Attributes
    ----------
    name
        Of the file, without its ending.
    title
        For people.
    shows
        One of `SHOWS`. Distributions, distances and p-values draw on the rows of ``"accuracy"``.
    points
        Its cells.
    n_splits, n_inits
        Splits, and initialisations of each. Their seeds are those of `split_seeds`, the paper's first.
    alone
        Whether runs are trained one at a time, so that their time per epoch can be told.
    published
        What the paper printed.
    groups
        Names that stand for several experiments.

    Examples
    --------
    >>> experiment = load_experiments()["gasteiger_2019_appnp_cora_ml"]
    >>> experiment.title, len(experiment.seeds()), experiment.published.accuracy
    ('APPNP on Cora-ML', 100, 85.09)
    >>> experiment.seeds(runs=21)[20]
    Seeds(split=2144199730, init=1)
    """

    name: str
    title: str
    shows: str
    points: tuple[Point, ...]
    n_splits: int = 20
    n_inits: int = 5
    alone: bool = False
    published: Published | None = None
    groups: tuple[str, ...] = ()

    def seeds(self, runs: int | None = None, cell: Cell | None = None) -> tuple[Seeds, ...]:
        """Return the runs of every cell: all splits with initialisation 0, then all with 1, ...; the first `runs`.

        With `cell`, the runs of that one: a model without initialisation has one run per split.
        """
        splits = split_seeds(self.points[0].cell.splits, self.n_splits)
        inits = 1 if cell is not None and cell.model in MODELS and not MODELS[cell.model].seeded else self.n_inits
        seeds = (Seeds(split, init) for init in range(inits) for split in splits)
        return tuple(seeds if runs is None else islice(seeds, min(check_int(runs, "runs", "seeds", low=1), maxsize)))


def read_experiment(path: Path) -> Experiment:
    r"""Return the experiment in a file, or say in which line it is wrong. See `docs/experiments.md`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.toml"
    >>> _ = path.write_text('title = "Mine"\nshows = "accuracy"\nmodel = "mlp"\ndataset = "citeseer"\nsplit = "test"')
    >>> read_experiment(path)
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: mine.toml, line 5: unknown key 'split'. Did you mean 'splits'?
    """
    from pprop.study.experiment_file import parse_experiment  # it makes what is defined here

    return parse_experiment(path)


def load_experiments(folder: Path | None = None) -> dict[str, Experiment]:
    """Return the experiments in a folder by name, in order of their names; by default those that come with pprop.

    Examples
    --------
    >>> "quick" in load_experiments()
    True
    """
    home = Path(__file__).with_name("experiments") if folder is None else folder
    return {path.stem: read_experiment(path) for path in sorted(home.glob("*.toml"))}
