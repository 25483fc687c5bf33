"""The plugin of continuous integration: a data test that did not run fails the run, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
MARKERS = "[pytest]\nmarkers =\n    data: needs the graphs\n"


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makeini(MARKERS)
    pytester.makepyfile(test_it=f"import pytest\n{code}")
    pytester.syspathinsert(ROOT)
    return pytester.runpytest_inprocess("-p", "tools.require_data", *arguments)


RAN = "@pytest.mark.data\ndef test_graph(): pass\n"


def test_a_run_whose_data_tests_all_ran_passes(pytester: pytest.Pytester):
    result = run(pytester, RAN + "@pytest.mark.skip(reason='no GPU')\ndef test_gpu(): pass\n")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["1 data tests ran, 0 did not."])


@pytest.mark.parametrize(
    "code",
    [
        "@pytest.mark.data\n@pytest.mark.skip(reason='absent')\ndef test_cora(): pass\n",
        "@pytest.mark.data\ndef test_cora(): pytest.skip('absent')\n",
        "@pytest.fixture\ndef folder(): pytest.skip('set PPROP_DATA: absent')\ndef test_cora(folder): pass\n",
    ],
    ids=["marker", "body", "fixture"],
)
def test_a_skipped_data_test_fails_the_run_by_name(pytester: pytest.Pytester, code: str):
    result = run(pytester, RAN + code)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["1 data tests ran, 1 did not.", "NOT RUN test_it.py::test_cora: *absent*"])


def test_tests_in_other_processes_count(pytester: pytest.Pytester):
    code = RAN + "@pytest.mark.data\ndef test_cora(): pytest.skip('absent')\n"
    result = run(pytester, code, "-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["1 data tests ran, 1 did not.", "NOT RUN test_it.py::test_cora: absent"])


def test_a_module_that_skips_itself_for_the_data_fails_the_run(pytester: pytest.Pytester):
    pytester.makepyfile(test_other="import pytest\npytest.skip('set PPROP_DATA', allow_module_level=True)\n")
    result = run(pytester, RAN)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT RUN test_other.py: set PPROP_DATA"])


def test_a_deselected_data_test_fails_the_run(pytester: pytest.Pytester):
    result = run(pytester, RAN + "def test_plain(): pass\n", "-m", "not data")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT RUN test_it.py::test_graph: deselected"])


def test_a_run_without_any_data_test_fails(pytester: pytest.Pytester):
    result = run(pytester, "def test_plain(): pass\n")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["No test carries the 'data' marker*"])
