"""What computed a run: the declared revision that identifies it, a user's own modules, and what is stored for show.

A run is identified by its data, settings, seeds and the revision of its model on its backend. ``revisions.toml`` declares the
present ones. Runs from before there were revisions are stored under a hash of sources instead; ``ledger.csv``, to which
lines are only ever appended, says which revision each hash is, and on what evidence. The sources, libraries and kind of CPU
that computed a run are its provenance: it says which rows may be compared exactly, and identifies nothing.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import importlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any, cast, final

from pprop._errors import InputError, PpropError
from pprop._version import __version__
from pprop.datasets import DATASETS
from pprop.datasets.files import VARIABLE, bundled_folder, cache_folder, git_blob_id
from pprop.study.cell import Cell
from pprop.study.graphs import load_graph, own_names

_FOLDER = Path(__file__).resolve().parent
_PACKAGE = _FOLDER.parent


@cache
def declared_revisions() -> Mapping[str, Mapping[str, int]]:
    """Return the present revision of each model on each backend.

    >>> sorted(declared_revisions()["bootstrapped_fp"])
    ['numpy', 'torch']
    """
    return tomllib.loads(_FOLDER.joinpath("revisions.toml").read_text(encoding="utf-8"))


def revision_of(model: str, backend: str) -> str:
    """Return the name of the present revision of a model on a backend.

    >>> revision_of("appnp", "triton")
    'triton-2'
    """
    try:
        return f"{backend}-{declared_revisions()[model][backend]}"
    except KeyError:
        raise InputError(
            f"The model {model!r} has no declared revision on the backend {backend!r}. Declare one in revisions.toml."
        ) from None


def user_revision(backend: str, source: str) -> str:
    """Return the name of the revision of a user's model: any model of the library may be part of it, so all count.

    Parameters
    ----------
    backend
        The one that computes.
    source
        Hash of the user's modules.

    Examples
    --------
    >>> user_revision("reference", "0123456789ab")
    'reference-12+0123456789ab'
    """
    places = (backend, "numpy", "torch")  # the last two: models that need none of the kernels
    total = sum(number for each in declared_revisions().values() for place, number in each.items() if place in places)
    return f"{backend}-{total}+{source}"


def recorded_revision(name: str) -> str:
    """Return the revision that a row is stored under: by its own name, or by the hash of sources of an older row.

    A hash that the ledger does not know is a separate revision.

    >>> recorded_revision("numba-1"), recorded_revision("b05626726efa"), recorded_revision("0123456789ab")
    ('numba-1', 'triton-1', '0123456789ab')
    """
    return _ledger()[name]["revision"] if name in _ledger() else name


@cache
def stored_names(revision: str) -> tuple[str, ...]:
    """Return all names that rows of a revision may be stored under; hashes of several models may be among them.

    >>> stored_names("numpy-3")
    ('numpy-3', 'f5c1fd055d36')
    """
    return (revision, *(code for code, entry in _ledger().items() if entry["revision"] == revision))


@cache
def _ledger() -> Mapping[str, Mapping[str, str]]:
    lines = _FOLDER.joinpath("ledger.csv").read_text(encoding="utf-8").splitlines()
    return {entry["code"]: entry for entry in csv.DictReader(lines)}


def current_revision(cell: Cell, backend: str) -> str:
    """Return the revision that a cell, also of a user's model, would be computed with now.

    It is empty where the model is no longer computed by that backend: no row of it is of the present revision.

    >>> current_revision(Cell("mlp", {}, "citeseer"), "numba")
    'numba-1'
    """
    if ":" not in cell.model:
        return revision_of(cell.model, backend) if backend in declared_revisions()[cell.model] else ""
    return user_revision(backend, user_source(find_function(cell.model)[0]))


def current_data(dataset: str, study: Path | None = None) -> str | None:
    """Return the fingerprint of a dataset as it is on this machine; None where it is not. Nothing is downloaded.

    A user's graph is on this machine where the study's folder has a copy of it.

    >>> current_data("citeseer") == load_graph("citeseer").fingerprint, current_data("of my own")
    (True, None)
    """
    if dataset not in DATASETS:
        here = study is not None and dataset in own_names(study)
    else:
        info = DATASETS[dataset]
        folders = os.environ.get(VARIABLE) or bundled_folder(), bundled_folder()
        cached = cache_folder() / info.file_name
        here = any(Path(folder, info.file_name).is_file() for folder in folders)
        here = here or (cached.is_file() and git_blob_id(cached) == info.git_blob)
    try:
        return load_graph(dataset, study).fingerprint if here else None
    except PpropError:  # a damaged file, or a user's folder that is not there
        return None


# Where modules are that are not the user's: rows record the versions of libraries.
_INSTALLED = [Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]


def find_function(name: str) -> tuple[ModuleType, Callable[..., Any]]:
    """Return the module of ``"module:function"``, looked for in the current folder too, and its function.

    >>> find_function("copy:copy")[0].__name__
    'copy'
    """
    module_name, _, function_name = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    with explained(f"The module of the model {name!r} cannot be imported"):
        module = importlib.import_module(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"The module {module_name!r} has no function {function_name!r}.")
    if getattr(module, "__file__", None) is None:
        raise InputError(
            f"The module {module_name!r} has no source file, so a change of the model would not be noticed."
        )
    return module, cast("Callable[..., Any]", function)


def user_source(module: ModuleType) -> str:
    """Return the hash of a module and of all it imports, directly or not, that is no installed package, 12 digits.

    The module itself counts even if it is installed, unless it is one of pprop. Data files are not part of the hash.

    >>> import copy
    >>> len(user_source(copy))
    12
    """
    files: dict[str, bytes] = {}
    waiting = [module.__name__]
    while waiting:
        name = waiting.pop()
        file = _file(name)
        if file is None or name in files or file.is_relative_to(_PACKAGE):
            continue
        if name != module.__name__ and any(file.is_relative_to(folder) for folder in _INSTALLED):
            continue
        files[name] = file.read_bytes()
        if file.suffix == ".py":
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            for one in _imported(ast.parse(files[name], filename=str(file)), package):
                waiting += accumulate(one.split("."), "{}.{}".format)  # the packages that it is in run, too
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"\n{name} {hashlib.sha256(files[name]).hexdigest()}".encode())
    return digest.hexdigest()[:12]


@contextmanager
def explained(what: str, but: Sequence[BaseException] = ()) -> Generator[None]:
    """Turn every exception of a user's code, a call of exit too, into an InputError; those of pprop stay.

    >>> with explained("The model failed"):
    ...     1 / 0
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The model failed: ZeroDivisionError: division by zero
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, PpropError) or any(error is other for other in but):
            raise
        why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise InputError(f"{what}: {why}") from error


def _file(name: str) -> Path | None:
    """Return the file of a module, without importing it; None if it has none or is not there."""
    module = sys.modules.get(name)
    try:
        spec = None if module is not None else importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    origin = getattr(module, "__file__", None) or (spec.origin if spec is not None and spec.has_location else None)
    return Path(origin).resolve() if origin is not None and Path(origin).is_file() else None


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Return the names of modules that a module of a package may import, wherever in it; some may be no modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # it leads out of the package, and fails where it runs
                home = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                yield from (home, *(f"{home}.{alias.name}" for alias in node.names))


# Host name in the published rows of 0.1.0, whose kind of CPU is in the ledger. Rows of 0.1.0 from another CPU whose host
# has the same name are compared bit for bit: a verification then reports differences; it never hides one.
_PUBLISHED_BY = "vm"
_LIBRARIES = ("llvmlite", "numba", "numpy", "scipy", "torch", "triton")


@final
@dataclass(frozen=True)
class Provenance:
    """What computed a run.

    Attributes
    ----------
    pprop
        Version of the package.
    source
        Hash of the package's sources, 12 hexadecimal digits.
    commit
        Of the git checkout that the package is in, with a plus sign if files were changed since; empty if it is in none.
    cpu
        Kind of CPU, as the compiler of the kernels names it: bits belong to it.
    libraries
        Versions by name, Python's too.

    Examples
    --------
    >>> made = Provenance("0.2.0", "0123456789ab", "", "x86_64 znver4", {"python": "3.12.1"})
    >>> recorded_provenance(made.text) == made, made.apart(made)
    (True, ())
    """

    pprop: str
    source: str = ""
    commit: str = ""
    cpu: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    @property
    def text(self) -> str:
        """As one line of JSON: what the store keeps."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    def apart(self, other: Provenance) -> tuple[str, ...]:
        """Return in words what may give other bits: the kind of CPU and the versions of libraries.

        >>> one, two = Provenance("1", cpu="x86_64 znver4"), Provenance("1", cpu="x86_64 znver4", libraries={"numpy": "2.4"})
        >>> one.apart(two), two.apart(one)
        (('numpy unknown, not 2.4',), ('numpy 2.4, not unknown',))
        """
        mine, theirs = ({"CPU": each.cpu, **each.libraries} for each in (self, other))
        pairs = ((name, mine.get(name), theirs.get(name)) for name in dict.fromkeys((*mine, *theirs)))
        return tuple(f"{name} {one or 'unknown'}, not {two or 'unknown'}" for name, one, two in pairs if one != two)


@cache
def recorded_provenance(version: str, stored_as: str = "", host: str = "") -> Provenance:
    """Return the provenance that the columns of a row hold.

    Parameters
    ----------
    version
        The text of a provenance; of an older row, the version of the package alone.
    stored_as, host
        The hash of sources that an older row is stored under, and its machine: the ledger knows the kind of CPU of the
        published rows.

    Examples
    --------
    >>> recorded_provenance("0.1.0", "b3cd4d9ba2f3", "vm").cpu, recorded_provenance("0.1.0", "b3cd4d9ba2f3", "mine").cpu
    ('aarch64 neoverse-n1', '')
    """
    if version.startswith("{"):
        return Provenance(**json.loads(version))
    known = _ledger().get(stored_as) if host == _PUBLISHED_BY else None
    return Provenance(version, source=stored_as, cpu=known["cpu"] if known else "")


@cache
def provenance_here() -> Provenance:
    """Return what computes in this process.

    >>> len(provenance_here().source), "numpy" in provenance_here().libraries
    (12, True)
    """
    from pprop.kernels.registry import cpu_kind

    digest, libraries = hashlib.sha256(), {"python": platform.python_version()}
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{file.relative_to(_PACKAGE).as_posix()}\n".encode() + file.read_bytes())
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            libraries[name] = metadata.version(name)
    return Provenance(__version__, digest.hexdigest()[:12], _commit(), cpu_kind(), libraries)


def _commit() -> str:
    git = ["git", "-C", str(_PACKAGE)]
    try:
        # git does not know the file where the package is installed inside another project's checkout
        inside, commit, changed = (
            subprocess.run([*git, *words.split()], capture_output=True, text=True, timeout=10).stdout.strip()
            for words in ("ls-files _version.py", "rev-parse --short=12 HEAD", "status --porcelain .")
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f"{commit}{'+' * bool(changed)}" if inside else ""
