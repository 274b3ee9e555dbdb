"""Builder of job placement instances."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from mast_opt.planner.builders.base import Cell, Number, ProblemBuilder, Row, names, pairs
from mast_opt.problems.job_placement.problem import JobPlacement


class JobPlacementBuilder(ProblemBuilder[JobPlacement]):
    """Builder of a job placement instance, one cluster, server and job after another.

    Example::

        from mast_opt import JobPlacementBuilder

        builder = JobPlacementBuilder("one cluster")
        builder.add_cluster("c1", region="east")
        for number in range(4):
            builder.add_server(f"s{number}", "c1", gpu_type="h100", gpus=8, cpu_cores=96, memory_gb=1024)
        builder.add_job("train", tier=0, tasks=2, gpus=8, cpu_cores=64, memory_gb=512)
        problem = builder.build()

    Args:
        name: of the instance.
        remote_reads: ``forbid`` or ``price``: may a job run where its data is not?
        reclaim: ``any``, ``lower-priority`` or ``never``: which work within its quota may stop work that borrows?
        objective: as in ``[objective]`` of ``instance.toml``.
        provenance: where the data come from, in words.

    Raises:
        InstanceError: by each method, for a label, number or rule that cannot be; nothing of the call is then taken.
    """

    def __init__(
        self,
        name: str = "instance",
        *,
        remote_reads: str = "forbid",
        reclaim: str = "any",
        objective: Mapping[str, Any] | None = None,
        provenance: str = "",
    ) -> None:
        rules = {"remote_reads": remote_reads, "reclaim": reclaim}
        super().__init__(JobPlacement.kind, name, rules, objective, provenance)

    def add_region(self, region: str) -> Self:
        """Add a region; ``add_cluster`` does so for a new region."""
        return self._add([("regions", {"region": region})])

    def add_cluster(self, cluster: str, *, region: str) -> Self:
        """Add a cluster, and its region if that is new."""
        rows: list[Row] = [] if region in self._listed["region"] else [("regions", {"region": region})]
        return self._add([*rows, ("clusters", {"cluster": cluster, "region": region})])

    def add_server(
        self,
        server: str,
        cluster: str,
        *,
        gpus: int,
        cpu_cores: Number,
        memory_gb: Number,
        gpu_type: str | None = None,
        rack: str = "rack",
    ) -> Self:
        """Add a machine, empty or not.

        Args:
            gpus: a whole number.
            memory_gb: memory in GiB.
            gpu_type: may be left out for a server without GPUs.
            rack: within the cluster.
        """
        cells = {"rack": rack, "gpu_type": gpu_type, "gpus": gpus, "cpu_cores": cpu_cores, "memory_gb": memory_gb}
        return self._add([("servers", {"server": server, "cluster": cluster, **cells})])

    def add_dataset(self, dataset: str, *, replicas: Iterable[str], residency: Iterable[str] = ()) -> Self:
        """Add a dataset that jobs read.

        Args:
            replicas: regions that hold it.
            residency: the only regions where a job that reads it may run; any unless given.
        """
        rows: list[Row] = []
        for table, regions in (("replicas", replicas), ("residency", residency)):
            rows += [(table, {"dataset": dataset, "region": region}) for region in names(table, regions)]
        return self._add(rows)

    def add_job(
        self,
        job: str,
        *,
        tier: int,
        tasks: int | None = None,
        gpus: Number | None = None,
        cpu_cores: Number | None = None,
        memory_gb: Number | None = None,
        gpu_types: Iterable[str] | Mapping[str, Number] = (),
        datasets: Mapping[str, Number] | None = None,
        costs: Mapping[str, Number] | None = None,
        **columns: Cell,
    ) -> Self:
        """Add a gang that waits to be placed: equal tasks that run together or not at all.

        Args:
            tier: importance; 0 is the highest.
            tasks: omit it and the next four for a job of several parts (``add_job_part``).
            gpus, cpu_cores, memory_gb: of one task; GPUs are a whole number, or less than one.
            gpu_types: types that it accepts, perhaps each with the GPUs of one task there; any unless given.
            datasets: dataset → TB read a day; a job that reads nothing runs in any region.
            costs: cluster → price of running it there; 0 where there is none.
            columns: further columns of the table ``jobs``, such as ``within="rack"`` or ``tenant="vision"``.
        """
        cells = {"tier": tier, "tasks": tasks, "gpus": gpus, "cpu_cores": cpu_cores, "memory_gb": memory_gb}
        rows: list[Row] = [("jobs", {**columns, "job": job, **cells}), *_accepted(gpu_types, {"job": job})]
        reads = [{"job": job, "dataset": name, "tb_per_day": amount} for name, amount in pairs("datasets", datasets)]
        rows += [("job_datasets", one) for one in reads]
        rows += [("costs", {"job": job, "cluster": cluster, "cost": cost}) for cluster, cost in pairs("costs", costs)]
        return self._add(rows)

    def add_job_part(
        self,
        job: str,
        part: str,
        *,
        tasks: int,
        gpus: Number,
        cpu_cores: Number,
        memory_gb: Number,
        gpu_types: Iterable[str] | Mapping[str, Number] = (),
        within: str | None = None,
    ) -> Self:
        """Add a part of a job of several parts: equal tasks that run together with the other parts or not at all.

        Args:
            job: added by ``add_job`` without tasks.
            part: its name, such as ``trainers`` or ``servers``.
            gpus, cpu_cores, memory_gb: of one task.
            gpu_types: types that it accepts, perhaps each with the GPUs of one task there; any unless given.
            within: level that the part must stay within: ``server``, ``rack`` or ``cluster`` (unless given).
        """
        cells = {"tasks": tasks, "gpus": gpus, "cpu_cores": cpu_cores, "memory_gb": memory_gb, "within": within}
        named = {"job": job, "part": part}
        return self._add([("job_parts", {**named, **cells}), *_accepted(gpu_types, named)])

    def add_running(
        self, job: str, *, tier: int, preemptible: bool, gpu_hours_at_risk: Number, **columns: Cell
    ) -> Self:
        """Add a job that runs now; ``add_allocation`` says what it holds.

        Args:
            gpu_hours_at_risk: work lost if it is stopped now.
            columns: further columns of the table ``running``, such as ``tenant``.
        """
        cells = {"tier": tier, "preemptible": preemptible, "gpu_hours_at_risk": gpu_hours_at_risk}
        return self._add([("running", {**columns, "job": job, **cells})])

    def add_allocation(
        self,
        job: str,
        server: str,
        *,
        gpus: Number,
        cpu_cores: Number,
        memory_gb: Number,
        tasks: int = 1,
        gpu_index: int | None = None,
        part: str | None = None,
    ) -> Self:
        """Add the resources that a running job holds on a server.

        Args:
            gpus, cpu_cores, memory_gb: of one task.
            tasks: number of tasks that run there.
            gpu_index: first GPU that they hold, counted from 0.
            part: of a job of several parts.
        """
        cells = {"tasks": tasks, "gpus": gpus, "cpu_cores": cpu_cores, "memory_gb": memory_gb, "gpu_index": gpu_index}
        return self._add([("allocations", {"job": job, "server": server, **cells, "part": part})])

    def add_movable(self, job: str, *, restart_gpu_hours: Number) -> Self:
        """Let a running job be moved to other servers of its region.

        Args:
            restart_gpu_hours: cost of a move: work since the checkpoint, and the restart.
        """
        return self._add([("movable", {"job": job, "restart_gpu_hours": restart_gpu_hours})])

    def add_move_limit(self, limit: str, most: Number) -> Self:
        """Limit all moves together: ``moves`` limits their number, ``restart_gpu_hours`` their cost."""
        return self._add([("move_limits", {"limit": limit, "most": most})])

    def add_quota(
        self,
        tenant: str,
        *,
        gpus: Number,
        gpu_type: str | None = None,
        parent: str | None = None,
        borrowing_limit: Number | None = None,
        lending_limit: Number | None = None,
    ) -> Self:
        """Add the number of GPUs, of one type or of all, that a tenant or a group of tenants may hold. Work beyond it
        counts less than all work within quotas.

        Args:
            parent: the group above it, which has a quota too.
            borrowing_limit: GPUs beyond its quota that it may hold; None for whatever is free.
            lending_limit: GPUs of its quota that others of the group may hold; None for all.
        """
        limits = {"parent": parent, "borrowing_limit": borrowing_limit, "lending_limit": lending_limit}
        return self._add([("quotas", {"tenant": tenant, "gpus": gpus, "gpu_type": gpu_type, **limits})])


def _accepted(gpu_types: Iterable[str] | Mapping[str, Number], named: Mapping[str, str]) -> list[Row]:
    """Rows of the GPU types that a builder's job or part accepts."""
    accepted = gpu_types if isinstance(gpu_types, Mapping) else dict.fromkeys(names("gpu_types", gpu_types))
    return [("job_gpu_types", {**named, "gpu_type": one, "gpus": count}) for one, count in accepted.items()]
