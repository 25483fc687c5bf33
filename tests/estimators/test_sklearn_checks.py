"""scikit-learn's own estimator checks, with node positions as X.

A check makes a feature matrix and hands it to ``_enforce_estimator_tags_X``, the place where scikit-learn adapts data to
what an estimator takes. Here this place turns each row into a node: the row becomes the features of the node, near rows
become neighbours, and the check goes on with the positions of the nodes as its X. The graph has to be known before the
check begins, so a check is repeated until it shows no new row; the last run counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, spatial
from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator

import pprop.estimators.node
import pprop.estimators.reading
from pprop import (
    APPNPClassifier,
    APPNPClassifierCV,
    APPNPEnsembleClassifier,
    APPNPRegressor,
    BootstrappedFPClassifier,
    GCNClassifier,
    Graph,
    InputError,
    LabelPropagationClassifier,
    MLPNodeClassifier,
    PPNPClassifier,
    PropagatedClassifier,
    PropagatedRegressor,
    SolvedPPNPClassifier,
)

pytestmark = pytest.mark.slow

CLASSES = (
    *(APPNPClassifier, PPNPClassifier, SolvedPPNPClassifier, MLPNodeClassifier),
    *(APPNPClassifierCV, APPNPEnsembleClassifier),
    *(GCNClassifier, BootstrappedFPClassifier, PropagatedClassifier, LabelPropagationClassifier),
    *(APPNPRegressor, PropagatedRegressor),
)
"""GCN stands for the other baselines that are trained, whose classifiers differ in the names of settings alone."""

RUN = (
    "check_array_api_input",
    "check_complex_data",
    "check_dict_unchanged",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_dont_overwrite_parameters",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimator_tags_renamed",
    "check_estimators_empty_data_messages",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_get_params_invariance",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_mixin_order",
    "check_n_features_in",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_requires_y_none",
    "check_set_params",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
    "check_valid_tag_types",
)
"""These run, and pass."""

OF_CLASSIFIERS = (
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_regression_target",
    "check_classifiers_train",
    "check_decision_proba_consistency",
)
OF_REGRESSORS = (
    "check_regressor_data_not_an_array",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
)
"""These run, and pass, of estimators of a kind."""

WITH_WEIGHTS = (
    "check_all_zero_sample_weights_error",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
)
"""These run, and pass, where fit takes sample_weight; BootstrappedFPClassifier has the parameter, and refuses weights."""

OF_CLASSIFIERS_WITH_WEIGHTS = ("check_classifiers_one_label_sample_weights",)

WITH_CLASS_WEIGHTS = ("check_class_weight_classifiers",)
"""This runs where there is a class_weight. It wants one class for nearly all nodes, and passes where there are biases."""

BY_DESIGN: dict[str, tuple[str, type[BaseException], str]] = {
    "check_dtype_object": (
        "passes but for its last step, which wants a TypeError for a dict in X; ours is an InputError, a ValueError",
        InputError,
        "dtype object",
    ),
    "check_estimators_dtypes": (
        "gives X as floats too; a position is an integer, and a float is refused lest it was meant as a feature",
        InputError,
        "dtype float64",
    ),
    "check_fit2d_predict1d": (
        "wants a one-dimensional X refused; here that is the usual form",
        AssertionError,
        "Did not raise",
    ),
    "check_n_features_in_after_fitting": (
        "takes the second column of X; here X has one (that two are refused is tested in test_bad_input.py)",
        IndexError,
        "index 1 is out of bounds",
    ),
}
"""These cannot apply: what they ask for contradicts nodes as samples. They run, and fail in this way."""

SEVERAL_LABELS: dict[str, tuple[str, type[BaseException], str]] = {
    f"check_classifiers_multilabel_{name}": (
        "gives equal rows other labels: here they are one node, whose labels would contradict each other",
        InputError,
        "Got two for node",
    )
    for name in (
        "output_format_decision_function",
        "output_format_predict",
        "output_format_predict_proba",
        "representation_invariance",
    )
}
"""These cannot apply to classifiers of several labels per node, either."""

EMPTY = {
    "check_estimators_partial_fit_n_features": "does nothing without partial_fit",
    "check_fit1d": "wants a one-dimensional X refused; ours would be for its fractions, which is another reason",
    "check_fit_non_negative": (
        "its X has two columns and is refused for that; negative positions meet check_positive_only_tag_during_fit"
    ),
    "check_non_transformer_estimators_n_iter": (
        "does nothing without a parameter max_iter, which is max_epochs here; n_iter_ is tested in test_classifiers.py"
    ),
}
"""These cannot apply: they pass, but without having looked at anything. They do not count as passed."""

AT_THE_BORDER = (
    "check_decision_proba_consistency",
    "check_supervised_y_no_nan",
    *WITH_WEIGHTS[1:],
    *OF_CLASSIFIERS_WITH_WEIGHTS,
    *WITH_CLASS_WEIGHTS,
    *SEVERAL_LABELS,
)
"""These pass their matrix to the estimator directly, so that the rows are turned into nodes as they enter it."""

NEEDS_LEARNING = (
    "check_classifiers_train",
    "check_classifiers_classes",
    "check_decision_proba_consistency",
    "check_regressors_train",
)


class Rows:
    """All rows that a check has shown so far; each is a node."""

    def __init__(self) -> None:
        self.position: dict[tuple[float, ...], int] = {}

    def to_positions(self, X: object) -> NDArray[np.int64]:
        rows = [tuple(row) for row in np.asarray(X, dtype=np.float64).tolist()]
        return np.array([[self.position.setdefault(row, len(self.position))] for row in rows], dtype=np.int64)

    def to_graph(self) -> Graph:
        rows = list(self.position) or [(0.0,), (1.0,), (2.0,)]
        width = max(len(row) for row in rows)
        table = np.array([[*row, *[0.0] * (width - len(row))] for row in rows])
        near = spatial.KDTree(table).query(table, k=min(3, len(rows)))[1].reshape(len(rows), -1)
        edges = np.zeros((len(rows), len(rows)))
        edges[np.arange(len(rows))[:, None], near] = 1.0
        edges = np.maximum(edges, edges.T) * (1 - np.eye(len(rows)))
        scaled = table / np.maximum(np.abs(table).max(axis=0), 1e-9)
        # The network has no biases: signs apart, and one constant feature.
        features = np.hstack([np.maximum(scaled, 0), np.maximum(-scaled, 0), np.full((len(rows), 1), 0.3)])
        return Graph.from_scipy(sparse.csr_array(edges), features=features.astype(np.float32))


SEEN: dict[str, Rows] = {}  # a check shows the same rows to every estimator

Check = Callable[[Any], None]


def named(check: Any) -> tuple[str, str]:
    """Return the name of a check, and its name with the arguments it was given, as an id."""
    arguments: dict[str, Any] = {}
    while hasattr(check, "func"):
        arguments |= check.keywords
        check = check.func
    return check.__name__, "-".join([check.__name__, *(f"{key}={value}" for key, value in arguments.items())])


def all_checks(kind: type) -> dict[str, tuple[str, Check]]:
    """Return name and function of every check that scikit-learn has for an estimator, by id."""
    checks: dict[str, tuple[str, Check]] = {}
    pairs: Any = estimator_checks_generator(make(kind, Rows().to_graph(), 3))
    for _, check in pairs:
        name, key = named(check)
        checks[key] = (name, check)
    return checks


def make(kind: type, graph: Graph, epochs: int) -> Any:
    """Return a classifier that computes in plain torch: numba would compile for each number of classes."""
    if kind is PropagatedClassifier:
        return PropagatedClassifier(LogisticRegression(C=100.0), graph, backend="reference")
    if (
        kind is PropagatedRegressor
    ):  # without steps, since a check sets alpha to 0.01, wants noise fitted, and means would hide it
        return PropagatedRegressor(Ridge(alpha=0.01), graph, steps=0, backend="reference")
    if kind is LabelPropagationClassifier:
        return LabelPropagationClassifier(graph, backend="reference")
    if kind is BootstrappedFPClassifier:
        return BootstrappedFPClassifier(graph, rounds=1, random_state=0)
    quick = {"hidden": 16, "dropout": 0.0, "penalty": 0.0, "learning_rate": 0.1, "max_epochs": epochs}
    own: dict[type, dict[str, Any]] = {
        APPNPClassifier: {"steps": 3},
        APPNPClassifierCV: {"steps": 3, "alphas": (0.1, 0.3)},
        APPNPEnsembleClassifier: {"steps": 3, "members": 2, "rounds": 1},
        APPNPRegressor: {"steps": 3, "alpha": 0.9},
        GCNClassifier: {"matrix_dropout": 0.0},
        SolvedPPNPClassifier: {"tol": 0.1},
    }
    return kind(graph, random_state=0, backend="reference", **quick, **own.get(kind, {}))


CHECKS = {kind: all_checks(kind) for kind in CLASSES}


def run(kind: type, key: str, monkeypatch: pytest.MonkeyPatch) -> BaseException | None:
    """Run a check until it shows no new row; return how the last run ended."""
    name, check = CHECKS[kind][key]
    rows = SEEN.setdefault(key, Rows())
    check_positions = pprop.estimators.reading.node_positions

    def adapt(estimator: object, X: object, X_test: object = None, kernel: object = None) -> Any:
        return rows.to_positions(X) if X_test is None else (rows.to_positions(X), rows.to_positions(X_test))

    def enter(X: Any, parameter: str, function: str, graph: Graph, ids: object = None) -> NDArray[np.int64]:
        return check_positions(rows.to_positions(X), parameter, function, graph)

    def close(one: object, other: object, rtol: float = 0, atol: float = 0, err_msg: str = "") -> None:
        compare(one, other, rtol=1e-4, atol=1e-5, err_msg=err_msg)  # training is in float32

    compare = estimator_checks.assert_allclose_dense_sparse
    if name == "check_sample_weight_equivalence_on_dense_data":
        monkeypatch.setattr(estimator_checks, "assert_allclose_dense_sparse", close)
    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_X", adapt)
    if name in AT_THE_BORDER:
        for module in (pprop.estimators.node, pprop.estimators.reading):
            monkeypatch.setattr(module, "node_positions", enter)
    epochs = 60 if name in WITH_CLASS_WEIGHTS else 12 if name in NEEDS_LEARNING else 2
    for _ in range(6):
        known = len(rows.position)
        estimator = make(kind, rows.to_graph(), epochs)
        error = None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Every class has one node only")  # some checks take y = X
            try:
                check(estimator)
            except (Exception, pytest.skip.Exception) as caught:
                error = caught
        if len(rows.position) == known:
            return error
    raise AssertionError("The check shows new rows at every run.")


UNWEIGHTED = (PropagatedClassifier, BootstrappedFPClassifier)
SEVERAL = (APPNPClassifier, PPNPClassifier, MLPNodeClassifier)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_check_of_scikit_learn_is_in_exactly_one_list(kind: type) -> None:
    expected = [*RUN, *BY_DESIGN, *EMPTY]
    if is_regressor(make(kind, Rows().to_graph(), 3)):
        expected += [*OF_REGRESSORS, *WITH_WEIGHTS]
    else:
        expected += [*OF_CLASSIFIERS, *OF_CLASSIFIERS_WITH_WEIGHTS]
        expected += [] if kind is PropagatedClassifier else WITH_WEIGHTS  # which do nothing without sample_weight
        expected += [] if kind in UNWEIGHTED else WITH_CLASS_WEIGHTS
        expected += SEVERAL_LABELS if kind in SEVERAL else []
    assert sorted({name for name, _ in CHECKS[kind].values()}) == sorted(expected)


def passing(kind: type) -> list[str]:
    """Return the ids of the checks that an estimator passes."""
    weighted = () if kind in UNWEIGHTED else (*WITH_WEIGHTS, *OF_CLASSIFIERS_WITH_WEIGHTS)
    weighted += WITH_CLASS_WEIGHTS if hasattr(kind, "bias") else ()
    named_ = (*RUN, *OF_CLASSIFIERS, *OF_REGRESSORS, *weighted)
    return [key for key, (name, _) in CHECKS[kind].items() if name in named_]


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind in CLASSES for key in passing(kind)])
def test_check_passes(kind: type, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = run(kind, key, monkeypatch)
    if key.endswith("data_not_an_array") and "pandas is not installed" in str(error):
        return  # it has passed with its own array-like, and comes to data frames last
    if key.startswith("check_array_api_input") and "SCIPY_ARRAY_API is not set" in str(error):
        return  # it runs in the process of the next test
    if error is not None:
        raise error


@pytest.mark.skipif(os.environ.get("SCIPY_ARRAY_API") == "1", reason="this is the process that the test starts")
def test_the_array_api_check_passes_where_scipy_allows_it() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "check_array_api_input", __file__]
    done = subprocess.run(command, env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert f"{len(CLASSES)} passed" in done.stdout


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", BY_DESIGN)
def test_check_that_cannot_apply_fails_for_the_reason_given(
    kind: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, expected, words = BY_DESIGN[name]
    error = run(kind, name, monkeypatch)
    assert isinstance(error, expected)
    assert words in str(error)


@pytest.mark.parametrize("kind", SEVERAL)
@pytest.mark.parametrize("name", SEVERAL_LABELS)
def test_check_of_several_labels_that_cannot_apply_fails_for_the_reason_given(
    kind: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, expected, words = SEVERAL_LABELS[name]
    error = run(kind, name, monkeypatch)
    assert isinstance(error, expected)
    assert words in str(error)
