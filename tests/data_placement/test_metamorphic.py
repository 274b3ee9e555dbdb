"""How proven optima must move when an instance changes: names and units do not matter, more room never hurts,
more demand and more rules never help. Terms whose denominator changes with the instance get no weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.entities import Options, Reads
from mast_opt.problems.data_placement.formulation.formulation import base
from tests.data_placement.strategies import problems
from tests.data_placement.support import RELATIVE, proven
from tests.examples import examples

Change = Callable[[DataPlacement], DataPlacement]


def optimum(problem: DataPlacement) -> float:
    """The proven optimum; infinite where there is no plan."""
    objective = proven(base(problem).mip).objective
    return float("inf") if objective is None else objective


def weightless(problem: DataPlacement, *terms: str) -> DataPlacement:
    weights = dict(problem.objective.weights) | dict.fromkeys(terms, 0.0)
    return replace(problem, objective=replace(problem.objective, weights=weights))


def times(factor: int, *names: str) -> Change:
    """Multiplies whole columns; those of links where there are any."""

    def change(p: DataPlacement) -> DataPlacement:
        there = [name for name in names if p.links is not None or not name.startswith("links.")]
        return p.with_columns({name: attrgetter(name)(p) * factor for name in there})

    return change


def cheaper_links(factor: int) -> Change:
    def change(p: DataPlacement) -> DataPlacement:
        return (
            p
            if p.links is None
            else replace(p, links=replace(p.links, price_usd_per_tb=p.links.price_usd_per_tb / factor))
        )

    return change


DATA = (
    "datasets.size_mb",
    "regions.storage_mb",
    "workloads.output_mb",
    "regions.ingress_mb_per_day",
    "reads.mb_per_day",
    "links.capacity_mb_per_day",
)


@pytest.mark.parametrize(
    "changes",
    [
        [times(1024, *DATA), cheaper_links(1024)],
        [times(2, "workloads.cpu_mcores", "regions.cpu_mcores", "cpu_quotas.cpu_mcores")],
        [times(4, "regions.supply_mgpu", "options.mgpu")],
    ],
    ids=["bytes", "cores", "gpus"],
)
@examples(40)
@given(problem=problems(roomy=True, refuse=False))
def test_units_do_not_matter(changes: list[Change], problem: DataPlacement) -> None:
    whole = problem.with_columns(
        {"regions.headroom_milli": np.zeros_like(problem.regions.headroom_milli)}
    )  # nothing is rounded
    # CPU-only work moves in whole milli-GPUs; prices are of TB and GPUs, which the changes rescale
    plain = weightless(whole, "moved_work", "retyped_work", "running_cost", "migration_cost")
    scaled = plain
    for change in changes:
        scaled = change(scaled)
    assert optimum(scaled) == pytest.approx(optimum(plain), rel=RELATIVE, abs=1e-9)


@examples(60)
@given(data=st.data(), problem=problems(roomy=True))
def test_the_order_of_things_does_not_matter(data: st.DataObject, problem: DataPlacement) -> None:
    def order(labels: tuple[str, ...]) -> np.ndarray:
        return np.array(data.draw(st.permutations(range(len(labels)))), np.int64)

    p = problem
    shuffled = permuted(
        p, order(p.regions.labels), order(p.gpu_types), order(p.datasets.labels), order(p.workloads.labels)
    )
    assert optimum(shuffled) == pytest.approx(optimum(p), rel=RELATIVE, abs=1e-9)


def permuted(
    p: DataPlacement, regions: np.ndarray, types: np.ndarray, datasets: np.ndarray, workloads: np.ndarray
) -> DataPlacement:
    """The problem with its axes in another order: position n of an axis holds what was at order[n]."""
    region, dataset, workload = (np.argsort(order) for order in (regions, datasets, workloads))
    kind = np.append(np.argsort(types), len(types))
    option = np.lexsort((kind[p.options.gpu_type], workload[p.options.workload]))
    read = np.lexsort((dataset[p.reads.dataset], workload[p.reads.workload]))
    links = p.links
    orders = {"regions": regions, "datasets": datasets, "workloads": workloads}
    columns: dict[str, Any] = {
        f"{axis}.{column.name}": attrgetter(f"{axis}.{column.name}")(p)[
            np.ix_(*(orders.get(part, types) for part in column.shape if isinstance(part, str)))
        ]
        for axis, group in (("regions", p.regions), ("datasets", p.datasets), ("workloads", p.workloads))
        for column in group.COLUMNS
    }
    names = {f"{axis}.labels": tuple(p.labels_of(axis)[at] for at in order) for axis, order in orders.items()}
    return p.with_columns(
        columns
        | names
        | {"gpu_types": tuple(p.gpu_types[k] for k in types)}
        | {
            "options": Options(
                workload[p.options.workload][option], kind[p.options.gpu_type][option], p.options.mgpu[option]
            ),
            "reads": Reads(workload[p.reads.workload][read], dataset[p.reads.dataset][read], p.reads.mb_per_day[read]),
            "current_runs.workload": workload[p.current_runs.workload],
            "current_runs.region": region[p.current_runs.region],
            "current_runs.gpu_type": kind[p.current_runs.gpu_type],
            "cpu_quotas.region": region[p.cpu_quotas.region],
            "links": links and replace(links, source=region[links.source], target=region[links.target]),
        }
    )


ROOM: dict[str, Change] = {
    "storage": times(2, "regions.storage_mb"),
    "cores": times(2, "regions.cpu_mcores"),
    "GPUs": times(2, "regions.supply_mgpu"),
    "ingress": times(2, "regions.ingress_mb_per_day"),
    "quotas": times(2, "cpu_quotas.cpu_mcores"),
    "links": times(2, "links.capacity_mb_per_day"),
    "copies": lambda p: replace(p, datasets=replace(p.datasets, copies_max=p.datasets.copies_max + 1)),
    "no headroom": lambda p: p.with_columns({"regions.headroom_milli": np.zeros_like(p.regions.headroom_milli)}),
    "no rules": lambda p: p.with_columns(
        {"datasets.pinned": p.datasets.pinned & False, "datasets.forbidden": p.datasets.forbidden & False}
    ),
    "no residency": lambda p: replace(p, datasets=replace(p.datasets, residency=p.datasets.residency & False)),
    "no rules for work": lambda p: p.with_columns(
        {"workloads.pinned": p.workloads.pinned & False, "workloads.forbidden": p.workloads.forbidden & False}
    ),
    "remote reads": lambda p: replace(p, remote_reads=True),
    "splitting": lambda p: replace(p, workloads=replace(p.workloads, splittable=p.workloads.splittable | True)),
    "no links": lambda p: weightless(replace(p, links=None)),
    "time": lambda p: replace(p, days=p.days * 2),
}


@pytest.mark.parametrize("change", ROOM.values(), ids=ROOM)
@examples(15)
@given(problem=st.one_of(problems(refuse=False, roomy=True), problems(refuse=False)))
def test_more_room_never_hurts(change: Change, problem: DataPlacement) -> None:
    plain = weightless(problem, "idle", "moved_work", "retyped_work")
    before = optimum(plain)
    assert optimum(change(plain)) <= before * (1 + RELATIVE) + 1e-9


DEMAND: dict[str, Change] = {
    "GPUs": times(2, "options.mgpu"),
    "cores": times(2, "workloads.cpu_mcores"),
    "bytes": times(2, "datasets.size_mb"),
    "outputs": times(2, "workloads.output_mb"),
    "reads": times(2, "reads.mb_per_day"),
    "copies": lambda p: replace(p, datasets=replace(p.datasets, copies_min=p.datasets.copies_min + 1)),
    "prices": times(2, "links.price_usd_per_tb"),
    "no replicas": lambda p: replace(p, links=None, datasets=replace(p.datasets, stored=p.datasets.stored & False)),
}


@pytest.mark.parametrize("change", DEMAND.values(), ids=DEMAND)
@examples(15)
@given(problem=problems(roomy=True, refuse=False))
def test_more_demand_never_helps(change: Change, problem: DataPlacement) -> None:
    plain = weightless(problem, "idle", "moved_work", "retyped_work")
    if change is DEMAND["no replicas"]:
        plain = replace(plain, links=None)
    before = optimum(plain)
    assert optimum(change(plain)) >= before * (1 - RELATIVE) - 1e-9


@examples(40)
@given(problem=problems(refuse=False))
def test_leave_to_refuse_never_hurts_and_always_gives_a_plan_for_the_work(problem: DataPlacement) -> None:
    assert optimum(replace(problem, may_refuse=True)) <= optimum(problem) * (1 + RELATIVE) + 1e-9
