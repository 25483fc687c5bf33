"""``pprop tune``: search for good settings on the labelled nodes of a graph, never on its test nodes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pprop._errors import InputError
from pprop._optional import check_installed
from pprop._validate import counted, reject
from pprop.cli.errors import Checks, UsageError, WrongValueError
from pprop.cli.graphs import GraphArgument, GraphInput, TableOptions
from pprop.cli.models import FILES, write_artefact
from pprop.cli.output import Session, check_place, columns, new_folder, picked
from pprop.cli.report import overview
from pprop.cli.splits import SEED, SplitOptions, class_names
from pprop.cli.verbs import (
    OUTPUT,
    BackendOption,
    DeviceOption,
    NormalizationOption,
    at_least,
    check_machine,
    option,
    out_option,
    setting,
    verb,
    within,
)
from pprop.cli.words import Shell
from pprop.settings import BACKEND, DEVICE, POSITIVE, SCORING

if TYPE_CHECKING:
    from pprop.tuning import Tuned


class TunedModel(StrEnum):
    """The models that can be tuned."""

    APPNP = "appnp"
    PPNP = "ppnp"
    MLP = "mlp"


@verb(
    "tune",
    "pprop tune citeseer --out tuned --time-limit 10",
    "pprop tune citeseer --out tuned --space alpha=0.02:0.5:log --space hidden=32,64 --space max_epochs=2000",
    "pprop tune edges.csv --nodes nodes.csv --label-column topic --out tuned --trials 30 --fit",
    panel="Search",
    checks=True,
)
def tune(
    session: Session,
    graph: GraphArgument,
    *,
    model: Annotated[TunedModel, option("Model to tune.")] = TunedModel.APPNP,
    space: Annotated[
        list[str] | None,
        option(
            "Values of a setting: LOW:HIGH, LOW:HIGH:log, A,B,... or one. May be repeated.  [default: all common settings]",
            metavar="SETTING=VALUES",
        ),
    ] = None,
    normalization: NormalizationOption = None,
    trials: Annotated[int, option("Number of trials, earlier ones in the folder included.", rule=at_least(1))] = 50,
    time_limit: Annotated[
        float | None, option("Minutes after which the search ends.", metavar="MIN", rule=within("(0, inf)"))
    ] = None,
    holdouts: Annotated[int, option("Trainings per trial, each judged on other nodes.", rule=at_least(1))] = 4,
    seed: Annotated[int, option("Seed of the search; on your own graph also of the split.", rule=at_least(0))] = 0,
    scoring: Annotated[str | None, setting(SCORING)] = SCORING.default,
    positive: Annotated[str | None, setting(POSITIVE)] = POSITIVE.default,
    backend: BackendOption = BACKEND.default,
    device: DeviceOption = DEVICE.default,
    split: Annotated[SplitOptions, {"init_seed", "seed"}],
    tables: TableOptions,
    out: Annotated[Path, out_option("Folder of the search, new or to be continued.", "DIR")],
    fit: Annotated[
        bool, option("Train a model with the best settings, saved in DIR/model.", "--fit", panel=OUTPUT)
    ] = False,
) -> None:
    """Search for good settings of a model.

    The search uses the training and validation nodes of the split of 'pprop train', and never the test nodes. Run the same
    command again to continue a search that was interrupted; --trials and --time-limit may change.
    """
    origin, checks = GraphInput(graph, tables), session.checks
    checks.run(split.check, origin)
    if origin.path is not None:
        checks.run(SEED, seed, "seed", "tune")
    if split.stopping == 0 and split.split_column is None:
        checks.run(reject, "stopping", "tune", "above 0: validation nodes judge the trials", split.stopping)
    described = checks.run(read_space, space, str(model)) if space and "model" not in session.unread else None
    if normalization is not None and "model" not in session.unread:
        described = checks.run(_fixed, described, str(model), normalization)
    checks.run(check_place, out)
    checks.run(check_installed, "optuna", extra="tune", purpose="Tuning")
    checks.run(check_machine, backend, device)
    checks.run(origin.check, labels=True, split=split.columns, wrong_already=bool(checks))
    checks.settle()
    if origin.path is not None:
        split = replace(split, seed=seed)
    divided = split.read(origin)
    origin = split.without_column(origin)
    known = origin.read()
    made = split.draw(known, origin, divided)
    drawn = made.split
    title = f"{model.upper()} on {origin.title}"
    session.say(f"{title}: {overview(known, drawn)}")
    for line in (made.sentence, *(f"Caution: {each}" for each in made.cautions)):
        if line:
            session.say(line)
    from pprop.tuning import save_figures
    from pprop.tuning import tune as search
    from pprop.tuning.folder import BEST, write_json

    labels = class_names(known)
    watched = (drawn.stopping, labels[drawn.stopping])
    try:
        tuned = search(
            known,
            drawn.train,
            labels[drawn.train],
            stopping=watched,
            folder=out,
            model=str(model),
            space=described,
            trials=trials,
            holdouts=holdouts,
            seed=seed,
            backend=backend,
            device=device,
            scoring=scoring,
            positive=positive,
            time_limit=None if time_limit is None else 60 * time_limit,
        )
    finally:
        if out.exists():
            session.keep(out)
    command = tuned.command(shlex.join([graph, *tables.words(), *split.words()]))
    found: dict[str, Any] = picked(tuned, "model", "settings", "score", "default_score")
    write_json(out / BEST, {**found, "trials": len(tuned.trials), "command": command})
    if find_spec("matplotlib") is None:
        session.say("No figures were drawn: that needs matplotlib. Install it with: pip install matplotlib")
    else:
        save_figures(tuned, out, title)
    if tuned.scoring is not None:
        found |= {"scoring": tuned.scoring.name, "positive": tuned.scoring.positive}
    record = {
        **found,
        "scores": max(tuned.trials, key=lambda trial: trial.score).scores,
        "trials": len(tuned.trials),
        "seconds": tuned.seconds,
        "command": command,
        "out": out,
    }
    text = _text(tuned, command, out)
    if fit:  # as 'pprop train' would with the best settings; a model that is there is replaced
        best = tuned.classifier(known, random_state=made.seed, backend=backend, device=device)
        best.fit(drawn.train, labels[drawn.train], stopping=watched)
        with new_folder(out / "model", session, names=FILES, force=True) as folder:
            write_artefact(folder, best, origin.saved, session)
        record["model_out"] = out / "model"
        text += f"\nmodel saved in     {out / 'model'}"
    session.result(record, text)


def _text(tuned: Tuned, command: str, out: Path) -> str:
    shown = [[name, f"{value:.4g}" if isinstance(value, float) else value] for name, value in tuned.settings.items()]
    judged, before = f"judging accuracy   {tuned.score:.1%}", f"{tuned.default_score:.1%}"
    if tuned.scoring is not None:
        judged, before = f"judged by          {tuned.scoring.words}: {tuned.score:.3f}", f"{tuned.default_score:.3f}"
    lines = [
        columns(["setting", "best"], shown),
        "",
        f"{judged} (defaults: {before}), best of {counted(len(tuned.trials), 'trial')}",
        f"search in          {out}",
        f"Try: {command}",
    ]
    return "\n".join(lines)


def _fixed(space: dict[str, Any] | None, model: str, normalization: str) -> dict[str, Any]:
    """Return the space with one normalisation; refuse it for a model that does not propagate."""
    from pprop.tuning.space import SETTINGS

    known = SETTINGS[model]
    if "normalization" not in known:
        raise UsageError(f"--normalization belongs to models that propagate. {model} does not.")
    searched = {name: setting.search for name, setting in known.items() if setting.search is not None}
    return {**(space or searched), "normalization": normalization}


def read_space(texts: list[str], model: str) -> dict[str, Any]:
    """Return the space that options describe; refuse one without values to search, and values that the model cannot have.

    >>> read_space(["alpha=0.1:0.5", "dropout=0.3"], "appnp")
    {'alpha': Range(low=0.1, high=0.5, log=False), 'dropout': 0.3}
    """
    from pprop.tuning.space import SETTINGS, Range, Space

    found: dict[str, Any] = {}
    with Checks() as checks:
        for text in texts:
            name, values = checks.run(read_setting, text) or ("", None)
            if name in found:
                checks.add(WrongValueError(f"--space names {name!r} twice: give all of its values at once."))
            elif name and name not in SETTINGS[model]:
                known = ", ".join(SETTINGS[model])
                checks.add(WrongValueError(f"--space takes settings of {model}: {known}. Got {text!r}."))
            elif name:
                found[name] = values
    if not any(isinstance(values, Range | list) for values in found.values()):
        raise WrongValueError(
            "--space needs a setting with several values to search, such as alpha=0.02:0.5. "
            f"Got one value of {', '.join(found)}."
        )
    with Checks() as checks:
        for name, value in Space.of(found, model).corners():
            try:
                SETTINGS[model][name].check(value, "tune")
            except InputError as error:
                checks.add(InputError(Shell({name: f"--space {name}"}).argument(error)))
    return found


def read_setting(text: str) -> tuple[str, Any]:
    """Return a setting and the values to search.

    >>> read_setting("alpha=0.1:0.5:log"), read_setting("hidden=16,64"), read_setting("dropout=0.5")
    (('alpha', Range(low=0.1, high=0.5, log=True)), ('hidden', [16, 64]), ('dropout', 0.5))
    """
    from pprop.tuning import Range
    from pprop.tuning.tune import IN_SHELL

    name, found, values = text.partition("=")
    name = name.strip().replace("-", "_")
    numbers = [setting for setting in IN_SHELL if setting != "normalization"]  # which has an option of its own
    if not found or name not in numbers:
        raise WrongValueError(f"--space takes SETTING=VALUES, SETTING one of {', '.join(numbers)}, not {text!r}.")
    try:
        if ":" in values:
            low, high, *log = values.split(":")
            if log not in ([], ["log"]):
                raise ValueError
            return name, Range(_number(low), _number(high), log=bool(log))
        several = [_number(value) for value in values.split(",")]
    except ValueError:  # an InputError of Range, too
        raise WrongValueError(
            "--space takes numbers, as LOW:HIGH (LOW below HIGH), LOW:HIGH:log (LOW above 0), A,B,... or one value, not "
            f"{text!r}."
        ) from None
    return name, several if len(several) > 1 else several[0]


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
