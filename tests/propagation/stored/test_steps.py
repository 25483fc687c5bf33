"""Power steps over stored graphs: the numbers of `propagate`, whatever the blocks, panels, threads and files."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from pprop import CapacityError, FormatError, Graph, InputError, PowerIteration, propagate
from pprop.kernels.numba_cpu.large_steps import PIECE
from pprop.propagation.stored.device import DeviceSteps
from pprop.propagation.stored.plan import Sizes, make_plan
from pprop.scale import StepsProgress, plan_steps, propagate_folder

pytestmark = pytest.mark.usefixtures("every_kernel_threaded")

N, COLUMNS, MEMORY = 400, 20, 2**30
TOLERANCE = 20 * np.finfo(np.float32).eps


@dataclass
class Mapped:
    """A graph on disk, as `propagate_folder` needs it."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[Any] | None
    directed: bool


def graph_of(directed: bool, weighted: bool, n: int = N) -> Graph:
    """Sparse random edges, a few self-loops, a node that receives from none and one that is alone."""
    rng = np.random.default_rng(5)
    edges = np.where(rng.random((n, n)) < 4 / n, rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0, 0.0)
    edges[np.arange(0, n, 7), np.arange(0, n, 7)] = 3.0 if weighted else 1.0
    if not directed:
        edges = np.maximum(edges, edges.T)
    edges[3] = edges[-1] = edges[:, -1] = 0.0
    if not directed:
        edges[:, 3] = 0.0
    return Graph.from_scipy(sparse.csr_array(edges.astype(np.float32)), directed=directed)


def mapped(array: NDArray[Any], file: Path) -> NDArray[Any]:
    np.save(file, array)
    return np.load(file, mmap_mode="r")


def stored(graph: Graph, folder: Path) -> Mapped:
    indptr, indices = (mapped(getattr(graph, name), folder / f"{name}.npy") for name in ("indptr", "indices"))
    weights = None if graph.weights is None else mapped(graph.weights.astype(np.float32), folder / "weights.npy")
    return Mapped(indptr, indices, weights, graph.directed)


def predictions_of(n: int, columns: int = COLUMNS) -> NDArray[np.float32]:
    return np.random.default_rng(6).standard_normal((n, columns)).astype(np.float32)


def room(folder: Mapped, H: NDArray[Any], columns: int, block_entries: int) -> int:
    """Bytes for the process, scales and buffers, and so many columns in memory."""
    plan = plan_steps(folder, H, memory=MEMORY, block_entries=block_entries)
    return plan.fixed_bytes + 4 * len(H) * columns


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize(("directed", "weighted"), [(False, False), (False, True), (True, False), (True, True)])
def test_steps_from_disk_are_those_of_propagate(
    tmp_path: Path, directed: bool, weighted: bool, normalization: str, self_loops: bool
):
    graph, H = graph_of(directed, weighted), predictions_of(N)
    found = propagate_folder(
        stored(graph, tmp_path),
        mapped(H, tmp_path / "H.npy"),
        0.15,
        6,
        normalization,
        self_loops,
        memory=MEMORY,
        block_entries=100,
    )
    expected = propagate(graph, H.astype(np.float64), 0.15, PowerIteration(6), normalization, self_loops)
    np.testing.assert_allclose(found.values, expected, atol=TOLERANCE * np.abs(expected).max(), rtol=0)
    assert found.values.dtype == np.float32


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the GPU backend needs triton")
@pytest.mark.parametrize(("directed", "weighted", "normalization"), [(False, False, "sym"), (True, True, "col")])
def test_steps_on_a_gpu_are_those_of_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directed: bool, weighted: bool, normalization: str
):
    """Interpreted where there is no GPU: panels of 32 and 1 columns; some nodes have self-loops of their own."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(DeviceSteps, "place", torch.device("cpu"))
    folder, H = stored(graph_of(directed, weighted, 24), tmp_path), predictions_of(24, 33)
    plan = plan_steps(folder, H, 2, normalization, memory=2**20, device="cuda")
    assert plan.panels == (33,)
    few = plan.fixed_bytes + 4 * 24 * 3 * 32
    found = propagate_folder(folder, H, 0.15, 2, normalization, memory=few, device="cuda", out=tmp_path / "Z.npy")
    assert found.plan.panels == (32, 1)
    assert str(found.plan).endswith("on a GPU")
    expected = propagate_folder(folder, H, 0.15, 2, normalization, memory=MEMORY).values
    np.testing.assert_allclose(found.values, expected, atol=TOLERANCE * np.abs(expected).max(), rtol=0)
    with pytest.raises(CapacityError, match=r"of the GPU's memory, and may use 0\.00 GiB"):
        propagate_folder(folder, H, memory=100, device="cuda")
    with pytest.raises(InputError, match=r"'checkpoint'.*Got a GPU"):
        propagate_folder(
            folder, mapped(H, tmp_path / "H.npy"), memory=2**20, device="cuda", checkpoint=tmp_path / "kept"
        )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="'cpu', as torch finds no GPU"):
        propagate_folder(stored(graph_of(False, False, 24), tmp_path), predictions_of(24), device="cuda")


def test_neither_blocks_nor_panels_nor_kept_parts_nor_threads_change_a_bit(tmp_path: Path):
    n = 60_000
    graph = graph_of(False, True, 500)
    ring = sparse.diags_array([1.0], offsets=[1], shape=(n, n)).tolil()
    ring[0, 1 : PIECE + 2000] = 0.5  # a row that is cut in two
    ring[1000:1500, 1000:1500] = graph.adjacency.toarray()
    ring = ring.tocsr()
    folder = stored(Graph.from_scipy(sparse.csr_array(ring.maximum(ring.T))), tmp_path)
    H = mapped(predictions_of(n, 24), tmp_path / "H.npy")
    whole = propagate_folder(folder, H, 0.1, 4, memory=MEMORY)
    assert whole.plan.panels == (24,)
    assert whole.plan.read_bytes == 0
    few = room(folder, H, 2 * 8 + 3 + 24, 20_000)  # of the result, too
    narrow = propagate_folder(folder, H, 0.1, 4, memory=few, block_entries=20_000)
    assert max(narrow.plan.panels) < 24
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        few = room(folder, H, 2 * 1, 5000)
        alone = propagate_folder(folder, H, 0.1, 4, memory=few, block_entries=5000, out=tmp_path / "Z.npy")
    finally:
        numba.set_num_threads(before)
    assert alone.plan.panels == (1,) * 24
    assert alone.plan.read_bytes > 0
    assert np.array_equal(whole.values, narrow.values)
    assert np.array_equal(whole.values, alone.values)


@pytest.mark.parametrize("columns", [1000, 2 * 2])
def test_a_file_of_the_result_has_the_same_numbers(tmp_path: Path, columns: int):
    folder, H = stored(graph_of(True, False), tmp_path), predictions_of(N, 5)
    expected = propagate_folder(folder, H, steps=3, memory=MEMORY).values
    memory = room(folder, H, columns, 16)
    found = propagate_folder(folder, H, steps=3, memory=memory, out=tmp_path / "Z.npy", block_entries=16)
    assert found.plan.panels == ((5,) if columns == 1000 else (2, 2, 1))
    assert isinstance(found.values, np.memmap)
    assert np.array_equal(np.load(tmp_path / "Z.npy"), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_predictions_of_other_types_and_layouts_are_read_as_float32(tmp_path: Path, dtype: type, order: Any):
    folder, H = stored(graph_of(False, False), tmp_path), predictions_of(N).astype(dtype)
    given = mapped(np.asarray(H, order=order), tmp_path / "H.npy")
    found = propagate_folder(folder, given, steps=2, memory=MEMORY, block_entries=64)
    assert np.array_equal(found.values, propagate_folder(folder, H.astype(np.float32), steps=2, memory=MEMORY).values)


def test_no_steps_and_alpha_one_return_the_predictions(tmp_path: Path):
    folder, H = stored(graph_of(False, False), tmp_path), predictions_of(N)
    assert np.array_equal(propagate_folder(folder, H, steps=0, memory=MEMORY).values, H)
    assert np.array_equal(propagate_folder(folder, H, alpha=1.0, steps=2, memory=MEMORY).values, H)


def test_a_part_of_a_mapped_file_is_found_in_it(tmp_path: Path):
    graph, H = graph_of(False, False), predictions_of(N)
    whole = stored(graph, tmp_path)
    longer = mapped(np.concatenate([np.full(77, 9, np.int32), graph.indices]), tmp_path / "longer.npy")
    given = mapped(np.concatenate([np.full((5, COLUMNS), np.nan, np.float32), H]), tmp_path / "longer_H.npy")
    part = Mapped(whole.indptr, longer[77:], None, directed=False)
    found = propagate_folder(part, given[5:], steps=3, memory=MEMORY, block_entries=50)
    assert np.array_equal(found.values, propagate_folder(whole, H, steps=3, memory=MEMORY).values)


def test_progress_tells_the_degrees_and_every_step(tmp_path: Path):
    seen: list[StepsProgress] = []
    propagate_folder(stored(graph_of(False, False), tmp_path), predictions_of(N), steps=2, progress=seen.append)
    assert [(one.stage, one.share) for one in seen] == [("degrees", 1.0), ("step 1 of 2", 1.0), ("step 2 of 2", 1.0)]


def test_what_is_planned_is_what_is_read(tmp_path: Path):
    folder, H = stored(graph_of(False, False, 4000), tmp_path), mapped(predictions_of(4000), tmp_path / "H.npy")
    memory = room(folder, H, 2 * COLUMNS + 5, 256)
    found = propagate_folder(folder, H, steps=3, memory=memory, block_entries=256)
    assert 0 < found.plan.kept_rows < 4000
    # a block is kept only as a whole, neighbouring blocks share a row pointer
    assert found.plan.total_read_bytes <= found.bytes_read <= 1.1 * found.plan.total_read_bytes


def test_the_plan_for_papers100m_holds_two_states_and_reads_entries_once_a_step():
    sizes = Sizes(nodes=111_059_956, entries=3_228_124_712, columns=16, steps=10)
    plan = make_plan(sizes, 20 * 2**30, 2**28, 1.6e9, 2)
    assert plan.panels == (16,)
    assert plan.state_bytes == 2 * 4 * 16 * sizes.nodes
    assert plan.fixed_bytes + plan.state_bytes + plan.kept_bytes <= 20 * 2**30
    entries = 4 * sizes.entries + 8 * sizes.nodes
    assert plan.read_bytes == pytest.approx(entries + 64 * (sizes.nodes - plan.kept_rows), rel=1e-6)
    assert plan.total_read_bytes == entries + 64 * sizes.nodes + 10 * plan.read_bytes
    wide = make_plan(Sizes(sizes.nodes, sizes.entries, 172, 10), 20 * 2**30, 2**28, 1.6e9, 2)
    assert wide.panels == (16,) * 10 + (12,)


def test_what_does_not_fit_is_refused_with_numbers(tmp_path: Path):
    folder, H = stored(graph_of(False, False), tmp_path), predictions_of(N)
    with pytest.raises(CapacityError, match=r"need at least .* GiB .* may use 0.00 GiB. Give a file"):
        propagate_folder(folder, H, memory=1000)
    with pytest.raises(CapacityError, match=r"Give more memory"):
        propagate_folder(folder, H, memory=1000, out=tmp_path / "Z.npy")
    assert not (tmp_path / "Z.npy").exists()


def test_a_disk_without_room_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, H = stored(graph_of(False, False), tmp_path), predictions_of(N)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(CapacityError, match=r"take 0.0 GB of disk, and 0.0 GB are free"):
        propagate_folder(folder, H, memory=MEMORY, out=tmp_path / "Z.npy")


def test_a_result_of_one_array_of_several_panels_must_fit_too():
    sizes = Sizes(nodes=10**6, entries=10**7, columns=100, steps=10, to_file=False)
    with pytest.raises(CapacityError, match=r"states and their result .* Give a file"):
        make_plan(sizes, 600 * 2**20, 0, None, 2)
    assert len(make_plan(Sizes(10**6, 10**7, 100, 10), 600 * 2**20, 0, None, 2).panels) > 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predictions_that_are_not_finite_are_refused_with_their_place(tmp_path: Path, bad: float):
    H = predictions_of(N)
    H[37, 4] = bad
    with pytest.raises(InputError, match=rf"Got {bad} at node 37, column 4"):
        propagate_folder(stored(graph_of(False, False), tmp_path), H, memory=MEMORY, block_entries=30)


def test_predictions_of_another_shape_or_kind_are_refused(tmp_path: Path):
    folder = stored(graph_of(False, False), tmp_path)
    for wrong in (predictions_of(N - 1), predictions_of(N)[:, 0], np.ones((N, 2), np.int64)):
        with pytest.raises(InputError, match=rf"a float array of shape \({N}, c\)"):
            propagate_folder(folder, wrong, memory=MEMORY)


def test_a_file_that_changed_after_it_was_mapped_is_refused(tmp_path: Path):
    folder, H = stored(graph_of(False, False), tmp_path), predictions_of(N)
    other = folder.indices.copy()
    other[-1] += 1
    (tmp_path / "indices.npy").unlink()
    np.save(tmp_path / "indices.npy", other)
    with pytest.raises(FormatError, match=r"the entries has changed since it was opened"):
        propagate_folder(folder, H, memory=MEMORY)
    np.save(tmp_path / "other.npy", other[:10])
    (tmp_path / "other.npy").rename(tmp_path / "indices.npy")
    with pytest.raises(FormatError, match=r"bytes were mapped|were mapped"):
        propagate_folder(folder, H, memory=MEMORY)


def test_arrays_that_are_no_graph_are_refused(tmp_path: Path):
    folder, H = stored(graph_of(False, False), tmp_path), predictions_of(N)
    beyond = np.array(folder.indices)
    beyond[5] = N
    with pytest.raises(FormatError, match=rf"not from 0 to {N - 1}"):
        propagate_folder(Mapped(folder.indptr, beyond, None, directed=False), H, memory=MEMORY)
    negative = np.ones(len(beyond), np.float32)
    negative[8] = -1
    with pytest.raises(FormatError, match=r"negative or not finite"):
        propagate_folder(Mapped(folder.indptr, folder.indices, negative, directed=False), H, memory=MEMORY)
    with pytest.raises(FormatError, match=r"The row pointers go from 0 to"):
        propagate_folder(Mapped(folder.indptr, folder.indices[:-1], None, directed=False), H, memory=MEMORY)
    falling = np.array(folder.indptr)
    falling[9] = falling[-1]
    with pytest.raises(FormatError, match=r"do not ascend"):
        propagate_folder(Mapped(falling, folder.indices, None, directed=False), H, memory=MEMORY)


def test_weights_whose_sums_are_beyond_float32_are_refused(tmp_path: Path):
    graph = Graph.from_scipy(sparse.csr_array(np.array([[0, 1e30], [1e30, 0]])))
    with pytest.raises(InputError, match=r"Divide the weights by a constant"):
        propagate_folder(stored(graph, tmp_path), np.ones((2, 1), np.float32), memory=MEMORY)


def test_a_plan_can_be_had_before_the_work(tmp_path: Path):
    folder, H = stored(graph_of(False, False), tmp_path), mapped(predictions_of(N), tmp_path / "H.npy")
    plan = plan_steps(folder, H, steps=7, memory=MEMORY)
    assert plan.sizes.steps == 7
    assert plan.disk_speed is None or plan.disk_speed > 0
    assert "1 panel of at most 20 columns" in str(plan)


def test_steps_that_were_interrupted_go_on_with_the_same_bits(tmp_path: Path):
    folder, H = stored(graph_of(False, True), tmp_path), mapped(predictions_of(N), tmp_path / "H.npy")
    whole = propagate_folder(folder, H, steps=7, memory=MEMORY).values
    place, seen = tmp_path / "kept", list[str]()

    def stop(at: StepsProgress) -> None:
        if at.stage == "step 5 of 7":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        propagate_folder(folder, H, steps=7, memory=MEMORY, block_entries=99, checkpoint=place, progress=stop)
    found = propagate_folder(
        folder, H, steps=7, memory=MEMORY, checkpoint=place, progress=lambda at: seen.append(at.stage)
    )
    assert seen == ["degrees", "step 5 of 7", "step 6 of 7", "step 7 of 7"]
    assert np.array_equal(found.values, whole)
    assert not place.exists()


def test_a_state_of_other_work_is_refused(tmp_path: Path):
    folder, H = stored(graph_of(False, False), tmp_path), mapped(predictions_of(N), tmp_path / "H.npy")
    place = tmp_path / "kept"

    def stop(at: StepsProgress) -> None:
        if at.stage == "step 3 of 4":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        propagate_folder(folder, H, steps=4, memory=MEMORY, checkpoint=place, progress=stop)
    with pytest.raises(InputError, match=r"is of other work: alpha was 0.1 and is 0.2"):
        propagate_folder(folder, H, alpha=0.2, memory=MEMORY, checkpoint=place)
    with pytest.raises(InputError, match=r"must be of fewer than 'steps' steps. Got a state after 2"):
        propagate_folder(folder, H, steps=2, memory=MEMORY, checkpoint=place)
    other = mapped(predictions_of(N) + 1, tmp_path / "H.npy")
    with pytest.raises(InputError, match=r"is of other work: files was"):
        propagate_folder(folder, other, memory=MEMORY, checkpoint=place)
    with pytest.raises(InputError, match=r"Got arrays in memory instead"):
        propagate_folder(folder, predictions_of(N), memory=MEMORY, checkpoint=place)
    (place / "steps.json").write_text("{}")
    with pytest.raises(InputError, match=r"steps.json' cannot be read"):
        propagate_folder(folder, other, memory=MEMORY, checkpoint=place)


def test_predictions_that_cannot_be_written_to_are_read(tmp_path: Path):
    folder, H = stored(graph_of(False, False), tmp_path), predictions_of(N)
    expected = propagate_folder(folder, H, steps=2, memory=MEMORY).values
    H.setflags(write=False)
    assert np.array_equal(propagate_folder(folder, H, steps=2, memory=MEMORY).values, expected)
