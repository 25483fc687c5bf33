"""What computed a run: it is stored and shown, and says which rows may be compared exactly. It identifies nothing."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import final

from pprop._version import __version__
from pprop.study.revisions import recorded_cpu

PACKAGE = Path(__file__).parents[1]
_PUBLISHED_BY = "vm"  # the machine of the older published rows, for which the ledger has the kind of CPU
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
        names = dict.fromkeys((*mine, *theirs))
        return tuple(
            f"{name} {mine.get(name) or 'unknown'}, not {theirs.get(name) or 'unknown'}"
            for name in names
            if mine.get(name) != theirs.get(name)
        )


@cache
def recorded_provenance(version: str, stored_as: str = "", host: str = "") -> Provenance:
    """Return what the columns of a row tell.

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
    return Provenance(version, source=stored_as, cpu=recorded_cpu(stored_as) if host == _PUBLISHED_BY else "")


@cache
def provenance_here() -> Provenance:
    """Return what computes in this process.

    >>> len(provenance_here().source), "numpy" in provenance_here().libraries
    (12, True)
    """
    from pprop.kernels.registry import cpu_kind

    return Provenance(__version__, _source(), _commit(), cpu_kind(), _libraries())


def _source() -> str:
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{file.relative_to(PACKAGE).as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _commit() -> str:
    git = ["git", "-C", str(PACKAGE)]
    try:
        # git does not know the file where the package is installed inside another project's checkout
        inside, commit, changed = (
            subprocess.run([*git, *words.split()], capture_output=True, text=True, timeout=10).stdout.strip()
            for words in ("ls-files _version.py", "rev-parse --short=12 HEAD", "status --porcelain .")
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f"{commit}{'+' * bool(changed)}" if inside else ""


def _libraries() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
