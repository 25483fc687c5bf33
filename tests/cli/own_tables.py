"""Tables as people have them, made with numpy: people who are like their friends, and accounts of which few are fraud."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from tests.cli.conftest import Answer

from pprop.cli.app import run

CLASSES = ("leaves", "stays, for now", "Müßig")
WORDS = (("rose", "soil", "tea"), ("rails", "atlas", "chess"), ("waves", "wheels", "drums"))
NUMBERS = ("id", "label", "age", "income")
QUICK = ("--max-epochs", 12, "--hidden", 8, "--no-baselines")
PEOPLE = ("--label-column", "label")
Row = Sequence[Any]


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Row]) -> Path:
    """Write a table, separated as the name of its file says."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def project(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    """Return some columns of rows."""
    return [[row[name] for name in names] for row in rows]


def make_people(n: int = 600, n_edges: int = 2300, seed: int = 7) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return edges with a weight, 80 % of them inside one of three classes, and people, half of them with a label.

    The age tells a little of the class, and the words of a bio more; income, on a scale 500 times larger, and the rest
    tell nothing.
    """
    random = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    edges: list[Row] = []
    while len(edges) < n_edges:
        a = int(random.integers(n))
        b = int(random.integers(n // 3)) * 3 + a % 3 if random.random() < 0.8 else int(random.integers(n))
        if a != b:
            edges.append((f"p{a}", f"p{b}", round(float(random.random()), 3)))
    people = [
        {
            "id": f"p{k}",
            "label": CLASSES[kind[k]] if random.random() < 0.5 else "",
            "age": round(float(random.normal(40 + 8 * kind[k], 10)), 1),
            "income": round(float(random.lognormal(10, 1)), 2),
            "country": str(random.choice(["DE", "FR", "US"])),
            "premium": str(random.choice(["true", "false"])),
            "signup": f"20{random.integers(10, 25)}-0{random.integers(1, 10)}-1{random.integers(10)}",
            "bio": " ".join(
                str(random.choice(WORDS[kind[k] if random.random() < 0.6 else random.integers(3)])) for _ in range(5)
            ),
            "phone": f"0{random.integers(10**9, 10**10)}",
        }
        for k in range(n)
    ]
    return edges, people


def make_accounts(n: int = 1200, n_edges: int = 4800, seed: int = 8) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return edges with mild homophily, and accounts of which 7.5 % are fraud; the amount tells a little of it."""
    random = np.random.default_rng(seed)
    fraud = random.random(n) < 0.075
    edges: list[Row] = []
    while len(edges) < n_edges:
        a, b = random.integers(n, size=2)
        if a != b and (fraud[a] == fraud[b] or random.random() < 0.3):
            edges.append((f"a{a}", f"a{b}"))
    accounts = [
        {
            "id": f"a{k}",
            "label": "fraud" if fraud[k] else "fine",
            "amount": round(float(random.normal(1.2 * fraud[k], 1)), 4),
            "hour": int(random.integers(24)),
        }
        for k in range(n)
    ]
    return edges, accounts


def write_tables(folder: Path) -> None:
    """Write the tables of both into a folder."""
    edges, people = make_people()
    write_rows(folder / "edges.csv", ("source", "target", "weight"), edges)
    write_rows(folder / "numbers.csv", NUMBERS, project(people, NUMBERS))
    write_rows(folder / "people.csv", list(people[0]), project(people, list(people[0])))
    write_rows(folder / "reversed.csv", NUMBERS[::-1], project(people, NUMBERS[::-1]))
    write_rows(folder / "renamed.csv", ("id", "label", "years", "income"), project(people, NUMBERS))
    few = [{**row, "label": CLASSES[k % 3] if k < 9 else ""} for k, row in enumerate(people)]
    write_rows(folder / "few.csv", NUMBERS, project(few, NUMBERS))
    random = np.random.default_rng(1)
    scores = [[row["id"], round(float(random.normal()), 6), row["age"]] for row in people]
    write_rows(folder / "score.csv", ("id", "score", "age"), scores)
    tags = [[row["id"], str(random.choice(["a|b", "b|c", "a", "c|a|b"])), row["age"]] for row in people]
    write_rows(folder / "tags.csv", ("id", "tags", "age"), tags)
    links, accounts = make_accounts()
    write_rows(folder / "links.csv", ("source", "target"), links)
    write_rows(folder / "accounts.csv", list(accounts[0]), project(accounts, list(accounts[0])))


def command(*arguments: object) -> Answer:
    """The command in this process, where no fixture of a single test can be used."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return Answer(code, out.getvalue(), err.getvalue())


def on(folder: Path, nodes: str | Path, edges: str | Path = "edges.csv") -> tuple[object, ...]:
    """The command that trains on two tables."""
    return ("train", folder / edges, "--nodes", folder / nodes, *PEOPLE)


def sentence(answer: Answer) -> str:
    """The last line of a command that was refused."""
    assert (answer.code, answer.out) == (3, "")
    assert "Traceback" not in answer.err
    return answer.err.splitlines()[-1]
