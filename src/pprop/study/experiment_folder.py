"""A user's experiment files are kept with the study, so that its status and report show their rows too."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from itertools import chain, count
from pathlib import Path

from pprop._errors import InputError
from pprop.study.experiment import Experiment, read_experiment


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


@cache
def _bundled() -> Mapping[str, Experiment]:
    return load_experiments(Path(__file__).with_name(FOLDER))


def experiments_of(study: Path) -> dict[str, Experiment]:
    """Return the experiments that come with pprop and those kept in a study's folder, by name.

    Examples
    --------
    >>> experiments_of(Path("no study")) == load_experiments()
    True
    """
    return load_experiments() | load_experiments(Path(study) / FOLDER)


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
