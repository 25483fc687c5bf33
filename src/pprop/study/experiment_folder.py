"""The experiments of a study: those that come with pprop, the same on a user's graphs, and a user's files, kept with it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain, count
from pathlib import Path

from pprop._errors import InputError
from pprop.datasets import DATASETS
from pprop.study.experiment import Experiment, Point, read_experiment
from pprop.study.graphs import own_names


def load_experiments(folder: Path | None = None) -> dict[str, Experiment]:
    """Return the experiments in a folder by name, in order of their names; by default those that come with pprop.

    Examples
    --------
    >>> "quick" in load_experiments()
    True
    """
    if folder is None:
        return dict(_bundled())
    return {path.stem: read_experiment(path) for path in sorted(folder.glob("*.toml"))}


# Of a study's folder, and of the package's.
FOLDER = "experiments"

# The dataset whose experiments are those of a user's graph, too: its alpha is the default.
TEMPLATE = "citeseer"
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@cache
def _bundled() -> Mapping[str, Experiment]:
    return load_experiments(Path(__file__).with_name(FOLDER))


def experiments_of(study: Path, datasets: Iterable[str] = ()) -> dict[str, Experiment]:
    """Return the experiments that come with pprop, also on a user's graphs, and those kept in a study's folder, by name.

    Parameters
    ----------
    study
        The folder, which may have graphs.
    datasets
        Names of graphs that the study has rows of; those of the user's own count, whether the folder has them or not.

    Examples
    --------
    >>> experiments_of(Path("no study")) == load_experiments()
    True
    """
    found = load_experiments() | load_experiments(Path(study) / FOLDER)
    for name in sorted({*own_names(study), *datasets} - DATASETS.keys()):
        found |= experiments_on(name)
    return found


def experiments_on(graph: str) -> dict[str, Experiment]:
    """Return the experiments that come with pprop on a user's graph, by name: no published numbers, the same settings.

    They are those on Citeseer, whose alpha is the default. Groups are those with the name of the dataset in theirs.

    Examples
    --------
    >>> one = experiments_on("mine")["gasteiger_2019_appnp_mine"]
    >>> one.title, one.groups, one.points[0].cell.dataset, one.published
    ('APPNP on mine', ('mine',), 'mine', None)
    """
    made = (on_graph(one, graph) for one in load_experiments().values())
    return {one.name: one for one in made if one is not None}


def on_graph(experiment: Experiment, graph: str) -> Experiment | None:
    """Return an experiment that comes with pprop, on whichever dataset it is, on a user's graph; None if it has no place there.

    Examples
    --------
    >>> on_graph(load_experiments()["gasteiger_2019_appnp_pubmed"], "mine").name
    'gasteiger_2019_appnp_mine'
    """
    name = experiment.name
    for dataset in DATASETS:
        name = name.replace(dataset, TEMPLATE)
    one = load_experiments().get(name)
    points = () if one is None else tuple(point for point in one.points if point.cell.dataset == TEMPLATE)
    if one is None or not points:
        return None
    return replace(
        one,
        name=name.replace(TEMPLATE, graph) if TEMPLATE in name else f"{name}_{graph}",
        title=one.title.replace(" on Citeseer", f" on {graph}"),
        points=tuple(
            Point(
                replace(point.cell, dataset=graph),
                {**point.at, "dataset": graph} if "dataset" in point.at else point.at,
            )
            for point in points
        ),
        published=None,
        groups=tuple(group.replace(TEMPLATE, graph) for group in one.groups if TEMPLATE in group),
    )


def check_graph_name(name: str) -> str:
    """Return the name of a user's graph, which must be a plain word that nothing else in a study has.

    Examples
    --------
    >>> check_graph_name("pubmed")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: A graph of your own cannot be called 'pubmed': pprop has something of that name. Rename the file.
    """
    if not _WORD.fullmatch(name):
        raise InputError(
            f"A graph of your own cannot be called {name!r}: a study takes up to 40 letters, digits, - and _. Rename the file."
        )
    bundled = load_experiments()
    taken = {*DATASETS, *bundled, *(group for one in bundled.values() for group in one.groups)}
    if name in taken or not taken.isdisjoint(experiments_on(name)):
        raise InputError(
            f"A graph of your own cannot be called {name!r}: pprop has something of that name. Rename the file."
        )
    return name


def files_of(study: Path) -> dict[str, bytes]:
    """Return the content of the experiment files kept in a study's folder, by file name.

    Examples
    --------
    >>> files_of(Path("no study"))
    {}
    """
    return {path.name: path.read_bytes() for path in sorted((Path(study) / FOLDER).glob("*.toml"))}


def keep_experiment(file: Path, study: Path) -> None:
    r"""Copy an experiment file into a study's folder, unless one of its name that says the same is there.

    Title, groups and comments may differ. A file of the same name that says something else is never replaced, nor does
    a user's file take the name of one that comes with pprop: rows would change their meaning.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     file = Path(name) / "tiny.toml"
    ...     _ = file.write_text('title = "Tiny"\nshows = "accuracy"\nmodel = "mlp"\ndataset = "citeseer"\n')
    ...     keep_experiment(file, Path(name) / "study")
    ...     "tiny" in experiments_of(Path(name) / "study")
    True
    """
    home = Path(study) / FOLDER / file.name
    for known in _known(home):
        if not _same(known, file):
            whose = "this study" if known == home else "pprop"
            raise InputError(f"{file}: {whose} has another experiment {file.stem!r}. Rename the file.")
    if not home.exists():
        _copy(file, home)


def merge_experiments(files: Mapping[str, bytes], study: Path) -> tuple[str, ...]:
    r"""Write experiment files into a study's folder; return what is wrong with those that cannot be read.

    A file whose name is taken by one that says something else gets another name, ``mine_2.toml``: nothing that came
    with rows is refused or replaced.

    Examples
    --------
    >>> import tempfile
    >>> text = 'title = "T"\nshows = "accuracy"\nmodel = "mlp"\ndataset = "citeseer"\nn_inits = '
    >>> with tempfile.TemporaryDirectory() as name:
    ...     problems = [merge_experiments({"mine.toml": f"{text}{n}".encode()}, Path(name)) for n in (1, 2, 1, 2)]
    ...     problems, list(files_of(Path(name)))
    ([(), (), (), ()], ['mine.toml', 'mine_2.toml'])
    """
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            file = Path(folder) / Path(name).name  # a packed file cannot write elsewhere
            file.write_bytes(content)
            try:
                read_experiment(file)
            except InputError as error:
                problems.append(f"The experiment file {file.name} was left out. {error}")
                continue
            names = chain([file.name], (f"{file.stem}_{number}.toml" for number in count(2)))
            homes = (Path(study) / FOLDER / name for name in names)
            home = next(home for home in homes if all(_same(known, file) for known in _known(home)))
            if not _known(home):
                _copy(file, home)
    return tuple(problems)


def _known(home: Path) -> list[Path]:
    """Return which files have the name: the study's, and the one that comes with pprop."""
    return [path for path in (home, Path(__file__).with_name(FOLDER) / home.name) if path.exists()]


def _same(one: Path, other: Path) -> bool:
    """Return whether two files say the same: the runs, what they are for, and the published number beside them."""
    if one.read_bytes() == other.read_bytes():
        return True
    try:
        first, second = read_experiment(one), read_experiment(other)
    except InputError:
        return False
    names = ("points", "n_splits", "n_inits", "alone", "shows", "published")
    return all(getattr(first, name) == getattr(second, name) for name in names)


def _copy(file: Path, home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, home)
