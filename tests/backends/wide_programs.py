"""Tiny random programs whose coefficients lie far apart, and their optimum in rational numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mast_opt.mip import Mip
from tests.backends.programs import INF, program

SLACK = Fraction(1, 10**5)
"""Part of a row's least coefficient by which its limit may move without changing a stable optimum."""


@dataclass(frozen=True)
class Wide:
    """``rows`` hold as activity <= limit; a column is a whole number where ``integral``."""

    cost: tuple[Fraction, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    integral: tuple[bool, ...]
    rows: tuple[tuple[Fraction, ...], ...]
    limits: tuple[Fraction, ...]

    def mip(self) -> Mip:
        """The program as a solver gets it."""
        rows = [([float(a) for a in row], -INF, float(b)) for row, b in zip(self.rows, self.limits)]
        return program([float(c) for c in self.cost], rows, lower=self.lower, upper=self.upper, integral=self.integral)

    def minimum(self, slack: Fraction = Fraction(0)) -> Fraction | None:
        """The least objective, with every limit moved by ``slack`` of its row's least coefficient, or of 1 if that is
        less; None if there is no point."""
        least = [max(min((abs(a) for a in row if a), default=1), 1) for row in self.rows]
        limits = [b + slack * step for step, b in zip(least, self.limits)]
        whole = [j for j, integral in enumerate(self.integral) if integral]
        free = [j for j, integral in enumerate(self.integral) if not integral]
        best: Fraction | None = None
        for values in itertools.product(*(range(self.lower[j], self.upper[j] + 1) for j in whole)):
            rest = [b - sum(row[j] * v for j, v in zip(whole, values)) for row, b in zip(self.rows, limits)]
            fixed = sum((self.cost[j] * v for j, v in zip(whole, values)), Fraction(0))
            for point in self._vertices(free, rest):
                objective = fixed + sum(self.cost[j] * v for j, v in zip(free, point))
                best = objective if best is None else min(best, objective)
        return best

    def spread(self) -> float:
        """The largest coefficient of a row over its least, of the row where this is most."""
        rows = [[abs(a) for a in row if a] for row in self.rows]
        return max((float(max(row) / min(row)) for row in rows if row), default=1.0)

    def is_stable(self) -> bool:
        """Whether tolerances of solvers cannot change the optimum by a thousandth."""
        loose, exact, tight = (self.minimum(slack) for slack in (SLACK, Fraction(0), -SLACK))
        if loose is None:
            return True
        return tight is not None and exact is not None and tight - loose <= Fraction(1, 10**4) * max(1, abs(exact))

    def _vertices(self, free: Sequence[int], rest: Sequence[Fraction]) -> Iterator[tuple[Fraction, ...]]:
        """The feasible corners in the plane of up to two continuous columns."""
        half_planes = [(tuple(row[j] for j in free), b) for row, b in zip(self.rows, rest)]
        for at, j in enumerate(free):
            unit = tuple(Fraction(int(k == at)) for k in range(len(free)))
            half_planes.append((unit, Fraction(self.upper[j])))
            half_planes.append((tuple(-u for u in unit), Fraction(-self.lower[j])))
        for corner in self._corners(len(free), half_planes):
            if all(sum(a * v for a, v in zip(normal, corner)) <= b for normal, b in half_planes):
                yield corner

    def _corners(
        self, dimensions: int, half_planes: Sequence[tuple[tuple[Fraction, ...], Fraction]]
    ) -> Iterator[tuple[Fraction, ...]]:
        if dimensions == 0:
            yield ()
        elif dimensions == 1:
            yield from ((b / normal[0],) for normal, b in half_planes if normal[0])
        else:
            for ((a, b), e), ((c, d), f) in itertools.combinations(half_planes, 2):
                determinant = a * d - b * c
                if determinant:
                    yield (e * d - b * f) / determinant, (a * f - e * c) / determinant


def drawn(rng: np.random.Generator) -> Wide:
    """A program of three or four columns and one to three rows, with coefficients from 1e-3 to 1e12."""
    columns = int(rng.integers(3, 5))
    integral = [True, False, bool(rng.random() < 0.5), True][:columns]
    lower = [int(rng.integers(-2, 1)) for _ in range(columns)]
    upper = [low + int(rng.integers(1, 4)) for low in lower]
    rows, limits = [], []
    for _ in range(int(rng.integers(1, 4))):
        least = int(rng.integers(-3, 2))
        row = [
            Fraction(int(rng.integers(1, 10)) * int(rng.choice([-1, 1])))
            * Fraction(10) ** int(rng.integers(least, least + 12))
            if rng.random() < 0.8
            else Fraction(0)
            for _ in range(columns)
        ]
        point = [int(rng.integers(low, high + 1)) for low, high in zip(lower, upper)]
        rows.append(tuple(row))
        limits.append(sum((a * v for a, v in zip(row, point)), Fraction(0)))
    cost = tuple(Fraction(int(rng.integers(-9, 10))) for _ in range(columns))
    return Wide(cost, tuple(lower), tuple(upper), tuple(integral), tuple(rows), tuple(limits))


def stable(seed: int, count: int) -> Iterator[Wide]:
    """So many drawn programs whose optimum is stable."""
    rng = np.random.default_rng(seed)
    while count:
        found = drawn(rng)
        if found.is_stable():
            count -= 1
            yield found
