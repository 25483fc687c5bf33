"""Two tables of a stranger, whose columns have other names: one failed call, whose last words are then followed to the letter."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@dataclass(frozen=True)
class Pair:
    """How somebody calls the columns of two tables."""

    edges: Sequence[str]  # two ends, and others
    nodes: Sequence[str]  # id, class, and others
    file: str = "csv"
    integers: bool = False


PAIRS = {
    "calls": Pair(["from", "to", "minutes"], ["name", "status", "age"]),
    "papers": Pair(["citing_paper", "cited_paper"], ["paper_id", "subject", "words", "year"], integers=True),
    "payments": Pair(["payment", "id_a", "id_b"], ["account", "amount", "is_fraud"], "parquet"),
    "strange": Pair(["tag", "alpha", "omega"], ["flavour", "who", "size"]),
    "turned": Pair(["src", "dst"], ["type", "node", "degree"], "tsv", integers=True),
}


def write(folder: Path, pair: Pair) -> tuple[str, str]:
    """Write two communities of 15 nodes, each with its class."""
    random = np.random.default_rng(0)
    names = np.arange(30) * 7 + 100 if pair.integers else np.array([f"k{k}" for k in range(30)])
    sides = np.repeat([0, 1], 15)
    ends = [(a, (a + step) % 15 + 15 * (a >= 15)) for a in range(30) for step in (1, 4)]
    values = {
        **dict(zip([name for name in pair.edges if not is_end(name)], [random.integers(1, 9, 60)] * 3, strict=False)),
        **dict(zip([name for name in pair.edges if is_end(name)], names[np.array(ends).T], strict=True)),
    }
    edges = pd.DataFrame({name: values[name] for name in pair.edges})
    made = {
        **{name: random.normal(sides, 1).round(3) for name in pair.nodes},
        **{name: names for name in pair.nodes if name in ("name", "paper_id", "account", "who", "node")},
        **{name: np.array(["red", "blue"])[sides] for name in pair.nodes if is_class(name)},
    }
    nodes = pd.DataFrame({name: made[name] for name in pair.nodes})
    for table, stem in ((edges, "edges"), (nodes, "nodes")):
        path = folder / f"{stem}.{pair.file}"
        if pair.file == "parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False, sep="\t" if pair.file == "tsv" else ",")
    return f"edges.{pair.file}", f"nodes.{pair.file}"


def is_end(name: str) -> bool:
    return name in ("from", "to", "citing_paper", "cited_paper", "id_a", "id_b", "alpha", "omega", "src", "dst")


def is_class(name: str) -> bool:
    return name in ("status", "subject", "is_fraud", "flavour", "type")


@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_the_first_error_has_all_that_the_second_call_needs(pprop_here, tmp_path: Path, pair: Pair) -> None:
    edges, nodes = write(tmp_path, pair)
    quick = ("--model", "label-propagation", "--no-baselines", "--backend", "reference", "--json")
    first = pprop_here("train", edges, "--nodes", nodes, *quick)
    assert (first.code, first.out) == (3, "")
    start, told = first.err.splitlines()[0], first.err.splitlines()[-1].strip()
    assert start.startswith(
        f"pprop train: {edges} has no columns 'source' and 'target'. Its columns: {pair.edges[0]}, "
    )
    assert f"{nodes} has no column 'id'. Its columns: {pair.nodes[0]}, " in first.err
    advice, colon, options = told.partition(": ")
    assert (advice, colon) == ("Name them", ": ")
    second = pprop_here("train", edges, "--nodes", nodes, *quick, *shlex.split(options))
    assert second.code == 0, second.err
    found = dict(zip(shlex.split(options)[::2], shlex.split(options)[1::2], strict=True))
    assert is_end(found["--source"])
    assert is_end(found["--target"])
    assert is_class(found["--label-column"])


CARELESS = {
    "the node table as a second argument": ("{edges} {nodes}", "A node table is given by an option: --nodes {nodes}."),
    "the two files the other way round": (
        "{nodes} --nodes {edges}",
        "the edge list, {edges}, comes first, and the node table",
    ),
    "both at once": (
        "{nodes} {edges}",
        "the edge list, {edges}, comes first, and the node table, {nodes}, after --nodes",
    ),
    "options of other programs": (
        "--edges {edges} --nodes {nodes} --epochs 9",
        "No such option: --epochs. Did you mean --max",
    ),
    "names of nobody": ("{edges} --nodes {nodes} --source a --target b --id-column c", "no columns 'a' and 'b'. Its"),
    "the class as the target": (
        "{edges} --nodes {nodes} --target {label}",
        "has no columns 'source' and '{label}'. Its",
    ),
}


@pytest.mark.parametrize(
    "pair", [PAIRS["calls"], PAIRS["papers"], PAIRS["payments"]], ids=["calls", "papers", "payments"]
)
@pytest.mark.parametrize(("call", "sentence"), CARELESS.values(), ids=CARELESS)
def test_a_careless_call_fails_once(pprop_here, tmp_path: Path, pair: Pair, call: str, sentence: str) -> None:
    edges, nodes = write(tmp_path, pair)
    files = {"edges": edges, "nodes": nodes, "label": next(filter(is_class, pair.nodes))}
    quick = ("--model", "label-propagation", "--no-baselines", "--backend", "reference", "--json")
    first = pprop_here("train", *call.format(**files).split(), *quick)
    assert first.code in (2, 3)
    assert sentence.format(**files) in first.err
    told = next(line.strip() for line in reversed(first.err.splitlines()) if "Name them: " in line)
    second = pprop_here("train", edges, "--nodes", nodes, *quick, *shlex.split(told.partition("Name them: ")[2]))
    assert second.code == 0, second.err


def test_all_that_is_wrong_with_a_call_is_said_at_once(pprop_here, tmp_path: Path) -> None:
    edges, nodes = write(tmp_path, PAIRS["calls"])
    answer = pprop_here(
        "train", edges, "--nodes", nodes, "--label-column", "statu", "--features", "age,hight", "--column", "x"
    )
    assert answer.code == 3  # --column takes NAME=KIND
    answer = pprop_here("train", edges, "--nodes", nodes, "--label-column", "statu", "--features", "age,hight")
    assert answer.err == (
        "pprop train: edges.csv has no columns 'source' and 'target'. Its columns: from, to, minutes.\n"
        "  nodes.csv has no columns 'id', 'statu' and 'hight'. Its columns: name, status, age. Did you mean 'status'?\n"
        "  Name them: --source from --target to --id-column name --label-column status\n"
    )
    answer = pprop_here("train", edges, "--alpha", "1.3", "--dropout", "1", "--nodes", nodes)
    assert answer.err == (
        "pprop train: --alpha must be a number in [0, 1]. Got 1.3.\n"
        "  --dropout must be a number in [0, 1). Got 1.0.\n"
        "  edges.csv has no columns 'source' and 'target'. Its columns: from, to, minutes.\n"
        "  nodes.csv has no column 'id'. Its columns: name, status, age.\n"
        "  Training needs the classes of some nodes: name the column that holds them. The columns of nodes.csv: name, "
        "status, age.\n"
        "  Name them: --source from --target to --id-column name --label-column status\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("train none.csv --alpha 1.3", "--alpha must be a number in [0, 1]. Got 1.3."),
        ("train none.csv --steps -1", "--steps must be an integer from 0 to 10000. Got -1."),
        (
            "train none.csv --criterion ap",
            "--criterion must be one of 'paper', 'loss', 'window' or 'plateau'. Got 'ap'.",
        ),
        ("train none.csv --hidden 0", "--hidden must be an integer of at least 1, or a sequence of them. Got 0."),
        ("train none.csv --test 1.5", "--test must be a number in [0, 1). Got 1.5."),
        (
            "train none.csv --backend cobol",
            "--backend must be one of 'auto', 'numba', 'triton' or 'reference'. Got 'cobol'.",
        ),
        ("train none.csv --device abacus", "--device must be a torch device such as 'cpu' or 'cuda'. Got 'abacus'."),
        (
            "train none.csv --model appnp-cv --alphas 0.1,2",
            "--alphas must be different numbers in [0, 1], separated by commas. Got 2.0.",
        ),
        ("ppr none.csv a --normalization both", "--normalization must be one of 'sym', 'row' or 'col'. Got 'both'."),
        ("tune none.csv --out s --trials 0", "--trials must be an integer of at least 1. Got 0."),
        ("explain none a --top 0", "--top must be an integer of at least 1. Got 0."),
    ],
)
def test_values_are_checked_before_any_table_is_read(pprop_here, arguments: str, sentence: str) -> None:
    answer = pprop_here(*arguments.split())
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.splitlines()[0] == f"pprop {arguments.split()[0]}: {sentence}"


@pytest.mark.parametrize(
    ("module", "arguments", "sentence"),
    [
        ("optuna", "tune none.csv --out s", "Tuning needs 'optuna'. Install it with: pip install optuna"),
        (
            "matplotlib",
            "explain none a --plot a.png",
            "Drawing figures needs 'matplotlib'. Install it with: pip install matplotlib",
        ),
        (
            "fastapi",
            "serve none",
            "The server needs 'fastapi'. Install it with: pip install fastapi uvicorn prometheus-client",
        ),
    ],
)
def test_packages_are_looked_for_before_any_table_is_read(
    pprop_here, monkeypatch: pytest.MonkeyPatch, module: str, arguments: str, sentence: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    answer = pprop_here(*arguments.split())
    assert answer.code == 3
    assert answer.err.splitlines()[0] == f"pprop {arguments.split()[0]}: {sentence}"
