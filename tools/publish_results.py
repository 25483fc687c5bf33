"""Write the published results from the packed rows alone, or check that they are what the rows give.

``make results`` writes ``results/report.html``, ``results/report.md``, ``results/figures``,
``results/claims.csv``, ``docs/results.md`` and the
README's table and sentences on the results. ``make results CHECK=1`` writes them into a temporary folder and compares. Text is
compared byte by byte; of a picture, its name and the data that it shows and names by a hash, because the bytes of a
drawing depend on fonts and matplotlib.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.bootstrapped_fp import read_readings
from tools.brief import brief_page, more_splits_sentence, short_table, significance_sentence

from pprop._errors import PpropError
from pprop.datasets import load_dataset
from pprop.study.experiment_folder import experiments_of
from pprop.study.report import build_page
from pprop.study.report.claims import claims_csv, found
from pprop.study.report.page import page_files, page_markdown
from pprop.study.report.results import Results
from pprop.study.store.merge import packs_of, study_folder
from pprop.study.store.store import Store
from pprop.study.tables.entries import dataset_title

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- begin of what `make results` writes -->", "<!-- end of what `make results` writes -->"
NEED_GRAPHS = ("Datasets", "Claims in the text", "Figures", "Summary", "Over test nodes")
"""Sections that are computed from the graphs, too: they cannot be checked where a graph is absent."""

HEAD = """# Results

Written by `make results` from the rows in {packs} and the graphs; `make results CHECK=1` fails where this page, the report, the figures or
the [README](../README.md) differ from them. [results/report.html](../results/report.html) ([Markdown](../results/report.md)) is the
whole report; [study.md](study.md) says what is known of numbers that differ from the paper's.
Splits are drawn from the order of nodes in a file. PubMed's very probably has the authors' order ([Bt. FP on validation
splits](#bt-fp-on-validation-splits)); MS Academic's may have another one, and so other splits and test nodes. Some runs
[stop in their first epochs](study.md#runs-that-stop-early).

"""


def published_files(root: Path, lacking: list[str]) -> dict[str, str]:
    """Return the content of every published file by its path; append the datasets that are not here to `lacking`."""
    packs = packs_of(root / "results")
    with study_folder(root / "results") as folder, Store.open(folder) as store:
        results = Results(store, experiments_of(folder), folder, sentences=True)
        page, main = build_page(results), results.main
        shared, leads = results.shared, results.leads_over_nodes
        shown = (main, results.published, results.times, results.many, found(results), results.samples)
    lacking += [name for name in main if not _is_here(name)]
    short = brief_page(page, *shown, read_readings(root), shared, leads)
    brief = page_markdown(short, "../results/figures", contents=False)
    head = HEAD.format(packs=", ".join(f"`results/{pack.name}`" for pack in packs))
    files = {f"results/{name}": text for name, text in page_files(page).items()}
    files["results/claims.csv"] = claims_csv(shown[4])
    files["docs/results.md"] = brief.replace("# Results\n\n", head, 1)
    told = str(page.lead[0]), significance_sentence(main), more_splits_sentence(main, results.many)
    sentences = " ".join(filter(None, told))
    text = "\n".join([*short_table(main), "", *textwrap.wrap(sentences, 125, break_on_hyphens=False)])
    files["README.md"] = _with_part((root / "README.md").read_text(encoding="utf-8"), text)
    return files


def _with_part(text: str, part: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise PpropError(f"README.md lacks the lines {BEGIN!r} and {END!r}, between which its sentences stand.")
    return f"{before}{begin}\n\n{part}\n\n{end}{after}"


def _is_here(dataset: str) -> bool:
    try:
        load_dataset(dataset)
    except (PpropError, OSError):
        return False
    return True


def differences(root: Path, files: dict[str, str], *, graphs: bool) -> Iterator[str]:
    """Yield what is wrong with the published files, in words.

    Parameters
    ----------
    root
        The folder of the project.
    files
        What they should be.
    graphs
        Whether all graphs are here; otherwise the parts that need them are left out of the comparison.
    """
    for name, text in files.items():
        path = root / name
        if not path.is_file():
            yield f"{name} is missing."
        else:
            there = path.read_text(encoding="utf-8")
            yield from _compared(name, _comparable(there, graphs=graphs), _comparable(text, graphs=graphs))
    figures = root / "results" / "figures"
    for path in sorted(figures.glob("*")) if graphs else ():
        if path.relative_to(root).as_posix() not in files:
            yield f"{path.relative_to(root)} is no figure of these rows; remove it."


def _compared(name: str, there: str, wanted: str) -> Iterator[str]:
    if there == wanted:
        return
    changed = list(
        difflib.unified_diff(there.splitlines(), wanted.splitlines(), "published", "from the rows", "", "", 0)
    )
    shown = [line if len(line) < 200 else f"{line[:200]}..." for line in changed[2:22]]
    more = [f"... and {len(changed) - 22} more lines"] if len(changed) > 22 else []
    yield "\n".join([f"{name} is not what the rows give:", *shown, *more])


def _comparable(text: str, *, graphs: bool) -> str:
    """Return a text without its drawings and, if graphs are absent, without the sections that need them."""
    text = re.sub(r"(<\?xml.*?)?<svg.*?</svg>", "<svg>", text, flags=re.DOTALL)  # the hash of the data follows it
    return text if graphs else without_graphs(text)


def without_graphs(text: str) -> str:
    r"""Return a page without the sections that are computed from graphs, and without their lines in the contents.

    >>> without_graphs("# A\n\n- [Datasets](#datasets)\n\n## Datasets\n\nfour\n\n## Costs\n\nfew\n")
    '# A\n\n\n## Costs\n\nfew\n'
    """
    for title in NEED_GRAPHS:
        text = re.sub(rf"^## {title}\n.*?(?=^## |\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
        anchor = title.lower().replace(" ", "-")
        text = text.replace(f"- [{title}](#{anchor})\n", "").replace(f'<li><a href="#{anchor}">{title}</a></li>', "")
        text = re.sub(rf'^<section id="{anchor}">.*?^</section>\n', "", text, flags=re.DOTALL | re.MULTILINE)
    return text


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Write or check the published results; return 0, or 1 where they differ or cannot be made."""
    parser = argparse.ArgumentParser(prog="make results", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = bool(parser.parse_args(arguments).check)
    start, lacking = time.monotonic(), list[str]()
    try:
        files = published_files(root, lacking)
    except (PpropError, OSError) as error:
        return _end(f"make results: {error}", 1)
    absent = ", ".join(dataset_title(name) for name in lacking)
    if lacking and not check:
        return _end(
            f"make results: nothing was written, because the graphs of {absent} are missing. Set PPROP_DATA.", 1
        )
    if not check:
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8", newline="\n")
        return _end(f"Wrote {len(files)} files in {time.monotonic() - start:.0f} s.", 0)
    if lacking:
        print(f"NOT CHECKED, because the graphs of {absent} are missing (set PPROP_DATA): {', '.join(NEED_GRAPHS)}.")
        files = {name: text for name, text in files.items() if "/figures/" not in name and name != "results/claims.csv"}
    wrong = list(differences(root, files, graphs=not lacking))
    if wrong:
        return _end("\n\n".join([*wrong, "Published results differ from the rows: run 'make results' and commit."]), 1)
    return _end(f"{len(files)} published files are what the rows give ({time.monotonic() - start:.0f} s).", 0)


def _end(text: str, code: int) -> int:
    print(text, file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main())
