"""The benchmark of live graphs: its edits are what it says, its peer reaches the tolerance, its watch sees a breach."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop.propagation.live_system import LiveSystem

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("live")


def test_a_small_run_reports_every_figure(script):
    arguments = argparse.Namespace(entries=2e4, columns=3, alpha=0.1, tol=1e-4, edits=40, blocks=2)
    report = script.measure(arguments)
    assert report["edits"] == 40
    assert 0 < report["error_over_tol"] <= 1
    assert {"median_ratio", "p99_ratio", "fresh_ms", "edit_ms", "entries_read"} <= set(report)


@pytest.mark.parametrize("uniform", [0, 500])
def test_batches_and_single_edits_take_turns_and_stay_within_the_bound(script, uniform):
    arguments = argparse.Namespace(entries=1e4, columns=3, alpha=0.1, tol=1e-4, batch=200, blocks=2, uniform=uniform)
    report = script.measure_batches(arguments)
    assert (report["batch"], report["batches"]) == (200, 2)
    assert 0 < report["bound_over_tol"] <= 1
    assert {"edits_a_second", "single_edits_a_second", "ratio"} <= set(report)


def test_the_edits_of_a_batch_are_possible_in_their_order(script):
    graph = pprop.Graph.from_scipy(sparse.csr_array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    there = {}
    calls = script.as_calls(graph, [(1, 0), (0, 1), (2, 1), (0, 1)], there)
    assert [name for name, _, _ in calls] == ["remove_edge", "add_edge", "add_edge", "remove_edge"]
    assert there == {(0, 1): False, (1, 2): True}


def test_the_fresh_solve_reaches_the_tolerance_and_one_with_fewer_products_is_not_far_below(script):
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((60, 60)) < 0.1, 1).astype(float)
    graph = pprop.Graph.from_scipy(sparse.csr_array(A + A.T))
    H = rng.standard_normal((60, 3))
    solve, products = script.fresh_solve(graph, H, 0.1, 1e-4)
    size = np.sqrt(1 + np.diff(graph.indptr))[:, None]
    error = np.abs(solve()[0].numpy() - pprop.propagate(graph, H, 0.1, pprop.Exact())) / size
    assert 1e-7 < error.max() <= 1e-4
    assert 10 < products < 32


def test_half_of_the_edits_are_edges_of_the_graph(script):
    rng = np.random.default_rng(1)
    A = np.triu(rng.random((200, 200)) < 0.02, 1).astype(float)
    graph = pprop.Graph.from_scipy(sparse.csr_array(A + A.T))
    there = [bool(graph.adjacency[u, v]) for u, v in script.draw_edits(graph, 400, rng)]
    assert all(there[1::2])
    assert np.mean(there[::2]) < 0.2


def test_random_edits_on_citeseer_stay_within_the_bound(script):
    report = script.stay_within(150, 0.1, 1e-4, "citeseer", every=75)
    assert 0 < report["largest_error_over_tol"] <= report["largest_bound_over_tol"] <= 1


def test_the_watch_sees_pushes_that_are_left_out(script, monkeypatch):
    monkeypatch.setattr(LiveSystem, "_push", lambda self, nodes: (0, 0, False))
    assert script.stay_within(20, 0.1, 1e-4, "citeseer")["largest_error_over_tol"] > 1
