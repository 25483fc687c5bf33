"""Experiment files of one's own travel with the study: its status and report then show their rows too."""

from __future__ import annotations

import shutil
from pathlib import Path

from pprop._errors import InputError
from pprop.study.experiment import Experiment, load_experiments

__all__ = ["FOLDER", "experiments_of", "keep_experiment"]

FOLDER = "experiments"
"""Of a study's folder."""


def experiments_of(study: Path) -> dict[str, Experiment]:
    """Return the experiments that come with pprop and those kept in a study's folder, by name.

    Examples
    --------
    >>> experiments_of(Path("no study")) == load_experiments()
    True
    """
    return load_experiments() | load_experiments(Path(study) / FOLDER)


def keep_experiment(file: Path, study: Path) -> None:
    r"""Copy an experiment file into a study's folder.

    A file of the same name and another content is never replaced, nor does one's own file take the name of one that comes
    with pprop: rows would change their meaning.

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
    for known in (home, Path(__file__).with_name(FOLDER) / file.name):
        if known.exists() and known.read_bytes() != file.read_bytes():
            whose = "this study" if known == home else "pprop"
            raise InputError(f"{file}: {whose} has another experiment {file.stem!r}. Rename the file.")
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, home)
