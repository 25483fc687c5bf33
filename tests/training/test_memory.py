"""The planner against counts made by hand: bytes by item, chunks that fit, sentences when nothing does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pprop import CapacityError, InputError
from pprop._process import memory_limit
from pprop.kernels.contract import TrainerSizes
from pprop.kernels.numba_cpu.trainer import trainer_bytes
from pprop.training.memory import TrainingBytes, plan_runs, training_bytes

# 5 nodes, 4 features, 8 hidden units, 2 classes; on the CPU padded to 16 units and 4 classes
TINY = TrainerSizes(5, 4, 8, 2, feature_entries=10, entries=13, steps=10, train_nodes=2, stopping_nodes=1)
CORA_ML = TrainerSizes(
    2810, 2879, 64, 7, feature_entries=142286, entries=18772, steps=10, train_nodes=140, stopping_nodes=500
)


def held(sizes: TrainerSizes, max_epochs: int = 10000) -> TrainingBytes:
    n, f, hidden, classes = sizes.nodes, sizes.features, sizes.hidden, sizes.classes
    return training_bytes(trainer_bytes(sizes), (n, f), hidden, classes, hidden * (f + classes), max_epochs)


BYTES, CORA_BYTES = held(TINY, 100), held(CORA_ML)


def total(items: dict[str, int]) -> int:
    return sum(items.values())


def test_a_run_on_the_cpu_is_counted_item_by_item():
    assert trainer_bytes(TINY).run == {
        "weights": 4 * (4 * 16 + 2 * 16 * 4),
        "moments": 4 * 2 * (4 * 16 + 16 * 4),
        "hidden layer": 4 * 2 * 5 * 16,
        "states": 4 * 5 * 7 * 4 + 2 * 5,
        "feature masks": 4 * 2 * 4 * 10,
        "edge masks": 4 * 2 * 8 * 13,
        "sums": 4 * (16 * 4 + (2 * 2 + 1) * 4),
    }


def test_what_all_runs_share_is_counted_once():
    features, graph = 20 * 10 + 8 * (5 + 4 + 2), 12 * 13 + 48 * 5 + 16
    assert trainer_bytes(TINY).shared == {"features": features, "graph": graph, "PPR rows": 0}
    rows = trainer_bytes(replace(TINY, entries=0, steps=0, ppr_rows=3)).shared
    assert rows == {"features": features, "graph": 0, "PPR rows": 4 * 3 * 5}
    weighted = trainer_bytes(replace(TINY, weighted=True)).shared
    assert weighted["graph"] - graph == 8 * 13
    assert trainer_bytes(replace(TINY, symmetric=True)).shared["graph"] == 8 * 13 + 40 * 5 + 8


def test_without_dropout_there_is_one_plane_of_masks():
    still = trainer_bytes(replace(TINY, dropout=False)).run
    assert (still["feature masks"], still["edge masks"]) == (4 * 2 * 10, 4 * 2 * 13)


def test_the_kept_and_resulting_bytes_follow_from_the_weights_and_predictions():
    weights = 4 * 8 * (4 + 2)
    assert BYTES.kept == {
        "initial weights": weights,
        "best weights": weights,
        "predictions": 4 * 5 * (8 + 2 * 2),
    }
    assert BYTES.results == {"weights": weights, "logits": 4 * 5 * 2, "curves": 48 * 100}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("at_once", [None, 1, 2, 1000])
@pytest.mark.parametrize("runs", [1, 2, 7, 100])
def test_the_chunk_fits_and_one_more_run_would_not(device, at_once, runs):
    shared, each = total(BYTES.shared), total(BYTES.kept)
    working, left = total(BYTES.training), total(BYTES.results) * runs * (device == "cpu")
    least = shared + left + each + working
    for memory in range(least, least + 12 * (each + working), 997):
        plan = plan_runs(BYTES, runs, memory=memory, device=device, at_once=at_once)
        together = min(plan.chunk, at_once or plan.chunk)
        assert plan.at_once <= together
        assert plan.peak <= memory
        # with as many chunks less one, the longest of them would not fit
        if plan.chunks > 1:
            longer = -(-runs // (plan.chunks - 1))
            assert shared + left + longer * each + min(longer, at_once or longer) * working > memory or (
                plan.at_once < min(longer, at_once or longer)
            )


def test_chunks_cover_every_run_once_and_differ_by_little():
    plan = plan_runs(BYTES, 10, memory=52000 + 4 * 3760, at_once=None)
    assert 1 < plan.chunk < 10
    covered = [run for part in plan.slices() for run in range(10)[part]]
    assert covered == list(range(10))
    lengths = [part.stop - part.start for part in plan.slices()]
    assert lengths[0] == plan.chunk
    assert len(lengths) == plan.chunks


def test_seven_runs_of_which_six_fit_make_chunks_of_four_and_three():
    each = total(BYTES.kept) + total(BYTES.training)
    plan = plan_runs(BYTES, 7, memory=total(BYTES.shared) + 6 * each, device="cuda")
    assert [part.stop - part.start for part in plan.slices()] == [4, 3]


def test_runs_trained_one_after_another_share_the_training_memory():
    each, working = total(BYTES.kept), total(BYTES.training)
    memory = total(BYTES.shared) + 50 * each + 2 * working
    assert plan_runs(BYTES, 50, memory=memory, device="cuda", at_once=2).chunk == 50
    assert plan_runs(BYTES, 50, memory=memory, device="cuda").chunk < 25


def test_one_run_that_does_not_fit_is_refused_with_the_numbers_and_the_remedy():
    sentence = (
        r"^One run needs 16 MiB on cpu \(feature masks 4.3 MiB, features 2.8 MiB, ...\), and 1.0 MiB may be used. "
        r"Use a smaller 'hidden' \(64 units here\), fewer features \(2879\), or a machine with more memory.$"
    )
    with pytest.raises(CapacityError, match=sentence):
        plan_runs(CORA_BYTES, 1, memory=2**20)


def test_ppr_rows_that_do_not_fit_are_named_with_their_own_remedy():
    with pytest.raises(CapacityError, match=r"^One run needs .*PPR rows 69 GiB.* Use APPNP, which needs no PPR rows"):
        plan_runs(held(replace(CORA_ML, nodes=10**6, entries=0, steps=0, ppr_rows=18421)), 1, memory=2**34)


def test_results_that_do_not_fit_say_how_many_runs_would():
    with pytest.raises(
        CapacityError, match=r"The results of 100 runs need \d+ KiB.* Train at most (\d+) runs"
    ) as caught:
        plan_runs(BYTES, 100, memory=100_000)
    fitting = int(str(caught.value).split("at most ")[1].split()[0])
    assert plan_runs(BYTES, fitting, memory=100_000).runs == fitting
    with pytest.raises(CapacityError):
        plan_runs(BYTES, fitting + 1, memory=100_000)


def test_the_limit_is_a_share_of_the_machine(monkeypatch):
    monkeypatch.setattr("pprop._process.usable_memory", lambda: 1000)
    assert memory_limit("cpu") == 600
    monkeypatch.setattr("pprop._process.usable_memory", lambda: None)
    assert memory_limit("cpu") == 2**62
    assert plan_runs(CORA_BYTES, 10**5).chunks == 1


def test_bad_numbers_are_refused():
    with pytest.raises(InputError, match="The 'runs' parameter of plan_runs must be"):
        plan_runs(BYTES, 0)


def test_the_description_names_device_runs_chunks_and_the_largest_items():
    text = plan_runs(CORA_BYTES, 100, memory=2**30).describe()
    assert text.startswith("plan: 100 runs on cpu in 2 chunks of up to 50; at most ")
    assert "feature masks 4.3 MiB" in text
    assert len(text.splitlines()) == 5
    assert plan_runs(CORA_BYTES, 1, memory=2**30).describe().startswith("plan: 1 run on cpu; at most ")
