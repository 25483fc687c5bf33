"""A pytest plugin for continuous integration: a data test that did not run fails the whole run.

On a developer's machine tests marked ``data`` are skipped when the four graphs are absent. Where the graphs are known
to be present, a skip would hide a broken path, so ``pytest -p tools.require_data`` makes the run fail and names it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest


class RequireData:
    """Counts the data tests that ran and remembers the others with the reason.

    A test counts as a data test when it carries the ``data`` marker, or when the reason of its skip names PPROP_DATA.
    """

    def __init__(self) -> None:
        self.ran = 0
        self.missing: dict[str, str] = {}

    def _note(self, name: str, report: pytest.TestReport | pytest.CollectReport, *, marked: bool) -> None:
        text = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if report.skipped and not hasattr(report, "wasxfail") and (marked or "PPROP_DATA" in text):
            self.missing[name] = text.removeprefix("Skipped: ")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        marked = "data" in report.keywords  # a report, unlike an item, reaches the controller of several processes
        self._note(report.nodeid, report, marked=marked)
        if marked and report.when == "call" and report.nodeid not in self.missing:
            self.ran += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report.nodeid, report, marked=False)  # a module that skips itself is collected, never run

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.missing.update({item.nodeid: "deselected" for item in items if item.get_closest_marker("data")})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        passed = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if passed and (self.missing or not self.ran):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("data tests")
        terminalreporter.line(f"{self.ran} data tests ran, {len(self.missing)} did not.")
        for name, reason in self.missing.items():
            terminalreporter.line(f"NOT RUN {name}: {reason}", red=True)
        if not self.ran and not self.missing:
            terminalreporter.line("No test carries the 'data' marker, so the graphs went untested.", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin, but not in a worker process, whose reports the controller gets."""
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(RequireData(), "pprop-require-data")
