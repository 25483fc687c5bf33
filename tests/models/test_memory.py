"""The floats per node that a description plans with, against what an epoch really allocates."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop import Graph, Split
from pprop.models import GCN, GPRGNN, JK, NGCN, Architecture
from pprop.models.residual import ResidualGNN

N, F, C = 3000, 10, 3


class Ready(Exception):  # noqa: N818  no error: the training need not begin
    """Carries the program out of `train`."""


@pytest.mark.parametrize(
    "model",
    [
        GCN(hidden=8),
        JK(hidden=8),
        JK(hidden=8, layers=2),
        NGCN(hidden=8),
        NGCN(hidden=8, powers=3, replicas=2),
        GPRGNN(hidden=8),
        GPRGNN(hidden=32, steps=2),
        ResidualGNN(hidden=8, layers=2),
        ResidualGNN(hidden=8, layers=8, label_inputs=False),
    ],
)
def test_the_planned_floats_hold_those_of_an_epoch_and_not_many_more(
    model: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_here(program: Any, *others: Any) -> NoReturn:
        raise Ready(program)

    monkeypatch.setattr("pprop.training.loop.run_loop", stop_here)
    rng = np.random.default_rng(0)
    pairs: Any = sparse.random_array((N, N), density=2 / N, rng=rng, format="csr")
    features = sparse.random_array((N, F), density=0.3, rng=rng, format="csr", dtype=np.float32)
    graph = Graph.from_scipy(((pairs + pairs.T) > 0).astype(float), features=features, labels=np.arange(N) % C)
    split = Split(np.arange(30), np.arange(30, 60), np.arange(60, N))
    with pytest.raises(Ready) as caught:
        pprop.train(model, graph, split, backend="numba", progress=False)
    (program,) = caught.value.args
    program.epoch()
    peak = peak_of(program.epoch) / 4 / N
    assert 0.95 * peak < model.floats_per_node(C) < 1.6 * peak


class Allocated(ctypes.Structure):
    """What glibc's mallinfo2 returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "used", "free", "keep")
    ]


def peak_of(work: Callable[[], object]) -> int:
    """Return the most bytes that numpy and torch together hold of what some work allocates, looked at in every call."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Allocated

    def held() -> int:
        info = mallinfo2()
        return info.used + info.hblkhd

    gc.collect()  # what other tests have left behind is not freed meanwhile
    gc.disable()
    begin, most = held(), 0

    def look(*_: object) -> None:
        nonlocal most
        most = max(most, held() - begin)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return most
