"""``pprop study``: the paper's whole evaluation, resumable, on a user's graph too, and a user's model in the same table."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._validate import check_choice, counted
from pprop.cli.errors import UsageError, WrongValueError
from pprop.cli.graphs import GraphInput, TableOptions
from pprop.cli.output import BAD_INPUT, UNEXPECTED, UNFINISHED, Session, check_place, columns, picked
from pprop.cli.study_jobs import find_experiments, model_jobs, name_of, named_jobs, read_own_graph
from pprop.cli.study_outcome import outcome_record, outcome_text
from pprop.cli.verbs import DeviceOption, at_least, examples, make_app, option, verb, within
from pprop.settings import DEVICE

if TYPE_CHECKING:
    from pprop.study.run.progress import Watch
    from pprop.study.run.runner import Job, StudyOutcome
    from pprop.study.stats.paired import Versus
    from pprop.study.store.store import Store

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


@verb(
    "study run",
    "pprop study run quick --out study",
    "pprop study run gasteiger_2019_appnp_cora_ml --out study --runs 20 --time-limit 30",
    "pprop study run --model mymodule:build --dataset cora_ml",
    "pprop study run quick labels --graph mine.npz --out study",
    "pprop study run accuracy --graph edges.csv --nodes nodes.csv --label-column topic --out study",
    checks=True,
)
def run(
    session: Session,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Experiments, groups ('pprop study list') or .toml files."),
    ] = None,
    *,
    graph: Annotated[
        str | None,
        option(
            "Your own graph (a file, or a folder of pprop build) in place of the datasets.",
            metavar="GRAPH",
            panel=TableOptions.panel,
        ),
    ] = None,
    tables: Annotated[TableOptions, {"weight", "directed"}],  # a study ignores both
    out: Annotated[Path, option("Folder of the study; may have rows.", metavar="DIR")] = Path("study"),
    runs: Annotated[int | None, option("Runs of each cell.  [default: all]", metavar="N", rule=at_least(1))] = None,
    device: DeviceOption = DEVICE.default,
    time_limit: Annotated[
        float | None, option("End after so many minutes.", metavar="MIN", rule=within("(0, inf)"))
    ] = None,
    model: Annotated[str | None, option("Your own model: a function of the graph.", metavar="MODULE:FUNCTION")] = None,
    dataset: Annotated[str | None, option("For --model: citeseer, cora_ml, ...")] = None,
) -> None:
    """Compute the runs that are missing; each is stored in the folder as soon as it ends.

    Start it again after an interruption and it goes on; start it twice and both share the work. --model takes a function
    that gets the graph and returns a pprop model, a torch module from features (n, f) to logits (n, c), or an object with
    fit(nodes, y, stopping=(nodes, y)) and predict(nodes): it is compared with APPNP and GCN on the same runs. A torch module
    gets the features as stored, not normalised; a parameter seed of the function gets the seed of each run. --graph runs
    the experiments on a graph with features and labels of your own, standardised as the paper's are; the study keeps a copy.
    """
    from pprop.datasets import DATASETS
    from pprop.study.experiment_folder import check_graph_name, keep_experiment
    from pprop.study.graphs import keep_graph, own_names
    from pprop.study.revisions import find_function
    from pprop.study.run.progress import show_study
    from pprop.study.run.runner import place_of
    from pprop.study.stats.paired import compare_models
    from pprop.study.store.store import Store

    checks = session.checks
    wrong = not names or dataset is not None if model is None else bool(names) or (dataset is None) == (graph is None)
    if wrong:
        checks.add(UsageError("Give names of experiments, or --model together with either --dataset or --graph."))
    if graph is None:
        for word in tables.words():
            if word.startswith("--"):
                checks.add(UsageError(f"{word} belongs to a graph of your own: add --graph."))
    if graph is not None and any(name.endswith(".toml") for name in names or []):
        text = "--graph takes names of experiments and groups; a .toml file names its dataset itself."
        checks.add(UsageError(text))
    if model is not None and ":" not in model:
        checks.add(WrongValueError(f"--model takes module:function, not {model!r}."))
    elif model is not None:
        checks.run(find_function, model)
    if dataset is not None:
        checks.run(check_choice, dataset, "dataset", "study run", [*DATASETS, *own_names(out)])
    checks.run(place_of, device)  # refused before there is a folder
    checks.run(check_place, out)
    origin = None if graph is None else GraphInput(graph, tables)
    named = ""
    if origin is not None:
        named = checks.run(check_graph_name, name_of(origin)) or ""
        checks.run(origin.check, labels=True, wrong_already=bool(checks))
    if names:
        checks.run(find_experiments, names, out, named)
    checks.settle()
    own = None if origin is None else read_own_graph(session, origin)
    name = "" if own is None else own.name or ""
    if model is not None:
        jobs = model_jobs(model, dataset or name, runs, out, own)
    else:
        jobs = named_jobs(names or [], runs, out, name)
    wanted = sum(len(job.seeds) for job in jobs)
    session.say(f"{counted(len(jobs), 'cell')}, {counted(wanted, 'run')}, into {out}")
    with Store.open(out, create=True) as store:
        session.keep(out)
        if own is not None:
            keep_graph(own, out, {group.data for group in store.groups() if group.cell.dataset == own.name})
        for name in names or []:
            if name.endswith(".toml"):
                keep_experiment(Path(name), out)
        with show_study(session.say, len(jobs), wanted) as watch:
            outcome = _compute(store, jobs, watch, device, time_limit, first_alone=model is not None)
        compared: list[Versus] = []
        if model is not None:
            first, *rivals = jobs
            compared = compare_models(store, first.cell, [job.cell for job in rivals], first.seeds)
    session.result(outcome_record(outcome, out, compared), outcome_text(outcome, out, compared))
    if outcome.refused:
        raise typer.Exit(BAD_INPUT)
    if outcome.left:
        raise typer.Exit(UNFINISHED)


@verb("study status", "pprop study status study")
def status(session: Session, folder: StudyArgument) -> None:
    """Show how far each experiment is: runs done and wanted, what they took, and rows of other versions."""
    from pprop.study.cell import title_of
    from pprop.study.experiment_folder import experiments_of
    from pprop.study.run.progress import study_status
    from pprop.study.store.merge import study_folder
    from pprop.study.store.store import Store

    with study_folder(folder) as study, Store.open(study) as store:
        found = study_status(store, experiments_of(study, (cell.dataset for cell in store.cells())).values())
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
    from pprop.study.report import write_report
    from pprop.study.store.merge import study_folder
    from pprop.study.store.store import Store

    with study_folder(folder) as study:
        Store.open(study).close()  # a folder without a study, or with a damaged one, is refused before the work
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
    """Write all rows into one small file, to be published; 'pprop study merge' makes a study of it again.

    Graphs of your own are not in it.
    """
    from pprop.study.experiment_folder import experiments_of
    from pprop.study.graphs import own_names
    from pprop.study.store.pack import pack_study, predictions_needed
    from pprop.study.store.store import Store

    with Store.open(folder) as store:
        known = experiments_of(folder, (cell.dataset for cell in store.cells()))
        rows = pack_study(store, out, predictions_needed(known.values()) if small else None)
    session.keep(out)
    size, graphs = out.stat().st_size, own_names(folder)
    without = f"\nNot in it: the graph{'s' * (len(graphs) > 1)} {', '.join(graphs)}." if graphs else ""
    record = {"out": out, "rows": rows, "bytes": size, "graphs_left_out": graphs}
    session.result(record, f"{counted(rows, 'row')} in {out}, {size / 1e6:.2f} MB{without}")


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
    sample: Annotated[int, option("How many rows at most.", metavar="N", rule=at_least(1))] = 20,
    minutes: Annotated[float, option("How long about, on two cores.", metavar="M", rule=within("(0, inf)"))] = 5.0,
    seed: Annotated[int, option("Of their choice.", metavar="S", rule=at_least(0))] = 0,
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
    "The paper's whole evaluation, resumable, also on your own graph, and your own model in the same table.",
    examples(
        "pprop study list",
        "pprop study run quick --out study",
        "pprop study run --model mymodule:build --dataset cora_ml --out study",
        "pprop study run quick --graph mine.npz --out study",
        "pprop study report study",
    ),
    *(list_all, run, status, report, pack, merge, verify),
)


def _compute(
    store: Store, jobs: list[Job], watch: Watch, device: str, time_limit: float | None, *, first_alone: bool
) -> StudyOutcome:
    """Compute what is missing; `first_alone`: the others only if the first can be run, as they are there for it."""
    from pprop.study.run.runner import run_study

    if not first_alone:
        return run_study(store, jobs, watch, device=device, minutes=time_limit)
    begin = time.monotonic()
    own = run_study(store, jobs[:1], watch, device=device, minutes=time_limit)
    if own.refused:
        return own
    if time_limit is not None:
        time_limit = max(time_limit - (time.monotonic() - begin) / 60, 1e-6)
    every = run_study(store, jobs, watch, device=device, minutes=time_limit)
    return replace(every, found=every.found - own.computed, computed=every.computed + own.computed)
