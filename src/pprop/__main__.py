"""``python -m pprop`` is the command ``pprop``."""

from __future__ import annotations

from pprop.cli import main

if __name__ == "__main__":
    main()
