"""The paper's claims: every published figure again from the rows, each measure against a twin, and graphs against dense matrices."""

from __future__ import annotations

import csv
import io
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from pprop import Graph, load_dataset, transition_matrix
from pprop._errors import DatasetError
from pprop.datasets import DATASETS
from pprop.study.cell import MODELS, Cell, Seeds, make_cell
from pprop.study.experiment_folder import load_experiments
from pprop.study.figures.accuracies import PropagationPanel, PropagationWay
from pprop.study.figures.distance import Distance, Ring
from pprop.study.graphs import protocol_of
from pprop.study.report.claims import (
    CLAIMS,
    Claim,
    ClaimFigure,
    claims_csv,
    claims_table,
    counts,
    found,
    further_findings,
)
from pprop.study.report.measures import (
    MEASURES,
    OF_GRAPHS,
    OF_ROWS,
    Measurement,
    difference,
    far_minus_near,
    lead_by_labels,
    steps_to,
    weighted_slope,
)
from pprop.study.report.results import Results
from pprop.study.stats.estimate import Estimate
from pprop.study.store.row import Row
from pprop.study.store.store import Pool
from pprop.study.tables.entries import Sample, TableEntry
from pprop.study.tables.p_values import missed, tuned_comparisons
from pprop.study.tables.paper import score
from pprop.study.tables.table import listed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OUT_OF_MEMORY = ("pubmed", "ms_academic")  # where the paper could not run PPNP


class InMemory:
    """The rows of a study, as a store gives them."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.by_config: dict[str, list[Row]] = {}
        for row in rows:
            self.by_config.setdefault(row.key.config, []).append(row)

    def cells(self) -> list[Cell]:
        return [Cell.parse(rows[0].cell) for rows in self.by_config.values()]

    def rows(self, config: str) -> list[Row]:
        return sorted(self.by_config[config], key=lambda row: row.key)


@pytest.fixture(scope="module")
def results(published: tuple[Row, ...]) -> Any:
    return Results(InMemory(published), load_experiments(), ROOT)  # pyright: ignore[reportArgumentType]


def test_every_published_figure_is_what_the_rows_and_graphs_give(results: Any) -> None:
    def is_here(name: str) -> bool:
        try:
            return bool(load_dataset(name).n_nodes)
        except (DatasetError, OSError):
            return False

    stored = (ROOT / "results/claims.csv").read_text(encoding="utf-8")
    needs_graph = {*OF_GRAPHS, "far_near", "per_hop"} - {"hidden_units"}
    absent = {name for name in DATASETS if not is_here(name)}

    def lines(text: str) -> list[dict[str, str]]:
        every = csv.DictReader(io.StringIO(text))
        return [one for one in every if one["about"] not in absent or one["measure"] not in needs_graph]

    computed = found(results)
    assert lines(claims_csv(computed)) == lines(stored)
    with_measure = [claim for claim in CLAIMS if claim.measure]
    assert len(csv_lines := list(csv.DictReader(io.StringIO(stored)))) == len(with_measure)  # none is without a figure
    assert [(one["said"], one["about"], one["measure"]) for one in csv_lines] == [
        (claim.said, claim.about, claim.measure) for claim in with_measure
    ]
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    for one in computed:
        assert one.figure is None or f"| {one.figure.text} |".replace("\\", "") in page.replace("\\", "")


def read_of(measure: str) -> dict[str, str]:
    """Return the sentences about a measure by dataset."""
    return {claim.about: claim.sentence for claim in CLAIMS if claim.measure == measure}


def averages(runs: dict[Any, dict[Seeds, float]]) -> dict[Any, float]:
    return {name: float(np.mean([*values.values()])) for name, values in runs.items()}


def percent(group: Any) -> dict[str, float]:
    return averages({entry.title: entry.accuracies for entry in group if entry.sample is not None})


def test_models_that_sentences_name_are_those_of_the_rows(results: Any) -> None:
    baselines = ("V. GCN", "GCN", "N-GCN", "GAT", "JK", "Bt. FP")
    for measure, table in {"appnp_nearest": results.main, "appnp_nearest_200": results.many}.items():
        for name in (measure, measure.replace("appnp", "ppnp")):
            for dataset, sentence in read_of(name).items():
                means = percent(table[dataset])
                assert (
                    max(baselines, key=lambda model: means[model])
                    in sentence.replace(",", "").replace(".", " ").split()
                )
    for dataset, sentence in read_of("ppnp_f1").items():
        f1 = averages({entry.title: entry.values("f1") for entry in results.main[dataset]})
        best = max((*baselines, "APPNP"), key=lambda model: f1[model])
        assert sentence.startswith(f"{best} is highest" if f1[best] > f1["PPNP"] else f"The next model is {best}.")
    for dataset, sentence in read_of("gcn_over_two").items():
        runs = {entry.title: entry.accuracies for entry in results.main[dataset]}
        recent = ("N-GCN", "GAT", "JK", "Bt. FP")
        ahead = [model for model in recent if (lead := difference(runs["GCN"], runs[model])) and lead.low > 0]
        assert sentence.startswith("GCN is above all four" if len(ahead) == 4 else f"GCN is above {listed(ahead)}.")
        means = percent(results.main[dataset])
        second = sorted(recent, key=lambda model: means[model])[1]
        assert "second largest" not in sentence or f"the second largest lead is over {second}." in sentence
    for dataset in OUT_OF_MEMORY:
        means = percent(results.main[dataset])
        assert max(means, key=lambda model: means[model]) == "PPNP"
    for dataset in ("pubmed", "ms_academic"):
        spreads = {e.title: np.std([*e.accuracies.values()], ddof=1) for e in results.main[dataset]}
        most = max(("PPNP", "APPNP", "GAT"), key=lambda model: spreads[model])
        assert read_of("steadiness")[dataset].startswith(f"{most} spreads most of the three")
    for dataset in DATASETS:
        means = averages(results.sweep("propagation", dataset))
        assert sorted(means, key=lambda way: means[way])[-2:] == ["inference", "both"]  # the next best way


def test_settings_that_sentences_name_are_those_of_the_rows(results: Any) -> None:
    for model in ("PPNP", "APPNP"):
        for dataset, sentence in read_of(f"{model.lower()}_alpha").items():
            runs = results.sweep("alpha", dataset)
            means = averages({alpha: each for (title, alpha), each in runs.items() if title == model})
            best = max(means, key=lambda alpha: means[alpha])
            assert "zero" in sentence or f"α = {best:g} is" in sentence or sentence == f"The best α is {best:g}."
    means = averages(results.sweep("steps", "ms_academic"))
    with_01 = {steps: mean for (name, steps), mean in means.items() if name == "α = 0.1"}
    assert max(with_01, key=lambda steps: with_01[steps]) == 2
    assert "from K = 2 to K = 10" in read_of("steps_2_10")["ms_academic"]
    one_layer = averages(results.sweep("depth", "citeseer"))
    assert all("Deeper networks are worse." in read_of("deeper")[name] for name in ("citeseer", "cora_ml"))
    assert one_layer["APPNP", 2] > max(one_layer["APPNP", layers] for layers in (3, 4, 5))


def test_numbers_that_sentences_name_are_the_papers_or_the_pages() -> None:
    papers = {name: one.published for name, one in load_experiments().items() if name.startswith("gasteiger_2019")}

    def printed(model: str, dataset: str, what: str = "accuracy", kind: str = "") -> Any:
        return getattr(papers[f"gasteiger_2019_{model}_{dataset}{kind}"], what)

    f1 = ", ".join(f"{printed(model, 'citeseer', 'f1'):.4f}" for model in ("appnp", "ppnp")).replace(", ", " and ")
    assert f"({f1})" in read_of("ppnp_f1")["citeseer"]
    assert printed("appnp", "citeseer", "f1") > printed("ppnp", "citeseer", "f1")
    ratios = [
        printed("appnp", name, "ms_per_epoch", "_time") / printed("gcn", name, "ms_per_epoch", "_time")
        for name in DATASETS
    ]
    assert f"ratios are {min(ratios):.2f} to {max(ratios):.2f}." in read_of("appnp_gcn_time")["pubmed"]
    assert printed("ngcn", "ms_academic") > printed("gcn", "ms_academic")
    assert printed("gat", "cora_ml") > printed("gcn", "cora_ml")
    assert "as in the paper's own table" in read_of("ngcn_gcn")["ms_academic"]
    assert "as in the paper's own table" in read_of("gat_gcn")["cora_ml"]
    assert [papers[f"gasteiger_2019_ppnp_{name}"] for name in OUT_OF_MEMORY] == [None, None]
    nodes = len(protocol_of(load_dataset("citeseer")).test)
    assert all(
        f"these {nodes} test nodes" in read_of(f"{model}_nearest_200")["citeseer"] for model in ("ppnp", "appnp")
    )
    assert all(read_of("ppnp_appnp")[name].endswith("It has the highest accuracy here.") for name in OUT_OF_MEMORY)
    page = (ROOT / "docs/study.md").read_text(encoding="utf-8")  # whose table has a test of its own
    assert "| cora_ml | PPNP | 1 a class | 27 of 100 |" in page
    assert "27 of 100 runs with one label stop early" in read_of("ppnp_labels")["cora_ml"]


def test_appnp_that_always_teleports_is_the_mlp_in_every_row_as_the_page_says(published: tuple[Row, ...]) -> None:
    """Equal seeds give both the same first weights and masks."""

    def runs(cell: Cell) -> dict[tuple[Seeds, str], tuple[float, ...]]:
        rows = [row for row in published if row.key.config == cell.config]
        metrics = ("accuracy", "f1", "stopping_loss", "stopping_accuracy", "epochs", "best_epoch")
        return {(row.key.seeds, row.key.revision): tuple(getattr(row, name) for name in metrics) for row in rows}

    for dataset in ("citeseer", "cora_ml"):  # where both were run on the same splits
        appnp, mlp = (runs(make_cell(*one, dataset, "validation")) for one in (("appnp", {"alpha": 1.0}), ("mlp", {})))
        assert len(both := appnp.keys() & mlp.keys()) == 5
        assert {place: appnp[place] for place in both} == {place: mlp[place] for place in both}
    page = " ".join((ROOT / "docs/study.md").read_text(encoding="utf-8").split())
    assert "APPNP with α = 1 is the MLP, bit for bit." in page


def test_lost_points_that_sentences_name_in_words_are_those_of_the_rows(results: Any) -> None:
    words = {2: "Two points are lost.", 3: "Three points are lost.", 4: "Four points are lost."}
    for dataset, sentence in read_of("inference_both").items():
        figure = MEASURES["inference_both"].of(results, dataset)
        assert figure is not None
        assert sentence == ("Less than a point is lost." if figure.value > -1 else words[round(-figure.value)])
    figure = MEASURES["appnp_ppnp"].of(results, "pubmed")
    assert figure is not None
    assert figure.low < -0.5  # "beyond half a point"
    assert all(
        abs(end) < 0.5
        for dataset in ("citeseer", "cora_ml", "ms_academic")
        if (other := MEASURES["appnp_ppnp"].of(results, dataset))
        for end in (other.low, other.high)
    )


def test_the_readme_says_of_the_tuned_model_what_the_rows_say(results: Any) -> None:
    accuracy, f1 = (missed(tuned_comparisons(results.many, metric)) for metric in ("accuracy", "f1"))
    assert accuracy == "not distinguished: PPNP and APPNP against Bt. FP, tuned on Cora-ML"
    assert "significantly worse: PPNP and APPNP against Bt. FP, tuned on Citeseer" in f1
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert (
        "Over 200 splits, a tuned linear model on propagated features is not distinguished from PPNP and APPNP on Cora-ML by "
        "accuracy, and is better than both on Citeseer by macro F1."
    ) in text
    splits = {test.splits.pairs for test in tuned_comparisons(results.many, "accuracy")}
    assert splits == {200}
    of_citeseer = [one for one in results.leads_over_nodes if one.of_these_nodes and one.nodes.nodes == 610]
    baselines = [one for one in of_citeseer if one.few.opponent.title != "Bt. FP, tuned"]
    assert sorted({one.few.opponent.title for one in baselines}) == ["Bt. FP", "GAT", "GCN"]
    assert len(baselines) == 6
    most = max(one.z for one in baselines)
    assert (
        f"Their leads over GCN, GAT and Bt. FP on Citeseer are at most {most:.1f} standard errors over its 610 test nodes."
        in text
    )


def test_the_readme_names_the_accuracies_that_disagree(results: Any) -> None:
    scores = [score(entry, "accuracy") for group in results.main.values() for entry in group]
    assert [one.title for one in scores if one.agrees is False] == ["Bt. FP", "Bt. FP"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "The two accuracies that disagree are of Bt. FP." in text


def test_sentences_name_no_number_that_their_figure_does_not_have() -> None:
    for claim in CLAIMS:
        fields = {name for _, name, _, _ in string.Formatter().parse(claim.sentence) if name}
        assert fields <= {"value", "low", "high"} if claim.measure else not fields
        assert claim.about in ("all", *DATASETS)
        assert len(claim.sentence.split()) <= 25
    assert {claim.measure for claim in CLAIMS if claim.measure} == MEASURES.keys()
    assert len({(claim.said, claim.about, claim.measure) for claim in CLAIMS}) == len(CLAIMS)


def test_counts_follow_the_readings_and_nothing_else() -> None:
    def one(said: str, measure: str, about: str, reading: Any, low: float = -1.0) -> ClaimFigure:
        return ClaimFigure(Claim(said, about, measure, reading, ""), Measurement(1.0, low, 2.0, "points", "20 splits"))

    claims = [
        one("True of all (section 1)", "gat_gcn", "citeseer", "holds"),
        one("True of all (section 1)", "gat_gcn", "pubmed", "holds"),
        one("True of some (section 2)", "gat_gcn", "citeseer", "holds"),
        one("True of some (section 2)", "gat_gcn", "pubmed", "does not hold"),
        one("Open", "gat_gcn", "pubmed", "open"),
        one("False", "gat_gcn", "pubmed", "does not hold"),
        one("Timed", "gat_appnp_time", "pubmed", "not comparable"),
        one("Beside", "gat_appnp_60", "citeseer", "finding", 0.5),
        one("Beside", "gat_appnp_60", "pubmed", "finding", -0.5),
        ClaimFigure(
            Claim("Beside", "cora_ml", "gat_appnp_60", "finding", ""),
            Measurement(-1.0, -2.0, -0.5, "points", "20 splits"),
        ),
        one("K = 10 is the distance (section 6)", "farthest", "citeseer", "finding", 0.5),
        ClaimFigure(Claim("A theorem", "all", "", "holds", ""), None),
    ]
    assert counts(claims) == (
        "Of 1 claims on theory and sizes, 1 hold on every graph. A fact of each graph is whether K = 10 is the distance.",
        "Of 5 claims on trained models, 1 hold on every graph, 2 on some graphs and 1 on none; 1 cannot be compared.",
        "Claims that do not hold: True of some (PubMed); False (PubMed).",
    )
    assert counts([]) == ()
    lead = (
        "2 of 3 differences that are not in the paper's text have a 95 % interval without zero: GAT minus APPNP, 60 labels per "
        "class, on Citeseer: 1.00 (0.50 to 2.00) points; GAT minus APPNP, 60 labels per class, on Cora-ML: −1.00 (−2.00 to −0.50) "
        "points."
    )
    assert further_findings(claims) == lead
    assert further_findings([]) == ""
    shown, bare = claims_table(claims, True), claims_table(claims, False)
    assert [column.title for column in bare.columns] == ["Dataset", "Measured", "Figure", "From"]
    assert shown.n_rows == bare.n_rows == len(claims)
    assert [str(value) for value in shown.groups[0].rows[0]][2:5] == [
        "1.00 (−1.00 to 2.00) points",
        "20 splits",
        "holds",
    ]


# --- graphs


@pytest.fixture(scope="module")
def small() -> Graph:
    upper = np.triu(np.random.default_rng(0).random((40, 40)) < 0.12, k=1)
    upper[np.arange(39), np.arange(1, 40)] = True  # connected
    return Graph.from_scipy(sparse.csr_array((upper | upper.T).astype(np.float64)))


def of_graph(measure: str, graph: Graph) -> Measurement:
    results: Any = SimpleNamespace(graph_of=lambda name: graph)
    found = MEASURES[measure].of(results, "mine")
    assert found is not None
    return found


def test_the_spectrum_is_that_of_the_dense_matrix(small: Graph) -> None:
    found = of_graph("second_eigenvalue", small)
    values = np.linalg.eigvalsh(transition_matrix(small).to_scipy().toarray())
    assert [found.value, found.low, found.high] == pytest.approx([values[-2], values[0], values[-1]], abs=1e-7)


def test_two_components_have_two_largest_eigenvalues_and_walks_that_never_meet() -> None:
    pair = sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
    graph = Graph.from_scipy(sparse.block_diag([pair] * 3, format="csr"))
    assert of_graph("second_eigenvalue", graph).value == pytest.approx(1.0)
    assert of_graph("steps_to_forget", graph).value == np.inf


def test_walks_forget_their_roots_as_the_powers_of_the_dense_matrix_do(small: Graph) -> None:
    walk = transition_matrix(small, "row").to_scipy().toarray()
    steps = int(of_graph("steps_to_forget", small).value)

    def apart(steps: int) -> float:
        rows = np.linalg.matrix_power(walk, steps)[[0, 9, 19, 29, 39]]
        return max(float(np.abs(a - b).sum() / 2) for a in rows for b in rows)

    assert apart(steps) <= 0.01 < apart(steps - 1)


def test_convergence_counts_the_steps_of_the_dense_iteration(small: Graph) -> None:
    T, H = transition_matrix(small).to_scipy().toarray(), np.random.default_rng(0).standard_normal((40, 3))
    exact = 0.2 * np.linalg.solve(np.eye(40) - 0.8 * T, H)
    now, steps = H, 0
    while np.linalg.norm(now - exact) > 1e-4 * np.linalg.norm(exact):
        now, steps = 0.8 * T @ now + 0.2 * H, steps + 1
    assert steps_to(T, H, 0.2, 1e-4) == steps


def test_parameters_are_counted_by_hand() -> None:
    graph = load_dataset("citeseer")
    ours = 3703 * 64 + 64 * 6
    gat = (
        8 * (3703 * 8 + 8 + 2 * 8 + 2) + 64 * 6 + 6 + 2 * 6 + 2
    )  # weights, bias, and two attention vectors with theirs
    ngcn = 20 * (3703 * 16 + 16 * 6) + 20
    found = of_graph("parameters", graph)
    assert found.n == f"{ours:,} of APPNP"
    assert (found.low, found.high) == pytest.approx((min(1.0, gat / ours), ngcn / ours))
    assert of_graph("gcn_parameters", graph).value == 1.0
    units = MEASURES["hidden_units"].of(SimpleNamespace(), "all")  # pyright: ignore[reportArgumentType]
    assert units is not None
    assert (units.value, units.n) == (5.0, "320 and 64 units")


@pytest.mark.data
@pytest.mark.parametrize(("name", "low", "high"), [("cora_ml", 6, 9), ("pubmed", 9, 10), ("ms_academic", 7, 9)])
def test_the_largest_distances_to_the_training_set_are_those_of_the_protocol(name: str, low: int, high: int) -> None:
    found = of_graph("farthest", load_dataset(name))
    assert (found.low, found.high) == (low, high)


def test_a_graph_that_is_not_here_has_no_figure() -> None:
    def absent(name: str) -> Graph:
        raise DatasetError(f"{name} is not here.")

    results: Any = SimpleNamespace(graph_of=absent, main={})
    assert all(MEASURES[name].of(results, "pubmed") is None for name in OF_GRAPHS if name != "hidden_units")


# --- rows


def runs(mean: float, *deviations: float) -> dict[Seeds, float]:
    return {Seeds(split, 0): mean + deviation for split, deviation in enumerate(deviations or (-9.0, 0.0, 9.0))}


def measured(measure: str, **data: Any) -> Measurement | None:
    """Return a figure of one dataset: of the accuracies in a sweep, or of what else results have."""
    sweeps = {name: data.pop(name) for name in ("alpha", "steps", "labels", "depth", "propagation") if name in data}
    given = {"main": {}, "many": {}, "times": {}, "drawn": [], "sweep": lambda name, _: sweeps.get(name, {}), **data}
    results: Any = SimpleNamespace(**given)
    return MEASURES[measure].of(results, "citeseer")


def numbers(figure: Measurement | None) -> tuple[float, float, float]:
    assert figure is not None
    return figure.value, figure.low, figure.high


@pytest.fixture
def table(make_rows: Callable[..., list[Row]]) -> Callable[..., dict[str, list[TableEntry]]]:
    """Return the accuracy table of Citeseer from accuracies in percent, by model; macro F1 is the accuracy."""

    def entries(**models: dict[Seeds, float]) -> dict[str, list[TableEntry]]:
        made: list[TableEntry] = []
        for model, values in models.items():
            cell = make_cell(model, {"feature_kind": "l2"} if model == "tuned" else {}, "citeseer")
            there = {row.key.seeds: row for row in make_rows(cell, 0.7, [*values])}
            rows = (replace(there[seeds], accuracy=value / 100, f1=value / 100) for seeds, value in values.items())
            pool = Pool(cell, "c1", "d1", tuple(rows))
            made.append(TableEntry(cell, TITLES.get(model, MODELS[model].title), None, Sample(cell, pool)))
        return {"citeseer": made}

    return entries


TITLES = {"bootstrapped_fp": "Bt. FP"}
BASELINES = ("vanilla_gcn", "gcn", "ngcn", "gat", "jk", "bootstrapped_fp")


def test_a_difference_is_of_split_means_with_students_interval(table: Any) -> None:
    hard = np.random.default_rng(0).normal(0, 9, 20)  # splits differ far more than the models do on one of them
    off = np.random.default_rng(1).normal(0, 0.5, 20)
    main = table(ppnp=runs(70, *hard.tolist()), appnp=runs(70.1, *(hard + off).tolist()))
    half = float(stats.t.ppf(0.975, 19) * stats.sem(off))
    mean = float(off.mean()) + 0.1
    assert numbers(measured("appnp_ppnp", main=main)) == pytest.approx((mean, mean - half, mean + half))
    assert numbers(measured("ppnp_appnp", main=main)) == pytest.approx((-mean, -mean - half, half - mean))
    assert measured("gat_gcn", main=main) is None


def test_the_nearest_of_all_baselines_counts_and_none_may_be_missing(table: Any) -> None:
    means = dict(zip(BASELINES, (70.0, 71.0, 72.0, 73.0, 74.0, 75.0), strict=True))
    every = {model: runs(mean) for model, mean in means.items()} | {"appnp": runs(77.5), "ppnp": runs(74.5)}
    assert numbers(measured("appnp_nearest", main=table(**every)))[0] == pytest.approx(2.5)
    assert numbers(measured("ppnp_nearest_200", many=table(**every)))[0] == pytest.approx(-0.5)
    assert measured("ppnp_nearest_200", main=table(**every)) is None
    without = {model: values for model, values in every.items() if model != "bootstrapped_fp"}
    assert measured("appnp_nearest", main=table(**without)) is None


def test_gcn_is_above_two_where_its_second_lead_is(table: Any) -> None:
    means = {"gcn": 80.0, "gat": 79.0, "jk": 78.0, "ngcn": 81.0, "bootstrapped_fp": 83.0}
    figure = measured("gcn_over_two", main=table(**{model: runs(mean) for model, mean in means.items()}))
    assert numbers(figure)[0] == pytest.approx(1.0)


def test_macro_f1_of_ppnp_is_held_against_the_best_of_the_papers_other_models(table: Any) -> None:
    main = table(ppnp=runs(80.0), appnp=runs(79.0), bootstrapped_fp=runs(81.0), mlp=runs(99.0))
    figure = measured("ppnp_f1", main=main)
    assert numbers(figure)[0] == pytest.approx(-0.01)  # the paper has no MLP
    assert figure is not None
    assert figure.text.startswith("−0.0100 (")


def test_a_lower_variance_is_the_largest_of_three_against_a_median_by_resampling_splits(table: Any) -> None:
    spreads = {
        "ppnp": 1.0,
        "appnp": 1.0,
        "gat": 2.0,
        "gcn": 3.0,
        "jk": 3.1,
        "ngcn": 2.9,
        "vanilla_gcn": 9.0,
        "mlp": 0.1,
    }
    seeds = [Seeds(split, init) for split in range(20) for init in range(2)]
    drawn = {
        model: 70 + spread * np.random.default_rng(number).standard_normal(len(seeds))
        for number, (model, spread) in enumerate(spreads.items())
    }
    main = table(**{model: dict(zip(seeds, each.tolist(), strict=True)) for model, each in drawn.items()})
    told = {model: float(np.std(each, ddof=1)) for model, each in drawn.items()}
    value, low, high = numbers(measured("steadiness", main=main))
    assert value == pytest.approx(told["gat"] - np.median([told[m] for m in ("gcn", "jk", "ngcn", "vanilla_gcn")]))
    assert low < value < high < 0


def test_the_best_alpha_is_held_against_the_best_outside() -> None:
    points = {("APPNP", 0.05): runs(74.0), ("APPNP", 0.1): runs(76.0), ("APPNP", 0.01): runs(70.0)}
    points |= {("APPNP", 0.5): runs(76.5, -7.0, 0.0, 7.0), ("PPNP", 0.9): runs(99.0)}
    value, low, _ = numbers(measured("appnp_alpha", alpha=points))
    assert (value, value - low) == pytest.approx((-0.5, student(-2.0, 0.0, 2.0)))
    assert measured("ppnp_alpha", alpha=points) is None
    assert measured("appnp_alpha", alpha={("APPNP", 0.1): runs(76.0)}) is None


def student(*values: float) -> float:
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def test_steps_without_teleport_are_compared_with_their_own_best_and_others_with_fewer() -> None:
    points = {("α = 0", K): runs(mean) for K, mean in {2.0: 76.0, 10.0: 70.0, 100.0: 40.0, np.inf: 20.0}.items()}
    points |= {("α = 0.1", 1.0): runs(74.0), ("α = 0.1", 100.0): runs(79.0), ("α = 0.2", 10.0): runs(50.0)}
    assert numbers(measured("no_teleport", steps=points))[0] == pytest.approx(-36.0)
    assert numbers(measured("steps_1_100", steps=points))[0] == pytest.approx(5.0)
    assert measured("steps_10_100", steps=points) is None
    assert measured("steps_1_100_alpha_02", steps=points) is None


def test_the_lead_over_labels_is_a_slope_per_doubling_on_each_split() -> None:
    points: dict[tuple[str, float], dict[Seeds, float]] = {}
    for labels, lead in {1: 4.0, 2: 3.0, 4: 2.0, 20: 2 - np.log2(5), 60: 50.0}.items():
        points["GCN", float(labels)] = runs(70.0 + labels)
        points["JK", float(labels)] = runs(69.0)  # never the best
        points["Bt. FP, tuned", float(labels)] = runs(99.0)  # no baseline of the paper
        points["APPNP", float(labels)] = runs(70.0 + labels + lead, -9.0, 0.0, 9.0 + 0.3 * np.log2(labels))
    assert numbers(measured("appnp_labels", labels=points)) == pytest.approx(
        (-0.9, -0.9 - student(0.0, 0.0, 0.3), -0.9 + student(0.0, 0.0, 0.3))
    )
    leads = lead_by_labels(points, "APPNP")
    assert [*leads] == [1.0, 2.0, 4.0, 20.0]
    assert leads[1.0][0] == pytest.approx(4.0)
    assert measured("ppnp_labels", labels=points) is None
    points = {place: each for place, each in points.items() if place[1] != 1}
    assert measured("appnp_labels", labels=points) is None
    points["GAT", 60.0] = points["PPNP", 1.0] = points["APPNP", 1.0] = runs(80.0)
    assert numbers(measured("gat_appnp_60", labels=points))[0] == pytest.approx(80 - 180.0 - 0.3 * np.log2(60) / 3)
    assert numbers(measured("ppnp_appnp_1", labels=points)) == (0.0, 0.0, 0.0)
    assert measured("ppnp_appnp_2", labels=points) is None


def ring(hops: int, gap: float, half: float) -> Ring:
    return Ring(hops, hops, 9.0, Estimate(gap, gap - half, gap + half, 20))


def test_the_gap_by_distance_is_a_slope_weighted_by_its_intervals() -> None:
    grows = weighted_slope(Distance("Citeseer", (ring(1, 1.0, 0.1), ring(2, 1.5, 0.1), ring(3, 2.0, 0.1)), (5, 5)))
    assert numbers(grows) == pytest.approx((0.5, 0.5 - 0.1 / np.sqrt(2), 0.5 + 0.1 / np.sqrt(2)))
    alone = Ring(4, 4, 9.0, Estimate(3.0, 3.0, 3.0, 20))  # no interval
    flat = weighted_slope(Distance("Citeseer", (ring(1, 1.0, 0.9), ring(2, 1.1, 0.9), alone), (5, 5)))
    assert numbers(flat)[0] == pytest.approx(0.1)
    assert flat is not None
    assert flat.n == "2 distances"
    assert weighted_slope(Distance("Citeseer", (ring(1, 1.0, 0.9), alone), (5, 5))) is None


def test_a_slope_that_the_rings_scatter_about_is_unsure() -> None:
    gaps = np.array([1.0, 1.6, 1.2, 1.9])
    fit = stats.linregress(np.arange(4), gaps)  # equal weights: its error comes from the scatter alone
    found = weighted_slope(
        Distance("Citeseer", tuple(ring(hops, gap, 0.098) for hops, gap in enumerate(gaps, 1)), (5, 5))
    )
    value, low, _ = numbers(found)
    assert (value, value - low) == pytest.approx((fit.slope, 1.96 * fit.stderr))


def test_far_nodes_are_pooled_and_held_against_near_ones_on_each_split() -> None:
    nodes = np.array(
        [[5.0, 10.0, 30.0, 50.0, 6.0, 2.0], [5.0, 20.0, 20.0, 50.0, 4.0, 4.0], [5.0, 20.0, 20.0, 50.0, 0.0, 0.0]]
    )
    gains = np.array([[5.0, 1.0, 3.0, 50.0, 4.0, 0.0], [5.0, 2.0, 2.0, 50.0, 0.0, 2.0], [5.0, 9.0, 9.0, 9.0, 0.0, 0.0]])
    first, second = 100 * (4 / 8 - 4 / 40), 100 * (2 / 8 - 4 / 40)  # the third split has no far node
    value, low, _ = numbers(far_minus_near(gains, nodes))
    assert (value, value - low) == pytest.approx(((first + second) / 2, student(first, second)))


def test_depth_is_of_the_best_deep_network() -> None:
    points = {("APPNP", 1): runs(70.0), ("APPNP", 2): runs(76.0), ("APPNP", 4): runs(74.0), ("APPNP", 3): runs(75.9)}
    assert numbers(measured("deeper", depth=points))[0] == pytest.approx(-0.1)


def test_ways_to_propagate_are_compared_split_by_split() -> None:
    ways = {"never": runs(60.0), "training": runs(65.0), "inference": runs(70.0), "both": runs(75.0)}
    wanted = {"full": 5.0, "inference_never": 10.0, "training_never": 5.0, "inference_both": -5.0}
    assert {name: numbers(measured(name, propagation=ways))[0] for name in wanted} == pytest.approx(wanted)
    assert measured("full", propagation={"never": runs(60.0), "both": runs(75.0)}) is None


def test_times_that_do_not_compare_have_no_figure() -> None:
    def way(name: str, seconds: float, device: str) -> PropagationWay:
        estimate = Estimate(seconds, seconds, seconds, 5)
        return PropagationWay(name, estimate, estimate, 1.0, (20,), (device,))

    same = PropagationPanel("Citeseer", (way("inference", 1.0, "cpu"), way("both", 2.5, "cpu")))
    unlike = PropagationPanel("Citeseer", (way("inference", 1.0, "cuda"), way("both", 2.5, "cpu")))
    drawn = [[SimpleNamespace(name="propagation", data=[panel])] for panel in (same, unlike)]
    assert numbers(measured("skipping", drawn=drawn[0]))[0] == pytest.approx(0.4)
    assert measured("skipping", drawn=drawn[1]) is None


def test_times_per_epoch_are_ratios_on_one_device(make_rows: Callable[..., list[Row]]) -> None:
    times: dict[str, list[TableEntry]] = {}
    for dataset, factor in (("citeseer", 1.0), ("pubmed", 3.0)):
        for model, ms in (("gcn", 2.0), ("gat", 6.0), ("appnp", 3.0 * factor)):
            cell = make_cell(model, {}, dataset)
            rows = make_rows(cell, 0.7, [Seeds(7, 0)], seconds=0.4 * ms * factor, epochs=400, together=1)
            entry = TableEntry(cell, MODELS[model].title, None, Sample(cell, Pool(cell, "c1", "d1", tuple(rows))))
            times.setdefault(dataset, []).append(entry)
    assert numbers(measured("appnp_gcn_time", times=times))[0] == pytest.approx(1.5)
    assert numbers(measured("gat_appnp_time", times=times))[0] == pytest.approx(2.0)
    assert numbers(measured("growth", times=times))[0] == pytest.approx(3.0)
    assert measured("growth", times={"citeseer": times["citeseer"]}) is None


def test_without_rows_no_measure_has_a_figure() -> None:
    assert all(measured(name) is None for name in OF_ROWS)
