"""The page on steps beyond memory says what the code does."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "scale-steps.md"


def test_the_examples_of_the_page_run():
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert outcome.attempted > 5
    assert outcome.failed == 0
