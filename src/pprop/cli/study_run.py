"""``pprop study run``: compute what is missing of some experiments, or of a user's model beside APPNP and GCN."""

from __future__ import annotations

import difflib
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._errors import InputError
from pprop.cli.output import BAD_INPUT, UNFINISHED, Session, columns, counted, picked
from pprop.cli.verbs import DeviceOption, option, verb
from pprop.settings import DEVICE

if TYPE_CHECKING:
    from pprop.study.experiment import Experiment
    from pprop.study.run.progress import Watch
    from pprop.study.run.runner import Job, StudyOutcome
    from pprop.study.stats.estimate import Estimate
    from pprop.study.stats.paired import Paired, Versus
    from pprop.study.store.store import Store


RIVALS = ("appnp", "gcn")
FOLDER = Path("study")


@verb(
    "study run",
    "pprop study run quick --out study",
    "pprop study run gasteiger_2019_appnp_cora_ml --out study --runs 20 --time-limit 30",
    "pprop study run --model mymodule:build --dataset cora_ml",
)
def run(
    session: Session,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Experiments, groups ('pprop study list') or .toml files."),
    ] = None,
    out: Annotated[Path, option("Folder of the study; may have rows.", metavar="DIR", show_default="study")] = FOLDER,
    runs: Annotated[int | None, option("Runs of each cell.  [default: all]", metavar="N", min=1)] = None,
    device: DeviceOption = DEVICE.default,
    time_limit: Annotated[float | None, option("End after so many minutes.", metavar="MIN")] = None,
    model: Annotated[str | None, option("Your own model: a function of the graph.", metavar="MODULE:FUNCTION")] = None,
    dataset: Annotated[str | None, option("For --model: citeseer, cora_ml, ...")] = None,
) -> None:
    """Compute the runs that are missing; each is stored in the folder as soon as it ends.

    Start it again after an interruption and it goes on; start it twice and both share the work. --model takes a function
    that gets the graph and returns a pprop model, a torch module from features (n, f) to logits (n, c), or an object with
    fit(nodes, y, stopping=(nodes, y)) and predict(nodes): it is compared with APPNP and GCN on the same runs. A torch module
    gets the features as stored, not normalised; a parameter seed of the function gets the seed of each run.
    """
    if (model is None) == (not names) or (model is None) != (dataset is None):
        raise typer.BadParameter("Give names of experiments, or --model together with --dataset.")
    if model is not None and ":" not in model:
        raise typer.BadParameter(f"--model takes module:function, not {model!r}.")
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise typer.BadParameter(f"--time-limit takes minutes, more than 0, not {time_limit:g}.")
    if device not in ("cpu", "cuda"):
        raise typer.BadParameter(f"--device takes cpu or cuda, not {device!r}.")
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"--out takes a folder, and {str(out)!r} is a file.")

    from pprop.study.experiment_folder import keep_experiment
    from pprop.study.run.progress import show_study
    from pprop.study.run.runner import place_of
    from pprop.study.store.store import Store

    place_of(device)  # refused before there is a folder
    jobs = _own_jobs(model, dataset or "", runs) if model is not None else _jobs(names or [], runs, out)
    wanted = sum(len(job.seeds) for job in jobs)
    session.say(f"{counted(len(jobs), 'cell')}, {counted(wanted, 'run')}, into {out}")
    with Store.open(out, create=True) as store:
        session.keep(out)
        for name in names or []:
            if name.endswith(".toml"):
                keep_experiment(Path(name), out)
        with show_study(session.say, len(jobs), wanted) as watch:
            outcome = _compute(store, jobs, watch, device, time_limit, first_alone=model is not None)
        compared: list[Versus] = []
        if model is not None:
            from pprop.study.stats.paired import compare_models

            own, *rivals = jobs
            compared = compare_models(store, own.cell, [job.cell for job in rivals], own.seeds)
    session.result(_record(outcome, out, compared), _text(outcome, out, compared))
    if outcome.refused:
        raise typer.Exit(BAD_INPUT)
    if outcome.left:
        raise typer.Exit(UNFINISHED)


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


def _jobs(names: list[str], runs: int | None, out: Path) -> list[Job]:
    """Return the cells of names, groups and files, each once; names also of files kept in the study's folder."""
    from pprop.study.experiment import read_experiment
    from pprop.study.experiment_folder import experiments_of
    from pprop.study.run.runner import Job

    known = experiments_of(out)
    groups = sorted({group for experiment in known.values() for group in experiment.groups})
    found: dict[str, Experiment] = {}
    for name in names:
        if name.endswith(".toml"):
            found[name] = read_experiment(Path(name))
        elif name in known:
            found[name] = known[name]
        elif name in groups:
            found |= {each.name: each for each in known.values() if name in each.groups}
        else:
            near = difflib.get_close_matches(name.lower(), [*groups, *known], n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Groups are: {', '.join(groups)}."
            raise InputError(f"unknown experiment or group {name!r}. {hint} All names: pprop study list.")
    return [
        Job(point.cell, experiment.seeds(runs, point.cell), experiment.alone)
        for experiment in found.values()
        for point in experiment.points
    ]


def _own_jobs(model: str, dataset: str, runs: int | None) -> list[Job]:
    from pprop.study.cell import make_cell
    from pprop.study.experiment import Experiment, Point
    from pprop.study.run.recipe import Datasets, Place
    from pprop.study.run.runner import Job
    from pprop.study.run.user_model import user_cell, user_recipe

    rivals = [make_cell(name, {}, dataset) for name in RIVALS]
    cells = [user_cell(model, dataset), *rivals]
    user_recipe(cells[0], Datasets().of(cells[0]), Place("cpu", "numba"))  # refused before anything is there
    experiment = Experiment(model, model, "accuracy", tuple(Point(cell, {}) for cell in cells))
    return [Job(cell, experiment.seeds(runs)) for cell in cells]


def _record(outcome: StudyOutcome, out: Path, compared: list[Versus]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "out": out,
        **picked(outcome, "wanted", "found", "computed", "elsewhere", "left", "time_up"),
        "refused": [{"cell": refused.cell.text, "reason": refused.reason} for refused in outcome.refused],
    }
    if compared:
        record["models"] = [
            {
                "model": each.cell.model,
                "runs": each.accuracy.runs,
                "accuracy": each.accuracy.mean,
                "accuracy_interval": _interval(each.accuracy),
                "f1": each.f1.mean,
                "f1_interval": _interval(each.f1),
                "seconds": each.seconds,
                "p_runs": each.over_runs and each.over_runs.p,
                "p_splits": each.over_splits and each.over_splits.p,
                "p_runs_holm": each.over_runs and each.over_runs.holm,
                "p_splits_holm": each.over_splits and each.over_splits.holm,
            }
            for each in compared
        ]
    return record


def _interval(summary: Estimate) -> list[float] | None:
    """Return the ends of an interval; a single run has none."""
    return None if summary.runs < 2 else [summary.low, summary.high]


def _measure(summary: Estimate, scale: float, decimals: int) -> str:
    mean = f"{scale * summary.mean:.{decimals}f}"
    return mean if summary.runs < 2 else f"{mean} ± {scale * summary.half:.{decimals}f}"


def _p(test: Paired | None) -> str:
    return "-" if test is None or math.isnan(test.holm) else f"{test.holm:.2g}"


def _text(outcome: StudyOutcome, out: Path, compared: list[Versus]) -> str:
    lines: list[str] = []
    if compared:
        headings = ("model", "runs", "accuracy %", "F1", "s/run", "p over runs", "p over splits")
        rows = [
            (
                each.cell.model,
                each.accuracy.runs,
                _measure(each.accuracy, 100, 2),
                _measure(each.f1, 1, 4),
                f"{each.seconds:.2f}",
                _p(each.over_runs),
                _p(each.over_splits),
            )
            for each in compared
        ]
        lines.append(columns(headings, rows))
        if any(each.over_runs for each in compared):
            own = compared[0].cell.model
            lines.append(f"p: paired t-tests of {own} against each of the others, with Holm's correction")
        lines.append("")
    lines.append(f"{counted(outcome.computed, 'run')} computed, {outcome.found} there before, of {outcome.wanted}.")
    if outcome.elsewhere:
        lines.append(f"{counted(outcome.elsewhere, 'run')} being computed by another process.")
    lines += [f"Refused: {refused.cell.text}: {refused.reason}" for refused in outcome.refused]
    if outcome.left:
        why = "The time limit has come. " if outcome.time_up else ""
        lines.append(f"{why}{counted(outcome.left, 'run')} left: run the same command again to go on.")
    lines.append(f"Try: pprop study report {out}")
    return "\n".join(lines)
