"""Report tables of a data-placement plan one by one: workloads and datasets that move, and which limits bind."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.core.wording import counted, noticed
from mast_opt.problems.data_placement.migration.workload_moves import Cell, Piece, parts
from mast_opt.problems.data_placement.plan import Plan, filled_mb, shown_demand, used_mcores
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement
from mast_opt.problems.data_placement.tables.problem_tables import in_full
from mast_opt.problems.data_placement.verification.verifier import use_of_limits
from mast_opt.problems.kind.presentation import Form, Head, Section, listed
from mast_opt.problems.kind.problem_data import Floats

WORK, DATA, BINDING = "Workloads that move or change type", "Datasets that move", "What binds"
WORK_WITHOUT_GPUS = "Workloads that move"
LEFT_OUT = "left out"
GPU_HEADS = (("GPUs, to another region", True), ("GPUs, to another type only", False))
FULL = 0.995
"""Part of a limit from which on it is listed as binding."""


def details(problem: DataPlacement, plan: Plan) -> tuple[Section, ...]:
    """Workloads that move, datasets that move, what binds."""
    plan = in_full(problem, plan)
    return workloads_that_move(problem, plan), datasets_that_move(problem, plan), what_binds(problem, plan)


def work_title(problem: DataPlacement) -> str:
    """Title of the section on workloads that move."""
    return WORK if problem.gpu_types else WORK_WITHOUT_GPUS


def workloads_that_move(problem: DataPlacement, plan: Plan) -> Section:
    """A row for each workload that leaves a region or GPU type where it runs today, that of most GPUs first.

    GPUs are those that it uses afterwards, or used before where it is left out, as in the steps to the plan.
    """
    p, k_none = problem, len(problem.gpu_types)
    changes: dict[int, list[Piece]] = {}
    for part in parts(p, plan, lost=True):
        pieces = [piece for piece in part.pieces if piece.source is not None and piece.source != piece.target]
        changes.setdefault(part.workload, []).extend(pieces)
    changes = {w: pieces for w, pieces in changes.items() if pieces}

    def gpus(w: int, *, moves: bool) -> float:
        """GPUs of the pieces of a workload that change region, or only their GPU type."""
        found = [piece for piece in changes[w] if _leaves_region(piece) == moves]
        cells = [(piece.target or piece.source, piece.share) for piece in found]
        return sum(int(p.option_mgpu[w, cell[1]]) * share / SHARE / MILLI for cell, share in cells if cell)

    def places(cells: Iterable[Cell | None]) -> str:
        """Regions, with GPU types where the instance has any."""
        names = [
            p.regions.labels[cell[0]] + (f" {p.gpu_types[cell[1]]}" if cell[1] < k_none else "")
            for cell in sorted({cell for cell in cells if cell is not None})
        ]
        return ", ".join(names) or LEFT_OUT

    read = np.bincount(p.reads.workload, minlength=len(p.workloads))
    left_out = sum(all(piece.target is None for piece in pieces) for pieces in changes.values())
    largest = sorted(changes, key=lambda w: -gpus(w, moves=True) - gpus(w, moves=False))
    return listed(
        work_title(p),
        largest,
        ("workload", Form.TEXT, lambda w: p.workloads.labels[w]),
        ("tier", Form.COUNT, lambda w: p.tiers[p.workloads.tier[w]]),
        ("from", Form.TEXT, lambda w: places(piece.source for piece in changes[w])),
        ("to", Form.TEXT, lambda w: places(piece.target for piece in changes[w])),
        *((head, Form.GPUS, partial(gpus, moves=moves)) for head, moves in GPU_HEADS if p.gpu_types),
        ("datasets read", Form.COUNT, lambda w: int(read[w])),
        note=f"{counted(len(largest) - left_out, 'workload')} of {len(p.workloads):,}"
        + (f", and {left_out:,} that are {LEFT_OUT}" if left_out else "")
        + (", with the GPUs that they use afterwards, as in 'mast-opt steps'" if p.gpu_types else "")
        + ". Only the part of a workload that changes counts.",
    )


def _leaves_region(piece: Piece) -> bool:
    """Whether a piece of a workload that runs today leaves its region, or is left out."""
    return piece.source is not None and (piece.target is None or piece.source[0] != piece.target[0])


def datasets_that_move(problem: DataPlacement, plan: Plan) -> Section:
    """A row for each dataset with a new or a deleted replica, the largest copies first."""
    p = problem
    new, gone = plan.place & ~p.datasets.stored, p.datasets.stored & ~plan.place
    copied = p.datasets.size_mb * new.sum(axis=1)
    readers = np.bincount(p.reads.dataset, minlength=len(p.datasets))
    largest = sorted(np.flatnonzero((new | gone).any(axis=1)).tolist(), key=lambda one: -int(copied[one]))
    return listed(
        DATA,
        largest,
        ("dataset", Form.TEXT, lambda i: p.datasets.labels[i]),
        ("today in", Form.TEXT, lambda i: _named(p, p.datasets.stored[i]) or "nowhere"),
        ("copied to", Form.TEXT, lambda i: _named(p, new[i])),
        ("deleted in", Form.TEXT, lambda i: _named(p, gone[i])),
        ("TB", Form.AMOUNT, lambda i: int(p.datasets.size_mb[i]) / MB_PER_TB),
        ("TB copied", Form.AMOUNT, lambda i: int(copied[i]) / MB_PER_TB),
        ("readers", Form.COUNT, lambda i: int(readers[i])),
        note=f"{counted(len(largest), 'dataset')} of {len(p.datasets):,}.",
    )


def what_binds(problem: DataPlacement, plan: Plan) -> Section:
    """A row for each limit that the plan fills, the fullest first."""
    p = problem
    demand = shown_demand(p, plan)[:, :, -1]
    found: list[tuple[str, str, float, float, str]] = [
        (
            "GPUs",
            f"{p.regions.labels[r]} {p.gpu_types[k]}",
            demand[r, k] / MILLI,
            p.regions.supply_mgpu[r, k] / MILLI,
            "GPUs",
        )
        for r, k in np.argwhere(p.regions.supply_mgpu > 0).tolist()
    ]
    cores = used_mcores(p, plan)
    arriving = p.datasets.size_mb @ (plan.place & ~p.datasets.stored)
    stored = filled_mb(p, plan)
    for r, name in enumerate(p.regions.labels):
        found.append(("storage", name, stored[r] / MB_PER_TB, p.usable_storage_mb[r] / MB_PER_TB, "TB"))
        found.append(("CPU", name, cores[r] / MILLI, p.regions.cpu_mcores[r] / MILLI, "cores"))
        if p.regions.ingress_limited[r]:
            found.append(("copies received", name, arriving[r] / MB_PER_TB, p.ingress_mb[r] / MB_PER_TB, "TB"))
    for limit, used in use_of_limits(p, plan).items():
        found.append(("limit on the whole plan", limit, float(used), float(p.limits[limit]), ""))
    rows = [
        (what, where, noticed(float(used), unit), noticed(float(most), unit), unit, float(used / most) if most else 1.0)
        for what, where, used, most, unit in found
        if used and used >= FULL * most
    ]
    heads = (
        *Form.TEXT.heads("limit", "where"),
        *Form.AMOUNT.heads("used", "available"),
        Head("unit"),
        Head("ratio", Form.RATIO),
    )
    ordered = tuple(sorted(rows, key=lambda row: -row[5]))
    note = f"Limits that are full to {FULL:.1%} or more. GPUs are a soft limit: above 1 is overload."
    return Section(BINDING, heads, ordered, note)


def _named(p: DataPlacement, held: Bools | Floats) -> str:
    """The regions of a row of a grid."""
    return ", ".join(p.regions.labels[r] for r in np.flatnonzero(held).tolist())
