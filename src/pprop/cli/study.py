"""``pprop study``: the paper's whole evaluation, resumable, and one's own model in the same table."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop.cli import study_rows, study_run
from pprop.cli.output import DebugOption, JsonOption, Session
from pprop.cli.text import columns, counted, examples

if TYPE_CHECKING:
    from pprop.study.experiment import Published

__all__ = ["app"]

app = typer.Typer(
    help="The paper's whole evaluation, resumable, and one's own model in the same table.",
    epilog=examples(
        "pprop study list",
        "pprop study run quick --out study",
        "pprop study run --model mymodule:build --dataset cora_ml --out study",
        "pprop study report study",
    ),
    rich_markup_mode=None,
)
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, or a packed one.")]


@app.callback(invoke_without_command=True)
def _front(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")


@app.command("list", epilog=examples("pprop study list"))
def list_all(json: JsonOption = False, debug: DebugOption = False) -> None:
    """List the experiments: one for each published number or figure, and the groups they belong to."""
    with Session("study list", json=json, debug=debug) as session:
        from pprop.study.experiment_folder import load_experiments

        experiments = load_experiments().values()
        records: list[dict[str, Any]] = [
            {
                "name": experiment.name,
                "title": experiment.title,
                "shows": experiment.shows,
                "cells": len(experiment.points),
                "runs": sum(len(experiment.seeds(cell=point.cell)) for point in experiment.points),
                "groups": list(experiment.groups),
                "published": None if experiment.published is None else _printed(experiment.published),
            }
            for experiment in experiments
        ]
        groups = dict(Counter(group for experiment in experiments for group in experiment.groups))
        headings = ("experiment", "runs", "what")
        text = columns(headings, [[each["name"], each["runs"], each["title"]] for each in records], left=(0, 2))
        named = ", ".join(f"{name} ({count})" for name, count in sorted(groups.items()))
        session.result({"experiments": records, "groups": groups}, f"{text}\n\nGroups: {named}")


def _printed(published: Published) -> dict[str, float]:
    return {name: value for name, value in vars(published).items() if value is not None}


app.command("run", epilog=examples(*study_run.EXAMPLES))(study_run.run)


@app.command(epilog=examples("pprop study status study"))
def status(folder: FolderArgument, json: JsonOption = False, debug: DebugOption = False) -> None:
    """Say how far each experiment is: runs done and wanted, what they took, and rows of other versions."""
    with Session("study status", json=json, debug=debug) as session:
        from pprop.study.cell import title_of
        from pprop.study.experiment_folder import experiments_of
        from pprop.study.run.status import study_status
        from pprop.study.store.merge import study_folder
        from pprop.study.store.store import Store

        with study_folder(folder) as study, Store.open(study) as store:
            found = study_status(store, experiments_of(study).values())
        record = {
            "out": folder,
            "rows": found.rows,
            "experiments": [vars(each) for each in found.experiments],
            "other_cells": [{"cell": cell.text, "rows": rows} for cell, rows in found.other_cells],
            "computing": found.computing,
        }
        headings = ("experiment", "done", "wanted", "seconds", "last row", "other versions")
        rows = [
            (each.name, each.done, each.wanted, f"{each.seconds:.0f}", each.last[:19], each.other_versions)
            for each in found.experiments
        ]
        lines = [columns(headings, rows, left=(0, 4))] if rows else []
        lines += [
            f"no experiment: {title_of(cell)} ({cell.config}), {counted(number, 'row')}"
            for cell, number in found.other_cells
        ]
        lines.append(f"{counted(found.rows, 'row')} in {folder}; {counted(found.computing, 'run')} being computed now.")
        session.result(record, "\n".join(lines))


@app.command(epilog=examples("pprop study report study", "pprop study report study --out pages"))
def report(
    folder: FolderArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the pages.  [default: DIR, or that of the packed file]"),
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write the study as a page for people: tables, figures, claims, ours beside the paper's."""
    with Session("study report", json=json, debug=debug) as session:
        from pprop.study.store.merge import study_folder
        from pprop.study.store.store import Store

        with study_folder(folder) as study:
            # a folder without a study, or with a damaged one, is refused before anything is made
            Store.open(study).close()

            from pprop.study.report import write_report

            home = folder.parent if folder.is_file() else folder
            written = write_report(study, home if out is None else out)
        for path in written:
            session.keep(path)
        session.result({"written": written}, "\n".join(f"wrote {path}" for path in written))


app.command("pack", epilog=examples(*study_rows.PACK_EXAMPLES))(study_rows.pack)
app.command("merge", epilog=examples(*study_rows.MERGE_EXAMPLES))(study_rows.merge)
app.command("verify", epilog=examples(*study_rows.VERIFY_EXAMPLES))(study_rows.verify)
