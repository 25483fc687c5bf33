"""Values of options are refused before any table is read: here no table can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

TRAIN = "train edges.csv --nodes nodes.csv --label-column topic"
WRONG = {
    TRAIN: {
        "--neighbours 0": "--neighbours must be an integer of at least 1. Got 0.",
        "--neighbours 5 --alpha 0": "--alpha must be above 0 with --neighbours",
        "--alpha 2": "--alpha must be a number in [0, 1]. Got 2.0.",
        "--model ppnp --alpha 0": "--alpha must be a number in (0, 1]. Got 0.0.",
        "--model solved-ppnp --alpha 0": "--alpha must be a number in (0, 1]. Got 0.0.",
        "--model solved-ppnp --tol 1e-9": "--tol must be at least 9.5e-06, what float32 can reach at alpha 0.1. Got 1e-09.",
        "--model solved-ppnp --tol 1e-4 --alpha 0.001": "--tol must be at least 0.00095",
        "--model solved-ppnp --solver lu": "--solver must be one of 'chebyshev', 'cg' or 'contraction'. Got 'lu'.",
        "--model solved-ppnp --directed --solver cg": "--solver must be 'contraction' for a directed graph. Got 'cg'. "
        "Add: --solver contraction",
        "--model solved-ppnp --directed": "Got 'chebyshev'. Add: --solver contraction",
        "--model appnp-cv --alphas 2": "--alphas must be different numbers in [0, 1], separated by commas. Got 2.0.",
        "--model appnp-ensemble --alphas 0.1,2": "--alphas must be different numbers in [0, 1], separated by commas. Got 2.0.",
        "--model appnp-cv --alphas 0.1,0.1": "--alphas must be different numbers in [0, 1]",
        "--model appnp-cv --alphas low": "--alphas takes numbers separated by commas, not 'low'.",
        "--model appnp-cv --runs 0": "--runs must be an integer of at least 1. Got 0.",
        "--model appnp-cv --stopping 0": "--stopping must be above 0 with --model appnp-cv",
        "--model appnp-ensemble --stopping 0": "--stopping must be above 0 with --model appnp-ensemble",
        "--model appnp-ensemble --folds 1": "--folds must be 0, or an integer of at least 2. Got 1.",
        "--model auto --stopping 0": "--stopping must be above 0 with --model auto",
        "--model residual --hidden 64,32": "--hidden takes one width with --model residual. Got '64,32'.",
        "--model residual --layers -1": "--layers must be an integer from 0 to 10000. Got -1.",
        "--model boosting --hops -1": "--hops must be an integer from 0 to 100. Got -1.",
        "--no-label-inputs": "--label-inputs belongs to boosting, residual and auto; appnp has none.",
        "--model mlp --scale": "--scale trains appnp alone: leave out --scale or --model mlp.",
        "--class-weight red": "--class-weight takes balanced or CLASS=WEIGHT,... with weights above 0. Got 'red'.",
        "--class-weight red=0": "with weights above 0. Got 'red=0'.",
        "--class-weight red=-1,blue=2": "with weights above 0. Got 'red=-1,blue=2'.",
        "--class-weight red=much": "with weights above 0. Got 'red=much'.",
        "--class-weight red=inf": "with weights above 0. Got 'red=inf'.",
        "--hidden 0": "--hidden must be an integer of at least 1",
        "--criterion ap": "--criterion must be one of 'paper', 'loss', 'window' or 'plateau'. Got 'ap'.",
        "--backend cobol": "--backend must be one of",
        "--device abacus": "--device must be a torch device",
        "--seed -1": "--seed must be an integer from 0 to 4294967295. Got -1.",
        "--test 1": "--test must be a number in [0, 1). Got 1.0.",
        "--stopping 1": "--stopping must be a number in [0, 1). Got 1.0.",
        "--test 0.6 --stopping 0.5": "--test 0.6 and --stopping 0.5 leave no nodes for training: together they must be less "
        "than 1.",
        "--column age=number --column age=text": "--column names 'age' twice: age=number and age=text.",
    },
    "tune edges.csv --nodes nodes.csv --label-column topic --out tuned": {
        "--space depth=1,2": "--space takes SETTING=VALUES, SETTING one of alpha",
        "--space alpha=2:3": "--space alpha must be a number in [0, 1]. Got 2.",
        "--model ppnp --space alpha=0:0.2": "--space alpha must be a number in (0, 1]. Got 0.",
        "--model mlp --space alpha=0.1,0.2": "--space takes settings of mlp: hidden, dropout",
        "--space alpha=0.5:0.1": "LOW:HIGH (LOW below HIGH)",
        "--space alpha=0:0.1:log": "LOW:HIGH:log (LOW above 0)",
        "--space hidden=0,8": "--space hidden must be an integer of at least 1, or a sequence of them. Got 0.",
        "--space alpha=0.1": "--space needs a setting with several values to search, such as alpha=0.02:0.5. Got one value of "
        "alpha.",
        "--space alpha=0.1,0.2 --space alpha=0.3": "--space names 'alpha' twice",
        "--space alpha=0.1,0.1": "no two the same",
        "--trials 0": "--trials must be an integer of at least 1. Got 0.",
        "--time-limit 0": "--time-limit must be a number in (0, inf). Got 0.0.",
        "--seed 4294967296": "--seed must be an integer from 0 to 4294967295. Got 4294967296.",
        "--stopping 0": "--stopping must be above 0: validation nodes judge the trials. Got 0.0.",
        "--test 0.9": "together they must be less than 1",
        "--backend cobol": "--backend must be one of",
    },
    "propagate edges.csv scores.csv": {
        "--alpha 0 --exact": "--alpha must be a number in (0, 1]. Got 0.0.",
        "--alpha 0 --solver cg": "--alpha must be a number in (0, 1]. Got 0.0.",
        "--solver lu": "--solver must be one of 'chebyshev', 'cg' or 'contraction'. Got 'lu'.",
        "--solver cg --directed": "--solver must be 'contraction' for a directed graph. Got 'cg'. Add: --solver contraction",
        "--solver cg --tol 2": "--tol must be a number in (0, 1). Got 2.0.",
        "--backend cobol": "--backend must be one of",
        "--normalization max": "--normalization must be one of 'sym', 'row' or 'col'. Got 'max'.",
        "--out x.txt": "--out must end in .csv, .parquet or .npy. Got 'x.txt' instead.",
    },
    "ppr edges.csv ann": {
        "--alpha 0": "--alpha must be a number in (0, 1]. Got 0.0.",
        "--eps 2": "--eps must be a number in (0, 1). Got 2.0.",
        "--topk 0": "--topk must be an integer of at least 1. Got 0.",
        "--normalization max": "--normalization must be one of 'sym', 'row' or 'col'. Got 'max'.",
        "--out rows.csv": "--out must end in .npz. Got 'rows.csv' instead.",
    },
    "build edges.csv --nodes nodes.csv --out graph": {
        "--memory 0": "--memory must be a number in (0, inf). Got 0.0.",
        "--memory nan": "--memory must be a number in (0, inf). Got nan.",
        "--label-file scores.csv --label-column topic": "--label-file is in place of --label-column",
        "--feature-file scores.csv --features x.npy": "--feature-file is in place of --features",
        "--feature-file none.npy": "There is no file 'none.npy'.",
        "--column age=number --column age=text": "--column names 'age' twice",
    },
    "build edges.csv --out graph": {
        "--label-column topic": "--label-column names columns of a node table: add --nodes FILE.",
        "--features age": "--features names columns of a node table: add --nodes FILE.",
        "--label-file scores.csv": "--label-file needs the order of the nodes: add --nodes",
    },
}
# with several errors at once, of which the first is about the option
WITH_OTHERS = {
    f"{TRAIN} --column age=colour": "--column must be NAME=KIND, where KIND is one of number, boolean",
    "build edges.csv --nodes nodes.csv --out graph --column age=colour": "--column must be NAME=KIND",
}


@pytest.fixture
def unreadable(tmp_path: Path) -> None:
    """Tables that can be opened, and are none."""
    for name in ("edges.csv", "nodes.csv", "scores.csv"):
        (tmp_path / name).write_bytes(b"PAR1")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [(f"{call} {options}", sentence) for call, cases in WRONG.items() for options, sentence in cases.items()],
)
def test_a_wrong_value_is_refused_before_any_table_is_read(pprop_here, unreadable: None, call: str, sentence: str):
    answer = pprop_here(*call.split())
    first, *others = answer.err.splitlines()
    assert sentence in first  # and then that the tables are none
    also = ("  Try: ", "  --space alpha must be", "  There is no file 'x.npy'.")
    assert all("which is a Parquet file" in line or line.startswith(also) for line in others)
    assert answer.code in ((4,) if sentence.startswith("There is no file") else (2, 3))


@pytest.mark.parametrize(("call", "sentence"), WITH_OTHERS.items())
def test_a_wrong_kind_of_a_column_is_the_first_error_though_no_table_can_be_read(
    pprop_here, unreadable: None, call: str, sentence: str
):
    answer = pprop_here(*call.split())
    assert answer.code == 3
    assert sentence in answer.err.splitlines()[0]
    assert "'edges.csv', which is a Parquet file" in answer.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--port 99999", "--port must be an integer from 0 to 65535. Got 99999."),
        ("--port -1", "--port must be an integer from 0 to 65535. Got -1."),
        (
            "--token ",
            "--token must be printable ASCII characters without spaces, as a header can hold them. Got an empty text.",
        ),
        ("--host 0.0.0.0", "needs a token; at 127.0.0.1 it needs none. Add: --token VALUE"),
    ],
)
@pytest.mark.parametrize("verb", ["serve", "explore"])
def test_a_wrong_address_is_refused_before_the_model_is_loaded(
    pprop_here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str, options: str, sentence: str
):
    monkeypatch.setattr("pprop.cli.serve.load_model", lambda *arguments: 1 / 0)
    (tmp_path / "model").mkdir()
    answer = pprop_here(verb, "model", *options.split(" "))
    assert answer.code == 3
    assert answer.err.startswith(f"pprop {verb}: ")
    assert sentence in answer.err


@pytest.mark.parametrize("rate", [0, -1, "nan"])
def test_a_wrong_rate_is_refused_before_the_model_is_loaded(pprop_here, rate: object):
    answer = pprop_here("serve", "model", "--rate", rate)
    assert (answer.code, "--rate must be a number in (0, inf]" in answer.err.splitlines()[0]) == (3, True)


@pytest.mark.parametrize("call", WRONG)
def test_without_a_wrong_value_it_is_the_table_that_is_refused(pprop_here, unreadable: None, call: str):
    assert "edges.csv" in pprop_here(*call.split()).err


def test_a_seed_of_a_dataset_is_refused_before_it_is_read(pprop_here, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pprop.cli.graphs.GraphInput.read", lambda origin: 1 / 0)
    answer = pprop_here("train", "citeseer", "--split-seed", "-1")
    assert answer.err == "pprop train: --split-seed must be an integer from 0 to 4294967295. Got -1.\n"
    answer = pprop_here("train", "citeseer", "--class-weight", "red")
    assert "--class-weight takes balanced or CLASS=WEIGHT" in answer.err


@pytest.mark.parametrize("weight", ["one, a=2=3", "x=1.5, y=2,z=4"])
def test_the_name_of_a_class_may_have_commas_and_equals_signs(pprop_here, unreadable: None, weight: str):
    assert "edges.csv" in pprop_here(*TRAIN.split(), "--class-weight", weight).err
