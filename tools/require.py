"""A pytest plugin for continuous integration: a test that was to run and did not fails the whole run.

On a developer's machine the tests marked ``data`` are skipped where the four graphs are absent, those marked ``browser``
without a Chromium and those marked ``spark`` without Java. Where these are known to be present, a skip would hide a broken
path, so ``pytest -p tools.require --require data,browser,spark`` makes the run fail and names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

# The kinds of tests, which are their markers, with what the reason of a skip names where a test lacks the marker.
KINDS = {"data": "PPROP_DATA", "browser": r"Chromium|playwright", "spark": r"(?i)spark|\bjava\b"}


PROPERTY = "required"  # of a test; with its report it reaches the controller of several processes, as markers do not


class Require:
    """Counts the tests of some kinds that ran and remembers the others with the reason.

    A test is of a kind when it carries the marker, or when the reason of its skip names what the kind needs.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        self.ran = dict.fromkeys(kinds, 0)
        self.missing: dict[str, dict[str, str]] = {kind: {} for kind in kinds}

    def _note(self, report: pytest.TestReport | pytest.CollectReport, marked: Sequence[str] = ()) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        text = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for kind, missing in self.missing.items():
            if kind in marked or re.search(KINDS[kind], text):
                missing[report.nodeid] = text.removeprefix("Skipped: ")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        marked = [str(kind) for name, kind in report.user_properties if name == PROPERTY and kind in self.ran]
        self._note(report, marked)
        if report.when == "call":
            for kind in marked:
                self.ran[kind] += report.nodeid not in self.missing[kind]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)  # a module that skips itself is collected, never run

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for kind, missing in self.missing.items():
            missing.update({item.nodeid: "deselected" for item in items if item.get_closest_marker(kind)})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        passed = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if passed and any(self.missing[kind] or not self.ran[kind] for kind in self.ran):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("required tests")
        for kind, ran in self.ran.items():
            terminalreporter.line(f"{ran} {kind} tests ran, {len(self.missing[kind])} did not.")
            for name, reason in self.missing[kind].items():
                terminalreporter.line(f"NOT RUN {name}: {reason}", red=True)
            if not ran and not self.missing[kind]:
                terminalreporter.line(f"No test carries the {kind!r} marker, so this went untested.", red=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --require."""
    parser.addoption("--require", default="data", help=f"Tests that must run, of {', '.join(KINDS)}.  [default: data]")


@pytest.hookimpl(trylast=True)  # when all markers are there
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Write the kinds of a test into its reports."""
    for item in items:
        item.user_properties += [(PROPERTY, kind) for kind in KINDS if item.get_closest_marker(kind)]


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin, but not in a worker process, whose reports the controller gets."""
    if hasattr(config, "workerinput"):
        return
    kinds = [kind for kind in str(config.getoption("--require")).split(",") if kind]
    if unknown := sorted({*kinds} - {*KINDS}):
        raise pytest.UsageError(f"--require takes {', '.join(KINDS)}, separated by commas, not {unknown[0]!r}.")
    config.pluginmanager.register(Require(kinds), "pprop-require")
