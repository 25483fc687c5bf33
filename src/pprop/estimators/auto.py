"""The best of several classifiers, or the mean of the best, by validation nodes: from the majority to APPNP and beyond."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from types import MappingProxyType
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from pprop import settings
from pprop._errors import InputError
from pprop._process import compiling
from pprop._validate import warn
from pprop.estimators.appnp import APPNPClassifier, APPNPClassifierCV, MLPNodeClassifier
from pprop.estimators.blend import BlendClassifier, fit_member
from pprop.estimators.columns import ColumnsClassifier
from pprop.estimators.ensemble import APPNPEnsembleClassifier
from pprop.estimators.fitted import Fitted, check_same_graph, log_geometric_mean
from pprop.estimators.gprgnn import GPRGNNClassifier
from pprop.estimators.judgement import Judging
from pprop.estimators.label_propagation import LabelPropagationClassifier
from pprop.estimators.node import GRAPH, RANDOM_STATE, NodeClassifier, parameters
from pprop.estimators.reading import Given, class_weights, seed_of
from pprop.estimators.residual import ResidualClassifier
from pprop.estimators.targets import Classes, hold_out, known_labels
from pprop.graph import Graph
from pprop.scoring import Forecast, Scoring, default_scoring, ends, resample

# Strength with which APPNP's errors at known nodes correct the others. Of 0.03, 0.1 and 0.3, with stopping labels, it
# is the best or as good as the best on all four graphs of the paper (docs/accuracy.md, "What can be done after training").
REUSE = 0.3
ALPHAS = (0.1, 0.3, 0.5)
# Candidates that are averaged, at most.
MOST = 4
# Resamples of the validation nodes that intervals and standard errors come from.
RESAMPLES = 300
# Of the stopping nodes that the user gives, this share chooses.
HALF = 0.5


@final
@dataclass(frozen=True)
class Way:
    """One kind of candidate.

    Attributes
    ----------
    make, own
        The class, and the settings that it has in place of those of `AutoClassifier`.
    estimator
        Makes the `estimator` of a `ColumnsClassifier` from a seed; None: the classifier has its own, or none.
    features
        Whether it needs features.
    labels
        From how many labelled nodes on it is tried.
    reads_labels
        Whether it is nothing without labels of training nodes as inputs. Others are told by their `label_inputs`.
    """

    make: type[NodeClassifier]
    own: Mapping[str, Any] = field(default_factory=dict[str, Any])
    estimator: Callable[[int], Any] | None = None
    features: bool = True
    labels: int = 0
    reads_labels: bool = False


def _linear(seed: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000, random_state=seed))


def _forest(seed: int) -> Any:
    kind: Any = RandomForestClassifier
    return kind(200, min_samples_leaf=2, random_state=seed)


# It learns from the labels of the validation nodes, too, instead of being measured by them.
COLUMNS: Mapping[str, Any] = MappingProxyType({"stopping": None})
# Its network is another one than that of APPNP: its own settings.
RESIDUAL: Mapping[str, Any] = MappingProxyType(
    {
        name: setting.default
        for name, setting in settings.settings_of(ResidualClassifier).items()
        if name in ("hidden", "dropout", "penalty", "max_epochs")
    }
)
# With fewer labelled nodes a network that learns how neighbours differ is worse than trees and than APPNP.
MANY_LABELS = 1000

# In the order in which they are tried, the simple and fast ones first; among equals the first is chosen.
CANDIDATES: Mapping[str, Way] = MappingProxyType(
    {
        # without propagation a node has the label that was given, or else the shares of the classes
        "majority": Way(LabelPropagationClassifier, {"alpha": 1.0, "class_weight": None}, features=False),
        "label_propagation": Way(LabelPropagationClassifier, features=False, reads_labels=True),
        "network": Way(MLPNodeClassifier),
        "linear": Way(ColumnsClassifier, COLUMNS, _linear, features=False),
        "boosting": Way(ColumnsClassifier, COLUMNS, features=False),
        "appnp": Way(APPNPClassifier),
        "appnp_row": Way(APPNPClassifierCV, {"alphas": ALPHAS, "normalization": "row"}),
        "appnp_label_reuse": Way(
            APPNPEnsembleClassifier, {"members": 1, "rounds": 0, "spread_errors": REUSE}, reads_labels=True
        ),
        "forest": Way(ColumnsClassifier, COLUMNS, _forest, features=False),
        "gprgnn": Way(GPRGNNClassifier, labels=MANY_LABELS),
        "residual": Way(ResidualClassifier, RESIDUAL, labels=MANY_LABELS),
    }
)


@final
@dataclass(frozen=True)
class Candidate:
    """What became of one candidate.

    Attributes
    ----------
    name
        One of the names that `AutoClassifier` lists.
    score, low, high
        On the validation nodes, and the 95 % interval from resamples of them; NaN where it was not tried.
    seconds
        Of its fit and its predictions, without the compilation of kernels.
    left_out
        Why it was not tried; empty where it was.
    """

    name: str
    score: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seconds: float = 0.0
    left_out: str = ""


@final
@dataclass(frozen=True, eq=False)
class Trial:
    """What candidates learn from, and the nodes that they are judged by.

    Attributes
    ----------
    learn
        Nodes and labels without those of the judges.
    nodes, codes, weights
        Validation nodes, their classes by index and how much they count, shape (m,).
    """

    learn: Given
    nodes: NDArray[np.int64]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]


@final
@parameters
class AutoClassifier(NodeClassifier):
    """Tries several classifiers, judges them by validation nodes, and keeps the best, or the mean of the best.

    The candidates, in the order in which they are tried:

    - ``"majority"``: the shares of the classes;
    - ``"label_propagation"``: `LabelPropagationClassifier`, which reads no features;
    - ``"network"``: `MLPNodeClassifier`, which reads no edges;
    - ``"linear"``: `ColumnsClassifier`, columns of each node's surroundings, standardised, in a logistic regression with
      ``C=0.1``;
    - ``"boosting"``: the same columns in gradient boosting;
    - ``"appnp"``: `APPNPClassifier`, where `normalization` is None with the paper's ``"sym"``;
    - ``"appnp_row"``: `APPNPClassifierCV` with the matrix normalised by rows and alpha 0.1, 0.3 or 0.5;
    - ``"appnp_label_reuse"``: APPNP with its errors at known nodes spread to the other nodes (`APPNPEnsembleClassifier` with
      ``members=1, rounds=0, spread_errors=0.3``);
    - ``"forest"``: the columns of ``"boosting"`` in a random forest of 200 trees with at least two nodes in a leaf;
    - ``"gprgnn"``: `GPRGNNClassifier`, APPNP with learned weights of hops, from 1,000 labelled nodes on;
    - ``"residual"``: `ResidualClassifier`, a deep network that reads training labels, from 1,000 labelled nodes on. It takes
      longer than all others together.

    They are judged by nodes that no candidate learns from: half of the nodes that `fit` is given as `stopping`, or else of
    every class the share `validation` of all nodes. The measure is `scoring`. The best is taken, among equals the first in the
    order above. Candidates that are less than one standard error worse, which resamples of the validation nodes tell, are as
    good: the geometric mean of the probabilities of at most four of them takes the place of the best, unless it is worse
    on the validation nodes. Where nothing is better than the majority, it is kept alone. What is kept is then fitted once
    more, to all labels. With a `class_weight`, nodes count by it.

    Labels of validation nodes are used for more than early stopping. The models on columns (``"linear"``, ``"boosting"``
    and ``"forest"``), ``"majority"`` and ``"label_propagation"`` stop nothing: they learn from the labels of all nodes that
    `fit` is given as `stopping`. ``"appnp_label_reuse"`` spreads its errors at these nodes. Of the nodes that judge, this
    holds for the last fit alone. On the paper's splits, therefore, the accuracy of what is kept cannot be compared with that of
    models that use these labels for early stopping only, such as `APPNPClassifier`. State this beside the accuracy.

    A `threshold` is chosen on the same validation nodes, before the last fit. With ``label_inputs=False`` no candidate
    reads labels of training nodes: label propagation and ``"appnp_label_reuse"`` are left out.

    Samples are nodes, as in `APPNPClassifier`.

    Attributes
    ----------
    best_, chosen_
        The fitted classifier, a `BlendClassifier` where several are averaged, and the names of the candidates in it, the best
        first. `predict`, `explain`, `save` and the others are those of `best_`, and `pprop.load` returns it.
    candidates_
        What became of each candidate, in their order: name, score, interval, seconds, and why it was not tried.
    scores_
        The scores of those that were tried, by name. The best of several is a little too good to expect of other nodes.
    score_
        The score of what is kept, before the last fit.
    scoring_, why_
        What they are judged by, and why, in a sentence.
    validation_nodes_
        The nodes that they are judged by.
    classes_, logits_, known_nodes_, known_labels_, n_unlabelled_, n_features_in_
        Those of the classifier.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> ring = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(40, 40))
    >>> graph = pprop.Graph.from_scipy(ring)
    >>> y = np.array(["left"] * 20 + ["right"] * 20)
    >>> model = AutoClassifier(graph, random_state=0).fit(range(0, 40, 2), y[::2])
    >>> model.chosen_[0], model.scores_["majority"], model.scores_["label_propagation"]
    ('label_propagation', 0.5, 1.0)
    >>> model.predict([1, 37])
    array(['left', 'right'], dtype='<U5')
    >>> print(model.why_)
    Judged by accuracy: no class that is looked for is rare.
    """

    _stopping_nodes_also = "its candidates stop by other nodes than they train on"

    graph: Graph = dataclasses.field(
        kw_only=False,
        metadata={"setting": GRAPH.but(None, "With features or without. Shared, not copied, in a clone.")},
    )
    scoring: str | None = settings.AUTO_SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    label_inputs: bool = settings.MEMBERS_READ_LABELS.field()
    time: float | None = settings.TIME.field()
    alpha: float | None = settings.TELEPORT.field()
    validation: float = settings.VALIDATION.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        # the time to compile kernels, once on a machine, is not that of the candidates
        begin, seed = time.perf_counter() - compiling.seconds, seed_of(self.random_state, type(self).__name__)
        every = given.all_labels()
        target = Classes.of(every.labels)
        codes = known_labels(every.nodes, target.encode(every.labels), self.graph.n_nodes)
        counts = np.bincount(codes[codes >= 0], minlength=target.columns)
        if values["scoring"] is None:
            scoring, self.why_ = default_scoring(target.names, counts, values["positive"])
        else:
            scoring = Scoring.read(values["scoring"], target.names, counts, values["positive"])
            self.why_ = f"Judged by the {scoring.words}."
        self.scoring_ = scoring
        trial = self._trial(given, target, scoring, seed)
        judged = Judging.read(
            target.names,
            codes[codes >= 0],
            np.empty(0, dtype=np.int64) if trial is None else trial.codes,
            values | {"scoring": None, "positive": scoring.positive},
            type(self).__name__,
        )
        names: Sequence[str] = ("label_propagation",)
        kept = np.empty((0, target.columns))
        self.candidates_: tuple[Candidate, ...] = ()
        self.score_ = math.nan
        if trial is None:
            warn(
                f"Every class has one node only, so there is none for {type(self).__name__} to choose by: "
                "label propagation is taken."
            )
            self.validation_nodes_ = given.nodes[:0]
        else:
            self.validation_nodes_ = np.unique(trial.nodes)
            outcomes = self._try_all(trial, every, begin, seed)
            names = self._choose(trial, outcomes)
            kept = np.exp(log_geometric_mean([outcomes[name].probabilities for name in names]))
        self.chosen_ = tuple(names)
        if values["verbose"]:
            sys.stderr.write(f"Fitting {' and '.join(names)} to all labels\n")
        members = [self._candidate(name, seed) for name in names]
        self.best_ = members[0] if len(members) == 1 else BlendClassifier(self.graph, members=members)
        best = fit_member(self.best_, given)
        fitted = best.fitted_ if trial is None else judged.decided_by(best.fitted_, trial.codes, kept)
        target = replace(fitted.classes, scoring=None if values["scoring"] is None else scoring)
        best.fitted_ = replace(fitted, target=target, unlabelled=given.unlabelled, missing_labels=given.missing_labels)
        return replace(best.fitted_, record=None, history=None)  # `best_` has those of its own training

    def _trial(self, given: Given, target: Classes, scoring: Scoring, seed: int) -> Trial | None:
        """Set nodes aside that judge: half of the stopping nodes, or nodes of X; None where every class has one node only.

        Where none of the stopping nodes can be judged by the measure, such as without a node of a rare class, nodes of X
        judge.
        """
        (nodes, labels), fraction = given.validation()
        much = np.ones(len(given.nodes)) if given.weights is None else given.weights
        draw = (seed + 1) % 2**64  # not that of the stopping nodes
        parts: list[Trial] = []
        if fraction is None and len(nodes):
            found = _set_aside(nodes, target.encode(labels), HALF, draw)
            if found.any() and not found.all():
                learn = replace(given, stopping=(nodes[~found], labels[~found]))
                parts.append(self._judges(learn, nodes[found], labels[found], np.ones(int(found.sum())), target))
        found = _set_aside(given.nodes, target.encode(given.labels), self.validation, draw)
        if found.any():
            weights = None if given.weights is None else given.weights[~found]
            learn = replace(given, nodes=given.nodes[~found], labels=given.labels[~found], weights=weights)
            parts.append(self._judges(learn, given.nodes[found], given.labels[found], much[found], target))
        if not parts:
            return None
        for part in parts[:-1]:
            try:
                scoring.check(part.codes, "validation nodes")
            except InputError:
                continue
            return part
        scoring.check(parts[-1].codes, "validation nodes")
        return parts[-1]

    def _judges(
        self,
        learn: Given,
        nodes: NDArray[np.int64],
        labels: NDArray[Any],
        much: NDArray[np.float64],
        target: Classes,
    ) -> Trial:
        codes = target.encode(labels)
        return Trial(learn, nodes, codes, much * class_weights(self.class_weight, codes, much, target.names)[codes])

    def _try_all(self, trial: Trial, every: Given, begin: float, seed: int) -> dict[str, Forecast]:
        """Fit the candidates one after another; return what they predict of the validation nodes, by name."""
        outcomes: dict[str, Forecast] = {}
        rows: list[Candidate] = []
        errors: list[InputError] = []
        for number, (name, way) in enumerate(CANDIDATES.items(), 1):
            reason = self._left_out(way, every) or self._late(rows, begin)
            if not reason:
                if self.verbose:
                    sys.stderr.write(f"Candidate {number} of {len(CANDIDATES)}: {name}\n")
                start, compiled = time.perf_counter(), compiling.seconds
                try:
                    model = fit_member(self._candidate(name, seed), trial.learn)
                    outcome = Forecast(trial.codes, model.predict_proba(trial.nodes))
                except InputError as error:
                    errors.append(error)
                    reason = str(error)
                else:
                    outcomes[name] = outcome
                    seconds = time.perf_counter() - start - (compiling.seconds - compiled)
                    score = self.scoring_.judge(outcome, trial.weights).value
                    rows.append(Candidate(name, score, *ends(self._resampled(trial, outcome)), seconds))
            if reason:
                rows.append(Candidate(name, left_out=reason))
        self.candidates_ = tuple(rows)
        if not outcomes:
            raise errors[0]
        return outcomes

    def _left_out(self, way: Way, every: Given) -> str:
        """Return why a candidate cannot be tried on this graph; empty: it can."""
        if way.features and self.graph.features is None:
            return "the graph has no features"
        if way.reads_labels and not self.label_inputs:
            return "it reads labels of training nodes"
        if len(every.nodes) < way.labels:
            return f"it needs {way.labels:,} labelled nodes, and there are {len(every.nodes):,}"
        return ""

    def _late(self, rows: Sequence[Candidate], begin: float) -> str:
        """Return that the time has run out: what remains is kept for the last fit of the candidates that lead."""
        tried = sorted((row for row in rows if not row.left_out), key=lambda row: -row.score)
        if self.time is None or not tried:
            return ""
        last = sum(row.seconds for row in tried[:MOST])
        used = time.perf_counter() - compiling.seconds - begin
        return f"the time of {self.time:g} s was used up" if used + last >= self.time else ""

    def _resampled(self, trial: Trial, outcome: Forecast) -> NDArray[np.float64]:
        """Return the score for resamples of the validation nodes, the same ones for each candidate."""
        drawn = resample(len(trial.nodes), RESAMPLES)
        return np.array([self.scoring_.judge(outcome, weights * trial.weights).value for weights in drawn])

    def _choose(self, trial: Trial, outcomes: Mapping[str, Forecast]) -> list[str]:
        """Return the names of the best candidate and of those whose mean with it is at least as good."""
        scores = self.scores_
        order = sorted(scores, key=lambda name: -scores[name])  # equals remain in the order of the trials
        best, *others = order
        self.score_ = scores[best]
        if best == "majority":
            return [best]
        ours, names = self._resampled(trial, outcomes[best]), [best]
        for name in others:
            if name == "majority" or len(names) == MOST:
                continue
            difference = ours - self._resampled(trial, outcomes[name])
            if scores[best] - scores[name] <= np.nanstd(difference):
                names.append(name)
        mean = np.exp(log_geometric_mean([outcomes[name].probabilities for name in names]))
        together = self.scoring_.judge(Forecast(trial.codes, mean), trial.weights).value
        if len(names) == 1 or together < scores[best]:
            return [best]
        self.score_ = together
        return names

    @property
    def scores_(self) -> dict[str, float]:
        """The scores of the candidates that were tried, by name."""
        return {row.name: row.score for row in self.candidates_ if not row.left_out}

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Write the chosen classifier to a folder, with the options of its own `save`; `pprop.load` returns that one."""
        check_is_fitted(self)
        check_same_graph(self)
        self.best_.save(path, **options)

    def on(self, graph: Graph) -> NodeClassifier:
        """Return the chosen classifier on another graph; see `APPNPClassifier.on`."""
        check_is_fitted(self)
        return self.best_.on(graph)

    def _candidate(self, name: str, seed: int) -> NodeClassifier:
        way = CANDIDATES[name]
        names = {field.name for field in dataclasses.fields(cast("Any", way.make))}
        names -= {
            "scoring",
            "positive",
            "threshold",
        }  # of the choice: the candidates end their trainings by the paper's rule
        settings = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name in names}
        settings |= way.own
        if "max_epochs" in way.own:
            settings["max_epochs"] = min(way.own["max_epochs"], self.max_epochs)
        if name == "appnp" and self.normalization is None:
            settings["normalization"] = "sym"  # the paper's: "appnp_row" is the other one
        if way.estimator is not None:
            settings["estimator"] = way.estimator(seed % 2**32)  # as scikit-learn takes it
        if "alphas" in settings and self.alpha is not None:
            settings["alphas"] = (self.alpha,)
        if "random_state" in names:
            settings["random_state"] = seed
        return way.make(**settings)


def _set_aside(nodes: NDArray[np.int64], codes: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Return which nodes choose, shape (m,); none where every class has one node only."""
    several = np.unique(codes[np.unique(nodes, return_index=True)[1]], return_counts=True)[1] > 1
    if not several.any():
        return np.zeros(len(nodes), dtype=np.bool_)
    return np.isin(nodes, hold_out(nodes, codes, fraction, seed)[1])
