"""``pprop study run``: what is missing of some experiments, or of one's own model beside APPNP and GCN."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop.cli.output import BAD_INPUT, UNFINISHED, DebugOption, DeviceOption, JsonOption, Session
from pprop.cli.text import columns, counted

if TYPE_CHECKING:
    from pprop.study.experiment import Experiment
    from pprop.study.runner import Job, Outcome
    from pprop.study.store import Store
    from pprop.study.versus import Versus

__all__ = ["EXAMPLES", "run"]

EXAMPLES = (
    "pprop study run quick --out study",
    "pprop study run gasteiger_2019_appnp_cora_ml --out study --runs 20 --time-limit 30",
    "pprop study run --model mymodule:build --dataset cora_ml --out study",
)
RIVALS = ("appnp", "gcn")


def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Experiments, groups ('pprop study list') or .toml files."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the study; may have rows.")] = ...,  # pyright: ignore[reportArgumentType]  required
    runs: Annotated[
        int | None, typer.Option("--runs", metavar="N", min=1, help="Runs of each cell.  [default: all]")
    ] = None,
    device: DeviceOption = "cpu",
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="MIN", help="End after so many minutes.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODULE:FUNCTION", help="Your own model: a function of the graph.")
    ] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="For --model: citeseer, cora_ml, ...")] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compute the runs that are missing; each is safe in the folder the moment it ends.

    Start it again after an interruption and it goes on; start it twice and both share the work. --model takes a function
    that gets the graph and returns a pprop model, a torch module from features (n, f) to logits (n, c), or an object with
    fit(nodes, y, stopping=(nodes, y)) and predict(nodes): it is compared with APPNP and GCN on the same runs.
    """
    with Session("study run", json=json, debug=debug) as session:
        if (model is None) == (not names) or (model is None) != (dataset is None):
            raise typer.BadParameter("Give names of experiments, or --model together with --dataset.")
        if model is not None and ":" not in model:
            raise typer.BadParameter(f"--model takes module:function, not {model!r}.")
        jobs = _own_jobs(model, dataset or "", runs) if model is not None else _jobs(names or [], runs)

        from pprop.study.own_files import keep_experiment
        from pprop.study.runner import run_study
        from pprop.study.store import Store
        from pprop.study.watch import show_study

        wanted = sum(len(job.seeds) for job in jobs)
        session.say(f"{counted(len(jobs), 'cell')}, {counted(wanted, 'run')}, into {out}")
        with Store.open(out, create=True) as store:
            session.keep(out)
            for name in names or []:
                if name.endswith(".toml"):
                    keep_experiment(Path(name), out)
            with show_study(session.say, len(jobs), wanted) as watch:
                outcome = run_study(store, jobs, watch, device=device, minutes=time_limit)
            compared = _compare(store, jobs) if model is not None else []
        session.result(_record(outcome, out, compared), _text(outcome, out, compared))
        if outcome.refused:
            raise typer.Exit(BAD_INPUT)
        if outcome.left:
            raise typer.Exit(UNFINISHED)


def _jobs(names: list[str], runs: int | None) -> list[Job]:
    from pprop.study.runner import Job

    return [
        Job(point.cell, experiment.seeds(runs, point.cell), experiment.alone)
        for experiment in _experiments(names)
        for point in experiment.points
    ]


def _experiments(names: list[str]) -> list[Experiment]:
    """Return the experiments of names, groups and files, each once."""
    from pprop._errors import InputError
    from pprop.study.experiment import load_experiments, read_experiment
    from pprop.study.zoo import nearest

    known = load_experiments()
    groups = sorted({group for experiment in known.values() for group in experiment.groups})
    found: dict[str, Experiment] = {}
    for name in names:
        if name.endswith(".toml"):
            chosen = [read_experiment(Path(name))]
        elif name in known:
            chosen = [known[name]]
        elif name in groups:
            chosen = [experiment for experiment in known.values() if name in experiment.groups]
        else:
            raise InputError(f"unknown experiment or group {name!r}.{nearest(name, [*groups, *known])}")
        found |= {f"{name if name.endswith('.toml') else experiment.name}": experiment for experiment in chosen}
    return list(found.values())


def _own_jobs(model: str, dataset: str, runs: int | None) -> list[Job]:
    from pprop.study.experiment import Experiment, Point
    from pprop.study.own_model import own_cell
    from pprop.study.runner import Job
    from pprop.study.zoo import make_cell

    rivals = [make_cell(name, {}, dataset) for name in RIVALS]
    cells = [own_cell(model, dataset), *rivals]
    experiment = Experiment(model, model, "accuracy", tuple(Point(cell, {}) for cell in cells))
    return [Job(cell, experiment.seeds(runs)) for cell in cells]


def _compare(store: Store, jobs: list[Job]) -> list[Versus]:
    from pprop.study.versus import compare_models

    own, *rivals = jobs
    return compare_models(store, own.cell, [job.cell for job in rivals], own.seeds)


def _record(outcome: Outcome, out: Path, compared: list[Versus]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "out": out,
        "wanted": outcome.wanted,
        "found": outcome.found,
        "computed": outcome.computed,
        "elsewhere": outcome.elsewhere,
        "left": outcome.left,
        "time_up": outcome.time_up,
        "refused": [{"cell": refused.cell.text, "reason": refused.reason} for refused in outcome.refused],
    }
    if compared:
        record["models"] = [
            {
                "model": each.cell.model,
                "runs": each.accuracy.count,
                "accuracy": each.accuracy.mean,
                "accuracy_interval": [each.accuracy.low, each.accuracy.high],
                "f1": each.f1.mean,
                "f1_interval": [each.f1.low, each.f1.high],
                "seconds": each.seconds,
                "p_runs": _number(each.over_runs),
                "p_splits": _number(each.over_splits),
            }
            for each in compared
        ]
    return record


def _number(test: Any) -> float | None:
    """Return the p-value of a test; None where there is none."""
    return None if test is None or test.p != test.p else test.p


def _text(outcome: Outcome, out: Path, compared: list[Versus]) -> str:
    lines: list[str] = []
    if compared:
        headings = ("model", "runs", "accuracy %", "F1", "s/run", "p over runs", "p over splits")
        rows = [
            (
                each.cell.model,
                each.accuracy.count,
                f"{100 * each.accuracy.mean:.2f} ± {100 * each.accuracy.half:.2f}",
                f"{each.f1.mean:.4f} ± {each.f1.half:.4f}",
                f"{each.seconds:.2f}",
                *(
                    "-" if number is None else f"{number:.2g}"
                    for number in map(_number, (each.over_runs, each.over_splits))
                ),
            )
            for each in compared
        ]
        lines += [
            columns(headings, rows),
            f"p: paired t-tests of {compared[0].cell.model} against each of the others",
            "",
        ]
    lines.append(f"{counted(outcome.computed, 'run')} computed, {outcome.found} there before, of {outcome.wanted}.")
    if outcome.elsewhere:
        lines.append(f"{counted(outcome.elsewhere, 'run')} being computed by another process.")
    lines += [f"Refused: {refused.cell.text}: {refused.reason}" for refused in outcome.refused]
    if outcome.left:
        why = "The time limit has come. " if outcome.time_up else ""
        lines.append(f"{why}{counted(outcome.left, 'run')} left: run the same command again to go on.")
    lines.append(f"Try: pprop study report {out}")
    return "\n".join(lines)
