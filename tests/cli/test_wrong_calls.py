"""A call with several things wrong is answered with all of them, in the words of the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command
from typer.main import get_command

from pprop._errors import InputError
from pprop.cli import verbs
from pprop.cli.app import app


def commands() -> dict[str, Any]:
    """All commands by what is typed for them."""

    def below(command: Any, name: str) -> dict[str, Any]:
        parts = getattr(command, "commands", None)
        if parts is None:
            return {name: command}
        return {key: each for part in parts for key, each in below(parts[part], f"{name} {part}".strip()).items()}

    return below(get_command(app), "")


COMMANDS = commands()
# words of the libraries beneath, of Python, and of functions
FOREIGN = re.compile(
    r"Input should|[Vv]alue error|valid integer|type=|Traceback|Invalid value|<class|parameter of|\bNone\b|\bTrue\b"
    r"|\b[A-Z][a-z]+([A-Z][a-z]+)+\b|\w+\.\w+Error|Unexpected error"
)
WRONG = "wrong!"
NO_FILE = "nofile.csv"


def options(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option"]


def words_of(name: str, *left_out: str) -> list[str]:
    """What a command needs, none of which is there, without the options that are left out."""
    words = name.split()
    for each in COMMANDS[name].params:
        if each.param_type_name == "argument":
            words.append(NO_FILE)
        elif each.required and each.opts[0] not in left_out:
            words += [each.opts[0], "out"]
    return words


VALUES = [(name, each.opts[0]) for name in COMMANDS for each in options(COMMANDS[name]) if not each.is_flag]


@pytest.mark.parametrize(("name", "option"), VALUES)
def test_a_wrong_value_beside_an_unknown_option_is_refused_in_plain_words(
    pprop_here: Command, tmp_path: Path, name: str, option: str
):
    (each,) = [one for one in options(COMMANDS[name]) if one.opts[0] == option]
    answer = pprop_here(*words_of(name, option), option, WRONG, "--bogus")
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith(f"pprop {name}: No such option: --bogus.")
    assert answer.err.endswith(f" Try: pprop {name} --help\n")
    assert FOREIGN.search(answer.err) is None
    if each.type_descriptor.annotation not in (str, Path, list[str]):
        assert f"  {option} must be " in answer.err
        assert f"Got '{WRONG}'." in answer.err
    assert list(tmp_path.iterdir()) == []


EDGES = "source,target,w\nann,bob,1\nbob,cem,2\ncem,ann,1\n"
NODES = "id,team,age\nann,red,31\nbob,blue,27\ncem,red,45\n"
GIVEN = {
    "GRAPH": "edges.csv",
    "PATH": "edges.csv",
    "EDGES...": "edges.csv",
    "PREDICTIONS": "nodes.csv",
    "NODE...": "ann",
}
OF_TABLES = ("--nodes", "nodes.csv", "--label-column", "team")
BAD = (WRONG, "", "-1", "nan", "1e999")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sound tables, and commands that end where their work would begin."""

    def end(*arguments: object, **more: object) -> None:
        raise InputError("The work begins.")

    for name, text in (("edges.csv", EDGES), ("nodes.csv", NODES)):
        (tmp_path / name).write_text(text)
    for place in ("graphs.GraphInput.read", "demo.example_input", "serve.example_input", "data.where"):
        monkeypatch.setattr(f"pprop.cli.{place}", end)
    monkeypatch.setattr("pprop.graph.building.build.build_graph", end)
    monkeypatch.setattr("pprop.study.run.runner.run_study", end)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("name", "option"), VALUES)
def test_no_word_of_a_library_is_in_the_answer_to_a_bad_value_alone(
    pprop_here: Command, no_work: None, name: str, option: str, bad: str
):
    command = COMMANDS[name]
    known = {each.opts[0] for each in options(command)}
    words = name.split()
    for each in command.params:
        if each.param_type_name == "argument" and (each.required or name == "explore"):
            words.append(GIVEN.get(each.metavar, NO_FILE))
        elif each.required and each.opts[0] != option:
            words += [each.opts[0], "out"]
    for one, value in zip(OF_TABLES[::2], OF_TABLES[1::2], strict=True):
        if one in known and one != option and name not in ("predict", "study run") and "spark" not in name:
            words += [one, value]
    answer = pprop_here(*words, f"{option}={bad}")
    assert answer.code in (2, 3, 4), answer.err
    said = answer.out + answer.err
    assert FOREIGN.search(said) is None, said
    assert "pprop." not in said.replace("docs.pprop", ""), said


@pytest.mark.parametrize("name", COMMANDS)
def test_missing_arguments_and_options_are_named_together(pprop_here: Command, name: str):
    answer = pprop_here(*name.split(), "--bogus", "--json=yes")
    missing = [
        f"Missing option '{each.opts[0]}'."
        if each in options(COMMANDS[name])
        else f"Missing argument '{each.metavar}'."
        for each in COMMANDS[name].params
        if each.required
    ]
    if name == "study run":  # whose arguments are needed by turns
        missing.append("Give names of experiments, or --model together with either --dataset or --graph.")
    assert answer.code == 2
    assert [line.strip().removeprefix(f"pprop {name}: ") for line in answer.err.splitlines()] == [
        "No such option: --bogus.",
        "--json takes no value. Got 'yes'.",
        *missing,
        f"Try: pprop {name} --help",
    ]


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        (
            "train nofile.csv --nodes nofile2.csv --epochs x --alpha 3 --bogus",
            [
                "No such option: --epochs. Did you mean --max-epochs?",
                "No such option: --bogus.",
                "--alpha must be a number in [0, 1]. Got 3.0.",
                "--max-epochs must be an integer of at least 1. Got 'x'.",
                "There is no file 'nofile.csv'.",
                "There is no file 'nofile2.csv'.",
                "Training needs the classes of some nodes: name the column that holds them. Name it: --label-column COLUMN",
                "Try: pprop train --help",
            ],
        ),
        (
            "train --bogus edges.csv --alpha 3",
            ["No such option: --bogus.", "--alpha must be a number in [0, 1]. Got 3.0."],
        ),
        (
            "train edges.csv --bogus red --alpha 3",
            ["No such option: --bogus.", "--alpha must be a number in [0, 1]. Got 3.0."],
        ),
        (
            "train --bogus=red --alpha=3 edges.csv",
            ["No such option: --bogus.", "--alpha must be a number in [0, 1]. Got 3.0."],
        ),
        ("train edges.csv more.csv", ["The command takes GRAPH. Got 'more.csv', too."]),
        ("doctor now", ["The command takes options alone. Got 'now'. Try: pprop doctor --help"]),
        ("train edges.csv --alpha", ["--alpha needs a value."]),
        ("train edges.csv --nodes --label-column topic", ["--nodes needs a value."]),
        (
            "train edges.csv --label red",
            ["No such option: --label. Did you mean --label-column, --label-inputs or --label-kind?"],
        ),
        (
            "train edges.csv --split part",
            ["No such option: --split. Did you mean --split-column, --split-seed or --split-time?"],
        ),
        ("explain model -- -5 --bogus", ["There is no folder 'model'."]),
        ("train edges.csv --hidden wide", ["--hidden takes integers separated by commas, not 'wide'."]),
        ("train edges.csv --hidden 64,0 --seed one", ["--hidden must be", "--seed must be an integer"]),
        ("study run quick --runs 0", ["--runs must be an integer of at least 1. Got 0."]),
        ("demo --splits 0", ["--splits must be an integer of at least 1. Got 0."]),
    ],
)
def test_what_is_wrong_is_listed(pprop_here: Command, call: str, lines: list[str]):
    answer = pprop_here(*call.split())
    for line in lines:
        assert line in answer.err
    if lines[-1].startswith("Try: "):
        assert len(answer.err.splitlines()) == len(lines)


TABLES = {
    "calls.csv": "from,to,minutes\nann,bob,1\nbob,cem,2\n",
    "more.csv": "from,to\nann,cem\n",
    "people.csv": "name,status,age\nann,red,31\nbob,blue,27\ncem,red,45\n",
}
# commands with a wrong option, a missing file and wrong columns: all lines of the answer, but for Try: ... --help
EVERYTHING = {
    "tune calls.csv --nodes people.csv --label-column state --space alpha=3,4 --space width=1 --trials 0 --out calls.csv": [
        "--space takes SETTING=VALUES, SETTING one of alpha, ",
        "--trials must be an integer of at least 1. Got 0.",
        "--out must be a folder, and 'calls.csv' is a file.",
        "calls.csv has no columns 'source' and 'target'. Its columns: from, to, minutes.",
        "people.csv has no columns 'id' and 'state'. Its columns: name, status, age. Did you mean 'status'?",
        "Name them: --source from --target to --id-column name --label-column status",
    ],
    "tune nofile.csv --time-limit 0 --space alpha=3,4 --seed -1 --stopping 0 --device abacus --out out": [
        "--seed must be an integer of at least 0. Got -1.",
        "--time-limit must be a number in (0, inf). Got 0.0.",
        "--stopping must be above 0: validation nodes judge the trials. Got 0.0.",
        "--space alpha must be a number in [0, 1]. Got 3.",
        "--space alpha must be a number in [0, 1]. Got 4.",
        "--device must be a torch device such as 'cpu' or 'cuda'. Got 'abacus'.",
        "There is no file 'nofile.csv'.",
        "Training needs the classes of some nodes: name the column that holds them. Add: --nodes FILE --label-column COLUMN",
    ],
    "propagate calls.csv people.csv --columns age,score --steps 3 --exact --alpha 0 --solver lu --out o.xlsx": [
        "Give one of --steps, --exact and --solver: they are different ways to compute.",
        "--out must end in .csv, .parquet or .npy. Got 'o.xlsx' instead.",
        "--alpha must be a number in (0, 1]. Got 0.0.",
        "--solver must be one of 'chebyshev', 'cg' or 'contraction'. Got 'lu'.",
        "calls.csv has no columns 'source' and 'target'. Its columns: from, to, minutes. Name them: --source from --target to",
        "people.csv has no column 'score'. Its columns: name, status, age.",
    ],
    "propagate nofile.csv noscores.xlsx --tol 2 --json": [
        "--tol needs --solver chebyshev, cg or contraction.",
        "--json needs --out FILE for the numbers.",
        "--tol must be a number in (0, 1). Got 2.0.",
        "There is no file 'nofile.csv'.",
        "There is no file 'noscores.xlsx'.",
        "PREDICTIONS must be a .csv, .parquet or .npy file. Got 'noscores.xlsx' instead.",
    ],
    "build calls.csv more.csv --nodes people.csv --memory 0 --label-file no.npy --label-column state --out calls.csv": [
        "--label-file is in place of --label-column: leave one of them out.",
        "--memory must be a number in (0, inf). Got 0.0.",
        "There is no file 'no.npy'.",
        "--out must be a folder, and 'calls.csv' is a file.",
        "calls.csv has no columns 'source' and 'target'. Its columns: from, to, minutes.",
        "more.csv has no columns 'source' and 'target'. Its columns: from, to.",
        "people.csv has no columns 'id' and 'state'. Its columns: name, status, age. Did you mean 'status'?",
        "Name them: --source from --target to --id-column name --label-column status",
    ],
    "build nofile.csv --feature-file no.npy --features age --column age=number --out out": [
        "--features names columns of a node table: add --nodes FILE.",
        "--column names columns of a node table: add --nodes FILE.",
        "--feature-file needs the order of the nodes: add --nodes, a node table",
        "Give --features (the columns to use) or --column (how to use some), not both",
        "There is no file 'nofile.csv'.",
        "There is no file 'no.npy'.",
    ],
    "ppr calls.csv ann --alpha 2 --topk 0 --nodes nofile.csv --out rows.csv": [
        "--alpha must be a number in (0, 1]. Got 2.0.",
        "--topk must be an integer of at least 1. Got 0.",
        "--out must end in .npz. Got 'rows.csv' instead.",
        "There is no file 'nofile.csv'.",
        "calls.csv has no columns 'source' and 'target'. Its columns: from, to, minutes. Name them: --source from --target to",
    ],
    "data check calls.csv --nodes nofile.csv --column age --unknown-nodes skip": [
        "--column takes NAME=KIND, such as zip=category, not 'age'.",
        "--unknown-nodes must be one of 'error', 'drop' or 'add'. Got 'skip'.",
        "There is no file 'nofile.csv'.",
        "calls.csv has no columns 'source' and 'target'. Its columns: from, to, minutes. Name them: --source from --target to",
    ],
    "study run quik --graph calls.csv --nodes nofile.csv --time-limit 0 --device tpu --out people.csv": [
        "--time-limit must be a number in (0, inf). Got 0.0.",
        "--device must be one of 'cpu' or 'cuda'. Got 'tpu'.",
        "--out must be a folder, and 'people.csv' is a file.",
        "There is no file 'nofile.csv'.",
        "calls.csv has no columns 'source' and 'target'. Its columns: from, to, minutes.",
        "Training needs the classes of some nodes: name the column that holds them.",
        "Name them: --source from --target to --label-column COLUMN",
        "unknown experiment or group 'quik'. Did you mean 'quick'? All names: pprop study list.",
    ],
    "study run --model nosuch:build --dataset cora --source from --label-column topic --runs 0": [
        "--source belongs to a graph of your own: add --graph.",
        "--label-column belongs to a graph of your own: add --graph.",
        "--runs must be an integer of at least 1. Got 0.",
        "--dataset must be one of 'citeseer', 'cora_ml', 'pubmed' or 'ms_academic'. Got 'cora'.",
        "The module of the model 'nosuch:build' cannot be imported: No module named 'nosuch'",
    ],
    "explain nomodel ann --eps 3 --top 0 --plot ann.pdf --graph nofile.csv": [
        "--eps belongs to --mode fast: add it, or leave --eps out.",
        "--top must be an integer of at least 1. Got 0.",
        "--eps must be a number in (0, 1). Got 3.0.",
        "--plot must end in .png or .svg. Got 'ann.pdf' instead.",
        "There is no folder 'nomodel'.",
        "There is no file 'nofile.csv'.",
    ],
    "predict nomodel --graph nofile.csv --nodes nonodes.csv --features age --scale": [
        "The model knows its columns: --features takes .npy files alone, not 'age'.",
        "--scale needs --out FILE: what it is for is too long to print.",
        "There is no folder 'nomodel'.",
        "There is no file 'nofile.csv'.",
        "There is no file 'nonodes.csv'.",
    ],
    "live nomodel noedits.txt --tol -1 --out after.xls --graph nofile.csv": [
        "--tol must be a number in (0, inf). Got -1.0.",
        "--out must end in .csv or .parquet. Got 'after.xls' instead.",
        "There is no folder 'nomodel'.",
        "There is no file 'nofile.csv'.",
        "There is no file 'noedits.txt'.",
    ],
    "serve nomodel --port 99999 --rate 0 --token ü --graph nofile.csv": [
        "--port must be an integer from 0 to 65535. Got 99999.",
        "--rate must be a number in (0, inf]. Got 0.0.",
        "--token must be printable ASCII characters without spaces, as a header can hold them. Got other characters.",
        "There is no folder 'nomodel'.",
        "There is no file 'nofile.csv'.",
    ],
    "explore nomodel --port 99999 --host 0.0.0.0 --graph nofile.csv": [
        "--graph is the graph of a saved model, and 'nomodel' is none.",
        "--port must be an integer from 0 to 65535. Got 99999.",
        "A server at '0.0.0.0', which other machines reach, needs a token; at 127.0.0.1 it needs none. Add: --token VALUE",
        "There is no saved model 'nomodel', and no dataset has this name. The datasets: citeseer, cora_ml, pubmed, ms_academic. "
        "A model is saved with: pprop train GRAPH --out nomodel",
    ],
    "demo --splits 0 --device abacus --out people.csv": [
        "--splits must be an integer of at least 1. Got 0.",
        "--device must be a torch device such as 'cpu' or 'cuda'. Got 'abacus'.",
        "--out must be a folder, and 'people.csv' is a file.",
    ],
    "spark propagate noedges noscores --alpha 2 --steps -1 --tol 3 --normalization x --memory 0 --out calls.csv": [
        "Give one of --steps and --tol: --tol is in place of --steps.",
        "--alpha must be a number in (0, 1]. Got 2.0.",
        "--steps must be an integer from 0 to 10000. Got -1.",
        "--tol must be a number in (0, 1). Got 3.0.",
        "--normalization must be one of 'sym', 'row' or 'col'. Got 'x'.",
        "--memory must be a number in (0, inf). Got 0.0.",
        "'calls.csv' is already there. Choose another --out, or add --force to replace it.",
        "There is no file or folder 'noedges'.",
        "There is no file or folder 'noscores'.",
    ],
    "spark ppr noedges nonodes --eps 3 --topk 0 --normalization x --out out": [
        "--eps must be a number in (0, 1). Got 3.0.",
        "--topk must be an integer of at least 1. Got 0.",
        "--normalization must be one of 'sym', 'row' or 'col'. Got 'x'.",
        "There is no file or folder 'noedges'.",
        "There is no file or folder 'nonodes'.",
    ],
    "spark train nonodes noedges --label-column topic --seed -1 --out calls.csv": [
        "--seed must be an integer from 0 to 4294967295. Got -1.",
        "--out must be a folder, and 'calls.csv' is a file.",
        "There is no file or folder 'nonodes'.",
        "There is no file or folder 'noedges'.",
    ],
    "spark ppr calls.csv nonodes --out people.csv": [
        "pprop spark reads Parquet, and 'calls.csv' is a text file. 'pprop build', 'pprop propagate' and 'pprop train' read text.",
        "'people.csv' is already there. Choose another --out, or add --force to replace it.",
        "There is no file or folder 'nonodes'.",
    ],
    "spark pack noedges --nodes nonodes --out calls.csv": [
        "--out must be a folder, and 'calls.csv' is a file.",
        "There is no file or folder 'noedges'.",
        "There is no file or folder 'nonodes'.",
    ],
    "spark predict nomodel nonodes noedges --out calls.csv": [
        "'calls.csv' is already there. Choose another --out, or add --force to replace it.",
        "There is no folder 'nomodel'.",
        "There is no file or folder 'nonodes'.",
        "There is no file or folder 'noedges'.",
    ],
    "study verify nofolder --sample 0 --minutes 0 --seed -1": [
        "--sample must be an integer of at least 1. Got 0.",
        "--minutes must be a number in (0, inf). Got 0.0.",
        "--seed must be an integer of at least 0. Got -1.",
    ],
}


@pytest.mark.parametrize("call", EVERYTHING)
def test_everything_that_is_wrong_is_listed_at_once(pprop_here: Command, tmp_path: Path, call: str):
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    answer = pprop_here(*call.split())
    verb = next(name for name in COMMANDS if call.startswith(f"{name} "))
    lines = [line.strip().removeprefix(f"pprop {verb}: ") for line in answer.err.splitlines()]
    told = [line for line in lines if not line.startswith("Try: ")]
    assert len(told) == len(EVERYTHING[call]), answer.err
    for line, start in zip(sorted(told), sorted(EVERYTHING[call]), strict=True):
        assert line.startswith(start)
    assert FOREIGN.search(answer.err) is None
    assert {file.name for file in tmp_path.iterdir()} == {*TABLES}


def test_what_is_wrong_with_tables_alone_is_a_list_of_problems(pprop_here: Command, tmp_path: Path):
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    answer = pprop_here("data", "check", "calls.csv", "--nodes", "people.csv", "--column", "age=years")
    assert (answer.code, answer.err) == (3, "")
    assert [line.split(maxsplit=1)[1] for line in answer.out.splitlines() if line.startswith("  problem")] == [
        "--column must be NAME=KIND, where KIND is one of number, boolean, category, date, text, embedding, unused. "
        "Got 'age=years'.",
        "calls.csv has no columns 'source' and 'target'. Its columns: from, to, minutes.",
        "people.csv has no column 'id'. Its columns: name, status, age. "
        "Name them: --source from --target to --id-column name",
    ]


def test_every_file_of_features_that_is_wrong_is_listed(pprop_here: Command, tmp_path: Path):
    """Also beside a wrong option, where the tables are never read; of what is right nothing is said."""
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    for name, rows in {"right": np.ones((3, 2)), "long": np.ones((4, 2)), "text": np.array([["x"]] * 3)}.items():
        np.save(tmp_path / f"{name}.npy", rows)
    (tmp_path / "damaged.npy").write_text("no numbers")
    columns = ("--source", "from", "--target", "to", "--id-column", "name")
    call = ("calls.csv", "--nodes", "people.csv", *columns, "--features", "long.npy,right.npy,text.npy,damaged.npy")
    told = [
        "--features must be a matrix of numbers with 3 rows, one for each of 'people.csv'. Got an array of shape (4, 2) and ",
        "--features must be a matrix of numbers with 3 rows, one for each of 'people.csv'. Got an array of shape (3, 1) and ",
        "--features must be a sound npy file. Got ",
    ]
    for others, also in ((), []), (("--alpha", 3), ["--alpha must be a number in [0, 1]. Got 3.0."]):
        answer = pprop_here("train", *call, "--label-column", "status", *others)
        lines = [line.strip().removeprefix("pprop train: ") for line in answer.err.splitlines()]
        assert answer.code == 3
        assert len(lines) == len([*also, *told]), answer.err
        for line, start in zip(lines, [*also, *told], strict=True):
            assert line.startswith(start)
    problems = [line for line in pprop_here("data", "check", *call).out.splitlines() if line.startswith("  problem")]
    assert len(problems) == len(told)


def test_help_is_shown_whatever_else_is_wrong(pprop_here: Command):
    answer = pprop_here("train", "--bogus", "--alpha", "much", "--help")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("Usage: pprop train ")


def test_a_command_raises_errors_of_its_own_alone():
    sources = Path(verbs.__file__).parent.glob("*.py")
    raised = [path.name for path in sources if "raise typer.BadParameter" in path.read_text(encoding="utf-8")]
    assert raised == []


CODES = {
    "train citeseer --neighbours 0": 3,
    "train citeseer --neighbours few": 3,
    "train citeseer --class-weight foo": 3,
    "train citeseer --neighbours 0 --class-weight foo": 3,
    "train citeseer --model foo": 3,
    "train citeseer --alphas low --model appnp-cv": 3,
    "train citeseer --criterion foo": 3,
    "tune citeseer --space alpha --out tuned": 3,
    "train citeseer --column age=number --alpha 2": 2,  # an option that does not belong here, and a value
    "train citeseer --neighbour": 2,
    "explain nofolder 1": 4,
    "explore nofolder": 4,
    "predict nofolder --out rows.csv": 4,
    "train nofile": 4,
    "train nofile.csv --nodes people.csv --label-column status": 4,
    "explain empty 1": 3,
    "explore empty": 3,
}


@pytest.mark.parametrize(("call", "code"), CODES.items())
def test_mistakes_of_one_kind_end_with_one_code(pprop_here, tmp_path: Path, call: str, code: int):
    """2: words that do not go together. 3: a value or a content. 4: a file or folder that is not there."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "people.csv").write_text("id,status\nann,red\n")
    answer = pprop_here(*call.split())
    assert answer.code == code, answer.err
