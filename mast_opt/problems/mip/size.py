"""MIP size estimate: how large a program will be, known before it is built."""

from collections.abc import Mapping
from dataclasses import dataclass

BYTES_A_COLUMN, BYTES_A_ROW, BYTES_AN_ENTRY = 100, 50, 28
"""Bytes of the index sets of a problem, the builder's lists and the finished arrays together. Measured on programs of
all kinds, up to 10 million entries: the peak was 0.4 to 1.02 times what these three say."""
SOLVER_BYTES_AN_ENTRY = 100
"""Bytes that a solver takes in addition before its first iteration. Measured on a job placement of 7.6 million entries:
HiGHS 1.13 took 101 bytes an entry, CP-SAT 9.15 111, PySCIPOpt 6.3 330; in the course of a solve it becomes more."""


@dataclass(frozen=True)
class Size:
    """Numbers of columns, rows and entries; a problem counts them without laying them out."""

    columns: int
    rows: int
    entries: int
    """Coefficients that are not 0."""

    @classmethod
    def of(cls, columns: Mapping[str, int], rows: Mapping[str, tuple[int, int]]) -> "Size":
        """Size of a program, the sum over blocks: name → columns, and name → (rows, entries)."""
        return cls(
            sum(columns.values()),
            sum(count for count, _ in rows.values()),
            sum(entries for _, entries in rows.values()),
        )

    @property
    def build_bytes(self) -> int:
        """Bytes of memory that building the program takes."""
        return BYTES_A_COLUMN * self.columns + BYTES_A_ROW * self.rows + BYTES_AN_ENTRY * self.entries

    @property
    def solve_bytes(self) -> int:
        """Bytes of memory with which a solver could begin on the program."""
        return self.build_bytes + SOLVER_BYTES_AN_ENTRY * self.entries
