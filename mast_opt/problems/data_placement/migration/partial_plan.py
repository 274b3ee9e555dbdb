"""State of a data placement after some of the steps to a plan, as a plan of its own."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from mast_opt.problems.data_placement.migration.workload_moves import Cell, todays_cells
from mast_opt.problems.data_placement.plan import Plan, filled
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.kind.migration_plan import Move


def partial_plan(problem: DataPlacement, plan: Plan, moves: Sequence[Move], count: int) -> Plan:
    """The plan that the first ``count`` steps to another lead to. A copy that a later step ends has not arrived.

    Sources of copies and of remote reads are those of the other plan, where it has the same ones.
    """
    p = problem
    datasets, regions = _positions(p.datasets.labels), _positions(p.regions.labels)
    workloads, types = _positions(p.workloads.labels), {None: len(p.gpu_types), **_positions(p.gpu_types)}
    place, cells = p.datasets.stored.copy(), todays_cells(p, plan)
    ends = {(move.what, move.target): at for at, move in enumerate(moves) if move.action in ("copy", "upload")}
    for at, move in enumerate(moves[:count]):
        if move.what in datasets and move.action in ("copy", "upload", "delete"):
            target = move.source if move.action == "delete" else move.target
            if move.action == "delete" or ends[move.what, move.target] == at:
                place[datasets[move.what], regions[target]] = move.action != "delete"
            continue
        runs, share = cells[workloads[move.what]], round((move.share or 0.0) * SHARE)
        if move.source is not None:
            kind = move.gpu_type if move.target is None else move.from_type
            _add(runs, (regions[move.source], types[kind]), -share)
        if move.target is not None:
            _add(runs, (regions[move.target], types[move.gpu_type]), share)
    rows = sorted((w, *cell, share) for w, runs in cells.items() for cell, share in runs.items() if share)
    found = filled(p, place, list(np.array(rows, np.int64).reshape(-1, 4).T.copy()))
    return found.with_rows(
        copy=_resourced(found.rows("copy"), plan.rows("copy"), (0, 1), p.datasets.stored),
        remote=_resourced(found.rows("remote"), plan.rows("remote"), (1, 2), place),
    )


def _positions(labels: Sequence[str]) -> dict[str | None, int]:
    """Label → its position."""
    return {label: at for at, label in enumerate(labels)}


def _add(runs: dict[Cell, int], cell: Cell, share: int) -> None:
    """Add to the share of a workload that runs in a cell."""
    runs[cell] = runs.get(cell, 0) + share


def _resourced(rows: Sequence[Ints], known: Sequence[Ints], at: tuple[int, int], held: Bools) -> list[Ints]:
    """Rows of copies or reads with the sources that another plan has for the same share, if those hold the dataset.

    Args:
        at: the columns of the dataset and of its source.
        held: [I, R] which regions can be a source.
    """
    dataset, source = at
    others: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    for row in zip(*(column.tolist() for column in known), strict=True):
        others[row[:source] + row[source + 1 : -1]].append(row)
    chosen: list[tuple[int, ...]] = []
    for row in zip(*(column.tolist() for column in rows), strict=True):
        same = others[row[:source] + row[source + 1 : -1]]
        fits = sum(one[-1] for one in same) == row[-1] and all(held[one[dataset], one[source]] for one in same)
        chosen += same if fits else [row]
    return list(np.array(sorted(chosen), np.int64).reshape(-1, len(rows)).T.copy())
