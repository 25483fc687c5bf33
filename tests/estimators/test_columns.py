"""ColumnsClassifier: PropagatedFeatures and an estimator, on graphs whose neighbours differ, too; saved without the estimator."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from pprop import ColumnsClassifier, FormatError, Graph, InputError, MLPNodeClassifier, PropagatedFeatures, live, load
from pprop.estimators.columns import boosting

ALL = np.arange(90)


def quick(graph: Graph, **settings: Any) -> ColumnsClassifier:
    how: dict[str, Any] = {"estimator": GaussianNB(), "random_state": 0, **settings}
    return ColumnsClassifier(graph, **how)


@pytest.fixture(scope="module")
def opposite() -> tuple[Graph, NDArray[np.str_]]:
    """200 nodes whose neighbours are all of the other of two classes, and features that say nothing."""
    rng = np.random.default_rng(3)
    side = np.arange(200) % 2
    upper = np.triu((rng.random((200, 200)) < 0.05) & (side[:, None] != side), 1)
    graph = Graph.from_scipy(
        sparse.csr_array((upper | upper.T).astype(float)), features=rng.normal(size=(200, 3)).astype(np.float32)
    )
    return graph, np.array(["even", "odd"])[side]


def test_it_is_the_estimator_on_the_columns(graph: Graph, nodes: Any, animals: Any) -> None:
    model = quick(graph).fit(nodes, animals)
    known = np.sort(nodes)
    columns = PropagatedFeatures(graph, random_state=0)
    rows = columns.fit_transform(known, animals[np.argsort(nodes)])
    kind: Any = GaussianNB()
    expected = kind.fit(rows, np.array(["ant", "bee", "cat"])[known // 30]).predict_proba(columns.columns_)
    np.testing.assert_allclose(model.predict_proba(), expected, atol=1e-9)
    assert model.features_.get_feature_names_out().tolist() == columns.get_feature_names_out().tolist()
    assert (model.alpha_, model.n_features_in_, model.record_.backend, model.n_iter_) == (None, 1, "sklearn", 0)


def test_boosting_is_the_default_and_learns_where_neighbours_differ(opposite: tuple[Graph, Any]) -> None:
    graph, y = opposite
    train, test = np.arange(120), np.arange(120, 200)
    model = ColumnsClassifier(graph, random_state=0).fit(train, y[train])
    assert type(model.estimator_) is type(boosting(0))
    alone = MLPNodeClassifier(graph, max_epochs=100, random_state=0).fit(train, y[train])
    assert model.score(test, y[test]) > 0.95 > 0.65 > alone.score(test, y[test])
    blind = ColumnsClassifier(graph, label_inputs=False, random_state=0).fit(train, y[train])
    assert blind.score(test, y[test]) < model.score(test, y[test]) - 0.1
    again = ColumnsClassifier(graph, random_state=0).fit(train, y[train])
    assert np.array_equal(model.logits_, again.logits_)


def test_labels_that_fit_was_not_given_change_no_bit(opposite: tuple[Graph, Any]) -> None:
    graph, y = opposite
    codes = (y == "odd").astype(np.int64)
    one = quick(graph.replace(labels=codes)).fit(ALL, y[ALL])
    codes[90:] = np.roll(codes[90:], 1)
    other = quick(graph.replace(labels=codes)).fit(ALL, y[ALL])
    assert np.array_equal(one.logits_, other.logits_)


def test_labels_of_validation_nodes_measure_and_nothing_else(opposite: tuple[Graph, Any]) -> None:
    graph, y = opposite
    train, judges = np.arange(100), np.arange(100, 150)
    alone = quick(graph).fit(train, y[train])
    judged = quick(graph).fit(train, y[train], stopping=(judges, y[judges]))
    assert np.array_equal(alone.logits_, judged.logits_)
    assert judged.record_.stopping_accuracy == alone.score(judges, y[judges])
    own = alone.logits_[judges, (y[judges] == "odd").astype(int)]
    assert judged.record_.stopping_loss == pytest.approx(-own.mean())
    assert np.isnan(alone.record_.stopping_loss)
    held = quick(graph, stopping=0.25).fit(train, y[train])
    assert (held.record_.train_nodes, held.record_.stopping_nodes) == (76, 24)


def test_weights_reach_the_estimator(graph: Graph, nodes: Any, animals: Any) -> None:
    forest = RandomForestClassifier(5, random_state=0)
    plain = quick(graph, estimator=forest).fit(nodes, animals)
    heavy = quick(graph, estimator=forest, class_weight={"cat": 50.0}).fit(nodes, animals)
    assert heavy.predict_proba()[:, 2].mean() > plain.predict_proba()[:, 2].mean()
    with pytest.raises(InputError, match=r"KNeighborsClassifier, whose fit has no sample_weight"):
        quick(graph, estimator=KNeighborsClassifier(), class_weight="balanced").fit(nodes, animals)


def test_a_class_of_validation_nodes_alone_is_a_class(graph: Graph, nodes: Any, animals: Any) -> None:
    cats = animals == "cat"
    model = quick(graph).fit(nodes[~cats], animals[~cats], stopping=(nodes[cats], animals[cats]))
    assert model.predict_proba().shape == (90, 3)
    assert model.predict_proba()[:, 2].max() < 1e-300
    assert model.record_.stopping_accuracy == 0


def test_features_and_labels_may_be_missing(graph: Graph, nodes: Any, animals: Any) -> None:
    assert quick(graph.replace(features=None)).fit(nodes, animals).score(nodes, animals) > 0.5
    assert quick(graph).fit([0, 40], ["ant", "bee"]).predict([0]).shape == (1,)  # fewer nodes than folds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": LinearSVC()}, r"must be a classifier with predict_proba.* Got LinearSVC"),
        ({"estimator": GaussianNB}, "Got the class GaussianNB"),
        ({"estimator": "GaussianNB()"}, "A model that was loaded has its estimator as text: pass the estimator again"),
        ({"hops": -1}, "The 'hops' parameter of ColumnsClassifier must be"),
        ({"folds": 1}, "The 'folds' parameter of ColumnsClassifier must be"),
    ],
)
def test_what_cannot_be_is_refused(
    graph: Graph, nodes: Any, animals: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        quick(graph, **settings).fit(nodes, animals)


def test_probabilities_that_do_not_sum_to_one_are_refused(graph: Graph, nodes: Any, animals: Any) -> None:
    class Halves(GaussianNB):
        def predict_proba(self, X: Any) -> Any:
            return super().predict_proba(X) / 2

    with pytest.raises(InputError, match=r"sum to one. Got Halves, whose predict_proba gives others, instead.$"):
        quick(graph, estimator=Halves()).fit(nodes, animals)


def test_one_class_among_training_nodes_is_refused(graph: Graph) -> None:
    with pytest.raises(InputError, match=r"training labels of at least two classes. Got 1 class, 'ant'"):
        quick(graph).fit([0, 1], ["ant", "ant"], stopping=([40], ["bee"]))


def test_a_saved_model_has_the_same_bits_on_its_graph_and_no_other(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    model = quick(graph, estimator=LogisticRegression(C=3.0, max_iter=1000), hops=1)
    model.fit(nodes[:30], animals[:30], stopping=(nodes[30:], animals[30:])).save(tmp_path / "model")
    again: Any = load(tmp_path / "model", graph=graph)
    assert isinstance(again, ColumnsClassifier)
    assert np.array_equal(again.logits_, model.logits_)
    assert again.estimator == "LogisticRegression(C=3.0, max_iter=1000)"
    assert again.stopping_nodes_.tolist() == sorted(nodes[30:].tolist())
    assert not hasattr(again, "estimator_")
    with pytest.raises(InputError, match="pass the estimator again"):
        again.fit(nodes, animals)
    other = graph.replace(ids=[f"n{k}" for k in range(90)])
    for use in (lambda: load(tmp_path / "model", graph=other), lambda: model.on(other)):
        with pytest.raises(InputError, match=r"The columns that a ColumnsClassifier reads belong to .* Fit one"):
            use()
    assert not any(b"pickle" in file.read_bytes() for file in (tmp_path / "model").iterdir())


def test_the_default_estimator_is_known_after_loading(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    model = ColumnsClassifier(graph, random_state=0).fit(nodes, animals)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", graph=graph)
    assert np.array_equal(again.fit(nodes, animals).logits_, model.logits_)


def test_outputs_of_a_damaged_file_are_refused(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    model: Any = quick(graph).fit(nodes, animals)
    for wrong in (np.zeros((89, 3)), np.full((90, 3), np.nan), np.zeros((90, 3), dtype=np.float32)):
        model.fitted_ = replace(model.fitted_, extras={"log_probabilities": wrong})
        model.save(tmp_path / "model", overwrite=True)
        with pytest.raises(FormatError, match=r"is damaged: .* given the outputs of 90 nodes"):
            load(tmp_path / "model", graph=graph)


def test_scikit_learns_tools_and_pickle_work(graph: Graph, nodes: Any, animals: Any) -> None:
    model = quick(graph, estimator=LogisticRegression(max_iter=1000))
    twin: Any = clone(model)
    assert twin.graph is graph
    strict: Any = {"error_score": "raise"}
    assert cross_val_score(model, nodes, animals, cv=3, **strict).mean() > 0.6
    fitted = model.fit(nodes, animals)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).logits_, fitted.logits_)  # noqa: S301


def test_explanations_and_live_graphs_say_why_not(graph: Graph, nodes: Any, animals: Any) -> None:
    model = quick(graph).fit(nodes, animals)
    with pytest.raises(InputError, match="ColumnsClassifier, whose logits are no sum over nodes"):
        model.explain(0)
    with pytest.raises(InputError, match="ColumnsClassifier, which reads columns of each node's surroundings"):
        live(model)
