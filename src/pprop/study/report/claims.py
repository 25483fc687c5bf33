"""What the paper claims, as a table: each claim has a figure, which is computed from the rows, and a sentence written by hand.

No code decides whether a claim holds. When a figure changes, a person reads the sentence beside it again: the figures that
the sentences were written about are kept in ``results/claims.csv``, which a test compares with the rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias, final

from pprop.datasets import DATASETS
from pprop.study.report.measures import MEASURES, OF_GRAPHS, OF_ROWS, Measurement
from pprop.study.report.results import Results
from pprop.study.tables.entries import dataset_title
from pprop.study.tables.table import Cells, Strong, Table, listed

# How a person reads a figure. A finding is no claim of the paper's text, or a fact of each graph.
Reading: TypeAlias = Literal["holds", "does not hold", "open", "not comparable", "finding"]


@final
@dataclass(frozen=True)
class Claim:
    """A statement of the paper about one dataset, the measure of it, and what its figure says.

    Attributes
    ----------
    said
        The statement, with the paper's section.
    about
        A dataset, or ``"all"``.
    measure
        A name in `MEASURES`; empty for a statement that tests check and that has no figure.
    reading
        In a word, by hand.
    sentence
        By hand, about the figure of the published rows. ``{value}``, ``{low}`` and ``{high}`` are its numbers.

    Examples
    --------
    >>> CLAIMS[-1].about in ("all", *DATASETS), CLAIMS[-1].measure in MEASURES
    (True, True)
    """

    said: str
    about: str
    measure: str
    reading: Reading
    sentence: str


@final
@dataclass(frozen=True)
class ClaimFigure:
    """A claim with its figure; None for a claim that has no measure."""

    claim: Claim
    figure: Measurement | None

    @property
    def sentence(self) -> str:
        """The sentence with the numbers of the figure.

        >>> ClaimFigure(Claim("", "all", "", "holds", "It is {value}."), Measurement(1.0, 0.5, 1.5, "points", "2 splits")).sentence
        'It is 1.00.'
        """
        return self.claim.sentence if self.figure is None else self.claim.sentence.format(**self.figure.words)


_Read: TypeAlias = tuple[Reading, str]


def _on(said: str, measure: str, **readings: _Read) -> Iterator[Claim]:
    """Yield a claim for each dataset that is named."""
    for about, (reading, sentence) in readings.items():
        yield Claim(said, about, measure, reading, sentence)


def _everywhere(said: str, measure: str, reading: Reading, sentence: str) -> Iterator[Claim]:
    """Yield a claim for each of the paper's datasets, all with one reading."""
    return _on(said, measure, **dict.fromkeys(DATASETS, (reading, sentence)))


def _tested(said: str, sentence: str) -> Iterator[Claim]:
    """Yield a claim that tests check."""
    yield Claim(said, "all", "", "holds", sentence)


_OUTPERFORM = "Both models significantly outperform the baselines on all datasets, p < 0.05 (section 6)"
_VANISH = (
    "The advantages of recent models practically vanish when all are trained alike (section 6, table of accuracies)"
)
_SETTLES = "With α = 0.1 the accuracy increases with K and settles (section 6, figure on K)"
_ALPHA = "The best α is around 0.05 to 0.2 (section 6)"
_FEW_LABELS = "The dominance of PPNP and APPNP increases as labels become fewer (section 6)"
_OTHER_LABELS = "Other training set sizes, of which the paper's text says nothing"
_DISTANCE = "The gap between APPNP and GCN tends to increase with the distance from the training nodes (appendix)"
_PARTLY = "Propagating in inference alone, or in training alone, improves the network, too (section 6)"
_TRAINS = (
    "PPNP trains on the rows of its matrix for training and stopping nodes alone. It has the highest accuracy here."
)
_WIDE_ALPHA = "The interval contains zero: the best α may lie outside."

CLAIMS: tuple[Claim, ...] = tuple(
    chain(
        # theory and sizes
        _everywhere(
            "The largest eigenvalue of Â is 1, and the spectrum lies in (−1, 1] (appendix A)",
            "second_eigenvalue",
            "holds",
            "The largest eigenvalue {high} is single, and the smallest is {low}. A test checks the eigenvector √d.",
        ),
        _tested("K power steps are the partial sum of appendix B", "A test compares both on random graphs, to 1e−14."),
        _tested(
            "The influence of x on y is the entry (y, x) of the PPR matrix, which is symmetric (section 3)",
            "A test compares the gradient of every entry with the inverse matrix, to 1e−14.",
        ),
        _everywhere(
            "Without teleport the limit does not depend on the root (section 2)",
            "steps_to_forget",
            "holds",
            "Walks from five nodes have forgotten their roots after {value} steps.",
        ),
        _tested(
            "A D⁻¹ without self-loops is another propagation matrix (section 3)",
            "A test compares its propagation with the inverse matrix, to 1e−13; sums are kept.",
        ),
        _everywhere(
            "A higher α converges faster (section 6)",
            "convergence",
            "holds",
            "α = 0.05 needs {value} times as many steps as α = 0.5.",
        ),
        _on(
            "N-GCN uses 320 hidden units, 5 times as many as GCN, GAT and PPNP (appendix)",
            "hidden_units",
            all=("holds", "The defaults of pprop are the paper's settings."),
        ),
        _everywhere(
            "The network has the same number of parameters as GCN (section 5)",
            "gcn_parameters",
            "holds",
            "Both have the same number of parameters.",
        ),
        _everywhere(
            "The number of parameters is on par or lower than that of previous models (abstract)",
            "parameters",
            "holds",
            "GCN, GAT, JK and N-GCN have {low} to {high} times as many parameters.",
        ),
        _on(
            "K = 10 coincides with the largest distance of a node to the training set (section 6)",
            "farthest",
            citeseer=("finding", "10 lies in the range: K = 10 does not reach all nodes on every split."),
            cora_ml=("finding", "The distance is shorter: K = 10 reaches every node on every split."),
            pubmed=("finding", "10 is the upper end: K = 10 just reaches every node."),
            ms_academic=("finding", "The distance is shorter: K = 10 reaches every node on every split."),
        ),
        # the accuracy table
        _on(
            _OUTPERFORM,
            "ppnp_nearest",
            citeseer=("open", "PPNP is not distinguished from GAT over 20 splits."),
            cora_ml=("holds", "The nearest baseline is GAT."),
            pubmed=("holds", "The nearest baseline is GCN. The paper could not run PPNP here."),
            ms_academic=("holds", "The nearest baseline is N-GCN. The paper could not run PPNP here."),
        ),
        _on(
            _OUTPERFORM,
            "appnp_nearest",
            citeseer=("holds", "The nearest baseline is GAT."),
            cora_ml=("holds", "The nearest baseline is GAT."),
            pubmed=("holds", "The nearest baseline is GCN."),
            ms_academic=("holds", "The nearest baseline is N-GCN."),
        ),
        _on(
            _OUTPERFORM,
            "ppnp_nearest_200",
            citeseer=("holds", "With more splits PPNP is ahead of GAT, on these 610 test nodes."),
            cora_ml=("holds", "The nearest baseline is GAT."),
        ),
        _on(
            _OUTPERFORM,
            "appnp_nearest_200",
            citeseer=("holds", "The nearest baseline is GAT, on these 610 test nodes."),
            cora_ml=("holds", "The nearest baseline is GAT."),
        ),
        _on(
            "PPNP achieves the highest macro F1 on all datasets (appendix, table of F1)",
            "ppnp_f1",
            citeseer=(
                "does not hold",
                "Bt. FP is highest here. In the paper's own table APPNP is above PPNP (0.7105 and 0.7102).",
            ),
            cora_ml=("holds", "The next model is APPNP."),
            pubmed=("holds", "The next model is APPNP. The paper could not run PPNP here."),
            ms_academic=("holds", "The next model is APPNP. The paper could not run PPNP here."),
        ),
        _on(
            "PPNP on the graphs where the paper ran out of memory (section 6, table of accuracies)",
            "ppnp_appnp",
            pubmed=("finding", _TRAINS),
            ms_academic=("finding", _TRAINS),
        ),
        _on(
            _VANISH,
            "ngcn_gcn",
            citeseer=("holds", "N-GCN is below GCN."),
            cora_ml=("holds", "N-GCN is below GCN."),
            pubmed=("holds", "N-GCN is below GCN."),
            ms_academic=("does not hold", "N-GCN is above GCN, as in the paper's own table."),
        ),
        _on(
            _VANISH,
            "gat_gcn",
            citeseer=("holds", "No difference is found."),
            cora_ml=("does not hold", "GAT is above GCN, as in the paper's own table."),
            pubmed=("holds", "GAT is below GCN."),
            ms_academic=("holds", "GAT is below GCN."),
        ),
        _everywhere(_VANISH, "jk_gcn", "holds", "JK is below GCN."),
        _on(
            "A simple GCN with optimised hyperparameters outperforms several recent models (section 6)",
            "gcn_over_two",
            citeseer=("holds", "GCN is above N-GCN and JK."),
            cora_ml=("holds", "GCN is above N-GCN and JK."),
            pubmed=("holds", "GCN is above all four; the second largest lead is over N-GCN."),
            ms_academic=("holds", "GCN is above GAT, JK and Bt. FP."),
        ),
        _everywhere(
            "Early stopping and optimised hyperparameters have a strong impact (section 5)",
            "gcn_vanilla",
            "holds",
            "GCN is above V. GCN. How much is strong, the paper does not say.",
        ),
        _on(
            "PPNP, APPNP and GAT typically have lower variance (section 6)",
            "steadiness",
            citeseer=("holds", "All three spread less."),
            cora_ml=("holds", "All three spread less."),
            pubmed=("open", "GAT spreads most of the three, and the interval contains zero."),
            ms_academic=("open", "APPNP spreads most of the three, and the interval contains zero."),
        ),
        _on(
            "K = 10 steps effectively approximate PPNP (section 6)",
            "appnp_ppnp",
            citeseer=("holds", "APPNP is a little above PPNP."),
            cora_ml=("holds", "APPNP is a little below PPNP."),
            pubmed=("open", "APPNP is below PPNP. The interval reaches {low} points, beyond half a point."),
            ms_academic=("holds", "APPNP is a little below PPNP."),
        ),
        # time
        _everywhere(
            "APPNP is around 25 % slower than GCN (section 6)",
            "appnp_gcn_time",
            "not comparable",
            "APPNP has a fused training step here, GCN uses autograd. The paper's ratios are 1.17 to 1.53.",
        ),
        _everywhere(
            "APPNP is significantly faster than GAT (section 6)",
            "gat_appnp_time",
            "not comparable",
            "APPNP has a fused training step here, GAT uses autograd.",
        ),
        _on(
            "APPNP's time scales with the size of the graph as GCN's does (section 6)",
            "growth",
            all=("not comparable", "APPNP has a fused training step here, GCN uses autograd."),
        ),
        _everywhere(
            "Skipping propagation in training saves time (section 6)",
            "skipping",
            "holds",
            "A training without propagation takes {value} times the seconds.",
        ),
        # one setting
        _on(
            _ALPHA,
            "ppnp_alpha",
            citeseer=("holds", "The best α is 0.15."),
            cora_ml=("holds", "The best α is 0.05."),
            pubmed=("open", _WIDE_ALPHA),
            ms_academic=("open", "α = 0.3 is ahead of α = 0.2. The paper never ran PPNP here."),
        ),
        _on(
            _ALPHA,
            "appnp_alpha",
            citeseer=("holds", "The best α is 0.1."),
            cora_ml=("holds", "The best α is 0.1."),
            pubmed=("open", _WIDE_ALPHA),
            ms_academic=("open", "α = 0.2 is the best, but α = 0.3 is not distinguished from it."),
        ),
        _everywhere(
            "Without teleport the accuracy breaks down as K grows (section 6)",
            "no_teleport",
            "holds",
            "Accuracy is lost with many steps.",
        ),
        _everywhere(_SETTLES, "steps_1_100", "holds", "Many steps are better than one."),
        _on(
            _SETTLES,
            "steps_2_10",
            citeseer=("holds", "The accuracy increases."),
            cora_ml=("holds", "The accuracy increases."),
            pubmed=("holds", "The accuracy increases."),
            ms_academic=("does not hold", "With α = 0.1 the accuracy decreases from K = 2 to K = 10."),
        ),
        _on(
            _SETTLES,
            "steps_10_100",
            citeseer=("holds", "No change is found after ten steps."),
            cora_ml=("holds", "No change is found after ten steps."),
            pubmed=("holds", "No change is found after ten steps."),
            ms_academic=("does not hold", "The accuracy still changes after ten steps."),
        ),
        _on(_SETTLES, "steps_1_100_alpha_02", ms_academic=("holds", "With the paper's α = 0.2 many steps are better.")),
        _on(
            _SETTLES,
            "steps_10_100_alpha_02",
            ms_academic=("holds", "With the paper's α = 0.2 no change is found after ten steps."),
        ),
        _on(
            _FEW_LABELS,
            "ppnp_labels",
            citeseer=("holds", "The lead shrinks as labels are added."),
            cora_ml=("open", "No trend is found: 27 of 100 runs with one label stop early."),
            pubmed=("holds", "The lead shrinks as labels are added."),
            ms_academic=("holds", "The lead shrinks as labels are added."),
        ),
        _on(
            _FEW_LABELS,
            "appnp_labels",
            citeseer=("holds", "The lead shrinks as labels are added."),
            cora_ml=("open", "No trend is found."),
            pubmed=("holds", "The lead shrinks as labels are added."),
            ms_academic=("open", "No trend is found."),
        ),
        _on(
            _OTHER_LABELS,
            "gat_appnp_60",
            citeseer=("finding", "GAT is better than APPNP with 60 labels per class."),
            cora_ml=("finding", "APPNP is better than GAT with 60 labels per class."),
            pubmed=("finding", "APPNP is better than GAT with 60 labels per class."),
        ),
        _on(
            _OTHER_LABELS,
            "ppnp_appnp_1",
            citeseer=("finding", "PPNP is ahead of its approximation."),
            cora_ml=("finding", "No difference is found."),
            pubmed=("finding", "PPNP is ahead of its approximation."),
            ms_academic=("finding", "PPNP is ahead of its approximation."),
        ),
        _on(
            _OTHER_LABELS,
            "ppnp_appnp_2",
            citeseer=("finding", "PPNP is ahead of its approximation."),
            cora_ml=("finding", "PPNP is ahead of its approximation."),
            pubmed=("finding", "No difference is found."),
            ms_academic=("finding", "PPNP is ahead of its approximation."),
        ),
        _on(
            _DISTANCE,
            "per_hop",
            citeseer=("open", "The near distances, with most nodes, decide this line. No slope is found."),
            cora_ml=("holds", "The gap grows with every hop."),
            pubmed=("open", "No slope is found."),
            ms_academic=("does not hold", "The gap shrinks with every hop."),
        ),
        _on(
            _DISTANCE,
            "far_near",
            citeseer=("holds", "Far nodes gain more than near ones."),
            cora_ml=("holds", "Far nodes gain more than near ones."),
            pubmed=("open", "No difference is found."),
            ms_academic=("does not hold", "Far nodes gain less than near ones."),
        ),
        _on(
            "Deep networks do not improve the accuracy (appendix)",
            "deeper",
            citeseer=("holds", "Deeper networks are worse."),
            cora_ml=("holds", "Deeper networks are worse."),
            pubmed=("holds", "No deeper network is found to be better."),
            ms_academic=("holds", "Deeper networks are worse."),
        ),
        _everywhere(
            "The best results are achieved with regular APPNP, which always propagates (section 6)",
            "full",
            "holds",
            "The next best way is inference alone.",
        ),
        _on(
            "On most datasets the accuracy decreases surprisingly little when propagating in inference alone (section 6)",
            "inference_both",
            citeseer=("does not hold", "Two points are lost."),
            cora_ml=("does not hold", "Three points are lost."),
            pubmed=("does not hold", "Four points are lost."),
            ms_academic=("holds", "Less than a point is lost."),
        ),
        _everywhere(_PARTLY, "inference_never", "holds", "Inference alone improves the network."),
        _on(
            _PARTLY,
            "training_never",
            citeseer=("holds", "Training alone improves the network."),
            cora_ml=("holds", "Training alone improves the network."),
            pubmed=("holds", "Training alone improves the network."),
            ms_academic=("open", "The interval just contains zero."),
        ),
    )
)


def found(results: Results) -> list[ClaimFigure]:
    """Return the claims that have a figure in these results, and those that tests check; none of a user's graphs.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pprop.study.store.store import Store
    >>> with tempfile.TemporaryDirectory() as name, Store.open(Path(name), create=True) as store:
    ...     found(Results(store, {}, Path(name)))
    []
    """
    if not any(name in DATASETS for name in results.datasets):
        return []
    shown: list[ClaimFigure] = []
    for claim in CLAIMS:
        if not claim.measure:
            shown.append(ClaimFigure(claim, None))
        elif claim.about == "all" or claim.about in results.datasets:
            figure = MEASURES[claim.measure].of(results, claim.about)
            shown += [] if figure is None else [ClaimFigure(claim, figure)]
    return shown


def claims_table(claims: Iterable[ClaimFigure], sentences: bool) -> Table:
    """Return the table of claims, one row for each dataset and measure.

    Parameters
    ----------
    claims
        What `found` returns.
    sentences
        Whether the readings and sentences are shown: they are about the published rows.

    Examples
    --------
    >>> one = ClaimFigure(Claim("1 + 1 = 2", "all", "", "holds", "A test."), None)
    >>> claims_table([one], True).groups[0].rows
    (('all', '–', None, None, 'holds', 'A test.'),)
    """
    groups: dict[str | None, list[Cells]] = {}
    for one in claims:
        what = MEASURES[one.claim.measure].what if one.claim.measure else "–"
        text, n = (None, None) if one.figure is None else (one.figure.text, one.figure.n)
        reading = Strong(one.claim.reading) if one.claim.reading == "does not hold" else one.claim.reading
        row = dataset_title(one.claim.about), what, text, n, reading, one.sentence
        groups.setdefault(one.claim.said, []).append(row)
    heads = "Dataset:text | Measured:text | Figure:text | From:text | Reading:text | What it says:text"
    made = Table.of("What the paper claims, and the figure of each claim", heads, groups)
    return made if sentences else made.without("Reading", "What it says")


def claims_csv(claims: Iterable[ClaimFigure]) -> str:
    """Return the figures of claims as CSV, with the digits that are printed.

    Examples
    --------
    >>> claim = Claim("GAT is above GCN", "citeseer", "gat_gcn", "holds", "")
    >>> print(claims_csv([ClaimFigure(claim, Measurement(0.271, -0.03, 0.58, "points", "20 splits", signed=True))]), end="")
    said,about,measure,value,low,high,unit,n
    GAT is above GCN,citeseer,gat_gcn,+0.27,-0.03,+0.58,points,20 splits
    """
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(("said", "about", "measure", "value", "low", "high", "unit", "n"))
    for one in claims:
        if one.figure is not None:
            numbers = (text.replace("\u2212", "-").replace("–", "") for text in one.figure.words.values())
            lines.writerow(
                (one.claim.said, one.claim.about, one.claim.measure, *numbers, one.figure.unit, one.figure.n)
            )
    return file.getvalue()


def not_computed(claims: Sequence[ClaimFigure]) -> list[str]:
    """Return the statements that have no figure in these results.

    >>> len(not_computed([])) == len({claim.said for claim in CLAIMS})
    True
    """
    there = {one.claim.said for one in claims}
    return list(dict.fromkeys(claim.said for claim in CLAIMS if claim.said not in there))


def counts(claims: Iterable[ClaimFigure]) -> tuple[str, ...]:
    """Return how many statements hold, by the readings: of theory and sizes, and of trained models; and which do not.

    What is a fact of each graph, and neither holds nor fails, is named beside the former.

    Examples
    --------
    >>> one = ClaimFigure(Claim("GAT is above GCN (here)", "citeseer", "gat_gcn", "does not hold", ""), None)
    >>> for line in counts([one]):
    ...     print(line)
    Of 1 claims on trained models, 0 hold on every graph, 0 on some graphs and 1 on none; 0 cannot be compared.
    Claims that do not hold: GAT is above GCN (Citeseer).
    """
    theory: dict[str, set[Reading]] = {}
    trained: dict[str, set[Reading]] = {}
    wrong: dict[str, dict[str, None]] = {}
    every = [one.claim for one in claims]
    of_graphs = dict.fromkeys(each.said for each in every if each.reading == "finding" and each.measure in OF_GRAPHS)
    facts = "".join(f" A fact of each graph is whether {said.split(' (')[0]}." for said in of_graphs)
    for claim in (each for each in every if each.reading != "finding"):
        (trained if claim.measure in OF_ROWS else theory).setdefault(claim.said, set()).add(claim.reading)
        if claim.reading == "does not hold":
            wrong.setdefault(claim.said.split(" (")[0], {})[dataset_title(claim.about)] = None
    lines: list[str] = []
    if theory:
        holding = sum(each == {"holds"} for each in theory.values())
        lines.append(f"Of {len(theory)} claims on theory and sizes, {holding} hold on every graph.{facts}")
    if trained:
        words = ("holds", "does not hold", "not comparable")
        everywhere, nowhere, unlike = (sum(each == {word} for each in trained.values()) for word in words)
        some = len(trained) - everywhere - nowhere - unlike
        lines.append(
            f"Of {len(trained)} claims on trained models, {everywhere} hold on every graph, {some} on some graphs and "
            f"{nowhere} on none; {unlike} cannot be compared."
        )
    if wrong:
        told = (f"{said} ({listed([*where])})" for said, where in wrong.items())
        lines.append(f"Claims that do not hold: {'; '.join(told)}.")
    return tuple(lines)


def further_findings(claims: Iterable[ClaimFigure]) -> str:
    """Return the differences that are not in the paper's text and have an interval without zero, and their number of all.

    Empty without any.

    Examples
    --------
    >>> one = Claim("Other sizes", "citeseer", "gat_appnp_60", "finding", "")
    >>> text = further_findings([ClaimFigure(one, Measurement(0.66, 0.41, 0.91, "points", "20 splits", signed=True))])
    >>> text.partition(": ")[0]
    "1 of 1 differences that are not in the paper's text have a 95 % interval without zero"
    >>> text.partition(": ")[2]
    'GAT minus APPNP, 60 labels per class, on Citeseer: +0.66 (+0.41 to +0.91) points.'
    """
    beside = [
        (one.claim, one.figure)
        for one in claims
        if one.claim.reading == "finding" and one.claim.measure in OF_ROWS and one.figure is not None
    ]
    told = [
        f"{MEASURES[claim.measure].what}, on {dataset_title(claim.about)}: {figure.text}"
        for claim, figure in beside
        if figure.low > 0 or figure.high < 0
    ]
    start = (
        f"{len(told)} of {len(beside)} differences that are not in the paper's text have a 95 % interval without zero"
    )
    return f"{start}: {'; '.join(told)}." if told else ""
