"""Help: light, with an example for every verb."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.main import get_command

from pprop import settings
from pprop.cli.app import app

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

# All of them in one process: what none has loaded at the end, no one has loaded.
SCRIPT = """
import contextlib, io, json, sys
from pprop.cli import main
shown = {}
for verb in json.load(sys.stdin):
    sys.argv = ["pprop", *verb, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as end:
            shown[" ".join(verb)] = end.code, out.getvalue()
print(json.dumps([shown, list(sys.modules)]))
"""


@pytest.fixture(scope="module")
def helped() -> tuple[dict[str, tuple[int, str]], list[str]]:
    """The exit code and the help of every verb, and the modules that were loaded."""
    command = [sys.executable, "-c", SCRIPT]
    return json.loads(
        subprocess.run(command, input=json.dumps(VERBS), capture_output=True, text=True, check=True).stdout
    )


def test_help_loads_nothing_heavy(helped: tuple[dict[str, tuple[int, str]], list[str]]):
    assert "pprop.cli.app" in helped[1]
    assert HEAVY & set(helped[1]) == set()


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_shows_an_example(helped: tuple[dict[str, tuple[int, str]], list[str]], verb: tuple[str, ...]):
    code, text = helped[0][" ".join(verb)]
    assert code == 0
    assert "Example" in text
    assert f"\n    {' '.join(('pprop', *verb))} " in text or verb in {
        (),
        ("demo",),
        ("doctor",),
        ("data", "list"),
        ("study", "list"),
    }


@pytest.mark.parametrize("verb", [(), ("train",), ("data",), ("data", "check"), ("study", "run")], ids=" ".join)
def test_a_short_option_shows_the_help(pprop_here, verb: tuple[str, ...]):
    assert (pprop_here(*verb, "-h").code, pprop_here(*verb, "-h")) == (0, pprop_here(*verb, "--help"))


def test_the_command_alone_shows_its_help_and_exit_codes(pprop_here):
    answer = pprop_here()
    assert answer.code == 0
    assert "Exit codes:" in answer.out
    for code in ("0", "1", "2", "3", "4", "5", "130", "141"):
        assert f"\n    {code:<4}" in answer.out


def test_the_version_is_printed(pprop_here):
    from pprop import __version__

    assert pprop_here("--version").out == f"pprop {__version__}\n"


def sections(text: str) -> dict[str, list[str]]:
    """The options of each section of a verb's help."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.fullmatch(r"\w[\w ]*:", line):
            found[line[:-1]] = []
        elif option := re.match(r"  (?:-h, )?(--[\w-]+)", line):
            found[list(found)[-1]].append(option[1])
    return found


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("train", ["Arguments", "Model", "Training", "Split", "Your graph", "Features", "Output", "Options"]),
        ("tune", ["Arguments", "Search", "Split", "Your graph", "Features", "Output", "Options"]),
        ("predict", ["Arguments", "Your graph", "Features", "Output", "Options"]),
        ("propagate", ["Arguments", "Propagation", "Your graph", "Output", "Options"]),
        ("live", ["Arguments", "Options"]),  # few options need no sections
    ],
)
def test_many_options_are_shown_in_sections_each_once(pprop_here, verb: str, expected: list[str]):
    shown = sections(pprop_here(verb, "--help").out)
    assert list(shown) == expected
    options = [option for group in shown.values() for option in group]
    command = get_command(app).commands[verb]  # pyright: ignore[reportAttributeAccessIssue]
    declared = [each.opts[0] for each in command.params if each.param_type_name == "option"]
    assert sorted(options) == sorted([*declared, "--help"])
    assert all(len(group) <= 18 for group in shown.values())


def test_options_that_are_settings_have_their_default_and_help_from_the_schema():
    command = get_command(app).commands["train"]  # pyright: ignore[reportAttributeAccessIssue]
    options = {each.name: each for each in command.params}
    schema = [settings.LEARNING_RATE, settings.PATIENCE]
    several = (settings.DROPOUT, settings.PENALTY, settings.MAX_EPOCHS)
    for setting in (
        *schema,
        *several,
        settings.STEPS,
        settings.TOL,
        settings.MEMBERS,
        settings.ROUNDS,
        settings.SPREAD_ERRORS,
    ):
        option = options[setting.name]
        assert setting.help in option.help
        if setting in schema:
            assert option.default == setting.default
        else:  # None: the model's default, which the help names
            assert option.default is None
            assert f"[default: {setting.default}{'; residual: ' if setting in several else ']'}" in option.help
