"""A data-placement plan: replicas, runs, and where copies and remote reads come from."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.core.arrays import OTHER_INSTANCE, Arrays, amounts, flags, positions
from mast_opt.core.errors import PlanError
from mast_opt.data_placement.problem import Bools, DataPlacement, Ints


@dataclass(frozen=True, eq=False)
class Plan:
    """The decisions. Shares are integers out of ``problem.SHARE``.

    Raises:
        PlanError: arrays of another type, or that do not fit one another.
    """

    place: Bools
    """[I, R] which region holds a replica after the plan."""

    run_workload: Ints
    """[·] ascending; one entry per (workload, region, type) with a positive share."""
    run_region: Ints
    run_type: Ints
    """0..K−1, or K for work without GPUs."""
    run_share: Ints

    copy_dataset: Ints
    """[·] a new replica and where its bytes come from; uploads of datasets stored nowhere are not listed."""
    copy_source: Ints
    copy_target: Ints
    copy_share: Ints

    remote_workload: Ints
    """[·] the part of a workload that reads a dataset from another region."""
    remote_dataset: Ints
    remote_source: Ints
    remote_target: Ints
    remote_share: Ints

    def __post_init__(self) -> None:
        check = Arrays(self)
        check.take(*COLUMNS)
        if check.faults:
            raise PlanError(check.faults)


COLUMNS = (
    flags("place", "datasets", "regions"),
    *(
        amounts(f"{relation}_{name}", relation, least=None)
        for relation, names in (
            ("run", ("workload", "region", "type", "share")),
            ("copy", ("dataset", "source", "target", "share")),
            ("remote", ("workload", "dataset", "source", "target", "share")),
        )
        for name in names
    ),
)


def check_plan(problem: DataPlacement, plan: Plan) -> None:
    """Raises PlanError for a plan of another instance: a position that the problem does not have."""
    axes = {name: len(getattr(problem, name)) for name in ("datasets", "regions", "workloads", "gpu_types")}
    check = Arrays(plan, axes)
    check.take(flags("place", "datasets", "regions"))
    into = {"workload": "workloads", "dataset": "datasets", "type": "gpu_types"}
    for column in COLUMNS[1:]:
        name = column.name.partition("_")[2]
        if name != "share":
            axis = into.get(name, "regions")
            check.take(positions(column.name, str(column.shape[0]), axis, beyond=int(name == "type")))
    if check.faults:
        raise PlanError(check.faults, OTHER_INSTANCE)
