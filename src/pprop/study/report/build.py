"""From a study's rows to its report: the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import experiments_of
from pprop.study.report.page import Block, Page, Section, page_files
from pprop.study.report.results import Results
from pprop.study.report.sections import SECTIONS
from pprop.study.store.store import Store
from pprop.study.tables.scores import score

METHOD = (
    "Every mean is over runs: the paper's splits times initialisations. The number behind ± is the larger distance from "
    "the mean to an end of its 95 % percentile bootstrap interval (1000 resamples). Differences from the paper are given "
    "in combined intervals, the root of the sum of squares of both ±; beyond 1 the two disagree. As in the paper, ± takes "
    "runs for independent, although those of one split vary together (Spread): it is too narrow for the mean over other "
    "splits than these, so that equal results on other splits (PubMed, MS Academic) lie beyond 1 more often than one time "
    "in 20, and results on the paper's own splits less often. Intervals from fewer than ten runs are too narrow in any "
    "case. `DIR` in a command stands for the study's folder; what has no command of its own is computed from the rows of "
    "the accuracy table, or from the graphs, by `pprop study report DIR`."
)


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
        known = experiments_of(folder) if experiments is None else experiments
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
    return Page("Study: predict, then propagate", _lead(results), tuple(each for each in sections if each.blocks))


def _lead(results: Results) -> tuple[Block, ...]:
    samples = results.everything
    count = sum(len(sample.all_rows) for sample in samples.values())
    scores = [score(entry, "accuracy") for group in results.main.values() for entry in group]
    compared = [each for each in scores if each.intervals is not None]
    within = sum(abs(each.intervals or 0.0) <= 1 for each in compared)
    text = f"{_counted(count, 'run')} of {_counted(len(samples), 'cell')}. "
    if compared:
        given = "1 accuracy" if len(compared) == 1 else f"{len(compared)} accuracies"
        verb = "agrees" if within == 1 else "agree"
        text += f"Of {given} that the paper also gives, {within} {verb} with it within the combined interval."
    return (text.strip(), METHOD)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
