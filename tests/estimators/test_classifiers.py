"""What a fitted classifier says, compared with `train` and with closed forms."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from torch import nn

import pprop
from pprop import (
    APPNPClassifier,
    Graph,
    InputError,
    MLPNodeClassifier,
    PPNPClassifier,
    Recommended,
    SolvedPPNPClassifier,
    Split,
    Stopping,
)

MODELS = {
    APPNPClassifier: pprop.APPNP,
    PPNPClassifier: pprop.PPNP,
    SolvedPPNPClassifier: pprop.SolvedPPNP,
    MLPNodeClassifier: pprop.MLP,
}
CLASSES = tuple(MODELS)
QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 15, "random_state": 5}


def quick(**changes: Any) -> dict[str, Any]:
    """Return the quick settings with some of them changed."""
    return {**QUICK, **changes}


def parts(nodes: NDArray[np.int64], classes: NDArray[Any]) -> tuple[Any, ...]:
    """Return 20 nodes to train, their classes, and the others to stop."""
    return nodes[:20], classes[:20], (nodes[20:], classes[20:])


def same(first: Any, second: Any, n_nodes: int = 90) -> bool:
    everywhere = np.arange(n_nodes)
    return np.array_equal(first.decision_function(everywhere), second.decision_function(everywhere))


class Poison:
    """Stands for labels that nobody may look at."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"somebody asked the labels for {name}")

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError("somebody read the labels")


@pytest.mark.parametrize("kind", CLASSES)
def test_fit_equals_train_with_the_same_seed_bit_for_bit(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    train, classes, (stopping, stopping_classes) = parts(nodes, animals)
    papers = graph.replace(recommended=Recommended(0.1, 50, "sym"))
    fitted = kind(papers, penalty=0.01, learning_rate=0.02, **QUICK).fit(
        train, classes, stopping=(stopping, stopping_classes)
    )
    split = Split(train, stopping, np.empty(0, dtype=np.int64))
    trained = pprop.train(
        MODELS[kind](hidden=8, penalty=0.01),
        graph,
        split,
        seeds=5,
        labels=np.arange(90) // 30,
        stopping=Stopping(max_epochs=15),
        learning_rate=0.02,
        progress=False,
    )
    assert np.array_equal(fitted.decision_function(np.arange(90)), trained.logits[0])
    assert np.array_equal(fitted.predict(np.arange(90)), np.array(["ant", "bee", "cat"])[trained.predict()[0]])
    assert [np.array_equal(a, b[0]) for a, b in zip(fitted.weights_.values(), trained.weights, strict=True)] == [
        True
    ] * 2
    assert np.array_equal(fitted.history_.stopping_loss, trained.history[0].stopping_loss)
    assert (fitted.n_iter_, fitted.record_.best_epoch) == (trained.epochs[0], trained.best_epoch[0])
    assert (fitted.record_.train_nodes, fitted.record_.stopping_nodes) == (20, 16)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_labels_of_the_graph_are_never_read(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    poisoned = graph.replace(labels=np.arange(90) % 7, class_names=list("abcdefghi"))
    object.__setattr__(poisoned, "labels", Poison())
    with_labels = kind(poisoned, **QUICK).fit(nodes, animals)
    assert same(with_labels, kind(graph, **QUICK).fit(nodes, animals))
    assert with_labels.classes_.tolist() == ["ant", "bee", "cat"]
    assert with_labels.logits_.shape == (90, 3)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_of_model_learns_the_communities(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    others = np.setdiff1d(np.arange(90), nodes)
    truth = np.array(["ant", "bee", "cat"])[others // 30]
    fitted = kind(graph, hidden=8, max_epochs=150, random_state=0).fit(nodes, animals)
    assert fitted.score(others, truth) == np.mean(fitted.predict(others) == truth)
    assert fitted.score(others, truth) > (0.5 if kind is MLPNodeClassifier else 0.9)  # chance is one third


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["x", "y", "x", "y"], ["x", "y"]),
        (np.array(["x", "y", "x", "y"], dtype=object), ["x", "y"]),
        ([7, -2, 7, -2], [-2, 7]),
        ([7.0, -2.0, 7.0, -2.0], [-2, 7]),
        (np.array([7, -2, 7, -2], dtype=object), [-2, 7]),
        (np.array([7, 2, 7, 2], dtype=np.uint8), [2, 7]),
    ],
)
def test_labels_come_back_as_they_were_given(graph: Graph, labels: Any, expected: list[Any]) -> None:
    fitted = MLPNodeClassifier(graph, **quick(backend="reference")).fit([0, 30, 1, 31], labels)
    assert fitted.classes_.tolist() == expected
    assert fitted.classes_.dtype.kind == ("U" if isinstance(expected[0], str) else "i")
    assert set(fitted.predict(np.arange(90)).tolist()) <= set(expected)


def test_the_names_of_the_classes_do_not_matter(graph: Graph, nodes: Any, animals: Any) -> None:
    numbers = np.searchsorted(["ant", "bee", "cat"], animals) * 10
    assert same(
        APPNPClassifier(graph, **QUICK).fit(nodes, animals), APPNPClassifier(graph, **QUICK).fit(nodes, numbers)
    )


def test_two_classes_have_the_difference_of_their_logits_as_decision(graph: Graph, nodes: Any) -> None:
    fitted = APPNPClassifier(graph, **quick(backend="reference")).fit(nodes, (nodes < 30).astype(int))
    decision = fitted.decision_function(np.arange(90))
    assert decision.shape == (90,)
    assert np.array_equal(decision, fitted.logits_[:, 1] - fitted.logits_[:, 0])
    assert np.array_equal(fitted.predict(np.arange(90)), (decision > 0).astype(int))
    closed = 1 / (1 + np.exp(-decision.astype(float)))
    np.testing.assert_allclose(
        fitted.predict_proba(np.arange(90))[:, 1], closed, rtol=4 * float(np.finfo(np.float32).eps)
    )


def test_a_column_of_positions_is_the_same_as_a_row(graph: Graph, nodes: Any, animals: Any) -> None:
    row = APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    column = APPNPClassifier(graph, **QUICK).fit(nodes[:, None].astype(np.int32), animals)
    assert same(row, column)
    assert np.array_equal(row.predict(nodes[:, None]), row.predict(nodes))
    assert row.predict([]).shape == (0,)
    assert row.n_features_in_ == column.n_features_in_ == 1


def test_the_order_of_the_nodes_asked_for_is_kept(graph: Graph, nodes: Any, animals: Any) -> None:
    fitted = APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    assert np.array_equal(fitted.predict_proba([8, 3, 8]), fitted.predict_proba(np.arange(90))[[8, 3, 8]])


@pytest.mark.parametrize("kind", [APPNPClassifier, PPNPClassifier])
def test_alpha_is_the_recommended_one_unless_given(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    advised = graph.replace(recommended=Recommended(alpha=0.2, known=50))
    assert kind(advised, **QUICK).fit(nodes, animals).alpha_ == 0.2
    assert kind(graph, **QUICK).fit(nodes, animals).alpha_ == 0.1
    given = kind(advised, alpha=0.3, **QUICK).fit(nodes, animals)
    assert given.alpha_ == 0.3
    assert same(given, kind(graph, alpha=0.3, **QUICK).fit(nodes, animals))


def test_the_same_random_state_gives_the_same_fit(graph: Graph, nodes: Any, animals: Any) -> None:
    first, second = (
        APPNPClassifier(graph, **quick(random_state=np.random.RandomState(3))).fit(nodes, animals) for _ in range(2)
    )
    assert same(first, second)
    seeded = APPNPClassifier(graph, **quick(random_state=first.record_.seed)).fit(nodes, animals)
    assert same(first, seeded)
    stateful = APPNPClassifier(graph, **quick(random_state=np.random.RandomState(3)))
    assert stateful.fit(nodes, animals).record_.seed != stateful.fit(nodes, animals).record_.seed
    np.random.seed(8)  # noqa: NPY002  what scikit-learn's users do for random_state=None
    unseeded = APPNPClassifier(graph, **quick(random_state=None)).fit(nodes, animals)
    np.random.seed(8)  # noqa: NPY002
    assert same(unseeded, APPNPClassifier(graph, **quick(random_state=None)).fit(nodes, animals))


def test_a_seed_of_64_bits_is_the_seed_of_the_run(graph: Graph, nodes: Any, animals: Any) -> None:
    seed = pprop.run_seed(2144199730, 1) % 2**64
    assert seed > 2**32
    fitted = MLPNodeClassifier(graph, **quick(random_state=seed)).fit(nodes, animals)
    assert fitted.record_.seed == seed


@pytest.mark.parametrize("kind", CLASSES)
def test_listing_every_node_twice_changes_nothing_but_rounding(
    graph: Graph, nodes: Any, animals: Any, kind: Any
) -> None:
    train, classes, stopping = parts(nodes, animals)
    options = quick(max_epochs=3, dropout=0.0)
    once = kind(graph, **options).fit(train, classes, stopping=stopping)
    twice = kind(graph, **options).fit(np.tile(train, 2), np.tile(classes, 2), stopping=stopping)
    np.testing.assert_allclose(once.logits_, twice.logits_, atol=1e-4)


def test_a_class_of_the_stopping_nodes_alone_is_a_class(graph: Graph, nodes: Any, animals: Any) -> None:
    early = animals != "cat"
    fitted = APPNPClassifier(graph, **QUICK).fit(
        nodes[early], animals[early], stopping=(nodes[~early], animals[~early])
    )
    assert fitted.classes_.tolist() == ["ant", "bee", "cat"]


def test_cloning_shares_the_graph_and_forgets_the_fit(graph: Graph, nodes: Any, animals: Any) -> None:
    fitted = APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    twin: Any = clone(fitted)
    assert twin.graph is graph
    assert copy.deepcopy(fitted).graph is graph
    assert not hasattr(twin, "classes_")
    assert same(twin.fit(nodes, animals), fitted)


def test_changing_settings_after_the_fit_does_not_change_predictions(graph: Graph, nodes: Any, animals: Any) -> None:
    fitted = APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    before = fitted.decision_function(np.arange(90))
    fitted.set_params(alpha=0.9, steps=0, hidden=99)  # another graph is refused: test_changed_graph.py
    assert np.array_equal(fitted.decision_function(np.arange(90)), before)


def test_a_module_predicts_as_the_same_module_in_train(graph: Graph, nodes: Any, animals: Any) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(40, 6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 3))

    train, classes, (stopping, stopping_classes) = parts(nodes, animals)
    fitted = APPNPClassifier(graph, predictor=make, normalization="sym", max_epochs=5, random_state=1).fit(
        train, classes, stopping=(stopping, stopping_classes)
    )
    trained = pprop.train(
        pprop.APPNP(predictor=make),
        graph,
        Split(train, stopping, np.empty(0, dtype=np.int64)),
        seeds=1,
        labels=np.arange(90) // 30,
        stopping=Stopping(max_epochs=5),
        progress=False,
    )
    assert np.array_equal(fitted.logits_, trained.logits[0])
    assert list(fitted.weights_) == ["0.weight", "0.bias", "3.weight", "3.bias"]


def test_a_module_given_as_it_is_stays_as_it_was(graph: Graph, nodes: Any, animals: Any) -> None:
    module = nn.Linear(40, 3)
    before = copy.deepcopy(module.state_dict())
    fitted = MLPNodeClassifier(graph, predictor=module, max_epochs=5, random_state=1).fit(nodes, animals)
    assert all((module.state_dict()[name] == tensor).all() for name, tensor in before.items())
    assert (fitted.weights_["weight"] != before["weight"].numpy()).any()


def test_the_backend_asked_for_is_the_one_that_runs(graph: Graph, nodes: Any, animals: Any) -> None:
    fitted = {
        name: APPNPClassifier(graph, **quick(backend=name, max_epochs=3)).fit(nodes, animals)
        for name in ("numba", "reference")
    }
    assert {name: model.record_.backend for name, model in fitted.items()} == {
        "numba": "numba",
        "reference": "reference",
    }
    np.testing.assert_allclose(fitted["numba"].logits_, fitted["reference"].logits_, atol=1e-4)


@pytest.mark.parametrize(
    ("verbose", "progress", "plan"), [(0, False, False), (False, False, False), (True, True, False), (2, True, True)]
)
def test_verbose_tells_the_progress_and_then_the_plan(
    graph: Graph, nodes: Any, animals: Any, capsys: pytest.CaptureFixture[str], verbose: int, progress: bool, plan: bool
) -> None:
    MLPNodeClassifier(graph, **quick(max_epochs=3, verbose=verbose)).fit(nodes, animals)
    told = capsys.readouterr()
    assert told.out == ""
    assert ("Training" in told.err, "plan: 1 run on cpu; at most" in told.err) == (progress, plan)


@pytest.mark.parametrize("kind", [APPNPClassifier, PPNPClassifier, MLPNodeClassifier])
def test_the_device_is_passed_on_and_recorded(
    graph: Graph, nodes: Any, animals: Any, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    assert kind(graph, **quick(max_epochs=2)).fit(nodes, animals).record_.device == "cpu"
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match="The device 'cuda' needs a CUDA GPU, and torch sees none here"):
        kind(graph, device="cuda").fit(nodes, animals)
