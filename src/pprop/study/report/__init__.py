"""The report of a study: one HTML page that needs nothing else, and a Markdown page with its figures beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import experiments_of
from pprop.study.report.page import Page, Section, page_files
from pprop.study.report.results import Results
from pprop.study.report.sections import SECTIONS, lead
from pprop.study.store.store import Store


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
        of_rows = (cell.dataset for cell in store.cells())
        known = experiments_of(folder, of_rows) if experiments is None else experiments
        page = build_page(Results(store, known, folder))
    files = page_files(page)
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [target / name for name in files]


def build_page(results: Results) -> Page:
    """Return the report of a study as a page. Sections without rows are left out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name, Store.open(Path(name), create=True) as store:
    ...     [section.title for section in build_page(Results(store, {}, Path(name))).sections]
    []
    """
    if not results.everything:
        return Page("Study", ("There are no rows yet. `pprop study run quick --out DIR` makes some.",), ())
    sections = (Section(title, tuple(blocks(results))) for title, blocks in SECTIONS.items())
    return Page("Study: predict, then propagate", lead(results), tuple(each for each in sections if each.blocks))
