"""Check certificates of float64 solves against exact arithmetic.

    python experiments/certified_solves.py --solves 5000

Random graphs of 2 to 12 nodes, directed or not, weighted or not, with isolated nodes, with and without added self-loops,
by all normalisations and at alpha from 0.01 to 0.9, are solved by every solver to a tolerance. Tolerances are 1 to 10
times the least that is taken, one in eight anything up to 0.5.

The truth for "row" and "col" is a rational number, by elimination. That for "sym", which has square roots, is eliminated
with 60 digits.

Reports how many results are further from the truth than `relative_error` or than `tol`, in the norm of the certificate; the
worst quotient of error and `relative_error`; and how many solves ended in a `ToleranceError`, as some may.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from scipy import sparse

from pprop import Chebyshev, ConjugateGradient, Contraction, Graph, ToleranceError, solve
from pprop.propagation.certificate import least_error

DIGITS = 60
SOLVERS = (Chebyshev, ConjugateGradient, Contraction)
WIDTH = 2  # columns; kernels are compiled for one width


@dataclass(frozen=True)
class Solve:
    """One solve: what was solved, the tolerance, the certified error (None: not reached) and the true one, both relative."""

    kind: str
    tol: float
    certified: float | None
    true: float


def root(value: Fraction) -> Fraction:
    scale = 10**DIGITS
    return Fraction(isqrt(value.numerator * scale**2 * value.denominator), scale * value.denominator)


def eliminate(matrix: list[list[Any]], right: list[list[Any]]) -> list[list[Any]]:
    """Solve in the numbers that are given; the matrix is diagonally dominant by rows or columns, or near to it."""
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [0 if x == 0 else x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k]
                rows[i] = [x if y == 0 else x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


class Truth:
    """Pi and the degrees of a graph with rational weights, exactly or to 60 digits."""

    def __init__(self, A: np.ndarray, alpha: float, normalization: str, self_loops: bool) -> None:
        every = range(len(A))
        B = [[Fraction(x) for x in row] for row in A.tolist()]
        for i in every:
            if (self_loops and B[i][i] == 0) or not any(B[i]):
                B[i][i] = Fraction(1)
        out = [sum(row, Fraction(0)) for row in B]
        into = [sum(column, Fraction(0)) for column in zip(*B, strict=True)]
        stay = 1 - Fraction(alpha)

        def entry(i: int, j: int) -> Fraction:
            """Return that of I - (1 - alpha) T."""
            if not B[i][j]:
                return Fraction(i == j)
            divisor = {"row": out[i], "col": into[j]}.get(normalization) or root(out[i] * into[j])
            return (i == j) - stay * B[i][j] / divisor

        matrix: list[list[Any]] = [[entry(i, j) for j in every] for i in every]
        unit: list[list[Any]] = [[Fraction(alpha) * (i == j) for j in every] for i in every]
        self.degrees = out
        if normalization != "sym":
            self.ppr = eliminate(matrix, unit)
            return
        with localcontext() as context:
            context.prec = DIGITS
            found = eliminate(*([[decimal(x) for x in row] for row in one] for one in (matrix, unit)))
        self.ppr = [[Fraction(x) for x in row] for row in found]

    def relative_error(self, H: np.ndarray, value: np.ndarray, words: str) -> float:
        """Return the error of the worst column in the norm that a certificate names."""
        return max(self._column(h, z, words) for h, z in zip(H.T.tolist(), value.T.tolist(), strict=True))

    def _column(self, h: list[float], z: list[float], words: str) -> float:
        own = [Fraction(x) for x in h]
        exact = [sum((p * x for p, x in zip(row, own, strict=True)), Fraction(0)) for row in self.ppr]
        error = [Fraction(x) - y for x, y in zip(z, exact, strict=True)]
        if not any(error):
            return 0.0
        if words in ("max-norm", "1-norm"):
            norm: Any = max if words == "max-norm" else sum
            return float(norm(map(abs, error)) / norm(map(abs, exact)))
        power = 0 if words == "2-norm" else -1 if "inverse" in words else 1
        weights = [d**power for d in self.degrees]
        squares = [sum(w * x * x for w, x in zip(weights, one, strict=True)) for one in (error, exact)]
        return float(root(Fraction(squares[0] / squares[1])))


def make_graph(rng: np.random.Generator, most: int) -> tuple[np.ndarray, Graph]:
    """Return a random adjacency with an isolated node now and then, and the graph of it."""
    n, directed, weighted = int(rng.integers(2, most + 1)), rng.random() < 0.4, rng.random() < 0.5
    A = np.zeros((n, n))
    linked = rng.random((n, n)) < rng.uniform(0.1, 0.9)
    A[linked] = rng.uniform(0.01, 3.0, int(linked.sum())) if weighted else 1.0
    if rng.random() < 0.7:
        np.fill_diagonal(A, 0.0)
    if rng.random() < 0.3:
        alone = int(rng.integers(n))
        A[alone] = A[:, alone] = 0.0
    whole = A if directed else np.triu(A) + np.triu(A, 1).T
    return whole, Graph.from_scipy(sparse.csr_array(whole), directed=directed)


def make_predictions(rng: np.random.Generator, degrees: np.ndarray, normalization: str) -> np.ndarray:
    """Return random columns, some of one node, some near what T leaves as it is, where |r| / alpha is the error itself."""
    n = len(degrees)
    H = rng.standard_normal((n, WIDTH)) * 10.0 ** rng.integers(-3, 4, WIDTH)
    if rng.random() < 0.5:
        H[:, 0] = rng.random() * degrees ** {"sym": 0.5, "row": 0.0, "col": 1.0}[normalization]
    if rng.random() < 0.3:
        H[:, 1] = np.eye(n)[:, int(rng.integers(n))]
    return H


def random_solves(seed: int, count: int, nodes: int = 12) -> Iterator[Solve]:
    """Make `count` solves, six of each graph, which has up to so many nodes."""
    rng = np.random.default_rng(seed)
    while count > 0:
        A, graph = make_graph(rng, nodes)
        alpha = float(rng.uniform(0.01, 0.9) if rng.random() < 0.7 else rng.uniform(0.01, 0.1))
        alpha = round(alpha, int(rng.integers(2, 9)))
        normalization, self_loops = str(rng.choice(["sym", "row", "col"])), bool(rng.random() < 0.7)
        truth = Truth(A, alpha, normalization, self_loops)
        least, degrees = least_error(alpha, "float64"), np.array([float(one) for one in truth.degrees])
        for _ in range(min(6, count)):
            count -= 1
            solver = Contraction if graph.directed else SOLVERS[int(rng.integers(3))]
            far = rng.random() < 0.125
            tol = min(0.5, least * 10.0 ** rng.uniform(0.0, 14.0 if far else 1.0) * (1.0 + 1e-12))
            backend, H = "reference" if rng.random() < 0.125 else "numba", make_predictions(rng, degrees, normalization)
            kind = f"{solver.__name__} {normalization} {'directed' if graph.directed else 'undirected'} {backend}"
            try:
                solution = solve(graph, H, alpha, solver(tol), normalization, self_loops, backend=backend)
            except ToleranceError:
                yield Solve(kind, tol, None, 0.0)
                continue
            certificate = solution.certificate
            true = truth.relative_error(H, np.asarray(solution.value), certificate.norm)
            yield Solve(kind, tol, certificate.relative_error, true)


def report(solves: list[Solve]) -> str:
    """Return the counts as lines of text."""
    certified = [(one, one.certified) for one in solves if one.certified is not None]
    ratios = [one.true / bound for one, bound in certified if bound > 0.0]
    kinds = Counter(one.kind for one in solves)
    lines = [
        f"{len(solves)} solves: {len(certified)} certified, {len(solves) - len(certified)} ended in a ToleranceError",
        f"true error above relative_error: {sum(one.true > bound for one, bound in certified)}",
        f"true error above tol: {sum(one.true > one.tol for one, _ in certified)}",
        f"relative_error above tol: {sum(bound > one.tol for one, bound in certified)}",
        f"true error / relative_error: worst {max(ratios):.6f}, median {float(np.median(ratios)):.3f}",
        *(f"  {count:5d} {kind}" for kind, count in sorted(kinds.items())),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solves", type=int, default=5000)
    print(report(list(random_solves(0, parser.parse_args().solves))))
