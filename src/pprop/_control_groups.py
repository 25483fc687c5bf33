"""The control groups that this process is in, as those of a container: where their limits are to be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[tuple[int, Path]]:
    """Yield version (1 or 2) and folder of each control group with a controller that this process is in, inner ones first.

    In a container the path of its group may be that on the host, while the folder of the hierarchy is the group itself:
    so a folder that is not there is no error. Files are read below `root`.

    >>> all(version in (1, 2) for version, _ in control_groups("cpu"))
    True
    """
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        # version 1 has a hierarchy for each set of controllers, under their names and often under each name alone
        folders = {"": [""], controller: [controller]}.get(controllers, [controllers, controller])
        inner = PurePosixPath(path.lstrip("/"))
        for place in (inner, *inner.parents):
            for folder in folders:
                yield (1 if controllers else 2), root / "sys/fs/cgroup" / folder / place


def text_of(file: Path) -> str:
    """Return the content of a file of the system, or nothing if it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""
