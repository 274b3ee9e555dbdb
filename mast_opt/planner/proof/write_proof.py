"""Proof of a plan's bound on disk: the program as ``proof.mps`` and its proof in the VIPR format as ``proof.vipr``."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import InputError
from mast_opt.planner.io.atomic import new_folder
from mast_opt.planner.proof.cuts import strengthened, tightened
from mast_opt.planner.proof.exact_program import ExactProgram
from mast_opt.planner.proof.priced_blocks import Prices, priced
from mast_opt.planner.proof.split_tree import grow, proven, step_of
from mast_opt.planner.proof.steps import Side, Step, listed, written
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.export import write_mps
from mast_opt.problems.mip.export.mps import RULE
from mast_opt.problems.mip.export.names import readable_names

PROGRAM, PROOF = "proof.mps", "proof.vipr"
SLACK = Fraction(1, 2 * 10**9)
"""Part of a bound that the proof may lack, which leaves room for the rounding of prices."""


@dataclass(frozen=True)
class Proven:
    """The statement of a proof about its program, which minimises its objective."""

    bound: Fraction | None
    """The bound; None where no price of the rows proves any."""
    objective: Fraction | None
    """The plan's objective; None where no exact solution near the plan was found, and the proof states none."""
    leaves: int
    """Linear programs that the proof combines."""
    seconds: float


def write_proof(
    mip: Mip,
    x: FloatArray,
    target: float | None,
    folder: Path,
    *,
    time_limit_s: float,
    most_leaves: int,
    rows_of: Callable[[ExactProgram], tuple[ExactProgram, Sequence[Step]]] | None = None,
    prices: Prices | None = None,
) -> Proven:
    """Prove as much of a bound as the limits allow, and write the program and the proof to a new folder.

    Args:
        mip: the program.
        x: the plan in its columns.
        target: the bound that is wanted; None: the objective at x.
        folder: where to write.
        time_limit_s: for the tree of splits; the relaxation is solved to its end.
        most_leaves: of the tree.
        rows_of: the program with tighter limits, and rows to begin with; those on which a certificate rests.
        prices: those of a certificate. The whole program is solved only where they do not prove the bound.

    Raises:
        InputError: the folder exists or cannot be written.
    """
    began = time.perf_counter()
    program = ExactProgram.of(mip)
    solution = program.solution(x)
    objective = None if solution is None else program.objective(solution)
    wanted = Fraction(mip.objective(x) if target is None else target)
    if objective is not None:
        wanted = min(wanted, objective)
    wanted -= SLACK * max(Fraction(1), abs(wanted))
    stronger = tightened(program)
    stronger, rows = (stronger, ()) if rows_of is None else rows_of(stronger)
    found = (
        None if prices is None else priced(stronger, prices, wanted, time_limit_s=time_limit_s, most_leaves=most_leaves)
    )
    last, leaves = found or (None, 0)
    if last is None or last.rhs < wanted:
        stronger, root = strengthened(stronger, rows, wanted, time_limit_s=time_limit_s)
        left_s = time_limit_s - (time.perf_counter() - began)
        grow(stronger, root, wanted, time_limit_s=left_s, most_leaves=most_leaves)
        bound = proven(root)
        if bound is not None and (last is None or bound > last.rhs):
            last, leaves = step_of(stronger, root, bound), sum(1 for _ in root.leaves())
    bound = None if last is None else last.rhs
    with new_folder(folder, check_new) as out:
        write_mps(mip, out / PROGRAM)
        with (out / PROOF).open("w", encoding="utf-8") as file:
            for line in _proof(program, last, bound, objective, solution):
                file.write(line + "\n")
    return Proven(bound, objective, leaves, time.perf_counter() - began)


def check_new(folder: Path) -> None:
    """Raises InputError where the folder for a proof exists."""
    if folder.exists():
        raise InputError(f"{folder} exists; choose another name")


class _Positions:
    """Positions of limits among the constraints of a proof: first those of columns, then those of rows."""

    def __init__(self, program: ExactProgram) -> None:
        self.of: dict[Side, int] = {}
        self.lines: list[str] = []
        for column, limits in enumerate(program.column_limits):
            for side, limit in enumerate(limits):
                if limit is not None:
                    self._add(("column", column, side), f"B{len(self.lines)} {'GL'[side]} {limit} 1 {column} 1")
        self.bounds = len(self.lines)
        names = readable_names(program.mip.rows, RULE)[0].to_list()
        for row, (below, above) in enumerate(program.row_limits):
            entries = listed(program.rows[row])
            if below is not None and below == above:
                self.of["row", row, 1] = len(self.lines)
                self._add(("row", row, 0), f"{names[row]} E {below} {entries}")
                continue
            for side, limit in enumerate((below, above)):
                if limit is not None:
                    self._add(("row", row, side), f"{names[row]} {'GL'[side]} {limit} {entries}")

    def _add(self, side: Side, line: str) -> None:
        """Note the next constraint."""
        self.of[side] = len(self.lines)
        self.lines.append(line)


def _proof(
    program: ExactProgram,
    last: Step | None,
    bound: Fraction | None,
    objective: Fraction | None,
    solution: list[Fraction] | None,
) -> Iterator[str]:
    """Lines of the proof."""
    names = readable_names(program.mip.columns, RULE)[0].to_list()
    names += ["constant"] * (len(program.cost) - len(names))
    integral = program.mip.integral.nonzero()[0].tolist()
    positions = _Positions(program)
    yield "VER 1.0"
    yield f"VAR {len(names)}"
    yield from names
    yield f"INT {len(integral)}"
    yield " ".join(map(str, integral))
    yield "OBJ min"
    yield listed(enumerate(program.cost))
    yield f"CON {len(positions.lines)} {positions.bounds}"
    yield from positions.lines
    yield f"RTP range {'-inf' if bound is None else bound} {'inf' if objective is None else objective}"
    yield f"SOL {int(solution is not None)}"
    if solution is not None:
        yield f"plan {listed(enumerate(solution))}"
    lines = [] if last is None else written(last, positions.of, len(positions.lines))
    yield f"DER {len(lines)}"
    yield from lines
