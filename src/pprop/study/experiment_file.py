"""Reading an experiment file. What is wrong in it is refused with its line before anything runs."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, cast, final

from pprop._errors import FormatError, InputError
from pprop._validate import check_bool, check_choice, check_float, check_int, check_sequence, describe, reject
from pprop.graph.files import read_file
from pprop.study.cell import MOST_SPLITS, Cell
from pprop.study.experiment import SHOWS, Experiment, Point, Published
from pprop.study.toml_lines import KeyPath, line_of
from pprop.study.zoo import MODELS, ModelKind, check_dataset, impossible, make_cell, model_kind, nearest

__all__ = ["parse_experiment"]

OWN = ("title", "shows", "groups", "splits", "n_splits", "n_inits", "alone", "published")
OF_CELL = ("model", "dataset", "per_class")
TABLES = ("settings", "grid", "points")
LARGEST = 2**20
"""Bytes of a file; an experiment takes a few hundred."""
MOST_INITS = 1000
"""The paper has 5; every run of an experiment is listed before it begins."""
MOST = 1_000_000
"""No number of epochs, steps, units or nodes is above it: a slip of the keyboard, not an experiment."""
INTERVALS = {
    "accuracy": "[0, 100]",
    "accuracy_interval": "[0, 100]",
    "f1": "[0, 1]",
    "f1_interval": "[0, 1]",
    "ms_per_epoch": "(0, inf)",
    "p_accuracy": "[0, 1]",
    "p_f1": "[0, 1]",
}
assert tuple(INTERVALS) == tuple(field.name for field in fields(Published))


def parse_experiment(path: Path) -> Experiment:
    r"""Return the experiment in the file `path`; see `pprop.study.experiment.read_experiment`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.toml"
    >>> _ = path.write_text('title = "Mine"\nshows = "alpha"\nmodel = "appnp"\ndataset = "citeseer"\n[grid]\nalpha = [0.1, 0.2]')
    >>> [point.at for point in parse_experiment(path).points]
    [{'alpha': 0.1}, {'alpha': 0.2}]
    """
    return _File(path).experiment()


@final
class _File:
    """A file's content; every complaint about it goes through `fail`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = _read(path)
        try:
            self._table = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            self._syntax(str(error))
        except (RecursionError, ValueError) as error:  # lists in lists, an integer of thousands of digits
            raise FormatError(f"{path.name}: no experiment. A value is nested too deeply or too long.") from error

    def experiment(self) -> Experiment:
        table = self._table
        self._known((), table, (*OWN, *OF_CELL, *TABLES))
        return Experiment(
            name=self._path.stem,
            title=self._entry("title", _text),
            shows=self._entry("shows", _choice(SHOWS)),
            points=self._points(),
            n_splits=self._entry("n_splits", _whole(high=MOST_SPLITS), 20),
            n_inits=self._entry("n_inits", _whole(high=MOST_INITS), 5),
            alone=self._entry("alone", check_bool, False),
            published=self._published(),
            groups=tuple(self._entry("groups", _texts, [])),
        )

    def _published(self) -> Published | None:
        if "published" not in self._table:
            return None
        given = self._subtable(("published",), self._table["published"])
        self._known(("published",), given, INTERVALS)
        numbers = {
            name: self._checked(("published", name), check_float, value, name, "published", INTERVALS[name])
            for name, value in given.items()
        }
        return Published(**numbers)

    def _points(self) -> tuple[Point, ...]:
        table = self._table
        base = {name: table[name] for name in OF_CELL if name in table}
        settings = self._subtable(("settings",), table.get("settings", {}))
        where: dict[str, KeyPath] = {name: (name,) for name in base}
        where |= {f"settings.{name}": ("settings", name) for name in settings}
        if "grid" in table and "points" in table:
            self.fail(("points",), "an experiment has a grid or points, not both.")
        if "grid" in table:
            points = list(self._grid(base, settings, where))
        elif "points" in table:
            points = list(self._listed(base, settings, where))
        else:
            points = [Point(self._cell((), base, settings, where), {})]
        for position, point in enumerate(points):
            if any(point.at == other.at for other in points[:position]):
                self.fail(("grid",) if "grid" in table else ("points", position), f"{dict(point.at)} is there twice.")
        return tuple(points)

    def _grid(
        self, base: Mapping[str, Any], settings: Mapping[str, Any], where: Mapping[str, KeyPath]
    ) -> Iterable[Point]:
        axes = self._subtable(("grid",), self._table["grid"])
        if not axes:
            self.fail(("grid",), "the grid is empty.")
        self._known(
            ("grid",), axes, dict.fromkeys((*OF_CELL, *(name for kind in MODELS.values() for name in kind.names)))
        )
        for name, values in axes.items():
            if not isinstance(values, list):
                self.fail(("grid", name), f"the grid of {name!r} must be a list. Got {describe(values)} instead.")
            if not values:
                self.fail(("grid", name), f"the grid of {name!r} is empty.")
            if name in base or name in settings:
                self.fail(("grid", name), f"{name!r} is set already, outside the grid.")
        for positions in itertools.product(*(range(len(values)) for values in axes.values())):
            own, chosen, places = dict(base), dict(settings), dict(where)
            for (name, values), position in zip(axes.items(), positions, strict=True):
                of_cell = name in OF_CELL
                (own if of_cell else chosen)[name] = values[position]
                places[name if of_cell else f"settings.{name}"] = ("grid", name, position)
            cell = self._cell(("grid",), own, chosen, places)
            yield Point(cell, {name: _at(cell, name, own | chosen) for name in axes})

    def _listed(
        self, base: Mapping[str, Any], settings: Mapping[str, Any], where: Mapping[str, KeyPath]
    ) -> Iterable[Point]:
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
            own = {name: given[name] for name in OF_CELL if name in given}
            chosen = self._subtable((*path, "settings"), given.get("settings", {}))
            places = dict(where)
            places |= {name: (*path, name) for name in own}
            places |= {f"settings.{name}": (*path, "settings", name) for name in chosen}
            yield Point(self._cell(path, {**base, **own}, {**settings, **chosen}, places), at)

    def _cell(
        self,
        path: KeyPath,
        own: Mapping[str, Any],
        settings: Mapping[str, Any],
        where: Mapping[str, KeyPath],
    ) -> Cell:
        """Return a cell after each part of it has been checked where it is written."""
        for name in ("model", "dataset"):
            if name not in own:
                self.fail(path, f"the key {name!r} is missing.")
        kind = self._checked(where["model"], model_kind, own["model"])
        dataset = self._checked(where["dataset"], check_dataset, own["dataset"])
        per_class = own.get("per_class", 20)
        self._checked(where.get("per_class", path), _whole(high=MOST), per_class, "per_class", "an experiment")
        checked = {
            name: self._checked(where[f"settings.{name}"], _setting, kind, name, value)
            for name, value in settings.items()
        }
        if fault := impossible(kind, checked):
            self.fail(where[f"settings.{fault[0]}"], fault[1])
        splits = self._entry("splits", _choice(("test", "validation")), "test")
        return make_cell(kind.name, checked, dataset, splits, per_class)

    def _entry(self, name: str, check: Callable[..., Any], *default: Any) -> Any:
        if name not in self._table:
            if default:
                return default[0]
            self.fail((), f"the key {name!r} is missing.")
        return self._checked((name,), check, self._table[name], name, "an experiment")

    def _checked(self, path: KeyPath, check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
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
                self.fail((*path, name), f"unknown key {name!r}{of}.{nearest(name, known)}")

    def _syntax(self, message: str) -> NoReturn:
        found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
        line = found[1] if found and found[1] else self._text.count("\n") + 1
        raise FormatError(
            f"{self._path.name}, line {line}: no TOML. {message[: found.start()] if found else message}."
        ) from None

    def fail(self, path: KeyPath, message: str) -> NoReturn:
        raise FormatError(f"{self._path.name}, line {line_of(self._text, path)}: {message}") from None


def _read(path: Path) -> str:
    try:
        return read_file(path, LARGEST).decode().replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise InputError(f"The experiment file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path.name}: no TOML. Byte {error.start} is not UTF-8.") from error


def _setting(kind: ModelKind, name: str, value: object) -> Any:
    """Return a setting as the model takes it, whole numbers within reason."""
    checked = kind.check(name, value)
    for number in cast("list[object]", checked if isinstance(checked, list) else [checked]):
        if isinstance(number, int) and number > MOST:
            reject(name, kind.name, f"an integer of at most {MOST}", number)
    return cast("object", checked)


def _at(cell: Cell, name: str, written: Mapping[str, Any]) -> Any:
    """Return a coordinate as the cell has it, or as it was written where the cell goes without it."""
    if name in OF_CELL:
        return written[name]
    return cell.settings.get(name, written[name])


def _text(value: object, name: str, function: str) -> str:
    if not isinstance(value, str) or not value.strip():
        reject(name, function, "a text", describe(value))
    return value


def _texts(value: object, name: str, function: str) -> list[str]:
    return [_text(item, name, function) for item in check_sequence(value, name, function, "a list of texts")]


def _choice(choices: Sequence[str]) -> Callable[[object, str, str], str]:
    return lambda value, name, function: check_choice(value, name, function, choices)


def _whole(high: int) -> Callable[[object, str, str], int]:
    return lambda value, name, function: check_int(value, name, function, low=1, high=high)
