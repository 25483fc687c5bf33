"""Help: light, with an example for every verb."""

from __future__ import annotations

import subprocess
import sys

import pytest

VERBS = [
    (),
    ("demo",),
    ("train",),
    ("tune",),
    ("predict",),
    ("explain",),
    ("live",),
    ("ppr",),
    ("propagate",),
    ("doctor",),
    ("data",),
    ("data", "list"),
    ("data", "info"),
    ("data", "get"),
    ("data", "check"),
    ("study",),
    ("study", "list"),
    ("study", "run"),
    ("study", "status"),
    ("study", "report"),
    ("study", "merge"),
    ("study", "verify"),
]
HEAVY = {"numpy", "scipy", "torch", "numba", "sklearn", "matplotlib", "pyarrow", "rich"}

SCRIPT = """
import sys
sys.argv = ["pprop", *sys.argv[1:]]
from pprop.cli import main
try:
    main()
except SystemExit as end:
    print(end.code, *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_loads_nothing_heavy_and_shows_an_example(verb: tuple[str, ...]):
    done = subprocess.run([sys.executable, "-c", SCRIPT, *verb, "--help"], capture_output=True, text=True, check=True)
    code, *modules = done.stderr.split()
    assert code == "0"
    assert HEAVY & set(modules) == set()
    assert "Example" in done.stdout
    assert f"\n    {' '.join(('pprop', *verb))} " in done.stdout or verb in {
        (),
        ("demo",),
        ("doctor",),
        ("data", "list"),
        ("study", "list"),
    }


def test_the_command_alone_shows_its_help_and_exit_codes(pprop_here):
    answer = pprop_here()
    assert answer.code == 0
    assert "Exit codes:" in answer.out
    for code in ("0", "1", "2", "3", "4", "5", "130", "141"):
        assert f"\n    {code:<4}" in answer.out


def test_the_version_is_printed(pprop_here):
    from pprop import __version__

    assert pprop_here("--version").out == f"pprop {__version__}\n"
