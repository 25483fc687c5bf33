"""``pprop study``: the paper's whole evaluation, resumable, and a user's model in the same table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from pprop.cli.output import BAD_INPUT, UNEXPECTED, Session, columns, counted, picked
from pprop.cli.study_run import run
from pprop.cli.verbs import examples, make_app, option, verb

StudyArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, or a packed one.")]


@verb("study list", "pprop study list")
def list_all(session: Session) -> None:
    """List the experiments: one for each published number or figure, and the groups they belong to."""
    from pprop.study.experiment_folder import load_experiments

    experiments = load_experiments().values()
    records: list[dict[str, Any]] = [
        {
            **picked(experiment, "name", "title", "shows"),
            "cells": len(experiment.points),
            "runs": sum(len(experiment.seeds(cell=point.cell)) for point in experiment.points),
            "groups": experiment.groups,
            "published": None
            if experiment.published is None
            else {name: value for name, value in vars(experiment.published).items() if value is not None},
        }
        for experiment in experiments
    ]
    groups = dict(Counter(group for experiment in experiments for group in experiment.groups))
    rows = [[each["name"], each["runs"], each["title"]] for each in records]
    text = columns(("experiment", "runs", "what"), rows, left=(0, 2))
    named = ", ".join(f"{name} ({count})" for name, count in sorted(groups.items()))
    session.result({"experiments": records, "groups": groups}, f"{text}\n\nGroups: {named}")


@verb("study status", "pprop study status study")
def status(session: Session, folder: StudyArgument) -> None:
    """Show how far each experiment is: runs done and wanted, what they took, and rows of other versions."""
    from pprop.study.cell import title_of
    from pprop.study.experiment_folder import experiments_of
    from pprop.study.run.progress import study_status
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
    for cell, number in found.other_cells:
        lines.append(f"no experiment: {title_of(cell)} ({cell.config}), {counted(number, 'row')}")
    lines.append(f"{counted(found.rows, 'row')} in {folder}; {counted(found.computing, 'run')} being computed now.")
    session.result(record, "\n".join(lines))


@verb("study report", "pprop study report study", "pprop study report study --out pages")
def report(
    session: Session,
    folder: StudyArgument,
    out: Annotated[
        Path | None, option("Folder for the pages.  [default: DIR, or that of the packed file]", metavar="DIR")
    ] = None,
) -> None:
    """Write the study as a page: tables, figures, claims, our numbers beside the paper's."""
    from pprop.study.store.merge import study_folder
    from pprop.study.store.store import Store

    with study_folder(folder) as study:
        Store.open(study).close()  # a folder without a study, or with a damaged one, is refused before the work

        from pprop.study.report import write_report

        written = write_report(study, out or (folder.parent if folder.is_file() else folder))
    for path in written:
        session.keep(path)
    session.result({"written": written}, "\n".join(f"wrote {path}" for path in written))


@verb("study pack", "pprop study pack study --out study.pack", "pprop study merge study.pack --out study")
def pack(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.")],
    out: Annotated[Path, option("The file, which must not exist.", metavar="FILE")],
    small: Annotated[
        bool,
        option(
            "Keep the predictions of all nodes only for runs of the accuracy table and runs on a CPU: nothing is "
            "made of the others.",
            "--small",
        ),
    ] = False,
) -> None:
    """Write all rows into one small file, to be published; 'pprop study merge' makes a study of it again."""
    from pprop.study.experiment_folder import load_experiments
    from pprop.study.store.pack import pack_study, predictions_needed
    from pprop.study.store.store import Store

    with Store.open(folder) as store:
        rows = pack_study(store, out, predictions_needed(load_experiments().values()) if small else None)
    session.keep(out)
    size = out.stat().st_size
    record = {"out": out, "rows": rows, "bytes": size}
    session.result(record, f"{counted(rows, 'row')} in {out}, {size / 1e6:.2f} MB")


@verb("study merge", "pprop study merge here there --out both", "pprop study merge damaged --out saved")
def merge(
    session: Session,
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of studies, or packed ones.")],
    out: Annotated[Path, option("Folder for the rows of all; may have some.", metavar="DIR")],
) -> None:
    """Bring rows of several studies together, or the sound rows of a damaged one; no source is changed.

    A run that is in two studies with different results is named, and the first result is kept (exit code 3); so are
    damaged studies and how many of their rows were lost.
    """
    from pprop.study.store.merge import merge_studies

    merged = merge_studies(folders, out)
    session.keep(out)
    lines: list[str] = []
    for source in merged.sources:
        least = "" if source.certain else "at least "
        lost = f", {least}{counted(source.lost, 'row')} lost" if source.lost or not source.certain else ""
        lines.append(f"{source.folder}: {counted(source.rows, 'row')}, {source.new} of them new{lost}")
        lines += [f"  conflict: {conflict}; the first result was kept" for conflict in source.conflicts]
        if source.problem is not None:
            lines.append(f"  {source.problem}")
    lines.append(f"{counted(merged.rows, 'row')} in {out}")
    sources = [vars(source) for source in merged.sources]
    session.result({"out": out, "rows": merged.rows, "sound": merged.sound, "sources": sources}, "\n".join(lines))
    if not merged.sound:
        raise typer.Exit(BAD_INPUT)


@verb("study verify", "pprop study verify results", "pprop study verify study --sample 50 --minutes 30 --seed 1")
def verify(
    session: Session,
    folder: StudyArgument,
    sample: Annotated[int, option("How many rows at most.", metavar="N")] = 20,
    minutes: Annotated[float, option("How long about, on two cores.", metavar="M")] = 5.0,
    seed: Annotated[int, option("Of their choice.", metavar="S")] = 0,
    stale: Annotated[bool, option("Also rows of other revisions.", "--stale")] = False,
) -> None:
    """Compute a sample of rows, from as many cells as possible, once more on the CPU and compare.

    Rows from this kind of CPU must be the same bit for bit. The accuracy of a row from a GPU or another kind of CPU may
    differ as two initialisations of one split do, and the mean over all such rows by much less (docs/study.md,
    "Verifying"). Rows of other revisions are left out, or, with --stale, compared like those from a GPU; those of other
    data, or whose dataset or own model is not here, are left out. A difference ends with exit code 1.
    """
    from pprop.study.run.progress import show_study
    from pprop.study.store.merge import study_folder
    from pprop.study.store.store import Store
    from pprop.study.verify.plan import plan_verification
    from pprop.study.verify.verify import found_lines, found_record, plan_line, verify_study

    with study_folder(folder) as study, Store.open(study) as store:
        plan = plan_verification(store, sample, seed, minutes, stale=stale)
        session.say(plan_line(plan))
        with show_study(session.say, cells=plan.cells, runs=len(plan.chosen)) as watch:
            found = verify_study(store, plan, watch)
    session.result(found_record(found), "\n".join(found_lines(found)))
    if not found.sound:
        raise typer.Exit(UNEXPECTED)


app = make_app(
    "The paper's whole evaluation, resumable, and your own model in the same table.",
    examples(
        "pprop study list",
        "pprop study run quick --out study",
        "pprop study run --model mymodule:build --dataset cora_ml --out study",
        "pprop study report study",
    ),
    *(list_all, run, status, report, pack, merge, verify),
)
