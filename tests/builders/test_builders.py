"""Builders: what they build equals what tables give, and each call is checked before anything of it is taken."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.problems.job_placement.units import MOVE_LIMITS

Tables = dict[str, pl.DataFrame]


def rows(tables: Tables, name: str, **where: object) -> list[dict[str, Any]]:
    """The rows of a table, which may be missing, with these values."""
    frame = tables.get(name, pl.DataFrame())
    return [row for row in frame.to_dicts() if all(row.get(column) == value for column, value in where.items())]


def mapping(tables: Tables, name: str, key: str, value: str, **where: object) -> dict[Any, Any]:
    return {row[key]: row[value] for row in rows(tables, name, **where)}


def column(tables: Tables, name: str, wanted: str, **where: object) -> list[Any]:
    return [row[wanted] for row in rows(tables, name, **where)]


def rebuild_data(tables: Tables) -> Any:
    builder = mast_opt.DataPlacementBuilder()
    for row in rows(tables, "regions"):
        builder.add_region(gpus=mapping(tables, "gpu_supply", "gpu_type", "gpus", region=row["region"]), **row)
    for row in rows(tables, "datasets"):
        one = {"dataset": row["dataset"]}
        builder.add_dataset(
            replicas=column(tables, "replicas", "region", **one),
            residency=column(tables, "residency", "region", **one),
            pinned=column(tables, "rules", "region", rule="pinned", **one),
            forbidden=column(tables, "rules", "region", rule="forbidden", **one),
            **row,
        )
    for row in rows(tables, "workloads"):
        one = {"workload": row["workload"]}
        builder.add_workload(
            gpus=mapping(tables, "gpu_demand", "gpu_type", "gpus", **one),
            reads=mapping(tables, "reads", "dataset", "tb_per_day", **one),
            pinned=column(tables, "workload_rules", "region", rule="pinned", **one),
            forbidden=column(tables, "workload_rules", "region", rule="forbidden", **one),
            **row,
        )
    for row in rows(tables, "current_runs"):
        builder.add_current_run(**row)
    for row in rows(tables, "cpu_quota"):
        builder.add_cpu_quota(**row)
    for row in rows(tables, "links"):
        builder.add_link(**row)
    return builder.build()


def rebuild_jobs(tables: Tables) -> Any:
    builder = mast_opt.JobPlacementBuilder()
    for row in rows(tables, "regions"):
        builder.add_region(**row)
    for row in rows(tables, "clusters"):
        builder.add_cluster(**row)
    for row in rows(tables, "servers"):
        builder.add_server(**row)
    stored = dict.fromkeys(column(tables, "replicas", "dataset"))
    for dataset in stored:
        builder.add_dataset(
            dataset,
            replicas=column(tables, "replicas", "region", dataset=dataset),
            residency=column(tables, "residency", "region", dataset=dataset),
        )
    for row in rows(tables, "jobs"):
        one = {"job": row["job"]}
        builder.add_job(
            gpu_types={kind["gpu_type"]: kind.get("gpus") for kind in rows(tables, "job_gpu_types", **one)},
            datasets=mapping(tables, "job_datasets", "dataset", "tb_per_day", **one),
            costs=mapping(tables, "costs", "cluster", "cost", **one),
            **row,
        )
    for row in rows(tables, "running"):
        builder.add_running(**row)
    for row in rows(tables, "allocations"):
        builder.add_allocation(**row)
    for row in rows(tables, "quotas"):
        builder.add_quota(**row)
    return builder.build()


def rebuild_servers(tables: Tables) -> Any:
    builder = mast_opt.ServerAssignmentBuilder()
    servers = rows(tables, "servers")
    for row in rows(tables, "reservations"):
        one = {"reservation": row["reservation"]}
        builder.add_reservation(
            values=mapping(tables, "values", "type", "rru", **one),
            affinity={
                near["datacenter"]: (near["share"], near["tolerance"]) for near in rows(tables, "affinity", **one)
            },
            **row,
        )
    for row in servers:
        builder.add_server(**row)
    return builder.build()


def rebuild_tasks(tables: Tables) -> Any:
    builder = mast_opt.TaskReassignmentBuilder()
    for row in rows(tables, "resources"):
        builder.add_resource(**row)
    for row in rows(tables, "machines"):
        one = {"machine": row["machine"]}
        builder.add_machine(
            capacities=mapping(tables, "capacities", "resource", "capacity", **one),
            safety=mapping(tables, "capacities", "resource", "safety", **one),
            **row,
        )
    for row in _services_in_order(tables):
        builder.add_service(needs=column(tables, "dependencies", "needs", service=row["service"]), **row)
    for row in rows(tables, "processes"):
        builder.add_process(needs=mapping(tables, "needs", "resource", "amount", process=row["process"]), **row)
    for row in rows(tables, "balances"):
        builder.add_balance(**row)
    for row in rows(tables, "move_costs"):
        builder.add_move_cost(**row)
    return builder.build()


def _services_in_order(tables: Tables) -> list[dict[str, Any]]:
    """A service after those that it needs."""
    left, ready, found = rows(tables, "services"), set[str](), []
    while left:
        for row in left:
            if set(column(tables, "dependencies", "needs", service=row["service"])) <= ready:
                ready.add(row["service"])
                found.append(row)
        left = [row for row in left if row["service"] not in ready]
    return found


def rebuild_allocation(tables: Tables) -> Any:
    builder = mast_opt.ResourceAllocationBuilder(policy="max-min")
    for row in rows(tables, "resources"):
        builder.add_resource(**row)
    for row in rows(tables, "groups"):
        builder.add_group(**row)
    for row in rows(tables, "jobs"):
        builder.add_job(**row)
    for row in rows(tables, "configurations"):
        one = {"configuration": row["configuration"]}
        builder.add_configuration(
            rates=mapping(tables, "members", "job", "rate", **one),
            uses=mapping(tables, "uses", "resource", "amount", **one),
            **row,
        )
    return builder.build()


CASES: list[tuple[str, str | None, dict[str, int], Callable[[Tables], Any]]] = [
    ("data-placement", None, {"datasets": 6, "workloads": 8, "regions": 3}, rebuild_data),
    ("data-placement", "links", {"datasets": 6, "workloads": 8, "regions": 3}, rebuild_data),
    ("job-placement", "study", {"regions": 2, "clusters": 2, "servers": 3, "fill_percent": 80}, rebuild_jobs),
    ("server-assignment", None, {"servers": 20, "reservations": 3, "datacenters": 2}, rebuild_servers),
    ("task-reassignment", None, {"processes": 12, "machines": 4, "resources": 2}, rebuild_tasks),
    ("resource-allocation", "features", {"jobs": 6, "types": 3}, rebuild_allocation),
]


def same_content(first: Tables, second: Tables) -> bool:
    """Whether two problems have the same rows, whatever their order."""
    names = {name for tables in (first, second) for name in tables if len(tables[name])}
    return all(
        sorted(map(str, first[name].to_dicts()))
        == sorted(map(str, second[name].select(first[name].columns).to_dicts()))
        for name in names
    )


@pytest.mark.parametrize(("kind", "family", "sizes", "rebuild"), CASES)
def test_a_builder_builds_what_tables_give(
    kind: str, family: str | None, sizes: dict[str, int], rebuild: Callable[[Tables], Any]
) -> None:
    tables = mast_opt.to_tables(mast_opt.generate(kind, family, seed=5, **sizes))
    assert same_content(tables, mast_opt.to_tables(rebuild(tables)))


BUILDERS = (
    mast_opt.DataPlacementBuilder,
    mast_opt.JobPlacementBuilder,
    mast_opt.ResourceAllocationBuilder,
    mast_opt.ServerAssignmentBuilder,
    mast_opt.TaskReassignmentBuilder,
)


@pytest.mark.parametrize("builder", BUILDERS)
def test_the_example_in_the_docstring_has_an_optimal_plan(builder: type) -> None:
    found = re.search(r"Example::\n\n(.*?)\n\n    Args", builder.__doc__ or "", re.S)
    assert found is not None
    names: dict[str, Any] = {}
    exec(textwrap.dedent(found[1]), names)
    assert mast_opt.solve(names["problem"], "highs").status is mast_opt.Status.OPTIMAL


def two_regions() -> mast_opt.DataPlacementBuilder:
    builder = mast_opt.DataPlacementBuilder("x", remote_reads="forbid", days=2)
    builder.add_region("east", storage_tb=10, cpu_cores=5).add_region("west", storage_tb=10, cpu_cores=5)
    return builder.add_dataset("d", size_tb=1, replicas=["east"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.add_region("east", storage_tb=1, cpu_cores=1), "regions, row 3, column region: found 'east'"),
        (lambda b: b.add_region(" north", storage_tb=1, cpu_cores=1), "regions, row 3, column region: found ' north'"),
        (lambda b: b.add_region("north", storage_tb=-1, cpu_cores=1), "column storage_tb: found '-1'"),
        (lambda b: b.add_region("north", storage_tb=float("nan"), cpu_cores=1), "column storage_tb: found 'nan'"),
        (lambda b: b.add_region("north", storage_tb=1, cpu_cores=1, headroom=2), "column headroom: found '2'"),
        (lambda b: b.add_dataset("e", size_tb=1, replicas=["est"]), "'est'; expected a label that regions has by now"),
        (lambda b: b.add_dataset("e", size_tb=1, replicas=["eastt"]), "did you mean 'east'?"),
        (lambda b: b.add_dataset("e", size_tb=1, copies_min=1.5), "column copies_min: found '1.5'"),
        (lambda b: b.add_dataset("e", size_tb=1, replicas=["east", "east"]), "replicas, row 3, column dataset, region"),
        (lambda b: b.add_workload("w", tier=0, cpu_cores=1, reads={"f": 1}), "reads, row 1, column dataset: found 'f'"),
        (lambda b: b.add_workload("w", tier=0, cpu_cores=1, splittable="maybe"), "column splittable: found 'maybe'"),
        (lambda b: b.add_link("east", "moon", tb_per_day=1), "links, row 1, column dst: found 'moon'"),
        (lambda b: b.add_cpu_quota("east", "app", cpu_cores=[1]), "column cpu_cores: found '[1]'"),
    ],
)
def test_a_call_with_a_fault_takes_nothing(call: Callable[[Any], object], words: str) -> None:
    builder = two_regions()
    with pytest.raises(InstanceError) as caught:
        call(builder)
    assert words in str(caught.value)
    builder.add_workload("w", tier=0, cpu_cores=1, reads={"d": 1})
    tables = mast_opt.to_tables(builder.build())
    assert {name: len(frame) for name, frame in tables.items()} == {
        "regions": 2,
        "gpu_supply": 0,
        "datasets": 1,
        "replicas": 1,
        "workloads": 1,
        "gpu_demand": 0,
        "reads": 1,
    }


def test_one_text_is_no_list_of_labels() -> None:
    with pytest.raises(UsageError, match="replicas is a str; expected a list of labels"):
        two_regions().add_dataset("e", size_tb=1, replicas="east")
    with pytest.raises(UsageError, match="gpus is a list; expected a mapping"):
        two_regions().add_workload("w", tier=0, cpu_cores=1, gpus=["h100"])  # type: ignore[arg-type]


def test_jobs_that_may_move_and_the_limits_of_their_moves() -> None:
    builder = mast_opt.JobPlacementBuilder().add_region("east").add_cluster("c", region="east")
    builder.add_server("s", cluster="c", rack="k", gpu_type="h100", gpus=8, cpu_cores=8, memory_gb=8)
    builder.add_job("new", tier=0, tasks=1, gpus=1, cpu_cores=1, memory_gb=1)
    builder.add_running("old", tier=1, preemptible=True, gpu_hours_at_risk=1)
    builder.add_allocation("old", "s", gpus=1, cpu_cores=1, memory_gb=1).add_movable("old", restart_gpu_hours=2)
    problem = builder.add_move_limit("restart_gpu_hours", 1.5).add_move_limit("moves", 3).build()
    assert problem.movable.restart_mgpu_hours.tolist() == [2000]
    limits = {
        MOVE_LIMITS[limit]: most for limit, most in zip(problem.move_limits.limit, problem.move_limits.most_milli)
    }
    assert limits == {"moves": 3000, "restart_gpu_hours": 1500}
    with pytest.raises(InstanceError, match="expected"):
        builder.add_move_limit("money", 1)


def test_rules_and_objective_are_checked_at_once() -> None:
    with pytest.raises(InstanceError, match=r"rules.remote_reads: found 'never'"):
        mast_opt.DataPlacementBuilder(remote_reads="never")
    with pytest.raises(InstanceError, match=r"objective.weights.peek"):
        mast_opt.DataPlacementBuilder(objective={"weights": {"peek": 1}})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"policy": "maxmin"}, "objective.policy: found 'maxmin'"),
        ({"policy": "max-min", "mechanism": "partial-allocation"}, "objective.mechanism: found 'partial-allocation'"),
        ({"policy": "max-min", "inside": "fifo"}, "objective.inside: found 'fifo'"),
        ({"policy": "max-min", "shares": "halves"}, "rules.shares: found 'halves'"),
    ],
)
def test_policies_are_checked_at_once(said: dict[str, str], words: str) -> None:
    with pytest.raises(InstanceError, match=re.escape(words)):
        mast_opt.ResourceAllocationBuilder(**said)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.add_resource("gpu", amount=1), "resources, row 2, column resource: found 'gpu'"),
        (lambda b: b.add_job("b", fair_rate=0), "jobs, row 2, column fair_rate: found '0'"),
        (lambda b: b.add_job("b", steps=float("nan")), "column steps: found 'nan'"),
        (lambda b: b.add_job("b", group="team"), "'team'; expected a label that groups has by now"),
        (lambda b: b.add_configuration("c", rates={"b": 1}), "members, row 1, column job: found 'b'"),
        (lambda b: b.add_configuration("c", rates={"a": 0.5}, uses={"cpu": 1}), "column resource: found 'cpu'"),
        (lambda b: b.add_configuration("c", rates={"a": -0.5}), "column rate: found '-0.5'"),
    ],
)
def test_a_call_to_the_allocation_builder_with_a_fault_takes_nothing(call: Callable[[Any], object], words: str) -> None:
    builder = mast_opt.ResourceAllocationBuilder(policy="nash").add_resource("gpu", amount=1).add_job("a")
    with pytest.raises(InstanceError) as caught:
        call(builder)
    assert words in str(caught.value)
    with pytest.raises(InstanceError, match="configurations: expected at least one row"):
        builder.build()


def test_what_is_missing_is_a_fault_of_the_build() -> None:
    with pytest.raises(InstanceError, match=r"workloads: expected at least one row"):
        two_regions().build()


def test_a_problem_does_not_change_with_its_builder() -> None:
    builder = two_regions().add_workload("w", tier=0, cpu_cores=1, reads={"d": 1})
    problem = builder.build()
    before = mast_opt.checksum(problem)
    builder.add_workload("v", tier=0, cpu_cores=1)
    assert (mast_opt.checksum(problem), len(builder.build().workloads)) == (before, 2)
    assert problem.days == 2
    assert not problem.remote_reads
