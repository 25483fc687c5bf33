"""`tune`: a search for good settings, on labelled nodes alone."""

from __future__ import annotations

import hashlib
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from pprop._errors import DivergenceError, InputError
from pprop._process import TimeUp, check_interrupt, end_at, remember_interrupts
from pprop._validate import check_choice, check_float, check_int, describe, reject
from pprop.datasets import Split
from pprop.estimators import APPNPClassifier, MLPNodeClassifier, NodeClassifier, PPNPClassifier
from pprop.estimators.node import recommended_alpha, recommended_normalization, uses_bias
from pprop.estimators.reading import FitData, Given, StoppingNodes
from pprop.estimators.targets import Classes
from pprop.graph import Graph
from pprop.graph.files import path_of
from pprop.models import APPNP, MLP, PPNP, Model
from pprop.models.propagated_ones import propagated_ones
from pprop.scoring import Scoring
from pprop.settings import BACKEND, BIAS, DEVICE, POSITIVE, SCORING, Range
from pprop.training import Stopping, run_seed, train
from pprop.tuning.folder import BEST, add_trial, finished, open_study, propose, write_json
from pprop.tuning.space import FUNCTION, SETTINGS, Space

_MODELS: Mapping[str, tuple[Callable[..., Model], Callable[..., NodeClassifier]]] = {
    "appnp": (APPNP, APPNPClassifier),
    "ppnp": (PPNP, PPNPClassifier),
    "mlp": (MLP, MLPNodeClassifier),
}
# Settings that ``pprop train`` has options for.
IN_SHELL = (
    *("alpha", "steps", "normalization", "hidden", "dropout", "penalty"),
    *("learning_rate", "patience", "max_epochs"),
)
_OF_TRAINING = ("learning_rate", "patience", "max_epochs")


@final
@dataclass(frozen=True)
class TuningTrial:
    """One point of the space, and how it did.

    Attributes
    ----------
    settings
        The settings that vary.
    scores
        Accuracy, or value of the scoring, on the judging nodes of each holdout, shape (holdouts,). Where a training has
        diverged: zeros, or the worst value so far if that is lower.
    seconds
        Time of its training.

    Examples
    --------
    >>> TuningTrial({"alpha": 0.1}, scores=(0.75, 0.25), seconds=1.5).score
    0.5
    """

    settings: Mapping[str, Any]
    scores: tuple[float, ...]
    seconds: float

    @property
    def score(self) -> float:
        """The mean of the scores."""
        return math.fsum(self.scores) / len(self.scores)


@final
@dataclass(frozen=True)
class Tuned:
    """What a search has found.

    Attributes
    ----------
    model
        ``"appnp"``, ``"ppnp"`` or ``"mlp"``.
    settings
        The best settings, those that were fixed included: arguments of the classifier.
    score
        Their mean accuracy, or value of the scoring, on the judging nodes. As the best of many it is a little too good to expect elsewhere.
    default_score
        The same for the first trial: the defaults, or what is nearest to them in the space.
    trials
        All trials that came to an end, in their order.
    varied
        What was searched.
    seconds
        Time of this call.
    scoring
        What the trials were judged by; None: accuracy.

    Examples
    --------
    >>> trial = TuningTrial({"alpha": 0.3, "hidden": (64, 16)}, scores=(0.8,), seconds=1.0)
    >>> tuned = Tuned("appnp", trial.settings, 0.8, 0.8, (trial,), {}, 1.0)
    >>> tuned.command("citeseer")
    'pprop train citeseer --alpha 0.3 --hidden 64,16'
    """

    model: str
    settings: Mapping[str, Any]
    score: float
    default_score: float
    trials: tuple[TuningTrial, ...]
    varied: Mapping[str, Any]
    seconds: float
    scoring: Scoring | None = None

    def classifier(self, graph: Graph, **others: Any) -> NodeClassifier:
        """Return an unfitted classifier with the best settings; `others` are further arguments of its constructor."""
        judged = {} if self.scoring is None else {"scoring": self.scoring.name, "positive": self.scoring.positive}
        return _MODELS[self.model][1](graph, **{**self.settings, **judged, **others})

    def command(self, graph: str) -> str:
        """Return the command that trains a model with the best settings on a graph that is named as the shell does."""
        missing = sorted(set(self.settings) - set(IN_SHELL))
        if missing:
            raise InputError(f"'pprop train' has no option for {missing[0]!r}. Use classifier(graph) in Python.")
        options = [f"--{name.replace('_', '-')} {_shell(value)}" for name, value in self.settings.items()]
        model = [] if self.model == "appnp" else [f"--model {self.model}"]
        if self.scoring is not None:
            options.append(f"--scoring {self.scoring.name}")
            if self.scoring.metric.by_class and self.scoring.positive is not None:
                options.append(f"--positive {shlex.quote(str(self.scoring.positive))}")
        return " ".join(["pprop train", graph, *model, *options])


def tune(
    graph: Graph,
    X: ArrayLike | None,
    y: ArrayLike,
    *,
    stopping: StoppingNodes = 0.4,
    model: str = "appnp",
    space: Mapping[str, Any] | None = None,
    trials: int = 50,
    time_limit: float | None = None,
    holdouts: int = 4,
    seed: int = 0,
    folder: str | PathLike[str] | None = None,
    backend: str = BACKEND.default,
    device: str = DEVICE.default,
    scoring: str | None = SCORING.default,
    positive: Any = POSITIVE.default,
    progress: bool | None = None,
) -> Tuned:
    """Search for good settings of a model, judged by repeated holdout on labelled nodes.

    The first trial has the defaults, or what is nearest to them in the space, so that the result is never worse than these on
    the nodes that judge; the others are proposed by Optuna's TPE sampler. The runs of a trial, one per holdout, are
    trained together. Nodes that are not given here play no part: give no test nodes. The labels of the graph are not
    read.

    Parameters
    ----------
    graph
        With features.
    X, y
        Node positions and their classes, as for `APPNPClassifier.fit`.
    stopping
        Further nodes with their classes, ``(nodes, y)``; or a fraction in (0, 1) of the nodes in `X`, drawn anew for
        every holdout, that does not train. One half of them is for early stopping, the other judges.
    model
        ``"appnp"``, ``"ppnp"`` or ``"mlp"``.
    space
        From the name of a setting of the classifier to a `Range`, a list or an array of values to choose from, or a value
        to keep. What is not named keeps the classifier's default. None: alpha, steps, hidden, dropout, penalty and
        learning_rate, those of them that the model has, each over a wide range.
    trials
        So many trials in all, with those that are already in the folder.
    time_limit
        Seconds after which the search ends, if there is at least one trial; the trial in progress is given up.
    holdouts
        Holdouts, and runs, per trial.
    seed
        Of the holdouts, the runs and the proposals: the same seed gives the same search, interrupted or not, on a
        backend that gives the same bits.
    folder
        Where to keep the trials (SQLite) and the best settings (``best.json``). A search that was interrupted, killed
        or ended by its limits goes on there when it is called with the same arguments. None: in memory.
    backend, device
        As for `train`.
    scoring
        What judges the trials and ends each training, by scikit-learn's name, such as ``"average_precision"``. None:
        accuracy.
    positive
        Name of the class that is looked for. None: of two classes the rarer one.
    progress
        Whether to draw a progress bar on standard error; None: if that is a terminal.

    Returns
    -------
    Tuned

    Raises
    ------
    DivergenceError
        A training of the first trial diverges. A later trial of which one does gets scores of zero.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(8, 8))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(8))
    >>> space = {"alpha": pprop.Range(0.1, 0.9), "hidden": 4, "max_epochs": 3}
    >>> tuned = tune(graph, range(8), list("aaaabbbb"), stopping=0.5, space=space, trials=2, holdouts=1)
    >>> len(tuned.trials), sorted(tuned.settings), tuned.score >= tuned.default_score
    (2, ['alpha', 'hidden', 'max_epochs'], True)
    """
    begin = time.monotonic()
    if not isinstance(graph, Graph):
        reject("graph", FUNCTION, "a Graph", describe(graph))
    name = check_choice(model, "model", FUNCTION, tuple(SETTINGS))
    wanted = check_int(trials, "trials", FUNCTION, low=1)
    limit = None if time_limit is None else check_float(time_limit, "time_limit", FUNCTION, "(0, inf)")
    seed = check_int(seed, "seed", FUNCTION, low=0, high=2**64 - 1)
    given = Given.read(graph, X, y, FUNCTION, FUNCTION, stopping=stopping)
    times = check_int(holdouts, "holdouts", FUNCTION, low=1)
    splits, known, target = repeated_holdout(given, graph, times=times, seed=seed)
    judged = _scoring(scoring, positive, target, splits, known)
    bare = graph.replace(labels=None, class_names=None).scaled()
    bias = uses_bias(BIAS.default, bare)  # as the classifier with these settings
    search = Space.of(space, name)
    defaults = {name: setting.default for name, setting in SETTINGS[name].items()}
    if "alpha" in defaults:
        defaults["alpha"] = recommended_alpha(graph)
    if "normalization" in defaults:
        defaults["normalization"] = recommended_normalization(graph)
    for setting, value in search.corners():
        try:
            SETTINGS[name][setting].check(value, name)
        except InputError as error:
            raise InputError(f"The 'space' parameter of {FUNCTION} holds an impossible {setting!r}. {error}") from error

    def judge(point: Mapping[str, Any]) -> TuningTrial:
        """Train one run per holdout, and return the share of its judging nodes that each gets right, or their score."""
        settings = {**defaults, **search.fixed, **point}
        trained = train(
            _MODELS[name][0](bias=bias, **{key: value for key, value in settings.items() if key not in _OF_TRAINING}),
            bare,
            splits,
            seeds=[run_seed(seed, time) for time in range(times)],
            labels=known,
            stopping=Stopping(settings["patience"], settings["max_epochs"]),
            learning_rate=settings["learning_rate"],
            backend=backend,
            device=device,
            progress=False,
            scoring=judged,
        )
        if judged is not None:
            how = trained.model.propagation if isinstance(trained.model, Model) else None
            ones = None if how is None else propagated_ones(bare, how)  # as predict_proba of the classifier
            logits = trained.logits if ones is None else trained.logits / ones[:, None].astype(np.float32)
            found = zip(special.softmax(logits, axis=2), splits, strict=True)
            values = [judged(known[split.evaluation], row[split.evaluation]) for row, split in found]
            return TuningTrial(dict(point), tuple(values), trained.seconds)
        shares = [
            np.count_nonzero(row[split.evaluation] == known[split.evaluation]) / len(split.evaluation)
            for row, split in zip(trained.predict(), splits, strict=True)
        ]
        return TuningTrial(dict(point), tuple(shares), trained.seconds)

    place = None if folder is None else path_of(folder, "folder", FUNCTION)
    described = {
        "format": "pprop-tuning",
        "version": 1,
        "model": name,
        "space": search.to_json(),
        "holdouts": times,
        "seed": seed,
        "graph": graph.fingerprint,
        "nodes": _digest(splits, known),
    }
    if judged is not None:
        described |= {"scoring": judged.name, "positive": judged.positive}
    with open_study(place, described) as study, _show_trials(progress, wanted, judged) as report:
        done = [TuningTrial(*parts) for parts in finished(study, search)]
        report(len(done), max((trial.score for trial in done), default=None))
        end = None if limit is None else begin + limit
        with suppress(TimeUp), remember_interrupts():
            while len(done) < wanted and not (done and end is not None and time.monotonic() >= end):
                check_interrupt()
                token, point = propose(study, search, seed, len(done)) if done else (None, search.start(defaults))
                with end_at(end if done else None):
                    try:
                        trial = judge(point)
                    except DivergenceError:
                        if not done:
                            raise  # there is no trial yet that could be better
                        worst = 0.0 if judged is None else min(0.0, *(min(one.scores) for one in done))
                        trial = TuningTrial(dict(point), (worst,) * times, 0.0)
                add_trial(study, search, token, point, trial.scores, trial.seconds)
                done.append(trial)
                tuned = _tuned(name, search, done, begin, judged)
                if place is not None:
                    best = {name: getattr(tuned, name) for name in ("model", "settings", "score", "default_score")}
                    write_json(place / BEST, {**best, "trials": len(done)})
                report(len(done), tuned.score)
    return _tuned(name, search, done, begin, judged)


def save_figures(tuned: Tuned, folder: Path, title: str | None = None) -> None:
    """Write ``history`` and ``slices`` as PNG and SVG into a folder; needs the extra ``tune``."""
    from pprop.study.figures.model import draw_history, draw_slices, search_data
    from pprop.study.figures.style import save_figure

    choices = {name: values.log if isinstance(values, Range) else values for name, values in tuned.varied.items()}
    measure = None if tuned.scoring is None else tuned.scoring.words
    scores, settings = ([getattr(trial, name) for trial in tuned.trials] for name in ("score", "settings"))
    data = search_data(scores, settings, choices, measure)
    for name, figure in (("history", draw_history(data, title)), ("slices", draw_slices(data, title))):
        for kind in ("png", "svg"):
            folder.joinpath(f"{name}.{kind}").write_bytes(save_figure(figure, kind))


def repeated_holdout(
    given: Given, graph: Graph, *, times: int, seed: int
) -> tuple[tuple[Split, ...], NDArray[np.int64], Classes]:
    """Divide labelled nodes several times; the evaluation nodes of a split are those that judge.

    What `fit` would give to early stopping, nodes of their own or a fraction, drawn anew each time, is halved at
    random, class by class: one half stops, the other judges.

    Returns
    -------
    The splits, the class index of every node that has one (-1: none), and the classes.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((9, 9)))
    >>> given = Given.read(graph, range(8), list("abababab"), "tune", stopping=0.5)
    >>> splits, known, target = repeated_holdout(given, graph, times=2, seed=0)
    >>> splits[0]
    Split(4 train, 2 stopping, 2 validation, seed=0)
    >>> known, target.names
    (array([ 0,  1,  0,  1,  0,  1,  0,  1, -1]), array(['a', 'b'], dtype='<U1'))
    """
    splits: list[Split] = []
    data = None
    for number in range(times):
        # the seed of the first holdout is that of `fit`, which draws the same nodes
        with warnings.catch_warnings():  # of classes with a single node, which are refused below
            warnings.simplefilter("ignore")
            data = FitData.of(given, graph, (seed + number) % 2**64)
        divided, known = data.split, data.values
        held = np.unique(divided.stopping)
        if len(held) < 2 or len(np.intersect1d(held, divided.train)):
            reject("stopping", FUNCTION, "nodes, or a share, of which one half can stop and the other judge", "too few")
        random = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32, number])
        shuffled = held[random.permutation(len(held))]
        by_class = shuffled[np.argsort(known[shuffled], kind="stable")]
        splits.append(Split(divided.train, np.sort(by_class[::2]), np.sort(by_class[1::2]), number, test=False))
    assert data is not None
    return tuple(splits), data.values, data.classes


def _scoring(
    name: object, positive: object, target: Classes, splits: tuple[Split, ...], known: NDArray[np.int64]
) -> Scoring | None:
    """Return the scoring of the trials, for whose nodes it has a value; None: accuracy."""
    if name is None:
        return None
    counts = np.bincount(known[splits[0].train], minlength=target.columns)
    scoring = Scoring.read(name, target.names, counts, positive, function=FUNCTION)
    for split in splits:
        for nodes, what in ((split.stopping, "validation nodes"), (split.evaluation, "judging nodes")):
            scoring.check(known[nodes], what)
    return scoring


def _tuned(model: str, search: Space, done: list[TuningTrial], begin: float, scoring: Scoring | None) -> Tuned:
    best = max(done, key=lambda trial: trial.score)  # the first among equals
    settings = {**search.fixed, **best.settings}
    seconds = time.monotonic() - begin
    return Tuned(model, settings, best.score, done[0].score, tuple(done), dict(search.varied), seconds, scoring)


def _digest(splits: tuple[Split, ...], known: NDArray[np.int64]) -> str:
    """Return a hash of the nodes and labels of all holdouts."""
    digest = hashlib.sha256(known.tobytes())
    for split in splits:
        for part in (split.train, split.stopping, split.evaluation):
            digest.update(len(part).to_bytes(8, "little") + part.tobytes())
    return digest.hexdigest()


def _shell(value: object) -> str:
    return ",".join(map(str, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else str(value)


@contextmanager
def _show_trials(
    show: bool | None, trials: int, scoring: Scoring | None
) -> Generator[Callable[[int, float | None], None]]:
    """Draw a live line, if `show`, or if it is None and standard error is a terminal.

    The block gets a function of the number of trials and of the best score so far (None: there is none).
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda done, best: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("Tuning"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials{task.fields[best]},"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("", total=trials, best="")

        def report(done: int, best: float | None) -> None:
            text = "" if best is None else f", best {best:.1%}" if scoring is None else f", best {best:.3f}"
            bar.update(task, completed=done, best=text)

        yield report
