"""Workload moves of a data-placement migration: which parts change place between today and a plan.

Today's runs and the plan's are compared cell by cell (region and GPU type). What is in both stays; the rest moves,
starts or ends. Work that today's table does not list, or lists in part, starts: nothing is known of where it may run
now.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.data_placement.plan import Plan, assumed_types
from mast_opt.problems.data_placement.problem import DataPlacement

Cell = tuple[int, int]
"""(region, type); type K for none."""


@dataclass(frozen=True)
class Piece:
    """A share of a workload that goes from one cell to another."""

    source: Cell | None
    """None: it does not run today, as far as is known."""
    target: Cell | None
    """None: the plan does not serve it."""
    share: int


@dataclass(frozen=True)
class Part:
    """Pieces of a workload that change place at the same moment: one, or all of a workload that may not be split."""

    workload: int
    pieces: tuple[Piece, ...]

    @property
    def runs_today(self) -> bool:
        """Whether any piece of a workload runs today, as far as is known."""
        return any(piece.source is not None for piece in self.pieces)

    @property
    def runs_then(self) -> bool:
        """Whether the plan serves any piece of a workload."""
        return any(piece.target is not None for piece in self.pieces)

    @property
    def stays(self) -> bool:
        """Whether every piece of a workload runs in the plan where it runs today."""
        return all(piece.source == piece.target for piece in self.pieces)


def parts(problem: DataPlacement, plan: Plan, lost: bool = False) -> tuple[Part, ...]:
    """Every part of every workload that runs today or in the plan, those that stay included; by workload.

    Args:
        problem: the instance, which gives the present state.
        plan: a plan of it.
        lost: whether work counts as running in regions that are lost.
    """
    now = todays_cells(problem, plan, lost)
    then: dict[int, dict[Cell, int]] = defaultdict(dict)
    for w, r, k, share in zip(*(column.tolist() for column in plan.rows("run")), strict=True):
        then[w][r, k] = then[w].get((r, k), 0) + share
    found = []
    for w in sorted({*now, *then}):
        stay, change = matched(now.get(w, {}), then.get(w, {}))
        found += [Part(w, (piece,)) for piece in stay]
        if problem.workloads.splittable[w]:
            found += [Part(w, (piece,)) for piece in change]
        elif change:
            found.append(Part(w, tuple(change)))
    return tuple(found)


def todays_cells(
    problem: DataPlacement, plan: Plan, lost: bool = False, of: Collection[int] | None = None
) -> dict[int, dict[Cell, int]]:
    """Workload → cell → share that runs there today; see ``assumed_types`` for runs that state no type. Regions that
    are ``gone`` run nothing, unless ``lost``. ``of``: workloads that are asked about; all unless given."""
    p = problem
    cells: dict[int, dict[Cell, int]] = defaultdict(dict)
    runs = p.current_runs
    asked = slice(None) if of is None else np.isin(runs.workload, list(of))
    rows = (runs.workload[asked], runs.region[asked], assumed_types(p, plan)[asked], runs.share[asked])
    for w, r, k, share in zip(*(column.tolist() for column in rows), strict=True):
        if share and (lost or not p.gone[r]):
            cells[w][r, k] = cells[w].get((r, k), 0) + share
    return cells


def matched(now: dict[Cell, int], then: dict[Cell, int]) -> tuple[list[Piece], list[Piece]]:
    """Places of a workload that stay, and pieces that change: within a region first, then in order."""
    stay = [Piece(cell, cell, min(share, then[cell])) for cell, share in sorted(now.items()) if cell in then]
    kept = {piece.source: piece.share for piece in stay}
    leaves = {cell: share - kept.get(cell, 0) for cell, share in sorted(now.items())}
    enters = {cell: share - kept.get(cell, 0) for cell, share in sorted(then.items())}
    change = []
    for within in (True, False):
        for source in leaves:
            for target in enters:
                share = min(leaves[source], enters[target])
                if share and (source[0] == target[0]) >= within:
                    change.append(Piece(source, target, share))
                    leaves[source] -= share
                    enters[target] -= share
    change += [Piece(None, target, share) for target, share in enters.items() if share]
    change += [Piece(source, None, share) for source, share in leaves.items() if share]
    return stay, change
