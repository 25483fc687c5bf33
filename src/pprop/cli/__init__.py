"""The command ``pprop``: thin verbs over the library, one file each; numpy and torch are imported inside a verb."""

from __future__ import annotations

import os
import sys

from pprop._process import settle_threads


def main() -> None:
    """Run the command with the arguments of this process, and end the process with its exit code."""
    settle_threads(os.environ)
    try:
        from pprop.cli.app import run  # here, so that Ctrl-C during the imports is also answered in one line

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("pprop: Interrupted. Nothing was written.\n")
        code = 130
    sys.exit(code)
