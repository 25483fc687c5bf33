"""The bad-input table: every error class of the core and every way a file can be in the way, from the shell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import pprop
from pprop import (
    CapacityError,
    DatasetError,
    DivergenceError,
    FormatError,
    GraphError,
    InputError,
    MissingDependencyError,
    PpropError,
    ToleranceError,
)
from pprop._errors import ColumnError, EdgeError, MismatchError, SeveralErrors, TakenError, UnknownNodeError
from pprop.cli.errors import FileError, WrongValueError
from pprop.cli.output import USAGE, Session
from pprop.estimators import GraphSource

ANY = Callable[[Path], None]


def nothing(folder: Path) -> None:
    pass


def small(folder: Path) -> None:
    (folder / "edges.csv").write_text("source,target\na,b\nb,c\n")
    (folder / "nodes.csv").write_text("id,topic,x\na,red,1\nb,blue,2\nc,,3\n")
    (folder / "scores.csv").write_text("id,s\na,1\nb,2\nc,3\n")
    (folder / "other.csv").write_text("id,topic,x\na,red,1\nb,blue,2\n")
    (folder / "ends.csv").write_text("one,two\na,b\n")


def trained(folder: Path) -> None:
    small(folder)
    graph = pprop.read_edges(folder / "edges.csv", folder / "nodes.csv", label_column="topic")
    table = {"path": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv"), "label_column": "topic"}
    model = pprop.MLPNodeClassifier(graph, max_epochs=1, stopping=None, backend="reference", random_state=0)
    model.fit([0, 1], ["red", "blue"]).save(folder / "model", source=GraphSource("edges", table))
    (folder / "nodes.csv").write_text("id,topic,x\na,red,1\nb,blue,2\nc,,4\n")


def large(folder: Path) -> None:
    pprop.write_npz(pprop.Graph.from_scipy(sp.csr_array((400_000, 400_000))), folder / "large.npz")
    np.save(folder / "scores.npy", np.zeros(400_000, dtype=np.float32))


def slow(folder: Path) -> None:
    path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(1000, 1000))
    pprop.write_npz(pprop.Graph.from_scipy(path), folder / "path.npz")
    np.save(folder / "scores.npy", np.eye(1000)[:, :3])


def overflowing(folder: Path) -> None:
    (folder / "edges.csv").write_text("source,target,w\na,b,1e308\na,b,1e308\n")


def damaged(folder: Path) -> None:
    (folder / "graph.npz").write_bytes(b"not a zip file")
    (folder / "scores.npy").write_bytes(b"\x93NUMPY\x01")


def occupied(folder: Path) -> None:
    small(folder)
    (folder / "there").mkdir()
    (folder / "there" / "diary.txt").write_text("mine")
    (folder / "old.csv").write_text("mine")


def parquet(folder: Path) -> None:
    small(folder)
    (folder / "edges.parquet").write_bytes(b"PAR1")


@dataclass(frozen=True)
class Case:
    arguments: str
    code: int
    says: str
    error: type[BaseException] | None = None  # None: wrong usage
    prepare: ANY = nothing


TRAIN = "train edges.csv --nodes nodes.csv --label-column topic"
CASES = [
    # wrong usage
    Case("frobnicate", 2, "No such command 'frobnicate'"),
    Case("train", 2, "Missing argument 'GRAPH'"),
    Case("train citeseer --colour red", 2, "No such option: --colour"),
    Case("train citeseer --alpha much", 3, "--alpha", WrongValueError),
    Case("train citeseer --model gcn", 3, "gcn", WrongValueError),
    Case("train citeseer --model mlp --alpha 0.1", 2, "mlp does not propagate"),
    Case("train citeseer --model ppnp --steps 3", 2, "--steps belongs to appnp"),
    Case("train citeseer --nodes nodes.csv", 2, "--nodes belongs to a graph of your own"),
    Case("train citeseer --test 0.5", 2, "a dataset has --split-seed"),
    Case("train citeseer --hidden wide", 3, "--hidden takes integers", WrongValueError),
    Case(f"{TRAIN} --split-seed 1", 2, "a graph of your own has --test", None, small),
    Case("train edges.csv --label-column topic", 2, "add --nodes FILE", None, small),
    Case("propagate citeseer s.npy --exact --steps 3", 2, "one of --steps, --exact and --solver"),
    Case("propagate citeseer s.npy --json", 2, "--json needs --out"),
    Case("predict model --nodes nodes.csv", 2, "describe a --graph", None, lambda folder: (folder / "model").mkdir()),
    Case("train citeseer --split-column part", 2, "--split-column is for a graph of your own"),
    Case("train citeseer --weight w", 2, "--weight belongs to a graph of your own"),
    Case(f"{TRAIN} --column x", 3, "--column takes NAME=KIND", WrongValueError, small),
    Case(f"{TRAIN} --column x=number --features x", 2, "--column NAME=unused leaves a column out", None, small),
    Case(f"{TRAIN} --structure degree --features x", 2, "leave --features out", None, small),
    Case(f"{TRAIN} --structure wheel", 3, "one of 'identity' or 'degree'. Got 'wheel'.", WrongValueError, small),
    Case(f"{TRAIN} --split-column part --test 0.5", 2, "leave --test out", None, small),
    Case("train edges.csv --split-column part", 2, "--split-column names a column of a node table", None, small),
    Case("train citeseer --class-weight red", 3, "--class-weight takes balanced or CLASS=WEIGHT", WrongValueError),
    # values
    Case("train citeseer --alpha 1.3", 3, "--alpha must be a number in [0, 1]. Got 1.3.", InputError),
    Case("train citeseer --dropout 1", 3, "--dropout must be a number in [0, 1). Got 1.0.", InputError),
    Case("train citeseer --split-seed -1", 3, "--split-seed must be an integer", InputError),
    Case("train citeseer --backend cobol", 3, "--backend must be one of", InputError),
    Case("train citeseer --device abacus", 3, "--device must be a torch device", InputError),
    Case("train citeseer --learning-rate 1e30", 3, "Training diverged in epoch 1: ", DivergenceError),
    Case(
        "train citeseer --learning-rate 1e30 --out model",
        3,
        "Use a lower --learning-rate or --penalty",
        DivergenceError,
    ),
    Case(f"{TRAIN} --test 0.7", 3, "too few", InputError, small),
    Case(f"{TRAIN} --test 0.8", 3, "--test 0.8 and --stopping 0.2 leave no nodes for training", InputError, small),
    Case("train edges.csv --nodes nodes.csv", 3, "Name it: --label-column topic", InputError, small),
    Case("train edges.csv --nodes nodes.csv --label-column topi", 3, "Did you mean 'topic'?", ColumnError, small),
    Case(
        "train edges.csv --nodes other.csv --label-column topic",
        3,
        "node 'c' is not in other.csv",
        UnknownNodeError,
        small,
    ),
    Case("predict model", 3, "Add: --graph GRAPH --nodes FILE", MismatchError, trained),
    Case(
        "train edges.csv --nodes nodes.csv --id-column name",
        3,
        "\n  Name them: --id-column id --label-column topic\n",
        SeveralErrors,
        small,
    ),
    Case(
        "train edges.csv --nodes nodes.csv --label-column id",
        3,
        "--label-column must be another column than that of the ids",
        InputError,
        small,
    ),
    Case(
        f"{TRAIN} --column x=colour", 3, "number, boolean, category, date, text, embedding, unused", InputError, small
    ),
    Case(f"{TRAIN} --column y=number", 3, "nodes.csv has no column 'y'", InputError, small),
    Case(
        f"{TRAIN} --split-column part",
        3,
        "nodes.csv has no column 'part'. Its columns: id, topic, x.",
        InputError,
        small,
    ),
    Case(f"{TRAIN} --split-column x", 3, "Got '1' in row 1", FormatError, small),
    Case(f"{TRAIN} --missing-labels red,blue", 3, "Every cell under 'topic' is empty or stands", InputError, small),
    Case("train citeseer --scaling l2", 3, "--scaling must be", InputError),
    Case(
        "propagate edges.csv scores.csv --alpha 0 --exact", 3, "--alpha must be a number in (0, 1]", InputError, small
    ),
    Case(
        "propagate edges.csv scores.csv --columns t",
        3,
        "scores.csv has no column 't'. Its columns: id, s.",
        InputError,
        small,
    ),
    # data
    Case("train cora", 4, "Did you mean 'cora_ml'?", FileError),
    Case("data info cora", 3, "must be one of 'citeseer'", DatasetError),
    Case("data check graph.npz", 3, "", None, damaged),
    Case("train graph.npz", 3, "graph.npz", FormatError, damaged),
    Case("propagate citeseer scores.npy", 3, "not a sound .npy file", FormatError, damaged),
    Case("train graph.txt", 3, ".mtx or .graphml", FormatError, lambda f: (f / "graph.txt").touch()),
    Case("propagate edges.csv scores.csv --out o.xlsx", 3, "--out must end in", FormatError, small),
    Case("predict there", 3, "there", FormatError, occupied),
    Case("ppr edges.csv a --weight w", 3, "finite weights", GraphError, overflowing),
    Case("train edges.parquet --nodes nodes.csv --label-column topic", 3, "a sound Parquet file", FormatError, parquet),
    Case("tune citeseer --out study", 3, "pip install optuna", MissingDependencyError),
    Case("propagate large.npz scores.npy --exact --alpha 1e-9 --out o.npy", 3, "1192.1 GiB", CapacityError, large),
    Case(
        "propagate path.npz scores.npy --solver contraction --alpha 1e-4 --out o.npy",
        3,
        "in 10000 products",
        ToleranceError,
        slow,
    ),
    # files
    Case("train graph.npz", 4, "There is no file 'graph.npz'", OSError),
    Case("train edges.csv --nodes none.csv --label-column topic", 4, "There is no file 'none.csv'", OSError, small),
    Case("propagate edges.csv none.csv", 4, "There is no file 'none.csv'", OSError, small),
    Case("predict none", 4, "There is no folder 'none'", OSError),
    Case("train citeseer --out there", 4, "holds 'diary.txt'", OSError, occupied),
    Case("train citeseer --out there --force", 4, "holds 'diary.txt'", OSError, occupied),
    Case("train citeseer --out old.csv", 4, "is a file", OSError, occupied),
    Case("train citeseer --out old.csv/model", 4, "'old.csv/model' cannot be written", OSError, occupied),
    Case("demo --out there", 4, "holds 'diary.txt'", OSError, occupied),
    Case("propagate edges.csv scores.csv --out old.csv", 4, "already there", OSError, occupied),
    Case("propagate edges.csv scores.csv --out there", 3, "--out must end in", FormatError, occupied),
]


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[type[BaseException]]:
    """The classes of the errors that verbs ended with."""
    seen: list[type[BaseException]] = []
    describe = Session._describe

    def spy(self: Session, error: BaseException) -> tuple[int | None, str]:
        code, sentence = describe(self, error)
        if code not in (None, USAGE):
            seen.append(type(error))
        return code, sentence

    monkeypatch.setattr(Session, "_describe", spy)
    return seen


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.arguments)
def test_bad_input_is_one_sentence_and_leaves_no_file(
    case: Case,
    pprop_here,
    errors: list[type[BaseException]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    only_bundled: Path,
):
    monkeypatch.setitem(sys.modules, "optuna", None)
    case.prepare(tmp_path)
    before = contents(tmp_path)
    answer = pprop_here(*case.arguments.split())
    assert answer.code == case.code
    if case.arguments.startswith("data check"):  # its answer is the report
        assert "problem" in answer.out
        assert "cannot use this graph" in answer.out
    else:
        before_it, start, sentence = f"\n{answer.err}".rpartition("\npprop")
        notes = before_it.splitlines()[1:]
        assert start
        assert case.says in sentence
        assert all(
            note.startswith(("Warning: ", "Note: ", "Columns:", "  ", "APPNP on ", "Compiling ", "Training labels: "))
            for note in notes
        )
        assert answer.out == ""
    assert "Traceback" not in answer.err
    assert contents(tmp_path) == before
    assert [issubclass(error, case.error or ()) for error in errors] == [True] * (case.error is not None)


def test_the_table_reaches_every_error_class_of_the_core():
    def tree(root: type[PpropError]) -> Iterator[type[PpropError]]:
        for child in root.__subclasses__():
            yield from (child, *tree(child))

    core = {error for error in tree(PpropError) if error.__module__ == "pprop._errors"}
    core -= {EdgeError, TakenError}  # of edits and of races: in files of their own
    reached = {case.error for case in CASES if case.error is not None}
    assert core == {error for error in reached if error.__module__ == "pprop._errors"}


def test_an_unexpected_error_is_one_line_that_names_debug(pprop_here, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pprop.cli.graphs.GraphInput.read", lambda origin: 1 / 0)
    answer = pprop_here("train", "citeseer")
    assert answer.code == 1
    assert answer.err == (
        "pprop train: Unexpected error: ZeroDivisionError: division by zero. Run it again with --debug to see where.\n"
    )


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "cache" not in path.parts
    }
