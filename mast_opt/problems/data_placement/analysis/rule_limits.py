"""Rule limits of data placement for conflict analysis: pins, bans, residency, GPU types, remote reads, all run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.wording import listed, named
from mast_opt.problems.data_placement.analysis import instance_edits as edits
from mast_opt.problems.data_placement.analysis.elastic_view import View, by_place, names_at
from mast_opt.problems.data_placement.problem import DataPlacement, Ints
from mast_opt.problems.data_placement.wording import cores, quantity, tb
from mast_opt.problems.kind.analysis_hooks import ElasticLimits

RULE, REMOTE, NEW_TYPE, WORK = 1.0, 5.0, 5.0, 10.0
"""Costs in a repair of giving up a rule, of allowing remote reads, of a GPU type where there is none, and of leaving
out a workload."""


def rules(view: View) -> tuple[ElasticLimits, ...]:
    """Elastic limits that are kept or given up as a whole."""
    return (
        pin(view),
        ban(view),
        residency(view),
        work_pin(view),
        work_ban(view),
        gpu_type(view),
        remote_reads(view),
        served(view),
    )


def pin(view: View) -> ElasticLimits:
    """Elastic limits: a replica of the dataset has to be in the region; one for each pin."""
    cells = np.nonzero(view.p.datasets.pinned)
    sizes = view.p.datasets.size_mb[cells[0]]
    columns = (np.arange(len(sizes)), view.place[cells])
    return _cell_rule(view, "pin", "lower", "datasets.pinned", columns, lambda rows: f" ({tb(int(sizes[rows].sum()))})")


def ban(view: View) -> ElasticLimits:
    """Elastic limits: no replica of the dataset may be in the region; one for each ban."""
    cells = np.nonzero(view.p.datasets.forbidden)
    return _cell_rule(view, "ban", "upper", "datasets.forbidden", (np.arange(len(cells[0])), view.place[cells]))


def residency(view: View) -> ElasticLimits:
    """One limit for each dataset and region outside its residency: neither a replica nor a reader there."""
    p, (workload, region, _, ids) = view.p, view.run
    cells = np.nonzero(p.outside)
    member = np.full(p.outside.shape, -1)
    member[cells] = np.arange(len(cells[0]))
    members, columns = [np.arange(len(cells[0]))], [view.place[cells]]
    order = np.argsort(workload, kind="stable")
    start = np.searchsorted(workload[order], np.arange(len(p.workloads) + 1))
    restricted = p.outside.sum(axis=1) > 0
    resident = restricted[p.reads.dataset]
    for w, i in zip(p.reads.workload[resident].tolist(), p.reads.dataset[resident].tolist()):
        mine = order[start[w] : start[w + 1]]
        at = member[i, region[mine]]
        members.append(at[at >= 0])
        columns.append(ids[mine][at >= 0])

    def describe(chosen: Sequence[int]) -> str:
        words = []
        for i in np.unique(cells[0][list(chosen)]).tolist():
            homes = listed(names_at(p.regions.labels, np.flatnonzero(p.datasets.residency[i])))
            words.append(f"dataset {p.datasets.labels[i]} may be stored and read only in {homes} (residency)")
        return ", ".join(words)

    return _rule(
        "residency",
        "upper",
        RULE,
        cells,
        describe,
        lambda m: f"add {p.regions.labels[cells[1][m]]} to the residency of dataset {p.datasets.labels[cells[0][m]]}",
        (np.concatenate(members), np.concatenate(columns)),
        _also_resident(cells),
    )


def _also_resident(cells: tuple[Ints, ...]) -> edits.Edit:
    """Edit of an instance that lets datasets be stored in further regions (residency)."""

    def edit(problem: DataPlacement, amounts: edits.Amounts) -> DataPlacement:
        grid = problem.datasets.residency.copy()
        members = list(amounts)
        grid[cells[0][members], cells[1][members]] = True
        return replace(problem, datasets=replace(problem.datasets, residency=grid))

    return edit


def work_pin(view: View) -> ElasticLimits:
    """Elastic limits: the workload may run in no other region; one for each pin."""
    p, (workload, region, _, ids) = view.p, view.run
    cells = np.nonzero(p.workloads.pinned)
    pairs = [np.flatnonzero((workload == w) & (region != r)) for w, r in zip(*(at.tolist() for at in cells))]
    return _cell_rule(view, "work_pin", "upper", "workloads.pinned", _listed_columns(pairs, ids))


def work_ban(view: View) -> ElasticLimits:
    """Elastic limits: the workload may not run in the region; one for each ban."""
    p, (workload, region, _, ids) = view.p, view.run
    cells = np.nonzero(p.workloads.forbidden)
    member = np.full(p.workloads.forbidden.shape, -1)
    member[cells] = np.arange(len(cells[0]))
    closed = member[workload, region]
    columns = (closed[closed >= 0], ids[closed >= 0])
    return _cell_rule(view, "work_ban", "upper", "workloads.forbidden", columns)


def gpu_type(view: View) -> ElasticLimits:
    """Elastic limits: the region has no GPUs of the type; one for each such pair that work could use. A repair supplies
    as many whole GPUs as one workload needs at most."""
    p, (workload, region, kind, ids) = view.p, view.run
    cells = missing_types(p)
    member = np.full((len(p.regions), len(p.gpu_types) + 1), -1)
    member[cells] = np.arange(len(cells[0]))
    closed = np.where(p.option_mgpu[workload, kind] > 0, member[region, kind], -1)
    largest = -(-p.option_mgpu.max(axis=0, initial=0)[cells[1]] // 1000) * 1000
    return _rule(
        "gpu_type",
        "upper",
        NEW_TYPE,
        cells,
        by_place(
            lambda r, rows: f"no {listed(names_at(p.gpu_types, cells[1][rows]))} in {r}", p.regions.labels, cells[0]
        ),
        lambda m: (
            f"supply {quantity(largest[m] // 1000, 'GPUs')} of type {p.gpu_types[cells[1][m]]} in "
            f"{p.regions.labels[cells[0][m]]} (the most that one workload needs)"
        ),
        (closed[closed >= 0], ids[closed >= 0]),
        edits.supplying(cells, largest),
    )


def remote_reads(view: View) -> ElasticLimits:
    """The elastic limit that work reads data in its own region only; none where remote reads are allowed."""
    forbidden = (np.zeros(0 if view.p.remote_reads else 1, np.int64),)
    ids = view.remote if not view.p.remote_reads else view.remote[:0]
    return _rule(
        "remote_reads",
        "upper",
        REMOTE,
        forbidden,
        lambda members: "remote reads are forbidden",
        lambda m: 'allow remote reads (remote_reads = "price")',
        (np.zeros(len(ids), np.int64), ids),
        edits.with_remote_reads,
    )


def _cell_rule(
    view: View,
    name: str,
    side: str,
    column: str,
    columns: tuple[IntArray, IntArray],
    more: Callable[[IntArray], str] = lambda rows: "",
) -> ElasticLimits:
    """A limit for each pin or ban of a dataset or workload."""
    table, _, sort = column.partition(".")
    labels, places = view.p.labels_of(table), view.p.regions.labels
    things, regions = cells = np.nonzero(attrgetter(column)(view.p))
    noun, rule = table.removesuffix("s"), "pinned to" if sort == "pinned" else "forbidden in"

    def advice(m: int) -> str:
        thing, place = labels[things[m]], places[regions[m]]
        if sort == "pinned":
            return f"drop the pin of {'' if table == 'datasets' else 'workload '}{thing} to {place}"
        return f"allow {noun} {thing} in {place}"

    describe = by_place(
        lambda r, rows: f"{named(noun, names_at(labels, things[rows]))} {rule} {r}{more(rows)}", places, regions
    )
    return _rule(name, side, RULE, cells, describe, advice, columns, edits.without(column, cells))


def _rule(
    name: str,
    side: str,
    price: float,
    cells: Sequence[Ints],
    describe: Callable[[Sequence[int]], str],
    advice: Callable[[int], str],
    columns: tuple[IntArray, IntArray],
    edit: edits.Edit,
) -> ElasticLimits:
    """Elastic limits of one rule of data placement, such as pins, cell by cell."""
    return ElasticLimits(
        name,
        side,
        np.full(len(cells[0]), price),
        describe=describe,
        column_member=columns[0],
        column=columns[1],
        advice=lambda m, _: advice(m),
        relax=edit,
    )


def served(view: View) -> ElasticLimits:
    """Elastic limits [W]: the workload has to run; none where work may be refused."""
    p = view.p
    count = 0 if p.may_refuse else len(p.workloads)

    def describe(members: Sequence[int]) -> str:
        need = cores(int(p.workloads.cpu_mcores[list(members)].sum()))
        verb = "must run" if len(members) > 1 else "must run somewhere"
        return f"{named('workload', names_at(p.workloads.labels, members))} {verb} ({need})"

    return ElasticLimits(
        "served",
        "lower",
        np.full(count, WORK),
        describe=describe,
        row_member=np.arange(count),
        row=view.rows["served"].ids[:count],
        advice=lambda w, _: f"take out workload {p.workloads.labels[w]}",
        relax=lambda problem, amounts: edits.without_workloads(problem, list(amounts)),
        reshapes=True,
    )


def missing_types(p: DataPlacement) -> tuple[Ints, Ints]:
    """(region, type) pairs without supply, of types that some work asks for."""
    asked = np.zeros(len(p.gpu_types) + 1, np.bool_)
    asked[p.options.gpu_type[p.options.mgpu > 0]] = True
    region, kind = np.nonzero((p.regions.supply_mgpu == 0) & asked[:-1])
    return region, kind


def _listed_columns(pairs: Sequence[IntArray], ids: IntArray) -> tuple[IntArray, IntArray]:
    """(member, column) of each listed pin of data placement."""
    member = np.repeat(np.arange(len(pairs)), [len(positions) for positions in pairs])
    return member, ids[np.concatenate([*pairs, np.zeros(0, np.int64)]).astype(np.int64)]
