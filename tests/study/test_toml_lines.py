from __future__ import annotations

import tomllib

import pytest

from pprop.study.experiment import line_of

TEXT = '''\
# title = "not a key"
title = "a # and [brackets] = {"
words = ["x", # "y",
         "y",

         'z']
long = """
model = "inside a text"
"""
literal = \'\'\'
[grid]
\'\'\'
settings = { hidden = [64, 64], "odd key" = 1 }
a.b = 1.5
when = 1979-05-27 07:32:00

[grid] # alpha = 1
alpha = [
    0.1,
    0.2, 0.3,
]

[[points]]
at = { layers = 1 }

[[points]]
at.layers = 2
[points.settings]
hidden = []

[published]'''

LINES = {
    ("title",): 2,
    ("words",): 3,
    ("words", 1): 4,
    ("words", 2): 6,
    ("long",): 7,
    ("literal",): 10,
    ("settings", "hidden"): 13,
    ("settings", "hidden", 1): 13,
    ("settings", "odd key"): 13,
    ("a", "b"): 14,
    ("when",): 15,
    ("grid",): 17,
    ("grid", "alpha"): 18,
    ("grid", "alpha", 0): 19,
    ("grid", "alpha", 2): 20,
    ("points",): 23,
    ("points", 0, "at", "layers"): 24,
    ("points", 1): 26,
    ("points", 1, "at", "layers"): 27,
    ("points", 1, "settings"): 28,
    ("points", 1, "settings", "hidden"): 29,
    ("published",): 31,
    ("published", "accuracy"): 31,
    ("absent",): 1,
    (): 1,
}


@pytest.mark.parametrize("path", LINES, ids=str)
def test_a_key_is_found_in_its_line(path):
    tomllib.loads(TEXT)  # the scanner is for sound TOML
    assert line_of(TEXT, path) == LINES[path]


def test_lines_are_found_with_line_ends_of_windows():
    assert line_of('model = "mlp"\r\n\r\n[grid]\r\nalpha = [1]\r\n', ("grid", "alpha")) == 4
