"""Modules in blocks of nodes, in mixed precision, and what they may not do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

import pprop
from pprop import CapacityError, DivergenceError, Graph, InputError, Split, Stopping

pytestmark = pytest.mark.slow

RULE = Stopping(max_epochs=20)


def two_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(40, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))


def with_dropout() -> nn.Module:
    return nn.Sequential(nn.Dropout(0.5), nn.Linear(40, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def train(graph: Graph, split: Split, build: Any, seeds: Any = 1, **options: Any) -> pprop.Trained:
    return pprop.train(pprop.APPNP(predictor=build, **options), graph, split, seeds=seeds, stopping=RULE)


@pytest.mark.parametrize("block", [1, 7, 45, 89])
def test_blocks_give_the_numbers_of_the_whole(
    community_graph: Graph, community_splits: list[Split], block: int
) -> None:
    whole = train(community_graph, community_splits[0], two_layers)
    blocks = train(community_graph, community_splits[0], two_layers, block_nodes=block)
    np.testing.assert_allclose(blocks.history[0].train_loss, whole.history[0].train_loss, rtol=1e-4)
    np.testing.assert_allclose(blocks.logits, whole.logits, atol=2e-3)


@pytest.mark.parametrize("block", [90, 1000])
def test_a_block_of_all_nodes_is_the_whole(community_graph: Graph, community_splits: list[Split], block: int) -> None:
    whole = train(community_graph, community_splits[0], with_dropout)
    assert np.array_equal(
        train(community_graph, community_splits[0], with_dropout, block_nodes=block).logits, whole.logits
    )


def test_both_passes_over_the_blocks_draw_the_same_masks(community_graph: Graph, community_splits: list[Split]) -> None:
    seen: list[tuple[bool, torch.Tensor]] = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.layer = nn.Dropout(0.5), nn.Linear(40, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            dropped = self.drop(x)
            if self.training:
                seen.append((torch.is_grad_enabled(), dropped.detach()))
            return self.layer(dropped)

    train(community_graph, community_splits[0], Watched, block_nodes=40)
    assert [with_gradient for with_gradient, _ in seen[:6]] == [False] * 3 + [True] * 3
    for (_, first), (_, second) in zip(seen[:3], seen[3:6], strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(seen[0][1], seen[1][1])
    assert not torch.equal(seen[0][1], seen[6][1])


def test_statistics_of_a_block_are_refused(community_graph: Graph, community_splits: list[Split]) -> None:
    build = lambda: nn.Sequential(nn.Linear(40, 3), nn.BatchNorm1d(3))  # noqa: E731
    with pytest.raises(
        InputError, match=r"block_nodes=40 does not go with BatchNorm1d \('1' of the predictor\).*LayerNorm"
    ):
        train(community_graph, community_splits[0], build, block_nodes=40)


def test_mixed_precision_computes_in_bfloat16_and_keeps_float32(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    types: set[tuple[bool, torch.dtype]] = set()

    class Watched(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
            logits = super().forward(input)
            types.add((self.training, logits.dtype))
            return logits

    build = lambda: nn.Sequential(nn.Linear(40, 8), nn.ReLU(), Watched(8, 3))  # noqa: E731
    full = train(community_graph, community_splits[0], build)
    assert types == {(True, torch.float32), (False, torch.float32)}
    types.clear()
    mixed = train(community_graph, community_splits[0], build, mixed_precision=True)
    # the last predictions, of the weights that are kept, are in float32
    assert types == {(True, torch.bfloat16), (False, torch.bfloat16), (False, torch.float32)}
    assert {array.dtype for array in mixed.weights} == {np.dtype(np.float32)}
    assert not np.array_equal(mixed.logits, full.logits)
    np.testing.assert_allclose(mixed.history[0].train_loss, full.history[0].train_loss, rtol=0.03)


@pytest.mark.parametrize(("name", "value"), [("mixed_precision", True), ("block_nodes", 40)])
def test_the_built_in_network_has_neither(name: str, value: Any) -> None:
    with pytest.raises(
        InputError, match=rf"'{name}' parameter of Model .* for the built-in network.*predictor=... only"
    ):
        pprop.APPNP(**{name: value})


@pytest.mark.parametrize("value", [0, -3, 2.5, "all"])
def test_a_block_has_at_least_one_node(value: Any) -> None:
    with pytest.raises(InputError, match="'block_nodes'"):
        pprop.APPNP(predictor=two_layers, block_nodes=value)


class Returns(nn.Module):
    """Returns what `change` makes of its logits."""

    def __init__(self, change: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.change = nn.Linear(40, 3), change

    def forward(self, x: torch.Tensor) -> Any:
        return self.change(self.layer(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda z: z[:, :2], r"must return a tensor of shape \(90, 3\), \(n, classes\). Got \(90, 2\) instead"),
        (lambda z: z[:-1], r"must return a tensor of shape \(90, 3\), \(n, classes\). Got \(89, 3\) instead"),
        (lambda z: z[None], r"Got \(1, 90, 3\) instead"),
        (lambda z: (z, z), r"Got tuple instead: return the logits alone"),
        (
            lambda z: z.argmax(1, keepdim=True).expand(-1, 3),
            r"must return floats.*Got torch.int64 instead: leave out argmax",
        ),
        (lambda z: z.to("meta"), r"on cpu, where its input is. Got a tensor on meta instead: leave out .cpu\(\)"),
        (lambda z: z.detach(), r"do not depend on the parameters of the predictor. Leave out detach\(\)"),
    ],
)
def test_a_wrong_output_is_named_with_a_remedy(
    community_graph: Graph,
    community_splits: list[Split],
    change: Callable[[torch.Tensor], Any],
    message: str,
) -> None:
    with pytest.raises(InputError, match=message):
        train(community_graph, community_splits[0], lambda: Returns(change), seeds=[1, 2])


def test_tensors_that_stay_behind_are_named(community_graph: Graph, community_splits: list[Split]) -> None:
    def fails(logits: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices")

    with pytest.raises(InputError, match=r"do not move to cpu with it. Make them parameters or buffers"):
        train(community_graph, community_splits[0], lambda: Returns(fails))


def test_other_errors_of_a_module_are_its_own(community_graph: Graph, community_splits: list[Split]) -> None:
    def fails(logits: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        train(community_graph, community_splits[0], lambda: Returns(fails))


@pytest.mark.parametrize("seeds", [1, [1, 2]])
def test_nan_is_divergence(community_graph: Graph, community_splits: list[Split], seeds: Any) -> None:
    with pytest.raises(DivergenceError, match="not finite"):
        train(community_graph, community_splits[0], lambda: Returns(lambda z: z * float("nan")), seeds=seeds)


def exhausted(calls: int) -> Callable[[], nn.Module]:
    """Return a function whose modules find no memory left at that call of all."""
    left = [calls]

    def change(logits: torch.Tensor) -> torch.Tensor:
        left[0] -= 1
        if left[0] == 0:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total ...")
        return logits

    return lambda: Returns(change)


@pytest.mark.parametrize("calls", [1, 8, 50])
def test_memory_that_runs_out_is_told_in_one_sentence_and_the_next_training_works(
    community_graph: Graph, community_splits: list[Split], calls: int
) -> None:
    ended: list[int] = []
    model = pprop.APPNP(predictor=exhausted(calls))
    with pytest.raises(
        CapacityError,
        match=r"^The memory of cpu ran out .*\(tried to allocate 20.00 GiB\). Use "
        r"a smaller block_nodes, mixed_precision=True, or the CPU \(device\)",
    ) as caught:
        pprop.train(
            model,
            community_graph,
            community_splits[0],
            seeds=[1, 2],
            stopping=RULE,
            on_end=lambda result, runs: ended.extend(runs.tolist()),
        )
    assert caught.value.__suppress_context__
    assert ended == ([0] if calls == 50 else [])  # 20 epochs of two calls each, and the last predictions
    before = train(community_graph, community_splits[0], two_layers)
    assert before.epochs.tolist() == [20]


def test_the_built_in_network_tells_of_exhausted_memory_too(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pprop.training import loop as schedule

    def fails(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(schedule, "run_loop", fails)
    with pytest.raises(
        CapacityError, match=r"ran out during the training. Use a smaller hidden, or the CPU \(device\)"
    ):
        pprop.train(pprop.APPNP(), community_graph, community_splits[0], stopping=RULE, backend="reference")


def test_a_classifier_saves_and_loads_its_module_settings(community_graph: Graph, tmp_path: Path) -> None:
    options: dict[str, Any] = {"predictor": two_layers, "max_epochs": 20, "random_state": 0}
    model = pprop.PPNPClassifier(community_graph, block_nodes=40, mixed_precision=True, **options)
    model.fit(np.arange(0, 90, 4), cast("Any", community_graph.labels)[::4])
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", community_graph, predictor=two_layers)
    assert np.array_equal(loaded.predict_proba([1, 50]), model.predict_proba([1, 50]))
    assert (loaded.get_params()["block_nodes"], loaded.get_params()["mixed_precision"]) == (40, True)


def test_a_model_that_was_saved_without_module_settings_is_loaded(community_graph: Graph, tmp_path: Path) -> None:
    model = pprop.APPNPClassifier(community_graph, predictor=two_layers, max_epochs=5, random_state=0)
    model.fit(np.arange(0, 90, 4), cast("Any", community_graph.labels)[::4]).save(tmp_path / "model")
    file = tmp_path / "model" / "manifest.json"
    manifest = json.loads(file.read_bytes())
    manifest["format_version"] = 2  # of version 3, manifests have all settings
    for name in ("mixed_precision", "block_nodes"):
        del manifest["settings"][name]
    file.write_text(json.dumps(manifest))
    loaded = pprop.load(tmp_path / "model", community_graph, predictor=two_layers)
    assert np.array_equal(loaded.predict_proba(), model.predict_proba())


def test_the_generators_of_the_caller_are_left_alone(community_graph: Graph, community_splits: list[Split]) -> None:
    class Draws(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
            return super().forward(input) + 0.01 * torch.randn(len(input), 3)

    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    pprop.train(pprop.APPNP(predictor=lambda: Draws(40, 3)), community_graph, community_splits[0], stopping=RULE)
    assert torch.equal(torch.rand(3), expected)
