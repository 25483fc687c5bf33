"""The plugin of continuous integration: a test that must run and did not fails the run, by name; and who calls it."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import NEEDS

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
MARKERS = "[pytest]\nmarkers =\n    data: needs the graphs\n    browser: a browser\n    spark: Java\n"


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makeini(MARKERS)
    pytester.makepyfile(test_it=f"import pytest\n{code}")
    pytester.syspathinsert(ROOT)
    return pytester.runpytest_inprocess("-p", "tools.require", *arguments)


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


ALL = ("--require", "data,browser,spark")
EVERY = "".join(f"@pytest.mark.{kind}\ndef test_{kind}(): pass\n" for kind in ("data", "browser", "spark"))


def test_a_run_of_all_kinds_passes(pytester: pytest.Pytester):
    result = run(pytester, EVERY, *ALL)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"1 {kind} tests ran, 0 did not." for kind in ("data", "browser", "spark")])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("browser", "no Chromium is installed"),
        ("browser", "playwright drives the browser"),
        ("spark", "pyspark is not installed"),
        ("spark", "Spark needs Java 17 or newer, and there is no 'java' on the PATH."),
    ],
)
def test_a_skipped_browser_or_spark_test_fails_the_run_by_name(pytester: pytest.Pytester, kind: str, reason: str):
    code = f"{EVERY}@pytest.fixture\ndef needed(): pytest.skip({reason!r})\ndef test_it(needed): pass\n"
    result = run(pytester, code, *ALL)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"1 {kind} tests ran, 1 did not.", f"NOT RUN test_it.py::test_it: {reason}"])


def test_kinds_that_are_not_required_may_skip(pytester: pytest.Pytester):
    skipped = "@pytest.mark.browser\n@pytest.mark.skip(reason='no Chromium is installed')\ndef test_page(): pass\n"
    assert run(pytester, RAN + skipped, "--require", "data").ret == pytest.ExitCode.OK


def test_a_marked_test_that_skips_for_any_reason_fails_the_run(pytester: pytest.Pytester):
    result = run(pytester, f"{EVERY}@pytest.mark.spark\ndef test_it(): pytest.skip('too slow')\n", *ALL)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT RUN test_it.py::test_it: too slow"])


def test_a_folder_named_like_a_kind_marks_nothing(pytester: pytest.Pytester):
    pytester.mkdir("spark").joinpath("test_plain.py").write_text(
        "import pytest\ndef test_it(): pytest.skip('no fork')\n"
    )
    assert run(pytester, EVERY, *ALL).ret == pytest.ExitCode.OK


def test_the_fixtures_of_the_browser_and_of_spark_mark_their_tests(request: pytest.FixtureRequest):
    for marker, folder, fixture in (
        ("browser", "serve/test_page.py", "explorer"),
        ("spark", "spark/conftest.py", "spark"),
    ):
        text = (ROOT / "tests" / folder).read_text()
        assert f"def {fixture}(" in text
        assert NEEDS[marker] == fixture


def checks(tmp_path: Path, *, answer: str | None, ci: str | None = None, data: bool = False) -> tuple[str, str]:
    """Run .ci/run with stand-ins for make and apt-get, in a terminal if there is an answer; return what both were called with."""
    place = tmp_path / "repository"
    (place / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", place / ".ci" / "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("make", "apt-get"):
        (programs / name).write_text(f'#!/bin/bash\necho "$@" >> {tmp_path}/{name}.log\n')
        (programs / name).chmod(0o755)
    (programs / "dirname").symlink_to(shutil.which("dirname") or "/usr/bin/dirname")
    if data:
        (tmp_path / "shared" / "data").mkdir(parents=True)
    environment = {"PATH": str(programs)} | ({} if ci is None else {"CI": ci})
    ours, theirs = pty.openpty()
    if answer is not None:
        os.write(ours, f"{answer}\n{answer}\n".encode())
    bash = shutil.which("bash") or "/bin/bash"
    done = subprocess.run(
        [bash, place / ".ci" / "run"],
        env=environment,
        stdin=subprocess.DEVNULL if answer is None else theirs,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    logs = (tmp_path / f"{name}.log" for name in ("apt-get", "make"))
    installed, made = (log.read_text() if log.exists() else "" for log in logs)
    return installed, made.splitlines()[-1]


INSTALLED = "install -y -qq openjdk-17-jre-headless\ninstall -y -qq chromium\n"
TEST = "--no-print-directory test PYTEST_ARGS="


@pytest.mark.parametrize(("answer", "ci"), [(None, None), (None, "true"), ("n", "true"), ("y", None)])
def test_continuous_integration_installs_without_asking_and_then_nothing_may_skip(
    tmp_path: Path, answer: str | None, ci: str | None
):
    assert checks(tmp_path, answer=answer, ci=ci) == (INSTALLED, f"{TEST}-p tools.require --require spark,browser")


def test_a_person_who_says_no_gets_nothing_installed_and_the_tests_may_skip(tmp_path: Path):
    assert checks(tmp_path, answer="n") == ("", TEST)


def test_data_are_required_where_they_are(tmp_path: Path):
    assert checks(tmp_path, answer="", data=True) == ("", f"{TEST}-p tools.require --require data")
