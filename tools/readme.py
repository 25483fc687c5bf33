"""Run the commands and the Python of the README, and write what they print below them.

    python -m tools.readme           # print what would change
    python -m tools.readme --write   # write it

A block ``console`` has commands after ``$`` and, below each, what it prints on a terminal; a block ``text`` has what the
block ``python`` above it prints. Paragraphs of a long output may be left out: a line ``...`` stands for them, and stays
where it is. Commands of make, and those without an output in the README, are not run by this tool.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
GAP = "..."
ONCE = re.compile(
    r"^Compiling the kernels.*\n| \(and [\d.]+ s to compile kernels, once\)", re.MULTILINE
)  # of first calls


@final
@dataclass(frozen=True)
class Shown:
    """A command, or a block of Python, and the output that the README shows."""

    code: str
    output: str
    python: bool


def shown(text: str) -> list[Shown]:
    r"""Return what a page runs, in its order.

    >>> page = "```console\n$ pprop --version\npprop 0.1\n$ make x\n```\n```python\nprint(1)\n```\n```text\n1\n```\n"
    >>> [(one.code, one.output) for one in shown(page)]
    [('pprop --version', 'pprop 0.1\n'), ('make x', ''), ('print(1)\n', '1\n')]
    """
    found = list[Shown]()
    for kind, body in BLOCK.findall(text):
        if kind == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append(Shown(command, output, python=False))
        elif kind == "python":
            found.append(Shown(body, "", python=True))
        elif kind == "text" and found and found[-1].python:
            found[-1] = Shown(found[-1].code, body, python=True)
    return found


def abridged(output: str, like: str) -> str:
    r"""Return an output with the paragraphs that `like` leaves out replaced by `GAP`; paragraphs go by their first word.

    >>> abridged("a 2\nb\n\nc 3\n\nd\n", like="a 1\nb\n\n...\n\nd\n")
    'a 2\nb\n\n...\n\nd\n'
    """
    kept = [part.split()[0] for part in like.split("\n\n") if part.split()]
    if GAP not in kept:
        return output
    parts = list[str]()
    for part in output.rstrip("\n").split("\n\n"):
        if part.split()[0] in kept:
            parts.append(part)
        elif parts[-1:] != [GAP]:
            parts.append(GAP)
    return "\n\n".join(parts) + "\n"


def printed(one: Shown, folder: Path, before: Sequence[str] = ()) -> str:
    """Run it in a folder and return what it prints, both streams; raise if it fails.

    `before` is the Python of the page above this block.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment: Mapping[str, str] = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}
    if one.python:
        quiet = (
            f"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    exec({''.join(before)!r})\n"
        )
        command = [sys.executable, "-c", f"{quiet if before else ''}{one.code}"]
    else:
        command = ["bash", "-c", one.code]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{one.code}\nends with {done.returncode}:\n{done.stdout}")
    return "".join(f"{line.rstrip()}\n" for line in ONCE.sub("", done.stdout).splitlines())


def renewed(text: str) -> str:
    """Return a page with the outputs of its commands as they are now."""
    with tempfile.TemporaryDirectory() as name:
        folder, above, rest = Path(name), list[str](), text
        shutil.copytree(ROOT / "examples", folder / "examples")
        done = ""
        for one in shown(text):
            head, found, rest = rest.partition(one.code)
            done += head + found
            if one.python:
                opening = rest.partition("```text\n")[0] + "```text\n" if one.output else ""
            else:
                opening = "\n" if one.output else ""
            if one.output:
                assert rest.startswith(opening + one.output)
                done += opening + abridged(printed(one, folder, above), one.output)
                rest = rest[len(opening + one.output) :]
            if one.python:
                above.append(one.code)
    return done + rest


def main() -> int:
    """Print or write the new README; return 1 if it differs and is not written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true")
    write = bool(parser.parse_args().write)
    page = ROOT / "README.md"
    before = page.read_text(encoding="utf-8")
    after = renewed(before)
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "README.md", "now"))
    if write:
        page.write_text(after, encoding="utf-8")
    return int(before != after and not write)


if __name__ == "__main__":
    sys.exit(main())
