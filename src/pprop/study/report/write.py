"""Write a study's report: the same rows give the same bytes, wherever and whenever."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import experiments_of
from pprop.study.report.build import build_page
from pprop.study.report.page import Page, Picture, page_html, page_markdown
from pprop.study.store.store import Store

__all__ = ["page_files", "write_report"]

FIGURES = "figures"


def write_report(
    store_folder: Path, out: Path | None = None, experiments: Mapping[str, Experiment] | None = None
) -> list[Path]:
    """Write ``report.html``, ``report.md`` and the figures of the latter with their data, and return their paths.

    Neither page holds the time of writing or a path of this machine.

    Parameters
    ----------
    store_folder
        The study's folder, which has the rows.
    out
        Where to write; the study's folder by default.
    experiments
        What the rows are shown as; by default those that come with pprop and those kept with the study.

    Returns
    -------
    list of Path
        The HTML page first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     Store.open(Path(name), create=True).close()
    ...     [path.name for path in write_report(Path(name))]
    ['report.html', 'report.md']
    """
    folder = Path(store_folder)
    target = folder if out is None else Path(out)
    with Store.open(folder) as store:
        page = build_page(store, experiments_of(folder) if experiments is None else experiments, folder)
    files = page_files(page)
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [target / name for name in files]


def page_files(page: Page) -> dict[str, str]:
    """Return the content of a report's files by their names, the HTML page first.

    Examples
    --------
    >>> list(page_files(Page("Study", (), ())))
    ['report.html', 'report.md']
    """
    files = {"report.html": page_html(page), "report.md": page_markdown(page, FIGURES)}
    for picture in (block for section in page.sections for block in section.blocks if isinstance(block, Picture)):
        files |= {f"{FIGURES}/{picture.name}.svg": picture.svg, f"{FIGURES}/{picture.name}.json": picture.data}
    return files
