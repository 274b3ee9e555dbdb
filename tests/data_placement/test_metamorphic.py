"""How proven optima must move when an instance changes: names and units do not matter, more room never hurts,
more demand and more rules never help. Terms whose denominator changes with the instance get no weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_opt.data_placement import DataPlacement
from mast_opt.data_placement.formulation.formulation import base
from tests.data_placement.strategies import problems
from tests.data_placement.support import RELATIVE, examples, proven

Change = Callable[[DataPlacement], DataPlacement]


def optimum(problem: DataPlacement) -> float:
    """The proven optimum; infinite where there is no plan."""
    objective = proven(base(problem).mip).objective
    return float("inf") if objective is None else objective


def weightless(problem: DataPlacement, *terms: str) -> DataPlacement:
    weights = dict(problem.objective.weights) | dict.fromkeys(terms, 0.0)
    return replace(problem, objective=replace(problem.objective, weights=weights))


def times(factor: int, *names: str) -> Change:
    """Multiplies whole arrays; names after a dot are those of the links."""

    def change(p: DataPlacement) -> DataPlacement:
        own = {name: getattr(p, name) * factor for name in names if not name.startswith("links.")}
        changed = replace(p, **own)
        of_links = [name.removeprefix("links.") for name in names if name.startswith("links.")]
        if p.links is not None and of_links:
            changed = replace(
                changed, links=replace(p.links, **{name: getattr(p.links, name) * factor for name in of_links})
            )
        return changed

    return change


def cheaper_links(factor: int) -> Change:
    def change(p: DataPlacement) -> DataPlacement:
        return (
            p
            if p.links is None
            else replace(p, links=replace(p.links, price_usd_per_tb=p.links.price_usd_per_tb / factor))
        )

    return change


DATA = ("size_mb", "storage_mb", "output_mb", "ingress_mb_per_day", "read_mb_per_day", "links.capacity_mb_per_day")


@pytest.mark.parametrize(
    "changes",
    [
        [times(1024, *DATA), cheaper_links(1024)],
        [times(2, "cpu_need_mcores", "cpu_mcores", "quota_mcores")],
        [times(4, "supply_mgpu", "option_mgpu")],
    ],
    ids=["bytes", "cores", "gpus"],
)
@examples(40)
@given(problem=problems(roomy=True, refuse=False))
def test_units_do_not_matter(changes: list[Change], problem: DataPlacement) -> None:
    whole = replace(problem, headroom_milli=np.zeros_like(problem.headroom_milli))  # nothing is rounded
    plain = weightless(whole, "moved_work")  # CPU-only work is measured in whole milli-GPUs there
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
    shuffled = permuted(p, order(p.regions), order(p.gpu_types), order(p.datasets), order(p.workloads))
    assert optimum(shuffled) == pytest.approx(optimum(p), rel=RELATIVE, abs=1e-9)


def permuted(
    p: DataPlacement, regions: np.ndarray, types: np.ndarray, datasets: np.ndarray, workloads: np.ndarray
) -> DataPlacement:
    """The problem with its axes in another order: position n of an axis holds what was at order[n]."""
    region, dataset, workload = (np.argsort(order) for order in (regions, datasets, workloads))
    kind = np.append(np.argsort(types), len(types))
    option = np.lexsort((kind[p.option_type], workload[p.option_workload]))
    read = np.lexsort((dataset[p.read_dataset], workload[p.read_workload]))
    links = p.links
    return replace(
        p,
        regions=tuple(p.regions[r] for r in regions),
        gpu_types=tuple(p.gpu_types[k] for k in types),
        datasets=tuple(p.datasets[i] for i in datasets),
        workloads=tuple(p.workloads[w] for w in workloads),
        **{name: getattr(p, name)[regions] for name in ("storage_mb", "headroom_milli", "cpu_mcores")},
        **{name: getattr(p, name)[regions] for name in ("ingress_mb_per_day", "ingress_limited")},
        supply_mgpu=p.supply_mgpu[np.ix_(regions, types)],
        **{name: getattr(p, name)[datasets] for name in ("size_mb", "copies_min", "copies_max")},
        **{
            name: getattr(p, name)[np.ix_(datasets, regions)] for name in ("stored", "pinned", "forbidden", "residency")
        },
        **{name: getattr(p, name)[workloads] for name in ("tier", "cpu_need_mcores", "app", "splittable", "output_mb")},
        **{name: getattr(p, name)[np.ix_(workloads, regions)] for name in ("work_pinned", "work_forbidden")},
        option_workload=workload[p.option_workload][option],
        option_type=kind[p.option_type][option],
        option_mgpu=p.option_mgpu[option],
        read_workload=workload[p.read_workload][read],
        read_dataset=dataset[p.read_dataset][read],
        read_mb_per_day=p.read_mb_per_day[read],
        current_workload=workload[p.current_workload],
        current_region=region[p.current_region],
        current_type=kind[p.current_type],
        quota_region=region[p.quota_region],
        links=links and replace(links, source=region[links.source], target=region[links.target]),
    )


ROOM: dict[str, Change] = {
    "storage": times(2, "storage_mb"),
    "cores": times(2, "cpu_mcores"),
    "GPUs": times(2, "supply_mgpu"),
    "ingress": times(2, "ingress_mb_per_day"),
    "quotas": times(2, "quota_mcores"),
    "links": times(2, "links.capacity_mb_per_day"),
    "copies": lambda p: replace(p, copies_max=p.copies_max + 1),
    "no headroom": lambda p: replace(p, headroom_milli=np.zeros_like(p.headroom_milli)),
    "no rules": lambda p: replace(p, pinned=p.pinned & False, forbidden=p.forbidden & False),
    "no residency": lambda p: replace(p, residency=p.residency & False),
    "no rules for work": lambda p: replace(
        p, work_pinned=p.work_pinned & False, work_forbidden=p.work_forbidden & False
    ),
    "remote reads": lambda p: replace(p, remote_reads=True),
    "splitting": lambda p: replace(p, splittable=p.splittable | True),
    "no links": lambda p: weightless(replace(p, links=None)),
    "time": lambda p: replace(p, days=p.days * 2),
}


@pytest.mark.parametrize("change", ROOM.values(), ids=ROOM)
@examples(15)
@given(problem=st.one_of(problems(refuse=False, roomy=True), problems(refuse=False)))
def test_more_room_never_hurts(change: Change, problem: DataPlacement) -> None:
    plain = weightless(problem, "idle", "moved_work")
    before = optimum(plain)
    assert optimum(change(plain)) <= before * (1 + RELATIVE) + 1e-9


DEMAND: dict[str, Change] = {
    "GPUs": times(2, "option_mgpu"),
    "cores": times(2, "cpu_need_mcores"),
    "bytes": times(2, "size_mb"),
    "outputs": times(2, "output_mb"),
    "reads": times(2, "read_mb_per_day"),
    "copies": lambda p: replace(p, copies_min=p.copies_min + 1),
    "prices": times(2, "links.price_usd_per_tb"),
    "no replicas": lambda p: replace(p, links=None, stored=p.stored & False),
}


@pytest.mark.parametrize("change", DEMAND.values(), ids=DEMAND)
@examples(15)
@given(problem=problems(roomy=True, refuse=False))
def test_more_demand_never_helps(change: Change, problem: DataPlacement) -> None:
    plain = weightless(problem, "idle", "moved_work")
    if change is DEMAND["no replicas"]:
        plain = replace(plain, links=None)
    before = optimum(plain)
    assert optimum(change(plain)) >= before * (1 - RELATIVE) - 1e-9


@examples(40)
@given(problem=problems(refuse=False))
def test_leave_to_refuse_never_hurts_and_always_gives_a_plan_for_the_work(problem: DataPlacement) -> None:
    assert optimum(replace(problem, may_refuse=True)) <= optimum(problem) * (1 + RELATIVE) + 1e-9
