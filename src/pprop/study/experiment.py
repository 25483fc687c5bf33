"""An experiment: the cells behind one published number or figure, and that number, read from a TOML file.

What is wrong in a file is refused with its line before anything runs.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from sys import maxsize
from typing import Any, NoReturn, cast, final

from pprop._errors import FormatError, InputError
from pprop._validate import check_bool, check_choice, check_float, check_int, check_sequence, describe, reject
from pprop.graph.files import read_file
from pprop.study import cell as cells
from pprop.study.cell import MODELS, MOST_SPLITS, Cell, ModelKind, Seeds

# What an experiment may be for.
SHOWS = (
    *("accuracy", "time"),  # the tables
    *("labels", "steps", "alpha", "depth", "propagation"),  # the figures
    *("rerun", "search", "quick"),  # the authors' second run, hyperparameters, and cells that other experiments show
    "runs",  # cells of the accuracy table with more splits than it has: no other table or figure shows those
)


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


# In which interval each of its numbers is.
_NOT_A_SHARE = {"accuracy": "[0, 100]", "accuracy_interval": "[0, 100]", "ms_per_epoch": "(0, inf)"}
_PUBLISHED = {field.name: "[0, 1]" for field in fields(Published)} | _NOT_A_SHARE


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
        Whether runs are trained one at a time, so that their time per epoch is known.
    published
        What the paper printed.
    groups
        Names that stand for several experiments.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
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
        last = None if runs is None else min(check_int(runs, "runs", "seeds", low=1), maxsize)
        splits = cells.split_seeds(self.points[0].cell.splits, self.n_splits)
        inits = 1 if cell is not None and cell.model in MODELS and not MODELS[cell.model].seeded else self.n_inits
        return tuple(itertools.islice((Seeds(split, init) for init in range(inits) for split in splits), last))


OF_CELL = ("model", "dataset", "per_class")
_KEYS = ("title", "shows", "groups", "splits", "n_splits", "n_inits", "alone", "published", *OF_CELL)
_TABLES = ("settings", "grid", "points")
_LARGEST = 2**20  # bytes of a file; an experiment takes a few hundred
_MOST_INITS = 1000  # the paper has 5; every run of an experiment is listed before it begins
_MOST = 1_000_000  # no number of epochs, steps, units or nodes is above it: a slip of the keyboard, not an experiment

# Keys and positions in arrays, from the outside in.
KeyPath = tuple[str | int, ...]
# Values by name, each with the place in the file where it is written.
Given = dict[str, tuple[Any, KeyPath]]


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
    return _File(path).experiment()


@final
class _File:
    """A file's content; every complaint about it goes through `fail`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._text = read_file(path, _LARGEST).decode().replace("\r\n", "\n").replace("\r", "\n")
        except OSError as error:
            raise InputError(f"The experiment file {path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise FormatError(f"{path.name}: no TOML. Byte {error.start} is not UTF-8.") from error
        try:
            self._table = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            message = str(error)
            found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
            line = found[1] if found and found[1] else self._text.count("\n") + 1
            what = message[: found.start()] if found else message
            raise FormatError(f"{path.name}, line {line}: no TOML. {what}.") from None
        except (RecursionError, ValueError) as error:  # lists in lists, an integer of thousands of digits
            raise FormatError(f"{path.name}: no experiment. A value is nested too deeply or too long.") from error

    def experiment(self) -> Experiment:
        self._known((), self._table, (*_KEYS, *_TABLES))
        return Experiment(
            name=self._path.stem,
            title=self._entry("title", _text),
            shows=self._entry("shows", check_choice, choices=SHOWS),
            points=self._points(),
            n_splits=self._entry("n_splits", check_int, 20, low=1, high=MOST_SPLITS),
            n_inits=self._entry("n_inits", check_int, 5, low=1, high=_MOST_INITS),
            alone=self._entry("alone", check_bool, False),
            published=self._published(),
            groups=tuple(self._entry("groups", _texts, [])),
        )

    def _published(self) -> Published | None:
        if "published" not in self._table:
            return None
        given = self._subtable(("published",), self._table["published"])
        self._known(("published",), given, _PUBLISHED)
        for name, value in given.items():
            given[name] = self._checked(("published", name), check_float, value, name, "published", _PUBLISHED[name])
        return Published(**given)

    def _points(self) -> tuple[Point, ...]:
        table = self._table
        base: Given = {name: (table[name], (name,)) for name in OF_CELL if name in table}
        settings = self._settings(("settings",), table)
        grid = list(self._grid(base, settings)) if "grid" in table else []
        points = grid + (list(self._listed(base, settings)) if "points" in table else [])
        for position, point in enumerate(points):
            if any(point.at == other.at for other in points[:position]):
                path = ("grid",) if position < len(grid) else ("points", position - len(grid))
                self.fail(path, f"{dict(point.at)} is there twice.")
        return tuple(points or [Point(self._cell((), base, settings), {})])

    def _settings(self, path: KeyPath, table: Mapping[str, Any]) -> Given:
        given = self._subtable(path, table.get("settings", {}))
        return {name: (value, (*path, name)) for name, value in given.items()}

    def _grid(self, base: Given, settings: Given) -> Iterable[Point]:
        axes = self._subtable(("grid",), self._table["grid"])
        if not axes:
            self.fail(("grid",), "the grid is empty.")
        names = dict.fromkeys((*OF_CELL, *(name for kind in MODELS.values() for name in kind.names)))
        self._known(("grid",), axes, names)
        for name, values in axes.items():
            if not isinstance(values, list):
                self.fail(("grid", name), f"the grid of {name!r} must be a list. Got {describe(values)} instead.")
            if not values:
                self.fail(("grid", name), f"the grid of {name!r} is empty.")
            if name in base or name in settings:
                self.fail(("grid", name), f"{name!r} is set already, outside the grid.")
        for positions in itertools.product(*(range(len(values)) for values in axes.values())):
            chosen_at = zip(axes, positions, strict=True)
            given: Given = {name: (axes[name][place], ("grid", name, place)) for name, place in chosen_at}
            own = base | {name: value for name, value in given.items() if name in OF_CELL}
            chosen = settings | {name: value for name, value in given.items() if name not in OF_CELL}
            cell = self._cell(("grid",), own, chosen)
            # as the cell has it, or as it was written where the cell is without it
            yield Point(cell, {name: cell.settings.get(name, value) for name, (value, _) in given.items()})

    def _listed(self, base: Given, settings: Given) -> Iterable[Point]:
        entries = self._table["points"]
        if not isinstance(entries, list) or not entries:
            self.fail(("points",), "points must be written as tables under [[points]].")
        for position, entry in enumerate(cast("list[object]", entries)):
            path: KeyPath = ("points", position)
            given = self._subtable(path, entry)
            self._known(path, given, ("at", "settings", *OF_CELL))
            if "at" not in given:
                self.fail(path, "a point needs 'at', its place in the figure, such as at = { layers = 2 }.")
            at = self._subtable((*path, "at"), given["at"])
            if not at or any(isinstance(value, dict | list) for value in at.values()):
                self.fail((*path, "at"), "'at' must name numbers or words, such as at = { layers = 2 }.")
            own: Given = {name: (given[name], (*path, name)) for name in OF_CELL if name in given}
            yield Point(self._cell(path, base | own, settings | self._settings((*path, "settings"), given)), at)

    def _cell(self, path: KeyPath, own: Given, settings: Given) -> Cell:
        """Return a cell after each part of it has been checked where it is written."""
        for name in ("model", "dataset"):
            if name not in own:
                self.fail(path, f"the key {name!r} is missing.")
        model, where = own["model"]
        kind = self._checked(where, cells.model_kind, model)
        dataset, where = own["dataset"]
        self._checked(where, cells.check_dataset, dataset)
        per_class, where = own.get("per_class", (20, path))
        self._checked(where, check_int, per_class, "per_class", "an experiment", low=1, high=_MOST)
        checked = {name: self._checked(at, _setting, kind, name, value) for name, (value, at) in settings.items()}
        if fault := cells.impossible(kind, checked):
            self.fail(settings[fault[0]][1], fault[1])
        splits = self._entry("splits", check_choice, "test", choices=("test", "validation"))
        return cells.make_cell(kind.name, checked, dataset, splits, per_class)

    def _entry(self, name: str, check: Callable[..., Any], *default: Any, **limits: Any) -> Any:
        if name not in self._table:
            if default:
                return default[0]
            self.fail((), f"the key {name!r} is missing.")
        return self._checked((name,), check, self._table[name], name, "an experiment", **limits)

    def _checked(self, path: KeyPath, check: Callable[..., Any], *arguments: Any, **limits: Any) -> Any:
        try:
            return check(*arguments, **limits)
        except InputError as error:
            self.fail(path, str(error))

    def _subtable(self, path: KeyPath, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(path, f"{path[-1]!r} must be a table. Got {describe(value)} instead.")
        return cast("dict[str, Any]", value)

    def _known(self, path: KeyPath, table: Iterable[str], known: Iterable[str]) -> None:
        known = list(known)
        for name in table:
            if name not in known:
                of = f" of {path[0]}" if path else ""
                self.fail((*path, name), f"unknown key {name!r}{of}.{cells.nearest(name, known)}")

    def fail(self, path: KeyPath, message: str) -> NoReturn:
        raise FormatError(f"{self._path.name}, line {line_of(self._text, path)}: {message}") from None


def _setting(kind: ModelKind, name: str, value: object) -> Any:
    """Return a setting as the model takes it, whole numbers within reason."""
    checked = kind.check(name, value)
    for number in cast("list[object]", checked if isinstance(checked, list) else [checked]):
        if isinstance(number, int) and number > _MOST:
            reject(name, kind.name, f"an integer of at most {_MOST}", number)
    return cast("object", checked)


def _text(value: object, name: str, function: str) -> str:
    if not isinstance(value, str) or not value.strip():
        reject(name, function, "a text", describe(value))
    return value


def _texts(value: object, name: str, function: str) -> list[str]:
    return [_text(item, name, function) for item in check_sequence(value, name, function, "a list of texts")]


# Texts in quotes, comments, brackets and ends of lines.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'" r"|\#[^\n]*|[\[\]{}\n]",
    re.DOTALL,
)


def line_of(text: str, path: KeyPath) -> int:
    r"""Return the line, from 1, of a key or of an element of an array; of what holds it, where it is not written.

    tomllib does not report it. It is the first line after which `text`, which is valid TOML, has the path when it is cut there
    and the brackets that are open are closed.

    Examples
    --------
    >>> text = 'model = "appnp"\n\n[grid]\nalpha = [0.1,\n         0.2]\nsteps = [10]\n'
    >>> line_of(text, ("grid", "steps")), line_of(text, ("grid", "alpha", 1)), line_of(text, ("grid", "other"))
    (6, 5, 3)
    """
    text, first, line, brackets = f"{text}\n", 1, 1, ""
    cuts: list[tuple[int, int, str]] = []  # of each line, a text of several lines being one: number, end, open brackets
    for token in _TOKEN.finditer(text):
        line += token[0].count("\n")
        if token[0] in "[{":
            brackets = ("]" if token[0] == "[" else "}") + brackets
        elif token[0] in "]}":
            brackets = brackets[1:]
        elif token[0] == "\n":
            cuts.append((first, token.end(), brackets))
            first = line

    def has_path(cut: tuple[int, int, str]) -> bool:
        found: Any = tomllib.loads(text[: cut[1]] + cut[2])
        try:
            for key in path:
                found = found[key]
        except (KeyError, IndexError):
            return False
        return True

    while (at := bisect_left(cuts, True, key=has_path)) == len(cuts):
        path = path[:-1]
    return cuts[at][0]
