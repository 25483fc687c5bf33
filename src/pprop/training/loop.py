"""The training loop: epochs, early stopping, best weights, runs that leave the batch; and which runs are trained when.

On a CPU, and wherever an epoch cannot be captured, `run_loop` looks at every epoch. On a GPU `run_captured` captures an
epoch once in a CUDA graph: the trainer's kernels, the update of the stopping state, the copy of improved weights, and a
note of the curves; where the epoch is a user's module, what follows on it alone. The host only replays it, and looks
at the device every few epochs to see which runs have ended. Ended runs are packed away, which changes the shapes and so
needs a new graph. An epoch that cannot be captured is launched anew each time.

`train_chunks` trains runs in chunks that fit into memory, batch after batch, or by several threads. `show_progress` draws
a line on standard error: the bar counts epochs, at most `max_epochs` per run; a run that ends early fills its part of the
bar. Until the first run has ended the time left is therefore an upper bound.
"""

from __future__ import annotations

import itertools
import math
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._process import COMPILING, check_interrupt, compiling
from pprop.kernels.capture import Replayed, call_directly, capture
from pprop.kernels.contract import Trainer
from pprop.settings import CRITERION, MAX_EPOCHS, PATIENCE, check_fields
from pprop.training.result import History, LoopResult, join_results

LEAST_DROP = 1e-3  # of the stopping loss, as a share of it, that counts as progress for the criterion "plateau"


@final
@dataclass(frozen=True)
class Stopping:
    """When a run ends, and which of its epochs is kept.

    ``"paper"``: the patience is refilled in every epoch whose stopping accuracy is at least the best so far, or whose
    stopping loss is at most the best so far; otherwise it drops by one, and the run ends at zero. The weights kept are
    those of the epoch with the highest accuracy, among equals the one with the lowest loss, among equals the earliest.

    ``"loss"``: the same with the loss alone; the weights of the lowest loss are kept.

    ``"window"``: the rule of the first GCN. From epoch `patience` + 1 on, a run ends when its stopping loss exceeds the
    mean of the `patience` losses before it; the last weights are kept.

    ``"plateau"``: the patience is refilled when the stopping accuracy exceeds the best so far, or the stopping loss falls
    a thousandth below what it was when it last did. It ends where a small set of stopping nodes is all right, or no
    longer changes, on which the paper's rule waits for ever. The weights kept are those of ``"paper"``.

    Parameters
    ----------
    patience
        Epochs without improvement before a run ends, or the length of the window. None: no early stopping. A run then
        makes all `max_epochs`, whatever the criterion, keeps the last weights, and needs no stopping nodes.
    max_epochs
        Epochs after which it ends in any case.
    criterion
        ``"paper"``, ``"loss"``, ``"window"`` or ``"plateau"``.

    Examples
    --------
    >>> Stopping()
    Stopping(patience=100, max_epochs=10000, criterion='paper')
    """

    patience: int | None = PATIENCE.optional().but(PATIENCE.default).field()
    max_epochs: int = MAX_EPOCHS.field()
    criterion: str = CRITERION.field()

    def __post_init__(self) -> None:
        check_fields(self, "Stopping")


@final
class StoppingState:
    """Where R runs stand; every array has shape (R,).

    One definition serves both loops: numpy arrays on the CPU, where a run decides for itself after every epoch, and
    torch tensors on a GPU, where `update` is captured with the epoch and nothing of it leaves the device.

    Attributes
    ----------
    epochs
        Epochs each run has made until its end.
    best_epoch
        The one whose weights are kept, from 0; -1 before the first.
    kept_loss, kept_accuracy
        At that epoch. In place of the accuracy there may be another score, the larger the better.
    ended
        Which runs have ended. Later epochs of an ended run change nothing.

    A run whose loss is no finite number has diverged: it ends with that epoch, and that epoch is the one that is kept,
    as `kept_loss` shows.

    Examples
    --------
    >>> state = StoppingState(Stopping(patience=2), runs=1)
    >>> for loss, accuracy in [(1.0, 0.5), (1.1, 0.4), (1.2, 0.4)]:
    ...     improved = state.update(np.array([loss]), np.array([accuracy]))
    >>> state.ended, state.best_epoch
    (array([ True]), array([0]))
    """

    def __init__(self, rule: Stopping, runs: int, device: torch.device | None = None) -> None:
        # patience beyond the last epoch is never spent, and may not fit into 64 bits
        self._patient = patience = min(rule.max_epochs if rule.patience is None else rule.patience, rule.max_epochs)
        self._rule = rule
        self._xp: Any = np if device is None else torch  # both name the few functions needed alike
        place = {} if device is None else {"device": device}
        full, wide, whole = self._xp.full, self._xp.float64, self._xp.int64
        self._patience = full((runs,), patience, dtype=whole, **place)
        self._best_loss = full((runs,), np.inf, dtype=wide, **place)
        self._best_accuracy = full((runs,), -np.inf, dtype=wide, **place)
        self.epochs = full((runs,), 0, dtype=whole, **place)
        self.best_epoch = full((runs,), -1, dtype=whole, **place)
        self.kept_loss = full((runs,), np.inf, dtype=wide, **place)
        self.kept_accuracy = full((runs,), -np.inf, dtype=wide, **place)
        # the losses before this epoch, the latest last; only the window looks further back than one
        length = patience if rule.criterion == "window" and rule.patience is not None else 1
        self._recent = full((runs, length), np.inf, dtype=wide, **place)
        self.ended = full((runs,), False, dtype=self._xp.bool if device is not None else np.bool_, **place)

    def update(self, loss: Any, accuracy: Any) -> Any:
        """Take the stopping loss and accuracy of one epoch; return which runs shall keep their present weights.

        Everything is written in place, so that a captured update finds its state again. A GPU spends microseconds on each
        operation here, which is why sums and maxima make no array of their own.
        """
        where, going = self._xp.where, ~self.ended
        diverged = ~(loss < np.inf)
        better = (self._better(loss, accuracy) | diverged) & going
        exhausted = self._exhausted(loss, accuracy)
        self.kept_accuracy[...] = where(better, accuracy, self.kept_accuracy)
        self.kept_loss[...] = where(better, loss, self.kept_loss)
        self.best_epoch[...] = where(better, self.epochs, self.best_epoch)
        self.epochs += going
        for reason in (exhausted, diverged, self.epochs >= self._rule.max_epochs):
            self.ended |= reason
        return better

    def _better(self, loss: Any, accuracy: Any) -> Any:
        """Say which runs are at the epoch to be kept so far."""
        match None if self._rule.patience is None else self._rule.criterion:
            case "paper" | "plateau":
                same = accuracy == self.kept_accuracy
                return (accuracy > self.kept_accuracy) | (same & (loss < self.kept_loss))
            case "loss":
                return (loss < self.kept_loss) | (self.best_epoch < 0)
            case "window" | None:
                return self.best_epoch < self.epochs  # the last one
            case criterion:
                raise AssertionError(f"no rule for the criterion {criterion!r}")

    def _exhausted(self, loss: Any, accuracy: Any) -> Any:
        """Note this epoch's values; say which runs have waited long enough."""
        match None if self._rule.patience is None else self._rule.criterion:
            case None:
                return self._patience <= 0  # never: it is not touched
            case "window":
                above = (loss > self._recent.mean(-1)) & (self.epochs > self._patient)
                self._recent[:, :-1] = self._xp.roll(self._recent, -1)[:, :-1]
                self._recent[:, -1] = loss
                return above
            case "plateau":
                lower = loss < (1 - LEAST_DROP) * self._best_loss
                refilled = lower | (accuracy > self._best_accuracy)
                self._best_loss[...] = self._xp.where(lower, loss, self._best_loss)
            case "paper":
                refilled = (loss <= self._best_loss) | (accuracy >= self._best_accuracy)
                self._xp.fmin(self._best_loss, loss, out=self._best_loss)
            case "loss":
                refilled = loss <= self._best_loss
                self._xp.fmin(self._best_loss, loss, out=self._best_loss)
            case criterion:
                raise AssertionError(f"no rule for the criterion {criterion!r}")
        self._xp.maximum(self._best_accuracy, accuracy, out=self._best_accuracy)
        self._patience[...] = self._xp.where(refilled, self._patient, self._patience - 1)
        return self._patience <= 0

    def keep(self, slots: Any) -> None:
        """Go on with some of the runs only."""
        for name, value in vars(self).items():
            if not name.endswith(("_rule", "_xp", "_patient")):
                setattr(self, name, value[slots])


# The batch is packed anew when this share of it has ended; until then ended runs idle along.
COMPACT_SHARE = 0.1
_EPOCHS_PER_LOOK = 32
_EPOCHS_UNCAPTURED = 8  # the same where an epoch is launched anew each time: it takes longer, and may take very long
# What a ledger takes from the state of a run that has ended.
_ENDS = {"epochs": np.int64, "best_epoch": np.int64, "kept_loss": np.float64, "kept_accuracy": np.float64}
_WARM_UP = 2  # epochs before the capture: the first compiles kernels and takes memory


class Observer(Protocol):
    """What a loop reports to."""

    def epoch(self, epoch: int, runs_ended: int) -> None:
        """Take note that the runs of the loop have made `epoch` epochs, and so many of them have ended."""

    def ended(self, result: LoopResult, runs: NDArray[np.int64]) -> None:
        """Take what some runs of the loop leave behind, as soon as they end."""


@final
class Ledger:
    """Weights, curves and ends of the runs of a loop, collected as they end."""

    def __init__(self, runs: int, trainer: Trainer, observer: Observer) -> None:
        self._runs, self._observer, self._run_of_slot = runs, observer, np.arange(runs)
        self.ended = np.zeros(runs, dtype=np.bool_)  # which slots have
        self._weights = [torch.empty((runs, *w.shape[1:]), dtype=w.dtype) for w in trainer.weights()]
        self._all, self._scored = trainer.all_weights, trainer.scored
        self._ends: dict[str, NDArray[Any]] = {name: np.zeros(runs, dtype=kind) for name, kind in _ENDS.items()}
        self._curves: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []

    def record(self, values: NDArray[np.float64]) -> None:
        """Note the values (3, epochs, slots) of some epochs of all slots; with a score there are 4."""
        self._curves.append((self._run_of_slot, values))

    def keep_weights(self, slots: NDArray[np.int64], weights: list[Tensor]) -> None:
        """Copy the weights of some slots, the best so far."""
        for kept, live in zip(self._weights, weights, strict=True):
            for slot in slots:  # by numpy: torch would wake its own threads for it, beside those that train other runs
                kept.numpy()[self._run_of_slot[slot]] = live[int(slot)].detach().cpu().numpy()

    def look(self, epoch: int, state: StoppingState, ended: NDArray[np.bool_]) -> NDArray[np.int64] | None:
        """Note which slots have ended by an epoch, and where their runs stand; tell the observer.

        Return the slots to go on with, where enough have ended to pack the batch anew, or all; None: just go on.
        """
        size, count = len(self._run_of_slot), np.count_nonzero(ended)
        self._observer.epoch(epoch, self._runs - size + int(count))
        if count == np.count_nonzero(self.ended):
            return None
        fresh = np.flatnonzero(ended & ~self.ended)
        self.ended, runs = ended.copy(), self._run_of_slot[fresh]
        for name, mine in self._ends.items():
            theirs = getattr(state, name)
            mine[runs] = (theirs if isinstance(theirs, np.ndarray) else theirs.cpu().numpy())[fresh]
        self._observer.ended(self.result(runs), runs)
        if count < COMPACT_SHARE * size:
            return None
        going = np.flatnonzero(~ended)
        self._run_of_slot, self.ended = self._run_of_slot[going], self.ended[going]
        return going

    def result(self, runs: NDArray[np.int64] | None = None) -> LoopResult:
        """Return everything of some runs (default: all, in their order), which have ended."""
        runs = np.arange(self._runs) if runs is None else runs
        epochs = self._ends["epochs"][runs]
        table = np.zeros((3 + self._scored, len(runs), int(epochs.max())))
        place = np.full(self._runs, -1)
        place[runs] = np.arange(len(runs))
        made = 0
        for in_slots, values in self._curves:
            stop = min(made + values.shape[1], table.shape[2])
            if stop <= made:
                break
            slots = np.flatnonzero(place[in_slots] >= 0)
            table[:, place[in_slots[slots]], made:stop] = values[:, : stop - made, slots].transpose(0, 2, 1)
            made += values.shape[1]
        best, watched = self._ends["best_epoch"][runs], self._ends["kept_accuracy"][runs]
        return LoopResult(
            self._all([w[torch.from_numpy(runs)] for w in self._weights]),
            epochs=epochs,
            best_epoch=best,
            stopping_loss=self._ends["kept_loss"][runs],
            stopping_accuracy=table[2, place[runs], best] if self._scored else watched,
            history=tuple(History(*table[:, place[run], :end].copy()) for run, end in zip(runs, epochs, strict=True)),
            stopping_score=watched if self._scored else np.full(len(runs), np.nan),
        )


def run_loop(trainer: Trainer, runs: int, stopping: Stopping, observer: Observer) -> LoopResult:
    """Train until every run has ended; return each run's best weights, as copies.

    One epoch is one training step, then the stopping loss and accuracy with dropout off.
    """
    state, ledger = StoppingState(stopping, runs), Ledger(runs, trainer, observer)
    for epoch in itertools.count(1):
        values = trainer.epoch().double().numpy().copy()
        check_interrupt()
        ledger.record(values[:, None])
        improved = np.flatnonzero(state.update(values[1], values[-1]))
        if len(improved):
            ledger.keep_weights(improved, trainer.weights())
        going = ledger.look(epoch, state, state.ended)
        if going is None:
            continue
        if len(going) == 0:
            break
        trainer.keep(torch.from_numpy(going))
        state.keep(going)
    return ledger.result()


@final
class _CapturedBatch:
    """The slots in training, with everything on the device that one epoch reads and writes."""

    def __init__(self, trainer: Trainer, state: StoppingState, runs: int, device: torch.device):
        self.trainer, self.state = trainer, state
        self.per_look = _EPOCHS_PER_LOOK if trainer.capturable else _EPOCHS_UNCAPTURED
        self._curves = torch.zeros(3 + trainer.scored, self.per_look, runs, device=device)
        self._at = torch.zeros(1, dtype=torch.int64, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._made = 0
        self._on_gpu = device.type == "cuda"
        self._can_capture = trainer.capturable  # others keep their epoch in Python; False once a capture was refused
        self._bind()

    def _bind(self) -> None:
        """Forget what was captured."""
        self._graph = None
        self._noting = Replayed() if self._on_gpu and not self.trainer.capturable else call_directly

    def _epoch(self) -> None:
        (improved,) = self._noting(self._note, self.trainer.epoch())
        self.trainer.remember(improved)

    def _note(self, values: Tensor) -> tuple[Tensor]:
        """Take the values of an epoch, (3, R), with a score (4, R); return which runs shall keep their weights."""
        improved = self.state.update(values[1].double(), values[-1].double())
        self._curves.index_copy_(1, self._at, values[:, None])
        self._at.add_(1).remainder_(self.per_look)
        return (improved,)

    def advance(self, epochs: int) -> np.ndarray[Any, Any]:
        """Make so many epochs, until the next look; return their curves, (3 or 4, epochs, slots)."""
        for _ in range(epochs):
            if self._graph is None and self._made >= _WARM_UP and self._can_capture:
                self._capture()
            if self._graph is None:
                self._epoch()
            else:
                self._graph.replay()
            self._made += 1
        return self._curves[:, :epochs].double().cpu().numpy()

    def _capture(self) -> None:
        self._graph = capture(self._curves.device, self._epoch)
        self._can_capture = self._graph is not None

    def keep(self, slots: Tensor) -> None:
        """Go on with some of the slots; their epoch is captured anew after one that takes the memory of its shapes."""
        self.trainer.keep(slots)
        self.state.keep(slots)
        self._curves = self._curves[:, :, slots].contiguous()
        self._made = _WARM_UP - 1
        self._bind()


def run_captured(
    trainer: Trainer, runs: int, stopping: Stopping, observer: Observer, device: torch.device
) -> LoopResult:
    """Train until every run has ended, as `run_loop` does; up to a few epochs more are computed and not counted."""
    ledger = Ledger(runs, trainer, observer)
    batch = _CapturedBatch(trainer, StoppingState(stopping, runs, device), runs, device)
    made = 0
    while True:
        epochs = min(batch.per_look, stopping.max_epochs - made)  # fewer only at the very end
        made += epochs
        ledger.record(batch.advance(epochs))
        check_interrupt()
        ended = batch.state.ended.cpu().numpy()
        ledger.keep_weights(np.flatnonzero(ended & ~ledger.ended), trainer.remembered())
        if ended.all():
            state = batch.state
            del batch
            trainer.close()  # the predictions of all nodes are made at the look, and take memory, too
            ledger.look(made, state, ended)
            return ledger.result()
        going = ledger.look(made, batch.state, ended)
        if going is not None:
            batch.keep(torch.from_numpy(going).to(device))


# Called as runs end, with what they leave behind, which runs they are, and the epochs made by all runs so far.
RunsEnded = Callable[[LoopResult, NDArray[np.int64], int], None]


@final
@dataclass(frozen=True)
class RunBatch:
    """Consecutive runs that one loop trains together, and a function that makes their trainer."""

    runs: slice
    make: Callable[[], Trainer]

    @property
    def positions(self) -> NDArray[np.int64]:
        """The runs one by one."""
        return np.r_[self.runs]


def train_chunks(
    chunks: Iterable[slice],
    batches_of: Callable[[slice], tuple[int, list[RunBatch]]],
    rule: Stopping,
    device: torch.device,
    report: Report,
    ended: RunsEnded,
) -> LoopResult:
    """Train the runs of every chunk in turn; return the results of all runs in their order.

    `batches_of` makes what the runs of a chunk share, which is freed before the next chunk begins: how many threads may
    train a batch each at the same time, and the batches.
    """
    tally = _Tally(report, ended)

    def train_batch(batch: RunBatch, in_thread: bool) -> LoopResult:
        trainer, observer = batch.make(), _Part(tally, batch.positions, in_thread)
        try:
            if device.type == "cuda":
                return run_captured(trainer, observer.runs, rule, observer, device)
            return run_loop(trainer, observer.runs, rule, observer)
        finally:
            trainer.close()

    def train_chunk(chunk: slice) -> list[LoopResult]:
        threads, batches = batches_of(chunk)
        if threads == 1:
            return [train_batch(batch, False) for batch in batches]
        with ThreadPoolExecutor(threads, "pprop-run") as pool:
            jobs = {pool.submit(train_batch, batch, True): batch for batch in batches}
            try:
                for job in as_completed(jobs):  # not in order: the first may be far from its end
                    tally.ended(job.result(), jobs[job].positions)
                return [job.result() for job in jobs]
            except BaseException:
                tally.stop.set()
                for job in jobs:
                    job.cancel()
                raise

    return join_results([result for chunk in chunks for result in train_chunk(chunk)])


@final
class _Stopped(Exception):  # noqa: N818  no error: the main thread raises what ended the training
    """Ends a thread whose training is no longer wanted."""


@final
class _Tally:
    """Adds up the progress of all batches, trained one after another or side by side."""

    def __init__(self, report: Report, ended: RunsEnded) -> None:
        self.stop = threading.Event()
        self._report, self._ended, self._lock = report, ended, threading.Lock()
        self._runs_ended, self._work, self._going = 0, 0, dict[_Part, tuple[int, int]]()

    def epoch(self, part: _Part, epoch: int, ended: int) -> None:
        """Take the report of one batch, and pass on that of all."""
        if self.stop.is_set():
            raise _Stopped
        with self._lock:
            epoch_before, ended_before = self._going.get(part, (0, 0))
            self._work += (epoch - epoch_before) * (part.runs - ended_before)
            self._runs_ended += ended - ended_before
            self._going[part] = epoch, ended
            mean = sum(one for one, _ in self._going.values()) // len(self._going)
            if ended == part.runs:
                del self._going[part]
            self._report(mean, self._runs_ended, self._work)

    def ended(self, result: LoopResult, runs: NDArray[np.int64]) -> None:
        """Pass on what runs leave behind; called in the main thread alone."""
        self._ended(result, runs, self._work)


@final
class _Part:
    """The observer of one batch. In a thread it leaves it to the main one to say which runs have ended."""

    def __init__(self, tally: _Tally, positions: NDArray[np.int64], in_thread: bool) -> None:
        self.runs, self._positions, self._tally, self._in_thread = len(positions), positions, tally, in_thread

    def epoch(self, epoch: int, runs_ended: int) -> None:
        self._tally.epoch(self, epoch, runs_ended)

    def ended(self, result: LoopResult, runs: NDArray[np.int64]) -> None:
        if not self._in_thread:
            self._tally.ended(result, self._positions[runs])


_PAUSE = 0.5  # seconds between two updates of the line: an epoch may be much shorter

# What a training calls after an epoch, or a few of them: the runs now in training have made so many epochs (those that
# are trained at different paces, on average), so many of all runs have ended, and all have made so many epochs together.
Report = Callable[[int, int, int], None]


@contextmanager
def show_progress(show: bool | None, runs: int, *, max_epochs: int) -> Generator[Report]:
    """Draw a live line while the block runs, if `show`, or if it is None and standard error is a terminal.

    The line shows how many runs have ended, how many epochs all runs together make per second, and how much time is left.
    Above it stands a note while kernels are being compiled.

    Parameters
    ----------
    show
        Whether to draw.
    runs
        How many runs there are.
    max_epochs
        Epochs after which a run ends in any case.

    Examples
    --------
    >>> with show_progress(False, 1, max_epochs=10) as report:
    ...     report(1, 0, 1)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[ended]}/{task.fields[runs]} runs, epoch {task.fields[epoch]},"),
        TextColumn("{task.fields[rate]:,.0f} epochs/s,"),
        TimeElapsedColumn(),
        TextColumn("elapsed, {task.fields[estimate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        get_time=monotonic,
        speed_estimate_period=math.inf,  # one run may take longer than rich's 30 seconds
    ) as bar:
        total = runs * max_epochs
        task = bar.add_task("Training", total=total, ended=0, runs=runs, epoch=0, rate=0.0, estimate="at most")
        drawn, seen, spared = monotonic(), 0, 0  # when it was drawn, runs that had ended, epochs they did not need
        first: tuple[float, int] | None = None  # time and epochs at the first report; set-up was before it

        def draw(epoch: int, runs_ended: int, work: int) -> None:
            nonlocal drawn, seen, spared, first
            now = monotonic()
            first = (now, work) if first is None else first
            if now < drawn + _PAUSE and runs_ended == seen:
                return
            spared += (runs_ended - seen) * (max_epochs - epoch)
            drawn, seen = now, runs_ended
            done = total if runs_ended == runs else min(work + spared, total)
            rate = (work - first[1]) / (now - first[0]) if now > first[0] else 0.0
            estimate = "about" if runs_ended else "at most"
            bar.update(task, completed=done, ended=runs_ended, epoch=epoch, rate=rate, estimate=estimate)

        with compiling.telling(lambda: bar.console.print(COMPILING)):  # above the line
            yield draw


def _silent(epoch: int, runs_ended: int, work: int) -> None:
    """Draw nothing."""
