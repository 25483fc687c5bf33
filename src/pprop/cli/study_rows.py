"""``pprop study merge`` and ``pprop study verify``: rows of several machines, and rows computed once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pprop.cli.output import BAD_INPUT, UNEXPECTED, DebugOption, JsonOption, Session
from pprop.cli.text import counted

__all__ = ["MERGE_EXAMPLES", "PACK_EXAMPLES", "VERIFY_EXAMPLES", "merge", "pack", "verify"]

PACK_EXAMPLES = ("pprop study pack study --out study.pack", "pprop study merge study.pack --out study")
MERGE_EXAMPLES = ("pprop study merge here there --out both", "pprop study merge damaged --out saved")
VERIFY_EXAMPLES = ("pprop study verify results", "pprop study verify study --sample 50 --minutes 30 --seed 1")


def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of studies, or packed ones.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the rows of all; may have some.")],
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Bring rows of several studies together, or the sound rows of a damaged one; no source is changed.

    A run that is in two studies with different results is named, and the first result is kept (exit code 3); so are
    damaged studies and how many of their rows were lost.
    """
    with Session("study merge", json=json, debug=debug) as session:
        from pprop.study.store.merge import merge_studies

        merged = merge_studies(folders, out)
        session.keep(out)
        record = {
            "out": out,
            "rows": merged.rows,
            "sound": merged.sound,
            "sources": [vars(source) for source in merged.sources],
        }
        lines: list[str] = []
        for source in merged.sources:
            least = "" if source.certain else "at least "
            lost = f", {least}{counted(source.lost, 'row')} lost" if source.lost or not source.certain else ""
            lines.append(f"{source.folder}: {counted(source.rows, 'row')}, {source.new} of them new{lost}")
            lines += [f"  conflict: {conflict}; the first result was kept" for conflict in source.conflicts]
            if source.problem is not None:
                lines.append(f"  {source.problem}")
        lines.append(f"{counted(merged.rows, 'row')} in {out}")
        session.result(record, "\n".join(lines))
        if not merged.sound:
            raise typer.Exit(BAD_INPUT)


def pack(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file, which must not exist.")],
    small: Annotated[
        bool,
        typer.Option(
            "--small",
            help="Keep the predictions of all nodes only for runs of the accuracy table and runs on a CPU: nothing is "
            "made of the others.",
        ),
    ] = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write all rows into one small file, to be published; 'pprop study merge' makes a study of it again."""
    with Session("study pack", json=json, debug=debug) as session:
        from pprop.study.experiment_folder import load_experiments
        from pprop.study.store.pack import pack_study, predictions_needed
        from pprop.study.store.store import Store

        with Store.open(folder) as store:
            rows = pack_study(store, out, predictions_needed(load_experiments().values()) if small else None)
        session.keep(out)
        size = out.stat().st_size
        session.result(
            {"out": out, "rows": rows, "bytes": size}, f"{counted(rows, 'row')} in {out}, {size / 1e6:.2f} MB"
        )


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, or a packed one.")],
    sample: Annotated[int, typer.Option("--sample", metavar="N", help="How many rows at most.")] = 20,
    minutes: Annotated[float, typer.Option("--minutes", metavar="M", help="How long about, on two cores.")] = 5.0,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of their choice.")] = 0,
    stale: Annotated[bool, typer.Option("--stale", help="Also rows of other revisions.")] = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compute a sample of rows, from as many cells as possible, once more on the CPU and compare.

    Rows from this kind of CPU must be the same bit for bit. The accuracy of a row from a GPU or another kind of CPU may
    differ as two initialisations of one split do, and the mean over all such rows by much less (docs/study.md,
    "Verifying"). Rows of other revisions are left out, or, with --stale, compared like those from a GPU; those of other
    data, or whose dataset or own model is not here, are left out. A difference ends with exit code 1.
    """
    with Session("study verify", json=json, debug=debug) as session:
        from pprop.study.run.watch import show_study
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
